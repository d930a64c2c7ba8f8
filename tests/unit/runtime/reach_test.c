/* What flags, counts, copies and fills touch, against memory of a known size; memory that was freed; where counts are
 * read. */
#include "gk_backend.h"
#include "gk_kernel.h"
#include <unistd.h>
#include "unit/support/test.h"

GK_SOURCE(reach)
GK_KERNEL(count_up, (atomic(int, n))) { gk_atomic_add(&n[0], 1); }
GK_KERNEL(raise, (inout(float, y))) { y[i] += 1; }
GK_SOURCE_END

enum { FLAG = 1, COUNTS, DATA, OTHER, N, BIG };

static gk_device *device;

static int open_device(void **state) {
  (void)state;
  return gk_device_open(&(gk_device_desc){.backend = "openmp"}, &device) != GK_OK;
}
static int close_device(void **state) {
  (void)state;
  gk_device_close(device);
  return 0;
}

static const gk_slot_desc slots[] = {
  GK_OWN(FLAG, int, 2), GK_OWN(COUNTS, int, 2), GK_OWN(DATA, int, 4), GK_OWN(OTHER, int, 4), GK_SCALAR(N, int),
};

/* Launches a list of so many tasks once; the graph is the caller's. */
static gk_result run(const gk_task *tasks, size_t count, gk_graph **graph) {
  const gk_list list = {GK_ABI, "list", tasks, count, slots, GK_COUNT(slots)};
  gk_result result = gk_graph_create(device, &list, 0, graph);
  if (result == GK_OK) result = gk_launch(*graph, 0);
  return result == GK_OK ? gk_wait(*graph, NULL) : result;
}

static void refused(const gk_task *tasks, size_t count, const char *said) {
  gk_graph *graph = NULL;
  assert_int_equal(run(tasks, count, &graph), GK_ERROR_INVALID);
  if (!strstr(gk_error(), said)) fail_msg("\"%s\" doesn't say \"%s\"", gk_error(), said);
  gk_graph_destroy(graph);
}

TEST(test_flag_behind_memory) {
  const gk_task last[] = {GK_IF(FLAG, .offset = 4), GK_FILL(DATA, GK_ONE, 1), GK_END};
  const gk_task behind[] = {GK_FILL(DATA, GK_ONE, 1), GK_IF(FLAG, .offset = 8), GK_FILL(DATA, GK_ONE, 1), GK_END};
  gk_graph *graph = NULL;
  assert_int_equal(run(last, GK_COUNT(last), &graph), GK_OK);
  gk_graph_destroy(graph);
  refused(behind, GK_COUNT(behind), "slot 1 (FLAG) has 8 bytes, and task 1 (IF FLAG) touches byte 11");
}

/* To the byte, in memory that has no elements. */
TEST(test_flag_in_raw_memory) {
  static const gk_slot_desc raw[] = {GK_RAW_BUFFER(FLAG)};
  LIST_OVER(raw, list, GK_IF(FLAG, .offset = 4), GK_END);
  for (size_t bytes = 1; bytes < 10; ++bytes) {
    char said[100];
    gk_graph *graph = NULL;
    assert_int_equal(gk_graph_create(device, &list, 0, &graph), GK_OK);
    assert_int_equal(gk_resize(graph, FLAG, bytes), GK_OK);
    assert_int_equal(gk_launch(graph, 0), bytes < 8 ? GK_ERROR_INVALID : GK_OK);
    snprintf(said, sizeof said, "slot 1 (FLAG) has %zu bytes, and task 0 (IF FLAG) touches byte 7", bytes);
    if (bytes < 8 && !strstr(gk_error(), said)) fail_msg("\"%s\" doesn't say \"%s\"", gk_error(), said);
    if (bytes >= 8) assert_int_equal(gk_wait(graph, NULL), GK_OK);
    gk_graph_destroy(graph);
  }
}

TEST(test_count_behind_memory) {
  gk_task task = GK_RUN(count_up, COUNTS, DATA);
  task.offset = 8;
  refused(&task, 1, "slot 2 (COUNTS) has 8 bytes, and task 0 (count_up) touches byte 11");
}

TEST(test_copy_and_fill_behind_memory) {
  gk_task copy = GK_COPY(DATA, OTHER, GK_ONE), fill = GK_FILL(DATA, GK_ONE, 1);
  copy.from_offset = 16;
  fill.offset = 16;
  refused(&copy, 1, "slot 4 (OTHER) has 16 bytes, and task 0 (DATA = OTHER) touches byte 19");
  refused(&fill, 1, "slot 3 (DATA) has 16 bytes, and task 0 (DATA = 1) touches byte 19");
}

/* A resize that is large enough mends it. */
TEST(test_resize_mends) {
  gk_task fill = GK_FILL(DATA, GK_ONE, 7);
  fill.offset = 16;
  gk_graph *graph = NULL;
  assert_int_equal(run(&fill, 1, &graph), GK_ERROR_INVALID);
  assert_int_equal(gk_resize(graph, DATA, 5), GK_OK);
  assert_int_equal(gk_launch(graph, 0), GK_OK);
  assert_int_equal(gk_wait(graph, NULL), GK_OK);
  assert_int_equal(((int *)gk_bound(graph, DATA))[4], 7);
  gk_graph_destroy(graph);
}

static gk_result launch(gk_graph *graph) {
  gk_result result = gk_launch(graph, 0);
  return result == GK_OK ? gk_wait(graph, NULL) : result;
}

static void launch_fails(gk_graph *graph, const char *said) {
  assert_int_equal(launch(graph), GK_ERROR_INVALID);
  if (!strstr(gk_error(), said)) fail_msg("\"%s\" doesn't say \"%s\"", gk_error(), said);
}

/* One too many, and none too many, by a number that is bound. */
TEST(test_bound_count_behind_memory) {
  gk_task near = GK_FILL(DATA, N, 7), far = GK_COPY(DATA, OTHER, N);
  far.offset = 4;
  const gk_task tasks[] = {near, far};
  const gk_list list = {GK_ABI, "list", tasks, GK_COUNT(tasks), slots, GK_COUNT(slots)};
  gk_graph *graph = NULL;
  assert_int_equal(gk_graph_create(device, &list, 0, &graph), GK_OK);
  const int64_t fine[] = {3, 0, -5};
  for (size_t k = 0; k < GK_COUNT(fine); ++k) {
    gk_bind_int(graph, N, fine[k]);
    assert_int_equal(launch(graph), GK_OK);
  }
  gk_bind_int(graph, N, 4);
  launch_fails(graph, "task 1 (DATA = OTHER): 4 elements of 4 bytes, by slot 5 (N), from byte 4 of slot 3 (DATA) on, "
                      "which has 16 bytes");
  assert_int_equal(gk_resize(graph, DATA, 5), GK_OK);
  assert_int_equal(launch(graph), GK_OK);
  gk_graph_destroy(graph);
}

/* Where the offset alone leads behind the memory there is room for nothing. */
TEST(test_offset_behind_memory) {
  static const gk_slot_desc bound[] = {GK_BUFFER(FLAG, int), GK_BUFFER(COUNTS, int), GK_BUFFER(DATA, int),
                                       GK_SCALAR(N, int)};
  gk_task fill = GK_FILL(DATA, N, 1);
  fill.offset = 8;
  const gk_task tasks[] = {fill, GK_RUN(count_up, GK_ONE, FLAG), GK_RUN(count_up, GK_ONE, COUNTS)};
  const gk_list list = {GK_ABI, "list", tasks, GK_COUNT(tasks), bound, GK_COUNT(bound)};
  char *block = gk_alloc(device, 16, GK_DEVICE_MEMORY);
  gk_graph *graph = NULL;
  assert_int_equal(gk_graph_create(device, &list, 0, &graph), GK_OK);
  assert_int_equal(gk_bind(graph, FLAG, block), GK_OK);
  assert_int_equal(gk_bind(graph, COUNTS, block), GK_OK);
  assert_int_equal(gk_bind(graph, DATA, block + 12), GK_OK);
  for (int items = 0; items < 2; ++items) {
    gk_bind_int(graph, N, items);
    if (items) launch_fails(graph, "from byte 8 of slot 3 (DATA) on, which has 4 bytes");
    else assert_int_equal(launch(graph), GK_OK);
  }
  gk_graph_destroy(graph);
  gk_free(device, block);
}

/* Of a block of gk_alloc the size is known, too: from the address that is bound on, which needn't be its first. */
TEST(test_behind_a_block) {
  static const gk_slot_desc bound[] = {GK_BUFFER(FLAG, int), GK_BUFFER(COUNTS, int), GK_BUFFER(DATA, int),
                                       GK_SCALAR(N, int)};
  gk_task fill = GK_FILL(DATA, GK_ONE, 1), counted = GK_RUN(count_up, COUNTS, DATA);
  fill.offset = counted.offset = 8;
  const gk_task tasks[] = {fill, counted, GK_FILL(DATA, N, 1), GK_IF(FLAG, .offset = 8), GK_END};
  const gk_list list = {GK_ABI, "list", tasks, GK_COUNT(tasks), bound, GK_COUNT(bound)};
  char *block = gk_alloc(device, 16, GK_DEVICE_MEMORY);
  gk_graph *graph = NULL;
  assert_int_equal(gk_graph_create(device, &list, 0, &graph), GK_OK);
  static const struct { size_t flag, counts, data; int n; const char *said; } cases[] = {
    {4, 4, 4, 3, NULL},
    {8, 4, 4, 3, "slot 1 (FLAG) has 8 bytes, and task 3 (IF FLAG) touches byte 11; mend its offset, or bind larger"},
    {4, 12, 4, 3, "slot 2 (COUNTS) has 4 bytes, and task 1 (count_up) touches byte 11"},
    {4, 4, 8, 2, "slot 3 (DATA) has 8 bytes, and task 0 (DATA = 1) touches byte 11"},
    {4, 4, 4, 4, "task 2 (DATA = 1): 4 elements of 4 bytes, by slot 5 (N), from byte 0 of slot 3 (DATA) on, which has "
                 "12 bytes"},
    {4, 4, 4, 3, NULL},
  };
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    assert_int_equal(gk_bind(graph, FLAG, block + cases[k].flag), GK_OK);
    assert_int_equal(gk_bind(graph, COUNTS, block + cases[k].counts), GK_OK);
    assert_int_equal(gk_bind(graph, DATA, block + cases[k].data), GK_OK);
    assert_int_equal(gk_bind_int(graph, N, cases[k].n), GK_OK);
    if (cases[k].said) launch_fails(graph, cases[k].said);
    else assert_int_equal(launch(graph), GK_OK);
  }
  gk_graph_destroy(graph);
  gk_free(device, block);
}

/* A kernel without items touches nothing, whatever the type of their number. */
TEST(test_no_items_no_memory) {
  static const gk_slot_desc counted[] = {GK_BUFFER(DATA, int), GK_SCALAR(N, uint), GK_SCALAR(BIG, int64_t)};
  LIST_OVER(counted, list, GK_RUN(count_up, N, DATA), GK_RUN(count_up, BIG, DATA));
  static const struct { int64_t n, big; bool is_fine; } cases[] = {
    {0, 0, true}, {0, -1, true}, {0, INT64_MIN, true}, {1, 0, false}, {0, 1, false}, {UINT32_MAX, 0, false}};
  gk_graph *graph = NULL;
  assert_int_equal(gk_graph_create(device, &list, 0, &graph), GK_OK);
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    assert_int_equal(gk_bind_int(graph, N, cases[k].n), GK_OK);
    assert_int_equal(gk_bind_int(graph, BIG, cases[k].big), GK_OK);
    if (cases[k].is_fine) assert_int_equal(launch(graph), GK_OK);
    else launch_fails(graph, "slot 3 (DATA) is not bound, or is bound to NULL");
  }
  gk_graph_destroy(graph);
}

/* The number may be of any type that counts. */
TEST(test_bound_counts_of_every_type) {
  static const gk_slot_desc counted[] = {GK_OWN(DATA, int, 4), GK_OWN(OTHER, int, 9), GK_SCALAR(N, uint),
                                         GK_SCALAR(BIG, int64_t)};
  static const gk_task tasks[] = {GK_FILL(DATA, N, 1), GK_FILL(DATA, N, 2), GK_FILL(DATA, BIG, 3),
                                  GK_FILL(OTHER, N, 4)};
  static const struct { int64_t n, big; const char *said; } cases[] = {
    {4, 4, NULL},
    {5, 4, "task 0 (DATA = 1): 5 elements of 4 bytes, by slot 5 (N), from byte 0 of slot 3 (DATA) on, which has 16"},
    {UINT32_MAX, 4, "task 0 (DATA = 1): more than 2147483647 items: 4294967295 by slot 5 (N)"},
    {4, 5, "task 2 (DATA = 3): 5 elements of 4 bytes, by slot 6 (BIG), from byte 0 of slot 3 (DATA) on"},
    {4, INT32_MAX, "task 2 (DATA = 3): 2147483647 elements of 4 bytes"},
    {4, INT64_MAX, "task 2 (DATA = 3): more than 2147483647 items: 9223372036854775807 by slot 6 (BIG)"},
    {0, INT64_MIN, NULL},
  };
  const gk_list list = {GK_ABI, "list", tasks, GK_COUNT(tasks), counted, GK_COUNT(counted)};
  gk_graph *graph = NULL;
  assert_int_equal(gk_graph_create(device, &list, 0, &graph), GK_OK);
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    assert_int_equal(gk_bind_int(graph, N, cases[k].n), GK_OK);
    assert_int_equal(gk_bind_int(graph, BIG, cases[k].big), GK_OK);
    if (cases[k].said) launch_fails(graph, cases[k].said);
    else assert_int_equal(launch(graph), GK_OK);
  }
  gk_graph_destroy(graph);
}

/* ---- memory that was freed while a slot was bound to it ---------------------------------------------------------- */

static void fails(gk_graph *graph, const char *said) {
  assert_int_equal(gk_launch(graph, 0), GK_ERROR_INVALID);
  if (!strstr(gk_error(), said)) fail_msg("\"%s\" doesn't say \"%s\"", gk_error(), said);
}

static void runs(gk_graph *graph) {
  if (gk_launch(graph, 0) != GK_OK || gk_wait(graph, NULL) != GK_OK) fail_msg("%s", gk_error());
}

static void *kept; /* freed last: the next allocation gets it, whatever its size */
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
  for (size_t k = 0; !recycled; ++k)
    if (strcmp(gk_backend_at(k)->name, "openmp") == 0) recycled = gk_backend_at(k);
  recycling = *recycled;
  recycling.name = "recycling";
  recycling.alloc = alloc_kept;
  recycling.free = free_kept;
  assert_int_equal(gk_backend_register(&recycling), GK_OK);
  gk_device *opened = NULL;
  assert_int_equal(gk_device_open(&(gk_device_desc){.backend = "recycling", .threads = 1}, &opened), GK_OK);
  return opened;
}

TEST(test_freed_while_bound) {
  static const gk_slot_desc bound[] = {GK_BUFFER(DATA, int), GK_BUFFER(OTHER, int), GK_OWN(FLAG, int, 2)};
  static const gk_task tasks[] = {GK_FILL(FLAG, GK_ONE, 0), GK_FILL(DATA, GK_ONE, 1)};
  const gk_list list = {GK_ABI, "list", tasks, GK_COUNT(tasks), bound, GK_COUNT(bound)};
  gk_device *on = open_recycling();
  gk_graph *graph = NULL, *other = NULL;
  assert_int_equal(gk_graph_create(on, &list, 0, &graph), GK_OK);
  assert_int_equal(gk_graph_create(on, &list, 0, &other), GK_OK);
  int *first = gk_alloc(on, 16, GK_DEVICE_MEMORY), *second = gk_alloc(on, 16, GK_DEVICE_MEMORY);
  gk_bind(graph, DATA, first + 2);
  gk_bind(graph, OTHER, second); /* no task uses it */
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
  assert_int_equal(gk_resize(graph, FLAG, 3), GK_OK);
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
  static const gk_task task = GK_RUN(raise, N, DATA);
  const gk_list list = {GK_ABI, "list", &task, 1, ten, GK_COUNT(ten)};
  gk_graph *graph = NULL;
  if (gk_device_open(&(gk_device_desc){.backend = "openmp", .threads = 1}, &device) != GK_OK ||
      gk_graph_create(device, &list, 0, &graph) != GK_OK || gk_launch(graph, 0) != GK_OK)
    return 2;
  return gk_wait(graph, NULL) == GK_OK ? 0 : 3;
}

TEST(test_overrun_is_seen_by_sanitizers) {
  char path[4096] = "", command[4200], said[20000];
  assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
  snprintf(command, sizeof command, "'%s' overrun 2>&1", path);
  FILE *child = popen(command, "r");
  assert_non_null(child);
  said[fread(said, 1, sizeof said - 1, child)] = 0;
  assert_int_not_equal(pclose(child), 0);
  if (!strstr(said, "heap-buffer-overflow") || !strstr(said, "reach_test.c")) fail_msg("%s", said);
}
#endif

/* Whose memory there isn't room for, is said. */
TEST(test_resize_without_memory) {
  gk_task fill = GK_FILL(DATA, GK_ONE, 7);
  gk_graph *graph = NULL;
  assert_int_equal(run(&fill, 1, &graph), GK_OK);
  assert_int_equal(gk_resize(graph, DATA, (size_t)1 << 55), GK_ERROR_MEMORY);
  if (!strstr(gk_error(), "slot 3 (DATA)")) fail_msg("\"%s\" doesn't name the slot", gk_error());
  gk_graph_destroy(graph);
}

/* The offset of a KERNEL leads to its count; that of a COPY or FILL into what it writes, its count is at the start. */
TEST(test_where_counts_are_read) {
  gk_task kernel = GK_RUN(count_up, COUNTS, DATA), fill = GK_FILL(OTHER, COUNTS, 9);
  gk_task copy = GK_COPY(OTHER, DATA, COUNTS);
  kernel.offset = 4;
  fill.offset = 8;
  copy.offset = 4;
  const gk_task tasks[] = {kernel, fill, copy};
  const gk_list list = {GK_ABI, "list", tasks, GK_COUNT(tasks), slots, GK_COUNT(slots)};
  gk_graph *graph = NULL;
  assert_int_equal(gk_graph_create(device, &list, 0, &graph), GK_OK);
  const int counts[2] = {1, 3};
  assert_int_equal(gk_upload(device, gk_bound(graph, COUNTS), counts, sizeof counts), GK_OK);
  assert_int_equal(gk_launch(graph, 0), GK_OK);
  assert_int_equal(gk_wait(graph, NULL), GK_OK);
  int other[4];
  assert_int_equal(gk_download(device, other, gk_bound(graph, OTHER), sizeof other), GK_OK);
  const int wanted[4] = {0, 3, 9, 0};
  assert_memory_equal(other, wanted, sizeof wanted);
  gk_graph_destroy(graph);
}

int main(int count, char **words) {
#ifdef WITH_ASAN
  if (count > 1 && strcmp(words[1], "overrun") == 0) return overrun();
#endif
  (void)count;
  (void)words;
  return run_all_tests_with(open_device, close_device);
}
