/* The graphs of a plan: one for launches from the top, and, after the first launch that resumes, one that starts at any
 * checkpoint. Both use the same table of slots and the same control block. */
#ifndef GKI_CUDA_LOWER_H
#define GKI_CUDA_LOWER_H
#include "cuda/graph.h"

/* In the device's context, of a plan that needn't be gated. What it leaves half done, gki_cuda_graph_drop frees.
 * GK_ERROR_UNSUPPORTED with `refused`, and nothing is said yet: the driver takes no such graph. */
gk_result gki_cuda_graph_make(gki_cuda_graph *graph, gki_cuda_device *device, const gk_plan *plan, void *const *code);
void gki_cuda_graph_drop(gki_cuda_graph *graph);

/* The same for a graph of somebody else's: it comes behind the nodes `after`, and what is to follow behind `last`. In
 * the device's context. GK_ERROR_UNSUPPORTED: the list or the device can't do it, and it is said why. */
gk_result gki_cuda_graph_make_into(gki_cuda_graph *graph, gki_cuda_device *device, const gk_plan *plan,
                                   void *const *code, gki_cuda_into *into);

/* The graph for a launch from the top or from a checkpoint; made now, if it isn't there. In the device's context.
 * Answers as gki_cuda_graph_make. */
gk_result gki_cuda_variant_get(gki_cuda_graph *graph, bool resumes, gki_cuda_variant **variant);
/* Waits for the stream if something on it may still use the variant's memory. In the device's context. */
void gki_cuda_variant_drop(gki_cuda_graph *graph, gki_cuda_variant *variant);
#endif
