/* The simulated driver's controls for tests, beside its environment (README.md). How a test gets them:
 *   void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);   with RTLD_NOLOAD left out to load it
 *   const simgpu *sim = dlsym(library, "simgpu_control");
 * All of it may be called at any time by any thread. */
#ifndef SIMGPU_H
#define SIMGPU_H
#include "cuda/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How call k fails. */
typedef enum simgpu_how {
  SIMGPU_NOW,  /* it does nothing and answers the code; what gives something back does so all the same */
  SIMGPU_LATE, /* it works, then the device fails: its context answers the code from the next wait on, for ever */
  SIMGPU_LOST  /* it and every later call answer the code, except for pushes and pops of contexts and exchanges of the
                * capture mode, which need no device; what gives something back does so all the same */
} simgpu_how;

/* Objects that stay alive until they are given back; for `alive`. */
typedef enum simgpu_kind {
  SIMGPU_ALL,
  SIMGPU_RETAINS, /* of primary contexts */
  SIMGPU_STREAMS,
  SIMGPU_EVENTS,
  SIMGPU_MODULES,
  SIMGPU_GRAPHS, /* those that a caller made: no bodies, no copies in child nodes */
  SIMGPU_EXECS,
  SIMGPU_MEMORY, /* blocks of device memory, */
  SIMGPU_PINNED, /* of pinned and */
  SIMGPU_MANAGED, /* of managed memory */
  SIMGPU_CONTEXTS, /* that a caller made */
  SIMGPU_KINDS
} simgpu_kind;

/* Since the last mark. */
typedef struct simgpu_counts {
  uint64_t calls;
  uint64_t waits;    /* calls that may block their thread: waits, pageable copies to the host, frees, unloads */
  uint64_t memory;   /* calls that take or give back memory of any kind */
  uint64_t pageable; /* copies from or to host memory that isn't pinned */
  uint64_t launches; /* of graphs, */
  uint64_t kernels;  /* of kernels outside of graphs, and */
  uint64_t copies;   /* asynchronous copies and fills handed over */
  uint64_t nodes;    /* of graphs, that the device came by, without those of closed bodies, */
  uint64_t kernel_nodes, conditional_nodes; /* and of those */
  uint64_t passes;   /* of WHILE nodes */
  uint64_t dropped;  /* settings of handles ignored because of a probe's answer */
} simgpu_counts;

typedef struct simgpu {
  size_t bytes; /* of this struct: new members come at its end */

  /* The environment at the start. NULL for answer_no: all answers as a good driver gives them. */
  void (*set_version)(int version);
  void (*set_seed)(uint64_t seed);
  void (*answer_no)(const char *probes); /* as SIMGPU_NO: "P2d,P4e" */
  void (*allow)(const char *rules);      /* as SIMGPU_ALLOW: names of rules that may be broken */
  void (*set_passes)(uint64_t limit);    /* as SIMGPU_PASSES: of a WHILE node in a launch */

  /* Starts all counts from 0, and ends the effect of fail(). */
  void (*mark)(void);
  simgpu_counts (*counts)(void);
  uint64_t (*calls)(const char *entry); /* of one entry since the mark */
  /* The k-th call from now on, from 1, fails; 0: none does. cuGetErrorName, cuGetErrorString and
   * cuGetProcAddress aren't counted. (cmocka has a macro of that name: write (sim->fail)(...).) */
  void (*fail)(uint64_t k, CUresult code, simgpu_how how);
  const char *(*failed)(void); /* which entry it hit; NULL: it hasn't been reached yet */

  /* Rules broken since start or forgive(). The text stays until the next call of either. */
  unsigned (*broken)(void);
  const char *(*first_broken)(void); /* "NAME: what happened" of the first one; "" if there is none */
  void (*forgive)(void);
  const char *(*refused)(void); /* why the last call of this thread that was refused was; "" */

  size_t (*alive)(simgpu_kind kind);
  /* Holds the device before its next piece of work, or lets it go on: for tests of launches under way. */
  void (*hold)(int held);
  /* As SIMGPU_BUSY: others' work stands in front of all kernels and graphs, until so many questions (cuStreamQuery,
   * cuEventQuery) were answered with CUDA_ERROR_NOT_READY, or something waits. */
  void (*busy)(uint64_t questions);
  /* From now on cuStreamQuery answers once the device can't go on by itself, so that the number of questions in a loop
   * doesn't depend on how fast the device's thread is; 0: it answers at once. */
  void (*settle)(int settles);
  void (*lack)(const char *entries); /* as SIMGPU_LACKS: from now on they aren't found; NULL: all are */
  /* From now on the devices work only while something waits for them; a question that is answered with "not ready" lets
   * them do one piece of work. So whatever isn't waited for is still under way, however fast the machine is. */
  void (*lazy)(int is_lazy);
  size_t (*queued)(void); /* kernels, graphs, copies and fills that aren't over, on whatever stream */
} simgpu;

extern const simgpu simgpu_control;

/* Entries that gk never calls, but programs and libraries beside it, rules, or tests; found by cuGetProcAddress as the
 * others. tests/cuda/abi.py compares them, too. */
typedef void (*CUhostFn)(void *data);
typedef struct CUDA_HOST_NODE_PARAMS_st { CUhostFn fn; void *userData; } CUDA_HOST_NODE_PARAMS;
enum { CU_EVENT_WAIT_EXTERNAL = 1 };
typedef struct CUgraphExecUpdateResultInfo_st CUgraphExecUpdateResultInfo;
typedef enum CUmemAttach_flags_enum { CU_MEM_ATTACH_GLOBAL = 1 } CUmemAttach_flags;

typedef struct CUDA_MEMSET_NODE_PARAMS_v2_st { /* a member of CUgraphNodeParams' union */
  CUdeviceptr dst;
  size_t pitch;
  unsigned int value;
  unsigned int elementSize;
  size_t width;
  size_t height;
  CUcontext ctx;
} CUDA_MEMSET_NODE_PARAMS_v2;

typedef struct CUDA_MEMSET_NODE_PARAMS_st {
  CUdeviceptr dst;
  size_t pitch;
  unsigned int value;
  unsigned int elementSize;
  size_t width;
  size_t height;
} CUDA_MEMSET_NODE_PARAMS_v1;

typedef struct CUDA_KERNEL_NODE_PARAMS_v2_st { /* from 12.0 on also what cuGraphAddKernelNode takes */
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
} CUDA_KERNEL_NODE_PARAMS_v2;

#define SIMGPU_ENTRIES(X) \
  X(cuDeviceTotalMem, 3020, 0, (size_t *bytes, CUdevice device)) \
  X(cuDevicePrimaryCtxReset, 11000, 0, (CUdevice device)) \
  X(cuDeviceGetPCIBusId, 4010, 0, (char *bus, int length, CUdevice device)) \
  X(cuCtxCreate, 3020, 0, (CUcontext *context, unsigned int flags, CUdevice device)) \
  X(cuCtxDestroy, 4000, 0, (CUcontext context)) \
  X(cuMemGetInfo, 3020, 0, (size_t *left, size_t *all)) \
  X(cuMemAllocManaged, 6000, 0, (CUdeviceptr *memory, size_t bytes, unsigned int flags)) \
  X(cuLaunchKernel, 4000, 0, \
    (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x, \
     unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **parameters, \
     void **extra)) \
  X(cuLaunchCooperativeKernel, 9000, 0, \
    (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x, \
     unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **parameters)) \
  X(cuLaunchHostFunc, 10000, 0, (CUstream stream, CUhostFn function, void *data)) \
  X(cuStreamUpdateCaptureDependencies, 12030, 12030, \
    (CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count, unsigned int flags)) \
  X(cuGraphClone, 10000, 0, (CUgraph *clone, CUgraph graph)) \
  X(cuGraphAddDependencies, 12030, 12030, \
    (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count)) \
  X(cuGraphAddHostNode, 10000, 0, \
    (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, \
     const CUDA_HOST_NODE_PARAMS *parameters)) \
  X(cuGraphAddMemsetNode, 10000, 0, \
    (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, \
     const CUDA_MEMSET_NODE_PARAMS_v1 *parameters, CUcontext context)) \
  X(cuGraphKernelNodeGetParams, 10000, 0, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *parameters)) \
  X(cuGraphExecUpdate, 12000, 12000, (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *result))

#ifdef __cplusplus
}
#endif
#endif
