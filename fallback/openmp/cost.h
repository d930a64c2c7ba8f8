/* Measured costs of running sections and tasks alone or shared, and the choice between the two. */
#ifndef GKI_OPENMP_COST_H
#define GKI_OPENMP_COST_H
#include "openmp/runner.h"

/* ---- sections ---------------------------------------------------------------------------------------------------- */

typedef struct gki_pick {
  bool split, timed; /* timed: the caller must report its time */
  float saving_ns;   /* with split: the expected saving */
} gki_pick;

/* Decides how the next execution runs. Calls no clock. groups: the number of sections that would run side by side;
 * dispatch_ns: the cost of dispatching them. */
gki_pick gki_trial_pick(gki_trial *trial, uint32_t groups, float dispatch_ns);
void gki_trial_report(gki_trial *trial, bool split, uint64_t ns);

/* ---- dispatches and tasks ---------------------------------------------------------------------------------------- */

typedef enum gki_advice {
  GKI_ALONE,
  GKI_SHARE,
  GKI_HAS_STARTED, /* the team has just started, so the cost of a dispatch is known: ask again */
} gki_advice;

/* Whether to share work of which an awake subteam would save that much time. Starts the team if that pays off. */
gki_advice gki_openmp_advise(gki_runner *runner, float saving_ns);
void gki_openmp_set_subteam(gki_runner *runner, uint32_t first, uint32_t count, float dispatch_ns);
/* Measures the cost of a dispatch. Called at each start of the team, and when the cost is doubted. The team must be
 * idle. since: when (gki_now_ns) the start or the doubt began. */
void gki_openmp_calibrate(gki_openmp_device *device, uint64_t since);
/* Moves a long dispatch cost a step towards its floor. @return Whether the floor is doubted now: GKI_DISPATCH_NS
 * replaces it until the next calibration. */
bool gki_openmp_forget(gki_openmp_device *device);
/* Moves the expected time of waking or starting the team a step up or down, and so towards the median. On a busy
 * machine a wake-up can take a thousand times as long as on an idle one. */
void gki_openmp_adapt_wake(gki_openmp_device *device, float seen_ns);
/* Moves the expected time of a dispatch to an awake team a step towards the median. Only for the top runner. */
void gki_openmp_adapt_dispatch(gki_runner *runner, float seen_ns);
/* Calibrates again if the cost of a dispatch is doubted. Shared tasks correct it, too, but if it is far too long, none
 * is shared. */
void gki_openmp_reconsider(gki_runner *runner);
/* Reports the time that one thread took for so many of the op's items. */
void gki_openmp_learn(const gki_openmp_device *device, gki_op *op, size_t items, uint64_t ns);
#endif
