/* What running things one way or the other was measured to take, and so which way is next. */
#ifndef GKI_OPENMP_COST_H
#define GKI_OPENMP_COST_H
#include "openmp/runner.h"

/* ---- sections ---------------------------------------------------------------------------------------------------- */

typedef struct gki_pick {
  bool split, timed; /* timed: what it takes is to be reported */
  float saving_ns;   /* what splitting is expected to save, where it is split */
} gki_pick;

/* The way of the next execution; calls no clock. groups: of sections, how many would run side by side; dispatch_ns:
 * what it takes to share them out. */
gki_pick gki_trial_pick(gki_trial *trial, uint32_t groups, float dispatch_ns);
/* What an execution took. */
void gki_trial_report(gki_trial *trial, bool split, uint64_t ns);

/* ---- hand-overs and tasks ---------------------------------------------------------------------------------------- */

typedef enum gki_advice {
  GKI_ALONE,
  GKI_SHARE,
  GKI_HAS_STARTED, /* the team has started, which tells what a hand-over takes: ask again */
} gki_advice;

/* Whether to disturb the subteam for something that would save so much, were it awake; starts the team where that is
 * worth it. */
gki_advice gki_openmp_advise(gki_runner *runner, float saving_ns);
void gki_openmp_set_subteam(gki_runner *runner, uint32_t first, uint32_t count, float dispatch_ns);
/* Measures what a hand-over takes: at each start, and where what was measured is doubted. The subteam must be idle.
 * since: when the trouble for it began (gki_now_ns). */
void gki_openmp_calibrate(gki_openmp_device *device, uint64_t since);
/* Lets hand-overs that took long count for less. @return Whether what was measured is doubted: GKI_HANDOFF_NS is in its
 * place then, until it is measured again. */
bool gki_openmp_forget(gki_openmp_device *device);
/* What waking a thread took, or starting the team, against what was expected: a step towards the median. On a busy
 * machine it can take a thousand times as long as on an idle one. */
void gki_openmp_adapt_wake(gki_openmp_device *device, float seen_ns);
/* What a hand-over to a team that is awake took, against what was expected: a step towards the median. */
void gki_openmp_adapt_awake(gki_runner *runner, float seen_ns);
/* What a hand-over seems to take, once more: if that is too long, nothing is shared, and nothing would show it. */
void gki_openmp_reconsider(gki_runner *runner);
/* So many of the op's items took so long on one thread. */
void gki_openmp_learn(const gki_openmp_device *device, gki_op *op, size_t items, uint64_t ns);
#endif
