/* GK_YIELD: where it may stand, what a resume behind it skips, what the host is told. */
#include "letters.h"

/* First, in the middle and last in each kind of block. */
static const gk_task pausing[] = {GK_YIELD(1), HIT(A), GK_YIELD(2)};
static const gk_list pausing_list = GK_LIST(pausing_list, pausing, letters);

CASE(yield_everywhere) {
  GRAPH(s,
    GK_YIELD(1), HIT(A), GK_DO_WHILE(N), GK_YIELD(2), HIT(B), GK_WHILE(M), GK_YIELD(3), HIT(C), DOWN(M), GK_YIELD(4),
    GK_END, DOWN(N), GK_END, GK_IF(F), GK_YIELD(5), HIT(D), GK_YIELD(6), GK_ELSE, GK_YIELD(7), HIT(E), GK_YIELD(8),
    GK_END, GK_SWITCH(K), GK_CASE, HIT(U), GK_END, GK_CASE, GK_YIELD(9), HIT(V), GK_YIELD(10), GK_END, GK_END,
    HIT(W), GK_YIELD(11));
  static const int32_t pauses[] = {1, 2, 3, 4, 3, 4, 2, 7, 8, 9, 10, 11};
  put(s, N, 2);
  put(s, M, 2);
  put(s, K, 1);
  int32_t label = 0;
  for (size_t k = 0; k < GK_COUNT(pauses); ++k) {
    const gk_status *status = launch(s, label);
    expect_int(t, status->state, GK_YIELDED);
    expect_int(t, status->yielded, pauses[k]);
    label = status->yielded;
  }
  trace(s, label, "A=1 B=2 C=2 D=0 E=1 U=0 V=1 W=1");
  trace(s, 5, "D=1, yielded 6");
  trace(s, 6, "V=1, yielded 9");
}

CASE(yield_in_included_lists) {
  GRAPH(s, GK_INCLUDE_AS(one, pausing_list, 10, A), HIT(B), GK_INCLUDE_AS(two, pausing_list, 20, C));
  expect_int(t, launch(s, 0)->yielded, 11);
  expect_int(t, launch(s, 11)->yielded, 12);
  expect_int(t, launch(s, 12)->yielded, 21);
  expect_int(t, get(s, B), 1);
  expect_int(t, launch(s, 21)->yielded, 22);
  trace(s, 22, "A=1 B=1 C=1");
}

TRACED(yield_at_the_end, TASKS(HIT(A), HIT_ALWAYS(S), GK_YIELD(FIRST)),
       {0, "A=1 S=1, yielded FIRST, ran FIRST"},
       {FIRST, "A=1 S=2, ran"})

TRACED(yield_alone, TASKS(GK_YIELD(FIRST)), {0, "yielded FIRST"}, {FIRST, "ran"}, {0, "yielded FIRST"})

TRACED(yield_first_launch, TASKS(GK_DO_WHILE(N), HIT(A), GK_YIELD(FIRST), HIT(B), DOWN(N), GK_END),
       {FIRST, "N=1 -> A=0 B=1 N=0, passes N=1, ran"},
       {FIRST, "N=2 -> A=1 B=2 N=1, yielded FIRST, passes N=1"})

/* A checkpoint and a YIELD before or behind each other. */
TRACED(yield_beside_checkpoints,
       TASKS(GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, GK_YIELD(SECOND), GK_CHECKPOINT(THIRD, G), HIT(B), GK_END,
             HIT(C)),
       {0, "F=1 G=1 -> A=1 B=0 C=0, yielded FIRST, ran FIRST"},
       {FIRST, "F=0 -> A=2 B=0, yielded SECOND, ran FIRST SECOND"},
       {SECOND, "A=2 B=1 C=0, yielded THIRD, ran THIRD"},
       {THIRD, "G=0 -> A=2 B=2 C=1, ran THIRD"})

TRACED(yield_with_always, TASKS(HIT_ALWAYS(S), GK_YIELD(FIRST), HIT_ALWAYS(U), HIT(A), GK_YIELD(SECOND), HIT_ALWAYS(V)),
       {0, "S=1 U=1 V=1 A=0, yielded FIRST"},
       {FIRST, "S=2 U=2 V=2 A=1, yielded SECOND"},
       {SECOND, "S=3 U=3 V=3 A=1, ran"})

/* The bound counts the passes of one entry, across YIELDs. */
TRACED(yield_and_bound, TASKS(GK_DO_WHILE(N, .max_iterations = 2), HIT(A), GK_YIELD(FIRST), GK_END, HIT(B)),
       {0, "N=1 -> A=1 B=0, yielded FIRST, passes N=0"},
       {FIRST, "A=2 B=0, yielded FIRST, passes N=1"},
       {FIRST, "A=2 B=1, passes N=1, bound N"})

/* Also where the YIELD doesn't come. */
CASE(yield_can_yield_busy) {
  GRAPH(s, HIT(A), GK_IF(F), GK_YIELD(FIRST), GK_END);
  begin_launch(s, 0);
  refuses(t, GK_ERROR_BUSY, "can yield|gk_wait", gk_launch(graph(s), FIRST));
  finish_launches(s);
  trace(s, 0, "A=2");
}

CASE(yield_refused) {
  static const gk_task in_section[] = {GK_PARALLEL, GK_SECTION, GK_YIELD(FIRST), GK_END, GK_END};
  static const gk_task in_checkpoint[] = {GK_CHECKPOINT(FIRST, F), GK_DO_WHILE(N), GK_YIELD(SECOND), GK_END, GK_END};
  static const gk_task without[] = {GK_YIELD(0)};
  static const gk_task twice[] = {GK_YIELD(FIRST), GK_TARGET(FIRST), GK_END};
  static const gk_task always[] = {{.op = GK_OP_YIELD, .bits = GK_ALWAYS, .label = FIRST}};
  static const gk_task flag[] = {{.op = GK_OP_YIELD, .flag = F, .label = FIRST}};
  refuses_list(t, LIST_OF(in_section, letters), "yield-in-section", 2, "FIRST|behind the GK_PARALLEL");
  refuses_list(t, LIST_OF(in_checkpoint, letters), "yield-in-checkpoint", 2, "task 0 (CHECKPOINT FIRST)");
  refuses_list(t, LIST_OF(without, letters), "label-missing", 0, "a yield with label 0");
  refuses_list(t, LIST_OF(twice, letters), "label-reused", 1, "label 1");
  refuses_list(t, LIST_OF(always, letters), "always-on-block", 0, "YIELD");
  refuses_list(t, LIST_OF(flag, letters), "field-unused", 0, ".flag");
}
