/* A benchmark with known figures, a variant whose results are wrong, and one that can't be measured. tests/bench.py
 * checks the report of each. */
#include "bench/harness/harness.h"
#include <stdlib.h>
#include <unistd.h>

/* Figures in the table's unit; the time that is taken off is a tenth of each. */
static bool steady(void *with, uint64_t times, bench_took *took) {
  took->all += *(const double *)with * 1.1 * (double)times;
  took->less += *(const double *)with * 0.1 * (double)times;
  return true;
}

static bool wrong(void *with, uint64_t times, bench_took *took) {
  steady(with, times, took);
  return false;
}

/* Every other call takes this long, the others less than 0 or ten times as long. */
static bool wavering(void *with, uint64_t times, bench_took *took) {
  static const double of[] = {-1, 1, 10, 1};
  static unsigned calls;
  took->all += *(const double *)with * of[calls++ % 4] * (double)times;
  return true;
}

/* Never called. */
static bool never(void *with, uint64_t times, bench_took *took) {
  (void)with, (void)times, (void)took;
  bench_fail("a variant that is missing was called");
}

int main(int argc, char **argv) {
  double two = 2, three = 3, six = 6, less = -2;
  bench_begin(argc, argv, "wrong");
  bench_fact("gpu", "one that \"isn't\" there");
  bench_floor(&(bench_table){"floor", "what anything takes", "what is the least?", "us",
    .variants = {{"two of them", steady, &two, 1}, {"three", steady, &three, 1}}});
  bench_measure(&(bench_table){"T1", "known figures", "is \"arithmetic\" right?", "units",
    .variants = {{"six", steady, &six, 1, 0}, {"three", steady, &three, 1, 0}, {"two", steady, &two, 1, 0}},
    .ratios = {{"six against the better", "six", {"three", "two"}, 3},
               {"two against three", "two", {"three"}, 0.6},
               {"three itself", "three", {0}, 3}}});
  bench_measure(&(bench_table){"T2", "a wrong result", "is it seen?", "units",
    .variants = {{"right", steady, &two, 1, 0}, {"wrong", wrong, &two, 1, 0}}});
  bench_measure(&(bench_table){"T3", "some are missing", "what is judged then?", "ms",
    .variants = {{"six", steady, &six, 1, .x = 6}, {"three", steady, &three, 1, .x = 3},
                 {"nobody", never, NULL, .missing = "there is none"}, {"less than nothing", steady, &less, 1}},
    .ratios = {{"six against nobody or three", "six", {"nobody", "three"}, 2},
               {"six against nobody", "six", {"nobody"}, 2},
               {"nobody against six", "nobody", {"six"}, 2},
               {"six against less than nothing", "six", {"less than nothing"}, 2}},
    .floor = {"two of them", 500}});
  bench_measure(&(bench_table){"T4", "what grows", "how much more does one more take?", "units", .along = "things",
    .variants = {{"none", steady, &two, 1, .x = 0}, {"one", steady, &three, 1, .x = 1},
                 {"three", steady, &six, 1, .x = 3}, {"as many", steady, &two, 1, .x = 4}},
    .ratios = {{"one more of three against the first", "three", {"one", "none"}, 1.4},
               {"one more that takes less", "as many", {"three", "one"}, 2},
               {"growth from nothing", "three", {"one", "as many"}, 2}}});
  bench_measure(&(bench_table){"T5", "wavering figures", "are they judged?", "units", .tries = 1,
    .variants = {{"wavering", wavering, &two, 1}, {"two", steady, &two, 1}},
    .ratios = {{"against a goal amid them", "wavering", {"two"}, 1.5},
               {"against a goal beyond them", "wavering", {"two"}, 10}}});
  if (getenv("WRONG_FAILS")) bench_fail("it \"fails\"");
  if (getenv("WRONG_HANGS")) pause();
  return bench_end();
}
