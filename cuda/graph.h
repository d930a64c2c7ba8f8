/* The structs of a native graph: the device decides by itself. */
#ifndef GKI_CUDA_GRAPH_H
#define GKI_CUDA_GRAPH_H
#include "gk_gates.h"
#include "cuda/counts.h"
#include "cuda/stream.h"
#include "cuda/tables.h"
#include "lower/calls.h"

/* The driver's node for a node of the gates. */
typedef struct gki_cuda_place {
  CUgraph in;         /* the graph, or a body in it */
  CUgraphNode node;   /* CALL: the empty node behind what it recorded; NULL: it has no node */
  CUgraphNode before; /* a node that it waits for; NULL: it is the first */
} gki_cuda_place;

/* One CUDA graph of a plan: for launches from the top, or for those that resume. */
typedef struct gki_cuda_variant {
  const gk_gates *gates;
  CUgraph graph;
  CUgraphExec exec;
  CUdeviceptr tables;    /* gki_cuda_tables and all that they point to */
  CUdeviceptr guards;    /* those among the tables */
  void *staged;          /* page-locked source of the tables */
  gki_cuda_place *places; /* by node of the gates */
  CUgraphNode prologue;  /* NULL: none */
  uint32_t point;        /* the prologue's first point */
  uint32_t target;       /* the target in the exec's prologue */
  gki_cuda_updates updates;
} gki_cuda_variant;

/* Offsets in a graph's page-locked memory. */
enum { GKI_CUDA_TARGETS_AT = 64, GKI_CUDA_POSTS_AT = 128, GKI_CUDA_STATUSES_AT = 832 };

typedef struct gki_cuda_graph {
  gki_cuda_device *device;
  const gk_plan *plan;
  gki_arena arena;
  gki_cuda_kernel **code;  /* by node */
  gki_cuda_slots slots;
  gki_cuda_shared shared;
  CUdeviceptr state;       /* shared by all variants; the table of slots is at its end */
  unsigned char *pinned;   /* uint64_t: launches up to this number are cancelled; the ring of targets to copy; bad
                            * counts; statuses; the initial state */
  CUdeviceptr pinned_at;
  gki_cuda_variant fresh, resume;
  bool serves_both;        /* `fresh` can resume, too */
  bool is_plain;           /* GK_WITH_PLAIN, in both variants */
  bool sends_target_by_copy; /* else by an update of the prologue's node */
  uint32_t target_sent;    /* the target that was copied last */
  bool wait_failed;        /* a wait failed, and no later one has succeeded */
  gki_cuda_parameters parameters;
  gki_cuda_counts counts;
  gki_calls calls;         /* a new binding of their slots makes the variants again */
  bool must_record;        /* the variants were dropped for that, and no launch has run since */
  gki_cuda_order order;
  uint32_t depth;
  uint64_t waited;         /* the last launch that a wait has covered */
  bool external;           /* in a caller's graph, which the caller launches. Then: */
  CUgraphNode arming;      /* the first node there */
  gki_cuda_arming armed;   /* the parameters that it got last */
  uint64_t bound_at;       /* the last arming that sent slots; 0: none yet */
  uint64_t reported;       /* the last arming whose status was seen */
  CUdeviceptr ring_at;     /* the device's address of slots.table.ring */
  char refused[600];       /* why the driver refuses the graph, as a sentence; "": it doesn't */
} gki_cuda_graph;

/* Where a list is added in a caller's graph: behind the nodes `after`. Later nodes go behind `last`. */
typedef struct gki_cuda_into {
  CUgraph graph;
  const CUgraphNode *after;
  size_t count;
  bool resumes;
  CUgraphNode last;
} gki_cuda_into;
#endif
