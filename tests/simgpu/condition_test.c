/* Conditional nodes: what they do, and every rule about them and their handles. */
#include "sim_world.h"

/* ---- kernels; all parameters have 8 bytes ---- */

enum { LOG = 4096 };
static char trace[LOG];
static size_t traced;

static void k_log(const unsigned char *p, unsigned long long threads) { /* letter */
  (void)threads;
  if (traced < LOG - 1) trace[traced++] = (char)take_number(p, 0);
}

static void k_set(const unsigned char *p, unsigned long long threads) { /* handle, value, letter */
  (void)threads;
  set_conditional(take_number(p, 0), (unsigned)take_number(p, 1));
  if (take_number(p, 2) && traced < LOG - 1) trace[traced++] = (char)take_number(p, 2);
}

static void k_count(const unsigned char *p, unsigned long long threads) { /* counter, handle: 1 while it isn't 0 */
  (void)threads;
  uint64_t *counter = (uint64_t *)(uintptr_t)take_number(p, 0);
  if (*counter > 0) --*counter;
  set_conditional(take_number(p, 1), *counter > 0);
}

static void k_twice(const unsigned char *p, unsigned long long threads) { /* handle, other, by two threads: 0 or 1 */
  (void)threads;
  set_conditional(take_number(p, 0), 1);
  *stub_thread = take_number(p, 2);
  set_conditional(take_number(p, 1), 0);
}

static const sim_stub_kernel kernels[] = {{"log", k_log, {8}},
                                          {"set", k_set, {8, 8, 8}},
                                          {"count", k_count, {8, 8}},
                                          {"twice", k_twice, {8, 8, 8}},
                                          {0}};

/* ---- building ---- */

static CUgraph graph;
static uint64_t *counters; /* pinned */

static int begin(void **state) {
  (void)state;
  open_context(kernels);
  memset(trace, 0, sizeof trace);
  traced = 0;
  RIGHT(cu.cuMemHostAlloc((void **)&counters, 64, GKI_CU_MEMHOSTALLOC_DEVICEMAP));
  memset(counters, 0, 64);
  RIGHT(cu.cuGraphCreate(&graph, 0));
  return 0;
}

static int end(void **state) {
  cu.cuGraphDestroy(graph);
  cu.cuMemFreeHost(counters);
  return close_context(state);
}

static CUgraphNode add(CUgraph where, CUgraphNode after, const char *name, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t values[] = {a, b, c};
  void *parameters[] = {&values[0], &values[1], &values[2]};
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  asked.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = kernel(name), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                              .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
                                              .kernelParams = parameters};
  CUgraphNode node = NULL;
  RIGHT(cu.cuGraphAddNode(&node, where, after ? &after : NULL, NULL, after ? 1 : 0, &asked));
  return node;
}

static CUgraphNode add_log(CUgraph where, CUgraphNode after, char letter) {
  return add(where, after, "log", (uint64_t)letter, 0, 0);
}

static CUgraphNode add_set(CUgraph where, CUgraphNode after, CUgraphConditionalHandle handle, unsigned value) {
  return add(where, after, "set", handle, value, 0);
}

static CUgraphConditionalHandle handle_of(unsigned initial) {
  CUgraphConditionalHandle handle = 0;
  RIGHT(cu.cuGraphConditionalHandleCreate(&handle, graph, context, initial, GKI_CU_GRAPH_COND_ASSIGN_DEFAULT));
  return handle;
}

static CUresult try_condition(CUgraphNode *node, CUgraph where, CUgraphNode after, CUgraphConditionalHandle handle,
                              CUgraphConditionalNodeType type, unsigned size, CUgraph **bodies) {
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  asked.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = handle, .type = type, .size = size, .ctx = context};
  CUresult result = cu.cuGraphAddNode(node, where, after ? &after : NULL, NULL, after ? 1 : 0, &asked);
  *bodies = asked.conditional.phGraph_out;
  return result;
}

static CUgraphNode add_condition(CUgraph where, CUgraphNode after, CUgraphConditionalHandle handle,
                                 CUgraphConditionalNodeType type, CUgraph *body) {
  CUgraphNode node = NULL;
  CUgraph *bodies;
  RIGHT(try_condition(&node, where, after, handle, type, 1, &bodies));
  *body = bodies[0];
  return node;
}

#define IF CU_GRAPH_COND_TYPE_IF
#define WHILE CU_GRAPH_COND_TYPE_WHILE
#define SWITCH CU_GRAPH_COND_TYPE_SWITCH

static CUresult try_exec(CUgraphExec *exec, CUgraphInstantiateResult *why) {
  CUDA_GRAPH_INSTANTIATE_PARAMS asked = {0};
  *exec = NULL;
  CUresult result = cu.cuGraphInstantiateWithParams(exec, graph, &asked);
  *why = asked.result_out;
  return result;
}

static CUgraphExec exec_of(void) {
  CUgraphExec exec;
  CUgraphInstantiateResult why;
  RIGHT(try_exec(&exec, &why));
  assert_int_equal(why, CUDA_GRAPH_INSTANTIATE_SUCCESS);
  return exec;
}

/* What launches write; "" for the first. */
static const char *trace_of(CUgraphExec exec) {
  memset(trace, 0, sizeof trace);
  traced = 0;
  RIGHT(cu.cuGraphLaunch(exec, stream));
  RIGHT(cu.cuStreamSynchronize(stream));
  return trace;
}

static void expect_trace(const char *wanted) {
  CUgraphExec exec = exec_of();
  assert_string_equal(trace_of(exec), wanted);
  RIGHT(cu.cuGraphExecDestroy(exec));
}

/* ---- what they do ---- */

static void if_runs_by_its_default(void **state) {
  (void)state;
  CUgraph a, b;
  CUgraphNode node = add_condition(graph, NULL, handle_of(1), IF, &a);
  node = add_condition(graph, node, handle_of(0), IF, &b);
  add_log(graph, node, 'c');
  add_log(a, NULL, 'a');
  add_log(b, NULL, 'b');
  expect_trace("ac");
}

static void if_runs_by_what_was_set(void **state) {
  (void)state;
  CUgraph a;
  CUgraphConditionalHandle handle = handle_of(0);
  CUgraphNode node = add_set(graph, NULL, handle, 5);
  add_condition(graph, node, handle, IF, &a);
  add_log(a, NULL, 'a');
  expect_trace("a");
}

static void if_of_two_bodies_has_an_else(void **state) {
  (void)state;
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

static void switch_runs_its_case_or_nothing(void **state) {
  (void)state;
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

static void while_is_read_before_the_first_pass_and_after_each(void **state) {
  (void)state;
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

static void ended_loop_stays_ended(void **state) {
  (void)state;
  nested(false);
  expect_trace("abaa");
}

static void outer_loop_arms_the_inner_one(void **state) {
  (void)state;
  nested(true);
  expect_trace("ababab");
}

static void p1b_no_gives_the_default_at_each_entry(void **state) {
  (void)state;
  sim->answer_no("P9a,P1b");
  nested(false);
  expect_trace("ababab");
}

static void value_set_from_outside_is_kept(void **state) {
  (void)state;
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

static void p1b2_no_never_arms_again(void **state) {
  (void)state;
  sim->answer_no("P1b2");
  nested(true);
  expect_trace("abaa");
}

/* do { do { if (open) { set what ends both: levels 2 and 3 } ... } } with other kernels that see what happened. */
static void p2o_no_by_levels(void **state) {
  (void)state;
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

static void p7_no_ends_a_pass_too_late(void **state) {
  (void)state;
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

static void kernel_sets_handles_further_out(void **state) {
  (void)state;
  CUgraph a, b, c;
  CUgraphConditionalHandle gate = handle_of(0);
  CUgraphNode node = add_condition(graph, NULL, handle_of(1), IF, &a);
  add_condition(a, NULL, handle_of(1), IF, &b);
  add_set(b, NULL, gate, 1); /* two levels */
  add_condition(graph, node, gate, IF, &c);
  add_log(c, NULL, 'c');
  expect_level("P2o", "c", "");
}

static void kernel_sets_handles_deeper(void **state) {
  (void)state;
  CUgraph a, b;
  CUgraphConditionalHandle gate = handle_of(0);
  CUgraphNode node = add_set(graph, NULL, gate, 1);
  add_condition(graph, node, handle_of(1), IF, &a);
  add_condition(a, NULL, gate, IF, &b);
  add_log(b, NULL, 'b');
  expect_level("P2d", "b", "");
}

static void kernel_sets_handles_beside(void **state) {
  (void)state;
  CUgraph a, b, c;
  CUgraphConditionalHandle gate = handle_of(0);
  CUgraphNode node = add_condition(graph, NULL, handle_of(1), IF, &a);
  add_set(a, NULL, gate, 1);
  add_condition(graph, node, handle_of(1), IF, &b);
  add_condition(b, NULL, gate, IF, &c);
  add_log(c, NULL, 'c');
  expect_level("P2b", "c", "");
}

static void unwritten_gate_keeps_its_default_over_passes(void **state) {
  (void)state;
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

static void value_set_in_its_own_body_counts_next_time(void **state) {
  (void)state;
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

static void seed_chooses_the_order_of_branches(void **state) {
  (void)state;
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
    snprintf(seen[kinds], sizeof *seen, "%s", trace_of(exec));
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
  snprintf(seen[0], sizeof *seen, "%s", trace_of(exec));
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

static void loops_beside_each_other(void **state) {
  (void)state;
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

static void update_reaches_later_launches_only(void **state) {
  (void)state;
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

/* ---- handles ---- */

static void unattached_handle(void **state) {
  (void)state;
  CUgraphExec exec;
  CUgraphInstantiateResult why;
  handle_of(0);
  WRONG(CUDA_ERROR_INVALID_VALUE, try_exec(&exec, &why));
  assert_int_equal(why, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
  sim->set_version(12060);
  WRONG(CUDA_ERROR_INVALID_VALUE, try_exec(&exec, &why));
  assert_int_equal(why, CUDA_GRAPH_INSTANTIATE_ERROR);
}

static void shared_handle(void **state) {
  (void)state;
  CUgraph a, *bodies;
  CUgraphNode node;
  CUgraphConditionalHandle handle = handle_of(1);
  add_condition(graph, NULL, handle, IF, &a);
  WRONG(CUDA_ERROR_INVALID_VALUE, try_condition(&node, graph, NULL, handle, IF, 1, &bodies));
  expect_broken("shared");
}

static void handle_of_another_graph(void **state) {
  (void)state;
  CUgraph other, *bodies;
  CUgraphNode node;
  CUgraphConditionalHandle handle = 0;
  RIGHT(cu.cuGraphCreate(&other, 0));
  RIGHT(cu.cuGraphConditionalHandleCreate(&handle, other, context, 1, GKI_CU_GRAPH_COND_ASSIGN_DEFAULT));
  WRONG(CUDA_ERROR_INVALID_VALUE, try_condition(&node, graph, NULL, handle, IF, 1, &bodies));
  expect_refused("another graph");
  RIGHT(cu.cuGraphDestroy(other));
}

static void handle_of_an_ended_graph(void **state) {
  (void)state;
  CUgraph *bodies;
  CUgraphNode node;
  CUgraphConditionalHandle handle = handle_of(1);
  RIGHT(cu.cuGraphDestroy(graph));
  RIGHT(cu.cuGraphCreate(&graph, 0));
  WRONG(CUDA_ERROR_INVALID_VALUE, try_condition(&node, graph, NULL, handle, IF, 1, &bodies));
  expect_broken("destroyed");
}

static void handle_without_default_is_undefined(void **state) {
  (void)state;
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

static void handles_set_by_two_threads(void **state) {
  (void)state;
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
  CUgraphNode both[2] = {add(graph, NULL, "set", first, first_value, 0), add(graph, NULL, "set", second, second_value, 0)};
  CUgraphNode join;
  CUgraph body;
  RIGHT(cu.cuGraphAddEmptyNode(&join, graph, both, 2));
  CUgraphNode node = add_condition(graph, join, a, IF, &body);
  add_log(body, NULL, 'a');
  add_condition(graph, node, b, IF, &body);
  add_log(body, NULL, 'b');
}

static void unordered_kernels_may_set_different_handles(void **state) {
  (void)state;
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

static void unordered_kernels_set_one_handle(void **state) {
  (void)state;
  CUgraphConditionalHandle a = handle_of(0), b = handle_of(1);
  set_beside(a, 1, a, 0, a, b);
  CUgraphExec exec = exec_of();
  trace_of(exec);
  expect_broken("unordered");
  RIGHT(cu.cuGraphExecDestroy(exec));
}

static void unordered_kernels_set_one_handle_to_one_value(void **state) {
  (void)state;
  CUgraphConditionalHandle a = handle_of(0), b = handle_of(1);
  set_beside(a, 1, a, 1, a, b);
  CUgraphExec exec = exec_of();
  assert_string_equal(trace_of(exec), "ab");
  assert_int_equal(sim->broken(), 0);
  sim->answer_no("P4g");
  assert_string_equal(trace_of(exec), "b");
  RIGHT(cu.cuGraphExecDestroy(exec));
}

static void handle_set_beside_its_node(void **state) {
  (void)state;
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

static void passes_of_a_loop_are_ordered(void **state) {
  (void)state;
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

static void handle_set_by_an_eager_launch(void **state) {
  (void)state;
  CUgraph body;
  CUgraphConditionalHandle handle = handle_of(0);
  add_condition(graph, NULL, handle, IF, &body);
  add_log(body, NULL, 'a');
  launch("set", handle, 1, 0);
  expect_broken("eager");
}

static void handle_of_another_launch(void **state) {
  (void)state;
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

/* ---- bodies and versions ---- */

static void sizes_and_kinds_by_version(void **state) {
  (void)state;
  static const struct { int version; CUgraphConditionalNodeType type; unsigned size; bool right; } cases[] = {
    {12040, IF, 1, true},   {12040, IF, 2, false}, {12080, IF, 2, true},     {13000, IF, 3, false}, {13000, IF, 0, false},
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
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddHostNode(&node, body, NULL, 0, &node));
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

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {
    CASE(if_runs_by_its_default),
    CASE(if_runs_by_what_was_set),
    CASE(if_of_two_bodies_has_an_else),
    CASE(switch_runs_its_case_or_nothing),
    CASE(while_is_read_before_the_first_pass_and_after_each),
    CASE(ended_loop_stays_ended),
    CASE(outer_loop_arms_the_inner_one),
    CASE(p1b_no_gives_the_default_at_each_entry),
    CASE(p1b2_no_never_arms_again),
    CASE(p2o_no_by_levels),
    CASE(p7_no_ends_a_pass_too_late),
    CASE(loops_beside_each_other),
    CASE(value_set_from_outside_is_kept),
    CASE(kernel_sets_handles_further_out),
    CASE(kernel_sets_handles_deeper),
    CASE(kernel_sets_handles_beside),
    CASE(unwritten_gate_keeps_its_default_over_passes),
    CASE(value_set_in_its_own_body_counts_next_time),
    CASE(seed_chooses_the_order_of_branches),
    CASE(update_reaches_later_launches_only),
    CASE(unattached_handle),
    CASE(shared_handle),
    CASE(handle_of_another_graph),
    CASE(handle_of_an_ended_graph),
    CASE(handle_without_default_is_undefined),
    CASE(handles_set_by_two_threads),
    CASE(unordered_kernels_may_set_different_handles),
    CASE(unordered_kernels_set_one_handle),
    CASE(unordered_kernels_set_one_handle_to_one_value),
    CASE(handle_set_beside_its_node),
    CASE(passes_of_a_loop_are_ordered),
    CASE(handle_set_by_an_eager_launch),
    CASE(handle_of_another_launch),
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
