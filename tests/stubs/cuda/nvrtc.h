/* nvrtc.h for the examples where no toolkit is: what they call of NVRTC, found where gk finds it, by the loader or in a
 * toolkit's folder, and of the driver's major version. */
#ifndef STUB_NVRTC_H
#define STUB_NVRTC_H
#include "cuda.h"
#include <stdio.h>

static struct {
#define MEMBER(result, name, parameters) result(*name) parameters;
  GKI_NVRTC_ENTRIES(MEMBER)
#undef MEMBER
} nvrtc_stub;

static void *nvrtc_stub_open(int version) {
  char name[32], path[4200];
  const char *home = getenv("CUDA_HOME");
  snprintf(name, sizeof name, "libnvrtc.so.%s", version >= 13000 ? "13" : version >= 12000 ? "12" : "11.2");
  snprintf(path, sizeof path, "%s/lib64/%s", home && *home ? home : "/usr/local/cuda", name);
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return library ? library : dlopen("libnvrtc.so", RTLD_NOW | RTLD_LOCAL);
}

__attribute__((constructor))
static void nvrtc_stub_find(void) {
  int version = 0;
  cuda_stub_find(); /* its turn as a constructor may be later */
  if (cuda_stub.cuDriverGetVersion(&version) != CUDA_SUCCESS) abort();
  void *library = nvrtc_stub_open(version), *entry;
  if (!library) {
    fprintf(stderr, "no NVRTC for a driver of CUDA %d.%d\n", version / 1000, version % 1000 / 10);
    exit(1);
  }
#define FIND(result, name, parameters) \
  entry = dlsym(library, #name); \
  memcpy(&nvrtc_stub.name, &entry, sizeof entry);
  GKI_NVRTC_ENTRIES(FIND)
#undef FIND
}

#define nvrtcCreateProgram nvrtc_stub.nvrtcCreateProgram
#define nvrtcCompileProgram nvrtc_stub.nvrtcCompileProgram
#define nvrtcGetCUBINSize nvrtc_stub.nvrtcGetCUBINSize
#define nvrtcGetCUBIN nvrtc_stub.nvrtcGetCUBIN
#define nvrtcDestroyProgram nvrtc_stub.nvrtcDestroyProgram
#endif
