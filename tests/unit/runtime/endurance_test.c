/* A million launches without growth, and a hundred thousand graphs made and ended: counted by gk's own allocator, by
 * malloc's statistics, and by the system's figures of the process. */
#include "unit/support/runtime.h"
#include "unit/support/runtime_kernels.h"
#include <sys/prctl.h>
#include <unistd.h>
#if defined(__has_feature)
#define HAS_FEATURE(feature) __has_feature(feature)
#else
#define HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || HAS_FEATURE(address_sanitizer) || \
  HAS_FEATURE(thread_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Sanitizers make everything many times slower, and keep freed memory: there a tenth is enough, and the system's
 * figures don't count. */
enum { LAUNCHES = SANITIZED ? 100000 : 1000000, GRAPHS = SANITIZED ? 10000 : 100000 };

enum { X = 1, A, N, OWNED, BYTES };
enum { PAUSE = 5 };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(A, int, 1), GK_OWN(N, int, 1),
                                     GK_OWN(OWNED, int, 1), GK_STRUCT_VALUE(BYTES, line)};
LIST(straight, GK_RUN(add, GK_ONE, X, A));
LIST(rich, GK_FILL(N, GK_ONE, 2), GK_DO_WHILE(N), GK_RUN(decrease, GK_ONE, N), GK_CHECKPOINT(PAUSE, OWNED),
           GK_RUN(apply, GK_ONE, X, BYTES), GK_END, GK_END);

typedef struct held { int live; unsigned leaks; size_t malloced, resident; } held;

static size_t resident_bytes(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  unsigned long all = 0, resident = 0;
  if (file && fscanf(file, "%lu %lu", &all, &resident) != 2) resident = 0;
  if (file) fclose(file);
  return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static held what_is_held(void) {
  held h = {.live = atomic_load(&own_memory.live), .leaks = test_device_leaks(), .resident = resident_bytes()};
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  if (!SANITIZED) h.malloced = mallinfo2().uordblks;
#endif
  return h;
}

/* Not a block of gk's. OpenMP's runtime may take something for a team at some time, and malloc keeps pages: what is
 * allowed is far less than a byte per launch or graph, and a page per thousand. */
static void assert_no_growth(held before, const char *what) {
  enum { HABITS = 1 << 20, TEAM = 1 << 15 };
  held after = what_is_held();
  print_message("%s: %d blocks, %zu bytes of malloc's, %zu KiB resident\n", what, after.live, after.malloced,
                after.resident / 1024);
  assert_int_equal(after.live, before.live);
  assert_int_equal(after.leaks, before.leaks);
  if (after.malloced > before.malloced + TEAM)
    fail_msg("malloc's blocks grew from %zu to %zu bytes", before.malloced, after.malloced);
  if (!SANITIZED && after.resident > before.resident + HABITS)
    fail_msg("the process grew from %zu to %zu bytes", before.resident, after.resident);
}

#define LASTING(test) DEVICE_TEST_ON("openmp test_device", test, setup_counted, teardown_counted)

LASTING(a_million_launches) {
  int *x = int_on(device, 0), *y = int_on(device, 0);
  const gk_status *status;
  gk_graph *graph = GRAPH_ON(device, &straight, 0, {X, x});
  held before = {0};
  for (int k = 1; k <= LAUNCHES; ++k) {
    assert_ok(gk_launch(graph, 0));
    if (k % 16 == 0) assert_ok(gk_wait(graph, &status));
    if (k == LAUNCHES / 100) before = what_is_held(); /* warm */
    if (k % 1000 != 0) continue;
    assert_ok(gk_bind(graph, X, k / 1000 % 2 ? y : x));
    assert_ok(gk_resize(graph, OWNED, 1 + (size_t)(k / 1000 % 7)));
  }
  assert_ok(gk_resize(graph, OWNED, 1));
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->launch, LAUNCHES);
  assert_int_equal(int_at(device, x) + int_at(device, y), LAUNCHES); /* each ran, once */
  assert_no_growth(before, "launches");
}

LASTING(a_hundred_thousand_graphs) {
  int *x = int_on(device, 0);
  held before = {0};
  int made = 0;
  for (int k = 1; k <= GRAPHS; ++k, ++made) {
    gk_graph *graph = graph_on(device, k % 2 ? &rich : &straight, 0);
    if (k % 10 == 0) {
      assert_ok(gk_bind(graph, X, x));
      assert_ok(gk_bind_bytes(graph, BYTES, &(line){1, 1}, sizeof(line)));
      assert_ok(gk_launch(graph, 0));
      if (k % 20 == 0) assert_ok(gk_wait(graph, NULL));
    }
    gk_graph_destroy(graph);
    if (k == GRAPHS / 100) before = what_is_held();
  }
  assert_int_equal(made, GRAPHS);
  assert_int_equal(int_at(device, x), GRAPHS / 10); /* all of those that were launched ran before they ended */
  assert_no_growth(before, "graphs");
}

int main(void) {
  (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* the system makes large pages when it likes: that isn't growth */
  return run_all_tests();
}
