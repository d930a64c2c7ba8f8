/* A library that stands for NCCL in tests, for one rank. Its sums are what the rank has. They record a fill, or a host
 * function if $NCCL_RECORDS is "host". The simulated driver has its entries behind cuGetProcAddress only. */
#include <cuda.h>
#include <nccl.h>
#include <stdlib.h>
#include <string.h>

static CUdeviceptr memory;
static void do_nothing(void *unused) { (void)unused; }

static void *entry(const char *name) {
  void *at = NULL;
  if (cuGetProcAddress(name, &at, 12000, 0, NULL) != CUDA_SUCCESS || !at) abort();
  return at;
}
#define ENTRY(name, ...) (((CUresult (*)(__VA_ARGS__))entry(name)))

/* For nccl_cg.c. */
CUresult cuCtxPushCurrent(CUcontext context) { return ENTRY("cuCtxPushCurrent", CUcontext)(context); }
CUresult cuCtxPopCurrent(CUcontext *context) { return ENTRY("cuCtxPopCurrent", CUcontext *)(context); }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  memset(id, 0, sizeof *id);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
  (void)id;
  *comm = NULL;
  if (ranks != 1 || rank != 0) return ncclInvalidArgument;
  const CUresult result = ENTRY("cuMemAlloc", CUdeviceptr *, size_t)(&memory, sizeof(int));
  return result == CUDA_SUCCESS ? ncclSuccess : ncclInternalError;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  (void)comm;
  return ENTRY("cuMemFree", CUdeviceptr)(memory) == CUDA_SUCCESS ? ncclSuccess : ncclInternalError;
}
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  const char *what = getenv("NCCL_RECORDS");
  (void)count, (void)type, (void)op, (void)comm;
  if (from != to) return ncclInvalidUsage;
  const CUresult result =
    what && strcmp(what, "host") == 0
      ? ENTRY("cuLaunchHostFunc", CUstream, CUhostFn, void *)(stream, do_nothing, NULL)
      : ENTRY("cuMemsetD8Async", CUdeviceptr, unsigned char, size_t, CUstream)(memory, 0, 1, stream);
  return result == CUDA_SUCCESS ? ncclSuccess : ncclInternalError;
}
ncclResult_t ncclGroupStart(void) { return ncclSuccess; }
ncclResult_t ncclGroupEnd(void) { return ncclSuccess; }
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  (void)from, (void)count, (void)type, (void)peer, (void)comm, (void)stream;
  return ncclInvalidUsage;
}
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return ncclSend(to, count, type, peer, comm, stream);
}
const char *ncclGetErrorString(ncclResult_t result) { return result == ncclSuccess ? "no error" : "an error"; }
