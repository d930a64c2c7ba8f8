/* The OpenMP backend: the expected time of a dispatch, measured at each start of the team, and how it learns which way
 * to run a PARALLEL's sections, in series (one after the other) or split (side by side). The test decides how long they
 * take. */
#include "world.h"
#include "openmp/cost.h"
#include "unit/support/await.h"
#include "unit/support/set_clock.h"
#include <pthread.h>

/* A test of the device of a team of one, until it has started: there is no thread to wait for. */
#define ON_DEVICE(test) \
  static void test##_on(gki_openmp_device *device); \
  TEST(test) { \
    set_clock(); \
    DEVICE(w, 2); \
    test##_on(&w.device); \
  } \
  static void test##_on(gki_openmp_device *device)

/* As if each dispatch had taken so long. @return when it was over */
static uint64_t calibrate_since(gki_openmp_device *device, const uint64_t *readings, uint64_t since) {
  readings_ns = readings;
  gki_openmp_calibrate(device, since);
  readings_ns = NULL;
  return gki_now_ns();
}
static uint64_t calibrate(gki_openmp_device *device, const uint64_t *readings) {
  return calibrate_since(device, readings, gki_now_ns());
}

/* Of four: one at most was quicker than a dispatch is, by chance. */
TEST(test_the_least_but_one) {
  static const uint64_t readings[][5] = {{500, 300, 9000, 400}, {400, 300, 9000, 99999}, {9000, 400, 300, 500},
                                         {400, 400, 400, 400}, {1, 90000, 400, 700}, {400, 90000, 1, 900}};
  for (size_t k = 0; k < GK_COUNT(readings); ++k) {
    set_clock();
    DEVICE(w, 2);
    calibrate(&w.device, readings[k]);
    assert_true(w.device.dispatch_ns == 400 && w.device.dispatch_floor_ns == 400);
  }
}

/* A slow dispatch isn't measured four times. */
ON_DEVICE(test_a_long_dispatch_is_measured_once) {
  static const uint64_t readings[] = {200000, 7, 7, 7, 0};
  const uint64_t begun = gki_now_ns();
  assert_int_equal(calibrate_since(device, readings, begun) - begun, 200000 + 7);
  assert_true(device->dispatch_ns == 200000);
}

/* All were slow this time, as threads lost their cores for a while: the earlier starts count. */
ON_DEVICE(test_earlier_starts_count) {
  static const uint64_t few[] = {400, 400, 400, 400, 0}, many[] = {900, 900, 900, 900, 0};
  calibrate(device, few);
  for (int k = 1; k < 8; ++k) {
    calibrate(device, many);
    assert_true(device->dispatch_floor_ns == 400);
  }
  assert_true(device->dispatch_ns == 400);
  calibrate(device, many); /* that was long ago */
  assert_true(device->dispatch_floor_ns == 900 && device->dispatch_ns == 900);
  assert_int_equal(device->calibrations, 9);
}

/* Where dispatches take long, that is measured again after a while: 32 times as long as it all took, each time in vain
 * twice as long, a tenth of a second at most. */
ON_DEVICE(test_a_long_dispatch_is_doubted) {
  static const uint64_t readings[] = {200000, 0};
  uint64_t since = gki_now_ns();
  let_pass_here(100000); /* what it took until the team had started */
  uint64_t now = calibrate_since(device, readings, since);
  float pause_ns = 32 * 300000.0f;
  assert_true(device->pause_ns == pause_ns);
  assert_int_equal(device->doubted_at, now + (uint64_t)pause_ns);
  assert_false(gki_openmp_forget(device));
  now = calibrate(device, readings); /* by another launch that started the team: nothing was in vain */
  assert_true(device->pause_ns == pause_ns);
  for (int k = 0; k < 6; ++k) {
    let_pass_here(device->doubted_at - now - 1);
    assert_false(gki_openmp_forget(device));
    assert_true(device->dispatch_floor_ns == 200000);
    let_pass_here(1);
    assert_true(gki_openmp_forget(device));
    assert_true(device->dispatch_floor_ns == GKI_DISPATCH_NS && device->dispatch_ns == GKI_DISPATCH_NS);
    now = calibrate(device, readings);
    pause_ns = fminf(2 * pause_ns, 1e8f);
    assert_true(device->pause_ns == pause_ns);
    assert_int_equal(device->doubted_at, now + (uint64_t)pause_ns);
    assert_true(device->dispatch_ns == 200000);
  }
  assert_true(pause_ns == 1e8f);
}

/* A start that measures a short dispatch, which no launch doubted, ends the measuring at once. */
ON_DEVICE(test_a_good_moment_ends_a_slow_one) {
  static const uint64_t readings[] = {600, 600, 600, 600, 0};
  begin_slow_moment(device, 1e9f, UINT64_MAX);
  calibrate(device, readings);
  assert_true(device->dispatch_ns == 600 && device->dispatch_floor_ns == 600);
  assert_true(device->pause_ns == 0);
}

/* Else tests that give costs would test something else. */
ON_DEVICE(test_given_costs_are_not_doubted) {
  device->fixed = true;
  device->dispatch_ns = device->dispatch_floor_ns = 1e30f;
  assert_false(gki_openmp_forget(device));
  assert_true(device->dispatch_ns == 1e30f && device->dispatch_floor_ns == 1e30f);
  device->fixed = false;
  assert_true(gki_openmp_forget(device));
  assert_true(device->dispatch_floor_ns == GKI_DISPATCH_NS);
}

/* A cost above the least is forgotten little by little, a lower one stays. */
ON_DEVICE(test_forgetting_ends_at_the_least) {
  device->dispatch_floor_ns = 800;
  device->dispatch_ns = 800 + 1600;
  assert_false(gki_openmp_forget(device));
  assert_true(device->dispatch_ns == 800 + 1500);
  for (int k = 0; k < 1000; ++k) gki_openmp_forget(device);
  assert_true(device->dispatch_ns >= 800 && device->dispatch_ns < 801);
  device->dispatch_ns = 500;
  gki_openmp_forget(device);
  assert_true(device->dispatch_ns == 500);
}

/* The cost of dispatches that launches learn may go down to half of the least that starts measured. */
ON_DEVICE(test_learned_costs_stay) {
  static const uint64_t readings[] = {900, 900, 900, 900, 0};
  static const float learned[][2] = {{450, 450}, {700, 700}, {900, 900}, {2000, 2000}, {449, 900}};
  calibrate(device, readings);
  for (size_t k = 0; k < GK_COUNT(learned); ++k) {
    device->dispatch_ns = learned[k][0];
    calibrate(device, readings);
    assert_true(device->dispatch_ns == learned[k][1]);
  }
}

/* By steps, up and down, and never below what a dispatch to threads that are awake takes. */
ON_DEVICE(test_waking_takes_no_less_than_a_dispatch) {
  device->dispatch_ns = 1000;
  device->wake_ns = 2000;
  gki_openmp_adapt_wake(device, 1e9f);
  assert_true(device->wake_ns == 3000);
  gki_openmp_adapt_wake(device, 1);
  gki_openmp_adapt_wake(device, 1);
  assert_true(device->wake_ns > 1300 && device->wake_ns < 1400);
  for (int k = 0; k < 10; ++k) gki_openmp_adapt_wake(device, 1);
  assert_true(device->wake_ns == 1000);
}

enum { DISPATCH_NS = 1000 };
static float series_takes_ns, split_takes_ns;
static bool execute(gki_trial *trial) {
  const gki_pick pick = gki_trial_pick(trial, 2, DISPATCH_NS);
  if (pick.timed) gki_trial_report(trial, pick.split, (uint64_t)(pick.split ? split_takes_ns : series_takes_ns));
  assert_true(!pick.split || (pick.timed && pick.saving_ns > 0));
  return pick.split;
}

/* The number of times in a row that it goes that way, up to a limit that is never reached in a right run. */
static int in_a_row(gki_trial *trial, bool split) {
  enum { MOST = 1000 };
  int count = 0;
  for (gki_trial next = *trial; count < MOST && execute(&next) == split; ++count) *trial = next;
  return count;
}

/* These many times in a row it goes that way and the other, in turn. */
#define ASSERT_ROWS(trial, split, ...) \
  assert_rows(trial, split, (const int[]){__VA_ARGS__}, GK_COUNT(((const int[]){__VA_ARGS__})))
static void assert_rows(gki_trial *trial, bool split, const int *times, size_t count) {
  for (size_t k = 0; k < count; ++k, split = !split) assert_int_equal(in_a_row(trial, split), times[k]);
}

static void take(float series_ns, float split_ns) {
  series_takes_ns = series_ns;
  split_takes_ns = split_ns;
}

static gki_trial tried(float series_ns, float split_ns) {
  gki_trial trial = {0};
  take(series_ns, split_ns);
  ASSERT_ROWS(&trial, false, 2);
  for (int k = 0; k < 4; ++k) assert_true(execute(&trial));
  assert_int_equal(trial.split, split_ns < series_ns);
  return trial;
}

TEST(test_both_ways_are_tried) {
  static const float takes[][2] = {{2e6f, 1e6f}, {1e6f, 2e6f}, {1e6f, 999999}, {1e6f, 1e6f}};
  for (size_t k = 0; k < GK_COUNT(takes); ++k) {
    const gki_trial trial = tried(takes[k][0], takes[k][1]);
    assert_true(trial.series_ns == takes[k][0] && trial.split_ns == takes[k][1]);
  }
}

/* A thread that lost its core for a while makes one of them long. */
TEST(test_the_least_counts) {
  static const float series[] = {5e8f, 2e6f}, split[] = {5e8f, 7e8f, 1e6f, 9e8f};
  gki_trial trial = {0};
  for (size_t k = 0; k < GK_COUNT(series); ++k) series_takes_ns = series[k], assert_false(execute(&trial));
  for (size_t k = 0; k < GK_COUNT(split); ++k) split_takes_ns = split[k], assert_true(execute(&trial));
  assert_true(trial.split);
  assert_true(trial.series_ns == 2e6f && trial.split_ns == 1e6f);
}

/* The way that lost is tried again: soon, and each time in vain after about twice as many executions. */
TEST(test_the_loser_is_tried_ever_less_often) {
  for (int split_wins = 0; split_wins <= 1; ++split_wins) {
    gki_trial trial = tried(split_wins ? 2e6f : 1e6f, split_wins ? 1e6f : 2e6f);
    ASSERT_ROWS(&trial, split_wins, 4, 2, 9, 2, 19, 2, 39, 2, 64, 2, 64, 2, 64, 2);
  }
}

/* Sections that were slow one way, once, take it when it has become the faster one. */
TEST(test_a_lost_race_is_run_again) {
  for (int split_wins = 0; split_wins <= 1; ++split_wins) {
    gki_trial trial = tried(split_wins ? 2e6f : 1e6f, split_wins ? 1e6f : 1e9f);
    *(split_wins ? &series_takes_ns : &split_takes_ns) = 5e5f;
    assert_int_equal(in_a_row(&trial, split_wins), 4);
    for (int k = 0; k < 2 + 4; ++k) assert_int_equal(execute(&trial), !split_wins);
    assert_int_equal(trial.split, !split_wins);
    assert_true((split_wins ? trial.series_ns : trial.split_ns) == 5e5f);
  }
}

/* Tried again, a way is held against what the other takes now: not what it took while the machine was faster. */
TEST(test_an_old_time_loses_no_race) {
  gki_trial trial = tried(1e6f, 2e6f);
  take(4e6f, 3e6f);
  ASSERT_ROWS(&trial, false, 4, 2 + 4);
}

/* Nor does it win by what it took long ago, which is looked at early, as the way that is taken seems to lose by it. */
TEST(test_an_old_time_wins_no_race) {
  gki_trial trial = tried(2e6f, 1e6f);
  trial.series_ns = 5e5f;
  trial.wait = trial.pause = 64;
  series_takes_ns = 4e6f;
  ASSERT_ROWS(&trial, true, 4, 2);
  assert_true(trial.split);
  assert_true(trial.series_ns == 4e6f);
}

/* One slow execution isn't why the way that is taken seems to lose. */
TEST(test_one_long_execution_is_no_loss) {
  gki_trial trial = tried(2e6f, 1e6f);
  trial.wait = trial.pause = 64;
  split_takes_ns = 1e9f;
  assert_true(execute(&trial));
  split_takes_ns = 1e6f;
  assert_int_equal(in_a_row(&trial, true), 63);
}

/* Sections that take no longer than a dispatch are timed now and then, and so are shared after they have grown. */
TEST(test_sections_that_grow) {
  gki_trial trial = {0};
  int timed = 0;
  series_takes_ns = 1500;
  for (int k = 0; k < 2; ++k) assert_false(execute(&trial));
  for (int k = 0; k < 160; ++k) {
    const gki_pick pick = gki_trial_pick(&trial, 2, DISPATCH_NS);
    assert_false(pick.split);
    timed += pick.timed;
    if (pick.timed) gki_trial_report(&trial, false, (uint64_t)series_takes_ns);
  }
  assert_int_equal(timed, 10);
  take(1e6f, 6e5f);
  /* By the third that is timed from now on, as one alone may mean nothing; once it is seen to grow, each is timed. */
  assert_in_range(in_a_row(&trial, false), 3, 16 + 2);
  for (int k = 0; k < 4; ++k) assert_true(execute(&trial));
  assert_true(trial.series_samples == 4 && trial.split_samples == 4);
  assert_int_equal(trial.pause, 4); /* a verdict, that isn't looked at again at once */
}

/* Sections that don't pay for a dispatch any more stay in series, though another way was to be tried. */
TEST(test_sections_that_shrink) {
  gki_trial trial = tried(1e6f, 2e6f);
  assert_int_equal(in_a_row(&trial, false), 4);
  trial.series_ns = series_takes_ns = 1500;
  assert_int_equal(in_a_row(&trial, false), 1000);
  assert_int_equal(trial.probing, 0);
}

/* The known cost is an average, and large changes are believed by and by. */
TEST(test_known_costs_change_slowly) {
  gki_trial trial = tried(1e6f, 2e6f);
  gki_trial_report(&trial, false, 3000000);
  assert_true(trial.series_ns == 1.25e6f);
  gki_trial_report(&trial, false, 1);
  assert_true(trial.series_ns == 1.25e6f - 0.625e6f / 4);
}

TEST(test_what_splitting_saves) {
  gki_trial trial = tried(2e6f, 1.5e6f);
  assert_true(gki_trial_pick(&trial, 2, DISPATCH_NS).saving_ns == 5e5f);
  trial.series_ns = 1.5e6f;
  assert_true(gki_trial_pick(&trial, 2, DISPATCH_NS).saving_ns == 1);
  trial = (gki_trial){.series_samples = 2, .series_ns = 1e6f};
  assert_true(gki_trial_pick(&trial, 4, DISPATCH_NS).saving_ns == 7.5e5f - DISPATCH_NS);
}

/* However often they were timed in series, while a dispatch took too long, the other way is tried before it counts as
 * faster. */
TEST(test_what_splitting_saves_untried) {
  gki_trial trial = {0};
  for (int k = 0; k < 4; ++k) {
    assert_false(gki_trial_pick(&trial, 4, 1e9f).split);
    gki_trial_report(&trial, false, 1500);
  }
  const gki_pick pick = gki_trial_pick(&trial, 4, DISPATCH_NS);
  assert_true(pick.split && pick.timed);
  assert_true(pick.saving_ns == 1500 * 0.75f - DISPATCH_NS);
  assert_false(trial.split);
}

/* Long sections are timed each time, short ones now and then, and just before the other way is tried. */
TEST(test_long_sections_are_timed) {
  const gki_trial usual = {.series_samples = 4, .split_samples = 4, .series_ns = 2000, .split_ns = 3000,
                           .last_ns = 2000, .lately_ns = 2000, .wait = 60, .pause = 64};
  gki_trial trial = usual;
  assert_false(gki_trial_pick(&trial, 2, 100).timed);
  trial.series_ns = 2001;
  assert_true(gki_trial_pick(&trial, 2, 100).timed);
  trial = usual;
  trial.wait = 3;
  static const bool timed[] = {false, true, true};
  for (size_t k = 0; k < GK_COUNT(timed); ++k) {
    const gki_pick pick = gki_trial_pick(&trial, 2, 100);
    assert_int_equal(pick.timed, timed[k]);
    assert_false(pick.split);
  }
  assert_true(gki_trial_pick(&trial, 2, 100).split);
}

/* A way that isn't faster isn't taken. */
TEST(test_a_tie_changes_nothing) {
  gki_trial trial = tried(1e6f, 2e6f);
  split_takes_ns = 1e6f;
  ASSERT_ROWS(&trial, false, 4, 2);
  assert_false(trial.split);
}

/* Nothing to split; also where it takes no time at all. */
TEST(test_less_than_two_sections) {
  for (uint32_t groups = 0; groups <= 1; ++groups) {
    gki_trial trial = {0};
    for (int k = 0; k < 200; ++k) {
      const gki_pick pick = gki_trial_pick(&trial, groups, 0);
      assert_false(pick.split);
      if (pick.timed) gki_trial_report(&trial, false, k < 100 ? 0 : 1000000);
    }
  }
}

enum { ONE = 1, TWO, FLAG };
static const gk_slot_desc slots[] = {GK_SCALAR(ONE, int), GK_SCALAR(TWO, int), GK_BUFFER(FLAG, int)};
static bool are_split;       /* as the test expects of this launch */
static uint64_t takes_ns[2]; /* what both sections take in series, each half of it; and what they take side by side */
static atomic_int begun;
static pthread_t seen[2];

/* Side by side, each waits until the other is there, and one lets time pass for both. */
HAND_KERNEL(note, {"which", "int", 4, 4, GK_I32, GK_ACCESS_VALUE}) {
  seen[args[0].i32 - 1] = pthread_self();
  atomic_fetch_add(&begun, 1);
  if (are_split) await(atomic_load(&begun) == 2);
  if (!are_split) let_pass(takes_ns[0] / 2);
  else if (args[0].i32 == 1) let_pass(takes_ns[1]);
}
/* Over one item each, so no task is shared. The second has sections with blocks in them. */
#define RUN(which) GK_RUN(note, GK_ONE, which)
LIST(straight, PARALLEL(SECTION(RUN(ONE)), SECTION(RUN(TWO))));
LIST(walked, PARALLEL(SECTION(LOOP(FLAG, RUN(ONE))), SECTION(RUN(TWO))));
static const gk_list *const lists[] = {&straight, &walked};
static void begin(world *w, const gk_list *list, int threads, costs how) {
  static int no;
  world_begin(w, list, threads, how);
  BIND(w, {ONE, {.i32 = 1}}, {TWO, {.i32 = 2}}, {FLAG, {.ptr = &no}});
}

static void assert_goes(world *w, bool split) {
  are_split = split;
  atomic_store(&begun, 0);
  assert_runs(w);
  assert_int_equal(atomic_load(&begun), 2);
  assert_int_equal(!pthread_equal(seen[0], seen[1]), split);
}

TEST(test_sections_are_timed) {
  static const uint64_t takes[][2] = {{2000000, 1000000}, {2000000, 3000000}};
  needs_threads(2);
  for (size_t l = 0; l < GK_COUNT(lists); ++l)
    for (size_t k = 0; k < GK_COUNT(takes); ++k) {
      WORLD_BY(begin, w, lists[l], 2, SHARE_ALL);
      const gki_trial *trial = &w.program.forks[0].trial;
      memcpy(takes_ns, takes[k], sizeof takes_ns);
      for (int run = 0; run < 8; ++run) assert_goes(&w, run < 6 ? run >= 2 : takes_ns[1] < takes_ns[0]);
      assert_true(trial->series_ns == (float)takes_ns[0] && trial->split_ns == (float)takes_ns[1]);
    }
}

/* No task is worth sharing, or there is no thread to share it with. */
TEST(test_always_in_series) {
  static const struct { costs how; int threads; } cases[] = {{SHARE_NOTHING, 2}, {SHARE_ALL, 1}, {AS_MEASURED, 1}};
  takes_ns[0] = 2000000;
  for (size_t l = 0; l < GK_COUNT(lists); ++l)
    for (size_t k = 0; k < GK_COUNT(cases); ++k) {
      WORLD_BY(begin, w, lists[l], cases[k].threads, cases[k].how);
      for (int run = 0; run < 20; ++run) assert_goes(&w, false);
      assert_int_equal(w.program.forks[0].trial.split_samples, 0);
    }
}

/* What splitting saves depends on how many run side by side, not on how many threads there are. The least that it saves
 * is reason enough to start the team when that costs nothing; the team may be asleep again at once, so the sections are
 * surely split only where that saves more than waking it costs, which is a dispatch. */
TEST(test_fewer_sections_than_threads) {
  static const struct { uint64_t takes_ns; bool starts, splits; } cases[] = {
    {2 * DISPATCH_NS, false, false}, {2 * DISPATCH_NS + 2, true, false}, {4 * DISPATCH_NS + 2, true, true}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    WORLD_BY(begin, w, &straight, 4, SHARE_ALL);
    w.costs = AS_MEASURED;
    w.device.dispatch_ns = w.device.dispatch_floor_ns = DISPATCH_NS;
    takes_ns[0] = cases[k].takes_ns;
    are_split = false;
    for (int run = 0; run < 20; ++run) {
      w.device.wake_ns = 0;
      assert_runs(&w);
    }
    assert_int_equal(w.device.team.limit, 4);
    assert_int_equal(w.device.team.started, cases[k].starts);
    if (cases[k].splits || !cases[k].starts)
      assert_int_equal(w.program.forks[0].trial.split_samples > 0, cases[k].splits);
  }
}

int main(void) { return run_all_tests(); }
