/* cuBLAS in a loop that the device runs by itself: power iteration, for the largest eigenvalue of a symmetric matrix.
 *
 * A pass multiplies a vector by the matrix and computes the norm of the product. These are two calls of cuBLAS. gk
 * records them into the loop's body when their slots are bound. Then the pass divides by the norm, and compares it with
 * the norm of the previous pass. The device decides the number of passes.
 *
 *   cc -std=c11 power_iteration.c -lgk -lcublas -lcuda -lm -o power_iteration && ./power_iteration */
#include <cublas_v2.h>
#include <cuda.h>
#include <gk_cuda.h>
#include <gk_kernel.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

GK_SOURCE(power_iteration)
GK_KERNEL(normalize, (in(double, y), in(double, norm), out(double, x))) { x[i] = y[i] / norm[0]; }
GK_KERNEL(judge, (in(double, norm), value(double, accuracy), inout(double, eigenvalue), out(int, again))) {
  again[i] = fabs(norm[i] - eigenvalue[i]) > accuracy * norm[i] ? 1 : 0;
  eigenvalue[i] = norm[i];
}
GK_SOURCE_END

enum { N = 32, WORKSPACE = 4 << 20 /* bytes */ };
typedef struct blas { cublasHandle_t handle; void *workspace; } blas;

/* gk records the work that the two calls put on the stream. Numbers of the host are recorded by value. Results stay on
 * the device; the host would have to wait for them. */
static cublasStatus_t multiply_on(const blas *b, CUstream stream, int n, const double *a, const double *x, double *y,
                                  double *norm) {
  const double one = 1, zero = 0;
  cublasStatus_t status = cublasSetStream(b->handle, stream); /* removes the workspace, which is set next */
  if (!status) status = cublasSetWorkspace(b->handle, b->workspace, WORKSPACE);
  if (!status) status = cublasSetPointerMode(b->handle, CUBLAS_POINTER_MODE_HOST);
  if (!status) status = cublasDgemv(b->handle, CUBLAS_OP_N, n, n, &one, a, n, x, 1, &zero, y, 1);
  if (!status) status = cublasSetPointerMode(b->handle, CUBLAS_POINTER_MODE_DEVICE);
  if (!status) status = cublasDnrm2(b->handle, n, y, 1, norm);
  return status;
}

/* Y = A X, NORM = |Y|. */
static gk_result multiply(const gk_value *args, void *native) {
  const blas *b = args[0].ptr;
  cublasStatus_t status = multiply_on(b, native, args[1].i32, args[2].ptr, args[3].ptr, args[4].ptr, args[5].ptr);
  (void)cublasSetStream(b->handle, NULL); /* gk destroys its stream after the call */
  if (status) fprintf(stderr, "cuBLAS: %s\n", cublasGetStatusString(status));
  return status ? GK_ERROR_DEVICE : GK_OK;
}

enum { BLAS = 1, COUNT, A, X, Y, NORM, EIGENVALUE, ACCURACY, AGAIN };
static const gk_slot_desc slots[] = {{.slot = BLAS, .type = GK_HOST_PTR, .name = "BLAS"},
                                     GK_DEFAULT(COUNT, int, N),
                                     GK_BUFFER(A, double),
                                     GK_OWN(X, double, N),
                                     GK_OWN(Y, double, N),
                                     GK_OWN(NORM, double, 1),
                                     GK_OWN(EIGENVALUE, double, 1),
                                     GK_DEFAULT(ACCURACY, double, 1e-10),
                                     GK_OWN(AGAIN, int, 1)};
static const gk_task tasks[] = {
  GK_FILL(EIGENVALUE, GK_ONE, 0),
  GK_DO_WHILE(AGAIN, .max_iterations = 10000),
    GK_CALL(multiply, BLAS, COUNT, A, X, Y, NORM),
    GK_RUN(normalize, COUNT, Y, NORM, X),
    GK_RUN(judge, GK_ONE, NORM, ACCURACY, EIGENVALUE, AGAIN),
  GK_END};
static const gk_list list = GK_LIST(list, tasks, slots);

static void must(int right) {
  if (right) return;
  fprintf(stderr, "%s\n", gk_error());
  exit(1);
}

/* Two matrices with known eigenvalues. The first is the flexibility of a string with one loose end. The second is the
 * stiffness of a string with two fixed ends, with the other sign beside the diagonal, which doesn't change the largest
 * eigenvalue. */
static double yields(int row, int column) { return row < column ? row + 1 : column + 1; }
static double is_stiff(int row, int column) { return row == column ? 2 : abs(row - column) == 1 ? 1 : 0; }

/* A is in new memory. Its address differs from the previous one, so gk records the calls again. */
static int find(gk_device *device, gk_graph *graph, const char *name, double (*matrix)(int, int), double wanted) {
  static double a[N * N], x[N];
  double found = 0;
  const gk_status *status;
  double *memory = gk_alloc(device, sizeof a, GK_DEVICE_MEMORY);
  must(memory != NULL);
  for (int k = 0; k < N * N; ++k) a[k] = matrix(k / N, k % N);
  for (int k = 0; k < N; ++k) x[k] = 1 / sqrt(N);
  must(gk_upload(device, memory, a, sizeof a) == GK_OK);
  must(gk_write(graph, X, x, N) == GK_OK);
  must(gk_bind(graph, A, memory) == GK_OK);
  must(gk_launch_wait(graph, 0, &status) == GK_OK);
  must(gk_read(graph, EIGENVALUE, &found, 1) == GK_OK);
  printf("%s: %.6f after %d passes\n", name, found, (int)gk_passes(status, 0));
  gk_free(device, memory);
  if (fabs(found - wanted) <= 1e-6 * wanted) return 1;
  fprintf(stderr, "it should be %.6f\n", wanted);
  return 0;
}

int main(void) {
  const double pi = acos(-1), half = sin(pi / (4 * N + 2));
  gk_device *device;
  gk_graph *graph;
  CUcontext context;
  blas b;
  must(gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device) == GK_OK);
  must(gk_cuda_context(device, &context, NULL) == GK_OK);
  if (cuCtxPushCurrent(context) || cublasCreate(&b.handle)) exit((fprintf(stderr, "no cuBLAS\n"), 1));
  b.workspace = gk_alloc(device, WORKSPACE, GK_DEVICE_MEMORY);
  must(b.workspace != NULL);
  must(gk_graph_create(device, &list, 0, &graph) == GK_OK);
  must(gk_bind(graph, BLAS, &b) == GK_OK);
  int right = find(device, graph, "a string with a loose end", yields, 1 / (4 * half * half));
  right &= find(device, graph, "a string with none", is_stiff, 2 + 2 * cos(pi / (N + 1)));
  if (gk_cuda_graph(graph, 0, NULL, NULL) != GK_OK) printf("%s\n", gk_error()); /* on older drivers */
  gk_graph_destroy(graph);
  gk_free(device, b.workspace);
  if (cublasDestroy(b.handle) || cuCtxPopCurrent(NULL)) right = 0;
  gk_device_close(device);
  return right ? 0 : 1;
}
