/* For tests of graphs with conditional nodes: kernels that leave a trace, and short ways to build with them. */
#ifndef SIM_GRAPH_WORLD_H
#define SIM_GRAPH_WORLD_H
#include "sim_world.h"

/* ---- kernels; all parameters have 8 bytes ---- */

enum { LOG = 4096 };
static char trace[LOG];
static size_t traced;

static void k_log(const unsigned char *p, unsigned long long threads) { /* letter */
  (void)threads;
  if (traced < LOG - 1) trace[traced++] = (char)take_number(p, 0);
}

static void k_set(const unsigned char *p, unsigned long long threads) { /* handle, value, letter */
  (void)threads;
  set_conditional(take_number(p, 0), (unsigned)take_number(p, 1));
  if (take_number(p, 2) && traced < LOG - 1) trace[traced++] = (char)take_number(p, 2);
}

static void k_count(const unsigned char *p, unsigned long long threads) { /* counter, handle: 1 while it isn't 0 */
  (void)threads;
  uint64_t *counter = (uint64_t *)(uintptr_t)take_number(p, 0);
  if (*counter > 0) --*counter;
  set_conditional(take_number(p, 1), *counter > 0);
}

static void k_twice(const unsigned char *p, unsigned long long threads) { /* handle, other, by two threads: 0 or 1 */
  (void)threads;
  set_conditional(take_number(p, 0), 1);
  *stub_thread = take_number(p, 2);
  set_conditional(take_number(p, 1), 0);
}

static void k_none(const unsigned char *p, unsigned long long threads) {
  (void)p;
  (void)threads;
}

static const sim_stub_kernel kernels[] = {{"log", k_log, {8}},
                                          {"set", k_set, {8, 8, 8}},
                                          {"count", k_count, {8, 8}},
                                          {"twice", k_twice, {8, 8, 8}},
                                          {"most", k_none, {4096}},
                                          {"too_many", k_none, {4096, 4}},
                                          {0}};

/* ---- building ---- */

static CUgraph graph;
static uint64_t *counters; /* pinned */

static inline int begin(void **state) {
  (void)state;
  open_context(kernels);
  memset(trace, 0, sizeof trace);
  traced = 0;
  RIGHT(cu.cuMemHostAlloc((void **)&counters, 64, GKI_CU_MEMHOSTALLOC_DEVICEMAP));
  memset(counters, 0, 64);
  RIGHT(cu.cuGraphCreate(&graph, 0));
  return 0;
}

static inline int end(void **state) {
  cu.cuGraphDestroy(graph);
  cu.cuMemFreeHost(counters);
  return close_context(state);
}

static inline CUgraphNode add(CUgraph where, CUgraphNode after, const char *name, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t values[] = {a, b, c};
  void *parameters[] = {&values[0], &values[1], &values[2]};
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  asked.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = kernel(name), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                              .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
                                              .kernelParams = parameters};
  CUgraphNode node = NULL;
  RIGHT(cu.cuGraphAddNode(&node, where, after ? &after : NULL, NULL, after ? 1 : 0, &asked));
  return node;
}

static inline CUgraphNode add_log(CUgraph where, CUgraphNode after, char letter) {
  return add(where, after, "log", (uint64_t)letter, 0, 0);
}

static inline CUgraphNode add_set(CUgraph where, CUgraphNode after, CUgraphConditionalHandle handle, unsigned value) {
  return add(where, after, "set", handle, value, 0);
}

static inline CUgraphConditionalHandle handle_of(unsigned initial) {
  CUgraphConditionalHandle handle = 0;
  RIGHT(cu.cuGraphConditionalHandleCreate(&handle, graph, context, initial, GKI_CU_GRAPH_COND_ASSIGN_DEFAULT));
  return handle;
}

static inline CUresult try_condition(CUgraphNode *node, CUgraph where, CUgraphNode after,
                                     CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned size,
                                     CUgraph **bodies) {
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  asked.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = handle, .type = type, .size = size, .ctx = context};
  CUresult result = cu.cuGraphAddNode(node, where, after ? &after : NULL, NULL, after ? 1 : 0, &asked);
  *bodies = asked.conditional.phGraph_out;
  return result;
}

static inline CUgraphNode add_condition(CUgraph where, CUgraphNode after, CUgraphConditionalHandle handle,
                                        CUgraphConditionalNodeType type, CUgraph *body) {
  CUgraphNode node = NULL;
  CUgraph *bodies;
  RIGHT(try_condition(&node, where, after, handle, type, 1, &bodies));
  *body = bodies[0];
  return node;
}

#define IF CU_GRAPH_COND_TYPE_IF
#define WHILE CU_GRAPH_COND_TYPE_WHILE
#define SWITCH CU_GRAPH_COND_TYPE_SWITCH

static inline CUresult try_exec(CUgraphExec *exec, CUgraphInstantiateResult *why) {
  CUDA_GRAPH_INSTANTIATE_PARAMS asked = {0};
  *exec = NULL;
  CUresult result = cu.cuGraphInstantiateWithParams(exec, graph, &asked);
  *why = asked.result_out;
  return result;
}

static inline CUgraphExec exec_of(void) {
  CUgraphExec exec;
  CUgraphInstantiateResult why;
  RIGHT(try_exec(&exec, &why));
  assert_int_equal(why, CUDA_GRAPH_INSTANTIATE_SUCCESS);
  return exec;
}

/* What launches write; "" for the first. */
static inline const char *trace_of(CUgraphExec exec) {
  memset(trace, 0, sizeof trace);
  traced = 0;
  RIGHT(cu.cuGraphLaunch(exec, stream));
  RIGHT(cu.cuStreamSynchronize(stream));
  return trace;
}

static inline void expect_trace(const char *wanted) {
  CUgraphExec exec = exec_of();
  assert_string_equal(trace_of(exec), wanted);
  RIGHT(cu.cuGraphExecDestroy(exec));
}

#define CASE(name) TEST_WITH(name, begin, end)
#endif
