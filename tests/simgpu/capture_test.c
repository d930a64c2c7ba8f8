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

static void capture_becomes_a_graph(void **state) {
  (void)state;
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

static void host_function_is_captured(void **state) {
  (void)state;
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

static void capture_goes_into_a_body(void **state) {
  (void)state;
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

static void begin_is_checked(void **state) {
  (void)state;
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

static void what_spoils_a_capture(void **state) {
  (void)state;
  static CUresult (*const spoilers[])(void) = {waits, asks, allocates, pins, loads, copies_pageable};
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
  put('c'); /* the stream is as it was */
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_string_equal(trace, "c");
}

static void relaxed_capture_forbids_less(void **state) {
  (void)state;
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

static void modes_bind_other_threads(void **state) {
  (void)state;
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

static void capture_ends_where_it_began(void **state) {
  (void)state;
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

static void spoilt_body_is_never_used_again(void **state) {
  (void)state;
  CUgraph body, ended;
  CUgraphNode node;
  size_t count;
  add_condition(graph, NULL, handle_of(1), IF, &body);
  RIGHT(cu.cuStreamBeginCaptureToGraph(stream, body, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  WRONG(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuStreamSynchronize(stream));
  WRONG(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &ended));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphGetNodes(body, NULL, &count));
  expect_broken("invalid-capture");
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddEmptyNode(&node, graph, NULL, 0));
  expect_broken("invalid-capture");
  RIGHT(cu.cuGraphDestroy(graph)); /* all that is left to do */
  RIGHT(cu.cuGraphCreate(&graph, 0));
}

static void captured_event_has_no_time(void **state) {
  (void)state;
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

static void launches_of_graphs_are_not_captured(void **state) {
  (void)state;
  CUgraph ended;
  add_log(graph, NULL, 'a');
  CUgraphExec exec = exec_of();
  begin_capture();
  WRONG(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuGraphLaunch(exec, stream));
  WRONG(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &ended));
  RIGHT(cu.cuGraphExecDestroy(exec));
}

static void ends_in_the_middle_of_a_capture(void **state) {
  (void)state;
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

int main(void) {
  const struct CMUnitTest tests[] = {
    CASE(capture_becomes_a_graph),
    CASE(host_function_is_captured),
    CASE(capture_goes_into_a_body),
    CASE(begin_is_checked),
    CASE(what_spoils_a_capture),
    CASE(relaxed_capture_forbids_less),
    CASE(modes_bind_other_threads),
    CASE(capture_ends_where_it_began),
    CASE(spoilt_body_is_never_used_again),
    CASE(captured_event_has_no_time),
    CASE(launches_of_graphs_are_not_captured),
    CASE(ends_in_the_middle_of_a_capture),
  };
  return cmocka_run_group_tests(tests, load_driver, NULL);
}
