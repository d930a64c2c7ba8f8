/* A launch as the work of a StarPU codelet (table F12): docs/examples/starpu_tiles.c, by gk and by hand. */
#include "bench/harness/harness.h"
#include "bench/harness/must.h"
#if __has_include(<starpu.h>)
#pragma GCC diagnostic ignored "-Wpedantic" /* of StarPU's headers */
#define main example_main
#include "docs/examples/starpu_tiles.c"
#undef main

enum { TILES = 8 };
typedef struct plate {
  struct starpu_codelet *codelet;
  starpu_data_handle_t tile[TILES], scratch;
  float *heat;
} plate;

static struct starpu_codelet codelet_by_hand = {
  .cpu_funcs = {by_hand}, .nbuffers = 2, .modes = {STARPU_RW, STARPU_SCRATCH}, .name = "tile by hand"};
static void nothing(void *buffers[], void *argument) { (void)buffers, (void)argument; }
static struct starpu_codelet empty = {
  .cpu_funcs = {nothing}, .nbuffers = 2, .modes = {STARPU_RW, STARPU_SCRATCH}, .name = "empty"};

static void begin_plate(plate *p, struct starpu_codelet *work) {
  const size_t cells = (size_t)o.side * (size_t)o.side;
  p->codelet = work;
  p->heat = bench_alloc(cells * TILES, sizeof *p->heat);
  starpu_vector_data_register(&p->scratch, -1, 0, (uint32_t)cells, sizeof *p->heat);
  for (int k = 0; k < TILES; ++k) {
    fill_tile(p->heat + cells * (size_t)k, k);
    starpu_vector_data_register(&p->tile[k], STARPU_MAIN_RAM, (uintptr_t)(p->heat + cells * (size_t)k),
                                (uint32_t)cells, sizeof *p->heat);
  }
}

static void end_plate(plate *p) {
  for (int k = 0; k < TILES; ++k) starpu_data_unregister(p->tile[k]);
  starpu_data_unregister(p->scratch);
  free(p->heat);
}

/* So that each worker's next tile yields, and by hand needs a larger buffer. */
static void shrink_buffers(void) {
  for (unsigned k = 0; k < starpu_worker_get_count(); ++k) {
    workers[k].room = 0;
    bench_must(gk_resize(workers[k].graph, HOT, 16));
  }
}

/* Adds the time per tile. Every third step fills the tiles again, so that there are always hot cells to list. */
static bool run_tasks(void *with, uint64_t times, bench_took *took) {
  plate *p = with;
  const size_t cells = (size_t)o.side * (size_t)o.side;
  for (uint64_t k = 0; k < times; ++k) {
    for (int n = 0; n < TILES && k % 3 == 0; ++n) {
      starpu_data_acquire(p->tile[n], STARPU_W);
      fill_tile(p->heat + cells * (size_t)n, n);
      starpu_data_release(p->tile[n]);
    }
    shrink_buffers();
    const double started = bench_now();
    for (int n = 0; n < TILES; ++n)
      if (starpu_task_insert(p->codelet, STARPU_RW, p->tile[n], STARPU_SCRATCH, p->scratch, 0) != 0)
        bench_fail("StarPU takes no task");
    starpu_task_wait_for_all();
    took->all += (bench_now() - started) * 1e-3 / TILES;
  }
  return true;
}

static bool bind_twice(void *with, uint64_t times, bench_took *took) {
  static float memory[2][64];
  const double started = bench_now();
  for (uint64_t k = 0; k < times; ++k) {
    bench_must(gk_bind(with, A, memory[k % 2]));
    bench_must(gk_bind(with, B, memory[1 - k % 2]));
  }
  took->all += bench_now() - started;
  return gk_bound(with, A) == memory[(times - 1) % 2];
}

/* The results of both are compared by tests/distributed/starpu.py. */
static void tiles(void) {
  plate gk, hand, none;
  begin_plate(&gk, &codelet);
  begin_plate(&hand, &codelet_by_hand);
  begin_plate(&none, &empty);
  bench_measure(&(bench_table){.id = "F12", .what = "a tile of 64^2 cells, 8 sweeps, in a codelet", .unit = "us",
    .question = "what does a tile take, with its yields, on all workers?",
    .variants = {{.name = "gk", .run = run_tasks, .with = &gk}, {.name = "by hand", .run = run_tasks, .with = &hand},
                 {.name = "an empty codelet", .run = run_tasks, .with = &none}},
    .ratios = {{.what = "gk against by hand", .of = "gk", .against = {"by hand"}, .goal = 1.15}}});
  end_plate(&gk);
  end_plate(&hand);
  end_plate(&none);
  bench_measure(&(bench_table){.id = "F12", .what = "two binds", .unit = "ns",
    .question = "what does it take to bind a tile's two slots to other memory?",
    .variants = {{.name = "two gk_bind", .run = bind_twice, .with = workers[0].graph}},
    .ratios = {{.what = "two gk_bind, in ns", .of = "two gk_bind", .against = {NULL}, .goal = 100}}});
}

static bool an_empty_call(void *with, uint64_t times, bench_took *took) {
  void (*const volatile call)(void **, void *) = nothing;
  const double started = bench_now();
  for (uint64_t k = 0; k < times; ++k) call(NULL, with);
  took->all += bench_now() - started;
  return true;
}

int main(int argc, char **argv) {
  bench_begin(argc, argv, "starpu_tiles");
  setenv("STARPU_SILENT", "1", 0);
  setenv("STARPU_NCUDA", "0", 1); /* the codelet by hand is for CPUs only */
  if (starpu_init(NULL) != 0) return bench_missing("StarPU doesn't start");
  bench_floor(&(bench_table){.id = "floor", .what = "what the machine takes", .unit = "ns",
    .question = "what can no codelet be faster than?",
    .variants = {{.name = "a call of an empty function", .run = an_empty_call}}});
  starpu_execute_on_each_worker(begin_worker, NULL, STARPU_CPU);
  tiles();
  for (unsigned k = 0; k < starpu_worker_get_count(); ++k) {
    end_worker(&workers[k]);
  }
  starpu_shutdown();
  return bench_end();
}
#else
int main(int argc, char **argv) {
  bench_begin(argc, argv, "starpu_tiles");
  return bench_missing("this benchmark was built without StarPU (libstarpu-dev)");
}
#endif
