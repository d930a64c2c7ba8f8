#include "bench/apps/particles_app.h"
#include "bench/apps/particles.kernel.h"
#include "bench/harness/apart.h"
#include "bench/harness/must.h"
#include <stdlib.h>

enum slot { X = 1, V, FORCE, LISTED, STALE, STEP, GOING, STEPS, SEARCHES, CELL, CELL_COUNT, CELL_FIRST, CELL_BLOCK,
            MEMBER, COUNT, NEIGHBOUR, WANTED, OVERFLOW, ENERGY, ALONG_X, ALONG_Y, ALONG_Z, SETTING, N, CELLS, BLOCKS,
            ROOM };
enum label { LONGER = 1, TIME };

static const gk_slot_desc slots[] = {
  GK_BUFFER(X, vec), GK_BUFFER(V, vec), GK_BUFFER(FORCE, vec), GK_BUFFER(LISTED, vec), GK_OWN(STALE, int, 1),
  GK_OWN(STEP, int, 1), GK_OWN(GOING, int, 1), GK_SCALAR(STEPS, int), GK_OWN(SEARCHES, int, 1),
  GK_BUFFER(CELL, int), GK_BUFFER(CELL_COUNT, int), GK_BUFFER(CELL_FIRST, int), GK_BUFFER(CELL_BLOCK, int),
  GK_BUFFER(MEMBER, int), GK_BUFFER(COUNT, int), GK_BUFFER(NEIGHBOUR, int), GK_OWN(WANTED, int, 1),
  GK_OWN(OVERFLOW, int, 1), GK_OWN(ENERGY, double, 1), GK_OWN(ALONG_X, double, 1), GK_OWN(ALONG_Y, double, 1),
  GK_OWN(ALONG_Z, double, 1), GK_STRUCT_VALUE(SETTING, setting), GK_SCALAR(N, int), GK_SCALAR(CELLS, int),
  GK_SCALAR(BLOCKS, int), GK_SCALAR(ROOM, int),
};

static const gk_task tasks[] = {
  GK_RUN(bench_begin_run, GK_ONE, STEP, STALE, SEARCHES, ENERGY, ALONG_X, ALONG_Y, ALONG_Z),
  GK_DO_WHILE(GOING, .label = TIME),
    GK_RUN(bench_advance, N, X, V, STALE, FORCE, LISTED, SETTING),
    GK_IF(STALE),
      GK_FILL(CELL_COUNT, CELLS, 0),
      GK_RUN(bench_count_cells, N, CELL, CELL_COUNT, X, SETTING),
      GK_RUN(bench_scan_blocks, BLOCKS, CELL_BLOCK, CELL_COUNT, CELLS),
      GK_RUN(bench_scan_totals, GK_ONE, CELL_BLOCK, CELL_FIRST, BLOCKS, CELLS),
      GK_RUN(bench_scan_spread, BLOCKS, CELL_FIRST, CELL_BLOCK, CELL_COUNT, CELLS),
      GK_RUN(bench_place, N, MEMBER, CELL_COUNT, CELL_FIRST, CELL),
      GK_RUN(bench_sort_cell, CELLS, MEMBER, CELL_FIRST),
      GK_CHECKPOINT(LONGER, OVERFLOW),
        GK_FILL(WANTED, GK_ONE, 0),
        GK_RUN(bench_find_neighbours, N, COUNT, NEIGHBOUR, LISTED, WANTED, X, CELL_FIRST, MEMBER, ROOM, SETTING),
        GK_RUN(bench_check_room, GK_ONE, OVERFLOW, STALE, SEARCHES, WANTED),
      GK_END,
    GK_END,
    GK_RUN(bench_push, N, FORCE, V, X, COUNT, NEIGHBOUR, ROOM, SETTING),
    GK_RUN(bench_next_step, GK_ONE, STEP, GOING, STEPS),
  GK_END,
  GK_RUN(bench_sum_conserved, N, ENERGY, ALONG_X, ALONG_Y, ALONG_Z, X, V, COUNT, NEIGHBOUR, ROOM, SETTING),
};
static const gk_list list = GK_LIST(particles, tasks, slots);

/* The same with decisions on the host. There is no decision between a push and the next step's way. */
static const gk_task first_tasks[] = {
  GK_RUN(bench_begin_run, GK_ONE, STEP, STALE, SEARCHES, ENERGY, ALONG_X, ALONG_Y, ALONG_Z),
  GK_RUN(bench_advance, N, X, V, STALE, FORCE, LISTED, SETTING),
};
static const gk_task step_tasks[] = {
  GK_RUN(bench_push, N, FORCE, V, X, COUNT, NEIGHBOUR, ROOM, SETTING),
  GK_RUN(bench_advance, N, X, V, STALE, FORCE, LISTED, SETTING),
};
static const gk_task search_tasks[] = {
  GK_FILL(CELL_COUNT, CELLS, 0),
  GK_RUN(bench_count_cells, N, CELL, CELL_COUNT, X, SETTING),
  GK_RUN(bench_scan_blocks, BLOCKS, CELL_BLOCK, CELL_COUNT, CELLS),
  GK_RUN(bench_scan_totals, GK_ONE, CELL_BLOCK, CELL_FIRST, BLOCKS, CELLS),
  GK_RUN(bench_scan_spread, BLOCKS, CELL_FIRST, CELL_BLOCK, CELL_COUNT, CELLS),
  GK_RUN(bench_place, N, MEMBER, CELL_COUNT, CELL_FIRST, CELL),
  GK_RUN(bench_sort_cell, CELLS, MEMBER, CELL_FIRST),
  GK_FILL(WANTED, GK_ONE, 0),
  GK_RUN(bench_find_neighbours, N, COUNT, NEIGHBOUR, LISTED, WANTED, X, CELL_FIRST, MEMBER, ROOM, SETTING),
  GK_RUN(bench_check_room, GK_ONE, OVERFLOW, STALE, SEARCHES, WANTED),
};
static const gk_task again_tasks[] = {
  GK_FILL(WANTED, GK_ONE, 0),
  GK_RUN(bench_find_neighbours, N, COUNT, NEIGHBOUR, LISTED, WANTED, X, CELL_FIRST, MEMBER, ROOM, SETTING),
  GK_RUN(bench_check_room, GK_ONE, OVERFLOW, STALE, SEARCHES, WANTED),
};
static const gk_task last_tasks[] = {
  GK_RUN(bench_push, N, FORCE, V, X, COUNT, NEIGHBOUR, ROOM, SETTING),
  GK_RUN(bench_sum_conserved, N, ENERGY, ALONG_X, ALONG_Y, ALONG_Z, X, V, COUNT, NEIGHBOUR, ROOM, SETTING),
};
const gk_list bench_particles_stretches[PARTICLES_STRETCHES] = {
  [PARTICLES_FIRST] = GK_LIST(first, first_tasks, slots), [PARTICLES_STEP] = GK_LIST(step, step_tasks, slots),
  [PARTICLES_SEARCH] = GK_LIST(search, search_tasks, slots), [PARTICLES_AGAIN] = GK_LIST(again, again_tasks, slots),
  [PARTICLES_LAST] = GK_LIST(last, last_tasks, slots),
};

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

setting bench_particles_setting(int along, bool by_rank) {
  const double skin = 0.3, reach = 1.0 + skin, side = along;
  return (setting){.side = side, .step = 0.005, .stiffness = 50.0, .reach = reach, .moves = 0.25 * skin * skin,
                   .n = along * along * along, .cells = (int)(side / reach), .by_rank = by_rank};
}

static void place(const setting *s, vec *x, vec *v) {
  const double pi = 3.14159265358979323846, wave = 8.0, speed = 1.5, shaken = 0.2;
  const int along = (int)s->side;
  uint32_t random = 1;
  vec drift = {0.0, 0.0, 0.0};
  for (int i = 0; i < s->n; ++i) {
    double at[3] = {i % along, i / along % along, i / along / along}, to[3];
    for (int k = 0; k < 3; ++k) {
      random = random * 1664525u + 1013904223u;
      at[k] += 0.5 + shaken * ((double)(random >> 8) / (1 << 24) - 0.5);
      to[k] = -speed * sin(2.0 * pi * at[k] / wave);
    }
    x[i] = (vec){at[0], at[1], at[2]};
    v[i] = (vec){to[0], to[1], to[2]};
    drift = (vec){drift.x + to[0], drift.y + to[1], drift.z + to[2]};
  }
  for (int i = 0; i < s->n; ++i)
    v[i] = (vec){v[i].x - drift.x / s->n, v[i].y - drift.y / s->n, v[i].z - drift.z / s->n};
}

/* ---- by gk ------------------------------------------------------------------------------------------------------- */

static int cells_of(const setting *s) { return s->cells * s->cells * s->cells; }
static int blocks_of(const setting *s) { return (cells_of(s) + SCAN_BLOCK - 1) / SCAN_BLOCK; }

void bench_particles_bind(gk_graph *graph, const setting *s) {
  bench_must(gk_bind_bytes(graph, SETTING, s, sizeof *s));
  bench_must(gk_bind_int(graph, N, s->n));
  bench_must(gk_bind_int(graph, CELLS, cells_of(s)));
  bench_must(gk_bind_int(graph, BLOCKS, blocks_of(s)));
}

static void start(particles *p, gk_device *device, const setting *s) {
  *p = (particles){.device = device, .s = *s};
  const int n = s->n, cells = cells_of(s);
  const struct { gk_slot slot; int count; } buffers[] = {
    {X, n}, {V, n}, {FORCE, n}, {LISTED, n}, {CELL, n}, {CELL_COUNT, cells}, {CELL_FIRST, cells + 1},
    {CELL_BLOCK, blocks_of(s)}, {MEMBER, n}, {COUNT, n}};
  if (s->cells < 3) bench_fail("the box has too few cells: a sphere would meet another one twice");
  bench_must(gk_graph_create(device, &list, 0, &p->graph));
  for (size_t k = 0; k < GK_COUNT(buffers); ++k)
    bench_must(gk_resize(p->graph, buffers[k].slot, (size_t)buffers[k].count));
  bench_particles_bind(p->graph, s);
}

void bench_particles_end(particles *p) { gk_graph_destroy(p->graph); }

static void set_room(particles *p, int room) {
  if (room > INT32_MAX / p->s.n) bench_fail("the lists of neighbours have more entries than an int can number");
  if (room != p->room) bench_must(gk_resize(p->graph, NEIGHBOUR, 0)); /* without a copy of the old lists */
  bench_must(gk_resize(p->graph, NEIGHBOUR, (size_t)p->s.n * (size_t)room));
  bench_must(gk_bind_int(p->graph, ROOM, room));
  p->room = room;
}

void bench_particles_restore(particles *p, const particles_moment *from) {
  const size_t bytes = (size_t)p->s.n * sizeof(vec);
  set_room(p, from->room);
  bench_must(gk_upload(p->device, gk_bound(p->graph, X), from->x, bytes));
  bench_must(gk_upload(p->device, gk_bound(p->graph, V), from->v, bytes));
  bench_must(gk_upload(p->device, gk_bound(p->graph, FORCE), from->force, bytes));
  p->yields = 0;
}

static void read_slot(const particles *p, gk_slot slot, void *to, size_t bytes) {
  bench_must(gk_download(p->device, to, gk_bound(p->graph, slot), bytes));
}

int bench_particles_room(int wanted) { return wanted + wanted / 8; }

void bench_particles_grow(particles *p, int wanted) {
  set_room(p, bench_particles_room(wanted));
  ++p->yields;
}

void bench_particles_run(particles *p, int steps) {
  const gk_status *status = NULL;
  bench_must(gk_bind_int(p->graph, STEPS, steps));
  bench_must(gk_launch(p->graph, 0));
  for (;;) {
    bench_must(gk_wait(p->graph, &status));
    if (status->state != GK_YIELDED) return;
    int wanted = 0;
    read_slot(p, WANTED, &wanted, sizeof wanted);
    bench_particles_grow(p, wanted);
    bench_must(gk_launch(p->graph, LONGER));
  }
}

particles_moment bench_particles_look(const particles *p) {
  particles_moment m = {.x = gk_bound(p->graph, X), .v = gk_bound(p->graph, V), .force = gk_bound(p->graph, FORCE),
                        .room = p->room, .yields = p->yields};
  read_slot(p, SEARCHES, &m.searches, sizeof m.searches);
  read_slot(p, ENERGY, &m.energy, sizeof m.energy);
  read_slot(p, ALONG_X, &m.momentum.x, sizeof m.momentum.x);
  read_slot(p, ALONG_Y, &m.momentum.y, sizeof m.momentum.y);
  read_slot(p, ALONG_Z, &m.momentum.z, sizeof m.momentum.z);
  return m;
}

/* ---- without gk, and without lists ------------------------------------------------------------------------------- */

typedef struct grid { int *head, *next; } grid; /* a chain of spheres per cell */

static int cell_at(vec a, const setting *s, int dx, int dy, int dz) {
  const int m = s->cells;
  const int cx = (bench_cell_along(a.x, *s) + dx + m) % m, cy = (bench_cell_along(a.y, *s) + dy + m) % m;
  return ((bench_cell_along(a.z, *s) + dz + m) % m * m + cy) * m + cx;
}

static void push_all(const setting *s, const vec *x, vec *force, grid g) {
  for (int c = 0; c < s->cells * s->cells * s->cells; ++c) g.head[c] = -1;
  for (int i = 0; i < s->n; ++i) {
    const int c = cell_at(x[i], s, 0, 0, 0);
    g.next[i] = g.head[c];
    g.head[c] = i;
    force[i] = (vec){0.0, 0.0, 0.0};
  }
  for (int i = 0; i < s->n; ++i)
    for (int c = 0; c < 27; ++c)
      for (int j = g.head[cell_at(x[i], s, c % 3 - 1, c / 3 % 3 - 1, c / 9 - 1)]; j >= 0; j = g.next[j]) {
        const vec d = bench_vec_apart(x[i], x[j], s->side);
        if (j >= i || bench_square(d) >= 1.0) continue;
        const double r = sqrt(bench_square(d)), f = s->stiffness * (1.0 - r) / r;
        force[i] = (vec){force[i].x - f * d.x, force[i].y - f * d.y, force[i].z - f * d.z};
        force[j] = (vec){force[j].x + f * d.x, force[j].y + f * d.y, force[j].z + f * d.z};
      }
}

static void kick(const setting *s, vec *v, const vec *force) {
  for (int i = 0; i < s->n; ++i)
    v[i] = (vec){v[i].x + 0.5 * s->step * force[i].x, v[i].y + 0.5 * s->step * force[i].y,
                 v[i].z + 0.5 * s->step * force[i].z};
}

/* Simulates the steps without lists. @return The largest distance of a sphere from its place in `after` */
static double error_of(const setting *s, const particles_moment *before, const particles_moment *after, int steps) {
  const size_t n = (size_t)s->n, cells = (size_t)s->cells;
  vec *x = bench_alloc(n, sizeof *x), *v = bench_alloc(n, sizeof *v), *force = bench_alloc(n, sizeof *force);
  const grid g = {bench_alloc(cells * cells * cells, sizeof(int)), bench_alloc(n, sizeof(int))};
  memcpy(x, before->x, n * sizeof *x);
  memcpy(v, before->v, n * sizeof *v);
  memcpy(force, before->force, n * sizeof *force);
  for (int k = 0; k < steps; ++k) {
    kick(s, v, force);
    for (size_t i = 0; i < n; ++i)
      x[i] = (vec){bench_wrapped(x[i].x + s->step * v[i].x, s->side), bench_wrapped(x[i].y + s->step * v[i].y, s->side),
                   bench_wrapped(x[i].z + s->step * v[i].z, s->side)};
    push_all(s, x, force, g);
    kick(s, v, force);
  }
  double error = 0.0;
  for (size_t i = 0; i < n; ++i) error = fmax(error, sqrt(bench_square(bench_vec_apart(x[i], after->x[i], s->side))));
  free(x), free(v), free(force), free(g.head), free(g.next);
  return error;
}

void bench_particles_moment(particles_moment *m, const setting *s) {
  const size_t n = (size_t)s->n;
  m->x = bench_shared(n * sizeof *m->x);
  m->v = bench_shared(n * sizeof *m->v);
  m->force = bench_shared(n * sizeof *m->force);
}

static void save(const particles *p, particles_moment *to) {
  const size_t bytes = (size_t)p->s.n * sizeof(vec);
  const particles_moment got = bench_particles_look(p);
  bench_must(gk_download(p->device, to->x, got.x, bytes));
  bench_must(gk_download(p->device, to->v, got.v, bytes));
  bench_must(gk_download(p->device, to->force, got.force, bytes));
  *to = (particles_moment){to->x, to->v, to->force, got.room, got.searches, got.yields, got.energy, got.momentum};
}

void bench_particles_prepare(particles *p, gk_device *device, const setting *s, int lead, int steps,
                             particles_moment *before, particles_moment *after) {
  start(p, device, s);
  place(s, before->x, before->v);
  before->room = 1;
  bench_particles_restore(p, before);
  bench_particles_run(p, lead);
  save(p, before);
  bench_particles_restore(p, before);
  bench_particles_run(p, steps);
  save(p, after);
  if (after->yields == 0) bench_fail("no list was too short, so nothing would be measured of yields");
  if (!(error_of(s, before, after, steps) < 1e-11))
    bench_fail("the spheres aren't where they are on the host and without lists of neighbours");
}

bool bench_particles_are_conserved(const setting *s, const particles_moment *before, const particles_moment *after) {
  const vec d = {after->momentum.x - before->momentum.x, after->momentum.y - before->momentum.y,
                 after->momentum.z - before->momentum.z};
  return fabs(after->energy - before->energy) < 1e-3 * before->energy && sqrt(bench_square(d)) < 1e-10 * s->n;
}
