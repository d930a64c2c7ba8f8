#include "hip/device.h"
#include <stdio.h>
#include <string.h>

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Reads what gk needs of hipDeviceProp_t, whose layout HIP 6 changed. */
static gk_result read_names(gki_hip_device *d) {
  _Alignas(16) char properties[2 * GKI_HIP_PROPERTIES_6] = {0}; /* a newer runtime may write more */
  const gki_hip_driver *driver = d->driver;
  const bool is_new = driver->hipGetDevicePropertiesR0600 != NULL;
  const hipError_t answer = is_new ? driver->hipGetDevicePropertiesR0600(properties, d->ordinal)
                                   : driver->hipGetDeviceProperties(properties, d->ordinal);
  const char *architecture = properties + (is_new ? GKI_HIP_ARCHITECTURE_6 : GKI_HIP_ARCHITECTURE_5);
  snprintf(d->architecture, sizeof d->architecture, "%.*s", GKI_HIP_NAME_BYTES - 1, architecture);
  snprintf(d->name, sizeof d->name, "%.99s", properties[0] ? properties : d->architecture);
  snprintf(d->driver_text, sizeof d->driver_text, "%s, %.40s", driver->name, d->architecture);
  return gki_hip_result(driver, answer, "hipGetDeviceProperties");
}

static gk_result read_attributes(gki_hip_device *d) {
  const struct { hipDeviceAttribute_t attribute; int *value; const char *name; } all[] = {
    {hipDeviceAttributeMultiprocessorCount, &d->multiprocessors, "multiprocessors"},
    {hipDeviceAttributeWarpSize, &d->wave, "size of a wave"},
    {hipDeviceAttributePageableMemoryAccess, &d->reaches_pageable, "access to pageable memory"}};
  gk_result result = GK_OK;
  for (size_t k = 0; k < GK_COUNT(all) && result == GK_OK; ++k)
    result = gki_hip_result(d->driver, d->driver->hipDeviceGetAttribute(all[k].value, all[k].attribute, d->ordinal),
                            "hipDeviceGetAttribute (%s)", all[k].name);
  return result;
}

static gk_result find_ordinal(gki_hip_device *d, int ordinal) {
  int count = 0;
  const gk_result result = gki_hip_result(d->driver, d->driver->hipGetDeviceCount(&count), "hipGetDeviceCount");
  d->ordinal = ordinal;
  if (result != GK_OK || (ordinal >= 0 && ordinal < count)) return result;
  return gk_fail(GK_ERROR_NO_DEVICE, "backend hip: there is no device %d; there %s %d, from 0 on", ordinal,
                 count == 1 ? "is" : "are", count);
}

static gk_result make_stream(gki_hip_device *d, const gk_hip_sharing *sharing) {
  gki_hip_before before;
  gk_result result = gki_hip_enter(d, &before);
  if (result == GK_OK && sharing && sharing->stream == (hipStream_t)GKI_HIP_STREAM_PER_THREAD) {
    result = gk_fail(GK_ERROR_INVALID, "gk_hip_sharing: hipStreamPerThread differs in each thread; give one stream");
  } else if (result == GK_OK && sharing) {
    d->stream = sharing->stream;
    d->shares_stream = true;
    result = gki_hip_refuse_capture(d, d->stream);
  } else if (result == GK_OK) {
    const hipError_t answer = d->driver->hipStreamCreateWithFlags(&d->stream, GKI_HIP_STREAM_NON_BLOCKING);
    result = gki_hip_result(d->driver, answer, "hipStreamCreateWithFlags");
    if (result != GK_OK) d->stream = NULL;
  }
  return gki_hip_leave(d, before, result);
}

gk_result gki_hip_open(gki_hip_device *d, int ordinal, const gk_hip_sharing *sharing) {
  gk_result result = gki_hip_driver_get(&d->driver);
  if (result == GK_OK) result = find_ordinal(d, ordinal);
  if (result == GK_OK) result = read_names(d);
  if (result == GK_OK) result = read_attributes(d);
  if (result != GK_OK) return result;
  pthread_mutex_init(&d->lock, NULL);
  d->has_lock = true;
  d->pinned.lock = &d->lock;
  return make_stream(d, sharing);
}

void gki_hip_close(void *device) {
  gki_hip_device *d = device;
  gki_hip_before before;
  if (!d->has_lock) return;
  if (gki_hip_enter_to_free(d, &before)) {
    if (d->builtin) (void)d->driver->hipModuleUnload(d->builtin);
    if (d->stream && !d->shares_stream) (void)d->driver->hipStreamDestroy(d->stream);
    (void)gki_hip_leave(d, before, GK_OK);
  }
  pthread_mutex_destroy(&d->lock);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

gk_result gki_hip_refuse_lost(void *device) {
  const gki_hip_device *d = device;
  return gki_loss_refuse(&d->loss, "HIP", d->ordinal, d->name);
}

static hipError_t set_device(const gki_hip_device *d, gki_hip_before *before) {
  *before = (gki_hip_before){.device = d->ordinal, .mode = hipStreamCaptureModeRelaxed, .is_entered = true};
  before->error = d->driver->hipPeekAtLastError();
  hipError_t answer = d->driver->hipGetDevice(&before->device);
  if (answer == hipSuccess && before->device != d->ordinal) answer = d->driver->hipSetDevice(d->ordinal);
  before->is_relaxed =
      answer == hipSuccess && d->driver->hipThreadExchangeStreamCaptureMode(&before->mode) == hipSuccess;
  return answer;
}

gk_result gki_hip_enter(gki_hip_device *d, gki_hip_before *before) {
  before->is_entered = false;
  const gk_result result = gki_hip_refuse_lost(d);
  return result == GK_OK ? gki_hip_result(d->driver, set_device(d, before), "choosing device %d", d->ordinal) : result;
}

bool gki_hip_enter_to_free(gki_hip_device *d, gki_hip_before *before) {
  hipError_t answer = hipErrorUnknown;
  for (int tries = 0; tries < 2 && answer != hipSuccess; ++tries) /* nothing can be freed without it */
    answer = set_device(d, before);
  if (answer != hipSuccess) (void)gki_hip_leave(d, *before, GK_OK);
  return answer == hipSuccess;
}

/* After a failure, the stream says whether the device still works. */
static void detect_loss(gki_hip_device *d) {
  const hipError_t answer = d->driver->hipStreamQuery(d->stream);
  if (answer != hipSuccess && answer != hipErrorNotReady && answer != hipErrorStreamCaptureUnsupported)
    gki_loss_note(&d->loss, &d->lock);
}

gk_result gki_hip_leave(gki_hip_device *d, gki_hip_before before, gk_result result) {
  if (!before.is_entered) return result;
  if (result == GK_ERROR_DEVICE) detect_loss(d);
  for (int tries = 0; tries < 2 && before.is_relaxed; ++tries)
    before.is_relaxed = d->driver->hipThreadExchangeStreamCaptureMode(&before.mode) != hipSuccess;
  if (before.device != d->ordinal) (void)d->driver->hipSetDevice(before.device);
  if (before.error == hipSuccess) (void)d->driver->hipGetLastError(); /* it is gk's: the program doesn't see it */
  return result;
}

gk_result gki_hip_refuse_capture(gki_hip_device *d, hipStream_t stream) {
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  const hipError_t answer = d->driver->hipStreamIsCapturing(stream, &status);
  if (answer == hipErrorStreamCaptureImplicit) status = hipStreamCaptureStatusActive;
  else if (answer != hipSuccess) return gki_hip_result(d->driver, answer, "hipStreamIsCapturing");
  if (status == hipStreamCaptureStatusNone) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "backend hip: the stream %sis being captured, and what gk puts there can't be "
                 "recorded; end the capture first, or use another stream",
                 stream == d->stream ? "that the device shares " : "");
}
