/* A launch on a batched backend: the walker decides the next step, the backend runs it. */
#include "runtime/host_gated.h"
#include "base/trace.h"
#include "runtime/wait.h"

static gk_result perform(gk_graph *graph, gk_step step, int64_t *answer) {
  const gk_backend *backend = graph->device->backend;
  gk_result result;
  switch (step.kind) {
  case GK_STEP_RUN: return backend->submit(graph->state, step.at);
  case GK_STEP_FLAG: {
    int32_t flag = 0;
    result = backend->read_flag(graph->state, step.at, &flag);
    *answer = flag;
    return result;
  }
  case GK_STEP_END: {
    int32_t nothing;
    return backend->read_flag(graph->state, 0, &nothing); /* waits for everything submitted */
  }
  case GK_STEP_LOOP: case GK_STEP_FORK: case GK_STEP_CHECKPOINT: break; /* never occur: the walker gives simple steps */
  }
  return gk_fail(GK_ERROR_INVALID, "the walker asked for step %d, which was not taken", (int)step.kind);
}

static void begin_range(const gk_plan *plan, gk_step step) {
  const gk_node *node = &plan->nodes[step.at];
  if (step.kind == GK_STEP_RUN) gki_trace_begin_run(plan, step.at);
  else if (step.kind == GK_STEP_END) gki_trace_begin(0, "wait for the device");
  else gki_trace_begin(0, "flag of task %u (%s)", (unsigned)node->source, node->name);
}

static gk_result do_step(gk_graph *graph, gk_step step, int64_t *answer) {
  if (gki_trace_enabled()) begin_range(&graph->planned.plan, step);
  const gk_result result = perform(graph, step, answer);
  gki_trace_end();
  return result;
}

gk_result gki_host_gated_run(gk_graph *graph, const gk_launch_args *launch, gk_launch_result *launch_result) {
  gk_result result = graph->device->backend->launch(graph->state, launch);
  if (result != GK_OK) return result;
  gk_walk walk;
  gk_walk_start(&walk, &graph->planned.plan, launch, 0, launch_result);
  int64_t answer = 0;
  gk_step step;
  do {
    step = gk_walk_next(&walk, answer);
    answer = 0;
    result = do_step(graph, step, &answer);
  } while (result == GK_OK && step.kind != GK_STEP_END);
  if (result != GK_OK && step.kind != GK_STEP_END)
    /* waits, since submitted work still uses the values */
    do_step(graph, (gk_step){.kind = GK_STEP_END}, &answer);
  return result;
}
