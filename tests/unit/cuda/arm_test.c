/* Lists in graphs of a program's own: they run where the program put them, as often as it launches. The status is that
 * of the arming. Arming, launching and asking may come in any order. */
#include "unit/support/chance.h"
#include "direct_list.h"

/* In any order: the last arming before a launch is what runs, and the status tells how that arming ended. */
TEST_ON_HAND(test_any_order) {
  int *counts[4];
  for (int k = 0; k < 4; ++k) counts[k] = int_on(device, k + 1);
  for (uint64_t seed = first_seed(), end = seed + scaled(20); seed < end; ++seed) {
    world w = world_with(device, &loop, 0);
    uint64_t random = seed;
    int x = 0, a = 0, count = 0, armed = 0, ran = 0, passes[400] = {0};
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
          arm(&w);
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
        assert_int_equal(int_at(device, w.x), x);
      }
      }
    RIGHT(cu.cuStreamSynchronize(hand_stream));
    assert_int_equal(int_at(device, w.x), x);
    end_world(&w);
  }
}

TEST_ON_HAND(test_queue) {
  world w = world_with(device, &loop, 0);
  sim->hold(1);
  for (int k = 0; k < 16; ++k) {
    gk_bind_int(w.graph, A, k);
    arm(&w);
    RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
  }
  assert_fails(GK_ERROR_BUSY, "16 launches of graph loop are armed and not over", gk_cuda_arm(w.graph, w.exec, 0));
  assert_int_equal(gk_poll(w.graph, NULL), GK_NOT_READY);
  sim->hold(0);
  RIGHT(cu.cuStreamSynchronize(hand_stream));
  assert_int_equal(told(w.graph)->launch, 16);
  assert_int_equal(int_at(device, w.x), 3 * 120);
  arm(&w); /* and never launched */
}

TEST_ON_HAND(test_exec_made_again) {
  world w = world_with(device, &loop, 0);
  arm(&w); /* a launch of this list never ends */
  instantiate_again(&w);
  assert_int_equal(run_armed(&w, 0)->launch, 2);
  assert_int_equal(int_at(device, w.x), 3);
}

/* The exec of a list that can yield is given up between arming and launching. */
TEST_ON_HAND(test_disarmed) {
  world w = world_with(device, &yields, GK_CUDA_RESUMABLE);
  SET_VALUES({w.left, 3}, {w.count, 0});
  assert_ok(gk_cuda_arm(w.graph, w.exec, THERE));
  instantiate_again(&w);
  assert_fails(GK_ERROR_BUSY, "was armed, can yield, and gk_poll hasn't told yet how that launch ended; launch your",
               gk_cuda_arm(w.graph, w.exec, 0));
  const char *failed = "";
  for (uint64_t k = 1; strcmp(failed, "cuCtxSynchronize") != 0; ++k) { /* a call that fails takes nothing back */
    const gk_result result = FAILING(k, CUDA_ERROR_UNKNOWN, failed, gk_cuda_disarm(w.graph));
    if (strcmp(failed, "cuThreadExchangeStreamCaptureMode") == 0) { /* except for this one */
      assert_ok(result);
      assert_ok(gk_cuda_arm(w.graph, w.exec, THERE));
      continue;
    }
    assert_fails(GK_ERROR_DEVICE, "cuCtx", result);
    assert_fails(GK_ERROR_BUSY, "was armed, can yield", gk_cuda_arm(w.graph, w.exec, 0));
  }
  assert_ok(gk_cuda_disarm(w.graph));
  INVALID("call gk_cuda_arm first", gk_poll(w.graph, NULL));
  arm_and_launch(&w, 0);
  assert_ok(gk_cuda_disarm(w.graph)); /* that one was launched, and its status is told */
  const gk_status *status = told(w.graph);
  assert_int_equal(status->launch, 1);
  assert_int_equal(status->loops[0].passes, 3);
  assert_int_equal(int_at(device, w.x), 1);
  assert_ok(gk_cuda_disarm(w.graph));
  assert_int_equal(told(w.graph)->launch, 1);
}

/* What was bound for an arming that was taken back comes with the next one. */
TEST_ON_HAND(test_disarmed_after_binding) {
  world w = world_with(device, &loop, 0);
  assert_int_equal(run_armed(&w, 0)->launch, 1);
  const int before = int_at(device, w.x);
  gk_bind_int(w.graph, A, 5);
  for (int k = 0; k < 3; ++k) arm(&w);
  assert_ok(gk_cuda_disarm(w.graph));
  assert_int_equal(told(w.graph)->launch, 1);
  assert_int_equal(run_armed(&w, 0)->launch, 2);
  assert_int_equal(int_at(device, w.x), before + 3 * 5);
  INVALID("there is no graph", gk_cuda_disarm(NULL));
}

TEST_ON_HAND(test_cancel) {
  LIST(endless, GK_DO_WHILE(FLAG), GK_RUN(add, N, X, A), GK_END);
  world w = world_with(device, &endless, GK_CANCELLABLE);
  sim->set_passes(1000000000);
  set_int(device, w.flag, 1);
  for (int k = 1; k <= 3; ++k) {
    arm(&w);
    RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
    assert_ok(gk_cancel(w.graph));
    RIGHT(cu.cuStreamSynchronize(hand_stream));
    const gk_status *status = told(w.graph);
    assert_int_equal(status->launch, k);
    assert_int_equal(status->state, GK_CANCELLED);
    set_int(device, w.flag, 0);
    hand_launch(w.exec); /* it wasn't armed: the device counts it, gk_cancel doesn't */
    set_int(device, w.flag, 1);
  }
  set_int(device, w.flag, 0);
  assert_int_equal(run_armed(&w, 0)->state, GK_FINISHED);
  set_int(device, w.flag, 1);
  arm(&w);
  RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
  discard(w.graph); /* that cancels, too, and waits */
}

/* A launch that wasn't armed itself doesn't change the status of the launch before. */
TEST_ON_HAND(test_not_told_twice) {
  world w = world_with(device, &loop, 0);
  int *one = int_on(device, 1);
  arm(&w);
  sim->hold(1);
  RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
  RIGHT(cu.cuMemcpyDtoDAsync(at(w.count), at(one), sizeof *one, hand_stream));
  RIGHT(cu.cuGraphLaunch(w.exec, hand_stream));
  sim->hold(0);
  RIGHT(cu.cuStreamSynchronize(hand_stream));
  assert_int_equal(told(w.graph)->loops[0].passes, 3);
  assert_int_equal(int_at(device, w.x), 3 + 1);
}

int main(UNUSED int count, char **words) { return run_added(words); }
