#include "base/memory.h"
#include "hip/device.h"

/* ---- the runtime's ----------------------------------------------------------------------------------------------- */

static gk_result alloc_host(gki_hip_device *d, size_t bytes, void **memory) {
  const gki_hip_driver *driver = d->driver;
  void *taken = NULL, *at = NULL;
  gk_result result = gki_hip_result(
      driver, driver->hipHostMalloc(&taken, bytes, GKI_HIP_HOST_MALLOC_PORTABLE | GKI_HIP_HOST_MALLOC_MAPPED),
      "hipHostMalloc of %zu bytes", bytes);
  if (result != GK_OK) return result;
  result = gki_hip_result(d->driver, driver->hipHostGetDevicePointer(&at, taken, 0), "hipHostGetDevicePointer");
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
  const gk_result result =
      gki_hip_result(d->driver, d->driver->hipMalloc(&taken, bytes), "hipMalloc of %zu bytes", bytes);
  if (result == GK_OK) *memory = taken;
  return result;
}

void gki_hip_free_raw(const gki_hip_device *d, gk_memory kind, void *memory) {
  if (memory) (void)(kind == GK_HOST_MEMORY ? d->driver->hipHostFree(memory) : d->driver->hipFree(memory));
}

/* ---- the program's ----------------------------------------------------------------------------------------------- */

gk_result gki_hip_alloc(void *device, size_t bytes, gk_memory kind, void **memory) {
  gki_hip_device *d = device;
  gki_hip_before before;
  void *taken = NULL;
  gki_pinned *block = kind == GK_HOST_MEMORY ? gki_array(1, sizeof *block, "the record of a block") : NULL;
  if (kind == GK_HOST_MEMORY && !block) return GK_ERROR_MEMORY;
  gk_result result = gki_hip_enter(d, &before);
  if (result == GK_OK) result = gki_hip_alloc_raw(d, bytes, kind, &taken);
  if (gki_hip_leave(d, before, result) != GK_OK) {
    gk_host_free(block);
    return result;
  }
  if (block) gki_pinned_add(&d->pinned, block, taken, bytes);
  *memory = taken;
  return GK_OK;
}

void gki_hip_free(void *device, void *memory) {
  gki_hip_device *d = device;
  gki_hip_before before;
  if (!memory) return;
  gki_pinned *block = gki_pinned_remove(&d->pinned, memory);
  if (gki_hip_enter_to_free(d, &before)) {
    gki_hip_free_raw(d, block ? GK_HOST_MEMORY : GK_DEVICE_MEMORY, memory);
    (void)gki_hip_leave(d, before, GK_OK);
  }
  gk_host_free(block);
}

void *gki_hip_host_address(void *device, void *memory) {
  return gki_pinned_has(&((gki_hip_device *)device)->pinned, memory) ? memory : NULL;
}

/* The runtime doesn't know host memory that isn't page-locked: HIP 5 refuses the question, later ones answer 0. */
gk_result gki_hip_reaches(void *device, const void *memory) {
  gki_hip_device *d = device;
  const gki_hip_driver *driver = d->driver;
  _Alignas(16) union { unsigned type; unsigned char bytes[2 * GKI_HIP_POINTER_ATTRIBUTES]; } answer = {.bytes = {0}};
  gki_hip_before before;
  if (d->reaches_pageable || !gki_hip_enter_to_free(d, &before)) return GK_OK;
  const hipError_t result = driver->hipPointerGetAttributes(&answer, memory);
  (void)gki_hip_leave(d, before, GK_OK);
  if (result != hipErrorInvalidValue && !(result == hipSuccess && driver->version >= 600 && answer.type == 0))
    return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "%p is host memory that HIP device %d (%s) can't touch; bind memory of gk_alloc, or "
                 "allocate it by HIP (hipMalloc, hipHostMalloc), or register it (hipHostRegister)", memory, d->ordinal,
                 d->name);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static gk_result finish(void *device) {
  gki_hip_device *d = device;
  return gki_hip_result(d->driver, d->driver->hipStreamSynchronize(d->stream), "hipStreamSynchronize");
}

static gk_result enqueue(void *device, gk_direction direction, void *to, const void *from, size_t bytes) {
  static const char *const names[] = {[GK_TO_DEVICE] = "hipMemcpyHtoDAsync", [GK_TO_HOST] = "hipMemcpyDtoHAsync",
                                      [GK_ON_DEVICE] = "hipMemcpyDtoDAsync", [GK_ZERO] = "hipMemsetD8Async"};
  gki_hip_device *d = device;
  const gki_hip_driver *driver = d->driver;
  void *source = (void *)(uintptr_t)from;
  hipError_t answer = hipSuccess;
  switch (direction) {
  case GK_TO_DEVICE: answer = driver->hipMemcpyHtoDAsync(to, source, bytes, d->stream); break;
  case GK_TO_HOST: answer = driver->hipMemcpyDtoHAsync(to, source, bytes, d->stream); break;
  case GK_ZERO: answer = driver->hipMemsetD8Async(to, 0, bytes, d->stream); break;
  default: answer = driver->hipMemcpyDtoDAsync(to, source, bytes, d->stream);
  }
  return gki_hip_result(d->driver, answer, "%s of %zu bytes", names[direction], bytes);
}

static gk_result alloc_between(void *device, size_t bytes, void **memory) {
  return gki_hip_alloc_raw(device, bytes, GK_DEVICE_MEMORY, memory);
}

static void free_between(void *device, void *memory) { gki_hip_free_raw(device, GK_DEVICE_MEMORY, memory); }

gk_result gki_hip_copy(void *device, gk_direction direction, void *to, const void *from, size_t bytes) {
  static const gki_copier copier = {finish, enqueue, alloc_between, free_between};
  gki_hip_device *d = device;
  gki_hip_before before;
  gk_result result = gki_hip_enter(d, &before);
  if (result == GK_OK && d->shares_stream) result = gki_hip_refuse_capture(d, d->stream);
  if (result == GK_OK) result = gki_copy(&copier, d, &d->pinned, direction, to, from, bytes);
  return gki_hip_leave(d, before, result);
}
