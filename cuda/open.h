/* Opening and closing a GPU. */
#ifndef GKI_CUDA_OPEN_H
#define GKI_CUDA_OPEN_H
#include "cuda/device.h"

/* sharing: NULL, or with what is the caller's. */
gk_result gki_cuda_open(gki_cuda_device *device, int ordinal, const gk_cuda_sharing *sharing);
/* Copes with what open left half done. On a device that hangs nothing is given back, as that might never return. */
void gki_cuda_close(gki_cuda_device *device);
#endif
