/* Library calls on CUDA: recorded into the graph, wherever their task is, and recorded again when their slots are bound
 * to other values. */
#include "lists.h"

static int on_host;
static void count_on_host(void *data) { ++*(int *)data; }

/* No capture takes these. */
static gk_result wait_there(UNUSED const gk_value *args, void *native) {
  (void)cu.cuStreamSynchronize(native);
  return GK_OK;
}

/* Allowed in a graph, but not in a body. */
static gk_result ask_host(UNUSED const gk_value *args, void *native) {
  return cu.cuLaunchHostFunc(native, count_on_host, &on_host) == CUDA_SUCCESS ? GK_OK : GK_ERROR_DEVICE;
}
LIST(in_loop, GK_DO_WHILE(FLAG), GK_RUN(decrease, GK_ONE, FLAG), GK_CALL(ask_host, A), GK_END);

/* Likewise, as NCCL does where graphs may be mixed with other work. */
static CUevent events[2];
static gk_result wait_for_event(UNUSED const gk_value *args, void *native) {
  return cu.cuStreamWaitEvent(native, events[0], CU_EVENT_WAIT_EXTERNAL) == CUDA_SUCCESS ? GK_OK : GK_ERROR_DEVICE;
}
LIST(in_loop_by_event, GK_DO_WHILE(FLAG), GK_RUN(decrease, GK_ONE, FLAG), GK_CALL(wait_for_event, A), GK_END);

static void check_run(gk_graph *graph, gk_applied applied, int calls) {
  assert_int_equal(run_to_end(graph, 0)->applied, applied);
  assert_int_equal(called, calls);
}

TEST_IN_MODES(test_recorded) {
  LIST(list, GK_RUN(add, N, X, A), GK_CALL(fill_bytes, X, BYTE), GK_RUN(add, N, X, A));
  gk_graph *graph = new_graph(device, &list, mode_bits);
  int *x = int_on(device, 5), *y = int_on(device, 5);
  called = 0;
  BIND(graph, {X, x});
  gk_bind_int(graph, BYTE, 1);
  assert_int_equal(called, 0); /* it gets a value that isn't on the device yet */
  run_to_end(graph, 0);
  assert_int_equal(int_at(device, x), 0x01010102);
  check_run(graph, GK_UNCHANGED, 1);
  BIND_INTS(graph, {A, 2}, {BYTE, 1});
  check_run(graph, GK_BY_TABLE, 1); /* that value was recorded */
  assert_int_equal(int_at(device, x), 0x01010103);
  BIND(graph, {X, y});
  check_run(graph, GK_BY_RECORDING, 2);
  assert_int_equal(int_at(device, y), 0x01010103);
  assert_int_equal(int_at(device, x), 0x01010103);
  call_answer = GK_ERROR_UNSUPPORTED;
  BIND(graph, {X, x});
  for (int k = 0; k < 2; ++k) assert_fails(GK_ERROR_UNSUPPORTED, "(fill_bytes)", waited_for(graph, 0));
  call_answer = GK_OK;
  check_run(graph, GK_BY_RECORDING, 5); /* the failed launches didn't reach it */
  check_run(graph, GK_UNCHANGED, 5);
}

/* Each copy of a loop's body has a record of its own. */
TEST_ON_CUDA(test_copies) {
  LIST(list, GK_REPEAT(GK_ITEMS(3)), GK_CALL(fill_bytes, X, BYTE), GK_RUN(add, N, X, A), GK_RUN(add, N, Y, A), GK_END);
  gk_graph *graph = new_graph(device, &list, 0);
  int *x = int_on(device, 5), *y = int_on(device, 0);
  called = 0;
  BIND(graph, {X, x}, {Y, y});
  gk_bind_int(graph, BYTE, 1);
  run_to_end(graph, 0);
  assert_int_equal(called, 3);
  BIND_INTS(graph, {BYTE, 2});
  check_run(graph, GK_BY_RECORDING, 6);
  assert_int_equal(int_at(device, x), 0x02020203);
  assert_int_equal(int_at(device, y), 6);
}

static gk_result fill_factor(const gk_value *args, void *native) {
  return fill_bytes((const gk_value[]){args[0], {.i32 = ((const line *)args[1].ptr)->factor}}, native);
}

/* A struct that is bound anew counts as another one, though its address may be the same, as in a graph that yields. */
TEST_IN_MODES(test_struct) {
  LIST(yielding, GK_CALL(fill_factor, X, LINE), GK_CHECKPOINT(HERE, FLAG), GK_END);
  LIST(plain, GK_CALL(fill_factor, X, LINE));
  for (int yields = 0; yields < 2; ++yields) {
    int *x = int_on(device, 0);
    gk_graph *graph = NEW_GRAPH(device, yields ? &yielding : &plain, mode_bits, {X, x}, {FLAG, int_on(device, 0)});
    for (int k = 1; k <= 4; ++k) {
      gk_bind_bytes(graph, LINE, &(line){k, 0}, sizeof(line));
      assert_int_equal(run_to_end(graph, 0)->applied, k > 1 ? GK_BY_RECORDING : GK_BY_TABLE);
      assert_int_equal(int_at(device, x), 0x01010101 * k);
    }
  }
}

/* A launch that is queued keeps what was recorded for it. */
TEST_ON_CUDA(test_recorded_again_behind_others) {
  LIST(list, GK_CALL(fill_bytes, X, BYTE));
  gk_graph *graph = new_graph(device, &list, 0);
  int *memory[6];
  for (int k = 0; k < 6; ++k) {
    BIND(graph, {X, memory[k] = int_on(device, 0)});
    gk_bind_int(graph, BYTE, k + 1);
    assert_ok(gk_launch(graph, 0));
  }
  assert_ok(gk_wait(graph, NULL));
  for (int k = 0; k < 6; ++k) assert_int_equal(int_at(device, memory[k]), 0x01010101 * (k + 1));
}

TEST_ON_CUDA(test_in_bodies) {
  LIST(list,
    GK_DO_WHILE(FLAG),
      GK_IF(FLAG), GK_CALL(do_nothing, 0), GK_END,
      GK_PARALLEL,
        GK_SECTION, GK_CALL(fill_bytes, X, BYTE), GK_END,
        GK_SECTION, GK_CALL(do_nothing, 0), GK_END,
      GK_END,
      GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, FLAG),
    GK_END);
  int *x = int_on(device, 0);
  called = 0;
  gk_graph *graph = NEW_GRAPH(device, &list, 0, {X, x}, {FLAG, int_on(device, 3)});
  assert_int_equal(run_to_end(graph, 0)->loops[0].passes, 3);
  assert_int_equal(called, 3); /* recorded once each */
  assert_int_equal(int_at(device, x), 0x03030304);
}

TEST_ON_CUDA(test_known_when_made) {
  LIST(list, GK_CALL(do_nothing, A));
  called = 0;
  gk_graph *graph = new_graph(device, &list, 0);
  assert_int_equal(called, 1);
  run_to_end(graph, 0);
  assert_int_equal(called, 1);
}

static int given;
static gk_result note_given(const gk_value *args, UNUSED void *native) {
  given = args[0].i32;
  return GK_OK;
}

/* Also for the first slot, with the list's own value. */
TEST_ON_CUDA(test_first_value) {
  static const gk_slot_desc one[] = {GK_DEFAULT(X, int, 33)};
  LIST_OVER(one, list, GK_CALL(note_given, X));
  new_graph(device, &list, 0);
  assert_int_equal(given, 33);
}

TEST_ON_CUDA(test_call_fails) {
  LIST(list, GK_CALL(fill_bytes, X, BYTE), GK_RUN(add, N, X, A));
  static const struct { int answer; gk_result result; const char *words; } turns[] = {
      {GK_ERROR_UNSUPPORTED, GK_ERROR_UNSUPPORTED,
       "task 0 (fill_bytes): the call answered GK_ERROR_UNSUPPORTED when it was asked"},
      {GK_NOT_READY, GK_ERROR_INVALID, "task 0 (fill_bytes)"}, {1000, GK_ERROR_INVALID, "task 0 (fill_bytes)"},
      {-3, GK_ERROR_INVALID, "task 0 (fill_bytes)"}};
  int *x = int_on(device, 7);
  gk_graph *graph = NEW_GRAPH(device, &list, 0, {X, x});
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    call_answer = (gk_result)turns[k].answer;
    assert_fails(turns[k].result, turns[k].words, waited_for(graph, 0));
    assert_int_equal(int_at(device, x), 7);
  }
  call_answer = GK_OK;
  run_to_end(graph, 0);
  assert_int_equal(int_at(device, x), 0x03030304);
}

static gk_device *own_device;
static gk_result download(const gk_value *args, UNUSED void *native) {
  int x;
  return gk_download(own_device, &x, args[0].ptr, sizeof x);
}

/* The call would wait for the launch that it is part of. */
TEST_IN_MODES(test_call_of_its_own_device) {
  LIST(list, GK_RUN(add, N, X, A), GK_CALL(download, X));
  own_device = device;
  int *x = int_on(device, 7);
  gk_graph *graph = NEW_GRAPH(device, &list, mode_bits, {X, x});
  assert_fails(GK_ERROR_INVALID, "gk_download: task 1 (download) calls it on its own device", waited_for(graph, 0));
  assert_int_equal(int_at(device, x), 7);
}

/* The result of a creation in which the first call of that entry fails with that code. */
static const gk_list *created;
static gk_result create(gk_device *device, gk_graph **graph) { return gk_graph_create(device, created, 0, graph); }
static gk_result create_failing(gk_device *device, const gk_list *list, const char *entry, CUresult code,
                                gk_graph **graph) {
  created = list;
  return fail_entry(device, entry, code, create, graph);
}

/* In a body, and the driver says it only at the end: these codes are about the capture, others aren't. */
TEST_ON_CUDA(test_capture_ends_badly) {
  LIST(list, GK_IF(FLAG), GK_CALL(do_nothing, A), GK_END);
  static const int codes[2][4] = {
      {CUDA_ERROR_ILLEGAL_STATE, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
       CUDA_ERROR_CAPTURED_EVENT},
      {CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED - 1, CUDA_ERROR_CAPTURED_EVENT + 1,
       CUDA_ERROR_UNKNOWN}};
  gk_graph *graph = NULL;
  for (int k = 0; k < 8; ++k)
    assert_fails(k < 4 ? GK_ERROR_INVALID : GK_ERROR_DEVICE,
                 k < 4 ? "task 1 (do_nothing): what the call did can't be recorded"
                       : "cuStreamEndCapture for task 1 (do_nothing) of graph list: ",
                 create_failing(device, &list, "cuStreamEndCapture", (CUresult)codes[k / 4][k % 4], &graph));
}

/* Another stream is drawn into the capture; without `joins` it is left there. */
static CUstream other;
static bool joins;
static gk_result fork_there(const gk_value *args, void *native) {
  CUresult result = cu.cuEventRecord(events[0], native);
  if (result == CUDA_SUCCESS) result = cu.cuStreamWaitEvent(other, events[0], 0);
  if (result == CUDA_SUCCESS)
    result = cu.cuMemsetD8Async(at(args[0].ptr), (unsigned char)args[1].i32, sizeof(int), other);
  if (result == CUDA_SUCCESS && joins) result = cu.cuEventRecord(events[1], other);
  if (result == CUDA_SUCCESS && joins) result = cu.cuStreamWaitEvent(native, events[1], 0);
  return result == CUDA_SUCCESS ? GK_OK : GK_ERROR_DEVICE;
}

/* At the top and in a loop. */
TEST_IN_MODES(test_forked) {
  LIST(list, GK_CALL(fork_there, X, BYTE), GK_DO_WHILE(FLAG), GK_RUN(add, N, X, A), GK_CALL(fork_there, X, BYTE),
       GK_RUN(decrease, GK_ONE, FLAG), GK_END);
  enter_context(device);
  other = new_stream();
  for (int k = 0; k < 2; ++k) events[k] = new_event();
  int *x = int_on(device, 5);
  gk_graph *graph = NEW_GRAPH(device, &list, mode_bits, {X, x}, {FLAG, int_on(device, 3)});
  joins = false;
  assert_fails(GK_ERROR_INVALID, "task 0 (fork_there): what the call did can't be recorded", waited_for(graph, 0));
  joins = true;
  run_to_end(graph, 0);
  assert_int_equal(int_at(device, x), 0x03030303);
}

/* Nodes that a library adds besides its work on the stream: no child graph can hold a conditional node, a whole graph
 * can. `spoils`: the capture goes wrong after this call. */
static int spoils, added;
static gk_result add_condition(const gk_value *args, void *native) {
  CUstreamCaptureStatus status;
  CUgraph graph;
  CUgraphNode node, inside;
  const CUgraphNode *after;
  const CUgraphEdgeData *edges;
  size_t count;
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL, .conditional.size = 1};
  RIGHT(cu.cuStreamGetCaptureInfo(native, &status, NULL, &graph, &after, &edges, &count));
  RIGHT(cu.cuCtxGetCurrent(&asked.conditional.ctx));
  RIGHT(cu.cuGraphConditionalHandleCreate(&asked.conditional.handle, graph, asked.conditional.ctx, 1,
                                          GKI_CU_GRAPH_COND_ASSIGN_DEFAULT));
  RIGHT(cu.cuGraphAddNode(&node, graph, after, NULL, count, &asked));
  RIGHT(cu.cuGraphAddEmptyNode(&inside, asked.conditional.phGraph_out[0], NULL, 0));
  RIGHT(cu.cuStreamUpdateCaptureDependencies(native, &node, NULL, 1, 1));
  if (++added != spoils) return fill_bytes(args, native);
  (void)cu.cuStreamSynchronize(native);
  return GK_OK;
}

TEST_IN_MODES(test_in_no_child) {
  LIST(list, GK_RUN(add, N, X, A), GK_CALL(add_condition, X, BYTE), GK_RUN(add, N, X, A));
  int *x = int_on(device, 5);
  gk_graph *graph = NEW_GRAPH(device, &list, mode_bits, {X, x});
  for (spoils = 1; spoils <= 2; ++spoils) { /* the second time the driver frees the graph that it went into */
    added = 0;
    assert_fails(GK_ERROR_INVALID, "task 1 (add_condition): what the call did can't be recorded",
                 waited_for(graph, 0));
    assert_int_equal(added, spoils);
  }
  added = 0;
  run_to_end(graph, 0);
  assert_int_equal(added, 2);
  assert_int_equal(int_at(device, x), 0x03030304);
}

static int *known;
static gk_result fill_known(const gk_value *args, void *native) {
  return fill_bytes((const gk_value[]){{.ptr = known}, args[0]}, native);
}

/* What only the driver knows: the host gates the list. */
TEST_ON_CUDA(test_refused_by_the_driver) {
  LIST(list, GK_IF(FLAG), GK_CALL(fill_known, A), GK_END);
  LIST(flat, GK_CALL(fill_known, A));
  static const CUresult codes[] = {CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_VALUE};
  static const char entry[] = "cuGraphAddChildGraphNode";
  gk_graph *graph = NULL;
  CUgraph whole;
  known = int_on(device, 0);
  for (size_t k = 0; k < GK_COUNT(codes); ++k) {
    assert_ok(create_failing(device, &list, entry, codes[k], &graph));
    assert_fails(GK_ERROR_UNSUPPORTED, "task 1 (fill_known) recorded what the driver takes in whole graphs alone",
                 gk_cuda_graph(graph, 0, &whole, NULL));
    gk_graph_destroy(graph);
    graph = NULL;
    assert_fails(GK_ERROR_DEVICE, "cuGraphAddChildGraphNode for task 0 (fill_known) of graph flat: ",
                 create_failing(device, &flat, entry, codes[k], &graph));
  }
  assert_fails(GK_ERROR_DEVICE, "cuGraphAddChildGraphNode for task 1 (fill_known) of graph list: ",
               create_failing(device, &list, entry, CUDA_ERROR_UNKNOWN, &graph));
}

TEST_ON_CUDA(test_host_function_at_the_top) {
  LIST(list, GK_CALL(ask_host, A), GK_RUN(add, N, X, A));
  gk_graph *graph = NEW_GRAPH(device, &list, 0, {X, int_on(device, 0)});
  assert_ok(gk_cuda_graph(graph, 0, NULL, NULL)); /* not gated */
  on_host = 0;
  for (int k = 1; k <= 2; ++k) {
    run_to_end(graph, 0);
    assert_int_equal(on_host, k);
  }
}

/* gk sees it before the driver does. The list runs all the same. */
TEST_ON_CUDA(test_unfit_for_a_body) {
  static const char *const noes[] = {NULL, "types"};
  for (size_t k = 0; k < GK_COUNT(noes); ++k) {
    CUgraph whole;
    sim->answer_no(noes[k]);
    gk_graph *graph = NEW_GRAPH(device, &in_loop, 0, {FLAG, int_on(device, 3)});
    sim->answer_no(NULL);
    assert_fails(GK_ERROR_UNSUPPORTED, "the host gates it: task 2 (ask_host) recorded",
                 gk_cuda_graph(graph, 0, &whole, NULL));
    assert_says("recorded a host function, which no body of a conditional node can");
    assert_null(strstr(gk_error(), "the driver refuses"));
    on_host = 0;
    run_to_end(graph, 0);
    assert_int_equal(on_host, 3);
  }
}

/* When the host gates a list after all, the begun native graph is gone, and so is the failure. */
TEST_ON_CUDA(test_unfit_and_each_call_fails) {
  new_graph(device, &in_loop, 0); /* its kernels stay loaded */
  const size_t alive = alive_but_memory();
  FOR_EACH_CALL(k, failed) {
    gk_graph *graph = NULL;
    const gk_result result = FAILING(k, CUDA_ERROR_OUT_OF_MEMORY, failed, gk_graph_create(device, &in_loop, 0, &graph));
    assert_true(result == GK_OK || (failed && !graph));
    gk_graph_destroy(graph);
    assert_int_equal(alive_but_memory(), alive);
    assert_int_equal(sim->broken(), 0);
  }
}

/* The list runs all the same. */
TEST_ON_CUDA(test_event_wait_in_a_body) {
  enter_context(device);
  events[0] = new_event();
  int *flag = int_on(device, 3);
  gk_graph *graph = NEW_GRAPH(device, &in_loop_by_event, 0, {FLAG, flag});
  assert_fails(GK_ERROR_UNSUPPORTED, "task 2 (wait_for_event) recorded a wait for an event, which no body",
               gk_cuda_graph(graph, 0, NULL, NULL));
  run_to_end(graph, 0);
  assert_int_equal(int_at(device, flag), 0);
}

LIST(waiting, GK_IF(FLAG), GK_CALL(wait_there, X), GK_END);
LIST(adding, GK_IF(FLAG), GK_CALL(add_condition, X, BYTE), GK_END);
LIST(asking, GK_IF(FLAG), GK_CALL(ask_host, X), GK_END);

/* Where values come late, the refusal comes late, too. */
TEST_ON_CUDA(test_unfit_at_launch) {
  static const struct { const gk_list *list; gk_result result; const char *words, *also; } turns[] = {
      {&waiting, GK_ERROR_INVALID, "task 1 (wait_there)", ""},
      {&adding, GK_ERROR_UNSUPPORTED, "task 1 (add_condition) recorded a conditional node, which no body", ""},
      {&asking, GK_ERROR_UNSUPPORTED, "task 1 (ask_host) recorded", "create it with GK_HOST_GATED"}};
  spoils = 0;
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    gk_graph *graph = NEW_GRAPH(device, turns[k].list, 0, {X, int_on(device, 7)}, {FLAG, int_on(device, 1)});
    assert_fails(turns[k].result, turns[k].words, waited_for(graph, 0));
    assert_says(turns[k].also);
  }
  on_host = 0;
  run_to_end(NEW_GRAPH(device, &asking, GK_HOST_GATED, {X, int_on(device, 7)}, {FLAG, int_on(device, 1)}), 0);
  assert_int_equal(on_host, 1);
}

/* A node that only the driver refuses: the message names it. */
TEST_ON_CUDA(test_blamed) {
  LIST(list, GK_RUN(add, N, X, A), GK_IF(FLAG), GK_CALL(fill_bytes, X, BYTE), GK_END);
  CUdeviceptr managed;
  enter_context(device);
  RIGHT(cu.cuMemAllocManaged(&managed, sizeof(int), CU_MEM_ATTACH_GLOBAL));
  gk_graph *graph = NEW_GRAPH(device, &list, 0, {X, (void *)(uintptr_t)managed}, {FLAG, int_on(device, 1)});
  assert_fails(GK_ERROR_UNSUPPORTED, "the driver refuses the graph of conditional nodes at task 2 (fill_bytes), "
               "recorded, it holds what no graph or body may hold", waited_for(graph, 0));
  discard(graph);
  RIGHT(cu.cuMemFree(managed));
}

int main(UNUSED int count, char **words) { return run_on_simgpu(words); }
