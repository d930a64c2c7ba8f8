/* The table of golden traces at the end of docs/contract.md, line by line, with the letters that stand there. */
#include "letters.h"

CASE(golden_checkpoint) {
  static const gk_task tasks[] = {HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C)};
  subject *s = GRAPH(t, tasks);
  put(s, F, 1);
  trace(s, 0, "A=1 B=1 C=0, yielded FIRST, ran FIRST");
  put(s, F, 0);
  trace(s, FIRST, "A=1 B=2 C=1, ran FIRST");
}

CASE(golden_checkpoint_in_a_loop) {
  static const gk_task tasks[] = {GK_DO_WHILE(N), HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C), DOWN(N),
                                  GK_END};
  subject *s = GRAPH(t, tasks);
  put(s, N, 3);
  put(s, F, 1);
  trace(s, 0, "A=1 B=1 C=0 N=3, yielded FIRST, passes N=0, ran FIRST");
  put(s, F, 0);
  trace(s, FIRST, "A=3 B=4 C=3 N=0, passes N=3, ran FIRST");
}

CASE(golden_last_pass) {
  static const gk_task tasks[] = {GK_DO_WHILE(N), DOWN(N), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, GK_END};
  subject *s = GRAPH(t, tasks);
  put(s, N, 1);
  put(s, F, 1);
  trace(s, 0, "B=1 N=0, yielded FIRST, passes N=0");
  put(s, F, 0);
  trace(s, FIRST, "B=2 N=0, passes N=1");
}

CASE(golden_finished_loop) {
  static const gk_task tasks[] = {GK_DO_WHILE(N), HIT(X), DOWN(N), GK_END, HIT(Y), GK_CHECKPOINT(FIRST, F), HIT(Z),
                                  GK_END};
  subject *s = GRAPH(t, tasks);
  put(s, N, 2);
  put(s, F, 1);
  trace(s, 0, "X=2 Y=1 Z=1, yielded FIRST, passes N=2");
  put(s, F, 0);
  trace(s, FIRST, "X=2 Y=1 Z=2, passes N=0");
  put(s, N, 2); /* armed again by the host */
  trace(s, FIRST, "X=2 Y=1 Z=3 N=2, passes N=0");
}

CASE(golden_nested) {
  static const gk_task tasks[] = {GK_DO_WHILE(M), SET(N, 2), HIT(S), GK_DO_WHILE(N), GK_CHECKPOINT(FIRST, F), HIT(A),
                                  GK_END, DOWN(N), GK_END, DOWN(M), GK_END};
  subject *s = GRAPH(t, tasks);
  put(s, M, 2);
  put(s, F, 1);
  trace(s, 0, "A=1 S=1 M=2 N=2, yielded FIRST, passes M=0 N=0");
  put(s, F, 0);
  trace(s, FIRST, "A=5 S=2 M=0 N=0, passes M=2 N=4");
}

CASE(golden_flag_at_the_end) {
  static const gk_task tasks[] = {GK_CHECKPOINT(FIRST, F), SET(F, 1), HIT(A), GK_END};
  static const gk_task by_kernels[] = {GK_CHECKPOINT(FIRST, F), RAISE_AT(F, A, Z), HIT(A), HIT(B), GK_END, HIT(C)};
  subject *s = GRAPH(t, tasks), *kernels = GRAPH(t, by_kernels);
  trace(s, 0, "A=1, yielded FIRST");
  trace(kernels, 0, "A=1 B=1 C=0, yielded FIRST");
}

CASE(golden_first_yielder) {
  static const gk_task tasks[] = {GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, GK_CHECKPOINT(SECOND, G), HIT(B), GK_END};
  subject *s = GRAPH(t, tasks);
  put(s, F, 1);
  put(s, G, 1);
  trace(s, 0, "A=1 B=0, yielded FIRST, ran FIRST");
}

CASE(golden_resume_behind_a_set_flag) {
  static const gk_task tasks[] = {GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, GK_CHECKPOINT(SECOND, G), HIT(B), GK_END};
  subject *s = GRAPH(t, tasks);
  put(s, F, 1);
  trace(s, SECOND, "A=0 B=1 F=1, ran SECOND");
}

CASE(golden_adjacent_parallels) {
  static const gk_task tasks[] = {
    GK_DO_WHILE(N),
    SET(X, 0), SET(Y, 0), DOWN(N),
    GK_PARALLEL, GK_SECTION, SET(X, 1), GK_END, GK_SECTION, SET(Y, 2), GK_END, GK_END,
    GK_PARALLEL, GK_SECTION, GK_COPY(A, X, GK_ONE), GK_END, GK_SECTION, GK_COPY(B, Y, GK_ONE), GK_END, GK_END,
    GK_RUN(agree, GK_ONE, C, A, U), GK_RUN(agree, GK_ONE, D, B, V), SET(A, 0), SET(B, 0),
    GK_END};
  subject *s = GRAPH(t, tasks);
  put(s, N, 4);
  put(s, U, 1);
  put(s, V, 2);
  trace(s, 0, "C=4 D=4 N=0, passes N=4"); /* in every pass a was this pass's x, b its y */
}

CASE(golden_while_of_no_pass) {
  static const gk_task tasks[] = {GK_WHILE(N), HIT(A), GK_END};
  subject *s = GRAPH(t, tasks);
  trace(s, 0, "A=0 N=0, passes N=0");
}

CASE(golden_always) {
  static const gk_task tasks[] = {HIT_ALWAYS(S), HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C),
                                  HIT_ALWAYS(E)};
  subject *s = GRAPH(t, tasks);
  put(s, F, 1);
  trace(s, 0, "S=1 A=1 B=1 C=0 E=1, yielded FIRST, ran FIRST");
  put(s, F, 0);
  trace(s, FIRST, "S=2 A=1 B=2 C=1 E=2, ran FIRST");
}
