#include "vulkan/memory.h"
#include "base/error.h"

enum { ALIGNMENT = 256 };
#define UNKNOWN UINT32_MAX

/* The first of the allowed types with all of these properties. */
static uint32_t type_with(const gki_vulkan_device *d, uint32_t allowed, VkFlags wanted) {
  for (uint32_t k = 0; k < d->kinds.memoryTypeCount; ++k)
    if ((allowed >> k & 1) && (d->kinds.memoryTypes[k].propertyFlags & wanted) == wanted) return k;
  return UNKNOWN;
}

/* Each device has a type that the host sees without flushing. */
static uint32_t type_for(const gki_vulkan_device *d, uint32_t allowed, gk_memory kind) {
  const VkFlags seen = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const uint32_t best = type_with(d, allowed, seen | (kind == GK_HOST_MEMORY ? VK_MEMORY_PROPERTY_HOST_CACHED_BIT
                                                                             : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT));
  return best != UNKNOWN ? best : type_with(d, allowed, seen);
}

static gk_result too_large(const gki_vulkan_device *d, size_t bytes, VkDeviceSize most) {
  return gk_fail(GK_ERROR_MEMORY, "out of device memory: %zu bytes; %s has %llu that the host sees", bytes, d->name,
                 (unsigned long long)most);
}

static gk_result make(gki_vulkan_device *d, size_t bytes, gk_memory kind, gki_vulkan_block *block) {
  const gki_vulkan_driver *driver = &d->driver;
  const VkBufferUsageFlags condition =
      d->features.conditions.conditionalRendering ? VK_BUFFER_USAGE_CONDITIONAL_RENDERING_BIT_EXT : 0;
  const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes + ALIGNMENT,
                                   .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT |
                                            VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                            VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | condition};
  gk_result result = gki_vulkan_check(d, driver->CreateBuffer(d->device, &info, NULL, &block->buffer),
                                      "vkCreateBuffer");
  if (result != GK_OK) return result;
  VkMemoryRequirements needs;
  driver->GetBufferMemoryRequirements(d->device, block->buffer, &needs);
  const VkMemoryAllocateFlagsInfo addressed = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                               .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  const VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &addressed,
                                       .allocationSize = needs.size,
                                       .memoryTypeIndex = type_for(d, needs.memoryTypeBits, kind)};
  if (memory.memoryTypeIndex == UNKNOWN)
    return gk_fail(GK_ERROR_UNSUPPORTED, "backend vulkan: %s has no memory that the host sees", d->name);
  const VkDeviceSize most = d->kinds.memoryHeaps[d->kinds.memoryTypes[memory.memoryTypeIndex].heapIndex].size;
  if (needs.size > most) return too_large(d, bytes, most);
  result = gki_vulkan_check(d, driver->AllocateMemory(d->device, &memory, NULL, &block->memory), "vkAllocateMemory");
  if (result == GK_OK)
    result = gki_vulkan_check(d, driver->BindBufferMemory(d->device, block->buffer, block->memory, 0),
                              "vkBindBufferMemory");
  void *here = NULL;
  if (result == GK_OK)
    result = gki_vulkan_check(d, driver->MapMemory(d->device, block->memory, 0, VK_WHOLE_SIZE, 0, &here),
                              "vkMapMemory");
  if (result != GK_OK) return result;
  const VkBufferDeviceAddressInfo where = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                           .buffer = block->buffer};
  const uint64_t at = driver->GetBufferDeviceAddress(d->device, &where);
  block->at = (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  block->offset = (size_t)(block->at - at);
  block->here = (unsigned char *)here + block->offset;
  block->bytes = bytes;
  return GK_OK;
}

static void drop(const gki_vulkan_device *d, gki_vulkan_block *block) {
  if (block->buffer) d->driver.DestroyBuffer(d->device, block->buffer, NULL);
  if (block->memory) d->driver.FreeMemory(d->device, block->memory, NULL);
  gk_host_free(block);
}

gk_result gki_vulkan_alloc(gki_vulkan_device *d, size_t bytes, gk_memory kind, gki_vulkan_block **made) {
  const VkDeviceSize most = d->kinds.memoryHeaps[0].size;
  for (uint32_t k = 0; k <= d->kinds.memoryHeapCount; ++k) { /* so large a buffer mayn't be made */
    if (k == d->kinds.memoryHeapCount) return too_large(d, bytes, most);
    if (bytes <= d->kinds.memoryHeaps[k].size) break;
  }
  gki_vulkan_block *block = gk_host_alloc(sizeof *block);
  if (!block) return gki_fail_memory("a block of device memory", sizeof *block);
  const gk_result result = make(d, bytes, kind, block);
  if (result != GK_OK) {
    drop(d, block);
    return result;
  }
  pthread_mutex_lock(&d->lock);
  block->next = d->blocks;
  d->blocks = block;
  pthread_mutex_unlock(&d->lock);
  *made = block;
  return GK_OK;
}

void gki_vulkan_free(gki_vulkan_device *d, gki_vulkan_block *block) {
  if (!block) return;
  pthread_mutex_lock(&d->lock);
  gki_vulkan_block **at = &d->blocks;
  while (*at && *at != block) at = &(*at)->next;
  if (*at) *at = block->next;
  pthread_mutex_unlock(&d->lock);
  drop(d, block);
}

gki_vulkan_block *gki_vulkan_block_of(gki_vulkan_device *d, const void *memory, size_t bytes) {
  const uint64_t at = (uintptr_t)memory;
  pthread_mutex_lock(&d->lock);
  gki_vulkan_block *block = d->blocks;
  while (block && !(at >= block->at && at - block->at <= block->bytes && bytes <= block->bytes - (at - block->at)))
    block = block->next;
  pthread_mutex_unlock(&d->lock);
  return block;
}

void *gki_vulkan_here(gki_vulkan_device *d, const void *memory, size_t bytes) {
  const gki_vulkan_block *block = gki_vulkan_block_of(d, memory, bytes);
  return block ? block->here + ((uintptr_t)memory - block->at) : NULL;
}
