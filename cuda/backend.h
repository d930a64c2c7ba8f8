/* The CUDA backend, for common/base/registry.c. */
#ifndef GKI_CUDA_BACKEND_H
#define GKI_CUDA_BACKEND_H
#include "gk_backend.h"
#include "cuda/graph.h"
extern const gk_backend gki_cuda;

/* The native graph in a graph's state; NULL: the host gates it. */
gki_cuda_graph *gki_cuda_native_of(void *state);
/* The same. GK_ERROR_UNSUPPORTED, with the reason: the host gates it. */
gk_result gki_cuda_native(void *state, gki_cuda_graph **native);
#endif
