/* Each call of the driver fails once, in the middle of launches on streams of the device's and the caller's that nobody
 * has waited for yet, on a device that does nothing unless something waits for it: so what a failure leaves on its way
 * is there when the next thing happens, on any machine. Whichever call it is, nothing of a launch that failed stays on
 * the caller's stream, what comes next is right, and a graph that is destroyed leaves nothing under way. */
#include "cuda/backend.h"
#include "cuda/launch.h"
#include "runtime/graph.h"
#include "user_driver.h"
#include "unit/support/runtime_kernels.h"

enum { X = 1, N, LINE, LEFT, FLAG, BYTE, A, SLOTS };
enum { HERE = 5 };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(N, int, 1), GK_STRUCT_VALUE(LINE, line),
                                     GK_BUFFER(LEFT, int), GK_BUFFER(FLAG, int), GK_DEFAULT(BYTE, int, 1),
                                     GK_DEFAULT(A, int, 1)};

static gk_result fill_bytes(const gk_value *args, void *native) {
  return cu.cuMemsetD8Async(at(args[0].ptr), (unsigned char)args[1].i32, sizeof(int), native) == CUDA_SUCCESS
             ? GK_OK
             : GK_ERROR_DEVICE;
}

static const gk_param mine_params[] = {{"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT},
                                       {"a", "int", 4, 4, GK_I32, GK_ACCESS_VALUE}};
static const gk_code mine_code = {
  .text = "extern \"C\" __global__ void mine(int *x, int a) { if (threadIdx.x == 0) x[0] = 3 * x[0] + a; }\n",
  .block = {32}};
static const gk_kernel mine = {.name = "mine", .params = mine_params, .param_count = 2, .cuda = &mine_code};

/* Each ends X = 3 * X + A, where X was filled before if there is a call; one that yields does so when it is resumed. */
static const gk_task straight_tasks[] = {GK_RUN(apply, GK_ONE, X, LINE)};
static const gk_task looping_tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(apply, GK_ONE, X, LINE), GK_END};
static const gk_task calling_tasks[] = {GK_CALL(fill_bytes, X, BYTE), GK_RUN(apply, GK_ONE, X, LINE)};
static const gk_task by_hand_tasks[] = {GK_CALL(fill_bytes, X, BYTE), GK_RUN(mine, GK_ONE, X, A)};
#define FOUR GK_FILL(X, GK_ONE, 1), GK_FILL(X, GK_ONE, 2), GK_FILL(X, GK_ONE, 3), GK_FILL(X, GK_ONE, 4)
static const gk_task yielding_tasks[] = {FOUR, FOUR, FOUR, /* what resumes is a graph of its own, which skips them */
                                         GK_CHECKPOINT(HERE, FLAG), GK_END, GK_CALL(fill_bytes, X, BYTE),
                                         GK_RUN(apply, GK_ONE, X, LINE)};
static const gk_list lists[] = {GK_LIST(lists[0], straight_tasks, slots), GK_LIST(lists[1], looping_tasks, slots),
                                GK_LIST(lists[2], calling_tasks, slots), GK_LIST(lists[3], by_hand_tasks, slots),
                                GK_LIST(lists[4], yielding_tasks, slots)};
enum { STRAIGHT, LOOPING, CALLING, BY_HAND, YIELDING, LISTS = GK_COUNT(lists) };

enum { STREAMS = 5 };

typedef enum after_failure { GO_ON, WAIT, DESTROY, WAYS } after_failure;

typedef struct story {
  gk_device *device;
  int list;
  uint32_t bits;
  after_failure way;
  gk_graph *graph, *other; /* the other one is launched in between */
  CUstream streams[STREAMS];
  int used;                /* of those streams */
  int *x, *other_x, *left, *flag, *scratch;
  int model, step, byte;   /* what x has; how many launches there were; what the call fills with */
  bool failed;             /* the model isn't known, until x is written again */
  bool other_failed;       /* the call that failed was one of the other graph's launch */
} story;

static gk_graph *bound(const story *s, int list, uint32_t bits, int *x) {
  gk_graph *graph = NULL;
  if (gk_graph_create(s->device, &lists[list], bits, &graph) != GK_OK) return NULL;
  gk_bind(graph, X, x);
  gk_bind(graph, LEFT, s->left);
  gk_bind(graph, FLAG, s->flag);
  gk_bind_bytes(graph, LINE, &(line){3, 0}, sizeof(line));
  return graph;
}

static bool by_call(const story *s) { return s->list >= CALLING; }

static void complain(const story *s, const char *failed, const char *what) {
  fail_msg("list %d, way %d, launch %d, %s failed: %s", s->list, s->way, s->step, failed ? failed : "nothing", what);
}

/* A failure, which may be any but that of a launch that wasn't made. */
static void note(story *s, gk_result result) {
  if (result == GK_OK || result == GK_NOT_READY) return;
  if (!sim->failed()) complain(s, NULL, gk_error());
  assert_true(gk_error()[0]);
  s->failed = true;
  if (s->way == WAIT) (void)gk_wait(s->graph, NULL);
  if (s->way != DESTROY) return;
  gk_graph_destroy(s->graph);
  s->graph = NULL;
}

/* What the failure left of the model is told anew; a write comes behind all that was launched. */
static void make_known(story *s) {
  if (!s->failed || !s->graph) return;
  (void)gk_wait(s->graph, NULL); /* it may tell of a launch that failed later */
  set_int(s->device, s->x, s->model = 7);
  s->failed = false;
}

/* A launch has just failed, or one of the calls around it, which is told when it is waited for. */
static void check_failed(story *s, bool abroad, size_t queued_before) {
  static const char *const decisive[] = {"cuGraphLaunch", "cuMemcpyHtoDAsync", "cuGraphExecNodeSetParams"};
  for (size_t k = 0; abroad && k < GK_COUNT(decisive); ++k)
    if (strcmp(sim->failed(), decisive[k]) == 0 && sim->queued() > queued_before)
      complain(s, sim->failed(), "something is left on the caller's stream");
  if (!s->bits && s->way == DESTROY) { /* at once, with what is on its way */
    gk_graph_destroy(s->graph);
    s->graph = NULL;
    s->failed = true;
    if (!abroad && sim->queued()) complain(s, sim->failed(), "something is under way behind the end of its graph");
    return;
  }
  if (!s->bits && strcmp(sim->failed(), "cuEventRecord") == 0 && gk_wait(s->other, NULL) != GK_OK)
    complain(s, sim->failed(), gk_error()); /* the end of what was launched before is marked all the same */
  if (s->bits || !by_call(s) || !strstr(sim->failed(), "Synchronize")) return;
  const size_t queued = sim->queued();
  const gk_result result = gk_wait(s->graph, NULL);
  if (result != GK_OK && queued) complain(s, sim->failed(), "what was recorded before is given back while it runs");
  note(s, result);
}

static void launch(story *s, bool abroad, int32_t label) {
  if (s->graph && s->bits && abroad) { /* nothing may wait in the device's line */
    const gk_result before = s->step ? gk_wait(s->graph, NULL) : GK_OK;
    if (sim->failed()) note(s, before);
    (void)gk_wait(s->other, NULL);
  }
  if (!s->graph) return;
  if (s->way == GO_ON && s->failed) set_int(s->device, s->x, s->model = 7); /* whatever is under way */
  s->failed = s->failed && s->way != GO_ON;
  const int a = ++s->step;
  if (!label) s->byte = 1 + a / 2 % 3; /* else what was made for it would be recorded again */
  gk_bind_bytes(s->graph, LINE, &(line){3, a}, sizeof(line));
  gk_bind_int(s->graph, A, a);
  gk_bind_int(s->graph, BYTE, s->byte);
  const CUstream stream = abroad ? s->streams[s->used++] : NULL;
  for (int k = 0; abroad && k < 6 && s->way == GO_ON && s->list != YIELDING; ++k)
    (void)cu.cuMemsetD8Async(at(s->scratch), 1, sizeof(int), stream);
  const size_t queued = sim->queued();
  const bool before = sim->failed() != NULL;
  const gk_result result = abroad ? gk_launch_on(s->graph, label, stream) : gk_launch(s->graph, label);
  if (!before && sim->failed()) check_failed(s, abroad, queued);
  if (abroad) (void)cu.cuStreamDestroy(stream); /* it is the caller's again */
  note(s, result);
  s->model = 3 * (by_call(s) ? 0x01010101 * s->byte : s->model) + a;
}

static void wait_for(story *s) {
  if (s->graph) note(s, gk_wait(s->graph, NULL));
}

static void launch_other(story *s) {
  const bool before = sim->failed() != NULL;
  if (s->other && gk_launch(s->other, 0) != GK_OK) assert_non_null(sim->failed());
  if (!before && sim->failed()) s->other_failed = true;
}

static void look(story *s) {
  if (!s->graph || s->bits) return;
  const gk_result result = gk_cuda_graph(s->graph, s->list == YIELDING ? HERE : 0, NULL, NULL);
  if (result != GK_ERROR_UNSUPPORTED) note(s, result); /* else its creation failed so that the host gates it */
}

static void yield_and_resume(story *s, bool abroad) {
  const gk_status *status = NULL;
  if (!s->graph) return;
  note(s, gk_upload(s->device, s->flag, &(int){1}, sizeof(int)));
  if (!s->graph || s->failed) return;
  launch(s, abroad, 0);
  if (!s->graph || s->failed) return;
  note(s, gk_wait(s->graph, &status));
  if (!s->graph || s->failed) return;
  assert_int_equal(status->yielded, HERE);
  note(s, gk_upload(s->device, s->flag, &(int){0}, sizeof(int)));
  for (int k = 0; k < 3; ++k) launch_other(s);
  look(s); /* that makes what resumes, behind them */
  if (!s->graph || s->failed) return;
  launch(s, true, HERE);
  wait_for(s);
}

static void write_x(story *s) {
  if (!s->graph) return;
  s->model = 11;
  note(s, gk_upload(s->device, s->x, &s->model, sizeof s->model));
}

static void tell(story *s) {
  s->used = 0;
  if (s->list == YIELDING) {
    yield_and_resume(s, true);
    make_known(s);
    yield_and_resume(s, false);
    return;
  }
  launch(s, false, 0);
  launch_other(s);
  launch(s, true, 0);
  launch(s, true, 0);
  look(s);
  launch(s, false, 0);
  launch(s, true, 0);
  write_x(s);
  launch(s, false, 0);
  launch_other(s);
  if (s->graph) note(s, gk_poll(s->graph, NULL));
  wait_for(s);
  launch(s, true, 0);
  launch(s, false, 0);
  write_x(s);
  launch(s, true, 0);
  wait_for(s);
}

static void make_streams(story *s) {
  for (int k = 0; k < STREAMS; ++k) RIGHT(cu.cuStreamCreate(&s->streams[k], CU_STREAM_NON_BLOCKING));
}

static void check_x(const story *s) { assert_int_equal(int_at(s->device, s->x), s->model); }

/* false: there is no such call any more. */
static bool fail_at(story *s, uint64_t k) {
  s->step = 0;
  s->failed = s->other_failed = false;
  set_int(s->device, s->x, s->model = 2);
  make_streams(s);
  sim->set_seed(WAYS * k + s->way);
  sim->mark();
  (sim->fail)(k, s->way == GO_ON ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
  s->graph = bound(s, s->list, s->bits, s->x);
  if (!s->graph && sim->queued()) complain(s, sim->failed(), "creation left something under way");
  tell(s);
  const char *const failed = sim->failed();
  sim->mark();
  make_known(s);
  if (s->graph) check_x(s);
  for (; s->used < STREAMS; ++s->used) RIGHT(cu.cuStreamDestroy(s->streams[s->used]));
  if (s->graph) { /* all is as ever */
    make_streams(s);
    tell(s);
    check_x(s);
    for (; s->used < STREAMS; ++s->used) RIGHT(cu.cuStreamDestroy(s->streams[s->used]));
    launch(s, false, 0);
  }
  const gk_result others = gk_wait(s->other, NULL);
  if (!s->bits && !s->other_failed && others != GK_OK) complain(s, failed, gk_error());
  assert_ok(gk_launch(s->other, 0));
  assert_ok(gk_wait(s->other, NULL));
  (void)int_at(s->device, s->other_x); /* its last kernel is over, too */
  gk_graph_destroy(s->graph);
  if (sim->queued()) complain(s, failed, "something is under way behind the end of its graph");
  if (sim->broken()) complain(s, failed, sim->first_broken());
  return failed != NULL;
}

/* way: WAYS: each call in one of them, by turns. */
static void check_story(gk_device *device, int list, uint32_t bits, after_failure way) {
  CUcontext context;
  story s = {.device = device, .list = list, .bits = bits};
  s.x = int_on(device, 0);
  s.other_x = int_on(device, 0);
  s.left = int_on(device, 0);
  s.flag = int_on(device, 0);
  s.scratch = int_on(device, 0);
  assert_ok(gk_cuda_context(device, &context, NULL));
  RIGHT(cu.cuCtxPushCurrent(context));
  gk_graph *keeps = bound(&s, list, bits, s.x); /* its kernels stay loaded */
  s.other = bound(&s, LOOPING, 0, s.other_x);
  assert_true(keeps && s.other);
  for (int k = 0; k < 2; ++k) {
    assert_ok(gk_launch(k ? keeps : s.other, 0));
    assert_ok(gk_wait(k ? keeps : s.other, NULL));
  }
  const size_t alive = alive_but_memory();
  sim->lazy(1);
  bool more = true;
  for (uint64_t k = 1; more; ++k) {
    s.way = way == WAYS ? (after_failure)(k % WAYS) : way;
    more = fail_at(&s, k);
    assert_int_equal(alive_but_memory(), alive);
    assert_true(more || k > 40);
  }
  sim->lazy(0);
  gk_graph_destroy(s.other);
  gk_graph_destroy(keeps);
  RIGHT(cu.cuCtxPopCurrent(NULL));
}
static counting counts;

static int setup_counted(void **state) {
  static gk_allocator allocator;
  allocator = counting_allocator(&counts);
  return gk_set_allocator(&allocator) == GK_OK ? setup_cuda(state) : -1;
}

static int teardown_counted(void **state) {
  const int result = teardown_cuda(state);
  const int left = atomic_load(&counts.live);
  if (left) fprintf(stderr, "%d blocks of the host's memory are left\n", left);
  return left || gk_set_allocator(NULL) != GK_OK ? -1 : result;
}
#define COUNTED(test) DEVICE_TEST(test, setup_counted, teardown_counted)

COUNTED(test_native) {
  for (int list = STRAIGHT; list <= LOOPING; ++list)
    for (int way = 0; way < WAYS; ++way) check_story(device, list, 0, (after_failure)way);
  for (int list = CALLING; list < YIELDING; ++list) check_story(device, list, 0, WAYS);
  for (int way = 0; way < WAYS; ++way) check_story(device, YIELDING, 0, (after_failure)way);
}

COUNTED(test_gated) {
  for (int list = 0; list < LISTS; ++list) check_story(device, list, GK_HOST_GATED, WAYS);
}

/* Whichever call fails while a graph is destroyed whose launches are under way, they are over then. */
static void check_destroyed(story *s, bool abroad) {
  for (uint64_t k = 1, over = 0; !over; ++k) {
    s->graph = bound(s, s->list, s->bits, s->x);
    make_streams(s);
    s->used = 0;
    set_int(s->device, s->x, s->model = 2);
    for (int n = 0; n < 2; ++n) launch(s, abroad, 0);
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
    gk_graph_destroy(s->graph);
    over = !sim->failed();
    if (sim->queued()) complain(s, sim->failed(), "something is under way behind the end of its graph");
    sim->mark();
    assert_ok(gk_launch(s->other, 0)); /* behind one that is no more */
    assert_ok(gk_wait(s->other, NULL));
    (void)int_at(s->device, s->other_x);
    for (; s->used < STREAMS; ++s->used) RIGHT(cu.cuStreamDestroy(s->streams[s->used]));
  }
}

COUNTED(test_destroyed) {
  CUcontext context;
  story s = {.device = device, .way = WAIT};
  s.x = int_on(s.device, 0);
  s.other_x = int_on(s.device, 0);
  s.left = s.flag = int_on(s.device, 0);
  assert_ok(gk_cuda_context(s.device, &context, NULL));
  RIGHT(cu.cuCtxPushCurrent(context));
  s.other = bound(&s, LOOPING, 0, s.other_x);
  sim->lazy(1);
  for (; s.list < YIELDING; ++s.list)
    for (int abroad = 0; abroad < 2; ++abroad) check_destroyed(&s, abroad);
  sim->lazy(0);
  gk_graph_destroy(s.other);
  RIGHT(cu.cuCtxPopCurrent(NULL));
}

/* A launch that is over and has posted nothing failed, whatever the device did instead. */
TEST_ON_CUDA(test_posted_nothing) {
  story s = {.device = device};
  s.x = int_on(s.device, 1);
  s.left = s.flag = int_on(s.device, 0);
  gk_graph *graph = bound(&s, LOOPING, 0, s.x);
  gki_cuda_graph *native = NULL;
  assert_ok(gki_cuda_native(graph->state, &native));
  assert_ok(gk_launch(graph, 0));
  assert_int_equal(int_at(s.device, s.x), 3);
  memset(native->pinned + GKI_CUDA_STATUSES_AT, 0, sizeof(gki_cuda_status));
  assert_fails(GK_ERROR_DEVICE, "launch 1 ended on the device and posted no status", gk_wait(graph, NULL));
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  gk_graph_destroy(graph);
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

/* Without a struct, which stands behind the sizes, and is sent with all that is before it. */
enum { TO = 1, COUNT, AGAIN };
static const gk_slot_desc counted[] = {GK_BUFFER(TO, int), GK_SCALAR(COUNT, int), GK_BUFFER(AGAIN, int)};

static gk_result run_on(gk_graph *graph, CUstream stream) {
  const gk_result result = stream ? gk_launch_on(graph, 0, stream) : gk_launch(graph, 0);
  return result == GK_OK ? gk_wait(graph, NULL) : result;
}

static gk_result run(gk_graph *graph) { return run_on(graph, NULL); }

/* What the device knows of memory's size and of the launch's number is what the next launch goes by. */
static void check_counts(gk_device *device, const gk_list *list, uint32_t bits, CUstream stream) {
  int *small = int_on(device, 0), *large = ints_on(device, NULL, 4), *again = int_on(device, 0);
  for (uint64_t k = 1, over = 0; !over; ++k) {
    gk_graph *graph = graph_on(device, list, bits);
    gk_bind(graph, AGAIN, again);
    gk_bind(graph, TO, small);
    gk_bind_int(graph, COUNT, 2);
    assert_fails(GK_ERROR_INVALID, "2 elements of 4 bytes", run(graph));
    gk_bind(graph, TO, large);
    gk_bind_int(graph, COUNT, 4);
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
    const gk_result result = run(graph);
    over = !sim->failed();
    sim->mark();
    assert_true(result == GK_OK || (!over && result == GK_ERROR_MEMORY));
    set_int(device, large + 3, 0);
    assert_ok(run(graph));
    assert_int_equal(int_at(device, large + 3), 7);
    for (int n = 5; n < 7; ++n) {
      gk_bind_int(graph, COUNT, n);
      assert_fails(GK_ERROR_INVALID, n == 5 ? "5 elements of 4 bytes" : "6 elements of 4 bytes",
                   run_on(graph, k % 2 ? stream : NULL));
    }
    gk_bind_int(graph, COUNT, 4);
    assert_ok(run(graph));
    gk_graph_destroy(graph);
  }
}

COUNTED(test_counts) {
  static const gk_task tasks[] = {GK_FILL(TO, COUNT, 7)};
  static const gk_task more[] = {GK_DO_WHILE(AGAIN), GK_FILL(TO, COUNT, 7), GK_END};
  static const gk_list straight = GK_LIST(straight, tasks, counted), looping = GK_LIST(looping, more, counted);
  CUcontext context;
  CUstream stream;
  assert_ok(gk_cuda_context(device, &context, NULL));
  RIGHT(cu.cuCtxPushCurrent(context));
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  sim->lazy(1);
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; ++bits) {
    check_counts(device, &straight, bits, stream);
    check_counts(device, &looping, bits, stream);
  }
  sim->lazy(0);
  RIGHT(cu.cuStreamDestroy(stream));
  RIGHT(cu.cuCtxPopCurrent(NULL));
}

/* ---- the simulated driver's own rule ----------------------------------------------------------------------------- */

/* Where a copy went whose source was changed before it ran, a kernel reads either, unless another copy replaced it. */
static void check_source(const story *s, gk_graph *graph, int *page, bool replaced) {
  page[0] = page[1] = 1;
  sim->hold(1);
  RIGHT(cu.cuMemcpyHtoDAsync(at(s->x), page, sizeof *page, s->streams[0]));
  page[0] = 2;
  if (replaced) RIGHT(cu.cuMemcpyHtoDAsync(at(s->x), page + 1, sizeof *page, s->streams[0]));
  assert_ok(gk_launch_on(graph, 0, s->streams[0]));
  sim->hold(0);
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(s->device, s->x), replaced ? 3 : 6);
  assert_int_equal(sim->broken(), replaced ? 0 : 1);
  if (!replaced) assert_memory_equal(sim->first_broken(), "source: ", 8);
  sim->forgive();
}

TEST_ON_CUDA(test_changed_source) {
  story s = {.device = device};
  CUcontext context;
  int *page = gk_alloc(s.device, 2 * sizeof *page, GK_HOST_MEMORY);
  s.left = s.flag = int_on(s.device, 0);
  s.x = int_on(s.device, 0);
  assert_ok(gk_cuda_context(s.device, &context, NULL));
  RIGHT(cu.cuCtxPushCurrent(context));
  make_streams(&s);
  gk_graph *graph = bound(&s, STRAIGHT, 0, s.x);
  for (int k = 0; k < 3; ++k) check_source(&s, graph, page, k % 2);
  gk_graph_destroy(graph);
  for (int k = 0; k < STREAMS; ++k) RIGHT(cu.cuStreamDestroy(s.streams[k]));
  RIGHT(cu.cuCtxPopCurrent(NULL));
}

/* Of the host's memory, too, nothing is left. */

int main(int count, char **words) {
  (void)count;
  with_simgpu(words);
  return run_all_tests_with(find_user_driver, NULL);
}
