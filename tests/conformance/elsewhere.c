/* Where the backends of Quadrants 1.3.3 disagree with each other or with their own rules, as docs/from-quadrants.md
 * tells; here the answer is the contract's. */
#include "letters.h"

/* There a launch finishes as if nobody had yielded: its checkpoint is in a loop in a loop. */
CASE(yield_in_nested_loop) {
  static const gk_task tasks[] = {
    GK_DO_WHILE(M), HIT(A), SET(N, 2), GK_DO_WHILE(N), HIT(B), GK_CHECKPOINT(FIRST, F), HIT(C), GK_END, HIT(D), DOWN(N),
    GK_END, HIT(E), DOWN(M), GK_END};
  subject *s = GRAPH(t, tasks);
  put(s, M, 2);
  put(s, F, 1);
  trace(s, 0, "A=1 B=1 C=1 D=0 E=0 M=2 N=2, yielded FIRST, passes M=0 N=0, ran FIRST");
  put(s, F, 0);
  trace(s, FIRST, "A=2 B=4 C=5 D=4 E=2 M=0 N=0, passes M=2 N=4, ran FIRST");
  put(s, M, 2);
  trace(s, 0, "A=4 B=8 C=9 D=8 E=4, passes M=2 N=4, ran FIRST"); /* undisturbed: 2 4 4 4 2 more */
}

CASE(yield_after_a_loop_at_top_level) {
  static const gk_task tasks[] = {GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, HIT(B), GK_CHECKPOINT(FIRST, F), HIT(C),
                                  GK_END, HIT(D)};
  subject *s = GRAPH(t, tasks);
  put(s, N, 3);
  put(s, F, 1);
  trace(s, 0, "A=3 B=1 C=1 D=0 N=0, yielded FIRST, passes N=3, ran FIRST");
  put(s, F, 0);
  trace(s, FIRST, "A=3 B=1 C=2 D=1 N=0, passes N=0, ran FIRST");
}

CASE(yield_in_a_sibling_loop) {
  static const gk_task tasks[] = {GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, GK_DO_WHILE(M), GK_CHECKPOINT(FIRST, F),
                                  HIT(B), GK_END, HIT(C), DOWN(M), GK_END, HIT(D)};
  subject *s = GRAPH(t, tasks);
  put(s, N, 2);
  put(s, M, 3);
  put(s, F, 1);
  trace(s, 0, "A=2 B=1 C=0 D=0 M=3, yielded FIRST, passes N=2 M=0, ran FIRST");
  put(s, F, 0);
  trace(s, FIRST, "A=2 B=4 C=3 D=1 M=0, passes N=0 M=3, ran FIRST");
}

/* There the loop runs again if its flag is set, and what follows it in any case. */
CASE(resume_past_a_finished_loop_whose_flag_was_rearmed) {
  static const gk_task tasks[] = {GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, HIT(B), GK_CHECKPOINT(FIRST, F), HIT(C),
                                  GK_END, HIT(D)};
  subject *s = GRAPH(t, tasks);
  put(s, N, 3);
  put(s, F, 1);
  trace(s, 0, "A=3 B=1 C=1 D=0, yielded FIRST, passes N=3");
  put(s, F, 0);
  put(s, N, 2);
  trace(s, FIRST, "A=3 B=1 C=2 D=1 N=2, passes N=0");
}

/* There the checkpoint between the loop and the target runs, and yields if its flag is set. */
CASE(resume_to_after_a_loop) {
  static const gk_task tasks[] = {GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, HIT(B), GK_CHECKPOINT(FIRST, F), HIT(C),
                                  GK_END, HIT(D), GK_CHECKPOINT(SECOND, G), HIT(E), GK_END, HIT(X)};
  subject *s = GRAPH(t, tasks);
  put(s, F, 1);
  put(s, G, 1);
  put(s, N, 2);
  trace(s, 0, "A=2 B=1 C=1 D=0 E=0 X=0, yielded FIRST, ran FIRST");
  trace(s, SECOND, "A=2 B=1 C=1 D=0 E=1 X=0, yielded SECOND, ran SECOND");
  put(s, G, 0);
  put(s, N, 1);
  trace(s, SECOND, "A=2 B=1 C=1 D=0 E=2 X=1 N=1 F=1, ran SECOND");
}

/* There the second task is skipped once the first has set the flag, if its size is read from memory. */
CASE(size_read_on_the_device_in_a_two_task_checkpoint) {
  enum { TO = 1, BEHIND, FLAG, SIZE, NEXT_SIZE, ROOM };
  static const gk_slot_desc slots[] = {GK_OWN(TO, int, 4),   GK_OWN(BEHIND, int, 4),    GK_OWN(FLAG, int, 1),
                                       GK_OWN(SIZE, int, 1), GK_OWN(NEXT_SIZE, int, 1), GK_DEFAULT(ROOM, int, 1)};
  static const gk_task tasks[] = {GK_CHECKPOINT(FIRST, FLAG), GK_RUN(squares, SIZE, TO, FLAG, ROOM),
                                  GK_RUN(count, NEXT_SIZE, BEHIND), GK_END, GK_RUN(count, SIZE, BEHIND)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, SIZE, 2);
  put(s, NEXT_SIZE, 3);
  trace(s, 0, "FLAG=1 SIZE=2 NEXT_SIZE=3, yielded FIRST, ran FIRST");
  for (size_t k = 0; k < 4; ++k) expect_int(t, get_at(s, BEHIND, k), k < 3);
}

/* There, if the loop is all there is in the block, it yields after the first pass. */
CASE(loop_in_a_checkpoint) {
  static const gk_task tasks[] = {GK_CHECKPOINT(FIRST, F), GK_DO_WHILE(N), HIT(A), SET(F, 1), HIT(B), DOWN(N), GK_END,
                                  GK_END, HIT(C)};
  subject *s = GRAPH(t, tasks);
  put(s, N, 3);
  trace(s, 0, "A=3 B=3 C=0 N=0, yielded FIRST, passes N=3, ran FIRST");
  put(s, N, 2);
  trace(s, FIRST, "A=5 B=5 C=0 N=0, yielded FIRST, passes N=2, ran FIRST");
}

/* There, what stands outside of any loop over items isn't gated. */
CASE(serial_statement_behind_a_yield) {
  static const gk_task tasks[] = {SET(X, 1), GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, SET(X, 2), GK_COPY(Y, A, GK_ONE),
                                  HIT(B)};
  subject *s = GRAPH(t, tasks);
  put(s, F, 1);
  trace(s, 0, "A=1 B=0 X=1 Y=0, yielded FIRST");
  put(s, F, 0);
  put(s, X, 7);
  trace(s, FIRST, "A=2 B=1 X=2 Y=2");
  put(s, F, 1);
  put(s, X, 7);
  trace(s, FIRST, "A=3 B=1 X=7 Y=2, yielded FIRST"); /* nor before the target */
}

/* There a kernel whose gates have no labels has no status at all. */
CASE(list_with_only_unlabelled_gates) {
  static const gk_task tasks[] = {GK_IF(G), HIT(A), GK_END, GK_DO_WHILE(N), HIT(B), DOWN(N), GK_END, GK_WHILE(M),
                                  HIT(C), DOWN(M), GK_END};
  static const gk_task none[] = {HIT(A)};
  subject *s = GRAPH(t, tasks), *plain = GRAPH(t, none);
  put(s, N, 2);
  put(s, M, 3);
  trace(s, 0, "A=0 B=2 C=3, passes N=2 M=3");
  put(s, N, 4);
  put(s, G, 1);
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

/* There it is refused. */
CASE(resume_as_first_call) {
  static const gk_task tasks[] = {HIT(A), GK_DO_WHILE(N), HIT(B), GK_CHECKPOINT(FIRST, F), HIT(C), GK_END, HIT(D),
                                  DOWN(N), GK_END, HIT(E)};
  subject *s = GRAPH(t, tasks);
  put(s, N, 2);
  trace(s, FIRST, "A=0 B=1 C=2 D=2 E=1 N=0, passes N=2, ran FIRST");
}

/* There the second of two kernels had the state of the first. */
CASE(two_lists_alike_but_for_their_yields) {
  static const gk_task with[] = {HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C)};
  static const gk_task other_flag[] = {HIT(A), GK_CHECKPOINT(FIRST, G), HIT(B), GK_END, HIT(C)};
  static const gk_task other_label[] = {HIT(A), GK_CHECKPOINT(SECOND, F), HIT(B), GK_END, HIT(C)};
  static const gk_task target[] = {HIT(A), GK_TARGET(FIRST), HIT(B), GK_END, HIT(C)};
  static const gk_task without[] = {HIT(A), HIT(B), HIT(C)};
  subject *first = GRAPH(t, with), *second = GRAPH(t, other_flag), *third = GRAPH(t, other_label);
  subject *fourth = GRAPH(t, target), *fifth = GRAPH(t, without), *again = GRAPH(t, with);
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
