#include "cuda/device.h"
#include "base/memory.h"
#include <string.h>

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

gk_result gki_cuda_refuse_lost(const gki_cuda_device *device) {
  return gki_loss_refuse(&device->loss, "CUDA", device->ordinal, device->name);
}

static gk_result push(const gki_cuda_device *device) {
  return gki_cuda_result(device->driver, device->driver->cuCtxPushCurrent(device->context), "cuCtxPushCurrent");
}

void gki_cuda_leave_unrelaxed(const gki_cuda_device *device) {
  CUcontext own;
  (void)device->driver->cuCtxPopCurrent(&own);
}

/* The thread's outermost call of gk relaxes it. Calls may be nested, since a GK_CALL may call gk. */
static _Thread_local struct {
  unsigned depth;
  const gki_cuda_driver *driver; /* NULL: it has no such entry, or it failed */
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

/* A captured stream records all work, and other calls spoil the capture. The default stream can't be captured, but
 * takes no work while a stream is captured that waits for it: `implicit`. */
static CUresult is_captured(const gki_cuda_device *device, CUstream stream, bool *captured, bool *implicit) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = device->driver->cuStreamIsCapturing(stream, &status);
  *implicit = result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *captured = *implicit || (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE);
  return *captured ? CUDA_SUCCESS : result;
}

gk_result gki_cuda_refuse_capture(const gki_cuda_device *device, CUstream stream) {
  bool captured, implicit;
  CUresult result = is_captured(device, stream, &captured, &implicit);
  if (!captured) return gki_cuda_result(device->driver, result, "cuStreamIsCapturing");
  if (implicit)
    return gk_fail(GK_ERROR_INVALID, "the default stream%s can't be used while a stream is captured that waits for it; "
                   "end the capture first, make that stream with CU_STREAM_NON_BLOCKING, or use another one than the "
                   "default stream", stream == device->stream ? ", which the device shares," : "");
  return gk_fail(GK_ERROR_INVALID, "the stream %sis being captured, and what gk puts there can't be recorded; end the "
                 "capture first, or use another stream",
                 stream != device->stream ? "" : device->shares_stream ? "that the device shares "
                                                                       : "that gk_cuda_context gave ");
}

/* False: only gk knows the stream, so no capture is possible. */
static bool may_be_captured(const gki_cuda_device *device) {
  return device->shares_stream || atomic_load_explicit(&device->exposed_stream, memory_order_relaxed);
}

gk_result gki_cuda_enter_unrelaxed(const gki_cuda_device *device) {
  gk_result result = gki_cuda_refuse_lost(device);
  if (result == GK_OK) result = push(device);
  if (result != GK_OK || !may_be_captured(device)) return result;
  result = gki_cuda_refuse_capture(device, device->stream);
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
  if ((uintptr_t)stream <= GKI_CU_STREAM_PER_THREAD) return GK_OK; /* default streams belong to the current context */
  gk_result result = gki_cuda_result(device->driver, device->driver->cuStreamGetCtx(stream, &context),
                                    "cuStreamGetCtx of the stream to launch on");
  if (result != GK_OK || context == device->context) return result;
  return gk_fail(GK_ERROR_INVALID, "the stream to launch on belongs to another context than the device's; make it in "
                 "that of gk_cuda_context, or open the device with gk_cuda_sharing");
}

/* Not for a stream that is being captured: the query would spoil the capture. */
static unsigned long long id_of(const gki_cuda_device *device, CUstream stream) {
  unsigned long long id = GKI_CUDA_STREAM_UNKNOWN;
  if (stream == device->stream || (uintptr_t)stream == GKI_CU_STREAM_LEGACY) return 0; /* lives as long as the device */
  if ((uintptr_t)stream == GKI_CU_STREAM_PER_THREAD || !device->driver->cuStreamGetId) return id;
  return device->driver->cuStreamGetId(stream, &id) == CUDA_SUCCESS ? id : GKI_CUDA_STREAM_UNKNOWN;
}

bool gki_cuda_is_same(const gki_cuda_stream_id *one, const gki_cuda_stream_id *other) {
  return one->stream == other->stream && one->id == other->id && one->id != GKI_CUDA_STREAM_UNKNOWN;
}

static gk_result push_if_other(const gki_cuda_device *device, bool *pushed) {
  CUcontext now = NULL;
  gk_result result = gki_cuda_result(device->driver, device->driver->cuCtxGetCurrent(&now), "cuCtxGetCurrent");
  if (result != GK_OK || now == device->context) return result;
  result = push(device);
  *pushed = result == GK_OK;
  return result;
}

/* The check for a capture comes first, since it is the only query that spoils no capture. */
static gk_result refuse_launch_on(const gki_cuda_device *device, CUstream stream, const gki_cuda_stream_id *last,
                                  gki_cuda_stream_id *now) {
  gk_result result = gki_cuda_refuse_capture(device, stream);
  if (result != GK_OK) return result;
  now->id = id_of(device, stream);
  if (gki_cuda_is_same(now, last)) return GK_OK;
  result = refuse_stream(device, stream);
  if (result == GK_OK && may_be_captured(device)) /* the previous launch is marked there */
    result = gki_cuda_refuse_capture(device, device->stream);
  return result;
}

/* The device's own stream, or the caller's. The caller's default stream always gets the same handle. */
static CUstream stream_of(const gki_cuda_device *device, const gk_launch_args *launch) {
  if (!launch->on_stream) return device->stream;
  return launch->stream ? launch->stream : (CUstream)(uintptr_t)GKI_CU_STREAM_LEGACY;
}

gk_result gki_cuda_enter_to_launch(const gki_cuda_device *device, const gk_launch_args *launch,
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

/* A primary context that was reset can be pushed, but all its contents are gone. */
static bool is_reset(const gki_cuda_device *device) {
  const gki_cuda_driver *driver = device->driver;
  unsigned int flags;
  int active = 1;
  return device->retained && driver->cuDevicePrimaryCtxGetState &&
         driver->cuDevicePrimaryCtxGetState(device->device, &flags, &active) == CUDA_SUCCESS && !active;
}

bool gki_cuda_enter_to_free(gki_cuda_device *device) {
  CUresult result = CUDA_ERROR_UNKNOWN;
  for (int tries = 0; tries < 2 && result != CUDA_SUCCESS; ++tries) /* nothing can be freed without it */
    result = device->driver->cuCtxPushCurrent(device->context);
  if (result == CUDA_SUCCESS) gki_cuda_relax(device);
  if (gki_cuda_is_gone(result) || is_reset(device)) device->driver = gki_cuda_driver_of_gone();
  return result == CUDA_SUCCESS;
}

gk_result gki_cuda_graph_result(const gki_cuda_device *device, const gk_plan *plan, CUresult result, const char *call) {
  return gki_cuda_result(device->driver, result, "%s of graph %s", call, plan->name);
}

void gki_cuda_leave(const gki_cuda_device *device) {
  gki_cuda_unrelax();
  gki_cuda_leave_unrelaxed(device);
}

/* A wait would also spoil the captures. The driver reports beforehand only captures of blocking streams. */
gk_result gki_cuda_await_all(const gki_cuda_device *device, const gk_plan *plan, const char *call) {
  bool captured, implicit;
  CUresult result = is_captured(device, (CUstream)(uintptr_t)GKI_CU_STREAM_LEGACY, &captured, &implicit);
  if (result == CUDA_SUCCESS && !captured) result = device->driver->cuCtxSynchronize();
  if (!captured && result != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
    return gki_cuda_result(device->driver, result, "%s: cuCtxSynchronize for graph %s", call, plan->name);
  return gk_fail(GK_ERROR_INVALID, "%s: a stream of the device's context is being captured, and CUDA lets nothing wait "
                 "for the launches of graph %s meanwhile%s; end the capture first", call, plan->name,
                 captured ? "" : " (and that capture is invalid now)");
}

/* ---- loss -------------------------------------------------------------------------------------------------------- */

bool gki_cuda_is_alive(const gki_cuda_device *device) {
  bool captured = false, implicit;
  if (is_captured(device, device->stream, &captured, &implicit) != CUDA_SUCCESS) return false;
  if (captured) return true; /* a query would spoil the capture */
  const CUresult result = device->driver->cuStreamQuery(device->stream);
  return result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY;
}

gk_result gki_cuda_detect_loss(gki_cuda_device *device, gk_result result) {
  if (result != GK_ERROR_DEVICE || atomic_load(&device->loss.is_lost)) return result;
  const bool entered = gki_cuda_enter_to_free(device), gone = device->driver == gki_cuda_driver_of_gone();
  const bool alive = !gone && (!entered || gki_cuda_is_alive(device));
  if (entered) gki_cuda_leave(device);
  if (alive) return result;
  gki_loss_note(&device->loss, &device->lock);
  return result;
}

gk_result gki_cuda_into_result(const gki_cuda_device *device, CUresult result, const char *call, const char *entry) {
  if (result != CUDA_ERROR_INVALID_VALUE) return gki_cuda_result(device->driver, result, "%s: %s", call, entry);
  char text[300];
  gki_cuda_describe_result(device->driver, result, text, sizeof text);
  return gk_fail(GK_ERROR_INVALID, "%s: %s: %s; the graph must be alive and, as a whole, without an exec; the nodes "
                 "that come first must be different ones of that graph, not of one around or in it", call, entry, text);
}
