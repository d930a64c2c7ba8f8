/* GK_ROOM: the number of elements that a buffer's memory has. */
#include "conformance.h"
#include "kernels.h"

enum { LENGTH = 1, KEPT, SEEN, FULL, LEFT };

/* The room stands in front of its buffer. */
static const gk_slot_desc slots[] = {GK_ROOM(LENGTH, KEPT), GK_OWN(KEPT, int, 4), INT(SEEN), INT(FULL), INT(LEFT)};
#define GRAPH(s, ...) GRAPH_OF(s, slots, __VA_ARGS__)

/* As a value and as a count: owned memory, blocks, a part of one, and none. */
CASE(room_follows_its_buffer) {
  GRAPH(s, GK_RUN(set, GK_ONE, SEEN, LENGTH), GK_FILL(KEPT, LENGTH, 7), GK_RUN(count, LENGTH, KEPT));
  trace(s, 0, "SEEN=4 KEPT[3]=8");
  resize(s, KEPT, 6);
  trace(s, 0, "SEEN=6 KEPT[5]=8");
  resize(s, KEPT, 0);
  trace(s, 0, "SEEN=0");
  resize(s, KEPT, 2);
  trace(s, 0, "SEEN=2 KEPT[1]=8");
  buffer *block = buffer_of(t, 9);
  bind_buffer(s, KEPT, block);
  trace(s, 0, "SEEN=9 KEPT[8]=8");
  for (int is_null = 0; is_null < 2; ++is_null) {
    must(t, gk_bind(graph(s), KEPT, is_null ? NULL : (char *)buffer_at(block) + 4 * 6));
    must(t, gk_launch(graph(s), 0));
    must(t, gk_wait(graph(s), NULL));
    expect_int(t, get(s, SEEN), is_null ? 0 : 3);
  }
}

/* Each launch has the room of the memory that was bound to it. */
CASE(room_of_queued_launches) {
  GRAPH(s, GK_RUN(add, GK_ONE, SEEN, LENGTH));
  put(s, SEEN, 0);
  begin_launch(s, 0);
  bind_buffer(s, KEPT, buffer_of(t, 10));
  begin_launch(s, 0);
  begin_launch(s, 0);
  bind_buffer(s, KEPT, buffer_of(t, 100));
  begin_launch(s, 0);
  finish_launches(s);
  holds(s, "SEEN=124");
}

/* Every type of a number, in whole elements. Memory that was never bound has none. */
CASE(room_of_any_element) {
  enum { BYTES = 1, TRIPLES, WIDE, AS_INT, AS_UINT, AS_INT64, NEVER, OF_NEVER, TO };
  typedef struct triple { int a, b, c; } triple;
  static const gk_slot_desc any[] = {
    GK_RAW_BUFFER(BYTES), GK_BUFFER(TRIPLES, triple), GK_OWN(WIDE, int64_t, 2), GK_ROOM(AS_INT, BYTES),
    {.slot = AS_UINT, .type = GK_U32, .name = "AS_UINT", .bits = GK_IS_ROOM, .value.i32 = TRIPLES},
    {.slot = AS_INT64, .type = GK_I64, .name = "AS_INT64", .bits = GK_IS_ROOM, .value.i32 = TRIPLES},
    GK_BUFFER(NEVER, int), GK_ROOM(OF_NEVER, NEVER), GK_OWN(TO, int, 9)};
  GRAPH_OF(s, any, GK_RUN(set, GK_ONE, TO, AS_INT), GK_RUN(wide, GK_ONE, WIDE, AS_INT64, AS_UINT),
           GK_RUN(count, AS_UINT, TO), GK_RUN(count, AS_INT64, TO), GK_RUN(count, OF_NEVER, NEVER),
           GK_FILL(NEVER, OF_NEVER, 1));
  bind_buffer(s, BYTES, buffer_of(t, 5));
  bind_buffer(s, TRIPLES, buffer_of(t, 11)); /* three, and 8 bytes more */
  trace(s, 0, "TO=22 TO[1]=2 TO[2]=2 TO[3]=0 WIDE=3 WIDE[2]=3");
  bind_buffer(s, TRIPLES, buffer_of(t, 2));
  trace(s, 0, "TO=20 TO[1]=2 WIDE=0 WIDE[2]=0");
}

/* A yield for want of room is mended by gk_resize alone. */
CASE(room_across_yields) {
  enum { GROWING = 1 };
  GRAPH(s, GK_DO_WHILE(LEFT), GK_CHECKPOINT(GROWING, FULL), SET(FULL, 0),
        GK_RUN(squares, GK_ITEMS(6), KEPT, FULL, LENGTH), GK_END, GK_RUN(count, LENGTH, KEPT), DOWN(LEFT), GK_END);
  trace(s, 0, "LEFT=2 -> LEFT=2 FULL=1 KEPT[3]=9, yielded GROWING");
  resize(s, KEPT, 5);
  trace(s, GROWING, "LEFT=2 FULL=1 KEPT[4]=16, yielded GROWING");
  resize(s, KEPT, 6);
  trace(s, GROWING, "LEFT=0 FULL=0 KEPT[5]=26, passes LEFT=2, ran GROWING");
}

/* A room belongs to a table: of an included list's buffer, whatever is given for that, or it is given itself. */
CASE(room_in_included_lists) {
  enum { B = 1, N, TO, OWN, OF_B, OF_OWN };
  static const gk_slot_desc inner_slots[] = {GK_RAW_BUFFER(B),    GK_SCALAR(N, int), GK_BUFFER(TO, int),
                                             GK_OWN(OWN, int, 3), GK_ROOM(OF_B, B),  GK_ROOM(OF_OWN, OWN)};
  static const gk_task inner_tasks[] = {GK_RUN(add, GK_ONE, TO, OF_B), GK_RUN(add, GK_ONE, TO, N),
                                        GK_RUN(count, OF_OWN, OWN)};
  static const gk_list inner = GK_LIST(inner, inner_tasks, inner_slots);
  static const gk_slot_desc given_slots[] = {GK_BUFFER(1, int), GK_ROOM(2, 1), GK_BUFFER(3, int)};
  static const gk_task given_tasks[] = {GK_RUN(add, GK_ONE, 3, 2)};
  static const gk_list given = GK_LIST(given, given_tasks, given_slots);
  GRAPH(s, SET(SEEN, 0), GK_INCLUDE_AS(first, inner, 0, KEPT, LENGTH, SEEN), GK_INCLUDE_AS(second, inner, 0, FULL,
        GK_ITEMS(1000), SEEN), GK_INCLUDE_AS(third, given, 0, KEPT, LENGTH, SEEN),
        GK_INCLUDE_AS(fourth, given, 0, FULL, GK_ITEMS(50000), SEEN));
  trace(s, 0, "SEEN=51028 first.OWN[2]=1 second.OWN=1"); /* 16 + 4 + 4 + 1000 + 4 + 50000 */
  resize(s, KEPT, 6);
  must(t, gk_resize(graph(s), gk_find_slot(graph(s), "second.OWN"), 2));
  must(t, gk_launch(graph(s), 0));
  must(t, gk_wait(graph(s), NULL));
  expect_int(t, get(s, SEEN), 24 + 6 + 4 + 1000 + 6 + 50000);
  refuses(t, GK_ERROR_INVALID, "(first.OF_B) is the room of slot 2 (KEPT)",
          gk_bind_int(graph(s), gk_find_slot(graph(s), "first.OF_B"), 1));
}

/* The host can't bind a room. */
CASE(room_is_not_bound) {
  GRAPH(s, GK_RUN(set, GK_ONE, SEEN, LENGTH));
  refuses(t, GK_ERROR_INVALID, "gk_bind_int: slot 1 (LENGTH) is the room of slot 2 (KEPT)|bind or resize that slot",
          gk_bind_int(graph(s), LENGTH, 4));
  launch_refused(s, 0, "a call before it failed|slot 1 (LENGTH) is the room");
  trace(s, 0, "SEEN=4");
}

/* gk doesn't know how large memory from elsewhere is. A list that doesn't use the room may have it. */
CASE(room_of_unknown_memory) {
  static int mine[4];
  GRAPH(s, GK_RUN(set, GK_ONE, SEEN, LENGTH));
  GRAPH_OF(without, slots, GK_RUN(count, GK_ITEMS(1), FULL));
  must(t, gk_bind(graph(without), KEPT, mine));
  if (gk_bind(graph(s), KEPT, mine)) skip(t, "memory of the host isn't reached");
  refuses(t, GK_ERROR_INVALID, "slot 1 (LENGTH) is the room of slot 2 (KEPT), whose memory isn't gk's|task 0 (set)|"
          "gk_resize, bind memory of gk_alloc, or make the slot a GK_SCALAR", gk_launch(graph(s), 0));
  must(t, gk_launch(graph(without), 0));
  must(t, gk_wait(graph(without), NULL));
  resize(s, KEPT, 3);
  trace(s, 0, "SEEN=3");
}

/* A use of the room is one of the buffer. */
CASE(room_of_freed_memory) {
  GRAPH(s, GK_RUN(set, GK_ONE, SEEN, LENGTH));
  buffer *block = buffer_of(t, 7);
  bind_buffer(s, KEPT, block);
  trace(s, 0, "SEEN=7");
  buffer_free(block);
  launch_refused(s, 0, "slot 2 (KEPT) is bound to was freed|task 0 (set) uses it");
  resize(s, KEPT, 5);
  trace(s, 0, "SEEN=5");
}
