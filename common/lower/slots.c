#include "lower/slots.h"
#include "base/error.h"
#include <string.h>

/* ---- layout ------------------------------------------------------------------------------------------------------ */

/* A plan has at most 2^16 slots, each of less than 2^32 bytes: 64 bits don't overflow, for `depth` tables either. */
static gk_result place_structs(gki_slot_table *slots, gki_arena *arena) {
  const gk_plan *plan = slots->plan;
  slots->structs = gki_arena_alloc(arena, plan->slot_count, sizeof *slots->structs);
  if (!slots->structs) return gki_fail_memory("a graph's table of slots", plan->slot_count * sizeof *slots->structs);
  size_t bytes = ((size_t)plan->slot_count + slots->capacity_count) * sizeof(uint64_t);
  for (uint32_t k = 1; k < plan->slot_count; ++k) {
    if (plan->slots[k].type != GK_BYTES) continue;
    slots->structs[k] = (bytes + GKI_STRUCT_ALIGNMENT - 1) / GKI_STRUCT_ALIGNMENT * GKI_STRUCT_ALIGNMENT;
    bytes = slots->structs[k] + plan->slots[k].element_bytes;
  }
  slots->bytes = (bytes + GKI_STRUCT_ALIGNMENT - 1) / GKI_STRUCT_ALIGNMENT * GKI_STRUCT_ALIGNMENT;
  return GK_OK;
}

void gki_slot_table_forget_capacities(const gki_slot_table *slots) {
  for (uint32_t k = 0; k < slots->plan->slot_count; ++k) slots->known[k] = SIZE_MAX - 1; /* differs from any capacity */
}

/* Copies and fills with a count check the capacity behind their addresses. */
static gk_result place_capacities(gki_slot_table *slots, gki_arena *arena) {
  const gk_plan *plan = slots->plan;
  slots->capacities = gki_arena_alloc(arena, plan->slot_count, sizeof *slots->capacities);
  slots->known = gki_arena_alloc(arena, plan->slot_count, sizeof *slots->known);
  if (!slots->capacities || !slots->known)
    return gki_fail_memory("a graph's table of slots", plan->slot_count * sizeof *slots->known);
  gki_slot_table_forget_capacities(slots);
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const gk_node *node = &plan->nodes[k];
    if ((node->op != GK_OP_COPY && node->op != GK_OP_FILL) || !node->items[0]) continue;
    for (uint32_t a = node->args; a < node->args + node->arg_count; ++a)
      if (!slots->capacities[plan->args[a]])
        slots->capacities[plan->args[a]] = plan->slot_count + slots->capacity_count++;
  }
  return GK_OK;
}

gk_result gki_slot_table_make(gki_slot_table *slots, const gk_plan *plan, uint32_t depth, gki_arena *arena,
                              size_t *ring_bytes) {
  *slots = (gki_slot_table){.plan = plan, .depth = depth};
  gk_result result = place_capacities(slots, arena);
  if (result == GK_OK) result = place_structs(slots, arena);
  *ring_bytes = slots->bytes * depth;
  return result;
}

/* ---- filling ----------------------------------------------------------------------------------------------------- */

int64_t gki_slot_table_number(const gki_slot_table *slots, uint32_t slot, const gk_value *values) {
  switch (slots->plan->slots[slot].type) {
  case GK_I32: return values[slot].i32;
  case GK_U32: return values[slot].u32;
  default: return values[slot].i64;
  }
}

static void write_number(const gki_slot_table *slots, unsigned char *table, uint32_t slot, const gk_value *values) {
  uint64_t entry = 0;
  const gk_type type = slots->plan->slots[slot].type;
  if (type == GK_BYTES) entry = slots->at + slots->structs[slot];
  else if (type == GK_I32 || type == GK_U32) entry = (uint64_t)gki_slot_table_number(slots, slot, values);
  else memcpy(&entry, &values[slot], sizeof entry);
  memcpy(table + slot * sizeof entry, &entry, sizeof entry);
}

/* Writes the bytes [begin, end) of the table. Slot 0 stays 0. */
static unsigned char *write_table(const gki_slot_table *slots, const gk_launch_args *launch, uint64_t place,
                                  size_t begin, size_t end) {
  const gk_plan *plan = slots->plan;
  unsigned char *table = slots->ring + place % slots->depth * slots->bytes;
  for (uint32_t k = (uint32_t)(begin / sizeof(uint64_t)); k < plan->slot_count && k * sizeof(uint64_t) < end; ++k)
    if (k) write_number(slots, table, k, launch->values);
  for (uint32_t k = 1; end > plan->slot_count * sizeof(uint64_t) && k < plan->slot_count; ++k) {
    if (slots->capacities[k]) {
      const uint64_t capacity = slots->known[k] = launch->capacity[k];
      memcpy(table + slots->capacities[k] * sizeof capacity, &capacity, sizeof capacity);
    }
    if (slots->structs[k] && slots->structs[k] < end)
      memcpy(table + slots->structs[k], launch->values[k].ptr, plan->slots[k].element_bytes);
  }
  return table;
}

void gki_slot_table_write(const gki_slot_table *slots, const gk_launch_args *launch, uint64_t place) {
  write_table(slots, launch, place, 0, slots->bytes);
}

const unsigned char *gki_slot_table_changed(const gki_slot_table *slots, const gk_launch_args *launch, uint64_t place,
                                            size_t *begin, size_t *end) {
  const gk_plan *plan = slots->plan;
  *begin = slots->bytes, *end = 0;
  for (uint32_t k = 0; k < launch->changed_count; ++k) {
    uint32_t slot = launch->changed[k];
    size_t from = slot * sizeof(uint64_t), to = from + sizeof(uint64_t);
    if (plan->slots[slot].type == GK_BYTES) to = slots->structs[slot] + plan->slots[slot].element_bytes;
    else if (slots->capacities[slot] && slots->known[slot] != launch->capacity[slot])
      to = ((size_t)plan->slot_count + slots->capacity_count) * sizeof(uint64_t);
    if (from < *begin) *begin = from;
    if (to > *end) *end = to;
  }
  return write_table(slots, launch, place, *begin, *end);
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

gki_task gki_task_of(const gki_slot_table *slots, uint32_t at) {
  const gk_plan *plan = slots->plan;
  const gk_node *node = &plan->nodes[at];
  gki_task task = {.slots = slots->at, .number = slots->control, .pattern = node->pattern, .element = 1, .node = at};
  for (int axis = 0; axis < 3; ++axis) {
    task.items[axis] = node->items[axis];
    if (node->items[axis] && plan->slots[node->items[axis]].type == GK_PTR) task.read |= 1u << axis;
  }
  for (uint32_t k = 0; k < node->arg_count && k < GKI_TASK_ARGS; ++k) task.args[k] = plan->args[node->args + k];
  if (node->op == GK_OP_KERNEL) {
    task.offset = node->offset;
    return task;
  }
  for (uint32_t k = 0; node->items[0] && k < GKI_TASK_ROOMS; ++k)
    task.args[GKI_TASK_ROOMS + k] = slots->capacities[task.args[k < node->arg_count ? k : 0]];
  task.to_offset = node->offset;
  task.from_offset = node->from_offset;
  if (plan->slots[task.args[0]].element_bytes) task.element = plan->slots[task.args[0]].element_bytes;
  return task;
}
