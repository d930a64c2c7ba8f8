/* Handwritten kernels of a plan: the values of their parameters and their grids, as a launch's bindings have them. A
 * binding changes only the tasks that use its slot. Each graph of the plan knows what its nodes were given, so a launch
 * updates only nodes that differ. Calls no driver. */
#ifndef GKI_LOWER_PARAMS_H
#define GKI_LOWER_PARAMS_H
#include "lower/slots.h"

/* By the task's number. */
typedef struct gki_param_values {
  unsigned char *bytes;  /* parameters, each task's from its `at` on, as gki_param_places lays them out */
  unsigned (*grids)[3];  /* {0, 0, 0}: no items; {0, 1, 0}: a bad count */
  uint64_t version;      /* raised when a task changes; 0: nothing is known */
} gki_param_values;

typedef struct gki_param_task {
  uint32_t node;
  size_t at, bytes;
  const unsigned *per_block; /* [3]: the items that a block covers; set by the backend */
  const unsigned *most_blocks; /* [3]: blocks of a grid along each dimension; a backend may set fewer */
} gki_param_task;

/* The version of a task's last change. The changes are linked, the latest first. */
typedef struct gki_param_change { uint64_t version; uint32_t later, earlier; } gki_param_change;

/* Of a plan. */
typedef struct gki_params {
  const gki_slot_table *slots;
  gki_param_task *tasks;       /* by node */
  uint32_t count;
  size_t bytes;
  gki_param_change *changes;   /* by the task's number; [count] is head and tail of the links */
  gki_param_values wanted;     /* of the last launch */
} gki_params;

/* Finds the tasks; all memory is in the arena. most_blocks: of all of them; NULL: the backend sets that of each. */
gk_result gki_param_make(gki_params *params, const gki_slot_table *slots, const unsigned most_blocks[3],
                          gki_arena *arena);

/* Copies a launch's values to the tasks that use a changed slot; the first time, to all. A task with more items than
 * 2^31 - 1, or with more blocks than most_blocks, gets the grid of a bad count. Returns whether a task changed. */
bool gki_param_update(gki_params *params, const gk_launch_args *launch);

/* The message for a bad count that a task of a launch has posted, which names the task and says what is wrong.
 * GK_ERROR_INVALID; GK_ERROR_DEVICE: no task can have posted it. GK_OK: the launch's counts are good, so the post is of
 * another one. */
gk_result gki_param_check(const gki_params *params, const gki_bad_count *post, const gk_launch_args *launch);

/* The same for the bad count that a launch has posted first, in a ring of GKI_LAUNCH_RING. GK_OK: none. The device may
 * write the ring meanwhile. */
gk_result gki_param_check_posts(const gki_params *params, const gki_bad_count *posts, const gk_launch_args *launch);

/* The number of the first task at this node or behind it. */
uint32_t gki_param_number(const gki_params *params, uint32_t node);

static inline bool gki_param_has_items(const gki_params *params, uint32_t number) {
  return params->wanted.grids[number][0] != 0;
}

/* The addresses of a task's parameters; `pointers` has room for GK_MAX_ARGS. */
void gki_param_point(const gki_params *params, uint32_t number, void **pointers);

/* For a task without items: a FILL in its place. It fills nothing, and posts the count if that is bad. */
gki_task gki_param_fill(const gki_params *params, uint32_t number);

/* The bytes of a parameter, as the code gets it. */
size_t gki_param_bytes(const gk_param *param);

/* gk_backend.code, for a kernel's code of that backend: NULL, or more than drivers take. */
const gk_code *gki_param_code(const gk_kernel *kernel, const gk_code *code, const char **beyond);

/* The threads of a block of handwritten code, and the items that it covers. */
void gki_param_block(const gk_code *code, unsigned block[3], unsigned per_block[3]);

/* The places of parameters one behind the other with a compiler's alignment, and the bytes of all. `places`: NULL, or
 * receives them. Also for a kernel that wasn't checked. */
uint64_t gki_param_places(const gk_kernel *kernel, uint64_t *places);

/* What the nodes of a graph were given. */
typedef struct gki_param_given {
  bool *known; /* by the task's number: the node has these values; false: it may have any */
  gki_param_values values;
} gki_param_given;

gk_result gki_param_given_make(gki_param_given *given, const gki_params *params);
void gki_param_given_drop(gki_param_given *given);

/* The node was given what is wanted. */
void gki_param_note_given(gki_param_given *given, const gki_params *params, uint32_t number);

/* Whether the node has what is wanted. Without items the values don't matter. */
bool gki_param_is_given(const gki_param_given *given, const gki_params *params, uint32_t number);
#endif
