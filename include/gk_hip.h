/** @file gk_hip.h
 * For programs that use AMD's HIP themselves, such as PyTorch for ROCm, rocBLAS and kernels of their own.
 *
 * Needs no header of HIP and may be included before or after hip_runtime.h. Devices and graphs are those of gk.h. Its
 * rules for errors, ownership and threads hold here, too. A device of another backend is GK_ERROR_INVALID.
 *
 * Memory needs no call: an address of hipMalloc or hipHostMalloc may be bound to a slot as it is, if it belongs to the
 * same device. Host memory that HIP doesn't know is refused, unless the device can access it. gk_launch_on takes a
 * hipStream_t.
 * \sa docs/hip.md \since 0.2.0 */
#ifndef GK_HIP_H
#define GK_HIP_H
#include "gk.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/** @cond as in hip_runtime.h */
typedef struct ihipStream_t *hipStream_t;
/** @endcond */

enum { GK_HIP_SHARING = 0x48495001 /**< gk_extension.id of gk_hip_sharing. */ };

/** For gk_device_desc.next: the device works on a stream of yours. gk_device_desc.ordinal is the device's number in
 * HIP. */
typedef struct gk_hip_sharing {
  gk_extension base;  /**< Of GK_HIP_SHARE. */
  hipStream_t stream; /**< A stream of that device: for launches, uploads, downloads and copies, in order with your own
                       * work on it; calls are refused while it is captured. gk_launch then returns when the launch
                       * is over. The stream must live as long as the device. It must not be hipStreamPerThread. NULL:
                       * HIP's default stream. */
} gk_hip_sharing;

/** Initializes a gk_hip_sharing: `gk_hip_sharing s = GK_HIP_SHARE(stream); desc.next = &s.base;` */
#define GK_HIP_SHARE(s) {{GK_HIP_SHARING, sizeof(gk_hip_sharing), NULL}, (s)}

/** The stream on which a device works, to order your own work by events. Thread-safe.
 * @param stream  Receives your stream of gk_hip_sharing, or gk's, which lives as long as the device. Don't put work on
 *                a stream of gk's, and don't capture it.
 * @return GK_OK; GK_ERROR_INVALID: a device of another backend, or stream is NULL. */
gk_result gk_hip_stream(gk_device *device, hipStream_t *stream);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
