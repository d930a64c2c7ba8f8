/* The CUDA backend, for common/registry.c. */
#ifndef GKI_CUDA_BACKEND_H
#define GKI_CUDA_BACKEND_H
#include "gk_backend.h"
extern const gk_backend gki_cuda;
#endif
