/* How cost grows (tables G and C13): lists that grow in one respect each, and the questions about all of them on every
 * backend. A launch adds to a few numbers, and each call checks these. */
#ifndef BENCH_GROWTH_LISTS_H
#define BENCH_GROWTH_LISTS_H
#include "bench/harness/harness.h"
#include "gk.h"

enum { GROWTH_LISTS = 10, GROWTH_AXES = 5, GROWTH_NUMBERS = 10000 };

typedef struct growth_list {
  gk_list list;
  char name[40];                /* "1,000 tasks" */
  int x;                        /* the length: how many tasks, slots ... */
  int numbers[GROWTH_NUMBERS];  /* a launch's increment of each number */
  uint64_t passes;              /* of all loops of a launch */
  int32_t label;                /* of a checkpoint at its start; 0: none */
  gk_graph *kept;               /* for questions about a graph after its first launch */
} growth_list;

/* Lists in the order of their x. */
typedef struct growth_axis {
  const char *along; /* what grows: "tasks" */
  int count, first, middle; /* the growth is judged by these two and the last */
  growth_list lists[GROWTH_LISTS];
} growth_axis;

/* A question about all lists. */
typedef struct growth_question {
  const char *what, *question, *unit;
  bool (*run)(void *list, uint64_t times, bench_took *took); /* a bench_variant's; with: a growth_list */
  bool of_kept;
  const char *(*missing)(const growth_list *list); /* why that list has no answer, or NULL; NULL: all have one */
  bool resumes; /* only for lists with checkpoints */
} growth_question;

/* Makes gk's allocator count. Call it before the first device is opened. */
void bench_growth_begin(void);
/* Makes the lists, and their numbers on that device. */
void bench_growth_open(gk_device *device);
void bench_growth_close(void);
/* Measures the questions for every backend and then the given ones, for all lists.
 * @param tries  Calls of a variant per turn, for questions whose answer is a time */
void bench_growth_measure(const char *id, int tries, const growth_question *more, size_t count);

/* Bytes of host memory that gk holds. */
size_t bench_growth_held(void);
gk_graph *bench_growth_make(const growth_list *list);
void bench_growth_bind(const growth_list *list, gk_graph *graph);
/* Call it before launches whose results are checked. */
void bench_growth_clear(void);
void bench_growth_launch(gk_graph *graph);
/* Whether the launches since then had the right results. */
bool bench_growth_is_right(const growth_list *list, gk_graph *graph, uint64_t launches);
#endif
