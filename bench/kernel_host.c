/* Does GK_KERNEL cost anything on the host? Each kernel against the loop that one would write by hand, for the same
 * range, one thread, in cache; what they computed is compared. Time is the thread's own. For other compilers build it
 * by hand; it needs no library:
 * cc -O3 -fopenmp -Iinclude bench/harness.c bench/apart.c bench/cpu_floor.c bench/kernel_host.c -lm */
#include "cpu_floor.h"
#include "gk_kernel.h"
#include "harness.h"

enum { NX = 66, NY = 34, NZ = 10, ALL = NX * NY * NZ };

GK_SOURCE(kernel_host)
GK_STRUCT(grid) { int nx, plane; float center, side; };

GK_KERNEL(axpy, (inout(float, y), in(float, x), value(float, a))) {
  y[i] += a * x[i];
}

/* Items are the inner cells of a plane, or of a box. */
GK_KERNEL_2D(stencil, (out(float, y), in(float, x), value(int, nx))) {
  int at = (j + 1) * nx + i + 1;
  y[at] = 4.0f * x[at] - x[at - 1] - x[at + 1] - x[at - nx] - x[at + nx];
}

GK_KERNEL_3D(stencil_of_box, (out(float, y), in(float, x), value(grid, g))) {
  int at = (k + 1) * g.plane + (j + 1) * g.nx + i + 1;
  y[at] = g.center * x[at] + g.side * (x[at - 1] + x[at + 1] + x[at - g.nx] + x[at + g.nx] + x[at - g.plane] +
                                       x[at + g.plane]);
}

GK_KERNEL(dot, (in(float, y), in(float, x), sum(float, total))) {
  total[0] += y[i] * x[i];
}

GK_KERNEL_2D(dot_of_rows, (in(float, y), in(float, x), sum(float, total), value(int, nx))) {
  total[0] += y[j * nx + i] * x[j * nx + i];
}
GK_SOURCE_END

static void axpy_by_hand(const gk_value *args, gk_range items) {
  float *y = args[0].ptr, a = args[2].f32;
  const float *restrict x = args[1].ptr;
  for (size_t i = items.begin; i < items.end; ++i) y[i] += a * x[i];
}

static void stencil_by_hand(const gk_value *args, gk_range items) {
  float *restrict y = args[0].ptr;
  const float *restrict x = args[1].ptr;
  int nx = args[2].i32, inner_x = (int)items.extent[0], inner_y = (int)items.extent[1];
  for (int j = 0; j < inner_y; ++j)
    for (int i = 0; i < inner_x; ++i) {
      int at = (j + 1) * nx + i + 1;
      y[at] = 4.0f * x[at] - x[at - 1] - x[at + 1] - x[at - nx] - x[at + nx];
    }
}

static void box_by_hand(const gk_value *args, gk_range items) {
  float *restrict y = args[0].ptr;
  const float *restrict x = args[1].ptr;
  const grid g = *(const grid *)args[2].ptr;
  int inner_x = (int)items.extent[0], inner_y = (int)items.extent[1], inner_z = (int)items.extent[2];
  for (int k = 0; k < inner_z; ++k)
    for (int j = 0; j < inner_y; ++j)
      for (int i = 0; i < inner_x; ++i) {
        int at = (k + 1) * g.plane + (j + 1) * g.nx + i + 1;
        y[at] = g.center * x[at] + g.side * (x[at - 1] + x[at + 1] + x[at - g.nx] + x[at + g.nx] + x[at - g.plane] +
                                             x[at + g.plane]);
      }
}

/* The compiler may not reorder this sum, unless it is told so as below. */
static void dot_by_hand(const gk_value *args, gk_range items) {
  const float *y = args[0].ptr, *x = args[1].ptr;
  float total = 0;
  for (size_t i = items.begin; i < items.end; ++i) total += y[i] * x[i];
  *(float *)args[2].ptr += total;
}

static void dot_by_simd(const gk_value *args, gk_range items) {
  const float *y = args[0].ptr, *x = args[1].ptr;
  float total = 0;
#if defined(_OPENMP)
#pragma omp simd reduction(+ : total)
#endif
  for (size_t i = items.begin; i < items.end; ++i) total += y[i] * x[i];
  *(float *)args[2].ptr += total;
}

static float x[ALL], y[ALL], results[2][ALL], totals[2];
static grid box = {NX, NX * NY, 6.0f, -1.0f};

static const struct arm {
  const char *name;
  const gk_kernel *kernel;
  gk_host_kernel by_hand;
  gk_range items;
  enum { AXPY, STENCIL, BOX, DOT, ROWS } arguments;
} arms[] = {
  {"axpy", &axpy, axpy_by_hand, {0, ALL, {ALL, 1, 1}}, AXPY},
  {"axpy, 100 items", &axpy, axpy_by_hand, {7, 107, {ALL, 1, 1}}, AXPY},
  {"5-point stencil, 2-D", &stencil, stencil_by_hand, {0, 64 * 338, {64, 338, 1}}, STENCIL},
  {"7-point stencil, 3-D", &stencil_of_box, box_by_hand, {0, 64 * 32 * 8, {64, 32, 8}}, BOX},
  {"dot, plain loop", &dot, dot_by_hand, {0, ALL, {ALL, 1, 1}}, DOT},
  {"dot, omp simd", &dot, dot_by_simd, {0, ALL, {ALL, 1, 1}}, DOT},
  {"dot, rows of 66", &dot_of_rows, dot_by_simd, {0, ALL, {NX, ALL / NX, 1}}, ROWS},
};

static void fill_args(gk_value *args, const struct arm *arm, int side) {
  args[0].ptr = arm->arguments >= DOT ? x : y; /* the same memory for both sides: where it lies makes a difference */
  args[1].ptr = x;
  switch (arm->arguments) {
  case AXPY: args[2].f32 = 1e-3f; break;
  case STENCIL: args[2].i32 = NX; break;
  case BOX: args[2].ptr = &box; break;
  default: args[2].ptr = &totals[side];
  }
  args[3].i32 = NX;
}

typedef struct side {
  const struct arm *arm;
  int number; /* 0: the kernel, 1: by hand */
} side;

static bool run_side(void *with, uint64_t times, bench_took *took) {
  const side *at = with;
  const gk_host_kernel volatile call = at->number ? at->arm->by_hand : at->arm->kernel->host; /* isn't inlined here */
  gk_value args[4];
  fill_args(args, at->arm, at->number);
  double begin = bench_thread_now();
  for (uint64_t k = 0; k < times; ++k) call(args, at->arm->items);
  took->all += (bench_thread_now() - begin) / (double)(at->arm->items.end - at->arm->items.begin);
  return true;
}

/* Once each, from the same memory. */
static bool same_results(void *with, uint64_t times, bench_took *took) {
  const struct arm *arm = ((const side *)with)->arm;
  for (int number = 0; number < 2; ++number) {
    bench_took ignored = {0};
    memset(y, 0, sizeof y);
    totals[number] = 0;
    run_side(&(side){arm, number}, 1, &ignored);
    memcpy(results[number], y, sizeof y);
  }
  bool same = fabsf(totals[0] - totals[1]) <= 1e-3f * fabsf(totals[1]), any = totals[0] != 0;
  for (int k = 0; k < ALL; ++k) {
    any = any || results[0][k] != 0;
    same = same && fabsf(results[0][k] - results[1][k]) <= 1e-3f * fabsf(results[1][k]) + 1e-4f;
  }
  bool timed = run_side(with, times, took);
  return same && any && timed;
}

int main(int argc, char **argv) {
  bench_begin(argc, argv, "kernel_host");
  cpu_floor();
  for (int k = 0; k < ALL; ++k) x[k] = (float)((k * 37) % 101) / 101.0f;
  for (size_t k = 0; k < GK_COUNT(arms); ++k) {
    side sides[2] = {{&arms[k], 0}, {&arms[k], 1}};
    bench_measure(&(bench_table){"K", arms[k].name, "does a kernel cost more than the loop written by hand, per item?",
      "ns",
      .arms = {{"kernel", same_results, &sides[0], 0, 0}, {"by hand", run_side, &sides[1], 0, 0}},
      .ratios = {{"kernel against by hand", "kernel", {"by hand"}, 1.05}}});
  }
  return bench_end();
}
