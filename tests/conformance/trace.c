/* "N=3 F=1 -> A=1 B[2]=1, passes n=3, ran B, yielded B": the values before a launch, and its expected results. */
#include "harness.h"
#include "reference/reference.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 100 };

typedef struct place { subject *s; const char *file; int line; const char *text; } place;

#define FAIL(p, ...) fail_at(trial_of((p)->s), (p)->file, (p)->line, __VA_ARGS__)

/* The next word before a comma or the end; false: there is none. */
static bool next_word(const char **at, char word[WORD]) {
  *at += strspn(*at, " ");
  const size_t length = strcspn(*at, " ,");
  snprintf(word, WORD, "%.*s", (int)length, *at);
  *at += length;
  return length > 0;
}

/* "A=1", "contacts.N=2", "A[3]=-1" */
typedef struct pair { char name[WORD]; size_t index; long long number; } pair;

static pair read_pair(const place *p, const char *word) {
  pair is = {.index = 0};
  const size_t length = strcspn(word, "[=");
  char *end = (char *)(uintptr_t)word + length;
  snprintf(is.name, sizeof is.name, "%.*s", (int)length, word);
  if (*end == '[') is.index = strtoul(end + 1, &end, 10), end += *end == ']';
  if (*end != '=') FAIL(p, "the case says \"%s\", where NAME=NUMBER is due in \"%s\"", word, p->text);
  const char *number = end + 1;
  is.number = strtoll(number, &end, 0);
  if (end == number || *end) FAIL(p, "\"%s\" is no number, in \"%s\"", number, p->text);
  return is;
}

static gk_slot find_slot(const place *p, const pair *is) {
  const gk_slot slot = gk_find_slot(graph(p->s), is->name);
  if (!slot) FAIL(p, "the list has no slot named %s", is->name);
  return slot;
}

static void check_value(const place *p, const char *word) {
  const pair wanted = read_pair(p, word);
  const int is = get_at(p->s, find_slot(p, &wanted), wanted.index);
  if (is != wanted.number)
    FAIL(p, "%s[%zu] is %d, not %lld (\"%s\")", wanted.name, wanted.index, is, wanted.number, p->text);
}

/* The nth mention of a name is the nth loop of that name. */
static void check_passes(const place *p, const gk_status *status, const char **at) {
  enum { MOST = 32 };
  pair pairs[MOST];
  char word[WORD];
  for (size_t count = 0; next_word(at, word); ++count) {
    if (count == MOST) FAIL(p, "the case names too many loops: \"%s\"", p->text);
    const pair wanted = pairs[count] = read_pair(p, word);
    size_t before = 0;
    for (size_t k = 0; k < count; ++k) before += strcmp(pairs[k].name, wanted.name) == 0;
    uint32_t loop = 0;
    while (loop < status->loop_count && (strcmp(status->loops[loop].name, wanted.name) != 0 || before-- > 0)) ++loop;
    if (loop == status->loop_count) FAIL(p, "the list has no such loop named %s", wanted.name);
    if ((long long)status->loops[loop].passes != wanted.number)
      FAIL(p, "loop %u (%s) has made %llu passes, not %lld (\"%s\")", (unsigned)loop, wanted.name,
           (unsigned long long)status->loops[loop].passes, wanted.number, p->text);
  }
}

static void check_ran(const place *p, const gk_status *status, const char **at) {
  uint32_t ran = 0, named = 0;
  char name[WORD];
  for (uint32_t k = 0; k < status->checkpoint_count; ++k) ran += status->checkpoints[k].ran;
  while (next_word(at, name)) {
    bool found = strcmp(name, "nothing") == 0;
    for (uint32_t k = 0; k < status->checkpoint_count; ++k)
      if (strcmp(status->checkpoints[k].name, name) == 0) {
        if (!status->checkpoints[k].ran) FAIL(p, "checkpoint %s didn't run (\"%s\")", name, p->text);
        found = true;
        ++named;
      }
    if (!found) FAIL(p, "the list has no checkpoint named %s", name);
  }
  if (ran != named) FAIL(p, "%u checkpoints ran, not %u (\"%s\")", (unsigned)ran, (unsigned)named, p->text);
}

static void check_state(const place *p, const gk_status *status, gk_state state, const char *yielded,
                        const char *limit) {
  static const char *const states[] = {"finished", "yielded", "cancelled"};
  if (status->state != state)
    FAIL(p, "the launch %s%s%s, where \"%s\" was due", states[status->state], status->yielded ? " " : "",
         status->yielded_name, p->text);
  if (strcmp(status->yielded_name, yielded) != 0)
    FAIL(p, "%s yielded, not %s (\"%s\")", status->yielded_name, yielded, p->text);
  const char *is = status->limit ? status->limit->name : "";
  if (strcmp(is, limit) != 0)
    FAIL(p, "the loop that hit its bound is \"%s\", not \"%s\" (\"%s\")", is, limit, p->text);
}

void check_trace(subject *s, const char *file, int line, const gk_status *status, const char *wanted) {
  const place p = {s, file, line, wanted};
  gk_state state = GK_FINISHED;
  char first[WORD], yielded[WORD] = "", limit[WORD] = "";
  const char *arrow = strstr(wanted, "->");
  for (const char *at = arrow ? arrow + 2 : wanted; next_word(&at, first); at += *at == ',') {
    if (!strchr(first, '=') && !status)
      FAIL(&p, "memory alone is compared here, and \"%s\" is about a status", first);
    if (strcmp(first, "yielded") == 0) state = GK_YIELDED, next_word(&at, yielded);
    else if (strcmp(first, "bound") == 0) next_word(&at, limit);
    else if (strcmp(first, "cancelled") == 0) state = GK_CANCELLED;
    else if (strcmp(first, "ran") == 0) check_ran(&p, status, &at);
    else if (strcmp(first, "passes") == 0) check_passes(&p, status, &at);
    else if (strcmp(first, "finished") != 0)
      do check_value(&p, first);
      while (next_word(&at, first));
  }
  if (status) check_state(&p, status, state, yielded, limit);
}

void given_at(subject *s, const char *file, int line, const char *values) {
  const place p = {s, file, line, values};
  char word[WORD];
  for (const char *at = values; next_word(&at, word) && strcmp(word, "->") != 0;) {
    const pair is = read_pair(&p, word);
    const gk_slot slot = find_slot(&p, &is);
    const reference_slot *r = reference_slot_at(reference_of(s), reference_find(reference_of(s), slot));
    if (r->desc->type == GK_PTR) put_at(s, slot, is.index, (int)is.number);
    else bind_int(s, slot, is.number);
  }
}

void trace_at(subject *s, const char *file, int line, int32_t label, const char *wanted) {
  if (strstr(wanted, "->")) given_at(s, file, line, wanted);
  check_trace(s, file, line, launch(s, label), wanted);
}

void holds_at(subject *s, const char *file, int line, const char *wanted) {
  check_trace(s, file, line, NULL, wanted);
}
