/* Conjugate gradients over MPI (table F11): docs/examples/mpi_cg.c, with exchanges at yields and by calls, and the same
 * by hand with MPI and OpenMP. Two ranks, each bound to a core; the program starts itself by mpirun. Rank 0 measures,
 * and tells the other rank each time what to run. */
#include "bench/harness/harness.h"
#include "bench/harness/must.h"
#if __has_include(<mpi.h>)
#define NDEBUG /* without the checks of agreement, which programs are released without */
#define main example_main
#include "docs/examples/mpi_cg.c"
#undef main

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

typedef struct by_hand {
  rank *me; /* its place in the box */
  double *u, *r, *p, *q, *b;
} by_hand;

static void hand_halos(const by_hand *h) {
  const int plane = cells_of_plane(h->me);
  const size_t last = (size_t)h->me->planes * (size_t)plane;
  MPI_Request requests[4];
  MPI_Irecv(h->p, plane, MPI_DOUBLE, h->me->below, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(h->p + last + plane, plane, MPI_DOUBLE, h->me->above, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(h->p + last, plane, MPI_DOUBLE, h->me->above, 0, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(h->p + plane, plane, MPI_DOUBLE, h->me->below, 1, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static double sum_of_ranks(double mine) {
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return mine;
}

/* A row of the matrix times p, inside of the border. @return Its part of p * q */
static double multiply_row(double *restrict q, const double *restrict p, int row, int side) {
  const int plane = row * row;
  double pq = 0.0;
#pragma omp simd reduction(+ : pq)
  for (int i = 0; i < side; ++i) {
    q[i] = 6.0 * p[i] - p[i - 1] - p[i + 1] - p[i - row] - p[i + row] - p[i - plane] - p[i + plane];
    pq += p[i] * q[i];
  }
  return pq;
}

/* The loops over the cells of a plane. */
static double begin_plane(double *restrict u, double *restrict r, double *restrict p, const double *restrict b, int n) {
  double rr = 0.0;
#pragma omp simd reduction(+ : rr)
  for (int i = 0; i < n; ++i) {
    u[i] = 0.0;
    r[i] = b[i];
    p[i] = 0.0;
    rr += b[i] * b[i];
  }
  return rr;
}
static double advance_plane(double *restrict u, double *restrict r, const double *restrict p, const double *restrict q,
                            double alpha, int n) {
  double rr = 0.0;
#pragma omp simd reduction(+ : rr)
  for (int i = 0; i < n; ++i) {
    u[i] += alpha * p[i];
    r[i] -= alpha * q[i];
    rr += r[i] * r[i];
  }
  return rr;
}

/* @return the passes */
static int solve_by_hand(const by_hand *h) {
  const int side = h->me->side, row = side + 2, plane = row * row, planes = h->me->planes;
  double *u = h->u, *r = h->r, *q = h->q, *p = h->p + plane;
  double rr = 0.0, beta = 0.0;
  int passes = 0;
#pragma omp parallel for schedule(static) reduction(+ : rr)
  for (int k = 0; k < planes; ++k)
    rr += begin_plane(u + plane * k, r + plane * k, p + plane * k, h->b + plane * k, plane);
  rr = sum_of_ranks(rr);
  for (const double limit = rr * 1e-12; rr > limit; ++passes) {
    double pq = 0.0, rest = 0.0;
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < plane * planes; ++i) p[i] = r[i] + beta * p[i];
    hand_halos(h);
#pragma omp parallel for collapse(2) schedule(static) reduction(+ : pq)
    for (int k = 0; k < planes; ++k)
      for (int j = 0; j < side; ++j) {
        const int first = plane * k + row * (j + 1) + 1;
        pq += multiply_row(q + first, p + first, row, side);
      }
    const double alpha = rr / sum_of_ranks(pq);
#pragma omp parallel for schedule(static) reduction(+ : rest)
    for (int k = 0; k < planes; ++k)
      rest += advance_plane(u + plane * k, r + plane * k, p + plane * k, q + plane * k, alpha, plane);
    rest = sum_of_ranks(rest);
    beta = rest / rr;
    rr = rest;
  }
  return passes;
}

/* ---- what both ranks run ----------------------------------------------------------------------------------------- */

enum way { HAND, YIELDS, CALLS, FLOOR, WAYS };
typedef struct ranks {
  options o;
  rank by[FLOOR]; /* for HAND only the place in the box */
  by_hand hand;
} ranks;

static void begin_ranks(ranks *all, int side, const rank *me) {
  all->o = (options){.backend = "openmp", .side = side, .planes = side * me->ranks, .tolerance = 1e-12};
  for (int way = HAND; way < FLOOR; ++way) {
    all->by[way] = *me;
    all->by[way].side = all->by[way].planes = side;
    all->by[way].first = side * me->number;
    if (way == HAND) continue;
    all->o.calls = way == CALLS;
    open_device(&all->by[way], &all->o);
    set_up(&all->by[way], &all->o, way == CALLS ? &calls_list : &yields_list);
  }
  const size_t plane = (size_t)cells_of_plane(&all->by[HAND]), cells = cells_of_slab(&all->by[HAND]);
  double **memory[] = {&all->hand.u, &all->hand.r, &all->hand.p, &all->hand.q, &all->hand.b};
  for (size_t k = 0; k < GK_COUNT(memory); ++k) *memory[k] = bench_alloc(cells + 2 * plane, sizeof(double));
  all->hand.me = &all->by[HAND];
  right_hand_side(&all->by[HAND], all->o.planes, all->hand.b);
}

static void end_ranks(ranks *all) {
  for (int way = YIELDS; way <= CALLS; ++way) {
    gk_graph_destroy(all->by[way].graph);
    gk_device_close(all->by[way].device);
  }
  double *memory[] = {all->hand.u, all->hand.r, all->hand.p, all->hand.q, all->hand.b};
  for (size_t k = 0; k < GK_COUNT(memory); ++k) free(memory[k]);
}

/* Adds the microseconds per pass; those of FLOOR are of one MPI_Allreduce. */
static bool run_way(ranks *all, enum way way, uint64_t times, double *took) {
  rank *me = &all->by[way == FLOOR ? HAND : way];
  const gk_status *totals = NULL;
  int passes = 1;
  double *u = way == HAND ? all->hand.u : way == FLOOR ? NULL : gk_bound(me->graph, U);
  if (u) memset(u, 0xff, cells_of_slab(me) * sizeof *u);
  MPI_Barrier(MPI_COMM_WORLD);
  const double started = bench_now();
  for (uint64_t k = 0; k < times; ++k)
    if (way == FLOOR) (void)sum_of_ranks(1.0);
    else if (way == HAND) passes = solve_by_hand(&all->hand);
    else {
      bench_must(gk_run(me->graph, on_yield, me, &totals));
      passes = (int)gk_passes(totals, PASSES);
    }
  *took += (bench_now() - started) * 1e-3 / passes;
  return !u || largest_error(me, all->o.planes, u) < 1e-3;
}

typedef struct bench_way { ranks *all; enum way way; } bench_way;

static bool run(void *with, uint64_t times, bench_took *took) {
  const bench_way *w = with;
  uint64_t order[2] = {w->way, times};
  MPI_Bcast(order, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  return run_way(w->all, w->way, times, &took->all);
}

/* Runs what rank 0 says, until it says WAYS. */
static void follow(ranks *all) {
  for (double ignored = 0;;) {
    uint64_t order[2];
    MPI_Bcast(order, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (order[0] == WAYS) return;
    (void)run_way(all, (enum way)order[0], order[1], &ignored);
  }
}

static void end_followers(void) { MPI_Bcast((uint64_t[2]){WAYS}, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD); }

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void measure_floor(ranks *all) {
  bench_floor(&(bench_table){.id = "floor", .what = "what the machine takes", .unit = "us",
    .question = "what can no exchange be faster than?",
    .variants = {{.name = "MPI_Allreduce of a double", .run = run, .with = &(bench_way){all, FLOOR}}}});
}

static void measure(ranks *all, double goal_of_yields) {
  char what[80];
  snprintf(what, sizeof what, "conjugate gradients over MPI, 2 ranks of %d^3 cells", all->o.side);
  const char *hand = "MPI and OpenMP by hand", *again = "by hand once more", *yields = "gk, exchanges at yields",
             *calls = "gk, exchanges by calls";
  bench_measure(&(bench_table){.id = "F11", .what = what, .unit = "us", .turns = 41,
    .question = "a pass with a halo and two sums, each rank on a core",
    .variants = {{.name = hand, .run = run, .with = &(bench_way){all, HAND}},
                 {.name = again, .run = run, .with = &(bench_way){all, HAND}},
                 {.name = yields, .run = run, .with = &(bench_way){all, YIELDS}},
                 {.name = calls, .run = run, .with = &(bench_way){all, CALLS}}},
    .ratios = {{.what = "at yields against by hand", .of = yields, .against = {hand}, .goal = goal_of_yields},
               {.what = "by calls against by hand", .of = calls, .against = {hand}, .goal = 1.05},
               {.what = "by hand once more against itself", .of = again, .against = {hand}}}});
}

static bool is_quick(char **argv) {
  while (*argv && strcmp(*argv, "--quick") != 0) ++argv;
  return *argv != NULL;
}

static bool is_rank(void) { return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE"); }

/* In the place of this process, if it isn't a rank. With --quick a rank that waits leaves its core to others. */
static void start_ranks(char **argv, int argc) {
  if (is_rank()) return;
  static char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  char *const first[] = {"mpirun", "-n", "2", "--bind-to", sysconf(_SC_NPROCESSORS_ONLN) < 2 ? "none" : "core",
                         "--oversubscribe", "--mca", "mpi_yield_when_idle", is_quick(argv) ? "1" : "0", path};
  char **command = bench_alloc(GK_COUNT(first) + (size_t)argc, sizeof *command);
  if (length <= 0) bench_fail("/proc/self/exe can't be read");
  memcpy(command, first, sizeof first);
  memcpy(command + GK_COUNT(first), argv + 1, (size_t)argc * sizeof *argv);
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0); /* mpirun refuses root without these two */
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  execvp(command[0], command);
  free(command);
}

int main(int argc, char **argv) {
  start_ranks(argv, argc);
  int code = 0;
  if (!is_rank()) {
    bench_begin(argc, argv, "mpi_solver");
    return bench_missing("mpirun isn't installed");
  }
  rank me;
  (void)begin_rank(&me, 1, argv);
  if (me.number == 0) bench_begin(argc, argv, "mpi_solver");
  const int first = is_quick(argv) ? 6 : 16;
  for (int side = first; side <= 32 && side < 4 * first; side *= 2) {
    ranks all = {0};
    begin_ranks(&all, side, &me);
    if (me.number > 0) follow(&all);
    else {
      if (side == first) measure_floor(&all);
      measure(&all, side == first ? 1.10 : 1.05);
      end_followers();
    }
    end_ranks(&all);
  }
  if (me.number == 0) code = bench_end();
  MPI_Finalize();
  return code;
}
#else
int main(int argc, char **argv) {
  bench_begin(argc, argv, "mpi_solver");
  return bench_missing("this benchmark was built without MPI (mpicc, libopenmpi-dev)");
}
#endif
