/* A small runner for benchmarks. A table asks one question of several arms: ways to do the same thing. They take turns,
 * so that whatever else the machine does meets each alike; ratios are taken turn by turn, and a wrong result fails the
 * program, however fast it was. */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Arms and ratios are written down with what they have. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* In the table's unit. `less` is what is to be taken off: the same without the thing in question. */
typedef struct bench_took { double all, less; } bench_took;

typedef struct bench_arm {
  const char *name;
  /* Does its thing `times` times, adds what that took, and says whether the results are right. It is called a few times
   * in each turn, and the least counts: what else the machine did meanwhile is nobody's cost. */
  bool (*run)(void *with, uint64_t times, bench_took *took);
  void *with;
  uint64_t most;    /* times per call at most; 0: as many as a call needs to be long enough */
  double settle_ms; /* to stay idle afterwards, where threads go on spinning that would be in the next arm's way */
  double x;         /* how much there is of what the table is about, for who draws a curve; 0: none is drawn */
  const char *missing; /* why it can't be measured here; it isn't called then, and stands in the table as missing */
} bench_arm;

/* What is judged: an arm against another of the same turn, or its own figure. */
typedef struct bench_ratio {
  const char *what;
  const char *of;
  const char *against[3]; /* whichever is fastest; none: the arm's own figure is judged */
  double goal;            /* at most; 0: none, shown for comparison */
} bench_ratio;

enum { BENCH_ARMS = 10, BENCH_RATIOS = 6, BENCH_FLOOR = 8 }; /* of one table, at most */

/* What nothing can be faster than: so many of an arm of bench_floor's, which may be in another unit of time than the
 * table is. */
typedef struct bench_bound {
  const char *of; /* NULL: nobody knows one */
  double times;
} bench_bound;

typedef struct bench_table {
  const char *id;       /* of the goal, as "F1" */
  const char *what;     /* is measured, as "one more task n=1" */
  const char *question;
  const char *unit;     /* "ns" as a rule */
  bench_arm arms[BENCH_ARMS];       /* to the first without a name */
  bench_ratio ratios[BENCH_RATIOS]; /* likewise */
  int tries;            /* calls of an arm per turn; 0: five. Fewer, where one takes long */
  int turns;            /* at least, odd; 0: 21. Fewer, where a call takes seconds */
  const char *along;    /* what x counts, as "tasks". A ratio is then of what one more takes: between against[0] and
                         * `of`, over that between against[1] and against[0] */
  bench_bound floor;
} bench_table;

/* Reads the options: --quick (each arm once, is it right?), --json FILE, --only TEXT (tables with that id, or with
 * these words in their names). Ends the program where --json names what can't be written. */
void bench_begin(int argc, char **argv, const char *program);
/* Whether a table is to be measured; for those who make something large for it. */
bool bench_wants(const char *id, const char *what);
/* With --quick figures mean nothing: what is long may be made shorter. */
bool bench_is_quick(void);
/* Measures a table, prints it, keeps it for the JSON. */
void bench_measure(const bench_table *table);
/* Measures what the machine takes at least, in arms with a unit in common. It is printed here and beneath each table
 * behind, and is in the JSON for all of them. Whatever --only asks for. */
void bench_floor(const bench_table *table);
/* One more thing about the device, as "gpu" or "driver": printed, and in the JSON. */
void bench_says(const char *name, const char *text);
/* Instead of all tables: the JSON says why there are none. @return main's: 0 */
int bench_missing(const char *why);
/* Writes the JSON. @return main's: 0 if every result was right */
int bench_end(void);

/* Nanoseconds of a clock that never goes back. */
double bench_now(void);
/* Nanoseconds that this thread ran. */
double bench_thread_now(void);
/* Ends the program with a message; what was measured until then is in the JSON, with the message. */
_Noreturn void bench_fail(const char *why);
#endif
