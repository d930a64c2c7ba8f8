/* Lists in a program's own graphs run where it put them, with the bound memory and memory of their own. */
#include "cuda/backend.h"
#include "runtime/graph.h"
#include "cuda/launch.h"
#include "direct_list.h"

TEST_ON_HAND(test_between_others) {
  world w = world_of(device);
  int *before = int_on(device, 0), *behind = int_on(device, -1);
  CUgraphNode first[] = {hand_add(w.whole, NULL, "hand_put", w.count, 4),
                         hand_add(w.whole, NULL, "hand_add", before, 1)};
  w.graph = add_list(device, &w, &loop, 0, first, 2);
  hand_add(w.whole, w.last, "hand_copy", behind, at(w.x));
  complete_world(&w);
  for (int k = 1; k <= 3; ++k) {
    gk_bind_int(w.graph, A, k);
    set_int(device, w.x, 0);
    const gk_status *status = run_armed(&w, 0);
    assert_int_equal(status->launch, k);
    assert_int_equal(status->state, GK_FINISHED);
    assert_int_equal(status->loops[0].passes, 4);
    assert_int_equal(status->applied, GK_BY_TABLE);
    ASSERT_VALUES({behind, 4 * k}, {before, k}); /* the next node waits for all of it */
  }
  assert_int_equal(run_armed(&w, 0)->applied, GK_UNCHANGED);
  assert_int_equal(int_at(device, behind), 24);
}

/* Without loops and checkpoints the end is known, too. */
TEST_ON_HAND(test_straight) {
  LIST(two, GK_RUN(add, N, X, A), GK_RUN(add, N, X, A));
  world w = world_with(device, &two, 0);
  const gk_status *status;
  INVALID("call gk_cuda_arm first", gk_poll(w.graph, &status));
  arm(&w);
  assert_int_equal(gk_poll(w.graph, &status), GK_NOT_READY);
  assert_null(status);
  hand_launch(w.exec);
  assert_int_equal(told(w.graph)->launch, 1);
  assert_int_equal(int_at(device, w.x), 2);
}

/* A pass number is in the list's own records. */
TEST_ON_HAND(test_pass_numbers) {
  enum { PASS = 60, LOOP = 1 };
  static const gk_slot_desc numbered[] = {GK_BUFFER(X, int), GK_BUFFER(LEFT, int), GK_BUFFER(COUNT, int),
                                          GK_BUFFER(FLAG, int), GK_PASS(PASS, LOOP)};
  LIST_OVER(numbered, list, GK_REPEAT(COUNT, .label = LOOP), GK_COPY(X, PASS, GK_ONE), GK_END);
  world w = world_with(device, &list, 0);
  for (int k = 0; k < 2; ++k) {
    set_int(device, w.x, -1);
    assert_int_equal(run_armed(&w, 0)->loops[0].passes, 3);
    assert_int_equal(int_at(device, w.x), 2);
  }
}

/* Nothing is done before the first arming, whatever graph had the memory before. */
TEST_ON_HAND(test_not_armed_yet) {
  LIST(list, GK_RUN(add, N, X, A), GK_RUN(add, GK_ONE, X, A));
  int *x = NULL;
  for (int k = 0; k < 2; ++k) {
    world w = world_with(device, &list, 0);
    hand_launch(w.exec);
    if (x) assert_int_equal(int_at(device, x), 2);
    assert_int_equal(int_at(device, w.x), 0);
    run_armed(&w, 0);
    assert_int_equal(int_at(device, w.x), 2);
    x = w.x;
    end_world(&w);
  }
}

/* A bad count is told for the arming that had it. For a launch that wasn't armed itself it isn't told, here either. */
TEST_ON_HAND(test_bad_count) {
  LIST(list, GK_FILL(X, N, 7), GK_DO_WHILE(FLAG), GK_RUN(add, COUNT, LEFT, A), GK_END);
  world w = world_with(device, &list, 0);
  set_int(device, w.flag, 1); /* its loop ends by the bad count alone */
  gk_bind_int(w.graph, N, 2);
  arm(&w);
  for (int k = 0; k < 2; ++k) { /* it ends so once more, told or not */
    hand_launch(w.exec);
    INVALID("task 0 (X = 7): 2 elements of 4 bytes, by slot 3 (N), from byte 0 of slot 1 (X) on, which has 4 bytes",
            gk_poll(w.graph, NULL));
    assert_int_equal(int_at(device, w.x), 0);
  }
  set_int(device, w.flag, 0);
  gk_bind_int(w.graph, N, 1);
  assert_int_equal(run_armed(&w, 0)->loops[0].passes, 1);
  assert_int_equal(int_at(device, w.x), 7);
}

TEST_ON_HAND(test_yields) {
  world w = world_with(device, &yields, GK_CUDA_RESUMABLE);
  char *text = gk_dump(NULL, w.graph, "text");
  assert_non_null(strstr(text, "where to resume: by the arming kernel\n"));
  gk_free_text(text);
  SET_VALUES({w.left, 3}, {w.count, 0}, {w.flag, 1});
  arm(&w);
  assert_fails(GK_ERROR_BUSY, "launch your exec if you didn't", gk_cuda_arm(w.graph, w.exec, 0));
  hand_launch(w.exec);
  assert_fails(GK_ERROR_BUSY, "call gk_poll", gk_cuda_arm(w.graph, w.exec, 0));
  for (int k = 0; k < 2; ++k) {
    const gk_status *status = told(w.graph);
    assert_int_equal(status->state, GK_YIELDED);
    assert_int_equal(status->yielded, THERE);
    assert_int_equal(status->checkpoints[0].ran, k == 0);
    ASSERT_VALUES({w.x, 1}, {w.count, k + 1});
    if (k) set_int(device, w.flag, 0);
    arm_and_launch(&w, THERE);
  }
  const gk_status *status = told(w.graph);
  assert_int_equal(status->state, GK_FINISHED);
  assert_int_equal(status->loops[0].passes, 3);
  ASSERT_VALUES({w.count, 5}, {w.x, 1});
  set_int(device, w.left, 1);
  assert_int_equal(run_armed(&w, 0)->state, GK_FINISHED); /* from the top again */
  assert_int_equal(int_at(device, w.x), 2);
}

TEST_ON_HAND(test_yields_without_resuming) {
  world w = world_with(device, &yields, 0);
  SET_VALUES({w.left, 3}, {w.flag, 1});
  INVALID("added without GK_CUDA_RESUMABLE", gk_cuda_arm(w.graph, w.exec, HERE));
  INVALID("it has", gk_cuda_arm(w.graph, w.exec, 77));
  assert_int_equal(run_armed(&w, 0)->yielded, THERE);
}

static void check_two(gk_device *device, bool chained) {
  world w = world_of(device);
  int *y = int_on(device, 0);
  w.graph = add_list(device, &w, &loop, 0, NULL, 0);
  const CUgraphNode end = w.last;
  gk_graph *other = add_list(device, &w, &loop, 0, chained ? &end : NULL, chained);
  complete_world(&w);
  BIND(other, {X, y}, {LEFT, int_on(device, 0)}, {COUNT, int_on(device, 5)});
  for (int k = 1; k <= 3; ++k) {
    gk_bind_int(other, A, k);
    assert_ok(gk_cuda_arm(other, w.exec, 0));
    assert_int_equal(run_armed(&w, 0)->loops[0].passes, 3);
    assert_int_equal(told(other)->loops[0].passes, 5);
    ASSERT_VALUES({w.x, 3 * k}, {y, 5 * k * (k + 1) / 2});
  }
}

TEST_ON_HAND(test_two) {
  check_two(device, true);
  check_two(device, false);
}

/* Beside blocks that were made by hand, behind one of them. */
TEST_ON_HAND(test_behind_a_block) {
  world w = world_of(device);
  gk_cuda_block b;
  set_int(device, w.left, 2);
  assert_ok(gk_cuda_begin(device, GK_OP_DO_WHILE, w.left, 0, w.whole, NULL, 0, &b));
  hand_add(b.body[0], hand_add(b.body[0], NULL, "hand_add", w.count, 1), "hand_add", w.left, (uint64_t)-1);
  assert_ok(gk_cuda_end(device, &b));
  w.graph = add_list(device, &w, &loop, 0, &b.node, 1);
  complete_world(&w);
  assert_int_equal(run_armed(&w, 0)->loops[0].passes, 5);
}

/* ---- memory of the graph's own, structs -------------------------------------------------------------------------- */

TEST_ON_HAND(test_own_memory) {
  enum { OWN = 1, ITS_LINE, OF };
  static const gk_slot_desc own[] = {GK_OWN(OWN, int, 2), GK_STRUCT_VALUE(ITS_LINE, line), GK_DEFAULT(OF, int, 2)};
  LIST_OVER(own, list, GK_RUN(apply, OF, OWN, ITS_LINE));
  world w = world_of(device);
  w.graph = add_list(device, &w, &list, 0, NULL, 0);
  w.exec = new_exec(w.whole);
  gk_bind_bytes(w.graph, ITS_LINE, &(line){2, 3}, sizeof(line));
  arm(&w);
  assert_fails(GK_ERROR_BUSY, "gk_resize: graph list is armed", gk_resize(w.graph, OWN, 3));
  hand_launch(w.exec);
  told(w.graph);
  assert_ok(gk_resize(w.graph, OWN, 3));
  gk_bind_int(w.graph, OF, 3);
  assert_int_equal(run_armed(&w, 0)->launch, 2);
  ASSERT_INTS(gk_bound(w.graph, OWN), 9, 9, 3);
}

/* Kernels with handwritten code have the bound values in their own nodes. */
BY_HAND_KERNEL(mine, "x[0] += a");

TEST_ON_HAND(test_code_by_hand) {
  LIST(list, GK_COPY(LEFT, COUNT, GK_ONE), GK_DO_WHILE(LEFT), GK_RUN(mine, GK_ONE, X, A),
       GK_RUN(decrease, GK_ONE, LEFT), GK_END, GK_RUN(mine, GK_ONE, FLAG, A));
  world w = world_with(device, &list, 0);
  int x = 0, flag = 0, a = 1;
  for (int k = 1; k <= 6; ++k) {
    if (k % 3) gk_bind_int(w.graph, A, a = 10 * k);
    if (k == 3 || k == 4) instantiate_again(&w); /* its nodes have their first values */
    assert_int_equal(run_armed(&w, 0)->applied, k % 3 ? GK_BY_NODES : GK_UNCHANGED);
    x += 3 * a;
    flag += a;
    ASSERT_VALUES({w.x, x}, {w.flag, flag});
  }
  const CUgraph other = new_cu_graph();
  hand_add(other, NULL, "hand_put", w.x, 0);
  INVALID("of the graph that the list was added to", gk_cuda_arm(w.graph, new_exec(other), 0));
}

/* An arming that fails, at any call, leaves the exec armed as it was before. */
TEST_ON_HAND(test_armed_as_before) {
  LIST(list, GK_RUN(mine, GK_ONE, X, A), GK_RUN(mine, GK_ONE, FLAG, A));
  FOR_EACH_CALL(k, failed) {
    world w = world_with(device, &list, 0);
    arm(&w);
    gk_bind_int(w.graph, A, 10);
    (void)FAILING(k, CUDA_ERROR_OUT_OF_MEMORY, failed, gk_cuda_arm(w.graph, w.exec, 0));
    hand_launch(w.exec);
    gki_cuda_graph *native = NULL;
    assert_ok(gki_cuda_native(w.graph->state, &native));
    assert_true(gki_cuda_is_posted(native, 1) || gki_cuda_is_posted(native, 2));
    (void)gk_poll(w.graph, NULL); /* tells what failed */
    SET_VALUES({w.x, 0}, {w.flag, 0});
    run_armed(&w, 0);
    ASSERT_VALUES({w.x, 10}, {w.flag, 10});
    end_world(&w);
  }
}

int main(UNUSED int count, char **words) { return run_added(words); }
