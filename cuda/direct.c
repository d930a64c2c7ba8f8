/* gk_cuda.h: sharing, and looking inside. */
#include "cuda/direct.h"
#include "gk_cuda.h"
#include "base/error.h"
#include "base/op.h"
#include "cuda/backend.h"
#include "cuda/dump.h"
#include "cuda/lower.h"
#include "cuda/record.h"
#include <stdio.h>
#include <string.h>

gki_cuda_device *gki_cuda_device_of(gk_device *device, const char *call) {
  void *state;
  return gk_device_state(device, gki_cuda.name, call, &state) == GK_OK ? state : NULL;
}

gk_result gki_cuda_refuse_conditional(const gki_cuda_device *device, const char *call) {
  if (device->caps.conditional) return GK_OK;
  return gk_fail(GK_ERROR_UNSUPPORTED, "%s: CUDA device %d (%s) has no conditional nodes for it: %s", call,
                 device->ordinal, device->name, device->caps.why);
}

gk_result gki_cuda_refuse_into(const char *call, CUgraph into, const CUgraphNode *after, size_t count) {
  if (!into) return gk_fail(GK_ERROR_INVALID, "%s: there is no graph (NULL) to add to", call);
  if (count && !after)
    return gk_fail(GK_ERROR_INVALID, "%s: %zu nodes come first, and `after` is NULL", call, count);
  for (size_t k = 0; k < count; ++k)
    if (!after[k]) return gk_fail(GK_ERROR_INVALID, "%s: after[%zu] is no node (NULL)", call, k);
  return GK_OK;
}

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

gk_result gk_cuda_context(gk_device *device, CUcontext *context, CUstream *stream) {
  if (context) *context = NULL;
  if (stream) *stream = NULL;
  gki_begin();
  gki_cuda_device *ours = gki_cuda_device_of(device, "gk_cuda_context");
  if (!ours) return GK_ERROR_INVALID;
  if (context) *context = ours->context;
  if (stream) *stream = ours->stream;
  if (stream) atomic_store_explicit(&ours->exposed_stream, true, memory_order_relaxed);
  return GK_OK;
}

/* ---- looking inside ---------------------------------------------------------------------------------------------- */

typedef struct look {
  const char *call;
  bool resumes;
  size_t task; /* SIZE_MAX: the whole graph */
  bool draws;
  gki_text text;
  const gki_cuda_variant *variant;
  gki_cuda_place place;
} look;

static gk_result find_variant(look *l, gki_cuda_graph *native) {
  const gki_cuda_device *device = native->device;
  gki_cuda_variant *variant = &native->fresh;
  l->variant = variant;
  if (native->external && l->task != SIZE_MAX) return GK_OK;
  if (native->external)
    return gk_fail(GK_ERROR_INVALID, "%s: graph %s is in a graph of yours; gk_cuda_node tells its nodes there", l->call,
                   native->plan->name);
  const bool there = native->fresh.exec && (!l->resumes || native->serves_both || native->resume.exec);
  if (!native->fresh.exec && !gki_calls_can_record(&native->calls))
    return gk_fail(GK_ERROR_INVALID, "%s: what the library calls of graph %s record isn't known before their slots are "
                   "bound; launch it once first", l->call, native->plan->name);
  gk_result result = gki_cuda_variant_get(native, l->resumes, &variant);
  if (result == GK_ERROR_UNSUPPORTED && native->refused[0])
    return gk_fail(result, "%s: graph %s: %s", l->call, native->plan->name, native->refused);
  if (result == GK_OK && !there && native->order.last_stream.stream != device->stream)
    /* the next launch may be on that stream again, without waiting for the uploads on the device's */
    result = gki_cuda_graph_result(device, native->plan, device->driver->cuStreamSynchronize(device->stream),
                                  "cuStreamSynchronize");
  l->variant = variant;
  return result;
}

/* ---- nodes of tasks ---------------------------------------------------------------------------------------------- */

static bool is_of_checkpoint(const gk_gates *gates, const gk_gate_node *gate, uint32_t node) {
  if (gate->kind != GK_GATE_CONTROL || gate->point == GK_NONE) return false;
  const gk_gate_point *point = &gates->points[gate->point];
  return point->node == node && (point->kind == GK_POINT_YIELD || point->kind == GK_POINT_MARK);
}

static bool is_of(const gk_gates *gates, const gk_gate_node *gate, uint32_t at) {
  const gk_node *node = &gates->plan->nodes[at];
  if (gki_op_is_target(node->op)) return is_of_checkpoint(gates, gate, at);
  if (gate->kind != GK_GATE_TASK && gate->kind != GK_GATE_IF && gate->kind != GK_GATE_SWITCH &&
      gate->kind != GK_GATE_WHILE)
    return false;
  return gate->node == at ||
         (node->op == GK_OP_SWITCH && gate->kind == GK_GATE_IF && gates->plan->nodes[gate->node].parent == at);
}

/* The gates' node of the task's first plan node that has one; GK_NONE: none has. */
static uint32_t find_gate(const gk_gates *gates, size_t task, uint32_t *node) {
  for (uint32_t at = 1; at < gates->plan->node_count; ++at) {
    if (gates->plan->nodes[at].source != task) continue;
    for (uint32_t k = 0; k < gates->node_count; ++k)
      if (is_of(gates, &gates->nodes[k], at)) {
        *node = at;
        return k;
      }
  }
  return GK_NONE;
}

/* Goes back from the empty node behind a CALL to the first node that it recorded, if there is one. */
static gk_result first_recorded(const gki_cuda_graph *native, gki_cuda_place *place) {
  for (;;) {
    CUgraphNode *before;
    size_t count = 0;
    CUresult answer = gki_cuda_nodes_before(native->device->driver, place->node, &before, &count);
    bool first = answer != CUDA_SUCCESS || count == 0;
    for (size_t k = 0; !first && k < count; ++k) first = before[k] == place->before;
    if (!first) place->node = before[0];
    gk_host_free(before);
    if (first) return gki_cuda_graph_result(native->device, native->plan, answer, "cuGraphNodeGetDependencies");
  }
}

static gk_result find_node(look *l, const gki_cuda_graph *native) {
  const gk_gates *gates = l->variant->gates;
  uint32_t node = 0;
  const uint32_t gate = find_gate(gates, l->task, &node);
  gk_result result = GK_OK;
  if (gate != GK_NONE) l->place = l->variant->places[gate];
  const CUgraphNode noted = l->place.node;
  const bool calls = gate != GK_NONE && gates->plan->nodes[node].op == GK_OP_CALL;
  if (calls) result = first_recorded(native, &l->place);
  if (result != GK_OK) return result;
  if (gate != GK_NONE && (!calls || l->place.node != noted)) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "%s: task %zu of graph %s has no node: there is no such task, or it is a SECTION, "
                 "PARALLEL, END, a block without tasks, a CALL that records nothing, or a CHECKPOINT that a kernel "
                 "decides together with something else", l->call, l->task, native->plan->name);
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static gk_result look_inside(void *state, void *data) {
  look *l = data;
  gki_cuda_graph *native;
  gk_result result = gki_cuda_native(state, &native);
  if (result == GK_OK) result = gki_cuda_enter(native->device);
  if (result != GK_OK) return result;
  result = find_variant(l, native);
  if (result == GK_OK && l->task != SIZE_MAX) result = find_node(l, native);
  if (result == GK_OK && l->draws) result = gki_cuda_draw(native, l->variant, &l->text);
  gki_cuda_leave(native->device);
  return gki_cuda_detect_loss(native->device, result);
}

static gk_result look_at(look *l, gk_graph *graph, int32_t label) {
  l->resumes = label != 0;
  return gk_graph_state(graph, gki_cuda.name, l->call, label, look_inside, l);
}

gk_result gk_cuda_graph(gk_graph *graph, int32_t label, CUgraph *whole, CUgraphExec *exec) {
  look l = {.call = "gk_cuda_graph", .task = SIZE_MAX};
  gk_result result = look_at(&l, graph, label);
  if (whole) *whole = result == GK_OK ? l.variant->graph : NULL;
  if (exec) *exec = result == GK_OK ? l.variant->exec : NULL;
  return result;
}

gk_result gk_cuda_node(gk_graph *graph, int32_t label, size_t task, CUgraph *in, CUgraphNode *node) {
  look l = {.call = "gk_cuda_node", .task = task == SIZE_MAX ? SIZE_MAX - 1 : task};
  if (in) *in = NULL;
  if (node) *node = NULL;
  gki_begin();
  if (!node) return gk_fail(GK_ERROR_INVALID, "gk_cuda_node: nowhere to put the node (NULL)");
  gk_result result = look_at(&l, graph, label);
  if (result != GK_OK) return result;
  if (in) *in = l.place.in;
  *node = l.place.node;
  return GK_OK;
}

char *gk_cuda_dump(gk_graph *graph, int32_t label) {
  look l = {.call = "gk_cuda_dump", .task = SIZE_MAX, .draws = true};
  if (look_at(&l, graph, label) == GK_OK) return gki_text_finish(&l.text);
  gk_host_free(l.text.data);
  return NULL;
}
