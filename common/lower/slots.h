/* The table on the device from which a graph's tasks and decisions read its slots: addresses of flags, structs, and a
 * record per task. Each launch copies its changes from a ring in host memory. The backend allocates both. */
#ifndef GKI_LOWER_SLOTS_H
#define GKI_LOWER_SLOTS_H
#include "gk_backend.h"
#include "base/memory.h"
#include "lower/task.h"

typedef struct gki_slot_table {
  const gk_plan *plan;
  uint64_t at;          /* address of the table. It holds 8 bytes per slot, for decisions; then structs; then records */
  uint64_t control;     /* address of the gki_task_control on the device */
  size_t bytes;         /* of the table; a multiple of GKI_STRUCT_ALIGNMENT */
  size_t *structs;      /* by slot: offset of its struct; 0: none */
  size_t *records;      /* by node: offset of its record; 0: none */
  uint32_t *users;      /* nodes of the tasks and decisions that have a slot, ordered by slot */
  uint32_t *users_at;   /* by slot: index of its first user; a node that has a slot twice is there twice */
  unsigned char *image; /* the content of the table once the copies under way have ended */
  bool is_sent;         /* false: the table may differ from `image`, so the next launch sends all of it */
  unsigned char *ring;  /* room for `depth` tables */
  uint32_t depth;
} gki_slot_table;

/* The caller then sets `at`, `control` and `ring`, which needs *ring_bytes. `depth` launches may be under way. */
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

/* The items of a task for its grid, by the table as it is; those of COPY and FILL have GKI_TRANSFER_BYTES. 1: the count
 * is bad, which the task posts. GKI_UNKNOWN_ITEMS: only the device knows. */
enum { GKI_TRANSFER_BYTES = 16 };
#define GKI_UNKNOWN_ITEMS UINT64_MAX
uint64_t gki_slot_table_items(const gki_slot_table *slots, uint32_t node);

/* The value of an I32, U32 or I64 slot. */
int64_t gki_slot_table_number(const gki_slot_table *slots, uint32_t slot, const gk_value *values);
#endif
