#include "cuda/counts.h"
#include "base/error.h"
#include <stddef.h>

_Static_assert(offsetof(gki_task_control, number) == 0 && offsetof(gki_task_control, failed) == sizeof(uint64_t),
               "one copy brings both");

static uint32_t place_of(uint64_t number) { return (uint32_t)((number - 1) % GKI_LAUNCH_RING); }

void gki_cuda_counts_make(gki_cuda_counts *counts, const gki_cuda_parameters *parameters, void *posts, bool uncounted) {
  *counts = (gki_cuda_counts){.parameters = parameters, .posts = posts, .fixed = uncounted ? 1 : 0};
}

void gki_cuda_counts_expect(gki_cuda_counts *counts, const gk_launch_args *launch, uint64_t number) {
  counts->launches[place_of(number)].values = launch->values;
  counts->launches[place_of(number)].capacity = launch->capacity;
}

gk_result gki_cuda_counts_renumber(gki_cuda_counts *counts, CUstream stream) {
  if (!counts->changed) return GK_OK;
  const gki_cuda_slots *slots = counts->parameters->slots;
  const gki_cuda_driver *driver = slots->device->driver;
  gki_cuda_posts *posts = counts->posts;
  if (counts->restarts) {
    counts->fixed = 1;
    posts->ring[0].number = 0;
  }
  posts->begin[0] = counts->fixed;
  const CUresult result = driver->cuMemcpyHtoDAsync(slots->table.control, posts->begin, sizeof posts->begin, stream);
  counts->changed = result != CUDA_SUCCESS;
  return gki_cuda_result(driver, result, "cuMemcpyHtoDAsync of the number of graph %s", slots->plan->name);
}

void gki_cuda_counts_skip(gki_cuda_counts *counts) {
  if (!counts->fixed) return;
  ++counts->fixed;
  counts->changed = true;
}

/* The extents as the task has read them, and as the host knows them. */
static void read_extents(const gki_cuda_slots *slots, const gki_bad_count *post, const gk_value *values,
                         int64_t extent[3]) {
  const gk_node *node = &slots->plan->nodes[post->node];
  for (int axis = 0; axis < 3; ++axis) {
    const uint32_t slot = node->items[axis];
    if (!slot) extent[axis] = 1;
    else if (slots->plan->slots[slot].type == GK_PTR) extent[axis] = post->extent[axis];
    else extent[axis] = gki_slot_table_number(&slots->table, slot, values);
  }
}

gk_result gki_cuda_counts_check(gki_cuda_counts *counts, uint64_t number) {
  const uint64_t posted = counts->fixed ? counts->fixed : number;
  const gki_bad_count *post = &counts->posts->ring[place_of(posted)];
  if (__atomic_load_n(&post->number, __ATOMIC_ACQUIRE) != posted) return GK_OK;
  const gki_cuda_slots *slots = counts->parameters->slots;
  const gk_plan *plan = slots->plan;
  if (post->node >= plan->node_count)
    return gk_fail(GK_ERROR_DEVICE, "graph %s: a launch posted a bad count of a task that can't be (%u), so something "
                   "wrote over gk's memory on the device: look for a kernel that writes beyond its own, and close the "
                   "device", plan->name, (unsigned)post->node);
  const gk_launch_args launch = {.values = counts->launches[place_of(number)].values,
                               .capacity = counts->launches[place_of(number)].capacity};
  int64_t extent[3];
  read_extents(slots, post, launch.values, extent);
  uint64_t items;
  gk_result result = gk_check_count(plan, post->node, &launch, extent, &items);
  if (result == GK_OK) result = gki_param_check(&counts->parameters->values, post->node, launch.values);
  if (result != GK_OK) gki_cuda_counts_skip(counts);
  return result; /* GK_OK: a later launch under way, with the same `fixed`, posted it */
}
