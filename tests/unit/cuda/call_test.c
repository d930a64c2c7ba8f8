/* Work of another library on CUDA: recorded into the graph, wherever its task stands, and again when what it got was
 * bound to something else. */
#include "user_driver.h"
#include "unit/support/runtime_kernels.h"

enum { X = 1, BYTE, N, FLAG, A, SLOTS };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_SCALAR(BYTE, int), GK_SCALAR(N, int), GK_BUFFER(FLAG, int),
                                     GK_DEFAULT(A, int, 1)};

static int called;
static gk_result answer;

/* As a library does that fills memory: by work on the stream that it gets. */
static gk_result fill_bytes(const gk_value *args, void *native) {
  ++called;
  if (answer != GK_OK) return answer;
  CUresult result = cu.cuMemsetD8Async(at(args[0].ptr), (unsigned char)args[1].i32, sizeof(int), native);
  return result == CUDA_SUCCESS ? GK_OK : GK_ERROR_DEVICE;
}

static gk_result do_nothing(const gk_value *args, void *native) {
  (void)args;
  ++called;
  return native ? GK_OK : GK_ERROR_INVALID;
}

/* What no capture takes. */
static gk_result wait_there(const gk_value *args, void *native) {
  (void)args;
  ++called;
  (void)cu.cuStreamSynchronize(native);
  return GK_OK;
}

static int on_host;
static void count_on_host(void *data) { ++*(int *)data; }

/* Fit for a graph, but for no body. */
static gk_result ask_host(const gk_value *args, void *native) {
  (void)args;
  ++called;
  return cu.cuLaunchHostFunc(native, count_on_host, &on_host) == CUDA_SUCCESS ? GK_OK : GK_ERROR_DEVICE;
}

static const gk_status *run(gk_graph *graph) {
  const gk_status *status = NULL;
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, &status));
  return status;
}

static int setup_call(void **state) {
  called = 0;
  answer = GK_OK;
  return setup_cuda(state);
}

static void check_recorded(gk_device *device, uint32_t bits) {
  static const gk_task tasks[] = {GK_RUN(add, N, X, A), GK_CALL(fill_bytes, X, BYTE), GK_RUN(add, N, X, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, bits);
  int *x = int_on(device, 5), *y = int_on(device, 5);
  assert_int_equal(called, 0); /* what it gets isn't known yet */
  gk_bind(graph, X, x);
  gk_bind_int(graph, N, 1);
  gk_bind_int(graph, BYTE, 1);
  run(graph);
  assert_int_equal(called, 1);
  assert_int_equal(int_at(device, x), 0x01010102);
  assert_int_equal(run(graph)->applied, GK_UNCHANGED);
  gk_bind_int(graph, A, 2);
  gk_bind_int(graph, BYTE, 1);
  assert_int_equal(run(graph)->applied, GK_BY_TABLE); /* that value was recorded */
  assert_int_equal(called, 1);
  assert_int_equal(int_at(device, x), 0x01010103);
  gk_bind(graph, X, y);
  assert_int_equal(run(graph)->applied, GK_BY_RECORDING);
  assert_int_equal(called, 2);
  assert_int_equal(int_at(device, y), 0x01010103);
  assert_int_equal(int_at(device, x), 0x01010103);
  answer = GK_ERROR_UNSUPPORTED;
  gk_bind(graph, X, x);
  for (int k = 0; k < 2; ++k) {
    assert_ok(gk_launch(graph, 0));
    assert_fails(GK_ERROR_UNSUPPORTED, "(fill_bytes)", gk_wait(graph, NULL));
  }
  answer = GK_OK;
  assert_int_equal(run(graph)->applied, GK_BY_RECORDING); /* what the failed launches didn't come to */
  assert_int_equal(run(graph)->applied, GK_UNCHANGED);
  assert_int_equal(called, 5);
  gk_graph_destroy(graph);
}

#define ON_CALL(test) DEVICE_TEST(test, setup_call, teardown_cuda)

ON_CALL(test_recorded) { check_recorded(device, 0); }
ON_CALL(test_recorded_gated) { check_recorded(device, GK_HOST_GATED); }

static gk_result fill_factor(const gk_value *args, void *native) {
  const line *l = args[1].ptr;
  ++called;
  CUresult result = cu.cuMemsetD8Async(at(args[0].ptr), (unsigned char)l->factor, sizeof(int), native);
  return result == CUDA_SUCCESS ? GK_OK : GK_ERROR_DEVICE;
}

/* A struct that was bound anew is another one, though it may lie where the last one did, as in a graph that yields. */
static void check_struct(gk_device *device, uint32_t bits) {
  enum { WHAT = 2, BREAK = 9 };
  static const gk_slot_desc with_struct[] = {GK_BUFFER(X, int), GK_STRUCT_VALUE(WHAT, line), GK_BUFFER(FLAG, int)};
  static const gk_task yielding[] = {GK_CALL(fill_factor, X, WHAT), GK_CHECKPOINT(BREAK, FLAG), GK_END};
  static const gk_task straight[] = {GK_CALL(fill_factor, X, WHAT)};
  static const gk_list lists[] = {GK_LIST(lists[0], yielding, with_struct), GK_LIST(lists[1], straight, with_struct)};
  for (size_t l = 0; l < GK_COUNT(lists); ++l) {
    gk_graph *graph = graph_on(device, &lists[l], bits);
    int *x = int_on(device, 0);
    gk_bind(graph, X, x);
    if (l == 0) gk_bind(graph, FLAG, int_on(device, 0));
    for (int k = 1; k <= 4; ++k) {
      gk_bind_bytes(graph, WHAT, &(line){k, 0}, sizeof(line));
      assert_int_equal(run(graph)->applied, k > 1 ? GK_BY_RECORDING : GK_BY_TABLE);
      assert_int_equal(int_at(device, x), 0x01010101 * k);
    }
    gk_graph_destroy(graph);
  }
}
ON_CALL(test_struct) { check_struct(device, 0); }
ON_CALL(test_struct_gated) { check_struct(device, GK_HOST_GATED); }

/* What waits in a queue keeps what was recorded for it. */
ON_CALL(test_recorded_again_behind_others) {
  static const gk_task tasks[] = {GK_CALL(fill_bytes, X, BYTE)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, 0);
  int *memory[6];
  for (int k = 0; k < 6; ++k) {
    memory[k] = int_on(device, 0);
    gk_bind(graph, X, memory[k]);
    gk_bind_int(graph, BYTE, k + 1);
    assert_ok(gk_launch(graph, 0));
  }
  assert_ok(gk_wait(graph, NULL));
  for (int k = 0; k < 6; ++k) assert_int_equal(int_at(device, memory[k]), 0x01010101 * (k + 1));
  gk_graph_destroy(graph);
}

ON_CALL(test_in_bodies) {
  static const gk_task tasks[] = {
    GK_DO_WHILE(FLAG),
      GK_IF(FLAG), GK_CALL(do_nothing, 0), GK_END,
      GK_PARALLEL,
        GK_SECTION, GK_CALL(fill_bytes, X, BYTE), GK_END,
        GK_SECTION, GK_CALL(do_nothing, 0), GK_END,
      GK_END,
      GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, FLAG),
    GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, 0);
  int *x = int_on(device, 0), *flag = int_on(device, 3);
  gk_bind(graph, X, x);
  gk_bind(graph, FLAG, flag);
  gk_bind_int(graph, N, 1);
  gk_bind_int(graph, BYTE, 0);
  const gk_status *status = run(graph);
  assert_int_equal(status->loops[0].passes, 3);
  assert_int_equal(called, 3); /* recorded once each */
  assert_int_equal(int_at(device, x), 1);
  gk_graph_destroy(graph);
}

ON_CALL(test_known_when_made) {
  static const gk_task tasks[] = {GK_CALL(do_nothing, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, 0);
  assert_int_equal(called, 1);
  run(graph);
  assert_int_equal(called, 1);
  gk_graph_destroy(graph);
}

static int given;
static gk_result note_given(const gk_value *args, void *native) {
  (void)native;
  given = args[0].i32;
  return GK_OK;
}

/* Also of the first slot, the list's own value. */
ON_CALL(test_first_value) {
  static const gk_slot_desc one[] = {GK_DEFAULT(X, int, 33)};
  static const gk_task tasks[] = {GK_CALL(note_given, X)};
  static const gk_list list = GK_LIST(list, tasks, one);
  gk_graph_destroy(graph_on(device, &list, 0));
  assert_int_equal(given, 33);
}

ON_CALL(test_call_fails) {
  static const gk_task tasks[] = {GK_CALL(fill_bytes, X, BYTE), GK_RUN(add, N, X, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, 0);
  int *x = int_on(device, 7);
  gk_bind(graph, X, x);
  gk_bind_int(graph, N, 1);
  gk_bind_int(graph, BYTE, 0);
  answer = GK_ERROR_UNSUPPORTED;
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_UNSUPPORTED, "task 0 (fill_bytes): the call answered GK_ERROR_UNSUPPORTED when it was asked",
               gk_wait(graph, NULL));
  assert_int_equal(int_at(device, x), 7);
  static const int say_nothing[] = {GK_NOT_READY, 1000, -3};
  for (size_t k = 0; k < GK_COUNT(say_nothing); ++k) {
    answer = (gk_result)say_nothing[k];
    assert_ok(gk_launch(graph, 0));
    assert_fails(GK_ERROR_INVALID, "task 0 (fill_bytes)", gk_wait(graph, NULL));
  }
  answer = GK_OK;
  run(graph);
  assert_int_equal(int_at(device, x), 1);
  gk_graph_destroy(graph);
}

static gk_device *own_device;
static gk_result download(const gk_value *args, void *native) {
  (void)native;
  int x;
  return gk_download(own_device, &x, args[0].ptr, sizeof x);
}

/* It would wait for the launch that it is part of. */
ON_CALL(test_call_of_its_own_device) {
  static const gk_task tasks[] = {GK_RUN(add, N, X, A), GK_CALL(download, X)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  own_device = device;
  int *x = int_on(device, 7);
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; bits += GK_HOST_GATED) {
    gk_graph *graph = graph_on(device, &list, bits);
    gk_bind(graph, X, x);
    gk_bind_int(graph, N, 1);
    assert_ok(gk_launch(graph, 0));
    assert_fails(GK_ERROR_INVALID, "gk_download: task 1 (download) calls it on its own device", gk_wait(graph, NULL));
    gk_graph_destroy(graph);
  }
  assert_int_equal(int_at(device, x), 7);
}

ON_CALL(test_capture_fails) {
  static const gk_task tasks[] = {GK_IF(FLAG), GK_CALL(wait_there, X), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, 0);
  gk_bind(graph, X, int_on(device, 7));
  gk_bind(graph, FLAG, int_on(device, 1));
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_INVALID, "task 1 (wait_there)", gk_wait(graph, NULL));
  gk_graph_destroy(graph);
}

/* What the creation comes to whose first call of that entry fails so. */
static gk_result create_failing(gk_device *device, const gk_list *list, const char *entry, CUresult code,
                                gk_graph **graph) {
  for (uint64_t k = 1;; ++k) {
    sim->mark();
    (sim->fail)(k, code, SIMGPU_NOW);
    const gk_result result = gk_graph_create(device, list, 0, graph);
    const char *failed = sim->failed();
    sim->mark();
    if (!failed) fail_msg("nothing calls %s", entry);
    if (strcmp(failed, entry) == 0) return result;
    gk_graph_destroy(*graph);
  }
}

/* In a body, and the driver says it only in the end: these codes are of what was done to the capture, others aren't. */
ON_CALL(test_capture_ends_badly) {
  static const gk_task tasks[] = {GK_IF(FLAG), GK_CALL(do_nothing, A), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  static const int of_call[] = {CUDA_ERROR_ILLEGAL_STATE, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                CUDA_ERROR_STREAM_CAPTURE_UNJOINED, CUDA_ERROR_CAPTURED_EVENT};
  static const int others[] = {CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED - 1,
                               CUDA_ERROR_CAPTURED_EVENT + 1, CUDA_ERROR_UNKNOWN};
  gk_graph *graph = NULL;
  for (size_t k = 0; k < GK_COUNT(of_call); ++k)
    assert_fails(GK_ERROR_INVALID, "task 1 (do_nothing): what the call did can't be recorded",
                 create_failing(device, &list, "cuStreamEndCapture", (CUresult)of_call[k], &graph));
  for (size_t k = 0; k < GK_COUNT(others); ++k)
    assert_fails(GK_ERROR_DEVICE, "cuStreamEndCapture for task 1 (do_nothing) of graph list: ",
                 create_failing(device, &list, "cuStreamEndCapture", (CUresult)others[k], &graph));
}

/* Another stream is drawn into the capture; without `joins` it is left there. */
static CUstream other;
static CUevent events[2];
static bool joins;
static gk_result fork_there(const gk_value *args, void *native) {
  ++called;
  CUresult result = cu.cuEventRecord(events[0], native);
  if (result == CUDA_SUCCESS) result = cu.cuStreamWaitEvent(other, events[0], 0);
  if (result == CUDA_SUCCESS)
    result = cu.cuMemsetD8Async(at(args[0].ptr), (unsigned char)args[1].i32, sizeof(int), other);
  if (result == CUDA_SUCCESS && joins) result = cu.cuEventRecord(events[1], other);
  if (result == CUDA_SUCCESS && joins) result = cu.cuStreamWaitEvent(native, events[1], 0);
  return result == CUDA_SUCCESS ? GK_OK : GK_ERROR_DEVICE;
}

/* At the top and in a loop, native and gated by the host. */
ON_CALL(test_forked) {
  static const gk_task tasks[] = {GK_CALL(fork_there, X, BYTE), GK_DO_WHILE(FLAG), GK_RUN(add, N, X, A),
                                  GK_CALL(fork_there, X, BYTE), GK_RUN(decrease, GK_ONE, FLAG), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  CUcontext context;
  assert_ok(gk_cuda_context(device, &context, NULL));
  RIGHT(cu.cuCtxPushCurrent(context));
  RIGHT(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  for (int k = 0; k < 2; ++k) RIGHT(cu.cuEventCreate(&events[k], CU_EVENT_DISABLE_TIMING));
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    gk_graph *graph = graph_on(device, &list, bits);
    int *x = int_on(device, 5);
    gk_bind(graph, X, x);
    gk_bind(graph, FLAG, int_on(device, 3));
    gk_bind_int(graph, N, 1);
    gk_bind_int(graph, BYTE, 2);
    joins = false;
    assert_ok(gk_launch(graph, 0));
    assert_fails(GK_ERROR_INVALID, "task 0 (fork_there): what the call did can't be recorded", gk_wait(graph, NULL));
    joins = true;
    run(graph);
    assert_int_equal(int_at(device, x), 0x02020202);
    gk_graph_destroy(graph);
  }
  for (int k = 0; k < 2; ++k) RIGHT(cu.cuEventDestroy(events[k]));
  RIGHT(cu.cuStreamDestroy(other));
  RIGHT(cu.cuCtxPopCurrent(NULL));
}

/* What a library makes of its own beside what it puts on the stream: no child graph can hold a conditional node, a
 * whole graph can. `spoils`: at that call the capture goes wrong behind it. */
static int spoils, added;
static gk_result add_condition(const gk_value *args, void *native) {
  CUstreamCaptureStatus status;
  CUgraph graph;
  CUgraphNode node, inside;
  const CUgraphNode *after;
  const CUgraphEdgeData *edges;
  size_t count;
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  RIGHT(cu.cuStreamGetCaptureInfo(native, &status, NULL, &graph, &after, &edges, &count));
  RIGHT(cu.cuCtxGetCurrent(&asked.conditional.ctx));
  asked.conditional.size = 1;
  RIGHT(cu.cuGraphConditionalHandleCreate(&asked.conditional.handle, graph, asked.conditional.ctx, 1,
                                          GKI_CU_GRAPH_COND_ASSIGN_DEFAULT));
  RIGHT(cu.cuGraphAddNode(&node, graph, after, NULL, count, &asked));
  RIGHT(cu.cuGraphAddEmptyNode(&inside, asked.conditional.phGraph_out[0], NULL, 0));
  RIGHT(cu.cuStreamUpdateCaptureDependencies(native, &node, NULL, 1, 1));
  if (++added != spoils) return fill_bytes(args, native);
  (void)cu.cuStreamSynchronize(native);
  return GK_OK;
}

ON_CALL(test_in_no_child) {
  static const gk_task tasks[] = {GK_RUN(add, N, X, A), GK_CALL(add_condition, X, BYTE), GK_RUN(add, N, X, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    gk_graph *graph = graph_on(device, &list, bits);
    int *x = int_on(device, 5);
    gk_bind(graph, X, x);
    gk_bind_int(graph, N, 1);
    gk_bind_int(graph, BYTE, 1);
    for (spoils = 1; spoils <= 2; ++spoils) { /* the second time the driver frees the graph that it went into */
      added = 0;
      assert_ok(gk_launch(graph, 0));
      assert_fails(GK_ERROR_INVALID, "task 1 (add_condition): what the call did can't be recorded",
                   gk_wait(graph, NULL));
      assert_int_equal(added, spoils);
    }
    added = 0;
    run(graph);
    assert_int_equal(added, 2);
    assert_int_equal(int_at(device, x), 0x01010102);
    gk_graph_destroy(graph);
  }
}

ON_CALL(test_in_no_body) {
  static const gk_task tasks[] = {GK_IF(FLAG), GK_CALL(add_condition, X, BYTE), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, 0);
  spoils = 0;
  gk_bind(graph, X, int_on(device, 1));
  gk_bind(graph, FLAG, int_on(device, 1));
  gk_bind_int(graph, BYTE, 1);
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_UNSUPPORTED, "task 1 (add_condition) recorded a conditional node, which no body",
               gk_wait(graph, NULL));
  gk_graph_destroy(graph);
}

static int *known;
static gk_result fill_known(const gk_value *args, void *native) {
  const gk_value both[] = {{.ptr = known}, args[0]};
  return fill_bytes(both, native);
}

/* What only the driver knows: the host gates the list. */
ON_CALL(test_refused_in_a_body) {
  static const gk_task tasks[] = {GK_IF(FLAG), GK_CALL(fill_known, A), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = NULL;
  static const gk_task at_top[] = {GK_CALL(fill_known, A)};
  static const gk_list flat = GK_LIST(flat, at_top, slots);
  static const CUresult codes[] = {CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_VALUE};
  known = int_on(device, 0);
  CUgraph whole;
  for (size_t k = 0; k < GK_COUNT(codes); ++k) {
    assert_ok(create_failing(device, &list, "cuGraphAddChildGraphNode", codes[k], &graph));
    assert_fails(GK_ERROR_UNSUPPORTED, "task 1 (fill_known) recorded what the driver takes in whole graphs alone",
                 gk_cuda_graph(graph, 0, &whole, NULL));
    gk_graph_destroy(graph);
    graph = NULL;
    assert_fails(GK_ERROR_DEVICE, "cuGraphAddChildGraphNode for task 0 (fill_known) of graph flat: ",
                 create_failing(device, &flat, "cuGraphAddChildGraphNode", codes[k], &graph));
  }
  assert_fails(GK_ERROR_DEVICE, "cuGraphAddChildGraphNode for task 1 (fill_known) of graph list: ",
               create_failing(device, &list, "cuGraphAddChildGraphNode", CUDA_ERROR_UNKNOWN, &graph));
}

ON_CALL(test_host_function_at_the_top) {
  static const gk_task tasks[] = {GK_CALL(ask_host, A), GK_RUN(add, N, X, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, 0);
  gk_bind(graph, X, int_on(device, 0));
  gk_bind_int(graph, N, 1);
  assert_ok(gk_cuda_graph(graph, 0, NULL, NULL)); /* not gated */
  on_host = 0;
  run(graph);
  run(graph);
  assert_int_equal(on_host, 2);
  gk_graph_destroy(graph);
}

/* gk sees it before the driver does, whenever that would; the list runs all the same. */
static void check_unfit(gk_device *device, const char *says_no) {
  static const gk_task tasks[] = {GK_DO_WHILE(FLAG), GK_RUN(decrease, GK_ONE, FLAG), GK_CALL(ask_host, A), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  sim->answer_no(says_no);
  gk_graph *graph = graph_on(device, &list, 0);
  sim->answer_no(NULL);
  CUgraph whole;
  assert_fails(GK_ERROR_UNSUPPORTED, "the host gates it: task 2 (ask_host) recorded",
               gk_cuda_graph(graph, 0, &whole, NULL));
  assert_non_null(strstr(gk_error(), "recorded a host function, which no body of a conditional node can"));
  assert_null(strstr(gk_error(), "the driver refuses"));
  gk_bind(graph, FLAG, int_on(device, 3));
  on_host = 0;
  run(graph);
  assert_int_equal(on_host, 3);
  gk_graph_destroy(graph);
}

ON_CALL(test_unfit_for_a_body) { check_unfit(device, NULL); }
ON_CALL(test_unfit_for_a_body_late) { check_unfit(device, "types"); }

/* What was begun of a graph that decides by itself is gone when the host gates the list after all, and fails at it. */
ON_CALL(test_unfit_and_each_call_fails) {
  static const gk_task tasks[] = {GK_DO_WHILE(FLAG), GK_RUN(decrease, GK_ONE, FLAG), GK_CALL(ask_host, A), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *keeps = graph_on(device, &list, 0);
  const size_t alive = alive_but_memory();
  for (uint64_t k = 1, over = 0; !over; ++k) {
    gk_graph *graph = NULL;
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
    const gk_result result = gk_graph_create(device, &list, 0, &graph);
    over = !sim->failed();
    sim->mark();
    assert_true(result == GK_OK || (!over && !graph));
    gk_graph_destroy(graph);
    assert_int_equal(alive_but_memory(), alive);
    assert_int_equal(sim->broken(), 0);
  }
  gk_graph_destroy(keeps);
}

/* Where values come late, so does the refusal. */
ON_CALL(test_unfit_at_launch) {
  static const gk_task tasks[] = {GK_IF(FLAG), GK_CALL(ask_host, X), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, 0), *gated = graph_on(device, &list, GK_HOST_GATED);
  int *flag = int_on(device, 1);
  gk_bind(graph, X, flag);
  gk_bind(graph, FLAG, flag);
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_UNSUPPORTED, "task 1 (ask_host) recorded", gk_wait(graph, NULL));
  assert_non_null(strstr(gk_error(), "create it with GK_HOST_GATED"));
  gk_bind(gated, X, flag);
  gk_bind(gated, FLAG, flag);
  on_host = 0;
  run(gated);
  assert_int_equal(on_host, 1);
  gk_graph_destroy(graph);
  gk_graph_destroy(gated);
}

/* What only the driver knows to be unfit: it says at which node. */
ON_CALL(test_blamed) {
  static const gk_task tasks[] = {GK_RUN(add, N, X, A), GK_IF(FLAG), GK_CALL(fill_bytes, X, BYTE), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, 0);
  CUcontext context;
  CUdeviceptr managed;
  assert_ok(gk_cuda_context(device, &context, NULL));
  RIGHT(cu.cuCtxPushCurrent(context));
  RIGHT(cu.cuMemAllocManaged(&managed, sizeof(int), CU_MEM_ATTACH_GLOBAL));
  gk_bind(graph, X, (void *)(uintptr_t)managed);
  gk_bind(graph, FLAG, int_on(device, 1));
  gk_bind_int(graph, N, 1);
  gk_bind_int(graph, BYTE, 1);
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_UNSUPPORTED, "the driver refuses the graph of conditional nodes at task 2 (fill_bytes), "
               "recorded, it holds what no graph or body may hold", gk_wait(graph, NULL));
  gk_graph_destroy(graph);
  RIGHT(cu.cuMemFree(managed));
  RIGHT(cu.cuCtxPopCurrent(NULL));
}

int main(int count, char **words) {
  (void)count;
  with_simgpu(words);
  return run_all_tests_with(find_user_driver, NULL);
}
