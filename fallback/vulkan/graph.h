/* A host-gated graph: a block of memory, and the runs of its plan as recorded commands. */
#ifndef GKI_VULKAN_GRAPH_H
#define GKI_VULKAN_GRAPH_H
#include "base/memory.h"
#include "lower/slots.h"
#include "vulkan/memory.h"

/* What is at the beginning of the block; the table of slots follows, then a VkDispatchIndirectCommand per node. */
typedef struct gki_vulkan_head {
  gki_task_control control;
  gki_bad_count failures[GKI_LAUNCH_RING];
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
  uint32_t *parts_at; /* by run: its first part; [run_count]: the number of parts */
  gk_launch_args launch; /* the one under way */
} gki_vulkan_graph;

/* gk_backend.lower and drop. */
gk_result gki_vulkan_lower(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode);
void gki_vulkan_drop(void *graph);

/* gk_backend.launch, submit and read_flag. */
gk_result gki_vulkan_launch(void *graph, const gk_launch_args *launch);
gk_result gki_vulkan_submit_run(void *graph, uint32_t run);
gk_result gki_vulkan_read_flag(void *graph, uint32_t node, int32_t *flag);
#endif
