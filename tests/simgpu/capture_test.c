/* Captures of streams into graphs, and into the bodies of conditional nodes. */
#include "graph_world.h"
#include <pthread.h>

static void put(char letter) {
  uint64_t number = (uint64_t)letter;
  void *parameters[] = {&number};
  RIGHT(cu.cuLaunchKernel(kernel("log"), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static CUstreamCaptureStatus status_of(CUgraph *into, CUgraphNode *last) {
  CUstreamCaptureStatus status;
  const CUgraphNode *after = NULL;
  const CUgraphEdgeData *edges = NULL;
  size_t count = 0;
  cuuint64_t id = 0;
  RIGHT(cu.cuStreamGetCaptureInfo(stream, &status, &id, into, &after, &edges, &count));
  if (last) *last = count == 1 ? after[0] : NULL;
  return status;
}

static void begin_capture(void) { RIGHT(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)); }

CASE(capture_becomes_a_graph) {
  CUgraph captured;
  CUgraphExec exec;
  RIGHT(cu.cuGraphDestroy(graph));
  assert_int_equal(status_of(NULL, NULL), CU_STREAM_CAPTURE_STATUS_NONE);
  begin_capture();
  put('a');
  RIGHT(cu.cuMemsetD8Async((CUdeviceptr)(uintptr_t)counters, 1, 8, stream));
  RIGHT(cu.cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)(counters + 1), counters, 8, stream));
  put('b');
  CUgraphNode last;
  assert_int_equal(status_of(&captured, &last), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  assert_non_null(last);
  RIGHT(cu.cuStreamEndCapture(stream, &graph));
  assert_ptr_equal(graph, captured);
  assert_string_equal(trace, ""); /* nothing ran */
  exec = exec_of();
  assert_string_equal(trace_of(exec), "ab");
  assert_int_equal(counters[1], UINT64_C(0x0101010101010101));
  RIGHT(cu.cuGraphExecDestroy(exec));
}

static void append(void *data) {
  char *end = data;
  while (*end) ++end;
  *end = 'h';
}

CASE(host_function_is_captured) {
  RIGHT(cu.cuGraphDestroy(graph));
  WRONG(CUDA_ERROR_NOT_SUPPORTED, cu.cuLaunchHostFunc(stream, append, trace));
  begin_capture();
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchHostFunc(stream, NULL, trace));
  put('a');
  RIGHT(cu.cuLaunchHostFunc(stream, append, trace));
  RIGHT(cu.cuStreamEndCapture(stream, &graph));
  assert_string_equal(trace, "");
  expect_trace("ah");
}

CASE(capture_goes_into_a_body) {
  CUgraph body, ended;
  CUgraphNode last;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  CUgraphNode first = add_log(body, NULL, 'a');
  RIGHT(cu.cuStreamBeginCaptureToGraph(stream, body, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
  put('b');
  RIGHT(cu.cuMemsetD8Async((CUdeviceptr)(uintptr_t)counters, 1, 8, stream));
  assert_int_equal(status_of(NULL, &last), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  RIGHT(cu.cuStreamEndCapture(stream, &ended));
  assert_ptr_equal(ended, body);
  add_log(body, last, 'c');
  expect_trace("abc");
  assert_int_equal(sim->alive(SIMGPU_GRAPHS), 1);
}

CASE(begin_is_checked) {
  CUgraph body, ended;
  CUgraphNode outside = add_log(graph, NULL, 'a');
  add_condition(graph, NULL, handle_of(1), IF, &body);
  WRONG(CUDA_ERROR_ILLEGAL_STATE, cu.cuStreamEndCapture(stream, &ended));
  WRONG(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
  WRONG(CUDA_ERROR_INVALID_VALUE,
        cu.cuStreamBeginCaptureToGraph(stream, body, &outside, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
  begin_capture();
  WRONG(CUDA_ERROR_ILLEGAL_STATE, cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  RIGHT(cu.cuStreamEndCapture(stream, &ended));
  RIGHT(cu.cuGraphDestroy(ended));
}

/* Each of them spoils a capture. */
static CUresult waits(void) { return cu.cuStreamSynchronize(stream); }
static CUresult asks(void) { return cu.cuStreamQuery(stream); }
static CUresult allocates(void) {
  CUdeviceptr memory;
  return cu.cuMemAlloc(&memory, 8);
}
static CUresult pins(void) {
  void *memory;
  return cu.cuMemHostAlloc(&memory, 8, 0);
}
static CUresult loads(void) {
  CUmodule none;
  return cu.cuModuleLoadDataEx(&none, "simstub", 0, NULL, NULL);
}
static CUresult copies_pageable(void) {
  static uint64_t here;
  return cu.cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)counters, &here, 8, stream);
}
static CUresult asks_whose(void) {
  CUcontext found;
  return cu.cuStreamGetCtx(stream, &found);
}
static CUresult asks_which(void) {
  unsigned long long id;
  return cu.cuStreamGetId(stream, &id);
}
static CUresult unloads(void) { return cu.cuModuleUnload(module); }
static CUresult instantiates(void) {
  CUgraphExec exec;
  return cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
}
static CUgraphExec made;
static CUresult destroys(void) { return cu.cuGraphExecDestroy(made); }
static CUresult uploads_there(void) { return cu.cuGraphUpload(made, stream); }
static CUstream beside;
static CUresult uploads_beside(void) { return cu.cuGraphUpload(made, beside); }

CASE(what_spoils_a_capture) {
  static CUresult (*const spoilers[])(void) = {waits,  asks,    allocates,    pins, loads, copies_pageable, asks_whose,
                                                asks_which, unloads, instantiates, destroys, uploads_there,
                                                uploads_beside};
  add_log(graph, NULL, 'd');
  made = exec_of();
  RIGHT(cu.cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
  for (size_t k = 0; k < sizeof spoilers / sizeof *spoilers; ++k) {
    CUgraph ended = graph;
    begin_capture();
    put('a');
    WRONG(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, spoilers[k]());
    assert_int_equal(status_of(NULL, NULL), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    uint64_t number = 'b';
    void *parameters[] = {&number};
    WRONG(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
          cu.cuLaunchKernel(kernel("log"), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    WRONG(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &ended));
    assert_null(ended);
    assert_int_equal(status_of(NULL, NULL), CU_STREAM_CAPTURE_STATUS_NONE);
  }
  put('c'); /* the stream is as it was, and so is the exec */
  RIGHT(cu.cuGraphLaunch(made, stream));
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_string_equal(trace, "cd");
  RIGHT(cu.cuGraphExecDestroy(made));
  RIGHT(cu.cuStreamDestroy(beside));
}

CASE(relaxed_capture_forbids_less) {
  CUdeviceptr memory;
  CUgraph ended;
  RIGHT(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  RIGHT(cu.cuMemAlloc(&memory, 8));
  RIGHT(cu.cuMemFree(memory));
  put('a');
  RIGHT(cu.cuStreamEndCapture(stream, &ended));
  RIGHT(cu.cuGraphDestroy(ended));
}

static void *allocate_elsewhere(void *data) {
  CUdeviceptr memory = 0;
  RIGHT(cu.cuCtxPushCurrent(context));
  *(CUresult *)data = cu.cuMemAlloc(&memory, 8);
  if (memory) RIGHT(cu.cuMemFree(memory));
  RIGHT(cu.cuCtxPopCurrent(NULL));
  return NULL;
}

CASE(modes_bind_other_threads) {
  for (int mode = 0; mode < 3; ++mode) {
    pthread_t thread;
    CUgraph ended;
    CUresult result;
    RIGHT(cu.cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode));
    assert_int_equal(pthread_create(&thread, NULL, allocate_elsewhere, &result), 0);
    pthread_join(thread, NULL);
    bool global = mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    assert_int_equal(result, global ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamEndCapture(stream, &ended),
                     global ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
    if (!global) RIGHT(cu.cuGraphDestroy(ended));
  }
}

static void *end_elsewhere(void *data) {
  CUgraph ended = NULL;
  RIGHT(cu.cuCtxPushCurrent(context));
  *(CUresult *)data = cu.cuStreamEndCapture(stream, &ended);
  if (ended) RIGHT(cu.cuGraphDestroy(ended));
  RIGHT(cu.cuCtxPopCurrent(NULL));
  return NULL;
}

CASE(capture_ends_where_it_began) {
  for (int relaxed = 0; relaxed < 2; ++relaxed) {
    pthread_t thread;
    CUgraph ended;
    CUresult result;
    RIGHT(cu.cuStreamBeginCapture(stream, relaxed ? CU_STREAM_CAPTURE_MODE_RELAXED
                                                  : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    assert_int_equal(pthread_create(&thread, NULL, end_elsewhere, &result), 0);
    pthread_join(thread, NULL);
    assert_int_equal(result, relaxed ? 0 : 908);
    if (relaxed) break;
    RIGHT(cu.cuStreamEndCapture(stream, &ended));
    RIGHT(cu.cuGraphDestroy(ended));
  }
}

CASE(spoilt_body_is_never_used_again) {
  CUgraph body, ended = graph;
  CUgraphNode node;
  size_t count;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  RIGHT(cu.cuStreamBeginCaptureToGraph(stream, body, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  WRONG(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuStreamSynchronize(stream));
  WRONG(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &ended));
  assert_null(ended);
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphGetNodes(body, NULL, &count));
  expect_broken("invalid-capture");
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddEmptyNode(&node, graph, NULL, 0));
  expect_broken("invalid-capture");
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphDestroy(graph)); /* the driver has freed what is in it */
  expect_broken("invalid-capture");
  assert_int_equal(sim->alive(SIMGPU_GRAPHS), 0);
  RIGHT(cu.cuGraphCreate(&graph, 0));
}

CASE(captured_event_has_no_time) {
  CUevent event;
  CUgraph ended;
  RIGHT(cu.cuEventCreate(&event, 0));
  begin_capture();
  RIGHT(cu.cuEventRecord(event, stream));
  WRONG(907, cu.cuEventQuery(event));
  WRONG(907, cu.cuEventSynchronize(event));
  RIGHT(cu.cuStreamEndCapture(stream, &ended));
  RIGHT(cu.cuGraphDestroy(ended));
  RIGHT(cu.cuEventRecord(event, stream));
  RIGHT(cu.cuEventSynchronize(event));
  RIGHT(cu.cuEventDestroy(event));
}

CASE(launches_of_graphs_are_not_captured) {
  CUgraph ended;
  add_log(graph, NULL, 'a');
  CUgraphExec exec = exec_of();
  begin_capture();
  WRONG(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuGraphLaunch(exec, stream));
  WRONG(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &ended));
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(ends_in_the_middle_of_a_capture) {
  CUstream other = stream;
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  begin_capture();
  put('a');
  RIGHT(cu.cuStreamDestroy(stream));
  expect_broken("capture");
  assert_int_equal(sim->alive(SIMGPU_GRAPHS), 1);
  stream = other;
  CUgraph mine = graph;
  RIGHT(cu.cuGraphCreate(&graph, 0));
  RIGHT(cu.cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphDestroy(graph));
  expect_broken("capture");
  RIGHT(cu.cuStreamEndCapture(stream, &graph));
  RIGHT(cu.cuGraphDestroy(graph));
  graph = mine;
}

/* ---- forks and joins ---- */

static CUstream other;
static CUevent forked, joined;

static void make_fork(unsigned flags) {
  RIGHT(cu.cuStreamCreate(&other, flags));
  RIGHT(cu.cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING));
  RIGHT(cu.cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
}

static void end_fork(void) {
  RIGHT(cu.cuEventDestroy(forked));
  RIGHT(cu.cuEventDestroy(joined));
  RIGHT(cu.cuStreamDestroy(other));
}

static void put_on(CUstream where, char letter) {
  CUstream before = stream;
  stream = where;
  put(letter);
  stream = before;
}

static CUstreamCaptureStatus asked(CUstream where) {
  CUstreamCaptureStatus status;
  RIGHT(cu.cuStreamIsCapturing(where, &status));
  return status;
}

CASE(another_stream_is_drawn_in) {
  size_t count = 0;
  RIGHT(cu.cuGraphDestroy(graph));
  make_fork(CU_STREAM_NON_BLOCKING);
  begin_capture();
  put('a');
  RIGHT(cu.cuEventRecord(forked, stream));
  RIGHT(cu.cuStreamWaitEvent(other, forked, 0));
  assert_int_equal(asked(other), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  WRONG(903, cu.cuStreamEndCapture(other, &graph));
  put_on(other, 'b');
  put('c');
  RIGHT(cu.cuEventRecord(joined, other));
  RIGHT(cu.cuStreamWaitEvent(stream, joined, 0));
  put('d');
  RIGHT(cu.cuStreamEndCapture(stream, &graph));
  assert_int_equal(asked(other), CU_STREAM_CAPTURE_STATUS_NONE);
  RIGHT(cu.cuGraphGetNodes(graph, NULL, &count));
  assert_int_equal(count, 4);
  RIGHT(cu.cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
  assert_int_equal(count, 4);
  CUgraphExec exec = exec_of();
  const char *ran = trace_of(exec);
  assert_true(strcmp(ran, "abcd") == 0 || strcmp(ran, "acbd") == 0);
  RIGHT(cu.cuGraphExecDestroy(exec));
  WRONG(CUDA_ERROR_CAPTURED_EVENT, cu.cuStreamWaitEvent(other, forked, 0)); /* of a capture that is over */
  end_fork();
}

CASE(fork_has_to_be_joined) {
  for (int work = 0; work < 2; ++work) {
    CUgraph ended = graph;
    make_fork(CU_STREAM_NON_BLOCKING);
    begin_capture();
    put('a');
    RIGHT(cu.cuEventRecord(forked, stream));
    RIGHT(cu.cuStreamWaitEvent(other, forked, 0));
    if (work) put_on(other, 'b'); /* without it there is nothing to join */
    const CUresult result = cu.cuStreamEndCapture(stream, &ended);
    assert_int_equal(result, work ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED : CUDA_SUCCESS);
    assert_int_equal(asked(other), CU_STREAM_CAPTURE_STATUS_NONE);
    if (work) assert_null(ended);
    else RIGHT(cu.cuGraphDestroy(ended));
    end_fork();
  }
}

CASE(captures_stay_apart) {
  CUgraph ended;
  make_fork(CU_STREAM_NON_BLOCKING);
  RIGHT(cu.cuEventRecord(joined, other));
  begin_capture();
  WRONG(905, cu.cuStreamWaitEvent(stream, joined, 0)); /* from outside */
  WRONG(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &ended));
  begin_capture();
  RIGHT(cu.cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  RIGHT(cu.cuEventRecord(forked, stream));
  WRONG(902, cu.cuStreamWaitEvent(other, forked, 0));
  WRONG(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(other, &ended));
  WRONG(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &ended));
  begin_capture();
  RIGHT(cu.cuEventRecord(forked, stream));
  WRONG(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cu.cuStreamWaitEvent(NULL, forked, 0));
  WRONG(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &ended));
  end_fork();
}

/* What a library adds by itself, as conditional nodes. */
CASE(nodes_are_added_by_hand) {
  CUgraph captured, body;
  RIGHT(cu.cuGraphDestroy(graph));
  WRONG(CUDA_ERROR_ILLEGAL_STATE, cu.cuStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, 1));
  begin_capture();
  put('a');
  CUgraphNode last;
  assert_int_equal(status_of(&captured, &last), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  graph = captured;
  CUgraphNode node = add_condition(captured, last, handle_of(1), IF, &body);
  add_log(body, NULL, 'b');
  RIGHT(cu.cuStreamUpdateCaptureDependencies(stream, &node, NULL, 1, 1));
  put('c');
  RIGHT(cu.cuStreamEndCapture(stream, &graph));
  expect_trace("abc");
}

/* ---- who else is bound ---- */

static CUstreamCaptureMode exchange(CUstreamCaptureMode mode) {
  RIGHT(cu.cuThreadExchangeStreamCaptureMode(&mode));
  return mode;
}

static CUresult queries(void) {
  const CUresult result = cu.cuEventQuery(forked);
  return result == CUDA_SUCCESS ? cu.cuStreamSynchronize(other) : result;
}

/* In: the thread's mode. Out: what an unsafe call answered. */
static void *query_elsewhere(void *data) {
  int *both = data;
  RIGHT(cu.cuCtxPushCurrent(context));
  assert_int_equal(exchange((CUstreamCaptureMode)both[0]), CU_STREAM_CAPTURE_MODE_GLOBAL); /* each thread's at first */
  both[1] = (int)queries();
  RIGHT(cu.cuCtxPopCurrent(NULL));
  return NULL;
}

CASE(threads_may_be_relaxed) {
  CUstreamCaptureMode wrong = (CUstreamCaptureMode)3;
  make_fork(CU_STREAM_NON_BLOCKING);
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuThreadExchangeStreamCaptureMode(NULL));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuThreadExchangeStreamCaptureMode(&wrong));
  for (int capture = 0; capture < 3; ++capture)
    for (int mode = 0; mode < 3; ++mode)
      for (int here = 0; here < 2; ++here) {
        CUgraph ended;
        pthread_t thread;
        int both[2] = {mode, 0};
        RIGHT(cu.cuStreamBeginCapture(stream, (CUstreamCaptureMode)capture));
        if (here) {
          exchange((CUstreamCaptureMode)mode);
          both[1] = (int)queries();
          assert_int_equal(exchange(CU_STREAM_CAPTURE_MODE_GLOBAL), mode);
        } else {
          assert_int_equal(pthread_create(&thread, NULL, query_elsewhere, both), 0);
          pthread_join(thread, NULL);
        }
        const bool spoiled = capture != CU_STREAM_CAPTURE_MODE_RELAXED && mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
                             (here || (capture == CU_STREAM_CAPTURE_MODE_GLOBAL && mode == capture));
        assert_int_equal(both[1], spoiled ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
        assert_int_equal(cu.cuStreamEndCapture(stream, &ended),
                         spoiled ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
        if (!spoiled) RIGHT(cu.cuGraphDestroy(ended));
      }
  end_fork();
}

/* While a blocking stream is captured; a question doesn't spoil that, a use does. */
CASE(default_stream_is_unusable) {
  CUgraph ended;
  CUstreamCaptureStatus status;
  make_fork(CU_STREAM_DEFAULT);
  for (int use = 0; use < 4; ++use) {
    RIGHT(cu.cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED));
    WRONG(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cu.cuStreamIsCapturing(NULL, &status));
    WRONG(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
          cu.cuStreamGetCaptureInfo((CUstream)(uintptr_t)GKI_CU_STREAM_LEGACY, &status, NULL, NULL, NULL, NULL, NULL));
    if (use == 1) WRONG(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cu.cuEventRecord(forked, NULL));
    if (use == 2) WRONG(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cu.cuStreamSynchronize(NULL));
    if (use == 3) WRONG(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cu.cuCtxSynchronize());
    assert_int_equal(asked(other), use ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE);
    WRONG(use ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS, cu.cuStreamEndCapture(other, &ended));
    if (!use) RIGHT(cu.cuGraphDestroy(ended));
  }
  RIGHT(cu.cuStreamIsCapturing(NULL, &status));
  end_fork();
}

CASE(no_capture_survives_a_wait_for_the_context) {
  CUgraph ended;
  RIGHT(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  WRONG(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuCtxSynchronize());
  WRONG(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &ended));
  RIGHT(cu.cuCtxSynchronize());
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
