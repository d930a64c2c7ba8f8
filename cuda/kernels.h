/* Kernels: a source's text is compiled once per device, for all of its kernels. A text or image of handwritten code is
 * also loaded once per device, for all kernels that share it. */
#ifndef GKI_CUDA_KERNELS_H
#define GKI_CUDA_KERNELS_H
#include "cuda/device.h"

/* The backend's entries; `code` is a gki_cuda_kernel. */
gk_result gki_cuda_load(void *device, const gk_kernel *kernel, void **code);
void gki_cuda_unload(void *device, void *code);

/* Loads gk's own kernels, in the device's context. If the driver is too old for the images, or takes none
 * (builtin.refused), COPY and FILL alone are compiled. If that fails, no_transfers has the reason. Neither is a failure
 * of this function. */
gk_result gki_cuda_load_builtin(gki_cuda_device *device);
void gki_cuda_drop_builtin(gki_cuda_device *device);
#endif
