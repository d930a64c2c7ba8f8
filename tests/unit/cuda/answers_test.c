/* What gk makes of answers that the simulated driver never gives, and what it asks for: an open device gets a driver
 * with entries of the test's own. */
#include "cuda/pool.h"
#include "runtime/device.h"
#include "cuda/device.h"
#include "cuda/kernels.h"
#include "base/error.h"
#include "unit/support/runtime_kernels.h"
#include "user_driver.h"

enum { X = 1, N, A, LEFT };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(N, int, 1), GK_DEFAULT(A, int, 1),
                                     GK_BUFFER(LEFT, int)};
static const gk_task looping_tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, LEFT),
                                        GK_END};
static const gk_list looping = GK_LIST(looping, looping_tasks, slots);

static gki_cuda_device *native;
static const gki_cuda_driver *right;
static gki_cuda_driver odd; /* the device's from setup on: as `right`, but for what a test puts there */

/* In an entry, which can't be left as a test is: gk holds locks there. */
static int unexpected;
static void expect(bool right_one) { unexpected += !right_one; }

static int setup_odd(void **state) {
  unexpected = 0;
  if (setup_cuda(state) != 0) return -1;
  native = ((gk_device *)*state)->state;
  right = native->driver;
  odd = *right;
  native->driver = &odd;
  return 0;
}

static int teardown_odd(void **state) {
  sim->hold(0); /* a test may have failed meanwhile */
  odd = *right;
  if (unexpected) fprintf(stderr, "the driver was asked for the wrong thing, %d times\n", unexpected);
  return teardown_cuda(state) || unexpected ? -1 : 0;
}

/* ---- graphs that aren't instantiated ----------------------------------------------------------------------------- */

static CUresult instantiated;
static int refusals; /* before it does */
static CUresult refuse_graph(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
  return refusals-- > 0 ? instantiated : right->cuGraphInstantiateWithParams(exec, graph, parameters);
}

#define ODD(test) DEVICE_TEST(test, setup_odd, teardown_odd)

/* What says nothing of the graph is a failure; else the host gates the list. */
ODD(test_not_instantiated) {
  static const struct { CUresult answer; int times; gk_result result; } turns[] = {
      {CUDA_ERROR_OUT_OF_MEMORY, 2, GK_ERROR_MEMORY}, {CUDA_ERROR_LAUNCH_FAILED, 1, GK_ERROR_DEVICE},
      {CUDA_ERROR_INVALID_VALUE, 1, GK_OK}, {CUDA_ERROR_NOT_SUPPORTED, 1, GK_OK}};
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    gk_graph *graph = NULL;
    CUgraph whole;
    odd.cuGraphInstantiateWithParams = refuse_graph;
    instantiated = turns[k].answer;
    refusals = turns[k].times;
    const gk_result result = gk_graph_create(device, &looping, 0, &graph);
    assert_int_equal(result, turns[k].result);
    if (result != GK_OK) assert_says("cuGraphInstantiate of graph looping");
    else
      assert_fails(GK_ERROR_UNSUPPORTED, "the driver refuses the graph of conditional nodes",
                   gk_cuda_graph(graph, 0, &whole, NULL));
    odd = *right;
    gk_graph_destroy(graph);
  }
}

/* ---- what is on its way when a graph is there, or isn't ---------------------------------------------------------- */

static CUstream sent_on; /* where something is under way that nobody has waited for; NULL: nowhere */
static int failing;      /* so many waits more */

static CUresult send(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  sent_on = stream;
  return right->cuMemcpyHtoDAsync(to, from, bytes, stream);
}
static CUresult upload(CUgraphExec exec, CUstream stream) {
  sent_on = stream;
  return right->cuGraphUpload(exec, stream);
}
static CUresult wait_for(CUstream stream) {
  if (failing && failing-- > 0) return CUDA_ERROR_UNKNOWN;
  if (stream == sent_on) sent_on = NULL;
  return right->cuStreamSynchronize(stream);
}

/* A launch may be on any stream; and memory that a graph gives back is the next one's. */
ODD(test_what_was_sent_is_waited_for) {
  for (int fails = 0; fails < 2; ++fails)
    for (uint32_t bits = 0; bits <= GK_HOST_GATED; bits += GK_HOST_GATED) {
      gk_graph *graph = NULL;
      odd.cuMemcpyHtoDAsync = send;
      odd.cuGraphUpload = upload;
      odd.cuStreamSynchronize = wait_for;
      sent_on = NULL;
      failing = fails;
      assert_int_equal(gk_graph_create(device, &looping, bits, &graph), fails ? GK_ERROR_DEVICE : GK_OK);
      if (sent_on || failing) fail_msg("bits %u, fails %d: %p, %d", bits, fails, (void *)sent_on, failing);
      odd = *right;
      gk_graph_destroy(graph);
    }
}

/* Copies are over when they return. Of page-locked memory the host does them. */
static const int *locked_page;
static bool is_of_page(CUdeviceptr memory) {
  return locked_page && memory - (CUdeviceptr)(uintptr_t)locked_page < 4 * sizeof *locked_page;
}
static CUresult copy_out(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  expect(!is_of_page(from));
  sent_on = stream;
  return right->cuMemcpyDtoHAsync(to, from, bytes, stream);
}
static CUresult copy_within(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  expect(to + bytes <= from || from + bytes <= to); /* what else comes of it no driver says */
  expect(!is_of_page(from) && !is_of_page(to));
  sent_on = stream;
  return right->cuMemcpyDtoDAsync(to, from, bytes, stream);
}
static CUresult fill_bytes(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream) {
  sent_on = stream;
  return right->cuMemsetD8Async(to, byte, bytes, stream);
}

/* As it may come from the driver. Every context of the process has it, at the host's address. */
static CUresult alloc_dirty(void **memory, size_t bytes, unsigned int flags) {
  expect(flags == (GKI_CU_MEMHOSTALLOC_PORTABLE | GKI_CU_MEMHOSTALLOC_DEVICEMAP));
  const CUresult result = right->cuMemHostAlloc(memory, bytes, flags);
  if (result == CUDA_SUCCESS) memset(*memory, 0xa7, bytes);
  return result;
}

ODD(test_copies_are_waited_for) {
  odd.cuMemcpyHtoDAsync = send;
  odd.cuMemcpyDtoHAsync = copy_out;
  odd.cuMemcpyDtoDAsync = copy_within;
  odd.cuMemsetD8Async = fill_bytes;
  odd.cuStreamSynchronize = wait_for;
  failing = 0;
  int here[4] = {1, 2, 3, 4};
  int *there = gk_alloc(device, sizeof here, GK_DEVICE_MEMORY);
  assert_null(sent_on); /* it is zero */
  odd.cuMemHostAlloc = alloc_dirty;
  int *page = gk_alloc(device, sizeof here, GK_HOST_MEMORY);
  for (size_t k = 0; k < GK_COUNT(here); ++k) assert_int_equal(page[k], 0);
  locked_page = page;
  struct { int *to, *from; size_t count; } turns[] = {{there, page, 4}, {page, there, 4}, {there + 2, there, 2},
                                                      {there + 1, there, 3}, {there, there + 1, 3}, {there, there, 4},
                                                      {page, page + 1, 3}};
  assert_ok(gk_upload(device, there, here, sizeof here));
  assert_null(sent_on);
  assert_ok(gk_download(device, here, there, sizeof here));
  assert_null(sent_on);
  for (int up = 0; up < 2; ++up) { /* the host touches page-locked memory once a launch is over */
    sent_on = native->stream;
    assert_ok(up ? gk_upload(device, page, here, sizeof here) : gk_download(device, here, page, sizeof here));
    assert_null(sent_on);
  }
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    sent_on = native->stream; /* as if a launch were under way */
    assert_ok(gk_copy(device, turns[k].to, turns[k].from, turns[k].count * sizeof(int)));
    assert_null(sent_on);
  }
  assert_ok(gk_copy(device, (char *)there + 7, there, 8)); /* by one byte */
  sim->mark();
  assert_ok(gk_copy(device, (char *)there + 8, there, 8)); /* not at all */
  assert_int_equal(sim->calls("cuMemAlloc"), 0);
  odd = *right;
  locked_page = NULL;
  gk_free(device, there);
  gk_free(device, page);
}

/* So is memory that a graph owns, which is zero but for what is kept; where that fails the pool has it again. */
ODD(test_owned_memory_is_filled) {
  int *from = int_on(device, 5), here[4];
  CUdeviceptr memory = 0, again = 0;
  assert_ok(gki_cuda_enter(native));
  gki_cuda_pool_trim(native);
  for (int kept = 0; kept < 2; ++kept) {
    odd.cuMemcpyDtoDAsync = copy_within;
    odd.cuMemsetD8Async = fill_bytes;
    odd.cuStreamSynchronize = wait_for;
    failing = 0;
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
  gk_free(device, from);
}

/* Behind a launch on a stream of the caller's: whichever call fails, the thread has no context then that it hadn't. */
ODD(test_failed_copies_leave_the_context) {
  CUstream stream;
  CUcontext now;
  gk_graph *graph = graph_on(device, &looping, 0);
  int *x = int_on(device, 0), *left = int_on(device, 0), here = 0;
  assert_ok(gk_bind(graph, X, x));
  assert_ok(gk_bind(graph, LEFT, left));
  RIGHT(cu.cuCtxPushCurrent(native->context));
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  RIGHT(cu.cuCtxPopCurrent(NULL));
  const char *failed = "";
  for (uint64_t k = 1; failed; ++k) {
    set_int(device, left, 1);
    assert_ok(gk_launch_on(graph, 0, stream));
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
    (void)gk_download(device, &here, x, sizeof here);
    failed = sim->failed();
    sim->mark();
    RIGHT(cu.cuCtxGetCurrent(&now));
    assert_null(now);
    assert_ok(gk_wait(graph, NULL));
  }
  gk_graph_destroy(graph);
  RIGHT(cu.cuCtxPushCurrent(native->context));
  RIGHT(cu.cuStreamDestroy(stream));
  RIGHT(cu.cuCtxPopCurrent(NULL));
  gk_free(device, x);
  gk_free(device, left);
}

/* ---- devices and streams ----------------------------------------------------------------------------------------- */

/* A device that is at work isn't lost, whatever else fails. */
ODD(test_busy_is_alive) {
  gk_graph *graph = graph_on(device, &looping, 0);
  int *x = int_on(device, 0), *left = int_on(device, 3);
  assert_ok(gk_bind(graph, X, x));
  assert_ok(gk_bind(graph, LEFT, left));
  sim->hold(1);
  assert_ok(gk_launch(graph, 0));
  sim->mark();
  (sim->fail)(3, CUDA_ERROR_UNKNOWN, SIMGPU_NOW); /* behind the context's push and the mode's exchange */
  assert_null(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  assert_string_equal(sim->failed(), "cuMemAlloc");
  sim->hold(0);
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(device, x), 3);
  gk_graph_destroy(graph);
  gk_free(device, x);
  gk_free(device, left);
}

static CUresult push_answers;
static CUresult push(CUcontext context) {
  if (failing && failing-- > 0) return push_answers;
  return right->cuCtxPushCurrent(context);
}

/* A context that can't be entered now and then isn't lost, one that isn't there any more is. */
ODD(test_not_entered) {
  odd.cuCtxPushCurrent = push;
  push_answers = CUDA_ERROR_UNKNOWN;
  failing = 3; /* nor when it is asked whether it is lost */
  assert_null(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  assert_int_equal(failing, 0);
  void *memory = gk_alloc(device, 4, GK_DEVICE_MEMORY);
  assert_non_null(memory);
  gk_free(device, memory);
  push_answers = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  failing = 3;
  assert_null(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  assert_says("the context that gk works in was destroyed");
  failing = 0;
  assert_null(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  assert_says("is lost; close it");
  assert_ptr_equal(native->driver, gki_cuda_driver_of_gone());
  native->driver = &odd; /* it is there after all, to be given back */
}

static CUresult query_late(CUstream stream) {
  (void)stream;
  snprintf(native->why_lost, sizeof native->why_lost, "another thread's call"); /* which found out meanwhile */
  atomic_store(&native->lost, true);
  return CUDA_ERROR_UNKNOWN;
}
static CUresult alloc_nothing(CUdeviceptr *memory, size_t bytes) {
  (void)memory;
  (void)bytes;
  return CUDA_ERROR_LAUNCH_FAILED;
}

/* Of several calls that find out at the same time the first one's reason stays. */
ODD(test_lost_to_several) {
  odd.cuStreamQuery = query_late;
  odd.cuMemAlloc = alloc_nothing;
  assert_null(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  assert_null(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  assert_says("It began with: another thread's call");
  const gk_launch_args launch = {.on_stream = true};
  const gki_cuda_stream_id none = {NULL, GKI_CUDA_STREAM_UNKNOWN};
  gki_cuda_stream_id now;
  bool pushed;
  gki_begin();
  assert_fails(GK_ERROR_DEVICE, "It began with: another thread's call",
               gki_cuda_enter_to_launch(native, &launch, &none, &now, &pushed));
  odd = *right;
}

static CUresult answered;
static CUresult await_context(void) { return answered; }
static CUresult say_implicit(CUstream stream, CUstreamCaptureStatus *status) {
  (void)stream;
  (void)status;
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

/* What a capture forbids is no fault of the device. */
ODD(test_wait_for_all_is_refused) {
  static const CUresult answers[] = {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT};
  const gk_plan plan = {.name = "whole"};
  assert_ok(gki_cuda_enter(native));
  odd.cuCtxSynchronize = await_context;
  for (size_t k = 0; k < GK_COUNT(answers); ++k) {
    answered = answers[k];
    gki_begin();
    assert_fails(GK_ERROR_INVALID, "the launches of graph whole meanwhile (and that capture is invalid now); end the",
                 gki_cuda_await_all(native, &plan, "a test"));
  }
  answered = CUDA_ERROR_UNKNOWN;
  gki_begin();
  assert_fails(GK_ERROR_DEVICE, "a test: cuCtxSynchronize for graph whole",
               gki_cuda_await_all(native, &plan, "a test"));
  odd.cuStreamIsCapturing = say_implicit;
  assert_true(gki_cuda_is_alive(native));
  gki_cuda_leave(native);
}

static CUresult say_free(CUstream stream, CUstreamCaptureStatus *status) {
  (void)stream;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
static CUresult say_no_id(CUstream stream, unsigned long long *id) {
  (void)stream;
  *id = 7;
  return CUDA_ERROR_UNKNOWN;
}

static gki_cuda_stream_id entered(bool on_stream, CUstream stream) {
  const gk_launch_args launch = {.on_stream = on_stream, .stream = stream};
  const gki_cuda_stream_id none = {NULL, GKI_CUDA_STREAM_UNKNOWN};
  gki_cuda_stream_id now;
  bool pushed;
  assert_ok(gki_cuda_enter_to_launch(native, &launch, &none, &now, &pushed));
  if (pushed) gki_cuda_leave_unrelaxed(native);
  return now;
}

/* A stream that may be another one each time, though its handle is the same, is never the one before. */
ODD(test_streams_are_told_apart) {
  CUstream stream;
  odd.cuStreamIsCapturing = say_free; /* streams per thread aren't simulated */
  gki_cuda_stream_id id = entered(false, NULL);
  assert_ptr_equal(id.stream, native->stream);
  assert_true(id.id == 0 && gki_cuda_is_same(&id, &id));
  id = entered(true, NULL);
  assert_int_equal((uintptr_t)id.stream, GKI_CU_STREAM_LEGACY);
  assert_true(id.id == 0 && gki_cuda_is_same(&id, &id));
  id = entered(true, native->stream);
  assert_int_equal(id.id, 0); /* as in a launch that names none */
  id = entered(true, (CUstream)(uintptr_t)GKI_CU_STREAM_PER_THREAD);
  assert_false(gki_cuda_is_same(&id, &id));
  assert_ok(gki_cuda_enter(native));
  RIGHT(right->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  id = entered(true, stream);
  assert_true(gki_cuda_is_same(&id, &id));
  odd.cuStreamGetId = say_no_id;
  id = entered(true, stream);
  assert_false(gki_cuda_is_same(&id, &id));
  odd.cuStreamGetId = NULL;
  id = entered(true, stream);
  assert_false(gki_cuda_is_same(&id, &id));
  RIGHT(right->cuStreamDestroy(stream));
  gki_cuda_leave(native);
}

/* ---- what launches that failed leave behind ---------------------------------------------------------------------- */

enum { FROM = 1, FLAG, ONES, TWOS, OWN, TO };
static const gk_slot_desc counted_slots[] = {GK_BUFFER(FROM, int), GK_BUFFER(FLAG, int), GK_BUFFER(ONES, int),
                                             GK_BUFFER(TWOS, int), GK_OWN(OWN, int, 2), GK_BUFFER(TO, int)};
static const gk_task counted_tasks[] = {GK_RUN(total, GK_ONE, FROM, TO), GK_FILL(OWN, ONES, 1), GK_IF(FLAG),
                                        GK_FILL(OWN, TWOS, 2), GK_END};
static const gk_list counted = GK_LIST(counted, counted_tasks, counted_slots);

static atomic_bool refuses; /* from the next launch of a graph until the test says so */
static atomic_bool refusing;
static CUresult launch_graph(CUgraphExec exec, CUstream stream) {
  const CUresult result = right->cuGraphLaunch(exec, stream);
  if (atomic_load(&refuses)) atomic_store(&refusing, true);
  return result;
}
static CUresult ask_event(CUevent event) {
  return atomic_load(&refusing) ? CUDA_ERROR_UNKNOWN : right->cuEventQuery(event);
}
static CUresult await_event(CUevent event) {
  return atomic_load(&refusing) ? CUDA_ERROR_UNKNOWN : right->cuEventSynchronize(event);
}
static CUresult push_nothing(CUcontext context) {
  return atomic_load(&refusing) ? CUDA_ERROR_UNKNOWN : right->cuCtxPushCurrent(context);
}

static gk_result run_once(gk_graph *graph) {
  const gk_result result = gk_launch(graph, 0);
  return result == GK_OK ? gk_wait(graph, NULL) : result;
}

/* Once a graph was launched it can't be waited for, or the context can't be entered in which its flag would be read. */
static void refuse_after_launch(bool context) {
  odd.cuGraphLaunch = launch_graph;
  if (context) odd.cuCtxPushCurrent = push_nothing;
  else odd.cuEventQuery = ask_event, odd.cuEventSynchronize = await_event;
  atomic_store(&refuses, true);
}

static void go_on(void) {
  atomic_store(&refuses, false);
  atomic_store(&refusing, false);
}

/* A bad count that nobody could ask for is that launch's, and none of what comes later. */
ODD(test_bad_count_of_a_launch_that_failed) {
  int *from = int_on(device, 1), *to = int_on(device, 0), *flag = int_on(device, 1);
  int *ones = int_on(device, 0), *twos = int_on(device, 0);
  for (int way = 0; way < 4; ++way) {
    gk_graph *graph = graph_on(device, &counted, way & 1 ? GK_HOST_GATED : 0);
    assert_ok(gk_bind(graph, FROM, from));
    assert_ok(gk_bind(graph, TO, to));
    assert_ok(gk_bind(graph, FLAG, flag));
    assert_ok(gk_bind(graph, ONES, ones));
    assert_ok(gk_bind(graph, TWOS, twos));
    set_int(device, ones, 100);
    set_int(device, twos, 1);
    refuse_after_launch(way & 2);
    assert_int_equal(run_once(graph), GK_ERROR_DEVICE);
    assert_says("CUDA_ERROR_UNKNOWN");
    go_on();
    assert_ok(gk_resize(graph, OWN, 3));
    set_int(device, ones, 3);
    assert_ok(run_once(graph));
    assert_int_equal(int_at(device, gk_bound(graph, OWN)), 2);
    set_int(device, twos, 100);
    assert_fails(GK_ERROR_INVALID, "task 3 (OWN = 2)", run_once(graph));
    assert_fails(GK_ERROR_INVALID, "task 3 (OWN = 2)", run_once(graph));
    gk_graph_destroy(graph);
  }
  gk_free(device, from);
  gk_free(device, to);
  gk_free(device, flag);
  gk_free(device, ones);
  gk_free(device, twos);
}

/* The device goes on when somebody waits for it. */
static CUresult hold_until_event(CUevent event) {
  sim->hold(0);
  return right->cuEventSynchronize(event);
}
static CUresult hold_until_stream(CUstream stream) {
  sim->hold(0);
  return right->cuStreamSynchronize(stream);
}
static CUresult await_nothing(CUstream stream) {
  (void)stream;
  return CUDA_ERROR_UNKNOWN;
}

static CUresult await_no_event(CUevent event) {
  (void)event;
  return CUDA_ERROR_UNKNOWN;
}

static CUstream waited_on; /* the first stream that an event is recorded on */
static CUresult record_event(CUevent event, CUstream stream) {
  if (!waited_on) waited_on = stream;
  return right->cuEventRecord(event, stream);
}

static gk_result run_on(gk_graph *graph, CUstream stream) {
  const gk_result result = stream ? gk_launch_on(graph, 0, stream) : gk_launch(graph, 0);
  return result == GK_OK ? gk_wait(graph, NULL) : result;
}

/* fails: how many launches can't wait for the first one, which is the first of them, on that stream. */
static void run_behind(gk_device *device, uint32_t bits, int fails, CUstream stream) {
  static const gk_task yielding_tasks[] = {GK_RUN(add, N, X, A), GK_CHECKPOINT(7, LEFT), GK_END};
  static const gk_list yielding = GK_LIST(yielding, yielding_tasks, slots);
  int *x[2] = {int_on(device, 0), int_on(device, 0)}, *left = int_on(device, 0);
  gk_graph *graph = graph_on(device, &yielding, bits);
  assert_ok(gk_bind(graph, LEFT, left));
  assert_ok(gk_bind(graph, X, x[0]));
  sim->hold(1);
  refuse_after_launch(true);
  assert_int_equal(run_on(graph, stream), GK_ERROR_DEVICE);
  go_on();
  odd.cuEventSynchronize = await_no_event;
  odd.cuStreamSynchronize = await_nothing;
  for (int k = 1; k < fails; ++k) assert_fails(GK_ERROR_DEVICE, "waiting for", run_once(graph));
  odd.cuEventSynchronize = hold_until_event;
  odd.cuStreamSynchronize = hold_until_stream;
  odd.cuEventRecord = record_event;
  waited_on = NULL;
  assert_ok(gk_bind(graph, X, x[1]));
  assert_ok(run_once(graph));
  if (stream && bits) assert_ptr_equal(waited_on, stream);
  for (int k = 0; k < 2; ++k) assert_int_equal(int_at(device, x[k]), 1);
  gk_graph_destroy(graph);
  gk_free(device, x[0]);
  gk_free(device, x[1]);
  gk_free(device, left);
}

/* What a launch that couldn't be waited for works on stays as it is until it is over, however often that fails. */
ODD(test_slots_of_a_launch_that_failed) {
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; bits += GK_HOST_GATED)
    for (int fails = 1; fails < 3; ++fails) {
      CUstream stream;
      run_behind(device, bits, fails, NULL);
      RIGHT(cu.cuCtxPushCurrent(native->context));
      RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      run_behind(device, bits, fails, stream);
      RIGHT(cu.cuStreamDestroy(stream));
      RIGHT(cu.cuCtxPopCurrent(NULL));
    }
}

/* ---- streams and captures of library calls ----------------------------------------------------------------------- */

static int streams, captures;
static CUresult create_stream(CUstream *stream, unsigned int flags) {
  ++streams;
  expect(flags == CU_STREAM_NON_BLOCKING); /* others' work on the default stream is no concern of it */
  return right->cuStreamCreate(stream, flags);
}

static CUresult begin_capture(CUstream stream, CUstreamCaptureMode mode) {
  ++captures;
  expect(mode == CU_STREAM_CAPTURE_MODE_RELAXED); /* any other forbids other threads what they are at */
  return right->cuStreamBeginCapture(stream, mode);
}

static CUresult begin_capture_into(CUstream stream, CUgraph graph, const CUgraphNode *before,
                                   const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode) {
  ++captures;
  expect(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  return right->cuStreamBeginCaptureToGraph(stream, graph, before, edges, count, mode);
}

static gk_result record_nothing(const gk_value *args, void *stream) {
  (void)args;
  return stream ? GK_OK : GK_ERROR_INVALID;
}

static const CUgraphNodeType *odd_type;
static CUresult say_type(CUgraphNode node, CUgraphNodeType *type) {
  const CUresult result = right->cuGraphNodeGetType(node, type);
  if (result == CUDA_SUCCESS) *type = *odd_type;
  return result;
}

static gk_result fill_there(const gk_value *args, void *stream) {
  fill_on(stream, args[0].ptr, 2);
  return GK_OK;
}

ODD(test_captures_are_relaxed) {
  static const gk_task nothing[] = {GK_CALL(record_nothing, A)}, filling[] = {GK_CALL(fill_there, X)};
  static const gk_list lists[] = {GK_LIST(lists[0], nothing, slots), GK_LIST(lists[1], filling, slots)};
  static const CUgraphNodeType conditional = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  int *x = int_on(device, 0);
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; bits += GK_HOST_GATED)
    for (int into_whole = 0; into_whole < 2; ++into_whole) {
      streams = captures = 0;
      odd.cuStreamCreate = create_stream;
      odd.cuStreamBeginCapture = begin_capture;
      odd.cuStreamBeginCaptureToGraph = begin_capture_into;
      odd_type = &conditional; /* as if it had recorded what no child graph may hold */
      if (into_whole) odd.cuGraphNodeGetType = say_type;
      gk_graph *graph = graph_on(device, &lists[into_whole], bits);
      assert_ok(gk_bind(graph, X, x));
      assert_ok(gk_launch(graph, 0));
      assert_ok(gk_wait(graph, NULL));
      assert_int_equal(streams, 1);
      assert_int_equal(captures, 1 + into_whole);
      odd = *right;
      gk_graph_destroy(graph);
    }
  assert_int_equal(int_at(device, x), 0x02020202);
  gk_free(device, x);
}

/* Drivers before 12.3 have no way to record into a graph that is there. */
ODD(test_no_capture_into_a_graph) {
  static const gk_task tasks[] = {GK_CALL(fill_there, X)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  static const CUgraphNodeType allocation = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  gk_graph *graph = graph_on(device, &list, GK_HOST_GATED);
  int *x = int_on(device, 0);
  odd_type = &allocation;
  odd.cuGraphNodeGetType = say_type;
  odd.cuStreamBeginCaptureToGraph = NULL;
  assert_ok(gk_bind(graph, X, x));
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_UNSUPPORTED, "task 0 (fill_there) recorded an allocation (give the library a workspace of its "
               "own), which drivers before CUDA 12.3 can't put into a larger graph", gk_wait(graph, NULL));
  odd = *right;
  gk_graph_destroy(graph);
  gk_free(device, x);
}

/* ---- drawings ---------------------------------------------------------------------------------------------------- */

/* The node's handle stands behind quotes that the driver escapes. */
static CUresult draw_quoted(CUgraph graph, const char *path, unsigned int flags) {
  CUgraphNode nodes[64];
  size_t count = GK_COUNT(nodes);
  (void)flags;
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(right->cuGraphGetNodes(graph, nodes, &count), CUDA_SUCCESS);
  fprintf(file, "digraph {\n\"n\" [label=\"{a \\\"quoted\\\" one | %p}\"];\n", (void *)nodes[0]);
  fprintf(file, "\"m\" [label=\"line | %p\"];\n}\n", (void *)nodes[0]);
  fclose(file);
  return CUDA_SUCCESS;
}

ODD(test_drawn) {
  static const gk_task tasks[] = {GK_RUN(add, N, X, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, 0);
  odd.cuGraphDebugDotPrint = draw_quoted;
  char *text = gk_cuda_dump(graph, 0);
  assert_non_null(text);
  if (!strstr(text, "label=\"{task 0 (add)\n| a \\\"quoted\\\" one | 0x") ||
      !strstr(text, "label=\"task 0 (add)\\nline | 0x"))
    fail_msg("%s", text);
  gk_free_text(text);
  odd = *right;
  gk_graph_destroy(graph);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static int most_threads, blocks_at_once;
static unsigned asked_for;
static CUresult say_threads(int *value, CUfunction_attribute attribute, CUfunction function) {
  const CUresult result = right->cuFuncGetAttribute(value, attribute, function);
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) *value = most_threads;
  return result;
}
static CUresult say_blocks(int *blocks, CUfunction function, int threads, size_t shared) {
  (void)function;
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

int main(int count, char **words) {
  (void)count;
  with_simgpu(words);
  return run_all_tests_with(find_user_driver, NULL);
}
