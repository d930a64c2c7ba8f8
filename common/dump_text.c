#include "dump.h"
#include "error.h"
#include <inttypes.h>
#include <string.h>

const char *gki_dump_type(gk_type type) {
  static const char *const names[] = {"none", "ptr", "i32", "u32", "i64", "f32", "f64", "bytes", "host_ptr"};
  return (size_t)type < GK_COUNT(names) ? names[type] : "unknown";
}

void gki_dump_slot(gki_text *text, const gk_plan *plan, uint32_t slot, uint32_t offset, gki_quoting how) {
  gki_text_quote(text, plan->slots[slot].name, how);
  if (offset) gki_text_add(text, "+%" PRIu32, offset);
}

static void add_items(gki_text *text, const gk_plan *plan, const gk_node *node, gki_quoting how) {
  uint32_t axes = node->items[2] ? 3 : node->items[1] ? 2 : 1;
  if (node->op == GK_OP_KERNEL && node->kernel->dimensions > axes) axes = node->kernel->dimensions;
  gki_text_add(text, " over ");
  for (uint32_t k = 0; k < axes && k < 3; ++k) {
    uint32_t slot = node->items[k];
    if (k) gki_text_add(text, " x ");
    /* COPY and FILL use the offset for their memory, a kernel for a count that is read on the device. */
    bool is_read = k == 0 && slot && node->op == GK_OP_KERNEL && plan->slots[slot].type == GK_PTR;
    if (slot) gki_dump_slot(text, plan, slot, is_read ? node->offset : 0, how);
    else gki_text_add(text, "1");
  }
}

void gki_dump_work(gki_text *text, const gk_plan *plan, const gk_node *node, gki_quoting how) {
  bool has_items = node->op == GK_OP_KERNEL || node->op == GK_OP_COPY || node->op == GK_OP_FILL;
  if (has_items) add_items(text, plan, node, how);
  if (!has_items && node->op != GK_OP_CALL) return;
  gki_text_add(text, " (");
  for (uint32_t k = 0; k < node->arg_count; ++k) {
    bool is_moved = node->op == GK_OP_COPY || node->op == GK_OP_FILL;
    uint32_t offset = !is_moved ? 0 : k ? node->from_offset : node->offset;
    if (k) gki_text_add(text, ", ");
    gki_dump_slot(text, plan, plan->args[node->args + k], offset, how);
  }
  gki_text_add(text, ")");
}

/* Its number is that of the task in the user's list, as in messages and in the backend's part. */
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
  if (node->flag) {
    gki_text_add(text, ", flag ");
    gki_dump_slot(text, plan, node->flag, node->offset, GKI_PLAIN);
  }
  if (node->max_iterations) gki_text_add(text, ", at most %" PRIu32 " passes", node->max_iterations);
  if (node->label) gki_text_add(text, ", label %" PRId32, node->label);
  if (node->always) gki_text_add(text, ", always");
  if (node->run != UINT32_MAX) gki_text_add(text, ", run %" PRIu32, node->run);
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
    tasks += plan->nodes[k].op >= GK_OP_KERNEL && plan->nodes[k].op <= GK_OP_CALL;
  gki_text_add(text, "total: ");
  add_count(text, plan->node_count, "node", ", ");
  add_count(text, tasks, "task", " in ");
  add_count(text, plan->run_count, "run", ", ");
  add_count(text, plan->loop_count, "loop", ", ");
  add_count(text, plan->checkpoint_count, "checkpoint", ", ");
  add_count(text, plan->always_count, "always-task", plan->can_yield ? "; can yield\n" : "; can't yield\n");
}

static void add_gates(gki_text *text, const char *what, const gki_gate_count *gates) {
  gki_text_add(text, "gates of a graph for launches from %s: ", what);
  add_count(text, gates->control, "control kernel", ", ");
  add_count(text, gates->conditional, "conditional node", "");
  gki_text_add(text, " (the usual lowering: %" PRIu32 ", %" PRIu32 ")\n", gates->usual_control,
               gates->usual_conditional);
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
  for (uint32_t k = 1; k < plan->slot_count; ++k) {
    const gk_slot_desc *slot = &plan->slots[k];
    if (slot->type == GK_NO_TYPE) continue;
    gki_text_add(text, "slot %" PRIu32 "  %s ", k, gki_dump_type(slot->type));
    gki_text_quote(text, slot->name, GKI_PLAIN);
    if (slot->element) {
      gki_text_add(text, ", ");
      gki_text_quote(text, slot->element, GKI_PLAIN);
    }
    if (slot->element_bytes > 1) gki_text_add(text, " of %" PRIu32 " bytes", slot->element_bytes);
    if (slot->count) gki_text_add(text, ", %zu in the graph's own memory", slot->count);
    gki_text_add(text, "\n");
  }
  add_totals(text, plan);
  add_gates(text, "the top", &gates->fresh);
  add_gates(text, "anywhere", &gates->resume);
}

static gk_result count_gates(const gk_plan *plan, uint32_t bits, gki_gate_count *count) {
  const gk_gates *gates = NULL;
  if (plan->bits & GK_CANCELLABLE) bits |= GK_WITH_CANCEL;
  gk_result result = gk_gates_make(plan, bits, &gates);
  if (result != GK_OK) return result;
  *count = (gki_gate_count){gates->control_count, gates->conditional_count, gates->usual_control_count,
                            gates->usual_conditional_count};
  gk_gates_free(gates);
  return GK_OK;
}

char *gki_plan_dump(const gk_plan *plan, const char *format) {
  gki_gate_counts gates;
  if (count_gates(plan, 0, &gates.fresh) != GK_OK || count_gates(plan, GK_WITH_RESUME, &gates.resume) != GK_OK)
    return NULL;
  gki_text text = {0};
  if (format && strcmp(format, "text") == 0) gki_dump_text(&text, plan, &gates);
  else if (format && strcmp(format, "dot") == 0) gki_dump_dot(&text, plan);
  else if (format && strcmp(format, "json") == 0) gki_dump_json(&text, plan, &gates);
  else {
    gk_fail(GK_ERROR_INVALID, "a plan can't be written as \"%s\"; ask for \"text\", \"dot\" or \"json\"",
            format ? format : "NULL");
    return NULL;
  }
  return gki_text_finish(&text);
}
