/* What the examples beside this file call of CUDA itself. It is found when they start, so that they build where no
 * toolkit is; a program of yours has <cuda.h>, <nvrtc.h>, -lcuda and -lnvrtc instead of all this. */
#ifndef EXAMPLE_CUDA_DRIVER_H
#define EXAMPLE_CUDA_DRIVER_H
#include <dlfcn.h>
#include <gk_cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long CUdeviceptr;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  void **kernelParams, **extra;
} CUDA_KERNEL_NODE_PARAMS;

#define CUDA_CALLS(X) \
  X(cuDriverGetVersion, 2020, (int *)) \
  X(cuCtxPushCurrent, 4000, (CUcontext)) \
  X(cuCtxGetDevice, 2000, (int *)) \
  X(cuDeviceGetAttribute, 2000, (int *, int, int)) \
  X(cuModuleLoadDataEx, 2010, (CUmodule *, const void *, unsigned, int *, void **)) \
  X(cuModuleGetFunction, 2000, (CUfunction *, CUmodule, const char *)) \
  X(cuModuleUnload, 2000, (CUmodule)) \
  X(cuStreamSynchronize, 2000, (CUstream)) \
  X(cuGraphCreate, 10000, (CUgraph *, unsigned)) \
  X(cuGraphAddKernelNode, 10000, \
    (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_KERNEL_NODE_PARAMS *)) \
  X(cuGraphInstantiateWithFlags, 11040, (CUgraphExec *, CUgraph, unsigned long long)) \
  X(cuGraphLaunch, 10000, (CUgraphExec, CUstream)) \
  X(cuGraphExecDestroy, 10000, (CUgraphExec)) \
  X(cuGraphDestroy, 10000, (CUgraph))
#define CUDA_POINTER(name, version, parameters) static int (*name) parameters;
CUDA_CALLS(CUDA_POINTER)
#undef CUDA_POINTER

/* As CUDA's own samples have it. */
#define CHECK(call) \
  do { \
    int result_ = (call); \
    if (result_ != 0) { \
      fprintf(stderr, "%s:%d: %s answered %d\n", __FILE__, __LINE__, #call, result_); \
      exit(1); \
    } \
  } while (0)
#define CHECK_GK(call) \
  do { \
    if ((call) != GK_OK) { \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, gk_error()); \
      exit(1); \
    } \
  } while (0)

static inline void find_cuda(void) {
  int (*find)(const char *, void **, int, unsigned long long);
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *entry = library ? dlsym(library, "cuGetProcAddress") : NULL;
  if (!entry) exit((fprintf(stderr, "no CUDA driver\n"), 1));
  memcpy(&find, &entry, sizeof find);
#define CUDA_FIND(name, version, parameters) \
  CHECK(find(#name, &entry, version, 0)); \
  memcpy(&name, &entry, sizeof name);
  CUDA_CALLS(CUDA_FIND)
#undef CUDA_FIND
}

/* Kernels from CUDA C++, by NVRTC, for the GPU of the current context. */
static inline CUmodule compile(const char *source) {
  int version, device, major, minor;
  CHECK(cuDriverGetVersion(&version));
  CHECK(cuCtxGetDevice(&device));
  CHECK(cuDeviceGetAttribute(&major, 75, device)); /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
  CHECK(cuDeviceGetAttribute(&minor, 76, device));
  char name[32], architecture[48];
  snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d%d", major, minor);
  snprintf(name, sizeof name, "libnvrtc.so.%s", version >= 13000 ? "13" : version >= 12000 ? "12" : "11.2");
  void *library = dlopen(name, RTLD_NOW), *program;
  if (!library) library = dlopen("libnvrtc.so", RTLD_NOW);
  if (!library) exit((fprintf(stderr, "%s\n", dlerror()), 1));
  int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
  int (*compile_it)(void *, int, const char *const *), (*size)(void *, size_t *), (*code)(void *, char *);
  int (*destroy)(void **);
  *(void **)&create = dlsym(library, "nvrtcCreateProgram");
  *(void **)&compile_it = dlsym(library, "nvrtcCompileProgram");
  *(void **)&size = dlsym(library, "nvrtcGetCUBINSize");
  *(void **)&code = dlsym(library, "nvrtcGetCUBIN");
  *(void **)&destroy = dlsym(library, "nvrtcDestroyProgram");
  CHECK(create(&program, source, "example.cu", 0, NULL, NULL));
  CHECK(compile_it(program, 1, (const char *const[]){architecture}));
  size_t bytes;
  CHECK(size(program, &bytes));
  char *image = malloc(bytes);
  if (!image) exit(1);
  CHECK(code(program, image));
  CHECK(destroy(&program));
  CUmodule module;
  CHECK(cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
  free(image);
  return module;
}

/* A kernel of one thread behind a node (NULL: behind none), with up to three addresses. */
static inline CUgraphNode add_kernel(CUgraph into, CUgraphNode after, CUmodule module, const char *name, void *a,
                                     void *b, void *c) {
  void *parameters[] = {&a, &b, &c};
  CUDA_KERNEL_NODE_PARAMS node = {NULL, 1, 1, 1, 1, 1, 1, 0, parameters, NULL};
  CUgraphNode added;
  CHECK(cuModuleGetFunction(&node.func, module, name));
  CHECK(cuGraphAddKernelNode(&added, into, after ? &after : NULL, after ? 1 : 0, &node));
  return added;
}
#endif
