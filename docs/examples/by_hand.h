/* Shared by the examples that make CUDA graphs by hand: compiling kernels from CUDA C++, and adding kernel nodes. This
 * file doesn't use gk. */
#ifndef EXAMPLE_BY_HAND_H
#define EXAMPLE_BY_HAND_H
#include <cuda.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program if a call of CUDA or NVRTC fails. Both return 0 on success. */
#define CHECK(call) \
  do { \
    int result_ = (int)(call); \
    if (result_ != 0) { \
      fprintf(stderr, "%s:%d: %s answered %d\n", __FILE__, __LINE__, #call, result_); \
      exit(1); \
    } \
  } while (0)

/* Compiles for the GPU of the current context. */
static inline CUmodule compile(const char *source) {
  CUdevice device;
  int major, minor;
  CHECK(cuCtxGetDevice(&device));
  CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  CHECK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  char architecture[48];
  snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d%d", major, minor);
  nvrtcProgram program;
  CHECK(nvrtcCreateProgram(&program, source, "example.cu", 0, NULL, NULL));
  CHECK(nvrtcCompileProgram(program, 1, (const char *const[]){architecture}));
  size_t bytes;
  CHECK(nvrtcGetCUBINSize(program, &bytes));
  char *image = malloc(bytes);
  if (!image) exit(1);
  CHECK(nvrtcGetCUBIN(program, image));
  CHECK(nvrtcDestroyProgram(&program));
  CUmodule module;
  CHECK(cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
  free(image);
  return module;
}

/* Adds a kernel after a node (NULL: after none), with a thread per item. The last block may have more threads than
 * items. */
static inline CUgraphNode add_kernel(CUgraph into, CUgraphNode after, CUmodule module, const char *name, unsigned items,
                                     void **parameters) {
  const unsigned threads = items < 128 ? items : 128;
  CUDA_KERNEL_NODE_PARAMS node = {.gridDimX = (items + threads - 1) / threads, .gridDimY = 1, .gridDimZ = 1,
                                  .blockDimX = threads, .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters};
  CUgraphNode added;
  CHECK(cuModuleGetFunction(&node.func, module, name));
  CHECK(cuGraphAddKernelNode(&added, into, after ? &after : NULL, after ? 1 : 0, &node));
  return added;
}
#endif
