#include "cuda/ahead.h"
#include "cuda/pool.h"
#include "lower/cancel.h"
#include "plan/walk.inc"
#include <string.h>

enum { STATES_AT = 2, WORD = sizeof(uint32_t) };

/* ---- making ------------------------------------------------------------------------------------------------------ */

static gk_result result_of(const gki_cuda_ahead *ahead, CUresult result, const char *call) {
  return gki_cuda_graph_result(ahead->device, ahead->points->plan, result, call);
}

/* The table is copied from the page-locked memory that holds states later. */
static gk_result send_table(gki_cuda_ahead *ahead, CUstream stream) {
  const gk_points *points = ahead->points;
  memcpy(ahead->pinned + STATES_AT, points->table, points->word_count * WORD);
  return result_of(ahead,
                   ahead->device->driver->cuMemcpyHtoDAsync(ahead->state + points->state_count * WORD,
                                                            ahead->pinned + STATES_AT, points->word_count * WORD,
                                                            stream),
                   "cuMemcpyHtoDAsync of the table of points");
}

gk_result gki_cuda_ahead_make(gki_cuda_ahead *ahead, gki_cuda_device *device, const gk_plan *plan, CUstream stream) {
  const gk_points *points;
  if (gk_plan_points(plan, &points) != GK_OK) return GK_ERROR_MEMORY;
  const size_t states = (size_t)GKI_CUDA_TAPES * points->state_count, table = points->word_count;
  void *pinned = NULL;
  ahead->device = device;
  ahead->points = points;
  gk_result result = gki_cuda_alloc_device(device, (points->state_count + table) * WORD, "a graph's points",
                                           &ahead->state);
  if (result == GK_OK)
    result = gki_cuda_alloc_pinned(device, (STATES_AT + (states > table ? states : table)) * WORD,
                                   "a graph's states", &pinned, &ahead->pinned_at);
  ahead->pinned = pinned;
  for (uint32_t k = 0; k < GKI_CUDA_TAPES && result == GK_OK; ++k) {
    CUevent event;
    result = result_of(ahead,
                       device->driver->cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING),
                       "cuEventCreate");
    if (result == GK_OK) ahead->ends[k] = event;
  }
  return result == GK_OK ? send_table(ahead, stream) : result;
}

void gki_cuda_ahead_drop(gki_cuda_ahead *ahead) {
  for (uint32_t k = 0; k < GKI_CUDA_TAPES; ++k)
    if (ahead->ends[k]) (void)ahead->device->driver->cuEventDestroy(ahead->ends[k]);
  if (!ahead->points) return;
  gki_cuda_free_device(ahead->device, ahead->state);
  gki_cuda_free_pinned(ahead->device, ahead->pinned);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

CUdeviceptr gki_cuda_ahead_guard(const gki_cuda_ahead *ahead, uint32_t run) {
  const gk_points *points = ahead->points;
  if (!points || run == points->plan->run_count) return 0;
  return ahead->state + (points->table[points->runs[run] + GKW_RECORD] + GKW_TASKS) * WORD;
}

gk_result gki_cuda_ahead_add(const gki_cuda_ahead *ahead, gki_cuda_frontier *f, CUgraph into, uint32_t run,
                             uint32_t task) {
  const gk_points *points = ahead->points;
  uint32_t point = run < points->plan->run_count ? points->runs[run] : GKW_NONE;
  CUdeviceptr table = ahead->state + points->state_count * WORD, state = ahead->state, cancelled = ahead->pinned_at;
  uint64_t slots = f->slots->table.at;
  void *parameters[] = {&table, &state, &slots, &cancelled, &point};
  return gki_cuda_add_kernel(f, into, task, 0, f->device->ahead, 1, 1, parameters, NULL);
}

/* ---- launching --------------------------------------------------------------------------------------------------- */

gk_result gki_cuda_ahead_begin(gki_cuda_ahead *ahead, const gk_launch_args *launch, CUstream stream) {
  const size_t bytes = ahead->points->state_count * WORD;
  uint32_t *from = ahead->pinned + STATES_AT;
  ahead->first = ahead->under_way = 0;
  gki_cancel_begin(ahead->pinned, launch);
  memcpy(from, launch->state, bytes);
  return result_of(ahead, ahead->device->driver->cuMemcpyHtoDAsync(ahead->state, from, bytes, stream),
                   "cuMemcpyHtoDAsync of the state");
}

void gki_cuda_ahead_cancel(const gki_cuda_ahead *ahead) { gki_cancel_set(ahead->pinned); }

static uint32_t *place_of(const gki_cuda_ahead *ahead, uint32_t place) {
  return ahead->pinned + STATES_AT + (size_t)place * ahead->points->state_count;
}

gk_result gki_cuda_ahead_end_tape(gki_cuda_ahead *ahead, CUstream stream) {
  const gki_cuda_driver *driver = ahead->device->driver;
  const uint32_t place = (ahead->first + ahead->under_way) % GKI_CUDA_TAPES;
  gk_result result = result_of(ahead,
                               driver->cuMemcpyDtoHAsync(place_of(ahead, place), ahead->state,
                                                         ahead->points->state_count * WORD, stream),
                               "cuMemcpyDtoHAsync of the state");
  if (result == GK_OK) result = result_of(ahead, driver->cuEventRecord(ahead->ends[place], stream), "cuEventRecord");
  if (result == GK_OK) ++ahead->under_way;
  return result;
}

CUevent gki_cuda_ahead_take(gki_cuda_ahead *ahead, const uint32_t **state) {
  const uint32_t place = ahead->first;
  ahead->first = (place + 1) % GKI_CUDA_TAPES;
  --ahead->under_way;
  *state = place_of(ahead, place);
  return ahead->ends[place];
}
