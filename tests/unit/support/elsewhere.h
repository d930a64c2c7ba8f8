/* Cases that each take a process of their own, since what is loaded stays loaded: the test's program again, with a word
 * that says what to do, a folder of stand-in libraries in LD_LIBRARY_PATH, and their behaviour in the environment. */
#ifndef GK_TESTS_ELSEWHERE_H
#define GK_TESTS_ELSEWHERE_H
#include "unit/support/test.h"
#include <libgen.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct elsewhere_case {
  const char *libraries;   /* the folder, beside the program; NULL: none */
  const char *settings[5]; /* in the environment: "NAME=value" */
  const char *word;        /* what to do */
  const char *wanted[5];   /* in what it says, in this order; the first one begins it, "$" ends it */
} elsewhere_case;

typedef struct elsewhere_word { const char *word; int (*run)(void); } elsewhere_word;

static char elsewhere_program[PATH_MAX], elsewhere_folder[PATH_MAX];

static inline void elsewhere_exec(const elsewhere_case *c, int out) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", elsewhere_folder, c->libraries ? c->libraries : "nowhere");
  setenv("LD_LIBRARY_PATH", path, 1);
  for (size_t k = 0; k < sizeof c->settings / sizeof c->settings[0] && c->settings[k]; ++k)
    putenv((char *)(uintptr_t)c->settings[k]);
  dup2(out, STDOUT_FILENO);
  execl(elsewhere_program, elsewhere_program, c->word, (char *)NULL);
}

/* What the process printed; it must end well. */
static inline void elsewhere_run(const elsewhere_case *c, char *text, size_t bytes) {
  int pipes[2], status;
  assert_int_equal(pipe(pipes), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    elsewhere_exec(c, pipes[1]);
    _exit(3);
  }
  close(pipes[1]);
  size_t used = 0;
  for (ssize_t got; used + 1 < bytes && (got = read(pipes[0], text + used, bytes - used - 1)) > 0;) used += (size_t)got;
  text[used] = 0;
  close(pipes[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("status %d; it said: %s", status, text);
}

static inline void elsewhere_check(const elsewhere_case *cases, size_t count) {
  static char text[1 << 16];
  for (const elsewhere_case *c = cases; c < cases + count; ++c) {
    elsewhere_run(c, text, sizeof text);
    const char *at = text;
    for (size_t k = 0; k < sizeof c->wanted / sizeof c->wanted[0] && c->wanted[k]; ++k) {
      bool is_end = strcmp(c->wanted[k], "$") == 0;
      const char *found = is_end ? at + strlen(at) : strstr(at, c->wanted[k]);
      if (!found || (k == 0 && found != text) || (is_end && *at))
        fail_msg("case %zu: no \"%s\" in: %s", (size_t)(c - cases), c->wanted[k], text);
      at = is_end ? at : found + strlen(c->wanted[k]);
    }
  }
}
#define ELSEWHERE(cases) elsewhere_check(cases, sizeof(cases) / sizeof (cases)[0])

/* For main: whether this is the process of a case, whose exit code *code then is. */
static inline bool elsewhere_is_here(int count, char **words, const elsewhere_word *known, size_t known_count,
                                     int *code) {
  *code = 2;
  if (!realpath("/proc/self/exe", elsewhere_program)) return true;
  snprintf(elsewhere_folder, sizeof elsewhere_folder, "%s", elsewhere_program);
  dirname(elsewhere_folder);
  for (size_t k = 0; count == 2 && k < known_count; ++k)
    if (strcmp(known[k].word, words[1]) == 0) *code = known[k].run();
  return count == 2;
}
#endif
