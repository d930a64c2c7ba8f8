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

struct sim_kernel { const sim_stub_kernel *stub; };

struct sim_module {
  size_t count;
  sim_kernel kernels[];
};

#define UNUSED __attribute__((unused))
CUresult sim_module_load(const void *image, UNUSED int driver_version, UNUSED int arch, sim_module **module, char *log,
                         size_t log_bytes) {
  const sim_stub_image *stub = image;
  if (memcmp(stub->magic, "simstub", sizeof stub->magic) != 0) {
    snprintf(log, log_bytes, "no image of the stub");
    return CUDA_ERROR_INVALID_IMAGE;
  }
  size_t count = 0;
  while (stub->kernels[count].name) ++count;
  *module = calloc(1, sizeof **module + count * sizeof(sim_kernel));
  if (!*module) return CUDA_ERROR_OUT_OF_MEMORY;
  for (; (*module)->count < count; ++(*module)->count)
    (*module)->kernels[(*module)->count].stub = &stub->kernels[(*module)->count];
  return CUDA_SUCCESS;
}

void sim_module_unload(sim_module *module) { free(module); }

const sim_kernel *sim_module_kernel(sim_module *module, const char *name) {
  for (size_t k = 0; k < module->count; ++k)
    if (strcmp(module->kernels[k].stub->name, name) == 0) return &module->kernels[k];
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

/* None pauses, so that there is one at a time. */
struct sim_grid {
  const sim_stub_kernel *stub;
  unsigned long long threads;
  const void *parameters;
};
static sim_grid under_way;

sim_grid *sim_kernel_begin(const sim_kernel *kernel, const unsigned grid[3], const unsigned block[3],
                           const void *parameters) {
  const unsigned long long blocks = (unsigned long long)grid[0] * grid[1] * grid[2];
  under_way = (sim_grid){kernel->stub, blocks * block[0] * block[1] * block[2], parameters};
  return &under_way;
}

bool sim_kernel_go_on(sim_grid *grid, UNUSED uint64_t *random) {
  sim_stub_thread = 0;
  grid->stub->run(grid->parameters, grid->threads);
  return true;
}

unsigned long long sim_kernel_thread(void) { return sim_stub_thread; }
void sim_kernel_left(void) {}
