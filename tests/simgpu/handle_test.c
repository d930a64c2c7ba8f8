/* Conditional handles: every rule about them. */
#include "graph_world.h"

CASE(unattached_handle) {
  handle_of(0);
  assert_int_equal(refused_exec(CUDA_ERROR_INVALID_VALUE), CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
  sim->set_version(12060);
  assert_int_equal(refused_exec(CUDA_ERROR_INVALID_VALUE), CUDA_GRAPH_INSTANTIATE_ERROR);
}

static CUresult try_if(CUgraph where, CUgraphConditionalHandle handle) {
  conditional made;
  return try_condition(where, NULL, handle, IF, 1, &made);
}

CASE(shared_handle) {
  CUgraphConditionalHandle handle = handle_of(1);
  RIGHT(try_if(graph, handle));
  BREAKS(CUDA_ERROR_INVALID_VALUE, "shared", try_if(graph, handle));
}

CASE(handle_of_another_graph) {
  CUgraph other = make_graph();
  REFUSED(CUDA_ERROR_INVALID_VALUE, "another graph", try_if(graph, handle_in(other, 1)));
  RIGHT(cu.cuGraphDestroy(other));
}

/* A handle made for a body is for nodes in it, at any depth, and for no node around or beside it. */
CASE(handle_of_a_body) {
  CUgraph body = add_if(graph, NULL, handle_of(0)).body, beside = add_if(graph, NULL, handle_of(0)).body;
  CUgraphConditionalHandle handle = handle_in(body, 0);
  REFUSED(CUDA_ERROR_INVALID_VALUE, "another graph", try_if(graph, handle));
  WRONG(CUDA_ERROR_INVALID_VALUE, try_if(beside, handle));
  RIGHT(try_if(add_if(body, NULL, handle_of(0)).body, handle));
}

CASE(handle_of_an_ended_graph) {
  CUgraphConditionalHandle handle = handle_of(1);
  begin_anew();
  BREAKS(CUDA_ERROR_INVALID_VALUE, "destroyed", try_if(graph, handle));
}

CASE(handle_without_default_is_undefined) {
  CUgraphConditionalHandle handle = 0;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphConditionalHandleCreate(&handle, graph, context, 1, 0));
  RIGHT(cu.cuGraphConditionalHandleCreate(&handle, graph, context, 0, 0));
  add_log(add_if(graph, NULL, handle).body, NULL, 'a');
  CUgraphExec exec = exec_of();
  unsigned ran = 0;
  for (uint64_t seed = 0; seed < 32; ++seed) {
    sim->set_seed(seed);
    ran += trace_of(exec)[0] == 'a';
  }
  assert_true(ran > 0 && ran < 32);
}

CASE(handles_set_by_two_threads) {
  for (uint64_t other = 0; other < 2; ++other, begin_anew()) {
    CUgraphConditionalHandle first = handle_of(0), second = handle_of(1);
    conditional a = add_if(graph, add(graph, NULL, "twice", first, second, other), first);
    add_log(a.body, NULL, 'a');
    add_log(add_if(graph, a.node, second).body, NULL, 'b');
    expect_trace("a");
    if (other) expect_broken("threads");
  }
}

/* Two kernels side by side, then two IF nodes behind both. */
static CUgraphExec set_beside(uint64_t first, unsigned first_value, uint64_t second, unsigned second_value,
                              CUgraphConditionalHandle a, CUgraphConditionalHandle b) {
  CUgraphNode both[] = {add_set(graph, NULL, first, first_value), add_set(graph, NULL, second, second_value)}, join;
  RIGHT(cu.cuGraphAddEmptyNode(&join, graph, both, 2));
  conditional node = add_if(graph, join, a);
  add_log(node.body, NULL, 'a');
  add_log(add_if(graph, node.node, b).body, NULL, 'b');
  return exec_of();
}

CASE(unordered_kernels_may_set_different_handles) {
  CUgraphConditionalHandle a = handle_of(0), b = handle_of(0);
  CUgraphExec exec = set_beside(a, 1, b, 1, a, b);
  expect_answer(exec, NULL, "ab");
  sim->answer_no("P4e");
  assert_int_equal(strlen(trace_of(exec)), 1);
  expect_answer(exec, "P4f", "ab"); /* of two only */
}

CASE(unordered_kernels_set_one_handle) {
  CUgraphConditionalHandle a = handle_of(0), b = handle_of(1);
  run(set_beside(a, 1, a, 0, a, b));
  expect_broken("unordered");
}

CASE(unordered_kernels_set_one_handle_to_one_value) {
  CUgraphConditionalHandle a = handle_of(0), b = handle_of(1);
  CUgraphExec exec = set_beside(a, 1, a, 1, a, b);
  expect_answer(exec, NULL, "ab");
  assert_int_equal(sim->broken(), 0);
  expect_answer(exec, "P4g", "b");
}

CASE(handle_set_beside_its_node) {
  CUgraphConditionalHandle handle = handle_of(0);
  add_log(add_if(graph, NULL, handle).body, NULL, 'a');
  add_set(graph, NULL, handle, 1);
  run(exec_of());
  expect_broken("unordered");
}

CASE(passes_of_a_loop_are_ordered) {
  CUgraphConditionalHandle loop = handle_of(1), other = handle_of(0);
  add_log(graph, NULL, 'x'); /* makes the graph no chain */
  CUgraph body = add_while(graph, NULL, loop).body;
  CUgraphNode node = add_set(body, add_count(body, NULL, counters, loop), other, 1);
  add_set(add_if(body, node, other).body, NULL, other, 0);
  counters[0] = 3;
  run(exec_of());
  assert_int_equal(sim->broken(), 0);
}

CASE(handle_set_by_an_eager_launch) {
  CUgraphConditionalHandle handle = handle_of(0);
  add_log(add_if(graph, NULL, handle).body, NULL, 'a');
  RIGHT(LAUNCH(stream, "set", handle, 1));
  wait_for(stream);
  expect_broken("eager");
}

CASE(handle_of_another_launch) {
  CUgraphConditionalHandle handle = handle_of(0);
  add_log(add_if(graph, NULL, handle).body, NULL, 'a');
  CUgraph first = graph;
  graph = make_graph();
  add_set(graph, NULL, handle, 1);
  run(exec_of());
  expect_broken("handle");
  RIGHT(cu.cuGraphDestroy(first));
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
