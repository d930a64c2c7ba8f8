/* A text of CUDA C++ to be compiled, at run time or when the program is built. */
#ifndef GKI_KERNEL_UNIT_H
#define GKI_KERNEL_UNIT_H
#include "gk_backend.h"

typedef struct gki_unit {
  const char *text;
  const char *file;    /* the text's name in messages; the other files in messages are those of its #line directives */
  const char *kernel;  /* the kernel that it is compiled for, in messages; NULL: no particular one */
  const char *options; /* for NVRTC, separated by blanks; they may name another GPU; NULL: none */
  bool is_whole;       /* no #include in it is read */
} gki_unit;

/* A compiler's result. */
typedef struct gki_compiled {
  void *bytes; /* the image, for the driver; a zero byte follows */
  size_t size;
  char *log; /* the compiler's warnings; NULL: none */
} gki_compiled;
void gki_compiled_free(gki_compiled *image); /* also an empty one */

enum { GKI_UNIT_NAME_BYTES = 512 };

/* "kernel scale of cloth.c" */
void gki_unit_name(const gki_unit *text, char name[GKI_UNIT_NAME_BYTES]);

/* Whether it needs other files. They may change, so the compiled result can't be kept. */
bool gki_unit_includes(const gki_unit *text);

/* Whether it may be a composed text that continues with host code because GK_SOURCE_END is missing: it has an
 * #include. */
bool gki_unit_may_go_on(const gki_unit *text);

/* A copy without the folders in its #line directives, unless they may get into the compiled result: the sources may be
 * in another folder the next time. To be freed by gk_host_free; NULL: out of memory. */
char *gki_unit_plain(const gki_unit *text);

/* A hash of that copy and of the options. False: the text includes files, or out of memory. */
bool gki_unit_hash(const gki_unit *text, uint64_t hash[2]);
#endif
