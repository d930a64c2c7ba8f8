/* Lists in graphs of others: they run where they were put, with what was armed, from where it was said, as often as the
 * caller launches; the status is that of the arming, in whatever order he arms, launches and asks. */
#include "chance.h"
#include "cuda_hand.h"
#include "runtime_kernels.h"

#ifndef DRIVER
#define DRIVER "13.0"
#endif
#ifndef NO
#define NO ""
#endif

enum { X = 1, LEFT, COUNT, FLAG, A, N, SLOTS };
enum { HERE = 5, THERE, ROUND };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_BUFFER(LEFT, int), GK_BUFFER(COUNT, int),
                                     GK_BUFFER(FLAG, int), GK_SCALAR(A, int), GK_DEFAULT(N, int, 1)};

/* COUNT passes, each of which adds A to X. */
static const gk_task loop_tasks[] = {GK_COPY(LEFT, COUNT, GK_ONE), GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A),
                                     GK_RUN(decrease, GK_ONE, LEFT), GK_END};
static const gk_list loop = GK_LIST(loop, loop_tasks, slots);

static const gk_task straight_tasks[] = {GK_RUN(add, N, X, A), GK_RUN(add, N, X, A)};
static const gk_list straight = GK_LIST(straight, straight_tasks, slots);

/* Yields in its second part, as often as FLAG is set. */
static const gk_task yield_tasks[] = {
  GK_CHECKPOINT(HERE, 0), GK_RUN(add, N, X, A), GK_END,
  GK_DO_WHILE(LEFT),
    GK_CHECKPOINT(THERE, FLAG), GK_RUN(add, N, COUNT, A), GK_END,
    GK_RUN(decrease, GK_ONE, LEFT),
  GK_END};
static const gk_list yields = GK_LIST(yields, yield_tasks, slots);

typedef struct world {
  gk_device *device;
  CUgraph whole;
  CUgraphExec exec;
  gk_graph *graph;
  CUgraphNode last;
  int *x, *left, *count, *flag;
} world;

static void bind_world(const world *w, gk_graph *graph) {
  gk_bind(graph, X, w->x);
  gk_bind(graph, LEFT, w->left);
  gk_bind(graph, COUNT, w->count);
  gk_bind(graph, FLAG, w->flag);
  gk_bind_int(graph, A, 1);
}

static world world_of(gk_device *device) {
  world w = {.device = device, .x = int_on(device, 0), .left = int_on(device, 0), .count = int_on(device, 3),
             .flag = int_on(device, 0)};
  RIGHT(cu.cuGraphCreate(&w.whole, 0));
  return w;
}

static world world_with(gk_device *device, const gk_list *list, uint32_t bits) {
  world w = world_of(device);
  assert_ok(gk_cuda_add(device, list, bits, w.whole, NULL, 0, &w.graph, &w.last));
  w.exec = hand_instantiate(w.whole);
  bind_world(&w, w.graph);
  return w;
}

static void end_world(world *w) {
  if (w->exec) RIGHT(cu.cuGraphExecDestroy(w->exec));
  gk_graph_destroy(w->graph);
  RIGHT(cu.cuGraphDestroy(w->whole));
}

static const gk_status *told(gk_graph *graph) {
  const gk_status *status = NULL;
  assert_ok(gk_poll(graph, &status));
  return status;
}

static void set(const world *w, int *at, int value) { assert_ok(gk_upload(w->device, at, &value, sizeof value)); }

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void test_between_others(void **state) {
  world w = world_of(*state);
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
static void test_straight(void **state) {
  world w = world_with(*state, &straight, 0);
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
static void test_bad_count(void **state) {
  static const gk_task tasks[] = {GK_FILL(X, N, 7), GK_DO_WHILE(FLAG), GK_RUN(add, COUNT, LEFT, A), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  world w = world_with(*state, &list, 0);
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

static void test_yields(void **state) {
  world w = world_with(*state, &yields, GK_CUDA_RESUMABLE);
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

static void test_yields_without_resuming(void **state) {
  world w = world_with(*state, &yields, 0);
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

static void test_two(void **state) {
  check_two(*state, true);
  check_two(*state, false);
}

/* Beside blocks that were made by hand, behind one of them. */
static void test_behind_a_block(void **state) {
  world w = world_of(*state);
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

/* ---- arming, launching, asking ----------------------------------------------------------------------------------- */

/* Any order: what runs is what was armed last before the launch, what is told is what became of that arming. */
static void test_any_order(void **state) {
  for (uint64_t seed = first_seed(), end = seed + scaled(20); seed < end; ++seed) {
    world w = world_with(*state, &loop, 0);
    uint64_t random = seed;
    int x = 0, a = 0, count = 0, armed = 0, ran = 0, passes[400] = {0};
    int *counts[4];
    for (int k = 0; k < 4; ++k) counts[k] = int_on(w.device, k + 1);
    for (int step = 0; step < 200; ++step)
      switch (armed ? pick(&random, 6) : 0) {
      case 0:
      case 1: { /* two in three change something */
        const int next_a = pick(&random, 3) ? (int)pick(&random, 100) : a, next = (int)pick(&random, 4);
        const bool rebinds = pick(&random, 3) != 0 || !armed;
        gk_bind_int(w.graph, A, next_a);
        if (rebinds) gk_bind(w.graph, COUNT, counts[next]);
        const gk_result result = gk_cuda_arm(w.graph, w.exec, 0);
        if (result == GK_ERROR_BUSY) {
          assert_true(armed - ran >= 16);
          hand_launch(w.exec);
          x += a * count;
          ran = armed;
          if (rebinds) gk_bind(w.graph, COUNT, counts[next]);
          assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
        } else {
          assert_int_equal(result, GK_OK);
        }
        a = next_a;
        if (rebinds) count = next + 1;
        passes[++armed] = count;
        break;
      }
      case 2:
      case 3:
      case 4:
        RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
        x += a * count;
        ran = armed;
        if (pick(&random, 2)) RIGHT(cu.cuStreamSynchronize(hand_stream));
        break;
      default: {
        const gk_status *status = NULL;
        RIGHT(cu.cuStreamSynchronize(hand_stream));
        assert_int_equal(gk_poll(w.graph, &status), ran == armed ? GK_OK : GK_NOT_READY);
        if (ran != armed) break;
        assert_int_equal(status->launch, armed);
        assert_int_equal(status->loops[0].passes, passes[armed]);
        assert_int_equal(int_at(w.device, w.x), x);
      }
      }
    RIGHT(cu.cuStreamSynchronize(hand_stream));
    assert_int_equal(int_at(w.device, w.x), x);
    end_world(&w);
  }
}

static void test_queue(void **state) {
  world w = world_with(*state, &loop, 0);
  sim->hold(1);
  for (int k = 0; k < 16; ++k) {
    gk_bind_int(w.graph, A, k);
    assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
    RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
  }
  assert_fails(GK_ERROR_BUSY, "16 launches of graph loop are armed and not over", gk_cuda_arm(w.graph, w.exec, 0));
  assert_int_equal(gk_poll(w.graph, NULL), GK_NOT_READY);
  sim->hold(0);
  RIGHT(cu.cuStreamSynchronize(hand_stream));
  assert_int_equal(told(w.graph)->launch, 16);
  assert_int_equal(int_at(w.device, w.x), 3 * 120);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  end_world(&w); /* armed and never launched */
}

static void test_exec_made_again(void **state) {
  world w = world_with(*state, &loop, 0);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0)); /* what it brings never goes over */
  RIGHT(cu.cuGraphExecDestroy(w.exec));
  w.exec = hand_instantiate(w.whole);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  hand_launch(w.exec);
  assert_int_equal(told(w.graph)->launch, 2);
  assert_int_equal(int_at(w.device, w.x), 3);
  end_world(&w);
}

/* The exec of a list that can yield is given up between arming and launching. */
static void test_disarmed(void **state) {
  world w = world_with(*state, &yields, GK_CUDA_RESUMABLE);
  set(&w, w.left, 3);
  set(&w, w.count, 0);
  set(&w, w.flag, 0);
  assert_ok(gk_cuda_arm(w.graph, w.exec, THERE));
  RIGHT(cu.cuGraphExecDestroy(w.exec));
  w.exec = hand_instantiate(w.whole);
  assert_fails(GK_ERROR_BUSY, "was armed, can yield", gk_cuda_arm(w.graph, w.exec, 0));
  bool synchronized = false;
  for (uint64_t k = 1; !synchronized; ++k) { /* each call fails once, and nothing is taken back then */
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
    const gk_result result = gk_cuda_disarm(w.graph);
    synchronized = sim->failed() && strcmp(sim->failed(), "cuCtxSynchronize") == 0;
    if (strcmp(sim->failed(), "cuThreadExchangeStreamCaptureMode") == 0) { /* but for this one */
      sim->mark();
      assert_ok(result);
      assert_ok(gk_cuda_arm(w.graph, w.exec, THERE));
      continue;
    }
    assert_fails(GK_ERROR_DEVICE, "cuCtx", result);
    sim->mark();
    assert_fails(GK_ERROR_BUSY, "was armed, can yield", gk_cuda_arm(w.graph, w.exec, 0));
  }
  assert_ok(gk_cuda_disarm(w.graph));
  assert_fails(GK_ERROR_INVALID, "call gk_cuda_arm first", gk_poll(w.graph, NULL));
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  hand_launch(w.exec);
  assert_ok(gk_cuda_disarm(w.graph)); /* that one was launched, and is told of */
  const gk_status *status = told(w.graph);
  assert_int_equal(status->launch, 1);
  assert_int_equal(status->loops[0].passes, 3);
  assert_int_equal(int_at(w.device, w.x), 1);
  assert_ok(gk_cuda_disarm(w.graph));
  assert_int_equal(told(w.graph)->launch, 1);
  end_world(&w);
}

/* What was bound for one that was taken back comes with the next. */
static void test_disarmed_after_binding(void **state) {
  world w = world_with(*state, &loop, 0);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  hand_launch(w.exec);
  assert_int_equal(told(w.graph)->launch, 1);
  const int before = int_at(w.device, w.x);
  gk_bind_int(w.graph, A, 5);
  for (int k = 0; k < 3; ++k) assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  assert_ok(gk_cuda_disarm(w.graph));
  assert_int_equal(told(w.graph)->launch, 1);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  hand_launch(w.exec);
  assert_int_equal(told(w.graph)->launch, 2);
  assert_int_equal(int_at(w.device, w.x), before + 3 * 5);
  assert_fails(GK_ERROR_INVALID, "there is no graph", gk_cuda_disarm(NULL));
  end_world(&w);
}

static void test_cancel(void **state) {
  static const gk_task tasks[] = {GK_DO_WHILE(FLAG), GK_RUN(add, N, X, A), GK_END};
  static const gk_list endless = GK_LIST(endless, tasks, slots);
  world w = world_with(*state, &endless, GK_CANCELLABLE);
  sim->set_passes(1000000000);
  set(&w, w.flag, 1);
  for (int k = 1; k <= 3; ++k) {
    assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
    RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
    assert_ok(gk_cancel(w.graph));
    RIGHT(cu.cuStreamSynchronize(hand_stream));
    const gk_status *status = told(w.graph);
    assert_int_equal(status->launch, k);
    assert_int_equal(status->state, GK_CANCELLED);
  }
  set(&w, w.flag, 0);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  hand_launch(w.exec);
  assert_int_equal(told(w.graph)->state, GK_FINISHED);
  set(&w, w.flag, 1);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
  end_world(&w); /* that cancels, too, and waits */
}

/* ---- memory of the graph's own, structs -------------------------------------------------------------------------- */

enum { OWN = 1, LINE, OF, OWN_SLOTS };

static void test_own_memory(void **state) {
  static const gk_slot_desc own[] = {GK_OWN(OWN, int, 2), GK_STRUCT_VALUE(LINE, line), GK_DEFAULT(OF, int, 2)};
  static const gk_task tasks[] = {GK_RUN(apply, OF, OWN, LINE)};
  static const gk_list list = GK_LIST(list, tasks, own);
  world w = world_of(*state);
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

static void test_code_by_hand(void **state) {
  static const gk_task tasks[] = {GK_COPY(LEFT, COUNT, GK_ONE), GK_DO_WHILE(LEFT), GK_RUN(mine, GK_ONE, X, A),
                                  GK_RUN(decrease, GK_ONE, LEFT), GK_END, GK_RUN(mine, GK_ONE, FLAG, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  world w = world_with(*state, &list, 0);
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

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static gk_result do_nothing(const gk_value *args, void *stream) {
  (void)args;
  (void)stream;
  return GK_OK;
}

#define INVALID(words, call) assert_fails(GK_ERROR_INVALID, words, call)

static void test_refused(void **state) {
  static const gk_task calls[] = {GK_RUN(add, N, X, A), GK_CALL(do_nothing, 0)};
  static const gk_list calling = GK_LIST(calling, calls, slots);
  world w = world_of(*state);
  gk_graph *graph = NULL;
  gk_device *d = w.device, *openmp;
  CUgraphNode last;
  assert_ok(gk_device_open(&(gk_device_desc){.backend = "openmp"}, &openmp));
  INVALID("gk_cuda_add: there is no device", gk_cuda_add(NULL, &loop, 0, w.whole, NULL, 0, &graph, &last));
  INVALID("backend openmp", gk_cuda_add(openmp, &loop, 0, w.whole, NULL, 0, &graph, &last));
  gk_device_close(openmp);
  INVALID("there is no list", gk_cuda_add(d, NULL, 0, w.whole, NULL, 0, &graph, &last));
  INVALID("nowhere to put", gk_cuda_add(d, &loop, 0, w.whole, NULL, 0, NULL, &last));
  INVALID("nowhere to put", gk_cuda_add(d, &loop, 0, w.whole, NULL, 0, &graph, NULL));
  INVALID("there is no graph", gk_cuda_add(d, &loop, 0, NULL, NULL, 0, &graph, &last));
  INVALID("`after` is NULL", gk_cuda_add(d, &loop, 0, w.whole, NULL, 1, &graph, &last));
  INVALID("after[0] is no node", gk_cuda_add(d, &loop, 0, w.whole, (CUgraphNode[1]){NULL}, 1, &graph, &last));
  INVALID("bits 0x1 can't be asked for here", gk_cuda_add(d, &loop, GK_HOST_GATED, w.whole, NULL, 0, &graph, &last));
  assert_fails(GK_ERROR_UNSUPPORTED, "task 1 (do_nothing) is a library call",
               gk_cuda_add(d, &calling, 0, w.whole, NULL, 0, &graph, &last));
  assert_null(graph);
  CUgraph other;
  RIGHT(cu.cuGraphCreate(&other, 0));
  CUgraphNode there = hand_add(other, NULL, "hand_put", w.x, 0);
  INVALID("different ones of that graph", gk_cuda_add(d, &loop, 0, w.whole, &there, 1, &graph, &last));
  assert_ok(gk_cuda_add(d, &loop, 0, w.whole, NULL, 0, &w.graph, &w.last));
  w.exec = hand_instantiate(w.whole);
  CUgraphExec others = hand_instantiate(other);
  INVALID("slot", gk_cuda_arm(w.graph, w.exec, 0)); /* nothing is bound */
  bind_world(&w, w.graph);
  INVALID("call gk_cuda_arm and launch your exec", gk_launch(w.graph, 0));
  INVALID("call gk_cuda_arm and launch your exec", gk_launch_on(w.graph, 0, hand_stream));
  INVALID("call gk_poll", gk_wait(w.graph, NULL));
  INVALID("there is no exec", gk_cuda_arm(w.graph, NULL, 0));
  INVALID("there is no graph", gk_cuda_arm(NULL, w.exec, 0));
  INVALID("of the graph that the list was added to", gk_cuda_arm(w.graph, others, 0));
  gk_bind_int(w.graph, X, 1); /* a failed bind is told when it counts */
  INVALID("a call before it failed", gk_cuda_arm(w.graph, w.exec, 0));
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0)); /* what was refused took no number and lost nothing */
  hand_launch(w.exec);
  assert_int_equal(told(w.graph)->launch, 1);
  assert_int_equal(int_at(d, w.x), 3);
  graph = graph_on(d, &loop, 0);
  INVALID("call gk_launch", gk_cuda_arm(graph, w.exec, 0));
  INVALID("gk_cuda_disarm: graph loop is one of gk_graph_create", gk_cuda_disarm(graph));
  gk_graph_destroy(graph);
  RIGHT(cu.cuGraphExecDestroy(others));
  RIGHT(cu.cuGraphDestroy(other));
  end_world(&w);
}

/* The driver may mind a graph only after some of the list's nodes: that is no failure of the device's, either. */
static void test_refused_on_the_way(void **state) {
  world w = world_of(*state);
  gk_cuda_block block;
  CUgraphNode last;
  assert_ok(gk_cuda_begin(w.device, GK_OP_IF, w.flag, 0, w.whole, NULL, 0, &block));
  assert_ok(gk_cuda_end(w.device, &block));
  w.exec = hand_instantiate(w.whole);
  INVALID("gk_cuda_add: cuGraphAddNode of a conditional node for task 1 (LEFT) of graph loop",
          gk_cuda_add(w.device, &loop, 0, block.body[0], NULL, 0, &w.graph, &last));
  INVALID("the graph must be alive", gk_cuda_add(w.device, &loop, 0, block.body[0], NULL, 0, &w.graph, &last));
  end_world(&w);
}

/* Devices of their own, since what was found out about one is kept. */
static void test_drivers_that_cannot(void **state) {
  (void)state;
  static const struct { const char *no, *says; } cases[] = {{"P1d", "arming updates a node"},
                                                            {"P1a", "has no conditional nodes for it"}};
  for (int k = 0; k < 2; ++k) {
    gk_device *device;
    CUgraph whole;
    gk_graph *graph;
    CUgraphNode last;
    sim->answer_no(cases[k].no);
    assert_ok(gk_device_open(&(gk_device_desc){.backend = "cuda", .ordinal = k + 1}, &device));
    RIGHT(cu.cuGraphCreate(&whole, 0));
    assert_fails(GK_ERROR_UNSUPPORTED, cases[k].says, gk_cuda_add(device, &loop, 0, whole, NULL, 0, &graph, &last));
    RIGHT(cu.cuGraphDestroy(whole));
    gk_device_close(device);
    sim->answer_no(NO);
  }
}

/* ---- failures, ends ---------------------------------------------------------------------------------------------- */

static gk_result try_all(world *w) {
  w->exec = NULL;
  gk_result result = gk_cuda_add(w->device, &yields, GK_CUDA_RESUMABLE, w->whole, NULL, 0, &w->graph, &w->last);
  if (result != GK_OK) return result;
  bind_world(w, w->graph);
  if (cu.cuGraphInstantiateWithFlags(&w->exec, w->whole, 0) != CUDA_SUCCESS) {
    w->exec = NULL;
    return GK_OK;
  }
  for (int k = 0; k < 2 && result == GK_OK; ++k) {
    result = gk_cuda_arm(w->graph, w->exec, k ? THERE : 0);
    if (result != GK_OK) break;
    if (cu.cuGraphLaunch(w->exec, hand_stream) != CUDA_SUCCESS) return GK_OK;
    if (cu.cuStreamSynchronize(hand_stream) != CUDA_SUCCESS) (void)cu.cuStreamSynchronize(hand_stream);
    result = gk_poll(w->graph, NULL);
  }
  return result;
}

static void test_every_call_fails(void **state) {
  world w = world_of(*state);
  size_t alive = 0;
  for (uint64_t k = 0;; ++k) { /* 0: none, so that kernels are loaded, and stay as long as a graph has them */
    set(&w, w.left, 2);
    set(&w, w.flag, 1);
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
    w.graph = NULL;
    const gk_result result = try_all(&w);
    const char *failed = sim->failed();
    sim->mark();
    if (result != GK_OK) assert_says("CUDA_ERROR_UNKNOWN");
    if (w.graph && w.exec && result != GK_OK) { /* it works once the driver does */
      set(&w, w.flag, 0);
      gk_result again = gk_poll(w.graph, NULL);
      if (again == GK_NOT_READY) { /* armed and not launched */
        hand_launch(w.exec);
        again = gk_poll(w.graph, NULL);
      }
      set(&w, w.left, 2);
      assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
      hand_launch(w.exec);
      assert_int_equal(told(w.graph)->state, GK_FINISHED);
      assert_int_equal(gk_passes(told(w.graph), 0), 2);
    }
    if (w.exec) RIGHT(cu.cuGraphExecDestroy(w.exec));
    gk_graph_destroy(w.graph);
    RIGHT(cu.cuGraphDestroy(w.whole));
    RIGHT(cu.cuGraphCreate(&w.whole, 0));
    if (!k) alive = alive_but_memory();
    assert_int_equal(alive_but_memory(), alive);
    assert_int_equal(sim->broken(), 0);
    if (k && !failed) {
      if (k < 20) fail_msg("only %d calls", (int)k);
      break;
    }
  }
  RIGHT(cu.cuGraphDestroy(w.whole));
}

static void test_memory_runs_out(void **state) {
  world w = world_of(*state);
  gk_graph *graph;
  CUgraphNode last;
  for (uint64_t k = 1; k < 40; ++k) {
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
    const gk_result result = gk_cuda_add(w.device, &loop, 0, w.whole, NULL, 0, &graph, &last);
    sim->mark();
    if (result == GK_OK) gk_graph_destroy(graph);
    else assert_int_equal(result, GK_ERROR_MEMORY);
    RIGHT(cu.cuGraphDestroy(w.whole));
    RIGHT(cu.cuGraphCreate(&w.whole, 0));
  }
  RIGHT(cu.cuGraphDestroy(w.whole));
}

/* No status will come any more, and that is said. */
static void test_lost(void **state) {
  world w = world_with(*state, &loop, 0);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  assert_int_equal(gk_poll(w.graph, NULL), GK_NOT_READY);
  (sim->fail)(1, CUDA_ERROR_ILLEGAL_ADDRESS, SIMGPU_LOST);
  assert_int_equal(cu.cuGraphLaunch(w.exec, hand_stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_fails(GK_ERROR_DEVICE, "cuStreamQuery of graph loop", gk_poll(w.graph, NULL));
  assert_fails(GK_ERROR_DEVICE, "is lost", gk_cuda_arm(w.graph, w.exec, 0));
  assert_fails(GK_ERROR_DEVICE, "is lost", gk_cuda_disarm(w.graph));
  (void)cu.cuGraphExecDestroy(w.exec);
  gk_graph_destroy(w.graph);
  (void)cu.cuGraphDestroy(w.whole);
}

static void test_destroyed_under_way(void **state) {
  world w = world_with(*state, &loop, 0);
  for (int k = 0; k < 5; ++k) {
    assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
    RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
  }
  RIGHT(cu.cuGraphExecDestroy(w.exec));
  w.exec = NULL;
  end_world(&w);
}

static void test_device_closed_first(void **state) {
  world w = world_with(*state, &loop, 0);
  assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
  RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
  gk_device_close(w.device);
  *state = NULL;
  assert_fails(GK_ERROR_DEVICE, "was closed", gk_cuda_arm(w.graph, w.exec, 0));
  end_world(&w);
}

/* ---- captures of others ------------------------------------------------------------------------------------------ */

static CUstream begin_capture(unsigned flags) {
  CUstream stream;
  RIGHT(cu.cuStreamCreate(&stream, flags));
  RIGHT(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  return stream;
}

/* What it waits for is the whole context, which a capture forbids. That of a blocking stream is told beforehand. */
static void end_capture(CUstream stream, bool spoiled) {
  CUgraph captured;
  assert_int_equal(cu.cuStreamEndCapture(stream, &captured),
                   spoiled ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
  if (!spoiled) RIGHT(cu.cuGraphDestroy(captured));
  RIGHT(cu.cuStreamDestroy(stream));
}

static void test_disarmed_while_captured(void **state) {
  for (int blocking = 0; blocking < 2; ++blocking) {
    world w = world_with(*state, &loop, 0);
    assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
    const CUstream stream = begin_capture(blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
    assert_fails(GK_ERROR_INVALID, "gk_cuda_disarm: a stream of the device's context is being captured",
                 gk_cuda_disarm(w.graph));
    end_capture(stream, !blocking);
    assert_ok(gk_cuda_disarm(w.graph));
    end_world(&w);
  }
}

/* A launch may be under way then: its memory isn't the next graph's. */
static void test_destroyed_while_captured(void **state) {
  gk_device *device = *state;
  for (int blocking = 0; blocking < 2; ++blocking) {
    world w = world_with(device, &loop, 0), other;
    assert_ok(gk_cuda_arm(w.graph, w.exec, 0));
    sim->hold(1);
    RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
    const CUstream stream = begin_capture(blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
    gk_graph_destroy(w.graph);
    sim->hold(0);
    end_capture(stream, !blocking);
    const size_t before = sim->alive(SIMGPU_MEMORY);
    other = world_with(device, &loop, 0);
    assert_true(sim->alive(SIMGPU_MEMORY) >= before + 4 + 2); /* what is bound; its state and tables */
    RIGHT(cu.cuStreamSynchronize(hand_stream));
    assert_int_equal(int_at(device, w.x), 3);
    end_world(&other);
    RIGHT(cu.cuGraphExecDestroy(w.exec));
    RIGHT(cu.cuGraphDestroy(w.whole));
  }
}

int main(int count, char **words) {
  (void)count;
  setenv("SIMGPU_VERSION", DRIVER, 1);
  setenv("SIMGPU_NO", NO, 1);
  setenv("SIMGPU_DEVICES", "3", 1);
  with_simgpu(words);
  hand_find_entries();
  const struct CMUnitTest tests[] = {
    ON_HAND(test_between_others), ON_HAND(test_straight), ON_HAND(test_bad_count),
    ON_HAND(test_yields), ON_HAND(test_yields_without_resuming),
    ON_HAND(test_two), ON_HAND(test_behind_a_block), ON_HAND(test_any_order), ON_HAND(test_queue),
    ON_HAND(test_exec_made_again), ON_HAND(test_disarmed), ON_HAND(test_disarmed_after_binding),
    ON_HAND(test_cancel), ON_HAND(test_own_memory), ON_HAND(test_code_by_hand),
    ON_HAND(test_refused), ON_HAND(test_refused_on_the_way),
    ON_HAND(test_drivers_that_cannot), ON_HAND(test_every_call_fails), ON_HAND(test_memory_runs_out),
    cmocka_unit_test_setup_teardown(test_lost, setup_hand, teardown_lost), ON_HAND(test_destroyed_under_way),
    ON_HAND(test_disarmed_while_captured), ON_HAND(test_destroyed_while_captured),
    ON_HAND(test_device_closed_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
