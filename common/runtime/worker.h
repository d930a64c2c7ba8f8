/* A device's in-order queue of work. Jobs run in the order in which they were posted, on the worker's thread, which
 * goes to sleep soon after its last job. If the caller would wait anyway, a job runs on the caller's thread, when it is
 * its turn. Posting neither blocks nor allocates: the caller keeps a job's memory until it is done. */
#ifndef GKI_RUNTIME_WORKER_H
#define GKI_RUNTIME_WORKER_H
#include "gk_backend.h"
#include "base/within.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct gki_job {
  void (*run)(struct gki_job *job);
  struct gki_job *next;
  atomic_bool done; /* false from the post until `run` has returned */
  bool here;        /* the thread that queued it runs it, not the worker's */
  atomic_bool next_here; /* such a job's turn has come */
} gki_job;

typedef struct gki_worker {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t posted, finished;
  atomic_uint changes; /* a count; the thread waits until it changes */
  _Atomic uint64_t contended_until; /* CLOCK_MONOTONIC, in ns: until then other threads need the cores, too */
  gki_job *first, *last;
  bool busy; /* a job runs, here or on a caller's thread */
  bool ending;
} gki_worker;

gk_result gki_worker_start(gki_worker *worker);
void gki_worker_stop(gki_worker *worker); /* runs the queued jobs first */

/* Runs the job on the worker's thread, after everything that was posted before. */
void gki_worker_post(gki_worker *worker, gki_job *job);
/* The same on the caller's thread, and returns when the job is done. */
void gki_worker_run(gki_worker *worker, gki_job *job);
/* Runs the job on the caller's thread now if nothing is under way; otherwise posts it. For jobs that don't block. */
void gki_worker_run_or_post(gki_worker *worker, gki_job *job);
void gki_worker_wait(gki_worker *worker, gki_job *job);
#endif
