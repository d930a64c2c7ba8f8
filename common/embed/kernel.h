/* Kernels of a source, read from its text. */
#ifndef GKI_EMBED_KERNEL_H
#define GKI_EMBED_KERNEL_H
#include "kernel/struct.h"

/* The same as GK_KERNEL's constant on the host, as far as gk_compose reads it. */
typedef struct gki_kernel_text {
  gk_kernel kernel;
  gk_param params[GK_MAX_ARGS];
  char *names; /* all of them; for gk_host_free */
} gki_kernel_text;

/* `word`: the GK_KERNEL, _2D or _3D. False, after gk_fail: out of memory, or it can't be read. */
bool gki_read_kernel(gki_kernel_text *made, const gk_source *source, gki_token word, const char *end,
                     const gki_structs *structs);
#endif
