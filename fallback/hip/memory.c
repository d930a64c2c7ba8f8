#include "hip/device.h"

/* HIP's page-locked memory is shared virtual memory, which has one address for the host and all devices. */
gk_result gki_hip_alloc_raw(void *device, size_t bytes, gk_memory kind, void **memory) {
  enum { FLAGS = GKI_HIP_HOST_MALLOC_PORTABLE | GKI_HIP_HOST_MALLOC_MAPPED };
  const gki_hip_driver *driver = ((const gki_hip_device *)device)->driver;
  const bool is_host = kind == GK_HOST_MEMORY;
  void *taken = NULL;
  const hipError_t answer =
      is_host ? driver->hipHostMalloc(&taken, bytes, FLAGS) : driver->hipMalloc(&taken, bytes);
  if (answer == hipSuccess) *memory = taken;
  return gki_hip_result(driver, answer, "%s of %zu bytes", is_host ? "hipHostMalloc" : "hipMalloc", bytes);
}

void gki_hip_free_raw(void *device, gk_memory kind, void *memory) {
  const gki_hip_device *d = device;
  if (memory) (void)(kind == GK_HOST_MEMORY ? d->driver->hipHostFree(memory) : d->driver->hipFree(memory));
}

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

/* ---- the backend's entries --------------------------------------------------------------------------------------- */

static const gki_memory_driver memory_driver = {finish, enqueue, gki_hip_alloc_raw, gki_hip_free_raw};

gk_result gki_hip_alloc(void *device, size_t bytes, gk_memory kind, void **memory) {
  gki_hip_device *d = device;
  gki_hip_before before;
  gk_result result = gki_hip_enter(d, &before);
  if (result == GK_OK) result = gki_memory_alloc(&memory_driver, d, &d->pinned, bytes, kind, memory);
  return gki_hip_leave(d, before, result);
}

void gki_hip_free(void *device, void *memory) {
  gki_hip_device *d = device;
  gki_hip_before before;
  const bool entered = memory && gki_hip_enter_to_free(d, &before);
  if (memory) gki_memory_free(&memory_driver, d, &d->pinned, memory);
  if (entered) (void)gki_hip_leave(d, before, GK_OK);
}

gk_result gki_hip_copy(void *device, gk_direction direction, void *to, const void *from, size_t bytes) {
  gki_hip_device *d = device;
  gki_hip_before before;
  gk_result result = gki_hip_enter(d, &before);
  if (result == GK_OK && d->shares_stream) result = gki_hip_refuse_capture(d, d->stream);
  if (result == GK_OK) result = gki_memory_copy(&memory_driver, d, &d->pinned, direction, to, from, bytes);
  return gki_hip_leave(d, before, result);
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
  return gki_memory_refuse(memory, "HIP", d->ordinal, d->name,
                           "hipMalloc, hipHostMalloc), or register it (hipHostRegister");
}
