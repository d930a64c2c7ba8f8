#include "nodes.h"
#include "costs.h"
#include "error.h"
#include "range.h"
#include "recorded.h"
#include "single.h"
#include <stdio.h>
#include <string.h>

/* ---- nodes of any kind ------------------------------------------------------------------------------------------- */

bool gki_cuda_nodes_grow(gki_cuda_nodes *n, size_t more) {
  return gki_grow((void **)&n->fronts, &n->capacity, n->count + more, sizeof(CUgraphNode), "a graph's nodes");
}

gk_result gki_cuda_nodes_advance(gki_cuda_nodes *n, size_t first, CUgraphNode node) {
  n->count = first;
  if (!gki_cuda_nodes_grow(n, 1)) return GK_ERROR_MEMORY;
  n->fronts[n->count++] = node;
  return GK_OK;
}

const CUgraphNode *gki_cuda_nodes_from(const gki_cuda_nodes *n, size_t first) {
  return n->count > first ? n->fronts + first : NULL;
}

gk_result gki_cuda_nodes_judge(const gki_cuda_nodes *n, CUresult result, const char *call, uint32_t task) {
  const gk_node *node = &n->slots->plan->nodes[task];
  char what[600];
  if (result == CUDA_SUCCESS) return GK_OK;
  snprintf(what, sizeof what, "%s for task %u (%s) of graph %s", call, (unsigned)node->source, node->name,
           n->slots->plan->name);
  return n->is_outside ? gki_cuda_judge_into(n->device, result, "gk_cuda_add", what)
                       : gki_cuda_judge(n->device->driver, result, "%s", what);
}

static gk_result add_shaped(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first,
                            const CUDA_KERNEL_NODE_PARAMS_v1 *shape, CUgraphNode *added) {
  CUgraphNode made;
  CUresult result = n->device->driver->cuGraphAddKernelNode(&made, into, gki_cuda_nodes_from(n, first),
                                                            n->count - first, shape);
  if (result != CUDA_SUCCESS) return gki_cuda_nodes_judge(n, result, "cuGraphAddKernelNode", task);
  if (added) *added = made;
  return gki_cuda_nodes_advance(n, first, made);
}

gk_result gki_cuda_add_kernel(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first, CUfunction function,
                              unsigned blocks, unsigned threads, void **parameters, CUgraphNode *added) {
  const CUDA_KERNEL_NODE_PARAMS_v1 shape = {
      .func = function, .gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1, .blockDimX = threads, .blockDimY = 1,
      .blockDimZ = 1, .kernelParams = parameters};
  return add_shaped(n, into, task, first, &shape, added);
}

static gk_result add_empty(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first) {
  CUgraphNode made;
  CUresult result = n->device->driver->cuGraphAddEmptyNode(&made, into, gki_cuda_nodes_from(n, first),
                                                           n->count - first);
  if (result != CUDA_SUCCESS) return gki_cuda_nodes_judge(n, result, "cuGraphAddEmptyNode", task);
  return gki_cuda_nodes_advance(n, first, made);
}

/* ---- branches ---------------------------------------------------------------------------------------------------- */

gk_result gki_cuda_nodes_gather(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first) {
  return n->count - first > 1 ? add_empty(n, into, task, first) : GK_OK;
}

gk_result gki_cuda_nodes_fork(gki_cuda_nodes *n, size_t first, size_t copy, size_t *begin) {
  const size_t before = copy - first;
  *begin = n->count;
  if (!gki_cuda_nodes_grow(n, before)) return GK_ERROR_MEMORY;
  memcpy(n->fronts + n->count, n->fronts + first, before * sizeof(CUgraphNode));
  n->count += before;
  return GK_OK;
}

void gki_cuda_nodes_join(gki_cuda_nodes *n, size_t first, size_t copy) {
  memmove(n->fronts + first, n->fronts + copy, (n->count - copy) * sizeof(CUgraphNode));
  n->count -= copy - first;
}

/* ---- library calls ----------------------------------------------------------------------------------------------- */

/* What the call puts on the stream is recorded meanwhile. */
static gk_result call_library(const gki_cuda_nodes *n, const gk_node *node, CUstream stream) {
  gk_value args[GK_MAX_ARGS];
  for (uint32_t k = 0; k < node->arg_count; ++k) args[k] = n->values[n->slots->plan->args[node->args + k]];
  const gk_result result = node->call(args, stream);
  return result == GK_NOT_READY ? GK_ERROR_INVALID : result;
}

static gk_result judge_library(const gk_node *node, gk_result result) {
  if (result == GK_OK) return GK_OK;
  return gk_fail(result, "task %u (%s): the call answered %s when it was asked to put its work on the stream",
                 (unsigned)node->source, node->name, gk_result_name(result));
}

static gk_result refuse_recorded(const gk_node *node) {
  return gk_fail(GK_ERROR_INVALID, "task %u (%s): what the call did can't be recorded in a graph; it may only put work "
                 "on the stream that it is given", (unsigned)node->source, node->name);
}

static gk_result refuse_in_body(const gki_cuda_nodes *n, const gk_node *node, const char *what) {
  snprintf(n->refused, n->refused_bytes, "task %u (%s) recorded %s, which no body of a conditional node can hold",
           (unsigned)node->source, node->name, what);
  return GK_ERROR_UNSUPPORTED;
}

/* Whether a capture ended so by what the call did: it waited, left another stream forked off, or ended it itself. */
static bool is_of_call(CUresult end) {
  return end == CUDA_ERROR_ILLEGAL_STATE ||
         (end >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && end <= CUDA_ERROR_CAPTURED_EVENT);
}

/* In a graph of its own, which for drivers before 12.3 is the only way. GK_OK without *child: that wasn't possible.
 * What the call itself answers is the result. */
static gk_result record_apart(const gki_cuda_nodes *n, const gk_node *node, uint32_t task, CUstream stream,
                              CUgraph *child) {
  const gki_cuda_driver *driver = n->device->driver;
  *child = NULL;
  CUresult begun = driver->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (begun != CUDA_SUCCESS) return gki_cuda_nodes_judge(n, begun, "cuStreamBeginCapture", task);
  gk_result result = judge_library(node, call_library(n, node, stream));
  CUresult end = driver->cuStreamEndCapture(stream, child);
  if (end != CUDA_SUCCESS) *child = NULL;
  if (result == GK_OK && end != CUDA_SUCCESS && !is_of_call(end))
    return gki_cuda_nodes_judge(n, end, "cuStreamEndCapture", task);
  return result;
}

/* What went wrong in a body may be right elsewhere; which of the two it is tells another try. */
static gk_result explain_invalid(const gki_cuda_nodes *n, const gk_node *node, uint32_t task, bool in_body,
                                 CUstream stream) {
  if (!in_body) return refuse_recorded(node);
  CUgraph apart;
  gk_result result = record_apart(n, node, task, stream, &apart);
  if (result != GK_OK) return result;
  if (!apart) return refuse_recorded(node);
  (void)n->device->driver->cuGraphDestroy(apart);
  return refuse_in_body(n, node, "what the driver takes up in whole graphs alone");
}

typedef struct fronts { const CUgraphNode *nodes; size_t count; } fronts;

static bool is_front(const void *data, CUgraphNode node) {
  const fronts *f = data;
  for (size_t k = 0; k < f->count; ++k)
    if (f->nodes[k] == node) return true;
  return false;
}

static gk_result check_body(const gki_cuda_nodes *n, const gk_node *node, uint32_t task, const fronts *before,
                            const CUgraphNode *last, size_t count) {
  const gki_cuda_driver *driver = n->device->driver;
  gki_cuda_found found = {0};
  const char *what = NULL;
  CUresult result = gki_cuda_find_recorded(driver, last, count, is_front, before, &found);
  if (result == CUDA_SUCCESS) result = gki_cuda_find_unfit(driver, found.nodes, found.count, &what);
  gk_release(found.nodes);
  if (result != CUDA_SUCCESS) return gki_cuda_nodes_judge(n, result, "looking at what was recorded", task);
  return what ? refuse_in_body(n, node, what) : GK_OK;
}

/* What has been recorded comes next, instead of what it came behind. */
static gk_result take_recorded(gki_cuda_nodes *n, const gk_node *node, uint32_t task, size_t first, bool in_body,
                               const CUgraphNode *last, size_t count) {
  const fronts before = {n->fronts + first, n->count - first};
  gk_result result = in_body ? check_body(n, node, task, &before, last, count) : GK_OK;
  if (result == GK_OK && !gki_cuda_nodes_grow(n, count)) result = GK_ERROR_MEMORY;
  if (result != GK_OK) return result;
  if (count) memmove(n->fronts + first, last, count * sizeof(CUgraphNode));
  n->count = first + count;
  return GK_OK;
}

/* Its nodes become nodes of this graph. The stream that is captured is one of its own: others may work on the
 * device's meanwhile. */
static gk_result record(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first, CUstream stream) {
  const gki_cuda_driver *driver = n->device->driver;
  const gk_node *node = &n->slots->plan->nodes[task];
  const bool in_body = n->whole && into != n->whole;
  CUresult begun = driver->cuStreamBeginCaptureToGraph(stream, into, gki_cuda_nodes_from(n, first), NULL,
                                                       n->count - first, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (begun != CUDA_SUCCESS) return gki_cuda_nodes_judge(n, begun, "cuStreamBeginCaptureToGraph", task);
  const gk_result answer = call_library(n, node, stream);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode *last = NULL;
  const CUgraphEdgeData *edges = NULL;
  size_t count = 0;
  const CUresult asked = driver->cuStreamGetCaptureInfo(stream, &status, NULL, NULL, &last, &edges, &count);
  const bool invalid = asked == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_ACTIVE;
  const bool explains = invalid && (answer == GK_OK || in_body);
  gk_result result = explains ? GK_OK : judge_library(node, answer);
  if (result == GK_OK && asked != CUDA_SUCCESS) result = gki_cuda_nodes_judge(n, asked, "cuStreamGetCaptureInfo", task);
  if (result == GK_OK && !invalid) result = take_recorded(n, node, task, first, in_body, last, count);
  CUgraph ended;
  const CUresult end = driver->cuStreamEndCapture(stream, &ended);
  if (explains) return explain_invalid(n, node, task, in_body, stream);
  if (result != GK_OK || end == CUDA_SUCCESS) return result;
  return is_of_call(end) ? refuse_recorded(node) : gki_cuda_nodes_judge(n, end, "cuStreamEndCapture", task);
}

/* An empty child graph, as of a call that records nothing, mustn't be instantiated. */
static gk_result add_child(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first, CUgraph child) {
  size_t count = 0;
  CUresult result = n->device->driver->cuGraphGetNodes(child, NULL, &count);
  if (result != CUDA_SUCCESS) return gki_cuda_nodes_judge(n, result, "cuGraphGetNodes", task);
  if (!count) return GK_OK;
  CUgraphNode made;
  result = n->device->driver->cuGraphAddChildGraphNode(&made, into, gki_cuda_nodes_from(n, first), n->count - first,
                                                       child);
  if (result != CUDA_SUCCESS) return gki_cuda_nodes_judge(n, result, "cuGraphAddChildGraphNode", task);
  return gki_cuda_nodes_advance(n, first, made);
}

static gk_result record_as_child(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first, CUstream stream) {
  const gk_node *node = &n->slots->plan->nodes[task];
  CUgraph child;
  gk_result result = record_apart(n, node, task, stream, &child);
  if (result == GK_OK) result = child ? add_child(n, into, task, first, child) : refuse_recorded(node);
  if (child) (void)n->device->driver->cuGraphDestroy(child);
  return result;
}

/* An empty node behind it: a call that records nothing mustn't leave a body empty. */
static gk_result add_call(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first) {
  const gki_cuda_driver *driver = n->device->driver;
  CUstream stream;
  CUresult made = driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (made != CUDA_SUCCESS) return gki_cuda_nodes_judge(n, made, "cuStreamCreate", task);
  gk_result result = driver->cuStreamBeginCaptureToGraph ? record(n, into, task, first, stream)
                                                         : record_as_child(n, into, task, first, stream);
  (void)driver->cuStreamDestroy(stream);
  return result == GK_OK ? add_empty(n, into, task, first) : result;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static gk_result add_by_hand(gki_cuda_nodes *n, CUgraph into, uint32_t at, size_t first) {
  CUDA_KERNEL_NODE_PARAMS_v1 shape;
  void *pointers[GK_MAX_ARGS];
  CUgraphNode made;
  const uint32_t number = gki_cuda_parameters_shape(n->parameters, at, &shape, pointers);
  gk_result result = add_shaped(n, into, at, first, &shape, &made);
  if (result == GK_OK) gki_cuda_updates_made(n->updates, n->parameters, number, made);
  return result;
}

gk_result gki_cuda_add_task(gki_cuda_nodes *n, CUgraph into, uint32_t at, size_t first, CUdeviceptr word,
                            CUdeviceptr number) {
  const gk_node *node = &n->slots->plan->nodes[at];
  if (node->op == GK_OP_CALL) return add_call(n, into, at, first);
  if (node->op == GK_OP_KERNEL && n->code[at]->foreign) return add_by_hand(n, into, at, first);
  const gki_cuda_kernel *kernel = node->op == GK_OP_KERNEL ? n->code[at]
                                  : node->op == GK_OP_COPY ? &n->device->copy_kernel
                                                           : &n->device->fill_kernel;
  gki_cuda_task task = gki_cuda_task_of(n->slots, at);
  task.word = word;
  task.number = number;
  void *parameters[] = {&task};
  /* How many items there will be isn't known now; kernels stride, so that any grid will do. */
  const bool one = !node->items[0] && !node->items[1] && !node->items[2] && task.element <= GKI_COST_SMALL_BYTES;
  return gki_cuda_add_kernel(n, into, at, first, kernel->function, one ? 1 : kernel->blocks,
                             one ? 32 : kernel->threads, parameters, NULL);
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

/* Drivers before 12.0 give no reason. */
static CUresult instantiate(const gki_cuda_driver *driver, CUgraph graph, CUgraphExec *exec,
                            CUgraphInstantiateResult *reason, CUgraphNode *at) {
  if (!driver->cuGraphInstantiateWithParams) return driver->cuGraphInstantiateWithFlags(exec, graph, 0);
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {0};
  const CUresult result = driver->cuGraphInstantiateWithParams(exec, graph, &parameters);
  *reason = parameters.result_out;
  *at = parameters.hErrNode_out;
  return result;
}

CUresult gki_cuda_instantiate(const gki_cuda_device *device, CUgraph graph, CUgraphExec *exec, const char **why,
                              CUgraphNode *at) {
  static const char *const reasons[] = {
      [CUDA_GRAPH_INSTANTIATE_SUCCESS] = "", [CUDA_GRAPH_INSTANTIATE_ERROR] = "",
      [CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE] = ", its structure isn't valid",
      [CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED] = ", it holds what no graph or body may hold",
      [CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED] = ", its nodes are of several contexts",
      [CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED] = ", a handle belongs to no node"};
  CUgraphInstantiateResult reason = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  *at = NULL;
  gki_range_begin(0, "instantiate");
  CUresult result = instantiate(device->driver, graph, exec, &reason, at);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) { /* graphs that are gone may still have some */
    (void)device->driver->cuDeviceGraphMemTrim(device->device);
    result = instantiate(device->driver, graph, exec, &reason, at);
  }
  gki_range_end();
  *why = (size_t)reason < GK_COUNT(reasons) ? reasons[reason] : "";
  if (result != CUDA_SUCCESS) *exec = NULL;
  return result;
}
