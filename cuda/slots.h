/* A graph's table of slots and records in device memory, which all its tasks read. One copy sends the changed range
 * from a ring in page-locked memory. parameters.h updates the nodes of handwritten kernels, which read no table. */
#ifndef GKI_CUDA_SLOTS_H
#define GKI_CUDA_SLOTS_H
#include "cuda/device.h"
#include "lower/slots.h"

typedef struct gki_cuda_slots {
  gki_cuda_device *device;
  const gk_plan *plan;
  gki_slot_table table; /* the owner of the device memory sets the addresses in it */
} gki_cuda_slots;

/* `depth` launches may be under way at once. In the device's context. All but the ring is in the arena. */
gk_result gki_cuda_slots_make(gki_cuda_slots *slots, gki_cuda_device *device, const gk_plan *plan, uint32_t depth,
                              gki_arena *arena);
/* In the device's context, after the last copy to the table has ended. Also after gki_cuda_slots_make failed. */
void gki_cuda_slots_drop(gki_cuda_slots *slots);

/* Sends the changed range to the table. Called before a launch. `place` is the launch's number minus 1. */
gk_result gki_cuda_slots_send(gki_cuda_slots *slots, const gk_launch_args *launch, uint64_t place, CUstream stream);
#endif
