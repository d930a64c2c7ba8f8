#include "kernel/modules.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernel/images.h"
#include <stdio.h>
#include <string.h>

enum { ANSWER_BYTES = 1600, WHY_BYTES = 2304 };

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static gk_result fail_load(const gki_module_loader *loader, gk_result result, const char *what, const char *made_by,
                           const char *advice, const char *answer) {
  return gk_fail(result == GK_ERROR_COMPILE ? GK_ERROR_DEVICE : result, "%s of %s%s%s%s%s: %s%s", loader->entry, what,
                 made_by[0] ? ", " : "", made_by, advice[0] ? "; " : "", advice, answer,
                 result == GK_ERROR_MEMORY ? "; free some and call again" : "");
}

/* GK_OK without a module: no image is for this text and this device, or the driver takes none. The log and `why` then
 * have the reason; `why` stays "" if the source has no images at all. */
static gk_result load_embedded(const gki_module_loader *loader, void *device, const gki_unit *text, const char *name,
                               void **loaded, char *why) {
  uint64_t hash[2];
  char what[128], answer[ANSWER_BYTES];
  gki_unfit others = {0};
  gki_gpu gpu;
  const gk_image *image;
  if (!gki_images_at(0) || !gki_unit_hash(text, hash)) return GK_OK;
  loader->describe(device, &gpu);
  for (int below = INT32_MAX;
       (image = gki_store_choose(hash, text->file, loader->rank, gpu.architecture, below, &others));
       below = loader->rank(image, gpu.architecture)) {
    loader->describe_image(image, what, sizeof what);
    const gk_result result = loader->load(device, image->bytes, loaded, answer, sizeof answer);
    if (result == GK_OK) gk_log(GK_LOG_INFO, "%s: %s when the program was built", name, what);
    if (result == GK_OK) return GK_OK;
    if (result == GK_ERROR_MEMORY) return fail_load(loader, result, name, what, "", answer);
    snprintf(why, WHY_BYTES, "%s: the driver refuses the %s when the program was built: %s", name, what, answer);
    gk_log(GK_LOG_WARN, "%s", why);
  }
  if (!why[0]) gki_store_explain(&others, name, gpu.name, gpu.advice, why, WHY_BYTES);
  return GK_OK;
}

/* False: there is no kept image, or the driver refuses it; a new image may still work. */
static bool load_kept(const gki_module_loader *loader, void *device, const gki_compiler *compiler,
                      const gki_cache_key *key, const char *name, void **loaded) {
  gki_compiled image = {0};
  char answer[ANSWER_BYTES];
  if (!gki_store_find(key, name, compiler->name, &image)) return false;
  const gk_result result = loader->load(device, image.bytes, loaded, answer, sizeof answer);
  gki_compiled_free(&image);
  if (result != GK_OK)
    gk_log(GK_LOG_INFO, "%s (%s) is compiled anew, as the driver refuses what was kept: %s", name, compiler->name,
           answer);
  return result == GK_OK;
}

static gk_result load_compiled(const gki_module_loader *loader, void *device, const gki_compiler *compiler,
                               const char *name, const gki_compiled *image, void **loaded) {
  char answer[ANSWER_BYTES], made_by[sizeof compiler->name + 16];
  const gk_result result = loader->load(device, image->bytes, loaded, answer, sizeof answer);
  snprintf(made_by, sizeof made_by, "made by %s", compiler->name);
  return result == GK_OK ? GK_OK : fail_load(loader, result, name, made_by, compiler->advice, answer);
}

gk_result gki_module_load_text(const gki_module_loader *loader, void *device, const gki_unit *text, void **loaded) {
  gki_compiler compiler = {.advice = ""};
  gki_compiled image = {0};
  gki_cache_key key;
  char name[GKI_UNIT_NAME_BYTES], why[WHY_BYTES] = "";
  *loaded = NULL;
  gki_unit_name(text, name);
  gk_result result = load_embedded(loader, device, text, name, loaded, why);
  if (result != GK_OK || *loaded) return result;
  result = loader->find_compiler(device, &compiler);
  const bool keeps = result == GK_OK && compiler.made_for[0] && gki_store_key(text, compiler.made_for, &key);
  if (keeps && load_kept(loader, device, &compiler, &key, name, loaded)) return GK_OK;
  if (result == GK_OK) result = loader->compile(device, &compiler, text, &image);
  if (result == GK_ERROR_UNSUPPORTED && why[0])
    result = gki_fail_with_prefix(result, "%s; nor can it be compiled now", why);
  if (result == GK_OK) result = load_compiled(loader, device, &compiler, name, &image, loaded);
  if (result == GK_OK && keeps) gki_store_keep(&key, &image);
  gki_compiled_free(&image);
  return result;
}

/* ---- handwritten images ------------------------------------------------------------------------------------------ */

static gk_result fail_image(const gki_module_loader *loader, const void *device, const gk_kernel *kernel,
                            gk_result result, const char *answer) {
  char what[256];
  gki_gpu gpu;
  snprintf(what, sizeof what, "the image of kernel %.200s", kernel->name);
  if (result != GK_ERROR_COMPILE) return fail_load(loader, result, what, "", "", answer);
  loader->describe(device, &gpu);
  return gk_fail(result, "kernel %s: the driver, for %s, doesn't take its image for this GPU, %s: %s", kernel->name,
                 gpu.driver, gpu.name, answer);
}

static gk_result load_image(const gki_module_loader *loader, void *device, const gk_kernel *kernel,
                            const gk_code *code, void **loaded) {
  bool is_text = false;
  char answer[ANSWER_BYTES], *text = NULL;
  const char *problem = loader->problem(code->image, code->image_bytes, &is_text);
  if (problem)
    return gk_fail(GK_ERROR_COMPILE, "kernel %s: its image, of %zu bytes, %s; give all of it, and its size in "
                   ".image_bytes", kernel->name, code->image_bytes, problem);
  if (is_text) {
    text = code->image_bytes < SIZE_MAX ? gk_host_alloc(code->image_bytes + 1) : NULL;
    if (!text) return gki_fail_memory("a kernel's image", code->image_bytes);
    memcpy(text, code->image, code->image_bytes);
    text[code->image_bytes] = 0;
  }
  const gk_result result = loader->load(device, text ? text : code->image, loaded, answer, sizeof answer);
  gk_host_free(text);
  return result == GK_OK ? GK_OK : fail_image(loader, device, kernel, result, answer);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static bool is_same(const char *options, const char *others) {
  return options && others ? strcmp(options, others) == 0 : !options && !others;
}

static gk_result load(const gki_module_loader *loader, void *device, const gk_kernel *kernel, const gk_code *code,
                      void **loaded) {
  if (code && code->image) return load_image(loader, device, kernel, code, loaded);
  if (code) {
    const gki_unit text = {.text = code->text, .file = "gk_code.text", .kernel = kernel->name,
                           .options = code->options};
    return gki_module_load_text(loader, device, &text, loaded);
  }
  char *text = gk_compose(kernel, loader->language);
  if (!text) return gki_failure();
  const gki_unit composed = {.text = text, .file = kernel->source->file, .kernel = kernel->name};
  const gk_result result = gki_module_load_text(loader, device, &composed, loaded);
  gk_free_text(text);
  return result;
}

static gk_result find_function(const gki_module_loader *loader, void *device, const gk_kernel *kernel,
                               const gk_code *code, void *loaded, void **function) {
  const char *entry = code && code->entry ? code->entry : kernel->name;
  *function = NULL;
  const gk_result result = loader->find(device, loaded, kernel, entry, function);
  if (result != GK_OK || *function) return result;
  if (code)
    return gk_fail(GK_ERROR_COMPILE, "kernel %s: its code has no entry %s; declare it extern \"C\" there, or name it "
                   "in .entry as it is in there (nm or cuobjdump -symbols tells how)", kernel->name, entry);
  return gk_fail(GK_ERROR_COMPILE, "kernel %s: the compiled text of %s, behind line %u, has no entry of this name; "
                 "write GK_KERNEL(%s, ...) there, outside of any #if that leaves it out", kernel->name,
                 kernel->source->file, (unsigned)kernel->source->line, kernel->name);
}

static gk_result find_module(gki_module **modules, const gki_module_loader *loader, void *device,
                             const gk_kernel *kernel, const gk_code *code, gki_module **found) {
  const char *options = !code || !code->text ? NULL : code->options ? code->options : "";
  const void *from = !code ? (const void *)kernel->source : code->text ? (const void *)code->text : code->image;
  gki_module *module = *modules;
  while (module && !(module->from == from && is_same(module->options, options))) module = module->next;
  if (!module) {
    module = gki_array(1, sizeof *module, "a module of kernels");
    if (!module) return GK_ERROR_MEMORY;
    *module = (gki_module){.next = *modules, .from = from, .options = options};
    const gk_result result = load(loader, device, kernel, code, &module->loaded);
    if (result != GK_OK) {
      gk_host_free(module);
      return result;
    }
    *modules = module;
  }
  ++module->users;
  *found = module;
  return GK_OK;
}

gk_result gki_module_use(gki_module **modules, const gki_module_loader *loader, void *device, const gk_kernel *kernel,
                         const gk_code *code, gki_module **used, void **function) {
  *used = NULL;
  *function = code ? code->function : NULL;
  if (*function) return GK_OK;
  gk_result result = find_module(modules, loader, device, kernel, code, used);
  if (result == GK_OK) result = find_function(loader, device, kernel, code, (*used)->loaded, function);
  if (result == GK_OK) return GK_OK;
  gki_module_release(modules, loader, device, *used);
  *used = NULL;
  return result;
}

void gki_module_release(gki_module **modules, const gki_module_loader *loader, void *device, gki_module *module) {
  if (!module || --module->users) return;
  loader->unload(device, module->loaded);
  gki_module **at = modules;
  while (*at != module) at = &(*at)->next;
  *at = module->next;
  gk_host_free(module);
}
