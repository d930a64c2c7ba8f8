/* Opening and closing a GPU. */
#ifndef GKI_CUDA_OPEN_H
#define GKI_CUDA_OPEN_H
#include "cuda/device.h"

/* @param sharing  NULL, or the caller's context and stream. */
gk_result gki_cuda_open(gki_cuda_device *device, int ordinal, const gk_cuda_sharing *sharing);
/* Also after a failed open. On a device that hangs nothing is freed, since that might never return. */
void gki_cuda_close(gki_cuda_device *device);
#endif
