#include "dump/dump.h"
#include "base/error.h"
#include "dump/formats.h"
#include <string.h>

char *gki_plan_dump(const gk_plan *plan, const char *format) {
  const bool as_text = format && strcmp(format, "text") == 0, as_dot = format && strcmp(format, "dot") == 0;
  if (!as_text && !as_dot && !(format && strcmp(format, "json") == 0)) {
    gk_fail(GK_ERROR_INVALID, "a plan can't be written as \"%s\"; ask for \"text\", \"dot\" or \"json\"",
            format ? format : "NULL");
    return NULL;
  }
  gki_text text = {0};
  if (as_dot) {
    gki_dump_dot(&text, plan);
    return gki_text_finish(&text);
  }
  gki_gate_counts counts;
  const bool counted = gki_dump_count(plan, &counts) == GK_OK;
  if (counted && as_text) gki_dump_text(&text, plan, &counts);
  else if (counted) gki_dump_json(&text, plan, &counts);
  gki_arena_free(&counts.arena);
  return counted ? gki_text_finish(&text) : NULL;
}
