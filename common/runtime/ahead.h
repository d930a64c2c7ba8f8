/* A launch whose runs are enqueued ahead of the decisions, which the device makes (GK_MODE_AHEAD). */
#ifndef GKI_RUNTIME_AHEAD_H
#define GKI_RUNTIME_AHEAD_H
#include "runtime/graph.h"

gk_result gki_ahead_make(gk_graph *graph); /* gk_graph.ahead, in the graph's arena */
/* Runs a whole launch, as a job of the device's worker. */
gk_result gki_ahead_run(gk_graph *graph, const gk_launch_args *launch, gk_launch_result *result);
#endif
