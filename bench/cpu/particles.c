/* A whole application (table F3): some time steps of soft spheres that are driven together, by gk's graph and by hand
 * with OpenMP. All variants start from the same moment and must end with the same bits, after the same number of
 * searches and growths of lists. The bits are compared with a run without lists. */
#include "bench/apps/particles_app.h"
#include "bench/apps/particles_hand.h"
#include "bench/harness/apart.h"
#include "bench/harness/cpu_floor.h"
#include "bench/harness/must.h"
#include "gk_info.h"
#include <stdio.h>

typedef struct scene {
  setting s;
  particles by_gk;
  int threads, steps; /* of one repetition */
  particles_moment before, after;
} scene; /* in shared memory; only the first process uses by_gk */

/* In a process of its own. */
typedef struct hand_variant {
  const scene *s;
  spheres_style style;
  spheres *h; /* NULL: not begun */
} hand_variant;

/* An energy is a sum, and each variant adds it up in its own order: only energies may differ in their last bits. */
static bool same(const scene *s, const particles_moment *got) {
  const size_t bytes = (size_t)s->s.n * sizeof(vec);
  const particles_moment *want = &s->after;
  return memcmp(got->x, want->x, bytes) == 0 && memcmp(got->v, want->v, bytes) == 0 &&
         memcmp(got->force, want->force, bytes) == 0 && got->room == want->room && got->yields == want->yields &&
         got->searches == want->searches && fabs(got->energy - want->energy) < 1e-10 * want->energy &&
         bench_particles_are_conserved(&s->s, &s->before, got);
}

static bool run_gk(void *with, uint64_t times, bench_took *took) {
  scene *s = with;
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    bench_particles_restore(&s->by_gk, &s->before);
    const double begin = bench_now();
    bench_particles_run(&s->by_gk, s->steps);
    took->all += (bench_now() - begin) * 1e-6;
    const particles_moment got = bench_particles_look(&s->by_gk);
    right = same(s, &got) && right;
  }
  return right;
}

static bool run_hand(void *with, uint64_t times, bench_took *took) {
  hand_variant *v = with;
  const scene *s = v->s;
  bool right = true;
  if (!v->h) v->h = bench_spheres_start(&s->s, s->threads, v->style);
  for (uint64_t k = 0; k < times; ++k) {
    bench_spheres_restore(v->h, &s->before);
    const double begin = bench_now();
    bench_spheres_run(v->h, s->steps);
    took->all += (bench_now() - begin) * 1e-6;
    const particles_moment got = bench_spheres_look(v->h);
    right = same(s, &got) && right;
  }
  return right;
}

enum { HANDS = 3 }; /* processes by hand; the last repeats another one, which shows the precision */

static void measure_spheres(int along, int lead, int steps, int tries) {
  char what[60], question[200];
  snprintf(what, sizeof what, "particles, %d", along * along * along);
  if (!bench_wants("F3", what)) return;
  scene *s = bench_shared(sizeof *s);
  s->s = bench_particles_setting(along, false);
  s->steps = steps;
  bench_particles_moment(&s->before, &s->s);
  bench_particles_moment(&s->after, &s->s);
  hand_variant with[HANDS] = {{.s = s, .style = SPHERES_LOOPS}, {.s = s, .style = SPHERES_REGION},
                              {.s = s, .style = SPHERES_REGION}};
  bench_apart by_hand[HANDS];
  for (int k = 0; k < HANDS; ++k) by_hand[k] = bench_start_apart(run_hand, &with[k]);
  gk_device *device;
  bench_must(gk_device_open(&(gk_device_desc){.backend = "openmp"}, &device));
  s->threads = gk_device_describe(device)->threads;
  bench_particles_prepare(&s->by_gk, device, &s->s, lead, steps, &s->before, &s->after);

  snprintf(question, sizeof question,
           "%d steps of %d soft spheres (%d searches for neighbours, %d yields): the graph, and by hand", steps, s->s.n,
           s->after.searches, s->after.yields);
  const char *loops = "by hand, a region per loop", *region = "by hand, one region for all",
             *again = "by hand, one region, once more";
  bench_measure(&(bench_table){.id = "F3", .what = what, .question = question, .unit = "ms", .tries = tries,
    .variants = {{.name = "gk", .run = run_gk, .with = s, .idle_ms = BENCH_IDLE_MS},
                 {.name = loops, .run = bench_run_apart, .with = &by_hand[0], .idle_ms = BENCH_IDLE_MS},
                 {.name = region, .run = bench_run_apart, .with = &by_hand[1], .idle_ms = BENCH_IDLE_MS},
                 {.name = again, .run = bench_run_apart, .with = &by_hand[2], .idle_ms = BENCH_IDLE_MS}},
    .ratios = {{.what = "gk against the better by hand", .of = "gk", .against = {loops, region}, .goal = 1.02},
               {.what = "by hand once more against itself", .of = again, .against = {region}},
               {.what = "by hand once more against the better by hand", .of = again, .against = {loops, region}}}});
  for (int k = 0; k < HANDS; ++k) bench_end_apart(&by_hand[k]);
  bench_particles_end(&s->by_gk);
  gk_device_close(device);
}

int main(int argc, char **argv) {
  bench_begin(argc, argv, "particles");
  bench_cpu_floor();
  const bool quick = bench_is_quick();
  measure_spheres(quick ? 8 : 16, 20, quick ? 20 : 40, 2);
  measure_spheres(quick ? 16 : 32, 20, quick ? 10 : 40, 1);
  return bench_end();
}
