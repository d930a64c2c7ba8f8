/* A kernel's source text: which part of its file devices get. */
#ifndef GKI_KERNEL_SOURCE_H
#define GKI_KERNEL_SOURCE_H
#include "gk_backend.h"
#include "kernel/token.h"

/* From the line behind GK_SOURCE to GK_SOURCE_END, or to the end of the text. */
const char *gki_source_region(const gk_source *source, const char **end);

/* The place behind so many lines of a text. */
const char *gki_behind_lines(const char *s, uint32_t lines);

/* The first word of gk's for the host alone in what devices get of a source, as the file goes on with host code; END at
 * its end: there is none. */
gki_token gki_host_word(const gk_source *source);
#define GKI_HOST_CODE "%s:%u: kernel %s: %.*s is for the host alone; put GK_SOURCE_END above the host code"

/* Whether there is an #include, outside of #if. */
bool gki_includes(const char *s, const char *end);

/* The line of a place in a source's text, from 1. */
unsigned gki_source_line(const gk_source *source, const char *at);

/* The file whose text the linker took for the source's, as both have one name; NULL: it is the source's own, or not
 * known. One header may be found by several paths. */
const char *gki_source_of_other(const gk_source *source);
#endif
