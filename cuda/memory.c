#include "cuda/memory.h"
#include "base/memory.h"
#include "cuda/pool.h"
#include "cuda/stream.h"

static CUdeviceptr address(const void *memory) { return (CUdeviceptr)(uintptr_t)memory; }

static gk_result alloc_result(const gki_cuda_device *device, CUresult result, const char *call, size_t bytes) {
  return gki_cuda_result(device->driver, result, "%s of %zu bytes", call, bytes);
}

/* If there is no memory left, spare memory of graphs goes back to the driver first. */
static CUresult alloc_device(gki_cuda_device *device, size_t bytes, CUdeviceptr *taken) {
  const gki_cuda_driver *driver = device->driver;
  CUresult result = driver->cuMemAlloc(taken, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && gki_cuda_pool_trim(device)) result = driver->cuMemAlloc(taken, bytes);
  return result;
}

static CUresult alloc_host(gki_cuda_device *device, size_t bytes, void **taken) {
  enum { FLAGS = GKI_CU_MEMHOSTALLOC_PORTABLE | GKI_CU_MEMHOSTALLOC_DEVICEMAP };
  const gki_cuda_driver *driver = device->driver;
  CUresult result = driver->cuMemHostAlloc(taken, bytes, FLAGS);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && gki_cuda_pool_trim(device))
    result = driver->cuMemHostAlloc(taken, bytes, FLAGS);
  if (result != CUDA_SUCCESS) *taken = NULL;
  return result;
}

static gk_result finish(void *at) {
  const gki_cuda_device *device = at;
  return gki_cuda_result(device->driver, device->driver->cuStreamSynchronize(device->stream), "cuStreamSynchronize");
}

static gk_result enqueue(void *at, gk_direction direction, void *to, const void *from, size_t bytes) {
  static const char *const names[] = {[GK_TO_DEVICE] = "cuMemcpyHtoDAsync", [GK_TO_HOST] = "cuMemcpyDtoHAsync",
                                      [GK_ON_DEVICE] = "cuMemcpyDtoDAsync", [GK_ZERO] = "cuMemsetD8Async"};
  const gki_cuda_device *device = at;
  const gki_cuda_driver *driver = device->driver;
  CUresult result = CUDA_SUCCESS;
  switch (direction) {
  case GK_TO_DEVICE: result = driver->cuMemcpyHtoDAsync(address(to), from, bytes, device->stream); break;
  case GK_TO_HOST: result = driver->cuMemcpyDtoHAsync(to, address(from), bytes, device->stream); break;
  case GK_ZERO: result = driver->cuMemsetD8Async(address(to), 0, bytes, device->stream); break;
  default: result = driver->cuMemcpyDtoDAsync(address(to), address(from), bytes, device->stream);
  }
  return gki_cuda_result(driver, result, "%s of %zu bytes", names[direction], bytes);
}

static gk_result alloc_pinned(gki_cuda_device *device, size_t bytes, void **memory) {
  const gki_cuda_driver *driver = device->driver;
  CUdeviceptr at = 0;
  void *taken = NULL;
  gk_result result = alloc_result(device, alloc_host(device, bytes, &taken), "cuMemHostAlloc", bytes);
  if (result == GK_OK)
    result = gki_cuda_result(driver, driver->cuMemHostGetDevicePointer(&at, taken, 0), "cuMemHostGetDevicePointer");
  if (result == GK_OK && at != address(taken))
    result = gk_fail(GK_ERROR_UNSUPPORTED, "backend cuda: page-locked memory has another address on device %d (%s); "
                     "use GK_DEVICE_MEMORY", device->ordinal, device->name);
  if (result != GK_OK && taken) (void)driver->cuMemFreeHost(taken);
  *memory = taken;
  return result;
}

static gk_result alloc(void *at, size_t bytes, gk_memory kind, void **memory) {
  gki_cuda_device *device = at;
  CUdeviceptr taken = 0;
  if (kind == GK_HOST_MEMORY) return alloc_pinned(device, bytes, memory);
  const gk_result result = alloc_result(device, alloc_device(device, bytes, &taken), "cuMemAlloc", bytes);
  *memory = (void *)(uintptr_t)taken;
  return result;
}

static void free_block(void *at, gk_memory kind, void *memory) {
  gki_cuda_device *device = at;
  if (kind == GK_HOST_MEMORY) (void)device->driver->cuMemFreeHost(memory);
  else if (!gki_cuda_free_own(device, address(memory), true)) (void)device->driver->cuMemFree(address(memory));
}

/* ---- the backend's entries --------------------------------------------------------------------------------------- */

static const gki_memory_driver memory_driver = {finish, enqueue, alloc, free_block};

gk_result gki_cuda_alloc(void *at, size_t bytes, gk_memory kind, void **memory) {
  gki_cuda_device *device = at;
  gk_result result = gki_cuda_enter(device);
  if (result != GK_OK) return result;
  result = gki_memory_alloc(&memory_driver, device, &device->pinned, bytes, kind, memory);
  gki_cuda_leave(device);
  return result;
}

void gki_cuda_free(void *at, void *memory) {
  gki_cuda_device *device = at;
  if (!memory) return;
  bool entered = gki_cuda_enter_to_free(device);
  gki_memory_free(&memory_driver, device, &device->pinned, memory);
  if (entered) gki_cuda_leave(device);
}

gk_result gki_cuda_copy(void *at, gk_direction direction, void *to, const void *from, size_t bytes) {
  gki_cuda_device *device = at;
  gk_result result = gki_cuda_enter(device);
  if (result != GK_OK) return result;
  result = gki_cuda_join_streams(device);
  if (result == GK_OK) result = gki_memory_copy(&memory_driver, device, &device->pinned, direction, to, from, bytes);
  gki_cuda_leave(device);
  return result;
}

void *gki_cuda_host_address(void *at, void *memory) {
  gki_cuda_device *device = at;
  return gki_pinned_has(&device->pinned, memory) ? memory : NULL;
}

/* The driver doesn't know host memory that isn't page-locked. A launch reports all other problems. */
gk_result gki_cuda_reaches(void *at, const void *memory) {
  gki_cuda_device *device = at;
  unsigned type = 0;
  if (device->reaches_pageable || !device->driver->cuPointerGetAttribute || !gki_cuda_enter_to_free(device))
    return GK_OK;
  CUresult result =
      device->driver->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(memory));
  gki_cuda_leave(device);
  if (result != CUDA_ERROR_INVALID_VALUE) return GK_OK;
  return gki_memory_refuse(memory, "CUDA", device->ordinal, device->name,
                           "cuMemAlloc, cuMemHostAlloc), or register it (cuMemHostRegister");
}

/* ---- counts of passes -------------------------------------------------------------------------------------------- */

enum { COUNTS = 256 };

struct gki_cuda_pass_counts {
  struct gki_cuda_pass_counts *next;
  CUdeviceptr at;
  uint32_t used;
};

static gk_result add_counts(gki_cuda_device *device) {
  gki_cuda_pass_counts *counts = gki_array(1, sizeof *counts, "counts of passes");
  if (!counts) return GK_ERROR_MEMORY;
  gk_result result = gki_cuda_alloc_device(device, COUNTS * sizeof(uint32_t), "counts of passes", &counts->at);
  if (result != GK_OK) {
    gk_host_free(counts);
    return result;
  }
  counts->next = device->counts;
  device->counts = counts;
  return GK_OK;
}

/* Needs no initial value: the kernel in front of the loop sets it. */
gk_result gki_cuda_alloc_pass_count(gki_cuda_device *device, CUdeviceptr *at) {
  gk_result result = GK_OK;
  pthread_mutex_lock(&device->lock);
  if (!device->counts || device->counts->used == COUNTS) result = add_counts(device);
  if (result == GK_OK) *at = device->counts->at + device->counts->used++ * sizeof(uint32_t);
  pthread_mutex_unlock(&device->lock);
  return result;
}

void gki_cuda_pass_counts_drop(gki_cuda_device *device) {
  while (device->counts) {
    gki_cuda_pass_counts *counts = device->counts;
    device->counts = counts->next;
    gki_cuda_free_device(device, counts->at);
    gk_host_free(counts);
  }
}
