/* How long the device's thread, and a thread that waits for it, poll before they sleep. The test decides how long
 * yields take. */
#include "unit/support/await.h"
#include "base/clock.h"
#include "unit/support/runtime.h"
#include "unit/support/set_clock.h"
#include "unit/support/waits.h"
#include "runtime/worker.h"
#include <sys/syscall.h>
#include <unistd.h>

enum { AWAKE_NS = 50000, PENALTY = 64, YIELD_NS = 1000 };

static _Thread_local bool is_watched;
static _Thread_local uint64_t yield_ns;
static _Thread_local int yields, sleeps;
static _Thread_local void (*when_yielding)(void), (*when_sleeping)(void);

/* In front of the C library's. */
int sched_yield(void) {
  if (!is_watched) return (int)syscall(SYS_sched_yield);
  let_pass_here(yield_ns);
  ++yields;
  is_watched = false; /* what the test does here isn't counted */
  if (when_yielding) when_yielding();
  is_watched = true;
  return 0;
}

static void note_sleep(void) {
  ++sleeps;
  if (when_sleeping) when_sleeping();
}

/* From here on this thread's yields and sleeps are counted. */
static void watch(uint64_t takes_ns) {
  is_watched = true;
  yield_ns = takes_ns;
  yields = sleeps = 0;
  when_yielding = when_sleeping = NULL;
  on_wait = note_sleep;
}

static void watch_no_more(void) {
  is_watched = false;
  on_wait = NULL;
}

static gki_worker worker;
static atomic_bool gate;

typedef struct held { gki_job job; } held;

static void run_held(gki_job *job) {
  (void)job;
  await(atomic_load(&gate));
}
static void open_gate(void) { atomic_store(&gate, true); }

/* Posts a job that lasts until the gate is open. */
static void post_held(held *h) {
  atomic_store(&gate, false);
  *h = (held){.job.run = run_held};
  gki_worker_post(&worker, &h->job);
}

static int begin(void **state) {
  (void)state;
  set_clock();
  return gki_worker_start(&worker) == GK_OK ? 0 : -1;
}

static int end(void **state) {
  (void)state;
  watch_no_more();
  gki_worker_stop(&worker);
  return 0;
}

#define CASE(test) TEST_WITH(test, begin, end)

/* Waits for the job, and opens the gate once this thread sleeps. */
static void wait_watched(held *h, uint64_t takes_ns) {
  watch(takes_ns);
  when_sleeping = open_gate;
  gki_worker_wait(&worker, &h->job);
}

/* Until it has waited for as long as waking takes. */
CASE(sleeps_after_a_while) {
  held h;
  post_held(&h);
  wait_watched(&h, YIELD_NS);
  assert_int_equal(yields, AWAKE_NS / YIELD_NS);
  assert_true(sleeps > 0);
  assert_int_equal(atomic_load(&worker.contended_until), 0);
}

static held *awaited;
static void finish_at_the_tenth(void) {
  if (yields < 10) return;
  open_gate();
  await(atomic_load(&awaited->job.done));
}

CASE(wait_ends_without_sleep) {
  held h;
  awaited = &h;
  post_held(&h);
  watch(YIELD_NS);
  when_yielding = finish_at_the_tenth;
  gki_worker_wait(&worker, &h.job);
  assert_int_equal(yields, 10);
  assert_int_equal(sleeps, 0);
}

/* The thread that got the core kept it: this thread sleeps at once, and others don't yield for 64 times as long. */
CASE(long_yields_are_a_crowd) {
  static const struct { uint64_t yield_ns, penalty_ns; } cases[] = {
    {20000, PENALTY * 20000}, {3000000, PENALTY * 3000000},
    {2000000000, PENALTY * 10000000} /* too long: the process may have been stopped */};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    held h;
    post_held(&h);
    wait_watched(&h, cases[k].yield_ns);
    assert_int_equal(yields, 1);
    const uint64_t until = atomic_load(&worker.contended_until), now = gki_now_ns();
    assert_int_equal(until - now, cases[k].penalty_ns);
    for (int crowded = 1; crowded >= 0; --crowded) {
      post_held(&h);
      let_pass_here(until - (uint64_t)crowded - gki_now_ns());
      wait_watched(&h, YIELD_NS);
      assert_int_equal(yields, crowded ? 0 : AWAKE_NS / YIELD_NS);
    }
  }
}

/* A yield that takes less doesn't count. */
CASE(short_yields_are_no_crowd) {
  held h;
  post_held(&h);
  wait_watched(&h, 19999);
  assert_int_equal(yields, 3);
  assert_int_equal(atomic_load(&worker.contended_until), 0);
}

/* With many threads this one doesn't sleep, either, if the job is done by then. */
CASE(looks_before_it_sleeps) {
  held h;
  post_held(&h);
  open_gate();
  await(atomic_load(&h.job.done));
  atomic_store(&worker.contended_until, UINT64_MAX);
  watch(YIELD_NS);
  gki_worker_wait(&worker, &h.job);
  assert_int_equal(yields + sleeps, 0);
}

static atomic_int waiting;
static void note_waiting(void) { atomic_fetch_add(&waiting, 1); }

static void *wait_for_job(void *at) {
  on_wait = note_waiting;
  gki_worker_wait(&worker, at);
  return NULL;
}

/* Once it sleeps. */
static pthread_t begin_waiting(gki_job *job) {
  const int before = atomic_load(&waiting);
  const pthread_t thread = start_thread(wait_for_job, job);
  await(atomic_load(&waiting) > before);
  pthread_mutex_lock(&worker.lock); /* which it had until it slept */
  pthread_mutex_unlock(&worker.lock);
  return thread;
}

/* A thread that waits learns of its own job's end, with any number of others waiting. */
CASE(all_waiting_threads_are_woken) {
  held first, second = {.job.run = run_held};
  pthread_t threads[2];
  atomic_store(&worker.contended_until, UINT64_MAX);
  post_held(&first);
  gki_worker_post(&worker, &second.job);
  threads[0] = begin_waiting(&second.job);
  threads[1] = begin_waiting(&first.job);
  open_gate();
  for (int k = 0; k < 2; ++k) pthread_join(threads[k], NULL);
}

static atomic_bool runs_here;
static void run_held_here(gki_job *job) {
  atomic_store(&runs_here, true);
  run_held(job);
}
static void *run_on_own_thread(void *at) { return gki_worker_run(at, &(held){.job.run = run_held_here}.job), NULL; }
static void *stop_worker(void *at) { return gki_worker_stop(at), NULL; }
static bool is_ending(gki_worker *one) {
  pthread_mutex_lock(&one->lock);
  const bool ending = one->ending;
  pthread_mutex_unlock(&one->lock);
  return ending;
}

/* A thread that is told to end while a job runs on a caller's thread ends after that job. */
CASE(ends_behind_a_callers_job) {
  gki_worker one;
  assert_ok(gki_worker_start(&one));
  atomic_store(&gate, false);
  atomic_store(&runs_here, false);
  const pthread_t runs = start_thread(run_on_own_thread, &one);
  await(atomic_load(&runs_here));
  const pthread_t stops = start_thread(stop_worker, &one);
  await(is_ending(&one));
  open_gate();
  join_thread(runs);
  join_thread(stops);
}

static atomic_int worker_yields, worker_sleeps;
static atomic_bool pauses, paused; /* at its fifth yield, until the test has posted something */

static void count_worker_yields(void) {
  atomic_store(&worker_yields, yields);
  if (yields != 5 || !atomic_load(&pauses)) return;
  atomic_store(&paused, true);
  await(!atomic_load(&paused));
}
static void count_worker_sleeps(void) { atomic_store(&worker_sleeps, sleeps); }

/* A job after which its thread is watched. */
static void run_watching(gki_job *job) {
  (void)job;
  watch(YIELD_NS);
  when_yielding = count_worker_yields;
  when_sleeping = count_worker_sleeps;
}

static void post_watching(held *h, bool with_pause) {
  atomic_store(&worker_yields, 0);
  atomic_store(&worker_sleeps, 0);
  atomic_store(&pauses, with_pause);
  atomic_store(&paused, false);
  *h = (held){.job.run = run_watching};
  gki_worker_post(&worker, &h->job);
}

CASE(worker_stays_awake_a_while) {
  held h;
  post_watching(&h, false);
  await(atomic_load(&worker_sleeps) > 0);
  assert_int_equal(atomic_load(&worker_yields), AWAKE_NS / YIELD_NS);
  gki_worker_wait(&worker, &h.job);
  atomic_store(&worker.contended_until, UINT64_MAX); /* where others want the cores it sleeps at once */
  post_watching(&h, false);
  await(atomic_load(&worker_sleeps) > 0);
  assert_int_equal(atomic_load(&worker_yields), 0);
}

CASE(awake_worker_gets_new_jobs) {
  held h, next;
  post_watching(&h, true);
  await(atomic_load(&paused));
  post_held(&next);
  open_gate();
  atomic_store(&paused, false);
  await(atomic_load(&next.job.done));
  await(atomic_load(&worker_sleeps) > 0); /* for what comes after */
  assert_int_equal(atomic_load(&worker_yields), 5 + AWAKE_NS / YIELD_NS);
}

int main(void) { return run_all_tests(); }
