/* A graph's table of slots in device memory, as all its tasks read it, and how it gets there: by one asynchronous copy
 * of the stretch that was bound anew, from a ring in page-locked memory. */
#ifndef GKI_CUDA_SLOTS_H
#define GKI_CUDA_SLOTS_H
#include "base/memory.h"
#include "cuda/device.h"
#include "cuda/gates.h"

typedef struct gki_cuda_slots {
  gki_cuda_device *device;
  const gk_plan *plan;
  CUdeviceptr control;  /* gki_cuda_control, and */
  CUdeviceptr at;       /* the table, where the owner of its memory put it: 8 bytes per slot, then 8 per slot whose
                         * room tasks look at, then the structs, */
  size_t bytes;         /* so many, at a multiple of GKI_STRUCT_ALIGNMENT */
  size_t *structs;      /* by slot: where its struct is; 0: it has none */
  unsigned char *ring;  /* `depth` times all of it */
  uint32_t depth;
  uint32_t *rooms;      /* by slot: where in the table its room stands, counted in 8 bytes; 0: nowhere */
  uint32_t room_count;
  size_t *known;        /* by slot: the room that the table has, or will have by what is on its way */
} gki_cuda_slots;

/* `depth` launches may be under way at once. In the device's context; all that isn't the driver's is in the arena. */
gk_result gki_cuda_slots_make(gki_cuda_slots *slots, gki_cuda_device *device, const gk_plan *plan, uint32_t depth,
                              gki_arena *arena);
/* In the device's context; nothing may be on its way to the table any more. Fine if nothing was made. */
void gki_cuda_slots_drop(gki_cuda_slots *slots);

/* Puts what changed on the way to the table, before what is launched next. `place` is the launch's number less one. */
gk_result gki_cuda_slots_hand(const gki_cuda_slots *slots, const gk_launch_args *launch, uint64_t place,
                              CUstream stream);

/* What an I32, U32 or I64 has. */
int64_t gki_cuda_slots_number(const gki_cuda_slots *slots, uint32_t slot, const gk_value *values);
/* Writes all of the table to the launch's place in the ring, for whoever takes it from there. */
void gki_cuda_slots_write(const gki_cuda_slots *slots, const gk_launch_args *launch, uint64_t place);

/* A KERNEL, COPY or FILL as its kernel gets it. */
gki_cuda_task gki_cuda_task_of(const gki_cuda_slots *slots, uint32_t node);
#endif
