#include "bench/cuda/hand.h"
#include "bench/harness/harness.h"
#include "cuda/compile.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char bench_hand_text[] =
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
  "extern \"C\" __global__ void post(const int *left, volatile int *host) { *host = *left; }\n"
  "extern \"C\" __global__ void more_unless(int *x, const int *left) { if (*left != 0) *x += 1; }\n"
  "extern \"C\" __global__ void less_unless(int *left) { if (*left != 0) *left -= 1; }\n"
  "extern \"C\" __global__ void copy(int4 *to, const int4 *from, unsigned n) {\n"
  "  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = from[i];\n"
  "}\n"
  /* A checkpoint: its gate, and the kernel after it that reads its flag. */
  "extern \"C\" __global__ void gate(const int *yielded, unsigned long long handle) {\n"
  "  cudaGraphSetConditional(handle, *yielded == 0);\n"
  "}\n"
  "extern \"C\" __global__ void note(const int *flag, int *yielded, int label) {\n"
  "  if (*flag != 0 && *yielded == 0) *yielded = label;\n"
  "}\n"
  /* Asks for a yield every other time. The host sees at once that the kernel ran. */
  "extern \"C\" __global__ void ask(int *count, int *flag, volatile int *host) {\n"
  "  *count += 1;\n"
  "  *flag = *count & 1;\n"
  "  *host = *count;\n"
  "}\n"
  /* Arithmetic that compilers can't shorten. */
  "extern \"C\" __global__ void mix(int *x, int rounds) {\n"
  "  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;\n"
  "  unsigned v = (unsigned)x[at];\n"
  "  for (int k = 0; k < rounds; ++k) { v ^= v << 13; v ^= v >> 17; v ^= v << 5; }\n"
  "  x[at] = (int)v;\n"
  "}\n"
  /* A grid that stays: its blocks wait for each other after each kernel, by counting in barrier[0]. barrier[1] and
   * barrier[2] hold by turns whether there is another pass: no block overwrites what another must still read. */
  "extern \"C\" __global__ void stay(int *left, int *x, int kernels, volatile unsigned *barrier) {\n"
  "  __shared__ unsigned again;\n"
  "  unsigned barriers = 0;\n"
  "  for (int turn = 1;; turn = 3 - turn) {\n"
  "    for (int k = 0; k < kernels; ++k) {\n"
  "      if (threadIdx.x == 0) {\n"
  "        if (blockIdx.x == 0 && k + 1 < kernels) *x += 1;\n"
  "        if (blockIdx.x == 0 && k + 1 == kernels) barrier[turn] = (*left -= 1) != 0;\n"
  "        __threadfence();\n"
  "        atomicAdd((unsigned *)barrier, 1u);\n"
  "        for (++barriers; barrier[0] < barriers * gridDim.x;) {}\n"
  "        __threadfence();\n"
  "        again = barrier[turn];\n"
  "      }\n"
  "      __syncthreads();\n"
  "    }\n"
  "    const unsigned goes_on = again;\n"
  "    __syncthreads();\n"
  "    if (!goes_on) return;\n"
  "  }\n"
  "}\n";

const gki_cuda_driver *bench_hand_driver;
CUstream bench_hand_stream;
static CUcontext context;
static CUmodule module;
static gk_device *opened;
int bench_hand_multiprocessors;
static gki_cuda_compiler compiler;

/* Entries that gk itself doesn't use. */
static CUresult (*launch_kernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 CUstream, void **, void **);
static CUresult (*launch_cooperative)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                      CUstream, void **);

void bench_hand_check(CUresult result, const char *call) {
  char why[300], message[600];
  if (result == CUDA_SUCCESS) return;
  gki_cuda_describe_result(bench_hand_driver, result, why, sizeof why);
  snprintf(message, sizeof message, "%s: %s", call, why);
  bench_fail(message);
}

bool bench_hand_has(const char *name, int version, void *into) {
  CUresult (*get)(const char *, void **, int, cuuint64_t);
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *entry = library ? dlsym(library, "cuGetProcAddress")
                                                                                  : NULL;
  if (!entry) bench_fail("libcuda.so.1 has no cuGetProcAddress");
  memcpy(&get, &entry, sizeof get);
  if (get(name, &entry, version, 0) != CUDA_SUCCESS || !entry) return false;
  memcpy(into, &entry, sizeof entry);
  return true;
}

void bench_hand_find(const char *name, int version, void *into) {
  if (!bench_hand_has(name, version, into)) bench_fail("the driver lacks an entry that each has");
}

static void load(CUdevice device) {
  int major, minor;
  gki_compiled code;
  const gki_unit source = {.text = bench_hand_text, .file = "bench/cuda/hand.c"};
  HAND(bench_hand_driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  HAND(bench_hand_driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  HAND(bench_hand_driver->cuDeviceGetAttribute(&bench_hand_multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                               device));
  if (gki_cuda_compiler_get(10 * major + minor, bench_hand_driver->version, &compiler) != GK_OK ||
      gki_cuda_compile(&compiler, &source, &code) != GK_OK)
    bench_fail(gk_error());
  HAND(bench_hand_driver->cuModuleLoadDataEx(&module, code.bytes, 0, NULL, NULL));
  gki_compiled_free(&code);
}

int *bench_hand_ints(gk_device *device, size_t count) {
  int *memory = gk_alloc(device, count * sizeof *memory, GK_DEVICE_MEMORY);
  if (!memory) bench_fail(gk_error());
  HAND(bench_hand_driver->cuMemsetD8Async((CUdeviceptr)(uintptr_t)memory, 0, count * sizeof *memory,
                                          bench_hand_stream));
  bench_hand_wait();
  return memory;
}

int bench_hand_value(const int *at) {
  int value;
  bench_must(gk_download(opened, &value, at, sizeof value));
  return value;
}

void bench_hand_put(int *at, int value) { bench_must(gk_upload(opened, at, &value, sizeof value)); }

volatile int *bench_hand_pinned(gk_device *device, int **at) {
  int *memory = gk_alloc(device, sizeof *memory, GK_HOST_MEMORY);
  CUdeviceptr seen;
  if (!memory) bench_fail(gk_error());
  HAND(bench_hand_driver->cuMemHostGetDevicePointer(&seen, memory, 0));
  *at = (int *)(uintptr_t)seen;
  return memory;
}

CUgraph bench_hand_graph(void) {
  CUgraph graph;
  HAND(bench_hand_driver->cuGraphCreate(&graph, 0));
  return graph;
}

CUfunction bench_hand_function(const char *name) {
  CUfunction found;
  HAND(bench_hand_driver->cuModuleGetFunction(&found, module, name));
  return found;
}

CUgraphNode bench_hand_add(CUgraph into, CUgraphNode after, CUfunction function, unsigned blocks, unsigned threads,
                           void **parameters) {
  const CUDA_KERNEL_NODE_PARAMS_v1 node = {.func = function, .gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1,
                                           .blockDimX = threads, .blockDimY = 1, .blockDimZ = 1,
                                           .kernelParams = parameters};
  CUgraphNode added;
  HAND(bench_hand_driver->cuGraphAddKernelNode(&added, into, after ? &after : NULL, after ? 1 : 0, &node));
  return added;
}

CUgraphNode bench_hand_kernel(CUgraph into, CUgraphNode after, const char *name, unsigned blocks, unsigned threads,
                              void **parameters) {
  return bench_hand_add(into, after, bench_hand_function(name), blocks, threads, parameters);
}

CUgraphConditionalHandle bench_hand_handle(CUgraph whole, unsigned initial) {
  CUgraphConditionalHandle handle;
  HAND(bench_hand_driver->cuGraphConditionalHandleCreate(&handle, whole, context, initial,
                                                         GKI_CU_GRAPH_COND_ASSIGN_DEFAULT));
  return handle;
}

CUgraphNode bench_hand_conditional(CUgraph into, CUgraphNode after, CUgraphConditionalNodeType type,
                                   CUgraphConditionalHandle handle, CUgraph *body) {
  CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  node.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = handle, .type = type, .size = 1, .ctx = context};
  CUgraphNode added;
  HAND(bench_hand_driver->cuGraphAddNode(&added, into, after ? &after : NULL, NULL, after ? 1 : 0, &node));
  *body = node.conditional.phGraph_out[0];
  return added;
}

CUgraphExec bench_hand_instantiate(CUgraph graph) {
  CUgraphExec exec;
  HAND(bench_hand_driver->cuGraphInstantiateWithFlags(&exec, graph, 0));
  HAND(bench_hand_driver->cuGraphUpload(exec, bench_hand_stream));
  return exec;
}

CUgraphExec bench_hand_exec(CUgraph graph) {
  const CUgraphExec exec = bench_hand_instantiate(graph);
  HAND(bench_hand_driver->cuGraphDestroy(graph));
  return exec;
}

void bench_hand_exec_end(CUgraphExec exec) { HAND(bench_hand_driver->cuGraphExecDestroy(exec)); }
void bench_hand_launch(CUgraphExec exec) { HAND(bench_hand_driver->cuGraphLaunch(exec, bench_hand_stream)); }
void bench_hand_wait(void) { HAND(bench_hand_driver->cuStreamSynchronize(bench_hand_stream)); }

void bench_hand_run(CUfunction function, unsigned blocks, unsigned threads, void **parameters) {
  HAND(launch_kernel(function, blocks, 1, 1, threads, 1, 1, 0, bench_hand_stream, parameters, NULL));
}

void bench_hand_run_cooperative(CUfunction function, unsigned threads, void **parameters) {
  /* The simulated GPU runs the blocks of such a grid in turns, so several would wait for ever. */
  const unsigned blocks = bench_is_quick() ? 1 : (unsigned)bench_hand_multiprocessors;
  HAND(launch_cooperative(function, blocks, 1, 1, threads, 1, 1, 0, bench_hand_stream, parameters));
}

/* ---- what the device is ------------------------------------------------------------------------------------------ */

/* As nvml.h has them. */
typedef struct nvmlDevice_st *nvmlDevice_t;
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };

static struct {
  const char *missing; /* why the clocks aren't known */
  nvmlDevice_t device;
  int (*init)(void), (*shutdown)(void);
  int (*by_bus)(const char *bus, nvmlDevice_t *device);
  int (*clock)(nvmlDevice_t device, int which, unsigned *megahertz);
  int (*most)(nvmlDevice_t device, int which, unsigned *megahertz);
  int (*version)(char *text, unsigned bytes);
} nvml;

static bool has(void *library, const char *name, void *into) {
  void *entry = dlsym(library, name);
  if (entry) memcpy(into, &entry, sizeof entry);
  return entry != NULL;
}

static const char *open_nvml(CUdevice device) {
  CUresult (*bus_of)(char *, int, CUdevice);
  char bus[40];
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return "there is no libnvidia-ml.so.1";
  if (!has(library, "nvmlInit_v2", &nvml.init) || !has(library, "nvmlShutdown", &nvml.shutdown) ||
      !has(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml.by_bus) ||
      !has(library, "nvmlDeviceGetClockInfo", &nvml.clock) || !has(library, "nvmlDeviceGetMaxClockInfo", &nvml.most) ||
      !has(library, "nvmlSystemGetDriverVersion", &nvml.version))
    return "libnvidia-ml.so.1 lacks an entry";
  if (!bench_hand_has("cuDeviceGetPCIBusId", 4010, &bus_of)) return "the driver doesn't say where the device is";
  HAND(bus_of(bus, sizeof bus, device));
  if (nvml.init() != 0) return "NVML doesn't start";
  if (nvml.by_bus(bus, &nvml.device) == 0) return NULL;
  nvml.shutdown();
  return "NVML doesn't know the device";
}

static void report_device(CUdevice device) {
  char text[200], release[80] = "";
  nvml.missing = open_nvml(device);
  const bool known = !nvml.missing && nvml.version(release, sizeof release) == 0;
  bench_fact("gpu", gk_device_describe(opened)->name);
  snprintf(text, sizeof text, "CUDA %d.%d, release %s", bench_hand_driver->version / 1000,
           bench_hand_driver->version % 1000 / 10, known ? release : "unknown");
  bench_fact("driver", text);
  gki_cuda_compiler_describe(&compiler, text, sizeof text);
  bench_fact("toolkit", text);
  snprintf(text, sizeof text, "%d", bench_hand_multiprocessors);
  bench_fact("multiprocessors", text);
}

/* Reads the clocks while the device is busy, since they fall when it is idle. */
static void report_clocks(const char *when) {
  unsigned now[2], most[2];
  char text[200];
  int rounds = bench_is_quick() ? 1 : 4000000, *room = bench_hand_ints(opened, 256);
  bench_hand_run(bench_hand_function("mix"), 1, bench_is_quick() ? 1 : 256, (void *[]){&room, &rounds});
  nanosleep(&(struct timespec){.tv_nsec = bench_is_quick() ? 0 : 20000000}, NULL);
  if (nvml.missing)
    snprintf(text, sizeof text, "unknown: %s", nvml.missing);
  else if (nvml.clock(nvml.device, NVML_CLOCK_SM, &now[0]) || nvml.clock(nvml.device, NVML_CLOCK_MEM, &now[1]) ||
           nvml.most(nvml.device, NVML_CLOCK_SM, &most[0]) || nvml.most(nvml.device, NVML_CLOCK_MEM, &most[1]))
    snprintf(text, sizeof text, "unknown: NVML doesn't say");
  else
    snprintf(text, sizeof text, "multiprocessors %u of at most %u MHz, memory %u of %u MHz", now[0], most[0], now[1],
             most[1]);
  bench_hand_wait();
  gk_free(opened, room);
  bench_fact(when, text);
}

/* ---- the floor --------------------------------------------------------------------------------------------------- */

enum { EDGES = 1000, SEEN = 7, QUEUED = 64 /* launches; few enough for any queue */ };

typedef struct edges { CUgraphExec longer, shorter; } edges;
typedef struct trip { CUfunction post; int *value, *at; volatile int *here; } trip;
typedef struct room { CUfunction copy; int *from, *to; unsigned quads; } room;

static CUgraphExec chain_of(int kernels) {
  const CUgraph whole = bench_hand_graph();
  CUgraphNode last = NULL;
  for (int k = 0; k < kernels; ++k) last = bench_hand_kernel(whole, last, "nothing", 1, 1, NULL);
  return bench_hand_exec(whole);
}

static double launched(CUgraphExec exec) {
  const double begin = bench_now();
  bench_hand_launch(exec);
  bench_hand_wait();
  return bench_now() - begin;
}

static bool an_edge(void *with, uint64_t times, bench_took *took) {
  const edges *e = with;
  for (uint64_t k = 0; k < times; ++k) {
    took->all += launched(e->longer) / EDGES;
    took->less += launched(e->shorter) / EDGES;
  }
  return true;
}

static bool a_launch(void *with, uint64_t times, bench_took *took) {
  for (uint64_t done = 0; done < times;) {
    const uint64_t now = times - done < QUEUED ? times - done : QUEUED;
    const double begin = bench_now();
    for (uint64_t k = 0; k < now; ++k) bench_hand_launch(with);
    took->all += bench_now() - begin;
    bench_hand_wait();
    done += now;
  }
  return true;
}

static bool a_round_trip(void *with, uint64_t times, bench_took *took) {
  trip *t = with;
  bench_hand_put(t->value, SEEN);
  const double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) {
    *t->here = -1;
    bench_hand_run(t->post, 1, 1, (void *[]){&t->value, &t->at});
    while (*t->here == -1) {}
  }
  took->all += bench_now() - begin;
  return *t->here == SEEN;
}

static bool a_mebibyte(void *with, uint64_t times, bench_took *took) {
  room *r = with;
  const double mebibytes = r->quads * 2 * 16.0 / (1 << 20); /* read and written */
  const int quick = bench_is_quick();
  bench_hand_put(r->from + 4 * (size_t)r->quads - 1, SEEN);
  bench_hand_put(r->to + 4 * (size_t)r->quads - 1, 0);
  const double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k)
    bench_hand_run(r->copy, quick ? 2 : 2048, quick ? 32 : 512, (void *[]){&r->to, &r->from, &r->quads});
  bench_hand_wait();
  took->all += (bench_now() - begin) / mebibytes;
  return bench_hand_value(r->to + 4 * (size_t)r->quads - 1) == SEEN;
}

static void measure_floor(void) {
  edges e = {chain_of(2 * EDGES), chain_of(EDGES)};
  const CUgraphExec one = chain_of(1);
  trip t = {.post = bench_hand_function("post"), .value = bench_hand_ints(opened, 1)};
  t.here = bench_hand_pinned(opened, &t.at);
  room r = {.copy = bench_hand_function("copy"), .quads = bench_is_quick() ? 1 << 10 : 1 << 24};
  r.from = bench_hand_ints(opened, 4 * (size_t)r.quads);
  r.to = bench_hand_ints(opened, 4 * (size_t)r.quads);
  bench_floor(&(bench_table){"floor", "what the device takes", "what can no graph be faster than?", "ns",
    .variants = {{HAND_EDGE, an_edge, &e}, {HAND_LAUNCH, a_launch, one}, {HAND_ROUND_TRIP, a_round_trip, &t},
                 {HAND_MEBIBYTE, a_mebibyte, &r}}});
  gk_free(opened, t.value);
  gk_free(opened, (void *)(uintptr_t)t.here);
  gk_free(opened, r.from);
  gk_free(opened, r.to);
  bench_hand_exec_end(one);
  bench_hand_exec_end(e.longer);
  bench_hand_exec_end(e.shorter);
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

gk_device *bench_hand_open(const char **why) {
  if (gk_device_open(&(gk_device_desc){.backend = "cuda"}, &opened) != GK_OK) {
    *why = gk_error();
    return NULL;
  }
  bench_must(gki_cuda_driver_get(&bench_hand_driver));
  if (bench_hand_driver->version < 12040) { /* there are no conditional nodes for the variants by hand */
    static char old[80];
    snprintf(old, sizeof old, "the driver is of CUDA %d.%d, and the graphs by hand need 12.4",
             bench_hand_driver->version / 1000, bench_hand_driver->version % 1000 / 10);
    *why = old;
    gk_device_close(opened);
    return NULL;
  }
  bench_must(gk_cuda_context(opened, &context, &bench_hand_stream));
  HAND(bench_hand_driver->cuCtxPushCurrent(context));
  bench_hand_find("cuLaunchKernel", 4000, &launch_kernel);
  bench_hand_find("cuLaunchCooperativeKernel", 9000, &launch_cooperative);
  CUdevice at;
  HAND(bench_hand_driver->cuCtxGetDevice(&at));
  load(at);
  report_device(at);
  measure_floor();
  report_clocks("clocks before");
  return opened;
}

void bench_hand_close(gk_device *device) {
  report_clocks("clocks after");
  if (!nvml.missing) nvml.shutdown();
  HAND(bench_hand_driver->cuModuleUnload(module));
  HAND(bench_hand_driver->cuCtxPopCurrent(NULL));
  gk_device_close(device);
}
