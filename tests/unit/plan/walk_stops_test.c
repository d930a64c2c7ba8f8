/* The walker, on checkpoints in all places, sections and cancels. */
#include "unit/support/cells.h"

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

WALK(test_targets, GK_TARGET(LX), DO(tick, A), GK_END, GK_CHECKPOINT(LP, F), GK_END, GK_TARGET(LY), GK_END,
                   DO(tick, B)) {
  LAUNCH(LY, GK_FINISHED, {A, 0}, {B, 1}); /* a resume as the very first launch */
  assert_true(!t.w.record.ran[0] && !t.w.record.ran[1] && t.w.record.ran[2]);
  CELL_OF(F) = 1;
  LAUNCH(0, GK_YIELDED, {A, 1}, {B, 1}); /* an empty block yields if its flag is set already */
  assert_int_equal(yielded(), LP);
  assert_true(t.w.record.ran[0] && t.w.record.ran[1] && !t.w.record.ran[2]);
  LAUNCH(0, GK_YIELDED, {A, 2}, {B, 1}); /* a fresh launch after an ignored yield */
  CELL_OF(F) = 0;
  LAUNCH(LX, GK_FINISHED, {A, 3}, {B, 2});
}

WALK(test_shared_flag, GK_CHECKPOINT(LP, F), DO(tick, A), GK_END, GK_CHECKPOINT_AT(LQ, F, 4), DO(tick, B), GK_END,
                       GK_CHECKPOINT(LX, F), DO(one, F), GK_END) {
  t.c.at[F][1] = -1;
  assert_int_equal(launch(0), GK_YIELDED);
  assert_int_equal(yielded(), LQ);
  t.c.at[F][1] = 0;
  LAUNCH(LQ, GK_YIELDED, {A, 1}, {B, 2});
  assert_int_equal(yielded(), LX);
}

TEST(test_many_checkpoints) {
  enum { COUNT = 1000 };
  static gk_task tasks[3 * COUNT];
  for (int k = 0; k < COUNT; ++k) {
    tasks[3 * k] = (gk_task){.op = GK_OP_CHECKPOINT, .flag = F, .label = 5 * (k * 7919 % COUNT) - 2500 + 1};
    tasks[3 * k + 1] = (gk_task)DO(tick, A);
    tasks[3 * k + 2] = (gk_task)GK_END;
  }
  begin(tasks, GK_COUNT(tasks), 0);
  CELL_OF(F) = 1;
  int32_t label = 0;
  for (int k = 0; k < COUNT; ++k) {
    assert_int_equal(launch(label), GK_YIELDED);
    assert_int_equal(yielded(), tasks[3 * k].label);
    assert_true(t.w.steps <= 4);
    if (k + 1 < COUNT) label = tasks[3 * k + 3].label; /* the next one, without a yield there */
  }
  EXPECT({A, COUNT});
  assert_int_equal(gki_plan_label(t.w.plan, 2), 0);
  assert_int_equal(gki_plan_label(t.w.plan, INT32_MAX), 0);
  assert_int_equal(gki_plan_label(t.w.plan, INT32_MIN), 0);
  world_end(&t.w);
}

WALK(test_yield_every_pass, GK_DO_WHILE(N), DO(tick, A), GK_CHECKPOINT(LP, F), DO(ask, F, B), GK_END, DO(drop, N),
                            GK_END) {
  CELL_OF(N) = 100;
  for (int k = 0; k < 100; ++k) {
    assert_int_equal(launch(k ? LP : 0), GK_YIELDED);
    assert_int_equal(t.w.record.passes[0], k ? 1 : 0);
    CELL_OF(F) = 0;
  }
  LAUNCH(LP, GK_FINISHED, {A, 100}, {B, 200}, {N, 0});
}

WALK(test_loop_inside_a_checkpoint, GK_CHECKPOINT(LP, F), DO(two, N), GK_DO_WHILE(N), DO(tick, A), DO(one, F),
                                    DO(drop, N), GK_END, DO(tick, B), GK_END, DO(tick, C)) {
  LAUNCH(0, GK_YIELDED, {A, 2}, {B, 1}, {C, 0}); /* at the end of the block, not after the first pass */
  LAUNCH(LP, GK_YIELDED, {A, 4}, {B, 2}, {C, 0}); /* the whole block again */
  assert_int_equal(t.w.record.passes[0], 2);
}

WALK(test_checkpoint_in_branches_in_a_loop,
     GK_DO_WHILE(N), GK_IF(M), GK_CHECKPOINT(LP, F), DO(tick, A), GK_END, GK_ELSE, DO(tick, X), GK_CHECKPOINT(LQ, G),
     DO(tick, B), GK_END, DO(tick, Y), GK_END, GK_SWITCH(K), GK_CASE, DO(tick, C), GK_END, GK_CASE, DO(tick, D),
     GK_CHECKPOINT(LX, H), DO(tick, E), GK_END, GK_END, GK_END, DO(drop, N), GK_END) {
  SET({N, 2}, {G, 1});
  LAUNCH(0, GK_YIELDED, {A, 0}, {X, 1}, {B, 1}, {Y, 0});
  assert_int_equal(yielded(), LQ);
  SET({G, 0}, {M, 1}); /* resuming into the other block takes that one all the same */
  memset(t.c.reads, 0, sizeof t.c.reads);
  LAUNCH(LQ, GK_FINISHED, {A, 1}, {X, 1}, {B, 2}, {Y, 1}, {C, 2}, {D, 0}, {N, 0});
  assert_int_equal(t.c.reads[2], 1); /* in the second pass only */
  SET({N, 1}, {K, 0});
  LAUNCH(LX, GK_FINISHED, {C, 2}, {D, 0}, {E, 1}, {A, 1});
}

WALK(test_third_level_and_siblings, GK_DO_WHILE(N), DO(tick, A), DO(two, M), GK_WHILE(M), DO(tick, B), DO(two, K),
                                    GK_DO_WHILE(K), DO(tick, C), GK_CHECKPOINT(LP, F), DO(tick, D), GK_END, DO(drop, K),
                                    GK_END, DO(drop, M), GK_END, DO(tick, E), GK_DO_WHILE(Q), DO(tick, X), GK_END,
                                    GK_CHECKPOINT(LQ, G), DO(tick, Y), GK_END, DO(drop, N), GK_END, GK_DO_WHILE(Q),
                                    DO(tick, P), GK_END) {
  SET({N, 2}, {F, 1});
  LAUNCH(0, GK_YIELDED, {A, 1}, {B, 1}, {C, 1}, {D, 1}, {E, 0}, {X, 0}, {Y, 0}, {P, 0}); /* later loops make no pass */
  SET({F, 0}, {G, 1});
  assert_int_equal(launch(LP), GK_YIELDED); /* in the outer loop, after the inner ones */
  assert_int_equal(yielded(), LQ);
  EXPECT({A, 1}, {B, 2}, {C, 4}, {D, 5}, {E, 1}, {X, 1}, {Y, 1}, {P, 0});
  CELL_OF(G) = 0;
  LAUNCH(LQ, GK_FINISHED, {A, 2}, {B, 4}, {C, 8}, {D, 9}, {E, 2}, {X, 2}, {Y, 3}, {P, 1}, {N, 0});
}

WALK(test_resume_to_after_a_loop, GK_DO_WHILE(N), GK_CHECKPOINT(LP, F), DO(tick, A), GK_END, DO(drop, N), GK_END,
                                  GK_CHECKPOINT(LQ, G), DO(tick, B), GK_END, DO(tick, C)) {
  SET({N, 3}, {F, 1});
  LAUNCH(LQ, GK_FINISHED, {A, 0}, {B, 1}, {C, 1}, {N, 3}); /* the checkpoint in the loop between is not run */
  assert_true(!t.w.record.ran[0] && t.w.record.ran[1]);
}

WALK(test_yield_in_a_sibling_loop, GK_DO_WHILE(N), GK_CHECKPOINT(LP, F), DO(tick, A), GK_END, DO(drop, N), GK_END,
                                   DO(tick, X), GK_WHILE(M), DO(tick, B), GK_CHECKPOINT(LQ, G), DO(tick, C), GK_END,
                                   DO(drop, M), GK_END, DO(tick, D)) {
  SET({N, 2}, {M, 2}, {G, 1});
  LAUNCH(0, GK_YIELDED, {A, 2}, {X, 1}, {B, 1}, {C, 1}, {D, 0}, {N, 0}, {M, 2});
  SET({G, 0}, {N, 2}); /* the first loop is over, and its flag isn't read */
  LAUNCH(LQ, GK_FINISHED, {A, 2}, {X, 1}, {B, 2}, {C, 3}, {D, 1}, {N, 2}, {M, 0});
  assert_true(t.w.record.passes[0] == 0 && t.w.record.passes[1] == 2);
}

enum { LEVELS = 31 }; /* a PARALLEL and a SECTION each, and one loop */

static void cancel_deep(uint32_t mode) {
  (void)mode;
  CELL_OF(N) = 2;
  LAUNCH(0, GK_FINISHED, {A, LEVELS}, {B, LEVELS}, {C, 2});
  t.w.cancel = 1;
  CELL_OF(N) = 2;
  LAUNCH(0, GK_CANCELLED, {A, 2 * LEVELS}, {B, LEVELS}, {C, 3}); /* it ends them all, from the inside out */
}

TEST(test_as_deep_as_it_goes) {
  static const gk_task open[] = {GK_PARALLEL, GK_SECTION, DO(tick, A), GK_END, GK_SECTION};
  static const gk_task close[] = {DO(tick, B), GK_END, GK_END};
  static gk_task list[LEVELS * (GK_COUNT(open) + GK_COUNT(close)) + 4];
  size_t count = 0;
  for (int k = 0; k < LEVELS; ++k)
    for (size_t n = 0; n < GK_COUNT(open); ++n) list[count++] = open[n];
  static const gk_task middle[] = {GK_DO_WHILE(N), DO(drop, N), DO(tick, C), GK_END};
  for (size_t n = 0; n < GK_COUNT(middle); ++n) list[count++] = middle[n];
  for (int k = 0; k < LEVELS; ++k)
    for (size_t n = 0; n < GK_COUNT(close); ++n) list[count++] = close[n];
  walk_in_modes(list, GK_COUNT(list), cancel_deep);
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

WALK(test_sections, GK_CHECKPOINT(LP, F), GK_PARALLEL, GK_SECTION, GK_DO_WHILE(N), DO(tick, A), DO(drop, N), GK_END,
                    GK_END, GK_SECTION, GK_IF(M), DO(tick, B), GK_ELSE, DO(tick, C), GK_END, GK_END, GK_SECTION,
                    DO(tick, X), DO(move, Y, X), GK_END, GK_SECTION, GK_PARALLEL, GK_SECTION, DO(tick, D), GK_END,
                    GK_SECTION, GK_WHILE(K), DO(drop, K), GK_END, GK_END, GK_END, GK_END, GK_END, DO(tick, E), GK_END,
                    GK_PARALLEL, GK_SECTION, DO(tick, P), GK_END, GK_END) {
  t.w.interleave = true;
  SET({N, 5}, {K, 4}, {F, 1});
  LAUNCH(0, GK_YIELDED, {A, 5}, {B, 0}, {C, 1}, {X, 1}, {Y, 1}, {D, 1}, {K, 0}, {E, 1}, {P, 0});
  assert_int_equal(t.w.record.passes[1], 4);
  SET({F, 0}, {N, 1}, {M, 1});
  assert_int_equal(launch(LP), GK_FINISHED); /* the region again, as one */
  EXPECT({A, 6}, {B, 1}, {C, 1}, {X, 2}, {Y, 2}, {D, 2}, {E, 2}, {P, 1});
}

WALK(test_limit_among_sections, GK_PARALLEL, GK_SECTION, GK_WHILE(F), GK_END, GK_END, GK_SECTION, DO(tick, A),
                                GK_DO_WHILE(Q, .max_iterations = 2), DO(tick, A), GK_END, GK_END, GK_SECTION,
                                GK_DO_WHILE(Q, .max_iterations = 1), DO(tick, B), GK_END, GK_END, GK_END) {
  for (uint64_t k = 0; k < 8; ++k) { /* in every order */
    t.w.interleave = true;
    t.w.random = k;
    CELL_OF(Q) = 1;
    assert_int_equal(launch(0), GK_FINISHED);
    assert_int_equal(t.w.record.limit, t.w.plan->loops[1]);
  }
  EXPECT({A, 24}, {B, 8});
}

/* ---- cancel ------------------------------------------------------------------------------------------------------ */

WALK(test_cancel_in_a_loop, GK_RUN_ALWAYS(tick, GK_ONE, P), GK_TARGET(LX), GK_DO_WHILE(N), DO(tick, A), DO(halt, B),
                            DO(drop, N), GK_END, DO(tick, B), GK_END, DO(tick, C), GK_RUN_ALWAYS(tick, GK_ONE, D)) {
  CELL_OF(N) = 3;
  LAUNCH(0, GK_CANCELLED, {P, 1}, {A, 1}, {N, 2}, {B, 0}, {C, 0}, {D, 1});
  assert_int_equal(yielded(), 0);
  assert_int_equal(t.w.record.passes[0], 1); /* its end was reached, its flag not read */
  assert_int_equal(t.c.reads[3], 0);
  assert_true(t.w.record.ran[0]);
  LAUNCH(0, GK_CANCELLED, {P, 2}, {A, 2}, {N, 1}, {D, 2}); /* as one that was queued */
}

WALK(test_cancel_at_a_checkpoint, GK_CHECKPOINT(LP, F), DO(halt, B), GK_END, DO(tick, A)) {
  LAUNCH(0, GK_CANCELLED, {A, 0});
  assert_true(t.w.record.ran[0]);
  CELL_OF(F) = 1; /* a true flag wins */
  assert_int_equal(launch(0), GK_YIELDED);
  assert_int_equal(yielded(), LP);
}

WALK(test_cancel_meets_no_end, DO(halt, B), GK_TARGET(LP), DO(tick, A), GK_END, GK_WHILE(F), GK_END, DO(tick, C)) {
  LAUNCH(0, GK_FINISHED, {A, 1}, {C, 1}); /* neither a yield point nor a loop end was reached */
}

WALK(test_cancel_in_sections, GK_DO_WHILE(Q), DO(halt, B), GK_PARALLEL, GK_SECTION, GK_DO_WHILE(Q), DO(tick, A), GK_END,
                              DO(tick, B), GK_END, GK_SECTION, DO(tick, X), GK_PARALLEL, GK_SECTION, DO(tick, D),
                              GK_WHILE(F), GK_END, GK_END, GK_SECTION, DO(tick, E), GK_END, GK_END, DO(tick, Y),
                              GK_PARALLEL, GK_SECTION, GK_DO_WHILE(Q), GK_END, DO(tick, M), GK_END, GK_SECTION,
                              DO(tick, N), GK_END, GK_END, DO(tick, G), GK_END, GK_SECTION, GK_PARALLEL, GK_SECTION,
                              GK_WHILE(F), GK_END, GK_END, GK_SECTION, DO(tick, K), GK_END, GK_END, DO(tick, P), GK_END,
                              GK_END, DO(tick, C), GK_END, DO(tick, H)) {
  CELL_OF(Q) = 1;
  assert_int_equal(launch(0), GK_CANCELLED);
  /* The first section ends at its loop. The second goes on, past a region without loop ends, to its own; what is
   * beside that loop runs, what is behind it doesn't. The third meets none. */
  EXPECT({A, 1}, {B, 0}, {X, 1}, {D, 1}, {E, 1}, {Y, 1}, {M, 0}, {N, 1}, {G, 0}, {K, 1}, {P, 1}, {C, 0}, {H, 0});
  assert_int_equal(t.w.record.passes[0], 0);
}

WALK(test_cancel_unseen_by_the_device, GK_DO_WHILE(Q), DO(tick, A), DO(halt, B), GK_END, DO(tick, C)) {
  t.w.deaf = true;
  for (uint64_t k = 0; k < 8; ++k) {
    if (mode & 1 && (t.w.random = k, pick(&t.w.random, 4)) == 3) continue; /* as many passes as it likes: for ever */
    t.w.random = k;
    t.w.cancel = 0;
    SET({Q, 1}, {A, 0});
    LAUNCH(0, GK_CANCELLED, {C, 0}); /* the walker looks after each batch of passes */
    assert_true(CELL_OF(A) <= 2);
    assert_int_equal(t.w.record.passes[0], CELL_OF(A));
  }
}

/* A device far away is still in the pass when its end is walked: the cancel comes while the flag is awaited. */
TEST(test_cancel_while_a_flag_is_awaited) {
  static const gk_task tasks[] = {GK_DO_WHILE(N), DO(tick, A), GK_END, DO(tick, C)};
  begin(tasks, GK_COUNT(tasks), 0);
  for (int64_t answer = 0; answer < 2; ++answer) {
    t.w.record.passes[0] = 0;
    t.w.cancel = 0;
    gk_launch_args args = {.entries = t.w.entries, .counts = t.w.counts, .cancel = &t.w.cancel};
    gk_walk walk;
    gk_walk_start(&walk, t.w.plan, &args, 0, &t.w.record);
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
static void drive(gk_walk *walk) {
  const gk_plan *plan = t.w.plan;
  gk_step step = gk_walk_next(walk, 0);
  for (; step.kind != GK_STEP_END;) {
    int64_t answer = 0;
    if (step.kind == GK_STEP_FLAG) answer = cells_flag(&t.w, step.at);
    for (uint32_t k = plan->runs[step.at].begin; step.kind == GK_STEP_RUN && k < plan->runs[step.at].end; ++k)
      cells_execute(&t.w, k);
    for (uint32_t at = step.at + 1; step.kind == GK_STEP_FORK && at < plan->nodes[step.at].end;
         at = plan->nodes[at].end) {
      gk_walk section;
      gk_walk_fork(walk, at, &section);
      drive(&section);
      gk_walk_join(walk, &section);
    }
    step = gk_walk_next(walk, answer);
  }
}

TEST(test_cancel_in_sections_forked_one_by_one) {
  static const gk_task tasks[] = {
      GK_PARALLEL, GK_SECTION, GK_DO_WHILE(Q), GK_END, DO(tick, A), GK_END, GK_SECTION, GK_PARALLEL, GK_SECTION,
      GK_WHILE(F), GK_END, GK_END, GK_SECTION, DO(tick, D), GK_END, GK_END, DO(tick, B), GK_END, GK_END, DO(tick, C)};
  begin(tasks, GK_COUNT(tasks), 4);
  t.w.cancel = 1;
  gk_launch_args args = {.entries = t.w.entries, .counts = t.w.counts, .cancel = &t.w.cancel};
  gk_walk walk;
  gk_walk_start(&walk, t.w.plan, &args, TAKES_FORK, &t.w.record);
  drive(&walk);
  assert_int_equal(t.w.record.state, GK_CANCELLED);
  EXPECT({A, 0}, {D, 1}, {B, 1}, {C, 0}); /* the second section meets no loop end */
  world_end(&t.w);
}

WALK(test_cancel_before_a_deaf_device, GK_DO_WHILE(Q), DO(tick, A), GK_END, DO(tick, C)) {
  t.w.deaf = true;
  t.w.cancel = 1; /* as a launch that was queued */
  LAUNCH(0, GK_CANCELLED, {A, 1}, {C, 0});
}

WALK(test_yield_beside_always, GK_RUN_ALWAYS(tick, GK_ONE, A), GK_RUN_ALWAYS(tick, GK_ONE, B), GK_DO_WHILE(N),
                               GK_CHECKPOINT(LP, F), GK_END, GK_END, GK_RUN_ALWAYS(tick, GK_ONE, C),
                               GK_CHECKPOINT(LQ, G), GK_END, GK_RUN_ALWAYS(tick, GK_ONE, D)) {
  CELL_OF(F) = 1;
  for (int k = 1; k < 4; ++k) {
    LAUNCH(k == 2 ? LP : 0, GK_YIELDED, {A, k}, {B, k}, {C, k}, {D, k});
  }
  LAUNCH(LQ, GK_FINISHED, {A, 4}, {B, 4}, {C, 4}, {D, 4});
}

WALK(test_fresh_launch_forgets, GK_DO_WHILE(Q, .max_iterations = 2), GK_CHECKPOINT(LP, F), DO(tick, A), GK_END,
                                GK_END) {
  t.w.entries[0] = 77; /* as an older launch may have left it */
  SET({Q, 1}, {F, 1});
  assert_int_equal(launch(0), GK_YIELDED);
  assert_int_equal(t.w.entries[0], 0);
  CELL_OF(F) = 0;
  LAUNCH(LP, GK_FINISHED, {A, 3});
  assert_int_equal(t.w.entries[0], 0);
}

/* The device's count of an entry ends at 2^32 - 1. The passes to the next read are known beyond, also over yields. */
WALK(test_every_beyond_32_bits, GK_DO_WHILE(N, .every = 3), GK_TARGET(LP), DO(tick, A), GK_END, GK_IF(F),
                                GK_YIELD(LX), GK_END, DO(drop, N), GK_END) {
  for (int32_t yields = 0; yields < 2; ++yields) {
    t.w.entries[0] = UINT32_MAX - 2; /* the remainder is 1, so the next read is behind two passes */
    SET({N, 5}, {A, 0}, {F, yields});
    launch(LP);
    for (int k = 0; k < 9 && yielded(); ++k) launch(LX);
    EXPECT({A, 5}, {N, 0});
  }
}

int main(void) { return run_all_tests(); }
