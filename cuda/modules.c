#include "cuda/modules.h"
#include "cuda/compile.h"
#include "cuda/device.h"
#include "kernel/object.h"
#include <elf.h>
#include <stdio.h>
#include <string.h>

static void describe(const void *at, gki_gpu *gpu) {
  const gki_cuda_device *device = at;
  gpu->architecture = device->arch;
  snprintf(gpu->name, sizeof gpu->name, "sm_%d", device->arch);
  snprintf(gpu->driver, sizeof gpu->driver, "CUDA %d.%d", device->driver->version / 1000,
           device->driver->version % 1000 / 10);
  snprintf(gpu->advice, sizeof gpu->advice, "give gk-embed --arch %d, or --ptx of an earlier one", device->arch);
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

/* Machine code runs on its architecture and on later ones of its generation. PTX is translated for any later one. */
static int rank(const gk_image *image, int architecture) {
  enum { BEFORE_PTX = 10000 };
  const int target = (int)image->target;
  if (image->kind != GK_IMAGE_CODE && image->kind != GK_IMAGE_PTX) return -1;
  if (target <= 0 || target > architecture) return 0;
  if (image->kind == GK_IMAGE_PTX) return target;
  return image->kind == GK_IMAGE_CODE && target / 10 == architecture / 10 ? BEFORE_PTX + target : 0;
}

static void describe_image(const gk_image *image, char *text, size_t bytes) {
  snprintf(text, bytes, "%s_%u, made by NVRTC %u.%u", image->kind == GK_IMAGE_PTX ? "PTX for compute" : "cubin for sm",
           (unsigned)image->target, (unsigned)image->made_by / 1000, (unsigned)image->made_by % 1000 / 10);
}

static const char *problem_of_fatbin(const unsigned char *image, size_t bytes) {
  struct { uint32_t magic; uint16_t version, head_bytes; uint64_t bytes; } head;
  if (bytes < sizeof head) return GKI_OBJECT_SHORT;
  memcpy(&head, image, sizeof head);
  return gki_lies_within(head.head_bytes, head.bytes, bytes) ? NULL : GKI_OBJECT_SHORT;
}

/* What is neither a fatbin nor a cubin is PTX. */
static const char *problem(const void *image, size_t bytes, bool *is_text) {
  static const uint32_t fatbin = 0xba55ed50;
  uint32_t first = 0;
  memcpy(&first, image, bytes < sizeof first ? bytes : sizeof first);
  if (first == fatbin) return problem_of_fatbin(image, bytes);
  if (memcmp(&first, ELFMAG, SELFMAG) == 0) return gki_object_problem(image, bytes, EM_CUDA);
  *is_text = true;
  return NULL;
}

static bool is_refusal(CUresult result) {
  return result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
         result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

static gk_result load(void *at, const void *image, void **loaded, char *why, size_t bytes) {
  const gki_cuda_device *device = at;
  char log[1024], text[512];
  CUmodule module;
  const CUresult result = gki_cuda_load_module(device->driver, image, &module, log, sizeof log);
  *loaded = module;
  if (result == CUDA_SUCCESS) return GK_OK;
  gki_cuda_describe_result(device->driver, result, text, sizeof text);
  snprintf(why, bytes, "%s%s%s", text, log[0] ? ", and says: " : "", log);
  return is_refusal(result) ? GK_ERROR_COMPILE
                            : result == CUDA_ERROR_OUT_OF_MEMORY ? GK_ERROR_MEMORY : GK_ERROR_DEVICE;
}

static void unload(void *at, void *loaded) { (void)((gki_cuda_device *)at)->driver->cuModuleUnload(loaded); }

static gk_result find(void *at, void *loaded, const gk_kernel *kernel, const char *entry, void **function) {
  const gki_cuda_device *device = at;
  CUfunction found = NULL;
  const CUresult result = device->driver->cuModuleGetFunction(&found, loaded, entry);
  if (result == CUDA_ERROR_NOT_FOUND) return GK_OK;
  *function = found;
  return gki_cuda_result(device->driver, result, "cuModuleGetFunction of kernel %s", kernel->name);
}

/* ---- NVRTC ------------------------------------------------------------------------------------------------------- */

_Static_assert(sizeof(gki_cuda_compiler) <= sizeof((gki_compiler *)0)->own, "a compiler of CUDA has its place");

static gk_result find_compiler(const void *at, gki_compiler *made) {
  const gki_cuda_device *device = at;
  gki_cuda_compiler compiler;
  const gk_result result = gki_cuda_compiler_get(device->arch, device->driver->version, &compiler);
  if (result != GK_OK) return result;
  const gki_nvrtc *nvrtc = compiler.nvrtc;
  memcpy(made->own, &compiler, sizeof compiler);
  gki_cuda_compiler_describe(&compiler, made->name, sizeof made->name);
  if (compiler.may_be_refused)
    made->advice = "it is newer than the driver: update the driver, or install an NVRTC as old as the driver";
  snprintf(made->made_for, sizeof made->made_for, "gk %s, NVRTC %d (%llu, %lld.%09ld), %s_%d, driver %d", GK_VERSION,
           nvrtc->version, nvrtc->file.bytes, nvrtc->file.seconds, nvrtc->file.nanoseconds,
           compiler.is_ptx ? "compute" : "sm", compiler.architecture, device->driver->version);
  return GK_OK;
}

static gk_result compile(const void *at, const gki_compiler *made, const gki_unit *text, gki_compiled *image) {
  gki_cuda_compiler compiler;
  (void)at;
  memcpy(&compiler, made->own, sizeof compiler);
  return gki_cuda_compile(&compiler, text, image);
}

const gki_module_loader gki_cuda_loader = {
  .language = "cuda", .entry = "cuModuleLoadDataEx", .describe = describe, .rank = rank,
  .describe_image = describe_image, .problem = problem, .find_compiler = find_compiler, .compile = compile,
  .load = load, .unload = unload, .find = find};
