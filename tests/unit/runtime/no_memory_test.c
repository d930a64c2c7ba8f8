/* gk's own memory runs out at the kth allocation, for every k: an error with a message, nothing left behind, and the
 * next try works. And a launch allocates nothing. */
#include "unit/support/runtime.h"
#include "unit/support/runtime_kernels.h"
#include <sched.h>

enum { X = 1, A, COUNT, N, OWNED, LINE, FLAG };
enum { PAUSE = 1, LOOP };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int),   GK_DEFAULT(A, int, 1),  GK_DEFAULT(COUNT, int, 1),
                                     GK_BUFFER(N, int),   GK_OWN(OWNED, int, 10), GK_STRUCT_VALUE(LINE, line),
                                     GK_BUFFER(FLAG, int)};
enum { IN_X = 1, IN_COUNT, IN_OWN };
static const gk_slot_desc inner_slots[] = {GK_BUFFER(IN_X, int), GK_DEFAULT(IN_COUNT, int, 1),
                                           GK_OWN(IN_OWN, int, 100)};
LIST_OVER(inner_slots, inner, GK_RUN(total, IN_COUNT, IN_X, IN_OWN));
LIST(list, GK_DO_WHILE(N, .max_iterations = 9, .label = LOOP), GK_RUN(add, COUNT, X, A), GK_INCLUDE(inner, 100, X),
           GK_CHECKPOINT(PAUSE, FLAG), GK_RUN(apply, COUNT, X, LINE), GK_END, GK_PARALLEL, GK_SECTION,
           GK_RUN(decrease, GK_ONE, N), GK_END, GK_SECTION, GK_RUN(decrease, GK_ONE, OWNED), GK_END, GK_END, GK_END);

static void count_device(void *user, const gk_device_entry *entry) { (void)entry, ++*(int *)user; }
static void nothing_wrong(void *user, const gk_problem *problem) { (void)problem, ++*(int *)user; }

/* One thing to try: it answers gk's result, and takes back what it made. */
typedef gk_result (*attempt)(const char *backend, gk_device *device);

static gk_result attempt_open(const char *backend, gk_device *device) {
  gk_result result = gk_device_open(&(gk_device_desc){.backend = backend}, &device);
  assert_true(!device == (result != GK_OK));
  gk_device_close(device);
  return result;
}

static gk_result attempt_list(const char *backend, gk_device *none) {
  (void)backend, (void)none;
  int count = 0;
  return gk_device_list(count_device, &count);
}

static gk_result attempt_check(const char *backend, gk_device *none) {
  (void)backend, (void)none;
  int problems = 0;
  gk_result result = gk_check(&list, NULL, nothing_wrong, &problems);
  assert_int_equal(problems, 0); /* a lack of memory isn't an error in the list */
  return result;
}

static gk_result attempt_create(const char *backend, gk_device *device) {
  (void)backend;
  gk_graph *graph;
  gk_result result = gk_graph_create(device, &list, GK_CANCELLABLE, &graph);
  assert_true(!graph == (result != GK_OK));
  gk_graph_destroy(graph);
  return result;
}

/* A device that hasn't seen the kernels yet, and a list so wide that each of a graph's tables needs a block of its own.
 */
enum { WIDE = 3000 };
static gk_task wide_tasks[3 * WIDE + 1];
static gk_slot_desc wide_slots[WIDE];
static char wide_names[WIDE][16];
static gk_list wide = {GK_ABI, "wide", wide_tasks, GK_COUNT(wide_tasks), wide_slots, WIDE};

static void make_wide(void) {
  size_t n = 0;
  for (int k = 0; k < WIDE; ++k) {
    snprintf(wide_names[k], sizeof wide_names[k], "S%d", k);
    wide_slots[k] = (gk_slot_desc)GK_BUFFER(1, int);
    wide_slots[k].slot = k + 1;
    wide_slots[k].name = wide_names[k];
    wide_tasks[n++] = k % 2 ? (gk_task)GK_DO_WHILE(1) : (gk_task)GK_CHECKPOINT(1, 1);
    wide_tasks[n - 1].label = k + 1;
    wide_tasks[n - 1].flag = k + 1;
    wide_tasks[n++] = (gk_task)GK_RUN(decrease, GK_ONE, 1);
    wide_tasks[n++] = (gk_task)GK_END;
  }
  wide_tasks[n] = (gk_task)GK_RUN(add, GK_ONE, 1, 2);
  wide_slots[1] = (gk_slot_desc)GK_DEFAULT(A, int, 1);
  wide_tasks[3].flag = 1;
}

static gk_result attempt_from_nothing(const char *backend, gk_device *device) {
  gk_graph *graph = NULL;
  gk_result result = gk_device_open(&(gk_device_desc){.backend = backend}, &device);
  if (result == GK_OK) result = gk_graph_create(device, &wide, 0, &graph);
  gk_graph_destroy(graph);
  gk_device_close(device);
  return result;
}

static gk_result attempt_alloc(const char *backend, gk_device *device) {
  (void)backend;
  void *blocks[20];
  int count = 0;
  while (count < 20 && (blocks[count] = gk_alloc(device, 100, GK_DEVICE_MEMORY))) ++count;
  for (int k = 0; k < count; ++k) gk_free(device, blocks[k]);
  return count == 20 ? GK_OK : GK_ERROR_MEMORY;
}

static gk_result attempt_dump(const char *backend, gk_device *device) {
  (void)backend, (void)device;
  static const char *const formats[] = {"text", "dot", "json"};
  for (size_t k = 0; k < GK_COUNT(formats); ++k) {
    char *text = gk_dump(&list, NULL, formats[k]);
    if (!text) return GK_ERROR_MEMORY;
    gk_free_text(text);
  }
  return GK_OK;
}

static void fail_each_time(attempt attempt_it, const char *backend, gk_device *device, const char *what) {
  int live = atomic_load(&own_memory.live);
  unsigned leaks = fake_leaks();
  for (int k = 1;; ++k) {
    fail_own_memory(k);
    const gk_result result = attempt_it(backend, device);
    const bool failed = own_memory_failed();
    if (result != (failed ? GK_ERROR_MEMORY : GK_OK))
      fail_msg("%s on %s, the %dth time: %s, %s", what, backend, k, gk_result_name(result), gk_error());
    if (failed && !strstr(gk_error(), "memory")) fail_msg("%s, the %dth time: \"%s\"", what, k, gk_error());
    assert_ok(attempt_it(backend, device)); /* the next works */
    /* Only kernels that were made ready stay with the device. */
    if (k > 1) assert_int_equal(atomic_load(&own_memory.live), live);
    if (k > 1) assert_int_equal(fake_leaks(), leaks);
    live = atomic_load(&own_memory.live);
    leaks = fake_leaks();
    assert_string_equal(fake_broken(), "");
    if (!failed) return;
  }
}

static int setup(void **state) {
  make_wide();
  return begin_counted_backends(state);
}

TEST_WITH(without_a_device, setup, end_counted_backends) {
  fail_each_time(attempt_check, "any", NULL, "gk_check");
  fail_each_time(attempt_dump, "any", NULL, "gk_dump");
  fail_each_time(attempt_list, "all", NULL, "gk_device_list");
}

TEST_ON_EACH(ALL_BACKENDS, with_a_device, setup, end_counted_backends) {
  const char *backend = *state;
  fail_each_time(attempt_open, backend, NULL, "gk_device_open");
  fail_each_time(attempt_from_nothing, backend, NULL, "all from nothing");
  gk_device *device = open_named(backend);
  fail_each_time(attempt_create, backend, device, "gk_graph_create");
  fail_each_time(attempt_alloc, backend, device, "gk_alloc");
  gk_device_close(device);
}

/* With a graph at hand: growing its memory, and dumping it. */
TEST_ON_EACH(ALL_BACKENDS, with_a_graph, setup, end_counted_backends) {
  gk_device *device = open_named(*state);
  gk_graph *graph = graph_on(device, &list, 0);
  bool done = false;
  for (int k = 1; !done; ++k) {
    fail_own_memory(k);
    char *text = gk_dump(NULL, graph, k % 2 ? "text" : "json");
    done = !own_memory_failed() && text;
    if (!text) assert_says("memory");
    gk_free_text(text);
  }
  for (size_t count = 11; count <= 70; ++count) { /* the table of blocks must grow at some time */
    fail_own_memory(1);
    const gk_result result = gk_resize(graph, OWNED, count);
    assert_int_equal(result, own_memory_failed() ? GK_ERROR_MEMORY : GK_OK);
    assert_ok(gk_resize(graph, OWNED, count));
    assert_non_null(gk_alloc(device, 1, GK_DEVICE_MEMORY)); /* left to gk_device_close */
  }
  fail_own_memory(1); /* what ends needs no memory */
  gk_graph_destroy(graph);
  gk_device_close(device);
  assert_false(own_memory_failed());
}

static void launch_warm(gk_graph *graph, int *n, int *other, int *x, int rounds) {
  for (int k = 0; k < rounds; ++k) {
    BIND(graph, {N, n}, {X, k % 2 ? other : x});
    assert_ok(gk_bind_int(graph, A, k));
    assert_ok(gk_bind_bytes(graph, LINE, &(line){1, k}, sizeof(line)));
    assert_ok(gk_launch(graph, k % 3 ? 0 : PAUSE));
    const gk_status *status;
    gk_result result;
    while ((result = gk_poll(graph, &status)) == GK_NOT_READY) sched_yield();
    assert_ok(result);
    assert_ok(gk_wait(graph, &status));
  }
}

/* Also what OpenMP and others take from malloc is counted, where that is glibc's own: sanitizers have another. */
static atomic_int mallocs;
#if defined(__has_feature)
#define HAS_FEATURE(feature) __has_feature(feature)
#else
#define HAS_FEATURE(feature) 0
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
  !HAS_FEATURE(address_sanitizer) && !HAS_FEATURE(thread_sanitizer)
#define EXPORTED __attribute__((visibility("default")))
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *at, size_t bytes);
static atomic_bool malloc_fails;
EXPORTED void *malloc(size_t bytes) {
  atomic_fetch_add(&mallocs, 1);
  return atomic_load(&malloc_fails) ? NULL : __libc_malloc(bytes);
}
EXPORTED void *calloc(size_t count, size_t bytes) { return atomic_fetch_add(&mallocs, 1), __libc_calloc(count, bytes); }
EXPORTED void *realloc(void *at, size_t bytes) { return atomic_fetch_add(&mallocs, 1), __libc_realloc(at, bytes); }

static void *usual_alloc(void *user, size_t bytes) { return (void)user, __libc_malloc(bytes); }
static void *usual_resize(void *user, void *at, size_t bytes) { return (void)user, __libc_realloc(at, bytes); }
static void usual_free(void *user, void *at) { (void)user, free(at); }

/* The backend hands its part of a dump over in malloc's memory; without it there is the plan. */
TEST(dump_without_the_backends_part) {
  const gk_allocator usual = {NULL, usual_alloc, usual_resize, usual_free};
  assert_ok(gk_set_allocator(&usual));
  gk_device *device = open_named("openmp");
  gk_graph *graph = graph_on(device, &list, 0);
  char *plan = gk_dump(&list, NULL, "text"), *whole = gk_dump(NULL, graph, "text");
  atomic_store(&malloc_fails, true);
  char *part = gk_dump(NULL, graph, "text");
  atomic_store(&malloc_fails, false);
  assert_true(strlen(whole) > strlen(plan));
  assert_string_equal(part, plan);
  gk_free_text(plan);
  gk_free_text(whole);
  gk_free_text(part);
  gk_graph_destroy(graph);
  gk_device_close(device);
  assert_ok(gk_set_allocator(NULL));
}

TEST(malloc_is_counted) {
  int before = atomic_load(&mallocs);
  void *volatile at = malloc(1);
  free(at);
  assert_int_equal(atomic_load(&mallocs), before + 1);
}
#endif

TEST_ON_EACH(ALL_BACKENDS, launches_ask_for_nothing, setup, end_counted_backends) {
  gk_device *device = open_named(*state);
  int *x = int_on(device, 0), *other = int_on(device, 0), *n = int_on(device, 1);
  gk_graph *graph = GRAPH_ON(device, &list, 0, {FLAG, int_on(device, 0)});
  launch_warm(graph, n, other, x, 3);
  const int calls = atomic_load(&own_memory.calls), before = atomic_load(&mallocs);
  launch_warm(graph, n, other, x, 500);
  assert_int_equal(atomic_load(&own_memory.calls), calls);
  assert_int_equal(atomic_load(&mallocs), before);
  end_fake(device);
}

int main(void) { return run_all_tests(); }
