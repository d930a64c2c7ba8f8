/* What a launch on CUDA costs: which calls of the driver it makes, and that it neither allocates nor waits. */
#include "cuda/launch.h"
#include "base/error.h"
#include "graphs.h"
#include "lists.h"

LIST(two, GK_RUN(add, N, X, A), GK_RUN(add, N, X, A));

/* What a launch does, by the driver's counts. */
static simgpu_counts counts_of_launch(gk_graph *graph, int32_t label) {
  sim->mark();
  assert_ok(gk_launch(graph, label));
  simgpu_counts counts = sim->counts();
  assert_ok(gk_wait(graph, NULL));
  return counts;
}

TEST_ON_CUDA(test_straight) {
  int *x = ints_on(device, (const int[]){1, 2, 3}, 3);
  gk_graph *graph = NEW_GRAPH(device, &two, 0, {X, x});
  BIND_INTS(graph, {N, 3}, {A, 10});
  run_to_end(graph, 0);
  ASSERT_VALUES({x + 2, 23});
  gk_bind_int(graph, N, 2);
  run_to_end(graph, 0);
  ASSERT_VALUES({x + 1, 42}, {x + 2, 23});
}

/* A list of `count` tasks with a checkpoint and a loop around them. */
static gk_graph *long_graph(gk_device *device, uint32_t count) {
  gk_task *tasks = calloc(count + 6, sizeof *tasks);
  uint32_t end = 0;
  tasks[end++] = (gk_task)GK_DO_WHILE(LEFT);
  tasks[end++] = (gk_task)GK_CHECKPOINT(HERE, FLAG);
  for (uint32_t k = 0; k < count; ++k) tasks[end++] = (gk_task)GK_RUN(add, N, X, A);
  tasks[end++] = (gk_task)GK_RUN(decrease, GK_ONE, LEFT);
  tasks[end++] = (gk_task)GK_END;
  tasks[end++] = (gk_task)GK_END;
  const gk_list list = {GK_ABI, "long", tasks, end, slots, GK_COUNT(slots)};
  gk_graph *graph = graph_on(device, &list, 0);
  free(tasks);
  return graph;
}

/* A graph with memory of its own, for three passes. */
typedef struct rig { gk_graph *graph; int *x, *left, *flag; } rig;

static rig rig_of(gk_device *device, gk_graph *graph) {
  const rig r = {graph, int_on(device, 0), int_on(device, 3), int_on(device, 0)};
  BIND(graph, {X, r.x}, {LEFT, r.left}, {FLAG, r.flag});
  return r;
}
static rig long_rig(gk_device *device, uint32_t count) {
  return rig_of(device, keep(long_graph(device, count), destroy_graph));
}

static void assert_no_upkeep(const simgpu_counts *counts) {
  assert_int_equal(counts->pageable, 0);
  assert_int_equal(counts->waits, 0);
  assert_int_equal(counts->memory, 0);
}

TEST_ON_CUDA(test_replay_is_one_call) {
  const rig r = long_rig(device, 20);
  counts_of_launch(r.graph, 0);
  set_int(device, r.left, 3);
  const simgpu_counts counts = counts_of_launch(r.graph, 0);
  assert_int_equal(sim->calls("cuGraphLaunch"), 1);
  assert_int_equal(counts.launches, 1);
  assert_int_equal(counts.copies, 0);
  assert_no_upkeep(&counts);
  assert_true(counts.calls <= 3); /* the context comes and goes */
  ASSERT_VALUES({r.x, 120});
}

TEST_ON_CUDA(test_rebinding_costs_the_same_for_any_list) {
  uint64_t calls[2];
  for (int k = 0; k < 2; ++k) {
    int *y = int_on(device, 0);
    const rig r = long_rig(device, k ? 1000 : 2);
    counts_of_launch(r.graph, 0);
    set_int(device, r.left, 1);
    BIND(r.graph, {X, y});
    BIND_INTS(r.graph, {A, 5});
    const simgpu_counts counts = counts_of_launch(r.graph, 0);
    calls[k] = counts.calls;
    assert_int_equal(counts.copies, 1);
    assert_no_upkeep(&counts);
    assert_int_equal(sim->calls("cuGraphExecNodeSetParams"), 0);
    ASSERT_VALUES({y, k ? 5000 : 10});
  }
  assert_int_equal(calls[0], calls[1]);
  assert_true(calls[0] <= 4);
}

TEST_ON_CUDA(test_resume_is_made_once) {
  LIST(list, GK_RUN(add, N, X, A), GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_END,
       GK_RUN(add, N, X, A), GK_CHECKPOINT(THERE, LEFT), GK_RUN(add, N, X, A), GK_END, GK_RUN(add, N, X, A));
  const rig r = rig_of(device, new_graph(device, &list, 0));
  SET_VALUES({r.flag, 1}, {r.left, 0});
  assert_int_equal(run_to_end(r.graph, 0)->yielded, HERE);
  ASSERT_VALUES({r.x, 2});
  set_int(device, r.flag, 0);
  assert_int_equal(run_to_end(r.graph, HERE)->state, GK_FINISHED);
  ASSERT_VALUES({r.x, 6});
  const simgpu_counts counts = counts_of_launch(r.graph, THERE);
  assert_no_upkeep(&counts);
  assert_int_equal(sim->calls("cuGraphExecNodeSetParams"), 1); /* another target */
  ASSERT_VALUES({r.x, 8});
  assert_int_equal(counts_of_launch(r.graph, THERE).copies, 0);
  assert_int_equal(sim->calls("cuGraphExecNodeSetParams"), 0);
}

TEST_ON_CUDA(test_queue) {
  LIST(list, GK_RUN(apply, N, X, LINE));
  check_queue(device, new_graph(device, &list, GK_NONBLOCKING), X, LINE);
  check_waiting(device, new_graph(device, &list, 0), X, LINE);
}

/* Two graphs in turn: the end of one is known though the work of the other is behind it. */
TEST_ON_CUDA(test_two_graphs) {
  const rig rigs[] = {long_rig(device, 3), long_rig(device, 3)};
  for (int k = 0; k < 40; ++k) {
    SET_VALUES({rigs[0].left, 1}, {rigs[1].left, 1});
    for (int r = 0; r < 2; ++r) assert_ok(gk_launch(rigs[r].graph, 0));
    for (int r = 0; r < 2; ++r) assert_ok(gk_wait(rigs[(k + r + 1) % 2].graph, NULL));
  }
  ASSERT_VALUES({rigs[0].x, 120}, {rigs[1].x, 120});
}

/* One that goes on for ever, until it is cancelled or `flag` is 0. */
static gk_graph *endless_graph(gk_device *device, int *flag) {
  LIST(list, GK_DO_WHILE(FLAG), GK_RUN(add, N, X, A), GK_END);
  sim->set_passes(UINT64_MAX);
  return NEW_GRAPH(device, &list, GK_CANCELLABLE, {X, int_on(device, 0)}, {FLAG, flag});
}

TEST_ON_CUDA(test_cancel) {
  int *flag = int_on(device, 1);
  gk_graph *graph = endless_graph(device, flag);
  const gk_status *status;
  for (int k = 0; k < 3; ++k) { /* for ever, twice */
    assert_ok(gk_launch(graph, 0));
    assert_ok(gk_launch(graph, 0));
    assert_int_equal(gk_poll(graph, NULL), GK_NOT_READY);
    assert_ok(gk_cancel(graph));
    assert_ok(gk_wait(graph, &status));
    assert_int_equal(status->state, GK_CANCELLED);
    assert_int_equal(status->loops[0].passes, 1);
  }
  set_int(device, flag, 0);
  assert_int_equal(run_to_end(graph, 0)->state, GK_FINISHED);
}

/* No launch takes memory from the allocator hook, after any bind or when it resumes for the second time. */
COUNTED(test_no_host_memory) {
  gk_device *device = open_named("cuda");
  const rig r = rig_of(device, long_graph(device, 10));
  run_to_end(r.graph, HERE);
  const int before = atomic_load(&own_memory.calls);
  for (int k = 0; k < 5; ++k) {
    gk_bind_int(r.graph, A, k);
    set_int(device, r.left, 1);
    assert_ok(gk_launch(r.graph, k % 2 ? HERE : 0));
    while (gk_poll(r.graph, NULL) == GK_NOT_READY) continue;
    assert_ok(gk_wait(r.graph, NULL));
  }
  assert_int_equal(atomic_load(&own_memory.calls), before);
  gk_graph_destroy(r.graph);
  gk_device_close(device);
}

/* A failed assertion leaves the test, which no other thread can do. No other thread may be within gk then, so what
 * failed there is kept, and asserted after they have ended. */
typedef struct worker {
  gk_device *device;
  gk_graph *graph;
  atomic_bool *done;
  int *x, sum, failed;
} worker;

static void *work(void *data) {
  worker *w = data;
  const rig r = rig_of(w->device, long_graph(w->device, 3));
  for (int k = 1; k <= 20; ++k) {
    set_int(w->device, r.left, 1);
    gk_bind_int(r.graph, A, k);
    w->failed += gk_launch(r.graph, 0) != GK_OK;
    w->failed += gk_wait(r.graph, NULL) != GK_OK;
  }
  w->sum = int_at(w->device, r.x);
  gk_graph_destroy(r.graph);
  return NULL;
}

/* Each has a graph of its own, and all the one stream. */
TEST_ON_CUDA(test_threads) {
  worker workers[4] = {{.device = device}, {.device = device}, {.device = device}, {.device = device}};
  RUN_THREADS(work, workers);
  for (int k = 0; k < 4; ++k) {
    assert_int_equal(workers[k].failed, 0);
    assert_int_equal(workers[k].sum, 3 * 210);
  }
}

static void *keep_cancelling(void *data) {
  worker *w = data;
  while (!atomic_load(w->done)) w->failed += gk_cancel(w->graph) != GK_OK;
  return NULL;
}

static void *keep_copying(void *data) {
  worker *w = data;
  while (!atomic_load(w->done)) {
    int value = 0;
    w->failed += gk_download(w->device, &value, w->x, sizeof value) != GK_OK || value != 5;
  }
  return NULL;
}

/* How launch k of each thread ends. */
static gk_result end_of(gk_graph *graph, int k, gk_state *state) {
  const gk_status *status = NULL;
  gk_bind_int(graph, A, k);
  gk_result result = gk_launch(graph, 0);
  if (result == GK_OK && k % 2) result = gk_launch(graph, 0);
  if (result != GK_OK) return result;
  result = gk_poll(graph, &status);
  if (k % 3) result = gk_wait(graph, &status);
  while (result == GK_NOT_READY) result = gk_poll(graph, &status);
  if (result == GK_OK) *state = status->state;
  return result;
}

/* One thread launches, polls and waits for a graph that would never end, another one cancels it, and a third one gives
 * the device other work meanwhile. */
TEST_ON_CUDA(test_cancelled_by_others) {
  gk_graph *graph = endless_graph(device, int_on(device, 1));
  atomic_bool done = false;
  worker others[2] = {{.graph = graph, .done = &done}, {.device = device, .done = &done, .x = int_on(device, 5)}};
  const pthread_t threads[] = {start_thread(keep_cancelling, &others[0]), start_thread(keep_copying, &others[1])};
  gk_result result = GK_OK;
  gk_state ended = GK_CANCELLED;
  for (int k = 0; k < 50 && result == GK_OK && ended == GK_CANCELLED; ++k) result = end_of(graph, k, &ended);
  atomic_store(&done, true);
  for (int k = 0; k < 2; ++k) join_thread(threads[k]);
  assert_ok(result);
  assert_int_equal(ended, GK_CANCELLED);
  for (int k = 0; k < 2; ++k) assert_int_equal(others[k].failed, 0);
}

/* The device is lost while a launch runs: from then on each call answers so, with the first failure; none hangs, and it
 * can be closed. */
TEST_ON_CUDA(test_device_is_lost) {
  gk_device *other = NULL;
  const rig r = long_rig(device, 2);
  gk_graph *graph = NEW_GRAPH(device, &two, 0, {X, r.x}), *more = NULL;
  gk_graph *gated = NEW_GRAPH(device, &two, GK_HOST_GATED, {X, r.x});
  int *page = gk_alloc(device, sizeof *page, GK_HOST_MEMORY), value = 1;
  (sim->fail)(1, CUDA_ERROR_ILLEGAL_ADDRESS, SIMGPU_LATE);
  assert_fails(GK_ERROR_DEVICE, "cuEventSynchronize of graph two: an illegal memory access", waited_for(graph, 0));
  assert_says("; some task touched memory that isn't its own: of a graph created with GK_ISOLATE it is named");
  sim->mark();
#define IS_LOST(call) \
  do { \
    assert_fails(GK_ERROR_DEVICE, "is lost; close it", call); \
    assert_says("It began with: cuEventSynchronize of graph two: an illegal memory access"); \
  } while (0)
  gk_graph *const all[] = {r.graph, gated, graph};
  for (int k = 0; k < 3; ++k) IS_LOST(gk_launch(all[k], 0));
  for (int k = 0; k < 3; ++k) IS_LOST(gk_launch_on(all[k], 0, NULL));
  assert_null(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  assert_says("It began with: cuEventSynchronize of graph two");
  IS_LOST(gk_upload(device, r.x, &value, sizeof value));
  IS_LOST(gk_download(device, &value, r.x, sizeof value));
  IS_LOST(gk_upload(device, page, &value, sizeof value));
  IS_LOST(gk_graph_create(device, &looping, 0, &more));
  assert_null(more);
  assert_int_equal(sim->counts().calls, 0); /* gk asks the device for nothing any more */
  assert_int_equal(gk_device_open(&(gk_device_desc){.backend = "cuda"}, &other), GK_ERROR_DEVICE);
  assert_null(other);
  discard_all();
  gk_free(device, page);
}

/* After a posted status the last kernel may still run. gk waits for its end before it gives anything back. */
TEST_ON_CUDA(test_destroyed_when_over) {
  const rig r = long_rig(device, 2), never = long_rig(device, 2);
  gk_graph *last = NEW_GRAPH(device, &two, 0, {X, r.x}), *const destroyed[] = {r.graph, last, never.graph};
  static const uint64_t waits[] = {1, 2, 2};
  assert_ok(gk_launch(r.graph, 0));
  while (gk_poll(r.graph, NULL) == GK_NOT_READY) continue;
  run_to_end(last, 0); /* it marks the end of the launch before */
  sim->mark();
  for (int k = 0; k < 3; ++k) {
    discard(destroyed[k]);
    assert_int_equal(sim->calls("cuEventSynchronize"), waits[k]);
  }
}

static gk_result make_looping(gk_device *device, gk_graph **graph) {
  return gk_graph_create(device, &looping, 0, graph);
}

/* The host gates a graph that the driver refuses, for any reason. */
TEST_ON_CUDA(test_refused) {
  gk_graph *graph;
  assert_ok(fail_entry(device, "cuGraphInstantiateWithParams", CUDA_ERROR_NOT_SUPPORTED, make_looping, &graph));
  assert_int_equal(sim->calls("cuGraphInstantiateWithParams"), 3); /* then a run, and the control kernel alone */
  sim->mark();
  const rig r = rig_of(device, keep(graph, destroy_graph));
  assert_int_equal(run_to_end(graph, 0)->loops[0].passes, 3);
  ASSERT_VALUES({r.x, 3});
}

/* It doesn't if memory is short, as others may free some, or if the device is lost. */
TEST_ON_CUDA(test_refused_for_a_while) {
  gk_graph *graph;
  /* The creation is tried once more. */
  assert_ok(fail_entry(device, "cuGraphInstantiateWithParams", CUDA_ERROR_OUT_OF_MEMORY, make_looping, &graph));
  assert_int_equal(sim->calls("cuGraphInstantiateWithParams"), 2);
  assert_int_equal(sim->calls("cuGraphConditionalHandleCreate"), 1); /* and the graph is native */
  assert_int_equal(sim->calls("cuDeviceGraphMemTrim"), 1);
  gk_graph_destroy(graph);
  bool found = false;
  for (uint64_t k = 1; !found; ++k) {
    gk_device *lost = open_named("cuda");
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_ILLEGAL_ADDRESS, SIMGPU_LOST);
    const gk_result result = gk_graph_create(lost, &looping, 0, &graph);
    assert_non_null(sim->failed());
    found = strcmp(sim->failed(), "cuGraphInstantiateWithParams") == 0;
    if (found) {
      assert_fails(GK_ERROR_DEVICE, "cuGraphInstantiate", result);
      assert_int_equal(sim->calls("cuGraphInstantiateWithParams"), 1);
    }
    gk_graph_destroy(graph);
    gk_device_close(lost);
    sim->mark();
  }
}

/* Too late for that: the first launch that resumes makes the graph that resumes. */
TEST_ON_CUDA(test_resume_is_refused) {
  LIST(list, GK_DO_WHILE(LEFT), GK_CALL(do_nothing, 0), GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_END,
       GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, LEFT), GK_END);
  const char *failed = "";
  for (uint64_t k = 1; strcmp(failed, "cuGraphInstantiateWithParams") != 0; ++k) {
    const rig r = rig_of(device, new_graph(device, &list, 0));
    fail_call(k, CUDA_ERROR_NOT_SUPPORTED);
    const gk_result result = run_on_stream(r.graph, HERE, NULL);
    failed = failed_call();
    assert_non_null(failed);
    if (strcmp(failed, "cuGraphInstantiateWithParams") == 0) {
      assert_fails(GK_ERROR_UNSUPPORTED, "refuses the graph of conditional nodes", result);
      assert_says("create it with GK_HOST_GATED");
      set_int(device, r.left, 3);
      run_to_end(r.graph, HERE);
    }
    discard(r.graph);
  }
}

/* A status that a faulty kernel may have overwritten isn't believed. */
TEST(test_posted_nonsense) {
  static const gki_cuda_status posted[] = {
    {.number = 1, .state = GK_YIELDED, .yielded = 1}, {.number = 1, .state = GK_FINISHED, .limit = 2},
    {.number = 1, .state = 7}, {.number = 1, .state = GK_YIELDED, .yielded = 3},
    {.number = 1, .state = GK_YIELDED, .yielded = 2}, {.number = 1, .state = GK_YIELDED, .yielded = UINT32_MAX},
    {.number = 1, .limit = 1}, {.number = 1, .limit = 99}};
  gk_node nodes[3] = {{.loop = GK_NONE}, {.op = GK_OP_CHECKPOINT, .loop = GK_NONE}, {.op = GK_OP_WHILE}};
  const gk_plan plan = {.name = "torn", .nodes = nodes, .node_count = 3, .loop_count = 1, .checkpoint_count = 1};
  for (size_t k = 0; k < GK_COUNT(posted); ++k) {
    gki_cuda_graph graph = {.plan = &plan};
    uint64_t passes;
    uint8_t hit_bound, ran;
    gk_launch_result record = {.passes = &passes, .hit_bound = &hit_bound, .ran = &ran};
    assert_int_equal(gki_cuda_shared_lay_out(&plan, &graph.shared), GK_OK);
    graph.pinned = calloc(1, GKI_CUDA_STATUSES_AT + graph.shared.status_bytes);
    memcpy(graph.pinned + GKI_CUDA_STATUSES_AT, &posted[k], sizeof *posted);
    gki_cuda_counts_make(&graph.counts, &graph.parameters, graph.pinned + GKI_CUDA_POSTS_AT, false);
    gki_begin();
    const gk_result result = gki_cuda_wait(&graph, true, &record);
    if (k < 2) assert_ok(result);
    else assert_fails(GK_ERROR_DEVICE, "launch 1 posted a status that can't be", result);
    free(graph.pinned);
  }
}

TEST_ON_CUDA(test_too_many_items) {
  LIST(list, GK_RUN_2D(number, N, A, X, N));
  gk_graph *graph = NEW_GRAPH(device, &list, 0, {X, int_on(device, 0)});
  BIND_INTS(graph, {N, 1 << 16}, {A, 1 << 16});
  for (int k = 0; k < 3; ++k) /* each is told, though no kernel counts launches of such a list */
    assert_invalid("more than 2147483647 items: 65536 by slot", waited_for(graph, 0));
  BIND_INTS(graph, {N, 1}, {A, 1});
  run_to_end(graph, 0);
}

/* The size of memory as it is bound: larger, smaller, and again. */
TEST_ON_CUDA(test_capacity_is_sent) {
  LIST(list, GK_FILL(X, N, 7));
  static const size_t sizes[] = {4, 2, 8, 8, 1, 3};
  gk_graph *graph = new_graph(device, &list, 0);
  for (size_t k = 0; k < GK_COUNT(sizes); ++k) {
    int *x = zeros(device, sizes[k]);
    gk_bind(graph, X, x);
    for (int more = 1; more >= 0; --more) {
      gk_bind_int(graph, N, (int64_t)sizes[k] + more);
      assert_int_equal(waited_for(graph, 0), more ? GK_ERROR_INVALID : GK_OK);
    }
    ASSERT_VALUES({x + sizes[k] - 1, 7});
  }
}

int main(UNUSED int count, char **words) { return run_on_simgpu(words); }
