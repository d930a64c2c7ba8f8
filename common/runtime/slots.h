/* What a graph knows of its slots from the beginning. */
#ifndef GKI_RUNTIME_SLOTS_H
#define GKI_RUNTIME_SLOTS_H
#include "runtime/graph.h"

gk_result gki_slots_make(gk_graph *graph); /* from the plan: values, memory that the graph owns */

/* Binds the slots of pass numbers. The graph's queue has been made. */
gk_result gki_passes_make(gk_graph *graph);
/* Batched: writes a loop's pass number. No task that reads it is under way. */
gk_result gki_pass_write(const gk_graph *graph, uint32_t loop, uint64_t number);
#endif
