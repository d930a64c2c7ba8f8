/* Tasks as nodes of a graph, for native and host-gated graphs. */
#ifndef GKI_CUDA_NODES_H
#define GKI_CUDA_NODES_H
#include "cuda/parameters.h"

/* Adds tasks to a graph. `frontier` is a stack: the entries from `first` on are the nodes that the next node of the
 * current block waits for. The owner frees it by gk_host_free. */
typedef struct gki_cuda_nodes {
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
  CUgraphNode *frontier;
  size_t count, capacity;
} gki_cuda_nodes;

/* Makes room for so many more nodes on the stack. False: out of memory, and gk_fail has been called. */
bool gki_cuda_nodes_grow(gki_cuda_nodes *nodes, size_t more);

/* The frontier from `first` on becomes this node alone. */
gk_result gki_cuda_nodes_advance(gki_cuda_nodes *nodes, size_t first, CUgraphNode node);
/* The frontier from `first` on, for the driver; NULL if it is empty. */
const CUgraphNode *gki_cuda_nodes_from(const gki_cuda_nodes *nodes, size_t first);

/* For parallel branches. `narrow` reduces the frontier to one node at most, which saves edges. `fork` pushes a copy of
 * the frontier, at `begin`, for the next branch. `join` replaces the frontier by the ends of all branches, which are on
 * the stack from `copy` on. */
gk_result gki_cuda_nodes_narrow(gki_cuda_nodes *nodes, CUgraph into, uint32_t task, size_t first);
gk_result gki_cuda_nodes_fork(gki_cuda_nodes *nodes, size_t first, size_t copy, size_t *begin);
void gki_cuda_nodes_join(gki_cuda_nodes *nodes, size_t first, size_t copy);

/* Maps a driver's result. The message names the plan's node `task`: "call for task 3 (name) of graph x: ...". */
gk_result gki_cuda_nodes_result(const gki_cuda_nodes *nodes, CUresult result, const char *call, uint32_t task);

/* Adds a kernel node behind the frontier, which then is that node. @param added  NULL, or gets the node. */
gk_result gki_cuda_add_kernel(gki_cuda_nodes *nodes, CUgraph into, uint32_t task, size_t first, CUfunction function,
                              unsigned blocks, unsigned threads, void **parameters, CUgraphNode *added);

/* Instantiates a graph. On failure *exec is NULL, *why the driver's reason, such as ", its structure isn't valid", or
 * "", and *at the node that the driver blames, or NULL. */
CUresult gki_cuda_instantiate(const gki_cuda_device *device, CUgraph graph, CUgraphExec *exec, const char **why,
                              CUgraphNode *at);

/* Whether a KERNEL, COPY or FILL has just one item, and a small one. It then gets one block of so many threads. */
enum { GKI_CUDA_SMALL_THREADS = 32 };
bool gki_cuda_is_small(const gk_plan *plan, uint32_t task);

/* Adds a KERNEL, COPY, FILL or CALL. `guard` is an address or 0: the kernel does nothing while the guard holds the
 * control block's number. */
gk_result gki_cuda_add_task(gki_cuda_nodes *nodes, CUgraph into, uint32_t task, size_t first, CUdeviceptr guard);
#endif
