/* cuda.h for the examples where no toolkit is: what they call of the driver API, found in the driver that is loaded.
 * tests/repo/examples.py compiles and links them with a toolkit, too, if there is one. */
#ifndef STUB_CUDA_H
#define STUB_CUDA_H
#include "simgpu/simgpu.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static struct {
#define MEMBER(name, version, since, parameters) CUresult(*name) parameters;
  GKI_CUDA_ENTRIES(MEMBER) SIMGPU_ENTRIES(MEMBER)
#undef MEMBER
} cuda_stub;

__attribute__((constructor))
static void cuda_stub_find(void) {
  CUresult (*find)(const char *name, void **entry, int version, cuuint64_t flags);
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *entry = library ? dlsym(library, "cuGetProcAddress")
                                                                                  : NULL;
  if (!entry) abort();
  memcpy(&find, &entry, sizeof find);
#define FIND(name, version, since, parameters) \
  entry = NULL; \
  (void)find(#name, &entry, version, 0); \
  memcpy(&cuda_stub.name, &entry, sizeof entry);
  GKI_CUDA_ENTRIES(FIND) SIMGPU_ENTRIES(FIND)
#undef FIND
}

#define cuInit cuda_stub.cuInit
#define cuDeviceGet cuda_stub.cuDeviceGet
#define cuDeviceGetAttribute cuda_stub.cuDeviceGetAttribute
#define cuDevicePrimaryCtxRetain cuda_stub.cuDevicePrimaryCtxRetain
#define cuDevicePrimaryCtxRelease cuda_stub.cuDevicePrimaryCtxRelease
#define cuCtxPushCurrent cuda_stub.cuCtxPushCurrent
#define cuCtxPopCurrent cuda_stub.cuCtxPopCurrent
#define cuCtxGetCurrent cuda_stub.cuCtxGetCurrent
#define cuCtxGetDevice cuda_stub.cuCtxGetDevice
#define cuStreamCreate cuda_stub.cuStreamCreate
#define cuStreamDestroy cuda_stub.cuStreamDestroy
#define cuStreamSynchronize cuda_stub.cuStreamSynchronize
#define cuStreamIsCapturing cuda_stub.cuStreamIsCapturing
#define cuMemAlloc cuda_stub.cuMemAlloc
#define cuMemFree cuda_stub.cuMemFree
#define cuMemcpyHtoDAsync cuda_stub.cuMemcpyHtoDAsync
#define cuMemcpyDtoHAsync cuda_stub.cuMemcpyDtoHAsync
#define cuMemsetD8Async cuda_stub.cuMemsetD8Async
#define cuModuleLoadDataEx cuda_stub.cuModuleLoadDataEx
#define cuModuleGetFunction cuda_stub.cuModuleGetFunction
#define cuModuleUnload cuda_stub.cuModuleUnload
#define cuLaunchKernel cuda_stub.cuLaunchKernel
#define cuGraphCreate cuda_stub.cuGraphCreate
#define cuGraphAddKernelNode cuda_stub.cuGraphAddKernelNode
#define cuGraphGetNodes cuda_stub.cuGraphGetNodes
#define cuGraphDebugDotPrint cuda_stub.cuGraphDebugDotPrint
#define cuGraphKernelNodeGetParams cuda_stub.cuGraphKernelNodeGetParams
#define cuGraphInstantiateWithFlags cuda_stub.cuGraphInstantiateWithFlags
#define cuGraphExecKernelNodeSetParams cuda_stub.cuGraphExecKernelNodeSetParams
#define cuGraphLaunch cuda_stub.cuGraphLaunch
#define cuGraphExecDestroy cuda_stub.cuGraphExecDestroy
#define cuGraphDestroy cuda_stub.cuGraphDestroy
#define CUDA_KERNEL_NODE_PARAMS CUDA_KERNEL_NODE_PARAMS_v1
#endif
