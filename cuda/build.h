/* The nodes of a native graph. */
#ifndef GKI_CUDA_BUILD_H
#define GKI_CUDA_BUILD_H
#include "cuda/graph.h"

/* The variant has its gates and tables. */
gk_result gki_cuda_build(gki_cuda_graph *graph, gki_cuda_variant *variant, const CUgraphConditionalHandle *handles);

/* The same in a caller's graph, behind graph->arming. */
gk_result gki_cuda_build_into(gki_cuda_graph *graph, gki_cuda_variant *variant,
                              const CUgraphConditionalHandle *handles, gki_cuda_into *into);

enum { GKI_CUDA_ARMING_THREADS = 128 };

/* Adds the arming node, the list's first node in a caller's graph. */
gk_result gki_cuda_add_arming(gki_cuda_graph *graph, const gki_cuda_into *into);
#endif
