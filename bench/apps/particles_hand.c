/* The kernels' bodies come from particles.kernel.h, so that the bits are equal. Everything else is by hand. */
#include "bench/apps/particles_hand.h"
#include "bench/apps/particles.kernel.h"
#include "bench/harness/apart.h"
#include <omp.h>
#include <stdlib.h>

enum { SMALL = 512,  /* with SPHERES_LOOPS, one thread runs loops of fewer items */
       KEPT = 4,     /* energy, and momentum along three axes */
       APART = 16    /* numbers: each thread writes to cache lines of its own */ };

struct spheres {
  setting s;
  spheres_style style;
  int threads, cells, room, stale, wanted, searches, yields;
  vec *x, *v, *force, *listed;
  int *cell, *cell_count, *cell_first, *member, *count, *neighbour;
  int (*totals)[APART]; /* by thread, like the next one */
  double (*sums)[APART];
  double kept[KEPT];
};

typedef void part_of(spheres *h, int part, int begin, int end);

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

static int begin_of(int n, int part, int parts) { return (int)((int64_t)n * part / parts); }

static void each(spheres *h, int me, int n, part_of *work) {
  const int threads = h->threads;
  if (h->style == SPHERES_REGION) {
    work(h, me, begin_of(n, me, threads), begin_of(n, me + 1, threads));
  } else if (n < SMALL) {
    for (int k = 0; k < threads; ++k) work(h, k, begin_of(n, k, threads), begin_of(n, k + 1, threads));
  } else {
#pragma omp parallel num_threads(threads)
    {
      const int here = omp_get_thread_num();
      work(h, here, begin_of(n, here, threads), begin_of(n, here + 1, threads));
    }
  }
}

static void barrier(const spheres *h) {
  if (h->style == SPHERES_REGION) {
#pragma omp barrier
  }
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

#define LOOP(name, ...) \
  static void name##_all(spheres *at, int part, int begin, int end) { \
    const spheres *h = at; \
    const setting s = h->s; \
    (void)part; \
    for (int i = begin; i < end; ++i) gki_item_bench_##name(__VA_ARGS__, s, i); \
  }
LOOP(advance, h->x, h->v, &at->stale, h->force, h->listed)
LOOP(push, h->force, h->v, h->x, h->count, h->neighbour, h->room)
LOOP(count_cells, h->cell, h->cell_count, h->x)
LOOP(find_neighbours, h->count, h->neighbour, h->listed, &at->wanted, h->x, h->cell_first, h->member, h->room)

static void place_all(spheres *h, int part, int begin, int end) {
  (void)part;
  for (int i = begin; i < end; ++i) gki_item_bench_place(h->member, h->cell_count, h->cell_first, h->cell, i);
}
static void sort_cells(spheres *h, int part, int begin, int end) {
  (void)part;
  for (int i = begin; i < end; ++i) gki_item_bench_sort_cell(h->member, h->cell_first, i);
}
static void clear_cells(spheres *h, int part, int begin, int end) {
  (void)part;
  memset(h->cell_count + begin, 0, (size_t)(end - begin) * sizeof(int));
}

/* A prefix sum: each thread adds up its part, then writes the sums of its part after those of the parts before. */
static void add_cells(spheres *h, int part, int begin, int end) {
  int total = 0;
  for (int k = begin; k < end; ++k) total += h->cell_count[k];
  h->totals[part][0] = total;
}
static void spread_cells(spheres *h, int part, int begin, int end) {
  int at = 0;
  for (int k = 0; k < part; ++k) at += h->totals[k][0];
  for (int k = begin; k < end; ++k) {
    h->cell_first[k] = at;
    at += h->cell_count[k];
  }
  if (end == h->cells) h->cell_first[end] = at;
}

static void measure_all(spheres *h, int part, int begin, int end) {
  const setting s = h->s;
  double sums[KEPT] = {0.0};
  for (int i = begin; i < end; ++i)
    gki_item_bench_sum_conserved(&sums[0], &sums[1], &sums[2], &sums[3], h->x, h->v, h->count, h->neighbour, h->room,
                                 s, i);
  memcpy(h->sums[part], sums, sizeof sums);
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

static void set_room(spheres *h, int room) {
  h->room = room;
  free(h->neighbour);
  h->neighbour = bench_large((size_t)h->s.n * (size_t)room * sizeof *h->neighbour);
}

static void search(spheres *h, int me) {
  const int n = h->s.n, cells = h->cells;
  each(h, me, cells, clear_cells);
  barrier(h);
  each(h, me, n, count_cells_all);
  barrier(h);
  each(h, me, cells, add_cells);
  barrier(h);
  each(h, me, cells, spread_cells);
  barrier(h);
  each(h, me, n, place_all);
  if (me == 0) h->wanted = 0;
  barrier(h);
  each(h, me, cells, sort_cells);
  barrier(h);
  each(h, me, n, find_neighbours_all);
  barrier(h);
  if (h->wanted > 0) {
    barrier(h);
    if (me == 0) {
      set_room(h, bench_particles_room(h->wanted));
      h->wanted = 0;
      ++h->yields;
    }
    barrier(h);
    each(h, me, n, find_neighbours_all); /* each thread needs only the lists that it made */
  }
  if (me == 0) {
    h->stale = 0;
    ++h->searches;
  }
}

static void run(spheres *h, int me, int steps) {
  const int n = h->s.n;
  for (int step = 0; step < steps; ++step) {
    each(h, me, n, advance_all);
    barrier(h);
    if (h->stale) search(h, me);
    each(h, me, n, push_all);
    barrier(h);
  }
  each(h, me, n, measure_all);
}

void bench_spheres_run(spheres *h, int steps) {
  h->stale = 1;
  h->searches = h->yields = 0;
  if (h->style == SPHERES_LOOPS) {
    run(h, 0, steps);
  } else {
#pragma omp parallel num_threads(h->threads)
    run(h, omp_get_thread_num(), steps);
  }
  for (int k = 0; k < KEPT; ++k) {
    h->kept[k] = 0.0;
    for (int part = 0; part < h->threads; ++part) h->kept[k] += h->sums[part][k];
  }
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

spheres *bench_spheres_start(const setting *s, int threads, spheres_style style) {
  spheres *h = bench_alloc(1, sizeof *h);
  const size_t n = (size_t)s->n, cells = (size_t)s->cells * (size_t)s->cells * (size_t)s->cells;
  *h = (spheres){.s = *s, .style = style, .threads = threads, .cells = (int)cells};
  vec **vectors[] = {&h->x, &h->v, &h->force, &h->listed};
  for (size_t k = 0; k < sizeof vectors / sizeof *vectors; ++k) *vectors[k] = bench_large_zeros(n, sizeof(vec));
  int **numbers[] = {&h->cell, &h->member, &h->count};
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; ++k) *numbers[k] = bench_large_zeros(n, sizeof(int));
  h->cell_count = bench_large_zeros(cells, sizeof(int));
  h->cell_first = bench_large_zeros(cells + 1, sizeof(int));
  h->totals = bench_large_zeros((size_t)threads, sizeof *h->totals);
  h->sums = bench_large_zeros((size_t)threads, sizeof *h->sums);
  return h;
}

void bench_spheres_restore(spheres *h, const particles_moment *from) {
  const size_t bytes = (size_t)h->s.n * sizeof(vec);
  memcpy(h->x, from->x, bytes);
  memcpy(h->v, from->v, bytes);
  memcpy(h->force, from->force, bytes);
  set_room(h, from->room);
}

particles_moment bench_spheres_look(const spheres *h) {
  return (particles_moment){.x = h->x, .v = h->v, .force = h->force, .room = h->room, .searches = h->searches,
                            .yields = h->yields, .energy = h->kept[0],
                            .momentum = {h->kept[1], h->kept[2], h->kept[3]}};
}
