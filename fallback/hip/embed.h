/* Kernels that gk-embed compiled when the program was built. */
#ifndef GKI_HIP_EMBED_H
#define GKI_HIP_EMBED_H
#include "kernel/embedder.h"

/* gk_backend.query's answer to GKI_EMBEDDER. */
extern const gki_embedder gki_hip_embedder;

enum { GKI_HIP_WHY_BYTES = 1024 };

/* The program's image of a text for a device of that architecture; NULL: there is none, and `why` and a warning say
 * which there are instead. Thread-safe. */
const gk_image *gki_hip_embedded(const gki_unit *text, const char *architecture, char why[GKI_HIP_WHY_BYTES]);
#endif
