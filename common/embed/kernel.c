#include "embed/kernel.h"
#include "base/error.h"
#include "kernel/source.h"
#include <string.h>

static const char *const words[] = {
    [GK_ACCESS_VALUE] = "value", [GK_ACCESS_IN] = "in",   [GK_ACCESS_OUT] = "out",
    [GK_ACCESS_INOUT] = "inout", [GK_ACCESS_SUM] = "sum", [GK_ACCESS_ATOMIC] = "atomic"};

/* A token of the text at `s` as a string in the copy of that text. The sign or blank behind it is lost there. */
static const char *take_name(char *copy, const char *s, gki_token token) {
  copy[token.end - s] = 0;
  return copy + (token.at - s);
}

static bool read_access(gki_token word, gk_access *access) {
  for (size_t k = 0; k < GK_COUNT(words); ++k)
    if (gki_token_is(word, words[k])) {
      *access = (gk_access)k;
      return true;
    }
  return false;
}

/* `in(float, x)`; returns its end, or NULL. */
static const char *read_param(gk_param *p, char *copy, const char *s, gki_token word, const char *end,
                              const gki_structs *structs) {
  const gki_token open = gki_next_token(word.end, end), type = gki_next_token(open.end, end),
                  comma = gki_next_token(type.end, end), name = gki_next_token(comma.end, end),
                  close = gki_next_token(name.end, end);
  const bool is_right = gki_token_is(open, "(") && type.kind == GKI_WORD && gki_token_is(comma, ",") &&
                        name.kind == GKI_WORD && gki_token_is(close, ")");
  if (!is_right || !read_access(word, &p->access)) return NULL;
  const gki_struct layout = gki_layout_of(structs, type);
  p->element = take_name(copy, s, type);
  p->name = take_name(copy, s, name);
  p->element_bytes = (uint32_t)layout.bytes;
  p->element_alignment = (uint32_t)layout.alignment;
  const gk_type by_value = gki_find_struct(structs, type) ? GK_BYTES : GK_F64; /* any number is written alike */
  p->type = p->access == GK_ACCESS_VALUE ? by_value : GK_PTR;
  return close.end;
}

bool gki_read_kernel(gki_kernel_text *made, const gk_source *source, gki_token word, const char *end,
                     const gki_structs *structs) {
  const gki_token open = gki_next_token(word.end, end), name = gki_next_token(open.end, end),
                  comma = gki_next_token(name.end, end), list = gki_next_token(comma.end, end);
  end = gki_group_end(open.at, end);
  const size_t bytes = (size_t)(end - word.at);
  *made = (gki_kernel_text){.names = gk_host_alloc(bytes + 1)};
  if (!made->names) {
    gki_fail_memory("a kernel's parameters", bytes);
    return false;
  }
  memcpy(made->names, word.at, bytes);
  gk_kernel *kernel = &made->kernel;
  *kernel = (gk_kernel){.params = made->params, .source = source, .dimensions = 1};
  if (gki_token_is(word, "GK_KERNEL_2D")) kernel->dimensions = 2;
  if (gki_token_is(word, "GK_KERNEL_3D")) kernel->dimensions = 3;
  bool is_right = gki_token_is(open, "(") && name.kind == GKI_WORD && gki_token_is(comma, ",") &&
                  gki_token_is(list, "(");
  for (gki_token at = list; is_right && !gki_token_is(at, ")");) { /* at the ( or a comma */
    gk_param *param = kernel->param_count < GK_MAX_ARGS ? &made->params[kernel->param_count++] : NULL;
    const gki_token first = gki_next_token(at.end, end);
    const char *behind = param ? read_param(param, made->names, word.at, first, end, structs) : NULL;
    is_right = behind != NULL;
    if (is_right) at = gki_next_token(behind, end);
    is_right = is_right && (gki_token_is(at, ",") || gki_token_is(at, ")"));
  }
  if (is_right) kernel->name = take_name(made->names, word.at, name);
  if (is_right) return true;
  gk_fail(GK_ERROR_COMPILE, "%s:%u: the parameters of this kernel can't be read; write at most 16 as in(float, x), and "
          "not by a macro of yours", source->file, gki_source_line(source, word.at));
  gk_host_free(made->names);
  made->names = NULL;
  return false;
}
