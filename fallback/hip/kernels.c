#include "hip/kernels.h"
#include "base/error.h"
#include "base/memory.h"
#include "hip/compile.h"
#include "hip/embed.h"
#include "hip/graphs.h"
#include "kernel/modules.h"
#include "kernel/object.h"
#include "kernel/store.h"
#include "lower/params.h"
#include <stdio.h>
#include <string.h>

enum { MOST_PARAMETERS = 4096 /* bytes */, MOST_Z = 64 };
extern const char gki_text_hip_builtin[];
extern const unsigned char gki_hip_image[]; /* a bundle of code objects of it */

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static bool key_of(const gki_hip_device *device, const gki_unit *text, gki_cache_key *key) {
  const gki_hip_driver *driver = device->driver;
  char made_for[640];
  int major = 0, minor = 0;
  if (driver->no_compiler[0] || driver->hiprtcVersion(&major, &minor) != HIPRTC_SUCCESS) return false;
  snprintf(made_for, sizeof made_for, "gk %s, hipRTC %d.%d, HIP %d, %s, %s", GK_VERSION, major, minor, driver->version,
           driver->path, device->architecture);
  return gki_store_key(text, made_for, key);
}

/* False: the runtime refuses an image that was made before; a new one may still work. */
static bool load_made(const gki_hip_device *device, const char *name, const char *made, const void *bytes,
                      hipModule_t *module) {
  char why[300];
  const hipError_t answer = device->driver->hipModuleLoadData(module, bytes);
  if (answer == hipSuccess) return true;
  gki_hip_describe(device->driver, answer, why, sizeof why);
  gk_log(GK_LOG_INFO, "%s is compiled anew, as the runtime refuses what was %s: %s", name, made, why);
  return false;
}

static bool load_kept(const gki_hip_device *device, const char *name, const gki_cache_key *key, hipModule_t *module) {
  gki_compiled image = {0};
  if (!gki_store_find(key, name, "hipRTC", &image)) return false;
  const bool loaded = load_made(device, name, "kept", image.bytes, module);
  gki_compiled_free(&image);
  return loaded;
}

/* By an image of the program, by one that is kept on disk, or by hipRTC, whose result is then kept. */
static gk_result load_module(gki_hip_device *device, const gki_unit *text, hipModule_t *module) {
  gki_compiled image = {0};
  gki_cache_key key;
  char name[GKI_UNIT_NAME_BYTES], why[GKI_HIP_WHY_BYTES];
  gki_unit_name(text, name);
  const gk_image *embedded = gki_hip_embedded(text, device->architecture, why);
  if (embedded && load_made(device, name, "compiled when the program was built", embedded->bytes, module)) return GK_OK;
  const bool keeps = key_of(device, text, &key);
  if (keeps && load_kept(device, name, &key, module)) return GK_OK;
  gk_result result = gki_hip_compile(device->driver, device->architecture, text, &image);
  if (result == GK_ERROR_UNSUPPORTED && why[0])
    result = gki_fail_with_prefix(result, "%s; nor can it be compiled now", why);
  if (result == GK_OK)
    result = gki_hip_check(device, device->driver->hipModuleLoadData(module, image.bytes), "hipModuleLoadData of %s",
                           name);
  if (result == GK_OK && keeps) gki_store_keep(&key, &image);
  gki_compiled_free(&image);
  return result;
}

/* ---- handwritten code -------------------------------------------------------------------------------------------- */

const gk_code *gki_hip_code(const gk_kernel *kernel, const char **beyond) {
  if (!beyond) return kernel->hip;
  *beyond = NULL;
  if (!kernel->hip) return NULL;
  if (kernel->hip->block[2] > MOST_Z) *beyond = "has more than 64 threads along z in a block";
  else if (gki_param_places(kernel, NULL) > MOST_PARAMETERS)
    *beyond = "has more than 4096 bytes of parameters (a large struct may go by `in`)";
  return kernel->hip;
}

static gk_result load_image(void *device, const gk_kernel *kernel, void **loaded) {
  gki_hip_device *d = device;
  const gk_code *code = kernel->hip;
  hipModule_t module = NULL;
  const char *problem = gki_bundle_problem(code->image, code->image_bytes);
  if (problem)
    return gk_fail(GK_ERROR_COMPILE, "kernel %s: its image, of %zu bytes, %s; give all of it, and its size in "
                   ".image_bytes", kernel->name, code->image_bytes, problem);
  const hipError_t answer = d->driver->hipModuleLoadData(&module, code->image);
  *loaded = module;
  if (answer != hipErrorNoBinaryForGpu && answer != hipErrorInvalidImage)
    return gki_hip_check(d, answer, "hipModuleLoadData of the image of kernel %s", kernel->name);
  char text[300];
  gki_hip_describe(d->driver, answer, text, sizeof text);
  return gk_fail(GK_ERROR_COMPILE, "kernel %s: its image isn't for this GPU, %s: %s; compile it with "
                 "--offload-arch=%s", kernel->name, d->architecture, text, d->architecture);
}

/* HIP takes less than 2^32 threads along each dimension of a grid. */
static gk_result set_block(const gki_hip_device *d, const gk_kernel *kernel, gki_hip_kernel *made) {
  static const unsigned most[3] = {INT32_MAX, 65535, 65535};
  const gk_code *code = kernel->hip;
  made->shared_bytes = code->shared_bytes;
  for (int k = 0; k < 3; ++k) {
    made->block[k] = code->block[k] ? code->block[k] : k == 0 ? GKI_HIP_THREADS : 1;
    made->per_block[k] = code->per_block[k] ? code->per_block[k] : made->block[k];
    made->most[k] = UINT32_MAX / made->block[k] < most[k] ? UINT32_MAX / made->block[k] : most[k];
  }
  const uint64_t threads = (uint64_t)made->block[0] * made->block[1] * made->block[2];
  if (threads <= (uint64_t)d->most_threads) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "kernel %s: its blocks have %llu threads, and this GPU takes %d; make .block "
                 "smaller", kernel->name, (unsigned long long)threads, d->most_threads);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static gk_result load_text(void *device, const gki_unit *text, void **loaded) {
  hipModule_t module = NULL;
  const gk_result result = load_module(device, text, &module);
  *loaded = module;
  return result;
}

static const gki_module_loader loader = {.language = "hip", .load_text = load_text, .load_image = load_image};

static void release_module(gki_hip_device *d, const gki_hip_kernel *kernel) {
  const hipModule_t unused = kernel->module ? gki_module_release(&d->modules, kernel->module) : NULL;
  if (unused) (void)d->driver->hipModuleUnload(unused);
}

/* Sets the blocks that run at the same time. */
static gk_result measure(gki_hip_device *d, const char *name, gki_hip_kernel *kernel) {
  int blocks = 0;
  const gk_result result = gki_hip_check(
      d, d->driver->hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel->function, GKI_HIP_THREADS, 0),
      "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor of kernel %s", name);
  kernel->most_blocks = (unsigned)(blocks > 0 ? blocks : 1) * (unsigned)(d->multiprocessors > 0 ? d->multiprocessors
                                                                                                : 1);
  return result;
}

static gk_result find_function(gki_hip_device *d, const gk_kernel *kernel, gki_hip_kernel *made) {
  const char *entry = kernel->hip && kernel->hip->entry ? kernel->hip->entry : kernel->name;
  const hipError_t answer = d->driver->hipModuleGetFunction(&made->function, made->module->loaded, entry);
  if (answer != hipErrorNotFound) return gki_hip_check(d, answer, "hipModuleGetFunction of kernel %s", kernel->name);
  if (kernel->hip)
    return gk_fail(GK_ERROR_COMPILE, "kernel %s: its code has no entry %s; declare it extern \"C\" there, or name it "
                   "in .entry as it is in there", kernel->name, entry);
  return gk_fail(GK_ERROR_COMPILE, "kernel %s: the compiled text of %s, behind line %u, has no entry of this name; "
                 "write GK_KERNEL(%s, ...) there, outside of any #if that leaves it out", kernel->name,
                 kernel->source->file, (unsigned)kernel->source->line, kernel->name);
}

static gk_result prepare(gki_hip_device *d, const gk_kernel *kernel, gki_hip_kernel *made) {
  gk_result result = kernel->hip ? set_block(d, kernel, made) : GK_OK;
  if (result == GK_OK && kernel->hip && kernel->hip->function) {
    made->function = kernel->hip->function;
    return GK_OK;
  }
  if (result == GK_OK) result = gki_module_use(&d->modules, &loader, d, kernel, kernel->hip, &made->module);
  if (result != GK_OK) return result;
  result = find_function(d, kernel, made);
  if (result == GK_OK && !kernel->hip) result = measure(d, kernel->name, made);
  if (result != GK_OK) release_module(d, made);
  return result;
}

gk_result gki_hip_load(void *device, const gk_kernel *kernel, void **code) {
  gki_hip_device *d = device;
  gki_hip_before before;
  gki_hip_kernel *made = gki_array(1, sizeof *made, "a kernel's code");
  gk_result result = made ? gki_hip_enter(d, &before) : GK_ERROR_MEMORY;
  if (result == GK_OK) {
    result = prepare(d, kernel, made);
    gki_hip_leave(d, before);
  }
  if (result == GK_OK) *code = made;
  else gk_host_free(made);
  return result;
}

void gki_hip_unload(void *device, void *code) {
  gki_hip_device *d = device;
  gki_hip_kernel *kernel = code;
  gki_hip_before before;
  if (!kernel) return;
  const bool entered = gki_hip_enter_to_free(d, &before);
  release_module(d, kernel);
  if (entered) gki_hip_leave(d, before);
  gk_host_free(kernel);
}

/* ---- gk's own ---------------------------------------------------------------------------------------------------- */

/* Whether the present form of arguments brings them all. */
static gk_result try_form(gki_hip_device *d, uint64_t *seen, bool *works) {
  gki_hip_shape shape;
  gki_hip_shape_echo(d, seen, 1, &shape);
  memset(seen, 0, GKI_HIP_ECHO * sizeof *seen);
  *works = false;
  const hipError_t answer = gki_hip_launch_shape(d, &shape, d->stream);
  if (answer == hipErrorOutOfMemory) return gki_hip_check(d, answer, "hipModuleLaunchKernel");
  if (answer != hipSuccess) return GK_OK;
  const gk_result result = gki_hip_check(d, d->driver->hipStreamSynchronize(d->stream), "hipStreamSynchronize");
  *works = gki_hip_has_echo(seen, 1);
  return result;
}

/* Some runtimes corrupt one form, some the other. */
static gk_result choose_form(gki_hip_device *d) {
  void *seen = NULL;
  bool works = false;
  gk_result result = gki_hip_alloc_raw(d, GKI_HIP_ECHO * sizeof(uint64_t), GK_HOST_MEMORY, &seen);
  if (result == GK_OK) result = try_form(d, seen, &works);
  if (result == GK_OK && !works) {
    d->packs = true;
    result = try_form(d, seen, &works);
  }
  gki_hip_free_raw(d, GK_HOST_MEMORY, seen);
  if (result != GK_OK || works) return result;
  return gk_fail(GK_ERROR_UNSUPPORTED, "backend hip: kernels on %s get wrong arguments, by kernelParams and by extra; "
                 "use another version of HIP than %d.%d", d->name, d->driver->version / 100, d->driver->version % 100);
}

static gk_result find_builtin(gki_hip_device *d) {
  const struct { const char *name; hipFunction_t *function; } all[] = {
    {"gki_copy", &d->copy.function}, {"gki_fill", &d->fill.function}, {"gki_ahead", &d->ahead}, {"gki_echo", &d->echo}};
  gk_result result = GK_OK;
  for (size_t k = 0; k < GK_COUNT(all) && result == GK_OK; ++k)
    result = gki_hip_check(d, d->driver->hipModuleGetFunction(all[k].function, d->builtin, all[k].name),
                           "hipModuleGetFunction of %s", all[k].name);
  if (result == GK_OK) result = measure(d, "gki_copy", &d->copy);
  return result == GK_OK ? measure(d, "gki_fill", &d->fill) : result;
}

/* The image has code for the usual GPUs. The text is for others. */
static gk_result load_own(gki_hip_device *d, hipModule_t *module) {
  const gki_unit text = {.text = gki_text_hip_builtin, .file = "gk's own kernels", .is_whole = true};
  const hipError_t answer = d->driver->hipModuleLoadData(module, gki_hip_image);
  if (answer != hipErrorNoBinaryForGpu && answer != hipErrorInvalidImage)
    return gki_hip_check(d, answer, "hipModuleLoadData of gk's own kernels");
  return load_module(d, &text, module);
}

gk_result gki_hip_load_builtin(gki_hip_device *d) {
  gki_hip_before before;
  hipModule_t module;
  gk_result result = gki_hip_enter(d, &before);
  if (result != GK_OK) return result;
  result = load_own(d, &module);
  if (result == GK_OK) d->builtin = module;
  if (result == GK_OK) result = find_builtin(d);
  if (result == GK_OK) result = choose_form(d);
  if (result == GK_OK) result = gki_hip_try_graphs(d);
  gki_hip_leave(d, before);
  return result;
}

void gki_hip_drop_builtin(gki_hip_device *d) {
  gki_hip_before before;
  if (!d->builtin || !gki_hip_enter_to_free(d, &before)) return;
  (void)d->driver->hipModuleUnload(d->builtin);
  gki_hip_leave(d, before);
}
