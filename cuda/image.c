#include "cuda/image.h"
#include "cuda/image_bytes.h"
#include <stdio.h>
#include <string.h>

enum { LOG_BYTES = 400 };

static const struct { const char *name; size_t at; } kernels[] = {
#define KERNEL(name) {"gki_" #name, offsetof(gki_cuda_builtin, name)},
    GKI_CUDA_BUILTIN_KERNELS(KERNEL)
#undef KERNEL
};

/* Appends to `refused`: "the PTX: the driver's text (CUDA_ERROR_NAME, 222)". */
static void add_refusal(gki_cuda_builtin *builtin, const gki_cuda_driver *driver, CUresult result, const char *what,
                        const char *more) {
  const size_t used = strlen(builtin->refused);
  char text[LOG_BYTES];
  gki_cuda_describe_result(driver, result, text, sizeof text);
  snprintf(builtin->refused + used, sizeof builtin->refused - used, "%sthe %s: %s%s%s", used ? "; " : "", what, text,
           *more ? ": " : "", more);
}

CUresult gki_cuda_load_module(const gki_cuda_driver *driver, const void *image, CUmodule *module, char *log,
                              size_t bytes) {
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)(bytes - 1)};
  log[0] = log[bytes - 1] = 0;
  CUresult result = driver->cuModuleLoadDataEx(module, image, GK_COUNT(options), options, values);
  if (result != CUDA_SUCCESS) *module = NULL;
  return result;
}

static CUresult load(const gki_cuda_driver *driver, gki_cuda_builtin *builtin, const void *image, const char *what) {
  char log[LOG_BYTES];
  CUresult result = gki_cuda_load_module(driver, image, &builtin->module, log, sizeof log);
  for (size_t k = 0; result == CUDA_SUCCESS && k < GK_COUNT(kernels); ++k) {
    CUfunction function = NULL;
    result = driver->cuModuleGetFunction(&function, builtin->module, kernels[k].name);
    memcpy((char *)builtin + kernels[k].at, &function, sizeof function);
    if (result != CUDA_SUCCESS) snprintf(log, sizeof log, "%s", kernels[k].name);
  }
  if (result == CUDA_SUCCESS) return result;
  log[strcspn(log, "\n")] = 0;
  add_refusal(builtin, driver, result, what, log);
  gki_cuda_builtin_unload(driver, builtin);
  return result;
}

gk_result gki_cuda_builtin_load(const gki_cuda_driver *driver, gki_cuda_builtin *builtin) {
  *builtin = (gki_cuda_builtin){.module = NULL};
  CUresult result = load(driver, builtin, gki_gates_fatbin, "machine code");
  if (result == CUDA_SUCCESS) return GK_OK;
  /* PTX is for drivers that are older than the code, and for GPUs that the code isn't for. */
  if (result != CUDA_ERROR_OUT_OF_MEMORY) {
    result = load(driver, builtin, gki_text_gates_ptx, "PTX");
    builtin->translated = result == CUDA_SUCCESS;
    if (builtin->translated) return GK_OK;
  }
  return gk_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? GK_ERROR_MEMORY : GK_ERROR_UNSUPPORTED,
                 "the driver takes none of gk's own kernels: %s", builtin->refused);
}

void gki_cuda_builtin_unload(const gki_cuda_driver *driver, gki_cuda_builtin *builtin) {
  if (builtin->module) (void)driver->cuModuleUnload(builtin->module);
  builtin->module = NULL;
  builtin->translated = false;
  for (size_t k = 0; k < GK_COUNT(kernels); ++k) memset((char *)builtin + kernels[k].at, 0, sizeof(CUfunction));
}
