/* For tests of the CUDA backend on the simulated driver: the program starts itself again with that driver in its path,
 * and every test begins and ends with nothing broken and nothing alive. */
#ifndef CUDA_WORLD_H
#define CUDA_WORLD_H
#include "unit/support/runtime.h"
#include "simgpu/simgpu.h"
#include <dlfcn.h>
#include <unistd.h>

static const simgpu *sim;

/* The dynamic linker reads its path at the start of a process only. */
static inline void with_simgpu(char **words) {
  char path[4096] = "", folder[4200];
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) abort();
  char *build = strstr(path, "/tests/unit/");
  if (!build) abort();
  *build = 0;
  snprintf(folder, sizeof folder, "%s/simgpu", path);
  const char *before = getenv("LD_LIBRARY_PATH");
  if (!before || strncmp(before, folder, strlen(folder)) != 0) {
    setenv("LD_LIBRARY_PATH", folder, 1);
    setenv("CUDA_HOME", folder, 1); /* no other NVRTC */
    setenv("GK_CACHE", "off", 0);
    execv("/proc/self/exe", words);
    abort();
  }
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library || !(sim = dlsym(library, "simgpu_control"))) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
}

static inline int setup_cuda(void **state) {
  sim->forgive();
  sim->set_seed(1);
  sim->set_passes(100000);
  sim->mark();
  gk_result result = gk_device_open(&(gk_device_desc){.backend = "cuda"}, (gk_device **)state);
  if (result != GK_OK) fprintf(stderr, "%s\n", gk_error());
  return result == GK_OK ? 0 : -1;
}

static inline int teardown_cuda(void **state) {
  sim->hold(0); /* a test that failed in between left it so, and closing would wait for ever */
  gk_device_close(*state);
  if (sim->broken()) fprintf(stderr, "%s\n", sim->first_broken());
  return sim->broken() || sim->alive(SIMGPU_ALL) ? -1 : 0;
}

/* But for memory, which devices keep for graphs to come; what is lost of that is seen when they are closed. */
static inline size_t alive_but_memory(void) {
  return sim->alive(SIMGPU_ALL) - sim->alive(SIMGPU_MEMORY) - sim->alive(SIMGPU_PINNED);
}

#define TEST_ON_CUDA(test) DEVICE_TEST(test, setup_cuda, teardown_cuda)
#endif
