#include "cuda/lower.h"
#include "base/error.h"
#include "cuda/build.h"
#include "cuda/graph.h"
#include "cuda/names.h"
#include "cuda/nodes.h"
#include "cuda/pool.h"
#include "cuda/probe.h"
#include "cuda/quirks.h"
#include <stdio.h>
#include <string.h>

/* ---- variants ---------------------------------------------------------------------------------------------------- */

static uint32_t bits_of(const gki_cuda_graph *graph, bool resumes) {
  return GK_WITH_GUARDS | (resumes ? (uint32_t)GK_WITH_RESUME : 0) |
         (graph->plan->bits & GK_CANCELLABLE ? (uint32_t)GK_WITH_CANCEL : 0) |
         (graph->device->caps.quirks & GKI_CUDA_NO_SWITCH ? 0 : (uint32_t)GK_WITH_SWITCH) |
         (graph->is_plain ? (uint32_t)GK_WITH_PLAIN : 0);
}

_Static_assert(GKI_CUDA_POSTS_AT + sizeof(gki_cuda_posts) <= GKI_CUDA_STATUSES_AT && GKI_CUDA_STATUSES_AT % 64 == 0,
               "statuses are behind bad counts");
_Static_assert((GKI_CUDA_QUIRKS_HANDLED | GKI_CUDA_HOST_GATED) == (GKI_CUDA_CODE_ON_HOST << 1) - 1,
               "this file handles every quirk but HOST_GATED");

static gk_result refuse_code(gki_cuda_graph *graph) {
  char why[sizeof graph->refused - 100];
  gki_cuda_describe_quirks(&graph->device->caps, GKI_CUDA_CODE_ON_HOST, why, sizeof why);
  snprintf(graph->refused, sizeof graph->refused, "it has kernels with code by hand, whose parameters are in their "
           "nodes, and %s", why);
  if (!graph->external) return GK_ERROR_UNSUPPORTED;
  return gk_fail(GK_ERROR_UNSUPPORTED, "gk_cuda_add: list %s: %s; use gk_graph_create", graph->plan->name,
                 graph->refused);
}

/* Decides once, for both variants, whether the gates are plain and how the target is sent. */
static gk_result choose_gates(gki_cuda_graph *graph) {
  const uint32_t quirks = graph->device->caps.quirks & (GKI_CUDA_QUIRKS_PLAIN | GKI_CUDA_CODE_ON_HOST);
  uint32_t needed = 0;
  graph->sends_target_by_copy = graph->external || (graph->device->caps.quirks & GKI_CUDA_TARGET_BY_COPY) != 0;
  graph->target_sent = GKI_CUDA_NONE;
  for (int resumes = 0; quirks && resumes <= (graph->plan->checkpoint_count != 0); ++resumes) {
    const gk_gates *gates;
    gk_result result = gk_gates_make(graph->plan, bits_of(graph, resumes), &gates);
    if (result != GK_OK) return result;
    needed |= gki_cuda_quirks_that_matter(gates, quirks);
    gk_gates_free(gates);
  }
  if (needed & GKI_CUDA_CODE_ON_HOST) return refuse_code(graph);
  graph->is_plain = needed != 0;
  if (!needed) return GK_OK;
  char why[GKI_CUDA_QUIRKS_BYTES];
  gki_cuda_describe_quirks(&graph->device->caps, needed, why, sizeof why);
  gk_log(GK_LOG_INFO, "graph %s: plain gates: %s", graph->plan->name, why);
  return GK_OK;
}

/* Uploads from now on are over once the next launch is. */
static void mark_uploads(gki_cuda_graph *graph) {
  const uint64_t next = atomic_load_explicit(&graph->order.launched, memory_order_relaxed) + 1;
  if (graph->order.busy_until < next) graph->order.busy_until = next;
}

/* All handles belong to the root graph, also those of nodes in bodies. */
static gk_result make_handles(const gki_cuda_graph *graph, const gki_cuda_variant *variant, CUgraph whole,
                              CUgraphConditionalHandle *handles) {
  const gki_cuda_device *device = graph->device;
  CUresult result = CUDA_SUCCESS;
  for (uint32_t k = 0; k < variant->gates->handle_count && result == CUDA_SUCCESS; ++k)
    result = device->driver->cuGraphConditionalHandleCreate(&handles[k], whole, device->context,
                                                            variant->gates->handles[k].initial,
                                                            GKI_CU_GRAPH_COND_ASSIGN_DEFAULT);
  if (graph->external) return gki_cuda_into_result(device, result, "gk_cuda_add", "cuGraphConditionalHandleCreate");
  return gki_cuda_graph_result(device, graph->plan, result, "cuGraphConditionalHandleCreate");
}

static gk_result send_tables(gki_cuda_graph *graph, gki_cuda_variant *variant, const gki_cuda_layout *layout,
                             const CUgraphConditionalHandle *handles) {
  const gki_cuda_device *device = graph->device;
  const gki_cuda_places places = {.tables = variant->tables, .control = graph->state, .cancel = graph->pinned_at,
                                  .status = graph->pinned_at + GKI_CUDA_STATUSES_AT};
  mark_uploads(graph);
  gki_cuda_tables_write(variant->gates, layout, &graph->shared, &places, handles, variant->staged);
  if (graph->external) ((gki_cuda_tables *)variant->staged)->bits |= GKI_CUDA_WITH_ARMING;
  return gki_cuda_graph_result(device, graph->plan,
                              device->driver->cuMemcpyHtoDAsync(variant->tables, variant->staged, layout->bytes,
                                                                graph->order.current_stream),
                              "cuMemcpyHtoDAsync of the tables");
}

/* " at task 3 (improve)" if the driver blames a node that gk knows, else NULL. To be freed by gk_host_free. */
static char *name_blamed(const gki_cuda_graph *graph, const gki_cuda_variant *variant, CUgraphNode at) {
  gki_cuda_names names;
  gki_text text = {0};
  const gki_cuda_name *name = NULL;
  if (at && gki_cuda_names_make(&names, graph, variant) == GK_OK)
    name = gki_cuda_names_find(&names, (uintptr_t)at);
  if (name) {
    gki_text_add(&text, " at ");
    gki_cuda_write_name(&names, name, GKI_PLAIN, &text);
  }
  if (at) gki_cuda_names_drop(&names);
  return name ? gki_text_finish(&text) : NULL;
}

static gk_result instantiate(gki_cuda_graph *graph, gki_cuda_variant *variant) {
  const gki_cuda_device *device = graph->device;
  const char *why;
  CUgraphNode at;
  CUresult result = gki_cuda_instantiate(device, variant->graph, &variant->exec, &why, &at);
  if (result == CUDA_SUCCESS) return GK_OK;
  /* LAUNCH_FAILED isn't about this graph, but about earlier work. */
  if (result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_LAUNCH_FAILED || !gki_cuda_is_alive(device))
    return gki_cuda_result(device->driver, result, "cuGraphInstantiate of graph %s%s", graph->plan->name, why);
  char text[300];
  gki_cuda_describe_result(device->driver, result, text, sizeof text);
  char *blamed = name_blamed(graph, variant, at);
  snprintf(graph->refused, sizeof graph->refused, "the driver refuses the graph of conditional nodes%s%s: %s",
           blamed ? blamed : "", why, text);
  gk_host_free(blamed);
  return GK_ERROR_UNSUPPORTED;
}

static gk_result alloc_tables(const gki_cuda_graph *graph, gki_cuda_variant *variant, const gki_cuda_layout *layout) {
  gk_result result = gki_cuda_alloc_device(graph->device, layout->bytes, "a graph's tables", &variant->tables);
  variant->guards = variant->tables + layout->guards;
  if (result != GK_OK) return result;
  return gki_cuda_alloc_pinned(graph->device, layout->bytes, "a graph's tables", &variant->staged, NULL);
}

/* The variant has its gates. */
static gk_result make_nodes(gki_cuda_graph *graph, gki_cuda_variant *variant) {
  const gki_cuda_device *device = graph->device;
  const size_t count = variant->gates->handle_count;
  CUgraphConditionalHandle *handles = gki_array(count, sizeof *handles, "a graph's handles");
  const gki_cuda_layout layout = gki_cuda_tables_lay_out(variant->gates);
  gk_result result = handles ? gki_cuda_updates_make(&variant->updates, &graph->parameters) : GK_ERROR_MEMORY;
  if (result == GK_OK) result = alloc_tables(graph, variant, &layout);
  if (result == GK_OK)
    result = gki_cuda_graph_result(device, graph->plan, device->driver->cuGraphCreate(&variant->graph, 0),
                                  "cuGraphCreate");
  if (result == GK_OK) result = make_handles(graph, variant, variant->graph, handles);
  if (result == GK_OK) result = gki_cuda_build(graph, variant, handles);
  if (result == GK_OK) result = instantiate(graph, variant);
  if (result == GK_OK)
    gki_cuda_updates_belong(&variant->updates, &graph->parameters, 0, graph->plan->node_count, variant->exec);
  if (result == GK_OK) result = send_tables(graph, variant, &layout, handles);
  gk_host_free(handles);
  if (result == GK_OK)
    result = gki_cuda_graph_result(device, graph->plan,
                                   device->driver->cuGraphUpload(variant->exec, graph->order.current_stream),
                                   "cuGraphUpload");
  return result;
}

void gki_cuda_variant_drop(gki_cuda_graph *graph, gki_cuda_variant *variant) {
  const gki_cuda_driver *driver = graph->device->driver;
  if (graph->order.busy_until > graph->waited) (void)gki_cuda_order_drain(graph->device, &graph->order);
  graph->order.busy_until = 0;
  if (variant->exec) (void)driver->cuGraphExecDestroy(variant->exec);
  if (variant->graph) (void)driver->cuGraphDestroy(variant->graph);
  gki_cuda_free_device(graph->device, variant->tables);
  gki_cuda_free_pinned(graph->device, variant->staged);
  gki_cuda_updates_drop(&variant->updates);
  gk_gates_free(variant->gates);
  gk_host_free(variant->places);
  *variant = (gki_cuda_variant){0};
}

static gk_result make_variant(gki_cuda_graph *graph, gki_cuda_variant *variant, const gk_gates *gates) {
  variant->gates = gates;
  gk_result result = make_nodes(graph, variant);
  if (result != GK_OK) gki_cuda_variant_drop(graph, variant);
  return result;
}

/* Whether both have the same nodes at the same places, apart from the prologue. Equal counts aren't enough: one graph
 * may decide before a loop what the other decides in each pass. */
static bool are_alike(const gk_gates *a, const gk_gates *b) {
  const uint32_t begin_a = a->node_count && a->nodes[0].kind == GK_GATE_PROLOGUE;
  const uint32_t begin_b = b->node_count && b->nodes[0].kind == GK_GATE_PROLOGUE, count = a->node_count - begin_a;
  if (count != b->node_count - begin_b) return false;
  for (uint32_t k = 0; k < count; ++k) {
    const gk_gate_node *one = &a->nodes[begin_a + k], *other = &b->nodes[begin_b + k];
    if (one->kind != other->kind || one->node != other->node) return false;
    if (one->end - begin_a != other->end - begin_b) return false;
  }
  return true;
}

/* If the graph that can resume only adds a prologue, it also serves launches from the top. */
static gk_result make_first(gki_cuda_graph *graph) {
  const gk_gates *fresh = NULL, *both = NULL;
  gk_result result = gk_gates_make(graph->plan, bits_of(graph, false), &fresh);
  if (result == GK_OK && graph->plan->checkpoint_count)
    result = gk_gates_make(graph->plan, bits_of(graph, true), &both);
  if (result != GK_OK) {
    gk_gates_free(fresh);
    return result;
  }
  graph->serves_both = both && are_alike(fresh, both);
  gk_gates_free(graph->serves_both ? fresh : both);
  return make_variant(graph, &graph->fresh, graph->serves_both ? both : fresh);
}

static gk_result make_missing(gki_cuda_graph *graph, bool resumes) {
  gk_result result = graph->fresh.exec ? GK_OK : make_first(graph);
  if (result != GK_OK || !resumes || graph->serves_both) return result;
  const gk_gates *gates = NULL;
  result = gk_gates_make(graph->plan, bits_of(graph, true), &gates);
  return result == GK_OK ? make_variant(graph, &graph->resume, gates) : result;
}

gk_result gki_cuda_variant_get(gki_cuda_graph *graph, bool resumes, gki_cuda_variant **variant) {
  gk_result result = GK_OK;
  if (!graph->fresh.exec || (resumes && !graph->serves_both && !graph->resume.exec)) {
    gki_cuda_relax(graph->device);
    result = make_missing(graph, resumes);
    gki_cuda_unrelax();
  }
  *variant = resumes && !graph->serves_both ? &graph->resume : &graph->fresh;
  return result;
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static gk_result alloc_state(gki_cuda_graph *graph) {
  gki_cuda_device *device = graph->device;
  gki_cuda_shared *shared = &graph->shared;
  gk_result result = gki_cuda_shared_lay_out(graph->plan, shared);
  if (result == GK_OK)
    result = gki_cuda_slots_make(&graph->slots, device, graph->plan, graph->depth, &graph->arena);
  if (result != GK_OK) return result;
  const size_t with_slots = shared->slots + graph->slots.table.bytes;
  const size_t bytes = with_slots > shared->bytes ? with_slots : shared->bytes;
  if (graph->external) shared->bytes = bytes; /* of zeros: before the first arming no task has items */
  const size_t begins_at = GKI_CUDA_STATUSES_AT + (size_t)GKI_LAUNCH_RING * shared->status_bytes;
  result = gki_cuda_alloc_device(device, bytes, "a graph's state", &graph->state);
  void *pinned = NULL;
  if (result == GK_OK)
    result = gki_cuda_alloc_pinned(device, begins_at + shared->bytes, "a graph's status", &pinned, &graph->pinned_at);
  if (result != GK_OK) return result;
  graph->pinned = pinned;
  graph->slots.table.control = graph->state;
  graph->slots.table.at = graph->state + shared->slots;
  gki_cuda_counts_make(&graph->counts, &graph->parameters, graph->pinned + GKI_CUDA_POSTS_AT,
                       !graph->external && !graph->plan->loop_count && !graph->plan->checkpoint_count);
  mark_uploads(graph);
  gki_cuda_shared_write(shared, graph->pinned_at + GKI_CUDA_POSTS_AT, graph->external, graph->pinned + begins_at);
  return gki_cuda_graph_result(device, graph->plan,
                              device->driver->cuMemcpyHtoDAsync(graph->state, graph->pinned + begins_at, shared->bytes,
                                                                graph->order.current_stream),
                              "cuMemcpyHtoDAsync of the state");
}

static gk_result prepare_code(gki_cuda_graph *graph, void *const *code) {
  const gk_plan *plan = graph->plan;
  graph->code = gki_arena_alloc(&graph->arena, plan->node_count, sizeof(gki_cuda_kernel *));
  if (!graph->code) return gki_fail_memory("a graph's code", plan->node_count * sizeof(gki_cuda_kernel *));
  for (uint32_t k = 0; k < plan->node_count; ++k) graph->code[k] = code[k];
  gk_result result = gki_cuda_parameters_find(&graph->parameters, &graph->slots, graph->code, &graph->arena);
  return result == GK_OK ? gki_calls_find(&graph->calls, plan, &graph->arena) : result;
}

static gk_result make_event(gki_cuda_graph *graph, CUevent *event) {
  const gki_cuda_driver *driver = graph->device->driver;
  gk_result result = gki_cuda_graph_result(
      graph->device, graph->plan, driver->cuEventCreate(event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING),
      "cuEventCreate");
  if (result != GK_OK) *event = NULL;
  return result;
}

static gk_result make_events(gki_cuda_graph *graph) {
  gk_result result = make_event(graph, &graph->order.event);
  if (result != GK_OK || graph->plan->loop_count || graph->plan->checkpoint_count) return result;
  graph->order.events = gki_arena_alloc(&graph->arena, graph->depth, sizeof(CUevent));
  if (!graph->order.events) return gki_fail_memory("a graph's events", graph->depth * sizeof(CUevent));
  for (uint32_t k = 0; k < graph->depth && result == GK_OK; ++k) result = make_event(graph, &graph->order.events[k]);
  return result;
}

/* Waits for the uploads, so that no work of the graph is under way before its first launch. */
static gk_result end_uploads(gki_cuda_graph *graph) {
  gki_cuda_device *device = graph->device;
  gk_result result = gki_cuda_graph_result(
      device, graph->plan, device->driver->cuStreamSynchronize(graph->order.current_stream), "cuStreamSynchronize");
  if (result != GK_OK) return result;
  graph->order.busy_until = 0;
  graph->order.current_stream = device->stream;
  return GK_OK;
}

gk_result gki_cuda_graph_make(gki_cuda_graph *graph, gki_cuda_device *device, const gk_plan *plan, void *const *code) {
  graph->device = device;
  graph->order.current_stream = device->uploads; /* doesn't wait for launches, which may take long */
  graph->order.last_stream.stream = device->stream;
  graph->plan = graph->order.plan = plan;
  graph->depth = plan->can_yield ? 1 : GKI_LAUNCH_RING;
  atomic_init(&graph->order.launched, 0);
  gk_result result = choose_gates(graph);
  if (result == GK_OK) result = alloc_state(graph);
  if (result == GK_OK) result = prepare_code(graph, code);
  if (result == GK_OK) result = make_events(graph);
  gki_cuda_variant *variant;
  if (result == GK_OK && gki_calls_can_record(&graph->calls))
    result = gki_cuda_variant_get(graph, false, &variant);
  return result == GK_OK ? end_uploads(graph) : result;
}

/* Between launches only the parameters of the arming node change. */
static gk_result make_nodes_into(gki_cuda_graph *graph, gki_cuda_variant *variant, gki_cuda_into *into) {
  CUgraphConditionalHandle *handles = gki_array(variant->gates->handle_count, sizeof *handles, "a graph's handles");
  const gki_cuda_layout layout = gki_cuda_tables_lay_out(variant->gates);
  gk_result result = handles ? gki_cuda_updates_make(&variant->updates, &graph->parameters) : GK_ERROR_MEMORY;
  if (result == GK_OK) result = alloc_tables(graph, variant, &layout);
  if (result == GK_OK) result = gki_cuda_add_arming(graph, into);
  if (result == GK_OK) result = make_handles(graph, variant, into->graph, handles);
  if (result == GK_OK) result = gki_cuda_build_into(graph, variant, handles, into);
  if (result == GK_OK) result = send_tables(graph, variant, &layout, handles);
  gk_host_free(handles);
  return result;
}

gk_result gki_cuda_graph_make_into(gki_cuda_graph *graph, gki_cuda_device *device, const gk_plan *plan,
                                   void *const *code, gki_cuda_into *into) {
  graph->device = device;
  graph->plan = graph->order.plan = plan;
  graph->depth = plan->can_yield ? 1 : GKI_LAUNCH_RING;
  graph->external = graph->serves_both = true;
  graph->order.current_stream = graph->order.last_stream.stream = device->stream;
  atomic_init(&graph->order.launched, 0);
  gk_result result = choose_gates(graph);
  if (result == GK_OK) result = alloc_state(graph);
  if (result == GK_OK) result = prepare_code(graph, code);
  if (result == GK_OK)
    result = gki_cuda_graph_result(
        device, plan, device->driver->cuMemHostGetDevicePointer(&graph->ring_at, graph->slots.table.ring, 0),
        "cuMemHostGetDevicePointer");
  if (result == GK_OK) result = gk_gates_make(plan, bits_of(graph, into->resumes), &graph->fresh.gates);
  if (result == GK_OK) result = make_nodes_into(graph, &graph->fresh, into);
  if (result != GK_OK) return result;
  /* The uploads must be over: the caller may launch on any stream. */
  return gki_cuda_graph_result(device, plan, device->driver->cuStreamSynchronize(device->stream),
                              "cuStreamSynchronize");
}

/* A launch by the caller may still use the memory, so it is only freed when the device is closed. */
static void leak_memory(gki_cuda_graph *graph) {
  gk_log(GK_LOG_WARN, "%s", gk_error());
  gk_log(GK_LOG_WARN, "graph %s: its memory is kept until the device is closed, as its last launch may not be over",
         graph->plan->name);
  graph->fresh.tables = graph->state = 0;
  graph->fresh.staged = graph->slots.table.ring = NULL;
  graph->pinned = NULL;
}

/* Waits until no launch of the graph is under way. The last kernel of a launch posts its status and may still run then,
 * so the status alone doesn't end the wait. In the device's context. false: gk can't wait now; gk_error() has the
 * reason. */
static bool wait_for_launches(gki_cuda_graph *graph) {
  gki_cuda_device *device = graph->device;
  if (graph->external) /* launches by the caller that weren't armed may be under way, too */
    return gki_cuda_await_all(device, graph->plan, "gk_graph_destroy") != GK_ERROR_INVALID;
  pthread_mutex_lock(&device->lock);
  gki_cuda_mark_joined(device, &graph->order);
  pthread_mutex_unlock(&device->lock);
  (void)gki_cuda_order_wait(device, &graph->order);
  return true;
}

void gki_cuda_graph_drop(gki_cuda_graph *graph) {
  if (!graph->device) return;
  const bool entered = gki_cuda_enter_to_free(graph->device);
  const gki_cuda_driver *driver = graph->device->driver;
  if (!wait_for_launches(graph)) leak_memory(graph);
  gki_cuda_variant_drop(graph, &graph->fresh);
  gki_cuda_variant_drop(graph, &graph->resume);
  if (graph->order.event) (void)driver->cuEventDestroy(graph->order.event);
  for (uint32_t k = 0; graph->order.events && k < graph->depth; ++k)
    if (graph->order.events[k]) (void)driver->cuEventDestroy(graph->order.events[k]);
  gki_cuda_slots_drop(&graph->slots);
  gki_cuda_free_device(graph->device, graph->state);
  gki_cuda_free_pinned(graph->device, graph->pinned);
  if (entered) gki_cuda_leave(graph->device);
  gki_arena_free(&graph->arena);
}
