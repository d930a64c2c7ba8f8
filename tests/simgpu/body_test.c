/* What may be in bodies, in which version, and what may be done with graphs that have them. */
#include "graph_world.h"

static void sizes_and_kinds_by_version(void **state) {
  (void)state;
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

static void empty_body(void **state) {
  (void)state;
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

static void endless_loop_is_ended(void **state) {
  (void)state;
  CUgraph body;
  add_condition(graph, NULL, handle_of(1), WHILE, &body);
  CUgraphExec exec = exec_of();
  RIGHT(cu.cuGraphLaunch(exec, stream));
  WRONG(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
  expect_broken("endless");
  expect_refused("never ended");
  WRONG(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuGraphExecDestroy(exec));
}

static void empty_node_in_a_body_before_12_4(void **state) {
  (void)state;
  CUgraph body;
  CUgraphNode node;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  RIGHT(cu.cuGraphAddEmptyNode(&node, body, NULL, 0));
  expect_trace("");
  sim->set_version(12030);
  expect_trace("");
  expect_broken("empty-node");
}

static void other_nodes_in_a_body(void **state) {
  (void)state;
  CUgraph body;
  CUgraphNode node;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddHostNode(&node, body, NULL, 0, (const void *)&node));
  expect_refused("body");
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddNode(&node, body, NULL, NULL, 0, &asked));
  expect_refused("body");
  asked.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddNode(&node, body, NULL, NULL, 0, &asked));
  add_log(body, NULL, 'a');
  expect_trace("a");
}

static void child_graph_in_a_body(void **state) {
  (void)state;
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

static void child_graph_in_a_case_before_13(void **state) {
  (void)state;
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

static void empty_child_graph(void **state) {
  (void)state;
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

static void conditional_graph_stays_one(void **state) {
  (void)state;
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

static void conditional_parameters_stay(void **state) {
  (void)state;
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

static void body_is_the_drivers(void **state) {
  (void)state;
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

static void device_without_conditional_nodes(void **state) {
  (void)state;
  CUgraph body;
  CUgraphExec exec;
  CUgraphInstantiateResult why;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  add_log(body, NULL, 'a');
  sim->answer_no("conditional");
  WRONG(CUDA_ERROR_NOT_SUPPORTED, try_exec(&exec, &why));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    CASE(sizes_and_kinds_by_version),
    CASE(empty_body),
    CASE(endless_loop_is_ended),
    CASE(empty_node_in_a_body_before_12_4),
    CASE(other_nodes_in_a_body),
    CASE(child_graph_in_a_body),
    CASE(child_graph_in_a_case_before_13),
    CASE(empty_child_graph),
    CASE(conditional_graph_stays_one),
    CASE(conditional_parameters_stay),
    CASE(body_is_the_drivers),
    CASE(device_without_conditional_nodes),
  };
  return cmocka_run_group_tests(tests, load_driver, NULL);
}
