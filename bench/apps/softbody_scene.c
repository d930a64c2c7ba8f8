#include "bench/apps/softbody_scene.h"
#include "bench/harness/apart.h"
#include "bench/harness/must.h"

#define MESH "docs/examples/softbody/spot.obj"

/* ---- meshes ------------------------------------------------------------------------------------------------------ */

/* The point of a triangle with these shares of its corners. Points on an edge occur twice with the same bits, so that
 * mesh_build joins them. */
static v3 within(const obj *file, const int *t, double a, double b, double c) {
  return v3_add(v3_add(v3_scale(a, file->vertices[t[0]]), v3_scale(b, file->vertices[t[1]])),
                v3_scale(c, file->vertices[t[2]]));
}

/* Adds rows of points, each with one point more than the row before, and the triangles between two rows. */
static void cut_triangle(const obj *file, const int *t, int parts, obj *fine) {
  for (int row = 0; row <= parts; ++row) {
    const int first = fine->vertex_count, before = first - row;
    for (int k = 0; k <= row; ++k)
      fine->vertices[fine->vertex_count++] = within(file, t, (double)(parts - row) / parts, (double)(row - k) / parts,
                                                    (double)k / parts);
    for (int k = 0; k < row; ++k) {
      const int down[3] = {before + k, first + k, first + k + 1}, up[3] = {before + k, first + k + 1, before + k + 1};
      memcpy(fine->triangles[fine->triangle_count++], down, sizeof down);
      if (k + 1 < row) memcpy(fine->triangles[fine->triangle_count++], up, sizeof up);
    }
  }
}

static void cut_triangles(obj *file, int parts) {
  const size_t triangles = (size_t)file->triangle_count, by = (size_t)parts;
  obj fine = {0};
  fine.vertices = bench_alloc(triangles * (by + 1) * (by + 2) / 2, sizeof *fine.vertices);
  fine.triangles = bench_alloc(triangles * by * by, sizeof *fine.triangles);
  for (size_t k = 0; k < triangles; ++k) cut_triangle(file, file->triangles[k], parts, &fine);
  obj_free(file);
  *file = fine;
}

static void build(obj *file, mesh *body) {
  const material stuff = {.density = 1.0, .membrane = 1500.0, .bending = 0.004}; /* the demo's */
  complaint why = {""};
  if (!mesh_build(MESH, file, &stuff, body, &why)) bench_fail(why.text);
  obj_free(file);
}

void bench_scene_mesh(mesh *body, int parts) {
  obj file = {0};
  complaint why = {""};
  if (!obj_read(MESH, &file, &why)) bench_fail(why.text);
  if (parts > 1) cut_triangles(&file, parts);
  build(&file, body);
}

enum { RINGS = 4, AROUND = 8, BALL = AROUND * (RINGS - 1) + 2 /* vertices */ };

static void add_triangle(obj *to, int a, int b, int c) {
  const int corners[3] = {a, b, c};
  memcpy(to->triangles[to->triangle_count++], corners, sizeof corners);
}

static void add_ball(obj *to, v3 centre) {
  const double pi = 3.14159265358979323846;
  const int low = to->vertex_count, high = low + BALL - 1;
  to->vertices[to->vertex_count++] = v3_add(centre, v3_of(0.0, -1.0, 0.0));
  for (int k = 0; k < BALL - 2; ++k) {
    const double a = pi * (1 + k / AROUND) / RINGS, b = 2.0 * pi * (k % AROUND) / AROUND;
    to->vertices[to->vertex_count++] = v3_add(centre, v3_of(sin(a) * cos(b), -cos(a), sin(a) * sin(b)));
  }
  to->vertices[to->vertex_count++] = v3_add(centre, v3_of(0.0, 1.0, 0.0));
  for (int k = 0; k < AROUND; ++k) {
    const int n = (k + 1) % AROUND;
    add_triangle(to, low, low + 1 + k, low + 1 + n);
    add_triangle(to, high, high - AROUND + n, high - AROUND + k);
    for (int at = low + 1; at < high - AROUND; at += AROUND) {
      add_triangle(to, at + k, at + AROUND + k, at + AROUND + n);
      add_triangle(to, at + k, at + AROUND + n, at + n);
    }
  }
}

void bench_scene_balls(mesh *body) {
  obj file = {.vertices = bench_alloc(2 * BALL, sizeof *file.vertices),
              .triangles = bench_alloc(2 * 2 * AROUND * (RINGS - 1), sizeof *file.triangles)};
  add_ball(&file, v3_of(0.0, 0.0, 0.0));
  add_ball(&file, v3_of(0.15, 2.4, 0.0));
  build(&file, body);
}

/* ---- moments ----------------------------------------------------------------------------------------------------- */

void *bench_scene_memory(const simulation *s, const char *slot) {
  return gk_bound(s->graph, gk_find_slot(s->graph, slot));
}

void bench_scene_moment(body_moment *m, size_t n) {
  m->x = bench_shared(n * sizeof *m->x);
  m->v = bench_shared(n * sizeof *m->v);
  m->load = bench_shared(n * sizeof *m->load);
}

hand_state bench_scene_state(const simulation *s) {
  return (hand_state){.newton = s->newton, .cg = s->cg, .searches = s->searches, .contacts = s->contacts,
                      .growths = s->growths, .touching = s->touching, .energy = s->energy, .kinetic = s->kinetic,
                      .taken = s->taken};
}

void bench_scene_save(const simulation *s, body_moment *to) {
  size_t n = (size_t)s->body->vertex_count;
  bench_must(simulation_read(s, to->x, to->v));
  bench_must(gk_download(s->device, to->load, bench_scene_memory(s, "LOAD"), n * sizeof *to->load));
  bench_must(gk_download(s->device, &to->highest, bench_scene_memory(s, "HIGHEST"), sizeof to->highest));
  to->state = bench_scene_state(s);
  to->room = s->room;
}

void bench_scene_restore(simulation *s, const body_moment *from) {
  size_t n = (size_t)s->body->vertex_count;
  const hand_state *state = &from->state;
  bench_must(gk_upload(s->device, bench_scene_memory(s, "X"), from->x, n * sizeof *from->x));
  bench_must(gk_upload(s->device, bench_scene_memory(s, "V"), from->v, n * sizeof *from->v));
  bench_must(gk_upload(s->device, bench_scene_memory(s, "LOAD"), from->load, n * sizeof *from->load));
  bench_must(gk_upload(s->device, bench_scene_memory(s, "HIGHEST"), &from->highest, sizeof from->highest));
  bench_must(gk_upload(s->device, bench_scene_memory(s, "TAKEN"), &state->taken, sizeof state->taken));
  bench_must(gk_upload(s->device, bench_scene_memory(s, "TOUCHING"), &state->touching, sizeof state->touching));
  bench_must(gk_upload(s->device, (int *)bench_scene_memory(s, "CONTACT_FIRST") + n, &state->contacts,
                       sizeof state->contacts));
  bench_must(gk_resize(s->graph, gk_find_slot(s->graph, "CONTACT_LIST"), (size_t)from->room));
  bench_must(gk_resize(s->graph, gk_find_slot(s->graph, "CONTACT_BONDS"), (size_t)from->room));
  s->room = from->room;
  s->newton = state->newton;
  s->cg = state->cg;
  s->searches = state->searches;
  s->growths = state->growths;
}

