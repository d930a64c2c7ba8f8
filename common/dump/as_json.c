/* A plan as JSON. */
#include "base/name.h"
#include "dump/formats.h"
#include <inttypes.h>

static void add_string(gki_text *text, const char *key, const char *words) {
  gki_text_add(text, "\"%s\": \"", key);
  gki_text_quote(text, words, GKI_JSON);
  gki_text_add(text, "\"");
}

static void add_number(gki_text *text, const char *key, uint64_t number) {
  gki_text_add(text, ", \"%s\": %" PRIu64, key, number);
}

static void add_numbers(gki_text *text, const char *key, const uint32_t *numbers, uint32_t count) {
  gki_text_add(text, ", \"%s\": [", key);
  for (uint32_t k = 0; k < count; ++k) gki_text_add(text, "%s%" PRIu32, k ? ", " : "", numbers[k]);
  gki_text_add(text, "]");
}

static void add_mark(gki_text *text, const char *key, bool holds) {
  if (holds) gki_text_add(text, ", \"%s\": true", key);
}

/* Fields that are zero or false are left out, except the structure. */
static void add_node(gki_text *text, const gk_plan *plan, uint32_t at) {
  const gk_node *node = &plan->nodes[at];
  gki_text_add(text, "{\"index\": %" PRIu32 ", \"op\": \"%s\", ", at, gki_op_name(node->op));
  add_string(text, "name", node->name);
  add_number(text, "parent", node->parent);
  add_number(text, "end", node->end);
  if (at) add_number(text, "source", node->source);
  if (node->run != GK_NONE) add_number(text, "run", node->run);
  if (node->op == GK_OP_KERNEL || node->op == GK_OP_COPY || node->op == GK_OP_FILL)
    add_numbers(text, "items", node->items, 3);
  if (node->arg_count) add_numbers(text, "args", plan->args + node->args, node->arg_count);
  if (node->flag) add_number(text, "flag", node->flag);
  if (node->count) add_number(text, "count", node->count);
  if (node->offset) add_number(text, "offset", node->offset);
  if (node->from_offset) add_number(text, "from_offset", node->from_offset);
  if (node->op == GK_OP_FILL) add_number(text, "pattern", node->pattern);
  if (node->otherwise) add_number(text, "otherwise", node->otherwise);
  if (node->max_iterations) add_number(text, "max_iterations", node->max_iterations);
  if (node->every) add_number(text, "every", node->every);
  if (node->label) gki_text_add(text, ", \"label\": %" PRId32, node->label);
  add_mark(text, "always", node->always);
  add_mark(text, "can_yield", node->can_yield);
  add_mark(text, "has_target", node->has_target);
  gki_text_add(text, "}");
}

static void add_slot(gki_text *text, const gk_plan *plan, uint32_t at) {
  const gk_slot_desc *slot = &plan->slots[at];
  gki_text_add(text, "{\"slot\": %" PRIu32 ", ", at);
  add_string(text, "name", slot->name);
  gki_text_add(text, ", \"type\": \"%s\"", gki_dump_type(slot->type));
  if (slot->element) {
    gki_text_add(text, ", ");
    add_string(text, "element", slot->element);
  }
  if (slot->element_bytes) add_number(text, "element_bytes", slot->element_bytes);
  if (slot->count) add_number(text, "count", slot->count);
  if (slot->bits & GK_IS_ROOM) add_number(text, "room_of", (uint64_t)slot->value.i32);
  if (slot->bits & GK_IS_PASS) add_number(text, "pass_of", (uint64_t)slot->value.i32);
  gki_text_add(text, "}");
}

static const char *const lowerings[GKI_LOWERINGS] = {
    "usual", "fresh", "resume", "plain_fresh", "plain_resume", "without_switch_fresh", "without_switch_resume"};

static void add_gates(gki_text *text, const gk_plan *plan, const gki_gate_counts *counts) {
  gki_text_add(text, "\"gates\": {");
  for (gki_lowering how = 0; how < GKI_LOWERINGS; ++how) {
    const gki_gate_count total = gki_dump_total(counts, how);
    gki_text_add(text, "\"%s\": {\"control_kernels\": %" PRIu32 ", \"conditional_nodes\": %" PRIu32 "},\n",
                 lowerings[how], total.control, total.conditional);
  }
  gki_text_add(text, "\"passes\": [");
  for (uint32_t k = 0; k < counts->row_count; ++k) {
    gki_text_add(text, "%s{\"node\": %" PRIu32, k ? ",\n" : "\n", k ? plan->loops[k - 1] : 0);
    if (counts->passes[k] > 1) add_number(text, "passes", counts->passes[k]);
    add_number(text, "tasks", counts->tasks[k]);
    for (gki_lowering how = 0; how < GKI_LOWERINGS; ++how)
      gki_text_add(text, ", \"%s\": [%" PRIu32 ", %" PRIu32 "]", lowerings[how], counts->rows[how][k].control,
                   counts->rows[how][k].conditional);
    gki_text_add(text, "}");
  }
  gki_text_add(text, "]}");
}

void gki_dump_json(gki_text *text, const gk_plan *plan, const gki_gate_counts *gates) {
  gki_text_add(text, "{");
  add_string(text, "name", plan->name);
  add_mark(text, "host_gated", plan->bits & GK_HOST_GATED);
  add_mark(text, "isolate", plan->bits & GK_ISOLATE);
  add_mark(text, "cancellable", plan->bits & GK_CANCELLABLE);
  gki_text_add(text, ", \"can_yield\": %s,\n\"nodes\": [\n", plan->can_yield ? "true" : "false");
  for (uint32_t at = 0; at < plan->node_count; ++at) {
    add_node(text, plan, at);
    gki_text_add(text, at + 1 < plan->node_count ? ",\n" : "],\n");
  }
  gki_text_add(text, "\"slots\": [");
  bool first = true;
  for (uint32_t at = 1; at < plan->slot_count; ++at) {
    if (plan->slots[at].type == GK_NO_TYPE) continue;
    gki_text_add(text, first ? "\n" : ",\n");
    add_slot(text, plan, at);
    first = false;
  }
  gki_text_add(text, "],\n\"runs\": [");
  for (uint32_t k = 0; k < plan->run_count; ++k)
    gki_text_add(text, "%s[%" PRIu32 ", %" PRIu32 "]", k ? ", " : "", plan->runs[k].begin, plan->runs[k].end);
  gki_text_add(text, "]");
  add_numbers(text, "loops", plan->loops, plan->loop_count);
  add_numbers(text, "checkpoints", plan->checkpoints, plan->checkpoint_count);
  add_numbers(text, "always", plan->always, plan->always_count);
  gki_text_add(text, ",\n");
  add_gates(text, plan, gates);
  gki_text_add(text, "}\n");
}
