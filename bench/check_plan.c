/* What does a list cost before it runs? Time and memory per task of reading, checking and planning lists of 1,000 to
 * 100,000 tasks (goal F6: linear, under 1 us and 256 bytes per task at 100,000). Memory is counted by the allocator
 * hook at its peak, beyond the caller's list. */
#include "check.h"
#include "plan.h"
#include "gk_kernel.h"
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

GK_SOURCE(check_plan)
GK_KERNEL(advance, (inout(float, y), in(float, x), value(float, a))) { y[i] += a * x[i]; }
GK_SOURCE_END

enum { X = 1, Y, A, N, FLAG, ROUNDS = 15, LONGEST = 100000 };
static const gk_slot_desc slots[] = {
  GK_BUFFER(X, float), GK_BUFFER(Y, float), GK_SCALAR(A, float), GK_SCALAR(N, int), GK_BUFFER(FLAG, int),
};

static size_t live, peak;
static void *count_alloc(void *user, size_t bytes) {
  (void)user;
  void *at = malloc(bytes);
  live += malloc_usable_size(at);
  if (live > peak) peak = live;
  return at;
}
static void *count_resize(void *user, void *at, size_t bytes) {
  (void)user;
  live -= malloc_usable_size(at);
  at = realloc(at, bytes);
  live += malloc_usable_size(at);
  if (live > peak) peak = live;
  return at;
}
static void count_free(void *user, void *at) {
  (void)user;
  live -= malloc_usable_size(at);
  free(at);
}

/* Ten lines over and over: a loop with an IF, two sections, a checkpoint, and tasks. */
static void fill(gk_task *tasks, size_t count, bool straight) {
  const gk_task task = GK_RUN(advance, N, Y, X, A);
  const gk_task pattern[] = {GK_DO_WHILE(FLAG),      task, GK_IF(FLAG), task, GK_END,
                             GK_CHECKPOINT(1, FLAG), task, GK_END,      task, GK_END};
  for (size_t k = 0; k < count; ++k) {
    tasks[k] = straight ? task : pattern[k % GK_COUNT(pattern)];
    if (tasks[k].op == GK_OP_CHECKPOINT) tasks[k].label = (int32_t)k + 1;
  }
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static gk_result prepare(const gk_list *list, double *took) {
  gki_blocks blocks = {0};
  gki_planned planned = {0};
  double begin = seconds();
  gk_result result = gki_blocks_read(&blocks, list);
  if (result == GK_OK) result = gki_check(&blocks, NULL, NULL, NULL);
  if (result == GK_OK) result = gki_plan_make(&planned, &blocks, 0);
  gki_blocks_free(&blocks);
  *took = seconds() - begin;
  if (result == GK_OK && planned.plan.node_count < list->task_count / 2) result = GK_ERROR_INVALID;
  gki_plan_free(&planned);
  return result;
}

int main(void) {
  const gk_allocator allocator = {NULL, count_alloc, count_resize, count_free};
  gk_task *tasks = calloc(LONGEST, sizeof *tasks);
  if (!tasks || gk_set_allocator(&allocator) != GK_OK) return 1;
  double per_task[2] = {0, 0};
  printf("list tasks us_per_task bytes_per_task\n");
  for (int straight = 1; straight >= 0; --straight)
    for (size_t count = 1000; count <= LONGEST; count *= 10) {
      double took[ROUNDS];
      fill(tasks, count, straight);
      const gk_list list = {GK_ABI, "list", tasks, count, slots, GK_COUNT(slots)};
      peak = live = 0;
      for (int k = 0; k < ROUNDS; ++k)
        if (prepare(&list, &took[k]) != GK_OK) {
          fprintf(stderr, "%s\n", gk_error());
          return 1;
        }
      qsort(took, ROUNDS, sizeof *took, compare);
      per_task[straight] = 1e6 * took[ROUNDS / 2] / (double)count;
      printf("%s %zu %.3f %.0f\n", straight ? "straight" : "blocks", count, per_task[straight],
             (double)peak / (double)count);
    }
  free(tasks);
  bool met = per_task[0] < 1 && per_task[1] < 1 && (double)peak / LONGEST < 256;
  printf("goal %s\n", met ? "met" : "missed");
  return met ? 0 : 1;
}
