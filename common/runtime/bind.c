/* The values bound to a graph's slots: numbers, memory, structs. bind_check.c decides whether a launch may run with
 * them. */
#include "runtime/bind.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/name.h"
#include "base/trace.h"
#include "plan/node.h"
#include "runtime/memory.h"
#include "runtime/wait.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FAILED_BYTES = 1024 };

/* ---- making ------------------------------------------------------------------------------------------------------ */

static void note_use(gk_graph *graph, uint32_t slot, uint32_t alignment) {
  if (!slot) return;
  graph->slots[slot].used = true;
  if (graph->slots[slot].alignment < alignment) graph->slots[slot].alignment = alignment;
}

static bool writes(const gk_node *node, uint32_t arg) {
  if (node->op == GK_OP_COPY || node->op == GK_OP_FILL) return arg == 0;
  return node->op == GK_OP_CALL || node->kernel->params[arg].access > GK_ACCESS_IN;
}

static void note_reach(gk_graph *graph, uint32_t slot, uint32_t node, size_t bytes) {
  gki_bound *bound = &graph->slots[slot];
  if (graph->planned.plan.slots[slot].type != GK_PTR || bytes <= bound->reach) return;
  bound->reach = bytes;
  bound->reached_by = node;
}

/* Notes the memory that a task touches regardless of its kernel: flags, counts read on the device, and one element of a
 * copy or fill, at their offsets. */
static void note_node(gk_graph *graph, uint32_t at) {
  const gk_plan *plan = &graph->planned.plan;
  const gk_node *node = &plan->nodes[at];
  bool kernel = node->op == GK_OP_KERNEL, transfers = node->op == GK_OP_COPY || node->op == GK_OP_FILL;
  note_use(graph, node->flag, sizeof(int32_t));
  note_reach(graph, node->flag, at, (size_t)node->offset + sizeof(int32_t));
  for (uint32_t d = 0; d < 3; ++d) {
    note_use(graph, node->items[d], sizeof(int32_t));
    note_reach(graph, node->items[d], at, (kernel && d == 0 ? node->offset : 0) + sizeof(int32_t));
  }
  for (uint32_t a = 0; a < node->arg_count; ++a) {
    uint32_t slot = plan->args[node->args + a];
    note_use(graph, slot, gki_argument_alignment(node, a));
    graph->slots[slot].written = graph->slots[slot].written || writes(node, a);
    uint32_t unit = plan->slots[plan->args[node->args]].element_bytes;
    size_t offset = a ? node->from_offset : node->offset;
    if (transfers && !node->items[0]) note_reach(graph, slot, at, offset + (unit ? unit : 1));
  }
}

/* Notes the slots whose capacity a launch must know: those of copies and fills of a number of elements. */
static gk_result find_measured(gk_graph *graph) {
  const gk_plan *plan = &graph->planned.plan;
  graph->measured = gki_arena_alloc(&graph->arena, plan->slot_count, sizeof *graph->measured);
  if (!graph->measured) return gki_fail_memory("a graph's slots", plan->slot_count * sizeof *graph->measured);
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const gk_node *node = &plan->nodes[k];
    const bool counted = (node->op == GK_OP_COPY || node->op == GK_OP_FILL) && node->items[0];
    for (uint32_t a = node->args; counted && a < node->args + node->arg_count; ++a) {
      gki_bound *bound = &graph->slots[plan->args[a]];
      if (!bound->measured) graph->measured[graph->measured_count++] = plan->args[a];
      bound->measured = true;
    }
  }
  return GK_OK;
}

static gk_result lay_out_bytes(gk_graph *graph) {
  const gk_plan *plan = &graph->planned.plan;
  size_t total = 0;
  for (uint32_t k = 1; k < plan->slot_count; ++k) {
    if (plan->slots[k].type != GK_BYTES) continue;
    graph->slots[k].bytes_at = total;
    size_t bytes = plan->slots[k].element_bytes;
    total += (bytes + GKI_STRUCT_ALIGNMENT - 1) / GKI_STRUCT_ALIGNMENT * GKI_STRUCT_ALIGNMENT;
  }
  graph->bytes_size = total;
  graph->bytes = gki_arena_alloc_aligned(&graph->arena, total, GKI_STRUCT_ALIGNMENT);
  if (!graph->bytes) return gki_fail_memory("the structs bound to slots", total);
  for (uint32_t k = 1; k < plan->slot_count; ++k) {
    if (plan->slots[k].type != GK_BYTES) continue;
    graph->slots[k].value.ptr = graph->bytes + graph->slots[k].bytes_at;
    graph->slots[k].capacity = plan->slots[k].element_bytes;
  }
  return GK_OK;
}

static void mark_changed(gk_graph *graph, uint32_t slot) {
  graph->dirty = true;
  if (graph->slots[slot].changed) return;
  graph->slots[slot].changed = true;
  graph->changed[graph->changed_count++] = slot;
}

static gk_result resize(gk_graph *graph, const char *call, uint32_t slot, size_t count);

gk_result gki_slots_make(gk_graph *graph) {
  const gk_plan *plan = &graph->planned.plan;
  graph->slots = gki_arena_alloc(&graph->arena, plan->slot_count, sizeof *graph->slots);
  graph->changed = gki_arena_alloc(&graph->arena, plan->slot_count, sizeof *graph->changed);
  graph->by_address = gki_arena_alloc(&graph->arena, plan->slot_count, sizeof *graph->by_address);
  graph->failed_message = gki_array(FAILED_BYTES, 1, "messages of a graph");
  if (!graph->slots || !graph->changed || !graph->by_address)
    return gki_fail_memory("a graph's slots", plan->slot_count * sizeof *graph->slots);
  if (!graph->failed_message) return GK_ERROR_MEMORY;
  for (uint32_t k = 0; k < plan->node_count; ++k) note_node(graph, k);
  gk_result result = lay_out_bytes(graph);
  if (result == GK_OK) result = find_measured(graph);
  for (uint32_t k = 1; k < plan->slot_count && result == GK_OK; ++k) {
    const gk_slot_desc *desc = &plan->slots[k];
    if (desc->type == GK_PTR && graph->slots[k].used) graph->by_address[graph->pointer_count++] = k;
    if (desc->bits & GK_HAS_VALUE) {
      graph->slots[k].value = desc->value;
      graph->slots[k].bound = true;
    }
    mark_changed(graph, k);
    if (desc->count > 0) result = resize(graph, "gk_graph_create", k, desc->count);
  }
  return result;
}

/* Whether the backend's `own` and `disown` allocate and free the graph's memory; then gk_resize waits for no other
 * graph. Not if the caller launches the graph, since launches may be under way on any stream. */
static bool owns_apart(const gk_graph *graph) { return graph->device->backend->own && !graph->external; }

/* Frees memory that no launch of the graph uses. */
static void free_memory(const gk_graph *graph, void *memory) {
  gki_device_free(graph->device, memory, graph, owns_apart(graph));
}

void gki_slots_free(gk_graph *graph) {
  if (!graph->slots) return;
  for (uint32_t k = 1; k < graph->planned.plan.slot_count; ++k) {
    if (graph->slots[k].owned) free_memory(graph, graph->slots[k].owned);
    graph->slots[k].owned = NULL;
  }
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

/* Keeps a failure until the next launch reports it, or a successful bind of the slot removes it. Only the first failure
 * keeps its message. */
static void keep_failure(gk_graph *graph, uint32_t slot, gk_result result) {
  if (slot >= graph->planned.plan.slot_count) slot = 0;
  gki_bound *at = &graph->slots[slot];
  const bool is_kept = graph->slots[graph->failed_slot].failed != GK_OK;
  if (result == GK_OK) graph->failed_count -= at->failed != GK_OK;
  else if (at->failed == GK_OK) ++graph->failed_count;
  else if (is_kept) return; /* the slot's first failure */
  at->failed = result;
  if (result == GK_OK || is_kept) return;
  graph->failed_slot = slot;
  gki_error_save(graph->failed_message, FAILED_BYTES);
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

/* The slot's description if it has one of the types; otherwise NULL and the message. */
static const gk_slot_desc *slot_of(const gk_graph *graph, gk_slot slot, const char *call, uint32_t types) {
  const gk_plan *plan = &graph->planned.plan;
  if (slot < 1 || (uint32_t)slot >= plan->slot_count || plan->slots[slot].type == GK_NO_TYPE) {
    gk_fail(GK_ERROR_INVALID, "%s: graph %s has no slot %d; its slots are those of its list, numbered up to %u", call,
            plan->name, (int)slot, (unsigned)plan->slot_count - 1);
    return NULL;
  }
  const gk_slot_desc *desc = &plan->slots[slot];
  if (types >> desc->type & 1) return desc;
  const char *use = right_call(desc->type, types);
  gk_fail(GK_ERROR_INVALID, "%s: slot %d (%s) is of type %s; %s%s", call, (int)slot, desc->name,
          gki_type_name(desc->type), use ? "use " : "only one of type GK_PTR has memory", use ? use : "");
  return NULL;
}

static void bind_value(gk_graph *graph, uint32_t slot, gk_value value, bool bound) {
  graph->slots[slot].value = value;
  graph->slots[slot].bound = bound;
  mark_changed(graph, slot);
}

static gk_result refuse_unreachable(const gk_graph *graph, uint32_t slot, const void *memory) {
  const gk_backend *backend = graph->device->backend;
  if (!backend->reaches) return GK_OK;
  const int cancel = gki_cancel_hold();
  gk_result result = backend->reaches(graph->device->state, memory);
  gki_cancel_let_go(cancel);
  if (result == GK_OK) return result;
  char why[GKI_MESSAGE_BYTES], text[GKI_MESSAGE_BYTES];
  gki_error_save(why, sizeof why);
  snprintf(text, sizeof text, "gk_bind: slot %u (%s): %.*s", (unsigned)slot,
           graph->planned.plan.slots[slot].name, 4096, why);
  return gki_fail_with(result, text);
}

static gk_result bind_memory(gk_graph *graph, uint32_t slot, void *memory) {
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
  return GK_OK;
}

gk_result gk_bind(gk_graph *graph, gk_slot slot, const void *memory) {
  gk_result result = gki_graph_enter(graph, "gk_bind");
  if (result != GK_OK) return result;
  const gk_slot_desc *desc = slot_of(graph, slot, "gk_bind", 1u << GK_PTR | 1u << GK_HOST_PTR);
  if (!desc) result = GK_ERROR_INVALID;
  else if (desc->type == GK_PTR) result = bind_memory(graph, (uint32_t)slot, (void *)(uintptr_t)memory);
  else bind_value(graph, (uint32_t)slot, (gk_value){.ptr = (void *)(uintptr_t)memory}, memory != NULL);
  keep_failure(graph, (uint32_t)slot, result);
  gki_graph_leave(graph);
  return result;
}

gk_result gk_bind_int(gk_graph *graph, gk_slot slot, int64_t value) {
  gk_result result = gki_graph_enter(graph, "gk_bind_int");
  if (result != GK_OK) return result;
  const gk_slot_desc *desc = slot_of(graph, slot, "gk_bind_int", 1u << GK_I32 | 1u << GK_U32 | 1u << GK_I64);
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
  keep_failure(graph, (uint32_t)slot, result);
  gki_graph_leave(graph);
  return result;
}

gk_result gk_bind_float(gk_graph *graph, gk_slot slot, double value) {
  gk_result result = gki_graph_enter(graph, "gk_bind_float");
  if (result != GK_OK) return result;
  const gk_slot_desc *desc = slot_of(graph, slot, "gk_bind_float", 1u << GK_F32 | 1u << GK_F64);
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
  keep_failure(graph, (uint32_t)slot, result);
  gki_graph_leave(graph);
  return result;
}

gk_result gk_bind_bytes(gk_graph *graph, gk_slot slot, const void *value, size_t bytes) {
  gk_result result = gki_graph_enter(graph, "gk_bind_bytes");
  if (result != GK_OK) return result;
  const gk_slot_desc *desc = slot_of(graph, slot, "gk_bind_bytes", 1u << GK_BYTES);
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
    mark_changed(graph, (uint32_t)slot);
  }
  keep_failure(graph, (uint32_t)slot, result);
  gki_graph_leave(graph);
  return result;
}

/* Adds the owner's name to a failure of the device. */
static gk_result blame_slot(gk_result result, const char *call, uint32_t slot, const gk_slot_desc *desc, size_t count) {
  char why[GKI_MESSAGE_BYTES], text[GKI_MESSAGE_BYTES];
  gki_error_save(why, sizeof why);
  snprintf(text, sizeof text, "%s: slot %u (%s) with %zu elements: %.*s", call, (unsigned)slot, desc->name, count, 4096,
           why);
  return gki_fail_with(result, text);
}

/* Allocates memory with the first `kept` bytes of the old memory. The rest is zero. */
static gk_result alloc_memory(gk_graph *graph, const void *old, size_t kept, size_t bytes, void **memory) {
  gk_device *device = graph->device;
  if (owns_apart(graph) && !(old && gki_device_is_lent(device, old))) {
    gki_launches_wait_sent(graph);
    return gki_device_own(device, graph->state, old, kept, bytes, graph, memory);
  }
  gk_result result = gki_device_alloc(device, bytes, GK_DEVICE_MEMORY, graph, memory);
  if (result != GK_OK || !kept) return result;
  result = gki_device_copy(device, GK_ON_DEVICE, *memory, old, kept);
  if (result != GK_OK) free_memory(graph, *memory);
  return result;
}

/* New memory with the content of the old. The old memory is freed after the launches that may use it. */
static gk_result resize_memory(gk_graph *graph, const char *call, uint32_t slot, size_t count) {
  const gk_slot_desc *desc = &graph->planned.plan.slots[slot];
  gki_bound *bound = &graph->slots[slot];
  size_t element = desc->element_bytes ? desc->element_bytes : 1, bytes;
  if (!gki_multiply(count, element, &bytes) || bytes > PTRDIFF_MAX)
    return gk_fail(GK_ERROR_MEMORY, "%s: slot %u (%s): %zu elements of %zu bytes are more than there can be; make it "
                   "smaller", call, (unsigned)slot, desc->name, count, element);
  if (!bound->owned || bound->owned_count != count) {
    void *memory = NULL;
    const size_t kept = bound->owned_count < count ? bound->owned_count : count;
    const gk_result result = alloc_memory(graph, bound->owned, kept * element, bytes, &memory);
    if (result != GK_OK) return blame_slot(result, call, slot, desc, count);
    if (bound->owned) free_memory(graph, bound->owned);
    bound->owned = memory;
    bound->owned_count = count;
  }
  return bind_memory(graph, slot, bound->owned);
}

static gk_result resize(gk_graph *graph, const char *call, uint32_t slot, size_t count) {
  const gk_plan *plan = &graph->planned.plan;
  gki_trace_begin(count, "resize %s of %s", plan->slots[slot].name, plan->name);
  const gk_result result = resize_memory(graph, call, slot, count);
  gki_trace_end();
  return result;
}

gk_result gk_resize(gk_graph *graph, gk_slot slot, size_t count) {
  gk_result result = gki_graph_enter(graph, "gk_resize");
  if (result != GK_OK) return result;
  if (!slot_of(graph, slot, "gk_resize", 1u << GK_PTR)) result = GK_ERROR_INVALID;
  else if (graph->external && !gki_launches_over(graph)) /* gk's copies wouldn't wait for the caller's launches */
    result = gk_fail(GK_ERROR_BUSY, "gk_resize: graph %s is armed, and that launch isn't over; launch your exec if you "
                     "didn't, and wait for it", graph->planned.plan.name);
  else result = resize(graph, "gk_resize", (uint32_t)slot, count);
  keep_failure(graph, (uint32_t)slot, result);
  gki_graph_leave(graph);
  return result;
}

void *gk_bound(const gk_graph *graph, gk_slot slot) {
  gk_graph *entered = (gk_graph *)(uintptr_t)graph;
  if (gki_graph_enter(entered, "gk_bound") != GK_OK) return NULL;
  bool found = slot_of(graph, slot, "gk_bound", 1u << GK_PTR) != NULL;
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
    if (plan->slots[k].type != GK_NO_TYPE && strcmp(plan->slots[k].name, name) == 0) found = (gk_slot)k;
  gki_graph_leave(entered);
  return found;
}
