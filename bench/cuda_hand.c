#include "cuda_hand.h"
#include "cuda/nvrtc.h"
#include "harness.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

const char hand_text[] =
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
  /* A checkpoint: its gate, and what looks at its flag behind it. */
  "extern \"C\" __global__ void gate(const int *yielded, unsigned long long handle) {\n"
  "  cudaGraphSetConditional(handle, *yielded == 0);\n"
  "}\n"
  "extern \"C\" __global__ void note(const int *flag, int *yielded, int label) {\n"
  "  if (*flag != 0 && *yielded == 0) *yielded = label;\n"
  "}\n"
  /* Every other time it asks for a yield, and the host sees at once that it is there. */
  "extern \"C\" __global__ void ask(int *count, int *flag, volatile int *host) {\n"
  "  *count += 1;\n"
  "  *flag = *count & 1;\n"
  "  *host = *count;\n"
  "}\n"
  /* Arithmetic that no compiler makes shorter. */
  "extern \"C\" __global__ void mix(int *x, int rounds) {\n"
  "  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;\n"
  "  unsigned v = (unsigned)x[at];\n"
  "  for (int k = 0; k < rounds; ++k) { v ^= v << 13; v ^= v >> 17; v ^= v << 5; }\n"
  "  x[at] = (int)v;\n"
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
static gk_device *opened;
int hand_multiprocessors;

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

void hand_must(gk_result result) {
  if (result != GK_OK) bench_fail(gk_error());
}

void hand_find(const char *name, int version, void *into) {
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
  const gki_cuda_text source = {.text = hand_text, .file = "cuda_hand.c"};
  HAND(hand_driver->cuCtxGetDevice(&device));
  HAND(hand_driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  HAND(hand_driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  HAND(hand_driver->cuDeviceGetAttribute(&hand_multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  if (gki_cuda_compiler_get(10 * major + minor, hand_driver->version, &compiler) != GK_OK ||
      gki_cuda_compile(&compiler, &source, &code) != GK_OK)
    bench_fail(gk_error());
  HAND(hand_driver->cuModuleLoadDataEx(&module, code.bytes, 0, NULL, NULL));
  gki_nvrtc_code_free(&code);
}

gk_device *hand_open(const char **why) {
  if (gk_device_open(&(gk_device_desc){.backend = "cuda"}, &opened) != GK_OK) {
    *why = gk_error();
    return NULL;
  }
  hand_must(gki_cuda_driver_get(&hand_driver));
  if (hand_driver->version < 12040) { /* by hand there would be no loops or gates to be held against */
    static char old[80];
    snprintf(old, sizeof old, "the driver is of CUDA %d.%d, and the graphs by hand need 12.4",
             hand_driver->version / 1000, hand_driver->version % 1000 / 10);
    *why = old;
    gk_device_close(opened);
    return NULL;
  }
  hand_must(gk_cuda_context(opened, &context, &hand_stream));
  HAND(hand_driver->cuCtxPushCurrent(context));
  hand_find("cuLaunchKernel", 4000, &launch_kernel);
  hand_find("cuLaunchCooperativeKernel", 9000, &launch_cooperative);
  load();
  return opened;
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

int hand_value(const int *at) {
  int value;
  hand_must(gk_download(opened, &value, at, sizeof value));
  return value;
}

void hand_put(int *at, int value) { hand_must(gk_upload(opened, at, &value, sizeof value)); }

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

CUfunction hand_function(const char *name) {
  CUfunction found;
  HAND(hand_driver->cuModuleGetFunction(&found, module, name));
  return found;
}

CUgraphNode hand_add(CUgraph into, CUgraphNode after, CUfunction function, unsigned blocks, unsigned threads,
                     void **parameters) {
  const CUDA_KERNEL_NODE_PARAMS_v1 node = {.func = function, .gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1,
                                           .blockDimX = threads, .blockDimY = 1, .blockDimZ = 1,
                                           .kernelParams = parameters};
  CUgraphNode added;
  HAND(hand_driver->cuGraphAddKernelNode(&added, into, after ? &after : NULL, after ? 1 : 0, &node));
  return added;
}

CUgraphNode hand_kernel(CUgraph into, CUgraphNode after, const char *name, unsigned blocks, unsigned threads,
                        void **parameters) {
  return hand_add(into, after, hand_function(name), blocks, threads, parameters);
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

CUgraphExec hand_instantiate(CUgraph graph) {
  CUgraphExec exec;
  HAND(hand_driver->cuGraphInstantiateWithFlags(&exec, graph, 0));
  HAND(hand_driver->cuGraphUpload(exec, hand_stream));
  return exec;
}

CUgraphExec hand_exec(CUgraph graph) {
  const CUgraphExec exec = hand_instantiate(graph);
  HAND(hand_driver->cuGraphDestroy(graph));
  return exec;
}

void hand_exec_end(CUgraphExec exec) { HAND(hand_driver->cuGraphExecDestroy(exec)); }
void hand_launch(CUgraphExec exec) { HAND(hand_driver->cuGraphLaunch(exec, hand_stream)); }
void hand_wait(void) { HAND(hand_driver->cuStreamSynchronize(hand_stream)); }

void hand_run_function(CUfunction function, unsigned blocks, unsigned threads, void **parameters) {
  HAND(launch_kernel(function, blocks, 1, 1, threads, 1, 1, 0, hand_stream, parameters, NULL));
}

void hand_run(const char *name, unsigned blocks, unsigned threads, void **parameters) {
  hand_run_function(hand_function(name), blocks, threads, parameters);
}

void hand_run_cooperative(const char *name, unsigned threads, void **parameters) {
  /* The simulated GPU has the blocks of such a grid take turns: more than one would wait for ever. */
  const unsigned blocks = bench_is_quick() ? 1 : (unsigned)hand_multiprocessors;
  HAND(launch_cooperative(hand_function(name), blocks, 1, 1, threads, 1, 1, 0, hand_stream, parameters));
}
