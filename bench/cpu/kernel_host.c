/* Does GK_KERNEL cost anything on the host (table K)? Each kernel is compared with loops by hand for the same range, on
 * one thread and in cache, and so are the results. The time is the thread's processor time. This command builds it with
 * another compiler, without the library:
 * cc -O3 -falign-loops=64 -D_GNU_SOURCE -fopenmp -Iinclude -I. bench/cpu/kernel_host.c bench/harness/harness.c \
 *   bench/harness/report.c bench/harness/machine.c bench/harness/apart.c bench/harness/cpu_floor.c -lm */
#include "bench/harness/cpu_floor.h"
#include "bench/harness/harness.h"
#include "gk_kernel.h"

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

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

#if defined(_OPENMP)
#define SIMD(clauses) _Pragma(TEXT_OF(omp simd clauses))
#define TEXT_OF(...) #__VA_ARGS__
#else
#define SIMD(clauses)
#endif

/* Each loop twice: plain, and with a pragma that its passes are independent. */
#define MAKE_AXPY(name, hint) \
  static void name(const gk_value *args, gk_range items) { \
    float *y = args[0].ptr, a = args[2].f32; \
    const float *restrict x = args[1].ptr; \
    hint for (size_t i = items.begin; i < items.end; ++i) y[i] += a * x[i]; \
  }
MAKE_AXPY(axpy_plain, )
MAKE_AXPY(axpy_simd, SIMD())

#define MAKE_STENCIL(name, hint) \
  static void name(const gk_value *args, gk_range items) { \
    float *restrict y = args[0].ptr; \
    const float *restrict x = args[1].ptr; \
    int nx = args[2].i32, inner_x = (int)items.extent[0], inner_y = (int)items.extent[1]; \
    for (int j = 0; j < inner_y; ++j) \
      hint for (int i = 0; i < inner_x; ++i) { \
        int at = (j + 1) * nx + i + 1; \
        y[at] = 4.0f * x[at] - x[at - 1] - x[at + 1] - x[at - nx] - x[at + nx]; \
      } \
  }
MAKE_STENCIL(stencil_plain, )
MAKE_STENCIL(stencil_simd, SIMD())

#define MAKE_BOX(name, hint) \
  static void name(const gk_value *args, gk_range items) { \
    float *restrict y = args[0].ptr; \
    const float *restrict x = args[1].ptr; \
    const grid g = *(const grid *)args[2].ptr; \
    int inner_x = (int)items.extent[0], inner_y = (int)items.extent[1], inner_z = (int)items.extent[2]; \
    for (int k = 0; k < inner_z; ++k) \
      for (int j = 0; j < inner_y; ++j) \
        hint for (int i = 0; i < inner_x; ++i) { \
          int at = (k + 1) * g.plane + (j + 1) * g.nx + i + 1; \
          y[at] = g.center * x[at] + g.side * (x[at - 1] + x[at + 1] + x[at - g.nx] + x[at + g.nx] + \
                                               x[at - g.plane] + x[at + g.plane]); \
        } \
  }
MAKE_BOX(box_plain, )
MAKE_BOX(box_simd, SIMD())

/* The compiler may not reorder a plain sum, so it adds item after item. */
#define MAKE_DOT(name, hint) \
  static void name(const gk_value *args, gk_range items) { \
    const float *y = args[0].ptr, *x = args[1].ptr; \
    float total = 0; \
    hint for (size_t i = items.begin; i < items.end; ++i) total += y[i] * x[i]; \
    *(float *)args[2].ptr += total; \
  }
MAKE_DOT(dot_plain, )
MAKE_DOT(dot_simd, SIMD(reduction(+ : total)))

#define MAKE_ROWS(name, hint) \
  static void name(const gk_value *args, gk_range items) { \
    const float *y = args[0].ptr, *x = args[1].ptr; \
    int nx = args[3].i32, inner_x = (int)items.extent[0], inner_y = (int)items.extent[1]; \
    float total = 0; \
    for (int j = 0; j < inner_y; ++j) \
      hint for (int i = 0; i < inner_x; ++i) total += y[j * nx + i] * x[j * nx + i]; \
    *(float *)args[2].ptr += total; \
  }
MAKE_ROWS(rows_plain, )
MAKE_ROWS(rows_simd, SIMD(reduction(+ : total)))

enum { SUMS = 32 }; /* side by side; one more is for the rest of a row */
static void add_products(float sums[SUMS + 1], const float *y, const float *x, size_t items) {
  size_t i = 0;
  for (; i + SUMS <= items; i += SUMS)
    for (size_t k = 0; k < SUMS; ++k) sums[k] += y[i + k] * x[i + k];
  for (; i < items; ++i) sums[SUMS] += y[i] * x[i];
}

static void add_sums(float *total, const float sums[SUMS + 1]) {
  for (int k = 0; k <= SUMS; ++k) *total += sums[k];
}

static void dot_sums(const gk_value *args, gk_range items) {
  const float *y = args[0].ptr, *x = args[1].ptr;
  float sums[SUMS + 1] = {0};
  add_products(sums, y + items.begin, x + items.begin, items.end - items.begin);
  add_sums(args[2].ptr, sums);
}

static void rows_sums(const gk_value *args, gk_range items) {
  const float *y = args[0].ptr, *x = args[1].ptr;
  float sums[SUMS + 1] = {0};
  for (int j = 0; j < (int)items.extent[1]; ++j)
    add_products(sums, y + j * args[3].i32, x + j * args[3].i32, items.extent[0]);
  add_sums(args[2].ptr, sums);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

enum { BY_HAND = 3 }; /* ways, at most */
static _Alignas(256) float x[ALL], y[ALL]; /* like gk's memory; else the linker chooses */
static float wanted[ALL], totals[2];
static grid box = {NX, NX * NY, 6.0f, -1.0f};
static const char *const plain = "by hand, a plain loop", *const simd = "by hand, omp simd",
                  *const sums = "by hand, 32 sums";

static const struct table {
  const char *name;
  const gk_kernel *kernel;
  gk_host_kernel by_hand[BY_HAND]; /* plain, simd, sums */
  gk_range items;
  enum { AXPY, STENCIL, BOX, DOT, ROWS } arguments;
} tables[] = {
  {"axpy", &axpy, {axpy_plain, axpy_simd}, {0, ALL, {ALL, 1, 1}}, AXPY},
  {"axpy, 100 items", &axpy, {axpy_plain, axpy_simd}, {7, 107, {ALL, 1, 1}}, AXPY},
  {"5-point stencil, 2-D", &stencil, {stencil_plain, stencil_simd}, {0, 64 * 338, {64, 338, 1}}, STENCIL},
  {"7-point stencil, 3-D", &stencil_of_box, {box_plain, box_simd}, {0, 64 * 32 * 8, {64, 32, 8}}, BOX},
  {"dot", &dot, {dot_plain, dot_simd, dot_sums}, {0, ALL, {ALL, 1, 1}}, DOT},
  {"dot, rows of 66", &dot_of_rows, {rows_plain, rows_simd, rows_sums}, {0, ALL, {NX, ALL / NX, 1}}, ROWS},
};

static void fill_args(gk_value *args, const struct table *table, float *total) {
  args[0].ptr = table->arguments >= DOT ? x : y; /* the same memory for all, since its address makes a difference */
  args[1].ptr = x;
  switch (table->arguments) {
  case AXPY: args[2].f32 = 1e-3f; break;
  case STENCIL: args[2].i32 = NX; break;
  case BOX: args[2].ptr = &box; break;
  default: args[2].ptr = total;
  }
  args[3].i32 = NX;
}

typedef struct way {
  const struct table *table;
  gk_host_kernel run;
} way;

static void run_once(const struct table *table, gk_host_kernel run, float *total) {
  gk_value args[4];
  fill_args(args, table, total);
  memset(y, 0, sizeof y);
  *total = 0;
  run(args, table->items);
}

static bool is_near(float got, float wants, float absolute) {
  return fabsf(got - wants) <= 1e-3f * fabsf(wants) + absolute;
}

/* Compares the results of this way with those of the plain loop, in the same memory. */
static bool is_right(const way *at) {
  run_once(at->table, at->table->by_hand[0], &totals[0]);
  memcpy(wanted, y, sizeof y);
  run_once(at->table, at->run, &totals[1]);
  bool any = totals[0] != 0, same = is_near(totals[1], totals[0], 0);
  for (int k = 0; k < ALL; ++k) {
    any = any || wanted[k] != 0;
    same = same && is_near(y[k], wanted[k], 1e-4f);
  }
  return any && same;
}

static bool run_way(void *with, uint64_t times, bench_took *took) {
  const way *at = with;
  const gk_host_kernel volatile call = at->run; /* so that it isn't inlined here */
  const bool right = is_right(at);
  gk_value args[4];
  fill_args(args, at->table, &totals[1]);
  double begin = bench_thread_now();
  for (uint64_t k = 0; k < times; ++k) call(args, at->table->items);
  took->all += (bench_thread_now() - begin) / (double)(at->table->items.end - at->table->items.begin);
  return right;
}

int main(int argc, char **argv) {
  bench_begin(argc, argv, "kernel_host");
  bench_cpu_floor();
  for (int k = 0; k < ALL; ++k) x[k] = (float)((k * 37) % 101) / 101.0f;
  for (size_t k = 0; k < GK_COUNT(tables); ++k) {
    const struct table *at = &tables[k];
    way ways[1 + BY_HAND] = {{at, at->kernel->host}};
    for (int hand = 0; hand < BY_HAND; ++hand) ways[1 + hand] = (way){at, at->by_hand[hand]};
    bench_table table = {"K", at->name, "does a kernel cost more than the loop written by hand, per item?", "ns",
      .variants = {{"kernel", run_way, &ways[0]}, {plain, run_way, &ways[1]}, {simd, run_way, &ways[2]}},
      .ratios = {{"kernel against the better by hand", "kernel", {plain, simd}, 1.05}}};
    if (at->by_hand[2]) {
      table.variants[3] = (bench_variant){sums, run_way, &ways[3]};
      table.ratios[0].against[2] = sums;
    }
    bench_measure(&table);
  }
  return bench_end();
}
