/* GK_PASS: the pass number of a loop, and what waits of it for a resume. APPEND makes a number's decimal digits of
 * pass numbers, in their order. */
#include "letters.h"

enum pass { PASS = 40, OF_MIDDLE, OF_INNER, AGAIN };
#define LETTERS INT(A), INT(B), INT(C), INT(D), INT(E), INT(F), INT(G), INT(L), INT(M), INT(N), GK_OWN(W, int, 4)
static const gk_slot_desc one_loop[] = {GK_PASS(PASS, OUTER), LETTERS, GK_DEFAULT(I, int, 2)};
static const gk_slot_desc two_loops[] = {LETTERS, GK_PASS(PASS, OUTER), GK_PASS(OF_INNER, INNER)};
static const gk_slot_desc three_loops[] = {LETTERS, GK_PASS(PASS, OUTER), GK_PASS(OF_MIDDLE, MIDDLE),
                                           GK_PASS(OF_INNER, INNER)};
#define APPEND(x, digit) GK_RUN(append, GK_ONE, x, digit)

#define PASSES(name, slots, tasks, ...) \
  CASE(name) { \
    static const gk_task tasks_[] = tasks; \
    static const launch_trace launches_[] = {__VA_ARGS__}; \
    subject *s = graph_of(t, LIST_OF(tasks_, slots), 0); \
    for (size_t k = 0; k < GK_COUNT(launches_); ++k) trace(s, launches_[k].label, launches_[k].wanted); \
  }

PASSES(golden_pass_as_count, one_loop,
       TASKS(GK_REPEAT(GK_ITEMS(4), .label = OUTER), GK_COPY(G, PASS, GK_ONE), GK_REPEAT(G), HIT(A), GK_END, GK_END),
       {0, "A=6 G=3, passes OUTER=4 G=6"})

PASSES(golden_pass_in_a_block_again, one_loop,
       TASKS(GK_REPEAT(GK_ITEMS(3), .label = OUTER), ADD_TO(A, PASS), GK_CHECKPOINT(FIRST, F),
             GK_RUN(assign, GK_ONE, B, PASS), HIT(C), GK_END, GK_IF(PASS), HIT(L), GK_END, GK_END),
       {0, "F=1 B=9 -> A=0 B=0 C=1 L=0, yielded FIRST, passes OUTER=0"},
       {FIRST, "F=1 B=9 -> A=0 B=0 C=2 L=0, yielded FIRST, passes OUTER=0"},
       {FIRST, "F=0 -> A=3 B=2 C=5 L=2, passes OUTER=3"})

PASSES(golden_pass_in_a_fresh_launch, one_loop,
       TASKS(GK_DO_WHILE(N, .label = OUTER), GK_RUN(assign, GK_ONE, A, PASS), DOWN(N), GK_IF(PASS), GK_YIELD(FIRST),
             GK_END, GK_END),
       {0, "N=5 -> A=1 N=3, yielded FIRST, passes OUTER=1"},
       {0, "N=1 -> A=0 N=0, passes OUTER=1"})

PASSES(pass_in_each_kind_of_loop, three_loops,
       TASKS(GK_DO_WHILE(N, .label = OUTER), APPEND(A, PASS), DOWN(N), GK_END, GK_WHILE(M, .label = MIDDLE),
             APPEND(B, OF_MIDDLE), DOWN(M), GK_END, GK_REPEAT(GK_ITEMS(3), .label = INNER), APPEND(C, OF_INNER),
             GK_END),
       {0, "A=7 B=7 C=7 N=3 M=2 -> A=7012 B=701 C=7012"},
       {0, "N=1 M=0 -> A=70120 B=701 C=7012012"},
       {0, "A=7 B=7 C=7 N=2 M=3 -> A=701 B=7012 C=7012"})

PASSES(pass_outer_and_inner, two_loops,
       TASKS(GK_REPEAT(GK_ITEMS(2), .label = OUTER), APPEND(A, PASS), GK_DO_WHILE(N, .label = INNER), APPEND(A, PASS),
             APPEND(A, OF_INNER), DOWN(N), GK_END, APPEND(B, PASS), SET(N, 2), GK_END),
       {0, "A=9 B=7 N=1 -> A=900011011 B=701, passes OUTER=2 INNER=3"},
       {0, "A=0 B=7 N=2 -> A=111011 B=701, passes OUTER=2 INNER=4"}) /* 0 00 01 1 10 11 */

PASSES(pass_as_items_flag_and_count, one_loop,
       TASKS(GK_REPEAT(GK_ITEMS(3), .label = OUTER), GK_RUN(count, PASS, W), GK_IF(PASS), HIT(A), GK_ELSE, HIT(B),
             GK_END, GK_SWITCH(PASS), GK_CASE, HIT(C), GK_END, GK_CASE, HIT(D), GK_END, GK_END, GK_REPEAT(PASS), HIT(E),
             GK_END, GK_WHILE(PASS, .max_iterations = 2), HIT(F), GK_END, GK_COPY(G, PASS, GK_ONE), GK_END,
             GK_REPEAT(I), GK_END),
       {0, "A=2 B=1 C=1 D=1 E=3 F=4 G=2 W=2 W[1]=1 W[2]=0, bound PASS, passes OUTER=3 PASS=3 PASS=4"})

/* COPY and FILL over as many elements. */
PASSES(pass_as_elements, one_loop,
       TASKS(GK_REPEAT(GK_ITEMS(3), .label = OUTER), GK_FILL(W, GK_ITEMS(4), 0), GK_FILL(W, PASS, 5), ADD_TO(A, W),
             GK_RUN(total, GK_ITEMS(4), W, B), GK_COPY(D, W, GK_ONE), GK_END),
       {0, "A=10 B=15 W[1]=5 W[2]=0 D=5"})

PASSES(pass_through_a_yield, two_loops,
       TASKS(GK_REPEAT(GK_ITEMS(3), .label = OUTER), APPEND(A, PASS), GK_YIELD(FIRST), APPEND(B, PASS), GK_END,
             GK_DO_WHILE(N, .label = INNER), APPEND(C, OF_INNER), GK_YIELD(SECOND), APPEND(D, OF_INNER), DOWN(N),
             GK_END),
       {0, "A=7 B=7 C=7 D=7 N=2 -> A=70 B=7, yielded FIRST"},
       {FIRST, "A=701 B=70, yielded FIRST"},
       {FIRST, "A=7012 B=701 C=7, yielded FIRST"},
       {FIRST, "A=7012 B=7012 C=70 D=7, yielded SECOND, passes OUTER=1"},
       {SECOND, "C=701 D=70, yielded SECOND, passes INNER=1"},
       {SECOND, "C=701 D=701 N=0, passes INNER=1"})

/* The numbers of the loops around wait, and an inner loop that is reached again begins at 0. */
PASSES(pass_in_nested_loops_through_yields, three_loops,
       TASKS(GK_DO_WHILE(N, .label = OUTER), GK_REPEAT(GK_ITEMS(2), .label = MIDDLE), APPEND(A, PASS),
             APPEND(A, OF_MIDDLE), SET(M, 2), GK_DO_WHILE(M, .label = INNER), APPEND(B, OF_INNER), GK_YIELD(FIRST),
             APPEND(C, PASS), APPEND(C, OF_MIDDLE), APPEND(C, OF_INNER), DOWN(M), GK_END, GK_END, SET(C, 9), DOWN(N),
             GK_END),
       {0, "A=9 B=9 C=9 N=2 -> A=900 B=90 C=9, yielded FIRST"},
       {FIRST, "A=900 B=901 C=9000, yielded FIRST"},
       {FIRST, "A=90001 B=9010 C=9000001, yielded FIRST"},
       {FIRST, "B=90101 C=9 -> A=90001 B=901011 C=9010, yielded FIRST"},
       {FIRST, "A=9000110 B=9010110 C=9, yielded FIRST, passes OUTER=1 MIDDLE=1 INNER=1"},
       {FIRST, "C=9100, yielded FIRST"})

PASSES(pass_block_again_sees_the_same, one_loop,
       TASKS(GK_DO_WHILE(N, .label = OUTER), GK_CHECKPOINT(FIRST, F), APPEND(A, PASS), GK_END, APPEND(B, PASS), DOWN(N),
             GK_END),
       {0, "A=7 B=7 N=2 F=1 -> A=70 B=7, yielded FIRST"},
       {FIRST, "F=1 -> A=700 B=7, yielded FIRST"},
       {FIRST, "F=0 -> A=70001 B=701, passes OUTER=2"})

PASSES(pass_fresh_after_ignored_yield, two_loops,
       TASKS(GK_DO_WHILE(N, .label = OUTER), APPEND(A, PASS), GK_DO_WHILE(M, .label = INNER), APPEND(B, OF_INNER),
             DOWN(M), GK_CHECKPOINT(FIRST, F), GK_END, GK_IF(PASS), GK_YIELD(SECOND), GK_END, GK_END, SET(M, 2),
             DOWN(N), GK_END),
       {0, "A=7 B=7 N=3 M=2 -> A=701 B=7010, yielded SECOND, passes OUTER=1 INNER=2"},
       {SECOND, "B=7 -> A=701 B=71, yielded SECOND, passes INNER=1"},
       {0, "A=7 B=7 N=1 M=3 -> A=70 B=7012, passes OUTER=1 INNER=3"},
       {0, "A=7 B=7 N=2 M=2 F=1 -> A=70 B=70, yielded FIRST"},
       {0, "A=7 B=7 N=1 M=2 F=0 -> A=70 B=701"})

PASSES(pass_first_launch_resumed, three_loops,
       TASKS(GK_REPEAT(GK_ITEMS(2), .label = OUTER), GK_WHILE(M, .label = MIDDLE), GK_DO_WHILE(N, .label = INNER),
             APPEND(A, OF_INNER), GK_YIELD(FIRST), APPEND(B, PASS), APPEND(B, OF_MIDDLE), APPEND(B, OF_INNER), DOWN(N),
             GK_END, SET(N, 1), DOWN(M), GK_END, SET(M, 1), GK_END),
       {FIRST, "A=7 B=7 N=2 M=2 -> A=71 B=7000, yielded FIRST"},
       {FIRST, "B=7 -> A=710 B=7001, yielded FIRST, passes MIDDLE=1 INNER=1"},
       {FIRST, "B=7 -> A=7100 B=7010, yielded FIRST, passes OUTER=1"},
       {FIRST, "B=7 -> A=7100 B=7100, passes OUTER=1"},
       {FIRST, "A=7 B=7 N=1 M=1 -> A=70 B=7000, yielded FIRST"}) /* all entries had ended */

PASSES(pass_in_sections, three_loops,
       TASKS(GK_REPEAT(GK_ITEMS(2), .label = OUTER),
             PARALLEL(SECTION(APPEND(A, PASS), APPEND(A, PASS)),
                      SECTION(GK_DO_WHILE(N, .label = MIDDLE), APPEND(B, PASS), APPEND(B, OF_MIDDLE), DOWN(N), GK_END),
                      SECTION(GK_REPEAT(GK_ITEMS(3), .label = INNER), APPEND(C, OF_INNER), GK_IF(PASS), HIT(D), GK_END,
                              GK_END)),
             SET(N, 2), GK_END),
       {0, "A=7 B=7 C=7 N=1 -> A=70011 B=7001011 C=7012012 D=3, passes MIDDLE=3 INNER=6"})

/* A label is what it is in the table's own list. Handed on, a pass number is an int like others. */
CASE(pass_in_included_lists) {
  enum { TO = 1, COUNT, OTHER, OWN, LOOP = 1 };
  static const gk_slot_desc inner_slots[] = {GK_BUFFER(TO, int), GK_BUFFER(COUNT, int), GK_BUFFER(OTHER, int),
                                             GK_PASS(OWN, LOOP)};
  static const gk_task inner_tasks[] = {GK_REPEAT(COUNT, .label = LOOP), APPEND(TO, OWN), GK_IF(OTHER),
                                        APPEND(TO, OTHER), GK_END, GK_END};
  static const gk_list inner = GK_LIST(inner, inner_tasks, inner_slots);
  enum { OF_INCLUDED = 2, LAST };
  static const gk_slot_desc middle_slots[] = {GK_BUFFER(TO, int), GK_PASS(OF_INCLUDED, 100 + LOOP),
                                              GK_OWN(LAST, int, 1)};
  static const gk_task middle_tasks[] = {SET(LAST, 3), GK_INCLUDE(inner, 100, TO, LAST, OF_INCLUDED)};
  static const gk_list middle = GK_LIST(middle, middle_tasks, middle_slots);
  GRAPH_OF(s, one_loop, GK_DO_WHILE(N, .label = OUTER), GK_INCLUDE_AS(first, inner, 20, A, PASS, PASS), DOWN(N), GK_END,
           GK_INCLUDE_AS(second, inner, 30, B, M, G), GK_INCLUDE_AS(third, middle, 40, C),
           GK_INCLUDE_AS(given, inner, 300, D, M, F, E));
  trace(s, 0, "A=7 B=7 C=7 D=7 E=4 N=3 M=2 -> A=7010212 B=701 C=701122 D=744 third.LAST=3");
  refuses(t, GK_ERROR_INVALID, "(third.OF_INCLUDED) is the pass number of third.inner.LOOP, which only gk writes",
          gk_bind(graph(s), gk_find_slot(graph(s), "third.OF_INCLUDED"), NULL));
}

CASE(pass_two_slots) {
  static const gk_slot_desc slots[] = {LETTERS, GK_PASS(PASS, OUTER), GK_PASS(AGAIN, OUTER)};
  GRAPH_OF(s, slots, GK_WHILE(N, .label = OUTER), GK_RUN(agree, GK_ONE, A, PASS, AGAIN), APPEND(B, AGAIN), DOWN(N),
           GK_END);
  trace(s, 0, "B=7 N=3 -> A=3 B=7012");
}

CASE(pass_is_not_bound) {
  GRAPH_OF(s, one_loop, GK_REPEAT(GK_ITEMS(2), .label = OUTER), APPEND(A, PASS), GK_END);
  const char *words = "slot 40 (PASS) is the pass number of OUTER, which only gk writes, and only lines in that loop "
                      "read; name another slot, or keep the number in one by GK_COPY";
  int value = 0;
  refuses(t, GK_ERROR_INVALID, words, gk_bind(graph(s), PASS, &value));
  launch_refused(s, 0, "a call before it failed|the pass number of OUTER");
  refuses(t, GK_ERROR_INVALID, words, gk_resize(graph(s), PASS, 1));
  launch_refused(s, 0, "gk_resize|the pass number of OUTER");
  refuses(t, GK_ERROR_INVALID, words, gk_bind_int(graph(s), PASS, 1));
  launch_refused(s, 0, "gk_bind_int|the pass number of OUTER");
  refuses(t, GK_ERROR_INVALID, words, gk_read(graph(s), PASS, &value, 1));
  refuses(t, GK_ERROR_INVALID, words, gk_write(graph(s), PASS, &value, 1));
  expect(t, !gk_bound(graph(s), PASS), "the address of a pass number is known");
  trace(s, 0, "A=7 -> A=701");
}

/* Lists share a table of slots; one has no loop with that label and doesn't use the number. */
CASE(pass_in_a_shared_table) {
  GRAPH_OF(without, one_loop, GK_REPEAT(GK_ITEMS(2), .label = INNER), HIT(A), GK_END);
  trace(without, 0, "A=2");
  GRAPH_OF(with, one_loop, GK_REPEAT(GK_ITEMS(2), .label = OUTER), APPEND(A, PASS), GK_END);
  trace(with, 0, "A=7 -> A=701");
}

/* It is one int, as a launch sees. */
CASE(pass_has_four_bytes) {
  GRAPH_OF(s, one_loop, GK_REPEAT(GK_ITEMS(2), .label = OUTER), GK_IF(PASS, .offset = 4), HIT(A), GK_END, GK_END);
  launch_refused(s, 0, "slot 40 (PASS) has 4 bytes|touches byte 7");
  GRAPH_OF(copy, one_loop, GK_REPEAT(GK_ITEMS(3), .label = OUTER), GK_COPY(W, PASS, PASS), GK_END);
  launch_fails(copy, 0, "task 1|2 elements|PASS");
}

/* Its memory is one int, also by what an included list is given. */
CASE(pass_has_room) {
  enum { FROM = 1, TO, ROOM };
  static const gk_slot_desc inner_slots[] = {GK_BUFFER(FROM, int), GK_BUFFER(TO, int), GK_ROOM(ROOM, FROM)};
  static const gk_task inner_tasks[] = {GK_RUN(count, ROOM, TO)};
  static const gk_list inner = GK_LIST(inner, inner_tasks, inner_slots);
  static const gk_slot_desc with_room[] = {GK_PASS(PASS, OUTER), LETTERS, GK_ROOM(I, PASS)};
  static const gk_task tasks[] = {GK_REPEAT(GK_ITEMS(3), .label = OUTER), GK_RUN(count, I, W),
                                  GK_INCLUDE_AS(given, inner, 0, PASS, A), GK_END};
  subject *s = graph_of(t, LIST_OF(tasks, with_room), 0);
  trace(s, 0, "W=3 W[1]=0 A=3");
}

CASE(pass_refused) {
  static const gk_slot_desc unlabelled[] = {LETTERS, GK_PASS(PASS, 0)};
  static const gk_slot_desc typed[] = {
      LETTERS, {.slot = PASS, .type = GK_I32, .name = "PASS", .bits = GK_IS_PASS, .value = {.i32 = OUTER}}};
  static const gk_task around[] = {GK_REPEAT(PASS, .label = OUTER), APPEND(A, PASS), GK_END};
  static const gk_task flag[] = {GK_DO_WHILE(PASS, .label = OUTER), GK_END};
  static const gk_task behind[] = {GK_REPEAT(GK_ITEMS(2), .label = OUTER), GK_END, APPEND(A, PASS)};
  static const gk_task items[] = {GK_REPEAT(GK_ITEMS(2), .label = OUTER), GK_END, GK_RUN(count, PASS, A)};
  static const gk_task other[] = {GK_REPEAT(GK_ITEMS(2), .label = INNER), APPEND(A, PASS), GK_END};
  static const gk_task target[] = {GK_TARGET(OUTER), APPEND(A, PASS), GK_END};
  static const gk_task written[] = {GK_REPEAT(GK_ITEMS(2), .label = OUTER), HIT(PASS), GK_END};
  static const gk_task copied[] = {GK_REPEAT(GK_ITEMS(2), .label = OUTER), GK_COPY(PASS, A, GK_ONE), GK_END};
  static const gk_task filled[] = {GK_REPEAT(GK_ITEMS(2), .label = OUTER), SET(PASS, 1), GK_END};
  static const gk_task yields[] = {GK_REPEAT(GK_ITEMS(2), .label = OUTER), GK_CHECKPOINT(FIRST, PASS), GK_END, GK_END};
  refuses_list(t, LIST_OF(around, one_loop), "pass-outside", 0,
               "its count is slot 40 (PASS)|REPEAT OUTER|move this line in");
  refuses_list(t, LIST_OF(flag, one_loop), "pass-outside", 0, "its flag is slot 40 (PASS)");
  refuses_list(t, LIST_OF(behind, one_loop), "pass-outside", 2, "its argument digit is slot 40 (PASS)");
  refuses_list(t, LIST_OF(items, one_loop), "pass-outside", 2, "its number of items is slot 40 (PASS)");
  refuses_list(t, LIST_OF(other, one_loop), "pass-label", 1, "slot 40 (PASS)|the loop 11|no such loop");
  refuses_list(t, LIST_OF(target, one_loop), "pass-label", 1, "slot 40 (PASS)|the loop 11");
  refuses_list(t, LIST_OF(other, unlabelled), "pass-label", 1, "slot 40 (PASS)|the loop 0");
  refuses_list(t, LIST_OF(around, typed), "pass-type", SIZE_MAX, "slot 40 (PASS)|GK_PASS");
  refuses_list(t, LIST_OF(written, one_loop), "pass-written", 1, "its argument x is slot 40 (PASS)|`in` parameter");
  refuses_list(t, LIST_OF(copied, one_loop), "pass-written", 1, "its argument to is slot 40 (PASS)");
  refuses_list(t, LIST_OF(filled, one_loop), "pass-written", 1, "its argument to is slot 40 (PASS)");
  refuses_list(t, LIST_OF(yields, one_loop), "pass-checkpoint", 1, "its flag is slot 40 (PASS)|GK_YIELD into a GK_IF");
}

static gk_result do_nothing(const gk_value *args, void *native) { return (void)args, (void)native, GK_OK; }

CASE(pass_refused_for_calls) {
  static const gk_task call[] = {GK_REPEAT(GK_ITEMS(2), .label = OUTER), GK_CALL(do_nothing, A, PASS), GK_END};
  static const gk_task host[] = {GK_REPEAT(GK_ITEMS(2), .label = OUTER), GK_CALL_HOST(do_nothing, PASS), GK_END};
  refuses_list(t, LIST_OF(call, one_loop), "pass-call", 1, "its argument 1 is slot 40 (PASS)|copy it to other memory");
  refuses_list(t, LIST_OF(host, one_loop), "pass-call", 1, "its argument 0 is slot 40 (PASS)");
}
