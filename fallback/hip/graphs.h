/* Runs as graphs of the runtime: made once, launched with one call, and never updated. */
#ifndef GKI_HIP_GRAPHS_H
#define GKI_HIP_GRAPHS_H
#include "hip/graph.h"

/* Finds the form of arguments that works, and from which length on a run is launched as a graph: from that on which a
 * graph is faster than launches on a stream, if graphs of 256 nodes are right. $GK_HIP_GRAPHS=1: all runs, if they are
 * right; 0: none. On the device, with gk's own kernels. GK_ERROR_NO_DEVICE: the device hasn't survived it. */
gk_result gki_hip_try(gki_hip_device *device);

/* Makes the graphs of runs that are long enough, each with its control kernel, but for runs with library calls or
 * handwritten code, whose arguments change. A run whose graph the runtime refuses is launched task by task. */
gk_result gki_hip_make_execs(gki_hip_graph *graph);
void gki_hip_drop_execs(gki_hip_graph *graph);
#endif
