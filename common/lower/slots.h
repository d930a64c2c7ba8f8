/* What a graph's tasks and decisions read of its slots, as one table on the device: flags, structs, and a record per
 * task. A ring in host memory holds what each launch copies there. The backend allocates both. */
#ifndef GKI_LOWER_SLOTS_H
#define GKI_LOWER_SLOTS_H
#include "gk_backend.h"
#include "base/memory.h"
#include "lower/task.h"

typedef struct gki_slot_table {
  const gk_plan *plan;
  uint64_t at;          /* the table on the device: 8 bytes per slot, for decisions; structs; records */
  uint64_t control;     /* the address of gki_task_control on the device */
  size_t bytes;         /* of the table; a multiple of GKI_STRUCT_ALIGNMENT */
  size_t *structs;      /* by slot: offset of its struct; 0: none */
  size_t *records;      /* by node: offset of its record; 0: none */
  uint32_t *users, *users_at; /* tasks and decisions with a slot: users[users_at[slot]] to users_at[slot + 1], by node;
                               * one that has the slot twice is there twice */
  unsigned char *image; /* the table, as it is on the device after copies under way, */
  bool is_sent;         /* unless this is false */
  unsigned char *ring;  /* `depth` tables */
  uint32_t depth;
} gki_slot_table;

/* Makes all but `at`, `control` and `ring`, which must have *ring_bytes. `depth` launches may be under way. */
gk_result gki_slot_table_make(gki_slot_table *slots, const gk_plan *plan, uint32_t depth, gki_arena *arena,
                              size_t *ring_bytes);

/* Writes what a launch changes to its place in the ring. The backend then copies bytes `begin` to `end` of the place to
 * the same bytes of the table; if that fails, it clears is_sent. begin == end: nothing changed. `place` is the launch's
 * number minus 1. @return the place */
const unsigned char *gki_slot_table_changed(gki_slot_table *slots, const gk_launch_args *launch, uint64_t place,
                                            size_t *begin, size_t *end);

/* Writes the whole table to the launch's place in the ring. */
void gki_slot_table_write(gki_slot_table *slots, const gk_launch_args *launch, uint64_t place);

/* A KERNEL, COPY or FILL as its kernel on the device gets it, without a guard. */
gki_task gki_task_of(const gki_slot_table *slots, uint32_t node);

/* The value of an I32, U32 or I64 slot. */
int64_t gki_slot_table_number(const gki_slot_table *slots, uint32_t slot, const gk_value *values);
#endif
