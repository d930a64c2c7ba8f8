#include "worker.h"
#include "error.h"
#include "pause.h"
#include <string.h>

enum { SPINS = 400 }; /* some microseconds: about what waking a thread takes */

static gki_job *take_first(gki_worker *worker) {
  gki_job *job = worker->first;
  worker->first = job->next;
  if (!worker->first) worker->last = NULL;
  return job;
}

/* Runs a job that nothing is before. The lock is held before and after, and not meanwhile. */
static void carry_out(gki_worker *worker, gki_job *job) {
  worker->busy = true;
  pthread_mutex_unlock(&worker->lock);
  job->run(job);
  pthread_mutex_lock(&worker->lock);
  worker->busy = false;
  atomic_store_explicit(&job->done, true, memory_order_release);
  pthread_cond_broadcast(&worker->finished);
}

static void *work(void *at) {
  gki_worker *worker = at;
  pthread_mutex_lock(&worker->lock);
  for (;;) {
    while ((!worker->first || worker->busy) && !(worker->ending && !worker->first && !worker->busy))
      pthread_cond_wait(&worker->posted, &worker->lock);
    if (!worker->first) break;
    carry_out(worker, take_first(worker));
  }
  pthread_mutex_unlock(&worker->lock);
  return NULL;
}

gk_result gki_worker_start(gki_worker *worker) {
  memset(worker, 0, sizeof *worker);
  pthread_mutex_init(&worker->lock, NULL);
  pthread_cond_init(&worker->posted, NULL);
  pthread_cond_init(&worker->finished, NULL);
  int code = pthread_create(&worker->thread, NULL, work, worker);
  if (code == 0) return GK_OK;
  pthread_cond_destroy(&worker->finished);
  pthread_cond_destroy(&worker->posted);
  pthread_mutex_destroy(&worker->lock);
  return gk_fail(GK_ERROR_MEMORY, "the device's thread could not be started: %s", strerror(code));
}

void gki_worker_stop(gki_worker *worker) {
  pthread_mutex_lock(&worker->lock);
  worker->ending = true;
  pthread_cond_broadcast(&worker->posted);
  pthread_mutex_unlock(&worker->lock);
  pthread_join(worker->thread, NULL);
  pthread_cond_destroy(&worker->finished);
  pthread_cond_destroy(&worker->posted);
  pthread_mutex_destroy(&worker->lock);
}

static void append(gki_worker *worker, gki_job *job) {
  job->next = NULL;
  if (worker->last) worker->last->next = job;
  else worker->first = job;
  worker->last = job;
  pthread_cond_signal(&worker->posted);
}

void gki_worker_post(gki_worker *worker, gki_job *job) {
  atomic_store_explicit(&job->done, false, memory_order_relaxed);
  pthread_mutex_lock(&worker->lock);
  append(worker, job);
  pthread_mutex_unlock(&worker->lock);
}

/* Holds the lock before and after. */
static bool run_here(gki_worker *worker, gki_job *job) {
  if (worker->busy || worker->first) return false;
  carry_out(worker, job);
  if (worker->first || worker->ending) pthread_cond_signal(&worker->posted);
  return true;
}

void gki_worker_run(gki_worker *worker, gki_job *job) {
  atomic_store_explicit(&job->done, false, memory_order_relaxed);
  pthread_mutex_lock(&worker->lock);
  if (!run_here(worker, job)) {
    append(worker, job);
    while (!atomic_load_explicit(&job->done, memory_order_relaxed))
      pthread_cond_wait(&worker->finished, &worker->lock);
  }
  pthread_mutex_unlock(&worker->lock);
}

void gki_worker_hand(gki_worker *worker, gki_job *job) {
  atomic_store_explicit(&job->done, false, memory_order_relaxed);
  pthread_mutex_lock(&worker->lock);
  if (!run_here(worker, job)) append(worker, job);
  pthread_mutex_unlock(&worker->lock);
}

void gki_worker_wait(gki_worker *worker, gki_job *job) {
  for (int spin = 0; spin < SPINS; ++spin) {
    if (atomic_load_explicit(&job->done, memory_order_acquire)) return;
    gki_pause();
  }
  pthread_mutex_lock(&worker->lock);
  while (!atomic_load_explicit(&job->done, memory_order_relaxed)) pthread_cond_wait(&worker->finished, &worker->lock);
  pthread_mutex_unlock(&worker->lock);
}
