/* The graphs of a plan: one for launches from the top, and, from the first launch that resumes on, one that starts at
 * any checkpoint. Both use the same table of slots and the same control block. */
#ifndef GKI_CUDA_LOWER_H
#define GKI_CUDA_LOWER_H
#include "cuda/graph.h"

/* Makes a native graph. In the device's context. After a failure gki_cuda_graph_drop frees what was made.
 * GK_ERROR_UNSUPPORTED, without gk_fail and with the reason in `refused`: the driver takes no such graph. */
gk_result gki_cuda_graph_make(gki_cuda_graph *graph, gki_cuda_device *device, const gk_plan *plan, void *const *code);
void gki_cuda_graph_drop(gki_cuda_graph *graph);

/* The same in a caller's graph (see gki_cuda_into). Here GK_ERROR_UNSUPPORTED comes with gk_fail: the list or the
 * device isn't fit for it. */
gk_result gki_cuda_graph_make_into(gki_cuda_graph *graph, gki_cuda_device *device, const gk_plan *plan,
                                   void *const *code, gki_cuda_into *into);

/* The graph for a launch from the top or from a checkpoint, made if necessary. In the device's context. Results as for
 * gki_cuda_graph_make. */
gk_result gki_cuda_variant_get(gki_cuda_graph *graph, bool resumes, gki_cuda_variant **variant);
/* Waits for the stream if its work may still use the variant's memory. In the device's context. */
void gki_cuda_variant_drop(gki_cuda_graph *graph, gki_cuda_variant *variant);
#endif
