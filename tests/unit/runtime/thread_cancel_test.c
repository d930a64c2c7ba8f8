/* A thread that is cancelled (pthread_cancel) in a call of gk's finishes that call: a driver's wait or a log's sink in
 * it would otherwise leave locks and graphs taken. */
#include "unit/support/await.h"
#include "unit/support/runtime_kernels.h"
#include "unit/cuda/world.h"
#include "unit/support/waits.h"
#include "unit/support/runtime_leaks.h"

static atomic_bool shut; /* a kernel waits before it ends */

static void run_slow(const gk_value *args, gk_range items) {
  (void)items;
  await(!atomic_load(&shut));
  ++*(int *)args[0].ptr;
}
static const gk_param slow_params[] = {{.name = "x", .element = "int", .element_bytes = sizeof(int),
                                        .element_alignment = sizeof(int), .type = GK_PTR, .access = GK_ACCESS_INOUT}};
static const gk_kernel slow = {.name = "slow", .params = slow_params, .param_count = 1, .host = run_slow};

enum { X = 1, A };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 1), GK_DEFAULT(A, int, 1)};
LIST(slow_list, GK_RUN(slow, GK_ONE, X));
LIST(add_list, GK_RUN(add, GK_ONE, X, A));

/* ---- asleep in gk_wait ------------------------------------------------------------------------------------------- */

typedef struct cancelled { const char *backend; gk_graph *graph; gk_result result; bool is_done; } cancelled;

static void open_kernel(void) { atomic_store(&shut, false); }

static void *wait_cancelled(void *at) {
  cancelled *c = at;
  pthread_cancel(pthread_self());
  on_wait = open_kernel; /* the launch goes on when this thread has gone to sleep */
  c->result = gk_wait(c->graph, NULL);
  c->is_done = true;
  pthread_testcancel();
  return NULL;
}

static void run_thread(void *(*work)(void *), cancelled *c) {
  const void *answer = join_thread(start_thread(work, c));
  assert_true(c->is_done);
  assert_ptr_equal(answer, PTHREAD_CANCELED);
}

TEST_ON("openmp fake_in_process fake_batched", wait_is_finished) {
  cancelled c = {.result = GK_NOT_READY};
  c.graph = graph_on(device, &slow_list, 0);
  atomic_store(&shut, true);
  assert_ok(gk_launch(c.graph, 0));
  run_thread(wait_cancelled, &c);
  assert_int_equal(c.result, GK_OK);
  assert_ok(gk_poll(c.graph, NULL));
}

/* ---- in on_yield ------------------------------------------------------------------------------------------------- */

enum { FULL = 3, AT };
static const gk_slot_desc yielding_slots[] = {GK_OWN(X, int, 1), GK_DEFAULT(A, int, 1), GK_OWN(FULL, int, 1)};
LIST_OVER(yielding_slots, yielding, GK_FILL(FULL, GK_ONE, 1), GK_CHECKPOINT(AT, FULL), GK_END,
          GK_RUN(add, GK_ONE, X, A));

static gk_result clear_at_a_cancellation_point(void *user, gk_graph *graph, const gk_status *status) {
  const int zero = 0;
  (void)user, (void)status;
  pthread_testcancel();
  return gk_write(graph, FULL, &zero, 1);
}

static void *run_cancelled(void *at) {
  cancelled *c = at;
  pthread_cancel(pthread_self());
  c->result = gk_run(c->graph, clear_at_a_cancellation_point, NULL, NULL);
  c->is_done = true;
  pthread_testcancel();
  return NULL;
}

TEST_ON(ALL_BACKENDS, run_is_finished) {
  cancelled c = {.result = GK_NOT_READY};
  c.graph = graph_on(device, &yielding, 0);
  run_thread(run_cancelled, &c);
  assert_int_equal(c.result, GK_OK);
  assert_int_equal(int_at(device, gk_bound(c.graph, X)), 1);
}

/* ---- every call -------------------------------------------------------------------------------------------------- */

static void *take(void *user, size_t bytes) { return (void)user, pthread_testcancel(), malloc(bytes); }
static void *resize(void *user, void *memory, size_t bytes) {
  return (void)user, pthread_testcancel(), realloc(memory, bytes);
}
static void give_back(void *user, void *memory) { (void)user, pthread_testcancel(), free(memory); }
static void visit_fact(void *user, const gk_fact *fact) { (void)user, (void)fact, pthread_testcancel(); }
static void visit_device(void *user, const gk_device_entry *entry) { (void)user, (void)entry, pthread_testcancel(); }
static void sink_that_may_end_here(void *user, gk_log_level level, const char *said) {
  (void)user, (void)level, (void)said, pthread_testcancel();
}

/* A function by itself, as the thread that ends leaves its frame, which AddressSanitizer has to see. */
__attribute__((noinline)) static gk_result call_all(const char *backend) {
  gk_device *device = NULL;
  gk_graph *graph = NULL;
  int x = 0;
  gk_result result = gk_device_open(&(gk_device_desc){.backend = backend}, &device);
  void *memory = result == GK_OK ? gk_alloc(device, sizeof x, GK_DEVICE_MEMORY) : NULL;
  if (result == GK_OK) result = gk_upload(device, memory, &x, sizeof x);
  if (result == GK_OK) result = gk_copy(device, memory, memory, sizeof x);
  if (result == GK_OK) result = gk_graph_create(device, &add_list, GK_CANCELLABLE, &graph);
  for (int k = 0; k < 5 && result == GK_OK; ++k) {
    (void)gk_bind(graph, X, &x); /* not memory of gk's, so the backend is asked about it, and may refuse it */
    result = gk_bind(graph, X, memory);
    if (result == GK_OK) result = gk_resize(graph, X, 2 + (size_t)k);
    if (result == GK_OK) result = gk_launch(graph, 0);
    if (result == GK_OK) result = gk_launch(graph, 0);
    if (result == GK_OK && gk_poll(graph, NULL) > GK_NOT_READY) result = GK_ERROR_DEVICE;
    if (result == GK_OK) result = gk_cancel(graph);
    if (result == GK_OK) result = gk_wait(graph, NULL);
    (void)gk_launch_on(graph, 0, NULL); /* where there are streams */
    if (result == GK_OK) result = gk_wait(graph, NULL);
    (void)gk_host_address(device, memory);
  }
  gk_free_text(gk_dump(NULL, graph, "text"));
  if (result == GK_OK) result = gk_facts(visit_fact, NULL);
  for (size_t k = 0; result == GK_OK && gk_backend_at(k); ++k)
    result = gk_backend_facts(gk_backend_at(k), visit_fact, NULL);
  if (result == GK_OK) result = gk_device_facts(device, visit_fact, NULL);
  if (result == GK_OK) result = gk_device_list(visit_device, NULL);
  if (result == GK_OK) result = gk_download(device, &x, gk_bound(graph, X), sizeof x);
  gk_free(device, memory);
  if (result == GK_OK) result = gk_launch(graph, 0);
  gk_graph_destroy(graph);
  gk_device_close(device);
  return result;
}

static void *call_all_cancelled(void *at) {
  cancelled *c = at;
  pthread_cancel(pthread_self());
  c->result = call_all(c->backend);
  c->is_done = true;
  pthread_testcancel();
  return NULL;
}

TEST_ON_EACH(ALL_BACKENDS " cuda", call_is_finished, NULL, NULL) {
  cancelled c = {.backend = *state};
  begin_backends();
  assert_ok(gk_set_allocator(&(gk_allocator){NULL, take, resize, give_back}));
  gk_set_log(GK_LOG_DEBUG, sink_that_may_end_here, NULL);
  run_thread(call_all_cancelled, &c);
  gk_set_log(GK_LOG_NONE, NULL, NULL);
  assert_ok(gk_set_allocator(NULL));
  if (c.result != GK_OK) fail_msg("%s: %s", c.backend, gk_result_name(c.result));
  assert_nothing_left();
}

/* ---- a module ---------------------------------------------------------------------------------------------------- */

static void *load_cancelled(void *at) {
  static char path[4200];
  cancelled *c = at;
  const ssize_t length = readlink("/proc/self/exe", path, 4096);
  pthread_cancel(pthread_self());
  if (length > 0) snprintf(strrchr(path, '/'), 32, "/../base/module.so");
  c->result = gk_backend_load(path);
  c->is_done = true;
  pthread_testcancel();
  return NULL;
}

/* Last: no allocator is set while a module is loaded. */
TEST(load_is_finished) {
  cancelled c = {.result = GK_NOT_READY};
  run_thread(load_cancelled, &c);
  assert_int_equal(c.result, GK_OK);
}

/* ---- in graphs of the caller's ----------------------------------------------------------------------------------- */

typedef struct added {
  cancelled cancelled;
  gk_result (*call)(struct added *a);
  gk_device *device;
  CUgraph into;
  CUgraphExec exec;
  gk_graph *graph;
  int32_t *flag;
} added;

__attribute__((noinline)) static gk_result add_all(added *a) {
  CUgraphNode node;
  gk_cuda_block block;
  CUcontext context;
  CUgraph whole;
  gk_graph *graph = NULL;
  gk_result result = gk_cuda_context(a->device, &context, NULL);
  if (result == GK_OK) result = gk_graph_create(a->device, &add_list, 0, &graph);
  if (result == GK_OK) result = gk_cuda_graph(graph, 0, &whole, NULL);
  if (result == GK_OK) result = gk_cuda_node(graph, 0, 0, NULL, &node);
  if (result == GK_OK) gk_free_text(gk_cuda_dump(graph, 0));
  gk_graph_destroy(graph);
  if (result == GK_OK) result = gk_cuda_begin(a->device, GK_OP_WHILE, a->flag, 7, a->into, NULL, 0, &block);
  if (result == GK_OK) result = gk_cuda_end(a->device, &block);
  if (result == GK_OK) result = gk_cuda_add(a->device, &add_list, GK_CANCELLABLE, a->into, NULL, 0, &a->graph, &node);
  return result;
}

__attribute__((noinline)) static gk_result arm_all(added *a) {
  gk_result result = gk_cuda_arm(a->graph, a->exec, 0);
  if (result == GK_OK && gk_poll(a->graph, NULL) > GK_NOT_READY) result = GK_ERROR_DEVICE;
  if (result == GK_OK) result = gk_cancel(a->graph);
  return result == GK_OK ? gk_cuda_disarm(a->graph) : result;
}

static void *call_cancelled(void *at) {
  added *a = at;
  pthread_cancel(pthread_self());
  a->cancelled.result = a->call(a);
  a->cancelled.is_done = true;
  pthread_testcancel();
  return NULL;
}

/* Its k-th call of the driver fails. @return whether there was one. */
static bool fails_once(added *a, gk_result (*call)(added *a), uint64_t k) {
  a->call = call;
  a->cancelled = (cancelled){0};
  sim->mark();
  (sim->fail)(k, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
  run_thread(call_cancelled, &a->cancelled);
  const bool failed = sim->failed() != NULL;
  sim->mark();
  return failed;
}

/* Also when gk asks whether the device is lost, as a call has failed. */
TEST_ON_CUDA(added_call_is_finished) {
  added a = {.device = device, .flag = int_on(device, 0)};
  CUcontext context;
  bool failed = true;
  assert_ok(gk_cuda_context(device, &context, NULL));
  RIGHT(cu.cuCtxPushCurrent(context));
  for (uint64_t k = 1; failed; ++k) {
    gk_graph_destroy(a.graph);
    a.graph = NULL;
    if (a.into) RIGHT(cu.cuGraphDestroy(a.into));
    RIGHT(cu.cuGraphCreate(&a.into, 0));
    failed = fails_once(&a, add_all, k);
  }
  assert_int_equal(a.cancelled.result, GK_OK);
  RIGHT(cu.cuGraphInstantiateWithFlags(&a.exec, a.into, 0));
  failed = true;
  for (uint64_t k = 1; failed; ++k) {
    failed = fails_once(&a, arm_all, k);
    assert_ok(gk_cuda_disarm(a.graph));
  }
  assert_int_equal(a.cancelled.result, GK_OK);
  RIGHT(cu.cuGraphExecDestroy(a.exec));
  RIGHT(cu.cuGraphDestroy(a.into));
  RIGHT(cu.cuCtxPopCurrent(&context));
  gk_graph_destroy(a.graph);
  gk_free(device, a.flag);
}

int main(int argc, char **argv) {
  (void)argc;
  with_simgpu(argv);
  return run_all_tests();
}
