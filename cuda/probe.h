/* What a device's driver does with conditional nodes, found by trying: small graphs are built, run twice and read back,
 * once per device and process. The documentation doesn't specify much of what the lowering relies on. Each question
 * that is answered "no" names the safe way to use. The device's architecture decides nothing. */
#ifndef GKI_CUDA_PROBE_H
#define GKI_CUDA_PROBE_H
#include "cuda/caps.h"
#include "cuda/driver.h"

/* Asks, or answers what is known of this device. What can't be found out is a "no" with its reason. Fails if the device
 * is of no use after it, as caps->hangs or ->broke says, and tells why: nothing may be called for its context that
 * waits, where it hangs or is busy. A graph that doesn't end is left to itself, with all that it uses: after three
 * seconds in which plain kernels on a stream beside it did, or after a minute. No graph is launched before such a
 * kernel has run; if it hasn't after a minute, the device is busy, and the next call asks anew.
 * With GK_CUDA_PROBE=0 in the environment nothing is asked, which counts as a device without conditional nodes; with
 * GK_CUDA_PROBE=-P4e,-P9a these questions are "no", and graphs that ask the like aren't run. GK_ERROR_INVALID: it says
 * something else. With CUDA_LAUNCH_BLOCKING, where a launch waits for its end, nothing is asked unless GK_CUDA_PROBE
 * says to.
 * The device's context is current. `gates` is the module of gates.cu, loaded in it; NULL: there is none, and `why_none`
 * says why; then there are no conditional nodes this time, whatever is known. Thread-safe. */
gk_result gki_cuda_probe(const gki_cuda_driver *driver, CUdevice device, CUcontext context, CUmodule gates,
                         const char *why_none, gki_cuda_caps *caps);

/* Before a device is touched: fails as gki_cuda_probe did if a graph hangs there. */
gk_result gki_cuda_probe_refuses(CUdevice device);

/* Asks anew, and says what came of it in the caps only. */
void gki_cuda_probe_anew(const gki_cuda_driver *driver, CUcontext context, CUmodule gates, const char *why_none,
                         gki_cuda_caps *caps);

enum { GKI_CUDA_SAID_BYTES = 3300 }; /* enough for all questions with a reason */
/* Why these ways must be taken, as a sentence: "this driver (CUDA 12.4) doesn't do this: ..." */
void gki_cuda_describe_quirks(const gki_cuda_caps *caps, uint32_t quirks, char *text, size_t bytes);
#endif
