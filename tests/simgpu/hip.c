/* AMD's HIP runtime over CUDA's driver API, simulated or real: each entry calls the one of the same meaning. Results
 * have the same numbers in both. HIP has no contexts: the primary context of a thread's device is current there. */
#include "simgpu.h"
#include "simhip.h"
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lock.h"

enum { DEVICES = 16, PARAMETERS = 64, ARGUMENT_BYTES = 4096, STALE_FROM = 200,
       VERSION = SIM_HIP == 5 ? 50221153 : SIM_HIP == 6 ? 60443482 : 70253211 };

/* Functions are kept until the process ends, so that the driver sees the use of one whose module is unloaded. */
struct ihipModuleSymbol_t {
  hipFunction_t next;
  CUfunction function;
  size_t count, offsets[PARAMETERS], bytes[PARAMETERS], all_bytes;
  uint64_t graph; /* number of the last graph with a node of it; 0: none */
  unsigned char last[ARGUMENT_BYTES]; /* what that node has */
};
struct ihipGraph {
  CUgraph graph;
  uint64_t number; /* from 1 */
  size_t nodes, roots;
};

static struct {
#define MEMBER(name, version, since, parameters) CUresult(*name) parameters;
  GKI_CUDA_ENTRIES(MEMBER) SIMGPU_ENTRIES(MEMBER)
#undef MEMBER
} cu;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static const simgpu *sim; /* NULL: a real driver */
static int device_count;
static CUcontext contexts[DEVICES];
static hipFunction_t functions;
static uint64_t graph_count;
static _Thread_local int own_device;
static _Thread_local CUcontext own_context; /* NULL: none is current */

/* ---- the driver -------------------------------------------------------------------------------------------------- */

static void pop_own_context(void) {
  CUcontext last;
  if (own_context) cu.cuCtxPopCurrent(&last);
  own_context = NULL;
}

static void release_contexts(void) {
  pop_own_context();
  for (int k = 0; k < device_count; ++k) {
    if (contexts[k]) cu.cuDevicePrimaryCtxRelease(k);
    contexts[k] = NULL;
  }
}

/* Under start_lock. After a failure it is tried again. */
static void find_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void *found = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
  if (!found) return;
  gki_cuGetProcAddress_v2 get;
  CUdriverProcAddressQueryResult status;
  memcpy(&get, &found, sizeof get);
#define FIND(name, version, since, parameters) get(#name, (void **)(void *)&cu.name, version, 0, &status);
  GKI_CUDA_ENTRIES(FIND) SIMGPU_ENTRIES(FIND)
#undef FIND
  int count = 0;
  if (cu.cuInit(0) != CUDA_SUCCESS || cu.cuDeviceGetCount(&count) != CUDA_SUCCESS) return;
  device_count = count < DEVICES ? count : DEVICES;
  sim = dlsym(library, "simgpu_control");
  atexit(release_contexts);
}

static bool has_fault(const char *name) {
  const char *list = getenv("SIMHIP_FAULT");
  for (size_t length; list && *list; list += length + (list[length] == ',')) {
    length = strcspn(list, ",");
    if (strlen(name) == length && memcmp(list, name, length) == 0) return true;
  }
  return false;
}

static const char *architecture(void) {
  const char *name = getenv("SIMHIP_ARCH");
  return name && *name ? name : "gfx90a";
}

static _Thread_local hipError_t last_error;

static hipError_t noted(hipError_t result) {
  if (result != hipSuccess) last_error = result;
  return result;
}

static hipError_t hip(CUresult result) { return noted((hipError_t)result); }

static hipError_t find_device(int device) {
  pthread_mutex_lock(&start_lock);
  if (device_count == 0) find_driver();
  pthread_mutex_unlock(&start_lock);
  if (device_count == 0) return hipErrorNoDevice;
  return device >= 0 && device < device_count ? hipSuccess : hipErrorInvalidDevice;
}

/* Makes the context of the thread's device current. With the lock held. */
static hipError_t enter_locked(void) {
  hipError_t result = find_device(own_device);
  CUcontext *const context = &contexts[own_device];
  if (result == hipSuccess && !*context) result = hip(cu.cuDevicePrimaryCtxRetain(context, own_device));
  if (result != hipSuccess || own_context == *context) return result;
  pop_own_context();
  result = hip(cu.cuCtxPushCurrent(*context));
  if (result == hipSuccess) own_context = *context;
  return result;
}

static hipError_t enter(void) {
  SIM_HOLD(lock);
  return enter_locked();
}

#define PROTOTYPE(need, result, name, parameters) SIM_HIP_EXPORT result name parameters;
GKI_HIP_ENTRIES(PROTOTYPE)

/* An entry that is one call of the driver's. */
#define SAME(name, parameters, ...) \
  hipError_t name parameters { \
    const hipError_t entered = enter(); \
    return entered == hipSuccess ? hip(cu.__VA_ARGS__) : entered; \
  }
#define ENTER() \
  do { \
    const hipError_t entered = enter(); \
    if (entered != hipSuccess) return entered; \
  } while (0)

/* ---- devices ----------------------------------------------------------------------------------------------------- */

hipError_t hipGetDeviceCount(int *count) {
  if (!count) return hipErrorInvalidValue;
  const hipError_t result = find_device(0);
  *count = device_count;
  return result;
}

hipError_t hipRuntimeGetVersion(int *version) {
  if (!version) return hipErrorInvalidValue;
  *version = VERSION;
  return hipSuccess;
}

hipError_t hipPeekAtLastError(void) { return last_error; }

hipError_t hipGetLastError(void) {
  const hipError_t error = last_error;
  last_error = hipSuccess;
  return error;
}

const char *hipGetErrorName(hipError_t error) {
#define NAME(name) \
  case name: return #name;
  switch (error) {
    NAME(hipSuccess) NAME(hipErrorInvalidValue) NAME(hipErrorOutOfMemory) NAME(hipErrorNotInitialized)
    NAME(hipErrorNoDevice) NAME(hipErrorInvalidDevice) NAME(hipErrorInvalidImage) NAME(hipErrorNoBinaryForGpu)
    NAME(hipErrorInvalidHandle) NAME(hipErrorNotFound) NAME(hipErrorNotReady) NAME(hipErrorIllegalAddress)
    NAME(hipErrorLaunchFailure) NAME(hipErrorNotSupported) NAME(hipErrorStreamCaptureUnsupported)
    NAME(hipErrorStreamCaptureImplicit)
    case hipErrorUnknown: break;
  }
  return "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t error) { return hipGetErrorName(error); } /* as HIP 5.2 does */

static int wave_size(void) { return strncmp(architecture(), "gfx9", 4) == 0 ? 64 : 32; }

hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device) {
  const hipError_t result = find_device(device);
  if (result != hipSuccess || !value) return result != hipSuccess ? result : hipErrorInvalidValue;
  switch (attribute) {
    case hipDeviceAttributeMultiprocessorCount:
      return hip(cu.cuDeviceGetAttribute(value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    case hipDeviceAttributePageableMemoryAccess:
      return hip(cu.cuDeviceGetAttribute(value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device));
    case hipDeviceAttributeWarpSize: *value = wave_size(); return hipSuccess;
  }
  return hipErrorInvalidValue;
}

/* What gk doesn't read isn't zero. */
static hipError_t write_properties(void *properties, int device, size_t bytes, size_t architecture_at) {
  const hipError_t result = find_device(device);
  if (result != hipSuccess || !properties) return result != hipSuccess ? result : hipErrorInvalidValue;
  memset(properties, 0xa5, bytes);
  snprintf((char *)properties + architecture_at, GKI_HIP_NAME_BYTES, "%s%s", architecture(),
           wave_size() == 64 ? ":sramecc+:xnack-" : "");
  return hip(cu.cuDeviceGetName(properties, GKI_HIP_NAME_BYTES, device));
}

hipError_t hipGetDeviceProperties(void *properties, int device) {
  return write_properties(properties, device, GKI_HIP_PROPERTIES_5, GKI_HIP_ARCHITECTURE_5);
}

#if SIM_HIP > 5
hipError_t hipGetDevicePropertiesR0600(void *properties, int device) {
  return write_properties(properties, device, GKI_HIP_PROPERTIES_6, GKI_HIP_ARCHITECTURE_6);
}
#endif

hipError_t hipSetDevice(int device) {
  const hipError_t result = find_device(device);
  if (result == hipSuccess) own_device = device;
  return result;
}

hipError_t hipGetDevice(int *device) {
  const hipError_t result = find_device(0);
  if (result == hipSuccess && device) *device = own_device;
  return result == hipSuccess && !device ? hipErrorInvalidValue : result;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static CUdeviceptr address(const void *memory) { return (CUdeviceptr)(uintptr_t)memory; }

hipError_t hipMalloc(void **memory, size_t bytes) {
  ENTER();
  if (!memory) return hipErrorInvalidValue;
  *memory = NULL;
  CUdeviceptr at = 0;
  const hipError_t result = bytes > 0 ? hip(cu.cuMemAlloc(&at, bytes)) : hipSuccess;
  *memory = (void *)(uintptr_t)at;
  return result;
}

hipError_t hipFree(void *memory) {
  ENTER();
  return memory ? hip(cu.cuMemFree(address(memory))) : hipSuccess;
}

SAME(hipHostMalloc, (void **memory, size_t bytes, unsigned int flags), cuMemHostAlloc(memory, bytes, flags))

hipError_t hipHostFree(void *memory) {
  ENTER();
  return memory ? hip(cu.cuMemFreeHost(memory)) : hipSuccess;
}

/* HIP 5 refuses memory that it doesn't know; later versions say 0. HIP 5 counts the types from 0 on, the others from
 * 1. */
hipError_t hipPointerGetAttributes(void *attributes, const void *memory) {
  ENTER();
  unsigned type = 0;
  const CUresult result = cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(memory));
  if (result != CUDA_SUCCESS && (result != CUDA_ERROR_INVALID_VALUE || SIM_HIP == 5)) return hip(result);
  memset(attributes, 0xa5, GKI_HIP_POINTER_ATTRIBUTES);
  if (SIM_HIP == 5) --type;
  memcpy(attributes, &type, sizeof type);
  return hipSuccess;
}

#define CU(stream) ((CUstream)(stream))
SAME(hipMemcpyHtoDAsync, (hipDeviceptr_t to, void *from, size_t bytes, hipStream_t stream),
     cuMemcpyHtoDAsync(address(to), from, bytes, CU(stream)))
SAME(hipMemcpyDtoHAsync, (void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream),
     cuMemcpyDtoHAsync(to, address(from), bytes, CU(stream)))
SAME(hipMemcpyDtoDAsync, (hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream),
     cuMemcpyDtoDAsync(address(to), address(from), bytes, CU(stream)))
SAME(hipMemsetD8Async, (hipDeviceptr_t to, unsigned char value, size_t bytes, hipStream_t stream),
     cuMemsetD8Async(address(to), value, bytes, CU(stream)))

/* ---- streams, events --------------------------------------------------------------------------------------------- */

/* Contexts live until the process ends, as those of HIP do. On the simulated driver tests go on behind a failure: where
 * nothing is left of what was made, the first stream gets new ones, as in a new process. */
hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags) {
  SIM_HOLD(lock);
  if (sim && sim->alive(SIMGPU_ALL) == sim->alive(SIMGPU_RETAINS)) release_contexts();
  const hipError_t entered = enter_locked();
  return entered == hipSuccess ? hip(cu.cuStreamCreate((CUstream *)stream, flags)) : entered;
}

SAME(hipStreamDestroy, (hipStream_t stream), cuStreamDestroy(CU(stream)))
SAME(hipStreamSynchronize, (hipStream_t stream), cuStreamSynchronize(CU(stream)))
SAME(hipStreamQuery, (hipStream_t stream), cuStreamQuery(CU(stream)))
SAME(hipStreamIsCapturing, (hipStream_t stream, hipStreamCaptureStatus *status),
     cuStreamIsCapturing(CU(stream), (CUstreamCaptureStatus *)status))
SAME(hipThreadExchangeStreamCaptureMode, (hipStreamCaptureMode *mode),
     cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode))
SAME(hipEventCreateWithFlags, (hipEvent_t *event, unsigned int flags), cuEventCreate((CUevent *)event, flags))
SAME(hipEventDestroy, (hipEvent_t event), cuEventDestroy((CUevent)event))
SAME(hipEventRecord, (hipEvent_t event, hipStream_t stream), cuEventRecord((CUevent)event, CU(stream)))
SAME(hipEventQuery, (hipEvent_t event), cuEventQuery((CUevent)event))
SAME(hipEventSynchronize, (hipEvent_t event), cuEventSynchronize((CUevent)event))

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static bool is_for_amd(const char *image) {
  static const char BUNDLE[] = "__CLANG_OFFLOAD_BUNDLE__";
  Elf64_Ehdr head;
  if (strncmp(image, ELFMAG, SELFMAG) != 0) return strncmp(image, BUNDLE, sizeof BUNDLE - 1) == 0;
  memcpy(&head, image, sizeof head);
  return head.e_machine == EM_AMDGPU;
}

/* Only hipRTC's code runs here. AMD's own is refused as code for another GPU is. */
hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
  ENTER();
  if (!module || !image) return hipErrorInvalidValue;
  if (is_for_amd(image)) return noted(hipErrorNoBinaryForGpu);
  if (strncmp(image, SIM_HIP_MAGIC, sizeof SIM_HIP_MAGIC) != 0) return hipErrorInvalidImage;
  const sim_hip_code *const code = image;
  if (strcmp(code->arch, architecture()) != 0) return hipErrorNoBinaryForGpu;
  return hip(cu.cuModuleLoadDataEx((CUmodule *)module, code + 1, 0, NULL, NULL));
}

SAME(hipModuleUnload, (hipModule_t module), cuModuleUnload((CUmodule)module))

static CUresult read_parameters(hipFunction_t f) {
  for (size_t k = 0; k < PARAMETERS; ++k) {
    const CUresult result = cu.cuFuncGetParamInfo(f->function, k, &f->offsets[k], &f->bytes[k]);
    if (result == CUDA_ERROR_INVALID_VALUE) return CUDA_SUCCESS; /* there are no more */
    if (result != CUDA_SUCCESS) return result;
    f->all_bytes = f->offsets[k] + f->bytes[k];
    f->count = k + 1;
    if (f->all_bytes > ARGUMENT_BYTES) break;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
  ENTER();
  CUfunction found;
  CUresult result = function ? cu.cuModuleGetFunction(&found, (CUmodule)module, name) : CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS) return hip(result);
  hipFunction_t f = calloc(1, sizeof *f);
  if (!f) return hipErrorOutOfMemory;
  f->function = found;
  result = read_parameters(f);
  if (result != CUDA_SUCCESS) return free(f), hip(result);
  SIM_HOLD(lock);
  f->next = functions;
  *function = functions = f;
  return hipSuccess;
}

/* The arguments of a launch or node, of which it has one form. */
static hipError_t pack(hipFunction_t f, void **parameters, void **extra, unsigned char *to) {
  if (!f || (parameters && extra) || (f->count > 0 && !parameters && !extra)) return hipErrorInvalidValue;
  if (parameters)
    for (size_t k = 0; k < f->count; ++k) memcpy(to + f->offsets[k], parameters[k], f->bytes[k]);
  if (parameters && has_fault("kernelparams") && f->all_bytes > 8) memset(to + 8, 0, f->all_bytes - 8);
  if (!extra) return hipSuccess;
  if (has_fault("extra")) return hipErrorNotSupported;
  const void *buffer = NULL;
  size_t bytes = 0;
  for (; (uintptr_t)extra[0] != GKI_HIP_LAUNCH_PARAM_END; extra += 2) {
    if ((uintptr_t)extra[0] == GKI_HIP_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
    else if ((uintptr_t)extra[0] == GKI_HIP_LAUNCH_PARAM_BUFFER_SIZE) bytes = *(const size_t *)extra[1];
    else return hipErrorInvalidValue;
  }
  if (!buffer || bytes < f->all_bytes) return hipErrorInvalidValue;
  memcpy(to, buffer, f->all_bytes);
  return hipSuccess;
}

typedef struct arguments {
  _Alignas(16) unsigned char bytes[ARGUMENT_BYTES];
  void *at[PARAMETERS];
} arguments;
static void **spread(hipFunction_t f, arguments *a) {
  for (size_t k = 0; k < f->count; ++k) a->at[k] = a->bytes + f->offsets[k];
  return a->at;
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                 unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                 unsigned int shared_bytes, hipStream_t stream, void **parameters, void **extra) {
  ENTER();
  arguments a;
  const hipError_t result = pack(function, parameters, extra, a.bytes);
  if (result != hipSuccess) return result;
  /* AMD's packets count threads. */
  if ((uint64_t)grid_x * block_x > UINT32_MAX || (uint64_t)grid_y * block_y > UINT32_MAX ||
      (uint64_t)grid_z * block_z > UINT32_MAX) return hipErrorInvalidValue;
  return hip(cu.cuLaunchKernel(function->function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                               CU(stream), spread(function, &a), NULL));
}

SAME(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor,
     (int *blocks, hipFunction_t function, int threads, size_t shared_bytes),
     cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function->function, threads, shared_bytes))

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

hipError_t hipGraphCreate(hipGraph_t *graph, unsigned int flags) {
  ENTER();
  hipGraph_t g = graph ? calloc(1, sizeof *g) : NULL;
  if (!g) return graph ? hipErrorOutOfMemory : hipErrorInvalidValue;
  const CUresult result = cu.cuGraphCreate(&g->graph, flags);
  if (result != CUDA_SUCCESS) {
    free(g);
    return hip(result);
  }
  SIM_HOLD(lock);
  g->number = ++graph_count;
  *graph = g;
  return hipSuccess;
}

hipError_t hipGraphDestroy(hipGraph_t graph) {
  ENTER();
  if (!graph) return hipErrorInvalidValue;
  const CUresult result = cu.cuGraphDestroy(graph->graph);
  free(graph);
  return hip(result);
}

/* Writes what users report over the arguments; keeps what the node has. */
static void take_arguments(hipFunction_t f, const struct ihipGraph *graph, unsigned char *bytes) {
  SIM_HOLD(lock);
  const bool is_stale = f->graph && graph->nodes >= STALE_FROM && has_fault("stale-pointers");
  const bool is_kept = f->graph && f->graph != graph->number && has_fault("exec-keeps-arguments");
  if (has_fault("graph-pointers") && f->all_bytes >= sizeof(void *)) memcpy(bytes, &(uintptr_t){16}, sizeof(void *));
  if (is_stale || is_kept) memcpy(bytes, f->last, f->all_bytes);
  else {
    memcpy(f->last, bytes, f->all_bytes);
    f->graph = graph->number;
  }
}

hipError_t hipGraphAddKernelNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                 const hipKernelNodeParams *parameters) {
  ENTER();
  if (!graph || !parameters || SIM_HIP == 5 || has_fault("refuse-kernel-node")) return hipErrorInvalidValue;
  hipFunction_t f = parameters->func;
  arguments a;
  hipError_t result = pack(f, parameters->kernelParams, parameters->extra, a.bytes);
  if (result != hipSuccess) return result;
  const gki_hip_dim3 grid = parameters->gridDim, block = parameters->blockDim;
  if (count == 0 && graph->roots > 0 && has_fault("several-roots"))
    return hipGraphAddEmptyNode(node, graph, after, count);
  take_arguments(f, graph, a.bytes);
  const CUDA_KERNEL_NODE_PARAMS_v1 all = {f->function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                          parameters->sharedMemBytes, spread(f, &a), NULL};
  result = hip(cu.cuGraphAddKernelNode((CUgraphNode *)node, graph->graph, (const CUgraphNode *)after, count, &all));
  graph->nodes += result == hipSuccess;
  graph->roots += result == hipSuccess && count == 0;
  return result;
}

hipError_t hipGraphAddEmptyNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count) {
  ENTER();
  if (!graph) return hipErrorInvalidValue;
  const CUresult result =
    cu.cuGraphAddEmptyNode((CUgraphNode *)node, graph->graph, (const CUgraphNode *)after, count);
  graph->nodes += result == CUDA_SUCCESS;
  return hip(result);
}

SAME(hipGraphInstantiateWithFlags, (hipGraphExec_t *exec, hipGraph_t graph, unsigned long long flags),
     cuGraphInstantiateWithFlags((CUgraphExec *)exec, graph->graph, flags))
SAME(hipGraphLaunch, (hipGraphExec_t exec, hipStream_t stream), cuGraphLaunch((CUgraphExec)exec, CU(stream)))
SAME(hipGraphExecDestroy, (hipGraphExec_t exec), cuGraphExecDestroy((CUgraphExec)exec))
