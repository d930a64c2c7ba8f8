/* What the driver's nodes mean in terms of the list. */
#ifndef GKI_CUDA_NAMES_H
#define GKI_CUDA_NAMES_H
#include "base/text.h"
#include "cuda/graph.h"

typedef struct gki_cuda_name {
  CUgraphNode node;
  uint32_t gate;  /* index in the gates */
  bool recorded;  /* by the CALL at `gate` */
  bool is_drawn;  /* cuda/dump.c: the drawing has it */
} gki_cuda_name;

typedef struct gki_cuda_names {
  const gki_cuda_variant *variant;
  gki_cuda_name *all; /* by the node's address */
  size_t count, capacity;
} gki_cuda_names;

/* Names all nodes of a graph. In the device's context. gki_cuda_names_drop frees them, also after a failure. */
gk_result gki_cuda_names_make(gki_cuda_names *names, const gki_cuda_graph *graph, const gki_cuda_variant *variant);
void gki_cuda_names_drop(gki_cuda_names *names);

/* NULL: unknown. */
gki_cuda_name *gki_cuda_names_find(const gki_cuda_names *names, uintptr_t node);

/* Appends "task 3 (improve)". @param at  The plan's node. */
void gki_cuda_write_task(const gk_plan *plan, uint32_t at, gki_quoting how, gki_text *text);

/* Appends "task 3 (improve)" or "decides: the end of a pass of task 5 (DO_WHILE BUSY)". */
void gki_cuda_write_name(const gki_cuda_names *names, const gki_cuda_name *name, gki_quoting how, gki_text *text);
#endif
