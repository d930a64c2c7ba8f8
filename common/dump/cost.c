/* The number of nodes that decide, per pass, or for as many passes as stand in the graph: for the gates of
 * gk_gates_make, and for the usual lowering. */
#include "gk_gates.h"
#include "base/error.h"
#include "base/op.h"
#include "dump/formats.h"

/* The row of the innermost loop around a node of the plan. */
static uint32_t row_of(const gk_plan *plan, uint32_t node) {
  for (uint32_t up = plan->nodes[node].parent; up; up = plan->nodes[up].parent)
    if (gki_op_is_loop(plan->nodes[up].op)) return 1 + plan->nodes[up].loop;
  return 0;
}

/* Whether the usual lowering skips a task, or a whole PARALLEL, by its own gate: it does as soon as there are
 * checkpoints, unless a checkpoint holds the task. */
static bool has_usual_gate(const gk_plan *plan, uint32_t i) {
  const gk_node *n = &plan->nodes[i];
  if ((!gki_op_is_task(n->op) && n->op != GK_OP_PARALLEL) || n->always || !plan->checkpoint_count) return false;
  for (uint32_t up = n->parent; up; up = plan->nodes[up].parent)
    if (plan->nodes[up].op == GK_OP_CHECKPOINT || plan->nodes[up].op == GK_OP_SECTION) return false;
  return true;
}

/* The usual lowering. Per checkpoint: a kernel before it that sets its gate, the gate, a kernel behind it that reads
 * its flag. Per loop: a node, a kernel at the end of each pass and, inside another loop, a kernel that re-enables it.
 * Per branch: a kernel, and a node for each case. */
static void count_usual(const gk_plan *plan, gki_gate_count *rows) {
  for (uint32_t i = 1; i < plan->node_count; ++i) {
    const gk_node *n = &plan->nodes[i];
    gki_gate_count *row = &rows[row_of(plan, i)];
    const bool loop = gki_op_is_loop(n->op), gate = has_usual_gate(plan, i);
    const bool branch = n->op == GK_OP_IF || n->op == GK_OP_SWITCH, checkpoint = gki_op_is_target(n->op);
    if (loop) ++rows[1 + n->loop].control;
    row->control += checkpoint ? 2 : branch || gate || (loop && row != rows);
    row->conditional += checkpoint || loop || gate || n->op == GK_OP_IF || n->op == GK_OP_ELSE || n->op == GK_OP_CASE;
  }
}

static void count_gates(const gk_gates *gates, uint32_t *open, gki_gate_count *rows) {
  uint32_t depth = 0;  /* of loops, whose nodes `open` has */
  uint32_t behind = 0; /* one past an IF node with the last passes before a bound, which most entries don't need */
  for (uint32_t k = 0; k < gates->node_count; ++k) {
    const gk_gate_node *n = &gates->nodes[k];
    if (k < behind) continue;
    while (depth && gates->nodes[open[depth - 1]].end <= k) --depth;
    const uint32_t around = depth ? gates->nodes[open[depth - 1]].node : 0;
    gki_gate_count *row = &rows[around ? 1 + gates->plan->nodes[around].loop : 0];
    row->control += n->kind == GK_GATE_CONTROL;
    row->conditional += n->handle != GK_NONE;
    if (n->kind == GK_GATE_WHILE) open[depth++] = k;
    if (n->kind == GK_GATE_IF && gki_op_is_loop(gates->plan->nodes[n->node].op)) behind = n->end;
  }
}

/* A loop's row is for all passes that stand in its node for launches from the top. */
static void count_passes(const gk_gates *gates, gki_lowering how, const gki_gate_counts *counts) {
  for (uint32_t k = 0; k < gates->point_count; ++k) {
    const gk_gate_point *p = &gates->points[k];
    const uint32_t row = 1 + gates->plan->nodes[p->node].loop;
    if ((p->kind != GK_POINT_LOOP_END && p->kind != GK_POINT_PASSES) || !counts->tasks[row]) continue;
    if (p->handle != GK_NONE && gates->nodes[gates->handles[p->handle].node].kind == GK_GATE_IF) continue;
    if (how == GKI_FRESH) counts->passes[row] = p->passes;
    counts->rows[how][row].control *= counts->passes[row] / p->passes;
  }
  for (uint32_t k = 0; how == GKI_FRESH && k < counts->row_count; ++k) {
    counts->tasks[k] *= counts->passes[k];
    counts->rows[GKI_USUAL][k].control *= counts->passes[k];
    counts->rows[GKI_USUAL][k].conditional *= counts->passes[k];
  }
}

gk_result gki_dump_count(const gk_plan *plan, gki_gate_counts *counts) {
  static const uint32_t bits[GKI_LOWERINGS] = {
      [GKI_FRESH] = GK_WITH_GUARDS | GK_WITH_SWITCH, [GKI_RESUME] = GK_WITH_GUARDS | GK_WITH_SWITCH | GK_WITH_RESUME,
      [GKI_PLAIN_FRESH] = GK_WITH_GUARDS | GK_WITH_PLAIN,
      [GKI_PLAIN_RESUME] = GK_WITH_GUARDS | GK_WITH_PLAIN | GK_WITH_RESUME,
      [GKI_IFS_FRESH] = GK_WITH_GUARDS, [GKI_IFS_RESUME] = GK_WITH_GUARDS | GK_WITH_RESUME};
  *counts = (gki_gate_counts){.row_count = 1 + plan->loop_count};
  uint32_t *open = gki_arena_alloc(&counts->arena, counts->row_count, sizeof *open);
  counts->tasks = gki_arena_alloc(&counts->arena, counts->row_count, sizeof *counts->tasks);
  counts->passes = gki_arena_alloc(&counts->arena, counts->row_count, sizeof *counts->passes);
  gk_result result = open && counts->tasks && counts->passes ? GK_OK : GK_ERROR_MEMORY;
  for (uint32_t how = 0; how < GKI_LOWERINGS && result == GK_OK; ++how) {
    gki_gate_count *rows = gki_arena_alloc(&counts->arena, counts->row_count, sizeof *rows);
    counts->rows[how] = rows;
    if (!rows) result = GK_ERROR_MEMORY;
  }
  if (result != GK_OK) return gki_fail_memory("the counts of a plan's gates", counts->arena.total_bytes);
  for (uint32_t i = 1; i < plan->node_count; ++i)
    if (gki_op_is_task(plan->nodes[i].op)) ++counts->tasks[row_of(plan, i)];
  for (uint32_t k = 0; k < counts->row_count; ++k) counts->passes[k] = 1;
  count_usual(plan, counts->rows[GKI_USUAL]);
  const uint32_t cancel = plan->bits & GK_CANCELLABLE ? GK_WITH_CANCEL : 0;
  for (uint32_t how = GKI_FRESH; how < GKI_LOWERINGS && result == GK_OK; ++how) {
    const gk_gates *gates = NULL;
    result = gk_gates_make(plan, bits[how] | cancel, &gates);
    if (result == GK_OK) count_gates(gates, open, counts->rows[how]);
    if (result == GK_OK) count_passes(gates, how, counts);
    gk_gates_free(gates);
  }
  return result;
}

gki_gate_count gki_dump_total(const gki_gate_counts *counts, gki_lowering how) {
  gki_gate_count total = {0, 0};
  for (uint32_t k = 0; k < counts->row_count; ++k) {
    total.control += counts->rows[how][k].control;
    total.conditional += counts->rows[how][k].conditional;
  }
  return total;
}
