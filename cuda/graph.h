/* A graph of a plan that the device gates itself. */
#ifndef GKI_CUDA_GRAPH_H
#define GKI_CUDA_GRAPH_H
#include "gk_gates.h"
#include "cuda/counts.h"
#include "cuda/stream.h"
#include "cuda/tables.h"
#include "lower/calls.h"

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
  CUdeviceptr guards;    /* the words among it */
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
  bool serves_both;
  bool is_plain;           /* GK_WITH_PLAIN, in both */
  bool sends_target_by_copy;       /* no node is updated */
  uint32_t target_sent;          /* then: what was copied last */
  bool wait_failed;             /* a wait failed, and none since was for all launches */
  gki_cuda_parameters parameters;
  gki_cuda_counts counts;
  gki_calls calls;         /* the variants are made again when a slot of theirs was bound anew */
  bool records_again;      /* for that they were dropped, and no launch since has run */
  gki_cuda_order order;
  uint32_t depth;
  uint64_t waited;
  bool external;            /* in a graph of the caller's, who launches it: each launch posts its status, */
  CUgraphNode arming;      /* the first node there, */
  gki_cuda_arming armed;   /* and what it got last, */
  uint64_t bound_at;       /* the last arming that brought slots, 0: none yet, */
  uint64_t reported;           /* the last one whose status was seen, */
  CUdeviceptr ring_at;     /* and slots.table.ring as the device sees it */
  char refused[600];       /* why the driver doesn't take it, as a sentence; "": it does */
} gki_cuda_graph;

/* Where in a graph of the caller's a list is added: behind the nodes `after`; what is to follow comes behind `last`. */
typedef struct gki_cuda_into {
  CUgraph graph;
  const CUgraphNode *after;
  size_t count;
  bool resumes;
  CUgraphNode last;
} gki_cuda_into;
#endif
