/* The OpenMP backend: when it starts and wakes the team, and the costs of tasks, wakings and dispatches that it learns.
 * The test decides how long they take. */
#include "items.h"
#include "unit/support/await.h"
#include "openmp/runner.h"
#include "unit/support/set_clock.h"

enum { ITEM_NS = 1000000, LITTLE_NS = 20000, SMALL_NS = 1000, TOIL_ITEMS = 8,
       READING_NS = 100 /* and so what a dispatch takes as it is measured */,
       MOST_LAUNCHES = 1000, MOST_PASSES = 2000, DOUBTED_PASS = 100,
       MOST_TRIES = 10000 /* until others are awake still when an order comes, so that they aren't woken */ };

static bool together; /* the test expects that other threads take part: each waits until they are there */
static atomic_bool leader_came, others_came;
static void expect_others(bool they_come) {
  together = they_come;
  atomic_store(&leader_came, false);
  atomic_store(&others_came, false);
  atomic_store(&other_threads, 0);
}

static bool leads(void) { return pthread_equal(pthread_self(), worker); }
static void come_together(void) {
  atomic_store(leads() ? &leader_came : &others_came, true);
  if (together) await(atomic_load(leads() ? &others_came : &leader_came));
}

/* Lets time pass on all threads' clock, so that a waking is seen to take nothing, or on their own, so that each is seen
 * to take as long as it does. */
#define TOILING(id, come, pass, item_ns) \
  HAND_KERNEL(id, INOUT(uint8_t)) { \
    touching_host(args, range); \
    come; \
    pass((range.end - range.begin) * (item_ns)); \
  }
TOILING(toiling, come_together(), let_pass_here, ITEM_NS)
TOILING(toiling_little, (void)0, let_pass_here, LITTLE_NS)
TOILING(small, (void)0, let_pass_here, SMALL_NS)
TOILING(small_for_all, (void)0, let_pass, SMALL_NS)
LIST_OVER(item_slots, toil_list, GK_RUN(toiling, N, X));
static void begin_list(world *w, const gk_list *list, int items) {
  static int always = 1;
  needs_threads(2);
  set_clock();
  reading_ns = READING_NS;
  expect_others(false);
  world_begin(w, list, 2, AS_MEASURED);
  assert_true(w->device.clock_ns == READING_NS);
  worker = pthread_self();
  BIND(w, {X, {.ptr = touched_bytes}}, {N, {.i32 = items}}, {COUNT, {.ptr = &always}});
}

/* A launch without other threads, and one that starts the team. */
static void assert_alone(world *w) {
  assert_runs(w);
  assert_int_equal(atomic_load(&other_threads), 0);
}
static void assert_started(world *w) {
  const uint32_t calibrated = w->device.calibrations;
  expect_others(true);
  assert_runs(w);
  assert_true(atomic_load(&other_threads) > 0);
  assert_int_equal(w->device.calibrations, calibrated + 1);
  assert_true(w->device.dispatch_floor_ns == READING_NS);
}

/* The expected cost of a task grows eightfold each time, from 8 ns on: in the sixth launch it is long enough. */
static void begin_toil(world *w, int items) {
  begin_list(w, &toil_list, items);
  for (int k = 1; k <= 5; ++k) {
    assert_alone(w);
    assert_true(w->program.ops[0].cost_ns == (float)(1 << 3 * k));
  }
  assert_int_equal(w->device.calibrations, 0);
  assert_started(w);
  for (int k = 0; k < 2; ++k) {
    expect_others(true);
    assert_runs(w);
    assert_true(w->program.ops[0].cost_ns <= ITEM_NS);
  }
  assert_true(w->program.ops[0].cost_ns == ITEM_NS);
  expect_others(false);
}

TEST(test_large_tasks_are_shared) {
  WORLD_BY(begin_toil, w, TOIL_ITEMS);
  assert_dumps(&w, "task 0 (toiling): kernel, 8 items, 1e+06 ns each");
  assert_null(gki_openmp.dump(&w.program, "json"));
}

/* The cost of a copy or fill is that of a byte. */
TEST(test_a_dump_of_bytes) {
  LIST_OVER(item_slots, list, GK_COPY(X, Y, N), GK_FILL(COUNT, N, 1));
  WORLD_BY(begin_list, w, &list, 3);
  static unsigned char from[8];
  static int filled[3];
  RUN_WITH(&w, {Y, {.ptr = from}}, {COUNT, {.ptr = filled}});
  for (int k = 0; k < 2; ++k) w.program.ops[k].cost_ns = 2;
  assert_dumps(&w, "task 0 (X = Y): copy, 3 items, 2 ns per byte\n",
               "task 1 (COUNT = 1): fill, 3 items, 2 ns per byte\n");
}

/* A dispatch that was very slow when it was measured doesn't keep the team from use for ever. */
TEST(test_a_slow_moment_is_forgotten) {
  WORLD_BY(begin_toil, w, TOIL_ITEMS);
  begin_slow_moment(&w.device, 1e12f, gki_now_ns() + 100 * ITEM_NS);
  const uint32_t calibrated = w.device.calibrations;
  int launches = 0;
  for (; gki_now_ns() < w.device.doubted_at; ++launches) assert_alone(&w);
  assert_int_equal(launches, 100 / TOIL_ITEMS + 1);
  assert_int_equal(w.device.calibrations, calibrated);
  assert_started(&w);
}

/* Nor does a waking: each launch forgets a sixteenth of it, until it costs less than it can gain. */
TEST(test_a_slow_waking_is_forgotten) {
  WORLD_BY(begin_toil, w, TOIL_ITEMS);
  const float least_ns = 1e7f;
  w.device.wake_ns = 1e9f;
  const uint32_t calibrated = w.device.calibrations;
  int wanted = 0, launches = 0;
  for (float wake_ns = 1e9f; wake_ns > least_ns; ++wanted) wake_ns *= 15 / 16.0f;
  w.program.wakes_at_once = false;
  for (; w.device.calibrations == calibrated && launches < MOST_LAUNCHES; ++launches) {
    assert_int_equal(atomic_load(&other_threads), 0);
    assert_runs(&w);
  }
  assert_in_range(launches, wanted, wanted + 30);
}

/* Forgetting ends at the usual cost: else every task would come to look large, and start the team for nothing. */
TEST(test_small_tasks_stay_small) {
  LIST_OVER(item_slots, list, GK_RUN(touching, N, X));
  WORLD_BY(begin_list, w, &list, 3);
  float begun_with = w.device.dispatch_ns;
  for (int k = 0; k < 2000; ++k) assert_alone(&w);
  assert_true(w.device.dispatch_ns >= begun_with);
  assert_int_equal(w.device.calibrations, 0);
}

static world *looping;
static uint32_t passes, met_at, again_at; /* the passes after which the team was measured, and measured again */
static bool slows_down;

/* Ends the loop when it was measured once more after a moment that was slow while the team was there, or before, which
 * is doubted from a certain pass on. */
CALLED(watch_team) {
  gki_openmp_device *device = &looping->device;
  if (++passes == DOUBTED_PASS && !slows_down) let_pass_here(device->doubted_at - gki_now_ns());
  if (met_at == 0 && device->calibrations > 0) {
    met_at = passes;
    if (slows_down) begin_slow_moment(device, 1e12f, gki_now_ns());
  } else if (again_at == 0 && device->calibrations > 1) {
    again_at = passes;
  }
  *(int *)args[0].ptr = again_at == 0 && passes < MOST_PASSES;
  return GK_OK;
}
LIST_OVER(item_slots, loop_list, LOOP(COUNT, GK_RUN(toiling_little, N, X), GK_CALL(watch_team, COUNT)));
static void begin_loop(world *w, bool slow_down) {
  static int count;
  begin_list(w, &loop_list, 2);
  bind_ptr(w, COUNT, &count);
  count = 1;
  looping = w;
  slows_down = slow_down;
  passes = met_at = again_at = 0;
}

/* A slow moment is also doubted within a launch, the next time that the task is timed. */
TEST(test_a_slow_moment_is_forgotten_in_a_loop) {
  WORLD_BY(begin_loop, w, false);
  begin_slow_moment(&w.device, 1e12f, gki_now_ns() + 1000 * ITEM_NS);
  assert_runs(&w);
  assert_in_range(again_at, DOUBTED_PASS + 1, DOUBTED_PASS + 2 * 64);
  assert_true(w.device.dispatch_floor_ns == READING_NS);
}

/* Likewise where the team is there: it is measured again, rather than shared for as long as the launch may take with
 * what has become of the machine. */
TEST(test_a_team_is_measured_again) {
  WORLD_BY(begin_loop, w, true);
  assert_runs(&w);
  assert_true(met_at > 0);
  assert_in_range(again_at, met_at + 1, met_at + 2 * 64);
}

CALLED(await_sleep) {
  if (looping->device.team.in_use > 1) await(gki_team_sleeps(&looping->device.team, 1));
  return GK_OK;
}

typedef struct done { bool started, helped; } done; /* whether the team was there, and others had a part of it */
static done tasks_done[16];
static int task_count;
CALLED(note_help) {
  tasks_done[task_count++] = (done){looping->device.team.in_use > 1, atomic_exchange(&other_threads, 0) > 0};
  return GK_OK;
}

/* Costs are known, and a dispatch takes its usual time: of 10 us of work it saves 4, a fifth of a waking. */
static void begin_waking(world *w, const gk_list *list) {
  begin_list(w, list, 10);
  w->device.fixed = true;
  w->device.clock_ns = 0;
  set_clock(); /* reading it takes nothing */
  looping = w;
  for (uint32_t k = 0; k < w->program.op_count; ++k) {
    gki_op *op = &w->program.ops[k];
    op->timed = 15;
    op->countdown = UINT16_MAX;
    op->cost_ns = 1000;
    op->alone_ns = 10000;
  }
}

/* With the learned costs of dispatches and wakings forgotten. */
static void run_waking(world *w, float wake_ns) {
  w->device.dispatch_ns = w->device.dispatch_floor_ns = GKI_DISPATCH_NS;
  w->device.wake_ns = wake_ns;
  task_count = 0;
  atomic_store(&other_threads, 0);
  assert_runs(w);
}

#define SMALL GK_RUN(small, N, X), GK_CALL(note_help, 0)
#define SLEEP_SMALL GK_CALL(await_sleep, 0), GK_RUN(small_for_all, N, X), GK_CALL(note_help, 0)

/* Waking takes long, so the team starts only after as much time was lost without it. If all of it was worth that, the
 * next launch begins with the team. */
TEST(test_starts_are_earned) {
  LIST_OVER(item_slots, list, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL);
  static const struct { float wake_ns; int first; } launches[] = {
    {GKI_WAKE_NS, 4}, {GKI_WAKE_NS, 0}, {20001, 0}, {30000, 6}, {GKI_WAKE_NS, 4}};
  WORLD_BY(begin_waking, w, &list);
  for (size_t l = 0; l < GK_COUNT(launches); ++l) {
    run_waking(&w, launches[l].wake_ns);
    assert_int_equal(task_count, 6);
    for (int k = 0; k < 6; ++k)
      if (tasks_done[k].started != (k >= launches[l].first)) fail_msg("launch %zu, task %d", l, k);
    if (l == 2) w.program.wakes_at_once = false;
  }
}

/* A task that takes as long alone as with a dispatch is shared, and no shorter one. */
TEST(test_what_is_worth_a_dispatch) {
  LIST_OVER(item_slots, list, SMALL, GK_CALL(note_help, 0));
  for (int less = 0; less < 2; ++less) {
    WORLD_BY(begin_waking, w, &list);
    w.program.ops[0].cost_ns = less ? 199 : 200;
    w.program.ops[0].alone_ns = 10 * w.program.ops[0].cost_ns; /* of two, each has half: twice a dispatch is saved */
    run_waking(&w, 0);
    assert_int_equal(tasks_done[1].started, !less);
  }
}

CALLED(begin_anew) {
  looping->device.wake_ns = GKI_WAKE_NS;
  set_clock();
  atomic_store(&other_threads, 0);
  return GK_OK;
}

/* Each time that it has gone to sleep, too. The first task is worth it by itself, and too long to learn from it what a
 * dispatch takes. */
TEST(test_wakings_are_earned) {
  LIST_OVER(item_slots, list, GK_RUN(toiling_little, N, X), GK_CALL(begin_anew, 0), SLEEP_SMALL, SLEEP_SMALL,
                              SLEEP_SMALL, SLEEP_SMALL, SLEEP_SMALL, SLEEP_SMALL);
  static const bool wanted[] = {false, false, false, false, true, false};
  WORLD_BY(begin_waking, w, &list);
  w.program.ops[0].cost_ns = LITTLE_NS;
  run_waking(&w, GKI_WAKE_NS);
  assert_int_equal(task_count, GK_COUNT(wanted));
  for (size_t k = 0; k < GK_COUNT(wanted); ++k)
    if (tasks_done[k].helped != wanted[k]) fail_msg("task %zu: %d", k, tasks_done[k].helped);
}

static void assert_near(size_t at, float seen, float wanted) {
  if (fabsf(seen / wanted - 1) > 1e-4f) fail_msg("case %zu: %g, not %g", at, (double)seen, (double)wanted);
}

static atomic_bool were_asleep;
HAND_KERNEL(noting, INOUT(uint8_t)) {
  touching_host(args, range);
  if (leads()) return;
  atomic_store(&were_asleep, atomic_load(&looping->device.team.slots[1].job->woken_at) != 0);
}

/* A start counts as a waking: its time moves the learned cost by a step. */
TEST(test_a_start_is_timed) {
  static const uint64_t readings[][2] = {{(uint64_t)GKI_WAKE_NS / 2, 0}, {(uint64_t)GKI_WAKE_NS * 2, 0}};
  LIST_OVER(item_slots, list, GK_RUN(noting, N, X));
  for (size_t k = 0; k < GK_COUNT(readings); ++k) {
    WORLD_BY(begin_waking, w, &list);
    atomic_store(&were_asleep, true);
    for (int tries = 0; tries < MOST_TRIES && atomic_load(&were_asleep); ++tries) {
      w.program.ops[0].cost_ns = 3000;
      w.program.wakes_at_once = true;
      readings_ns = readings[k];
      run_waking(&w, GKI_WAKE_NS);
    }
    assert_false(atomic_load(&were_asleep));
    assert_near(k, w.device.wake_ns, GKI_WAKE_NS * (k ? 1.5f : 1 / 1.5f));
  }
}

/* An item takes longer on helping threads. No thread works before all are awake. */
HAND_KERNEL(uneven, INOUT(uint8_t)) {
  touching_host(args, range);
  come_together();
  let_pass(leads() ? 4 * ITEM_NS : 10 * ITEM_NS);
}

CALLED(sleep_first) {
  const gk_result result = await_sleep(args, stream);
  expect_others(true);
  return result;
}

/* The threads that wake others time that: if they work longer then, the waking itself wasn't slow. */
TEST(test_uneven_work_is_no_waking) {
#define UNEVEN GK_CALL(sleep_first, 0), GK_RUN(uneven, N, X)
  LIST_OVER(item_slots, list, GK_RUN(touching, N, X), UNEVEN, UNEVEN, UNEVEN, UNEVEN);
  WORLD_BY(begin_waking, w, &list);
  for (uint32_t k = 0; k < w.program.op_count; ++k) w.program.ops[k].cost_ns = 1e6f;
  w.device.wake_ns = 1e6f;
  assert_runs(&w);
  float wake_ns = 1e6f + (GKI_WAKE_NS - 1e6f) / 16; /* a launch forgets a little, */
  for (int k = 0; k < 4 + 1; ++k) wake_ns /= 1.5f;  /* four wakings at least and the start took no time */
  assert_true(w.device.wake_ns < 1.01f * wake_ns);
}

static uint64_t own_ns, late_ns; /* what its part takes the leader, and others beyond that */

/* Others let time pass when the leader is through and sleeps. */
HAND_KERNEL(apart, INOUT(uint8_t)) {
  noting_host(args, range);
  if (!leads()) await(atomic_load(&looping->device.team.slots[1].job->pending) >> 31);
  let_pass(leads() ? own_ns : late_ns);
}
LIST_OVER(item_slots, apart_list, GK_RUN(apart, N, X));

/* A task that is believed to take long, with the team awake: if it was asleep by then nothing is learned of dispatches,
 * and it is done again. @return what a dispatch is taken to take then, of what it was taken to take before */
static float dispatch(float dispatch_ns, float floor_ns, uint64_t own, uint64_t late) {
  WORLD_BY(begin_waking, w, &apart_list);
  bind_i32(&w, N, 2);
  own_ns = own;
  late_ns = late;
  gki_openmp_device *device = &w.device;
  device->dispatch_floor_ns = floor_ns;
  atomic_store(&were_asleep, true);
  for (int k = 0; k < MOST_TRIES && atomic_load(&were_asleep); ++k) {
    w.program.ops[0].cost_ns = 20000;
    w.program.ops[0].countdown = 1;
    device->dispatch_ns = dispatch_ns;
    device->wake_ns = 1;
    assert_runs(&w);
  }
  assert_false(atomic_load(&were_asleep));
  dispatch_ns += (floor_ns - dispatch_ns) / 16; /* a launch forgets a little */
  return device->dispatch_ns / dispatch_ns;
}

/* What is lost beside the leader's own part: a step up or down, for it varies. It isn't learned from work that takes
 * longer: how unevenly that ends is all that one would see. */
TEST(test_a_dispatch_is_timed) {
  static const struct { float dispatch_ns, floor_ns; uint64_t own, late; float times; } cases[] = {
    {1000, 200, 900, 1001, 1.1f}, {1000, 200, 900, 500, 1 / 1.1f}, {7000, 200, 6000, 28000, 1.1f},
    {1000, 200, 1500, 1001, 1.1f},              /* eight times the least that was measured */
    {1000, 1900, 500, 100, 1900 / 2 / 1056.25f} /* not below half of that */,
    {1000, 200, 1700, 28000, 1}, {7000, 200, 21000, 28000, 1}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k)
    assert_near(k, dispatch(cases[k].dispatch_ns, cases[k].floor_ns, cases[k].own, cases[k].late), cases[k].times);
}

/* A checkpoint behind another one calls the team: each task runs once, and each flag is read for its own. */
TEST(test_a_checkpoint_behind_another_calls) {
  enum { FLAG = 4, OTHER, ITEMS = 64 };
  static const gk_slot_desc own_slots[] = {GK_BUFFER(X, uint8_t), GK_BUFFER(Y, uint8_t), GK_SCALAR(N, int),
                                           GK_BUFFER(FLAG, int), GK_BUFFER(OTHER, int)};
  LIST_OVER(own_slots, list, CHECKPOINT("first", FLAG, 1, GK_RUN(touching, GK_ONE, X)),
                             CHECKPOINT("second", OTHER, 2, GK_RUN(touching, N, Y)));
  needs_threads(2);
  for (int raised = 0; raised <= 2; ++raised) {
    unsigned char x[1] = {0}, y[ITEMS] = {0};
    int flags[2] = {raised == 1, raised == 2};
    WORLD(w, &list, 2, SHARE_ALL);
    worker = pthread_self();
    RUN_WITH(&w, {X, {.ptr = x}}, {Y, {.ptr = y}}, {N, {.i32 = ITEMS}}, {FLAG, {.ptr = &flags[0]}},
                 {OTHER, {.ptr = &flags[1]}});
    assert_int_equal(x[0], 1);
    for (int k = 0; k < ITEMS; ++k) assert_int_equal(y[k], raised != 1);
    assert_int_equal(w.record.state, raised ? GK_YIELDED : GK_FINISHED);
    if (raised) assert_string_equal(w.plan->nodes[w.record.yielded].name, raised == 1 ? "first" : "second");
  }
}

HOST_KERNEL(sum_nothing) {}

/* Of each task its own, also behind one that has others. */
TEST(test_a_dump_counts_sums) {
  static const gk_slot_desc own_slots[] = {GK_BUFFER(X, int), GK_BUFFER(Y, int), GK_SCALAR(N, int)};
  KERNEL_OF(one, sum_nothing, SUM(int));
  KERNEL_OF(two, sum_nothing, SUM(int), SUM(int));
  LIST_OVER(own_slots, list, GK_RUN(one, N, X), GK_RUN(two, N, X, Y), GK_RUN(one, N, Y));
  WORLD(w, &list, 1, AS_MEASURED);
  assert_dumps(&w, "task 0 (one): kernel, 1 sum,", "task 1 (two): kernel, 2 sums,", "task 2 (one): kernel, 1 sum,");
}

int main(void) { return run_all_tests(); }
