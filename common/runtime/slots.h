/* What a graph knows of its slots from the beginning. */
#ifndef GKI_RUNTIME_SLOTS_H
#define GKI_RUNTIME_SLOTS_H
#include "runtime/graph.h"

gk_result gki_slots_make(gk_graph *graph); /* from the plan: values, memory that the graph owns */
#endif
