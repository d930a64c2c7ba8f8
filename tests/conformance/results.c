#include "results.h"
#include <string.h>

static const char *const verdicts[] = {"", "pass", "FAIL", "skip", "expected failure", "UNEXPECTED PASS"};
static const char *const supports[] = {"refused", "on the host", "in series", "batched", "native"};

/* ---- a table in Markdown ----------------------------------------------------------------------------------------- */

enum { REMARKS = 500 };
typedef struct remarks { char *texts[REMARKS]; size_t count; } remarks;

/* The number of a remark below the table; the same text has the same number. */
static size_t remark(remarks *r, char *text) {
  for (size_t k = 0; k < r->count; ++k)
    if (strcmp(r->texts[k], text) == 0) return k + 1;
  if (r->count < REMARKS) r->texts[r->count++] = text;
  return r->count;
}

static void write_head(FILE *to, const char *first, const column *columns, size_t count) {
  fprintf(to, "| %s |", first);
  for (size_t c = 0; c < count; ++c) fprintf(to, " %s |", columns[c].name);
  fprintf(to, "\n|---|");
  for (size_t c = 0; c < count; ++c) fprintf(to, "---|");
  fprintf(to, "\n");
}

static void write_cases(FILE *to, const column *columns, size_t count, remarks *notes) {
  write_head(to, "case", columns, count);
  for (size_t k = 0; k < case_count; ++k) {
    bool any = false;
    for (size_t c = 0; c < count; ++c) any |= columns[c].results[k].verdict != NOT_RUN;
    if (!any) continue;
    fprintf(to, "| %s/%s |", cases[k].chapter, cases[k].name);
    for (size_t c = 0; c < count; ++c) {
      const result *r = &columns[c].results[k];
      fprintf(to, " %s", verdicts[r->verdict]);
      if (r->text && r->verdict != PASS) fprintf(to, " (%zu)", remark(notes, r->text));
      fprintf(to, " |");
    }
    fprintf(to, "\n");
  }
}

/* Passed of tried, per chapter. */
static void write_totals(FILE *to, const column *columns, size_t count) {
  write_head(to, "chapter: passed of tried", columns, count);
  for (size_t first = 0; first < case_count;) {
    size_t end = first;
    while (end < case_count && strcmp(cases[end].chapter, cases[first].chapter) == 0) ++end;
    fprintf(to, "| %s |", cases[first].chapter);
    for (size_t c = 0; c < count; ++c) {
      size_t passed = 0, tried = 0;
      for (size_t k = first; k < end; ++k) {
        verdict v = columns[c].results[k].verdict;
        passed += v == PASS || v == UNEXPECTED_PASS;
        tried += v != NOT_RUN && v != SKIP;
      }
      fprintf(to, " %zu of %zu |", passed, tried);
    }
    fprintf(to, "\n");
    first = end;
  }
}

static size_t find_construct(const report *r, const char *name) {
  for (size_t k = 0; k < r->count; ++k)
    if (strcmp(r->constructs[k].construct, name) == 0) return k;
  return r->count;
}

/* The capability reports side by side; a construct is written where it first comes. */
static void write_constructs(FILE *to, const column *columns, size_t count, remarks *notes) {
  write_head(to, "construct", columns, count);
  for (size_t c = 0; c < count; ++c)
    for (size_t k = 0; k < columns[c].report.count; ++k) {
      const char *name = columns[c].report.constructs[k].construct;
      bool before = false;
      for (size_t e = 0; e < c; ++e) before |= find_construct(&columns[e].report, name) < columns[e].report.count;
      if (before) continue;
      fprintf(to, "| %s |", name);
      for (size_t d = 0; d < count; ++d) {
        const report *r = &columns[d].report;
        size_t at = find_construct(r, name);
        if (at < r->count)
          fprintf(to, " %s (%zu) |", supports[r->constructs[at].how],
                  remark(notes, (char *)(uintptr_t)r->constructs[at].why));
        else fprintf(to, " |");
      }
      fprintf(to, "\n");
    }
}

void write_matrix(FILE *to, const column *columns, size_t count) {
  static remarks notes;
  for (size_t c = 0; c < count; ++c)
    if (columns[c].unavailable[0]) fprintf(to, "- %s: not there: %s\n", columns[c].name, columns[c].unavailable);
    else fprintf(to, "- %s: %s; %s\n", columns[c].name, columns[c].report.device, columns[c].report.driver);
  fprintf(to, "\n");
  write_totals(to, columns, count);
  fprintf(to, "\n");
  write_constructs(to, columns, count, &notes);
  fprintf(to, "\n");
  write_cases(to, columns, count, &notes);
  fprintf(to, "\n");
  for (size_t k = 0; k < notes.count; ++k) {
    fprintf(to, "%zu. ", k + 1);
    for (const char *at = notes.texts[k]; *at; ++at) fputc(*at == '\n' ? ' ' : *at, to);
    fprintf(to, "\n");
  }
}

/* ---- the same as data -------------------------------------------------------------------------------------------- */

static void write_string(FILE *to, const char *text) {
  fputc('"', to);
  for (const unsigned char *at = (const unsigned char *)text; *at; ++at)
    if (*at == '"' || *at == '\\') fprintf(to, "\\%c", *at);
    else if (*at < 32) fprintf(to, "\\u%04x", *at);
    else fputc(*at, to);
  fputc('"', to);
}

static void write_member(FILE *to, const char *name, const char *text, const char *after) {
  fprintf(to, "\"%s\": ", name);
  write_string(to, text);
  fprintf(to, "%s", after);
}

static void write_column(FILE *to, const column *c) {
  fprintf(to, "  {");
  write_member(to, "backend", c->name, ", ");
  write_member(to, "device", c->report.device, ", ");
  write_member(to, "driver", c->report.driver, ", ");
  write_member(to, "unavailable", c->unavailable, ",\n   \"constructs\": [");
  for (size_t k = 0; k < c->report.count; ++k) {
    fprintf(to, k ? ",\n    {" : "\n    {");
    write_member(to, "construct", c->report.constructs[k].construct, ", ");
    write_member(to, "how", supports[c->report.constructs[k].how], ", ");
    write_member(to, "why", c->report.constructs[k].why, "}");
  }
  fprintf(to, "],\n   \"cases\": [");
  bool first = true;
  for (size_t k = 0; k < case_count; ++k) {
    const result *r = &c->results[k];
    if (r->verdict == NOT_RUN) continue;
    fprintf(to, first ? "\n    {" : ",\n    {");
    first = false;
    write_member(to, "chapter", cases[k].chapter, ", ");
    write_member(to, "case", cases[k].name, ", ");
    write_member(to, "outcome", verdicts[r->verdict], r->text ? ", " : "}");
    if (r->text) write_member(to, "why", r->text, "}");
  }
  fprintf(to, "]}");
}

void write_json(FILE *to, const column *columns, size_t count) {
  fprintf(to, "{");
  write_member(to, "gk", gk_version(), ",\n \"backends\": [\n");
  for (size_t c = 0; c < count; ++c) {
    if (c > 0) fprintf(to, ",\n");
    write_column(to, &columns[c]);
  }
  fprintf(to, "\n ]}\n");
}
