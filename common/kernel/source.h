/* A kernel's source text: the part of its file that devices get. */
#ifndef GKI_KERNEL_SOURCE_H
#define GKI_KERNEL_SOURCE_H
#include "gk_backend.h"
#include "kernel/token.h"

/* From the line behind GK_SOURCE to GK_SOURCE_END, or to the end of the text. */
const char *gki_source_region(const gk_source *source, const char **end);

/* The text behind so many lines. */
const char *gki_behind_lines(const char *s, uint32_t lines);

/* The first of gk's words for the host in a source's text for devices. Host code begins there. If there is none, an END
 * at the text's end. */
gki_token gki_host_word(const gk_source *source);
#define GKI_HOST_CODE "%s:%u: kernel %s: %.*s is for the host alone; put GK_SOURCE_END above the host code"

/* Whether there is an #include, outside of #if. */
bool gki_includes(const char *s, const char *end);

/* The line of a place in a source's text, from 1. */
unsigned gki_source_line(const gk_source *source, const char *at);

/* The file whose text the linker kept in place of the source's, since both have the same name; NULL: the text is the
 * source's own, or unknown. One header may be found by several paths. */
const char *gki_source_of_other(const gk_source *source);
#endif
