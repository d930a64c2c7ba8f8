/* Kinds of ops: loops, tasks, targets of launches, those that open blocks. */
#ifndef GKI_BASE_OP_H
#define GKI_BASE_OP_H
#include "gk.h"

static inline bool gki_op_is_loop(gk_op op) { return op >= GK_OP_DO_WHILE && op <= GK_OP_REPEAT; }
static inline bool gki_op_is_task(gk_op op) { return op >= GK_OP_KERNEL && op <= GK_OP_CALL_HOST; }
static inline bool gki_op_is_call(gk_op op) { return op == GK_OP_CALL || op == GK_OP_CALL_HOST; }

/* Whether a launch may begin there. The plan and the status number these as checkpoints. */
static inline bool gki_op_is_target(gk_op op) { return op == GK_OP_CHECKPOINT || op == GK_OP_YIELD; }

/* Whether it opens a block that an END closes. */
static inline bool gki_op_opens(gk_op op) {
  return gki_op_is_loop(op) || op == GK_OP_IF || op == GK_OP_SWITCH || op == GK_OP_CASE || op == GK_OP_CHECKPOINT ||
         op == GK_OP_PARALLEL || op == GK_OP_SECTION;
}
#endif
