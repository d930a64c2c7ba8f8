/* A host-gated graph: used without conditional nodes, with GK_HOST_GATED or GK_ISOLATE, and if the driver refuses the
 * list's graph with conditional nodes. Each run of the plan, a straight piece, is a graph of the driver without
 * conditional nodes, made once. Common walks the plan and names the next run; the flags that it needs are read back. */
#ifndef GKI_CUDA_GATED_H
#define GKI_CUDA_GATED_H
#include "cuda/counts.h"
#include "cuda/nodes.h"
#include "lower/calls.h"

typedef struct gki_cuda_run {
  CUgraphExec exec; /* NULL: not made yet, or to be made again */
  CUgraph graph;    /* kept where nodes of it are updated; else NULL */
  bool calls;       /* there are library calls in it */
} gki_cuda_run;

enum { GKI_CUDA_TABLE_AT = 640 }; /* in the graph's memory on the device */

typedef struct gki_cuda_gated_pinned {
  gki_cuda_posts posts;
  union {
    gki_cuda_control control;
    unsigned char bytes[GKI_CUDA_TABLE_AT + sizeof(uint64_t)]; /* up to the slot that there isn't */
  } begin;
  int32_t flag;
} gki_cuda_gated_pinned;

typedef struct gki_cuda_gated {
  gki_cuda_device *device;
  const gk_plan *plan;
  gki_arena arena;
  gki_cuda_kernel **code; /* by node */
  gki_cuda_slots slots;
  CUdeviceptr table;      /* the control block, the table of slots behind it */
  gki_cuda_counts counts;
  gki_calls calls;
  gki_cuda_parameters parameters;
  gki_cuda_updates updates; /* of all runs */
  gki_cuda_run *runs;
  bool complete;          /* all of them are made, those with library calls too */
  gki_cuda_gated_pinned *pinned;
  bool records_again;     /* those with library calls were dropped, and no launch since has made them */
  CUstream current_stream; /* where its work goes: in a launch on another stream not the device's own */
  CUevent event;          /* behind what is waited for */
  const gk_value *values; /* by slot, of the launch at hand */
  uint32_t last;          /* the run that was submitted last, for messages; GK_NONE: none in this launch */
  bool busy;              /* there may be something on the stream that nobody has waited for */
} gki_cuda_gated;

/* In the device's context. What it leaves half done, gki_cuda_gated_drop frees. */
gk_result gki_cuda_gated_make(gki_cuda_gated *graph, gki_cuda_device *device, const gk_plan *plan, void *const *code);
void gki_cuda_gated_drop(gki_cuda_gated *graph);

/* Until its launch is over. In the device's context. */
gk_result gki_cuda_gated_await(gki_cuda_gated *graph);

/* The backend's entries. With GK_ISOLATE each run is one task, and is waited for at once. */
gk_result gki_cuda_gated_launch(gki_cuda_gated *graph, const gk_launch_args *launch);
gk_result gki_cuda_gated_submit(gki_cuda_gated *graph, uint32_t run);
gk_result gki_cuda_gated_read_flag(gki_cuda_gated *graph, uint32_t node, int32_t *flag);
#endif
