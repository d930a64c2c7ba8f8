/* The OpenMP backend: how it learns which way to run a PARALLEL's sections, one after the other or side by side. */
#include "openmp_world.h"
#include <pthread.h>
#include <time.h>

enum { ONE = 1, TWO };
static const gk_slot_desc slots[] = {GK_SCALAR(ONE, int), GK_SCALAR(TWO, int)};

static void begin(world *w, const gk_list *list, int threads, costs how) {
  world_begin(w, list, threads, how);
  bind_i32(w, ONE, 1);
  bind_i32(w, TWO, 2);
}

static pthread_t seen[2];
/* Sleeps, so that somebody comes on the busiest machine. */
static void note_thread(const gk_value *args, gk_range range) {
  (void)range;
  seen[args[0].i32 - 1] = pthread_self();
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}
static const gk_param note_params[] = {{"which", "int", 4, 4, GK_I32, GK_ACCESS_VALUE}};
static const gk_kernel note = {.name = "note", .params = note_params, .param_count = 1, .host = note_thread};

static const gk_task noted_tasks[] = {GK_PARALLEL, GK_SECTION, GK_RUN(note, GK_ONE, ONE), GK_END,
                                      GK_SECTION, GK_RUN(note, GK_ONE, TWO), GK_END, GK_END};
static const gk_list noted_sections = GK_LIST(list, noted_tasks, slots);

/* By costs alone: the tasks are over one item each. */
static bool side_by_side(costs how, int threads) {
  world w;
  bool once = false;
  begin(&w, &noted_sections, threads, how);
  for (int k = 0; k < 100 && !once; ++k) {
    assert_runs(&w);
    once |= !pthread_equal(seen[0], seen[1]);
  }
  world_end(&w);
  return once;
}

static void test_side_by_side(void **state) {
  (void)state;
  assert_true(side_by_side(SHARE_ALL, 2));
  assert_false(side_by_side(SHARE_NOTHING, 2));
  assert_false(side_by_side(SHARE_ALL, 1));
}

/* Sections that were slow side by side, once, are tried that way again before long, and what is seen then counts. */
static void test_a_lost_race_is_run_again(void **state) {
  (void)state;
  world w;
  bool once = false;
  begin(&w, &noted_sections, 2, AS_MEASURED);
  for (int k = 0; k < 8; ++k) assert_runs(&w);
  gki_fork *fork = &w.program.forks[0];
  fork->series_samples = fork->split_samples = UINT8_MAX;
  fork->series_ns = 2e6f;
  fork->split_ns = 1e9f;
  fork->split = false;
  fork->probing = 0;
  fork->wait = fork->pause = 64;
  for (int k = 0; k < 64; ++k) assert_runs(&w);
  assert_false(fork->split);
  for (int k = 0; k < 40 && !once; ++k) {
    w.device.wake_ns = w.device.handoff_ns = GKI_HANDOFF_NS; /* whatever waking took on a busy machine */
    assert_runs(&w);
    once |= !pthread_equal(seen[0], seen[1]);
  }
  assert_true(once);
  for (int k = 0; k < 40 && !fork->split; ++k) {
    w.device.wake_ns = w.device.handoff_ns = GKI_HANDOFF_NS;
    assert_runs(&w);
  }
  assert_true(fork->split);
  world_end(&w);
}

static bool long_naps;
static void nap(const gk_value *args, gk_range range) {
  if (long_naps) note_thread(args, range);
}
static const gk_kernel napping = {.name = "napping", .params = note_params, .param_count = 1, .host = nap};
static const gk_task napping_tasks[] = {GK_PARALLEL, GK_SECTION, GK_RUN(napping, GK_ONE, ONE), GK_END,
                                        GK_SECTION, GK_RUN(napping, GK_ONE, TWO), GK_END, GK_END};
static const gk_list napping_sections = GK_LIST(list, napping_tasks, slots);

/* Sections that were too small to share at first are timed now and then, and so are shared once they have grown. */
static void test_sections_that_grow(void **state) {
  (void)state;
  world w;
  begin(&w, &napping_sections, 2, AS_MEASURED);
  const gki_fork *fork = &w.program.forks[0];
  long_naps = false;
  for (int k = 0; k < 50; ++k) assert_runs(&w);
  long_naps = true;
  seen[0] = seen[1] = pthread_self();
  for (int k = 0; k < 300 && pthread_equal(seen[0], seen[1]); ++k) assert_runs(&w);
  assert_false(pthread_equal(seen[0], seen[1]));
  for (int k = 0; k < 100 && fork->split_samples < 4; ++k) assert_runs(&w);
  assert_true(fork->series_samples >= 4 && fork->pause >= 4); /* a verdict, that isn't looked at again at once */
  world_end(&w);
}

/* What sections took one after the other while the machine was faster is no reason to leave the other way. */
static void test_an_old_time_wins_no_race(void **state) {
  (void)state;
  world w;
  begin(&w, &noted_sections, 2, AS_MEASURED);
  for (int k = 0; k < 8; ++k) assert_runs(&w);
  gki_fork *fork = &w.program.forks[0];
  fork->series_samples = fork->split_samples = UINT8_MAX;
  fork->series_ns = 5e5f;
  fork->split_ns = fork->last_ns = fork->lately_ns = 1e6f;
  fork->split = true;
  fork->probing = 0;
  fork->wait = fork->pause = 64;
  assert_runs(&w);
  assert_true(fork->split);
  for (int k = 0; k < 40 && fork->series_ns < 2e6f; ++k) assert_runs(&w);
  assert_true(fork->series_ns >= 2e6f); /* it was tried before long, and that is what it takes now */
  world_end(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_side_by_side),
    cmocka_unit_test(test_a_lost_race_is_run_again),
    cmocka_unit_test(test_an_old_time_wins_no_race),
    cmocka_unit_test(test_sections_that_grow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
