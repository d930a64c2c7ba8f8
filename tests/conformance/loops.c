/* Loops. */
#include "letters.h"
#include <stdio.h>

TRACED(counter, TASKS(GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END),
       {0, "N=5 -> A=5 N=0, passes N=5"},
       {0, "N=10 -> A=15 N=0, passes N=10"})

/* The flag is what a comparison gives; what it compares with changes between launches. */
TRACED(boolean_flag, TASKS(GK_DO_WHILE(F), HIT(X), GK_RUN(below, GK_ONE, F, X, I), GK_END),
       {0, "I=5 -> X=5 F=0, passes F=5"},
       {0, "I=12 -> X=12 F=0, passes F=7"},
       {0, "X=13, passes F=1"})

CASE(several_tasks_per_body) {
  GRAPH(s, GK_DO_WHILE(N), NOTE(X, ONE), DOWN(N), NOTE(X, TWO), GK_COPY(A, N, GK_ONE), ADD_TO(B, A), NOTE(X, THREE),
        GK_END);
  unsigned wanted = 0;
  for (unsigned k = 0; k < 12; ++k) wanted = wanted * 31 + k % 3 + 1;
  trace(s, 0, "N=4 -> N=0 A=0 B=6, passes N=4");
  expect_int(t, get(s, X), (int)wanted);
}

CASE(other_flag_buffer_on_replay) {
  GRAPH(s, GK_DO_WHILE(P), HIT(A), DOWN(P), GK_END);
  buffer *first = buffer_of(t, 1), *second = buffer_of(t, 1);
  buffer_put(first, 0, 3);
  buffer_put(second, 0, 4);
  bind_buffer(s, P, first);
  trace(s, 0, "A=3, passes P=3");
  bind_buffer(s, P, second);
  buffer_put(first, 0, 100); /* not read any more */
  trace(s, 0, "A=7, passes P=4");
  expect_int(t, buffer_get(first, 0), 100);
  buffer_free(first);
  trace(s, 0, "P=2 -> A=9, passes P=2");
}

CASE(alternating_flag_buffers) {
  GRAPH(s, GK_DO_WHILE(P), HIT(A), DOWN(P), GK_END);
  buffer *flags[] = {buffer_of(t, 1), buffer_of(t, 1)};
  for (int k = 2, all = 2; k < 8; all += ++k) {
    bind_buffer(s, P, flags[k % 2]);
    put(s, P, k);
    expect_int(t, gk_passes(launch(s, 0), 0), k);
    expect_int(t, get(s, A), all);
  }
}

TRACED(nested_two, TASKS(GK_DO_WHILE(M), GK_RUN(set, GK_ONE, N, THREE), GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, HIT(B),
             DOWN(M), GK_END),
       {0, "M=4 -> A=12 B=4 M=0 N=0, passes M=4 N=12"})

CASE(nested_three) {
  GRAPH(s,
    GK_DO_WHILE(L), GK_RUN(set, GK_ONE, M, THREE),
      GK_DO_WHILE(M), GK_RUN(set, GK_ONE, N, TWO), GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, HIT(B), DOWN(M), GK_END,
      HIT(C), DOWN(L),
    GK_END);
  trace(s, 0, "L=2 -> A=12 B=6 C=2, passes L=2 M=6 N=12");
}

TRACED(inner_flag_zero_at_launch,
       TASKS(GK_DO_WHILE(L), GK_WHILE(M), HIT(A), DOWN(M), GK_END, GK_DO_WHILE(N), HIT(B), GK_END, DOWN(L), GK_END),
       {0, "L=3 -> A=0 B=3 L=0, passes L=3 M=0 N=3"},
       {0, "L=3 M=2 -> A=2 B=6, passes L=3 M=2 N=3"})

TRACED(siblings, TASKS(GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, GK_WHILE(M), HIT(B), DOWN(M), GK_END),
       {0, "N=3 M=5 -> A=3 B=5, passes N=3 M=5"},
       {0, "N=1 M=2 -> A=4 B=7, passes N=1 M=2"})

TRACED(before_and_after_run_once, TASKS(HIT(X), GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, HIT(Y)),
       {0, "N=6 -> X=1 A=6 Y=1"},
       {0, "N=2 -> X=2 A=8 Y=2"})

/* What lies between sees the first loop's end and the second one's beginning. */
TRACED(task_between_loops, TASKS(GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, GK_COPY(X, A, GK_ONE), GK_COPY(M, A, GK_ONE),
             GK_DO_WHILE(M), ADD_TO(B, X), DOWN(M), GK_END),
       {0, "N=4 -> A=4 X=4 B=16, passes N=4 M=4"})

TRACED(while_zero_passes, TASKS(GK_WHILE(N), HIT(A), DOWN(N), GK_END, HIT(B)),
       {0, "A=0 B=1 N=0, passes N=0"},
       {0, "N=3 -> A=3 B=2 N=0, passes N=3"},
       {0, "A=3 B=3, passes N=0"}) /* nothing is left of the launch before */

TRACED(flag_zero_at_do_while, TASKS(GK_DO_WHILE(N), HIT(A), GK_END, HIT(B)),
       {0, "A=1 B=1, passes N=1"})

TRACED(negative_flag_continues, TASKS(GK_DO_WHILE(N), HIT(A), HIT(N), GK_END, GK_WHILE(W), HIT(B), SET(W, 0), GK_END),
       {0, "N=-3 W=-2147483648 -> A=3 B=1 N=0, passes N=3 W=1"},
       {0, "N=-1 W=2147483647 -> A=4 B=2, passes N=1 W=1"})

/* The status names the first of them; what comes behind runs. */
CASE(bound_reached) {
  enum { SEARCH = 4 };
  GRAPH(s, GK_DO_WHILE(F, .max_iterations = 7, .label = SEARCH), HIT(A), GK_END, GK_WHILE(W, .max_iterations = 3),
        HIT(B), GK_END, HIT(C));
  trace(s, 0, "F=1 W=1 -> A=7 B=3 C=1, passes SEARCH=7 W=3, bound SEARCH");
  put(s, F, 0);
  const gk_status *status = launch(s, 0);
  holds(s, "A=8 B=6 C=2");
  expect_int(t, status->limit - status->loops, 1);
  expect_int(t, gk_passes(status, SEARCH), 1);
  expect(t, !status->loops[0].hit_bound && status->loops[1].hit_bound, "the wrong loop is said to be at its bound");
  trace(s, 0, "W=0 -> A=9 B=6 C=3, passes SEARCH=1 W=0");
}

CASE(bound_zero_means_none) {
  GRAPH(s, GK_DO_WHILE(N, .max_iterations = 0), HIT(A), DOWN(N), GK_END);
  GRAPH(exact, GK_DO_WHILE(N, .max_iterations = 50), HIT(A), DOWN(N), GK_END);
  trace(s, 0, "N=5000 -> A=5000 N=0, passes N=5000");
  trace(exact, 0, "N=50 -> A=50 N=0, passes N=50"); /* its flag fell in that very pass: no bound was hit */
  trace(exact, 0, "N=51 -> A=100 N=1, passes N=50, bound N");
}

/* The number of items grows from pass to pass. */
CASE(dynamic_size_in_inner_body) {
  enum { O = 1, J, ITEMS, TO, PAIR };
  static const gk_slot_desc slots[] = {INT(O), INT(J), GK_OWN(ITEMS, int, 3), GK_OWN(TO, int, 100),
                                       GK_DEFAULT(PAIR, int, 2)};
  GRAPH_OF(s, slots,
    GK_DO_WHILE(O), GK_RUN(set, GK_ONE, J, PAIR),
      GK_DO_WHILE(J),
        {.op = GK_OP_KERNEL, .name = "count", .kernel = &count, .items = {ITEMS}, .args = {TO}, .offset = 8},
        GK_RUN(count, PAIR, ITEMS), DOWN(J),
      GK_END,
      ADD_TO(ITEMS, O), DOWN(O),
    GK_END);
  GRAPH_OF(grow, slots, GK_DO_WHILE(O), GK_RUN(count, ITEMS, TO), HIT(ITEMS), DOWN(O), GK_END);
  trace(s, 0, "O=3 ITEMS[2]=5 -> TO=6 TO[4]=6 TO[5]=0 ITEMS=12 ITEMS[1]=6, passes O=3 J=6");
  /* less than one: nothing to do */
  trace(grow, 0, "O=10 ITEMS=-2 -> TO=7 TO[1]=6 TO[6]=1 TO[7]=0 ITEMS=8, passes O=10");
}

CASE(same_flag_two_loops) {
  GRAPH(row, GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, GK_RUN(set, GK_ONE, N, TWO), GK_DO_WHILE(N), HIT(B), DOWN(N),
        GK_END);
  GRAPH(nested, GK_DO_WHILE(N), GK_WHILE(N), HIT(A), DOWN(N), GK_END, HIT(B), GK_END, GK_WHILE(N), HIT(C), GK_END);
  trace(row, 0, "N=3 -> A=3 B=2, passes N=3 N=2");
  trace(nested, 0, "N=3 -> A=3 B=1 C=0, passes N=1 N=3 N=0");
}

TRACED(loop_in_if, TASKS(GK_IF(F), GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, GK_END, HIT(B)),
       {0, "N=4 -> A=0 B=1 N=4, passes N=0"},
       {0, "F=-7 -> A=4 B=2 N=0, passes N=4"})

TRACED(if_in_loop,
       TASKS(GK_DO_WHILE(N), GK_RUN(below, GK_ONE, F, N, THREE), GK_IF(F), HIT(A), GK_END, HIT(B), DOWN(N), GK_END),
       {0, "N=5 -> A=2 B=5, passes N=5"}) /* 5 4 3 2 1: two of them are below 3 */

TRACED(if_else_both_ways, TASKS(GK_IF(F), SET(F, 0), HIT(A), GK_ELSE, HIT(B), GK_END, HIT(C)),
       {0, "A=0 B=1 C=1"},
       {0, "F=1 -> A=1 B=1 C=2 F=0"}, /* read once: that its block clears it doesn't run the other one */
       {0, "A=1 B=2 C=3"})

CASE(loop_in_section) {
  GRAPH(s,
    PARALLEL(SECTION(GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END),
             SECTION(GK_DO_WHILE(M, .max_iterations = 9), HIT(B), DOWN(M), GK_END)),
    ADD_TO(C, A), ADD_TO(C, B));
  trace(s, 0, "N=6 M=4 -> A=6 B=4 C=10, passes N=6 M=4");
  trace(s, 0, "N=1 M=20 -> A=7 B=13 C=30 M=11, passes N=1 M=9, bound M");
}

/* Each loop makes two passes per pass of the one around it. */
CASE(ten_deep) {
  enum { DEEP = 10, IN = 1, OUT, PAIR, FLAG };
  static gk_slot_desc slots[PAIR + DEEP] = {INT(IN), INT(OUT), GK_DEFAULT(PAIR, int, 2)};
  static gk_task tasks[4 * DEEP + 2];
  static char names[DEEP][16];
  gk_task *inner = &tasks[2 * DEEP];
  for (int k = 0; k < DEEP; ++k) {
    snprintf(names[k], sizeof names[k], "F%d", k);
    slots[PAIR + k] = (gk_slot_desc)INT(FLAG + k);
    slots[PAIR + k].name = names[k];
    tasks[2 * k] = (gk_task)GK_RUN(set, GK_ONE, FLAG + k, PAIR);
    tasks[2 * k + 1] = (gk_task)GK_DO_WHILE(FLAG + k);
    inner[1 + 2 * k] = (gk_task)DOWN(FLAG + DEEP - 1 - k);
    inner[2 + 2 * k] = (gk_task)GK_END;
  }
  inner[0] = (gk_task)HIT(IN);
  inner[2 * DEEP + 1] = (gk_task)HIT(OUT);
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  const gk_status *status = launch(s, 0);
  holds(s, "IN=1024 OUT=1");
  expect_int(t, status->loop_count, DEEP);
  for (int k = 0; k < DEEP; ++k) expect_int(t, status->loops[k].passes, 2 << k);
}
