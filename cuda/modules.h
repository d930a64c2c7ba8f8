/* From a text of CUDA C++ to a module of the device: by an image of the program (embedded.h), by an image kept on disk
 * (common/kernel/store.h), or by NVRTC, whose result is then kept. */
#ifndef GKI_CUDA_MODULES_H
#define GKI_CUDA_MODULES_H
#include "cuda/compile.h"
#include "cuda/device.h"

/* In the device's context. GK_ERROR_COMPILE with the compiler's log; GK_ERROR_UNSUPPORTED: there is no NVRTC, or none
 * for this device; GK_ERROR_MEMORY; GK_ERROR_DEVICE: the driver refuses the compiled image. The caller unloads the
 * module. */
gk_result gki_cuda_load_text(const gki_cuda_device *device, const gki_unit *text, CUmodule *module);
#endif
