/* Conditional handles: every rule about them. */
#include "graph_world.h"

CASE(unattached_handle) {
  CUgraphExec exec;
  CUgraphInstantiateResult why;
  handle_of(0);
  WRONG(CUDA_ERROR_INVALID_VALUE, try_exec(&exec, &why));
  assert_int_equal(why, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
  sim->set_version(12060);
  WRONG(CUDA_ERROR_INVALID_VALUE, try_exec(&exec, &why));
  assert_int_equal(why, CUDA_GRAPH_INSTANTIATE_ERROR);
}

CASE(shared_handle) {
  CUgraph a, *bodies;
  CUgraphNode node;
  CUgraphConditionalHandle handle = handle_of(1);
  add_condition(graph, NULL, handle, IF, &a);
  WRONG(CUDA_ERROR_INVALID_VALUE, try_condition(&node, graph, NULL, handle, IF, 1, &bodies));
  expect_broken("shared");
}

CASE(handle_of_another_graph) {
  CUgraph other, *bodies;
  CUgraphNode node;
  CUgraphConditionalHandle handle = 0;
  RIGHT(cu.cuGraphCreate(&other, 0));
  RIGHT(cu.cuGraphConditionalHandleCreate(&handle, other, context, 1, GKI_CU_GRAPH_COND_ASSIGN_DEFAULT));
  WRONG(CUDA_ERROR_INVALID_VALUE, try_condition(&node, graph, NULL, handle, IF, 1, &bodies));
  expect_refused("another graph");
  RIGHT(cu.cuGraphDestroy(other));
}

/* Made for a body it is for nodes in that, at any depth, and for none around it or beside it. */
CASE(handle_of_a_body) {
  CUgraph body, beside, inner, *bodies;
  CUgraphNode node;
  CUgraphConditionalHandle handle = 0;
  add_condition(graph, NULL, handle_of(0), IF, &body);
  add_condition(graph, NULL, handle_of(0), IF, &beside);
  RIGHT(cu.cuGraphConditionalHandleCreate(&handle, body, context, 0, GKI_CU_GRAPH_COND_ASSIGN_DEFAULT));
  WRONG(CUDA_ERROR_INVALID_VALUE, try_condition(&node, graph, NULL, handle, IF, 1, &bodies));
  expect_refused("another graph");
  WRONG(CUDA_ERROR_INVALID_VALUE, try_condition(&node, beside, NULL, handle, IF, 1, &bodies));
  add_condition(body, NULL, handle_of(0), IF, &inner);
  RIGHT(try_condition(&node, inner, NULL, handle, IF, 1, &bodies));
}

CASE(handle_of_an_ended_graph) {
  CUgraph *bodies;
  CUgraphNode node;
  CUgraphConditionalHandle handle = handle_of(1);
  RIGHT(cu.cuGraphDestroy(graph));
  RIGHT(cu.cuGraphCreate(&graph, 0));
  WRONG(CUDA_ERROR_INVALID_VALUE, try_condition(&node, graph, NULL, handle, IF, 1, &bodies));
  expect_broken("destroyed");
}

CASE(handle_without_default_is_undefined) {
  CUgraph body;
  CUgraphConditionalHandle handle = 0;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphConditionalHandleCreate(&handle, graph, context, 1, 0));
  RIGHT(cu.cuGraphConditionalHandleCreate(&handle, graph, context, 0, 0));
  add_condition(graph, NULL, handle, IF, &body);
  add_log(body, NULL, 'a');
  CUgraphExec exec = exec_of();
  unsigned ran = 0;
  for (uint64_t seed = 0; seed < 32; ++seed) {
    sim->set_seed(seed);
    ran += trace_of(exec)[0] == 'a';
  }
  assert_true(ran > 0 && ran < 32);
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(handles_set_by_two_threads) {
  for (uint64_t other = 0; other < 2; ++other) {
    CUgraph a, b;
    CUgraphConditionalHandle first = handle_of(0), second = handle_of(1);
    CUgraphNode node = add(graph, NULL, "twice", first, second, other);
    node = add_condition(graph, node, first, IF, &a);
    add_condition(graph, node, second, IF, &b);
    add_log(a, NULL, 'a');
    add_log(b, NULL, 'b');
    expect_trace("a");
    if (other) expect_broken("threads");
    RIGHT(cu.cuGraphDestroy(graph));
    RIGHT(cu.cuGraphCreate(&graph, 0));
  }
}

/* Two kernels side by side, then two IF nodes behind both. */
static void set_beside(uint64_t first, uint64_t first_value, uint64_t second, uint64_t second_value,
                       CUgraphConditionalHandle a, CUgraphConditionalHandle b) {
  CUgraphNode both[2] = {add(graph, NULL, "set", first, first_value, 0),
                         add(graph, NULL, "set", second, second_value, 0)};
  CUgraphNode join;
  CUgraph body;
  RIGHT(cu.cuGraphAddEmptyNode(&join, graph, both, 2));
  CUgraphNode node = add_condition(graph, join, a, IF, &body);
  add_log(body, NULL, 'a');
  add_condition(graph, node, b, IF, &body);
  add_log(body, NULL, 'b');
}

CASE(unordered_kernels_may_set_different_handles) {
  CUgraphConditionalHandle a = handle_of(0), b = handle_of(0);
  set_beside(a, 1, b, 1, a, b);
  CUgraphExec exec = exec_of();
  assert_string_equal(trace_of(exec), "ab");
  sim->answer_no("P4e");
  assert_int_equal(strlen(trace_of(exec)), 1);
  sim->answer_no("P4f"); /* of two only */
  assert_string_equal(trace_of(exec), "ab");
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(unordered_kernels_set_one_handle) {
  CUgraphConditionalHandle a = handle_of(0), b = handle_of(1);
  set_beside(a, 1, a, 0, a, b);
  CUgraphExec exec = exec_of();
  trace_of(exec);
  expect_broken("unordered");
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(unordered_kernels_set_one_handle_to_one_value) {
  CUgraphConditionalHandle a = handle_of(0), b = handle_of(1);
  set_beside(a, 1, a, 1, a, b);
  CUgraphExec exec = exec_of();
  assert_string_equal(trace_of(exec), "ab");
  assert_int_equal(sim->broken(), 0);
  sim->answer_no("P4g");
  assert_string_equal(trace_of(exec), "b");
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(handle_set_beside_its_node) {
  CUgraph body;
  CUgraphConditionalHandle handle = handle_of(0);
  add_condition(graph, NULL, handle, IF, &body);
  add_log(body, NULL, 'a');
  add_set(graph, NULL, handle, 1);
  CUgraphExec exec = exec_of();
  trace_of(exec);
  expect_broken("unordered");
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(passes_of_a_loop_are_ordered) {
  CUgraph body, gate;
  CUgraphConditionalHandle loop = handle_of(1), other = handle_of(0);
  add_log(graph, NULL, 'x'); /* makes the graph no chain */
  add_condition(graph, NULL, loop, WHILE, &body);
  CUgraphNode node = add(body, NULL, "count", (uint64_t)(uintptr_t)counters, loop, 0);
  node = add_set(body, node, other, 1);
  add_condition(body, node, other, IF, &gate);
  add_set(gate, NULL, other, 0);
  counters[0] = 3;
  CUgraphExec exec = exec_of();
  trace_of(exec);
  assert_int_equal(sim->broken(), 0);
  RIGHT(cu.cuGraphExecDestroy(exec));
}

static void launch(const char *name, uint64_t a, uint64_t b, uint64_t c) {
  void *parameters[] = {&a, &b, &c};
  RIGHT(cu.cuLaunchKernel(kernel(name), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
  RIGHT(cu.cuStreamSynchronize(stream));
}

CASE(handle_set_by_an_eager_launch) {
  CUgraph body;
  CUgraphConditionalHandle handle = handle_of(0);
  add_condition(graph, NULL, handle, IF, &body);
  add_log(body, NULL, 'a');
  launch("set", handle, 1, 0);
  expect_broken("eager");
}

CASE(handle_of_another_launch) {
  CUgraph body, other;
  CUgraphConditionalHandle handle = handle_of(0);
  add_condition(graph, NULL, handle, IF, &body);
  add_log(body, NULL, 'a');
  CUgraph mine = graph;
  RIGHT(cu.cuGraphCreate(&other, 0));
  graph = other;
  add_set(graph, NULL, handle, 1);
  CUgraphExec exec = exec_of();
  trace_of(exec);
  expect_broken("handle");
  RIGHT(cu.cuGraphExecDestroy(exec));
  RIGHT(cu.cuGraphDestroy(other));
  graph = mine;
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
