/* A device that works in a context, and on a stream, of the caller's. */
#include "user_driver.h"
#include "unit/support/runtime_kernels.h"

enum { X = 1, N, A, LEFT, SLOTS };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(N, int, 1), GK_DEFAULT(A, int, 1),
                                     GK_BUFFER(LEFT, int)};
static const gk_task looping_tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, LEFT),
                                        GK_END};
static const gk_list looping = GK_LIST(looping, looping_tasks, slots);

static gk_result open_sharing(int ordinal, const gk_extension *next, gk_device **device) {
  return gk_device_open(&(gk_device_desc){.backend = "cuda", .ordinal = ordinal, .next = next}, device);
}

static gk_device *share(CUcontext context, CUstream stream) {
  const gk_cuda_sharing sharing = GK_CUDA_SHARE(context, stream);
  gk_device *device = NULL;
  assert_ok(open_sharing(0, &sharing.base, &device));
  return device;
}

/* Three passes of the loop over memory of the caller's own. */
static void check_runs(gk_device *device, uint32_t bits) {
  gk_graph *graph = graph_on(device, &looping, bits);
  int *x = taken(1), *left = taken(1), *own = int_on(device, 7);
  set_int(device, x, 10);
  set_int(device, left, 3);
  gk_bind(graph, X, x);
  gk_bind(graph, LEFT, left);
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(device, x), 13);
  gk_bind(graph, X, own);
  set_int(device, left, 2);
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(device, own), 9);
  gk_free(device, own);
  gk_graph_destroy(graph);
  give(x);
  give(left);
}

CLEAN(test_context_of_the_callers) {
  CUcontext context, found, now;
  CUstream stream;
  RIGHT(cu.cuCtxCreate(&context, 0, 0));
  gk_device *device = share(context, NULL);
  assert_ok(gk_cuda_context(device, &found, &stream));
  assert_ptr_equal(found, context);
  assert_int_equal(sim->alive(SIMGPU_RETAINS), 0);
  RIGHT(cu.cuStreamGetCtx(stream, &found));
  assert_ptr_equal(found, context);
  assert_ok(gk_cuda_context(device, NULL, NULL));
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) check_runs(device, bits);
  gk_device_close(device);
  RIGHT(cu.cuCtxGetCurrent(&now));
  assert_ptr_equal(now, context);
  give(taken(1)); /* it is alive */
  RIGHT(cu.cuCtxDestroy(context));
}

/* A stream of gk's own isn't for captures: what needs it meanwhile is refused, and the device goes on. */
CLEAN(test_own_stream_is_captured) {
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; bits += GK_HOST_GATED) {
    gk_device *device = open_named("cuda");
    CUcontext context;
    CUstream stream, other;
    CUgraph captured = NULL;
    size_t count = 99;
    assert_ok(gk_cuda_context(device, &context, &stream));
    gk_graph *graph = graph_on(device, &looping, bits);
    int *x = int_on(device, 1), *left = int_on(device, 2), value = 0;
    gk_bind(graph, X, x);
    gk_bind(graph, LEFT, left);
    assert_ok(gk_launch(graph, 0));
    assert_ok(gk_wait(graph, NULL));
    set_int(device, left, 3);
    RIGHT(cu.cuCtxPushCurrent(context));
    RIGHT(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    RIGHT(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    const char *const says = "the stream that gk_cuda_context gave is being captured, and what gk puts there can't be";
    assert_ok(gk_launch(graph, 0));
    assert_fails(GK_ERROR_INVALID, says, gk_wait(graph, NULL));
    assert_fails(GK_ERROR_INVALID, says, gk_launch_on(graph, 0, other));
    assert_fails(GK_ERROR_INVALID, says, gk_download(device, &value, x, sizeof value));
    RIGHT(cu.cuStreamEndCapture(stream, &captured));
    RIGHT(cu.cuGraphGetNodes(captured, NULL, &count));
    assert_int_equal(count, 0);
    RIGHT(cu.cuGraphDestroy(captured));
    RIGHT(cu.cuStreamDestroy(other));
    RIGHT(cu.cuCtxPopCurrent(NULL));
    assert_ok(gk_launch(graph, 0));
    assert_ok(gk_wait(graph, NULL));
    assert_int_equal(int_at(device, x), 1 + 2 + 3);
    gk_graph_destroy(graph);
    gk_free(device, x);
    gk_free(device, left);
    gk_device_close(device);
  }
}

CLEAN(test_primary_context) {
  CUcontext context, found;
  CUstream stream, used;
  RIGHT(cu.cuDevicePrimaryCtxRetain(&context, 0));
  RIGHT(cu.cuCtxPushCurrent(context));
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int k = 0; k < 3; ++k) {
    gk_device *device = share(k == 1 ? context : NULL, stream);
    assert_ok(gk_cuda_context(device, &found, &used));
    assert_ptr_equal(found, context);
    assert_ptr_equal(used, stream);
    assert_int_equal(sim->alive(SIMGPU_RETAINS), k == 1 ? 1 : 2);
    check_runs(device, k == 2 ? GK_HOST_GATED : 0);
    gk_device_close(device);
    RIGHT(cu.cuStreamSynchronize(stream));
  }
  gk_device *device = share(NULL, (CUstream)(uintptr_t)GKI_CU_STREAM_LEGACY);
  check_runs(device, 0);
  CUstream blocking;
  CUgraph captured;
  RIGHT(cu.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  RIGHT(cu.cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  assert_null(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  assert_says("the default stream, which the device shares, can't be used while a stream is captured");
  RIGHT(cu.cuStreamEndCapture(blocking, &captured));
  RIGHT(cu.cuGraphDestroy(captured));
  RIGHT(cu.cuStreamDestroy(blocking));
  gk_device_close(device);
  RIGHT(cu.cuStreamDestroy(stream));
  RIGHT(cu.cuCtxPopCurrent(NULL));
  RIGHT(cu.cuDevicePrimaryCtxRelease(0));
}

/* What stands on the stream before a launch comes before it, and what is put there later behind it. */
static void check_order(uint32_t bits) {
  CUcontext context;
  CUstream stream;
  RIGHT(cu.cuCtxCreate(&context, 0, 0));
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  gk_device *device = share(context, stream);
  gk_graph *graph = graph_on(device, &looping, bits);
  int *x = taken(1), *left = taken(1), *page = gk_alloc(device, 2 * sizeof(int), GK_HOST_MEMORY);
  gk_bind(graph, X, x);
  gk_bind(graph, LEFT, left);
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
    assert_int_equal(int_at(device, x), 0x02020202);
  }
  gk_free(device, page);
  gk_graph_destroy(graph);
  gk_device_close(device);
  give(x);
  give(left);
  RIGHT(cu.cuStreamDestroy(stream));
  RIGHT(cu.cuCtxDestroy(context));
}

CLEAN(test_order_on_the_stream) {
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) check_order(bits);
}

/* Nothing of it is recorded, nor is the capture spoiled, nor another context left to the thread; when that is over, all
 * goes on. */
CLEAN(test_captured) {
  CUcontext context, mine, popped;
  CUstream stream;
  CUgraph captured;
  size_t count = 99;
  RIGHT(cu.cuCtxCreate(&context, 0, 0));
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  gk_device *device = share(context, stream);
  gk_graph *graph = graph_on(device, &looping, 0), *more;
  int *x = int_on(device, 1), *left = int_on(device, 1), value = 5;
  gk_bind(graph, X, x);
  gk_bind(graph, LEFT, left);
  gk_graph *gone = graph_on(device, &looping, 0); /* its end was marked before the stream was captured */
  gk_bind(gone, X, x);
  gk_bind(gone, LEFT, left);
  assert_ok(gk_launch(gone, 0));
  assert_ok(gk_wait(gone, NULL));
  set_int(device, x, 1);
  set_int(device, left, 1);
  RIGHT(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  gk_graph_destroy(gone);
  RIGHT(cu.cuCtxCreate(&mine, 0, 0));
  const char *const says = "the stream that the device shares is being captured";
  const gk_cuda_sharing once_more = GK_CUDA_SHARE(context, stream);
  gk_device *second;
  assert_fails(GK_ERROR_INVALID, "the stream is being captured", open_sharing(0, &once_more.base, &second));
  assert_fails(GK_ERROR_INVALID, says, gk_launch(graph, 0));
  assert_fails(GK_ERROR_INVALID, "was not launched yet", gk_wait(graph, NULL));
  assert_fails(GK_ERROR_INVALID, says, gk_upload(device, x, &value, sizeof value));
  assert_fails(GK_ERROR_INVALID, says, gk_graph_create(device, &looping, GK_HOST_GATED, &more));
  assert_null(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  assert_says(says);
  RIGHT(cu.cuCtxPopCurrent(&popped));
  assert_ptr_equal(popped, mine);
  RIGHT(cu.cuCtxDestroy(mine));
  RIGHT(cu.cuStreamEndCapture(stream, &captured));
  RIGHT(cu.cuGraphGetNodes(captured, NULL, &count));
  assert_int_equal(count, 0);
  RIGHT(cu.cuGraphDestroy(captured));
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(device, x), 2);
  gk_graph_destroy(graph);
  gk_device_close(device);
  RIGHT(cu.cuStreamDestroy(stream));
  RIGHT(cu.cuCtxDestroy(context));
}

/* A launch on another stream has to come behind what was on that of the device, where it can't be marked now. */
static void check_captured_elsewhere(uint32_t bits) {
  CUcontext context;
  CUstream stream, other;
  CUgraph captured;
  size_t count = 99;
  RIGHT(cu.cuCtxCreate(&context, 0, 0));
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  RIGHT(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  gk_device *device = share(context, stream);
  gk_graph *here = graph_on(device, &looping, bits);
  int *x = int_on(device, 1), *left = int_on(device, 3);
  gk_bind(here, X, x);
  gk_bind(here, LEFT, left);
  RIGHT(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  const char *const says = "the stream that the device shares is being captured";
  assert_fails(GK_ERROR_INVALID, says, gk_launch_on(here, 0, other));
  assert_fails(GK_ERROR_INVALID, says, gk_launch_on(here, 0, NULL));
  (sim->fail)(1, CUDA_ERROR_UNKNOWN, SIMGPU_NOW); /* whether it is lost can't be asked now, and needn't */
  assert_int_equal(gk_launch_on(here, 0, other), GK_ERROR_DEVICE);
  assert_non_null(sim->failed());
  sim->mark();
  RIGHT(cu.cuStreamEndCapture(stream, &captured));
  RIGHT(cu.cuGraphGetNodes(captured, NULL, &count));
  assert_int_equal(count, 0);
  RIGHT(cu.cuGraphDestroy(captured));
  RIGHT(cu.cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED));
  assert_fails(GK_ERROR_INVALID, "the stream is being captured, and what gk puts there", gk_launch_on(here, 0, other));
  RIGHT(cu.cuStreamEndCapture(other, &captured));
  RIGHT(cu.cuGraphDestroy(captured));
  assert_ok(gk_launch_on(here, 0, other));
  assert_ok(gk_wait(here, NULL));
  assert_int_equal(int_at(device, x), 4);
  gk_graph_destroy(here);
  gk_device_close(device);
  RIGHT(cu.cuStreamDestroy(other));
  RIGHT(cu.cuStreamDestroy(stream));
  RIGHT(cu.cuCtxDestroy(context));
}

CLEAN(test_captured_elsewhere) {
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) check_captured_elsewhere(bits);
}

/* What a launch came to isn't lost when somebody asks while its stream is captured. */
CLEAN(test_asked_while_captured) {
  static const gk_task straight_tasks[] = {GK_RUN(add, N, X, A)};
  static const gk_list straight = GK_LIST(straight, straight_tasks, slots);
  CUcontext context;
  CUstream stream;
  CUgraph captured;
  const gk_status *status = NULL;
  RIGHT(cu.cuCtxCreate(&context, 0, 0));
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  gk_device *device = share(context, stream);
  gk_graph *graph = graph_on(device, &straight, 0);
  int *x = int_on(device, 1);
  gk_bind(graph, X, x);
  for (int k = 0; k < 16; ++k) assert_ok(gk_launch(graph, 0));
  RIGHT(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  const char *const says = "the stream that the device shares is being captured";
  assert_fails(GK_ERROR_INVALID, says, gk_wait(graph, &status));
  assert_null(status);
  assert_fails(GK_ERROR_INVALID, says, gk_poll(graph, &status));
  assert_fails(GK_ERROR_INVALID, says, gk_launch(graph, 0)); /* the seventeenth */
  RIGHT(cu.cuStreamEndCapture(stream, &captured));
  RIGHT(cu.cuGraphDestroy(captured));
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->launch, 16);
  assert_int_equal(int_at(device, x), 17);
  gk_graph_destroy(graph);
  gk_device_close(device);
  RIGHT(cu.cuStreamDestroy(stream));
  RIGHT(cu.cuCtxDestroy(context));
}

/* ---- captures of others ------------------------------------------------------------------------------------------ */

static gk_result fill_bytes(const gk_value *args, void *native) {
  fill_on(native, args[0].ptr, 0);
  return GK_OK;
}

static const gk_task calling_tasks[] = {GK_CALL(fill_bytes, X), GK_RUN(add, N, X, A), GK_CHECKPOINT(7, LEFT),
                                        GK_RUN(add, N, X, A), GK_END};
static const gk_list calling = GK_LIST(calling, calling_tasks, slots);

/* All that gk does with a device, from its opening on. */
static void do_everything(CUstream stream, uint32_t bits) {
  gk_device *device = open_named("cuda");
  int *x = int_on(device, 1), *y = int_on(device, 1), *left = int_on(device, 3);
  void *page = gk_alloc(device, 4, GK_HOST_MEMORY);
  gk_graph *loop = graph_on(device, &looping, bits), *call = graph_on(device, &calling, bits);
  gk_bind(loop, X, x);
  gk_bind(loop, LEFT, left);
  assert_ok(gk_launch(loop, 0));
  assert_ok(gk_wait(loop, NULL));
  set_int(device, left, 1);
  assert_ok(gk_launch_on(loop, 0, stream));
  while (gk_poll(loop, NULL) == GK_NOT_READY) {}
  assert_int_equal(int_at(device, x), 5);
  const gk_status *status;
  gk_bind(call, LEFT, left);
  for (int k = 0; k < 2; ++k) {
    gk_bind(call, X, k ? x : y);
    set_int(device, left, 1);
    assert_ok(gk_launch_on(call, 0, stream)); /* the first one makes the graph, the second one makes it anew */
    assert_ok(gk_wait(call, &status));
    assert_int_equal(status->yielded, 7);
    set_int(device, left, 0);
    assert_ok(gk_launch_on(call, 7, stream));
    assert_ok(gk_wait(call, NULL));
    assert_int_equal(int_at(device, k ? x : y), 3); /* what the checkpoint holds ran twice */
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

typedef struct capture { CUcontext context; CUstream stream; CUstreamCaptureMode mode; bool ends; } capture;

static void *capture_elsewhere(void *data) {
  const capture *c = data;
  CUgraph captured;
  RIGHT(cu.cuCtxPushCurrent(c->context));
  if (!c->ends) RIGHT(cu.cuStreamBeginCapture(c->stream, c->mode));
  else RIGHT(cu.cuStreamEndCapture(c->stream, &captured));
  if (c->ends) RIGHT(cu.cuGraphDestroy(captured));
  RIGHT(cu.cuCtxPopCurrent(NULL));
  return NULL;
}

static CUstreamCaptureMode mode_of_thread(void) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL, global = mode;
  RIGHT(cu.cuThreadExchangeStreamCaptureMode(&mode));
  RIGHT(cu.cuThreadExchangeStreamCaptureMode(&global));
  return mode;
}

/* By this thread, and by one that waits meanwhile; nothing of gk's is forbidden, and nothing of theirs is spoiled. */
CLEAN(test_captures_of_others) {
  capture c;
  CUstream streams[2];
  RIGHT(cu.cuDevicePrimaryCtxRetain(&c.context, 0));
  RIGHT(cu.cuCtxPushCurrent(c.context));
  for (int k = 0; k < 2; ++k) RIGHT(cu.cuStreamCreate(&streams[k], CU_STREAM_NON_BLOCKING));
  c.stream = streams[0];
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    c.ends = false;
    c.mode = bits ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL : CU_STREAM_CAPTURE_MODE_GLOBAL;
    (void)capture_elsewhere(&c);
    do_everything(streams[1], bits);
    assert_int_equal(mode_of_thread(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    c.ends = true;
    (void)capture_elsewhere(&c);
  }
  RIGHT(cu.cuStreamDestroy(streams[1]));
  RIGHT(cu.cuStreamDestroy(streams[0]));
  RIGHT(cu.cuCtxPopCurrent(NULL));
  RIGHT(cu.cuDevicePrimaryCtxRelease(0));
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

static void refused(int ordinal, const gk_extension *next, const char *words) {
  gk_device *device = NULL;
  assert_fails(GK_ERROR_INVALID, words, open_sharing(ordinal, next, &device));
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
  assert_fails(GK_ERROR_INVALID, "extension",
               gk_device_open(&(gk_device_desc){.backend = "openmp", .next = &sharing.base}, &device));
}

CLEAN(test_refused_context_and_stream) {
  CUcontext first, second, third;
  CUstream stream;
  RIGHT(cu.cuCtxCreate(&third, 0, 2));
  RIGHT(cu.cuCtxCreate(&second, 0, 1));
  RIGHT(cu.cuCtxCreate(&first, 0, 0));
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  gk_cuda_sharing sharing = GK_CUDA_SHARE(first, NULL);
  refused(1, &sharing.base, "its context is of device 0, and ordinal 1 was asked for");
  sharing.context = third;
  refused(1, &sharing.base, "its context is of device 2, and ordinal 1 was asked for");
  sharing.context = second;
  sharing.stream = stream;
  refused(0, &sharing.base, "its stream belongs to another context; give that one, too, or a stream of the context");
  sharing.context = NULL;
  refused(0, &sharing.base, "its stream belongs to another context; give that one, too, or a stream of the primary");
  sharing.stream = (CUstream)(uintptr_t)GKI_CU_STREAM_PER_THREAD;
  refused(0, &sharing.base, "CU_STREAM_PER_THREAD is another stream in each thread");
  sharing = (gk_cuda_sharing)GK_CUDA_SHARE(second, NULL);
  for (int ordinal = 0; ordinal < 2; ++ordinal) { /* 0: whichever it is */
    gk_device *device = NULL;
    assert_ok(open_sharing(ordinal, &sharing.base, &device));
    assert_int_equal(gk_device_describe(device)->ordinal, 1);
    gk_device_close(device);
  }
  RIGHT(cu.cuStreamDestroy(stream));
  RIGHT(cu.cuCtxDestroy(first));
  RIGHT(cu.cuCtxDestroy(second));
  RIGHT(cu.cuCtxDestroy(third));
}

CLEAN(test_each_call_fails) {
  CUcontext context;
  CUstream stream;
  RIGHT(cu.cuCtxCreate(&context, 0, 0));
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const gk_cuda_sharing sharing = GK_CUDA_SHARE(context, stream);
  RIGHT(cu.cuCtxPopCurrent(NULL));
  for (uint64_t k = 1; k < 40; ++k) {
    CUcontext now = context;
    gk_device *device = NULL;
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
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
  RIGHT(cu.cuStreamDestroy(stream));
  RIGHT(cu.cuCtxDestroy(context));
}

CLEAN(test_whose_device_it_is) {
  CUcontext context = (CUcontext)(uintptr_t)1;
  gk_device *openmp = open_named("openmp"), *device = share(NULL, NULL);
  assert_fails(GK_ERROR_INVALID, "gk_cuda_context: the device is one of backend openmp; open one of backend cuda",
               gk_cuda_context(openmp, &context, NULL));
  assert_null(context);
  assert_fails(GK_ERROR_INVALID, "gk_cuda_context: there is no device", gk_cuda_context(NULL, &context, NULL));
  gk_device_close(device);
#ifdef GK_DEBUG
  assert_fails(GK_ERROR_INVALID, "gk_cuda_context: this device was closed", gk_cuda_context(device, &context, NULL));
#endif
  gk_device_close(openmp);
}

int main(int count, char **words) {
  (void)count;
  setenv("SIMGPU_DEVICES", "3", 1);
  with_simgpu(words);
  return run_all_tests_with(find_user_driver, NULL);
}
