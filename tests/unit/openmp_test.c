/* The OpenMP backend: devices, memory, single tasks. Sections and loops are in openmp_sections_test.c. */
#include "openmp_world.h"
#include "gk_kernel.h"
#include <dirent.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const int thread_counts[] = {1, 2, 3, 8};
static const costs all_costs[] = {AS_MEASURED, SHARE_ALL, SHARE_NOTHING};

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static gk_result open_with(gki_openmp_device *device, const gk_device_desc *desc) {
  *device = (gki_openmp_device){0};
  gki_begin();
  gk_result result = gki_openmp.open(device, desc);
  if (result != GK_OK) gki_openmp.close(device);
  return result;
}

static int threads_with(const char *environment, int threads) {
  gki_openmp_device device;
  if (environment) setenv("OMP_NUM_THREADS", environment, 1);
  else unsetenv("OMP_NUM_THREADS");
  gk_result result = open_with(&device, &(gk_device_desc){.backend = "openmp", .threads = threads});
  unsetenv("OMP_NUM_THREADS");
  if (result != GK_OK) return -1;
  gk_device_info info = {0};
  gki_openmp.describe(&device, &info);
  gki_openmp.close(&device);
  return info.threads;
}

static void test_threads(void **state) {
  (void)state;
  assert_int_equal(threads_with(NULL, 0), omp_get_num_procs());
  assert_int_equal(threads_with("", 0), omp_get_num_procs());
  assert_int_equal(threads_with("3", 0), 3);
  assert_int_equal(threads_with("4,2", 0), 4);
  assert_int_equal(threads_with(" 5 ", 0), 5);
  assert_int_equal(threads_with("3", 7), 7);
  assert_int_equal(threads_with(NULL, 1024), 1024);
  static const char *const useless[] = {"many", "0", "-2", "2x", "1025", "99999999999999999999"};
  for (size_t k = 0; k < GK_COUNT(useless); ++k) {
    assert_int_equal(threads_with(useless[k], 0), -1);
    assert_says("OMP_NUM_THREADS");
    assert_says(useless[k]);
    assert_int_equal(threads_with(useless[k], 2), 2);
  }
}

static void test_refused_devices(void **state) {
  (void)state;
  gki_openmp_device device;
  assert_int_equal(open_with(&device, &(gk_device_desc){.threads = -1}), GK_ERROR_INVALID);
  assert_says("-1 threads");
  assert_int_equal(open_with(&device, &(gk_device_desc){.threads = 1025}), GK_ERROR_INVALID);
  assert_says("1025 threads");
  assert_int_equal(open_with(&device, &(gk_device_desc){.ordinal = 1}), GK_ERROR_NO_DEVICE);
  assert_says("ordinal 0");
  gk_extension extension = {.id = 77, .bytes = sizeof extension};
  assert_int_equal(open_with(&device, &(gk_device_desc){.next = &extension}), GK_ERROR_INVALID);
  assert_says("77");
}

static void test_describe(void **state) {
  (void)state;
  static const char *const constructs[] = {
    "KERNEL", "COPY",       "FILL",     "CALL",    "LIST", "DO_WHILE", "WHILE",  "IF",
    "SWITCH", "CHECKPOINT", "PARALLEL", "SECTION", "SUM",  "ALWAYS",   "CANCEL", "LAUNCH_ON",
  };
  world w;
  world_open(&w, 3);
  gk_device_info info = {0};
  gki_openmp.describe(&w.device, &info);
  assert_non_null(strstr(info.name, "3 threads"));
  assert_non_null(strstr(info.driver, "OpenMP"));
  for (size_t k = 0; k < GK_COUNT(constructs); ++k) {
    int found = 0;
    for (size_t c = 0; c < info.capability_count; ++c) {
      if (strcmp(info.capabilities[c].construct, constructs[k]) != 0) continue;
      ++found;
      assert_true(strlen(info.capabilities[c].why) > 5);
      assert_int_equal(info.capabilities[c].how, strcmp(constructs[k], "LAUNCH_ON") == 0 ? GK_REFUSED : GK_NATIVE);
    }
    assert_int_equal(found, 1);
  }
  gki_openmp.close(&w.device);
}

static void test_memory(void **state) {
  (void)state;
  world w;
  world_open(&w, 2);
  for (size_t bytes = 1; bytes < 3000; bytes += 77) {
    void *memory = NULL;
    assert_int_equal(gki_openmp.alloc(&w.device, bytes, GK_DEVICE_MEMORY, &memory), GK_OK);
    assert_int_equal((uintptr_t)memory % 256, 0);
    memset(memory, 7, bytes);
    assert_ptr_equal(gki_openmp.host_address(&w.device, memory), memory);
    gki_openmp.free(&w.device, memory);
  }
  static const size_t huge[] = {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX / 2, (size_t)1 << 60, (size_t)1 << 50};
  for (size_t k = 0; k < GK_COUNT(huge); ++k) {
    void *memory = &w;
    gki_begin();
    assert_int_equal(gki_openmp.alloc(&w.device, huge[k], GK_HOST_MEMORY, &memory), GK_ERROR_MEMORY);
    assert_null(memory);
    assert_says("bytes");
  }
  char text[] = "abcdefgh", other[9] = "";
  assert_int_equal(gki_openmp.copy(&w.device, GK_TO_DEVICE, other, text, 9), GK_OK);
  assert_string_equal(other, "abcdefgh");
  assert_int_equal(gki_openmp.copy(&w.device, GK_ON_DEVICE, text + 2, text, 6), GK_OK);
  assert_string_equal(text, "ababcdef");
  assert_int_equal(gki_openmp.copy(&w.device, GK_ZERO, text, NULL, 3), GK_OK);
  assert_int_equal(text[2], 0);
  assert_int_equal(text[3], 'b');
  assert_int_equal(gki_openmp.copy(&w.device, GK_TO_HOST, other, text + 3, 6), GK_OK);
  assert_string_equal(other, "bcdef");
  gki_openmp.close(&w.device);
}

static void test_takes(void **state) {
  (void)state;
  assert_false(gki_openmp.takes(&(gk_kernel){.name = "device_only"}));
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

enum { X = 1, Y, N, NY, NZ, COUNT, S, SLOTS };
enum { ITEMS_MAX = 100003 };

static atomic_int other_threads;
static pthread_t worker;

/* By hand, as it wants to see the range: adds one to each item, and each is to be met once. */
static void touch(const gk_value *args, gk_range range) {
  unsigned char *x = args[0].ptr;
  assert_true(range.begin < range.end);
  assert_true(range.end <= (size_t)range.extent[0] * range.extent[1] * range.extent[2]);
  for (size_t i = range.begin; i < range.end; ++i) ++x[i];
  if (!pthread_equal(pthread_self(), worker)) atomic_fetch_add(&other_threads, 1);
}
static const gk_param touch_params[] = {{"x", "uint8_t", 1, 1, GK_PTR, GK_ACCESS_INOUT}};
static const gk_kernel touching = {
  .name = "touching", .params = touch_params, .param_count = 1, .dimensions = 3, .host = touch};

static const gk_slot_desc item_slots[] = {
  GK_BUFFER(X, uint8_t), GK_BUFFER(Y, uint8_t), GK_SCALAR(N, int), GK_SCALAR(NY, uint), GK_SCALAR(NZ, int64_t),
  GK_BUFFER(COUNT, int),
};

static unsigned char bytes[ITEMS_MAX + 1];

static void assert_touched(size_t count) {
  for (size_t k = 0; k <= ITEMS_MAX; ++k)
    if (bytes[k] != (k < count)) fail_msg("item %zu of %zu was touched %d times", k, count, bytes[k]);
}

static void test_every_item_once(void **state) {
  (void)state;
  static const int counts[] = {-5, 0, 1, 2, 3, 63, 64, 65, 127, 128, 129, 1000, 4096, ITEMS_MAX};
  static const gk_task tasks[] = {GK_RUN(touching, N, X)};
  static const gk_list list = GK_LIST(list, tasks, item_slots);
  worker = pthread_self();
  for (size_t t = 0; t < GK_COUNT(thread_counts); ++t)
    for (size_t c = 0; c < GK_COUNT(all_costs); ++c) {
      world w;
      world_begin(&w, &list, thread_counts[t], all_costs[c]);
      bind_ptr(&w, X, bytes);
      atomic_store(&other_threads, 0);
      for (size_t k = 0; k < GK_COUNT(counts); ++k) {
        memset(bytes, 0, sizeof bytes);
        bind_i32(&w, N, counts[k]);
        assert_runs(&w);
        assert_touched(counts[k] > 0 ? (size_t)counts[k] : 0);
      }
      if (all_costs[c] == SHARE_ALL && thread_counts[t] > 1) assert_true(atomic_load(&other_threads) > 0);
      if (all_costs[c] == SHARE_NOTHING || thread_counts[t] == 1) assert_int_equal(atomic_load(&other_threads), 0);
      world_end(&w);
    }
}

static void test_extents(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_RUN_3D(touching, N, NY, NZ, X)};
  static const gk_list list = GK_LIST(list, tasks, item_slots);
  static const struct { int x; uint32_t y; int64_t z; size_t items; } cases[] = {
    {3, 5, 7, 105},   {1, 1, 1, 1},           {0, 5, 7, 0},  {3, 0, 7, 0},
    {3, 5, -7, 0},    {-1, UINT32_MAX, 1, 0}, {2, 3, 0, 0},  {100, 100, 10, 100000},
    {0, UINT32_MAX, INT64_MAX, 0},
  };
  for (size_t c = 0; c < GK_COUNT(all_costs); ++c) {
    world w;
    world_begin(&w, &list, 2, all_costs[c]);
    bind_ptr(&w, X, bytes);
    for (size_t k = 0; k < GK_COUNT(cases); ++k) {
      memset(bytes, 0, sizeof bytes);
      bind_i32(&w, N, cases[k].x);
      world_bind(&w, NY, (gk_value){.u32 = cases[k].y});
      world_bind(&w, NZ, (gk_value){.i64 = cases[k].z});
      assert_runs(&w);
      assert_touched(cases[k].items);
    }
    world_end(&w);
  }
}

static void test_too_many_items(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_RUN(touching, GK_ONE, X), GK_RUN_3D(touching, N, NY, NZ, X),
                                  GK_RUN(touching, GK_ONE, Y)};
  static const gk_list list = GK_LIST(list, tasks, item_slots);
  world w;
  world_begin(&w, &list, 2, AS_MEASURED);
  bind_ptr(&w, X, bytes);
  bind_ptr(&w, Y, bytes + 1);
  bind_i32(&w, N, INT32_MAX);
  world_bind(&w, NY, (gk_value){.u32 = 2});
  world_bind(&w, NZ, (gk_value){.i64 = 1});
  memset(bytes, 0, sizeof bytes);
  assert_int_equal(world_launch(&w, 0), GK_ERROR_INVALID);
  assert_says("task 1 (touching)");
  assert_says("2147483647");
  assert_int_equal(bytes[0], 1); /* what came before was done, what follows wasn't */
  assert_int_equal(bytes[1], 0);
  world_bind(&w, NZ, (gk_value){.i64 = INT64_MAX});
  assert_int_equal(world_launch(&w, 0), GK_ERROR_INVALID);
  bind_i32(&w, N, 1); /* and the graph is as good as before */
  world_bind(&w, NY, (gk_value){.u32 = 1});
  world_bind(&w, NZ, (gk_value){.i64 = 1});
  assert_runs(&w);
  assert_int_equal(bytes[1], 1);
  world_end(&w);
}

static void test_items_read_when_it_runs(void **state) {
  (void)state;
  static const gk_task tasks[] = {
    GK_FILL(COUNT, GK_ONE, 50),
    {.op = GK_OP_KERNEL, .name = "read", .kernel = &touching, .items = {COUNT}, .args = {X}, .offset = 4},
    GK_RUN(touching, COUNT, Y),
  };
  static const gk_list list = GK_LIST(list, tasks, item_slots);
  world w;
  world_begin(&w, &list, 2, SHARE_ALL);
  static unsigned char y[64];
  int32_t count[2] = {0, 0};
  bind_ptr(&w, X, bytes);
  bind_ptr(&w, Y, y);
  bind_ptr(&w, COUNT, count);
  static const int32_t counts[] = {0, -3, 1, 77, 5000, INT32_MIN};
  for (size_t k = 0; k < GK_COUNT(counts); ++k) {
    memset(bytes, 0, sizeof bytes);
    memset(y, 0, sizeof y);
    count[0] = 0;
    count[1] = counts[k];
    assert_runs(&w);
    assert_touched(counts[k] > 0 ? (size_t)counts[k] : 0);
    assert_int_equal(y[49], 1); /* written by the task before */
    assert_int_equal(y[50], 0);
  }
  world_end(&w);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

GK_SOURCE(openmp_test)
GK_KERNEL(add_all, (in(float, x), sum(float, f), sum(double, d), sum(int, n), sum(uint, u))) {
  f[0] += x[i];
  d[0] += 1.0 / (1.0 + (double)x[i]);
  n[0] += 1 - 2 * (i % 3);
  u[0] += 0x10000001u;
}
GK_SOURCE_END

typedef struct totals { float f; double d; int n; uint32_t u; } totals;
enum { XS = 1, SF, SD, SI, SU, SN, RUNS = 50 };
static const gk_slot_desc sum_slots[] = {GK_BUFFER(XS, float), GK_BUFFER(SF, float), GK_BUFFER(SD, double),
                                         GK_BUFFER(SI, int),   GK_BUFFER(SU, uint),  GK_SCALAR(SN, int)};
static const gk_task sum_tasks[] = {GK_RUN(add_all, SN, XS, SF, SD, SI, SU)};
static const gk_list sum_list = GK_LIST(sum_list, sum_tasks, sum_slots);

static float *numbers(void) {
  static float x[ITEMS_MAX];
  for (int k = 0; k < ITEMS_MAX; ++k) x[k] = 0.1f + (float)(k * 7919 % 1000) * 0.37f;
  return x;
}

static totals sum_up(world *w, int count) {
  totals t = {.f = 0.5f, .d = 0.25, .n = -7, .u = 3};
  bind_ptr(w, XS, numbers());
  bind_ptr(w, SF, &t.f);
  bind_ptr(w, SD, &t.d);
  bind_ptr(w, SI, &t.n);
  bind_ptr(w, SU, &t.u);
  bind_i32(w, SN, count);
  assert_runs(w);
  return t;
}

static void test_sums_are_the_same_bits(void **state) {
  (void)state;
  static const int counts[] = {1, 31, 32, 33, 64, 100, 1000, ITEMS_MAX};
  const float *x = numbers();
  for (size_t t = 0; t < GK_COUNT(thread_counts); ++t)
    for (size_t k = 0; k < GK_COUNT(counts); ++k) {
      totals first = {0};
      for (size_t c = 0; c < GK_COUNT(all_costs); ++c) {
        world w;
        world_begin(&w, &sum_list, thread_counts[t], all_costs[c]);
        for (int run = 0; run < RUNS; ++run) {
          totals now = sum_up(&w, counts[k]);
          if (run == 0 && c == 0) first = now;
          assert_memory_equal(&now.f, &first.f, sizeof now.f);
          assert_memory_equal(&now.d, &first.d, sizeof now.d);
          assert_int_equal(now.n, first.n);
          assert_int_equal(now.u, first.u);
        }
        world_end(&w);
      }
      double f = 0.5, d = 0.25;
      int n = -7;
      for (int i = 0; i < counts[k]; ++i) f += x[i], d += 1.0 / (1.0 + (double)x[i]), n += 1 - 2 * (i % 3);
      assert_true(fabs(first.f / f - 1) < 1e-4);
      assert_true(fabs(first.d / d - 1) < 1e-12);
      assert_int_equal(first.n, n);
      assert_int_equal(first.u, 3 + 0x10000001u * (uint32_t)counts[k]);
    }
}

static void test_sum_of_no_items(void **state) {
  (void)state;
  world w;
  world_begin(&w, &sum_list, 2, SHARE_ALL);
  totals t = sum_up(&w, 0);
  assert_true(t.f == 0.5f && t.d == 0.25 && t.n == -7 && t.u == 3);
  world_end(&w);
}

static void test_sum_of_a_strange_type(void **state) {
  (void)state;
  static const gk_param params[] = {{"total", "short", 2, 2, GK_PTR, GK_ACCESS_SUM}};
  static const gk_kernel strange = {.name = "strange", .params = params, .param_count = 1, .host = touch};
  static const gk_task tasks[] = {GK_RUN(strange, N, X)};
  static const gk_list list = GK_LIST(list, tasks, item_slots);
  world w;
  world_open(&w, 2);
  gki_begin();
  assert_int_equal(world_lower(&w, &list, 0), GK_ERROR_UNSUPPORTED);
  assert_says("task 0 (strange)");
  assert_says("short");
  world_end(&w);
}

/* ---- copies, fills, calls ---------------------------------------------------------------------------------------- */

typedef struct six { char at[6]; } six;
typedef struct block { int a[5]; } block;
enum { TO = 1, FROM, HOW_MANY, BLOCK, WORDS };
static const gk_slot_desc copy_slots[] = {GK_BUFFER(TO, six), GK_BUFFER(FROM, six), GK_SCALAR(HOW_MANY, int),
                                          GK_STRUCT_VALUE(BLOCK, block), GK_BUFFER(WORDS, block)};

static void test_copies(void **state) {
  (void)state;
  static const gk_task tasks[] = {{.op = GK_OP_COPY, .name = "copy", .items = {HOW_MANY}, .args = {TO, FROM},
                                   .offset = 3, .from_offset = 5}};
  static const gk_list list = GK_LIST(list, tasks, copy_slots);
  enum { BYTES = 60000 };
  static char from[BYTES], to[BYTES], expected[BYTES];
  for (size_t c = 0; c < GK_COUNT(all_costs); ++c)
    for (int shift = -200; shift <= 200; shift += 40) { /* in one block: forwards, backwards, onto itself nearly */
      world w;
      world_begin(&w, &list, 3, all_costs[c]);
      for (int count = 0; count < 9000; count = 3 * count + 1) {
        for (int k = 0; k < BYTES; ++k) from[k] = to[k] = (char)(k * 31 % 127);
        memcpy(expected, to, BYTES);
        memcpy(expected + 303, from + 105, 6 * (size_t)count);
        bind_ptr(&w, TO, to + 300);
        bind_ptr(&w, FROM, from + 100);
        bind_i32(&w, HOW_MANY, count);
        assert_runs(&w);
        assert_memory_equal(to, expected, BYTES);
        memcpy(expected, from, BYTES);
        memmove(expected + 303 + shift, expected + 305, 6 * (size_t)count);
        bind_ptr(&w, TO, from + 300 + shift);
        bind_ptr(&w, FROM, from + 300);
        assert_runs(&w);
        assert_memory_equal(from, expected, BYTES);
      }
      world_end(&w);
    }
}

static void test_copy_of_a_struct(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_COPY(WORDS, BLOCK, GK_ONE)};
  static const gk_list list = GK_LIST(list, tasks, copy_slots);
  block to = {{0}}, given = {{1, 2, 3, 4, 5}};
  world w;
  world_begin(&w, &list, 2, AS_MEASURED);
  bind_ptr(&w, WORDS, &to);
  bind_ptr(&w, BLOCK, &given);
  assert_runs(&w);
  assert_memory_equal(&to, &given, sizeof to);
  block elsewhere = {{0}}; /* not said to have changed: the place that common uses in the next launch may be another */
  w.values[BLOCK].ptr = &elsewhere;
  memset(&to, 0, sizeof to);
  assert_runs(&w);
  assert_memory_equal(&to, &given, sizeof to);
  given.a[4] = 6;
  bind_ptr(&w, BLOCK, &given);
  assert_runs(&w);
  assert_int_equal(to.a[4], 6);
  world_end(&w);
}

static void test_fills(void **state) {
  (void)state;
  static const uint32_t patterns[] = {0, 0x01020304u, 0xabababab, 0xffff0000u};
  static unsigned char to[20 * 3000 + 64];
  for (size_t p = 0; p < GK_COUNT(patterns); ++p)
    for (size_t c = 0; c < GK_COUNT(all_costs); ++c) {
      const gk_task tasks[] = {{.op = GK_OP_FILL, .name = "fill", .items = {HOW_MANY}, .args = {WORDS}, .offset = 20,
                                .pattern = patterns[p]}};
      const gk_list list = GK_LIST(list, tasks, copy_slots);
      world w;
      world_begin(&w, &list, 3, all_costs[c]);
      bind_ptr(&w, WORDS, to);
      for (int count = -1; count < 3000; count = 2 * count + 3) {
        memset(to, 0x55, sizeof to);
        bind_i32(&w, HOW_MANY, count);
        assert_runs(&w);
        for (size_t k = 0; k < sizeof to; ++k) {
          bool inside = k >= 20 && k < 20 + 20 * (size_t)(count < 0 ? 0 : count);
          unsigned char byte = ((const unsigned char *)&patterns[p])[k % 4];
          if (to[k] != (inside ? byte : 0x55)) fail_msg("byte %zu of %d elements", k, count);
        }
      }
      world_end(&w);
    }
}

static int called, call_answer;
static gk_result a_call(const gk_value *args, void *native) {
  assert_null(native);
  assert_int_equal(args[1].i32, 42);
  ++*(unsigned char *)args[0].ptr;
  ++called;
  if (call_answer == 2) gk_fail(GK_ERROR_DEVICE, "the solver says no");
  return call_answer ? GK_ERROR_DEVICE : GK_OK;
}

static void test_calls(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_CALL(a_call, X, N), GK_CALL(a_call, Y, N)};
  static const gk_list list = GK_LIST(list, tasks, item_slots);
  world w;
  world_begin(&w, &list, 2, SHARE_ALL);
  unsigned char x = 0, y = 0;
  bind_ptr(&w, X, &x);
  bind_ptr(&w, Y, &y);
  bind_i32(&w, N, 42);
  called = call_answer = 0;
  assert_runs(&w);
  assert_int_equal(x + y, 2);
  call_answer = 1;
  assert_int_equal(world_launch(&w, 0), GK_ERROR_DEVICE);
  assert_says("task 0 (a_call)");
  assert_says("GK_ERROR_DEVICE");
  call_answer = 2;
  assert_int_equal(world_launch(&w, 0), GK_ERROR_DEVICE);
  assert_string_equal(gk_error(), "the solver says no");
  assert_int_equal(called, 4); /* the second call of a failed launch wasn't made */
  world_end(&w);
}

/* ---- rebinding, threads, memory ---------------------------------------------------------------------------------- */

static void test_rebinding(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_RUN(touching, N, X), GK_RUN(touching, N, Y), GK_RUN(touching, GK_ONE, X)};
  static const gk_list list = GK_LIST(list, tasks, item_slots);
  world w;
  world_begin(&w, &list, 2, AS_MEASURED);
  unsigned char a[8] = {0}, b[8] = {0}, c[8] = {0};
  bind_ptr(&w, X, a);
  bind_ptr(&w, Y, b);
  bind_i32(&w, N, 3);
  assert_runs(&w);
  assert_memory_equal(a, "\2\1\1\0\0", 5);
  assert_memory_equal(b, "\1\1\1\0\0", 5);
  bind_ptr(&w, X, c); /* the others stay */
  assert_runs(&w);
  assert_memory_equal(a, "\2\1\1\0\0", 5);
  assert_memory_equal(b, "\2\2\2\0\0", 5);
  assert_memory_equal(c, "\2\1\1\0\0", 5);
  bind_i32(&w, N, 5);
  assert_runs(&w);
  assert_memory_equal(b, "\3\3\3\1\1\0", 6);
  assert_memory_equal(c, "\4\2\2\1\1\0", 6);
  world_end(&w);
}

static int threads_of_process(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

/* In a process of its own: here, other tests have left the runtime's threads behind. */
static void child_small_tasks(void) {
  enum { TASKS = 500 };
  static gk_task tasks[TASKS];
  for (int k = 0; k < TASKS; ++k) tasks[k] = (gk_task)GK_RUN(touching, N, X);
  const gk_list list = GK_LIST(list, tasks, item_slots);
  int before = threads_of_process(); /* a sanitizer may begin one of its own */
  world w;
  world_begin(&w, &list, 8, AS_MEASURED);
  bind_ptr(&w, X, bytes);
  bind_i32(&w, N, 3);
  worker = pthread_self();
  /* Nothing is timed: with sanitizers, on a core that others want, three items may in truth take long enough. */
  for (uint32_t k = 0; k < w.program.op_count; ++k) w.program.ops[k].countdown = UINT16_MAX;
  for (int k = 0; k < 20; ++k) assert_runs(&w);
  assert_true(threads_of_process() - before <= 1);
  assert_int_equal(atomic_load(&other_threads), 0);
  world_end(&w);
}

/* With OMP_THREAD_LIMIT the team is smaller than asked for: the bits must be those of the full team. */
static void child_thread_limit(void) {
  totals few[2];
  int before = threads_of_process();
  for (int k = 0; k < 2; ++k) {
    world w;
    world_begin(&w, &sum_list, 8, k ? SHARE_ALL : SHARE_NOTHING);
    for (int run = 0; run < 5; ++run) few[k] = sum_up(&w, ITEMS_MAX);
    assert_true(threads_of_process() - before <= atoi(getenv("OMP_THREAD_LIMIT")));
    world_end(&w);
  }
  assert_memory_equal(&few[0].f, &few[1].f, sizeof few[0].f);
  assert_memory_equal(&few[0].d, &few[1].d, sizeof few[0].d);
}

static void run_child(const char *what, const char *variable, const char *value) {
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (variable) setenv(variable, value, 1);
    execl("/proc/self/exe", "openmp_test", what, (char *)NULL);
    _exit(127);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_small_tasks_wake_nobody(void **state) {
  (void)state;
  run_child("small", NULL, NULL);
}

static void test_thread_limit(void **state) {
  (void)state;
  run_child("limit", "OMP_THREAD_LIMIT", "1");
  run_child("limit", "OMP_THREAD_LIMIT", "2");
  run_child("limit", "OMP_THREAD_LIMIT", "100");
}

/* One item is a millisecond of work: whatever waking takes here, it is worth it after a few times. */
static void toil(const gk_value *args, gk_range range) {
  touch(args, range);
  for (size_t k = range.begin; k < range.end; ++k)
    for (uint64_t begin = gki_now(); gki_now() - begin < 1000000;) {}
}
static const gk_kernel toiling = {.name = "toiling", .params = touch_params, .param_count = 1, .host = toil};

static void test_large_tasks_are_shared(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_RUN(toiling, N, X)};
  static const gk_list list = GK_LIST(list, tasks, item_slots);
  world w;
  world_begin(&w, &list, 2, AS_MEASURED);
  worker = pthread_self();
  bind_ptr(&w, X, bytes);
  bind_i32(&w, N, 8);
  atomic_store(&other_threads, 0);
  for (int k = 0; k < 100 && !atomic_load(&other_threads); ++k) assert_runs(&w);
  assert_true(atomic_load(&other_threads) > 0);
  char *text = gki_openmp.dump(&w.program, "text");
  assert_non_null(strstr(text, "task 0 (toiling): kernel, 8 items, "));
  free(text);
  assert_null(gki_openmp.dump(&w.program, "json"));
  world_end(&w);
}

static int calls_left;
static void *scarce_alloc(void *user, size_t size) { return (void)user, calls_left-- > 0 ? malloc(size) : NULL; }
static void *scarce_resize(void *user, void *at, size_t size) {
  return (void)user, calls_left-- > 0 ? realloc(at, size) : NULL;
}
static void scarce_free(void *user, void *at) {
  (void)user;
  free(at);
}

/* Every allocation fails once. */
static void test_out_of_memory(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_PARALLEL, GK_SECTION, GK_RUN(add_all, SN, XS, SF, SD, SI, SU), GK_END,
                                  GK_SECTION, GK_RUN(add_all, SN, XS, SF, SD, SI, SU), GK_END, GK_END};
  static const gk_list list = GK_LIST(list, tasks, sum_slots);
  gk_allocator scarce = {NULL, scarce_alloc, scarce_resize, scarce_free};
  int failed = 0;
  for (int k = 0; k < 100; ++k) {
    gki_openmp_device device = {0};
    gki_program program = {0};
    world w;
    calls_left = 1 << 30;
    assert_int_equal(gk_set_allocator(&scarce), GK_OK);
    world_open(&w, 3);
    assert_int_equal(world_lower(&w, &list, 0), GK_OK);
    calls_left = k;
    gki_begin();
    gk_mode mode;
    gk_result result = gki_openmp.open(&device, &(gk_device_desc){.threads = 4});
    if (result == GK_OK) result = gki_openmp.lower(&device, &program, w.plan, NULL, &mode);
    calls_left = 1 << 30;
    gki_openmp.drop(&program);
    gki_openmp.close(&device);
    world_end(&w);
    assert_int_equal(gk_set_allocator(NULL), GK_OK);
    if (result == GK_OK) break;
    assert_int_equal(result, GK_ERROR_MEMORY);
    assert_says("memory");
    ++failed;
  }
  assert_true(failed > 2 && failed < 100);
}

int main(int argc, char **argv) {
  if (argc > 1) {
    strcmp(argv[1], "small") == 0 ? child_small_tasks() : child_thread_limit();
    return 0;
  }
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_threads),
    cmocka_unit_test(test_refused_devices),
    cmocka_unit_test(test_describe),
    cmocka_unit_test(test_memory),
    cmocka_unit_test(test_takes),
    cmocka_unit_test(test_every_item_once),
    cmocka_unit_test(test_extents),
    cmocka_unit_test(test_too_many_items),
    cmocka_unit_test(test_items_read_when_it_runs),
    cmocka_unit_test(test_sums_are_the_same_bits),
    cmocka_unit_test(test_sum_of_no_items),
    cmocka_unit_test(test_sum_of_a_strange_type),
    cmocka_unit_test(test_copies),
    cmocka_unit_test(test_copy_of_a_struct),
    cmocka_unit_test(test_fills),
    cmocka_unit_test(test_calls),
    cmocka_unit_test(test_rebinding),
    cmocka_unit_test(test_small_tasks_wake_nobody),
    cmocka_unit_test(test_thread_limit),
    cmocka_unit_test(test_large_tasks_are_shared),
    cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
