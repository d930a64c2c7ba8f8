/* A team of threads that lives for one launch. Seat 0 is the leader, the thread that called gki_team_meet; the others
 * wait at their doorbells: they spin shortly, yield a while, then sleep until an order is posted to them. */
#ifndef GKI_OPENMP_TEAM_H
#define GKI_OPENMP_TEAM_H
#include "clock.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { GKI_APART = 128 /* bytes between what different threads write: two lines, as CPUs fetch them in pairs */ };

/* What one seat asks others to do; lives in the asker's frame until gki_team_wait has returned. */
typedef struct gki_order {
  /* index: from 1, in the order of posting. NULL: leave the team. */
  void (*work)(struct gki_order *order, uint32_t index);
  atomic_uint pending;       /* seats that aren't done, and whether the asker sleeps */
  float part_ns;             /* what one's part may take, 0: not known; who is done waits about as long awake */
  uint32_t first, count;     /* the asker's seat, and how many there are in its crew */
  uint32_t parts;            /* of them that got it, and the asker's own */
  _Atomic uint64_t woken_at; /* when the last of those who slept began (gki_now_ns), 0: nobody did */
} gki_order;

typedef struct gki_seat {
  _Alignas(GKI_APART) atomic_uint bell; /* counts the orders posted to this seat */
  atomic_uint asleep;                   /* not 0: it waits in the kernel, or is about to */
  gki_order *order;
  uint32_t index;                       /* which of those that got the order it is */
  atomic_uint taken;                    /* pieces of its part that somebody has begun */
  atomic_int thread;                    /* Linux's name for it, of this meeting or the one before; 0: nobody sat here */
  pthread_t trial;                      /* of gki_team.most */
  atomic_int cpu;                       /* where it began what it does; -1: it hasn't come, or is being woken */
} gki_seat;

typedef struct gki_team {
  uint32_t wanted; /* threads asked for */
  uint32_t most;   /* threads that can be started; 0: not tried yet */
  uint32_t size;   /* threads there are; 1 while nobody has met */
  bool crowded;    /* more threads than cores: whoever spins keeps another from its work */
  gki_seat *seats;
} gki_team;

bool gki_team_make(gki_team *team, uint32_t threads);
void gki_team_free(gki_team *team);

/* Calls lead on this thread with the team around it, and returns when all have left. */
void gki_team_meet(gki_team *team, void (*lead)(void *context), void *context);

/* Whose part k of an order is. */
static inline uint32_t gki_team_seat(uint32_t first, uint32_t count, uint32_t k, uint32_t parts) {
  return first + (uint32_t)((uint64_t)k * count / parts);
}
/* Posts an order to the seats of parts 1 to parts - 1, and returns. */
void gki_team_post(gki_team *team, gki_order *order, uint32_t first, uint32_t count, uint32_t parts);
/* Waits until all that got the order are done with it. */
void gki_team_wait(const gki_team *team, gki_order *order);

static inline bool gki_team_sleeps(const gki_team *team, uint32_t seat) {
  return atomic_load_explicit(&team->seats[seat].asleep, memory_order_relaxed) != 0;
}

#endif
