/* Nodes of handwritten kernels contain their parameters and grids. A new binding updates only the nodes that use it, in
 * each graph at the graph's next launch. */
#ifndef GKI_CUDA_PARAMETERS_H
#define GKI_CUDA_PARAMETERS_H
#include "cuda/device.h"
#include "cuda/slots.h"
#include "lower/params.h"

/* Of a plan. */
typedef struct gki_cuda_parameters {
  const gki_cuda_slots *slots;
  gki_cuda_kernel *const *code; /* by node */
  gki_params values;
} gki_cuda_parameters;

/* One more node of a task whose loop's body stands several times. */
typedef struct gki_cuda_again { CUgraphNode node; uint32_t next; } gki_cuda_again; /* next: 1 + its index; 0: none */

/* Of a graph, or of all runs of a host-gated one. */
typedef struct gki_cuda_updates {
  CUgraphNode *nodes; /* by the task's number: its first node; */
  CUgraphExec *execs; /* the graphs in which they are launched; */
  uint32_t *others;   /* 1 + the index of another node of the task; 0: none */
  gki_cuda_again *copies;
  size_t copy_count, capacity;
  gki_param_given given;
} gki_cuda_updates;

/* Finds the tasks of handwritten kernels; `code` by node. All memory is in the arena. */
gk_result gki_cuda_parameters_find(gki_cuda_parameters *parameters, const gki_cuda_slots *slots,
                                   gki_cuda_kernel *const *code, gki_arena *arena);

gk_result gki_cuda_updates_make(gki_cuda_updates *updates, const gki_cuda_parameters *parameters);
void gki_cuda_updates_drop(gki_cuda_updates *updates);

/* The shape of a handwritten kernel's node, with the values of the last launch. Before the first launch these are
 * unknown, and the node must be updated before it is launched. `pointers` has room for GK_MAX_ARGS. Returns the task's
 * number, for gki_cuda_updates_made. */
uint32_t gki_cuda_parameters_shape(const gki_cuda_parameters *parameters, uint32_t node,
                                   CUDA_KERNEL_NODE_PARAMS_v1 *shape, void **pointers);
/* One more node of the task. GK_ERROR_MEMORY, or GK_OK. */
gk_result gki_cuda_updates_made(gki_cuda_updates *updates, const gki_cuda_parameters *parameters, uint32_t number,
                                CUgraphNode node);

/* The nodes of the plan's nodes begin to end - 1 are launched in that exec. NULL: they are made anew, and have no
 * copies. */
void gki_cuda_updates_belong(gki_cuda_updates *updates, const gki_cuda_parameters *parameters, uint32_t begin,
                             uint32_t end, CUgraphExec exec);

/* Brings the nodes up to date. In the device's context. Earlier launches keep their values. *applied becomes
 * GK_BY_NODES if a node was updated. */
gk_result gki_cuda_updates_send(gki_cuda_updates *updates, const gki_cuda_parameters *parameters, gk_applied *applied);
#endif
