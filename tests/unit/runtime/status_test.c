#include "unit/support/runtime.h"
#include "unit/support/runtime_kernels.h"

enum { X = 1, A, N, M, K, FLAG };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(A, int, 1), GK_BUFFER(N, int), GK_BUFFER(M, int),
                                     GK_BUFFER(K, int),                                          GK_BUFFER(FLAG, int)};
enum { OUTER = 1, PAUSE, LAST, SHORT };
static const gk_task tasks[] = {GK_DO_WHILE(N, .max_iterations = 5, .label = OUTER), GK_RUN(add, GK_ONE, X, A),
                                GK_CHECKPOINT(PAUSE, FLAG), GK_RUN(add, GK_ONE, X, A), GK_END,
                                GK_RUN(decrease, GK_ONE, N), GK_END,
                                GK_WHILE(M, .max_iterations = 3), GK_RUN(decrease, GK_ONE, M), GK_END,
                                GK_DO_WHILE(K, .label = SHORT), GK_RUN(decrease, GK_ONE, K), GK_END,
                                GK_TARGET(LAST), GK_END};
static const gk_list list = GK_LIST(list, tasks, slots);

typedef struct bench { gk_device *device; gk_graph *graph; int *x, *n, *m, *k, *flag; } bench;

static bench make(gk_device *device, int n, int m, int flag) {
  bench b = {
      device, NULL, int_on(device, 0), int_on(device, n), int_on(device, m), int_on(device, 0), int_on(device, flag)};
  assert_ok(gk_graph_create(device, &list, 0, &b.graph));
  assert_ok(gk_bind(b.graph, X, b.x));
  assert_ok(gk_bind(b.graph, N, b.n));
  assert_ok(gk_bind(b.graph, M, b.m));
  assert_ok(gk_bind(b.graph, K, b.k));
  assert_ok(gk_bind(b.graph, FLAG, b.flag));
  return b;
}

static void end(gk_device *device, bench *b) {
  gk_graph_destroy(b->graph);
  gk_free(device, b->x);
  gk_free(device, b->n);
  gk_free(device, b->m);
  gk_free(device, b->k);
  gk_free(device, b->flag);
}

static const gk_status *run(bench *b, int32_t label) {
  const gk_status *status = NULL;
  set_int(b->device, b->k, 2);
  assert_ok(gk_launch(b->graph, label));
  assert_ok(gk_wait(b->graph, &status));
  return status;
}

TEST_ON(ALL_BACKENDS, says_what_became_of_it) {
  bench b = make(device, 2, 1, 0);
  const gk_status *s = run(&b, 0);
  assert_int_equal(s->launch, 1);
  assert_int_equal(s->state, GK_FINISHED);
  assert_int_equal(s->yielded, 0);
  assert_string_equal(s->yielded_name, "");
  assert_null(s->limit);
  assert_int_equal(s->applied, GK_BY_TABLE);
  assert_int_equal(s->loop_count, 3);
  assert_int_equal(s->checkpoint_count, 2);
  static const struct { int32_t label; const char *name; } loops[] = {{OUTER, "OUTER"}, {0, "M"}, {SHORT, "SHORT"}};
  for (int k = 0; k < 3; ++k) {
    assert_int_equal(s->loops[k].label, loops[k].label);
    assert_string_equal(s->loops[k].name, loops[k].name);
  }
  assert_int_equal(s->loops[0].passes, 2);
  assert_int_equal(s->loops[1].passes, 1);
  assert_int_equal(s->loops[2].passes, 2);
  assert_string_equal(s->checkpoints[0].name, "PAUSE");
  assert_int_equal(s->checkpoints[0].label, PAUSE);
  assert_true(s->checkpoints[0].ran && s->checkpoints[1].ran);
  assert_string_equal(s->checkpoints[1].name, "LAST");
  end(device, &b);
}

TEST_ON(ALL_BACKENDS, yield_is_named_and_gone_with_the_next_launch) {
  bench b = make(device, 3, 0, 1);
  set_int(device, b.m, 0);
  const gk_status *s = run(&b, 0);
  assert_int_equal(s->state, GK_YIELDED);
  assert_int_equal(s->yielded, PAUSE);
  assert_string_equal(s->yielded_name, "PAUSE");
  assert_int_equal(gk_passes(s, 0), 0); /* the pass was not completed */
  assert_true(s->checkpoints[0].ran);
  assert_false(s->checkpoints[1].ran);
  set_int(device, b.flag, 0);
  set_int(device, b.m, 1);
  s = run(&b, PAUSE);
  assert_int_equal(s->launch, 2);
  assert_int_equal(s->state, GK_FINISHED);
  assert_int_equal(s->yielded, 0);
  assert_string_equal(s->yielded_name, "");
  assert_int_equal(gk_passes(s, OUTER), 3); /* the interrupted pass counts once */
  assert_true(s->checkpoints[1].ran);
  set_int(device, b.m, 1);
  s = run(&b, LAST);
  assert_int_equal(gk_passes(s, 0), 0);
  assert_false(s->checkpoints[0].ran);
  assert_true(s->checkpoints[1].ran);
  end(device, &b);
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
  set_int(device, b.n, 1);
  set_int(device, b.m, 5);
  s = run(&b, 0); /* 1, 3 and 2 passes */
  assert_ptr_equal(s->limit, &s->loops[1]);
  assert_false(s->loops[0].hit_bound);
  assert_int_equal(gk_passes(s, SHORT), 2);
  end(device, &b);
}

/* A bound counts over a yield: five passes in all, whatever was interrupted. */
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
  end(device, &b);
}

TEST_ON(ALL_BACKENDS, waiting_again_says_the_same) {
  bench b = make(device, 1, 1, 0);
  const gk_status *s, *again;
  set_int(device, b.k, 1);
  assert_ok(gk_launch(b.graph, 0));
  assert_ok(gk_wait(b.graph, NULL)); /* nobody looked */
  assert_ok(gk_poll(b.graph, &s));
  assert_ok(gk_wait(b.graph, &again));
  assert_ptr_equal(s, again);
  assert_int_equal(s->launch, 1);
  assert_int_equal(gk_passes(s, OUTER), 1);
  end(device, &b);
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
