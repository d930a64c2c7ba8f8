/* The part of NVIDIA's driver API and of NVRTC that gk uses, declared by gk, so that gk builds without a toolkit. Tags,
 * names and layouts are NVIDIA's: tests/cuda/abi.py compares them with cuda.h and nvrtc.h of several toolkits. This
 * file is also C++, for that comparison and for the simulated driver. */
#ifndef GKI_CUDA_ABI_H
#define GKI_CUDA_ABI_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef uint64_t cuuint64_t;
typedef cuuint64_t CUgraphConditionalHandle;

/* Enums have the values that gk or the simulated driver (tests/simgpu) uses. Any other result is a failure to gk. */

typedef enum cudaError_enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_STUB_LIBRARY = 34,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_OPERATING_SYSTEM = 304,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_ILLEGAL_STATE = 401,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_SYSTEM_NOT_READY = 802,
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
  CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
  CUDA_ERROR_CAPTURED_EVENT = 907,
  CUDA_ERROR_UNKNOWN = 999
} CUresult;

typedef enum CUdevice_attribute_enum {
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
  CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88,
  CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
} CUdevice_attribute;

typedef enum CUpointer_attribute_enum { CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2 } CUpointer_attribute;
typedef enum CUmemorytype_enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2 } CUmemorytype;

typedef enum CUdriverProcAddressQueryResult_enum {
  CU_GET_PROC_ADDRESS_SUCCESS = 0,
  CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
  CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2
} CUdriverProcAddressQueryResult;

typedef enum CUstream_flags_enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 } CUstream_flags;
typedef enum CUevent_flags_enum { CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2 } CUevent_flags;
typedef enum CUstreamCaptureMode_enum {
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2
} CUstreamCaptureMode;
typedef enum CUstreamCaptureStatus_enum {
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
  CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2
} CUstreamCaptureStatus;
typedef enum CUjit_option_enum {
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
} CUjit_option;
typedef enum CUfunction_attribute_enum {
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
} CUfunction_attribute;

/* Macros in cuda.h, with a prefix here. */
enum { GKI_CU_MEMHOSTALLOC_PORTABLE = 1, GKI_CU_MEMHOSTALLOC_DEVICEMAP = 2, GKI_CU_MEMHOSTREGISTER_PORTABLE = 1,
       GKI_CU_MEMHOSTREGISTER_DEVICEMAP = 2, GKI_CU_GRAPH_COND_ASSIGN_DEFAULT = 1,
       GKI_CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE = 1, GKI_CU_STREAM_LEGACY = 1, GKI_CU_STREAM_PER_THREAD = 2 };

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

typedef enum CUgraphNodeType_enum {
  CU_GRAPH_NODE_TYPE_KERNEL = 0,
  CU_GRAPH_NODE_TYPE_MEMCPY = 1,
  CU_GRAPH_NODE_TYPE_MEMSET = 2,
  CU_GRAPH_NODE_TYPE_HOST = 3,
  CU_GRAPH_NODE_TYPE_GRAPH = 4,
  CU_GRAPH_NODE_TYPE_EMPTY = 5,
  CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
  CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
  CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
  CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
  CU_GRAPH_NODE_TYPE_CONDITIONAL = 13
} CUgraphNodeType;

typedef enum CUgraphConditionalNodeType_enum {
  CU_GRAPH_COND_TYPE_IF = 0,
  CU_GRAPH_COND_TYPE_WHILE = 1,
  CU_GRAPH_COND_TYPE_SWITCH = 2
} CUgraphConditionalNodeType;

typedef struct CUgraphEdgeData_st {
  unsigned char from_port;
  unsigned char to_port;
  unsigned char type;
  unsigned char reserved[5];
} CUgraphEdgeData;

typedef struct CUDA_KERNEL_NODE_PARAMS_st {
  CUfunction func;
  unsigned int gridDimX;
  unsigned int gridDimY;
  unsigned int gridDimZ;
  unsigned int blockDimX;
  unsigned int blockDimY;
  unsigned int blockDimZ;
  unsigned int sharedMemBytes;
  void **kernelParams;
  void **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;

typedef struct CUDA_KERNEL_NODE_PARAMS_v3_st {
  CUfunction func;
  unsigned int gridDimX;
  unsigned int gridDimY;
  unsigned int gridDimZ;
  unsigned int blockDimX;
  unsigned int blockDimY;
  unsigned int blockDimZ;
  unsigned int sharedMemBytes;
  void **kernelParams;
  void **extra;
  CUkernel kern;
  CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS_v3;

typedef struct CUDA_CONDITIONAL_NODE_PARAMS {
  CUgraphConditionalHandle handle;
  CUgraphConditionalNodeType type;
  unsigned int size;
  CUgraph *phGraph_out;
  CUcontext ctx;
} CUDA_CONDITIONAL_NODE_PARAMS;

/* Newer toolkits have one more member, which is 0 here. The union below has the same size in all toolkits. */
typedef struct CUDA_CHILD_GRAPH_NODE_PARAMS_st {
  CUgraph graph;
} CUDA_CHILD_GRAPH_NODE_PARAMS;

typedef struct CUgraphNodeParams_st {
  CUgraphNodeType type;
  int reserved0[3];
  union {
    long long reserved1[29];
    CUDA_KERNEL_NODE_PARAMS_v3 kernel;
    CUDA_CHILD_GRAPH_NODE_PARAMS graph;
    CUDA_CONDITIONAL_NODE_PARAMS conditional;
  };
  long long reserved2;
} CUgraphNodeParams;

typedef enum CUgraphInstantiateResult_enum {
  CUDA_GRAPH_INSTANTIATE_SUCCESS = 0,
  CUDA_GRAPH_INSTANTIATE_ERROR = 1,
  CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE = 2,
  CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED = 3,
  CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED = 4,
  CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED = 5
} CUgraphInstantiateResult;

typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st {
  cuuint64_t flags;
  CUstream hUploadStream;
  CUgraphNode hErrNode_out;
  CUgraphInstantiateResult result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

/* ---- entries of libcuda: X(name, version, since, parameters), each returns a CUresult ---------------------------- */

/* cuGetProcAddress gets `version`, which decides the signature. Drivers from `since` on have the entry; with older ones
 * the pointer is NULL. 0: all drivers that gk supports, from 11.4 on. */
#define GKI_CUDA_ENTRIES(X) \
  X(cuGetErrorName, 6000, 0, (CUresult error, const char **name)) \
  X(cuGetErrorString, 6000, 0, (CUresult error, const char **text)) \
  X(cuInit, 2000, 0, (unsigned int flags)) \
  X(cuDriverGetVersion, 2020, 0, (int *version)) \
  X(cuDeviceGetCount, 2000, 0, (int *count)) \
  X(cuDeviceGet, 2000, 0, (CUdevice *device, int ordinal)) \
  X(cuDeviceGetName, 2000, 0, (char *name, int length, CUdevice device)) \
  X(cuDeviceGetAttribute, 2000, 0, (int *value, CUdevice_attribute attribute, CUdevice device)) \
  X(cuDevicePrimaryCtxRetain, 7000, 0, (CUcontext *context, CUdevice device)) \
  X(cuDevicePrimaryCtxRelease, 11000, 0, (CUdevice device)) \
  X(cuDevicePrimaryCtxGetState, 7000, 0, (CUdevice device, unsigned int *flags, int *active)) \
  X(cuCtxPushCurrent, 4000, 0, (CUcontext context)) \
  X(cuCtxPopCurrent, 4000, 0, (CUcontext *context)) \
  X(cuCtxGetCurrent, 4000, 0, (CUcontext *context)) \
  X(cuCtxGetDevice, 2000, 0, (CUdevice *device)) \
  X(cuCtxSynchronize, 2000, 0, (void)) \
  X(cuStreamCreate, 2000, 0, (CUstream *stream, unsigned int flags)) \
  X(cuStreamDestroy, 4000, 0, (CUstream stream)) \
  X(cuStreamSynchronize, 2000, 0, (CUstream stream)) \
  X(cuStreamQuery, 2000, 0, (CUstream stream)) \
  X(cuStreamGetCtx, 9020, 0, (CUstream stream, CUcontext *context)) \
  X(cuStreamGetId, 12000, 12000, (CUstream stream, unsigned long long *id)) \
  X(cuThreadExchangeStreamCaptureMode, 10010, 0, (CUstreamCaptureMode *mode)) \
  X(cuStreamIsCapturing, 10000, 0, (CUstream stream, CUstreamCaptureStatus *status)) \
  X(cuStreamBeginCapture, 10010, 0, (CUstream stream, CUstreamCaptureMode mode)) \
  X(cuStreamEndCapture, 10000, 0, (CUstream stream, CUgraph *graph)) \
  X(cuStreamBeginCaptureToGraph, 12030, 12030, \
    (CUstream stream, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t count, \
     CUstreamCaptureMode mode)) \
  X(cuStreamGetCaptureInfo, 12030, 12030, \
    (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **after, \
     const CUgraphEdgeData **edges, size_t *count)) \
  X(cuStreamWaitEvent, 3020, 0, (CUstream stream, CUevent event, unsigned int flags)) \
  X(cuEventCreate, 2000, 0, (CUevent *event, unsigned int flags)) \
  X(cuEventRecord, 2000, 0, (CUevent event, CUstream stream)) \
  X(cuEventQuery, 2000, 0, (CUevent event)) \
  X(cuEventSynchronize, 2000, 0, (CUevent event)) \
  X(cuEventDestroy, 4000, 0, (CUevent event)) \
  X(cuMemAlloc, 3020, 0, (CUdeviceptr *memory, size_t bytes)) \
  X(cuMemFree, 3020, 0, (CUdeviceptr memory)) \
  X(cuMemHostAlloc, 2020, 0, (void **memory, size_t bytes, unsigned int flags)) \
  X(cuMemHostGetDevicePointer, 3020, 0, (CUdeviceptr *at, void *memory, unsigned int flags)) \
  X(cuMemFreeHost, 2000, 0, (void *memory)) \
  X(cuPointerGetAttribute, 4000, 0, (void *value, CUpointer_attribute attribute, CUdeviceptr at)) \
  X(cuMemHostRegister, 6050, 0, (void *memory, size_t bytes, unsigned int flags)) \
  X(cuMemHostUnregister, 4000, 0, (void *memory)) \
  X(cuMemcpyHtoDAsync, 3020, 0, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
  X(cuMemcpyDtoHAsync, 3020, 0, (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) \
  X(cuMemcpyDtoDAsync, 3020, 0, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
  X(cuMemsetD8Async, 3020, 0, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)) \
  X(cuModuleLoadDataEx, 2010, 0, \
    (CUmodule *module, const void *image, unsigned int count, CUjit_option *options, void **values)) \
  X(cuModuleUnload, 2000, 0, (CUmodule module)) \
  X(cuModuleGetFunction, 2000, 0, (CUfunction *function, CUmodule module, const char *name)) \
  X(cuFuncGetAttribute, 2020, 0, (int *value, CUfunction_attribute attribute, CUfunction function)) \
  X(cuFuncSetAttribute, 9000, 0, (CUfunction function, CUfunction_attribute attribute, int value)) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, 0, \
    (int *blocks, CUfunction function, int threads, size_t shared_bytes)) \
  X(cuGraphCreate, 10000, 0, (CUgraph *graph, unsigned int flags)) \
  X(cuGraphDestroy, 10000, 0, (CUgraph graph)) \
  X(cuGraphAddKernelNode, 10000, 0, \
    (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, \
     const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)) \
  X(cuGraphAddEmptyNode, 10000, 0, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count)) \
  X(cuGraphAddChildGraphNode, 10000, 0, \
    (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, CUgraph child)) \
  X(cuGraphAddNode, 12030, 12030, \
    (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t count, \
     CUgraphNodeParams *parameters)) \
  X(cuGraphConditionalHandleCreate, 12030, 12030, \
    (CUgraphConditionalHandle *handle, CUgraph graph, CUcontext context, unsigned int initial, unsigned int flags)) \
  X(cuGraphGetNodes, 10000, 0, (CUgraph graph, CUgraphNode *nodes, size_t *count)) \
  X(cuGraphGetEdges, 12030, 12030, \
    (CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *count)) \
  X(cuGraphNodeGetDependencies, 12030, 12030, \
    (CUgraphNode node, CUgraphNode *after, CUgraphEdgeData *edges, size_t *count)) \
  X(cuGraphNodeGetType, 10000, 0, (CUgraphNode node, CUgraphNodeType *type)) \
  X(cuGraphChildGraphNodeGetGraph, 10000, 0, (CUgraphNode node, CUgraph *child)) \
  X(cuGraphDebugDotPrint, 11030, 0, (CUgraph graph, const char *path, unsigned int flags)) \
  X(cuGraphInstantiateWithFlags, 11040, 0, (CUgraphExec *exec, CUgraph graph, unsigned long long flags)) \
  X(cuGraphInstantiateWithParams, 12000, 12000, \
    (CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)) \
  X(cuGraphExecKernelNodeSetParams, 10010, 0, \
    (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)) \
  X(cuGraphExecNodeSetParams, 12020, 12020, (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *parameters)) \
  X(cuGraphExecDestroy, 10000, 0, (CUgraphExec exec)) \
  X(cuGraphUpload, 11010, 0, (CUgraphExec exec, CUstream stream)) \
  X(cuGraphLaunch, 10000, 0, (CUgraphExec exec, CUstream stream)) \
  X(cuDeviceGraphMemTrim, 11040, 0, (CUdevice device)) \
  X(cuFuncGetParamInfo, 12040, 12040, (CUfunction function, size_t parameter, size_t *offset, size_t *bytes))

/* Found by dlsym. Drivers from 12.0 on have the second one. */
typedef CUresult (*gki_cuGetProcAddress)(const char *name, void **entry, int version, cuuint64_t flags);
typedef CUresult (*gki_cuGetProcAddress_v2)(const char *name, void **entry, int version, cuuint64_t flags,
                                            CUdriverProcAddressQueryResult *status);

/* ---- NVRTC: X(result, name, parameters), found by dlsym ---------------------------------------------------------- */

typedef enum {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_OUT_OF_MEMORY = 1,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6
} nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;

#define GKI_NVRTC_ENTRIES(X) \
  X(const char *, nvrtcGetErrorString, (nvrtcResult result)) \
  X(nvrtcResult, nvrtcVersion, (int *major, int *minor)) \
  X(nvrtcResult, nvrtcGetNumSupportedArchs, (int *count)) \
  X(nvrtcResult, nvrtcGetSupportedArchs, (int *architectures)) \
  X(nvrtcResult, nvrtcCreateProgram, \
    (nvrtcProgram *program, const char *source, const char *name, int header_count, const char *const *headers, \
     const char *const *names)) \
  X(nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram *program)) \
  X(nvrtcResult, nvrtcCompileProgram, (nvrtcProgram program, int count, const char *const *options)) \
  X(nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram program, size_t *bytes)) \
  X(nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram program, char *image)) \
  X(nvrtcResult, nvrtcGetPTXSize, (nvrtcProgram program, size_t *bytes)) \
  X(nvrtcResult, nvrtcGetPTX, (nvrtcProgram program, char *text)) \
  X(nvrtcResult, nvrtcGetProgramLogSize, (nvrtcProgram program, size_t *bytes)) \
  X(nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram program, char *log))

#ifdef __cplusplus
}
#endif
#endif
