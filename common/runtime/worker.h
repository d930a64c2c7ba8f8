/* A device's one line of work: jobs run in the order in which they were posted, on a thread that soon sleeps when there
 * are none, or on the caller's own where nothing is under way and it would wait anyhow. Posting never blocks nor
 * allocates: a job's memory is the caller's until it is done. */
#ifndef GKI_RUNTIME_WORKER_H
#define GKI_RUNTIME_WORKER_H
#include "gk_backend.h"
#include "base/within.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct gki_job {
  void (*run)(struct gki_job *job);
  struct gki_job *next;
  atomic_bool done; /* false from post until run has returned */
} gki_job;

typedef struct gki_worker {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t posted, finished;
  atomic_uint told; /* counts what the thread is told of */
  _Atomic uint64_t crowded_until; /* CLOCK_MONOTONIC, in ns: until then others want the cores, too */
  gki_job *first, *last;
  bool busy; /* a job runs, here or on a caller's thread */
  bool ending;
} gki_worker;

gk_result gki_worker_start(gki_worker *worker);
void gki_worker_stop(gki_worker *worker); /* carries out what was posted first */

/* Runs the job after all that was posted before, on the worker's thread. */
void gki_worker_post(gki_worker *worker, gki_job *job);
/* The same, and returns when it is done; on the caller's thread if nothing is under way. */
void gki_worker_run(gki_worker *worker, gki_job *job);
/* Runs the job on the caller's thread now if nothing is under way, else posts it. For jobs that don't block. */
void gki_worker_run_or_post(gki_worker *worker, gki_job *job);
void gki_worker_wait(gki_worker *worker, gki_job *job);
#endif
