#include "check/report.h"
#include "base/error.h"
#include "base/name.h"
#include "list/line_name.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gki_report_text(gki_checker *c, gki_problem problem, const char *text) {
  const bool is_warning = gki_problem_is_warning(problem);
  char message[GKI_WHERE_BYTES + 2048];
  uint32_t source = c->line != GK_NONE ? c->blocks->lines[c->line].source
                                            : c->blocks->inclusions[c->named].source;
  if (!is_warning && ++c->problem_count > 1 && !c->report) return;
  *c->where = 0;
  if (c->line != GK_NONE) gki_line_name(c->blocks, c->line, c->where, sizeof c->where);
  else if (c->named) gki_inclusion_name(c->blocks, c->named, c->where, sizeof c->where);
  snprintf(message, sizeof message, "%s%s%s", c->where, *c->where ? ": " : "", text);
  if (!is_warning && c->problem_count == 1) gk_fail(GK_ERROR_INVALID, "%s", message);
  if (is_warning && !c->report) {
    const char *list = gki_list_name(c->blocks->inclusions[0].list);
    gk_log(GK_LOG_WARN, "list %s: %s: %s", list, gki_problem_code(problem), message);
  }
  if (c->report)
    c->report(c->user, &(gk_problem){.code = gki_problem_code(problem),
                                     .message = message,
                                     .task = source == GK_NONE ? SIZE_MAX : source,
                                     .is_warning = is_warning});
}

void gki_report(gki_checker *c, gki_problem problem, ...) {
  const char *words[8];
  char text[2048];
  size_t count = 0;
  va_list list;
  va_start(list, problem);
  do words[count] = va_arg(list, const char *);
  while (words[count] && ++count < GK_COUNT(words) - 1);
  va_end(list);
  words[count] = NULL;
  gki_problem_text(problem, words, text, sizeof text);
  gki_report_text(c, problem, text);
}

static char *next_text(gki_checker *c) { return c->texts[c->next_text++ % GK_COUNT(c->texts)]; }

const char *gki_format_int(gki_checker *c, int64_t number) {
  char *text = next_text(c);
  snprintf(text, GKI_TEXT_BYTES, "%" PRId64, number);
  return text;
}

const char *gki_format_bits(gki_checker *c, uint32_t bits) {
  char *text = next_text(c);
  snprintf(text, GKI_TEXT_BYTES, "0x%" PRIx32, bits);
  return text;
}

const char *gki_format_count(gki_checker *c, int64_t number, const char *what) {
  char *text = next_text(c);
  snprintf(text, GKI_TEXT_BYTES, "%" PRId64 " %s%s", number, what, number == 1 ? "" : "s");
  return text;
}

const char *gki_format_name(gki_checker *c, const char *name) {
  char *text = next_text(c);
  snprintf(text, GKI_TEXT_BYTES, "%s", name && *name ? name : "without a name");
  return text;
}

const char *gki_format_desc(gki_checker *c, const gk_slot_desc *desc) {
  char *text = next_text(c);
  snprintf(text, GKI_TEXT_BYTES, "%" PRId32 " (%.*s)", desc->slot, GKI_TEXT_BYTES - 20,
           desc->name && *desc->name ? desc->name : "without a name");
  return text;
}

const char *gki_format_slot(gki_checker *c, gk_slot slot) {
  const gk_slot_desc *desc = gki_desc_of(c, slot);
  return desc ? gki_format_desc(c, desc) : gki_format_int(c, slot);
}

const char *gki_format_line(gki_checker *c, uint32_t line) {
  char *text = c->other;
  gki_line_name(c->blocks, line, text, sizeof c->other);
  return text;
}

const char *gki_format_type(gki_checker *c, gk_type type) {
  const char *name = gki_type_name(type);
  return name ? name : gki_format_int(c, (int)type);
}

const gk_slot_desc *gki_desc_of(const gki_checker *c, gk_slot slot) {
  const gki_inclusion *in = &c->blocks->inclusions[c->inclusion];
  if (!gki_slot_is_known(c->blocks, c->inclusion, slot)) return NULL;
  return &in->list->slots[in->ranks[slot] - 1];
}
