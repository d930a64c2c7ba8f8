/* The result of a launch, from the backend's gk_launch_result to the host's status. */
#include "runtime/status.h"

static gk_result make(gk_graph *graph, gki_status *made) {
  const gk_plan *plan = &graph->planned.plan;
  made->loops = gki_arena_alloc(&graph->arena, plan->loop_count, sizeof *made->loops);
  made->checkpoints = gki_arena_alloc(&graph->arena, plan->checkpoint_count, sizeof *made->checkpoints);
  if (!made->loops || !made->checkpoints)
    return gki_fail_memory("a graph's status", plan->loop_count * sizeof *made->loops);
  for (uint32_t k = 0; k < plan->loop_count; ++k) {
    const gk_node *node = &plan->nodes[plan->loops[k]];
    made->loops[k] = (gk_loop_status){.label = node->label, .name = node->name};
  }
  for (uint32_t k = 0; k < plan->checkpoint_count; ++k) {
    const gk_node *node = &plan->nodes[plan->checkpoints[k]];
    made->checkpoints[k] = (gk_checkpoint_status){.label = node->label, .name = node->name};
  }
  made->status = (gk_status){.yielded_name = "",
                             .loop_count = plan->loop_count,
                             .checkpoint_count = plan->checkpoint_count,
                             .loops = made->loops,
                             .checkpoints = made->checkpoints};
  return GK_OK;
}

gk_result gki_status_make(gk_graph *graph) {
  const gk_result result = make(graph, &graph->last);
  return result == GK_OK ? make(graph, &graph->totals) : result;
}

void gki_status_fill(gk_graph *graph, uint64_t launch, const gk_launch_result *result) {
  const gk_plan *plan = &graph->planned.plan;
  const gk_node *yielded = result->state == GK_YIELDED ? &plan->nodes[result->yielded] : NULL;
  for (uint32_t k = 0; k < plan->loop_count; ++k) {
    graph->last.loops[k].passes = result->passes[k];
    graph->last.loops[k].hit_bound = result->hit_bound[k] != 0;
  }
  for (uint32_t k = 0; k < plan->checkpoint_count; ++k) graph->last.checkpoints[k].ran = result->ran[k] != 0;
  gk_status *status = &graph->last.status;
  status->launch = launch;
  status->state = result->state;
  status->yielded = yielded ? yielded->label : 0;
  status->yielded_name = yielded ? yielded->name : "";
  status->limit = result->limit ? &graph->last.loops[plan->nodes[result->limit].loop] : NULL;
  status->applied = result->applied;
}

void gki_status_add(gk_graph *graph, bool is_first) {
  const gk_status *last = &graph->last.status;
  gki_status *totals = &graph->totals;
  const bool had_limit = !is_first && totals->status.limit;
  for (uint32_t k = 0; k < last->loop_count; ++k) {
    const gk_loop_status *loop = &last->loops[k];
    totals->loops[k].passes = (is_first ? 0 : totals->loops[k].passes) + loop->passes;
    totals->loops[k].hit_bound = loop->hit_bound || (!is_first && totals->loops[k].hit_bound);
  }
  for (uint32_t k = 0; k < last->checkpoint_count; ++k)
    totals->checkpoints[k].ran = last->checkpoints[k].ran || (!is_first && totals->checkpoints[k].ran);
  totals->status.launch = last->launch;
  totals->status.state = last->state;
  totals->status.yielded = last->yielded;
  totals->status.yielded_name = last->yielded_name;
  if (!had_limit) totals->status.limit = last->limit ? &totals->loops[last->limit - last->loops] : NULL;
  if (is_first || last->applied > totals->status.applied) totals->status.applied = last->applied;
}

uint64_t gk_passes(const gk_status *status, int32_t label) {
  uint64_t passes = 0;
  for (uint32_t k = 0; status && k < status->loop_count; ++k)
    if (label == 0 || status->loops[k].label == label) passes += status->loops[k].passes;
  return passes;
}
