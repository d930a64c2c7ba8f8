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

gk_result gki_cuda_slots_send(gki_cuda_slots *slots, const gk_launch_args *launch, uint64_t place, CUstream stream) {
  size_t begin, end;
  const unsigned char *table = gki_slot_table_changed(&slots->table, launch, place, &begin, &end);
  if (begin == end) return GK_OK;
  const gki_cuda_driver *driver = slots->device->driver;
  const CUresult result = driver->cuMemcpyHtoDAsync(slots->table.at + begin, table + begin, end - begin, stream);
  slots->table.is_sent = result == CUDA_SUCCESS;
  return gki_cuda_result(driver, result, "cuMemcpyHtoDAsync of %zu bytes of slots", end - begin);
}
