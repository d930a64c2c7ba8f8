/* How cost grows (tables G and C13): lists that grow by one thing each, and what is measured of all of them, whatever
 * the backend. A launch adds to a few numbers, and each call looks at these. */
#ifndef BENCH_GROWTH_LISTS_H
#define BENCH_GROWTH_LISTS_H
#include "bench/harness/harness.h"
#include "gk.h"

enum { GROWTH_LISTS = 10, GROWTH_AXES = 5, GROWTH_NUMBERS = 10000 };

typedef struct growth_list {
  gk_list list;
  char name[40];                /* "1,000 tasks" */
  int x;                        /* how many of what grows */
  int numbers[GROWTH_NUMBERS];  /* what a launch adds to each of them */
  uint64_t passes;              /* that all loops of a launch make */
  int32_t label;                /* of a checkpoint at its beginning; 0: there is none */
  gk_graph *kept;               /* for what is asked of a graph that was launched before */
} growth_list;

/* Lists in the order of their x. */
typedef struct growth_axis {
  const char *along; /* what there is more and more of: "tasks" */
  int count, first, middle; /* whether it grows faster than it should is judged by these two and the last */
  growth_list lists[GROWTH_LISTS];
} growth_axis;

/* One thing that is asked of all lists. */
typedef struct growth_question {
  const char *what, *question, *unit;
  bool (*run)(void *list, uint64_t times, bench_took *took); /* a bench_arm's, with a growth_list */
  bool of_kept;
  const char *(*missing)(const growth_list *list); /* why it can't be asked of that one, or NULL; itself NULL: it can */
  bool resumes; /* asked where there are checkpoints alone */
} growth_question;

/* gk's allocator from here on counts; to be called before the first device is opened. */
void bench_growth_begin(void);
/* Makes the lists, and the numbers on that device. */
void bench_growth_open(gk_device *device);
void bench_growth_close(void);
/* Asks all lists what every backend is asked, and then the questions given.
 * @param tries  Calls of an arm per turn, of those that take time. */
void bench_growth_measure(const char *id, int tries, const growth_question *more, size_t count);

/* Bytes of the host's memory that gk holds. */
size_t bench_growth_held(void);
gk_graph *bench_growth_make(const growth_list *list);
void bench_growth_bind(const growth_list *list, gk_graph *graph);
/* To be called before launches whose results are to be looked at. */
void bench_growth_clear(void);
void bench_growth_launch(gk_graph *graph);
/* Whether so many launches since did what they should. */
bool bench_growth_is_right(const growth_list *list, gk_graph *graph, uint64_t launches);
#endif
