#include "load.h"
#include "image.h"
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct sim_module {
  const sim_code *code;
  char *entries; /* those that the image has; NULL: all */
  void *library;
  int file; /* open as long as the library is: its name mustn't come to mean another one */
  sim_kernel kernels[];
};

static bool write_all(int file, const char *at, size_t bytes) {
  while (bytes > 0) {
    ssize_t written = write(file, at, bytes);
    if (written <= 0) return false;
    at += written;
    bytes -= (size_t)written;
  }
  return true;
}

/* Each module is a library of its own, even where two are the same: so each has its own variables. */
static CUresult open_code(const sim_image *image, void **library, int *file, char *log, size_t log_bytes) {
  char path[64];
  *file = memfd_create("kernels", MFD_CLOEXEC);
  if (*file < 0 || !write_all(*file, image->code, image->code_bytes)) {
    snprintf(log, log_bytes, "no memory for the module");
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  snprintf(path, sizeof path, "/proc/self/fd/%d", *file);
  *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (*library) return CUDA_SUCCESS;
  snprintf(log, log_bytes, "%s", dlerror());
  return CUDA_ERROR_INVALID_IMAGE;
}

/* What the linker calls it, so that C++'s names are as long as NVRTC's. */
static const char *name_of(const sim_code_kernel *kernel) {
  union { void (*function)(void); void *at; } place = {.function = kernel->function};
  Dl_info info;
  bool is_found = dladdr(place.at, &info) != 0 && info.dli_saddr == place.at && info.dli_sname;
  return is_found ? info.dli_sname : kernel->name;
}

static sim_module *make_module(const sim_code *code, const sim_image *image, void *library, int file) {
  sim_module *module = calloc(1, sizeof *module + code->count * sizeof *module->kernels);
  if (!module) return NULL;
  *module = (sim_module){.code = code, .entries = image->entries, .library = library, .file = file};
  for (unsigned k = 0; k < code->count; ++k) {
    const sim_code_kernel *kernel = &code->kernels[k];
    module->kernels[k] = (sim_kernel){kernel, code, library ? name_of(kernel) : kernel->name};
  }
  return module;
}

CUresult sim_module_load(const void *image, int driver_version, int arch, sim_module **module, char *log,
                         size_t log_bytes) {
  sim_image read;
  void *library = NULL;
  int file = -1;
  *module = NULL;
  if (log_bytes > 0) *log = 0;
  CUresult result = sim_image_read(image, driver_version, arch, &read, log, log_bytes);
  if (result != CUDA_SUCCESS) return result;
  const sim_code *code = &sim_gates_code;
  if (read.code) {
    result = open_code(&read, &library, &file, log, log_bytes);
    code = library ? dlsym(library, "sim_code_of_module") : NULL;
  }
  if (result == CUDA_SUCCESS && (!code || code->version != SIM_CODE_VERSION)) {
    result = CUDA_ERROR_INVALID_IMAGE;
    if (log_bytes > 0) snprintf(log, log_bytes, "the code in the image is no kernels'");
  }
  if (result == CUDA_SUCCESS && !(*module = make_module(code, &read, library, file))) result = CUDA_ERROR_OUT_OF_MEMORY;
  free(read.code);
  if (result == CUDA_SUCCESS) return CUDA_SUCCESS;
  if (library) dlclose(library);
  if (file >= 0) close(file);
  free(read.entries);
  return result;
}

void sim_module_unload(sim_module *module) {
  if (!module) return;
  if (module->library) dlclose(module->library);
  if (module->file >= 0) close(module->file);
  free(module->entries);
  free(module);
}

/* Whether the list "\nname\nother\n" has it. */
static bool is_listed(const char *list, const char *name) {
  size_t length = strlen(name);
  for (const char *s = list; (s = strstr(s, name)); ++s)
    if (s > list && s[-1] == '\n' && s[length] == '\n') return true;
  return false;
}

const sim_kernel *sim_module_kernel(sim_module *module, const char *name) {
  if (*name == 0 || (module->entries && !is_listed(module->entries, name))) return NULL;
  for (unsigned k = 0; k < module->code->count; ++k)
    if (strcmp(module->kernels[k].name, name) == 0) return &module->kernels[k];
  return NULL;
}

unsigned sim_kernel_threads(const sim_kernel *kernel) { return kernel->code->threads; }
size_t sim_kernel_parameter_count(const sim_kernel *kernel) { return kernel->code->count; }

void sim_kernel_parameter(const sim_kernel *kernel, size_t k, size_t *offset, size_t *bytes) {
  *offset = kernel->code->offsets[k];
  *bytes = kernel->code->bytes[k];
}
