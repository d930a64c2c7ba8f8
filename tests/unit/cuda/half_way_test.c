/* Each call of the driver fails once, in the middle of launches on streams of the device and the caller that aren't
 * waited for yet. The device works only when something waits for it, so work that a failure left is still queued at the
 * next call, on any machine. After each failure nothing of the failed launch is on the caller's stream, later results
 * are right, and destroying a graph leaves nothing under way. */
#include "cuda/backend.h"
#include "cuda/launch.h"
#include "runtime/graph.h"
#include "graphs.h"
#include "lists.h"

BY_HAND_KERNEL(mine, "x[0] = 3 * x[0] + a");

/* Each ends X = 3 * X + A; a list with a call fills X before. One that yields does so when it is resumed. */
static const gk_task straight_ones[] = {GK_RUN(apply, GK_ONE, X, LINE)};
static const gk_task looping_ones[] = {GK_DO_WHILE(LEFT), GK_RUN(apply, GK_ONE, X, LINE), GK_END};
static const gk_task calling_ones[] = {GK_CALL(fill_bytes, X, BYTE), GK_RUN(apply, GK_ONE, X, LINE)};
static const gk_task by_hand_ones[] = {GK_CALL(fill_bytes, X, BYTE), GK_RUN(mine, GK_ONE, X, A)};
#define FOUR GK_FILL(X, GK_ONE, 1), GK_FILL(X, GK_ONE, 2), GK_FILL(X, GK_ONE, 3), GK_FILL(X, GK_ONE, 4)
static const gk_task yielding_ones[] = {FOUR, FOUR, FOUR, /* the graph that resumes is another one, which skips them */
                                        GK_CHECKPOINT(HERE, FLAG), GK_END, GK_CALL(fill_bytes, X, BYTE),
                                        GK_RUN(apply, GK_ONE, X, LINE)};
static const gk_list lists[] = {GK_LIST(lists[0], straight_ones, slots), GK_LIST(lists[1], looping_ones, slots),
                                GK_LIST(lists[2], calling_ones, slots), GK_LIST(lists[3], by_hand_ones, slots),
                                GK_LIST(lists[4], yielding_ones, slots)};
enum { STRAIGHT, LOOPING, CALLING, BY_HAND, YIELDING, LISTS = GK_COUNT(lists) };

enum { STREAMS = 5 };

typedef enum after_failure { GO_ON, WAIT, DESTROY, WAYS } after_failure;

typedef struct story {
  gk_device *device;
  int list;
  uint32_t bits;
  after_failure way;
  gk_graph *graph, *other; /* launches of the other one come in between */
  CUstream streams[STREAMS];
  int used;                /* number of those streams that were used */
  int *x, *other_x, *left, *flag, *scratch;
  int model, step, byte;   /* what x has; the number of launches; what the call fills with */
  bool failed;             /* the model is unknown until x is written again */
  bool other_failed;       /* the failed call was part of the other graph's launch */
} story;

static gk_graph *bound(const story *s, int list, uint32_t bits, int *x) {
  gk_graph *graph = NULL;
  if (gk_graph_create(s->device, &lists[list], bits, &graph) != GK_OK) return NULL;
  BIND(graph, {X, x}, {LEFT, s->left}, {FLAG, s->flag});
  gk_bind_bytes(graph, LINE, &(line){3, 0}, sizeof(line));
  return graph;
}

static bool by_call(const story *s) { return s->list >= CALLING; }

static void complain(const story *s, const char *failed, const char *what) {
  fail_msg("list %d, way %d, launch %d, %s failed: %s", s->list, s->way, s->step, failed ? failed : "nothing", what);
}

/* A failure of any launch or call that was made; `sim` knows the failed call. */
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

/* After a failure the model begins anew: this write comes behind all that was launched. */
static void make_known(story *s) {
  if (!s->failed || !s->graph) return;
  (void)gk_wait(s->graph, NULL); /* a launch that failed later may be told here */
  set_int(s->device, s->x, s->model = 7);
  s->failed = false;
}

/* A launch has just failed, or a call around it, which the wait tells. */
static void check_failed(story *s, bool on_stream, size_t queued_before) {
  static const char *const decisive[] = {"cuGraphLaunch", "cuMemcpyHtoDAsync", "cuGraphExecNodeSetParams"};
  for (size_t k = 0; on_stream && k < GK_COUNT(decisive); ++k)
    if (strcmp(sim->failed(), decisive[k]) == 0 && sim->queued() > queued_before)
      complain(s, sim->failed(), "something is left on the caller's stream");
  if (!s->bits && s->way == DESTROY) { /* at once, with its work under way */
    gk_graph_destroy(s->graph);
    s->graph = NULL;
    s->failed = true;
    if (!on_stream && sim->queued()) complain(s, sim->failed(), "something is under way behind the end of its graph");
    return;
  }
  if (!s->bits && strcmp(sim->failed(), "cuEventRecord") == 0 && gk_wait(s->other, NULL) != GK_OK)
    complain(s, sim->failed(), gk_error()); /* the end of the launch before is marked all the same */
  if (s->bits || !by_call(s) || !strstr(sim->failed(), "Synchronize")) return;
  const size_t queued = sim->queued();
  const gk_result result = gk_wait(s->graph, NULL);
  if (result != GK_OK && queued) complain(s, sim->failed(), "what was recorded before is given back while it runs");
  note(s, result);
}

static void launch(story *s, bool on_stream, int32_t label) {
  if (s->graph && s->bits && on_stream) { /* the device's stream must be empty */
    const gk_result before = s->step ? gk_wait(s->graph, NULL) : GK_OK;
    if (sim->failed()) note(s, before);
    (void)gk_wait(s->other, NULL);
  }
  if (!s->graph) return;
  if (s->way == GO_ON && s->failed) set_int(s->device, s->x, s->model = 7); /* although work is under way */
  s->failed = s->failed && s->way != GO_ON;
  const int a = ++s->step;
  if (!label) s->byte = 1 + a / 2 % 3; /* else the call would be recorded again */
  gk_bind_bytes(s->graph, LINE, &(line){3, a}, sizeof(line));
  gk_bind_int(s->graph, A, a);
  gk_bind_int(s->graph, BYTE, s->byte);
  const CUstream stream = on_stream ? s->streams[s->used++] : NULL;
  for (int k = 0; on_stream && k < 6 && s->way == GO_ON && s->list != YIELDING; ++k)
    (void)cu.cuMemsetD8Async(at(s->scratch), 1, sizeof(int), stream);
  const size_t queued = sim->queued();
  const bool before = sim->failed() != NULL;
  const gk_result result = on_stream ? gk_launch_on(s->graph, label, stream) : gk_launch(s->graph, label);
  if (!before && sim->failed()) check_failed(s, on_stream, queued);
  if (on_stream) (void)cu.cuStreamDestroy(stream); /* the caller may destroy it again */
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

static void yield_and_resume(story *s, bool on_stream) {
  const gk_status *status = NULL;
  if (!s->graph) return;
  note(s, gk_upload(s->device, s->flag, &(int){1}, sizeof(int)));
  if (!s->graph || s->failed) return;
  launch(s, on_stream, 0);
  if (!s->graph || s->failed) return;
  note(s, gk_wait(s->graph, &status));
  if (!s->graph || s->failed) return;
  assert_int_equal(status->yielded, HERE);
  note(s, gk_upload(s->device, s->flag, &(int){0}, sizeof(int)));
  for (int k = 0; k < 3; ++k) launch_other(s);
  look(s); /* of the launch that makes the graph that resumes, behind them */
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
  s->used = 0;
}
static void destroy_unused(story *s) {
  for (; s->used < STREAMS; ++s->used) RIGHT(cu.cuStreamDestroy(s->streams[s->used]));
}

static void check_x(const story *s) { assert_int_equal(int_at(s->device, s->x), s->model); }

/* The last kernel of the other graph is over, too. */
static void finish_other(const story *s) {
  run_to_end(s->other, 0);
  (void)int_at(s->device, s->other_x);
}

/* false: there are fewer calls. */
static bool fail_at(story *s, uint64_t k) {
  s->step = 0;
  s->failed = s->other_failed = false;
  set_int(s->device, s->x, s->model = 2);
  make_streams(s);
  sim->set_seed(WAYS * k + s->way);
  fail_call(k, s->way == GO_ON ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_OUT_OF_MEMORY);
  s->graph = bound(s, s->list, s->bits, s->x);
  if (!s->graph && sim->queued()) complain(s, sim->failed(), "creation left something under way");
  tell(s);
  const char *const failed = failed_call();
  make_known(s);
  if (s->graph) check_x(s);
  destroy_unused(s);
  if (s->graph) { /* everything works again */
    make_streams(s);
    tell(s);
    check_x(s);
    destroy_unused(s);
    launch(s, false, 0);
  }
  const gk_result others = gk_wait(s->other, NULL);
  if (!s->bits && !s->other_failed && others != GK_OK) complain(s, failed, gk_error());
  finish_other(s);
  gk_graph_destroy(s->graph);
  if (sim->queued()) complain(s, failed, "something is under way behind the end of its graph");
  if (sim->broken()) complain(s, failed, sim->first_broken());
  return failed != NULL;
}

static story story_on(gk_device *device, int list, uint32_t bits) {
  story s = {.device = device, .list = list, .bits = bits, .x = int_on(device, 0), .other_x = int_on(device, 0),
             .left = int_on(device, 0), .flag = int_on(device, 0), .scratch = int_on(device, 0)};
  s.other = bound(&s, LOOPING, 0, s.other_x);
  return s;
}

/* way: WAYS: a call in each of them, by turns. */
static void check_story(gk_device *device, int list, uint32_t bits, after_failure way) {
  story s = story_on(device, list, bits);
  CUcontext context = enter_context(device);
  gk_graph *keeps = bound(&s, list, bits, s.x); /* its kernels stay loaded */
  assert_true(keeps && s.other);
  run_to_end(s.other, 0);
  run_to_end(keeps, 0);
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
  discard(context);
}

/* No memory of the host is left, either. */
static int setup_host_counted(void **state) { return begin_counted(state) == 0 ? setup_cuda(state) : -1; }
static int teardown_host_counted(void **state) {
  const int result = teardown_cuda(state);
  return end_counted(state) == 0 ? result : -1;
}
#define HOST_COUNTED(test) DEVICE_TEST(test, setup_host_counted, teardown_host_counted)

HOST_COUNTED(test_native) {
  for (int list = STRAIGHT; list <= LOOPING; ++list)
    for (int way = 0; way < WAYS; ++way) check_story(device, list, 0, (after_failure)way);
  for (int list = CALLING; list < YIELDING; ++list) check_story(device, list, 0, WAYS);
  for (int way = 0; way < WAYS; ++way) check_story(device, YIELDING, 0, (after_failure)way);
}

HOST_COUNTED(test_gated) {
  for (int list = 0; list < LISTS; ++list) check_story(device, list, GK_HOST_GATED, WAYS);
}

/* If any call fails while a graph with launches under way is destroyed, the launches are over then. */
static void check_destroyed(story *s, bool on_stream) {
  for (uint64_t k = 1, over = 0; !over; ++k) {
    s->graph = bound(s, s->list, s->bits, s->x);
    make_streams(s);
    set_int(s->device, s->x, s->model = 2);
    for (int n = 0; n < 2; ++n) launch(s, on_stream, 0);
    fail_call(k, CUDA_ERROR_OUT_OF_MEMORY);
    gk_graph_destroy(s->graph);
    over = !sim->failed();
    if (sim->queued()) complain(s, sim->failed(), "something is under way behind the end of its graph");
    sim->mark();
    finish_other(s); /* behind the graph that was destroyed */
    destroy_unused(s);
  }
}

HOST_COUNTED(test_destroyed) {
  story s = story_on(device, STRAIGHT, 0);
  (void)enter_context(device);
  s.way = WAIT;
  sim->lazy(1);
  for (; s.list < YIELDING; ++s.list)
    for (int on_stream = 0; on_stream < 2; ++on_stream) check_destroyed(&s, on_stream);
  sim->lazy(0);
  gk_graph_destroy(s.other);
}

/* A launch that ended without posting a status has failed. */
TEST_ON_CUDA(test_posted_nothing) {
  gk_graph *graph = NEW_GRAPH(device, &lists[LOOPING], 0, {X, int_on(device, 1)}, {LEFT, int_on(device, 0)});
  gki_cuda_graph *native = NULL;
  gk_bind_bytes(graph, LINE, &(line){3, 0}, sizeof(line));
  assert_ok(gki_cuda_native(graph->state, &native));
  assert_ok(gk_launch(graph, 0));
  assert_int_equal(int_at(device, gk_bound(graph, X)), 3);
  memset(native->pinned + GKI_CUDA_STATUSES_AT, 0, sizeof(gki_cuda_status));
  assert_fails(GK_ERROR_DEVICE, "launch 1 ended on the device and posted no status", gk_wait(graph, NULL));
  run_to_end(graph, 0);
}

/* Without a struct: the table ends in the sizes, and a struct would be sent with everything before it. */
enum { TO = 1, TIMES, AGAIN };
static const gk_slot_desc counted[] = {GK_BUFFER(TO, int), GK_SCALAR(TIMES, int), GK_BUFFER(AGAIN, int)};

/* The next launch uses the sizes and the launch's number that the device really has. */
static void check_counts(gk_device *device, const gk_list *list, uint32_t bits, CUstream stream) {
  int *small = int_on(device, 0), *large = ints_on(device, NULL, 4), *again = int_on(device, 0);
  for (uint64_t k = 1, over = 0; !over; ++k) {
    gk_graph *graph = NEW_GRAPH(device, list, bits, {AGAIN, again}, {TO, small});
    gk_bind_int(graph, TIMES, 2);
    assert_invalid("2 elements of 4 bytes", run_on_stream(graph, 0, NULL));
    gk_bind(graph, TO, large);
    gk_bind_int(graph, TIMES, 4);
    fail_call(k, CUDA_ERROR_OUT_OF_MEMORY);
    const gk_result result = run_on_stream(graph, 0, NULL);
    over = !failed_call();
    assert_true(result == GK_OK || (!over && result == GK_ERROR_MEMORY));
    set_int(device, large + 3, 0);
    run_to_end(graph, 0);
    ASSERT_VALUES({large + 3, 7});
    for (int n = 5; n < 7; ++n) {
      gk_bind_int(graph, TIMES, n);
      assert_invalid(n == 5 ? "5 elements of 4 bytes" : "6 elements of 4 bytes",
                   run_on_stream(graph, 0, k % 2 ? stream : NULL));
    }
    gk_bind_int(graph, TIMES, 4);
    run_to_end(graph, 0);
    discard(graph);
  }
}

HOST_COUNTED(test_counts) {
  static const gk_task once[] = {GK_FILL(TO, TIMES, 7)}, more[] = {GK_DO_WHILE(AGAIN), GK_FILL(TO, TIMES, 7), GK_END};
  static const gk_list fills[] = {GK_LIST(fills[0], once, counted), GK_LIST(fills[1], more, counted)};
  (void)enter_context(device);
  const CUstream stream = new_stream();
  sim->lazy(1);
  for (int k = 0; k < 4; ++k) check_counts(device, &fills[k % 2], k / 2 ? GK_HOST_GATED : 0, stream);
  sim->lazy(0);
}

/* A copy whose source changed before it ran may bring either value, unless another copy replaces it. */
TEST_ON_CUDA(test_changed_source) {
  int *page = gk_alloc(device, 2 * sizeof *page, GK_HOST_MEMORY), *x = int_on(device, 0);
  gk_graph *graph = NEW_GRAPH(device, &lists[STRAIGHT], 0, {X, x});
  gk_bind_bytes(graph, LINE, &(line){3, 0}, sizeof(line));
  (void)enter_context(device);
  const CUstream stream = new_stream();
  for (int k = 0; k < 3; ++k) {
    const bool replaced = k % 2;
    page[0] = page[1] = 1;
    sim->hold(1);
    RIGHT(cu.cuMemcpyHtoDAsync(at(x), page, sizeof *page, stream));
    page[0] = 2;
    if (replaced) RIGHT(cu.cuMemcpyHtoDAsync(at(x), page + 1, sizeof *page, stream));
    assert_ok(gk_launch_on(graph, 0, stream));
    sim->hold(0);
    assert_ok(gk_wait(graph, NULL));
    ASSERT_VALUES({x, replaced ? 3 : 6});
    assert_int_equal(sim->broken(), replaced ? 0 : 1);
    if (!replaced) assert_memory_equal(sim->first_broken(), "source: ", 8);
    sim->forgive();
  }
}

int main(UNUSED int count, char **words) { return run_on_simgpu(words); }
