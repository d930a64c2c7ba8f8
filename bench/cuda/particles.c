/* A whole application on CUDA (table C11): some time steps of soft spheres that are driven together, by gk's loop and
 * by one on the host, with the same kernels and on the same memory. Lists of neighbours are made again when a sphere
 * has moved too far, and grow when one is too long. Both end with the same bits. */
#include "bench/apps/particles_app.h"
#include "bench/harness/harness.h"
#include "bench/harness/host_loop.h"
#include <stdio.h>
#include <stdlib.h>

enum { WAYS = 3 };

typedef struct scene {
  particles p;
  int steps;
  particles_moment before, after;
  vec *seen; /* downloaded */
} scene;

typedef struct host_variant {
  scene *s;
  host_loop loop;
  gk_slot neighbour, room;
  const void *stale, *overflow, *wanted; /* on the device */
} host_variant;

static bool same_vectors(const scene *s, const vec *got, const vec *want) {
  const size_t bytes = (size_t)s->p.s.n * sizeof *want;
  bench_must(gk_download(s->p.device, s->seen, got, bytes));
  return memcmp(s->seen, want, bytes) == 0;
}

/* No device promises the order of an energy's sum. */
static bool is_right(const scene *s) {
  const particles_moment got = bench_particles_look(&s->p), *want = &s->after;
  return same_vectors(s, got.x, want->x) && same_vectors(s, got.v, want->v) &&
         same_vectors(s, got.force, want->force) && got.room == want->room && got.yields == want->yields &&
         got.searches == want->searches && fabs(got.energy - want->energy) < 1e-10 * want->energy &&
         bench_particles_are_conserved(&s->p.s, &s->before, &got);
}

static bool by_gk(void *with, uint64_t times, bench_took *took) {
  scene *s = with;
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    bench_particles_restore(&s->p, &s->before);
    const double begin = bench_now();
    bench_particles_run(&s->p, s->steps);
    took->all += (bench_now() - begin) * 1e-6;
    right = is_right(s) && right;
  }
  return right;
}

static void bind_lists(host_variant *v) {
  const particles *p = &v->s->p;
  bench_host_bind(&v->loop, v->neighbour, gk_bound(p->graph, v->neighbour));
  bench_host_bind_int(&v->loop, v->room, p->room);
}

static void search(host_variant *v) {
  bench_host_run(&v->loop, PARTICLES_SEARCH);
  while (bench_host_read(&v->loop, v->overflow)) {
    bench_particles_grow(&v->s->p, bench_host_read(&v->loop, v->wanted));
    bind_lists(v);
    bench_host_run(&v->loop, PARTICLES_AGAIN);
  }
}

static void run_steps(host_variant *v) {
  bench_host_run(&v->loop, PARTICLES_FIRST);
  for (int step = 1;; ++step) {
    if (bench_host_read(&v->loop, v->stale)) search(v);
    if (step == v->s->steps) break;
    bench_host_run(&v->loop, PARTICLES_STEP);
  }
  bench_host_run(&v->loop, PARTICLES_LAST);
  bench_host_wait(&v->loop);
}

/* The first launch after a bind is slower, and isn't timed here: each stretch is launched once after the binds. */
static void restore(host_variant *v) {
  bench_particles_restore(&v->s->p, &v->s->before);
  bind_lists(v);
  for (int k = 0; k < PARTICLES_STRETCHES; ++k) bench_host_run(&v->loop, k);
  bench_host_wait(&v->loop);
  bench_particles_restore(&v->s->p, &v->s->before);
}

static bool by_host(void *with, uint64_t times, bench_took *took) {
  host_variant *v = with;
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    restore(v);
    const double begin = bench_now();
    run_steps(v);
    took->all += (bench_now() - begin) * 1e-6;
    right = is_right(v->s) && right;
  }
  return right;
}

/* ---- scenes ------------------------------------------------------------------------------------------------------ */

static const void *memory_of(const scene *s, const char *slot) {
  return gk_bound(s->p.graph, gk_find_slot(s->p.graph, slot));
}

static void begin_host(host_variant *v, scene *s, host_way way) {
  v->s = s;
  v->neighbour = gk_find_slot(s->p.graph, "NEIGHBOUR");
  v->room = gk_find_slot(s->p.graph, "ROOM");
  v->stale = memory_of(s, "STALE");
  v->overflow = memory_of(s, "OVERFLOW");
  v->wanted = memory_of(s, "WANTED");
  bench_host_begin(&v->loop, s->p.device, way);
  for (int k = 0; k < PARTICLES_STRETCHES; ++k) {
    bench_host_add(&v->loop, &bench_particles_stretches[k]);
    bench_particles_bind(v->loop.stretches[k].graph, &s->p.s);
  }
  bench_host_share(&v->loop, s->p.graph);
}

static void measure_spheres(gk_device *device, int along, int lead, int steps) {
  static scene s;
  static host_variant variants[WAYS];
  char what[60], question[200];
  snprintf(what, sizeof what, "particles, %d", along * along * along);
  if (!bench_wants("C11", what)) return;
  const setting constants = bench_particles_setting(along, true);
  s = (scene){.steps = steps, .seen = bench_alloc((size_t)constants.n, sizeof *s.seen)};
  bench_particles_moment(&s.before, &constants);
  bench_particles_moment(&s.after, &constants);
  bench_particles_prepare(&s.p, device, &constants, lead, steps, &s.before, &s.after);
  static const host_way ways[WAYS] = {HOST_GRAPHS, HOST_POLLED, HOST_KERNELS};
  for (int k = 0; k < WAYS; ++k) begin_host(&variants[k], &s, ways[k]);
  snprintf(question, sizeof question, "%d steps of soft spheres (%d searches for neighbours, %d yields): whose loop?",
           steps, s.after.searches, s.after.yields);
  const double chain = 2.0 * steps + 10.0 * s.after.searches + 3.0 * s.after.yields; /* of kernels */
  const char *graph = "host loop: launch a graph, copy 4 bytes, wait",
             *polled = "host loop: launch a graph, poll pinned memory",
             *kernels = "host loop: launch each kernel, copy 4 bytes, wait";
  bench_measure(&(bench_table){.id = "C11", .what = what, .question = question, .unit = "ms", .tries = 2,
    .variants = {{.name = "gk", .run = by_gk, .with = &s}, {.name = graph, .run = by_host, .with = &variants[0]},
                 {.name = polled, .run = by_host, .with = &variants[1]},
                 {.name = kernels, .run = by_host, .with = &variants[2]}},
    .ratios = {{"gk against the host's loop", "gk", {graph}, 0.5}, {"gk against polling", "gk", {polled}, 0},
               {"gk against single kernels", "gk", {kernels}, 0}},
    .floor = {HAND_EDGE, chain}});
  for (int k = 0; k < WAYS; ++k) bench_host_end(&variants[k].loop);
  bench_particles_end(&s.p);
  free(s.seen);
}

int main(int argc, char **argv) {
  const char *why;
  bench_begin(argc, argv, "cuda_particles");
  gk_device *device = bench_hand_open(&why);
  if (!device) return bench_missing(why);
  if (bench_is_quick()) {
    measure_spheres(device, 8, 20, 20);
  } else {
    measure_spheres(device, 16, 20, 40);
    measure_spheres(device, 32, 20, 40);
    measure_spheres(device, 64, 20, 40);
    measure_spheres(device, 96, 20, 20);
  }
  bench_hand_close(device);
  return bench_end();
}
