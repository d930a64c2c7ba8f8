/* Facts that are kept in this process, until they are printed. */
#include "info/info.h"
#include <stdlib.h>
#include <string.h>

void *info_realloc(void *old, size_t bytes) {
  void *memory = realloc(old, bytes ? bytes : 1);
  if (memory) return memory;
  fputs("gk-info: there is no memory left\n", stderr);
  exit(2);
}

char *info_copy(const char *text) {
  return text ? memcpy(info_realloc(NULL, strlen(text) + 1), text, strlen(text) + 1) : NULL;
}

void info_note(void *user, const gk_fact *fact) {
  info_facts *facts = user;
  if (facts->count == facts->capacity) {
    facts->capacity = facts->capacity ? 2 * facts->capacity : 32;
    facts->all = info_realloc(facts->all, facts->capacity * sizeof *facts->all);
  }
  facts->all[facts->count++] = (struct info_fact){info_copy(fact->group), info_copy(fact->name),
                                                  info_copy(fact->value), info_copy(fact->why)};
}

void info_free(info_facts *facts) {
  for (size_t k = 0; k < facts->count; ++k) {
    free(facts->all[k].group);
    free(facts->all[k].name);
    free(facts->all[k].value);
    free(facts->all[k].why);
  }
  free(facts->all);
  *facts = (info_facts){.all = NULL};
}
