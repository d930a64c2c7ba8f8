/* Tiles of a plate under StarPU: heat spreads in each, and hot cells are listed. A launch is the work of a codelet.
 *
 * Each worker has a device with one thread and a graph. The codelet binds its tile to the graph's slots, so nothing is
 * made per task. The list has the loop over the sweeps. It yields when there are more hot cells than the buffer has
 * room for, and the codelet handles this: StarPU doesn't notice.
 *
 *   cc -std=gnu11 starpu_tiles.c -lgk $(pkg-config --cflags --libs starpu-1.3) -lm -o starpu_tiles && ./starpu_tiles
 *
 * With -DWITH_MPI, mpicc and the package starpumpi-1.3 the tiles are shared by the ranks of an MPI job. */
#include <gk_kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef WITH_MPI
#include <starpu_mpi.h>
#endif
#include <starpu.h>
#ifdef STARPU_USE_CUDA
#include <gk_cuda.h>
#endif

GK_SOURCE(starpu_tiles)
/* Over the cells inside: those at the edges stay. */
GK_KERNEL_2D(spread, (out(float, to), in(float, from), value(int, side))) {
  int at = i + 1 + side * (j + 1);
  to[at] = 0.25f * (from[at - 1] + from[at + 1] + from[at - side] + from[at + side]);
}
GK_KERNEL(list_hot, (in(float, heat), value(float, limit), value(int, room), out(int, hot), atomic(int, count),
                     atomic(int, full))) {
  if (heat[i] < limit) return;
  int at = gk_atomic_add(&count[0], 1);
  if (at < room) hot[at] = i;
  else if (at == room) gk_atomic_exchange(&full[0], 1);
}
GK_SOURCE_END

enum slot { A = 1, B, SIDE, INNER, CELLS, DOUBLE_SWEEPS, LIMIT, HOT, ROOM, COUNT, FULL };
enum label { LISTING = 1 };
#define HOT_FROM 0.7f
static const gk_slot_desc slots[] = {
  GK_BUFFER(A, float), GK_BUFFER(B, float), GK_SCALAR(SIDE, int), GK_SCALAR(INNER, int), GK_SCALAR(CELLS, int),
  GK_SCALAR(DOUBLE_SWEEPS, int), GK_DEFAULT(LIMIT, float, HOT_FROM), GK_OWN(HOT, int, 16), GK_ROOM(ROOM, HOT),
  GK_OWN(COUNT, int, 1), GK_OWN(FULL, int, 1)};
static const gk_task tasks[] = {
  GK_COPY(B, A, CELLS), /* the edges */
  GK_REPEAT(DOUBLE_SWEEPS),
    GK_RUN_2D(spread, INNER, INNER, B, A, SIDE),
    GK_RUN_2D(spread, INNER, INNER, A, B, SIDE),
  GK_END,
  GK_CHECKPOINT(LISTING, FULL),
    GK_FILL(COUNT, GK_ONE, 0),
    GK_FILL(FULL, GK_ONE, 0),
    GK_RUN(list_hot, CELLS, A, LIMIT, ROOM, HOT, COUNT, FULL),
  GK_END};
static const gk_list list = GK_LIST(list, tasks, slots);

/* What a worker has. Tasks on its thread use it, and main before and behind them. */
typedef struct worker {
  gk_device *device;
  gk_graph *graph;
  int *hot, room;       /* by hand */
  long hot_cells;       /* listed so far */
  unsigned tiles, yields;
} worker;
static worker workers[STARPU_NMAXWORKERS];

typedef struct options { int tiles, side, sweeps, steps, by_hand; } options;
static options o = {.tiles = 8, .side = 64, .sweeps = 8, .steps = 20};

static _Noreturn void fail(const char *what) { /* on any worker: a codelet can't return an error */
  fprintf(stderr, "%s%s%s\n", what, *gk_error() ? ": " : "", gk_error());
  exit(1);
}

static gk_result on_yield(void *user, gk_graph *graph, const gk_status *status) {
  worker *w = user;
  int count = 0;
  (void)status;
  ++w->yields;
  const gk_result result = gk_read(graph, COUNT, &count, 1);
  return result == GK_OK ? gk_resize(graph, HOT, (size_t)count * 2) : result;
}

static void make_graph(worker *w) {
  if (gk_graph_create(w->device, &list, 0, &w->graph) != GK_OK) fail("the list");
  gk_bind_int(w->graph, SIDE, o.side);
  gk_bind_int(w->graph, INNER, o.side - 2);
  gk_bind_int(w->graph, CELLS, (int64_t)o.side * o.side);
  gk_bind_int(w->graph, DOUBLE_SWEEPS, o.sweeps / 2);
}

static void count_tile(worker *w) {
  int count = 0;
  if (gk_read(w->graph, COUNT, &count, 1) != GK_OK) fail("the number of hot cells");
  w->hot_cells += count;
  ++w->tiles;
}

/* ---- the codelet: the tile is buffers[0]; buffers[1] is scratch memory of the worker --------------------------- */

static void by_gk(void *buffers[], void *argument) {
  worker *w = &workers[starpu_worker_get_id()];
  (void)argument;
  gk_bind(w->graph, A, (void *)STARPU_VECTOR_GET_PTR(buffers[0]));
  gk_bind(w->graph, B, (void *)STARPU_VECTOR_GET_PTR(buffers[1]));
  if (gk_run(w->graph, on_yield, w, NULL) != GK_OK) fail("a tile");
  count_tile(w);
}

static void sweep_by_hand(float *restrict to, const float *restrict from, int side) {
  for (int j = 1; j < side - 1; ++j)
    for (int i = 1; i < side - 1; ++i) {
      const float *at = from + side * j + i;
      to[side * j + i] = 0.25f * (at[-1] + at[1] + at[-side] + at[side]);
    }
}

static void by_hand(void *buffers[], void *argument) {
  worker *w = &workers[starpu_worker_get_id()];
  float *a = (float *)STARPU_VECTOR_GET_PTR(buffers[0]), *b = (float *)STARPU_VECTOR_GET_PTR(buffers[1]);
  int count = 0;
  (void)argument;
  memcpy(b, a, (size_t)o.side * (size_t)o.side * sizeof *b);
  for (int k = 0; k < o.sweeps / 2; ++k) {
    sweep_by_hand(b, a, o.side);
    sweep_by_hand(a, b, o.side);
  }
  for (;;) {
    count = 0;
    for (int i = 0; i < o.side * o.side; ++i)
      if (a[i] >= HOT_FROM) {
        if (count < w->room) w->hot[count] = i;
        ++count;
      }
    if (count <= w->room) break;
    ++w->yields;
    free(w->hot);
    w->room = count * 2;
    w->hot = malloc((size_t)w->room * sizeof *w->hot);
    if (!w->hot) fail("memory");
  }
  w->hot_cells += count;
  ++w->tiles;
}

#ifdef STARPU_USE_CUDA
/* The device works on StarPU's stream, so gk's work follows StarPU's copy of the tile. gk_run waits for it. */
static void by_cuda(void *buffers[], void *argument) {
  worker *w = &workers[starpu_worker_get_id()];
  (void)argument;
  if (!w->device) {
    const gk_cuda_sharing sharing = GK_CUDA_SHARE(NULL, starpu_cuda_get_local_stream());
    const gk_device_desc desc = {.backend = "cuda", .ordinal = starpu_worker_get_devid(starpu_worker_get_id()),
                                 .next = &sharing.base};
    if (gk_device_open(&desc, &w->device) != GK_OK) fail("no device on StarPU's stream");
    make_graph(w);
  }
  by_gk(buffers, argument);
}
#endif

static struct starpu_codelet codelet = {
  .cpu_funcs = {by_gk}, .nbuffers = 2, .modes = {STARPU_RW, STARPU_SCRATCH}, .name = "tile",
#ifdef STARPU_USE_CUDA
  .cuda_funcs = {by_cuda},
#endif
};

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void begin_worker(void *unused) { /* on the thread of each CPU worker */
  worker *w = &workers[starpu_worker_get_id()];
  (void)unused;
  if (gk_device_open(&(gk_device_desc){.backend = "openmp", .threads = 1}, &w->device) != GK_OK) fail("no device");
  make_graph(w);
}

static void end_worker(worker *w) {
  gk_graph_destroy(w->graph);
  gk_device_close(w->device);
  free(w->hot);
}

static void fill_tile(float *heat, int number) {
  for (int k = 0; k < o.side * o.side; ++k) {
    const uint32_t h = ((uint32_t)number * 7919u + (uint32_t)k) * 2654435769u;
    heat[k] = (float)(h >> 8) / (float)(1 << 24);
  }
}

/* Inserts the task of a tile. Under MPI the rank that has the tile runs it; all ranks insert all tasks. */
static int insert(starpu_data_handle_t tile, starpu_data_handle_t scratch) {
#ifdef WITH_MPI
  return starpu_mpi_task_insert(MPI_COMM_WORLD, &codelet, STARPU_RW, tile, STARPU_SCRATCH, scratch, 0);
#else
  return starpu_task_insert(&codelet, STARPU_RW, tile, STARPU_SCRATCH, scratch, 0);
#endif
}

/* @return the sum of the tiles' cells */
static double run_tiles(int me, int ranks) {
  const size_t cells = (size_t)o.side * (size_t)o.side;
  float *heat = malloc(cells * (size_t)o.tiles * sizeof *heat);
  starpu_data_handle_t *tile = calloc((size_t)o.tiles, sizeof(starpu_data_handle_t)), scratch;
  if (!heat || !tile) fail("memory");
  starpu_vector_data_register(&scratch, -1, 0, (uint32_t)cells, sizeof *heat);
  for (int k = 0; k < o.tiles; ++k) {
    float *at = heat + cells * (size_t)k;
    const bool is_mine = k % ranks == me;
    if (is_mine) fill_tile(at, k);
    starpu_vector_data_register(&tile[k], is_mine ? STARPU_MAIN_RAM : -1, is_mine ? (uintptr_t)at : 0, (uint32_t)cells,
                                sizeof *heat);
#ifdef WITH_MPI
    starpu_mpi_data_register(tile[k], k, k % ranks);
#endif
  }
  for (int step = 0; step < o.steps; ++step)
    for (int k = 0; k < o.tiles; ++k)
      if (insert(tile[k], scratch) != 0) fail("StarPU takes no task");
  starpu_task_wait_for_all();
  double sum = 0;
  for (int k = 0; k < o.tiles; ++k) {
    starpu_data_unregister(tile[k]); /* brings the tile back */
    for (size_t i = 0; k % ranks == me && i < cells; ++i) sum += (double)heat[cells * (size_t)k + i];
  }
  starpu_data_unregister(scratch);
  free(tile);
  free(heat);
  return sum;
}

static bool read_options(int argc, char **argv) {
  const struct { const char *name; long most; int *value; } numbers[] = {
    {"--tiles", 10000, &o.tiles}, {"--side", 4096, &o.side}, {"--sweeps", 10000, &o.sweeps},
    {"--steps", 10000, &o.steps}};
  for (int k = 1; k < argc; ++k) {
    size_t n = 0;
    if (strcmp(argv[k], "--by-hand") == 0) {
      o.by_hand = 1;
      continue;
    }
    while (n < GK_COUNT(numbers) && strcmp(argv[k], numbers[n].name) != 0) ++n;
    if (n == GK_COUNT(numbers) || ++k == argc) return false;
    char *end;
    const long value = strtol(argv[k], &end, 10);
    if (!*argv[k] || *end || value < 1 || value > numbers[n].most) return false;
    *numbers[n].value = (int)value;
  }
  return o.side > 2 && o.sweeps % 2 == 0;
}

int main(int argc, char **argv) {
  int me = 0, ranks = 1;
  if (!read_options(argc, argv)) {
    fprintf(stderr, "usage: %s [--tiles 1 to 10000] [--side 3 to 4096] [--sweeps 2, 4 to 10000] [--steps 1 to 10000]"
                    " [--by-hand]\n", argv[0]);
    return 2;
  }
#ifdef WITH_MPI
  if (starpu_mpi_init_conf(NULL, NULL, 1, MPI_COMM_WORLD, NULL) != 0) fail("StarPU doesn't start");
  starpu_mpi_comm_rank(MPI_COMM_WORLD, &me);
  starpu_mpi_comm_size(MPI_COMM_WORLD, &ranks);
#else
  if (starpu_init(NULL) != 0) fail("StarPU doesn't start");
#endif
  if (o.by_hand) {
    codelet.cpu_funcs[0] = by_hand;
    codelet.where = STARPU_CPU;
  } else starpu_execute_on_each_worker(begin_worker, NULL, STARPU_CPU);
  double totals[4] = {run_tiles(me, ranks)};
  for (unsigned k = 0; k < starpu_worker_get_count(); ++k) {
    totals[1] += (double)workers[k].hot_cells;
    totals[2] += workers[k].tiles;
    totals[3] += workers[k].yields;
    end_worker(&workers[k]);
  }
#ifdef WITH_MPI
  MPI_Allreduce(MPI_IN_PLACE, totals, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  starpu_mpi_shutdown();
#else
  starpu_shutdown();
#endif
  if (me == 0)
    printf("%.0f tiles, heat %.6f, hot cells %.0f, larger buffers %.0f\n", totals[2], totals[0], totals[1], totals[3]);
  return 0;
}
