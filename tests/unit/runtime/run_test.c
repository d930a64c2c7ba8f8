/* Launches for which the caller waits in the same call: gk_launch_wait. Meant for ThreadSanitizer, too. */
#include "unit/support/await.h"
#include "unit/support/runtime.h"
#include "unit/support/runtime_kernels.h"
#include <sched.h>

/* ---- tasks that note where they run ------------------------------------------------------------------------------ */

static pthread_t kernel_at, call_at;
static atomic_int begun;
static atomic_bool shut; /* `noting` waits before it ends */

HOST_KERNEL(run_noting) {
  kernel_at = pthread_self();
  atomic_fetch_add(&begun, 1);
  await(!atomic_load(&shut));
  ++*(int *)args[0].ptr;
}
static const gk_param noting_params[] = {{.name = "x", .element = "int", .element_bytes = sizeof(int),
                                          .element_alignment = sizeof(int), .type = GK_PTR,
                                          .access = GK_ACCESS_INOUT}};
static const gk_kernel noting = {.name = "noting", .params = noting_params, .param_count = 1, .host = run_noting};

CALLED(note_call) {
  call_at = pthread_self();
  return GK_OK;
}
CALLED(fail_it) { return GK_ERROR_DEVICE; }

enum { X = 1, A, FULL, ON, N = 3, AT = 5, LATER };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 1), GK_DEFAULT(A, int, 1), GK_OWN(FULL, int, 1),
                                     GK_OWN(ON, int, 1)};
LIST(plain, GK_RUN(add, GK_ONE, X, A));
LIST(noted, GK_RUN(noting, GK_ONE, X), GK_CALL(note_call, A));
LIST(paused, GK_RUN(add, GK_ONE, X, A), GK_CHECKPOINT(AT, FULL), GK_RUN(add, GK_ONE, X, A), GK_END);
LIST(endless, GK_WHILE(ON), GK_RUN(noting, GK_ONE, X), GK_END);
LIST(failing, GK_CALL(fail_it, A));

/* ---- gk_launch_wait ---------------------------------------------------------------------------------------------- */

TEST_ON(ALL_BACKENDS, launch_wait_runs_and_reports) {
  gk_graph *graph = graph_on(device, &paused, 0);
  int *x = gk_bound(graph, X), *full = gk_bound(graph, FULL);
  const gk_status *status;
  SET_VALUES({full, 1});
  assert_ok(gk_launch_wait(graph, 0, &status));
  assert_int_equal(status->launch, 1);
  assert_int_equal(status->state, GK_YIELDED);
  assert_int_equal(status->yielded, AT);
  ASSERT_VALUES({x, 2});
  SET_VALUES({full, 0});
  assert_ok(gk_launch_wait(graph, status->yielded, &status));
  assert_int_equal(status->launch, 2);
  assert_int_equal(status->state, GK_FINISHED);
  ASSERT_VALUES({x, 3});
  assert_ok(gk_launch_wait(graph, 0, NULL));
  ASSERT_VALUES({x, 5});
}

/* A slot that was bound goes into this launch, and launches before it are waited for. */
TEST_ON(ALL_BACKENDS, launch_wait_follows_earlier_launches) {
  gk_graph *graph = graph_on(device, &plain, 0);
  const gk_status *status;
  for (int k = 1; k <= 40; ++k) {
    assert_ok(gk_bind_int(graph, A, k));
    if (k % 4) assert_ok(gk_launch(graph, 0));
    else assert_ok(gk_launch_wait(graph, 0, &status));
    if (k % 4 == 0) assert_int_equal(status->launch, k);
  }
  assert_int_equal(int_at(device, gk_bound(graph, X)), 40 * 41 / 2);
}

TEST_ON(ALL_BACKENDS, refused_launch_wait) {
  gk_graph *graph = graph_on(device, &paused, 0);
  const gk_status *status = (const gk_status *)state;
  assert_invalid("gk_launch_wait: graph paused has no checkpoint with label 9; it has AT (5)",
                 gk_launch_wait(graph, 9, &status));
  assert_null(status);
  assert_invalid("its last launch was refused: gk_launch_wait: ", gk_wait(graph, NULL));
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_BUSY, "gk_launch_wait: graph paused was launched and not waited for",
               gk_launch_wait(graph, 0, &status));
  assert_null(status);
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->launch, 1);
}

/* The launch itself fails, or an earlier one that no wait has reported. */
TEST_ON("openmp test_device fake_in_process fake_batched", failed_launch_wait) {
  gk_graph *graph = graph_on(device, &failing, 0);
  const gk_status *status = (const gk_status *)state;
  assert_fails(GK_ERROR_DEVICE, "fail_it", gk_launch_wait(graph, 0, &status));
  assert_null(status);
}

static void *open_when_queued(void *at) {
  gki_worker *worker = &((gk_device *)at)->worker;
  bool queued = false;
  while (!queued) {
    pthread_mutex_lock(&worker->lock);
    queued = worker->first && worker->first->here;
    pthread_mutex_unlock(&worker->lock);
    sched_yield();
  }
  atomic_store(&shut, false);
  return NULL;
}

/* Kernels and calls run on the thread that waits, also behind a launch that is under way on the device's thread. */
TEST_ON("openmp fake_in_process", launch_wait_runs_on_the_calling_thread) {
  gk_graph *graph = graph_on(device, &noted, 0), *before = graph_on(device, &noted, 0);
  assert_ok(gk_launch_wait(graph, 0, NULL));
  assert_true(pthread_equal(kernel_at, pthread_self()));
  assert_true(pthread_equal(call_at, pthread_self()));
  for (int k = 0; k < 20; ++k) {
    atomic_store(&begun, 0);
    atomic_store(&shut, true);
    assert_ok(gk_launch(before, 0));
    await(atomic_load(&begun) == 1);
    assert_false(pthread_equal(kernel_at, pthread_self()));
    const pthread_t thread = start_thread(open_when_queued, device);
    assert_ok(gk_launch_wait(graph, 0, NULL));
    assert_true(pthread_equal(kernel_at, pthread_self()));
    assert_true(pthread_equal(call_at, pthread_self()));
    join_thread(thread);
    assert_ok(gk_wait(before, NULL));
  }
}

/* Also if the launch starts the team, whose threads may be moved to other cores. */
TEST(launch_wait_keeps_the_affinity) {
  enum { MANY = 1 << 20 };
  static const gk_slot_desc many_slots[] = {GK_OWN(X, int, MANY), GK_DEFAULT(A, int, 1), GK_DEFAULT(N, int, MANY)};
  LIST_OVER(many_slots, many, GK_RUN(add, N, X, A));
  cpu_set_t all, one, after;
  gk_device *device = NULL;
  begin_backends();
  assert_ok(gk_device_open(&(gk_device_desc){.backend = "openmp", .threads = 2}, &device));
  gk_graph *graph = graph_on(device, &many, 0);
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  CPU_SET((size_t)sched_getcpu(), &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  for (int k = 0; k < 30; ++k) assert_ok(gk_launch_wait(graph, 0, NULL));
  assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  assert_true(CPU_EQUAL(&one, &after));
  gk_graph_destroy(graph);
  gk_device_close(device);
}

static void *cancel_when_begun(void *graph) {
  await(atomic_load(&begun) >= 3);
  return (void *)(uintptr_t)gk_cancel(graph);
}

TEST_ON(ALL_BACKENDS, launch_wait_is_cancelled_from_another_thread) {
  gk_graph *graph = graph_on(device, &endless, GK_CANCELLABLE);
  const gk_status *status;
  set_int(device, gk_bound(graph, ON), 1);
  for (int k = 0; k < 3; ++k) {
    atomic_store(&begun, 0);
    const pthread_t thread = start_thread(cancel_when_begun, graph);
    assert_ok(gk_launch_wait(graph, 0, &status));
    assert_int_equal((uintptr_t)join_thread(thread), GK_OK);
    assert_int_equal(status->state, GK_CANCELLED);
    assert_int_equal(gk_passes(status, 0), atomic_load(&begun));
  }
  set_int(device, gk_bound(graph, ON), 0);
  assert_ok(gk_launch_wait(graph, 0, &status)); /* not affected */
  assert_int_equal(status->state, GK_FINISHED);
}

typedef struct launcher { gk_device *device; int number; int x; char wrong[300]; } launcher;

/* gk_launch, gk_launch_wait, gk_upload in turns. */
static void *launch_in_each_way(void *at) {
  launcher *l = at;
  gk_graph *graph = NULL;
  gk_result result = gk_graph_create(l->device, &plain, 0, &graph);
  for (int k = 0; k < 300 && result == GK_OK; ++k) {
    const int zero = 0;
    if (k == 150) result = gk_upload(l->device, gk_bound(graph, X), &zero, sizeof zero);
    else if ((k + l->number) % 3) result = gk_launch_wait(graph, 0, NULL);
    else result = gk_launch(graph, 0);
    if (result == GK_OK && k % 10 == 0) result = gk_wait(graph, NULL);
  }
  if (result == GK_OK) result = gk_download(l->device, &l->x, gk_bound(graph, X), sizeof l->x);
  if (result != GK_OK) snprintf(l->wrong, sizeof l->wrong, "%s", gk_error());
  gk_graph_destroy(graph);
  return NULL;
}

TEST_ON(ALL_BACKENDS, threads_share_a_device) {
  launcher launchers[4];
  for (int k = 0; k < 4; ++k) launchers[k] = (launcher){.device = device, .number = k};
  RUN_THREADS(launch_in_each_way, launchers);
  for (int k = 0; k < 4; ++k) {
    assert_string_equal(launchers[k].wrong, "");
    assert_int_equal(launchers[k].x, 149);
  }
}

int main(void) { return run_all_tests(); }
