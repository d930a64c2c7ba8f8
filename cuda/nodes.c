#include "nodes.h"
#include "error.h"
#include <string.h>

enum { SMALL = 256 }; /* bytes that one warp copies as fast as any number of them */

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
  return gki_cuda_judge(n->device->driver, result, "%s for task %u (%s) of graph %s", call, (unsigned)node->source,
                        node->name, n->slots->plan->name);
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
  gk_result result = node->call(args, stream);
  if (result == GK_NOT_READY) result = GK_ERROR_INVALID;
  if (result != GK_OK)
    gk_fail(result, "task %u (%s): the call answered %s when it was asked to put its work on the stream",
            (unsigned)node->source, node->name, gk_result_name(result));
  return result;
}

static gk_result refuse_recorded(const gk_node *node) {
  return gk_fail(GK_ERROR_INVALID, "task %u (%s): what the call did can't be recorded in a graph; it may only put work "
                 "on the stream that it is given", (unsigned)node->source, node->name);
}

/* Its nodes become nodes of this graph. The stream that is captured is one of its own: others may work on the
 * device's meanwhile. */
static gk_result record(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first, CUstream stream) {
  const gki_cuda_driver *driver = n->device->driver;
  const gk_node *node = &n->slots->plan->nodes[task];
  CUresult begun = driver->cuStreamBeginCaptureToGraph(stream, into, gki_cuda_nodes_from(n, first), NULL,
                                                       n->count - first, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (begun != CUDA_SUCCESS) return gki_cuda_nodes_judge(n, begun, "cuStreamBeginCaptureToGraph", task);
  gk_result result = call_library(n, node, stream);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode *last = NULL;
  const CUgraphEdgeData *edges = NULL;
  size_t count = 0;
  CUresult asked = result != GK_OK ? CUDA_SUCCESS
                   : driver->cuStreamGetCaptureInfo(stream, &status, NULL, NULL, &last, &edges, &count);
  if (asked != CUDA_SUCCESS) result = gki_cuda_nodes_judge(n, asked, "cuStreamGetCaptureInfo", task);
  else if (result == GK_OK && status != CU_STREAM_CAPTURE_STATUS_ACTIVE) result = refuse_recorded(node);
  if (result == GK_OK && !gki_cuda_nodes_grow(n, count)) result = GK_ERROR_MEMORY;
  if (result == GK_OK && count) memmove(n->fronts + first, last, count * sizeof(CUgraphNode));
  if (result == GK_OK) n->count = first + count;
  CUgraph ended;
  CUresult end = driver->cuStreamEndCapture(stream, &ended);
  return result == GK_OK && end != CUDA_SUCCESS ? gki_cuda_nodes_judge(n, end, "cuStreamEndCapture", task) : result;
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

/* For drivers before 12.3, where a capture makes a graph of its own. */
static gk_result record_apart(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first, CUstream stream) {
  const gki_cuda_driver *driver = n->device->driver;
  const gk_node *node = &n->slots->plan->nodes[task];
  CUresult begun = driver->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (begun != CUDA_SUCCESS) return gki_cuda_nodes_judge(n, begun, "cuStreamBeginCapture", task);
  gk_result result = call_library(n, node, stream);
  CUgraph child = NULL;
  CUresult end = driver->cuStreamEndCapture(stream, &child);
  if (end != CUDA_SUCCESS) child = NULL;
  if (result == GK_OK && end == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) result = refuse_recorded(node);
  else if (result == GK_OK) result = gki_cuda_nodes_judge(n, end, "cuStreamEndCapture", task);
  if (result == GK_OK) result = add_child(n, into, task, first, child);
  if (child) (void)driver->cuGraphDestroy(child);
  return result;
}

/* An empty node behind it: a call that records nothing mustn't leave a body empty. */
static gk_result add_call(gki_cuda_nodes *n, CUgraph into, uint32_t task, size_t first) {
  const gki_cuda_driver *driver = n->device->driver;
  CUstream stream;
  CUresult made = driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (made != CUDA_SUCCESS) return gki_cuda_nodes_judge(n, made, "cuStreamCreate", task);
  gk_result result = driver->cuStreamBeginCaptureToGraph ? record(n, into, task, first, stream)
                                                         : record_apart(n, into, task, first, stream);
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
  const bool one = !node->items[0] && !node->items[1] && !node->items[2] && task.element <= SMALL;
  return gki_cuda_add_kernel(n, into, at, first, kernel->function, one ? 1 : kernel->blocks,
                             one ? 32 : kernel->threads, parameters, NULL);
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

/* Drivers before 12.0 give no reason. */
static CUresult instantiate(const gki_cuda_driver *driver, CUgraph graph, CUgraphExec *exec,
                            CUgraphInstantiateResult *reason) {
  if (!driver->cuGraphInstantiateWithParams) return driver->cuGraphInstantiateWithFlags(exec, graph, 0);
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {0};
  const CUresult result = driver->cuGraphInstantiateWithParams(exec, graph, &parameters);
  *reason = parameters.result_out;
  return result;
}

CUresult gki_cuda_instantiate(const gki_cuda_device *device, CUgraph graph, CUgraphExec *exec, const char **why) {
  static const char *const reasons[] = {
      [CUDA_GRAPH_INSTANTIATE_SUCCESS] = "", [CUDA_GRAPH_INSTANTIATE_ERROR] = "",
      [CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE] = ", its structure isn't valid",
      [CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED] = ", a CALL recorded what no graph or block may hold",
      [CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED] = ", its nodes are of several contexts",
      [CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED] = ", a handle belongs to no node"};
  CUgraphInstantiateResult reason = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  CUresult result = instantiate(device->driver, graph, exec, &reason);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) { /* graphs that are gone may still have some */
    (void)device->driver->cuDeviceGraphMemTrim(device->device);
    result = instantiate(device->driver, graph, exec, &reason);
  }
  *why = (size_t)reason < GK_COUNT(reasons) ? reasons[reason] : "";
  if (result != CUDA_SUCCESS) *exec = NULL;
  return result;
}
