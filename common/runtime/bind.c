/* The values bound to a graph's slots: numbers, memory, structs. bind_check.c decides whether a launch may run with
 * them. */
#include "runtime/bind.h"
#include "base/error.h"
#include "base/name.h"
#include "base/thread_cancel.h"
#include "plan/node.h"
#include "runtime/memory.h"
#include <float.h>
#include <math.h>
#include <string.h>

void gki_slot_mark_changed(gk_graph *graph, uint32_t slot) {
  graph->dirty = true;
  if (graph->slots[slot].changed) return;
  graph->slots[slot].changed = true;
  graph->changed[graph->changed_count++] = slot;
}

void gki_slot_keep_failure(gk_graph *graph, uint32_t slot, gk_result result) {
  const gk_plan *plan = &graph->planned.plan;
  if (slot >= plan->slot_count || plan->slots[slot].slot < 0) slot = 0;
  gki_bound *at = &graph->slots[slot];
  const bool is_kept = graph->slots[graph->failed_slot].failed != GK_OK;
  if (result == GK_OK) graph->failed_count -= at->failed != GK_OK;
  else if (at->failed == GK_OK) ++graph->failed_count;
  else if (is_kept) return; /* the slot's first failure */
  at->failed = result;
  if (result == GK_OK || is_kept) return;
  graph->failed_slot = slot;
  gki_error_save(graph->failed_message, GKI_FAILED_BYTES);
}

/* The call for this type of slot; NULL: the slot must be a GK_PTR. */
static const char *right_call(gk_type type, uint32_t types) {
  if (types == 1u << GK_PTR) return NULL;
  switch (type) {
  case GK_I32: case GK_U32: case GK_I64: return "gk_bind_int";
  case GK_F32: case GK_F64: return "gk_bind_float";
  case GK_BYTES: return "gk_bind_bytes";
  default: return "gk_bind";
  }
}

const gk_slot_desc *gki_slot_find(const gk_graph *graph, gk_slot slot, const char *call, uint32_t types) {
  const gk_plan *plan = &graph->planned.plan;
  if (slot < 1 || (uint32_t)slot >= plan->slot_count || plan->slots[slot].slot < 1) {
    gk_fail(GK_ERROR_INVALID, "%s: graph %s has no slot %d; its slots are those of its list, numbered up to %u", call,
            plan->name, (int)slot, (unsigned)gki_slots_end(plan) - 1);
    return NULL;
  }
  const gk_slot_desc *desc = &plan->slots[slot];
  if (desc->bits & GK_IS_ROOM && types != 1u << GK_PTR) {
    gk_fail(GK_ERROR_INVALID, "%s: slot %d (%s) is the room of slot %d (%s), and gk keeps it; bind or resize that slot",
            call, (int)slot, desc->name, (int)desc->value.i32, plan->slots[desc->value.i32].name);
    return NULL;
  }
  if (desc->bits & GK_IS_PASS) {
    gk_fail(GK_ERROR_INVALID, "%s: slot %d (%s) is the pass number of %s, which only gk writes, and only lines in that "
            "loop read; name another slot, or keep the number in one by GK_COPY", call, (int)slot, desc->name,
            plan->nodes[desc->value.i32].name);
    return NULL;
  }
  if (types >> desc->type & 1) return desc;
  const char *use = right_call(desc->type, types);
  gk_fail(GK_ERROR_INVALID, "%s: slot %d (%s) is of type %s; %s%s", call, (int)slot, desc->name,
          gki_type_name(desc->type), use ? "use " : "only one of type GK_PTR has memory", use ? use : "");
  return NULL;
}

static void bind_value(gk_graph *graph, uint32_t slot, gk_value value, bool bound) {
  graph->slots[slot].value = value;
  graph->slots[slot].bound = bound;
  gki_slot_mark_changed(graph, slot);
}

bool gki_slot_room(const gk_graph *graph, uint32_t slot, size_t *room) {
  const gk_slot_desc *desc = &graph->planned.plan.slots[slot];
  const size_t capacity = graph->slots[desc->value.i32].capacity;
  const size_t most = desc->type == GK_I64 ? INT64_MAX : desc->type == GK_U32 ? UINT32_MAX : INT32_MAX;
  *room = capacity / (desc->element_bytes ? desc->element_bytes : 1);
  return capacity != SIZE_MAX && *room <= most;
}

void gki_slot_update_rooms(gk_graph *graph, uint32_t buffer) {
  for (uint32_t slot = graph->slots[buffer].room; slot; slot = graph->slots[slot].room) {
    size_t room;
    const bool known = gki_slot_room(graph, slot, &room);
    gk_value value = {.i64 = 0};
    if (known && graph->planned.plan.slots[slot].type == GK_I64) value.i64 = (int64_t)room;
    else if (known) value.u32 = (uint32_t)room;
    bind_value(graph, slot, value, known);
  }
}

static gk_result refuse_unreachable(const gk_graph *graph, uint32_t slot, const void *memory) {
  const gk_backend *backend = graph->device->backend;
  if (!backend->reaches) return GK_OK;
  const int cancel_state = gki_thread_cancel_disable();
  gk_result result = backend->reaches(graph->device->state, memory);
  gki_thread_cancel_restore(cancel_state);
  if (result == GK_OK) return result;
  return gki_fail_with_prefix(result, "gk_bind: slot %u (%s)", (unsigned)slot, graph->planned.plan.slots[slot].name);
}

gk_result gki_slot_bind_memory(gk_graph *graph, uint32_t slot, void *memory) {
  gki_bound *at = &graph->slots[slot];
  uint64_t block = 0;
  size_t capacity = memory ? gki_device_capacity(graph->device, graph, memory, &block) : 0;
  gk_result result = memory && !block && at->used ? refuse_unreachable(graph, slot, memory) : GK_OK;
  if (result != GK_OK) {
    if (!gki_device_ends_block(graph->device, memory)) return result;
    gki_begin(); /* drops the message: the end of a block is an empty range, which is allowed */
    capacity = 0;
  }
  at->capacity = capacity;
  at->block = block;
  bind_value(graph, slot, (gk_value){.ptr = memory}, memory != NULL);
  gki_slot_update_rooms(graph, slot);
  return GK_OK;
}

gk_result gk_bind(gk_graph *graph, gk_slot slot, const void *memory) {
  gk_result result = gki_graph_enter(graph, "gk_bind");
  if (result != GK_OK) return result;
  const gk_slot_desc *desc = gki_slot_find(graph, slot, "gk_bind", 1u << GK_PTR | 1u << GK_HOST_PTR);
  if (!desc) result = GK_ERROR_INVALID;
  else if (desc->type == GK_PTR) result = gki_slot_bind_memory(graph, (uint32_t)slot, (void *)(uintptr_t)memory);
  else bind_value(graph, (uint32_t)slot, (gk_value){.ptr = (void *)(uintptr_t)memory}, memory != NULL);
  gki_slot_keep_failure(graph, (uint32_t)slot, result);
  gki_graph_leave(graph);
  return result;
}

gk_result gk_bind_int(gk_graph *graph, gk_slot slot, int64_t value) {
  gk_result result = gki_graph_enter(graph, "gk_bind_int");
  if (result != GK_OK) return result;
  const gk_slot_desc *desc = gki_slot_find(graph, slot, "gk_bind_int", 1u << GK_I32 | 1u << GK_U32 | 1u << GK_I64);
  gk_value held = {.i64 = 0}; /* all of its bytes: backends compare them */
  if (!desc) result = GK_ERROR_INVALID;
  else {
    int64_t low = desc->type == GK_I32 ? INT32_MIN : desc->type == GK_U32 ? 0 : INT64_MIN;
    int64_t high = desc->type == GK_I32 ? INT32_MAX : desc->type == GK_U32 ? UINT32_MAX : INT64_MAX;
    if (value < low || value > high)
      result = gk_fail(GK_ERROR_INVALID, "gk_bind_int: slot %d (%s) holds %lld to %lld, and %lld is out of range; "
                       "bind one of those", (int)slot, desc->name, (long long)low, (long long)high, (long long)value);
    else if (desc->type == GK_I32) held.i32 = (int32_t)value;
    else if (desc->type == GK_U32) held.u32 = (uint32_t)value;
    else held.i64 = value;
  }
  if (result == GK_OK) bind_value(graph, (uint32_t)slot, held, true);
  gki_slot_keep_failure(graph, (uint32_t)slot, result);
  gki_graph_leave(graph);
  return result;
}

gk_result gk_bind_float(gk_graph *graph, gk_slot slot, double value) {
  gk_result result = gki_graph_enter(graph, "gk_bind_float");
  if (result != GK_OK) return result;
  const gk_slot_desc *desc = gki_slot_find(graph, slot, "gk_bind_float", 1u << GK_F32 | 1u << GK_F64);
  gk_value held = {.i64 = 0};
  if (!desc) result = GK_ERROR_INVALID;
  else if (desc->type == GK_F32 && isfinite(value) && (value > (double)FLT_MAX || value < -(double)FLT_MAX))
    result = gk_fail(GK_ERROR_INVALID, "gk_bind_float: slot %d (%s) is a float, and %g is out of range; bind one of "
                     "-%g to %g, or infinity", (int)slot, desc->name, value, (double)FLT_MAX, (double)FLT_MAX);
  else {
    if (desc->type == GK_F32) held.f32 = (float)value;
    else held.f64 = value;
    bind_value(graph, (uint32_t)slot, held, true);
  }
  gki_slot_keep_failure(graph, (uint32_t)slot, result);
  gki_graph_leave(graph);
  return result;
}

gk_result gk_bind_bytes(gk_graph *graph, gk_slot slot, const void *value, size_t bytes) {
  gk_result result = gki_graph_enter(graph, "gk_bind_bytes");
  if (result != GK_OK) return result;
  const gk_slot_desc *desc = gki_slot_find(graph, slot, "gk_bind_bytes", 1u << GK_BYTES);
  if (!desc) result = GK_ERROR_INVALID;
  else if (!value)
    result = gk_fail(GK_ERROR_INVALID, "gk_bind_bytes: slot %d (%s) needs a struct, not NULL", (int)slot, desc->name);
  else if (bytes != desc->element_bytes)
    result = gk_fail(GK_ERROR_INVALID, "gk_bind_bytes: slot %d (%s) takes %u bytes (%s), not %zu", (int)slot,
                     desc->name, (unsigned)desc->element_bytes, desc->element ? desc->element : "a struct", bytes);
  else {
    gki_bound *bound = &graph->slots[slot];
    memcpy(bound->value.ptr, value, bytes);
    bound->bound = true;
    gki_slot_mark_changed(graph, (uint32_t)slot);
  }
  gki_slot_keep_failure(graph, (uint32_t)slot, result);
  gki_graph_leave(graph);
  return result;
}

void *gk_bound(const gk_graph *graph, gk_slot slot) {
  gk_graph *entered = (gk_graph *)(uintptr_t)graph;
  if (gki_graph_enter(entered, "gk_bound") != GK_OK) return NULL;
  bool found = gki_slot_find(graph, slot, "gk_bound", 1u << GK_PTR) != NULL;
  void *memory = found ? graph->slots[slot].value.ptr : NULL;
  gki_graph_leave(entered);
  return memory;
}

gk_slot gk_find_slot(const gk_graph *graph, const char *name) {
  gk_graph *entered = (gk_graph *)(uintptr_t)graph;
  if (gki_graph_enter(entered, "gk_find_slot") != GK_OK) return 0;
  const gk_plan *plan = &graph->planned.plan;
  gk_slot found = 0;
  for (uint32_t k = 1; k < plan->slot_count && name && !found; ++k)
    if (plan->slots[k].slot > 0 && strcmp(plan->slots[k].name, name) == 0) found = (gk_slot)k;
  gki_graph_leave(entered);
  return found;
}
