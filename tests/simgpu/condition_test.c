/* Conditional nodes: what they do, and what a driver may do otherwise. */
#include "graph_world.h"
#include <unistd.h>

CASE(if_runs_by_its_default) {
  CUgraph a, b;
  CUgraphNode node = add_condition(graph, NULL, handle_of(1), IF, &a);
  node = add_condition(graph, node, handle_of(0), IF, &b);
  add_log(graph, node, 'c');
  add_log(a, NULL, 'a');
  add_log(b, NULL, 'b');
  expect_trace("ac");
}

CASE(if_runs_by_what_was_set) {
  CUgraph a;
  CUgraphConditionalHandle handle = handle_of(0);
  CUgraphNode node = add_set(graph, NULL, handle, 5);
  add_condition(graph, node, handle, IF, &a);
  add_log(a, NULL, 'a');
  expect_trace("a");
}

CASE(if_of_two_bodies_has_an_else) {
  for (unsigned value = 0; value < 2; ++value) {
    CUgraph *bodies;
    CUgraphNode node;
    CUgraphConditionalHandle handle = handle_of(value);
    RIGHT(try_condition(&node, graph, NULL, handle, IF, 2, &bodies));
    add_log(bodies[0], NULL, 't');
    add_log(bodies[1], NULL, 'e');
    expect_trace(value ? "t" : "e");
    RIGHT(cu.cuGraphDestroy(graph));
    RIGHT(cu.cuGraphCreate(&graph, 0));
  }
}

CASE(switch_runs_its_case_or_nothing) {
  CUgraphConditionalHandle handle = handle_of(7);
  CUgraphNode set = add_set(graph, NULL, handle, 0), node;
  CUgraph *bodies;
  RIGHT(try_condition(&node, graph, set, handle, SWITCH, 3, &bodies));
  for (unsigned k = 0; k < 3; ++k) add_log(bodies[k], NULL, (char)('0' + (int)k));
  CUgraphExec exec = exec_of();
  for (uint64_t value = 0; value < 5; ++value) {
    uint64_t letter = 0;
    void *parameters[] = {&handle, &value, &letter};
    CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    asked.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = kernel("set"), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                                .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
                                                .kernelParams = parameters};
    RIGHT(cu.cuGraphExecNodeSetParams(exec, set, &asked));
    const char *wanted[] = {"0", "1", "2", "", ""};
    assert_string_equal(trace_of(exec), wanted[value]);
  }
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(while_is_read_before_the_first_pass_and_after_each) {
  CUgraph body, never;
  CUgraphConditionalHandle handle = handle_of(1);
  CUgraphNode node = add_condition(graph, NULL, handle, WHILE, &body);
  add_condition(graph, node, handle_of(0), WHILE, &never);
  add_log(never, NULL, 'x');
  node = add_log(body, NULL, 'p');
  add(body, node, "count", (uint64_t)(uintptr_t)counters, handle, 0);
  CUgraphExec exec = exec_of();
  counters[0] = 3;
  assert_string_equal(trace_of(exec), "ppp");
  counters[0] = 0; /* the default is applied at each launch */
  assert_string_equal(trace_of(exec), "p");
  RIGHT(cu.cuGraphExecDestroy(exec));
}

/* do { a; do { b } while; } while: the outer end arms the inner loop; without that it stays at 0. */
static void nested(bool arm) {
  CUgraph outer, inner;
  CUgraphConditionalHandle o = handle_of(1), i = handle_of(1);
  add_condition(graph, NULL, o, WHILE, &outer);
  CUgraphNode node = add_log(outer, NULL, 'a');
  node = add_condition(outer, node, i, WHILE, &inner);
  add_set(inner, add_log(inner, NULL, 'b'), i, 0);
  if (arm) node = add_set(outer, node, i, 1);
  add(outer, node, "count", (uint64_t)(uintptr_t)counters, o, 0);
  counters[0] = 3;
}

CASE(ended_loop_stays_ended) {
  nested(false);
  expect_trace("abaa");
}

CASE(outer_loop_arms_the_inner_one) {
  nested(true);
  expect_trace("ababab");
}

CASE(p1b_no_gives_the_default_at_each_entry) {
  sim->answer_no("P9a,P1b");
  nested(false);
  expect_trace("ababab");
}

CASE(value_set_from_outside_is_kept) {
  for (int no = 0; no < 2; ++no) {
    sim->answer_no(no ? "P1c" : NULL);
    CUgraph a, b;
    CUgraphConditionalHandle deep = handle_of(0);
    CUgraphNode node = add_set(graph, NULL, deep, 1);
    add_condition(graph, node, handle_of(1), IF, &a);
    add_condition(a, NULL, deep, IF, &b);
    add_log(b, NULL, 'b');
    expect_trace(no ? "" : "b");
    RIGHT(cu.cuGraphDestroy(graph));
    RIGHT(cu.cuGraphCreate(&graph, 0));
  }
}

CASE(p1b2_no_never_arms_again) {
  sim->answer_no("P1b2");
  nested(true);
  expect_trace("abaa");
}

/* do { do { if (open) { set what ends both: levels 2 and 3 } ... } } with other kernels that see what happened. */
CASE(p2o_no_by_levels) {
  static const struct { const char *no, *wanted; } cases[] = {
    {NULL, "s"}, {"P2o", "sb"}, {"P2o2", "sb"}, {"P2o1", "sab"}, {"P2o0", "sab"}, {"P2o3", "s"}};
  CUgraph one, two, gate;
  CUgraphConditionalHandle near = handle_of(1), far = handle_of(1);
  CUgraphNode node = add_condition(graph, NULL, handle_of(1), IF, &one);
  CUgraphNode inner = add_condition(one, NULL, handle_of(1), IF, &two);
  add_set(two, add(two, NULL, "set", near, 0, 's'), far, 0);
  add_condition(one, inner, near, IF, &gate); /* one level out */
  add_log(gate, NULL, 'a');
  add_condition(graph, node, far, IF, &gate); /* two */
  add_log(gate, NULL, 'b');
  CUgraphExec exec = exec_of();
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
    sim->answer_no(cases[k].no);
    assert_string_equal(trace_of(exec), cases[k].wanted);
  }
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(p7_no_ends_a_pass_too_late) {
  CUgraph loop, open, closed;
  CUgraphConditionalHandle w = handle_of(1), c = handle_of(0);
  add_condition(graph, NULL, w, WHILE, &loop);
  CUgraphNode node = add_condition(loop, add_log(loop, NULL, 'p'), handle_of(1), IF, &open);
  add_set(open, NULL, w, 0);
  add_condition(loop, node, c, IF, &closed);
  add_log(closed, NULL, 'x');
  CUgraphExec exec = exec_of();
  assert_string_equal(trace_of(exec), "p");
  sim->answer_no("P7");
  assert_string_equal(trace_of(exec), "pp");
  RIGHT(cu.cuGraphExecDestroy(exec));
}

/* A kernel in one body sets a handle elsewhere; no: it is ignored. */
static void expect_level(const char *probe, const char *yes, const char *no) {
  CUgraphExec exec = exec_of();
  assert_string_equal(trace_of(exec), yes);
  sim->answer_no(probe);
  sim->mark();
  assert_string_equal(trace_of(exec), no);
  assert_int_equal(sim->counts().dropped, 1);
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(kernel_sets_handles_further_out) {
  CUgraph a, b, c;
  CUgraphConditionalHandle gate = handle_of(0);
  CUgraphNode node = add_condition(graph, NULL, handle_of(1), IF, &a);
  add_condition(a, NULL, handle_of(1), IF, &b);
  add_set(b, NULL, gate, 1); /* two levels */
  add_condition(graph, node, gate, IF, &c);
  add_log(c, NULL, 'c');
  expect_level("P2o", "c", "");
}

CASE(kernel_sets_handles_deeper) {
  CUgraph a, b;
  CUgraphConditionalHandle gate = handle_of(0);
  CUgraphNode node = add_set(graph, NULL, gate, 1);
  add_condition(graph, node, handle_of(1), IF, &a);
  add_condition(a, NULL, gate, IF, &b);
  add_log(b, NULL, 'b');
  expect_level("P2d", "b", "");
}

CASE(kernel_sets_handles_beside) {
  CUgraph a, b, c;
  CUgraphConditionalHandle gate = handle_of(0);
  CUgraphNode node = add_condition(graph, NULL, handle_of(1), IF, &a);
  add_set(a, NULL, gate, 1);
  add_condition(graph, node, handle_of(1), IF, &b);
  add_condition(b, NULL, gate, IF, &c);
  add_log(c, NULL, 'c');
  expect_level("P2b", "c", "");
}

CASE(unwritten_gate_keeps_its_default_over_passes) {
  for (int no = 0; no < 2; ++no) {
    CUgraph body, gate;
    CUgraphConditionalHandle handle = handle_of(1);
    add_condition(graph, NULL, handle, WHILE, &body);
    CUgraphNode node = add_condition(body, NULL, handle_of(1), IF, &gate);
    add_log(gate, NULL, 'g');
    add(body, node, "count", (uint64_t)(uintptr_t)counters, handle, 0);
    counters[0] = 3;
    sim->answer_no(no ? "P1e" : NULL);
    expect_trace(no ? "g" : "ggg");
    RIGHT(cu.cuGraphDestroy(graph));
    RIGHT(cu.cuGraphCreate(&graph, 0));
  }
}

CASE(value_set_in_its_own_body_counts_next_time) {
  for (int no = 0; no < 2; ++no) {
    CUgraph body, gate;
    CUgraphConditionalHandle loop = handle_of(1), own = handle_of(1);
    add_condition(graph, NULL, loop, WHILE, &body);
    CUgraphNode node = add_condition(body, NULL, own, IF, &gate);
    add_set(gate, add_log(gate, NULL, 'g'), own, 0);
    add(body, node, "count", (uint64_t)(uintptr_t)counters, loop, 0);
    counters[0] = 3;
    sim->answer_no(no ? "P6" : NULL);
    expect_trace(no ? "ggg" : "g");
    RIGHT(cu.cuGraphDestroy(graph));
    RIGHT(cu.cuGraphCreate(&graph, 0));
  }
}

CASE(seed_chooses_the_order_of_branches) {
  for (int branch = 0; branch < 2; ++branch) {
    CUgraph body;
    CUgraphConditionalHandle handle = handle_of(1);
    add_condition(graph, NULL, handle, WHILE, &body);
    CUgraphNode node = add_log(body, NULL, (char)('a' + branch));
    add(body, node, "count", (uint64_t)(uintptr_t)(counters + branch), handle, 0);
  }
  CUgraphExec exec = exec_of();
  char seen[64][16];
  unsigned kinds = 0, apart = 0;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    counters[0] = counters[1] = 3;
    sim->set_seed(seed);
    snprintf(seen[kinds], sizeof *seen, "%.15s", trace_of(exec));
    assert_int_equal(strlen(seen[kinds]), 6);
    apart += strcmp(seen[kinds], "aaabbb") == 0 || strcmp(seen[kinds], "bbbaaa") == 0;
    unsigned same = 0;
    while (strcmp(seen[same], seen[kinds]) != 0) ++same;
    kinds += same == kinds;
  }
  assert_true(kinds > 8); /* of 20 */
  assert_true(apart < 32);
  sim->set_seed(7);
  counters[0] = counters[1] = 3;
  snprintf(seen[0], sizeof *seen, "%.15s", trace_of(exec));
  sim->set_seed(7);
  counters[0] = counters[1] = 3;
  assert_string_equal(trace_of(exec), seen[0]);
  sim->answer_no("overlap");
  for (uint64_t seed = 0; seed < 8; ++seed) {
    counters[0] = counters[1] = 3;
    sim->set_seed(seed);
    trace_of(exec);
    assert_true(strcmp(trace, "aaabbb") == 0 || strcmp(trace, "bbbaaa") == 0);
  }
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(loops_beside_each_other) {
  for (int branch = 0; branch < 2; ++branch) {
    CUgraph body;
    CUgraphConditionalHandle handle = handle_of(1);
    add_condition(graph, NULL, handle, WHILE, &body);
    CUgraphNode node = add_log(body, NULL, (char)('a' + branch));
    add(body, node, "count", (uint64_t)(uintptr_t)(counters + branch), handle, 0);
  }
  CUgraphExec exec = exec_of();
  counters[0] = 2;
  counters[1] = 40;
  assert_int_equal(strlen(trace_of(exec)), 42);
  sim->answer_no("P8");
  counters[0] = 2;
  counters[1] = 40;
  assert_true(strlen(trace_of(exec)) < 42);
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(update_reaches_later_launches_only) {
  CUgraph body;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  CUgraphNode node = add_log(body, NULL, 'a');
  CUgraphExec exec = exec_of();
  sim->hold(1);
  for (int k = 0; k < 4; ++k) {
    uint64_t letter = (uint64_t)('0' + k);
    void *parameters[] = {&letter};
    CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    asked.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = kernel("log"), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                                .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
                                                .kernelParams = parameters};
    RIGHT(cu.cuGraphExecNodeSetParams(exec, node, &asked));
    RIGHT(cu.cuGraphLaunch(exec, stream));
  }
  RIGHT(cu.cuGraphExecDestroy(exec)); /* what is under way goes on */
  sim->hold(0);
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_string_equal(trace, "0123");
}

CASE(launch_never_ends) {
  CUgraph body;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  add_log(body, NULL, 'a');
  CUgraphExec exec = exec_of();
  sim->answer_no("ends");
  RIGHT(cu.cuGraphLaunch(exec, stream));
  for (int k = 0; k < 50; ++k) {
    WRONG(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(stream));
    usleep(1000);
  }
  assert_string_equal(trace, "");
  sim->answer_no(NULL);
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_string_equal(trace, "a");
  RIGHT(cu.cuGraphExecDestroy(exec));
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
