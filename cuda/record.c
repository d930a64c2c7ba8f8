#include "cuda/record.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/within.h"
#include <stdio.h>
#include <string.h>

/* ---- recorded nodes ---------------------------------------------------------------------------------------------- */

CUresult gki_cuda_nodes_before(const gki_cuda_driver *driver, CUgraphNode node, CUgraphNode **nodes, size_t *count) {
  CUresult result = driver->cuGraphNodeGetDependencies(node, NULL, NULL, count);
  *nodes = NULL;
  if (result != CUDA_SUCCESS || !*count) return result;
  *nodes = gki_array(*count, sizeof **nodes, "nodes before a node");
  CUgraphEdgeData *edges = gki_array(*count, sizeof *edges, "nodes before a node");
  result = *nodes && edges ? driver->cuGraphNodeGetDependencies(node, *nodes, edges, count)
                           : CUDA_ERROR_OUT_OF_MEMORY;
  gk_host_free(edges);
  return result;
}

/* A linear search is quick enough, since calls record few nodes. */
static CUresult add_found(gki_cuda_found *found, CUgraphNode node) {
  for (size_t k = 0; k < found->count; ++k)
    if (found->nodes[k] == node) return CUDA_SUCCESS;
  if (!gki_grow((void **)&found->nodes, &found->capacity, found->count + 1, sizeof node, "what a call recorded"))
    return CUDA_ERROR_OUT_OF_MEMORY;
  found->nodes[found->count++] = node;
  return CUDA_SUCCESS;
}

static CUresult add_all(gki_cuda_found *found, const CUgraphNode *nodes, size_t count, gki_cuda_stops stops,
                        const void *data) {
  CUresult result = CUDA_SUCCESS;
  for (size_t k = 0; k < count && result == CUDA_SUCCESS; ++k)
    if (!stops(data, nodes[k])) result = add_found(found, nodes[k]);
  return result;
}

/* *nodes is to be freed by gk_host_free. */
static CUresult nodes_in(const gki_cuda_driver *driver, CUgraph graph, CUgraphNode **nodes, size_t *count) {
  CUresult result = driver->cuGraphGetNodes(graph, NULL, count);
  *nodes = NULL;
  if (result != CUDA_SUCCESS || !*count) return result;
  *nodes = gki_array(*count, sizeof **nodes, "a graph's nodes");
  return *nodes ? driver->cuGraphGetNodes(graph, *nodes, count) : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add_inside(const gki_cuda_driver *driver, CUgraphNode node, gki_cuda_stops stops, const void *data,
                           gki_cuda_found *found) {
  CUgraphNodeType type;
  CUgraph child;
  CUgraphNode *nodes = NULL;
  size_t count = 0;
  CUresult result = driver->cuGraphNodeGetType(node, &type);
  if (result != CUDA_SUCCESS || type != CU_GRAPH_NODE_TYPE_GRAPH) return result;
  result = driver->cuGraphChildGraphNodeGetGraph(node, &child);
  if (result == CUDA_SUCCESS) result = nodes_in(driver, child, &nodes, &count);
  if (result == CUDA_SUCCESS) result = add_all(found, nodes, count, stops, data);
  gk_host_free(nodes);
  return result;
}

CUresult gki_cuda_find_recorded(const gki_cuda_driver *driver, const CUgraphNode *ends, size_t count,
                                gki_cuda_stops stops, const void *data, gki_cuda_found *found) {
  size_t next = found->count;
  CUresult result = add_all(found, ends, count, stops, data);
  for (; result == CUDA_SUCCESS && next < found->count; ++next) {
    CUgraphNode *before;
    size_t before_count = 0;
    result = gki_cuda_nodes_before(driver, found->nodes[next], &before, &before_count);
    if (result == CUDA_SUCCESS) result = add_all(found, before, before_count, stops, data);
    if (result == CUDA_SUCCESS) result = add_inside(driver, found->nodes[next], stops, data, found);
    gk_host_free(before);
  }
  return result;
}

/* ---- what bodies and child graphs can't hold --------------------------------------------------------------------- */

/* NULL: they can. */
static const char *unfit(CUgraphNodeType type, bool in_body) {
  switch (type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
  case CU_GRAPH_NODE_TYPE_MEMCPY:
  case CU_GRAPH_NODE_TYPE_MEMSET:
  case CU_GRAPH_NODE_TYPE_GRAPH:
  case CU_GRAPH_NODE_TYPE_EMPTY: return NULL;
  case CU_GRAPH_NODE_TYPE_CONDITIONAL: return "a conditional node";
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return "an allocation (give the library a workspace of its own)";
  case CU_GRAPH_NODE_TYPE_MEM_FREE: return "a release of memory (give the library a workspace of its own)";
  default: break;
  }
  if (!in_body) return NULL;
  switch (type) {
  case CU_GRAPH_NODE_TYPE_HOST: return "a host function";
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "a wait for an event";
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "an event";
  default: return "a node that is none of a kernel, copy, fill or child graph";
  }
}

CUresult gki_cuda_find_unfit(const gki_cuda_driver *driver, CUgraph recorded, bool in_body, const char **what) {
  CUgraphNode *nodes;
  size_t count = 0;
  CUresult result = nodes_in(driver, recorded, &nodes, &count);
  *what = NULL;
  for (size_t k = 0; k < count && result == CUDA_SUCCESS && !*what; ++k) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUgraph child;
    result = driver->cuGraphNodeGetType(nodes[k], &type);
    if (result != CUDA_SUCCESS) break;
    *what = unfit(type, in_body);
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    result = driver->cuGraphChildGraphNodeGetGraph(nodes[k], &child);
    if (result == CUDA_SUCCESS) result = gki_cuda_find_unfit(driver, child, in_body, what);
  }
  gk_host_free(nodes);
  return result;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

/* The stream is being captured, so it records the call's work. */
static gk_result call_library(const gki_cuda_frontier *f, const gk_node *node, CUstream stream) {
  gk_value args[GK_MAX_ARGS];
  for (uint32_t k = 0; k < node->arg_count; ++k) args[k] = f->values[f->slots->plan->args[node->args + k]];
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

static gk_result refuse_in_body(const gki_cuda_frontier *f, const gk_node *node, const char *what) {
  snprintf(f->refused, f->refused_bytes, "task %u (%s) recorded %s, which no body of a conditional node can hold",
           (unsigned)node->source, node->name, what);
  return GK_ERROR_UNSUPPORTED;
}

/* With these results the call spoiled the capture: it waited, left another stream unjoined, or ended the capture. */
static gk_result capture_result(const gki_cuda_frontier *f, uint32_t task, CUresult end) {
  const bool is_of_call = end == CUDA_ERROR_ILLEGAL_STATE ||
                          (end >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && end <= CUDA_ERROR_CAPTURED_EVENT);
  return is_of_call ? refuse_recorded(&f->slots->plan->nodes[task])
                    : gki_cuda_frontier_result(f, end, "cuStreamEndCapture", task);
}

/* Records into a separate graph, *own, which may be set even if this fails. A capture into the root graph is no choice
 * here: if it fails, the driver frees that graph. */
static gk_result record_own(const gki_cuda_frontier *f, uint32_t task, CUstream stream, CUgraph *own) {
  const gki_cuda_driver *driver = f->device->driver;
  const gk_node *node = &f->slots->plan->nodes[task];
  *own = NULL;
  CUresult begun = driver->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (begun != CUDA_SUCCESS) return gki_cuda_frontier_result(f, begun, "cuStreamBeginCapture", task);
  gk_result result = library_result(node, call_library(f, node, stream));
  CUresult end = driver->cuStreamEndCapture(stream, own);
  if (end != CUDA_SUCCESS) *own = NULL;
  return result == GK_OK ? capture_result(f, task, end) : result;
}

/* The ends of the recorded work become the frontier. */
static gk_result replace_frontier(gki_cuda_frontier *f, size_t first, const CUgraphNode *last, size_t count) {
  if (!gki_cuda_frontier_grow(f, count)) return GK_ERROR_MEMORY;
  if (count) memmove(f->nodes + first, last, count * sizeof *last);
  f->count = first + count;
  return GK_OK;
}

/* Records again, into the root graph, what no child graph can hold. If this second capture fails, the driver has freed
 * the root graph. */
static gk_result record_into_whole(gki_cuda_frontier *f, uint32_t task, size_t first, CUstream stream,
                                   const char *what) {
  const gki_cuda_driver *driver = f->device->driver;
  const gk_node *node = &f->slots->plan->nodes[task];
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode *last = NULL;
  const CUgraphEdgeData *edges = NULL;
  size_t count = 0;
  if (!driver->cuStreamBeginCaptureToGraph)
    return gk_fail(GK_ERROR_UNSUPPORTED, "task %u (%s) recorded %s, which drivers before CUDA 12.3 can't put into a "
                   "larger graph; update NVIDIA's driver", (unsigned)node->source, node->name, what);
  CUresult begun = driver->cuStreamBeginCaptureToGraph(stream, *f->whole, gki_cuda_frontier_from(f, first), NULL,
                                                       f->count - first, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (begun != CUDA_SUCCESS) return gki_cuda_frontier_result(f, begun, "cuStreamBeginCaptureToGraph", task);
  gk_result result = library_result(node, call_library(f, node, stream));
  const CUresult asked = driver->cuStreamGetCaptureInfo(stream, &status, NULL, NULL, &last, &edges, &count);
  if (result == GK_OK) result = gki_cuda_frontier_result(f, asked, "cuStreamGetCaptureInfo", task);
  if (result == GK_OK && status == CU_STREAM_CAPTURE_STATUS_ACTIVE) result = replace_frontier(f, first, last, count);
  CUgraph ended;
  const CUresult end = driver->cuStreamEndCapture(stream, &ended);
  if (end != CUDA_SUCCESS) *f->whole = NULL;
  return result == GK_OK ? capture_result(f, task, end) : result;
}

/* A call that records nothing gets no child graph, since the driver can't instantiate an empty one. The empty node that
 * gki_cuda_add_call adds keeps a body with only this call from staying empty. */
static gk_result add_child(gki_cuda_frontier *f, CUgraph into, uint32_t task, size_t first, CUgraph child) {
  size_t count = 0;
  CUresult result = f->device->driver->cuGraphGetNodes(child, NULL, &count);
  if (result != CUDA_SUCCESS) return gki_cuda_frontier_result(f, result, "cuGraphGetNodes", task);
  if (!count) return GK_OK;
  CUgraphNode made;
  result = f->device->driver->cuGraphAddChildGraphNode(&made, into, gki_cuda_frontier_from(f, first),
                                                       f->count - first, child);
  if (into != *f->whole && (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED))
    return refuse_in_body(f, &f->slots->plan->nodes[task], "what the driver takes in whole graphs alone");
  if (result != CUDA_SUCCESS) return gki_cuda_frontier_result(f, result, "cuGraphAddChildGraphNode", task);
  return gki_cuda_frontier_advance(f, first, made);
}

static gk_result add_recorded(gki_cuda_frontier *f, CUgraph into, uint32_t task, size_t first, CUstream stream,
                              CUgraph own) {
  const bool in_body = into != *f->whole;
  const char *what;
  CUresult result = gki_cuda_find_unfit(f->device->driver, own, in_body, &what);
  if (result != CUDA_SUCCESS) return gki_cuda_frontier_result(f, result, "looking at what was recorded", task);
  if (!what) return add_child(f, into, task, first, own);
  return in_body ? refuse_in_body(f, &f->slots->plan->nodes[task], what)
                 : record_into_whole(f, task, first, stream, what);
}

/* Captures a new stream, since other threads may use the device's stream. */
gk_result gki_cuda_add_call(gki_cuda_frontier *f, CUgraph into, uint32_t task, size_t first) {
  const gki_cuda_driver *driver = f->device->driver;
  CUstream stream;
  CUgraph own;
  CUresult made = driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (made != CUDA_SUCCESS) return gki_cuda_frontier_result(f, made, "cuStreamCreate", task);
  gk_result result = record_own(f, task, stream, &own);
  if (result == GK_OK) result = add_recorded(f, into, task, first, stream, own);
  if (own) (void)driver->cuGraphDestroy(own);
  (void)driver->cuStreamDestroy(stream);
  return result == GK_OK ? gki_cuda_add_empty(f, into, task, first) : result;
}
