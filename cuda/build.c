/* From gates to nodes: tasks in sequence, sections in parallel. */
#include "cuda/build.h"
#include "base/trace.h"
#include "cuda/graph.h"
#include "cuda/nodes.h"

typedef struct builder {
  gki_cuda_frontier frontier;
  gki_cuda_graph *graph;
  gki_cuda_variant *variant;
  const gk_gates *gates;
  const CUgraphConditionalHandle *handles;
} builder;

static gk_result add_nodes(builder *b, CUgraph into, uint32_t begin, uint32_t end, size_t first);

/* The plan's node for messages. */
static uint32_t node_of(const builder *b, uint32_t at) {
  const gk_gate_node *node = &b->gates->nodes[at];
  if (node->node != GK_NONE) return node->node;
  return node->point != GK_NONE ? b->gates->points[node->point].node : 0;
}

static gk_result add_kernel(builder *b, CUgraph into, uint32_t at, size_t first, CUfunction function, unsigned threads,
                            void **parameters, CUgraphNode *added) {
  return gki_cuda_add_kernel(&b->frontier, into, node_of(b, at), first, function, 1, threads, parameters, added);
}

static gk_result add_task(builder *b, CUgraph into, uint32_t at, size_t first) {
  const gk_gate_node *node = &b->gates->nodes[at];
  const bool guarded = node->guard != GK_NONE;
  return gki_cuda_add_task(&b->frontier, into, node->node, first,
                           guarded ? b->variant->guards + node->guard * sizeof(uint64_t) : 0);
}

/* ---- gates ------------------------------------------------------------------------------------------------------- */

static gk_result add_control(builder *b, CUgraph into, uint32_t at, size_t first) {
  const gk_gate_node *node = &b->gates->nodes[at];
  uint32_t point = node->point, guard = node->guard;
  void *parameters[] = {&b->variant->tables, &point, &guard};
  const gki_cuda_builtin *builtin = &b->graph->device->builtin;
  const CUfunction function = b->gates->bits & GK_WITH_PLAIN ? builtin->control_plain : builtin->control;
  return add_kernel(b, into, at, first, function, 32, parameters, NULL);
}

static gk_result add_prologue(builder *b, CUgraph into, uint32_t at, size_t first) {
  uint32_t target = b->graph->sends_target_by_copy && b->gates->target_count ? GKI_CUDA_COPIED : GKI_CUDA_NONE;
  b->variant->point = b->gates->nodes[at].point;
  b->variant->target = target;
  void *parameters[] = {&b->variant->tables, &b->variant->point, &target};
  return add_kernel(b, into, at, first, b->graph->device->builtin.prologue, 32, parameters, &b->variant->prologue);
}

static gk_result add_epilogue(builder *b, CUgraph into, uint32_t at, size_t first) {
  void *parameters[] = {&b->variant->tables};
  return add_kernel(b, into, at, first, b->graph->device->builtin.epilogue, 128, parameters, NULL);
}

static uint32_t count_children(const gk_gates *gates, uint32_t at) {
  uint32_t count = 0;
  for (uint32_t child = at + 1; child < gates->nodes[at].end; child = gates->nodes[child].end) ++count;
  return count;
}

static gk_result add_body(builder *b, CUgraph into, uint32_t begin, uint32_t end) {
  const size_t first = b->frontier.count;
  gk_result result = add_nodes(b, into, begin, end, first);
  b->frontier.count = first;
  return result;
}

static gk_result add_conditional(builder *b, CUgraph into, uint32_t at, size_t first) {
  const gk_gate_node *node = &b->gates->nodes[at];
  const gki_cuda_device *device = b->graph->device;
  const bool is_switch = node->kind == GK_GATE_SWITCH;
  CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  parameters.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){
      .handle = b->handles[node->handle], .ctx = device->context, .size = is_switch ? count_children(b->gates, at) : 1,
      .type = is_switch                     ? CU_GRAPH_COND_TYPE_SWITCH
              : node->kind == GK_GATE_WHILE ? CU_GRAPH_COND_TYPE_WHILE
                                            : CU_GRAPH_COND_TYPE_IF};
  gki_cuda_frontier *f = &b->frontier;
  CUgraphNode made;
  CUresult answer = device->driver->cuGraphAddNode(&made, into, gki_cuda_frontier_from(f, first), NULL,
                                                   f->count - first, &parameters);
  gk_result result = gki_cuda_frontier_result(f, answer, "cuGraphAddNode of a conditional node", node_of(b, at));
  if (result == GK_OK) result = gki_cuda_frontier_advance(f, first, made);
  const CUgraph *bodies = parameters.conditional.phGraph_out;
  if (result == GK_OK && !is_switch) return add_body(b, bodies[0], at + 1, node->end);
  for (uint32_t child = at + 1, k = 0; result == GK_OK && child < node->end; child = b->gates->nodes[child].end, ++k)
    result = add_body(b, bodies[k], child + 1, b->gates->nodes[child].end);
  return result;
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

/* With GKI_CUDA_CHAIN_BRANCHES the branches that set handles form one chain, which starts at the frontier itself. Every
 * other branch starts at a copy of the frontier. */
static gk_result add_branches(builder *b, CUgraph into, uint32_t at, size_t first) {
  const gk_gate_node *nodes = b->gates->nodes;
  gki_cuda_frontier *f = &b->frontier;
  const bool chains = (b->graph->device->caps.quirks & GKI_CUDA_CHAIN_BRANCHES) != 0;
  bool chained = false;
  size_t begin, copy = f->count; /* the frontier is at `first`, the ends of branches follow it */
  gk_result result = gki_cuda_frontier_fork(f, first, copy, &begin);
  for (uint32_t child = at + 1; result == GK_OK && child < nodes[at].end; child = nodes[child].end)
    if (chains && nodes[child].decides) {
      chained = true;
      result = add_nodes(b, into, child + 1, nodes[child].end, copy);
    }
  if (!chained) f->count = copy;
  for (uint32_t child = at + 1; result == GK_OK && child < nodes[at].end; child = nodes[child].end) {
    if (chains && nodes[child].decides) continue;
    result = gki_cuda_frontier_fork(f, first, copy, &begin);
    if (result == GK_OK) result = add_nodes(b, into, child + 1, nodes[child].end, begin);
  }
  if (result == GK_OK) gki_cuda_frontier_join(f, first, copy);
  return result;
}

static gk_result add_parallel(builder *b, CUgraph into, uint32_t at, size_t first) {
  gk_result result = gki_cuda_frontier_narrow(&b->frontier, into, node_of(b, at), first);
  return result == GK_OK ? add_branches(b, into, at, first) : result;
}

/* ---- all nodes --------------------------------------------------------------------------------------------------- */

static gk_result add_one(builder *b, CUgraph into, uint32_t at, size_t first) {
  switch (b->gates->nodes[at].kind) {
  case GK_GATE_TASK: return add_task(b, into, at, first);
  case GK_GATE_CONTROL: return add_control(b, into, at, first);
  case GK_GATE_PROLOGUE: return add_prologue(b, into, at, first);
  case GK_GATE_EPILOGUE: return add_epilogue(b, into, at, first);
  case GK_GATE_PARALLEL: return add_parallel(b, into, at, first);
  default: return add_conditional(b, into, at, first);
  }
}

/* After each addition the frontier is one node, except behind a PARALLEL, which has no node of its own. */
static gk_result add_nodes(builder *b, CUgraph into, uint32_t begin, uint32_t end, size_t first) {
  gk_result result = GK_OK;
  for (uint32_t at = begin; at < end && result == GK_OK; at = b->gates->nodes[at].end) {
    gki_cuda_place *place = &b->variant->places[at];
    place->in = into;
    place->before = b->frontier.count > first ? b->frontier.nodes[first] : NULL;
    result = add_one(b, into, at, first);
    if (result == GK_OK && b->gates->nodes[at].kind != GK_GATE_PARALLEL) place->node = b->frontier.nodes[first];
  }
  return result;
}

static gk_result alloc_places(gki_cuda_variant *variant) {
  variant->places = gki_array(variant->gates->node_count, sizeof *variant->places, "a graph's nodes");
  return variant->places ? GK_OK : GK_ERROR_MEMORY;
}

gk_result gki_cuda_build(gki_cuda_graph *graph, gki_cuda_variant *variant, const CUgraphConditionalHandle *handles) {
  gki_trace_begin(variant->gates->node_count, "build nodes");
  builder b = {.frontier = {.device = graph->device, .slots = &graph->slots, .code = graph->code,
                            .values = graph->calls.values, .parameters = &graph->parameters,
                            .updates = &variant->updates, .whole = &variant->graph, .refused = graph->refused,
                            .refused_bytes = sizeof graph->refused},
               .graph = graph, .variant = variant, .gates = variant->gates, .handles = handles};
  gk_result result = alloc_places(variant);
  if (result == GK_OK && !gki_cuda_frontier_grow(&b.frontier, 1)) result = GK_ERROR_MEMORY;
  if (result == GK_OK) result = add_nodes(&b, variant->graph, 0, variant->gates->node_count, 0);
  gk_host_free(b.frontier.nodes);
  gki_trace_end();
  return result;
}

/* A list without loops and checkpoints gets an epilogue here, since no event marks its end in a caller's graph. */
gk_result gki_cuda_build_into(gki_cuda_graph *graph, gki_cuda_variant *variant,
                              const CUgraphConditionalHandle *handles, gki_cuda_into *into) {
  const gk_gates *gates = variant->gates;
  gki_trace_begin(gates->node_count, "build nodes");
  builder b = {.frontier = {.device = graph->device, .slots = &graph->slots, .code = graph->code,
                            .values = graph->calls.values, .parameters = &graph->parameters,
                            .updates = &variant->updates, .is_external = true},
               .graph = graph, .variant = variant, .gates = gates, .handles = handles};
  const bool posts = gates->node_count && gates->nodes[gates->node_count - 1].kind == GK_GATE_EPILOGUE;
  void *parameters[] = {&variant->tables};
  gk_result result = alloc_places(variant);
  if (result == GK_OK) result = gki_cuda_frontier_advance(&b.frontier, 0, graph->arming);
  if (result == GK_OK) result = add_nodes(&b, into->graph, 0, gates->node_count, 0);
  if (result == GK_OK && !posts)
    result = gki_cuda_add_kernel(&b.frontier, into->graph, 0, 0, graph->device->builtin.epilogue, 1, 128, parameters,
                                 NULL);
  if (result == GK_OK) into->last = b.frontier.nodes[0];
  gk_host_free(b.frontier.nodes);
  gki_trace_end();
  return result;
}

gk_result gki_cuda_add_arming(gki_cuda_graph *graph, const gki_cuda_into *into) {
  graph->armed = (gki_cuda_arming){.control = graph->state, .target = GKI_CUDA_NONE};
  void *parameters[] = {&graph->armed};
  const CUDA_KERNEL_NODE_PARAMS_v1 node = {.func = graph->device->builtin.arm, .gridDimX = 1, .gridDimY = 1,
                                           .gridDimZ = 1, .blockDimX = GKI_CUDA_ARMING_THREADS, .blockDimY = 1,
                                           .blockDimZ = 1, .kernelParams = parameters};
  const gki_cuda_driver *driver = graph->device->driver;
  return gki_cuda_into_result(
      graph->device, driver->cuGraphAddKernelNode(&graph->arming, into->graph, into->after, into->count, &node),
      "gk_cuda_add", "cuGraphAddKernelNode of the list's first kernel");
}
