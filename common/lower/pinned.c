#include "lower/pinned.h"
#include "base/memory.h"
#include <string.h>

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* The link to the block that contains the address, or the list's end. Under the lock. */
static gki_pinned **link_to(gki_pinned_blocks *blocks, const void *memory) {
  gki_pinned **at = &blocks->first;
  for (; *at; at = &(*at)->next)
    if ((uintptr_t)memory - (uintptr_t)(*at)->at < (*at)->bytes) break;
  return at;
}

static void add(gki_pinned_blocks *blocks, gki_pinned *block, void *memory, size_t bytes) {
  pthread_mutex_lock(blocks->lock);
  *block = (gki_pinned){blocks->first, memory, bytes};
  blocks->first = block;
  pthread_mutex_unlock(blocks->lock);
}

/* NULL: it is no block's address. */
static gki_pinned *take_out(gki_pinned_blocks *blocks, const void *memory) {
  pthread_mutex_lock(blocks->lock);
  gki_pinned **place = link_to(blocks, memory), *block = *place;
  const bool is_block = block && block->at == memory;
  if (is_block) *place = block->next;
  pthread_mutex_unlock(blocks->lock);
  return is_block ? block : NULL;
}

bool gki_pinned_has(gki_pinned_blocks *blocks, const void *memory) {
  pthread_mutex_lock(blocks->lock);
  const bool found = *link_to(blocks, memory) != NULL;
  pthread_mutex_unlock(blocks->lock);
  return found;
}

gk_result gki_memory_alloc(const gki_memory_driver *driver, void *device, gki_pinned_blocks *blocks, size_t bytes,
                           gk_memory kind, void **memory) {
  gki_pinned *block = kind == GK_HOST_MEMORY ? gki_array(1, sizeof *block, "the record of a block") : NULL;
  if (kind == GK_HOST_MEMORY && !block) return GK_ERROR_MEMORY;
  void *taken;
  const gk_result result = driver->alloc(device, bytes, kind, &taken);
  if (result != GK_OK) gk_host_free(block);
  else if (block) add(blocks, block, taken, bytes);
  if (result == GK_OK) *memory = taken;
  return result;
}

void gki_memory_free(const gki_memory_driver *driver, void *device, gki_pinned_blocks *blocks, void *memory) {
  gki_pinned *block = take_out(blocks, memory);
  driver->free(device, block ? GK_HOST_MEMORY : GK_DEVICE_MEMORY, memory);
  gk_host_free(block);
}

gk_result gki_memory_refuse(const void *memory, const char *kind, int ordinal, const char *name, const char *calls) {
  return gk_fail(GK_ERROR_INVALID, "%p is host memory that %s device %d (%s) can't touch; bind memory of gk_alloc, or "
                 "allocate it by %s (%s)", memory, kind, ordinal, name, kind, calls);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* A driver leaves a copy between overlapping ranges undefined. */
static gk_result copy_overlapping(const gki_memory_driver *driver, void *device, void *to, const void *from,
                                  size_t bytes) {
  void *between;
  gk_result result = driver->alloc(device, bytes, GK_DEVICE_MEMORY, &between);
  if (result != GK_OK) return result;
  result = driver->enqueue(device, GK_ON_DEVICE, between, from, bytes);
  if (result == GK_OK) result = driver->enqueue(device, GK_ON_DEVICE, to, between, bytes);
  if (result == GK_OK) result = driver->finish(device);
  driver->free(device, GK_DEVICE_MEMORY, between);
  return result;
}

static gk_result copy_device(const gki_memory_driver *driver, void *device, gk_direction direction, void *to,
                             const void *from, size_t bytes) {
  const uintptr_t a = (uintptr_t)to, b = (uintptr_t)from, apart = a > b ? a - b : b - a;
  gk_result result = GK_OK;
  if (direction == GK_ON_DEVICE && apart && apart < bytes)
    return copy_overlapping(driver, device, to, from, bytes);
  if (direction != GK_ON_DEVICE || apart) result = driver->enqueue(device, direction, to, from, bytes);
  return result == GK_OK ? driver->finish(device) : result;
}

gk_result gki_memory_copy(const gki_memory_driver *driver, void *device, gki_pinned_blocks *blocks,
                          gk_direction direction, void *to, const void *from, size_t bytes) {
  const bool reads_memory = direction == GK_TO_HOST || direction == GK_ON_DEVICE;
  const bool to_pinned = direction != GK_TO_HOST && gki_pinned_has(blocks, to);
  const bool from_pinned = reads_memory && gki_pinned_has(blocks, from);
  if (!to_pinned && !from_pinned) return copy_device(driver, device, direction, to, from, bytes);
  const gk_result result = driver->finish(device);
  if (result != GK_OK) return result;
  const bool from_host = from_pinned || direction == GK_TO_DEVICE, to_host = to_pinned || direction == GK_TO_HOST;
  if (direction == GK_ZERO) memset(to, 0, bytes);
  else if (from_host && to_host) memmove(to, from, bytes);
  else return copy_device(driver, device, from_host ? GK_TO_DEVICE : GK_TO_HOST, to, from, bytes);
  return GK_OK;
}
