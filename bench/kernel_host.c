/* Does GK_KERNEL cost anything on the host? Each kernel against the loop that one would write by hand, for the same
 * range, one thread, in cache; the two take turns, and what they computed is compared. Time is the thread's own.
 * For other compilers build it by hand; it needs only headers: cc -O3 -fopenmp -Iinclude bench/kernel_host.c -lm */
#include "gk_kernel.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { NX = 66, NY = 34, NZ = 10, ALL = NX * NY * NZ, ROUNDS = 41 };

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

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
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

static double median(double *values) {
  qsort(values, ROUNDS, sizeof *values, compare);
  return values[ROUNDS / 2];
}

/* Medians: the time of a call of each side in seconds, and their ratio, from pairs. False: the results differ. */
static bool measure(const struct arm *arm, double *medians) {
  static double times[3][ROUNDS];
  const gk_host_kernel volatile sides[2] = {arm->kernel->host, arm->by_hand}; /* neither is inlined into this loop */
  gk_value args[2][4];
  int repeat = (int)(2000000 / (arm->items.end - arm->items.begin)) + 1;
  for (int side = 0; side < 2; ++side) {
    fill_args(args[side], arm, side);
    memset(y, 0, sizeof y);
    totals[side] = 0;
    sides[side](args[side], arm->items);
    memcpy(results[side], y, sizeof y);
  }
  bool same = fabsf(totals[0] - totals[1]) <= 1e-3f * fabsf(totals[1]), any = totals[0] != 0;
  for (int k = 0; k < ALL; ++k) {
    any = any || results[0][k] != 0;
    same = same && fabsf(results[0][k] - results[1][k]) <= 1e-3f * fabsf(results[1][k]) + 1e-4f;
  }
  for (int round = 0; round < ROUNDS; ++round)
    for (int turn = 0; turn < 2; ++turn) {
      int side = (turn + round) % 2;
      double begin = seconds();
      for (int k = 0; k < repeat; ++k) sides[side](args[side], arm->items);
      times[side][round] = (seconds() - begin) / repeat;
    }
  for (int round = 0; round < ROUNDS; ++round) times[2][round] = times[0][round] / times[1][round];
  for (int side = 0; side < 3; ++side) medians[side] = median(times[side]);
  return same && any;
}

int main(void) {
  int wrong = 0;
  for (int k = 0; k < ALL; ++k) x[k] = (float)((k * 37) % 101) / 101.0f;
  printf("%-24s %12s %12s %8s   compiled by %s\n", "ns per item (median)", "kernel", "by hand", "ratio", __VERSION__);
  for (size_t k = 0; k < GK_COUNT(arms); ++k) {
    double medians[3], items = (double)(arms[k].items.end - arms[k].items.begin);
    bool same = measure(&arms[k], medians);
    printf("%-24s %12.4f %12.4f %8.2f%s\n", arms[k].name, medians[0] / items * 1e9, medians[1] / items * 1e9,
           medians[2], same ? "" : "   WRONG RESULT");
    wrong += !same;
  }
  return wrong != 0;
}
