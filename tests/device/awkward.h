/* A backend for tests, named "awkward": everything that a far device may do to common. Its memory is apart: what it
 * gives out lies in a range that can't be touched. Submits are queued, and a thread of the device's own carries them
 * out later, in batches; flags are snapshots that come when the batch is over. What a launch hands over is copied, and
 * only slots said to be changed are looked at. `loop` takes as many passes as it pleases, also none; sections run in
 * any order, interleaved. It watches whether common keeps the rules of gk_backend.h, and fails when asked to. */
#ifndef AWKWARD_H
#define AWKWARD_H
#include "gk_backend.h"

typedef enum awkward_how {
  AWKWARD_AT_ONCE, /* the call fails, having done nothing */
  AWKWARD_LATE,    /* a launch or submit says GK_OK, and what it began fails; other calls fail at once */
  AWKWARD_LOST     /* the call fails, and after it every call on that device */
} awkward_how;

void awkward_register(void); /* again: nothing */
/* Delays, sizes of batches, passes taken by `loop`, the order of sections and of items, of devices opened from now on.
 * 0: no delays, and a thread that waits for the device carries out its work, which is fast. */
void awkward_seed(uint64_t seed);

/* The call-th entry that can fail does, from now (1: the next), with that code; 0: none. Those that can are open,
 * alloc, copy, load, lower, launch, submit, read_flag and loop. */
void awkward_fail_at(unsigned long call, gk_result code);
void awkward_fail_how(awkward_how how); /* for all awkward_fail_at from now on; at first AT_ONCE */
unsigned long awkward_calls(void);      /* entries that can fail, since the last awkward_fail_at */

const char *awkward_broken(void); /* the first rule of gk_backend.h that common broke; "" */
void awkward_forgive(void);       /* forgets it */
unsigned awkward_leaks(void);     /* devices, memory, code, graphs not given back */
#endif
