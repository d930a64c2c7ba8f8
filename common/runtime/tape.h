/* A tape: the runs to enqueue ahead, in the order in which they will probably come. Each run is gated by its own words
 * in the state, so a wrong guess costs only time. */
#ifndef GKI_RUNTIME_TAPE_H
#define GKI_RUNTIME_TAPE_H
#include "gk_ahead.h"
#include "base/memory.h"

enum { GKI_TAPE_RUNS = 1024 }; /* most entries of a tape */

typedef struct gki_tape {
  const gk_points *points;
  uint32_t *passes;     /* by loop: passes to enqueue; learned */
  uint32_t *left;       /* by loop: passes still to put on the tape */
  uint32_t *guessed;    /* by loop: passes in this tape */
  uint32_t *before;     /* by loop: GKW_PASSES in the state from which the tape was filled */
  uint32_t *cursors;    /* by lane: the point to guess on from; GK_NONE: the lane waits for sections, or has ended */
  uint32_t *pending;    /* by lane: sections of its PARALLEL that the guess hasn't brought to an end */
  bool *gated;          /* by run: whether the device can skip its tasks */
  uint32_t *runs;       /* the entries, as for gk_backend.ahead */
  uint32_t count;       /* number of entries */
  uint32_t first;       /* index of the first run; 1 if the tape begins with a control kernel alone */
  bool cut;             /* it has as many entries as it may have, so gki_tape_go_on can fill the next one */
} gki_tape;

bool gki_tape_make(gki_tape *tape, const gk_points *points, gki_arena *arena);

/* Fills the tape with at most `limit` entries, from the places of a state's lanes on. */
void gki_tape_fill(gki_tape *tape, const uint32_t *state, uint32_t limit);

/* After a tape that was cut: fills the tape with the entries that follow. */
void gki_tape_go_on(gki_tape *tape, uint32_t limit);

/* Learns how many passes to enqueue, from the state behind the last tape. */
void gki_tape_learn(gki_tape *tape, const uint32_t *state);
#endif
