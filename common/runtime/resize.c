/* Memory that a graph owns for its slots: making, growing and freeing it. */
#include "runtime/resize.h"
#include "base/error.h"
#include "base/trace.h"
#include "runtime/bind.h"
#include "runtime/memory.h"
#include "runtime/wait.h"

/* Whether the backend's `own` and `disown` allocate and free the graph's memory; then gk_resize waits for no other
 * graph. Not if the caller launches the graph, since launches may be under way on any stream. */
static bool owns_apart(const gk_graph *graph) { return graph->device->backend->own && !graph->external; }

/* Frees memory that no launch of the graph uses. */
static void free_memory(const gk_graph *graph, void *memory) {
  gki_device_free(graph->device, memory, graph, owns_apart(graph));
}

void gki_slots_free(gk_graph *graph) {
  if (!graph->slots) return;
  if (graph->passes) gki_device_free(graph->device, graph->passes, graph, false);
  graph->passes = NULL;
  for (uint32_t k = 1; k < graph->planned.plan.slot_count; ++k) {
    if (graph->slots[k].owned) free_memory(graph, graph->slots[k].owned);
    graph->slots[k].owned = NULL;
  }
}

/* Adds the owner's name to a failure of the device. */
static gk_result fail_slot(gk_result result, const char *call, uint32_t slot, const gk_slot_desc *desc, size_t count) {
  return gki_fail_with_prefix(result, "%s: slot %u (%s) with %zu elements", call, (unsigned)slot, desc->name, count);
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
    if (result != GK_OK) return fail_slot(result, call, slot, desc, count);
    if (bound->owned) free_memory(graph, bound->owned);
    bound->owned = memory;
    bound->owned_count = count;
  }
  return gki_slot_bind_memory(graph, slot, bound->owned);
}

gk_result gki_slot_resize(gk_graph *graph, const char *call, uint32_t slot, size_t count) {
  const gk_plan *plan = &graph->planned.plan;
  gki_trace_begin(count, "resize %s of %s", plan->slots[slot].name, plan->name);
  const gk_result result = resize_memory(graph, call, slot, count);
  gki_trace_end();
  return result;
}

gk_result gk_resize(gk_graph *graph, gk_slot slot, size_t count) {
  gk_result result = gki_graph_enter(graph, "gk_resize");
  if (result != GK_OK) return result;
  if (!gki_slot_find(graph, slot, "gk_resize", 1u << GK_PTR)) result = GK_ERROR_INVALID;
  else if (graph->external && !gki_launches_over(graph)) /* gk's copies wouldn't wait for the caller's launches */
    result = gk_fail(GK_ERROR_BUSY, "gk_resize: graph %s is armed, and that launch isn't over; launch your exec if you "
                     "didn't, and wait for it", graph->planned.plan.name);
  else result = gki_slot_resize(graph, "gk_resize", (uint32_t)slot, count);
  gki_slot_keep_failure(graph, (uint32_t)slot, result);
  gki_graph_leave(graph);
  return result;
}
