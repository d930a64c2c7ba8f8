/* `.every`: after which passes a loop reads its flag. */
#include "letters.h"

/* At k - 1 and k + 1 passes the flag isn't read, also where it becomes 0 and where it stays there. */
TRACED(every_looks_at_multiples,
       TASKS(GK_DO_WHILE(N, .every = 4), HIT(A), LOWER(N), GK_END, GK_WHILE(M, .every = 3), HIT(B), LOWER(M), GK_END,
             HIT(C)),
       {0, "N=1 M=1 -> A=4 B=3 C=1, passes N=4 M=3"},
       {0, "N=4 M=3 -> A=8 B=6 C=2, passes N=4 M=3"},
       {0, "N=5 M=4 -> A=16 B=12 C=3, passes N=8 M=6"},
       {0, "N=0 M=0 -> A=20 B=12 C=4, passes N=4 M=0"})

/* A flag that is false between two reads, and true at each of them. */
TRACED(every_sees_the_flag_of_that_pass,
       TASKS(GK_DO_WHILE(F, .every = 2), HIT(A), GK_IF(F), SET(F, 0), GK_ELSE, GK_RUN(below, GK_ONE, F, A, I), GK_END,
             GK_END),
       {0, "I=6 F=1 -> A=6 F=0, passes F=6"})

TRACED(every_with_bound_between,
       TASKS(GK_DO_WHILE(N, .max_iterations = 6, .every = 4), HIT(A), LOWER(N), GK_END,
             GK_WHILE(M, .max_iterations = 5, .every = 2), HIT(B), LOWER(M), GK_END),
       {0, "N=6 M=5 -> A=6 B=5, passes N=6 M=5"},
       {0, "N=6 M=6 -> A=12 B=10, bound M"},
       {0, "N=7 M=4 -> A=18 B=14, bound N, passes N=6 M=4"},
       {0, "N=4 M=3 -> A=22 B=18, passes N=4 M=4"})

TRACED(every_with_bound_at_a_look,
       TASKS(GK_DO_WHILE(N, .max_iterations = 6, .every = 3), HIT(A), LOWER(N), GK_END),
       {0, "N=6 -> A=6, passes N=6"}, {0, "N=7 -> A=12, passes N=6, bound N"}, {0, "N=3 -> A=15, passes N=3"})

TRACED(every_bound_below_k,
       TASKS(GK_DO_WHILE(N, .max_iterations = 3, .every = 5), HIT(A), LOWER(N), GK_END,
             GK_WHILE(M, .max_iterations = 1, .every = 4294967295u), HIT(B), LOWER(M), GK_END),
       {0, "N=1 M=1 -> A=3 B=1 N=0, passes N=3 M=1"},
       {0, "N=4 M=2 -> A=6 B=2 N=1, passes N=3 M=1, bound N"},
       {0, "N=3 M=2 -> A=9 B=3, bound M"})

TRACED(every_one_and_zero,
       TASKS(GK_DO_WHILE(N, .every = 1), HIT(A), DOWN(N), GK_END, GK_WHILE(M, .every = 0), HIT(B), DOWN(M), GK_END),
       {0, "N=3 M=3 -> A=3 B=3 N=0 M=0, passes N=3 M=3"})

TRACED(every_while_first_look, TASKS(GK_WHILE(N, .every = 3), HIT(A), SET(N, 0), GK_END, HIT(B)),
       {0, "N=0 -> A=0 B=1, passes N=0"}, {0, "N=-1 -> A=3 B=2 N=0, passes N=3"})

/* Counts the entry's passes, not the launch's. */
TRACED(every_across_a_yield,
       TASKS(GK_WHILE(N, .max_iterations = 8, .every = 3), HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, LOWER(N),
             GK_END, HIT(C)),
       {0, "N=2 F=1 -> A=1 B=1, yielded FIRST, passes N=0"},
       {FIRST, "A=1 B=2, yielded FIRST, passes N=0"},
       {FIRST, "F=0 -> A=3 B=5 C=1 N=0, passes N=3"},
       {0, "N=9 F=1 -> A=4 B=6, yielded FIRST, passes N=0"},
       {FIRST, "F=0 -> A=11 B=14 C=2, passes N=8, bound N"})

/* Stopped in each of its passes. */
TRACED(every_counts_over_launches,
       TASKS(GK_DO_WHILE(N, .every = 3), HIT(A), GK_YIELD(FIRST), LOWER(N), GK_END, HIT(B)),
       {0, "N=4 -> A=1, yielded FIRST, passes N=0"},
       {FIRST, "A=2, yielded FIRST, passes N=1"},
       {FIRST, "A=3, yielded FIRST, passes N=1"},
       {FIRST, "A=4 N=1, yielded FIRST, passes N=1"}, /* a read */
       {FIRST, "A=5 N=0, yielded FIRST, passes N=1"},
       {FIRST, "A=6 B=0, yielded FIRST, passes N=1"},
       {FIRST, "A=6 B=1, passes N=1"})

/* A fresh launch, and one that resumes elsewhere, begin an entry. */
TRACED(every_fresh_after_ignored_yield,
       TASKS(GK_TARGET(SECOND), GK_END, HIT(C), GK_DO_WHILE(N, .every = 2), GK_CHECKPOINT(FIRST, F), HIT(A), GK_END,
             LOWER(N), RAISE_AT(F, A, X), GK_END, HIT(B)),
       {0, "X=1 -> A=2 B=0, yielded FIRST, passes N=1"},
       {0, "F=0 X=0 -> A=4 B=1, passes N=2"},
       {0, "X=5 -> A=6 B=1, yielded FIRST, passes N=1"},
       {SECOND, "F=0 X=0 -> A=8 B=2, passes N=2"})

TRACED(every_first_launch_resumed,
       TASKS(GK_DO_WHILE(N, .every = 2), HIT(A), GK_YIELD(FIRST), HIT(B), LOWER(N), GK_IF(F), GK_YIELD(SECOND), GK_END,
             GK_END),
       {SECOND, "A=1 B=0, yielded FIRST, passes N=1"},
       {FIRST, "A=1 B=1, passes N=1"},
       {FIRST, "A=2 B=2, yielded FIRST, passes N=1"})

/* Each entry of an inner loop begins to count. */
TRACED(every_with_nested_loops,
       TASKS(GK_DO_WHILE(M, .every = 2), HIT(A), SET(N, 4), GK_WHILE(N, .every = 3), HIT(B), LOWER(N), GK_END,
             GK_REPEAT(I), GK_DO_WHILE(G, .every = 2), HIT(C), GK_END, GK_END, LOWER(M), GK_END),
       {0, "M=3 I=2 -> A=4 B=24 C=16, passes M=4 N=24 I=8 G=16"})

/* A body that is one run, and bodies that aren't, each with the same k and flags. */
CASE(every_copies_and_counts_alike) {
  GRAPH(s, GK_DO_WHILE(L, .every = 8), HIT(A), LOWER(L), GK_END, GK_DO_WHILE(M, .every = 8), GK_IF(F), HIT(B), GK_ELSE,
        HIT(B), GK_END, LOWER(M), GK_END, GK_DO_WHILE(N, .every = 8), PARALLEL(SECTION(HIT(C)), SECTION(LOWER(N))),
        GK_END);
  GRAPH(bounded, GK_WHILE(L, .max_iterations = 150, .every = 100), HIT(A), LOWER(L), GK_END,
        GK_WHILE(M, .max_iterations = 150, .every = 100), HIT(B), GK_WHILE(F), GK_END, LOWER(M), GK_END,
        GK_WHILE(N, .max_iterations = 150, .every = 67), HIT(C), LOWER(N), GK_END);
  trace(s, 0, "L=1 M=1 N=1 -> A=8 B=8 C=8, passes L=8 M=8 N=8");
  trace(s, 0, "L=8 M=8 N=8 -> A=16 B=16 C=16");
  trace(s, 0, "L=30 M=30 N=30 -> A=48 B=48 C=48");
  trace(bounded, 0, "L=1 M=1 N=1 -> A=100 B=100 C=67");
  trace(bounded, 0, "L=101 M=101 N=101 -> A=250 B=250 C=201");
  trace(bounded, 0, "L=150 M=150 N=150 -> A=400 B=400 C=351");
  trace(bounded, 0, "L=151 M=151 N=151 -> A=550 B=550 C=501, bound L, passes L=150 M=150 N=150");
}

TRACED(every_in_sections,
       TASKS(PARALLEL(SECTION(GK_DO_WHILE(L, .every = 3), HIT(A), LOWER(L), GK_END),
                      SECTION(GK_WHILE(M, .max_iterations = 5, .every = 4), HIT(B), LOWER(M), GK_END, HIT(B)),
                      SECTION(HIT(C), GK_DO_WHILE(N, .every = 2), GK_END)),
             HIT(D)),
       {0, "L=4 M=9 N=0 -> A=6 B=6 C=1 D=1, passes L=6 M=5 N=2, bound M"},
       {0, "L=1 M=0 -> A=9 B=7 C=2 D=2, passes L=3 M=0 N=2"})

TRACED(every_in_a_checkpoint,
       TASKS(GK_CHECKPOINT(FIRST, F), GK_DO_WHILE(N, .every = 2), HIT(A), LOWER(N), GK_END, GK_END, HIT(B)),
       {0, "N=1 F=1 -> A=2 B=0, yielded FIRST, passes N=2"},
       {FIRST, "N=3 F=0 -> A=6 B=1, passes N=4"})

/* The loop ends although its flag stays true. */
CASE(every_ends_after_a_bad_count) {
  GRAPH(s, GK_DO_WHILE(F, .every = 4), HIT(A), GK_FILL(B, I, 0), GK_END);
  put(s, F, 1);
  bind_int(s, I, 2);
  launch_fails(s, 0, "2 elements|slot|(B)");
  trace(s, 0, "A=0 B=1 I=1 F=0 -> A=4 B=0, passes F=4");
}

CASE(every_refused) {
  static const gk_task repeat[] = {GK_REPEAT(GK_ITEMS(4), .every = 2), GK_END};
  static const gk_task branch[] = {GK_IF(F, .every = 2), GK_END};
  static const gk_task fill[] = {{.op = GK_OP_FILL, .items = {GK_ONE}, .args = {A}, .every = 1}};
  refuses_list(t, LIST_OF(repeat, letters), "field-unused", 0, ".every is set, but REPEAT doesn't use it; leave it 0");
  refuses_list(t, LIST_OF(branch, letters), "field-unused", 0, ".every is set, but IF");
  refuses_list(t, LIST_OF(fill, letters), "field-unused", 0, ".every is set, but FILL");
}
