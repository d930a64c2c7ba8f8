/* Kernels: a source's text is compiled once per device, for all of its kernels. A text or image of handwritten code is
 * also loaded once per device, for all kernels that share it. */
#ifndef GKI_CUDA_KERNELS_H
#define GKI_CUDA_KERNELS_H
#include "cuda/device.h"

/* The backend's entries; `code` is a gki_cuda_kernel. */
gk_result gki_cuda_load(void *device, const gk_kernel *kernel, void **code);
void gki_cuda_unload(void *device, void *code);

/* gk's own kernels, in the device's context. Where the driver takes no image of them, own.refused says why, and that is
 * no failure; COPY and FILL are then compiled here, as for drivers that are too old for the images, and where that
 * fails, no_transfers says why. */
gk_result gki_cuda_load_builtin(gki_cuda_device *device);
void gki_cuda_drop_builtin(gki_cuda_device *device);
#endif
