/* Where the backends of Quadrants 1.3.3 disagree with each other or with their own rules, as docs/from-quadrants.md
 * tells; here the answer is the contract's. */
#include "letters.h"

/* In Quadrants a launch finishes as if no checkpoint had yielded: its checkpoint is in a loop in a loop. */
TRACED(yield_in_nested_loop, TASKS(GK_DO_WHILE(M), HIT(A), SET(N, 2), GK_DO_WHILE(N), HIT(B), GK_CHECKPOINT(FIRST, F),
             HIT(C), GK_END, HIT(D), DOWN(N), GK_END, HIT(E), DOWN(M), GK_END),
       {0, "M=2 F=1 -> A=1 B=1 C=1 D=0 E=0 M=2 N=2, yielded FIRST, passes M=0 N=0, ran FIRST"},
       {FIRST, "F=0 -> A=2 B=4 C=5 D=4 E=2 M=0 N=0, passes M=2 N=4, ran FIRST"},
       {0, "M=2 -> A=4 B=8 C=9 D=8 E=4, passes M=2 N=4, ran FIRST"}) /* undisturbed: 2 4 4 4 2 more */

TRACED(yield_after_a_loop_at_top_level,
       TASKS(GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, HIT(B), GK_CHECKPOINT(FIRST, F), HIT(C), GK_END, HIT(D)),
       {0, "N=3 F=1 -> A=3 B=1 C=1 D=0 N=0, yielded FIRST, passes N=3, ran FIRST"},
       {FIRST, "F=0 -> A=3 B=1 C=2 D=1 N=0, passes N=0, ran FIRST"})

TRACED(yield_in_a_sibling_loop, TASKS(GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, GK_DO_WHILE(M), GK_CHECKPOINT(FIRST, F),
             HIT(B), GK_END, HIT(C), DOWN(M), GK_END, HIT(D)),
       {0, "N=2 M=3 F=1 -> A=2 B=1 C=0 D=0 M=3, yielded FIRST, passes N=2 M=0, ran FIRST"},
       {FIRST, "F=0 -> A=2 B=4 C=3 D=1 M=0, passes N=0 M=3, ran FIRST"})

/* In Quadrants the loop runs again if its flag is set, and what follows it in any case. */
TRACED(resume_past_a_finished_loop_whose_flag_was_rearmed,
       TASKS(GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, HIT(B), GK_CHECKPOINT(FIRST, F), HIT(C), GK_END, HIT(D)),
       {0, "N=3 F=1 -> A=3 B=1 C=1 D=0, yielded FIRST, passes N=3"},
       {FIRST, "F=0 N=2 -> A=3 B=1 C=2 D=1 N=2, passes N=0"})

/* In Quadrants the checkpoint between the loop and the target runs, and yields if its flag is set. */
TRACED(resume_to_after_a_loop, TASKS(GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, HIT(B), GK_CHECKPOINT(FIRST, F), HIT(C),
             GK_END, HIT(D), GK_CHECKPOINT(SECOND, G), HIT(E), GK_END, HIT(X)),
       {0, "F=1 G=1 N=2 -> A=2 B=1 C=1 D=0 E=0 X=0, yielded FIRST, ran FIRST"},
       {SECOND, "A=2 B=1 C=1 D=0 E=1 X=0, yielded SECOND, ran SECOND"},
       {SECOND, "G=0 N=1 -> A=2 B=1 C=1 D=0 E=2 X=1 N=1 F=1, ran SECOND"})

/* In Quadrants the second task is skipped once the first has set the flag, if its size is read from memory. */
CASE(size_read_on_the_device_in_a_two_task_checkpoint) {
  enum { TO = 1, BEHIND, FLAG, SIZE, NEXT_SIZE, ROOM };
  static const gk_slot_desc slots[] = {GK_OWN(TO, int, 4), GK_OWN(BEHIND, int, 4), INT(FLAG), INT(SIZE), INT(NEXT_SIZE),
                                       GK_DEFAULT(ROOM, int, 1)};
  GRAPH_OF(s, slots, GK_CHECKPOINT(FIRST, FLAG), GK_RUN(squares, SIZE, TO, FLAG, ROOM),
           GK_RUN(count, NEXT_SIZE, BEHIND), GK_END, GK_RUN(count, SIZE, BEHIND));
  trace(s, 0, "SIZE=2 NEXT_SIZE=3 -> FLAG=1 SIZE=2 NEXT_SIZE=3, yielded FIRST, ran FIRST");
  holds(s, "BEHIND=1 BEHIND[1]=1 BEHIND[2]=1 BEHIND[3]=0");
}

/* In Quadrants, if the loop is all there is in the block, it yields after the first pass. */
TRACED(loop_in_a_checkpoint,
       TASKS(GK_CHECKPOINT(FIRST, F), GK_DO_WHILE(N), HIT(A), SET(F, 1), HIT(B), DOWN(N), GK_END, GK_END, HIT(C)),
       {0, "N=3 -> A=3 B=3 C=0 N=0, yielded FIRST, passes N=3, ran FIRST"},
       {FIRST, "N=2 -> A=5 B=5 C=0 N=0, yielded FIRST, passes N=2, ran FIRST"})

/* In Quadrants, tasks outside of any loop over items aren't gated. */
TRACED(serial_statement_behind_a_yield,
       TASKS(SET(X, 1), GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, SET(X, 2), GK_COPY(Y, A, GK_ONE), HIT(B)),
       {0, "F=1 -> A=1 B=0 X=1 Y=0, yielded FIRST"},
       {FIRST, "F=0 X=7 -> A=2 B=1 X=2 Y=2"},
       {FIRST, "F=1 X=7 -> A=3 B=1 X=7 Y=2, yielded FIRST"}) /* nor before the target */

/* In Quadrants a kernel whose gates have no labels has no status at all. */
CASE(list_with_only_unlabelled_gates) {
  GRAPH(s, GK_IF(G), HIT(A), GK_END, GK_DO_WHILE(N), HIT(B), DOWN(N), GK_END, GK_WHILE(M), HIT(C), DOWN(M), GK_END);
  GRAPH(plain, HIT(A));
  trace(s, 0, "N=2 M=3 -> A=0 B=2 C=3, passes N=2 M=3");
  given(s, "N=4 G=1");
  const gk_status *status = launch(s, 0);
  expect_int(t, status->state, GK_FINISHED);
  expect_int(t, status->launch, 2);
  expect_int(t, status->checkpoint_count, 0);
  expect_int(t, status->loop_count, 2);
  expect_int(t, status->loops[0].label, 0);
  expect_int(t, gk_passes(status, 0), 4);
  holds(s, "A=1 B=6 C=3");
  status = launch(plain, 0);
  expect_int(t, status->state, GK_FINISHED);
  expect_int(t, status->loop_count, 0);
}

/* In Quadrants it is refused. */
TRACED(resume_as_first_call,
       TASKS(HIT(A), GK_DO_WHILE(N), HIT(B), GK_CHECKPOINT(FIRST, F), HIT(C), GK_END, HIT(D), DOWN(N), GK_END, HIT(E)),
       {FIRST, "N=2 -> A=0 B=1 C=2 D=2 E=1 N=0, passes N=2, ran FIRST"})

/* In Quadrants the second of two kernels had the state of the first. */
CASE(two_lists_alike_but_for_their_yields) {
  GRAPH(first, HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C));
  GRAPH(second, HIT(A), GK_CHECKPOINT(FIRST, G), HIT(B), GK_END, HIT(C));
  GRAPH(third, HIT(A), GK_CHECKPOINT(SECOND, F), HIT(B), GK_END, HIT(C));
  GRAPH(fourth, HIT(A), GK_TARGET(FIRST), HIT(B), GK_END, HIT(C));
  GRAPH(fifth, HIT(A), HIT(B), HIT(C));
  GRAPH(again, HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C));
  subject *all[] = {first, second, third, fourth, fifth, again};
  for (size_t k = 0; k < GK_COUNT(all); ++k) put(all[k], F, 1);
  trace(first, 0, "A=1 B=1 C=0, yielded FIRST");
  trace(second, 0, "A=1 B=1 C=1");
  trace(third, 0, "A=1 B=1 C=0, yielded SECOND");
  trace(fourth, 0, "A=1 B=1 C=1");
  trace(fifth, 0, "A=1 B=1 C=1");
  trace(second, FIRST, "A=1 B=2 C=2");
  trace(first, FIRST, "A=1 B=2 C=0, yielded FIRST");
  trace(third, SECOND, "A=1 B=2 C=0, yielded SECOND");
  refuses(t, GK_ERROR_INVALID, "label 1|SECOND (2)", gk_launch(graph(third), FIRST));
  refuses(t, GK_ERROR_INVALID, "label 1|none", gk_launch(graph(fifth), FIRST));
  trace(again, FIRST, "A=0 B=1 C=0, yielded FIRST");
}
