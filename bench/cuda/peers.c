/* gk's figures for the comparison with other projects on CUDA (table C12; bench/peers measures these): one more
 * pass, a checkpoint that doesn't yield, a launch, a yield with its resume. A task is one kernel of one thread, so
 * that it takes little. Graphs by hand are beside gk's where they are possible. */
#include "bench/cuda/hand.h"
#include "bench/harness/harness.h"
#include "gk_kernel.h"

GK_SOURCE(bench_cuda_peers)
GK_KERNEL(one_more, (inout(int, x))) { x[i] += 1; }
GK_KERNEL(one_less, (inout(int, left))) { left[0] -= 1; }
GK_SOURCE_END

enum { X = 1, LEFT, FLAG };
enum { GO = 7, CHECKPOINTS = 100 };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_BUFFER(LEFT, int), GK_BUFFER(FLAG, int)};
static gk_device *device;
static int *x, *left, *flag;
static int passes, checkpoints; /* of the longer of two; the other has half of them */

static gk_graph *graph_of(const gk_task *tasks, size_t count) {
  const gk_list list = {GK_ABI, "peers", tasks, count, slots, GK_COUNT(slots)};
  gk_graph *graph;
  bench_must(gk_graph_create(device, &list, 0, &graph));
  bench_must(gk_bind(graph, X, x));
  bench_must(gk_bind(graph, LEFT, left));
  bench_must(gk_bind(graph, FLAG, flag));
  return graph;
}

/* Launches and waits. */
static double timed(gk_graph *graph, CUgraphExec exec) {
  const double begin = bench_now();
  if (graph) {
    bench_must(gk_launch(graph, 0));
    bench_must(gk_wait(graph, NULL));
  } else {
    bench_hand_launch(exec);
    bench_hand_wait();
  }
  return bench_now() - begin;
}

/* ---- one more pass ----------------------------------------------------------------------------------------------- */

typedef struct loops {
  gk_graph *gk;
  CUgraphExec exec;
} loops;

static gk_graph *gk_loop(void) {
  const gk_task tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(one_less, GK_ONE, LEFT), GK_END};
  return graph_of(tasks, GK_COUNT(tasks));
}

static CUgraphExec hand_loop(void) {
  const CUgraph whole = bench_hand_graph();
  CUgraph body;
  CUgraphConditionalHandle handle = bench_hand_handle(whole, 1);
  bench_hand_conditional(whole, NULL, CU_GRAPH_COND_TYPE_WHILE, handle, &body);
  const CUgraphNode last = bench_hand_kernel(body, NULL, "less", 1, 1, (void *[]){&left});
  bench_hand_kernel(body, last, "decide", 1, 1, (void *[]){&left, &handle});
  return bench_hand_exec(whole);
}

static bool one_pass(void *with, uint64_t times, bench_took *took) {
  const loops *l = with;
  const int shorter = passes / 2, more = passes - shorter;
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    bench_hand_put(left, passes);
    took->all += timed(l->gk, l->exec) / more;
    right = right && bench_hand_value(left) == 0;
    bench_hand_put(left, shorter);
    took->less += timed(l->gk, l->exec) / more;
    right = right && bench_hand_value(left) == 0;
  }
  return right;
}

static void one_more_pass(void) {
  const char *what = "one more pass", *own = "gk", *hand = "by hand: a kernel decides";
  if (!bench_wants("C12", what)) return;
  loops gk = {.gk = gk_loop()}, by_hand = {.exec = hand_loop()};
  bench_measure(&(bench_table){"C12", what, "what does one more pass of one task over one item cost?", "ns",
    .variants = {{own, one_pass, &gk}, {hand, one_pass, &by_hand}}, .ratios = {{"gk against by hand", own, {hand}}},
    .floor = {HAND_EDGE, 1}});
  gk_graph_destroy(gk.gk);
  bench_hand_exec_end(by_hand.exec);
}

/* ---- a silent checkpoint ----------------------------------------------------------------------------------------- */

typedef struct silent { gk_graph *marked[2], *plain[2]; } silent; /* the shorter, the longer */

static gk_graph *tasks_of(int count, bool marked) {
  gk_task tasks[3 * CHECKPOINTS], *at = tasks;
  for (int k = 1; k <= count; ++k) {
    if (marked) *at++ = (gk_task){.op = GK_OP_CHECKPOINT, .name = "silent", .flag = FLAG, .label = k};
    *at++ = (gk_task)GK_RUN(one_more, GK_ONE, X);
    if (marked) *at++ = (gk_task)GK_END;
  }
  return graph_of(tasks, (size_t)(at - tasks));
}

/* The difference between one more task with a checkpoint and one more without. */
static bool checkpoint_alone(void *with, uint64_t times, bench_took *took) {
  const silent *s = with;
  const int shorter = checkpoints / 2, more = checkpoints - shorter;
  bench_hand_put(x, 0);
  for (uint64_t k = 0; k < times; ++k) {
    took->all += (timed(s->marked[1], NULL) + timed(s->plain[0], NULL)) / more;
    took->less += (timed(s->marked[0], NULL) + timed(s->plain[1], NULL)) / more;
  }
  return bench_hand_value(x) == (int)times * 2 * (checkpoints + shorter);
}

static void silence(void) {
  const char *what = "silent checkpoint";
  if (!bench_wants("C12", what)) return;
  silent s;
  for (int k = 0; k < 2; ++k) {
    s.marked[k] = tasks_of(k ? checkpoints : checkpoints / 2, true);
    s.plain[k] = tasks_of(k ? checkpoints : checkpoints / 2, false);
  }
  bench_hand_put(flag, 0);
  bench_measure(&(bench_table){"C12", what, "what does a checkpoint whose flag is 0 cost, beside its task?", "ns",
                               .variants = {{"gk", checkpoint_alone, &s}}, .floor = {HAND_EDGE, 1}});
  for (int k = 0; k < 2; ++k) {
    gk_graph_destroy(s.marked[k]);
    gk_graph_destroy(s.plain[k]);
  }
}

/* ---- one launch -------------------------------------------------------------------------------------------------- */

enum { QUEUE = 8 /* launches; few enough that none waits for room */ };

/* The host's time. The device's work meanwhile doesn't count. */
static bool one_launch(void *with, uint64_t times, bench_took *took) {
  const loops *l = with;
  bench_hand_put(x, 0);
  for (uint64_t done = 0; done < times;) {
    const uint64_t now = times - done < QUEUE ? times - done : QUEUE;
    const double begin = bench_now();
    for (uint64_t k = 0; k < now; ++k) {
      if (l->gk) bench_must(gk_launch(l->gk, 0));
      else bench_hand_launch(l->exec);
    }
    took->all += bench_now() - begin;
    if (l->gk) bench_must(gk_wait(l->gk, NULL));
    else bench_hand_wait();
    done += now;
  }
  return bench_hand_value(x) == (int)times;
}

static void launches(void) {
  const char *what = "one launch", *own = "gk", *hand = "by hand: cuGraphLaunch";
  if (!bench_wants("C12", what)) return;
  const CUgraph whole = bench_hand_graph();
  bench_hand_kernel(whole, NULL, "more", 1, 1, (void *[]){&x});
  loops gk = {.gk = tasks_of(1, false)}, by_hand = {.exec = bench_hand_exec(whole)};
  bench_measure(&(bench_table){"C12", what, "how long is the host busy with launching a graph of one task?", "ns",
    .variants = {{own, one_launch, &gk}, {hand, one_launch, &by_hand}}, .ratios = {{"gk against by hand", own, {hand}}},
    .floor = {HAND_LAUNCH, 1}});
  gk_graph_destroy(gk.gk);
  bench_hand_exec_end(by_hand.exec);
}

/* ---- a yield, and back ------------------------------------------------------------------------------------------- */

static bool two_launches(void *with, uint64_t times, bench_took *took) {
  bench_hand_put(x, 0);
  bench_hand_put(flag, 0);
  for (uint64_t k = 0; k < 2 * times; ++k) took->all += timed(with, NULL);
  return bench_hand_value(x) == 2 * (int)times;
}

/* The time includes the host's clearing of the flag between the two. */
static bool yield_and_resume(void *with, uint64_t times, bench_took *took) {
  bool right = true;
  bench_hand_put(x, 0);
  for (uint64_t k = 0; k < times; ++k) {
    const gk_status *status;
    bench_hand_put(flag, 1);
    const double begin = bench_now();
    bench_must(gk_launch(with, 0));
    bench_must(gk_wait(with, &status));
    right = right && status->state == GK_YIELDED && status->yielded == GO;
    bench_hand_put(flag, 0);
    bench_must(gk_launch(with, GO));
    bench_must(gk_wait(with, &status));
    took->all += bench_now() - begin;
    right = right && status->state == GK_FINISHED;
  }
  return right && bench_hand_value(x) == 2 * (int)times;
}

static bool yield_alone(void *with, uint64_t times, bench_took *took) {
  bench_took calm = {0};
  const bool right = yield_and_resume(with, times, took);
  const bool also = two_launches(with, times, &calm);
  took->less = calm.all;
  return right && also;
}

static void yields(void) {
  const char *what = "yield and resume";
  if (!bench_wants("C12", what)) return;
  const gk_task tasks[] = {GK_CHECKPOINT(GO, FLAG), GK_RUN(one_more, GK_ONE, X), GK_END};
  gk_graph *graph = graph_of(tasks, GK_COUNT(tasks));
  bench_measure(&(bench_table){"C12", what, "what does a yield with its resume add to two launches?", "ns",
    .variants = {{"gk, beyond two launches", yield_alone, graph}, {"gk, yield and resume", yield_and_resume, graph},
                 {"gk, two launches", two_launches, graph}}});
  gk_graph_destroy(graph);
}

int main(int argc, char **argv) {
  const char *why;
  bench_begin(argc, argv, "cuda_peers");
  device = bench_hand_open(&why);
  if (!device) return bench_missing(why);
  passes = bench_is_quick() ? 4 : 2000;
  checkpoints = bench_is_quick() ? 4 : CHECKPOINTS;
  int *const numbers[] = {x = bench_hand_ints(device, 1), left = bench_hand_ints(device, 1),
                          flag = bench_hand_ints(device, 1)};
  one_more_pass();
  silence();
  launches();
  yields();
  for (size_t k = 0; k < GK_COUNT(numbers); ++k) gk_free(device, numbers[k]);
  bench_hand_close(device);
  return bench_end();
}
