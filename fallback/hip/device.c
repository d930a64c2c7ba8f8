#include "hip/device.h"
#include "base/clock.h"
#include "base/costs.h"
#include <stdio.h>
#include <string.h>

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Of hipDeviceProp_t, whose layout HIP 6 changed, only the architecture's name is needed. */
static hipError_t read_architecture(gki_hip_device *d) {
  _Alignas(16) char properties[2 * GKI_HIP_PROPERTIES_6] = {0}; /* a newer runtime may write more */
  const gki_hip_driver *driver = d->driver;
  const bool is_new = driver->hipGetDevicePropertiesR0600 != NULL;
  const hipError_t answer = is_new ? driver->hipGetDevicePropertiesR0600(properties, d->ordinal)
                                   : driver->hipGetDeviceProperties(properties, d->ordinal);
  const char *from = properties + (is_new ? GKI_HIP_ARCHITECTURE_6 : GKI_HIP_ARCHITECTURE_5);
  snprintf(d->architecture, sizeof d->architecture, "%.*s", GKI_HIP_ARCHITECTURE_BYTES - 1, from);
  return answer;
}

static gk_result read_attributes(gki_hip_device *d) {
  const struct { hipDeviceAttribute_t attribute; int *value; const char *name; } all[] = {
    {hipDeviceAttributeMultiprocessorCount, &d->multiprocessors, "multiprocessors"},
    {hipDeviceAttributeMaxThreadsPerBlock, &d->most_threads, "threads of a block"},
    {hipDeviceAttributeWarpSize, &d->wave, "size of a wave"},
    {hipDeviceAttributePageableMemoryAccess, &d->reaches_pageable, "access to pageable memory"}};
  gk_result result = GK_OK;
  for (size_t k = 0; k < GK_COUNT(all) && result == GK_OK; ++k)
    result = gki_hip_result(d->driver, d->driver->hipDeviceGetAttribute(all[k].value, all[k].attribute, d->ordinal),
                            "hipDeviceGetAttribute (%s)", all[k].name);
  return result;
}

static gk_result describe(gki_hip_device *d) {
  const gki_hip_driver *driver = d->driver;
  hipDevice_t device;
  char name[100] = "";
  gk_result result = gki_hip_result(driver, driver->hipDeviceGet(&device, d->ordinal), "hipDeviceGet");
  if (result == GK_OK)
    result = gki_hip_result(driver, driver->hipDeviceGetName(name, sizeof name, device), "hipDeviceGetName");
  if (result == GK_OK) result = gki_hip_result(driver, read_architecture(d), "hipGetDeviceProperties");
  if (result == GK_OK) result = read_attributes(d);
  snprintf(d->name, sizeof d->name, "%.99s", name[0] ? name : d->architecture);
  snprintf(d->driver_text, sizeof d->driver_text, "HIP %d.%d, %.40s", driver->version / 100, driver->version % 100,
           d->architecture);
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
  if (result == GK_OK && sharing) {
    d->stream = sharing->stream;
    d->shares_stream = true;
    result = gki_hip_refuse_capture(d, d->stream);
  } else if (result == GK_OK) {
    hipStream_t stream;
    result = gki_hip_result(d->driver, d->driver->hipStreamCreateWithFlags(&stream, GKI_HIP_STREAM_NON_BLOCKING),
                            "hipStreamCreateWithFlags");
    if (result == GK_OK) d->stream = stream;
  }
  return gki_hip_leave(d, before, result);
}

gk_result gki_hip_open(gki_hip_device *d, int ordinal, const gk_hip_sharing *sharing) {
  gk_result result = gki_hip_driver_get(&d->driver);
  if (result == GK_OK) result = find_ordinal(d, ordinal);
  if (result == GK_OK) result = describe(d);
  if (result != GK_OK) return result;
  if (pthread_mutex_init(&d->lock, NULL) != 0)
    return gk_fail(GK_ERROR_MEMORY, "backend hip: there is no mutex left");
  d->has_lock = true;
  d->pinned.lock = &d->lock;
  return make_stream(d, sharing);
}

void gki_hip_close(gki_hip_device *d) {
  gki_hip_before before;
  if (d->stream && !d->shares_stream && gki_hip_enter_to_free(d, &before)) {
    (void)d->driver->hipStreamDestroy(d->stream);
    (void)gki_hip_leave(d, before, GK_OK);
  }
  if (d->has_lock) pthread_mutex_destroy(&d->lock);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

gk_result gki_hip_refuse_lost(const gki_hip_device *d) { return gki_loss_refuse(&d->loss, "HIP", d->ordinal, d->name); }

static hipError_t set_device(const gki_hip_device *d, gki_hip_before *before) {
  *before = (gki_hip_before){.device = d->ordinal, .mode = hipStreamCaptureModeRelaxed, .is_entered = true};
  if (d->driver->hipPeekAtLastError) before->error = d->driver->hipPeekAtLastError();
  hipError_t answer = d->driver->hipGetDevice(&before->device);
  if (answer == hipSuccess && before->device != d->ordinal) answer = d->driver->hipSetDevice(d->ordinal);
  before->is_relaxed = answer == hipSuccess && d->driver->hipThreadExchangeStreamCaptureMode &&
                       d->driver->hipThreadExchangeStreamCaptureMode(&before->mode) == hipSuccess;
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
  if (before.error == hipSuccess) gki_hip_forget_error(d->driver);
  return result;
}

gk_result gki_hip_refuse_capture(gki_hip_device *d, hipStream_t stream) {
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  const hipError_t answer = d->driver->hipStreamIsCapturing(stream, &status);
  if (answer != hipSuccess) return gki_hip_result(d->driver, answer, "hipStreamIsCapturing");
  if (status == hipStreamCaptureStatusNone) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "backend hip: the stream %sis being captured, and what gk puts there can't be "
                 "recorded; end the capture first, or use another stream",
                 stream == d->stream ? "that the device shares " : "");
}

hipError_t gki_hip_wait(const gki_hip_device *d, hipEvent_t event) {
  const uint64_t begin = gki_now_ns();
  do {
    const hipError_t answer = d->driver->hipEventQuery(event);
    if (answer != hipErrorNotReady) return answer;
    gki_pause();
  } while (gki_now_ns() - begin < GKI_COST_SPIN_NS);
  return d->driver->hipEventSynchronize(event);
}
