/* kernel.h by C functions, so that the driver's rules are tested without a compiler. */
#include "stub.h"
#include "kernel.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) unsigned long long sim_stub_thread;

__attribute__((visibility("default"))) void sim_stub_touch(unsigned long long at, unsigned long long bytes) {
  if (!sim_touch(at, bytes)) sim_give_up();
}

struct sim_kernel {
  const sim_stub_kernel *stub;
  struct sim_kernel *next;
};

struct sim_module {
  const sim_stub_kernel *kernels;
  sim_kernel *used;
};

#define UNUSED __attribute__((unused))
CUresult sim_module_load(const void *image, UNUSED int driver_version, UNUSED int arch, sim_module **module, char *log,
                         size_t log_bytes) {
  const sim_stub_image *stub = image;
  if (memcmp(stub->magic, "simstub", sizeof stub->magic) != 0) {
    snprintf(log, log_bytes, "no image of the stub");
    return CUDA_ERROR_INVALID_IMAGE;
  }
  *module = calloc(1, sizeof **module);
  if (!*module) return CUDA_ERROR_OUT_OF_MEMORY;
  (*module)->kernels = stub->kernels;
  return CUDA_SUCCESS;
}

void sim_module_unload(sim_module *module) {
  for (sim_kernel *next, *each = module->used; each; each = next) {
    next = each->next;
    free(each);
  }
  free(module);
}

const sim_kernel *sim_module_kernel(sim_module *module, const char *name) {
  for (const sim_stub_kernel *stub = module->kernels; stub->name; ++stub) {
    if (strcmp(stub->name, name) != 0) continue;
    sim_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) return NULL;
    *kernel = (sim_kernel){stub, module->used};
    module->used = kernel;
    return kernel;
  }
  return NULL;
}

unsigned sim_kernel_threads(UNUSED const sim_kernel *kernel) { return 1024; }

size_t sim_kernel_parameter_count(const sim_kernel *kernel) {
  size_t count = 0;
  while (count < SIM_STUB_PARAMETERS && kernel->stub->bytes[count]) ++count;
  return count;
}

void sim_kernel_parameter(const sim_kernel *kernel, size_t k, size_t *offset, size_t *bytes) {
  size_t at = 0;
  for (size_t each = 0;; ++each) {
    size_t size = kernel->stub->bytes[each], align = size == 1 || size == 2 || size == 4 ? size : 8;
    at = (at + align - 1) / align * align;
    if (each == k) break;
    at += size;
  }
  *offset = at;
  *bytes = kernel->stub->bytes[k];
}

void sim_kernel_run(const sim_kernel *kernel, const unsigned grid[3], const unsigned block[3],
                    const void *parameters) {
  sim_stub_thread = 0;
  kernel->stub->run(parameters, (unsigned long long)grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2]);
}

/* None pauses, so that there is one at a time. */
struct sim_grid {
  const sim_kernel *kernel;
  unsigned grid[3], block[3];
  const void *parameters;
};
static sim_grid under_way;

sim_grid *sim_kernel_begin(const sim_kernel *kernel, const unsigned grid[3], const unsigned block[3],
                           const void *parameters) {
  under_way = (sim_grid){kernel, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, parameters};
  return &under_way;
}

bool sim_kernel_go_on(sim_grid *grid, UNUSED uint64_t *random) {
  sim_kernel_run(grid->kernel, grid->grid, grid->block, grid->parameters);
  return true;
}

unsigned long long sim_kernel_thread(void) { return sim_stub_thread; }
void sim_kernel_left(void) {}
