/* Checkpoints in a row: which yield, what a resume skips, what the host is told. */
#include "letters.h"
#include <limits.h>
#include <string.h>

#define ONE_CHECKPOINT HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C)
#define TWO_CHECKPOINTS ONE_CHECKPOINT, GK_CHECKPOINT(SECOND, G), HIT(D), GK_END, HIT(E)

TRACED(no_yield, TASKS(TWO_CHECKPOINTS),
       {0, "A=1 B=1 C=1 D=1 E=1, ran FIRST SECOND"},
       {0, "A=2 B=2 C=2 D=2 E=2, ran FIRST SECOND"})

TRACED(yields_when_flag_set, TASKS(ONE_CHECKPOINT),
       {0, "F=1 -> A=1 B=1 C=0, yielded FIRST, ran FIRST"},
       {0, "F=-2147483648 -> A=2 B=2 C=0, yielded FIRST, ran FIRST"}, /* any number but zero is true */
       {0, "F=0x10000 -> A=3 B=3 C=0, yielded FIRST, ran FIRST"})

TRACED(first_yielder_wins, TASKS(TWO_CHECKPOINTS),
       {0, "F=1 G=1 -> A=1 B=1 C=0 D=0 E=0, yielded FIRST, ran FIRST"},
       {FIRST, "F=0 -> A=1 B=2 C=1 D=1 E=0, yielded SECOND, ran FIRST SECOND"},
       {SECOND, "G=0 -> A=1 B=2 C=1 D=2 E=1, ran SECOND"})

CASE(flag_not_cleared_by_gk) {
  GRAPH(s, ONE_CHECKPOINT);
  trace(s, 0, "F=7 -> B=1 C=0 F=7, yielded FIRST");
  for (int again = 2; again < 6; ++again) {
    const gk_status *status = launch(s, FIRST);
    expect_int(t, status->yielded, FIRST);
    expect_int(t, get(s, B), again);
    expect_int(t, get(s, F), 7);
  }
  trace(s, FIRST, "F=-7 -> A=1 B=6 C=0 F=-7, yielded FIRST");
}

TRACED(resume_skips_before, TASKS(HIT(A), SET(Y, 9), GK_COPY(Z, Y, GK_ONE), GK_IF(G), HIT(D), GK_ELSE, HIT(E), GK_END,
             GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C)),
       {0, "F=1 -> A=1 B=1 C=0 D=0 E=1 Y=9 Z=9, yielded FIRST"},
       /* the branch before isn't looked at any more */
       {FIRST, "F=0 G=1 Y=5 Z=4 -> A=1 B=2 C=1 D=0 E=1 Y=5 Z=4, ran FIRST"})

TRACED(resume_from_later_label, TASKS(TWO_CHECKPOINTS),
       {0, "F=1 -> A=1 B=1 C=0 D=0 E=0, yielded FIRST"},
       {SECOND, "A=1 B=1 C=0 D=1 E=1, ran SECOND"}) /* F is still set, and belongs to what is skipped */

TRACED(resume_from_earlier_label, TASKS(TWO_CHECKPOINTS),
       {0, "G=1 -> A=1 B=1 C=1 D=1 E=0, yielded SECOND, ran FIRST SECOND"},
       {FIRST, "G=0 -> A=1 B=2 C=2 D=2 E=1, ran FIRST SECOND"})

TRACED(resume_without_yield, TASKS(TWO_CHECKPOINTS),
       {0, "A=1 B=1 C=1 D=1 E=1"},
       {SECOND, "A=1 B=1 C=1 D=2 E=2, ran SECOND"},
       {SECOND, "A=1 B=1 C=1 D=3 E=3, ran SECOND"},
       {FIRST, "A=1 B=2 C=2 D=4 E=4, ran FIRST SECOND"},
       {0, "A=2 B=3 C=3 D=5 E=5, ran FIRST SECOND"}) /* nothing is left of the target before */

TRACED(resume_is_first_launch, TASKS(TWO_CHECKPOINTS),
       {SECOND, "A=0 B=0 C=0 D=1 E=1, ran SECOND"},
       {0, "A=1 B=1 C=1 D=2 E=2, ran FIRST SECOND"})

CASE(unknown_label) {
  GRAPH(s, GK_DO_WHILE(N, .label = OUTER), GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, GK_END, GK_TARGET(SECOND), HIT(B),
        GK_END);
  GRAPH(without, HIT(A));
  refuses(t, GK_ERROR_INVALID, "no checkpoint or YIELD with label 77|FIRST (1)|SECOND (2)", gk_launch(graph(s), 77));
  refuses(t, GK_ERROR_INVALID, "label 11|FIRST (1)|SECOND (2)", gk_launch(graph(s), OUTER)); /* a loop is no target */
  refuses(t, GK_ERROR_INVALID, "label -1", gk_launch(graph(s), -1));
  refuses(t, GK_ERROR_INVALID, "label 1|none", gk_launch(graph(without), FIRST));
  trace(s, 0, "A=1 B=1, passes OUTER=1, ran FIRST SECOND"); /* nothing of it stays */
  trace(without, 0, "A=1");
}

CASE(duplicate_label) {
  static const gk_task twice[] = {GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, GK_TARGET(FIRST), HIT(B), GK_END};
  static const gk_task of_a_loop[] = {GK_DO_WHILE(N, .label = FIRST), GK_TARGET(FIRST), HIT(B), GK_END, GK_END};
  refuses_list(t, LIST_OF(twice, letters), "label-reused", 3, "label 1|task 0 (CHECKPOINT FIRST)");
  refuses_list(t, LIST_OF(of_a_loop, letters), "label-reused", 1, "label 1");
}

TRACED(fresh_after_ignored_yield, TASKS(TWO_CHECKPOINTS),
       {0, "F=1 -> A=1 B=1 C=0 D=0 E=0, yielded FIRST"},
       {0, "F=0 -> A=2 B=2 C=1 D=1 E=1, ran FIRST SECOND"})

CASE(host_loop_yield_resume) {
  static const gk_slot flags[] = {F, G, H};
  GRAPH(s, GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, GK_CHECKPOINT(SECOND, G), HIT(B), GK_END, GK_CHECKPOINT(THIRD, H),
        HIT(C), GK_END, HIT(D));
  for (int k = 0; k < 3; ++k) put(s, flags[k], 1);
  const gk_status *status = launch(s, 0);
  int stages = 0;
  for (; status->state == GK_YIELDED && stages < 10; ++stages) {
    int32_t label = status->yielded;
    expect_int(t, label, FIRST + stages);
    put(s, flags[label - FIRST], 0);
    status = launch(s, label);
  }
  expect_int(t, stages, 3);
  holds(s, "A=2 B=2 C=2 D=1");
}

TRACED(shared_flag_two_checkpoints, TASKS(GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, GK_IF(G), SET(F, 1), GK_END,
             GK_CHECKPOINT(SECOND, F), HIT(B), GK_END, HIT(C)),
       {0, "F=1 -> A=1 B=0 C=0, yielded FIRST, ran FIRST"},
       {FIRST, "F=0 -> A=2 B=1 C=1, ran FIRST SECOND"},
       {0, "G=1 -> A=3 B=2 C=1, yielded SECOND, ran FIRST SECOND"}, /* between the two, the list sets it itself */
       {SECOND, "A=3 B=3 C=1, yielded SECOND, ran SECOND"},
       {SECOND, "F=0 -> A=3 B=4 C=2, ran SECOND"})

CASE(flag_buffer_rebound_before_resume) {
  GRAPH(s, GK_CHECKPOINT(FIRST, P), HIT(A), GK_END, HIT(B));
  buffer *raised = buffer_of(t, 1), *clear = buffer_of(t, 1);
  buffer_put(raised, 0, 1);
  bind_buffer(s, P, raised);
  trace(s, 0, "A=1 B=0, yielded FIRST");
  bind_buffer(s, P, clear);
  trace(s, FIRST, "A=2 B=1");
  expect_int(t, buffer_get(raised, 0), 1);
  buffer_free(raised); /* the old one is never touched again */
  trace(s, FIRST, "A=3 B=2");
  buffer_put(clear, 0, 1);
  trace(s, FIRST, "A=4 B=2, yielded FIRST");
}

CASE(buffer_grown_before_resume) {
  enum { TO = 1, FULL, WANTED, ROOM, BEFORE, BEHIND };
  static const gk_slot_desc slots[] = {GK_OWN(TO, int, 4), INT(FULL), GK_DEFAULT(WANTED, int, 10),
                                       GK_DEFAULT(ROOM, int, 4), INT(BEFORE), INT(BEHIND)};
  GRAPH_OF(s, slots, HIT(BEFORE), GK_CHECKPOINT(FIRST, FULL), SET(FULL, 0), GK_RUN(squares, WANTED, TO, FULL, ROOM),
           GK_END, HIT(BEHIND));
  trace(s, 0, "BEFORE=1 BEHIND=0, yielded FIRST");
  holds(s, "TO[3]=9");
  resize(s, TO, 10);
  holds(s, "TO[3]=9 TO[4]=0"); /* what was there stays, what is new is zeroed */
  trace(s, FIRST, "ROOM=10 -> BEFORE=1 BEHIND=1 FULL=0"); /* the block cleared its flag itself */
  for (int k = 0; k < 10; ++k) expect_int(t, get_at(s, TO, (size_t)k), k * k);
  buffer *mine = buffer_of(t, 1000); /* memory of the host's own choice, larger again */
  bind_buffer(s, TO, mine);
  trace(s, 0, "WANTED=1000 -> BEFORE=2 BEHIND=1 FULL=1, yielded FIRST");
  trace(s, FIRST, "ROOM=1000 -> BEFORE=2 BEHIND=2 FULL=0");
  expect_int(t, buffer_get(mine, 999), 999 * 999);
}

CASE(label_names_round_trip) {
  enum { SMALLEST = INT_MIN, MINUS_ONE = -1, LARGEST = INT_MAX };
  static const struct { gk_slot flag; int32_t label; const char *name; } wanted[] = {
    {F, LARGEST, "LARGEST"}, {G, SMALLEST, "SMALLEST"}, {H, MINUS_ONE, "MINUS_ONE"}};
  GRAPH(s, GK_CHECKPOINT(LARGEST, F), HIT(A), GK_END, GK_CHECKPOINT(SMALLEST, G), HIT(B), GK_END,
        GK_CHECKPOINT(MINUS_ONE, H), HIT(C), GK_END);
  for (uint32_t k = 0; k < 3; ++k) {
    put(s, wanted[k].flag, 1);
    const gk_status *status = launch(s, k ? wanted[k - 1].label : 0);
    expect_int(t, status->yielded, wanted[k].label);
    expect(t, strcmp(status->yielded_name, wanted[k].name) == 0, "yielded %s", status->yielded_name);
    expect_int(t, status->checkpoint_count, 3);
    for (uint32_t j = 0; j < 3; ++j) { /* in the list's order */
      expect_int(t, status->checkpoints[j].label, wanted[j].label);
      expect(t, strcmp(status->checkpoints[j].name, wanted[j].name) == 0, "is called %s", status->checkpoints[j].name);
    }
    put(s, wanted[k].flag, 0);
  }
  const gk_status *status = launch(s, MINUS_ONE);
  expect_int(t, status->yielded, 0);
  expect(t, strcmp(status->yielded_name, "") == 0, "no yield, but the name %s", status->yielded_name);
}

TRACED(checkpoint_without_flag_is_target,
       TASKS(HIT(A), GK_TARGET(FIRST), HIT(B), GK_END, HIT(C), GK_TARGET(SECOND), GK_END, HIT(D)),
       {0, "A=1 B=1 C=1 D=1, ran FIRST SECOND"},
       {FIRST, "A=1 B=2 C=2 D=2, ran FIRST SECOND"},
       {SECOND, "A=1 B=2 C=2 D=3, ran SECOND"}) /* an empty one is a place to resume at, too */

CASE(multi_task_checkpoint_flag_set_by_first_task) {
  GRAPH(s, GK_CHECKPOINT(FIRST, F), SET(F, 1), HIT(A), HIT(B), GK_END, HIT(C));
  GRAPH(calm, GK_CHECKPOINT(FIRST, F), SET(F, 1), HIT(A), SET(F, 0), GK_END, SET(F, 1), HIT(C));
  trace(s, 0, "A=1 B=1 C=0 F=1, yielded FIRST");
  trace(calm, 0, "A=1 C=1 F=1, ran FIRST"); /* read once, at the true end: not before, and not after */
}

TRACED(empty_checkpoint, TASKS(HIT(A), GK_CHECKPOINT(FIRST, F), GK_END, HIT(B)),
       {0, "A=1 B=1, ran FIRST"},
       {0, "F=1 -> A=2 B=1, yielded FIRST, ran FIRST"},
       {FIRST, "A=2 B=1, yielded FIRST, ran FIRST"},
       {FIRST, "F=0 -> A=2 B=2, ran FIRST"})

TRACED(skipped_checkpoint_does_not_read_flag, TASKS(GK_IF(K), GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, GK_END,
             GK_CHECKPOINT(SECOND, F), HIT(B), SET(F, 0), GK_END, HIT(C)),
       {0, "F=1 -> A=0 B=1 C=1, ran SECOND"}, /* its branch isn't taken */
       {SECOND, "F=1 K=1 -> A=0 B=2 C=2, ran SECOND"}, /* it lies before the target */
       {0, "F=1 -> A=1 B=2 C=2, yielded FIRST, ran FIRST"})

CASE(many_checkpoints) {
  enum { COUNT = 1000, FLAGS = 1, RAN, ALL };
  static const gk_slot_desc slots[] = {GK_OWN(FLAGS, int, COUNT), GK_OWN(RAN, int, COUNT), GK_OWN(ALL, int, 1)};
  static gk_task tasks[COUNT * 4];
  for (uint32_t k = 0; k < COUNT; ++k) {
    tasks[4 * k] = (gk_task)GK_CHECKPOINT_AT(1, FLAGS, 4 * k);
    tasks[4 * k].label = (int32_t)(k + 1);
    tasks[4 * k + 1] = (gk_task)GK_FILL(RAN, GK_ONE, 1);
    tasks[4 * k + 1].offset = 4 * k;
    tasks[4 * k + 2] = (gk_task)GK_RUN(count, GK_ONE, ALL);
    tasks[4 * k + 3] = (gk_task)GK_END;
  }
  int32_t n = is_sweep(t) ? 20 : COUNT;
  gk_list list = {GK_ABI, "list", tasks, (size_t)n * 4, slots, GK_COUNT(slots)};
  subject *s = graph_of(t, &list, 0);
  launch(s, 0);
  expect_int(t, get(s, ALL), n);
  for (int32_t k = 0; k < n; ++k) {
    expect_int(t, get_at(s, RAN, (size_t)k), 1);
    put_at(s, RAN, (size_t)k, 0);
  }
  launch(s, n / 2 + 1); /* to the middle */
  expect_int(t, get(s, ALL), n + n / 2);
  expect_int(t, get_at(s, RAN, (size_t)n / 2 - 1), 0);
  expect_int(t, get_at(s, RAN, (size_t)n / 2), 1);
  for (int32_t k = 0; k < n; ++k) put_at(s, FLAGS, (size_t)k, 1);
  int32_t label = 0;
  for (int32_t yields = 1; yields <= n; ++yields) { /* each of them yields once */
    const gk_status *status = launch(s, label);
    expect_int(t, status->yielded, yields);
    put_at(s, FLAGS, (size_t)yields - 1, 0);
    label = yields;
  }
  launch(s, label);
  expect_int(t, get(s, ALL), n + n / 2 + 2 * n); /* each block twice more */
}
