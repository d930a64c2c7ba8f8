#include "translate.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

extern const char gki_text_sim_code[], gki_text_sim_shim[];

void sim_write_source(FILE *out, const char *macros, const char *source, const char *name) {
  fprintf(out, "#line 1 \"code.h\"\n%s\n%s#line 1 \"shim.h\"\n%s\n#line 1 \"", gki_text_sim_code, macros,
          gki_text_sim_shim);
  for (const char *s = name; *s; ++s) {
    if (*s == '"' || *s == '\\') fputc('\\', out);
    fputc(*s, out);
  }
  fprintf(out, "\"\n%s\n", source);
}

/* ---- words and signs of preprocessed C++ ------------------------------------------------------------------------- */

typedef struct token {
  enum { END, WORD, STRING, SIGN, OTHER } kind; /* OTHER: blanks, numbers, lines that begin with # */
  const char *at, *end;
} token;

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 128; }

/* Behind a string or character constant that begins there. */
static const char *literal_end(const char *s) {
  char quote = *s++;
  while (*s && *s != quote && *s != '\n') s += *s == '\\' && s[1] ? 2 : 1;
  return *s == quote ? s + 1 : s;
}

/* s: at the quote behind the R. */
static const char *raw_literal_end(const char *s) {
  const char *open = strchr(s, '(');
  if (!open) return s + strlen(s);
  char close[32];
  snprintf(close, sizeof close, ")%.*s\"", (int)(open - s - 1), s + 1);
  const char *found = strstr(open, close);
  return found ? found + strlen(close) : s + strlen(s);
}

static const char *number_end(const char *s) {
  for (++s;; ++s) {
    bool exponent = strchr("eEpP", s[-1]) && (*s == '+' || *s == '-');
    bool separator = *s == '\'' && isalnum((unsigned char)s[1]);
    if (!exponent && !separator && !in_word(*s) && *s != '.') return s;
  }
}

static token next_token(const char *s, bool line_begins) {
  if (!*s) return (token){END, s, s};
  if (*s == '#' && line_begins) return (token){OTHER, s, s + strcspn(s, "\n")};
  if (isspace((unsigned char)*s)) return (token){OTHER, s, s + 1};
  bool is_number = isdigit((unsigned char)*s) || (*s == '.' && isdigit((unsigned char)s[1]));
  if (is_number) return (token){OTHER, s, number_end(s)};
  if (*s == '"' || *s == '\'') return (token){STRING, s, literal_end(s)};
  if (!in_word(*s)) return (token){SIGN, s, s + 1};
  const char *end = s;
  while (in_word(*end)) ++end;
  if (*end == '"' && end[-1] == 'R') return (token){STRING, s, raw_literal_end(end)};
  return (token){WORD, s, end};
}

static bool is(token t, const char *text) {
  return strlen(text) == (size_t)(t.end - t.at) && memcmp(t.at, text, strlen(text)) == 0;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

enum { DEEPEST = 256 };

typedef struct scanner {
  FILE *out, *list; /* the list of kernels */
  size_t kernels;
  token scopes[DEEPEST]; /* names of the namespaces around; END for other braces */
  unsigned depth;        /* of braces, */
  unsigned nested;       /* and of brackets of both kinds */
  token space;           /* what follows the word namespace */
  bool after_namespace, after_extern, is_static, is_template; /* in the declaration at hand */
  bool is_kernel;        /* and it is a kernel, */
  token last, name;      /* by that name, once its bracket has come */
  token bounds;          /* what its __launch_bounds__ are, from bracket to bracket; END: it has none */
  bool is_label;         /* `;` gets a name for the linker: dynamic shared memory */
  bool shares;           /* there is shared memory */
} scanner;

static void declaration_ends(scanner *s) {
  s->after_namespace = s->after_extern = s->is_static = s->is_template = s->is_kernel = s->is_label = false;
  s->space = s->last = s->name = s->bounds = (token){END, NULL, NULL};
}

static void add_kernel(scanner *s) {
  fprintf(s->list, "  sim_caller<&::");
  for (unsigned k = 0; k < s->depth && k < DEEPEST; ++k) {
    token scope = s->scopes[k];
    if (scope.kind == WORD) fprintf(s->list, "%.*s::", (int)(scope.end - scope.at), scope.at);
  }
  int length = (int)(s->name.end - s->name.at);
  fprintf(s->list, "%.*s>::kernel(\"%.*s\"", length, s->name.at, length, s->name.at);
  if (s->bounds.kind != END) fprintf(s->list, ", %.*s", (int)(s->bounds.end - s->bounds.at), s->bounds.at);
  fputs("),\n", s->list);
  ++s->kernels;
}

static void take_sign(scanner *s, token t) {
  char sign = *t.at;
  if (sign == '(' || sign == '[') {
    if (sign == '(' && s->is_kernel && s->name.kind == END && s->nested == 0 && s->last.kind == WORD &&
        !is(s->last, "__attribute__") && !is(s->last, "alignas") && !is(s->last, "decltype"))
      s->name = s->last;
    ++s->nested;
  } else if (sign == ')' || sign == ']') s->nested -= s->nested > 0;
  else if (sign == '{') {
    if (s->is_kernel && s->name.kind == WORD && !s->is_template) add_kernel(s);
    if (s->depth < DEEPEST) s->scopes[s->depth] = s->space;
    ++s->depth;
    declaration_ends(s);
  } else if (sign == '}') {
    s->depth -= s->depth > 0;
    declaration_ends(s);
  } else if (sign == ';' && s->nested == 0) {
    if (s->is_label) fputs(" __asm__(\"sim_dynamic_shared\")", s->out);
    declaration_ends(s);
  }
}

/* Answers what stands for the word, NULL: itself. */
static const char *take_word(scanner *s, token t) {
  if (is(t, "sim_kernel_")) {
    s->is_kernel = true;
    return "__attribute__((visibility(\"default\"), noinline))";
  }
  if (is(t, "sim_shared_")) {
    s->shares = true;
    s->is_label = s->after_extern;
    return s->after_extern || s->is_static ? "" : "static";
  }
  if (s->after_namespace) s->space = t;
  s->after_namespace = is(t, "namespace");
  if (is(t, "extern")) s->after_extern = true;
  if (is(t, "static")) s->is_static = true;
  if (is(t, "template")) s->is_template = true;
  return NULL;
}

/* t: sim_bounds_; answers all of it, with its brackets. */
static token take_bounds(scanner *s, token t) {
  const char *open = t.end + strspn(t.end, " \t\n"), *end = open;
  if (*open != '(') return t;
  int depth = 0;
  do depth += (*end == '(') - (*end == ')');
  while (*++end && depth > 0);
  s->bounds = (token){OTHER, open + 1, end - 1};
  return (token){OTHER, t.at, end};
}

size_t sim_translate(FILE *out, const char *preprocessed, const char *symbol) {
  char *list = NULL;
  size_t list_bytes = 0;
  scanner s = {.out = out, .list = open_memstream(&list, &list_bytes)};
  if (!s.list) return 0;
  declaration_ends(&s);
  bool line_begins = true;
  for (token t = next_token(preprocessed, true); t.kind != END; t = next_token(t.end, line_begins)) {
    const char *instead = NULL;
    if (t.kind == WORD && is(t, "sim_bounds_")) {
      t = take_bounds(&s, t);
      instead = "";
    } else if (t.kind == WORD) instead = take_word(&s, t);
    if (t.kind == STRING && s.last.kind == WORD && is(s.last, "extern")) s.after_extern = false;
    if (t.kind == SIGN) take_sign(&s, t);
    if (t.kind != OTHER) s.last = t;
    if (instead) fputs(instead, out);
    else fwrite(t.at, 1, (size_t)(t.end - t.at), out);
    line_begins = *t.at == '\n' || (line_begins && t.kind == OTHER && isspace((unsigned char)*t.at));
  }
  fclose(s.list);
  fprintf(out, "\n# 1 \"kernels\"\nstatic const sim_code_kernel sim_kernel_list[] = {\n%s  {}\n};\n", list);
  fprintf(out, "extern \"C\" __attribute__((visibility(\"default\"))) const sim_code %s = {\n"
          "  SIM_CODE_VERSION, %zu, sim_kernel_list, &sim_services_at, &threadIdx, &blockIdx, &blockDim, &gridDim,\n"
          "  %d};\n",
          symbol, s.kernels, s.shares);
  free(list);
  return s.kernels;
}
