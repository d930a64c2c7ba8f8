/* How long a wait for a launch on CUDA polls before it asks the driver to sleep, by a clock that the test sets. */
#include "unit/support/await.h"
#include "base/costs.h"
#include "graphs.h"
#include "unit/support/runtime_kernels.h"
#include "unit/support/set_clock.h"

enum { X = 1, A, FLAG };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(A, int, 1), GK_BUFFER(FLAG, int)};
LIST(list, GK_DO_WHILE(FLAG), GK_RUN(add, GK_ONE, X, A), GK_END);
static const uint32_t ways[] = {0, GK_HOST_GATED};

typedef struct patience { uint64_t passes_ns; atomic_bool passed; } patience; /* once the driver was asked */

/* The device is held up until the driver was asked to sleep. */
static void *go_on_when_asked(void *at) {
  patience *p = at;
  if (p->passes_ns) await(sim->calls("cuEventQuery") > 0);
  let_pass(p->passes_ns);
  atomic_store(&p->passed, true);
  await(sim->calls("cuEventSynchronize") > 0);
  sim->hold(0);
  return NULL;
}

static gk_graph *begin(gk_device *device, uint32_t bits) {
  set_clock();
  gk_graph *graph = NEW_GRAPH(device, &list, bits, {X, int_on(device, 0)}, {FLAG, int_on(device, 0)});
  run_to_end(graph, 0);
  sim->mark();
  return graph;
}

static void end(gk_device *device, gk_graph *graph, int launches) {
  ASSERT_VALUES({gk_bound(graph, X), launches});
  discard(graph);
}

/* While no time passes, it polls. */
TEST_ON_CUDA(looks_by_itself) {
  for (size_t k = 0; k < GK_COUNT(ways); ++k) {
    gk_graph *graph = begin(device, ways[k]);
    for (int launch = 0; launch < 5; ++launch) run_to_end(graph, 0);
    assert_int_equal(sim->calls("cuEventSynchronize"), 0);
    end(device, graph, 6);
  }
}

/* A status that the device posts: on the thread that waits. */
TEST_ON_CUDA(looks_at_a_status_for_a_while) {
  enum { READING_NS = 1000 };
  pthread_t other;
  gk_graph *graph = begin(device, 0);
  sim->hold(1);
  assert_ok(gk_launch(graph, 0));
  assert_int_equal(pthread_create(&other, NULL, go_on_when_asked, &(patience){0, false}), 0);
  const uint64_t before = own_time.passed_ns;
  reading_ns = READING_NS;
  assert_ok(gk_wait(graph, NULL));
  reading_ns = 0;
  pthread_join(other, NULL);
  assert_in_range(own_time.passed_ns - before, GKI_COST_SPIN_NS, GKI_COST_SPIN_NS + 3 * READING_NS);
  end(device, graph, 2);
}

/* An event that the driver is asked for: on the worker's thread. */
TEST_ON_CUDA(asks_for_an_event_for_a_while) {
  for (int enough = 0; enough <= 1; ++enough) {
    pthread_t other;
    patience p = {enough ? GKI_COST_SPIN_NS : GKI_COST_SPIN_NS - 1, false};
    gk_graph *graph = begin(device, GK_HOST_GATED);
    sim->hold(1);
    assert_ok(gk_launch(graph, 0));
    assert_int_equal(pthread_create(&other, NULL, go_on_when_asked, &p), 0);
    if (!enough) { /* a nanosecond less, and it keeps polling */
      await(atomic_load(&p.passed));
      const uint64_t before = sim->calls("cuEventQuery");
      await(sim->calls("cuEventQuery") > before + 100 || sim->calls("cuEventSynchronize") > 0);
      assert_int_equal(sim->calls("cuEventSynchronize"), 0);
      let_pass(1);
    }
    assert_ok(gk_wait(graph, NULL));
    pthread_join(other, NULL);
    end(device, graph, 2);
  }
}

int main(UNUSED int count, char **words) { return run_on_simgpu(words); }
