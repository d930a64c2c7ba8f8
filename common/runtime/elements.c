/* Reading and writing the elements of a slot's memory. */
#include "base/error.h"
#include "base/memory.h"
#include "runtime/bind.h"
#include "runtime/memory.h"
#include "runtime/wait.h"

/* Bytes behind the slot's address. SIZE_MAX: unknown. */
static gk_result capacity_of(gk_graph *graph, const char *call, gk_slot slot, size_t *capacity) {
  const gki_bound *bound = &graph->slots[slot];
  const char *name = graph->planned.plan.slots[slot].name;
  uint64_t block = 0;
  *capacity = bound->capacity;
  if (!bound->value.ptr)
    return gk_fail(GK_ERROR_INVALID, "%s: slot %d (%s) has no memory; call gk_bind or gk_resize before", call,
                   (int)slot, name);
  if (bound->block) *capacity = gki_device_capacity(graph->device, graph, bound->value.ptr, &block);
  if (block == bound->block) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "%s: slot %d (%s) is bound to memory that was freed; bind it again", call, (int)slot,
                 name);
}

static gk_result copy(gk_graph *graph, const char *call, gk_direction direction, gk_slot slot, void *host,
                      size_t count) {
  const gk_slot_desc *desc = gki_slot_find(graph, slot, call, 1u << GK_PTR);
  size_t capacity, bytes;
  if (!desc) return GK_ERROR_INVALID;
  if (count == 0) return GK_OK;
  const size_t element = desc->element_bytes ? desc->element_bytes : 1;
  if (!host)
    return gk_fail(GK_ERROR_INVALID, "%s: there is no host memory for slot %d (%s) (NULL); give %zu elements", call,
                   (int)slot, desc->name, count);
  gk_result result = capacity_of(graph, call, slot, &capacity);
  if (result != GK_OK) return result;
  if (!gki_multiply(count, element, &bytes) || bytes > capacity)
    return gk_fail(GK_ERROR_INVALID, "%s: slot %d (%s) has %zu element%s, not %zu; give no more than that", call,
                   (int)slot, desc->name, capacity / element, capacity / element == 1 ? "" : "s", count);
  if (graph->external && !gki_launches_over(graph)) /* gk's copies wouldn't wait for the caller's launches */
    return gk_fail(GK_ERROR_BUSY, "%s: graph %s is armed, and that launch isn't over; launch your exec if you didn't, "
                   "and wait for it", call, graph->planned.plan.name);
  void *memory = graph->slots[slot].value.ptr;
  const bool reads = direction == GK_TO_HOST;
  return gki_device_copy(graph->device, direction, reads ? host : memory, reads ? memory : host, bytes);
}

gk_result gk_read(gk_graph *graph, gk_slot slot, void *to, size_t count) {
  gk_result result = gki_graph_enter(graph, "gk_read");
  if (result != GK_OK) return result;
  result = copy(graph, "gk_read", GK_TO_HOST, slot, to, count);
  gki_graph_leave(graph);
  return result;
}

gk_result gk_write(gk_graph *graph, gk_slot slot, const void *from, size_t count) {
  gk_result result = gki_graph_enter(graph, "gk_write");
  if (result != GK_OK) return result;
  result = copy(graph, "gk_write", GK_TO_DEVICE, slot, (void *)(uintptr_t)from, count);
  gki_graph_leave(graph);
  return result;
}
