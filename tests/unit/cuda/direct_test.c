/* The driver's own graph of a list, and the nodes of its tasks, for a program that looks at them or changes them. */
#include "cuda/gates.h"
#include "lists.h"

static gk_result nothing(UNUSED const gk_value *args, UNUSED void *native) { return GK_OK; }

static CUgraphNodeType type_of(CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  RIGHT(cu.cuGraphNodeGetType(node, &type));
  return type;
}

static bool holds(CUgraph graph, CUgraphNode node) {
  CUgraphNode nodes[64];
  size_t count = GK_COUNT(nodes), k = 0;
  RIGHT(cu.cuGraphGetNodes(graph, nodes, &count));
  while (k < count && nodes[k] != node) ++k;
  return k < count;
}

/* A node of that kind, in the named graph; if it is in a body, not in the whole graph. */
static CUgraphNode expect(gk_graph *graph, int32_t label, size_t task, CUgraphNodeType type, bool in_body) {
  CUgraph whole, in;
  CUgraphNode node;
  assert_ok(gk_cuda_graph(graph, label, &whole, NULL));
  assert_ok(gk_cuda_node(graph, label, task, &in, &node));
  assert_true(holds(in, node));
  if ((in != whole) != in_body || type_of(node) != type)
    fail_msg("task %zu: type %d, %s", task, (int)type_of(node), in != whole ? "in a body" : "in the whole graph");
  return node;
}

/* ---- changed by the user ----------------------------------------------------------------------------------------- */

/* A task does nothing while its guard holds the launch's number. */
static void skip_task(gk_device *device, gk_graph *graph, int32_t label, size_t task) {
  CUgraphExec exec;
  CUgraphNode node;
  CUDA_KERNEL_NODE_PARAMS_v1 parameters;
  assert_ok(gk_cuda_graph(graph, label, NULL, &exec));
  assert_ok(gk_cuda_node(graph, label, task, NULL, &node));
  RIGHT(cu.cuGraphKernelNodeGetParams(node, &parameters));
  gki_task given;
  memcpy(&given, parameters.kernelParams[0], sizeof given);
  given.guard = given.number;
  parameters.kernelParams = (void *[]){&given};
  const CUcontext context = enter_context(device);
  RIGHT(cu.cuGraphExecKernelNodeSetParams(exec, node, &parameters));
  discard(context);
}

/* A SWITCH made of IF nodes answers with the first of them. */
CLEAN(test_switch_of_if_nodes) {
  LIST(list, GK_SWITCH(FLAG), GK_CASE, GK_FILL(X, N, 3), GK_END, GK_CASE, GK_FILL(X, N, 4), GK_END, GK_END);
  sim->answer_no("P9a");
  gk_graph *graph = new_zero_graph(new_device("cuda", 0), &list, 0);
  sim->answer_no(NULL);
  const CUgraphNode first = expect(graph, 0, 0, CU_GRAPH_NODE_TYPE_CONDITIONAL, false);
  assert_ptr_equal(expect(graph, 0, 1, CU_GRAPH_NODE_TYPE_CONDITIONAL, false), first);
  assert_ptr_not_equal(expect(graph, 0, 4, CU_GRAPH_NODE_TYPE_CONDITIONAL, false), first);
}

TEST_ON_CUDA(test_change_a_kernel_node) {
  LIST(list, GK_FILL(Y, N, 7), GK_DO_WHILE(LEFT), GK_FILL(X, N, 8), GK_END);
  gk_graph *graph = new_zero_graph(device, &list, 0);
  run_to_end(graph, 0);
  assert_int_equal(int_at(device, gk_bound(graph, X)), 8);
  skip_task(device, graph, 0, 0);
  skip_task(device, graph, 0, 2);
  for (int k = 0; k < 2; ++k) { /* bound anew, it is still the user's */
    BIND(graph, {Y, int_on(device, 5)}, {X, int_on(device, 6)});
    run_to_end(graph, 0);
    assert_int_equal(int_at(device, gk_bound(graph, Y)), 5);
    assert_int_equal(int_at(device, gk_bound(graph, X)), 6);
  }
}

/* The graph of resumed launches has nodes of its own. It is made when the program asks for it. */
#define THREE GK_FILL(X, N, 1), GK_FILL(X, N, 2), GK_FILL(X, N, 3)
LIST(skipping, THREE, THREE, THREE, GK_FILL(X, N, 1), /* skipped by an IF node around them */
     GK_CHECKPOINT(HERE, FLAG), GK_FILL(Y, N, 2), GK_END);
TEST_ON_CUDA(test_variants) {
  gk_graph *graph = new_zero_graph(device, &skipping, 0);
  CUgraph fresh, resumed, again;
  CUgraphExec execs[2];
  assert_ok(gk_cuda_graph(graph, 0, &fresh, &execs[0]));
  assert_ok(gk_cuda_graph(graph, HERE, &resumed, &execs[1]));
  assert_ok(gk_cuda_graph(graph, HERE, &again, NULL));
  assert_ptr_not_equal(fresh, resumed);
  assert_ptr_not_equal(execs[0], execs[1]);
  assert_ptr_equal(again, resumed);
  assert_ptr_not_equal(expect(graph, 0, 3, CU_GRAPH_NODE_TYPE_KERNEL, false),
                       expect(graph, HERE, 3, CU_GRAPH_NODE_TYPE_KERNEL, true));
  skip_task(device, graph, HERE, 11);
  for (int resumes = 0; resumes < 2; ++resumes) {
    BIND(graph, {Y, int_on(device, 5)});
    run_to_end(graph, resumes ? HERE : 0);
    assert_int_equal(int_at(device, gk_bound(graph, Y)), resumes ? 5 : 2);
  }
  assert_fails(GK_ERROR_INVALID, "gk_cuda_graph: graph skipping has no checkpoint or YIELD with label 99; it has ",
               gk_cuda_graph(graph, 99, &fresh, &execs[0]));
  assert_true(!fresh && !execs[0]);
}

/* Also where launches are on another stream, which has to wait for the copies that making it sends. */
TEST_ON_CUDA(test_made_between_launches) {
  LIST(list, GK_CHECKPOINT(HERE, FLAG), GK_FILL(Y, N, 2), GK_END, GK_CHECKPOINT(THERE, LEFT), GK_RUN(add, N, X, A),
       GK_END);
  enter_context(device);
  for (uint64_t seed = 0; seed < 8; ++seed) {
    sim->set_seed(seed);
    gk_graph *graph = new_zero_graph(device, &list, 0);
    const CUstream stream = new_stream();
    assert_ok(run_on_stream(graph, 0, stream));
    assert_ok(gk_cuda_graph(graph, THERE, NULL, NULL));
    assert_ok(gk_launch_on(graph, THERE, stream));
    discard(stream);
    assert_ok(gk_wait(graph, NULL));
    assert_int_equal(int_at(device, gk_bound(graph, X)), 2);
    discard(graph);
  }
}

/* ---- each kind of task ------------------------------------------------------------------------------------------- */

TEST_ON_CUDA(test_each_kind) {
  LIST(inner, GK_RUN(add, N, X, A), GK_COPY(Y, X, N));
  LIST(list,
    /*  0 */ GK_RUN(add, N, X, A), GK_COPY(Y, X, N), GK_FILL(X, N, 1), GK_CALL(fill_twice, X, BYTE),
    /*  4 */ GK_CALL(nothing, X), GK_INCLUDE(inner, 0, X, Y, N, A),
    /*  6 */ GK_DO_WHILE(LEFT), GK_CALL(fill_twice, X, BYTE), GK_END,
    /*  9 */ GK_WHILE(LEFT), GK_RUN(add, N, X, A), GK_END,
    /* 12 */ GK_IF(FLAG), GK_RUN(add, N, X, A), GK_ELSE, GK_FILL(X, N, 2), GK_END,
    /* 17 */ GK_SWITCH(FLAG), GK_CASE, GK_FILL(X, N, 3), GK_END, GK_CASE, GK_FILL(X, N, 4), GK_END, GK_END,
    /* 25 */ GK_PARALLEL, GK_SECTION, GK_RUN(add, N, X, A), GK_END, GK_SECTION, GK_CALL(fill_twice, Y, BYTE), GK_END,
             GK_END,
    /* 33 */ GK_CALL(fill_twice, X, BYTE), GK_RUN_ALWAYS(add, N, X, A));
  enum { KERNEL, CHILD, CONDITIONAL };
  static const CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_GRAPH,
                                          CU_GRAPH_NODE_TYPE_CONDITIONAL};
  static const struct { size_t task; int type; bool in_body; } wanted[] = {
      {0, KERNEL, 0}, {1, KERNEL, 0}, {2, KERNEL, 0}, {3, CHILD, 0}, {5, KERNEL, 0}, {6, CONDITIONAL, 0},
      {7, CHILD, 1}, {9, CONDITIONAL, 0}, {10, KERNEL, 1}, {12, CONDITIONAL, 0}, {13, KERNEL, 1}, {15, KERNEL, 1},
      {17, CONDITIONAL, 0}, {19, KERNEL, 1}, {22, KERNEL, 1}, {27, KERNEL, 0}, {30, CHILD, 0}, {33, CHILD, 0},
      {34, KERNEL, 0}};
  static const size_t none[] = {4, 8, 16, 24, 25, 26, 28, 32, 35, 1000, SIZE_MAX};
  gk_graph *graph = new_zero_graph(device, &list, 0);
  assert_fails(GK_ERROR_INVALID, "launch it once first", gk_cuda_graph(graph, 0, NULL, NULL));
  run_to_end(graph, 0);
  CUgraphNode seen[GK_COUNT(wanted)];
  for (size_t k = 0; k < GK_COUNT(wanted); ++k) {
    seen[k] = expect(graph, 0, wanted[k].task, types[wanted[k].type], wanted[k].in_body);
    for (size_t other = 0; other < k; ++other) assert_ptr_not_equal(seen[other], seen[k]);
  }
  for (size_t k = 0; k < GK_COUNT(none); ++k) {
    CUgraphNode node = (CUgraphNode)(uintptr_t)1;
    assert_fails(GK_ERROR_INVALID, "has no node", gk_cuda_node(graph, 0, none[k], NULL, &node));
    assert_null(node);
  }
}

TEST_ON_CUDA(test_checkpoints) {
  LIST(list,
    /* 0 */ GK_RUN(add, N, X, A), GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_END,
    /* 4 */ GK_DO_WHILE(LEFT), GK_CHECKPOINT(THERE, FLAG), GK_RUN(add, N, X, A), GK_END, GK_END);
  gk_graph *graph = new_zero_graph(device, &list, 0);
  expect(graph, 0, 1, CU_GRAPH_NODE_TYPE_KERNEL, false);
  expect(graph, HERE, 1, CU_GRAPH_NODE_TYPE_KERNEL, false);
  expect(graph, 0, 5, CU_GRAPH_NODE_TYPE_KERNEL, true);
  expect(graph, THERE, 4, CU_GRAPH_NODE_TYPE_CONDITIONAL, false);
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

TEST_ON_CUDA(test_refused) {
  gk_graph *gated = new_graph(device, &straight, GK_HOST_GATED), *isolated = new_graph(device, &straight, GK_ISOLATE);
  gk_graph *other = new_graph(new_device("openmp", 0), &straight, 0), *graph = graph_on(device, &straight, 0);
  CUgraph whole = (CUgraph)(uintptr_t)1;
  CUgraphNode node = (CUgraphNode)(uintptr_t)1;
  assert_fails(GK_ERROR_UNSUPPORTED, "as the host gates it: GK_HOST_GATED asks for it",
               gk_cuda_graph(gated, 0, &whole, NULL));
  assert_null(whole);
  assert_fails(GK_ERROR_UNSUPPORTED, "as the host gates it: GK_ISOLATE", gk_cuda_node(isolated, 0, 0, NULL, &node));
  assert_null(node);
  assert_fails(GK_ERROR_INVALID, "gk_cuda_graph: the graph is one of backend openmp; give one of a",
               gk_cuda_graph(other, 0, &whole, NULL));
  assert_fails(GK_ERROR_INVALID, "gk_cuda_graph: there is no graph", gk_cuda_graph(NULL, 0, &whole, NULL));
  assert_fails(GK_ERROR_INVALID, "nowhere to put the node", gk_cuda_node(graph, 0, 0, NULL, NULL));
  gk_graph_destroy(graph);
#ifdef GK_DEBUG
  assert_fails(GK_ERROR_INVALID, "gk_cuda_graph: this graph was destroyed", gk_cuda_graph(graph, 0, &whole, NULL));
#endif
}

/* Of a list in a graph of the caller's, the nodes there. */
TEST_ON_CUDA(test_in_a_graph_of_the_callers) {
  LIST(list, GK_RUN(add, N, X, A), GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A), GK_END);
  CUgraph in;
  CUgraphNode last, node;
  gk_graph *graph = NULL;
  enter_context(device);
  const CUgraph mine = new_cu_graph();
  assert_ok(gk_cuda_add(device, &list, 0, mine, NULL, 0, &graph, &last));
  keep(graph, destroy_graph);
  assert_ok(gk_cuda_node(graph, 0, 0, &in, &node));
  assert_ptr_equal(in, mine);
  assert_true(holds(mine, node));
  assert_ok(gk_cuda_node(graph, 0, 2, &in, &node));
  assert_true(holds(in, node) && in != mine);
  assert_fails(GK_ERROR_INVALID, "is in a graph of yours", gk_cuda_graph(graph, 0, &in, NULL));
}

TEST_ON_CUDA(test_each_call_fails) {
  LIST(list, GK_DO_WHILE(LEFT), GK_CHECKPOINT(HERE, FLAG), GK_CALL(fill_twice, X, BYTE), GK_END, GK_RUN(add, N, X, A),
       GK_END);
  FOR_EACH_CALL(k, failed) {
    gk_graph *graph = new_zero_graph(device, &list, 0);
    CUgraphNode node;
    run_to_end(graph, 0);
    const gk_result result = FAILING(k, CUDA_ERROR_UNKNOWN, failed, gk_cuda_node(graph, HERE, 2, NULL, &node));
    assert_true(!failed || result != GK_OK ||
                is_one_of(failed, "cuCtxPopCurrent cuThreadExchangeStreamCaptureMode cuStreamDestroy"));
    assert_int_equal(result == GK_OK, node != NULL);
    assert_ok(gk_cuda_node(graph, HERE, 2, NULL, &node));
    run_to_end(graph, HERE);
    discard(graph);
  }
}

/* A device that is found lost here is lost for all later calls. */
CLEAN(test_lost) {
  gk_graph *graph = new_zero_graph(new_device("cuda", 0), &skipping, 0);
  sim->mark();
  (sim->fail)(4, CUDA_ERROR_ILLEGAL_ADDRESS, SIMGPU_LOST); /* the graph that resumes is being made */
  assert_int_equal(gk_cuda_graph(graph, HERE, NULL, NULL), GK_ERROR_DEVICE);
  sim->mark();
  assert_fails(GK_ERROR_DEVICE, "is lost", gk_launch(graph, 0));
}

int main(UNUSED int count, char **words) { return run_on_simgpu(words); }
