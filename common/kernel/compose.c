#include "kernel/compose.h"
#include "base/error.h"
#include "kernel/glsl.h"
#include "kernel/source.h"
#include <string.h>

static void line_directive(gki_text *out, uint32_t line, const char *file) {
  gki_text_add(out, "\n#line %u \"", (unsigned)line);
  for (; *file; ++file) { /* GLSL strings have no escapes; / replaces the \ of Windows paths */
    char c = *file == '\\' ? '/' : *file == '"' || *file == '\n' ? '_' : *file;
    gki_text_add(out, "%c", c);
  }
  gki_text_add(out, "\"\n");
}

/* The linker would mistake two files with one name for each other; then the line doesn't hold the expected text. */
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
  if (!part->line) return true; /* handwritten: all of the text */
  const char *line = gki_behind_lines(part->text, part->line - 1), *end = line + strcspn(line, "\n");
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

/* Whether the text itself has GK_KERNEL(name, ...), and not only a macro that writes it. */
static bool has_kernel(const char *s, const char *end, const char *name) {
  gki_token token = {GKI_END, s, s};
  do {
    token = gki_next_token(token.end, end);
    if (!gki_token_in(token, " GK_KERNEL GK_KERNEL_2D GK_KERNEL_3D ")) continue;
    gki_token open = gki_next_token(token.end, end);
    if (gki_token_is(open, "(") && gki_token_is(gki_next_token(open.end, end), name)) return true;
  } while (token.kind != GKI_END);
  return false;
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
    const char *end, *s = gki_source_region(part, &end);
    right = ends_before_host_code(kernel, part);
    if (!right) break;
    line_directive(out, part->line + 1, part->file);
    if (glsl) right = gki_glsl(out, kernel, part, s, end, &structs, &found);
    else {
      gki_add_slice(out, s, end);
      found = part != source || has_kernel(s, end, kernel->name) || !has_kernel(end, end + strlen(end), kernel->name);
    }
  }
  gki_text_add(out, "\n");
  if (right && !found)
    gk_fail(GK_ERROR_COMPILE, "kernel %s isn't in the text of %s behind line %u: write GK_KERNEL(%s, ...) there, and "
            "not by a macro of yours", kernel->name, source->file, (unsigned)source->line, kernel->name);
  gk_host_free(structs.at);
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
  gk_host_free(out.data);
  return NULL;
}
