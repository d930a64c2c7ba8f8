/* The measured cost of the ways to run something, and the choice of the next way. */
#ifndef GKI_OPENMP_COST_H
#define GKI_OPENMP_COST_H
#include "openmp/runner.h"

/* ---- sections ---------------------------------------------------------------------------------------------------- */

typedef struct gki_pick {
  bool split, timed; /* timed: its time must be reported */
  float saving_ns;   /* the expected saving of a split, if it is split */
} gki_pick;

/* The way of the next execution; calls no clock. groups: of sections, the number that would run side by side;
 * dispatch_ns: the cost of sharing them out. */
gki_pick gki_trial_pick(gki_trial *trial, uint32_t groups, float dispatch_ns);
/* Reports the time of an execution. */
void gki_trial_report(gki_trial *trial, bool split, uint64_t ns);

/* ---- dispatches and tasks ---------------------------------------------------------------------------------------- */

typedef enum gki_advice {
  GKI_ALONE,
  GKI_SHARE,
  GKI_HAS_STARTED, /* the team has started, so the cost of a dispatch is known: choose again */
} gki_advice;

/* Whether to use the subteam for something that would save that much time with an awake team; starts the team if that
 * is worth it. */
gki_advice gki_openmp_advise(gki_runner *runner, float saving_ns);
void gki_openmp_set_subteam(gki_runner *runner, uint32_t first, uint32_t count, float dispatch_ns);
/* Measures the cost of a dispatch: at each start, and when the measured cost is doubted. The subteam must be idle.
 * since: when the start or the doubt began (gki_now_ns). */
void gki_openmp_calibrate(gki_openmp_device *device, uint64_t since);
/* Gives long dispatches less weight. @return Whether the measured cost is doubted: then GKI_DISPATCH_NS replaces it
 * until the next measurement. */
bool gki_openmp_forget(gki_openmp_device *device);
/* Moves the expected time of waking a thread, or of starting the team, a step towards the median. On a busy machine it
 * can take a thousand times as long as on an idle one. */
void gki_openmp_adapt_wake(gki_openmp_device *device, float seen_ns);
/* Moves the expected time of a dispatch to an awake team a step towards the median. */
void gki_openmp_adapt_awake(gki_runner *runner, float seen_ns);
/* Measures the cost of a dispatch again: if the known cost is too long, nothing is shared, and nothing would show the
 * error. */
void gki_openmp_reconsider(gki_runner *runner);
/* Reports the time of that many of the op's items on one thread. */
void gki_openmp_learn(const gki_openmp_device *device, gki_op *op, size_t items, uint64_t ns);
#endif
