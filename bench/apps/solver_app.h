/* Conjugate gradients on the seven-point Poisson matrix of a cube, from 0 until the residual is a millionth of the
 * first: the task list, the same in two parts for a loop on the host, and a problem with a known solution. */
#ifndef BENCH_SOLVER_APP_H
#define BENCH_SOLVER_APP_H
#include "gk.h"

enum { U = 1, R, P, Q, B, ITEMS, SIDE, RR, PQ, COURSE, AGAIN };
extern const gk_list bench_solver_list;
extern const gk_list bench_solver_begin; /* the part before its loop */
extern const gk_list bench_solver_pass;  /* a pass, which writes to AGAIN whether another one follows */

typedef struct cube {
  int side, items, passes; /* that gk needed */
  double *known, *b;       /* the solution and the right-hand side, in memory that processes share */
} cube;

void bench_solver_cube(cube *c, int side);
bool bench_solver_is_done(const cube *c, const double *u);

static inline double bench_times_matrix(const double *of, int i, int n) {
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
#endif
