/* The OpenMP backend: the expected time of a dispatch, from what it took at each start of the team. How long that was
 * is what the test says. */
#include "world.h"
#include "openmp/cost.h"
#include "unit/support/set_clock.h"

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

/* What takes long isn't measured four times. */
ON_DEVICE(test_a_long_dispatch_is_measured_once) {
  static const uint64_t readings[] = {200000, 7, 7, 7, 0};
  const uint64_t begun = gki_now_ns();
  assert_int_equal(calibrate_since(device, readings, begun) - begun, 200000 + 7);
  assert_true(device->dispatch_ns == 200000);
}

/* All were long this time, as threads lost their cores for a while: the earlier starts count. */
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

/* A start that measures a short dispatch, which nothing doubted, ends it at once. */
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

/* What is longer than the least is forgotten little by little, what is less stays. */
ON_DEVICE(test_what_is_forgotten_ends_at_the_least) {
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

/* What is learned of dispatches within launches may go down to half of the least that starts measured. */
ON_DEVICE(test_what_was_learned_stays) {
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

int main(void) { return run_all_tests(); }
