/* Captures of streams into graphs. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

static sim_capture *captures;

static CUresult invalidate(sim_capture *capture, CUresult code, const char *entry, const char *why) {
  capture->invalid = true;
  return sim_refuse(code, "%s: %s", entry, why);
}

CUresult sim_capture_refuses(sim_stream *stream, const char *entry) {
  return invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, entry,
                    "no capture takes this up; the capture is invalid now");
}

CUresult sim_capture_unsafe(const char *entry) {
  for (sim_capture *each = captures; each; each = each->next) {
    bool mine = pthread_equal(each->thread, pthread_self());
    if (each->mode == CU_STREAM_CAPTURE_MODE_GLOBAL || (mine && each->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
      return invalidate(each, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, entry,
                        "might wait, which a capture under way forbids to this thread; the capture is invalid now");
  }
  return CUDA_SUCCESS;
}

static void set_last(sim_capture *capture, const CUgraphNode *nodes, size_t count) {
  free(capture->last);
  free(capture->edges);
  capture->last = sim_obtain(count * sizeof *capture->last);
  if (count) memcpy(capture->last, nodes, count * sizeof *nodes);
  capture->edges = sim_obtain(count * sizeof *capture->edges);
  capture->last_count = count;
}

CUresult sim_capture_add(sim_stream *stream, sim_call *call, const sim_copy *copy, const CUDA_HOST_NODE_PARAMS *host) {
  sim_capture *capture = stream->capture;
  sim_node *node;
  CUgraphNodeType type = call         ? CU_GRAPH_NODE_TYPE_KERNEL
                         : host       ? CU_GRAPH_NODE_TYPE_HOST
                         : copy->from ? CU_GRAPH_NODE_TYPE_MEMCPY : CU_GRAPH_NODE_TYPE_MEMSET;
  CUresult result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!capture->invalid) result = sim_node_add(capture->graph, type, capture->last, capture->last_count, &node);
  if (result != CUDA_SUCCESS) {
    capture->invalid = true;
    free(call);
    return result;
  }
  node->call = call;
  if (copy) node->copy = *copy;
  if (host) node->host = *host;
  CUgraphNode handle = SIM_HANDLE(CUgraphNode, node);
  set_last(capture, &handle, 1);
  return CUDA_SUCCESS;
}

static CUresult begin(CUstream where, CUstreamCaptureMode mode, const char *entry, sim_capture **out) {
  static uint64_t id;
  sim_stream *stream;
  CUresult result = sim_stream_find(where, entry, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (stream->is_default)
    return sim_refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "%s: the default stream can't be captured", entry);
  if (stream->capture) return sim_refuse(CUDA_ERROR_ILLEGAL_STATE, "%s: the stream is being captured already", entry);
  if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "%s: mode", entry);
  sim_capture *capture = sim_obtain(sizeof *capture);
  capture->stream = stream;
  capture->mode = mode;
  capture->thread = pthread_self();
  capture->id = ++id;
  capture->next = captures;
  captures = capture;
  stream->capture = capture;
  *out = capture;
  return CUDA_SUCCESS;
}

static void set_graph(sim_capture *capture, sim_graph *graph) {
  capture->graph = graph;
  graph->capturing = true;
  ++graph->root->captures;
}

static void end(sim_capture *capture) {
  sim_capture **link = &captures;
  while (*link != capture) link = &(*link)->next;
  *link = capture->next;
  --capture->graph->root->captures;
  capture->stream->capture = NULL;
  free(capture->last);
  free(capture->edges);
  free(capture);
}

/* The graph is the caller's, or nobody's if it is invalid. */
static void end_invalid(sim_capture *capture) {
  sim_graph *graph = capture->graph;
  bool into = capture->into;
  graph->capturing = false;
  end(capture);
  if (into) graph->root->poisoned = true;
  else sim_graph_drop(graph);
}

void sim_capture_drop(sim_stream *stream) { end_invalid(stream->capture); }

CUresult sim_cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  SIM_ENTER(cuStreamBeginCapture);
  sim_capture *capture;
  CUresult result = begin(stream, mode, "cuStreamBeginCapture", &capture);
  if (result == CUDA_SUCCESS) set_graph(capture, sim_graph_make(NULL));
  return result;
}

static CUresult check_into(sim_graph *graph, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t count) {
  static const CUgraphEdgeData full;
  if (graph->capturing) return sim_refuse(CUDA_ERROR_ILLEGAL_STATE, "the graph is being captured into already");
  if (count && !after) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuStreamBeginCaptureToGraph: dependencies: NULL");
  for (size_t k = 0; k < count; ++k) {
    const sim_node *node = SIM_OF(sim_node, after[k], SIM_NODE);
    if (!node || node->graph != graph)
      return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuStreamBeginCaptureToGraph: dependency %zu is no node of it", k);
    if (edges && memcmp(&edges[k], &full, sizeof full) != 0)
      return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "cuStreamBeginCaptureToGraph: edge data isn't simulated");
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle, const CUgraphNode *after,
                                         const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode) {
  SIM_ENTER(cuStreamBeginCaptureToGraph);
  sim_graph *graph;
  sim_capture *capture;
  CUresult result = sim_graph_find(handle, &graph);
  if (result == CUDA_SUCCESS) result = check_into(graph, after, edges, count);
  if (result == CUDA_SUCCESS) result = begin(stream, mode, "cuStreamBeginCaptureToGraph", &capture);
  if (result != CUDA_SUCCESS) return result;
  set_graph(capture, graph);
  capture->into = true;
  set_last(capture, after, count);
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                    const CUgraphNode **after, const CUgraphEdgeData **edges, size_t *count) {
  SIM_ENTER(cuStreamGetCaptureInfo);
  sim_stream *stream;
  CUresult result = sim_stream_find(handle, "cuStreamGetCaptureInfo", &stream);
  if (result != CUDA_SUCCESS) return result;
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  const sim_capture *capture = stream->capture;
  *status = !capture ? CU_STREAM_CAPTURE_STATUS_NONE
            : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id) *id = capture->id;
  if (graph) *graph = SIM_HANDLE(CUgraph, capture->graph);
  if (after) *after = capture->last;
  if (edges) *edges = capture->edges;
  if (count) *count = capture->last_count;
  return CUDA_SUCCESS;
}

/* fails: it answers an error whatever there is to say. */
static CUresult end_capture(CUstream handle, CUgraph *graph, bool fails) {
  sim_stream *stream;
  CUresult result = sim_stream_find(handle, "cuStreamEndCapture", &stream);
  if (result != CUDA_SUCCESS) return result;
  if (graph) *graph = NULL;
  sim_capture *capture = stream->capture;
  if (!graph || !capture) return sim_refuse(CUDA_ERROR_ILLEGAL_STATE, "cuStreamEndCapture: no capture is under way");
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
    return sim_refuse((CUresult)SIM_ERROR_CAPTURE_WRONG_THREAD, "cuStreamEndCapture: another thread began it");
  if (capture->invalid || fails) {
    end_invalid(capture);
    return sim_refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "cuStreamEndCapture: the capture went wrong");
  }
  capture->graph->capturing = false;
  *graph = SIM_HANDLE(CUgraph, capture->graph);
  end(capture);
  return CUDA_SUCCESS;
}

/* Outside of captures nothing here needs it. */
CUresult sim_cuLaunchHostFunc(CUstream where, CUhostFn function, void *data) {
  SIM_ENTER(cuLaunchHostFunc);
  sim_stream *stream;
  CUresult result = sim_stream_find(where, "cuLaunchHostFunc", &stream);
  if (result != CUDA_SUCCESS) return result;
  if (!function) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuLaunchHostFunc: no function");
  if (!stream->capture) return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "cuLaunchHostFunc: simulated in captures only");
  return sim_capture_add(stream, NULL, NULL, &(CUDA_HOST_NODE_PARAMS){function, data});
}

CUresult sim_cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  SIM_ENTER_BACK(cuStreamEndCapture);
  SIM_LEAVE(end_capture(stream, graph, sim_asked != CUDA_SUCCESS));
}
