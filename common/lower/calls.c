#include "lower/calls.h"
#include "base/error.h"
#include <string.h>

gk_result gki_calls_find(gki_calls *calls, const gk_plan *plan, gki_arena *arena) {
  *calls = (gki_calls){.plan = plan, .slots = gki_arena_alloc(arena, plan->slot_count, sizeof *calls->slots),
                            .values = gki_arena_alloc(arena, plan->slot_count, sizeof *calls->values)};
  if (!calls->slots || !calls->values)
    return gki_fail_memory("a graph's library calls", plan->slot_count * sizeof *calls->values);
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const gk_node *node = &plan->nodes[k];
    if (node->op != GK_OP_CALL) continue;
    calls->any = true;
    for (uint32_t a = 0; a < node->arg_count; ++a) calls->slots[plan->args[node->args + a]] = true;
  }
  for (uint32_t k = 1; k < plan->slot_count; ++k)
    if (plan->slots[k].bits & GK_HAS_VALUE) calls->values[k] = plan->slots[k].value;
  return GK_OK;
}

bool gki_calls_can_record(const gki_calls *calls) {
  for (uint32_t k = 1; k < calls->plan->slot_count; ++k)
    if (calls->slots[k] && !(calls->plan->slots[k].bits & GK_HAS_VALUE)) return false;
  return true;
}

bool gki_calls_changed(gki_calls *calls, const gk_launch_args *launch) {
  const gk_plan *plan = calls->plan;
  bool changed = false;
  for (uint32_t k = 0; k < launch->changed_count && !changed; ++k) {
    const uint32_t slot = launch->changed[k];
    changed = calls->slots[slot] && (plan->slots[slot].type == GK_BYTES ||
                                     memcmp(&calls->values[slot], &launch->values[slot], sizeof(gk_value)) != 0);
  }
  if (changed) memcpy(calls->values, launch->values, plan->slot_count * sizeof(gk_value));
  return changed;
}
