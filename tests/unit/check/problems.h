/* The problems that gk_check finds in a list, kept for asserts. */
#ifndef CHECK_PROBLEMS_H
#define CHECK_PROBLEMS_H
#include "unit/support/runtime.h"
#include "check/check.h"

enum { MAX_PROBLEMS = 64 };

typedef struct problems {
  size_t count; /* of all; the first MAX_PROBLEMS are kept */
  struct { const char *code; size_t task; char message[700]; } at[MAX_PROBLEMS];
} problems;

static bool code_was_seen[GKI_PROBLEM_COUNT];

static inline void note_problem(void *user, const gk_problem *problem) {
  problems *all = user;
  if (problem->is_warning) return; /* warn_test.c has these */
  if (all->count++ >= MAX_PROBLEMS) return;
  all->at[all->count - 1].code = problem->code;
  all->at[all->count - 1].task = problem->task;
  snprintf(all->at[all->count - 1].message, sizeof all->at[0].message, "%s", problem->message);
  for (int k = 0; k < GKI_PROBLEM_COUNT; ++k)
    if (problem->code == gki_problem_code((gki_problem)k)) code_was_seen[k] = true;
}

static inline void print_problems(const problems *all) {
  for (size_t k = 0; k < all->count && k < MAX_PROBLEMS; ++k)
    print_error("  %s at %zd: %s\n", all->at[k].code, (ssize_t)all->at[k].task, all->at[k].message);
}

/* Checks for a backend, which may lack kernels; NULL: for any. */
static inline problems check_list_for(const gk_list *list, const gk_backend *backend) {
  problems all = {0};
  gki_blocks blocks;
  gk_set_log(GK_LOG_NONE, NULL, NULL);
  if (!backend) {
    gk_result result = gk_check(list, NULL, note_problem, &all);
    assert_int_equal(result, all.count ? GK_ERROR_INVALID : GK_OK);
    if (all.count) assert_string_equal(gk_error(), all.at[0].message);
    assert_int_equal(gk_check(list, NULL, NULL, NULL), result); /* the answer alone is the same, and so its message */
    if (all.count) assert_string_equal(gk_error(), all.at[0].message);
    return all;
  }
  assert_ok(gki_blocks_read(&blocks, list));
  gk_result result = gki_check(&blocks, backend, note_problem, &all);
  gki_blocks_free(&blocks);
  assert_int_equal(result, all.count ? GK_ERROR_INVALID : GK_OK);
  return all;
}

static inline problems check_list(const gk_list *list) { return check_list_for(list, NULL); }

static inline void assert_fine(const gk_list *list) {
  problems all = check_list(list);
  if (!all.count) return;
  print_problems(&all);
  fail_msg("%s should be fine", list->name);
}

/* Problem k has that code, is of that task, and says so and these words. */
static inline void assert_problem(const problems *all, size_t k, const char *code, size_t task, const char *words) {
  char prefix[40] = "";
  if (task != SIZE_MAX) snprintf(prefix, sizeof prefix, "task %zu (", task);
  if (k < all->count && strcmp(all->at[k].code, code) == 0 && all->at[k].task == task &&
      strncmp(all->at[k].message, prefix, strlen(prefix)) == 0 && strstr(all->at[k].message, words) &&
      strstr(all->at[k].message, "; ") && !strchr(all->at[k].message, '{'))
    return;
  print_problems(all);
  fail_msg("problem %zu should be %s at task %zd, with \"%s\"", k, code, (ssize_t)task, words);
}

/* Nothing but this is wrong. */
static inline void assert_only(const gk_list *list, const char *code, size_t task, const char *words) {
  problems all = check_list(list);
  assert_problem(&all, 0, code, task, words);
  if (all.count > 1) print_problems(&all);
  assert_int_equal(all.count, 1);
}
#endif
