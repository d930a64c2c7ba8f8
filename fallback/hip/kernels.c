#include "base/memory.h"
#include "hip/compile.h"
#include "hip/graph.h"
#include "kernel/modules.h"
#include "kernel/object.h"
#include "lower/params.h"
#include <stdio.h>
#include <string.h>

extern const char gki_text_hip_builtin[];
extern const unsigned char gki_hip_image[]; /* a bundle of code objects of it */

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static void describe(const void *at, gki_gpu *gpu) {
  const gki_hip_device *d = at;
  gpu->architecture = (int)gki_hip_target(d->architecture);
  snprintf(gpu->name, sizeof gpu->name, "%.60s", d->architecture);
  snprintf(gpu->driver, sizeof gpu->driver, "%s", d->driver->name);
  snprintf(gpu->advice, sizeof gpu->advice, "name it to gk-embed behind --offload-arch");
}

/* These two are about images that gk-embed made when the program was built. */
static int rank(const gk_image *image, int target) {
  return image->kind != GK_IMAGE_AMD ? -1 : (int)image->target == target;
}

static void describe_image(const gk_image *image, char *text, size_t bytes) {
  snprintf(text, bytes, "code object for gfx%x, made by hipRTC of HIP %u.%u", (unsigned)image->target,
           (unsigned)image->made_by / 100, (unsigned)image->made_by % 100);
}

static gk_result find_compiler(const void *at, gki_compiler *compiler) {
  const gki_hip_device *d = at;
  const gki_hip_driver *driver = d->driver;
  int major = 0, minor = 0;
  if (driver->no_compiler[0] || driver->hiprtcVersion(&major, &minor) != HIPRTC_SUCCESS) return GK_OK;
  snprintf(compiler->name, sizeof compiler->name, "hipRTC %d.%d, for %.60s", major, minor, d->architecture);
  snprintf(compiler->made_for, sizeof compiler->made_for, "gk %s, hipRTC %d.%d, HIP %d, %.250s, %s", GK_VERSION, major,
           minor, driver->version, driver->path, d->architecture);
  return GK_OK;
}

static gk_result compile(const void *at, const gki_compiler *compiler, const gki_unit *text, gki_compiled *image) {
  const gki_hip_device *d = at;
  (void)compiler;
  return gki_hip_compile(d->driver, d->architecture, text, image);
}

static const char *problem(const void *image, size_t bytes, bool *is_text) {
  (void)is_text;
  return gki_bundle_problem(image, bytes);
}

static gk_result load(void *at, const void *image, void **loaded, char *why, size_t bytes) {
  const gki_hip_device *d = at;
  hipModule_t module;
  const hipError_t answer = d->driver->hipModuleLoadData(&module, image);
  *loaded = answer == hipSuccess ? module : NULL;
  if (answer == hipSuccess) return GK_OK;
  gki_hip_describe(d->driver, answer, why, bytes);
  if (answer == hipErrorNoBinaryForGpu || answer == hipErrorInvalidImage) return GK_ERROR_COMPILE;
  return answer == hipErrorOutOfMemory ? GK_ERROR_MEMORY : GK_ERROR_DEVICE;
}

static void unload(void *at, void *loaded) { (void)((const gki_hip_device *)at)->driver->hipModuleUnload(loaded); }

static gk_result find(void *at, void *loaded, const gk_kernel *kernel, const char *entry, void **function) {
  const gki_hip_driver *driver = ((const gki_hip_device *)at)->driver;
  hipFunction_t found = NULL;
  const hipError_t answer = driver->hipModuleGetFunction(&found, loaded, entry);
  if (answer == hipErrorNotFound) return GK_OK;
  *function = found;
  return gki_hip_result(driver, answer, "hipModuleGetFunction of kernel %s", kernel->name);
}

static const gki_module_loader loader = {
  .language = "hip", .entry = "backend hip: hipModuleLoadData", .describe = describe, .rank = rank,
  .describe_image = describe_image, .problem = problem, .find_compiler = find_compiler, .compile = compile,
  .load = load, .unload = unload, .find = find};

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

const gk_code *gki_hip_code(const gk_kernel *kernel, const char **beyond) {
  return gki_param_code(kernel, kernel->hip, beyond);
}

/* HIP takes less than 2^32 threads along each dimension of a grid. */
static void set_block(const gk_code *code, gki_hip_kernel *made) {
  static const unsigned most[3] = {INT32_MAX, 65535, 65535};
  made->shared_bytes = code->shared_bytes;
  gki_param_block(code, made->block, made->per_block);
  for (int k = 0; k < 3; ++k)
    made->most[k] = UINT32_MAX / made->block[k] < most[k] ? UINT32_MAX / made->block[k] : most[k];
}

/* Sets the blocks that run at the same time. */
static gk_result measure(gki_hip_device *d, const char *name, gki_hip_kernel *kernel) {
  int blocks = 0;
  const gk_result result = gki_hip_result(
      d->driver,
      d->driver->hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel->function, GKI_HIP_THREADS, 0),
      "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor of kernel %s", name);
  kernel->most_blocks = (unsigned)(blocks > 0 ? blocks : 1) * (unsigned)(d->multiprocessors > 0 ? d->multiprocessors
                                                                                                : 1);
  return result;
}

static gk_result prepare(gki_hip_device *d, const gk_kernel *kernel, gki_hip_kernel *made) {
  void *function;
  gk_result result = gki_module_use(&d->modules, &loader, d, kernel, kernel->hip, &made->module, &function);
  if (result != GK_OK) return result;
  made->function = function;
  if (kernel->hip) set_block(kernel->hip, made);
  else result = measure(d, kernel->name, made);
  if (result != GK_OK) gki_module_release(&d->modules, &loader, d, made->module);
  return result;
}

gk_result gki_hip_load(void *device, const gk_kernel *kernel, void **code) {
  gki_hip_device *d = device;
  gki_hip_before before;
  gki_hip_kernel *made = gki_array(1, sizeof *made, "a kernel's code");
  if (!made) return GK_ERROR_MEMORY;
  gk_result result = gki_hip_enter(d, &before);
  if (result == GK_OK) result = prepare(d, kernel, made);
  if (result == GK_OK) *code = made;
  else gk_host_free(made);
  return gki_hip_leave(d, before, result);
}

void gki_hip_unload(void *device, void *code) {
  gki_hip_device *d = device;
  gki_hip_kernel *kernel = code;
  gki_hip_before before;
  if (!kernel) return;
  const bool entered = gki_hip_enter_to_free(d, &before);
  gki_module_release(&d->modules, &loader, d, kernel->module);
  if (entered) (void)gki_hip_leave(d, before, GK_OK);
  gk_host_free(kernel);
}

/* ---- gk's own ---------------------------------------------------------------------------------------------------- */

static gk_result find_builtin(gki_hip_device *d) {
  const struct { const char *name; gki_hip_kernel *kernel; } all[] = {
    {"gki_copy", &d->copy}, {"gki_fill", &d->fill}, {"gki_ahead", &d->ahead}, {"gki_echo", &d->echo}};
  gk_result result = GK_OK;
  for (size_t k = 0; k < GK_COUNT(all) && result == GK_OK; ++k) {
    hipFunction_t *const function = &all[k].kernel->function;
    result = gki_hip_result(d->driver, d->driver->hipModuleGetFunction(function, d->builtin, all[k].name),
                            "hipModuleGetFunction of %s", all[k].name);
    if (result == GK_OK) result = measure(d, all[k].name, all[k].kernel);
  }
  return result;
}

/* The image has code for the usual GPUs. The text is for others. */
static gk_result load_own(gki_hip_device *d) {
  const gki_unit text = {.text = gki_text_hip_builtin, .file = "gk's own kernels", .is_whole = true};
  void *loaded;
  char why[300];
  gk_result result = load(d, gki_hip_image, &loaded, why, sizeof why);
  if (result != GK_OK) result = gki_module_load_text(&loader, d, &text, &loaded);
  if (result == GK_OK) d->builtin = loaded;
  return result;
}

gk_result gki_hip_load_builtin(gki_hip_device *d) {
  gki_hip_before before;
  gk_result result = gki_hip_enter(d, &before);
  if (result == GK_OK) result = load_own(d);
  if (result == GK_OK) result = find_builtin(d);
  if (result == GK_OK) result = gki_hip_try(d);
  return gki_hip_leave(d, before, result);
}
