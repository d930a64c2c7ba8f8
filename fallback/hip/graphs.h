/* Runs as graphs of the runtime: made once, launched with one call, and never updated. */
#ifndef GKI_HIP_GRAPHS_H
#define GKI_HIP_GRAPHS_H
#include "hip/graph.h"

/* Decides whether the device launches runs as graphs: if a graph of 256 nodes is right and faster than launches on a
 * stream. $GK_HIP_GRAPHS=1: if it is right; 0: never. On the device, with gk's own kernels. */
gk_result gki_hip_try_graphs(gki_hip_device *device);

/* Makes the graphs of the runs, each with its control kernel, but for runs with library calls or handwritten code,
 * whose arguments change. A run whose graph the runtime refuses is launched task by task. */
gk_result gki_hip_make_execs(gki_hip_graph *graph);
void gki_hip_drop_execs(gki_hip_graph *graph);
#endif
