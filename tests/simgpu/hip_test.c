/* The simulated HIP of version SIM_HIP: its entries do what the driver's do, and each fault what users report. */
#include "simgpu.h"
#include "fallback/hip/abi.h"
#include "gk_backend.h"
#include "gk_kernel.h"
#include "lower/task.h"
#include "unit/support/test.h"
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

GK_SOURCE(hip_kernels)
GK_KERNEL(total, (in(int, x), sum(int, all))) { all[0] += x[i]; }
GK_SOURCE_END

typedef struct hip_library {
#define MEMBER(need, result, name, parameters) result(*name) parameters;
  GKI_HIP_ENTRIES(MEMBER)
#undef MEMBER
#define MEMBER(result, name, parameters) result(*name) parameters;
  GKI_HIPRTC_ENTRIES(MEMBER)
#undef MEMBER
} hip_library;

static hip_library hip;
static const simgpu *sim;
static hipStream_t stream;
static hipModule_t module;
static hipFunction_t put, sum;
static const char SOURCE[] =
  "extern \"C\" __global__ void put(int *to, int at, short value) { to[at] = value; }\n"
  "extern \"C\" __global__ void sum(int *to) {\n"
  "  int v = threadIdx.x;\n"
  "  for (int k = warpSize / 2; k > 0; k /= 2) v += __shfl_down(v, k);\n"
  "  if (threadIdx.x == 0) *to = v;\n"
  "}\n";

static void *open_library(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  return library;
}

static void load_hip(void) {
  char path[128];
  snprintf(path, sizeof path, "build/simgpu/hip%d/libamdhip64.so.%d", SIM_HIP, SIM_HIP);
  void *library = open_library(path), *rtc = library;
  if (SIM_HIP > 5) {
    snprintf(path, sizeof path, "build/simgpu/hip%d/libhiprtc.so.%d", SIM_HIP, SIM_HIP);
    rtc = open_library(path);
    assert_null(dlsym(library, "hiprtcVersion"));
  }
#define FIND(need, result, name, parameters) *(void **)(void *)&hip.name = dlsym(library, #name);
  GKI_HIP_ENTRIES(FIND)
#undef FIND
#define FIND(result, name, parameters) \
  *(void **)(void *)&hip.name = dlsym(rtc, #name); \
  assert_non_null(hip.name);
  GKI_HIPRTC_ENTRIES(FIND)
#undef FIND
}

#define RIGHT(call) assert_int_equal(hip.call, hipSuccess)
#define WRONG(code, call) assert_int_equal(hip.call, code)

static char said[4096]; /* by the compiler, the last time */
static hiprtcResult compile(const char *source, const char *option, char **code) {
  hiprtcProgram program;
  size_t bytes = 0;
  assert_int_equal(hip.hiprtcCreateProgram(&program, source, "test.hip", 0, NULL, NULL), HIPRTC_SUCCESS);
  const char *options[] = {option, "-O3", "-ffp-contract=off"};
  const hiprtcResult result = hip.hiprtcCompileProgram(program, 3, options);
  assert_int_equal(hip.hiprtcGetProgramLogSize(program, &bytes), HIPRTC_SUCCESS);
  assert_in_range(bytes, 1, sizeof said);
  assert_int_equal(hip.hiprtcGetProgramLog(program, said), HIPRTC_SUCCESS);
  *code = NULL;
  if (result == HIPRTC_SUCCESS) {
    assert_int_equal(hip.hiprtcGetCodeSize(program, &bytes), HIPRTC_SUCCESS);
    *code = malloc(bytes);
    assert_int_equal(hip.hiprtcGetCode(program, *code), HIPRTC_SUCCESS);
  }
  assert_int_equal(hip.hiprtcDestroyProgram(&program), HIPRTC_SUCCESS);
  assert_null(program);
  return result;
}

static hipModule_t load_source(const char *source) {
  char *code;
  hipModule_t loaded = NULL;
  if (compile(source, "--offload-arch=gfx90a", &code) != HIPRTC_SUCCESS) fail_msg("%s", said);
  RIGHT(hipModuleLoadData(&loaded, code));
  free(code);
  return loaded;
}

/* With a stream and a module. */
static int begin(UNUSED void **state) {
  unsetenv("SIMHIP_FAULT");
  setenv("SIMHIP_ARCH", "gfx90a", 1);
  load_hip();
  RIGHT(hipStreamCreateWithFlags(&stream, GKI_HIP_STREAM_NON_BLOCKING));
  module = load_source(SOURCE);
  RIGHT(hipModuleGetFunction(&put, module, "put"));
  RIGHT(hipModuleGetFunction(&sum, module, "sum"));
  sim->mark();
  return 0;
}

/* By then a test has given back everything that it made. The contexts live on. */
static int end(UNUSED void **state) {
  unsetenv("SIMHIP_FAULT");
  RIGHT(hipModuleUnload(module));
  RIGHT(hipStreamDestroy(stream));
  if (sim->broken()) fail_msg("%s", sim->first_broken());
  assert_int_equal(sim->alive(SIMGPU_ALL), sim->alive(SIMGPU_RETAINS));
  return 0;
}

#define HIP_TEST(test) TEST_WITH(test, begin, end)

static int *new_memory(size_t count) {
  void *memory = NULL;
  RIGHT(hipMalloc(&memory, count * sizeof(int)));
  RIGHT(hipMemsetD8Async(memory, 0, count * sizeof(int), stream));
  return memory;
}

static int read_int(const int *from) {
  int value = -1;
  RIGHT(hipMemcpyDtoHAsync(&value, (hipDeviceptr_t)(uintptr_t)from, sizeof value, stream));
  RIGHT(hipStreamSynchronize(stream));
  return value;
}

/* ---- devices ---- */

HIP_TEST(devices_and_errors) {
  int count = 0, value = 0, device = -1;
  RIGHT(hipGetDeviceCount(&count));
  assert_int_equal(count, 2);
  RIGHT(hipRuntimeGetVersion(&value));
  assert_int_equal(value / 10000000, SIM_HIP);
  RIGHT(hipDeviceGetAttribute(&value, hipDeviceAttributeMultiprocessorCount, 0));
  assert_in_range(value, 1, 1000);
  RIGHT(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 0));
  assert_int_equal(value, 64);
  WRONG(hipErrorInvalidValue, hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)7777, 0));
  setenv("SIMHIP_ARCH", "gfx1100", 1);
  RIGHT(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 0));
  assert_int_equal(value, 32);
  WRONG(hipErrorInvalidDevice, hipSetDevice(2));
  RIGHT(hipGetDevice(&device));
  assert_int_equal(device, 0);
  assert_string_equal(hip.hipGetErrorName(hipErrorNoBinaryForGpu), "hipErrorNoBinaryForGpu");
  assert_string_equal(hip.hipGetErrorString((hipError_t)7777), "hipErrorUnknown");
}

HIP_TEST(properties_have_the_layout_of_the_version) {
  char properties[GKI_HIP_PROPERTIES_6 + 1];
  memset(properties, 'x', sizeof properties);
  RIGHT(hipGetDeviceProperties(properties, 0));
  assert_string_equal(properties + GKI_HIP_ARCHITECTURE_5, "gfx90a:sramecc+:xnack-");
  assert_int_equal(properties[GKI_HIP_PROPERTIES_5], 'x');
  assert_int_equal(hip.hipGetDevicePropertiesR0600 != NULL, SIM_HIP > 5);
  if (SIM_HIP == 5) return;
  RIGHT(hipGetDevicePropertiesR0600(properties, 0));
  assert_string_equal(properties + GKI_HIP_ARCHITECTURE_6, "gfx90a:sramecc+:xnack-");
  assert_int_equal(properties[GKI_HIP_PROPERTIES_6], 'x');
}

/* Memory of two devices at once, from one thread. */
HIP_TEST(a_threads_device_decides) {
  void *memory[2];
  for (int k = 0; k < 4; ++k) {
    RIGHT(hipSetDevice(1 - k % 2));
    if (k < 2) RIGHT(hipMalloc(&memory[k], 64));
    else RIGHT(hipFree(memory[k - 2]));
  }
}

/* ---- memory, streams, events ---- */

HIP_TEST(memory_and_copies) {
  void *pinned = NULL, *none = &pinned;
  int *memory = new_memory(2), value = 7;
  RIGHT(hipHostMalloc(&pinned, 64, GKI_HIP_HOST_MALLOC_MAPPED | GKI_HIP_HOST_MALLOC_PORTABLE));
  RIGHT(hipMemcpyHtoDAsync(memory, &value, sizeof value, stream));
  RIGHT(hipMemcpyDtoDAsync(memory + 1, memory, sizeof value, stream));
  RIGHT(hipMemcpyDtoDAsync(pinned, memory + 1, sizeof value, stream));
  RIGHT(hipStreamSynchronize(stream));
  assert_int_equal(*(int *)pinned, 7);
  RIGHT(hipMalloc(&none, 0));
  assert_null(none);
  RIGHT(hipFree(NULL));
  RIGHT(hipHostFree(NULL));
  RIGHT(hipHostFree(pinned));
  RIGHT(hipFree(memory));
  WRONG(hipErrorOutOfMemory, hipMalloc(&none, (size_t)1 << 60));
}

HIP_TEST(streams_and_events) {
  hipEvent_t event = NULL;
  hipStream_t other = NULL;
  hipStreamCaptureStatus status = hipStreamCaptureStatusActive;
  RIGHT(hipStreamCreateWithFlags(&other, GKI_HIP_STREAM_NON_BLOCKING));
  RIGHT(hipEventCreateWithFlags(&event, GKI_HIP_EVENT_DISABLE_TIMING | GKI_HIP_EVENT_BLOCKING_SYNC));
  int *memory = new_memory(1);
  sim->hold(true);
  RIGHT(hipMemsetD8Async(memory, 1, sizeof *memory, stream));
  RIGHT(hipEventRecord(event, stream));
  WRONG(hipErrorNotReady, hipEventQuery(event));
  WRONG(hipErrorNotReady, hipStreamQuery(stream));
  sim->hold(false);
  RIGHT(hipEventSynchronize(event));
  RIGHT(hipStreamSynchronize(other));
  RIGHT(hipEventQuery(event));
  RIGHT(hipStreamIsCapturing(stream, &status));
  assert_int_equal(status, hipStreamCaptureStatusNone);
  RIGHT(hipEventDestroy(event));
  RIGHT(hipStreamDestroy(other));
  RIGHT(hipFree(memory));
}

/* ---- kernels ---- */

typedef struct put_args { int *to; int at; short value; } put_args;

static hipError_t launch_unpacked(hipFunction_t f, unsigned blocks, put_args *a) {
  void *parameters[] = {&a->to, &a->at, &a->value};
  return hip.hipModuleLaunchKernel(f, blocks, 1, 1, 64, 1, 1, 0, stream, parameters, NULL);
}

#define PACKED(args, bytes) \
  (void *[]){(void *)GKI_HIP_LAUNCH_PARAM_BUFFER_POINTER, (args), (void *)GKI_HIP_LAUNCH_PARAM_BUFFER_SIZE, (bytes), \
             (void *)GKI_HIP_LAUNCH_PARAM_END}
static hipError_t launch_packed(hipFunction_t f, put_args *a, size_t bytes) {
  return hip.hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, stream, NULL, PACKED(a, &bytes));
}

HIP_TEST(arguments_have_two_forms) {
  int *memory = new_memory(2), blocks = 0;
  RIGHT(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, put, 64, 0));
  assert_true(blocks > 0);
  put_args a = {memory, 0, 3}, b = {memory, 1, 4};
  assert_int_equal(launch_unpacked(put, 1, &a), hipSuccess);
  assert_int_equal(launch_packed(put, &b, sizeof b), hipSuccess);
  assert_int_equal(read_int(memory), 3);
  assert_int_equal(read_int(memory + 1), 4);
  assert_int_equal(launch_packed(put, &b, 8), hipErrorInvalidValue);
  assert_int_equal(launch_unpacked(put, 1u << 26, &a), hipErrorInvalidValue); /* 2^32 threads */
  WRONG(hipErrorInvalidValue, hipModuleLaunchKernel(put, 1, 1, 1, 64, 1, 1, 0, stream, NULL, NULL));
  setenv("SIMHIP_FAULT", "extra", 1);
  assert_int_equal(launch_packed(put, &a, sizeof a), hipErrorNotSupported);
  setenv("SIMHIP_FAULT", "extra,kernelparams", 1);
  b.value = 5;
  assert_int_equal(launch_unpacked(put, 1, &b), hipSuccess);
  assert_int_equal(read_int(memory), 0); /* `at` and `value` are lost */
  assert_int_equal(read_int(memory + 1), 4);
  RIGHT(hipFree(memory));
}

/* A shuffle needs blocks of whole waves. */
HIP_TEST(waves) {
  int *memory = new_memory(1);
  void *parameters[] = {&memory};
  RIGHT(hipModuleLaunchKernel(sum, 1, 1, 1, 64, 1, 1, 0, stream, parameters, NULL));
  assert_int_equal(read_int(memory), 31 * 32 / 2);
  assert_int_equal(sim->broken(), 0);
  RIGHT(hipModuleLaunchKernel(sum, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
  RIGHT(hipStreamSynchronize(stream));
  assert_non_null(strstr(sim->first_broken(), "__trap"));
  sim->forgive();
  RIGHT(hipFree(memory));
}

HIP_TEST(composed_kernel) {
  char *text = gk_compose(&total, "hip");
  if (!text) fail_msg("%s", gk_error());
  hipModule_t composed = load_source(text);
  hipFunction_t function = NULL;
  RIGHT(hipModuleGetFunction(&function, composed, "total"));
  gk_free_text(text);
  struct { _Alignas(16) gki_record head; uint64_t arguments[2]; } record = {.head = {.count = 100}};
  int *memory = new_memory(100 + 1 + sizeof record / sizeof(int)), *all = memory + sizeof record / sizeof(int);
  RIGHT(hipMemsetD8Async(all + 1, 1, 100 * sizeof(int), stream));
  record.arguments[0] = (uintptr_t)(all + 1);
  record.arguments[1] = (uintptr_t)all;
  RIGHT(hipMemcpyHtoDAsync(memory, &record, sizeof record, stream));
  gki_task task = {.record = (uintptr_t)memory};
  void *parameters[] = {&task};
  RIGHT(hipModuleLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, stream, parameters, NULL));
  assert_int_equal(read_int(all), 100 * 0x01010101);
  RIGHT(hipFree(memory));
  RIGHT(hipModuleUnload(composed));
}

HIP_TEST(code_for_another_gpu_is_refused) {
  static const char EMPTY[] = "extern \"C\" __global__ void none() {}";
  char *code;
  hipModule_t loaded = NULL;
  assert_int_equal(compile(EMPTY, "--offload-arch=gfx1030", &code), HIPRTC_SUCCESS);
  WRONG(hipErrorNoBinaryForGpu, hipModuleLoadData(&loaded, code));
  setenv("SIMHIP_ARCH", "gfx1030", 1);
  RIGHT(hipModuleLoadData(&loaded, code));
  RIGHT(hipModuleUnload(loaded));
  free(code);
  static const char BUNDLE[64] = "__CLANG_OFFLOAD_BUNDLE__";
  static const unsigned char OBJECT[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, [18] = 224};
  WRONG(hipErrorNoBinaryForGpu, hipModuleLoadData(&loaded, BUNDLE));
  WRONG(hipErrorNoBinaryForGpu, hipModuleLoadData(&loaded, OBJECT));
  WRONG(hipErrorInvalidImage, hipModuleLoadData(&loaded, EMPTY));
  WRONG(hipErrorNotFound, hipModuleGetFunction(&put, module, "nothing"));
}

HIP_TEST(compiler_says_what_is_wrong) {
  char *code;
  int major = 0, minor = 0;
  assert_int_equal(hip.hiprtcVersion(&major, &minor), HIPRTC_SUCCESS);
  assert_int_equal(compile("\nint x = y;", "--offload-arch=gfx90a", &code), HIPRTC_ERROR_COMPILATION);
  if (!strstr(said, "test.hip(2)")) fail_msg("%s", said);
  assert_int_equal(compile("", "--offload-arch=gfx90a:sramecc+:xnack-", &code), HIPRTC_SUCCESS);
  free(code);
  assert_int_equal(compile("", "--no-such-option", &code), HIPRTC_ERROR_INVALID_OPTION);
  assert_string_equal(hip.hiprtcGetErrorString(HIPRTC_ERROR_COMPILATION), "HIPRTC_ERROR_COMPILATION");
}

/* In HIP 5.2 it ends the process. */
HIP_TEST(unknown_architecture) {
  char *code;
  if (SIM_HIP > 5) {
    assert_int_equal(compile("", "--offload-arch=gfx9999", &code), HIPRTC_ERROR_COMPILATION);
    return;
  }
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    fclose(stderr);
    signal(SIGABRT, SIG_DFL);
    compile("", "--offload-arch=gfx942", &code);
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* ---- graphs ---- */

static hipError_t add(hipGraph_t graph, hipGraphNode_t *node, const hipGraphNode_t *after, put_args *a, bool packed) {
  void *parameters[] = {&a->to, &a->at, &a->value};
  size_t bytes = sizeof *a;
  const hipKernelNodeParams all = {.blockDim = {64, 1, 1}, .gridDim = {1, 1, 1}, .func = put,
                                   .kernelParams = packed ? NULL : parameters,
                                   .extra = packed ? PACKED(a, &bytes) : NULL};
  return hip.hipGraphAddKernelNode(node, graph, after, after ? 1 : 0, &all);
}

static void refuse_node(void) {
  hipGraph_t graph = NULL;
  hipGraphNode_t node = NULL;
  put_args a = {NULL, 0, 0};
  RIGHT(hipGraphCreate(&graph, 0));
  assert_int_equal(add(graph, &node, NULL, &a, false), hipErrorInvalidValue);
  RIGHT(hipGraphDestroy(graph));
}

#if SIM_HIP == 5
HIP_TEST(functions_of_modules_are_refused) { refuse_node(); }
#else
static void run_graph(hipGraph_t graph) {
  hipGraphExec_t exec = NULL;
  RIGHT(hipGraphInstantiateWithFlags(&exec, graph, 0));
  RIGHT(hipGraphLaunch(exec, stream));
  RIGHT(hipStreamSynchronize(stream));
  RIGHT(hipGraphExecDestroy(exec));
}

/* Node k of a chain puts k + 1 to place k. */
static void run_chain(int *memory, int count, bool packed) {
  hipGraph_t graph = NULL;
  hipGraphNode_t last = NULL, node = NULL;
  RIGHT(hipGraphCreate(&graph, 0));
  RIGHT(hipGraphAddEmptyNode(&last, graph, NULL, 0));
  for (int k = 0; k < count; ++k, last = node) {
    put_args a = {memory, k, (short)(k + 1)};
    assert_int_equal(add(graph, &node, &last, &a, packed), hipSuccess);
  }
  run_graph(graph);
  RIGHT(hipGraphDestroy(graph));
}

HIP_TEST(graph_of_kernels) {
  int *memory = new_memory(256);
  for (int packed = 0; packed < 2; ++packed) {
    RIGHT(hipMemsetD8Async(memory, 0, 256 * sizeof *memory, stream));
    run_chain(memory, 256, packed);
    for (int k = 0; k < 256; k += 5) assert_int_equal(read_int(memory + k), k + 1);
  }
  RIGHT(hipFree(memory));
}

HIP_TEST(fault_refuse_kernel_node) {
  setenv("SIMHIP_FAULT", "refuse-kernel-node", 1);
  refuse_node();
}

HIP_TEST(fault_stale_pointers) {
  int *memory = new_memory(256);
  setenv("SIMHIP_FAULT", "stale-pointers", 1);
  run_chain(memory, 199, false);
  assert_int_equal(read_int(memory + 198), 199);
  run_chain(memory, 256, false);
  assert_int_equal(read_int(memory + 198), 199);
  assert_int_equal(read_int(memory + 220), 0);
  RIGHT(hipFree(memory));
}

HIP_TEST(fault_exec_keeps_arguments) {
  int *memory = new_memory(4);
  setenv("SIMHIP_FAULT", "exec-keeps-arguments", 1);
  run_chain(memory, 2, false);
  assert_int_equal(read_int(memory + 1), 2);
  run_chain(memory + 2, 2, false);
  assert_int_equal(read_int(memory + 2), 0);
  RIGHT(hipFree(memory));
}

HIP_TEST(fault_several_roots) {
  int *memory = new_memory(2);
  hipGraph_t graph = NULL;
  hipGraphNode_t node = NULL;
  put_args a = {memory, 0, 1}, b = {memory, 1, 1};
  for (int fault = 0; fault < 2; ++fault) {
    if (fault) setenv("SIMHIP_FAULT", "several-roots", 1);
    RIGHT(hipMemsetD8Async(memory, 0, 2 * sizeof *memory, stream));
    RIGHT(hipGraphCreate(&graph, 0));
    assert_int_equal(add(graph, &node, NULL, &a, false), hipSuccess);
    assert_int_equal(add(graph, &node, NULL, &b, true), hipSuccess);
    run_graph(graph);
    RIGHT(hipGraphDestroy(graph));
    assert_int_equal(read_int(memory) + read_int(memory + 1), fault ? 1 : 2);
  }
  RIGHT(hipFree(memory));
}
#endif

/* ---- failures ---- */

/* The driver's failures are HIP's, and strictness is the driver's. */
HIP_TEST(failures_come_through) {
  void *memory = NULL;
  sim->mark();
  (sim->fail)(1, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
  WRONG(hipErrorOutOfMemory, hipMalloc(&memory, 64));
  assert_string_equal(sim->failed(), "cuMemAlloc");
  sim->mark();
  int *freed = new_memory(1);
  RIGHT(hipStreamSynchronize(stream));
  RIGHT(hipFree(freed));
  assert_int_not_equal(hip.hipFree(freed), hipSuccess);
  assert_true(strncmp(sim->first_broken(), "free:", 5) == 0);
  sim->forgive();
}

/* A failed device works again when nothing is left. */
HIP_TEST(lost_device) {
  int *memory = new_memory(1);
  RIGHT(hipStreamSynchronize(stream));
  (sim->fail)(1, CUDA_ERROR_LAUNCH_FAILED, SIMGPU_LATE);
  RIGHT(hipMemsetD8Async(memory, 1, sizeof *memory, stream));
  WRONG(hipErrorLaunchFailure, hipStreamSynchronize(stream));
  hip.hipFree(memory);
  hip.hipModuleUnload(module);
  hip.hipStreamDestroy(stream);
  sim->mark();
  RIGHT(hipStreamCreateWithFlags(&stream, GKI_HIP_STREAM_NON_BLOCKING));
  RIGHT(hipStreamSynchronize(stream));
  module = load_source(SOURCE);
}

static int load_driver(UNUSED void **state) {
  setenv("SIMGPU_DEVICES", "2", 1);
  sim = dlsym(open_library("build/simgpu/libcuda.so.1"), "simgpu_control");
  open_library("build/simgpu/libnvrtc.so.13");
  return sim ? 0 : -1;
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
