/* What a host-gated graph needs for runs that are enqueued ahead of the decisions (gk_ahead.h): the table of points and
 * the state on the device, and the control kernel behind each run. */
#ifndef GKI_CUDA_AHEAD_H
#define GKI_CUDA_AHEAD_H
#include "cuda/frontier.h"
#include "gk_ahead.h"

enum { GKI_CUDA_TAPES = 2 }; /* that may be under way */

typedef struct gki_cuda_ahead {
  gki_cuda_device *device;
  const gk_points *points; /* NULL: the host decides */
  CUdeviceptr state;       /* the table is behind it */
  uint32_t *pinned;        /* [0]: 1 for a cancel; [1] is unused; then a state per tape */
  CUdeviceptr pinned_at;
  CUevent ends[GKI_CUDA_TAPES]; /* behind each tape's copy of the state */
  uint32_t first, under_way;    /* place of the oldest tape under way, and their number */
} gki_cuda_ahead;

/* The table is on its way to the device until the stream's work is over. In the device's context. After a failure
 * gki_cuda_ahead_drop frees what was made. */
gk_result gki_cuda_ahead_make(gki_cuda_ahead *ahead, gki_cuda_device *device, const gk_plan *plan, CUstream stream);
void gki_cuda_ahead_drop(gki_cuda_ahead *ahead); /* does nothing if nothing was made */

/* The address of the word that gates a run's tasks; 0: nothing gates them. */
CUdeviceptr gki_cuda_ahead_guard(const gki_cuda_ahead *ahead, uint32_t run);
/* Adds the control kernel behind a run; with the plan's run_count as `run`, one that follows no run.
 * @param task  For messages. */
gk_result gki_cuda_ahead_add(const gki_cuda_ahead *ahead, gki_cuda_frontier *f, CUgraph into, uint32_t run,
                             uint32_t task);

/* Sends the state. No earlier launch is under way. */
gk_result gki_cuda_ahead_begin(gki_cuda_ahead *ahead, const gk_launch_args *launch, CUstream stream);
/* Stops the launch under way, but none that begins later. Any thread at any time. */
void gki_cuda_ahead_cancel(const gki_cuda_ahead *ahead);
/* Puts the copy of the state behind a tape. */
gk_result gki_cuda_ahead_end_tape(gki_cuda_ahead *ahead, CUstream stream);
/* Takes the oldest tape. @param state  Valid once the event has passed, until the next tape but one. */
CUevent gki_cuda_ahead_take(gki_cuda_ahead *ahead, const uint32_t **state);
#endif
