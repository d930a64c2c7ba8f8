/* A whole application on CUDA (table C11): a time step of the soft body's fall, by gk's graph and by a loop on the
 * host with the same kernels and on the same memory. All start from the same moment. The device chooses the order
 * of a sum, and hundreds of passes of the solver amplify its last bits, as they do on OpenMP with another number of
 * threads. So the ends are compared to within a millimetre, for a body of one metre. */
#include "bench/apps/softbody_scene.h"
#include "bench/harness/apart.h"
#include "bench/harness/harness.h"
#include "bench/harness/host_loop.h"
#include <stdio.h>

enum { WAYS = 3, FIRST_ROOM = 1 /* contacts; more than that make each call yield */ };
enum { MOST_NEWTON = 60, MOST_SOLVE = 1000, MOST_SEARCH = 30 /* passes, as in step.c */ };

typedef struct scene {
  mesh body;
  simulation by_gk;
  body_moment before, after;
  v3 *seen; /* downloaded */
} scene;

/* The tasks between two decisions. */
enum { PREDICT, CONTACTS, CONTACTS_AGAIN, SOLVE_FIRST, SOLVE_PASS, SEARCH_FIRST, SEARCH_PASS, ACCEPT, FINISH,
       STRETCHES };

typedef struct host_variant {
  scene *s;
  host_loop loop;
  const void *overflow, *solving, *searching, *moving; /* flags */
  const int *contacts;                                 /* their number; all on the device */
} host_variant;

/* ---- the host's loop --------------------------------------------------------------------------------------------- */

static gk_task lines[STRETCHES][HOST_TASKS];
static gk_list stretches[STRETCHES];

static void cut_out(int stretch, const char *name, size_t from, size_t to) {
  const gk_list *step = simulation_list();
  gk_list *list = &stretches[stretch];
  if (!list->name) *list = (gk_list){GK_ABI, name, lines[stretch], 0, step->slots, step->slot_count};
  if (list->task_count + (to - from) > HOST_TASKS) bench_fail("a stretch of the step has too many tasks");
  for (size_t k = from; k < to; ++k) lines[stretch][list->task_count++] = step->tasks[k];
}

static size_t find_op(gk_op op, size_t from) {
  const gk_list *step = simulation_list();
  while (from < step->task_count && step->tasks[from].op != op) ++from;
  if (from == step->task_count) bench_fail("the soft body's step isn't the list that is known here");
  return from;
}

/* The list's order: predict; a loop with a checkpoint, forces, a loop that solves, a loop that searches; the end. */
static void cut_step(void) {
  const size_t newton = find_op(GK_OP_DO_WHILE, 0), contacts = find_op(GK_OP_CHECKPOINT, newton);
  const size_t found = find_op(GK_OP_END, contacts), solve = find_op(GK_OP_DO_WHILE, found);
  const size_t solved = find_op(GK_OP_END, solve), search = find_op(GK_OP_DO_WHILE, solved);
  const size_t searched = find_op(GK_OP_END, search), end = find_op(GK_OP_END, searched + 1);
  if (stretches[PREDICT].name) return;
  cut_out(PREDICT, "predict", 0, newton);
  cut_out(CONTACTS, "contacts", contacts + 1, found);
  cut_out(CONTACTS_AGAIN, "contacts again", found - 1, found); /* they are counted already: only the second half */
  cut_out(SOLVE_FIRST, "first pass of the solver", found + 1, solve);
  cut_out(SOLVE_FIRST, "", solve + 1, solved);
  cut_out(SOLVE_PASS, "pass of the solver", solve + 1, solved);
  cut_out(SEARCH_FIRST, "first passes of the search", solved + 1, search);
  cut_out(SEARCH_FIRST, "", search + 1, searched); /* its energy is the limit of the second, which always follows */
  cut_out(SEARCH_FIRST, "", search + 1, searched);
  cut_out(SEARCH_PASS, "pass of the search", search + 1, searched);
  cut_out(ACCEPT, "accept", searched + 1, end);
  cut_out(FINISH, "finish", end + 1, simulation_list()->task_count);
}

static void make_room(host_variant *v) {
  simulation *s = &v->s->by_gk;
  static const char *const names[] = {"CONTACT_LIST", "CONTACT_BONDS"};
  const int wanted = bench_host_read(&v->loop, v->contacts);
  s->room = wanted + wanted / 2;
  for (size_t k = 0; k < GK_COUNT(names); ++k) {
    const gk_slot slot = gk_find_slot(s->graph, names[k]);
    bench_must(gk_resize(s->graph, slot, (size_t)s->room));
    bench_host_bind(&v->loop, slot, gk_bound(s->graph, slot));
  }
  ++s->growths;
}

/* The results that simulation_step gives its caller. */
static void read_numbers(const host_variant *v) {
  simulation *s = &v->s->by_gk;
  const struct { const char *slot; void *to; size_t bytes; } numbers[] = {
    {"ENERGY", &s->energy, sizeof s->energy}, {"KINETIC", &s->kinetic, sizeof s->kinetic},
    {"TAKEN", &s->taken, sizeof s->taken}, {"MOMENTUM_X", &s->momentum.x, sizeof s->momentum.x},
    {"MOMENTUM_Y", &s->momentum.y, sizeof s->momentum.y}, {"MOMENTUM_Z", &s->momentum.z, sizeof s->momentum.z},
    {"TOUCHING", &s->touching, sizeof s->touching}};
  bench_must(gk_download(s->device, &s->contacts, v->contacts, sizeof s->contacts));
  for (size_t k = 0; k < GK_COUNT(numbers); ++k)
    bench_must(gk_download(s->device, numbers[k].to, bench_scene_memory(s, numbers[k].slot), numbers[k].bytes));
}

static void host_step(host_variant *v) {
  host_loop *loop = &v->loop;
  bench_host_run(loop, PREDICT);
  int newton = 0;
  do {
    bench_host_run(loop, CONTACTS);
    if (bench_host_read(loop, v->overflow)) {
      make_room(v);
      bench_host_run(loop, CONTACTS_AGAIN);
    }
    bench_host_run(loop, SOLVE_FIRST);
    for (int pass = 1; pass < MOST_SOLVE && bench_host_read(loop, v->solving); ++pass)
      bench_host_run(loop, SOLVE_PASS);
    bench_host_run(loop, SEARCH_FIRST);
    for (int pass = 2; pass < MOST_SEARCH && bench_host_read(loop, v->searching); ++pass)
      bench_host_run(loop, SEARCH_PASS);
    bench_host_run(loop, ACCEPT);
  } while (++newton < MOST_NEWTON && bench_host_read(loop, v->moving));
  bench_host_run(loop, FINISH);
  read_numbers(v);
}

static void begin_host(host_variant *v, scene *s, host_way way) {
  const simulation *sim = &s->by_gk;
  v->s = s;
  v->overflow = bench_scene_memory(sim, "OVERFLOW");
  v->solving = bench_scene_memory(sim, "SOLVING");
  v->searching = bench_scene_memory(sim, "SEARCHING");
  v->moving = bench_scene_memory(sim, "MOVING");
  v->contacts = (const int *)bench_scene_memory(sim, "CONTACT_FIRST") + s->body.vertex_count;
  bench_host_begin(&v->loop, sim->device, way);
  cut_step();
  for (int k = 0; k < STRETCHES; ++k) bench_host_add(&v->loop, &stretches[k]);
  bench_host_share(&v->loop, sim->graph);
  bench_host_bind_int(&v->loop, gk_find_slot(sim->graph, "HINGES"), s->body.hinge_count);
  bench_host_bind_bytes(&v->loop, gk_find_slot(sim->graph, "WORLD"), &sim->world, sizeof sim->world);
}

/* ---- variants ---------------------------------------------------------------------------------------------------- */

static bool is_right(const scene *s) {
  const size_t n = (size_t)s->body.vertex_count;
  const hand_state got = bench_scene_state(&s->by_gk), *want = &s->after.state;
  double apart = 0.0;
  bench_must(gk_download(s->by_gk.device, s->seen, bench_scene_memory(&s->by_gk, "X"), n * sizeof *s->seen));
  for (size_t k = 0; k < n; ++k) {
    const double by = v3_length(v3_sub(s->seen[k], s->after.x[k]));
    if (!(by <= apart)) apart = by; /* true for NaN, too */
  }
  const int before = s->before.state.growths;
  return apart < 1e-3 && fabs(got.energy - want->energy) < 1e-3 * fabs(want->energy) &&
         (got.growths > before) == (want->growths > before);
}

static bool by_gk(void *with, uint64_t times, bench_took *took) {
  scene *s = with;
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    bench_scene_restore(&s->by_gk, &s->before);
    const double begin = bench_now();
    bench_must(simulation_step(&s->by_gk));
    took->all += (bench_now() - begin) * 1e-6;
    right = is_right(s) && right;
  }
  return right;
}

static bool by_host(void *with, uint64_t times, bench_took *took) {
  host_variant *v = with;
  scene *s = v->s;
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    bench_scene_restore(&s->by_gk, &s->before);
    for (const char *const *slot = (const char *const[]){"CONTACT_LIST", "CONTACT_BONDS", NULL}; *slot; ++slot)
      bench_host_bind(&v->loop, gk_find_slot(s->by_gk.graph, *slot), bench_scene_memory(&s->by_gk, *slot));
    const double begin = bench_now();
    host_step(v);
    took->all += (bench_now() - begin) * 1e-6;
    right = is_right(s) && right;
  }
  return right;
}

/* ---- scenes ------------------------------------------------------------------------------------------------------ */

/* The device computes the moment before. OpenMP computes the one after, unless that takes too long. */
static void begin_scene(scene *s, gk_device *device, double drop, int lead, bool is_small) {
  const world constants = simulation_constants(&s->body);
  const v3 spin = v3_of(0.8, 0.3, 0.5);
  const gk_device_desc openmp = {.backend = "openmp"};
  const size_t n = (size_t)s->body.vertex_count;
  simulation other;
  CUcontext context;
  if (!(constants.reach > 0.0)) bench_fail("out of memory");
  bench_scene_moment(&s->before, n);
  bench_scene_moment(&s->after, n);
  s->seen = bench_shared(n * sizeof *s->seen);
  bench_must(gk_cuda_context(device, &context, NULL));
  const gk_cuda_sharing sharing = GK_CUDA_SHARE(context, bench_hand_stream);
  const gk_device_desc cuda = {.backend = "cuda", .next = &sharing.base};
  bench_must(simulation_start(&s->by_gk, &cuda, &s->body, &constants, drop, spin, FIRST_ROOM, 0));
  simulation *by = &s->by_gk;
  if (is_small) bench_must(simulation_start(by = &other, &openmp, &s->body, &constants, drop, spin, FIRST_ROOM, 0));
  for (int k = 0; k < lead; ++k) bench_must(simulation_step(by));
  bench_scene_save(by, &s->before);
  s->before.room = FIRST_ROOM;
  bench_scene_restore(by, &s->before);
  bench_must(simulation_step(by));
  bench_scene_save(by, &s->after);
  if (is_small) simulation_end(&other);
}

static void measure_fall(const char *what, mesh body, gk_device *device, double drop, int lead, bool is_small) {
  static scene s;
  static host_variant variants[WAYS];
  char question[200];
  s = (scene){.body = body};
  begin_scene(&s, device, drop, lead, is_small);
  static const host_way ways[WAYS] = {HOST_GRAPHS, HOST_POLLED, HOST_KERNELS};
  for (int k = 0; k < WAYS; ++k) begin_host(&variants[k], &s, ways[k]);
  const hand_state *from = &s.before.state, *to = &s.after.state;
  const double newton = (double)(to->newton - from->newton), cg = (double)(to->cg - from->cg);
  snprintf(question, sizeof question,
           "a step of a body of %d vertices (%.0f Newton passes, %.0f solver passes, %d yields): whose loop?",
           s.body.vertex_count, newton, cg, to->growths - from->growths);
  if (is_small && to->growths == from->growths) bench_fail("the step that is known to yield didn't");
  const double chain = newton * (13 + 2 + 5 + 1 + 2 * 4 + 2) + cg * 5; /* of kernels */
  const char *graph = "host loop: launch a graph, copy 4 bytes, wait",
             *polled = "host loop: launch a graph, poll pinned memory",
             *kernels = "host loop: launch each kernel, copy 4 bytes, wait";
  bench_measure(&(bench_table){.id = "C11", .what = what, .question = question, .unit = "ms", .tries = 1,
    .variants = {{.name = "gk", .run = by_gk, .with = &s, .most = 1},
                 {.name = graph, .run = by_host, .with = &variants[0], .most = 1},
                 {.name = polled, .run = by_host, .with = &variants[1], .most = 1},
                 {.name = kernels, .run = by_host, .with = &variants[2], .most = 1}},
    .ratios = {{"gk against the host's loop", "gk", {graph}, 0.5}, {"gk against polling", "gk", {polled}, 0},
               {"gk against single kernels", "gk", {kernels}, 0}},
    .floor = {HAND_EDGE, chain}});
  for (int k = 0; k < WAYS; ++k) bench_host_end(&variants[k].loop);
  simulation_end(&s.by_gk);
  mesh_free(&s.body);
}

/* Parts into which each edge of the demo's mesh is cut. */
static void measure_spot(gk_device *device, const char *what, int parts, int lead, bool is_small) {
  mesh body;
  if (!bench_wants("C11", what)) return;
  bench_scene_mesh(&body, parts);
  measure_fall(what, body, device, 0.1, lead, is_small);
}

int main(int argc, char **argv) {
  const char *why;
  bench_begin(argc, argv, "cuda_softbody");
  gk_device *device = bench_hand_open(&why);
  if (!device) return bench_missing(why);
  if (bench_is_quick()) {
    mesh body;
    bench_scene_balls(&body);
    measure_fall("soft body, two small balls", body, device, 0.1, 21, true);
  } else {
    enum { FALLING = 6, STRIKING = 16 /* steps before */ };
    measure_spot(device, "soft body, 3k vertices, striking", 1, STRIKING, true);
    measure_spot(device, "soft body, 73k vertices, striking", 5, STRIKING, false);
    measure_spot(device, "soft body, 949k vertices, falling", 18, FALLING, false);
  }
  bench_hand_close(device);
  return bench_end();
}
