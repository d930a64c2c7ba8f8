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

gk_result gki_cuda_counts_check(gki_cuda_counts *counts, uint64_t number) {
  const uint64_t posted = counts->fixed ? counts->fixed : number;
  const gki_bad_count *post = &counts->posts->ring[place_of(posted)];
  if (__atomic_load_n(&post->number, __ATOMIC_ACQUIRE) != posted) return GK_OK;
  const gk_launch_args launch = {.values = counts->launches[place_of(number)].values,
                                 .capacity = counts->launches[place_of(number)].capacity};
  const gk_result result = gki_param_check(&counts->parameters->values, post, &launch);
  if (result != GK_OK) gki_cuda_counts_skip(counts);
  return result; /* GK_OK: a later launch under way, with the same `fixed`, posted it */
}
