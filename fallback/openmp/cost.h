/* What running things one way or the other was measured to take, and so which way is next. Calls no clock. */
#ifndef GKI_OPENMP_COST_H
#define GKI_OPENMP_COST_H
#include <stdbool.h>
#include <stdint.h>

/* What the sections of a PARALLEL take in series (one after the other) and split (side by side). */
typedef struct gki_trial {
  bool split;               /* the faster way, as far as is known */
  uint8_t series_samples, split_samples;
  uint8_t probing;          /* executions left in which the way that lost is tried again */
  uint8_t untimed;          /* executions since one in series was timed */
  uint16_t wait, pause;     /* executions until the next such tries; and how many that is this time */
  float series_ns, split_ns;
  float last_ns, lately_ns; /* of the way that is taken: the last execution, the lesser of the last two */
} gki_trial;

typedef struct gki_pick {
  bool split, timed; /* timed: what it takes is to be reported */
  float saving_ns;   /* what splitting is expected to save, where it is split */
} gki_pick;

/* The way of the next execution. groups: of sections, how many would run side by side; dispatch_ns: what it takes to
 * share them out. */
gki_pick gki_trial_pick(gki_trial *trial, uint32_t groups, float dispatch_ns);
/* What an execution took. */
void gki_trial_report(gki_trial *trial, bool split, uint64_t ns);
#endif
