#include "base/clock.h"
#include "base/error.h"
#include "base/within.h"
#include "hip/graph.h"
#include "lower/cancel.h"
#include "plan/node.h"
#include "plan/plan.h"
#include "plan/walk.inc"
#include <string.h>

static gk_result check(const gki_hip_graph *g, hipError_t answer, const char *call) {
  return gki_hip_result(g->device->driver, answer, "%s of graph %s", call, g->plan->name);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

hipError_t gki_hip_drain(gki_hip_graph *g) {
  g->enqueued = g->taken = 0;
  if (!g->is_busy) return hipSuccess;
  hipError_t answer = g->device->driver->hipStreamSynchronize(g->stream);
  if (answer != hipSuccess) answer = g->device->driver->hipStreamSynchronize(g->stream); /* work may go on meanwhile */
  g->is_busy = false;
  return answer;
}

static hipError_t wait_for_event(const gki_hip_driver *driver, hipEvent_t event) {
  const uint64_t begin = gki_now_ns();
  hipError_t answer;
  do answer = driver->hipEventQuery(event);
  while (answer == hipErrorNotReady && gki_spins_since(begin));
  return answer == hipErrorNotReady ? driver->hipEventSynchronize(event) : answer;
}

/* Waits up to an event; if that is NULL, or after a failure, for all work of the launch. */
static gk_result wait(gki_hip_graph *g, hipEvent_t event) {
  if (!g->is_busy) return GK_OK;
  const gki_hip_driver *driver = g->device->driver;
  hipError_t answer = event ? hipSuccess : driver->hipEventRecord(g->event, g->stream);
  if (answer == hipSuccess) answer = wait_for_event(driver, event ? event : g->event);
  if (answer == hipSuccess) {
    g->is_busy = event != NULL;
    return gki_param_check_posts(&g->params, g->shared->failures, &g->launch);
  }
  char title[GKI_WAIT_TITLE_BYTES];
  const gk_result result = gki_hip_result(driver, answer, "%s", gki_wait_title(g->plan, g->last, title));
  (void)gki_hip_drain(g);
  return result;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

/* Writes what the launch changes. Returns where that ends. */
static size_t write_image(gki_hip_graph *g, const gk_launch_args *launch) {
  size_t begin, end;
  const gki_task_control control = {.number = g->points ? GKW_CLOSED : launch->launch,
                                    .failures = (uintptr_t)g->shared->failures, .posts_as = launch->launch, .arms = 1};
  memcpy(g->image + g->control_at, &control, sizeof control);
  if (g->points) memcpy(g->image, launch->state, g->points->state_count * sizeof(uint32_t));
  (void)gki_slot_table_changed(&g->slots, launch, 0, &begin, &end);
  (void)gki_param_update(&g->params, launch);
  gki_cancel_begin(&g->shared->cancelled, launch);
  return !g->is_written ? g->bytes : begin < end ? g->table_at + end : g->control_at + sizeof control;
}

/* One copy of all up to the last change takes less time than one for each change. */
static gk_result upload(gki_hip_graph *g, size_t bytes) {
  g->is_busy = true;
  const gk_result result = check(g, g->device->driver->hipMemcpyHtoDAsync(g->block, g->image, bytes, g->stream),
                                 "hipMemcpyHtoDAsync of the slots");
  g->is_written = result == GK_OK;
  if (!g->is_written) g->slots.is_sent = false;
  return result;
}

/* After a failure, waits for the launch's work. Later calls don't use the caller's stream, which may be gone. */
static gk_result end_launch(gki_hip_graph *g, gk_result result) {
  if (result != GK_OK) (void)gki_hip_drain(g);
  g->enqueued = g->taken = 0;
  g->stream = g->device->stream;
  return result;
}

static gk_result start(gki_hip_graph *g, const gk_launch_args *launch) {
  (void)gki_hip_drain(g); /* only waits if the last launch failed */
  g->launch = *launch;
  g->last = GK_NONE;
  g->stream = launch->on_stream ? launch->stream : g->device->stream;
  gk_result result = GK_OK;
  if (launch->on_stream || g->device->shares_stream) result = gki_hip_refuse_capture(g->device, g->stream);
  if (result == GK_OK && g->plan->bits & GK_ISOLATE) /* earlier work's fault isn't one of this graph's tasks */
    result = gki_hip_result(g->device->driver, g->device->driver->hipStreamSynchronize(g->stream),
                            "waiting for what was launched before graph %s", g->plan->name);
  if (result == GK_OK) result = upload(g, write_image(g, launch));
  return result == GK_OK ? GK_OK : end_launch(g, result); /* no wait follows a launch that failed */
}

gk_result gki_hip_launch(void *graph, const gk_launch_args *launch) {
  gki_hip_graph *g = graph;
  gki_hip_before before;
  gk_result result = gki_hip_enter(g->device, &before);
  if (result == GK_OK) result = start(g, launch);
  return gki_hip_leave(g->device, before, result);
}

gk_result gki_hip_cancel(void *graph) {
  gki_cancel_set(&((gki_hip_graph *)graph)->shared->cancelled);
  return GK_OK;
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

static gk_result call(gki_hip_graph *g, const gk_node *node) {
  gk_value args[GK_MAX_ARGS];
  for (uint32_t k = 0; k < node->arg_count; ++k) args[k] = g->launch.values[g->plan->args[node->args + k]];
  return gki_call_task(node, args, g->stream);
}

static gk_result enqueue_tasks(gki_hip_graph *g, uint32_t run) {
  const gk_plan_run *at = &g->plan->runs[run];
  gk_result result = GK_OK;
  g->last = run;
  for (uint32_t k = at->begin; k < at->end && result == GK_OK; ++k) {
    const gk_node *node = &g->plan->nodes[k];
    gki_hip_shape shape;
    if (node->op == GK_OP_CALL) result = call(g, node);
    else if (g->kernels[k]) {
      gki_hip_shape_task(g, k, run, false, &shape);
      result = gki_hip_result(g->device->driver, gki_hip_launch_shape(g->device, &shape, g->stream),
                             "launching task %u (%s) of graph %s", (unsigned)node->source, node->name, g->plan->name);
    }
  }
  return result;
}

/* entry: as for gk_backend.ahead */
static gk_result enqueue(gki_hip_graph *g, uint32_t entry) {
  const uint32_t run = entry == GK_NONE ? GK_NONE : entry & ~GK_AHEAD_BESIDE;
  gki_hip_shape control;
  gk_result result = GK_OK;
  g->is_busy = true;
  if (run != GK_NONE && g->execs && g->execs[run]) {
    g->last = run;
    return check(g, g->device->driver->hipGraphLaunch(g->execs[run], g->stream), "hipGraphLaunch");
  }
  if (run != GK_NONE) result = enqueue_tasks(g, run);
  if (result != GK_OK || !g->points) return result;
  gki_hip_shape_control(g, run, &control);
  return check(g, gki_hip_launch_shape(g->device, &control, g->stream), "launching the control kernel");
}

gk_result gki_hip_submit(void *graph, uint32_t run) {
  gki_hip_graph *g = graph;
  gki_hip_before before;
  gk_result result = gki_hip_enter(g->device, &before);
  if (result == GK_OK) result = enqueue(g, run);
  if (result == GK_OK && g->plan->bits & GK_ISOLATE) result = wait(g, NULL);
  return gki_hip_leave(g->device, before, result);
}

/* A flag in gk's page-locked memory needs no copy. */
static gk_result read_at(gki_hip_graph *g, const gk_node *node, int32_t *flag) {
  const gki_hip_driver *driver = g->device->driver;
  const volatile int32_t *value = &g->shared->flag;
  gk_result result = GK_OK;
  if (!gki_reads_memory(g->plan, node)) return wait(g, NULL);
  char *from = (char *)g->launch.values[node->flag].ptr + node->offset;
  if (gki_hip_host_address(g->device, from)) {
    value = (const volatile int32_t *)(const volatile void *)from;
  } else {
    g->is_busy = true;
    result = gki_hip_result(driver, driver->hipMemcpyDtoHAsync(&g->shared->flag, from, sizeof *flag, g->stream),
                            "hipMemcpyDtoHAsync of the flag of task %u (%s) of graph %s", (unsigned)node->source,
                            node->name, g->plan->name);
  }
  if (result == GK_OK) result = wait(g, NULL);
  if (result == GK_OK) *flag = *value;
  return result;
}

gk_result gki_hip_read_flag(void *graph, uint32_t node, int32_t *flag) {
  gki_hip_graph *g = graph;
  gki_hip_before before;
  gk_result result = gki_hip_enter(g->device, &before);
  if (!node) result = end_launch(g, result == GK_OK ? wait(g, NULL) : result);
  else if (result == GK_OK) result = read_at(g, &g->plan->nodes[node], flag);
  return gki_hip_leave(g->device, before, result);
}

/* ---- ahead ------------------------------------------------------------------------------------------------------- */

/* The copy of the state behind a tape. */
static gk_result end_tape(gki_hip_graph *g) {
  const gki_hip_driver *driver = g->device->driver;
  const uint32_t place = g->enqueued % GKI_HIP_TAPES;
  const size_t words = g->points->state_count;
  gk_result result = check(g, driver->hipMemcpyDtoHAsync(g->states + place * words, g->block, words * sizeof(uint32_t),
                                                         g->stream), "hipMemcpyDtoHAsync of the state");
  if (result == GK_OK) result = check(g, driver->hipEventRecord(g->ends[place], g->stream), "hipEventRecord");
  if (result == GK_OK) ++g->enqueued;
  return result;
}

gk_result gki_hip_ahead(void *graph, const uint32_t *runs, uint32_t count) {
  gki_hip_graph *g = graph;
  gki_hip_before before;
  if (g->enqueued - g->taken == GKI_HIP_TAPES) return GK_NOT_READY;
  gk_result result = gki_hip_enter(g->device, &before);
  for (uint32_t k = 0; k < count && result == GK_OK; ++k) result = enqueue(g, runs[k]);
  if (result == GK_OK) result = end_tape(g);
  return gki_hip_leave(g->device, before, result);
}

gk_result gki_hip_state(void *graph, const uint32_t **state) {
  gki_hip_graph *g = graph;
  gki_hip_before before;
  gk_result result = gki_hip_enter(g->device, &before);
  if (result == GK_OK && state) {
    const uint32_t place = g->taken++ % GKI_HIP_TAPES;
    *state = g->states + (size_t)place * g->points->state_count;
    result = wait(g, g->ends[place]);
  } else if (!state) result = end_launch(g, result == GK_OK ? wait(g, NULL) : result);
  return gki_hip_leave(g->device, before, result);
}
