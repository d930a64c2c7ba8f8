/* A device's team of threads. Slot 0 is the leader's, the thread that called gki_team_start. The other threads are gk's
 * own, as OpenMP's runtimes end the process if they can't start a thread. The first start makes them. They wait at
 * their doorbells: they spin for a short time, yield for a while, then sleep until a job is posted to them. */
#ifndef GKI_OPENMP_TEAM_H
#define GKI_OPENMP_TEAM_H
#include "base/clock.h"
#include "base/within.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { GKI_APART = 128 /* bytes between what different threads write: two lines, as CPUs fetch them in pairs */ };

/* A job for other slots. It lives in the frame of the asking thread until gki_team_wait has returned. */
typedef struct gki_team_job {
  /* index: from 1, in the order of posting. NULL: the thread ends. */
  void (*work)(struct gki_team_job *job, uint32_t index);
  atomic_uint pending;       /* slots that aren't done, and whether the asking thread sleeps */
  const gki_within *within;  /* the asking slot's */
  float part_ns;             /* expected time of a part, 0: not known; a slot that is done stays awake for about that
                              * time */
  uint32_t first, count;     /* the asking slot, and the number of slots in its subteam */
  uint32_t parts;            /* of them that got it, and the asker's own */
  _Atomic uint64_t woken_at; /* when the last of those who slept began (gki_now_ns), 0: nobody did */
} gki_team_job;

typedef struct gki_worker_slot {
  _Alignas(GKI_APART) atomic_uint bell; /* counts the jobs posted to this slot */
  atomic_uint asleep;                   /* not 0: it waits in the kernel, or is about to */
  gki_team_job *job;
  uint32_t index;                       /* which of those that got the job it is */
  atomic_uint taken;                    /* chunks of its part that somebody has begun */
  pthread_t own;                        /* the thread that sits here, but for the leader's slot */
  atomic_int thread;                    /* Linux's number for it; 0: it hasn't begun */
  atomic_int cpu;                       /* where it began what it does; -1: it hasn't come, or is being woken */
  const struct gki_team *team;
} gki_worker_slot;

typedef struct gki_team {
  uint32_t wanted; /* threads asked for: sums are cut by it, so that a limit doesn't change their bits */
  uint32_t most;   /* of them OpenMP allows (OMP_THREAD_LIMIT); once started, those there are */
  uint32_t size;   /* those there are while a launch uses them, else 1 */
  bool started;
  pid_t process;   /* that started them: a child that it forks has none of them */
  size_t stack_bytes; /* of each thread; 0: as the system has it */
  bool crowded;    /* more threads than cores: whoever spins keeps another from its work */
  gki_worker_slot *slots;
} gki_team;

bool gki_team_make(gki_team *team, uint32_t threads, size_t stack_bytes);
void gki_team_free(gki_team *team); /* ends its threads */

/* The caller leads the team until the lead is given back. */
void gki_team_start(gki_team *team);
static inline void gki_team_part(gki_team *team) { team->size = 1; }

/* The slot of a job's part k. */
static inline uint32_t gki_team_slot_of(uint32_t first, uint32_t count, uint32_t k, uint32_t parts) {
  return first + (uint32_t)((uint64_t)k * count / parts);
}
/* Posts a job to the slots of parts 1 to parts - 1, and returns. */
void gki_team_post(gki_team *team, gki_team_job *job, uint32_t first, uint32_t count, uint32_t parts);
/* Waits until all slots that got the job are done with it. */
void gki_team_wait(const gki_team *team, gki_team_job *job);

static inline bool gki_team_sleeps(const gki_team *team, uint32_t slot) {
  return atomic_load_explicit(&team->slots[slot].asleep, memory_order_relaxed) != 0;
}

#endif
