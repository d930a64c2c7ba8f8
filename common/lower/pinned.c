#include "lower/pinned.h"
#include <string.h>

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* The link to the block that contains the address, or the list's end. Under the lock. */
static gki_pinned **link_to(gki_pinned_blocks *blocks, const void *memory) {
  gki_pinned **at = &blocks->first;
  for (; *at; at = &(*at)->next)
    if ((uintptr_t)memory - (uintptr_t)(*at)->at < (*at)->bytes) break;
  return at;
}

void gki_pinned_add(gki_pinned_blocks *blocks, gki_pinned *block, void *memory, size_t bytes) {
  pthread_mutex_lock(blocks->lock);
  *block = (gki_pinned){blocks->first, memory, bytes};
  blocks->first = block;
  pthread_mutex_unlock(blocks->lock);
}

gki_pinned *gki_pinned_remove(gki_pinned_blocks *blocks, const void *memory) {
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

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* A driver leaves a copy between overlapping ranges undefined. */
static gk_result copy_overlapping(const gki_copier *copier, void *device, void *to, const void *from, size_t bytes) {
  void *between;
  gk_result result = copier->alloc(device, bytes, &between);
  if (result != GK_OK) return result;
  result = copier->enqueue(device, GK_ON_DEVICE, between, from, bytes);
  if (result == GK_OK) result = copier->enqueue(device, GK_ON_DEVICE, to, between, bytes);
  if (result == GK_OK) result = copier->finish(device);
  copier->free(device, between);
  return result;
}

static gk_result copy_device(const gki_copier *copier, void *device, gk_direction direction, void *to,
                             const void *from, size_t bytes) {
  const uintptr_t a = (uintptr_t)to, b = (uintptr_t)from, apart = a > b ? a - b : b - a;
  gk_result result = GK_OK;
  if (direction == GK_ON_DEVICE && apart && apart < bytes)
    return copy_overlapping(copier, device, to, from, bytes);
  if (direction != GK_ON_DEVICE || apart) result = copier->enqueue(device, direction, to, from, bytes);
  return result == GK_OK ? copier->finish(device) : result;
}

gk_result gki_copy(const gki_copier *copier, void *device, gki_pinned_blocks *blocks, gk_direction direction, void *to,
                   const void *from, size_t bytes) {
  const bool reads_memory = direction == GK_TO_HOST || direction == GK_ON_DEVICE;
  const bool to_pinned = direction != GK_TO_HOST && gki_pinned_has(blocks, to);
  const bool from_pinned = reads_memory && gki_pinned_has(blocks, from);
  if (!to_pinned && !from_pinned) return copy_device(copier, device, direction, to, from, bytes);
  const gk_result result = copier->finish(device);
  if (result != GK_OK) return result;
  const bool from_host = from_pinned || direction == GK_TO_DEVICE, to_host = to_pinned || direction == GK_TO_HOST;
  if (direction == GK_ZERO) memset(to, 0, bytes);
  else if (from_host && to_host) memmove(to, from, bytes);
  else return copy_device(copier, device, from_host ? GK_TO_DEVICE : GK_TO_HOST, to, from, bytes);
  return GK_OK;
}
