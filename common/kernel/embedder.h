/* A backend's part in gk-embed, which compiles kernels when a program is built. */
#ifndef GKI_KERNEL_EMBEDDER_H
#define GKI_KERNEL_EMBEDDER_H
#include "kernel/unit.h"

/* gk_backend.query answers this name with a gki_embedder; NULL: none of its kernels can be compiled beforehand. */
#define GKI_EMBEDDER "gki_embedder"

/* Takes an image whose file and hash are empty, and its bytes, of gk_host_alloc. */
typedef gk_result gki_embed_take(void *user, const gk_image *image, void *bytes);

/* It needs no device. Failures are gk_fail's. */
typedef struct gki_embedder {
  const char *language; /* for gk_compose */
  bool is_per_kernel;   /* a kernel is a text; else a source */
  const char *help;     /* a line per option */
  size_t option_bytes;  /* of what the options say; zero at first */
  /* Reads an option, and its value if it takes one, from the NULL-terminated words. Returns how many words it took; 0:
   * it is no option of this backend, or lacks its value; -1: a wrong value. NULL: there are no options. */
  int (*read_option)(void *options, char **words);
  const gki_unit *(*own)(const void *options); /* a text of gk's that is compiled, too; NULL, both: none */
  gk_result (*compile)(const void *options, const gki_unit *text, gki_embed_take *take, void *user);
} gki_embedder;
#endif
