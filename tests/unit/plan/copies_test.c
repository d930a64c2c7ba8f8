/* Loops whose bodies stand several times in the graph: which, how often, and what counts their passes. gates_test.c
 * runs them. */
#include "unit/support/gates_bench.h"
#include "unit/support/sheet.h"

static void add_repeat_of(sheet *l, uint32_t passes, uint32_t bound, uint32_t tasks) {
  add(l, (gk_task){.op = GK_OP_REPEAT, .flag = passes ? -(gk_slot)passes : FLAG, .max_iterations = bound});
  add_tasks(l, tasks);
  add(l, (gk_task)GK_END);
}

static uint32_t nodes_of_kind(const gk_gates *g, gk_gate_kind kind) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < g->node_count; ++k) count += g->nodes[k].kind == kind;
  return count;
}

/* What the only loop of a list became. */
static void check_copies(sheet *l, uint32_t bits, uint32_t tasks, uint32_t passes, bool has_node) {
  const gk_plan *plan = plan_of(l);
  for (uint32_t more = 0; more <= GK_WITH_PLAIN; more += GK_WITH_PLAIN) {
    const gk_gates *g;
    assert_ok(gk_gates_make(plan, bits | more, &g));
    check_tasks(g);
    assert_int_equal(nodes_of_kind(g, GK_GATE_TASK), tasks);
    assert_int_equal(nodes_of_kind(g, GK_GATE_WHILE), has_node);
    uint32_t found = 0;
    for (uint32_t k = 0; k < g->point_count; ++k)
      if (g->points[k].kind == (has_node ? GK_POINT_LOOP_END : GK_POINT_PASSES) && ++found)
        assert_int_equal(g->points[k].passes, passes);
    assert_int_equal(found, 1);
    gk_gates_free(g);
  }
  free_planned(&l->planned);
  l->count = 0;
}

/* The greatest divisor of the passes with at most 64 tasks; at all passes there is no node. */
TEST(test_copies) {
  static const struct { uint32_t passes, bound, tasks, copies; } rows[] = {
    {1, 0, 1, 1},   {64, 0, 1, 64}, {65, 0, 1, 13}, {67, 0, 1, 1}, {100, 0, 1, 50},  {100, 0, 2, 25},
    {100, 6, 1, 6}, {6, 100, 1, 6}, {6, 6, 1, 6},   {2, 0, 32, 2}, {4, 0, 33, 1},    {2, 0, 61, 1},
    {3, 0, 21, 3},  {9, 0, 20, 3},  {0, 0, 1, 1},   {0, 8, 1, 1},  {2147483647, 0, 1, 1}, {1 << 30, 96, 1, 48}};
  sheet l = {.count = 0};
  for (size_t k = 0; k < GK_COUNT(rows); ++k) {
    const uint32_t n = rows[k].bound && rows[k].bound < rows[k].passes ? rows[k].bound : rows[k].passes;
    add_repeat_of(&l, rows[k].passes, rows[k].bound, rows[k].tasks);
    check_copies(&l, 0, rows[k].tasks * rows[k].copies, rows[k].copies, rows[k].copies != n);
    add_repeat_of(&l, rows[k].passes, rows[k].bound, rows[k].tasks); /* a cancel stops it between two passes */
    check_copies(&l, GK_WITH_CANCEL, rows[k].tasks, 1, true);
  }
}

static void add_every(sheet *l, uint32_t every, uint32_t bound, uint32_t tasks) {
  add(l, (gk_task){.op = l->count % 2 ? GK_OP_WHILE : GK_OP_DO_WHILE, .flag = FLAG, .max_iterations = bound,
                   .every = every});
  add_tasks(l, tasks);
  add(l, (gk_task)GK_END);
}

/* The greatest divisor of k with at most 64 tasks, those counted that it leaves of the bound; with plain gates one that
 * leaves none. A loop that can be cancelled is stopped where it reads its flag. */
TEST(test_every) {
  static const struct { uint32_t every, bound, tasks, copies, rest, plain; } rows[] = {
    {8, 0, 1, 8, 0, 8},       {8, 16, 1, 8, 0, 8},     {8, 20, 1, 8, 4, 4},   {8, 20, 6, 4, 0, 4},
    {8, 21, 6, 4, 1, 1},      {8, 5, 1, 5, 0, 5},      {67, 0, 1, 1, 0, 1},   {0, 0, 1, 1, 0, 1},
    {100, 150, 1, 50, 0, 50}, {100, 99, 1, 33, 0, 33}, {64, 65, 1, 32, 1, 1}, {64, 0, 1, 64, 0, 64},
    {1, 9, 1, 1, 0, 1},       {2, 0, 33, 1, 0, 1},     {4294967295, 4294967295, 1, 51, 0, 51}};
  sheet l = {.count = 0};
  for (size_t k = 0; k < GK_COUNT(rows); ++k)
    for (uint32_t bits = 0; bits < 32; bits += bits ? 14 : 2) { /* cancelled; plain, both */
      const bool is_plain = bits >= GK_WITH_PLAIN;
      add_every(&l, rows[k].every, rows[k].bound, rows[k].tasks);
      const gk_gates *g;
      assert_ok(gk_gates_make(plan_of(&l), bits, &g));
      check_tasks(g);
      const uint32_t copies = is_plain ? rows[k].plain : rows[k].copies, rest = is_plain ? 0 : rows[k].rest;
      assert_int_equal(nodes_of_kind(g, GK_GATE_TASK), (copies + rest) * rows[k].tasks);
      assert_int_equal(nodes_of_kind(g, GK_GATE_IF), rest != 0);
      assert_int_equal(g->points[g->nodes[0].kind == GK_GATE_PROLOGUE].kind, GK_POINT_LOOP_END);
      gk_gates_free(g);
      free_planned(&l.planned);
      l.count = 0;
    }
}

/* A body that isn't straight stands once; sections are straight. */
TEST(test_what_is_copied) {
  static const gk_task first[] = {GK_CHECKPOINT(1, 0), GK_YIELD(1), GK_IF(FLAG), GK_SWITCH(FLAG)};
  sheet l = {.count = 0};
  for (size_t k = 0; k < GK_COUNT(first); ++k) {
    add(&l, (gk_task)GK_REPEAT(GK_ITEMS(4)));
    add_tasks(&l, 1);
    add(&l, first[k]);
    if (first[k].op != GK_OP_YIELD) add(&l, (gk_task)GK_END);
    add(&l, (gk_task)GK_END);
    check_copies(&l, 0, 1, 1, true);
  }
  add(&l, (gk_task)GK_REPEAT(GK_ITEMS(4)));
  add(&l, (gk_task)GK_PARALLEL);
  for (uint32_t k = 0; k < 3; ++k) {
    add(&l, (gk_task)GK_SECTION);
    add_tasks(&l, k);
    add(&l, (gk_task)GK_END);
  }
  add(&l, (gk_task)GK_END);
  add(&l, (gk_task)GK_END);
  check_copies(&l, 0, 12, 4, false);
  add(&l, (gk_task)GK_DO_WHILE(FLAG));
  add_tasks(&l, 1);
  add(&l, (gk_task)GK_END);
  check_copies(&l, 0, 1, 1, true);
}

/* 16 loops of 64 passes add 1,008 tasks, and 16 tasks are left. */
TEST(test_most_copies) {
  sheet l = {.count = 0};
  for (uint32_t k = 0; k < 16; ++k) add_repeat_of(&l, 64, 0, 1);
  add_repeat_of(&l, 18, 0, 1);
  add_repeat_of(&l, 9, 0, 1);
  add_repeat_of(&l, 2, 0, 1);
  const gk_gates *g;
  assert_ok(gk_gates_make(plan_of(&l), 0, &g));
  check_tasks(g);
  static const uint32_t want[] = {9, 9, 1};
  for (uint32_t k = 0; k < g->point_count; ++k) {
    const uint32_t loop = g->plan->nodes[g->points[k].node].loop;
    const bool ends = g->points[k].kind == GK_POINT_LOOP_END || g->points[k].kind == GK_POINT_PASSES;
    if (ends) assert_int_equal(g->points[k].passes, loop < 16 ? 64 : want[loop - 16]);
  }
  gk_gates_free(g);
  free_planned(&l.planned);
}

static executed run_of(sheet *l, uint32_t bits, int64_t (*read)(void *user, uint32_t node)) {
  const executed e = launch(plan_of(l), bits, read, GK_NONE);
  free_planned(&l->planned);
  l->count = 0;
  return e;
}

static int64_t yes(void *user, uint32_t node) { return (void)user, (void)node, 1; }
static int64_t no(void *user, uint32_t node) { return (void)user, (void)node, 0; }

/* 20 passes, of which the last four have a kernel of their own, and 8 if the flag is false. */
TEST(test_rest) {
  sheet l = {.count = 0};
  add_every(&l, 8, 20, 1);
  executed r = run_of(&l, 0, yes);
  assert_memory_equal(&r, (&(executed){20, 3, 2, 20}), sizeof r);
  add_every(&l, 8, 20, 1);
  r = run_of(&l, 0, no);
  assert_memory_equal(&r, (&(executed){8, 1, 2, 8}), sizeof r);
}

static int64_t many(void *user, uint32_t node) { return (void)user, (void)node, INT32_MAX; }

/* Passes of nothing take one step, whether their number is constant or read. */
TEST(test_empty_repeat) {
  sheet l = {.count = 0};
  for (uint32_t bits = 0; bits <= GK_WITH_PLAIN; bits += GK_WITH_PLAIN)
    for (uint32_t passes = 0; passes <= INT32_MAX; passes += INT32_MAX) {
      add_repeat_of(&l, passes, 0, 0);
      const executed r = run_of(&l, bits, many);
      assert_int_equal(r.passes, INT32_MAX);
      assert_in_range(r.kernels, 0, 3);
    }
}

int main(void) { return run_all_tests(); }
