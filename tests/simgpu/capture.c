/* Captures of streams into graphs. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

static sim_capture *captures;
static _Thread_local CUstreamCaptureMode thread_mode; /* cuThreadExchangeStreamCaptureMode */

static CUresult invalidate(sim_capture *capture, CUresult code, const char *entry, const char *why) {
  capture->invalid = true;
  return sim_refuse(code, "%s: %s", entry, why);
}

CUresult sim_capture_refuses(sim_stream *stream, const char *entry) {
  return invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, entry,
                    "no capture takes this up; the capture is invalid now");
}

CUresult sim_capture_unsafe(const char *entry) {
  for (sim_capture *each = captures; each && thread_mode != CU_STREAM_CAPTURE_MODE_RELAXED; each = each->next) {
    if (each->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    bool mine = pthread_equal(each->thread, pthread_self());
    bool others = each->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (mine || others)
      return invalidate(each, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, entry,
                        "unsafe while a capture is under way that forbids it to this thread; the capture is invalid "
                        "now");
  }
  return CUDA_SUCCESS;
}

static sim_stream *next_captured(const sim_capture *capture, sim_stream *stream) {
  while (stream && stream->capture != capture) stream = stream->next;
  return stream;
}

static sim_stream *first_captured(const sim_capture *capture) {
  return next_captured(capture, capture->origin->base.context->device->streams);
}

static bool is_blocking(const sim_capture *capture) {
  for (const sim_stream *each = first_captured(capture); each; each = next_captured(capture, each->next))
    if (each->blocking) return true;
  return false;
}

sim_capture *sim_capture_implicit(const sim_stream *stream) {
  for (sim_capture *each = captures; each && stream->is_default; each = each->next)
    if (each->origin->base.context == stream->base.context && is_blocking(each)) return each;
  return NULL;
}

CUresult sim_capture_unusable(const sim_stream *stream, const char *entry) {
  sim_capture *implicit = sim_capture_implicit(stream);
  if (!implicit) return CUDA_SUCCESS;
  return invalidate(implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, entry,
                    "the default stream would wait for one that is being captured; the capture is invalid now");
}

CUresult sim_capture_context(const sim_context *context, const char *entry) {
  CUresult result = CUDA_SUCCESS;
  for (sim_capture *each = captures; each; each = each->next)
    if (each->origin->base.context == context)
      result = invalidate(each, is_blocking(each) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                                                  : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                          entry, "a stream of the context is being captured; the capture is invalid now");
  return result;
}

CUresult sim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  SIM_ENTER(cuThreadExchangeStreamCaptureMode);
  const CUstreamCaptureMode before = thread_mode;
  if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuThreadExchangeStreamCaptureMode: mode");
  thread_mode = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}

/* ---- what the next node of a stream comes behind ---- */

static void set_last(sim_stream *stream, const CUgraphNode *nodes, size_t count) {
  CUgraphNode *last = sim_obtain(count * sizeof *last);
  if (count) memcpy(last, nodes, count * sizeof *nodes);
  free(stream->last_nodes);
  free(stream->last_edges);
  stream->last_nodes = last;
  stream->last_edges = sim_obtain(count * sizeof *stream->last_edges);
  stream->last_count = count;
}

static void add_last(sim_stream *stream, const CUgraphNode *nodes, size_t count) {
  CUgraphNode *all = sim_obtain((stream->last_count + count) * sizeof *all);
  size_t filled = stream->last_count;
  if (filled) memcpy(all, stream->last_nodes, filled * sizeof *all);
  for (size_t k = 0; k < count; ++k) {
    bool known = false;
    for (size_t other = 0; other < filled; ++other) known = known || all[other] == nodes[k];
    if (!known) all[filled++] = nodes[k];
  }
  set_last(stream, all, filled);
  free(all);
}

static void leave_capture(sim_stream *stream) {
  stream->capture = NULL;
  set_last(stream, NULL, 0);
}

CUresult sim_capture_add(sim_stream *stream, sim_call *call, const sim_copy *copy, const CUDA_HOST_NODE_PARAMS *host) {
  sim_capture *capture = stream->capture;
  sim_node *node;
  CUgraphNodeType type = call         ? CU_GRAPH_NODE_TYPE_KERNEL
                         : host       ? CU_GRAPH_NODE_TYPE_HOST
                         : copy->from ? CU_GRAPH_NODE_TYPE_MEMCPY : CU_GRAPH_NODE_TYPE_MEMSET;
  CUresult result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!capture->invalid) result = sim_node_add(capture->graph, type, stream->last_nodes, stream->last_count, &node);
  if (result != CUDA_SUCCESS) {
    capture->invalid = true;
    free(call);
    return result;
  }
  node->call = call;
  if (copy) node->copy = *copy;
  if (host) node->host = *host;
  CUgraphNode handle = SIM_HANDLE(CUgraphNode, node);
  set_last(stream, &handle, 1);
  return CUDA_SUCCESS;
}

/* ---- forks and joins ---- */

void sim_capture_record(sim_stream *stream, sim_event *event) {
  free(event->nodes);
  event->capture = stream->capture->id;
  event->node_count = stream->last_count;
  event->nodes = sim_obtain(event->node_count * sizeof *event->nodes);
  if (event->node_count) memcpy(event->nodes, stream->last_nodes, event->node_count * sizeof *event->nodes);
}

static sim_capture *capture_by(uint64_t id) {
  sim_capture *each = captures;
  while (each && each->id != id) each = each->next;
  return each;
}

static CUresult wait_captured(sim_stream *stream, const sim_event *event) {
  sim_capture *from = capture_by(event->capture), *here = stream->capture;
  if (!from) {
    if (here) here->invalid = true;
    return sim_refuse(here ? (CUresult)SIM_ERROR_CAPTURE_ISOLATION : CUDA_ERROR_CAPTURED_EVENT,
                      "cuStreamWaitEvent: the event is of a capture that is over");
  }
  if (stream->is_default || (here && here != from)) {
    if (here) here->invalid = true;
    return invalidate(from, stream->is_default ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                                               : (CUresult)SIM_ERROR_CAPTURE_MERGE,
                      "cuStreamWaitEvent", "this stream can't take part in the event's capture; it is invalid now");
  }
  if (from->invalid) return sim_refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "cuStreamWaitEvent: it is invalid");
  stream->capture = from;
  add_last(stream, event->nodes, event->node_count);
  return CUDA_SUCCESS;
}

CUresult sim_capture_wait(sim_stream *stream, const sim_event *event) {
  if (event->capture) return wait_captured(stream, event);
  return invalidate(stream->capture, (CUresult)SIM_ERROR_CAPTURE_ISOLATION, "cuStreamWaitEvent",
                    "the event wasn't recorded in the capture; the capture is invalid now");
}

static bool is_joined(const sim_stream *origin, CUgraphNode handle) {
  const sim_node *node = SIM_OF(sim_node, handle, SIM_NODE);
  for (size_t k = 0; node && k < origin->last_count; ++k)
    if (sim_node_is_behind(SIM_OF(sim_node, origin->last_nodes[k], SIM_NODE), node)) return true;
  return false;
}

/* Whether the origin comes behind all that the streams did that were drawn in. */
static bool all_joined(const sim_capture *capture) {
  for (const sim_stream *each = first_captured(capture); each; each = next_captured(capture, each->next))
    for (size_t k = 0; each != capture->origin && k < each->last_count; ++k)
      if (!is_joined(capture->origin, each->last_nodes[k])) return false;
  return true;
}

/* ---- beginning and ending ---- */

static CUresult begin(CUstream where, CUstreamCaptureMode mode, const char *entry, sim_capture **out) {
  static uint64_t id;
  SIM_FIND_STREAM(stream, where, entry);
  if (stream->is_default)
    return sim_refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "%s: the default stream can't be captured", entry);
  if (stream->capture) return sim_refuse(CUDA_ERROR_ILLEGAL_STATE, "%s: the stream is being captured already", entry);
  if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "%s: mode", entry);
  sim_capture *capture = sim_obtain(sizeof *capture);
  capture->origin = stream;
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
  for (sim_stream *each; (each = first_captured(capture));) leave_capture(each);
  free(capture);
}

/* The driver frees its graph, and of one that is the caller's that, with what belongs together: nobody may touch that
 * any more, not even to destroy it. */
static void end_invalid(sim_capture *capture) {
  sim_graph *graph = capture->graph;
  bool into = capture->into;
  graph->capturing = false;
  end(capture);
  if (!into) sim_graph_drop(graph);
  else if (!graph->root->poisoned) {
    graph->root->poisoned = true;
    sim_object_forget(&graph->root->base);
  }
}

void sim_capture_drop(sim_stream *stream) {
  stream->capture->invalid = true;
  if (stream->capture->origin == stream) end_invalid(stream->capture);
  else leave_capture(stream);
}

CUresult sim_cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  SIM_ENTER(cuStreamBeginCapture);
  sim_capture *capture;
  SIM_TRY(begin(stream, mode, "cuStreamBeginCapture", &capture));
  set_graph(capture, sim_graph_make(NULL));
  return CUDA_SUCCESS;
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
  sim_capture *capture;
  SIM_FIND_GRAPH(graph, handle);
  SIM_TRY(check_into(graph, after, edges, count));
  SIM_TRY(begin(stream, mode, "cuStreamBeginCaptureToGraph", &capture));
  set_graph(capture, graph);
  capture->into = true;
  set_last(capture->origin, after, count);
  return CUDA_SUCCESS;
}

static CUresult ask(CUstream handle, const char *entry, CUstreamCaptureStatus *status, sim_stream **stream) {
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(sim_stream_asked(handle, entry, stream));
  const sim_capture *capture = (*stream)->capture;
  *status = !capture ? CU_STREAM_CAPTURE_STATUS_NONE
            : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
  SIM_ENTER(cuStreamIsCapturing);
  sim_stream *stream;
  return ask(handle, "cuStreamIsCapturing", status, &stream);
}

CUresult sim_cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                    const CUgraphNode **after, const CUgraphEdgeData **edges, size_t *count) {
  SIM_ENTER(cuStreamGetCaptureInfo);
  sim_stream *stream;
  SIM_TRY(ask(handle, "cuStreamGetCaptureInfo", status, &stream));
  const sim_capture *capture = stream->capture;
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id) *id = capture->id;
  if (graph) *graph = SIM_HANDLE(CUgraph, capture->graph);
  if (after) *after = stream->last_nodes;
  if (edges) *edges = stream->last_edges;
  if (count) *count = stream->last_count;
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *nodes, const CUgraphEdgeData *edges,
                                               size_t count, unsigned int flags) {
  SIM_ENTER(cuStreamUpdateCaptureDependencies);
  SIM_FIND_STREAM(stream, handle, "cuStreamUpdateCaptureDependencies");
  if (!stream->capture || stream->capture->invalid)
    return sim_refuse(CUDA_ERROR_ILLEGAL_STATE, "cuStreamUpdateCaptureDependencies: no capture is under way");
  if (flags > 1 || edges || (count && !nodes))
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuStreamUpdateCaptureDependencies: a bad argument");
  for (size_t k = 0; k < count; ++k) {
    const sim_node *node = SIM_OF(sim_node, nodes[k], SIM_NODE);
    if (!node || node->graph != stream->capture->graph)
      return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuStreamUpdateCaptureDependencies: node %zu is none of it", k);
  }
  if (flags) set_last(stream, nodes, count); /* instead of what there is, else besides */
  else add_last(stream, nodes, count);
  return CUDA_SUCCESS;
}

/* fails: it answers an error whatever there is to say. */
static CUresult end_capture(CUstream handle, CUgraph *graph, bool fails) {
  SIM_FIND_STREAM(stream, handle, "cuStreamEndCapture");
  if (graph) *graph = NULL;
  sim_capture *capture = stream->capture;
  if (!graph || !capture) return sim_refuse(CUDA_ERROR_ILLEGAL_STATE, "cuStreamEndCapture: no capture is under way");
  if (capture->origin != stream)
    return sim_refuse((CUresult)SIM_ERROR_CAPTURE_UNMATCHED, "cuStreamEndCapture: the capture began on another stream");
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
    return sim_refuse((CUresult)SIM_ERROR_CAPTURE_WRONG_THREAD, "cuStreamEndCapture: another thread began it");
  if (capture->invalid || fails) {
    end_invalid(capture);
    return sim_refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "cuStreamEndCapture: the capture went wrong");
  }
  if (!all_joined(capture)) {
    end_invalid(capture);
    return sim_refuse(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "cuStreamEndCapture: a stream that was forked isn't joined");
  }
  capture->graph->capturing = false;
  *graph = SIM_HANDLE(CUgraph, capture->graph);
  end(capture);
  return CUDA_SUCCESS;
}

/* Outside of captures nothing here needs it. */
CUresult sim_cuLaunchHostFunc(CUstream where, CUhostFn function, void *data) {
  SIM_ENTER(cuLaunchHostFunc);
  SIM_FIND_STREAM(stream, where, "cuLaunchHostFunc");
  if (!function) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuLaunchHostFunc: no function");
  if (!stream->capture) return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "cuLaunchHostFunc: simulated in captures only");
  return sim_capture_add(stream, NULL, NULL, &(CUDA_HOST_NODE_PARAMS){function, data});
}

SIM_DEFINE_BACK(cuStreamEndCapture, (CUstream stream, CUgraph *graph),
                end_capture(stream, graph, sim_asked != CUDA_SUCCESS))
