/* Kernels: a source's text is compiled once per device, for all of its kernels. A text or image of handwritten code is
 * also loaded once per device, for all kernels that share it. */
#ifndef GKI_HIP_KERNELS_H
#define GKI_HIP_KERNELS_H
#include "hip/device.h"

/* The backend's entries; `code` is a gki_hip_kernel. */
gk_result gki_hip_load(void *device, const gk_kernel *kernel, void **code);
void gki_hip_unload(void *device, void *code);
const gk_code *gki_hip_code(const gk_kernel *kernel, const char **beyond);

/* Loads gk's own kernels, and finds the form of arguments that works. gki_hip_drop_builtin also frees what a failure
 * has left. */
gk_result gki_hip_load_builtin(gki_hip_device *device);
void gki_hip_drop_builtin(gki_hip_device *device);
#endif
