/* Streams, events, and what waits for what. */
#include "graph_world.h"

static CUstream other;

static int begin_streams(void **state) {
  begin(state);
  RIGHT(cu.cuStreamCreate(&other, CU_STREAM_DEFAULT));
  sim->mark();
  return 0;
}

static int end_streams(void **state) {
  cu.cuStreamDestroy(other);
  return end(state);
}

#define STREAM_TEST(test) TEST_WITH(test, begin_streams, end_streams)

STREAM_TEST(work_is_done_later_and_in_order) {
  sim->hold(1);
  for (char letter = 'a'; letter <= 'h'; ++letter) put(stream, letter);
  WRONG(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(stream));
  assert_string_equal(trace, "");
  sim->hold(0);
  wait_for(stream);
  RIGHT(cu.cuStreamQuery(stream));
  assert_string_equal(trace, "abcdefgh");
  assert_int_equal(sim->counts().kernels, 8);
  assert_int_equal(sim->counts().waits, 1);
  assert_int_equal(sim->calls("cuStreamQuery"), 2);
}

/* The first query finds all work done, however much there is. */
STREAM_TEST(questions_let_the_device_settle) {
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

STREAM_TEST(streams_run_beside_each_other) {
  unsigned first = 0;
  for (uint64_t seed = 0; seed < 32; ++seed) {
    traced = 0;
    sim->set_seed(seed);
    sim->hold(1);
    put(stream, 'a');
    put(other, 'b');
    sim->hold(0);
    wait_for(stream);
    wait_for(other);
    first += trace[0] == 'a';
  }
  assert_true(first > 4 && first < 28);
}

/* Each query is a step of the other work, and a wait takes as long as that work. */
STREAM_TEST(others_work_keeps_kernels_out) {
  enum { QUESTIONS = 3 };
  sim->busy(QUESTIONS);
  put(stream, 'a');
  wait_for(stream); /* over */
  assert_string_equal(trace, "a");
  sim->busy(QUESTIONS);
  put(stream, 'b');
  for (int k = 0; k < QUESTIONS; ++k) {
    assert_string_equal(trace, "a");
    WRONG(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(stream));
  }
  wait_for(stream);
  assert_string_equal(trace, "ab");
}

STREAM_TEST(lazy_devices_work_for_waiting_calls) {
  sim->lazy(1);
  put(stream, 'a');
  put(stream, 'b');
  put(other, 'c');
  assert_int_equal(sim->queued(), 3);
  wait_for(stream);
  assert_int_equal(strcspn(trace, "a") < strcspn(trace, "b"), 1);
  wait_for(other);
  assert_int_equal(sim->queued(), 0);
  traced = 0;
  put(stream, 'd');
  assert_int_equal(sim->queued(), 1);
  while (cu.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) continue; /* each query lets it do a piece */
  assert_int_equal(trace[0], 'd');
  put(stream, 'e');
  sim->lazy(0);
  wait_for(stream);
  assert_int_equal(trace[1], 'e');
}

STREAM_TEST(default_stream_waits_for_blocking_ones) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    traced = 0;
    sim->set_seed(seed);
    sim->hold(1);
    put(other, 'a');
    put(NULL, 'b');
    put(other, 'c');
    sim->hold(0);
    wait_for(other);
    assert_string_equal(trace, "abc");
  }
}

STREAM_TEST(event_is_reached_in_its_turn) {
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
  wait_for(stream);
  BREAKS(CUDA_ERROR_INVALID_HANDLE, "destroyed", cu.cuEventQuery(event));
}

static CUstream new_stream(void) {
  CUstream made;
  RIGHT(cu.cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
  return made;
}

static void wait_for_all(void) {
  CUdeviceptr memory;
  RIGHT(cu.cuMemAlloc(&memory, 8));
  RIGHT(cu.cuMemFree(memory));
}

STREAM_TEST(stream_ends_when_its_work_does) {
  CUstream third = new_stream();
  sim->hold(1);
  put(third, 'a');
  RIGHT(cu.cuStreamDestroy(third));
  BREAKS(CUDA_ERROR_INVALID_HANDLE, "destroyed", cu.cuStreamSynchronize(third));
  sim->hold(0);
  wait_for_all();
  assert_string_equal(trace, "a");
}

static void *query_without_context(UNUSED void *data) {
  return (void *)(uintptr_t)cu.cuStreamQuery(stream);
}

static CUresult put_and_wait(void) {
  put(stream, 'x');
  return cu.cuStreamSynchronize(stream);
}

STREAM_TEST(each_thread_has_its_contexts) {
  WRONG(CUDA_ERROR_INVALID_CONTEXT, end_thread(begin_thread(query_without_context, NULL)));
  RIGHT(elsewhere(put_and_wait));
  assert_string_equal(trace, "x");
}

static CUresult wait_here(void) { return cu.cuStreamSynchronize(stream); }

STREAM_TEST(many_threads_use_one_stream) {
  CUresult (*call)(void) = wait_here;
  pthread_t threads[4];
  sim->hold(1);
  for (int k = 0; k < 4; ++k) {
    put(stream, 'a');
    threads[k] = begin_thread(run_elsewhere, &call);
  }
  sim->hold(0);
  for (int k = 0; k < 4; ++k) RIGHT(end_thread(threads[k]));
  assert_string_equal(trace, "aaaa");
}

/* The number of calls that failed. */
static void *open_and_close(UNUSED void *data) {
  uintptr_t wrong = 0;
  for (int k = 0; k < 50; ++k) {
    CUcontext mine;
    CUstream where;
    CUresult results[] = {cu.cuDevicePrimaryCtxRetain(&mine, 0), cu.cuCtxPushCurrent(mine),
                          cu.cuStreamCreate(&where, CU_STREAM_NON_BLOCKING), cu.cuStreamSynchronize(where),
                          cu.cuStreamDestroy(where), cu.cuCtxPopCurrent(NULL), cu.cuDevicePrimaryCtxRelease(0)};
    for (size_t each = 0; each < sizeof results / sizeof *results; ++each) wrong += results[each] != CUDA_SUCCESS;
  }
  return (void *)wrong;
}

STREAM_TEST(contexts_come_and_go_in_many_threads) {
  pthread_t threads[4];
  end_streams(state); /* so that nothing else keeps the context */
  for (int k = 0; k < 4; ++k) threads[k] = begin_thread(open_and_close, NULL);
  for (int k = 0; k < 4; ++k) assert_int_equal(end_thread(threads[k]), 0);
  assert_int_equal(sim->alive(SIMGPU_ALL), 0);
  assert_int_equal(sim->broken(), 0);
  begin_streams(state);
}

STREAM_TEST(stream_waits_for_an_event) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    CUevent event;
    clear_trace();
    sim->set_seed(seed);
    RIGHT(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    RIGHT(cu.cuStreamWaitEvent(other, event, 0)); /* not recorded yet: nothing */
    sim->hold(1);
    put(stream, 'a');
    RIGHT(cu.cuEventRecord(event, stream));
    RIGHT(cu.cuStreamWaitEvent(other, event, 0));
    RIGHT(cu.cuEventRecord(event, stream)); /* the wait is for the first record */
    put(other, 'b');
    RIGHT(cu.cuEventDestroy(event));
    sim->hold(0);
    wait_for(other);
    assert_string_equal(trace, "ab");
  }
}

static unsigned long long id_of(CUstream where) {
  unsigned long long id = 0;
  RIGHT(cu.cuStreamGetId(where, &id));
  return id;
}

/* The next stream has the handle of the one that was destroyed, even with work left; its id is another one. */
STREAM_TEST(handle_is_given_again) {
  CUstream first = new_stream();
  const unsigned long long id = id_of(first);
  assert_true(id != id_of(stream) && id == id_of(first));
  sim->hold(1);
  put(first, 'a');
  RIGHT(cu.cuStreamDestroy(first));
  CUstream second = new_stream();
  assert_ptr_equal(second, first);
  assert_true(id_of(second) != id);
  RIGHT(cu.cuStreamQuery(second)); /* it has none of that work */
  put(second, 'b');
  sim->hold(0);
  wait_for(second);
  RIGHT(cu.cuStreamDestroy(second));
  wait_for_all();
  assert_int_equal(strlen(trace), 2);
}

STREAM_TEST(captures_are_told) {
  assert_int_equal(capture_status(NULL), CU_STREAM_CAPTURE_STATUS_NONE);
  begin_capture(stream, RELAXED);
  assert_int_equal(capture_status(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  WRONG(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuStreamQuery(stream));
  assert_int_equal(capture_status(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  end_capture(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

STREAM_TEST(contexts_are_apart) {
  CUcontext own, found;
  CUstream its_stream;
  CUdevice device;
  CUdeviceptr memory;
  RIGHT(cu.cuCtxCreate(&own, 0, 0));
  assert_int_equal(sim->alive(SIMGPU_CONTEXTS), 1);
  RIGHT(cu.cuCtxGetCurrent(&found));
  assert_ptr_equal(found, own);
  RIGHT(cu.cuCtxGetDevice(&device));
  assert_int_equal(device, 0);
  RIGHT(cu.cuStreamCreate(&its_stream, CU_STREAM_DEFAULT));
  RIGHT(cu.cuMemAlloc(&memory, 8));
  RIGHT(cu.cuStreamGetCtx(its_stream, &found));
  assert_ptr_equal(found, own);
  RIGHT(cu.cuStreamGetCtx(stream, &found));
  assert_ptr_equal(found, context);
  BREAKS(CUDA_ERROR_INVALID_CONTEXT, "foreign", cu.cuStreamSynchronize(stream));
  RIGHT(cu.cuCtxPushCurrent(context));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemsetD8Async(memory, 0, 8, stream));
  RIGHT(cu.cuCtxPopCurrent(NULL));
  RIGHT(cu.cuStreamDestroy(its_stream));
  RIGHT(cu.cuMemFree(memory));
  RIGHT(cu.cuCtxDestroy(own));
  RIGHT(cu.cuCtxGetCurrent(&found));
  assert_ptr_equal(found, context);
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuCtxDestroy(context)); /* the primary one */
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
