/* From gates to nodes: one after the other, sections side by side. */
#include "lower.h"
#include "error.h"
#include <string.h>

enum { SMALL = 256 }; /* bytes that one warp copies as fast as any number of them */

/* `fronts` is a stack of nodes that what comes next has to wait for: from `first` on those of the block at hand. */
typedef struct builder {
  gki_cuda_graph *graph;
  gki_cuda_variant *variant;
  const gk_gates *gates;
  const CUgraphConditionalHandle *handles;
  CUgraphNode *fronts;
  size_t count, capacity;
} builder;

static gk_result add_nodes(builder *b, CUgraph into, uint32_t begin, uint32_t end, size_t first);

static bool grow(builder *b, size_t more) {
  return gki_grow((void **)&b->fronts, &b->capacity, b->count + more, sizeof *b->fronts, "a graph's nodes");
}

/* From now on all that follows waits for this node alone. */
static gk_result advance(builder *b, size_t first, CUgraphNode node) {
  b->count = first;
  if (!grow(b, 1)) return GK_ERROR_MEMORY;
  b->fronts[b->count++] = node;
  return GK_OK;
}

static const CUgraphNode *fronts_from(const builder *b, size_t first) {
  return b->count > first ? b->fronts + first : NULL;
}

/* "task 3 (name)", by the plan's node. */
static const gk_node *node_of(const builder *b, uint32_t at) {
  const gk_gate_node *node = &b->gates->nodes[at];
  const gk_plan *plan = b->gates->plan;
  if (node->node != GK_NONE) return &plan->nodes[node->node];
  if (node->point != GK_NONE) return &plan->nodes[b->gates->points[node->point].node];
  return &plan->nodes[0];
}

static gk_result judge(const builder *b, CUresult result, const char *call, uint32_t at) {
  const gk_node *node = node_of(b, at);
  return gki_cuda_judge(b->graph->device->driver, result, "%s for task %u (%s) of graph %s", call,
                        (unsigned)node->source, node->name, b->gates->plan->name);
}

static gk_result add_kernel(builder *b, CUgraph into, uint32_t at, size_t first, CUfunction function, unsigned blocks,
                            unsigned threads, void **parameters, CUgraphNode *added) {
  CUDA_KERNEL_NODE_PARAMS_v1 node = {.func = function, .gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1,
                                     .blockDimX = threads, .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters};
  CUgraphNode made;
  CUresult result = b->graph->device->driver->cuGraphAddKernelNode(&made, into, fronts_from(b, first),
                                                                   b->count - first, &node);
  if (result != CUDA_SUCCESS) return judge(b, result, "cuGraphAddKernelNode", at);
  if (added) *added = made;
  return advance(b, first, made);
}

static gk_result add_empty(builder *b, CUgraph into, uint32_t at, size_t first) {
  CUgraphNode made;
  CUresult result = b->graph->device->driver->cuGraphAddEmptyNode(&made, into, fronts_from(b, first), b->count - first);
  if (result != CUDA_SUCCESS) return judge(b, result, "cuGraphAddEmptyNode", at);
  return advance(b, first, made);
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

/* The stream that is captured is one of its own: others may work on the device's meanwhile. */
static gk_result record(builder *b, CUgraph into, uint32_t at, size_t first, CUstream stream) {
  const gki_cuda_driver *driver = b->graph->device->driver;
  const gk_node *node = node_of(b, at);
  gk_value args[GK_MAX_ARGS];
  for (uint32_t k = 0; k < node->arg_count; ++k) args[k] = b->graph->values[b->gates->plan->args[node->args + k]];
  CUresult begun = driver->cuStreamBeginCaptureToGraph(stream, into, fronts_from(b, first), NULL, b->count - first,
                                                       CU_STREAM_CAPTURE_MODE_RELAXED);
  if (begun != CUDA_SUCCESS) return judge(b, begun, "cuStreamBeginCaptureToGraph", at);
  gk_result result = node->call(args, stream);
  if (result == GK_NOT_READY) result = GK_ERROR_INVALID;
  if (result != GK_OK)
    gk_fail(result, "task %u (%s): the call answered %s when it was recorded", (unsigned)node->source, node->name,
            gk_result_name(result));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode *last = NULL;
  const CUgraphEdgeData *edges = NULL;
  size_t count = 0;
  CUresult asked = result != GK_OK ? CUDA_SUCCESS
                   : driver->cuStreamGetCaptureInfo(stream, &status, NULL, NULL, &last, &edges, &count);
  if (asked != CUDA_SUCCESS) result = judge(b, asked, "cuStreamGetCaptureInfo", at);
  else if (result == GK_OK && status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    result = gk_fail(GK_ERROR_INVALID, "task %u (%s): what the call did can't be recorded in a graph; it may only put "
                     "work on the stream that it is given", (unsigned)node->source, node->name);
  if (result == GK_OK && !grow(b, count)) result = GK_ERROR_MEMORY;
  if (result == GK_OK && count) memmove(b->fronts + first, last, count * sizeof *last);
  if (result == GK_OK) b->count = first + count;
  CUgraph ended;
  CUresult end = driver->cuStreamEndCapture(stream, &ended);
  return result == GK_OK && end != CUDA_SUCCESS ? judge(b, end, "cuStreamEndCapture", at) : result;
}

/* An empty node behind it: a call that records nothing mustn't leave a body empty. */
static gk_result add_call(builder *b, CUgraph into, uint32_t at, size_t first) {
  const gki_cuda_driver *driver = b->graph->device->driver;
  CUstream stream;
  CUresult made = driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (made != CUDA_SUCCESS) return judge(b, made, "cuStreamCreate", at);
  gk_result result = record(b, into, at, first, stream);
  (void)driver->cuStreamDestroy(stream);
  return result == GK_OK ? add_empty(b, into, at, first) : result;
}

static gk_result add_task(builder *b, CUgraph into, uint32_t at, size_t first) {
  const gki_cuda_graph *graph = b->graph;
  const uint32_t number = b->gates->nodes[at].node;
  const gk_node *node = &graph->plan->nodes[number];
  if (node->op == GK_OP_CALL) return add_call(b, into, at, first);
  const gki_cuda_kernel *kernel = node->op == GK_OP_KERNEL ? graph->code[number]
                                  : node->op == GK_OP_COPY ? &graph->device->copy_kernel
                                                           : &graph->device->fill_kernel;
  gki_cuda_task task = gki_cuda_task_of(&graph->slots, number);
  if (b->gates->nodes[at].word != GK_NONE) {
    task.word = b->variant->words + b->gates->nodes[at].word * sizeof(uint64_t);
    task.number = graph->state + offsetof(gki_cuda_control, number);
  }
  void *parameters[] = {&task};
  /* How many items there will be isn't known now; kernels stride, so that any grid will do. */
  const bool one = !node->items[0] && !node->items[1] && !node->items[2] && task.element <= SMALL;
  return add_kernel(b, into, at, first, kernel->function, one ? 1 : kernel->blocks, one ? 32 : kernel->threads,
                    parameters, NULL);
}

/* ---- gates ------------------------------------------------------------------------------------------------------- */

static gk_result add_control(builder *b, CUgraph into, uint32_t at, size_t first) {
  const gk_gate_node *node = &b->gates->nodes[at];
  uint32_t point = node->point, word = node->word;
  void *parameters[] = {&b->variant->tables, &point, &word};
  return add_kernel(b, into, at, first, b->graph->device->own.control, 1, 32, parameters, NULL);
}

static gk_result add_prologue(builder *b, CUgraph into, uint32_t at, size_t first) {
  uint32_t target = GKI_CUDA_NONE;
  b->variant->point = b->gates->nodes[at].point;
  b->variant->target = target;
  void *parameters[] = {&b->variant->tables, &b->variant->point, &target};
  return add_kernel(b, into, at, first, b->graph->device->own.prologue, 1, 32, parameters, &b->variant->prologue);
}

static gk_result add_epilogue(builder *b, CUgraph into, uint32_t at, size_t first) {
  void *parameters[] = {&b->variant->tables};
  b->variant->posts = true;
  return add_kernel(b, into, at, first, b->graph->device->own.epilogue, 1, 128, parameters, NULL);
}

static uint32_t count_children(const gk_gates *gates, uint32_t at) {
  uint32_t count = 0;
  for (uint32_t child = at + 1; child < gates->nodes[at].end; child = gates->nodes[child].end) ++count;
  return count;
}

static gk_result add_body(builder *b, CUgraph into, uint32_t begin, uint32_t end) {
  const size_t first = b->count;
  gk_result result = add_nodes(b, into, begin, end, first);
  b->count = first;
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
  CUgraphNode made;
  CUresult answer = device->driver->cuGraphAddNode(&made, into, fronts_from(b, first), NULL, b->count - first,
                                                   &parameters);
  gk_result result = answer == CUDA_SUCCESS ? advance(b, first, made)
                                            : judge(b, answer, "cuGraphAddNode of a conditional node", at);
  const CUgraph *bodies = parameters.conditional.phGraph_out;
  if (result == GK_OK && !is_switch) return add_body(b, bodies[0], at + 1, node->end);
  for (uint32_t child = at + 1, k = 0; result == GK_OK && child < node->end; child = b->gates->nodes[child].end, ++k)
    result = add_body(b, bodies[k], child + 1, b->gates->nodes[child].end);
  return result;
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

/* Branches that set handles stay in one chain, where the device can't set them from two places at once: then they go
 * first, one behind the other, from the front itself; each other branch begins at a copy of the front. */
static gk_result add_branches(builder *b, CUgraph into, uint32_t at, size_t first) {
  const gk_gate_node *nodes = b->gates->nodes;
  const size_t before = b->count - first, copy = b->count;
  const bool chains = (b->graph->device->abilities.ways & GKI_CUDA_CHAIN_BRANCHES) != 0;
  bool chained = false;
  gk_result result = grow(b, before) ? GK_OK : GK_ERROR_MEMORY;
  if (result != GK_OK) return result;
  memcpy(b->fronts + copy, b->fronts + first, before * sizeof *b->fronts);
  b->count += before; /* the front lies at `first`, the ends of branches behind it */
  for (uint32_t child = at + 1; result == GK_OK && child < nodes[at].end; child = nodes[child].end)
    if (chains && nodes[child].decides) {
      chained = true;
      result = add_nodes(b, into, child + 1, nodes[child].end, copy);
    }
  if (!chained) b->count = copy;
  for (uint32_t child = at + 1; result == GK_OK && child < nodes[at].end; child = nodes[child].end) {
    if (chains && nodes[child].decides) continue;
    const size_t begin = b->count;
    if (!grow(b, before)) return GK_ERROR_MEMORY;
    memcpy(b->fronts + begin, b->fronts + first, before * sizeof *b->fronts);
    b->count += before;
    result = add_nodes(b, into, child + 1, nodes[child].end, begin);
  }
  if (result != GK_OK) return result;
  memmove(b->fronts + first, b->fronts + copy, (b->count - copy) * sizeof *b->fronts);
  b->count -= before;
  return GK_OK;
}

static gk_result add_parallel(builder *b, CUgraph into, uint32_t at, size_t first) {
  /* Several that each wait for several: one in between saves edges. */
  gk_result result = b->count - first > 1 ? add_empty(b, into, at, first) : GK_OK;
  return result == GK_OK ? add_branches(b, into, at, first) : result;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static gk_result add_nodes(builder *b, CUgraph into, uint32_t begin, uint32_t end, size_t first) {
  gk_result result = GK_OK;
  for (uint32_t at = begin; at < end && result == GK_OK; at = b->gates->nodes[at].end)
    switch (b->gates->nodes[at].kind) {
    case GK_GATE_TASK: result = add_task(b, into, at, first); break;
    case GK_GATE_CONTROL: result = add_control(b, into, at, first); break;
    case GK_GATE_PROLOGUE: result = add_prologue(b, into, at, first); break;
    case GK_GATE_EPILOGUE: result = add_epilogue(b, into, at, first); break;
    case GK_GATE_PARALLEL: result = add_parallel(b, into, at, first); break;
    default: result = add_conditional(b, into, at, first); break;
    }
  return result;
}

gk_result gki_cuda_build(gki_cuda_graph *graph, gki_cuda_variant *variant, const CUgraphConditionalHandle *handles) {
  builder b = {.graph = graph, .variant = variant, .gates = variant->gates, .handles = handles};
  gk_result result = grow(&b, 1) ? add_nodes(&b, variant->graph, 0, variant->gates->node_count, 0) : GK_ERROR_MEMORY;
  gk_release(b.fronts);
  return result;
}

gk_result gki_cuda_aim(gki_cuda_graph *graph, gki_cuda_variant *variant, uint32_t target) {
  if (!variant->prologue || variant->target == target) return GK_OK;
  const gki_cuda_device *device = graph->device;
  void *parameters[] = {&variant->tables, &variant->point, &target};
  CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  node.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = device->own.prologue, .gridDimX = 1, .gridDimY = 1,
                                             .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1,
                                             .kernelParams = parameters, .ctx = device->context};
  CUresult result = device->driver->cuGraphExecNodeSetParams(variant->exec, variant->prologue, &node);
  if (result != CUDA_SUCCESS)
    return gki_cuda_judge(device->driver, result, "cuGraphExecNodeSetParams of the prologue of graph %s",
                          graph->plan->name);
  variant->target = target;
  return GK_OK;
}
