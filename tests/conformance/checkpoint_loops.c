/* Checkpoints inside loops: a yield ends every loop around it, a resume goes on in the pass that was interrupted. */
#include "letters.h"

/* L, M, N count down and are the loops' flags; a loop with a flag of its own is known by that name. */
#define ONE_CHECKPOINT GK_DO_WHILE(N), HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C), DOWN(N), GK_END, HIT(D)
#define TWO_CHECKPOINTS \
  GK_DO_WHILE(N), HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, GK_CHECKPOINT(SECOND, G), HIT(C), GK_END, DOWN(N), \
  GK_END, HIT(D)
#define NESTED \
  GK_DO_WHILE(M), HIT(A), SET(N, 2), GK_DO_WHILE(N), HIT(B), GK_CHECKPOINT(FIRST, F), HIT(C), GK_END, DOWN(N), \
  GK_END, GK_CHECKPOINT(SECOND, G), HIT(D), GK_END, DOWN(M), GK_END, HIT(E)

TRACED(completes_when_no_yield, TASKS(ONE_CHECKPOINT),
       {0, "N=5 -> A=5 B=5 C=5 D=1 N=0, passes N=5, ran FIRST"},
       {0, "N=1 -> A=6 B=6 C=6 D=2 N=0, passes N=1, ran FIRST"})

TRACED(yield_ends_loop_early, TASKS(ONE_CHECKPOINT),
       {0, "N=3 F=1 -> A=1 B=1 C=0 D=0 N=3, yielded FIRST, passes N=0, ran FIRST"})

TRACED(resume_this, TASKS(ONE_CHECKPOINT),
       {0, "N=3 F=1 -> A=1 B=1 C=0 D=0 N=3, yielded FIRST, passes N=0"},
       {FIRST, "F=0 -> A=3 B=4 C=3 D=1 N=0, passes N=3"}) /* only the first pass skips A */

TRACED(resume_next, TASKS(TWO_CHECKPOINTS),
       {0, "N=3 F=1 -> A=1 B=1 C=0 D=0 N=3, yielded FIRST, passes N=0, ran FIRST"},
       {SECOND, "F=0 -> A=3 B=3 C=3 D=1 N=0, passes N=3, ran FIRST SECOND"})

TRACED(yield_on_last_pass, TASKS(ONE_CHECKPOINT),
       {0, "N=1 F=1 -> A=1 B=1 C=0 D=0 N=1, yielded FIRST, passes N=0"},
       {FIRST, "F=0 -> A=1 B=2 C=1 D=1 N=0, passes N=1"})

TRACED(counter_decremented_before_the_yielder,
       TASKS(GK_DO_WHILE(N), DOWN(N), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C), GK_END, HIT(D)),
       {0, "N=2 F=1 -> B=1 C=0 D=0 N=1, yielded FIRST, passes N=0"},
       {FIRST, "B=2 C=0 D=0 N=1, yielded FIRST, passes N=0"},
       {FIRST, "F=0 -> B=4 C=2 D=1 N=0, passes N=2"}) /* the resumed pass doesn't count down again */

TRACED(resume_past_finished_loop, TASKS(GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, GK_WHILE(M), HIT(B), DOWN(M), GK_END,
             HIT(C), GK_CHECKPOINT(FIRST, F), HIT(D), GK_END, HIT(E)),
       {0, "N=2 M=3 F=1 -> A=2 B=3 C=1 D=1 E=0, yielded FIRST, passes N=2 M=3"},
       /* armed again, both of them: they lie before the target */
       {FIRST, "F=0 N=7 M=8 -> A=2 B=3 C=1 D=2 E=1 N=7 M=8, passes N=0 M=0"})

TRACED(yield_then_sibling_loop_skipped, TASKS(GK_DO_WHILE(N), GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, DOWN(N), GK_END,
             GK_DO_WHILE(M), HIT(B), DOWN(M), GK_END, GK_WHILE(L), HIT(C), DOWN(L), GK_END),
       {0, "N=2 M=3 L=4 F=1 -> A=1 B=0 C=0 N=2 M=3 L=4, yielded FIRST, passes N=0 M=0 L=0"},
       {FIRST, "F=0 -> A=3 B=3 C=4, passes N=2 M=3 L=4"})

TRACED(nested_yield_in_inner, TASKS(NESTED),
       {0, "M=2 F=1 -> A=1 B=1 C=1 D=0 E=0 M=2 N=2, yielded FIRST, passes M=0 N=0, ran FIRST"},
       {FIRST, "F=0 -> A=2 B=4 C=5 D=2 E=1, passes M=2 N=4, ran FIRST SECOND"})

TRACED(nested_yield_in_outer_after_inner, TASKS(NESTED),
       {0, "M=2 G=1 -> A=1 B=2 C=2 D=1 E=0 M=2 N=0, yielded SECOND, passes M=0 N=2, ran FIRST SECOND"},
       /* the inner loop of this pass is over, and its flag isn't read */
       {SECOND, "G=0 N=9 -> A=2 B=4 C=4 D=3 E=1, passes M=2 N=2, ran FIRST SECOND"},
       {0, "M=2 F=1 N=9 -> A=3 B=5 C=5 D=3 E=1, yielded FIRST, passes M=0 N=0, ran FIRST"},
       {SECOND, "A=4 B=6 C=6 D=4 E=1, yielded FIRST, passes M=1 N=0, ran FIRST SECOND"}) /* not the yielder */

TRACED(resume_into_inner_of_third_level,
       TASKS(GK_DO_WHILE(L), HIT(A), SET(M, 2), GK_DO_WHILE(M), HIT(B), SET(N, 2), GK_DO_WHILE(N), HIT(C),
             GK_CHECKPOINT(FIRST, F), HIT(D), GK_END, DOWN(N), GK_END, DOWN(M), GK_END, DOWN(L), GK_END, HIT(E)),
       {FIRST, "L=2 M=1 N=1 -> A=1 B=2 C=4 D=5 E=1, passes L=2 M=3 N=5"}, /* as the first launch of all */
       {0, "L=2 F=1 -> A=2 B=3 C=5 D=6 E=1, yielded FIRST, passes L=0 M=0 N=0"},
       {FIRST, "F=0 -> A=3 B=6 C=12 D=14 E=2, passes L=2 M=4 N=8"})

TRACED(loop_inside_checkpoint, TASKS(HIT(A), GK_CHECKPOINT(FIRST, F), SET(N, 3), GK_DO_WHILE(N), HIT(B), DOWN(N),
             GK_END, HIT(C), GK_END, HIT(D)),
       {0, "F=1 -> A=1 B=3 C=1 D=0, yielded FIRST, passes N=3, ran FIRST"},
       {FIRST, "F=0 -> A=1 B=6 C=2 D=1, passes N=3, ran FIRST"}) /* the whole block again */

TRACED(checkpoint_in_if_in_loop, TASKS(GK_DO_WHILE(N), HIT(A), GK_IF(G), HIT(B), GK_CHECKPOINT(FIRST, F), HIT(C),
             GK_END, HIT(D), GK_END, DOWN(N), GK_END, HIT(E)),
       {0, "N=2 F=1 -> A=2 B=0 C=0 D=0 E=1, passes N=2, ran nothing"}, /* G is false: F isn't looked at */
       {0, "N=2 G=1 -> A=3 B=1 C=1 D=0 E=1, yielded FIRST, passes N=0, ran FIRST"},
       /* the branch is entered all the same, since the target is in it; in the next pass it counts */
       {FIRST, "F=0 G=0 -> A=4 B=1 C=2 D=1 E=2 N=0, passes N=2, ran FIRST"})

CASE(yield_every_pass) {
  int wanted = is_sweep(t) ? 8 : 100;
  GRAPH(s, GK_DO_WHILE(N, .label = OUTER), HIT(A), SET(F, 1), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C), DOWN(N),
        GK_END, HIT(D));
  put(s, N, wanted);
  const gk_status *status = launch(s, 0);
  uint64_t passes = gk_passes(status, OUTER);
  int resumes = 0;
  while (status->state == GK_YIELDED && resumes < 2 * wanted) {
    put(s, F, 0);
    ++resumes;
    status = launch(s, FIRST);
    passes += gk_passes(status, OUTER);
  }
  expect_int(t, resumes, wanted);
  expect_int(t, passes, wanted);
  holds(s, is_sweep(t) ? "A=8 B=16 C=8 D=1 N=0" : "A=100 B=200 C=100 D=1 N=0");
}
