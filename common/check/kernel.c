/* Checks kernels: their parameters, and whether the backend has code for them. */
#include "check/kernel.h"
#include "base/error.h"
#include "base/name.h"
#include "base/registry.h"
#include "base/table.h"
#include "kernel/source.h"
#include <string.h>

enum { MAX_BLOCK = 1024 }; /* threads in a block, on every GPU */

static void check_sum(gki_checker *c, const gk_kernel *kernel, const gk_param *param) {
  const char *name = gki_format_name(c, kernel->name), *sum = gki_format_name(c, param->name);
  const gk_type type = gki_number_type(param->element);
  if (type == GK_NO_TYPE || type == GK_I64)
    gki_report(c, GKI_KERNEL_SUM, name, gki_format_name(c, param->element), sum, NULL);
  else if (param->element_bytes != (type == GK_F64 ? 8 : 4))
    gki_report(c, GKI_KERNEL_PARAM, name, sum, "is a sum, and doesn't have the size of its element's type", NULL);
}

static void check_param(gki_checker *c, const gk_kernel *kernel, uint32_t place) {
  const gk_param *param = &kernel->params[place];
  const char *what = NULL;
  bool is_value = param->access == GK_ACCESS_VALUE;
  if (!param->name || !*param->name) what = "has no name";
  else if ((unsigned)param->access > GK_ACCESS_ATOMIC) what = "has an access that this library doesn't know";
  else if (is_value && (param->type < GK_I32 || param->type > GK_BYTES))
    what = "is a value, but not a number or a struct";
  else if (is_value && param->type == GK_BYTES && !param->element_bytes) what = "is a struct of 0 bytes";
  else if (!is_value && param->type != GK_PTR) what = "isn't a value, and not of type GK_PTR";
  else if (param->element && strchr(param->element, '*'))
    what = "has pointers for elements, which not every device has; give the memory as a parameter of its own";
  if (what)
    gki_report(c, GKI_KERNEL_PARAM, gki_format_name(c, kernel->name),
               param->name && *param->name ? gki_format_name(c, param->name) : gki_format_int(c, place), what, NULL);
  else if (param->access == GK_ACCESS_SUM) check_sum(c, kernel, param);
}

/* How the code exceeds its backend's limits; NULL: it doesn't, or the backend isn't in this build. */
static const char *beyond_limits(const gk_kernel *kernel, const char *name) {
  const gk_backend *backend = gki_backend_named(name);
  const char *beyond = NULL;
  if (backend && backend->code) (void)backend->code(kernel, &beyond);
  return beyond;
}

/* @return Whether there is code for that backend. */
static bool check_code(gki_checker *c, const gk_kernel *kernel, const gki_code_place *place) {
  const gk_code *code = *(const gk_code *const *)((const char *)kernel + place->at);
  if (!code) return false;
  int forms = !!code->text + !!code->image + !!code->function;
  uint64_t threads = code->block[0] ? code->block[0] : 256;
  const char *what = NULL;
  for (int k = 1; k < 3; ++k)
    if (code->block[k] && threads <= MAX_BLOCK) threads *= code->block[k];
  if (forms == 0) what = "has none of .text, .image and .function";
  else if (forms > 1) what = "has more than one of .text, .image and .function";
  else if (code->image && !code->image_bytes) what = "has an .image of 0 bytes";
  else if (code->options && !code->text) what = "has .options without a .text";
  else if (code->image_bytes && !code->image) what = "has .image_bytes without an .image";
  else if (threads > MAX_BLOCK) what = "has more than 1024 threads in a block";
  else if (code->reserved[0] | code->reserved[1] | code->reserved[2]) what = "has a .reserved that isn't zero";
  else what = beyond_limits(kernel, place->backend);
  if (what) gki_report(c, GKI_KERNEL_CODE, gki_format_name(c, kernel->name), place->backend, what, NULL);
  return true;
}

/* Host code in the text is an error only when the kernel is composed. */
static void warn_of_host_code(const gk_kernel *kernel, const gk_source *part) {
  if (!gki_log_enabled(GK_LOG_WARN) || !part || !part->text || !part->file) return;
  const gki_token word = gki_host_word(part);
  if (word.kind == GKI_END) return;
  gk_log(GK_LOG_WARN, GKI_HOST_CODE, part->file, gki_source_line(part, word.at), kernel->name,
         (int)(word.end - word.at), word.at);
}

static void check_source(gki_checker *c, const gk_kernel *kernel) {
  const gk_source *source = kernel->source;
  if (!source) return;
  const char *what = !source->text                           ? ".text"
                     : !source->file                         ? ".file"
                     : source->use_count && !source->uses    ? ".uses"
                                                             : NULL;
  if (what) {
    gki_report(c, GKI_KERNEL_SOURCE, gki_format_name(c, kernel->name), what, NULL);
    return;
  }
  for (uint32_t k = 0; k <= source->use_count; ++k) {
    const gk_source *part = k < source->use_count ? source->uses[k] : source;
    const char *other = part ? gki_source_of_other(part) : NULL;
    if (other)
      gki_report(c, GKI_KERNEL_TEXT, gki_format_name(c, kernel->name), gki_format_name(c, part->file),
                 gki_format_int(c, part->line), gki_format_name(c, other), NULL);
    else warn_of_host_code(kernel, part);
  }
}

static bool has_code(const gki_checker *c, const gk_kernel *kernel, bool is_handwritten) {
  const gk_backend *backend = c->backend;
  if (!backend) return kernel->source || kernel->host || is_handwritten;
  return backend->takes ? backend->takes(kernel) : kernel->source || gki_backend_code(backend, kernel);
}

/* Lists use few kernels often: a kernel that passed isn't checked again. */
static const gk_kernel **place_of(gki_checker *c, const gk_kernel *kernel) {
  return &c->passed[gki_hash((uintptr_t)kernel) % GK_COUNT(c->passed)];
}

void gki_check_kernel(gki_checker *c, const gk_kernel *kernel) {
  if (*place_of(c, kernel) == kernel) return;
  size_t before = c->problem_count;
  const char *name = gki_format_name(c, kernel->name);
  if (!kernel->name || !*kernel->name) gki_report(c, GKI_KERNEL_NAMELESS, NULL);
  if (kernel->reserved[0] | kernel->reserved[1]) gki_report(c, GKI_KERNEL_RESERVED, name, NULL);
  if (kernel->dimensions > 3)
    gki_report(c, GKI_KERNEL_DIMENSIONS, name, gki_format_count(c, kernel->dimensions, "dimension"), NULL);
  if (kernel->param_count > GK_MAX_ARGS)
    gki_report(c, GKI_KERNEL_PARAMS, name, gki_format_count(c, kernel->param_count, "parameter"),
               "a task has at most 16 arguments", NULL);
  else if (kernel->param_count && !kernel->params)
    gki_report(c, GKI_KERNEL_PARAMS, name, gki_format_count(c, kernel->param_count, "parameter"),
               ".params is NULL", NULL);
  else
    for (uint32_t k = 0; k < kernel->param_count; ++k) check_param(c, kernel, k);
  check_source(c, kernel);
  bool is_handwritten = false;
  for (const gki_code_place *place = gki_code_places; place->backend; ++place)
    is_handwritten |= check_code(c, kernel, place);
  if (c->problem_count == before && !has_code(c, kernel, is_handwritten)) {
    const char *backend = c->backend ? c->backend->name : "any backend";
    gki_report(c, GKI_KERNEL_NO_CODE, gki_format_name(c, kernel->name), backend, NULL);
  }
  if (c->problem_count == before) *place_of(c, kernel) = kernel;
}
