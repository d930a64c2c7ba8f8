#include "cuda/kernels.h"
#include "base/error.h"
#include "base/memory.h"
#include "cuda/compile.h"
#include "cuda/handwritten.h"
#include "cuda/modules.h"
#include <stdio.h>
#include <string.h>

enum { THREADS = 256, WARP = 32 };

/* Sets the threads per block, and the blocks that run at the same time. */
static gk_result measure(const gki_cuda_device *device, const char *name, gki_cuda_kernel *kernel) {
  const gki_cuda_driver *driver = device->driver;
  int threads = 0, blocks = 0;
  gk_result result = gki_cuda_result(
      driver, driver->cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel->function),
      "cuFuncGetAttribute of kernel %s", name);
  if (result != GK_OK) return result;
  kernel->threads = threads >= THREADS ? THREADS : threads >= WARP ? (unsigned)threads / WARP * WARP : WARP;
  result = gki_cuda_result(driver,
                          driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel->function,
                                                                              (int)kernel->threads, 0),
                          "cuOccupancyMaxActiveBlocksPerMultiprocessor of kernel %s", name);
  kernel->blocks = (unsigned)(blocks > 0 ? blocks : 1) * (unsigned)(device->multiprocessors > 0
                                                                         ? device->multiprocessors : 1);
  return result;
}

static gk_result prepare(gki_cuda_device *device, const gk_kernel *kernel, gki_cuda_kernel *made) {
  void *function;
  gk_result result =
      gki_module_use(&device->modules, &gki_cuda_loader, device, kernel, kernel->cuda, &made->module, &function);
  if (result != GK_OK) return result;
  made->function = function;
  result = kernel->cuda ? gki_cuda_handwritten_prepare(device, kernel, made) : measure(device, kernel->name, made);
  if (result != GK_OK) gki_module_release(&device->modules, &gki_cuda_loader, device, made->module);
  return result;
}

gk_result gki_cuda_load(void *at, const gk_kernel *kernel, void **code) {
  gki_cuda_device *device = at;
  gki_cuda_kernel *made = gki_array(1, sizeof *made, "a kernel's code");
  gk_result result = made ? gki_cuda_enter(device) : GK_ERROR_MEMORY;
  if (result != GK_OK) {
    gk_host_free(made);
    return result;
  }
  result = prepare(device, kernel, made);
  gki_cuda_leave(device);
  if (result == GK_OK) *code = made;
  else gk_host_free(made);
  return result;
}

void gki_cuda_unload(void *at, void *code) {
  gki_cuda_device *device = at;
  gki_cuda_kernel *kernel = code;
  if (!kernel) return;
  bool entered = gki_cuda_enter_to_free(device);
  gki_module_release(&device->modules, &gki_cuda_loader, device, kernel->module);
  if (entered) gki_cuda_leave(device);
  gk_host_free(kernel);
}

/* ---- gk's own kernels -------------------------------------------------------------------------------------------- */

static gk_result measure_transfers(gki_cuda_device *device) {
  gk_result result = measure(device, "gki_copy", &device->copy_kernel);
  return result == GK_OK ? measure(device, "gki_fill", &device->fill_kernel) : result;
}

static gk_result find_transfers(gki_cuda_device *device) {
  const gki_cuda_driver *driver = device->driver;
  gk_result result = gki_cuda_result(
      driver, driver->cuModuleGetFunction(&device->copy_kernel.function, device->transfers, "gki_copy"),
      "cuModuleGetFunction of gki_copy");
  if (result == GK_OK)
    result = gki_cuda_result(driver,
                            driver->cuModuleGetFunction(&device->fill_kernel.function, device->transfers, "gki_fill"),
                            "cuModuleGetFunction of gki_fill");
  if (result == GK_OK)
    result = gki_cuda_result(driver, driver->cuModuleGetFunction(&device->ahead, device->transfers, "gki_ahead"),
                            "cuModuleGetFunction of gki_ahead");
  return result == GK_OK ? measure_transfers(device) : result;
}

static void drop_transfers(gki_cuda_device *device) {
  if (device->transfers) (void)device->driver->cuModuleUnload(device->transfers);
  device->transfers = NULL;
  device->copy_kernel = device->fill_kernel = (gki_cuda_kernel){0};
  device->ahead = NULL;
}

static gk_result compile_transfers(gki_cuda_device *device) {
  const gki_unit transfers = {.text = gki_text_transfer, .file = GKI_CUDA_TRANSFERS, .is_whole = true};
  void *loaded;
  const gk_result result = gki_module_load_text(&gki_cuda_loader, device, &transfers, &loaded);
  if (result == GK_OK) device->transfers = loaded;
  return result == GK_OK ? find_transfers(device) : result;
}

/* Only a lack of memory is a failure, since lists without COPY and FILL don't need them. */
static gk_result make_transfers(gki_cuda_device *device) {
  gki_begin();
  gk_result result = compile_transfers(device);
  if (result == GK_OK) return GK_OK;
  drop_transfers(device);
  if (result == GK_ERROR_MEMORY) return result;
  const char *refused = device->builtin.refused;
  snprintf(device->no_transfers, sizeof device->no_transfers, "they can't be compiled here (%s)%s%s%s", gk_error(),
           refused[0] ? ", and the driver takes none of gk's images (" : "", refused, refused[0] ? ")" : "");
  gk_log(GK_LOG_WARN, "device %d (%s): no COPY and FILL: %s", device->ordinal, device->name, device->no_transfers);
  gki_begin(); /* the public call doesn't fail */
  return GK_OK;
}

/* Drivers before 12.4 refuse the images, since they don't know conditional nodes. */
gk_result gki_cuda_load_builtin(gki_cuda_device *device) {
  const bool fits = device->driver->version >= GKI_CUDA_CONDITIONAL_SINCE;
  gk_result result = fits ? gki_cuda_builtin_load(device->driver, &device->builtin) : GK_ERROR_UNSUPPORTED;
  if (result == GK_ERROR_UNSUPPORTED) return make_transfers(device);
  if (result != GK_OK) return result;
  device->copy_kernel.function = device->builtin.copy;
  device->fill_kernel.function = device->builtin.fill;
  device->ahead = device->builtin.ahead;
  result = measure_transfers(device);
  if (result != GK_OK) gki_cuda_builtin_unload(device->driver, &device->builtin);
  return result;
}

void gki_cuda_drop_builtin(gki_cuda_device *device) {
  if (gki_cuda_must_leak(&device->caps) || (!device->builtin.module && !device->transfers)) return;
  bool entered = gki_cuda_enter_to_free(device);
  gki_cuda_builtin_unload(device->driver, &device->builtin);
  drop_transfers(device);
  if (entered) gki_cuda_leave(device);
}
