/* What a plan becomes: one graph for launches from the top, and, when somebody first resumes, one that starts at any
 * checkpoint. Both work on the same table of slots and the same control block. */
#ifndef GKI_CUDA_LOWER_H
#define GKI_CUDA_LOWER_H
#include "cuda/counts.h"
#include "cuda/tables.h"
#include "lower/calls.h"
#include <stdatomic.h>

/* Where a node of the gates went. */
typedef struct gki_cuda_place {
  CUgraph in;         /* the graph, or a body in it */
  CUgraphNode node;   /* of a CALL the empty one behind all that it recorded; NULL: none of its own */
  CUgraphNode before; /* one that it comes behind; NULL: it is the first */
} gki_cuda_place;

/* One graph of a plan. */
typedef struct gki_cuda_variant {
  const gk_gates *gates;
  CUgraph graph;
  CUgraphExec exec;
  CUdeviceptr tables;    /* gki_cuda_tables and all they point to, */
  CUdeviceptr words;     /* the words among it */
  void *staged;          /* the same on its way there, page-locked */
  gki_cuda_place *places; /* by node of the gates */
  CUgraphNode prologue;  /* NULL: it has none */
  uint32_t point;        /* the prologue's first */
  uint32_t target;       /* the prologue's parameter in the exec */
  gki_cuda_updates updates;
} gki_cuda_variant;

/* In a graph's page-locked memory. */
enum { GKI_CUDA_TARGETS_AT = 64, GKI_CUDA_POSTS_AT = 128, GKI_CUDA_STATUSES_AT = 832 };

/* A graph, native. */
typedef struct gki_cuda_graph {
  gki_cuda_device *device;
  const gk_plan *plan;
  gki_arena arena;
  gki_cuda_kernel **code;  /* by node */
  gki_cuda_slots slots;
  gki_cuda_shared shared;
  CUdeviceptr state;       /* what all variants share, the table of slots at its end */
  unsigned char *pinned;   /* uint64_t: launches up to this number are cancelled; targets, by place in the ring, as
                            * they are copied from; bad counts; statuses; the state as it begins */
  CUdeviceptr pinned_at;
  gki_cuda_variant fresh, resume; /* the first serves both if `one` */
  bool one;
  bool is_plain;           /* GK_WITH_PLAIN, in both */
  bool aims_by_copy;       /* no node is updated */
  uint32_t aimed;          /* then: what was copied last */
  uint64_t busy_until;     /* until this launch is over, something may use the graph's memory; UINT64_MAX: a wait
                            * failed, or a launch half way */
  bool unsure;             /* a wait failed, and none since was for all launches */
  gki_cuda_parameters parameters;
  gki_cuda_counts counts;
  gki_cuda_calls calls;    /* the variants are made again when a slot of theirs was bound anew */
  bool records_again;      /* for that they were dropped, and no launch since has run */
  CUstream at;             /* where all goes that is put on a stream: the device's own, but in a launch on another */
  gki_cuda_stream_id last_stream;     /* where the last launch is */
  CUevent end;             /* behind that launch alone, where others may put work behind it; NULL: it is on a stream of
                            * gk's own, and only waited for there. Under the device's lock */
  struct gki_cuda_graph *next_abroad;
  CUevent event;           /* behind the last launch, if the device's `last` isn't this graph */
  CUevent *events;         /* by place in the ring, of launches that post nothing; NULL: all post */
  uint32_t depth;
  atomic_uint_fast64_t launched; /* launches that the driver took, as the control block counts them */
  uint64_t waited;
  bool outside;            /* in a graph of somebody else's, who launches it (added.c); each launch posts its status, */
  CUgraphNode arming;      /* the first node there, */
  gki_cuda_arming armed;   /* and what it got last, */
  uint64_t bound_at;       /* the last arming that brought slots, 0: none yet, */
  uint64_t told;           /* the last one whose status was seen, */
  CUdeviceptr ring_at;     /* and slots.ring as the device sees it */
  char refused[600];       /* why the driver doesn't take it, as a sentence; "": it does */
} gki_cuda_graph;

/* In the device's context, of a plan that needn't be gated. What it leaves half done, gki_cuda_graph_drop frees.
 * GK_ERROR_UNSUPPORTED with `refused`, and nothing is said yet: the driver takes no such graph. */
gk_result gki_cuda_graph_make(gki_cuda_graph *graph, gki_cuda_device *device, const gk_plan *plan, void *const *code);
void gki_cuda_graph_drop(gki_cuda_graph *graph);

/* The same for a graph of somebody else's: it comes behind the nodes `after`, and what is to follow behind `last`. In
 * the device's context. GK_ERROR_UNSUPPORTED: the list or the device can't do it, and it is said why. */
typedef struct gki_cuda_into {
  CUgraph graph;
  const CUgraphNode *after;
  size_t count;
  bool resumes;
  CUgraphNode last;
} gki_cuda_into;
gk_result gki_cuda_graph_make_into(gki_cuda_graph *graph, gki_cuda_device *device, const gk_plan *plan,
                                   void *const *code, gki_cuda_into *into);

/* backend.c: of the backend's state of a graph. GK_ERROR_UNSUPPORTED, and why: the host gates it. */
gk_result gki_cuda_native(void *state, gki_cuda_graph **native);

/* The graph for a launch from the top or from a checkpoint; made now, if it isn't there. In the device's context.
 * Answers as gki_cuda_graph_make. */
gk_result gki_cuda_variant_get(gki_cuda_graph *graph, bool resumes, gki_cuda_variant **variant);
/* Waits for the stream if something on it may still use the variant's memory. In the device's context. */
void gki_cuda_variant_drop(gki_cuda_graph *graph, gki_cuda_variant *variant);
#endif
