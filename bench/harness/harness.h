/* A small runner for benchmarks. A table asks one question about several variants: ways to do the same thing. Variants
 * take turns, so other work on the machine affects all of them equally. Ratios are taken turn by turn. A wrong result
 * fails the program. */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Initialisers of variants and ratios name only the members that they need. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* In the table's unit. `less` is subtracted: the time of the same work without the thing in question. */
typedef struct bench_took { double all, less; } bench_took;

typedef struct bench_variant {
  const char *name;
  /* Does its work `times` times and adds the time to `took`. It is called a few times in each turn, and the least time
   * counts, since other work on the machine isn't the variant's cost. @return Whether the results are right */
  bool (*run)(void *with, uint64_t times, bench_took *took);
  void *with;
  uint64_t most;    /* repetitions per call at most; 0: as many as make a call long enough */
  double idle_ms; /* idle time after a turn: threads that go on spinning would disturb the next variant */
  double x;         /* the variant's place on the curve, such as its number of tasks; 0: no curve is drawn */
  const char *missing; /* the reason why it can't be measured here, shown in the table; NULL: it can */
} bench_variant;

/* A figure with a goal: a variant's time divided by another variant's of the same turn, or its own figure. */
typedef struct bench_ratio {
  const char *what;
  const char *of;
  const char *against[3]; /* the fastest of these; none: the variant's own figure is judged */
  double goal;            /* at most; 0: none, shown for comparison */
} bench_ratio;

enum { BENCH_VARIANTS = 10, BENCH_RATIOS = 6, BENCH_FLOOR = 8 }; /* of one table, at most */

/* The least possible time: a multiple of that of a variant of bench_floor, which may be in another unit of time. */
typedef struct bench_bound {
  const char *of; /* the variant's name; NULL: no least time is known */
  double times;
} bench_bound;

typedef struct bench_table {
  const char *id;       /* of the goal, as "F1" */
  const char *what;     /* is measured, as "one more task n=1" */
  const char *question;
  const char *unit;     /* "ns" as a rule */
  bench_variant variants[BENCH_VARIANTS]; /* to the first without a name */
  bench_ratio ratios[BENCH_RATIOS]; /* likewise */
  int tries;            /* calls of a variant per turn; 0: five. Fewer if a call takes long */
  int turns;            /* at least, odd; 0: 21. Fewer if a call takes seconds */
  const char *along;    /* what x counts, such as "tasks". A ratio then divides the time per unit of x between
                         * against[0] and `of` by that between against[1] and against[0] */
  bench_bound floor;
} bench_table;

/* Reads the options: --quick (each variant once, is it right?), --json FILE, --only TEXT (tables with that id, or with
 * these words in their names). Ends the program if the file of --json can't be written. */
void bench_begin(int argc, char **argv, const char *program);
/* Whether the table will be measured, for callers that prepare something large for it. */
bool bench_wants(const char *id, const char *what);
/* With --quick figures mean nothing, so long work may be shortened. */
bool bench_is_quick(void);
/* Measures a table, prints it, and keeps it for the JSON. */
void bench_measure(const bench_table *table);
/* Measures the machine's least times, in variants with one unit, regardless of --only. They are printed here and
 * beneath each later table, and the JSON has them once. */
void bench_floor(const bench_table *table);
/* Adds a fact about the device, such as "gpu" or "driver", to the JSON, and prints it. */
void bench_fact(const char *name, const char *text);
/* In place of all tables: writes the reason into the JSON. @return The program's exit code: 0 */
int bench_missing(const char *why);
/* Writes the JSON. @return The program's exit code: 0 if every result was right */
int bench_end(void);

/* The time in nanoseconds, from a clock that never goes back. */
double bench_now(void);
/* This thread's processor time in nanoseconds. */
double bench_thread_now(void);
/* Zeroed memory, freed by free(). Ends the program if there is none. */
void *bench_alloc(size_t count, size_t bytes);
/* Ends the program with a message. The JSON has the tables so far and the message. */
_Noreturn void bench_fail(const char *why);
#endif
