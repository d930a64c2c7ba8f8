#include "cuda/gated.h"
#include "base/clock.h"
#include "base/error.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/pool.h"
#include "cuda/stream.h"
#include "plan/node.h"
#include "plan/plan.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

_Static_assert(GKI_CUDA_TABLE_AT >= sizeof(gki_task_control) && GKI_CUDA_TABLE_AT % GKI_STRUCT_ALIGNMENT == 0,
               "the table is behind the control block");

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static gk_result run_result(const gki_cuda_gated *graph, CUresult result, const char *call, uint32_t run) {
  if (result == CUDA_SUCCESS) return GK_OK;
  if (run >= graph->plan->run_count) return gki_cuda_graph_result(graph->device, graph->plan, result, call);
  char name[GKI_RUN_TITLE_BYTES];
  return gki_cuda_result(graph->device->driver, result, "%s for %s of graph %s", call,
                         gki_run_title(graph->plan, run, name), graph->plan->name);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static CUresult wait_for_event(const gki_cuda_driver *driver, CUevent event) {
  const uint64_t begin = gki_now_ns();
  CUresult result;
  do result = driver->cuEventQuery(event);
  while (result == CUDA_ERROR_NOT_READY && gki_spins_since(begin));
  return result == CUDA_ERROR_NOT_READY ? driver->cuEventSynchronize(event) : result;
}

/* Waits for the work up to an event; if that is NULL, or after a failure, for all work. Reports a bad count. */
static gk_result wait_up_to(gki_cuda_gated *graph, CUevent event) {
  const gki_cuda_driver *driver = graph->device->driver;
  if (!event) graph->ahead.under_way = 0;
  if (!graph->busy) return GK_OK;
  gki_cuda_relax(graph->device);
  CUresult result = event ? CUDA_SUCCESS : driver->cuEventRecord(graph->event, graph->current_stream);
  if (result == CUDA_SUCCESS) result = wait_for_event(driver, event ? event : graph->event);
  const bool is_over = result == CUDA_SUCCESS ? graph->ahead.under_way == 0
                                              : driver->cuStreamSynchronize(graph->current_stream) == CUDA_SUCCESS;
  gki_cuda_unrelax();
  graph->busy = !is_over;
  if (result == CUDA_SUCCESS) return gki_cuda_counts_check(&graph->counts, 1);
  gki_cuda_counts_skip(&graph->counts);
  char title[GKI_WAIT_TITLE_BYTES];
  return gki_cuda_result(driver, result, "%s", gki_wait_title(graph->plan, graph->last, title));
}

static gk_result finish(gki_cuda_gated *graph) { return wait_up_to(graph, NULL); }

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static gk_result add_nodes(gki_cuda_frontier *f, CUgraph into, uint32_t begin, uint32_t end, size_t first,
                           CUdeviceptr guard);

static gk_result add_parallel(gki_cuda_frontier *f, CUgraph into, uint32_t at, size_t first, CUdeviceptr guard) {
  const gk_node *all = f->slots->plan->nodes;
  size_t begin = 0;
  gk_result result = gki_cuda_frontier_narrow(f, into, at, first);
  const size_t copy = f->count;
  for (uint32_t section = at + 1; result == GK_OK && section < all[at].end; section = all[section].end) {
    result = gki_cuda_frontier_fork(f, first, copy, &begin);
    if (result == GK_OK) result = add_nodes(f, into, section + 1, all[section].end, begin, guard);
  }
  if (result == GK_OK) gki_cuda_frontier_join(f, first, copy);
  return result;
}

static gk_result add_nodes(gki_cuda_frontier *f, CUgraph into, uint32_t begin, uint32_t end, size_t first,
                           CUdeviceptr guard) {
  const gk_node *all = f->slots->plan->nodes;
  gk_result result = GK_OK;
  for (uint32_t at = begin; at < end && result == GK_OK; at = all[at].end)
    result = all[at].op == GK_OP_PARALLEL  ? add_parallel(f, into, at, first, guard)
             : all[at].op != GK_OP_CALL_HOST ? gki_cuda_add_task(f, into, at, first, guard)
                                             : GK_OK;
  return result;
}

static gk_result instantiate(gki_cuda_gated *graph, uint32_t run, CUgraph from) {
  const gki_cuda_device *device = graph->device;
  CUgraphExec *exec = &graph->runs[run].exec;
  const char *why;
  CUgraphNode at;
  CUresult result = gki_cuda_instantiate(device, from, exec, &why, &at);
  if (result != CUDA_SUCCESS) return run_result(graph, result, "cuGraphInstantiate", run);
  graph->busy = true;
  return run_result(graph, device->driver->cuGraphUpload(*exec, graph->current_stream), "cuGraphUpload", run);
}

static gk_result make_run(gki_cuda_gated *graph, uint32_t run) {
  const gki_cuda_driver *driver = graph->device->driver;
  const gk_plan_run none = {.begin = 1, .end = 1}, *at = run < graph->plan->run_count ? &graph->plan->runs[run] : &none;
  CUgraph made = NULL;
  gki_cuda_frontier frontier = {.device = graph->device, .slots = &graph->slots, .code = graph->code,
                                .values = graph->calls.values, .parameters = &graph->parameters,
                                .updates = &graph->updates, .whole = &made};
  if (!gki_cuda_frontier_grow(&frontier, 1)) return GK_ERROR_MEMORY;
  gki_cuda_updates_belong(&graph->updates, &graph->parameters, at->begin, at->end, NULL);
  gk_result result = run_result(graph, driver->cuGraphCreate(&made, 0), "cuGraphCreate", run);
  if (result == GK_OK) {
    result = add_nodes(&frontier, made, at->begin, at->end, 0, gki_cuda_ahead_guard(&graph->ahead, run));
    if (result == GK_OK && graph->ahead.points)
      result = gki_cuda_ahead_add(&graph->ahead, &frontier, made, run, at->begin);
    if (result == GK_OK) result = instantiate(graph, run, made);
    if (result == GK_OK && graph->parameters.values.count) graph->runs[run].graph = made;
    else if (made) (void)driver->cuGraphDestroy(made);
  }
  gki_cuda_updates_belong(&graph->updates, &graph->parameters, at->begin, at->end, graph->runs[run].exec);
  gk_host_free(frontier.nodes);
  return result;
}

static void drop_run(gki_cuda_gated *graph, uint32_t run) {
  gki_cuda_run *at = &graph->runs[run];
  if (at->exec) (void)graph->device->driver->cuGraphExecDestroy(at->exec);
  if (at->graph) (void)graph->device->driver->cuGraphDestroy(at->graph);
  at->exec = NULL;
  at->graph = NULL;
}

/* Makes the missing runs. @param with_calls  Also those that have library calls. */
static gk_result make_runs(gki_cuda_gated *graph, bool with_calls) {
  gk_result result = GK_OK;
  for (uint32_t k = 0; k < graph->run_count && result == GK_OK; ++k) {
    const bool is_needed = graph->ahead.points || !gki_is_host_run(graph->plan, k); /* else common never submits it */
    if (is_needed && !graph->runs[k].exec && (with_calls || !graph->runs[k].calls)) {
      result = make_run(graph, k);
      if (result != GK_OK) drop_run(graph, k);
    }
  }
  graph->complete = result == GK_OK && with_calls;
  return result;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static gk_result alloc_arrays(gki_cuda_gated *graph, void *const *code) {
  const gk_plan *plan = graph->plan;
  graph->code = gki_arena_alloc(&graph->arena, plan->node_count, sizeof *graph->code);
  graph->run_count = plan->run_count + (graph->ahead.points != NULL);
  graph->runs = gki_arena_alloc(&graph->arena, graph->run_count, sizeof *graph->runs);
  if (!graph->code || !graph->runs) return gki_fail_memory("a graph's runs", plan->node_count * sizeof *graph->code);
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const gk_node *node = &plan->nodes[k];
    graph->code[k] = code[k];
    if (node->op == GK_OP_CALL) graph->runs[node->run].calls = true;
  }
  gk_result result = gki_cuda_parameters_find(&graph->parameters, &graph->slots, graph->code, &graph->arena);
  if (result == GK_OK) result = gki_cuda_updates_make(&graph->updates, &graph->parameters);
  return result == GK_OK ? gki_calls_find(&graph->calls, plan, &graph->arena) : result;
}

/* Copies the initial control block, which no epilogue advances, and the table's slot 0. */
static gk_result begin_control(gki_cuda_gated *graph) {
  void *pinned = NULL;
  CUdeviceptr at;
  gk_result result = gki_cuda_alloc_pinned(graph->device, sizeof *graph->pinned, "a graph's flag", &pinned, &at);
  if (result != GK_OK) return result;
  graph->pinned = pinned;
  graph->slots.table.control = graph->table;
  graph->slots.table.at = graph->table + GKI_CUDA_TABLE_AT;
  gki_cuda_counts_make(&graph->counts, &graph->parameters, &graph->pinned->posts, true);
  graph->counts.restarts = true;
  graph->pinned->begin.control =
      (gki_task_control){.number = 1, .failures = at + offsetof(gki_cuda_gated_pinned, posts)};
  graph->busy = true;
  const CUresult sent = graph->device->driver->cuMemcpyHtoDAsync(graph->table, &graph->pinned->begin,
                                                                 sizeof graph->pinned->begin.bytes,
                                                                 graph->current_stream);
  return gki_cuda_graph_result(graph->device, graph->plan, sent, "cuMemcpyHtoDAsync of the control block");
}

static gk_result alloc_memory(gki_cuda_gated *graph) {
  gki_cuda_device *device = graph->device;
  gk_result result = gki_cuda_slots_make(&graph->slots, device, graph->plan, 1, &graph->arena);
  if (result == GK_OK)
    result = gki_cuda_alloc_device(device, GKI_CUDA_TABLE_AT + graph->slots.table.bytes, "a graph's table of slots",
                                   &graph->table);
  if (result == GK_OK) result = begin_control(graph);
  if (result == GK_OK && graph->device->ahead && gki_may_go_ahead(graph->plan))
    result = gki_cuda_ahead_make(&graph->ahead, device, graph->plan, graph->current_stream);
  CUevent event;
  if (result == GK_OK)
    result = gki_cuda_graph_result(
        device, graph->plan,
        device->driver->cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  if (result == GK_OK) graph->event = event;
  return result;
}

gk_result gki_cuda_gated_make(gki_cuda_gated *graph, gki_cuda_device *device, const gk_plan *plan, void *const *code) {
  graph->device = device;
  graph->current_stream = device->uploads;
  graph->plan = plan;
  graph->last = GK_NONE;
  gk_result result = alloc_memory(graph);
  if (result == GK_OK) result = alloc_arrays(graph, code);
  if (result == GK_OK) result = make_runs(graph, gki_calls_can_record(&graph->calls));
  if (result != GK_OK) return result;
  result = gki_cuda_graph_result(device, plan, device->driver->cuStreamSynchronize(graph->current_stream),
                                 "cuStreamSynchronize");
  graph->busy = result != GK_OK;
  if (result == GK_OK) graph->current_stream = device->stream; /* else gki_cuda_gated_drop waits for the uploads */
  return result;
}

void gki_cuda_gated_drop(gki_cuda_gated *graph) {
  if (!graph->device) return;
  const bool entered = gki_cuda_enter_to_free(graph->device);
  const gki_cuda_driver *driver = graph->device->driver;
  if (graph->busy) (void)driver->cuStreamSynchronize(graph->current_stream);
  for (uint32_t k = 0; graph->runs && k < graph->run_count; ++k) drop_run(graph, k);
  gki_cuda_updates_drop(&graph->updates);
  if (graph->event) (void)driver->cuEventDestroy(graph->event);
  gki_cuda_ahead_drop(&graph->ahead);
  gki_cuda_slots_drop(&graph->slots);
  gki_cuda_free_device(graph->device, graph->table);
  if (graph->pinned) gki_cuda_free_pinned(graph->device, graph->pinned);
  if (entered) gki_cuda_leave(graph->device);
  gki_arena_free(&graph->arena);
}

/* ---- launching --------------------------------------------------------------------------------------------------- */

static gk_result record_again(gki_cuda_gated *graph, const gk_launch_args *launch) {
  gk_result result = GK_OK;
  gki_cuda_relax(graph->device);
  if (gki_calls_changed(&graph->calls, launch)) {
    if (graph->complete) {
      graph->must_record = true; /* a later launch does it if this one fails */
      result = finish(graph); /* uploads of these runs may be under way */
    }
    for (uint32_t k = 0; k < graph->plan->run_count; ++k)
      if (graph->runs[k].calls) drop_run(graph, k);
    graph->complete = false;
  }
  if (result == GK_OK && !graph->complete) result = make_runs(graph, true);
  gki_cuda_unrelax();
  if (result != GK_OK) return result;
  if (graph->must_record) *launch->applied = GK_BY_RECORDING;
  graph->must_record = false;
  return GK_OK;
}

static gk_result follow(const gki_cuda_gated *graph) {
  return graph->current_stream == graph->device->stream ? gki_cuda_follow(graph->device) : GK_OK;
}

/* With GK_ISOLATE: a fault of earlier work must not be blamed on this graph's tasks. */
static gk_result await_others(gki_cuda_gated *graph) {
  gki_cuda_device *device = graph->device;
  gk_result result = follow(graph);
  if (result == GK_OK && graph->current_stream == device->stream) result = gki_cuda_join_streams(device);
  if (result != GK_OK) return result;
  gki_cuda_relax(device);
  const CUresult answer = device->driver->cuStreamSynchronize(graph->current_stream);
  gki_cuda_unrelax();
  return gki_cuda_result(device->driver, answer, "waiting for what was launched before graph %s", graph->plan->name);
}

/* The graph's previous launch must be over. `busy` is set even if no run follows: launches of other graphs may be under
 * way, which may write page-locked flags of this graph, and this launch ends behind them. */
static gk_result start(gki_cuda_gated *graph, const gk_launch_args *launch, CUstream stream) {
  graph->values = launch->values;
  graph->last = GK_NONE;
  gk_result result = finish(graph); /* only waits if the last wait failed */
  if (result != GK_OK) return result;
  graph->current_stream = stream;
  graph->busy = true;
  if (graph->plan->bits & GK_ISOLATE) result = await_others(graph);
  if (result != GK_OK) return result;
  (void)gki_param_update(&graph->parameters.values, launch);
  gki_cuda_counts_expect(&graph->counts, launch, 1);
  result = gki_cuda_counts_renumber(&graph->counts, graph->current_stream);
  if (result == GK_OK && graph->calls.any) result = record_again(graph, launch);
  if (result == GK_OK && (!graph->slots.table.is_sent || launch->changed_count || graph->ahead.points))
    result = follow(graph);
  if (result == GK_OK) result = gki_cuda_slots_send(&graph->slots, launch, 0, graph->current_stream);
  if (result == GK_OK && graph->ahead.points)
    result = gki_cuda_ahead_begin(&graph->ahead, launch, graph->current_stream);
  return result == GK_OK ? gki_cuda_updates_send(&graph->updates, &graph->parameters, launch->applied) : result;
}

/* Waits, so that the caller may destroy its stream. If the wait fails, current_stream stays, for the next wait. */
static gk_result return_to_own_stream(gki_cuda_gated *graph) {
  const gk_result result = finish(graph);
  if (!graph->busy) graph->current_stream = graph->device->stream;
  return result;
}

gk_result gki_cuda_gated_await(gki_cuda_gated *graph) { return finish(graph); }

gk_result gki_cuda_gated_launch(gki_cuda_gated *graph, const gk_launch_args *launch) {
  const gki_cuda_device *device = graph->device;
  const gki_cuda_stream_id last = {device->stream, 0};
  gki_cuda_stream_id on;
  bool pushed;
  gk_result result = gki_cuda_enter_to_launch(device, launch, &last, &on, &pushed);
  if (result != GK_OK) return result;
  result = start(graph, launch, on.stream);
  if (result != GK_OK) (void)return_to_own_stream(graph); /* no wait follows a launch that failed */
  if (pushed) gki_cuda_leave_unrelaxed(device);
  return result;
}

static gk_result enqueue(gki_cuda_gated *graph, uint32_t run) {
  graph->busy = true;
  graph->last = run;
  return run_result(graph, graph->device->driver->cuGraphLaunch(graph->runs[run].exec, graph->current_stream),
                    "cuGraphLaunch", run);
}

gk_result gki_cuda_gated_submit(gki_cuda_gated *graph, uint32_t run) {
  const gki_cuda_device *device = graph->device;
  gk_result result = gki_cuda_enter_unrelaxed(device);
  if (result != GK_OK) return result;
  result = follow(graph);
  if (result == GK_OK) result = enqueue(graph, run);
  if (result == GK_OK && graph->plan->bits & GK_ISOLATE) result = finish(graph);
  gki_cuda_leave_unrelaxed(device);
  return result;
}

/* A flag in gk's page-locked memory needs no copy. */
static gk_result read_at(gki_cuda_gated *graph, const gk_node *node, int32_t *flag) {
  const gki_cuda_device *device = graph->device;
  const volatile int32_t *value = &graph->pinned->flag;
  gk_result result = GK_OK;
  if (!gki_reads_memory(graph->plan, node)) return finish(graph);
  const char *at = (const char *)graph->values[node->flag].ptr + node->offset;
  if (gki_cuda_host_address(graph->device, (void *)(uintptr_t)at)) {
    value = (const volatile int32_t *)(const volatile void *)at;
  } else {
    graph->busy = true;
    result = follow(graph);
    if (result == GK_OK)
      result = gki_cuda_result(device->driver,
                              device->driver->cuMemcpyDtoHAsync(&graph->pinned->flag, (CUdeviceptr)(uintptr_t)at,
                                                                sizeof graph->pinned->flag, graph->current_stream),
                              "cuMemcpyDtoHAsync of the flag of task %u (%s) of graph %s", (unsigned)node->source,
                              node->name, graph->plan->name);
  }
  if (result == GK_OK) result = finish(graph);
  if (result == GK_OK) *flag = *value;
  return result;
}

/* Waits for a failed launch on another stream, which the device's own stream doesn't follow. */
static void leave_stream(gki_cuda_gated *graph) {
  gki_cuda_counts_skip(&graph->counts);
  if (graph->current_stream == graph->device->stream || !gki_cuda_enter_to_free(graph->device)) return;
  (void)return_to_own_stream(graph);
  gki_cuda_leave(graph->device);
}

gk_result gki_cuda_gated_read_flag(gki_cuda_gated *graph, uint32_t node, int32_t *flag) {
  gk_result result = gki_cuda_enter_unrelaxed(graph->device);
  if (result != GK_OK) {
    leave_stream(graph);
    return result;
  }
  if (node) result = read_at(graph, &graph->plan->nodes[node], flag);
  else result = return_to_own_stream(graph);
  gki_cuda_leave_unrelaxed(graph->device);
  return result;
}

/* ---- ahead ------------------------------------------------------------------------------------------------------- */

gk_result gki_cuda_gated_ahead(gki_cuda_gated *graph, const uint32_t *runs, uint32_t count) {
  if (graph->ahead.under_way == GKI_CUDA_TAPES) return GK_NOT_READY;
  gk_result result = gki_cuda_enter_unrelaxed(graph->device);
  if (result != GK_OK) return result;
  result = follow(graph);
  for (uint32_t k = 0; k < count && result == GK_OK; ++k)
    result = enqueue(graph, runs[k] == GK_NONE ? graph->plan->run_count : runs[k] & ~GK_AHEAD_BESIDE);
  if (result == GK_OK) result = gki_cuda_ahead_end_tape(&graph->ahead, graph->current_stream);
  gki_cuda_leave_unrelaxed(graph->device);
  return result;
}

gk_result gki_cuda_gated_state(gki_cuda_gated *graph, const uint32_t **state) {
  gk_result result = gki_cuda_enter_unrelaxed(graph->device);
  if (result != GK_OK) {
    leave_stream(graph);
    return result;
  }
  const uint32_t *copy = NULL;
  if (state) result = wait_up_to(graph, gki_cuda_ahead_take(&graph->ahead, &copy));
  else result = return_to_own_stream(graph);
  if (state && result == GK_OK) *state = copy;
  gki_cuda_leave_unrelaxed(graph->device);
  return result;
}
