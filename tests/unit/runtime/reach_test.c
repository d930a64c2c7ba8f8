/* The memory that flags, counts, copies and fills touch, against memory of a known size; freed memory; where counts are
 * read. */
#include "gk_backend.h"
#include "gk_kernel.h"
#include "unit/support/runtime.h"
#include "unit/support/spare_backend.h"
#include "unit/support/process.h"
#include "base/registry.h"

GK_SOURCE(reach)
GK_KERNEL(count_up, (atomic(int, n))) { gk_atomic_add(&n[0], 1); }
GK_KERNEL(increase, (inout(float, y))) { y[i] += 1; }
GK_SOURCE_END

enum { FLAG = 1, COUNTS, DATA, OTHER, N, BIG };
static const gk_slot_desc slots[] = {GK_OWN(FLAG, int, 2), GK_OWN(COUNTS, int, 2), GK_OWN(DATA, int, 4),
                                     GK_OWN(OTHER, int, 4), GK_SCALAR(N, int)};
static const gk_slot_desc bound_slots[] = {GK_BUFFER(FLAG, int), GK_BUFFER(COUNTS, int), GK_BUFFER(DATA, int),
                                           GK_SCALAR(N, int)};

/* Tasks with an offset in bytes: of the count that a kernel reads, of what is written, and of what is read. */
#define RUN_AT(bytes, k, n, ...) \
  {.op = GK_OP_KERNEL, .bits = GK_DIMENSIONS(1), .name = #k, .kernel = &(k), .items = {n}, .args = {__VA_ARGS__}, \
   .offset = (bytes)}
#define FILL_AT(bytes, to, n, v) \
  {.op = GK_OP_FILL, .name = #to " = " #v, .items = {n}, .args = {to}, .pattern = (v), .offset = (bytes)}
#define COPY_AT(bytes, from_bytes, to, from, n) \
  {.op = GK_OP_COPY, .name = #to " = " #from, .items = {n}, .args = {to, from}, .offset = (bytes), \
   .from_offset = (from_bytes)}

#define TEST_ON_OPENMP(test) TEST_ON("openmp", test)

static void fails(gk_graph *graph, const char *said) { assert_invalid(said, gk_launch(graph, 0)); }
static void runs(gk_graph *graph) { run_to_end(graph, 0); }

/* The launch or the wait for it fails and says that; NULL: it runs. */
static void launch(gk_graph *graph, const char *said) {
  const gk_result result = gk_launch(graph, 0);
  if (said) assert_invalid(said, result == GK_OK ? gk_wait(graph, NULL) : result);
  else assert_ok(result == GK_OK ? gk_wait(graph, NULL) : result);
}

TEST_ON_OPENMP(task_behind_memory) {
  LIST(last, GK_IF(FLAG, .offset = 4), GK_FILL(DATA, GK_ONE, 1), GK_END);
  LIST(flag, GK_FILL(DATA, GK_ONE, 1), GK_IF(FLAG, .offset = 8), GK_FILL(DATA, GK_ONE, 1), GK_END);
  LIST(counts, RUN_AT(8, count_up, COUNTS, DATA));
  LIST(copy, COPY_AT(0, 16, DATA, OTHER, GK_ONE));
  LIST(fill, FILL_AT(16, DATA, GK_ONE, 1));
  static const struct { const gk_list *list; const char *said; } cases[] = {
      {&last, NULL},
      {&flag, "slot 1 (FLAG) has 8 bytes, and task 1 (IF FLAG) touches byte 11"},
      {&counts, "slot 2 (COUNTS) has 8 bytes, and task 0 (count_up) touches byte 11"},
      {&copy, "slot 4 (OTHER) has 16 bytes, and task 0 (DATA = OTHER) touches byte 19"},
      {&fill, "slot 3 (DATA) has 16 bytes, and task 0 (DATA = 1) touches byte 19"}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) launch(graph_on(device, cases[k].list, 0), cases[k].said);
}

/* A resume fills all of the memory that the host has made larger meanwhile. */
TEST_ON_OPENMP(memory_grows_between_launches) {
  enum { HERE = 1 };
  LIST(list, GK_FILL(DATA, N, 5), GK_CHECKPOINT(HERE, FLAG), GK_END, GK_FILL(DATA, N, 7));
  gk_graph *graph = graph_on(device, &list, 0);
  BIND_INTS(graph, {N, 4});
  set_int(device, gk_bound(graph, FLAG), 1);
  assert_ok(gk_launch(graph, 0));
  const gk_status *status;
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->state, GK_YIELDED);
  assert_ok(gk_resize(graph, DATA, 8));
  BIND_INTS(graph, {N, 8});
  set_int(device, gk_bound(graph, FLAG), 0);
  run_to_end(graph, HERE);
  ASSERT_INTS(gk_bound(graph, DATA), 7, 7, 7, 7, 7, 7, 7, 7);
}

/* To the byte, in memory that has no elements. */
TEST_ON_OPENMP(flag_in_raw_memory) {
  static const gk_slot_desc raw[] = {GK_RAW_BUFFER(FLAG)};
  LIST_OVER(raw, list, GK_IF(FLAG, .offset = 4), GK_END);
  gk_graph *graph = graph_on(device, &list, 0);
  for (size_t bytes = 1; bytes < 10; ++bytes) {
    char said[100];
    assert_ok(gk_resize(graph, FLAG, bytes));
    snprintf(said, sizeof said, "slot 1 (FLAG) has %zu bytes, and task 0 (IF FLAG) touches byte 7", bytes);
    if (bytes < 8) fails(graph, said);
    else runs(graph);
  }
}

/* A resize that is large enough corrects it. */
TEST_ON_OPENMP(resize_mends) {
  LIST(fill, FILL_AT(16, DATA, GK_ONE, 7));
  gk_graph *graph = graph_on(device, &fill, 0);
  fails(graph, "");
  assert_ok(gk_resize(graph, DATA, 5));
  runs(graph);
  assert_int_equal(((int *)gk_bound(graph, DATA))[4], 7);
}

/* One too many, and none too many, by a number that is bound. */
TEST_ON_OPENMP(bound_count_behind_memory) {
  LIST(list, GK_FILL(DATA, N, 7), COPY_AT(4, 0, DATA, OTHER, N));
  gk_graph *graph = graph_on(device, &list, 0);
  for (const int *n = (const int[]){3, 0, -5, 4}; *n != 4; ++n) {
    assert_ok(gk_bind_int(graph, N, *n));
    runs(graph);
  }
  assert_ok(gk_bind_int(graph, N, 4));
  launch(graph, "task 1 (DATA = OTHER): 4 elements of 4 bytes, by slot 5 (N), from byte 4 of slot 3 (DATA) on, which "
                "has 16 bytes");
  assert_ok(gk_resize(graph, DATA, 5));
  runs(graph);
}

/* Where the offset alone leads behind the memory there is room for no element. */
TEST_ON_OPENMP(offset_behind_memory) {
  LIST_OVER(bound_slots, list, FILL_AT(8, DATA, N, 1), GK_RUN(count_up, GK_ONE, FLAG),
            GK_RUN(count_up, GK_ONE, COUNTS));
  char *block = gk_alloc(device, 16, GK_DEVICE_MEMORY);
  gk_graph *graph = GRAPH_ON(device, &list, 0, {FLAG, block}, {COUNTS, block}, {DATA, block + 12});
  for (int items = 0; items < 2; ++items) {
    assert_ok(gk_bind_int(graph, N, items));
    launch(graph, items ? "from byte 8 of slot 3 (DATA) on, which has 4 bytes" : NULL);
  }
}

/* Of a block of gk_alloc the size is known, too: from the address that is bound on, which needn't be its first. */
TEST_ON_OPENMP(behind_a_block) {
  LIST_OVER(bound_slots, list, FILL_AT(8, DATA, GK_ONE, 1), RUN_AT(8, count_up, COUNTS, DATA), GK_FILL(DATA, N, 1),
            GK_IF(FLAG, .offset = 8), GK_END);
  static const struct { size_t flag, counts, data; int n; const char *said; } cases[] = {
      {4, 4, 4, 3, NULL},
      {8, 4, 4, 3, "slot 1 (FLAG) has 8 bytes, and task 3 (IF FLAG) touches byte 11; correct its offset, or "
       "bind larger"},
      {4, 12, 4, 3, "slot 2 (COUNTS) has 4 bytes, and task 1 (count_up) touches byte 11"},
      {4, 4, 8, 2, "slot 3 (DATA) has 8 bytes, and task 0 (DATA = 1) touches byte 11"},
      {4, 4, 4, 4, "task 2 (DATA = 1): 4 elements of 4 bytes, by slot 5 (N), from byte 0 of slot 3 (DATA) on, which "
                   "has 12 bytes"},
      {4, 4, 4, 3, NULL}};
  char *block = gk_alloc(device, 16, GK_DEVICE_MEMORY);
  gk_graph *graph = graph_on(device, &list, 0);
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    BIND(graph, {FLAG, block + cases[k].flag}, {COUNTS, block + cases[k].counts}, {DATA, block + cases[k].data});
    assert_ok(gk_bind_int(graph, N, cases[k].n));
    launch(graph, cases[k].said);
  }
}

typedef struct counted { int64_t n, big; const char *said; } counted;

static void launch_counted(gk_graph *graph, const counted *cases, size_t count) {
  for (size_t k = 0; k < count; ++k) {
    BIND_INTS(graph, {N, cases[k].n}, {BIG, cases[k].big});
    launch(graph, cases[k].said);
  }
}

/* A kernel without items touches nothing, for any type of its number of items. */
TEST_ON_OPENMP(no_items_no_memory) {
  static const gk_slot_desc table[] = {GK_BUFFER(DATA, int), GK_SCALAR(N, uint), GK_SCALAR(BIG, int64_t)};
  LIST_OVER(table, list, GK_RUN(count_up, N, DATA), GK_RUN(count_up, BIG, DATA));
#define UNBOUND "slot 3 (DATA) is not bound, or is bound to NULL"
  static const counted cases[] = {{0, 0, NULL}, {0, -1, NULL}, {0, INT64_MIN, NULL},
                                  {1, 0, UNBOUND}, {0, 1, UNBOUND}, {UINT32_MAX, 0, UNBOUND}};
  launch_counted(graph_on(device, &list, 0), cases, GK_COUNT(cases));
}

/* The number may be of any type that counts. */
TEST_ON_OPENMP(bound_counts_of_every_type) {
  static const gk_slot_desc table[] = {GK_OWN(DATA, int, 4), GK_OWN(OTHER, int, 9), GK_SCALAR(N, uint),
                                       GK_SCALAR(BIG, int64_t)};
  LIST_OVER(table, list, GK_FILL(DATA, N, 1), GK_FILL(DATA, N, 2), GK_FILL(DATA, BIG, 3), GK_FILL(OTHER, N, 4));
  static const counted cases[] = {
      {4, 4, NULL},
      {5, 4, "task 0 (DATA = 1): 5 elements of 4 bytes, by slot 5 (N), from byte 0 of slot 3 (DATA) on, which has 16"},
      {UINT32_MAX, 4, "task 0 (DATA = 1): more than 2147483647 items: 4294967295 by slot 5 (N)"},
      {4, 5, "task 2 (DATA = 3): 5 elements of 4 bytes, by slot 6 (BIG), from byte 0 of slot 3 (DATA) on"},
      {4, INT32_MAX, "task 2 (DATA = 3): 2147483647 elements of 4 bytes"},
      {4, INT64_MAX, "task 2 (DATA = 3): more than 2147483647 items: 9223372036854775807 by slot 6 (BIG)"},
      {0, INT64_MIN, NULL}};
  launch_counted(graph_on(device, &list, 0), cases, GK_COUNT(cases));
}

static void *kept; /* freed last: the next allocation gets it, of any size */
static gk_backend recycling;
static const gk_backend *recycled;

static gk_result alloc_kept(void *state, size_t bytes, gk_memory kind, void **memory) {
  *memory = kept;
  kept = NULL;
  return *memory ? GK_OK : recycled->alloc(state, bytes < 4096 ? 4096 : bytes, kind, memory);
}

static void free_kept(void *state, void *memory) {
  if (kept) recycled->free(state, kept);
  kept = memory;
}

static gk_device *open_recycling(void) {
  recycled = gki_backend_named("openmp");
  recycling = *recycled;
  recycling.name = "recycling";
  recycling.alloc = alloc_kept;
  recycling.free = free_kept;
  assert_ok(gk_backend_register(&recycling));
  gk_device *opened = NULL;
  assert_ok(gk_device_open(&(gk_device_desc){.backend = "recycling", .threads = 1}, &opened));
  return opened;
}

TEST(freed_while_bound) {
  static const gk_slot_desc bound[] = {GK_BUFFER(DATA, int), GK_BUFFER(OTHER, int), GK_OWN(FLAG, int, 2)};
  LIST_OVER(bound, list, GK_FILL(FLAG, GK_ONE, 0), GK_FILL(DATA, GK_ONE, 1));
  gk_device *on = open_recycling();
  int *first = gk_alloc(on, 16, GK_DEVICE_MEMORY), *second = gk_alloc(on, 16, GK_DEVICE_MEMORY);
  gk_graph *graph = GRAPH_ON(on, &list, 0, {DATA, first + 2}, {OTHER, second} /* no task uses it */);
  gk_graph *other = graph_on(on, &list, 0);
  runs(graph);
  gk_free(on, second);
  runs(graph);
  gk_free(on, first);
  const char *said = "the memory that slot 3 (DATA) is bound to was freed, and task 1 (DATA = 1) uses it";
  fails(graph, said);
  assert_ptr_equal(gk_alloc(on, 16, GK_DEVICE_MEMORY), first); /* another block at the same address */
  fails(graph, said);
  gk_bind(graph, DATA, first + 2);
  runs(graph);
  gk_bind(other, DATA, gk_bound(graph, FLAG)); /* a graph's own memory, in another graph */
  runs(other);
  assert_ok(gk_resize(graph, FLAG, 3));
  runs(graph);
  fails(other, said);
  gk_bind(other, DATA, gk_bound(graph, FLAG));
  runs(other);
  gk_graph_destroy(graph);
  fails(other, said);
  gk_graph_destroy(other);
  gk_free(on, first);
  gk_device_close(on);
  recycled->free(NULL, kept);
}

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN
#endif
#endif
#ifdef WITH_ASAN
/* What the program is started for once more: 11 items, and memory for 10. */
static int overrun(void) {
  static const gk_slot_desc ten[] = {GK_OWN(DATA, float, 10), GK_DEFAULT(N, int, 11)};
  LIST_OVER(ten, list, GK_RUN(increase, N, DATA));
  gk_device *device;
  gk_graph *graph = NULL;
  if (gk_device_open(&(gk_device_desc){.backend = "openmp", .threads = 1}, &device) != GK_OK ||
      gk_graph_create(device, &list, 0, &graph) != GK_OK || gk_launch(graph, 0) != GK_OK)
    return 2;
  return gk_wait(graph, NULL) == GK_OK ? 0 : 3;
}

TEST(overrun_is_seen_by_sanitizers) {
  char said[20000];
  assert_int_not_equal(run_self("overrun", said, sizeof said), 0);
  if (!strstr(said, "heap-buffer-overflow") || !strstr(said, "reach_test.c")) fail_msg("%s", said);
}
#endif

/* The message names the slot whose memory is too small. */
TEST_ON_OPENMP(resize_without_memory) {
  LIST(fill, GK_FILL(DATA, GK_ONE, 7));
  gk_graph *graph = graph_on(device, &fill, 0);
  runs(graph);
  assert_fails(GK_ERROR_MEMORY, "slot 3 (DATA)", gk_resize(graph, DATA, (size_t)1 << 55));
}

/* The offset of a KERNEL leads to its count; that of a COPY or FILL into what it writes, its count is at the start. */
TEST_ON_OPENMP(where_counts_are_read) {
  LIST(list, RUN_AT(4, count_up, COUNTS, DATA), FILL_AT(8, OTHER, COUNTS, 9), COPY_AT(4, 0, OTHER, DATA, COUNTS));
  gk_graph *graph = graph_on(device, &list, 0);
  assert_ok(gk_upload(device, gk_bound(graph, COUNTS), (const int[]){1, 3}, 2 * sizeof(int)));
  runs(graph);
  ASSERT_INTS(gk_bound(graph, OTHER), 0, 3, 9, 0);
}

/* ---- rooms ------------------------------------------------------------------------------------------------------- */

static gk_value room_values[8];

static gk_result note_values(void *graph, const gk_launch_args *launch, gk_launch_result *record) {
  (void)graph, (void)record;
  memcpy(room_values, launch->values, sizeof room_values);
  return GK_OK;
}

/* Grants any size, and has no such memory. */
static gk_result alloc_vast(void *device, size_t bytes, gk_memory kind, void **memory) {
  (void)bytes;
  return spare_alloc(device, 256, kind, memory);
}
static gk_result copy_nothing(void *device, gk_direction direction, void *to, const void *from, size_t bytes) {
  return (void)device, (void)direction, (void)to, (void)from, (void)bytes, GK_OK;
}

/* A room that its type can't hold is refused, and only where a task uses it. */
TEST(room_of_vast_memory) {
  enum { BYTES = 1, SMALL, AS_UINT, AS_INT64, WORDS, OF_WORDS, TO };
  static const gk_slot_desc vast_slots[] = {
      GK_RAW_BUFFER(BYTES), GK_ROOM(SMALL, BYTES),
      {.slot = AS_UINT, .type = GK_U32, .name = "AS_UINT", .bits = GK_IS_ROOM, .value = {.i32 = BYTES}},
      {.slot = AS_INT64, .type = GK_I64, .name = "AS_INT64", .bits = GK_IS_ROOM, .value = {.i32 = BYTES}},
      GK_BUFFER(WORDS, int64_t), GK_ROOM(OF_WORDS, WORDS), GK_OWN(TO, int, 1)};
  LIST_OVER(vast_slots, narrow, GK_FILL(TO, SMALL, 0), GK_FILL(TO, AS_UINT, 0));
  LIST_OVER(vast_slots, wide, GK_FILL(TO, AS_UINT, 0), GK_FILL(TO, AS_INT64, 0), GK_FILL(TO, OF_WORDS, 0));
  static gk_backend vast = SPARE(spare_open, .name = "vast", .run = note_values);
  vast.alloc = alloc_vast;
  vast.copy = copy_nothing;
  spare_mode = GK_MODE_IN_PROCESS;
  assert_ok(gk_backend_register(&vast));
  gk_device *device = open_named("vast");
  gk_graph *graph = graph_on(device, &narrow, 0), *other = graph_on(device, &wide, 0);
  assert_ok(gk_resize(graph, BYTES, INT32_MAX));
  runs(graph);
  assert_int_equal(room_values[SMALL].i64, INT32_MAX);
  assert_ok(gk_resize(graph, BYTES, (size_t)INT32_MAX + 1));
  fails(graph, "slot 2 (SMALL) is the room of slot 1 (BYTES), which has 2147483648 elements, more than its type holds, "
               "and task 0 (TO = 0) uses it; make it a GK_I64, or the memory smaller");
  assert_ok(gk_resize(other, BYTES, UINT32_MAX));
  assert_ok(gk_resize(other, WORDS, INT32_MAX));
  runs(other);
  assert_int_equal(room_values[AS_UINT].i64, UINT32_MAX);
  assert_int_equal(room_values[AS_INT64].i64, UINT32_MAX);
  assert_int_equal(room_values[OF_WORDS].i64, INT32_MAX);
  assert_ok(gk_resize(other, BYTES, (size_t)1 << 40));
  fails(other, "slot 3 (AS_UINT) is the room of slot 1 (BYTES), which has 1099511627776 elements");
  gk_graph_destroy(graph);
  gk_graph_destroy(other);
  gk_device_close(device);
}

int main(int count, char **words) {
#ifdef WITH_ASAN
  if (count > 1 && strcmp(words[1], "overrun") == 0) return overrun();
#endif
  (void)count;
  (void)words;
  return run_all_tests();
}
