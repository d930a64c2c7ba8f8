/* nvrtc.h for the examples where no toolkit is: what they call of NVRTC, found where gk finds it, by the loader or in a
 * toolkit's folder, and of the driver's major version. */
#ifndef USER_NVRTC_H
#define USER_NVRTC_H
#include "cuda.h"
#include <stdio.h>

static struct {
#define MEMBER(result, name, parameters) result(*name) parameters;
  GKI_NVRTC_ENTRIES(MEMBER)
#undef MEMBER
} user_nvrtc;

static void *user_nvrtc_open(int version) {
  char name[32], path[4200];
  const char *home = getenv("CUDA_HOME");
  snprintf(name, sizeof name, "libnvrtc.so.%s", version >= 13000 ? "13" : version >= 12000 ? "12" : "11.2");
  snprintf(path, sizeof path, "%s/lib64/%s", home && *home ? home : "/usr/local/cuda", name);
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return library ? library : dlopen("libnvrtc.so", RTLD_NOW | RTLD_LOCAL);
}

__attribute__((constructor))
static void user_nvrtc_find(void) {
  int version = 0;
  user_cuda_find(); /* its turn as a constructor may be later */
  if (user_cuda.cuDriverGetVersion(&version) != CUDA_SUCCESS) abort();
  void *library = user_nvrtc_open(version), *entry;
  if (!library) {
    fprintf(stderr, "no NVRTC for a driver of CUDA %d.%d\n", version / 1000, version % 1000 / 10);
    exit(1);
  }
#define FIND(result, name, parameters) \
  entry = dlsym(library, #name); \
  memcpy(&user_nvrtc.name, &entry, sizeof entry);
  GKI_NVRTC_ENTRIES(FIND)
#undef FIND
}

#define nvrtcCreateProgram user_nvrtc.nvrtcCreateProgram
#define nvrtcCompileProgram user_nvrtc.nvrtcCompileProgram
#define nvrtcGetCUBINSize user_nvrtc.nvrtcGetCUBINSize
#define nvrtcGetCUBIN user_nvrtc.nvrtcGetCUBIN
#define nvrtcDestroyProgram user_nvrtc.nvrtcDestroyProgram
#endif
