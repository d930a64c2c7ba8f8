#include "unit/support/runtime.h"
#include "unit/support/runtime_kernels.h"

enum { X = 1, A, N, M, K, FLAG };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(A, int, 1), GK_BUFFER(N, int), GK_BUFFER(M, int),
                                     GK_BUFFER(K, int), GK_BUFFER(FLAG, int)};
enum { OUTER = 1, PAUSE, LAST, SHORT };
LIST(list, GK_DO_WHILE(N, .max_iterations = 5, .label = OUTER), GK_RUN(add, GK_ONE, X, A), GK_CHECKPOINT(PAUSE, FLAG),
           GK_RUN(add, GK_ONE, X, A), GK_END, GK_RUN(decrease, GK_ONE, N), GK_END, GK_WHILE(M, .max_iterations = 3),
           GK_RUN(decrease, GK_ONE, M), GK_END, GK_DO_WHILE(K, .label = SHORT), GK_RUN(decrease, GK_ONE, K), GK_END,
           GK_TARGET(LAST), GK_END);

typedef struct bench { gk_device *device; gk_graph *graph; int *n, *m, *k, *flag; } bench;

static bench make(gk_device *device, int n, int m, int flag) {
  bench b = {device, NULL, int_on(device, n), int_on(device, m), int_on(device, 0), int_on(device, flag)};
  b.graph = GRAPH_ON(device, &list, 0, {X, int_on(device, 0)}, {N, b.n}, {M, b.m}, {K, b.k}, {FLAG, b.flag});
  return b;
}

static const gk_status *run(bench *b, int32_t label) {
  set_int(b->device, b->k, 2);
  return run_to_end(b->graph, label);
}

static void assert_state(const gk_status *s, uint64_t launch, gk_state state, int32_t yielded, const char *name) {
  assert_int_equal(s->launch, launch);
  assert_int_equal(s->state, state);
  assert_int_equal(s->yielded, yielded);
  assert_string_equal(s->yielded_name, name);
}

TEST_ON(ALL_BACKENDS, says_what_became_of_it) {
  bench b = make(device, 2, 1, 0);
  const gk_status *s = run(&b, 0);
  assert_state(s, 1, GK_FINISHED, 0, "");
  assert_null(s->limit);
  assert_int_equal(s->applied, GK_BY_TABLE);
  assert_int_equal(s->loop_count, 3);
  assert_int_equal(s->checkpoint_count, 2);
  static const struct { int32_t label; const char *name; uint64_t passes; } loops[] = {
      {OUTER, "OUTER", 2}, {0, "M", 1}, {SHORT, "SHORT", 2}};
  for (int k = 0; k < 3; ++k) {
    assert_int_equal(s->loops[k].label, loops[k].label);
    assert_string_equal(s->loops[k].name, loops[k].name);
    assert_int_equal(s->loops[k].passes, loops[k].passes);
  }
  assert_string_equal(s->checkpoints[0].name, "PAUSE");
  assert_int_equal(s->checkpoints[0].label, PAUSE);
  assert_true(s->checkpoints[0].ran && s->checkpoints[1].ran);
  assert_string_equal(s->checkpoints[1].name, "LAST");
}

TEST_ON(ALL_BACKENDS, yield_is_named_and_gone_with_the_next_launch) {
  bench b = make(device, 3, 0, 1);
  set_int(device, b.m, 0);
  const gk_status *s = run(&b, 0);
  assert_state(s, 1, GK_YIELDED, PAUSE, "PAUSE");
  assert_int_equal(gk_passes(s, 0), 0); /* the pass was not completed */
  assert_true(s->checkpoints[0].ran);
  assert_false(s->checkpoints[1].ran);
  SET_VALUES({b.flag, 0}, {b.m, 1});
  s = run(&b, PAUSE);
  assert_state(s, 2, GK_FINISHED, 0, "");
  assert_int_equal(gk_passes(s, OUTER), 3); /* the interrupted pass counts once */
  assert_true(s->checkpoints[1].ran);
  set_int(device, b.m, 1);
  s = run(&b, LAST);
  assert_int_equal(gk_passes(s, 0), 0);
  assert_false(s->checkpoints[0].ran);
  assert_true(s->checkpoints[1].ran);
}

TEST_ON(ALL_BACKENDS, first_bound_that_was_hit_is_named) {
  bench b = make(device, -1, 4, 0);
  const gk_status *s = run(&b, 0);
  assert_int_equal(s->state, GK_FINISHED);
  assert_ptr_equal(s->limit, &s->loops[0]);
  assert_int_equal(s->limit->label, OUTER);
  assert_int_equal(s->limit->passes, 5);
  assert_true(s->loops[0].hit_bound && s->loops[1].hit_bound && !s->loops[2].hit_bound);
  assert_int_equal(gk_passes(s, 0), 5 + 3 + 2);
  SET_VALUES({b.n, 1}, {b.m, 5});
  s = run(&b, 0); /* 1, 3 and 2 passes */
  assert_ptr_equal(s->limit, &s->loops[1]);
  assert_false(s->loops[0].hit_bound);
  assert_int_equal(gk_passes(s, SHORT), 2);
}

/* A bound counts over a yield: five passes in all, across interruptions. */
TEST_ON(ALL_BACKENDS, bound_counts_over_a_yield) {
  bench b = make(device, -1, 1, 1);
  uint64_t passes = 0;
  for (int k = 0; k < 3; ++k) {
    const gk_status *s = run(&b, k ? PAUSE : 0);
    assert_int_equal(s->state, GK_YIELDED);
    passes += gk_passes(s, OUTER);
  }
  set_int(device, b.flag, 0);
  const gk_status *s = run(&b, PAUSE);
  assert_int_equal(s->state, GK_FINISHED);
  assert_int_equal(passes + gk_passes(s, OUTER), 5);
  assert_int_equal(s->limit->label, OUTER);
}

TEST_ON(ALL_BACKENDS, waiting_again_says_the_same) {
  bench b = make(device, 1, 1, 0);
  const gk_status *s, *again;
  set_int(device, b.k, 1);
  run_to_end(b.graph, 0); /* no call asked for the result */
  assert_ok(gk_poll(b.graph, &s));
  assert_ok(gk_wait(b.graph, &again));
  assert_ptr_equal(s, again);
  assert_int_equal(s->launch, 1);
  assert_int_equal(gk_passes(s, OUTER), 1);
}

TEST(passes_of_nothing_are_none) {
  gk_loop_status loops[] = {{.label = 5, .passes = 3}, {.label = 0, .passes = 4}};
  gk_status s = {.loop_count = 2, .loops = loops};
  assert_int_equal(gk_passes(&s, 5), 3);
  assert_int_equal(gk_passes(&s, 6), 0);
  assert_int_equal(gk_passes(&s, 0), 7);
  assert_int_equal(gk_passes(NULL, 0), 0);
}

int main(void) { return run_all_tests(); }
