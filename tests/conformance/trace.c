/* "A=1 B[2]=1, passes n=3, ran B, yielded B": what must have come of a launch. */
#include "harness.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct place { subject *s; const char *file; int line; const char *wanted; } place;

#define FAIL(p, ...) fail_at(trial_of((p)->s), (p)->file, (p)->line, __VA_ARGS__)

/* "A=1", "contacts.N=2", "A[3]=-1": the name's length, its index (0 without one) and the number. */
static size_t read_pair(const place *p, const char *word, size_t *index, long long *number) {
  size_t length = strcspn(word, "[= "), at = length;
  char *end = NULL;
  *index = 0;
  if (word[at] == '[') {
    *index = strtoul(word + at + 1, &end, 10);
    at = *end == ']' ? (size_t)(end + 1 - word) : strlen(word);
  }
  if (word[at] != '=') FAIL(p, "the case says \"%s\", where NAME=NUMBER is due in \"%s\"", word, p->wanted);
  *number = strtoll(word + at + 1, &end, 10);
  if (end == word + at + 1 || *end) FAIL(p, "\"%s\" is no number, in \"%s\"", word + at + 1, p->wanted);
  return length;
}

static void check_value(const place *p, const char *word) {
  size_t index;
  long long number;
  char name[100];
  snprintf(name, sizeof name, "%.*s", (int)read_pair(p, word, &index, &number), word);
  gk_slot slot = gk_find_slot(graph(p->s), name);
  if (!slot) FAIL(p, "the list has no slot named %s", name);
  int is = get_at(p->s, slot, index);
  if (is != number) FAIL(p, "%s[%zu] is %d, not %lld (\"%s\")", name, index, is, number, p->wanted);
}

/* The nth mention of a name is the nth loop of that name. */
static void check_passes(const place *p, const gk_status *status, const char *clause, const char *word) {
  size_t index, mentions = 0;
  long long number;
  char name[100];
  snprintf(name, sizeof name, "%.*s", (int)read_pair(p, word, &index, &number), word);
  for (const char *at = clause; at < word; at += strcspn(at, " "), at += strspn(at, " "))
    mentions += strncmp(at, name, strlen(name)) == 0 && at[strlen(name)] == '=';
  for (uint32_t k = 0; k < status->loop_count; ++k)
    if (strcmp(status->loops[k].name, name) == 0 && mentions-- == 0) {
      if ((long long)status->loops[k].passes != number)
        FAIL(p, "loop %u (%s) has made %llu passes, not %lld (\"%s\")", (unsigned)k, name,
             (unsigned long long)status->loops[k].passes, number, p->wanted);
      return;
    }
  FAIL(p, "the list has no such loop named %s", name);
}

static void check_ran(const place *p, const gk_status *status, char *names) {
  uint32_t ran = 0, named = 0;
  char *rest = names;
  for (uint32_t k = 0; k < status->checkpoint_count; ++k) ran += status->checkpoints[k].ran;
  for (char *name; (name = strtok_r(rest, " ", &rest));) {
    bool found = strcmp(name, "nothing") == 0;
    for (uint32_t k = 0; k < status->checkpoint_count; ++k)
      if (strcmp(status->checkpoints[k].name, name) == 0) {
        if (!status->checkpoints[k].ran) FAIL(p, "checkpoint %s didn't run (\"%s\")", name, p->wanted);
        found = true;
        ++named;
      }
    if (!found) FAIL(p, "the list has no checkpoint named %s", name);
  }
  if (ran != named) FAIL(p, "%u checkpoints ran, not %u (\"%s\")", (unsigned)ran, (unsigned)named, p->wanted);
}

void check_trace(subject *s, const char *file, int line, const gk_status *status, const char *wanted) {
  place p = {s, file, line, wanted};
  char text[2000], *rest = text;
  gk_state state = GK_FINISHED;
  const char *yielded = "", *limit = "";
  if ((size_t)snprintf(text, sizeof text, "%s", wanted) >= sizeof text) FAIL(&p, "the case says too much at once");
  for (char *clause; (clause = strtok_r(rest, ",", &rest));) {
    clause += strspn(clause, " ");
    char whole[2000], *words = clause;
    snprintf(whole, sizeof whole, "%s", clause);
    char *first = strtok_r(words, " ", &words);
    if (!first) continue;
    bool about_status = strchr(first, '=') == NULL;
    if (about_status && !status) FAIL(&p, "memory alone is compared here, and \"%s\" is about a status", whole);
    if (strcmp(first, "yielded") == 0) {
      state = GK_YIELDED;
      yielded = words + strspn(words, " ");
    } else if (strcmp(first, "bound") == 0) {
      limit = words + strspn(words, " ");
    } else if (strcmp(first, "cancelled") == 0) {
      state = GK_CANCELLED;
    } else if (strcmp(first, "ran") == 0) {
      check_ran(&p, status, words);
    } else if (strcmp(first, "passes") == 0) {
      const char *loops = whole + strlen("passes ");
      for (const char *at = loops; *at; at += strspn(at, " ")) {
        char word[100];
        int length = (int)strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", length, at);
        size_t before = (size_t)(at - loops);
        char earlier[2000];
        snprintf(earlier, sizeof earlier, "%.*s%s", (int)before, loops, word);
        check_passes(&p, status, earlier, earlier + before);
        at += length;
      }
    } else if (strcmp(first, "finished") != 0) {
      for (char *word = first; word; word = strtok_r(words, " ", &words)) check_value(&p, word);
    }
  }
  if (!status) return;
  static const char *const states[] = {"finished", "yielded", "cancelled"};
  if (status->state != state)
    FAIL(&p, "the launch %s%s%s, where \"%s\" was due", states[status->state], status->yielded ? " " : "",
         status->yielded_name, wanted);
  if (strcmp(status->yielded_name, yielded) != 0)
    FAIL(&p, "%s yielded, not %s (\"%s\")", status->yielded_name, yielded, wanted);
  const char *is = status->limit ? status->limit->name : "";
  if (strcmp(is, limit) != 0)
    FAIL(&p, "the loop that hit its bound is \"%s\", not \"%s\" (\"%s\")", is, limit, wanted);
}
