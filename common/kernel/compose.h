/* gk_compose is in gk_backend.h. */
#ifndef GKI_KERNEL_COMPOSE_H
#define GKI_KERNEL_COMPOSE_H

/* include/gk_kernel.h, put into the library by the build (embed_text.py). */
extern const char gki_text_gk_kernel[];
#endif
