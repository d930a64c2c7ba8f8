/* gk's own kernels, gates.cu, on a device. The library contains them as machine code for many GPUs, and as PTX, which
 * drivers from 12.4 on translate for any GPU. */
#ifndef GKI_CUDA_IMAGE_H
#define GKI_CUDA_IMAGE_H
#include "cuda/driver.h"

/* X(name): the kernel gki_<name> of gates.h. The probe's kernels aren't among them. */
#define GKI_CUDA_BUILTIN_KERNELS(X) \
  X(control) X(control_plain) X(prologue) X(epilogue) X(arm) X(enter) X(repeat) X(copy) X(fill) X(ahead)

enum { GKI_CUDA_REFUSAL_BYTES = 1024 };

typedef struct gki_cuda_builtin {
  CUmodule module;
#define GKI_CUDA_BUILTIN_KERNEL(name) CUfunction name;
  GKI_CUDA_BUILTIN_KERNELS(GKI_CUDA_BUILTIN_KERNEL)
#undef GKI_CUDA_BUILTIN_KERNEL
  bool translated;                      /* from PTX by the driver */
  char refused[GKI_CUDA_REFUSAL_BYTES]; /* why the driver refused the machine code, and the PTX; "": it didn't */
} gki_cuda_builtin;

/* In the device's context. On failure *module is NULL and `log` has the messages of the driver's compiler. */
CUresult gki_cuda_load_module(const gki_cuda_driver *driver, const void *image, CUmodule *module, char *log,
                              size_t bytes);

/* Loads the machine code, else the PTX. In the device's context. GK_ERROR_UNSUPPORTED: the driver takes neither, with
 * the reasons in `refused`; GK_ERROR_MEMORY. */
gk_result gki_cuda_builtin_load(const gki_cuda_driver *driver, gki_cuda_builtin *builtin);

/* In the device's context. Does nothing if nothing is loaded. */
void gki_cuda_builtin_unload(const gki_cuda_driver *driver, gki_cuda_builtin *builtin);
#endif
