/* The backend's entries for a graph that is native: one hand-over, and the device posts how it went. A launch neither
 * waits nor allocates, with two exceptions: the first that resumes, and the first that knows what its library calls
 * get, make a graph of the driver's; and one whose calls get something else first waits for the stream. */
#ifndef GKI_CUDA_LAUNCH_H
#define GKI_CUDA_LAUNCH_H
#include "cuda/graph.h"

/* Whether that launch's status is there. */
bool gki_cuda_is_posted(const gki_cuda_graph *graph, uint64_t number);

/* The number is known to gki_cuda_cancel before common's word is looked at, so one of the two sees a cancel. */
void gki_cuda_publish_number(gki_cuda_graph *graph, const gk_launch_args *launch, uint64_t number);

/* One thread at a time, whichever it is, for these two. */
gk_result gki_cuda_launch(gki_cuda_graph *graph, const gk_launch_args *launch);
gk_result gki_cuda_wait(gki_cuda_graph *graph, bool block, gk_launch_result *record); /* waits only if `block` */
gk_result gki_cuda_cancel(gki_cuda_graph *graph); /* any thread at any time; never waits */
#endif
