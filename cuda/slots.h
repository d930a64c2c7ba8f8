/* A graph's table of slots in device memory, which all its tasks read. One asynchronous copy sends the changed range,
 * from a ring in page-locked memory. */
#ifndef GKI_CUDA_SLOTS_H
#define GKI_CUDA_SLOTS_H
#include "cuda/device.h"
#include "lower/slots.h"

typedef struct gki_cuda_slots {
  gki_cuda_device *device;
  const gk_plan *plan;
  gki_slot_table table; /* the owner of the device memory sets the addresses in it */
} gki_cuda_slots;

/* `depth` launches may be under way at once. In the device's context; all that isn't the driver's is in the arena. */
gk_result gki_cuda_slots_make(gki_cuda_slots *slots, gki_cuda_device *device, const gk_plan *plan, uint32_t depth,
                              gki_arena *arena);
/* In the device's context; nothing may be on its way to the table any more. Fine if nothing was made. */
void gki_cuda_slots_drop(gki_cuda_slots *slots);

/* Puts what changed on the way to the table, before what is launched next. `place` is the launch's number less one. */
gk_result gki_cuda_slots_hand(const gki_cuda_slots *slots, const gk_launch_args *launch, uint64_t place,
                              CUstream stream);
#endif
