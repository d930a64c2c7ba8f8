/* What several files need to know of a plan's nodes. */
#ifndef GKI_PLAN_NODE_H
#define GKI_PLAN_NODE_H
#include "gk_backend.h"

/* Alignment of the memory that an argument points to. */
static inline uint32_t gki_argument_alignment(const gk_node *node, uint32_t arg) {
  if (node->op == GK_OP_KERNEL) return node->kernel->params[arg].element_alignment;
  return node->op == GK_OP_FILL ? sizeof(node->pattern) : 1;
}

/* The value of a number's slot. */
static inline int64_t gki_number(const gk_plan *plan, uint32_t slot, gk_value value) {
  const gk_type type = plan->slots[slot].type;
  return type == GK_I32 ? value.i32 : type == GK_U32 ? (int64_t)value.u32 : value.i64;
}

/* Whether a task reads its count, or a part of it, from memory. */
static inline bool gki_reads_count(const gk_plan *plan, const gk_node *node) {
  for (int axis = 0; axis < 3; ++axis)
    if (node->items[axis] && plan->slots[node->items[axis]].type == GK_PTR) return true;
  return false;
}

/* Whether its flag or count is in memory. */
static inline bool gki_reads_memory(const gk_plan *plan, const gk_node *node) {
  return node->flag && plan->slots[node->flag].type == GK_PTR;
}

/* Whether it is a REPEAT whose count is a number's slot. */
static inline bool gki_counts_by_number(const gk_plan *plan, const gk_node *node) {
  return node->op == GK_OP_REPEAT && node->flag && plan->slots[node->flag].type != GK_PTR;
}

/* The slot and offset at which a point finds its flag or count. Behind the last slot, tables of slots have the address
 * of a 1, which is the flag of YIELDs, and their own address, to find numbers (gk_ahead.h, gk_gates.h). */
static inline uint32_t gki_flag_slot(const gk_plan *plan, const gk_node *node) {
  if (gki_counts_by_number(plan, node)) return plan->slot_count + 1;
  return node->op == GK_OP_YIELD ? plan->slot_count : node->flag;
}
static inline uint32_t gki_flag_offset(const gk_plan *plan, const gk_node *node) {
  return gki_counts_by_number(plan, node) ? node->flag * (uint32_t)sizeof(uint64_t) : node->offset;
}

/* The blocks of a branch, by their nodes. GK_NONE: no more. */
static inline uint32_t gki_first_case(const gk_plan *plan, uint32_t i) {
  if (plan->nodes[i].op == GK_OP_IF) return i;
  return i + 1 < plan->nodes[i].end ? i + 1 : GK_NONE;
}
static inline uint32_t gki_next_case(const gk_plan *plan, uint32_t i, uint32_t s) {
  const gk_node *n = &plan->nodes[i];
  if (n->op == GK_OP_IF) return s == i && n->otherwise ? n->otherwise : GK_NONE;
  return plan->nodes[s].end < n->end ? plan->nodes[s].end : GK_NONE;
}
static inline uint32_t gki_case_end(const gk_plan *plan, uint32_t s) {
  const gk_node *n = &plan->nodes[s];
  return n->op == GK_OP_IF && n->otherwise ? n->otherwise : n->end;
}

/* Whether a run is a CALL_HOST, which is in no run with other tasks. */
static inline bool gki_is_host_run(const gk_plan *plan, uint32_t run) {
  return plan->nodes[plan->runs[run].begin].op == GK_OP_CALL_HOST;
}

/* Whether a device may decide for this plan: it has decisions, and nothing asks for those of the host. */
static inline bool gki_may_go_ahead(const gk_plan *plan) {
  if (plan->bits & (GK_HOST_GATED | GK_ISOLATE)) return false;
  bool decides = plan->loop_count != 0;
  for (uint32_t k = 0; k < plan->node_count && !decides; ++k) decides = gki_flag_slot(plan, &plan->nodes[k]) != 0;
  return decides;
}

/* The end of the slots that have numbers: constants are behind them. */
static inline uint32_t gki_slots_end(const gk_plan *plan) {
  uint32_t end = plan->slot_count;
  while (end > 1 && plan->slots[end - 1].slot < 0) --end;
  return end;
}

/* "slot 3 (N)", or "GK_ITEMS(8)". */
enum { GKI_SLOT_TITLE_BYTES = 128 };
const char *gki_slot_title(const gk_plan *plan, uint32_t slot, char text[GKI_SLOT_TITLE_BYTES]);

/* gk_check_count without a message; false: the count is bad. */
bool gki_count_items(const gk_plan *plan, uint32_t node, const gk_launch_args *launch, const int64_t extent[3],
                     uint64_t *items);
#endif
