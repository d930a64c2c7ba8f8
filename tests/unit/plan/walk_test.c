/* The walker, on the golden traces of docs/contract.md, and on loops and branches. */
#include "unit/support/cells.h"

WALK(test_yield_and_resume, DO(tick, A), GK_CHECKPOINT(LB, F), DO(tick, B), GK_END, DO(tick, C)) {
  CELL_OF(F) = 1;
  LAUNCH(0, GK_YIELDED, {A, 1}, {B, 1}, {C, 0}, {F, 1}); /* the flag is the host's to clear */
  assert_int_equal(yielded(), LB);
  LAUNCH(LB, GK_YIELDED, {A, 1}, {B, 2}, {C, 0}); /* it wasn't cleared */
  CELL_OF(F) = 0;
  LAUNCH(LB, GK_FINISHED, {A, 1}, {B, 3}, {C, 1});
  assert_int_equal(yielded(), 0);
}

WALK(test_yield_in_a_loop, GK_DO_WHILE(N), DO(tick, A), GK_CHECKPOINT(LB, F), DO(tick, B), GK_END, DO(tick, C),
                           DO(drop, N), GK_END) {
  SET({N, 3}, {F, 1});
  LAUNCH(0, GK_YIELDED, {A, 1}, {B, 1}, {C, 0}, {N, 3});
  assert_int_equal(t.w.record.passes[0], 0);
  CELL_OF(F) = 0;
  LAUNCH(LB, GK_FINISHED, {A, 3}, {B, 4}, {C, 3}, {N, 0});
  assert_int_equal(t.w.record.passes[0], 3);
}

WALK(test_yield_on_last_pass, GK_DO_WHILE(N), DO(drop, N), GK_CHECKPOINT(LB, F), DO(tick, B), GK_END, GK_END) {
  SET({N, 1}, {F, 1});
  LAUNCH(0, GK_YIELDED, {N, 0}, {B, 1});
  CELL_OF(F) = 0;
  LAUNCH(LB, GK_FINISHED, {N, 0}, {B, 2});
  assert_int_equal(t.w.record.passes[0], 1);
}

WALK(test_resume_past_a_finished_loop, GK_DO_WHILE(A), DO(tick, X), DO(drop, A), GK_END, DO(tick, Y),
                                       GK_CHECKPOINT(LX, F), DO(tick, D), GK_END) {
  SET({A, 2}, {F, 1});
  LAUNCH(0, GK_YIELDED, {X, 2}, {Y, 1}, {D, 1});
  SET({F, 0}, {A, 7}); /* armed again: no matter */
  memset(t.c.reads, 0, sizeof t.c.reads);
  LAUNCH(LX, GK_FINISHED, {X, 2}, {Y, 1}, {D, 2}, {A, 7});
  assert_int_equal(t.c.reads[1], 0); /* the flag of a loop before the target isn't read */
  assert_int_equal(t.w.record.passes[0], 0);
}

WALK(test_yield_in_an_inner_loop, GK_DO_WHILE(N), DO(two, M), DO(tick, A), GK_DO_WHILE(M), GK_CHECKPOINT(LP, F),
                                  DO(tick, B), GK_END, DO(drop, M), GK_END, DO(drop, N), GK_END) {
  SET({N, 2}, {F, 1});
  LAUNCH(0, GK_YIELDED, {B, 1}, {A, 1}, {N, 2}, {M, 2});
  CELL_OF(F) = 0;
  LAUNCH(LP, GK_FINISHED, {B, 5}, {A, 2}, {N, 0});
  assert_int_equal(t.w.record.passes[0], 2);
  assert_int_equal(t.w.record.passes[1], 4);
}

WALK(test_first_task_sets_the_flag, GK_CHECKPOINT(LP, F), DO(one, F), DO(tick, B), GK_END, DO(tick, C)) {
  LAUNCH(0, GK_YIELDED, {B, 1}, {C, 0}, {F, 1});
  assert_int_equal(t.c.reads[1], 1);
}

WALK(test_first_yielder_wins, GK_CHECKPOINT(LP, F), DO(tick, A), GK_END, GK_CHECKPOINT(LQ, G), DO(tick, B), GK_END) {
  SET({F, 1}, {G, 1});
  LAUNCH(0, GK_YIELDED, {A, 1}, {B, 0});
  assert_int_equal(yielded(), LP);
  assert_true(t.w.record.ran[0] && !t.w.record.ran[1]);
  LAUNCH(LQ, GK_YIELDED, {A, 1}, {B, 1}); /* P is skipped, its flag isn't read */
  assert_int_equal(yielded(), LQ);
  assert_int_equal(t.c.reads[1], 1);
  assert_true(!t.w.record.ran[0] && t.w.record.ran[1]);
  CELL_OF(G) = 0;
  LAUNCH(LQ, GK_FINISHED, {A, 1}, {B, 2});
  CELL_OF(F) = 0;
  LAUNCH(LP, GK_FINISHED, {A, 2}, {B, 3}); /* an earlier label, without a yield */
}

WALK(test_sections_join_in_every_pass, GK_DO_WHILE(N), GK_PARALLEL, GK_SECTION, DO(tick, X), GK_END, GK_SECTION,
                                       DO(drop, Y), GK_END, GK_END, GK_PARALLEL, GK_SECTION, DO(move, A, X), GK_END,
                                       GK_SECTION, DO(move, B, Y), GK_END, GK_END, GK_IF(Q), DO(tick, C), GK_END,
                                       DO(drop, N), GK_END) {
  CELL_OF(N) = 4;
  LAUNCH(0, GK_FINISHED, {X, 4}, {Y, -4}, {A, 4}, {B, -4}, {C, 0});
}

WALK(test_always, GK_RUN_ALWAYS(tick, GK_ONE, P), DO(tick, A), GK_CHECKPOINT(LB, F), DO(tick, B), GK_END,
                  GK_RUN_ALWAYS(tick, GK_ONE, D), DO(tick, C), GK_RUN_ALWAYS(tick, GK_ONE, E)) {
  CELL_OF(F) = 1;
  LAUNCH(0, GK_YIELDED, {P, 1}, {A, 1}, {B, 1}, {D, 1}, {C, 0}, {E, 1});
  CELL_OF(F) = 0;
  LAUNCH(LB, GK_FINISHED, {P, 2}, {A, 1}, {B, 2}, {D, 2}, {C, 1}, {E, 2});
  LAUNCH(0, GK_FINISHED, {P, 3}, {A, 2}, {B, 3}, {D, 3}, {C, 2}, {E, 3});
}

WALK(test_counter_loops, DO(tick, A), GK_DO_WHILE(N), DO(tick, B), DO(drop, N), GK_END, DO(tick, C), GK_WHILE(M),
                         DO(tick, D), DO(tick, M), GK_END, DO(tick, E)) {
  SET({N, 5}, {M, -3}); /* negative is true */
  LAUNCH(0, GK_FINISHED, {A, 1}, {B, 5}, {C, 1}, {D, 3}, {E, 1});
  assert_int_equal(t.w.record.passes[0], 5);
  assert_int_equal(t.w.record.passes[1], 3);
  CELL_OF(N) = 10;
  LAUNCH(0, GK_FINISHED, {A, 2}, {B, 15}, {C, 2}, {D, 3}, {E, 2}); /* WHILE over 0: no pass */
  assert_int_equal(t.w.record.passes[1], 0);
  CELL_OF(N) = 1;
  LAUNCH(0, GK_FINISHED, {B, 16}, {N, 0});
}

WALK(test_flag_zero_at_do_while, GK_DO_WHILE(N), DO(tick, A), GK_END, GK_WHILE(N), DO(tick, B), GK_END) {
  LAUNCH(0, GK_FINISHED, {A, 1}, {B, 0});
}

WALK(test_nested_three, GK_DO_WHILE(N), DO(five, M), GK_DO_WHILE(M), DO(two, K), GK_WHILE(K), DO(tick, A), DO(drop, K),
                        GK_END, DO(drop, M), GK_END, DO(drop, N), GK_END) {
  CELL_OF(N) = 2;
  LAUNCH(0, GK_FINISHED, {A, 20}, {N, 0}, {M, 0}, {K, 0});
  assert_int_equal(t.w.record.passes[2], 20);
}

WALK(test_ten_deep_and_empty_bodies,
     GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A),
     GK_DO_WHILE(A), GK_DO_WHILE(A), GK_DO_WHILE(A), DO(tick, B), GK_END, GK_END, GK_END, GK_END, GK_END, GK_END,
     GK_END, GK_END, GK_END, GK_END, GK_DO_WHILE(A), GK_END, GK_WHILE(A), GK_END, GK_IF(A), GK_ELSE, GK_END,
     GK_SWITCH(A), GK_END, GK_PARALLEL, GK_END, GK_PARALLEL, GK_SECTION, GK_END, GK_END) {
  LAUNCH(0, GK_FINISHED, {B, 1});
  assert_int_equal(t.w.record.passes[0], 1);
  assert_int_equal(t.w.record.passes[10], 1);
  assert_int_equal(t.w.record.passes[11], 0);
}

TEST(test_empty_list) {
  for (uint32_t mode = 0; mode < 4; ++mode) {
    begin((const gk_task[]){DO(tick, A)}, 0, mode);
    assert_int_equal(launch(0), GK_FINISHED);
    assert_int_equal(t.w.steps, 0);
    world_end(&t.w);
  }
}

WALK(test_branches, GK_DO_WHILE(N), GK_IF(M), DO(tick, A), GK_ELSE, DO(tick, B), GK_END, GK_SWITCH(M, .offset = 4),
     GK_CASE, DO(tick, C), GK_END, GK_CASE, GK_END, GK_CASE, DO(tick, D), GK_END, GK_END, GK_IF(K), GK_WHILE(K),
     DO(drop, K), DO(tick, E), GK_END, GK_END, DO(drop, N), GK_END) {
  static const int32_t cases[][4] = {{0, 1, 0}, {1, 0, 0}, {2, 0, 1}, {3, 0, 0}, {-1, 0, 0}, {INT32_MAX, 0, 0}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    memset(&t.c, 0, sizeof t.c);
    t.c.at[M][1] = cases[k][0];
    SET({N, 2}, {M, k % 2 ? -1 : 0}, {K, 3});
    LAUNCH(0, GK_FINISHED, {A, k % 2 ? 2 : 0}, {B, k % 2 ? 0 : 2}, {C, 2 * cases[k][1]}, {D, 2 * cases[k][2]}, {E, 3});
  }
}

WALK(test_bounds, GK_DO_WHILE(Q, .max_iterations = 3), DO(tick, A), GK_END, GK_WHILE(Q, .max_iterations = 2),
                  DO(tick, B), GK_DO_WHILE(P, .max_iterations = 1), GK_END, GK_END, DO(tick, C)) {
  CELL_OF(Q) = 1;
  LAUNCH(0, GK_FINISHED, {A, 3}, {B, 2}, {C, 1});
  assert_int_equal(t.w.record.limit, 1);
  assert_true(t.w.record.hit_bound[0] && t.w.record.hit_bound[1] && !t.w.record.hit_bound[2]);
  CELL_OF(Q) = 0;
  LAUNCH(0, GK_FINISHED, {A, 4}, {B, 2}, {C, 2});
  assert_int_equal(t.w.record.limit, 0); /* nothing stale */
  assert_int_equal(t.w.record.hit_bound[0], 0);
}

WALK(test_bound_counts_one_entry, GK_DO_WHILE(N), GK_DO_WHILE(Q, .max_iterations = 3), DO(tick, A),
                                  GK_CHECKPOINT(LP, F), DO(ask, F, B), GK_END, DO(tick, C), GK_END, DO(drop, N),
                                  GK_END) {
  SET({Q, 1}, {N, 2});
  uint64_t passes = 0, resumes = 0;
  for (gk_state now = launch(0);; now = launch(LP), ++resumes) { /* every pass yields once */
    passes += t.w.record.passes[1];
    if (now == GK_FINISHED) break;
    CELL_OF(F) = 0;
  }
  assert_int_equal(passes, 6);
  assert_int_equal(resumes, 6);
  assert_int_equal(t.w.record.limit, 2);
  EXPECT({A, 6}, {B, 12}, {C, 6}, {N, 0});
  CELL_OF(N) = 1; /* a fresh launch after a yield that wasn't resumed: the count begins anew */
  assert_int_equal(launch(0), GK_YIELDED);
  CELL_OF(F) = 0;
  assert_int_equal(launch(LP), GK_YIELDED);
  CELL_OF(B) = 100;
  for (passes = 0; launch(passes ? LP : 0) == GK_YIELDED; ++passes) CELL_OF(F) = 0;
  assert_int_equal(passes, 3);
}

/* Q yields behind the inner loop; then P inside it: the count that waits is that of the entry at hand. */
WALK(test_entry_from_its_beginning, GK_DO_WHILE(N), GK_DO_WHILE(Q, .max_iterations = 4), DO(tick, A),
     GK_CHECKPOINT(LP, F), DO(tick, B), GK_END, GK_END, GK_CHECKPOINT(LQ, G), DO(tick, C), GK_END, DO(drop, N),
     GK_END) {
  SET({N, 2}, {Q, 1}, {F, 1});
  assert_int_equal(launch(0), GK_YIELDED);
  SET({F, 0}, {G, 1});
  LAUNCH(LP, GK_YIELDED, {A, 4}, {B, 5}, {C, 1});
  CELL_OF(G) = 0;
  LAUNCH(LQ, GK_FINISHED, {A, 8}, {B, 9}, {C, 3}, {N, 0});
  assert_int_equal(t.w.record.passes[1], 4);
}

int main(void) { return run_all_tests(); }
