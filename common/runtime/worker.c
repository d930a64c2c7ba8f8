#include "runtime/worker.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "base/thread_cancel.h"
#include "base/within.h"
#include <sched.h>
#include <string.h>

/* Waking a thread took 5 to 50 us where this was measured, the longest on an idle core of a virtual machine. So a
 * waiting thread stays awake for about that time, and loses at most twice what a thread that knew the wait in advance
 * would lose. It yields its core to threads with work. But such a thread may keep the core for milliseconds, while a
 * sleeping thread would get the core as soon as it is woken. So after a yield that took long, the thread sleeps. For
 * PENALTY times as long, idle workers sleep at once, and waiting callers spin instead of yielding. */
enum { AWAKE_NS = 50000, LOST_NS = 20000, MOST_LOST_NS = 10000000, PENALTY = 64, SPINS = 400 };

static bool is_contended(const gki_worker *worker, uint64_t now) {
  return now < atomic_load_explicit(&worker->contended_until, memory_order_relaxed);
}

/* Yields the core. @return the time; 0: the yield took long, so the thread should sleep */
static uint64_t yield_core(gki_worker *worker, uint64_t now) {
  sched_yield();
  const uint64_t then = gki_now_ns(), lost = then - now;
  if (lost < LOST_NS) return then;
  const uint64_t counts = lost < MOST_LOST_NS ? lost : MOST_LOST_NS; /* a debugger may have stopped the thread */
  atomic_store_explicit(&worker->contended_until, then + PENALTY * counts, memory_order_relaxed);
  return 0;
}

static gki_job *pop_first(gki_worker *worker) {
  gki_job *job = worker->first;
  worker->first = job->next;
  if (!worker->first) worker->last = NULL;
  return job;
}

/* Runs a job with nothing before it. The lock is held before and after, and not while the job runs. */
static void run_job(gki_worker *worker, gki_job *job) {
  const gki_within within = {worker, gki_within_now};
  worker->busy = true;
  pthread_mutex_unlock(&worker->lock);
  gki_within_now = &within;
  job->run(job);
  gki_within_now = within.outer;
  pthread_mutex_lock(&worker->lock);
  worker->busy = false;
  atomic_store_explicit(&job->done, true, memory_order_release);
  if (worker->first) atomic_store_explicit(&worker->first->next_here, true, memory_order_relaxed);
  pthread_cond_broadcast(&worker->finished);
}

/* Wakes the worker's thread: there is work, or the worker ends. Holds the lock before and after. */
static void notify(gki_worker *worker) {
  atomic_fetch_add_explicit(&worker->changes, 1, memory_order_relaxed);
  pthread_cond_signal(&worker->posted);
}

static bool has_nothing_to_do(const gki_worker *worker) {
  return worker->busy || (worker->first ? worker->first->here : !worker->ending);
}

/* Holds the lock before and after. */
static void await_work(gki_worker *worker) {
  if (!has_nothing_to_do(worker)) return;
  const uint32_t changes = atomic_load_explicit(&worker->changes, memory_order_relaxed);
  pthread_mutex_unlock(&worker->lock);
  uint64_t now = gki_now_ns();
  for (const uint64_t ends = is_contended(worker, now) ? now : now + AWAKE_NS; now && now < ends;) {
    if (atomic_load_explicit(&worker->changes, memory_order_relaxed) != changes) break;
    now = yield_core(worker, now);
  }
  pthread_mutex_lock(&worker->lock);
  while (has_nothing_to_do(worker)) pthread_cond_wait(&worker->posted, &worker->lock);
}

static void *work(void *at) {
  gki_worker *worker = at;
  pthread_mutex_lock(&worker->lock);
  for (;;) {
    await_work(worker);
    if (!worker->first) break;
    run_job(worker, pop_first(worker));
  }
  pthread_mutex_unlock(&worker->lock);
  return NULL;
}

gk_result gki_worker_start(gki_worker *worker) {
  memset(worker, 0, sizeof *worker);
  pthread_mutex_init(&worker->lock, NULL);
  pthread_cond_init(&worker->posted, NULL);
  pthread_cond_init(&worker->finished, NULL);
  int code = gki_thread_start(&worker->thread, NULL, work, worker);
  if (code == 0) return GK_OK;
  pthread_cond_destroy(&worker->finished);
  pthread_cond_destroy(&worker->posted);
  pthread_mutex_destroy(&worker->lock);
  return gk_fail(GK_ERROR_MEMORY, "the device's thread can't be started: %s; end other threads, or raise the limit "
                 "(ulimit -u, ulimit -v, pids.max of a container)", strerror(code));
}

void gki_worker_stop(gki_worker *worker) {
  pthread_mutex_lock(&worker->lock);
  worker->ending = true;
  notify(worker);
  pthread_mutex_unlock(&worker->lock);
  pthread_join(worker->thread, NULL);
  pthread_cond_destroy(&worker->finished);
  pthread_cond_destroy(&worker->posted);
  pthread_mutex_destroy(&worker->lock);
}

static void prepare(gki_job *job, bool here) {
  job->here = here;
  atomic_store_explicit(&job->next_here, false, memory_order_relaxed);
  atomic_store_explicit(&job->done, false, memory_order_relaxed);
}

/* Holds the lock before and after. */
static void append(gki_worker *worker, gki_job *job) {
  job->next = NULL;
  if (worker->last) worker->last->next = job;
  else worker->first = job;
  worker->last = job;
}

void gki_worker_post(gki_worker *worker, gki_job *job) {
  prepare(job, false);
  pthread_mutex_lock(&worker->lock);
  append(worker, job);
  notify(worker);
  pthread_mutex_unlock(&worker->lock);
}

static bool is_idle(const gki_worker *worker) { return !worker->busy && !worker->first; }

/* Holds the lock before and after. */
static void run_here(gki_worker *worker, gki_job *job) {
  run_job(worker, job);
  if (!has_nothing_to_do(worker)) notify(worker);
}

static bool is_set(const atomic_bool *word) { return atomic_load_explicit(word, memory_order_acquire); }

/* Stays awake for a while, until the word is set. */
static void poll_word(gki_worker *worker, const atomic_bool *word) {
  uint64_t now = gki_now_ns();
  if (is_contended(worker, now)) {
    for (int spins = 0; spins < SPINS && !is_set(word); ++spins) gki_pause();
  } else {
    for (const uint64_t ends = now + AWAKE_NS; now && now < ends && !is_set(word);) now = yield_core(worker, now);
  }
}

/* Queues the job, and waits until nothing is before it. Holds the lock before and after. */
static void await_turn(gki_worker *worker, gki_job *job) {
  append(worker, job);
  pthread_mutex_unlock(&worker->lock);
  poll_word(worker, &job->next_here);
  pthread_mutex_lock(&worker->lock);
  while (worker->busy || worker->first != job) pthread_cond_wait(&worker->finished, &worker->lock);
  pop_first(worker);
}

void gki_worker_run(gki_worker *worker, gki_job *job) {
  const int cancel_state = gki_thread_cancel_disable();
  prepare(job, true);
  pthread_mutex_lock(&worker->lock);
  if (!is_idle(worker)) await_turn(worker, job);
  run_here(worker, job);
  pthread_mutex_unlock(&worker->lock);
  gki_thread_cancel_restore(cancel_state);
}

void gki_worker_run_or_post(gki_worker *worker, gki_job *job) {
  const int cancel_state = gki_thread_cancel_disable();
  prepare(job, false);
  pthread_mutex_lock(&worker->lock);
  if (is_idle(worker)) run_here(worker, job);
  else append(worker, job), notify(worker);
  pthread_mutex_unlock(&worker->lock);
  gki_thread_cancel_restore(cancel_state);
}

void gki_worker_wait(gki_worker *worker, gki_job *job) {
  if (is_set(&job->done)) return;
  poll_word(worker, &job->done);
  if (is_set(&job->done)) return;
  const int cancel_state = gki_thread_cancel_disable();
  pthread_mutex_lock(&worker->lock);
  while (!atomic_load_explicit(&job->done, memory_order_relaxed)) pthread_cond_wait(&worker->finished, &worker->lock);
  pthread_mutex_unlock(&worker->lock);
  gki_thread_cancel_restore(cancel_state);
}
