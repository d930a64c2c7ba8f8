/* Conditional nodes: what they do, and what a driver may do otherwise. */
#include "graph_world.h"
#include <unistd.h>

CASE(if_runs_by_its_default) {
  conditional a = add_if(graph, NULL, handle_of(1)), b = add_if(graph, a.node, handle_of(0));
  add_log(graph, b.node, 'c');
  add_log(a.body, NULL, 'a');
  add_log(b.body, NULL, 'b');
  expect_trace("ac");
}

CASE(if_runs_by_what_was_set) {
  CUgraphConditionalHandle handle = handle_of(0);
  add_log(add_if(graph, add_set(graph, NULL, handle, 5), handle).body, NULL, 'a');
  expect_trace("a");
}

CASE(if_of_two_bodies_has_an_else) {
  for (unsigned value = 0; value < 2; ++value, begin_anew()) {
    conditional both = add_condition(graph, NULL, handle_of(value), IF, 2);
    add_log(both.bodies[0], NULL, 't');
    add_log(both.bodies[1], NULL, 'e');
    expect_trace(value ? "t" : "e");
  }
}

CASE(switch_runs_its_case_or_nothing) {
  CUgraphConditionalHandle handle = handle_of(7);
  CUgraphNode set = add_set(graph, NULL, handle, 0);
  conditional cases = add_condition(graph, set, handle, SWITCH, 3);
  for (char k = 0; k < 3; ++k) add_log(cases.bodies[(int)k], NULL, (char)('0' + k));
  CUgraphExec exec = exec_of();
  for (uint64_t value = 0; value < 5; ++value) {
    static const char *const wanted[] = {"0", "1", "2", "", ""};
    RIGHT(update(exec, set, "set", handle, value));
    assert_string_equal(trace_of(exec), wanted[value]);
  }
}

CASE(while_is_read_before_the_first_pass_and_after_each) {
  CUgraphConditionalHandle handle = handle_of(1);
  conditional loop = add_while(graph, NULL, handle), never = add_while(graph, loop.node, handle_of(0));
  add_log(never.body, NULL, 'x');
  add_count(loop.body, add_log(loop.body, NULL, 'p'), counters, handle);
  CUgraphExec exec = exec_of();
  counters[0] = 3;
  assert_string_equal(trace_of(exec), "ppp");
  counters[0] = 0; /* the default is applied at each launch */
  assert_string_equal(trace_of(exec), "p");
}

/* do { a; do { b } while; } while: the outer body's end arms the inner loop; without that it stays at 0. */
CASE(outer_loop_arms_the_inner_one) {
  static const struct { bool arms; const char *no, *wanted; } cases[] = {
    {false, NULL, "abaa"}, {true, NULL, "ababab"}, {false, "P9a,P1b", "ababab"}, {true, "P1b2", "abaa"}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k, begin_anew()) {
    CUgraphConditionalHandle o = handle_of(1), i = handle_of(1);
    CUgraph outer = add_while(graph, NULL, o).body;
    conditional inner = add_while(outer, add_log(outer, NULL, 'a'), i);
    add_set(inner.body, add_log(inner.body, NULL, 'b'), i, 0);
    add_count(outer, cases[k].arms ? add_set(outer, inner.node, i, 1) : inner.node, counters, o);
    counters[0] = 3;
    expect_answer(exec_of(), cases[k].no, cases[k].wanted);
    RIGHT(destroy_exec());
  }
}

CASE(value_set_from_outside_is_kept) {
  CUgraphConditionalHandle deep = handle_of(0);
  CUgraph a = add_if(graph, add_set(graph, NULL, deep, 1), handle_of(1)).body;
  add_log(add_if(a, NULL, deep).body, NULL, 'b');
  CUgraphExec exec = exec_of();
  expect_answer(exec, NULL, "b");
  expect_answer(exec, "P1c", "");
}

/* A body two levels deep sets what is read one and two levels further out. */
CASE(p2o_no_by_levels) {
  static const struct { const char *no, *wanted; } cases[] = {
    {NULL, "s"}, {"P2o", "sb"}, {"P2o2", "sb"}, {"P2o1", "sab"}, {"P2o0", "sab"}, {"P2o3", "s"}};
  CUgraphConditionalHandle near = handle_of(1), far = handle_of(1);
  conditional one = add_if(graph, NULL, handle_of(1)), two = add_if(one.body, NULL, handle_of(1));
  add_set(two.body, add(two.body, NULL, "set", near, 0, 's'), far, 0);
  add_log(add_if(one.body, two.node, near).body, NULL, 'a');
  add_log(add_if(graph, one.node, far).body, NULL, 'b');
  CUgraphExec exec = exec_of();
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) expect_answer(exec, cases[k].no, cases[k].wanted);
}

CASE(p7_no_ends_a_pass_too_late) {
  CUgraphConditionalHandle w = handle_of(1), c = handle_of(0);
  CUgraph loop = add_while(graph, NULL, w).body;
  conditional open = add_if(loop, add_log(loop, NULL, 'p'), handle_of(1));
  add_set(open.body, NULL, w, 0);
  add_log(add_if(loop, open.node, c).body, NULL, 'x');
  CUgraphExec exec = exec_of();
  expect_answer(exec, NULL, "p");
  expect_answer(exec, "P7", "pp");
}

/* A kernel in one body sets a handle elsewhere: the gate opens, or the setting is ignored after a no. */
static void expect_level(const char *probe, CUgraph gate) {
  add_log(gate, NULL, 'g');
  CUgraphExec exec = exec_of();
  expect_answer(exec, NULL, "g");
  sim->mark();
  expect_answer(exec, probe, "");
  assert_int_equal(sim->counts().dropped, 1);
}

CASE(kernel_sets_handles_further_out) {
  CUgraphConditionalHandle gate = handle_of(0);
  conditional a = add_if(graph, NULL, handle_of(1));
  add_set(add_if(a.body, NULL, handle_of(1)).body, NULL, gate, 1); /* two levels */
  expect_level("P2o", add_if(graph, a.node, gate).body);
}

CASE(kernel_sets_handles_deeper) {
  CUgraphConditionalHandle gate = handle_of(0);
  conditional a = add_if(graph, add_set(graph, NULL, gate, 1), handle_of(1));
  expect_level("P2d", add_if(a.body, NULL, gate).body);
}

CASE(kernel_sets_handles_beside) {
  CUgraphConditionalHandle gate = handle_of(0);
  conditional a = add_if(graph, NULL, handle_of(1)), b = add_if(graph, a.node, handle_of(1));
  add_set(a.body, NULL, gate, 1);
  expect_level("P2b", add_if(b.body, NULL, gate).body);
}

/* A gate in a loop of three passes, which may set its own handle to 0. */
CASE(gate_in_a_loop) {
  static const struct { bool sets; const char *no, *wanted; } cases[] = {
    {false, NULL, "ggg"}, {false, "P1e", "g"}, {true, NULL, "g"}, {true, "P6", "ggg"}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k, begin_anew()) {
    CUgraphConditionalHandle loop = handle_of(1), own = handle_of(1);
    CUgraph body = add_while(graph, NULL, loop).body;
    conditional gate = add_if(body, NULL, own);
    CUgraphNode node = add_log(gate.body, NULL, 'g');
    if (cases[k].sets) add_set(gate.body, node, own, 0);
    add_count(body, gate.node, counters, loop);
    counters[0] = 3;
    expect_answer(exec_of(), cases[k].no, cases[k].wanted);
    RIGHT(destroy_exec());
  }
}

/* Two loops in parallel branches. */
static CUgraphExec two_loops(void) {
  for (int branch = 0; branch < 2; ++branch) {
    CUgraphConditionalHandle handle = handle_of(1);
    CUgraph body = add_while(graph, NULL, handle).body;
    add_count(body, add_log(body, NULL, (char)('a' + branch)), counters + branch, handle);
  }
  return exec_of();
}

static const char *trace_of_passes(CUgraphExec exec, uint64_t a, uint64_t b, uint64_t seed) {
  counters[0] = a;
  counters[1] = b;
  sim->set_seed(seed);
  return trace_of(exec);
}

static bool is_apart(const char *letters) {
  return strcmp(letters, "aaabbb") == 0 || strcmp(letters, "bbbaaa") == 0;
}

CASE(seed_chooses_the_order_of_branches) {
  CUgraphExec exec = two_loops();
  char seen[64][16];
  unsigned kinds = 0, apart = 0;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    snprintf(seen[kinds], sizeof *seen, "%.15s", trace_of_passes(exec, 3, 3, seed));
    assert_int_equal(strlen(seen[kinds]), 6);
    apart += is_apart(seen[kinds]);
    unsigned same = 0;
    while (strcmp(seen[same], seen[kinds]) != 0) ++same;
    kinds += same == kinds;
  }
  assert_true(kinds > 8); /* of 20 */
  assert_true(apart < 32);
  snprintf(seen[0], sizeof *seen, "%.15s", trace_of_passes(exec, 3, 3, 7));
  assert_string_equal(trace_of_passes(exec, 3, 3, 7), seen[0]);
  sim->answer_no("overlap");
  for (uint64_t seed = 0; seed < 8; ++seed) assert_true(is_apart(trace_of_passes(exec, 3, 3, seed)));
}

CASE(loops_beside_each_other) {
  CUgraphExec exec = two_loops();
  assert_int_equal(strlen(trace_of_passes(exec, 2, 40, 1)), 42);
  sim->answer_no("P8");
  assert_true(strlen(trace_of_passes(exec, 2, 40, 1)) < 42);
}

CASE(update_reaches_later_launches_only) {
  CUgraphNode node = add_log(add_body(), NULL, 'a');
  CUgraphExec exec = exec_of();
  sim->hold(1);
  for (uint64_t letter = '0'; letter < '4'; ++letter) {
    RIGHT(update(exec, node, "log", letter, 0));
    RIGHT(cu.cuGraphLaunch(exec, stream));
  }
  RIGHT(destroy_exec()); /* launches under way go on */
  sim->hold(0);
  wait_for(stream);
  assert_string_equal(trace, "0123");
}

CASE(launch_never_ends) {
  add_log(add_body(), NULL, 'a');
  sim->answer_no("ends");
  RIGHT(cu.cuGraphLaunch(exec_of(), stream));
  for (int k = 0; k < 50; ++k) {
    WRONG(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(stream));
    usleep(1000);
  }
  assert_string_equal(trace, "");
  sim->answer_no(NULL);
  wait_for(stream);
  assert_string_equal(trace, "a");
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
