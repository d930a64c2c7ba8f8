/* GK_REPEAT: where its count comes from, when it is read, and what waits of it for a resume. */
#include "letters.h"

enum number { U32 = 30, I64 };
static const gk_slot_desc numbers[] = {INT(A), INT(B), GK_OWN(N, int, 2), GK_DEFAULT(I, int, 3),
                                       GK_DEFAULT(U32, uint, 2), GK_DEFAULT(I64, int64_t, 4), GK_DEFAULT(ONE, int, 1)};

CASE(repeat_number_types) {
  GRAPH_OF(s, numbers, GK_REPEAT(I), HIT(A), GK_END, GK_REPEAT(U32), HIT(A), GK_END, GK_REPEAT(I64), HIT(A), GK_END,
           GK_REPEAT(N, .offset = 4), HIT(B), GK_END);
  trace(s, 0, "N[1]=5 N[0]=9 -> A=9 B=5, passes I=3 U32=2 I64=4 N=5");
}

TRACED(repeat_none_or_negative, TASKS(GK_REPEAT(I), HIT(A), GK_END, GK_REPEAT(N), HIT(B), GK_END, HIT(C)),
       {0, "I=0 N=0 -> A=0 B=0 C=1, passes I=0 N=0"},
       {0, "I=-1 N=-7 -> A=0 B=0 C=2, passes I=0 N=0"},
       {0, "I=-2147483648 N=-2147483648 -> A=0 B=0 C=3"},
       {0, "I=1 N=2 -> A=1 B=2 C=4, passes I=1 N=2"})

TRACED(repeat_constant, TASKS(GK_REPEAT(GK_ITEMS(8)), HIT(A), GK_END, GK_REPEAT(GK_ITEMS(1), .label = OUTER), GK_END),
       {0, "A=8, passes GK_ITEMS(8)=8 OUTER=1"},
       {0, "A=16"})

CASE(repeat_wider_than_32_bits) {
  GRAPH_OF(s, numbers, GK_REPEAT(I64, .max_iterations = 3), HIT(A), GK_END,
           GK_REPEAT(U32, .max_iterations = 2), HIT(B), GK_END);
  bind_int(s, I64, INT64_C(1) << 32);
  bind_int(s, U32, INT64_C(0xffffffff));
  trace(s, 0, "A=3 B=2, bound I64, passes I64=3 U32=2");
  bind_int(s, I64, -(INT64_C(1) << 32) + 5); /* its lower 32 bits are 5 */
  bind_int(s, U32, 1);
  trace(s, 0, "A=3 B=3, passes I64=0 U32=1");
}

/* Neither its body nor another loop in it changes an entry that has begun. The next entry reads anew. */
CASE(repeat_count_read_once) {
  GRAPH(s, SET(N, 3), GK_REPEAT(N), HIT(A), SET(N, 1), GK_END, GK_REPEAT(GK_ITEMS(3)), GK_REPEAT(N), HIT(B), DOWN(N),
        GK_END, HIT(N), HIT(N), GK_END);
  trace(s, 0, "A=3 B=5 N=2, passes N=3 GK_ITEMS(3)=3 N=5");
}

TRACED(repeat_count_waits_across_yields, TASKS(GK_REPEAT(N), HIT(A), GK_YIELD(FIRST), HIT(B), GK_END, HIT(C)),
       {0, "N=3 -> A=1 B=0 C=0, yielded FIRST, passes N=0"},
       {FIRST, "N=9 -> A=2 B=1, yielded FIRST, passes N=1"},
       {FIRST, "N=-1 -> A=3 B=2, yielded FIRST, passes N=1"},
       {FIRST, "A=3 B=3 C=1, passes N=1"})

/* The entry of the first loop has ended, so the resume behind reads nothing of it, and the one into it reads anew. */
TRACED(repeat_rebound_between_yield_and_resume,
       TASKS(GK_REPEAT(I), GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, HIT(B), GK_END, GK_YIELD(SECOND), HIT(C)),
       {0, "I=2 F=1 -> A=1 B=0, yielded FIRST, passes I=0"},
       {FIRST, "I=7 F=0 -> A=3 B=2, yielded SECOND, passes I=2"},
       {FIRST, "I=3 -> A=6 B=5, yielded SECOND, passes I=3"},
       {SECOND, "A=6 C=1, passes I=0"})

/* Of several REPEATs around the target, a waiting entry keeps its count, and the others read theirs. */
TRACED(repeat_first_launch_resumed_into,
       TASKS(GK_REPEAT(N), HIT(A), GK_REPEAT(I), HIT(B), GK_YIELD(FIRST), HIT(C), GK_END, HIT(D), GK_YIELD(SECOND),
             GK_END),
       {FIRST, "N=2 I=1 -> A=0 B=0 C=1 D=1, yielded SECOND, passes N=0 I=1"},
       {FIRST, "N=7 I=0 -> A=0 B=0 C=2 D=2, yielded SECOND, passes N=0 I=1"},
       {SECOND, "I=2 -> A=1 B=1 C=2 D=2, yielded FIRST, passes N=1 I=0"},
       {FIRST, "A=1 B=2 C=3, yielded FIRST, passes N=0 I=1"},
       {FIRST, "A=1 B=2 C=4 D=3, yielded SECOND, passes N=0 I=1"},
       {SECOND, "A=1, passes N=1"})

TRACED(repeat_before_the_target,
       TASKS(GK_REPEAT(N), HIT(A), GK_END, GK_DO_WHILE(M), GK_REPEAT(I), HIT(B), GK_END, GK_YIELD(FIRST), HIT(C),
             DOWN(M), GK_END),
       {FIRST, "N=2 M=2 I=3 -> A=0 B=3 C=1, yielded FIRST, passes N=0 M=1 I=3"},
       {FIRST, "A=0 B=3 C=2 M=0, passes M=1 I=0"})

/* It reads what an always-task in front has written, and before an always-task behind writes. */
TRACED(repeat_after_an_always_task,
       TASKS(GK_RUN_ALWAYS(set, GK_ONE, N, TWO), GK_REPEAT(N), HIT(A), GK_YIELD(FIRST), HIT(B), GK_END,
             GK_RUN_ALWAYS(set, GK_ONE, N, THREE)),
       {FIRST, "N=7 -> A=1 B=1 N=3, yielded FIRST, passes N=1"},
       {FIRST, "N=0 -> A=1 B=2, passes N=1"},
       {0, "N=0 -> A=2 B=2, yielded FIRST, passes N=0"})

/* The always-task in front of the second REPEAT stands behind the first. */
TRACED(repeat_between_always_tasks,
       TASKS(GK_RUN_ALWAYS(set, GK_ONE, N, ONE), GK_REPEAT(N), GK_YIELD(FIRST), HIT(A), GK_END,
             GK_RUN_ALWAYS(set, GK_ONE, N, THREE), GK_REPEAT(N), GK_YIELD(SECOND), HIT(B), GK_END),
       {SECOND, "A=0 B=1, yielded SECOND, passes N=0 N=1"},
       {FIRST, "A=1 B=1, yielded SECOND, passes N=1 N=0"},
       {SECOND, "A=1 B=2, yielded SECOND, passes N=0 N=1"})

TRACED(repeat_bound, TASKS(GK_REPEAT(N, .max_iterations = 3), HIT(A), GK_YIELD(FIRST), GK_END),
       {0, "N=3 -> A=1, yielded FIRST"}, {FIRST, "A=2, yielded FIRST"}, {FIRST, "A=3, yielded FIRST"},
       {FIRST, "A=3, passes N=1"},
       {0, "N=4 -> A=4, yielded FIRST"}, {FIRST, "N=0 -> A=5, yielded FIRST"}, {FIRST, "A=6, yielded FIRST"},
       {FIRST, "A=6, passes N=1, bound N"})

TRACED(repeat_in_repeat,
       TASKS(GK_REPEAT(GK_ITEMS(3)), HIT(N), GK_REPEAT(N), HIT(A), GK_REPEAT(I), GK_END, GK_END, GK_END),
       {0, "I=2 -> A=6 N=3, passes GK_ITEMS(3)=3 N=6 I=12"})

TRACED(repeat_in_sections,
       TASKS(PARALLEL(SECTION(GK_REPEAT(N), HIT(A), GK_REPEAT(GK_ITEMS(2)), HIT(B), GK_END, GK_END),
                      SECTION(GK_REPEAT(I, .max_iterations = 2), HIT(C), GK_END),
                      SECTION(GK_REPEAT(M, .max_iterations = 1), HIT(D), GK_END))),
       {0, "N=3 I=2 M=2 -> A=3 B=6 C=2 D=1, bound M, passes N=3 GK_ITEMS(2)=6 I=2 M=1"},
       {0, "N=0 I=9 M=1 -> A=3 B=6 C=4 D=2, bound I"})

/* A block that runs again reads anew. */
TRACED(repeat_in_checkpoint, TASKS(GK_CHECKPOINT(FIRST, F), GK_REPEAT(N), HIT(A), GK_END, GK_END, HIT(B)),
       {0, "N=2 F=1 -> A=2 B=0, yielded FIRST, passes N=2"},
       {FIRST, "N=3 F=0 -> A=5 B=1, passes N=3"})

TRACED(repeat_fresh_after_ignored_yield, TASKS(GK_REPEAT(N), HIT(A), GK_YIELD(FIRST), GK_END),
       {0, "N=5 -> A=1, yielded FIRST"},
       {0, "N=1 -> A=2, yielded FIRST"},
       {FIRST, "N=9 -> A=2, passes N=1"})

TRACED(repeat_branches,
       TASKS(GK_IF(F), GK_REPEAT(N), GK_SWITCH(K), GK_CASE, HIT(A), GK_END, GK_CASE, HIT(B), GK_YIELD(FIRST), GK_END,
             GK_END, HIT(K), GK_END, GK_END, GK_REPEAT(I), GK_WHILE(M), HIT(C), DOWN(M), GK_END, HIT(M), GK_END),
       {0, "F=1 N=3 I=3 M=2 -> A=1 B=1 K=1 C=0, yielded FIRST, passes N=1 I=0"},
       {FIRST, "F=0 -> A=1 B=1 K=3 C=4 M=1, passes N=2 I=3 M=4"})

/* Where a backend writes a body out several times: as often as the count says, in a loop that remains, and not at all.
 * A loop in the second pass of the one around it hits its bound after those behind it in the first pass. */
TRACED(repeat_copies_and_counts_alike,
       TASKS(GK_REPEAT(GK_ITEMS(64)), HIT(A), GK_END, GK_REPEAT(GK_ITEMS(67)), HIT(A), GK_END, GK_YIELD(FIRST),
             GK_DO_WHILE(L), GK_REPEAT(GK_ITEMS(2)), PARALLEL(SECTION(HIT(B)), SECTION(HIT(C), HIT(C))), GK_END,
             GK_IF(F), GK_REPEAT(GK_ITEMS(5), .max_iterations = 4), HIT(D), GK_END, GK_END, SET(F, 1), DOWN(L), GK_END,
             GK_REPEAT(GK_ITEMS(100), .max_iterations = 70), HIT(E), HIT(K), GK_END,
             GK_CHECKPOINT(SECOND, G), GK_REPEAT(GK_ITEMS(3)), HIT(M), GK_END, GK_END),
       {0, "A=131, yielded FIRST, passes GK_ITEMS(64)=64 GK_ITEMS(67)=67"},
       {FIRST, "L=2 G=1 -> A=131 B=4 C=8 D=4 E=70 K=70 M=3, yielded SECOND, passes GK_ITEMS(64)=0 GK_ITEMS(67)=0 "
               "GK_ITEMS(2)=4 GK_ITEMS(5)=4 GK_ITEMS(100)=70 GK_ITEMS(3)=3, bound GK_ITEMS(5)"},
       {SECOND, "G=0 -> A=131 E=70 M=6, passes GK_ITEMS(100)=0 GK_ITEMS(3)=3"})

/* Empty ones. */
TRACED(repeat_nothing,
       TASKS(GK_REPEAT(GK_ITEMS(70)), GK_END, GK_REPEAT(I, .max_iterations = 90), GK_END,
             GK_REPEAT(GK_ITEMS(3), .max_iterations = 2), GK_PARALLEL, GK_SECTION, GK_END, GK_END, GK_END, GK_WHILE(L),
             GK_REPEAT(GK_ITEMS(2)), GK_END, DOWN(L), GK_END),
       {0, "I=80 L=3 -> L=0, passes GK_ITEMS(70)=70 I=80 GK_ITEMS(3)=2 GK_ITEMS(2)=6, bound GK_ITEMS(3)"},
       {0, "I=91 -> L=0, passes I=90 GK_ITEMS(2)=0, bound I"},
       {0, "I=0 -> L=0, passes I=0, bound GK_ITEMS(3)"})

CASE(repeat_refused) {
  enum { REALS = 60, REAL };
  static const gk_task none[] = {GK_REPEAT(0), GK_END};
  static const gk_task unknown[] = {GK_REPEAT(99), GK_END};
  static const gk_task typed[] = {GK_REPEAT(REAL), GK_END};
  static const gk_task elements[] = {GK_REPEAT(REALS), GK_END};
  static const gk_task aligned[] = {GK_REPEAT(N, .offset = 2), GK_END};
  static const gk_task offset[] = {GK_REPEAT(GK_ITEMS(2), .offset = 4), GK_END};
  static const gk_slot_desc slots[] = {INT(N), GK_BUFFER(REALS, float), GK_SCALAR(REAL, double)};
  refuses_list(t, LIST_OF(none, slots), "count-missing", 0, "GK_ITEMS(n)");
  refuses_list(t, LIST_OF(unknown, slots), "count-unknown", 0, "slot 99|GK_ITEMS(99)");
  refuses_list(t, LIST_OF(typed, slots), "count-type", 0, "GK_F64");
  refuses_list(t, LIST_OF(elements, slots), "count-element", 0, "float");
  refuses_list(t, LIST_OF(aligned, slots), "offset-unaligned", 0, ".offset is 2");
  refuses_list(t, LIST_OF(offset, slots), "field-unused", 0, ".offset|unless a GK_PTR has its count");
}

/* A launch is refused without its count, or if that lies beyond memory of known size. */
CASE(repeat_needs_its_count) {
  static const gk_slot_desc slots[] = {INT(A), GK_SCALAR(I, int), GK_DEFAULT(ONE, int, 1)};
  GRAPH_OF(s, slots, GK_REPEAT(I), HIT(A), GK_END);
  GRAPH(beyond, GK_REPEAT(N, .offset = 4096), HIT(A), GK_END);
  refuses(t, GK_ERROR_INVALID, "slot|(I)|REPEAT|gk_bind_int", gk_launch(graph(s), 0));
  refuses(t, GK_ERROR_INVALID, "slot|(N)|REPEAT", gk_launch(graph(beyond), 0));
}
