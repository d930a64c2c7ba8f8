/* For tests of lists in graphs of others: the driver, the lists, and a graph that holds one of them. */
#ifndef CUDA_ADDED_H
#define CUDA_ADDED_H
#include "hand.h"
#include "unit/support/runtime_kernels.h"

#ifndef DRIVER
#define DRIVER "13.0"
#endif
#ifndef NO
#define NO ""
#endif

enum { X = 1, LEFT, COUNT, FLAG, A, N, SLOTS };
enum { HERE = 5, THERE, ROUND };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_BUFFER(LEFT, int), GK_BUFFER(COUNT, int),
                                     GK_BUFFER(FLAG, int), GK_SCALAR(A, int), GK_DEFAULT(N, int, 1)};

/* COUNT passes, each of which adds A to X. */
static const gk_task loop_tasks[] = {GK_COPY(LEFT, COUNT, GK_ONE), GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A),
                                     GK_RUN(decrease, GK_ONE, LEFT), GK_END};
static const gk_list loop = GK_LIST(loop, loop_tasks, slots);

static const gk_task straight_tasks[] = {GK_RUN(add, N, X, A), GK_RUN(add, N, X, A)};
static const gk_list straight = GK_LIST(straight, straight_tasks, slots);

/* Yields in its second part, as often as FLAG is set. */
static const gk_task yield_tasks[] = {
  GK_CHECKPOINT(HERE, 0), GK_RUN(add, N, X, A), GK_END,
  GK_DO_WHILE(LEFT),
    GK_CHECKPOINT(THERE, FLAG), GK_RUN(add, N, COUNT, A), GK_END,
    GK_RUN(decrease, GK_ONE, LEFT),
  GK_END};
static const gk_list yields = GK_LIST(yields, yield_tasks, slots);

typedef struct world {
  gk_device *device;
  CUgraph whole;
  CUgraphExec exec;
  gk_graph *graph;
  CUgraphNode last;
  int *x, *left, *count, *flag;
} world;

static inline void bind_world(const world *w, gk_graph *graph) {
  gk_bind(graph, X, w->x);
  gk_bind(graph, LEFT, w->left);
  gk_bind(graph, COUNT, w->count);
  gk_bind(graph, FLAG, w->flag);
  gk_bind_int(graph, A, 1);
}

static inline world world_of(gk_device *device) {
  world w = {.device = device, .x = int_on(device, 0), .left = int_on(device, 0), .count = int_on(device, 3),
             .flag = int_on(device, 0)};
  RIGHT(cu.cuGraphCreate(&w.whole, 0));
  return w;
}

static inline world world_with(gk_device *device, const gk_list *list, uint32_t bits) {
  world w = world_of(device);
  assert_ok(gk_cuda_add(device, list, bits, w.whole, NULL, 0, &w.graph, &w.last));
  w.exec = hand_instantiate(w.whole);
  bind_world(&w, w.graph);
  return w;
}

static inline void end_world(world *w) {
  if (w->exec) RIGHT(cu.cuGraphExecDestroy(w->exec));
  gk_graph_destroy(w->graph);
  RIGHT(cu.cuGraphDestroy(w->whole));
}

static inline const gk_status *told(gk_graph *graph) {
  const gk_status *status = NULL;
  assert_ok(gk_poll(graph, &status));
  return status;
}

static inline void set(const world *w, int *at, int value) {
  assert_ok(gk_upload(w->device, at, &value, sizeof value));
}

static inline int run_added(char **words) {
  setenv("SIMGPU_VERSION", DRIVER, 1);
  setenv("SIMGPU_NO", NO, 1);
  setenv("SIMGPU_DEVICES", "3", 1);
  with_simgpu(words);
  hand_find_entries();
  return run_all_tests();
}
#endif
