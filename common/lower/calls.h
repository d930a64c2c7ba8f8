/* Library calls of a plan: recorded into graphs, and recorded again when one of their slots has a new binding. */
#ifndef GKI_LOWER_CALLS_H
#define GKI_LOWER_CALLS_H
#include "gk_backend.h"
#include "base/memory.h"

typedef struct gki_calls {
  const gk_plan *plan;
  bool any;         /* there are calls */
  bool *slots;      /* by slot: a call has it */
  gk_value *values; /* by slot: its value at the recording */
} gki_calls;

/* Finds the calls. At first the values are those that the list gives. */
gk_result gki_calls_find(gki_calls *calls, const gk_plan *plan, gki_arena *arena);

/* Whether the list gives all of their values, on which the recording depends. */
bool gki_calls_can_record(const gki_calls *calls);

/* Copies a launch's values. Returns whether a value of the calls has changed. */
bool gki_calls_changed(gki_calls *calls, const gk_launch_args *launch);
#endif
