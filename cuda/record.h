/* The work that library calls recorded into a graph. */
#ifndef GKI_CUDA_RECORD_H
#define GKI_CUDA_RECORD_H
#include "cuda/device.h"

/* The nodes that one comes behind; *nodes is to be freed by gk_host_free. In the device's context. */
CUresult gki_cuda_nodes_before(const gki_cuda_driver *driver, CUgraphNode node, CUgraphNode **nodes, size_t *count);

typedef struct gki_cuda_found {
  CUgraphNode *nodes; /* to be freed by gk_host_free */
  size_t count, capacity;
} gki_cuda_found;

/* Adds those nodes, what is in child graphs among them, and all that they come behind, up to where `stops` says that
 * a node is none of this call. */
typedef bool (*gki_cuda_stops)(const void *data, CUgraphNode node);
CUresult gki_cuda_find_recorded(const gki_cuda_driver *driver, const CUgraphNode *ends, size_t count,
                                gki_cuda_stops stops, const void *data, gki_cuda_found *found);

/* *what: the first in it, or in its child graphs, that no body of a conditional node, or else no child graph, may hold,
 * in words ("a host function"); NULL: all fit. Kinds of nodes as CUDA's guide has them. */
CUresult gki_cuda_find_unfit(const gki_cuda_driver *driver, CUgraph recorded, bool in_body, const char **what);
#endif
