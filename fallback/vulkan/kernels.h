/* Composed kernels, COPY and FILL as compute pipelines. */
#ifndef GKI_VULKAN_KERNELS_H
#define GKI_VULKAN_KERNELS_H
#include "vulkan/device.h"

/* COPY, FILL, and the layout that all pipelines share: push constants, which are a gki_task, a
 * gki_vulkan_control, or the parameters of handwritten code. */
gk_result gki_vulkan_load_builtin(gki_vulkan_device *device);
void gki_vulkan_drop_builtin(gki_vulkan_device *device);

/* The control shader for tables with these kinds of points (gki_vulkan_controller), made at the first call for them. It
 * belongs to the device. */
gk_result gki_vulkan_control_for(gki_vulkan_device *device, uint32_t kinds, VkPipeline *pipeline);

/* gk_backend.load and unload; the code is a gki_vulkan_kernel. */
gk_result gki_vulkan_load(void *device, const gk_kernel *kernel, void **code);
void gki_vulkan_unload(void *device, void *code);
#endif
