/* What may be in bodies, in which version, and what may be done with graphs that have them. */
#include "graph_world.h"

CASE(sizes_and_kinds_by_version) {
  static const struct { int version; CUgraphConditionalNodeType type; unsigned size; bool right; } cases[] = {
    {12040, IF, 1, true}, {12040, IF, 2, false}, {12080, IF, 2, true}, {13000, IF, 3, false}, {13000, IF, 0, false},
    {12040, WHILE, 1, true}, {13000, WHILE, 2, false}, {12060, SWITCH, 2, false}, {12080, SWITCH, 5, true},
    {13000, SWITCH, 0, false}, {12020, IF, 1, false}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
    CUgraph *bodies;
    CUgraphNode node;
    sim->set_version(13000);
    CUgraphConditionalHandle handle = handle_of(0);
    sim->set_version(cases[k].version);
    assert_int_equal(try_condition(&node, graph, NULL, handle, cases[k].type, cases[k].size, &bodies),
                     cases[k].right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
  }
}

CASE(empty_body) {
  CUgraph body;
  CUgraphExec exec;
  CUgraphInstantiateResult why;
  CUgraphNode node = add_condition(graph, NULL, handle_of(1), IF, &body);
  add_log(graph, node, 'b');
  expect_trace("b");
  sim->set_version(12060);
  try_exec(&exec, &why);
  expect_broken("empty-body");
}

CASE(endless_loop_is_ended) {
  CUgraph body;
  add_condition(graph, NULL, handle_of(1), WHILE, &body);
  CUgraphExec exec = exec_of();
  RIGHT(cu.cuGraphLaunch(exec, stream));
  WRONG(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
  expect_broken("endless");
  expect_refused("never ended");
  WRONG(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuGraphExecDestroy(exec));
}

CASE(empty_node_in_a_body_before_12_4) {
  CUgraph body;
  CUgraphNode node;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  RIGHT(cu.cuGraphAddEmptyNode(&node, body, NULL, 0));
  expect_trace("");
  sim->set_version(12030);
  expect_trace("");
  expect_broken("empty-node");
}

static void count_on_host(void *data) { ++*(int *)data; }

CASE(other_nodes_in_a_body) {
  CUgraph body;
  CUgraphNode node;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  int count = 0;
  CUDA_HOST_NODE_PARAMS host = {count_on_host, &count};
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddHostNode(&node, body, NULL, 0, &host));
  expect_refused("body");
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddNode(&node, body, NULL, NULL, 0, &asked));
  expect_refused("body");
  asked.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddNode(&node, body, NULL, NULL, 0, &asked));
  host.fn = NULL;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddHostNode(&node, graph, NULL, 0, &host));
  expect_refused("no function");
  add_log(body, NULL, 'a');
  expect_trace("a");
}

CASE(child_graph_in_a_body) {
  CUgraph body, child;
  CUgraphNode node;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  RIGHT(cu.cuGraphCreate(&child, 0));
  add_log(child, add_log(child, NULL, 'a'), 'b');
  RIGHT(cu.cuGraphAddChildGraphNode(&node, body, NULL, 0, child));
  RIGHT(cu.cuGraphDestroy(child));
  add_log(body, node, 'c');
  expect_trace("abc");
}

CASE(child_graph_in_a_case_before_13) {
  CUgraph child, *bodies;
  CUgraphNode node;
  RIGHT(cu.cuGraphCreate(&child, 0));
  add_log(child, NULL, 'a');
  RIGHT(try_condition(&node, graph, NULL, handle_of(0), SWITCH, 2, &bodies));
  RIGHT(cu.cuGraphAddChildGraphNode(&node, bodies[0], NULL, 0, child));
  RIGHT(cu.cuGraphDestroy(child));
  add_log(bodies[1], NULL, 'b');
  expect_trace("a");
  sim->set_version(12080);
  expect_trace("a");
  expect_broken("case-child");
}

/* ---- what is captured into a body ---- */

static CUgraph body_to_capture(void) {
  CUgraph body;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  RIGHT(cu.cuStreamBeginCaptureToGraph(stream, body, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
  return body;
}

static CUgraphNode end_of_capture(CUgraph body) {
  CUgraph ended;
  CUgraphNode node;
  size_t count = 1;
  RIGHT(cu.cuStreamEndCapture(stream, &ended));
  assert_ptr_equal(ended, body);
  RIGHT(cu.cuGraphGetNodes(body, &node, &count));
  assert_int_equal(count, 1);
  return node;
}

static void expect_unsupported(CUgraphNode node, const char *part) {
  CUDA_GRAPH_INSTANTIATE_PARAMS asked = {0};
  CUgraphExec exec;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphInstantiateWithParams(&exec, graph, &asked));
  expect_refused(part);
  assert_int_equal(asked.result_out, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
  assert_ptr_equal(asked.hErrNode_out, node);
}

/* By itself and in a child graph; of a driver that doesn't look before. */
CASE(types_are_checked_late) {
  int count = 0;
  const CUDA_HOST_NODE_PARAMS host = {count_on_host, &count};
  CUgraph body, child, copy;
  CUgraphNode node, inner;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  RIGHT(cu.cuGraphCreate(&child, 0));
  RIGHT(cu.cuGraphAddHostNode(&inner, child, NULL, 0, &host));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddChildGraphNode(&node, body, NULL, 0, child));
  expect_refused("body");
  sim->answer_no("types");
  RIGHT(cu.cuGraphAddChildGraphNode(&node, body, NULL, 0, child));
  RIGHT(cu.cuGraphChildGraphNodeGetGraph(node, &copy));
  size_t nodes = 1;
  RIGHT(cu.cuGraphGetNodes(copy, &inner, &nodes));
  expect_unsupported(inner, "a host node in the body");
  sim->answer_no(NULL);
  assert_int_equal(count, 0);
  RIGHT(cu.cuGraphDestroy(child));
}

CASE(cooperative_kernel_in_a_body) {
  uint64_t letter = 'a';
  void *parameters[] = {&letter};
  RIGHT(cu.cuLaunchCooperativeKernel(kernel("log"), 1, 1, 1, 1, 1, 1, 0, stream, parameters));
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_string_equal(trace, "a");
  CUgraph body = body_to_capture();
  RIGHT(cu.cuLaunchCooperativeKernel(kernel("log"), 1, 1, 1, 1, 1, 1, 0, stream, parameters));
  CUgraphNode node = end_of_capture(body);
  sim->set_version(12050);
  expect_unsupported(node, "from 12.6 on");
  sim->set_version(12060);
  expect_trace("a");
}

CASE(cooperative_kernel_outside_of_bodies) {
  uint64_t letter = 'a';
  void *parameters[] = {&letter};
  sim->set_version(12040);
  RIGHT(cu.cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
  RIGHT(cu.cuLaunchCooperativeKernel(kernel("log"), 1, 1, 1, 1, 1, 1, 0, stream, parameters));
  end_of_capture(graph);
  expect_trace("a");
}

/* That of the device and pinned; managed isn't named, pageable is in no capture, and nothing else is anybody's. */
CASE(memory_of_copies_in_a_body) {
  CUdeviceptr managed, device;
  RIGHT(cu.cuMemAllocManaged(&managed, 8, CU_MEM_ATTACH_GLOBAL));
  RIGHT(cu.cuMemAlloc(&device, 8));
  const CUdeviceptr sides[][2] = {{device, managed}, {managed, device}, {managed, 0}, {device, 0}};
  for (int k = 0; k < 4; ++k) {
    CUgraph body = body_to_capture();
    if (sides[k][1]) RIGHT(cu.cuMemcpyDtoDAsync(sides[k][0], sides[k][1], 8, stream));
    else RIGHT(cu.cuMemsetD8Async(sides[k][0], 1, 8, stream));
    CUgraphNode node = end_of_capture(body);
    if (k == 3) RIGHT(cu.cuMemFree(device));
    expect_unsupported(node, k < 3 ? "of managed memory" : "of unknown memory");
    RIGHT(cu.cuGraphDestroy(graph));
    RIGHT(cu.cuGraphCreate(&graph, 0));
  }
  RIGHT(cu.cuMemFree(managed));
  CUgraph ended;
  uint64_t pageable = 0;
  body_to_capture();
  WRONG(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        cu.cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)counters, &pageable, 8, stream));
  WRONG(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &ended));
  RIGHT(cu.cuGraphCreate(&graph, 0)); /* the one before is the driver's */
}

CASE(managed_memory_outside_of_bodies) {
  CUdeviceptr managed;
  RIGHT(cu.cuMemAllocManaged(&managed, 8, CU_MEM_ATTACH_GLOBAL));
  RIGHT(cu.cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
  RIGHT(cu.cuMemsetD8Async(managed, 7, 8, stream));
  end_of_capture(graph);
  expect_trace("");
  assert_int_equal(*(unsigned char *)(uintptr_t)managed, 7);
  RIGHT(cu.cuMemFree(managed));
}

static CUgraphNodeParams fill_of(void *at, unsigned value, size_t bytes) {
  const CUDA_MEMSET_NODE_PARAMS_v2 fill = {.dst = (CUdeviceptr)(uintptr_t)at, .value = value, .elementSize = 1,
                                           .width = bytes, .height = 1, .ctx = context};
  CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
  memcpy(all.reserved1, &fill, sizeof fill);
  return all;
}

CASE(fill_in_a_body_stays) {
  for (int inside = 0; inside < 2; ++inside) {
    CUgraph where = graph;
    if (inside) where = body_to_capture();
    else RIGHT(cu.cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
    RIGHT(cu.cuMemsetD8Async((CUdeviceptr)(uintptr_t)counters, 1, 8, stream));
    CUgraphNode node = end_of_capture(where);
    CUgraphExec exec = exec_of();
    CUgraphNodeParams asked = fill_of(counters + 1, 2, 8), far = fill_of(counters, 2, 80);
    counters[0] = counters[1] = 0;
    if (inside) {
      WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphExecNodeSetParams(exec, node, &asked));
      expect_refused("fill nodes in bodies");
    } else {
      WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphExecNodeSetParams(exec, node, &far));
      RIGHT(cu.cuGraphExecNodeSetParams(exec, node, &asked));
    }
    trace_of(exec);
    assert_int_equal(counters[0], inside ? UINT64_C(0x0101010101010101) : 0);
    assert_int_equal(counters[1], inside ? 0 : UINT64_C(0x0202020202020202));
    RIGHT(cu.cuGraphExecDestroy(exec));
    RIGHT(cu.cuGraphDestroy(graph));
    RIGHT(cu.cuGraphCreate(&graph, 0));
  }
}

CASE(kernel_in_a_body_changes) {
  CUgraph body;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  CUgraphNode node = add_log(body, NULL, 'a');
  CUgraphExec exec = exec_of();
  uint64_t letter = 'b';
  void *parameters[] = {&letter};
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  asked.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = kernel("log"), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                              .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
                                              .kernelParams = parameters};
  sim->answer_no("P17a");
  WRONG(CUDA_ERROR_NOT_SUPPORTED, cu.cuGraphExecNodeSetParams(exec, node, &asked));
  expect_refused("nodes in bodies");
  assert_string_equal(trace_of(exec), "a");
  sim->answer_no(NULL);
  RIGHT(cu.cuGraphExecNodeSetParams(exec, node, &asked));
  assert_string_equal(trace_of(exec), "b");
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(node_keeps_its_kernel) {
  CUgraph body;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  CUgraphNode node = add_log(body, NULL, 'a');
  CUgraphExec exec = exec_of();
  static unsigned char bytes[4096];
  void *parameters[] = {bytes};
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  asked.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = kernel("most"), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                              .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
                                              .kernelParams = parameters};
  sim->answer_no("P17b");
  WRONG(CUDA_ERROR_NOT_SUPPORTED, cu.cuGraphExecNodeSetParams(exec, node, &asked));
  expect_refused("keeps its kernel");
  assert_string_equal(trace_of(exec), "a");
  sim->answer_no(NULL);
  RIGHT(cu.cuGraphExecNodeSetParams(exec, node, &asked));
  assert_string_equal(trace_of(exec), "");
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(empty_child_graph) {
  CUgraph child;
  CUgraphNode node;
  CUgraphExec exec;
  CUgraphInstantiateResult why;
  RIGHT(cu.cuGraphCreate(&child, 0));
  RIGHT(cu.cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
  RIGHT(cu.cuGraphDestroy(child));
  WRONG(CUDA_ERROR_INVALID_VALUE, try_exec(&exec, &why));
  expect_broken("empty-child");
}

CASE(conditional_graph_stays_one) {
  CUgraph body, other;
  CUgraphNode node;
  CUgraphExec exec, second;
  CUgraphInstantiateResult why;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  add_log(body, NULL, 'a');
  WRONG(CUDA_ERROR_NOT_SUPPORTED, cu.cuGraphClone(&other, graph));
  RIGHT(cu.cuGraphCreate(&other, 0));
  WRONG(CUDA_ERROR_NOT_SUPPORTED, cu.cuGraphAddChildGraphNode(&node, other, NULL, 0, graph));
  RIGHT(cu.cuGraphDestroy(other));
  RIGHT(try_exec(&exec, &why));
  WRONG(CUDA_ERROR_INVALID_VALUE, try_exec(&second, &why));
  expect_refused("one instantiation");
  WRONG(CUDA_ERROR_NOT_SUPPORTED, cu.cuGraphExecUpdate(exec, graph, NULL));
  expect_broken("update");
  RIGHT(cu.cuGraphExecDestroy(exec));
  RIGHT(try_exec(&exec, &why));
  RIGHT(cu.cuGraphDestroy(graph)); /* an exec lives without it */
  assert_string_equal(trace_of(exec), "a");
  RIGHT(cu.cuGraphExecDestroy(exec));
  RIGHT(cu.cuGraphCreate(&graph, 0));
}

CASE(conditional_parameters_stay) {
  CUgraph body;
  CUgraphConditionalHandle handle = handle_of(1);
  CUgraphNode node = add_condition(graph, NULL, handle, IF, &body);
  add_log(body, NULL, 'a');
  CUgraphExec exec = exec_of();
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  asked.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = handle, .type = IF, .size = 1, .ctx = context};
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphExecNodeSetParams(exec, node, &asked));
  expect_broken("update");
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(body_is_the_drivers) {
  CUgraph body;
  CUgraphExec exec;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  add_log(body, NULL, 'a');
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphDestroy(body));
  expect_broken("body");
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphInstantiateWithFlags(&exec, body, 0));
  RIGHT(cu.cuGraphDestroy(graph));
  CUgraphNode node;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddEmptyNode(&node, body, NULL, 0));
  expect_broken("destroyed");
  RIGHT(cu.cuGraphCreate(&graph, 0));
}

CASE(device_without_conditional_nodes) {
  CUgraph body;
  CUgraphExec exec;
  CUgraphInstantiateResult why;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  add_log(body, NULL, 'a');
  sim->answer_no("conditional");
  WRONG(CUDA_ERROR_NOT_SUPPORTED, try_exec(&exec, &why));
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
