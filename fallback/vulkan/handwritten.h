/* Kernels with handwritten code (gk_kernel.vulkan): GLSL or SPIR-V. Their parameters are push constants. */
#ifndef GKI_VULKAN_HANDWRITTEN_H
#define GKI_VULKAN_HANDWRITTEN_H
#include "lower/params.h"
#include "vulkan/device.h"

/* gk_backend.code. */
const gk_code *gki_vulkan_code(const gk_kernel *kernel, const char **beyond);

/* Checks a kernel's entry and the size of its workgroups, and sets made->per_block. words: receives the code as SPIR-V,
 * for gk_host_free, also after a failure. */
gk_result gki_vulkan_handwritten(const gki_vulkan_device *device, const gk_kernel *kernel, const char *name,
                                 uint32_t **words, size_t *bytes, gki_vulkan_kernel *made);

/* The shader's entry. */
const char *gki_vulkan_entry(const gk_code *code);

/* A task's push constants, as the last launch has its parameters. Returns their bytes. */
uint32_t gki_vulkan_push(const gki_params *params, uint32_t number, unsigned char to[GKI_VULKAN_PUSHED]);
#endif
