/* Loops. */
#include "conformance.h"
#include "kernels.h"

CASE(counter) {
  enum { N = 1, A };
  static const gk_slot_desc slots[] = {GK_OWN(N, int, 1), GK_OWN(A, int, 1)};
  static const gk_task tasks[] = {GK_DO_WHILE(N), GK_RUN(count, GK_ONE, A), GK_RUN(decrease, GK_ONE, N), GK_END};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, N, 5);
  trace(s, 0, "A=5 N=0, passes N=5");
  put(s, N, 10);
  trace(s, 0, "A=15 N=0, passes N=10");
}

/* The flag is what a comparison gives; what it compares with changes between launches. */
CASE(boolean_flag) {
  enum { MORE = 1, X, LIMIT };
  static const gk_slot_desc slots[] = {GK_OWN(MORE, int, 1), GK_OWN(X, int, 1), GK_SCALAR(LIMIT, int)};
  static const gk_task tasks[] = {GK_DO_WHILE(MORE), GK_RUN(count, GK_ONE, X), GK_RUN(below, GK_ONE, MORE, X, LIMIT),
                                  GK_END};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  bind_int(s, LIMIT, 5);
  trace(s, 0, "X=5 MORE=0, passes MORE=5");
  bind_int(s, LIMIT, 12);
  trace(s, 0, "X=12 MORE=0, passes MORE=7");
  trace(s, 0, "X=13, passes MORE=1");
}

CASE(several_tasks_per_body) {
  enum { N = 1, X, A, B, ONE, TWO, THREE };
  static const gk_slot_desc slots[] = {GK_OWN(N, int, 1), GK_OWN(X, int, 1), GK_OWN(A, int, 1), GK_OWN(B, int, 1),
                                       GK_DEFAULT(ONE, int, 1), GK_DEFAULT(TWO, int, 2), GK_DEFAULT(THREE, int, 3)};
  static const gk_task tasks[] = {
    GK_DO_WHILE(N),
      GK_RUN(note, GK_ONE, X, ONE), GK_RUN(decrease, GK_ONE, N), GK_RUN(note, GK_ONE, X, TWO), GK_COPY(A, N, GK_ONE),
      GK_RUN(add_to, GK_ONE, B, A), GK_RUN(note, GK_ONE, X, THREE),
    GK_END,
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, N, 4);
  launch(s, 0);
  holds(s, "N=0 A=0 B=6");
  unsigned wanted = 0;
  for (unsigned k = 0; k < 12; ++k) wanted = wanted * 31 + k % 3 + 1;
  expect_int(t, get(s, X), (int)wanted);
}

CASE(other_flag_buffer_on_replay) {
  enum { N = 1, A };
  static const gk_slot_desc slots[] = {GK_BUFFER(N, int), GK_OWN(A, int, 1)};
  static const gk_task tasks[] = {GK_DO_WHILE(N), GK_RUN(count, GK_ONE, A), GK_RUN(decrease, GK_ONE, N), GK_END};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  buffer *first = buffer_of(t, 1), *second = buffer_of(t, 1);
  buffer_put(first, 0, 3);
  buffer_put(second, 0, 4);
  bind_buffer(s, N, first);
  trace(s, 0, "A=3, passes N=3");
  bind_buffer(s, N, second);
  buffer_put(first, 0, 100); /* nobody reads it any more */
  trace(s, 0, "A=7, passes N=4");
  expect_int(t, buffer_get(first, 0), 100);
  buffer_free(first);
  buffer_put(second, 0, 2);
  trace(s, 0, "A=9, passes N=2");
}

CASE(alternating_flag_buffers) {
  enum { N = 1, A };
  static const gk_slot_desc slots[] = {GK_BUFFER(N, int), GK_OWN(A, int, 1)};
  static const gk_task tasks[] = {GK_DO_WHILE(N), GK_RUN(count, GK_ONE, A), GK_RUN(decrease, GK_ONE, N), GK_END};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  buffer *flags[] = {buffer_of(t, 1), buffer_of(t, 1)};
  int all = 0;
  for (int k = 0; k < 6; ++k) {
    bind_buffer(s, N, flags[k % 2]);
    buffer_put(flags[k % 2], 0, k + 2);
    const gk_status *status = launch(s, 0);
    expect_int(t, gk_passes(status, 0), k + 2);
    all += k + 2;
    expect_int(t, get(s, A), all);
  }
}

CASE(nested_two) {
  enum { O = 1, I, A, B, FOUR };
  static const gk_slot_desc slots[] = {GK_OWN(O, int, 1), GK_OWN(I, int, 1), GK_OWN(A, int, 1), GK_OWN(B, int, 1),
                                       GK_DEFAULT(FOUR, int, 4)};
  static const gk_task tasks[] = {
    GK_DO_WHILE(O),
      GK_RUN(set, GK_ONE, I, FOUR),
      GK_DO_WHILE(I), GK_RUN(count, GK_ONE, A), GK_RUN(decrease, GK_ONE, I), GK_END,
      GK_RUN(count, GK_ONE, B), GK_RUN(decrease, GK_ONE, O),
    GK_END,
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, O, 3);
  trace(s, 0, "A=12 B=3 O=0 I=0, passes O=3 I=12");
}

CASE(nested_three) {
  enum { O = 1, M, I, A, B, C, TWO, THREE };
  static const gk_slot_desc slots[] = {GK_OWN(O, int, 1), GK_OWN(M, int, 1), GK_OWN(I, int, 1), GK_OWN(A, int, 1),
                                       GK_OWN(B, int, 1), GK_OWN(C, int, 1), GK_DEFAULT(TWO, int, 2),
                                       GK_DEFAULT(THREE, int, 3)};
  static const gk_task tasks[] = {
    GK_DO_WHILE(O),
      GK_RUN(set, GK_ONE, M, THREE),
      GK_DO_WHILE(M),
        GK_RUN(set, GK_ONE, I, TWO),
        GK_DO_WHILE(I), GK_RUN(count, GK_ONE, A), GK_RUN(decrease, GK_ONE, I), GK_END,
        GK_RUN(count, GK_ONE, B), GK_RUN(decrease, GK_ONE, M),
      GK_END,
      GK_RUN(count, GK_ONE, C), GK_RUN(decrease, GK_ONE, O),
    GK_END,
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, O, 2);
  trace(s, 0, "A=12 B=6 C=2, passes O=2 M=6 I=12");
}

CASE(inner_flag_zero_at_launch) {
  enum { O = 1, W, D, A, B };
  static const gk_slot_desc slots[] = {GK_OWN(O, int, 1), GK_OWN(W, int, 1), GK_OWN(D, int, 1), GK_OWN(A, int, 1),
                                       GK_OWN(B, int, 1)};
  static const gk_task tasks[] = {
    GK_DO_WHILE(O),
      GK_WHILE(W), GK_RUN(count, GK_ONE, A), GK_RUN(decrease, GK_ONE, W), GK_END,
      GK_DO_WHILE(D), GK_RUN(count, GK_ONE, B), GK_END,
      GK_RUN(decrease, GK_ONE, O),
    GK_END,
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, O, 3);
  trace(s, 0, "A=0 B=3 O=0, passes O=3 W=0 D=3");
  put(s, O, 3);
  put(s, W, 2);
  trace(s, 0, "A=2 B=6, passes O=3 W=2 D=3");
}

CASE(siblings) {
  enum { N = 1, M, A, B };
  static const gk_slot_desc slots[] = {GK_OWN(N, int, 1), GK_OWN(M, int, 1), GK_OWN(A, int, 1), GK_OWN(B, int, 1)};
  static const gk_task tasks[] = {GK_DO_WHILE(N), GK_RUN(count, GK_ONE, A), GK_RUN(decrease, GK_ONE, N), GK_END,
                                  GK_WHILE(M), GK_RUN(count, GK_ONE, B), GK_RUN(decrease, GK_ONE, M), GK_END};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, N, 3);
  put(s, M, 5);
  trace(s, 0, "A=3 B=5, passes N=3 M=5");
  put(s, N, 1);
  put(s, M, 2);
  trace(s, 0, "A=4 B=7, passes N=1 M=2");
}

CASE(before_and_after_run_once) {
  enum { N = 1, X, Y, A };
  static const gk_slot_desc slots[] = {GK_OWN(N, int, 1), GK_OWN(X, int, 1), GK_OWN(Y, int, 1), GK_OWN(A, int, 1)};
  static const gk_task tasks[] = {GK_RUN(count, GK_ONE, X), GK_DO_WHILE(N), GK_RUN(count, GK_ONE, A),
                                  GK_RUN(decrease, GK_ONE, N), GK_END, GK_RUN(count, GK_ONE, Y)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, N, 6);
  trace(s, 0, "X=1 A=6 Y=1");
  put(s, N, 2);
  trace(s, 0, "X=2 A=8 Y=2");
}

/* What lies between sees the first loop's end and the second one's beginning. */
CASE(task_between_loops) {
  enum { N = 1, M, A, X, B };
  static const gk_slot_desc slots[] = {GK_OWN(N, int, 1), GK_OWN(M, int, 1), GK_OWN(A, int, 1), GK_OWN(X, int, 1),
                                       GK_OWN(B, int, 1)};
  static const gk_task tasks[] = {
    GK_DO_WHILE(N), GK_RUN(count, GK_ONE, A), GK_RUN(decrease, GK_ONE, N), GK_END,
    GK_COPY(X, A, GK_ONE), GK_COPY(M, A, GK_ONE),
    GK_DO_WHILE(M), GK_RUN(add_to, GK_ONE, B, X), GK_RUN(decrease, GK_ONE, M), GK_END,
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, N, 4);
  trace(s, 0, "A=4 X=4 B=16, passes N=4 M=4");
}

CASE(while_zero_passes) {
  enum { N = 1, A, B };
  static const gk_slot_desc slots[] = {GK_OWN(N, int, 1), GK_OWN(A, int, 1), GK_OWN(B, int, 1)};
  static const gk_task tasks[] = {GK_WHILE(N), GK_RUN(count, GK_ONE, A), GK_RUN(decrease, GK_ONE, N), GK_END,
                                  GK_RUN(count, GK_ONE, B)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  trace(s, 0, "A=0 B=1 N=0, passes N=0");
  put(s, N, 3);
  trace(s, 0, "A=3 B=2 N=0, passes N=3");
  trace(s, 0, "A=3 B=3, passes N=0"); /* nothing is left of the launch before */
}

CASE(flag_zero_at_do_while) {
  enum { N = 1, A, B };
  static const gk_slot_desc slots[] = {GK_OWN(N, int, 1), GK_OWN(A, int, 1), GK_OWN(B, int, 1)};
  static const gk_task tasks[] = {GK_DO_WHILE(N), GK_RUN(count, GK_ONE, A), GK_END, GK_RUN(count, GK_ONE, B)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  trace(s, 0, "A=1 B=1, passes N=1");
}

CASE(negative_flag_continues) {
  enum { N = 1, W, A, B };
  static const gk_slot_desc slots[] = {GK_OWN(N, int, 1), GK_OWN(W, int, 1), GK_OWN(A, int, 1), GK_OWN(B, int, 1)};
  static const gk_task tasks[] = {GK_DO_WHILE(N), GK_RUN(count, GK_ONE, A), GK_RUN(count, GK_ONE, N), GK_END,
                                  GK_WHILE(W), GK_RUN(count, GK_ONE, B), GK_FILL(W, GK_ONE, 0), GK_END};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, N, -3);
  put(s, W, INT32_MIN);
  trace(s, 0, "A=3 B=1 N=0, passes N=3 W=1");
  put(s, N, -1);
  put(s, W, INT32_MAX);
  trace(s, 0, "A=4 B=2, passes N=1 W=1");
}

/* The status names the first of them; what comes behind runs. */
CASE(bound_reached) {
  enum { F = 1, W, A, B, C, SEARCH = 4 };
  static const gk_slot_desc slots[] = {GK_OWN(F, int, 1), GK_OWN(W, int, 1), GK_OWN(A, int, 1), GK_OWN(B, int, 1),
                                       GK_OWN(C, int, 1)};
  static const gk_task tasks[] = {
    GK_DO_WHILE(F, .max_iterations = 7, .label = SEARCH), GK_RUN(count, GK_ONE, A), GK_END,
    GK_WHILE(W, .max_iterations = 3), GK_RUN(count, GK_ONE, B), GK_END,
    GK_RUN(count, GK_ONE, C),
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, F, 1);
  put(s, W, 1);
  trace(s, 0, "A=7 B=3 C=1, passes SEARCH=7 W=3, bound SEARCH");
  put(s, F, 0);
  const gk_status *status = launch(s, 0);
  holds(s, "A=8 B=6 C=2");
  expect_int(t, status->limit - status->loops, 1);
  expect_int(t, gk_passes(status, SEARCH), 1);
  expect(t, !status->loops[0].hit_bound && status->loops[1].hit_bound, "the wrong loop is said to be at its bound");
  put(s, W, 0);
  trace(s, 0, "A=9 B=6 C=3, passes SEARCH=1 W=0");
}

CASE(bound_zero_means_none) {
  enum { N = 1, A };
  static const gk_slot_desc slots[] = {GK_OWN(N, int, 1), GK_OWN(A, int, 1)};
  static const gk_task tasks[] = {GK_DO_WHILE(N, .max_iterations = 0), GK_RUN(count, GK_ONE, A),
                                  GK_RUN(decrease, GK_ONE, N), GK_END};
  static const gk_task exact[] = {GK_DO_WHILE(N, .max_iterations = 50), GK_RUN(count, GK_ONE, A),
                                  GK_RUN(decrease, GK_ONE, N), GK_END};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, N, 5000);
  trace(s, 0, "A=5000 N=0, passes N=5000");
  s = graph_of(t, LIST_OF(exact, slots), 0);
  put(s, N, 50);
  trace(s, 0, "A=50 N=0, passes N=50"); /* its flag fell in that very pass: no bound was hit */
  put(s, N, 51);
  trace(s, 0, "A=100 N=1, passes N=50, bound N");
}

/* The number of items grows from pass to pass. */
CASE(dynamic_size_in_inner_body) {
  enum { O = 1, I, ITEMS, X, TWO };
  static const gk_slot_desc slots[] = {GK_OWN(O, int, 1), GK_OWN(I, int, 1), GK_OWN(ITEMS, int, 3), GK_OWN(X, int, 100),
                                       GK_DEFAULT(TWO, int, 2)};
  static const gk_task tasks[] = {
    GK_DO_WHILE(O),
      GK_RUN(set, GK_ONE, I, TWO),
      GK_DO_WHILE(I),
        {.op = GK_OP_KERNEL, .name = "count", .kernel = &count, .items = {ITEMS}, .args = {X}, .offset = 8},
        GK_RUN(count, TWO, ITEMS), GK_RUN(decrease, GK_ONE, I),
      GK_END,
      GK_RUN(add_to, GK_ONE, ITEMS, O), GK_RUN(decrease, GK_ONE, O),
    GK_END,
  };
  static const gk_task grow[] = {
    GK_DO_WHILE(O), GK_RUN(count, ITEMS, X), GK_RUN(count, GK_ONE, ITEMS), GK_RUN(decrease, GK_ONE, O), GK_END,
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, O, 3);
  put_at(s, ITEMS, 2, 5);
  trace(s, 0, "X=6 X[4]=6 X[5]=0 ITEMS=12 ITEMS[1]=6, passes O=3 I=6");
  s = graph_of(t, LIST_OF(grow, slots), 0);
  put(s, O, 10);
  put(s, ITEMS, -2); /* less than one: nothing to do */
  trace(s, 0, "X=7 X[1]=6 X[6]=1 X[7]=0 ITEMS=8, passes O=10");
}

CASE(same_flag_two_loops) {
  enum { N = 1, A, B, C, TWO };
  static const gk_slot_desc slots[] = {GK_OWN(N, int, 1), GK_OWN(A, int, 1), GK_OWN(B, int, 1), GK_OWN(C, int, 1),
                                       GK_DEFAULT(TWO, int, 2)};
  static const gk_task row[] = {
    GK_DO_WHILE(N), GK_RUN(count, GK_ONE, A), GK_RUN(decrease, GK_ONE, N), GK_END, GK_RUN(set, GK_ONE, N, TWO),
    GK_DO_WHILE(N), GK_RUN(count, GK_ONE, B), GK_RUN(decrease, GK_ONE, N), GK_END,
  };
  static const gk_task nested[] = {
    GK_DO_WHILE(N),
      GK_WHILE(N), GK_RUN(count, GK_ONE, A), GK_RUN(decrease, GK_ONE, N), GK_END,
      GK_RUN(count, GK_ONE, B),
    GK_END,
    GK_WHILE(N), GK_RUN(count, GK_ONE, C), GK_END,
  };
  subject *s = graph_of(t, LIST_OF(row, slots), 0);
  put(s, N, 3);
  trace(s, 0, "A=3 B=2, passes N=3 N=2");
  s = graph_of(t, LIST_OF(nested, slots), 0);
  put(s, N, 3);
  trace(s, 0, "A=3 B=1 C=0, passes N=1 N=3 N=0");
}

CASE(loop_in_if) {
  enum { F = 1, N, A, B };
  static const gk_slot_desc slots[] = {GK_OWN(F, int, 1), GK_OWN(N, int, 1), GK_OWN(A, int, 1), GK_OWN(B, int, 1)};
  static const gk_task tasks[] = {
    GK_IF(F), GK_DO_WHILE(N), GK_RUN(count, GK_ONE, A), GK_RUN(decrease, GK_ONE, N), GK_END, GK_END,
    GK_RUN(count, GK_ONE, B),
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, N, 4);
  trace(s, 0, "A=0 B=1 N=4, passes N=0");
  put(s, F, -7);
  trace(s, 0, "A=4 B=2 N=0, passes N=4");
}

CASE(if_in_loop) {
  enum { F = 1, N, A, B, LIMIT };
  static const gk_slot_desc slots[] = {GK_OWN(F, int, 1), GK_OWN(N, int, 1), GK_OWN(A, int, 1), GK_OWN(B, int, 1),
                                       GK_DEFAULT(LIMIT, int, 3)};
  static const gk_task tasks[] = {
    GK_DO_WHILE(N),
      GK_RUN(below, GK_ONE, F, N, LIMIT),
      GK_IF(F), GK_RUN(count, GK_ONE, A), GK_END,
      GK_RUN(count, GK_ONE, B), GK_RUN(decrease, GK_ONE, N),
    GK_END,
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, N, 5); /* 5 4 3 2 1: two of them are below 3 */
  trace(s, 0, "A=2 B=5, passes N=5");
}

CASE(if_else_both_ways) {
  enum { F = 1, A, B, C };
  static const gk_slot_desc slots[] = {GK_OWN(F, int, 1), GK_OWN(A, int, 1), GK_OWN(B, int, 1), GK_OWN(C, int, 1)};
  static const gk_task tasks[] = {
    GK_IF(F), GK_FILL(F, GK_ONE, 0), GK_RUN(count, GK_ONE, A), GK_ELSE, GK_RUN(count, GK_ONE, B), GK_END,
    GK_RUN(count, GK_ONE, C),
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  trace(s, 0, "A=0 B=1 C=1");
  put(s, F, 1);
  trace(s, 0, "A=1 B=1 C=2 F=0"); /* read once: that its block clears it doesn't run the other one */
  trace(s, 0, "A=1 B=2 C=3");
}

CASE(loop_in_section) {
  enum { N = 1, M, A, B, C };
  static const gk_slot_desc slots[] = {GK_OWN(N, int, 1), GK_OWN(M, int, 1), GK_OWN(A, int, 1), GK_OWN(B, int, 1),
                                       GK_OWN(C, int, 1)};
  static const gk_task tasks[] = {
    GK_PARALLEL,
      GK_SECTION, GK_DO_WHILE(N), GK_RUN(count, GK_ONE, A), GK_RUN(decrease, GK_ONE, N), GK_END, GK_END,
      GK_SECTION, GK_DO_WHILE(M, .max_iterations = 9), GK_RUN(count, GK_ONE, B), GK_RUN(decrease, GK_ONE, M), GK_END,
      GK_END,
    GK_END,
    GK_RUN(add_to, GK_ONE, C, A), GK_RUN(add_to, GK_ONE, C, B),
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, N, 6);
  put(s, M, 4);
  trace(s, 0, "A=6 B=4 C=10, passes N=6 M=4");
  put(s, N, 1);
  put(s, M, 20);
  trace(s, 0, "A=7 B=13 C=30 M=11, passes N=1 M=9, bound M");
}

/* Each loop makes two passes per pass of the one around it. */
CASE(ten_deep) {
  enum { FLAG = 1, A = FLAG + 10, B, TWO, DEEP = 10 };
  static const gk_slot_desc slots[] = {
    GK_OWN(FLAG, int, 1), {.slot = 2, .type = GK_PTR, .name = "F2", .element_bytes = 4, .count = 1},
    {.slot = 3, .type = GK_PTR, .name = "F3", .element_bytes = 4, .count = 1},
    {.slot = 4, .type = GK_PTR, .name = "F4", .element_bytes = 4, .count = 1},
    {.slot = 5, .type = GK_PTR, .name = "F5", .element_bytes = 4, .count = 1},
    {.slot = 6, .type = GK_PTR, .name = "F6", .element_bytes = 4, .count = 1},
    {.slot = 7, .type = GK_PTR, .name = "F7", .element_bytes = 4, .count = 1},
    {.slot = 8, .type = GK_PTR, .name = "F8", .element_bytes = 4, .count = 1},
    {.slot = 9, .type = GK_PTR, .name = "F9", .element_bytes = 4, .count = 1},
    {.slot = 10, .type = GK_PTR, .name = "F10", .element_bytes = 4, .count = 1},
    GK_OWN(A, int, 1), GK_OWN(B, int, 1), GK_DEFAULT(TWO, int, 2),
  };
  static gk_task tasks[4 * DEEP + 2];
  size_t count_of = 0;
  for (int k = 0; k < DEEP; ++k) {
    tasks[count_of++] = (gk_task)GK_RUN(set, GK_ONE, FLAG + k, TWO);
    tasks[count_of++] = (gk_task)GK_DO_WHILE(FLAG + k);
  }
  tasks[count_of++] = (gk_task)GK_RUN(count, GK_ONE, A);
  for (int k = DEEP - 1; k >= 0; --k) {
    tasks[count_of++] = (gk_task)GK_RUN(decrease, GK_ONE, FLAG + k);
    tasks[count_of++] = (gk_task)GK_END;
  }
  tasks[count_of++] = (gk_task)GK_RUN(count, GK_ONE, B);
  gk_list list = {GK_ABI, "deep", tasks, count_of, slots, GK_COUNT(slots)};
  subject *s = graph_of(t, &list, 0);
  const gk_status *status = launch(s, 0);
  holds(s, "A=1024 B=1");
  expect_int(t, status->loop_count, DEEP);
  for (int k = 0; k < DEEP; ++k) expect_int(t, status->loops[k].passes, 2 << k);
}
