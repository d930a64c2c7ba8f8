/* A host-gated graph: used without conditional nodes, with GK_HOST_GATED or GK_ISOLATE, and if the driver refuses the
 * list's graph with conditional nodes. Each run of the plan is a CUDA graph without such nodes, made once. Common
 * enqueues runs ahead of the decisions, which a kernel behind each run makes (ahead.h). With these two bits, without
 * such a kernel and in lists without flags, common walks the plan, submits runs and reads flags back. */
#ifndef GKI_CUDA_GATED_H
#define GKI_CUDA_GATED_H
#include "cuda/ahead.h"
#include "cuda/counts.h"
#include "cuda/nodes.h"
#include "lower/calls.h"

typedef struct gki_cuda_run {
  CUgraphExec exec; /* NULL: not made yet, or to be made again */
  CUgraph graph;    /* kept if its nodes are updated; else NULL */
  bool calls;       /* it has library calls */
} gki_cuda_run;

enum { GKI_CUDA_TABLE_AT = 128 }; /* the table of slots, a cache line behind the control block, which tasks write */

typedef struct gki_cuda_gated_pinned {
  gki_cuda_posts posts;
  union {
    gki_task_control control;
    unsigned char bytes[GKI_CUDA_TABLE_AT + sizeof(uint64_t)]; /* with slot 0, which means "no slot" */
  } begin;
  int32_t flag;
} gki_cuda_gated_pinned;

typedef struct gki_cuda_gated {
  gki_cuda_device *device;
  const gk_plan *plan;
  gki_arena arena;
  gki_cuda_kernel **code; /* by node */
  gki_cuda_slots slots;
  CUdeviceptr table;      /* the control block, then the table of slots */
  gki_cuda_counts counts;
  gki_calls calls;
  gki_cuda_parameters parameters;
  gki_cuda_updates updates; /* of all runs */
  gki_cuda_ahead ahead;
  gki_cuda_run *runs;
  uint32_t run_count;     /* those of the plan; with `ahead`, behind them the control kernel alone */
  bool complete;          /* all runs are made, also those with library calls */
  gki_cuda_gated_pinned *pinned;
  bool must_record;       /* runs with library calls were dropped and aren't made again yet */
  CUstream current_stream; /* where work is put: the device's own, except during a launch on another */
  CUevent event;          /* marks the work that is waited for, if that isn't a tape */
  const gk_value *values; /* by slot, of the current launch */
  uint32_t last;          /* the run enqueued last, for messages; GK_NONE: none in this launch */
  bool busy;              /* the stream may have work of this graph that no wait has covered */
} gki_cuda_gated;

/* In the device's context. After a failure gki_cuda_gated_drop frees what was made. */
gk_result gki_cuda_gated_make(gki_cuda_gated *graph, gki_cuda_device *device, const gk_plan *plan, void *const *code);
void gki_cuda_gated_drop(gki_cuda_gated *graph);

/* Waits until its launch is over. In the device's context. */
gk_result gki_cuda_gated_await(gki_cuda_gated *graph);

/* The backend's entries. With GK_ISOLATE each run is one task, and submit waits for its end. read_flag with node 0
 * reads nothing, and waits for all work of the launch. */
gk_result gki_cuda_gated_launch(gki_cuda_gated *graph, const gk_launch_args *launch);
gk_result gki_cuda_gated_submit(gki_cuda_gated *graph, uint32_t run);
gk_result gki_cuda_gated_read_flag(gki_cuda_gated *graph, uint32_t node, int32_t *flag);
gk_result gki_cuda_gated_ahead(gki_cuda_gated *graph, const uint32_t *runs, uint32_t count);
gk_result gki_cuda_gated_state(gki_cuda_gated *graph, const uint32_t **state);
#endif
