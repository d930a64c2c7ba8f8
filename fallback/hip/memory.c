#include "base/memory.h"
#include "hip/device.h"
#include <string.h>

/* ---- the runtime's ----------------------------------------------------------------------------------------------- */

static gk_result alloc_host(gki_hip_device *d, size_t bytes, void **memory) {
  const gki_hip_driver *driver = d->driver;
  void *taken = NULL, *at = NULL;
  gk_result result = gki_hip_check(
      d, driver->hipHostMalloc(&taken, bytes, GKI_HIP_HOST_MALLOC_PORTABLE | GKI_HIP_HOST_MALLOC_MAPPED),
      "hipHostMalloc of %zu bytes", bytes);
  if (result != GK_OK) return result;
  result = gki_hip_check(d, driver->hipHostGetDevicePointer(&at, taken, 0), "hipHostGetDevicePointer");
  if (result == GK_OK && at != taken)
    result = gk_fail(GK_ERROR_UNSUPPORTED, "backend hip: page-locked memory has another address on device %d (%s); use "
                     "GK_DEVICE_MEMORY", d->ordinal, d->name);
  if (result == GK_OK) *memory = taken;
  else (void)driver->hipHostFree(taken);
  return result;
}

gk_result gki_hip_alloc_raw(gki_hip_device *d, size_t bytes, gk_memory kind, void **memory) {
  if (kind == GK_HOST_MEMORY) return alloc_host(d, bytes, memory);
  void *taken = NULL;
  const gk_result result = gki_hip_check(d, d->driver->hipMalloc(&taken, bytes), "hipMalloc of %zu bytes", bytes);
  if (result == GK_OK) *memory = taken;
  return result;
}

void gki_hip_free_raw(const gki_hip_device *d, gk_memory kind, void *memory) {
  if (memory) (void)(kind == GK_HOST_MEMORY ? d->driver->hipHostFree(memory) : d->driver->hipFree(memory));
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* The number of blocks that begin at or before an address. Under the lock. */
static size_t count_up_to(const gki_hip_device *d, const void *memory) {
  size_t first = 0, end = d->block_count;
  while (first < end) {
    const size_t middle = first + (end - first) / 2;
    if (d->blocks[middle].at <= (uintptr_t)memory) first = middle + 1;
    else end = middle;
  }
  return first;
}

static gk_result add_block(gki_hip_device *d, const void *memory, size_t bytes, gk_memory kind) {
  void *blocks = d->blocks;
  pthread_mutex_lock(&d->lock);
  blocks = d->blocks;
  const bool grown = gki_grow(&blocks, &d->block_capacity, d->block_count + 1, sizeof *d->blocks, "a list of blocks");
  d->blocks = blocks;
  if (grown) {
    const size_t at = count_up_to(d, memory);
    memmove(d->blocks + at + 1, d->blocks + at, (d->block_count++ - at) * sizeof *d->blocks);
    d->blocks[at] = (gki_hip_block){(uintptr_t)memory, bytes, kind == GK_HOST_MEMORY};
  }
  pthread_mutex_unlock(&d->lock);
  return grown ? GK_OK : GK_ERROR_MEMORY;
}

/* The kind of the block that contains an address; device memory, if it isn't gk's. */
static gk_memory kind_of(gki_hip_device *d, const void *memory) {
  pthread_mutex_lock(&d->lock);
  const size_t at = count_up_to(d, memory);
  const gki_hip_block *block = at ? &d->blocks[at - 1] : NULL;
  const bool is_host = block && block->is_host && (uintptr_t)memory - block->at < block->bytes;
  pthread_mutex_unlock(&d->lock);
  return is_host ? GK_HOST_MEMORY : GK_DEVICE_MEMORY;
}

static void remove_block(gki_hip_device *d, const void *memory) {
  pthread_mutex_lock(&d->lock);
  const size_t at = count_up_to(d, memory) - 1;
  memmove(d->blocks + at, d->blocks + at + 1, (--d->block_count - at) * sizeof *d->blocks);
  pthread_mutex_unlock(&d->lock);
}

gk_result gki_hip_alloc(void *device, size_t bytes, gk_memory kind, void **memory) {
  gki_hip_device *d = device;
  int before;
  void *taken;
  gk_result result = gki_hip_enter(d, &before);
  if (result != GK_OK) return result;
  result = gki_hip_alloc_raw(d, bytes, kind, &taken);
  if (result == GK_OK) {
    result = add_block(d, taken, bytes, kind);
    if (result == GK_OK) *memory = taken;
    else gki_hip_free_raw(d, kind, taken);
  }
  gki_hip_leave(d, before);
  return result;
}

void gki_hip_free(void *device, void *memory) {
  gki_hip_device *d = device;
  int before;
  if (!memory) return;
  const gk_memory kind = kind_of(d, memory);
  remove_block(d, memory);
  if (!gki_hip_enter_to_free(d, &before)) return;
  gki_hip_free_raw(d, kind, memory);
  gki_hip_leave(d, before);
}

void *gki_hip_host_address(void *device, void *memory) {
  return kind_of(device, memory) == GK_HOST_MEMORY ? memory : NULL;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static gk_result finish(gki_hip_device *d) {
  return gki_hip_check(d, d->driver->hipStreamSynchronize(d->stream), "hipStreamSynchronize");
}

/* The runtime leaves copies between overlapping ranges undefined, so they use a buffer. */
static gk_result copy_overlapping(gki_hip_device *d, void *to, const void *from, size_t bytes) {
  const gki_hip_driver *driver = d->driver;
  void *between = NULL;
  gk_result result = gki_hip_alloc_raw(d, bytes, GK_DEVICE_MEMORY, &between);
  if (result != GK_OK) return result;
  hipError_t answer = driver->hipMemcpyDtoDAsync(between, (void *)(uintptr_t)from, bytes, d->stream);
  if (answer == hipSuccess) answer = driver->hipMemcpyDtoDAsync(to, between, bytes, d->stream);
  result = gki_hip_check(d, answer, "hipMemcpyDtoDAsync of %zu bytes", bytes);
  if (result == GK_OK) result = finish(d);
  gki_hip_free_raw(d, GK_DEVICE_MEMORY, between);
  return result;
}

static gk_result copy_device(gki_hip_device *d, gk_direction direction, void *to, const void *from, size_t bytes) {
  static const char *const names[] = {[GK_TO_DEVICE] = "hipMemcpyHtoDAsync", [GK_TO_HOST] = "hipMemcpyDtoHAsync",
                                      [GK_ON_DEVICE] = "hipMemcpyDtoDAsync", [GK_ZERO] = "hipMemsetD8Async"};
  const gki_hip_driver *driver = d->driver;
  void *source = (void *)(uintptr_t)from;
  const uintptr_t a = (uintptr_t)to, b = (uintptr_t)from;
  hipError_t answer = hipSuccess;
  switch (direction) {
  case GK_TO_DEVICE: answer = driver->hipMemcpyHtoDAsync(to, source, bytes, d->stream); break;
  case GK_TO_HOST: answer = driver->hipMemcpyDtoHAsync(to, source, bytes, d->stream); break;
  case GK_ZERO: answer = driver->hipMemsetD8Async(to, 0, bytes, d->stream); break;
  default:
    if (a != b && (a > b ? a - b : b - a) < bytes) return copy_overlapping(d, to, from, bytes);
    if (a != b) answer = driver->hipMemcpyDtoDAsync(to, source, bytes, d->stream);
  }
  const gk_result result = gki_hip_check(d, answer, "%s of %zu bytes", names[direction], bytes);
  return result == GK_OK ? finish(d) : result;
}

/* Page-locked memory is the host's: once earlier work is over, the host copies it itself or copies from and to it. */
static gk_result copy(gki_hip_device *d, gk_direction direction, void *to, const void *from, size_t bytes) {
  const bool to_pinned = direction != GK_TO_HOST && kind_of(d, to) == GK_HOST_MEMORY;
  const bool has_source = direction == GK_TO_HOST || direction == GK_ON_DEVICE;
  const bool from_pinned = has_source && kind_of(d, from) == GK_HOST_MEMORY;
  if (!to_pinned && !from_pinned) return copy_device(d, direction, to, from, bytes);
  const gk_result result = finish(d);
  if (result != GK_OK) return result;
  const bool from_host = from_pinned || direction == GK_TO_DEVICE, to_host = to_pinned || direction == GK_TO_HOST;
  if (direction == GK_ZERO) memset(to, 0, bytes);
  else if (from_host && to_host) memmove(to, from, bytes);
  else return copy_device(d, from_host ? GK_TO_DEVICE : GK_TO_HOST, to, from, bytes);
  return GK_OK;
}

gk_result gki_hip_copy(void *device, gk_direction direction, void *to, const void *from, size_t bytes) {
  gki_hip_device *d = device;
  int before;
  gk_result result = gki_hip_enter(d, &before);
  if (result != GK_OK) return result;
  if (d->shares_stream) result = gki_hip_refuse_capture(d, d->stream);
  if (result == GK_OK) result = copy(d, direction, to, from, bytes);
  gki_hip_leave(d, before);
  return result;
}
