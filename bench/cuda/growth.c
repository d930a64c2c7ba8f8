/* How cost grows on CUDA: with tasks, loops in loops, checkpoints, sections and slots (table C13). */
#include "bench/apps/growth_lists.h"
#include "bench/cuda/hand.h"
#include <stdio.h>
#include <string.h>

/* ---- the driver's part of building ------------------------------------------------------------------------------- */

/* gk's own table of the driver's entries, and its contents before. */
static gki_cuda_driver *entries, before;
static double in_driver_ns;

static CUresult timed_instantiate(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
  const double begin = bench_now();
  const CUresult result = before.cuGraphInstantiateWithParams(exec, graph, parameters);
  in_driver_ns += bench_now() - begin;
  return result;
}

static CUresult timed_upload(CUgraphExec exec, CUstream stream) {
  const double begin = bench_now();
  const CUresult result = before.cuGraphUpload(exec, stream);
  in_driver_ns += bench_now() - begin;
  return result;
}

/* No other thread calls gk meanwhile. A graph with conditional nodes can have only one exec at a time, so a second one
 * by hand isn't possible. */
static gk_graph *make_timed(const growth_list *list) {
  memcpy(&entries, &bench_hand_driver, sizeof entries); /* the table is const for callers */
  before = *entries;
  in_driver_ns = 0;
  entries->cuGraphInstantiateWithParams = timed_instantiate;
  entries->cuGraphUpload = timed_upload;
  gk_graph *graph = bench_growth_make(list);
  *entries = before;
  return graph;
}

static bool instantiating(void *with, uint64_t times, bench_took *took) {
  const growth_list *list = with;
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    bench_growth_clear();
    gk_graph *graph = make_timed(list);
    took->all += in_driver_ns / 1000;
    bench_growth_bind(list, graph);
    bench_growth_launch(graph);
    right = in_driver_ns > 0 && bench_growth_is_right(list, graph, 1) && right;
    gk_graph_destroy(graph);
  }
  return right;
}

/* A host-gated list has many graphs, which are made when they are needed. */
static const char *gated(const growth_list *list) {
  static char whys[GROWTH_LISTS][500]; /* one per variant of a table */
  static int asked;
  char *why = whys[asked++ % GROWTH_LISTS];
  gk_graph *graph = bench_growth_make(list);
  const gk_result result = gk_cuda_graph(graph, 0, NULL, NULL);
  if (result != GK_OK) snprintf(why, sizeof *whys, "%s", gk_error());
  gk_graph_destroy(graph);
  return result == GK_OK ? NULL : why;
}

/* ---- the device's memory ----------------------------------------------------------------------------------------- */

/* Drivers allocate in steps of a megabyte or two, so several graphs are made at once. */
enum { COPIES = 32, TASKS = 10000 };
static CUresult (*memory_left)(size_t *left, size_t *all);

static size_t left_now(void) {
  size_t left, all;
  bench_hand_wait();
  HAND(memory_left(&left, &all));
  return left;
}

static bool device_memory(void *with, uint64_t times, bench_took *took) {
  const growth_list *list = with;
  const size_t wanted = TASKS / list->list.task_count, copies = wanted < 1 ? 1 : wanted > COPIES ? COPIES : wanted;
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    gk_graph *graphs[COPIES];
    bench_growth_clear();
    const size_t at_first = left_now();
    for (size_t c = 0; c < copies; ++c) {
      graphs[c] = bench_growth_make(list);
      bench_growth_bind(list, graphs[c]);
      bench_growth_launch(graphs[c]);
    }
    const size_t left = left_now();
    took->all += left < at_first ? (double)(at_first - left) / (double)copies : 0;
    right = bench_growth_is_right(list, graphs[0], copies) && right;
    for (size_t c = 0; c < copies; ++c) gk_graph_destroy(graphs[c]);
  }
  return right;
}

int main(int argc, char **argv) {
  static const growth_question of_cuda[] = {
    {"instantiating", "how much of building does the driver take to instantiate the graph and to upload it?", "us",
     instantiating, false, gated},
    {"device memory", "how much of the device's memory is gone with a graph that was launched?", "bytes",
     device_memory, false, NULL},
  };
  const char *why;
  bench_begin(argc, argv, "cuda_growth");
  bench_growth_begin();
  gk_device *device = bench_hand_open(&why);
  if (!device) return bench_missing(why);
  bench_hand_find("cuMemGetInfo", 3020, &memory_left);
  bench_growth_open(device);
  bench_growth_measure("C13", 1, of_cuda, GK_COUNT(of_cuda));
  bench_growth_close();
  bench_hand_close(device);
  return bench_end();
}
