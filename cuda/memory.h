/* A device's memory: allocated, copied, counted. */
#ifndef GKI_CUDA_MEMORY_H
#define GKI_CUDA_MEMORY_H
#include "cuda/device.h"

/* The backend's entries. */
gk_result gki_cuda_alloc(void *device, size_t bytes, gk_memory kind, void **memory);
void gki_cuda_free(void *device, void *memory);
gk_result gki_cuda_copy(void *device, gk_direction direction, void *to, const void *from, size_t bytes);
void *gki_cuda_host_address(void *device, void *memory);
gk_result gki_cuda_reaches(void *device, const void *memory);

/* A counter of passes for a loop in a caller's graph. It lives until the device is closed. In the device's context. */
gk_result gki_cuda_alloc_pass_count(gki_cuda_device *device, CUdeviceptr *at);

/* Frees all of them. In the device's context. */
void gki_cuda_pass_counts_drop(gki_cuda_device *device);
#endif
