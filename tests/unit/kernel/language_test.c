/* Kernels on the host: the macros of the common language, over any range of items. */
#include "unit/support/test.h"
#include <limits.h>
#include <pthread.h>
#include "kernels/language.h"

#define ARGS(...) ((const gk_value[]){__VA_ARGS__})
#define PTR(p) {.ptr = (p)}

static void run(const gk_kernel *kernel, const gk_value *args, size_t items) {
  kernel->host(args, (gk_range){0, items, {(uint32_t)items, 1, 1}});
}

/* ---- the language ------------------------------------------------------------------------------------------------ */

TEST(test_types) {
  double y[2] = {0};
  run(&types, ARGS(PTR(y), {.i32 = 3}, {.u32 = 4000000000u}, {.i64 = -5000000000}, {.f32 = 0.5f}, {.f64 = 0.25}), 2);
  assert_true(y[0] == -999999996.25 && y[1] == y[0]);
}

TEST(test_casts) {
  int y[2];
  float x[2] = {2.75f, 5.25f};
  run(&casts, ARGS(PTR(y), PTR(x)), 2);
  assert_int_equal(y[0], -2 + 10 + 4 + 2 + 1);
  assert_int_equal(y[1], -5 + 10 + 10 + 5 + 1);
  float f;
  run(&implicit, ARGS(PTR(&f)), 1);
  assert_true(f == 10.0f);
}

TEST(test_numbers) {
  double y;
  run(&numbers, ARGS(PTR(&y)), 1);
  assert_true(fabs(y - 5000000269.001001) < 1e-5);
}

TEST(test_statements) {
  int y[6] = {0, 0, 0, -77, 0, 0};
  run(&statements, ARGS(PTR(y)), 6); /* 1 + 3 + 5 + 7 = 16, then 316, then 300 */
  const int wanted[6] = {9, 2602, 2602, -77, -598, -598};
  assert_memory_equal(y, wanted, sizeof y);
}

static const frame some_frame = {{1, 2, 3}, {{0, 0, 0}, {10, 20, 30}}, 4, {0.5f, 0.25f, 0.125f}};

TEST(test_structs) {
  v3 x[2] = {{0, 0, 0}, {1, 1, 1}};
  frame y = some_frame;
  float z = 0;
  run(&structs, ARGS(PTR(x), PTR(&y), PTR(&z)), 2);
  assert_true(x[0].x == 11 && x[0].y == 2.125f && x[0].z == 3 && x[1].x == 12 && x[1].z == 4 && z == 7);
}

TEST(test_arrays) {
  float y[3];
  run(&arrays, ARGS(PTR(y)), 3);
  assert_true(y[0] == 13 && y[1] == 12 && y[2] == 10);
}

TEST(test_struct_by_value) {
  float y[2];
  frame f = some_frame;
  run(&by_value, ARGS(PTR(y), PTR(&f), {.i32 = 3}), 2);
  assert_true(y[0] == 12.875f && y[1] == 32.875f);
}

TEST(test_preprocessor) {
  float y[2];
  int n;
  run(&preprocessor, ARGS(PTR(y)), 2);
  run(&uses_inside, ARGS(PTR(&n)), 1);
  assert_true(y[0] == 72.5f && y[1] == 73.5f && n == 1000);
}

TEST(test_functions) {
  float x = 0.75f, y[16];
  run(&functions, ARGS(PTR(y), PTR(&x)), 1);
  const double wanted[16] = {1.6160254, 1.25, 2.5, 1, 1.8293179, 0.421875, 2.3449241, 0.6351490, 2.2142974,
                             2.4980915, 1.2667553, -2, 6.75, 1, 1065353216, 2.117};
  for (int k = 0; k < 16; ++k)
    if (fabs(y[k] - wanted[k]) > 1e-6 * fabs(wanted[k]) + 1e-7) fail_msg("function line %d: %.9g", k, y[k]);
  double d[1] = {4};
  run(&doubles, ARGS(PTR(d)), 1);
  assert_true(d[0] == 2 + 4 + 1 + 4);
}

TEST(test_names) {
  sample out[2];
  float x[2] = {1.5f, 2.5f};
  int n = 5;
  run(&names, ARGS(PTR(out), PTR(x), {.f32 = 1}, PTR(&n)), 2);
  assert_true(out[1].length == 3.5f && out[1].texture == 2 && n == 7);
}

TEST(test_our_names) {
  int out[2], in[2] = {10, 20}, item = 1, at[2] = {5, 6}, atomic = 0;
  frame f = some_frame;
  run(&our_names, ARGS(PTR(out), PTR(in), PTR(&item), {.i32 = 3}, PTR(at), PTR(&f), PTR(&atomic)), 2);
  assert_true(out[0] == 17 && out[1] == 27 && item == 3 && at[0] == 6 && at[1] == 7 && atomic == 4);
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

/* Each item exactly once, however a range is cut; numbers of rows and columns that are no multiples of anything. */
TEST(test_parts_of_a_plane) {
  enum { nx = 37, ny = 5, all = nx * ny };
  for (size_t step = 1; step <= all; step += step < 80 ? 1 : 7) {
    int y[all], count = 0;
    for (int k = 0; k < all; ++k) y[k] = -1;
    for (size_t at = 0; at < all; at += step) {
      size_t end = at + step < all ? at + step : all;
      int before = count;
      plane.host(ARGS(PTR(y), {.i32 = nx}, PTR(&count)), (gk_range){at, end, {nx, ny, 1}});
      assert_int_equal(count - before, end - at);
    }
    for (int k = 0; k < all; ++k) assert_int_equal(y[k], 1000 * (k / nx) + k % nx);
  }
}

/* Rows without a vector of sums, with one, with two and a rest. */
TEST(test_parts_of_a_box) {
  enum { ny = 4, nz = 5, most = 19 };
  static const int widths[] = {3, 8, most};
  for (size_t w = 0; w < GK_COUNT(widths); ++w) {
    const int nx = widths[w];
    const size_t all = (size_t)nx * ny * nz;
    for (size_t step = 1; step <= all; ++step) {
      int y[most * ny * nz] = {0}, n = 0;
      for (size_t at = 0; at < all; at += step)
        box.host(ARGS(PTR(y), {.i32 = nx}, {.i32 = ny}, PTR(&n)),
                 (gk_range){at, at + step < all ? at + step : all, {(uint32_t)nx, ny, nz}});
      for (int k = 0; k < (int)all; ++k)
        assert_int_equal(y[k], k % nx == 1 ? 0 : 10000 * (k / nx / ny) + 100 * (k / nx % ny) + k % nx);
      assert_int_equal(n, (nx - 1) * ny * (0 + 1 + 2 + 3 + 4));
    }
  }
}

TEST(test_no_items) {
  int y = 7, n = 3;
  plane.host(ARGS(PTR(&y), {.i32 = 1}, PTR(&n)), (gk_range){0, 0, {0, 0, 0}});
  box.host(ARGS(PTR(&y), {.i32 = 1}, {.i32 = 1}, PTR(&n)), (gk_range){5, 5, {0, 3, 0}});
  run(&statements, ARGS(PTR(&y)), 0);
  assert_true(y == 7 && n == 3);
}

GK_KERNEL(spans, (sum(int, n), out(int, last))) {
  n[0] += 1;
  last[0] = i;
}

GK_KERNEL_2D(far_rows, (out(int, at))) {
  at[0] = i;
  at[1] = j;
}

TEST(test_last_items) {
  int n = 0, last = 0, at[2];
  spans.host(ARGS(PTR(&n), PTR(&last)), (gk_range){INT32_MAX - 70, INT32_MAX, {INT32_MAX, 1, 1}});
  assert_true(n == 70 && last == INT32_MAX - 1);
  far_rows.host(ARGS(PTR(at)), (gk_range){INT32_MAX - 3, INT32_MAX, {1, INT32_MAX, 1}});
  assert_true(at[0] == 0 && at[1] == INT32_MAX - 1);
  far_rows.host(ARGS(PTR(at)), (gk_range){INT32_MAX - 1, INT32_MAX, {46341, 46341, 1}});
  assert_true(at[0] == (INT32_MAX - 1) % 46341 && at[1] == (INT32_MAX - 1) / 46341);
}

/* ---- sums and atomics -------------------------------------------------------------------------------------------- */

TEST(test_sums) {
  enum { n = 1000 };
  float x[n];
  for (int k = 0; k < n; ++k) x[k] = (float)(k % 7);
  for (size_t begin = 0; begin < 70; begin += 23) {
    int a = 1000000, wanted_a = 1000000;
    uint b = 5, wanted_b = 5;
    float c = 0.5f;
    double wanted_c = 0.5, d = 1;
    for (size_t k = begin; k < n; ++k) {
      if (k % 3 == 0) continue;
      wanted_a -= (int)k;
      wanted_b += 2;
      wanted_c += (double)x[k] + (k % 2 == 0);
    }
    sums.host(ARGS(PTR(&a), PTR(&b), PTR(&c), PTR(x)), (gk_range){begin, n, {n, 1, 1}});
    sum_of_doubles.host(ARGS(PTR(&d)), (gk_range){begin, n, {n, 1, 1}});
    assert_int_equal(a, wanted_a);
    assert_int_equal(b, wanted_b);
    assert_true((double)c == wanted_c); /* all are small multiples of a half */
    assert_true(d == 1 + 0.25 * (double)(n - begin));
  }
}

TEST(test_atomics) {
  enum { n = 50 };
  int a[7] = {0}, order[n];
  uint b[6] = {0, 99, 0, 0, 0, 0};
  counter c[2] = {{0, 0, 0}, {0, 0, 0}};
  float d = 0;
  run(&atomics, ARGS(PTR(a), PTR(b), PTR(c), PTR(&d), PTR(order)), n);
  const int wanted_a[7] = {n, 1 - n, n - 1, 255, 7, 9, n};
  const uint wanted_b[6] = {2 * n, 0, 0x3f800000, 4, 7, 9};
  assert_memory_equal(a, wanted_a, sizeof a);
  assert_memory_equal(b, wanted_b, sizeof b);
  assert_true(c[0].n == n / 2 && c[1].n == n / 2 && c[0].most == n - 1 && c[1].weight == n / 2.0f && d == n);
  for (int k = 0; k < n; ++k) assert_int_equal(order[k], k); /* each answers what was there before */
}

TEST(test_loads) {
  enum { n = 50 };
  int a[2] = {0, 5}, seen[n];
  uint b[2] = {8, 0x80000000};
  counter c[2] = {{3, 7, 0.25f}, {0, 1, 0}};
  float d = -0.5f;
  double e[2] = {-1, 1e300}, y[2] = {0};
  run(&loads, ARGS(PTR(a), PTR(b), PTR(c), PTR(&d), PTR(seen)), n);
  run(&load_of_double, ARGS(PTR(e), PTR(y)), 2);
  for (int k = 0; k < n; ++k) assert_int_equal(seen[k], 5 + k);
  assert_true(a[0] == 5 + n - 1 && a[1] == 5 && b[0] == 8 && b[1] == 0x80000000 && d == -0.5f);
  assert_true(c[0].n == 3 && c[0].most == 7 && c[0].weight == 0.25f);
  assert_true(c[1].n == 3 * n && c[1].most == 0x80000009 && c[1].weight == -0.25f * n);
  assert_true(e[0] == -1 && e[1] == 1e300 && y[0] == -0.5 && y[1] == 1e300);
}

typedef struct sight { int a[2], seen; } sight;

static void *run_look(void *with) {
  sight *s = with;
  run(&look, ARGS(PTR(s->a), PTR(&s->seen), {.i32 = INT_MAX}), 1);
  return NULL;
}

/* An item sees changes while it runs: no compiler may read once, before the loop. */
TEST(test_loads_see_others) {
  sight s = {{0, 0}, 0};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run_look, &s), 0);
  while (__atomic_load_n(&s.a[1], __ATOMIC_RELAXED) == 0) {}
  __atomic_store_n(&s.a[0], 7, __ATOMIC_RELAXED);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(s.seen, 7);
}

/* ---- the constants ----------------------------------------------------------------------------------------------- */

static void check_param(const gk_param *p, const char *name, const char *element, size_t bytes, size_t alignment,
                        gk_type type, gk_access access) {
  assert_string_equal(p->name, name);
  assert_string_equal(p->element, element);
  assert_int_equal(p->element_bytes, bytes);
  assert_int_equal(p->element_alignment, alignment);
  assert_int_equal(p->type, type);
  assert_int_equal(p->access, access);
}

TEST(test_parameter_tables) {
  const gk_param *p = types.params;
  assert_int_equal(types.param_count, 6);
  check_param(&p[0], "y", "double", 8, 8, GK_PTR, GK_ACCESS_OUT);
  check_param(&p[1], "a", "int", 4, 4, GK_I32, GK_ACCESS_VALUE);
  check_param(&p[2], "b", "uint", 4, 4, GK_U32, GK_ACCESS_VALUE);
  check_param(&p[3], "c", "int64_t", 8, 8, GK_I64, GK_ACCESS_VALUE);
  check_param(&p[4], "d", "float", 4, 4, GK_F32, GK_ACCESS_VALUE);
  check_param(&p[5], "e", "double", 8, 8, GK_F64, GK_ACCESS_VALUE);
  check_param(&structs.params[0], "x", "v3", 12, 4, GK_PTR, GK_ACCESS_INOUT);
  check_param(&structs.params[1], "y", "frame", 52, 4, GK_PTR, GK_ACCESS_IN);
  check_param(&structs.params[2], "z", "float", 4, 4, GK_PTR, GK_ACCESS_SUM);
  check_param(&by_value.params[1], "f", "frame", 52, 4, GK_BYTES, GK_ACCESS_VALUE);
  check_param(&atomics.params[2], "c", "counter", 12, 4, GK_PTR, GK_ACCESS_ATOMIC);
}

TEST(test_kernel_constants) {
  assert_string_equal(box.name, "box");
  assert_int_equal(box.dimensions, 3);
  assert_int_equal(plane.dimensions, 2);
  assert_int_equal(sums.dimensions, 1);
  assert_true(!box.cuda && !box.hip && !box.vulkan && !box.reserved[0] && !box.reserved[1]);
  assert_non_null(strstr(box.source->file, "language.h"));
  assert_non_null(strstr(box.source->text, "GK_KERNEL_3D(box,"));
  assert_int_equal(box.source->use_count, 0);
}

GK_KERNEL(sixteen, (out(int, y), value(int, b), value(int, c), value(int, d), value(int, e), value(int, f),
                    value(int, g), value(int, h), value(int, l), value(int, m), value(int, n), value(int, o),
                    value(int, p), value(int, q), value(int, r), value(int, s))) {
  y[i] = b + c + d + e + f + g + h + l + m + n + o + p + q + r + 100 * s;
}

TEST(test_sixteen_parameters) {
  gk_value args[16];
  int y = 0;
  args[0].ptr = &y;
  for (int k = 1; k < 16; ++k) args[k].i32 = k;
  run(&sixteen, args, 1);
  assert_int_equal(sixteen.param_count, GK_MAX_ARGS);
  assert_int_equal(y, 14 * 15 / 2 + 1500);
}

int main(void) { return run_all_tests(); }
