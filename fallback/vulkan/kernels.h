/* Composed kernels, COPY and FILL as compute pipelines. */
#ifndef GKI_VULKAN_KERNELS_H
#define GKI_VULKAN_KERNELS_H
#include "vulkan/device.h"

/* The layout that all pipelines share: push constants, which are a gki_task, a gki_vulkan_control, or the parameters of
 * handwritten code. Makes none of gk's pipelines, which takes long. */
gk_result gki_vulkan_load_builtin(gki_vulkan_device *device);
void gki_vulkan_drop_builtin(gki_vulkan_device *device);

/* COPY, FILL or the shader that sets grids, made at the first call for it; the device's. Thread-safe. */
gk_result gki_vulkan_builtin(gki_vulkan_device *device, int which, const gki_vulkan_kernel **kernel);

/* A control shader in the same way. kind: of the point that a step decides at, or GKI_VULKAN_WALK; form: bits as in
 * device.h. */
gk_result gki_vulkan_control_for(gki_vulkan_device *device, uint32_t kind, uint32_t form, VkPipeline *pipeline);

/* gk_backend.load and unload; the code is a gki_vulkan_kernel. */
gk_result gki_vulkan_load(void *device, const gk_kernel *kernel, void **code);
void gki_vulkan_unload(void *device, void *code);
#endif
