/* Launches on streams of the caller's: work on the stream keeps its order with them, and launches of one graph follow
 * each other on all streams. */
#include "graphs.h"
#include "lists.h"

LIST(once, GK_RUN(apply, N, X, LINE));
LIST(loop, GK_DO_WHILE(LEFT), GK_RUN(apply, N, X, LINE), GK_END); /* LEFT is 0: one pass */
LIST(endless, GK_DO_WHILE(FLAG), GK_RUN(apply, N, X, LINE), GK_END);

static struct {
  gk_device *device;
  CUcontext context;
  CUstream own, streams[3]; /* NULL, the default one, is the last */
  int *x, *left, *flag, *page;
} w;
static int setup_streams(void **state) {
  if (setup_cuda(state) != 0) return -1;
  w.device = *state;
  w.context = enter_context(w.device);
  assert_ok(gk_cuda_context(w.device, NULL, &w.own));
  w.streams[0] = new_stream(), w.streams[1] = new_stream();
  w.x = int_on(w.device, 0), w.left = int_on(w.device, 0), w.flag = int_on(w.device, 0);
  w.page = gk_alloc(w.device, 4 * sizeof *w.page, GK_HOST_MEMORY);
  return 0;
}
#define TEST_ON_STREAMS(test) DEVICE_TEST(test, setup_streams, teardown_cuda)

static void bind_line(gk_graph *graph, int factor, int offset) {
  gk_bind_bytes(graph, LINE, &(line){factor, offset}, sizeof(line));
}
static gk_graph *bound(const gk_list *list, uint32_t bits) {
  gk_graph *graph = NEW_GRAPH(w.device, list, bits, {X, w.x}, {LEFT, w.left}, {FLAG, w.flag});
  bind_line(graph, 1, 1);
  return graph;
}

static const gk_status *end_of(gk_graph *graph) {
  const gk_status *status;
  assert_ok(gk_wait(graph, &status));
  return status;
}

static void fill_often(CUstream stream, const int *memory, int byte) {
  for (int n = 0; n < 20; ++n) fill_on(stream, memory, byte);
}

static void check_order(const gk_list *list, uint32_t bits) {
  gk_graph *graph = bound(list, bits);
  for (uint64_t seed = 0; seed < 6; ++seed)
    for (int k = 0; k < 3; ++k) {
      const CUstream stream = w.streams[k];
      sim->set_seed(seed);
      for (int n = 0; n < 5; ++n) fill_on(stream, w.x, n);
      assert_ok(gk_launch_on(graph, 0, stream));
      RIGHT(cu.cuMemcpyDtoHAsync(w.page, at(w.x), sizeof *w.x, stream));
      fill_on(stream, w.x, 9);
      RIGHT(cu.cuStreamSynchronize(stream));
      assert_int_equal(*w.page, 0x04040405);
      assert_ok(gk_wait(graph, NULL));
      assert_int_equal(int_at(w.device, w.x), 0x09090909);
    }
  discard(graph);
}

TEST_ON_STREAMS(test_order_on_a_stream) {
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    check_order(&once, bits);
    check_order(&loop, bits);
  }
  check_order(&loop, GK_ISOLATE);
}

/* A copy waits for the launches on other streams, also after one that failed to wait. */
TEST_ON_STREAMS(test_wait_for_a_stream_fails) {
  gk_graph *graph = bound(&once, 0);
  const char *failed = "";
  for (uint64_t k = 1; failed && strcmp(failed, "cuStreamWaitEvent") != 0; ++k) {
    assert_ok(gk_launch_on(graph, 0, w.streams[0]));
    fail_call(k, CUDA_ERROR_UNKNOWN);
    (void)gk_upload(w.device, w.flag, &(int){0}, sizeof(int));
    failed = failed_call();
  }
  assert_non_null(failed);
  sim->mark();
  set_int(w.device, w.flag, 0);
  assert_int_equal(sim->calls("cuStreamWaitEvent"), 1);
}

/* No wait between the launches, each has a struct of its own, and the result shows the order. */
static void check_one_after_the_other(const gk_list *list, uint64_t seed) {
  gk_graph *graph = bound(list, 0);
  uint64_t random = seed;
  int wanted = 1;
  set_int(w.device, w.x, wanted);
  sim->set_seed(seed);
  for (int k = 0; k < 14; ++k) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const unsigned where = (unsigned)(random >> 60) % 5;
    const int factor = (int)(random >> 40) % 3 + 1;
    bind_line(graph, factor, k);
    wanted = wanted * factor + k;
    if (where == 4) assert_ok(gk_launch(graph, 0));
    else assert_ok(gk_launch_on(graph, 0, where == 3 ? w.own : w.streams[where]));
  }
  if (seed % 2) assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(w.device, w.x), wanted); /* a download waits for all of them */
  assert_ok(gk_wait(graph, NULL));
  discard(graph);
}

TEST_ON_STREAMS(test_one_after_the_other) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    check_one_after_the_other(&once, seed);
    check_one_after_the_other(&loop, seed);
  }
}

/* One graph yields, the other resumes, each on another stream. */
TEST_ON_STREAMS(test_resumed_on_another) {
  LIST(list, GK_DO_WHILE(LEFT), GK_RUN(apply, N, X, LINE), GK_CHECKPOINT(HERE, FLAG), GK_RUN(apply, N, X, LINE),
       GK_END, GK_RUN(decrease, GK_ONE, LEFT), GK_END);
  gk_graph *graph = bound(&list, 0);
  for (int k = 0; k < 9; ++k) {
    SET_VALUES({w.x, 0}, {w.left, 3}, {w.flag, 1});
    assert_ok(gk_launch_on(graph, 0, w.streams[k % 3]));
    assert_int_equal(gk_launch_on(graph, 0, w.streams[k % 3]), GK_ERROR_BUSY);
    assert_int_equal(end_of(graph)->yielded, HERE);
    fill_on(w.streams[k / 3], w.flag, 0);
    assert_ok(gk_launch_on(graph, HERE, w.streams[k / 3]));
    assert_int_equal(end_of(graph)->state, GK_FINISHED);
    ASSERT_VALUES({w.x, 7});
  }
}

TEST_ON_STREAMS(test_recorded_again) {
  LIST(list, GK_CALL(fill_bytes, X, BYTE), GK_RUN(apply, N, X, LINE));
  gk_graph *graph = bound(&list, 0);
  for (int k = 0; k < 12; ++k) {
    gk_bind_int(graph, BYTE, k);
    assert_ok(gk_launch_on(graph, 0, w.streams[k % 3]));
    if (k % 2) continue;
    assert_int_equal(end_of(graph)->applied, k ? GK_BY_RECORDING : GK_BY_TABLE);
    ASSERT_VALUES({w.x, 0x01010101 * k + 1});
  }
}

/* Copying, resizing and freeing memory waits for launches on other streams. */
TEST_ON_STREAMS(test_memory_follows) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    gk_graph *graph = bound(seed % 2 ? &once : &loop, 0);
    int *more = int_on(device, 3);
    sim->set_seed(seed);
    gk_bind(graph, X, more);
    fill_often(w.streams[0], more, 1);
    assert_ok(gk_launch_on(graph, 0, w.streams[0]));
    ASSERT_VALUES({more, 0x01010102});
    assert_ok(gk_resize(graph, X, 1));
    fill_often(w.streams[1], gk_bound(graph, X), 2);
    assert_ok(gk_launch_on(graph, 0, w.streams[1]));
    assert_ok(gk_resize(graph, X, 2)); /* keeps what the launch makes of it */
    ASSERT_VALUES({gk_bound(graph, X), 0x02020203});
    gk_bind(graph, X, more);
    fill_often(w.streams[0], more, 3);
    assert_ok(gk_launch_on(graph, 0, w.streams[0]));
    gk_free(device, more);
    assert_ok(gk_wait(graph, NULL));
    discard(graph);
  }
}

/* Other launches are still waited for when one is launched on the device's own stream again, or destroyed. */
TEST_ON_STREAMS(test_memory_follows_each) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    gk_graph *graphs[3];
    int *memory[3];
    const uint64_t leaves = seed % 3;
    const bool is_destroyed = seed % 2;
    for (uint64_t k = 0; k < 3; ++k) {
      graphs[k] = bound(seed / 3 % 2 ? &once : &loop, 0);
      gk_bind(graphs[k], X, memory[k] = int_on(device, 0));
    }
    sim->set_seed(seed);
    for (uint64_t k = 0; k < 3; ++k) {
      fill_often(w.streams[k == leaves], memory[k], 1);
      assert_ok(gk_launch_on(graphs[k], 0, w.streams[k == leaves]));
    }
    if (is_destroyed) discard(graphs[leaves]);
    else assert_ok(gk_launch(graphs[leaves], 0));
    for (uint64_t k = 0; k < 3; ++k) ASSERT_VALUES({memory[k], 0x01010102 + (k == leaves && !is_destroyed)});
    for (uint64_t k = 0; k < 3; ++k)
      if (k != leaves || !is_destroyed) discard(graphs[k]);
  }
}

/* Nothing stays on the caller's stream of a launch that failed: else it would run in the middle of the next one. */
TEST_ON_STREAMS(test_failed_launch_leaves_nothing) {
  const int *more = int_on(device, 0);
  for (uint64_t seed = 0; seed < 24; ++seed) {
    gk_graph *graph = bound(seed % 2 ? &once : &loop, 0);
    run_to_end(graph, 0);
    sim->set_seed(seed);
    bool refused = false;
    for (uint64_t k = 1; !refused; ++k) {
      for (int n = 0; n < 20; ++n) fill_on(w.streams[0], more, n);
      bind_line(graph, 0, 5);
      fail_call(k, CUDA_ERROR_OUT_OF_MEMORY);
      const gk_result result = gk_launch_on(graph, 0, w.streams[0]);
      const char *failed = failed_call();
      assert_non_null(failed);
      refused = strcmp(failed, "cuGraphLaunch") == 0;
      if (result == GK_OK) (void)gk_wait(graph, NULL);
      bind_line(graph, 0, 7);
      run_to_end(graph, 0);
      ASSERT_VALUES({w.x, 7});
    }
    discard(graph);
  }
}

/* After the call returned, the stream is the caller's alone, and can be destroyed or captured while the launch runs. */
TEST_ON_STREAMS(test_stream_is_left_alone) {
  for (int k = 0; k < 4; ++k) {
    gk_graph *graph = bound(k % 2 ? &once : &loop, 0);
    const CUstream stream = new_stream();
    set_int(device, w.x, 0);
    sim->hold(1);
    assert_ok(gk_launch_on(graph, 0, w.streams[0]));
    assert_ok(gk_launch_on(graph, 0, stream));
    discard(stream);
    assert_int_equal(gk_poll(graph, NULL), GK_NOT_READY);
    if (k < 2) assert_ok(gk_launch(graph, 0));
    RIGHT(cu.cuStreamBeginCapture(w.streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
    sim->hold(0);
    assert_ok(gk_wait(graph, NULL));
    ASSERT_VALUES({w.x, k < 2 ? 3 : 2});
    end_empty_capture(w.streams[0]);
    if (k < 2) assert_ok(gk_launch_on(graph, 0, w.streams[1]));
    discard(graph); /* waits */
  }
}

/* Work on the first stream waits for the work on the other one. */
static void let_follow(CUstream stream, CUstream other) {
  CUevent event;
  RIGHT(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  RIGHT(cu.cuEventRecord(event, other));
  RIGHT(cu.cuStreamWaitEvent(stream, event, 0));
  RIGHT(cu.cuEventDestroy(event));
}

/* A wait for a launch doesn't wait for work behind it, which may itself depend on the waiting thread. */
TEST_ON_STREAMS(test_wait_for_the_launch_alone) {
  sim->set_passes(UINT64_MAX);
  for (int k = 0; k < 2; ++k) {
    gk_graph *graph = bound(k ? &once : &loop, 0), *forever = bound(&endless, GK_CANCELLABLE);
    set_int(device, w.flag, 1);
    assert_ok(gk_launch_on(graph, 0, w.streams[0]));
    let_follow(w.streams[1], w.streams[0]);
    assert_ok(gk_launch_on(forever, 0, w.streams[1]));
    let_follow(w.streams[0], w.streams[1]);
    assert_ok(gk_wait(graph, NULL));
    assert_int_equal(gk_poll(forever, NULL), GK_NOT_READY);
    assert_ok(gk_cancel(forever));
    assert_ok(gk_wait(forever, NULL));
    discard(forever);
    discard(graph);
    RIGHT(cu.cuStreamSynchronize(w.streams[0]));
  }
}

static void launch_unknown(gk_graph *graph, CUstream stream, bool unknown) {
  fail_call(unknown ? 3 : 0, CUDA_ERROR_UNKNOWN); /* as before CUDA 12.0, which has no cuStreamGetId */
  assert_ok(gk_launch_on(graph, 0, stream));
  if (unknown) assert_string_equal(sim->failed(), "cuStreamGetId");
}

/* A new stream may have the handle of the one before: the launch there still comes behind the one on that. */
static void check_handle_given_again(const gk_list *list, uint32_t bits, uint64_t seed) {
  gk_graph *graph = bound(list, bits);
  sim->set_seed(seed);
  set_int(w.device, w.x, 1);
  const CUstream first = new_stream();
  if (!bits) sim->hold(1);
  for (int n = 0; n < 5; ++n) fill_on(first, w.x, 0);
  launch_unknown(graph, first, seed % 2);
  discard(first);
  const CUstream second = new_stream();
  assert_ptr_equal(second, first);
  bind_line(graph, 3, 2);
  launch_unknown(graph, second, seed % 2);
  sim->hold(0);
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(w.device, w.x), 5);
  discard(second);
  discard(graph);
}

TEST_ON_STREAMS(test_handle_given_again) {
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    check_handle_given_again(&loop, 0, seed);
    check_handle_given_again(&once, 0, seed);
    check_handle_given_again(&loop, GK_HOST_GATED, seed);
  }
}

/* The new stream may also be in another context. */
TEST_ON_STREAMS(test_handle_given_again_elsewhere) {
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    gk_graph *graph = bound(&loop, bits);
    CUcontext other;
    const CUstream first = new_stream();
    assert_ok(gk_launch_on(graph, 0, first));
    assert_ok(gk_wait(graph, NULL));
    discard(first);
    RIGHT(cu.cuCtxCreate(&other, 0, 0));
    const CUstream second = new_stream();
    assert_ptr_equal(second, first);
    assert_invalid("belongs to another context", gk_launch_on(graph, 0, second));
    discard(second);
    RIGHT(cu.cuCtxDestroy(other));
  }
}

TEST_ON_STREAMS(test_captured_is_refused) {
  for (uint32_t k = 0; k < 4; ++k) {
    gk_graph *graph = bound(k % 2 ? &once : &loop, k / 2 ? GK_HOST_GATED : 0);
    set_int(device, w.x, 1);
    RIGHT(cu.cuStreamBeginCapture(w.streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_invalid("the stream is being captured", gk_launch_on(graph, 0, w.streams[0]));
    assert_invalid("was not launched yet", gk_wait(graph, NULL));
    end_empty_capture(w.streams[0]);
    assert_ok(gk_launch_on(graph, 0, w.streams[0])); /* with all that was bound before */
    assert_int_equal(end_of(graph)->launch, 1);
    ASSERT_VALUES({w.x, 2});
  }
}

/* The default stream would wait for the one that is captured. */
TEST_ON_STREAMS(test_default_stream_while_captured) {
  CUstream blocking;
  RIGHT(cu.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    gk_graph *graph = bound(&loop, bits);
    assert_ok(gk_launch_on(graph, 0, NULL));
    RIGHT(cu.cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_ok(gk_wait(graph, NULL));
    assert_invalid("the default stream can't be used while a stream is captured that waits for it",
                 gk_launch_on(graph, 0, NULL));
    assert_ok(run_on_stream(graph, 0, w.streams[0]));
    discard(graph);
    end_empty_capture(blocking);
  }
  RIGHT(cu.cuStreamDestroy(blocking));
}

TEST_ON_STREAMS(test_other_context_is_refused) {
  CUcontext other;
  RIGHT(cu.cuCtxCreate(&other, 0, 0));
  const CUstream stream = new_stream();
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    gk_graph *graph = bound(&once, bits);
    assert_invalid("belongs to another context than the device's", gk_launch_on(graph, 0, stream));
    assert_ok(gk_launch_on(graph, 0, NULL)); /* of the device's context, not of the current one */
    assert_ok(gk_wait(graph, NULL));
  }
  discard(stream);
  RIGHT(cu.cuCtxDestroy(other));
}

/* A launch on another stream waits for queued launches of its own graph, but not for those of others. */
TEST_ON_STREAMS(test_line_of_work) {
  sim->set_passes(UINT64_MAX);
  gk_graph *forever = bound(&endless, GK_CANCELLABLE | GK_HOST_GATED), *graph = bound(&once, 0);
  gk_graph *other = bound(&once, 0);
  int *mine = int_on(device, 5);
  gk_bind(other, X, mine);
  set_int(device, w.flag, 1);
  assert_ok(gk_launch(forever, 0));
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_BUSY, "waits for other work of the device", gk_launch_on(graph, 0, w.streams[0]));
  assert_ok(gk_launch_on(other, 0, w.streams[0]));
  RIGHT(cu.cuMemcpyDtoHAsync(w.page, at(mine), sizeof *mine, w.streams[0]));
  RIGHT(cu.cuStreamSynchronize(w.streams[0]));
  assert_int_equal(*w.page, 6);
  assert_ok(gk_wait(other, NULL));
  assert_ok(gk_cancel(forever));
  assert_ok(gk_wait(graph, NULL));
  assert_ok(gk_launch_on(graph, 0, w.streams[0]));
}

static simgpu_counts counts_on(gk_graph *graph, bool on_stream, CUstream stream) {
  for (int k = 0; k < 2; ++k) {
    sim->mark();
    assert_ok(on_stream ? gk_launch_on(graph, 0, stream) : gk_launch(graph, 0));
    if (!k) assert_ok(gk_wait(graph, NULL));
  }
  const simgpu_counts counts = sim->counts();
  assert_ok(gk_wait(graph, NULL));
  return counts;
}

/* If the context is current, as in a program that uses CUDA itself, gk asks: is it current, is the stream captured,
 * and, except for the default stream, which one is it; then come the launch, and the event behind it. */
TEST_ON_STREAMS(test_counts) {
  for (int k = 0; k < 2; ++k) {
    gk_graph *graph = bound(k ? &once : &loop, 0);
    const simgpu_counts own = counts_on(graph, false, NULL), there = counts_on(graph, true, w.streams[0]);
    assert_int_equal(own.calls, k ? 5 : 4); /* the test knows that stream, so it might be captured */
    assert_int_equal(there.calls, 5);
    assert_int_equal(there.launches, 1);
    assert_int_equal(there.copies + there.waits + there.memory, 0);
    assert_int_equal(counts_on(graph, true, NULL).calls, 4);
    RIGHT(cu.cuCtxPopCurrent(NULL));
    assert_int_equal(counts_on(graph, true, w.streams[0]).calls, 7); /* the context comes and goes */
    RIGHT(cu.cuCtxPushCurrent(w.context));
    sim->mark();
    bind_line(graph, 1, 2);
    assert_ok(gk_launch_on(graph, 0, w.streams[0]));
    assert_int_equal(sim->counts().calls, 6);
    assert_int_equal(sim->counts().copies, 1);
    assert_int_equal(sim->counts().pageable, 0);
    assert_ok(gk_wait(graph, NULL));
    discard(graph);
  }
}

/* Each call fails in turn. Nothing is left, nothing hangs, and the next launch is right. */
TEST_ON_STREAMS(test_each_call_fails) {
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits)
    for (uint64_t k = 1, over = 0; !over; ++k) {
      gk_graph *graph = bound(k % 2 ? &once : &loop, bits);
      assert_ok(gk_launch_on(graph, 0, w.streams[0]));
      fail_call((k + 1) / 2, CUDA_ERROR_UNKNOWN);
      const gk_result result = run_on_stream(graph, 0, w.streams[1]);
      over = failed_call() == NULL;
      if (over) assert_int_equal(result, GK_OK);
      if (result != GK_OK) assert_true(result == GK_ERROR_DEVICE && gk_error()[0]);
      (void)gk_wait(graph, NULL);
      set_int(device, w.x, 0);
      assert_ok(run_on_stream(graph, 0, w.streams[0]));
      ASSERT_VALUES({w.x, 1});
      discard(graph);
    }
}

/* The thread's own context and capture mode, which it can have without a device. Any of these calls may fail. */
static void expect_own(CUcontext mine) {
  CUcontext popped = NULL;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  (void)cu.cuCtxPopCurrent(&popped);
  assert_ptr_equal(popped, mine);
  if (cu.cuCtxPushCurrent(mine) != CUDA_SUCCESS) RIGHT(cu.cuCtxPushCurrent(mine));
  (void)cu.cuThreadExchangeStreamCaptureMode(&mode);
  assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* At any call that loses the device, the thread's context stays, and launches answer with the first failure. */
static bool check_lost_at(uint64_t k, uint32_t bits, CUcontext mine, CUstream stream) {
  gk_device *device = open_named("cuda");
  gk_graph *graph = graph_on(device, &loop, bits), *more = NULL;
  int *x = int_on(device, 0), *left = int_on(device, 0), value = 0;
  BIND(graph, {X, x}, {LEFT, left});
  bind_line(graph, 1, 1);
  sim->mark();
  (sim->fail)(k, CUDA_ERROR_ILLEGAL_ADDRESS, SIMGPU_LOST);
#define STEP(call) \
  do { \
    const gk_result result_ = (call); \
    assert_true(result_ == GK_OK || sim->failed()); \
    lost = lost || result_ == GK_ERROR_DEVICE; \
    expect_own(mine); \
  } while (0)
  bool lost = false;
  STEP(gk_launch_on(graph, 0, stream));
  STEP(gk_wait(graph, NULL));
  STEP(gk_launch(graph, 0));
  STEP(gk_wait(graph, NULL));
  STEP(gk_upload(device, x, &value, sizeof value));
  STEP(gk_graph_create(device, &once, bits, &more));
  const bool over = !sim->failed();
  if (lost) assert_fails(GK_ERROR_DEVICE, "is lost; close it", gk_launch(graph, 0));
  if (lost) assert_says("It began with: ");
  gk_graph_destroy(more);
  gk_graph_destroy(graph);
  expect_own(mine);
  sim->mark();
  gk_device_close(device);
  expect_own(mine);
  return over;
}

TEST_ON_STREAMS(test_lost_at_any_call) {
  CUcontext mine;
  RIGHT(cu.cuCtxCreate(&mine, 0, 0));
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits)
    for (uint64_t k = 1; !check_lost_at(k, bits, mine, w.streams[0]); ++k) {}
  RIGHT(cu.cuCtxDestroy(mine));
}

int main(UNUSED int count, char **words) { return run_on_simgpu(words); }
