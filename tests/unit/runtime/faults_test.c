/* The device fails at the kth call of its backend, for every k, in three ways: at once, late, and for good. Each
 * failure is an answer with a message, nothing is left behind, and the next try works; on the same device, too, unless
 * it is lost. */
#include "unit/support/runtime.h"
#include "unit/support/runtime_kernels.h"

enum { X = 1, A, N, M, FLAG, BYTES, SUM, WHICH };
enum { PAUSE = 5 };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int),    GK_DEFAULT(A, int, 1), GK_OWN(N, int, 1),
                                     GK_OWN(M, int, 1),    GK_OWN(FLAG, int, 1),  GK_STRUCT_VALUE(BYTES, line),
                                     GK_OWN(SUM, int, 1), GK_OWN(WHICH, int, 1)};
LIST(list, GK_FILL(N, GK_ONE, 3), GK_DO_WHILE(N), GK_FILL(M, GK_ONE, 2), GK_WHILE(M), GK_RUN(decrease, GK_ONE, M),
           GK_IF(N), GK_RUN(add, GK_ONE, X, A), GK_END, GK_END, GK_CHECKPOINT(PAUSE, FLAG),
           GK_RUN(apply, GK_ONE, X, BYTES), GK_END, GK_RUN(decrease, GK_ONE, N), GK_END, GK_SWITCH(WHICH), GK_CASE,
           GK_RUN(total, GK_ONE, X, SUM), GK_END, GK_END, GK_PARALLEL, GK_SECTION, GK_RUN(add, GK_ONE, N, A), GK_END,
           GK_SECTION, GK_WHILE(WHICH), GK_END, GK_RUN(add, GK_ONE, M, A), GK_END, GK_END, GK_COPY(WHICH, M, GK_ONE));
LIST(straight, GK_RUN(add, GK_ONE, SUM, A), GK_RUN(total, GK_ONE, N, SUM));

#define needs(call) \
  do { \
    result = (call); \
    if (result != GK_OK) goto done; \
  } while (0)

/* Launched, paused, its memory made larger, resumed. */
static gk_result use_graph(gk_device *device, int *sum) {
  gk_graph *graph = NULL;
  int *x = NULL;
  char *text = NULL;
  const gk_status *status;
  gk_result result;
  needs(gk_graph_create(device, &list, 0, &graph));
  result = GK_ERROR_MEMORY; /* gk_alloc doesn't say which it was */
  if (!(x = gk_alloc(device, sizeof *x, GK_DEVICE_MEMORY))) goto done;
  needs(gk_bind(graph, X, x));
  needs(gk_bind_bytes(graph, BYTES, &(line){2, 1}, sizeof(line)));
  needs(gk_upload(device, gk_bound(graph, FLAG), &(int){1}, sizeof(int)));
  needs(gk_launch(graph, 0));
  needs(gk_wait(graph, &status));
  assert_int_equal(status->state, GK_YIELDED);
  needs(gk_upload(device, gk_bound(graph, FLAG), &(int){0}, sizeof(int)));
  needs(gk_resize(graph, SUM, 100));
  if ((text = gk_dump(NULL, graph, "text"))) gk_free_text(text);
  needs(gk_launch(graph, PAUSE));
  needs(gk_wait(graph, &status));
  assert_int_equal(status->state, GK_FINISHED);
  needs(gk_download(device, sum, gk_bound(graph, SUM), sizeof *sum));
done:
  if (result != GK_OK && !gk_error()[0]) fail_msg("%s without a message", gk_result_name(result));
  gk_graph_destroy(graph);
  gk_free(device, x);
  return result;
}

/* Many launches in a row, and not one wait in between. */
static gk_result use_queue(gk_device *device, int *sum) {
  gk_graph *graph = NULL;
  gk_result result;
  needs(gk_graph_create(device, &straight, 0, &graph));
  for (int k = 1; k <= 6; ++k) {
    needs(gk_bind_int(graph, A, k));
    needs(gk_launch(graph, 0));
  }
  needs(gk_wait(graph, NULL));
  needs(gk_download(device, sum, gk_bound(graph, SUM), sizeof *sum));
done:
  gk_graph_destroy(graph);
  return result;
}

typedef gk_result (*use)(gk_device *device, int *sum);
static const use uses[] = {use_graph, use_queue};
/* x = 2x + 1 in each of 3 passes, behind 2 additions, and once more where it paused: its first sum is taken then. */
static int wanted[GK_COUNT(uses)];

static gk_result use_from_nothing(size_t which, gk_device *same, int *sum) {
  gk_device *device = same;
  gk_result result = same ? GK_OK : gk_device_open(&(gk_device_desc){.backend = "test_device"}, &device);
  if (result == GK_OK) result = uses[which](device, sum);
  if (!same) gk_device_close(device);
  return result;
}

static const char *const ways[] = {"at once", "late", "lost"};

/* Whether there was a kth call. */
static bool fail_once(size_t which, test_device_how how, unsigned long k, gk_result code, gk_device *same) {
  int sum = -1;
  test_device_fail_how(how);
  test_device_fail_at(k, code);
  gk_result result = use_from_nothing(which, same, &sum);
  bool came = test_device_calls() >= k;
  test_device_fail_at(0, GK_OK);
  char said[300];
  snprintf(said, sizeof said, "use %zu, call %lu, %s, %s: %s, %.150s", which, k, ways[how], gk_result_name(code),
           gk_result_name(result), gk_error());
  /* A failure while an object ends can't be reported. */
  if (result == GK_OK && sum != wanted[which]) fail_msg("%s, and the sum is %d", said, sum);
  bool right = came && (result == code || result == GK_ERROR_MEMORY) && strstr(gk_error(), "test_device");
  if (result != GK_OK && !right) fail_msg("%s", said);
  if (test_device_broken()[0]) fail_msg("%s; %s", said, test_device_broken());
  if (!same && (test_device_leaks() || atomic_load(&own_memory.live))) fail_msg("%s: something is left", said);
  result = use_from_nothing(which, same, &sum);
  if (result != GK_OK || sum != wanted[which]) fail_msg("after %s: %d, %s", said, sum, gk_error());
  return came;
}

#define COUNTED_TEST(test) TEST_WITH(test, begin_counted_backends, end_counted_backends)

/* OpenMP's results are the expected ones. */
COUNTED_TEST(uses_work_on_openmp) {
  gk_device *device = open_named("openmp");
  for (size_t k = 0; k < GK_COUNT(uses); ++k) assert_ok(uses[k](device, &wanted[k]));
  gk_device_close(device);
  assert_int_equal(wanted[1], 21);
  for (size_t k = 0; k < GK_COUNT(uses); ++k) {
    int sum = -1;
    assert_ok(use_from_nothing(k, NULL, &sum));
    assert_int_equal(sum, wanted[k]);
  }
}

COUNTED_TEST(every_call_fails) {
  static const gk_result codes[] = {GK_ERROR_DEVICE, GK_ERROR_MEMORY};
  unsigned long calls = 0;
  for (uint64_t seed = 0; seed < 3; ++seed)
    for (size_t which = 0; which < GK_COUNT(uses); ++which)
      for (int how = TEST_DEVICE_AT_ONCE; how <= TEST_DEVICE_LOST; ++how) {
        test_device_seed(seed);
        const bool lost = how == TEST_DEVICE_LOST;
        unsigned long k = 1;
        while (fail_once(which, (test_device_how)how, k, lost ? GK_ERROR_DEVICE : codes[k % 2], NULL)) ++k;
        calls += k;
      }
  print_message("%lu calls failed\n", calls);
}

COUNTED_TEST(every_call_fails_and_the_device_goes_on) {
  for (int how = TEST_DEVICE_AT_ONCE; how <= TEST_DEVICE_LATE; ++how)
    for (size_t which = 0; which < GK_COUNT(uses); ++which) {
      test_device_seed(7);
      gk_device *device = open_named("test_device");
      int sum;
      assert_ok(uses[which](device, &sum)); /* kernels are ready then */
      unsigned leaks = test_device_leaks();
      for (unsigned long k = 1; fail_once(which, (test_device_how)how, k, GK_ERROR_MEMORY, device); ++k)
        assert_int_equal(test_device_leaks(), leaks);
      gk_device_close(device);
      assert_int_equal(test_device_leaks(), 0);
    }
}

/* One of several launches fails before it took over the bound values: the launches behind it, already queued, have them
 * all the same. */
COUNTED_TEST(launches_go_on_behind_a_failure) {
  test_device_seed(3);
  gk_device *device = open_named("test_device");
  for (unsigned long k = 1; k <= 3; ++k) {
    gk_graph *graph = graph_on(device, &straight, 0);
    test_device_fail_how(TEST_DEVICE_AT_ONCE);
    test_device_fail_at(4 * (k - 1) + 1, GK_ERROR_MEMORY); /* each has a launch, a tape, its state, and the end */
    for (int n = 1; n <= 4; ++n) {
      if (n == 2) assert_ok(gk_bind_int(graph, A, 10));
      assert_ok(gk_launch(graph, 0));
    }
    assert_fails(GK_ERROR_MEMORY, "on request", gk_wait(graph, NULL));
    test_device_fail_at(0, GK_OK);
    run_to_end(graph, 0);
    assert_int_equal(int_at(device, gk_bound(graph, SUM)), k == 1 ? 40 : 31); /* without the kth's 1 or 10 */
    gk_graph_destroy(graph);
  }
  gk_device_close(device);
}

/* Freed memory and the host's memory aren't touched: the launch fails and names the slot. */
COUNTED_TEST(unknown_memory_is_reported) {
  test_device_seed(3);
  gk_device *device = open_named("test_device");
  int *x = int_on(device, 0), own = 0, *const bad[] = {x, &own, (int *)gk_alloc(device, 64, GK_DEVICE_MEMORY) + 64};
  gk_graph *graph = graph_on(device, &straight, 0);
  gk_free(device, x);
  for (size_t k = 0; k < GK_COUNT(bad); ++k) {
    assert_ok(gk_bind(graph, SUM, bad[k]));
    assert_fails(GK_ERROR_DEVICE, "task 0 (add): slot 7 (SUM) points to what is no memory", waited_for(graph, 0));
    assert_int_equal(own, 0);
  }
  assert_ok(gk_resize(graph, SUM, 1));
  run_to_end(graph, 0);
  end_fake(device);
}

COUNTED_TEST(lost_device_answers_until_it_is_closed) {
  gk_device *device = open_named("test_device"), *other = open_named("test_device");
  gk_graph *graph = graph_on(device, &straight, 0), *second;
  int *x = int_on(device, 0), sum = 0;
  test_device_fail_how(TEST_DEVICE_LOST);
  test_device_fail_at(2, GK_ERROR_DEVICE);
  for (int k = 0; k < 5; ++k) assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_DEVICE, "ahead failed on request", gk_wait(graph, NULL));
  test_device_fail_at(0, GK_OK);
  for (int k = 0; k < 3; ++k) {
    assert_fails(GK_ERROR_DEVICE, "the device is lost; close it", waited_for(graph, 0));
    assert_fails(GK_ERROR_DEVICE, "the device is lost", gk_upload(device, x, &k, sizeof k));
    assert_fails(GK_ERROR_DEVICE, "the device is lost", gk_download(device, &sum, x, sizeof sum));
    assert_gives_null("the device is lost", gk_alloc(device, 4, GK_DEVICE_MEMORY));
    assert_fails(GK_ERROR_DEVICE, "the device is lost", gk_graph_create(device, &straight, 0, &second));
  }
  assert_fails(GK_ERROR_DEVICE, "gk_resize: slot 7 (SUM) with 5 elements: backend test_device: alloc: the device is "
               "lost", gk_resize(graph, SUM, 5));
  gk_free(device, x);
  assert_ok(use_graph(other, &sum)); /* another device isn't concerned */
  gk_graph_destroy(graph);
  gk_device_close(device);
  gk_device_close(other);
}

int main(void) { return run_all_tests(); }
