/* Launches on streams of the caller's: what comes before and behind them there, and that of one graph follow each
 * other on whatever streams. */
#include "user_driver.h"
#include "unit/support/runtime_kernels.h"

enum { X = 1, N, LINE, LEFT, FLAG, BYTE, SLOTS };
enum { HERE = 5 };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(N, int, 1), GK_STRUCT_VALUE(LINE, line),
                                     GK_BUFFER(LEFT, int), GK_BUFFER(FLAG, int), GK_DEFAULT(BYTE, int, 1)};
static const gk_task straight_tasks[] = {GK_RUN(apply, N, X, LINE)};
static const gk_list straight = GK_LIST(straight, straight_tasks, slots);
static const gk_task looping_tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(apply, N, X, LINE), GK_END}; /* 0: one pass */
static const gk_list looping = GK_LIST(looping, looping_tasks, slots);
static const gk_task endless_tasks[] = {GK_DO_WHILE(FLAG), GK_RUN(apply, N, X, LINE), GK_END};
static const gk_list endless = GK_LIST(endless, endless_tasks, slots);

typedef struct world {
  gk_device *device;
  CUcontext context;
  CUstream own, streams[3]; /* NULL, the default one, is the last */
  int *x, *left, *flag, *page;
} world;

static world *begin_world(gk_device *device) {
  static world w;
  w = (world){.device = device};
  assert_ok(gk_cuda_context(w.device, &w.context, &w.own));
  RIGHT(cu.cuCtxPushCurrent(w.context));
  for (int k = 0; k < 2; ++k) RIGHT(cu.cuStreamCreate(&w.streams[k], CU_STREAM_NON_BLOCKING));
  w.x = int_on(w.device, 0);
  w.left = int_on(w.device, 0);
  w.flag = int_on(w.device, 0);
  w.page = gk_alloc(w.device, 4 * sizeof *w.page, GK_HOST_MEMORY);
  return &w;
}

static void end_world(world *w) {
  for (int k = 0; k < 2; ++k)
    if (w->streams[k]) RIGHT(cu.cuStreamDestroy(w->streams[k]));
  RIGHT(cu.cuCtxPopCurrent(NULL));
}

static gk_graph *bound(const world *w, const gk_list *list, uint32_t bits) {
  gk_graph *graph = graph_on(w->device, list, bits);
  gk_bind(graph, X, w->x);
  gk_bind(graph, LEFT, w->left);
  gk_bind(graph, FLAG, w->flag);
  gk_bind_bytes(graph, LINE, &(line){1, 1}, sizeof(line));
  return graph;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

static void check_order(const world *w, const gk_list *list, uint32_t bits) {
  gk_graph *graph = bound(w, list, bits);
  for (uint64_t seed = 0; seed < 6; ++seed)
    for (int k = 0; k < 3; ++k) {
      const CUstream stream = w->streams[k];
      sim->set_seed(seed);
      for (int n = 0; n < 5; ++n) fill_on(stream, w->x, n);
      assert_ok(gk_launch_on(graph, 0, stream));
      RIGHT(cu.cuMemcpyDtoHAsync(w->page, at(w->x), sizeof *w->x, stream));
      fill_on(stream, w->x, 9);
      RIGHT(cu.cuStreamSynchronize(stream));
      assert_int_equal(*w->page, 0x04040405);
      assert_ok(gk_wait(graph, NULL));
      assert_int_equal(int_at(w->device, w->x), 0x09090909);
    }
  gk_graph_destroy(graph);
}

TEST_ON_CUDA(test_order_on_a_stream) {
  world *w = begin_world(device);
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    check_order(w, &straight, bits);
    check_order(w, &looping, bits);
  }
  check_order(w, &looping, GK_ISOLATE);
  end_world(w);
}

/* The launches aren't waited for in between, each has a struct of its own, and the order is told by the result. */
static void check_one_after_the_other(const world *w, const gk_list *list, uint64_t seed) {
  gk_graph *graph = bound(w, list, 0);
  uint64_t random = seed;
  int wanted = 1;
  set_int(w->device, w->x, wanted);
  sim->set_seed(seed);
  for (int k = 0; k < 14; ++k) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const unsigned where = (unsigned)(random >> 60) % 5;
    const line now = {(int)(random >> 40) % 3 + 1, k};
    gk_bind_bytes(graph, LINE, &now, sizeof now);
    wanted = wanted * now.factor + now.offset;
    if (where == 4) assert_ok(gk_launch(graph, 0));
    else assert_ok(gk_launch_on(graph, 0, where == 3 ? w->own : w->streams[where]));
  }
  if (seed % 2) assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(w->device, w->x), wanted); /* a download follows them all */
  assert_ok(gk_wait(graph, NULL));
  gk_graph_destroy(graph);
}

TEST_ON_CUDA(test_one_after_the_other) {
  world *w = begin_world(device);
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    check_one_after_the_other(w, &straight, seed);
    check_one_after_the_other(w, &looping, seed);
  }
  end_world(w);
}

/* The one graph yields, the other resumes, each on another stream. */
TEST_ON_CUDA(test_resumed_on_another) {
  world *w = begin_world(device);
  static const gk_task tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(apply, N, X, LINE), GK_CHECKPOINT(HERE, FLAG),
                                  GK_RUN(apply, N, X, LINE), GK_END, GK_RUN(decrease, GK_ONE, LEFT), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = bound(w, &list, 0);
  for (int k = 0; k < 9; ++k) {
    const gk_status *status;
    set_int(w->device, w->x, 0);
    set_int(w->device, w->left, 3);
    set_int(w->device, w->flag, 1);
    assert_ok(gk_launch_on(graph, 0, w->streams[k % 3]));
    assert_int_equal(gk_launch_on(graph, 0, w->streams[k % 3]), GK_ERROR_BUSY);
    assert_ok(gk_wait(graph, &status));
    assert_int_equal(status->yielded, HERE);
    fill_on(w->streams[k / 3], w->flag, 0);
    assert_ok(gk_launch_on(graph, HERE, w->streams[k / 3]));
    assert_ok(gk_wait(graph, &status));
    assert_int_equal(status->state, GK_FINISHED);
    assert_int_equal(int_at(w->device, w->x), 7);
  }
  gk_graph_destroy(graph);
  end_world(w);
}

static gk_result fill_bytes(const gk_value *args, void *native) {
  fill_on(native, args[0].ptr, args[1].i32);
  return GK_OK;
}

TEST_ON_CUDA(test_recorded_again) {
  world *w = begin_world(device);
  static const gk_task tasks[] = {GK_CALL(fill_bytes, X, BYTE), GK_RUN(apply, N, X, LINE)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = bound(w, &list, 0);
  for (int k = 0; k < 12; ++k) {
    const gk_status *status;
    gk_bind_int(graph, BYTE, k);
    assert_ok(gk_launch_on(graph, 0, w->streams[k % 3]));
    if (k % 2) continue;
    assert_ok(gk_wait(graph, &status));
    assert_int_equal(status->applied, k ? GK_BY_RECORDING : GK_BY_TABLE);
    assert_int_equal(int_at(w->device, w->x), 0x01010101 * k + 1);
  }
  gk_graph_destroy(graph);
  end_world(w);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* What is copied, resized or freed is so behind launches on other streams. */
TEST_ON_CUDA(test_memory_follows) {
  world *w = begin_world(device);
  for (uint64_t seed = 0; seed < 12; ++seed) {
    gk_graph *graph = bound(w, seed % 2 ? &straight : &looping, 0);
    int *more = int_on(w->device, 3);
    sim->set_seed(seed);
    gk_bind(graph, X, more);
    for (int n = 0; n < 20; ++n) fill_on(w->streams[0], more, 1);
    assert_ok(gk_launch_on(graph, 0, w->streams[0]));
    assert_int_equal(int_at(w->device, more), 0x01010102);
    assert_ok(gk_resize(graph, X, 1));
    for (int n = 0; n < 20; ++n) fill_on(w->streams[1], gk_bound(graph, X), 2);
    assert_ok(gk_launch_on(graph, 0, w->streams[1]));
    assert_ok(gk_resize(graph, X, 2)); /* keeps what the launch makes of it */
    assert_int_equal(int_at(w->device, gk_bound(graph, X)), 0x02020203);
    gk_bind(graph, X, more);
    for (int n = 0; n < 20; ++n) fill_on(w->streams[0], more, 3);
    assert_ok(gk_launch_on(graph, 0, w->streams[0]));
    gk_free(w->device, more);
    assert_ok(gk_wait(graph, NULL));
    gk_graph_destroy(graph);
  }
  end_world(w);
}

/* One that is launched on the device's own stream again, or destroyed, leaves the others to be followed. */
TEST_ON_CUDA(test_memory_follows_each) {
  world *w = begin_world(device);
  for (uint64_t seed = 0; seed < 24; ++seed) {
    gk_graph *graphs[3];
    int *memory[3];
    const uint64_t leaves = seed % 3;
    for (uint64_t k = 0; k < 3; ++k) {
      graphs[k] = bound(w, seed / 3 % 2 ? &straight : &looping, 0);
      memory[k] = int_on(w->device, 0);
      gk_bind(graphs[k], X, memory[k]);
    }
    sim->set_seed(seed);
    for (uint64_t k = 0; k < 3; ++k) {
      const CUstream stream = w->streams[k == leaves];
      for (int n = 0; n < 20; ++n) fill_on(stream, memory[k], 1);
      assert_ok(gk_launch_on(graphs[k], 0, stream));
    }
    if (seed % 2) gk_graph_destroy(graphs[leaves]);
    else assert_ok(gk_launch(graphs[leaves], 0));
    for (uint64_t k = 0; k < 3; ++k)
      assert_int_equal(int_at(w->device, memory[k]), 0x01010102 + (k == leaves && seed % 2 == 0));
    for (uint64_t k = 0; k < 3; ++k)
      if (k != leaves || seed % 2 == 0) gk_graph_destroy(graphs[k]);
  }
  end_world(w);
}

/* What a launch put on the caller's stream before it failed there isn't on its way any more: it would come in the
 * middle of the next one. */
TEST_ON_CUDA(test_failed_launch_leaves_nothing) {
  world *w = begin_world(device);
  int *more = int_on(w->device, 0);
  for (uint64_t seed = 0; seed < 24; ++seed) {
    gk_graph *graph = bound(w, seed % 2 ? &straight : &looping, 0);
    assert_ok(gk_launch(graph, 0));
    assert_ok(gk_wait(graph, NULL));
    sim->set_seed(seed);
    bool refused = false;
    for (uint64_t k = 1; !refused; ++k) {
      for (int n = 0; n < 20; ++n) fill_on(w->streams[0], more, n);
      gk_bind_bytes(graph, LINE, &(line){0, 5}, sizeof(line));
      sim->mark();
      (sim->fail)(k, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
      const gk_result result = gk_launch_on(graph, 0, w->streams[0]);
      assert_non_null(sim->failed());
      refused = strcmp(sim->failed(), "cuGraphLaunch") == 0;
      sim->mark();
      if (result == GK_OK) (void)gk_wait(graph, NULL);
      gk_bind_bytes(graph, LINE, &(line){0, 7}, sizeof(line));
      assert_ok(gk_launch(graph, 0));
      assert_ok(gk_wait(graph, NULL));
      assert_int_equal(int_at(w->device, w->x), 7);
    }
    gk_graph_destroy(graph);
  }
  end_world(w);
}

/* ---- whose the stream is ----------------------------------------------------------------------------------------- */

/* From the call's return on it is the caller's alone: he may destroy or capture it while the launch is under way. */
TEST_ON_CUDA(test_stream_is_left_alone) {
  world *w = begin_world(device);
  for (int k = 0; k < 4; ++k) {
    gk_graph *graph = bound(w, k % 2 ? &straight : &looping, 0);
    CUstream stream;
    CUgraph captured;
    RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    set_int(w->device, w->x, 0);
    sim->hold(1);
    assert_ok(gk_launch_on(graph, 0, w->streams[0]));
    assert_ok(gk_launch_on(graph, 0, stream));
    RIGHT(cu.cuStreamDestroy(stream));
    assert_int_equal(gk_poll(graph, NULL), GK_NOT_READY);
    if (k < 2) assert_ok(gk_launch(graph, 0));
    RIGHT(cu.cuStreamBeginCapture(w->streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
    sim->hold(0);
    assert_ok(gk_wait(graph, NULL));
    assert_int_equal(int_at(w->device, w->x), k < 2 ? 3 : 2);
    RIGHT(cu.cuStreamEndCapture(w->streams[0], &captured));
    RIGHT(cu.cuGraphDestroy(captured));
    if (k < 2) assert_ok(gk_launch_on(graph, 0, w->streams[1]));
    gk_graph_destroy(graph); /* waits */
  }
  end_world(w);
}

/* Work that comes behind a launch doesn't hold up who waits for that: it may itself wait for him. */
TEST_ON_CUDA(test_wait_for_the_launch_alone) {
  world *w = begin_world(device);
  sim->set_passes(UINT64_MAX);
  for (int k = 0; k < 2; ++k) {
    gk_graph *graph = bound(w, k ? &straight : &looping, 0), *forever = bound(w, &endless, GK_CANCELLABLE);
    CUevent over, ended;
    RIGHT(cu.cuEventCreate(&over, CU_EVENT_DISABLE_TIMING));
    RIGHT(cu.cuEventCreate(&ended, CU_EVENT_DISABLE_TIMING));
    set_int(w->device, w->flag, 1);
    assert_ok(gk_launch_on(graph, 0, w->streams[0]));
    RIGHT(cu.cuEventRecord(over, w->streams[0]));
    RIGHT(cu.cuStreamWaitEvent(w->streams[1], over, 0));
    assert_ok(gk_launch_on(forever, 0, w->streams[1]));
    RIGHT(cu.cuEventRecord(ended, w->streams[1]));
    RIGHT(cu.cuStreamWaitEvent(w->streams[0], ended, 0));
    assert_ok(gk_wait(graph, NULL));
    assert_int_equal(gk_poll(forever, NULL), GK_NOT_READY);
    assert_ok(gk_cancel(forever));
    assert_ok(gk_wait(forever, NULL));
    gk_graph_destroy(forever);
    gk_graph_destroy(graph);
    RIGHT(cu.cuStreamSynchronize(w->streams[0]));
    RIGHT(cu.cuEventDestroy(over));
    RIGHT(cu.cuEventDestroy(ended));
  }
  end_world(w);
}

/* A stream made anew may have the handle of the one before: the launch there still comes behind the one on that. */
static void launch_unknown(gk_graph *graph, CUstream stream, bool unknown) {
  sim->mark();
  if (unknown) (sim->fail)(3, CUDA_ERROR_UNKNOWN, SIMGPU_NOW); /* as before CUDA 12.0, which has no cuStreamGetId */
  assert_ok(gk_launch_on(graph, 0, stream));
  if (unknown) assert_string_equal(sim->failed(), "cuStreamGetId");
}

static void check_handle_given_again(world *w, const gk_list *list, uint32_t bits, uint64_t seed) {
  gk_graph *graph = bound(w, list, bits);
  CUstream first, second;
  sim->set_seed(seed);
  set_int(w->device, w->x, 1);
  gk_bind_bytes(graph, LINE, &(line){1, 1}, sizeof(line));
  RIGHT(cu.cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  if (!bits) sim->hold(1);
  for (int n = 0; n < 5; ++n) fill_on(first, w->x, 0);
  launch_unknown(graph, first, seed % 2);
  RIGHT(cu.cuStreamDestroy(first));
  RIGHT(cu.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  assert_ptr_equal(second, first);
  gk_bind_bytes(graph, LINE, &(line){3, 2}, sizeof(line));
  launch_unknown(graph, second, seed % 2);
  sim->hold(0);
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(w->device, w->x), 5);
  RIGHT(cu.cuStreamDestroy(second));
  gk_graph_destroy(graph);
}

TEST_ON_CUDA(test_handle_given_again) {
  world *w = begin_world(device);
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    check_handle_given_again(w, &looping, 0, seed);
    check_handle_given_again(w, &straight, 0, seed);
    check_handle_given_again(w, &looping, GK_HOST_GATED, seed);
  }
  end_world(w);
}

/* And it may be one of another context. */
TEST_ON_CUDA(test_handle_given_again_elsewhere) {
  world *w = begin_world(device);
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    gk_graph *graph = bound(w, &looping, bits);
    CUstream first, second;
    CUcontext other;
    RIGHT(cu.cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    assert_ok(gk_launch_on(graph, 0, first));
    assert_ok(gk_wait(graph, NULL));
    RIGHT(cu.cuStreamDestroy(first));
    RIGHT(cu.cuCtxCreate(&other, 0, 0));
    RIGHT(cu.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    assert_ptr_equal(second, first);
    assert_fails(GK_ERROR_INVALID, "belongs to another context", gk_launch_on(graph, 0, second));
    RIGHT(cu.cuStreamDestroy(second));
    RIGHT(cu.cuCtxDestroy(other));
    gk_graph_destroy(graph);
  }
  end_world(w);
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

TEST_ON_CUDA(test_captured_is_refused) {
  world *w = begin_world(device);
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits)
    for (int k = 0; k < 2; ++k) {
      gk_graph *graph = bound(w, k ? &straight : &looping, bits);
      CUgraph captured;
      size_t count = 99;
      set_int(w->device, w->x, 1);
      RIGHT(cu.cuStreamBeginCapture(w->streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
      assert_fails(GK_ERROR_INVALID, "the stream is being captured", gk_launch_on(graph, 0, w->streams[0]));
      assert_fails(GK_ERROR_INVALID, "was not launched yet", gk_wait(graph, NULL));
      RIGHT(cu.cuStreamEndCapture(w->streams[0], &captured));
      RIGHT(cu.cuGraphGetNodes(captured, NULL, &count));
      assert_int_equal(count, 0);
      RIGHT(cu.cuGraphDestroy(captured));
      const gk_status *status;
      assert_ok(gk_launch_on(graph, 0, w->streams[0])); /* with all that was bound before */
      assert_ok(gk_wait(graph, &status));
      assert_int_equal(status->launch, 1);
      assert_int_equal(int_at(w->device, w->x), 2);
      gk_graph_destroy(graph);
    }
  end_world(w);
}

/* The default stream would wait for the one that is captured. */
TEST_ON_CUDA(test_default_stream_while_captured) {
  world *w = begin_world(device);
  CUstream blocking;
  RIGHT(cu.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    gk_graph *graph = bound(w, &looping, bits);
    CUgraph captured;
    assert_ok(gk_launch_on(graph, 0, NULL));
    RIGHT(cu.cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_ok(gk_wait(graph, NULL));
    assert_fails(GK_ERROR_INVALID, "the default stream can't be used while a stream is captured that waits for it",
                 gk_launch_on(graph, 0, NULL));
    assert_ok(gk_launch_on(graph, 0, w->streams[0]));
    assert_ok(gk_wait(graph, NULL));
    gk_graph_destroy(graph);
    RIGHT(cu.cuStreamEndCapture(blocking, &captured));
    RIGHT(cu.cuGraphDestroy(captured));
  }
  RIGHT(cu.cuStreamDestroy(blocking));
  end_world(w);
}

TEST_ON_CUDA(test_other_context_is_refused) {
  world *w = begin_world(device);
  CUcontext other;
  CUstream stream;
  RIGHT(cu.cuCtxCreate(&other, 0, 0));
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    gk_graph *graph = bound(w, &straight, bits);
    assert_fails(GK_ERROR_INVALID, "belongs to another context than the device's", gk_launch_on(graph, 0, stream));
    assert_ok(gk_launch_on(graph, 0, NULL)); /* of the device's context, not of the one that is current */
    assert_ok(gk_wait(graph, NULL));
    gk_graph_destroy(graph);
  }
  RIGHT(cu.cuStreamDestroy(stream));
  RIGHT(cu.cuCtxDestroy(other));
  end_world(w);
}

/* What waits in the device's line isn't overtaken by its own graph, but by others. */
TEST_ON_CUDA(test_line_of_work) {
  world *w = begin_world(device);
  sim->set_passes(UINT64_MAX);
  gk_graph *forever = bound(w, &endless, GK_CANCELLABLE | GK_HOST_GATED), *graph = bound(w, &straight, 0);
  gk_graph *other = bound(w, &straight, 0);
  int *mine = int_on(w->device, 5);
  gk_bind(other, X, mine);
  set_int(w->device, w->flag, 1);
  assert_ok(gk_launch(forever, 0));
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_BUSY, "waits for other work of the device", gk_launch_on(graph, 0, w->streams[0]));
  assert_ok(gk_launch_on(other, 0, w->streams[0]));
  RIGHT(cu.cuMemcpyDtoHAsync(w->page, at(mine), sizeof *mine, w->streams[0]));
  RIGHT(cu.cuStreamSynchronize(w->streams[0]));
  assert_int_equal(*w->page, 6);
  assert_ok(gk_wait(other, NULL));
  assert_ok(gk_cancel(forever));
  assert_ok(gk_wait(graph, NULL));
  assert_ok(gk_launch_on(graph, 0, w->streams[0]));
  gk_graph_destroy(graph);
  gk_graph_destroy(other);
  gk_graph_destroy(forever);
  end_world(w);
}

/* ---- what it costs ----------------------------------------------------------------------------------------------- */

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

/* Where the context is the thread's, as it is in a program that uses CUDA itself: to look whether it is, whether the
 * stream is captured, and, unless it is the default one, which it is; the launch, and the event behind it. */
TEST_ON_CUDA(test_counts) {
  world *w = begin_world(device);
  for (int k = 0; k < 2; ++k) {
    gk_graph *graph = bound(w, k ? &straight : &looping, 0);
    const simgpu_counts own = counts_on(graph, false, NULL), there = counts_on(graph, true, w->streams[0]);
    assert_int_equal(own.calls, k ? 5 : 4); /* the world knows that stream, so it might be captured */
    assert_int_equal(there.calls, 5);
    assert_int_equal(there.launches, 1);
    assert_int_equal(there.copies + there.waits + there.memory, 0);
    assert_int_equal(counts_on(graph, true, NULL).calls, 4);
    RIGHT(cu.cuCtxPopCurrent(NULL));
    assert_int_equal(counts_on(graph, true, w->streams[0]).calls, 7); /* the context comes and goes */
    RIGHT(cu.cuCtxPushCurrent(w->context));
    sim->mark();
    gk_bind_bytes(graph, LINE, &(line){1, 2}, sizeof(line));
    assert_ok(gk_launch_on(graph, 0, w->streams[0]));
    assert_int_equal(sim->counts().calls, 6);
    assert_int_equal(sim->counts().copies, 1);
    assert_int_equal(sim->counts().pageable, 0);
    assert_ok(gk_wait(graph, NULL));
    gk_graph_destroy(graph);
  }
  end_world(w);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* Each call fails in turn; whatever it was, nothing is left, nothing hangs, and the next launch is right. */
TEST_ON_CUDA(test_each_call_fails) {
  world *w = begin_world(device);
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits)
    for (uint64_t k = 1, over = 0; !over; ++k) {
      gk_graph *graph = bound(w, k % 2 ? &straight : &looping, bits);
      assert_ok(gk_launch_on(graph, 0, w->streams[0]));
      sim->mark();
      (sim->fail)((k + 1) / 2, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
      gk_result result = gk_launch_on(graph, 0, w->streams[1]);
      if (result == GK_OK) result = gk_wait(graph, NULL);
      over = sim->failed() == NULL;
      if (over) assert_int_equal(result, GK_OK);
      sim->mark();
      if (result != GK_OK) assert_true(result == GK_ERROR_DEVICE && gk_error()[0]);
      (void)gk_wait(graph, NULL);
      set_int(w->device, w->x, 0);
      assert_ok(gk_launch_on(graph, 0, w->streams[0]));
      assert_ok(gk_wait(graph, NULL));
      assert_int_equal(int_at(w->device, w->x), 1);
      gk_graph_destroy(graph);
    }
  end_world(w);
}

/* Its own context and capture mode, which need no device to be told; any of these calls may be the one that fails. */
static void expect_own(CUcontext mine) {
  CUcontext popped = NULL;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  (void)cu.cuCtxPopCurrent(&popped);
  assert_ptr_equal(popped, mine);
  if (cu.cuCtxPushCurrent(mine) != CUDA_SUCCESS) RIGHT(cu.cuCtxPushCurrent(mine));
  (void)cu.cuThreadExchangeStreamCaptureMode(&mode);
  assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* Whatever call the device is lost at, the thread is left as it was, and launches answer what it began with. */
static bool check_lost_at(uint64_t k, uint32_t bits, CUcontext mine, CUstream stream) {
  gk_device *device = open_named("cuda");
  gk_graph *graph = graph_on(device, &looping, bits), *more = NULL;
  int *x = int_on(device, 0), *left = int_on(device, 0), value = 0;
  gk_bind(graph, X, x);
  gk_bind(graph, LEFT, left);
  gk_bind_bytes(graph, LINE, &(line){1, 1}, sizeof(line));
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
  STEP(gk_graph_create(device, &straight, bits, &more));
  const bool over = !sim->failed();
  if (lost) assert_fails(GK_ERROR_DEVICE, "is lost; close it", gk_launch(graph, 0));
  if (lost) assert_non_null(strstr(gk_error(), "It began with: "));
  gk_graph_destroy(more);
  gk_graph_destroy(graph);
  expect_own(mine);
  sim->mark();
  gk_device_close(device);
  expect_own(mine);
  return over;
}

TEST_ON_CUDA(test_lost_at_any_call) {
  world *w = begin_world(device);
  CUcontext mine;
  RIGHT(cu.cuCtxCreate(&mine, 0, 0));
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits)
    for (uint64_t k = 1; !check_lost_at(k, bits, mine, w->streams[0]); ++k) {}
  RIGHT(cu.cuCtxDestroy(mine));
  end_world(w);
}

int main(int count, char **words) {
  (void)count;
  with_simgpu(words);
  return run_all_tests_with(find_user_driver, NULL);
}
