#include "cuda/launch.h"
#include "base/clock.h"
#include "base/op.h"
#include "cuda/build.h"
#include "cuda/lower.h"
#include <string.h>

/* ---- launching --------------------------------------------------------------------------------------------------- */

/* Drops both variants, after a wait for the launches that run them. */
static gk_result drop_variants(gki_cuda_graph *graph) {
  const gki_cuda_device *device = graph->device;
  gk_result result = gki_cuda_graph_result(device, graph->plan, gki_cuda_order_drain(graph->device, &graph->order),
                                          "waiting for its launches");
  if (result != GK_OK) graph->order.busy_until = UINT64_MAX;
  gki_cuda_relax(device);
  gki_cuda_variant_drop(graph, &graph->fresh); /* even after a failed wait: their calls have old values */
  gki_cuda_variant_drop(graph, &graph->resume);
  gki_cuda_unrelax();
  return result;
}

/* A launch whose wait failed may still read memory that the next one overwrites. */
static gk_result repeat_failed_wait(gki_cuda_graph *graph) {
  const CUresult result = graph->wait_failed ? gki_cuda_order_drain(graph->device, &graph->order) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) graph->wait_failed = false;
  return gki_cuda_graph_result(graph->device, graph->plan, result, "waiting for its launches");
}

/* Stops launches up to `number`. Another thread may do the same with another number. */
static void stop_up_to(gki_cuda_graph *graph, uint64_t number) {
  uint64_t *word = (uint64_t *)(void *)graph->pinned, before = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (before < number &&
         !__atomic_compare_exchange_n(word, &before, number, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {}
}

void gki_cuda_publish_number(gki_cuda_graph *graph, const gk_launch_args *launch, uint64_t number) {
  uint64_t *word = (uint64_t *)(void *)graph->pinned;
  if (__atomic_load_n(word, __ATOMIC_RELAXED) >= number) /* a cancel of a refused launch, which had this number, too */
    __atomic_store_n(word, number - 1, __ATOMIC_RELAXED);
  atomic_store(&graph->order.launched, number);
  atomic_thread_fence(memory_order_seq_cst);
  if (__atomic_load_n(launch->cancel, __ATOMIC_RELAXED)) stop_up_to(graph, number);
}

static gk_result copy_target(gki_cuda_graph *graph, uint32_t target, uint64_t number) {
  const gki_cuda_device *device = graph->device;
  uint32_t *from = (uint32_t *)(void *)(graph->pinned + GKI_CUDA_TARGETS_AT) + (number - 1) % GKI_LAUNCH_RING;
  *from = target;
  CUresult result = device->driver->cuMemcpyHtoDAsync(graph->state + offsetof(gki_cuda_control, target_sent), from,
                                                      sizeof *from, graph->order.current_stream);
  if (result == CUDA_SUCCESS) graph->target_sent = target;
  return gki_cuda_result(device->driver, result, "cuMemcpyHtoDAsync of the target of graph %s", graph->plan->name);
}

static gk_result set_target(gki_cuda_graph *graph, gki_cuda_variant *variant, uint32_t target,
                            uint64_t number) {
  if (!variant->prologue || !variant->gates->target_count) return GK_OK;
  if (graph->sends_target_by_copy) return graph->target_sent == target ? GK_OK : copy_target(graph, target, number);
  if (variant->target == target) return GK_OK;
  const gki_cuda_device *device = graph->device;
  void *parameters[] = {&variant->tables, &variant->point, &target};
  CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  node.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = device->builtin.prologue, .gridDimX = 1, .gridDimY = 1,
                                             .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1,
                                             .kernelParams = parameters, .ctx = device->context};
  CUresult result = device->driver->cuGraphExecNodeSetParams(variant->exec, variant->prologue, &node);
  if (result != CUDA_SUCCESS)
    return gki_cuda_result(device->driver, result, "cuGraphExecNodeSetParams of the prologue of graph %s",
                          graph->plan->name);
  variant->target = target;
  return GK_OK;
}

/* Puts all that the launch needs on its stream and into its variant. */
static gk_result prepare(gki_cuda_graph *graph, const gk_launch_args *launch, const gki_cuda_stream_id *on,
                         uint64_t number, gki_cuda_variant **variant) {
  const bool made = graph->fresh.exec != NULL;
  const bool outdated = graph->calls.any && gki_calls_changed(&graph->calls, launch) && made;
  gk_result result = repeat_failed_wait(graph);
  if (result == GK_OK && outdated) result = drop_variants(graph);
  graph->must_record = graph->must_record || outdated; /* an earlier launch may have failed before it recorded */
  (void)gki_param_update(&graph->parameters.values, launch);
  gki_cuda_counts_expect(&graph->counts, launch, number);
  if (result == GK_OK) result = gki_cuda_order_begin(graph->device, &graph->order, on);
  if (result == GK_OK) result = gki_cuda_variant_get(graph, launch->target != 0, variant);
  if (result == GK_ERROR_UNSUPPORTED && graph->refused[0])
    return gk_fail(result, "graph %s: %s; create it with GK_HOST_GATED", graph->plan->name, graph->refused);
  if (result == GK_OK) result = gki_cuda_counts_renumber(&graph->counts, graph->order.current_stream);
  if (result == GK_OK) result = gki_cuda_slots_send(&graph->slots, launch, number - 1, graph->order.current_stream);
  if (result == GK_OK) result = gki_cuda_updates_send(&(*variant)->updates, &graph->parameters, launch->applied);
  const uint32_t target = launch->target ? graph->plan->nodes[launch->target].checkpoint : GKI_CUDA_NONE;
  return result == GK_OK ? set_target(graph, *variant, target, number) : result;
}

static gk_result start(gki_cuda_graph *graph, const gk_launch_args *launch, const gki_cuda_stream_id *on) {
  const uint64_t number = atomic_load_explicit(&graph->order.launched, memory_order_relaxed) + 1;
  gki_cuda_variant *variant = NULL;
  gk_result result = prepare(graph, launch, on, number, &variant);
  if (result != GK_OK) return result;
  if (graph->must_record) *launch->applied = GK_BY_RECORDING;
  graph->must_record = false;
  gki_cuda_publish_number(graph, launch, number);
  result = gki_cuda_order_launch(graph->device, &graph->order, variant->exec, on, number);
  if (result != GK_OK) atomic_store(&graph->order.launched, number - 1);
  return result;
}

gk_result gki_cuda_launch(gki_cuda_graph *graph, const gk_launch_args *launch) {
  const gki_cuda_device *device = graph->device;
  gki_cuda_stream_id on;
  bool pushed;
  gk_result result = gki_cuda_enter_to_launch(device, launch, &graph->order.last_stream, &on, &pushed);
  if (result != GK_OK) return result;
  result = start(graph, launch, &on);
  if (result != GK_OK) { /* part of it may be on the stream, such as a copy of what the next launch overwrites */
    graph->order.busy_until = UINT64_MAX;
    graph->slots.table.is_sent = false;
  }
  if (result != GK_OK && graph->order.current_stream != device->stream)
    (void)gki_cuda_order_drain(graph->device, &graph->order); /* the caller may destroy that stream afterwards */
  graph->order.current_stream = device->stream;
  if (pushed) gki_cuda_leave_unrelaxed(device);
  return result;
}

gk_result gki_cuda_cancel(gki_cuda_graph *graph) {
  atomic_thread_fence(memory_order_seq_cst);
  stop_up_to(graph, atomic_load(&graph->order.launched));
  return GK_OK;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static const gki_cuda_status *status_of(const gki_cuda_graph *graph, uint64_t number) {
  return (const void *)(graph->pinned + GKI_CUDA_STATUSES_AT +
                        (size_t)gki_cuda_place_of(number) * graph->shared.status_bytes);
}

bool gki_cuda_is_posted(const gki_cuda_graph *graph, uint64_t number) {
  return !graph->order.events && __atomic_load_n(&status_of(graph, number)->number, __ATOMIC_ACQUIRE) == number;
}

/* The event at the launch's end, or at a later one. Records it now if the last launches have none yet. */
static gk_result find_event(gki_cuda_graph *graph, uint64_t number, CUevent *event) {
  gk_result result = GK_OK;
  *event = gki_cuda_event_of(&graph->order, number);
  pthread_mutex_lock(&graph->device->lock);
  if (graph->device->last == &graph->order) result = gki_cuda_mark_last(graph->device);
  pthread_mutex_unlock(&graph->device->lock);
  return result;
}

/* While a shared stream is captured, gk can't query the launch. */
static gk_result enter_to_query(const gki_cuda_device *device) {
  const gk_result result = gki_cuda_enter(device);
  return result == GK_ERROR_INVALID ? GK_ERROR_BUSY : result;
}

static gk_result wait_for_event(gki_cuda_graph *graph, uint64_t number, bool block) {
  const gki_cuda_driver *driver = graph->device->driver;
  CUevent event;
  gk_result result = enter_to_query(graph->device);
  if (result != GK_OK) return result;
  result = find_event(graph, number, &event);
  if (result == GK_OK) {
    CUresult answer = block ? driver->cuEventSynchronize(event) : driver->cuEventQuery(event);
    result = answer == CUDA_ERROR_NOT_READY ? GK_NOT_READY
                                            : gki_cuda_graph_result(graph->device, graph->plan, answer,
                                                                   block ? "cuEventSynchronize" : "cuEventQuery");
  }
  gki_cuda_leave(graph->device);
  if (result != GK_OK || graph->order.events || gki_cuda_is_posted(graph, number)) return result;
  return gk_fail(GK_ERROR_DEVICE, "graph %s: launch %llu ended on the device and posted no status; close the device",
                 graph->plan->name, (unsigned long long)number);
}

static void spin(const gki_cuda_graph *graph, uint64_t number) {
  const uint64_t begin = gki_now_ns();
  while (!gki_cuda_is_posted(graph, number) && gki_spins_since(begin)) {}
}

/* A kernel that writes beyond its memory may overwrite a status. */
static bool is_valid(const gk_plan *plan, const gki_cuda_status *status) {
  if (status->state > GK_CANCELLED) return false;
  if (status->state == GK_YIELDED &&
      (status->yielded >= plan->node_count || !gki_op_is_target(plan->nodes[status->yielded].op)))
    return false;
  return !status->limit ||
         (status->limit < plan->node_count && plan->nodes[status->limit].loop < plan->loop_count);
}

static gk_result fill_result(gki_cuda_graph *graph, uint64_t number, gk_launch_result *launch_result) {
  const gk_plan *plan = graph->plan;
  const gk_result result = gki_cuda_counts_check(&graph->counts, number);
  if (result != GK_OK || graph->order.events) return result; /* no loops and checkpoints, so no status */
  const gki_cuda_status *status = status_of(graph, number);
  if (!is_valid(plan, status))
    return gk_fail(GK_ERROR_DEVICE, "graph %s: launch %llu posted a status that can't be (%u, nodes %u and %u), so "
                   "something wrote over gk's memory on the device: look for a kernel that writes beyond its own, and "
                   "close the device", plan->name, (unsigned long long)number, (unsigned)status->state,
                   (unsigned)status->yielded, (unsigned)status->limit);
  launch_result->state = (gk_state)status->state;
  launch_result->yielded = status->yielded;
  launch_result->limit = status->limit;
  memcpy(launch_result->passes, gki_cuda_status_passes(status), plan->loop_count * sizeof *launch_result->passes);
  memcpy(launch_result->hit_bound, gki_cuda_status_bounds(plan, status), plan->loop_count);
  memcpy(launch_result->ran, gki_cuda_status_ran(plan, status), plan->checkpoint_count);
  return GK_OK;
}

/* Launches of a caller's graph run in sequence. If a later arming has posted, this one never will. */
static bool is_superseded(const gki_cuda_graph *graph, uint64_t number) {
  const uint64_t last = atomic_load_explicit(&graph->order.launched, memory_order_relaxed);
  for (uint64_t later = number + 1; later <= last; ++later)
    if (gki_cuda_is_posted(graph, later)) return true;
  return false;
}

/* The caller launches the graph, so only the device's post shows whether a launch was made and is over. */
static gk_result ask_driver(const gki_cuda_graph *graph, uint64_t number, bool block) {
  const gki_cuda_device *device = graph->device;
  gk_result result = enter_to_query(device);
  if (result != GK_OK) return result;
  if (block) result = gki_cuda_await_all(device, graph->plan, "waiting for its launch");
  else if (!gki_cuda_is_alive(device))
    result = gki_cuda_graph_result(device, graph->plan, device->driver->cuStreamQuery(device->stream), "cuStreamQuery");
  gki_cuda_leave(device);
  if (result != GK_OK || block || gki_cuda_is_posted(graph, number) || is_superseded(graph, number)) return result;
  return GK_NOT_READY;
}

/* An arming that was never launched has no result. */
static gk_result wait_external(gki_cuda_graph *graph, uint64_t number, bool block, gk_launch_result *launch_result) {
  const bool is_over = gki_cuda_is_posted(graph, number) || is_superseded(graph, number);
  gk_result result = is_over ? GK_OK : ask_driver(graph, number, block);
  if (result == GK_NOT_READY || result == GK_ERROR_BUSY) return result;
  ++graph->waited;
  if (result != GK_OK || !gki_cuda_is_posted(graph, number)) return result;
  graph->reported = number;
  return fill_result(graph, number, launch_result);
}

gk_result gki_cuda_wait(gki_cuda_graph *graph, bool block, gk_launch_result *launch_result) {
  const uint64_t number = graph->waited + 1;
  if (graph->external) return wait_external(graph, number, block, launch_result);
  if (block && !graph->order.events) spin(graph, number);
  gk_result result = gki_cuda_is_posted(graph, number) ? GK_OK : wait_for_event(graph, number, block);
  if (result == GK_NOT_READY || result == GK_ERROR_BUSY) return result;
  ++graph->waited;
  if (result == GK_OK) return fill_result(graph, number, launch_result);
  graph->order.busy_until = UINT64_MAX;
  graph->wait_failed = true;
  gki_cuda_counts_skip(&graph->counts);
  return result;
}
