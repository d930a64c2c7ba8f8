/* Executing ops: by one thread, or by a subteam, which is a leader's thread and the threads of the next slots. */
#ifndef GKI_OPENMP_RUNNER_H
#define GKI_OPENMP_RUNNER_H
#include "openmp/program.h"

/* The part of a launch that one thread leads: the whole launch, or some of its sections. */
typedef struct gki_runner {
  gki_program *program;
  const gk_launch_args *launch;
  gk_walk *walk, *outermost; /* where it is, and the walk whose end is the runner's end */
  gki_fork *fork;            /* walked in series just now, the innermost */
  gk_step step;
  uint32_t at;               /* in a run: the next op */
  uint32_t first, count;     /* its subteam's slots */
  float dispatch_ns;         /* of its subteam */
  float break_even_ns;       /* a task that takes this long alone is worth sharing */
  float saving_missed_ns;    /* what a subteam that is asleep could have saved */
  float saving_ns;           /* the same, and what sharing did save */
  bool top;                  /* the whole launch: it learns what a dispatch takes */
  bool started;              /* the team is there */
  bool may_start;            /* there is no team yet, and there could be */
} gki_runner;

typedef enum gki_outcome {
  GKI_DONE,
  GKI_FAILED,
} gki_outcome;

/* share.c: one op. */
gki_outcome gki_openmp_execute(gki_runner *runner, gki_op *op);

static inline bool gki_openmp_failed(const gki_program *program) {
  return atomic_load_explicit(&program->failed, memory_order_relaxed) != GK_OK;
}
/* The first failure of a launch counts, with its message for gk_error(). */
gki_outcome gki_openmp_fail(gki_program *program, gk_result code);
#endif
