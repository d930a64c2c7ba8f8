/* The part of AMD's HIP runtime and of hipRTC that gk uses, declared by gk, so that gk builds without ROCm. Tags,
 * names, values and layouts are AMD's: tests/hip/abi.py compares them with the headers that are installed. */
#ifndef GKI_HIP_ABI_H
#define GKI_HIP_ABI_H
#include <stddef.h>
#include <stdint.h>

typedef void *hipDeviceptr_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct hipGraphExec *hipGraphExec_t;

/* Enums have the values that gk or the simulated runtime (tests/simgpu/hip.c) uses. Any other result is a failure. */

typedef enum hipError_t {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorNotInitialized = 3,
  hipErrorNoDevice = 100,
  hipErrorInvalidDevice = 101,
  hipErrorInvalidImage = 200,
  hipErrorNoBinaryForGpu = 209,
  hipErrorInvalidHandle = 400,
  hipErrorNotFound = 500,
  hipErrorNotReady = 600,
  hipErrorIllegalAddress = 700,
  hipErrorLaunchFailure = 719,
  hipErrorNotSupported = 801,
  hipErrorStreamCaptureUnsupported = 900,
  hipErrorStreamCaptureImplicit = 906, /* asked about the default stream, which waits for a captured one */
  hipErrorUnknown = 999
} hipError_t;

typedef enum hipDeviceAttribute_t {
  hipDeviceAttributeMultiprocessorCount = 63,
  hipDeviceAttributePageableMemoryAccess = 65,
  hipDeviceAttributeWarpSize = 87
} hipDeviceAttribute_t;

typedef enum hipStreamCaptureStatus {
  hipStreamCaptureStatusNone = 0,
  hipStreamCaptureStatusActive = 1
} hipStreamCaptureStatus;
typedef enum hipStreamCaptureMode {
  hipStreamCaptureModeGlobal = 0,
  hipStreamCaptureModeRelaxed = 2
} hipStreamCaptureMode;

/* Macros in AMD's headers, with a prefix here. */
enum { GKI_HIP_STREAM_NON_BLOCKING = 1, GKI_HIP_EVENT_BLOCKING_SYNC = 1, GKI_HIP_EVENT_DISABLE_TIMING = 2,
       GKI_HIP_STREAM_PER_THREAD = 2, GKI_HIP_HOST_MALLOC_PORTABLE = 1, GKI_HIP_HOST_MALLOC_MAPPED = 2,
       GKI_HIP_LAUNCH_PARAM_BUFFER_POINTER = 1, GKI_HIP_LAUNCH_PARAM_BUFFER_SIZE = 2, GKI_HIP_LAUNCH_PARAM_END = 3 };

typedef struct gki_hip_dim3 { uint32_t x, y, z; } gki_hip_dim3;
typedef struct hipKernelNodeParams {
  gki_hip_dim3 blockDim;
  void **extra;
  void *func;
  gki_hip_dim3 gridDim;
  void **kernelParams;
  unsigned int sharedMemBytes;
} hipKernelNodeParams;

/* gk needs only two names of hipDeviceProp_t: the device's, with which it begins, and the architecture's, gcnArchName.
 * That one's place differs: hipGetDeviceProperties of HIP 5 has it at byte 396 of 792, hipGetDevicePropertiesR0600 of
 * HIP 6 and later at byte 1160 of 1472. */
enum { GKI_HIP_PROPERTIES_5 = 792, GKI_HIP_ARCHITECTURE_5 = 396, GKI_HIP_PROPERTIES_6 = 1472,
       GKI_HIP_ARCHITECTURE_6 = 1160, GKI_HIP_NAME_BYTES = 256 /* of each */ };

/* hipPointerAttribute_t begins with the type of memory. From HIP 6 on, 0 is memory that the runtime doesn't know. */
enum { GKI_HIP_POINTER_ATTRIBUTES = 32 /* bytes */ };

/* ---- the runtime: X(need, result, name, parameters), found by dlsym. ONE: gk needs one of these ------------------ */

#define GKI_HIP_ENTRIES(X) \
  X(ALL, hipError_t, hipGetDeviceCount, (int *count)) \
  X(ALL, hipError_t, hipRuntimeGetVersion, (int *version)) \
  X(ALL, hipError_t, hipGetLastError, (void)) \
  X(ALL, hipError_t, hipPeekAtLastError, (void)) \
  X(ALL, const char *, hipGetErrorName, (hipError_t error)) \
  X(ALL, const char *, hipGetErrorString, (hipError_t error)) \
  X(ALL, hipError_t, hipDeviceGetAttribute, (int *value, hipDeviceAttribute_t attribute, int device)) \
  X(ONE, hipError_t, hipGetDeviceProperties, (void *properties, int device)) \
  X(ONE, hipError_t, hipGetDevicePropertiesR0600, (void *properties, int device)) \
  X(ALL, hipError_t, hipSetDevice, (int device)) \
  X(ALL, hipError_t, hipGetDevice, (int *device)) \
  X(ALL, hipError_t, hipMalloc, (void **memory, size_t bytes)) \
  X(ALL, hipError_t, hipFree, (void *memory)) \
  X(ALL, hipError_t, hipHostMalloc, (void **memory, size_t bytes, unsigned int flags)) \
  X(ALL, hipError_t, hipHostFree, (void *memory)) \
  X(ALL, hipError_t, hipPointerGetAttributes, (void *attributes, const void *memory)) \
  X(ALL, hipError_t, hipMemcpyHtoDAsync, (hipDeviceptr_t to, void *from, size_t bytes, hipStream_t stream)) \
  X(ALL, hipError_t, hipMemcpyDtoHAsync, (void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream)) \
  X(ALL, hipError_t, hipMemcpyDtoDAsync, (hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream)) \
  X(ALL, hipError_t, hipMemsetD8Async, (hipDeviceptr_t to, unsigned char value, size_t bytes, hipStream_t stream)) \
  X(ALL, hipError_t, hipStreamCreateWithFlags, (hipStream_t *stream, unsigned int flags)) \
  X(ALL, hipError_t, hipStreamDestroy, (hipStream_t stream)) \
  X(ALL, hipError_t, hipStreamSynchronize, (hipStream_t stream)) \
  X(ALL, hipError_t, hipStreamQuery, (hipStream_t stream)) \
  X(ALL, hipError_t, hipStreamIsCapturing, (hipStream_t stream, hipStreamCaptureStatus *status)) \
  X(ALL, hipError_t, hipThreadExchangeStreamCaptureMode, (hipStreamCaptureMode *mode)) \
  X(ALL, hipError_t, hipEventCreateWithFlags, (hipEvent_t *event, unsigned int flags)) \
  X(ALL, hipError_t, hipEventDestroy, (hipEvent_t event)) \
  X(ALL, hipError_t, hipEventRecord, (hipEvent_t event, hipStream_t stream)) \
  X(ALL, hipError_t, hipEventQuery, (hipEvent_t event)) \
  X(ALL, hipError_t, hipEventSynchronize, (hipEvent_t event)) \
  X(ALL, hipError_t, hipModuleLoadData, (hipModule_t *module, const void *image)) \
  X(ALL, hipError_t, hipModuleUnload, (hipModule_t module)) \
  X(ALL, hipError_t, hipModuleGetFunction, (hipFunction_t *function, hipModule_t module, const char *name)) \
  X(ALL, hipError_t, hipModuleLaunchKernel, \
    (hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x, \
     unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, hipStream_t stream, void **parameters, \
     void **extra)) \
  X(ALL, hipError_t, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor, \
    (int *blocks, hipFunction_t function, int threads, size_t shared_bytes)) \
  X(ALL, hipError_t, hipGraphCreate, (hipGraph_t *graph, unsigned int flags)) \
  X(ALL, hipError_t, hipGraphDestroy, (hipGraph_t graph)) \
  X(ALL, hipError_t, hipGraphAddKernelNode, \
    (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count, \
     const hipKernelNodeParams *parameters)) \
  X(ALL, hipError_t, hipGraphAddEmptyNode, \
    (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count)) \
  X(ALL, hipError_t, hipGraphInstantiateWithFlags, \
    (hipGraphExec_t *exec, hipGraph_t graph, unsigned long long flags)) \
  X(ALL, hipError_t, hipGraphLaunch, (hipGraphExec_t exec, hipStream_t stream)) \
  X(ALL, hipError_t, hipGraphExecDestroy, (hipGraphExec_t exec))

/* ---- hipRTC, in the runtime's library up to HIP 5, later in one of its own -------------------------------------- */

typedef enum hiprtcResult {
  HIPRTC_SUCCESS = 0,
  HIPRTC_ERROR_OUT_OF_MEMORY = 1,
  HIPRTC_ERROR_INVALID_OPTION = 5,
  HIPRTC_ERROR_COMPILATION = 6
} hiprtcResult;
typedef struct _hiprtcProgram *hiprtcProgram;

#define GKI_HIPRTC_ENTRIES(X) \
  X(const char *, hiprtcGetErrorString, (hiprtcResult result)) \
  X(hiprtcResult, hiprtcVersion, (int *major, int *minor)) \
  X(hiprtcResult, hiprtcCreateProgram, \
    (hiprtcProgram *program, const char *source, const char *name, int header_count, const char **headers, \
     const char **names)) \
  X(hiprtcResult, hiprtcCompileProgram, (hiprtcProgram program, int count, const char **options)) \
  X(hiprtcResult, hiprtcDestroyProgram, (hiprtcProgram *program)) \
  X(hiprtcResult, hiprtcGetProgramLogSize, (hiprtcProgram program, size_t *bytes)) \
  X(hiprtcResult, hiprtcGetProgramLog, (hiprtcProgram program, char *log)) \
  X(hiprtcResult, hiprtcGetCodeSize, (hiprtcProgram program, size_t *bytes)) \
  X(hiprtcResult, hiprtcGetCode, (hiprtcProgram program, char *code))
#endif
