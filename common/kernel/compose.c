#include "kernel/compose.h"
#include "base/error.h"
#include <stdlib.h>
#include <string.h>

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c); }
static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool starts(const char *s, const char *end, char first, char second) {
  return s < end && *s == first && s + 1 < end && s[1] == second;
}

static const char *over_line(const char *s, const char *end) {
  const char *found = memchr(s, '\n', (size_t)(end - s));
  return found ? found : end;
}

static const char *over_comment(const char *s, const char *end) {
  for (s += 2; s < end; ++s)
    if (starts(s, end, '*', '/')) return s + 2;
  return end;
}

static const char *over_blanks(const char *s, const char *end) {
  while (s < end) {
    if (is_blank(*s)) ++s;
    else if (starts(s, end, '\\', '\n') || starts(s, end, '\\', '\r')) s += 2;
    else if (starts(s, end, '/', '/')) s = over_line(s, end);
    else if (starts(s, end, '/', '*')) s = over_comment(s, end);
    else break;
  }
  return s;
}

/* Ends at the end of the line at the latest: an apostrophe in an #error is no constant. */
static const char *over_literal(const char *s, const char *end) {
  char quote = *s++;
  for (; s < end && *s != '\n'; ++s) {
    if (*s == quote) return s + 1;
    if (*s == '\\' && s + 1 < end && s[1] != '\n') ++s;
  }
  return s;
}

static const char *over_number(const char *s, const char *end) {
  for (++s; s < end; ++s) {
    bool exponent = (*s == '+' || *s == '-') && (s[-1] == 'e' || s[-1] == 'E');
    if (!is_letter(*s) && *s != '.' && !exponent) break;
  }
  return s;
}

gki_token gki_next_token(const char *s, const char *end) {
  s = over_blanks(s, end);
  if (s == end) return (gki_token){GKI_END, s, s};
  if (is_digit(*s) || (*s == '.' && end - s > 1 && is_digit(s[1])))
    return (gki_token){GKI_NUMBER, s, over_number(s, end)};
  if (*s == '"' || *s == '\'') return (gki_token){GKI_LITERAL, s, over_literal(s, end)};
  gki_token token = {GKI_WORD, s, s};
  while (token.end < end && is_letter(*token.end)) ++token.end;
  if (token.end > s) return token;
  token = (gki_token){GKI_SIGN, s, s + 1};
  bool doubled = end - s > 1 && s[1] == *s && strchr("&|+-=<>", *s);
  bool assigns = end - s > 1 && s[1] == '=' && strchr("!<>+-*/%&|^", *s);
  if (doubled || assigns || starts(s, end, '-', '>')) ++token.end;
  return token;
}

gki_token gki_whole_token(const char *text) { return (gki_token){GKI_WORD, text, text + strlen(text)}; }

bool gki_token_is(gki_token token, const char *text) {
  for (const char *s = token.at; s < token.end; ++s, ++text)
    if (*s != *text) return false;
  return *text == 0;
}

bool gki_token_in(gki_token token, const char *words) {
  size_t size = (size_t)(token.end - token.at);
  if (token.kind != GKI_WORD || !size) return false;
  for (const char *at = words; (at = strchr(at, ' ')) && at[1]; ++at)
    if (at[1] == *token.at && strncmp(at + 1, token.at, size) == 0 && at[1 + size] == ' ') return true;
  return false;
}

const char *gki_group_end(const char *s, const char *end) {
  for (int depth = 0;;) {
    gki_token token = gki_next_token(s, end);
    if (token.kind == GKI_END) return end;
    s = token.end;
    if (token.kind != GKI_SIGN) continue;
    if (strchr("([{", *token.at)) ++depth;
    if (strchr(")]}", *token.at) && --depth <= 0) return s;
  }
}

const char *gki_directive_end(const char *s, const char *end) {
  while (s < end && *s != '\n') {
    if (starts(s, end, '\\', '\n')) s += 2;
    else if (starts(s, end, '\\', '\r') && starts(s + 1, end, '\r', '\n')) s += 3;
    else if (starts(s, end, '/', '*')) s = over_comment(s, end);
    else if (starts(s, end, '/', '/')) return over_line(s, end);
    else ++s;
  }
  return s;
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

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

/* Whether the path ends in the other, at the beginning of a folder or file. */
static bool ends_in(const char *path, const char *other) {
  const size_t bytes = strlen(path), others = strlen(other);
  return bytes >= others && strcmp(path + bytes - others, other) == 0 &&
         (bytes == others || other[0] == '/' || path[bytes - others - 1] == '/');
}

/* A header may lie in two folders by a link or a copy, whose paths have nothing else in common; others of its name, and
 * files that were compiled in two folders, differ by their texts alone. */
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

/* Behind so many lines of a text. */
static const char *behind_lines(const char *s, uint32_t lines) {
  for (uint32_t k = 0; k < lines && *s; ++k) {
    s += strcspn(s, "\n");
    if (*s) ++s;
  }
  return s;
}

/* What devices get of a file: from the line behind GK_SOURCE to GK_SOURCE_END or the end. */
static const char *region(const gk_source *source, const char **end) {
  const char *s = behind_lines(source->text, source->line), *text_end = s + strlen(s);
  gki_token token = {GKI_END, s, s};
  do token = gki_next_token(token.end, text_end);
  while (token.kind != GKI_END && !gki_token_is(token, "GK_SOURCE_END"));
  *end = token.at;
  return s;
}

static void line_directive(gki_text *out, uint32_t line, const char *file) {
  gki_text_add(out, "\n#line %u \"", (unsigned)line);
  for (; *file; ++file) { /* GLSL has no escapes in its strings; a \ in a Windows path may as well be a / */
    char c = *file == '\\' ? '/' : *file == '"' || *file == '\n' ? '_' : *file;
    gki_text_add(out, "%c", c);
  }
  gki_text_add(out, "\"\n");
}

/* Two files under one name would be taken for each other by the linker; then the line doesn't hold what it should. */
static bool part_is_right(const gk_kernel *kernel, const gk_source *part) {
  if (!part || !part->file || !part->text) {
    gk_fail(GK_ERROR_INVALID, "kernel %s: a source that it needs is NULL, or has no file or text; make sources by "
            "GK_SOURCE and GK_SHARED", kernel->name);
    return false;
  }
  const char *other = gki_source_of_other(part);
  if (other) {
    gk_fail(GK_ERROR_INVALID, "kernel %s: the text of %s, line %u, is from %s in this program: both are called the "
            "same in GK_SOURCE or GK_SHARED; give each file a name of its own", kernel->name, part->file,
            (unsigned)part->line, other);
    return false;
  }
  if (!part->line) return true; /* by hand: all of the text */
  const char *line = behind_lines(part->text, part->line - 1), *end = line + strcspn(line, "\n");
  gki_token token = {GKI_END, line, line};
  do token = gki_next_token(token.end, end);
  while (token.kind != GKI_END && !gki_token_in(token, " GK_SOURCE GK_SHARED "));
  if (token.kind != GKI_END) return true;
  gk_fail(GK_ERROR_INVALID, "kernel %s: line %u of the text of %s is no GK_SOURCE(...) or GK_SHARED(...). Either two "
          "sources of the program have the same name: give each its own; or the text is an old one: build again",
          kernel->name, (unsigned)part->line, part->file);
  return false;
}

static bool kernel_is_right(const gk_kernel *kernel) {
  if (!kernel || !kernel->name) {
    gk_fail(GK_ERROR_INVALID, "gk_compose: the kernel or its name is NULL");
    return false;
  }
  const gk_source *source = kernel->source;
  if (!source) {
    gk_fail(GK_ERROR_UNSUPPORTED, "kernel %s has no portable text, only code for certain backends; define it by "
            "GK_KERNEL", kernel->name);
    return false;
  }
  if (kernel->dimensions > 3 || (kernel->param_count && !kernel->params) || (source->use_count && !source->uses)) {
    gk_fail(GK_ERROR_INVALID, "kernel %s: more than 3 dimensions, or parameters or uses that are counted but NULL",
            kernel->name);
    return false;
  }
  for (uint32_t k = 0; k < kernel->param_count; ++k) {
    if (kernel->params[k].name && kernel->params[k].element) continue;
    gk_fail(GK_ERROR_INVALID, "kernel %s: parameter %u has no name or element type, which its portable text needs",
            kernel->name, (unsigned)k);
    return false;
  }
  for (uint32_t k = 0; k < source->use_count; ++k)
    if (!part_is_right(kernel, source->uses[k])) return false;
  return part_is_right(kernel, source);
}

void gki_add_slice(gki_text *out, const char *s, const char *end) {
  enum { most = 1 << 20 }; /* the length in a format is an int */
  for (; s < end; s += end - s < most ? end - s : most)
    gki_text_add(out, "%.*s", (int)(end - s < most ? end - s : most), s);
}

/* Whether GK_KERNEL(name, ...) is written there, not by a macro. */
static bool stands_in(const char *s, const char *end, const char *name) {
  gki_token token = {GKI_END, s, s};
  do {
    token = gki_next_token(token.end, end);
    if (!gki_token_in(token, " GK_KERNEL GK_KERNEL_2D GK_KERNEL_3D ")) continue;
    gki_token open = gki_next_token(token.end, end);
    if (gki_token_is(open, "(") && gki_token_is(gki_next_token(open.end, end), name)) return true;
  } while (token.kind != GKI_END);
  return false;
}

/* The next token, or the word of the next directive. What stands between #if and #endif may be hidden from devices, and
 * is left out. */
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
  const char *end, *s = region(source, &end);
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

static bool ends_before_host_code(const gk_kernel *kernel, const gk_source *part) {
  const gki_token word = gki_host_word(part);
  if (word.kind == GKI_END) return true;
  gk_fail(GK_ERROR_COMPILE, GKI_HOST_CODE, part->file, gki_source_line(part, word.at), kernel->name,
          (int)(word.end - word.at), word.at);
  return false;
}

static bool compose(gki_text *out, const gk_kernel *kernel, bool glsl) {
  const gk_source *source = kernel->source;
  gki_structs structs = {0};
  bool found = !glsl, right = true;
  if (glsl)
    gki_text_add(out, "#version 460\n#extension GL_GOOGLE_cpp_style_line_directive : require\n#define GK_GLSL 1");
  line_directive(out, 1, "gk_kernel.h");
  gki_add_slice(out, gki_text_gk_kernel, gki_text_gk_kernel + strlen(gki_text_gk_kernel));
  for (uint32_t k = 0; right && k <= source->use_count; ++k) {
    const gk_source *part = k < source->use_count ? source->uses[k] : source;
    const char *end, *s = region(part, &end);
    right = ends_before_host_code(kernel, part);
    if (!right) break;
    line_directive(out, part->line + 1, part->file);
    if (glsl) right = gki_glsl(out, kernel, part, s, end, &structs, &found);
    else {
      gki_add_slice(out, s, end);
      found = part != source || stands_in(s, end, kernel->name) || !stands_in(end, end + strlen(end), kernel->name);
    }
  }
  gki_text_add(out, "\n");
  if (right && !found)
    gk_fail(GK_ERROR_COMPILE, "kernel %s isn't in the text of %s behind line %u: write GK_KERNEL(%s, ...) there, and "
            "not by a macro of yours", kernel->name, source->file, (unsigned)source->line, kernel->name);
  gk_release(structs.at);
  return right && found;
}

char *gk_compose(const gk_kernel *kernel, const char *target) {
  gki_begin();
  bool glsl = target && strcmp(target, "glsl") == 0;
  if (!glsl && !(target && (strcmp(target, "cuda") == 0 || strcmp(target, "hip") == 0))) {
    gk_fail(GK_ERROR_INVALID, "gk_compose: the target is %s%s; it is cuda, hip or glsl", target ? "" : "NULL",
            target ? target : "");
    return NULL;
  }
  if (!kernel_is_right(kernel)) return NULL;
  gki_text out = {0};
  if (compose(&out, kernel, glsl)) return gki_text_finish(&out);
  gk_release(out.data);
  return NULL;
}
