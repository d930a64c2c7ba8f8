/* A graph's table of slots as tasks read it on a device, and the ring in the host's memory from which each launch
 * copies what was bound anew. The backend allocates the memory of both. */
#ifndef GKI_LOWER_SLOTS_H
#define GKI_LOWER_SLOTS_H
#include "gk_backend.h"
#include "base/memory.h"
#include "lower/task.h"

typedef struct gki_slot_table {
  const gk_plan *plan;
  uint64_t at;          /* the table's address on the device: 8 bytes per slot, then 8 per slot whose room tasks look
                         * at, then the structs, */
  uint64_t control;     /* the address of gki_task_control on the device */
  size_t bytes;         /* so many, at a multiple of GKI_STRUCT_ALIGNMENT */
  size_t *structs;      /* by slot: where its struct is; 0: it has none */
  unsigned char *ring;  /* `depth` times all of it */
  uint32_t depth;
  uint32_t *rooms;      /* by slot: where in the table its room stands, counted in 8 bytes; 0: nowhere */
  uint32_t room_count;
  size_t *known;        /* by slot: the room that the table has, or will have by what is on its way */
} gki_slot_table;

/* All but `at`, `control` and `ring`, which has ring_bytes; `depth` launches may be under way at once. */
gk_result gki_slot_table_make(gki_slot_table *slots, const gk_plan *plan, uint32_t depth, gki_arena *arena,
                              size_t *ring_bytes);

/* Writes what a launch changed to its place in the ring: what stands there from `begin` to `end` is to be copied to the
 * same stretch of the table. Something has changed. `place` is the launch's number less one. @return the place */
const unsigned char *gki_slot_table_changed(const gki_slot_table *slots, const gk_launch_args *launch, uint64_t place,
                                            size_t *begin, size_t *end);
/* Once that copy failed: rooms are brought again. */
void gki_slot_table_forget_rooms(const gki_slot_table *slots);

/* Writes all of the table to the launch's place in the ring. */
void gki_slot_table_write(const gki_slot_table *slots, const gk_launch_args *launch, uint64_t place);

/* A KERNEL, COPY or FILL as its kernel on the device gets it, without a guard. */
gki_task gki_task_of(const gki_slot_table *slots, uint32_t node);

/* What an I32, U32 or I64 has. */
int64_t gki_slot_table_number(const gki_slot_table *slots, uint32_t slot, const gk_value *values);
#endif
