/* Graphs without conditional nodes: building, instantiation, updates, launches. */
#include "graph_world.h"
#include <unistd.h>

static CUDA_KERNEL_NODE_PARAMS_v3 call_of(const char *name, void **parameters) {
  return (CUDA_KERNEL_NODE_PARAMS_v3){.func = kernel(name), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                      .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters};
}

CASE(nodes_run_in_the_order_of_their_edges) {
  bool seen[2] = {false};
  CUgraphNode a = add_log(graph, NULL, 'a'), sides[2] = {add_log(graph, a, 'b'), add_log(graph, a, 'c')}, join;
  RIGHT(cu.cuGraphAddEmptyNode(&join, graph, sides, 2));
  add_log(graph, join, 'd');
  CUgraphExec exec = exec_of();
  for (uint64_t seed = 0; seed < 32; ++seed) {
    sim->set_seed(seed);
    const char *text = trace_of(exec);
    assert_true(strcmp(text, "abcd") == 0 || strcmp(text, "acbd") == 0);
    seen[text[1] == 'b'] = true;
  }
  assert_true(seen[0] && seen[1]);
  assert_int_equal(sim->counts().launches, 32);
  assert_int_equal(sim->counts().kernel_nodes, 32 * 4);
  assert_int_equal(sim->counts().nodes, 32 * 5);
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(dependencies_are_checked) {
  CUgraph second;
  CUgraphNode a = add_log(graph, NULL, 'a'), b = add_log(graph, a, 'b'), twice[2] = {a, a}, node;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddEmptyNode(&node, graph, twice, 2));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddEmptyNode(&node, graph, NULL, 1));
  RIGHT(cu.cuGraphCreate(&second, 0));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddEmptyNode(&node, second, &a, 1));
  expect_refused("another graph");
  RIGHT(cu.cuGraphDestroy(second));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddDependencies(graph, &b, &a, NULL, 1));
  expect_refused("cycle");
  CUgraphNode c = add_log(graph, NULL, 'c');
  RIGHT(cu.cuGraphAddDependencies(graph, &b, &c, NULL, 1));
  expect_trace("abc");
}

/* In an initializer that names `kernel`, the rest of the union may hold anything. */
static CUgraphNodeParams node_of(const char *name, void **parameters) {
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  asked.kernel = call_of(name, parameters);
  return asked;
}

CASE(programmatic_edges_stand_between_kernels) {
  CUgraphNode a = add_log(graph, NULL, 'a'), node;
  CUgraphEdgeData edge = {.from_port = 1, .type = 1};
  uint64_t letter = 'b';
  void *parameters[] = {&letter};
  CUgraphNodeParams asked = node_of("log", parameters);
  RIGHT(cu.cuGraphAddNode(&node, graph, &a, &edge, 1, &asked));
  asked = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY};
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddNode(&node, graph, &a, &edge, 1, &asked));
  edge.type = 7;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddNode(&node, graph, &a, &edge, 1, &asked));
  CUgraphConditionalHandle handle = handle_of(1);
  edge.type = 1;
  asked = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  asked.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = handle, .type = IF, .size = 1, .ctx = context};
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddNode(&node, graph, &a, &edge, 1, &asked));
}

CASE(what_is_reserved_must_be_zero) {
  CUgraphNode node;
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_EMPTY, .reserved2 = 1};
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddNode(&node, graph, NULL, NULL, 0, &asked));
  asked = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  asked.reserved1[20] = 1;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddNode(&node, graph, NULL, NULL, 0, &asked));
  expect_refused("reserved");
}

CASE(both_ways_to_add_a_kernel) {
  uint64_t letter = 'k';
  void *parameters[] = {&letter};
  const CUDA_KERNEL_NODE_PARAMS_v1 asked = {.func = kernel("log"), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                            .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
                                            .kernelParams = parameters};
  CUgraphNode node;
  RIGHT(cu.cuGraphAddKernelNode(&node, graph, NULL, 0, &asked));
  letter = 'x'; /* was copied */
  add_log(graph, node, 'l');
  expect_trace("kl");
}

/* The entry of 12.0 takes a struct that ends in two more members. */
CASE(newer_way_to_add_a_kernel) {
  CUresult (*add_newer)(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                  const CUDA_KERNEL_NODE_PARAMS_v2 *parameters);
  uint64_t letter = 'k';
  void *parameters[] = {&letter};
  CUDA_KERNEL_NODE_PARAMS_v2 asked = {.func = kernel("log"), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                      .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters,
                                      .ctx = context};
  CUgraphNode node;
  load("cuGraphAddKernelNode", 12000, &add_newer);
  RIGHT(add_newer(&node, graph, NULL, 0, &asked));
  asked.ctx = NULL; /* the current one */
  letter = 'l';
  RIGHT(add_newer(&node, graph, &node, 1, &asked));
  asked.kern = (CUkernel)(uintptr_t)1;
  WRONG(CUDA_ERROR_NOT_SUPPORTED, add_newer(&node, graph, NULL, 0, &asked));
  expect_trace("kl");
}

CASE(fills_are_nodes) {
  enum { BYTES = 16 };
  CUgraphNode first, second;
  CUgraphExec exec;
  CUdeviceptr at = (CUdeviceptr)(uintptr_t)counters;
  CUDA_MEMSET_NODE_PARAMS_v1 old = {.dst = at, .value = 1, .elementSize = 1, .width = BYTES, .height = 1};
  CUDA_MEMSET_NODE_PARAMS_v2 fill = {.dst = at, .value = 2, .elementSize = 1, .width = 8, .height = 1};
  CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
  memcpy(all.reserved1, &fill, sizeof fill);
  RIGHT(cu.cuGraphAddMemsetNode(&first, graph, NULL, 0, &old, context));
  RIGHT(cu.cuGraphAddNode(&second, graph, &first, NULL, 1, &all));
  old.elementSize = 4;
  WRONG(CUDA_ERROR_NOT_SUPPORTED, cu.cuGraphAddMemsetNode(&first, graph, NULL, 0, &old, context));
  old = (CUDA_MEMSET_NODE_PARAMS_v1){.dst = 64, .elementSize = 1, .width = BYTES, .height = 1};
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddMemsetNode(&first, graph, NULL, 0, &old, context));
  expect_refused("within one block");
  RIGHT(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
  RIGHT(cu.cuGraphLaunch(exec, stream));
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_int_equal(counters[0], UINT64_C(0x0202020202020202));
  assert_int_equal(counters[1], UINT64_C(0x0101010101010101));
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(node_parameters_end_at_4096_bytes) {
  static unsigned char bytes[4096], four[4];
  void *parameters[] = {bytes, four};
  CUgraphNode node;
  CUgraphNodeParams asked = node_of("most", parameters);
  RIGHT(cu.cuGraphAddNode(&node, graph, NULL, NULL, 0, &asked));
  asked.kernel = call_of("too_many", parameters);
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddNode(&node, graph, NULL, NULL, 0, &asked));
  expect_broken("parameters");
}

CASE(child_graphs_are_copies) {
  CUgraph child;
  CUgraphNode node;
  RIGHT(cu.cuGraphCreate(&child, 0));
  add_log(child, NULL, 'a');
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
  asked.graph.graph = child;
  RIGHT(cu.cuGraphAddNode(&node, graph, NULL, NULL, 0, &asked));
  add_log(graph, node, 'z');
  add_log(child, NULL, 'b'); /* comes too late */
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddChildGraphNode(&node, graph, NULL, 0, graph));
  RIGHT(cu.cuGraphDestroy(child));
  expect_trace("az");
}

CASE(clone_is_a_graph_of_its_own) {
  CUgraph clone;
  add_log(graph, add_log(graph, NULL, 'a'), 'b');
  RIGHT(cu.cuGraphClone(&clone, graph));
  RIGHT(cu.cuGraphDestroy(graph));
  graph = clone;
  expect_trace("ab");
}

CASE(nodes_are_listed) {
  CUgraphNode a = add_log(graph, NULL, 'a'), b = add_log(graph, a, 'b'), nodes[3] = {NULL};
  size_t count = 0;
  RIGHT(cu.cuGraphGetNodes(graph, NULL, &count));
  assert_int_equal(count, 2);
  count = 3;
  RIGHT(cu.cuGraphGetNodes(graph, nodes, &count));
  assert_int_equal(count, 2);
  assert_ptr_equal(nodes[0], a);
  assert_ptr_equal(nodes[1], b);
}

CASE(update_is_checked) {
  uint64_t letter = 'n';
  void *parameters[] = {&letter};
  CUgraphNode node = add_log(graph, NULL, 'a'), late, empty;
  RIGHT(cu.cuGraphAddEmptyNode(&empty, graph, &node, 1));
  CUgraphExec exec = exec_of();
  late = add_log(graph, node, 'b');
  CUgraphNodeParams asked = node_of("log", parameters);
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphExecNodeSetParams(exec, late, &asked));
  asked.reserved1[20] = 1;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphExecNodeSetParams(exec, node, &asked));
  expect_refused("reserved");
  asked.reserved1[20] = 0;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphExecNodeSetParams(exec, empty, &asked));
  expect_refused("kind kernel, but it is of kind empty");
  RIGHT(cu.cuGraphExecNodeSetParams(exec, node, &asked));
  RIGHT(cu.cuGraphUpload(exec, stream));
  assert_string_equal(trace_of(exec), "n");
  RIGHT(cu.cuGraphDestroy(graph));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphExecNodeSetParams(exec, node, &asked));
  expect_broken("destroyed");
  RIGHT(cu.cuGraphExecDestroy(exec));
  RIGHT(cu.cuGraphCreate(&graph, 0));
}

/* As drivers before 12.2 have it. */
CASE(update_by_the_older_call) {
  uint64_t letter = 'n';
  void *parameters[] = {&letter};
  CUgraphNode node = add_log(graph, NULL, 'a'), empty;
  RIGHT(cu.cuGraphAddEmptyNode(&empty, graph, &node, 1));
  CUgraphExec exec = exec_of();
  CUDA_KERNEL_NODE_PARAMS_v1 asked = {.func = kernel("log"), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                      .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters};
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphExecKernelNodeSetParams(exec, empty, &asked));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphExecKernelNodeSetParams(exec, node, NULL));
  assert_string_equal(trace_of(exec), "a");
  RIGHT(cu.cuGraphExecKernelNodeSetParams(exec, node, &asked));
  assert_string_equal(trace_of(exec), "n");
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(plain_graphs_have_several_execs) {
  add_log(graph, NULL, 'a');
  CUgraphExec first = exec_of(), second;
  RIGHT(cu.cuGraphInstantiateWithFlags(&second, graph, 0));
  assert_string_equal(trace_of(first), "a");
  assert_string_equal(trace_of(second), "a");
  assert_int_equal(sim->alive(SIMGPU_EXECS), 2);
  RIGHT(cu.cuGraphExecDestroy(first));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphLaunch(first, stream));
  expect_broken("destroyed");
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphExecDestroy(first));
  expect_broken("destroyed");
  RIGHT(cu.cuGraphExecDestroy(second));
}

CASE(module_ends_before_its_graph) {
  add_log(graph, NULL, 'a');
  CUgraphExec exec = exec_of(), other;
  CUgraphInstantiateResult why;
  RIGHT(cu.cuModuleUnload(module));
  WRONG(CUDA_ERROR_INVALID_HANDLE, cu.cuGraphLaunch(exec, stream));
  expect_broken("destroyed");
  WRONG(CUDA_ERROR_INVALID_VALUE, try_exec(&other, &why));
  expect_broken("destroyed");
  RIGHT(cu.cuGraphExecDestroy(exec));
  load_module(kernels);
}

CASE(graph_is_drawn) {
  char path[] = "build/tests/simgpu/drawn_XXXXXX", text[512] = "";
  int file = mkstemp(path);
  assert_true(file >= 0);
  add_log(graph, add_log(graph, NULL, 'a'), 'b');
  RIGHT(cu.cuGraphDebugDotPrint(graph, path, 0));
  assert_true(read(file, text, sizeof text - 1) > 0);
  assert_non_null(strstr(text, "digraph"));
  assert_non_null(strstr(text, "| log\\<"));
  assert_non_null(strstr(text, "->"));
  close(file);
  unlink(path);
}

/* ---- more than one device ---- */

CASE(things_of_another_context) {
  CUcontext second = NULL;
  CUgraphNode node;
  CUgraphExec exec;
  CUgraphInstantiateResult why;
  CUevent event;
  CUdeviceptr memory, far;
  uint64_t letter = 'a';
  void *parameters[] = {&letter};
  RIGHT(cu.cuMemAlloc(&memory, 8));
  RIGHT(cu.cuEventCreate(&event, 0));
  add_log(graph, NULL, 'a');
  CUgraphExec mine = exec_of();
  CUgraphNodeParams asked = node_of("log", parameters);
  RIGHT(cu.cuDevicePrimaryCtxRetain(&second, 1));
  RIGHT(cu.cuCtxPushCurrent(second));
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuStreamSynchronize(stream));
  expect_broken("foreign");
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuEventRecord(event, NULL));
  expect_broken("foreign");
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuGraphLaunch(mine, NULL));
  expect_broken("foreign");
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuGraphAddNode(&node, graph, NULL, NULL, 0, &asked));
  expect_broken("foreign");
  WRONG(CUDA_ERROR_INVALID_VALUE, try_exec(&exec, &why));
  expect_broken("foreign");
  assert_int_equal(why, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree(memory));
  expect_broken("free");
  RIGHT(cu.cuMemAlloc(&far, 8));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyDtoDAsync(far, memory, 8, NULL));
  RIGHT(cu.cuMemFree(far));
  RIGHT(cu.cuCtxPopCurrent(NULL));
  RIGHT(cu.cuDevicePrimaryCtxRelease(1));
  RIGHT(cu.cuGraphExecDestroy(mine));
  RIGHT(cu.cuEventDestroy(event));
  RIGHT(cu.cuMemFree(memory));
}

int main(void) {
  setenv("SIMGPU_DEVICES", "2", 1);
  return run_all_tests_with(load_driver, NULL);
}
