/* What a device's driver does with conditional nodes, found by trying: small graphs are built, run twice and read back,
 * once per device and process. The documentation doesn't specify much of what the lowering relies on. Each question
 * that is answered "no" has its quirk. The device's architecture decides nothing. */
#ifndef GKI_CUDA_PROBE_H
#define GKI_CUDA_PROBE_H
#include "cuda/caps.h"
#include "cuda/driver.h"

/* Probes the device, or returns the answers that are known. A question that can't be asked counts as "no", with its
 * reason. Fails with a message if the device hangs, is busy or broke (see gki_cuda_caps). On a device that hangs or is
 * busy, no call may wait for its context.
 * A plain kernel runs first. If it doesn't end within a minute, the device is busy, and the next call probes again. A
 * graph hangs if it doesn't end within a minute, or within three seconds in which plain kernels on a second stream do.
 * It is abandoned with all its memory.
 * GK_CUDA_PROBE=0 skips the probe: the device then counts as one without conditional nodes. GK_CUDA_PROBE=-P4e,-P9a
 * answers these questions with "no" and skips graphs about the same quirks. Other values are a GK_ERROR_INVALID. With
 * CUDA_LAUNCH_BLOCKING a launch waits for its end, so the probe is skipped unless GK_CUDA_PROBE is set.
 * The device's context is current. `gates` is the module of gates.cu, loaded in it. Without it (NULL; `why_none` says
 * why) this device has no conditional nodes, whatever is known. Thread-safe. */
gk_result gki_cuda_probe(const gki_cuda_driver *driver, CUdevice device, CUcontext context, CUmodule gates,
                         const char *why_none, gki_cuda_caps *caps);

/* Fails as gki_cuda_probe did if a graph hangs there. Called before a device is used. */
gk_result gki_cuda_probe_refuses(CUdevice device);

/* Probes again, and reports everything in the caps only. */
void gki_cuda_probe_again(const gki_cuda_driver *driver, CUcontext context, CUmodule gates, const char *why_none,
                          gki_cuda_caps *caps);

enum { GKI_CUDA_QUIRKS_BYTES = 3300 }; /* enough for all questions with their reasons */
/* The reason for these quirks, as a sentence: "this driver (CUDA 12.4) doesn't do this: ..." */
void gki_cuda_describe_quirks(const gki_cuda_caps *caps, uint32_t quirks, char *text, size_t bytes);
#endif
