/* What do a launch with its wait, and a yield in gk_run, take on the OpenMP backend (table F8)? */
#include "bench/harness/cpu_floor.h"
#include "bench/harness/must.h"
#include "gk_kernel.h"
#include <stdio.h>

GK_SOURCE(bench_launches)
GK_KERNEL(one_more, (inout(int, x))) { x[i] += 1; }
GK_KERNEL(one_less, (inout(int, left), out(int, full), value(int, yields))) {
  left[0] -= 1;
  full[0] = yields;
}
GK_SOURCE_END

enum { X = 1, LEFT, FULL, YIELDS, AT, PASSES = 1000 };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 1), GK_OWN(LEFT, int, 1), GK_OWN(FULL, int, 1),
                                     GK_SCALAR(YIELDS, int)};
static const gk_task one_tasks[] = {GK_RUN(one_more, GK_ONE, X)};
static const gk_list one = GK_LIST(one, one_tasks, slots);

static const gk_task yielding_tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(one_less, GK_ONE, LEFT, FULL, YIELDS),
                                         GK_CHECKPOINT(AT, FULL), GK_END, GK_END};
static const gk_list yielding = GK_LIST(yielding, yielding_tasks, slots);

static gk_device *device;

/* Whether X grew by as much. */
static bool grew(gk_graph *graph, int from, uint64_t by) {
  return *(int *)gk_bound(graph, X) == (int)((uint32_t)from + (uint32_t)by);
}

static bool in_one_call(void *with, uint64_t times, bench_took *took) {
  const int from = *(int *)gk_bound(with, X);
  const double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) bench_must(gk_launch_wait(with, 0, NULL));
  took->all += bench_now() - begin;
  return grew(with, from, times);
}

static bool in_two_calls(void *with, uint64_t times, bench_took *took) {
  const int from = *(int *)gk_bound(with, X);
  const double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) {
    bench_must(gk_launch(with, 0));
    bench_must(gk_wait(with, NULL));
  }
  took->all += bench_now() - begin;
  return grew(with, from, times);
}

static void launch_and_wait(void) {
  gk_graph *graph;
  bench_must(gk_graph_create(device, &one, 0, &graph));
  bench_measure(&(bench_table){"F8", "launch and wait", "what does a launch of one task take, with its wait?", "ns",
    .variants = {{"gk_launch_wait", in_one_call, graph}, {"gk_launch and gk_wait", in_two_calls, graph}},
    .ratios = {{"gk_launch_wait, in ns", "gk_launch_wait", {NULL}, 300},
               {"one call against two", "gk_launch_wait", {"gk_launch and gk_wait"}, 0}}});
  gk_graph_destroy(graph);
}

static gk_result clear_flag(void *user, gk_graph *graph, const gk_status *status) {
  (void)graph, (void)status;
  *(int *)user = 0;
  return GK_OK;
}

/* Adds the time per pass. */
static bool passes(gk_graph *graph, int yields, double *took) {
  const gk_status *totals;
  *(int *)gk_bound(graph, LEFT) = PASSES;
  bench_must(gk_bind_int(graph, YIELDS, yields));
  const double begin = bench_now();
  bench_must(gk_run(graph, clear_flag, gk_bound(graph, FULL), &totals));
  *took += (bench_now() - begin) / PASSES;
  return gk_passes(totals, 0) == PASSES && totals->state == GK_FINISHED;
}

/* A pass with a yield less one without. */
static bool yield_in_run(void *with, uint64_t times, bench_took *took) {
  bool right = true;
  for (uint64_t k = 0; k < times; ++k)
    right = passes(with, 1, &took->all) && passes(with, 0, &took->less) && right;
  return right;
}

static void yields(void) {
  gk_graph *graph;
  bench_must(gk_graph_create(device, &yielding, 0, &graph));
  bench_measure(&(bench_table){"F8", "yield in gk_run", "what does a yield cost whose on_yield clears the flag?", "ns",
    .variants = {{"gk, the yield alone", yield_in_run, graph}},
    .ratios = {{"a yield in gk_run, in ns", "gk, the yield alone", {NULL}, 300}}});
  gk_graph_destroy(graph);
}

int main(int argc, char **argv) {
  bench_begin(argc, argv, "launches");
  bench_cpu_floor();
  bench_must(gk_device_open(&(gk_device_desc){.backend = "openmp", .threads = 1}, &device));
  launch_and_wait();
  yields();
  gk_device_close(device);
  return bench_end();
}
