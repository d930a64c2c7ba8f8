/* Carrying out ops: by one thread, or by a crew (a leader's seat and those behind it). */
#ifndef GKI_OPENMP_RUNNER_H
#define GKI_OPENMP_RUNNER_H
#include "openmp/program.h"

/* What one thread leads: the whole launch, or some sections of it. */
typedef struct gki_drive {
  gki_program *program;
  const gk_launch_args *launch;
  gk_walk *walk, *outermost; /* where it is, and the walk whose end is the drive's end */
  gki_fork *fork;            /* walked in series just now, the innermost */
  gk_step step;
  uint32_t at;               /* in a run: the next op */
  uint32_t first, count;     /* its crew's seats */
  float dispatch_ns;          /* of its crew */
  float break_even_ns;            /* a task that takes this long alone is worth sharing */
  float saving_missed_ns;           /* what a crew that is asleep could have saved */
  float saving_ns;           /* the same, and what sharing did save */
  bool top;                  /* the whole launch: it learns what a hand-over takes */
  bool met;                  /* the team is there */
  bool may_meet;             /* there is no team yet, and there could be */
} gki_drive;

typedef enum gki_outcome {
  GKI_DONE,
  GKI_FAILED,
} gki_outcome;

typedef enum gki_advice {
  GKI_ALONE,
  GKI_SHARE,
  GKI_HAS_MET, /* the team has met, which tells what a hand-over takes: ask again */
} gki_advice;

/* share.c: one op. */
gki_outcome gki_openmp_execute(gki_drive *drive, gki_op *op);
/* Whether to disturb the crew for something that would save so much, were it awake; has the team meet where it is worth
 * it. */
gki_advice gki_openmp_advise(gki_drive *drive, float saving_ns);
void gki_openmp_crew(gki_drive *drive, uint32_t first, uint32_t count, float dispatch_ns);
/* Measures what a hand-over takes: at each meeting, and where what was measured is doubted. The crew must be idle.
 * since: when the trouble for it began (gki_now_ns). */
void gki_openmp_calibrate(gki_openmp_device *device, uint64_t since);
/* Lets hand-overs that took long count for less. @return Whether what was measured is doubted: GKI_HANDOFF_NS is in its
 * place then, until it is measured again. */
bool gki_openmp_forget(gki_openmp_device *device);
/* What waking somebody took, or a meeting, against what was expected: a step towards the median. On a busy machine it
 * can take a thousand times as long as on an idle one. */
void gki_openmp_adapt_wake(gki_openmp_device *device, float seen_ns);

static inline bool gki_openmp_failed(const gki_program *program) {
  return atomic_load_explicit(&program->failed, memory_order_relaxed) != GK_OK;
}
/* The first failure of a launch counts. What gk_error() says goes with it. */
gki_outcome gki_openmp_fail(gki_program *program, gk_result code);
#endif
