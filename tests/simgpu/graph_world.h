/* For tests of streams and graphs: kernels that leave a trace, and short ways to build graphs with them. */
#ifndef SIM_GRAPH_WORLD_H
#define SIM_GRAPH_WORLD_H
#include "sim_world.h"

/* ---- kernels; all parameters have 8 bytes ---- */

enum { LOG = 4096 };
static char trace[LOG];
static size_t traced;

static inline void clear_trace(void) {
  memset(trace, 0, sizeof trace);
  traced = 0;
}

static void k_log(const unsigned char *p, UNUSED unsigned long long threads) { /* letter */
  if (traced < LOG - 1) trace[traced++] = (char)take_number(p, 0);
}

/* Handle, value, letter or 0. */
static void k_set(const unsigned char *p, UNUSED unsigned long long threads) {
  set_conditional(take_number(p, 0), (unsigned)take_number(p, 1));
  if (take_number(p, 2) && traced < LOG - 1) trace[traced++] = (char)take_number(p, 2);
}

/* Counter, handle: 1 while the counter isn't 0. */
static void k_count(const unsigned char *p, UNUSED unsigned long long threads) {
  uint64_t *counter = POINTER(uint64_t, take_number(p, 0));
  if (*counter > 0) --*counter;
  set_conditional(take_number(p, 1), *counter > 0);
}

/* Handle, other, number of the thread that sets the other: to 1 and 0. */
static void k_twice(const unsigned char *p, UNUSED unsigned long long threads) {
  set_conditional(take_number(p, 0), 1);
  *stub_thread = take_number(p, 2);
  set_conditional(take_number(p, 1), 0);
}

static const sim_stub_kernel table[] = {{"log", k_log, {8}},          {"set", k_set, {8, 8, 8}},
                                        {"count", k_count, {8, 8}},   {"twice", k_twice, {8, 8, 8}},
                                        {"most", k_none, {4096}},     {"too_many", k_none, {4096, 4}}, {0}};
static const sim_stub_image kernels = {"simstub", table};

/* ---- a graph, and what is made for it: the end of a test destroys it ---- */

static CUgraph graph;
static uint64_t *counters; /* pinned */
static CUgraphExec execs[16];
static size_t exec_count;

static inline int begin_with(const void *image) {
  open_context(image);
  clear_trace();
  exec_count = 0;
  RIGHT(cu.cuMemHostAlloc((void **)&counters, 64, GKI_CU_MEMHOSTALLOC_DEVICEMAP));
  memset(counters, 0, 64);
  RIGHT(cu.cuGraphCreate(&graph, 0));
  sim->mark();
  return 0;
}

static inline int begin(UNUSED void **state) { return begin_with(&kernels); }

/* The context may have failed. */
static inline int end(void **state) {
  while (exec_count > 0) cu.cuGraphExecDestroy(execs[--exec_count]);
  cu.cuGraphDestroy(graph);
  cu.cuMemFreeHost(counters);
  return close_context(state);
}

static inline CUgraph make_graph(void) {
  CUgraph made = NULL;
  RIGHT(cu.cuGraphCreate(&made, 0));
  return made;
}

static inline void begin_anew(void) {
  RIGHT(cu.cuGraphDestroy(graph));
  graph = make_graph();
}

static inline CUresult try_exec(CUgraphExec *exec, CUgraphInstantiateResult *why) {
  CUDA_GRAPH_INSTANTIATE_PARAMS asked = {0};
  *exec = NULL;
  CUresult result = cu.cuGraphInstantiateWithParams(exec, graph, &asked);
  *why = asked.result_out;
  if (result == CUDA_SUCCESS) execs[exec_count++] = *exec;
  return result;
}

/* The graph can't be instantiated. */
static inline CUgraphInstantiateResult refused_exec(CUresult code) {
  CUgraphExec exec;
  CUgraphInstantiateResult why;
  WRONG(code, try_exec(&exec, &why));
  return why;
}

static inline CUgraphExec exec_of(void) {
  CUgraphExec exec;
  CUgraphInstantiateResult why;
  RIGHT(try_exec(&exec, &why));
  assert_int_equal(why, CUDA_GRAPH_INSTANTIATE_SUCCESS);
  return exec;
}

/* The one that was made last. */
static inline CUresult destroy_exec(void) { return cu.cuGraphExecDestroy(execs[--exec_count]); }

/* ---- nodes ---- */

/* In an initialiser that names `kernel`, the rest of the union may hold anything. */
static inline CUgraphNodeParams kernel_node(const char *name, void **parameters) {
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  asked.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = kernel(name), ONE_THREAD, .kernelParams = parameters};
  return asked;
}

static inline CUgraphNodeParams conditional_node(CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
                                                 unsigned size) {
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  asked.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = handle, .type = type, .size = size, .ctx = context};
  return asked;
}

static inline CUresult try_add(CUgraphNode *node, CUgraph where, CUgraphNode after, CUgraphNodeParams *asked) {
  return cu.cuGraphAddNode(node, where, after ? &after : NULL, NULL, after ? 1 : 0, asked);
}

static inline CUgraphNode add(CUgraph where, CUgraphNode after, const char *name, uint64_t a, uint64_t b, uint64_t c) {
  CUgraphNode node = NULL;
  CUgraphNodeParams asked = kernel_node(name, (void *[]){&a, &b, &c});
  RIGHT(try_add(&node, where, after, &asked));
  return node;
}

static inline CUgraphNode add_log(CUgraph where, CUgraphNode after, char letter) {
  return add(where, after, "log", (uint64_t)letter, 0, 0);
}

static inline CUgraphNode add_set(CUgraph where, CUgraphNode after, CUgraphConditionalHandle handle, unsigned value) {
  return add(where, after, "set", handle, value, 0);
}

static inline CUgraphNode add_count(CUgraph where, CUgraphNode after, uint64_t *counter,
                                    CUgraphConditionalHandle handle) {
  return add(where, after, "count", AT(counter), handle, 0);
}

static inline CUgraphNode add_child(CUgraph where, CUgraph child) {
  CUgraphNode node = NULL;
  RIGHT(cu.cuGraphAddChildGraphNode(&node, where, NULL, 0, child));
  return node;
}

/* The exec's node gets that kernel with these parameters. */
static inline CUresult update(CUgraphExec exec, CUgraphNode node, const char *name, uint64_t a, uint64_t b) {
  CUgraphNodeParams asked = kernel_node(name, (void *[]){&a, &b, &(uint64_t){0}});
  return cu.cuGraphExecNodeSetParams(exec, node, &asked);
}

static inline CUgraphConditionalHandle handle_in(CUgraph where, unsigned initial) {
  CUgraphConditionalHandle handle = 0;
  RIGHT(cu.cuGraphConditionalHandleCreate(&handle, where, context, initial, GKI_CU_GRAPH_COND_ASSIGN_DEFAULT));
  return handle;
}

static inline CUgraphConditionalHandle handle_of(unsigned initial) { return handle_in(graph, initial); }

typedef struct conditional { CUgraphNode node; CUgraph body, *bodies; } conditional;

static inline CUresult try_condition(CUgraph where, CUgraphNode after, CUgraphConditionalHandle handle,
                                     CUgraphConditionalNodeType type, unsigned size, conditional *made) {
  CUgraphNodeParams asked = conditional_node(handle, type, size);
  CUresult result = try_add(&made->node, where, after, &asked);
  made->bodies = asked.conditional.phGraph_out;
  if (result == CUDA_SUCCESS) made->body = made->bodies[0];
  return result;
}

static inline conditional add_condition(CUgraph where, CUgraphNode after, CUgraphConditionalHandle handle,
                                        CUgraphConditionalNodeType type, unsigned size) {
  conditional made;
  RIGHT(try_condition(where, after, handle, type, size, &made));
  return made;
}

#define IF CU_GRAPH_COND_TYPE_IF
#define WHILE CU_GRAPH_COND_TYPE_WHILE
#define SWITCH CU_GRAPH_COND_TYPE_SWITCH

static inline conditional add_if(CUgraph where, CUgraphNode after, CUgraphConditionalHandle handle) {
  return add_condition(where, after, handle, IF, 1);
}

static inline conditional add_while(CUgraph where, CUgraphNode after, CUgraphConditionalHandle handle) {
  return add_condition(where, after, handle, WHILE, 1);
}

/* The body of an IF node that runs. */
static inline CUgraph add_body(void) { return add_if(graph, NULL, handle_of(1)).body; }

/* ---- launches ---- */

static inline void put(CUstream where, char letter) { RIGHT(LAUNCH(where, "log", (uint64_t)letter)); }

static inline void wait_for(CUstream where) { RIGHT(cu.cuStreamSynchronize(where)); }

static inline void run(CUgraphExec exec) {
  RIGHT(cu.cuGraphLaunch(exec, stream));
  wait_for(stream);
}

/* The letters that a launch writes. */
static inline const char *trace_of(CUgraphExec exec) {
  clear_trace();
  run(exec);
  return trace;
}

static inline void expect_trace(const char *wanted) {
  assert_string_equal(trace_of(exec_of()), wanted);
  RIGHT(destroy_exec());
}

/* With these answers of the driver (SIMGPU_NO). */
static inline void expect_answer(CUgraphExec exec, const char *no, const char *wanted) {
  sim->answer_no(no);
  const char *got = trace_of(exec);
  if (strcmp(got, wanted) != 0) fail_msg("no to %s: \"%s\", not \"%s\"", no ? no : "nothing", got, wanted);
}

/* ---- captures ---- */

static inline void begin_capture(CUstream where, CUstreamCaptureMode mode) {
  RIGHT(cu.cuStreamBeginCapture(where, mode));
}

static inline void begin_capture_to(CUgraph to, CUstreamCaptureMode mode) {
  RIGHT(cu.cuStreamBeginCaptureToGraph(stream, to, NULL, NULL, 0, mode));
}

static inline CUstreamCaptureStatus capture_status(CUstream where) {
  CUstreamCaptureStatus status;
  RIGHT(cu.cuStreamIsCapturing(where, &status));
  return status;
}

/* A graph that comes of it is destroyed; a failure returns none. */
static inline void end_capture(CUstream where, CUresult code) {
  CUgraph ended = graph;
  WRONG(code, cu.cuStreamEndCapture(where, &ended));
  if (code == CUDA_SUCCESS) RIGHT(cu.cuGraphDestroy(ended));
  else assert_null(ended);
}

#define RELAXED CU_STREAM_CAPTURE_MODE_RELAXED
#define CASE(name) TEST_WITH(name, begin, end)
#endif
