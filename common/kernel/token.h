/* The tokens of kernel text. */
#ifndef GKI_KERNEL_TOKEN_H
#define GKI_KERNEL_TOKEN_H
#include <stdbool.h>

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

/* Whether the token begins a kernel. */
static inline bool gki_is_kernel_word(gki_token token) {
  return gki_token_in(token, " GK_KERNEL GK_KERNEL_2D GK_KERNEL_3D ");
}

/* From an opening bracket to behind its closing bracket; `end` if there is none. */
const char *gki_group_end(const char *s, const char *end);

/* From the # of a directive to the end of its line, or of the line that continues it. */
const char *gki_directive_end(const char *s, const char *end);

/* A whole string as a token. */
gki_token gki_whole_token(const char *text);
#endif
