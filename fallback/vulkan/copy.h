/* Copies of memory, in the order of the device's work. */
#ifndef GKI_VULKAN_COPY_H
#define GKI_VULKAN_COPY_H
#include "vulkan/memory.h"

/* gk_backend.copy. Thread-safe. */
gk_result gki_vulkan_copy_memory(void *device, gk_direction direction, void *to, const void *from, size_t bytes);

/* GK_ERROR_INVALID: memory that isn't the device's. */
gk_result gki_vulkan_refuse_address(const void *memory);

/* Frees what copies and the table of blocks keep. There is no block any more. */
void gki_vulkan_drop_memory(gki_vulkan_device *device);
#endif
