/* The OpenMP backend: devices, memory, single tasks. Sums are in team_test.c, sections and loops in sections_test.c,
 * what is learned of time in costs_test.c. */
#include "base/error.h"
#include "items.h"
#include <malloc.h>
#include <omp.h>
#include <unistd.h>

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
  const gk_result result = open_with(&device, &(gk_device_desc){.backend = "openmp", .threads = threads});
  unsetenv("OMP_NUM_THREADS");
  if (result != GK_OK) return -1;
  gk_device_info info = {0};
  gki_openmp.describe(&device, &info);
  gki_openmp.close(&device);
  return info.threads;
}

TEST(test_threads) {
  const int cores = omp_get_num_procs();
  const struct { const char *environment; int threads, wanted; } cases[] = {
    {NULL, 0, cores}, {"", 0, cores}, {"3", 0, 3}, {"4,2", 0, 4}, {"4,2000", 0, 4 /* no team of gk's has that many */},
    {" 5 ", 0, 5}, {"3", 7, 7}, {NULL, 1024, 1024}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k)
    assert_int_equal(threads_with(cases[k].environment, cases[k].threads), cases[k].wanted);
  static const char *const useless[] = {"many", "0", "-2", "2x", "4,", "4,,2", "4,0", ",4",
                                        "1025", "2000,4", "99999999999999999999"};
  for (size_t k = 0; k < GK_COUNT(useless); ++k) {
    assert_int_equal(threads_with(useless[k], 0), -1);
    assert_says("OMP_NUM_THREADS");
    assert_says(useless[k]);
    assert_int_equal(threads_with(useless[k], 2), 2);
  }
}

TEST(test_refused_devices) {
  gki_openmp_device device;
  gk_extension extension = {.id = 77, .bytes = sizeof extension};
  assert_fails(GK_ERROR_INVALID, "-1 threads", open_with(&device, &(gk_device_desc){.threads = -1}));
  assert_fails(GK_ERROR_INVALID, "1025 threads", open_with(&device, &(gk_device_desc){.threads = 1025}));
  assert_fails(GK_ERROR_NO_DEVICE, "ordinal 0", open_with(&device, &(gk_device_desc){.ordinal = 1}));
  assert_fails(GK_ERROR_INVALID, "0x4d", open_with(&device, &(gk_device_desc){.next = &extension}));
}

TEST(test_describe) {
  char found[200] = "";
  DEVICE(w, 3);
  gk_device_info info = {0};
  gki_openmp.describe(&w.device, &info);
  assert_non_null(strstr(info.name, "3 threads"));
  assert_non_null(strstr(info.driver, _OPENMP == 201511   ? ", OpenMP 4.5, "
                                      : _OPENMP == 201811 ? ", OpenMP 5.0, "
                                      : _OPENMP == 202011 ? ", OpenMP 5.1, "
                                                          : ", OpenMP "));
  for (const gk_capability *c = info.capabilities; c < info.capabilities + info.capability_count; ++c) {
    assert_true(strlen(c->why) > 5);
    assert_int_equal(c->how, strcmp(c->construct, "LAUNCH_ON") == 0 ? GK_REFUSED : GK_NATIVE);
    snprintf(found + strlen(found), sizeof found - strlen(found), "%s ", c->construct);
  }
  assert_string_equal(found, "KERNEL COPY FILL CALL CALL_HOST LIST DO_WHILE WHILE REPEAT IF SWITCH CHECKPOINT YIELD "
                             "PARALLEL SECTION SUM ALWAYS CANCEL LAUNCH_ON ");
}

static gk_result alloc(world *w, size_t bytes, gk_memory kind, void **memory) {
  gki_begin();
  return gki_openmp.alloc(&w->device, bytes, kind, memory);
}

TEST(test_memory) {
  DEVICE(w, 2);
  for (size_t bytes = 1; bytes < 3000; bytes += 77) {
    void *memory = NULL;
    assert_ok(alloc(&w, bytes, GK_DEVICE_MEMORY, &memory));
    assert_int_equal((uintptr_t)memory % 256, 0);
    assert_true(malloc_usable_size(memory) < bytes + 64); /* sanitizers see its end */
    memset(memory, 7, bytes);
    assert_ptr_equal(gki_openmp.host_address(&w.device, memory), memory);
    gki_openmp.free(&w.device, memory);
  }
  static const size_t huge[] = {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX / 2, (size_t)1 << 60, (size_t)1 << 50};
  for (size_t k = 0; k < GK_COUNT(huge); ++k) {
    void *memory = &w;
    assert_fails(GK_ERROR_MEMORY, "bytes", alloc(&w, huge[k], GK_HOST_MEMORY, &memory));
    assert_null(memory);
  }
  char text[] = "abcdefgh", other[9] = "";
  assert_ok(gki_openmp.copy(&w.device, GK_TO_DEVICE, other, text, 9));
  assert_string_equal(other, "abcdefgh");
  assert_ok(gki_openmp.copy(&w.device, GK_ON_DEVICE, text + 2, text, 6));
  assert_string_equal(text, "ababcdef");
  assert_ok(gki_openmp.copy(&w.device, GK_ZERO, text, NULL, 3));
  assert_memory_equal(text + 2, "\0b", 2);
  assert_ok(gki_openmp.copy(&w.device, GK_TO_HOST, other, text + 3, 6));
  assert_string_equal(other, "bcdef");
}

static bool promises;
static size_t promised;
WRAPPED(int, posix_memalign, void **memory, size_t alignment, size_t bytes) {
  if (promises) promised = bytes;
  return __real_posix_memalign(memory, alignment, promises ? 1 : bytes);
}

/* A system may promise any amount, as Linux does where it is told to (vm.overcommit_memory). */
TEST(test_memory_that_is_promised) {
  const size_t there = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  const size_t too_much[] = {there + 1, 2 * there, SIZE_MAX};
  world w = {.device.dispatch_ns = 0};
  for (size_t k = 0; k < GK_COUNT(too_much); ++k) {
    void *memory = &w;
    promised = 0;
    promises = true;
    const gk_result result = alloc(&w, too_much[k], GK_DEVICE_MEMORY, &memory);
    promises = false;
    assert_int_equal(result, GK_ERROR_MEMORY);
    assert_null(memory);
    assert_int_equal(promised, 0);
  }
}

TEST(test_takes) { assert_false(gki_openmp.takes(&(gk_kernel){.name = "device_only"})); }

static void assert_touched(size_t count) {
  for (size_t k = 0; k <= ITEMS_MAX; ++k)
    if (touched_bytes[k] != (k < count)) fail_msg("item %zu of %zu: touched %d times", k, count, touched_bytes[k]);
}

/* A launch that touches so many bytes, once each. */
static void assert_touches(world *w, size_t count) {
  memset(touched_bytes, 0, sizeof touched_bytes);
  assert_runs(w);
  assert_touched(count);
}

TEST(test_every_item_once) {
  static const int counts[] = {-5, 0, 1, 2, 3, 63, 64, 65, 127, 128, 129, 1000, 4096, ITEMS_MAX};
  LIST_OVER(item_slots, list, GK_RUN(touching, N, X));
  worker = pthread_self();
  FOR_EACH_WORLD(w, &list, 1, 2, 3, 8) {
    bind_ptr(&w, X, touched_bytes);
    atomic_store(&other_threads, 0);
    for (size_t k = 0; k < GK_COUNT(counts); ++k) {
      bind_i32(&w, N, counts[k]);
      assert_touches(&w, counts[k] > 0 ? (size_t)counts[k] : 0);
    }
    if (w.costs == SHARE_ALL && w.threads > 1) assert_true(atomic_load(&other_threads) > 0);
    if (w.costs == SHARE_NOTHING || w.threads == 1) assert_int_equal(atomic_load(&other_threads), 0);
  }
}

TEST(test_extents) {
  LIST_OVER(item_slots, list, GK_RUN_3D(touching, N, NY, NZ, X));
  static const struct { int x; uint32_t y; int64_t z; size_t items; } cases[] = {
    {3, 5, 7, 105},  {1, 1, 1, 1},           {0, 5, 7, 0}, {3, 0, 7, 0},           {3, 5, -7, 0},
    {2, 3, 0, 0},    {-1, UINT32_MAX, 1, 0}, {0, UINT32_MAX, INT64_MAX, 0},        {100, 100, 10, 100000}};
  static const slot_value doubled[] = {{N, {.i32 = 4}}, {NY, {.u32 = 6}}, {NZ, {.i64 = 10}}};
  FOR_EACH_WORLD(w, &list, 2) {
    bind_ptr(&w, X, touched_bytes);
    for (size_t k = 0; k < GK_COUNT(cases); ++k) {
      BIND(&w, {N, {.i32 = cases[k].x}}, {NY, {.u32 = cases[k].y}}, {NZ, {.i64 = cases[k].z}});
      assert_touches(&w, cases[k].items);
    }
    for (int axis = 0; axis < 3; ++axis) { /* each by itself */
      BIND(&w, {N, {.i32 = 2}}, {NY, {.u32 = 3}}, {NZ, {.i64 = 5}});
      assert_touches(&w, 30);
      BIND(&w, doubled[axis]);
      assert_touches(&w, 60);
    }
  }
}

TEST(test_too_many_items) {
  LIST_OVER(item_slots, list, GK_RUN(touching, GK_ONE, X), GK_RUN_3D(touching, N, NY, NZ, X),
                              GK_RUN(touching, GK_ONE, Y));
  WORLD(w, &list, 2, AS_MEASURED);
  BIND(&w, {X, {.ptr = touched_bytes}}, {Y, {.ptr = touched_bytes + 1}}, {N, {.i32 = INT32_MAX}}, {NY, {.u32 = 2}},
           {NZ, {.i64 = 1}});
  memset(touched_bytes, 0, sizeof touched_bytes);
  assert_fails(GK_ERROR_INVALID, "task 1 (touching)", world_launch(&w, 0));
  assert_says("2147483647");
  assert_touched(1); /* the tasks before are done, the tasks behind aren't */
  BIND(&w, {NZ, {.i64 = INT64_MAX}});
  assert_int_equal(world_launch(&w, 0), GK_ERROR_INVALID);
  BIND(&w, {N, {.i32 = 1}}, {NY, {.u32 = 1}}, {NZ, {.i64 = 1}}); /* and the graph is as good as before */
  assert_runs(&w);
  assert_int_equal(touched_bytes[1], 1);
}

/* The largest number is allowed, however it is computed. */
static size_t most_items;
HAND_KERNEL(noting, INOUT(uint8_t)) { most_items += range.end - range.begin; }

TEST(test_most_items) {
  static const gk_task tasks[] = {GK_RUN(noting, N, X), GK_RUN(noting, NZ, X), GK_RUN(noting, NY, X),
                                  GK_RUN_3D(noting, GK_ONE, NY, NZ, X), GK_RUN(noting, COUNT, X)};
  for (size_t k = 0; k < GK_COUNT(tasks); ++k)
    for (int64_t over = 0; over < 2; ++over) {
      const gk_list list = {GK_ABI, "most", &tasks[k], 1, item_slots, GK_COUNT(item_slots)};
      const bool product = k == 3, fits = !over || k == 0 || k == 4; /* an int is no larger */
      int read = INT32_MAX;
      WORLD(w, &list, 1, SHARE_NOTHING);
      BIND(&w, {X, {.ptr = touched_bytes}}, {COUNT, {.ptr = &read}}, {N, {.i32 = INT32_MAX}},
               {NZ, {.i64 = product ? 1 : INT32_MAX + over}}, {NY, {.u32 = (uint32_t)INT32_MAX + (uint32_t)over}});
      most_items = 0;
      assert_int_equal(world_launch(&w, 0), fits ? GK_OK : GK_ERROR_INVALID);
      assert_int_equal(most_items, fits ? INT32_MAX : 0);
      char *text = gki_openmp.dump(&w.program, "text");
      assert_int_equal(strstr(text, "too many items") != NULL, !fits); /* else each launch would count them again */
      free(text);
    }
}

TEST(test_items_read_when_it_runs) {
  LIST_OVER(item_slots, list, GK_FILL(COUNT, GK_ONE, 50),
            {.op = GK_OP_KERNEL, .name = "read", .kernel = &touching, .items = {COUNT}, .args = {X}, .offset = 4},
            GK_RUN(touching, COUNT, Y));
  WORLD(w, &list, 2, SHARE_ALL);
  static unsigned char y[64];
  int32_t count[2];
  BIND(&w, {X, {.ptr = touched_bytes}}, {Y, {.ptr = y}}, {COUNT, {.ptr = count}});
  static const int32_t counts[] = {0, -3, 1, 77, 5000, INT32_MIN};
  for (size_t k = 0; k < GK_COUNT(counts); ++k) {
    memset(y, 0, sizeof y);
    count[0] = 0;
    count[1] = counts[k];
    assert_touches(&w, counts[k] > 0 ? (size_t)counts[k] : 0);
    assert_memory_equal(y + 49, "\1", 2); /* written by the task before */
  }
}

/* The offset is that of the first extent. */
TEST(test_planes_read_when_they_run) {
  static const gk_slot_desc read_slots[] = {GK_BUFFER(X, uint8_t), GK_BUFFER(N, int), GK_BUFFER(NY, int),
                                            GK_BUFFER(NZ, int)};
  LIST_OVER(read_slots, list, {.op = GK_OP_KERNEL, .name = "read", .kernel = &touching, .items = {N, NY, NZ},
                               .args = {X}, .offset = 4});
  int32_t n[2] = {7, 3}, ny[2] = {5, 11}, nz[2] = {2, 13};
  WORLD(w, &list, 2, SHARE_ALL);
  BIND(&w, {X, {.ptr = touched_bytes}}, {N, {.ptr = n}}, {NY, {.ptr = ny}}, {NZ, {.ptr = nz}});
  assert_touches(&w, 3 * 5 * 2);
}

static uint32_t wanted_extent[3];
static atomic_int right, wrong;
HOST_KERNEL(compare_extents) {
  const bool same = memcmp(range.extent, wanted_extent, sizeof wanted_extent) == 0;
  atomic_fetch_add(same ? &right : &wrong, (int)(range.end - range.begin));
}

/* Each part of a task gets the extents as they are, in their order, wherever they come from. */
TEST(test_extents_in_their_order) {
  KERNEL_OF(plain, compare_extents, INOUT(float));
  KERNEL_OF(of_floats, compare_extents, SUM(float));
  KERNEL_OF(of_ints, compare_extents, SUM(int));
  static const gk_kernel *const kernels[] = {&plain, &of_floats, &of_ints};
  enum { READ = COUNT, READ_Y, READ_Z, INTS };
  static const gk_slot_desc extent_slots[] = {
    GK_BUFFER(X, float), GK_BUFFER(Y, uint8_t), GK_SCALAR(N, int), GK_SCALAR(NY, uint), GK_SCALAR(NZ, int64_t),
    GK_BUFFER(READ, int), GK_BUFFER(READ_Y, int), GK_BUFFER(READ_Z, int), GK_BUFFER(INTS, int)};
  static const struct { gk_slot items[3]; uint32_t extent[3]; } cases[] = {
    {{0}, {1, 1, 1}},          {{N}, {7, 1, 1}},            {{N, NY}, {7, 50, 1}},   {{N, NY, NZ}, {7, 50, 300}},
    {{READ}, {11, 1, 1}},      {{READ, READ_Y}, {11, 60, 1}}, {{READ, READ_Y, READ_Z}, {11, 60, 400}},
    {{READ, NY, NZ}, {11, 50, 300}}, {{N, READ_Y, NZ}, {7, 60, 300}}, {{N, NY, READ_Z}, {7, 50, 400}},
    {{NY, NZ, N}, {50, 300, 7}}, {{N, 0, NZ}, {7, 1, 300}}, {{0, NY}, {1, 50, 1}}, {{0, 0, READ_Z}, {1, 1, 400}},
  };
  int read[3], one_int = 0;
  float one_float = 0;
  for (size_t kind = 0; kind < GK_COUNT(kernels); ++kind)
    for (size_t k = 0; k < GK_COUNT(cases); ++k) {
      gk_task task = {
        .op = GK_OP_KERNEL, .name = "comparing", .kernel = kernels[kind], .args = {kind == 2 ? INTS : X}};
      memcpy(task.items, cases[k].items, sizeof cases[k].items);
      const gk_list list = {GK_ABI, "extents", &task, 1, extent_slots, GK_COUNT(extent_slots)};
      FOR_EACH_WORLD(w, &list, 2) {
        BIND(&w, {X, {.ptr = &one_float}}, {INTS, {.ptr = &one_int}}, {N, {.i32 = 7}}, {NY, {.u32 = 50}},
                 {NZ, {.i64 = 300}}, {READ, {.ptr = read}}, {READ_Y, {.ptr = read + 1}}, {READ_Z, {.ptr = read + 2}});
        atomic_store(&right, 0);
        atomic_store(&wrong, 0);
        uint32_t items = 0;
        for (uint32_t run = 0; run < 3; ++run) {
          for (int axis = 0; axis < 3; ++axis) {
            wanted_extent[axis] = cases[k].extent[axis] + (task.items[axis] >= READ ? run : 0);
            read[axis] = (int[]){11, 60, 400}[axis] + (int)run;
          }
          items += wanted_extent[0] * wanted_extent[1] * wanted_extent[2];
          assert_runs(&w);
        }
        assert_int_equal(atomic_load(&wrong), 0);
        assert_int_equal(atomic_load(&right), items);
      }
    }
}

typedef struct six { char at[6]; } six;
typedef struct block { int a[5]; } block;
enum { TO = 1, FROM, HOW_MANY, BLOCK, WORDS };
static const gk_slot_desc copy_slots[] = {GK_BUFFER(TO, six), GK_BUFFER(FROM, six), GK_SCALAR(HOW_MANY, int),
                                          GK_STRUCT_VALUE(BLOCK, block), GK_BUFFER(WORDS, block)};

TEST(test_copies) {
  LIST_OVER(copy_slots, list, {.op = GK_OP_COPY, .name = "copy", .items = {HOW_MANY}, .args = {TO, FROM}, .offset = 3,
                               .from_offset = 5});
  enum { BYTES = 60000 };
  static char from[BYTES], to[BYTES], expected[BYTES];
  for (int shift = -200; shift <= 200; shift += 40) /* in one block: forwards, backwards, onto itself nearly */
    FOR_EACH_WORLD(w, &list, 3)
      for (int count = 0; count < 9000; count = 3 * count + 1) {
        for (int k = 0; k < BYTES; ++k) from[k] = to[k] = (char)(k * 31 % 127);
        memcpy(expected, to, BYTES);
        memcpy(expected + 303, from + 105, 6 * (size_t)count);
        RUN_WITH(&w, {TO, {.ptr = to + 300}}, {FROM, {.ptr = from + 100}}, {HOW_MANY, {.i32 = count}});
        assert_memory_equal(to, expected, BYTES);
        memcpy(expected, from, BYTES);
        memmove(expected + 303 + shift, expected + 305, 6 * (size_t)count);
        BIND(&w, {TO, {.ptr = from + 300 + shift}}, {FROM, {.ptr = from + 300}});
        const unsigned heard = atomic_load(&w.device.team.slots[1].bell);
        assert_runs(&w);
        assert_memory_equal(from, expected, BYTES);
        if (abs(shift - 2) < 6 * count) /* what overlaps is one thread's, or it would be luck */
          assert_int_equal(atomic_load(&w.device.team.slots[1].bell), heard);
      }
}

TEST(test_copy_of_a_struct) {
  LIST_OVER(copy_slots, list, GK_COPY(WORDS, BLOCK, GK_ONE));
  block to = {{0}}, given = {{1, 2, 3, 4, 5}};
  WORLD(w, &list, 2, AS_MEASURED);
  RUN_WITH(&w, {WORDS, {.ptr = &to}}, {BLOCK, {.ptr = &given}});
  assert_memory_equal(&to, &given, sizeof to);
  block elsewhere = {{0}}; /* reported as unchanged: the place that common uses in the next launch may be another */
  w.values[BLOCK].ptr = &elsewhere;
  memset(&to, 0, sizeof to);
  assert_runs(&w);
  assert_memory_equal(&to, &given, sizeof to);
  given.a[4] = 6;
  RUN_WITH(&w, {BLOCK, {.ptr = &given}});
  assert_int_equal(to.a[4], 6);
}

TEST(test_fills) {
  static const uint32_t patterns[] = {0, 0x01020304u, 0xabababab, 0xffff0000u};
  static unsigned char to[20 * 3000 + 64];
  for (size_t p = 0; p < GK_COUNT(patterns); ++p) {
    const gk_task tasks[] = {{.op = GK_OP_FILL, .name = "fill", .items = {HOW_MANY}, .args = {WORDS}, .offset = 20,
                              .pattern = patterns[p]}};
    const gk_list list = GK_LIST(list, tasks, copy_slots);
    FOR_EACH_WORLD(w, &list, 3) {
      bind_ptr(&w, WORDS, to);
      for (int count = -1; count < 3000; count = 2 * count + 3) {
        memset(to, 0x55, sizeof to);
        RUN_WITH(&w, {HOW_MANY, {.i32 = count}});
        for (size_t k = 0; k < sizeof to; ++k) {
          bool inside = k >= 20 && k < 20 + 20 * (size_t)(count < 0 ? 0 : count);
          unsigned char byte = ((const unsigned char *)&patterns[p])[k % 4];
          if (to[k] != (inside ? byte : 0x55)) fail_msg("byte %zu of %d elements", k, count);
        }
      }
    }
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

TEST(test_calls) {
  LIST_OVER(item_slots, list, GK_CALL(a_call, X, N), GK_CALL(a_call, Y, N));
  WORLD(w, &list, 2, SHARE_ALL);
  unsigned char x = 0, y = 0;
  BIND(&w, {X, {.ptr = &x}}, {Y, {.ptr = &y}}, {N, {.i32 = 42}});
  called = call_answer = 0;
  assert_runs(&w);
  assert_int_equal(x + y, 2);
  call_answer = 1;
  assert_fails(GK_ERROR_DEVICE, "task 0 (a_call)", world_launch(&w, 0));
  assert_says("GK_ERROR_DEVICE");
  call_answer = 2;
  assert_int_equal(world_launch(&w, 0), GK_ERROR_DEVICE);
  assert_string_equal(gk_error(), "the solver says no");
  assert_int_equal(called, 4); /* the second call of a failed launch wasn't made */
}

TEST(test_rebinding) {
  LIST_OVER(item_slots, list, GK_RUN(touching, N, X), GK_RUN(touching, N, Y), GK_RUN(touching, GK_ONE, X));
  WORLD(w, &list, 2, AS_MEASURED);
  unsigned char a[8] = {0}, b[8] = {0}, c[8] = {0};
  RUN_WITH(&w, {X, {.ptr = a}}, {Y, {.ptr = b}}, {N, {.i32 = 3}});
  assert_memory_equal(a, "\2\1\1\0\0", 5);
  assert_memory_equal(b, "\1\1\1\0\0", 5);
  RUN_WITH(&w, {X, {.ptr = c}}); /* the others stay */
  assert_memory_equal(a, "\2\1\1\0\0", 5);
  assert_memory_equal(b, "\2\2\2\0\0", 5);
  assert_memory_equal(c, "\2\1\1\0\0", 5);
  RUN_WITH(&w, {N, {.i32 = 5}});
  assert_memory_equal(b, "\3\3\3\1\1\0", 6);
  assert_memory_equal(c, "\4\2\2\1\1\0", 6);
}

int main(void) { return run_all_tests(); }
