/* Lists in graphs of others: they run where they were put, with what was bound, memory of their own among it. */
#include "cuda/backend.h"
#include "runtime/graph.h"
#include "cuda/launch.h"
#include "added.h"

TEST_ON_HAND(test_between_others) {
  world w = world_of(device);
  int *before = int_on(w.device, 0), *behind = int_on(w.device, -1);
  CUgraphNode first[] = {hand_add(w.whole, NULL, "hand_put", w.count, 4),
                         hand_add(w.whole, NULL, "hand_add", before, 1)};
  assert_ok(gk_cuda_add(w.device, &loop, 0, w.whole, first, 2, &w.graph, &w.last));
  hand_add(w.whole, w.last, "hand_copy", behind, (uint64_t)(uintptr_t)w.x);
  w.exec = hand_instantiate(w.whole);
  bind_world(&w, w.graph);
  for (int k = 1; k <= 3; ++k) {
    gk_bind_int(w.graph, A, k);
    set(&w, w.x, 0);
    assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
    hand_launch(w.exec);
    const gk_status *status = told(w.graph);
    assert_int_equal(status->launch, k);
    assert_int_equal(status->state, GK_FINISHED);
    assert_int_equal(status->loops[0].passes, 4);
    assert_int_equal(status->applied, GK_BY_TABLE);
    assert_int_equal(int_at(w.device, behind), 4 * k); /* what comes behind waits for all of it */
    assert_int_equal(int_at(w.device, before), k);
  }
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  hand_launch(w.exec);
  assert_int_equal(told(w.graph)->applied, GK_UNCHANGED);
  assert_int_equal(int_at(w.device, behind), 24);
  end_world(&w);
}

/* Neither loops nor checkpoints, and its end is known all the same. */
TEST_ON_HAND(test_straight) {
  world w = world_with(device, &straight, 0);
  const gk_status *status;
  assert_fails(GK_ERROR_INVALID, "call gk_cuda_arm first", gk_poll(w.graph, &status));
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  assert_int_equal(gk_poll(w.graph, &status), GK_NOT_READY);
  assert_null(status);
  hand_launch(w.exec);
  assert_int_equal(told(w.graph)->launch, 1);
  assert_int_equal(int_at(w.device, w.x), 2);
  end_world(&w);
}

/* A bad count is told of the arming that had it; a launch that wasn't armed by itself isn't told of, here either. */
TEST_ON_HAND(test_bad_count) {
  static const gk_task tasks[] = {GK_FILL(X, N, 7), GK_DO_WHILE(FLAG), GK_RUN(add, COUNT, LEFT, A), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  world w = world_with(device, &list, 0);
  set(&w, w.flag, 1); /* its loop ends by the bad count alone */
  gk_bind_int(w.graph, N, 2);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  hand_launch(w.exec);
  const char *said = "task 0 (X = 7): 2 elements of 4 bytes, by slot 6 (N), from byte 0 of slot 1 (X) on, which has "
                     "4 bytes";
  assert_fails(GK_ERROR_INVALID, said, gk_poll(w.graph, NULL));
  assert_int_equal(int_at(w.device, w.x), 0);
  hand_launch(w.exec); /* and so it ends once more, told or not */
  assert_fails(GK_ERROR_INVALID, said, gk_poll(w.graph, NULL));
  set(&w, w.flag, 0);
  gk_bind_int(w.graph, N, 1);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  hand_launch(w.exec);
  assert_int_equal(told(w.graph)->loops[0].passes, 1);
  assert_int_equal(int_at(w.device, w.x), 7);
  end_world(&w);
}

TEST_ON_HAND(test_yields) {
  world w = world_with(device, &yields, GK_CUDA_RESUMABLE);
  char *text = gk_dump(NULL, w.graph, "text");
  assert_non_null(strstr(text, "where to resume: by the arming kernel\n"));
  gk_free_text(text);
  set(&w, w.left, 3);
  set(&w, w.count, 0);
  set(&w, w.flag, 1);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  assert_fails(GK_ERROR_BUSY, "launch your exec if you didn't", gk_cuda_arm(w.graph, w.exec, 0));
  hand_launch(w.exec);
  assert_fails(GK_ERROR_BUSY, "call gk_poll", gk_cuda_arm(w.graph, w.exec, 0));
  for (int k = 0; k < 2; ++k) {
    const gk_status *status = told(w.graph);
    assert_int_equal(status->state, GK_YIELDED);
    assert_int_equal(status->yielded, THERE);
    assert_int_equal(status->checkpoints[0].ran, k == 0);
    assert_int_equal(int_at(w.device, w.x), 1);
    assert_int_equal(int_at(w.device, w.count), k + 1);
    if (k) set(&w, w.flag, 0);
    assert_ok(gk_cuda_arm(w.graph, w.exec, THERE));
    hand_launch(w.exec);
  }
  const gk_status *status = told(w.graph);
  assert_int_equal(status->state, GK_FINISHED);
  assert_int_equal(status->loops[0].passes, 3);
  assert_int_equal(int_at(w.device, w.count), 5);
  assert_int_equal(int_at(w.device, w.x), 1);
  set(&w, w.left, 1);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0)); /* from the top again */
  hand_launch(w.exec);
  assert_int_equal(told(w.graph)->state, GK_FINISHED);
  assert_int_equal(int_at(w.device, w.x), 2);
  end_world(&w);
}

TEST_ON_HAND(test_yields_without_resuming) {
  world w = world_with(device, &yields, 0);
  set(&w, w.left, 3);
  set(&w, w.flag, 1);
  assert_fails(GK_ERROR_INVALID, "added without GK_CUDA_RESUMABLE", gk_cuda_arm(w.graph, w.exec, HERE));
  assert_fails(GK_ERROR_INVALID, "it has", gk_cuda_arm(w.graph, w.exec, 77));
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  hand_launch(w.exec);
  assert_int_equal(told(w.graph)->yielded, THERE);
  end_world(&w);
}

static void check_two(gk_device *device, bool chained) {
  world w = world_of(device);
  gk_graph *other;
  CUgraphNode last;
  int *y = int_on(device, 0), *left = int_on(device, 0), *count = int_on(device, 5);
  assert_ok(gk_cuda_add(device, &loop, 0, w.whole, NULL, 0, &w.graph, &w.last));
  assert_ok(gk_cuda_add(device, &loop, 0, w.whole, chained ? &w.last : NULL, chained, &other, &last));
  w.exec = hand_instantiate(w.whole);
  bind_world(&w, w.graph);
  bind_world(&w, other);
  gk_bind(other, X, y);
  gk_bind(other, LEFT, left);
  gk_bind(other, COUNT, count);
  for (int k = 1; k <= 3; ++k) {
    gk_bind_int(other, A, k);
    assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
    assert_ok(gk_cuda_arm(other, w.exec, 0));
    hand_launch(w.exec);
    assert_int_equal(told(w.graph)->loops[0].passes, 3);
    assert_int_equal(told(other)->loops[0].passes, 5);
    assert_int_equal(int_at(device, w.x), 3 * k);
    assert_int_equal(int_at(device, y), 5 * k * (k + 1) / 2);
  }
  RIGHT(cu.cuGraphExecDestroy(w.exec));
  w.exec = NULL;
  gk_graph_destroy(other);
  end_world(&w);
}

TEST_ON_HAND(test_two) {
  check_two(device, true);
  check_two(device, false);
}

/* Beside blocks that were made by hand, behind one of them. */
TEST_ON_HAND(test_behind_a_block) {
  world w = world_of(device);
  gk_cuda_block b;
  set(&w, w.left, 2);
  assert_ok(gk_cuda_begin(w.device, GK_OP_DO_WHILE, w.left, 0, w.whole, NULL, 0, &b));
  hand_add(b.body[0], hand_add(b.body[0], NULL, "hand_add", w.count, 1), "hand_add", w.left, (uint64_t)-1);
  assert_ok(gk_cuda_end(w.device, &b));
  assert_ok(gk_cuda_add(w.device, &loop, 0, w.whole, &b.node, 1, &w.graph, &w.last));
  w.exec = hand_instantiate(w.whole);
  bind_world(&w, w.graph);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  hand_launch(w.exec);
  assert_int_equal(told(w.graph)->loops[0].passes, 5);
  end_world(&w);
}

/* ---- memory of the graph's own, structs -------------------------------------------------------------------------- */

enum { OWN = 1, LINE, OF, OWN_SLOTS };

TEST_ON_HAND(test_own_memory) {
  static const gk_slot_desc own[] = {GK_OWN(OWN, int, 2), GK_STRUCT_VALUE(LINE, line), GK_DEFAULT(OF, int, 2)};
  static const gk_task tasks[] = {GK_RUN(apply, OF, OWN, LINE)};
  static const gk_list list = GK_LIST(list, tasks, own);
  world w = world_of(device);
  int values[3] = {0};
  line l = {2, 3};
  assert_ok(gk_cuda_add(w.device, &list, 0, w.whole, NULL, 0, &w.graph, &w.last));
  w.exec = hand_instantiate(w.whole);
  gk_bind_bytes(w.graph, LINE, &l, sizeof l);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  assert_fails(GK_ERROR_BUSY, "gk_resize: graph list is armed", gk_resize(w.graph, OWN, 3));
  hand_launch(w.exec);
  told(w.graph);
  assert_ok(gk_resize(w.graph, OWN, 3));
  gk_bind_int(w.graph, OF, 3);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  hand_launch(w.exec);
  assert_int_equal(told(w.graph)->launch, 2);
  assert_ok(gk_download(w.device, values, gk_bound(w.graph, OWN), sizeof values));
  assert_int_equal(values[0], 9);
  assert_int_equal(values[1], 9);
  assert_int_equal(values[2], 3);
  end_world(&w);
}

/* Kernels with code by hand have what was bound in their own nodes. */
static const gk_param mine_params[] = {{"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT},
                                       {"a", "int", 4, 4, GK_I32, GK_ACCESS_VALUE}};
static const gk_code mine_code = {
  .text = "extern \"C\" __global__ void mine(int *x, int a) { if (threadIdx.x == 0) x[0] += a; }\n", .block = {32}};
static const gk_kernel mine = {.name = "mine", .params = mine_params, .param_count = 2, .cuda = &mine_code};

TEST_ON_HAND(test_code_by_hand) {
  static const gk_task tasks[] = {GK_COPY(LEFT, COUNT, GK_ONE), GK_DO_WHILE(LEFT), GK_RUN(mine, GK_ONE, X, A),
                                  GK_RUN(decrease, GK_ONE, LEFT), GK_END, GK_RUN(mine, GK_ONE, FLAG, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  world w = world_with(device, &list, 0);
  int x = 0, flag = 0, a = 1;
  for (int k = 1; k <= 6; ++k) {
    if (k % 3) gk_bind_int(w.graph, A, a = 10 * k);
    if (k == 3 || k == 4) { /* its nodes have what they began with, whatever was bound since */
      RIGHT(cu.cuGraphExecDestroy(w.exec));
      w.exec = hand_instantiate(w.whole);
    }
    assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
    hand_launch(w.exec);
    assert_int_equal(told(w.graph)->applied, k % 3 ? GK_BY_NODES : GK_UNCHANGED);
    x += 3 * a;
    flag += a;
    assert_int_equal(int_at(w.device, w.x), x);
    assert_int_equal(int_at(w.device, w.flag), flag);
  }
  CUgraph other;
  RIGHT(cu.cuGraphCreate(&other, 0));
  hand_add(other, NULL, "hand_put", w.x, 0);
  CUgraphExec others = hand_instantiate(other);
  assert_fails(GK_ERROR_INVALID, "of the graph that the list was added to", gk_cuda_arm(w.graph, others, 0));
  RIGHT(cu.cuGraphExecDestroy(others));
  RIGHT(cu.cuGraphDestroy(other));
  end_world(&w);
}

/* An arming that fails, whichever call it is, leaves the exec armed with what it was before. */
TEST_ON_HAND(test_armed_as_before) {
  static const gk_task tasks[] = {GK_RUN(mine, GK_ONE, X, A), GK_RUN(mine, GK_ONE, FLAG, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  for (uint64_t k = 1, over = 0; !over; ++k) {
    world w = world_with(device, &list, 0);
    assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
    gk_bind_int(w.graph, A, 10);
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
    (void)gk_cuda_arm(w.graph, w.exec, 0);
    over = !sim->failed();
    sim->mark();
    hand_launch(w.exec);
    gki_cuda_graph *native = NULL;
    assert_ok(gki_cuda_native(w.graph->state, &native));
    assert_true(gki_cuda_is_posted(native, 1) || gki_cuda_is_posted(native, 2));
    (void)gk_poll(w.graph, NULL); /* tells what failed */
    set(&w, w.x, 0);
    set(&w, w.flag, 0);
    assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
    hand_launch(w.exec);
    told(w.graph);
    assert_int_equal(int_at(w.device, w.x), 10);
    assert_int_equal(int_at(w.device, w.flag), 10);
    end_world(&w);
  }
}

int main(int count, char **words) {
  (void)count;
  return run_added(words);
}
