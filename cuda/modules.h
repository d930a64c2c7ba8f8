/* How modules are made on CUDA (common/kernel/modules.h): texts by NVRTC or by gk-embed, handwritten images. */
#ifndef GKI_CUDA_MODULES_H
#define GKI_CUDA_MODULES_H
#include "kernel/modules.h"

/* Its functions are called in the device's context. */
extern const gki_module_loader gki_cuda_loader;
#endif
