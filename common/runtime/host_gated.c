/* A launch on a batched backend: the walker decides the next step, the backend runs it. */
#include "runtime/host_gated.h"
#include "base/trace.h"
#include "base/within.h"
#include "runtime/slots.h"
#include "runtime/wait.h"

gk_result gki_call_host(gk_graph *graph, const gk_launch_args *launch, uint32_t run) {
  const gk_device *device = graph->device;
  const gk_plan *plan = &graph->planned.plan;
  const gk_node *node = &plan->nodes[plan->runs[run].begin];
  gk_value args[GK_MAX_ARGS];
  for (uint32_t k = 0; k < node->arg_count; ++k) {
    const uint32_t slot = plan->args[node->args + k];
    args[k] = launch->values[slot];
    if (plan->slots[slot].type != GK_PTR || !device->backend->host_address) continue;
    void *here = device->backend->host_address(device->state, args[k].ptr);
    if (here) args[k].ptr = here;
  }
  return gki_call_task(node, args, NULL);
}

static gk_result perform(gk_graph *graph, const gk_launch_args *launch, gk_step step, int64_t *answer) {
  const gk_backend *backend = graph->device->backend;
  const gk_node *node = &graph->planned.plan.nodes[step.at];
  gk_result result;
  int32_t flag = 0;
  switch (step.kind) {
  case GK_STEP_RUN: return backend->submit(graph->state, step.at);
  case GK_STEP_FLAG:
    result = backend->read_flag(graph->state, step.at, &flag);
    *answer = flag;
    return result;
  case GK_STEP_HOST:
    result = backend->read_flag(graph->state, graph->planned.plan.runs[step.at].begin, &flag);
    return result == GK_OK ? gki_call_host(graph, launch, step.at) : result;
  case GK_STEP_PASS: /* waits: with .every the end of the pass before may have read no flag */
    result = step.passes > 0 && node->every > 1 ? backend->read_flag(graph->state, step.at, &flag) : GK_OK;
    return result == GK_OK ? gki_pass_write(graph, node->loop, step.passes) : result;
  case GK_STEP_END: return backend->read_flag(graph->state, 0, &flag); /* waits for everything submitted */
  case GK_STEP_LOOP: case GK_STEP_FORK: case GK_STEP_CHECKPOINT: break; /* never occur: the walker gives simple steps */
  }
  return gk_fail(GK_ERROR_INVALID, "the walker asked for step %d, which was not taken", (int)step.kind);
}

static void begin_range(const gk_plan *plan, gk_step step) {
  const gk_node *node = &plan->nodes[step.at];
  if (step.kind == GK_STEP_RUN || step.kind == GK_STEP_HOST) gki_trace_begin_run(plan, step.at);
  else if (step.kind == GK_STEP_END) gki_trace_begin(0, "wait for the device");
  else
    gki_trace_begin(0, step.kind == GK_STEP_PASS ? "pass number of task %u (%s)" : "flag of task %u (%s)",
                    (unsigned)node->source, node->name);
}

static gk_result do_step(gk_graph *graph, const gk_launch_args *launch, gk_step step, int64_t *answer) {
  if (gki_trace_enabled()) begin_range(&graph->planned.plan, step);
  const gk_result result = perform(graph, launch, step, answer);
  gki_trace_end();
  return result;
}

gk_result gki_host_gated_run(gk_graph *graph, const gk_launch_args *launch, gk_launch_result *launch_result) {
  const gk_plan *plan = &graph->planned.plan;
  gk_result result = GK_OK;
  for (uint32_t k = 0; k < plan->loop_count && graph->passes && launch->target && result == GK_OK; ++k)
    result = gki_pass_write(graph, k, launch->entries[k]);
  if (result == GK_OK) result = graph->device->backend->launch(graph->state, launch);
  if (result != GK_OK) return result;
  gk_walk walk;
  gk_walk_start(&walk, plan, launch, 1u << GK_STEP_FLAG | 1u << GK_STEP_PASS, launch_result);
  int64_t answer = 0;
  gk_step step;
  do {
    step = gk_walk_next(&walk, answer);
    answer = 0;
    result = do_step(graph, launch, step, &answer);
  } while (result == GK_OK && step.kind != GK_STEP_END);
  if (result != GK_OK && step.kind != GK_STEP_END)
    /* waits, since submitted work still uses the values */
    do_step(graph, launch, (gk_step){.kind = GK_STEP_END}, &answer);
  return result;
}
