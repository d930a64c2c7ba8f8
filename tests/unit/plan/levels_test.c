/* Levels of tasks: by what they read and write, in sections, from run to run. */
#include "unit/support/planned.h"
#include "plan/levels.h"
#include "gk_kernel.h"

GK_SOURCE(levels)
GK_KERNEL(set, (out(int, a))) { a[i] = 1; }
GK_KERNEL(add, (in(int, a), inout(int, b))) { b[i] += a[i]; }
GK_KERNEL(total, (in(int, a), sum(int, b))) { b[0] += a[i]; }
GK_KERNEL(count, (atomic(int, a))) { gk_atomic_add(&a[0], 1); }
GK_SOURCE_END
static gk_result nothing(const gk_value *args, void *native) { (void)args, (void)native; return GK_OK; }

enum { A = 1, B, C, D, N };
static const gk_slot_desc slots[] = {GK_BUFFER(A, int), GK_BUFFER(B, int), GK_BUFFER(C, int), GK_BUFFER(D, int),
                                     GK_BUFFER(N, int)};
#define DO(kernel, ...) GK_RUN(kernel, GK_ONE, __VA_ARGS__)

/* Compares the levels of all tasks, in list order, with letters: 'a' is the run's first level. A '|' ends a run. */
static void expect(const char *wanted, const gk_task *tasks, uint32_t task_count) {
  planned_list p;
  gki_arena arena = {0};
  gki_levels levels;
  char found[100] = "", *to = found;
  const gk_plan *plan = plan_tasks(&p, tasks, task_count, slots, GK_COUNT(slots));
  assert_ok(gki_levels_make(&levels, plan, &arena));
  for (uint32_t run = 0; run < plan->run_count; ++run) {
    for (uint32_t node = plan->runs[run].begin; node < plan->runs[run].end; ++node)
      for (uint32_t level = levels.of_run[run]; level < levels.of_run[run + 1]; ++level)
        for (uint32_t k = levels.at[level]; k < levels.at[level + 1]; ++k)
          if (levels.tasks[k] == node) *to++ = (char)('a' + level - levels.of_run[run]);
    *to++ = '|';
  }
  assert_string_equal(found, wanted);
  gki_arena_free(&arena);
  free_planned(&p);
}
#define EXPECT(wanted, ...) expect(wanted, (const gk_task[]){__VA_ARGS__}, GK_COUNT(((const gk_task[]){__VA_ARGS__})))

TEST(test_independent_tasks_share_a_level) {
  EXPECT("aaa|", DO(set, A), DO(set, B), GK_FILL(C, GK_ONE, 3));
  EXPECT("aa|", DO(add, A, B), DO(add, A, C)); /* both read A */
}

TEST(test_tasks_follow_what_they_need) {
  EXPECT("aba|", DO(set, A), DO(add, A, B), DO(set, C));
  EXPECT("ab|", DO(add, A, B), DO(set, A)); /* A is read before it is written */
  EXPECT("ab|", DO(set, A), DO(set, A));
  EXPECT("abcb|", DO(set, A), DO(add, A, B), DO(add, B, C), DO(add, A, D));
  EXPECT("ab|", DO(set, A), GK_COPY(B, A, GK_ONE));
  EXPECT("ab|", GK_COPY(B, A, GK_ONE), DO(set, A));
}

TEST(test_counts_are_read) {
  EXPECT("ab|", DO(set, N), GK_RUN(set, N, A));
  EXPECT("ab|", GK_RUN(set, N, A), GK_RUN(set, N, B)); /* the first bad count is posted */
}

/* Sums don't disturb one another; atomics may, in tasks one after the other. */
TEST(test_sums_and_atomics) {
  EXPECT("aab|", DO(total, A, B), DO(total, C, B), DO(add, B, D));
  EXPECT("ab|", DO(count, A), DO(count, A));
  EXPECT("ab|", DO(set, B), DO(total, A, B));
}

TEST(test_sections_do_not_wait_for_one_another) {
  EXPECT("abab|", GK_PARALLEL, GK_SECTION, DO(count, A), DO(count, A), GK_END, GK_SECTION, DO(count, A), DO(count, A),
         GK_END, GK_END);
  /* What follows waits for the longest section, what comes first for none. */
  EXPECT("abcdbe|", DO(count, A), GK_PARALLEL, GK_SECTION, DO(count, A), DO(count, A), DO(count, A), GK_END,
         GK_SECTION, DO(count, A), GK_END, GK_END, DO(count, A));
  EXPECT("abbbcd|", DO(count, A), GK_PARALLEL, GK_SECTION, GK_PARALLEL, GK_SECTION, DO(count, A), GK_END, GK_SECTION,
         DO(count, A), GK_END, GK_END, GK_END, GK_SECTION, DO(count, A), DO(count, A), GK_END, GK_END, DO(count, A));
}

/* Runs don't know of one another, and library calls have no level. */
TEST(test_runs_and_calls) {
  EXPECT("ab|a|ab|", DO(set, A), DO(set, A), GK_CHECKPOINT(1, N), DO(set, A), GK_END, DO(set, A), DO(set, A));
  EXPECT("aa|", DO(set, A), GK_CALL(nothing, C), DO(set, B));
}

int main(void) { return run_all_tests(); }
