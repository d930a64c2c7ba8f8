/* Memory that the device addresses: chunks of the driver's, divided into blocks. */
#ifndef GKI_VULKAN_MEMORY_H
#define GKI_VULKAN_MEMORY_H
#include "vulkan/device.h"

typedef struct gki_vulkan_block {
  VkBuffer buffer;
  uint64_t address;               /* address on the device; a multiple of 256, unless it is the program's */
  unsigned char *host;            /* the same place for the host; NULL: the block is unmapped */
  size_t bytes;
  size_t offset;                  /* of `address` in the buffer */
  struct gki_vulkan_chunk *chunk; /* NULL: it is the program's */
  bool is_free;
  struct gki_vulkan_block *next, **link; /* free ranges of a class, and what points at this one */
} gki_vulkan_block;

/* bytes > 0. Thread-safe, like all of these functions. */
gk_result gki_vulkan_alloc(gki_vulkan_device *device, size_t bytes, gk_memory kind, gki_vulkan_block **block);
void gki_vulkan_free(gki_vulkan_device *device, gki_vulkan_block *block); /* NULL is allowed */

/* A block of memory that stays the program's: a buffer with VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
 * _SHADER_DEVICE_ADDRESS_BIT, _TRANSFER_SRC_BIT and _TRANSFER_DST_BIT. at: the address of its byte `offset`. host:
 * NULL, or where the host sees it, without flushing. gki_vulkan_free leaves the buffer as it is. */
gk_result gki_vulkan_add_block(gki_vulkan_device *device, VkBuffer buffer, size_t offset, uint64_t at, size_t bytes,
                               void *host, gki_vulkan_block **block);
static inline bool gki_vulkan_is_added(const gki_vulkan_block *block) { return !block->chunk; }

/* The block that has all of these bytes; NULL: none. */
gki_vulkan_block *gki_vulkan_block_of(gki_vulkan_device *device, const void *memory, size_t bytes);

/* Whether the host reads the block as fast as memory of its own. Else a copy by the device is faster. */
bool gki_vulkan_reads_fast(const gki_vulkan_block *block);

/* gk_backend.copy. Thread-safe. */
gk_result gki_vulkan_copy_memory(void *device, gk_direction direction, void *to, const void *from, size_t bytes);

/* GK_ERROR_INVALID: memory that isn't the device's. */
gk_result gki_vulkan_refuse_address(const void *memory);

/* Frees what copies and the table of blocks keep. There is no block any more. */
void gki_vulkan_drop_memory(gki_vulkan_device *device);
#endif
