/* A CUDA graph made by hand gets a loop with a branch in it. The device decides both, without the host, and no kernel
 * needs to know conditional handles. The graph applies Collatz's rule to a number until it is 1.
 *
 *   cc loop_by_hand.c -lgk -lcuda -lnvrtc -o loop_by_hand && ./loop_by_hand */
#include "by_hand.h"
#include <gk_cuda.h>

#define CHECK_GK(call) \
  do { \
    if ((call) != GK_OK) { \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, gk_error()); \
      exit(1); \
    } \
  } while (0)

static const char kernels[] =
  "extern \"C\" __global__ void look(const long long *n, int *goes_on, int *odd) {\n"
  "  *goes_on = *n != 1;\n"
  "  *odd = *n % 2 != 0;\n"
  "}\n"
  "extern \"C\" __global__ void triple(long long *n) { *n = 3 * *n + 1; }\n"
  "extern \"C\" __global__ void halve(long long *n) { *n /= 2; }\n"
  "extern \"C\" __global__ void count(int *steps) { ++*steps; }\n";

int main(void) {
  gk_device *device;
  CUcontext context;
  CUstream stream;
  CHECK_GK(gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device));
  CHECK_GK(gk_cuda_context(device, &context, &stream));
  CHECK(cuCtxPushCurrent(context));
  CUmodule module = compile(kernels);
  long long *n = gk_alloc(device, sizeof *n, GK_DEVICE_MEMORY), from[] = {27, 1, 97, 6171};
  int *flags = gk_alloc(device, 3 * sizeof *flags, GK_DEVICE_MEMORY), *goes_on = flags, *odd = flags + 1;
  int *steps = flags + 2, taken;
  void *look[] = {&n, &goes_on, &odd};

  CUgraph graph;
  CHECK(cuGraphCreate(&graph, 0));
  CUgraphNode first = add_kernel(graph, NULL, module, "look", 1, look);

  gk_cuda_block loop, branch;
  CHECK_GK(gk_cuda_begin(device, GK_OP_WHILE, goes_on, 1000, graph, &first, 1, &loop));
  CHECK_GK(gk_cuda_begin(device, GK_OP_ELSE, odd, 0, loop.body[0], NULL, 0, &branch));
  add_kernel(branch.body[0], NULL, module, "triple", 1, (void *[]){&n});
  add_kernel(branch.body[1], NULL, module, "halve", 1, (void *[]){&n});
  CHECK_GK(gk_cuda_end(device, &branch));
  CUgraphNode counted = add_kernel(loop.body[0], branch.node, module, "count", 1, (void *[]){&steps});
  add_kernel(loop.body[0], counted, module, "look", 1, look);
  CHECK_GK(gk_cuda_end(device, &loop));
  /* further nodes depend on loop.node */

  CUgraphExec exec;
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int k = 0; k < 4; ++k) {
    taken = 0;
    CHECK_GK(gk_upload(device, n, &from[k], sizeof *n));
    CHECK_GK(gk_upload(device, steps, &taken, sizeof taken));
    CHECK(cuGraphLaunch(exec, stream));
    CHECK_GK(gk_download(device, &taken, steps, sizeof taken)); /* after the launch, on the same stream */
    printf("%lld: %d steps\n", from[k], taken);
  }
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuModuleUnload(module));
  CHECK(cuCtxPopCurrent(NULL));
  gk_device_close(device);
  return 0;
}
