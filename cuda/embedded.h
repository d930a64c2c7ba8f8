/* From a text to a module, by an image that was compiled when the program was built (gk_use_images, gk-embed). */
#ifndef GKI_CUDA_EMBEDDED_H
#define GKI_CUDA_EMBEDDED_H
#include "cuda/device.h"
#include "kernel/unit.h"

enum { GKI_CUDA_WHY_BYTES = 2304 };

/* In the device's context. GK_OK with a NULL module: no image is for this text and this device, or the driver takes
 * none. The log and `why` then have the reason; `why` is "" if the source has no images at all. */
gk_result gki_cuda_load_embedded(const gki_cuda_device *device, const gki_unit *text, CUmodule *module,
                                 char why[GKI_CUDA_WHY_BYTES]);
#endif
