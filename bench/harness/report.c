#include "bench/harness/report.h"
#include "bench/harness/machine.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#ifndef BENCH_FLAGS
#define BENCH_FLAGS "not known"
#endif

/* ---- printed ----------------------------------------------------------------------------------------------------- */

/* Turns that reach from 0 or less to beyond the goal can't decide whether it is met. */
static bool is_lost(const bench_figures *f, double goal) {
  const bool nothing = f->p5 <= 0 || !isfinite(f->p95);
  return isfinite(f->median) && nothing && f->p5 <= goal && !(f->p95 <= goal);
}

static const char *verdict_of(const bench_measured *m, int ratio) {
  const bench_figures *f = &m->ratio[ratio];
  double goal = m->table->ratios[ratio].goal;
  if (bench_run.quick || goal == 0 || isnan(f->median)) return "none";
  return is_lost(f, goal) ? "lost" : f->median <= goal ? "met" : "missed";
}

static const bench_figures *floor_called(const char *name) {
  for (int k = 0; k < bench_run.floors; ++k)
    if (strcmp(bench_run.floor[k].name, name) == 0) return &bench_run.floor[k].took;
  bench_fail("a table has a floor that wasn't measured");
}

static double nanoseconds(const char *unit) {
  static const struct { const char *unit; double ns; } known[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  for (size_t k = 0; k < sizeof known / sizeof *known; ++k)
    if (strcmp(known[k].unit, unit) == 0) return known[k].ns;
  bench_fail("a table has a floor in a unit that isn't its own");
}

/* In the table's unit. The 5th percentile, since cores change their speed and no variant should be faster than this. */
static double floor_of(const bench_table *table) {
  if (!table->floor.of) return NAN;
  const double took = table->floor.times * floor_called(table->floor.of)->p5;
  if (strcmp(table->unit, bench_run.floor_unit) == 0) return took;
  return took * nanoseconds(bench_run.floor_unit) / nanoseconds(table->unit);
}

static void print_floor(const bench_table *table) {
  if (table->floor.of)
    printf("  floor: %.4g %s, %.6g of \"%s\"\n", floor_of(table), table->unit, table->floor.times, table->floor.of);
  for (int k = 0; k < bench_run.floors; ++k)
    printf("%s%s %.4g %s", k ? "; " : "  the machine's floor: ", bench_run.floor[k].name,
           bench_run.floor[k].took.median, bench_run.floor_unit);
  if (bench_run.floors) printf("\n");
}

void bench_print_table(const bench_measured *m) {
  const bench_table *table = m->table;
  printf("%s, %s: %s\n", table->id, table->what, table->question);
  for (int k = 0; k < m->variants; ++k) {
    const bench_figures *f = &m->variant[k];
    const bench_variant *variant = &table->variants[k];
    if (variant->missing) printf("  %-50s not measured: %s\n", variant->name, variant->missing);
    else printf("  %-50s %12.4g %s  (%.4g to %.4g)%s\n", variant->name, f->median, table->unit, f->p5, f->p95,
                m->right[k] ? "" : "  WRONG RESULT");
  }
  for (int k = 0; k < m->ratios; ++k) {
    const bench_figures *f = &m->ratio[k];
    if (isnan(f->median)) continue;
    printf("  = %-48s %12.3f %*s  (%.3f to %.3f)", table->ratios[k].what, f->median, (int)strlen(table->unit), "",
           f->p5, f->p95);
    double goal = table->ratios[k].goal;
    const char *verdict = verdict_of(m, k);
    if (goal > 0) printf("  goal %g: %s", goal, strcmp(verdict, "none") == 0 ? "not judged"
                                                 : strcmp(verdict, "lost") == 0 ? "lost in noise" : verdict);
    printf("\n");
  }
  print_floor(table);
  printf("\n");
  fflush(stdout);
}

/* ---- as JSON ----------------------------------------------------------------------------------------------------- */

static void put_text(FILE *out, const char *name, const char *text) {
  fprintf(out, "\"%s\": \"", name);
  for (; *text; ++text) {
    if (*text == '"' || *text == '\\') fputc('\\', out);
    if ((unsigned char)*text >= ' ') fputc(*text, out);
  }
  fputs("\"", out);
}

/* The ratio of two times of 0 isn't a number, and JSON has no NaN. */
static void put_number(FILE *out, const char *name, double number) {
  if (isfinite(number)) fprintf(out, ", \"%s\": %.6g", name, number);
  else fprintf(out, ", \"%s\": null", name);
}

static void put_figures(FILE *out, const bench_figures *f) {
  put_number(out, "median", f->median);
  put_number(out, "p5", f->p5);
  put_number(out, "p25", f->p25);
  put_number(out, "p75", f->p75);
  put_number(out, "p95", f->p95);
}

static void put_variant(FILE *out, const bench_measured *m, int k) {
  const bench_variant *variant = &m->table->variants[k];
  fprintf(out, "%s\n       {", k ? "," : "");
  put_text(out, "name", variant->name);
  if (variant->x != 0 || m->table->along) put_number(out, "x", variant->x);
  if (variant->missing) {
    fputs(", ", out), put_text(out, "missing", variant->missing);
    fputs("}", out);
    return;
  }
  fprintf(out, ", \"times\": %llu", (unsigned long long)m->times[k]);
  put_figures(out, &m->variant[k]);
  fprintf(out, ", \"correct\": %s}", m->right[k] ? "true" : "false");
}

void bench_keep_table(const bench_measured *m) {
  const bench_table *table = m->table;
  FILE *out = bench_run.out;
  fprintf(out, "%s\n    {", bench_run.tables ? "," : "");
  put_text(out, "id", table->id);
  fputs(", ", out), put_text(out, "what", table->what);
  fputs(",\n     ", out), put_text(out, "question", table->question);
  fputs(",\n     ", out), put_text(out, "unit", table->unit);
  fprintf(out, ", \"turns\": %d", m->turns);
  if (table->floor.of) {
    fputs(",\n     \"floor\": {", out), put_text(out, "of", table->floor.of);
    put_number(out, "times", table->floor.times);
    put_number(out, "least", floor_of(table));
    fputs("}", out);
  }
  if (table->along) fputs(", ", out), put_text(out, "along", table->along);
  fputs(",\n     \"variants\": [", out);
  for (int k = 0; k < m->variants; ++k) put_variant(out, m, k);
  fputs("],\n     \"ratios\": [", out);
  for (int k = 0; k < m->ratios; ++k) {
    const bench_ratio *ratio = &table->ratios[k];
    fprintf(out, "%s\n       {", k ? "," : "");
    put_text(out, "what", ratio->what);
    fputs(", ", out), put_text(out, "of", ratio->of);
    fputs(", ", out), put_text(out, "against", m->base[k] < 0 ? "" : table->variants[m->base[k]].name);
    put_figures(out, &m->ratio[k]);
    fprintf(out, ", \"goal\": %g, ", ratio->goal);
    put_text(out, "verdict", verdict_of(m, k));
    fputs("}", out);
  }
  fputs("]}", out);
}

static void put_floor(FILE *out) {
  if (!bench_run.floors) return;
  fputs(" \"floor\": {", out), put_text(out, "unit", bench_run.floor_unit), fputs(", \"variants\": [", out);
  for (int k = 0; k < bench_run.floors; ++k) {
    fprintf(out, "%s\n  {", k ? "," : ""), put_text(out, "name", bench_run.floor[k].name);
    put_figures(out, &bench_run.floor[k].took);
    fputs("}", out);
  }
  fputs("]},\n", out);
}

/* The share of all cores' time since the program began that the host gave to others; NAN if the system doesn't report
 * it. */
static double stolen_percent(void) {
  double all, stolen;
  if (!bench_machine_ticks(&all, &stolen) || !(all > bench_run.ticks)) return NAN;
  return 100 * (stolen - bench_run.stolen) / (all - bench_run.ticks);
}

static void put_device(FILE *out) {
  if (!bench_run.fact_count) return;
  fputs(" \"device\": {", out);
  for (int k = 0; k < bench_run.fact_count; ++k) {
    fputs(k ? ", " : "", out);
    put_text(out, bench_run.facts[k].name, bench_run.facts[k].text);
  }
  fputs("},\n", out);
}

static void put_machine(FILE *out) {
  char cpu[200], date[40], clock[80], clocks_now[BENCH_TEXT];
  struct utsname system;
  uname(&system);
  bench_machine_name(cpu, sizeof cpu);
  bench_machine_clocks(clocks_now, sizeof clocks_now);
  time_t now = time(NULL);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
  enum { READINGS = 10000 };
  double begin = bench_now();
  for (int k = 0; k < READINGS; ++k) (void)bench_now();
  snprintf(clock, sizeof clock, "CLOCK_MONOTONIC, a reading takes %.0f ns", (bench_now() - begin) / READINGS);
  fputs(" \"machine\": {", out), put_text(out, "cpu", cpu);
  fprintf(out, ", \"cores\": %ld, ", sysconf(_SC_NPROCESSORS_ONLN));
  put_text(out, "arch", system.machine);
  fputs(", ", out), put_text(out, "kernel", system.release);
  fputs(",\n  ", out), put_text(out, "compiler",
#if defined(__clang__)
                                  __VERSION__
#else
                                  "gcc " __VERSION__
#endif
  );
  fputs(", ", out), put_text(out, "flags", BENCH_FLAGS);
  fputs(",\n  ", out), put_text(out, "clocks before", bench_run.clocks);
  fputs(", ", out), put_text(out, "clocks after", clocks_now);
  put_number(out, "stolen", stolen_percent());
  fputs(",\n  ", out), put_text(out, "clock", clock);
  fputs(", ", out), put_text(out, "date", date);
  fputs("},\n", out);
}

static _Noreturn void fail_to_write(const char *file) {
  fprintf(stderr, "%s: the JSON file %s can't be written: %s\n", bench_run.program, file, strerror(errno));
  exit(1);
}

void bench_try_json(void) {
  if (!bench_run.json) return;
  struct stat is;
  const bool is_new = lstat(bench_run.json, &is) != 0; /* a dangling link exists */
  FILE *json = fopen(bench_run.json, "a");
  if (!json || fclose(json) != 0) fail_to_write(bench_run.json);
  if (is_new) unlink(bench_run.json);
}

static void put_report(FILE *out, const char *failed) {
  fputs("{", out), put_text(out, "program", bench_run.program);
  fprintf(out, ", \"quick\": %s, \"wrong\": %d,\n", bench_run.quick ? "true" : "false", bench_run.wrong);
  if (failed) fputs(" ", out), put_text(out, "failed", failed), fputs(",\n", out);
  if (bench_run.missing) fputs(" ", out), put_text(out, "missing", bench_run.missing), fputs(",\n", out);
  put_machine(out);
  put_device(out);
  put_floor(out);
  fprintf(out, " \"tables\": [%s]}\n", bench_run.text);
}

/* Writes a new file, which then replaces the old one: a program that is killed meanwhile leaves the previous tables. A
 * target that isn't a regular file, such as /dev/stdout, is written directly. */
void bench_write_json(const char *failed) {
  if (fflush(bench_run.out) != 0) bench_fail_at_once("out of memory");
  if (!bench_run.json) return;
  struct stat is;
  char *found = realpath(bench_run.json, NULL); /* a link stays a link */
  const char *json = found ? found : bench_run.json;
  const bool in_place = stat(json, &is) == 0 && !S_ISREG(is.st_mode);
  const size_t bytes = strlen(json) + sizeof ".part";
  char *part = malloc(bytes);
  if (!part) bench_fail_at_once("out of memory");
  snprintf(part, bytes, "%s%s", json, in_place ? "" : ".part");
  FILE *out = fopen(part, "w");
  if (!out) fail_to_write(part);
  put_report(out, failed);
  const bool lost = ferror(out) != 0;
  if (fclose(out) != 0 || lost || (!in_place && rename(part, json) != 0)) {
    const int why = errno;
    if (!in_place) unlink(part);
    errno = why;
    fail_to_write(part);
  }
  free(part);
  free(found);
}
