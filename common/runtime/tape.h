/* What to enqueue ahead: runs in the order in which they will probably come, each gated by its own words. A wrong guess
 * costs time only. */
#ifndef GKI_RUNTIME_TAPE_H
#define GKI_RUNTIME_TAPE_H
#include "gk_ahead.h"
#include "base/memory.h"

enum { GKI_TAPE_RUNS = 1024 }; /* of a tape, at most */

typedef struct gki_tape {
  const gk_points *points;
  uint32_t *passes;     /* by loop: passes to enqueue; learned */
  uint32_t *left;       /* by loop: passes still to put on the tape */
  uint32_t *guessed;    /* by loop: passes in this tape */
  uint32_t *before;     /* by loop: passes in the state that it was filled from */
  uint32_t *cursors;    /* by lane: the point to go on from; GK_NONE: none */
  uint32_t *pending;    /* by lane that forks: lanes that haven't ended */
  bool *gated;          /* by run */
  uint32_t *runs;       /* the tape, with GK_AHEAD_BESIDE */
  uint32_t count, first; /* first: index of the first run; 1 if the tape begins with a control kernel alone */
  bool cut;             /* it is as long as it may be; the next one may follow at once */
} gki_tape;

bool gki_tape_make(gki_tape *tape, const gk_points *points, gki_arena *arena);

/* Fills the tape from a state on: `limit` runs at most. */
void gki_tape_fill(gki_tape *tape, const uint32_t *state, uint32_t limit);

/* Fills it with what follows it, if it was cut. */
void gki_tape_go_on(gki_tape *tape, uint32_t limit);

/* Learns from the state behind a tape. */
void gki_tape_learn(gki_tape *tape, const uint32_t *state);
#endif
