/* A whole application (table F3): conjugate gradients on the seven-point Poisson matrix of a cube, by gk's loop and by
 * hand with OpenMP. Each arm begins at 0 and stops where the residual is a millionth of the first; all must come to the
 * same solution, which is known. */
#include "apart.h"
#include "gk.h"
#include "gk_kernel.h"
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

GK_SOURCE(bench_solver)
GK_STRUCT(course) { double rr, first, beta; };

GK_KERNEL(begin_all, (out(double, u), out(double, r), out(double, p), sum(double, rr), in(double, b))) {
  u[i] = 0.0;
  r[i] = b[i];
  p[i] = 0.0;
  rr[0] += b[i] * b[i];
}
GK_KERNEL(begin_course, (out(course, c), inout(double, rr), out(double, pq), out(int, again))) {
  c[0].rr = rr[0];
  c[0].first = rr[0];
  c[0].beta = 0.0;
  again[0] = rr[0] > 0.0 ? 1 : 0;
  rr[0] = 0.0;
  pq[0] = 0.0;
}
GK_KERNEL(direct, (inout(double, p), in(double, r), in(course, c))) { p[i] = r[i] + c[0].beta * p[i]; }
GK_KERNEL(multiply, (out(double, q), sum(double, pq), in(double, p), value(int, n))) {
  int x = i % n, y = i / n % n, z = i / n / n;
  double total = 6.0 * p[i];
  if (x > 0) total -= p[i - 1];
  if (x < n - 1) total -= p[i + 1];
  if (y > 0) total -= p[i - n];
  if (y < n - 1) total -= p[i + n];
  if (z > 0) total -= p[i - n * n];
  if (z < n - 1) total -= p[i + n * n];
  q[i] = total;
  pq[0] += p[i] * total;
}
GK_KERNEL(advance, (inout(double, u), inout(double, r), sum(double, rr), in(double, p), in(double, q), in(double, pq),
                    in(course, c))) {
  double alpha = c[0].rr / pq[0], rest = r[i] - alpha * q[i];
  u[i] += alpha * p[i];
  r[i] = rest;
  rr[0] += rest * rest;
}
GK_KERNEL(judge, (inout(course, c), inout(double, rr), out(double, pq), out(int, again))) {
  c[0].beta = rr[0] / c[0].rr;
  c[0].rr = rr[0];
  again[0] = rr[0] > 1e-12 * c[0].first ? 1 : 0;
  rr[0] = 0.0;
  pq[0] = 0.0;
}
GK_SOURCE_END

enum { U = 1, R, P, Q, B, ITEMS, SIDE, RR, PQ, COURSE, AGAIN, SLOTS };
static const gk_slot_desc slots[] = {GK_BUFFER(U, double), GK_BUFFER(R, double), GK_BUFFER(P, double),
                                     GK_BUFFER(Q, double), GK_BUFFER(B, double), GK_SCALAR(ITEMS, int),
                                     GK_SCALAR(SIDE, int), GK_OWN(RR, double, 1), GK_OWN(PQ, double, 1),
                                     GK_OWN(COURSE, course, 1), GK_OWN(AGAIN, int, 1)};
static const gk_task tasks[] = {
  GK_FILL(RR, GK_ONE, 0),
  GK_RUN(begin_all, ITEMS, U, R, P, RR, B),
  GK_RUN(begin_course, GK_ONE, COURSE, RR, PQ, AGAIN),
  GK_DO_WHILE(AGAIN, .max_iterations = 10000),
    GK_RUN(direct, ITEMS, P, R, COURSE),
    GK_RUN(multiply, ITEMS, Q, PQ, P, SIDE),
    GK_RUN(advance, ITEMS, U, R, RR, P, Q, PQ, COURSE),
    GK_RUN(judge, GK_ONE, COURSE, RR, PQ, AGAIN),
  GK_END};
static const gk_list list = GK_LIST(solver, tasks, slots);

static void must(gk_result result) {
  if (result != GK_OK) bench_fail(gk_error());
}

/* ---- the problem ------------------------------------------------------------------------------------------------- */

typedef struct cube {
  int side, items, passes; /* as gk needed */
  double *known, *b;       /* the solution, and what it is the solution of; */
  double *u, *r, *p, *q;   /* room for who does it by hand; all of it is shared among processes */
} cube;

static double times_matrix(const double *of, int i, int n) {
  const int x = i % n, y = i / n % n, z = i / n / n;
  double total = 6.0 * of[i];
  if (x > 0) total -= of[i - 1];
  if (x < n - 1) total -= of[i + 1];
  if (y > 0) total -= of[i - n];
  if (y < n - 1) total -= of[i + n];
  if (z > 0) total -= of[i - n * n];
  if (z < n - 1) total -= of[i + n * n];
  return total;
}

static void begin_cube(cube *c, int side) {
  c->side = side;
  c->items = side * side * side;
  double **all[] = {&c->known, &c->b, &c->u, &c->r, &c->p, &c->q};
  for (size_t k = 0; k < GK_COUNT(all); ++k) *all[k] = bench_shared((size_t)c->items * sizeof(double));
  uint32_t random = 1;
  for (int i = 0; i < c->items; ++i) {
    random = random * 1664525u + 1013904223u;
    c->known[i] = (double)(random >> 8) / (1 << 24) - 0.5;
  }
  for (int i = 0; i < c->items; ++i) c->b[i] = times_matrix(c->known, i, side);
}

static bool is_solved(const cube *c, const double *u) {
  double worst = 0.0;
  for (int i = 0; i < c->items; ++i) worst = fmax(worst, fabs(u[i] - c->known[i]));
  return worst < 1e-3;
}

/* ---- by gk ------------------------------------------------------------------------------------------------------- */

typedef struct gk_arm {
  cube *c;
  gk_device *device;
  gk_graph *graph;
} gk_arm;

static void begin_gk(gk_arm *arm, cube *c) {
  arm->c = c;
  must(gk_device_open(&(gk_device_desc){.backend = "openmp"}, &arm->device));
  must(gk_graph_create(arm->device, &list, 0, &arm->graph));
  for (gk_slot slot = U; slot <= B; ++slot) must(gk_resize(arm->graph, slot, (size_t)c->items));
  must(gk_bind_int(arm->graph, ITEMS, c->items));
  must(gk_bind_int(arm->graph, SIDE, c->side));
  must(gk_upload(arm->device, gk_bound(arm->graph, B), c->b, (size_t)c->items * sizeof *c->b));
}

static bool run_gk(void *with, uint64_t times, bench_took *took) {
  const gk_arm *arm = with;
  const gk_status *status = NULL;
  const double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) {
    must(gk_launch(arm->graph, 0));
    must(gk_wait(arm->graph, &status));
  }
  took->all += (bench_now() - begin) * 1e-6;
  arm->c->passes = (int)status->loops[0].passes;
  return is_solved(arm->c, gk_bound(arm->graph, U));
}

static void end_gk(const gk_arm *arm) {
  gk_graph_destroy(arm->graph);
  gk_device_close(arm->device);
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

static void by_loops(const cube *c) {
  const int items = c->items, side = c->side;
  double *restrict u = c->u, *restrict r = c->r, *restrict p = c->p, *restrict q = c->q, *b = c->b;
  double rr = 0.0, beta = 0.0;
#pragma omp parallel for schedule(static) reduction(+ : rr)
  for (int i = 0; i < items; ++i) {
    u[i] = p[i] = 0.0;
    r[i] = b[i];
    rr += b[i] * b[i];
  }
  for (const double enough = 1e-12 * rr; rr > enough;) {
    double pq = 0.0, rest = 0.0;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < items; ++i) p[i] = r[i] + beta * p[i];
#pragma omp parallel for schedule(static) reduction(+ : pq)
    for (int i = 0; i < items; ++i) {
      q[i] = times_matrix(p, i, side);
      pq += p[i] * q[i];
    }
    const double alpha = rr / pq;
#pragma omp parallel for schedule(static) reduction(+ : rest)
    for (int i = 0; i < items; ++i) {
      u[i] += alpha * p[i];
      r[i] -= alpha * q[i];
      rest += r[i] * r[i];
    }
    beta = rest / rr;
    rr = rest;
  }
}

enum { THREADS = 256, APART = 8 /* doubles of a line */ };

static double added_up(const double *parts, int threads) {
  double total = 0.0;
  for (int k = 0; k < threads; ++k) total += parts[k * APART];
  return total;
}

/* A team that lasts: sums are added up by each thread for itself, so that three barriers do. */
static void by_region(const cube *c) {
  static double pq_parts[THREADS * APART], rr_parts[2][THREADS * APART];
  const int items = c->items, side = c->side;
  double *restrict u = c->u, *restrict r = c->r, *restrict p = c->p, *restrict q = c->q, *b = c->b;
#pragma omp parallel num_threads(omp_get_max_threads() < THREADS ? omp_get_max_threads() : THREADS)
  {
    const int me = omp_get_thread_num(), threads = omp_get_num_threads();
    const int first = (int)((long)items * me / threads), last = (int)((long)items * (me + 1) / threads);
    double part = 0.0, beta = 0.0;
    int turn = 0;
    for (int i = first; i < last; ++i) {
      u[i] = p[i] = 0.0;
      r[i] = b[i];
      part += b[i] * b[i];
    }
    rr_parts[turn][me * APART] = part;
#pragma omp barrier
    double rr = added_up(rr_parts[turn], threads);
    for (const double enough = 1e-12 * rr; rr > enough;) {
      for (int i = first; i < last; ++i) p[i] = r[i] + beta * p[i];
#pragma omp barrier
      part = 0.0;
      for (int i = first; i < last; ++i) {
        q[i] = times_matrix(p, i, side);
        part += p[i] * q[i];
      }
      pq_parts[me * APART] = part;
#pragma omp barrier
      const double alpha = rr / added_up(pq_parts, threads);
      part = 0.0;
      for (int i = first; i < last; ++i) {
        u[i] += alpha * p[i];
        r[i] -= alpha * q[i];
        part += r[i] * r[i];
      }
      turn = 1 - turn;
      rr_parts[turn][me * APART] = part;
#pragma omp barrier
      const double rest = added_up(rr_parts[turn], threads);
      beta = rest / rr;
      rr = rest;
    }
  }
}

typedef struct hand_arm {
  const cube *c;
  void (*solve)(const cube *);
} hand_arm;

static bool run_hand(void *with, uint64_t times, bench_took *took) {
  const hand_arm *arm = with;
  const double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) arm->solve(arm->c);
  took->all += (bench_now() - begin) * 1e-6;
  return is_solved(arm->c, arm->c->u);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void solve(int side, int tries) {
  char what[60], question[120];
  snprintf(what, sizeof what, "conjugate gradients, %d unknowns", side * side * side);
  if (!bench_wants("F3", what)) return;
  cube *c = bench_shared(sizeof *c);
  begin_cube(c, side);
  hand_arm with[2] = {{c, by_loops}, {c, by_region}};
  bench_apart by_hand[2] = {bench_start_apart(run_hand, &with[0]), bench_start_apart(run_hand, &with[1])};
  gk_arm arm;
  begin_gk(&arm, c);
  bench_took ignored = {0};
  if (!run_gk(&arm, 1, &ignored)) bench_fail("gk's solution isn't the one that is known");
  snprintf(question, sizeof question, "a solution in %d passes of four tasks: the graph, and by hand", c->passes);
  const char *loops = "by hand, a region per loop", *region = "by hand, one region for all";
  bench_measure(&(bench_table){.id = "F3", .what = what, .question = question, .unit = "ms", .tries = tries,
    .arms = {{.name = "gk", .run = run_gk, .with = &arm, .settle_ms = 12},
             {.name = loops, .run = bench_run_apart, .with = &by_hand[0], .settle_ms = 12},
             {.name = region, .run = bench_run_apart, .with = &by_hand[1], .settle_ms = 12}},
    .ratios = {{.what = "gk against the better by hand", .of = "gk", .against = {loops, region}, .goal = 1.02}}});
  end_gk(&arm);
  for (int k = 0; k < 2; ++k) bench_end_apart(&by_hand[k]);
}

int main(int argc, char **argv) {
  bench_begin(argc, argv, "solver");
  const bool quick = bench_is_quick();
  solve(quick ? 8 : 24, 0);
  solve(quick ? 12 : 80, quick ? 0 : 1);
  return bench_end();
}
