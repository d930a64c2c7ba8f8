/* From a text of HIP C++ to a module of the device: kept on disk (common/kernel/store.h), or by hipRTC, whose result is
 * then kept. */
#ifndef GKI_HIP_COMPILE_H
#define GKI_HIP_COMPILE_H
#include "hip/device.h"
#include "kernel/unit.h"

/* Compiles a text for an architecture such as "gfx90a:xnack-", and logs warnings. GK_ERROR_COMPILE with the compiler's
 * log; GK_ERROR_MEMORY; GK_ERROR_UNSUPPORTED: there is no hipRTC, or none that knows this architecture.
 * gki_compiled_free frees the image, also an empty one. Thread-safe. */
gk_result gki_hip_compile(const gki_hip_driver *driver, const char *architecture, const gki_unit *text,
                          gki_compiled *image);

/* For a thread that has entered the device. As gki_hip_compile, and GK_ERROR_DEVICE: the runtime refuses the image. The
 * caller unloads the module. */
gk_result gki_hip_load_text(gki_hip_device *device, const gki_unit *text, hipModule_t *module);

/* Whether a runtime's hipRTC knows an architecture. One that it doesn't know may end the process. */
bool gki_hip_knows(int version, const char *architecture);
#endif
