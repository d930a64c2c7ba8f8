#include "runtime/graph.h"
#include "unit/support/await.h"
#include "unit/support/runtime.h"
#include "unit/support/runtime_kernels.h"
#include <sched.h>

enum { X = 1, A, COUNT, N, FLAG, SUM, HOST };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(A, int, 1), GK_DEFAULT(COUNT, int, 1),
                                     GK_BUFFER(N, int), GK_BUFFER(FLAG, int), GK_OWN(SUM, int, 1),
                                     {.slot = HOST, .type = GK_HOST_PTR, .name = "HOST"}};
enum { FIRST = 10, SECOND, LOOP };

LIST(straight, GK_RUN(add, COUNT, X, A));
LIST(loop, GK_DO_WHILE(N, .max_iterations = 50, .label = LOOP), GK_RUN(add, COUNT, X, A), GK_RUN(decrease, GK_ONE, N),
           GK_END, GK_RUN(total, COUNT, X, SUM));
LIST(pausing, GK_RUN(add, COUNT, X, A), GK_CHECKPOINT(FIRST, FLAG), GK_RUN(add, COUNT, X, A), GK_END,
              GK_RUN(add, COUNT, X, A), GK_TARGET(SECOND), GK_RUN(add, COUNT, X, A), GK_END);
LIST(endless, GK_WHILE(FLAG), GK_RUN(add, COUNT, X, A), GK_END, GK_RUN(add, COUNT, X, A),
              GK_RUN_ALWAYS(decrease, GK_ONE, N));

/* ---- results ----------------------------------------------------------------------------------------------------- */

TEST_ON(ALL_BACKENDS, launches_and_waits) {
  int numbers[1000];
  for (int k = 0; k < 1000; ++k) numbers[k] = k;
  int *x = ints_on(device, numbers, 1000), *n = int_on(device, 7);
  gk_graph *graph = GRAPH_ON(device, &loop, 0, {X, x}, {N, n});
  assert_ok(gk_bind_int(graph, COUNT, 1000));
  const gk_status *status = run_to_end(graph, 0);
  assert_int_equal(status->state, GK_FINISHED);
  assert_int_equal(gk_passes(status, LOOP), 7);
  ASSERT_VALUES({gk_bound(graph, SUM), 999 * 500 + 7000}, {x + 999, 1006});
  set_int(device, n, -48); /* it never gets to 0: the bound ends it */
  status = run_to_end(graph, 0);
  assert_int_equal(gk_passes(status, LOOP), 50);
  assert_non_null(status->limit);
}

TEST_ON(ALL_BACKENDS, pauses_and_resumes) {
  int *x = int_on(device, 0), *flag = int_on(device, 1);
  gk_graph *graph = GRAPH_ON(device, &pausing, 0, {X, x}, {FLAG, flag});
  const gk_status *status = run_to_end(graph, 0);
  assert_int_equal(status->state, GK_YIELDED);
  assert_int_equal(status->yielded, FIRST);
  assert_int_equal(int_at(device, x), 2);
  assert_int_equal(int_at(device, flag), 1); /* gk never writes one */
  assert_int_equal(run_to_end(graph, FIRST)->state, GK_YIELDED);
  set_int(device, flag, 0);
  assert_int_equal(run_to_end(graph, FIRST)->state, GK_FINISHED);
  assert_int_equal(int_at(device, x), 6);
  run_to_end(graph, SECOND);
  assert_int_equal(int_at(device, x), 7);
}

/* ---- the queue --------------------------------------------------------------------------------------------------- */

static void launch_16(gk_graph *graph) {
  for (int k = 0; k < 16; ++k) {
    assert_ok(gk_bind_int(graph, A, 1 << k)); /* each launch has its own */
    assert_ok(gk_launch(graph, 0));
  }
  assert_ok(gk_bind_int(graph, A, 1 << 16));
}

TEST_ON(ALL_BACKENDS, sixteen_launches_queue) {
  int *x = int_on(device, 0);
  gk_graph *graph = GRAPH_ON(device, &straight, GK_NONBLOCKING, {X, x});
  fake_hold();
  launch_16(graph);
  const gk_status *status = (const gk_status *)state;
  if (is_fake(device)) {
    assert_fails(GK_ERROR_BUSY, "16 launches of graph straight are under way", gk_launch(graph, 0));
    assert_int_equal(gk_poll(graph, &status), GK_NOT_READY);
    assert_null(status);
  }
  fake_go();
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->launch, 16);
  assert_int_equal(int_at(device, x), 65535);
  run_to_end(graph, 0); /* with what was bound when it was refused */
  assert_int_equal(int_at(device, x), 65535 + 65536);
}

static void *launch_it(void *graph) { return (void *)(uintptr_t)gk_launch(graph, 0); }

static bool waits_for_a_place(gk_graph *graph) { return atomic_load(&graph->waiting) == GKI_ONE_WAITS; }

TEST_ON(ALL_BACKENDS, the_next_launch_waits_for_a_place) {
  int *x = int_on(device, 0);
  gk_graph *graph = GRAPH_ON(device, &straight, 0, {X, x});
  const gk_status *status;
  fake_hold();
  launch_16(graph);
  const pthread_t thread = start_thread(launch_it, graph);
  if (is_fake(device)) await(waits_for_a_place(graph));
  fake_go();
  assert_int_equal((uintptr_t)join_thread(thread), GK_OK);
  assert_int_equal(atomic_load(&graph->waiting), GKI_NONE_WAITS);
  for (int k = 0; k < 100; ++k) assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->launch, 117);
  assert_int_equal(int_at(device, x), 65535 + 101 * 65536);
}

/* It counts as queued. Without that, it would run without end here. */
TEST_ON(ALL_BACKENDS, a_cancel_ends_the_launch_that_waits_for_a_place) {
  int *x = int_on(device, 0), *flag = int_on(device, 1), *n = int_on(device, 0);
  gk_graph *graph = GRAPH_ON(device, &endless, GK_CANCELLABLE, {X, x}, {FLAG, flag}, {N, n});
  const gk_status *status;
  for (int k = 1; k <= 3; ++k) {
    launch_16(graph);
    const pthread_t thread = start_thread(launch_it, graph);
    await(waits_for_a_place(graph));
    assert_fails(GK_ERROR_BUSY, "another thread is in a call", gk_poll(graph, NULL));
    assert_ok(gk_cancel(graph));
    assert_int_equal((uintptr_t)join_thread(thread), GK_OK);
    assert_ok(gk_wait(graph, &status));
    assert_int_equal(status->launch, 17 * k);
    assert_int_equal(status->state, GK_CANCELLED);
    assert_int_equal(int_at(device, n), -17 * k); /* an always-task runs always */
  }
  set_int(device, flag, 0);
  assert_int_equal(run_to_end(graph, 0)->state, GK_FINISHED); /* a later launch isn't affected */
}

static gk_result launch_other(void *other, gk_graph *graph, const gk_status *status) {
  (void)status;
  for (int k = 0; k < 40; ++k)
    if (gk_launch(other, 0) != GK_OK) return GK_ERROR_BUSY;
  return gk_write(graph, FLAG, &(int){0}, 1);
}

/* The graph that gk_run has left holds up nothing. */
TEST_ON(ALL_BACKENDS, on_yield_may_wait_for_a_place) {
  int *x = int_on(device, 0), *y = int_on(device, 0), *flag = int_on(device, 1);
  gk_graph *graph = GRAPH_ON(device, &pausing, 0, {X, x}, {FLAG, flag});
  gk_graph *other = GRAPH_ON(device, &straight, 0, {X, y});
  assert_ok(gk_run(graph, launch_other, other, NULL));
  assert_ok(gk_launch_wait(other, 0, NULL));
  assert_int_equal(int_at(device, y), 41);
}

typedef struct sender { gk_graph *graph; int launches; gk_result result; } sender;
static void *send(void *at) {
  sender *s = at;
  for (int k = 0; k < s->launches && s->result == GK_OK; ++k) s->result = gk_launch(s->graph, 0);
  if (s->result == GK_OK) s->result = gk_launch_wait(s->graph, 0, NULL);
  return NULL;
}

TEST_ON(ALL_BACKENDS, threads_launch_without_a_wait) {
  sender senders[4];
  int *x[4];
  for (int k = 0; k < 4; ++k)
    senders[k] = (sender){GRAPH_ON(device, &straight, 0, {X, x[k] = int_on(device, 0)}), 100 + k, GK_OK};
  RUN_THREADS(send, senders);
  for (int k = 0; k < 4; ++k) {
    assert_int_equal(senders[k].result, GK_OK);
    assert_int_equal(int_at(device, x[k]), 101 + k);
  }
}

TEST_ON(ALL_BACKENDS, one_that_can_yield_must_be_waited_for) {
  int *x = int_on(device, 0), *flag = int_on(device, 0);
  gk_graph *graph = GRAPH_ON(device, &pausing, 0, {X, x}, {FLAG, flag});
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_BUSY, "can yield; call gk_wait first", gk_launch(graph, 0));
  assert_ok(gk_upload(device, flag, &(int){0}, sizeof(int))); /* after the launch */
  assert_fails(GK_ERROR_BUSY, "can yield", gk_launch(graph, FIRST)); /* over, but no call asked for the result */
  assert_ok(gk_wait(graph, NULL));
  assert_ok(gk_launch(graph, 0));
  gk_result result;
  while ((result = gk_poll(graph, NULL)) == GK_NOT_READY) sched_yield();
  assert_ok(result);
  assert_ok(gk_launch(graph, 0));
  gk_graph_destroy(graph); /* while it runs: it is over at the first checkpoint, or at the end */
  int end = int_at(device, x);
  assert_true(end == 10 || end == 12);
}

TEST_ON(ALL_BACKENDS, uploads_and_launches_keep_their_order) {
  int *x = int_on(device, 0), *saved = int_on(device, 0);
  gk_graph *graph = GRAPH_ON(device, &straight, 0, {X, x});
  for (int k = 0; k < 200; ++k) {
    set_int(device, x, 10 * k);
    assert_ok(gk_launch(graph, 0));
    assert_ok(gk_launch(graph, 0));
    assert_ok(gk_copy(device, saved, x, sizeof *x));
    assert_ok(gk_launch(graph, 0));
    ASSERT_VALUES({saved, 10 * k + 2}, {x, 10 * k + 3});
  }
  assert_ok(gk_wait(graph, NULL));
}

TEST_ON(ALL_BACKENDS, freeing_waits_for_what_runs) {
  gk_graph *graph = graph_on(device, &straight, 0);
  for (int k = 0; k < 100; ++k) {
    int *x = int_on(device, 0);
    assert_ok(gk_bind(graph, X, x));
    assert_ok(gk_launch(graph, 0));
    gk_free(device, x); /* of a launch that may not have begun */
  }
  assert_ok(gk_wait(graph, NULL));
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

TEST_ON(ALL_BACKENDS, unknown_label_lists_the_labels) {
  int *x = int_on(device, 0), *flag = int_on(device, 0);
  gk_graph *graph = GRAPH_ON(device, &pausing, 0, {X, x}, {FLAG, flag}), *other = graph_on(device, &straight, 0);
  assert_invalid("graph pausing has no checkpoint or YIELD with label 77; it has FIRST (10), SECOND (11)",
                 gk_launch(graph, 77));
  assert_invalid("has no checkpoint or YIELD with label -1; it has none; give 0, the top", gk_launch(other, -1));
  assert_invalid("gk_wait: graph pausing was not launched yet; its last launch was refused: gk_launch: "
                 "graph pausing has no checkpoint or YIELD with label 77", gk_wait(graph, NULL));
  run_to_end(graph, SECOND);
}

TEST_ON(ALL_BACKENDS, loops_label_is_no_target) {
  assert_invalid("no checkpoint or YIELD with label 12", gk_launch(graph_on(device, &loop, 0), LOOP));
}

TEST_ON(ALL_BACKENDS, streams_are_refused_where_there_are_none) {
  gk_graph *graph = GRAPH_ON(device, &straight, 0, {X, int_on(device, 0)});
  assert_fails(GK_ERROR_UNSUPPORTED, "has no streams; use gk_launch", gk_launch_on(graph, 0, NULL));
  assert_invalid("gk_wait: graph straight was not launched yet", gk_wait(graph, NULL));
  assert_invalid("gk_poll: graph straight was not launched yet", gk_poll(graph, NULL));
}

/* ---- cancelling -------------------------------------------------------------------------------------------------- */

static void *cancel_later(void *at) {
  for (int k = 0; k < 50; ++k) sched_yield();
  assert_ok(gk_cancel(at));
  return NULL;
}

TEST_ON(ALL_BACKENDS, cancel_ends_an_endless_loop) {
  int *x = int_on(device, 0), *flag = int_on(device, 1), *n = int_on(device, 0);
  gk_graph *graph = graph_on(device, &endless, GK_CANCELLABLE);
  assert_ok(gk_cancel(graph)); /* nothing to cancel */
  BIND(graph, {X, x}, {FLAG, flag}, {N, n});
  const gk_status *status;
  for (int k = 0; k < 2; ++k) assert_ok(gk_launch(graph, 0)); /* what is queued ends the same way */
  const pthread_t thread = start_thread(cancel_later, graph);
  assert_ok(gk_wait(graph, &status));
  join_thread(thread);
  assert_int_equal(status->state, GK_CANCELLED);
  assert_int_equal(status->yielded, 0);
  assert_int_equal(int_at(device, n), -2); /* an always-task runs always */
  set_int(device, flag, 0);
  int before = int_at(device, x);
  assert_ok(gk_cancel(graph)); /* over: later launches aren't affected */
  assert_int_equal(run_to_end(graph, 0)->state, GK_FINISHED);
  assert_int_equal(int_at(device, x), before + 1);
  set_int(device, flag, 1);
  assert_ok(gk_launch(graph, 0));
  gk_graph_destroy(graph); /* cancels */
}

/* Unused memory, and a graph with memory of its own, can be had while a launch runs. */
TEST_ON("openmp", fresh_memory_waits_for_no_launch) {
  int *x = int_on(device, 0), *flag = int_on(device, 1), *n = int_on(device, 0);
  gk_graph *graph = GRAPH_ON(device, &endless, GK_CANCELLABLE, {X, x}, {FLAG, flag}, {N, n});
  assert_ok(gk_launch(graph, 0));
  const int *fresh = gk_alloc(device, 2 * sizeof *fresh, GK_DEVICE_MEMORY);
  gk_graph *other = graph_on(device, &loop, 0);
  assert_ok(gk_resize(other, X, 1));
  assert_ok(gk_resize(graph, X, 1));
  assert_int_equal(gk_poll(graph, NULL), GK_NOT_READY);
  assert_true(fresh && fresh[0] == 0 && fresh[1] == 0);
  assert_int_equal(*(int *)gk_bound(other, X), 0);
  assert_int_equal(*(int *)gk_bound(other, SUM), 0);
  assert_ok(gk_cancel(graph));
  assert_ok(gk_wait(graph, NULL));
}

TEST_ON(ALL_BACKENDS, cancel_must_be_asked_for) {
  assert_fails(GK_ERROR_UNSUPPORTED, "graph straight was created without GK_CANCELLABLE",
               gk_cancel(graph_on(device, &straight, 0)));
}

/* ---- calls that call gk ------------------------------------------------------------------------------------------ */

static struct { gk_device *device, *elsewhere; gk_graph *graph, *other; int *x, *far; } called;
static char not_refused[128];

static void expect_refused(bool refused, const char *call) {
  if (refused && strstr(gk_error(), call) && strstr(gk_error(), "own device")) return;
  snprintf(not_refused, sizeof not_refused, "%s: %s", call, gk_error());
}

CALLED(call_gk) {
  gk_device *device = called.device;
  gk_graph *none = NULL;
  int value = 3;
  expect_refused(!gk_alloc(device, 4, GK_DEVICE_MEMORY), "gk_alloc: ");
  gk_free(device, called.x);
  expect_refused(true, "gk_free: ");
  expect_refused(gk_upload(device, called.x, &value, sizeof value) == GK_ERROR_INVALID, "gk_upload: ");
  expect_refused(gk_copy(device, called.x, called.x, sizeof value) == GK_ERROR_INVALID, "gk_copy: ");
  expect_refused(gk_graph_create(device, &loop, 0, &none) == GK_ERROR_INVALID, "gk_graph_create: ");
  expect_refused(!gk_dump(NULL, called.other, "text"), "gk_dump: ");
  expect_refused(gk_resize(called.other, X, 2) == GK_ERROR_INVALID, "gk_resize: ");
  expect_refused(gk_launch(called.other, 0) == GK_ERROR_INVALID, "gk_launch: ");
  expect_refused(gk_wait(called.other, NULL) == GK_ERROR_INVALID, "gk_wait: ");
  expect_refused(gk_wait(called.graph, NULL) == GK_ERROR_INVALID, "gk_wait: ");
  gk_graph_destroy(called.other);
  expect_refused(true, "gk_graph_destroy: ");
  gk_device_close(device);
  expect_refused(true, "gk_device_close: ");
  if (gk_upload(called.elsewhere, called.far, &value, sizeof value) != GK_OK) return GK_ERROR_DEVICE;
  return gk_download(device, &value, called.x, sizeof value);
}

/* It would wait for itself. It may call another device. */
TEST_ON("fake_in_process openmp", calls_of_its_own_device_are_refused) {
  LIST(list, GK_RUN(add, COUNT, X, A), GK_CALL(call_gk, X));
  called.device = device;
  called.elsewhere = open_named("openmp");
  called.x = int_on(device, 0);
  called.far = int_on(called.elsewhere, 0);
  called.graph = GRAPH_ON(device, &list, 0, {X, called.x});
  called.other = GRAPH_ON(device, &straight, 0, {X, called.x});
  not_refused[0] = 0;
  for (int k = 1; k <= 2; ++k) {
    assert_invalid("gk_download: ", waited_for(called.graph, 0));
    if (is_of(device, "openmp")) assert_says("task 1 (call_gk) calls it");
    assert_string_equal(not_refused, "");
    assert_int_equal(int_at(device, called.x), k);
    assert_int_equal(int_at(called.elsewhere, called.far), 3);
  }
  run_to_end(called.other, 0);
  gk_device_close(called.elsewhere);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */


static void *wait_for_it(void *at) {
  gk_result result;
  while ((result = gk_wait(at, NULL)) == GK_ERROR_BUSY) sched_yield(); /* the other polls */
  return (void *)(uintptr_t)result;
}

TEST_ON(FAKE_BACKENDS, second_thread_in_a_graph_is_busy) {
  int *x = int_on(device, 0);
  gk_graph *graph = GRAPH_ON(device, &straight, 0, {X, x});
  fake_hold();
  assert_ok(gk_launch(graph, 0));
  const pthread_t thread = start_thread(wait_for_it, graph);
  gk_result result;
  while ((result = gk_poll(graph, NULL)) == GK_NOT_READY) sched_yield(); /* until the other is inside */
  assert_fails(GK_ERROR_BUSY, "another thread is in a call of graph straight", result);
  assert_fails(GK_ERROR_BUSY, "gk_bind_int: another thread", gk_bind_int(graph, A, 3));
  fake_go();
  assert_int_equal((uintptr_t)join_thread(thread), GK_OK);
  assert_ok(gk_bind_int(graph, A, 3));
  assert_int_equal((uintptr_t)join_thread(start_thread(launch_it, graph)), GK_OK); /* one after the other is fine */
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(device, x), 4);
}

typedef struct user { gk_device *device; const gk_list *list; int seed; } user;

static void *use_a_graph(void *at) {
  const user *u = at;
  int *x = int_on(u->device, 0), *n = int_on(u->device, 0), sum = 0;
  gk_graph *graph = GRAPH_ON(u->device, u->list, 0, {X, x}, {N, n});
  for (int k = 1; k < 120; ++k) {
    assert_ok(gk_bind_int(graph, A, k * u->seed));
    set_int(u->device, n, 3);
    assert_ok(gk_launch(graph, 0));
    sum += (u->list == &loop ? 3 : 1) * k * u->seed;
    if (k % 3 == 0) assert_ok(gk_wait(graph, NULL));
    if (k % 7 == 0) assert_int_equal(int_at(u->device, x), sum);
  }
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(u->device, x), sum);
  gk_graph_destroy(graph);
  return NULL;
}

TEST_ON(ALL_BACKENDS, graphs_of_several_threads_share_a_device) {
  user users[] = {{device, &straight, 1}, {device, &loop, 2}, {device, &loop, 3}};
  RUN_THREADS(use_a_graph, users);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

TEST_ON(FAKE_BACKENDS, failed_launch_is_told_by_the_next_wait) {
  gk_graph *graph = GRAPH_ON(device, &straight, 0, {X, int_on(device, 0)});
  const fake_entry in_process = is_of(device, "fake_in_process") ? FAKE_RUN : FAKE_SUBMIT;
  const fake_entry entry = is_of(device, "fake_native") ? FAKE_WAIT : in_process;
  for (int silent = 0; silent < 2; ++silent) {
    fake_fail(entry, 2, GK_ERROR_DEVICE, silent);
    for (int k = 0; k < 3; ++k) assert_ok(gk_launch(graph, 0));
    const gk_status *status = (const gk_status *)state;
    assert_fails(GK_ERROR_DEVICE, silent ? "failed to run graph straight and didn't say why" : "failed on request",
                 gk_wait(graph, &status));
    assert_null(status);
    assert_fails(GK_ERROR_DEVICE, silent ? "didn't say why" : "failed on request", gk_wait(graph, NULL)); /* still */
    status = run_to_end(graph, 0);
    assert_int_equal(status->state, GK_FINISHED);
    assert_int_equal(status->launch, 4 * (silent + 1));
  }
}

TEST_ON("fake_native fake_batched", launch_that_does_not_start_is_told) {
  int *x = int_on(device, 0);
  gk_graph *graph = GRAPH_ON(device, &straight, 0, {X, x});
  fake_fail(FAKE_LAUNCH, 1, GK_ERROR_DEVICE, false);
  assert_fails(GK_ERROR_DEVICE, "fake: launch failed on request", waited_for(graph, 0));
  run_to_end(graph, 0);
  assert_int_equal(int_at(device, x), 1);
}

/* Values bound before a failed launch may not have reached the device: the next launch gets them again. */
TEST_ON("fake_native fake_batched", bindings_of_a_failed_launch_come_again) {
  gk_graph *graph = GRAPH_ON(device, &straight, 0, {X, int_on(device, 0)});
  fake_fail(FAKE_LAUNCH, 1, GK_ERROR_MEMORY, false);
  assert_fails(GK_ERROR_MEMORY, "fake: launch failed", waited_for(graph, 0));
  assert_int_equal(run_to_end(graph, 0)->applied, GK_BY_TABLE);
  assert_int_equal(run_to_end(graph, 0)->applied, GK_UNCHANGED);
}

/* The failure of an earlier launch isn't given as the reason for refusing a later one. */
TEST_ON("fake_native", failures_are_not_mixed_up) {
  int *x = int_on(device, 0);
  gk_graph *graph = GRAPH_ON(device, &straight, 0, {X, x});
  fake_fail(FAKE_WAIT, 1, GK_ERROR_DEVICE, false);
  for (int k = 0; k < 16; ++k) assert_ok(gk_launch(graph, 0));
  assert_int_equal(int_at(device, x), 16); /* all are over */
  assert_ok(gk_bind(graph, X, NULL));
  assert_invalid("slot 1 (X) is not bound", gk_launch(graph, 0));
  assert_fails(GK_ERROR_DEVICE, "fake: wait failed", gk_wait(graph, NULL));
}

/* A run fails in the middle: the runs submitted before are over when gk_wait reports it, and memory may be freed. */
TEST_ON("fake_batched", failure_leaves_nothing_under_way) {
  gk_graph *graph = GRAPH_ON(device, &pausing, GK_ISOLATE, {X, int_on(device, 0)}, {FLAG, int_on(device, 0)});
  for (unsigned k = 1; k < 10; ++k) {
    fake_fail(FAKE_ENTRIES, k, GK_ERROR_DEVICE, false);
    const gk_result result = waited_for(graph, 0);
    fake_fail(FAKE_ENTRIES, 0, GK_OK, false);
    if (result != GK_OK) assert_fails(GK_ERROR_DEVICE, "failed on request", result);
    run_to_end(graph, 0); /* the backend sees whether the one before is over */
    assert_string_equal(fake_broken(), "");
  }
}

CALLED(refuse) { return (gk_result) * (int *)args[1].ptr; }

LIST(call, GK_RUN(add, COUNT, X, A), GK_CALL(refuse, X, HOST), GK_RUN(add, COUNT, X, A));

TEST_ON(ALL_BACKENDS, calls_answer_is_the_launchs) {
  int *x = int_on(device, 0), refuses = GK_ERROR_UNSUPPORTED;
  gk_graph *graph = GRAPH_ON(device, &call, 0, {X, x}, {HOST, &refuses});
  assert_fails(GK_ERROR_UNSUPPORTED, "refuse", waited_for(graph, 0));
  refuses = GK_NOT_READY; /* would mean that it still runs, and for ever */
  assert_invalid("", waited_for(graph, 0));
  assert_invalid("", gk_poll(graph, NULL));
  refuses = GK_OK;
  run_to_end(graph, 0);
  assert_int_equal(int_at(device, x), 4);
}

/* ---- a native backend's entries, while other graphs use the device's stream -------------------------------------- */

static void *upload_often(void *at) {
  void **both = at;
  static char host[1 << 16];
  for (int k = 0; k < 300; ++k) assert_ok(gk_upload(both[0], both[1], host, sizeof host));
  return NULL;
}

/* The worker may still be launching when the host comes to wait or to dump: gk_backend.h promises one at a time. */
TEST_ON(ALL_BACKENDS, entries_of_a_graph_come_one_by_one) {
  int *x = int_on(device, 0);
  char *big = gk_alloc(device, 1 << 16, GK_DEVICE_MEMORY);
  gk_graph *graph = GRAPH_ON(device, &straight, 0, {X, x});
  const pthread_t thread = start_thread(upload_often, (void *[]){device, big});
  for (int k = 0; k < 60; ++k) {
    for (int j = 0; j < 8; ++j) assert_ok(gk_launch(graph, 0));
    gk_result polled = gk_poll(graph, NULL);
    assert_true(polled == GK_OK || polled == GK_NOT_READY);
    if (k % 4 == 0) gk_free_text(gk_dump(NULL, graph, "text"));
    if (k % 3 == 0) assert_ok(gk_wait(graph, NULL));
  }
  assert_ok(gk_wait(graph, NULL));
  join_thread(thread);
  assert_int_equal(int_at(device, x), 480);
}

int main(void) { return run_all_tests(); }
