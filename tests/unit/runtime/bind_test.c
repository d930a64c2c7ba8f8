#include "unit/support/runtime.h"
#include "unit/support/runtime_kernels.h"
#include <float.h>
#include <math.h>

enum { X = 1, COUNT, I, U, L, F, D, Y, TO, LINE, OWNED, SUM, FREE, HOST, LAST = 20 };
static const gk_slot_desc slots[] = {
    GK_BUFFER(X, int), GK_DEFAULT(COUNT, int, 1), GK_SCALAR(I, int), GK_SCALAR(U, uint), GK_SCALAR(L, int64_t),
    GK_SCALAR(F, float), GK_SCALAR(D, double), GK_BUFFER(Y, float), GK_BUFFER(TO, int64_t), GK_STRUCT_VALUE(LINE, line),
    GK_OWN(OWNED, int, 4), GK_BUFFER(SUM, int), GK_BUFFER(FREE, int),
    {.slot = HOST, .type = GK_HOST_PTR, .name = "HOST"}, GK_BUFFER(LAST, int)};

LIST(add_list, GK_RUN(add, COUNT, X, I));
LIST(wide, GK_RUN(put, GK_ONE, TO, L, U), GK_RUN(scale, GK_ONE, Y, F, D));
LIST(line_list, GK_RUN(apply, COUNT, X, LINE));
LIST(total_list, GK_RUN(total, COUNT, OWNED, SUM));

/* Counts structs that don't lie at a multiple of 64. */
HOST_KERNEL(where_is_it) { *(int *)args[0].ptr += (uintptr_t)args[1].ptr % 64 != 0; }

static void run(gk_graph *graph) { run_to_end(graph, 0); }

/* ---- types and ranges -------------------------------------------------------------------------------------------- */

TEST_ON(ALL_BACKENDS, every_type_arrives) {
  int64_t *to = gk_alloc(device, 2 * sizeof *to, GK_DEVICE_MEMORY), back[2];
  float *y = gk_alloc(device, sizeof *y, GK_DEVICE_MEMORY), scaled;
  gk_graph *graph = GRAPH_ON(device, &wide, 0, {TO, to}, {Y, y});
  static const int64_t big[] = {INT64_MIN, -1, 0, INT64_MAX};
  static const int64_t wide_values[] = {0, 1, INT32_MAX + INT64_C(1), UINT32_MAX};
  for (int k = 0; k < 4; ++k) {
    assert_ok(gk_upload(device, y, &(float){1}, sizeof *y));
    BIND_INTS(graph, {L, big[k]}, {U, wide_values[k]});
    assert_ok(gk_bind_float(graph, F, 1.5));
    assert_ok(gk_bind_float(graph, D, -3.0));
    assert_invalid("gk_bind_float: slot 6 (F) is a float, and -1e+300 is out of range",
                   gk_bind_float(graph, F, -1e300));
    assert_invalid("and 1e+39 is out of range", gk_bind_float(graph, F, 1e39));
    assert_ok(gk_bind_float(graph, F, -(double)INFINITY)); /* which a float has */
    assert_ok(gk_bind_float(graph, F, (double)FLT_MAX));
    assert_ok(gk_bind_float(graph, F, 1.5));
    run(graph);
    assert_ok(gk_download(device, back, to, sizeof back));
    assert_true(back[0] == big[k] && back[1] == wide_values[k]);
    assert_ok(gk_download(device, &scaled, y, sizeof scaled));
    assert_true(scaled == -4.5f);
  }
}

TEST_ON(ALL_BACKENDS, number_out_of_range_is_refused) {
  gk_graph *graph = graph_on(device, &add_list, 0);
  BIND_INTS(graph, {I, INT32_MIN}, {I, INT32_MAX});
  assert_invalid("slot 3 (I) holds -2147483648 to 2147483647, and 2147483648 is out of range",
                 gk_bind_int(graph, I, INT32_MAX + INT64_C(1)));
  assert_invalid("-2147483649", gk_bind_int(graph, I, INT32_MIN - INT64_C(1)));
  assert_invalid("slot 4 (U) holds 0 to 4294967295, and -1 is", gk_bind_int(graph, U, -1));
  assert_invalid("4294967296", gk_bind_int(graph, U, INT64_C(1) << 32));
}

TEST_ON(ALL_BACKENDS, wrong_type_is_named) {
  gk_graph *graph = graph_on(device, &add_list, 0);
  line l = {1, 2};
  int host;
  assert_invalid("gk_bind: slot 3 (I) is of type GK_I32; use gk_bind_int", gk_bind(graph, I, &host));
  assert_invalid("gk_bind: slot 10 (LINE) is of type GK_BYTES; use gk_bind_bytes", gk_bind(graph, LINE, &host));
  assert_invalid("gk_bind_int: slot 6 (F) is of type GK_F32; use gk_bind_float", gk_bind_int(graph, F, 1));
  assert_invalid("gk_bind_int: slot 1 (X) is of type GK_PTR; use gk_bind", gk_bind_int(graph, X, 1));
  assert_invalid("gk_bind_float: slot 5 (L) is of type GK_I64; use gk_bind_int", gk_bind_float(graph, L, 1));
  assert_invalid("gk_bind_bytes: slot 7 (D) is of type GK_F64; use gk_bind_float",
                 gk_bind_bytes(graph, D, &l, sizeof l));
  assert_invalid("gk_bind_bytes: slot 10 (LINE) takes 8 bytes (line), not 4", gk_bind_bytes(graph, LINE, &l, 4));
  assert_invalid("needs a struct, not NULL", gk_bind_bytes(graph, LINE, NULL, sizeof l));
  assert_invalid("gk_resize: slot 14 (HOST) is of type GK_HOST_PTR; only one of type GK_PTR",
                 gk_resize(graph, HOST, 1));
  assert_gives_null("gk_bound: slot 3 (I)", gk_bound(graph, I));
}

TEST_ON(ALL_BACKENDS, unknown_slot_is_named) {
  gk_graph *graph = graph_on(device, &add_list, 0);
  static const gk_slot unknown[] = {0, -1, INT32_MIN, 15, 19, 21, INT32_MAX};
  for (size_t k = 0; k < GK_COUNT(unknown); ++k) {
    char words[100];
    snprintf(words, sizeof words, "graph add_list has no slot %d", unknown[k]);
    assert_invalid(words, gk_bind(graph, unknown[k], &words));
    assert_invalid(words, gk_bind_int(graph, unknown[k], 1));
    assert_invalid(words, gk_bind_float(graph, unknown[k], 1));
    assert_invalid(words, gk_bind_bytes(graph, unknown[k], &words, 8));
    assert_invalid(words, gk_resize(graph, unknown[k], 1));
    assert_null(gk_bound(graph, unknown[k]));
  }
}

/* ---- what a launch refuses --------------------------------------------------------------------------------------- */

TEST_ON(ALL_BACKENDS, failed_bind_is_told_by_the_next_launch) {
  int *x = int_on(device, 0);
  gk_graph *graph = GRAPH_ON(device, &add_list, 0, {X, x});
  assert_ok(gk_bind_int(graph, I, 5));
  gk_bind_int(graph, I, INT64_MAX);
  gk_bind(graph, 99, x);
  assert_invalid("gk_launch: a call before it failed: gk_bind_int: slot 3 (I) holds", gk_launch(graph, 0));
  run(graph); /* the error was reported; the earlier binding stays */
  assert_int_equal(int_at(device, x), 5);
  gk_bind_int(graph, I, INT64_MAX);
  assert_ok(gk_bind_int(graph, I, 6)); /* corrected */
  run(graph);
  assert_int_equal(int_at(device, x), 11);
  gk_bind_int(graph, I, INT64_MAX);
  gk_bind_float(graph, COUNT, 1);
  gk_bind_float(graph, COUNT, 2); /* a slot counts once */
  assert_ok(gk_bind_int(graph, I, 7)); /* corrects one of the two */
  assert_invalid("gk_launch: a call before it failed: it was to bind slot 2 (COUNT)", gk_launch(graph, 0));
  run(graph);
  assert_int_equal(int_at(device, x), 18);
  gk_bind_int(graph, I, INT64_MAX);
  gk_bind_float(graph, COUNT, 1);
  assert_ok(gk_bind_int(graph, COUNT, 1));
  assert_ok(gk_bind_int(graph, I, 8)); /* both */
  run(graph);
  assert_int_equal(int_at(device, x), 26);
  gk_bind_int(graph, I, INT64_MAX);
  gk_bind_float(graph, COUNT, 1);
  assert_ok(gk_bind_int(graph, I, 9));
  gk_bind_int(graph, I, INT64_MIN); /* its message is kept now */
  assert_ok(gk_bind_int(graph, COUNT, 1));
  assert_invalid("and -9223372036854775808 is out of range", gk_launch(graph, 0));
  gk_bind_int(graph, I, INT64_MAX);
  gk_bind(graph, -5, x);
  assert_ok(gk_bind_int(graph, I, 9));
  assert_invalid("a call before it failed: it named a slot that graph add_list doesn't have", gk_launch(graph, 0));
}

TEST_ON(ALL_BACKENDS, unbound_slot_is_named_with_its_task) {
  gk_graph *graph = graph_on(device, &wide, 0);
  int64_t *to = gk_alloc(device, 2 * sizeof *to, GK_DEVICE_MEMORY);
  float *y = gk_alloc(device, sizeof *y, GK_DEVICE_MEMORY);
  assert_invalid("slot 4 (U) is not bound, and task 0 (put) uses it; call gk_bind_int before", gk_launch(graph, 0));
  BIND_INTS(graph, {U, 1}, {L, 1});
  assert_invalid("slot 6 (F) is not bound, and task 1 (scale) uses it; call gk_bind_float before", gk_launch(graph, 0));
  assert_ok(gk_bind_float(graph, F, 1));
  assert_ok(gk_bind_float(graph, D, 1));
  assert_invalid("slot 8 (Y) is not bound, or is bound to NULL, and task 1 (scale) uses it; call gk_bind or gk_resize",
                 gk_launch(graph, 0));
  BIND(graph, {Y, y}, {TO, to});
  run(graph); /* X and others are in no task */
  assert_ok(gk_bind(graph, TO, NULL));
  assert_invalid("slot 9 (TO) is not bound", gk_launch(graph, 0));
  assert_invalid("slot 10 (LINE) is not bound, and task 0 (apply) uses it; call gk_bind_bytes",
                 gk_launch(GRAPH_ON(device, &line_list, 0, {X, to}), 0));
}

TEST_ON(ALL_BACKENDS, unaligned_memory_is_refused) {
  LIST(list, GK_RUN(add, COUNT, X, I), GK_IF(FREE), GK_FILL(Y, COUNT, 0), GK_END, GK_RUN(put, FREE, TO, L, U));
  static const struct { gk_slot slot; size_t wrong, right; const char *said; } cases[] = {
      {X, 2, 4, "slot 1 (X) is bound to an address that is no multiple of 4, as task 0 (add) needs it"},
      {Y, 33, 36, "slot 8 (Y) is bound to an address that is no multiple of 4"},
      {TO, 68, 72, "slot 9 (TO) is bound to an address that is no multiple of 8, as task 4 (put)"},
      {FREE, 17, 20, "slot 13 (FREE) is bound to an address that is no multiple of 4, as task 1"}};
  gk_graph *graph = graph_on(device, &list, 0);
  char *memory = gk_alloc(device, 128, GK_DEVICE_MEMORY);
  BIND_INTS(graph, {I, 1}, {L, 1}, {U, 1});
  for (size_t k = 0; k < GK_COUNT(cases); ++k) assert_ok(gk_bind(graph, cases[k].slot, memory + cases[k].wrong));
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    assert_invalid(cases[k].said, gk_launch(graph, 0));
    assert_ok(gk_bind(graph, cases[k].slot, memory + cases[k].right));
  }
  run(graph);
  assert_int_equal(int_at(device, memory + 4), 1);
}

/* A struct lies as its type wants it, in every launch. */
TEST_ON(ALL_BACKENDS, structs_are_aligned) {
  static const gk_param params[] = {{"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT},
                                    {"w", "wide_struct", 128, 64, GK_BYTES, GK_ACCESS_VALUE}};
  static const gk_kernel kernel = {.name = "where", .params = params, .param_count = 2, .host = where_is_it};
  static const gk_slot_desc table[] = {GK_BUFFER(1, int), {2, GK_BYTES, "W", "wide_struct", .element_bytes = 128},
                                       {3, GK_BYTES, "V", "wide_struct", .element_bytes = 128}};
  LIST_OVER(table, list, GK_RUN(kernel, GK_ONE, 1, 2), GK_RUN(kernel, GK_ONE, 1, 3));
  int *x = int_on(device, 0);
  gk_graph *graph = GRAPH_ON(device, &list, 0, {1, x});
  static const char bytes[128];
  assert_ok(gk_bind_bytes(graph, 2, bytes, 128));
  assert_ok(gk_bind_bytes(graph, 3, bytes, 128));
  for (int k = 0; k < 16; ++k) run(graph);
  assert_int_equal(int_at(device, x), 0);
}

TEST_ON(ALL_BACKENDS, overlapping_memory_is_refused) {
  int *both = ints_on(device, (int[]){1, 2, 3, 4}, 4);
  gk_graph *graph = GRAPH_ON(device, &total_list, 0, {OWNED, both}, {SUM, both}); /* reads the one, writes the other */
  assert_invalid("slots 11 (OWNED) and 12 (SUM) are bound to overlapping memory", gk_launch(graph, 0));
  assert_invalid("overlapping", gk_launch(graph, 0)); /* it still is */
  assert_ok(gk_bind(graph, SUM, both + 3));
  run(graph);
  assert_int_equal(int_at(device, both + 3), 5);
  assert_ok(gk_resize(graph, OWNED, 8)); /* of memory that gk knows as a whole, the whole counts */
  assert_ok(gk_bind(graph, SUM, (int *)gk_bound(graph, OWNED) + 7));
  assert_invalid("overlapping memory", gk_launch(graph, 0));
  BIND(graph, {FREE, both}, {SUM, both}); /* FREE is in no task: it may share */
  run(graph);
}

/* Of many slots, bound in any order, the two that share memory are found: a descending one is what takes the most
 * moves to be sorted. */
TEST_ON(ALL_BACKENDS, overlap_is_found_among_many) {
  enum { SLOTS = 600 };
  static gk_slot_desc table[SLOTS];
  static gk_task tasks[SLOTS / 2];
  static char names[SLOTS][16];
  for (int k = 0; k < SLOTS; ++k) {
    snprintf(names[k], sizeof names[k], "N%d", k);
    table[k] = (gk_slot_desc){.slot = k + 1, .type = GK_PTR, .name = names[k], .element = "int",
                              .element_bytes = sizeof(int)};
    if (k % 2) tasks[k / 2] = (gk_task)GK_RUN(total, GK_ONE, k, k + 1);
  }
  const gk_list list = GK_LIST(list, tasks, table);
  gk_graph *graph = graph_on(device, &list, 0);
  int *memory = gk_alloc(device, SLOTS * sizeof *memory, GK_DEVICE_MEMORY);
  for (int factor = 1; factor < SLOTS; factor += 6) { /* 2 and 3 divide none of them, 5 some: those stay as they are */
    const bool spreads = factor % 5 != 0;
    for (int k = 0; k < SLOTS; ++k)
      assert_ok(gk_bind(graph, k + 1, memory + SLOTS - 1 - (spreads ? k * factor % SLOTS : k)));
    run(graph);
    const int pair = factor * 7 % (SLOTS / 2);
    void *of_first = gk_bound(graph, 2 * pair + 1), *before = gk_bound(graph, 2 * pair + 2);
    char words[100];
    snprintf(words, sizeof words, "slots %d (N%d) and %d (N%d) are bound to overlapping", 2 * pair + 1, 2 * pair,
             2 * pair + 2, 2 * pair + 1);
    assert_ok(gk_bind(graph, 2 * pair + 2, of_first));
    assert_invalid(words, gk_launch(graph, 0));
    assert_ok(gk_bind(graph, 2 * pair + 2, before));
    run(graph);
  }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

TEST_ON(ALL_BACKENDS, resize_keeps_and_zeroes) {
  int *sum = int_on(device, 0), back[8];
  gk_graph *graph = GRAPH_ON(device, &total_list, 0, {SUM, sum});
  int *owned = gk_bound(graph, OWNED);
  assert_non_null(owned); /* the table gave it 4 */
  assert_int_equal(int_at(device, owned + 3), 0);
  assert_ok(gk_upload(device, owned, (int[]){1, 2, 3, 4}, 4 * sizeof(int)));
  assert_ok(gk_resize(graph, OWNED, 8));
  ASSERT_INTS(gk_bound(graph, OWNED), 1, 2, 3, 4, 0, 0, 0, 0);
  assert_ok(gk_resize(graph, OWNED, 2));
  assert_invalid("which has 8 bytes", gk_download(device, back, gk_bound(graph, OWNED), 12));
  assert_ok(gk_resize(graph, OWNED, 5)); /* what was cut off is gone */
  ASSERT_INTS(gk_bound(graph, OWNED), 1, 2, 0, 0, 0);
  owned = gk_bound(graph, OWNED);
  int *other = ints_on(device, (int[]){10, 20}, 2);
  assert_ok(gk_bind(graph, OWNED, other)); /* the caller's, and back */
  assert_ptr_equal(gk_bound(graph, OWNED), other);
  assert_ok(gk_bind_int(graph, COUNT, 2));
  run(graph);
  assert_int_equal(int_at(device, sum), 30);
  assert_ok(gk_resize(graph, OWNED, 5));
  assert_ptr_equal(gk_bound(graph, OWNED), owned);
  run(graph);
  assert_int_equal(int_at(device, sum), 33);
  assert_ok(gk_resize(graph, OWNED, 0));
  assert_ok(gk_bind_int(graph, COUNT, 0));
  run(graph);
}

TEST_ON(ALL_BACKENDS, resize_waits_for_launches) {
  LIST(list, GK_RUN(add, COUNT, OWNED, I));
  gk_graph *graph = graph_on(device, &list, 0);
  assert_ok(gk_bind_int(graph, I, 1));
  for (int k = 0; k < 100; ++k) {
    assert_ok(gk_launch(graph, 0));
    assert_ok(gk_resize(graph, OWNED, (size_t)(4 + k % 3)));
  }
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(device, gk_bound(graph, OWNED)), 100);
}

TEST_ON(ALL_BACKENDS, resize_that_fails_changes_nothing) {
  gk_graph *graph = GRAPH_ON(device, &total_list, 0, {SUM, int_on(device, 0)});
  int *owned = gk_bound(graph, OWNED);
  set_int(device, owned, 3);
  assert_fails(GK_ERROR_MEMORY, "slot 11 (OWNED)", gk_resize(graph, OWNED, SIZE_MAX));
  assert_fails(GK_ERROR_MEMORY, "slot 11 (OWNED)", gk_resize(graph, OWNED, SIZE_MAX / 4));
  assert_ptr_equal(gk_bound(graph, OWNED), owned);
  assert_fails(GK_ERROR_MEMORY, "a call before it failed", gk_launch(graph, 0));
  static const struct { fake_entry entry; unsigned nth; gk_result code; } failures[] = {
    {FAKE_ALLOC, 1, GK_ERROR_MEMORY}, {FAKE_COPY, 1, GK_ERROR_DEVICE}, {FAKE_COPY, 2, GK_ERROR_DEVICE}};
  const size_t count = GK_COUNT(failures) - (gk_host_address(device, owned) != NULL); /* then no zeros are copied */
  for (size_t k = 0; k < count && is_fake(device); ++k) {
    unsigned leaks = fake_leaks();
    fake_fail(failures[k].entry, failures[k].nth, failures[k].code, false);
    assert_fails(failures[k].code, "failed on request", gk_resize(graph, OWNED, 100)); /* the backend's own answer */
    assert_ptr_equal(gk_bound(graph, OWNED), owned);
    assert_int_equal(fake_leaks(), leaks);
    assert_int_equal(gk_launch(graph, 0), failures[k].code);
    run(graph);
  }
  assert_int_equal(int_at(device, owned), 3);
}

TEST_ON(ALL_BACKENDS, rebinding_leaves_the_old_alone) {
  int *small = int_on(device, 0), *large = ints_on(device, NULL, 1000);
  gk_graph *graph = GRAPH_ON(device, &add_list, 0, {X, small});
  assert_ok(gk_bind_int(graph, I, 1));
  run(graph);
  assert_ok(gk_bind(graph, X, large));
  assert_ok(gk_bind_int(graph, COUNT, 1000));
  assert_int_equal(run_to_end(graph, 0)->applied, GK_BY_TABLE);
  assert_int_equal(run_to_end(graph, 0)->applied, GK_UNCHANGED);
  ASSERT_VALUES({small, 1}, {large + 999, 2});
}

TEST_ON(ALL_BACKENDS, structs_are_copied_per_launch) {
  int *x = int_on(device, 1), expected = 1;
  gk_graph *graph = GRAPH_ON(device, &line_list, 0, {X, x});
  fake_hold();
  for (int k = 0; k < 10; ++k) {
    line l = {k % 3, k};
    assert_ok(gk_bind_bytes(graph, LINE, &l, sizeof l));
    expected = expected * l.factor + l.offset;
    l = (line){-1, -1}; /* the caller's may go */
    assert_ok(gk_launch(graph, 0));
  }
  fake_go();
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(int_at(device, x), expected);
}

/* ---- included lists ---------------------------------------------------------------------------------------------- */

enum { IN_X = 1, IN_COUNT, IN_OWN, IN_LINE };
static const gk_slot_desc inner_slots[] = {GK_BUFFER(IN_X, int), GK_DEFAULT(IN_COUNT, int, 1), GK_OWN(IN_OWN, int, 1),
                                           GK_STRUCT_VALUE(IN_LINE, line)};
LIST_OVER(inner_slots, inner, GK_RUN(apply, IN_COUNT, IN_X, IN_LINE), GK_RUN(total, IN_COUNT, IN_X, IN_OWN));
static const gk_task outer_tasks[] = {GK_INCLUDE(inner, 0, X), GK_RUN(add, COUNT, X, I),
                                      GK_INCLUDE_AS(again, inner, 100, OWNED, COUNT)};

TEST_ON(ALL_BACKENDS, slots_of_included_lists_are_found) {
  gk_task tasks[3];
  memcpy(tasks, outer_tasks, sizeof tasks);
  const gk_list outer = GK_LIST(outer, tasks, slots);
  gk_graph *graph = graph_on(device, &outer, 0);
  memset(tasks, 0, sizeof tasks); /* lists are copied */
  int *x = int_on(device, 10);
  assert_ok(gk_bind(graph, X, x));
  assert_ok(gk_bind_int(graph, I, 1));
  static const struct { const char *name; gk_slot slot; } known[] = {
      {"X", X}, {"LAST", LAST}, {"IN_X", 0}, {"", 0}, {NULL, 0}, {"inner.IN_X", 0} /* it is the outer's */};
  for (size_t k = 0; k < GK_COUNT(known); ++k)
    if (gk_find_slot(graph, known[k].name) != known[k].slot) fail_msg("%s", known[k].name);
  gk_slot own = gk_find_slot(graph, "inner.IN_OWN"), own_again = gk_find_slot(graph, "again.IN_OWN");
  assert_true(own > LAST && own_again > LAST && own != own_again);
  assert_invalid("(inner.IN_LINE) is not bound, and task 0 (inner.apply)", gk_launch(graph, 0));
  line l = {2, 3};
  assert_ok(gk_bind_bytes(graph, gk_find_slot(graph, "inner.IN_LINE"), &l, sizeof l));
  assert_invalid("(again.IN_LINE) is not bound, and task 2 (again.apply)", gk_launch(graph, 0));
  assert_ok(gk_bind_bytes(graph, gk_find_slot(graph, "again.IN_LINE"), &(line){0, 7}, sizeof l));
  run(graph);
  ASSERT_VALUES({x, 24}, {gk_bound(graph, own), 23}, {gk_bound(graph, own_again), 7});
}

int main(void) { return run_all_tests(); }
