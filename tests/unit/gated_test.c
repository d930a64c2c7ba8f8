/* The walker, on the golden traces of docs/contract.md and the chapters of loops, checkpoints and sections: lists with
 * kernels that count, every one with and without GK_STEP_LOOP and GK_STEP_FORK. */
#include "walk_world.h"
#include <string.h>

enum { CELLS = 32, BIG = 4000 };
enum { A = 1, B, C, D, E, F, G, H, N, M, K, X, Y, P, Q };
enum { LB = 101, LC, LP, LQ, LX, LY };

#define CELL(s) {.slot = (s), .type = GK_PTR, .name = #s, .element = "int", .element_bytes = 4}
static const gk_slot_desc slots[] = {CELL(A), CELL(B), CELL(C), CELL(D), CELL(E), CELL(F), CELL(G), CELL(H),
                                     CELL(N), CELL(M), CELL(K), CELL(X), CELL(Y), CELL(P), CELL(Q)};

/* ---- kernels: they get slots' memory and do one thing ---- */

static void run_tick(const gk_value *a, gk_range r) { (void)r; ++*(int32_t *)a[0].ptr; }
static void run_drop(const gk_value *a, gk_range r) { (void)r; --*(int32_t *)a[0].ptr; }
static void run_one(const gk_value *a, gk_range r) { (void)r; *(int32_t *)a[0].ptr = 1; }
static void run_two(const gk_value *a, gk_range r) { (void)r; *(int32_t *)a[0].ptr = 2; }
static void run_five(const gk_value *a, gk_range r) { (void)r; *(int32_t *)a[0].ptr = 5; }
static void run_move(const gk_value *a, gk_range r) { (void)r; *(int32_t *)a[0].ptr = *(int32_t *)a[1].ptr; }

#define KERNEL(id) static const gk_kernel id = {.name = #id, .host = run_##id}
KERNEL(tick); KERNEL(drop); KERNEL(one); KERNEL(two); KERNEL(five); KERNEL(move);
static int32_t *cancel_at; /* `halt` cancels the launch */
static void run_halt(const gk_value *a, gk_range r) { (void)a; (void)r; *cancel_at = 1; }
KERNEL(halt);
/* Raises a flag every second time: once when it runs, not when it is run again. */
static void run_ask(const gk_value *a, gk_range r) { (void)r; *(int32_t *)a[0].ptr = ++*(int32_t *)a[1].ptr & 1; }
KERNEL(ask);
#define DO(k, ...) GK_RUN(k, GK_ONE, __VA_ARGS__)

/* ---- a memory of cells, one per slot ---- */

typedef struct cells {
  int32_t at[CELLS][2];
  uint32_t reads[BIG];
} cells;

static void cells_execute(world *w, uint32_t node) {
  cells *c = w->user;
  const gk_node *task = &w->plan->nodes[node];
  gk_value args[GK_MAX_ARGS];
  for (uint32_t k = 0; k < task->arg_count; ++k) args[k].ptr = c->at[w->plan->args[task->args + k]];
  task->kernel->host(args, (gk_range){0, 1, {1, 1, 1}});
}

static int64_t cells_flag(world *w, uint32_t node) {
  cells *c = w->user;
  const gk_node *block = &w->plan->nodes[node];
  if (node < BIG) ++c->reads[node];
  return c->at[block->flag][block->offset / 4];
}

typedef struct test {
  world w;
  cells c;
} test;

static void begin(test *t, const gk_task *tasks, size_t count, uint32_t mode) {
  memset(t, 0, sizeof *t);
  gk_list list = {GK_ABI, "test", tasks, count, slots, GK_COUNT(slots)};
  t->w = (world){.execute = cells_execute, .flag = cells_flag, .user = &t->c, .random = mode};
  t->w.takes = (mode & 1 ? TAKES_LOOP : 0) | (mode & 2 ? TAKES_FORK : 0);
  cancel_at = &t->w.cancel;
  world_begin(&t->w, &list, mode & 4 ? GK_ISOLATE : 0);
}

/* Every test runs in all modes: loops and forks by steps or by the backend, tasks in runs or alone. */
#define FOR_LIST(t, tasks) \
  for (uint32_t mode = 0; mode < 8; ++mode) \
    for (bool gki_once = (begin(&t, tasks, GK_COUNT(tasks), mode), true); gki_once; gki_once = false, world_end(&t.w))
#define CELL_OF(t, s) ((t).c.at[s][0])

static gk_state launch(test *t, int32_t label) {
  uint32_t node = label ? gki_plan_label(t->w.plan, label) : 0;
  assert_true(!label || node);
  return world_launch(&t->w, node);
}
static int32_t yielded(const test *t) { return t->w.record.yielded ? t->w.plan->nodes[t->w.record.yielded].label : 0; }

static void expect_cells(const test *t, size_t count, const int32_t (*pairs)[2], int line) {
  for (size_t k = 0; k < count; ++k)
    if (CELL_OF(*t, pairs[k][0]) != pairs[k][1])
      fail_msg("line %d, takes %u: %s is %d, not %d", line, t->w.takes, slots[pairs[k][0] - 1].name,
               CELL_OF(*t, pairs[k][0]), pairs[k][1]);
}
#define EXPECT(t, ...) \
  expect_cells(&(t), GK_COUNT(((const int32_t[][2]){__VA_ARGS__})), (const int32_t[][2]){__VA_ARGS__}, __LINE__)

/* ---- golden traces ---- */

static void test_yield_and_resume(void **state) {
  (void)state;
  static const gk_task tasks[] = {DO(tick, A), GK_CHECKPOINT(LB, F), DO(tick, B), GK_END, DO(tick, C)};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, F) = 1;
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    EXPECT(t, {A, 1}, {B, 1}, {C, 0}, {F, 1}); /* the flag is the host's to clear */
    assert_int_equal(yielded(&t), LB);
    assert_int_equal(launch(&t, LB), GK_YIELDED); /* it wasn't cleared */
    EXPECT(t, {A, 1}, {B, 2}, {C, 0});
    CELL_OF(t, F) = 0;
    assert_int_equal(launch(&t, LB), GK_FINISHED);
    EXPECT(t, {A, 1}, {B, 3}, {C, 1});
    assert_int_equal(yielded(&t), 0);
  }
}

static void test_yield_in_a_loop(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_DO_WHILE(N), DO(tick, A), GK_CHECKPOINT(LB, F), DO(tick, B), GK_END,
                                  DO(tick, C), DO(drop, N), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, N) = 3;
    CELL_OF(t, F) = 1;
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    EXPECT(t, {A, 1}, {B, 1}, {C, 0}, {N, 3});
    assert_int_equal(t.w.record.passes[0], 0);
    CELL_OF(t, F) = 0;
    assert_int_equal(launch(&t, LB), GK_FINISHED);
    EXPECT(t, {A, 3}, {B, 4}, {C, 3}, {N, 0});
    assert_int_equal(t.w.record.passes[0], 3);
  }
}

static void test_yield_on_last_pass(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_DO_WHILE(N), DO(drop, N), GK_CHECKPOINT(LB, F), DO(tick, B), GK_END, GK_END};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, N) = CELL_OF(t, F) = 1;
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    EXPECT(t, {N, 0}, {B, 1});
    CELL_OF(t, F) = 0;
    assert_int_equal(launch(&t, LB), GK_FINISHED);
    EXPECT(t, {N, 0}, {B, 2});
    assert_int_equal(t.w.record.passes[0], 1);
  }
}

static void test_resume_past_a_finished_loop(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_DO_WHILE(A), DO(tick, X), DO(drop, A), GK_END, DO(tick, Y),
                                  GK_CHECKPOINT(LX, F), DO(tick, D), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, A) = 2;
    CELL_OF(t, F) = 1;
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    EXPECT(t, {X, 2}, {Y, 1}, {D, 1});
    CELL_OF(t, F) = 0;
    CELL_OF(t, A) = 7; /* armed again: no matter */
    memset(t.c.reads, 0, sizeof t.c.reads);
    assert_int_equal(launch(&t, LX), GK_FINISHED);
    EXPECT(t, {X, 2}, {Y, 1}, {D, 2}, {A, 7});
    assert_int_equal(t.c.reads[1], 0); /* the flag of a loop before the target isn't read */
    assert_int_equal(t.w.record.passes[0], 0);
  }
}

static void test_yield_in_an_inner_loop(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_DO_WHILE(N), DO(two, M), DO(tick, A), GK_DO_WHILE(M), GK_CHECKPOINT(LP, F),
                                  DO(tick, B), GK_END, DO(drop, M), GK_END, DO(drop, N), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, N) = 2;
    CELL_OF(t, F) = 1;
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    EXPECT(t, {B, 1}, {A, 1}, {N, 2}, {M, 2});
    CELL_OF(t, F) = 0;
    assert_int_equal(launch(&t, LP), GK_FINISHED);
    EXPECT(t, {B, 5}, {A, 2}, {N, 0});
    assert_int_equal(t.w.record.passes[0], 2);
    assert_int_equal(t.w.record.passes[1], 4);
  }
}

static void test_first_task_sets_the_flag(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_CHECKPOINT(LP, F), DO(one, F), DO(tick, B), GK_END, DO(tick, C)};
  test t;
  FOR_LIST(t, tasks) {
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    EXPECT(t, {B, 1}, {C, 0}, {F, 1});
    assert_int_equal(t.c.reads[1], 1);
  }
}

static void test_first_yielder_wins(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_CHECKPOINT(LP, F), DO(tick, A), GK_END, GK_CHECKPOINT(LQ, G), DO(tick, B), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, F) = CELL_OF(t, G) = 1;
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    assert_int_equal(yielded(&t), LP);
    EXPECT(t, {A, 1}, {B, 0});
    assert_true(t.w.record.ran[0] && !t.w.record.ran[1]);
    assert_int_equal(launch(&t, LQ), GK_YIELDED); /* P is skipped, its flag isn't read */
    assert_int_equal(yielded(&t), LQ);
    EXPECT(t, {A, 1}, {B, 1});
    assert_int_equal(t.c.reads[1], 1);
    assert_true(!t.w.record.ran[0] && t.w.record.ran[1]);
    CELL_OF(t, G) = 0;
    assert_int_equal(launch(&t, LQ), GK_FINISHED);
    EXPECT(t, {A, 1}, {B, 2});
    CELL_OF(t, F) = 0;
    assert_int_equal(launch(&t, LP), GK_FINISHED); /* an earlier label, without a yield */
    EXPECT(t, {A, 2}, {B, 3});
  }
}

static void test_sections_join_in_every_pass(void **state) {
  (void)state;
  static const gk_task tasks[] = {
      GK_DO_WHILE(N), GK_PARALLEL, GK_SECTION, DO(tick, X), GK_END, GK_SECTION, DO(drop, Y), GK_END, GK_END,
      GK_PARALLEL, GK_SECTION, DO(move, A, X), GK_END, GK_SECTION, DO(move, B, Y), GK_END, GK_END,
      GK_IF(Q), DO(tick, C), GK_END, DO(drop, N), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, N) = 4;
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    EXPECT(t, {X, 4}, {Y, -4}, {A, 4}, {B, -4}, {C, 0});
  }
}

static void test_always(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_RUN_ALWAYS(tick, GK_ONE, P), DO(tick, A), GK_CHECKPOINT(LB, F), DO(tick, B), GK_END,
                                  GK_RUN_ALWAYS(tick, GK_ONE, D), DO(tick, C), GK_RUN_ALWAYS(tick, GK_ONE, E)};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, F) = 1;
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    EXPECT(t, {P, 1}, {A, 1}, {B, 1}, {D, 1}, {C, 0}, {E, 1});
    CELL_OF(t, F) = 0;
    assert_int_equal(launch(&t, LB), GK_FINISHED);
    EXPECT(t, {P, 2}, {A, 1}, {B, 2}, {D, 2}, {C, 1}, {E, 2});
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    EXPECT(t, {P, 3}, {A, 2}, {B, 3}, {D, 3}, {C, 2}, {E, 3});
  }
}

/* ---- loops ---- */

static void test_counter_loops(void **state) {
  (void)state;
  static const gk_task tasks[] = {DO(tick, A), GK_DO_WHILE(N), DO(tick, B), DO(drop, N), GK_END, DO(tick, C),
                                  GK_WHILE(M), DO(tick, D), DO(tick, M), GK_END, DO(tick, E)};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, N) = 5;
    CELL_OF(t, M) = -3; /* negative is true */
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    EXPECT(t, {A, 1}, {B, 5}, {C, 1}, {D, 3}, {E, 1});
    assert_int_equal(t.w.record.passes[0], 5);
    assert_int_equal(t.w.record.passes[1], 3);
    CELL_OF(t, N) = 10;
    assert_int_equal(launch(&t, 0), GK_FINISHED); /* WHILE over 0: no pass */
    EXPECT(t, {A, 2}, {B, 15}, {C, 2}, {D, 3}, {E, 2});
    assert_int_equal(t.w.record.passes[1], 0);
    CELL_OF(t, N) = 1;
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    EXPECT(t, {B, 16}, {N, 0});
  }
}

static void test_flag_zero_at_do_while(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_DO_WHILE(N), DO(tick, A), GK_END, GK_WHILE(N), DO(tick, B), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    EXPECT(t, {A, 1}, {B, 0});
  }
}

static void test_nested_three(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_DO_WHILE(N), DO(five, M), GK_DO_WHILE(M), DO(two, K), GK_WHILE(K), DO(tick, A),
                                  DO(drop, K), GK_END, DO(drop, M), GK_END, DO(drop, N), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, N) = 2;
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    EXPECT(t, {A, 20}, {N, 0}, {M, 0}, {K, 0});
    assert_int_equal(t.w.record.passes[2], 20);
  }
}

static void test_ten_deep_and_empty_bodies(void **state) {
  (void)state;
  static const gk_task tasks[] = {
      GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A),
      GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), DO(tick, B), GK_END, GK_END, GK_END, GK_END, GK_END, GK_END, GK_END,
      GK_END, GK_END, GK_END, GK_DO_WHILE(A), GK_END, GK_WHILE(A), GK_END, GK_IF(A), GK_ELSE, GK_END, GK_SWITCH(A), GK_END,
      GK_PARALLEL, GK_END, GK_PARALLEL, GK_SECTION, GK_END, GK_END};
  test t;
  FOR_LIST(t, tasks) {
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    EXPECT(t, {B, 1});
    assert_int_equal(t.w.record.passes[0], 1);
    assert_int_equal(t.w.record.passes[10], 1);
    assert_int_equal(t.w.record.passes[11], 0);
  }
}

static void test_empty_list(void **state) {
  (void)state;
  static const gk_task tasks[] = {DO(tick, A)};
  test t;
  for (uint32_t mode = 0; mode < 4; ++mode) {
    begin(&t, tasks, 0, mode);
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    assert_int_equal(t.w.steps, 0);
    world_end(&t.w);
  }
}

static void test_branches(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_DO_WHILE(N), GK_IF(M), DO(tick, A), GK_ELSE, DO(tick, B), GK_END,
                                  GK_SWITCH(M, .offset = 4), GK_CASE, DO(tick, C), GK_END, GK_CASE, GK_END, GK_CASE, DO(tick, D), GK_END,
                                  GK_END, GK_IF(K), GK_WHILE(K), DO(drop, K), DO(tick, E), GK_END, GK_END, DO(drop, N), GK_END};
  static const int32_t cases[][4] = {{0, 1, 0}, {1, 0, 0}, {2, 0, 1}, {3, 0, 0}, {-1, 0, 0}, {INT32_MAX, 0, 0}};
  test t;
  for (size_t k = 0; k < GK_COUNT(cases); ++k)
    FOR_LIST(t, tasks) {
      CELL_OF(t, N) = 2;
      t.c.at[M][1] = cases[k][0];
      CELL_OF(t, M) = k % 2 ? -1 : 0;
      CELL_OF(t, K) = 3;
      assert_int_equal(launch(&t, 0), GK_FINISHED);
      EXPECT(t, {A, k % 2 ? 2 : 0}, {B, k % 2 ? 0 : 2}, {C, 2 * cases[k][1]}, {D, 2 * cases[k][2]}, {E, 3});
    }
}

static void test_bounds(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_DO_WHILE(Q, .max_iterations = 3), DO(tick, A), GK_END,
                                  GK_WHILE(Q, .max_iterations = 2), DO(tick, B), GK_DO_WHILE(P, .max_iterations = 1), GK_END,
                                  GK_END, DO(tick, C)};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, Q) = 1;
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    EXPECT(t, {A, 3}, {B, 2}, {C, 1});
    assert_int_equal(t.w.record.limit, 1);
    assert_true(t.w.record.hit_bound[0] && t.w.record.hit_bound[1] && !t.w.record.hit_bound[2]);
    CELL_OF(t, Q) = 0;
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    EXPECT(t, {A, 4}, {B, 2}, {C, 2});
    assert_int_equal(t.w.record.limit, 0); /* nothing stale */
    assert_int_equal(t.w.record.hit_bound[0], 0);
  }
}

static void test_bound_counts_one_entry(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_DO_WHILE(N), GK_DO_WHILE(Q, .max_iterations = 3), DO(tick, A), GK_CHECKPOINT(LP, F),
                                  DO(ask, F, B), GK_END, DO(tick, C), GK_END, DO(drop, N), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, Q) = 1;
    CELL_OF(t, N) = 2;
    uint64_t passes = 0, resumes = 0;
    for (gk_state now = launch(&t, 0);; now = launch(&t, LP), ++resumes) { /* every pass yields once */
      passes += t.w.record.passes[1];
      if (now == GK_FINISHED) break;
      CELL_OF(t, F) = 0;
    }
    assert_int_equal(passes, 6);
    assert_int_equal(resumes, 6);
    assert_int_equal(t.w.record.limit, 2);
    EXPECT(t, {A, 6}, {B, 12}, {C, 6}, {N, 0});
    CELL_OF(t, N) = 1; /* a fresh launch after a yield that nobody resumed: the count begins anew */
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    CELL_OF(t, F) = 0;
    assert_int_equal(launch(&t, LP), GK_YIELDED);
    CELL_OF(t, B) = 100;
    for (passes = 0; launch(&t, passes ? LP : 0) == GK_YIELDED; ++passes) CELL_OF(t, F) = 0;
    assert_int_equal(passes, 3);
  }
}

static void test_entry_from_its_beginning(void **state) {
  (void)state;
  /* Q yields behind the inner loop; then P inside it: the count that waits is that of the entry at hand. */
  static const gk_task tasks[] = {GK_DO_WHILE(N), GK_DO_WHILE(Q, .max_iterations = 4), DO(tick, A), GK_CHECKPOINT(LP, F),
                                  DO(tick, B), GK_END, GK_END, GK_CHECKPOINT(LQ, G), DO(tick, C), GK_END, DO(drop, N), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, N) = 2;
    CELL_OF(t, Q) = CELL_OF(t, F) = 1;
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    CELL_OF(t, F) = 0;
    CELL_OF(t, G) = 1;
    assert_int_equal(launch(&t, LP), GK_YIELDED);
    EXPECT(t, {A, 4}, {B, 5}, {C, 1});
    CELL_OF(t, G) = 0;
    assert_int_equal(launch(&t, LQ), GK_FINISHED);
    EXPECT(t, {A, 8}, {B, 9}, {C, 3}, {N, 0});
    assert_int_equal(t.w.record.passes[1], 4);
  }
}

/* ---- checkpoints ---- */

static void test_targets(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_TARGET(LX), DO(tick, A), GK_END, GK_CHECKPOINT(LP, F), GK_END, GK_TARGET(LY), GK_END,
                                  DO(tick, B)};
  test t;
  FOR_LIST(t, tasks) {
    assert_int_equal(launch(&t, LY), GK_FINISHED); /* a resume as the very first launch */
    EXPECT(t, {A, 0}, {B, 1});
    assert_true(!t.w.record.ran[0] && !t.w.record.ran[1] && t.w.record.ran[2]);
    CELL_OF(t, F) = 1;
    assert_int_equal(launch(&t, 0), GK_YIELDED); /* an empty block yields if its flag is set already */
    EXPECT(t, {A, 1}, {B, 1});
    assert_int_equal(yielded(&t), LP);
    assert_true(t.w.record.ran[0] && t.w.record.ran[1] && !t.w.record.ran[2]);
    assert_int_equal(launch(&t, 0), GK_YIELDED); /* a fresh launch after an ignored yield */
    EXPECT(t, {A, 2}, {B, 1});
    CELL_OF(t, F) = 0;
    assert_int_equal(launch(&t, LX), GK_FINISHED);
    EXPECT(t, {A, 3}, {B, 2});
  }
}

static void test_shared_flag(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_CHECKPOINT(LP, F), DO(tick, A), GK_END, GK_CHECKPOINT_AT(LQ, F, 4), DO(tick, B), GK_END,
                                  GK_CHECKPOINT(LX, F), DO(one, F), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    t.c.at[F][1] = -1;
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    assert_int_equal(yielded(&t), LQ);
    t.c.at[F][1] = 0;
    assert_int_equal(launch(&t, LQ), GK_YIELDED);
    assert_int_equal(yielded(&t), LX);
    EXPECT(t, {A, 1}, {B, 2});
  }
}

static void test_many_checkpoints(void **state) {
  (void)state;
  enum { COUNT = 1000 };
  static gk_task tasks[3 * COUNT];
  for (int k = 0; k < COUNT; ++k) {
    tasks[3 * k] = (gk_task){.op = GK_OP_CHECKPOINT, .flag = F, .label = 5 * (k * 7919 % COUNT) - 2500 + 1};
    tasks[3 * k + 1] = (gk_task)DO(tick, A);
    tasks[3 * k + 2] = (gk_task)GK_END;
  }
  test t;
  begin(&t, tasks, GK_COUNT(tasks), 0);
  CELL_OF(t, F) = 1;
  int32_t label = 0;
  for (int k = 0; k < COUNT; ++k) {
    assert_int_equal(launch(&t, label), GK_YIELDED);
    assert_int_equal(yielded(&t), tasks[3 * k].label);
    assert_true(t.w.steps <= 4);
    if (k + 1 < COUNT) label = tasks[3 * k + 3].label; /* the next one, without a yield there */
  }
  EXPECT(t, {A, COUNT});
  assert_int_equal(gki_plan_label(t.w.plan, 2), 0);
  assert_int_equal(gki_plan_label(t.w.plan, INT32_MAX), 0);
  assert_int_equal(gki_plan_label(t.w.plan, INT32_MIN), 0);
  world_end(&t.w);
}

static void test_yield_every_pass(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_DO_WHILE(N), DO(tick, A), GK_CHECKPOINT(LP, F), DO(ask, F, B), GK_END, DO(drop, N), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, N) = 100;
    for (int k = 0; k < 100; ++k) {
      assert_int_equal(launch(&t, k ? LP : 0), GK_YIELDED);
      assert_int_equal(t.w.record.passes[0], k ? 1 : 0);
      CELL_OF(t, F) = 0;
    }
    assert_int_equal(launch(&t, LP), GK_FINISHED);
    EXPECT(t, {A, 100}, {B, 200}, {N, 0});
  }
}

static void test_loop_inside_a_checkpoint(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_CHECKPOINT(LP, F), DO(two, N), GK_DO_WHILE(N), DO(tick, A), DO(one, F), DO(drop, N),
                                  GK_END, DO(tick, B), GK_END, DO(tick, C)};
  test t;
  FOR_LIST(t, tasks) {
    assert_int_equal(launch(&t, 0), GK_YIELDED); /* at the end of the block, not after the first pass */
    EXPECT(t, {A, 2}, {B, 1}, {C, 0});
    assert_int_equal(launch(&t, LP), GK_YIELDED); /* the whole block again */
    EXPECT(t, {A, 4}, {B, 2}, {C, 0});
    assert_int_equal(t.w.record.passes[0], 2);
  }
}

static void test_checkpoint_in_branches_in_a_loop(void **state) {
  (void)state;
  static const gk_task tasks[] = {
      GK_DO_WHILE(N), GK_IF(M), GK_CHECKPOINT(LP, F), DO(tick, A), GK_END, GK_ELSE, DO(tick, X), GK_CHECKPOINT(LQ, G),
      DO(tick, B), GK_END, DO(tick, Y), GK_END, GK_SWITCH(K), GK_CASE, DO(tick, C), GK_END, GK_CASE, DO(tick, D), GK_CHECKPOINT(LX, H),
      DO(tick, E), GK_END, GK_END, GK_END, DO(drop, N), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, N) = 2;
    CELL_OF(t, G) = 1;
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    assert_int_equal(yielded(&t), LQ);
    EXPECT(t, {A, 0}, {X, 1}, {B, 1}, {Y, 0});
    CELL_OF(t, G) = 0;
    CELL_OF(t, M) = 1; /* resuming into the other block takes that one all the same */
    memset(t.c.reads, 0, sizeof t.c.reads);
    assert_int_equal(launch(&t, LQ), GK_FINISHED);
    EXPECT(t, {A, 1}, {X, 1}, {B, 2}, {Y, 1}, {C, 2}, {D, 0}, {N, 0});
    assert_int_equal(t.c.reads[2], 1); /* in the second pass only */
    CELL_OF(t, N) = 1;
    CELL_OF(t, K) = 0;
    assert_int_equal(launch(&t, LX), GK_FINISHED);
    EXPECT(t, {C, 2}, {D, 0}, {E, 1}, {A, 1});
  }
}

static void test_third_level_and_siblings(void **state) {
  (void)state;
  static const gk_task tasks[] = {
      GK_DO_WHILE(N), DO(tick, A), DO(two, M), GK_WHILE(M), DO(tick, B), DO(two, K), GK_DO_WHILE(K), DO(tick, C),
      GK_CHECKPOINT(LP, F), DO(tick, D), GK_END, DO(drop, K), GK_END, DO(drop, M), GK_END,
      DO(tick, E), GK_DO_WHILE(Q), DO(tick, X), GK_END, GK_CHECKPOINT(LQ, G), DO(tick, Y), GK_END, DO(drop, N), GK_END,
      GK_DO_WHILE(Q), DO(tick, P), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, N) = 2;
    CELL_OF(t, F) = 1;
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    EXPECT(t, {A, 1}, {B, 1}, {C, 1}, {D, 1}, {E, 0}, {X, 0}, {Y, 0}, {P, 0}); /* later loops make no pass */
    CELL_OF(t, F) = 0;
    CELL_OF(t, G) = 1;
    assert_int_equal(launch(&t, LP), GK_YIELDED); /* in the outer loop, after the inner ones */
    assert_int_equal(yielded(&t), LQ);
    EXPECT(t, {A, 1}, {B, 2}, {C, 4}, {D, 5}, {E, 1}, {X, 1}, {Y, 1}, {P, 0});
    CELL_OF(t, G) = 0;
    assert_int_equal(launch(&t, LQ), GK_FINISHED);
    EXPECT(t, {A, 2}, {B, 4}, {C, 8}, {D, 9}, {E, 2}, {X, 2}, {Y, 3}, {P, 1}, {N, 0});
  }
}

static void test_resume_to_after_a_loop(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_DO_WHILE(N), GK_CHECKPOINT(LP, F), DO(tick, A), GK_END, DO(drop, N), GK_END,
                                  GK_CHECKPOINT(LQ, G), DO(tick, B), GK_END, DO(tick, C)};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, N) = 3;
    CELL_OF(t, F) = 1;
    assert_int_equal(launch(&t, LQ), GK_FINISHED); /* the checkpoint in the loop between is not run */
    EXPECT(t, {A, 0}, {B, 1}, {C, 1}, {N, 3});
    assert_true(!t.w.record.ran[0] && t.w.record.ran[1]);
  }
}

/* ---- sections ---- */

static void test_sections(void **state) {
  (void)state;
  static const gk_task tasks[] = {
      GK_CHECKPOINT(LP, F), GK_PARALLEL, GK_SECTION, GK_DO_WHILE(N), DO(tick, A), DO(drop, N), GK_END, GK_END,
      GK_SECTION, GK_IF(M), DO(tick, B), GK_ELSE, DO(tick, C), GK_END, GK_END, GK_SECTION, DO(tick, X), DO(move, Y, X), GK_END,
      GK_SECTION, GK_PARALLEL, GK_SECTION, DO(tick, D), GK_END, GK_SECTION, GK_WHILE(K), DO(drop, K), GK_END, GK_END, GK_END, GK_END,
      GK_END, DO(tick, E), GK_END, GK_PARALLEL, GK_SECTION, DO(tick, P), GK_END, GK_END};
  test t;
  FOR_LIST(t, tasks) {
    t.w.interleave = true;
    CELL_OF(t, N) = 5;
    CELL_OF(t, K) = 4;
    CELL_OF(t, F) = 1;
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    EXPECT(t, {A, 5}, {B, 0}, {C, 1}, {X, 1}, {Y, 1}, {D, 1}, {K, 0}, {E, 1}, {P, 0});
    assert_int_equal(t.w.record.passes[1], 4);
    CELL_OF(t, F) = 0;
    CELL_OF(t, N) = 1;
    CELL_OF(t, M) = 1;
    assert_int_equal(launch(&t, LP), GK_FINISHED); /* the region again, as one */
    EXPECT(t, {A, 6}, {B, 1}, {C, 1}, {X, 2}, {Y, 2}, {D, 2}, {E, 2}, {P, 1});
  }
}

static void test_limit_among_sections(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_PARALLEL, GK_SECTION, GK_WHILE(F), GK_END, GK_END, GK_SECTION, DO(tick, A),
                                  GK_DO_WHILE(Q, .max_iterations = 2), DO(tick, A), GK_END, GK_END,
                                  GK_SECTION, GK_DO_WHILE(Q, .max_iterations = 1), DO(tick, B), GK_END, GK_END, GK_END};
  test t;
  FOR_LIST(t, tasks) {
    for (uint64_t k = 0; k < 8; ++k) { /* in whatever order they come */
      t.w.interleave = true;
      t.w.random = k;
      CELL_OF(t, Q) = 1;
      assert_int_equal(launch(&t, 0), GK_FINISHED);
      assert_int_equal(t.w.record.limit, t.w.plan->loops[1]);
    }
    EXPECT(t, {A, 24}, {B, 8});
  }
}

/* ---- cancel ---- */

static void test_cancel_in_a_loop(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_RUN_ALWAYS(tick, GK_ONE, P), GK_TARGET(LX), GK_DO_WHILE(N), DO(tick, A), DO(halt, B), DO(drop, N), GK_END,
                                  DO(tick, B), GK_END, DO(tick, C), GK_RUN_ALWAYS(tick, GK_ONE, D)};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, N) = 3;
    assert_int_equal(launch(&t, 0), GK_CANCELLED);
    EXPECT(t, {P, 1}, {A, 1}, {N, 2}, {B, 0}, {C, 0}, {D, 1});
    assert_int_equal(yielded(&t), 0);
    assert_int_equal(t.w.record.passes[0], 1); /* its end was reached, its flag not read */
    assert_int_equal(t.c.reads[3], 0);
    assert_true(t.w.record.ran[0]);
    assert_int_equal(launch(&t, 0), GK_CANCELLED); /* as one that was queued */
    EXPECT(t, {P, 2}, {A, 2}, {N, 1}, {D, 2});
  }
}

static void test_cancel_at_a_checkpoint(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_CHECKPOINT(LP, F), DO(halt, B), GK_END, DO(tick, A)};
  test t;
  FOR_LIST(t, tasks) {
    assert_int_equal(launch(&t, 0), GK_CANCELLED);
    EXPECT(t, {A, 0});
    assert_true(t.w.record.ran[0]);
    CELL_OF(t, F) = 1; /* a true flag wins */
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    assert_int_equal(yielded(&t), LP);
  }
}

static void test_cancel_meets_no_end(void **state) {
  (void)state;
  static const gk_task tasks[] = {DO(halt, B), GK_TARGET(LP), DO(tick, A), GK_END, GK_WHILE(F), GK_END, DO(tick, C)};
  test t;
  FOR_LIST(t, tasks) {
    assert_int_equal(launch(&t, 0), GK_FINISHED); /* neither a yield point nor a loop end was reached */
    EXPECT(t, {A, 1}, {C, 1});
  }
}

static void test_cancel_in_sections(void **state) {
  (void)state;
  static const gk_task tasks[] = {
      GK_DO_WHILE(Q), DO(halt, B), GK_PARALLEL, GK_SECTION, GK_DO_WHILE(Q), DO(tick, A), GK_END, DO(tick, B), GK_END,
      GK_SECTION, DO(tick, X), GK_PARALLEL, GK_SECTION, DO(tick, D), GK_WHILE(F), GK_END, GK_END, GK_SECTION, DO(tick, E), GK_END, GK_END,
      DO(tick, Y), GK_PARALLEL, GK_SECTION, GK_DO_WHILE(Q), GK_END, DO(tick, M), GK_END, GK_SECTION, DO(tick, N), GK_END, GK_END, DO(tick, G),
      GK_END, GK_END, DO(tick, C), GK_END, DO(tick, H)};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, Q) = 1;
    assert_int_equal(launch(&t, 0), GK_CANCELLED);
    /* The first section ends at its loop. The second goes on, past a region without loop ends, to its own; what is
     * beside that loop runs, what is behind it doesn't. */
    EXPECT(t, {A, 1}, {B, 0}, {X, 1}, {D, 1}, {E, 1}, {Y, 1}, {M, 0}, {N, 1}, {G, 0}, {C, 0}, {H, 0});
    assert_int_equal(t.w.record.passes[0], 0);
  }
}

static void test_yield_beside_always(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_RUN_ALWAYS(tick, GK_ONE, A), GK_RUN_ALWAYS(tick, GK_ONE, B), GK_DO_WHILE(N), GK_CHECKPOINT(LP, F), GK_END,
                                  GK_END, GK_RUN_ALWAYS(tick, GK_ONE, C), GK_CHECKPOINT(LQ, G), GK_END, GK_RUN_ALWAYS(tick, GK_ONE, D)};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, F) = 1;
    for (int k = 1; k < 4; ++k) {
      assert_int_equal(launch(&t, k == 2 ? LP : 0), GK_YIELDED);
      EXPECT(t, {A, k}, {B, k}, {C, k}, {D, k});
    }
    assert_int_equal(launch(&t, LQ), GK_FINISHED);
    EXPECT(t, {A, 4}, {B, 4}, {C, 4}, {D, 4});
  }
}

static void test_fresh_launch_forgets(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_DO_WHILE(Q, .max_iterations = 2), GK_CHECKPOINT(LP, F), DO(tick, A), GK_END, GK_END};
  test t;
  FOR_LIST(t, tasks) {
    t.w.entries[0] = 77; /* as an older launch may have left it */
    CELL_OF(t, Q) = CELL_OF(t, F) = 1;
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    assert_int_equal(t.w.entries[0], 0);
    CELL_OF(t, F) = 0;
    assert_int_equal(launch(&t, LP), GK_FINISHED);
    EXPECT(t, {A, 3});
    assert_int_equal(t.w.entries[0], 0);
  }
}

#define TEST(name) cmocka_unit_test(test_##name)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(yield_and_resume), TEST(yield_in_a_loop), TEST(yield_on_last_pass), TEST(resume_past_a_finished_loop),
      TEST(yield_in_an_inner_loop), TEST(first_task_sets_the_flag), TEST(first_yielder_wins),
      TEST(sections_join_in_every_pass), TEST(always), TEST(counter_loops), TEST(flag_zero_at_do_while),
      TEST(nested_three), TEST(ten_deep_and_empty_bodies), TEST(empty_list), TEST(branches), TEST(bounds),
      TEST(bound_counts_one_entry), TEST(entry_from_its_beginning), TEST(targets), TEST(shared_flag),
      TEST(many_checkpoints), TEST(yield_every_pass), TEST(loop_inside_a_checkpoint),
      TEST(checkpoint_in_branches_in_a_loop), TEST(third_level_and_siblings), TEST(resume_to_after_a_loop),
      TEST(sections), TEST(limit_among_sections), TEST(cancel_in_a_loop), TEST(cancel_at_a_checkpoint),
      TEST(cancel_meets_no_end), TEST(cancel_in_sections), TEST(yield_beside_always), TEST(fresh_launch_forgets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
