/* What does a list cost before it runs (table F6)? Time and memory per task for reading, checking and planning lists of
 * 1,000 to 100,000 tasks. The time is the thread's processor time. The allocator hook counts the memory at its peak,
 * without the caller's list. */
#include "bench/harness/cpu_floor.h"
#include "bench/harness/held.h"
#include "bench/harness/must.h"
#include "check/check.h"
#include "gk_kernel.h"
#include "plan/plan.h"
#include <stdio.h>
#include <stdlib.h>

GK_SOURCE(check_plan)
GK_KERNEL(advance, (inout(float, y), in(float, x), value(float, a))) { y[i] += a * x[i]; }
GK_SOURCE_END

enum { X = 1, Y, A, N, FLAG };
static const gk_slot_desc slots[] = {
  GK_BUFFER(X, float), GK_BUFFER(Y, float), GK_SCALAR(A, float), GK_SCALAR(N, int), GK_BUFFER(FLAG, int),
};

/* The same ten lines again and again: a loop with an IF, a checkpoint, and tasks. */
static void fill(gk_task *tasks, size_t count, bool straight) {
  const gk_task task = GK_RUN(advance, N, Y, X, A);
  const gk_task pattern[] = {GK_DO_WHILE(FLAG),      task, GK_IF(FLAG), task, GK_END,
                             GK_CHECKPOINT(1, FLAG), task, GK_END,      task, GK_END};
  for (size_t k = 0; k < count; ++k) {
    tasks[k] = straight ? task : pattern[k % GK_COUNT(pattern)];
    if (tasks[k].op == GK_OP_CHECKPOINT) tasks[k].label = (int32_t)k + 1;
  }
}

static gk_result prepare(const gk_list *list) {
  gki_blocks blocks = {0};
  gki_planned planned = {0};
  gk_result result = gki_blocks_read(&blocks, list);
  if (result == GK_OK) result = gki_check(&blocks, NULL, NULL, NULL);
  if (result == GK_OK) result = gki_plan_make(&planned, &blocks, NULL, 0);
  gki_blocks_free(&blocks);
  if (result == GK_OK && planned.plan.node_count < list->task_count / 2) result = GK_ERROR_INVALID;
  gki_plan_free(&planned);
  return result;
}

static bool time_per_task(void *with, uint64_t times, bench_took *took) {
  const gk_list *list = with;
  double begin = bench_thread_now();
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) right = prepare(list) == GK_OK && right;
  took->all += (bench_thread_now() - begin) / (double)list->task_count;
  return right && bench_held == 0;
}

static bool bytes_per_task(void *with, uint64_t times, bench_took *took) {
  const gk_list *list = with;
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    bench_most_held = bench_held;
    right = prepare(list) == GK_OK && right;
    took->all += (double)bench_most_held / (double)list->task_count;
  }
  return right && bench_held == 0;
}

static void measure(const char *name, gk_list *lists) {
  char what[2][60];
  snprintf(what[0], sizeof what[0], "check and plan, %s", name);
  snprintf(what[1], sizeof what[1], "check and plan, %s: memory", name);
  bench_measure(&(bench_table){"F6", what[0], "how long does a list take before it runs, per task?", "ns",
    .variants = {{"1,000 tasks", time_per_task, &lists[0]}, {"10,000 tasks", time_per_task, &lists[1]},
                 {"100,000 tasks", time_per_task, &lists[2]}},
    .ratios = {{"a task of 100,000, in ns", "100,000 tasks", {NULL}, 1000},
               {"a task of 100,000 against one of 10,000", "100,000 tasks", {"10,000 tasks"}, 2}}});
  bench_measure(&(bench_table){"F6", what[1], "how much memory does a list take before it runs, per task?", "bytes",
    .variants = {{"1,000 tasks", bytes_per_task, &lists[0], 1}, {"10,000 tasks", bytes_per_task, &lists[1], 1},
                 {"100,000 tasks", bytes_per_task, &lists[2], 1}},
    .ratios = {{"a task of 100,000, in bytes", "100,000 tasks", {NULL}, 256},
               {"a task of 100,000 against one of 10,000", "100,000 tasks", {"10,000 tasks"}, 2}}});
}

int main(int argc, char **argv) {
  static const size_t counts[] = {1000, 10000, 100000};
  bench_begin(argc, argv, "check_plan");
  bench_cpu_floor();
  gk_task *tasks = bench_alloc(100000, sizeof *tasks);
  bench_must(gk_set_allocator(&bench_counting));
  for (int straight = 0; straight < 2; ++straight) {
    gk_list lists[GK_COUNT(counts)];
    fill(tasks, 100000, straight);
    for (size_t k = 0; k < GK_COUNT(counts); ++k)
      lists[k] = (gk_list){GK_ABI, "list", tasks, counts[k], slots, GK_COUNT(slots)};
    measure(straight ? "tasks only" : "with blocks", lists);
  }
  free(tasks);
  return bench_end();
}
