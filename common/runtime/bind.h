/* The values bound to a graph's slots. */
#ifndef GKI_RUNTIME_BIND_H
#define GKI_RUNTIME_BIND_H
#include "runtime/graph.h"

gk_result gki_slots_make(gk_graph *graph); /* from the plan: values, owned memory */
void gki_slots_free(gk_graph *graph);      /* owned memory */
#endif
