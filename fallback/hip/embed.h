/* Kernels that gk-embed compiled when the program was built. */
#ifndef GKI_HIP_EMBED_H
#define GKI_HIP_EMBED_H
#include "kernel/embedder.h"

/* gk_backend.query's answer to GKI_EMBEDDER. */
extern const gki_embedder gki_hip_embedder;
#endif
