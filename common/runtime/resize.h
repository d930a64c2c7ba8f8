/* Memory that a graph owns for its slots. */
#ifndef GKI_RUNTIME_RESIZE_H
#define GKI_RUNTIME_RESIZE_H
#include "runtime/graph.h"

/* Gives a slot memory of `count` elements, with the content of the memory before. Messages name the public `call`. */
gk_result gki_slot_resize(gk_graph *graph, const char *call, uint32_t slot, size_t count);
void gki_slots_free(gk_graph *graph); /* all memory that the graph owns */
#endif
