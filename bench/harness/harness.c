#include "bench/harness/harness.h"
#include "bench/harness/machine.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#ifndef BENCH_FLAGS
#define BENCH_FLAGS "not known"
#endif

enum { FEWEST = 21, MOST = 101 /* turns, odd: the median is one of them */, SAMPLES = BENCH_ARMS + BENCH_RATIOS };
enum { TRIES = 5 /* calls of an arm per turn */, SAID = 16, TEXT = 200 };
static const double CALL_NS = 4e5 /* at least */, ONCE_NS = 2e8 /* so long that one call is enough */;
static const double TABLE_NS = 1.5e9 /* a table, once the fewest turns are done */;

typedef struct figures { double median, p5, p25, p75, p95; } figures;

static struct {
  const char *program, *json, *only, *missing;
  bool quick;
  int tables, wrong;
  char *text; /* of the JSON: its tables */
  size_t length;
  FILE *out; /* writes `text` */
  char *others; /* tables that --only doesn't name, a line each */
  size_t others_length;
  FILE *put_others;
  struct { const char *name; figures took; } floor[BENCH_FLOOR];
  int floors;
  const char *floor_unit;
  struct { char name[40], text[TEXT]; } said[SAID]; /* about the device */
  int said_count;
  char clocks[TEXT]; /* of the cores, before anything is measured */
  double ticks, stolen; /* until then, see bench_machine_ticks */
} run;

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

static double clock_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
double bench_now(void) { return clock_ns(CLOCK_MONOTONIC); }
double bench_thread_now(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

static void settle(double ms) {
  if (ms > 0 && !run.quick) nanosleep(&(struct timespec){.tv_nsec = (long)(ms * 1e6)}, NULL);
}

/* ---- statistics -------------------------------------------------------------------------------------------------- */

static const figures no_figures = {NAN, NAN, NAN, NAN, NAN};

static int by_value(const void *a, const void *b) {
  double l = *(const double *)a, r = *(const double *)b;
  return (l > r) - (l < r);
}

static figures figures_of(const double *seen, int count) {
  double sorted[MOST];
  memcpy(sorted, seen, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, by_value);
  const int last = count - 1;
  return (figures){sorted[last / 2], sorted[last / 20], sorted[last / 4], sorted[last - last / 4],
                   sorted[last - last / 20]};
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static void write_json(const char *failed);

static _Noreturn void fail_at_once(const char *why) {
  fprintf(stderr, "%s: %s\n", run.program, why);
  exit(1);
}

static _Noreturn void fail_to_write(const char *file) {
  fprintf(stderr, "%s: the JSON file %s can't be written: %s\n", run.program, file, strerror(errno));
  exit(1);
}

static const char usage[] = "the options are --quick, --json FILE, --only TEXT (tables with that id, or with these "
                            "words in their names)";

static _Noreturn void fail_on_option(const char *option, const char *why) {
  fprintf(stderr, "%s: %s: %s; %s\n", run.program, option, why, usage);
  exit(1);
}

_Noreturn void bench_fail(const char *why) {
  if (run.tables) write_json(why);
  fail_at_once(why);
}

/* What can't be written is to be known before it is measured. */
static void try_json(void) {
  if (!run.json) return;
  struct stat is;
  const bool is_new = lstat(run.json, &is) != 0; /* a link that leads nowhere is there */
  FILE *json = fopen(run.json, "a");
  if (!json || fclose(json) != 0) fail_to_write(run.json);
  if (is_new) unlink(run.json);
}

void bench_begin(int argc, char **argv, const char *program) {
  run.program = program;
  for (int k = 1; k < argc; ++k) {
    if (strcmp(argv[k], "--quick") == 0) run.quick = true;
    else if (strcmp(argv[k], "--help") == 0 || strcmp(argv[k], "-h") == 0) {
      printf("%s: %s\n", run.program, usage);
      exit(0);
    } else if (strcmp(argv[k], "--json") != 0 && strcmp(argv[k], "--only") != 0) fail_on_option(argv[k], "unknown");
    else if (k + 1 == argc) fail_on_option(argv[k], "it needs a value");
    else if (strcmp(argv[k], "--json") == 0) run.json = argv[++k];
    else run.only = argv[++k];
  }
  try_json();
  run.out = open_memstream(&run.text, &run.length);
  run.put_others = open_memstream(&run.others, &run.others_length);
  if (!run.out || !run.put_others) bench_fail("out of memory");
  bench_machine_clocks(run.clocks, sizeof run.clocks);
  if (!bench_machine_ticks(&run.ticks, &run.stolen)) run.ticks = NAN;
  if (run.quick) printf("--quick: is it right? The figures mean nothing.\n");
}

bool bench_is_quick(void) { return run.quick; }

static bool is_in_word(char c) { return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

/* Whole words: n=1 isn't in n=1024. */
static bool has_words(const char *text, const char *words) {
  const size_t length = strlen(words);
  for (const char *at = text; length && (at = strstr(at, words)) != NULL; ++at) {
    const bool begins = at == text || !is_in_word(at[-1]) || !is_in_word(*words);
    if (begins && (!is_in_word(at[length]) || !is_in_word(words[length - 1]))) return true;
  }
  return false;
}

bool bench_wants(const char *id, const char *what) {
  const bool wants = !run.only || strcmp(id, run.only) == 0 || has_words(what, run.only);
  if (!wants) fprintf(run.put_others, "\n  %s, %s", id, what);
  return wants;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

typedef struct measured {
  const bench_table *table;
  int arms, ratios, turns, base[BENCH_RATIOS]; /* base: the arm a ratio is taken against; -1: none */
  uint64_t times[BENCH_ARMS];
  bool right[BENCH_ARMS];
  double took[BENCH_ARMS][MOST]; /* of one repetition */
  figures arm[BENCH_ARMS], ratio[BENCH_RATIOS];
} measured;

static void take_turn(measured *m, int arm) {
  const bench_arm *at = &m->table->arms[arm];
  bench_took least = {0};
  int tries = run.quick ? 1 : m->table->tries ? m->table->tries : TRIES;
  for (int try = 0; try < tries; ++try) {
    bench_took took = {0};
    if (!at->run(at->with, m->times[arm], &took)) m->right[arm] = false;
    if (try == 0 || took.all < least.all) least.all = took.all;
    if (try == 0 || took.less < least.less) least.less = took.less;
  }
  m->took[arm][m->turns] = (least.all - least.less) / (double)m->times[arm];
  settle(at->settle_ms);
}

/* How often its thing has to be done for a call to be long enough; all of this warms up, too. */
static void choose_times(measured *m, int arm) {
  const bench_arm *at = &m->table->arms[arm];
  uint64_t most = at->most ? at->most : UINT64_MAX / 4;
  m->times[arm] = 1;
  for (int round = 0; round < 40 && !run.quick; ++round) {
    double took = INFINITY; /* of up to three calls: the first may make threads, and any may lose its core */
    for (int call = 0; call < 3 && took >= CALL_NS && (call == 0 || took < ONCE_NS); ++call) {
      double begin = bench_now();
      bench_took ignored = {0};
      if (!at->run(at->with, m->times[arm], &ignored)) m->right[arm] = false;
      took = fmin(took, bench_now() - begin);
    }
    if (took >= CALL_NS || m->times[arm] >= most) break;
    double factor = took > 0 ? 1.2 * CALL_NS / took : 10;
    uint64_t next = (uint64_t)((double)m->times[arm] * (factor > 10 ? 10 : factor < 1.3 ? 1.3 : factor)) + 1;
    m->times[arm] = next < most ? next : most;
  }
  settle(at->settle_ms);
}

static bool is_missing(const measured *m, int arm) { return m->table->arms[arm].missing != NULL; }

static void take_turns(measured *m) {
  for (int k = 0; k < m->arms; ++k) {
    m->right[k] = true;
    if (!is_missing(m, k)) choose_times(m, k);
  }
  double begin = bench_now();
  const int most = run.quick ? 1 : MOST, fewest = m->table->turns ? m->table->turns : FEWEST;
  while (m->turns < most && (m->turns < fewest || bench_now() - begin < TABLE_NS)) {
    for (int k = 0; k < m->arms; ++k) { /* none is always behind the same */
      const int arm = (k + m->turns) % m->arms;
      if (!is_missing(m, arm)) take_turn(m, arm);
    }
    ++m->turns;
  }
  if (m->turns % 2 == 0) --m->turns;
}

static int arm_called(const measured *m, const char *name) {
  for (int k = 0; k < m->arms; ++k)
    if (strcmp(m->table->arms[k].name, name) == 0) return k;
  bench_fail("a ratio names an arm that its table hasn't got");
}

/* What one more takes between two arms. */
static double one_more(const measured *m, int from, int to, int turn) {
  return (m->took[to][turn] - m->took[from][turn]) / (m->table->arms[to].x - m->table->arms[from].x);
}

/* Below nothing where a longer one takes less. What grows from nothing has no goal that it meets. */
static double growth(double more, double before) { return before > 0 ? more / before : more <= 0 ? 0 : INFINITY; }

static double ratio_of(const measured *m, int ratio, int of, int turn) {
  const int base = m->base[ratio];
  if (base < 0) return m->took[of][turn];
  if (!m->table->along) return m->took[of][turn] / m->took[base][turn];
  const int first = arm_called(m, m->table->ratios[ratio].against[1]);
  return growth(one_more(m, base, of, turn), one_more(m, first, base, turn));
}

static void judge(measured *m) {
  for (int k = 0; k < m->arms; ++k) m->arm[k] = is_missing(m, k) ? no_figures : figures_of(m->took[k], m->turns);
  for (int k = 0; k < m->ratios; ++k) {
    const bench_ratio *ratio = &m->table->ratios[k];
    const int of = arm_called(m, ratio->of);
    double seen[MOST];
    m->base[k] = -1;
    for (int a = 0; a < (m->table->along ? 1 : 3) && ratio->against[a]; ++a) {
      int arm = arm_called(m, ratio->against[a]);
      if (is_missing(m, arm)) continue;
      if (m->base[k] < 0 || m->arm[arm].median < m->arm[m->base[k]].median) m->base[k] = arm;
    }
    m->ratio[k] = no_figures;
    if (is_missing(m, of) || (ratio->against[0] && m->base[k] < 0)) continue;
    if (m->table->along && is_missing(m, arm_called(m, ratio->against[1]))) continue;
    if (!m->table->along && m->base[k] >= 0 && m->arm[m->base[k]].median <= 0) continue; /* lost in noise */
    for (int turn = 0; turn < m->turns; ++turn) seen[turn] = ratio_of(m, k, of, turn);
    m->ratio[k] = figures_of(seen, m->turns);
  }
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

/* Where turns came out as nothing, and on both sides of the goal, they tell nothing of it. */
static bool is_lost(const figures *f, double goal) {
  const bool nothing = f->p5 <= 0 || !isfinite(f->p95);
  return isfinite(f->median) && nothing && f->p5 <= goal && !(f->p95 <= goal);
}

static const char *verdict_of(const measured *m, int ratio) {
  const figures *f = &m->ratio[ratio];
  double goal = m->table->ratios[ratio].goal;
  if (run.quick || goal == 0 || isnan(f->median)) return "none";
  return is_lost(f, goal) ? "lost" : f->median <= goal ? "met" : "missed";
}

static const figures *floor_called(const char *name) {
  for (int k = 0; k < run.floors; ++k)
    if (strcmp(run.floor[k].name, name) == 0) return &run.floor[k].took;
  bench_fail("a table has a floor that wasn't measured");
}

static double nanoseconds(const char *unit) {
  static const struct { const char *unit; double ns; } known[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  for (size_t k = 0; k < sizeof known / sizeof *known; ++k)
    if (strcmp(known[k].unit, unit) == 0) return known[k].ns;
  bench_fail("a table has a floor in a unit that isn't its own");
}

/* In the table's unit. The 5th percentile, as cores change their speed: no arm is to be faster than this. */
static double floor_of(const bench_table *table) {
  if (!table->floor.of) return NAN;
  const double took = table->floor.times * floor_called(table->floor.of)->p5;
  if (strcmp(table->unit, run.floor_unit) == 0) return took;
  return took * nanoseconds(run.floor_unit) / nanoseconds(table->unit);
}

static void print_floor(const bench_table *table) {
  if (table->floor.of)
    printf("  floor: %.4g %s, %.6g of \"%s\"\n", floor_of(table), table->unit, table->floor.times, table->floor.of);
  for (int k = 0; k < run.floors; ++k)
    printf("%s%s %.4g %s", k ? "; " : "  the machine's floor: ", run.floor[k].name, run.floor[k].took.median,
           run.floor_unit);
  if (run.floors) printf("\n");
}

static void print_table(const measured *m) {
  const bench_table *table = m->table;
  printf("%s, %s: %s\n", table->id, table->what, table->question);
  for (int k = 0; k < m->arms; ++k) {
    const figures *f = &m->arm[k];
    if (is_missing(m, k)) printf("  %-50s not measured: %s\n", table->arms[k].name, table->arms[k].missing);
    else printf("  %-50s %12.4g %s  (%.4g to %.4g)%s\n", table->arms[k].name, f->median, table->unit, f->p5, f->p95,
                m->right[k] ? "" : "  WRONG RESULT");
  }
  for (int k = 0; k < m->ratios; ++k) {
    const figures *f = &m->ratio[k];
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

/* ---- for programs ------------------------------------------------------------------------------------------------ */

static void put_text(FILE *out, const char *name, const char *text) {
  fprintf(out, "\"%s\": \"", name);
  for (; *text; ++text) {
    if (*text == '"' || *text == '\\') fputc('\\', out);
    if ((unsigned char)*text >= ' ') fputc(*text, out);
  }
  fputs("\"", out);
}

/* A ratio of two times that are both nothing is no number, and JSON knows none such. */
static void put_number(FILE *out, const char *name, double number) {
  if (isfinite(number)) fprintf(out, ", \"%s\": %.6g", name, number);
  else fprintf(out, ", \"%s\": null", name);
}

static void put_figures(FILE *out, const figures *f) {
  put_number(out, "median", f->median);
  put_number(out, "p5", f->p5);
  put_number(out, "p25", f->p25);
  put_number(out, "p75", f->p75);
  put_number(out, "p95", f->p95);
}

static void put_arm(FILE *out, const measured *m, int k) {
  const bench_arm *arm = &m->table->arms[k];
  fprintf(out, "%s\n       {", k ? "," : "");
  put_text(out, "name", arm->name);
  if (arm->x != 0 || m->table->along) put_number(out, "x", arm->x);
  if (arm->missing) {
    fputs(", ", out), put_text(out, "missing", arm->missing);
    fputs("}", out);
    return;
  }
  fprintf(out, ", \"times\": %llu", (unsigned long long)m->times[k]);
  put_figures(out, &m->arm[k]);
  fprintf(out, ", \"correct\": %s}", m->right[k] ? "true" : "false");
}

static void keep_table(const measured *m) {
  const bench_table *table = m->table;
  FILE *out = run.out;
  fprintf(out, "%s\n    {", run.tables ? "," : "");
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
  fputs(",\n     \"arms\": [", out);
  for (int k = 0; k < m->arms; ++k) put_arm(out, m, k);
  fputs("],\n     \"ratios\": [", out);
  for (int k = 0; k < m->ratios; ++k) {
    const bench_ratio *ratio = &table->ratios[k];
    fprintf(out, "%s\n       {", k ? "," : "");
    put_text(out, "what", ratio->what);
    fputs(", ", out), put_text(out, "of", ratio->of);
    fputs(", ", out), put_text(out, "against", m->base[k] < 0 ? "" : table->arms[m->base[k]].name);
    put_figures(out, &m->ratio[k]);
    fprintf(out, ", \"goal\": %g, ", ratio->goal);
    put_text(out, "verdict", verdict_of(m, k));
    fputs("}", out);
  }
  fputs("]}", out);
}

static void measure(measured *m, const bench_table *table) {
  *m = (measured){.table = table};
  while (m->arms < BENCH_ARMS && table->arms[m->arms].name) ++m->arms;
  while (m->ratios < BENCH_RATIOS && table->ratios[m->ratios].what) ++m->ratios;
  take_turns(m);
  judge(m);
  print_table(m);
  for (int k = 0; k < m->arms; ++k) run.wrong += !m->right[k];
}

void bench_measure(const bench_table *table) {
  if (!bench_wants(table->id, table->what)) return;
  static measured m;
  measure(&m, table);
  keep_table(&m);
  ++run.tables;
  write_json("it was ended before its last table"); /* until there is a later one: who kills it loses one table */
}

void bench_floor(const bench_table *table) {
  static measured m;
  measure(&m, table);
  run.floor_unit = table->unit;
  if (run.floors + m.arms > BENCH_FLOOR) bench_fail("a floor has too many arms");
  for (int k = 0; k < m.arms; ++k) {
    run.floor[run.floors].name = table->arms[k].name;
    run.floor[run.floors++].took = m.arm[k];
  }
}

static void put_floor(FILE *out) {
  if (!run.floors) return;
  fputs(" \"floor\": {", out), put_text(out, "unit", run.floor_unit), fputs(", \"arms\": [", out);
  for (int k = 0; k < run.floors; ++k) {
    fprintf(out, "%s\n  {", k ? "," : ""), put_text(out, "name", run.floor[k].name);
    put_figures(out, &run.floor[k].took);
    fputs("}", out);
  }
  fputs("]},\n", out);
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

/* Percent of what all cores could do since the program began; NAN where the system doesn't say. */
static double stolen_percent(void) {
  double all, stolen;
  if (!bench_machine_ticks(&all, &stolen) || !(all > run.ticks)) return NAN;
  return 100 * (stolen - run.stolen) / (all - run.ticks);
}

void bench_says(const char *name, const char *text) {
  if (run.said_count == SAID) bench_fail("too much is said about the device");
  snprintf(run.said[run.said_count].name, sizeof run.said->name, "%s", name);
  snprintf(run.said[run.said_count++].text, sizeof run.said->text, "%s", text);
  printf("%s: %s\n", name, text);
}

static void put_device(FILE *out) {
  if (!run.said_count) return;
  fputs(" \"device\": {", out);
  for (int k = 0; k < run.said_count; ++k) {
    fputs(k ? ", " : "", out);
    put_text(out, run.said[k].name, run.said[k].text);
  }
  fputs("},\n", out);
}

static void put_machine(FILE *out) {
  char cpu[200], date[40], clock[80], clocks_now[TEXT];
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
  fputs(",\n  ", out), put_text(out, "clocks before", run.clocks);
  fputs(", ", out), put_text(out, "clocks after", clocks_now);
  put_number(out, "stolen", stolen_percent());
  fputs(",\n  ", out), put_text(out, "clock", clock);
  fputs(", ", out), put_text(out, "date", date);
  fputs("},\n", out);
}

int bench_missing(const char *why) {
  run.missing = why;
  printf("nothing is measured: %s\n", why);
  return bench_end();
}

static void put_report(FILE *out, const char *failed) {
  fputs("{", out), put_text(out, "program", run.program);
  fprintf(out, ", \"quick\": %s, \"wrong\": %d,\n", run.quick ? "true" : "false", run.wrong);
  if (failed) fputs(" ", out), put_text(out, "failed", failed), fputs(",\n", out);
  if (run.missing) fputs(" ", out), put_text(out, "missing", run.missing), fputs(",\n", out);
  put_machine(out);
  put_device(out);
  put_floor(out);
  fprintf(out, " \"tables\": [%s]}\n", run.text);
}

/* What was measured, and what ended it if something did. It is written beside the file, so that a program that is ended
 * amid this leaves the tables of before; but what is no file, as /dev/stdout, isn't replaced. */
static void write_json(const char *failed) {
  if (fflush(run.out) != 0) fail_at_once("out of memory");
  if (!run.json) return;
  struct stat is;
  char *found = realpath(run.json, NULL); /* a link stays one */
  const char *json = found ? found : run.json;
  const bool in_place = stat(json, &is) == 0 && !S_ISREG(is.st_mode);
  const size_t bytes = strlen(json) + sizeof ".part";
  char *part = malloc(bytes);
  if (!part) fail_at_once("out of memory");
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

int bench_end(void) {
  if (fclose(run.put_others) != 0) fail_at_once("out of memory");
  if (run.tables == 0 && !run.missing) {
    fprintf(stderr, "%s: --only %s: no table has that id, or these words in its name; there are%s\n", run.program,
            run.only ? run.only : "", run.others);
    exit(1);
  }
  if (run.wrong) printf("%d WRONG RESULTS\n", run.wrong);
  write_json(NULL);
  fclose(run.out);
  free(run.text);
  free(run.others);
  return run.wrong != 0;
}
