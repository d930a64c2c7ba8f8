/* The nodes of a graph that decides by itself. */
#ifndef GKI_CUDA_BUILD_H
#define GKI_CUDA_BUILD_H
#include "cuda/graph.h"

/* Of a variant whose gates and tables are there. */
gk_result gki_cuda_build(gki_cuda_graph *graph, gki_cuda_variant *variant, const CUgraphConditionalHandle *handles);

/* The same behind graph->arming. */
gk_result gki_cuda_build_into(gki_cuda_graph *graph, gki_cuda_variant *variant,
                              const CUgraphConditionalHandle *handles, gki_cuda_into *into);

enum { GKI_CUDA_ARMING_THREADS = 128 };

/* The first node in somebody else's graph, behind his. */
gk_result gki_cuda_add_arming(gki_cuda_graph *graph, const gki_cuda_into *into);
#endif
