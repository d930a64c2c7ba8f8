/* Portable kernel text: where it lies, its tokens, and its translation to GLSL. gk_compose is in gk_backend.h. */
#ifndef GKI_KERNEL_SOURCE_H
#define GKI_KERNEL_SOURCE_H
#include "base/text.h"

/* include/gk_kernel.h, put into the library by the build (embed_text.py). */
extern const char gki_text_gk_kernel[];

typedef enum gki_token_kind { GKI_END, GKI_WORD, GKI_NUMBER, GKI_LITERAL, GKI_SIGN } gki_token_kind;

/* A word, a number, a string or character constant, or a sign such as && (never more than two characters). */
typedef struct gki_token {
  gki_token_kind kind;
  const char *at, *end;
} gki_token;

/* The first token behind blanks and comments; END at `end`. */
gki_token gki_next_token(const char *s, const char *end);

bool gki_token_is(gki_token token, const char *text);

/* Whether `words`, a list with a blank before and behind each word, holds this token. */
bool gki_token_in(gki_token token, const char *words);

/* From an opening bracket to behind the one that closes it, `end` if none does. */
const char *gki_group_end(const char *s, const char *end);

/* From the # of a directive to the end of its line, or of the line that continues it. */
const char *gki_directive_end(const char *s, const char *end);

/* Appends the text from `s` to `end`, if there is any. */
void gki_add_slice(gki_text *out, const char *s, const char *end);

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

/* A struct of the source and where its end lies: in C, and in GLSL, which puts the next member into padding at the end
 * of a nested struct, or of the last one of an array. */
typedef struct gki_struct {
  gki_token name;
  uint64_t bytes, alignment; /* in C */
  uint64_t used;             /* up to the end of its last member */
  bool known;                /* every member's size is */
  const char *split;         /* first member that the two put at different places, or NULL */
} gki_struct;

typedef struct gki_structs {
  gki_struct *at;
  size_t count, capacity;
} gki_structs;

/* Reads `(name) { members }` behind GK_STRUCT. False: out of memory. */
bool gki_read_struct(gki_structs *structs, const char *s, const char *end);

/* NULL: there is none of that name. */
const gki_struct *gki_find_struct(const gki_structs *structs, gki_token name);

/* Appends the text from `s` to `end` as GLSL, for this kernel. False: it can't be said, and gk_fail has been called.
 * `found`: set if the kernel was there. */
bool gki_glsl(gki_text *out, const gk_kernel *kernel, const gk_source *source, const char *s, const char *end,
              gki_structs *structs, bool *found);

/* What stands for GK_KERNEL(...) in GLSL: one type per buffer, the arguments, main(), the item function's head. */
void gki_glsl_head(gki_text *out, const gk_kernel *kernel);

/* "_" for a word that GLSL has for itself, else "". */
const char *gki_glsl_tail(gki_token word);
gki_token gki_whole_token(const char *text); /* a whole string as a token */

#endif
