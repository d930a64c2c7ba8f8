/* A graph: its memory, and what a launch needs. */
#ifndef GKI_HIP_GRAPH_H
#define GKI_HIP_GRAPH_H
#include "gk_ahead.h"
#include "base/memory.h"
#include "hip/device.h"
#include "lower/params.h"

enum { GKI_HIP_TAPES = 2 /* under way */ };

/* Page-locked memory, which the host and the device use during a launch. */
typedef struct gki_hip_shared {
  gki_bad_count failures[GKI_LAUNCH_RING];
  uint32_t cancelled; /* as gk_launch_args.cancel */
  int32_t flag;       /* the one that was read last */
} gki_hip_shared; /* the state behind each tape under way follows, then the host's side of `block` */

typedef struct gki_hip_graph {
  gki_hip_device *device;
  const gk_plan *plan;
  const gki_hip_kernel **kernels; /* by node; NULL: no kernel */
  gki_arena arena;
  gki_slot_table slots; /* its ring is in `image`: at a launch, no earlier one is under way */
  gki_params params;    /* of handwritten kernels */
  void *block;          /* on the device: the state, the control block, the table of slots, the table of points */
  size_t control_at, table_at, points_at, bytes; /* offsets in `block`, and its size */
  gki_hip_shared *shared;
  uint32_t *states;     /* in `shared` */
  unsigned char *image; /* in `shared`, too: the host's side of `block` */
  bool is_written;      /* `block` has all of `image` */
  hipEvent_t event;     /* behind the work that is waited for, if that isn't a tape */
  hipEvent_t ends[GKI_HIP_TAPES]; /* behind each tape's copy of the state */
  hipGraphExec_t *execs; /* by run; NULL, all or one: it is launched task by task */

  const gk_points *points;   /* NULL: it doesn't go ahead */
  uint32_t enqueued, taken;  /* tapes, and those of them that `state` has waited for */
  hipStream_t stream;        /* of the launch under way */
  bool is_busy;              /* the stream may have work of this graph that no wait has covered */
  uint32_t last;             /* the run enqueued last, for messages; GK_NONE: none in this launch */
  gk_launch_args launch;     /* the one under way */
} gki_hip_graph;

/* gk_backend.lower and drop. */
gk_result gki_hip_lower(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode);
void gki_hip_drop(void *graph);
void *gki_hip_pass(void *graph, uint32_t node); /* gk_backend.pass */

/* gk_backend.launch, submit and read_flag. */
gk_result gki_hip_launch(void *graph, const gk_launch_args *launch);
gk_result gki_hip_submit(void *graph, uint32_t run);
gk_result gki_hip_read_flag(void *graph, uint32_t node, int32_t *flag);

/* gk_backend.ahead, state and cancel. */
gk_result gki_hip_ahead(void *graph, const uint32_t *runs, uint32_t count);
gk_result gki_hip_state(void *graph, const uint32_t **state);
gk_result gki_hip_cancel(void *graph);

/* Waits for all of the graph's work. It is over afterwards, or the device is lost. */
hipError_t gki_hip_drain(gki_hip_graph *graph);

/* ---- tasks.c ----------------------------------------------------------------------------------------------------- */

/* How a kernel is launched, with arguments in the form that works here. Doesn't move: `params` points into it. */
typedef struct gki_hip_shape {
  hipKernelNodeParams params;
  void *pointers[GK_MAX_ARGS], *extra[5]; /* the two forms */
  size_t bytes;                           /* of the arguments, packed */
  union {
    gki_task task;
    struct { uint64_t points, state, slots, cancelled; uint32_t run; } control;
    struct { uint64_t to; uint32_t narrow; uint64_t wide; uint32_t last; } echo;
  } packed; /* of gk's own kernels */
} gki_hip_shape;

/* Shapes the launch of a task. fixed: with a grid for any count, which a graph of the runtime keeps. */
void gki_hip_shape_task(const gki_hip_graph *graph, uint32_t node, uint32_t run, bool fixed, gki_hip_shape *shape);
/* Shapes the launch of the control kernel behind a run; GK_NONE: one that follows no run. */
void gki_hip_shape_control(const gki_hip_graph *graph, uint32_t run, gki_hip_shape *shape);
/* Shapes the launch of gk's kernel that writes its arguments, which depend on a number, to that number's GKI_HIP_ECHO
 * words of `seen`. The other function tells whether it wrote them for each number below `count`. */
enum { GKI_HIP_ECHO = 3 };
void gki_hip_shape_echo(const gki_hip_device *device, uint64_t *seen, uint32_t number, gki_hip_shape *shape);
bool gki_hip_has_echoes(const uint64_t *seen, uint32_t count);

/* Launches a kernel, with arguments in the form that works on the device. */
hipError_t gki_hip_launch_shape(const gki_hip_device *device, const gki_hip_shape *shape, hipStream_t stream);

/* ---- graphs.c: runs as graphs of the runtime, made once, launched with one call, and never updated --------------- */

/* Finds the form of arguments that works, and from which length on a run is launched as a graph: from that on which a
 * graph is faster than launches on a stream, if graphs of 256 nodes are right. $GK_HIP_GRAPHS=1: all runs, if they are
 * right; 0: none. On the device, with gk's own kernels. GK_ERROR_NO_DEVICE: the device hasn't survived it. */
gk_result gki_hip_try(gki_hip_device *device);

/* Makes the graphs of runs that are long enough, each with its control kernel, but for runs with library calls or
 * handwritten code, whose arguments change. A run whose graph the runtime refuses is launched task by task. */
gk_result gki_hip_make_execs(gki_hip_graph *graph);
void gki_hip_drop_execs(gki_hip_graph *graph);
#endif
