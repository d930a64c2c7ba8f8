/* A whole application on CUDA (table C11): conjugate gradients on the seven-point Poisson matrix of a cube, by gk's
 * loop and by one on the host, with the same kernels and on the same memory. */
#include "bench/apps/solver_app.h"
#include "bench/harness/harness.h"
#include "bench/harness/host_loop.h"
#include <stdio.h>
#include <stdlib.h>

enum { TOGETHER = 8, WAYS = 4 };

typedef struct scene {
  gk_device *device;
  cube c;
  double *seen; /* the solution, downloaded */
  gk_graph *graph;
} scene;

typedef struct host_variant {
  scene *s;
  host_loop loop;
  int together; /* passes between two reads of the host */
} host_variant;

/* Overwrites the solution of the variant before. */
static void spoil(const scene *s) {
  HAND(bench_hand_driver->cuMemsetD8Async((CUdeviceptr)(uintptr_t)gk_bound(s->graph, U), 0xff,
                                          (size_t)s->c.items * sizeof(double), bench_hand_stream));
  bench_hand_wait();
}

static bool is_right(const scene *s) {
  bench_must(gk_download(s->device, s->seen, gk_bound(s->graph, U), (size_t)s->c.items * sizeof(double)));
  return bench_solver_is_done(&s->c, s->seen);
}

static bool by_gk(void *with, uint64_t times, bench_took *took) {
  scene *s = with;
  const gk_status *status = NULL;
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    spoil(s);
    const double begin = bench_now();
    bench_must(gk_launch(s->graph, 0));
    bench_must(gk_wait(s->graph, &status));
    took->all += (bench_now() - begin) * 1e-6;
    right = is_right(s) && right;
  }
  s->c.passes = (int)status->loops[0].passes;
  return right;
}

static bool by_host(void *with, uint64_t times, bench_took *took) {
  host_variant *v = with;
  const scene *s = v->s;
  const void *again = gk_bound(s->graph, AGAIN);
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    spoil(s);
    const double begin = bench_now();
    bench_host_run(&v->loop, 0);
    do {
      for (int pass = 0; pass < v->together; ++pass) bench_host_run(&v->loop, 1);
    } while (bench_host_read(&v->loop, again));
    took->all += (bench_now() - begin) * 1e-6;
    right = is_right(s) && right;
  }
  return right;
}

static void begin_scene(scene *s, gk_device *device, int side) {
  *s = (scene){.device = device};
  bench_solver_cube(&s->c, side);
  s->seen = bench_alloc((size_t)s->c.items, sizeof *s->seen);
  bench_must(gk_graph_create(device, &bench_solver_list, 0, &s->graph));
  for (gk_slot slot = U; slot <= B; ++slot) bench_must(gk_resize(s->graph, slot, (size_t)s->c.items));
  bench_must(gk_bind_int(s->graph, ITEMS, s->c.items));
  bench_must(gk_bind_int(s->graph, SIDE, side));
  bench_must(gk_upload(device, gk_bound(s->graph, B), s->c.b, (size_t)s->c.items * sizeof *s->c.b));
}

static void begin_host(host_variant *v, scene *s, host_way way, int together) {
  v->s = s;
  v->together = together;
  bench_host_begin(&v->loop, s->device, way);
  bench_host_add(&v->loop, &bench_solver_begin);
  bench_host_add(&v->loop, &bench_solver_pass);
  bench_host_share(&v->loop, s->graph);
  bench_host_bind_int(&v->loop, ITEMS, s->c.items);
  bench_host_bind_int(&v->loop, SIDE, s->c.side);
}

static void end_scene(scene *s) {
  gk_graph_destroy(s->graph);
  free(s->seen);
}

static void solve(gk_device *device, int side) {
  static scene s;
  static host_variant variants[WAYS];
  char what[60], question[120];
  snprintf(what, sizeof what, "conjugate gradients, %d unknowns", side * side * side);
  if (!bench_wants("C11", what)) return;
  begin_scene(&s, device, side);
  begin_host(&variants[0], &s, HOST_GRAPHS, 1);
  begin_host(&variants[1], &s, HOST_POLLED, 1);
  begin_host(&variants[2], &s, HOST_GRAPHS, TOGETHER);
  begin_host(&variants[3], &s, HOST_KERNELS, 1);
  bench_took ignored = {0};
  if (!by_gk(&s, 1, &ignored)) bench_fail("gk's solution isn't the one that is known");
  snprintf(question, sizeof question, "a solution in about %d passes of four tasks: whose loop?", s.c.passes);
  const char *graph = "host loop: launch a graph, copy 4 bytes, wait",
             *polled = "host loop: launch a graph, poll pinned memory",
             *eighth = "host loop: launch 8 graphs, copy 4 bytes, wait",
             *kernels = "host loop: launch each kernel, copy 4 bytes, wait";
  bench_measure(&(bench_table){.id = "C11", .what = what, .question = question, .unit = "ms", .tries = 2,
    .variants = {{.name = "gk", .run = by_gk, .with = &s}, {.name = graph, .run = by_host, .with = &variants[0]},
                 {.name = polled, .run = by_host, .with = &variants[1]},
                 {.name = eighth, .run = by_host, .with = &variants[2]},
                 {.name = kernels, .run = by_host, .with = &variants[3]}},
    .ratios = {{"gk against the host's loop", "gk", {graph}, 0.5}, {"gk against polling", "gk", {polled}, 0},
               {"gk against looking every 8", "gk", {eighth}, 0}, {"gk against single kernels", "gk", {kernels}, 0}},
    .floor = {HAND_EDGE, 4.0 * s.c.passes}});
  for (int k = 0; k < WAYS; ++k) bench_host_end(&variants[k].loop);
  end_scene(&s);
}

int main(int argc, char **argv) {
  const char *why;
  bench_begin(argc, argv, "cuda_solver");
  gk_device *device = bench_hand_open(&why);
  if (!device) return bench_missing(why);
  if (bench_is_quick()) {
    solve(device, 8);
  } else {
    solve(device, 32);
    solve(device, 64);
    solve(device, 128);
  }
  bench_hand_close(device);
  return bench_end();
}
