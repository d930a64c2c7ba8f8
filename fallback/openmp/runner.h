/* Executes ops on one thread or on a subteam: a leader's thread and the threads of the next team slots. */
#ifndef GKI_OPENMP_RUNNER_H
#define GKI_OPENMP_RUNNER_H
#include "openmp/program.h"

/* The part of a launch that one thread leads: the whole launch or some of its sections. */
typedef struct gki_runner {
  gki_program *program;
  const gk_launch_args *launch;
  gk_walk *walk, *outermost; /* the current walk, and the walk with which the runner ends */
  gki_fork *fork;            /* the innermost fork that is walked in series */
  gk_step step;
  uint32_t at;               /* in a run: the next op */
  uint32_t first, count;     /* the subteam's team slots */
  float dispatch_ns;         /* expected time of a dispatch to the subteam */
  float break_even_ns;       /* a task that takes at least this long on one thread is shared */
  float saving_missed_ns;    /* time that the subteam would have saved if it had been awake */
  float saving_ns;           /* time that sharing has saved or would have saved */
  bool top;                  /* the runner of the whole launch: only it learns costs of the team */
  bool started;              /* it has started the team */
  bool may_start;            /* it may start the team, which hasn't started */
} gki_runner;

typedef enum gki_outcome {
  GKI_DONE,
  GKI_FAILED,
} gki_outcome;

/* Executes one op, but no FORK or JOIN. In share.c. */
gki_outcome gki_openmp_execute(gki_runner *runner, gki_op *op);

static inline bool gki_openmp_failed(const gki_program *program) {
  return atomic_load_explicit(&program->failed, memory_order_relaxed) != GK_OK;
}
/* Notes a failure of the launch, with the message of gk_error(). Only the first failure counts. */
gki_outcome gki_openmp_fail(gki_program *program, gk_result code);
#endif
