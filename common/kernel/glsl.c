/* C to GLSL, token by token. Lines keep their numbers. What changes:
 *   (float)x          float(x)
 *   0.5               0.5lf; 1LL: 1L
 *   gk_atomic_add(&a  gk_atomic_add(a
 *   gk_atomic_add(&y[ gki_add_double(uvec2(gki_at_y), k, with atomic(double, y), and gk_atomic_load in the same way
 *   y[i]              gki_at_y.data[i], in the kernel's body, where y is a buffer
 *   sample            sample_, as all words that GLSL reserves
 *   GK_KERNEL(...)    see gki_glsl_head; of other kernels only directives stay
 * What GLSL can't express is refused, but not within #if ... #endif, which may not be compiled. */
#include "kernel/glsl.h"
#include "kernel/glsl_head.h"
#include "kernel/source.h"
#include <string.h>

static const char scalars[] = " int uint float double int64_t int32_t uint32_t bool ";

static const struct { const char *words, *why; } refusals[] = {
    {" enum ", "GLSL has no enum: use #define or GK_CONST int"},
    {" typedef struct ", "write GK_STRUCT(name) {...}; GLSL has no typedef and wants no `struct` before a type's name"},
    {" union ", "GLSL has no union"},
    {" goto ", "GLSL has no goto"},
    {" sizeof _Alignof ", "GLSL has no sizeof"},
    {" static inline extern register auto volatile restrict _Thread_local _Atomic _Noreturn ",
     "GLSL has no such word: write GK_FN before a function, GK_CONST before a constant"},
    {" unsigned signed short long char size_t ptrdiff_t int8_t int16_t uint8_t uint16_t uint64_t _Bool ",
     "the types of kernels are int, uint, int64_t, float, double, bool, and structs"},
    {" printf fprintf puts memcpy memset memmove malloc free assert NULL _Generic _Static_assert asm __asm__ ",
     "GLSL has no such thing"},
};

/* Functions of doubles; GLSL has them for floats only. */
static const char double_functions[] = " exp exp2 log log2 log10 pow sin cos tan asin acos atan atan2 sinh cosh tanh"
                                       " cbrt hypot fmod round remainder ldexp frexp modf ";

enum { most_casts = 64 };

/* The state of the translation. */
typedef struct pass {
  gki_text *out;
  const gk_kernel *kernel;
  const gk_source *source;
  gki_structs *structs;
  const char *s, *end;
  const char *written;           /* everything before it is translated */
  const char *line_end;          /* of the current directive, or NULL */
  const char *skip_end;          /* of a kernel that is left out, or NULL */
  const char *body_end;          /* of the kernel's own body, or NULL */
  const char *dropped;           /* the & of an atomic, or NULL */
  const char *bracket;           /* the ] of an atomic of doubles, dropped too, or NULL */
  const char *casts[most_casts]; /* ends of operands, where a ) goes; the innermost is the last */
  size_t cast_count;
  int conditions;                /* of #if */
  gki_token before;              /* the previous token, without directives */
} pass;

static bool refuse(const pass *p, gki_token token, const char *why) {
  gk_fail(GK_ERROR_COMPILE, "%s:%u: kernel %s for Vulkan: `%.*s`: %s", p->source->file,
          gki_source_line(p->source, token.at), p->kernel->name,
          (int)(token.end - token.at < 80 ? token.end - token.at : 80), token.at, why);
  return false;
}

/* Copies the line ends of a text that is left out. */
static void write_lines(pass *p, const char *to) {
  for (const char *s = p->written; s < to; ++s)
    if (*s == '\n') gki_text_add(p->out, "\n");
  p->written = to;
}

/* Copies the text so far unchanged. */
static void write(pass *p, const char *to) {
  if (p->skip_end && !p->line_end) write_lines(p, to);
  else gki_add_slice(p->out, p->written, to);
  p->written = to;
}

static bool is_type(const pass *p, gki_token word) {
  return gki_token_in(word, scalars) || gki_token_is(word, "void") ||
         (word.kind == GKI_WORD && gki_find_struct(p->structs, word));
}

/* Whether an expression may end with the previous token. Then * and & behind it have two operands. */
static bool follows_value(const pass *p) {
  bool closes = p->before.kind == GKI_SIGN && strchr(")]", *p->before.at);
  return p->before.kind == GKI_NUMBER || closes || gki_token_is(p->before, "++") || gki_token_is(p->before, "--") ||
         (p->before.kind == GKI_WORD && !gki_token_in(p->before, " return case else do "));
}

/* The `float` of `(float)` before an operand, and its beginning; NULL if there is none. */
static const char *cast(gki_token open, const char *end, gki_token *type) {
  if (!gki_token_is(open, "(")) return NULL;
  *type = gki_next_token(open.end, end);
  gki_token close = gki_next_token(type->end, end), operand = gki_next_token(close.end, end);
  if (!gki_token_in(*type, scalars) || !gki_token_is(close, ")")) return NULL;
  if (operand.kind == GKI_END || operand.kind == GKI_LITERAL) return NULL;
  if (operand.kind == GKI_SIGN && !strchr("(-+!~*&", *operand.at)) return NULL;
  return operand.at;
}

static const char *skip_operand(const char *s, const char *end) {
  const char *inner;
  gki_token token = gki_next_token(s, end), type;
  for (;; token = gki_next_token(s, end)) {
    if ((inner = cast(token, end, &type))) s = inner;
    else if (token.kind == GKI_SIGN && strchr("-+!~*&", *token.at)) s = token.end;
    else break;
  }
  s = gki_token_is(token, "(") ? gki_group_end(token.at, end) : token.end;
  for (;;) {
    token = gki_next_token(s, end);
    if (gki_token_is(token, "[") || gki_token_is(token, "(")) s = gki_group_end(token.at, end);
    else if (gki_token_is(token, ".")) s = gki_next_token(token.end, end).end;
    else return s;
  }
}

static const gk_param *memory_named(const pass *p, gki_token word) {
  for (uint32_t k = 0; p->body_end && k < p->kernel->param_count; ++k)
    if (p->kernel->params[k].access != GK_ACCESS_VALUE && gki_token_is(word, p->kernel->params[k].name))
      return &p->kernel->params[k];
  return NULL;
}

static bool words_fit(const pass *p, gki_token word) {
  gki_token next = gki_next_token(word.end, p->end);
  for (size_t k = 0; k < GK_COUNT(refusals); ++k)
    if (gki_token_in(word, refusals[k].words)) return refuse(p, word, refusals[k].why);
  if (gki_token_is(p->before, ".")) return true;
  if (gki_token_in(word, double_functions) && gki_token_is(next, "("))
    return refuse(p, word, "GLSL has this for floats only: write it with an f at the end");
  if (is_type(p, word) && gki_token_is(next, "*"))
    return refuse(p, word, "GLSL has no pointers: functions take and return values, kernels have their parameters");
  if (strncmp(word.at, "gl_", 3) == 0) return refuse(p, word, "names that begin with gl_ belong to GLSL");
  if (memory_named(p, word) && !gki_token_is(next, "["))
    return refuse(p, word, "this parameter is memory, and all that GLSL can do with it is name[...]; it can't be "
                           "passed on, and a variable needs another name");
  return true;
}

static bool signs_fit(const pass *p, gki_token sign) {
  gki_token next = gki_next_token(sign.end, p->end), type, close;
  bool list = p->before.kind == GKI_SIGN && strchr("{,", *p->before.at);
  if (gki_token_is(sign, "->")) return refuse(p, sign, "GLSL has no pointers");
  if ((gki_token_is(sign, "*") || gki_token_is(sign, "&")) && !follows_value(p))
    return refuse(p, sign, "GLSL has no pointers; write name[0], or &name[k] where an atomic wants it");
  if (list && ((gki_token_is(sign, ".") && next.kind == GKI_WORD) || gki_token_is(sign, "[")))
    return refuse(p, sign, "GLSL has no designators: list all members in order");
  if (gki_token_is(sign, "(") && !follows_value(p)) {
    type = next;
    close = gki_next_token(type.end, p->end);
    if (is_type(p, type) && gki_token_is(close, ")") && gki_token_is(gki_next_token(close.end, p->end), "{"))
      return refuse(p, type, "GLSL has no compound literals: declare a variable");
  }
  return true;
}

/* Whether GLSL allows this token. The contents of a directive are left to the GLSL compiler. */
static bool fits(const pass *p, gki_token token) {
  if (p->line_end || p->conditions > 0 || p->skip_end) return true;
  if (token.kind == GKI_LITERAL) return refuse(p, token, "GLSL has no strings and no character constants");
  if (token.kind == GKI_WORD) return words_fit(p, token);
  if (token.kind == GKI_SIGN && token.at != p->dropped) return signs_fit(p, token);
  return true;
}

static bool begin_directive(pass *p, gki_token hash) {
  gki_token word = gki_next_token(hash.end, p->end);
  write(p, hash.at);
  p->line_end = gki_directive_end(hash.at, p->end);
  if (word.at >= p->line_end) return true; /* a single # */
  p->conditions += gki_token_in(word, " if ifdef ifndef ");
  p->conditions -= gki_token_is(word, "endif");
  if (gki_token_is(word, "include") && p->conditions <= 0) {
    p->line_end = NULL;
    return refuse(p, word, "a kernel's text is one file: include what the host needs above GK_SOURCE, and share "
                           "functions by GK_SHARED");
  }
  return true;
}

/* Checks that the element types of the kernel's parameters have the size, and their members the places, that GLSL
 * expects. */
static bool structs_fit(const pass *p, gki_token at) {
  for (const gk_param *param = p->kernel->params, *last = param + p->kernel->param_count; param < last; ++param) {
    gki_token type = gki_whole_token(param->element), rest = gki_next_token(type.at, type.end);
    const gki_struct *found = gki_find_struct(p->structs, type);
    if (rest.kind != GKI_WORD || rest.end != type.end) {
      gk_fail(GK_ERROR_COMPILE, "%s:%u: kernel %s for Vulkan: parameter %s has the type `%s`; it must be int, uint, "
              "int64_t, float, double or a name from GK_STRUCT", p->source->file, gki_source_line(p->source, at.at),
              p->kernel->name, param->name, param->element);
      return false;
    }
    if (!found || !found->known) continue;
    if (found->split || found->bytes != param->element_bytes) {
      gk_fail(GK_ERROR_COMPILE, "%s:%u: kernel %s for Vulkan: the struct %s of parameter %s has padding that C and "
              "GLSL treat differently (%u bytes for C's compiler, %llu as counted here): order the members by size, "
              "largest first, and fill up the ends of structs within structs", p->source->file,
              gki_source_line(p->source, at.at), p->kernel->name, param->element, param->name,
              (unsigned)param->element_bytes, (unsigned long long)found->bytes);
      return false;
    }
  }
  return true;
}

/* GK_KERNEL, _2D or _3D outside of a kernel. */
static bool begin_kernel(pass *p, gki_token word, bool *found) {
  gki_token open = gki_next_token(word.end, p->end), name = gki_next_token(open.end, p->end);
  const char *list_end = gki_group_end(open.at, p->end);
  gki_token brace = gki_next_token(list_end, p->end);
  const char *body_end = gki_group_end(brace.at, p->end);
  if (!gki_token_is(open, "(") || !gki_token_is(brace, "{") || body_end[-1] != '}')
    return refuse(p, word, "the brackets of this kernel don't match, all branches of its #if taken together");
  bool this_one = gki_token_is(name, p->kernel->name);
  if (this_one && !structs_fit(p, word)) return false;
  write(p, word.at);
  if (this_one) gki_glsl_head(p->out, p->kernel);
  if (this_one) p->body_end = body_end;
  else p->skip_end = body_end;
  *found = *found || this_one;
  p->s = this_one ? brace.at : list_end;
  write_lines(p, p->s);
  return true;
}

static bool begin_cast(pass *p, gki_token open, gki_token type, const char *operand) {
  if (p->cast_count == most_casts) return refuse(p, open, "too many casts within casts");
  p->casts[p->cast_count++] = skip_operand(operand, p->line_end ? p->line_end : p->end);
  write(p, open.at);
  gki_text_add(p->out, "%.*s(", (int)(type.end - type.at), type.at);
  write_lines(p, operand);
  p->before = (gki_token){GKI_SIGN, open.at, open.end};
  p->s = operand;
  return true;
}

static void write_number(pass *p, gki_token number) {
  const char *end = number.end;
  bool hex = end - number.at > 1 && (number.at[1] == 'x' || number.at[1] == 'X'), real = false;
  for (const char *s = number.at; s < end && !hex; ++s) real = real || *s == '.' || *s == 'e' || *s == 'E';
  if (!real && end - number.at > 2 && strchr("lL", end[-1]) && strchr("lL", end[-2])) --end; /* long long is 64 bits */
  write(p, end);
  p->written = number.end;
  if (real && !strchr("fFlL", end[-1])) gki_text_add(p->out, "lf");
}

/* gk_atomic_add or _load of an element of atomic(double, y). */
static bool begin_double(pass *p, gki_token word) {
  const bool adds = gki_token_is(word, "gk_atomic_add");
  gki_token open = gki_next_token(word.end, p->end), and = gki_next_token(open.end, p->end),
            name = gki_next_token(and.end, p->end), bracket = gki_next_token(name.end, p->end);
  const gk_param *memory = memory_named(p, name);
  if ((!adds && !gki_token_is(word, "gk_atomic_load")) || !memory || memory->access != GK_ACCESS_ATOMIC ||
      !gki_glsl_is_double(memory) || !gki_token_is(open, "(") || !gki_token_is(and, "&") ||
      !gki_token_is(bracket, "[") || p->bracket) return false;
  write(p, word.at);
  gki_text_add(p->out, "gki_%s_double(uvec2(gki_at_%s), ", adds ? "add" : "load", memory->name);
  write_lines(p, bracket.end);
  p->bracket = gki_group_end(bracket.at, p->end) - 1;
  p->before = bracket;
  p->s = bracket.end;
  return true;
}

static bool write_word(pass *p, gki_token word) {
  const gk_param *memory = gki_token_is(p->before, ".") ? NULL : memory_named(p, word);
  if (memory && memory->access != GK_ACCESS_SUM) {
    write(p, word.at);
    gki_text_add(p->out, "gki_at_%s.data", memory->name);
    p->written = word.end;
  } else if (*gki_glsl_suffix(word)) {
    write(p, word.end);
    gki_text_add(p->out, "%s", gki_glsl_suffix(word));
  }
  if (word.end - word.at > 10 && memcmp(word.at, "gk_atomic_", 10) == 0) {
    gki_token open = gki_next_token(word.end, p->end), and = gki_next_token(open.end, p->end);
    bool as_due = gki_token_is(open, "(") && gki_token_is(and, "&");
    if (as_due) p->dropped = and.at;
    else if (!p->line_end && p->conditions <= 0)
      return refuse(p, word, "its first argument must begin with &, as in &name[0] or &name[k].member");
  }
  return !gki_token_is(word, "GK_STRUCT") || p->line_end || gki_read_struct(p->structs, word.end, p->end);
}

/* Translates the token at p->s, where no blanks are left, and moves behind it. */
static bool translate(pass *p, gki_token token, bool *found) {
  gki_token type;
  const char *operand;
  p->s = token.end;
  if (!p->line_end && gki_token_is(token, "#") && !begin_directive(p, token)) return false;
  if (p->skip_end && !p->line_end) return true;
  if (!fits(p, token)) return false;
  if (!p->line_end && !p->body_end && gki_is_kernel_word(token)) {
    p->before = (gki_token){GKI_SIGN, token.at, token.end};
    return begin_kernel(p, token, found);
  }
  if ((operand = cast(token, p->line_end ? p->line_end : p->end, &type)))
    return begin_cast(p, token, type, operand);
  if (token.kind == GKI_WORD && begin_double(p, token)) return true;
  if (token.at == p->dropped || token.at == p->bracket) {
    write(p, token.at);
    p->written = token.end;
    *(token.at == p->dropped ? &p->dropped : &p->bracket) = NULL;
  } else if (token.kind == GKI_NUMBER) write_number(p, token);
  else if (token.kind == GKI_WORD && !write_word(p, token)) return false;
  if (!p->line_end) p->before = token;
  return true;
}

bool gki_glsl(gki_text *out, const gk_kernel *kernel, const gk_source *source, const char *s, const char *end,
              gki_structs *structs, bool *found) {
  pass p = {.out = out, .kernel = kernel, .source = source, .structs = structs, .s = s, .end = end, .written = s,
            .before = {GKI_SIGN, ";", ";"}};
  for (;;) {
    gki_token token = gki_next_token(p.s, end);
    if (p.line_end && token.at >= p.line_end) {
      write(&p, p.line_end);
      p.line_end = NULL;
    }
    if (token.kind == GKI_END) break;
    if (!translate(&p, token, found)) return false;
    for (; p.cast_count && p.casts[p.cast_count - 1] <= p.s; --p.cast_count) {
      write(&p, p.s);
      gki_text_add(out, ")");
    }
    if (p.body_end && p.s >= p.body_end) p.body_end = NULL;
    if (p.skip_end && p.s >= p.skip_end) {
      write(&p, p.s);
      p.skip_end = NULL;
    }
  }
  write(&p, end);
  return true;
}
