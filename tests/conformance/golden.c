/* The table of golden traces at the end of docs/contract.md, line by line, with the letters that stand there. */
#include "letters.h"

TRACED(golden_checkpoint, TASKS(HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C)),
       {0, "F=1 -> A=1 B=1 C=0, yielded FIRST, ran FIRST"},
       {FIRST, "F=0 -> A=1 B=2 C=1, ran FIRST"})

TRACED(golden_checkpoint_in_a_loop,
       TASKS(GK_DO_WHILE(N), HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C), DOWN(N), GK_END),
       {0, "N=3 F=1 -> A=1 B=1 C=0 N=3, yielded FIRST, passes N=0, ran FIRST"},
       {FIRST, "F=0 -> A=3 B=4 C=3 N=0, passes N=3, ran FIRST"})

TRACED(golden_last_pass, TASKS(GK_DO_WHILE(N), DOWN(N), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, GK_END),
       {0, "N=1 F=1 -> B=1 N=0, yielded FIRST, passes N=0"},
       {FIRST, "F=0 -> B=2 N=0, passes N=1"})

TRACED(golden_finished_loop,
       TASKS(GK_DO_WHILE(N), HIT(X), DOWN(N), GK_END, HIT(Y), GK_CHECKPOINT(FIRST, F), HIT(Z), GK_END),
       {0, "N=2 F=1 -> X=2 Y=1 Z=1, yielded FIRST, passes N=2"},
       {FIRST, "F=0 -> X=2 Y=1 Z=2, passes N=0"},
       {FIRST, "N=2 -> X=2 Y=1 Z=3 N=2, passes N=0"}) /* armed again by the host */

TRACED(golden_nested, TASKS(GK_DO_WHILE(M), SET(N, 2), HIT(S), GK_DO_WHILE(N), GK_CHECKPOINT(FIRST, F), HIT(A), GK_END,
             DOWN(N), GK_END, DOWN(M), GK_END),
       {0, "M=2 F=1 -> A=1 S=1 M=2 N=2, yielded FIRST, passes M=0 N=0"},
       {FIRST, "F=0 -> A=5 S=2 M=0 N=0, passes M=2 N=4"})

CASE(golden_flag_at_the_end) {
  GRAPH(s, GK_CHECKPOINT(FIRST, F), SET(F, 1), HIT(A), GK_END);
  GRAPH(kernels, GK_CHECKPOINT(FIRST, F), RAISE_AT(F, A, Z), HIT(A), HIT(B), GK_END, HIT(C));
  trace(s, 0, "A=1, yielded FIRST");
  trace(kernels, 0, "A=1 B=1 C=0, yielded FIRST");
}

TRACED(golden_first_yielder, TASKS(GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, GK_CHECKPOINT(SECOND, G), HIT(B), GK_END),
       {0, "F=1 G=1 -> A=1 B=0, yielded FIRST, ran FIRST"})

TRACED(golden_resume_behind_a_set_flag,
       TASKS(GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, GK_CHECKPOINT(SECOND, G), HIT(B), GK_END),
       {SECOND, "F=1 -> A=0 B=1 F=1, ran SECOND"})

CASE(golden_adjacent_parallels) {
  GRAPH(s,
    GK_DO_WHILE(N), SET(X, 0), SET(Y, 0), DOWN(N),
      PARALLEL(SECTION(SET(X, 1)), SECTION(SET(Y, 2))),
      PARALLEL(SECTION(GK_COPY(A, X, GK_ONE)), SECTION(GK_COPY(B, Y, GK_ONE))),
      GK_RUN(agree, GK_ONE, C, A, U), GK_RUN(agree, GK_ONE, D, B, V), SET(A, 0), SET(B, 0),
    GK_END);
  trace(s, 0, "N=4 U=1 V=2 -> C=4 D=4 N=0, passes N=4"); /* in every pass a was this pass's x, b its y */
}

TRACED(golden_while_of_no_pass, TASKS(GK_WHILE(N), HIT(A), GK_END),
       {0, "A=0 N=0, passes N=0"})

TRACED(golden_always, TASKS(HIT_ALWAYS(S), HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C), HIT_ALWAYS(E)),
       {0, "F=1 -> S=1 A=1 B=1 C=0 E=1, yielded FIRST, ran FIRST"},
       {FIRST, "F=0 -> S=2 A=1 B=2 C=1 E=2, ran FIRST"})

TRACED(golden_yields, TASKS(HIT(A), GK_YIELD(FIRST), GK_YIELD(SECOND), HIT(B), HIT_ALWAYS(E)),
       {0, "A=1 B=0 E=1, yielded FIRST, ran FIRST"},
       {FIRST, "A=1 B=0 E=2, yielded SECOND, ran SECOND"},
       {SECOND, "A=1 B=1 E=3, ran"},
       {SECOND, "A=1 B=2 E=4, ran"})

TRACED(golden_yield_in_a_loop, TASKS(GK_DO_WHILE(N), HIT(A), GK_YIELD(FIRST), HIT(B), DOWN(N), GK_END, HIT(C)),
       {0, "N=2 -> A=1 B=0 C=0, yielded FIRST, passes N=0, ran FIRST"},
       {FIRST, "A=2 B=1 C=0, yielded FIRST, passes N=1, ran FIRST"},
       {FIRST, "A=2 B=2 C=1 N=0, passes N=1, ran"})

TRACED(golden_yield_in_a_branch,
       TASKS(GK_IF(F), HIT(A), GK_YIELD(FIRST), HIT(B), GK_ELSE, HIT(C), GK_END, HIT(D)),
       {0, "F=1 -> A=1 B=0 C=0 D=0, yielded FIRST"},
       {FIRST, "F=0 -> A=1 B=1 C=0 D=1"},
       {0, "A=1 B=1 C=1 D=2"})

TRACED(golden_repeat, TASKS(HIT(A), GK_REPEAT(N), HIT(B), GK_END, HIT(C)),
       {0, "N=3 -> A=1 B=3 C=1, passes N=3"},
       {0, "N=0 -> A=2 B=3 C=2, passes N=0"},
       {0, "N=-2 -> A=3 B=3 C=3, passes N=0"})

TRACED(golden_repeat_reads_once, TASKS(SET(N, 3), GK_REPEAT(N), HIT(B), SET(N, 1), GK_END),
       {0, "B=3 N=1, passes N=3"})

TRACED(golden_repeat_waits, TASKS(GK_REPEAT(N), HIT(A), GK_YIELD(FIRST), HIT(B), GK_END, HIT(C)),
       {0, "N=2 -> A=1 B=0 C=0, yielded FIRST, passes N=0"},
       {FIRST, "N=9 -> A=2 B=1 C=0, yielded FIRST, passes N=1"},
       {FIRST, "N=1 -> A=2 B=2 C=1, passes N=1"})

TRACED(golden_repeat_first_resumed, TASKS(GK_REPEAT(N), HIT(A), GK_YIELD(FIRST), HIT(B), GK_END),
       {FIRST, "N=0 -> A=0 B=1, passes N=1"},
       {FIRST, "N=2 -> A=1 B=2, yielded FIRST, passes N=1"})

TRACED(golden_repeat_before_the_target, TASKS(GK_REPEAT(N), HIT(A), GK_END, HIT(B), GK_YIELD(FIRST), HIT(C)),
       {0, "N=2 -> A=2 B=1 C=0, yielded FIRST, passes N=2"},
       {FIRST, "N=5 -> A=2 B=1 C=1, passes N=0"})

CASE(golden_repeat_bound) {
  enum { WIDE = 60 };
  static const gk_slot_desc slots[] = {INT(A), GK_SCALAR(WIDE, int64_t), GK_DEFAULT(ONE, int, 1)};
  GRAPH_OF(s, slots, GK_REPEAT(WIDE, .max_iterations = 3), HIT(A), GK_END);
  bind_int(s, WIDE, INT64_C(1) << 32);
  trace(s, 0, "A=3, passes WIDE=3, bound WIDE");
  bind_int(s, WIDE, 3);
  trace(s, 0, "A=6, passes WIDE=3");
}

TRACED(golden_repeat_behind_always,
       TASKS(GK_RUN_ALWAYS(set, GK_ONE, N, TWO), GK_REPEAT(N), HIT(A), GK_YIELD(FIRST), HIT(B), GK_END),
       {FIRST, "N=7 -> A=1 B=1 N=2, yielded FIRST, passes N=1"},
       {FIRST, "N=0 -> A=1 B=2, passes N=1"})

TRACED(golden_repeat_in_a_checkpoint, TASKS(GK_CHECKPOINT(FIRST, F), GK_REPEAT(N), HIT(A), GK_END, GK_END, HIT(B)),
       {0, "N=2 F=1 -> A=2 B=0, yielded FIRST, passes N=2"},
       {FIRST, "N=3 F=0 -> A=5 B=1, passes N=3"})

TRACED(golden_every, TASKS(SET(N, 4), GK_DO_WHILE(N, .every = 3), HIT(B), LOWER(N), GK_END, HIT(C)),
       {0, "B=6 C=1 N=0, passes N=6"})

CASE(golden_every_and_bound) {
  GRAPH(s, GK_DO_WHILE(N, .max_iterations = 6, .every = 4), HIT(B), GK_END);
  GRAPH(cleared, GK_DO_WHILE(N, .max_iterations = 6, .every = 4), HIT(B), LOWER(N), GK_END);
  trace(s, 0, "N=1 -> B=6, passes N=6, bound N");
  trace(cleared, 0, "N=5 -> B=6 N=0, passes N=6");
}

TRACED(golden_every_while, TASKS(GK_WHILE(N, .every = 3), HIT(B), GK_END), {0, "N=0 -> B=0, passes N=0"})

TRACED(golden_every_across_yields,
       TASKS(GK_DO_WHILE(N, .every = 2), HIT(A), GK_YIELD(FIRST), HIT(B), LOWER(N), GK_END, HIT(C)),
       {0, "N=1 -> A=1 B=0 C=0, yielded FIRST, passes N=0"},
       {FIRST, "A=2 B=1 C=0 N=0, yielded FIRST, passes N=1"},
       {FIRST, "A=2 B=2 C=1, passes N=1"})
