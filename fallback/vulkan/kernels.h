/* Composed kernels, COPY and FILL as compute pipelines. */
#ifndef GKI_VULKAN_KERNELS_H
#define GKI_VULKAN_KERNELS_H
#include "vulkan/device.h"

/* COPY, FILL, and the layout that all pipelines share: push constants, which are a gki_task, a
 * gki_vulkan_control, or the parameters of handwritten code. */
gk_result gki_vulkan_load_builtin(gki_vulkan_device *device);
void gki_vulkan_drop_builtin(gki_vulkan_device *device);

/* A control shader, made at the first call for it. It belongs to the device. kind: of the point that a step decides at,
 * or GKI_VULKAN_WALK; form: bits as in device.h. */
gk_result gki_vulkan_control_for(gki_vulkan_device *device, uint32_t kind, uint32_t form, VkPipeline *pipeline);

/* gk_backend.load and unload; the code is a gki_vulkan_kernel. */
gk_result gki_vulkan_load(void *device, const gk_kernel *kernel, void **code);
void gki_vulkan_unload(void *device, void *code);
#endif
