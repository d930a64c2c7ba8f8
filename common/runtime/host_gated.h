/* Launches on a backend that runs batches and reads flags. */
#ifndef GKI_RUNTIME_HOST_GATED_H
#define GKI_RUNTIME_HOST_GATED_H
#include "runtime/graph.h"

/* Walks the plan: the walker gives the next step. */
gk_result gki_host_gated_run(gk_graph *graph, const gk_launch_args *launch, gk_launch_result *launch_result);

/* Calls the function of a CALL_HOST, with the host's addresses of memory that the host reaches. All work in front of it
 * has ended. */
gk_result gki_call_host(gk_graph *graph, const gk_launch_args *launch, uint32_t run);
#endif
