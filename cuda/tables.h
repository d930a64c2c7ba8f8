/* The gates of a plan as control kernels read them: the tables of gates.h, made in host memory for one copy to the
 * device. All addresses in them are the device's. */
#ifndef GKI_CUDA_TABLES_H
#define GKI_CUDA_TABLES_H
#include "gk_gates.h"
#include "cuda/abi.h"
#include "cuda/gates.h"

/* Where a graph's parts stand in its piece of device memory: gki_cuda_tables is at 0. */
typedef struct gki_cuda_layout {
  size_t points, exits, reenables, closes, blocks, targets, handles;
  size_t guards; /* the last, the only part that kernels write */
  size_t bytes; /* of all; the piece must lie at a multiple of 256 bytes */
} gki_cuda_layout;

/* Where the tables of these gates go; nothing is written. */
gki_cuda_layout gki_cuda_tables_lay_out(const gk_gates *gates);

/* What all graphs of a plan share, in one piece of device memory: gki_cuda_control is at 0. */
typedef struct gki_cuda_shared {
  size_t loops, ran;
  size_t slots;          /* gk_value by slot; the last, written by the host */
  size_t bytes;          /* of all */
  uint32_t status_bytes; /* of one launch's status */
} gki_cuda_shared;

/* GK_ERROR_MEMORY: a launch's status would be larger than 4 GB. */
gk_result gki_cuda_shared_lay_out(const gk_plan *plan, gki_cuda_shared *shared);

/* Writes all of shared->bytes, as it is before the first launch; slots are zero. failures: where bad counts are posted;
 * arms: GKI_CUDA_WITH_ARMING. */
void gki_cuda_shared_write(const gki_cuda_shared *shared, uint64_t failures, bool arms, void *memory);

/* What the tables lead to. */
typedef struct gki_cuda_places {
  uint64_t tables;  /* where the piece will be */
  uint64_t control; /* where the shared one is */
  uint64_t cancel;  /* uint64_t in pinned memory */
  uint64_t status;  /* GKI_LAUNCH_RING times status_bytes in pinned memory */
} gki_cuda_places;

/* Writes all of layout->bytes.
 * handles: by number, gates->handle_count of them. */
void gki_cuda_tables_write(const gk_gates *gates, const gki_cuda_layout *layout, const gki_cuda_shared *shared,
                           const gki_cuda_places *places, const CUgraphConditionalHandle *handles, void *memory);

/* Of a posted status: passes by loop, a byte per loop that hit its bound, a byte per checkpoint that ran. */
static inline const uint64_t *gki_cuda_status_passes(const gki_cuda_status *status) {
  return (const uint64_t *)(status + 1);
}
static inline const uint8_t *gki_cuda_status_bounds(const gk_plan *plan, const gki_cuda_status *status) {
  return (const uint8_t *)(gki_cuda_status_passes(status) + plan->loop_count);
}
static inline const uint8_t *gki_cuda_status_ran(const gk_plan *plan, const gki_cuda_status *status) {
  return gki_cuda_status_bounds(plan, status) + plan->loop_count;
}
#endif
