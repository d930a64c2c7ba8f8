/* The CUDA backend, for common/base/registry.c. */
#ifndef GKI_CUDA_BACKEND_H
#define GKI_CUDA_BACKEND_H
#include "gk_backend.h"
extern const gk_backend gki_cuda;

/* A backend's graph that the device decides in; NULL: it is gated by the host. */
struct gki_cuda_graph *gki_cuda_native_of(void *state);
#endif
