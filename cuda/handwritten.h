/* Kernels with handwritten code (gk_kernel.cuda): a text, an image or a function with its own launch shape. It gets
 * only the kernel's parameters. */
#ifndef GKI_CUDA_HANDWRITTEN_H
#define GKI_CUDA_HANDWRITTEN_H
#include "cuda/device.h"

/* The backend's entry. */
const gk_code *gki_cuda_code(const gk_kernel *kernel, const char **beyond);

/* In the device's context. The module of a text or an image; GK_ERROR_COMPILE with the compiler's or the driver's log.
 */
gk_result gki_cuda_handwritten_load(const gki_cuda_device *device, const gk_kernel *kernel, CUmodule *module);

/* In the device's context, with made->function there: its shape, with dynamic shared memory asked for. Refused are more
 * threads or shared memory than the code can have, and, where the driver tells what that takes, other parameters than
 * the kernel says. */
gk_result gki_cuda_handwritten_prepare(const gki_cuda_device *device, const gk_kernel *kernel, gki_cuda_kernel *made);

/* What its code gets of a parameter. */
size_t gki_cuda_handwritten_bytes(const gk_param *param);
#endif
