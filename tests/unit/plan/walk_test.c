/* The walker, on the golden traces of docs/contract.md, and on loops and branches. */
#include "unit/support/cells.h"

/* ---- golden traces ----------------------------------------------------------------------------------------------- */

TEST(test_yield_and_resume) {
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

TEST(test_yield_in_a_loop) {
  static const gk_task tasks[] = {
      GK_DO_WHILE(N), DO(tick, A), GK_CHECKPOINT(LB, F), DO(tick, B), GK_END, DO(tick, C), DO(drop, N), GK_END};
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

TEST(test_yield_on_last_pass) {
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

TEST(test_resume_past_a_finished_loop) {
  static const gk_task tasks[] = {
      GK_DO_WHILE(A), DO(tick, X), DO(drop, A), GK_END, DO(tick, Y), GK_CHECKPOINT(LX, F), DO(tick, D), GK_END};
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

TEST(test_yield_in_an_inner_loop) {
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

TEST(test_first_task_sets_the_flag) {
  static const gk_task tasks[] = {GK_CHECKPOINT(LP, F), DO(one, F), DO(tick, B), GK_END, DO(tick, C)};
  test t;
  FOR_LIST(t, tasks) {
    assert_int_equal(launch(&t, 0), GK_YIELDED);
    EXPECT(t, {B, 1}, {C, 0}, {F, 1});
    assert_int_equal(t.c.reads[1], 1);
  }
}

TEST(test_first_yielder_wins) {
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

TEST(test_sections_join_in_every_pass) {
  static const gk_task tasks[] = {GK_DO_WHILE(N), GK_PARALLEL, GK_SECTION, DO(tick, X), GK_END, GK_SECTION, DO(drop, Y),
                                  GK_END, GK_END, GK_PARALLEL, GK_SECTION, DO(move, A, X), GK_END, GK_SECTION,
                                  DO(move, B, Y), GK_END, GK_END, GK_IF(Q), DO(tick, C), GK_END, DO(drop, N), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    CELL_OF(t, N) = 4;
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    EXPECT(t, {X, 4}, {Y, -4}, {A, 4}, {B, -4}, {C, 0});
  }
}

TEST(test_always) {
  static const gk_task tasks[] = {GK_RUN_ALWAYS(tick, GK_ONE, P), DO(tick, A), GK_CHECKPOINT(LB, F), DO(tick, B),
                                  GK_END, GK_RUN_ALWAYS(tick, GK_ONE, D), DO(tick, C), GK_RUN_ALWAYS(tick, GK_ONE, E)};
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

/* ---- loops ------------------------------------------------------------------------------------------------------- */

TEST(test_counter_loops) {
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

TEST(test_flag_zero_at_do_while) {
  static const gk_task tasks[] = {GK_DO_WHILE(N), DO(tick, A), GK_END, GK_WHILE(N), DO(tick, B), GK_END};
  test t;
  FOR_LIST(t, tasks) {
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    EXPECT(t, {A, 1}, {B, 0});
  }
}

TEST(test_nested_three) {
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

TEST(test_ten_deep_and_empty_bodies) {
  static const gk_task tasks[] = {
      GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A),
      GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), DO(tick, B), GK_END, GK_END, GK_END, GK_END, GK_END, GK_END,
      GK_END, GK_END, GK_END, GK_END, GK_DO_WHILE(A), GK_END, GK_WHILE(A), GK_END, GK_IF(A), GK_ELSE, GK_END,
      GK_SWITCH(A), GK_END, GK_PARALLEL, GK_END, GK_PARALLEL, GK_SECTION, GK_END, GK_END};
  test t;
  FOR_LIST(t, tasks) {
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    EXPECT(t, {B, 1});
    assert_int_equal(t.w.record.passes[0], 1);
    assert_int_equal(t.w.record.passes[10], 1);
    assert_int_equal(t.w.record.passes[11], 0);
  }
}

TEST(test_empty_list) {
  static const gk_task tasks[] = {DO(tick, A)};
  test t;
  for (uint32_t mode = 0; mode < 4; ++mode) {
    begin(&t, tasks, 0, mode);
    assert_int_equal(launch(&t, 0), GK_FINISHED);
    assert_int_equal(t.w.steps, 0);
    world_end(&t.w);
  }
}

TEST(test_branches) {
  static const gk_task tasks[] = {
      GK_DO_WHILE(N), GK_IF(M), DO(tick, A), GK_ELSE, DO(tick, B), GK_END, GK_SWITCH(M, .offset = 4), GK_CASE,
      DO(tick, C), GK_END, GK_CASE, GK_END, GK_CASE, DO(tick, D), GK_END, GK_END, GK_IF(K), GK_WHILE(K), DO(drop, K),
      DO(tick, E), GK_END, GK_END, DO(drop, N), GK_END};
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

TEST(test_bounds) {
  static const gk_task tasks[] = {
      GK_DO_WHILE(Q, .max_iterations = 3), DO(tick, A), GK_END, GK_WHILE(Q, .max_iterations = 2), DO(tick, B),
      GK_DO_WHILE(P, .max_iterations = 1), GK_END, GK_END, DO(tick, C)};
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

TEST(test_bound_counts_one_entry) {
  static const gk_task tasks[] = {
      GK_DO_WHILE(N), GK_DO_WHILE(Q, .max_iterations = 3), DO(tick, A), GK_CHECKPOINT(LP, F), DO(ask, F, B), GK_END,
      DO(tick, C), GK_END, DO(drop, N), GK_END};
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

TEST(test_entry_from_its_beginning) {
  /* Q yields behind the inner loop; then P inside it: the count that waits is that of the entry at hand. */
  static const gk_task tasks[] = {
      GK_DO_WHILE(N), GK_DO_WHILE(Q, .max_iterations = 4), DO(tick, A), GK_CHECKPOINT(LP, F), DO(tick, B), GK_END,
      GK_END, GK_CHECKPOINT(LQ, G), DO(tick, C), GK_END, DO(drop, N), GK_END};
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

int main(void) { return run_all_tests(); }
