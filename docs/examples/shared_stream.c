/* A program that uses CUDA itself, with a list of gk in between. They share the context, the memory and the order of
 * streams. The host waits once, at the end.
 *
 * The stream belongs to the program. It puts a copy there, then gk's launch, then a copy back. The list halves numbers
 * until the largest is small enough. The device decides the number of passes. Then the program does the same on another
 * stream.
 *
 *   cc -std=c11 shared_stream.c -lgk -lcuda -o shared_stream && ./shared_stream */
#include <cuda.h>
#include <gk_cuda.h>
#include <gk_kernel.h>
#include <stdio.h>
#include <stdlib.h>

GK_SOURCE(shared_stream)
GK_KERNEL(halve, (inout(int, x))) { x[i] /= 2; }
GK_KERNEL(look, (in(int, x), value(int, count), value(int, limit), out(int, again), inout(int, passes))) {
  int largest = 0;
  for (int k = 0; k < count; ++k) largest = x[k] > largest ? x[k] : largest;
  again[i] = largest > limit ? 1 : 0;
  passes[i] += 1;
}
GK_SOURCE_END

enum { X = 1, COUNT, LIMIT, AGAIN, PASSES };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_SCALAR(COUNT, int), GK_SCALAR(LIMIT, int),
                                     GK_OWN(AGAIN, int, 1), GK_OWN(PASSES, int, 1)};
static const gk_task tasks[] = {
  GK_FILL(PASSES, GK_ONE, 0),
  GK_DO_WHILE(AGAIN),
    GK_RUN(halve, COUNT, X),
    GK_RUN(look, GK_ONE, X, COUNT, LIMIT, AGAIN, PASSES),
  GK_END};
static const gk_list list = GK_LIST(list, tasks, slots);

enum { NUMBERS = 1000 };

static void must(int right) {
  if (right) return;
  fprintf(stderr, "%s\n", gk_error());
  exit(1);
}

static void check(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "CUDA answers %d\n", (int)result);
  exit(1);
}

/* Puts all work on the stream and doesn't wait. */
static void put(gk_graph *graph, CUstream stream, CUdeviceptr x, const int *from, int *to) {
  check(cuMemcpyHtoDAsync(x, from, NUMBERS * sizeof *from, stream));
  must(gk_launch_on(graph, 0, stream) == GK_OK);
  check(cuMemcpyDtoHAsync(to, x, NUMBERS * sizeof *to, stream));
}

int main(void) {
  static int from[NUMBERS], to[NUMBERS];
  CUcontext context;
  CUstream mine, other;
  CUdeviceptr x;
  for (int k = 0; k < NUMBERS; ++k) from[k] = k;
  check(cuInit(0));
  check(cuDevicePrimaryCtxRetain(&context, 0));
  check(cuCtxPushCurrent(context));
  check(cuStreamCreate(&mine, CU_STREAM_NON_BLOCKING));
  check(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  check(cuMemAlloc(&x, sizeof from));

  gk_cuda_sharing sharing = GK_CUDA_SHARE(context, mine);
  gk_device *device = NULL;
  gk_graph *graph = NULL;
  const gk_status *status = NULL;
  must(gk_device_open(&(gk_device_desc){.backend = "cuda", .next = &sharing.base}, &device) == GK_OK);
  must(gk_graph_create(device, &list, 0, &graph) == GK_OK);
  gk_bind(graph, X, (void *)(uintptr_t)x); /* the program's own memory */
  gk_bind_int(graph, COUNT, NUMBERS);
  gk_bind_int(graph, LIMIT, 10);

  put(graph, mine, x, from, to);
  check(cuStreamSynchronize(mine));
  must(gk_wait(graph, &status) == GK_OK);
  printf("%llu passes, the last number is %d\n", (unsigned long long)gk_passes(status, 0), to[NUMBERS - 1]);

  gk_bind_int(graph, LIMIT, 100);
  put(graph, other, x, from, to);
  check(cuStreamSynchronize(other));
  must(gk_wait(graph, &status) == GK_OK);
  printf("%llu passes, the last number is %d\n", (unsigned long long)gk_passes(status, 0), to[NUMBERS - 1]);

  gk_graph_destroy(graph);
  gk_device_close(device); /* context and stream stay */
  check(cuMemFree(x));
  check(cuStreamDestroy(other));
  check(cuStreamDestroy(mine));
  check(cuCtxPopCurrent(NULL));
  check(cuDevicePrimaryCtxRelease(0));
  return 0;
}
