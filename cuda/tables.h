/* The gates of a plan as control kernels read them: writes the tables of gates.h in host memory, for one copy to the
 * device. All addresses in them are the device's. */
#ifndef GKI_CUDA_TABLES_H
#define GKI_CUDA_TABLES_H
#include "gk_gates.h"
#include "cuda/abi.h"
#include "cuda/gates.h"

/* The offsets of a graph's parts in its block of device memory. gki_cuda_tables is at 0. */
typedef struct gki_cuda_layout {
  size_t points, exits, reenables, closes, blocks, targets, handles;
  size_t guards; /* the last part, and the only one that kernels write */
  size_t bytes; /* of all; the block is aligned to 256 bytes */
} gki_cuda_layout;

/* Computes the offsets; writes nothing. */
gki_cuda_layout gki_cuda_tables_lay_out(const gk_gates *gates);

/* The block of device memory that all graphs of a plan share. gki_cuda_control is at 0. */
typedef struct gki_cuda_shared {
  size_t loops, ran;
  size_t slots;          /* the table of slots; the last part, written by the host */
  size_t bytes;          /* of all */
  uint32_t status_bytes; /* of one launch's status */
} gki_cuda_shared;

/* GK_ERROR_MEMORY: a launch's status is larger than 4 GB. */
gk_result gki_cuda_shared_lay_out(const gk_plan *plan, gki_cuda_shared *shared);

/* The offset of the passes of a loop's entry, whose lower half is the pass number. */
static inline size_t gki_cuda_entry_at(const gki_cuda_shared *shared, uint32_t loop) {
  return shared->loops + loop * sizeof(gki_cuda_loop) + offsetof(gki_cuda_loop, entry);
}

/* Writes all of shared->bytes, as before the first launch, with slots of 0.
 * @param failures  The address of GKI_LAUNCH_RING times gki_bad_count.
 * @param arms      GKI_CUDA_WITH_ARMING. */
void gki_cuda_shared_write(const gki_cuda_shared *shared, uint64_t failures, bool arms, void *memory);

/* Addresses that the tables contain. */
typedef struct gki_cuda_places {
  uint64_t tables;  /* the graph's block */
  uint64_t control; /* the shared block */
  uint64_t cancel;  /* uint64_t in page-locked memory */
  uint64_t status;  /* GKI_LAUNCH_RING times status_bytes in page-locked memory */
} gki_cuda_places;

/* Writes all of layout->bytes.
 * @param handles  gates->handle_count handles, by number. */
void gki_cuda_tables_write(const gk_gates *gates, const gki_cuda_layout *layout, const gki_cuda_shared *shared,
                           const gki_cuda_places *places, const CUgraphConditionalHandle *handles, void *memory);

/* The parts of a posted status: passes by loop, a byte per loop (it hit its bound), a byte per checkpoint (it ran). */
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
