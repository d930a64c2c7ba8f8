/* The reference interpreter against the golden traces of docs/contract.md and cases counted by hand. */
#include "reference/reference.h"
#include "gk_kernel.h"
#include "unit/support/test.h"

GK_SOURCE(reference_test)
GK_STRUCT(pair) { int a, b; };
GK_KERNEL(tick, (inout(int, x))) { x[i] += 1; }
GK_KERNEL(drop, (inout(int, x))) { x[i] -= 1; }
GK_KERNEL(move, (out(int, x), in(int, y))) { x[i] = y[i]; }
GK_KERNEL(ask, (inout(int, flag), inout(int, asked))) { /* raises the flag every second time */
  asked[i] += 1;
  flag[i] = asked[i] % 2;
}
GK_KERNEL(add, (sum(int, a), sum(uint, b), sum(float, c), sum(double, d))) {
  a[0] += i;
  b[0] += 2u * (uint)i;
  c[0] += 0.5f;
  d[0] += 0.25;
}
GK_KERNEL_3D(box, (out(int, x), value(int, nx), value(int, ny))) { x[i + nx * (j + ny * k)] = 100 * i + 10 * j + k; }
GK_KERNEL(values, (out(int, x), value(pair, p), in(pair, q), value(float, f), value(double, d), value(int64_t, l))) {
  x[0] = p.a - p.b;
  x[1] = q[0].a + q[0].b;
  x[2] = (int)(f * 2.0f) + (int)(d * 4.0) + (int)l;
}
GK_SOURCE_END

enum { A = 1, B, C, D, E, F, G, N, M, X, Y, S, LAST };
enum { LB = 10, LC, LP, LQ, LZ, LX };
static const gk_slot_desc slots[] = {GK_OWN(A, int, 8), GK_OWN(B, int, 8), GK_OWN(C, int, 8), GK_OWN(D, int, 8),
                                     GK_OWN(E, int, 8), GK_OWN(F, int, 8), GK_OWN(G, int, 8), GK_OWN(N, int, 8),
                                     GK_OWN(M, int, 8), GK_OWN(X, int, 8), GK_OWN(Y, int, 8), GK_OWN(S, int, 8)};
#define TICK(s) GK_RUN(tick, GK_ONE, s)
#define DROP(s) GK_RUN(drop, GK_ONE, s)

static reference *r;

static void open_list(const gk_list *list) {
  reference_close(r);
  assert_ok(gk_check(list, NULL, gk_print, NULL));
  r = reference_open(list);
  assert_non_null(r);
}

static int32_t *ints(gk_slot slot) { return reference_slot_at(r, reference_find(r, slot))->value.ptr; }

static void set_ints(size_t count, const int (*all)[2]) {
  for (size_t k = 0; k < count; ++k) ints(all[k][0])[0] = all[k][1];
}

static void launch_at(int line, int32_t label, gk_state state, int32_t yielded, size_t count, const int (*wanted)[2]) {
  const reference_status *status = reference_last(r);
  if (!reference_launch(r, label)) fail_msg("line %d: the launch failed", line);
  if (status->state != state || status->yielded != yielded)
    fail_msg("line %d: state %d yielded %d", line, (int)status->state, (int)status->yielded);
  for (size_t k = 0; k < count; ++k)
    if (ints(wanted[k][0])[0] != wanted[k][1])
      fail_msg("line %d: slot %d is %d, not %d", line, wanted[k][0], (int)ints(wanted[k][0])[0], wanted[k][1]);
}
#define WANTED(...) GK_COUNT(((const int[][2]){__VA_ARGS__})), (const int[][2]){__VA_ARGS__}
#define SET(...) set_ints(WANTED(__VA_ARGS__))
#define FINISHES(label, ...) launch_at(__LINE__, label, GK_FINISHED, 0, WANTED(__VA_ARGS__))
#define YIELDS(label, at, ...) launch_at(__LINE__, label, GK_YIELDED, at, WANTED(__VA_ARGS__))
#define CANCELLED(label, ...) launch_at(__LINE__, label, GK_CANCELLED, 0, WANTED(__VA_ARGS__))

/* ---- golden traces ----------------------------------------------------------------------------------------------- */

static int close_last(void **state) {
  (void)state;
  reference_close(r);
  r = NULL;
  return 0;
}
#define LAST(test) TEST_WITH(test, NULL, close_last)

/* A test with `r` opened for a list of these tasks. */
#define LIST_TEST(name, ...) \
  LIST(name##_list, __VA_ARGS__); \
  static void name##_opened(void); \
  LAST(name) { open_list(&name##_list), name##_opened(); } \
  static void name##_opened(void)

LIST_TEST(test_yield_and_resume, TICK(A), GK_CHECKPOINT(LB, F), TICK(B), GK_END, TICK(C)) {
  SET({F, 1});
  YIELDS(0, LB, {A, 1}, {B, 1}, {C, 0});
  assert_string_equal(reference_last(r)->yielded_name, "LB");
  SET({F, 0});
  FINISHES(LB, {A, 1}, {B, 2}, {C, 1});
  assert_string_equal(reference_last(r)->yielded_name, "");
  assert_false(reference_launch(r, 99));
  assert_int_equal(reference_runs(r, 0), 1);
  assert_int_equal(reference_runs(r, 2), 2);
  assert_int_equal(reference_lines(r), 5);
}

LIST_TEST(test_yield_in_a_loop, GK_DO_WHILE(N, .label = LX), TICK(A), GK_CHECKPOINT(LB, F), TICK(B), GK_END, TICK(C),
                                DROP(N), GK_END) {
  SET({N, 3}, {F, 1});
  YIELDS(0, LB, {A, 1}, {B, 1}, {C, 0}, {N, 3});
  assert_int_equal(reference_last(r)->loops[0].passes, 0);
  assert_true(reference_last(r)->checkpoints[0].ran);
  SET({F, 0});
  FINISHES(LB, {A, 3}, {B, 4}, {C, 3}, {N, 0});
  assert_int_equal(reference_last(r)->loops[0].passes, 3);
  assert_string_equal(reference_last(r)->loops[0].name, "LX");
}

LIST_TEST(test_yield_on_the_last_pass, GK_DO_WHILE(N), DROP(N), GK_CHECKPOINT(LB, F), TICK(B), GK_END, GK_END) {
  SET({N, 1}, {F, 1});
  YIELDS(0, LB, {N, 0}, {B, 1});
  SET({F, 0});
  FINISHES(LB, {N, 0}, {B, 2});
}

LIST_TEST(test_resume_past_a_loop, GK_DO_WHILE(N), TICK(X), DROP(N), GK_END, TICK(Y), GK_CHECKPOINT(LZ, F), TICK(A),
                                   GK_END) {
  SET({N, 2}, {F, 1});
  YIELDS(0, LZ, {X, 2}, {Y, 1}, {A, 1});
  SET({F, 0}, {N, 5});
  FINISHES(LZ, {X, 2}, {Y, 1}, {A, 2});
}

LIST_TEST(test_yield_in_nested_loops, GK_DO_WHILE(M), GK_FILL(N, GK_ONE, 2), TICK(S), GK_DO_WHILE(N),
                                      GK_CHECKPOINT(LP, F), TICK(A), GK_END, DROP(N), GK_END, DROP(M), GK_END) {
  SET({M, 2}, {F, 1});
  YIELDS(0, LP, {A, 1}, {S, 1});
  SET({F, 0});
  FINISHES(LP, {A, 5}, {S, 2}, {M, 0});
}

/* Read at the true end. */
LIST_TEST(test_own_flag_of_a_checkpoint, GK_CHECKPOINT(LP, A), TICK(A), TICK(B), GK_END, TICK(C)) {
  YIELDS(0, LP, {A, 1}, {B, 1}, {C, 0});
}

LIST_TEST(test_flags_of_checkpoints, GK_CHECKPOINT(LP, F), TICK(A), GK_END, GK_CHECKPOINT(LQ, G), TICK(B), GK_END,
          GK_TARGET(LZ), GK_END, TICK(C)) {
  SET({F, -1}, {G, -1});
  YIELDS(0, LP, {A, 1}, {B, 0});
  assert_true(reference_last(r)->checkpoints[0].ran);
  assert_false(reference_last(r)->checkpoints[1].ran);
  SET({G, 0});
  FINISHES(LQ, {A, 1}, {B, 1}, {C, 1});
  FINISHES(LZ, {A, 1}, {B, 1}, {C, 2});
}

LIST_TEST(test_joins, GK_DO_WHILE(N), GK_PARALLEL, GK_SECTION, TICK(X), GK_END, GK_SECTION, TICK(Y), TICK(Y), GK_END,
                      GK_END, GK_PARALLEL, GK_SECTION, GK_RUN(move, GK_ONE, A, X), GK_END, GK_SECTION,
                      GK_RUN(move, GK_ONE, B, Y), GK_END, GK_END, DROP(N), GK_END) {
  SET({N, 4});
  FINISHES(0, {A, 4}, {B, 8});
}

LIST_TEST(test_while, GK_WHILE(N), TICK(A), DROP(N), GK_END) {
  FINISHES(0, {A, 0});
  SET({N, 2});
  FINISHES(0, {A, 2});
}

LIST_TEST(test_always, GK_RUN_ALWAYS(tick, GK_ONE, S), TICK(A), GK_CHECKPOINT(LB, F), TICK(B), GK_END, TICK(C),
          GK_RUN_ALWAYS(tick, GK_ONE, E)) {
  SET({F, 1});
  YIELDS(0, LB, {S, 1}, {A, 1}, {B, 1}, {C, 0}, {E, 1});
  SET({F, 0});
  FINISHES(LB, {S, 2}, {A, 1}, {B, 2}, {C, 1}, {E, 2});
}

/* ---- branches ---------------------------------------------------------------------------------------------------- */

LIST_TEST(test_branches, GK_IF(F), GK_TARGET(LP), GK_END, TICK(A), GK_ELSE, GK_TARGET(LQ), GK_END, TICK(B), GK_END,
                         GK_SWITCH(G, .offset = 4), GK_CASE, TICK(C), GK_END, GK_CASE, GK_TARGET(LZ), GK_END, TICK(D),
                         GK_END, GK_END) {
  FINISHES(0, {A, 0}, {B, 1}, {C, 1}, {D, 0});
  SET({F, -7});
  ints(G)[1] = 1;
  FINISHES(0, {A, 1}, {B, 1}, {C, 1}, {D, 1});
  ints(G)[1] = 2;
  FINISHES(LQ, {A, 1}, {B, 2}, {C, 1}, {D, 1}); /* its own block, with any flag */
  ints(G)[1] = -1;
  FINISHES(LP, {A, 2}, {B, 2}, {C, 1}, {D, 1});
  FINISHES(LZ, {A, 2}, {B, 2}, {C, 1}, {D, 2});
}

/* ---- bounds and entries ------------------------------------------------------------------------------------------ */

LIST_TEST(test_bounds, GK_DO_WHILE(N, .label = LX, .max_iterations = 3), GK_CHECKPOINT(LP, F),
                       GK_RUN(ask, GK_ONE, F, S), GK_END, TICK(A), GK_END, GK_WHILE(M, .max_iterations = 2), TICK(B),
                       GK_END) {
  SET({N, 1}, {M, 1});
  const reference_status *status = reference_last(r);
  for (int pass = 1; pass <= 3; ++pass) { /* each pass is interrupted once, and counts once */
    YIELDS(pass == 1 ? 0 : LP, LP, {A, pass - 1}, {B, 0});
    assert_null(status->limit);
    assert_int_equal(status->loops[0].passes, pass == 1 ? 0 : 1);
  }
  FINISHES(LP, {A, 3}, {B, 2});
  assert_ptr_equal(status->limit, &status->loops[0]);
  assert_true(status->loops[0].hit_bound && status->loops[1].hit_bound);
  assert_string_equal(status->loops[1].name, "M");
  SET({M, 0});
  YIELDS(0, LP, {A, 3});
  YIELDS(LP, LP, {A, 4});
  YIELDS(0, LP, {A, 5}); /* a fresh launch forgets the count */
  YIELDS(LP, LP, {A, 6});
  FINISHES(LP, {A, 7}, {B, 2});
  assert_false(status->loops[1].hit_bound);
}

LIST_TEST(test_first_bound_of_sections, GK_PARALLEL, GK_SECTION, GK_DO_WHILE(X), GK_END, GK_END, GK_SECTION,
                                        GK_DO_WHILE(N, .max_iterations = 2), TICK(A), GK_END, GK_END, GK_SECTION,
                                        GK_DO_WHILE(N, .max_iterations = 1), TICK(B), GK_END, GK_END, GK_END) {
  SET({N, 1});
  FINISHES(0, {A, 2}, {B, 1});
  assert_ptr_equal(reference_last(r)->limit, &reference_last(r)->loops[1]);
}

/* ---- cancel ------------------------------------------------------------------------------------------------------ */

static long until_cancel;
static void count_down(void *user, reference *of, size_t line) {
  (void)user, (void)line;
  if (--until_cancel == 0) reference_cancel(of);
}
static void cancel_after(long tasks_and_passes) {
  until_cancel = tasks_and_passes;
  reference_watch(r, count_down, NULL);
}

LIST_TEST(test_cancel, GK_CHECKPOINT(LP, F), TICK(A), GK_END, GK_DO_WHILE(N), TICK(B), TICK(C), GK_END, TICK(D),
                       GK_RUN_ALWAYS(tick, GK_ONE, E)) {
  cancel_after(1);
  CANCELLED(0, {A, 1}, {B, 0}, {E, 1}); /* at the yield point */
  SET({F, 1});
  cancel_after(1);
  YIELDS(0, LP, {A, 2}, {B, 0}, {E, 2}); /* a true flag wins */
  SET({F, 0}, {N, 1});
  cancel_after(9);
  CANCELLED(0, {A, 3}, {B, 3}, {C, 3}, {D, 0}, {E, 3}); /* the pass is completed, and counts */
  assert_int_equal(reference_last(r)->loops[0].passes, 3);
  reference_cancel(r);
  CANCELLED(0, {A, 4}, {B, 3}, {E, 4}); /* one that was queued */
  SET({N, 0});
  cancel_after(5);
  FINISHES(0, {A, 5}, {B, 4}, {C, 4}, {D, 1}, {E, 5}); /* too late: no loop ends behind it */
}

LIST_TEST(test_cancel_in_sections, GK_PARALLEL, GK_SECTION, GK_DO_WHILE(N), TICK(A), GK_END, TICK(B), GK_END,
                                   GK_SECTION, TICK(C), GK_DO_WHILE(N), TICK(D), GK_END, TICK(E), GK_END, GK_END,
                                   TICK(X)) {
  SET({N, 1});
  cancel_after(4);
  CANCELLED(0, {A, 2}, {B, 0}, {C, 1}, {D, 1}, {E, 0}, {X, 0});
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

CALLED(triple) {
  *(int32_t *)args[0].ptr *= 3;
  return *(int32_t *)args[0].ptr == 27 ? GK_ERROR_DEVICE : GK_OK;
}

LIST_TEST(test_moves_and_calls,
          {.op = GK_OP_FILL, .name = "fill", .items = {N}, .args = {A}, .offset = 4, .pattern = 7},
          {.op = GK_OP_COPY, .name = "copy", .items = {M}, .args = {B, A}, .offset = 8, .from_offset = 4},
          GK_CALL(triple, C), TICK(D)) {
  SET({N, 3}, {M, 2}, {C, 1});
  FINISHES(0, {A, 0}, {B, 0}, {C, 3}, {D, 1});
  assert_memory_equal(ints(A), ((int32_t[]){0, 7, 7, 7, 0, 0, 0, 0}), 32);
  assert_memory_equal(ints(B), ((int32_t[]){0, 0, 7, 7, 0, 0, 0, 0}), 32);
  SET({N, -1}, {M, 0});
  ints(A)[1] = 1;
  FINISHES(0, {C, 9}, {D, 2});
  assert_int_equal(ints(A)[1], 1);
  assert_int_equal(ints(B)[2], 7);
  assert_false(reference_launch(r, 0)); /* the call fails */
  assert_int_equal(ints(D)[0], 2);
}

LIST_TEST(test_counts, {.op = GK_OP_KERNEL, .name = "tick", .kernel = &tick, .items = {N}, .args = {A}, .offset = 8}) {
  ints(N)[2] = 5;
  FINISHES(0, {A, 1});
  assert_int_equal(ints(A)[4], 1);
  assert_int_equal(ints(A)[5], 0);
  ints(N)[2] = -5;
  FINISHES(0, {A, 1});
  ints(N)[2] = 0;
  FINISHES(0, {A, 1});
}

enum { I32 = 1, U32, I64, BOX, SA, SB, SC, SD, P, Q, R32, R64, OUT, FROM_P };
static const gk_slot_desc typed[] = {GK_DEFAULT(I32, int, 3), GK_DEFAULT(U32, uint, 2), GK_DEFAULT(I64, int64_t, 2),
                                     GK_OWN(BOX, int, 12), GK_OWN(SA, int, 1), GK_OWN(SB, uint, 1),
                                     GK_OWN(SC, float, 1), GK_OWN(SD, double, 1), GK_STRUCT_VALUE(P, pair),
                                     GK_STRUCT_VALUE(Q, pair), GK_SCALAR(R32, float), GK_SCALAR(R64, double),
                                     GK_OWN(OUT, int, 3), GK_OWN(FROM_P, pair, 1)};

LAST(test_types) {
  LIST_OVER(typed, list, GK_RUN_3D(box, I32, U32, I64, BOX, I32, I32), GK_RUN(add, I32, SA, SB, SC, SD),
            GK_RUN(add, I32, SA, SB, SC, SD), GK_RUN(values, GK_ONE, OUT, P, Q, R32, R64, I64),
            GK_COPY(FROM_P, P, GK_ONE));
  open_list(&list);
  assert_true(reference_resize(r, reference_find(r, BOX), 3 * 3 * 2));
  reference_bind_bytes(r, reference_find(r, P), &(pair){5, 7});
  reference_bind_bytes(r, reference_find(r, Q), &(pair){1, 2});
  reference_bind_value(r, reference_find(r, R32), (gk_value){.f32 = 1.5f});
  reference_bind_value(r, reference_find(r, R64), (gk_value){.f64 = 0.25});
  SET({SA, 100});
  FINISHES(0, {SA, 106}, {SB, 12}, {OUT, -2});
  assert_int_equal(ints(BOX)[2 + 3 * (1 + 3 * 1)], 211);
  assert_int_equal(ints(BOX)[3 * 2], 0); /* ny items along y, of three rows */
  assert_true(*(float *)(void *)ints(SC) == 3.0f);
  assert_true(*(double *)(void *)ints(SD) == 1.5);
  assert_int_equal(ints(OUT)[1], 3);
  assert_int_equal(ints(OUT)[2], 3 + 1 + 2);
  assert_memory_equal(ints(FROM_P), (&(pair){5, 7}), sizeof(pair));
  reference_bind_value(r, reference_find(r, U32), (gk_value){.u32 = 4000000000u});
  assert_false(reference_launch(r, 0));
}

LIST_TEST(test_memory, TICK(A)) {
  int32_t mine[2] = {40, 50};
  size_t at = reference_find(r, A);
  const reference_slot *slot = reference_slot_at(r, at);
  assert_true(slot->owned && slot->bytes == 32);
  FINISHES(0, {A, 1});
  reference_bind(r, at, mine, sizeof mine);
  assert_true(!slot->owned && slot->bytes == sizeof mine);
  FINISHES(0, {A, 41});
  assert_true(reference_resize(r, at, 2)); /* what was in its own memory stays */
  assert_true(slot->owned && slot->bytes == 8);
  FINISHES(0, {A, 2});
  assert_true(reference_resize(r, at, 4));
  assert_int_equal(ints(A)[0], 2);
  assert_int_equal(ints(A)[3], 0);
  assert_int_equal(mine[0], 41);
  assert_int_equal(reference_find(r, LAST), SIZE_MAX);
}

/* ---- lists in lists ---------------------------------------------------------------------------------------------- */

enum { TO = 1, COUNT, FLAG };
static const gk_slot_desc inner_slots[] = {GK_BUFFER(TO, int), GK_OWN(COUNT, int, 2), GK_OWN(FLAG, int, 1)};
LIST_OVER(inner_slots, inner, GK_CHECKPOINT(1, FLAG), TICK(TO), TICK(COUNT), GK_END);
static const gk_slot_desc middle_slots[] = {GK_BUFFER(TO, int), GK_BUFFER(COUNT, int)};
LIST_OVER(middle_slots, middle, GK_INCLUDE(inner, 10, TO), GK_INCLUDE_AS(again, inner, 20, TO, COUNT),
                                GK_DO_WHILE(COUNT, .label = 3), DROP(COUNT), GK_END);

LIST_TEST(test_lists_in_lists, GK_INCLUDE_AS(one, middle, 100, A, N), GK_INCLUDE_AS(two, middle, 200, B, M), TICK(C)) {
  const reference_status *status = reference_last(r);
  assert_int_equal(reference_slot_count(r), GK_COUNT(slots) + 2 * 3);
  size_t flag = reference_find_name(r, "two.again.FLAG"), count = reference_find_name(r, "two.inner.COUNT");
  assert_true(flag != SIZE_MAX && count != SIZE_MAX);
  assert_int_equal(reference_find_name(r, "two.again.COUNT"), SIZE_MAX);
  assert_int_equal(reference_find_name(r, "one.inner.COUNT"), GK_COUNT(slots));
  int32_t *flags = reference_slot_at(r, flag)->value.ptr;
  flags[0] = 1;
  YIELDS(0, 221, {A, 2}, {N, 0}, {B, 2}, {M, 1}, {C, 0});
  assert_string_equal(status->yielded_name, "two.again.1");
  assert_string_equal(status->loops[1].name, "two.3");
  assert_int_equal(status->loops[1].label, 203);
  assert_int_equal(status->checkpoint_count, 4);
  flags[0] = 0;
  FINISHES(221, {A, 2}, {B, 3}, {M, 0}, {C, 1});
  assert_int_equal(status->loops[0].passes, 0);
  assert_int_equal(status->loops[1].passes, 2);
  assert_int_equal(*(int32_t *)reference_slot_at(r, count)->value.ptr, 1);
  assert_int_equal(reference_lines(r), 2 * (4 + 4 + 3) + 1);
}

int main(void) { return run_all_tests(); }
