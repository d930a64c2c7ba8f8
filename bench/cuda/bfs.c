/* A whole application on CUDA (table C11): breadth-first search, by gk's loop with its branches and by the host's, with
 * the same kernels and on the same memory. */
#include "bench/apps/bfs_app.h"
#include "bench/harness/harness.h"
#include "bench/harness/host_loop.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOGETHER = 8, WAYS = 4 };

typedef struct scene {
  gk_device *device;
  bfs_graph g;
  int *seen; /* distances, downloaded */
  gk_graph *graph;
} scene;

typedef struct host_variant {
  scene *s;
  host_loop loop;
  int begin, stretches[BFS_STRETCHES], took[BFS_STRETCHES] /* in all searches */;
} host_variant;

static bool is_right(const scene *s, int k) {
  const size_t bytes = (size_t)s->g.vertices * sizeof *s->seen;
  bench_must(gk_download(s->device, s->seen, gk_bound(s->graph, DIST), bytes));
  return memcmp(s->seen, s->g.distances[k], bytes) == 0;
}

/* Each search has another source than the one before, so that old distances aren't right by chance. */
static bool from_all(scene *s, void (*search)(void *, int source), void *with, uint64_t times, bench_took *took) {
  bool right = true;
  for (uint64_t time = 0; time < times; ++time)
    for (int k = 0; k < BFS_SOURCES; ++k) {
      const double begin = bench_now();
      search(with, s->g.sources[k]);
      took->all += (bench_now() - begin) * 1e-6 / BFS_SOURCES;
      right = is_right(s, k) && right;
    }
  return right;
}

static void search_by_gk(void *with, int source) {
  const scene *s = with;
  bench_must(gk_bind_int(s->graph, SOURCE, source));
  bench_must(gk_launch(s->graph, 0));
  bench_must(gk_wait(s->graph, NULL));
}

static bool by_gk(void *with, uint64_t times, bench_took *took) {
  return from_all(with, search_by_gk, with, times, took);
}

static const void *next_of(const scene *s) { return (const char *)gk_bound(s->graph, SEARCH) + bench_bfs_next; }

static void search_by_host(void *with, int source) {
  host_variant *v = with;
  const void *next = next_of(v->s);
  bench_host_bind_int(&v->loop, SOURCE, source);
  bench_host_run(&v->loop, v->begin);
  int what = BFS_PUSH;
  do {
    ++v->took[what];
    bench_host_run(&v->loop, v->stretches[what]);
    what = bench_host_read(&v->loop, next);
  } while (what != BFS_END);
}

static bool by_host(void *with, uint64_t times, bench_took *took) {
  return from_all(((host_variant *)with)->s, search_by_host, with, times, took);
}

/* Only pushes, since the host doesn't read after each level. An extra push finds nothing. */
static void search_by_pushes(void *with, int source) {
  host_variant *v = with;
  const void *next = next_of(v->s);
  bench_host_bind_int(&v->loop, SOURCE, source);
  bench_host_run(&v->loop, v->begin);
  do {
    for (int k = 0; k < TOGETHER; ++k) bench_host_run(&v->loop, v->stretches[BFS_PUSH]);
  } while (bench_host_read(&v->loop, next) != BFS_END);
}

static bool by_pushes(void *with, uint64_t times, bench_took *took) {
  return from_all(((host_variant *)with)->s, search_by_pushes, with, times, took);
}

static void begin_host(host_variant *v, scene *s, host_way way) {
  *v = (host_variant){.s = s};
  bench_host_begin(&v->loop, s->device, way);
  v->begin = bench_host_add(&v->loop, &bench_bfs_begin);
  for (int k = BFS_PUSH; k < BFS_STRETCHES; ++k)
    v->stretches[k] = bench_host_add(&v->loop, &bench_bfs_stretches[k]);
  bench_host_share(&v->loop, s->graph);
  bfs_number numbers[BFS_NUMBERS];
  bench_bfs_numbers(&s->g, s->g.edges, 0, numbers);
  for (int k = 0; k < BFS_NUMBERS; ++k) bench_host_bind_int(&v->loop, numbers[k].slot, numbers[k].value);
}

static void begin_gk(scene *s) {
  bench_must(gk_graph_create(s->device, &bench_bfs_wide_list, 0, &s->graph));
  bench_bfs_bind(s->device, s->graph, &s->g);
  bfs_number numbers[BFS_NUMBERS];
  bench_bfs_numbers(&s->g, s->g.edges, 0, numbers);
  for (int k = 0; k < BFS_NUMBERS; ++k) bench_must(gk_bind_int(s->graph, numbers[k].slot, numbers[k].value));
  s->seen = bench_alloc((size_t)s->g.vertices, sizeof *s->seen);
}

/* Counts pushed and pulled levels of all sources, and checks the host's results.
 * @return The mean number of kernels of a search, one after the other */
static double look(host_variant *v, int *pushed, int *pulled) {
  bench_took ignored = {0};
  if (!by_host(v, 1, &ignored)) bench_fail("the host's loop doesn't find the distances");
  *pushed = v->took[BFS_PUSH] + v->took[BFS_GATHER];
  *pulled = v->took[BFS_PULL];
  if (bench_is_quick() && !(v->took[BFS_PUSH] && v->took[BFS_GATHER] && v->took[BFS_PULL]))
    bench_fail("a small graph is to need every stage");
  return 2 + (double)(2 * v->took[BFS_PUSH] + 3 * v->took[BFS_GATHER] + 3 * v->took[BFS_PULL]) / BFS_SOURCES;
}

static void search(gk_device *device, const char *name, void (*make)(bfs_graph *, const int *), const int *size,
                   int tries) {
  static scene s;
  static host_variant variants[WAYS];
  char what[80], question[160];
  snprintf(what, sizeof what, "breadth-first search, %s", name);
  if (!bench_wants("C11", what)) return;
  s = (scene){.device = device};
  make(&s.g, size);
  begin_gk(&s);
  static const host_way ways[WAYS] = {HOST_GRAPHS, HOST_POLLED, HOST_GRAPHS, HOST_KERNELS};
  for (int k = 0; k < WAYS; ++k) begin_host(&variants[k], &s, ways[k]);
  int pushed, pulled;
  const double chain = look(&variants[0], &pushed, &pulled);
  snprintf(question, sizeof question,
           "%d vertices, %d neighbours in all; about %d levels are pushed and %d pulled: should the host decide?",
           s.g.vertices, s.g.edges, pushed / BFS_SOURCES, pulled / BFS_SOURCES);
  const char *graph = "host loop: launch a graph, copy 4 bytes, wait",
             *polled = "host loop: launch a graph, poll pinned memory",
             *pushes = "host loop: pushes, copy and wait every 8",
             *kernels = "host loop: launch each kernel, copy 4 bytes, wait";
  bench_measure(&(bench_table){.id = "C11", .what = what, .question = question, .unit = "ms", .tries = tries,
    .variants = {{.name = "gk", .run = by_gk, .with = &s}, {.name = graph, .run = by_host, .with = &variants[0]},
                 {.name = polled, .run = by_host, .with = &variants[1]},
                 {.name = pushes, .run = by_pushes, .with = &variants[2]},
                 {.name = kernels, .run = by_host, .with = &variants[3]}},
    .ratios = {{"gk against the host's loop", "gk", {graph}, 0.5}, {"gk against polling", "gk", {polled}, 0},
               {"gk against pushes alone", "gk", {pushes}, 0}, {"gk against single kernels", "gk", {kernels}, 0}},
    .floor = {HAND_EDGE, chain}});
  for (int k = 0; k < WAYS; ++k) bench_host_end(&variants[k].loop);
  gk_graph_destroy(s.graph);
  free(s.seen);
}

static void rmat(bfs_graph *g, const int *scale) { bench_bfs_make_rmat(g, *scale); }
static void mesh(bfs_graph *g, const int *sides) { bench_bfs_make_mesh(g, sides[0], sides[1], sides[2]); }

int main(int argc, char **argv) {
  const char *why;
  bench_begin(argc, argv, "cuda_bfs");
  gk_device *device = bench_hand_open(&why);
  if (!device) return bench_missing(why);
  if (bench_is_quick()) {
    search(device, "R-MAT of scale 8", rmat, (int[]){8}, 1);
    search(device, "a mesh of 12 x 8", mesh, (int[]){12, 8, 1}, 1);
  } else {
    search(device, "R-MAT of scale 16", rmat, (int[]){16}, 2);
    search(device, "R-MAT of scale 20", rmat, (int[]){20}, 2);
    search(device, "a mesh of 1,024 x 1,024", mesh, (int[]){1024, 1024, 1}, 1);
    search(device, "a mesh of 128 x 128 x 128", mesh, (int[]){128, 128, 128}, 1);
  }
  bench_hand_close(device);
  return bench_end();
}
