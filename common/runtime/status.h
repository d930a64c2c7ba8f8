/* The result of a launch, as the host sees it. */
#ifndef GKI_RUNTIME_STATUS_H
#define GKI_RUNTIME_STATUS_H
#include "runtime/graph.h"

gk_result gki_status_make(gk_graph *graph);
void gki_status_fill(gk_graph *graph, uint64_t launch, const gk_launch_result *result);
#endif
