/* Whether a launch may run with the values bound to a graph's slots. The result holds until the next bind. */
#include "runtime/bind_check.h"
#include "base/sort.h"
#include "check/overlap.h"
#include "plan/node.h"
#include "runtime/bind.h"
#include "runtime/memory.h"

/* The first task that needs this alignment of the slot, or its room, for a message. */
static const gk_node *user_of(const gk_graph *graph, uint32_t slot, uint32_t alignment) {
  const gk_plan *plan = &graph->planned.plan;
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const gk_node *node = &plan->nodes[k];
    bool flag = node->flag == slot || node->items[0] == slot || node->items[1] == slot || node->items[2] == slot;
    bool uses = flag && alignment <= sizeof(int32_t);
    for (uint32_t a = 0; a < node->arg_count; ++a)
      uses = uses || (plan->args[node->args + a] == slot && alignment <= gki_argument_alignment(node, a));
    if (uses) return node;
  }
  for (uint32_t k = 1; k < plan->slot_count; ++k)
    if (plan->slots[k].bits & GK_IS_ROOM && (uint32_t)plan->slots[k].value.i32 == slot && graph->slots[k].used)
      return user_of(graph, k, 0);
  return &plan->nodes[0];
}

/* Whether a bound number says that the kernel has no items. */
static bool has_no_items(const gk_graph *graph, const gk_node *node) {
  for (uint32_t d = 0; d < 3; ++d) {
    uint32_t slot = node->items[d];
    if (slot && graph->planned.plan.slots[slot].type != GK_PTR && graph->slots[slot].bound &&
        gki_number(&graph->planned.plan, slot, graph->slots[slot].value) <= 0)
      return true;
  }
  return false;
}

/* The first task that needs the slot's memory in a launch; NULL: none. The memory that a COPY or FILL of several
 * elements touches is known only when the launch reaches it. */
static const gk_node *first_need(const gk_graph *graph, uint32_t slot) {
  const gk_plan *plan = &graph->planned.plan;
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const gk_node *node = &plan->nodes[k];
    if (node->flag == slot || node->items[0] == slot || node->items[1] == slot || node->items[2] == slot) return node;
    if (node->op == GK_OP_KERNEL ? has_no_items(graph, node) : node->op != GK_OP_CALL && node->items[0]) continue;
    for (uint32_t a = 0; a < node->arg_count; ++a)
      if (plan->args[node->args + a] == slot) return node;
  }
  return NULL;
}

static gk_result refuse_room(const gk_graph *graph, const char *call, uint32_t slot, const gk_node *node) {
  const gk_plan *plan = &graph->planned.plan;
  const gk_slot_desc *room = &plan->slots[slot], *buffer = &plan->slots[room->value.i32];
  char title[GKI_TITLE_BYTES];
  size_t count;
  (void)gki_slot_room(graph, slot, &count);
  gki_node_title(node, title, sizeof title);
  if (graph->slots[room->value.i32].capacity != SIZE_MAX)
    return gk_fail(GK_ERROR_INVALID, "%s: slot %u (%s) is the room of slot %d (%s), which has %zu elements, more than "
                   "its type holds, and %s uses it; make it a GK_I64, or the memory smaller", call, (unsigned)slot,
                   room->name, (int)room->value.i32, buffer->name, count, title);
  return gk_fail(GK_ERROR_INVALID, "%s: slot %u (%s) is the room of slot %d (%s), whose memory isn't gk's and has no "
                 "known size, and %s uses it; call gk_resize, bind memory of gk_alloc, or make the slot a GK_SCALAR",
                 call, (unsigned)slot, room->name, (int)room->value.i32, buffer->name, title);
}

/* A slot bound to NULL has memory of 0 bytes. */
static gk_result refuse_unbound(const gk_graph *graph, const char *call) {
  const gk_plan *plan = &graph->planned.plan;
  for (uint32_t k = 1; k < plan->slot_count; ++k) {
    if (!graph->slots[k].used || graph->slots[k].bound || plan->slots[k].type == GK_HOST_PTR) continue;
    const gk_node *node = plan->slots[k].type == GK_PTR ? first_need(graph, k) : user_of(graph, k, 0);
    if (!node) continue;
    if (plan->slots[k].bits & GK_IS_ROOM) return refuse_room(graph, call, k, node);
    char title[GKI_TITLE_BYTES];
    const char *fix = plan->slots[k].type == GK_PTR     ? "gk_bind or gk_resize"
                      : plan->slots[k].type == GK_BYTES ? "gk_bind_bytes"
                      : plan->slots[k].type >= GK_F32   ? "gk_bind_float"
                                                        : "gk_bind_int";
    return gk_fail(GK_ERROR_INVALID, "%s: slot %u (%s) is not bound%s, and %s uses it; call %s before", call,
                   (unsigned)k, plan->slots[k].name, plan->slots[k].type == GK_PTR ? ", or is bound to NULL" : "",
                   gki_node_title(node, title, sizeof title), fix);
  }
  return GK_OK;
}

/* Blocks have numbers, so a freed block is noticed even if another block has its address now. */
static gk_result refuse_freed(gk_graph *graph, const char *call) {
  const uint64_t freed = atomic_load_explicit(&graph->device->bound_freed, memory_order_relaxed);
  if (freed == graph->freed) return GK_OK;
  const gk_plan *plan = &graph->planned.plan;
  for (uint32_t k = 0; k < graph->pointer_count; ++k) {
    uint32_t slot = graph->by_address[k];
    const gki_bound *bound = &graph->slots[slot];
    uint64_t number = 0;
    if (bound->block) gki_device_capacity(graph->device, graph, bound->value.ptr, &number);
    if (number == bound->block) continue;
    const gk_node *node = user_of(graph, slot, 0);
    char title[GKI_TITLE_BYTES];
    return gk_fail(GK_ERROR_INVALID,
                   "%s: the memory that slot %u (%s) is bound to was freed, and %s uses it; bind other "
                   "memory, or free it after the launch",
                   call, (unsigned)slot, plan->slots[slot].name, gki_node_title(node, title, sizeof title));
  }
  graph->freed = freed;
  return GK_OK;
}

static const char *advice_when_short(const gki_bound *bound) {
  return bound->owned && bound->value.ptr == bound->owned ? "call gk_resize before" : "bind larger memory";
}

/* The size of gk's memory is known; the size of other memory is trusted. */
static gk_result refuse_short(const gk_graph *graph, const char *call) {
  const gk_plan *plan = &graph->planned.plan;
  for (uint32_t k = 1; k < plan->slot_count; ++k) {
    const gki_bound *bound = &graph->slots[k];
    if (plan->slots[k].type != GK_PTR || bound->reach <= bound->capacity) continue;
    const gk_node *node = &plan->nodes[bound->reached_by];
    char title[GKI_TITLE_BYTES];
    return gk_fail(GK_ERROR_INVALID,
                   "%s: slot %u (%s) has %zu bytes, and %s touches byte %zu; correct its offset, or %s", call,
                   (unsigned)k, plan->slots[k].name, bound->capacity, gki_node_title(node, title, sizeof title),
                   bound->reach - 1, advice_when_short(bound));
  }
  return GK_OK;
}

static gk_result refuse_unaligned(const gk_graph *graph, const char *call) {
  const gk_plan *plan = &graph->planned.plan;
  for (uint32_t k = 0; k < graph->pointer_count; ++k) {
    uint32_t slot = graph->by_address[k], alignment = graph->slots[slot].alignment;
    if (alignment < 2 || (uintptr_t)graph->slots[slot].value.ptr % alignment == 0) continue;
    const gk_node *node = user_of(graph, slot, alignment);
    char title[GKI_TITLE_BYTES];
    return gk_fail(GK_ERROR_INVALID,
                   "%s: slot %u (%s) is bound to an address that is no multiple of %u, as %s needs it; "
                   "bind one that is",
                   call, (unsigned)slot, plan->slots[slot].name, (unsigned)alignment,
                   gki_node_title(node, title, sizeof title));
  }
  return GK_OK;
}

/* The end of the memory that a slot always touches: all of the graph's own, or one element of other memory; 0: none. */
static uintptr_t end_of(const gk_graph *graph, uint32_t slot) {
  const gki_bound *bound = &graph->slots[slot];
  if (!bound->value.ptr) return 0;
  size_t element = graph->planned.plan.slots[slot].element_bytes;
  if (!element) element = 1;
  size_t bytes = bound->value.ptr == bound->owned && bound->owned ? bound->owned_count * element : element;
  return (uintptr_t)bound->value.ptr + bytes;
}

/* ---- slots by address -------------------------------------------------------------------------------------------- */

static bool lies_before(const void *user, uint32_t a, uint32_t b) {
  const gk_graph *graph = user;
  uintptr_t at_a = (uintptr_t)graph->slots[a].value.ptr, at_b = (uintptr_t)graph->slots[b].value.ptr;
  return at_a != at_b ? at_a < at_b : a < b;
}

/* Sorts by insertion, since few slots change between launches. False: that would take too many moves. */
static bool sort_few(const gk_graph *graph, uint32_t *order) {
  enum { MOVES = 16 /* a heap sort costs about as many per slot */ };
  uint64_t moves = (uint64_t)MOVES * graph->pointer_count;
  for (uint32_t k = 1; k < graph->pointer_count; ++k) {
    uint32_t slot = order[k], at = k;
    for (; at > 0 && moves > 0 && lies_before(graph, slot, order[at - 1]); --at, --moves) order[at] = order[at - 1];
    order[at] = slot;
    if (moves == 0) return false;
  }
  return true;
}

/* Once slots are sorted by address, all slots between two that share memory share it, too. */
static gk_result refuse_overlap(gk_graph *graph, const char *call) {
  uint32_t *order = graph->by_address;
  if (!sort_few(graph, order)) gki_sort(order, graph->pointer_count, lies_before, graph);
  for (uint32_t k = 0; k < graph->pointer_count; ++k)
    for (uint32_t j = k + 1; j < graph->pointer_count; ++j) {
      uint32_t a = order[k], b = order[j];
      uintptr_t begin = (uintptr_t)graph->slots[b].value.ptr;
      if (begin >= end_of(graph, a)) break;
      if (!graph->slots[a].written && !graph->slots[b].written) continue;
      char why[1024];
      if (end_of(graph, b) > begin && gki_check_overlap(&graph->planned.plan, a, b, why, sizeof why))
        return gk_fail(GK_ERROR_INVALID, "%s: slots %u (%s) and %u (%s) are bound to overlapping memory: %s", call,
                       (unsigned)a, graph->planned.plan.slots[a].name, (unsigned)b, graph->planned.plan.slots[b].name,
                       why);
    }
  return GK_OK;
}

/* Reports the first failure. If that slot was bound successfully since, reports another one. */
static gk_result report_failure(gk_graph *graph, const char *call) {
  const gk_plan *plan = &graph->planned.plan;
  uint32_t slot = graph->failed_slot;
  const bool is_kept = graph->slots[slot].failed != GK_OK;
  for (slot = is_kept ? slot : 0; graph->slots[slot].failed == GK_OK;) ++slot;
  const gk_result result = graph->slots[slot].failed;
  if (is_kept) gk_fail(result, "%s: a call before it failed: %s", call, graph->failed_message);
  else if (slot == 0 || plan->slots[slot].type == GK_NO_TYPE)
    gk_fail(result, "%s: a call before it failed: it named a slot that graph %s doesn't have; take one of its list's, "
            "numbered up to %u", call, plan->name, (unsigned)gki_slots_end(plan) - 1);
  else
    gk_fail(result, "%s: a call before it failed: it was to bind slot %u (%s), and its message said why; bind that "
            "slot", call, (unsigned)slot, plan->slots[slot].name);
  for (uint32_t k = 0; k < plan->slot_count; ++k) graph->slots[k].failed = GK_OK;
  graph->failed_count = 0;
  return result;
}

gk_result gki_bindings_check(gk_graph *graph, const char *call) {
  if (graph->failed_count) return report_failure(graph, call);
  if (atomic_load_explicit(&graph->device->bound_freed, memory_order_relaxed) != graph->freed) graph->dirty = true;
  if (!graph->dirty) return GK_OK;
  gk_result result = refuse_unbound(graph, call);
  if (result == GK_OK) result = refuse_freed(graph, call);
  if (result == GK_OK) result = refuse_short(graph, call);
  if (result == GK_OK) result = refuse_unaligned(graph, call);
  if (result == GK_OK) result = refuse_overlap(graph, call);
  graph->dirty = result != GK_OK;
  return result;
}
