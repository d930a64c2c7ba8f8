/* The backend's entries for a native graph. The device posts the result of a launch. As a rule, a launch neither
 * waits nor allocates. The first launch that resumes makes a CUDA graph, and so does the first that has values for all
 * library calls. A launch with other values for library calls first waits for the stream. */
#ifndef GKI_CUDA_LAUNCH_H
#define GKI_CUDA_LAUNCH_H
#include "cuda/graph.h"

/* Whether the launch has posted its status. */
bool gki_cuda_is_posted(const gki_cuda_graph *graph, uint64_t number);

/* Publishes the launch number before reading the cancel flag: a concurrent cancel then sees the number, or is seen
 * here. */
void gki_cuda_publish_number(gki_cuda_graph *graph, const gk_launch_args *launch, uint64_t number);

/* Any thread may call these two, one at a time. */
gk_result gki_cuda_launch(gki_cuda_graph *graph, const gk_launch_args *launch);
gk_result gki_cuda_wait(gki_cuda_graph *graph, bool block, gk_launch_result *launch_result); /* waits only if `block` */
gk_result gki_cuda_cancel(gki_cuda_graph *graph); /* any thread at any time; never waits */
#endif
