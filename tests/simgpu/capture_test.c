/* Captures of streams into graphs, and into the bodies of conditional nodes. */
#include "graph_world.h"

#define INVALIDATED CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
#define UNSUPPORTED CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
#define IMPLICIT CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
#define THREAD_LOCAL CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
#define GLOBAL CU_STREAM_CAPTURE_MODE_GLOBAL

static void expect_status(CUstream where, CUstreamCaptureStatus wanted) {
  assert_int_equal(capture_status(where), wanted);
}

/* The capture's graph, and the only node that the next one would depend on. */
static CUgraphNode capture_info(CUstreamCaptureStatus wanted, CUgraph *into) {
  CUstreamCaptureStatus status;
  const CUgraphNode *after = NULL;
  const CUgraphEdgeData *edges = NULL;
  size_t count = 0;
  cuuint64_t id = 0;
  RIGHT(cu.cuStreamGetCaptureInfo(stream, &status, &id, into, &after, &edges, &count));
  assert_int_equal(status, wanted);
  return count == 1 ? after[0] : NULL;
}

CASE(capture_becomes_a_graph) {
  CUgraph captured;
  RIGHT(cu.cuGraphDestroy(graph));
  capture_info(CU_STREAM_CAPTURE_STATUS_NONE, NULL);
  begin_capture(stream, THREAD_LOCAL);
  put(stream, 'a');
  RIGHT(cu.cuMemsetD8Async(AT(counters), 1, 8, stream));
  RIGHT(cu.cuMemcpyHtoDAsync(AT(counters + 1), counters, 8, stream));
  put(stream, 'b');
  assert_non_null(capture_info(CU_STREAM_CAPTURE_STATUS_ACTIVE, &captured));
  RIGHT(cu.cuStreamEndCapture(stream, &graph));
  assert_ptr_equal(graph, captured);
  assert_string_equal(trace, ""); /* nothing ran */
  expect_trace("ab");
  assert_int_equal(counters[1], UINT64_C(0x0101010101010101));
}

static void append(void *data) { *strchr(data, 0) = 'h'; }

CASE(host_function_is_captured) {
  RIGHT(cu.cuGraphDestroy(graph));
  WRONG(CUDA_ERROR_NOT_SUPPORTED, cu.cuLaunchHostFunc(stream, append, trace));
  begin_capture(stream, THREAD_LOCAL);
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchHostFunc(stream, NULL, trace));
  put(stream, 'a');
  RIGHT(cu.cuLaunchHostFunc(stream, append, trace));
  RIGHT(cu.cuStreamEndCapture(stream, &graph));
  assert_string_equal(trace, "");
  expect_trace("ah");
}

CASE(capture_goes_into_a_body) {
  CUgraph body = add_body(), ended;
  CUgraphNode first = add_log(body, NULL, 'a');
  RIGHT(cu.cuStreamBeginCaptureToGraph(stream, body, &first, NULL, 1, RELAXED));
  put(stream, 'b');
  RIGHT(cu.cuMemsetD8Async(AT(counters), 1, 8, stream));
  CUgraphNode last = capture_info(CU_STREAM_CAPTURE_STATUS_ACTIVE, NULL);
  RIGHT(cu.cuStreamEndCapture(stream, &ended));
  assert_ptr_equal(ended, body);
  add_log(body, last, 'c');
  expect_trace("abc");
  assert_int_equal(sim->alive(SIMGPU_GRAPHS), 1);
}

CASE(begin_is_checked) {
  CUgraphNode outside = add_log(graph, NULL, 'a');
  CUgraph body = add_body();
  end_capture(stream, CUDA_ERROR_ILLEGAL_STATE);
  WRONG(UNSUPPORTED, cu.cuStreamBeginCapture(NULL, GLOBAL));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuStreamBeginCaptureToGraph(stream, body, &outside, NULL, 1, GLOBAL));
  begin_capture(stream, THREAD_LOCAL);
  WRONG(CUDA_ERROR_ILLEGAL_STATE, cu.cuStreamBeginCapture(stream, GLOBAL));
  end_capture(stream, CUDA_SUCCESS);
}

/* ---- calls that spoil a capture ---- */

static CUgraphExec made;
static CUstream beside;
static union { CUdeviceptr memory; void *pinned; CUmodule module; CUcontext found; CUgraphExec exec;
               unsigned long long id; } out;

static CUresult waits(void) { return cu.cuStreamSynchronize(stream); }
static CUresult asks(void) { return cu.cuStreamQuery(stream); }
static CUresult allocates(void) { return cu.cuMemAlloc(&out.memory, 8); }
static CUresult pins(void) { return cu.cuMemHostAlloc(&out.pinned, 8, 0); }
static CUresult loads(void) { return cu.cuModuleLoadDataEx(&out.module, "simstub", 0, NULL, NULL); }
static CUresult copies_pageable(void) { return cu.cuMemcpyHtoDAsync(AT(counters), &(uint64_t){0}, 8, stream); }
static CUresult copies_beside(void) { return cu.cuMemcpyHtoDAsync(AT(counters), &(uint64_t){0}, 8, beside); }
static CUresult asks_context(void) { return cu.cuStreamGetCtx(stream, &out.found); }
static CUresult asks_id(void) { return cu.cuStreamGetId(stream, &out.id); }
static CUresult unloads(void) { return cu.cuModuleUnload(module); }
static CUresult instantiates(void) { return cu.cuGraphInstantiateWithFlags(&out.exec, graph, 0); }
static CUresult destroys(void) { return cu.cuGraphExecDestroy(made); }
static CUresult uploads_there(void) { return cu.cuGraphUpload(made, stream); }
static CUresult uploads_beside(void) { return cu.cuGraphUpload(made, beside); }
static CUresult launches(void) { return cu.cuGraphLaunch(made, stream); }

#define SPOILER(call) {#call, call}
CASE(calls_that_spoil_a_capture) {
  static const struct { const char *name; CUresult (*call)(void); } spoilers[] = {
    SPOILER(waits), SPOILER(asks), SPOILER(allocates), SPOILER(pins), SPOILER(loads), SPOILER(copies_pageable),
    SPOILER(copies_beside), SPOILER(asks_context), SPOILER(asks_id), SPOILER(unloads), SPOILER(instantiates),
    SPOILER(destroys), SPOILER(uploads_there), SPOILER(uploads_beside), SPOILER(launches)};
  add_log(graph, NULL, 'd');
  made = exec_of();
  RIGHT(cu.cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
  for (size_t k = 0; k < sizeof spoilers / sizeof *spoilers; ++k) {
    begin_capture(stream, THREAD_LOCAL);
    put(stream, 'a');
    CUresult result = spoilers[k].call();
    if (result != UNSUPPORTED) fail_msg("%s: %d", spoilers[k].name, (int)result);
    capture_info(CU_STREAM_CAPTURE_STATUS_INVALIDATED, NULL);
    WRONG(INVALIDATED, LAUNCH(stream, "log", 'b'));
    end_capture(stream, INVALIDATED);
    capture_info(CU_STREAM_CAPTURE_STATUS_NONE, NULL);
  }
  put(stream, 'c'); /* the stream and the exec are as before */
  run(made);
  assert_string_equal(trace, "cd");
  RIGHT(cu.cuStreamDestroy(beside));
}

CASE(no_capture_survives_a_wait_for_the_context) {
  begin_capture(stream, RELAXED);
  WRONG(UNSUPPORTED, cu.cuCtxSynchronize());
  end_capture(stream, INVALIDATED);
  RIGHT(cu.cuCtxSynchronize());
}

static CUresult allocates_and_frees(void) {
  CUresult result = allocates();
  return result == CUDA_SUCCESS ? cu.cuMemFree(out.memory) : result;
}

CASE(relaxed_capture_forbids_less) {
  begin_capture(stream, RELAXED);
  RIGHT(allocates_and_frees());
  put(stream, 'a');
  end_capture(stream, CUDA_SUCCESS);
}

CASE(modes_bind_other_threads) {
  for (int mode = 0; mode < 3; ++mode) {
    begin_capture(stream, (CUstreamCaptureMode)mode);
    WRONG(mode == GLOBAL ? UNSUPPORTED : CUDA_SUCCESS, elsewhere(allocates_and_frees));
    end_capture(stream, mode == GLOBAL ? INVALIDATED : CUDA_SUCCESS);
  }
}

static CUresult ends(void) {
  CUgraph ended = NULL;
  CUresult result = cu.cuStreamEndCapture(stream, &ended);
  return result == CUDA_SUCCESS ? cu.cuGraphDestroy(ended) : result;
}

CASE(capture_ends_in_the_thread_where_it_began) {
  begin_capture(stream, THREAD_LOCAL);
  WRONG(908, elsewhere(ends));
  RIGHT(ends());
  begin_capture(stream, RELAXED);
  RIGHT(elsewhere(ends));
}

CASE(spoilt_body_is_never_used_again) {
  CUgraph body = add_body();
  CUgraphNode node;
  size_t count;
  begin_capture_to(body, THREAD_LOCAL);
  WRONG(UNSUPPORTED, cu.cuStreamSynchronize(stream));
  end_capture(stream, INVALIDATED);
  BREAKS(CUDA_ERROR_INVALID_VALUE, "invalid-capture", cu.cuGraphGetNodes(body, NULL, &count));
  BREAKS(CUDA_ERROR_INVALID_VALUE, "invalid-capture", cu.cuGraphAddEmptyNode(&node, graph, NULL, 0));
  BREAKS(CUDA_ERROR_INVALID_VALUE, "invalid-capture", cu.cuGraphDestroy(graph)); /* the driver has freed its content */
  assert_int_equal(sim->alive(SIMGPU_GRAPHS), 0);
  graph = make_graph();
}

CASE(captured_event_has_no_time) {
  CUevent event;
  RIGHT(cu.cuEventCreate(&event, 0));
  begin_capture(stream, THREAD_LOCAL);
  RIGHT(cu.cuEventRecord(event, stream));
  WRONG(907, cu.cuEventQuery(event));
  WRONG(907, cu.cuEventSynchronize(event));
  end_capture(stream, CUDA_SUCCESS);
  RIGHT(cu.cuEventRecord(event, stream));
  RIGHT(cu.cuEventSynchronize(event));
  RIGHT(cu.cuEventDestroy(event));
}

CASE(ends_in_the_middle_of_a_capture) {
  CUstream third;
  RIGHT(cu.cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
  begin_capture(third, THREAD_LOCAL);
  put(third, 'a');
  BREAKS(CUDA_SUCCESS, "capture", cu.cuStreamDestroy(third));
  assert_int_equal(sim->alive(SIMGPU_GRAPHS), 1);
  CUgraph into = make_graph();
  begin_capture_to(into, RELAXED);
  BREAKS(CUDA_ERROR_INVALID_VALUE, "capture", cu.cuGraphDestroy(into));
  end_capture(stream, CUDA_SUCCESS);
}

/* ---- forks and joins ---- */

static CUstream other;
static CUevent forked, joined;

static int begin_fork_of(unsigned flags) {
  begin(NULL);
  RIGHT(cu.cuStreamCreate(&other, flags));
  RIGHT(cu.cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING));
  RIGHT(cu.cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
  return 0;
}

static int begin_fork(UNUSED void **state) { return begin_fork_of(CU_STREAM_NON_BLOCKING); }
static int begin_blocking_fork(UNUSED void **state) { return begin_fork_of(CU_STREAM_DEFAULT); }

static int end_fork(void **state) {
  cu.cuEventDestroy(forked);
  cu.cuEventDestroy(joined);
  cu.cuStreamDestroy(other);
  return end(state);
}

#define FORK_TEST(name) TEST_WITH(name, begin_fork, end_fork)

/* The captured stream records the event, then the other one waits for it. */
static CUresult fork_to(CUstream where) {
  RIGHT(cu.cuEventRecord(forked, stream));
  return cu.cuStreamWaitEvent(where, forked, 0);
}

FORK_TEST(another_stream_is_drawn_in) {
  size_t count = 0;
  RIGHT(cu.cuGraphDestroy(graph));
  begin_capture(stream, THREAD_LOCAL);
  put(stream, 'a');
  RIGHT(fork_to(other));
  expect_status(other, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  WRONG(903, cu.cuStreamEndCapture(other, &graph));
  put(other, 'b');
  put(stream, 'c');
  RIGHT(cu.cuEventRecord(joined, other));
  RIGHT(cu.cuStreamWaitEvent(stream, joined, 0));
  put(stream, 'd');
  RIGHT(cu.cuStreamEndCapture(stream, &graph));
  expect_status(other, CU_STREAM_CAPTURE_STATUS_NONE);
  RIGHT(cu.cuGraphGetNodes(graph, NULL, &count));
  assert_int_equal(count, 4);
  RIGHT(cu.cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
  assert_int_equal(count, 4);
  const char *ran = trace_of(exec_of());
  assert_true(strcmp(ran, "abcd") == 0 || strcmp(ran, "acbd") == 0);
  WRONG(CUDA_ERROR_CAPTURED_EVENT, cu.cuStreamWaitEvent(other, forked, 0)); /* of a capture that is over */
}

FORK_TEST(fork_has_to_be_joined) {
  for (int work = 0; work < 2; ++work) {
    begin_capture(stream, THREAD_LOCAL);
    put(stream, 'a');
    RIGHT(fork_to(other));
    if (work) put(other, 'b'); /* without it there is nothing to join */
    end_capture(stream, work ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED : CUDA_SUCCESS);
    expect_status(other, CU_STREAM_CAPTURE_STATUS_NONE);
  }
}

FORK_TEST(captures_stay_apart) {
  RIGHT(cu.cuEventRecord(joined, other));
  begin_capture(stream, THREAD_LOCAL);
  WRONG(905, cu.cuStreamWaitEvent(stream, joined, 0)); /* from outside */
  end_capture(stream, INVALIDATED);
  begin_capture(stream, THREAD_LOCAL);
  begin_capture(other, THREAD_LOCAL);
  WRONG(902, fork_to(other));
  end_capture(other, INVALIDATED);
  end_capture(stream, INVALIDATED);
  begin_capture(stream, THREAD_LOCAL);
  WRONG(IMPLICIT, fork_to(NULL));
  end_capture(stream, INVALIDATED);
}

/* Adds nodes as a library does by itself, such as conditional ones. */
CASE(nodes_are_added_by_hand) {
  RIGHT(cu.cuGraphDestroy(graph));
  WRONG(CUDA_ERROR_ILLEGAL_STATE, cu.cuStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, 1));
  begin_capture(stream, THREAD_LOCAL);
  put(stream, 'a');
  CUgraphNode last = capture_info(CU_STREAM_CAPTURE_STATUS_ACTIVE, &graph);
  conditional added = add_if(graph, last, handle_of(1));
  add_log(added.body, NULL, 'b');
  RIGHT(cu.cuStreamUpdateCaptureDependencies(stream, &added.node, NULL, 1, 1));
  put(stream, 'c');
  RIGHT(cu.cuStreamEndCapture(stream, &graph));
  expect_trace("abc");
}

/* ---- threads and streams that a capture binds ---- */

static CUstreamCaptureMode exchange(CUstreamCaptureMode mode) {
  RIGHT(cu.cuThreadExchangeStreamCaptureMode(&mode));
  return mode;
}

/* An unsafe call in this mode of the thread, which is global at first. */
static CUstreamCaptureMode mode_of_thread;
static CUresult queries(void) {
  assert_int_equal(exchange(mode_of_thread), GLOBAL);
  CUresult result = cu.cuEventQuery(forked);
  if (result == CUDA_SUCCESS) result = cu.cuStreamSynchronize(other);
  assert_int_equal(exchange(GLOBAL), mode_of_thread);
  return result;
}

FORK_TEST(threads_may_be_relaxed) {
  CUstreamCaptureMode wrong = (CUstreamCaptureMode)3;
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuThreadExchangeStreamCaptureMode(NULL));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuThreadExchangeStreamCaptureMode(&wrong));
  for (int k = 0; k < 3 * 3 * 2; ++k) {
    const CUstreamCaptureMode capture = (CUstreamCaptureMode)(k / 6), mode = (CUstreamCaptureMode)(k / 2 % 3);
    const bool here = k % 2;
    const bool spoils = capture != RELAXED && mode != RELAXED && (here || (capture == GLOBAL && mode == GLOBAL));
    mode_of_thread = mode;
    begin_capture(stream, capture);
    WRONG(spoils ? UNSUPPORTED : CUDA_SUCCESS, here ? queries() : elsewhere(queries));
    end_capture(stream, spoils ? INVALIDATED : CUDA_SUCCESS);
  }
}

/* While a blocking stream is captured, a query of the default stream fails, and a use also spoils the capture. */
TEST_WITH(default_stream_is_unusable, begin_blocking_fork, end_fork) {
  const CUstream legacy = (CUstream)(uintptr_t)GKI_CU_STREAM_LEGACY;
  CUstreamCaptureStatus status;
  for (int use = 0; use < 4; ++use) {
    begin_capture(other, RELAXED);
    WRONG(IMPLICIT, cu.cuStreamIsCapturing(NULL, &status));
    WRONG(IMPLICIT, cu.cuStreamGetCaptureInfo(legacy, &status, NULL, NULL, NULL, NULL, NULL));
    if (use == 1) WRONG(IMPLICIT, cu.cuEventRecord(forked, NULL));
    if (use == 2) WRONG(IMPLICIT, cu.cuStreamSynchronize(NULL));
    if (use == 3) WRONG(IMPLICIT, cu.cuCtxSynchronize());
    expect_status(other, use ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE);
    end_capture(other, use ? INVALIDATED : CUDA_SUCCESS);
  }
  expect_status(NULL, CU_STREAM_CAPTURE_STATUS_NONE);
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
