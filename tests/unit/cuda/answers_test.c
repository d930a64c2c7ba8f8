/* How gk handles answers that the simulated driver never gives. */
#include "cuda/pool.h"
#include "cuda/kernels.h"
#include "base/error.h"
#include "odd.h"

static CUresult answered; /* by entries that are asked to */
static CUstream sent_on;  /* where something is under way that wasn't waited for; NULL: nowhere */
static const int *locked_page;

static CUresult refuse_graph(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
  return fails_now() ? answered : right->cuGraphInstantiateWithParams(exec, graph, parameters);
}

/* An answer that says nothing about the graph is a failure. After the others the host gates the list. */
ODD(test_not_instantiated) {
  static const struct { CUresult answer; int times; gk_result result; } turns[] = {
      {CUDA_ERROR_OUT_OF_MEMORY, 2, GK_ERROR_MEMORY}, {CUDA_ERROR_LAUNCH_FAILED, 1, GK_ERROR_DEVICE},
      {CUDA_ERROR_INVALID_VALUE, 1, GK_OK}, {CUDA_ERROR_NOT_SUPPORTED, 1, GK_OK}};
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    gk_graph *graph = NULL;
    CUgraph whole;
    odd.cuGraphInstantiateWithParams = refuse_graph;
    answered = turns[k].answer;
    failing = turns[k].times;
    assert_fails(turns[k].result, turns[k].result ? "cuGraphInstantiate of graph looping" : "",
                 gk_graph_create(device, &looping, 0, &graph));
    if (graph)
      assert_fails(GK_ERROR_UNSUPPORTED, "the driver refuses the graph of conditional nodes",
                   gk_cuda_graph(graph, 0, &whole, NULL));
    odd = *right;
    gk_graph_destroy(graph);
  }
}

BEFORE(send, cuMemcpyHtoDAsync, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
       (to, from, bytes, stream), sent_on = stream)
BEFORE(upload, cuGraphUpload, (CUgraphExec exec, CUstream stream), (exec, stream), sent_on = stream)
static CUresult wait_for(CUstream stream) {
  if (fails_now()) return CUDA_ERROR_UNKNOWN;
  if (stream == sent_on) sent_on = NULL;
  return right->cuStreamSynchronize(stream);
}

/* Copies are over when they return. The host copies page-locked memory itself. */
static bool is_of_page(CUdeviceptr memory) { return locked_page && memory - at(locked_page) < 4 * sizeof(int); }
static void expect_apart(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  expect(to + bytes <= from || from + bytes <= to); /* no driver documents the other values */
  expect(!is_of_page(from) && !is_of_page(to));
  sent_on = stream;
}
BEFORE(copy_out, cuMemcpyDtoHAsync, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
       (to, from, bytes, stream), expect_apart(0, from, 0, stream))
BEFORE(copy_within, cuMemcpyDtoDAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
       (to, from, bytes, stream), expect_apart(to, from, bytes, stream))
BEFORE(fill_with, cuMemsetD8Async, (CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream),
       (to, byte, bytes, stream), sent_on = stream)

/* Managed memory as the driver may give it: every context has it, at the host's address. */
static CUresult alloc_dirty(void **memory, size_t bytes, unsigned int flags) {
  expect(flags == (GKI_CU_MEMHOSTALLOC_PORTABLE | GKI_CU_MEMHOSTALLOC_DEVICEMAP));
  const CUresult result = right->cuMemHostAlloc(memory, bytes, flags);
  if (result == CUDA_SUCCESS) memset(*memory, 0xa7, bytes);
  return result;
}

static void watch_streams(void) {
  sent_on = NULL;
  locked_page = NULL;
  odd.cuMemcpyHtoDAsync = send;
  odd.cuGraphUpload = upload;
  odd.cuMemcpyDtoHAsync = copy_out;
  odd.cuMemcpyDtoDAsync = copy_within;
  odd.cuMemsetD8Async = fill_with;
  odd.cuStreamSynchronize = wait_for;
}

/* A launch may be on any stream, and the next graph gets the memory that a graph gives back. */
ODD_IN_MODES(test_sent_copies_are_waited_for) {
  for (int fails = 0; fails < 2; ++fails) {
    gk_graph *graph = NULL;
    watch_streams();
    failing = fails;
    assert_int_equal(gk_graph_create(device, &looping, mode_bits, &graph), fails ? GK_ERROR_DEVICE : GK_OK);
    if (sent_on || failing) fail_msg("fails %d: %p, %d", fails, (void *)sent_on, failing);
    odd = *right;
    gk_graph_destroy(graph);
  }
}

ODD(test_copies_are_waited_for) {
  watch_streams();
  odd.cuMemHostAlloc = alloc_dirty;
  int here[4] = {1, 2, 3, 4}, *there = gk_alloc(device, sizeof here, GK_DEVICE_MEMORY);
  assert_null(sent_on); /* it is zero */
  int *page = gk_alloc(device, sizeof here, GK_HOST_MEMORY);
  for (size_t k = 0; k < GK_COUNT(here); ++k) assert_int_equal(page[k], 0);
  locked_page = page;
  const struct { int *to, *from; size_t count; } turns[] = {
      {there, page, 4}, {page, there, 4}, {there + 2, there, 2}, {there + 1, there, 3}, {there, there + 1, 3},
      {there, there, 4}, {page, page + 1, 3}};
  for (int k = 0; k < 4; ++k) { /* the host touches page-locked memory once a launch is over */
    int *memory = k < 2 ? there : page;
    if (k >= 2) sent_on = native->stream; /* as if a launch were under way */
    assert_ok(k % 2 ? gk_download(device, here, memory, sizeof here) : gk_upload(device, memory, here, sizeof here));
    assert_null(sent_on);
  }
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    sent_on = native->stream;
    assert_ok(gk_copy(device, turns[k].to, turns[k].from, turns[k].count * sizeof(int)));
    assert_null(sent_on);
  }
  assert_ok(gk_copy(device, (char *)there + 7, there, 8)); /* by one byte */
  sim->mark();
  assert_ok(gk_copy(device, (char *)there + 8, there, 8)); /* not at all */
  assert_int_equal(sim->calls("cuMemAlloc"), 0);
}

/* Memory that a graph owns is zero except for what is kept. Where that fails the pool has it again. */
ODD(test_owned_memory_is_filled) {
  int *from = int_on(device, 5), here[4];
  CUdeviceptr memory = 0, again = 0;
  assert_ok(gki_cuda_enter(native));
  gki_cuda_pool_trim(native);
  for (int kept = 0; kept < 2; ++kept) {
    watch_streams();
    assert_ok(gki_cuda_alloc_own(native, at(from), kept ? sizeof *from : 0, sizeof here, &memory));
    assert_null(sent_on);
    odd = *right;
    RIGHT(cu.cuMemcpyDtoHAsync(here, memory, sizeof here, native->stream));
    assert_true(here[0] == (kept ? 5 : 0) && !here[1] && !here[2] && !here[3]);
    gki_cuda_free_device(native, memory);
  }
  odd.cuStreamSynchronize = wait_for;
  failing = 1;
  sim->mark();
  assert_int_equal(gki_cuda_alloc_own(native, 0, 0, sizeof here, &again), GK_ERROR_DEVICE);
  odd = *right;
  assert_ok(gki_cuda_alloc_device(native, sizeof here, "a test", &again));
  assert_int_equal(again, memory);
  assert_int_equal(sim->calls("cuMemAlloc"), 0);
  gki_cuda_free_device(native, again);
  gki_cuda_leave(native);
}

/* Behind a launch on a caller's stream: whichever call fails, it leaves the thread without a context, as before. */
ODD(test_failed_copies_leave_the_context) {
  const CUcontext context = enter_context(device);
  const CUstream stream = new_stream();
  discard(context);
  int *x = int_on(device, 0), *left = int_on(device, 0), here = 0;
  gk_graph *graph = NEW_GRAPH(device, &looping, 0, {X, x}, {LEFT, left});
  FOR_EACH_CALL(k, failed) {
    CUcontext now;
    set_int(device, left, 1);
    assert_ok(gk_launch_on(graph, 0, stream));
    (void)FAILING(k, CUDA_ERROR_UNKNOWN, failed, gk_download(device, &here, x, sizeof here));
    RIGHT(cu.cuCtxGetCurrent(&now));
    assert_null(now);
    assert_ok(gk_wait(graph, NULL));
  }
  enter_context(device);
  discard(stream);
}

/* A device that is at work isn't lost, although other calls fail. */
ODD(test_busy_is_alive) {
  int *x = int_on(device, 0);
  gk_graph *graph = NEW_GRAPH(device, &looping, 0, {X, x}, {LEFT, int_on(device, 3)});
  sim->hold(1);
  assert_ok(gk_launch(graph, 0));
  fail_call(3, CUDA_ERROR_UNKNOWN); /* behind the context's push and the mode's exchange */
  assert_no_memory(device, "");
  assert_string_equal(sim->failed(), "cuMemAlloc");
  sim->hold(0);
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(device, x), 3);
}

static CUresult push(CUcontext context) { return fails_now() ? answered : right->cuCtxPushCurrent(context); }

/* A context that sometimes can't be entered isn't lost. One that no longer exists is lost. */
ODD(test_not_entered) {
  odd.cuCtxPushCurrent = push;
  answered = CUDA_ERROR_UNKNOWN;
  failing = 3; /* and when gk asks whether it is lost */
  assert_no_memory(device, "");
  assert_int_equal(failing, 0);
  assert_non_null(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  answered = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  failing = 3;
  assert_no_memory(device, "the context that gk works in was destroyed");
  failing = 0;
  assert_no_memory(device, "is lost; close it");
  assert_ptr_equal(native->driver, gki_cuda_driver_of_gone());
  native->driver = &odd; /* the context exists, and can be given back */
}

static CUresult query_late(UNUSED CUstream stream) {
  snprintf(native->loss.why, sizeof native->loss.why, "another thread's call"); /* and finds out */
  atomic_store(&native->loss.is_lost, true);
  return CUDA_ERROR_UNKNOWN;
}
static CUresult alloc_nothing(UNUSED CUdeviceptr *memory, UNUSED size_t bytes) { return CUDA_ERROR_LAUNCH_FAILED; }

static gk_result enter_to_launch(bool on_stream, CUstream stream, gki_cuda_stream_id *now) {
  const gk_launch_args launch = {.on_stream = on_stream, .stream = stream};
  const gki_cuda_stream_id none = {NULL, GKI_CUDA_STREAM_UNKNOWN};
  bool pushed = false;
  gki_begin();
  const gk_result result = gki_cuda_enter_to_launch(native, &launch, &none, now, &pushed);
  if (result == GK_OK && pushed) gki_cuda_leave_unrelaxed(native);
  return result;
}

/* If several calls find a device lost at the same time, the first call's reason stays. */
ODD(test_lost_to_several) {
  gki_cuda_stream_id now;
  odd.cuStreamQuery = query_late;
  odd.cuMemAlloc = alloc_nothing;
  assert_no_memory(device, "");
  assert_no_memory(device, "It began with: another thread's call");
  assert_fails(GK_ERROR_DEVICE, "It began with: another thread's call", enter_to_launch(true, NULL, &now));
}

static CUresult await_context(void) { return answered; }
static CUresult say_implicit(UNUSED CUstream stream, UNUSED CUstreamCaptureStatus *status) {
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

/* A call that a capture forbids doesn't mean that the device failed. */
ODD(test_wait_for_all_is_refused) {
  static const char by_capture[] = "the launches of graph whole meanwhile (and that capture is invalid now); end the";
  static const struct { CUresult answer; gk_result result; const char *words; } turns[] = {
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, GK_ERROR_INVALID, by_capture},
      {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, GK_ERROR_INVALID, by_capture},
      {CUDA_ERROR_UNKNOWN, GK_ERROR_DEVICE, "a test: cuCtxSynchronize for graph whole"}};
  const gk_plan plan = {.name = "whole"};
  assert_ok(gki_cuda_enter(native));
  odd.cuCtxSynchronize = await_context;
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    answered = turns[k].answer;
    gki_begin();
    assert_fails(turns[k].result, turns[k].words, gki_cuda_await_all(native, &plan, "a test"));
  }
  odd.cuStreamIsCapturing = say_implicit;
  assert_true(gki_cuda_is_alive(native));
  gki_cuda_leave(native);
}

static CUresult say_free(UNUSED CUstream stream, CUstreamCaptureStatus *status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
static CUresult say_no_id(UNUSED CUstream stream, unsigned long long *id) {
  *id = 7;
  return CUDA_ERROR_UNKNOWN;
}

/* Whether a stream that is entered again is known to be the same one. */
static bool is_same(bool on_stream, CUstream stream, gki_cuda_stream_id *id) {
  assert_ok(enter_to_launch(on_stream, stream, id));
  return gki_cuda_is_same(id, id);
}

/* A stream that may be another one each time never counts as the one before, though its handle is the same. */
ODD(test_streams_are_told_apart) {
  gki_cuda_stream_id id;
  odd.cuStreamIsCapturing = say_free; /* streams per thread aren't simulated */
  assert_true(is_same(false, NULL, &id));
  assert_true(id.stream == native->stream && id.id == 0);
  assert_true(is_same(true, NULL, &id));
  assert_true((uintptr_t)id.stream == GKI_CU_STREAM_LEGACY && id.id == 0);
  assert_true(is_same(true, native->stream, &id));
  assert_int_equal(id.id, 0); /* as in a launch that names no stream */
  assert_false(is_same(true, (CUstream)(uintptr_t)GKI_CU_STREAM_PER_THREAD, &id));
  enter_context(device);
  const CUstream stream = new_stream();
  assert_true(is_same(true, stream, &id));
  odd.cuStreamGetId = say_no_id;
  assert_false(is_same(true, stream, &id));
  odd.cuStreamGetId = NULL;
  assert_false(is_same(true, stream, &id));
}

static atomic_bool refuses, refusing; /* from the next launch of a graph until the test says so */
static CUresult launch_graph(CUgraphExec exec, CUstream stream) {
  const CUresult result = right->cuGraphLaunch(exec, stream);
  if (refuses) refusing = true;
  return result;
}
static CUresult ask_event(CUevent event) { return refusing ? CUDA_ERROR_UNKNOWN : right->cuEventQuery(event); }
static CUresult await_event(CUevent event) { return refusing ? CUDA_ERROR_UNKNOWN : right->cuEventSynchronize(event); }
static CUresult push_nothing(CUcontext context) {
  return refusing ? CUDA_ERROR_UNKNOWN : right->cuCtxPushCurrent(context);
}

/* After the launch, the wait for the graph fails, or the context in which its flag would be read can't be entered. */
static void run_and_refuse(gk_graph *graph, bool context, CUstream stream) {
  odd.cuGraphLaunch = launch_graph;
  if (context) odd.cuCtxPushCurrent = push_nothing;
  else odd.cuEventQuery = ask_event, odd.cuEventSynchronize = await_event;
  refuses = true;
  assert_fails(GK_ERROR_DEVICE, "CUDA_ERROR_UNKNOWN", run_on_stream(graph, 0, stream));
  refuses = refusing = false;
}

/* A bad count that couldn't be asked for belongs to that launch, and to no later one. */
ODD_IN_MODES(test_bad_count_of_a_launch_that_failed) {
  enum { FROM = 1, WHEN, ONES, TWOS, OWN, TO };
  static const gk_slot_desc counted_slots[] = {GK_BUFFER(FROM, int), GK_BUFFER(WHEN, int), GK_BUFFER(ONES, int),
                                               GK_BUFFER(TWOS, int), GK_OWN(OWN, int, 2), GK_BUFFER(TO, int)};
  LIST_OVER(counted_slots, counted, GK_RUN(total, GK_ONE, FROM, TO), GK_FILL(OWN, ONES, 1), GK_IF(WHEN),
            GK_FILL(OWN, TWOS, 2), GK_END);
  for (int context = 0; context < 2; ++context) {
    int *ones = int_on(device, 100), *twos = int_on(device, 1);
    gk_graph *graph = NEW_GRAPH(device, &counted, mode_bits, {FROM, int_on(device, 1)}, {TO, int_on(device, 0)},
                                {WHEN, int_on(device, 1)}, {ONES, ones}, {TWOS, twos});
    run_and_refuse(graph, context, NULL);
    assert_ok(gk_resize(graph, OWN, 3));
    set_int(device, ones, 3);
    run_to_end(graph, 0);
    assert_int_equal(int_at(device, gk_bound(graph, OWN)), 2);
    set_int(device, twos, 100);
    for (int k = 0; k < 2; ++k) assert_fails(GK_ERROR_INVALID, "task 3 (OWN = 2)", run_on_stream(graph, 0, NULL));
  }
}

/* The device goes on when something waits for it. */
BEFORE(hold_until_event, cuEventSynchronize, (CUevent event), (event), sim->hold(0))
BEFORE(hold_until_stream, cuStreamSynchronize, (CUstream stream), (stream), sim->hold(0))
static CUresult await_no_stream(UNUSED CUstream stream) { return CUDA_ERROR_UNKNOWN; }
static CUresult await_no_event(UNUSED CUevent event) { return CUDA_ERROR_UNKNOWN; }

static CUstream waited_on; /* the first stream on which an event is recorded */
BEFORE(record_event, cuEventRecord, (CUevent event, CUstream stream), (event, stream),
       if (!waited_on) waited_on = stream)

/* fails: how many launches in a row can't be waited for. The first of them is on that stream. */
static void run_behind(gk_device *device, int fails, CUstream stream) {
  LIST(yielding, GK_RUN(add, N, X, A), GK_CHECKPOINT(HERE, LEFT), GK_END);
  int *x[2] = {int_on(device, 0), int_on(device, 0)};
  gk_graph *graph = NEW_GRAPH(device, &yielding, mode_bits, {LEFT, int_on(device, 0)}, {X, x[0]});
  sim->hold(1);
  run_and_refuse(graph, true, stream);
  odd.cuEventSynchronize = await_no_event;
  odd.cuStreamSynchronize = await_no_stream;
  for (int k = 1; k < fails; ++k) assert_fails(GK_ERROR_DEVICE, "waiting for", run_on_stream(graph, 0, NULL));
  odd.cuEventSynchronize = hold_until_event;
  odd.cuStreamSynchronize = hold_until_stream;
  odd.cuEventRecord = record_event;
  waited_on = NULL;
  BIND(graph, {X, x[1]});
  run_to_end(graph, 0);
  if (stream && mode_bits) assert_ptr_equal(waited_on, stream);
  for (int k = 0; k < 2; ++k) assert_int_equal(int_at(device, x[k]), 1);
  discard(graph);
}

/* The slots of a launch that couldn't be waited for stay as they are until it is over, however often the wait fails. */
ODD_IN_MODES(test_slots_of_a_launch_that_failed) {
  for (int fails = 1; fails < 3; ++fails) {
    run_behind(device, fails, NULL);
    enter_context(device);
    run_behind(device, fails, new_stream());
    discard_all();
  }
}

static CUresult mark_nothing(CUevent event, CUstream stream) {
  return refusing ? CUDA_ERROR_OUT_OF_MEMORY : right->cuEventRecord(event, stream);
}

/* A launch whose end can't be marked is waited for, and a failure of that wait isn't the event's. */
ODD(test_launch_that_is_neither_marked_nor_waited_for) {
  const CUcontext context = enter_context(device);
  const CUstream stream = new_stream();
  for (int on_stream = 0; on_stream < 2; ++on_stream) {
    gk_graph *graph = NEW_GRAPH(device, &straight, 0, {X, int_on(device, 0)});
    odd.cuGraphLaunch = launch_graph;
    odd.cuEventRecord = mark_nothing;
    odd.cuStreamSynchronize = await_no_stream;
    refuses = true;
    assert_fails(GK_ERROR_DEVICE, "waiting for the launch", run_on_stream(graph, 0, on_stream ? stream : NULL));
    refuses = refusing = false;
    odd = *right;
    discard(graph);
  }
  discard(stream);
  discard(context);
}

static int most_threads, blocks_at_once;
static unsigned asked_for;
static CUresult say_threads(int *value, CUfunction_attribute attribute, CUfunction function) {
  const CUresult result = right->cuFuncGetAttribute(value, attribute, function);
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) *value = most_threads;
  return result;
}
static CUresult say_blocks(int *blocks, UNUSED CUfunction function, int threads, size_t shared) {
  expect(shared == 0);
  asked_for = (unsigned)threads;
  *blocks = blocks_at_once;
  return CUDA_SUCCESS;
}

/* Whole warps, no more of them than a kernel's registers allow. */
ODD(test_blocks_of_kernels) {
  static const struct { int most, at_once; unsigned threads, blocks; } turns[] = {
      {1024, 8, 256, 8}, {256, 1, 256, 1}, {255, 3, 224, 3}, {64, 2, 64, 2}, {33, 2, 32, 2}, {31, 2, 32, 2},
      {1024, 0, 256, 1}};
  odd.cuFuncGetAttribute = say_threads;
  odd.cuOccupancyMaxActiveBlocksPerMultiprocessor = say_blocks;
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    void *code = NULL;
    most_threads = turns[k].most;
    blocks_at_once = turns[k].at_once;
    assert_ok(gki_cuda_load(native, &add, &code));
    const gki_cuda_kernel *made = code;
    assert_int_equal(made->threads, turns[k].threads);
    assert_int_equal(asked_for, made->threads);
    assert_int_equal(made->blocks, turns[k].blocks * (unsigned)native->multiprocessors);
    gki_cuda_unload(native, code);
  }
}

int main(UNUSED int count, char **words) { return run_on_simgpu(words); }
