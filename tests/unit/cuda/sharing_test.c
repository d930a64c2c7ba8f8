/* A device that works in a context, and on a stream, of the caller's. */
#include "graphs.h"
#include "lists.h"

static const char captured_says[] = "the stream that the device shares is being captured";

static gk_result open_sharing(int ordinal, const gk_extension *next, gk_device **device) {
  return gk_device_open(&(gk_device_desc){.backend = "cuda", .ordinal = ordinal, .next = next}, device);
}

static gk_device *share(CUcontext context, CUstream stream) {
  const gk_cuda_sharing sharing = GK_CUDA_SHARE(context, stream);
  gk_device *device = NULL;
  assert_ok(open_sharing(0, &sharing.base, &device));
  return keep(device, close_device);
}

static void destroy_context(void *context) { RIGHT(cu.cuCtxDestroy(context)); }

/* The thread's current context, until the test's end. */
static CUcontext new_context(int ordinal) {
  CUcontext context;
  RIGHT(cu.cuCtxCreate(&context, 0, ordinal));
  return keep(context, destroy_context);
}

static void leave_primary(void *context) {
  leave_context(context);
  RIGHT(cu.cuDevicePrimaryCtxRelease(0));
}

static CUcontext enter_primary(void) {
  CUcontext context;
  RIGHT(cu.cuDevicePrimaryCtxRetain(&context, 0));
  RIGHT(cu.cuCtxPushCurrent(context));
  return keep(context, leave_primary);
}

static void begin_capture(CUstream stream) {
  RIGHT(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
}

/* Three passes of the loop over memory of the caller's own. */
static void check_runs(gk_device *device, uint32_t bits) {
  int *x = taken(1), *left = taken(1), *own = int_on(device, 7);
  SET_VALUES({x, 10}, {left, 3});
  gk_graph *graph = NEW_GRAPH(device, &looping, bits, {X, x}, {LEFT, left});
  run_to_end(graph, 0);
  ASSERT_VALUES({x, 13});
  gk_bind(graph, X, own);
  set_int(device, left, 2);
  run_to_end(graph, 0);
  ASSERT_VALUES({own, 9});
  gk_free(device, own);
  discard(graph);
  give(x);
  give(left);
}

CLEAN(test_context_of_the_callers) {
  CUcontext context = new_context(0), found, now;
  CUstream stream;
  gk_device *device = share(context, NULL);
  assert_ok(gk_cuda_context(device, &found, &stream));
  assert_ptr_equal(found, context);
  assert_int_equal(sim->alive(SIMGPU_RETAINS), 0);
  RIGHT(cu.cuStreamGetCtx(stream, &found));
  assert_ptr_equal(found, context);
  assert_ok(gk_cuda_context(device, NULL, NULL));
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) check_runs(device, bits);
  discard(device);
  RIGHT(cu.cuCtxGetCurrent(&now));
  assert_ptr_equal(now, context);
  give(taken(1)); /* it is alive */
}

/* A captured stream of gk's own: calls that need it meanwhile are refused, and the device goes on. */
CLEAN(test_own_stream_is_captured) {
  static const char says[] = "the stream that gk_cuda_context gave is being captured, and what gk puts there can't be";
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; bits += GK_HOST_GATED) {
    gk_device *device = new_device("cuda", 0);
    CUstream stream;
    assert_ok(gk_cuda_context(device, NULL, &stream));
    int *x = int_on(device, 1), *left = int_on(device, 2), value = 0;
    gk_graph *graph = NEW_GRAPH(device, &looping, bits, {X, x}, {LEFT, left});
    run_to_end(graph, 0);
    set_int(device, left, 3);
    (void)enter_context(device);
    const CUstream other = new_stream();
    begin_capture(stream);
    assert_invalid(says, waited_for(graph, 0));
    assert_invalid(says, gk_launch_on(graph, 0, other));
    assert_invalid(says, gk_download(device, &value, x, sizeof value));
    end_empty_capture(stream);
    run_to_end(graph, 0);
    ASSERT_VALUES({x, 1 + 2 + 3});
  }
}

/* The caller may put work on a shared stream, or capture it, right behind a launch: the event at its end is recorded
 * with it. */
CLEAN(test_launches_are_marked_at_once) {
  const CUcontext context = enter_primary();
  gk_device *device = share(context, new_stream());
  int *x = taken(1), *left = taken(1);
  SET_VALUES({x, 0}, {left, 1});
  gk_graph *graph = NEW_GRAPH(device, &looping, 0, {X, x}, {LEFT, left});
  run_to_end(graph, 0);
  for (unsigned long k = 0; k < 3; ++k) {
    set_int(device, left, 1);
    const unsigned long marks = sim->calls("cuEventRecord");
    assert_ok(gk_launch(graph, 0));
    assert_int_equal(sim->calls("cuEventRecord"), marks + 1);
    assert_ok(gk_wait(graph, NULL));
  }
  discard(graph);
  give(x);
  give(left);
  discard(device);
}

CLEAN(test_primary_context) {
  CUcontext context = enter_primary(), found;
  CUstream stream = new_stream(), used, blocking;
  for (int k = 0; k < 3; ++k) {
    gk_device *device = share(k == 1 ? context : NULL, stream);
    assert_ok(gk_cuda_context(device, &found, &used));
    assert_ptr_equal(found, context);
    assert_ptr_equal(used, stream);
    assert_int_equal(sim->alive(SIMGPU_RETAINS), k == 1 ? 1 : 2);
    check_runs(device, k == 2 ? GK_HOST_GATED : 0);
    discard(device);
    RIGHT(cu.cuStreamSynchronize(stream));
  }
  gk_device *device = share(NULL, (CUstream)(uintptr_t)GKI_CU_STREAM_LEGACY);
  check_runs(device, 0);
  RIGHT(cu.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  begin_capture(blocking);
  assert_null(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  assert_says("the default stream, which the device shares, can't be used while a stream is captured");
  end_empty_capture(blocking);
  RIGHT(cu.cuStreamDestroy(blocking));
}

/* Work that is on the stream before a launch comes before it, and later work behind it. */
CLEAN(test_order_on_the_stream) {
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    const CUcontext context = new_context(0);
    const CUstream stream = new_stream();
    gk_device *device = share(context, stream);
    int *x = taken(1), *left = taken(1), *page = gk_alloc(device, 2 * sizeof(int), GK_HOST_MEMORY);
    gk_graph *graph = NEW_GRAPH(device, &looping, bits, {X, x}, {LEFT, left});
    for (uint64_t seed = 0; seed < 8; ++seed) {
      sim->set_seed(seed);
      set_int(device, left, 3);
      fill_on(stream, x, 1);
      assert_ok(gk_launch(graph, 0));
      RIGHT(cu.cuMemcpyDtoHAsync(page, at(x), sizeof *x, stream));
      fill_on(stream, x, 9);
      RIGHT(cu.cuStreamSynchronize(stream));
      assert_int_equal(page[0], 0x01010104);
      assert_ok(gk_wait(graph, NULL));
      fill_on(stream, x, 2);
      ASSERT_VALUES({x, 0x02020202});
    }
    gk_free(device, page);
    discard(graph);
    discard(device);
    give(x);
    give(left);
  }
}

/* The call records nothing, doesn't spoil the capture and leaves no context to the thread. After the capture everything
 * works. */
CLEAN(test_captured) {
  const CUcontext context = new_context(0);
  const CUstream stream = new_stream();
  gk_device *device = share(context, stream), *second;
  int *x = int_on(device, 1), *left = int_on(device, 1), value = 5;
  gk_graph *graph = NEW_GRAPH(device, &looping, 0, {X, x}, {LEFT, left}), *more;
  gk_graph *gone = NEW_GRAPH(device, &looping, 0, {X, x}, {LEFT, left}); /* its end is marked before the capture */
  run_to_end(gone, 0);
  SET_VALUES({x, 1}, {left, 1});
  begin_capture(stream);
  discard(gone);
  CUcontext mine, popped;
  RIGHT(cu.cuCtxCreate(&mine, 0, 0));
  const gk_cuda_sharing once_more = GK_CUDA_SHARE(context, stream);
  assert_invalid("the stream is being captured", open_sharing(0, &once_more.base, &second));
  assert_invalid(captured_says, gk_launch(graph, 0));
  assert_invalid("was not launched yet", gk_wait(graph, NULL));
  assert_invalid(captured_says, gk_upload(device, x, &value, sizeof value));
  assert_invalid(captured_says, gk_graph_create(device, &looping, GK_HOST_GATED, &more));
  assert_null(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  assert_says(captured_says);
  RIGHT(cu.cuCtxPopCurrent(&popped));
  assert_ptr_equal(popped, mine);
  RIGHT(cu.cuCtxDestroy(mine));
  end_empty_capture(stream);
  run_to_end(graph, 0);
  ASSERT_VALUES({x, 2});
}

/* A launch on another stream must follow the work on the device's stream, where no event can be recorded now. */
CLEAN(test_captured_elsewhere) {
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    const CUcontext context = new_context(0);
    const CUstream stream = new_stream(), other = new_stream();
    gk_device *device = share(context, stream);
    int *x = int_on(device, 1);
    gk_graph *here = NEW_GRAPH(device, &looping, bits, {X, x}, {LEFT, int_on(device, 3)});
    begin_capture(stream);
    assert_invalid(captured_says, gk_launch_on(here, 0, other));
    assert_invalid(captured_says, gk_launch_on(here, 0, NULL));
    (sim->fail)(1, CUDA_ERROR_UNKNOWN, SIMGPU_NOW); /* whether it is lost can't be asked now, and needn't be */
    assert_int_equal(gk_launch_on(here, 0, other), GK_ERROR_DEVICE);
    assert_non_null(failed_call());
    end_empty_capture(stream);
    begin_capture(other);
    assert_invalid("the stream is being captured, and what gk puts there",
                 gk_launch_on(here, 0, other));
    end_empty_capture(other);
    assert_ok(run_on_stream(here, 0, other));
    ASSERT_VALUES({x, 4});
  }
}

/* The result of a launch isn't lost when it is asked for while its stream is captured. */
CLEAN(test_asked_while_captured) {
  const CUcontext context = new_context(0);
  const CUstream stream = new_stream();
  const gk_status *status = NULL;
  gk_device *device = share(context, stream);
  int *x = int_on(device, 1);
  gk_graph *graph = NEW_GRAPH(device, &straight, 0, {X, x});
  for (int k = 0; k < 16; ++k) assert_ok(gk_launch(graph, 0));
  begin_capture(stream);
  assert_invalid(captured_says, gk_wait(graph, &status));
  assert_null(status);
  assert_invalid(captured_says, gk_poll(graph, &status));
  assert_invalid(captured_says, gk_launch(graph, 0)); /* the seventeenth */
  end_empty_capture(stream);
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->launch, 16);
  ASSERT_VALUES({x, 17});
}

/* All that gk does with a device, beginning with its opening. */
static void do_everything(CUstream stream, uint32_t bits) {
  LIST(calling, GK_CALL(fill_bytes, X, BYTE), GK_RUN(add, N, X, A), GK_CHECKPOINT(HERE, LEFT), GK_RUN(add, N, X, A),
       GK_END);
  gk_device *device = open_named("cuda");
  int *x = int_on(device, 1), *y = int_on(device, 1), *left = int_on(device, 3);
  void *page = gk_alloc(device, 4, GK_HOST_MEMORY);
  gk_graph *loop = graph_on(device, &looping, bits), *call = graph_on(device, &calling, bits);
  BIND(loop, {X, x}, {LEFT, left});
  run_to_end(loop, 0);
  set_int(device, left, 1);
  assert_ok(gk_launch_on(loop, 0, stream));
  while (gk_poll(loop, NULL) == GK_NOT_READY) {}
  ASSERT_VALUES({x, 5});
  const gk_status *status;
  BIND(call, {LEFT, left});
  BIND_INTS(call, {BYTE, 0});
  for (int k = 0; k < 2; ++k) {
    gk_bind(call, X, k ? x : y);
    set_int(device, left, 1);
    assert_ok(gk_launch_on(call, 0, stream)); /* the first one makes the graph, the second one makes it anew */
    assert_ok(gk_wait(call, &status));
    assert_int_equal(status->yielded, HERE);
    set_int(device, left, 0);
    assert_ok(run_on_stream(call, HERE, stream));
    ASSERT_VALUES({k ? x : y, 3}); /* the tasks in the checkpoint ran twice */
  }
  assert_ok(gk_resize(loop, X, 5));
  set_int(device, left, 1);
  assert_ok(gk_launch(loop, 0));
  gk_graph_destroy(loop); /* waits */
  gk_graph_destroy(call);
  gk_free(device, x);
  gk_free(device, page);
  gk_device_close(device);
}

static CUstreamCaptureMode mode_of_thread(void) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL, global = mode;
  RIGHT(cu.cuThreadExchangeStreamCaptureMode(&mode));
  RIGHT(cu.cuThreadExchangeStreamCaptureMode(&global));
  return mode;
}

/* A capture by this thread: no call of gk's is forbidden, and the capture isn't spoiled. */
CLEAN(test_captures_of_others) {
  (void)enter_primary();
  const CUstream captured = new_stream(), stream = new_stream();
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    CUgraph graph;
    RIGHT(cu.cuStreamBeginCapture(captured, bits ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                                                 : CU_STREAM_CAPTURE_MODE_GLOBAL));
    do_everything(stream, bits);
    assert_int_equal(mode_of_thread(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    RIGHT(cu.cuStreamEndCapture(captured, &graph));
    RIGHT(cu.cuGraphDestroy(graph));
  }
}

static void refused(int ordinal, const gk_extension *next, const char *words) {
  gk_device *device = NULL;
  assert_invalid(words, open_sharing(ordinal, next, &device));
  assert_null(device);
}

CLEAN(test_refused_extensions) {
  const gk_extension unknown = {.id = 77, .bytes = sizeof unknown};
  refused(0, &unknown, "no extension 0x4d");
  gk_cuda_sharing sharing = GK_CUDA_SHARE(NULL, NULL), second = GK_CUDA_SHARE(NULL, NULL);
  sharing.base.next = &unknown;
  refused(0, &sharing.base, "no extension 0x4d");
  sharing.base.next = &second.base;
  refused(0, &sharing.base, "given twice");
  sharing.base.next = &sharing.base;
  refused(0, &sharing.base, "given twice");
  sharing.base.next = NULL;
  sharing.base.bytes = sizeof sharing.base;
  refused(0, &sharing.base, "gk_cuda_sharing has 32 bytes, not 16");
  gk_device *device = NULL;
  assert_fails(GK_ERROR_NO_DEVICE, "there are 3 devices, counted from 0; 3 was asked for",
               open_sharing(3, NULL, &device));
  sharing = (gk_cuda_sharing)GK_CUDA_SHARE(NULL, NULL);
  assert_invalid("extension",
               gk_device_open(&(gk_device_desc){.backend = "openmp", .next = &sharing.base}, &device));
}

CLEAN(test_refused_context_and_stream) {
  const CUcontext third = new_context(2), second = new_context(1), first = new_context(0);
  const CUstream stream = new_stream(), per_thread = (CUstream)(uintptr_t)GKI_CU_STREAM_PER_THREAD;
  const struct { CUcontext context; CUstream stream; int ordinal; const char *words; } cases[] = {
    {first, NULL, 1, "its context is of device 0, and ordinal 1 was asked for"},
    {third, NULL, 1, "its context is of device 2, and ordinal 1 was asked for"},
    {second, stream, 0, "its stream belongs to another context; give that one, too, or a stream of the context"},
    {NULL, stream, 0, "its stream belongs to another context; give that one, too, or a stream of the primary"},
    {NULL, per_thread, 0, "CU_STREAM_PER_THREAD is another stream in each thread"}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    const gk_cuda_sharing sharing = GK_CUDA_SHARE(cases[k].context, cases[k].stream);
    refused(cases[k].ordinal, &sharing.base, cases[k].words);
  }
  const gk_cuda_sharing sharing = GK_CUDA_SHARE(second, NULL);
  for (int ordinal = 0; ordinal < 2; ++ordinal) { /* 0: all are the same */
    gk_device *device = NULL;
    assert_ok(open_sharing(ordinal, &sharing.base, &device));
    assert_int_equal(gk_device_describe(device)->ordinal, 1);
    gk_device_close(device);
  }
}

CLEAN(test_each_call_fails) {
  CUcontext context;
  RIGHT(cu.cuCtxCreate(&context, 0, 0));
  const CUstream stream = new_stream();
  const gk_cuda_sharing sharing = GK_CUDA_SHARE(context, stream);
  RIGHT(cu.cuCtxPopCurrent(NULL));
  for (uint64_t k = 1; k < 40; ++k) {
    CUcontext now = context;
    gk_device *device = NULL;
    fail_call(k, CUDA_ERROR_UNKNOWN);
    const gk_result result = open_sharing(0, &sharing.base, &device);
    if (!sim->failed()) k = 40;
    else if (result != GK_OK) assert_true(gk_error()[0] != 0);
    gk_device_close(device);
    sim->mark();
    RIGHT(cu.cuCtxGetCurrent(&now));
    assert_null(now);
    RIGHT(cu.cuCtxPushCurrent(context));
    RIGHT(cu.cuStreamSynchronize(stream));
    RIGHT(cu.cuCtxPopCurrent(NULL));
    assert_int_equal(sim->alive(SIMGPU_RETAINS), 0);
    assert_int_equal(sim->alive(SIMGPU_STREAMS), 1);
  }
  RIGHT(cu.cuCtxPushCurrent(context));
  discard(stream);
  RIGHT(cu.cuCtxDestroy(context));
}

CLEAN(test_only_cuda_devices_have_contexts) {
  CUcontext context = (CUcontext)(uintptr_t)1;
  gk_device *openmp = new_device("openmp", 0), *device = share(NULL, NULL);
  assert_invalid("gk_cuda_context: the device is one of backend openmp; open one of backend cuda",
               gk_cuda_context(openmp, &context, NULL));
  assert_null(context);
  assert_invalid("gk_cuda_context: there is no device", gk_cuda_context(NULL, &context, NULL));
  discard(device);
#ifdef GK_DEBUG
  assert_invalid("gk_cuda_context: this device was closed", gk_cuda_context(device, &context, NULL));
#endif
}

int main(UNUSED int count, char **words) {
  setenv("SIMGPU_DEVICES", "3", 1);
  return run_on_simgpu(words);
}
