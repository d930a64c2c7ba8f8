/* A cancel that comes while a launch on CUDA begins isn't lost: the backend's source on a model of memory. */
#include "unit/support/memory_model.h"
#include "cuda/build.h"
#include "cuda/launch.h"
#include "base/clock.h"
#include "base/costs.h"

#include "unit/support/memory_model_atomics.h"
#include "cuda/launch.c"

static gki_cuda_graph graph;
static uint64_t pinned[8]; /* the first: launches up to this number are cancelled */
static int32_t word;       /* common's: the launch is cancelled */
static uint64_t number;

static void begin_launch(void) {
  const gk_launch_args launch = {.launch = number, .cancel = &word};
  gki_cuda_publish_number(&graph, &launch, number);
}

/* What gk_cancel does. */
static void cancel(void) {
  model_store(&word, 1, sizeof word, memory_order_relaxed);
  (void)gki_cuda_cancel(&graph);
}

/* left: the word that a cancel of a launch with this number left, when the driver didn't take that launch; or 0. */
static void check(void (*first)(void), void (*other)(void), uint64_t left) {
  bool over = false;
  for (uint32_t at = 0; !over; ++at) {
    memset(&graph, 0, sizeof graph);
    memset(pinned, 0, sizeof pinned);
    graph.pinned = (unsigned char *)pinned;
    word = 0;
    pinned[0] = left;
    memcpy(&graph.order.launched, &(uint64_t){number - 1}, sizeof graph.order.launched);
    over = model_run(at, first, other, NULL);
    if (pinned[0] < number) fail_msg("the other one ran before step %u: launch %d isn't stopped", at, (int)number);
    assert_int_equal(pinned[0], number);
  }
}

TEST(test_no_cancel_is_lost) {
  for (number = 1; number <= 3; number += 2)
    for (uint64_t left = 0; left <= number; left += number) {
      check(begin_launch, cancel, left);
      check(cancel, begin_launch, left);
    }
}

/* Without a cancel nothing is stopped, though an earlier cancel left its word behind. */
TEST(test_nothing_is_stopped_by_itself) {
  for (number = 1; number <= 3; ++number)
    for (uint64_t left = 0; left <= number; ++left) {
      memset(&model, 0, sizeof model);
      model.ran = true;
      graph.pinned = (unsigned char *)pinned;
      pinned[0] = left;
      word = 0;
      begin_launch();
      model_pass_all(0);
      assert_true(pinned[0] < number);
    }
}

int main(void) { return run_all_tests(); }
