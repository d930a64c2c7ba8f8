/* A plan as text. */
#include "base/name.h"
#include "base/op.h"
#include "dump/formats.h"
#include "plan/node.h"
#include <inttypes.h>
#include <string.h>

/* Its number is the task's index in the user's list, as in messages and in the backend's part. */
static void add_node(gki_text *text, const gk_plan *plan, uint32_t at, uint32_t depth) {
  const gk_node *node = &plan->nodes[at];
  const char *op = gki_op_name(node->op);
  gki_text_add(text, "%6" PRIu32 "  %*s%s", node->source, (int)(2 * depth), "", op);
  if (strcmp(node->name, op) != 0) {
    gki_text_add(text, " ");
    gki_text_quote(text, node->name, GKI_PLAIN);
  }
  gki_dump_work(text, plan, node, GKI_PLAIN);
  if (node->op == GK_OP_FILL) gki_text_add(text, ", pattern 0x%08" PRIx32, node->pattern);
  if (node->count) gki_text_add(text, ", count %" PRIu32, node->count);
  if (node->flag) {
    gki_text_add(text, node->op == GK_OP_REPEAT ? ", count " : ", flag ");
    gki_dump_slot(text, plan, node->flag, node->offset, GKI_PLAIN);
  }
  if (node->every > 1) gki_text_add(text, ", read every %" PRIu32 " passes", node->every);
  if (node->max_iterations) gki_text_add(text, ", at most %" PRIu32 " passes", node->max_iterations);
  if (node->label) gki_text_add(text, ", label %" PRId32, node->label);
  if (node->always) gki_text_add(text, ", always");
  if (node->run != GK_NONE) gki_text_add(text, ", run %" PRIu32, node->run);
  if (node->can_yield) gki_text_add(text, ", can yield");
  else if (node->has_target) gki_text_add(text, ", can be resumed at");
  gki_text_add(text, "\n");
}

static void add_count(gki_text *text, uint32_t count, const char *what, const char *behind) {
  gki_text_add(text, "%" PRIu32 " %s%s%s", count, what, count == 1 ? "" : "s", behind);
}

static void add_totals(gki_text *text, const gk_plan *plan) {
  uint32_t tasks = 0;
  for (uint32_t k = 1; k < plan->node_count; ++k)
    tasks += gki_op_is_task(plan->nodes[k].op);
  gki_text_add(text, "total: ");
  add_count(text, plan->node_count, "node", ", ");
  add_count(text, tasks, "task", " in ");
  add_count(text, plan->run_count, "run", ", ");
  add_count(text, plan->loop_count, "loop", ", ");
  add_count(text, plan->checkpoint_count, "checkpoint", ", ");
  add_count(text, plan->always_count, "always-task", plan->can_yield ? "; can yield\n" : "; can't yield\n");
}

/* The loop's name, which may be long, comes last. */
static void add_gates(gki_text *text, const gk_plan *plan, const gki_gate_counts *counts) {
  static const char *const columns[] = {
      [GKI_USUAL] = "usual", [GKI_FRESH] = "from the top", [GKI_RESUME] = "from anywhere",
      [GKI_PLAIN_FRESH] = "plain, top", [GKI_PLAIN_RESUME] = "plain, anywhere"};
  gki_text_add(text, "a launch that doesn't stop executes, beside its tasks, control kernels + conditional nodes, and "
               "one or two kernels around all;\nusual: the lowering that gk's are compared with; plain: on devices "
               "that do less\n tasks");
  for (gki_lowering how = 0; how < GK_COUNT(columns); ++how) gki_text_add(text, "%17s", columns[how]);
  gki_text_add(text, "\n");
  for (uint32_t k = 0; k < counts->row_count; ++k) {
    gki_text_add(text, "%6" PRIu32, counts->tasks[k]);
    for (gki_lowering how = 0; how < GK_COUNT(columns); ++how) {
      const gki_gate_count *count = &counts->rows[how][k];
      gki_text_add(text, "%9" PRIu32 " + %-5" PRIu32, count->control, count->conditional);
    }
    if (!k) gki_text_add(text, "  in a launch, outside of loops\n");
    else if (counts->passes[k] > 1) gki_text_add(text, "  in %" PRIu32 " passes of ", counts->passes[k]);
    else gki_text_add(text, "  in a pass of ");
    if (!k) continue;
    gki_text_quote(text, plan->nodes[plan->loops[k - 1]].name, GKI_PLAIN);
    gki_text_add(text, "\n");
  }
  const gki_gate_count fresh = gki_dump_total(counts, GKI_FRESH), ifs = gki_dump_total(counts, GKI_IFS_FRESH);
  if (ifs.conditional == fresh.conditional) return;
  add_count(text, ifs.conditional - fresh.conditional, "conditional node",
            " more without SWITCH nodes, as before CUDA 13.0\n");
}

void gki_dump_text(gki_text *text, const gk_plan *plan, const gki_gate_counts *gates) {
  gki_text_add(text, "plan of ");
  gki_text_quote(text, plan->name, GKI_PLAIN);
  if (plan->bits & GK_HOST_GATED) gki_text_add(text, ", host-gated");
  if (plan->bits & GK_ISOLATE) gki_text_add(text, ", each task by itself");
  if (plan->bits & GK_CANCELLABLE) gki_text_add(text, ", cancellable");
  gki_text_add(text, "\n");
  uint32_t depth = 0, block = 0;
  for (uint32_t at = 1; at < plan->node_count; ++at) {
    for (; block != plan->nodes[at].parent; block = plan->nodes[block].parent) --depth;
    add_node(text, plan, at, depth);
    if (plan->nodes[at].end == at + 1) continue;
    block = at;
    ++depth;
  }
  for (uint32_t k = 1, end = gki_slots_end(plan); k < end; ++k) {
    const gk_slot_desc *slot = &plan->slots[k];
    if (slot->type == GK_NO_TYPE) continue;
    gki_text_add(text, "slot %" PRIu32 "  %s ", k, gki_dump_type(slot->type));
    gki_text_quote(text, slot->name, GKI_PLAIN);
    if (slot->element) {
      gki_text_add(text, ", ");
      gki_text_quote(text, slot->element, GKI_PLAIN);
    }
    if (slot->bits & GK_IS_ROOM) {
      gki_text_add(text, ", the room of ");
      gki_dump_slot(text, plan, (uint32_t)slot->value.i32, 0, GKI_PLAIN);
    } else if (slot->bits & GK_IS_PASS) {
      gki_text_add(text, ", the passes of ");
      gki_text_quote(text, plan->nodes[slot->value.i32].name, GKI_PLAIN);
    } else if (slot->element_bytes > 1) {
      gki_text_add(text, " of %" PRIu32 " bytes", slot->element_bytes);
    }
    if (slot->count) gki_text_add(text, ", %zu in the graph's own memory", slot->count);
    gki_text_add(text, "\n");
  }
  add_totals(text, plan);
  add_gates(text, plan, gates);
}
