#include "cuda/modules.h"
#include "cuda/embedded.h"
#include "kernel/store.h"
#include <stdio.h>
#include <string.h>

/* False: the cache isn't used for this text. */
static bool key_of(const gki_cuda_device *device, const gki_unit *text, const gki_cuda_compiler *compiler,
                   gki_cache_key *key) {
  char made_for[256];
  const gki_nvrtc *nvrtc = compiler->nvrtc;
  snprintf(made_for, sizeof made_for, "gk %s, NVRTC %d (%llu, %lld.%09ld), %s_%d, driver %d",
           GK_VERSION, nvrtc->version, nvrtc->file.bytes, nvrtc->file.seconds,
           nvrtc->file.nanoseconds, compiler->is_ptx ? "compute" : "sm", compiler->architecture,
           device->driver->version);
  return gki_store_key(text, made_for, key);
}

static gk_result load(const gki_cuda_device *device, const gki_unit *text, const gki_cuda_compiler *compiler,
                      const gki_compiled *image, CUmodule *module) {
  char log[1024], made_by[128], name[GKI_UNIT_NAME_BYTES];
  CUresult result = gki_cuda_load_module(device->driver, image->bytes, module, log, sizeof log);
  if (result == CUDA_SUCCESS) return GK_OK;
  gki_cuda_compiler_describe(compiler, made_by, sizeof made_by);
  gki_unit_name(text, name);
  const char *advice = compiler->may_be_refused ? "; it is newer than the driver: update the driver, or install an "
                                                  "NVRTC as old as the driver" : "";
  return gki_cuda_result(device->driver, result, "cuModuleLoadDataEx of %s, made by %s%s%s%s", name, made_by, advice,
                        log[0] ? ", the driver says: " : "", log);
}

/* False: there is no kept image, or the driver refuses it; a new image may still work. */
static bool load_stored(const gki_cuda_device *device, const gki_unit *text, const gki_cuda_compiler *compiler,
                        const gki_cache_key *key, CUmodule *module) {
  gki_compiled image = {0};
  char log[1024], why[512], made_by[128], name[GKI_UNIT_NAME_BYTES];
  gki_cuda_compiler_describe(compiler, made_by, sizeof made_by);
  gki_unit_name(text, name);
  if (!gki_store_find(key, name, made_by, &image)) return false;
  const CUresult result = gki_cuda_load_module(device->driver, image.bytes, module, log, sizeof log);
  gki_compiled_free(&image);
  if (result == CUDA_SUCCESS) return true;
  gki_cuda_describe_result(device->driver, result, why, sizeof why);
  gk_log(GK_LOG_INFO, "%s (%s) is compiled anew, as the driver refuses what was kept: %s%s%s", name, made_by, why,
         log[0] ? ": " : "", log);
  return false;
}

gk_result gki_cuda_load_text(const gki_cuda_device *device, const gki_unit *text, CUmodule *module) {
  gki_cuda_compiler compiler;
  gki_compiled image = {0};
  gki_cache_key key;
  char why[GKI_CUDA_WHY_BYTES], none[2048];
  gk_result result = gki_cuda_load_embedded(device, text, module, why);
  if (result != GK_OK || *module) return result;
  if (!gki_cuda_compiler_find(device->arch, device->driver->version, &compiler, none, sizeof none))
    return gk_fail(GK_ERROR_UNSUPPORTED, "%s%s%s", why, why[0] ? "; nor can it be compiled now: " : "", none);
  const bool keeps = key_of(device, text, &compiler, &key);
  if (keeps && load_stored(device, text, &compiler, &key, module)) return GK_OK;
  result = gki_cuda_compile(&compiler, text, &image);
  if (result == GK_OK) result = load(device, text, &compiler, &image, module);
  if (result == GK_OK && keeps) gki_store_keep(&key, &image);
  gki_compiled_free(&image);
  return result;
}
