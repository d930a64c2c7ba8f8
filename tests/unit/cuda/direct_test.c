/* The driver's own graph of a list, and the nodes of its tasks, for who wants to look at them or change them. */
#include "user_driver.h"
#include "cuda/gates.h"
#include "unit/support/runtime_kernels.h"

enum { X = 1, Y, N, A, LEFT, FLAG, BYTE, SLOTS };
enum { HERE = 5, THERE };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_BUFFER(Y, int), GK_DEFAULT(N, int, 1), GK_DEFAULT(A, int, 1),
                                     GK_BUFFER(LEFT, int), GK_BUFFER(FLAG, int), GK_DEFAULT(BYTE, int, 3)};

static gk_result two_fills(const gk_value *args, void *native) {
  fill_on(native, args[0].ptr, args[1].i32);
  fill_on(native, args[0].ptr, args[1].i32 + 1);
  return GK_OK;
}

static gk_result nothing(const gk_value *args, void *native) {
  (void)args, (void)native;
  return GK_OK;
}

static gk_graph *bound(gk_device *device, const gk_list *list, uint32_t bits) {
  static const gk_slot pointers[] = {X, Y, LEFT, FLAG};
  gk_graph *graph = graph_on(device, list, bits);
  for (size_t k = 0; k < GK_COUNT(pointers); ++k) gk_bind(graph, pointers[k], int_on(device, 0));
  return graph;
}

static void run(gk_graph *graph, int32_t label) {
  assert_ok(gk_launch(graph, label));
  assert_ok(gk_wait(graph, NULL));
}

static CUgraphNodeType type_of(CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  RIGHT(cu.cuGraphNodeGetType(node, &type));
  return type;
}

static bool holds(CUgraph graph, CUgraphNode node) {
  CUgraphNode nodes[64];
  size_t count = GK_COUNT(nodes);
  RIGHT(cu.cuGraphGetNodes(graph, nodes, &count));
  for (size_t k = 0; k < count; ++k)
    if (nodes[k] == node) return true;
  return false;
}

/* Of that kind, in the graph that is told, and not in the whole one if it is in a body. */
static CUgraphNode expect(gk_graph *graph, int32_t label, size_t task, CUgraphNodeType type, bool in_body) {
  CUgraph whole, in;
  CUgraphNode node;
  assert_ok(gk_cuda_graph(graph, label, &whole, NULL));
  assert_ok(gk_cuda_node(graph, label, task, &in, &node));
  assert_true(holds(in, node));
  assert_int_equal(in != whole, in_body);
  assert_int_equal(type_of(node), type);
  return node;
}

static void has_none(gk_graph *graph, int32_t label, size_t task) {
  CUgraphNode node = (CUgraphNode)(uintptr_t)1;
  assert_fails(GK_ERROR_INVALID, "has no node", gk_cuda_node(graph, label, task, NULL, &node));
  assert_null(node);
}

/* ---- changed by the user ----------------------------------------------------------------------------------------- */

static void change_pattern(gk_device *device, gk_graph *graph, int32_t label, size_t task, uint32_t pattern) {
  CUgraphExec exec;
  CUgraphNode node;
  CUDA_KERNEL_NODE_PARAMS_v1 parameters;
  assert_ok(gk_cuda_graph(graph, label, NULL, &exec));
  assert_ok(gk_cuda_node(graph, label, task, NULL, &node));
  RIGHT(cu.cuGraphKernelNodeGetParams(node, &parameters));
  gki_task given;
  memcpy(&given, parameters.kernelParams[0], sizeof given);
  given.pattern = pattern;
  void *changed[] = {&given};
  parameters.kernelParams = changed;
  CUcontext context;
  assert_ok(gk_cuda_context(device, &context, NULL));
  RIGHT(cu.cuCtxPushCurrent(context));
  RIGHT(cu.cuGraphExecKernelNodeSetParams(exec, node, &parameters));
  RIGHT(cu.cuCtxPopCurrent(NULL));
}

/* A SWITCH made of IF nodes answers the first of them. */
CLEAN(test_switch_of_if_nodes) {
  static const gk_task tasks[] = {GK_SWITCH(FLAG), GK_CASE, GK_FILL(X, N, 3), GK_END, GK_CASE, GK_FILL(X, N, 4), GK_END,
                                  GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  sim->answer_no("P9a");
  gk_device *device = open_named("cuda");
  gk_graph *graph = bound(device, &list, 0);
  const CUgraphNode first = expect(graph, 0, 0, CU_GRAPH_NODE_TYPE_CONDITIONAL, false);
  assert_ptr_equal(expect(graph, 0, 1, CU_GRAPH_NODE_TYPE_CONDITIONAL, false), first);
  assert_ptr_not_equal(expect(graph, 0, 4, CU_GRAPH_NODE_TYPE_CONDITIONAL, false), first);
  gk_graph_destroy(graph);
  gk_device_close(device);
  sim->answer_no(NULL);
}

TEST_ON_CUDA(test_change_a_kernel_node) {
  static const gk_task tasks[] = {GK_FILL(Y, N, 7), GK_DO_WHILE(LEFT), GK_FILL(X, N, 8), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = bound(device, &list, 0);
  run(graph, 0);
  assert_int_equal(int_at(device, gk_bound(graph, X)), 8);
  change_pattern(device, graph, 0, 0, 70);
  change_pattern(device, graph, 0, 2, 80);
  for (int k = 0; k < 2; ++k) {
    run(graph, 0);
    assert_int_equal(int_at(device, gk_bound(graph, Y)), 70);
    assert_int_equal(int_at(device, gk_bound(graph, X)), 80);
    int *other = int_on(device, 0); /* bound anew, it is still the user's */
    gk_bind(graph, Y, other);
  }
  gk_graph_destroy(graph);
}

/* The graph of resumed launches has nodes of its own, and is made when it is asked for. */
TEST_ON_CUDA(test_variants) {
#define THREE GK_FILL(X, N, 1), GK_FILL(X, N, 2), GK_FILL(X, N, 3)
  static const gk_task tasks[] = {THREE, THREE, THREE, GK_FILL(X, N, 1), /* skipped by an IF node around them */
                                  GK_CHECKPOINT(HERE, FLAG), GK_FILL(Y, N, 2), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = bound(device, &list, 0);
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
  change_pattern(device, graph, HERE, 11, 20);
  run(graph, 0);
  assert_int_equal(int_at(device, gk_bound(graph, Y)), 2);
  run(graph, HERE);
  assert_int_equal(int_at(device, gk_bound(graph, Y)), 20);
  assert_fails(GK_ERROR_INVALID, "gk_cuda_graph: graph list has no checkpoint with label 99; it has ",
               gk_cuda_graph(graph, 99, &fresh, &execs[0]));
  assert_null(fresh);
  assert_null(execs[0]);
  gk_graph_destroy(graph);
}

/* Also where launches are on another stream, which has to follow what making it sends. */
TEST_ON_CUDA(test_made_between_launches) {
  static const gk_task tasks[] = {GK_CHECKPOINT(HERE, FLAG), GK_FILL(Y, N, 2), GK_END, GK_CHECKPOINT(THERE, LEFT),
                                  GK_RUN(add, N, X, A), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  CUcontext context;
  CUstream stream;
  assert_ok(gk_cuda_context(device, &context, NULL));
  RIGHT(cu.cuCtxPushCurrent(context));
  for (uint64_t seed = 0; seed < 8; ++seed) {
    sim->set_seed(seed);
    gk_graph *graph = bound(device, &list, 0);
    RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    assert_ok(gk_launch_on(graph, 0, stream));
    assert_ok(gk_wait(graph, NULL));
    assert_ok(gk_cuda_graph(graph, THERE, NULL, NULL));
    assert_ok(gk_launch_on(graph, THERE, stream));
    RIGHT(cu.cuStreamDestroy(stream));
    assert_ok(gk_wait(graph, NULL));
    assert_int_equal(int_at(device, gk_bound(graph, X)), 2);
    gk_graph_destroy(graph);
  }
  RIGHT(cu.cuCtxPopCurrent(NULL));
}

/* ---- each kind of task ------------------------------------------------------------------------------------------- */

TEST_ON_CUDA(test_each_kind) {
  static const gk_task inner_tasks[] = {GK_RUN(add, N, X, A), GK_COPY(Y, X, N)};
  static const gk_list inner = GK_LIST(inner, inner_tasks, slots);
  static const gk_task tasks[] = {
    /*  0 */ GK_RUN(add, N, X, A), GK_COPY(Y, X, N), GK_FILL(X, N, 1), GK_CALL(two_fills, X, BYTE), GK_CALL(nothing, X),
    /*  5 */ GK_INCLUDE(inner, 0, X, Y, N, A),
    /*  6 */ GK_DO_WHILE(LEFT), GK_CALL(two_fills, X, BYTE), GK_END,
    /*  9 */ GK_WHILE(LEFT), GK_RUN(add, N, X, A), GK_END,
    /* 12 */ GK_IF(FLAG), GK_RUN(add, N, X, A), GK_ELSE, GK_FILL(X, N, 2), GK_END,
    /* 17 */ GK_SWITCH(FLAG), GK_CASE, GK_FILL(X, N, 3), GK_END, GK_CASE, GK_FILL(X, N, 4), GK_END, GK_END,
    /* 25 */ GK_PARALLEL, GK_SECTION, GK_RUN(add, N, X, A), GK_END, GK_SECTION, GK_CALL(two_fills, Y, BYTE), GK_END,
             GK_END,
    /* 33 */ GK_CALL(two_fills, X, BYTE),
    /* 34 */ GK_RUN_ALWAYS(add, N, X, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = bound(device, &list, 0);
  assert_fails(GK_ERROR_INVALID, "launch it once first", gk_cuda_graph(graph, 0, NULL, NULL));
  run(graph, 0);
  const CUgraphNodeType kernel = CU_GRAPH_NODE_TYPE_KERNEL, child = CU_GRAPH_NODE_TYPE_GRAPH;
  const CUgraphNodeType conditional = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  static const struct { size_t task; int kind, in_body; } wanted[] = {
    {0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {3, 1, 0}, {5, 0, 0}, {6, 2, 0}, {7, 1, 1}, {9, 2, 0}, {10, 0, 1}, {12, 2, 0},
    {13, 0, 1}, {15, 0, 1}, {17, 2, 0}, {19, 0, 1}, {22, 0, 1}, {27, 0, 0}, {30, 1, 0}, {33, 1, 0}, {34, 0, 0}};
  CUgraphNode seen[GK_COUNT(wanted)];
  for (size_t k = 0; k < GK_COUNT(wanted); ++k) {
    const CUgraphNodeType type = wanted[k].kind == 0 ? kernel : wanted[k].kind == 1 ? child : conditional;
    seen[k] = expect(graph, 0, wanted[k].task, type, wanted[k].in_body);
    for (size_t other = 0; other < k; ++other) assert_ptr_not_equal(seen[other], seen[k]);
  }
  static const size_t none[] = {4, 8, 16, 24, 25, 26, 28, 32, 35, 1000, SIZE_MAX};
  for (size_t k = 0; k < GK_COUNT(none); ++k) has_none(graph, 0, none[k]);
  gk_graph_destroy(graph);
}

TEST_ON_CUDA(test_checkpoints) {
  static const gk_task tasks[] = {
    /* 0 */ GK_RUN(add, N, X, A), GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_END,
    /* 4 */ GK_DO_WHILE(LEFT), GK_CHECKPOINT(THERE, FLAG), GK_RUN(add, N, X, A), GK_END, GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = bound(device, &list, 0);
  expect(graph, 0, 1, CU_GRAPH_NODE_TYPE_KERNEL, false);
  expect(graph, HERE, 1, CU_GRAPH_NODE_TYPE_KERNEL, false);
  expect(graph, 0, 5, CU_GRAPH_NODE_TYPE_KERNEL, true);
  expect(graph, THERE, 4, CU_GRAPH_NODE_TYPE_CONDITIONAL, false);
  gk_graph_destroy(graph);
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

TEST_ON_CUDA(test_refused) {
  gk_device *openmp = open_named("openmp");
  static const gk_task tasks[] = {GK_RUN(add, N, X, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *gated = bound(device, &list, GK_HOST_GATED), *isolated = bound(device, &list, GK_ISOLATE);
  gk_graph *other = graph_on(openmp, &list, 0), *graph = bound(device, &list, 0);
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
  gk_graph_destroy(gated);
  gk_graph_destroy(isolated);
  gk_graph_destroy(other);
  gk_graph_destroy(graph);
#ifdef GK_DEBUG
  assert_fails(GK_ERROR_INVALID, "gk_cuda_graph: this graph was destroyed", gk_cuda_graph(graph, 0, &whole, NULL));
#endif
  gk_device_close(openmp);
}

/* Of a list in a graph of the caller's, the nodes there. */
TEST_ON_CUDA(test_in_a_graph_of_the_callers) {
  static const gk_task tasks[] = {GK_RUN(add, N, X, A), GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  CUcontext context;
  CUgraph mine, in;
  CUgraphNode last, node;
  gk_graph *graph = NULL;
  assert_ok(gk_cuda_context(device, &context, NULL));
  RIGHT(cu.cuCtxPushCurrent(context));
  RIGHT(cu.cuGraphCreate(&mine, 0));
  assert_ok(gk_cuda_add(device, &list, 0, mine, NULL, 0, &graph, &last));
  assert_ok(gk_cuda_node(graph, 0, 0, &in, &node));
  assert_ptr_equal(in, mine);
  assert_true(holds(mine, node));
  assert_ok(gk_cuda_node(graph, 0, 2, &in, &node));
  assert_true(holds(in, node) && in != mine);
  assert_fails(GK_ERROR_INVALID, "is in a graph of yours", gk_cuda_graph(graph, 0, &in, NULL));
  gk_graph_destroy(graph);
  RIGHT(cu.cuGraphDestroy(mine));
  RIGHT(cu.cuCtxPopCurrent(NULL));
}

TEST_ON_CUDA(test_each_call_fails) {
  static const gk_task tasks[] = {GK_DO_WHILE(LEFT), GK_CHECKPOINT(HERE, FLAG), GK_CALL(two_fills, X, BYTE), GK_END,
                                  GK_RUN(add, N, X, A), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  bool over = false;
  for (uint64_t k = 1; !over; ++k) {
    gk_graph *graph = bound(device, &list, 0);
    CUgraphNode node;
    run(graph, 0);
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
    const gk_result result = gk_cuda_node(graph, HERE, 2, NULL, &node);
    over = sim->failed() == NULL;
    assert_true(over || result != GK_OK || strcmp(sim->failed(), "cuCtxPopCurrent") == 0 ||
                strcmp(sim->failed(), "cuThreadExchangeStreamCaptureMode") == 0 ||
                strcmp(sim->failed(), "cuStreamDestroy") == 0);
    assert_int_equal(result == GK_OK, node != NULL);
    sim->mark();
    assert_ok(gk_cuda_node(graph, HERE, 2, NULL, &node));
    run(graph, HERE);
    gk_graph_destroy(graph);
  }
}

/* A device that a look finds lost is lost for all that comes later. */
CLEAN(test_lost) {
  static const gk_task tasks[] = {THREE, THREE, THREE, GK_FILL(X, N, 1), GK_CHECKPOINT(HERE, FLAG), GK_FILL(Y, N, 2),
                                  GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_device *device = open_named("cuda");
  gk_graph *graph = bound(device, &list, 0);
  sim->mark();
  (sim->fail)(4, CUDA_ERROR_ILLEGAL_ADDRESS, SIMGPU_LOST); /* what resumes is being made */
  assert_int_equal(gk_cuda_graph(graph, HERE, NULL, NULL), GK_ERROR_DEVICE);
  sim->mark();
  assert_fails(GK_ERROR_DEVICE, "is lost", gk_launch(graph, 0));
  gk_graph_destroy(graph);
  gk_device_close(device);
}

int main(int count, char **words) {
  (void)count;
  with_simgpu(words);
  return run_all_tests_with(find_user_driver, NULL);
}
