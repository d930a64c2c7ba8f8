/* Plain graphs: tasks one after the other, and slots that are bound anew between launches. */
#include "conformance.h"
#include "kernels.h"
#include "stay.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

CASE(two_tasks) {
  enum { A = 1, B };
  static const gk_slot_desc slots[] = {GK_OWN(A, int, 1), GK_OWN(B, int, 1)};
  static const gk_task tasks[] = {GK_RUN(count, GK_ONE, A), GK_RUN(count, GK_ONE, B)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  const gk_status *status = launch(s, 0);
  holds(s, "A=1 B=1");
  expect_int(t, status->launch, 1);
  expect_int(t, status->loop_count + status->checkpoint_count, 0);
  expect_int(t, gk_passes(status, 0), 0);
}

/* Each task needs what the one before has written. */
CASE(three_tasks_chained) {
  enum { A = 1, B, C, N };
  static const gk_slot_desc slots[] = {GK_OWN(A, int, 64), GK_OWN(B, int, 64), GK_OWN(C, int, 64),
                                       GK_DEFAULT(N, int, 64)};
  static const gk_task tasks[] = {GK_RUN(add_to, N, B, A), GK_RUN(add_to, N, C, B), GK_RUN(add_to, N, A, C)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put_at(s, A, 63, 5);
  put(s, A, 2);
  trace(s, 0, "A=4 B=2 C=2 A[63]=10 B[63]=5 C[63]=5 A[1]=0");
  trace(s, 0, "A=12 B=6 C=8");
}

/* The order of all of them shows in one int. */
CASE(many_tasks) {
  enum { X = 1, ONE, TWO, MOST = 100000, SOME = 1000 };
  static const gk_slot_desc slots[] = {GK_OWN(X, int, 1), GK_DEFAULT(ONE, int, 1), GK_DEFAULT(TWO, int, 2)};
  static gk_task tasks[MOST];
  static const size_t counts[] = {1, 10, SOME, MOST};
  unsigned wanted = 0;
  for (size_t k = 0; k < MOST; ++k) tasks[k] = (gk_task)GK_RUN(note, GK_ONE, X, k % 3 == 1 ? TWO : ONE);
  for (size_t c = 0; c < GK_COUNT(counts); ++c) {
    if (counts[c] > SOME && is_sweep(t)) break;
    gk_list list = {GK_ABI, "many", tasks, counts[c], slots, GK_COUNT(slots)};
    subject *s = graph_of(t, &list, 0);
    wanted = 0;
    for (size_t k = 0; k < counts[c]; ++k) wanted = wanted * 31 + (k % 3 == 1 ? 2 : 1);
    launch(s, 0);
    expect_int(t, get(s, X), (int)wanted);
    end_graph(s);
  }
}

CASE(replay_three_times) {
  enum { A = 1, X, ONE, TWO };
  static const gk_slot_desc slots[] = {GK_OWN(A, int, 1), GK_OWN(X, int, 1), GK_DEFAULT(ONE, int, 1),
                                       GK_DEFAULT(TWO, int, 2)};
  static const gk_task tasks[] = {GK_RUN(count, GK_ONE, A), GK_RUN(note, GK_ONE, X, ONE),
                                  GK_RUN(note, GK_ONE, X, TWO)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  trace(s, 0, "A=1 X=33");
  trace(s, 0, "A=2 X=31746");
  const gk_status *status = launch(s, 0);
  holds(s, "A=3 X=30507939");
  expect_int(t, status->launch, 3);
  expect_int(t, status->applied, GK_UNCHANGED);
}

CASE(rebind_buffer) {
  enum { A = 1, N };
  static const gk_slot_desc slots[] = {GK_BUFFER(A, int), GK_DEFAULT(N, int, 100)};
  static const gk_task tasks[] = {GK_RUN(count, N, A)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  buffer *old = buffer_of(t, 100), *new = buffer_of(t, 100);
  bind_buffer(s, A, old);
  launch(s, 0);
  launch(s, 0);
  bind_buffer(s, A, new);
  expect(t, launch(s, 0)->applied != GK_UNCHANGED, "a slot was rebound, and the status says GK_UNCHANGED");
  expect_int(t, buffer_get(old, 99), 2); /* untouched */
  expect_int(t, buffer_get(new, 99), 1);
  buffer_free(old);
  launch(s, 0);
  expect_int(t, buffer_get(new, 0), 2);
}

/* All items are done with the new number of them, and nothing is recorded again. */
CASE(rebind_larger_size) {
  enum { A = 1, N, FEW = 256, MANY = 1024 };
  static const gk_slot_desc slots[] = {GK_BUFFER(A, int), GK_SCALAR(N, int)};
  static const gk_task tasks[] = {GK_RUN(count, N, A)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  buffer *small = buffer_of(t, FEW), *large = buffer_of(t, MANY + 1);
  bind_buffer(s, A, small);
  bind_int(s, N, FEW);
  launch(s, 0);
  expect_int(t, buffer_get(small, FEW - 1), 1);
  bind_buffer(s, A, large);
  bind_int(s, N, MANY);
  gk_applied applied = launch(s, 0)->applied;
  expect(t, applied == GK_BY_TABLE || applied == GK_BY_NODES, "applied is %d", (int)applied);
  for (size_t k = 0; k <= MANY; k += 341) expect_int(t, buffer_get(large, k), k < MANY ? 1 : 0);
  bind_int(s, N, FEW);
  launch(s, 0);
  expect_int(t, buffer_get(large, FEW - 1), 2);
  expect_int(t, buffer_get(large, FEW), 1);
}

CASE(rebind_scalar) {
  enum { X = 1, Y, Z, I, F, D, BIG, LARGE, L };
  static const gk_slot_desc slots[] = {
    GK_OWN(X, int, 1), GK_OWN(Y, float, 1), GK_OWN(Z, int64_t, 2), GK_SCALAR(I, int), GK_SCALAR(F, float),
    GK_SCALAR(D, double), GK_SCALAR(BIG, int64_t), GK_SCALAR(LARGE, uint), GK_STRUCT_VALUE(L, line),
  };
  static const gk_task tasks[] = {
    GK_RUN(add, GK_ONE, X, I), GK_RUN(apply, GK_ONE, X, L), GK_RUN(apply_in, GK_ONE, X, L),
    GK_RUN(scale, GK_ONE, Y, F, D), GK_RUN(wide, GK_ONE, Z, BIG, LARGE),
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  float one = 1.0f;
  int bits;
  memcpy(&bits, &one, sizeof bits);
  put(s, Y, bits);
  bind_int(s, I, 5);
  bind_float(s, F, 2.0);
  bind_float(s, D, 0.25);
  bind_int(s, BIG, -5000000000);
  bind_int(s, LARGE, 4000000000);
  bind_struct(s, L, &(line){3, 1}, sizeof(line));
  launch(s, 0);
  expect_int(t, get(s, X), (5 * 3 + 1) * 3 + 1);
  bind_int(s, I, -49);
  bind_float(s, F, 8.0);
  bind_int(s, BIG, 6000000000);
  launch(s, 0);
  expect_int(t, get(s, X), 4);
  bind_struct(s, L, &(line){1, 7}, sizeof(line));
  bind_int(s, BIG, 6000000000 + ((int64_t)1 << 32)); /* differs in its upper half alone */
  launch(s, 0);
  expect_int(t, get(s, X), 4 - 49 + 7 + 7);
  int64_t is[2];
  float y;
  must(t, gk_download(device_of(t), is, gk_bound(graph(s), Z), sizeof is));
  must(t, gk_download(device_of(t), &y, gk_bound(graph(s), Y), sizeof y));
  expect(t, is[0] == 10294967296 && is[1] == 4000000000, "%lld, %lld", (long long)is[0], (long long)is[1]);
  expect(t, y == 0.5f * 2.0f * 2.0f, "%g", (double)y);
}

/* Launches of both are under way at once; on a device they follow each other in the order of the calls. */
CASE(two_graphs_interleaved) {
  enum { X = 1, ID };
  static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_SCALAR(ID, int)};
  static const gk_task tasks[] = {GK_RUN(note, GK_ONE, X, ID)};
  static const gk_task twice[] = {GK_RUN(note, GK_ONE, X, ID), GK_RUN(note, GK_ONE, X, ID)};
  subject *a = graph_of(t, LIST_OF(tasks, slots), 0), *b = graph_of(t, LIST_OF(twice, slots), 0);
  buffer *x = buffer_of(t, 1);
  bind_buffer(a, X, x);
  bind_buffer(b, X, x);
  bind_int(a, ID, 1);
  bind_int(b, ID, 2);
  for (int k = 0; k < 3; ++k) {
    begin_launch(a, 0);
    begin_launch(b, 0);
  }
  bind_int(a, ID, 3);
  begin_launch(a, 0);
  finish_launches(a);
  finish_launches(b);
  unsigned wanted = 0;
  static const unsigned ids[] = {1, 2, 2, 1, 2, 2, 1, 2, 2, 3};
  for (size_t k = 0; k < GK_COUNT(ids); ++k) wanted = wanted * 31 + ids[k];
  expect_int(t, buffer_get(x, 0), (int)wanted);
}

static void one_of_two(trial *t) {
  enum { N = 1, A, X, COUNT, ITEMS = 3000 };
  static const gk_slot_desc slots[] = {GK_OWN(N, int, 1), GK_OWN(A, int, 1), GK_BUFFER(X, int),
                                       GK_DEFAULT(COUNT, int, ITEMS)};
  static const gk_task tasks[] = {GK_DO_WHILE(N), GK_RUN(count, GK_ONE, A), GK_RUN(count, COUNT, X),
                                  GK_RUN(decrease, GK_ONE, N), GK_END};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  buffer *x = buffer_of(t, ITEMS);
  bind_buffer(s, X, x);
  for (int k = 1; k <= (is_sweep(t) ? 3 : 10); ++k) {
    put(s, N, k);
    const gk_status *status = launch(s, 0);
    expect_int(t, gk_passes(status, 0), k);
    expect_int(t, get(s, A), k * (k + 1) / 2);
    expect_int(t, buffer_get(x, ITEMS - 1), k * (k + 1) / 2);
  }
}

CASE(two_devices_or_threads) {
  gk_device *other = another_device(t);
  at_once(t, device_of(t), other, one_of_two);
  at_once(t, device_of(t), device_of(t), one_of_two);
}

CASE(destroy_and_rebuild) {
  enum { A = 1, OWN, N };
  static const gk_slot_desc slots[] = {GK_BUFFER(A, int), GK_OWN(OWN, int, 10), GK_DEFAULT(N, int, 10)};
  static const gk_task tasks[] = {GK_RUN(count, GK_ONE, A), GK_RUN(count, N, OWN)};
  buffer *a = buffer_of(t, 1);
  for (int k = 1; k <= (is_sweep(t) ? 4 : 20); ++k) {
    subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
    bind_buffer(s, A, a);
    launch(s, 0);
    expect_int(t, buffer_get(a, 0), k);
    holds(s, "OWN=1 OWN[9]=1");
    if (k % 2) must(t, gk_launch(graph(s), 0)); /* is destroyed while it may run */
    end_graph(s);
    int is = buffer_get(a, 0);
    expect(t, is == k || (k % 2 && is == k + 1), "%d, not %d", is, k);
    buffer_put(a, 0, k);
  }
}

CASE(empty_list) {
  enum { F = 1 };
  static const gk_slot_desc slots[] = {GK_OWN(F, int, 1)};
  static const gk_list nothing = {GK_ABI, "nothing", NULL, 0, slots, GK_COUNT(slots)};
  static const gk_list neither = {GK_ABI, "neither", NULL, 0, NULL, 0};
  static const gk_task blocks[] = {GK_WHILE(F), GK_END, GK_IF(F), GK_ELSE, GK_END,
                                   GK_PARALLEL, GK_SECTION, GK_END, GK_END};
  for (int k = 0; k < 3; ++k) {
    subject *s = graph_of(t, k == 0 ? &nothing : k == 1 ? &neither : LIST_OF(blocks, slots), 0);
    trace(s, 0, "finished");
    expect_int(t, launch(s, 0)->launch, 2);
  }
}

/* Fresh, resumed, yielded or not. */
CASE(always_task_runs_every_launch) {
  enum { S = 1, A, B, C, E, F, HERE = 7 };
  static const gk_slot_desc slots[] = {GK_OWN(S, int, 1), GK_OWN(A, int, 1), GK_OWN(B, int, 1), GK_OWN(C, int, 1),
                                       GK_OWN(E, int, 1), GK_OWN(F, int, 1)};
  static const gk_task tasks[] = {
    GK_RUN_ALWAYS(count, GK_ONE, S), GK_RUN(count, GK_ONE, A), GK_CHECKPOINT(HERE, F), GK_RUN(count, GK_ONE, B), GK_END,
    GK_RUN(count, GK_ONE, C), GK_RUN_ALWAYS(count, GK_ONE, E),
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  trace(s, 0, "S=1 A=1 B=1 C=1 E=1, ran HERE");
  put(s, F, 1);
  trace(s, 0, "S=2 A=2 B=2 C=1 E=2, ran HERE, yielded HERE");
  trace(s, HERE, "S=3 A=2 B=3 C=1 E=3, ran HERE, yielded HERE");
  put(s, F, 0);
  trace(s, HERE, "S=4 A=2 B=4 C=2 E=4, ran HERE");
}

/* Shapes that no block divides, and more along y and z than a grid has blocks there. (Blocks of a kernel that is
 * written by hand for one backend are that backend's own affair.) */
CASE(native_launch_shape) {
  enum { X = 1, W, H, DEPTH, ROOM = 70001 * 3 + 8 };
  static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_SCALAR(W, int), GK_SCALAR(H, int),
                                       GK_SCALAR(DEPTH, int)};
  static const gk_task plane[] = {GK_RUN_2D(number, W, H, X, W)};
  static const gk_task volume[] = {GK_RUN_3D(number_3d, W, H, DEPTH, X, W, H)};
  static const int shapes[][3] = {{1, 1, 1}, {5, 7, 13}, {0, 5, 5}, {257, 3, 2}, {3, 257, 5}, {33, 1, 65},
                                  {3, 70001, 1}, {1, 2, 70001}, {5, 0, 5}, {5, 5, -1}};
  const size_t shape_count = is_sweep(t) ? 3 : GK_COUNT(shapes);
  subject *s[] = {graph_of(t, LIST_OF(plane, slots), 0), graph_of(t, LIST_OF(volume, slots), 0)};
  for (size_t k = 0; k < shape_count; ++k)
    for (int d = 0; d < 2; ++d) {
      int w = shapes[k][0], h = shapes[k][1], depth = d ? shapes[k][2] : 1;
      buffer *x = buffer_of(t, ROOM);
      bind_buffer(s[d], X, x);
      bind_int(s[d], W, w);
      bind_int(s[d], H, h);
      bind_int(s[d], DEPTH, depth);
      launch(s[d], 0);
      int items = w * h * depth;
      if (items > 0) expect_int(t, buffer_get(x, (size_t)items - 1), w - 1 + 100 * (h - 1) + 10000 * (depth - 1));
      expect_int(t, buffer_get(x, items > 0 ? (size_t)items : 0), 0);
      bind_buffer(s[d], X, NULL);
      buffer_free(x);
    }
}

CASE(copy_and_fill) {
  enum { A = 1, B, N, M, WIDE };
  static const gk_slot_desc slots[] = {GK_OWN(A, int, 300), GK_OWN(B, int, 300), GK_SCALAR(N, int), GK_OWN(M, int, 2),
                                       GK_OWN(WIDE, int64_t, 4)};
  static const gk_task tasks[] = {
    GK_FILL(A, N, -2),
    {.op = GK_OP_FILL, .name = "A part", .items = {M}, .args = {A}, .offset = 8, .pattern = 0x01020304},
    {.op = GK_OP_COPY, .name = "B = A", .items = {N}, .args = {B, A}, .offset = 4, .from_offset = 8},
    {.op = GK_OP_FILL, .name = "WIDE", .items = {GK_ONE}, .args = {WIDE}, .offset = 8, .pattern = UINT32_MAX},
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  bind_int(s, N, 20);
  put(s, M, 3);
  trace(s, 0, "A=-2 A[1]=-2 A[2]=16909060 A[4]=16909060 A[5]=-2 A[19]=-2 A[20]=0");
  holds(s, "B=0 B[1]=16909060 B[3]=16909060 B[4]=-2 B[18]=-2 B[19]=0");
  holds(s, "WIDE=0 WIDE[1]=0 WIDE[2]=-1 WIDE[3]=-1 WIDE[4]=0");
  put(s, M, 0);
  trace(s, 0, "A[2]=-2");
  put(s, M, -5);
  put_at(s, A, 299, 4);
  bind_int(s, N, 298);
  trace(s, 0, "A[297]=-2 A[298]=0, B[298]=4");
  bind_int(s, N, 0);
  put(s, A, 1);
  trace(s, 0, "A=1 B[1]=-2");
}

/* A sum adds to what is there, each launch anew, also from two sections; each of several has its own. */
CASE(sums_add_up) {
  enum { X = 1, N, ALL, TIMES, FIRST, SECOND, Y, REAL, ITEMS = 1000 };
  static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_SCALAR(N, int), GK_OWN(ALL, int, 1), GK_OWN(TIMES, int, 1),
                                       GK_OWN(FIRST, int, 1), GK_OWN(SECOND, int, 1), GK_OWN(Y, float, 4),
                                       GK_OWN(REAL, float, 1)};
  static const gk_task tasks[] = {
    GK_FILL_F32(Y, N, 0.5f), /* sums of it are exact */
    GK_PARALLEL,
      GK_SECTION, GK_RUN(total, N, X, ALL), GK_END,
      GK_SECTION, GK_RUN(total, N, X, ALL), GK_RUN(moments, N, X, TIMES, FIRST, SECOND), GK_END,
    GK_END,
    GK_RUN(total_float, N, Y, REAL),
  };
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  buffer *x = buffer_of(t, ITEMS);
  for (int k = 0; k < ITEMS; ++k) buffer_put(x, (size_t)k, k);
  bind_buffer(s, X, x);
  resize(s, Y, ITEMS);
  bind_int(s, N, ITEMS);
  put(s, ALL, 1);
  trace(s, 0, "ALL=999001 TIMES=1000 FIRST=499500 SECOND=332833500 REAL=1140457472"); /* 500.0f */
  trace(s, 0, "ALL=1998001 TIMES=2000 FIRST=999000 SECOND=665667000 REAL=1148846080"); /* 1000.0f */
  bind_int(s, N, 3);
  trace(s, 0, "ALL=1998007 TIMES=2003 FIRST=999003 SECOND=665667005 REAL=1148870656"); /* 1001.5f */
  bind_int(s, N, 0);
  trace(s, 0, "ALL=1998007 TIMES=2003");
}

/* ---- a library call ---------------------------------------------------------------------------------------------- */

typedef struct tally { int calls, native, factor; gk_result answer; } tally;

/* Counts, and notes what it gets by value. A library would record its work into `native`. */
static gk_result note_call(const gk_value *args, void *native) {
  tally *to = args[0].ptr;
  ++to->calls;
  to->native += native != NULL;
  to->factor = args[1].i32;
  return to->answer;
}

static gk_result shift(const gk_value *args, void *native) {
  if (native) return record_shift(args[0].ptr, native);
  shift_ints(args[0].ptr);
  return GK_OK;
}

static void recorded_calls(trial *t) {
  enum { X = 1, A, F, I };
  static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_OWN(A, int, 1), GK_OWN(F, int, 1), GK_OWN(I, int, 1)};
  static const gk_task tasks[] = {
    GK_CALL(shift, X), GK_RUN(count, GK_ONE, X), GK_IF(F), GK_CALL(shift, X), GK_END,
    GK_DO_WHILE(I),
      GK_PARALLEL, GK_SECTION, GK_CALL(shift, X), GK_END, GK_SECTION, GK_RUN(count, GK_ONE, A), GK_END, GK_END,
      GK_RUN(count, GK_ONE, X), GK_RUN(decrease, GK_ONE, I),
    GK_END,
  };
  buffer *before = buffer_of(t, SHIFTED), *after = buffer_of(t, SHIFTED);
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  for (size_t k = 0; k < SHIFTED; ++k) {
    buffer_put(before, k, (int)k + 10);
    buffer_put(after, k, (int)k + 20);
  }
  bind_buffer(s, X, before);
  put(s, I, 2);
  launch(s, 0);
  put(s, I, 1);
  put(s, F, 1);
  expect_int(t, launch(s, 0)->applied, GK_UNCHANGED);
  expect_int(t, get(s, A), 3);
  bind_buffer(s, X, after);
  put(s, I, 1);
  expect_int(t, launch(s, 0)->applied, GK_BY_RECORDING);
  expect_int(t, buffer_get(after, 0), 24); /* shifted three times, then counted */
}

static atomic_int made;
static gk_result count_made(const gk_value *args, void *native) {
  (void)native;
  if (args[0].ptr) atomic_fetch_add(&made, 1);
  return GK_OK;
}

/* Recorded or not, no call is made before all its slots have values. */
CASE(calls_wait_for_their_slots) {
  enum { WHERE = 1, X, A };
  static const gk_slot_desc slots[] = {{.slot = WHERE, .type = GK_HOST_PTR, .name = "WHERE"}, GK_BUFFER(X, int),
                                       GK_OWN(A, int, 1)};
  static const gk_task tasks[] = {GK_CALL(count_made, WHERE, X), GK_RUN(count, GK_ONE, A)};
  int here = 0, there = 0;
  atomic_store(&made, 0);
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  expect_int(t, atomic_load(&made), 0);
  bind_host(s, WHERE, &here, &there);
  refuses(t, GK_ERROR_INVALID, "slot 2 (X) is not bound|count_made", gk_launch(graph(s), 0));
  expect_int(t, atomic_load(&made), 0);
  bind_buffer(s, X, buffer_of(t, 1));
  expect_int(t, atomic_load(&made), 0);
  trace(s, 0, "A=1");
  expect(t, atomic_load(&made) >= 2, "the call was made for the reference alone");
}

/* It is as if all of them were read before the first is written. */
CASE(copy_within_one_slot) {
  enum { X = 1, N, M, LONG = 30000 };
  static const gk_slot_desc slots[] = {GK_OWN(X, int, LONG), GK_SCALAR(N, int), GK_OWN(M, int, 1)};
  static const gk_task tasks[] = {
    {.op = GK_OP_COPY, .name = "up", .items = {N}, .args = {X, X}, .offset = 4},
    {.op = GK_OP_COPY, .name = "down", .items = {M}, .args = {X, X}, .from_offset = 12},
    {.op = GK_OP_COPY, .name = "far", .items = {N}, .args = {X, X}, .offset = 4000, .from_offset = 8},
  };
  static const int counts[] = {7, 1, 0, 700, LONG - 1000};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  for (int k = 0; k < LONG; k += is_sweep(t) ? 3000 : 30) put_at(s, X, (size_t)k, k + 1);
  for (size_t k = 0; k < GK_COUNT(counts); ++k) {
    bind_int(s, N, counts[k]);
    put(s, M, counts[k]);
    launch(s, 0); /* the reference's memmove compares */
  }
}

CASE(library_call_recorded) {
  enum { WHERE = 1, N, A, F, I };
  static const gk_slot_desc slots[] = {{.slot = WHERE, .type = GK_HOST_PTR, .name = "WHERE"}, GK_DEFAULT(N, int, 3),
                                       GK_OWN(A, int, 1), GK_OWN(F, int, 1), GK_OWN(I, int, 1)};
  static const gk_task tasks[] = {
    GK_CALL(note_call, WHERE, N), GK_RUN(count, GK_ONE, A), GK_IF(F), GK_CALL(note_call, WHERE, N), GK_END,
    GK_DO_WHILE(I), GK_CALL(note_call, WHERE, N), GK_RUN(decrease, GK_ONE, I), GK_END,
  };
  tally is = {0}, wanted = {0};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  bind_host(s, WHERE, &is, &wanted);
  put(s, I, 3);
  trace(s, 0, "A=1, passes I=3");
  expect_int(t, is.factor, 3);
  if (is.native > 0) {
    if (strcmp(backend_of(t), "cuda") != 0)
      skip(t, "calls are recorded on backend %s, and the suite knows what to record on cuda alone", backend_of(t));
    recorded_calls(t);
    return;
  }
  expect_int(t, wanted.calls, 4);
  expect_int(t, is.calls, 4);
  bind_int(s, N, 5);
  put(s, F, 1);
  put(s, I, 1);
  launch(s, 0);
  expect_int(t, is.factor, 5);
  expect_int(t, is.calls, 7);
  put(s, I, 1);
  is.answer = GK_ERROR_UNSUPPORTED; /* becomes the launch's answer, and nothing behind it runs */
  must(t, gk_launch(graph(s), 0));
  refuses(t, GK_ERROR_UNSUPPORTED, "note_call", gk_wait(graph(s), NULL));
  holds(s, "A=2");
  is.answer = GK_OK;
  trace(s, 0, "A=3");
}
