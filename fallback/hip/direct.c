#include "base/error.h"
#include "hip/device.h"

gk_result gk_hip_stream(gk_device *device, hipStream_t *stream) {
  gki_begin();
  if (!stream) return gk_fail(GK_ERROR_INVALID, "gk_hip_stream: `stream` is NULL");
  void *state;
  const gk_result result = gk_device_state(device, "hip", "gk_hip_stream", &state);
  *stream = result == GK_OK ? ((const gki_hip_device *)state)->stream : NULL;
  return result;
}
