/* Heat spreads over a plate whose edges have a fixed temperature, until the temperatures hardly change. A CUDA graph
 * makes two sweeps over the plate and computes the change. In relax_before.c the host launches the graph, waits, and
 * decides about the next launch, as such programs do. In relax_after.c the graph decides by itself. There is no other
 * difference.
 *
 *   cc relax_before.c -lcuda -lnvrtc -lm -o relax && ./relax */
#include "by_hand.h"
#include <math.h>

enum { N = 24, CELLS = N * N, MOST = 2000 /* launches */ };
typedef struct progress { int moving, sweeps; float change; } progress; /* on the device, as kernels have it */
static int launches;

static const char kernels[] =
  "struct progress { int moving, sweeps; float change; };\n"
  "extern \"C\" __global__ void sweep(const float *from, float *to, int n) {\n"
  "  const int k = blockIdx.x * blockDim.x + threadIdx.x, x = k % n, y = k / n;\n"
  "  if (x > 0 && x < n - 1 && y > 0 && y < n - 1)\n"
  "    to[k] = 0.25f * (from[k - 1] + from[k + 1] + from[k - n] + from[k + n]);\n"
  "}\n"
  "extern \"C\" __global__ void compare(const float *a, const float *b, int cells, progress *p) {\n"
  "  const int k = blockIdx.x * blockDim.x + threadIdx.x;\n"
  "  if (k < cells) atomicMax((int *)&p->change, __float_as_int(fabsf(a[k] - b[k])));\n" /* bits of floats >= 0 */
  "}\n"
  "extern \"C\" __global__ void judge(progress *p, float limit) {\n"
  "  p->moving = p->change > limit;\n"
  "  p->sweeps += 2;\n"
  "  p->change = 0;\n"
  "}\n";

/* The temperature of an edge's cell, and of every cell in the end. */
static float wanted(int k) {
  const float x = (float)(k % N) / (N - 1), y = (float)(k / N) / (N - 1);
  return x * x - y * y;
}

static void add_pass(CUgraph into, CUmodule module, CUdeviceptr a, CUdeviceptr b, CUdeviceptr state) {
  int n = N, cells = CELLS;
  float limit = 1e-6f;
  CUgraphNode node = add_kernel(into, NULL, module, "sweep", CELLS, (void *[]){&a, &b, &n});
  node = add_kernel(into, node, module, "sweep", CELLS, (void *[]){&b, &a, &n});
  node = add_kernel(into, node, module, "compare", CELLS, (void *[]){&a, &b, &cells, &state});
  add_kernel(into, node, module, "judge", 1, (void *[]){&state, &limit});
}

/* Returns the result of a launch. */
static progress launch(CUgraphExec exec, CUstream stream, CUdeviceptr state) {
  progress found;
  ++launches;
  CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuMemcpyDtoHAsync(&found, state, sizeof found, stream));
  CHECK(cuStreamSynchronize(stream));
  return found;
}

int main(void) {
  static float plate[CELLS];
  CUdevice gpu;
  CUcontext context;
  CUstream stream;
  CUdeviceptr a, b, state;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&gpu, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, gpu));
  CHECK(cuCtxPushCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&a, sizeof plate));
  CHECK(cuMemAlloc(&b, sizeof plate));
  CHECK(cuMemAlloc(&state, sizeof(progress)));
  CUmodule module = compile(kernels);
  for (int k = 0; k < CELLS; ++k) plate[k] = k % N % (N - 1) && k / N % (N - 1) ? 0 : wanted(k);
  CHECK(cuMemcpyHtoDAsync(a, plate, sizeof plate, stream));
  CHECK(cuMemcpyHtoDAsync(b, plate, sizeof plate, stream));
  CHECK(cuMemsetD8Async(state, 0, sizeof(progress), stream));

  CUgraph graph;
  CUgraphExec exec;
  CHECK(cuGraphCreate(&graph, 0));
  add_pass(graph, module, a, b, state);
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  progress now;
  do now = launch(exec, stream, state);
  while (now.moving && launches < MOST);

  CHECK(cuMemcpyDtoHAsync(plate, a, sizeof plate, stream));
  CHECK(cuStreamSynchronize(stream));
  float worst = 0;
  for (int k = 0; k < CELLS; ++k) worst = fmaxf(worst, fabsf(plate[k] - wanted(k)));
  printf("%d sweeps, at most %.7f off\n", now.sweeps, (double)worst);
  printf("launches by the host: %d\n", launches);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuModuleUnload(module));
  CHECK(cuMemFree(state));
  CHECK(cuMemFree(b));
  CHECK(cuMemFree(a));
  CHECK(cuStreamDestroy(stream));
  CHECK(cuCtxPopCurrent(NULL));
  CHECK(cuDevicePrimaryCtxRelease(gpu));
  return worst < 0.001f && !now.moving ? 0 : 1;
}
