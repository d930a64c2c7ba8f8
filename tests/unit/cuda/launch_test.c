/* What a launch on CUDA costs: which calls of the driver it makes, and that it neither allocates nor waits. */
#include "world.h"
#include "cuda/launch.h"
#include "base/error.h"
#include "unit/support/runtime_kernels.h"

enum { X = 1, N, A, FLAG, LEFT, LINE, SLOTS };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_SCALAR(N, int),    GK_SCALAR(A, int), GK_BUFFER(FLAG, int),
                                     GK_BUFFER(LEFT, int), GK_STRUCT_VALUE(LINE, line)};
enum { HERE = 7, THERE };

static const gk_task two_tasks[] = {GK_RUN(add, N, X, A), GK_RUN(add, N, X, A)};
static const gk_list two = GK_LIST(two, two_tasks, slots);

/* What a launch does, told by the driver's counts; nothing of gk's own host memory is taken meanwhile. */
static simgpu_counts counts_of_launch(gk_graph *graph, int32_t label) {
  sim->mark();
  assert_ok(gk_launch(graph, label));
  simgpu_counts counts = sim->counts();
  assert_ok(gk_wait(graph, NULL));
  return counts;
}

TEST_ON_CUDA(test_straight) {
  gk_graph *graph = graph_on(device, &two, 0);
  int *x = ints_on(device, (const int[]){1, 2, 3}, 3);
  gk_bind(graph, X, x);
  gk_bind_int(graph, N, 3);
  gk_bind_int(graph, A, 10);
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(device, x + 2), 23);
  gk_bind_int(graph, N, 2);
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(device, x + 1), 42);
  assert_int_equal(int_at(device, x + 2), 23);
  gk_graph_destroy(graph);
}

/* A list of `count` tasks with a checkpoint and a loop around them. */
static gk_graph *long_graph(gk_device *device, uint32_t count) {
  gk_task *tasks = calloc(count + 6, sizeof *tasks);
  uint32_t at = 0;
  tasks[at++] = (gk_task)GK_DO_WHILE(LEFT);
  tasks[at++] = (gk_task)GK_CHECKPOINT(HERE, FLAG);
  for (uint32_t k = 0; k < count; ++k) tasks[at++] = (gk_task)GK_RUN(add, N, X, A);
  tasks[at++] = (gk_task)GK_RUN(decrease, GK_ONE, LEFT);
  tasks[at++] = (gk_task)GK_END;
  tasks[at++] = (gk_task)GK_END;
  const gk_list list = {GK_ABI, "long", tasks, at, slots, GK_COUNT(slots)};
  gk_graph *graph = graph_on(device, &list, 0);
  free(tasks);
  return graph;
}

static void bind_all(gk_device *device, gk_graph *graph, int *x, int *left, int *flag) {
  gk_bind(graph, X, x);
  gk_bind(graph, LEFT, left);
  gk_bind(graph, FLAG, flag);
  gk_bind_int(graph, N, 1);
  gk_bind_int(graph, A, 1);
  set_int(device, left, 3);
}

TEST_ON_CUDA(test_replay_is_one_call) {
  int *x = int_on(device, 0), *left = int_on(device, 0), *flag = int_on(device, 0);
  gk_graph *graph = long_graph(device, 20);
  bind_all(device, graph, x, left, flag);
  counts_of_launch(graph, 0);
  set_int(device, left, 3);
  const simgpu_counts counts = counts_of_launch(graph, 0);
  assert_int_equal(sim->calls("cuGraphLaunch"), 1);
  assert_int_equal(counts.launches, 1);
  assert_int_equal(counts.copies, 0);
  assert_int_equal(counts.waits, 0);
  assert_int_equal(counts.memory, 0);
  assert_true(counts.calls <= 3); /* the context comes and goes */
  assert_int_equal(int_at(device, x), 120);
  gk_graph_destroy(graph);
}

TEST_ON_CUDA(test_rebinding_costs_the_same_for_any_list) {
  uint64_t calls[2];
  for (int k = 0; k < 2; ++k) {
    int *x = int_on(device, 0), *y = int_on(device, 0), *left = int_on(device, 0), *flag = int_on(device, 0);
    gk_graph *graph = long_graph(device, k ? 1000 : 2);
    bind_all(device, graph, x, left, flag);
    counts_of_launch(graph, 0);
    set_int(device, left, 1);
    gk_bind(graph, X, y);
    gk_bind_int(graph, A, 5);
    const simgpu_counts counts = counts_of_launch(graph, 0);
    calls[k] = counts.calls;
    assert_int_equal(counts.copies, 1);
    assert_int_equal(counts.pageable, 0);
    assert_int_equal(counts.waits, 0);
    assert_int_equal(counts.memory, 0);
    assert_int_equal(sim->calls("cuGraphExecNodeSetParams"), 0);
    assert_int_equal(int_at(device, y), k ? 5000 : 10);
    gk_graph_destroy(graph);
  }
  assert_int_equal(calls[0], calls[1]);
  assert_true(calls[0] <= 4);
}

TEST_ON_CUDA(test_resume_is_made_once) {
  static const gk_task tasks[] = {
    GK_RUN(add, N, X, A), GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_END,
    GK_RUN(add, N, X, A), GK_CHECKPOINT(THERE, LEFT), GK_RUN(add, N, X, A), GK_END, GK_RUN(add, N, X, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  int *x = int_on(device, 0), *left = int_on(device, 0), *flag = int_on(device, 1);
  gk_graph *graph = graph_on(device, &list, 0);
  bind_all(device, graph, x, left, flag);
  set_int(device, left, 0);
  const gk_status *status;
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->state, GK_YIELDED);
  assert_int_equal(status->yielded, HERE);
  assert_int_equal(int_at(device, x), 2);
  set_int(device, flag, 0);
  assert_ok(gk_launch(graph, HERE));
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->state, GK_FINISHED);
  assert_int_equal(int_at(device, x), 6);
  const simgpu_counts counts = counts_of_launch(graph, THERE);
  assert_int_equal(counts.memory, 0);
  assert_int_equal(counts.waits, 0);
  assert_int_equal(sim->calls("cuGraphExecNodeSetParams"), 1); /* another target */
  assert_int_equal(int_at(device, x), 8);
  assert_int_equal(counts_of_launch(graph, THERE).copies, 0);
  assert_int_equal(sim->calls("cuGraphExecNodeSetParams"), 0);
  gk_graph_destroy(graph);
}

/* Each of many launches under way sees what was bound for it, structs too. */
TEST_ON_CUDA(test_queue) {
  static const gk_task tasks[] = {GK_RUN(apply, N, X, LINE)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, 0);
  int x[16], *memory[16];
  for (int k = 0; k < 16; ++k) memory[k] = int_on(device, 1);
  gk_bind_int(graph, N, 1);
  sim->hold(true);
  for (int k = 0; k < 16; ++k) {
    gk_bind_bytes(graph, LINE, &(line){k, 1000}, sizeof(line));
    gk_bind(graph, X, memory[k]);
    assert_ok(gk_launch(graph, 0));
  }
  assert_int_equal(gk_launch(graph, 0), GK_ERROR_BUSY);
  assert_int_equal(gk_poll(graph, NULL), GK_NOT_READY);
  sim->hold(false);
  assert_ok(gk_wait(graph, NULL));
  for (int k = 0; k < 16; ++k) {
    x[k] = int_at(device, memory[k]);
    assert_int_equal(x[k], 1000 + k);
  }
  gk_graph_destroy(graph);
}

/* Two graphs in turn: the end of one is known though the other's work is behind it. */
TEST_ON_CUDA(test_two_graphs) {
  int *x = int_on(device, 0), *y = int_on(device, 0), *left = int_on(device, 0), *flag = int_on(device, 0);
  int *left_2 = int_on(device, 0);
  gk_graph *one = long_graph(device, 3), *other = long_graph(device, 3);
  bind_all(device, one, x, left, flag);
  bind_all(device, other, y, left_2, flag);
  for (int k = 0; k < 40; ++k) {
    set_int(device, left, 1);
    set_int(device, left_2, 1);
    assert_ok(gk_launch(one, 0));
    assert_ok(gk_launch(other, 0));
    assert_ok(gk_wait(k % 2 ? one : other, NULL));
    assert_ok(gk_wait(k % 2 ? other : one, NULL));
  }
  assert_int_equal(int_at(device, x), 120);
  assert_int_equal(int_at(device, y), 120);
  gk_graph_destroy(one);
  gk_graph_destroy(other);
}

/* One that goes on for ever, until it is cancelled or `flag` is 0. */
static gk_graph *endless_graph(gk_device *device, int **flag) {
  static const gk_task tasks[] = {GK_DO_WHILE(FLAG), GK_RUN(add, N, X, A), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, GK_CANCELLABLE);
  *flag = int_on(device, 1);
  sim->set_passes(UINT64_MAX);
  gk_bind(graph, X, int_on(device, 0));
  gk_bind(graph, FLAG, *flag);
  gk_bind_int(graph, N, 1);
  gk_bind_int(graph, A, 1);
  return graph;
}

TEST_ON_CUDA(test_cancel) {
  int *flag;
  gk_graph *graph = endless_graph(device, &flag);
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
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->state, GK_FINISHED);
  gk_graph_destroy(graph);
}

/* Nothing is taken from the allocator hook, whatever was bound, nor when a launch resumes for the second time. */
TEST(test_no_host_memory) {
  static counting counts;
  const gk_allocator allocator = counting_allocator(&counts);
  assert_ok(gk_set_allocator(&allocator));
  gk_device *device = open_named("cuda");
  int *x = int_on(device, 0), *left = int_on(device, 0), *flag = int_on(device, 0);
  gk_graph *graph = long_graph(device, 10);
  bind_all(device, graph, x, left, flag);
  assert_ok(gk_launch(graph, HERE));
  assert_ok(gk_wait(graph, NULL));
  const int before = atomic_load(&counts.calls);
  for (int k = 0; k < 5; ++k) {
    gk_bind_int(graph, A, k);
    set_int(device, left, 1);
    assert_ok(gk_launch(graph, k % 2 ? HERE : 0));
    while (gk_poll(graph, NULL) == GK_NOT_READY) continue;
    assert_ok(gk_wait(graph, NULL));
  }
  assert_int_equal(atomic_load(&counts.calls), before);
  gk_graph_destroy(graph);
  gk_device_close(device);
  assert_int_equal(atomic_load(&counts.live), 0);
  assert_ok(gk_set_allocator(NULL));
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* A failed assertion leaves the test, which no other thread can do, and none may be left behind in gk: what failed
 * there is kept, and asserted once they have ended. */
typedef struct worker { gk_device *device; pthread_t thread; int sum, failed; } worker;

static void *work(void *at) {
  worker *w = at;
  int *x = int_on(w->device, 0), *left = int_on(w->device, 0), *flag = int_on(w->device, 0);
  gk_graph *graph = long_graph(w->device, 3);
  bind_all(w->device, graph, x, left, flag);
  for (int k = 1; k <= 20; ++k) {
    set_int(w->device, left, 1);
    gk_bind_int(graph, A, k);
    w->failed += gk_launch(graph, 0) != GK_OK;
    w->failed += gk_wait(graph, NULL) != GK_OK;
  }
  w->sum = int_at(w->device, x);
  gk_graph_destroy(graph);
  return NULL;
}

/* Each has a graph of its own, and all the one stream. */
TEST_ON_CUDA(test_threads) {
  worker workers[4];
  for (int k = 0; k < 4; ++k) {
    workers[k] = (worker){.device = device};
    assert_int_equal(pthread_create(&workers[k].thread, NULL, work, &workers[k]), 0);
  }
  for (int k = 0; k < 4; ++k) pthread_join(workers[k].thread, NULL);
  for (int k = 0; k < 4; ++k) {
    assert_int_equal(workers[k].failed, 0);
    assert_int_equal(workers[k].sum, 3 * 210);
  }
}

typedef struct canceller {
  gk_graph *graph;
  gk_device *device;
  pthread_t thread;
  atomic_bool *done;
  int *x, failed;
} canceller;

static void *keep_cancelling(void *at) {
  canceller *c = at;
  while (!atomic_load(c->done)) c->failed += gk_cancel(c->graph) != GK_OK;
  return NULL;
}

static void *keep_copying(void *at) {
  canceller *c = at;
  while (!atomic_load(c->done)) {
    int value = 0;
    c->failed += gk_download(c->device, &value, c->x, sizeof value) != GK_OK || value != 5;
  }
  return NULL;
}

/* How the kth launches end. */
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

/* A graph that would never end is launched, polled and waited for by one thread, cancelled by another, and a third one
 * has the device do other things meanwhile. */
TEST_ON_CUDA(test_cancelled_by_others) {
  int *flag;
  gk_graph *graph = endless_graph(device, &flag);
  atomic_bool done = false;
  canceller others[2] = {{.graph = graph, .done = &done},
                         {.device = device, .done = &done, .x = int_on(device, 5)}};
  assert_int_equal(pthread_create(&others[0].thread, NULL, keep_cancelling, &others[0]), 0);
  assert_int_equal(pthread_create(&others[1].thread, NULL, keep_copying, &others[1]), 0);
  gk_result result = GK_OK;
  gk_state ended = GK_CANCELLED;
  for (int k = 0; k < 50 && result == GK_OK && ended == GK_CANCELLED; ++k) result = end_of(graph, k, &ended);
  atomic_store(&done, true);
  for (int k = 0; k < 2; ++k) pthread_join(others[k].thread, NULL);
  assert_ok(result);
  assert_int_equal(ended, GK_CANCELLED);
  for (int k = 0; k < 2; ++k) assert_int_equal(others[k].failed, 0);
  gk_free(device, others[1].x);
  gk_graph_destroy(graph);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static const gk_task loop_tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, LEFT), GK_END};
static const gk_list loop = GK_LIST(loop, loop_tasks, slots);

/* The device is lost while a launch runs: from then on all that is asked of it says so, and with what it began; none
 * hangs, and it can be closed. */
TEST_ON_CUDA(test_device_is_lost) {
  gk_device *other = NULL;
  gk_graph *graph = graph_on(device, &two, 0), *looping = long_graph(device, 2), *more = NULL;
  gk_graph *gated = graph_on(device, &two, GK_HOST_GATED);
  int *x = int_on(device, 0), *left = int_on(device, 0), *flag = int_on(device, 0), value = 1;
  int *page = gk_alloc(device, sizeof *page, GK_HOST_MEMORY);
  bind_all(device, looping, x, left, flag);
  gk_graph *const straight[] = {graph, gated};
  for (int k = 0; k < 2; ++k) {
    gk_bind(straight[k], X, x);
    gk_bind_int(straight[k], N, 1);
    gk_bind_int(straight[k], A, 1);
  }
  (sim->fail)(1, CUDA_ERROR_ILLEGAL_ADDRESS, SIMGPU_LATE);
  assert_ok(gk_launch(graph, 0));
  assert_int_equal(gk_wait(graph, NULL), GK_ERROR_DEVICE);
  assert_says("cuEventSynchronize of graph two: an illegal memory access");
  assert_says("; some task touched memory that isn't its own: of a graph created with GK_ISOLATE it is named");
  sim->mark();
#define IS_LOST(call) \
  do { \
    assert_int_equal(call, GK_ERROR_DEVICE); \
    assert_says("is lost; close it"); \
    assert_says("It began with: cuEventSynchronize of graph two: an illegal memory access"); \
  } while (0)
  gk_graph *const all[] = {looping, gated, graph};
  for (int k = 0; k < 6; ++k) {
    if (k < 3) IS_LOST(gk_launch(all[k % 3], 0));
    else IS_LOST(gk_launch_on(all[k % 3], 0, NULL));
  }
  assert_null(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  assert_says("It began with: cuEventSynchronize of graph two");
  IS_LOST(gk_upload(device, x, &value, sizeof value));
  IS_LOST(gk_download(device, &value, x, sizeof value));
  IS_LOST(gk_upload(device, page, &value, sizeof value));
  IS_LOST(gk_graph_create(device, &loop, 0, &more));
  assert_null(more);
  const uint64_t calls = sim->counts().calls;
  assert_true(calls == 0); /* nothing is asked of it any more */
  assert_int_equal(gk_device_open(&(gk_device_desc){.backend = "cuda"}, &other), GK_ERROR_DEVICE);
  assert_null(other);
  gk_graph_destroy(looping);
  gk_graph_destroy(graph);
  gk_graph_destroy(gated);
  gk_free(device, page);
}

/* What a posted status leaves open, the last kernel's end, is waited for before anything is given back. */
TEST_ON_CUDA(test_destroyed_when_over) {
  int *x = int_on(device, 0), *left = int_on(device, 0), *flag = int_on(device, 0);
  gk_graph *graph = long_graph(device, 2), *straight = graph_on(device, &two, 0), *never = long_graph(device, 2);
  bind_all(device, graph, x, left, flag);
  gk_bind(straight, X, x);
  gk_bind_int(straight, N, 1);
  gk_bind_int(straight, A, 1);
  assert_ok(gk_launch(graph, 0));
  while (gk_poll(graph, NULL) == GK_NOT_READY) continue;
  assert_ok(gk_launch(straight, 0)); /* it marks the end of what is before it */
  assert_ok(gk_wait(straight, NULL));
  sim->mark();
  gk_graph_destroy(graph);
  assert_int_equal(sim->calls("cuEventSynchronize"), 1);
  gk_graph_destroy(straight);
  assert_int_equal(sim->calls("cuEventSynchronize"), 2);
  gk_graph_destroy(never);
  assert_int_equal(sim->calls("cuEventSynchronize"), 2);
}

/* Fails the first call of an entry that a graph's creation makes; false: there is none. */
static bool create_failing(gk_device *device, const gk_list *list, const char *entry, CUresult code, simgpu_how how,
                           gk_graph **graph, gk_result *result) {
  for (uint64_t k = 1;; ++k) {
    sim->mark();
    (sim->fail)(k, code, how);
    *result = gk_graph_create(device, list, 0, graph);
    const char *failed = sim->failed();
    if (!failed || strcmp(failed, entry) == 0) return failed != NULL;
    gk_graph_destroy(*graph);
    assert_false(how == SIMGPU_LOST); /* which isn't for searching */
  }
}

/* A graph that the driver doesn't take, for whatever reason of its own, is gated by the host. */
TEST_ON_CUDA(test_refused) {
  gk_graph *graph;
  gk_result result;
  assert_true(create_failing(device, &loop, "cuGraphInstantiateWithParams", CUDA_ERROR_NOT_SUPPORTED, SIMGPU_NOW,
                             &graph, &result));
  assert_int_equal(result, GK_OK);
  assert_int_equal(sim->calls("cuGraphInstantiateWithParams"), 2);
  sim->mark();
  int *x = int_on(device, 0), *left = int_on(device, 0), *flag = int_on(device, 0);
  bind_all(device, graph, x, left, flag);
  const gk_status *status;
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->loops[0].passes, 3);
  assert_int_equal(int_at(device, x), 3);
  gk_graph_destroy(graph);
}

/* One that lacks memory isn't, as others may free it; nor is it if the device is lost. */
TEST_ON_CUDA(test_refused_for_a_while) {
  gk_graph *graph;
  gk_result result;
  assert_true(create_failing(device, &loop, "cuGraphInstantiateWithParams", CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW,
                             &graph, &result));
  assert_int_equal(result, GK_OK); /* it was tried once more */
  assert_int_equal(sim->calls("cuGraphInstantiateWithParams"), 2);
  assert_int_equal(sim->calls("cuGraphConditionalHandleCreate"), 1); /* and the graph is native */
  assert_int_equal(sim->calls("cuDeviceGraphMemTrim"), 1);
  gk_graph_destroy(graph);
  for (bool found = false; !found;) {
    static uint64_t k;
    gk_device *lost;
    assert_ok(gk_device_open(&(gk_device_desc){.backend = "cuda"}, &lost));
    sim->mark();
    (sim->fail)(++k, CUDA_ERROR_ILLEGAL_ADDRESS, SIMGPU_LOST);
    result = gk_graph_create(lost, &loop, 0, &graph);
    assert_non_null(sim->failed());
    found = strcmp(sim->failed(), "cuGraphInstantiateWithParams") == 0;
    if (found) {
      assert_int_equal(result, GK_ERROR_DEVICE);
      assert_says("cuGraphInstantiate");
      assert_int_equal(sim->calls("cuGraphInstantiateWithParams"), 1);
    }
    gk_graph_destroy(graph);
    gk_device_close(lost);
    sim->mark();
  }
}

static gk_result do_nothing(const gk_value *args, void *native) {
  (void)args;
  return native ? GK_OK : GK_ERROR_INVALID;
}

/* Too late for that: what resumes is made when somebody resumes first. */
TEST_ON_CUDA(test_resume_is_refused) {
  static const gk_task tasks[] = {
    GK_DO_WHILE(LEFT), GK_CALL(do_nothing, 0), GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_END,
    GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, LEFT), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  int *x = int_on(device, 0), *left = int_on(device, 0), *flag = int_on(device, 0);
  bool refused = false;
  for (uint64_t k = 1; !refused; ++k) {
    gk_graph *graph = graph_on(device, &list, 0);
    bind_all(device, graph, x, left, flag);
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_NOT_SUPPORTED, SIMGPU_NOW);
    gk_result result = gk_launch(graph, HERE);
    if (result == GK_OK) result = gk_wait(graph, NULL);
    assert_non_null(sim->failed());
    refused = strcmp(sim->failed(), "cuGraphInstantiateWithParams") == 0;
    if (refused) {
      assert_int_equal(result, GK_ERROR_UNSUPPORTED);
      assert_says("refuses the graph of conditional nodes");
      assert_says("create it with GK_HOST_GATED");
      sim->mark();
      assert_ok(gk_launch(graph, HERE));
      assert_ok(gk_wait(graph, NULL));
    }
    gk_graph_destroy(graph);
  }
}

/* What a kernel that writes beyond its memory may have made of it isn't believed. */
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
    assert_int_equal(result, k < 2 ? GK_OK : GK_ERROR_DEVICE);
    if (k >= 2) assert_says("launch 1 posted a status that can't be");
    free(graph.pinned);
  }
}

TEST_ON_CUDA(test_too_many_items) {
  static const gk_task tasks[] = {GK_RUN_2D(number, N, A, X, N)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, 0);
  int *x = int_on(device, 0);
  gk_bind(graph, X, x);
  gk_bind_int(graph, N, 1 << 16);
  gk_bind_int(graph, A, 1 << 16);
  for (int k = 0; k < 3; ++k) { /* each is told, though nothing on the device counts launches of such a list */
    assert_ok(gk_launch(graph, 0));
    assert_int_equal(gk_wait(graph, NULL), GK_ERROR_INVALID);
    assert_says("more than 2147483647 items: 65536 by slot");
  }
  gk_bind_int(graph, N, 1);
  gk_bind_int(graph, A, 1);
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  gk_graph_destroy(graph);
}

/* What memory has, as it is bound: larger, smaller, and again. */
TEST_ON_CUDA(test_room_is_handed_over) {
  static const gk_task tasks[] = {GK_FILL(X, N, 7)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  static const size_t sizes[] = {4, 2, 8, 8, 1, 3};
  gk_graph *graph = graph_on(device, &list, 0);
  for (size_t k = 0; k < GK_COUNT(sizes); ++k) {
    int *x = gk_alloc(device, sizes[k] * sizeof *x, GK_DEVICE_MEMORY);
    gk_bind(graph, X, x);
    for (int more = 1; more >= 0; --more) {
      gk_bind_int(graph, N, (int64_t)sizes[k] + more);
      assert_ok(gk_launch(graph, 0));
      assert_int_equal(gk_wait(graph, NULL), more ? GK_ERROR_INVALID : GK_OK);
    }
    assert_int_equal(int_at(device, x + sizes[k] - 1), 7);
  }
  gk_graph_destroy(graph);
}

int main(int count, char **words) {
  (void)count;
  with_simgpu(words);
  return run_all_tests();
}
