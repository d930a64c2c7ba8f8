#include "vulkan/memory.h"
#include "base/memory.h"
#include <string.h>

enum { PIECE = 4 << 20 /* bytes at a time */, FEW = 4096 /* bytes that the host reads itself in any case */ };

/* What copies go through if the host doesn't see the memory. */
typedef struct gki_vulkan_staging {
  gki_vulkan_block *memory;
  VkCommandPool pool;
  VkCommandBuffer commands;
} gki_vulkan_staging;

/* Where a copy begins or ends. */
typedef struct place {
  unsigned char *host; /* NULL: the host doesn't see it, or shouldn't read it */
  VkBuffer buffer;     /* NULL: memory of the program, or zeros */
  VkDeviceSize at;     /* in the buffer */
} place;

/* ---- the staging buffer ------------------------------------------------------------------------------------------ */

static void drop_staging(gki_vulkan_device *d, gki_vulkan_staging *s) {
  if (!s) return;
  if (s->pool) d->driver.DestroyCommandPool(d->device, s->pool, NULL);
  gki_vulkan_free(d, s->memory);
  gk_host_free(s);
}

static gk_result make_staging(gki_vulkan_device *d, gki_vulkan_staging *s) {
  const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                        .queueFamilyIndex = d->family};
  gk_result result = gki_vulkan_check(d, d->driver.CreateCommandPool(d->device, &info, NULL, &s->pool),
                                      "vkCreateCommandPool");
  if (result != GK_OK) return result;
  const VkCommandBufferAllocateInfo buffer = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = s->pool, .commandBufferCount = 1};
  result = gki_vulkan_check(d, d->driver.AllocateCommandBuffers(d->device, &buffer, &s->commands),
                            "vkAllocateCommandBuffers");
  return result == GK_OK ? gki_vulkan_alloc(d, PIECE, GK_HOST_MEMORY, &s->memory) : result;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

/* Behind all before it, and in front of all behind it. */
static void put_barrier(const gki_vulkan_device *d, VkCommandBuffer commands) {
  const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
  d->driver.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                               VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &all, 0, NULL,
                               0, NULL);
}

static void put_copy(const gki_vulkan_device *d, VkCommandBuffer commands, place to, place from, VkDeviceSize bytes) {
  const VkBufferCopy range = {from.at, to.at, bytes};
  put_barrier(d, commands);
  if (from.buffer) d->driver.CmdCopyBuffer(commands, from.buffer, to.buffer, 1, &range);
  else d->driver.CmdFillBuffer(commands, to.buffer, to.at, bytes, 0); /* all multiples of 4 */
}

/* Copies on the device, by way of `between` if that isn't NULL, and waits for it. */
static gk_result run(gki_vulkan_device *d, const gki_vulkan_staging *s, place to, const place *between, place from,
                     VkDeviceSize bytes) {
  const VkCommandBufferBeginInfo once = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                         .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  gk_result result = gki_vulkan_check(d, d->driver.BeginCommandBuffer(s->commands, &once), "vkBeginCommandBuffer");
  if (result != GK_OK) return result;
  if (between) put_copy(d, s->commands, *between, from, bytes);
  put_copy(d, s->commands, to, between ? *between : from, bytes);
  put_barrier(d, s->commands);
  result = gki_vulkan_check(d, d->driver.EndCommandBuffer(s->commands), "vkEndCommandBuffer");
  if (result != GK_OK) return result;
  uint64_t number;
  result = gki_vulkan_check(d, gki_vulkan_submit(d, &s->commands, 1, &number), "vkQueueSubmit of a copy");
  return result == GK_OK ? gki_vulkan_check(d, gki_vulkan_wait(d, number), "waiting for a copy") : result;
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static place further(place from, size_t bytes) {
  if (from.host) from.host += bytes;
  from.at += bytes;
  return from;
}

/* Up, down, or from device to device through the staging buffer. */
static gk_result put_piece(gki_vulkan_device *d, const gki_vulkan_staging *s, place to, place from, size_t bytes) {
  const place between = {s->memory->host, s->memory->buffer, s->memory->offset};
  if (!to.buffer) {
    const gk_result result = run(d, s, between, NULL, from, bytes);
    if (result == GK_OK) memcpy(to.host, between.host, bytes);
    return result;
  }
  if (from.buffer) return run(d, s, to, &between, from, bytes);
  if (from.host) memcpy(between.host, from.host, bytes);
  else memset(between.host, 0, bytes);
  return run(d, s, to, NULL, between, bytes);
}

/* The last piece is first if `to` lies behind `from`, since they may overlap. */
static gk_result put_pieces(gki_vulkan_device *d, const gki_vulkan_staging *s, place to, place from, size_t bytes) {
  const bool is_backward = to.buffer == from.buffer && to.at > from.at;
  const size_t count = (bytes + PIECE - 1) / PIECE;
  gk_result result = GK_OK;
  for (size_t k = 0; k < count && result == GK_OK; ++k) {
    const size_t at = (is_backward ? count - 1 - k : k) * PIECE;
    result = put_piece(d, s, further(to, at), further(from, at), bytes - at < PIECE ? bytes - at : PIECE);
  }
  return result;
}

/* Fills are of words: the bytes before and behind them come through the staging buffer. */
static gk_result put_zeros(gki_vulkan_device *d, const gki_vulkan_staging *s, place to, size_t bytes) {
  const place zeros = {0};
  const size_t odd = (4 - to.at % 4) % 4, first = odd < bytes ? odd : bytes, last = (bytes - first) % 4;
  gk_result result = put_pieces(d, s, to, zeros, first);
  if (result == GK_OK) result = put_pieces(d, s, further(to, bytes - last), zeros, last);
  if (result != GK_OK || first + last == bytes) return result;
  return run(d, s, further(to, first), NULL, zeros, bytes - first - last);
}

static gk_result copy_unmapped(gki_vulkan_device *d, gk_direction direction, place to, place from, size_t bytes) {
  const bool is_apart = to.buffer != from.buffer || (to.at > from.at ? to.at - from.at : from.at - to.at) >= bytes;
  const bool is_direct = direction == GK_ON_DEVICE && is_apart && to.buffer && from.buffer;
  gki_vulkan_staging *s = __atomic_exchange_n(&d->staging, NULL, __ATOMIC_ACQ_REL); /* other threads copy, too */
  gk_result result = GK_OK;
  if (!s) {
    s = gki_array(1, sizeof *s, "the state of a copy");
    result = s ? make_staging(d, s) : GK_ERROR_MEMORY;
  }
  if (result == GK_OK)
    result = direction == GK_ZERO ? put_zeros(d, s, to, bytes)
             : is_direct          ? run(d, s, to, NULL, from, bytes)
                                  : put_pieces(d, s, to, from, bytes);
  if (result == GK_OK) s = __atomic_exchange_n(&d->staging, s, __ATOMIC_ACQ_REL);
  else if (s && s->memory) (void)gki_vulkan_wait(d, UINT64_MAX); /* its commands may be under way */
  drop_staging(d, s);
  return result;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

gk_result gki_vulkan_refuse_address(const void *memory) {
  return gk_fail(GK_ERROR_INVALID, "backend vulkan: %p isn't memory of this device; use memory of gk_alloc", memory);
}

static gk_result find(gki_vulkan_device *d, const void *memory, size_t bytes, bool is_read, place *found) {
  const gki_vulkan_block *block = gki_vulkan_block_of(d, memory, 1);
  if (!block) return gki_vulkan_refuse_address(memory);
  const size_t at = (size_t)((uintptr_t)memory - block->address);
  if (bytes > block->bytes - at)
    return gk_fail(GK_ERROR_INVALID, "backend vulkan: %zu bytes from %p on leave their block, which has %zu there; "
                   "copy no more than those", bytes, memory, block->bytes - at);
  const bool is_seen = block->host && (!is_read || bytes <= FEW || gki_vulkan_reads_fast(block));
  if (!is_seen && !block->buffer)
    return gk_fail(GK_ERROR_INVALID, "backend vulkan: %p can't be copied: it was added as an address alone; give "
                   "gk_vulkan_add_memory its buffer, too, or where the host has it mapped", memory);
  *found = (place){is_seen ? block->host + at : NULL, block->buffer, block->offset + at};
  return GK_OK;
}

gk_result gki_vulkan_copy_memory(void *device, gk_direction direction, void *to, const void *from, size_t bytes) {
  gki_vulkan_device *d = device;
  place target = {.host = to}, source = {0};
  memcpy(&source.host, &from, sizeof from);
  gk_result result = GK_OK;
  if (bytes == 0) return result;
  if (direction != GK_TO_HOST) result = find(d, to, bytes, false, &target);
  if (result == GK_OK && (direction == GK_TO_HOST || direction == GK_ON_DEVICE))
    result = find(d, from, bytes, true, &source);
  if (result != GK_OK) return result;
  if (!target.host || (direction != GK_ZERO && !source.host)) return copy_unmapped(d, direction, target, source, bytes);
  result = gki_vulkan_check(d, gki_vulkan_wait(d, UINT64_MAX), "waiting for a copy");
  if (result != GK_OK) return result;
  if (direction == GK_ZERO) memset(target.host, 0, bytes);
  else memmove(target.host, source.host, bytes);
  return GK_OK;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Only memory of the program is left, which stays. */
void gki_vulkan_drop_memory(gki_vulkan_device *d) {
  drop_staging(d, d->staging);
  while (d->block_count > 0) gki_vulkan_free(d, d->blocks[d->block_count - 1]);
  gk_host_free(d->blocks);
}
