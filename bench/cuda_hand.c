#include "cuda_hand.h"
#include "cuda/nvrtc.h"
#include "harness.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char text[] =
  "extern \"C\" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);\n"
  "extern \"C\" __global__ void nothing() {}\n"
  "extern \"C\" __global__ void set(int *x, int value) { *x = value; }\n"
  "extern \"C\" __global__ void more(int *x) { *x += 1; }\n"
  "extern \"C\" __global__ void less(int *left) { *left -= 1; }\n"
  "extern \"C\" __global__ void decide(const int *left, unsigned long long handle) {\n"
  "  cudaGraphSetConditional(handle, *left != 0);\n"
  "}\n"
  "extern \"C\" __global__ void less_and_decide(int *left, unsigned long long handle) {\n"
  "  cudaGraphSetConditional(handle, (*left -= 1) != 0);\n"
  "}\n"
  "extern \"C\" __global__ void tell(const int *left, volatile int *host) { *host = *left; }\n"
  "extern \"C\" __global__ void more_unless(int *x, const int *left) { if (*left != 0) *x += 1; }\n"
  "extern \"C\" __global__ void less_unless(int *left) { if (*left != 0) *left -= 1; }\n"
  "extern \"C\" __global__ void copy(int4 *to, const int4 *from, unsigned n) {\n"
  "  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = from[i];\n"
  "}\n"
  /* A grid that stays: its blocks meet behind each kernel, by counting in met[0]. Whether there is another pass is in
   * met[1] and met[2] by turns, so that nobody writes what others haven't read yet. */
  "extern \"C\" __global__ void stay(int *left, int *x, int kernels, volatile unsigned *met) {\n"
  "  __shared__ unsigned again;\n"
  "  unsigned meetings = 0;\n"
  "  for (int turn = 1;; turn = 3 - turn) {\n"
  "    for (int k = 0; k < kernels; ++k) {\n"
  "      if (threadIdx.x == 0) {\n"
  "        if (blockIdx.x == 0 && k + 1 < kernels) *x += 1;\n"
  "        if (blockIdx.x == 0 && k + 1 == kernels) met[turn] = (*left -= 1) != 0;\n"
  "        __threadfence();\n"
  "        atomicAdd((unsigned *)met, 1u);\n"
  "        for (++meetings; met[0] < meetings * gridDim.x;) {}\n"
  "        __threadfence();\n"
  "        again = met[turn];\n"
  "      }\n"
  "      __syncthreads();\n"
  "    }\n"
  "    const unsigned goes_on = again;\n"
  "    __syncthreads();\n"
  "    if (!goes_on) return;\n"
  "  }\n"
  "}\n";

const gki_cuda_driver *hand_driver;
CUstream hand_stream;
static CUcontext context;
static CUmodule module;
static int multiprocessors;

/* Entries that gk itself has no use for. */
static CUresult (*launch_kernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 CUstream, void **, void **);
static CUresult (*launch_cooperative)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                      CUstream, void **);

void hand_check(CUresult result, const char *call) {
  char why[300], message[600];
  if (result == CUDA_SUCCESS) return;
  gki_cuda_describe_result(hand_driver, result, why, sizeof why);
  snprintf(message, sizeof message, "%s: %s", call, why);
  bench_fail(message);
}

static void find(const char *name, int version, void *into) {
  CUresult (*get)(const char *, void **, int, cuuint64_t);
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *entry = library ? dlsym(library, "cuGetProcAddress")
                                                                                  : NULL;
  if (!entry) bench_fail("libcuda.so.1 has no cuGetProcAddress");
  memcpy(&get, &entry, sizeof get);
  HAND(get(name, &entry, version, 0));
  memcpy(into, &entry, sizeof entry);
}

static void load(void) {
  int major, minor;
  CUdevice device;
  gki_cuda_compiler compiler;
  gki_nvrtc_code code;
  const gki_cuda_text source = {.text = text, .file = "cuda_hand.c"};
  HAND(hand_driver->cuCtxGetDevice(&device));
  HAND(hand_driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  HAND(hand_driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  HAND(hand_driver->cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  if (gki_cuda_compiler_get(10 * major + minor, hand_driver->version, &compiler) != GK_OK ||
      gki_cuda_compile(&compiler, &source, &code) != GK_OK)
    bench_fail(gk_error());
  HAND(hand_driver->cuModuleLoadDataEx(&module, code.bytes, 0, NULL, NULL));
  gki_nvrtc_code_free(&code);
}

gk_device *hand_open(const char **why) {
  gk_device *device;
  if (gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device) != GK_OK) {
    *why = gk_error();
    return NULL;
  }
  if (gki_cuda_driver_get(&hand_driver) != GK_OK || gk_cuda_context(device, &context, &hand_stream) != GK_OK)
    bench_fail(gk_error());
  HAND(hand_driver->cuCtxPushCurrent(context));
  find("cuLaunchKernel", 4000, &launch_kernel);
  find("cuLaunchCooperativeKernel", 9000, &launch_cooperative);
  load();
  return device;
}

void hand_close(gk_device *device) {
  HAND(hand_driver->cuModuleUnload(module));
  HAND(hand_driver->cuCtxPopCurrent(NULL));
  gk_device_close(device);
}

int *hand_ints(gk_device *device, size_t count) {
  int *memory = gk_alloc(device, count * sizeof *memory, GK_DEVICE_MEMORY);
  if (!memory) bench_fail(gk_error());
  HAND(hand_driver->cuMemsetD8Async((CUdeviceptr)(uintptr_t)memory, 0, count * sizeof *memory, hand_stream));
  hand_wait();
  return memory;
}

volatile int *hand_pinned(gk_device *device, int **at) {
  int *memory = gk_alloc(device, sizeof *memory, GK_HOST_MEMORY);
  CUdeviceptr seen;
  if (!memory) bench_fail(gk_error());
  HAND(hand_driver->cuMemHostGetDevicePointer(&seen, memory, 0));
  *at = (int *)(uintptr_t)seen;
  return memory;
}

CUgraph hand_graph(void) {
  CUgraph graph;
  HAND(hand_driver->cuGraphCreate(&graph, 0));
  return graph;
}

static CUfunction function(const char *name) {
  CUfunction found;
  HAND(hand_driver->cuModuleGetFunction(&found, module, name));
  return found;
}

CUgraphNode hand_kernel(CUgraph into, CUgraphNode after, const char *name, unsigned blocks, unsigned threads,
                        void **parameters) {
  const CUDA_KERNEL_NODE_PARAMS_v1 node = {.func = function(name), .gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1,
                                           .blockDimX = threads, .blockDimY = 1, .blockDimZ = 1,
                                           .kernelParams = parameters};
  CUgraphNode added;
  HAND(hand_driver->cuGraphAddKernelNode(&added, into, after ? &after : NULL, after ? 1 : 0, &node));
  return added;
}

CUgraphConditionalHandle hand_handle(CUgraph whole, unsigned initial) {
  CUgraphConditionalHandle handle;
  HAND(hand_driver->cuGraphConditionalHandleCreate(&handle, whole, context, initial,
                                                   GKI_CU_GRAPH_COND_ASSIGN_DEFAULT));
  return handle;
}

CUgraphNode hand_conditional(CUgraph into, CUgraphNode after, CUgraphConditionalNodeType type,
                             CUgraphConditionalHandle handle, CUgraph *body) {
  CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  node.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = handle, .type = type, .size = 1, .ctx = context};
  CUgraphNode added;
  HAND(hand_driver->cuGraphAddNode(&added, into, after ? &after : NULL, NULL, after ? 1 : 0, &node));
  *body = node.conditional.phGraph_out[0];
  return added;
}

CUgraphExec hand_exec(CUgraph graph) {
  CUgraphExec exec;
  HAND(hand_driver->cuGraphInstantiateWithFlags(&exec, graph, 0));
  HAND(hand_driver->cuGraphDestroy(graph));
  HAND(hand_driver->cuGraphUpload(exec, hand_stream));
  return exec;
}

void hand_exec_end(CUgraphExec exec) { HAND(hand_driver->cuGraphExecDestroy(exec)); }
void hand_launch(CUgraphExec exec) { HAND(hand_driver->cuGraphLaunch(exec, hand_stream)); }
void hand_wait(void) { HAND(hand_driver->cuStreamSynchronize(hand_stream)); }

void hand_run(const char *name, unsigned blocks, unsigned threads, void **parameters) {
  HAND(launch_kernel(function(name), blocks, 1, 1, threads, 1, 1, 0, hand_stream, parameters, NULL));
}

void hand_run_cooperative(const char *name, unsigned threads, void **parameters) {
  const unsigned blocks = bench_is_quick() ? 1 : (unsigned)multiprocessors; /* a simulated one has them take turns */
  HAND(launch_cooperative(function(name), blocks, 1, 1, threads, 1, 1, 0, hand_stream, parameters));
}
