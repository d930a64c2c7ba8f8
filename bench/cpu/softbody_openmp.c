/* A whole application (table F3): some time steps of the soft body's fall, by gk's graph and by hand with OpenMP. All
 * variants start from the same moment and must end with the same bits, after the same passes of the same loops. */
#include "bench/apps/softbody_scene.h"
#include "bench/harness/apart.h"
#include "bench/harness/cpu_floor.h"
#include "bench/harness/must.h"
#include "gk_info.h"
#include <omp.h>
#include <stdio.h>

enum { ROOM = 16 /* contacts at first: all buffers grow during the fall */ };

typedef struct scene {
  mesh body;
  world constants;
  simulation by_gk;
  int threads;
  int steps; /* of one repetition */
  body_moment before, after;
} scene; /* in shared memory; only the first process uses by_gk */

/* In a process of its own. */
typedef struct hand_variant {
  const scene *s;
  hand_style style;
  hand *h; /* NULL: not begun */
} hand_variant;

static bool same(const scene *s, const v3 *x, const v3 *v, const hand_state *got) {
  size_t n = (size_t)s->body.vertex_count;
  const hand_state *want = &s->after.state;
  return memcmp(x, s->after.x, n * sizeof *x) == 0 && memcmp(v, s->after.v, n * sizeof *v) == 0 &&
         got->newton == want->newton && got->cg == want->cg && got->searches == want->searches &&
         got->contacts == want->contacts && got->growths == want->growths && got->touching == want->touching &&
         memcmp(&got->energy, &want->energy, sizeof got->energy) == 0 &&
         memcmp(&got->kinetic, &want->kinetic, sizeof got->kinetic) == 0 &&
         memcmp(&got->taken, &want->taken, sizeof got->taken) == 0;
}

/* ---- variants ---------------------------------------------------------------------------------------------------- */

static bool run_gk(void *with, uint64_t times, bench_took *took) {
  scene *s = with;
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    bench_scene_restore(&s->by_gk, &s->before);
    double begin = bench_now();
    for (int step = 0; step < s->steps; ++step) bench_must(simulation_step(&s->by_gk));
    took->all += (bench_now() - begin) * 1e-6;
    hand_state got = bench_scene_state(&s->by_gk);
    right = same(s, bench_scene_memory(&s->by_gk, "X"), bench_scene_memory(&s->by_gk, "V"), &got) && right;
  }
  return right;
}

static bool run_hand(void *with, uint64_t times, bench_took *took) {
  hand_variant *v = with;
  const scene *s = v->s;
  const body_moment *from = &s->before;
  bool right = true;
  if (!v->h) v->h = bench_softbody_start(&s->body, &s->constants, s->threads, v->style);
  for (uint64_t k = 0; k < times; ++k) {
    bench_softbody_restore(v->h, from->x, from->v, from->load, &from->state, from->room, from->highest);
    double begin = bench_now();
    for (int step = 0; step < s->steps; ++step) bench_softbody_step(v->h);
    took->all += (bench_now() - begin) * 1e-6;
    hand_state got = bench_softbody_look(v->h);
    right = same(s, got.x, got.v, &got) && right;
  }
  return right;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Simulates up to the moment at which all variants start, and then to the expected end. */
static void begin_scene(scene *s, double drop, int lead) {
  /* gk cuts a sum into at most one chunk per 32 items: with more threads the bits would differ. */
  const gk_device_desc device = {.backend = "openmp", .threads = bench_cpu_threads() > 64 ? 64 : 0};
  bench_must(simulation_start(&s->by_gk, &device, &s->body, &s->constants, drop, v3_of(0.8, 0.3, 0.5), ROOM, 0));
  s->threads = gk_device_describe(s->by_gk.device)->threads;
  for (int k = 0; k < lead; ++k) bench_must(simulation_step(&s->by_gk));
  bench_scene_save(&s->by_gk, &s->before);
  for (int k = 0; k < s->steps; ++k) bench_must(simulation_step(&s->by_gk));
  bench_scene_save(&s->by_gk, &s->after);
}

enum { HANDS = 3 }; /* processes by hand; the last repeats another one, which shows the precision */

typedef struct fall {
  const char *what;
  int parts;         /* of each edge */
  double drop;       /* metres */
  int lead, steps;   /* time steps before the measured ones, and the measured ones */
  int tries, turns;  /* as in bench_table */
  /* The solver's end, since its loop is nearly the whole step of a fine mesh; 0: the demo's. */
  double residual_share; /* world.cg */
  double enough_factor;  /* world.enough divided by the demo's */
} fall;

static bool begin_body(scene *s, const fall *f) {
  bench_scene_mesh(&s->body, f->parts);
  s->constants = simulation_constants(&s->body);
  s->steps = f->steps;
  if (f->residual_share > 0) {
    s->constants.cg = f->residual_share;
    s->constants.enough *= f->enough_factor;
  }
  bench_scene_moment(&s->before, (size_t)s->body.vertex_count);
  bench_scene_moment(&s->after, (size_t)s->body.vertex_count);
  return s->constants.reach > 0.0;
}

static void measure_fall(const fall *f) {
  if (!bench_wants("F3", f->what)) return;
  scene *s = bench_shared(sizeof *s);
  if (!begin_body(s, f)) bench_fail("out of memory");
  hand_variant with[HANDS] = {{.s = s, .style = HAND_LOOPS}, {.s = s, .style = HAND_REGION},
                              {.s = s, .style = HAND_REGION}};
  bench_apart by_hand[HANDS];
  for (int k = 0; k < HANDS; ++k) by_hand[k] = bench_start_apart(run_hand, &with[k]);
  begin_scene(s, f->drop, f->lead);

  const hand_state *from = &s->before.state, *to = &s->after.state;
  char question[300];
  snprintf(question, sizeof question,
           "%d steps of a body of %d vertices (%d Newton passes, %d solver passes, %d yields%s): the graph, and by "
           "hand",
           s->steps, s->body.vertex_count, (int)(to->newton - from->newton), (int)(to->cg - from->cg),
           to->growths - from->growths,
           f->residual_share > 0 ? "; the solver is content with less than the demo's" : "");
  const char *loops = "by hand, a region per loop", *region = "by hand, one region for the step",
             *again = "by hand, one region, once more";
  const bench_table table = {
    .id = "F3", .what = f->what, .question = question, .unit = "ms", .tries = f->tries, .turns = f->turns,
    .variants = {{.name = "gk", .run = run_gk, .with = s, .most = 1, .idle_ms = BENCH_IDLE_MS},
                 {.name = loops, .run = bench_run_apart, .with = &by_hand[0], .most = 1, .idle_ms = BENCH_IDLE_MS},
                 {.name = region, .run = bench_run_apart, .with = &by_hand[1], .most = 1, .idle_ms = BENCH_IDLE_MS},
                 {.name = again, .run = bench_run_apart, .with = &by_hand[2], .most = 1, .idle_ms = BENCH_IDLE_MS}},
    .ratios = {{.what = "gk against the better by hand", .of = "gk", .against = {loops, region}, .goal = 1.02},
               {.what = "by hand once more against itself", .of = again, .against = {region}},
               {.what = "by hand once more against the better by hand", .of = again, .against = {loops, region}}},
  };
  bench_measure(&table);
  for (int k = 0; k < HANDS; ++k) bench_end_apart(&by_hand[k]);
  simulation_end(&s->by_gk);
  mesh_free(&s->body);
}

int main(int argc, char **argv) {
  static const fall falls[] = {
    {.what = "soft body, impact", .parts = 1, .drop = 0.1, .lead = 16, .steps = 4, .tries = 1},
    {.what = "soft body, at rest on itself", .parts = 1, .drop = 0.1, .lead = 60, .steps = 2, .tries = 2},
    {.what = "soft body, a finer mesh", .parts = 2, .drop = 0.1, .lead = 16, .steps = 1, .tries = 1},
    {.what = "soft body, 73k vertices, striking", .parts = 5, .drop = 0.1, .lead = 15, .steps = 1, .tries = 1,
     .turns = 7, .residual_share = 0.5, .enough_factor = 10},
    {.what = "soft body, 949k vertices, falling", .parts = 18, .drop = 0.1, .lead = 0, .steps = 3, .tries = 1,
     .turns = 7, .residual_share = 0.9, .enough_factor = 1},
  };
  static const fall quick[] = {
    {.what = "soft body, impact", .parts = 1, .drop = 0.1, .lead = 16, .steps = 2, .tries = 1},
    {.what = "soft body, at rest on itself", .parts = 1, .drop = 0.1, .lead = 20, .steps = 2, .tries = 2},
    {.what = "soft body, a finer mesh", .parts = 2, .drop = 0.02, .lead = 1, .steps = 1, .tries = 1},
    {.what = "soft body, less is asked of the solver", .parts = 3, .drop = 0.02, .lead = 1, .steps = 1, .tries = 1,
     .turns = 7, .residual_share = 0.5, .enough_factor = 10},
  };
  bench_begin(argc, argv, "softbody_openmp");
  bench_cpu_floor();
  if (bench_is_quick())
    for (size_t k = 0; k < GK_COUNT(quick); ++k) measure_fall(&quick[k]);
  else
    for (size_t k = 0; k < GK_COUNT(falls); ++k) measure_fall(&falls[k]);
  return bench_end();
}
