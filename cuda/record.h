/* Library calls: their work is recorded into a graph by capturing a stream; what they recorded is found there. */
#ifndef GKI_CUDA_RECORD_H
#define GKI_CUDA_RECORD_H
#include "cuda/frontier.h"

/* The nodes that a node waits for. *nodes is to be freed by gk_host_free. In the device's context. */
CUresult gki_cuda_nodes_before(const gki_cuda_driver *driver, CUgraphNode node, CUgraphNode **nodes, size_t *count);

typedef struct gki_cuda_found {
  CUgraphNode *nodes; /* to be freed by gk_host_free */
  size_t count, capacity;
} gki_cuda_found;

/* Adds the nodes `ends`, all nodes that they wait for, and the nodes in child graphs among these. A node for which
 * `stops` returns true isn't the call's, and ends the search there. */
typedef bool (*gki_cuda_stops)(const void *data, CUgraphNode node);
CUresult gki_cuda_find_recorded(const gki_cuda_driver *driver, const CUgraphNode *ends, size_t count,
                                gki_cuda_stops stops, const void *data, gki_cuda_found *found);

/* Finds the first node in `recorded` or its child graphs that a conditional node's body (`in_body`), or else a child
 * graph, must not hold by CUDA's guide. *what describes it ("a host function"); NULL: there is none. */
CUresult gki_cuda_find_unfit(const gki_cuda_driver *driver, CUgraph recorded, bool in_body, const char **what);

/* Adds the work of a CALL. With GK_ERROR_UNSUPPORTED `refused` of the frontier says why a body can't hold it. */
gk_result gki_cuda_add_call(gki_cuda_frontier *f, CUgraph into, uint32_t task, size_t first);
#endif
