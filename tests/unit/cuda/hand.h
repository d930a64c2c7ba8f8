/* A program with graphs of its own beside gk, in a test on the simulated driver: its own retain of the device's
 * context, which is current during the test, its own module, stream and graph. */
#ifndef CUDA_HAND_H
#define CUDA_HAND_H
#include "world.h"

static CUcontext hand_context;
static CUstream hand_stream;
static CUmodule hand_module;

#define INVALID(words, call) assert_fails(GK_ERROR_INVALID, words, call)

/* trace[0]: the number of letters behind it. */
static const char hand_source[] =
  "extern \"C\" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);\n"
  "extern \"C\" __global__ void hand_log(int *trace, int letter) { trace[++trace[0]] = letter; }\n"
  "extern \"C\" __global__ void hand_add(int *x, int by) { atomicAdd(x, by); }\n"
  "extern \"C\" __global__ void hand_put(int *x, int value) { *x = value; }\n"
  "extern \"C\" __global__ void hand_copy(int *to, const int *from) { *to = *from; }\n"
  "extern \"C\" __global__ void hand_set(unsigned long long handle, const int *x) {\n"
  "  cudaGraphSetConditional(handle, *x != 0);\n"
  "}\n";

/* A kernel's node with two parameters of 8 bytes, the second of which may be read as 4. */
static inline CUgraphNode hand_add_after(CUgraph into, const CUgraphNode *after, size_t count, const char *kernel,
                                         uint64_t a, uint64_t b) {
  void *parameters[] = {&a, &b};
  CUDA_KERNEL_NODE_PARAMS_v1 node = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1,
                                     .blockDimZ = 1, .kernelParams = parameters};
  CUgraphNode added = NULL;
  RIGHT(cu.cuModuleGetFunction(&node.func, hand_module, kernel));
  RIGHT(cu.cuGraphAddKernelNode(&added, into, after, count, &node));
  return added;
}

static inline CUgraphNode hand_add(CUgraph into, CUgraphNode after, const char *kernel, const void *a, uint64_t b) {
  return hand_add_after(into, after ? &after : NULL, after ? 1 : 0, kernel, (uint64_t)(uintptr_t)a, b);
}

/* hand_set of a block's handle. */
static inline CUgraphNode hand_decide(CUgraph into, CUgraphNode after, uint64_t handle, const int *flag) {
  return hand_add_after(into, after ? &after : NULL, after ? 1 : 0, "hand_set", handle, (uint64_t)(uintptr_t)flag);
}

static inline void hand_launch(CUgraphExec exec) {
  RIGHT(cu.cuGraphLaunch(exec, hand_stream));
  RIGHT(cu.cuStreamSynchronize(hand_stream));
}

static inline void release_primary(UNUSED void *context) { expect_discarded(cu.cuDevicePrimaryCtxRelease(0)); }
static inline void unload_module(void *module) { expect_discarded(cu.cuModuleUnload(module)); }

static inline int setup_hand(void **state) {
  if (setup_cuda(state) != 0) return -1;
  RIGHT(cu.cuDevicePrimaryCtxRetain(&hand_context, 0));
  keep(&hand_context, release_primary);
  RIGHT(cu.cuCtxPushCurrent(hand_context));
  keep(hand_context, leave_context);
  hand_stream = new_stream();
  int version;
  size_t bytes;
  RIGHT(cu.cuDriverGetVersion(&version));
  void *image = compile_source(version >= 13000 ? "libnvrtc.so.13" : "libnvrtc.so.12", hand_source,
                               (const char *const[]){"--gpu-architecture=sm_90"}, 1, false, &bytes);
  RIGHT(cu.cuModuleLoadDataEx(&hand_module, image, 0, NULL, NULL));
  keep(hand_module, unload_module);
  free(image);
  return 0;
}

#define TEST_ON_HAND(test) DEVICE_TEST(test, setup_hand, teardown_cuda)

#endif
