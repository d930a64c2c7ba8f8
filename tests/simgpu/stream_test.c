/* Streams, events, and what waits for what. */
#include "sim_world.h"
#include <pthread.h>

static char trace[256];
static size_t traced;

static void k_log(const unsigned char *p, unsigned long long threads) { /* letter */
  (void)threads;
  if (traced < sizeof trace - 1) trace[traced++] = (char)take_number(p, 0);
}

static const sim_stub_kernel kernels[] = {{"log", k_log, {8}}, {0}};
static CUstream other;

static int begin(void **state) {
  (void)state;
  open_context(kernels);
  RIGHT(cu.cuStreamCreate(&other, CU_STREAM_DEFAULT));
  memset(trace, 0, sizeof trace);
  traced = 0;
  sim->mark();
  return 0;
}

static int end(void **state) {
  cu.cuStreamDestroy(other);
  return close_context(state);
}

static void put(CUstream where, char letter) {
  uint64_t number = (uint64_t)letter;
  void *parameters[] = {&number};
  RIGHT(cu.cuLaunchKernel(kernel("log"), 1, 1, 1, 1, 1, 1, 0, where, parameters, NULL));
}

#define CASE(test) TEST_WITH(test, begin, end)

CASE(work_is_done_later_and_in_order) {
  sim->hold(1);
  for (char letter = 'a'; letter <= 'h'; ++letter) put(stream, letter);
  WRONG(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(stream));
  assert_string_equal(trace, "");
  sim->hold(0);
  RIGHT(cu.cuStreamSynchronize(stream));
  RIGHT(cu.cuStreamQuery(stream));
  assert_string_equal(trace, "abcdefgh");
  assert_int_equal(sim->counts().kernels, 8);
  assert_int_equal(sim->counts().waits, 1);
  assert_int_equal(sim->calls("cuStreamQuery"), 2);
}

/* The first question finds all of it done, however much it is. */
CASE(questions_let_the_device_settle) {
  sim->settle(1);
  for (int k = 0; k < 200; ++k) {
    put(stream, 'a');
    put(other, 'b');
  }
  RIGHT(cu.cuStreamQuery(stream));
  RIGHT(cu.cuStreamQuery(other));
  sim->hold(1);
  put(stream, 'c');
  WRONG(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(stream));
  sim->hold(0);
  RIGHT(cu.cuStreamQuery(stream));
  sim->settle(0);
  assert_int_equal(sim->counts().waits, 0);
}

CASE(streams_run_beside_each_other) {
  unsigned first = 0;
  for (uint64_t seed = 0; seed < 32; ++seed) {
    traced = 0;
    sim->set_seed(seed);
    sim->hold(1);
    put(stream, 'a');
    put(other, 'b');
    sim->hold(0);
    RIGHT(cu.cuStreamSynchronize(stream));
    RIGHT(cu.cuStreamSynchronize(other));
    first += trace[0] == 'a';
  }
  assert_true(first > 4 && first < 28);
}

/* Each question is a step of that work, and a wait is as long as it takes. */
CASE(others_work_keeps_kernels_out) {
  enum { QUESTIONS = 3 };
  sim->busy(QUESTIONS);
  put(stream, 'a');
  RIGHT(cu.cuStreamSynchronize(stream)); /* over */
  assert_string_equal(trace, "a");
  sim->busy(QUESTIONS);
  put(stream, 'b');
  for (int k = 0; k < QUESTIONS; ++k) {
    assert_string_equal(trace, "a");
    WRONG(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(stream));
  }
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_string_equal(trace, "ab");
}

CASE(lazy_devices_work_for_who_waits) {
  sim->lazy(1);
  put(stream, 'a');
  put(stream, 'b');
  put(other, 'c');
  assert_int_equal(sim->queued(), 3);
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_int_equal(strcspn(trace, "a") < strcspn(trace, "b"), 1);
  RIGHT(cu.cuStreamSynchronize(other));
  assert_int_equal(sim->queued(), 0);
  traced = 0;
  put(stream, 'd');
  assert_int_equal(sim->queued(), 1);
  while (cu.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) continue; /* each lets it do a piece */
  assert_int_equal(trace[0], 'd');
  put(stream, 'e');
  sim->lazy(0);
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_int_equal(trace[1], 'e');
}

CASE(default_stream_waits_for_blocking_ones) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    traced = 0;
    sim->set_seed(seed);
    sim->hold(1);
    put(other, 'a');
    put(NULL, 'b');
    put(other, 'c');
    sim->hold(0);
    RIGHT(cu.cuStreamSynchronize(other));
    assert_string_equal(trace, "abc");
  }
}

CASE(event_is_reached_in_its_turn) {
  CUevent event;
  RIGHT(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  RIGHT(cu.cuEventQuery(event)); /* never recorded: done */
  sim->hold(1);
  put(stream, 'a');
  RIGHT(cu.cuEventRecord(event, stream));
  WRONG(CUDA_ERROR_NOT_READY, cu.cuEventQuery(event));
  sim->hold(0);
  RIGHT(cu.cuEventSynchronize(event));
  RIGHT(cu.cuEventQuery(event));
  assert_string_equal(trace, "a");
  sim->hold(1);
  RIGHT(cu.cuEventRecord(event, stream));
  WRONG(CUDA_ERROR_NOT_READY, cu.cuEventQuery(event));
  RIGHT(cu.cuEventDestroy(event)); /* before it is reached */
  sim->hold(0);
  RIGHT(cu.cuStreamSynchronize(stream));
  WRONG(CUDA_ERROR_INVALID_HANDLE, cu.cuEventQuery(event));
  expect_broken("destroyed");
}

CASE(stream_ends_when_its_work_does) {
  CUstream third;
  RIGHT(cu.cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
  sim->hold(1);
  put(third, 'a');
  RIGHT(cu.cuStreamDestroy(third));
  WRONG(CUDA_ERROR_INVALID_HANDLE, cu.cuStreamSynchronize(third));
  expect_broken("destroyed");
  sim->hold(0);
  CUdeviceptr memory;
  RIGHT(cu.cuMemAlloc(&memory, 8));
  RIGHT(cu.cuMemFree(memory)); /* waits for all */
  assert_string_equal(trace, "a");
}

static void *use_from_elsewhere(void *data) {
  CUresult *results = data;
  results[0] = cu.cuStreamQuery(stream); /* no context here */
  results[1] = cu.cuCtxPushCurrent(context);
  put(stream, 'x');
  results[2] = cu.cuStreamSynchronize(stream);
  results[3] = cu.cuCtxPopCurrent(NULL);
  return NULL;
}

CASE(each_thread_has_its_contexts) {
  pthread_t thread;
  CUresult results[4];
  assert_int_equal(pthread_create(&thread, NULL, use_from_elsewhere, results), 0);
  pthread_join(thread, NULL);
  assert_int_equal(results[0], CUDA_ERROR_INVALID_CONTEXT);
  for (int k = 1; k < 4; ++k) assert_int_equal(results[k], CUDA_SUCCESS);
  assert_string_equal(trace, "x");
}

static void *wait_for_it(void *data) {
  RIGHT(cu.cuCtxPushCurrent(context));
  *(CUresult *)data = cu.cuStreamSynchronize(stream);
  RIGHT(cu.cuCtxPopCurrent(NULL));
  return NULL;
}

CASE(many_threads_use_one_stream) {
  pthread_t threads[4];
  CUresult results[4];
  sim->hold(1);
  for (int k = 0; k < 4; ++k) {
    put(stream, 'a');
    assert_int_equal(pthread_create(&threads[k], NULL, wait_for_it, &results[k]), 0);
  }
  sim->hold(0);
  for (int k = 0; k < 4; ++k) {
    pthread_join(threads[k], NULL);
    assert_int_equal(results[k], CUDA_SUCCESS);
  }
  assert_string_equal(trace, "aaaa");
}

static void *open_and_close(void *data) {
  for (int k = 0; k < 50; ++k) {
    CUcontext mine;
    CUstream where;
    CUresult results[] = {cu.cuDevicePrimaryCtxRetain(&mine, 0), cu.cuCtxPushCurrent(mine),
                          cu.cuStreamCreate(&where, CU_STREAM_NON_BLOCKING), cu.cuStreamSynchronize(where),
                          cu.cuStreamDestroy(where), cu.cuCtxPopCurrent(NULL), cu.cuDevicePrimaryCtxRelease(0)};
    for (size_t each = 0; each < sizeof results / sizeof *results; ++each)
      *(int *)data += results[each] != CUDA_SUCCESS;
  }
  return NULL;
}

CASE(contexts_come_and_go_in_many_threads) {
  pthread_t threads[4];
  int wrong[4] = {0};
  end(state); /* so that nobody else keeps it */
  for (int k = 0; k < 4; ++k) assert_int_equal(pthread_create(&threads[k], NULL, open_and_close, &wrong[k]), 0);
  for (int k = 0; k < 4; ++k) {
    pthread_join(threads[k], NULL);
    assert_int_equal(wrong[k], 0);
  }
  assert_int_equal(sim->alive(SIMGPU_ALL), 0);
  assert_int_equal(sim->broken(), 0);
  begin(state);
}

CASE(stream_waits_for_an_event) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    CUevent event;
    traced = 0;
    sim->set_seed(seed);
    RIGHT(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    RIGHT(cu.cuStreamWaitEvent(other, event, 0)); /* not recorded yet: nothing */
    sim->hold(1);
    put(stream, 'a');
    RIGHT(cu.cuEventRecord(event, stream));
    RIGHT(cu.cuStreamWaitEvent(other, event, 0));
    RIGHT(cu.cuEventRecord(event, stream)); /* what was waited for stays */
    put(other, 'b');
    RIGHT(cu.cuEventDestroy(event));
    sim->hold(0);
    RIGHT(cu.cuStreamSynchronize(other));
    assert_string_equal(trace, "ab");
    memset(trace, 0, sizeof trace);
  }
}

static unsigned long long id_of(CUstream where) {
  unsigned long long id = 0;
  RIGHT(cu.cuStreamGetId(where, &id));
  return id;
}

/* The next stream has the handle of the one that was destroyed, even with work left; its id is another one. */
CASE(handle_is_given_again) {
  CUstream first, second;
  RIGHT(cu.cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  const unsigned long long id = id_of(first);
  assert_true(id != id_of(stream) && id == id_of(first));
  sim->hold(1);
  put(first, 'a');
  RIGHT(cu.cuStreamDestroy(first));
  RIGHT(cu.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  assert_ptr_equal(second, first);
  assert_true(id_of(second) != id);
  RIGHT(cu.cuStreamQuery(second)); /* it has none of that work */
  put(second, 'b');
  sim->hold(0);
  RIGHT(cu.cuStreamSynchronize(second));
  RIGHT(cu.cuStreamDestroy(second));
  CUdeviceptr memory;
  RIGHT(cu.cuMemAlloc(&memory, 8));
  RIGHT(cu.cuMemFree(memory)); /* waits for all */
  assert_int_equal(strlen(trace), 2);
}

CASE(captures_are_told) {
  CUstreamCaptureStatus status;
  CUgraph graph;
  RIGHT(cu.cuStreamIsCapturing(NULL, &status));
  assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
  RIGHT(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  RIGHT(cu.cuStreamIsCapturing(stream, &status));
  assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  WRONG(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuStreamQuery(stream));
  RIGHT(cu.cuStreamIsCapturing(stream, &status));
  assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  WRONG(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &graph));
}

CASE(contexts_are_apart) {
  CUcontext own, found;
  CUstream streams[2];
  CUdevice device;
  CUdeviceptr memory;
  RIGHT(cu.cuCtxCreate(&own, 0, 0));
  assert_int_equal(sim->alive(SIMGPU_CONTEXTS), 1);
  RIGHT(cu.cuCtxGetCurrent(&found));
  assert_ptr_equal(found, own);
  RIGHT(cu.cuCtxGetDevice(&device));
  assert_int_equal(device, 0);
  RIGHT(cu.cuStreamCreate(&streams[0], CU_STREAM_DEFAULT));
  RIGHT(cu.cuMemAlloc(&memory, 8));
  RIGHT(cu.cuStreamGetCtx(streams[0], &found));
  assert_ptr_equal(found, own);
  RIGHT(cu.cuStreamGetCtx(stream, &found));
  assert_ptr_equal(found, context);
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuStreamSynchronize(stream));
  expect_broken("foreign");
  RIGHT(cu.cuCtxPushCurrent(context));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemsetD8Async(memory, 0, 8, stream));
  RIGHT(cu.cuCtxPopCurrent(NULL));
  RIGHT(cu.cuStreamDestroy(streams[0]));
  RIGHT(cu.cuMemFree(memory));
  RIGHT(cu.cuCtxDestroy(own));
  RIGHT(cu.cuCtxGetCurrent(&found));
  assert_ptr_equal(found, context);
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuCtxDestroy(context)); /* the primary one */
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
