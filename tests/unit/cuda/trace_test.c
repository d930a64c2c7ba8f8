/* Ranges for profilers on the simulated CUDA driver: the parts of making a graph, the host's work in graphs that it
 * gates, and each task by itself. Each range ends, also when a call of the driver fails. */
#include "graphs.h"
#include "hand.h"
#include "unit/support/trace.h"
#include "unit/support/runtime_kernels.h"

#ifdef GK_NVTX
enum { X = 1, A, N, FLAG };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(A, int, 1), GK_BUFFER(N, int), GK_BUFFER(FLAG, int)};
enum { HERE = 10 };

LIST(pausing, GK_RUN(add, GK_ONE, X, A), GK_DO_WHILE(N), GK_RUN(add, GK_ONE, X, A), GK_RUN(decrease, GK_ONE, N), GK_END,
     GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, GK_ONE, X, A), GK_END, GK_RUN_ALWAYS(add, GK_ONE, X, A));

static int *x, *n, *flag;

/* From here on a tool listens. */
static void begin_tracing(gk_device *device) {
  x = int_on(device, 0);
  n = int_on(device, 2);
  flag = int_on(device, 1);
  find_trace_tool();
  tool->forget();
}

/* From the top until it yields, then from there to its end. */
static gk_result run_both(gk_device *device, uint32_t bits, gk_graph **graph) {
  const int none = 0, two = 2, yes = 1;
  gk_result result = gk_graph_create(device, &pausing, bits, graph);
  if (result != GK_OK) return result;
  BIND(*graph, {X, x}, {N, n}, {FLAG, flag});
  result = gk_upload(device, n, &two, sizeof two);
  if (result == GK_OK) result = gk_upload(device, flag, &yes, sizeof yes);
  if (result == GK_OK) result = run_on_stream(*graph, 0, NULL);
  if (result == GK_OK) result = gk_upload(device, flag, &none, sizeof none);
  return result == GK_OK ? run_on_stream(*graph, HERE, NULL) : result;
}

static void run_all(gk_device *device, uint32_t bits) {
  gk_graph *graph = NULL;
  begin_tracing(device);
  assert_ok(run_both(device, bits, &graph));
  ASSERT_VALUES({x, 7});
  assert_balanced();
  gk_graph_destroy(graph);
}

TEST_ON_CUDA(test_native) {
  run_all(device, 0);
  assert_some_said("create pausing{check and plan{}kernel add{compile ");
  assert_some_said("runtime_kernels.h{}}kernel decrease{}lower{build nodes[");
  assert_some_said("launch pausing[1]{start pausing[1]{}}wait for pausing[1]{!pausing yielded at HERE[1];}");
  assert_some_said("launch pausing at HERE[2]{start pausing[2]{}}wait for pausing[2]{}");
}

/* The first launch that resumes makes a graph of the driver's. */
TEST_ON_CUDA(test_second_graph) {
  LIST(list, GK_RUN(add, GK_ONE, X, A), GK_DO_WHILE(N), GK_CHECKPOINT(HERE, FLAG), GK_END, GK_RUN(decrease, GK_ONE, N),
       GK_END);
  begin_tracing(device);
  gk_graph *graph = NEW_GRAPH(device, &list, 0, {X, x}, {N, n}, {FLAG, flag});
  tool->forget();
  run_to_end(graph, 0);
  run_to_end(graph, HERE);
  assert_some_said("launch list[1]{start list[1]{}}wait for list[1]{!list yielded at HERE[1];}");
  assert_some_said("launch list at HERE[2]{start list[2]{build nodes[");
  assert_some_said("]{}instantiate{}}}wait for list[2]");
  assert_balanced();
}

TEST_ON_CUDA(test_gated) {
  run_all(device, GK_HOST_GATED);
  assert_some_said("run pausing[1]{task 0 (add){}tasks 2 (add) to 3 (decrease){}flag of task 1 (N){}"
                   "tasks 2 (add) to 3 (decrease){}flag of task 1 (N){}task 6 (add){}flag of task 5 (HERE){}"
                   "task 8 (add){}wait for the device{}!pausing yielded at HERE[1];}");
  assert_some_said("launch pausing at HERE[2]{}");
  assert_some_said("run pausing[2]{task 6 (add){}flag of task 5 (HERE){}task 8 (add){}wait for the device{}}");
}

TEST_ON_CUDA(test_isolated) {
  run_all(device, GK_ISOLATE);
  assert_some_said("run pausing[1]{task 0 (add){}task 2 (add){}task 3 (decrease){}flag of task 1 (N){}"
                   "task 2 (add){}task 3 (decrease){}flag of task 1 (N){}task 6 (add){}flag of task 5 (HERE){}"
                   "task 8 (add){}wait for the device{}!pausing yielded at HERE[1];}");
}

/* For a launch on a caller's stream, the caller's thread does all of the work. */
TEST_ON_CUDA(test_on_stream) {
  begin_tracing(device);
  gk_graph *graph = NEW_GRAPH(device, &pausing, GK_HOST_GATED, {X, x}, {N, n}, {FLAG, flag});
  tool->forget();
  assert_ok(gk_launch_on(graph, 0, NULL));
  assert_non_null(strstr(tool->said(0), "launch pausing[1]{run pausing[1]{task 0 (add){}"));
  assert_balanced();
}

/* In a graph of the caller's. */
TEST_ON_HAND(test_armed) {
  gk_graph *graph = NULL;
  CUgraphNode last;
  const CUgraph whole = new_cu_graph();
  begin_tracing(device);
  assert_ok(gk_cuda_add(device, &pausing, GK_CUDA_RESUMABLE, whole, NULL, 0, &graph, &last));
  keep(graph, destroy_graph);
  const CUgraphExec exec = new_exec(whole);
  assert_invalid("is not bound", gk_cuda_arm(graph, exec, 0));
  BIND(graph, {X, x}, {N, n}, {FLAG, flag});
  assert_ok(gk_cuda_arm(graph, exec, 0));
  hand_launch(exec);
  assert_ok(gk_poll(graph, NULL));
  assert_ok(gk_cuda_arm(graph, exec, HERE));
  assert_invalid("gk_cuda_arm", gk_launch(graph, 0));
  assert_some_said("lower{build nodes[");
  assert_some_said("}}slots{}}arm pausing[1]{}arm pausing[1]{}!pausing yielded at HERE[1];arm pausing at HERE[2]{}"
                   "launch pausing[3]{}");
  hand_launch(exec);
  assert_ok(gk_poll(graph, NULL));
  discard_all();
  assert_balanced();
}

TEST_ON_CUDA(test_every_call_fails) {
  static const uint32_t ways[] = {0, GK_HOST_GATED, GK_ISOLATE};
  begin_tracing(device);
  for (size_t way = 0; way < GK_COUNT(ways); ++way) {
    const char *failed = "";
    for (uint64_t k = 1; failed; ++k) {
      gk_graph *graph = NULL;
      tool->forget();
      fail_call(k, CUDA_ERROR_UNKNOWN);
      const gk_result result = run_both(device, ways[way], &graph);
      failed = failed_call();
      assert_balanced();
      gk_graph_destroy(graph);
      assert_balanced();
      if (!failed) assert_ok(result);
      assert_true(failed || k > 30);
    }
  }
}

/* A kernel that doesn't compile. */
TEST_ON_CUDA(test_compiling_fails) {
  static const gk_code code = {.text = "extern \"C\" __global__ void wrong(int *x) { x[0] = nobody; }\n",
                               .block = {32}, .per_block = {32}};
  static const gk_param params[] = {{"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT}};
  static const gk_kernel wrong = {.name = "wrong", .params = params, .param_count = 1, .cuda = &code};
  LIST(list, GK_RUN(wrong, GK_ONE, X));
  gk_graph *graph = NULL;
  begin_tracing(device);
  assert_fails(GK_ERROR_COMPILE, "wrong", gk_graph_create(device, &list, 0, &graph));
  assert_said(0, "create list{check and plan{}kernel wrong{compile gk_code.text{}}}");
  assert_balanced();
}

#endif

int main(UNUSED int count, char **words) {
  with_trace_tool();
  return run_on_simgpu(words);
}
