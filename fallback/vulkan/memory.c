#include "vulkan/memory.h"
#include "base/error.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>

/* Sizes. A driver may give no more than 4,096 chunks, so they grow with the memory in use, up to a part of the heap. */
enum { ALIGNMENT = 256, LEAST = 1 << 20 /* bytes of a chunk for several blocks */, CHUNKS = 256 /* of a heap */,
       SHARE = 4 /* a block of more than this part of a chunk gets one of its own */ };
#define UNKNOWN UINT32_MAX

/* What the driver gives at once. */
typedef struct gki_vulkan_chunk {
  VkBuffer buffer;
  VkDeviceMemory memory;
  gki_vulkan_pool *pool;
  size_t bytes;
  void *host;     /* NULL: the host doesn't see it */
  bool is_cached; /* when the host reads it */
} gki_vulkan_chunk;

static size_t align(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

/* Ranges of a chunk, used or free, lie side by side. Free neighbours are merged at once. Free ranges are in lists by
 * size: segregated fits, as in P. R. Wilson et al., "Dynamic storage allocation: a survey and critical review" (1995).
 * All of this is under the device's lock. */

static size_t class_of(size_t bytes) {
  const size_t class = 63 - (size_t)__builtin_clzll(bytes / ALIGNMENT);
  return class < GKI_VULKAN_CLASSES ? class : GKI_VULKAN_CLASSES - 1;
}

static void add_to_free_list(gki_vulkan_block *range) {
  gki_vulkan_block **first = &range->chunk->pool->free[class_of(range->bytes)];
  range->is_free = true;
  range->next = *first;
  range->link = first;
  if (*first) (*first)->link = &range->next;
  *first = range;
}

static void remove_from_free_list(gki_vulkan_block *range) {
  *range->link = range->next;
  if (range->next) range->next->link = range->link;
  range->is_free = false;
}

/* Number of blocks that begin at the address or below. */
static size_t count_up_to(const gki_vulkan_device *d, uint64_t at) {
  size_t low = 0, high = d->block_count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (d->blocks[middle]->address <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

static bool make_room(gki_vulkan_device *d, size_t more) {
  return gki_grow((void **)&d->blocks, &d->block_capacity, d->block_count + more, sizeof *d->blocks,
                  "the table of device memory");
}

/* Behind make_room. */
static void insert(gki_vulkan_device *d, gki_vulkan_block *block) {
  const size_t at = count_up_to(d, block->address);
  memmove(&d->blocks[at + 1], &d->blocks[at], (d->block_count++ - at) * sizeof *d->blocks);
  d->blocks[at] = block;
}

static void remove_at(gki_vulkan_device *d, size_t at) {
  memmove(&d->blocks[at], &d->blocks[at + 1], (--d->block_count - at) * sizeof *d->blocks);
}

static gki_vulkan_block *find_free(const gki_vulkan_pool *pool, size_t bytes) {
  for (size_t class = class_of(bytes); class < GKI_VULKAN_CLASSES; ++class)
    for (gki_vulkan_block *range = pool->free[class]; range; range = range->next)
      if (range->bytes >= bytes) return range;
  return NULL;
}

/* Cuts a used range behind so many bytes; what is left of it is free. */
static void split(gki_vulkan_device *d, const gki_vulkan_block *range, size_t bytes, gki_vulkan_block *rest) {
  *rest = *range;
  rest->address += bytes;
  rest->offset += bytes;
  if (rest->host) rest->host += bytes;
  rest->bytes -= bytes;
  insert(d, rest);
  add_to_free_list(rest);
}

/* Takes a block: of `added`, which is a new chunk, or else of a free range that is large enough; NULL: there is none.
 * *rest: for what is left of the range; NULL: it is used. */
static gk_result take_block(gki_vulkan_device *d, gki_vulkan_pool *pool, size_t bytes, gki_vulkan_block *added,
                            gki_vulkan_block **rest, gki_vulkan_block **made) {
  pthread_mutex_lock(&d->lock);
  const gk_result result = make_room(d, 2) ? GK_OK : GK_ERROR_MEMORY;
  gki_vulkan_block *block = result != GK_OK ? NULL : added ? added : find_free(pool, align(bytes));
  if (block && added) {
    pool->bytes += block->bytes;
    insert(d, block);
  } else if (block) {
    remove_from_free_list(block);
  }
  if (block && block->bytes > align(bytes)) {
    split(d, block, align(bytes), *rest);
    *rest = NULL;
  }
  if (block) block->bytes = bytes;
  pthread_mutex_unlock(&d->lock);
  *made = block;
  return result;
}

/* Merges a range with the next one if both are free and of one chunk. */
static void merge(gki_vulkan_device *d, size_t at) {
  gki_vulkan_block *range = d->blocks[at], *next = at + 1 < d->block_count ? d->blocks[at + 1] : NULL;
  if (!next || !range->is_free || !next->is_free || range->chunk != next->chunk) return;
  remove_from_free_list(range);
  remove_from_free_list(next);
  range->bytes += next->bytes;
  add_to_free_list(range);
  remove_at(d, at + 1);
  gk_host_free(next);
}

/* Returns the range of a chunk that has no block any more; NULL: it has some. */
static gki_vulkan_block *return_block(gki_vulkan_device *d, gki_vulkan_block *block) {
  const uint64_t address = block->address;
  const size_t at = count_up_to(d, address) - 1;
  block->bytes = align(block->bytes);
  add_to_free_list(block);
  merge(d, at);
  if (at > 0) merge(d, at - 1);
  const size_t merged = count_up_to(d, address) - 1;
  gki_vulkan_block *range = d->blocks[merged];
  if (range->bytes < range->chunk->bytes) return NULL;
  remove_from_free_list(range);
  remove_at(d, merged);
  range->chunk->pool->bytes -= range->bytes;
  return range;
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

static const VkFlags seen = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

/* The first of the allowed types with all of these properties. */
static uint32_t type_with(const gki_vulkan_device *d, uint32_t allowed, VkFlags wanted) {
  for (uint32_t k = 0; k < d->memory.memoryTypeCount; ++k)
    if ((allowed >> k & 1) && (d->memory.memoryTypes[k].propertyFlags & wanted) == wanted) return k;
  return UNKNOWN;
}

static VkDeviceSize heap_of(const gki_vulkan_device *d, uint32_t type) {
  return d->memory.memoryHeaps[d->memory.memoryTypes[type].heapIndex].size;
}

/* Each device has a type of its own and one that the host sees. The window through which the host sees a part of a
 * GPU's memory may be small: it isn't used then. */
static uint32_t type_for(const gki_vulkan_device *d, uint32_t allowed, gk_memory kind) {
  if (kind == GK_HOST_MEMORY) {
    const uint32_t cached = type_with(d, allowed, seen | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    return cached != UNKNOWN ? cached : type_with(d, allowed, seen);
  }
  const uint32_t own = type_with(d, allowed, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT),
                 mapped = type_with(d, allowed, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | seen);
  return d->unmapped || mapped == UNKNOWN || heap_of(d, mapped) < heap_of(d, own) / 2 ? own : mapped;
}

static VkResult make_buffer(const gki_vulkan_device *d, size_t bytes, VkBuffer *buffer) {
  const VkBufferUsageFlags condition =
      d->features.conditions.conditionalRendering ? VK_BUFFER_USAGE_CONDITIONAL_RENDERING_BIT_EXT : 0;
  const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes,
                                   .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT |
                                            VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                            VK_BUFFER_USAGE_VERTEX_BUFFER_BIT | VK_BUFFER_USAGE_INDEX_BUFFER_BIT |
                                            VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
                                            VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | condition};
  return d->driver.CreateBuffer(d->device, &info, NULL, buffer);
}

/* The types that a buffer may have are the same for all sizes. */
static gk_result choose_type(gki_vulkan_device *d, gk_memory kind, uint32_t *type) {
  VkBuffer buffer;
  const gk_result result = gki_vulkan_check(d, make_buffer(d, ALIGNMENT, &buffer), "vkCreateBuffer");
  if (result != GK_OK) return result;
  VkMemoryRequirements needs;
  d->driver.GetBufferMemoryRequirements(d->device, buffer, &needs);
  d->driver.DestroyBuffer(d->device, buffer, NULL);
  *type = type_for(d, needs.memoryTypeBits, kind);
  if (*type != UNKNOWN) return GK_OK;
  return gk_fail(GK_ERROR_UNSUPPORTED, "backend vulkan: %s has no memory for buffers%s", d->name,
                 kind == GK_HOST_MEMORY ? " that the host sees" : "");
}

/* Bytes of a chunk for a block; 0, with a message: there is no such chunk. A buffer's address may be less aligned than
 * blocks are, so there are ALIGNMENT bytes more in it. */
static size_t size_chunk(gki_vulkan_device *d, size_t bytes, gk_memory kind, VkDeviceSize heap) {
  const VkDeviceSize most = d->most_bytes;
  if (bytes > heap || heap - bytes < 2 * (VkDeviceSize)ALIGNMENT)
    gk_fail(GK_ERROR_MEMORY, "out of device memory: %zu bytes; %s has %llu in all, so use less", bytes, d->name,
            (unsigned long long)heap);
  else if (bytes > most || most - bytes < 2 * (VkDeviceSize)ALIGNMENT)
    gk_fail(GK_ERROR_MEMORY, "out of device memory: %zu bytes; %s gives at most %llu at once "
            "(maxMemoryAllocationSize), so use several blocks", bytes, d->name, (unsigned long long)most);
  else {
    pthread_mutex_lock(&d->lock);
    size_t shared = d->pools[kind].bytes;
    pthread_mutex_unlock(&d->lock);
    if (shared > heap / CHUNKS) shared = (size_t)(heap / CHUNKS);
    if (shared < LEAST) shared = LEAST;
    return align(bytes > shared / SHARE || shared > most ? bytes : shared);
  }
  return 0;
}

/* call: receives the name of the one that failed. */
static VkResult fill_chunk(const gki_vulkan_device *d, gki_vulkan_chunk *chunk, uint32_t type, bool is_unmapped,
                           const char **call) {
  const gki_vulkan_driver *driver = &d->driver;
  *call = "vkCreateBuffer";
  VkResult result = make_buffer(d, chunk->bytes + ALIGNMENT, &chunk->buffer);
  if (result != VK_SUCCESS) return result;
  VkMemoryRequirements needs;
  driver->GetBufferMemoryRequirements(d->device, chunk->buffer, &needs);
  const VkMemoryAllocateFlagsInfo addressed = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                               .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  const VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &addressed,
                                       .allocationSize = needs.size, .memoryTypeIndex = type};
  *call = "vkAllocateMemory";
  result = driver->AllocateMemory(d->device, &memory, NULL, &chunk->memory);
  if (result != VK_SUCCESS) return result;
  *call = "vkBindBufferMemory";
  result = driver->BindBufferMemory(d->device, chunk->buffer, chunk->memory, 0);
  const VkFlags properties = d->memory.memoryTypes[type].propertyFlags;
  chunk->is_cached = properties & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  if (result != VK_SUCCESS || is_unmapped || (properties & seen) != seen) return result;
  *call = "vkMapMemory";
  return driver->MapMemory(d->device, chunk->memory, 0, VK_WHOLE_SIZE, 0, &chunk->host);
}

static void empty_chunk(const gki_vulkan_device *d, gki_vulkan_chunk *chunk) {
  if (chunk->buffer) d->driver.DestroyBuffer(d->device, chunk->buffer, NULL);
  if (chunk->memory) d->driver.FreeMemory(d->device, chunk->memory, NULL);
  chunk->buffer = VK_NULL_HANDLE;
  chunk->memory = VK_NULL_HANDLE;
}

/* With its only range. */
static void drop_chunk(const gki_vulkan_device *d, gki_vulkan_block *range) {
  empty_chunk(d, range->chunk);
  gk_host_free(range->chunk);
  gk_host_free(range);
}

static gki_vulkan_block whole_range(const gki_vulkan_device *d, gki_vulkan_chunk *chunk) {
  const VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                          .buffer = chunk->buffer};
  const uint64_t at = d->driver.GetBufferDeviceAddress(d->device, &info);
  gki_vulkan_block range = {.buffer = chunk->buffer, .address = align(at), .bytes = chunk->bytes, .chunk = chunk};
  range.offset = (size_t)(range.address - at);
  range.host = chunk->host ? (unsigned char *)chunk->host + range.offset : NULL;
  return range;
}

/* If there is no memory for a chunk for several blocks, it is for this one only. */
static gk_result make_chunk(gki_vulkan_device *d, size_t bytes, gk_memory kind, gki_vulkan_block **made) {
  uint32_t type;
  const gk_result result = choose_type(d, kind, &type);
  if (result != GK_OK) return result;
  const size_t size = size_chunk(d, bytes, kind, heap_of(d, type));
  if (!size) return GK_ERROR_MEMORY;
  gki_vulkan_block *range = gki_array(1, sizeof *range, "a range of device memory");
  gki_vulkan_chunk *chunk = range ? gki_array(1, sizeof *chunk, "a chunk of device memory") : NULL;
  if (!chunk) {
    gk_host_free(range);
    return GK_ERROR_MEMORY;
  }
  *chunk = (gki_vulkan_chunk){.pool = &d->pools[kind], .bytes = size};
  range->chunk = chunk;
  const bool is_unmapped = kind == GK_DEVICE_MEMORY && d->unmapped;
  const char *call;
  VkResult answer = fill_chunk(d, chunk, type, is_unmapped, &call);
  if (answer != VK_SUCCESS && answer != VK_ERROR_DEVICE_LOST && size > align(bytes)) {
    empty_chunk(d, chunk);
    chunk->bytes = align(bytes);
    answer = fill_chunk(d, chunk, type, is_unmapped, &call);
  }
  if (answer == VK_SUCCESS) {
    *range = whole_range(d, chunk);
    *made = range;
    return GK_OK;
  }
  char what[64];
  snprintf(what, sizeof what, "%s of %zu bytes", call, bytes);
  drop_chunk(d, range);
  return gki_vulkan_check(d, answer, what);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

gk_result gki_vulkan_alloc(gki_vulkan_device *d, size_t bytes, gk_memory kind, gki_vulkan_block **made) {
  gki_vulkan_block *rest = gki_array(1, sizeof *rest, "a block of device memory"), *added = NULL;
  if (!rest) return GK_ERROR_MEMORY;
  gk_result result = GK_OK;
  *made = NULL;
  if (bytes <= SIZE_MAX / 2) result = take_block(d, &d->pools[kind], bytes, NULL, &rest, made);
  if (result == GK_OK && !*made) {
    result = make_chunk(d, bytes, kind, &added);
    if (result == GK_OK) result = take_block(d, &d->pools[kind], bytes, added, &rest, made);
    if (result != GK_OK && added) drop_chunk(d, added);
  }
  gk_host_free(rest);
  return result;
}

void gki_vulkan_free(gki_vulkan_device *d, gki_vulkan_block *block) {
  if (!block) return;
  const bool is_added = gki_vulkan_is_added(block);
  pthread_mutex_lock(&d->lock);
  if (is_added) remove_at(d, count_up_to(d, block->address) - 1);
  else block = return_block(d, block);
  pthread_mutex_unlock(&d->lock);
  if (is_added) gk_host_free(block);
  else if (block) drop_chunk(d, block);
}

gk_result gki_vulkan_add_block(gki_vulkan_device *d, VkBuffer buffer, size_t offset, uint64_t at, size_t bytes,
                               void *host, gki_vulkan_block **made) {
  gki_vulkan_block *block = gki_array(1, sizeof *block, "a block of device memory");
  if (!block) return GK_ERROR_MEMORY;
  *block = (gki_vulkan_block){.buffer = buffer, .offset = offset, .address = at, .host = host, .bytes = bytes};
  pthread_mutex_lock(&d->lock);
  const size_t behind = count_up_to(d, at);
  const gki_vulkan_block *before = behind > 0 ? d->blocks[behind - 1] : NULL,
                         *next = behind < d->block_count ? d->blocks[behind] : NULL;
  const bool is_known = (before && at - before->address < before->bytes) || (next && next->address - at < bytes);
  gk_result result = is_known || make_room(d, 1) ? GK_OK : GK_ERROR_MEMORY;
  if (result == GK_OK && !is_known) insert(d, block);
  pthread_mutex_unlock(&d->lock);
  if (is_known)
    result = gk_fail(GK_ERROR_INVALID, "backend vulkan: some of the %zu bytes at 0x%llx are known to gk already; "
                     "give each buffer once", bytes, (unsigned long long)at);
  if (result != GK_OK) gk_host_free(block);
  else *made = block;
  return result;
}

gki_vulkan_block *gki_vulkan_block_of(gki_vulkan_device *d, const void *memory, size_t bytes) {
  const uint64_t at = (uintptr_t)memory;
  pthread_mutex_lock(&d->lock);
  const size_t behind = count_up_to(d, at);
  gki_vulkan_block *block = behind > 0 ? d->blocks[behind - 1] : NULL;
  const bool has = block && !block->is_free && at - block->address <= block->bytes &&
                   bytes <= block->bytes - (at - block->address);
  pthread_mutex_unlock(&d->lock);
  return has ? block : NULL;
}

bool gki_vulkan_reads_fast(const gki_vulkan_block *block) { return !block->chunk || block->chunk->is_cached; }
