/* The driver's own graph of a list. The program counts its nodes, draws it for Graphviz, and changes a node: it gives a
 * kernel fewer blocks, so that other kernels have room on the device.
 *
 *   cc -std=c11 look_inside.c -lgk -lcuda -o look_inside && ./look_inside */
#include <cuda.h>
#include <gk_cuda.h>
#include <gk_kernel.h>
#include <stdio.h>
#include <stdlib.h>

GK_SOURCE(look_inside)
GK_KERNEL(square, (inout(int, x))) { x[i] *= x[i]; }
GK_KERNEL(count_down, (inout(int, left))) { left[i] -= 1; }
GK_SOURCE_END

enum { X = 1, LEFT };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 1000), GK_OWN(LEFT, int, 1)};
enum { SQUARE = 1 }; /* its index in the list */
static const gk_task tasks[] = {
  GK_DO_WHILE(LEFT),
    GK_RUN(square, GK_ITEMS(1000), X),
    GK_RUN(count_down, GK_ONE, LEFT),
  GK_END};
static const gk_list list = GK_LIST(list, tasks, slots);

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

static void change(gk_device *device, gk_graph *graph) {
  CUgraph whole, body;
  CUgraphExec exec;
  CUgraphNode node;
  CUcontext context;
  size_t nodes = 0, in_body = 0;
  if (gk_cuda_graph(graph, 0, &whole, &exec) != GK_OK) { /* the list is host-gated, as on older drivers */
    printf("no graph to look at: %s\n", gk_error());
    return;
  }
  must(gk_cuda_node(graph, 0, SQUARE, &body, &node) == GK_OK);
  must(gk_cuda_context(device, &context, NULL) == GK_OK);
  check(cuCtxPushCurrent(context));
  check(cuGraphGetNodes(whole, NULL, &nodes));
  check(cuGraphGetNodes(body, NULL, &in_body));
  printf("%zu nodes, %zu in the loop\n", nodes, in_body);
  check(cuGraphDebugDotPrint(whole, "/dev/null", 0)); /* or "list.dot" */
  CUDA_KERNEL_NODE_PARAMS parameters;
  check(cuGraphKernelNodeGetParams(node, &parameters));
  parameters.gridDimX = 1; /* composed kernels accept any number of blocks */
  check(cuGraphExecKernelNodeSetParams(exec, node, &parameters));
  check(cuCtxPopCurrent(NULL));
}

int main(void) {
  gk_device *device = NULL;
  gk_graph *graph = NULL;
  static int x[1000];
  const int left = 2;
  for (int k = 0; k < 1000; ++k) x[k] = k % 10;
  must(gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device) == GK_OK);
  must(gk_graph_create(device, &list, 0, &graph) == GK_OK);
  must(gk_write(graph, X, x, 1000) == GK_OK);
  must(gk_write(graph, LEFT, &left, 1) == GK_OK);
  change(device, graph);
  must(gk_launch_wait(graph, 0, NULL) == GK_OK);
  must(gk_read(graph, X, x, 1000) == GK_OK);
  printf("9 to the power of 4 is %d\n", x[999]);
  gk_graph_destroy(graph);
  gk_device_close(device);
  return 0;
}
