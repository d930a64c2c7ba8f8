/* The task list of one implicit Euler step, and the host's part: launching it and making room for contacts. */
#include "softbody.kernel.h"
#include "step.h"
#include <stdlib.h>

enum { FIRST_CELLS = 1024, MOST_CONTACTS = 1 << 29 };

enum slot {
  X = 1, X_OLD, GUESS, V, TRIAL, REST, MASS, LOAD,
  SPRING_FIRST, SPRING_OTHER, SPRINGS, BONDS, STRETCH,
  HINGE_LIST, HINGE_BONDS, TURN, SHARE_FIRST, SHARE_HINGE, SHARE_WEIGHT, BEND,
  CELL_COUNT, CELL_FIRST, CELL_BLOCK, MEMBER,
  CONTACT_COUNT, CONTACT_FIRST, CONTACT_BLOCK, CONTACT_LIST, CONTACT_BONDS, OVERFLOW, PUSH,
  R, ROWS, INVERSE, U, Z, P, Q, RZ, PQ, SUM_X, SUM_Y, SUM_Z, ROW_X, ROW_Y, ROW_Z,
  CONTROL, SOLVING, SEARCHING, MOVING, TRIAL_ENERGY, LARGEST, GAIN,
  ENERGY, KINETIC, MOMENTUM_X, MOMENTUM_Y, MOMENTUM_Z, TOUCHING, KEEP, HIGHEST, TAKEN,
  WORLD, N, HINGES, CELLS, CELL_BLOCKS, BLOCKS, NO_ROOM, ROOM,
};
enum label { CONTACTS = 1, NEWTON, SOLVE, SEARCH };

static const gk_slot_desc slots[] = {
  /* The body: positions now, before and without forces; velocities; positions on trial and at rest; its parts. */
  GK_BUFFER(X, v3), GK_BUFFER(X_OLD, v3), GK_BUFFER(GUESS, v3), GK_BUFFER(V, v3), GK_BUFFER(TRIAL, v3),
  GK_BUFFER(REST, v3), GK_BUFFER(MASS, double), GK_BUFFER(LOAD, double),
  GK_BUFFER(SPRING_FIRST, int), GK_BUFFER(SPRING_OTHER, int), GK_BUFFER(SPRINGS, spring), GK_BUFFER(BONDS, bond),
  GK_BUFFER(STRETCH, term),
  GK_BUFFER(HINGE_LIST, hinge), GK_BUFFER(HINGE_BONDS, bond), GK_BUFFER(TURN, v3), GK_BUFFER(SHARE_FIRST, int),
  GK_BUFFER(SHARE_HINGE, int), GK_BUFFER(SHARE_WEIGHT, double), GK_BUFFER(BEND, term),
  /* The search for contacts. */
  GK_BUFFER(CELL_COUNT, int), GK_BUFFER(CELL_FIRST, int), GK_BUFFER(CELL_BLOCK, int), GK_BUFFER(MEMBER, int),
  GK_BUFFER(CONTACT_COUNT, int), GK_BUFFER(CONTACT_FIRST, int), GK_BUFFER(CONTACT_BLOCK, int),
  GK_BUFFER(CONTACT_LIST, contact), GK_BUFFER(CONTACT_BONDS, bond), GK_OWN(OVERFLOW, int, 1), GK_BUFFER(PUSH, term),
  /* The linear system and its sums. */
  GK_BUFFER(R, v3), GK_BUFFER(ROWS, v3), GK_BUFFER(INVERSE, sym3), GK_BUFFER(U, v3), GK_BUFFER(Z, v3), GK_BUFFER(P, v3),
  GK_BUFFER(Q, v3), GK_OWN(RZ, double, 1), GK_OWN(PQ, double, 1), GK_OWN(SUM_X, double, 1), GK_OWN(SUM_Y, double, 1),
  GK_OWN(SUM_Z, double, 1), GK_OWN(ROW_X, double, 1), GK_OWN(ROW_Y, double, 1), GK_OWN(ROW_Z, double, 1),
  /* The flags and values that decide about the loops. */
  GK_OWN(CONTROL, control, 1), GK_OWN(SOLVING, int, 1), GK_OWN(SEARCHING, int, 1), GK_OWN(MOVING, int, 1),
  GK_OWN(TRIAL_ENERGY, double, 1), GK_OWN(LARGEST, uint, 1), GK_OWN(GAIN, double, 1),
  /* What the host checks. */
  GK_OWN(ENERGY, double, 1), GK_OWN(KINETIC, double, 1), GK_OWN(MOMENTUM_X, double, 1), GK_OWN(MOMENTUM_Y, double, 1),
  GK_OWN(MOMENTUM_Z, double, 1), GK_OWN(TOUCHING, int, 1), GK_OWN(KEEP, double, 1), GK_OWN(HIGHEST, double, 1),
  GK_OWN(TAKEN, double, 1),
  /* Numbers. */
  GK_STRUCT_VALUE(WORLD, world), GK_ROOM(N, X), GK_SCALAR(HINGES, int), GK_ROOM(CELLS, CELL_COUNT),
  GK_ROOM(CELL_BLOCKS, CELL_BLOCK), GK_ROOM(BLOCKS, CONTACT_BLOCK), GK_DEFAULT(NO_ROOM, int, 0),
  GK_ROOM(ROOM, CONTACT_LIST),
};

static const gk_task tasks[] = {
  GK_RUN(predict, N, X, X_OLD, GUESS, V, TOUCHING, CONTACT_FIRST, WORLD, N),

  GK_DO_WHILE(MOVING, .max_iterations = 60, .label = NEWTON),

    /* Which vertices are near each other. Safe to run again, because it begins by resetting its results. */
    GK_CHECKPOINT(CONTACTS, OVERFLOW),
      GK_FILL(CELL_COUNT, CELLS, 0),
      GK_RUN(count_cells, N, CELL_COUNT, X, WORLD, CELLS),
      GK_RUN(scan_blocks, CELL_BLOCKS, CELL_BLOCK, CELL_COUNT, CELLS),
      GK_RUN(scan_totals, GK_ONE, CELL_BLOCK, CELL_FIRST, CELL_BLOCKS, CELLS),
      GK_RUN(scan_spread, CELL_BLOCKS, CELL_FIRST, CELL_BLOCK, CELL_COUNT, CELLS),
      GK_RUN(place, N, MEMBER, CELL_COUNT, CELL_FIRST, X, WORLD, CELLS),
      GK_RUN(sort_cell, CELLS, MEMBER, CELL_FIRST),
      GK_RUN(find_contacts, N, CONTACT_COUNT, CONTACT_LIST, CONTACT_FIRST, X, REST, CELL_FIRST, MEMBER, SPRING_FIRST,
             SPRING_OTHER, WORLD, CELLS, NO_ROOM),
      GK_RUN(scan_blocks, BLOCKS, CONTACT_BLOCK, CONTACT_COUNT, N),
      GK_RUN(scan_totals, GK_ONE, CONTACT_BLOCK, CONTACT_FIRST, BLOCKS, N),
      GK_RUN(scan_spread, BLOCKS, CONTACT_FIRST, CONTACT_BLOCK, CONTACT_COUNT, N),
      GK_RUN(judge_room, GK_ONE, OVERFLOW, CONTACT_FIRST, N, ROOM),
      GK_RUN(find_contacts, N, CONTACT_COUNT, CONTACT_LIST, CONTACT_FIRST, X, REST, CELL_FIRST, MEMBER, SPRING_FIRST,
             SPRING_OTHER, WORLD, CELLS, ROOM),
    GK_END,

    GK_PARALLEL,
      GK_SECTION, GK_RUN(stretching, N, STRETCH, BONDS, X, SPRING_FIRST, SPRING_OTHER, SPRINGS), GK_END,
      GK_SECTION,
        GK_RUN(turning, HINGES, TURN, HINGE_BONDS, X, HINGE_LIST),
        GK_RUN(bending, N, BEND, TURN, HINGE_BONDS, SHARE_FIRST, SHARE_HINGE, SHARE_WEIGHT),
      GK_END,
      GK_SECTION, GK_RUN(pushing, N, PUSH, CONTACT_BONDS, X, MASS, CONTACT_FIRST, CONTACT_LIST, WORLD), GK_END,
    GK_END,

    /* The direction: deflated, preconditioned conjugate gradients. */
    GK_RUN(assemble, N, R, ROWS, INVERSE, SUM_X, SUM_Y, SUM_Z, GAIN, X, X_OLD, GUESS, MASS, LOAD, STRETCH, BEND, PUSH,
           WORLD),
    GK_RUN(add_rows, N, ROW_X, ROW_Y, ROW_Z, ROWS),
    GK_RUN(translate, GK_ONE, CONTROL, SUM_X, SUM_Y, SUM_Z, ROW_X, ROW_Y, ROW_Z),
    GK_RUN(start_solve, N, U, R, Z, RZ, SUM_X, SUM_Y, SUM_Z, ROWS, INVERSE, CONTROL),
    GK_RUN(judge_solve, GK_ONE, CONTROL, SOLVING, RZ, PQ, SUM_X, SUM_Y, SUM_Z, WORLD),
    GK_DO_WHILE(SOLVING, .max_iterations = 1000, .label = SOLVE),
      GK_RUN(direct, N, P, Z, CONTROL),
      GK_RUN(multiply_hinges, HINGES, TURN, P, HINGE_LIST, HINGE_BONDS),
      GK_RUN(multiply, N, Q, PQ, P, ROWS, SPRING_FIRST, SPRING_OTHER, BONDS, SHARE_FIRST, SHARE_HINGE, SHARE_WEIGHT,
             TURN, CONTACT_FIRST, CONTACT_LIST, CONTACT_BONDS),
      GK_RUN(advance, N, U, R, Z, RZ, SUM_X, SUM_Y, SUM_Z, P, Q, ROWS, INVERSE, PQ, CONTROL),
      GK_RUN(judge_solve, GK_ONE, CONTROL, SOLVING, RZ, PQ, SUM_X, SUM_Y, SUM_Z, WORLD),
    GK_END,

    /* The length of the step: halved until the energy is no higher than before. */
    GK_RUN(start_search, GK_ONE, CONTROL, LARGEST),
    GK_DO_WHILE(SEARCHING, .max_iterations = 30, .label = SEARCH),
      GK_RUN(try_step, N, TRIAL, X, U, CONTROL),
      GK_RUN(add_energy, N, TRIAL_ENERGY, TRIAL, X_OLD, GUESS, MASS, LOAD, SPRING_FIRST, SPRING_OTHER, SPRINGS,
             CONTACT_FIRST, CONTACT_LIST, WORLD),
      GK_RUN(add_hinges, HINGES, TRIAL_ENERGY, TRIAL, HINGE_LIST),
      GK_RUN(judge_search, GK_ONE, CONTROL, SEARCHING, TRIAL_ENERGY),
    GK_END,
    GK_RUN(accept, N, X, LARGEST, TRIAL, CONTROL),
    GK_RUN(judge_newton, GK_ONE, MOVING, LARGEST, GAIN, CONTROL, WORLD),
  GK_END,

  GK_RUN(finish, N, V, LOAD, X, X_OLD, MASS, WORLD),
  GK_FILL(ENERGY, GK_ONE, 0), GK_FILL(KINETIC, GK_ONE, 0), GK_FILL(TOUCHING, GK_ONE, 0),
  GK_FILL(MOMENTUM_X, GK_ONE, 0), GK_FILL(MOMENTUM_Y, GK_ONE, 0), GK_FILL(MOMENTUM_Z, GK_ONE, 0),
  GK_RUN(measure, N, ENERGY, KINETIC, MOMENTUM_X, MOMENTUM_Y, MOMENTUM_Z, TOUCHING, X, V, MASS, SPRING_FIRST,
         SPRING_OTHER, SPRINGS, CONTACT_FIRST, CONTACT_LIST, WORLD),
  GK_RUN(add_hinges, HINGES, ENERGY, X, HINGE_LIST),
  GK_RUN(judge_energy, GK_ONE, ENERGY, KINETIC, KEEP, HIGHEST, TAKEN, MOMENTUM_X, MOMENTUM_Y, MOMENTUM_Z, WORLD),
  GK_RUN(take_back, N, V, KEEP, MOMENTUM_X, MOMENTUM_Y, MOMENTUM_Z, WORLD),
};
static const gk_list step = GK_LIST(step, tasks, slots);

const gk_list *simulation_list(void) { return &step; }

world simulation_constants(const mesh *body) {
  const double step_seconds = 0.01, gravity = 9.81, reach = mesh_reach(body, fmin(1.2 * body->edge, 0.03));
  /* On a finer mesh the residual says less about large errors, so the solver must reduce it further. */
  const double fine = fmin(fmax(body->edge / 0.03, 0.03), 1.0);
  double mass = 0.0;
  for (int k = 0; k < body->vertex_count; ++k) mass += body->mass[k];
  return (world){.step = step_seconds, .gravity = gravity, .gap = 0.003, .ground = 1.0, .friction = 0.4,
                 .slip = 0.01 * step_seconds, .reach = reach, .push = 20.0, .cell = 1.35 * reach,
                 .cg = 0.3 * sqrt(fine), .enough = 5e-7 * fine * mass, .still = 0.03 * step_seconds,
                 .gain = 1e-4 * gravity * mass, .mass = mass};
}

/* A slot with its first content; `from` NULL: zeros. */
typedef struct content { gk_slot slot; int count; const void *from; } content;

static gk_result fill_slots(simulation *s) {
  const mesh *m = s->body;
  int n = m->vertex_count, blocks = (n + SCAN_BLOCK - 1) / SCAN_BLOCK;
  const content contents[] = {
    {X, n, NULL}, {X_OLD, n, NULL}, {GUESS, n, NULL}, {V, n, NULL}, {TRIAL, n, NULL},
    {REST, n, m->rest}, {MASS, n, m->mass}, {LOAD, n, NULL},
    {SPRING_FIRST, n + 1, m->spring_first}, {SPRING_OTHER, m->spring_count, m->spring_other},
    {SPRINGS, m->spring_count, m->springs}, {BONDS, m->spring_count, NULL}, {STRETCH, n, NULL},
    {HINGE_LIST, m->hinge_count, m->hinges}, {HINGE_BONDS, m->hinge_count, NULL},
    {TURN, m->hinge_count, NULL}, {SHARE_FIRST, n + 1, m->share_first},
    {SHARE_HINGE, m->share_count, m->share_hinge},
    {SHARE_WEIGHT, m->share_count, m->share_weight}, {BEND, n, NULL},
    {CELL_COUNT, s->cells, NULL}, {CELL_FIRST, s->cells + 1, NULL}, {CELL_BLOCK, s->cells / SCAN_BLOCK, NULL},
    {MEMBER, n, NULL}, {CONTACT_COUNT, n, NULL}, {CONTACT_FIRST, n + 1, NULL},
    {CONTACT_BLOCK, blocks, NULL},
    {CONTACT_LIST, s->room, NULL}, {CONTACT_BONDS, s->room, NULL}, {PUSH, n, NULL}, {R, n, NULL},
    {ROWS, n, NULL}, {INVERSE, n, NULL}, {U, n, NULL}, {Z, n, NULL}, {P, n, NULL}, {Q, n, NULL},
  };
  for (size_t k = 0; k < GK_COUNT(contents); ++k) {
    const content *c = contents + k;
    /* A body without hinges gets memory for one, too. */
    gk_result result = gk_resize(s->graph, c->slot, c->count > 0 ? (size_t)c->count : 1);
    if (result == GK_OK && c->from && c->count > 0)
      result = gk_write(s->graph, c->slot, c->from, (size_t)c->count);
    if (result != GK_OK) return result;
  }
  gk_bind_bytes(s->graph, WORLD, &s->world, sizeof s->world); /* the launch reports a failure */
  gk_bind_int(s->graph, HINGES, m->hinge_count);
  return GK_OK;
}

/* Lifts the body, starts its fall, and measures its energy and momentum at the start. */
static gk_result place_body(simulation *s, double drop, v3 spin) {
  const mesh *m = s->body;
  size_t n = (size_t)m->vertex_count;
  v3 *x = calloc(n, sizeof *x), *v = calloc(n, sizeof *v), centre = {0.0, 0.0, 0.0}, drift = {0.0, 0.0, 0.0};
  double total = 0.0;
  gk_result result = GK_ERROR_MEMORY;
  if (!x || !v) {
    s->trouble = "there isn't enough memory to place the body";
    goto done;
  }
  for (size_t k = 0; k < n; ++k) {
    x[k] = v3_add(m->rest[k], v3_of(0.0, drop, 0.0));
    centre = v3_mad(centre, m->mass[k], x[k]);
    total += m->mass[k];
  }
  for (size_t k = 0; k < n; ++k) {
    v[k] = v3_cross(spin, v3_sub(x[k], v3_scale(1.0 / total, centre)));
    drift = v3_mad(drift, m->mass[k], v[k]);
  }
  for (size_t k = 0; k < n; ++k) {
    v[k] = v3_mad(v[k], -1.0 / total, drift);
    s->momentum = v3_mad(s->momentum, m->mass[k], v[k]);
    s->kinetic += 0.5 * m->mass[k] * v3_dot(v[k], v[k]);
    s->energy += m->mass[k] * s->world.gravity * x[k].y;
  }
  s->energy += s->kinetic;
  result = gk_write(s->graph, X, x, n);
  if (result == GK_OK) result = gk_write(s->graph, V, v, n);
  if (result == GK_OK) result = gk_write(s->graph, HIGHEST, &s->energy, 1);

done:
  free(x);
  free(v);
  return result;
}

gk_result simulation_start(simulation *s, const gk_device_desc *device, const mesh *body, const world *constants,
                           double drop, v3 spin, int room, uint32_t bits) {
  *s = (simulation){.body = body, .world = *constants, .room = room, .cells = FIRST_CELLS};
  while (s->cells < body->vertex_count) s->cells *= 2;
  gk_result result = gk_device_open(device, &s->device);
  if (result == GK_OK) result = gk_graph_create(s->device, &step, bits, &s->graph);
  if (result == GK_OK) result = fill_slots(s);
  if (result == GK_OK) result = place_body(s, drop, spin);
  return result;
}

/* The number of contacts that the last search found: the last entry of the prefix sum. */
static gk_result read_contacts(simulation *s) {
  const int *first = gk_bound(s->graph, CONTACT_FIRST);
  gk_result result = gk_download(s->device, &s->contacts, first + s->body->vertex_count, sizeof s->contacts);
  if (s->contacts > s->most) s->most = s->contacts;
  return result;
}

/* Makes room for 1.5 times the number of contacts. gk_resize copies the old content, although it isn't needed. */
static gk_result make_room(void *user, gk_graph *graph, const gk_status *status) {
  simulation *s = user;
  gk_result result = read_contacts(s);
  (void)status;
  ++s->yields;
  if (result != GK_OK) return result;
  if (s->contacts > MOST_CONTACTS) {
    s->trouble = "more than 268,435,456 pairs of vertices touch; is the mesh crumpled from the start?";
    return GK_ERROR_MEMORY;
  }
  s->room = s->contacts + s->contacts / 2;
  result = gk_resize(graph, CONTACT_LIST, (size_t)s->room);
  if (result == GK_OK) result = gk_resize(graph, CONTACT_BONDS, (size_t)s->room);
  if (result == GK_OK) ++s->growths;
  return result;
}

gk_result simulation_step(simulation *s) {
  const gk_status *totals;
  gk_result result = gk_run(s->graph, make_room, s, &totals);
  if (result != GK_OK) return result;
  s->newton += gk_passes(totals, NEWTON);
  s->cg += gk_passes(totals, SOLVE);
  s->searches += gk_passes(totals, SEARCH);
  for (uint32_t k = 0; k < totals->loop_count; ++k)
    s->unfinished += totals->loops[k].label == NEWTON && totals->loops[k].hit_bound;
  ++s->steps;
  s->resumes = (int)totals->launch - s->steps;
  result = read_contacts(s);
  if (result == GK_OK) result = gk_read(s->graph, ENERGY, &s->energy, 1);
  if (result == GK_OK) result = gk_read(s->graph, KINETIC, &s->kinetic, 1);
  if (result == GK_OK) result = gk_read(s->graph, TAKEN, &s->taken, 1);
  if (result == GK_OK) result = gk_read(s->graph, MOMENTUM_X, &s->momentum.x, 1);
  if (result == GK_OK) result = gk_read(s->graph, MOMENTUM_Y, &s->momentum.y, 1);
  if (result == GK_OK) result = gk_read(s->graph, MOMENTUM_Z, &s->momentum.z, 1);
  if (result == GK_OK) result = gk_read(s->graph, TOUCHING, &s->touching, 1);
  return result;
}

gk_result simulation_read(const simulation *s, v3 *x, v3 *v) {
  const size_t count = (size_t)s->body->vertex_count;
  const gk_result result = gk_read(s->graph, X, x, count);
  return result == GK_OK && v ? gk_read(s->graph, V, v, count) : result;
}

void simulation_end(simulation *s) {
  gk_graph_destroy(s->graph);
  gk_device_close(s->device);
  s->graph = NULL;
  s->device = NULL;
}
