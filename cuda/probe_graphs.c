#include "cuda/probe_graphs.h"
#include <string.h>

/* ---- building ---------------------------------------------------------------------------------------------------- */

enum { MOST_BRANCHES = 8, SET_TIMES = 16 };

/* The root or a body. The next node is added behind `last`. */
typedef struct body {
  CUgraph graph;
  CUgraphNode last[MOST_BRANCHES];
  size_t last_count;
} body;

typedef struct setting { CUgraphConditionalHandle handle; uint32_t run, value; } setting;
#define ALWAYS GKI_CUDA_NONE
#define SET(...) (const setting[]){__VA_ARGS__}, sizeof((const setting[]){__VA_ARGS__}) / sizeof(setting)
#define NOTHING NULL, 0

bool gki_probe_check(gki_probe_trial *trial, CUresult result, const char *call) {
  if (trial->result == CUDA_SUCCESS && result != CUDA_SUCCESS) {
    trial->result = result;
    trial->call = call;
  }
  return trial->result == CUDA_SUCCESS;
}

static body root_of(gki_probe_trial *t) { return (body){.graph = t->graph}; }

static CUgraphConditionalHandle handle(gki_probe_trial *t, unsigned initial) {
  CUgraphConditionalHandle made = 0;
  if (t->result == CUDA_SUCCESS)
    gki_probe_check(t, t->driver->cuGraphConditionalHandleCreate(&made, t->graph, t->context, initial,
                                                                 GKI_CU_GRAPH_COND_ASSIGN_DEFAULT),
                    "cuGraphConditionalHandleCreate");
  return made;
}

static CUgraphNode append(gki_probe_trial *t, body *to, CUgraphNodeParams *parameters) {
  CUgraphNode node = NULL;
  if (t->result != CUDA_SUCCESS ||
      !gki_probe_check(t, t->driver->cuGraphAddNode(&node, to->graph, to->last_count ? to->last : NULL, NULL,
                                                    to->last_count, parameters),
                       parameters->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ? "cuGraphAddNode of a conditional node"
                                                                          : "cuGraphAddNode of a kernel"))
    return NULL;
  ++t->node_count;
  to->last[0] = node;
  to->last_count = 1;
  return node;
}

/* `count` consecutive new counters; returns the first. */
static uint32_t alloc_counters(gki_probe_trial *t, uint32_t count) {
  const uint32_t first = t->counter_count;
  if (count > GKI_PROBE_COUNTERS - first) gki_probe_check(t, CUDA_ERROR_OUT_OF_MEMORY, "a counter of the probe");
  else t->counter_count += count;
  return first;
}

static CUdeviceptr counter_at(const gki_probe_trial *t, uint32_t counter) {
  return t->memory + offsetof(gki_probe_memory, counters) + counter * sizeof(uint32_t);
}

static CUdeviceptr keep_settings(gki_probe_trial *t, const setting *settings, size_t count) {
  const uint32_t first = t->setting_count;
  if (count > GKI_PROBE_SETTINGS - first) {
    gki_probe_check(t, CUDA_ERROR_OUT_OF_MEMORY, "a setting of the probe");
    return 0;
  }
  for (size_t k = 0; k < count; ++k)
    t->settings[first + k] = (gki_cuda_setting){settings[k].handle, settings[k].run, settings[k].value};
  t->setting_count += (uint32_t)count;
  return t->memory + offsetof(gki_probe_memory, settings) + first * sizeof(gki_cuda_setting);
}

/* All bytes of the union must be zero. An initializer of its `kernel` alone may leave the others undefined. */
static CUgraphNodeParams kernel_parameters(CUfunction function, void **parameters) {
  CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  all.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = function, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                            .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1,
                                            .kernelParams = parameters};
  return all;
}

/* Adds a kernel that counts its runs and sets handles in the runs of given numbers, modulo `period` unless that is 0.
 * Returns its counter. */
static uint32_t step_of(gki_probe_trial *t, body *in, uint32_t period, const setting *settings, size_t count) {
  const uint32_t counter = alloc_counters(t, 1);
  CUdeviceptr runs = counter_at(t, counter), list = keep_settings(t, settings, count);
  uint32_t length = (uint32_t)count;
  void *values[] = {&runs, &period, &list, &length};
  CUgraphNodeParams parameters = kernel_parameters(t->set_list, values);
  append(t, in, &parameters);
  return counter;
}
static uint32_t step(gki_probe_trial *t, body *in, const setting *settings, size_t count) {
  return step_of(t, in, 0, settings, count);
}

static void expect(gki_probe_trial *t, gki_cuda_question question, uint32_t counter, uint32_t first, uint32_t second) {
  if (t->expected_count == GKI_PROBE_EXPECTED) gki_probe_check(t, CUDA_ERROR_OUT_OF_MEMORY, "a result of the probe");
  else t->expected[t->expected_count++] = (gki_probe_expected){question, counter, first, second};
}
/* Adds a kernel that should run so often per launch. */
static void expect_runs(gki_probe_trial *t, gki_cuda_question question, body *in, uint32_t runs) {
  expect(t, question, step(t, in, NOTHING), runs, runs);
}

static void conditional(gki_probe_trial *t, body *in, CUgraphConditionalHandle condition,
                        CUgraphConditionalNodeType type, unsigned size, body *bodies) {
  CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  parameters.conditional =
      (CUDA_CONDITIONAL_NODE_PARAMS){.handle = condition, .type = type, .size = size, .ctx = t->context};
  const bool is_made = append(t, in, &parameters) != NULL;
  for (unsigned k = 0; k < size; ++k)
    bodies[k] = (body){.graph = is_made ? parameters.conditional.phGraph_out[k] : NULL};
}
static body if_node(gki_probe_trial *t, body *in, CUgraphConditionalHandle condition) {
  body inside;
  conditional(t, in, condition, CU_GRAPH_COND_TYPE_IF, 1, &inside);
  return inside;
}
static body nest(gki_probe_trial *t, body *in, unsigned depth) {
  body inside = if_node(t, in, handle(t, 1));
  return depth > 1 ? nest(t, &inside, depth - 1) : inside;
}
static void counted_if(gki_probe_trial *t, gki_cuda_question question, body *in, CUgraphConditionalHandle condition,
                       uint32_t runs) {
  body inside = if_node(t, in, condition);
  expect_runs(t, question, &inside, runs);
}

static body loop_node(gki_probe_trial *t, body *in, CUgraphConditionalHandle condition) {
  body inside;
  conditional(t, in, condition, CU_GRAPH_COND_TYPE_WHILE, 1, &inside);
  return inside;
}
/* A loop that should make so many passes. A kernel at the beginning of its body ends it after one more, in case nothing
 * else does: the first graph showed that a kernel in a body can set a handle. */
static body loop_of(gki_probe_trial *t, gki_cuda_question question, body *in, CUgraphConditionalHandle condition,
                    uint32_t passes) {
  body inside = loop_node(t, in, condition);
  expect(t, question, step(t, &inside, SET({condition, passes, 0})), passes, passes);
  return inside;
}

/* ---- first two: conditional nodes work at all -------------------------------------------------------------------- */

/* Has no loop, so it ends whatever the answers are. */
static void ask_behind(gki_probe_trial *t, body *in) {
  const CUgraphConditionalHandle opened = handle(t, 0), closed = handle(t, 1);
  step(t, in, SET({opened, 0, 1}, {closed, 0, 0}));
  counted_if(t, GKI_CUDA_P2O0, in, opened, 1);
  counted_if(t, GKI_CUDA_P2O0, in, closed, 0);
}

static void build_if(gki_probe_trial *t) {
  body root = root_of(t);
  counted_if(t, GKI_CUDA_P1A, &root, handle(t, 1), 1);
  counted_if(t, GKI_CUDA_P1A, &root, handle(t, 0), 0);
  ask_behind(t, &root);
  body inside = nest(t, &root, 1);
  ask_behind(t, &inside);
}

static void build_while(gki_probe_trial *t) {
  body root = root_of(t);
  const CUgraphConditionalHandle loop = handle(t, 1), later = handle(t, 0), never = handle(t, 1);
  body pass = loop_of(t, GKI_CUDA_P2O0, &root, loop, 3);
  const uint32_t end = step(t, &pass, SET({loop, 2, 0}, {later, 2, 1}, {never, 2, 0}));
  expect(t, GKI_CUDA_P1A, end, 3, 3);
  expect(t, GKI_CUDA_P2O0, end, 3, 3);
  counted_if(t, GKI_CUDA_P2O1, &root, later, 1);
  counted_if(t, GKI_CUDA_P2O1, &root, never, 0);
}

/* ---- third: handles across bodies and passes --------------------------------------------------------------------- */

static void ask_loop_in_loop(gki_probe_trial *t, body *root, gki_cuda_question question, bool rearms) {
  const CUgraphConditionalHandle outer = handle(t, 1), inner = handle(t, 1);
  body pass = loop_of(t, question, root, outer, 3), inner_pass = loop_node(t, &pass, inner);
  const uint32_t runs = step(t, &inner_pass, SET({inner, ALWAYS, 0})), wanted = rearms ? 3 : 1;
  expect(t, question, runs, wanted, wanted);
  if (rearms) step(t, &pass, SET({inner, ALWAYS, 1}, {outer, 2, 0}));
  else step(t, &pass, SET({outer, 2, 0}));
}

static void ask_two_levels_above(gki_probe_trial *t, body *root) {
  const CUgraphConditionalHandle opened = handle(t, 0), closed = handle(t, 1), loop = handle(t, 1);
  step(t, root, SET({opened, ALWAYS, 1}, {closed, ALWAYS, 0}));
  body around = nest(t, root, 1), pass = loop_of(t, GKI_CUDA_P1C, &around, loop, 2);
  counted_if(t, GKI_CUDA_P1C, &pass, opened, 2);
  counted_if(t, GKI_CUDA_P1C, &pass, closed, 0);
  step(t, &pass, SET({loop, 1, 0}));
}

static void change(gki_probe_trial *t, const body *in, uint32_t counter, bool swaps) {
  if (t->changed_count == GKI_PROBE_CHANGED) gki_probe_check(t, CUDA_ERROR_OUT_OF_MEMORY, "a change of the probe");
  else t->changed[t->changed_count++] = (gki_probe_changed){in->last[0], counter, swaps};
}

static void ask_update(gki_probe_trial *t, body *root) {
  const CUgraphConditionalHandle opened = handle(t, 0), closed = handle(t, 1);
  const uint32_t counter = step(t, root, SET({opened, ALWAYS, 1}, {closed, ALWAYS, 0}));
  change(t, root, counter, false);
  expect(t, GKI_CUDA_P1D, counter, 1, 1);
  body inside = if_node(t, root, opened);
  expect(t, GKI_CUDA_P1D, step(t, &inside, NOTHING), 1, 0);
  inside = if_node(t, root, closed);
  expect(t, GKI_CUDA_P1D, step(t, &inside, NOTHING), 0, 1);
}

/* A kernel that runs so often per launch, and counts with another counter in the second launch. */
static void ask_changed(gki_probe_trial *t, gki_cuda_question question, body *in, uint32_t runs, bool swaps) {
  const uint32_t before = step(t, in, NOTHING), after = alloc_counters(t, swaps ? 3 : 1);
  change(t, in, after, swaps);
  expect(t, question, before, runs, 0);
  expect(t, question, after, 0, runs);
}

static void ask_changes(gki_probe_trial *t, body *root) {
  const CUgraphConditionalHandle loop = handle(t, 1);
  ask_changed(t, GKI_CUDA_P17B, root, 1, true);
  body pass = loop_of(t, GKI_CUDA_P17A, root, loop, 2), inside = nest(t, root, 1);
  ask_changed(t, GKI_CUDA_P17A, &pass, 2, false);
  ask_changed(t, GKI_CUDA_P17A, &inside, 1, false);
  ask_changed(t, GKI_CUDA_P17B, &inside, 1, true);
  step(t, &pass, SET({loop, 1, 0}));
}

static void ask_kept_defaults(gki_probe_trial *t, body *root) {
  const CUgraphConditionalHandle loop = handle(t, 1);
  body pass = loop_of(t, GKI_CUDA_P1E, root, loop, 3);
  counted_if(t, GKI_CUDA_P1E, &pass, handle(t, 1), 3);
  counted_if(t, GKI_CUDA_P1E, &pass, handle(t, 0), 0);
  step(t, &pass, SET({loop, 2, 0}));
}

static void ask_kept_values(gki_probe_trial *t, body *root) {
  const CUgraphConditionalHandle loop = handle(t, 1), opened = handle(t, 0), closed = handle(t, 1);
  body pass = loop_of(t, GKI_CUDA_P1K, root, loop, 3);
  step(t, &pass, SET({opened, 0, 1}, {closed, 0, 0}));
  counted_if(t, GKI_CUDA_P1K, &pass, opened, 3);
  counted_if(t, GKI_CUDA_P1K, &pass, closed, 0);
  step(t, &pass, SET({loop, 2, 0}));
}

/* A kernel so many levels within a loop sets the loop, nodes further on in its body, and nodes behind it. */
static void ask_outwards(gki_probe_trial *t, body *root, gki_cuda_question question, unsigned levels) {
  const CUgraphConditionalHandle loop = handle(t, 1), opened = handle(t, 0), closed = handle(t, 1),
                                 opened_behind = handle(t, 0), closed_behind = handle(t, 1);
  body pass = loop_of(t, question, root, loop, 3), inside = nest(t, &pass, levels - 1);
  step(t, &inside, SET({loop, 2, 0}, {opened, ALWAYS, 1}, {closed, ALWAYS, 0}, {opened_behind, ALWAYS, 1},
                       {closed_behind, ALWAYS, 0}));
  counted_if(t, question, &pass, closed, 0);
  counted_if(t, question, &pass, opened, 3); /* last: P7 asks about a body that ends with a closed node */
  counted_if(t, question, root, opened_behind, 1);
  counted_if(t, question, root, closed_behind, 0);
}

static void ask_deeper(gki_probe_trial *t, body *root, unsigned levels) {
  const CUgraphConditionalHandle loop = handle(t, 1), opened = handle(t, 0), closed = handle(t, 1),
                                 armed = handle(t, 0);
  body pass = loop_of(t, GKI_CUDA_P2D, root, loop, 3), inside = nest(t, &pass, levels);
  counted_if(t, GKI_CUDA_P2D, &inside, opened, 2);
  counted_if(t, GKI_CUDA_P2D, &inside, closed, 1);
  body armed_pass = loop_node(t, &inside, armed);
  expect(t, GKI_CUDA_P2D, step(t, &armed_pass, SET({armed, ALWAYS, 0})), 2, 2);
  step(t, &pass, SET({opened, 0, 1}, {closed, 0, 0}, {armed, ALWAYS, 1}, {loop, 2, 0}));
}

static void ask_beside(gki_probe_trial *t, body *root, unsigned levels) {
  const CUgraphConditionalHandle opened = handle(t, 0), closed = handle(t, 1);
  body before = nest(t, root, levels);
  step(t, &before, SET({opened, ALWAYS, 1}, {closed, ALWAYS, 0}));
  body behind = nest(t, root, levels);
  counted_if(t, GKI_CUDA_P2B, &behind, opened, 1);
  counted_if(t, GKI_CUDA_P2B, &behind, closed, 0);
}

static void ask_twice(gki_probe_trial *t, body *root) {
  const CUgraphConditionalHandle opened = handle(t, 0), closed = handle(t, 1);
  step(t, root, SET({opened, 0, 0}, {closed, 0, 1}, {opened, 0, 1}, {closed, 0, 0}));
  counted_if(t, GKI_CUDA_P4A, root, opened, 1);
  counted_if(t, GKI_CUDA_P4A, root, closed, 0);
}

static void ask_own(gki_probe_trial *t, body *root) {
  const CUgraphConditionalHandle loop = handle(t, 1), own = handle(t, 1);
  body pass = loop_of(t, GKI_CUDA_P6, root, loop, 3), inside = if_node(t, &pass, own);
  step(t, &inside, SET({own, ALWAYS, 0}));
  expect_runs(t, GKI_CUDA_P6, &inside, 1);
  step(t, &pass, SET({loop, 2, 0}));
}

/* If the loop goes on nevertheless, the last node is opened again, so that the loop ends as others do. */
static void ask_closed_end(gki_probe_trial *t, body *root) {
  const CUgraphConditionalHandle loop = handle(t, 1), last = handle(t, 1);
  body pass = loop_node(t, root, loop);
  expect(t, GKI_CUDA_P7, step(t, &pass, SET({loop, 2, 0}, {last, 2, 1}, {loop, 3, 0}, {last, 3, 1})), 2, 2);
  body inside = nest(t, &pass, 2);
  step(t, &inside, SET({loop, 1, 0}, {last, 1, 0}));
  counted_if(t, GKI_CUDA_P7, &pass, last, 1);
}

static void build_handles(gki_probe_trial *t) {
  body root = root_of(t);
  ask_update(t, &root);
  ask_loop_in_loop(t, &root, GKI_CUDA_P1B, false);
  ask_loop_in_loop(t, &root, GKI_CUDA_P1B2, true);
  ask_two_levels_above(t, &root);
  ask_kept_defaults(t, &root);
  ask_kept_values(t, &root);
  ask_outwards(t, &root, GKI_CUDA_P2O2, 2);
  ask_outwards(t, &root, GKI_CUDA_P2O3, 3);
  for (unsigned levels = 1; levels <= 3; ++levels) ask_deeper(t, &root, levels);
  for (unsigned levels = 1; levels <= 2; ++levels) ask_beside(t, &root, levels);
  ask_twice(t, &root);
  ask_own(t, &root);
  ask_closed_end(t, &root);
  ask_changes(t, &root);
}

static CUresult update(const gki_probe_trial *t, const gki_probe_changed *changed, CUgraphExec exec) {
  CUdeviceptr counter = counter_at(t, changed->counter), list = t->memory;
  uint32_t none = 0;
  uint64_t handle = 0;
  void *values[] = {&counter, &none, &list, &none}, *others[] = {&counter, &handle, &none, &none};
  CUgraphNodeParams parameters = changed->swaps ? kernel_parameters(t->set_beside, others)
                                                : kernel_parameters(t->set_list, values);
  return t->driver->cuGraphExecNodeSetParams(exec, changed->node, &parameters);
}

void gki_probe_update(gki_probe_trial *t, CUgraphExec exec) {
  for (uint32_t k = 0; k < t->changed_count && t->result == CUDA_SUCCESS; ++k) {
    const CUresult result = update(t, &t->changed[k], exec);
    if (result != CUDA_ERROR_NOT_SUPPORTED && result != CUDA_ERROR_INVALID_VALUE)
      gki_probe_check(t, result, "cuGraphExecNodeSetParams");
  }
}

void gki_probe_build_heartbeat(gki_probe_trial *t) {
  body root = root_of(t);
  CUdeviceptr runs = t->memory + offsetof(gki_probe_memory, heartbeats), list = t->memory;
  uint32_t none = 0;
  void *values[] = {&runs, &none, &list, &none};
  CUgraphNodeParams parameters = kernel_parameters(t->set_list, values);
  append(t, &root, &parameters);
}

/* ---- fourth: parallel branches ----------------------------------------------------------------------------------- */

enum { BESIDE_PASSES = 8 };

/* Each branch sets its handle several times, the last time to the value that counts. */
static void ask_branches(gki_probe_trial *t, body *in, gki_cuda_question question, unsigned count, bool is_same) {
  CUgraphConditionalHandle handles[MOST_BRANCHES];
  setting before[MOST_BRANCHES];
  const unsigned different = is_same ? 1 : count;
  for (unsigned k = 0; k < different; ++k) {
    handles[k] = handle(t, 0);
    before[k] = (setting){handles[k], ALWAYS, k & 1};
  }
  step(t, in, before, different);
  const uint32_t counters = alloc_counters(t, 3);
  if (t->overlap_count == GKI_PROBE_OVERLAPS) gki_probe_check(t, CUDA_ERROR_OUT_OF_MEMORY, "a count of the probe");
  else t->overlaps[t->overlap_count++] = (gki_probe_overlap){question, counters + 2};
  const body fork = *in;
  for (unsigned k = 0; k < count; ++k) {
    body branch = fork;
    CUdeviceptr at = counter_at(t, counters);
    uint64_t own = handles[is_same ? 0 : k];
    uint32_t value = is_same ? 1 : !(k & 1), times = is_same ? 1 : SET_TIMES;
    void *values[] = {&at, &own, &value, &times};
    CUgraphNodeParams parameters = kernel_parameters(t->set_beside, values);
    in->last[k] = append(t, &branch, &parameters);
  }
  in->last_count = count;
  for (unsigned k = 0; k < different; ++k) counted_if(t, question, in, handles[k], k & 1 ? 0 : BESIDE_PASSES);
}

static void build_branches(gki_probe_trial *t) {
  body root = root_of(t);
  const CUgraphConditionalHandle loop = handle(t, 1);
  body pass = loop_node(t, &root, loop);
  ask_branches(t, &pass, GKI_CUDA_P4E, 2, false);
  ask_branches(t, &pass, GKI_CUDA_P4F, MOST_BRANCHES, false);
  ask_branches(t, &pass, GKI_CUDA_P4G, 2, true);
  step(t, &pass, SET({loop, BESIDE_PASSES - 1, 0}));
}

/* A driver that loses values set in parallel could run these loops without end, so the graph before excludes that. */
static void build_loops(gki_probe_trial *t) {
  enum { LOOPS = 2 };
  body root = root_of(t);
  const CUgraphConditionalHandle around = handle(t, 1), first = handle(t, 0), second = handle(t, 0);
  const CUgraphConditionalHandle loops[LOOPS] = {first, second};
  body pass = loop_of(t, GKI_CUDA_P8, &root, around, BESIDE_PASSES);
  step(t, &pass, SET({first, ALWAYS, 1}, {second, ALWAYS, 1}));
  const body fork = pass;
  for (uint32_t k = 0; k < LOOPS; ++k) {
    body branch = fork, own_pass = loop_node(t, &branch, loops[k]);
    const uint32_t passes = 3 - k, runs = step_of(t, &own_pass, passes, SET({loops[k], passes - 1, 0}));
    expect(t, GKI_CUDA_P8, runs, passes * BESIDE_PASSES, passes * BESIDE_PASSES);
    pass.last[k] = branch.last[0];
  }
  pass.last_count = LOOPS;
  step(t, &pass, SET({around, BESIDE_PASSES - 1, 0}));
}

/* ---- last: SWITCH ------------------------------------------------------------------------------------------------ */

static void build_switch(gki_probe_trial *t) {
  enum { CASES = 3 };
  body root = root_of(t), cases[CASES];
  const CUgraphConditionalHandle loop = handle(t, 1), chosen = handle(t, 0), own = handle(t, 0);
  body pass = loop_of(t, GKI_CUDA_P9A, &root, loop, 5);
  step(t, &pass, SET({chosen, 0, 2}, {chosen, 1, 0}, {chosen, 2, 1}, {chosen, 3, CASES}, {chosen, 4, UINT32_MAX}));
  conditional(t, &pass, chosen, CU_GRAPH_COND_TYPE_SWITCH, CASES, cases);
  for (unsigned k = 0; k < CASES; ++k) expect_runs(t, GKI_CUDA_P9A, &cases[k], 1);
  conditional(t, &pass, own, CU_GRAPH_COND_TYPE_SWITCH, 2, cases); /* its first case selects the second */
  step(t, &cases[0], SET({own, ALWAYS, 1}));
  expect_runs(t, GKI_CUDA_P9A, &cases[0], 1);
  expect_runs(t, GKI_CUDA_P9A, &cases[1], 4);
  step(t, &pass, SET({loop, 4, 0}));
}

/* ------------------------------------------------------------------------------------------------------------------ */

const gki_probe_graph gki_probe_graphs[GKI_CUDA_PROBE_GRAPHS] = {
    {"IF", build_if, 12040, true, 0},
    {"WHILE", build_while, 12040, true, 0},
    {"handles across bodies", build_handles, 12040, false, 0},
    {"parallel branches", build_branches, 12040, false, GKI_CUDA_CHAIN_BRANCHES},
    {"parallel loops", build_loops, 12040, false, GKI_CUDA_CHAIN_BRANCHES},
    {"SWITCH", build_switch, 13000, false, GKI_CUDA_NO_SWITCH}, /* bodies with child graphs gave wrong results before */
};
