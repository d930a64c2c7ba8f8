#include "bench/harness/machine.h"
#include "bench/harness/report.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct bench_run bench_run;

enum { FEWEST = 21, MOST = BENCH_TURNS, TRIES = 5 /* calls of a variant per turn */ };
static const double CALL_NS = 4e5;   /* a call lasts at least this long */
static const double ONCE_NS = 2e8;   /* a call of this length needn't be repeated */
static const double TABLE_NS = 1.5e9; /* a table, after its FEWEST turns */

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

static double clock_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
double bench_now(void) { return clock_ns(CLOCK_MONOTONIC); }
double bench_thread_now(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

static void idle(double ms) {
  if (ms > 0 && !bench_run.quick) nanosleep(&(struct timespec){.tv_nsec = (long)(ms * 1e6)}, NULL);
}

/* ---- statistics -------------------------------------------------------------------------------------------------- */

static const bench_figures no_figures = {NAN, NAN, NAN, NAN, NAN};

static int by_value(const void *a, const void *b) {
  double l = *(const double *)a, r = *(const double *)b;
  return (l > r) - (l < r);
}

static bench_figures figures_of(const double *seen, int count) {
  double sorted[MOST];
  memcpy(sorted, seen, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, by_value);
  const int last = count - 1;
  return (bench_figures){sorted[last / 2], sorted[last / 20], sorted[last / 4], sorted[last - last / 4],
                         sorted[last - last / 20]};
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

_Noreturn void bench_fail_at_once(const char *why) {
  fprintf(stderr, "%s: %s\n", bench_run.program, why);
  exit(1);
}

static const char usage[] = "the options are --quick, --json FILE, --only TEXT (tables with that id, or with these "
                            "words in their names)";

static _Noreturn void fail_on_option(const char *option, const char *why) {
  fprintf(stderr, "%s: %s: %s; %s\n", bench_run.program, option, why, usage);
  exit(1);
}

_Noreturn void bench_fail(const char *why) {
  if (bench_run.tables) bench_write_json(why);
  bench_fail_at_once(why);
}

void *bench_alloc(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (!memory) bench_fail("out of memory");
  return memory;
}

void bench_begin(int argc, char **argv, const char *program) {
  bench_run.program = program;
  for (int k = 1; k < argc; ++k) {
    if (strcmp(argv[k], "--quick") == 0) bench_run.quick = true;
    else if (strcmp(argv[k], "--help") == 0 || strcmp(argv[k], "-h") == 0) {
      printf("%s: %s\n", bench_run.program, usage);
      exit(0);
    } else if (strcmp(argv[k], "--json") != 0 && strcmp(argv[k], "--only") != 0) fail_on_option(argv[k], "unknown");
    else if (k + 1 == argc) fail_on_option(argv[k], "it needs a value");
    else if (strcmp(argv[k], "--json") == 0) bench_run.json = argv[++k];
    else bench_run.only = argv[++k];
  }
  bench_try_json();
  bench_run.out = open_memstream(&bench_run.text, &bench_run.length);
  bench_run.put_others = open_memstream(&bench_run.others, &bench_run.others_length);
  if (!bench_run.out || !bench_run.put_others) bench_fail("out of memory");
  bench_machine_clocks(bench_run.clocks, sizeof bench_run.clocks);
  if (!bench_machine_ticks(&bench_run.ticks, &bench_run.stolen)) bench_run.ticks = NAN;
  if (bench_run.quick) printf("--quick: is it right? The figures mean nothing.\n");
}

bool bench_is_quick(void) { return bench_run.quick; }

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
  const bool wants = !bench_run.only || strcmp(id, bench_run.only) == 0 || has_words(what, bench_run.only);
  if (!wants) fprintf(bench_run.put_others, "\n  %s, %s", id, what);
  return wants;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static void take_turn(bench_measured *m, int variant) {
  const bench_variant *at = &m->table->variants[variant];
  bench_took least = {0};
  int tries = bench_run.quick ? 1 : m->table->tries ? m->table->tries : TRIES;
  for (int try = 0; try < tries; ++try) {
    bench_took took = {0};
    if (!at->run(at->with, m->times[variant], &took)) m->right[variant] = false;
    if (try == 0 || took.all < least.all) least.all = took.all;
    if (try == 0 || took.less < least.less) least.less = took.less;
  }
  m->took[variant][m->turns] = (least.all - least.less) / (double)m->times[variant];
  idle(at->idle_ms);
}

/* Finds the repetitions that make a call long enough. These calls warm up caches and threads, too. */
static void choose_times(bench_measured *m, int variant) {
  const bench_variant *at = &m->table->variants[variant];
  uint64_t most = at->most ? at->most : UINT64_MAX / 4;
  m->times[variant] = 1;
  for (int round = 0; round < 40 && !bench_run.quick; ++round) {
    double took = INFINITY; /* the least of three calls: the first may start threads, and any may lose its core */
    for (int call = 0; call < 3 && took >= CALL_NS && (call == 0 || took < ONCE_NS); ++call) {
      double begin = bench_now();
      bench_took ignored = {0};
      if (!at->run(at->with, m->times[variant], &ignored)) m->right[variant] = false;
      took = fmin(took, bench_now() - begin);
    }
    if (took >= CALL_NS || m->times[variant] >= most) break;
    double factor = took > 0 ? 1.2 * CALL_NS / took : 10;
    uint64_t next = (uint64_t)((double)m->times[variant] * (factor > 10 ? 10 : factor < 1.3 ? 1.3 : factor)) + 1;
    m->times[variant] = next < most ? next : most;
  }
  idle(at->idle_ms);
}

static void take_turns(bench_measured *m) {
  for (int k = 0; k < m->variants; ++k) {
    m->right[k] = true;
    if (!bench_is_missing(m, k)) choose_times(m, k);
  }
  double begin = bench_now();
  const int most = bench_run.quick ? 1 : MOST, fewest = m->table->turns ? m->table->turns : FEWEST;
  while (m->turns < most && (m->turns < fewest || bench_now() - begin < TABLE_NS)) {
    for (int k = 0; k < m->variants; ++k) { /* each turn begins with another variant */
      const int variant = (k + m->turns) % m->variants;
      if (!bench_is_missing(m, variant)) take_turn(m, variant);
    }
    ++m->turns;
  }
  if (m->turns % 2 == 0) --m->turns;
}

static int variant_called(const bench_measured *m, const char *name) {
  for (int k = 0; k < m->variants; ++k)
    if (strcmp(m->table->variants[k].name, name) == 0) return k;
  bench_fail("a ratio names a variant that its table hasn't got");
}

/* The time of one more unit of x, between two variants. */
static double one_more(const bench_measured *m, int from, int to, int turn) {
  return (m->took[to][turn] - m->took[from][turn]) / (m->table->variants[to].x - m->table->variants[from].x);
}

/* Negative if the longer one takes less. Growth from 0 is infinite and misses every goal. */
static double growth(double more, double before) { return before > 0 ? more / before : more <= 0 ? 0 : INFINITY; }

static double ratio_of(const bench_measured *m, int ratio, int of, int turn) {
  const int base = m->base[ratio];
  if (base < 0) return m->took[of][turn];
  if (!m->table->along) return m->took[of][turn] / m->took[base][turn];
  const int first = variant_called(m, m->table->ratios[ratio].against[1]);
  return growth(one_more(m, base, of, turn), one_more(m, first, base, turn));
}

static void compute(bench_measured *m) {
  for (int k = 0; k < m->variants; ++k)
    m->variant[k] = bench_is_missing(m, k) ? no_figures : figures_of(m->took[k], m->turns);
  for (int k = 0; k < m->ratios; ++k) {
    const bench_ratio *ratio = &m->table->ratios[k];
    const int of = variant_called(m, ratio->of);
    double seen[MOST];
    m->base[k] = -1;
    for (int a = 0; a < (m->table->along ? 1 : 3) && ratio->against[a]; ++a) {
      int variant = variant_called(m, ratio->against[a]);
      if (bench_is_missing(m, variant)) continue;
      if (m->base[k] < 0 || m->variant[variant].median < m->variant[m->base[k]].median) m->base[k] = variant;
    }
    m->ratio[k] = no_figures;
    if (bench_is_missing(m, of) || (ratio->against[0] && m->base[k] < 0)) continue;
    if (m->table->along && bench_is_missing(m, variant_called(m, ratio->against[1]))) continue;
    if (!m->table->along && m->base[k] >= 0 && m->variant[m->base[k]].median <= 0) continue; /* lost in noise */
    for (int turn = 0; turn < m->turns; ++turn) seen[turn] = ratio_of(m, k, of, turn);
    m->ratio[k] = figures_of(seen, m->turns);
  }
}

static void measure(bench_measured *m, const bench_table *table) {
  *m = (bench_measured){.table = table};
  while (m->variants < BENCH_VARIANTS && table->variants[m->variants].name) ++m->variants;
  while (m->ratios < BENCH_RATIOS && table->ratios[m->ratios].what) ++m->ratios;
  take_turns(m);
  compute(m);
  bench_print_table(m);
  for (int k = 0; k < m->variants; ++k) bench_run.wrong += !m->right[k];
}

void bench_measure(const bench_table *table) {
  if (!bench_wants(table->id, table->what)) return;
  static bench_measured m;
  measure(&m, table);
  bench_keep_table(&m);
  ++bench_run.tables;
  bench_write_json("it was ended before its last table"); /* a killed program loses one table */
}

void bench_floor(const bench_table *table) {
  static bench_measured m;
  measure(&m, table);
  bench_run.floor_unit = table->unit;
  if (bench_run.floors + m.variants > BENCH_FLOOR) bench_fail("a floor has too many variants");
  for (int k = 0; k < m.variants; ++k) {
    bench_run.floor[bench_run.floors].name = table->variants[k].name;
    bench_run.floor[bench_run.floors++].took = m.variant[k];
  }
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

void bench_fact(const char *name, const char *text) {
  if (bench_run.fact_count == BENCH_FACTS) bench_fail("too many facts about the device");
  snprintf(bench_run.facts[bench_run.fact_count].name, sizeof bench_run.facts->name, "%s", name);
  snprintf(bench_run.facts[bench_run.fact_count++].text, sizeof bench_run.facts->text, "%s", text);
  printf("%s: %s\n", name, text);
}

int bench_missing(const char *why) {
  bench_run.missing = why;
  printf("nothing is measured: %s\n", why);
  return bench_end();
}

int bench_end(void) {
  if (fclose(bench_run.put_others) != 0) bench_fail_at_once("out of memory");
  if (bench_run.tables == 0 && !bench_run.missing) {
    fprintf(stderr, "%s: --only %s: no table has that id, or these words in its name; there are%s\n", bench_run.program,
            bench_run.only ? bench_run.only : "", bench_run.others);
    exit(1);
  }
  if (bench_run.wrong) printf("%d WRONG RESULTS\n", bench_run.wrong);
  bench_write_json(NULL);
  fclose(bench_run.out);
  free(bench_run.text);
  free(bench_run.others);
  return bench_run.wrong != 0;
}
