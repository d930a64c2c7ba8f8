/* A graph as the driver draws it, with the list's names. */
#ifndef GKI_CUDA_DUMP_H
#define GKI_CUDA_DUMP_H
#include "base/text.h"
#include "cuda/graph.h"

/* Appends to the text. In the device's context. */
gk_result gki_cuda_draw(const gki_cuda_graph *graph, const gki_cuda_variant *variant, gki_text *text);
#endif
