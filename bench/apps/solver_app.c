#include "bench/apps/solver_app.h"
#include "bench/harness/apart.h"
#include "gk_kernel.h"
#include <math.h>

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
GK_KERNEL(end_pass, (inout(course, c), inout(double, rr), out(double, pq), out(int, again))) {
  c[0].beta = rr[0] / c[0].rr;
  c[0].rr = rr[0];
  again[0] = rr[0] > 1e-12 * c[0].first ? 1 : 0;
  rr[0] = 0.0;
  pq[0] = 0.0;
}
GK_SOURCE_END

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
    GK_RUN(end_pass, GK_ONE, COURSE, RR, PQ, AGAIN),
  GK_END};
enum { BEFORE = 3, PASS_AT /* behind the DO_WHILE */, PASS = 4 };
const gk_list bench_solver_list = GK_LIST(solver, tasks, slots);
const gk_list bench_solver_begin = {GK_ABI, "begin", tasks, BEFORE, slots, GK_COUNT(slots)};
const gk_list bench_solver_pass = {GK_ABI, "pass", tasks + PASS_AT, PASS, slots, GK_COUNT(slots)};

void bench_solver_cube(cube *c, int side) {
  c->side = side;
  c->items = side * side * side;
  c->known = bench_shared((size_t)c->items * sizeof *c->known);
  c->b = bench_shared((size_t)c->items * sizeof *c->b);
  uint32_t random = 1;
  for (int i = 0; i < c->items; ++i) {
    random = random * 1664525u + 1013904223u;
    c->known[i] = (double)(random >> 8) / (1 << 24) - 0.5;
  }
  for (int i = 0; i < c->items; ++i) c->b[i] = bench_times_matrix(c->known, i, side);
}

bool bench_solver_is_done(const cube *c, const double *u) {
  for (int i = 0; i < c->items; ++i)
    if (!(fabs(u[i] - c->known[i]) < 1e-3)) return false; /* a NaN is wrong, too */
  return true;
}
