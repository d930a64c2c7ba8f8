/* Launches for which the caller waits in the same call: gk_launch_wait, gk_run. Meant for ThreadSanitizer, too. */
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
  assert_invalid("gk_launch_wait: graph paused has no checkpoint or YIELD with label 9; it has AT (5)",
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

/* ---- gk_run ------------------------------------------------------------------------------------------------------ */

enum { LOOP = 7, GROW, ROOM, COUNT, DATA };
static const gk_slot_desc grown_slots[] = {GK_OWN(X, int, 1), GK_DEFAULT(A, int, 1), GK_OWN(FULL, int, 1),
                                           GK_DEFAULT(ROOM, int, 0), GK_OWN(COUNT, int, 1), GK_BUFFER(DATA, int)};
HOST_KERNEL(run_demand) {
  const int passes = ++*(int *)args[0].ptr;
  if (passes > args[2].i32) *(int *)args[1].ptr = 1;
}
HOST_KERNEL(run_decide) { *(int *)args[1].ptr = *(int *)args[0].ptr > args[2].i32; }
#define INT_PARAM(n, how) \
  {.name = #n, .element = "int", .element_bytes = sizeof(int), .element_alignment = sizeof(int), .type = GK_PTR, \
   .access = GK_ACCESS_##how}
#define INT_VALUE(n) {.name = #n, .element = "int", .element_bytes = sizeof(int), .element_alignment = sizeof(int), \
                      .type = GK_I32, .access = GK_ACCESS_VALUE}
static const gk_param demand_params[] = {INT_PARAM(count, INOUT), INT_PARAM(full, INOUT), INT_VALUE(room)};
static const gk_param decide_params[] = {INT_PARAM(count, IN), INT_PARAM(full, OUT), INT_VALUE(room)};
static const gk_kernel demand = {.name = "demand", .params = demand_params, .param_count = 3, .host = run_demand};
static const gk_kernel decide = {.name = "decide", .params = decide_params, .param_count = 3, .host = run_decide};

/* A loop of four passes, each of which wants one element more than the one before. */
LIST_OVER(grown_slots, growing, GK_FILL(X, GK_ONE, 4), GK_FILL(COUNT, GK_ONE, 0), GK_DO_WHILE(X, .label = LOOP),
          GK_RUN(demand, GK_ONE, COUNT, FULL, ROOM), GK_CHECKPOINT(GROW, FULL), GK_END, GK_RUN(decrease, GK_ONE, X),
          GK_END);
/* Its block writes the flag anew: nobody needs to clear it. */
LIST_OVER(grown_slots, deciding, GK_FILL(COUNT, GK_ONE, 3), GK_CHECKPOINT(GROW, FULL),
          GK_RUN(decide, GK_ONE, COUNT, FULL, ROOM), GK_END);
/* Its block keeps the flag, which the kernel sets at its first run. */
LIST_OVER(grown_slots, keeping, GK_CHECKPOINT(GROW, FULL), GK_RUN(demand, GK_ONE, COUNT, FULL, ROOM), GK_END);

typedef struct mender {
  int calls, room;
  bool clears;
  gk_result answer;
  gk_result (*also)(gk_graph *graph);
  gk_status seen;
} mender;

static gk_result fix(void *user, gk_graph *graph, const gk_status *status) {
  mender *m = user;
  const int zero = 0;
  ++m->calls;
  m->seen = *status;
  gk_result result = gk_bind_int(graph, ROOM, ++m->room);
  if (result == GK_OK) result = gk_resize(graph, DATA, (size_t)m->room);
  if (result == GK_OK && m->clears) result = gk_write(graph, FULL, &zero, 1);
  if (result == GK_OK && m->also) return m->also(graph);
  return result == GK_OK ? m->answer : result;
}

TEST_ON(ALL_BACKENDS, run_resumes_until_the_end) {
  gk_graph *graph = graph_on(device, &growing, 0);
  const gk_status *totals;
  for (int k = 0; k < 2; ++k) {
    mender m = {.clears = true};
    assert_ok(gk_bind_int(graph, ROOM, 0));
    assert_ok(gk_run(graph, fix, &m, &totals));
    assert_int_equal(m.calls, 4);
    assert_int_equal(m.seen.state, GK_YIELDED);
    assert_int_equal(m.seen.yielded, GROW);
    assert_int_equal(m.seen.launch, 5 * k + 4);
    assert_int_equal(totals->launch, 5 * k + 5);
    assert_int_equal(totals->state, GK_FINISHED);
    assert_int_equal(totals->yielded, 0);
    assert_string_equal(totals->yielded_name, "");
    assert_int_equal(totals->loop_count, 1);
    assert_int_equal(gk_passes(totals, LOOP), 4);
    assert_int_equal(totals->loops[0].label, LOOP);
    assert_true(totals->checkpoints[0].ran);
    assert_null(totals->limit);
    assert_int_equal(totals->applied, GK_BY_TABLE);
    int count = 0;
    assert_ok(gk_read(graph, COUNT, &count, 1));
    assert_int_equal(count, 4);
  }
  mender calm = {.room = 100}; /* no yield */
  assert_ok(gk_bind_int(graph, ROOM, 100));
  assert_ok(gk_run(graph, fix, &calm, NULL));
  assert_int_equal(calm.calls, 0);
}

/* The block decides the flag anew each time, so several yields in a row are no mistake. */
TEST_ON(ALL_BACKENDS, run_of_a_block_that_writes_its_flag) {
  gk_graph *graph = graph_on(device, &deciding, 0);
  mender m = {0};
  assert_ok(gk_run(graph, fix, &m, NULL));
  assert_int_equal(m.calls, 3);
}

/* An always-task clears the flag in each launch, and the block sets it again while the room is less than 3. */
LIST_OVER(grown_slots, prologue, {.op = GK_OP_FILL, .bits = GK_ALWAYS, .name = "FULL = 0", .args = {FULL}},
          {.op = GK_OP_FILL, .bits = GK_ALWAYS, .name = "COUNT = 2", .args = {COUNT}, .pattern = 2},
          GK_CHECKPOINT(GROW, FULL), GK_RUN(demand, GK_ONE, COUNT, FULL, ROOM), GK_END);

TEST_ON(ALL_BACKENDS, run_with_a_flag_that_an_always_task_clears) {
  mender m = {0};
  assert_ok(gk_run(graph_on(device, &prologue, 0), fix, &m, NULL));
  assert_int_equal(m.calls, 3);
}

TEST_ON(ALL_BACKENDS, flag_that_nobody_clears) {
  gk_graph *graph = graph_on(device, &keeping, 0);
  mender m = {.room = 5};
  const gk_status *totals = (const gk_status *)state;
  assert_invalid("gk_run: graph keeping yielded at GROW (8) twice without a pass in between, and its flag in slot 3 "
                 "(FULL) is still 1; clear it in on_yield", gk_run(graph, fix, &m, &totals));
  assert_null(totals);
  assert_int_equal(m.calls, 2);
  m.clears = true;
  set_int(device, gk_bound(graph, COUNT), 0);
  assert_ok(gk_run(graph, fix, &m, NULL));
}

TEST_ON(ALL_BACKENDS, run_without_on_yield) {
  gk_graph *graph = graph_on(device, &deciding, 0);
  assert_invalid("gk_run: graph deciding yielded at GROW (8), and on_yield is NULL; give a function that fixes the "
                 "cause and clears the flag", gk_run(graph, NULL, NULL, NULL));
  assert_ok(gk_bind_int(graph, ROOM, 3));
  assert_ok(gk_run(graph, NULL, NULL, NULL));
  LIST(reporting, GK_YIELD(AT));
  assert_invalid("gk_run: graph reporting yielded at AT (5), and on_yield is NULL; give a function that does there "
                 "what the host is to do", gk_run(graph_on(device, &reporting, 0), NULL, NULL, NULL));
}

static gk_result bind_badly(gk_graph *graph) { return gk_bind_int(graph, DATA, 1); }

/* Its result is gk_run's. The graph can be launched afterwards. */
TEST_ON(ALL_BACKENDS, failing_on_yield) {
  gk_graph *graph = graph_on(device, &deciding, 0);
  const gk_status *totals = (const gk_status *)state;
  mender m = {.answer = GK_ERROR_MEMORY};
  assert_fails(GK_ERROR_MEMORY, "gk_run: on_yield for GROW (8) of graph deciding answered GK_ERROR_MEMORY",
               gk_run(graph, fix, &m, &totals));
  assert_null(totals);
  m.answer = GK_NOT_READY;
  assert_ok(gk_bind_int(graph, ROOM, 0));
  assert_invalid("answered 1, which is no failure of gk's; return GK_OK or a GK_ERROR_", gk_run(graph, fix, &m, NULL));
  m = (mender){.also = bind_badly};
  assert_ok(gk_bind_int(graph, ROOM, 0));
  assert_invalid("gk_run: on_yield for GROW (8) of graph deciding: gk_bind_int: slot 11 (DATA)",
                 gk_run(graph, fix, &m, NULL));
  assert_ok(gk_resize(graph, DATA, 1)); /* else the next launch reports that failure */
  assert_ok(gk_bind_int(graph, ROOM, 3));
  assert_ok(gk_run(graph, fix, &m, NULL));
  run_to_end(graph, 0);
}

static gk_result by_launch(gk_graph *graph) { return gk_launch(graph, GROW); }
static gk_result by_launch_wait(gk_graph *graph) { return gk_launch_wait(graph, GROW, NULL); }
static gk_result by_run(gk_graph *graph) { return gk_run(graph, NULL, NULL, NULL); }

TEST_ON(ALL_BACKENDS, on_yield_that_launches_is_refused) {
  gk_graph *graph = graph_on(device, &deciding, 0);
  static const struct { gk_result (*also)(gk_graph *graph); const char *words; } cases[] = {
    {by_launch, ": gk_launch: graph deciding is in gk_run, which resumes it when on_yield returns"},
    {by_launch_wait, ": gk_launch_wait: graph deciding is in gk_run"},
    {by_run, ": gk_run: graph deciding is in gk_run"}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    mender m = {.also = cases[k].also};
    assert_ok(gk_bind_int(graph, ROOM, 0));
    assert_invalid(cases[k].words, gk_run(graph, fix, &m, NULL));
    assert_int_equal(m.calls, 1);
  }
  assert_ok(gk_bind_int(graph, ROOM, 3));
  assert_ok(gk_run(graph, NULL, NULL, NULL));
}

static gk_result destroy_it(gk_graph *graph) {
  gk_graph_destroy(graph);
  return strstr(gk_error(), "gk_graph_destroy: graph deciding is in gk_run") ? GK_OK : GK_ERROR_BUSY;
}
static gk_device *to_close;
static gk_result close_it(gk_graph *graph) {
  (void)graph;
  gk_device_close(to_close);
  return GK_OK;
}

TEST_ON_EACH(ALL_BACKENDS, on_yield_that_ends_what_runs, NULL, NULL) {
  begin_backends();
  to_close = open_named(*state);
  gk_graph *graph = graph_on(to_close, &deciding, 0);
  mender m = {.also = destroy_it};
  assert_ok(gk_run(graph, fix, &m, NULL));
  m = (mender){.also = close_it};
  assert_ok(gk_bind_int(graph, ROOM, 0));
  assert_fails(GK_ERROR_DEVICE, "gk_run: the device of graph deciding was closed", gk_run(graph, fix, &m, NULL));
  gk_graph_destroy(graph);
  assert_nothing_left();
}

TEST_ON(ALL_BACKENDS, cancelled_run) {
  gk_graph *graph = graph_on(device, &endless, GK_CANCELLABLE);
  const gk_status *totals;
  set_int(device, gk_bound(graph, ON), 1);
  atomic_store(&begun, 0);
  const pthread_t thread = start_thread(cancel_when_begun, graph);
  assert_ok(gk_run(graph, NULL, NULL, &totals));
  assert_int_equal((uintptr_t)join_thread(thread), GK_OK);
  assert_int_equal(totals->state, GK_CANCELLED);
  assert_int_equal(gk_passes(totals, 0), atomic_load(&begun));
}

static gk_result cancel_it(gk_graph *graph) { return gk_cancel(graph); }

static gk_result cancel_and_run(gk_graph *graph) {
  const gk_result result = gk_cancel(graph);
  return gk_run(graph, NULL, NULL, NULL) == GK_ERROR_INVALID ? result : GK_ERROR_BUSY;
}

/* A cancel between two launches of gk_run, on any thread, stops the second one at its next yield point or loop end. A
 * gk_run that is refused in on_yield changes nothing. */
TEST_ON(ALL_BACKENDS, run_cancelled_in_on_yield) {
  gk_graph *graph = graph_on(device, &growing, GK_CANCELLABLE);
  const gk_status *totals;
  mender m = {0};
  for (int k = 0; k < 2; ++k) {
    m = (mender){.clears = true, .also = k ? cancel_and_run : cancel_it};
    assert_ok(gk_bind_int(graph, ROOM, 0));
    assert_ok(gk_run(graph, fix, &m, &totals));
    assert_int_equal(m.calls, 1);
    assert_int_equal(totals->state, GK_CANCELLED);
    assert_int_equal(totals->launch, 2 + 2 * k);
    assert_int_equal(gk_passes(totals, LOOP), 0);
  }
  m = (mender){.clears = true};
  assert_ok(gk_bind_int(graph, ROOM, 0));
  assert_ok(gk_run(graph, fix, &m, &totals)); /* not affected */
  assert_int_equal(m.calls, 4);
  assert_int_equal(totals->state, GK_FINISHED);
}

/* The bound ends the loop in the first launch; the second one only yields and ends. */
LIST_OVER(grown_slots, bounded, GK_FILL(X, GK_ONE, 1), GK_DO_WHILE(X, .max_iterations = 3, .label = LOOP),
          GK_RUN(add, GK_ONE, COUNT, A), GK_END, GK_CHECKPOINT(GROW, FULL),
          GK_RUN(decide, GK_ONE, COUNT, FULL, ROOM), GK_END);

TEST_ON(ALL_BACKENDS, limit_of_an_earlier_launch) {
  gk_graph *graph = graph_on(device, &bounded, 0);
  const gk_status *totals;
  mender m = {.room = 2};
  assert_ok(gk_run(graph, fix, &m, &totals));
  assert_int_equal(m.calls, 1);
  assert_ptr_equal(totals->limit, &totals->loops[0]);
  assert_true(totals->limit->hit_bound);
  assert_int_equal(totals->limit->passes, 3);
  set_int(device, gk_bound(graph, COUNT), -3);
  assert_ok(gk_run(graph, NULL, NULL, &totals));
  assert_int_equal(gk_passes(totals, LOOP), 3); /* of this run alone */
}

/* ---- gk_read, gk_write ------------------------------------------------------------------------------------------- */

TEST_ON(ALL_BACKENDS, read_and_write_elements) {
  gk_graph *graph = graph_on(device, &plain, 0);
  const int given[] = {10, 20, 30};
  int have[3] = {0};
  assert_ok(gk_resize(graph, X, 3));
  assert_ok(gk_write(graph, X, given, 3));
  assert_ok(gk_launch(graph, 0)); /* the read waits for it */
  assert_ok(gk_read(graph, X, have, 3));
  assert_int_equal(have[0], 11);
  assert_int_equal(have[1], 20);
  assert_int_equal(have[2], 30);
  have[1] = 0;
  assert_ok(gk_read(graph, X, have, 1));
  assert_int_equal(have[1], 0);
  int *foreign = ints_on(device, given, 3);
  assert_ok(gk_bind(graph, X, foreign + 1));
  assert_ok(gk_write(graph, X, given, 2));
  ASSERT_INTS(foreign, 10, 10, 20);
  assert_invalid("gk_write: slot 1 (X) has 2 elements, not 3", gk_write(graph, X, given, 3));
  assert_ok(gk_read(graph, X, NULL, 0));
  gk_free(device, foreign);
  assert_invalid("gk_read: slot 1 (X) is bound to memory that was freed", gk_read(graph, X, have, 1));
  assert_ok(gk_bind(graph, X, NULL));
  assert_invalid("gk_read: slot 1 (X) has no memory", gk_read(graph, X, have, 1));
}

TEST_ON(ALL_BACKENDS, refused_reads_and_writes) {
  gk_graph *graph = graph_on(device, &plain, 0);
  int value = 5;
  assert_invalid("gk_read: slot 1 (X) has 1 element, not 2", gk_read(graph, X, &value, 2));
  assert_invalid("gk_write: slot 1 (X) has 1 element, not 18446744073709551615",
                 gk_write(graph, X, &value, SIZE_MAX));
  assert_invalid("gk_read: there is no host memory for slot 1 (X)", gk_read(graph, X, NULL, 1));
  assert_invalid("gk_write: there is no host memory for slot 1 (X)", gk_write(graph, X, NULL, 1));
  assert_invalid("gk_read: slot 2 (A) is of type", gk_read(graph, A, &value, 1));
  assert_invalid("gk_read: graph plain has no slot 99", gk_read(graph, 99, &value, 1));
  assert_invalid("gk_write: graph plain has no slot 0", gk_write(graph, 0, &value, 1));
  assert_int_equal(value, 5);
}

int main(void) { return run_all_tests(); }
