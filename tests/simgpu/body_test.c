/* Which nodes bodies may contain, in which version, and which calls graphs with bodies may be used in. */
#include "graph_world.h"

CASE(sizes_and_kinds_by_version) {
  static const struct { int version; CUgraphConditionalNodeType type; unsigned size; bool right; } cases[] = {
    {12040, IF, 1, true}, {12040, IF, 2, false}, {12080, IF, 2, true}, {13000, IF, 3, false}, {13000, IF, 0, false},
    {12040, WHILE, 1, true}, {13000, WHILE, 2, false}, {12060, SWITCH, 2, false}, {12080, SWITCH, 5, true},
    {13000, SWITCH, 0, false}, {12020, IF, 1, false}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
    conditional made;
    sim->set_version(13000);
    CUgraphConditionalHandle handle = handle_of(0);
    sim->set_version(cases[k].version);
    assert_int_equal(try_condition(graph, NULL, handle, cases[k].type, cases[k].size, &made),
                     cases[k].right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
  }
}

CASE(empty_body) {
  CUgraphExec exec;
  CUgraphInstantiateResult why;
  add_log(graph, add_if(graph, NULL, handle_of(1)).node, 'b');
  expect_trace("b");
  sim->set_version(12060);
  try_exec(&exec, &why);
  expect_broken("empty-body");
}

CASE(endless_loop_is_ended) {
  add_while(graph, NULL, handle_of(1));
  RIGHT(cu.cuGraphLaunch(exec_of(), stream));
  BREAKS(CUDA_ERROR_ILLEGAL_ADDRESS, "endless", cu.cuStreamSynchronize(stream));
  expect_refused("never ended");
  WRONG(CUDA_ERROR_ILLEGAL_ADDRESS, destroy_exec());
}

CASE(empty_node_in_a_body_before_12_4) {
  CUgraphNode node;
  RIGHT(cu.cuGraphAddEmptyNode(&node, add_body(), NULL, 0));
  expect_trace("");
  sim->set_version(12030);
  expect_trace("");
  expect_broken("empty-node");
}

static void count_on_host(void *data) { ++*(int *)data; }

CASE(other_nodes_in_a_body) {
  CUgraph body = add_body();
  CUgraphNode node;
  int count = 0;
  CUDA_HOST_NODE_PARAMS host = {count_on_host, &count};
  REFUSED(CUDA_ERROR_INVALID_VALUE, "body", cu.cuGraphAddHostNode(&node, body, NULL, 0, &host));
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
  REFUSED(CUDA_ERROR_INVALID_VALUE, "body", try_add(&node, body, NULL, &asked));
  asked.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  WRONG(CUDA_ERROR_INVALID_VALUE, try_add(&node, body, NULL, &asked));
  host.fn = NULL;
  REFUSED(CUDA_ERROR_INVALID_VALUE, "no function", cu.cuGraphAddHostNode(&node, graph, NULL, 0, &host));
  add_log(body, NULL, 'a');
  expect_trace("a");
}

/* A child graph that logs these letters one after the other. */
static CUgraphNode add_logs(CUgraph where, const char *letters) {
  CUgraph child = make_graph();
  for (CUgraphNode node = NULL; *letters; ++letters) node = add_log(child, node, *letters);
  CUgraphNode node = add_child(where, child);
  RIGHT(cu.cuGraphDestroy(child));
  return node;
}

CASE(child_graph_in_a_body) {
  CUgraph body = add_body();
  add_log(body, add_logs(body, "ab"), 'c');
  expect_trace("abc");
}

CASE(child_graph_in_a_case_before_13) {
  conditional cases = add_condition(graph, NULL, handle_of(0), SWITCH, 2);
  add_logs(cases.bodies[0], "a");
  add_log(cases.bodies[1], NULL, 'b');
  expect_trace("a");
  sim->set_version(12080);
  expect_trace("a");
  expect_broken("case-child");
}

/* ---- captures into a body ---- */

static CUgraph captured_to(CUgraph where) {
  begin_capture_to(where, RELAXED);
  return where;
}

static CUgraphNode only_node(CUgraph where) {
  CUgraphNode node;
  size_t count = 1;
  RIGHT(cu.cuGraphGetNodes(where, &node, &count));
  assert_int_equal(count, 1);
  return node;
}

static CUgraphNode end_of_capture(CUgraph where) {
  CUgraph ended;
  RIGHT(cu.cuStreamEndCapture(stream, &ended));
  assert_ptr_equal(ended, where);
  return only_node(where);
}

static void expect_unsupported(CUgraphNode node, const char *words) {
  CUDA_GRAPH_INSTANTIATE_PARAMS asked = {0};
  CUgraphExec exec;
  REFUSED(CUDA_ERROR_INVALID_VALUE, words, cu.cuGraphInstantiateWithParams(&exec, graph, &asked));
  assert_int_equal(asked.result_out, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
  assert_ptr_equal(asked.hErrNode_out, node);
}

/* A host node in a child graph, on a driver that doesn't check it when the child node is added. */
CASE(types_are_checked_late) {
  int count = 0;
  const CUDA_HOST_NODE_PARAMS host = {count_on_host, &count};
  CUgraph body = add_body(), child = make_graph(), copy;
  CUgraphNode node;
  RIGHT(cu.cuGraphAddHostNode(&node, child, NULL, 0, &host));
  REFUSED(CUDA_ERROR_INVALID_VALUE, "body", cu.cuGraphAddChildGraphNode(&node, body, NULL, 0, child));
  sim->answer_no("types");
  RIGHT(cu.cuGraphChildGraphNodeGetGraph(add_child(body, child), &copy));
  expect_unsupported(only_node(copy), "a host node in the body");
  sim->answer_no(NULL);
  assert_int_equal(count, 0);
  RIGHT(cu.cuGraphDestroy(child));
}

static void log_cooperatively(void) {
  RIGHT(cu.cuLaunchCooperativeKernel(kernel("log"), 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&(uint64_t){'a'}}));
}

CASE(cooperative_kernel_in_a_body) {
  log_cooperatively();
  wait_for(stream);
  assert_string_equal(trace, "a");
  CUgraph body = captured_to(add_body());
  log_cooperatively();
  CUgraphNode node = end_of_capture(body);
  sim->set_version(12050);
  expect_unsupported(node, "from 12.6 on");
  sim->set_version(12060);
  expect_trace("a");
}

CASE(cooperative_kernel_outside_of_bodies) {
  sim->set_version(12040);
  begin_capture_to(graph, RELAXED);
  log_cooperatively();
  end_of_capture(graph);
  expect_trace("a");
}

static CUdeviceptr allocate_managed(void) {
  CUdeviceptr managed;
  RIGHT(cu.cuMemAllocManaged(&managed, 8, CU_MEM_ATTACH_GLOBAL));
  return managed;
}

/* Device and pinned memory are taken in bodies; managed and unknown memory aren't. No capture takes pageable memory. */
CASE(memory_of_copies_in_a_body) {
  CUdeviceptr managed = allocate_managed(), device;
  RIGHT(cu.cuMemAlloc(&device, 8));
  const CUdeviceptr sides[][2] = {{device, managed}, {managed, device}, {managed, 0}, {device, 0}};
  for (int k = 0; k < 4; ++k, begin_anew()) {
    CUgraph body = captured_to(add_body());
    if (sides[k][1]) RIGHT(cu.cuMemcpyDtoDAsync(sides[k][0], sides[k][1], 8, stream));
    else RIGHT(cu.cuMemsetD8Async(sides[k][0], 1, 8, stream));
    CUgraphNode node = end_of_capture(body);
    if (k == 3) RIGHT(cu.cuMemFree(device));
    expect_unsupported(node, k < 3 ? "of managed memory" : "of unknown memory");
  }
  RIGHT(cu.cuMemFree(managed));
  begin_capture_to(add_body(), RELAXED);
  WRONG(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuMemcpyHtoDAsync(AT(counters), &(uint64_t){0}, 8, stream));
  end_capture(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  graph = make_graph(); /* the driver has the one before */
}

CASE(managed_memory_outside_of_bodies) {
  CUdeviceptr managed = allocate_managed();
  begin_capture_to(graph, RELAXED);
  RIGHT(cu.cuMemsetD8Async(managed, 7, 8, stream));
  end_of_capture(graph);
  expect_trace("");
  assert_int_equal(*POINTER(unsigned char, managed), 7);
  RIGHT(cu.cuMemFree(managed));
}

static CUgraphNodeParams fill_of(void *at, unsigned value, size_t bytes) {
  const CUDA_MEMSET_NODE_PARAMS_v2 fill = {.dst = AT(at), .value = value, .elementSize = 1, .width = bytes,
                                           .height = 1, .ctx = context};
  CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
  memcpy(all.reserved1, &fill, sizeof fill);
  return all;
}

CASE(fill_in_a_body_stays) {
  for (int inside = 0; inside < 2; ++inside, begin_anew()) {
    CUgraph where = captured_to(inside ? add_body() : graph);
    RIGHT(cu.cuMemsetD8Async(AT(counters), 1, 8, stream));
    CUgraphNode node = end_of_capture(where);
    CUgraphExec exec = exec_of();
    CUgraphNodeParams asked = fill_of(counters + 1, 2, 8), far = fill_of(counters, 2, 80);
    counters[0] = counters[1] = 0;
    if (inside) {
      REFUSED(CUDA_ERROR_INVALID_VALUE, "fill nodes in bodies", cu.cuGraphExecNodeSetParams(exec, node, &asked));
    } else {
      WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphExecNodeSetParams(exec, node, &far));
      RIGHT(cu.cuGraphExecNodeSetParams(exec, node, &asked));
    }
    run(exec);
    assert_int_equal(counters[0], inside ? UINT64_C(0x0101010101010101) : 0);
    assert_int_equal(counters[1], inside ? 0 : UINT64_C(0x0202020202020202));
    RIGHT(destroy_exec());
  }
}

/* An update of a node in a body to the same kernel, and to another one, which logs nothing. */
CASE(kernel_in_a_body_changes) {
  static unsigned char b[4096] = {'b'};
  static const struct { const char *no, *kernel, *words, *wanted; } cases[] = {
    {"P17a", "log", "nodes in bodies", "b"}, {"P17b", "most", "keeps its kernel", ""}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k, begin_anew()) {
    CUgraphNode node = add_log(add_body(), NULL, 'a');
    CUgraphExec exec = exec_of();
    CUgraphNodeParams asked = kernel_node(cases[k].kernel, (void *[]){b});
    sim->answer_no(cases[k].no);
    REFUSED(CUDA_ERROR_NOT_SUPPORTED, cases[k].words, cu.cuGraphExecNodeSetParams(exec, node, &asked));
    assert_string_equal(trace_of(exec), "a");
    sim->answer_no(NULL);
    RIGHT(cu.cuGraphExecNodeSetParams(exec, node, &asked));
    assert_string_equal(trace_of(exec), cases[k].wanted);
    RIGHT(destroy_exec());
  }
}

CASE(empty_child_graph) {
  add_logs(graph, "");
  refused_exec(CUDA_ERROR_INVALID_VALUE);
  expect_broken("empty-child");
}

CASE(conditional_graph_stays_one) {
  CUgraph other;
  CUgraphNode node;
  add_log(add_body(), NULL, 'a');
  WRONG(CUDA_ERROR_NOT_SUPPORTED, cu.cuGraphClone(&other, graph));
  other = make_graph();
  WRONG(CUDA_ERROR_NOT_SUPPORTED, cu.cuGraphAddChildGraphNode(&node, other, NULL, 0, graph));
  RIGHT(cu.cuGraphDestroy(other));
  CUgraphExec exec = exec_of();
  refused_exec(CUDA_ERROR_INVALID_VALUE);
  expect_refused("one instantiation");
  BREAKS(CUDA_ERROR_NOT_SUPPORTED, "update", cu.cuGraphExecUpdate(exec, graph, NULL));
  RIGHT(destroy_exec());
  exec = exec_of();
  begin_anew(); /* an exec lives without its graph */
  assert_string_equal(trace_of(exec), "a");
}

CASE(conditional_parameters_stay) {
  CUgraphConditionalHandle handle = handle_of(1);
  conditional made = add_if(graph, NULL, handle);
  add_log(made.body, NULL, 'a');
  CUgraphNodeParams asked = conditional_node(handle, IF, 1);
  BREAKS(CUDA_ERROR_INVALID_VALUE, "update", cu.cuGraphExecNodeSetParams(exec_of(), made.node, &asked));
}

CASE(body_is_the_drivers) {
  CUgraph body = add_body();
  CUgraphExec exec;
  CUgraphNode node;
  add_log(body, NULL, 'a');
  BREAKS(CUDA_ERROR_INVALID_VALUE, "body", cu.cuGraphDestroy(body));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphInstantiateWithFlags(&exec, body, 0));
  begin_anew();
  BREAKS(CUDA_ERROR_INVALID_VALUE, "destroyed", cu.cuGraphAddEmptyNode(&node, body, NULL, 0));
}

CASE(device_without_conditional_nodes) {
  add_log(add_body(), NULL, 'a');
  sim->answer_no("conditional");
  refused_exec(CUDA_ERROR_NOT_SUPPORTED);
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
