/* Conjugate gradients over MPI: Poisson's equation in a box that is cut into slabs, one for each rank.
 *
 * Every rank runs the same list, with the whole loop in it, on any backend. Where the ranks exchange data, the list
 * has a GK_YIELD. gk_run calls `on_yield` there, which calls MPI on the thread that called gk_run. So MPI needs
 * MPI_THREAD_FUNNELED only. With --calls the exchanges are GK_CALL_HOSTs in the list, on backends where the host
 * decides and reaches all memory (OpenMP).
 *
 * docs/distributed.md explains the rules that keep the ranks in agreement. nccl_cg.c includes this file.
 *
 *   mpicc -std=c11 mpi_cg.c $(pkg-config --cflags --libs gk) -lm -o mpi_cg && mpirun -n 2 ./mpi_cg --side 32 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for sched_getaffinity */
#endif
#include <gk_info.h>
#include <gk_kernel.h>
#include <math.h>
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

GK_SOURCE(mpi_cg)
GK_STRUCT(residual) { double rr, limit, beta; }; /* squared, the limit for it, the last direction's factor */

/* Each plane has a border of zeroes, so that all cells have neighbours: its rows have two cells more than the box. p
 * has a plane of the neighbours' cells in front of the slab and one behind it, so p[i + plane] belongs to u[i]. */
GK_KERNEL(begin, (out(double, u), out(double, r), out(double, p), sum(double, rr), in(double, b), value(int, plane))) {
  u[i] = 0.0;
  r[i] = b[i];
  p[i + plane] = 0.0;
  rr[0] += b[i] * b[i];
}
GK_KERNEL(begin_residual, (out(residual, c), inout(double, rr), out(double, pq), out(int, again),
                           value(double, tolerance))) {
  c[0].rr = rr[0];
  c[0].limit = rr[0] * tolerance;
  c[0].beta = 0.0;
  again[0] = rr[0] > 0.0 ? 1 : 0;
  rr[0] = 0.0;
  pq[0] = 0.0;
}
GK_KERNEL(direct, (inout(double, p), in(double, r), in(residual, c), value(int, plane))) {
  p[i + plane] = r[i] + c[0].beta * p[i + plane];
}
GK_KERNEL_3D(multiply, (out(double, q), sum(double, pq), in(double, p), value(int, row))) {
  int plane = row * row, at = i + 1 + row * (j + 1) + plane * (k + 1);
  double total = 6.0 * p[at] - p[at - 1] - p[at + 1] - p[at - row] - p[at + row] - p[at - plane] - p[at + plane];
  q[at - plane] = total;
  pq[0] += p[at] * total;
}
GK_KERNEL(advance, (inout(double, u), inout(double, r), sum(double, rr), in(double, p), in(double, q), in(double, pq),
                    in(residual, c), value(int, plane))) {
  double alpha = c[0].rr / pq[0], rest = r[i] - alpha * q[i];
  u[i] += alpha * p[i + plane];
  r[i] = rest;
  rr[0] += rest * rest;
}
GK_KERNEL(note, (out(double, history), out(int, full), in(double, rr), in(int, pass), value(int, room))) {
  full[0] = pass[0] >= room ? 1 : 0;
  if (pass[0] < room) history[pass[0]] = rr[0];
}
GK_KERNEL(judge, (inout(residual, c), inout(double, rr), out(double, pq), out(int, again), out(int, save))) {
  c[0].beta = rr[0] / c[0].rr;
  c[0].rr = rr[0];
  again[0] = rr[0] > c[0].limit ? 1 : 0; /* the same on each rank, since rr is */
  save[0] = rr[1] > 0.0 ? 1 : 0;
  rr[0] = 0.0;
  pq[0] = 0.0;
}
GK_SOURCE_END

enum slot {
  U = 1, R, P, Q, B, CELLS, SIDE, ROW, PLANE, PLANES, RR, PQ, RESIDUAL, AGAIN, SAVING, TOLERANCE, HISTORY, ROOM, PASS,
  FULL, RANK, AT_START, AT_HALO, AT_PQ, AT_RR
};
enum label { START = 1, HALO, SUM_PQ, SUM_RR, NOTE, SAVE, PASSES }; /* 0 is the end of a launch */

static const gk_slot_desc slots[] = {
  GK_BUFFER(U, double), GK_BUFFER(R, double), GK_BUFFER(P, double), GK_BUFFER(Q, double), GK_BUFFER(B, double),
  GK_SCALAR(CELLS, int), GK_SCALAR(SIDE, int), GK_SCALAR(ROW, int), GK_SCALAR(PLANE, int), GK_SCALAR(PLANES, int),
  GK_BUFFER(RR, double), /* in memory that the host reaches: the sum, and votes to save and to stop */
  GK_BUFFER(PQ, double), /* likewise */
  GK_OWN(RESIDUAL, residual, 1), GK_OWN(AGAIN, int, 1), GK_OWN(SAVING, int, 1), GK_DEFAULT(TOLERANCE, double, 1e-12),
  GK_OWN(HISTORY, double, 16), GK_ROOM(ROOM, HISTORY), GK_PASS(PASS, PASSES), GK_OWN(FULL, int, 1),
  {.slot = RANK, .type = GK_HOST_PTR, .name = "RANK"}, /* the struct rank, for calls */
  GK_DEFAULT(AT_START, int, START), GK_DEFAULT(AT_HALO, int, HALO), GK_DEFAULT(AT_PQ, int, SUM_PQ),
  GK_DEFAULT(AT_RR, int, SUM_RR)};

#define TASKS(start, halo, sum_pq, sum_rr) { \
  GK_FILL(RR, GK_ONE, 0), \
  GK_RUN(begin, CELLS, U, R, P, RR, B, PLANE), \
  start, \
  GK_RUN(begin_residual, GK_ONE, RESIDUAL, RR, PQ, AGAIN, TOLERANCE), \
  GK_DO_WHILE(AGAIN, .max_iterations = MOST_PASSES, .label = PASSES), \
    GK_RUN(direct, CELLS, P, R, RESIDUAL, PLANE), \
    halo, \
    GK_RUN_3D(multiply, SIDE, SIDE, PLANES, Q, PQ, P, ROW), \
    sum_pq, \
    GK_RUN(advance, CELLS, U, R, RR, P, Q, PQ, RESIDUAL, PLANE), \
    sum_rr, \
    GK_CHECKPOINT(NOTE, FULL), /* a rank whose buffer is full pauses alone; the others wait in the next exchange */ \
      GK_RUN(note, GK_ONE, HISTORY, FULL, RR, PASS, ROOM), \
    GK_END, \
    GK_RUN(judge, GK_ONE, RESIDUAL, RR, PQ, AGAIN, SAVING), \
    GK_CHECKPOINT(SAVE, SAVING), GK_END, /* all ranks or none: they have voted */ \
  GK_END}
enum { MOST_PASSES = 10000 };

/* What a rank knows. */
typedef struct rank {
  int number, ranks, below, above; /* of the neighbours, or MPI_PROC_NULL */
  int side, planes, first;         /* cells in a row of the box, planes of this rank, number of the first one */
  int exchanges;                   /* made so far */
  size_t room;                     /* of HISTORY */
  gk_device *device;
  gk_graph *graph;
  double *p;        /* P at an address that MPI can use; NULL: planes are staged */
  double *staged;   /* four planes: those that are sent, those that are received */
  double *rr, *pq;  /* RR and PQ on the host */
  const char *file; /* where to save: the beginning of the files' names */
  unsigned saved;
} rank;

static int cells_of_plane(const rank *me) { return (me->side + 2) * (me->side + 2); } /* with its border */
static size_t cells_of_slab(const rank *me) { return (size_t)me->planes * (size_t)cells_of_plane(me); }

static volatile sig_atomic_t wants_save, wants_stop; /* this rank's votes */

/* An error of one rank ends all: otherwise the others would wait for it in their next exchange. */
static _Noreturn void fail(const rank *me, const char *what) {
  fprintf(stderr, "rank %d: %s%s%s\n", me->number, what, *gk_error() ? ": " : "", gk_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
  abort();
}

/* All ranks must be at the same label for the same number of times. In debug builds each exchange checks this, and so
 * do a state's saving and the end. MPI alone would wait for ever, or add up numbers that don't belong together. */
static void agreed(rank *me, int label) {
#ifndef NDEBUG
  static const char *const names[] = {"the end", [START] = "START", [HALO] = "HALO", [SUM_PQ] = "SUM_PQ",
                                      [SUM_RR] = "SUM_RR", [SAVE] = "SAVE"};
  int mine[2] = {label, me->exchanges}, *all = malloc((size_t)me->ranks * sizeof mine), differ = 0;
  if (!all) fail(me, "memory");
  MPI_Allgather(mine, 2, MPI_INT, all, 2, MPI_INT, MPI_COMM_WORLD);
  for (int k = 1; k < me->ranks; ++k) differ |= all[2 * k] != all[0] || all[2 * k + 1] != all[1];
  if (differ && me->number == 0) { /* by one write, since mpirun may lose what follows when the job is aborted */
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    for (int k = 0; to && k < me->ranks; ++k)
      fprintf(to, "%s rank %d is at %s, exchange %d", k ? ";" : "", k, names[all[2 * k]], all[2 * k + 1]);
    if (to) fclose(to);
    fprintf(stderr, "the ranks don't agree:%s\n", text ? text : "");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (differ) MPI_Barrier(MPI_COMM_WORLD); /* rank 0 prints and ends the job */
  free(all);
#else
  (void)me, (void)label;
#endif
}

/* Gives the first and the last plane of the slab to the neighbours, and gets theirs. */
static gk_result exchange_halos(rank *me) {
  const int plane = cells_of_plane(me);
  const size_t bytes = (size_t)plane * sizeof(double), inner = (size_t)me->planes * bytes;
  char *p = NULL;
  double *low, *high, *from_below, *from_above;
  if (me->p) {
    from_below = me->p;
    low = from_below + plane;
    high = from_below + me->planes * plane;
    from_above = high + plane;
  } else { /* at a yield: calls may not ask gk */
    p = gk_bound(me->graph, P);
    low = me->staged;
    high = low + plane;
    from_below = high + plane;
    from_above = from_below + plane;
    gk_result result = gk_download(me->device, low, p + bytes, bytes);
    if (result == GK_OK) result = gk_download(me->device, high, p + inner, bytes);
    if (result != GK_OK) return result;
  }
  MPI_Request requests[4];
  MPI_Irecv(from_below, plane, MPI_DOUBLE, me->below, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(from_above, plane, MPI_DOUBLE, me->above, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(high, plane, MPI_DOUBLE, me->above, 0, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(low, plane, MPI_DOUBLE, me->below, 1, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  if (me->p) return GK_OK;
  gk_result result = gk_upload(me->device, p, from_below, bytes); /* zeroes where there is no neighbour */
  return result == GK_OK ? gk_upload(me->device, p + inner + bytes, from_above, bytes) : result;
}

/* What all ranks do together at a label. MPI's own errors end the job, by its default handler. */
static gk_result exchange(rank *me, int label) {
  agreed(me, label);
  ++me->exchanges;
  if (label == HALO) return exchange_halos(me);
  if (label == SUM_PQ) MPI_Allreduce(MPI_IN_PLACE, me->pq, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  else { /* votes cost nothing in a sum that is there anyway */
    me->rr[1] = wants_save;
    me->rr[2] = wants_stop;
    MPI_Allreduce(MPI_IN_PLACE, me->rr, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (me->rr[2] > 0.0) return gk_cancel(me->graph); /* all ranks: all stop at NOTE, and don't count this pass */
  }
  return GK_OK;
}

/* Each rank writes its cells: all ranks are in the same pass here. A file that can't be written ends no rank. */
static gk_result save(rank *me) {
  const size_t cells = cells_of_slab(me);
  double *u = malloc(cells * sizeof *u);
  agreed(me, SAVE);
  gk_result result = u ? gk_read(me->graph, U, u, cells) : GK_ERROR_MEMORY;
  char name[4096];
  snprintf(name, sizeof name, "%s.%d", me->file, me->number);
  FILE *file = result == GK_OK ? fopen(name, "wb") : NULL;
  bool is_written = file && fwrite(u, sizeof *u, cells, file) == cells;
  if (file && fclose(file) != 0) is_written = false;
  if (result == GK_OK && !is_written) perror(name);
  free(u);
  wants_save = 0;
  me->saved += is_written;
  return result == GK_OK ? gk_write(me->graph, SAVING, &(int){0}, 1) : result;
}

static gk_result on_yield(void *user, gk_graph *graph, const gk_status *status) {
  rank *me = user;
  if (status->yielded == NOTE) return gk_resize(graph, HISTORY, me->room *= 2);
  return status->yielded == SAVE ? save(me) : exchange(me, status->yielded);
}
static gk_result call(const gk_value *args, void *native) { /* the memory, a label, the rank */
  (void)native;
  return exchange(args[2].ptr, args[1].i32);
}

static const gk_task by_yields[] = TASKS(GK_YIELD(START), GK_YIELD(HALO), GK_YIELD(SUM_PQ), GK_YIELD(SUM_RR));
static const gk_task by_calls[] = TASKS(GK_CALL_HOST(call, RR, AT_START, RANK), GK_CALL_HOST(call, P, AT_HALO, RANK),
                                        GK_CALL_HOST(call, PQ, AT_PQ, RANK), GK_CALL_HOST(call, RR, AT_RR, RANK));
static const gk_list yields_list = GK_LIST(cg_by_yields, by_yields, slots);
static const gk_list calls_list = GK_LIST(cg_by_calls, by_calls, slots);

typedef struct options { const char *backend; bool calls, history; int side, planes; double tolerance; } options;

/* The solution: a number for each cell of the whole box, 0 around it. */
static double solution(const rank *me, int planes, int x, int y, int z) {
  if (x < 0 || y < 0 || z < 0 || x >= me->side || y >= me->side || z >= planes) return 0.0;
  uint32_t side = (uint32_t)me->side, h = (((uint32_t)z * side + (uint32_t)y) * side + (uint32_t)x) * 2654435769u;
  h = (h ^ h >> 15) * 2246822519u;
  return (double)((h ^ h >> 13) >> 8) / (1 << 24) - 0.5;
}

/* A loop over the cells of the slab: `at` is the place in memory, x, y, z that in the box. */
#define EACH_CELL(me, at, x, y, z) \
  for (int z = (me)->first; z < (me)->first + (me)->planes; ++z) \
    for (int y = 0; y < (me)->side; ++y) \
      for (int x = 0, at = cells_of_plane(me) * (z - (me)->first) + ((me)->side + 2) * (y + 1) + 1; x < (me)->side; \
           ++x, ++at)

static void right_hand_side(const rank *me, int planes, double *b) { /* b: zeroes */
  EACH_CELL(me, at, x, y, z)
    b[at] = 6.0 * solution(me, planes, x, y, z) - solution(me, planes, x - 1, y, z) -
            solution(me, planes, x + 1, y, z) - solution(me, planes, x, y - 1, z) - solution(me, planes, x, y + 1, z) -
            solution(me, planes, x, y, z - 1) - solution(me, planes, x, y, z + 1);
}

static double largest_error(const rank *me, int planes, const double *u) {
  double most = 0.0;
  EACH_CELL(me, at, x, y, z) most = fmax(most, fabs(u[at] - solution(me, planes, x, y, z)));
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

static bool mpi_takes_memory_of(const char *backend) {
#if defined(MPIX_CUDA_AWARE_SUPPORT) && MPIX_CUDA_AWARE_SUPPORT
  if (strcmp(backend, "cuda") == 0) return MPIX_Query_cuda_support() == 1;
#endif
#if defined(MPIX_ROCM_AWARE_SUPPORT) && MPIX_ROCM_AWARE_SUPPORT
  if (strcmp(backend, "hip") == 0) return MPIX_Query_rocm_support() == 1;
#endif
  (void)backend;
  return false;
}

/* Each rank of a machine gets a device, and an equal part of the cores among those that mpirun allows it. A rank
 * without a device of its own shares the first one. */
static void open_device(rank *me, const options *o) {
  MPI_Comm machine;
  int local = 0, locals = 1;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, me->number, MPI_INFO_NULL, &machine);
  MPI_Comm_rank(machine, &local);
  MPI_Comm_size(machine, &locals);
  MPI_Comm_free(&machine);
  const int cores = (int)sysconf(_SC_NPROCESSORS_ONLN), part = cores > locals ? cores / locals : 1;
  cpu_set_t bound;
  const int allowed = sched_getaffinity(0, sizeof bound, &bound) == 0 ? CPU_COUNT(&bound) : part;
  gk_device_desc desc = {.backend = o->backend, .threads = part < allowed ? part : allowed};
  if (gk_device_open(&desc, &me->device) != GK_OK) fail(me, "no device");
  gk_device *own = NULL; /* of the same backend as the first one */
  desc.backend = gk_device_describe(me->device)->backend;
  desc.ordinal = local;
  if (local == 0 || gk_device_open(&desc, &own) != GK_OK) return;
  gk_device_close(me->device);
  me->device = own;
}

/* Memory of `count` numbers that the host reaches, bound to a slot. */
static double *bind_host_memory(rank *me, gk_slot slot, size_t count) {
  void *memory = gk_alloc(me->device, count * sizeof(double), GK_HOST_MEMORY);
  if (!memory || gk_bind(me->graph, slot, memory) != GK_OK) fail(me, "memory of the host");
  return gk_host_address(me->device, memory);
}

static void set_up(rank *me, const options *o, const gk_list *list) {
  const int plane = cells_of_plane(me);
  const size_t cells = cells_of_slab(me);
  if (gk_graph_create(me->device, list, GK_CANCELLABLE, &me->graph) != GK_OK)
    fail(me, "the list");
  for (gk_slot slot = U; slot <= B; ++slot)
    if (gk_resize(me->graph, slot, slot == P ? cells + 2 * (size_t)plane : cells) != GK_OK) fail(me, "memory");
  me->rr = bind_host_memory(me, RR, 3);
  me->pq = bind_host_memory(me, PQ, 1);
  gk_bind_int(me->graph, CELLS, (int64_t)cells);
  gk_bind_int(me->graph, SIDE, me->side);
  gk_bind_int(me->graph, ROW, me->side + 2);
  gk_bind_int(me->graph, PLANE, plane);
  gk_bind_int(me->graph, PLANES, me->planes);
  gk_bind_float(me->graph, TOLERANCE, o->tolerance);
  gk_bind(me->graph, RANK, me);
  me->p = gk_host_address(me->device, gk_bound(me->graph, P));
  if (!me->p && mpi_takes_memory_of(gk_device_describe(me->device)->backend)) me->p = gk_bound(me->graph, P);
  void *staged = me->p ? NULL : gk_alloc(me->device, 4 * (size_t)plane * sizeof(double), GK_HOST_MEMORY);
  if (!me->p && !staged) fail(me, "memory of the host");
  if (staged) me->staged = gk_host_address(me->device, staged);
  if (o->calls && !me->p) fail(me, "--calls need memory that the host reaches");
  double *b = calloc(cells, sizeof *b);
  if (!b) fail(me, "memory");
  right_hand_side(me, o->planes, b);
  if (gk_write(me->graph, B, b, cells) != GK_OK) fail(me, "the right-hand side");
  free(b);
}

/* Ends with status 1 if the solution is wrong. */
static int report(rank *me, const options *o, const gk_status *totals) {
  const size_t cells = cells_of_slab(me);
  const int passes = (int)gk_passes(totals, PASSES);
  double *u = malloc(cells * sizeof *u), *history = calloc((size_t)passes + 1, sizeof *history);
  if (!u || !history) fail(me, "memory");
  if (gk_read(me->graph, U, u, cells) || gk_read(me->graph, HISTORY, history, (size_t)passes)) fail(me, "reading");
  const double error = largest_error(me, o->planes, u);
  if (me->number == 0) {
    for (int k = 0; k < passes && o->history; ++k) printf("%.17g\n", history[k]);
    printf("%d ranks on %s: %d passes, %d exchanges by the host, saved %u times, %s, largest error %.1e\n", me->ranks,
           gk_device_describe(me->device)->backend, passes, me->exchanges, me->saved,
           totals->state == GK_CANCELLED ? "stopped" : totals->limit ? "not converged" : "finished", error);
  }
  free(u);
  free(history);
  if (totals->limit) return 1;
  return totals->state == GK_FINISHED && o->tolerance <= 1e-12 && !(error < 1e-3);
}

static void on_signal(int number) {
  if (number == SIGUSR1) wants_save = 1;
  else wants_stop = 1;
}

/* @return whether the word is a number from `least` to `most` */
static bool read_number(const char *word, double least, double most, double *number) {
  char *end;
  *number = strtod(word, &end);
  return *word && !*end && *number >= least && *number <= most;
}

static options read_options(int argc, char **argv, rank *me) {
  options o = {.side = 16, .tolerance = 1e-12};
  double side = 16, planes = 0;
  bool is_right = true;
  for (int k = 1; k < argc && is_right; ++k) {
    const char *word = argv[k];
    if (strcmp(word, "--calls") == 0) o.calls = true;
    else if (strcmp(word, "--history") == 0) o.history = true;
    else if (++k == argc) is_right = false;
    else if (strcmp(word, "--backend") == 0) o.backend = argv[k];
    else if (strcmp(word, "--save") == 0) me->file = argv[k];
    else if (strcmp(word, "--side") == 0) is_right = read_number(argv[k], 1, 1000, &side);
    else if (strcmp(word, "--planes") == 0) is_right = read_number(argv[k], me->ranks, 1000.0 * me->ranks, &planes);
    else if (strcmp(word, "--tolerance") == 0) is_right = read_number(argv[k], 0, 1, &o.tolerance);
    else is_right = false;
  }
  o.side = (int)side;
  o.planes = planes > 0 ? (int)planes : o.side * me->ranks;
  if (!is_right || o.side != side || (planes > 0 && o.planes != planes)) {
    if (me->number == 0)
      fprintf(stderr, "usage: %s [--side 1 to 1000] [--planes %d to %d] [--tolerance 0 to 1] [--backend NAME] [--calls]"
                      " [--history] [--save FILE]\n", argv[0], me->ranks, 1000 * me->ranks);
    MPI_Finalize();
    exit(2);
  }
  return o;
}

/* Starts MPI and cuts the box. */
static options begin_rank(rank *me, int argc, char **argv) {
  int threads = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  *me = (rank){.room = 16, .file = "mpi_cg.state"};
  MPI_Comm_rank(MPI_COMM_WORLD, &me->number);
  MPI_Comm_size(MPI_COMM_WORLD, &me->ranks);
  if (threads < MPI_THREAD_FUNNELED) fail(me, "MPI allows no threads beside the one that calls it");
  const options o = read_options(argc, argv, me);
  me->side = o.side;
  me->first = (int)((int64_t)o.planes * me->number / me->ranks);
  me->planes = (int)((int64_t)o.planes * (me->number + 1) / me->ranks) - me->first;
  me->below = me->number > 0 ? me->number - 1 : MPI_PROC_NULL;
  me->above = me->number + 1 < me->ranks ? me->number + 1 : MPI_PROC_NULL;
  return o;
}

int main(int argc, char **argv) {
  rank me;
  const options o = begin_rank(&me, argc, argv);
  const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL); /* one rank that gets it makes all save */
  sigaction(SIGUSR2, &action, NULL); /* likewise stop */
  open_device(&me, &o);
  set_up(&me, &o, o.calls ? &calls_list : &yields_list);
  const gk_status *totals = NULL;
  if (gk_run(me.graph, on_yield, &me, &totals) != GK_OK) fail(&me, "the solver");
  agreed(&me, 0);
  const int wrong = report(&me, &o, totals);
  gk_graph_destroy(me.graph);
  gk_device_close(me.device);
  MPI_Finalize();
  return wrong;
}
