/* The CUDA backend, for common/base/registry.c. */
#ifndef GKI_CUDA_BACKEND_H
#define GKI_CUDA_BACKEND_H
#include "gk_backend.h"
#include "cuda/graph.h"
extern const gk_backend gki_cuda;

/* A backend's graph that the device decides in; NULL: it is gated by the host. */
gki_cuda_graph *gki_cuda_native_of(void *state);
/* Of the backend's state of a graph. GK_ERROR_UNSUPPORTED, and why: the host gates it. */
gk_result gki_cuda_native(void *state, gki_cuda_graph **native);
#endif
