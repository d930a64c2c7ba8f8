#include "slots.h"
#include "error.h"
#include <stdlib.h>
#include <string.h>

/* ---- making ------------------------------------------------------------------------------------------------------ */

static gk_result refuse_size(const gk_plan *plan) {
  return gk_fail(GK_ERROR_MEMORY, "graph %s: the structs of its slots have more bytes than there are addresses",
                 plan->name);
}

static gk_result place_structs(gki_cuda_slots *slots, gki_arena *arena) {
  const gk_plan *plan = slots->plan;
  slots->structs = gki_arena_take(arena, plan->slot_count, sizeof *slots->structs);
  if (!slots->structs) return gki_fail_memory("a graph's table of slots", plan->slot_count * sizeof *slots->structs);
  size_t bytes = plan->slot_count * sizeof(uint64_t);
  for (uint32_t k = 1; k < plan->slot_count; ++k) {
    if (plan->slots[k].type != GK_BYTES) continue;
    slots->structs[k] = (bytes + GKI_STRUCT_ALIGNMENT - 1) / GKI_STRUCT_ALIGNMENT * GKI_STRUCT_ALIGNMENT;
    if (!gki_add(slots->structs[k], plan->slots[k].element_bytes, &bytes)) return refuse_size(plan);
  }
  slots->bytes = (bytes + GKI_STRUCT_ALIGNMENT - 1) / GKI_STRUCT_ALIGNMENT * GKI_STRUCT_ALIGNMENT;
  return GK_OK;
}

static bool is_task(gk_op op) { return op == GK_OP_KERNEL || op == GK_OP_COPY || op == GK_OP_FILL; }

/* Whether all extents are numbers, and one of them a slot's. */
static bool is_counted(const gk_plan *plan, const gk_node *node) {
  bool any = false;
  for (int axis = 0; axis < 3; ++axis) {
    if (node->items[axis] && plan->slots[node->items[axis]].type == GK_PTR) return false;
    any = any || node->items[axis];
  }
  return is_task(node->op) && any;
}

static int compare_extents(const void *a, const void *b) {
  const gki_cuda_extents *left = a, *right = b;
  int order = memcmp(left->items, right->items, sizeof left->items);
  return order ? order : (left->node > right->node) - (left->node < right->node);
}

static gk_result find_extents(gki_cuda_slots *slots, gki_arena *arena) {
  const gk_plan *plan = slots->plan;
  uint32_t count = 0;
  for (uint32_t k = 0; k < plan->node_count; ++k) count += is_counted(plan, &plan->nodes[k]);
  if (!count) return GK_OK;
  gki_cuda_extents *found = gki_array(count, sizeof *found, "a graph's extents");
  if (!found) return GK_ERROR_MEMORY;
  count = 0;
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const gk_node *node = &plan->nodes[k];
    const gki_cuda_extents extents = {{node->items[0], node->items[1], node->items[2]}, k};
    if (is_counted(plan, node)) found[count++] = extents;
  }
  qsort(found, count, sizeof *found, compare_extents);
  uint32_t different = 0;
  for (uint32_t k = 0; k < count; ++k)
    if (!k || memcmp(found[k].items, found[k - 1].items, sizeof found->items) != 0) found[different++] = found[k];
  slots->extents = gki_arena_take(arena, different, sizeof *found);
  slots->extent_count = slots->extents ? different : 0;
  if (slots->extents) memcpy(slots->extents, found, different * sizeof *found);
  gk_release(found);
  return slots->extents ? GK_OK : gki_fail_memory("a graph's extents", different * sizeof *found);
}

gk_result gki_cuda_slots_make(gki_cuda_slots *slots, gki_cuda_device *device, const gk_plan *plan, uint32_t depth,
                              gki_arena *arena) {
  *slots = (gki_cuda_slots){.device = device, .plan = plan, .depth = depth};
  size_t ring = 0;
  gk_result result = place_structs(slots, arena);
  if (result == GK_OK) result = find_extents(slots, arena);
  if (result == GK_OK && !gki_multiply(slots->bytes, depth, &ring)) result = refuse_size(plan);
  void *memory = NULL;
  if (result == GK_OK) result = gki_cuda_take_pinned(device, ring, "a graph's hand-over of slots", &memory, NULL);
  slots->ring = memory;
  return result;
}

void gki_cuda_slots_drop(gki_cuda_slots *slots) {
  if (slots->ring) gki_cuda_give_pinned(slots->device, slots->ring);
  slots->ring = NULL;
}

/* ---- handing over ------------------------------------------------------------------------------------------------ */

int64_t gki_cuda_slots_number(const gki_cuda_slots *slots, uint32_t slot, const gk_value *values) {
  switch (slots->plan->slots[slot].type) {
  case GK_I32: return values[slot].i32;
  case GK_U32: return values[slot].u32;
  default: return values[slot].i64;
  }
}

/* A device that met such a task could only leave it out. */
static gk_result refuse_many(const gki_cuda_slots *slots, const gk_value *values) {
  for (uint32_t k = 0; k < slots->extent_count; ++k) {
    const gki_cuda_extents *at = &slots->extents[k];
    int64_t product = 1;
    bool none = false, fits = true;
    for (int axis = 0; axis < 3; ++axis) {
      int64_t extent = at->items[axis] ? gki_cuda_slots_number(slots, at->items[axis], values) : 1;
      none = none || extent <= 0;
      fits = fits && !__builtin_mul_overflow(product, extent, &product);
    }
    if (none || (fits && product <= INT32_MAX)) continue;
    const gk_node *node = &slots->plan->nodes[at->node];
    uint32_t slot = at->items[0] ? at->items[0] : at->items[1] ? at->items[1] : at->items[2];
    return gk_fail(GK_ERROR_INVALID, "task %u (%s): more than 2147483647 items; split the task, or mend the number in "
                   "slot %s", (unsigned)node->source, node->name, slots->plan->slots[slot].name);
  }
  return GK_OK;
}

static void write_number(const gki_cuda_slots *slots, unsigned char *table, uint32_t slot, const gk_value *values) {
  uint64_t entry = 0;
  const gk_type type = slots->plan->slots[slot].type;
  if (type == GK_BYTES) entry = slots->at + slots->structs[slot];
  else if (type == GK_I32 || type == GK_U32) entry = (uint64_t)gki_cuda_slots_number(slots, slot, values);
  else memcpy(&entry, &values[slot], sizeof entry);
  memcpy(table + slot * sizeof entry, &entry, sizeof entry);
}

/* What stands in [begin, end) of the table. */
static unsigned char *write_table(const gki_cuda_slots *slots, const gk_value *values, uint64_t place, size_t begin,
                                  size_t end) {
  const gk_plan *plan = slots->plan;
  unsigned char *table = slots->ring + place % slots->depth * slots->bytes;
  for (uint32_t k = (uint32_t)(begin / sizeof(uint64_t)); k < plan->slot_count && k * sizeof(uint64_t) < end; ++k)
    if (k) write_number(slots, table, k, values);
  for (uint32_t k = 1; end > plan->slot_count * sizeof(uint64_t) && k < plan->slot_count; ++k)
    if (slots->structs[k] && slots->structs[k] < end)
      memcpy(table + slots->structs[k], values[k].ptr, plan->slots[k].element_bytes);
  return table;
}

gk_result gki_cuda_slots_write(const gki_cuda_slots *slots, const gk_hand_over *launch, uint64_t place) {
  gk_result result = refuse_many(slots, launch->values);
  if (result == GK_OK) write_table(slots, launch->values, place, 0, slots->bytes);
  return result;
}

gk_result gki_cuda_slots_hand(const gki_cuda_slots *slots, const gk_hand_over *launch, uint64_t place,
                              CUstream stream) {
  const gk_plan *plan = slots->plan;
  if (!launch->changed_count) return GK_OK;
  size_t begin = slots->bytes, end = 0;
  bool counts = false;
  for (uint32_t k = 0; k < launch->changed_count; ++k) {
    uint32_t slot = launch->changed[k];
    const gk_type type = plan->slots[slot].type;
    counts = counts || type == GK_I32 || type == GK_U32 || type == GK_I64;
    size_t from = slot * sizeof(uint64_t), to = from + sizeof(uint64_t);
    if (type == GK_BYTES) to = slots->structs[slot] + plan->slots[slot].element_bytes;
    if (from < begin) begin = from;
    if (to > end) end = to;
  }
  gk_result result = counts ? refuse_many(slots, launch->values) : GK_OK;
  if (result != GK_OK) return result;
  const unsigned char *table = write_table(slots, launch->values, place, begin, end);
  const gki_cuda_driver *driver = slots->device->driver;
  return gki_cuda_judge(driver, driver->cuMemcpyHtoDAsync(slots->at + begin, table + begin, end - begin, stream),
                        "cuMemcpyHtoDAsync of %zu bytes of slots", end - begin);
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

gki_cuda_task gki_cuda_task_of(const gki_cuda_slots *slots, uint32_t at) {
  const gk_plan *plan = slots->plan;
  const gk_node *node = &plan->nodes[at];
  gki_cuda_task task = {.slots = slots->at, .pattern = node->pattern, .element = 1};
  for (int axis = 0; axis < 3; ++axis) {
    task.items[axis] = node->items[axis];
    if (node->items[axis] && plan->slots[node->items[axis]].type == GK_PTR) task.read |= 1u << axis;
  }
  for (uint32_t k = 0; k < node->arg_count && k < GKI_CUDA_ARGS; ++k) task.args[k] = plan->args[node->args + k];
  if (node->op == GK_OP_KERNEL) {
    task.offset = node->offset;
    return task;
  }
  task.to_offset = node->offset;
  task.from_offset = node->from_offset;
  if (plan->slots[task.args[0]].element_bytes) task.element = plan->slots[task.args[0]].element_bytes;
  return task;
}
