/* A whole application (table F3): breadth-first search, by gk's loop with its branches and by hand with OpenMP. All
 * must find the distances that a queue finds. */
#include "bench/apps/bfs_app.h"
#include "bench/apps/bfs_hand.h"
#include "bench/harness/apart.h"
#include "bench/harness/cpu_floor.h"
#include "bench/harness/host_loop.h"
#include "bench/harness/must.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_right(const bfs_graph *g, int k, const int *distances) {
  return memcmp(distances, g->distances[k], (size_t)g->vertices * sizeof *distances) == 0;
}

/* ---- by gk ------------------------------------------------------------------------------------------------------- */

typedef struct graph_variant {
  const bfs_graph *g;
  gk_device *device;
  gk_graph *graph;
  host_loop loop; /* on the same memory */
  int begin, stretches[BFS_STRETCHES], took[BFS_STRETCHES] /* of the last search */;
} graph_variant;

static void begin_gk(graph_variant *v, const bfs_graph *g) {
  bfs_number numbers[BFS_NUMBERS];
  v->g = g;
  bench_must(gk_device_open(&(gk_device_desc){.backend = "openmp"}, &v->device));
  bench_must(gk_graph_create(v->device, &bench_bfs_list, 0, &v->graph));
  bench_bfs_bind(v->device, v->graph, g);
  bench_host_begin(&v->loop, v->device, HOST_GRAPHS);
  v->begin = bench_host_add(&v->loop, &bench_bfs_begin);
  for (int k = BFS_PUSH; k < BFS_STRETCHES; ++k)
    v->stretches[k] = bench_host_add(&v->loop, &bench_bfs_stretches[k]);
  bench_host_share(&v->loop, v->graph);
  bench_bfs_numbers(g, bench_cpu_threads(), BFS_FEW, numbers);
  for (int k = 0; k < BFS_NUMBERS; ++k) {
    bench_must(gk_bind_int(v->graph, numbers[k].slot, numbers[k].value));
    bench_host_bind_int(&v->loop, numbers[k].slot, numbers[k].value);
  }
}

static void end_gk(graph_variant *v) {
  bench_host_end(&v->loop);
  gk_graph_destroy(v->graph);
  gk_device_close(v->device);
}

static const int *search_by_gk(void *with, int source) {
  const graph_variant *v = with;
  bench_must(gk_bind_int(v->graph, SOURCE, source));
  bench_must(gk_launch(v->graph, 0));
  bench_must(gk_wait(v->graph, NULL));
  return gk_bound(v->graph, DIST);
}

static const int *search_by_host(void *with, int source) {
  graph_variant *v = with;
  const void *next = (const char *)gk_bound(v->graph, SEARCH) + bench_bfs_next;
  memset(v->took, 0, sizeof v->took);
  bench_host_bind_int(&v->loop, SOURCE, source);
  bench_host_run(&v->loop, v->begin);
  int what = BFS_ALONE; /* the first level is its source */
  do {
    ++v->took[what];
    bench_host_run(&v->loop, v->stretches[what]);
    what = bench_host_read(&v->loop, next);
  } while (what != BFS_END);
  return gk_bound(v->graph, DIST);
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

typedef struct hand_variant {
  const bfs_graph *g;
  const int *(*search)(bfs_hand *, int);
  bfs_hand *h;
} hand_variant;

static const int *search_by_hand(void *with, int source) {
  hand_variant *v = with;
  return v->search(v->h, source);
}

/* One thread, in gk's process. */
typedef struct queue_variant {
  bfs_graph g;
  int *distances, *queue;
} queue_variant;

static void begin_queue(queue_variant *v, const bfs_graph *g) {
  v->distances = bench_large((size_t)g->vertices * sizeof *v->distances);
  v->queue = bench_large((size_t)g->vertices * sizeof *v->queue);
  bench_bfs_copy(g, &v->g);
}

static void end_queue(queue_variant *v) {
  free(v->g.first);
  free(v->g.to);
  free(v->distances);
  free(v->queue);
}

static const int *search_by_queue(void *with, int source) {
  queue_variant *v = with;
  bench_bfs_by_queue(&v->g, source, v->distances, v->queue);
  return v->distances;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Each search has another source than the one before, so that old distances aren't right by chance. */
static bool from_all(const bfs_graph *g, const int *(*search)(void *, int), void *with, uint64_t times,
                     bench_took *took) {
  bool right = true;
  for (uint64_t time = 0; time < times; ++time)
    for (int k = 0; k < BFS_SOURCES; ++k) {
      const double begin = bench_now();
      const int *distances = search(with, g->sources[k]);
      took->all += (bench_now() - begin) * 1e-6 / BFS_SOURCES;
      right = is_right(g, k, distances) && right;
    }
  return right;
}

static bool run_gk(void *with, uint64_t times, bench_took *took) {
  return from_all(((graph_variant *)with)->g, search_by_gk, with, times, took);
}

static bool run_host(void *with, uint64_t times, bench_took *took) {
  return from_all(((graph_variant *)with)->g, search_by_host, with, times, took);
}

static bool run_queue(void *with, uint64_t times, bench_took *took) {
  return from_all(&((queue_variant *)with)->g, search_by_queue, with, times, took);
}

/* In a process of its own. */
static bool run_hand(void *with, uint64_t times, bench_took *took) {
  hand_variant *v = with;
  if (!v->h) v->h = bench_bfs_hand_begin(v->g);
  return from_all(v->g, search_by_hand, v, times, took);
}

enum { HANDS = 3 }; /* processes by hand; the last repeats another one, which shows the precision */

static void search(const char *name, void (*make)(bfs_graph *, const int *), const int *size, int tries) {
  static graph_variant by_gk;
  queue_variant alone;
  char what[80], question[200];
  snprintf(what, sizeof what, "breadth-first search, %s", name);
  if (!bench_wants("F3", what)) return;
  bfs_graph *g = bench_shared(sizeof *g);
  make(g, size);
  hand_variant with[HANDS] = {{.g = g, .search = bench_bfs_hand_loops}, {.g = g, .search = bench_bfs_hand_region},
                              {.g = g, .search = bench_bfs_hand_region}};
  bench_apart by_hand[HANDS];
  for (int k = 0; k < HANDS; ++k) by_hand[k] = bench_start_apart(run_hand, &with[k]);
  begin_gk(&by_gk, g);
  begin_queue(&alone, g);
  search_by_host(&by_gk, g->sources[0]);
  const int pushed = by_gk.took[BFS_PUSH] + by_gk.took[BFS_GATHER], pulled = by_gk.took[BFS_PULL];
  const int levels = *(const int *)((const char *)gk_bound(by_gk.graph, SEARCH) + bench_bfs_level);
  snprintf(question, sizeof question,
           "%d vertices, %d neighbours in all; levels: %d by one thread, %d pushed, %d pulled: the graph, and by hand",
           g->vertices, g->edges, levels - pushed - pulled, pushed, pulled);
  const char *loops = "by hand, a region per loop", *region = "by hand, one region for all",
             *again = "by hand, one region, once more",
             *queue = "one thread, a queue", *host = "gk, the same tasks in a loop of the host's";
  bench_measure(&(bench_table){.id = "F3", .what = what, .question = question, .unit = "ms", .tries = tries,
    .variants = {{.name = "gk", .run = run_gk, .with = &by_gk, .idle_ms = BENCH_IDLE_MS},
                 {.name = loops, .run = bench_run_apart, .with = &by_hand[0], .idle_ms = BENCH_IDLE_MS},
                 {.name = region, .run = bench_run_apart, .with = &by_hand[1], .idle_ms = BENCH_IDLE_MS},
                 {.name = again, .run = bench_run_apart, .with = &by_hand[2], .idle_ms = BENCH_IDLE_MS},
                 {.name = queue, .run = run_queue, .with = &alone},
                 {.name = host, .run = run_host, .with = &by_gk, .idle_ms = BENCH_IDLE_MS}},
    .ratios = {{.what = "gk against the better by hand", .of = "gk", .against = {loops, region, queue}, .goal = 1.02},
               {.what = "by hand once more against itself", .of = again, .against = {region}},
               {.what = "by hand once more against the better by hand", .of = again, .against = {loops, region, queue}},
               {.what = "gk against one thread", .of = "gk", .against = {queue}},
               {.what = "gk against a loop of the host's", .of = "gk", .against = {host}}}});
  end_gk(&by_gk);
  end_queue(&alone);
  for (int k = 0; k < HANDS; ++k) bench_end_apart(&by_hand[k]);
}

static void rmat(bfs_graph *g, const int *scale) { bench_bfs_make_rmat(g, *scale); }
static void mesh(bfs_graph *g, const int *sides) { bench_bfs_make_mesh(g, sides[0], sides[1], sides[2]); }

int main(int argc, char **argv) {
  bench_begin(argc, argv, "bfs");
  bench_cpu_floor();
  if (bench_is_quick()) {
    search("R-MAT of scale 10", rmat, (int[]){10}, 1);
    search("a mesh of 24 x 16", mesh, (int[]){24, 16, 1}, 1);
  } else {
    search("R-MAT of scale 18", rmat, (int[]){18}, 2);
    search("a mesh of 512 x 512", mesh, (int[]){512, 512, 1}, 1);
    search("a mesh of 64 x 64 x 64", mesh, (int[]){64, 64, 64}, 1);
  }
  return bench_end();
}
