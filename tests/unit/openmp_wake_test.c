/* Whether a wake-up of the OpenMP backend's team can be lost, or an order be read once its asker has gone: its source
 * on a model of memory. */
#include "memory_model.h"
#include "clock.h"
#include "gk_backend.h"
#include <linux/futex.h>
#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool startles; /* a signal ends the next sleep */
static uint32_t startled;

/* A futex: the kernel has a barrier of its own before it looks at the word. */
static void sleep_at(uint32_t *word, uint32_t value) {
  const uint32_t me = model.thread;
  model_pass_all(me);
  if (*word != value) return;
  if (startles) {
    startles = false;
    ++startled;
    return;
  }
  model.sleeps[me] = true;
  model.bed[me] = word;
  if (me == 1) longjmp(model.out, 1);
  if (!model.ran) model_run_other(model.other);
  if (!model.woken[0]) model_run_other(model.last);
  if (!model.woken[0]) fail_msg("thread 1 ran before step %u: thread 0 sleeps for ever", model.at);
  model.sleeps[0] = false;
}

static void wake_at(const void *word) {
  model_step();
  model_pass_all(model.thread);
  const uint32_t them = 1 - model.thread;
  if (model.sleeps[them] && model.bed[them] == word) model.woken[them] = true;
}

static long model_call(long number, ...) {
  va_list list;
  va_start(list, number);
  if (number == SYS_futex) {
    uint32_t *word = va_arg(list, uint32_t *);
    const int what = va_arg(list, int);
    const uint32_t value = va_arg(list, uint32_t);
    if (what == FUTEX_WAIT_PRIVATE) sleep_at(word, value);
    else wake_at(word);
  }
  va_end(list);
  return number == SYS_gettid;
}

#include "memory_model_atomics.h"
#define syscall model_call
#include "openmp/team.c"

static gki_seat seats[3];
static gki_team team = {.wanted = 3, .size = 3, .crowded = true, .seats = seats}; /* crowded: none spins for long */
static gki_order *order; /* in pages of its own */

static void allow(int what) { assert_int_equal(mprotect(order, sizeof *order, what), 0); }

static void post_order(void) { gki_team_post(&team, order, 0, 2, 2); }
static void await_order(void) { (void)await_bell(&team, &seats[1], 0, 0); }
static void serve_order(void) { serve(&team, 1); }
static void serve_last(void) { serve(&team, 2); }

/* What the asker's frame was is something else from then on. */
static void await_others(void) {
  gki_team_wait(&team, order);
  allow(PROT_NONE);
}

static void begin(void) {
  allow(PROT_READ | PROT_WRITE);
  memset(seats, 0, sizeof seats);
  memset(order, 0, sizeof *order);
  memset(&model, 0, sizeof model);
}

/* `parts` - 1 others have it, and nobody has begun. */
static void begin_posted(uint32_t parts) {
  begin();
  model.ran = true;
  gki_team_post(&team, order, 0, parts, parts);
  model_pass_all(0);
}

/* What one is to wake the other for has happened in the end, so one that sleeps then sleeps for ever. */
static bool is_over(uint32_t at, void (*first)(void), void (*other)(void), void (*last)(void)) {
  const bool over = model_run(at, first, other, last);
  if (model.sleeps[1] && !model.woken[1]) fail_msg("thread 1 ran before step %u: it sleeps for ever", at);
  return over;
}

static void test_a_posted_order_is_heard(void **state) {
  (void)state;
  uint32_t at = 0;
  for (bool over = false; !over; ++at) {
    begin();
    over = is_over(at, post_order, await_order, NULL);
  }
  assert_true(at > 4);
  at = 0;
  for (bool over = false; !over; ++at) {
    begin();
    over = is_over(at, await_order, post_order, NULL);
  }
  assert_true(at > 4);
}

static void await_startled(void) {
  startles = true;
  (void)await_bell(&team, &seats[1], 0, 0);
  assert_int_equal(atomic_load_explicit(&seats[1].bell, memory_order_acquire), 1);
}

/* Signals of the program's may go to any thread, and end what it waits for. */
static void test_a_signal_is_no_order(void **state) {
  (void)state;
  uint32_t at = 0;
  startled = 0;
  for (bool over = false; !over; ++at) {
    begin();
    over = is_over(at, post_order, await_startled, NULL);
    begin();
    over = is_over(at, await_startled, post_order, NULL) && over;
  }
  startles = false;
  assert_true(startled > 4);
}

static void test_the_last_one_done_wakes_the_waiting_one(void **state) {
  (void)state;
  uint32_t at = 0;
  for (bool over = false; !over; ++at) {
    begin_posted(2);
    over = is_over(at, await_others, serve_order, NULL);
  }
  assert_true(at > 2);
  at = 0;
  for (bool over = false; !over; ++at) {
    begin_posted(2);
    over = is_over(at, serve_order, await_others, NULL);
  }
  assert_true(at > 2);
  at = 0;
  for (bool over = false; !over; ++at) {
    begin_posted(3);
    over = is_over(at, await_others, serve_order, serve_last);
  }
  assert_true(at > 2);
}

static void do_nothing(gki_order *at, uint32_t index) {
  (void)at;
  (void)index;
}

static gki_order leave;
static void post_leave(void) { gki_team_post(&team, &leave, 0, 2, 2); }
static void await_and_leave(void) {
  await_others();
  post_leave();
}

/* The asker may go on, and its frame with the order be gone, from when the last one says that it is done. */
static void test_an_order_that_is_done_is_left_alone(void **state) {
  (void)state;
  uint32_t at = 0;
  for (bool over = false; !over; ++at) {
    begin();
    order->work = do_nothing;
    model.ran = true;
    post_order();
    model_pass_all(0);
    over = model_run(at, serve_order, await_and_leave, post_leave);
  }
  assert_true(at > 4);
}

int main(void) {
  order = mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (order == MAP_FAILED) return 1;
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_posted_order_is_heard),
    cmocka_unit_test(test_a_signal_is_no_order),
    cmocka_unit_test(test_the_last_one_done_wakes_the_waiting_one),
    cmocka_unit_test(test_an_order_that_is_done_is_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
