/* Captures of streams into graphs. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

static sim_capture *captures;
static _Thread_local CUstreamCaptureMode thread_mode; /* cuThreadExchangeStreamCaptureMode */

/* Refuses the call, and the capture becomes invalid. */
static CUresult invalidate(sim_capture *capture, CUresult code, const char *why) {
  capture->invalid = true;
  return sim_refuse(code, "%s; the capture is invalid now", why);
}

CUresult sim_capture_refuses(const sim_stream *stream) {
  if (!stream->capture) return CUDA_SUCCESS;
  return invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "no capture takes this up");
}

CUresult sim_capture_unsafe(void) {
  for (sim_capture *each = captures; each && thread_mode != CU_STREAM_CAPTURE_MODE_RELAXED; each = each->next) {
    if (each->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    bool mine = pthread_equal(each->thread, pthread_self());
    bool others = each->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (mine || others)
      return invalidate(each, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                        "unsafe while a capture is under way that forbids it to this thread");
  }
  return CUDA_SUCCESS;
}

CUstreamCaptureStatus sim_capture_status(const sim_stream *stream) {
  if (!stream->capture) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

#define EACH_CAPTURED(each, by) \
  for (sim_stream *each = (by)->origin->base.context->device->streams; each; each = each->next) \
    if (each->capture == (by))

static bool is_blocking(const sim_capture *capture) {
  EACH_CAPTURED(each, capture)
    if (each->blocking) return true;
  return false;
}

sim_capture *sim_capture_implicit(const sim_stream *stream) {
  for (sim_capture *each = captures; each && stream->is_default; each = each->next)
    if (each->origin->base.context == stream->base.context && is_blocking(each)) return each;
  return NULL;
}

CUresult sim_capture_unusable(const sim_stream *stream) {
  sim_capture *implicit = sim_capture_implicit(stream);
  if (!implicit) return CUDA_SUCCESS;
  return invalidate(implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                    "the default stream would wait for one that is being captured");
}

CUresult sim_capture_context(const sim_context *context) {
  CUresult result = CUDA_SUCCESS;
  for (sim_capture *each = captures; each; each = each->next)
    if (each->origin->base.context == context)
      result = invalidate(each, is_blocking(each) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                                                  : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                          "a stream of the context is being captured");
  return result;
}

CUresult sim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  SIM_ENTER(cuThreadExchangeStreamCaptureMode);
  const CUstreamCaptureMode before = thread_mode;
  if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED) return sim_invalid("mode");
  thread_mode = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}

/* ---- the nodes that a stream's next node depends on - */

static void set_last(sim_stream *stream, const CUgraphNode *nodes, size_t count) {
  CUgraphNode *last = count ? sim_duplicate(nodes, count * sizeof *nodes) : NULL;
  free(stream->last_nodes);
  free(stream->last_edges);
  stream->last_nodes = last;
  stream->last_edges = sim_obtain(count * sizeof *stream->last_edges);
  stream->last_count = count;
}

static void add_last(sim_stream *stream, const CUgraphNode *nodes, size_t count) {
  CUgraphNode *all = sim_obtain((stream->last_count + count) * sizeof *all);
  size_t filled = 0;
  for (size_t k = 0; k < stream->last_count + count; ++k) {
    const CUgraphNode node = k < stream->last_count ? stream->last_nodes[k] : nodes[k - stream->last_count];
    bool known = false;
    for (size_t other = 0; other < filled; ++other) known = known || all[other] == node;
    if (!known) all[filled++] = node;
  }
  set_last(stream, all, filled);
  free(all);
}

static void leave_capture(sim_stream *stream) {
  stream->capture = NULL;
  set_last(stream, NULL, 0);
}

CUresult sim_capture_add(sim_stream *stream, sim_work work) {
  sim_capture *capture = stream->capture;
  sim_node *node;
  if (capture->invalid) {
    free(work.call);
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  CUresult result = sim_node_add(capture->graph, work, stream->last_nodes, stream->last_count, &node);
  if (result == CUDA_SUCCESS) set_last(stream, &(CUgraphNode){SIM_HANDLE(CUgraphNode, node)}, 1);
  else capture->invalid = true;
  return result;
}

/* ---- forks and joins ---- */

void sim_capture_record(sim_stream *stream, sim_event *event) {
  free(event->nodes);
  event->capture = stream->capture->id;
  event->node_count = stream->last_count;
  event->nodes = event->node_count ? sim_duplicate(stream->last_nodes, event->node_count * sizeof *event->nodes) : NULL;
}

static sim_capture *capture_by(uint64_t id) {
  sim_capture *each = captures;
  while (each && each->id != id) each = each->next;
  return each;
}

static CUresult wait_captured(sim_stream *stream, const sim_event *event) {
  sim_capture *from = capture_by(event->capture), *here = stream->capture;
  if (here && here != from) here->invalid = true;
  if (!from)
    return sim_refuse(here ? SIM_ERROR_CAPTURE_ISOLATION : CUDA_ERROR_CAPTURED_EVENT,
                      "the event is of a capture that is over");
  if (stream->is_default || (here && here != from))
    return invalidate(from, stream->is_default ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : SIM_ERROR_CAPTURE_MERGE,
                      "this stream can't take part in the event's capture");
  if (from->invalid) return sim_refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture is invalid");
  stream->capture = from;
  add_last(stream, event->nodes, event->node_count);
  return CUDA_SUCCESS;
}

CUresult sim_capture_wait(sim_stream *stream, const sim_event *event) {
  if (event->capture) return wait_captured(stream, event);
  return invalidate(stream->capture, SIM_ERROR_CAPTURE_ISOLATION, "the event wasn't recorded in the capture");
}

static bool is_joined(const sim_stream *origin, CUgraphNode handle) {
  const sim_node *node = SIM_OF(sim_node, handle, SIM_NODE);
  for (size_t k = 0; node && k < origin->last_count; ++k)
    if (sim_node_is_behind(SIM_OF(sim_node, origin->last_nodes[k], SIM_NODE), node)) return true;
  return false;
}

/* Whether the origin waits for all work of the streams that were drawn in. */
static bool all_joined(const sim_capture *capture) {
  EACH_CAPTURED(each, capture)
    for (size_t k = 0; each != capture->origin && k < each->last_count; ++k)
      if (!is_joined(capture->origin, each->last_nodes[k])) return false;
  return true;
}

/* ---- beginning and ending ---- */

/* Into the graph; NULL: a new one. */
static CUresult begin(CUstream where, CUstreamCaptureMode mode, sim_graph *into, sim_capture **out) {
  static uint64_t id;
  SIM_FIND_STREAM(stream, where);
  if (stream->is_default)
    return sim_refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the default stream can't be captured");
  if (stream->capture) return sim_refuse(CUDA_ERROR_ILLEGAL_STATE, "the stream is being captured already");
  if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED) return sim_invalid("mode");
  sim_graph *graph = into ? into : sim_graph_make(NULL);
  graph->capturing = true;
  ++graph->root->captures;
  stream->capture = captures = sim_duplicate(
    &(sim_capture){.next = captures, .origin = stream, .graph = graph, .into = into, .mode = mode,
                   .thread = pthread_self(), .id = ++id}, sizeof **out);
  *out = captures;
  return CUDA_SUCCESS;
}

static void end(sim_capture *capture) {
  sim_capture **link = &captures;
  while (*link != capture) link = &(*link)->next;
  *link = capture->next;
  --capture->graph->root->captures;
  EACH_CAPTURED(each, capture) leave_capture(each);
  free(capture);
}

/* The driver frees the graph. A caller's graph is freed with its root and all bodies: the caller must neither use nor
 * destroy any of them. */
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
  return begin(stream, mode, NULL, &capture);
}

static CUresult check_into(sim_graph *graph, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t count) {
  if (graph->capturing) return sim_refuse(CUDA_ERROR_ILLEGAL_STATE, "the graph is being captured into already");
  if (count && !after) return sim_invalid("dependencies: NULL");
  for (size_t k = 0; k < count; ++k) {
    if (!sim_node_in(graph, after[k])) return sim_invalid("dependency %zu is a node of another graph, or none", k);
    if (edges && !sim_edge_full(&edges[k])) return sim_unsupported("edge data isn't simulated");
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle, const CUgraphNode *after,
                                         const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode) {
  SIM_ENTER(cuStreamBeginCaptureToGraph);
  sim_capture *capture;
  SIM_FIND_GRAPH(graph, handle);
  SIM_TRY(check_into(graph, after, edges, count));
  SIM_TRY(begin(stream, mode, graph, &capture));
  set_last(capture->origin, after, count);
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                    const CUgraphNode **after, const CUgraphEdgeData **edges, size_t *count) {
  SIM_ENTER(cuStreamGetCaptureInfo);
  sim_stream *stream;
  SIM_TRY(sim_stream_asked(handle, &stream));
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  *status = sim_capture_status(stream);
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id) *id = stream->capture->id;
  if (graph) *graph = SIM_HANDLE(CUgraph, stream->capture->graph);
  if (after) *after = stream->last_nodes;
  if (edges) *edges = stream->last_edges;
  if (count) *count = stream->last_count;
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *nodes, const CUgraphEdgeData *edges,
                                               size_t count, unsigned int flags) {
  SIM_ENTER(cuStreamUpdateCaptureDependencies);
  SIM_FIND_STREAM(stream, handle);
  if (sim_capture_status(stream) != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    return sim_refuse(CUDA_ERROR_ILLEGAL_STATE, "no capture is under way");
  if (flags > 1 || edges || (count && !nodes)) return sim_invalid("a bad argument");
  for (size_t k = 0; k < count; ++k)
    if (!sim_node_in(stream->capture->graph, nodes[k])) return sim_invalid("node %zu is no node of the graph", k);
  if (flags) set_last(stream, nodes, count); /* instead of what there is, else besides */
  else add_last(stream, nodes, count);
  return CUDA_SUCCESS;
}

/* fails: the call answers an error in any case. */
static CUresult end_capture(CUstream handle, CUgraph *graph, bool fails) {
  SIM_FIND_STREAM(stream, handle);
  if (graph) *graph = NULL;
  sim_capture *capture = stream->capture;
  if (!graph || !capture) return sim_refuse(CUDA_ERROR_ILLEGAL_STATE, "no capture is under way");
  if (capture->origin != stream)
    return sim_refuse(SIM_ERROR_CAPTURE_UNMATCHED, "the capture began on another stream");
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
    return sim_refuse(SIM_ERROR_CAPTURE_WRONG_THREAD, "another thread began it");
  const bool invalid = capture->invalid || fails;
  if (invalid || !all_joined(capture)) {
    end_invalid(capture);
    return invalid ? sim_refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture went wrong")
                   : sim_refuse(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "a stream that was forked isn't joined");
  }
  capture->graph->capturing = false;
  *graph = SIM_HANDLE(CUgraph, capture->graph);
  end(capture);
  return CUDA_SUCCESS;
}

SIM_DEFINE_BACK(cuStreamEndCapture, (CUstream stream, CUgraph *graph),
               end_capture(stream, graph, sim_asked != CUDA_SUCCESS))

/* Outside of captures these calls don't use the mode. */
CUresult sim_cuLaunchHostFunc(CUstream where, CUhostFn function, void *data) {
  SIM_ENTER(cuLaunchHostFunc);
  SIM_FIND_STREAM(stream, where);
  if (!function) return sim_invalid("no function");
  if (!stream->capture) return sim_unsupported("simulated in captures only");
  return sim_capture_add(stream, (sim_work){.type = CU_GRAPH_NODE_TYPE_HOST, .host = {function, data}});
}
