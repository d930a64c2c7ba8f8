/* The result of a launch, as the host sees it. */
#ifndef GKI_RUNTIME_STATUS_H
#define GKI_RUNTIME_STATUS_H
#include "runtime/graph.h"

gk_result gki_status_make(gk_graph *graph);
void gki_status_fill(gk_graph *graph, uint64_t launch, const gk_launch_result *result);
/* Adds the status of the last launch to the totals, of which it is the first or not. */
void gki_status_add(gk_graph *graph, bool is_first);
#endif
