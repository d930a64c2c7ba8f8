/* cuda.h for the examples where no toolkit is: what they call of the driver API, found in the driver that is loaded.
 * tests/repo/examples.py compiles and links them with a toolkit, too, if there is one. */
#ifndef USER_CUDA_H
#define USER_CUDA_H
#include "simgpu/simgpu.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static struct {
#define MEMBER(name, version, since, parameters) CUresult(*name) parameters;
  GKI_CUDA_ENTRIES(MEMBER) SIMGPU_ENTRIES(MEMBER)
#undef MEMBER
} user_cuda;

__attribute__((constructor))
static void user_cuda_find(void) {
  CUresult (*find)(const char *name, void **entry, int version, cuuint64_t flags);
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *entry = library ? dlsym(library, "cuGetProcAddress")
                                                                                  : NULL;
  if (!entry) abort();
  memcpy(&find, &entry, sizeof find);
#define FIND(name, version, since, parameters) \
  entry = NULL; \
  (void)find(#name, &entry, version, 0); \
  memcpy(&user_cuda.name, &entry, sizeof entry);
  GKI_CUDA_ENTRIES(FIND) SIMGPU_ENTRIES(FIND)
#undef FIND
}

#define cuInit user_cuda.cuInit
#define cuDeviceGet user_cuda.cuDeviceGet
#define cuDeviceGetAttribute user_cuda.cuDeviceGetAttribute
#define cuDevicePrimaryCtxRetain user_cuda.cuDevicePrimaryCtxRetain
#define cuDevicePrimaryCtxRelease user_cuda.cuDevicePrimaryCtxRelease
#define cuCtxPushCurrent user_cuda.cuCtxPushCurrent
#define cuCtxPopCurrent user_cuda.cuCtxPopCurrent
#define cuCtxGetCurrent user_cuda.cuCtxGetCurrent
#define cuCtxGetDevice user_cuda.cuCtxGetDevice
#define cuStreamCreate user_cuda.cuStreamCreate
#define cuStreamDestroy user_cuda.cuStreamDestroy
#define cuStreamSynchronize user_cuda.cuStreamSynchronize
#define cuStreamIsCapturing user_cuda.cuStreamIsCapturing
#define cuMemAlloc user_cuda.cuMemAlloc
#define cuMemFree user_cuda.cuMemFree
#define cuMemcpyHtoDAsync user_cuda.cuMemcpyHtoDAsync
#define cuMemcpyDtoHAsync user_cuda.cuMemcpyDtoHAsync
#define cuMemsetD8Async user_cuda.cuMemsetD8Async
#define cuModuleLoadDataEx user_cuda.cuModuleLoadDataEx
#define cuModuleGetFunction user_cuda.cuModuleGetFunction
#define cuModuleUnload user_cuda.cuModuleUnload
#define cuLaunchKernel user_cuda.cuLaunchKernel
#define cuGraphCreate user_cuda.cuGraphCreate
#define cuGraphAddKernelNode user_cuda.cuGraphAddKernelNode
#define cuGraphGetNodes user_cuda.cuGraphGetNodes
#define cuGraphDebugDotPrint user_cuda.cuGraphDebugDotPrint
#define cuGraphKernelNodeGetParams user_cuda.cuGraphKernelNodeGetParams
#define cuGraphInstantiateWithFlags user_cuda.cuGraphInstantiateWithFlags
#define cuGraphExecKernelNodeSetParams user_cuda.cuGraphExecKernelNodeSetParams
#define cuGraphLaunch user_cuda.cuGraphLaunch
#define cuGraphExecDestroy user_cuda.cuGraphExecDestroy
#define cuGraphDestroy user_cuda.cuGraphDestroy
#define CUDA_KERNEL_NODE_PARAMS CUDA_KERNEL_NODE_PARAMS_v1
#endif
