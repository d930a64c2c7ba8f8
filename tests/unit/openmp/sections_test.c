/* The OpenMP backend: sections side by side, loops, several devices at once, and random lists of them, against the
 * reference: GK_SEED=n runs one again, GK_LISTS=n as many as you like. */
#include "world.h"
#include "unit/support/await.h"
#include "unit/support/chance.h"
#include "gk_kernel.h"
#include "reference/reference.h"
#include <pthread.h>
#include <stdatomic.h>

GK_SOURCE(openmp_sections_test)
GK_KERNEL(step, (inout(int, x), value(int, id))) { x[i] = (int)((uint)x[i] * 3u + (uint)id + 1u); }
GK_KERNEL(take_in, (inout(int, x), in(int, y))) { x[0] = (int)((uint)x[0] * 5u + (uint)y[0]); }
GK_KERNEL(less, (inout(int, x))) { x[0] -= 1; }
GK_KERNEL(total, (in(float, x), sum(float, r))) { r[0] += x[i]; }
GK_KERNEL(halve, (inout(float, r))) { r[0] *= 0.5f; }
GK_SOURCE_END

enum { REPEATS = 14 }; /* in series, then side by side, then the better one */
enum { A = 1, B, C, D, E, N, ONE, TWO, FLAG, R, XF, ITEMS = 5000 };
static const gk_slot_desc slots[] = {
  GK_BUFFER(A, int), GK_BUFFER(B, int), GK_BUFFER(C, int), GK_BUFFER(D, int), GK_BUFFER(E, int), GK_SCALAR(N, int),
  GK_SCALAR(ONE, int), GK_SCALAR(TWO, int), GK_BUFFER(FLAG, int), GK_BUFFER(R, float), GK_BUFFER(XF, float),
};
static int cells[5][ITEMS], flag[1];
static float sums[1], terms[ITEMS];
static void bind_all(world *w, int items) {
  BIND(w, {A, {.ptr = cells[0]}}, {B, {.ptr = cells[1]}}, {C, {.ptr = cells[2]}}, {D, {.ptr = cells[3]}},
          {E, {.ptr = cells[4]}}, {N, {.i32 = items}}, {ONE, {.i32 = 1}}, {TWO, {.i32 = 2}}, {FLAG, {.ptr = flag}},
          {R, {.ptr = sums}}, {XF, {.ptr = terms}});
}

static void reset(void) {
  for (int k = 0; k < 5; ++k)
    for (int i = 0; i < ITEMS; ++i) cells[k][i] = k;
  for (int i = 0; i < ITEMS; ++i) terms[i] = 0.1f + (float)(i * 7919 % 1000) * 0.37f;
  sums[0] = 0;
}

/* A launch on memory as it was at first, but for the flag. */
static void run_anew(world *w, int flag_is) {
  reset();
  flag[0] = flag_is;
  assert_runs(w);
}

static int stepped(int x, const char *ids) {
  for (; *ids; ++ids) x = (int)((unsigned)x * 3u + (unsigned)(*ids - '0') + 1u);
  return x;
}

/* Three sections, one of them with sections in it; the tasks before and behind see the results of all of them. */
LIST(straight, GK_RUN(step, N, A, ONE),
  PARALLEL(
    SECTION(GK_RUN(step, N, A, TWO), GK_RUN(step, N, A, ONE)),
    SECTION(GK_RUN(step, N, B, TWO), PARALLEL(SECTION(GK_RUN(step, N, B, ONE)),
                                              SECTION(GK_RUN(step, N, C, ONE), GK_RUN(step, GK_ONE, C, TWO))),
            GK_RUN(step, N, C, TWO)),
    SECTION(GK_RUN(step, N, D, ONE))),
  GK_RUN(take_in, GK_ONE, E, A), GK_RUN(take_in, GK_ONE, E, B), GK_RUN(take_in, GK_ONE, E, C),
  GK_RUN(take_in, GK_ONE, E, D));

TEST(test_straight_sections) {
  for (int items = 1; items <= ITEMS; items += ITEMS - 1)
    FOR_EACH_WORLD(w, &straight, 1, 2, 3, 8) {
      bind_all(&w, items);
      for (int k = 0; k < REPEATS; ++k) {
        run_anew(&w, 0);
        int last = items - 1;
        const int wanted[] = {stepped(0, "121"), stepped(1, "21"), stepped(2, last ? "12" : "122"), stepped(3, "1")};
        unsigned e = 4;
        for (int s = 0; s < 4; ++s) {
          assert_int_equal(cells[s][last], wanted[s]);
          e = e * 5 + (unsigned)cells[s][0];
        }
        assert_int_equal(cells[4][0], (int)e);
      }
    }
}

/* A dump's lines about a PARALLEL, at each stage of learning about it. */
TEST(test_dump_of_sections) {
  LIST(list, PARALLEL(SECTION(GK_RUN(step, N, A, ONE)), SECTION(GK_RUN(total, N, XF, R))),
             PARALLEL(SECTION(LOOP(FLAG, GK_RUN(step, N, A, ONE))), SECTION(GK_RUN(step, N, B, TWO))));
  static const struct { int threads; gki_fork fork; const char *said; } cases[] = {
    {1, {.trial = {.series_samples = 9}}, "one after the other, as there is one thread\n"},
    {2, {.in_order = true}, "one after the other, as two of them add to one slot\n"},
    {2, {.trial = {.split_samples = 1}}, "not timed yet\n"},
    {2, {.trial = {.series_samples = 1, .series_ns = 250}}, "one after the other: 250 ns, too short to share\n"},
    {2, {.trial = {.series_samples = 1, .split_samples = 1, .series_ns = 5000, .split_ns = 3000, .split = true}},
     "side by side: 3e+03 ns, against 5e+03 ns one after the other\n"},
    {2, {.trial = {.series_samples = 1, .split_samples = 1, .series_ns = 50, .split_ns = 75}},
     "one after the other: 50 ns, against 75 ns side by side\n"},
  };
  for (size_t k = 0; k < GK_COUNT(cases); ++k)
    for (uint32_t f = 0; f < 2; ++f) {
      char said[160];
      WORLD(w, &list, cases[k].threads, AS_MEASURED);
      assert_int_equal(w.program.fork_count, 2);
      gki_fork *fork = &w.program.forks[f];
      fork->trial = cases[k].fork.trial;
      fork->in_order = cases[k].fork.in_order;
      snprintf(said, sizeof said, "  parallel, 2 sections%s: %s", fork->straight ? "" : " with blocks in them",
               cases[k].said);
      assert_dumps(&w, said, fork->straight ? "    task 2 (step): kernel" : "\n  task 11 (step): kernel");
    }
}

/* Sections of different PARALLELs that add to one slot don't need an order. */
TEST(test_sums_of_two_parallels) {
#define OF(first, second) PARALLEL(SECTION(first), SECTION(second))
#define FIRST OF(GK_RUN(total, N, XF, R), GK_RUN(step, N, A, ONE))
#define SECOND OF(GK_RUN(step, N, A, ONE), GK_RUN(total, N, XF, R))
  LIST(list, FIRST, SECOND, SECOND, FIRST, FIRST);
  WORLD(w, &list, 2, AS_MEASURED);
  assert_int_equal(w.program.fork_count, 5);
  for (uint32_t f = 0; f < 5; ++f) assert_false(w.program.forks[f].in_order);
}

/* The order of whole numbers doesn't matter: sections that add them to one slot may run side by side, and their sums
 * need no partial sums in order. */
TEST(test_which_sums_come_in_order) {
  static const struct { const char *element; bool in_order; } types[] = {
    {"int", false}, {"int32_t", false}, {"unsigned", false}, {"unsigned int", false}, {"uint", false},
    {"uint32_t", false}, {"float", true}, {"double", true}};
  for (size_t k = 0; k < GK_COUNT(types); ++k) {
    const uint32_t bytes = strcmp(types[k].element, "double") == 0 ? 8 : 4;
    const gk_param param = {"sum", types[k].element, bytes, bytes, GK_PTR, GK_ACCESS_SUM};
    const gk_kernel adding = {.name = "adding", .params = &param, .param_count = 1, .host = total.host}; /* never run */
    const gk_slot_desc sum = {R, GK_PTR, "R", .element = types[k].element, .element_bytes = bytes};
    const gk_task tasks[] = {OF(GK_RUN(adding, GK_ONE, R), GK_RUN(adding, GK_ONE, R))};
    const gk_list list = {GK_ABI, "sums", tasks, GK_COUNT(tasks), &sum, 1};
    WORLD(w, &list, 2, AS_MEASURED);
    if (w.program.forks[0].in_order != types[k].in_order || w.program.sums[0].exact == types[k].in_order)
      fail_msg("%s", types[k].element);
  }
}

/* Floats: 1/2 (r + a) + b is not 1/2 (r + b) + a, nor is r + a + b = r + b + a. */
TEST(test_sums_into_one_slot) {
#define TOTAL(items) GK_RUN(total, items, XF, R)
  LIST(list, PARALLEL(SECTION(TOTAL(N), TOTAL(ONE)), SECTION(LOOP(FLAG, TOTAL(TWO), GK_RUN(less, GK_ONE, FLAG))),
                      SECTION(TOTAL(N))),
             GK_RUN(halve, GK_ONE, R), PARALLEL(SECTION(TOTAL(N)), SECTION(TOTAL(TWO))));
  float first = 0;
  FOR_EACH_WORLD(w, &list, 1, 2, 3, 8) {
    for (uint32_t f = 0; f < w.program.fork_count; ++f) assert_true(w.program.forks[f].in_order);
    bind_all(&w, 3333);
    for (int k = 0; k < 50; ++k) {
      run_anew(&w, 3);
      if (k == 0 && w.costs == AS_MEASURED) first = sums[0]; /* of that many threads */
      assert_memory_equal(&sums[0], &first, sizeof first);
    }
    double expected = 0;
    for (int k = 0; k < 3333; ++k) expected += (double)terms[k];
    expected = (2 * expected + (double)terms[0] + 3 * ((double)terms[0] + (double)terms[1])) / 2 + expected +
               (double)terms[0] + (double)terms[1];
    assert_true(fabs((double)first / expected - 1) < 1e-4);
  }
}

TEST(test_straight_loops) {
  LIST(list, GK_WHILE(FLAG, .max_iterations = 5), GK_RUN(step, N, A, ONE), GK_RUN(less, GK_ONE, FLAG), GK_END,
             GK_DO_WHILE(E, .max_iterations = 3), GK_RUN(step, N, B, ONE), GK_END, GK_DO_WHILE(D), GK_END);
  static const struct { int flag, e; unsigned passes[3]; bool hit[3]; const char *a, *b; } cases[] = {
    {0, 0, {0, 1, 1}, {false, false}, "", "1"},       {1, 0, {1, 1, 1}, {false, false}, "1", "1"},
    {5, 0, {5, 1, 1}, {false, false}, "11111", "1"},  {6, 0, {5, 1, 1}, {true, false}, "11111", "1"},
    {-1, 7, {5, 3, 1}, {true, true}, "11111", "111"}, {2, 7, {2, 3, 1}, {false, true}, "11", "111"}};
  FOR_EACH_WORLD(w, &list, 2) {
    bind_all(&w, 700);
    for (size_t k = 0; k < GK_COUNT(cases); ++k) {
      reset();
      cells[3][0] = 0;
      cells[4][0] = cases[k].e;
      flag[0] = cases[k].flag;
      assert_runs(&w);
      for (int loop = 0; loop < 3; ++loop) {
        assert_int_equal(w.record.passes[loop], cases[k].passes[loop]);
        assert_int_equal(w.record.hit_bound[loop], cases[k].hit[loop]);
      }
      assert_int_equal(w.record.limit, cases[k].hit[0] ? w.plan->loops[0] : cases[k].hit[1] ? w.plan->loops[1] : 0);
      assert_int_equal(cells[0][699], stepped(0, cases[k].a));
      assert_int_equal(cells[1][699], stepped(1, cases[k].b));
    }
  }
}

/* A task that is worth waking the team for, in the middle of a pass: the pass goes on where it was. */
HAND_KERNEL(counting, INOUT(int)) {
  int *x = args[0].ptr;
  for (size_t k = range.begin; k < range.end; ++k) ++x[k];
}

TEST(test_team_called_in_a_pass) {
  LIST(list, LOOP(FLAG, GK_RUN(step, GK_ONE, B, ONE), GK_RUN(counting, N, A), GK_RUN(step, GK_ONE, B, TWO),
                  GK_RUN(less, GK_ONE, FLAG)));
  FOR_EACH_WORLD(w, &list, 2) {
    bind_all(&w, 16);
    for (int k = 0; k < 5; ++k) {
      run_anew(&w, 4);
      assert_int_equal(w.record.passes[0], 4);
      for (int i = 0; i < 16; ++i) assert_int_equal(cells[0][i], 4);
      assert_int_equal(cells[1][0], stepped(1, "12121212"));
    }
  }
}

static world *cancelled_world;
HAND_KERNEL(cancelling, INOUT(int)) {
  int *left = args[0].ptr;
  if (--*left == 0) __atomic_store_n(&cancelled_world->cancel, 1, __ATOMIC_RELAXED);
}

TEST(test_cancel) {
  LIST(list, LOOP(FLAG, GK_RUN(cancelling, GK_ONE, A), GK_RUN(step, N, B, ONE)), GK_RUN(step, GK_ONE, C, ONE),
             GK_RUN_ALWAYS(step, GK_ONE, D, ONE));
  FOR_EACH_WORLD(w, &list, 2) {
    cancelled_world = &w;
    bind_all(&w, ITEMS);
    reset();
    flag[0] = 1;
    cells[0][0] = 7;
    assert_runs(&w);
    assert_int_equal(w.record.state, GK_CANCELLED);
    assert_int_equal(w.record.passes[0], 7);
    assert_int_equal(cells[1][ITEMS - 1], stepped(1, "1111111"));
    assert_int_equal(cells[2][0], 2);
    assert_int_equal(cells[3][0], stepped(3, "1"));
  }
}

/* A section that would loop for ever ends when another fails; the team parts, and the graph can be launched again. */
TEST(test_failure_in_a_section) {
#define TOO_MANY {.op = GK_OP_KERNEL, .name = "too many", .kernel = &step, .items = {N, TWO, TWO}, .args = {B, ONE}}
  LIST(list, PARALLEL(SECTION(TOO_MANY), SECTION(LOOP(FLAG, GK_RUN(step, GK_ONE, A, ONE))),
                      SECTION(LOOP(FLAG, GK_RUN(step, GK_ONE, C, ONE), IF(FLAG, GK_RUN(step, GK_ONE, C, TWO))))),
             GK_RUN(step, GK_ONE, D, ONE));
  FOR_EACH_TEAM(w, &list, 1, 2, 3, 8) {
    bind_all(&w, 1);
    for (int k = 0; k < REPEATS; ++k) {
      run_anew(&w, 0);
      assert_int_equal(cells[3][0], stepped(3, "1"));
    }
    for (int k = 0; k < 5; ++k) {
      reset();
      flag[0] = 1;
      bind_i32(&w, N, INT32_MAX);
      assert_fails(GK_ERROR_INVALID, "too many", world_launch(&w, 0));
      assert_int_equal(cells[3][0], 3);
      bind_i32(&w, N, 1);
      flag[0] = 0;
      assert_runs(&w);
    }
  }
}

enum { MAX_TASKS = 600, MAX_SLOTS = 300, ROOM = 3000, COUNTS = 4 };
static const int counts[COUNTS] = {1, 3, 100, ROOM};
enum { NUMBER = 1, CHAIN = NUMBER + 2 * COUNTS }; /* slots: the counts; some ids; then cells */
typedef struct generator { uint64_t random; gk_task tasks[MAX_TASKS]; uint32_t count, budget; gk_slot next; } generator;
static void put(generator *g, gk_task task) {
  assert_true(g->count < MAX_TASKS);
  g->tasks[g->count++] = task;
}
static void put_end(generator *g) { put(g, (gk_task)GK_END); }
static gk_slot new_cell(generator *g) {
  assert_true(g->next < MAX_SLOTS);
  return g->next++;
}
static gk_slot some_number(generator *g, gk_slot first) { return first + (gk_slot)pick(&g->random, COUNTS); }
static void put_block(generator *g, gk_slot chain, uint32_t depth);
static void put_sections(generator *g, gk_slot chain, uint32_t depth) {
  gk_slot own[5];
  uint32_t count = pick(&g->random, 5);
  put(g, (gk_task)GK_PARALLEL);
  for (uint32_t k = 0; k < count; ++k) {
    own[k] = new_cell(g);
    put(g, (gk_task)GK_SECTION);
    put_block(g, own[k], depth + 1);
    put_end(g);
  }
  put_end(g);
  for (uint32_t k = 0; k < count; ++k) put(g, (gk_task)GK_RUN(take_in, GK_ONE, chain, own[k]));
}

static void put_item(generator *g, gk_slot chain, uint32_t depth) {
  uint32_t what = pick(&g->random, depth < 5 && g->next < MAX_SLOTS - 40 ? 10 : 4);
  if (g->budget) --g->budget;
  if (what < 7) {
    if (what >= 4) put_sections(g, chain, depth);
    else put(g, (gk_task)GK_RUN(step, some_number(g, NUMBER), chain, some_number(g, NUMBER + COUNTS)));
    return;
  }
  gk_slot cell = new_cell(g);
  put(g, (gk_task)GK_FILL(cell, GK_ONE, pick(&g->random, 4)));
  if (what == 7) {
    put(g, (gk_task)GK_IF(cell));
    put_block(g, chain, depth + 1);
    put(g, (gk_task)GK_ELSE);
    put_block(g, chain, depth + 1);
  } else if (what == 8) {
    put(g, (gk_task)GK_SWITCH(cell));
    for (int k = 0; k < 3; ++k) {
      put(g, (gk_task)GK_CASE);
      put_block(g, chain, depth + 1);
      put_end(g);
    }
  } else {
    put(g, (gk_task)GK_RUN(less, GK_ONE, cell)); /* a loop that ends: WHILE from -1 on would not */
    put(g, (gk_task){.op = GK_OP_WHILE, .flag = cell, .max_iterations = 1 + pick(&g->random, 4)});
    put_block(g, chain, depth + 1);
    put(g, (gk_task)GK_RUN(less, GK_ONE, cell));
  }
  put_end(g);
}

static void put_block(generator *g, gk_slot chain, uint32_t depth) {
  for (uint32_t items = pick(&g->random, 5); items && g->budget; --items) put_item(g, chain, depth);
}

static int mine[MAX_SLOTS][ROOM], theirs[MAX_SLOTS][ROOM];
static void one_list(uint64_t seed) {
  static const int threads[] = {1, 2, 3, 8};
  static generator g;
  static gk_slot_desc table[MAX_SLOTS];
  g = (generator){.random = mix(seed), .budget = 30, .next = CHAIN + 1};
  for (uint32_t items = 2 + pick(&g.random, 4); items; --items) put_item(&g, CHAIN, 0);
  for (gk_slot k = 1; k < g.next; ++k)
    table[k - 1] = k < CHAIN ? (gk_slot_desc)GK_SCALAR(k, int) : (gk_slot_desc)GK_BUFFER(k, int);
  const gk_list list = {GK_ABI, "random", g.tasks, g.count, table, (size_t)g.next - 1};
  WORLD(w, &list, threads[seed % 4], (costs)(seed / 4 % 3));
  reference *book = reference_open(&list);
  assert_non_null(book);
  for (int k = 0; k < COUNTS; ++k) BIND(&w, {NUMBER + k, {.i32 = counts[k]}}, {NUMBER + COUNTS + k, {.i32 = k}});
  for (gk_slot k = CHAIN; k < g.next; ++k) bind_ptr(&w, k, mine[k]);
  for (gk_slot k = 1; k < g.next; ++k)
    if (k < CHAIN) reference_bind_value(book, reference_find(book, k), w.values[k]);
    else reference_bind(book, reference_find(book, k), theirs[k], sizeof theirs[k]);
  for (int launch = 0; launch < 8; ++launch) {
    memset(mine, 0, (size_t)g.next * sizeof *mine);
    memset(theirs, 0, (size_t)g.next * sizeof *theirs);
    assert_true(reference_launch(book, 0));
    assert_runs(&w);
    const reference_loop *loops = reference_last(book)->loops;
    bool same = memcmp(mine, theirs, (size_t)g.next * sizeof *mine) == 0;
    assert_int_equal(reference_last(book)->loop_count, w.plan->loop_count);
    for (uint32_t k = 0; k < w.plan->loop_count; ++k)
      same = same && w.record.passes[k] == loops[k].passes && w.record.hit_bound[k] == loops[k].hit_bound;
    if (!same) fail_msg("GK_SEED=%llu, launch %d: not what the list says", (unsigned long long)seed, launch);
  }
  reference_close(book);
}

TEST(test_random_lists) {
  const char *seed = getenv("GK_SEED"), *lists = getenv("GK_LISTS");
  const uint64_t first = seed ? strtoull(seed, NULL, 10) : first_seed();
  const uint64_t count = seed ? 1 : lists ? strtoull(lists, NULL, 10) : scaled(150);
  for (uint64_t k = 0; k < count; ++k) one_list(first + k);
}

static void *run_alone(void *at) {
  LIST(list, PARALLEL(SECTION(GK_RUN(step, N, A, ONE)), SECTION(GK_RUN(step, N, B, TWO))), GK_RUN(step, N, A, TWO));
  (void)at;
  int *memory = calloc(2 * ITEMS, sizeof *memory);
  intptr_t wrong = !memory;
  WORLD(w, &list, 2, SHARE_ALL);
  BIND(&w, {A, {.ptr = memory}}, {B, {.ptr = memory + ITEMS}}, {N, {.i32 = ITEMS}}, {ONE, {.i32 = 1}},
           {TWO, {.i32 = 2}});
  for (int k = 0; k < 40 && !wrong; ++k) {
    memset(memory, 0, 2 * ITEMS * sizeof *memory);
    wrong |= world_launch(&w, 0) != GK_OK;
    for (int i = 0; i < ITEMS; ++i) wrong |= memory[i] != stepped(0, "12") || memory[ITEMS + i] != stepped(0, "2");
  }
  free(memory);
  return (void *)wrong;
}

TEST(test_devices_at_once) {
  pthread_t threads[4];
  for (size_t k = 0; k < GK_COUNT(threads); ++k)
    assert_int_equal(pthread_create(&threads[k], NULL, run_alone, NULL), 0);
  for (size_t k = 0; k < GK_COUNT(threads); ++k) {
    void *wrong = NULL;
    assert_int_equal(pthread_join(threads[k], &wrong), 0);
    assert_null(wrong);
  }
}

/* After a launch that woke the team, this process comes to rest. */
TEST(test_nothing_spins) {
  WORLD(w, &straight, 2, SHARE_ALL);
  bind_all(&w, ITEMS);
  run_anew(&w, 0);
  await(others_sleep());
}

int main(void) { return run_all_tests(); }
