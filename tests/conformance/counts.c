/* Counts: read when their task is reached, and only then. If a launch fails by a count, it isn't specified which tasks
 * behind it still run, so each case writes all memory anew before it compares. */
#include "conformance.h"
#include "kernels.h"
#include <limits.h>
#include <string.h>

enum { TO = 1, FROM, COUNT, N, BIG, LARGE, FLAG, HITS, ROOM = 8 };

static const gk_slot_desc slots[] = {
  GK_OWN(TO, int, ROOM), GK_OWN(FROM, int, ROOM), GK_OWN(COUNT, int, 2), GK_DEFAULT(N, int, 1),
  {.slot = BIG, .type = GK_I64, .name = "BIG", .bits = GK_HAS_VALUE, .value.i64 = 1},
  {.slot = LARGE, .type = GK_U32, .name = "LARGE", .bits = GK_HAS_VALUE, .value.u32 = 1},
  INT(FLAG), GK_OWN(HITS, int, 2)};
#define GRAPH(s, ...) GRAPH_OF(s, slots, __VA_ARGS__)

/* All memory as it is at first, on both sides. */
static void clear(subject *s) {
  for (size_t k = 0; k < ROOM; ++k) {
    put_at(s, TO, k, 0);
    put_at(s, FROM, k, (int)k + 1);
  }
  given(s, "COUNT=1 COUNT[1]=1 FLAG=0 HITS=0");
}

/* ---- how many ---------------------------------------------------------------------------------------------------- */

CASE(as_many_as_there_is_room_for) {
  GRAPH(s, {.op = GK_OP_FILL, .name = "TO = 7", .args = {TO}, .items = {N}, .offset = 4 * 3, .pattern = 7},
        {.op = GK_OP_COPY, .name = "TO = FROM", .args = {TO, FROM}, .items = {COUNT}, .from_offset = 4 * 2},
        {.op = GK_OP_FILL, .name = "end", .args = {FROM}, .items = {BIG}, .offset = 4 * 8 /* no bytes follow */},
        GK_FILL(FROM, LARGE, 5));
  clear(s);
  trace(s, 0, "N=5 BIG=0 LARGE=0 COUNT=6 -> TO=3 TO[5]=8 TO[6]=7 TO[7]=7");
  trace(s, 0, "N=-1 BIG=-9223372036854775808 COUNT=-2147483648 LARGE=8 -> TO=3 FROM=5 FROM[7]=5");
}

/* One more than there is room for, at each place that a copy or fill has, by each kind of count. */
CASE(one_more_than_there_is_room_for) {
  static const struct { gk_slot slot; const char *words; } counts[] = {
    {N, "9 elements|slot 4 (N)"}, {BIG, "9 elements|slot 5 (BIG)"}, {LARGE, "9 elements|slot 6 (LARGE)"},
    {COUNT, "9 elements|slot 3 (COUNT)"}};
  for (int k = 0; k < 4; ++k)
    for (int place = 0; place < 3; ++place) { /* the fill's, the copy's two */
      const gk_slot by = counts[k].slot;
      gk_task tasks[] = {HIT(HITS), place ? (gk_task)GK_COPY(TO, FROM, by) : (gk_task)GK_FILL(TO, by, 7)};
      subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
      resize(s, TO, place == 2 ? 9 : 8);
      resize(s, FROM, place == 2 ? 8 : 9);
      for (size_t at = 0; at < 8; ++at) put_at(s, FROM, at, (int)at + 1);
      if (by == COUNT) put(s, COUNT, 9);
      else bind_int(s, by, 9);
      launch_fails(s, 0, place == 2 ? "task 1 (TO = FROM)|slot 2 (FROM)|32 bytes" : "task 1 (TO = |slot 1 (TO)|32 by");
      launch_fails(s, 0, counts[k].words);
      holds(s, "HITS=2 TO=0");
      resize(s, place == 2 ? FROM : TO, 9); /* and the graph is as good as before */
      trace(s, 0, place ? "HITS=0 -> TO[7]=8 TO[8]=0 HITS=1" : "HITS=0 -> TO[7]=7 TO[8]=7 HITS=1");
      end_graph(s);
      *(place == 2 ? &tasks[1].from_offset : &tasks[1].offset) = 4 * 7;
      s = graph_of(t, &(gk_list){GK_ABI, "list", &tasks[1], 1, slots, GK_COUNT(slots)}, 0);
      if (by == COUNT) put(s, COUNT, 2);
      else bind_int(s, by, 2);
      launch_fails(s, 0, "task 0|2 elements|from byte 28 of slot|32 bytes");
      end_graph(s);
    }
}

CASE(more_than_a_task_may_have) {
  GRAPH(s, GK_FILL(TO, N, 7), GK_COPY(TO, FROM, BIG), GK_FILL(TO, LARGE, 8), GK_RUN(count, LARGE, TO),
        GK_FILL(TO, COUNT, 9));
  /* is as many as may be, where there is room */
  launch_fails(s, 0, "N=2147483647 -> task 0 (TO = 7)|2147483647 elements of 4 bytes|slot 4 (N)|slot 1 (TO)|32 bytes");
  launch_fails(s, 0, "N=0 BIG=2147483648 -> task 1 (TO = FROM)|more than 2147483647|2147483648 by slot 5 (BIG)");
  launch_fails(s, 0, "BIG=9223372036854775807 -> task 1 (TO = FROM)|9223372036854775807 by slot 5 (BIG)");
  bind_int(s, BIG, ((int64_t)1 << 32) + 1); /* is 1 in 32 bits */
  launch_fails(s, 0, "task 1 (TO = FROM)|4294967297 by slot 5 (BIG)");
  launch_fails(s, 0, "BIG=0 LARGE=4294967295 -> task 2 (TO = 8)|4294967295 by slot 6 (LARGE)"); /* is -1 in 32 bits */
  launch_fails(s, 0, "LARGE=0 COUNT=2147483647 -> task 4 (TO = 9)|2147483647 elements|slot 3 (COUNT)");
  clear(s);
  trace(s, 0, "TO=9 TO[1]=0");
}

CASE(products_of_extents) {
  GRAPH(s, GK_RUN_2D(number, COUNT, LARGE, TO, N), GK_RUN_3D(number_3d, BIG, LARGE, N, TO, N, N));
  clear(s);
  given(s, "BIG=0 COUNT=65536 LARGE=32768");
  launch_fails(s, 0, "task 0 (number)|more than 2147483647|65536 by slot 3 (COUNT) x 32768 by slot 6 (LARGE)");
  launch_fails(s, 0, "LARGE=4294967295 COUNT=1 -> task 0 (number)|1 by slot 3 (COUNT) x 4294967295 by slot 6 (LARGE)");
  given(s, "COUNT=0 BIG=4611686018427387904 LARGE=1073741824 N=4"); /* 2^62 * 2^32 and more are 0 in 64 bits */
  launch_fails(s, 0, "task 1 (number_3d)|4611686018427387904 by slot 5 (BIG) x 1073741824 by slot 6 (LARGE) x 4");
  given(s, "N=0 COUNT=0"); /* none of anything is nothing */
  clear(s);
  trace(s, 0, "COUNT=0 -> TO=0 TO[7]=0");
  trace(s, 0, "N=2 BIG=2 LARGE=2 -> TO=0 TO[1]=1 TO[2]=100 TO[7]=10101");
}

/* Constants: in each kind of task, in blocks, beside other counts. There is nothing to bind. */
CASE(counts_that_never_change) {
  GRAPH(s, GK_FILL(TO, GK_ITEMS(3), 7),
        {.op = GK_OP_COPY, .name = "TO = FROM", .args = {TO, FROM}, .items = {GK_ITEMS(2)}, .offset = 4 * 6},
        GK_DO_WHILE(FLAG), GK_RUN(count, GK_ITEMS(8), TO), GK_IF(FLAG), GK_RUN(count, GK_ITEMS(1), TO), GK_END,
        DOWN(FLAG), GK_END, GK_RUN_ALWAYS(count, GK_ITEMS(2), HITS), PARALLEL(SECTION(GK_RUN(count, GK_ITEMS(3), TO)),
        SECTION(GK_RUN(count, N, FROM))));
  clear(s);
  trace(s, 0, "FLAG=3 -> TO=14 TO[1]=11 TO[3]=3 TO[6]=4 TO[7]=5 FROM=2 HITS=1 HITS[1]=1, passes FLAG=3");
  expect_int(t, gk_find_slot(graph(s), "GK_ITEMS(8)"), 0);
  refuses(t, GK_ERROR_INVALID, "no slot 9|numbered up to 8", gk_bind_int(graph(s), HITS + 1, 1));
  launch_refused(s, 0, "no slot 9");
}

CASE(planes_that_never_change) {
  GRAPH(s, GK_RUN_2D(number, GK_ITEMS(2), GK_ITEMS(3), TO, N), GK_RUN_2D(number, COUNT, GK_ITEMS(2), FROM, N),
        GK_RUN_3D(number_3d, GK_ITEMS(1), GK_ONE, GK_ITEMS(2), TO, N, N));
  clear(s);
  trace(s, 0, "N=2 COUNT=1 -> TO=0 TO[1]=1 TO[2]=100 TO[4]=10000 TO[5]=201 FROM=0 FROM[2]=100");
  trace(s, 0, "COUNT=0 FROM[2]=5 TO[4]=0 -> TO[4]=10000 FROM[2]=5");
}

/* Given to an included list, also through one, as any of the types that a number has, and read by kernels there. */
CASE(constants_of_included_lists) {
  enum { X = 1, WIDE, I, L, U };
  static const gk_slot_desc inner_slots[] = {GK_BUFFER(X, int), GK_BUFFER(WIDE, int64_t), GK_SCALAR(I, int),
                                             GK_SCALAR(L, int64_t), GK_SCALAR(U, uint)};
  static const gk_task inner_tasks[] = {GK_RUN(add, I, X, I), GK_RUN(count, L, X), GK_RUN(count, U, X),
                                        GK_RUN(wide, GK_ONE, WIDE, L, U), GK_RUN(count, GK_ITEMS(3), X)};
  static const gk_list inner = GK_LIST(inner, inner_tasks, inner_slots);
  static const gk_task middle_tasks[] = {GK_INCLUDE(inner, 0, X, WIDE, I, GK_ITEMS(2), U)};
  static const gk_list middle = GK_LIST(middle, middle_tasks, inner_slots);
  static const gk_slot_desc outer[] = {GK_OWN(X, int, 8), GK_OWN(WIDE, int64_t, 2), GK_DEFAULT(I, int, 1)};
  GRAPH_OF(s, outer, GK_INCLUDE(middle, 0, X, WIDE, GK_ITEMS(3), GK_ITEMS(7), GK_ITEMS(4)),
           GK_INCLUDE(middle, 0, X, WIDE, I, GK_ITEMS(1), GK_ITEMS(1)));
  trace(s, 0, "X=10 X[1]=8 X[2]=6 X[3]=1 X[4]=0");
  trace(s, 0, "I=0 -> X=19 X[1]=16 X[2]=12 X[3]=2 X[4]=0");
}

/* Too many, too many together, and more than there is room for; each only where the launch comes to it. */
CASE(constants_that_are_bad) {
  GRAPH(s, GK_IF(FLAG), GK_FILL(TO, GK_ITEMS(9), 7), GK_END,
        GK_IF(COUNT), GK_RUN_2D(number, GK_ITEMS(65536), LARGE, TO, N), GK_END,
        GK_IF(HITS), GK_COPY(TO, FROM, GK_ITEMS(2147483647)), GK_END, GK_FILL(TO, GK_ITEMS(8), 3));
  clear(s);
  trace(s, 0, "COUNT=0 -> TO=3 TO[7]=3");
  launch_fails(s, 0, "FLAG=1 -> task 1 (TO = 7)|9 elements of 4 bytes, by GK_ITEMS(9), from byte 0 of slot 1 (TO)");
  launch_fails(s, 0, "FLAG=0 COUNT=1 LARGE=32768 -> task 4 (number)|65536 by GK_ITEMS(65536) x 32768 by slot 6");
  launch_fails(s, 0, "COUNT=0 HITS=1 -> task 7 (TO = FROM)|2147483647 elements of 4 bytes, by GK_ITEMS(2147483647)");
  clear(s);
  trace(s, 0, "COUNT=0 -> TO=3 TO[7]=3");
}

/* The same in blocks of gk_alloc, from the address on that is bound; a launch has what was bound to it. */
CASE(counts_in_blocks) {
  static const gk_slot_desc bound[] = {GK_BUFFER(TO, int), GK_BUFFER(FROM, int), INT(COUNT)};
  GRAPH_OF(s, bound, GK_COPY(TO, FROM, COUNT));
  buffer *small = buffer_of(t, 3), *large = buffer_of(t, 100);
  for (size_t k = 0; k < 100; ++k) buffer_put(large, k, (int)k + 1);
  bind_buffer(s, TO, small);
  bind_buffer(s, FROM, large);
  put(s, COUNT, 3);
  launch(s, 0);
  expect_int(t, buffer_get(small, 2), 3);
  launch_fails(s, 0, "COUNT=4 -> task 0 (TO = FROM)|4 elements of 4 bytes|slot 3 (COUNT)|slot 1 (TO)|12 bytes");
  must(t, gk_launch(graph(s), 0)); /* of one that is queued still, memory is bound for the next */
  bind_buffer(s, TO, large);
  bind_buffer(s, FROM, small);
  must(t, gk_launch(graph(s), 0));
  refuses(t, GK_ERROR_INVALID, "slot 1 (TO)|12 bytes", gk_wait(graph(s), NULL));
  launch_fails(s, 0, "task 0 (TO = FROM)|4 elements of 4 bytes|slot 2 (FROM)|12 bytes");
  bind_buffer(s, FROM, buffer_of(t, 100));
  put(s, COUNT, 100);
  launch(s, 0);
  must(t, gk_bind(graph(s), TO, (char *)buffer_at(large) + 4 * 90));
  must(t, gk_launch(graph(s), 0));
  refuses(t, GK_ERROR_INVALID, "100 elements|slot 1 (TO)|40 bytes", gk_wait(graph(s), NULL));
  must(t, gk_bind(graph(s), TO, (char *)buffer_at(small) + 4 * 3)); /* its end: an empty tail */
  put(s, COUNT, 0);
  launch(s, 0);
}

/* ---- when -------------------------------------------------------------------------------------------------------- */

/* Each kind of count, bad in every task, none of which is reached. */
#define BAD_TASKS \
  GK_FILL(TO, COUNT, 7), GK_FILL(TO, LARGE, 7), GK_FILL(TO, N, 7), GK_COPY(TO, FROM, BIG), GK_RUN(count, LARGE, TO), \
  GK_RUN_2D(number, COUNT, LARGE, TO, N)

static void make_bad(subject *s) {
  clear(s);
  given(s, "COUNT=1000 N=9 BIG=9223372036854775807 LARGE=4294967295");
}

#define FIRST_BAD "(TO = 7)|1000 elements of 4 bytes|slot 3 (COUNT)|slot 1 (TO)|32 bytes"

CASE(bad_count_in_a_branch) {
  GRAPH(s, HIT(HITS), GK_IF(FLAG), BAD_TASKS, GK_END, HIT(HITS));
  make_bad(s);
  trace(s, 0, "HITS=2 TO=0");
  launch_fails(s, 0, "FLAG=1 -> task 2 |");
  launch_fails(s, 0, FIRST_BAD);
  make_bad(s);
  trace(s, 0, "HITS=2 TO=0");
}

CASE(bad_count_in_a_loop_of_no_pass) {
  GRAPH(s, GK_WHILE(FLAG), BAD_TASKS, DOWN(FLAG), GK_END, HIT(HITS));
  make_bad(s);
  trace(s, 0, "HITS=1 TO=0, passes FLAG=0");
  launch_fails(s, 0, "FLAG=1 -> " FIRST_BAD);
}

/* Behind a yield, and before a target. */
CASE(bad_count_and_checkpoints) {
  enum { FIRST = 1, SECOND };
  GRAPH(s, GK_CHECKPOINT(FIRST, FLAG), HIT(HITS), GK_END, BAD_TASKS, GK_CHECKPOINT(SECOND, FLAG), HIT(HITS), GK_END);
  make_bad(s);
  trace(s, 0, "FLAG=1 -> HITS=1 TO=0, yielded FIRST");
  trace(s, SECOND, "FLAG=0 -> HITS=2 TO=0, ran SECOND");
  launch_fails(s, FIRST, FIRST_BAD);
  make_bad(s);
  trace(s, 0, "FLAG=1 -> HITS=1 TO=0, yielded FIRST"); /* what failed leaves nothing behind */
  trace(s, SECOND, "FLAG=0 -> HITS=2 TO=0, ran SECOND");
}

/* A launch that failed doesn't yield, though its flag is set. */
CASE(bad_count_in_a_checkpoint) {
  enum { FIRST = 1 };
  GRAPH(s, HIT(HITS), GK_CHECKPOINT(FIRST, FLAG), GK_FILL(TO, COUNT, 7), GK_END, HIT(HITS));
  make_bad(s);
  launch_fails(s, 0, "FLAG=1 -> " FIRST_BAD);
  clear(s);
  trace(s, 0, "FLAG=1 -> HITS=1 TO=7, yielded FIRST");
  launch_fails(s, FIRST, "FLAG=0 COUNT=1000 -> " FIRST_BAD);
}

/* In a pass of its own making; a loop whose flag never falls ends all the same. */
CASE(bad_count_ends_loops) {
  GRAPH(s, GK_DO_WHILE(FLAG), GK_DO_WHILE(FLAG), HIT(COUNT), GK_FILL(TO, COUNT, 7), GK_END, GK_END);
  clear(s);
  launch_fails(s, 0, "FLAG=1 COUNT=5 -> task 3 (TO = 7)|9 elements|slot 3 (COUNT)|32 bytes");
  holds(s, "TO[7]=7");
  clear(s);
  trace(s, 0, "COUNT=2 TO=7 TO[1]=7 TO[2]=0, passes FLAG=1");
}

CASE(bad_count_in_a_section) {
  GRAPH(s, PARALLEL(SECTION(GK_FILL(TO, COUNT, 7)), SECTION(HIT(HITS))),
        PARALLEL(SECTION(GK_IF(FLAG), GK_FILL(TO, LARGE, 7), GK_END),
                 SECTION(GK_DO_WHILE(FLAG, .max_iterations = 3), HIT(HITS), GK_END)));
  make_bad(s);
  launch_fails(s, 0, "FLAG=1 COUNT=9 -> task 2 (TO = 7)|9 elements|32 bytes");
  launch_fails(s, 0, "COUNT=1 -> task 11 (TO = 7)|4294967295 by slot 6 (LARGE)");
  make_bad(s);
  trace(s, 0, "COUNT=1 -> TO=7 TO[1]=0 HITS=2");
}

/* The first of several is named. */
CASE(first_bad_count_is_named) {
  GRAPH(s, SET(FROM, 1), GK_FILL(TO, N, 7), GK_FILL(TO, COUNT, 7), GK_RUN(count, LARGE, TO));
  make_bad(s);
  launch_fails(s, 0, "task 1 (TO = 7)|9 elements");
  launch_fails(s, 0, "N=1 -> task 2 (TO = 7)|1000 elements");
  launch_fails(s, 0, "COUNT=1 -> task 3 (count)|4294967295");
  bind_int(s, LARGE, 1);
  clear(s);
  trace(s, 0, "FROM=1 TO=8");
}

/* Launches that were queued behind it, and what is bound to other memory between them. */
CASE(bad_count_of_a_queued_launch) {
  GRAPH(s, HIT(HITS), GK_FILL(TO, N, 7));
  clear(s);
  bind_int(s, N, ROOM);
  begin_launch(s, 0);
  bind_int(s, N, ROOM + 1);
  must(t, gk_launch(graph(s), 0));
  bind_int(s, N, 1);
  must(t, gk_launch(graph(s), 0));
  refuses(t, GK_ERROR_INVALID, "task 1 (TO = 7)|9 elements|32 bytes", gk_wait(graph(s), NULL));
  clear(s);
  trace(s, 0, "HITS=1 TO=7 TO[1]=0");
}

/* A fresh launch counts the passes of each loop from zero, however the one before ended. */
CASE(bound_after_a_bad_count) {
  GRAPH(s, GK_DO_WHILE(FLAG, .max_iterations = 4), HIT(HITS), HIT(COUNT), GK_FILL(TO, COUNT, 7), GK_END);
  clear(s);
  launch_fails(s, 0, "FLAG=1 COUNT=6 -> task 3 (TO = 7)|9 elements");
  clear(s);
  trace(s, 0, "FLAG=1 -> HITS=4 COUNT=5, passes FLAG=4, bound FLAG");
}
