#include "kernel/modules.h"
#include "base/error.h"
#include "base/memory.h"
#include <string.h>

static bool is_same(const char *options, const char *others) {
  return options && others ? strcmp(options, others) == 0 : !options && !others;
}

static gk_result load(const gki_module_loader *loader, void *device, const gk_kernel *kernel, const gk_code *code,
                      void **loaded) {
  if (code && code->image) return loader->load_image(device, kernel, loaded);
  if (code) {
    const gki_unit text = {.text = code->text, .file = "gk_code.text", .kernel = kernel->name,
                           .options = code->options};
    return loader->load_text(device, &text, loaded);
  }
  char *text = gk_compose(kernel, loader->language);
  if (!text) return gki_failure();
  const gki_unit composed = {.text = text, .file = kernel->source->file, .kernel = kernel->name};
  const gk_result result = loader->load_text(device, &composed, loaded);
  gk_free_text(text);
  return result;
}

gk_result gki_module_use(gki_module **modules, const gki_module_loader *loader, void *device, const gk_kernel *kernel,
                         const gk_code *code, gki_module **used) {
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
  *used = module;
  return GK_OK;
}

void *gki_module_release(gki_module **modules, gki_module *module) {
  if (--module->users) return NULL;
  void *loaded = module->loaded;
  gki_module **at = modules;
  while (*at != module) at = &(*at)->next;
  *at = module->next;
  gk_host_free(module);
  return loaded;
}
