/* Other promises of docs/contract.md: branches and resumes into them, bounds across yields, statuses of one launch
 * alone, always-tasks, included lists, counts, binding. */
#include "letters.h"
#include <limits.h>
#include <stddef.h>
#include <string.h>

/* ---- branches: rules 5 and 6 ------------------------------------------------------------------------------------- */

CASE(switch_takes_the_case_of_its_number) {
  GRAPH(s, GK_SWITCH(K), GK_CASE, HIT(A), GK_END, GK_CASE, HIT(B), SET(K, 0), HIT(B), GK_END, GK_CASE, GK_END, GK_CASE,
        HIT(C), GK_END, GK_END, HIT(D));
  static const char *const tries[] = {
    "K=0 -> A=1 B=0 C=0 D=1", "K=1 -> A=1 B=2 C=0 D=2 K=0", /* read once, at entry */
    "K=2 -> A=1 B=2 C=0 D=3", "K=3 -> A=1 B=2 C=1 D=4", "K=4 -> A=1 B=2 C=1 D=5",
    "K=2147483647 -> A=1 B=2 C=1 D=6", "K=-1 -> A=1 B=2 C=1 D=7", "K=-2147483648 -> A=1 B=2 C=1 D=8"};
  for (size_t k = 0; k < GK_COUNT(tries); ++k) trace(s, 0, tries[k]);
}

TRACED(switch_without_cases, TASKS(HIT(A), GK_SWITCH(K), GK_END, GK_SWITCH(K), GK_CASE, GK_END, GK_END, HIT(B)),
       {0, "A=1 B=1"})

TRACED(resume_into_a_case, TASKS(GK_DO_WHILE(N), HIT(A), GK_SWITCH(K), GK_CASE, HIT(B), GK_END, GK_CASE, HIT(C),
             GK_CHECKPOINT(FIRST, F), HIT(D), GK_END, HIT(E), GK_END, GK_CASE, GK_WHILE(M), HIT(U),
             GK_CHECKPOINT(SECOND, G), HIT(V), GK_END, DOWN(M), GK_END, GK_END, GK_END, DOWN(N), GK_END),
       {0, "N=2 K=1 F=1 -> A=1 B=0 C=1 D=1 E=0, yielded FIRST, ran FIRST"},
       /* the resumed pass goes on in case 1, the next takes case 0 */
       {FIRST, "F=0 K=0 -> A=2 B=1 C=1 D=2 E=1 N=0, passes N=2 M=0, ran FIRST"},
       /* nor is the flag of the WHILE around the target looked at */
       {SECOND, "N=1 K=77 M=0 G=1 -> A=2 U=0 V=1 M=0 N=1, yielded SECOND, passes N=0 M=0, ran SECOND"},
       {SECOND, "M=3 G=0 -> A=2 U=2 V=4 M=0 N=0, passes N=1 M=3, ran SECOND"})

TRACED(resume_into_either_branch, TASKS(GK_IF(G), HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C), GK_ELSE,
             HIT(D), GK_CHECKPOINT(SECOND, F), HIT(E), GK_END, HIT(U), GK_END, HIT(V)),
       {FIRST, "A=0 B=1 C=1 D=0 E=0 U=0 V=1, ran FIRST"}, /* G says the other one */
       {SECOND, "G=1 -> A=0 B=1 C=1 D=0 E=1 U=1 V=2, ran SECOND"},
       {SECOND, "F=1 -> A=0 B=1 C=1 D=0 E=2 U=1 V=2, yielded SECOND, ran SECOND"},
       {0, "A=1 B=2 C=1 D=0 E=2 U=1 V=2, yielded FIRST, ran FIRST"})

TRACED(branch_flag_is_read_once, TASKS(GK_IF(G), SET(G, 0), HIT(A), GK_ELSE, SET(G, 1), HIT(B), GK_END, HIT(C)),
       {0, "A=0 B=1 C=1 G=1"},
       {0, "A=1 B=1 C=2 G=0"},
       {0, "G=-1 -> A=2 B=1 C=3 G=0"})

TRACED(loop_flag_is_read_at_its_end, TASKS(GK_WHILE(N), SET(N, 0), HIT(A), SET(N, 1), GK_IF(F), SET(N, 0), GK_END,
             SET(F, 1), GK_END, SET(N, 1), HIT(B)),
       {0, "N=1 -> A=2 B=1 N=1, passes N=2"}) /* what it is in between, or afterwards, doesn't matter */

TRACED(while_around_the_target_is_entered, TASKS(GK_WHILE(M), HIT(A), GK_WHILE(N), HIT(B), GK_CHECKPOINT(FIRST, F),
             HIT(C), GK_END, DOWN(N), GK_END, HIT(D), DOWN(M), GK_END, HIT(E)),
       {FIRST, "M=1 N=1 -> A=0 B=0 C=1 D=1 E=1 M=0 N=0, passes M=1 N=1, ran FIRST"},
       /* both flags are false by now */
       {FIRST, "F=1 -> A=0 B=0 C=2 D=1 E=1 M=0 N=0, yielded FIRST, passes M=0 N=0, ran FIRST"},
       {FIRST, "M=2 N=1 -> A=0 B=0 C=3 D=1 E=1 M=2 N=1, yielded FIRST, passes M=0 N=0, ran FIRST"},
       /* none in the inner one's second entry */
       {FIRST, "F=0 -> A=1 B=0 C=4 D=3 E=2 M=0 N=0, passes M=2 N=1, ran FIRST"})

/* ---- bounds: rule 10 --------------------------------------------------------------------------------------------- */

TRACED(bound_counts_across_yields, TASKS(GK_DO_WHILE(N, .max_iterations = 5, .label = OUTER), HIT(A),
             GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C), GK_END, HIT(D)),
       {0, "N=1 F=1 -> A=1 B=1 C=0, yielded FIRST, passes OUTER=0"},
       {FIRST, "A=1 B=2 C=0, yielded FIRST, passes OUTER=0"},
       {FIRST, "F=0 -> A=5 B=7 C=5 D=1, passes OUTER=5, bound OUTER"}, /* the interrupted pass counts once */
       /* the loop had ended: the count is at zero again */
       {FIRST, "F=1 -> B=8 C=5 D=1, yielded FIRST, passes OUTER=0"},
       {FIRST, "F=0 -> A=9 B=13 C=10 D=2, passes OUTER=5, bound OUTER"})

TRACED(bound_of_a_pass_in_the_middle, TASKS(GK_DO_WHILE(N, .max_iterations = 4), HIT(A), RAISE_AT(F, A, X),
             GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C), GK_END),
       {0, "N=1 X=3 -> A=3 B=3 C=2, yielded FIRST, passes N=2"},
       {FIRST, "F=0 -> A=4 B=5 C=4, passes N=2, bound N"}, /* two and two */
       {0, "X=6 -> A=6 B=7 C=5, yielded FIRST, passes N=1"},
       {0, "F=0 -> A=10 B=11 C=9, passes N=4, bound N"}) /* a fresh launch starts at zero */

TRACED(bound_waits_through_other_launches,
       TASKS(GK_TARGET(SECOND), HIT(U), GK_END, GK_DO_WHILE(N, .max_iterations = 4), HIT(A), RAISE_AT(F, A, X),
             GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, GK_END, GK_TARGET(THIRD), HIT(V), GK_END),
       {0, "N=1 X=3 -> U=1 A=3 B=3 V=0, yielded FIRST, passes N=2"},
       {THIRD, "U=1 A=3 B=3 V=1, passes N=0, ran THIRD"}, /* past the loop */
       {FIRST, "F=0 -> U=1 A=4 B=5 V=2, passes N=2, bound N"}, /* two were made, so two are left */
       {0, "X=6 -> U=2 A=6 B=7 V=2, yielded FIRST, passes N=1"},
       {SECOND, "F=0 -> U=3 A=10 B=11 V=3, passes N=4, bound N"}) /* entered from its beginning: four */

TRACED(bound_returns_to_zero_with_a_fresh_launch, TASKS(GK_IF(G), GK_DO_WHILE(N, .max_iterations = 4), HIT(A),
             RAISE_AT(F, A, X), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, GK_END, GK_END),
       {0, "N=1 G=1 X=3 -> A=3 B=3, yielded FIRST, passes N=2"},
       {0, "F=0 G=0 -> A=3 B=3, passes N=0"}, /* even one that doesn't come to the loop */
       {FIRST, "A=6 B=7, passes N=4, bound N"})

TRACED(bound_is_of_one_entry, TASKS(GK_DO_WHILE(M), GK_DO_WHILE(N, .max_iterations = 3), HIT(A), RAISE_AT(F, A, X),
             GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, GK_END, DOWN(M), GK_END, HIT(C)),
       /* hit in the first entry, in this launch */
       {0, "M=3 N=1 X=5 -> A=5 B=5 C=0 M=2, yielded FIRST, passes M=1 N=4, bound N"},
       {FIRST, "F=0 -> A=9 B=10 C=1 M=0, passes M=2 N=5, bound N"}) /* two more in the second, three in the third */

CASE(bound_of_the_first_loop_that_hit_it) {
  GRAPH(s, GK_DO_WHILE(L, .max_iterations = 2), GK_WHILE(M, .max_iterations = 3), HIT(A), GK_END, GK_END,
        GK_DO_WHILE(N, .max_iterations = 1), HIT(B), GK_END);
  GRAPH(parallel, PARALLEL(SECTION(GK_DO_WHILE(L, .max_iterations = 9), HIT(A), GK_END),
                           SECTION(GK_DO_WHILE(M, .max_iterations = 2), HIT(B), GK_END)));
  trace(s, 0, "L=1 M=1 N=1 -> A=6 B=1, passes L=2 M=6 N=1, bound M");
  const gk_status *status = launch(s, 0);
  for (uint32_t k = 0; k < 3; ++k) expect(t, status->loops[k].hit_bound, "loop %u didn't hit its bound", (unsigned)k);
  trace(s, 0, "M=0 -> A=12 B=3, passes L=2 M=0 N=1, bound L");
  trace(s, 0, "L=0 -> A=12 B=4, passes L=1 M=0 N=1, bound N");
  trace(s, 0, "N=0 -> A=12 B=5, passes L=1 M=0 N=1"); /* with its flag false at the bound, it isn't hit */
  trace(parallel, 0, "L=1 M=1 -> A=9 B=2, passes L=9 M=2, bound L"); /* the first in the list, not in time */
  trace(parallel, 0, "L=0 -> A=10 B=4, passes L=1 M=2, bound M");
}

/* ---- statuses ---------------------------------------------------------------------------------------------------- */

CASE(nothing_stale_in_a_status) {
  GRAPH(s, GK_DO_WHILE(N, .max_iterations = 2, .label = OUTER), HIT(A), GK_END, GK_CHECKPOINT(FIRST, F), HIT(B), GK_END,
        GK_TARGET(SECOND), HIT(C), GK_END, GK_WHILE(M, .label = INNER), DOWN(M), GK_END);
  trace(s, 0, "N=1 F=1 M=4 -> A=2 B=1 C=0 M=4, yielded FIRST, passes OUTER=2 INNER=0, bound OUTER, ran FIRST");
  trace(s, SECOND, "A=2 B=1 C=1 M=0, passes OUTER=0 INNER=4, ran SECOND");
  trace(s, 0, "N=0 F=0 -> A=3 B=2 C=2, passes OUTER=1 INNER=0, ran FIRST SECOND");
  const gk_status *status = launch(s, SECOND), *polled = NULL;
  expect_int(t, status->launch, 4);
  expect(t, !status->loops[0].hit_bound, "a bound that was hit three launches ago");
  must(t, gk_poll(graph(s), &polled)); /* asking again answers the same */
  expect_int(t, polled->launch, 4);
  expect_int(t, polled->state, GK_FINISHED);
  expect_int(t, gk_passes(polled, OUTER), 0);
}

CASE(rebinding_is_told_by_the_status) {
  GRAPH(s, GK_RUN(add, GK_ONE, P, I));
  buffer *first = buffer_of(t, 1), *second = buffer_of(t, 1);
  bind_buffer(s, P, first);
  trace(s, 0, "I=1 -> P=1");
  expect_int(t, launch(s, 0)->applied, GK_UNCHANGED);
  bind_buffer(s, P, second);
  expect(t, launch(s, 0)->applied != GK_UNCHANGED, "a slot was bound anew, and the status knows nothing of it");
  expect_int(t, launch(s, 0)->applied, GK_UNCHANGED);
  given(s, "I=5");
  expect(t, launch(s, 0)->applied != GK_UNCHANGED, "a number was bound anew, and the status knows nothing of it");
  expect_int(t, buffer_get(first, 0), 2);
  expect_int(t, buffer_get(second, 0), 7);
}

/* ---- always-tasks: rule 8 ---------------------------------------------------------------------------------------- */

TRACED(always_in_their_order, TASKS(GK_RUN_ALWAYS(stamp, GK_ONE, T, U), STAMP(A), GK_CHECKPOINT(FIRST, F), STAMP(B),
             GK_END, GK_RUN_ALWAYS(stamp, GK_ONE, T, V), STAMP(C), GK_CHECKPOINT(SECOND, G), STAMP(D), GK_END,
             {.op = GK_OP_FILL, .bits = GK_ALWAYS, .name = "X = 5", .args = {X}, .pattern = 5},
             {.op = GK_OP_COPY, .bits = GK_ALWAYS, .name = "Y = X", .args = {Y, X}},
             GK_RUN_ALWAYS(stamp, GK_ONE, T, W)),
       {0, "U=1 A=2 B=3 V=4 C=5 D=6 W=7 T=7 X=5 Y=5"},
       {0, "F=1 X=0 Y=0 -> U=8 A=9 B=10 V=11 C=5 D=6 W=12 T=12 X=5 Y=5, yielded FIRST"},
       {SECOND, "X=0 Y=0 -> U=13 A=9 B=10 V=14 C=5 D=15 W=16 T=16 X=5 Y=5, ran SECOND"},
       {FIRST, "G=1 -> U=17 A=9 B=18 V=19 C=5 D=15 W=20 T=20, yielded FIRST"})

/* ---- included lists ---------------------------------------------------------------------------------------------- */

enum { PART_TO = 1, PART_STOP, PART_N, PART_OWN };
static const gk_slot_desc part_slots[] = {GK_BUFFER(PART_TO, int), GK_BUFFER(PART_STOP, int), INT(PART_N),
                                          INT(PART_OWN)};
static const gk_task part_tasks[] = {GK_FILL(PART_N, GK_ONE, 2), GK_DO_WHILE(PART_N, .label = OUTER), HIT(PART_OWN),
                                     GK_CHECKPOINT(FIRST, PART_STOP), HIT(PART_TO), GK_END, DOWN(PART_N), GK_END};
static const gk_list part = GK_LIST(part, part_tasks, part_slots);

CASE(labels_of_included_lists) {
  GRAPH(s, GK_INCLUDE_AS(left, part, 100, A, F), HIT(C), GK_INCLUDE_AS(right, part, 200, B, G), HIT(D));
  trace(s, 0, "F=1 G=1 -> A=1 B=0 C=0 left.PART_OWN=1 right.PART_OWN=0, yielded left.FIRST, ran left.FIRST");
  trace(s, 100 + FIRST, "F=0 -> A=3 B=1 C=1 D=0 left.PART_OWN=2 right.PART_OWN=1, yielded right.FIRST, passes "
                        "left.OUTER=2 right.OUTER=0, ran left.FIRST right.FIRST");
  put(s, G, 0);
  const gk_status *status = launch(s, 200 + FIRST);
  expect_int(t, status->state, GK_FINISHED);
  expect_int(t, gk_passes(status, 100 + OUTER), 0);
  expect_int(t, gk_passes(status, 200 + OUTER), 2);
  expect_int(t, status->checkpoints[1].label, 200 + FIRST);
  holds(s, "A=3 B=3 C=1 D=1 left.PART_OWN=2 right.PART_OWN=2");
  launch_refused(s, FIRST, "label 1|left.FIRST (101)|right.FIRST (201)");
}

TRACED(included_lists_in_blocks,
       TASKS(GK_DO_WHILE(M), GK_IF(H), GK_INCLUDE(part, 10, A, F), GK_ELSE, HIT(E), GK_END, DOWN(M), GK_END),
       {0, "M=2 H=1 F=1 -> A=1 E=0 part.PART_OWN=1 part.PART_N=2, yielded part.FIRST, passes M=0 part.OUTER=0"},
       {10 + FIRST, "F=0 H=0 -> A=3 E=1 part.PART_OWN=2 part.PART_N=0, passes M=2 part.OUTER=2"})

/* Labels add up, names join, arguments are handed on; each inclusion has its own of all other slots. */
CASE(lists_in_lists) {
  enum { MID_TO = 1, MID_STOP, MID_OWN };
  static const gk_slot_desc mid_slots[] = {GK_BUFFER(MID_TO, int), GK_BUFFER(MID_STOP, int), INT(MID_OWN)};
  static const gk_task mid_tasks[] = {GK_INCLUDE_AS(one, part, 20, MID_TO, MID_STOP), HIT(MID_OWN),
                                      GK_INCLUDE_AS(two, part, 40, MID_OWN, MID_STOP)};
  static const gk_list mid = GK_LIST(mid, mid_tasks, mid_slots);
  GRAPH(s, GK_INCLUDE(mid, 100, A, F), HIT(B), GK_INCLUDE_AS(again, mid, 200, C, G));
  trace(s, 0, "A=2 B=1 C=2 mid.MID_OWN=3 mid.one.PART_OWN=2 again.MID_OWN=3 again.two.PART_OWN=2, passes "
              "mid.one.OUTER=2 mid.two.OUTER=2 again.one.OUTER=2 again.two.OUTER=2");
  trace(s, 0, "G=1 -> A=4 B=2 C=3 mid.MID_OWN=6 again.MID_OWN=3, yielded again.one.FIRST");
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
  static const gk_slot_desc slots[] = {GK_OWN(TO, int, 8), GK_OWN(FROM, int, 8), INT(COUNT),
                                       GK_OWN(SIZES, int, 4)};
  GRAPH_OF(s, slots, GK_FILL(FROM, COUNT, 7), GK_COPY(TO, FROM, COUNT), DOWN(COUNT),
           GK_RUN(count, COUNT, TO),
           {.op = GK_OP_KERNEL, .name = "count", .kernel = &count, .items = {SIZES}, .offset = 12, .args = {TO}});
  trace(s, 0, "COUNT=3 SIZES[3]=1 -> TO=9 TO[1]=8 TO[2]=7 TO[3]=0 FROM[2]=7 FROM[3]=0 COUNT=2");
  trace(s, 0, "COUNT=8 SIZES[3]=0 -> TO=8 TO[6]=8 TO[7]=7 COUNT=7");
  trace(s, 0, "COUNT=0 -> TO=8 TO[6]=8 TO[7]=7 COUNT=-1"); /* then -1 */
  trace(s, 0, "COUNT=-2147483647 SIZES[3]=-2147483648 -> TO=8 TO[6]=8 TO[7]=7");
}

/* The offset is the first extent's; the others are read where their slots begin. */
CASE(planes_counted_on_the_device) {
  enum { TO = 1, SIZES, ROWS, WIDTH, ALL };
  static const gk_slot_desc slots[] = {GK_OWN(TO, int, 64), GK_OWN(SIZES, int, 2), GK_OWN(ROWS, int, 2),
                                       GK_DEFAULT(WIDTH, int, 8), GK_DEFAULT(ALL, int, 64)};
  GRAPH_OF(s, slots,
    GK_FILL(TO, ALL, -1),
    {.op = GK_OP_KERNEL, .name = "number", .kernel = &number, .items = {SIZES, ROWS}, .offset = 4,
     .args = {TO, WIDTH}});
  trace(s, 0, "SIZES=7 SIZES[1]=3 ROWS=2 ROWS[1]=5 -> TO=0 TO[2]=2 TO[3]=-1 TO[8]=100 TO[10]=102 TO[11]=-1 TO[16]=-1 "
              "TO[32]=-1");
  trace(s, 0, "ROWS=0 -> TO=-1 TO[8]=-1");
  trace(s, 0, "ROWS=4 SIZES[1]=-1 -> TO=-1 TO[8]=-1");
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

CASE(launches_on_the_default_stream) {
  GRAPH(s, HIT(A), GK_DO_WHILE(F), HIT(B), GK_END, GK_CHECKPOINT(FIRST, G), HIT(C), GK_END);
  GRAPH(queued, HIT(A), HIT(B));
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
  static const gk_slot_desc slots[] = {INT(TO), GK_DEFAULT(BY, int, 3), GK_DEFAULT(WIDE, uint, 1)};
  GRAPH_OF(s, slots, GK_RUN(add, WIDE, TO, BY));
  refuses(t, GK_ERROR_INVALID, "slot 2 (BY)|out of range", gk_bind_int(graph(s), BY, (int64_t)INT_MAX + 1));
  refuses(t, GK_ERROR_INVALID, "slot 3 (WIDE)", gk_bind_int(graph(s), WIDE, -1));
  launch_refused(s, 0, "a call before it failed|slot 2 (BY)"); /* the first of them */
  trace(s, 0, "TO=3"); /* once; what was bound before stands */
  refuses(t, GK_ERROR_INVALID, "out of range", gk_bind_int(graph(s), BY, INT64_MIN));
  trace(s, 0, "BY=4 -> TO=7"); /* mended meanwhile */
  refuses(t, GK_ERROR_MEMORY, "slot 1 (TO)", gk_resize(graph(s), TO, SIZE_MAX));
  refuses(t, GK_ERROR_MEMORY, "a call before it failed|slot 1 (TO)", gk_launch(graph(s), 0));
  trace(s, 0, "TO=11");
}

CASE(overlapping_memory_is_refused) {
  enum { TO = 1, FROM, THIRD_SLOT };
  static const gk_slot_desc slots[] = {GK_BUFFER(TO, int), GK_BUFFER(FROM, int), GK_OWN(THIRD_SLOT, int, 4)};
  GRAPH_OF(s, slots, GK_COPY(TO, FROM, GK_ONE));
  GRAPH_OF(parallel, slots, PARALLEL(SECTION(HIT(TO)), SECTION(HIT(FROM))), HIT(THIRD_SLOT));
  buffer *both = buffer_of(t, 2), *other = buffer_of(t, 1);
  subject *all[] = {s, parallel};
  for (size_t k = 0; k < 2; ++k) {
    must(t, gk_bind(graph(all[k]), TO, buffer_at(both)));
    must(t, gk_bind(graph(all[k]), FROM, buffer_at(both)));
    launch_refused(all[k], 0, "slots|TO|FROM|overlapping memory");
    launch_refused(all[k], 0, "overlapping memory"); /* it still is */
    bind_buffer(all[k], TO, both);
    bind_buffer(all[k], FROM, other);
    launch(all[k], 0);
  }
  expect_int(t, buffer_get(both, 0), 1);
  GRAPH_OF(own, slots, GK_COPY(TO, THIRD_SLOT, GK_ONE));
  must(t, gk_bind(graph(own), TO, (char *)gk_bound(graph(own), THIRD_SLOT) + 12)); /* of owned memory all bytes count */
  launch_refused(own, 0, "TO|THIRD_SLOT|overlapping memory");
  must(t, gk_bind(graph(s), TO, buffer_at(both))); /* of other memory, the first element */
  must(t, gk_bind(graph(s), FROM, (char *)buffer_at(both) + 4));
  must(t, gk_launch(graph(s), 0));
  must(t, gk_wait(graph(s), NULL));
  expect_int(t, buffer_get(both, 0), 0);
}

CASE(two_slots_may_share_what_is_only_read) {
  GRAPH(s, GK_RUN(agree, GK_ONE, A, P, Q));
  buffer *read = buffer_of(t, 1);
  bind_buffer(s, P, read);
  bind_buffer(s, Q, read);
  trace(s, 0, "A=1");
}

CASE(resize_keeps_contents) {
  enum { TO = 1, N_TO };
  static const gk_slot_desc slots[] = {GK_OWN(TO, int, 2), GK_DEFAULT(N_TO, int, 2)};
  GRAPH_OF(s, slots, GK_RUN(count, N_TO, TO));
  trace(s, 0, "TO=1 TO[1]=1");
  resize(s, TO, 5);
  trace(s, 0, "N_TO=5 -> TO=2 TO[1]=2 TO[2]=1 TO[4]=1");
  resize(s, TO, 3);
  resize(s, TO, 4);
  trace(s, 0, "N_TO=4 -> TO=3 TO[2]=2 TO[3]=1"); /* what was cut off is gone */
}

typedef struct state { float mass; int running, full; } state;

CASE(flags_in_a_struct) {
  enum { STATE = 1, IN, BEHIND };
  static const gk_slot_desc slots[] = {GK_RAW_BUFFER(STATE), INT(IN), INT(BEHIND)};
  GRAPH_OF(s, slots, GK_IF(STATE, .offset = offsetof(state, running)), HIT(IN), GK_END,
           GK_CHECKPOINT_AT(FIRST, STATE, offsetof(state, full)), GK_END, HIT(BEHIND));
  bind_buffer(s, STATE, buffer_of(t, sizeof(state) / sizeof(int)));
  trace(s, 0, "STATE=-1 -> IN=0 BEHIND=1");
  trace(s, 0, "STATE[1]=1 -> IN=1 BEHIND=2");
  trace(s, 0, "STATE[2]=1 -> IN=2 BEHIND=2, yielded FIRST");
}

/* ---- how a graph was asked for makes no difference ----------------------------------------------------------- */

CASE(bits_change_no_meaning) {
  static const gk_task tasks[] = {
    HIT_ALWAYS(S), GK_DO_WHILE(M, .max_iterations = 3), STAMP(A), SET(N, 2), GK_DO_WHILE(N), STAMP(B),
    GK_CHECKPOINT(FIRST, F), STAMP(C), GK_END, PARALLEL(SECTION(HIT(X), HIT(X)), SECTION(HIT(Y))), DOWN(N), GK_END,
    GK_SWITCH(K), GK_CASE, HIT(D), GK_END, GK_CASE, HIT(E), GK_END, GK_END, GK_END, GK_COPY(Z, T, GK_ONE)};
  static const uint32_t bits[] = {0, GK_HOST_GATED, GK_ISOLATE, GK_CANCELLABLE, GK_NONBLOCKING,
                                  GK_HOST_GATED | GK_ISOLATE | GK_CANCELLABLE | GK_NONBLOCKING};
  for (size_t k = 0; k < GK_COUNT(bits); ++k) {
    subject *s = graph_of(t, LIST_OF(tasks, letters), bits[k]);
    trace(s, 0, "M=1 F=1 -> S=1 A=1 B=2 C=3 D=0 X=0 Y=0 Z=0, yielded FIRST, passes M=0 N=0, ran FIRST");
    trace(s, FIRST, "F=0 K=1 -> S=2 A=12 B=15 C=16 D=0 E=3 X=12 Y=6 Z=16 T=16, passes M=3 N=6, bound M, ran FIRST");
    refuses(t, bits[k] & GK_CANCELLABLE ? GK_OK : GK_ERROR_UNSUPPORTED, "", gk_cancel(graph(s)));
    end_graph(s);
  }
  gk_graph *none = NULL;
  refuses(t, GK_ERROR_INVALID, "bits 0x80", gk_graph_create(device_of(t), LIST_OF(tasks, letters), 0x80, &none));
}

/* ---- the guarantee, by hand; random/ has it at large ------------------------------------------------------------- */

/* Two checkpoints in nested loops whose blocks do nothing while their flag is set; each yields wherever a flag can be
 * set from outside. In the end everything is as without a yield, but for blocks that ran again. */
CASE(interrupted_is_as_uninterrupted) {
#define INTERRUPTED \
  GK_DO_WHILE(M, .label = OUTER), NOTE(X, ONE), SET(N, 2), GK_DO_WHILE(N, .label = INNER), NOTE(X, TWO), \
  GK_IF(U), SET(F, 1), GK_END, GK_CHECKPOINT(FIRST, F), GK_IF(F), GK_ELSE, NOTE(X, THREE), GK_END, GK_END, DOWN(N), \
  GK_END, GK_IF(U), SET(G, 1), GK_END, GK_CHECKPOINT(SECOND, G), GK_END, NOTE(X, ONE), DOWN(M), GK_END, NOTE(X, TWO)
  GRAPH(calm, INTERRUPTED);
  GRAPH(s, INTERRUPTED);
  trace(calm, 0, "M=3 -> passes OUTER=3 INNER=6, ran FIRST SECOND");
  put(s, M, 3);
  put(s, U, 1); /* every checkpoint yields, every time */
  const gk_status *status = launch(s, 0);
  int yields = 0;
  uint64_t passes = gk_passes(status, 0);
  for (; status->state == GK_YIELDED && yields < 100; ++yields, passes += gk_passes(status, 0)) {
    const int32_t label = status->yielded;
    given(s, "F=0 G=0");
    status = launch(s, label);
  }
  expect_int(t, yields, 9);
  expect_int(t, passes, 9);
  expect_int(t, get(s, X), get(calm, X));
}
