/* Composed kernels, COPY and FILL as compute pipelines. */
#ifndef GKI_VULKAN_KERNELS_H
#define GKI_VULKAN_KERNELS_H
#include "vulkan/device.h"

/* COPY, FILL, the control shader, and the layout that all pipelines share: a gki_task or gki_vulkan_control as push
 * constants. */
gk_result gki_vulkan_load_builtin(gki_vulkan_device *device);
void gki_vulkan_drop_builtin(gki_vulkan_device *device);

/* gk_backend.load and unload; the code is the pipeline. */
gk_result gki_vulkan_load(void *device, const gk_kernel *kernel, void **code);
void gki_vulkan_unload(void *device, void *code);
#endif
