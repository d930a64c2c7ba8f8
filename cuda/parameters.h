/* Parameters of handwritten kernels in graphs: the bound values and the number of blocks are in the nodes themselves. A
 * new binding updates only the nodes that use it, in each graph at the graph's next launch. */
#ifndef GKI_CUDA_PARAMETERS_H
#define GKI_CUDA_PARAMETERS_H
#include "cuda/device.h"
#include "cuda/slots.h"

/* What nodes have or are to have, by the task's number. */
typedef struct gki_cuda_given {
  unsigned char *bytes;  /* parameters, each task's from its `at` on */
  unsigned (*grids)[3];  /* {0, 0, 0}: no items; {0, 1, 0}: a bad count */
  uint64_t version;      /* raised at each change; 0: nothing is known */
} gki_cuda_given;

typedef struct gki_cuda_is_handwritten {
  uint32_t node;
  size_t at, bytes;
  const gki_cuda_kernel *kernel;
} gki_cuda_is_handwritten;

/* When a task was last given other values, as `version` says, and its neighbours in the order of that. */
typedef struct gki_cuda_change { uint64_t version; uint32_t later, earlier; } gki_cuda_change;

/* Of a plan. */
typedef struct gki_cuda_parameters {
  const gki_cuda_slots *slots;
  gki_cuda_is_handwritten *tasks; /* kernels with code by hand, by node */
  uint32_t count;
  size_t bytes;
  uint32_t *users, *users_at; /* tasks' numbers by slot, from users_at[slot] on: it is a parameter or counts items */
  gki_cuda_change *changes;   /* by task's number; [count] is head and tail of the ring, the latest change first */
  gki_cuda_given wanted;      /* as the last launch has it */
} gki_cuda_parameters;

/* Of a graph, or of all runs of one that the host gates. */
typedef struct gki_cuda_updates {
  CUgraphNode *nodes; /* by the task's number, */
  CUgraphExec *execs; /* and in what they are launched */
  bool *known;        /* the node has what `given` says; else nobody knows */
  gki_cuda_given given;
} gki_cuda_updates;

/* Finds them; `code` by node. All is in the arena. */
gk_result gki_cuda_parameters_find(gki_cuda_parameters *parameters, const gki_cuda_slots *slots,
                                   gki_cuda_kernel *const *code, gki_arena *arena);

/* Takes a launch's values over. A task with more items than there may be, or more blocks than a grid can have, becomes
 * one that posts it. */
void gki_cuda_parameters_take(gki_cuda_parameters *parameters, const gk_launch_args *launch);

/* Of a node that posted: GK_ERROR_INVALID if it is the blocks that are too many. */
gk_result gki_cuda_parameters_check(const gki_cuda_parameters *parameters, uint32_t node, const gk_value *values);

gk_result gki_cuda_updates_make(gki_cuda_updates *updates, const gki_cuda_parameters *parameters);
void gki_cuda_updates_drop(gki_cuda_updates *updates);

/* How to make the node of a kernel with code by hand: with what is wanted, if that is known; else it mustn't be
 * launched before it was brought up to date. Answers the task's number, for when it is made. `pointers` has room for
 * GK_MAX_ARGS. */
uint32_t gki_cuda_parameters_shape(const gki_cuda_parameters *parameters, uint32_t node,
                                   CUDA_KERNEL_NODE_PARAMS_v1 *shape, void **pointers);
void gki_cuda_updates_made(gki_cuda_updates *updates, const gki_cuda_parameters *parameters, uint32_t number,
                           CUgraphNode node);

/* The nodes of the plan's nodes begin to end - 1 are launched in that exec. */
void gki_cuda_updates_belong(gki_cuda_updates *updates, const gki_cuda_parameters *parameters, uint32_t begin,
                             uint32_t end, CUgraphExec exec);

/* Brings the nodes up to date, in the device's context; what was launched before isn't concerned. *applied becomes
 * GK_BY_NODES if there was something to do. */
gk_result gki_cuda_updates_send(gki_cuda_updates *updates, const gki_cuda_parameters *parameters, gk_applied *applied);
#endif
