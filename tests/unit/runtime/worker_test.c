#include "runtime/worker.h"
#include "unit/support/await.h"
#include "unit/support/runtime.h"
#include <sched.h>
#include <signal.h>
#include <time.h>

typedef struct step {
  gki_job job;
  int number;
  pthread_t where;
  atomic_bool *gate; /* not NULL: runs until it is open */
} step;

static int order[4096];
static atomic_int order_count;
static atomic_int at_once;

static void run_step(gki_job *job) {
  step *s = (step *)job;
  assert_int_equal(atomic_fetch_add(&at_once, 1), 0);
  while (s->gate && !atomic_load(s->gate)) sched_yield();
  s->where = pthread_self();
  order[atomic_fetch_add(&order_count, 1)] = s->number;
  atomic_fetch_sub(&at_once, 1);
}

static void post_steps(gki_worker *worker, step *steps, int count) {
  for (int k = 0; k < count; ++k) {
    steps[k] = (step){.job.run = run_step, .number = k};
    gki_worker_post(worker, &steps[k].job);
  }
}

static int start(void **state) {
  static gki_worker worker;
  atomic_store(&order_count, 0);
  *state = &worker;
  return gki_worker_start(&worker) == GK_OK ? 0 : -1;
}

static int stop(void **state) {
  gki_worker_stop(*state);
  return 0;
}

#define ON_WORKER(test) TEST_WITH(test, start, stop)

ON_WORKER(jobs_run_in_their_order) {
  gki_worker *worker = *state;
  step steps[100];
  post_steps(worker, steps, 100);
  for (int k = 99; k >= 0; --k) gki_worker_wait(worker, &steps[k].job);
  for (int k = 0; k < 100; ++k) assert_int_equal(order[k], k);
  assert_false(pthread_equal(steps[0].where, pthread_self()));
}

ON_WORKER(job_runs_here_if_nothing_is_under_way) {
  gki_worker *worker = *state;
  step ran = {.job.run = run_step, .number = 1}, handed = {.job.run = run_step, .number = 2};
  gki_worker_run(worker, &ran.job);
  assert_true(pthread_equal(ran.where, pthread_self()));
  gki_worker_run_or_post(worker, &handed.job);
  assert_true(atomic_load(&handed.job.done));
  assert_true(pthread_equal(handed.where, pthread_self()));
}

ON_WORKER(job_queues_behind_a_running_one) {
  gki_worker *worker = *state;
  atomic_bool gate = false;
  step held = {.job.run = run_step, .number = 1, .gate = &gate}, handed = {.job.run = run_step, .number = 2};
  step ran = {.job.run = run_step, .number = 3};
  gki_worker_post(worker, &held.job);
  gki_worker_run_or_post(worker, &handed.job);
  assert_false(atomic_load(&handed.job.done)); /* and it returned */
  atomic_store(&gate, true);
  gki_worker_run(worker, &ran.job);
  assert_true(atomic_load(&handed.job.done));
  for (int k = 0; k < 3; ++k) assert_int_equal(order[k], k + 1);
}

static bool is_last(gki_worker *worker, const gki_job *job) {
  pthread_mutex_lock(&worker->lock);
  const bool last = worker->last == job;
  pthread_mutex_unlock(&worker->lock);
  return last;
}

static void *run_step_alone(void *at) {
  void **both = at;
  step *s = both[1];
  gki_worker_run(both[0], &s->job);
  assert_true(pthread_equal(s->where, pthread_self()));
  return NULL;
}

/* Two threads wait for their turns, between jobs of the worker's thread. Each runs its own job, in the order in which
 * all were queued. */
ON_WORKER(queued_job_runs_on_its_own_thread) {
  gki_worker *worker = *state;
  atomic_bool gate = false;
  step first = {.job.run = run_step, .number = 0, .gate = &gate}, steps[4];
  pthread_t threads[2];
  for (int k = 0; k < 4; ++k) steps[k] = (step){.job.run = run_step, .number = k + 1};
  gki_worker_post(worker, &first.job);
  for (int k = 0; k < 4; ++k) {
    if (k % 2 == 0) {
      threads[k / 2] = start_thread(run_step_alone, (void *[]){worker, &steps[k]});
      await(is_last(worker, &steps[k].job));
    } else gki_worker_post(worker, &steps[k].job);
  }
  if (!is_last(worker, &steps[3].job)) fail();
  atomic_store(&gate, true);
  gki_worker_wait(worker, &steps[3].job);
  for (int k = 0; k < 2; ++k) join_thread(threads[k]);
  for (int k = 0; k < 5; ++k) assert_int_equal(order[k], k);
  assert_true(pthread_equal(steps[1].where, first.where));
  assert_true(pthread_equal(steps[3].where, first.where));
}

/* The worker is stopped while a thread waits for its turn. */
ON_WORKER(stop_waits_for_a_callers_turn) {
  static gki_worker other;
  atomic_bool gate = false;
  step first = {.job.run = run_step, .number = 0, .gate = &gate}, ran = {.job.run = run_step, .number = 1};
  assert_ok(gki_worker_start(&other));
  gki_worker_post(&other, &first.job);
  const pthread_t thread = start_thread(run_step_alone, (void *[]){&other, &ran});
  await(is_last(&other, &ran.job));
  atomic_store(&gate, true);
  gki_worker_stop(&other);
  join_thread(thread);
  assert_int_equal(order[1], 1);
}

typedef struct mask_job { gki_job job; sigset_t mask; } mask_job;
static void read_mask(gki_job *job) { pthread_sigmask(SIG_BLOCK, NULL, &((mask_job *)job)->mask); }

/* A program that blocks SIGTERM to wait for it must get it, also if it started the worker before. A job asks for the
 * mask: before its first job, the thread may still have the signals blocked that starting a thread blocks. */
TEST(worker_takes_none_of_the_programs_signals) {
  sigset_t none, before;
  gki_worker worker;
  mask_job asked = {.job.run = read_mask};
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, &before);
  assert_int_equal(gki_worker_start(&worker), GK_OK);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  gki_worker_post(&worker, &asked.job);
  gki_worker_stop(&worker);
  assert_true(sigismember(&asked.mask, SIGTERM));
  assert_false(sigismember(&asked.mask, SIGSEGV));
}

static void *run_held(void *at) {
  void **both = at;
  gki_worker_run(both[0], both[1]);
  return NULL;
}

/* While a job runs on one caller's thread, the worker and other callers wait their turn. */
ON_WORKER(posted_waits_for_a_callers_thread) {
  gki_worker *worker = *state;
  atomic_bool gate = false;
  step held = {.job.run = run_step, .number = 1, .gate = &gate}, posted = {.job.run = run_step, .number = 2};
  const pthread_t thread = start_thread(run_held, (void *[]){worker, &held.job});
  while (!atomic_load(&at_once)) sched_yield();
  gki_worker_post(worker, &posted.job);
  for (int k = 0; k < 1000; ++k) sched_yield();
  assert_int_equal(atomic_load(&order_count), 0);
  atomic_store(&gate, true);
  gki_worker_wait(worker, &posted.job);
  join_thread(thread);
  assert_int_equal(order[0], 1);
  assert_int_equal(order[1], 2);
}

static void sleep_ns(long ns) {
  if (ns) nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

typedef struct nap { gki_job job; long ns; int *count; } nap;

static void run_nap(gki_job *job) {
  const nap *n = (nap *)job;
  sleep_ns(n->ns);
  ++*n->count;
}

/* The device's thread, or the one that waits for it, is awake, about to sleep, or asleep when a job comes. */
ON_WORKER(each_sleeper_is_woken) {
  gki_worker *worker = *state;
  static const long pauses[] = {0, 20000, 45000, 50000, 60000, 2000000};
  enum { PAUSES = sizeof pauses / sizeof *pauses, ROUNDS = 5 };
  int count = 0;
  for (int k = 0; k < ROUNDS * PAUSES * PAUSES; ++k) {
    atomic_store(&worker->contended_until, k % 2 ? UINT64_MAX : 0); /* no polling while others want the cores */
    nap n = {{.run = run_nap}, pauses[k / PAUSES % PAUSES], &count};
    sleep_ns(pauses[k % PAUSES]);
    gki_worker_post(worker, &n.job);
    gki_worker_wait(worker, &n.job);
    assert_int_equal(count, k + 1);
  }
}

TEST(stop_runs_posted_jobs) {
  gki_worker worker;
  atomic_store(&order_count, 0);
  assert_ok(gki_worker_start(&worker));
  step steps[50];
  post_steps(&worker, steps, 50);
  gki_worker_stop(&worker);
  assert_int_equal(atomic_load(&order_count), 50);
  for (int k = 0; k < 50; ++k) assert_true(atomic_load(&steps[k].job.done));
}

enum { THREADS = 6, JOBS = 300 };

typedef struct user { gki_worker *worker; int number; } user;

static void *use(void *at) {
  gki_worker *worker = ((user *)at)->worker;
  const int number = ((user *)at)->number;
  step posted[3];
  for (int k = 0; k < JOBS / 3; ++k) {
    for (int j = 0; j < 3; ++j) {
      posted[j] = (step){.job.run = run_step, .number = number * JOBS + k * 3 + j};
      if (j == 0) gki_worker_post(worker, &posted[j].job);
      else if (j == 1) gki_worker_run_or_post(worker, &posted[j].job);
      else gki_worker_run(worker, &posted[j].job);
    }
    for (int j = 0; j < 3; ++j) gki_worker_wait(worker, &posted[j].job); /* their memory is used again */
  }
  return NULL;
}

ON_WORKER(many_threads_share_one_line) {
  user users[THREADS];
  for (int k = 0; k < THREADS; ++k) users[k] = (user){*state, k};
  RUN_THREADS(use, users);
  assert_int_equal(atomic_load(&order_count), THREADS * JOBS);
  int last[THREADS];
  for (int k = 0; k < THREADS; ++k) last[k] = -1;
  for (int k = 0; k < THREADS * JOBS; ++k) { /* each thread's own come in its order */
    int thread = order[k] / JOBS, number = order[k] % JOBS;
    assert_int_equal(number, last[thread] + 1);
    last[thread] = number;
  }
}

/* Stacks larger than the address space: no thread can be started, and nothing is left behind. */
TEST(thread_that_does_not_start_is_told) {
  gki_worker worker;
  pthread_attr_t usual, huge;
  assert_int_equal(pthread_getattr_default_np(&usual), 0);
  pthread_attr_init(&huge);
  assert_int_equal(pthread_attr_setstacksize(&huge, (size_t)1 << 60), 0);
  assert_int_equal(pthread_setattr_default_np(&huge), 0);
  gk_device *device = (gk_device *)&worker;
  gk_result started = gki_worker_start(&worker);
  assert_says("the device's thread can't be started: ");
  gk_result opened = gk_device_open(&(gk_device_desc){.backend = "openmp", .threads = 1}, &device);
  assert_int_equal(pthread_setattr_default_np(&usual), 0);
  pthread_attr_destroy(&huge);
  pthread_attr_destroy(&usual);
  assert_int_equal(started, GK_ERROR_MEMORY);
  assert_int_equal(opened, GK_ERROR_MEMORY);
  assert_says("the device's thread can't be started: ");
  assert_null(device);
  assert_ok(gki_worker_start(&worker)); /* the next one does */
  gki_worker_stop(&worker);
}

int main(void) { return run_all_tests(); }
