/* A graph: its memory, and its recorded commands. */
#ifndef GKI_VULKAN_GRAPH_H
#define GKI_VULKAN_GRAPH_H
#include "gk_ahead.h"
#include "base/memory.h"
#include "lower/params.h"
#include "plan/levels.h"
#include "vulkan/memory.h"

enum { GKI_VULKAN_TAPES = 2 /* under way */, GKI_VULKAN_KEPT = 64 /* recorded pieces of tapes */ };

/* Memory that the host reads and writes during a launch. */
typedef struct gki_vulkan_shared {
  gki_bad_count failures[GKI_LAUNCH_RING];
  uint32_t cancelled; /* as gk_launch_args.cancel */
} gki_vulkan_shared; /* a copy of the state behind each tape under way follows */

/* The gates of runs by grids of no groups, as control.comp reads them. Behind this struct are the size of each node's
 * grid, then each run's range of nodes. */
typedef struct gki_vulkan_gates { uint32_t node_count, lane_count; uint64_t grids; } gki_vulkan_gates;

/* Commands recorded for entries of a tape, or for a part of a run. */
typedef struct gki_vulkan_piece {
  VkCommandBuffer commands;
  uint32_t *entries; /* as for gk_backend.ahead */
  uint32_t count;
  uint32_t copy;     /* the copy of the state that it ends with; GK_NONE: it has none */
  uint64_t used;     /* number of its last use */
} gki_vulkan_piece;

/* A part of a run with library calls: tasks, or a call. */
typedef struct gki_vulkan_part {
  VkCommandBuffer commands; /* NULL: the call of node `begin` */
  uint32_t begin, end;      /* nodes */
} gki_vulkan_part;

typedef struct gki_vulkan_graph {
  gki_vulkan_device *device;
  const gk_plan *plan;
  const gki_vulkan_kernel **kernels; /* by node; NULL: no task */
  const gki_vulkan_kernel *fill, *grids; /* NULL: it doesn't need gk's FILL, or the shader that sets grids */
  VkPipeline control;
  VkPipeline *steps;                 /* by run: the control shader for one step; NULL: `control` walks */
  gki_arena arena;
  gki_levels levels;
  gki_slot_table slots; /* its ring is the table on the device: at a launch, no earlier one is under way */
  gki_params params;    /* of handwritten kernels: their push constants are recorded */
  gki_vulkan_gate gate;

  gki_vulkan_block *block;   /* control block, table of slots, state, table of points, grids, gates */
  gki_vulkan_block *staging; /* what the host writes into `block`; NULL: the host sees that */
  unsigned char *image;      /* the host's side of `block` */
  size_t table_at, state_at, points_at, grids_at, gates_at; /* offsets in `block` */
  gki_vulkan_block *shared_block;
  gki_vulkan_shared *shared; /* in shared_block */

  VkCommandPool pool;
  VkCommandBuffer upload;    /* recorded at each launch if there is `staging` */
  bool must_upload;          /* the next submit begins with it */
  bool is_written;           /* all of `image` is; and `block` has got it */
  gki_vulkan_part *parts;
  uint32_t *parts_at;        /* by run: its first part; then their end. Runs without calls have none */
  gki_vulkan_piece *pieces;  /* ahead: those used last; batched: by run */
  uint32_t piece_count;
  uint64_t uses;             /* of pieces */
  bool shares_memory;        /* two slots may be bound to overlapping memory, of which a task changes some */
  bool has_bad_count;        /* the launch has one that the host knows; the first task with one is to post it */
  bool in_series;            /* for one of these reasons, what is recorded has a barrier behind each task */
  gki_vulkan_block **blocks; /* by slot: what it is bound to */
  uint32_t *by_block;        /* slots in the order of their blocks */

  const gk_points *points;   /* NULL: it doesn't go ahead */
  uint32_t enqueued, taken;  /* tapes, and those of them that `state` has waited for */
  uint64_t ends[GKI_VULKAN_TAPES]; /* the last submit of each tape */
  uint64_t last;             /* the graph's last submit */
  gk_launch_args launch;     /* the one under way */
  gk_vulkan_point signal;    /* behind it; no semaphore: nothing */
} gki_vulkan_graph;

/* gk_backend.lower and drop. */
gk_result gki_vulkan_lower(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode);
void gki_vulkan_drop(void *graph);
void *gki_vulkan_pass(void *graph, uint32_t node); /* gk_backend.pass */

/* gk_backend.launch, submit and read_flag. */
gk_result gki_vulkan_launch(void *graph, const gk_launch_args *launch);
gk_result gki_vulkan_submit_run(void *graph, uint32_t run);
gk_result gki_vulkan_read_flag(void *graph, uint32_t node, int32_t *flag);

/* gk_backend.ahead, state and cancel. */
gk_result gki_vulkan_ahead(void *graph, const uint32_t *runs, uint32_t count);
gk_result gki_vulkan_state(void *graph, const uint32_t **state);
gk_result gki_vulkan_cancel(void *graph);

/* Around a launch: waits and signals for gk_vulkan_launch, which gives the points, else NULL. The end returns the
 * launch's result, or its own failure. */
gk_result gki_vulkan_begin_order(gki_vulkan_graph *graph, void *points);
gk_result gki_vulkan_end_order(gki_vulkan_graph *graph, gk_result result);

/* Records a part of a run with library calls. Going ahead, the control shader follows if the run ends there. */
gk_result gki_vulkan_record_part(gki_vulkan_graph *graph, uint32_t run, gki_vulkan_part *part);

/* The commands for entries of a tape, recorded now or before. They run what the entries say, one after the other but
 * for those with GK_AHEAD_BESIDE, and then copy the state to copy `copy`, unless that is GK_NONE. None of the entries'
 * runs has a library call. */
gk_result gki_vulkan_piece_of(gki_vulkan_graph *graph, const uint32_t *entries, uint32_t count, uint32_t copy,
                              VkCommandBuffer *commands);

/* Records graph->upload: copies of these ranges from `staging` to `block`. */
gk_result gki_vulkan_record_upload(gki_vulkan_graph *graph, const VkBufferCopy *ranges, uint32_t count);

/* Forgets all but `upload`. None of it is under way. */
void gki_vulkan_forget(gki_vulkan_graph *graph);

/* Makes the call of a node. The device has done all that comes before it. */
gk_result gki_vulkan_call(gki_vulkan_graph *graph, const gk_node *node);

/* Puts a task and its slot in front of the thread's message, which says why the slot's memory can't be used. */
gk_result gki_vulkan_slot_failed(const gki_vulkan_graph *graph, const gk_node *node, uint32_t slot, gk_result result);
#endif
