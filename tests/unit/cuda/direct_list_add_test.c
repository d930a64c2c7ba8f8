/* Adding lists to graphs of a program's own: what is refused, failures of the driver, early ends, captures. */
#include "direct_list.h"

/* ---- what is refused --------------------------------------------------------------------------------------------- */

TEST_ON_HAND(test_refused) {
  LIST(calling, GK_RUN(add, N, X, A), GK_CALL(do_nothing, 0));
  LIST(hosting, GK_RUN(add, N, X, A), GK_CALL_HOST(do_nothing, 0));
  world w = world_of(device);
  gk_graph *graph = NULL;
  gk_device *const d = device;
  CUgraphNode last;
  INVALID("gk_cuda_add: there is no device", gk_cuda_add(NULL, &loop, 0, w.whole, NULL, 0, &graph, &last));
  INVALID("backend openmp", gk_cuda_add(new_device("openmp", 0), &loop, 0, w.whole, NULL, 0, &graph, &last));
  INVALID("there is no list", gk_cuda_add(d, NULL, 0, w.whole, NULL, 0, &graph, &last));
  INVALID("nowhere to put", gk_cuda_add(d, &loop, 0, w.whole, NULL, 0, NULL, &last));
  INVALID("nowhere to put", gk_cuda_add(d, &loop, 0, w.whole, NULL, 0, &graph, NULL));
  INVALID("there is no graph", gk_cuda_add(d, &loop, 0, NULL, NULL, 0, &graph, &last));
  INVALID("`after` is NULL", gk_cuda_add(d, &loop, 0, w.whole, NULL, 1, &graph, &last));
  INVALID("after[0] is no node", gk_cuda_add(d, &loop, 0, w.whole, (CUgraphNode[1]){NULL}, 1, &graph, &last));
  INVALID("bits 0x1 can't be asked for here", gk_cuda_add(d, &loop, GK_HOST_GATED, w.whole, NULL, 0, &graph, &last));
  assert_fails(GK_ERROR_UNSUPPORTED, "task 1 (do_nothing) is a library call",
               gk_cuda_add(d, &calling, 0, w.whole, NULL, 0, &graph, &last));
  assert_fails(GK_ERROR_UNSUPPORTED, "task 1 (do_nothing): it is work of the host",
               gk_cuda_add(d, &hosting, 0, w.whole, NULL, 0, &graph, &last));
  assert_null(graph);
  const CUgraph other = new_cu_graph();
  CUgraphNode there = hand_add(other, NULL, "hand_put", w.x, 0);
  INVALID("different ones of that graph", gk_cuda_add(d, &loop, 0, w.whole, &there, 1, &graph, &last));
  w.graph = add_list(device, &w, &loop, 0, NULL, 0);
  w.exec = new_exec(w.whole);
  INVALID("slot", gk_cuda_arm(w.graph, w.exec, 0)); /* nothing is bound */
  bind_world(&w, w.graph);
  INVALID("call gk_cuda_arm and launch your exec", gk_launch(w.graph, 0));
  INVALID("call gk_cuda_arm and launch your exec", gk_launch_on(w.graph, 0, hand_stream));
  INVALID("call gk_poll", gk_wait(w.graph, NULL));
  INVALID("there is no exec", gk_cuda_arm(w.graph, NULL, 0));
  INVALID("there is no graph", gk_cuda_arm(NULL, w.exec, 0));
  INVALID("of the graph that the list was added to", gk_cuda_arm(w.graph, new_exec(other), 0));
  gk_bind_int(w.graph, X, 1); /* a failed bind is told when it counts */
  INVALID("a call before it failed", gk_cuda_arm(w.graph, w.exec, 0));
  assert_int_equal(run_armed(&w, 0)->launch, 1); /* the refused call took no number and lost nothing */
  assert_int_equal(int_at(device, w.x), 3);
  graph = new_graph(device, &loop, 0);
  INVALID("call gk_launch", gk_cuda_arm(graph, w.exec, 0));
  INVALID("gk_cuda_disarm: graph loop is one of gk_graph_create", gk_cuda_disarm(graph));
}

/* The driver may refuse a graph only after some of the list's nodes: that isn't a failure of the device, either. */
TEST_ON_HAND(test_refused_on_the_way) {
  world w = world_of(device);
  gk_cuda_block block;
  assert_ok(gk_cuda_begin(device, GK_OP_IF, w.flag, 0, w.whole, NULL, 0, &block));
  assert_ok(gk_cuda_end(device, &block));
  new_exec(w.whole);
  INVALID("gk_cuda_add: cuGraphAddNode of a conditional node for task 1 (LEFT) of graph loop",
          gk_cuda_add(device, &loop, 0, block.body[0], NULL, 0, &w.graph, &w.last));
  INVALID("the graph must be alive", gk_cuda_add(device, &loop, 0, block.body[0], NULL, 0, &w.graph, &w.last));
}

/* Devices of their own, since what gk finds out about a device is kept. */
TEST_ON_HAND(test_drivers_that_cannot) {
  static const struct { const char *no, *says; } cases[] = {{"P1d", "arming updates a node"},
                                                            {"P1a", "has no conditional nodes for it"}};
  for (int k = 0; k < 2; ++k) {
    gk_graph *graph;
    CUgraphNode last;
    sim->answer_no(cases[k].no);
    assert_fails(GK_ERROR_UNSUPPORTED, cases[k].says,
                 gk_cuda_add(new_device("cuda", k + 1), &loop, 0, new_cu_graph(), NULL, 0, &graph, &last));
    sim->answer_no(NO);
  }
}

/* ---- failures, ends ---------------------------------------------------------------------------------------------- */

static gk_result try_all(gk_device *device, world *w) {
  w->exec = NULL;
  w->graph = NULL;
  gk_result result = gk_cuda_add(device, &yields, GK_CUDA_RESUMABLE, w->whole, NULL, 0, &w->graph, &w->last);
  if (result != GK_OK) return result;
  bind_world(w, w->graph);
  if (cu.cuGraphInstantiateWithFlags(&w->exec, w->whole, 0) != CUDA_SUCCESS) {
    w->exec = NULL;
    return GK_OK;
  }
  for (int k = 0; k < 2 && result == GK_OK; ++k) {
    result = gk_cuda_arm(w->graph, w->exec, k ? THERE : 0);
    if (result != GK_OK) break;
    if (cu.cuGraphLaunch(w->exec, hand_stream) != CUDA_SUCCESS) return GK_OK;
    if (cu.cuStreamSynchronize(hand_stream) != CUDA_SUCCESS) (void)cu.cuStreamSynchronize(hand_stream);
    result = gk_poll(w->graph, NULL);
  }
  return result;
}

TEST_ON_HAND(test_every_call_fails) {
  world w = world_of(device);
  size_t alive = 0;
  const char *failed = "";
  for (uint64_t k = 0; failed; ++k) { /* 0: none, so that kernels are loaded, and stay as long as a graph has them */
    SET_VALUES({w.left, 2}, {w.flag, 1});
    const gk_result result = FAILING(k, CUDA_ERROR_UNKNOWN, failed, try_all(device, &w));
    if (k && !failed && k < 20) fail_msg("only %d calls", (int)k);
    if (!k) failed = "";
    if (result != GK_OK) assert_says("CUDA_ERROR_UNKNOWN");
    if (w.graph && w.exec && result != GK_OK) { /* it works once the driver does */
      set_int(device, w.flag, 0);
      gk_result again = gk_poll(w.graph, NULL);
      if (again == GK_NOT_READY) { /* armed and not launched */
        hand_launch(w.exec);
        again = gk_poll(w.graph, NULL);
      }
      set_int(device, w.left, 2);
      const gk_status *status = run_armed(&w, 0);
      assert_int_equal(status->state, GK_FINISHED);
      assert_int_equal(gk_passes(status, 0), 2);
    }
    if (w.exec) RIGHT(cu.cuGraphExecDestroy(w.exec));
    gk_graph_destroy(w.graph);
    discard(w.whole);
    w.whole = new_cu_graph();
    if (!k) alive = alive_but_memory();
    assert_int_equal(alive_but_memory(), alive);
    assert_int_equal(sim->broken(), 0);
  }
}

TEST_ON_HAND(test_memory_runs_out) {
  for (uint64_t k = 1; k < 40; ++k) {
    const CUgraph whole = new_cu_graph();
    gk_graph *graph = NULL;
    CUgraphNode last;
    fail_call(k, CUDA_ERROR_OUT_OF_MEMORY);
    const gk_result result = gk_cuda_add(device, &loop, 0, whole, NULL, 0, &graph, &last);
    sim->mark();
    if (result == GK_OK) gk_graph_destroy(graph);
    else assert_int_equal(result, GK_ERROR_MEMORY);
    discard(whole);
  }
}

/* No status will come, and the message says that. */
TEST_ON_HAND(test_lost) {
  world w = world_with(device, &loop, 0);
  arm(&w);
  assert_int_equal(gk_poll(w.graph, NULL), GK_NOT_READY);
  driver_is_lost = true;
  (sim->fail)(1, CUDA_ERROR_ILLEGAL_ADDRESS, SIMGPU_LOST);
  assert_int_equal(cu.cuGraphLaunch(w.exec, hand_stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_fails(GK_ERROR_DEVICE, "cuStreamQuery of graph loop", gk_poll(w.graph, NULL));
  assert_fails(GK_ERROR_DEVICE, "is lost", gk_cuda_arm(w.graph, w.exec, 0));
  assert_fails(GK_ERROR_DEVICE, "is lost", gk_cuda_disarm(w.graph));
}

TEST_ON_HAND(test_destroyed_under_way) {
  world w = world_with(device, &loop, 0);
  for (int k = 0; k < 5; ++k) {
    arm(&w);
    RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
  }
}

TEST_ON_HAND(test_device_closed_first) {
  world w = world_with(device, &loop, 0);
  arm(&w);
  RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
  gk_device_close(device);
  *state = NULL;
  assert_fails(GK_ERROR_DEVICE, "was closed", gk_cuda_arm(w.graph, w.exec, 0));
}

/* ---- captures of other code -------------------------------------------------------------------------------------- */

static CUstream begin_capture(bool blocking) {
  CUstream stream;
  RIGHT(cu.cuStreamCreate(&stream, blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
  RIGHT(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  return stream;
}

/* gk waits for the whole context, which a capture forbids. For a blocking stream the driver says that beforehand. */
static void end_capture(CUstream stream, bool blocking) {
  CUgraph captured;
  assert_int_equal(cu.cuStreamEndCapture(stream, &captured),
                   blocking ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (blocking) RIGHT(cu.cuGraphDestroy(captured));
  RIGHT(cu.cuStreamDestroy(stream));
}

TEST_ON_HAND(test_disarmed_while_captured) {
  for (int blocking = 0; blocking < 2; ++blocking) {
    world w = world_with(device, &loop, 0);
    arm(&w);
    const CUstream stream = begin_capture(blocking);
    INVALID("gk_cuda_disarm: a stream of the device's context is being captured", gk_cuda_disarm(w.graph));
    end_capture(stream, blocking);
    assert_ok(gk_cuda_disarm(w.graph));
  }
}

/* A launch may be under way then: the next graph doesn't get its memory. */
TEST_ON_HAND(test_destroyed_while_captured) {
  for (int blocking = 0; blocking < 2; ++blocking) {
    world w = world_with(device, &loop, 0);
    arm(&w);
    sim->hold(1);
    RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
    const CUstream stream = begin_capture(blocking);
    discard(w.graph);
    sim->hold(0);
    end_capture(stream, blocking);
    const size_t before = sim->alive(SIMGPU_MEMORY), pinned_before = sim->alive(SIMGPU_PINNED);
    world other = world_with(device, &loop, 0);
    assert_true(sim->alive(SIMGPU_PINNED) >= pinned_before + 3); /* slots, statuses, tables */
    assert_true(sim->alive(SIMGPU_MEMORY) >= before + 4 + 2); /* what is bound; its state and tables */
    RIGHT(cu.cuStreamSynchronize(hand_stream));
    assert_int_equal(int_at(device, w.x), 3);
    end_world(&other);
  }
}

int main(UNUSED int count, char **words) { return run_added(words); }
