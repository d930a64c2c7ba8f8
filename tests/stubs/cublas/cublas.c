/* What cublas_v2.h beside this file declares, stricter than NVIDIA's. Kernels go to the handle's stream. Refused, and
 * said to stderr: another context than the handle's, and in a capture any call that needs memory of cuBLAS's own, or
 * would have to wait. */
#include "cublas_v2.h"
#include "docs/examples/by_hand.h"
#include <stdint.h>

struct cublasContext {
  CUcontext context;
  CUmodule module;
  CUstream stream;
  void *workspace; /* NULL: one of cuBLAS's own */
  cublasPointerMode_t mode;
};

static const char kernels[] =
  "extern \"C\" __global__ void gemv(int m, int n, double alpha, const double *a, int lda, const double *x,\n"
  "                                double beta, double *y) {\n"
  "  const int row = blockIdx.x * blockDim.x + threadIdx.x;\n"
  "  if (row >= m) return;\n"
  "  double sum = 0;\n"
  "  for (int k = 0; k < n; ++k) sum += a[row + (size_t)k * lda] * x[k];\n"
  "  y[row] = alpha * sum + (beta == 0 ? 0 : beta * y[row]);\n"
  "}\n"
  "extern \"C\" __global__ void square(int n, const double *x, double *parts) {\n"
  "  const int first = blockIdx.x * blockDim.x + threadIdx.x;\n"
  "  parts[first] = 0;\n"
  "  for (int k = first; k < n; k += gridDim.x * blockDim.x) parts[first] += x[k] * x[k];\n"
  "}\n"
  "extern \"C\" __global__ void root(int n, const double *parts, double *result) {\n"
  "  double sum = 0;\n"
  "  for (int k = 0; k < n; ++k) sum += parts[k];\n"
  "  *result = sqrt(sum);\n"
  "}\n";
enum { PARTS = 64 };

static cublasStatus_t refuse(cublasStatus_t status, const char *why) {
  fprintf(stderr, "cuBLAS's stand-in: %s\n", why);
  return status;
}

static cublasStatus_t put(cublasHandle_t handle, const char *name, unsigned blocks, unsigned threads,
                          void **parameters) {
  CUfunction function;
  CUcontext current;
  CUstreamCaptureStatus captured;
  if (cuCtxGetCurrent(&current) || current != handle->context)
    return refuse(CUBLAS_STATUS_EXECUTION_FAILED, "another context than the handle's is current");
  if (cuStreamIsCapturing(handle->stream, &captured)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (captured && !handle->workspace)
    return refuse(CUBLAS_STATUS_ALLOC_FAILED, "without cublasSetWorkspace it would record nodes that take memory");
  if (cuModuleGetFunction(&function, handle->module, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
  return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, handle->stream, parameters, NULL)
           ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasCreate(cublasHandle_t *handle) {
  *handle = calloc(1, sizeof **handle);
  if (!*handle) return CUBLAS_STATUS_ALLOC_FAILED;
  CHECK(cuCtxGetCurrent(&(*handle)->context));
  (*handle)->module = compile(kernels);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  CHECK(cuModuleUnload(handle->module));
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status) { return status ? "the stand-in refuses" : "success"; }

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  handle->workspace = NULL;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes) {
  if ((uintptr_t)workspace % 256 || bytes < 16384) return refuse(CUBLAS_STATUS_INVALID_VALUE, "what a workspace");
  handle->workspace = workspace;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  handle->mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDgemv(cublasHandle_t handle, cublasOperation_t operation, int m, int n, const double *alpha,
                           const double *a, int lda, const double *x, int incx, const double *beta, double *y,
                           int incy) {
  if (operation != CUBLAS_OP_N || incx != 1 || incy != 1 || handle->mode != CUBLAS_POINTER_MODE_HOST)
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "it knows less of Dgemv than that");
  double by_value[] = {*alpha, *beta};
  void *parameters[] = {&m, &n, &by_value[0], &a, &lda, &x, &by_value[1], &y};
  return put(handle, "gemv", ((unsigned)m + 31) / 32, 32, parameters);
}

cublasStatus_t cublasDnrm2(cublasHandle_t handle, int n, const double *x, int incx, double *result) {
  if (incx != 1) return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "it knows less of Dnrm2 than that");
  if (handle->mode != CUBLAS_POINTER_MODE_DEVICE)
    return refuse(CUBLAS_STATUS_EXECUTION_FAILED, "a result for the host would have to be waited for");
  int parts = PARTS;
  cublasStatus_t status = put(handle, "square", PARTS / 32, 32, (void *[]){&n, &x, &handle->workspace});
  return status ? status : put(handle, "root", 1, 1, (void *[]){&parts, &handle->workspace, &result});
}
