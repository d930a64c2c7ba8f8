#include "hip/kernels.h"
#include "base/error.h"
#include "base/memory.h"
#include "hip/compile.h"
#include "hip/graphs.h"
#include "lower/params.h"
#include <elf.h>
#include <string.h>

enum { MOST_PARAMETERS = 4096 /* bytes */, MOST_Z = 64, OF_AMDGPU = 224 };
extern const char gki_text_hip_builtin[];
extern const unsigned char gki_hip_image[]; /* a bundle of code objects of it */

/* A source, or a handwritten text or image, that is loaded. */
typedef struct gki_hip_module {
  struct gki_hip_module *next;
  const void *from;    /* its address */
  const char *options; /* of a handwritten text, "" if it has none; else NULL */
  hipModule_t module;
  unsigned users; /* kernels that use it */
} gki_hip_module;

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

/* The runtime doesn't get an image's size, and trusts its headers. NULL: no problem. */
static const char *problem_of_image(const gk_code *code) {
  static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__", compressed[] = "CCOB";
  Elf64_Ehdr head;
  if (code->image_bytes >= sizeof bundle && memcmp(code->image, bundle, sizeof bundle - 1) == 0) return NULL;
  if (code->image_bytes >= sizeof compressed && memcmp(code->image, compressed, sizeof compressed - 1) == 0)
    return NULL;
  if (code->image_bytes < sizeof head) return "is too short for a code object";
  memcpy(&head, code->image, sizeof head);
  if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
      head.e_machine != OF_AMDGPU)
    return "is neither a code object of AMD's nor a bundle of them";
  const uint64_t all = code->image_bytes, headers = (uint64_t)head.e_shnum * sizeof(Elf64_Shdr);
  return head.e_shoff <= all && headers <= all - head.e_shoff ? NULL : "ends before its headers say";
}

static gk_result load_image(gki_hip_device *d, const gk_kernel *kernel, hipModule_t *module) {
  const gk_code *code = kernel->hip;
  const char *problem = problem_of_image(code);
  if (problem)
    return gk_fail(GK_ERROR_COMPILE, "kernel %s: its image, of %zu bytes, %s; give all of it, and its size in "
                   ".image_bytes", kernel->name, code->image_bytes, problem);
  const hipError_t answer = d->driver->hipModuleLoadData(module, code->image);
  if (answer != hipErrorNoBinaryForGpu && answer != hipErrorInvalidImage)
    return gki_hip_check(d, answer, "hipModuleLoadData of the image of kernel %s", kernel->name);
  char text[300];
  gki_hip_describe(d->driver, answer, text, sizeof text);
  return gk_fail(GK_ERROR_COMPILE, "kernel %s: its image isn't for this GPU, %s: %s; compile it with "
                 "--offload-arch=%s", kernel->name, d->architecture, text, d->architecture);
}

static gk_result set_block(const gki_hip_device *d, const gk_kernel *kernel, gki_hip_kernel *made) {
  const gk_code *code = kernel->hip;
  made->shared_bytes = code->shared_bytes;
  for (int k = 0; k < 3; ++k) {
    made->block[k] = code->block[k] ? code->block[k] : k == 0 ? GKI_HIP_THREADS : 1;
    made->per_block[k] = code->per_block[k] ? code->per_block[k] : made->block[k];
  }
  const unsigned threads = made->block[0] * made->block[1] * made->block[2];
  if (threads <= (unsigned)d->most_threads) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "kernel %s: its blocks have %u threads, and this GPU takes %d; make .block smaller",
                 kernel->name, threads, d->most_threads);
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static gk_result load_module(gki_hip_device *d, const gk_kernel *kernel, hipModule_t *module) {
  const gk_code *code = kernel->hip;
  if (code && code->image) return load_image(d, kernel, module);
  if (code) {
    const gki_unit text = {.text = code->text, .file = "gk_code.text", .kernel = kernel->name,
                           .options = code->options};
    return gki_hip_load_text(d, &text, module);
  }
  char *text = gk_compose(kernel, "hip");
  if (!text) return gki_failure();
  const gki_unit composed = {.text = text, .file = kernel->source->file, .kernel = kernel->name};
  const gk_result result = gki_hip_load_text(d, &composed, module);
  gk_free_text(text);
  return result;
}

static bool is_same(const char *options, const char *others) {
  return options && others ? strcmp(options, others) == 0 : !options && !others;
}

static gk_result find_module(gki_hip_device *d, const gk_kernel *kernel, gki_hip_module **found) {
  const gk_code *code = kernel->hip;
  const char *options = !code || !code->text ? NULL : code->options ? code->options : "";
  const void *from = !code ? (const void *)kernel->source : code->text ? (const void *)code->text : code->image;
  for (gki_hip_module *at = d->modules; at; at = at->next)
    if (at->from == from && is_same(at->options, options)) {
      *found = at;
      return GK_OK;
    }
  gki_hip_module *made = gki_array(1, sizeof *made, "a module of kernels");
  if (!made) return GK_ERROR_MEMORY;
  const gk_result result = load_module(d, kernel, &made->module);
  if (result != GK_OK) {
    gk_host_free(made);
    return result;
  }
  *made = (gki_hip_module){.next = d->modules, .from = from, .options = options, .module = made->module};
  d->modules = made;
  *found = made;
  return GK_OK;
}

static void release_module(gki_hip_device *d, gki_hip_module *module) {
  if (--module->users) return;
  gki_hip_module **at = &d->modules;
  while (*at != module) at = &(*at)->next;
  *at = module->next;
  (void)d->driver->hipModuleUnload(module->module);
  gk_host_free(module);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

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
  const hipError_t answer = d->driver->hipModuleGetFunction(&made->function, made->module->module, entry);
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
  if (result == GK_OK) result = find_module(d, kernel, &made->module);
  if (result != GK_OK) return result;
  ++made->module->users;
  result = find_function(d, kernel, made);
  if (result == GK_OK && !kernel->hip) result = measure(d, kernel->name, made);
  if (result != GK_OK) release_module(d, made->module);
  return result;
}

gk_result gki_hip_load(void *device, const gk_kernel *kernel, void **code) {
  gki_hip_device *d = device;
  int before;
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
  int before;
  if (!kernel) return;
  const bool entered = gki_hip_enter_to_free(d, &before);
  if (kernel->module) release_module(d, kernel->module);
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
  return gki_hip_load_text(d, &text, module);
}

gk_result gki_hip_load_builtin(gki_hip_device *d) {
  int before;
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
  int before;
  if (!d->builtin || !gki_hip_enter_to_free(d, &before)) return;
  (void)d->driver->hipModuleUnload(d->builtin);
  gki_hip_leave(d, before);
}
