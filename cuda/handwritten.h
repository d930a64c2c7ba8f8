/* Kernels with handwritten code (gk_kernel.cuda): a text, an image or a function with its own launch shape. The code
 * gets only the kernel's parameters. */
#ifndef GKI_CUDA_HANDWRITTEN_H
#define GKI_CUDA_HANDWRITTEN_H
#include "cuda/device.h"

/* The backend's entry. */
const gk_code *gki_cuda_code(const gk_kernel *kernel, const char **beyond);

/* Sets the launch shape of made->function, and its dynamic shared memory. In the device's context. Refuses more threads
 * or shared memory than the code can have and, on drivers from 12.4 on, parameters that differ from the kernel's. */
gk_result gki_cuda_handwritten_prepare(const gki_cuda_device *device, const gk_kernel *kernel, gki_cuda_kernel *made);
#endif
