/* The walker, on checkpoints in all places, sections and cancels. */
#include "unit/support/cells.h"

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

TEST(test_targets) {
  static const gk_task tasks[] = {
      GK_TARGET(LX), DO(tick, A), GK_END, GK_CHECKPOINT(LP, F), GK_END, GK_TARGET(LY), GK_END, DO(tick, B)};
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

TEST(test_shared_flag) {
  static const gk_task tasks[] = {GK_CHECKPOINT(LP, F), DO(tick, A), GK_END, GK_CHECKPOINT_AT(LQ, F, 4), DO(tick, B),
                                  GK_END, GK_CHECKPOINT(LX, F), DO(one, F), GK_END};
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

TEST(test_many_checkpoints) {
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

TEST(test_yield_every_pass) {
  static const gk_task tasks[] = {
      GK_DO_WHILE(N), DO(tick, A), GK_CHECKPOINT(LP, F), DO(ask, F, B), GK_END, DO(drop, N), GK_END};
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

TEST(test_loop_inside_a_checkpoint) {
  static const gk_task tasks[] = {GK_CHECKPOINT(LP, F), DO(two, N), GK_DO_WHILE(N), DO(tick, A), DO(one, F),
                                  DO(drop, N), GK_END, DO(tick, B), GK_END, DO(tick, C)};
  test t;
  FOR_LIST(t, tasks) {
    assert_int_equal(launch(&t, 0), GK_YIELDED); /* at the end of the block, not after the first pass */
    EXPECT(t, {A, 2}, {B, 1}, {C, 0});
    assert_int_equal(launch(&t, LP), GK_YIELDED); /* the whole block again */
    EXPECT(t, {A, 4}, {B, 2}, {C, 0});
    assert_int_equal(t.w.record.passes[0], 2);
  }
}

TEST(test_checkpoint_in_branches_in_a_loop) {
  static const gk_task tasks[] = {
      GK_DO_WHILE(N), GK_IF(M), GK_CHECKPOINT(LP, F), DO(tick, A), GK_END, GK_ELSE, DO(tick, X), GK_CHECKPOINT(LQ, G),
      DO(tick, B), GK_END, DO(tick, Y), GK_END, GK_SWITCH(K), GK_CASE, DO(tick, C), GK_END, GK_CASE, DO(tick, D),
      GK_CHECKPOINT(LX, H), DO(tick, E), GK_END, GK_END, GK_END, DO(drop, N), GK_END};
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

TEST(test_third_level_and_siblings) {
  static const gk_task tasks[] = {
      GK_DO_WHILE(N), DO(tick, A), DO(two, M), GK_WHILE(M), DO(tick, B), DO(two, K), GK_DO_WHILE(K), DO(tick, C),
      GK_CHECKPOINT(LP, F), DO(tick, D), GK_END, DO(drop, K), GK_END, DO(drop, M), GK_END, DO(tick, E), GK_DO_WHILE(Q),
      DO(tick, X), GK_END, GK_CHECKPOINT(LQ, G), DO(tick, Y), GK_END, DO(drop, N), GK_END, GK_DO_WHILE(Q), DO(tick, P),
      GK_END};
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

TEST(test_resume_to_after_a_loop) {
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

TEST(test_yield_in_a_sibling_loop) {
  static const gk_task tasks[] = {
      GK_DO_WHILE(N), GK_CHECKPOINT(LP, F), DO(tick, A), GK_END, DO(drop, N), GK_END, DO(tick, X), GK_WHILE(M),
      DO(tick, B), GK_CHECKPOINT(LQ, G), DO(tick, C), GK_END, DO(drop, M), GK_END, DO(tick, D)};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, N) = CELL_OF(t, M) = 2;
    CELL_OF(t, G) = 1;
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    EXPECT(t, {A, 2}, {X, 1}, {B, 1}, {C, 1}, {D, 0}, {N, 0}, {M, 2});
    CELL_OF(t, G) = 0;
    CELL_OF(t, N) = 2; /* the first loop is over, whatever its flag says now */
    assert_int_equal(launch(&t, LQ), GK_FINISHED);
    EXPECT(t, {A, 2}, {X, 1}, {B, 2}, {C, 3}, {D, 1}, {N, 2}, {M, 0});
    assert_true(t.w.record.passes[0] == 0 && t.w.record.passes[1] == 2);
  }
}

TEST(test_as_deep_as_it_goes) {
  enum { LEVELS = 31 }; /* a PARALLEL and a SECTION each, and one loop */
  static const gk_task open[] = {GK_PARALLEL, GK_SECTION, DO(tick, A), GK_END, GK_SECTION};
  static const gk_task close[] = {DO(tick, B), GK_END, GK_END};
  static gk_task list[LEVELS * (GK_COUNT(open) + GK_COUNT(close)) + 4];
  size_t count = 0;
  for (int k = 0; k < LEVELS; ++k)
    for (size_t n = 0; n < GK_COUNT(open); ++n) list[count++] = open[n];
  list[count++] = (gk_task)GK_DO_WHILE(N);
  list[count++] = (gk_task)DO(drop, N);
  list[count++] = (gk_task)DO(tick, C);
  list[count++] = (gk_task)GK_END;
  for (int k = 0; k < LEVELS; ++k)
    for (size_t n = 0; n < GK_COUNT(close); ++n) list[count++] = close[n];
  test t;
  FOR_LIST(t, list) {
    CELL_OF(t, N) = 2;
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    EXPECT(t, {A, LEVELS}, {B, LEVELS}, {C, 2});
    t.w.cancel = 1;
    CELL_OF(t, N) = 2;
    assert_int_equal(launch(&t, 0), GK_CANCELLED); /* it ends them all, from the inside out */
    EXPECT(t, {A, 2 * LEVELS}, {B, LEVELS}, {C, 3});
  }
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

TEST(test_sections) {
  static const gk_task tasks[] = {
      GK_CHECKPOINT(LP, F), GK_PARALLEL, GK_SECTION, GK_DO_WHILE(N), DO(tick, A), DO(drop, N), GK_END, GK_END,
      GK_SECTION, GK_IF(M), DO(tick, B), GK_ELSE, DO(tick, C), GK_END, GK_END, GK_SECTION, DO(tick, X), DO(move, Y, X),
      GK_END, GK_SECTION, GK_PARALLEL, GK_SECTION, DO(tick, D), GK_END, GK_SECTION, GK_WHILE(K), DO(drop, K), GK_END,
      GK_END, GK_END, GK_END, GK_END, DO(tick, E), GK_END, GK_PARALLEL, GK_SECTION, DO(tick, P), GK_END, GK_END};
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

TEST(test_limit_among_sections) {
  static const gk_task tasks[] = {GK_PARALLEL, GK_SECTION, GK_WHILE(F), GK_END, GK_END, GK_SECTION, DO(tick, A),
                                  GK_DO_WHILE(Q, .max_iterations = 2), DO(tick, A), GK_END, GK_END, GK_SECTION,
                                  GK_DO_WHILE(Q, .max_iterations = 1), DO(tick, B), GK_END, GK_END, GK_END};
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

/* ---- cancel ------------------------------------------------------------------------------------------------------ */

TEST(test_cancel_in_a_loop) {
  static const gk_task tasks[] = {
      GK_RUN_ALWAYS(tick, GK_ONE, P), GK_TARGET(LX), GK_DO_WHILE(N), DO(tick, A), DO(halt, B), DO(drop, N), GK_END,
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

TEST(test_cancel_at_a_checkpoint) {
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

TEST(test_cancel_meets_no_end) {
  static const gk_task tasks[] = {DO(halt, B), GK_TARGET(LP), DO(tick, A), GK_END, GK_WHILE(F), GK_END, DO(tick, C)};
  test t;
  FOR_LIST(t, tasks) {
    assert_int_equal(launch(&t, 0), GK_FINISHED); /* neither a yield point nor a loop end was reached */
    EXPECT(t, {A, 1}, {C, 1});
  }
}

TEST(test_cancel_in_sections) {
  static const gk_task tasks[] = {
      GK_DO_WHILE(Q), DO(halt, B), GK_PARALLEL, GK_SECTION, GK_DO_WHILE(Q), DO(tick, A), GK_END, DO(tick, B), GK_END,
      GK_SECTION, DO(tick, X), GK_PARALLEL, GK_SECTION, DO(tick, D), GK_WHILE(F), GK_END, GK_END, GK_SECTION,
      DO(tick, E), GK_END, GK_END, DO(tick, Y), GK_PARALLEL, GK_SECTION, GK_DO_WHILE(Q), GK_END, DO(tick, M), GK_END,
      GK_SECTION, DO(tick, N), GK_END, GK_END, DO(tick, G), GK_END, GK_SECTION, GK_PARALLEL, GK_SECTION, GK_WHILE(F),
      GK_END, GK_END, GK_SECTION, DO(tick, K), GK_END, GK_END, DO(tick, P), GK_END, GK_END, DO(tick, C), GK_END,
      DO(tick, H)};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, Q) = 1;
    assert_int_equal(launch(&t, 0), GK_CANCELLED);
    /* The first section ends at its loop. The second goes on, past a region without loop ends, to its own; what is
     * beside that loop runs, what is behind it doesn't. The third meets none. */
    EXPECT(t, {A, 1}, {B, 0}, {X, 1}, {D, 1}, {E, 1}, {Y, 1}, {M, 0}, {N, 1}, {G, 0}, {K, 1}, {P, 1}, {C, 0}, {H, 0});
    assert_int_equal(t.w.record.passes[0], 0);
  }
}

TEST(test_cancel_unseen_by_the_device) {
  static const gk_task tasks[] = {GK_DO_WHILE(Q), DO(tick, A), DO(halt, B), GK_END, DO(tick, C)};
  test t;
  FOR_LIST(t, tasks) {
    t.w.deaf = true;
    for (uint64_t k = 0; k < 8; ++k) {
      if (mode & 1 && (t.w.random = k, pick(&t.w.random, 4)) == 3) continue; /* as many passes as it likes: for ever */
      t.w.random = k;
      t.w.cancel = 0;
      CELL_OF(t, Q) = 1;
      CELL_OF(t, A) = 0;
      assert_int_equal(launch(&t, 0), GK_CANCELLED); /* the walker looks after each batch of passes */
      EXPECT(t, {C, 0});
      assert_true(CELL_OF(t, A) <= 2);
      assert_int_equal(t.w.record.passes[0], CELL_OF(t, A));
    }
  }
}

/* A device far away is still in the pass when its end is walked: the cancel comes while the flag is awaited. */
TEST(test_cancel_while_a_flag_is_awaited) {
  static const gk_task tasks[] = {GK_DO_WHILE(N), DO(tick, A), GK_END, DO(tick, C)};
  test t;
  begin(&t, tasks, GK_COUNT(tasks), 0);
  for (int64_t answer = 0; answer < 2; ++answer) {
    t.w.record.passes[0] = 0;
    t.w.cancel = 0;
    gk_launch_args launch = {.entries = t.w.entries, .cancel = &t.w.cancel};
    gk_walk walk;
    gk_walk_start(&walk, t.w.plan, &launch, 0, &t.w.record);
    assert_int_equal(gk_walk_next(&walk, 0).kind, GK_STEP_RUN);
    assert_int_equal(gk_walk_next(&walk, 0).kind, GK_STEP_FLAG);
    t.w.cancel = 1;
    assert_int_equal(gk_walk_next(&walk, answer).kind, GK_STEP_END);
    assert_int_equal(t.w.record.state, GK_CANCELLED);
    assert_int_equal(t.w.record.passes[0], 1);
  }
  world_end(&t.w);
}

/* Each section is joined before the next is forked, as a backend does it on one thread. */
static void drive(test *t, gk_walk *walk) {
  const gk_plan *plan = t->w.plan;
  gk_step step = gk_walk_next(walk, 0);
  for (; step.kind != GK_STEP_END;) {
    int64_t answer = 0;
    if (step.kind == GK_STEP_FLAG) answer = cells_flag(&t->w, step.at);
    for (uint32_t k = plan->runs[step.at].begin; step.kind == GK_STEP_RUN && k < plan->runs[step.at].end; ++k)
      cells_execute(&t->w, k);
    for (uint32_t at = step.at + 1; step.kind == GK_STEP_FORK && at < plan->nodes[step.at].end;
         at = plan->nodes[at].end) {
      gk_walk section;
      gk_walk_fork(walk, at, &section);
      drive(t, &section);
      gk_walk_join(walk, &section);
    }
    step = gk_walk_next(walk, answer);
  }
}

TEST(test_cancel_in_sections_forked_one_by_one) {
  static const gk_task tasks[] = {
      GK_PARALLEL, GK_SECTION, GK_DO_WHILE(Q), GK_END, DO(tick, A), GK_END, GK_SECTION, GK_PARALLEL, GK_SECTION,
      GK_WHILE(F), GK_END, GK_END, GK_SECTION, DO(tick, D), GK_END, GK_END, DO(tick, B), GK_END, GK_END, DO(tick, C)};
  test t;
  begin(&t, tasks, GK_COUNT(tasks), 4);
  t.w.cancel = 1;
  gk_launch_args launch = {.entries = t.w.entries, .cancel = &t.w.cancel};
  gk_walk walk;
  gk_walk_start(&walk, t.w.plan, &launch, TAKES_FORK, &t.w.record);
  drive(&t, &walk);
  assert_int_equal(t.w.record.state, GK_CANCELLED);
  EXPECT(t, {A, 0}, {D, 1}, {B, 1}, {C, 0}); /* the second section meets no loop end, whatever the first did */
  world_end(&t.w);
}

TEST(test_cancel_before_a_deaf_device) {
  static const gk_task tasks[] = {GK_DO_WHILE(Q), DO(tick, A), GK_END, DO(tick, C)};
  test t;
  FOR_LIST(t, tasks) {
    t.w.deaf = true;
    t.w.cancel = 1; /* as a launch that was queued */
    assert_int_equal(launch(&t, 0), GK_CANCELLED);
    EXPECT(t, {A, 1}, {C, 0});
  }
}

TEST(test_yield_beside_always) {
  static const gk_task tasks[] = {
      GK_RUN_ALWAYS(tick, GK_ONE, A), GK_RUN_ALWAYS(tick, GK_ONE, B), GK_DO_WHILE(N), GK_CHECKPOINT(LP, F), GK_END,
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

TEST(test_fresh_launch_forgets) {
  static const gk_task tasks[] = {
      GK_DO_WHILE(Q, .max_iterations = 2), GK_CHECKPOINT(LP, F), DO(tick, A), GK_END, GK_END};
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

int main(void) { return run_all_tests(); }
