/* The runner of random lists itself: it names a seed that crashes or differs, and makes its list small. */
#include "conformance/random/random.h"
#include "conformance/random/story.h"
#include "unit/support/runtime_leaks.h"
#include <signal.h>
#include <unistd.h>
#include "unit/support/test.h"

static story s;

static bool holds_op(const gk_list *list, gk_op op) {
  for (size_t k = 0; k < list->task_count; ++k)
    if (list->tasks[k].op == op || (list->tasks[k].list && holds_op(list->tasks[k].list, op))) return true;
  return false;
}

static bool has_switch_and_resize(void *user, story *of) {
  ++*(int *)user;
  bool resizes = false;
  for (uint32_t k = 0; k < of->deed_count; ++k) resizes |= of->deeds[k].kind == DEED_RESIZE;
  return resizes && holds_op(&whole_of(of)->list, GK_OP_SWITCH);
}

static bool reads_pass(const gk_list *list) {
  for (size_t k = 0; k < list->slot_count; ++k)
    if (list->slots[k].bits & GK_IS_PASS && list->tasks[1].flag == list->slots[k].slot) return true;
  return false;
}

TEST(test_shrinks) {
  int found = 0, included = 0, tried = 0;
  for (uint64_t seed = 1; found < 40; ++seed) {
    story_write(&s, seed);
    if (!has_switch_and_resize(&tried, &s)) continue;
    ++found;
    story_shrink(&s, has_switch_and_resize, &tried);
    assert_int_equal(s.deed_count, 1);
    assert_int_equal(s.bits & ~(uint32_t)GK_CANCELLABLE, 0);
    assert_true(s.plain);
    const listing *l = whole_of(&s);
    size_t tasks = 0;
    for (;; l = (const listing *)(const void *)l->tasks[0].list) { /* its gk_list is its first member */
      tasks = l->list.task_count;
      if (tasks != 1) break;
      assert_int_equal(l->tasks[0].op, GK_OP_LIST);
      ++included;
    }
    const gk_task *around = reads_pass(&l->list) ? l->tasks : NULL; /* its loop, which must stay */
    assert_int_equal(tasks, around ? 4 : 2);
    if (around) assert_true(around->op >= GK_OP_DO_WHILE && around->op <= GK_OP_REPEAT);
    assert_int_equal(l->tasks[around ? 1 : 0].op, GK_OP_SWITCH);
    assert_int_equal(gk_check(&whole_of(&s)->list, NULL, gk_print, NULL), GK_OK);
    if (l == whole_of(&s)) assert_int_equal(l->list.slot_count, around ? 2 : 1);
  }
  assert_true(included > 0);
}

TEST(test_lists_are_right) {
  for (uint64_t seed = 1; seed < 2000; ++seed) {
    story_write(&s, seed);
    if (gk_check(&whole_of(&s)->list, NULL, gk_print, NULL) != GK_OK) fail_msg("seed %llu", (unsigned long long)seed);
  }
}

/* What random_lists prints. */
static int run_and_read(const char *backend, uint64_t seed, bool shrink, char *text, size_t bytes) {
  FILE *file = tmpfile();
  assert_non_null(file);
  fflush(stdout);
  int before = dup(STDOUT_FILENO);
  dup2(fileno(file), STDOUT_FILENO);
  int result = random_lists(backend, seed, 1, shrink);
  fflush(stdout);
  dup2(before, STDOUT_FILENO);
  close(before);
  rewind(file);
  text[fread(text, 1, bytes - 1, file)] = 0;
  fclose(file);
  return result;
}

static char text[1 << 20];
static const char *crash(void) {
  signal(SIGABRT, SIG_DFL);
  raise(SIGABRT);
  return "";
}
static const char *differ(void) { return "a rule was broken"; }
static void *volatile lost;
static const char *leak(void) {
  lost = malloc(100);
  lost = NULL;
  return "";
}

TEST(test_names_what_fails) {
  assert_int_equal(run_and_read("openmp", 5, true, text, sizeof text), 0);
  assert_non_null(strstr(text, "# 1 lists on openmp"));
  random_watch(NULL, NULL, crash);
  assert_int_equal(run_and_read("openmp", 5, true, text, sizeof text), 1);
  assert_non_null(strstr(text, "# seed 5 on openmp: killed by Aborted\n"
                               "# again: random_lists --backend openmp --seed 5 "));
  assert_non_null(strstr(text, "# as small as it could be made: killed by Aborted\n"));
  assert_non_null(strstr(text, "#include \"conformance/random/program.h\""));
  assert_non_null(strstr(text, "NULL, 0,")); /* of its list nothing is needed */
  assert_non_null(strstr(text, "  return finish();\n}\n")); /* it is a whole program all the same */
  random_watch(NULL, NULL, differ);
  assert_int_equal(run_and_read("openmp", 6, false, text, sizeof text), 1);
  assert_non_null(strstr(text, "# seed 6 on openmp: a rule was broken\n"));
  random_watch(NULL, NULL, leak);
#if defined(__SANITIZE_ADDRESS__)
  assert_int_equal(run_and_read("openmp", 7, false, text, sizeof text), 1);
  assert_non_null(strstr(text, "# seed 7 on openmp: exit code"));
#endif
  random_watch(NULL, NULL, NULL);
  assert_int_equal(run_and_read("nobody's", 5, true, text, sizeof text), 1);
  assert_non_null(strstr(text, "nobody's"));
}

int main(void) { return run_all_tests(); }
