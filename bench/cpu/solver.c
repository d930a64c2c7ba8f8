/* A whole application (table F3): conjugate gradients on the seven-point Poisson matrix of a cube, by gk's loop and by
 * hand with OpenMP. Each variant begins at 0 and stops when the residual is a millionth of the first. All must find the
 * known solution. */
#include "bench/apps/solver_app.h"
#include "bench/harness/apart.h"
#include "bench/harness/cpu_floor.h"
#include "bench/harness/must.h"
#include <omp.h>
#include <stdio.h>
#include <string.h>

/* Overwrites the solution of the call before. */
static void spoil(const cube *c, double *u) { memset(u, 0xff, (size_t)c->items * sizeof *u); }

/* ---- by gk ------------------------------------------------------------------------------------------------------- */

typedef struct graph_variant {
  cube *c;
  gk_device *device;
  gk_graph *graph, *begin; /* all tasks, and those before the loop, on the same memory */
} graph_variant;

static void begin_gk(graph_variant *v, cube *c) {
  v->c = c;
  bench_must(gk_device_open(&(gk_device_desc){.backend = "openmp"}, &v->device));
  bench_must(gk_graph_create(v->device, &bench_solver_list, 0, &v->graph));
  for (gk_slot slot = U; slot <= B; ++slot) bench_must(gk_resize(v->graph, slot, (size_t)c->items));
  bench_must(gk_bind_int(v->graph, ITEMS, c->items));
  bench_must(gk_bind_int(v->graph, SIDE, c->side));
  bench_must(gk_upload(v->device, gk_bound(v->graph, B), c->b, (size_t)c->items * sizeof *c->b));
  bench_must(gk_graph_create(v->device, &bench_solver_begin, 0, &v->begin));
  for (gk_slot slot = U; slot <= B; ++slot) bench_must(gk_bind(v->begin, slot, gk_bound(v->graph, slot)));
  bench_must(gk_bind_int(v->begin, ITEMS, c->items));
  bench_must(gk_bind_int(v->begin, SIDE, c->side));
}

static bool run_gk(void *with, uint64_t times, bench_took *took) {
  const graph_variant *v = with;
  const gk_status *status = NULL;
  spoil(v->c, gk_bound(v->graph, U));
  const double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) {
    bench_must(gk_launch(v->graph, 0));
    bench_must(gk_wait(v->graph, &status));
  }
  took->all += (bench_now() - begin) * 1e-6;
  v->c->passes = (int)status->loops[0].passes;
  return bench_solver_is_done(v->c, gk_bound(v->graph, U));
}

static bool is_zero(const cube *c, const double *u) {
  int same = 0;
  for (int i = 0; i < c->items; ++i) same += u[i] == 0.0;
  return same == c->items;
}

/* A launch without the loop. */
static bool begin_by_gk(void *with, uint64_t times, bench_took *took) {
  const graph_variant *v = with;
  spoil(v->c, gk_bound(v->graph, U));
  const double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) {
    bench_must(gk_launch(v->begin, 0));
    bench_must(gk_wait(v->begin, NULL));
  }
  took->all += (bench_now() - begin) * 1e-6;
  return is_zero(v->c, gk_bound(v->graph, U));
}

static void end_gk(const graph_variant *v) {
  gk_graph_destroy(v->begin);
  gk_graph_destroy(v->graph);
  gk_device_close(v->device);
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

typedef struct room { double *u, *r, *p, *q, *b; } room;

static void by_loops(const cube *c, const room *at) {
  const int items = c->items, side = c->side;
  double *restrict u = at->u, *restrict r = at->r, *restrict p = at->p, *restrict q = at->q, *b = at->b;
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
      q[i] = bench_times_matrix(p, i, side);
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

/* One team for all passes. Each thread adds up the sums itself, so three barriers are enough. */
static void by_region(const cube *c, const room *at) {
  static double pq_parts[THREADS * APART], rr_parts[2][THREADS * APART];
  const int items = c->items, side = c->side;
  double *restrict u = at->u, *restrict r = at->r, *restrict p = at->p, *restrict q = at->q, *b = at->b;
#pragma omp parallel num_threads(bench_cpu_threads() < THREADS ? bench_cpu_threads() : THREADS)
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
        q[i] = bench_times_matrix(p, i, side);
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

/* In a process of its own. */
typedef struct hand_variant {
  const cube *c;
  void (*solve)(const cube *, const room *);
  room at; /* NULL: not begun */
} hand_variant;

static void begin_hand(hand_variant *v) {
  double **all[] = {&v->at.u, &v->at.r, &v->at.p, &v->at.q, &v->at.b};
  const size_t items = (size_t)v->c->items;
  for (size_t k = 0; k < GK_COUNT(all); ++k) *all[k] = bench_large_zeros(items, sizeof(double));
  memcpy(v->at.b, v->c->b, items * sizeof *v->at.b);
}

static bool run_hand(void *with, uint64_t times, bench_took *took) {
  hand_variant *v = with;
  if (!v->at.u) begin_hand(v);
  spoil(v->c, v->at.u);
  const double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) v->solve(v->c, &v->at);
  took->all += (bench_now() - begin) * 1e-6;
  return bench_solver_is_done(v->c, v->at.u);
}

/* Solves for a right-hand side of 0, so the residual is 0 before the first pass. */
static bool begin_by_hand(void *with, uint64_t times, bench_took *took) {
  hand_variant *v = with;
  if (!v->at.u) {
    begin_hand(v);
    memset(v->at.b, 0, (size_t)v->c->items * sizeof *v->at.b);
  }
  spoil(v->c, v->at.u);
  const double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) v->solve(v->c, &v->at);
  took->all += (bench_now() - begin) * 1e-6;
  return is_zero(v->c, v->at.u);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Processes by hand. AGAIN_REGION repeats REGION, which shows the precision. BEGIN has no pass to do. */
enum { LOOPS, REGION, AGAIN_REGION, BEGIN, HANDS };

static void solve(int side, int tries) {
  char what[60], question[120];
  snprintf(what, sizeof what, "conjugate gradients, %d unknowns", side * side * side);
  if (!bench_wants("F3", what)) return;
  cube *c = bench_shared(sizeof *c);
  bench_solver_cube(c, side);
  hand_variant with[HANDS];
  bench_apart by_hand[HANDS];
  for (int k = 0; k < HANDS; ++k) {
    with[k] = (hand_variant){.c = c, .solve = k == LOOPS ? by_loops : by_region};
    by_hand[k] = bench_start_apart(k == BEGIN ? begin_by_hand : run_hand, &with[k]);
  }
  graph_variant by_gk;
  begin_gk(&by_gk, c);
  bench_took ignored = {0};
  if (!run_gk(&by_gk, 1, &ignored)) bench_fail("gk's solution isn't the one that is known");
  snprintf(question, sizeof question, "a solution in %d passes of four tasks: the graph, and by hand", c->passes);
  const char *loops = "by hand, a region per loop", *region = "by hand, one region for all",
             *again = "by hand, one region, once more";
  bench_measure(&(bench_table){.id = "F3", .what = what, .question = question, .unit = "ms", .tries = tries,
    .variants = {{.name = "gk", .run = run_gk, .with = &by_gk, .idle_ms = BENCH_IDLE_MS},
                 {.name = loops, .run = bench_run_apart, .with = &by_hand[LOOPS], .idle_ms = BENCH_IDLE_MS},
                 {.name = region, .run = bench_run_apart, .with = &by_hand[REGION], .idle_ms = BENCH_IDLE_MS},
                 {.name = again, .run = bench_run_apart, .with = &by_hand[AGAIN_REGION], .idle_ms = BENCH_IDLE_MS}},
    .ratios = {{.what = "gk against the better by hand", .of = "gk", .against = {loops, region}, .goal = 1.02},
               {.what = "by hand once more against itself", .of = again, .against = {region}},
               {.what = "by hand once more against the better by hand", .of = again, .against = {loops, region}}}});
  snprintf(what, sizeof what, "only what is before the loop, %d unknowns", c->items);
  bench_measure(&(bench_table){.id = "F3", .what = what, .question = "what does a launch add to it?", .unit = "ms",
    .tries = tries,
    .variants = {{.name = "gk", .run = begin_by_gk, .with = &by_gk, .idle_ms = BENCH_IDLE_MS},
                 {.name = region, .run = bench_run_apart, .with = &by_hand[BEGIN], .idle_ms = BENCH_IDLE_MS}},
    .ratios = {{.what = "gk against by hand", .of = "gk", .against = {region}}}});
  end_gk(&by_gk);
  for (int k = 0; k < HANDS; ++k) bench_end_apart(&by_hand[k]);
}

int main(int argc, char **argv) {
  bench_begin(argc, argv, "solver");
  bench_cpu_floor();
  const bool quick = bench_is_quick();
  solve(quick ? 8 : 24, 0);
  solve(quick ? 12 : 80, quick ? 0 : 1);
  return bench_end();
}
