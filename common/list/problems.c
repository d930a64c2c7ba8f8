#include "list/problems.h"
#include <string.h>

#define PROBLEM(id, code, sentence) {code, sentence, false},
#define WARNING(id, code, sentence) {code, sentence, true},
static const struct { const char *code, *sentence; bool is_warning; } problems[] = {
#include "list/problems.def"
};
#undef WARNING
#undef PROBLEM

const char *gki_problem_code(gki_problem problem) { return problems[problem].code; }
bool gki_problem_is_warning(gki_problem problem) { return problems[problem].is_warning; }

static char *append(char *text, const char *limit, const char *from, size_t length) {
  size_t room = (size_t)(limit - text);
  if (length > room) length = room;
  memcpy(text, from, length);
  return text + length;
}

void gki_problem_text(gki_problem problem, const char *const *words, char *text, size_t bytes) {
  if (!bytes) return;
  const char *limit = text + bytes - 1, *sentence = problems[problem].sentence;
  while (*sentence) {
    size_t plain = strcspn(sentence, "{"), braces = strcspn(sentence + plain, "}");
    text = append(text, limit, sentence, plain);
    sentence += plain;
    if (!*sentence) break;
    if (*words) text = append(text, limit, *words, strlen(*words));
    if (*words) ++words;
    sentence += braces + 1;
  }
  *text = 0;
}
