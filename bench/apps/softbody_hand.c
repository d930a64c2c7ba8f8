/* The kernels' bodies come from softbody.kernel.h, so that both versions compute the same sums. Everything else is by
 * hand. */
#include "bench/apps/softbody_hand.h"
#include "bench/harness/apart.h"
#include "softbody.kernel.h"
#include <omp.h>
#include <stdlib.h>

enum { FIRST_CELLS = 1024, /* as in step.c */
       SMALL = 512,        /* with HAND_LOOPS, one thread runs loops of fewer items */
       LANES = 32, /* parallel sums, and one for the rest, as in gk_kernel.h: so the bits are equal */
       APART = 32 /* doubles: each thread's sums are on cache lines of their own */ };

/* Columns of hand.sums. All threads read a column before any thread writes to it again. */
enum { FORCE_X, FORCE_Y, FORCE_Z, GAINED, ROWS_X, ROWS_Y, ROWS_Z, BEGIN_RZ, BEGIN_X, BEGIN_Y, BEGIN_Z, STEP_PQ, STEP_RZ,
       STEP_X, STEP_Y, STEP_Z, TRIED, TRIED_HINGES, END_ENERGY, END_KINETIC, END_X, END_Y, END_Z, END_TOUCHING,
       END_HINGES, COLUMNS };
_Static_assert((int)COLUMNS <= (int)APART, "a thread's sums fit into its place");

struct hand {
  const mesh *m;
  world w;
  int n, hinges, cells, threads, room;
  hand_style style;
  v3 *x, *x_old, *guess, *v, *trial, *turn, *r, *rows, *u, *z, *p, *q;
  double *load;
  bond *bonds, *hinge_bonds, *contact_bonds;
  term *stretch, *bend, *push;
  sym3 *inverse;
  int *cell_count, *cell_first, *member, *contact_count, *contact_first;
  contact *contacts;
  uint largest;
  double (*sums)[APART]; /* by thread */
  int (*totals)[APART];
  double highest;
  hand_state state;
};

/* A thread's variables. With one region each thread has its own, and their values are the same. */
typedef struct self {
  hand *h;
  int me;
  control c;
  int solving, searching, moving;
  double pq, energy;
  double keep, momentum[3];
  const int *count; /* of a prefix sum */
  int *first, entries, room;
} self;

/* One thread's part of a loop: `part` is its number. */
typedef void part_of(self *s, int part, int begin, int end);

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

static int begin_of(int n, int part, int parts) { return (int)((int64_t)n * part / parts); }

static void each(self *s, int n, part_of *work) {
  int threads = s->h->threads;
  if (s->h->style == HAND_REGION) {
    work(s, s->me, begin_of(n, s->me, threads), begin_of(n, s->me + 1, threads));
  } else if (n < SMALL) {
    for (int k = 0; k < threads; ++k) work(s, k, begin_of(n, k, threads), begin_of(n, k + 1, threads));
  } else {
#pragma omp parallel num_threads(threads)
    {
      int me = omp_get_thread_num();
      work(s, me, begin_of(n, me, threads), begin_of(n, me + 1, threads));
    }
  }
}

static void barrier(const self *s) {
  if (s->h->style == HAND_REGION) {
#pragma omp barrier
  }
}

static double added(const self *s, int column) {
  double sum = 0.0;
  for (int k = 0; k < s->h->threads; ++k) sum += s->h->sums[k][column];
  return sum;
}
static double added_to(double sum, const self *s, int column) {
  for (int k = 0; k < s->h->threads; ++k) sum += s->h->sums[k][column];
  return sum;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

#define LOOP(name, ...) \
  static void name##_all(self *s, int part, int begin, int end) { \
    const hand *h = s->h; \
    (void)part; \
    for (int i = begin; i < end; ++i) gki_item_##name(__VA_ARGS__, i); \
  }
/* The same with `count` sums from column `first` on. In the arguments, SUM(k) is the k-th sum. */
#define LOOP_SUMS(name, first, count, ...) \
  static void name##_all(self *s, int part, int begin, int end) { \
    const hand *h = s->h; \
    double sums[count][LANES + 1] = {{0.0}}; \
    int i = begin; \
    for (; end - i >= LANES; i += LANES) \
      for (int lane = 0; lane < LANES; ++lane) __VA_ARGS__(i + lane); \
    for (int lane = LANES; i < end; ++i) __VA_ARGS__(i); \
    for (int k = 0; k < (count); ++k) { \
      for (int lane = 1; lane <= LANES; ++lane) sums[k][0] += sums[k][lane]; \
      s->h->sums[part][(first) + k] = sums[k][0]; \
    } \
  }
#define SUM(k) &sums[k][lane]

LOOP(predict, h->x, h->x_old, h->guess, h->v, &h->state.touching, h->contact_first, &h->w, h->n)
LOOP(count_cells, h->cell_count, h->x, &h->w, h->cells)
LOOP(place, h->member, h->cell_count, h->cell_first, h->x, &h->w, h->cells)
LOOP(sort_cell, h->member, h->cell_first)
LOOP(find_contacts, h->contact_count, h->contacts, h->contact_first, h->x, h->m->rest, h->cell_first, h->member,
     h->m->spring_first, h->m->spring_other, &h->w, h->cells, s->room)
LOOP(stretching, h->stretch, h->bonds, h->x, h->m->spring_first, h->m->spring_other, h->m->springs)
LOOP(turning, h->turn, h->hinge_bonds, h->x, h->m->hinges)
LOOP(bending, h->bend, h->turn, h->hinge_bonds, h->m->share_first, h->m->share_hinge, h->m->share_weight)
LOOP(pushing, h->push, h->contact_bonds, h->x, h->m->mass, h->contact_first, h->contacts, &h->w)

#define ASSEMBLE(i) \
  (gki_item_assemble(h->r, h->rows, h->inverse, SUM(0), SUM(1), SUM(2), SUM(3), h->x, h->x_old, h->guess, h->m->mass, \
                     h->load, h->stretch, h->bend, h->push, &h->w, i), \
   gki_item_add_rows(SUM(4), SUM(5), SUM(6), h->rows, i))
#define START_SOLVE(i) \
  gki_item_start_solve(h->u, h->r, h->z, SUM(0), SUM(1), SUM(2), SUM(3), h->rows, h->inverse, &s->c, i)
#define MULTIPLY(i) \
  gki_item_multiply(h->q, SUM(0), h->p, h->rows, h->m->spring_first, h->m->spring_other, h->bonds, h->m->share_first, \
                    h->m->share_hinge, h->m->share_weight, h->turn, h->contact_first, h->contacts, h->contact_bonds, i)
#define ADVANCE(i) \
  gki_item_advance(h->u, h->r, h->z, SUM(0), SUM(1), SUM(2), SUM(3), h->p, h->q, h->rows, h->inverse, &s->pq, &s->c, i)
#define ADD_ENERGY(i) \
  gki_item_add_energy(SUM(0), h->trial, h->x_old, h->guess, h->m->mass, h->load, h->m->spring_first, \
                      h->m->spring_other, h->m->springs, h->contact_first, h->contacts, &h->w, i)
#define ADD_HINGES(i) gki_item_add_hinges(SUM(0), h->trial, h->m->hinges, i)
#define ADD_LAST_HINGES(i) gki_item_add_hinges(SUM(0), h->x, h->m->hinges, i)
LOOP_SUMS(assemble, FORCE_X, 7, ASSEMBLE)
LOOP_SUMS(start_solve, BEGIN_RZ, 4, START_SOLVE)
LOOP(direct, h->p, h->z, &s->c)
LOOP(multiply_hinges, h->turn, h->p, h->m->hinges, h->hinge_bonds)
LOOP_SUMS(multiply, STEP_PQ, 1, MULTIPLY)
LOOP_SUMS(advance, STEP_RZ, 4, ADVANCE)
LOOP(try_step, h->trial, h->x, h->u, &s->c)
LOOP_SUMS(add_energy, TRIED, 1, ADD_ENERGY)
LOOP_SUMS(add_hinges, TRIED_HINGES, 1, ADD_HINGES)
LOOP_SUMS(add_last_hinges, END_HINGES, 1, ADD_LAST_HINGES)
LOOP(accept, h->x, &s->h->largest, h->trial, &s->c)
LOOP(finish, h->v, h->load, h->x, h->x_old, h->m->mass, &h->w)
LOOP(take_back, h->v, &s->keep, &s->momentum[0], &s->momentum[1], &s->momentum[2], &h->w)

static void measure_all(self *s, int part, int begin, int end) {
  const hand *h = s->h;
  double sums[5][LANES + 1] = {{0.0}};
  int touching = 0;
#define MEASURE(i) \
  gki_item_measure(SUM(0), SUM(1), SUM(2), SUM(3), SUM(4), &touching, h->x, h->v, h->m->mass, h->m->spring_first, \
                   h->m->spring_other, h->m->springs, h->contact_first, h->contacts, &h->w, i)
  int i = begin;
  for (; end - i >= LANES; i += LANES)
    for (int lane = 0; lane < LANES; ++lane) MEASURE(i + lane);
  for (int lane = LANES; i < end; ++i) MEASURE(i);
  for (int k = 0; k < 5; ++k) {
    for (int lane = 1; lane <= LANES; ++lane) sums[k][0] += sums[k][lane];
    s->h->sums[part][END_ENERGY + k] = sums[k][0];
  }
  s->h->sums[part][END_TOUCHING] = touching;
}

static void clear_cells(self *s, int part, int begin, int end) {
  (void)part;
  memset(s->h->cell_count + begin, 0, (size_t)(end - begin) * sizeof(int));
}

/* A prefix sum: each thread adds up its part, then writes the sums of its part after those of the parts before. */
static void add_counts(self *s, int part, int begin, int end) {
  int total = 0;
  for (int k = begin; k < end; ++k) total += s->count[k];
  s->h->totals[part][0] = total;
}
static void spread_counts(self *s, int part, int begin, int end) {
  int at = 0;
  for (int k = 0; k < part; ++k) at += s->h->totals[k][0];
  for (int k = begin; k < end; ++k) {
    s->first[k] = at;
    at += s->count[k];
  }
  if (end == s->entries) s->first[end] = at;
}
static void scan(self *s, int *first, const int *count, int n) {
  s->first = first;
  s->count = count;
  s->entries = n;
  each(s, n, add_counts);
  barrier(s);
  each(s, n, spread_counts);
  barrier(s);
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

#define ALLOC(member, count) h->member = bench_large_zeros((size_t)(count), sizeof *h->member)

static void set_room(hand *h, int room) {
  h->room = room;
  free(h->contacts);
  free(h->contact_bonds);
  ALLOC(contacts, room);
  ALLOC(contact_bonds, room);
}

static void make_room(hand *h) {
  int wanted = h->contact_first[h->n];
  h->state.contacts = wanted;
  if (wanted <= h->room) return;
  ++h->state.growths;
  set_room(h, wanted + wanted / 2);
}

static void find_all_contacts(self *s) {
  hand *h = s->h;
  each(s, h->cells, clear_cells);
  barrier(s);
  each(s, h->n, count_cells_all);
  barrier(s);
  scan(s, h->cell_first, h->cell_count, h->cells);
  each(s, h->n, place_all);
  barrier(s);
  each(s, h->cells, sort_cell_all);
  barrier(s);
  s->room = 0;
  each(s, h->n, find_contacts_all);
  barrier(s);
  scan(s, h->contact_first, h->contact_count, h->n);
  if (s->me == 0) make_room(h);
  barrier(s);
  s->room = h->room;
  each(s, h->n, find_contacts_all);
}

static void judge_solving(self *s, int rz, int first) {
  double now = added(s, rz), none = 0.0;
  double x = added(s, first), y = added(s, first + 1), z = added(s, first + 2);
  gki_item_judge_solve(&s->c, &s->solving, &now, &none, &x, &y, &z, &s->h->w, 0);
}

/* Finds the direction of the Newton step. */
static void solve(self *s) {
  hand *h = s->h;
  each(s, h->n, assemble_all);
  barrier(s);
  double sum[6];
  for (int k = 0; k < 3; ++k) {
    sum[k] = added(s, FORCE_X + k);
    sum[3 + k] = added(s, ROWS_X + k);
  }
  gki_item_translate(&s->c, &sum[0], &sum[1], &sum[2], &sum[3], &sum[4], &sum[5], 0);
  each(s, h->n, start_solve_all);
  barrier(s);
  judge_solving(s, BEGIN_RZ, BEGIN_X);
  int passes = 0;
  do {
    each(s, h->n, direct_all);
    barrier(s);
    each(s, h->hinges, multiply_hinges_all);
    barrier(s);
    each(s, h->n, multiply_all);
    barrier(s);
    s->pq = added(s, STEP_PQ);
    each(s, h->n, advance_all);
    barrier(s);
    judge_solving(s, STEP_RZ, STEP_X);
  } while (++passes < 1000 && s->solving);
  if (s->me == 0) h->state.cg += (uint64_t)passes;
}

/* Finds the length of the Newton step. */
static void search(self *s) {
  hand *h = s->h;
  uint unused;
  gki_item_start_search(&s->c, s->me == 0 ? &h->largest : &unused, 0);
  int passes = 0;
  do {
    each(s, h->n, try_step_all);
    barrier(s);
    each(s, h->n, add_energy_all);
    each(s, h->hinges, add_hinges_all);
    barrier(s);
    s->energy = added_to(added(s, TRIED), s, TRIED_HINGES);
    gki_item_judge_search(&s->c, &s->searching, &s->energy, 0);
  } while (++passes < 30 && s->searching);
  each(s, h->n, accept_all);
  barrier(s);
  double gain = added(s, GAINED);
  gki_item_judge_newton(&s->moving, &h->largest, &gain, &s->c, &h->w, 0);
  if (s->me == 0) h->state.searches += (uint64_t)passes;
}

static void end_step(self *s) {
  hand *h = s->h;
  each(s, h->n, finish_all);
  each(s, h->n, measure_all);
  each(s, h->hinges, add_last_hinges_all);
  barrier(s);
  double energy = added_to(added(s, END_ENERGY), s, END_HINGES), kinetic = added(s, END_KINETIC);
  double highest = h->highest, taken = h->state.taken;
  for (int k = 0; k < 3; ++k) s->momentum[k] = added(s, END_X + k);
  gki_item_judge_energy(&energy, &kinetic, &s->keep, &highest, &taken, &s->momentum[0], &s->momentum[1],
                        &s->momentum[2], &h->w, 0);
  each(s, h->n, take_back_all);
  barrier(s);
  if (s->me > 0) return;
  h->highest = highest;
  h->state.taken = taken;
  h->state.energy = energy;
  h->state.kinetic = kinetic;
  h->state.touching = (int)added(s, END_TOUCHING);
}

static void step_of(hand *h, int me) {
  self s = {.h = h, .me = me};
  each(&s, h->n, predict_all);
  int passes = 0;
  do {
    find_all_contacts(&s);
    each(&s, h->n, stretching_all);
    each(&s, h->hinges, turning_all);
    each(&s, h->n, pushing_all);
    barrier(&s);
    each(&s, h->n, bending_all);
    solve(&s);
    search(&s);
  } while (++passes < 60 && s.moving);
  if (me == 0) h->state.newton += (uint64_t)passes;
  end_step(&s);
}

void bench_softbody_step(hand *h) {
  if (h->style == HAND_LOOPS) {
    step_of(h, 0);
  } else {
#pragma omp parallel num_threads(h->threads)
    step_of(h, omp_get_thread_num());
  }
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

hand *bench_softbody_start(const mesh *body, const world *constants, int threads, hand_style style) {
  hand *h = bench_alloc(1, sizeof *h);
  int n = body->vertex_count, hinges = body->hinge_count;
  *h = (hand){.m = body, .w = *constants, .n = n, .hinges = hinges, .cells = FIRST_CELLS, .threads = threads,
              .style = style};
  while (h->cells < n) h->cells *= 2;
  ALLOC(x, n), ALLOC(x_old, n), ALLOC(guess, n), ALLOC(v, n), ALLOC(trial, n), ALLOC(load, n);
  ALLOC(bonds, body->spring_count), ALLOC(stretch, n), ALLOC(hinge_bonds, hinges), ALLOC(turn, hinges), ALLOC(bend, n);
  ALLOC(cell_count, h->cells), ALLOC(cell_first, h->cells + 1), ALLOC(member, n);
  ALLOC(contact_count, n), ALLOC(contact_first, n + 1), ALLOC(push, n);
  ALLOC(r, n), ALLOC(rows, n), ALLOC(inverse, n), ALLOC(u, n), ALLOC(z, n), ALLOC(p, n), ALLOC(q, n);
  ALLOC(sums, threads), ALLOC(totals, threads);
  return h;
}

void bench_softbody_restore(hand *h, const v3 *x, const v3 *v, const double *load, const hand_state *state, int room,
                            double highest) {
  size_t n = (size_t)h->n;
  memcpy(h->x, x, n * sizeof *x);
  memcpy(h->v, v, n * sizeof *v);
  memcpy(h->load, load, n * sizeof *load);
  h->contact_first[n] = state->contacts;
  h->state = *state;
  h->highest = highest;
  set_room(h, room);
}

hand_state bench_softbody_look(const hand *h) {
  hand_state state = h->state;
  state.x = h->x;
  state.v = h->v;
  return state;
}
