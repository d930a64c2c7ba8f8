/* The runner of the conformance suite: a case at a time, each in a process of its own. */
#include "results.h"
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
  "Runs the conformance suite of gk against backends and says in TAP what came of it.\n"
  "\n"
  "  conformance [OPTION ...] [FILTER ...]\n"
  "\n"
  "FILTERs choose cases: part of chapter/name, or a pattern for all of it (\"loops/*\").\n"
  "  --backend NAME   run on this backend; again: on several. Default: those of the modules, else all there are\n"
  "  --module PATH    load a shared library with backends first; again: several\n"
  "  --expect FILE    failures that are known: lines `chapter/name: reason`. One that passes is a failure\n"
  "  --list           print the cases that would run\n"
  "  --matrix         print a table instead: what works on which backend\n"
  "  --json FILE      write the same as data\n"
  "  --sweep memory   run each case for k = 1, 2 ... with the k-th allocation of gk's own failing\n"
  "  --sweep calls    the same with the k-th call of a backend of gk's tests\n"
  "  --most N         not each k but so many of each case, evenly spread\n"
  "  --at K           this k alone\n"
  "  --every-way      calls: each k in every way of failing, not by turns\n"
  "  --seconds N      stop a case after so long (300)\n"
  "  --seed N         for what a backend of gk's tests leaves to chance (1)\n"
  "  --host-gated     every graph as GK_HOST_GATED asks for it\n"
  "  --here           all in this process, for debuggers\n"
  "\n"
  "Exit codes: 0; 1: something failed; 2: it was called wrongly; 77: nothing failed, but a backend that was asked\n"
  "for by name, or every one there is, has no device here.\n";

#undef CASE
#define CASE(chapter, name, needs) void case_##name(trial *t);
#include "cases.def"
#undef CASE
#define CASE(chapter, name, needs) {#chapter, #name, needs, case_##name},
const case_entry cases[] = {
#include "cases.def"
};
const size_t case_count = sizeof cases / sizeof cases[0];

enum { NO_DEVICE = 77 }; /* what automake and meson take for skipped */

typedef struct options {
  const char *backends[BACKENDS_MAX];
  size_t backend_count;
  const char *program, *expect, *json;
  bool list, matrix;
  char **filters;
  int filter_count;
} options;
static options the;

static _Noreturn void refuse(const char *format, const char *what) {
  fprintf(stderr, "%s: ", the.program);
  fprintf(stderr, format, what);
  fprintf(stderr, "\n");
  exit(2);
}

/* ---- which cases ------------------------------------------------------------------------------------------------- */

static void full_name(const case_entry *c, char *name, size_t bytes) {
  snprintf(name, bytes, "%s/%s", c->chapter, c->name);
}

static bool chosen(const case_entry *c) {
  char name[200];
  full_name(c, name, sizeof name);
  for (int k = 0; k < the.filter_count; ++k)
    if (strstr(name, the.filters[k]) || fnmatch(the.filters[k], name, 0) == 0) return true;
  return the.filter_count == 0;
}

static size_t case_named(const char *name) {
  for (size_t k = 0; k < case_count; ++k) {
    char is[200];
    full_name(&cases[k], is, sizeof is);
    if (strcmp(name, is) == 0) return k;
  }
  return case_count;
}

/* ---- failures that are known ------------------------------------------------------------------------------------- */

static char *reasons[sizeof cases / sizeof cases[0]]; /* by case: why it is expected to fail; or NULL */

static void read_expectations(const char *path) {
  FILE *file = fopen(path, "r");
  char line[1000];
  if (!file) refuse("%s can't be read", path);
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    if (!line[0] || line[0] == '#') continue;
    char *reason = strstr(line, ": ");
    if (!reason || !reason[2 + strspn(reason + 2, " ")]) refuse("no `chapter/name: reason`: %s", line);
    *reason = 0;
    size_t k = case_named(line);
    if (k == case_count) refuse("no case is named %s; --list has them all", line);
    if (reasons[k]) refuse("%s is expected to fail twice", line);
    reasons[k] = strdup(reason + 2 + strspn(reason + 2, " "));
  }
  fclose(file);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static size_t number, failures, absent; /* absent: backends without a device */
static unsigned long tried; /* sweeps: failures injected */

/* Each line of a text, as a comment in TAP. */
static void comment(const char *text) {
  while (*text) {
    int length = (int)strcspn(text, "\n");
    printf("# %.*s\n", length, text);
    text += length;
    text += *text == '\n';
  }
}

/* How to run it alone. */
static void comment_command(const char *backend, const char *name) {
  printf("# again: %s --backend %s", the.program, backend);
  for (size_t k = 0; k < the_session.module_count; ++k) printf(" --module %s", the_session.modules[k]);
  if (the_session.sweep) printf(" --sweep %s", the_session.sweep == SWEEP_MEMORY ? "memory" : "calls");
  if (the_session.sweep && the_session.slip->at) printf(" --at %lu", the_session.slip->at);
  if (the_session.sweep == SWEEP_CALLS) printf(" --every-way");
  if (the_session.bits) printf(" --host-gated");
  if (the_session.seed != (the_session.sweep ? 0 : 1)) printf(" --seed %llu", (unsigned long long)the_session.seed);
  printf(" '%s'\n", name);
}

/* The construct that the case needs and the backend refuses; NULL: none. */
static const char *refused(const report *r, const char *needs, const char **why) {
  static char words[200];
  char *rest = words;
  snprintf(words, sizeof words, "%s", needs ? needs : "");
  for (char *word; (word = strtok_r(rest, " ", &rest));)
    for (size_t k = 0; k < r->count; ++k)
      if (strcmp(r->constructs[k].construct, word) == 0 && r->constructs[k].how == GK_REFUSED) {
        *why = r->constructs[k].why;
        return word;
      }
  return NULL;
}

/* What the child left behind, as a verdict and a text of the result's own. */
static void judge(result *r, const char *backend, const answer *slip, const ended *e) {
  char text[12000] = "", where[200] = "";
  outcome is = slip->outcome;
  if (!e->well) {
    is = FAILED;
    snprintf(text, sizeof text, "%s%s%s\n%s", e->how, slip->text[0] ? "; before that: " : "", slip->text, e->output);
  } else {
    snprintf(text, sizeof text, "%s%s%s", slip->text, is == FAILED && e->output[0] ? "\n" : "",
             is == FAILED ? e->output : "");
  }
  if (is == FAILED && slip->at) {
    describe_failure(backend, where, sizeof where);
    size_t length = strlen(where);
    memmove(text + length + 2, text, sizeof text - length - 2);
    memcpy(text, where, length);
    memcpy(text + length, ": ", 2);
    text[sizeof text - 1] = 0;
  }
  tried += slip->tried;
  r->verdict = is == SKIPPED ? SKIP : is == PASSED ? PASS : FAIL;
  r->text = text[0] ? strdup(text) : NULL;
}

static void print_result(const char *backend, size_t k, const result *r) {
  char name[200];
  full_name(&cases[k], name, sizeof name);
  bool bad = r->verdict == FAIL || r->verdict == UNEXPECTED_PASS;
  failures += bad;
  if (the.matrix && !bad) return;
  if (bad && r->text) comment(r->text);
  if (bad) comment_command(backend, name);
  printf("%sok %zu - %s: %s", bad || r->verdict == EXPECTED_FAILURE ? "not " : "", number, backend, name);
  if (r->verdict == SKIP) printf(" # SKIP %s", r->text ? r->text : "no reason was given");
  if (r->verdict == EXPECTED_FAILURE) printf(" # TO" "DO %s", reasons[k]);
  printf("\n");
  fflush(stdout);
}

static void run_one(column *c, size_t k) {
  static ended e;
  result *r = &c->results[k];
  const char *why = NULL, *construct = refused(&c->report, cases[k].needs, &why);
  ++number;
  if (construct) {
    char text[400];
    snprintf(text, sizeof text, "%s is refused: %s", construct, why);
    *r = (result){SKIP, strdup(text)};
  } else {
    try_case(c->name, &cases[k], &e);
    judge(r, c->name, the_session.slip, &e);
  }
  if (reasons[k] && r->verdict == FAIL) r->verdict = EXPECTED_FAILURE;
  if (reasons[k] && r->verdict == PASS) {
    char text[400];
    snprintf(text, sizeof text, "unexpected pass: take it out of %s", the.expect);
    *r = (result){UNEXPECTED_PASS, strdup(text)};
  }
  print_result(c->name, k, r);
}

static void run_backend(column *c) {
  static ended e;
  const answer *slip = the_session.slip;
  look_at_backend(c->name, &e);
  c->report = slip->report;
  if (e.well && slip->outcome == PASSED && c->report.result == GK_OK) {
    for (size_t k = 0; k < case_count; ++k)
      if (chosen(&cases[k])) run_one(c, k);
    return;
  }
  ++number;
  snprintf(c->unavailable, sizeof c->unavailable, "%s",
           !e.well ? e.how : slip->outcome != PASSED ? slip->text : c->report.error);
  bool none = e.well && slip->outcome == PASSED && c->report.result == GK_ERROR_NO_DEVICE;
  absent += none;
  failures += !none;
  if (!none) comment(e.output);
  if (none) printf("ok %zu - %s # SKIP %s\n", number, c->name, c->unavailable);
  else printf("# %s\nnot ok %zu - %s: a device opens\n", c->unavailable, number, c->name);
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static const char *value_of(int count, char **words, int *at) {
  if (*at + 1 >= count) refuse("%s needs a value", words[*at]);
  return words[++*at];
}

static void read_options(int count, char **words) {
  the.program = words[0];
  the_session.seconds = 300;
  the_session.seed = UINT64_MAX;
  the.filters = words; /* what is none of the options moves to the front */
  for (int k = 1; k < count; ++k) {
    const char *word = words[k];
    if (strcmp(word, "--backend") == 0) {
      const char *name = value_of(count, words, &k);
      if (the.backend_count == BACKENDS_MAX) refuse("too many backends: %s", name);
      the.backends[the.backend_count++] = name;
    } else if (strcmp(word, "--module") == 0) {
      const char *path = value_of(count, words, &k);
      if (the_session.module_count == MODULES_MAX) refuse("too many modules: %s", path);
      the_session.modules[the_session.module_count++] = path;
    } else if (strcmp(word, "--expect") == 0) the.expect = value_of(count, words, &k);
    else if (strcmp(word, "--json") == 0) the.json = value_of(count, words, &k);
    else if (strcmp(word, "--seconds") == 0) the_session.seconds = atoi(value_of(count, words, &k));
    else if (strcmp(word, "--sweep") == 0) {
      const char *what = value_of(count, words, &k);
      if (strcmp(what, "memory") == 0) the_session.sweep = SWEEP_MEMORY;
      else if (strcmp(what, "calls") == 0) the_session.sweep = SWEEP_CALLS;
      else refuse("--sweep %s: memory or calls", what);
    } else if (strcmp(word, "--most") == 0) the_session.most = strtoul(value_of(count, words, &k), NULL, 10);
    else if (strcmp(word, "--at") == 0) the_session.at = strtoul(value_of(count, words, &k), NULL, 10);
    else if (strcmp(word, "--every-way") == 0) the_session.every_way = true;
    else if (strcmp(word, "--seed") == 0) the_session.seed = strtoull(value_of(count, words, &k), NULL, 0);
    else if (strcmp(word, "--list") == 0) the.list = true;
    else if (strcmp(word, "--matrix") == 0) the.matrix = true;
    else if (strcmp(word, "--host-gated") == 0) the_session.bits = GK_HOST_GATED;
    else if (strcmp(word, "--here") == 0) the_session.here = true;
    else if (strcmp(word, "--help") == 0) {
      fputs(usage, stdout);
      exit(0);
    } else if (word[0] == '-') refuse("there is no option %s; --help has them", word);
    else the.filters[the.filter_count++] = words[k];
  }
  if (the_session.seed == UINT64_MAX) the_session.seed = the_session.sweep ? 0 : 1; /* 0: no delays */
  if (the_session.seconds < 1) refuse("%s", "--seconds: at least 1");
}

static void choose_backends(void) {
  static ended e;
  if (the.backend_count > 0) return;
  list_backends(&e);
  const answer *slip = the_session.slip;
  if (!e.well) refuse("loading the modules: %s", e.how);
  if (slip->outcome != PASSED) refuse("%s", slip->text);
  for (size_t k = 0; k < slip->name_count; ++k) the.backends[the.backend_count++] = strdup(slip->names[k]);
}

int main(int count, char **words) {
  read_options(count, words);
  the_session.slip = shared_memory(sizeof *the_session.slip);
  if (!the_session.slip) refuse("%s", "there is no memory");
  if (the.expect) read_expectations(the.expect);
  size_t wanted = 0;
  for (size_t k = 0; k < case_count; ++k) {
    if (!chosen(&cases[k])) continue;
    ++wanted;
    if (the.list) printf("%s/%s\n", cases[k].chapter, cases[k].name);
  }
  if (wanted == 0) refuse("no case matches %s", the.filters[0]);
  if (the.list) return 0;
  const bool named = the.backend_count > 0;
  choose_backends();
  column *columns = calloc(the.backend_count, sizeof *columns);
  for (size_t c = 0; columns && c < the.backend_count; ++c) {
    snprintf(columns[c].name, sizeof columns[c].name, "%s", the.backends[c]);
    columns[c].results = calloc(case_count, sizeof *columns[c].results);
    if (!columns[c].results) refuse("%s", "there is no memory");
    run_backend(&columns[c]);
  }
  if (the.matrix) write_matrix(stdout, columns, the.backend_count);
  else printf("1..%zu\n", number);
  if (the_session.sweep) printf("# %lu failures in all\n", tried);
  if (the.json) {
    FILE *file = fopen(the.json, "w");
    if (!file) refuse("%s can't be written", the.json);
    write_json(file, columns, the.backend_count);
    fclose(file);
  }
  for (size_t c = 0; columns && c < the.backend_count; ++c) {
    for (size_t k = 0; k < case_count; ++k) free(columns[c].results[k].text);
    free(columns[c].results);
  }
  free(columns);
  if (failures) return 1;
  return absent > 0 && (named || absent == the.backend_count) ? NO_DEVICE : 0;
}
