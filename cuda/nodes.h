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
  const gki_cuda_parameters *parameters; /* for kernels with handwritten code; */
  gki_cuda_updates *updates;             /* gets their nodes */
  CUgraph *whole; /* the owner's, which becomes NULL once the driver has freed it; any other graph is a body in it */
  char *refused;  /* gets why a body can't hold a node, as a sentence, with GK_ERROR_UNSUPPORTED */
  size_t refused_bytes;
  bool is_external; /* they go into a graph of the caller's, which the driver may mind */
  CUgraphNode *frontier;
  size_t count, capacity;
} gki_cuda_nodes;

/* Room for so many more nodes on the stack; false: there is no memory, as is said. */
bool gki_cuda_nodes_grow(gki_cuda_nodes *nodes, size_t more);

/* From now on all that follows waits for this node alone. */
gk_result gki_cuda_nodes_advance(gki_cuda_nodes *nodes, size_t first, CUgraphNode node);
/* The nodes from `first` on, as the driver takes what to wait for: NULL if there are none. */
const CUgraphNode *gki_cuda_nodes_from(const gki_cuda_nodes *nodes, size_t first);

/* For parallel branches. `narrow` reduces the frontier to one node at most, which saves edges. `fork` pushes a copy of
 * the frontier, at `begin`, for the next branch. `join` replaces the frontier by the ends of all branches, which are on
 * the stack from `copy` on. */
gk_result gki_cuda_nodes_narrow(gki_cuda_nodes *nodes, CUgraph into, uint32_t task, size_t first);
gk_result gki_cuda_nodes_fork(gki_cuda_nodes *nodes, size_t first, size_t copy, size_t *begin);
void gki_cuda_nodes_join(gki_cuda_nodes *nodes, size_t first, size_t copy);

/* The plan's node `task` is for the message: "call for task 3 (name) of graph x: ...". */
gk_result gki_cuda_nodes_result(const gki_cuda_nodes *nodes, CUresult result, const char *call, uint32_t task);

/* Behind what is to be waited for, and all that follows waits for it. added: NULL or where the node goes. */
gk_result gki_cuda_add_kernel(gki_cuda_nodes *nodes, CUgraph into, uint32_t task, size_t first, CUfunction function,
                              unsigned blocks, unsigned threads, void **parameters, CUgraphNode *added);

/* Makes a graph ready to be launched; if that fails, *exec is NULL, *why the driver's reason, as ", its structure
 * isn't valid", or "", and *at the node that it blames; NULL: none. */
CUresult gki_cuda_instantiate(const gki_cuda_device *device, CUgraph graph, CUgraphExec *exec, const char **why,
                              CUgraphNode *at);

/* Whether a KERNEL, COPY or FILL gets one block of so many threads, as it has one item, and a small one. */
enum { GKI_CUDA_SMALL_THREADS = 32 };
bool gki_cuda_is_small(const gk_plan *plan, uint32_t task);

/* A KERNEL, COPY, FILL or CALL. With `word`, an address, the kernel does nothing while the word there is the control
 * block's number. */
gk_result gki_cuda_add_task(gki_cuda_nodes *nodes, CUgraph into, uint32_t task, size_t first, CUdeviceptr guard);
#endif
