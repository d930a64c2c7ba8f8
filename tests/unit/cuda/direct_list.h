/* For tests of lists in graphs of a program's own: the driver, the lists, and a graph that holds one of them. */
#ifndef CUDA_DIRECT_LIST_H
#define CUDA_DIRECT_LIST_H
#include "hand.h"
#include "lists.h"

#ifndef DRIVER
#define DRIVER "13.0"
#endif
#ifndef NO
#define NO ""
#endif

/* COUNT passes, each of which adds A to X. */
LIST(loop, GK_COPY(LEFT, COUNT, GK_ONE), GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, LEFT),
     GK_END);

/* Yields in its second part, as often as FLAG is set. */
LIST(yields, GK_CHECKPOINT(HERE, 0), GK_RUN(add, N, X, A), GK_END,
     GK_DO_WHILE(LEFT),
       GK_CHECKPOINT(THERE, FLAG), GK_RUN(add, N, COUNT, A), GK_END,
       GK_RUN(decrease, GK_ONE, LEFT),
     GK_END);

typedef struct world {
  CUgraph whole;
  CUgraphExec exec;
  gk_graph *graph;
  CUgraphNode last;
  int *x, *left, *count, *flag;
} world;

static inline world world_of(gk_device *device) {
  return (world){.whole = new_cu_graph(), .x = int_on(device, 0), .left = int_on(device, 0),
                 .count = int_on(device, 3), .flag = int_on(device, 0)};
}

/* One more list in the world's graph, behind those nodes; it isn't bound. */
static inline gk_graph *add_list(gk_device *device, world *w, const gk_list *list, uint32_t bits,
                                 const CUgraphNode *after, size_t count) {
  gk_graph *graph = NULL;
  assert_ok(gk_cuda_add(device, list, bits, w->whole, after, count, &graph, &w->last));
  return keep(graph, destroy_graph);
}

static inline void bind_world(const world *w, gk_graph *graph) {
  BIND(graph, {X, w->x}, {LEFT, w->left}, {COUNT, w->count}, {FLAG, w->flag});
}

static inline void complete_world(world *w) {
  w->exec = new_exec(w->whole);
  bind_world(w, w->graph);
}

static inline world world_with(gk_device *device, const gk_list *list, uint32_t bits) {
  world w = world_of(device);
  w.graph = add_list(device, &w, list, bits, NULL, 0);
  complete_world(&w);
  return w;
}

static inline void end_world(const world *w) {
  discard(w->exec);
  discard(w->graph);
  discard(w->whole);
}

static inline const gk_status *told(gk_graph *graph) {
  const gk_status *status = NULL;
  assert_ok(gk_poll(graph, &status));
  return status;
}

static inline void arm(const world *w) { assert_ok(gk_cuda_arm(w->graph, w->exec, 0)); }
static inline void arm_and_launch(const world *w, int32_t label) {
  assert_ok(gk_cuda_arm(w->graph, w->exec, label));
  hand_launch(w->exec);
}
static inline const gk_status *run_armed(const world *w, int32_t label) {
  arm_and_launch(w, label);
  return told(w->graph);
}

static inline void instantiate_again(world *w) {
  discard(w->exec);
  w->exec = new_exec(w->whole);
}

static inline int run_added(char **words) {
  setenv("SIMGPU_VERSION", DRIVER, 1);
  setenv("SIMGPU_NO", NO, 1);
  setenv("SIMGPU_DEVICES", "3", 1);
  return run_on_simgpu(words);
}
#endif
