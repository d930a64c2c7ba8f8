/* What is enqueued ahead: how long tapes are, and what they learn. */
#include "unit/support/cells.h"

static gk_result do_nothing(const gk_value *args, void *native) { (void)native, (void)args; return GK_OK; }
#define TASKS(...) ((const gk_task[]){__VA_ARGS__}), GK_COUNT(((const gk_task[]){__VA_ARGS__}))

/* Launches, and compares the number of tapes. Neither tapes nor walks have a limit. */
static void launch_in_tapes(long wanted, int line) {
  const long before = t.w.tapes;
  t.w.whole = true;
  launch(0);
  if (t.w.tapes - before != wanted) fail_msg("line %d: %ld tapes, not %ld", line, t.w.tapes - before, wanted);
}
#define LAUNCH_IN(tapes) launch_in_tapes(tapes, __LINE__)

TEST(test_silent_checkpoints_in_one_tape) {
#define SILENT(x) GK_CHECKPOINT(x, F), DO(tick, A), GK_END
  begin(TASKS(SILENT(1), SILENT(2), SILENT(3), SILENT(4), SILENT(5), SILENT(6), SILENT(7), SILENT(8), DO(tick, B)),
        BY_TAPES);
  LAUNCH_IN(1);
  EXPECT({A, 8}, {B, 1});
  world_end(&t.w);
}

/* A launch that yields, and the one that resumes, take one tape each. */
TEST(test_yields_in_one_tape) {
  begin(TASKS(GK_DO_WHILE(N), GK_CHECKPOINT(1, F), DO(tick, A), GK_END, DO(drop, N), GK_END,
              GK_CHECKPOINT(2, M), DO(tick, B), GK_END, DO(tick, C)), BY_TAPES);
  SET({N, 1}, {F, 1}, {M, 1});
  LAUNCH_IN(1);
  assert_int_equal(t.w.record.state, GK_YIELDED);
  EXPECT({A, 1}, {B, 0}, {C, 0});
  CELL_OF(F) = 0;
  LAUNCH_IN(1);
  assert_int_equal(t.w.record.state, GK_YIELDED);
  EXPECT({A, 2}, {B, 1}, {C, 0});
  CELL_OF(M) = 0;
  SET({N, 1});
  LAUNCH_IN(1);
  EXPECT({A, 3}, {B, 2}, {C, 1});
  world_end(&t.w);
}

/* A first launch enqueues 1, 2, 4 ... passes. Later launches begin with the number that it has learned. */
TEST(test_passes_are_learned) {
  begin(TASKS(GK_DO_WHILE(N), DO(tick, A), DO(drop, N), GK_END, DO(tick, B)), BY_TAPES);
  for (int launches = 0; launches < 3; ++launches) {
    static const long tapes[] = {6, 2, 1};
    SET({N, 50}, {A, 0}, {B, 0});
    LAUNCH_IN(tapes[launches]);
    EXPECT({A, 50}, {B, 1});
  }
  CELL_OF(N) = 3; /* less than a quarter of the enqueued passes: the next launch enqueues half as many */
  const uint32_t passes = t.w.tape.passes[0];
  LAUNCH_IN(1);
  assert_int_equal(t.w.tape.passes[0], passes / 2);
  world_end(&t.w);
}

TEST(test_no_more_passes_than_the_bound) {
  begin(TASKS(GK_DO_WHILE(N, .max_iterations = 5), DO(tick, A), GK_END), BY_TAPES);
  CELL_OF(N) = 1;
  for (int launches = 0; launches < 3; ++launches) launch(0);
  assert_int_equal(t.w.tape.passes[0], 5);
  EXPECT({A, 15});
  world_end(&t.w);
}

/* Tapes end where the flag is read: behind 6 passes, then 12, 24 and 48. */
TEST(test_passes_up_to_a_look) {
  begin(TASKS(GK_DO_WHILE(N, .every = 6), DO(tick, A), GK_IF(F), GK_YIELD(1), GK_END, DO(drop, N), GK_END), BY_TAPES);
  for (int launches = 0; launches < 3; ++launches) {
    static const long tapes[] = {4, 2, 1};
    SET({N, 90}, {A, 0});
    LAUNCH_IN(tapes[launches]);
    EXPECT({A, 90});
    assert_int_equal(t.w.tape.passes[0] % 6, 0);
  }
  t.w.tape.passes[0] = 6;
  SET({N, 6}, {F, 1}, {A, 0});
  for (int launches = 0; launches < 3; ++launches) launch(launches ? 1 : 0);
  CELL_OF(F) = 0;
  const long before = t.w.enqueued;
  t.w.whole = true;
  launch(1); /* goes on in the third pass */
  EXPECT({A, 6}, {N, 0});
  assert_int_equal(t.w.enqueued - before, 7);
  world_end(&t.w);
}

/* Nothing behind a run that isn't open walks, so a bound that a step left undecided would end its tape: 20 of them. */
TEST(test_bounds_in_few_tapes) {
  begin(TASKS(GK_DO_WHILE(N), GK_DO_WHILE(M, .max_iterations = 4), DO(tick, A), GK_END, DO(drop, N), GK_END),
        BY_TAPES);
  for (int launches = 0; launches < 8; ++launches) {
    SET({N, 20}, {M, 1}, {A, 0});
    t.w.whole = true;
    launch(0);
    EXPECT({A, 80});
  }
  SET({N, 20});
  LAUNCH_IN(3);
  world_end(&t.w);
}

/* Whether the walk or a step ended the loop: a resume in it has all of its passes. */
TEST(test_a_loop_that_ended_has_no_passes) {
  begin(TASKS(GK_DO_WHILE(N, .max_iterations = 3), GK_CHECKPOINT(1, F), DO(tick, A), GK_END, DO(drop, N), GK_END,
              GK_CHECKPOINT(2, G), DO(tick, B), GK_END), BY_TAPES);
  while (t.w.steps_taken < 20) {
    SET({N, 2}, {G, 1}, {A, 0});
    launch(0);
    EXPECT({A, 2});
    SET({N, 9}, {G, 0}, {A, 0});
    launch(1);
    EXPECT({A, 3});
  }
  world_end(&t.w);
}

/* A library call can't look at a gate, so its run is enqueued only as the first one of a tape, when it surely comes. */
TEST(test_calls_begin_tapes) {
  begin(TASKS(DO(tick, A), GK_CALL(do_nothing, B), DO(tick, A), GK_IF(N), GK_CALL(do_nothing, B), GK_END, DO(tick, C)),
        BY_TAPES);
  for (CELL_OF(N) = 0; CELL_OF(N) < 2; ++CELL_OF(N)) LAUNCH_IN(2);
  EXPECT({A, 4}, {C, 2});
  world_end(&t.w);
}

/* So is a CALL_HOST, and so is what follows it: common calls the function in between. */
TEST(test_hosts_begin_tapes) {
  begin(TASKS(DO(tick, A), GK_CALL_HOST(do_nothing, B), DO(tick, A), GK_IF(N), GK_CALL_HOST(do_nothing, B), GK_END,
              DO(tick, C)), BY_TAPES);
  for (CELL_OF(N) = 0; CELL_OF(N) < 2; ++CELL_OF(N)) LAUNCH_IN(3);
  EXPECT({A, 4}, {C, 2});
  world_end(&t.w);
}

TEST(test_sections_side_by_side) {
  begin(TASKS(GK_PARALLEL, GK_SECTION, DO(tick, X), GK_IF(P), DO(tick, A), GK_END, GK_END, GK_SECTION, DO(tick, Y),
              GK_IF(Q), DO(tick, B), GK_END, DO(tick, C), GK_END, GK_END, DO(tick, D)), BY_TAPES);
  static const uint32_t runs[] = {0, 2 | GK_AHEAD_BESIDE, 1, 3 | GK_AHEAD_BESIDE, 4, 5};
  gk_points_start(t.w.points, &(gk_launch_args){.entries = t.w.entries, .counts = t.w.counts}, t.w.state);
  gki_tape_fill(&t.w.tape, t.w.state, GKI_TAPE_RUNS);
  assert_int_equal(t.w.tape.count, 1 + GK_COUNT(runs));
  assert_int_equal(t.w.tape.runs[0], GK_NONE); /* the walk from the launch's first point on */
  assert_memory_equal(t.w.tape.runs + 1, runs, sizeof runs);
  world_end(&t.w);
}

/* If the limit ends a tape, the next one goes on there. */
TEST(test_a_cut_tape_goes_on) {
  begin(TASKS(GK_CHECKPOINT(1, F), DO(tick, A), GK_END, GK_CHECKPOINT(2, F), DO(tick, A), GK_END, DO(tick, B)),
        BY_TAPES);
  gki_tape *tape = &t.w.tape;
  gk_points_start(t.w.points, &(gk_launch_args){.entries = t.w.entries, .counts = t.w.counts}, t.w.state);
  gki_tape_fill(tape, t.w.state, 2);
  assert_true(tape->cut && tape->count == 2 && tape->runs[0] == 0 && tape->runs[1] == 1);
  gki_tape_go_on(tape, 9);
  assert_true(!tape->cut && tape->count == 1 && tape->runs[0] == 2);
  world_end(&t.w);
}

/* The text for device compilers has the functions and no comments. */
TEST(test_text_of_the_walk) {
  const char *text = gk_walk_text();
  assert_non_null(strstr(text, "void gkw_ran("));
  assert_non_null(strstr(text, "void gkw_walk("));
  assert_null(strstr(text, "/*"));
}

int main(void) { return run_all_tests(); }
