#include "kernel/source.h"
#include <stdlib.h>
#include <string.h>

unsigned gki_source_line(const gk_source *source, const char *at) {
  unsigned line = 1;
  for (const char *s = source->text; s < at; ++s) line += *s == '\n';
  return line;
}

static const char *last_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static const char *without_dots(const char *path) {
  for (;;) {
    if (strncmp(path, "./", 2) == 0) path += 2;
    else if (strncmp(path, "../", 3) == 0) path += 3;
    else return path;
  }
}

/* Whether the path ends with the other path, beginning at a folder or file name. */
static bool ends_in(const char *path, const char *other) {
  const size_t bytes = strlen(path), others = strlen(other);
  return bytes >= others && strcmp(path + bytes - others, other) == 0 &&
         (bytes == others || other[0] == '/' || path[bytes - others - 1] == '/');
}

/* A link or a copy can put a header into two folders, whose paths have only their end in common. Other headers with
 * that name, and files compiled in two folders, differ only by their texts. */
static bool is_same_file(const char *a, const char *b) {
  const char *name = last_name(a), *dot = strrchr(name, '.');
  a = without_dots(a);
  b = without_dots(b);
  return ends_in(a, b) || ends_in(b, a) || (dot && dot[1] == 'h' && strcmp(name, last_name(b)) == 0);
}

const char *gki_source_of_other(const gk_source *source) {
  if (!source->from || !source->file) return NULL;
  char *end;
  const unsigned long line = strtoul(source->from, &end, 10);
  const char *file = *end == ':' ? end + 1 : source->from;
  const bool is_own = !source->own || !source->text || strcmp(source->own, source->text) == 0;
  return is_own && line == source->line && is_same_file(source->file, file) ? NULL : file;
}

const char *gki_behind_lines(const char *s, uint32_t lines) {
  for (uint32_t k = 0; k < lines && *s; ++k) {
    s += strcspn(s, "\n");
    if (*s) ++s;
  }
  return s;
}

const char *gki_source_region(const gk_source *source, const char **end) {
  const char *s = gki_behind_lines(source->text, source->line), *text_end = s + strlen(s);
  gki_token token = {GKI_END, s, s};
  do token = gki_next_token(token.end, text_end);
  while (token.kind != GKI_END && !gki_token_is(token, "GK_SOURCE_END"));
  *end = token.at;
  return s;
}

/* The next token, or the word of the next directive. Skips text between #if and #endif, which devices may not see. */
static gki_token next_open(const char **s, const char *end, int *hidden, bool *directs) {
  for (;;) {
    gki_token token = gki_next_token(*s, end);
    *s = token.end;
    *directs = gki_token_is(token, "#");
    if (*directs) {
      token = gki_next_token(*s, end);
      *hidden += gki_token_in(token, " if ifdef ifndef ") - gki_token_is(token, "endif");
      *s = gki_directive_end(*s, end);
    }
    if (*hidden <= 0 || token.kind == GKI_END) return token;
  }
}

gki_token gki_host_word(const gk_source *source) {
  static const char ours[] = " gk_bits gk_atomic_add gk_atomic_min gk_atomic_max gk_atomic_or gk_atomic_exchange "
                             "gk_atomic_cas gk_atomic_load ";
  int hidden = 0;
  bool directs;
  const char *end, *s = gki_source_region(source, &end);
  gki_token token;
  do token = next_open(&s, end, &hidden, &directs);
  while (token.kind != GKI_END && (directs || strncmp(token.at, "gk_", 3) != 0 || gki_token_in(token, ours)));
  return token;
}

bool gki_includes(const char *s, const char *end) {
  int hidden = 0;
  bool directs;
  gki_token token;
  do token = next_open(&s, end, &hidden, &directs);
  while (token.kind != GKI_END && !(directs && gki_token_is(token, "include")));
  return token.kind != GKI_END;
}
