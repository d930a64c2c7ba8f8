#include "cuda/slots.h"
#include "cuda/pool.h"

gk_result gki_cuda_slots_make(gki_cuda_slots *slots, gki_cuda_device *device, const gk_plan *plan, uint32_t depth,
                              gki_arena *arena) {
  *slots = (gki_cuda_slots){.device = device, .plan = plan};
  size_t ring = 0;
  void *memory = NULL;
  gk_result result = gki_slot_table_make(&slots->table, plan, depth, arena, &ring);
  if (result == GK_OK) result = gki_cuda_alloc_pinned(device, ring, "a graph's hand-over of slots", &memory, NULL);
  slots->table.ring = memory;
  return result;
}

void gki_cuda_slots_drop(gki_cuda_slots *slots) {
  if (slots->table.ring) gki_cuda_free_pinned(slots->device, slots->table.ring);
  slots->table.ring = NULL;
}

gk_result gki_cuda_slots_hand(const gki_cuda_slots *slots, const gk_launch_args *launch, uint64_t place,
                              CUstream stream) {
  if (!launch->changed_count) return GK_OK;
  size_t begin, end;
  const unsigned char *table = gki_slot_table_changed(&slots->table, launch, place, &begin, &end);
  const gki_cuda_driver *driver = slots->device->driver;
  const CUresult result = driver->cuMemcpyHtoDAsync(slots->table.at + begin, table + begin, end - begin, stream);
  if (result != CUDA_SUCCESS) gki_slot_table_forget_rooms(&slots->table);
  return gki_cuda_result(driver, result, "cuMemcpyHtoDAsync of %zu bytes of slots", end - begin);
}

gki_cuda_task gki_cuda_task_of(const gki_cuda_slots *slots, uint32_t at) {
  const gk_plan *plan = slots->plan;
  const gk_node *node = &plan->nodes[at];
  gki_cuda_task task = {.slots = slots->table.at, .number = slots->control, .pattern = node->pattern, .element = 1,
                        .node = at};
  for (int axis = 0; axis < 3; ++axis) {
    task.items[axis] = node->items[axis];
    if (node->items[axis] && plan->slots[node->items[axis]].type == GK_PTR) task.read |= 1u << axis;
  }
  for (uint32_t k = 0; k < node->arg_count && k < GKI_CUDA_ARGS; ++k) task.args[k] = plan->args[node->args + k];
  if (node->op == GK_OP_KERNEL) {
    task.offset = node->offset;
    return task;
  }
  for (uint32_t k = 0; node->items[0] && k < GKI_CUDA_ROOMS; ++k)
    task.args[GKI_CUDA_ROOMS + k] = slots->table.rooms[task.args[k < node->arg_count ? k : 0]];
  task.to_offset = node->offset;
  task.from_offset = node->from_offset;
  if (plan->slots[task.args[0]].element_bytes) task.element = plan->slots[task.args[0]].element_bytes;
  return task;
}
