/* Library calls of a plan: recorded into graphs, and again when one of their slots was bound to something else. */
#ifndef GKI_LOWER_CALLS_H
#define GKI_LOWER_CALLS_H
#include "gk_backend.h"
#include "base/memory.h"

typedef struct gki_calls {
  const gk_plan *plan;
  bool any;         /* there are some */
  bool *slots;      /* by slot: one of them has it */
  gk_value *values; /* by slot: with which they are recorded */
} gki_calls;

/* Finds them; at first the values are those that the list itself gives. */
gk_result gki_calls_find(gki_calls *calls, const gk_plan *plan, gki_arena *arena);

/* Whether the list gives all of their values: what they record depends on them. */
bool gki_calls_can_record(const gki_calls *calls);

/* Takes over a launch's values; whether one of theirs isn't what it was. */
bool gki_calls_changed(gki_calls *calls, const gk_launch_args *launch);
#endif
