/* The result of a launch, from the backend's gk_launch_result to the host's status. */
#include "runtime/status.h"

gk_result gki_status_make(gk_graph *graph) {
  const gk_plan *plan = &graph->planned.plan;
  graph->loops = gki_arena_alloc(&graph->arena, plan->loop_count, sizeof *graph->loops);
  graph->checkpoints = gki_arena_alloc(&graph->arena, plan->checkpoint_count, sizeof *graph->checkpoints);
  if (!graph->loops || !graph->checkpoints)
    return gki_fail_memory("a graph's status", plan->loop_count * sizeof *graph->loops);
  for (uint32_t k = 0; k < plan->loop_count; ++k) {
    const gk_node *node = &plan->nodes[plan->loops[k]];
    graph->loops[k] = (gk_loop_status){.label = node->label, .name = node->name};
  }
  for (uint32_t k = 0; k < plan->checkpoint_count; ++k) {
    const gk_node *node = &plan->nodes[plan->checkpoints[k]];
    graph->checkpoints[k] = (gk_checkpoint_status){.label = node->label, .name = node->name};
  }
  graph->status = (gk_status){.yielded_name = "",
                              .loop_count = plan->loop_count,
                              .checkpoint_count = plan->checkpoint_count,
                              .loops = graph->loops,
                              .checkpoints = graph->checkpoints};
  return GK_OK;
}

void gki_status_fill(gk_graph *graph, uint64_t launch, const gk_launch_result *result) {
  const gk_plan *plan = &graph->planned.plan;
  const gk_node *yielded = result->state == GK_YIELDED ? &plan->nodes[result->yielded] : NULL;
  for (uint32_t k = 0; k < plan->loop_count; ++k) {
    graph->loops[k].passes = result->passes[k];
    graph->loops[k].hit_bound = result->hit_bound[k] != 0;
  }
  for (uint32_t k = 0; k < plan->checkpoint_count; ++k) graph->checkpoints[k].ran = result->ran[k] != 0;
  gk_status *status = &graph->status;
  status->launch = launch;
  status->state = result->state;
  status->yielded = yielded ? yielded->label : 0;
  status->yielded_name = yielded ? yielded->name : "";
  status->limit = result->limit ? &graph->loops[plan->nodes[result->limit].loop] : NULL;
  status->applied = result->applied;
}

uint64_t gk_passes(const gk_status *status, int32_t label) {
  uint64_t passes = 0;
  for (uint32_t k = 0; status && k < status->loop_count; ++k)
    if (label == 0 || status->loops[k].label == label) passes += status->loops[k].passes;
  return passes;
}
