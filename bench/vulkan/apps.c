/* Whole applications on Vulkan, by each way of gating (table F5): conjugate gradients and breadth-first search. Their
 * results are compared with the solution that is known, and with the distances that a queue finds. */
#include "bench/vulkan/ways.h"
#ifdef BENCH_vulkan
#include "bench/apps/bfs_app.h"
#include "bench/apps/solver_app.h"
#include "bench/vulkan/by_hand.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What differs between the two. */
typedef struct app {
  const cube *c; /* NULL: the other */
  const bfs_graph *g;
} app;

typedef struct scene {
  app of;
  const vulkan_way *way;
  gk_graph *graph;
  void *seen; /* the result, downloaded */
  uint64_t passes; /* of the last launch */
} scene;

/* ---- both applications ------------------------------------------------------------------------------------------- */

static void begin_solver(scene *s) {
  const cube *c = s->of.c;
  bench_must(gk_graph_create(s->way->device, &bench_solver_list, s->way->bits, &s->graph));
  for (gk_slot slot = U; slot <= B; ++slot) bench_must(gk_resize(s->graph, slot, (size_t)c->items));
  bench_must(gk_bind_int(s->graph, ITEMS, c->items));
  bench_must(gk_bind_int(s->graph, SIDE, c->side));
  bench_must(gk_upload(s->way->device, gk_bound(s->graph, B), c->b, (size_t)c->items * sizeof *c->b));
  s->seen = bench_alloc((size_t)c->items, sizeof(double));
}

static void begin_search(scene *s) {
  bfs_number numbers[BFS_NUMBERS];
  bench_must(gk_graph_create(s->way->device, &bench_bfs_wide_list, s->way->bits, &s->graph));
  bench_bfs_bind(s->way->device, s->graph, s->of.g);
  bench_bfs_numbers(s->of.g, s->of.g->edges, 0, numbers);
  for (int k = 0; k < BFS_NUMBERS; ++k) bench_must(gk_bind_int(s->graph, numbers[k].slot, numbers[k].value));
  s->seen = bench_alloc((size_t)s->of.g->vertices, sizeof(int));
}

static bool is_solved(const scene *s) {
  const cube *c = s->of.c;
  bench_must(gk_download(s->way->device, s->seen, gk_bound(s->graph, U), (size_t)c->items * sizeof(double)));
  return bench_solver_is_done(c, s->seen);
}

static bool is_found(const scene *s, int source) {
  const size_t bytes = (size_t)s->of.g->vertices * sizeof(int);
  bench_must(gk_download(s->way->device, s->seen, gk_bound(s->graph, DIST), bytes));
  return memcmp(s->seen, s->of.g->distances[source], bytes) == 0;
}

/* Overwrites the result of the launch before, and binds the next source. */
static void prepare(const scene *s, int source) {
  const size_t items = s->of.c ? (size_t)s->of.c->items * sizeof(double) : (size_t)s->of.g->vertices * sizeof(int);
  memset(s->seen, 0xff, items);
  bench_must(gk_upload(s->way->device, gk_bound(s->graph, s->of.c ? U : DIST), s->seen, items));
  if (s->of.g) bench_must(gk_bind_int(s->graph, SOURCE, s->of.g->sources[source]));
}

static bool is_right(scene *s, int source, const gk_status *status) {
  s->passes = status->loops[0].passes;
  return s->of.c ? is_solved(s) : is_found(s, source);
}

/* ---- variants ---------------------------------------------------------------------------------------------------- */

static bool run(void *with, uint64_t times, bench_took *took) {
  scene *s = with;
  const int sources = s->of.g ? BFS_SOURCES : 1;
  const gk_status *status;
  bool right = true;
  for (uint64_t k = 0; k < times * (uint64_t)sources; ++k) {
    const int source = (int)(k % (uint64_t)sources);
    prepare(s, source);
    took->all += bench_launch(s->graph, 0, &status) * 1e-6 / sources;
    right = is_right(s, source, status) && right;
  }
  return right;
}

/* Waits per 8 passes. */
static bool wait_often(void *with, uint64_t times, bench_took *took) {
  scene *s = with;
  const gk_status *status;
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    prepare(s, 0);
    const unsigned waits = bench_waits(s->graph, &status);
    right = is_right(s, 0, status) && right;
    took->all += waits * 8.0 / (double)s->passes;
  }
  return right;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static scene scene_of(app of, const vulkan_way *way) {
  scene s = {.of = of, .way = way};
  if (of.c) begin_solver(&s);
  else begin_search(&s);
  return s;
}

static void measure(const char *what, app of, double goal) {
  scene scenes[WAYS];
  char question[120], waits[100];
  vulkan_way gated = {"gk, host-gated", bench_ways[WAY_COUNTED].device, GK_HOST_GATED};
  if (!bench_wants("F5", what)) return;
  for (int way = 0; way < WAYS; ++way) scenes[way] = scene_of(of, &bench_ways[way]);
  scene counted = scene_of(of, &gated);
  bench_took ignored = {0};
  for (int k = 0; k < 3; ++k) /* the number of passes is learned */
    if (!wait_often(&scenes[WAY_COUNTED], 1, &ignored)) bench_fail("the result is wrong");
  snprintf(question, sizeof question, "%u passes: how much do decisions on the device gain?",
           (unsigned)scenes[WAY_COUNTED].passes);
  bench_table table = {.id = "F5", .what = what, .question = question, .unit = "ms", .tries = 2, .turns = 7,
    .ratios = {{"gk against host-gated", "gk", {bench_ways[WAY_HOST].name}, 0},
               {"gk against empty grids", "gk", {bench_ways[WAY_GRID].name}, 0},
               {"gk against guards", "gk", {bench_ways[WAY_GUARD].name}, 0}}};
  for (int way = 0; way < TIMED; ++way)
    table.variants[way] = (bench_variant){.name = bench_ways[way].name, .run = run, .with = &scenes[way]};
  bench_measure(&table);
  snprintf(waits, sizeof waits, "waits in %s", what);
  bench_measure(&(bench_table){"F5", waits, "how often does the host wait for 8 passes?", "waits",
    .variants = {{"gk", wait_often, &scenes[WAY_COUNTED], 1}, {"gk, host-gated", wait_often, &counted, 1}},
    .ratios = {{"waits per 8 passes", "gk", {NULL}, goal}}, .tries = 1, .turns = 7});
  for (int way = 0; way < WAYS; ++way) {
    gk_graph_destroy(scenes[way].graph);
    free(scenes[way].seen);
  }
  gk_graph_destroy(counted.graph);
  free(counted.seen);
}

static void solve(int side) {
  char what[60];
  cube c;
  snprintf(what, sizeof what, "conjugate gradients, %d unknowns", side * side * side);
  bench_solver_cube(&c, side);
  measure(what, (app){.c = &c}, 1);
}

/* An R-MAT graph has too few levels for the goal. */
static void search_rmat(int scale) {
  char what[60];
  bfs_graph g;
  snprintf(what, sizeof what, "breadth-first search, R-MAT of scale %d", scale);
  bench_bfs_make_rmat(&g, scale);
  measure(what, (app){.g = &g}, 0);
}

static void search_mesh(int side) {
  char what[60];
  bfs_graph g;
  snprintf(what, sizeof what, "breadth-first search, a mesh of %d x %d", side, side);
  bench_bfs_make_mesh(&g, side, side, 1);
  measure(what, (app){.g = &g}, 1);
}

int main(int argc, char **argv) {
  const char *why;
  bench_begin(argc, argv, "vulkan_apps");
  if (!bench_ways_open(&why)) return bench_missing(why);
  bench_hand_begin(bench_ways[WAY_GK].device);
  const bool quick = bench_is_quick();
  solve(8);
  if (!quick) solve(24);
  search_rmat(quick ? 8 : 14);
  search_mesh(quick ? 16 : 128);
  bench_hand_end();
  bench_ways_close();
  return bench_end();
}
#else
int main(int argc, char **argv) {
  bench_begin(argc, argv, "vulkan_apps");
  return bench_missing("gk was built without its Vulkan backend");
}
#endif
