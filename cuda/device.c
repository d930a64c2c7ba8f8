#include "cuda/device.h"
#include "base/memory.h"
#include "cuda/direct_block.h"
#include "cuda/launch.h"
#include "cuda/probe.h"
#include <stdio.h>
#include <string.h>

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

gk_result gki_cuda_refuse_lost(const gki_cuda_device *device) {
  if (!atomic_load_explicit(&device->lost, memory_order_acquire)) return GK_OK;
  return gk_fail(GK_ERROR_DEVICE, "CUDA device %d (%s) is lost; close it, and if it can't be opened again, start the "
                 "program again. It began with: %s", device->ordinal, device->name, device->why_lost);
}

static gk_result push(const gki_cuda_device *device) {
  return gki_cuda_judge(device->driver, device->driver->cuCtxPushCurrent(device->context), "cuCtxPushCurrent");
}

void gki_cuda_leave_unrelaxed(const gki_cuda_device *device) {
  CUcontext own;
  (void)device->driver->cuCtxPopCurrent(&own);
}

/* Of the thread's calls of gk, which may be one in another (a GK_CALL may call gk), the first relaxes it. */
static _Thread_local struct {
  unsigned depth;
  const gki_cuda_driver *driver; /* NULL: it refused, or can't */
  CUstreamCaptureMode before;
} relaxed;

void gki_cuda_relax(const gki_cuda_device *device) {
  if (relaxed.depth++) return;
  relaxed.driver = NULL;
  if (!device->driver->cuThreadExchangeStreamCaptureMode) return;
  relaxed.before = CU_STREAM_CAPTURE_MODE_RELAXED;
  const CUresult result = device->driver->cuThreadExchangeStreamCaptureMode(&relaxed.before);
  if (result == CUDA_SUCCESS) relaxed.driver = device->driver;
}

void gki_cuda_unrelax(void) {
  if (--relaxed.depth || !relaxed.driver) return;
  for (int tries = 0; tries < 2; ++tries)
    if (relaxed.driver->cuThreadExchangeStreamCaptureMode(&relaxed.before) == CUDA_SUCCESS) return;
}

/* What the stream is asked or given would be recorded by the capture, or spoil it. The default stream can't be
 * captured, but takes nothing while a stream is that it would wait for: `implicit`. */
static CUresult is_captured(const gki_cuda_device *device, CUstream stream, bool *captured, bool *implicit) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = device->driver->cuStreamIsCapturing(stream, &status);
  *implicit = result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *captured = *implicit || (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE);
  return *captured ? CUDA_SUCCESS : result;
}

static gk_result refuse_capture(const gki_cuda_device *device, CUstream stream) {
  bool captured, implicit;
  CUresult result = is_captured(device, stream, &captured, &implicit);
  if (!captured) return gki_cuda_judge(device->driver, result, "cuStreamIsCapturing");
  if (implicit)
    return gk_fail(GK_ERROR_INVALID, "the default stream%s can't be used while a stream is captured that waits for it; "
                   "end the capture first, make that stream with CU_STREAM_NON_BLOCKING, or use another one than the "
                   "default stream", stream == device->stream ? ", which the device shares," : "");
  return gk_fail(GK_ERROR_INVALID, "the stream %sis being captured, and what gk puts there can't be recorded; end the "
                 "capture first, or use another stream",
                 stream != device->stream ? "" : device->shares_stream ? "that the device shares "
                                                                       : "that gk_cuda_context gave ");
}

/* Of a stream that none but gk knows that needn't be asked. */
static bool may_be_captured(const gki_cuda_device *device) {
  return device->shares_stream || atomic_load_explicit(&device->gave_stream, memory_order_relaxed);
}

gk_result gki_cuda_enter_unrelaxed(const gki_cuda_device *device) {
  gk_result result = gki_cuda_refuse_lost(device);
  if (result == GK_OK) result = push(device);
  if (result != GK_OK || !may_be_captured(device)) return result;
  result = refuse_capture(device, device->stream);
  if (result != GK_OK) gki_cuda_leave_unrelaxed(device);
  return result;
}

gk_result gki_cuda_enter(const gki_cuda_device *device) {
  gk_result result = gki_cuda_enter_unrelaxed(device);
  if (result == GK_OK) gki_cuda_relax(device);
  return result;
}

static gk_result refuse_stream(const gki_cuda_device *device, CUstream stream) {
  CUcontext context = NULL;
  if ((uintptr_t)stream <= GKI_CU_STREAM_PER_THREAD) return GK_OK; /* of the context that is current */
  gk_result result = gki_cuda_judge(device->driver, device->driver->cuStreamGetCtx(stream, &context),
                                    "cuStreamGetCtx of the stream to launch on");
  if (result != GK_OK || context == device->context) return result;
  return gk_fail(GK_ERROR_INVALID, "the stream to launch on belongs to another context than the device's; make it in "
                 "that of gk_cuda_context, or open the device with gk_cuda_sharing");
}

/* Of a stream that is being captured that mustn't be asked. */
static unsigned long long id_of(const gki_cuda_device *device, CUstream stream) {
  unsigned long long id = GKI_CUDA_STREAM_UNKNOWN;
  if (stream == device->stream || (uintptr_t)stream == GKI_CU_STREAM_LEGACY) return 0; /* stays as long as the device */
  if ((uintptr_t)stream == GKI_CU_STREAM_PER_THREAD || !device->driver->cuStreamGetId) return id;
  return device->driver->cuStreamGetId(stream, &id) == CUDA_SUCCESS ? id : GKI_CUDA_STREAM_UNKNOWN;
}

bool gki_cuda_is_same(const gki_cuda_stream_id *one, const gki_cuda_stream_id *other) {
  return one->stream == other->stream && one->id == other->id && one->id != GKI_CUDA_STREAM_UNKNOWN;
}

static gk_result push_if_other(const gki_cuda_device *device, bool *pushed) {
  CUcontext now = NULL;
  gk_result result = gki_cuda_judge(device->driver, device->driver->cuCtxGetCurrent(&now), "cuCtxGetCurrent");
  if (result != GK_OK || now == device->context) return result;
  result = push(device);
  *pushed = result == GK_OK;
  return result;
}

/* Whether it is captured is asked first, as that is the one question that spoils no capture. */
static gk_result refuse_launch_on(const gki_cuda_device *device, CUstream stream, const gki_cuda_stream_id *last,
                                  gki_cuda_stream_id *now) {
  gk_result result = refuse_capture(device, stream);
  if (result != GK_OK) return result;
  now->id = id_of(device, stream);
  if (gki_cuda_is_same(now, last)) return GK_OK;
  result = refuse_stream(device, stream);
  if (result == GK_OK && may_be_captured(device)) /* where it was last is marked there */
    result = refuse_capture(device, device->stream);
  return result;
}

/* The device's own, or the caller's, whose default one has one name here. */
static CUstream stream_of(const gki_cuda_device *device, const gk_hand_over *launch) {
  if (!launch->on_stream) return device->stream;
  return launch->stream ? launch->stream : (CUstream)(uintptr_t)GKI_CU_STREAM_LEGACY;
}

gk_result gki_cuda_enter_to_launch(const gki_cuda_device *device, const gk_hand_over *launch,
                                   const gki_cuda_stream_id *last, gki_cuda_stream_id *now, bool *pushed) {
  *pushed = false;
  *now = (gki_cuda_stream_id){stream_of(device, launch), 0};
  gk_result result;
  if (!launch->on_stream) {
    result = gki_cuda_enter_unrelaxed(device);
    *pushed = result == GK_OK;
    return result;
  }
  result = gki_cuda_refuse_lost(device);
  if (result == GK_OK) result = push_if_other(device, pushed);
  if (result == GK_OK) result = refuse_launch_on(device, now->stream, last, now);
  if (result == GK_OK || !*pushed) return result;
  gki_cuda_leave_unrelaxed(device);
  *pushed = false;
  return result;
}

/* A primary context that was reset can be pushed, but holds nothing any more. */
static bool is_reset(const gki_cuda_device *device) {
  const gki_cuda_driver *driver = device->driver;
  unsigned int flags;
  int active = 1;
  return device->retained && driver->cuDevicePrimaryCtxGetState &&
         driver->cuDevicePrimaryCtxGetState(device->device, &flags, &active) == CUDA_SUCCESS && !active;
}

bool gki_cuda_enter_to_free(gki_cuda_device *device) {
  CUresult result = CUDA_ERROR_UNKNOWN;
  for (int tries = 0; tries < 2 && result != CUDA_SUCCESS; ++tries) /* without it nothing can be given back */
    result = device->driver->cuCtxPushCurrent(device->context);
  if (result == CUDA_SUCCESS) gki_cuda_relax(device);
  if (gki_cuda_is_gone(result) || is_reset(device)) device->driver = gki_cuda_driver_of_gone();
  return result == CUDA_SUCCESS;
}

gk_result gki_cuda_judge_graph(const gki_cuda_device *device, const gk_plan *plan, CUresult result, const char *call) {
  return gki_cuda_judge(device->driver, result, "%s of graph %s", call, plan->name);
}

void gki_cuda_leave(const gki_cuda_device *device) {
  gki_cuda_unrelax();
  gki_cuda_leave_unrelaxed(device);
}

/* That would spoil the captures, too. Only of blocking streams the driver tells beforehand that they are captured. */
gk_result gki_cuda_await_all(const gki_cuda_device *device, const gk_plan *plan, const char *call) {
  bool captured, implicit;
  CUresult result = is_captured(device, (CUstream)(uintptr_t)GKI_CU_STREAM_LEGACY, &captured, &implicit);
  if (result == CUDA_SUCCESS && !captured) result = device->driver->cuCtxSynchronize();
  if (!captured && result != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
    return gki_cuda_judge(device->driver, result, "%s: cuCtxSynchronize for graph %s", call, plan->name);
  return gk_fail(GK_ERROR_INVALID, "%s: a stream of the device's context is being captured, and CUDA lets nothing wait "
                 "for the launches of graph %s meanwhile%s; end the capture first", call, plan->name,
                 captured ? "" : " (and that capture is invalid now)");
}

/* ---- losing it --------------------------------------------------------------------------------------------------- */

bool gki_cuda_is_alive(const gki_cuda_device *device) {
  bool captured = false, implicit;
  if (is_captured(device, device->stream, &captured, &implicit) != CUDA_SUCCESS) return false;
  if (captured) return true; /* to ask it would spoil the capture */
  const CUresult result = device->driver->cuStreamQuery(device->stream);
  return result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY;
}

gk_result gki_cuda_note(gki_cuda_device *device, gk_result result) {
  if (result != GK_ERROR_DEVICE || atomic_load(&device->lost)) return result;
  const bool entered = gki_cuda_enter_to_free(device), gone = device->driver == gki_cuda_driver_of_gone();
  const bool alive = !gone && (!entered || gki_cuda_is_alive(device));
  if (entered) gki_cuda_leave(device);
  if (alive) return result;
  pthread_mutex_lock(&device->lock);
  if (!atomic_load(&device->lost)) snprintf(device->why_lost, sizeof device->why_lost, "%s", gk_error());
  atomic_store_explicit(&device->lost, true, memory_order_release);
  pthread_mutex_unlock(&device->lock);
  return result;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static gk_result ask(gki_cuda_device *device, CUdevice_attribute attribute, const char *name, int *value) {
  return gki_cuda_judge(device->driver, device->driver->cuDeviceGetAttribute(value, attribute, device->device),
                        "cuDeviceGetAttribute(%s)", name);
}

static gk_result find_device(gki_cuda_device *device, int ordinal) {
  const gki_cuda_driver *driver = device->driver;
  int count = 0, major = 0, minor = 0, unified = 0;
  gk_result result = gki_cuda_judge(driver, driver->cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (result != GK_OK) return result;
  if (ordinal >= count)
    return gk_fail(GK_ERROR_NO_DEVICE, "backend cuda: there %s %d device%s, counted from 0; %d was asked for",
                   count == 1 ? "is" : "are", count, count == 1 ? "" : "s", ordinal);
  result = gki_cuda_judge(driver, driver->cuDeviceGet(&device->device, ordinal), "cuDeviceGet(%d)", ordinal);
  if (result == GK_OK)
    result = gki_cuda_judge(driver, driver->cuDeviceGetName(device->name, (int)sizeof device->name, device->device),
                            "cuDeviceGetName");
  if (result == GK_OK) result = ask(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, "major", &major);
  if (result == GK_OK) result = ask(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, "minor", &minor);
  if (result == GK_OK)
    result = ask(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "multiprocessors", &device->multiprocessors);
  if (result == GK_OK)
    result = ask(device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, "pageable memory", &device->reaches_pageable);
  if (result == GK_OK) result = ask(device, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, "unified addressing", &unified);
  if (result != GK_OK) return result;
  device->arch = 10 * major + minor;
  device->ordinal = ordinal;
  if (unified) return GK_OK;
  return gk_fail(GK_ERROR_NO_DEVICE,
                 "backend cuda: device %d (%s) has no address space in common with the host, which gk needs", ordinal,
                 device->name);
}

/* The one whose the context is; 0 may be any. */
static gk_result find_ordinal(const gki_cuda_driver *driver, CUcontext context, int *ordinal) {
  CUdevice device = -1, other = -1;
  CUcontext same;
  int found = 0;
  gk_result result = gki_cuda_judge(driver, driver->cuCtxPushCurrent(context),
                                    "gk_cuda_sharing: cuCtxPushCurrent of its context");
  if (result != GK_OK) return result;
  result = gki_cuda_judge(driver, driver->cuCtxGetDevice(&device), "gk_cuda_sharing: cuCtxGetDevice");
  (void)driver->cuCtxPopCurrent(&same);
  for (; result == GK_OK; ++found) {
    result = gki_cuda_judge(driver, driver->cuDeviceGet(&other, found), "cuDeviceGet(%d)", found);
    if (other == device) break;
  }
  if (result != GK_OK) return result;
  if (*ordinal && *ordinal != found)
    return gk_fail(GK_ERROR_INVALID, "gk_cuda_sharing: its context is of device %d, and ordinal %d was asked for; "
                   "leave that 0, or give a context of that device", found, *ordinal);
  *ordinal = found;
  return GK_OK;
}

static gk_result take_context(gki_cuda_device *device, CUcontext shared) {
  device->context = shared;
  if (shared) return GK_OK;
  gk_result result = gki_cuda_judge(device->driver,
                                    device->driver->cuDevicePrimaryCtxRetain(&device->context, device->device),
                                    "cuDevicePrimaryCtxRetain for device %d (%s)", device->ordinal, device->name);
  device->retained = result == GK_OK;
  return result;
}

static gk_result make_stream(const gki_cuda_device *device, CUstream *stream) {
  const gki_cuda_driver *driver = device->driver;
  gk_result result = gki_cuda_judge(driver, driver->cuStreamCreate(stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  if (result != GK_OK) *stream = NULL;
  return result;
}

/* In the device's context. */
static gk_result take_stream(gki_cuda_device *device, CUstream shared) {
  const gki_cuda_driver *driver = device->driver;
  CUcontext context = NULL;
  if ((uintptr_t)shared == GKI_CU_STREAM_PER_THREAD)
    return gk_fail(GK_ERROR_INVALID, "gk_cuda_sharing: CU_STREAM_PER_THREAD is another stream in each thread; give one "
                   "that is the same in all");
  if (shared) {
    gk_result result = refuse_capture(device, shared); /* asking for its context would spoil the capture */
    if (result == GK_OK)
      result = gki_cuda_judge(driver, driver->cuStreamGetCtx(shared, &context),
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

static gk_result take_both(gki_cuda_device *device, const gk_cuda_sharing *sharing) {
  gki_cuda_relax(device);
  gk_result result = take_context(device, sharing ? sharing->context : NULL);
  gki_cuda_unrelax();
  if (result == GK_OK) result = gki_cuda_enter(device);
  if (result != GK_OK) return result;
  result = take_stream(device, sharing ? sharing->stream : NULL);
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
  if (result == GK_OK) result = take_both(device, sharing);
  if (result != GK_OK) return result;
  gki_cuda_pool_make(&device->pool);
  pthread_mutex_init(&device->lock, NULL);
  device->locks = true;
  snprintf(device->driver_text, sizeof device->driver_text, "CUDA %d.%d", device->driver->version / 1000,
           device->driver->version % 1000 / 10);
  return GK_OK;
}

void gki_cuda_close(gki_cuda_device *device) {
  const bool leaves = gki_cuda_must_leave(&device->abilities);
  if (!leaves && device->stream) {
    bool entered = gki_cuda_enter_to_free(device);
    gki_cuda_pass_counts_drop(device);
    gki_cuda_pool_drop(device);
    if (device->uploads) (void)device->driver->cuStreamDestroy(device->uploads);
    if (!device->shares_stream) (void)device->driver->cuStreamDestroy(device->stream);
    if (entered) gki_cuda_leave(device);
  }
  if (!leaves && device->retained) {
    gki_cuda_relax(device);
    (void)device->driver->cuDevicePrimaryCtxRelease(device->device);
    gki_cuda_unrelax();
  }
  if (device->locks) pthread_mutex_destroy(&device->lock);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static CUdeviceptr address(const void *memory) { return (CUdeviceptr)(uintptr_t)memory; }

static gk_result judge_alloc(const gki_cuda_device *device, CUresult result, const char *call, size_t bytes) {
  return gki_cuda_judge(device->driver, result, "%s of %zu bytes", call, bytes);
}

/* What graphs left for later ones is given back before there is no memory. */
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

static gk_result alloc_pinned(gki_cuda_device *device, size_t bytes, void **memory) {
  gki_cuda_pinned *block = gki_array(1, sizeof *block, "the record of a block");
  if (!block) return GK_ERROR_MEMORY;
  const gki_cuda_driver *driver = device->driver;
  CUdeviceptr at = 0;
  void *taken = NULL;
  gk_result result = judge_alloc(device, alloc_host(device, bytes, &taken), "cuMemHostAlloc", bytes);
  if (result == GK_OK)
    result = gki_cuda_judge(driver, driver->cuMemHostGetDevicePointer(&at, taken, 0), "cuMemHostGetDevicePointer");
  if (result == GK_OK && at != address(taken))
    result = gk_fail(GK_ERROR_UNSUPPORTED, "backend cuda: page-locked memory has another address on device %d (%s); "
                     "use GK_DEVICE_MEMORY", device->ordinal, device->name);
  if (result != GK_OK && taken) (void)driver->cuMemFreeHost(taken);
  if (result != GK_OK) {
    gk_release(block);
    return result;
  }
  *block = (gki_cuda_pinned){NULL, taken, bytes};
  pthread_mutex_lock(&device->lock);
  block->next = device->pinned;
  device->pinned = block;
  pthread_mutex_unlock(&device->lock);
  *memory = taken;
  return GK_OK;
}

gk_result gki_cuda_alloc(void *at, size_t bytes, gk_memory kind, void **memory) {
  gki_cuda_device *device = at;
  gk_result result = gki_cuda_enter(device);
  if (result != GK_OK) return result;
  if (kind == GK_HOST_MEMORY) {
    result = alloc_pinned(device, bytes, memory);
  } else {
    CUdeviceptr taken = 0;
    result = judge_alloc(device, alloc_device(device, bytes, &taken), "cuMemAlloc", bytes);
    if (result == GK_OK) *memory = (void *)(uintptr_t)taken;
  }
  gki_cuda_leave(device);
  return result;
}

/* The place of the block that holds the address; under the lock. */
static gki_cuda_pinned **pinned_at(gki_cuda_device *device, const void *memory) {
  gki_cuda_pinned **at = &device->pinned;
  for (; *at; at = &(*at)->next)
    if ((uintptr_t)memory - (uintptr_t)(*at)->at < (*at)->bytes) break;
  return at;
}

void gki_cuda_free(void *at, void *memory) {
  gki_cuda_device *device = at;
  if (!memory) return;
  pthread_mutex_lock(&device->lock);
  gki_cuda_pinned **place = pinned_at(device, memory), *block = *place;
  if (block) *place = block->next;
  pthread_mutex_unlock(&device->lock);
  bool entered = gki_cuda_enter_to_free(device);
  const gki_cuda_driver *driver = device->driver;
  if (block) (void)driver->cuMemFreeHost(memory);
  else if (!gki_cuda_give_own(device, address(memory), true)) (void)driver->cuMemFree(address(memory));
  if (entered) gki_cuda_leave(device);
  gk_release(block);
}

void *gki_cuda_host_address(void *at, void *memory) {
  gki_cuda_device *device = at;
  pthread_mutex_lock(&device->lock);
  bool found = *pinned_at(device, memory) != NULL;
  pthread_mutex_unlock(&device->lock);
  return found ? memory : NULL;
}

/* The driver knows all memory but the host's that isn't page-locked. What else it may answer, a launch finds out. */
gk_result gki_cuda_reaches(void *at, const void *memory) {
  gki_cuda_device *device = at;
  unsigned type = 0;
  if (device->reaches_pageable || !device->driver->cuPointerGetAttribute || !gki_cuda_enter_to_free(device))
    return GK_OK;
  CUresult result =
      device->driver->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(memory));
  gki_cuda_leave(device);
  if (result != CUDA_ERROR_INVALID_VALUE) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "%p is host memory that CUDA device %d (%s) can't touch; bind memory of gk_alloc, "
                 "or allocate it by CUDA (cuMemAlloc, cuMemHostAlloc), or register it (cuMemHostRegister)", memory,
                 device->ordinal, device->name);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static gk_result finish(const gki_cuda_device *device) {
  return gki_cuda_judge(device->driver, device->driver->cuStreamSynchronize(device->stream), "cuStreamSynchronize");
}

/* What overlaps goes through memory in between, as the driver leaves open what it makes of it. */
static gk_result copy_overlapping(const gki_cuda_device *device, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  const gki_cuda_driver *driver = device->driver;
  CUdeviceptr between = 0;
  gk_result result = gki_cuda_judge(driver, driver->cuMemAlloc(&between, bytes),
                                    "cuMemAlloc of %zu bytes, to copy between ranges that overlap", bytes);
  if (result != GK_OK) return result;
  result = gki_cuda_judge(driver, driver->cuMemcpyDtoDAsync(between, from, bytes, device->stream), "cuMemcpyDtoDAsync");
  if (result == GK_OK)
    result = gki_cuda_judge(driver, driver->cuMemcpyDtoDAsync(to, between, bytes, device->stream), "cuMemcpyDtoDAsync");
  if (result == GK_OK) result = finish(device);
  (void)driver->cuMemFree(between);
  return result;
}

static gk_result copy_device(const gki_cuda_device *device, gk_direction direction, void *to, const void *from,
                             size_t bytes) {
  const gki_cuda_driver *driver = device->driver;
  CUresult result = CUDA_SUCCESS;
  const char *name = "cuMemcpyDtoDAsync";
  uintptr_t apart = (uintptr_t)to > (uintptr_t)from ? (uintptr_t)to - (uintptr_t)from
                                                    : (uintptr_t)from - (uintptr_t)to;
  switch (direction) {
  case GK_TO_DEVICE:
    name = "cuMemcpyHtoDAsync";
    result = driver->cuMemcpyHtoDAsync(address(to), from, bytes, device->stream);
    break;
  case GK_TO_HOST:
    name = "cuMemcpyDtoHAsync";
    result = driver->cuMemcpyDtoHAsync(to, address(from), bytes, device->stream);
    break;
  case GK_ZERO:
    name = "cuMemsetD8Async";
    result = driver->cuMemsetD8Async(address(to), 0, bytes, device->stream);
    break;
  default:
    if (apart == 0) return finish(device);
    if (apart < bytes) return copy_overlapping(device, address(to), address(from), bytes);
    result = driver->cuMemcpyDtoDAsync(address(to), address(from), bytes, device->stream);
  }
  gk_result judged = gki_cuda_judge(driver, result, "%s of %zu bytes", name, bytes);
  return judged == GK_OK ? finish(device) : judged;
}

/* Page-locked memory is the host's: once earlier work is over, the host copies it itself or copies from and to it. */
static gk_result copy_pinned(const gki_cuda_device *device, gk_direction direction, void *to, bool to_pinned,
                            const void *from, bool from_pinned, size_t bytes) {
  gk_result result = finish(device);
  if (result != GK_OK) return result;
  bool from_host = from_pinned || direction == GK_TO_DEVICE, to_host = to_pinned || direction == GK_TO_HOST;
  if (direction == GK_ZERO) memset(to, 0, bytes);
  else if (from_host && to_host) memmove(to, from, bytes);
  else return copy_device(device, from_host ? GK_TO_DEVICE : GK_TO_HOST, to, from, bytes);
  return GK_OK;
}

gk_result gki_cuda_copy(void *at, gk_direction direction, void *to, const void *from, size_t bytes) {
  gki_cuda_device *device = at;
  pthread_mutex_lock(&device->lock);
  bool to_pinned = direction != GK_TO_HOST && *pinned_at(device, to);
  bool from_pinned = (direction == GK_TO_HOST || direction == GK_ON_DEVICE) && *pinned_at(device, from);
  pthread_mutex_unlock(&device->lock);
  gk_result result = gki_cuda_enter(device);
  if (result != GK_OK) return result;
  result = gki_cuda_follow_abroad(device);
  if (result != GK_OK) {
    gki_cuda_leave(device);
    return result;
  }
  result = to_pinned || from_pinned ? copy_pinned(device, direction, to, to_pinned, from, from_pinned, bytes)
                                : copy_device(device, direction, to, from, bytes);
  gki_cuda_leave(device);
  return result;
}
