#include "cuda/modules.h"
#include "base/memory.h"
#include "cuda/embedded.h"
#include "kernel/cache.h"
#include <stdio.h>
#include <string.h>

/* False: nothing is to be kept. */
static bool key_of(const gki_cuda_device *device, const gki_unit *text, const gki_cuda_compiler *compiler,
                   gki_cache_key *key) {
  if (gki_unit_includes(text)) {
    gk_log(GK_LOG_INFO, "what %s is compiled to isn't kept: it includes files, which may change", text->file);
    return false;
  }
  char *plain = gki_unit_plain(text), made_for[256];
  if (!plain) return false;
  const char *options = text->options ? text->options : "";
  const gki_nvrtc *nvrtc = compiler->nvrtc;
  const int length = snprintf(made_for, sizeof made_for, "gk %s, NVRTC %d (%llu, %lld.%09ld), %s_%d, driver %d",
                              GK_VERSION, nvrtc->version, nvrtc->file.bytes, nvrtc->file.seconds,
                              nvrtc->file.nanoseconds, compiler->is_ptx ? "compute" : "sm", compiler->architecture,
                              device->driver->version);
  const gki_cache_part parts[] = {{made_for, (size_t)length}, {options, strlen(options)}, {plain, strlen(plain)}};
  *key = gki_cache_key_of(parts, GK_COUNT(parts));
  gk_host_free(plain);
  return true;
}

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

/* The image first, as the driver wants it aligned, a zero behind it; then the compiler's warnings, so that they are
 * said the next time, too, with a zero behind them; then the image's size. */
static void keep(const gki_cache_key *key, const gki_nvrtc_code *image) {
  const char *log = image->log ? image->log : "";
  const size_t warnings = strlen(log) + 1, whole = image->size + 1 + warnings + sizeof(uint64_t);
  const uint64_t size = image->size;
  char *bytes = gk_host_alloc(whole);
  if (!bytes) return;
  memcpy(bytes, image->bytes, image->size);
  memcpy(bytes + image->size + 1, log, warnings);
  memcpy(bytes + whole - sizeof size, &size, sizeof size);
  gki_cache_keep(key, bytes, whole);
  gk_host_free(bytes);
}

static bool find(const gki_cache_key *key, const char *name, const char *made_by, gki_nvrtc_code *image) {
  void *found;
  size_t whole;
  uint64_t size;
  if (!gki_cache_find(key, &found, &whole)) return false;
  char *bytes = found;
  if (whole >= 2 + sizeof size) memcpy(&size, bytes + whole - sizeof size, sizeof size);
  if (whole < 2 + sizeof size || size > whole - 2 - sizeof size || bytes[size] != 0 ||
      bytes[whole - sizeof size - 1] != 0) {
    gk_host_free(found);
    return false;
  }
  image->bytes = found;
  image->size = (size_t)size;
  const char *log = bytes + size + 1;
  if (log[0]) gk_log(GK_LOG_WARN, "%s (%s):\n%s", name, made_by, log);
  gk_log(GK_LOG_INFO, "%s (%s) was kept from before", name, made_by);
  return true;
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static gk_result take(const gki_cuda_device *device, const gki_unit *text, const gki_cuda_compiler *compiler,
                      const gki_nvrtc_code *image, CUmodule *module) {
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

/* False: nothing was kept, or the driver refuses it, which says nothing of what is compiled now. */
static bool load_kept(const gki_cuda_device *device, const gki_unit *text, const gki_cuda_compiler *compiler,
                      const gki_cache_key *key, CUmodule *module) {
  gki_nvrtc_code image = {0};
  char log[1024], why[512], made_by[128], name[GKI_UNIT_NAME_BYTES];
  gki_cuda_compiler_describe(compiler, made_by, sizeof made_by);
  gki_unit_name(text, name);
  if (!find(key, name, made_by, &image)) return false;
  const CUresult result = gki_cuda_load_module(device->driver, image.bytes, module, log, sizeof log);
  gki_nvrtc_code_free(&image);
  if (result == CUDA_SUCCESS) return true;
  gki_cuda_describe_result(device->driver, result, why, sizeof why);
  gk_log(GK_LOG_INFO, "%s (%s) is compiled anew, as the driver refuses what was kept: %s%s%s", name, made_by, why,
         log[0] ? ": " : "", log);
  return false;
}

gk_result gki_cuda_load_text(const gki_cuda_device *device, const gki_unit *text, CUmodule *module) {
  gki_cuda_compiler compiler;
  gki_nvrtc_code image = {0};
  gki_cache_key key;
  char why[GKI_CUDA_WHY_BYTES], none[2048];
  gk_result result = gki_cuda_load_embedded(device, text, module, why);
  if (result != GK_OK || *module) return result;
  if (!gki_cuda_compiler_find(device->arch, device->driver->version, &compiler, none, sizeof none))
    return gk_fail(GK_ERROR_UNSUPPORTED, "%s%s%s", why, why[0] ? "; nor can it be compiled now: " : "", none);
  const bool keeps = key_of(device, text, &compiler, &key);
  if (keeps && load_kept(device, text, &compiler, &key, module)) return GK_OK;
  result = gki_cuda_compile(&compiler, text, &image);
  if (result == GK_OK) result = take(device, text, &compiler, &image, module);
  if (result == GK_OK && keeps) keep(&key, &image);
  gki_nvrtc_code_free(&image);
  return result;
}
