/* Plain graphs: tasks one after the other, and slots that are bound anew between launches. */
#include "letters.h"
#include "stay.h"
#include <stdatomic.h>
#include <string.h>

CASE(two_tasks) {
  GRAPH(s, HIT(A), HIT(B));
  const gk_status *status = launch(s, 0);
  holds(s, "A=1 B=1");
  expect_int(t, status->launch, 1);
  expect_int(t, status->loop_count + status->checkpoint_count, 0);
  expect_int(t, gk_passes(status, 0), 0);
}

/* Each task needs the result of the one before. */
CASE(three_tasks_chained) {
  enum { ONES = 1, TWOS, THREES, ALL };
  static const gk_slot_desc slots[] = {GK_OWN(ONES, int, 64), GK_OWN(TWOS, int, 64), GK_OWN(THREES, int, 64),
                                       GK_DEFAULT(ALL, int, 64)};
  GRAPH_OF(s, slots, GK_RUN(add_to, ALL, TWOS, ONES), GK_RUN(add_to, ALL, THREES, TWOS),
           GK_RUN(add_to, ALL, ONES, THREES));
  trace(s, 0, "ONES[63]=5 ONES=2 -> ONES=4 TWOS=2 THREES=2 ONES[63]=10 TWOS[63]=5 THREES[63]=5 ONES[1]=0");
  trace(s, 0, "ONES=12 TWOS=6 THREES=8");
}

/* The order of all of them shows in one int. */
CASE(many_tasks) {
  enum { MOST = 100000, SOME = 1000 };
  static gk_task tasks[MOST];
  static const size_t counts[] = {1, 10, SOME, MOST};
  for (size_t k = 0; k < MOST; ++k) tasks[k] = (gk_task)NOTE(X, k % 3 == 1 ? TWO : ONE);
  for (size_t c = 0; c < GK_COUNT(counts) && (counts[c] <= SOME || !is_sweep(t)); ++c) {
    gk_list list = {GK_ABI, "many", tasks, counts[c], letters, GK_COUNT(letters)};
    subject *s = graph_of(t, &list, 0);
    unsigned wanted = 0;
    for (size_t k = 0; k < counts[c]; ++k) wanted = wanted * 31 + (k % 3 == 1 ? 2 : 1);
    launch(s, 0);
    expect_int(t, get(s, X), (int)wanted);
    end_graph(s);
  }
}

CASE(replay_three_times) {
  GRAPH(s, HIT(A), NOTE(X, ONE), NOTE(X, TWO));
  trace(s, 0, "A=1 X=33");
  trace(s, 0, "A=2 X=31746");
  const gk_status *status = launch(s, 0);
  holds(s, "A=3 X=30507939");
  expect_int(t, status->launch, 3);
  expect_int(t, status->applied, GK_UNCHANGED);
}

CASE(rebind_buffer) {
  GRAPH(s, GK_RUN(count, I, P));
  buffer *old = buffer_of(t, 100), *new = buffer_of(t, 100);
  bind_buffer(s, P, old);
  trace(s, 0, "I=100 -> P[99]=1");
  launch(s, 0);
  bind_buffer(s, P, new);
  expect(t, launch(s, 0)->applied != GK_UNCHANGED, "a slot was rebound, and the status says GK_UNCHANGED");
  expect_int(t, buffer_get(old, 99), 2); /* untouched */
  expect_int(t, buffer_get(new, 99), 1);
  buffer_free(old);
  trace(s, 0, "P=2");
}

/* All items are done with the new number of them, and nothing is recorded again. */
CASE(rebind_larger_size) {
  GRAPH(s, GK_RUN(count, I, P));
  buffer *large = buffer_of(t, 1025);
  bind_buffer(s, P, buffer_of(t, 256));
  trace(s, 0, "I=256 -> P[255]=1");
  bind_buffer(s, P, large);
  bind_int(s, I, 1024);
  gk_applied applied = launch(s, 0)->applied;
  expect(t, applied == GK_BY_TABLE || applied == GK_BY_NODES, "applied is %d", (int)applied);
  holds(s, "P=1 P[341]=1 P[682]=1 P[1023]=1 P[1024]=0");
  trace(s, 0, "I=256 -> P[255]=2 P[256]=1");
}

CASE(rebind_scalar) {
  enum { TO = 1, REAL, LONGS, BY, FLOATS, DOUBLES, BIG, LARGE, LINE };
  static const gk_slot_desc slots[] = {INT(TO), GK_OWN(REAL, float, 1), GK_OWN(LONGS, int64_t, 2), GK_SCALAR(BY, int),
                                       GK_SCALAR(FLOATS, float), GK_SCALAR(DOUBLES, double), GK_SCALAR(BIG, int64_t),
                                       GK_SCALAR(LARGE, uint), GK_STRUCT_VALUE(LINE, line)};
  GRAPH_OF(s, slots, GK_RUN(add, GK_ONE, TO, BY), GK_RUN(apply, GK_ONE, TO, LINE), GK_RUN(apply_in, GK_ONE, TO, LINE),
           GK_RUN(scale, GK_ONE, REAL, FLOATS, DOUBLES), GK_RUN(wide, GK_ONE, LONGS, BIG, LARGE));
  bind_float(s, FLOATS, 2.0);
  bind_float(s, DOUBLES, 0.25);
  bind_struct(s, LINE, &(line){3, 1}, sizeof(line));
  trace(s, 0, "REAL=0x3f800000 BY=5 BIG=-5000000000 LARGE=4000000000 -> TO=49"); /* REAL: 1.0f; (5 * 3 + 1) * 3 + 1 */
  bind_float(s, FLOATS, 8.0);
  trace(s, 0, "BY=-49 BIG=6000000000 -> TO=4");
  bind_struct(s, LINE, &(line){1, 7}, sizeof(line));
  bind_int(s, BIG, 6000000000 + ((int64_t)1 << 32)); /* differs in its upper half alone */
  trace(s, 0, "TO=-31"); /* 4 - 49 + 7 + 7 */
  int64_t is[2];
  float y;
  must(t, gk_download(device_of(t), is, gk_bound(graph(s), LONGS), sizeof is));
  must(t, gk_download(device_of(t), &y, gk_bound(graph(s), REAL), sizeof y));
  expect(t, is[0] == 10294967296 && is[1] == 4000000000, "%lld, %lld", (long long)is[0], (long long)is[1]);
  expect(t, y == 0.5f * 2.0f * 2.0f, "%g", (double)y);
}

/* Launches of both are under way at once; on a device they follow each other in the order of the calls. */
CASE(two_graphs_interleaved) {
  GRAPH(a, NOTE(P, I));
  GRAPH(b, NOTE(P, I), NOTE(P, I));
  buffer *x = buffer_of(t, 1);
  bind_buffer(a, P, x);
  bind_buffer(b, P, x);
  given(a, "I=1");
  given(b, "I=2");
  for (int k = 0; k < 3; ++k) {
    begin_launch(a, 0);
    begin_launch(b, 0);
  }
  given(a, "I=3");
  begin_launch(a, 0);
  finish_launches(a);
  finish_launches(b);
  unsigned wanted = 0;
  static const unsigned ids[] = {1, 2, 2, 1, 2, 2, 1, 2, 2, 3};
  for (size_t k = 0; k < GK_COUNT(ids); ++k) wanted = wanted * 31 + ids[k];
  expect_int(t, buffer_get(x, 0), (int)wanted);
}

static void one_of_two(trial *t) {
  enum { ITEMS = 3000 };
  GRAPH(s, GK_DO_WHILE(N), HIT(A), GK_RUN(count, I, P), DOWN(N), GK_END);
  bind_buffer(s, P, buffer_of(t, ITEMS));
  bind_int(s, I, ITEMS);
  for (int k = 1; k <= (is_sweep(t) ? 3 : 10); ++k) {
    put(s, N, k);
    expect_int(t, gk_passes(launch(s, 0), 0), k);
    expect_int(t, get(s, A), k * (k + 1) / 2);
    expect_int(t, get_at(s, P, ITEMS - 1), k * (k + 1) / 2);
  }
}

CASE(two_devices_or_threads) {
  gk_device *other = another_device(t);
  at_once(t, device_of(t), other, one_of_two);
  at_once(t, device_of(t), device_of(t), one_of_two);
}

CASE(destroy_and_rebuild) {
  enum { OWN = 1, TO, ALL };
  static const gk_slot_desc slots[] = {GK_OWN(OWN, int, 10), GK_BUFFER(TO, int), GK_DEFAULT(ALL, int, 10)};
  buffer *a = buffer_of(t, 1);
  for (int k = 1; k <= (is_sweep(t) ? 4 : 20); ++k) {
    GRAPH_OF(s, slots, HIT(TO), GK_RUN(count, ALL, OWN));
    bind_buffer(s, TO, a);
    trace(s, 0, "OWN=1 OWN[9]=1");
    expect_int(t, buffer_get(a, 0), k);
    if (k % 2) must(t, gk_launch(graph(s), 0)); /* is destroyed while it may run */
    end_graph(s);
    int is = buffer_get(a, 0);
    expect(t, is == k || (k % 2 && is == k + 1), "%d, not %d", is, k);
    buffer_put(a, 0, k);
  }
}

CASE(empty_list) {
  static const gk_task blocks[] = {GK_WHILE(F), GK_END, GK_IF(F), GK_ELSE, GK_END, PARALLEL(GK_SECTION, GK_END)};
  static const gk_list lists[] = {{GK_ABI, "nothing", NULL, 0, letters, GK_COUNT(letters)},
                                  {GK_ABI, "neither", NULL, 0, NULL, 0}, GK_LIST(blocks, blocks, letters)};
  for (size_t k = 0; k < GK_COUNT(lists); ++k) {
    subject *s = graph_of(t, &lists[k], 0);
    trace(s, 0, "finished");
    expect_int(t, launch(s, 0)->launch, 2);
  }
}

/* Fresh, resumed, yielded or not. */
TRACED(always_task_runs_every_launch,
       TASKS(HIT_ALWAYS(S), HIT(A), GK_CHECKPOINT(FIRST, F), HIT(B), GK_END, HIT(C), HIT_ALWAYS(E)),
       {0, "S=1 A=1 B=1 C=1 E=1, ran FIRST"},
       {0, "F=1 -> S=2 A=2 B=2 C=1 E=2, ran FIRST, yielded FIRST"},
       {FIRST, "S=3 A=2 B=3 C=1 E=3, ran FIRST, yielded FIRST"},
       {FIRST, "F=0 -> S=4 A=2 B=4 C=2 E=4, ran FIRST"})

/* Shapes that no block divides, and more along y and z than a grid has blocks there. (Blocks of a kernel that is
 * written by hand for one backend are that backend's own affair.) */
CASE(native_launch_shape) {
  enum { TO = 1, WIDTH, HEIGHT, DEPTH, ROOM = 70001 * 3 + 8 };
  static const gk_slot_desc slots[] = {GK_BUFFER(TO, int), GK_SCALAR(WIDTH, int), GK_SCALAR(HEIGHT, int),
                                       GK_SCALAR(DEPTH, int)};
  static const int shapes[][3] = {{1, 1, 1}, {5, 7, 13}, {0, 5, 5}, {257, 3, 2}, {3, 257, 5}, {33, 1, 65},
                                  {3, 70001, 1}, {1, 2, 70001}, {5, 0, 5}, {5, 5, -1}};
  GRAPH_OF(plane, slots, GK_RUN_2D(number, WIDTH, HEIGHT, TO, WIDTH));
  GRAPH_OF(volume, slots, GK_RUN_3D(number_3d, WIDTH, HEIGHT, DEPTH, TO, WIDTH, HEIGHT));
  for (size_t k = 0; k < 2 * (is_sweep(t) ? 3 : GK_COUNT(shapes)); ++k) {
    subject *s = k % 2 ? volume : plane;
    const int w = shapes[k / 2][0], h = shapes[k / 2][1], depth = k % 2 ? shapes[k / 2][2] : 1, items = w * h * depth;
    buffer *x = buffer_of(t, ROOM);
    bind_buffer(s, TO, x);
    bind_int(s, WIDTH, w);
    bind_int(s, HEIGHT, h);
    bind_int(s, DEPTH, depth);
    launch(s, 0);
    if (items > 0) expect_int(t, buffer_get(x, (size_t)items - 1), w - 1 + 100 * (h - 1) + 10000 * (depth - 1));
    expect_int(t, buffer_get(x, items > 0 ? (size_t)items : 0), 0);
    bind_buffer(s, TO, NULL);
    buffer_free(x);
  }
}

CASE(copy_and_fill) {
  enum { TO = 1, ALSO, SOME, PART, WIDE };
  static const gk_slot_desc slots[] = {GK_OWN(TO, int, 300), GK_OWN(ALSO, int, 300), GK_SCALAR(SOME, int),
                                       GK_OWN(PART, int, 2), GK_OWN(WIDE, int64_t, 4)};
  GRAPH_OF(s, slots, GK_FILL(TO, SOME, -2),
           {.op = GK_OP_FILL, .name = "TO part", .items = {PART}, .args = {TO}, .offset = 8, .pattern = 0x01020304},
           {.op = GK_OP_COPY, .name = "ALSO = TO", .items = {SOME}, .args = {ALSO, TO}, .offset = 4, .from_offset = 8},
           {.op = GK_OP_FILL, .name = "WIDE", .items = {GK_ONE}, .args = {WIDE}, .offset = 8, .pattern = UINT32_MAX});
  trace(s, 0, "SOME=20 PART=3 -> TO=-2 TO[1]=-2 TO[2]=16909060 TO[4]=16909060 TO[5]=-2 TO[19]=-2 TO[20]=0");
  holds(s, "ALSO=0 ALSO[1]=16909060 ALSO[3]=16909060 ALSO[4]=-2 ALSO[18]=-2 ALSO[19]=0");
  holds(s, "WIDE=0 WIDE[1]=0 WIDE[2]=-1 WIDE[3]=-1 WIDE[4]=0");
  trace(s, 0, "PART=0 -> TO[2]=-2");
  trace(s, 0, "PART=-5 TO[299]=4 SOME=298 -> TO[297]=-2 TO[298]=0, ALSO[298]=4");
  trace(s, 0, "SOME=0 TO=1 -> TO=1 ALSO[1]=-2");
}

/* A sum adds to what is there, each launch anew, also from two sections; each of several has its own. */
CASE(sums_add_up) {
  enum { FROM = 1, SOME, ALL, TIMES, SUM, SQUARES, HALVES, REAL, ITEMS = 1000 };
  static const gk_slot_desc slots[] = {GK_BUFFER(FROM, int), GK_SCALAR(SOME, int), INT(ALL), INT(TIMES), INT(SUM),
                                       INT(SQUARES), GK_OWN(HALVES, float, 4), GK_OWN(REAL, float, 1)};
  GRAPH_OF(s, slots, GK_FILL_F32(HALVES, SOME, 0.5f),
           PARALLEL(SECTION(GK_RUN(total, SOME, FROM, ALL)),
                    SECTION(GK_RUN(total, SOME, FROM, ALL), GK_RUN(moments, SOME, FROM, TIMES, SUM, SQUARES))),
           GK_RUN(total_float, SOME, HALVES, REAL)); /* sums of 0.5 are exact */
  buffer *x = buffer_of(t, ITEMS);
  for (int k = 0; k < ITEMS; ++k) buffer_put(x, (size_t)k, k);
  bind_buffer(s, FROM, x);
  resize(s, HALVES, ITEMS);
  bind_int(s, SOME, ITEMS);
  trace(s, 0, "ALL=1 -> ALL=999001 TIMES=1000 SUM=499500 SQUARES=332833500 REAL=1140457472"); /* 500.0f */
  trace(s, 0, "ALL=1998001 TIMES=2000 SUM=999000 SQUARES=665667000 REAL=1148846080"); /* 1000.0f */
  trace(s, 0, "SOME=3 -> ALL=1998007 TIMES=2003 SUM=999003 SQUARES=665667005 REAL=1148870656"); /* 1001.5f */
  trace(s, 0, "SOME=0 -> ALL=1998007 TIMES=2003");
}

/* ---- a library call ---------------------------------------------------------------------------------------------- */

typedef struct tally { int calls, native, factor; gk_result answer; } tally;

/* Counts, and notes what it gets by value. A library would record its work into `native`. */
static gk_result note_call(const gk_value *args, void *native) {
  tally *to = args[0].ptr;
  ++to->calls;
  to->native += is_recorded(native);
  to->factor = args[1].i32;
  return to->answer;
}

static gk_result shift(const gk_value *args, void *native) {
  if (native) return record_shift(args[0].ptr, native);
  shift_ints(args[0].ptr);
  return GK_OK;
}

static void recorded_calls(trial *t) {
  GRAPH(s, GK_CALL(shift, P), HIT(P), GK_IF(F), GK_CALL(shift, P), GK_END, GK_DO_WHILE(N),
        PARALLEL(SECTION(GK_CALL(shift, P)), SECTION(HIT(A))), HIT(P), DOWN(N), GK_END);
  buffer *before = buffer_of(t, SHIFTED), *after = buffer_of(t, SHIFTED);
  for (int k = 0; k < SHIFTED; ++k) {
    buffer_put(before, (size_t)k, k + 10);
    buffer_put(after, (size_t)k, k + 20);
  }
  bind_buffer(s, P, before);
  trace(s, 0, "N=2 -> A=2, passes N=2");
  given(s, "N=1 F=1");
  expect_int(t, launch(s, 0)->applied, GK_UNCHANGED);
  holds(s, "A=3");
  bind_buffer(s, P, after);
  put(s, N, 1);
  expect_int(t, launch(s, 0)->applied, GK_BY_RECORDING);
  holds(s, "P=24"); /* shifted three times, then counted */
}

static atomic_int made;
static gk_result count_made(const gk_value *args, void *native) {
  (void)native;
  if (args[0].ptr) atomic_fetch_add(&made, 1);
  return GK_OK;
}

/* Recorded or not, no call is made before all its slots have values. */
CASE(calls_wait_for_their_slots) {
  enum { WHERE = 1, TO, BEHIND };
  static const gk_slot_desc slots[] = {{.slot = WHERE, .type = GK_HOST_PTR, .name = "WHERE"}, GK_BUFFER(TO, int),
                                       INT(BEHIND)};
  int here = 0, there = 0;
  atomic_store(&made, 0);
  GRAPH_OF(s, slots, GK_CALL(count_made, WHERE, TO), HIT(BEHIND));
  expect_int(t, atomic_load(&made), 0);
  bind_host(s, WHERE, &here, &there);
  launch_refused(s, 0, "slot 2 (TO) is not bound|count_made");
  expect_int(t, atomic_load(&made), 0);
  bind_buffer(s, TO, buffer_of(t, 1));
  expect_int(t, atomic_load(&made), 0);
  trace(s, 0, "BEHIND=1");
  expect(t, atomic_load(&made) >= 2, "the call was made for the reference alone");
}

/* It is as if all of them were read before the first is written. */
CASE(copy_within_one_slot) {
  enum { TO = 1, SOME, PART, LONG = 30000 };
  static const gk_slot_desc slots[] = {GK_OWN(TO, int, LONG), GK_SCALAR(SOME, int), INT(PART)};
  static const int counts[] = {7, 1, 0, 700, LONG - 1000};
  GRAPH_OF(s, slots, {.op = GK_OP_COPY, .name = "up", .items = {SOME}, .args = {TO, TO}, .offset = 4},
           {.op = GK_OP_COPY, .name = "down", .items = {PART}, .args = {TO, TO}, .from_offset = 12},
           {.op = GK_OP_COPY, .name = "far", .items = {SOME}, .args = {TO, TO}, .offset = 4000, .from_offset = 8});
  for (int k = 0; k < LONG; k += is_sweep(t) ? 3000 : 30) put_at(s, TO, (size_t)k, k + 1);
  for (size_t k = 0; k < GK_COUNT(counts); ++k) {
    bind_int(s, SOME, counts[k]);
    put(s, PART, counts[k]);
    launch(s, 0); /* the reference's memmove compares */
  }
}

CASE(library_call_recorded) {
  enum { WHERE = 1, BY, BEHIND, AGAIN, LOOP };
  static const gk_slot_desc slots[] = {{.slot = WHERE, .type = GK_HOST_PTR, .name = "WHERE"}, GK_DEFAULT(BY, int, 3),
                                       INT(BEHIND), INT(AGAIN), INT(LOOP)};
  tally is = {0}, wanted = {0};
  GRAPH_OF(s, slots, GK_CALL(note_call, WHERE, BY), HIT(BEHIND), GK_IF(AGAIN), GK_CALL(note_call, WHERE, BY),
           GK_END, GK_DO_WHILE(LOOP), GK_CALL(note_call, WHERE, BY), DOWN(LOOP), GK_END);
  bind_host(s, WHERE, &is, &wanted);
  trace(s, 0, "LOOP=3 -> BEHIND=1, passes LOOP=3");
  expect_int(t, is.factor, 3);
  if (is.native > 0) {
    if (strcmp(backend_of(t), "cuda") != 0)
      skip(t, "calls are recorded on backend %s, and the suite knows what to record on cuda alone", backend_of(t));
    recorded_calls(t);
    return;
  }
  expect_int(t, wanted.calls, 4);
  expect_int(t, is.calls, 4);
  given(s, "BY=5 AGAIN=1 LOOP=1");
  launch(s, 0);
  expect_int(t, is.factor, 5);
  expect_int(t, is.calls, 7);
  put(s, LOOP, 1);
  is.answer = GK_ERROR_UNSUPPORTED; /* becomes the launch's answer, and nothing behind it runs */
  must(t, gk_launch(graph(s), 0));
  refuses(t, GK_ERROR_UNSUPPORTED, "note_call", gk_wait(graph(s), NULL));
  holds(s, "BEHIND=2");
  is.answer = GK_OK;
  trace(s, 0, "BEHIND=3");
}
