#include "cuda/open.h"
#include "cuda/memory.h"
#include "cuda/pool.h"
#include "cuda/probe.h"
#include <stdio.h>
#include <string.h>

static gk_result get_attribute(gki_cuda_device *device, CUdevice_attribute attribute, const char *name, int *value) {
  return gki_cuda_result(device->driver, device->driver->cuDeviceGetAttribute(value, attribute, device->device),
                        "cuDeviceGetAttribute(%s)", name);
}

static gk_result find_device(gki_cuda_device *device, int ordinal) {
  const gki_cuda_driver *driver = device->driver;
  int count = 0, major = 0, minor = 0, unified = 0;
  gk_result result = gki_cuda_result(driver, driver->cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (result != GK_OK) return result;
  if (ordinal >= count)
    return gk_fail(GK_ERROR_NO_DEVICE, "backend cuda: there %s %d device%s, counted from 0; %d was asked for",
                   count == 1 ? "is" : "are", count, count == 1 ? "" : "s", ordinal);
  result = gki_cuda_result(driver, driver->cuDeviceGet(&device->device, ordinal), "cuDeviceGet(%d)", ordinal);
  if (result == GK_OK)
    result = gki_cuda_result(driver, driver->cuDeviceGetName(device->name, (int)sizeof device->name, device->device),
                            "cuDeviceGetName");
  if (result == GK_OK) result = get_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, "major", &major);
  if (result == GK_OK) result = get_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, "minor", &minor);
  if (result == GK_OK)
    result = get_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "multiprocessors",
                           &device->multiprocessors);
  if (result == GK_OK)
    result = get_attribute(device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, "pageable memory",
                           &device->reaches_pageable);
  if (result == GK_OK)
    result = get_attribute(device, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, "unified addressing", &unified);
  if (result != GK_OK) return result;
  device->arch = 10 * major + minor;
  device->ordinal = ordinal;
  if (unified) return GK_OK;
  return gk_fail(GK_ERROR_NO_DEVICE,
                 "backend cuda: device %d (%s) has no address space in common with the host, which gk needs", ordinal,
                 device->name);
}

/* Sets the ordinal of the context's device. Any other ordinal than 0 must match it. */
static gk_result find_ordinal(const gki_cuda_driver *driver, CUcontext context, int *ordinal) {
  CUdevice device = -1, other = -1;
  CUcontext same;
  int found = 0;
  gk_result result = gki_cuda_result(driver, driver->cuCtxPushCurrent(context),
                                    "gk_cuda_sharing: cuCtxPushCurrent of its context");
  if (result != GK_OK) return result;
  result = gki_cuda_result(driver, driver->cuCtxGetDevice(&device), "gk_cuda_sharing: cuCtxGetDevice");
  (void)driver->cuCtxPopCurrent(&same);
  for (; result == GK_OK; ++found) {
    result = gki_cuda_result(driver, driver->cuDeviceGet(&other, found), "cuDeviceGet(%d)", found);
    if (other == device) break;
  }
  if (result != GK_OK) return result;
  if (*ordinal && *ordinal != found)
    return gk_fail(GK_ERROR_INVALID, "gk_cuda_sharing: its context is of device %d, and ordinal %d was asked for; "
                   "leave that 0, or give a context of that device", found, *ordinal);
  *ordinal = found;
  return GK_OK;
}

static gk_result set_context(gki_cuda_device *device, CUcontext shared) {
  device->context = shared;
  if (shared) return GK_OK;
  gk_result result = gki_cuda_result(device->driver,
                                    device->driver->cuDevicePrimaryCtxRetain(&device->context, device->device),
                                    "cuDevicePrimaryCtxRetain for device %d (%s)", device->ordinal, device->name);
  device->retained = result == GK_OK;
  return result;
}

static gk_result make_stream(const gki_cuda_device *device, CUstream *stream) {
  const gki_cuda_driver *driver = device->driver;
  gk_result result = gki_cuda_result(driver, driver->cuStreamCreate(stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  if (result != GK_OK) *stream = NULL;
  return result;
}

/* In the device's context. */
static gk_result set_stream(gki_cuda_device *device, CUstream shared) {
  const gki_cuda_driver *driver = device->driver;
  CUcontext context = NULL;
  if ((uintptr_t)shared == GKI_CU_STREAM_PER_THREAD)
    return gk_fail(GK_ERROR_INVALID, "gk_cuda_sharing: CU_STREAM_PER_THREAD is another stream in each thread; give one "
                   "that is the same in all");
  if (shared) {
    gk_result result = gki_cuda_refuse_capture(device, shared); /* asking for its context would spoil the capture */
    if (result == GK_OK)
      result = gki_cuda_result(driver, driver->cuStreamGetCtx(shared, &context),
                              "gk_cuda_sharing: cuStreamGetCtx of its stream");
    if (result == GK_OK && context != device->context)
      result = gk_fail(GK_ERROR_INVALID, "gk_cuda_sharing: its stream belongs to another context; give that one, too, "
                       "or a stream of %s", device->retained ? "the primary context" : "the context that was given");
    if (result == GK_OK) device->stream = shared;
    device->shares_stream = result == GK_OK;
    return result;
  }
  return make_stream(device, &device->stream);
}

static gk_result set_both(gki_cuda_device *device, const gk_cuda_sharing *sharing) {
  gki_cuda_relax(device);
  gk_result result = set_context(device, sharing ? sharing->context : NULL);
  gki_cuda_unrelax();
  if (result == GK_OK) result = gki_cuda_enter(device);
  if (result != GK_OK) return result;
  result = set_stream(device, sharing ? sharing->stream : NULL);
  if (result == GK_OK) result = make_stream(device, &device->uploads);
  gki_cuda_leave(device);
  return result;
}

gk_result gki_cuda_open(gki_cuda_device *device, int ordinal, const gk_cuda_sharing *sharing) {
  const gki_cuda_driver *driver;
  gk_result result = gki_cuda_driver_get(&driver);
  device->driver = driver;
  if (result == GK_OK && sharing && sharing->context)
    result = find_ordinal(device->driver, sharing->context, &ordinal);
  if (result == GK_OK) result = find_device(device, ordinal);
  if (result == GK_OK) result = gki_cuda_probe_refuses(device->device);
  if (result == GK_OK) result = set_both(device, sharing);
  if (result != GK_OK) return result;
  gki_cuda_pool_make(&device->pool);
  pthread_mutex_init(&device->lock, NULL);
  device->has_lock = true;
  device->pinned.lock = &device->lock;
  snprintf(device->driver_text, sizeof device->driver_text, "CUDA %d.%d", device->driver->version / 1000,
           device->driver->version % 1000 / 10);
  return GK_OK;
}

void gki_cuda_close(gki_cuda_device *device) {
  const bool leaks = gki_cuda_must_leak(&device->caps);
  if (!leaks && device->stream) {
    bool entered = gki_cuda_enter_to_free(device);
    gki_cuda_pass_counts_drop(device);
    gki_cuda_pool_drop(device);
    if (device->uploads) (void)device->driver->cuStreamDestroy(device->uploads);
    if (!device->shares_stream) (void)device->driver->cuStreamDestroy(device->stream);
    if (entered) gki_cuda_leave(device);
  }
  if (!leaks && device->retained) {
    gki_cuda_relax(device);
    (void)device->driver->cuDevicePrimaryCtxRelease(device->device);
    gki_cuda_unrelax();
  }
  if (device->has_lock) pthread_mutex_destroy(&device->lock);
}
