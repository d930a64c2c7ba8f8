/* Which tasks of a run may be on a device together: the run in levels, for backends that put barriers between tasks. */
#ifndef GKI_PLAN_LEVELS_H
#define GKI_PLAN_LEVELS_H
#include "base/memory.h"

/* A task's level is the least above those of all tasks before it whose memory it needs, or whose reading it would
 * disturb; tasks that read their counts from memory are in list order, too. So tasks of one level are independent, and
 * a run has as many levels as its longest chain of tasks. Library calls have no level. All of this holds while no two
 * slots are bound to overlapping memory. */
typedef struct gki_levels {
  uint32_t *tasks;  /* the nodes of all tasks, by level; within a level in list order */
  uint32_t *at;     /* by level: index of its first task; then the number of tasks */
  uint32_t *of_run; /* by run: its first level; then the number of levels */
  bool *written;    /* by slot: a task changes its memory */
} gki_levels;

/* Takes time and memory linear in the plan's size. GK_ERROR_MEMORY: a message has been set. */
gk_result gki_levels_make(gki_levels *levels, const gk_plan *plan, gki_arena *arena);
#endif
