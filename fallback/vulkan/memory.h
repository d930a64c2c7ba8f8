/* Blocks of memory that the device addresses and the host sees. */
#ifndef GKI_VULKAN_MEMORY_H
#define GKI_VULKAN_MEMORY_H
#include "vulkan/device.h"

typedef struct gki_vulkan_block {
  struct gki_vulkan_block *next;
  VkBuffer buffer;
  VkDeviceMemory memory;
  uint64_t at;         /* address on the device, a multiple of 256 */
  unsigned char *here; /* the same place for the host */
  size_t bytes;
  size_t offset;       /* of `at` in the buffer */
} gki_vulkan_block;

/* bytes > 0 */
gk_result gki_vulkan_alloc(gki_vulkan_device *device, size_t bytes, gk_memory kind, gki_vulkan_block **block);
void gki_vulkan_free(gki_vulkan_device *device, gki_vulkan_block *block); /* NULL is allowed */

/* The block that has all of these bytes; NULL: none. */
gki_vulkan_block *gki_vulkan_block_of(gki_vulkan_device *device, const void *memory, size_t bytes);

/* The host's address of memory of a block; NULL: it's no memory of the device. */
void *gki_vulkan_here(gki_vulkan_device *device, const void *memory, size_t bytes);
#endif
