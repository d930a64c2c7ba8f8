/* A growing text. A failure is kept, so a writer needs no checks in between. */
#ifndef GKI_BASE_TEXT_H
#define GKI_BASE_TEXT_H
#include "base/memory.h"

typedef struct gki_text {
  char *data; /* ends in 0 if there is any */
  size_t length, capacity;
  bool failed;
} gki_text;

typedef enum gki_quoting {
  GKI_PLAIN, /* for readers: control characters as \x0a */
  GKI_DOT,   /* in the quotes of a Graphviz string */
  GKI_RECORD, /* in a field of a record in such a string */
  GKI_JSON,  /* in the quotes of a JSON string */
} gki_quoting;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void gki_text_add(gki_text *text, const char *format, ...);

/* Appends bytes of any origin. UTF-8 is kept; other bytes become U+FFFD, since JSON and Graphviz refuse a whole file
 * with them. */
void gki_text_quote(gki_text *text, const char *words, gki_quoting how);

/* Appends the text from `s` to `end`, if there is any. */
void gki_add_slice(gki_text *text, const char *s, const char *end);

/* The text, to be freed by gk_host_free; NULL: out of memory, and gk_fail has been called. */
char *gki_text_finish(gki_text *text);
/* The same, to be freed by free(), as gk_backend.dump returns it. */
char *gki_text_to_malloc(gki_text *text);
#endif
