/* Graphs without conditional nodes: building, instantiation, updates, launches. */
#include "graph_world.h"
#include <unistd.h>

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
}

CASE(dependencies_are_checked) {
  CUgraphNode a = add_log(graph, NULL, 'a'), b = add_log(graph, a, 'b'), twice[2] = {a, a}, node;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddEmptyNode(&node, graph, twice, 2));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddEmptyNode(&node, graph, NULL, 1));
  CUgraph second = make_graph();
  REFUSED(CUDA_ERROR_INVALID_VALUE, "another graph", cu.cuGraphAddEmptyNode(&node, second, &a, 1));
  RIGHT(cu.cuGraphDestroy(second));
  REFUSED(CUDA_ERROR_INVALID_VALUE, "cycle", cu.cuGraphAddDependencies(graph, &b, &a, NULL, 1));
  CUgraphNode c = add_log(graph, NULL, 'c');
  RIGHT(cu.cuGraphAddDependencies(graph, &b, &c, NULL, 1));
  expect_trace("abc");
}

CASE(programmatic_edges_stand_between_kernels) {
  CUgraphNode a = add_log(graph, NULL, 'a'), node;
  CUgraphEdgeData edge = {.from_port = 1, .type = 1};
  CUgraphNodeParams log = kernel_node("log", (void *[]){&(uint64_t){'b'}});
  RIGHT(cu.cuGraphAddNode(&node, graph, &a, &edge, 1, &log));
  CUgraphNodeParams empty = {.type = CU_GRAPH_NODE_TYPE_EMPTY}, condition = conditional_node(handle_of(1), IF, 1);
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddNode(&node, graph, &a, &edge, 1, &empty));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddNode(&node, graph, &a, &edge, 1, &condition));
  edge.type = 7;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddNode(&node, graph, &a, &edge, 1, &empty));
}

CASE(reserved_parts_must_be_zero) {
  CUgraphNode node;
  CUgraphNodeParams empty = {.type = CU_GRAPH_NODE_TYPE_EMPTY, .reserved2 = 1},
                    condition = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  WRONG(CUDA_ERROR_INVALID_VALUE, try_add(&node, graph, NULL, &empty));
  condition.reserved1[20] = 1;
  REFUSED(CUDA_ERROR_INVALID_VALUE, "reserved", try_add(&node, graph, NULL, &condition));
}

CASE(both_ways_to_add_a_kernel) {
  uint64_t letter = 'k';
  void *parameters[] = {&letter};
  const CUDA_KERNEL_NODE_PARAMS_v1 asked = {.func = kernel("log"), ONE_THREAD, .kernelParams = parameters};
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
  CUDA_KERNEL_NODE_PARAMS_v2 asked = {.func = kernel("log"), ONE_THREAD, .kernelParams = parameters, .ctx = context};
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
  CUDA_MEMSET_NODE_PARAMS_v1 old = {.dst = AT(counters), .value = 1, .elementSize = 1, .width = BYTES, .height = 1};
  CUDA_MEMSET_NODE_PARAMS_v2 fill = {.dst = AT(counters), .value = 2, .elementSize = 1, .width = 8, .height = 1};
  CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
  memcpy(all.reserved1, &fill, sizeof fill);
  RIGHT(cu.cuGraphAddMemsetNode(&first, graph, NULL, 0, &old, context));
  RIGHT(try_add(&second, graph, first, &all));
  old.elementSize = 4;
  WRONG(CUDA_ERROR_NOT_SUPPORTED, cu.cuGraphAddMemsetNode(&first, graph, NULL, 0, &old, context));
  old = (CUDA_MEMSET_NODE_PARAMS_v1){.dst = 64, .elementSize = 1, .width = BYTES, .height = 1};
  REFUSED(CUDA_ERROR_INVALID_VALUE, "within one block",
          cu.cuGraphAddMemsetNode(&first, graph, NULL, 0, &old, context));
  RIGHT(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
  run(exec);
  assert_int_equal(counters[0], UINT64_C(0x0202020202020202));
  assert_int_equal(counters[1], UINT64_C(0x0101010101010101));
  RIGHT(cu.cuGraphExecDestroy(exec));
}

static void log_on_host(void *letter) { trace[traced++] = *(const char *)letter; }

CASE(host_functions_are_nodes) {
  CUgraphNode node;
  CUDA_HOST_NODE_PARAMS host = {log_on_host, &(char){'h'}};
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_HOST};
  REFUSED(CUDA_ERROR_INVALID_VALUE, "no function", try_add(&node, graph, NULL, &asked));
  memcpy(asked.reserved1, &host, sizeof host);
  RIGHT(try_add(&node, graph, NULL, &asked));
  expect_trace("h");
}

CASE(node_parameters_end_at_4096_bytes) {
  static unsigned char bytes[4096], four[4];
  void *parameters[] = {bytes, four};
  CUgraphNode node;
  CUgraphNodeParams most = kernel_node("most", parameters), too_many = kernel_node("too_many", parameters);
  RIGHT(try_add(&node, graph, NULL, &most));
  BREAKS(CUDA_ERROR_INVALID_VALUE, "parameters", try_add(&node, graph, NULL, &too_many));
}

CASE(child_graphs_are_copies) {
  CUgraph child = make_graph();
  CUgraphNode node;
  add_log(child, NULL, 'a');
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
  asked.graph.graph = child;
  RIGHT(try_add(&node, graph, NULL, &asked));
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
  CUgraphNode node = add_log(graph, NULL, 'a'), late, empty;
  RIGHT(cu.cuGraphAddEmptyNode(&empty, graph, &node, 1));
  CUgraphExec exec = exec_of();
  late = add_log(graph, node, 'b');
  WRONG(CUDA_ERROR_INVALID_VALUE, update(exec, late, "log", 'n', 0));
  CUgraphNodeParams reserved = kernel_node("log", (void *[]){&(uint64_t){'n'}});
  reserved.reserved1[20] = 1;
  REFUSED(CUDA_ERROR_INVALID_VALUE, "reserved", cu.cuGraphExecNodeSetParams(exec, node, &reserved));
  REFUSED(CUDA_ERROR_INVALID_VALUE, "kind kernel, but it is of kind empty", update(exec, empty, "log", 'n', 0));
  RIGHT(update(exec, node, "log", 'n', 0));
  RIGHT(cu.cuGraphUpload(exec, stream));
  assert_string_equal(trace_of(exec), "n");
  begin_anew();
  BREAKS(CUDA_ERROR_INVALID_VALUE, "destroyed", update(exec, node, "log", 'n', 0));
}

/* What drivers before 12.2 have. */
CASE(update_by_the_older_call) {
  CUgraphNode node = add_log(graph, NULL, 'a'), empty;
  RIGHT(cu.cuGraphAddEmptyNode(&empty, graph, &node, 1));
  CUgraphExec exec = exec_of();
  void *parameters[] = {&(uint64_t){'n'}};
  CUDA_KERNEL_NODE_PARAMS_v1 asked = {.func = kernel("log"), ONE_THREAD, .kernelParams = parameters};
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphExecKernelNodeSetParams(exec, empty, &asked));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphExecKernelNodeSetParams(exec, node, NULL));
  assert_string_equal(trace_of(exec), "a");
  RIGHT(cu.cuGraphExecKernelNodeSetParams(exec, node, &asked));
  assert_string_equal(trace_of(exec), "n");
}

CASE(plain_graphs_have_several_execs) {
  add_log(graph, NULL, 'a');
  CUgraphExec second = exec_of(), first;
  RIGHT(cu.cuGraphInstantiateWithFlags(&first, graph, 0));
  assert_string_equal(trace_of(first), "a");
  assert_string_equal(trace_of(second), "a");
  assert_int_equal(sim->alive(SIMGPU_EXECS), 2);
  RIGHT(cu.cuGraphExecDestroy(first));
  BREAKS(CUDA_ERROR_INVALID_VALUE, "destroyed", cu.cuGraphLaunch(first, stream));
  BREAKS(CUDA_ERROR_INVALID_VALUE, "destroyed", cu.cuGraphExecDestroy(first));
}

CASE(module_ends_before_its_graph) {
  add_log(graph, NULL, 'a');
  CUgraphExec exec = exec_of();
  RIGHT(cu.cuModuleUnload(module));
  BREAKS(CUDA_ERROR_INVALID_HANDLE, "destroyed", cu.cuGraphLaunch(exec, stream));
  refused_exec(CUDA_ERROR_INVALID_VALUE);
  expect_broken("destroyed");
  load_module(&kernels);
}

CASE(graph_is_drawn) {
  char path[] = "build/tests/simgpu/drawn_XXXXXX", text[512] = "";
  static const char *const words[] = {"digraph", "| log\\<", "->"};
  int file = mkstemp(path);
  assert_true(file >= 0);
  add_log(graph, add_log(graph, NULL, 'a'), 'b');
  RIGHT(cu.cuGraphDebugDotPrint(graph, path, 0));
  assert_true(read(file, text, sizeof text - 1) > 0);
  for (int k = 0; k < 3; ++k) assert_non_null(strstr(text, words[k]));
  close(file);
  unlink(path);
}

/* ---- more than one device ---- */

CASE(things_of_another_context) {
  CUcontext second = NULL;
  CUgraphNode node;
  CUevent event;
  CUdeviceptr memory, far;
  RIGHT(cu.cuMemAlloc(&memory, 8));
  RIGHT(cu.cuEventCreate(&event, 0));
  add_log(graph, NULL, 'a');
  CUgraphExec mine = exec_of();
  CUgraphNodeParams asked = kernel_node("log", (void *[]){&(uint64_t){'a'}});
  RIGHT(cu.cuDevicePrimaryCtxRetain(&second, 1));
  RIGHT(cu.cuCtxPushCurrent(second));
  BREAKS(CUDA_ERROR_INVALID_CONTEXT, "foreign", cu.cuStreamSynchronize(stream));
  BREAKS(CUDA_ERROR_INVALID_CONTEXT, "foreign", cu.cuEventRecord(event, NULL));
  BREAKS(CUDA_ERROR_INVALID_CONTEXT, "foreign", cu.cuGraphLaunch(mine, NULL));
  BREAKS(CUDA_ERROR_INVALID_CONTEXT, "foreign", try_add(&node, graph, NULL, &asked));
  assert_int_equal(refused_exec(CUDA_ERROR_INVALID_VALUE), CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
  expect_broken("foreign");
  BREAKS(CUDA_ERROR_INVALID_VALUE, "free", cu.cuMemFree(memory));
  RIGHT(cu.cuMemAlloc(&far, 8));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyDtoDAsync(far, memory, 8, NULL));
  RIGHT(cu.cuMemFree(far));
  RIGHT(cu.cuCtxPopCurrent(NULL));
  RIGHT(cu.cuDevicePrimaryCtxRelease(1));
  RIGHT(cu.cuEventDestroy(event));
  RIGHT(cu.cuMemFree(memory));
}

int main(void) {
  setenv("SIMGPU_DEVICES", "2", 1);
  return run_all_tests_with(load_driver, NULL);
}
