/* No wake-up of the OpenMP backend's team is lost, no job is read after its asker has gone, and no item runs twice: its
 * source on a model of memory. */
#include "unit/support/memory_model.h"
#include "base/clock.h"
#include "base/error.h"
#include "gk_backend.h"
#include "openmp/runner.h"
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

/* A futex: one call looks at the word and sleeps in one step, as the threads that wake others there see it. Linux has a
 * barrier of its own before it, but earlier stores may stay with the thread until it sleeps. */
static void sleep_at(uint32_t *word, uint32_t value) {
  const uint32_t me = model.thread;
  model_step();
  if (*word != value) return;
  if (startles) {
    startles = false;
    ++startled;
    return;
  }
  model.sleeps[me] = true;
  model.bed[me] = word;
  model_step();
  model_pass_all(me);
  if (me == 1) longjmp(model.out, 1);
  if (!model.ran) model_run_other(model.other);
  if (!model.woken[0]) model_run_other(model.last);
  if (!model.woken[0]) fail_msg("thread 1 ran before step %u: thread 0 sleeps for ever", model.at);
  model.sleeps[0] = model.woken[0] = false;
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
  return number == SYS_gettid ? 1 : number == SYS_futex ? 0 : -1;
}

#include "unit/support/memory_model_atomics.h"
#define syscall model_call
#include "openmp/team.c"
#include "openmp/share.c"

static gki_team_slot slots[3];
static gki_team team = {.asked_for = 3, .in_use = 3, .crowded = true, .slots = slots}; /* crowded: no long spins */
static gki_team_job *job; /* in pages of its own */
static void allow(int what) { assert_int_equal(mprotect(job, sizeof *job, what), 0); }
static void post_job(void) { gki_team_post(&team, job, 0, 2, 2); }
static void await_job(void) { (void)await_bell(&team, &slots[1], 0, 0); }
static void serve_job(void) { serve(&slots[1]); }
static void serve_last(void) { serve(&slots[2]); }

/* The asker's frame holds other data from then on. */
static void await_others(void) {
  gki_team_wait(&team, job);
  allow(PROT_NONE);
}

static void (*work)(gki_team_job *, uint32_t); /* of the job; NULL: it ends the thread that got it */
static uint64_t told, done;                    /* when what the job is about was written, and what came of it */
static int servings;
static uint32_t stride = 1; /* behind the first steps */
static void begin(void) {
  allow(PROT_READ | PROT_WRITE);
  memset(slots, 0, sizeof slots);
  for (size_t k = 0; k < GK_COUNT(slots); ++k) slots[k].team = &team;
  *job = (gki_team_job){.work = work};
  memset(&model, 0, sizeof model);
  told = done = 0;
  servings = 0;
}

/* `parts` - 1 others have it, and none has begun. */
static void begin_posted(uint32_t parts) {
  begin();
  model.ran = true;
  gki_team_post(&team, job, 0, parts, parts);
  model_pass_all(0);
}
static void begin_posted_to_one(void) { begin_posted(2); }
static void begin_posted_to_two(void) { begin_posted(3); }

/* The other comes before each step of the first, of which there are more than `least`. What one is to wake the other
 * for has happened in the end, so one that sleeps then sleeps for ever, but for a thread that waits for another job. */
static void each_step(uint32_t least, void (*begin_one)(void), void (*first)(void), void (*other)(void),
                      void (*last)(void)) {
  uint32_t at = 0;
  for (bool over = false; !over; at += at < 20 ? 1 : stride) {
    begin_one();
    over = model_run(at, first, other, last);
    if (!work && model.sleeps[1] && !model.woken[1])
      fail_msg("thread 1 ran before step %u: it sleeps for ever", at);
  }
  assert_true(at > least);
}

TEST(test_a_posted_job_is_heard) {
  each_step(4, begin, post_job, await_job, NULL);
  each_step(4, begin, await_job, post_job, NULL);
}

static void await_startled(void) {
  startles = true;
  (void)await_bell(&team, &slots[1], 0, 0);
  assert_int_equal(atomic_load_explicit(&slots[1].bell, memory_order_acquire), 1);
}

/* Signals to the program may go to any thread, and end its wait. */
TEST(test_a_signal_is_no_job) {
  startled = 0;
  each_step(0, begin, post_job, await_startled, NULL);
  each_step(0, begin, await_startled, post_job, NULL);
  startles = false;
  assert_true(startled > 4);
}

TEST(test_the_last_one_done_wakes_the_waiting_one) {
  each_step(2, begin_posted_to_one, await_others, serve_job, NULL);
  each_step(2, begin_posted_to_one, serve_job, await_others, NULL);
  each_step(2, begin_posted_to_two, await_others, serve_job, serve_last);
}

static void do_nothing(gki_team_job *at, uint32_t index) { (void)at, (void)index; }
static gki_team_job leave;
static void post_leave(void) { gki_team_post(&team, &leave, 0, 2, 2); }
static void await_and_leave(void) {
  await_others();
  post_leave();
}

/* The asker may go on, and its frame with the job be gone, from when the last one says that it is done. */
TEST(test_a_job_that_is_done_is_left_alone) {
  work = do_nothing;
  each_step(4, begin_posted_to_one, serve_job, await_and_leave, post_leave);
  work = NULL;
}

static void do_told(gki_team_job *at, uint32_t index) {
  (void)at, (void)index;
  if (!model_knows(1 - model.thread, told)) fail_msg("step %u: what was written before the job isn't seen", model.at);
  done = model_now();
}

static void tell_and_wait(void) {
  told = model_now();
  post_job();
  gki_team_wait(&team, job);
  if (done == 0) fail_msg("step %u: no thread has done it", model.at);
  if (!model_knows(1 - model.thread, done)) fail_msg("step %u: what the others wrote isn't seen", model.at);
}

/* After any wait, threads that got a job see the data written before it, and the waiting thread sees their writes. */
TEST(test_writes_around_a_job_are_seen) {
  enum { STRIDE = 7 /* within what is tried again and again */ };
  work = do_told;
  for (int k = 0; k < 8; ++k) {
    team.crowded = k % 2;
    model_is_eager = k >= 4;
    stride = team.crowded ? 1 : STRIDE;
    if (k % 4 < 2) each_step(4, begin, tell_and_wait, serve_job, serve_job);
    else each_step(4, begin, serve_job, tell_and_wait, post_leave);
  }
  team.crowded = true;
  model_is_eager = false;
  stride = 1;
  work = NULL;
}

static void count_serving(gki_team_job *at, uint32_t index) {
  (void)at;
  servings += 1 << (8 * index);
}

static void post_to_both(void) {
  gki_team_post(&team, job, 0, 3, 3);
  gki_team_wait(&team, job);
  assert_int_equal(servings, 0x010100);
}

static void serve_both(void) {
  jmp_buf out; /* when the second one sleeps, too */
  memcpy(out, model.out, sizeof out);
  if (servings == 0 && setjmp(model.out) == 0) serve(&slots[1]);
  memcpy(model.out, out, sizeof out);
  serve(&slots[2]);
}

/* The first one may have done it before the second one gets it. */
TEST(test_a_job_for_two) {
  work = count_serving;
  for (int k = 0; k < 2; ++k) {
    model_is_eager = k;
    each_step(6, begin, post_to_both, serve_job, serve_both);
  }
  model_is_eager = false;
  work = NULL;
}

enum { MOST_ITEMS = 700 };
static unsigned char times[MOST_ITEMS + 64];
static gki_openmp_device chunks_device;
static const gki_program chunks_program = {.device = &chunks_device};
static task_job chunks_job;
HOST_KERNEL(count_times) {
  for (size_t i = range.begin; i < range.end; ++i) ++times[i];
}

static void run_first_part(void) { run_part(&chunks_job.team_job, 0); }
static void run_second_part(void) { run_part(&chunks_job.team_job, 1); }
static void check_each_item_once(int items, float part_ns, void (*first)(void), void (*other)(void)) {
  uint32_t at = 0;
  for (bool over = false; !over; ++at) {
    chunks_job = (task_job){.program = &chunks_program, .host = count_times, .count = 2};
    chunks_job.range.end = (size_t)items;
    cut_parts(&chunks_job, 2, part_ns);
    memset(slots, 0, sizeof slots);
    memset(times, 0, sizeof times);
    over = model_run(at, first, other, NULL);
    for (int k = 0; k < (int)sizeof times; ++k)
      if (times[k] != (k < items)) fail_msg("step %u: item %d of %d ran %d times", at, k, items, times[k]);
  }
}

/* Between looking at what is left of a part and taking a chunk of it, another thread may take all of it. */
TEST(test_a_chunk_behind_the_last_is_not_run) {
  static const float parts_ns[] = {FEW_CHUNKS * CHUNK_NS, LONG_NS, 10 * LONG_NS};
  chunks_device.team = team;
  for (int items = 2 * LINE_ITEMS; items <= MOST_ITEMS; ++items)
    for (size_t k = 0; k < GK_COUNT(parts_ns); ++k) {
      check_each_item_once(items, parts_ns[k], run_first_part, run_second_part);
      check_each_item_once(items, parts_ns[k], run_second_part, run_first_part);
    }
}

int main(void) {
  job = mmap(NULL, sizeof *job, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (job == MAP_FAILED) return 1;
  return run_all_tests();
}
