/* Makes a graph's slots: their first values, and how the tasks use each. */
#include "runtime/slots.h"
#include "base/error.h"
#include "base/op.h"
#include "plan/node.h"
#include "runtime/bind.h"
#include "runtime/memory.h"
#include "runtime/resize.h"
#include <string.h>

/* The use of a room is one of its buffer, whose memory must not have been freed. */
static void note_use(gk_graph *graph, uint32_t slot, uint32_t alignment) {
  const gk_slot_desc *desc = &graph->planned.plan.slots[slot];
  if (!slot) return;
  if (desc->bits & GK_IS_ROOM) graph->slots[desc->value.i32].used = true;
  graph->slots[slot].used = true;
  if (graph->slots[slot].alignment < alignment) graph->slots[slot].alignment = alignment;
}

static bool writes(const gk_node *node, uint32_t arg) {
  if (node->op == GK_OP_COPY || node->op == GK_OP_FILL) return arg == 0;
  return gki_op_is_call(node->op) || node->kernel->params[arg].access > GK_ACCESS_IN;
}

static void note_reach(gk_graph *graph, uint32_t slot, uint32_t node, size_t bytes) {
  gki_bound *bound = &graph->slots[slot];
  if (graph->planned.plan.slots[slot].type != GK_PTR || bytes <= bound->reach) return;
  bound->reach = bytes;
  bound->reached_by = node;
}

/* Notes the use, alignment and writes of a node's slots, and the memory that it touches whatever its kernel does:
 * flags, counts read on the device, and one element of a copy or fill, at their offsets. */
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
    total += gki_struct_align(bytes);
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

/* Memory that was never bound has no elements. */
static void make_rooms(gk_graph *graph) {
  const gk_plan *plan = &graph->planned.plan;
  for (uint32_t k = plan->slot_count; k-- > 1;) {
    if (!(plan->slots[k].bits & GK_IS_ROOM)) continue;
    gki_bound *buffer = &graph->slots[plan->slots[k].value.i32];
    graph->slots[k].room = buffer->room;
    graph->slots[k].bound = true;
    buffer->room = k;
  }
}

gk_result gki_slots_make(gk_graph *graph) {
  const gk_plan *plan = &graph->planned.plan;
  graph->slots = gki_arena_alloc(&graph->arena, plan->slot_count, sizeof *graph->slots);
  graph->changed = gki_arena_alloc(&graph->arena, plan->slot_count, sizeof *graph->changed);
  graph->by_address = gki_arena_alloc(&graph->arena, plan->slot_count, sizeof *graph->by_address);
  graph->failed_message = gki_array(GKI_FAILED_BYTES, 1, "messages of a graph");
  if (!graph->slots || !graph->changed || !graph->by_address)
    return gki_fail_memory("a graph's slots", plan->slot_count * sizeof *graph->slots);
  if (!graph->failed_message) return GK_ERROR_MEMORY;
  for (uint32_t k = 0; k < plan->node_count; ++k) note_node(graph, k);
  make_rooms(graph);
  gk_result result = lay_out_bytes(graph);
  if (result == GK_OK) result = find_measured(graph);
  for (uint32_t k = 1; k < plan->slot_count && result == GK_OK; ++k) {
    const gk_slot_desc *desc = &plan->slots[k];
    if (desc->type == GK_PTR && graph->slots[k].used) graph->by_address[graph->pointer_count++] = k;
    if (desc->bits & GK_HAS_VALUE) {
      graph->slots[k].value = desc->value;
      graph->slots[k].bound = true;
    }
    if (desc->bits & GK_IS_PASS) {
      graph->slots[k].capacity = sizeof(int32_t);
      gki_slot_update_rooms(graph, k);
    }
    gki_slot_mark_changed(graph, k);
    if (desc->count > 0) result = gki_slot_resize(graph, "gk_graph_create", k, desc->count);
  }
  return result;
}

/* ---- pass numbers ------------------------------------------------------------------------------------------------ */

/* Batched: common keeps the numbers, in memory that it writes without a copy if the host can reach any. */
static gk_result make_own_passes(gk_graph *graph) {
  const gk_backend *backend = graph->device->backend;
  void *memory = NULL;
  if (graph->passes) return GK_OK;
  const gk_result result = gki_device_alloc(graph->device, graph->planned.plan.loop_count * sizeof *graph->passes,
                                            backend->host_address ? GK_HOST_MEMORY : GK_DEVICE_MEMORY, graph, &memory);
  graph->passes = memory;
  return result;
}

/* Where the device finds the pass number of the loop at `node`. */
static gk_result find_pass(gk_graph *graph, uint32_t node, const gk_slot_desc *desc, void **at) {
  const gk_backend *backend = graph->device->backend;
  const gk_node *loop = &graph->planned.plan.nodes[node];
  const int is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
  if (graph->mode == GK_MODE_IN_PROCESS) {
    *at = (int32_t *)(void *)&graph->entries[loop->loop] + is_big_endian;
    return GK_OK;
  }
  if (graph->mode == GK_MODE_BATCHED) {
    const gk_result result = make_own_passes(graph);
    if (result == GK_OK) *at = graph->passes + loop->loop;
    return result;
  }
  *at = backend->pass ? backend->pass(graph->state, node) : NULL;
  if (*at) return GK_OK;
  return gk_fail(GK_ERROR_UNSUPPORTED, "slot %d (%s) is the pass number of %s, and backend %s, which decides on the "
                 "device, has none; create the graph with GK_HOST_GATED, or count in memory of your own",
                 (int)desc->slot, desc->name, loop->name, backend->name);
}

gk_result gki_passes_make(gk_graph *graph) {
  const gk_plan *plan = &graph->planned.plan;
  gk_result result = GK_OK;
  for (uint32_t k = 1; k < plan->slot_count && result == GK_OK; ++k) {
    const gk_slot_desc *desc = &plan->slots[k];
    gki_bound *bound = &graph->slots[k];
    if (!(desc->bits & GK_IS_PASS)) continue;
    result = find_pass(graph, (uint32_t)desc->value.i32, desc, &bound->value.ptr);
    bound->bound = result == GK_OK;
  }
  return result;
}

gk_result gki_pass_write(const gk_graph *graph, uint32_t loop, uint64_t number) {
  const gk_backend *backend = graph->device->backend;
  const int32_t low = (int32_t)(uint32_t)number;
  void *at = graph->passes + loop;
  void *here = backend->host_address ? backend->host_address(graph->device->state, at) : NULL;
  if (!here) return backend->copy(graph->device->state, GK_TO_DEVICE, at, &low, sizeof low);
  memcpy(here, &low, sizeof low);
  return GK_OK;
}
