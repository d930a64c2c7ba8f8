/* A graph: a block of memory, and the runs of its plan as recorded commands. If it goes ahead, a dispatch of the
 * control shader ends each run. */
#ifndef GKI_VULKAN_GRAPH_H
#define GKI_VULKAN_GRAPH_H
#include "gk_ahead.h"
#include "base/memory.h"
#include "lower/slots.h"
#include "vulkan/memory.h"

/* What is at the beginning of the block; the table of slots follows, then the state and the table of points, then a
 * VkDispatchIndirectCommand per node. */
typedef struct gki_vulkan_head {
  gki_task_control control;
  gki_bad_count failures[GKI_LAUNCH_RING];
  int32_t cancelled; /* as gk_launch_args.cancel */
} gki_vulkan_head;

/* A part of a run: recorded commands, or a library call. */
typedef struct gki_vulkan_part {
  VkCommandBuffer commands; /* NULL: the call of `node` */
  uint32_t node;            /* the first one */
} gki_vulkan_part;

typedef struct gki_vulkan_graph {
  gki_vulkan_device *device;
  const gk_plan *plan;
  gki_arena arena;
  gki_slot_table slots; /* its ring is the table on the device: at a launch, no earlier one is under way */
  gki_vulkan_block *block;
  gki_vulkan_head *head;            /* in the block */
  VkDispatchIndirectCommand *grids; /* in the block, by node */
  size_t grids_at;                  /* their offset in the buffer */
  VkCommandPool pool;
  gki_vulkan_part *parts;
  uint32_t *parts_at; /* by run: its first part; [run_count]: one that is the control shader alone; and their end */
  const gk_points *points; /* NULL: it doesn't go ahead */
  uint32_t *state;         /* in the block; the table of points follows */
  uint64_t state_at;       /* its address on the device */
  bool under_way;          /* a tape is; two would need copies of the state */
  gk_launch_args launch; /* the one under way */
} gki_vulkan_graph;

/* gk_backend.lower and drop. */
gk_result gki_vulkan_lower(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode);
void gki_vulkan_drop(void *graph);

/* gk_backend.launch, submit and read_flag. */
gk_result gki_vulkan_launch(void *graph, const gk_launch_args *launch);
gk_result gki_vulkan_submit_run(void *graph, uint32_t run);
gk_result gki_vulkan_read_flag(void *graph, uint32_t node, int32_t *flag);

/* gk_backend.ahead, state and cancel. */
gk_result gki_vulkan_ahead(void *graph, const uint32_t *runs, uint32_t count);
gk_result gki_vulkan_state(void *graph, const uint32_t **state);
gk_result gki_vulkan_cancel(void *graph);
#endif
