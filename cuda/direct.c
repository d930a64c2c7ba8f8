/* gk_cuda.h: sharing, and looking inside. */
#include "gk_cuda.h"
#include "backend.h"
#include "common/alive.h"
#include "common/graph.h"
#include "device.h"

/* ---- whose it is ------------------------------------------------------------------------------------------------- */

static gk_result refuse_other(const gk_device *device, const char *call, const char *what) {
  if (device->backend == &gki_cuda) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "%s: the %s is of backend %s, not cuda", call, what, device->backend->name);
}

static gk_result refuse_device(const gk_device *device, const char *call) {
  gki_begin();
  if (!device) return gk_fail(GK_ERROR_INVALID, "%s: there is no device (NULL)", call);
  return gki_refuse_dead(device, call) == GK_OK ? refuse_other(device, call, "device") : GK_ERROR_INVALID;
}

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

gk_result gk_cuda_context(gk_device *device, CUcontext *context, CUstream *stream) {
  if (context) *context = NULL;
  if (stream) *stream = NULL;
  gk_result result = refuse_device(device, "gk_cuda_context");
  if (result != GK_OK) return result;
  const gki_cuda_device *ours = device->state;
  if (context) *context = ours->context;
  if (stream) *stream = ours->stream;
  return GK_OK;
}
