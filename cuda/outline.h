/* The lowered form of a list on the device, for gk_dump: graphs, nodes, bodies, kernels. It doesn't call the driver. */
#ifndef GKI_CUDA_OUTLINE_H
#define GKI_CUDA_OUTLINE_H
#include "cuda/gated.h"
#include "cuda/graph.h"

/* Format: "text", "dot" or "json". To be freed by free(). NULL: out of memory. */
char *gki_cuda_outline_native(const gki_cuda_graph *graph, const char *format);
/* @param why  The reason for host-gating, as a sentence without its full stop. */
char *gki_cuda_outline_gated(const gki_cuda_gated *graph, const char *why, const char *format);
#endif
