/* Kernels that gk-embed compiled when the program was built. */
#ifndef GKI_HIP_EMBED_H
#define GKI_HIP_EMBED_H
#include "kernel/embedder.h"

/* gk_backend.query's answer to GKI_EMBEDDER. */
extern const gki_embedder gki_hip_embedder;

/* gk_image.target: what follows "gfx", a hexadecimal number; 0: no name of a GPU. Features behind a colon don't count:
 * code that names none runs with any. */
uint32_t gki_hip_target(const char *architecture);

/* Of gki_module_loader. */
int gki_hip_rank(const gk_image *image, int target);
void gki_hip_describe_image(const gk_image *image, char *text, size_t bytes);
#endif
