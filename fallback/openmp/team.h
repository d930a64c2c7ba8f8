/* A device's team of threads, one per slot. Slot 0 belongs to the leader, the thread that called gki_team_start.
 * The first start makes the other threads. They are gk's own, because OpenMP's runtimes end the process if they can't
 * start a thread. A thread waits at its doorbell: it spins for a short time, yields for a while, then sleeps until a
 * job is posted to its slot. */
#ifndef GKI_OPENMP_TEAM_H
#define GKI_OPENMP_TEAM_H
#include "base/clock.h"
#include "base/within.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { GKI_APART = 128 /* bytes between data of different threads: two cache lines, since CPUs fetch them in pairs */ };

/* A job for several team slots. It lives in the frame of the posting thread until gki_team_wait returns. */
typedef struct gki_team_job {
  /* index: the part of the job, from 1; the posting thread does part 0. NULL: the thread ends. */
  void (*work)(struct gki_team_job *job, uint32_t index);
  atomic_uint pending;       /* slots that aren't done, and a bit: the posting thread sleeps */
  const gki_within *within;  /* of the posting thread */
  float part_ns;             /* expected time of a part, 0: not known; a thread that is done stays awake for as long */
  uint32_t first, count;     /* the posting thread's slot, and the number of slots in its subteam */
  uint32_t parts;            /* slots with a part, the posting thread's included */
  _Atomic uint64_t woken_at; /* when (gki_now_ns) the last thread that had slept began; 0: none had slept */
} gki_team_job;

typedef struct gki_team_slot {
  _Alignas(GKI_APART) atomic_uint bell; /* counts the jobs posted to this slot */
  atomic_uint asleep;                   /* not 0: the thread sleeps in the system, or is about to */
  gki_team_job *job;
  uint32_t index;                       /* its part of the job */
  atomic_uint taken;                    /* chunks of that part that threads have begun */
  pthread_t thread;                     /* unused in the leader's slot */
  atomic_int tid;                       /* the thread's id (gettid); 0: it hasn't begun */
  atomic_int cpu;                       /* the core where it began its last job; -1: not yet, or it is being woken */
  const struct gki_team *team;
} gki_team_slot;

typedef struct gki_team {
  uint32_t asked_for; /* threads; how sums are cut depends on it alone, so OMP_THREAD_LIMIT doesn't change their bits */
  uint32_t limit;  /* most threads, by OMP_THREAD_LIMIT; after the start, the number of threads */
  uint32_t in_use; /* number of threads while a launch uses them, else 1 */
  bool started;
  pid_t process;   /* that has started the threads: its forked children have none */
  size_t stack_bytes; /* of each thread; 0: the system's default */
  cpu_set_t cores; /* affinity of the thread that made the team; empty: unknown */
  bool crowded;    /* there are more threads than cores: a thread that spins delays another one */
  gki_team_slot *slots;
} gki_team;

bool gki_team_make(gki_team *team, uint32_t threads, size_t stack_bytes);
void gki_team_free(gki_team *team); /* ends its threads */

/* The caller leads the team until it calls gki_team_release. */
void gki_team_start(gki_team *team);
static inline void gki_team_release(gki_team *team) { team->in_use = 1; }

/* The team slot of a job's part k. */
static inline uint32_t gki_team_slot_of(uint32_t first, uint32_t count, uint32_t k, uint32_t parts) {
  return first + (uint32_t)((uint64_t)k * count / parts);
}
/* Posts parts 1 to parts - 1 of a job. */
void gki_team_post(gki_team *team, gki_team_job *job, uint32_t first, uint32_t count, uint32_t parts);
/* Waits for all of these parts. */
void gki_team_wait(const gki_team *team, gki_team_job *job);

static inline bool gki_team_sleeps(const gki_team *team, uint32_t slot) {
  return atomic_load_explicit(&team->slots[slot].asleep, memory_order_relaxed) != 0;
}

#endif
