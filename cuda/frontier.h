/* The place in a graph where the next nodes go. Above it, record.h adds library calls, and nodes.h adds all tasks. */
#ifndef GKI_CUDA_FRONTIER_H
#define GKI_CUDA_FRONTIER_H
#include "cuda/parameters.h"

/* `nodes` is a stack: the entries from `first` on are those that the next node of the current block waits for. The
 * owner frees it by gk_host_free. The other fields are what nodes are made of. */
typedef struct gki_cuda_frontier {
  CUgraphNode *nodes;
  size_t count, capacity;
  const gki_cuda_device *device;
  const gki_cuda_slots *slots;
  gki_cuda_kernel *const *code; /* by node of the plan */
  const gk_value *values;       /* by slot, for library calls */
  const gki_cuda_parameters *parameters; /* of handwritten kernels */
  gki_cuda_updates *updates;             /* gets the nodes of handwritten kernels */
  CUgraph *whole; /* the root graph; NULL once the driver has freed it. Any other graph is a body in it */
  char *refused;  /* with GK_ERROR_UNSUPPORTED: why a body can't hold a node, as a sentence */
  size_t refused_bytes;
  bool is_external; /* the nodes go into a caller's graph, which the driver may refuse */
} gki_cuda_frontier;

/* Makes room for so many more nodes on the stack. False: out of memory, and gk_fail has been called. */
bool gki_cuda_frontier_grow(gki_cuda_frontier *f, size_t more);

/* The frontier from `first` on becomes this node alone. */
gk_result gki_cuda_frontier_advance(gki_cuda_frontier *f, size_t first, CUgraphNode node);
/* The frontier from `first` on, for the driver; NULL if it is empty. */
const CUgraphNode *gki_cuda_frontier_from(const gki_cuda_frontier *f, size_t first);

/* For parallel branches. `narrow` reduces the frontier to one node at most, which saves edges. `fork` pushes a copy of
 * the frontier, at `begin`, for the next branch. `join` replaces the frontier by the ends of all branches, which are on
 * the stack from `copy` on. */
gk_result gki_cuda_frontier_narrow(gki_cuda_frontier *f, CUgraph into, uint32_t task, size_t first);
gk_result gki_cuda_frontier_fork(gki_cuda_frontier *f, size_t first, size_t copy, size_t *begin);
void gki_cuda_frontier_join(gki_cuda_frontier *f, size_t first, size_t copy);

/* Maps a driver's result. The message names the plan's node `task`: "call for task 3 (name) of graph x: ...". */
gk_result gki_cuda_frontier_result(const gki_cuda_frontier *f, CUresult result, const char *call, uint32_t task);

/* Add a node behind the frontier, which then is that node. @param added  NULL, or gets the node. */
gk_result gki_cuda_add_empty(gki_cuda_frontier *f, CUgraph into, uint32_t task, size_t first);
gk_result gki_cuda_add_kernel_node(gki_cuda_frontier *f, CUgraph into, uint32_t task, size_t first,
                                   const CUDA_KERNEL_NODE_PARAMS_v1 *shape, CUgraphNode *added);
gk_result gki_cuda_add_kernel(gki_cuda_frontier *f, CUgraph into, uint32_t task, size_t first, CUfunction function,
                              unsigned blocks, unsigned threads, void **parameters, CUgraphNode *added);
#endif
