/* A whole application (table F3): some time steps of the soft body's fall, by gk's graph and by hand with OpenMP. All
 * arms start from the same moment, do the same passes of the same loops, and must come to the same bits. */
#include "apart.h"
#include "gk.h"
#include "softbody_hand.h"
#include "step.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define MESH "docs/examples/softbody/spot.obj"
enum { ROOM = 16 /* contacts that fit at first: all buffers grow on the way */ };

/* What a time step depends on, and what came of the last one. */
typedef struct moment {
  v3 *x, *v;
  double *load;
  hand_state state;
  int room;
  double highest;
} moment;

typedef struct scene {
  mesh body;
  world constants;
  simulation by_gk;
  int threads;
  int steps; /* that one repetition takes */
  moment before, after;
} scene; /* in memory that all processes share; by_gk is the first one's alone */

/* In a process of its own. */
typedef struct hand_arm {
  const scene *s;
  hand_style style;
  hand *h; /* NULL: not begun */
} hand_arm;

static void must(gk_result result) {
  if (result != GK_OK) bench_fail(gk_error());
}

static void *room_for(size_t bytes) {
  void *room = malloc(bytes);
  if (!room) bench_fail("out of memory");
  return room;
}

/* ---- meshes ------------------------------------------------------------------------------------------------------ */

/* Each triangle becomes four. Vertices in the middle of an edge come twice; mesh_build joins them. */
static void cut_triangles(obj *file) {
  int vertices = file->vertex_count, triangles = file->triangle_count;
  obj fine = {.vertex_count = vertices + 3 * triangles, .triangle_count = 4 * triangles};
  fine.vertices = room_for((size_t)fine.vertex_count * sizeof *fine.vertices);
  fine.triangles = room_for((size_t)fine.triangle_count * sizeof *fine.triangles);
  memcpy(fine.vertices, file->vertices, (size_t)vertices * sizeof *fine.vertices);
  for (int k = 0; k < triangles; ++k) {
    const int *t = file->triangles[k], first = vertices + 3 * k;
    for (int c = 0; c < 3; ++c)
      fine.vertices[first + c] = v3_scale(0.5, v3_add(file->vertices[t[c]], file->vertices[t[(c + 1) % 3]]));
    const int parts[4][3] = {{t[0], first, first + 2}, {first, t[1], first + 1}, {first + 2, first + 1, t[2]},
                             {first, first + 1, first + 2}};
    memcpy(fine.triangles[4 * k], parts, sizeof parts);
  }
  obj_free(file);
  *file = fine;
}

static void read_mesh(mesh *body, int cuts) {
  const material stuff = {.density = 1.0, .membrane = 1500.0, .bending = 0.004}; /* as the demo */
  obj file = {0};
  complaint why = {""};
  if (!obj_read(MESH, &file, &why)) bench_fail(why.text);
  for (int k = 0; k < cuts; ++k) cut_triangles(&file);
  if (!mesh_build(MESH, &file, &stuff, body, &why)) bench_fail(why.text);
  obj_free(&file);
}

/* ---- moments ----------------------------------------------------------------------------------------------------- */

static void *memory_of(const simulation *s, const char *slot) {
  return gk_bound(s->graph, gk_find_slot(s->graph, slot));
}

static void begin_moment(moment *m, size_t n) {
  m->x = bench_shared(n * sizeof *m->x);
  m->v = bench_shared(n * sizeof *m->v);
  m->load = bench_shared(n * sizeof *m->load);
}

static hand_state state_of(const simulation *s) {
  return (hand_state){.newton = s->newton, .cg = s->cg, .searches = s->searches, .contacts = s->contacts,
                      .growths = s->growths, .touching = s->touching, .energy = s->energy, .kinetic = s->kinetic,
                      .taken = s->taken};
}

static void save(const simulation *s, moment *to) {
  size_t n = (size_t)s->body->vertex_count;
  must(simulation_read(s, to->x, to->v));
  must(gk_download(s->device, to->load, memory_of(s, "LOAD"), n * sizeof *to->load));
  must(gk_download(s->device, &to->highest, memory_of(s, "HIGHEST"), sizeof to->highest));
  to->state = state_of(s);
  to->room = s->room;
}

static void restore(simulation *s, const moment *from) {
  size_t n = (size_t)s->body->vertex_count;
  const hand_state *state = &from->state;
  must(gk_upload(s->device, memory_of(s, "X"), from->x, n * sizeof *from->x));
  must(gk_upload(s->device, memory_of(s, "V"), from->v, n * sizeof *from->v));
  must(gk_upload(s->device, memory_of(s, "LOAD"), from->load, n * sizeof *from->load));
  must(gk_upload(s->device, memory_of(s, "HIGHEST"), &from->highest, sizeof from->highest));
  must(gk_upload(s->device, memory_of(s, "TAKEN"), &state->taken, sizeof state->taken));
  must(gk_upload(s->device, memory_of(s, "TOUCHING"), &state->touching, sizeof state->touching));
  must(gk_upload(s->device, (int *)memory_of(s, "CONTACT_FIRST") + n, &state->contacts, sizeof state->contacts));
  must(gk_resize(s->graph, gk_find_slot(s->graph, "CONTACT_LIST"), (size_t)from->room));
  must(gk_resize(s->graph, gk_find_slot(s->graph, "CONTACT_BONDS"), (size_t)from->room));
  must(gk_bind_int(s->graph, gk_find_slot(s->graph, "ROOM"), from->room));
  s->room = from->room;
  s->newton = state->newton;
  s->cg = state->cg;
  s->searches = state->searches;
  s->growths = state->growths;
}

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

/* ---- arms -------------------------------------------------------------------------------------------------------- */

static bool run_gk(void *with, uint64_t times, bench_took *took) {
  scene *s = with;
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    restore(&s->by_gk, &s->before);
    double begin = bench_now();
    for (int step = 0; step < s->steps; ++step) must(simulation_step(&s->by_gk));
    took->all += (bench_now() - begin) * 1e-6;
    hand_state got = state_of(&s->by_gk);
    right = same(s, memory_of(&s->by_gk, "X"), memory_of(&s->by_gk, "V"), &got) && right;
  }
  return right;
}

static bool run_hand(void *with, uint64_t times, bench_took *took) {
  hand_arm *arm = with;
  const scene *s = arm->s;
  const moment *from = &s->before;
  bool right = true;
  if (!arm->h) arm->h = hand_start(&s->body, &s->constants, s->threads, arm->style);
  if (!arm->h) bench_fail("out of memory");
  for (uint64_t k = 0; k < times; ++k) {
    if (!hand_restore(arm->h, from->x, from->v, from->load, &from->state, from->room, from->highest))
      bench_fail("out of memory");
    double begin = bench_now();
    for (int step = 0; step < s->steps; ++step)
      if (!hand_step(arm->h)) bench_fail("out of memory");
    took->all += (bench_now() - begin) * 1e-6;
    hand_state got = hand_look(arm->h);
    right = same(s, got.x, got.v, &got) && right;
  }
  return right;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Simulates until the moment from which all arms start, and beyond it, for what they have to come to. */
static void begin_scene(scene *s, double drop, int lead) {
  /* gk cuts a sum into at most one piece for each 32 items: with more threads than that, the bits would be others. */
  const gk_device_desc device = {.backend = "openmp", .threads = omp_get_max_threads() > 64 ? 64 : 0};
  must(simulation_start(&s->by_gk, &device, &s->body, &s->constants, drop, v3_of(0.8, 0.3, 0.5), ROOM));
  s->threads = gk_device_describe(s->by_gk.device)->threads;
  for (int k = 0; k < lead; ++k) must(simulation_step(&s->by_gk));
  save(&s->by_gk, &s->before);
  for (int k = 0; k < s->steps; ++k) must(simulation_step(&s->by_gk));
  save(&s->by_gk, &s->after);
}

/* lead: the steps before those that are measured. */
static void measure_scene(const char *what, int cuts, double drop, int lead, int steps, int tries) {
  if (!bench_wants("F3", what)) return;
  scene *s = bench_shared(sizeof *s);
  read_mesh(&s->body, cuts);
  s->constants = simulation_constants(&s->body);
  if (!(s->constants.reach > 0.0)) bench_fail("out of memory");
  s->steps = steps;
  begin_moment(&s->before, (size_t)s->body.vertex_count);
  begin_moment(&s->after, (size_t)s->body.vertex_count);
  hand_arm with[2] = {{.s = s, .style = HAND_LOOPS}, {.s = s, .style = HAND_REGION}};
  bench_apart by_hand[2] = {bench_start_apart(run_hand, &with[0]), bench_start_apart(run_hand, &with[1])};
  begin_scene(s, drop, lead);

  const hand_state *from = &s->before.state, *to = &s->after.state;
  char question[300];
  snprintf(question, sizeof question,
           "%d steps of a body of %d vertices (%d Newton passes, %d solver passes, %d yields): the graph, and by hand",
           steps, s->body.vertex_count, (int)(to->newton - from->newton), (int)(to->cg - from->cg),
           to->growths - from->growths);
  const char *loops = "by hand, a region per loop", *region = "by hand, one region for the step";
  const bench_table table = {
    .id = "F3", .what = what, .question = question, .unit = "ms", .tries = tries,
    .arms = {{.name = "gk", .run = run_gk, .with = s, .most = 1, .settle_ms = 12},
             {.name = loops, .run = bench_run_apart, .with = &by_hand[0], .most = 1, .settle_ms = 12},
             {.name = region, .run = bench_run_apart, .with = &by_hand[1], .most = 1, .settle_ms = 12}},
    .ratios = {{.what = "gk against the better by hand", .of = "gk", .against = {loops, region}, .goal = 1.02}},
  };
  bench_measure(&table);
  for (int k = 0; k < 2; ++k) bench_end_apart(&by_hand[k]);
  simulation_end(&s->by_gk);
  mesh_free(&s->body);
}

int main(int argc, char **argv) {
  bench_begin(argc, argv, "softbody_openmp");
  bool quick = bench_is_quick();
  measure_scene("soft body, impact", 0, 0.1, 16, quick ? 2 : 4, 1);
  measure_scene("soft body, at rest on itself", 0, 0.1, quick ? 20 : 60, 2, 2);
  measure_scene("soft body, a finer mesh", 1, quick ? 0.02 : 0.1, quick ? 1 : 16, 1, 1);
  return bench_end();
}
