#include "check/report.h"
#include "base/error.h"
#include "base/name.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gki_report_text(gki_checker *judge, gki_problem problem, const char *text) {
  char message[GKI_WHERE_BYTES + 2048];
  uint32_t source = judge->line != GKI_NONE ? judge->blocks->lines[judge->line].source
                                            : judge->blocks->inclusions[judge->named].source;
  ++judge->problem_count;
  if (judge->problem_count > 1 && !judge->report) return;
  *judge->where = 0;
  if (judge->line != GKI_NONE) gki_line_name(judge->blocks, judge->line, judge->where, sizeof judge->where);
  else if (judge->named) gki_inclusion_name(judge->blocks, judge->named, judge->where, sizeof judge->where);
  snprintf(message, sizeof message, "%s%s%s", judge->where, *judge->where ? ": " : "", text);
  if (judge->problem_count == 1) gk_fail(GK_ERROR_INVALID, "%s", message);
  if (judge->report)
    judge->report(judge->user, &(gk_problem){.code = gki_problem_code(problem),
                                             .message = message,
                                             .task = source == GKI_NONE ? SIZE_MAX : source});
}

void gki_report(gki_checker *judge, gki_problem problem, ...) {
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
  gki_report_text(judge, problem, text);
}

static char *next_word(gki_checker *judge) { return judge->words[judge->next_word++ % GK_COUNT(judge->words)]; }

const char *gki_format_int(gki_checker *judge, int64_t number) {
  char *word = next_word(judge);
  snprintf(word, GKI_WORD_BYTES, "%" PRId64, number);
  return word;
}

const char *gki_format_bits(gki_checker *judge, uint32_t bits) {
  char *word = next_word(judge);
  snprintf(word, GKI_WORD_BYTES, "0x%" PRIx32, bits);
  return word;
}

const char *gki_format_count(gki_checker *judge, int64_t number, const char *what) {
  char *word = next_word(judge);
  snprintf(word, GKI_WORD_BYTES, "%" PRId64 " %s%s", number, what, number == 1 ? "" : "s");
  return word;
}

const char *gki_word(gki_checker *judge, const char *text) {
  char *word = next_word(judge);
  snprintf(word, GKI_WORD_BYTES, "%s", text && *text ? text : "without a name");
  return word;
}

const char *gki_desc_word(gki_checker *judge, const gk_slot_desc *desc) {
  char *word = next_word(judge);
  snprintf(word, GKI_WORD_BYTES, "%" PRId32 " (%.*s)", desc->slot, GKI_WORD_BYTES - 20,
           desc->name && *desc->name ? desc->name : "without a name");
  return word;
}

const char *gki_slot_word(gki_checker *judge, gk_slot slot) {
  const gk_slot_desc *desc = gki_desc_of(judge, slot);
  return desc ? gki_desc_word(judge, desc) : gki_format_int(judge, slot);
}

const char *gki_line_word(gki_checker *judge, uint32_t line) {
  char *word = judge->other;
  gki_line_name(judge->blocks, line, word, sizeof judge->other);
  return word;
}

const char *gki_type_word(gki_checker *judge, gk_type type) {
  const char *name = gki_type_name(type);
  return name ? name : gki_format_int(judge, (int)type);
}

const gk_slot_desc *gki_desc_of(const gki_checker *judge, gk_slot slot) {
  const gki_inclusion *in = &judge->blocks->inclusions[judge->inclusion];
  if (!gki_slot_is_known(judge->blocks, judge->inclusion, slot)) return NULL;
  return &in->list->slots[in->ranks[slot] - 1];
}
