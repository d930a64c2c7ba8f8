/* A benchmark with figures that are known, and an arm whose results are wrong: tests/bench.py looks at what becomes of
 * both. */
#include "harness.h"

/* In the table's unit: so much per time; what is taken off is a tenth of it. */
static bool steady(void *with, uint64_t times, bench_took *took) {
  took->all += *(const double *)with * 1.1 * (double)times;
  took->less += *(const double *)with * 0.1 * (double)times;
  return true;
}

static bool wrong(void *with, uint64_t times, bench_took *took) {
  steady(with, times, took);
  return false;
}

int main(int argc, char **argv) {
  double two = 2, three = 3, six = 6;
  bench_begin(argc, argv, "wrong");
  bench_measure(&(bench_table){"T1", "known figures", "is \"arithmetic\" right?", "units",
    .arms = {{"six", steady, &six, 1, 0}, {"three", steady, &three, 1, 0}, {"two", steady, &two, 1, 0}},
    .ratios = {{"six against the better", "six", {"three", "two"}, 3},
               {"two against three", "two", {"three"}, 0.6},
               {"three itself", "three", {0}, 3}}});
  bench_measure(&(bench_table){"T2", "a wrong result", "is it seen?", "units",
    .arms = {{"right", steady, &two, 1, 0}, {"wrong", wrong, &two, 1, 0}}});
  return bench_end();
}
