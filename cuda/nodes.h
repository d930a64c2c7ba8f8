/* Tasks as nodes of a graph, for native and host-gated graphs. */
#ifndef GKI_CUDA_NODES_H
#define GKI_CUDA_NODES_H
#include "cuda/frontier.h"

/* Instantiates a graph. On failure *exec is NULL, *why the driver's reason, such as ", its structure isn't valid", or
 * "", and *at the node that the driver blames, or NULL. */
CUresult gki_cuda_instantiate(const gki_cuda_device *device, CUgraph graph, CUgraphExec *exec, const char **why,
                              CUgraphNode *at);

/* Whether a KERNEL, COPY or FILL has just one item, and a small one. It then gets one block of so many threads. */
enum { GKI_CUDA_SMALL_THREADS = 32 };
bool gki_cuda_is_small(const gk_plan *plan, uint32_t task);

/* Adds a KERNEL, COPY, FILL or CALL. `guard` is an address or 0: the kernel does nothing while the guard holds the
 * control block's number. */
gk_result gki_cuda_add_task(gki_cuda_frontier *f, CUgraph into, uint32_t task, size_t first, CUdeviceptr guard);
#endif
