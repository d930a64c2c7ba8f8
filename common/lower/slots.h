/* A graph's table of slots, which tasks read on the device, and a ring in host memory from which each launch copies
 * changed slots. The backend allocates both. */
#ifndef GKI_LOWER_SLOTS_H
#define GKI_LOWER_SLOTS_H
#include "gk_backend.h"
#include "base/memory.h"
#include "lower/task.h"

typedef struct gki_slot_table {
  const gk_plan *plan;
  uint64_t at;          /* the table on the device: 8 bytes per slot; 8 per slot whose capacity tasks read; structs */
  uint64_t control;     /* the address of gki_task_control on the device */
  size_t bytes;         /* of the table; a multiple of GKI_STRUCT_ALIGNMENT */
  size_t *structs;      /* by slot: offset of its struct; 0: none */
  unsigned char *ring;  /* `depth` copies of the table */
  uint32_t depth;
  uint32_t *capacities; /* by slot: index of its capacity in the table, in units of 8 bytes; 0: none */
  uint32_t capacity_count;
  size_t *known;        /* by slot: the capacity in the table, after copies under way */
} gki_slot_table;

/* Makes all but `at`, `control` and `ring`, which must have *ring_bytes. `depth` launches may be under way. */
gk_result gki_slot_table_make(gki_slot_table *slots, const gk_plan *plan, uint32_t depth, gki_arena *arena,
                              size_t *ring_bytes);

/* Writes the changed slots of a launch, at least one, to its place in the ring. The backend then copies bytes `begin`
 * to `end` of the place to the same bytes of the table. `place` is the launch's number minus 1. @return the place */
const unsigned char *gki_slot_table_changed(const gki_slot_table *slots, const gk_launch_args *launch, uint64_t place,
                                            size_t *begin, size_t *end);
/* After that copy failed: later launches send the capacities again. */
void gki_slot_table_forget_capacities(const gki_slot_table *slots);

/* Writes the whole table to the launch's place in the ring. */
void gki_slot_table_write(const gki_slot_table *slots, const gk_launch_args *launch, uint64_t place);

/* A KERNEL, COPY or FILL as its kernel on the device gets it, without a guard. */
gki_task gki_task_of(const gki_slot_table *slots, uint32_t node);

/* The value of an I32, U32 or I64 slot. */
int64_t gki_slot_table_number(const gki_slot_table *slots, uint32_t slot, const gk_value *values);
#endif
