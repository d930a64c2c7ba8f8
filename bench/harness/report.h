/* What harness.c measured so far, and report.c, which prints it and writes the JSON. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H
#include "bench/harness/harness.h"
#include <stdio.h>

enum { BENCH_TURNS = 101 /* at most; odd: the median is one of them */, BENCH_FACTS = 16, BENCH_TEXT = 200 };

typedef struct bench_figures { double median, p5, p25, p75, p95; } bench_figures;

typedef struct bench_measured {
  const bench_table *table;
  int variants, ratios, turns, base[BENCH_RATIOS]; /* base: the variant a ratio is taken against; -1: none */
  uint64_t times[BENCH_VARIANTS];
  bool right[BENCH_VARIANTS];
  double took[BENCH_VARIANTS][BENCH_TURNS]; /* of one repetition */
  bench_figures variant[BENCH_VARIANTS], ratio[BENCH_RATIOS];
} bench_measured;

static inline bool bench_is_missing(const bench_measured *m, int k) { return m->table->variants[k].missing != NULL; }

/* Of the whole program. */
extern struct bench_run {
  const char *program, *json, *only, *missing;
  bool quick;
  int tables, wrong;
  char *text; /* the JSON of its tables */
  size_t length;
  FILE *out; /* writes `text` */
  char *others; /* tables that --only doesn't name, a line each */
  size_t others_length;
  FILE *put_others;
  struct { const char *name; bench_figures took; } floor[BENCH_FLOOR];
  int floors;
  const char *floor_unit;
  struct { char name[40], text[BENCH_TEXT]; } facts[BENCH_FACTS]; /* about the device */
  int fact_count;
  char clocks[BENCH_TEXT]; /* of the cores, before anything is measured */
  double ticks, stolen;    /* until then, see bench_machine_ticks */
} bench_run;

void bench_print_table(const bench_measured *m);
/* Adds the table to the JSON's text. */
void bench_keep_table(const bench_measured *m);
/* Ends the program if the JSON file can't be written, before anything is measured. */
void bench_try_json(void);
/* Writes all tables so far. failed: the reason why the program ends early, or NULL. */
void bench_write_json(const char *failed);
/* Ends the program with a message, without writing the JSON. */
_Noreturn void bench_fail_at_once(const char *why);
#endif
