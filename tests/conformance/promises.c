/* What docs/contract.md promises besides: branches and resumes into them, bounds across yields, statuses that are of
 * one launch alone, always-tasks, included lists, counts, binding. */
#include "letters.h"
#include <limits.h>
#include <stddef.h>
#include <string.h>

/* ---- branches: rules 5 and 6 ------------------------------------------------------------------------------------- */

CASE(switch_takes_the_case_of_its_number) {
  static const gk_task tasks[] = {GK_SWITCH(K), GK_CASE, HIT(A), GK_END, GK_CASE, HIT(B), SET(K, 0), HIT(B), GK_END,
                                  GK_CASE, GK_END, GK_CASE, HIT(C), GK_END, GK_END, HIT(D)};
  subject *s = GRAPH(t, tasks);
  static const struct { int value; const char *wanted; } tries[] = {
    {0, "A=1 B=0 C=0 D=1"},       {1, "A=1 B=2 C=0 D=2 K=0"}, /* read once, at entry */
    {2, "A=1 B=2 C=0 D=3"},       {3, "A=1 B=2 C=1 D=4"},       {4, "A=1 B=2 C=1 D=5"},
    {INT_MAX, "A=1 B=2 C=1 D=6"}, {-1, "A=1 B=2 C=1 D=7"},      {INT_MIN, "A=1 B=2 C=1 D=8"}};
  for (size_t k = 0; k < GK_COUNT(tries); ++k) {
    put(s, K, tries[k].value);
    trace(s, 0, tries[k].wanted);
  }
}

CASE(switch_without_cases) {
  static const gk_task tasks[] = {HIT(A), GK_SWITCH(K), GK_END, GK_SWITCH(K), GK_CASE, GK_END, GK_END, HIT(B)};
  subject *s = GRAPH(t, tasks);
  trace(s, 0, "A=1 B=1");
}

CASE(resume_into_a_case) {
  static const gk_task tasks[] = {
    GK_DO_WHILE(N), HIT(A),
    GK_SWITCH(K), GK_CASE, HIT(B), GK_END,
    GK_CASE, HIT(C), GK_CHECKPOINT(FIRST, F), HIT(D), GK_END, HIT(E), GK_END,
    GK_CASE, GK_WHILE(M), HIT(U), GK_CHECKPOINT(SECOND, G), HIT(V), GK_END, DOWN(M), GK_END, GK_END, GK_END,
    DOWN(N), GK_END};
  subject *s = GRAPH(t, tasks);
  put(s, N, 2);
  put(s, K, 1);
  put(s, F, 1);
  trace(s, 0, "A=1 B=0 C=1 D=1 E=0, yielded FIRST, ran FIRST");
  put(s, F, 0);
  put(s, K, 0); /* the resumed pass goes on in case 1, the next takes case 0 */
  trace(s, FIRST, "A=2 B=1 C=1 D=2 E=1 N=0, passes N=2 M=0, ran FIRST");
  put(s, N, 1);
  put(s, K, 77);
  put(s, M, 0); /* nor is the flag of the WHILE around the target looked at */
  put(s, G, 1);
  trace(s, SECOND, "A=2 U=0 V=1 M=0 N=1, yielded SECOND, passes N=0 M=0, ran SECOND");
  put(s, M, 3);
  put(s, G, 0);
  trace(s, SECOND, "A=2 U=2 V=4 M=0 N=0, passes N=1 M=3, ran SECOND");
}

CASE(resume_into_either_branch) {
  static const gk_task tasks[] = {GK_IF(G), HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C), GK_ELSE, HIT(D),
                                  GK_CHECKPOINT(SECOND, F), HIT(E), GK_END, HIT(U), GK_END, HIT(V)};
  subject *s = GRAPH(t, tasks);
  trace(s, FIRST, "A=0 B=1 C=1 D=0 E=0 U=0 V=1, ran FIRST"); /* G says the other one */
  put(s, G, 1);
  trace(s, SECOND, "A=0 B=1 C=1 D=0 E=1 U=1 V=2, ran SECOND");
  put(s, F, 1);
  trace(s, SECOND, "A=0 B=1 C=1 D=0 E=2 U=1 V=2, yielded SECOND, ran SECOND");
  trace(s, 0, "A=1 B=2 C=1 D=0 E=2 U=1 V=2, yielded FIRST, ran FIRST");
}

CASE(branch_flag_is_read_once) {
  static const gk_task tasks[] = {GK_IF(G), SET(G, 0), HIT(A), GK_ELSE, SET(G, 1), HIT(B), GK_END, HIT(C)};
  subject *s = GRAPH(t, tasks);
  trace(s, 0, "A=0 B=1 C=1 G=1");
  trace(s, 0, "A=1 B=1 C=2 G=0");
  put(s, G, -1);
  trace(s, 0, "A=2 B=1 C=3 G=0");
}

CASE(loop_flag_is_read_at_its_end) {
  static const gk_task tasks[] = {GK_WHILE(N), SET(N, 0), HIT(A), SET(N, 1), GK_IF(F), SET(N, 0), GK_END, SET(F, 1),
                                  GK_END, SET(N, 1), HIT(B)};
  subject *s = GRAPH(t, tasks);
  put(s, N, 1);
  trace(s, 0, "A=2 B=1 N=1, passes N=2"); /* what it is in between, or afterwards, doesn't matter */
}

CASE(while_around_the_target_is_entered) {
  static const gk_task tasks[] = {GK_WHILE(M), HIT(A), GK_WHILE(N), HIT(B), GK_CHECKPOINT(FIRST, F), HIT(C), GK_END,
                                  DOWN(N), GK_END, HIT(D), DOWN(M), GK_END, HIT(E)};
  subject *s = GRAPH(t, tasks);
  put(s, M, 1);
  put(s, N, 1);
  trace(s, FIRST, "A=0 B=0 C=1 D=1 E=1 M=0 N=0, passes M=1 N=1, ran FIRST");
  put(s, F, 1); /* both flags are false by now */
  trace(s, FIRST, "A=0 B=0 C=2 D=1 E=1 M=0 N=0, yielded FIRST, passes M=0 N=0, ran FIRST");
  put(s, M, 2);
  put(s, N, 1);
  trace(s, FIRST, "A=0 B=0 C=3 D=1 E=1 M=2 N=1, yielded FIRST, passes M=0 N=0, ran FIRST");
  put(s, F, 0);
  trace(s, FIRST, "A=1 B=0 C=4 D=3 E=2 M=0 N=0, passes M=2 N=1, ran FIRST"); /* none in the inner one's second entry */
}

/* ---- bounds: rule 10 --------------------------------------------------------------------------------------------- */

CASE(bound_counts_across_yields) {
  static const gk_task tasks[] = {GK_DO_WHILE(N, .max_iterations = 5, .label = OUTER), HIT(A),
                                  GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C), GK_END, HIT(D)};
  subject *s = GRAPH(t, tasks);
  put(s, N, 1);
  put(s, F, 1);
  trace(s, 0, "A=1 B=1 C=0, yielded FIRST, passes OUTER=0");
  trace(s, FIRST, "A=1 B=2 C=0, yielded FIRST, passes OUTER=0");
  put(s, F, 0);
  trace(s, FIRST, "A=5 B=7 C=5 D=1, passes OUTER=5, bound OUTER"); /* the interrupted pass counts once */
  put(s, F, 1);
  trace(s, FIRST, "B=8 C=5 D=1, yielded FIRST, passes OUTER=0"); /* the loop had ended: the count is at zero again */
  put(s, F, 0);
  trace(s, FIRST, "A=9 B=13 C=10 D=2, passes OUTER=5, bound OUTER");
}

CASE(bound_of_a_pass_in_the_middle) {
  static const gk_task tasks[] = {GK_DO_WHILE(N, .max_iterations = 4), HIT(A), RAISE_AT(F, A, X),
                                  GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C), GK_END};
  subject *s = GRAPH(t, tasks);
  put(s, N, 1);
  put(s, X, 3);
  trace(s, 0, "A=3 B=3 C=2, yielded FIRST, passes N=2");
  put(s, F, 0);
  trace(s, FIRST, "A=4 B=5 C=4, passes N=2, bound N"); /* two and two */
  put(s, X, 6);
  trace(s, 0, "A=6 B=7 C=5, yielded FIRST, passes N=1");
  put(s, F, 0);
  trace(s, 0, "A=10 B=11 C=9, passes N=4, bound N"); /* a fresh launch starts at zero */
}

CASE(bound_waits_through_other_launches) {
  static const gk_task tasks[] = {GK_TARGET(SECOND), HIT(U), GK_END, GK_DO_WHILE(N, .max_iterations = 4), HIT(A),
                                  RAISE_AT(F, A, X), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, GK_END, GK_TARGET(THIRD),
                                  HIT(V), GK_END};
  subject *s = GRAPH(t, tasks);
  put(s, N, 1);
  put(s, X, 3);
  trace(s, 0, "U=1 A=3 B=3 V=0, yielded FIRST, passes N=2");
  trace(s, THIRD, "U=1 A=3 B=3 V=1, passes N=0, ran THIRD"); /* past the loop */
  put(s, F, 0);
  trace(s, FIRST, "U=1 A=4 B=5 V=2, passes N=2, bound N"); /* two were made, so two are left */
  put(s, X, 6);
  trace(s, 0, "U=2 A=6 B=7 V=2, yielded FIRST, passes N=1");
  put(s, F, 0);
  trace(s, SECOND, "U=3 A=10 B=11 V=3, passes N=4, bound N"); /* entered from its beginning: four */
}

CASE(bound_returns_to_zero_with_a_fresh_launch) {
  static const gk_task tasks[] = {GK_IF(G), GK_DO_WHILE(N, .max_iterations = 4), HIT(A), RAISE_AT(F, A, X),
                                  GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, GK_END, GK_END};
  subject *s = GRAPH(t, tasks);
  put(s, N, 1);
  put(s, G, 1);
  put(s, X, 3);
  trace(s, 0, "A=3 B=3, yielded FIRST, passes N=2");
  put(s, F, 0);
  put(s, G, 0);
  trace(s, 0, "A=3 B=3, passes N=0"); /* even one that doesn't come to the loop */
  trace(s, FIRST, "A=6 B=7, passes N=4, bound N");
}

CASE(bound_is_of_one_entry) {
  static const gk_task tasks[] = {GK_DO_WHILE(M), GK_DO_WHILE(N, .max_iterations = 3), HIT(A), RAISE_AT(F, A, X),
                                  GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, GK_END, DOWN(M), GK_END, HIT(C)};
  subject *s = GRAPH(t, tasks);
  put(s, M, 3);
  put(s, N, 1);
  put(s, X, 5);
  trace(s, 0, "A=5 B=5 C=0 M=2, yielded FIRST, passes M=1 N=4, bound N"); /* hit in the first entry, in this launch */
  put(s, F, 0);
  trace(s, FIRST, "A=9 B=10 C=1 M=0, passes M=2 N=5, bound N"); /* two more in the second, three in the third */
}

CASE(bound_of_the_first_loop_that_hit_it) {
  static const gk_task tasks[] = {GK_DO_WHILE(L, .max_iterations = 2), GK_WHILE(M, .max_iterations = 3), HIT(A),
                                  GK_END, GK_END, GK_DO_WHILE(N, .max_iterations = 1), HIT(B), GK_END};
  static const gk_task sections[] = {
    GK_PARALLEL, GK_SECTION, GK_DO_WHILE(L, .max_iterations = 9), HIT(A), GK_END, GK_END,
    GK_SECTION, GK_DO_WHILE(M, .max_iterations = 2), HIT(B), GK_END, GK_END, GK_END};
  subject *s = GRAPH(t, tasks), *parallel = GRAPH(t, sections);
  subject *both[] = {s, parallel};
  for (size_t k = 0; k < 2; ++k) {
    put(both[k], L, 1);
    put(both[k], M, 1);
    put(both[k], N, 1);
  }
  trace(s, 0, "A=6 B=1, passes L=2 M=6 N=1, bound M");
  const gk_status *status = launch(s, 0);
  for (uint32_t k = 0; k < 3; ++k) expect(t, status->loops[k].hit_bound, "loop %u didn't hit its bound", (unsigned)k);
  put(s, M, 0);
  trace(s, 0, "A=12 B=3, passes L=2 M=0 N=1, bound L");
  put(s, L, 0);
  trace(s, 0, "A=12 B=4, passes L=1 M=0 N=1, bound N");
  put(s, N, 0);
  trace(s, 0, "A=12 B=5, passes L=1 M=0 N=1"); /* with its flag false at the bound, it isn't hit */
  trace(parallel, 0, "A=9 B=2, passes L=9 M=2, bound L"); /* the first in the list, whichever came first */
  put(parallel, L, 0);
  trace(parallel, 0, "A=10 B=4, passes L=1 M=2, bound M");
}

/* ---- statuses ---------------------------------------------------------------------------------------------------- */

CASE(nothing_stale_in_a_status) {
  static const gk_task tasks[] = {GK_DO_WHILE(N, .max_iterations = 2, .label = OUTER), HIT(A), GK_END,
                                  GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, GK_TARGET(SECOND), HIT(C), GK_END,
                                  GK_WHILE(M, .label = INNER), DOWN(M), GK_END};
  subject *s = GRAPH(t, tasks);
  put(s, N, 1);
  put(s, F, 1);
  put(s, M, 4);
  trace(s, 0, "A=2 B=1 C=0 M=4, yielded FIRST, passes OUTER=2 INNER=0, bound OUTER, ran FIRST");
  trace(s, SECOND, "A=2 B=1 C=1 M=0, passes OUTER=0 INNER=4, ran SECOND");
  put(s, N, 0);
  put(s, F, 0);
  trace(s, 0, "A=3 B=2 C=2, passes OUTER=1 INNER=0, ran FIRST SECOND");
  const gk_status *status = launch(s, SECOND), *polled = NULL;
  expect_int(t, status->launch, 4);
  expect(t, !status->loops[0].hit_bound, "a bound that was hit three launches ago");
  must(t, gk_poll(graph(s), &polled)); /* asking again answers the same */
  expect_int(t, polled->launch, 4);
  expect_int(t, polled->state, GK_FINISHED);
  expect_int(t, gk_passes(polled, OUTER), 0);
}

CASE(rebinding_is_told_by_the_status) {
  enum { TO = 1, BY };
  static const gk_slot_desc slots[] = {GK_BUFFER(TO, int), GK_DEFAULT(BY, int, 1)};
  static const gk_task tasks[] = {GK_RUN(add, GK_ONE, TO, BY)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  buffer *first = buffer_of(t, 1), *second = buffer_of(t, 1);
  bind_buffer(s, TO, first);
  launch(s, 0);
  expect_int(t, launch(s, 0)->applied, GK_UNCHANGED);
  bind_buffer(s, TO, second);
  expect(t, launch(s, 0)->applied != GK_UNCHANGED, "a slot was bound anew, and the status knows nothing of it");
  expect_int(t, launch(s, 0)->applied, GK_UNCHANGED);
  bind_int(s, BY, 5);
  expect(t, launch(s, 0)->applied != GK_UNCHANGED, "a number was bound anew, and the status knows nothing of it");
  expect_int(t, buffer_get(first, 0), 2);
  expect_int(t, buffer_get(second, 0), 7);
}

/* ---- always-tasks: rule 8 ---------------------------------------------------------------------------------------- */

CASE(always_in_their_order) {
  static const gk_task tasks[] = {
    GK_RUN_ALWAYS(stamp, GK_ONE, T, U), STAMP(A), GK_CHECKPOINT(FIRST, F), STAMP(B), GK_END,
    GK_RUN_ALWAYS(stamp, GK_ONE, T, V), STAMP(C), GK_CHECKPOINT(SECOND, G), STAMP(D), GK_END,
    {.op = GK_OP_FILL, .bits = GK_ALWAYS, .name = "X = 5", .args = {X}, .pattern = 5},
    {.op = GK_OP_COPY, .bits = GK_ALWAYS, .name = "Y = X", .args = {Y, X}},
    GK_RUN_ALWAYS(stamp, GK_ONE, T, W)};
  subject *s = GRAPH(t, tasks);
  trace(s, 0, "U=1 A=2 B=3 V=4 C=5 D=6 W=7 T=7 X=5 Y=5");
  put(s, F, 1);
  put(s, X, 0);
  put(s, Y, 0);
  trace(s, 0, "U=8 A=9 B=10 V=11 C=5 D=6 W=12 T=12 X=5 Y=5, yielded FIRST");
  put(s, X, 0);
  put(s, Y, 0);
  trace(s, SECOND, "U=13 A=9 B=10 V=14 C=5 D=15 W=16 T=16 X=5 Y=5, ran SECOND");
  put(s, G, 1);
  trace(s, FIRST, "U=17 A=9 B=18 V=19 C=5 D=15 W=20 T=20, yielded FIRST");
}

/* ---- included lists ---------------------------------------------------------------------------------------------- */

enum { PART_TO = 1, PART_STOP, PART_N, PART_OWN };
static const gk_slot_desc part_slots[] = {GK_BUFFER(PART_TO, int), GK_BUFFER(PART_STOP, int), GK_OWN(PART_N, int, 1),
                                          GK_OWN(PART_OWN, int, 1)};
static const gk_task part_tasks[] = {GK_FILL(PART_N, GK_ONE, 2), GK_DO_WHILE(PART_N, .label = OUTER), HIT(PART_OWN),
                                     GK_CHECKPOINT(FIRST, PART_STOP), HIT(PART_TO), GK_END, DOWN(PART_N), GK_END};
static const gk_list part = GK_LIST(part, part_tasks, part_slots);

CASE(labels_of_included_lists) {
  static const gk_task tasks[] = {GK_INCLUDE_AS(left, part, 100, A, F), HIT(C), GK_INCLUDE_AS(right, part, 200, B, G),
                                  HIT(D)};
  subject *s = GRAPH(t, tasks);
  put(s, F, 1);
  put(s, G, 1);
  trace(s, 0, "A=1 B=0 C=0 left.PART_OWN=1 right.PART_OWN=0, yielded left.FIRST, ran left.FIRST");
  put(s, F, 0);
  trace(s, 100 + FIRST, "A=3 B=1 C=1 D=0 left.PART_OWN=2 right.PART_OWN=1, yielded right.FIRST, "
                        "passes left.OUTER=2 right.OUTER=0, ran left.FIRST right.FIRST");
  put(s, G, 0);
  const gk_status *status = launch(s, 200 + FIRST);
  expect_int(t, status->state, GK_FINISHED);
  expect_int(t, gk_passes(status, 100 + OUTER), 0);
  expect_int(t, gk_passes(status, 200 + OUTER), 2);
  expect_int(t, status->checkpoints[1].label, 200 + FIRST);
  holds(s, "A=3 B=3 C=1 D=1 left.PART_OWN=2 right.PART_OWN=2");
  refuses(t, GK_ERROR_INVALID, "label 1|left.FIRST (101)|right.FIRST (201)", gk_launch(graph(s), FIRST));
}

CASE(included_lists_in_blocks) {
  static const gk_task tasks[] = {GK_DO_WHILE(M), GK_IF(H), GK_INCLUDE(part, 10, A, F), GK_ELSE, HIT(E), GK_END,
                                  DOWN(M), GK_END};
  subject *s = GRAPH(t, tasks);
  put(s, M, 2);
  put(s, H, 1);
  put(s, F, 1);
  trace(s, 0, "A=1 E=0 part.PART_OWN=1 part.PART_N=2, yielded part.FIRST, passes M=0 part.OUTER=0");
  put(s, F, 0);
  put(s, H, 0);
  trace(s, 10 + FIRST, "A=3 E=1 part.PART_OWN=2 part.PART_N=0, passes M=2 part.OUTER=2");
}

/* Labels add up, names join, arguments are handed on; what is handed on by nobody is each inclusion's own. */
CASE(lists_in_lists) {
  enum { MID_TO = 1, MID_STOP, MID_OWN };
  static const gk_slot_desc mid_slots[] = {GK_BUFFER(MID_TO, int), GK_BUFFER(MID_STOP, int), GK_OWN(MID_OWN, int, 1)};
  static const gk_task mid_tasks[] = {GK_INCLUDE_AS(one, part, 20, MID_TO, MID_STOP), HIT(MID_OWN),
                                      GK_INCLUDE_AS(two, part, 40, MID_OWN, MID_STOP)};
  static const gk_list mid = GK_LIST(mid, mid_tasks, mid_slots);
  static const gk_task tasks[] = {GK_INCLUDE(mid, 100, A, F), HIT(B), GK_INCLUDE_AS(again, mid, 200, C, G)};
  subject *s = GRAPH(t, tasks);
  trace(s, 0, "A=2 B=1 C=2 mid.MID_OWN=3 mid.one.PART_OWN=2 again.MID_OWN=3 again.two.PART_OWN=2, "
              "passes mid.one.OUTER=2 mid.two.OUTER=2 again.one.OUTER=2 again.two.OUTER=2");
  put(s, G, 1);
  trace(s, 0, "A=4 B=2 C=3 mid.MID_OWN=6 again.MID_OWN=3, yielded again.one.FIRST");
  put(s, G, 0);
  const gk_status *status = launch(s, 200 + 20 + FIRST);
  expect_int(t, status->state, GK_FINISHED);
  expect_int(t, gk_passes(status, 200 + 20 + OUTER), 2);
  expect_int(t, gk_passes(status, 200 + 40 + OUTER), 2);
  holds(s, "A=4 B=2 C=5 mid.MID_OWN=6 again.MID_OWN=6");
}

/* ---- counts: rule 12 --------------------------------------------------------------------------------------------- */

CASE(counts_read_on_the_device) {
  enum { TO = 1, FROM, COUNT, SIZES };
  static const gk_slot_desc slots[] = {GK_OWN(TO, int, 8), GK_OWN(FROM, int, 8), GK_OWN(COUNT, int, 1),
                                       GK_OWN(SIZES, int, 4)};
  static const gk_task tasks[] = {
    GK_FILL(FROM, COUNT, 7), GK_COPY(TO, FROM, COUNT), GK_RUN(decrease, GK_ONE, COUNT), GK_RUN(count, COUNT, TO),
    {.op = GK_OP_KERNEL, .name = "count", .kernel = &count, .items = {SIZES}, .offset = 12, .args = {TO}}};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, COUNT, 3);
  put_at(s, SIZES, 3, 1);
  trace(s, 0, "TO=9 TO[1]=8 TO[2]=7 TO[3]=0 FROM[2]=7 FROM[3]=0 COUNT=2");
  put(s, COUNT, 8);
  put_at(s, SIZES, 3, 0);
  trace(s, 0, "TO=8 TO[6]=8 TO[7]=7 COUNT=7");
  put(s, COUNT, 0); /* then -1 */
  trace(s, 0, "TO=8 TO[6]=8 TO[7]=7 COUNT=-1");
  put(s, COUNT, INT_MIN + 1);
  put_at(s, SIZES, 3, INT_MIN);
  trace(s, 0, "TO=8 TO[6]=8 TO[7]=7");
}

/* The offset is the first extent's; the others are read where their slots begin. */
CASE(planes_counted_on_the_device) {
  enum { TO = 1, SIZES, ROWS, WIDTH, ALL };
  static const gk_slot_desc slots[] = {GK_OWN(TO, int, 64), GK_OWN(SIZES, int, 2), GK_OWN(ROWS, int, 2),
                                       GK_DEFAULT(WIDTH, int, 8), GK_DEFAULT(ALL, int, 64)};
  static const gk_task tasks[] = {
    GK_FILL(TO, ALL, -1),
    {.op = GK_OP_KERNEL, .name = "number", .kernel = &number, .items = {SIZES, ROWS}, .offset = 4,
     .args = {TO, WIDTH}}};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put_at(s, SIZES, 0, 7);
  put_at(s, SIZES, 1, 3);
  put_at(s, ROWS, 0, 2);
  put_at(s, ROWS, 1, 5);
  trace(s, 0, "TO=0 TO[2]=2 TO[3]=-1 TO[8]=100 TO[10]=102 TO[11]=-1 TO[16]=-1 TO[32]=-1");
  put_at(s, ROWS, 0, 0);
  trace(s, 0, "TO=-1 TO[8]=-1");
  put_at(s, ROWS, 0, 4);
  put_at(s, SIZES, 1, -1);
  trace(s, 0, "TO=-1 TO[8]=-1");
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

CASE(launches_on_the_default_stream) {
  static const gk_task tasks[] = {HIT(A), GK_DO_WHILE(F), HIT(B), GK_END, GK_CHECKPOINT(FIRST, G), HIT(C), GK_END};
  static const gk_task straight[] = {HIT(A), HIT(B)};
  subject *s = GRAPH(t, tasks), *queued = GRAPH(t, straight);
  if (support_of(t, "LAUNCH_ON") == GK_REFUSED) {
    refuses(t, GK_ERROR_UNSUPPORTED, "has no streams|gk_launch", gk_launch_on(graph(queued), 0, NULL));
    trace(queued, 0, "A=1 B=1"); /* that was no launch */
    return;
  }
  put(s, G, 1);
  begin_launch_on_default(s, 0);
  finish_launches(s);
  holds(s, "A=1 B=1 C=1");
  put(s, G, 0);
  begin_launch_on_default(s, FIRST);
  finish_launches(s);
  trace(s, 0, "A=2 B=2 C=3");
  for (int k = 0; k < 9; ++k) /* in their order, whichever way they come */
    if (k % 3) begin_launch_on_default(queued, 0);
    else begin_launch(queued, 0);
  finish_launches(queued);
  holds(queued, "A=9 B=9");
}

CASE(failed_bind_fails_the_next_launch_once) {
  enum { TO = 1, BY, WIDE };
  static const gk_slot_desc slots[] = {GK_OWN(TO, int, 1), GK_DEFAULT(BY, int, 3), GK_DEFAULT(WIDE, uint, 1)};
  static const gk_task tasks[] = {GK_RUN(add, WIDE, TO, BY)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  refuses(t, GK_ERROR_INVALID, "slot 2 (BY)|out of range", gk_bind_int(graph(s), BY, (int64_t)INT_MAX + 1));
  refuses(t, GK_ERROR_INVALID, "slot 3 (WIDE)", gk_bind_int(graph(s), WIDE, -1));
  refuses(t, GK_ERROR_INVALID, "a call before it failed|slot 2 (BY)", gk_launch(graph(s), 0)); /* the first of them */
  trace(s, 0, "TO=3"); /* once; what was bound before stands */
  refuses(t, GK_ERROR_INVALID, "out of range", gk_bind_int(graph(s), BY, INT64_MIN));
  bind_int(s, BY, 4); /* mended meanwhile */
  trace(s, 0, "TO=7");
  refuses(t, GK_ERROR_MEMORY, "slot 1 (TO)", gk_resize(graph(s), TO, SIZE_MAX));
  refuses(t, GK_ERROR_MEMORY, "a call before it failed|slot 1 (TO)", gk_launch(graph(s), 0));
  trace(s, 0, "TO=11");
}

CASE(overlapping_memory_is_refused) {
  enum { TO = 1, FROM, THIRD_SLOT };
  static const gk_slot_desc slots[] = {GK_BUFFER(TO, int), GK_BUFFER(FROM, int), GK_OWN(THIRD_SLOT, int, 4)};
  static const gk_task tasks[] = {GK_COPY(TO, FROM, GK_ONE)};
  static const gk_task sections[] = {GK_PARALLEL, GK_SECTION, HIT(TO), GK_END, GK_SECTION, HIT(FROM), GK_END, GK_END,
                                     HIT(THIRD_SLOT)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0), *parallel = graph_of(t, LIST_OF(sections, slots), 0);
  buffer *both = buffer_of(t, 2), *other = buffer_of(t, 1);
  subject *all[] = {s, parallel};
  for (size_t k = 0; k < 2; ++k) {
    must(t, gk_bind(graph(all[k]), TO, buffer_at(both)));
    must(t, gk_bind(graph(all[k]), FROM, buffer_at(both)));
    refuses(t, GK_ERROR_INVALID, "slots|TO|FROM|overlapping memory", gk_launch(graph(all[k]), 0));
    refuses(t, GK_ERROR_INVALID, "overlapping memory", gk_launch(graph(all[k]), 0)); /* it still is */
    bind_buffer(all[k], TO, both);
    bind_buffer(all[k], FROM, other);
    launch(all[k], 0);
  }
  expect_int(t, buffer_get(both, 0), 1);
  static const gk_task from_own[] = {GK_COPY(TO, THIRD_SLOT, GK_ONE)};
  subject *own = graph_of(t, LIST_OF(from_own, slots), 0);
  must(t, gk_bind(graph(own), TO, (char *)gk_bound(graph(own), THIRD_SLOT) + 12)); /* of owned memory all counts */
  refuses(t, GK_ERROR_INVALID, "TO|THIRD_SLOT|overlapping memory", gk_launch(graph(own), 0));
  must(t, gk_bind(graph(s), TO, buffer_at(both))); /* of anyone else's, the first element */
  must(t, gk_bind(graph(s), FROM, (char *)buffer_at(both) + 4));
  must(t, gk_launch(graph(s), 0));
  must(t, gk_wait(graph(s), NULL));
  expect_int(t, buffer_get(both, 0), 0);
}

CASE(two_slots_may_share_what_is_only_read) {
  enum { TO = 1, FROM, ALSO };
  static const gk_slot_desc slots[] = {GK_OWN(TO, int, 1), GK_BUFFER(FROM, int), GK_BUFFER(ALSO, int)};
  static const gk_task tasks[] = {GK_RUN(agree, GK_ONE, TO, FROM, ALSO)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  buffer *read = buffer_of(t, 1);
  bind_buffer(s, FROM, read);
  bind_buffer(s, ALSO, read);
  trace(s, 0, "TO=1");
}

CASE(resize_keeps_contents) {
  enum { TO = 1, N_TO };
  static const gk_slot_desc slots[] = {GK_OWN(TO, int, 2), GK_DEFAULT(N_TO, int, 2)};
  static const gk_task tasks[] = {GK_RUN(count, N_TO, TO)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  trace(s, 0, "TO=1 TO[1]=1");
  resize(s, TO, 5);
  bind_int(s, N_TO, 5);
  trace(s, 0, "TO=2 TO[1]=2 TO[2]=1 TO[4]=1");
  resize(s, TO, 3);
  resize(s, TO, 4);
  bind_int(s, N_TO, 4);
  trace(s, 0, "TO=3 TO[2]=2 TO[3]=1"); /* what was cut off is gone */
}

typedef struct state { float mass; int running, full; } state;

CASE(flags_in_a_struct) {
  enum { STATE = 1, IN, BEHIND };
  static const gk_slot_desc slots[] = {GK_RAW_BUFFER(STATE), GK_OWN(IN, int, 1), GK_OWN(BEHIND, int, 1)};
  static const gk_task tasks[] = {GK_IF(STATE, .offset = offsetof(state, running)), HIT(IN), GK_END,
                                  GK_CHECKPOINT_AT(FIRST, STATE, offsetof(state, full)), GK_END, HIT(BEHIND)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  buffer *of = buffer_of(t, sizeof(state) / sizeof(int));
  bind_buffer(s, STATE, of);
  buffer_put(of, 0, -1);
  trace(s, 0, "IN=0 BEHIND=1");
  buffer_put(of, 1, 1);
  trace(s, 0, "IN=1 BEHIND=2");
  buffer_put(of, 2, 1);
  trace(s, 0, "IN=2 BEHIND=2, yielded FIRST");
}

/* ---- how a graph was asked for makes no difference ----------------------------------------------------------- */

CASE(bits_change_no_meaning) {
  static const gk_task tasks[] = {
    HIT_ALWAYS(S), GK_DO_WHILE(M, .max_iterations = 3), STAMP(A), SET(N, 2), GK_DO_WHILE(N), STAMP(B),
    GK_CHECKPOINT(FIRST, F), STAMP(C), GK_END, GK_PARALLEL, GK_SECTION, HIT(X), HIT(X), GK_END, GK_SECTION, HIT(Y),
    GK_END, GK_END, DOWN(N), GK_END, GK_SWITCH(K), GK_CASE, HIT(D), GK_END, GK_CASE, HIT(E), GK_END, GK_END, GK_END,
    GK_COPY(Z, T, GK_ONE)};
  static const uint32_t bits[] = {0, GK_HOST_GATED, GK_ISOLATE, GK_CANCELLABLE,
                                  GK_HOST_GATED | GK_ISOLATE | GK_CANCELLABLE};
  for (size_t k = 0; k < GK_COUNT(bits); ++k) {
    subject *s = graph_of(t, LIST_OF(tasks, letters), bits[k]);
    put(s, M, 1);
    put(s, F, 1);
    trace(s, 0, "S=1 A=1 B=2 C=3 D=0 X=0 Y=0 Z=0, yielded FIRST, passes M=0 N=0, ran FIRST");
    put(s, F, 0);
    put(s, K, 1);
    trace(s, FIRST, "S=2 A=12 B=15 C=16 D=0 E=3 X=12 Y=6 Z=16 T=16, passes M=3 N=6, bound M, ran FIRST");
    refuses(t, bits[k] & GK_CANCELLABLE ? GK_OK : GK_ERROR_UNSUPPORTED, "", gk_cancel(graph(s)));
    end_graph(s);
  }
  gk_graph *none = NULL;
  refuses(t, GK_ERROR_INVALID, "bits 0x80", gk_graph_create(device_of(t), LIST_OF(tasks, letters), 0x80, &none));
}

/* ---- the guarantee, by hand; random.c has it at large ------------------------------------------------------------ */

/* Two checkpoints in nested loops whose blocks do nothing while their flag is set; each yields wherever a flag can be
 * set from outside. In the end everything is as if nobody had yielded, but for blocks that ran again. */
CASE(interrupted_is_as_uninterrupted) {
  enum { PATH = 1, P, Q, OUT, IN, LEFT, ONE_ID, TWO_ID, THREE_ID };
  static const gk_slot_desc slots[] = {
    GK_OWN(PATH, int, 1),      GK_OWN(P, int, 1),         GK_OWN(Q, int, 1),
    GK_OWN(OUT, int, 1),       GK_OWN(IN, int, 1),        GK_OWN(LEFT, int, 1),
    GK_DEFAULT(ONE_ID, int, 1), GK_DEFAULT(TWO_ID, int, 2), GK_DEFAULT(THREE_ID, int, 3)};
  static const gk_task tasks[] = {
    GK_DO_WHILE(OUT, .label = OUTER), GK_RUN(note, GK_ONE, PATH, ONE_ID), GK_FILL(IN, GK_ONE, 2),
    GK_DO_WHILE(IN, .label = INNER), GK_RUN(note, GK_ONE, PATH, TWO_ID), GK_IF(LEFT), GK_FILL(P, GK_ONE, 1), GK_END,
    GK_CHECKPOINT(FIRST, P), GK_IF(P), GK_ELSE, GK_RUN(note, GK_ONE, PATH, THREE_ID), GK_END, GK_END, DOWN(IN), GK_END,
    GK_IF(LEFT), GK_FILL(Q, GK_ONE, 1), GK_END, GK_CHECKPOINT(SECOND, Q), GK_END, GK_RUN(note, GK_ONE, PATH, ONE_ID),
    DOWN(OUT), GK_END, GK_RUN(note, GK_ONE, PATH, TWO_ID)};
  subject *calm = graph_of(t, LIST_OF(tasks, slots), 0), *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(calm, OUT, 3);
  put(s, OUT, 3);
  put(s, LEFT, 1); /* every checkpoint yields, every time */
  const gk_status *status = launch(calm, 0);
  uint64_t passes = gk_passes(status, 0);
  expect_int(t, passes, 9);
  status = launch(s, 0);
  int yields = 0;
  for (passes = gk_passes(status, 0); status->state == GK_YIELDED && yields < 100; ++yields) {
    int32_t label = status->yielded;
    put(s, P, 0);
    put(s, Q, 0);
    status = launch(s, label);
    passes += gk_passes(status, 0);
  }
  expect_int(t, yields, 9);
  expect_int(t, passes, 9);
  expect_int(t, get(s, PATH), get(calm, PATH));
}
