/* The OpenMP backend: the expected time of a dispatch, from what it took at each start of the team. How long that was
 * is what the test says. */
#include "world.h"
#include "openmp/cost.h"
#include "unit/support/set_clock.h"

static void open_one(world *w) {
  set_clock();
  world_open(w, 2); /* until it has started, a team of one: there is no thread to wait for */
}

/* As if each dispatch had taken so long. @return when it was over */
static uint64_t calibrate(world *w, const uint64_t *readings, uint64_t since) {
  readings_ns = readings;
  gki_openmp_calibrate(&w->device, since);
  readings_ns = NULL;
  return gki_now_ns();
}

/* Of four: one at most was quicker than a dispatch is, by chance. */
TEST(test_the_least_but_one) {
  static const uint64_t readings[][5] = {{500, 300, 9000, 400}, {400, 300, 9000, 99999}, {9000, 400, 300, 500},
                                         {400, 400, 400, 400}, {1, 90000, 400, 700}, {400, 90000, 1, 900}};
  for (size_t k = 0; k < GK_COUNT(readings); ++k) {
    world w;
    open_one(&w);
    calibrate(&w, readings[k], gki_now_ns());
    assert_true(w.device.dispatch_ns == 400 && w.device.dispatch_floor_ns == 400);
    gki_openmp.close(&w.device);
  }
}

/* What takes long isn't measured four times. */
TEST(test_a_long_dispatch_is_measured_once) {
  static const uint64_t readings[] = {200000, 7, 7, 7, 0};
  world w;
  open_one(&w);
  const uint64_t begun = gki_now_ns();
  assert_int_equal(calibrate(&w, readings, begun) - begun, 200000 + 7);
  assert_true(w.device.dispatch_ns == 200000);
  gki_openmp.close(&w.device);
}

/* All were long this time, as threads lost their cores for a while: the earlier starts count. */
TEST(test_earlier_starts_count) {
  static const uint64_t few[] = {400, 400, 400, 400, 0}, many[] = {900, 900, 900, 900, 0};
  world w;
  open_one(&w);
  calibrate(&w, few, gki_now_ns());
  for (int k = 1; k < 8; ++k) {
    calibrate(&w, many, gki_now_ns());
    assert_true(w.device.dispatch_floor_ns == 400);
  }
  assert_true(w.device.dispatch_ns == 400);
  calibrate(&w, many, gki_now_ns()); /* that was long ago */
  assert_true(w.device.dispatch_floor_ns == 900 && w.device.dispatch_ns == 900);
  assert_int_equal(w.device.calibrations, 9);
  gki_openmp.close(&w.device);
}

/* Where dispatches take long, that is measured again after a while: 32 times as long as it all took, each time in vain
 * twice as long, a tenth of a second at most. */
TEST(test_a_long_dispatch_is_doubted) {
  static const uint64_t readings[] = {200000, 0};
  world w;
  open_one(&w);
  uint64_t since = gki_now_ns();
  let_pass_here(100000); /* what it took until the team had started */
  uint64_t now = calibrate(&w, readings, since);
  float pause_ns = 32 * 300000.0f;
  assert_true(w.device.pause_ns == pause_ns);
  assert_int_equal(w.device.doubted_at, now + (uint64_t)pause_ns);
  assert_false(gki_openmp_forget(&w.device));
  now = calibrate(&w, readings, gki_now_ns()); /* by another launch that started the team: nothing was in vain */
  assert_true(w.device.pause_ns == pause_ns);
  for (int k = 0; k < 6; ++k) {
    let_pass_here(w.device.doubted_at - now - 1);
    assert_false(gki_openmp_forget(&w.device));
    assert_true(w.device.dispatch_floor_ns == 200000);
    let_pass_here(1);
    assert_true(gki_openmp_forget(&w.device));
    assert_true(w.device.dispatch_floor_ns == GKI_DISPATCH_NS && w.device.dispatch_ns == GKI_DISPATCH_NS);
    now = calibrate(&w, readings, gki_now_ns());
    pause_ns = fminf(2 * pause_ns, 1e8f);
    assert_true(w.device.pause_ns == pause_ns);
    assert_int_equal(w.device.doubted_at, now + (uint64_t)pause_ns);
    assert_true(w.device.dispatch_ns == 200000);
  }
  assert_true(pause_ns == 1e8f);
  gki_openmp.close(&w.device);
}

/* A start that measures a short dispatch, which nothing doubted, ends it at once. */
TEST(test_a_good_moment_ends_a_slow_one) {
  static const uint64_t readings[] = {600, 600, 600, 600, 0};
  world w;
  open_one(&w);
  begin_slow_moment(&w.device, 1e9f, UINT64_MAX);
  calibrate(&w, readings, gki_now_ns());
  assert_true(w.device.dispatch_ns == 600 && w.device.dispatch_floor_ns == 600);
  assert_true(w.device.pause_ns == 0);
  gki_openmp.close(&w.device);
}

/* Else tests that give costs would test something else. */
TEST(test_given_costs_are_not_doubted) {
  world w;
  open_one(&w);
  w.device.fixed = true;
  w.device.dispatch_ns = w.device.dispatch_floor_ns = 1e30f;
  assert_false(gki_openmp_forget(&w.device));
  assert_true(w.device.dispatch_ns == 1e30f && w.device.dispatch_floor_ns == 1e30f);
  w.device.fixed = false;
  assert_true(gki_openmp_forget(&w.device));
  assert_true(w.device.dispatch_floor_ns == GKI_DISPATCH_NS);
  gki_openmp.close(&w.device);
}

/* What is longer than the least is forgotten little by little, what is less stays. */
TEST(test_what_is_forgotten_ends_at_the_least) {
  world w;
  open_one(&w);
  w.device.dispatch_floor_ns = 800;
  w.device.dispatch_ns = 800 + 1600;
  assert_false(gki_openmp_forget(&w.device));
  assert_true(w.device.dispatch_ns == 800 + 1500);
  for (int k = 0; k < 1000; ++k) gki_openmp_forget(&w.device);
  assert_true(w.device.dispatch_ns >= 800 && w.device.dispatch_ns < 801);
  w.device.dispatch_ns = 500;
  gki_openmp_forget(&w.device);
  assert_true(w.device.dispatch_ns == 500);
  gki_openmp.close(&w.device);
}

/* What is learned of dispatches within launches may go down to half of the least that starts measured. */
TEST(test_what_was_learned_stays) {
  static const uint64_t readings[] = {900, 900, 900, 900, 0};
  static const float learned[][2] = {{450, 450}, {700, 700}, {900, 900}, {2000, 2000}, {449, 900}};
  world w;
  open_one(&w);
  calibrate(&w, readings, gki_now_ns());
  for (size_t k = 0; k < GK_COUNT(learned); ++k) {
    w.device.dispatch_ns = learned[k][0];
    calibrate(&w, readings, gki_now_ns());
    assert_true(w.device.dispatch_ns == learned[k][1]);
  }
  gki_openmp.close(&w.device);
}

/* By steps, up and down, and never below what a dispatch to threads that are awake takes. */
TEST(test_waking_takes_no_less_than_a_dispatch) {
  world w;
  open_one(&w);
  w.device.dispatch_ns = 1000;
  w.device.wake_ns = 2000;
  gki_openmp_adapt_wake(&w.device, 1e9f);
  assert_true(w.device.wake_ns == 3000);
  gki_openmp_adapt_wake(&w.device, 1);
  gki_openmp_adapt_wake(&w.device, 1);
  assert_true(w.device.wake_ns > 1300 && w.device.wake_ns < 1400);
  for (int k = 0; k < 10; ++k) gki_openmp_adapt_wake(&w.device, 1);
  assert_true(w.device.wake_ns == 1000);
  gki_openmp.close(&w.device);
}

int main(void) { return run_all_tests(); }
