/* Levels of tasks: by what they read and write, in sections, from run to run. */
#include "unit/support/chance.h"
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

enum { A = 1, B, C, D, N, MOST_TASKS = 24 };
static const gk_slot_desc slots[] = {GK_BUFFER(A, int), GK_BUFFER(B, int), GK_BUFFER(C, int), GK_BUFFER(D, int),
                                     GK_BUFFER(N, int)};
#define DO(kernel, ...) GK_RUN(kernel, GK_ONE, __VA_ARGS__)

/* Compares the levels of all tasks, in list order, with letters: 'a' is the run's first level. A '|' ends a run. */
static void expect(const char *wanted, const gk_task *tasks, uint32_t task_count) {
  planned_list p;
  gki_arena arena = {0};
  gki_levels levels;
  char found[2 * MOST_TASKS] = "", *to = found;
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

/* Readers of a slot may have any levels. What changes the slot comes behind the highest. */
TEST(test_readers_of_different_levels) {
  EXPECT("abac|", DO(set, B), DO(add, A, B), DO(add, A, C), DO(set, A));
  EXPECT("ab|abac|", DO(set, D), DO(set, D), GK_CHECKPOINT(1, N), DO(set, B), DO(total, B, A), DO(total, C, A),
         DO(add, A, D), GK_END);
}

/* A task, how it touches A to D (not, reads, writes, sums, atomics), and its section or 0. */
typedef struct sample { gk_task task; char touches[5]; uint32_t section; } sample;

static sample sample_of(uint32_t kind, gk_slot from, gk_slot to) {
  sample s = {.touches = "    "};
  const gk_task tasks[] = {DO(set, to), DO(add, from, to), DO(total, from, to), DO(count, to)};
  s.task = tasks[kind];
  s.touches[to - A] = "wwsa"[kind];
  if (kind == 1 || kind == 2) s.touches[from - A] = 'r';
  return s;
}

static bool conflict(const sample *one, const sample *other) {
  for (uint32_t k = 0; k < 4; ++k) {
    const char a = one->touches[k], b = other->touches[k];
    if (a != ' ' && b != ' ' && (a != b || a == 'w' || a == 'a')) return true;
  }
  return false;
}

/* Tasks at random, some in two sections: each has the least level above those of the tasks that it must come behind. */
TEST(test_random_tasks_have_the_least_level) {
  for (uint64_t seed = first_seed(), end = seed + scaled(2000); seed < end; ++seed) {
    sample samples[MOST_TASKS];
    gk_task tasks[MOST_TASKS + 6];
    char wanted[MOST_TASKS + 2];
    uint32_t level[MOST_TASKS], task_count = 0;
    uint64_t random = mix(seed);
    const uint32_t all = 3 + pick(&random, MOST_TASKS - 2), begin = pick(&random, all / 3 + 1);
    const uint32_t middle = begin + 1 + pick(&random, all / 3), behind = middle + 1 + pick(&random, all / 3);
    for (uint32_t k = 0; k < all; ++k) {
      const gk_slot from = A + (gk_slot)pick(&random, 4);
      samples[k] = sample_of(pick(&random, 4), from, A + (from - A + 1 + (gk_slot)pick(&random, 3)) % 4);
      samples[k].section = k < begin || k >= behind ? 0 : k < middle ? 1 : 2;
      if (k == begin) tasks[task_count++] = (gk_task)GK_PARALLEL, tasks[task_count++] = (gk_task)GK_SECTION;
      if (k == middle) tasks[task_count++] = (gk_task)GK_END, tasks[task_count++] = (gk_task)GK_SECTION;
      if (k == behind) tasks[task_count++] = (gk_task)GK_END, tasks[task_count++] = (gk_task)GK_END;
      tasks[task_count++] = samples[k].task;
      level[k] = 0;
      for (uint32_t j = 0; j < k; ++j) {
        const bool apart = samples[j].section && samples[k].section && samples[j].section != samples[k].section;
        if (!apart && conflict(&samples[j], &samples[k]) && level[j] >= level[k]) level[k] = level[j] + 1;
      }
      wanted[k] = (char)('a' + level[k]);
    }
    if (behind >= all) tasks[task_count++] = (gk_task)GK_END, tasks[task_count++] = (gk_task)GK_END;
    wanted[all] = '|', wanted[all + 1] = '\0';
    expect(wanted, tasks, task_count);
  }
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
