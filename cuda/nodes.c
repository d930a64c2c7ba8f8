#include "cuda/nodes.h"
#include "base/costs.h"
#include "base/error.h"
#include "base/trace.h"
#include "base/within.h"
#include "cuda/record.h"
#include <stdio.h>
#include <string.h>

/* ---- nodes of any kind ------------------------------------------------------------------------------------------- */

bool gki_cuda_nodes_grow(gki_cuda_nodes *n, size_t more) {
  return gki_grow((void **)&n->frontier, &n->capacity, n->count + more, sizeof(CUgraphNode), "a graph's nodes");
}

gk_result gki_cuda_nodes_advance(gki_cuda_nodes *n, size_t first, CUgraphNode node) {
  n->count = first;
  if (!gki_cuda_nodes_grow(n, 1)) return GK_ERROR_MEMORY;
  n->frontier[n->count++] = node;
  return GK_OK;
}

const CUgraphNode *gki_cuda_nodes_from(const gki_cuda_nodes *n, size_t first) {
  return n->count > first ? n->frontier + first : NULL;
}

gk_result gki_cuda_nodes_result(const gki_cuda_nodes *n, CUresult result, const char *call, uint32_t task) {
  const gk_node *node = &n->slots->plan->nodes[task];
  char what[600];
  if (result == CUDA_SUCCESS) return GK_OK;
  snprintf(what, sizeof what, "%s for task %u (%s) of graph %s", call, (unsigned)node->source, node->name,
           n->slots->plan->name);
  return n->is_external ? gki_cuda_into_result(n->device, result, "gk_cuda_add", what)
                       : gki_cuda_result(n->device->driver, result, "%s", what);
}

static gk_result add_shaped(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first,
                            const CUDA_KERNEL_NODE_PARAMS_v1 *shape, CUgraphNode *added) {
  CUgraphNode made;
  CUresult result = n->device->driver->cuGraphAddKernelNode(&made, into, gki_cuda_nodes_from(n, first),
                                                            n->count - first, shape);
  if (result != CUDA_SUCCESS) return gki_cuda_nodes_result(n, result, "cuGraphAddKernelNode", task);
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
  if (result != CUDA_SUCCESS) return gki_cuda_nodes_result(n, result, "cuGraphAddEmptyNode", task);
  return gki_cuda_nodes_advance(n, first, made);
}

/* ---- branches ---------------------------------------------------------------------------------------------------- */

gk_result gki_cuda_nodes_narrow(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first) {
  return n->count - first > 1 ? add_empty(n, into, task, first) : GK_OK;
}

gk_result gki_cuda_nodes_fork(gki_cuda_nodes *n, size_t first, size_t copy, size_t *begin) {
  const size_t before = copy - first;
  *begin = n->count;
  if (!gki_cuda_nodes_grow(n, before)) return GK_ERROR_MEMORY;
  memcpy(n->frontier + n->count, n->frontier + first, before * sizeof(CUgraphNode));
  n->count += before;
  return GK_OK;
}

void gki_cuda_nodes_join(gki_cuda_nodes *n, size_t first, size_t copy) {
  memmove(n->frontier + first, n->frontier + copy, (n->count - copy) * sizeof(CUgraphNode));
  n->count -= copy - first;
}

/* ---- library calls ----------------------------------------------------------------------------------------------- */

/* The stream is being captured, so it records the call's work. */
static gk_result call_library(const gki_cuda_nodes *n, const gk_node *node, CUstream stream) {
  gk_value args[GK_MAX_ARGS];
  for (uint32_t k = 0; k < node->arg_count; ++k) args[k] = n->values[n->slots->plan->args[node->args + k]];
  const gk_result result = gki_call(node, args, stream);
  return gki_is_answer(result) ? result : GK_ERROR_INVALID;
}

static gk_result library_result(const gk_node *node, gk_result result) {
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

/* With these results the call spoiled the capture: it waited, left another stream unjoined, or ended the capture. */
static gk_result capture_result(const gki_cuda_nodes *n, uint32_t task, CUresult end) {
  const bool is_of_call = end == CUDA_ERROR_ILLEGAL_STATE ||
                          (end >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && end <= CUDA_ERROR_CAPTURED_EVENT);
  return is_of_call ? refuse_recorded(&n->slots->plan->nodes[task])
                    : gki_cuda_nodes_result(n, end, "cuStreamEndCapture", task);
}

/* Records into a separate graph first: after a failed capture the driver frees the graph that was captured into, with
 * all graphs around it. *own may be set even if this fails. */
static gk_result record_own(const gki_cuda_nodes *n, uint32_t task, CUstream stream, CUgraph *own) {
  const gki_cuda_driver *driver = n->device->driver;
  const gk_node *node = &n->slots->plan->nodes[task];
  *own = NULL;
  CUresult begun = driver->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (begun != CUDA_SUCCESS) return gki_cuda_nodes_result(n, begun, "cuStreamBeginCapture", task);
  gk_result result = library_result(node, call_library(n, node, stream));
  CUresult end = driver->cuStreamEndCapture(stream, own);
  if (end != CUDA_SUCCESS) *own = NULL;
  return result == GK_OK ? capture_result(n, task, end) : result;
}

/* The ends of the recorded work become the frontier. */
static gk_result replace_frontier(gki_cuda_nodes *n, size_t first, const CUgraphNode *last, size_t count) {
  if (!gki_cuda_nodes_grow(n, count)) return GK_ERROR_MEMORY;
  if (count) memmove(n->frontier + first, last, count * sizeof *last);
  n->count = first + count;
  return GK_OK;
}

/* Records again, into the root graph, what no child graph can hold. If this second capture fails, the driver has freed
 * the root graph. */
static gk_result record_into_whole(gki_cuda_nodes *n, uint32_t task, size_t first, CUstream stream, const char *what) {
  const gki_cuda_driver *driver = n->device->driver;
  const gk_node *node = &n->slots->plan->nodes[task];
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode *last = NULL;
  const CUgraphEdgeData *edges = NULL;
  size_t count = 0;
  if (!driver->cuStreamBeginCaptureToGraph)
    return gk_fail(GK_ERROR_UNSUPPORTED, "task %u (%s) recorded %s, which drivers before CUDA 12.3 can't put into a "
                   "larger graph; update NVIDIA's driver", (unsigned)node->source, node->name, what);
  CUresult begun = driver->cuStreamBeginCaptureToGraph(stream, *n->whole, gki_cuda_nodes_from(n, first), NULL,
                                                       n->count - first, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (begun != CUDA_SUCCESS) return gki_cuda_nodes_result(n, begun, "cuStreamBeginCaptureToGraph", task);
  gk_result result = library_result(node, call_library(n, node, stream));
  const CUresult asked = driver->cuStreamGetCaptureInfo(stream, &status, NULL, NULL, &last, &edges, &count);
  if (result == GK_OK) result = gki_cuda_nodes_result(n, asked, "cuStreamGetCaptureInfo", task);
  if (result == GK_OK && status == CU_STREAM_CAPTURE_STATUS_ACTIVE) result = replace_frontier(n, first, last, count);
  CUgraph ended;
  const CUresult end = driver->cuStreamEndCapture(stream, &ended);
  if (end != CUDA_SUCCESS) *n->whole = NULL;
  return result == GK_OK ? capture_result(n, task, end) : result;
}

/* A call that records nothing gets no child graph, since the driver can't instantiate an empty one. */
static gk_result add_child(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first, CUgraph child) {
  size_t count = 0;
  CUresult result = n->device->driver->cuGraphGetNodes(child, NULL, &count);
  if (result != CUDA_SUCCESS) return gki_cuda_nodes_result(n, result, "cuGraphGetNodes", task);
  if (!count) return GK_OK;
  CUgraphNode made;
  result = n->device->driver->cuGraphAddChildGraphNode(&made, into, gki_cuda_nodes_from(n, first), n->count - first,
                                                       child);
  if (into != *n->whole && (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED))
    return refuse_in_body(n, &n->slots->plan->nodes[task], "what the driver takes in whole graphs alone");
  if (result != CUDA_SUCCESS) return gki_cuda_nodes_result(n, result, "cuGraphAddChildGraphNode", task);
  return gki_cuda_nodes_advance(n, first, made);
}

static gk_result add_recorded(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first, CUstream stream,
                              CUgraph own) {
  const bool in_body = into != *n->whole;
  const char *what;
  CUresult result = gki_cuda_find_unfit(n->device->driver, own, in_body, &what);
  if (result != CUDA_SUCCESS) return gki_cuda_nodes_result(n, result, "looking at what was recorded", task);
  if (!what) return add_child(n, into, task, first, own);
  return in_body ? refuse_in_body(n, &n->slots->plan->nodes[task], what)
                 : record_into_whole(n, task, first, stream, what);
}

/* Captures a new stream, since other threads may use the device's stream. An empty node follows, since a body must not
 * stay empty if the call records nothing. */
static gk_result add_call(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first) {
  const gki_cuda_driver *driver = n->device->driver;
  CUstream stream;
  CUgraph own;
  CUresult made = driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (made != CUDA_SUCCESS) return gki_cuda_nodes_result(n, made, "cuStreamCreate", task);
  gk_result result = record_own(n, task, stream, &own);
  if (result == GK_OK) result = add_recorded(n, into, task, first, stream, own);
  if (own) (void)driver->cuGraphDestroy(own);
  (void)driver->cuStreamDestroy(stream);
  return result == GK_OK ? add_empty(n, into, task, first) : result;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static gk_result add_handwritten(gki_cuda_nodes *n, CUgraph into, uint32_t at, size_t first) {
  CUDA_KERNEL_NODE_PARAMS_v1 shape;
  void *pointers[GK_MAX_ARGS];
  CUgraphNode made;
  const uint32_t number = gki_cuda_parameters_shape(n->parameters, at, &shape, pointers);
  gk_result result = add_shaped(n, into, at, first, &shape, &made);
  if (result == GK_OK) gki_cuda_updates_made(n->updates, n->parameters, number, made);
  return result;
}

bool gki_cuda_is_small(const gk_plan *plan, uint32_t at) {
  const gk_node *node = &plan->nodes[at];
  if (node->items[0] || node->items[1] || node->items[2]) return false;
  return node->op == GK_OP_KERNEL || plan->slots[plan->args[node->args]].element_bytes <= GKI_COST_SMALL_BYTES;
}

gk_result gki_cuda_add_task(gki_cuda_nodes *n, CUgraph into, uint32_t at, size_t first, CUdeviceptr guard) {
  const gk_node *node = &n->slots->plan->nodes[at];
  if (node->op == GK_OP_CALL) return add_call(n, into, at, first);
  if (node->op == GK_OP_KERNEL && n->code[at]->handwritten) return add_handwritten(n, into, at, first);
  const gki_cuda_kernel *kernel = node->op == GK_OP_KERNEL ? n->code[at]
                                  : node->op == GK_OP_COPY ? &n->device->copy_kernel
                                                           : &n->device->fill_kernel;
  gki_task task = gki_task_of(&n->slots->table, at);
  task.guard = guard;
  void *parameters[] = {&task};
  /* The item count isn't known yet. Kernels stride over the items, so any grid works. */
  const bool small = gki_cuda_is_small(n->slots->plan, at);
  return gki_cuda_add_kernel(n, into, at, first, kernel->function, small ? 1 : kernel->blocks,
                             small ? GKI_CUDA_SMALL_THREADS : kernel->threads, parameters, NULL);
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
  gki_trace_begin(0, "instantiate");
  CUresult result = instantiate(device->driver, graph, exec, &reason, at);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) { /* the driver may keep memory of destroyed graphs */
    (void)device->driver->cuDeviceGraphMemTrim(device->device);
    result = instantiate(device->driver, graph, exec, &reason, at);
  }
  gki_trace_end();
  *why = (size_t)reason < GK_COUNT(reasons) ? reasons[reason] : "";
  if (result != CUDA_SUCCESS) *exec = NULL;
  return result;
}
