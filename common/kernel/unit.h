/* A text of CUDA C++, as it is compiled when a program runs, or when it was built. */
#ifndef GKI_KERNEL_UNIT_H
#define GKI_KERNEL_UNIT_H
#include "gk_backend.h"

typedef struct gki_unit {
  const char *text;
  const char *file;    /* stands for it in messages; what they name beside it are the files of its #line directives */
  const char *kernel;  /* for which it is compiled, in messages; NULL: for none in particular */
  const char *options; /* for NVRTC, with blanks between them, also of another GPU; NULL: none */
  bool is_whole;       /* no #include in it is read */
} gki_unit;

/* What a compiler made of one. */
typedef struct gki_compiled {
  void *bytes; /* for the driver; a zero byte stands behind it */
  size_t size;
  char *log; /* the compiler's warnings; NULL: there were none */
} gki_compiled;
void gki_compiled_free(gki_compiled *image); /* also if there is none */

enum { GKI_UNIT_NAME_BYTES = 512 };

/* "kernel scale of cloth.c" */
void gki_unit_name(const gki_unit *text, char name[GKI_UNIT_NAME_BYTES]);

/* What else it needs lies in files that may change: what is made of it holds for today only. */
bool gki_unit_includes(const gki_unit *text);

/* Whether it may be a composed one that goes on with host code, for want of a GK_SOURCE_END: it has an #include. */
bool gki_unit_may_go_on(const gki_unit *text);

/* A copy, less the folders in its #line directives, unless those may get into what is made of it: it may lie elsewhere
 * the next time. To be freed by gk_host_free; NULL: out of memory. */
char *gki_unit_plain(const gki_unit *text);

/* A hash of that and of the options. False: it includes files, or out of memory. */
bool gki_unit_hash(const gki_unit *text, uint64_t hash[2]);
#endif
