/* The host's work on CUDA, by gk and by hand: launching (table C1), building (C9) and binding again (C10). Also the
 * gain of two sections (C8). */
#include "bench/cuda/hand.h"
#include "bench/harness/harness.h"
#include "bench/harness/held.h"
#include "gk_kernel.h"
#include <stdio.h>
#include <stdlib.h>

GK_SOURCE(bench_cuda_launches)
GK_KERNEL(one_more, (inout(int, x))) { x[i] += 1; }
GK_SOURCE_END

static const gk_param code_params[] = {{"x", "int", sizeof(int), _Alignof(int), GK_PTR, GK_ACCESS_INOUT},
                                       {"rounds", "int", sizeof(int), _Alignof(int), GK_I32, GK_ACCESS_VALUE}};
static const gk_code more_code = {.text = bench_hand_text, .block = {1}};
static const gk_kernel more = {.name = "more", .params = code_params, .param_count = 1, .cuda = &more_code};
static gk_code mix_code = {.text = bench_hand_text};
static const gk_kernel mix = {.name = "mix", .params = code_params, .param_count = 2, .cuda = &mix_code};

enum { X = 1, Y, THREADS, ROUNDS };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_BUFFER(Y, int), GK_SCALAR(THREADS, int),
                                     GK_SCALAR(ROUNDS, int)};
static gk_device *device;
static int *x, *y;

static gk_graph *graph_of(const gk_task *tasks, size_t count) {
  const gk_list list = {GK_ABI, "launches", tasks, count, slots, GK_COUNT(slots)};
  gk_graph *graph;
  bench_must(gk_graph_create(device, &list, 0, &graph));
  return graph;
}

/* The same task `count` times, one after the other. */
static gk_task *row_of(gk_task task, size_t count) {
  gk_task *tasks = bench_alloc(count, sizeof *tasks);
  for (size_t k = 0; k < count; ++k) tasks[k] = task;
  return tasks;
}

static gk_graph *gk_row(gk_task task, size_t count) {
  gk_task *tasks = row_of(task, count);
  gk_graph *graph = graph_of(tasks, count);
  free(tasks);
  return graph;
}

/* The same by hand. `nodes` may be NULL. */
static CUgraph hand_row(int **at, size_t count, CUgraphNode *nodes) {
  const CUgraph whole = bench_hand_graph();
  const CUfunction function = bench_hand_function("more");
  CUgraphNode last = NULL;
  for (size_t k = 0; k < count; ++k) {
    last = bench_hand_add(whole, last, function, 1, 1, (void *[]){at});
    if (nodes) nodes[k] = last;
  }
  return whole;
}

static void finish(gk_graph *graph) {
  if (graph) bench_must(gk_wait(graph, NULL));
  else bench_hand_wait();
}

/* ---- C1: launching ----------------------------------------------------------------------------------------------- */

enum { QUEUE = 8 /* launches; few enough that none waits for room */ };

typedef struct replay {
  void (*launch)(const struct replay *);
  gk_graph *graph;
  CUgraphExec exec;
  CUevent event;
  int tasks;
} replay;

static void launch_gk(const replay *r) { bench_must(gk_launch(r->graph, 0)); }
static void launch_hand(const replay *r) { bench_hand_launch(r->exec); }
static void launch_marked(const replay *r) {
  bench_hand_launch(r->exec);
  HAND(bench_hand_driver->cuEventRecord(r->event, bench_hand_stream));
}

static bool host_time(void *with, uint64_t times, bench_took *took) {
  const replay *r = with;
  bench_hand_put(x, 0);
  for (uint64_t k = 0; k < times; ++k) {
    const double begin = bench_now();
    for (int launched = 0; launched < QUEUE; ++launched) r->launch(r);
    took->all += (bench_now() - begin) / QUEUE;
    finish(r->graph);
  }
  return bench_hand_value(x) == (int)times * QUEUE * r->tasks;
}

/* An exec of gk's nodes. A launch of gk's has copied the slots to the device. */
static CUgraphExec exec_of(gk_graph *graph) {
  CUgraph whole;
  bench_must(gk_bind(graph, X, x));
  bench_must(gk_launch(graph, 0));
  bench_must(gk_wait(graph, NULL));
  bench_must(gk_cuda_graph(graph, 0, &whole, NULL));
  return bench_hand_instantiate(whole);
}

static void replays(int tasks) {
  const char *own = "gk_launch", *hand = "cuGraphLaunch", *marked = "cuGraphLaunch, and an event behind it",
             *same = "cuGraphLaunch of gk's nodes";
  char what[60];
  snprintf(what, sizeof what, "a replay of %d tasks", tasks);
  if (!bench_wants("C1", what)) return;
  const gk_task task = GK_RUN(one_more, GK_ONE, X);
  replay r = {.launch = launch_gk, .graph = gk_row(task, (size_t)tasks), .tasks = tasks};
  const CUgraphExec exec = bench_hand_exec(hand_row(&x, (size_t)tasks, NULL));
  replay by_hand = {.launch = launch_hand, .exec = exec, .tasks = tasks}, with_event = by_hand;
  replay gk_nodes = by_hand;
  with_event.launch = launch_marked;
  gk_nodes.exec = exec_of(r.graph);
  HAND(bench_hand_driver->cuEventCreate(&with_event.event, CU_EVENT_DISABLE_TIMING));
  bench_measure(&(bench_table){"C1", what, "how long is the host busy with a replay of a graph that can't yield?", "ns",
    .variants = {{own, host_time, &r}, {hand, host_time, &by_hand}, {marked, host_time, &with_event},
                 {same, host_time, &gk_nodes}},
    .ratios = {{"gk against by hand", own, {hand}, 1.05}, {"gk against by hand with an event", own, {marked}, 0},
               {"gk against its nodes by hand", own, {same}, 0}},
    .floor = {HAND_LAUNCH, 1}});
  HAND(bench_hand_driver->cuEventDestroy(with_event.event));
  bench_hand_exec_end(by_hand.exec);
  bench_hand_exec_end(gk_nodes.exec);
  gk_graph_destroy(r.graph);
}

/* ---- C8: sections ------------------------------------------------------------------------------------------------ */

enum { KERNELS = 10 /* of each section */, SEED = 0x2545f49 };

typedef struct halves {
  gk_graph *graph;
  CUgraphExec exec;
} halves;

static struct { int kernels, rounds, threads, blocks, *start, *seen; } half;

static void prepare_halves(void) {
  const bool quick = bench_is_quick();
  half.kernels = quick ? 2 : KERNELS;
  half.rounds = quick ? 3 : 900; /* about 50 microseconds */
  half.blocks = quick || bench_hand_multiprocessors < 2 ? 1 : bench_hand_multiprocessors / 2;
  mix_code.block[0] = quick ? 32 : 1024; /* more than a multiprocessor computes at once */
  half.threads = half.blocks * (int)mix_code.block[0];
  half.start = bench_alloc((size_t)half.threads, sizeof *half.start);
  half.seen = bench_alloc((size_t)half.threads, sizeof *half.seen);
  for (int k = 0; k < half.threads; ++k) half.start[k] = SEED;
}

static bool is_mixed(const int *at, uint64_t times) {
  uint32_t v = SEED;
  for (uint64_t k = 0; k < times * (uint64_t)half.kernels * (uint64_t)half.rounds; ++k) {
    v ^= v << 13;
    v ^= v >> 17;
    v ^= v << 5;
  }
  bench_must(gk_download(device, half.seen, at, (size_t)half.threads * sizeof *at));
  for (int k = 0; k < half.threads; ++k)
    if ((uint32_t)half.seen[k] != v) return false;
  return true;
}

static bool both_halves(void *with, uint64_t times, bench_took *took) {
  const halves *h = with;
  bench_must(gk_upload(device, x, half.start, (size_t)half.threads * sizeof *x));
  bench_must(gk_upload(device, y, half.start, (size_t)half.threads * sizeof *y));
  const double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) {
    if (h->graph) bench_must(gk_launch(h->graph, 0));
    else bench_hand_launch(h->exec);
    finish(h->graph);
  }
  took->all += bench_now() - begin;
  return is_mixed(x, times) && is_mixed(y, times);
}

static gk_graph *gk_halves(bool apart) {
  gk_task tasks[2 * KERNELS + 6], *at = tasks;
  if (apart) *at++ = (gk_task)GK_PARALLEL;
  for (int s = 0; s < 2; ++s) {
    if (apart) *at++ = (gk_task)GK_SECTION;
    for (int k = 0; k < half.kernels; ++k) *at++ = (gk_task)GK_RUN(mix, THREADS, s ? Y : X, ROUNDS);
    if (apart) *at++ = (gk_task)GK_END;
  }
  if (apart) *at++ = (gk_task)GK_END;
  gk_graph *graph = graph_of(tasks, (size_t)(at - tasks));
  bench_must(gk_bind(graph, X, x));
  bench_must(gk_bind(graph, Y, y));
  bench_must(gk_bind_int(graph, THREADS, half.threads));
  bench_must(gk_bind_int(graph, ROUNDS, half.rounds));
  return graph;
}

static CUgraphExec hand_halves(void) {
  const CUgraph whole = bench_hand_graph();
  int **const at[] = {&x, &y};
  for (int s = 0; s < 2; ++s) {
    CUgraphNode last = NULL;
    for (int k = 0; k < half.kernels; ++k)
      last = bench_hand_kernel(whole, last, "mix", (unsigned)half.blocks, mix_code.block[0],
                               (void *[]){at[s], &half.rounds});
  }
  return bench_hand_exec(whole);
}

static void sections(void) {
  const char *apart = "gk: two sections", *chain = "gk: one chain", *hand = "by hand: two branches";
  const char *what = "two halves of the GPU";
  if (!bench_wants("C8", what)) return;
  prepare_halves();
  int *const before[] = {x, y};
  x = bench_hand_ints(device, (size_t)half.threads);
  y = bench_hand_ints(device, (size_t)half.threads);
  halves two = {.graph = gk_halves(true)}, one = {.graph = gk_halves(false)}, by_hand = {.exec = hand_halves()};
  bench_measure(&(bench_table){"C8", what, "do two sections run at once, if each fills half of the GPU?", "ns",
    .variants = {{apart, both_halves, &two}, {chain, both_halves, &one}, {hand, both_halves, &by_hand}},
    .ratios = {{"sections against one chain", apart, {chain}, 0.55}, {"by hand against gk's chain", hand, {chain}, 0},
               {"sections against by hand", apart, {hand}, 0}}});
  gk_graph_destroy(two.graph);
  gk_graph_destroy(one.graph);
  bench_hand_exec_end(by_hand.exec);
  gk_free(device, x);
  gk_free(device, y);
  x = before[0];
  y = before[1];
  free(half.start);
  free(half.seen);
}

/* ---- C9: building ------------------------------------------------------------------------------------------------ */

typedef struct building {
  size_t count;
  const gk_task *tasks;
} building;

/* *launched: when the host's launch had returned. */
static bool runs(const building *b, gk_graph *graph, CUgraphExec exec, double *launched) {
  if (graph) {
    bench_must(gk_bind(graph, X, x));
    bench_must(gk_launch(graph, 0));
  } else {
    bench_hand_launch(exec);
  }
  *launched = bench_now();
  finish(graph);
  return bench_hand_value(x) == (int)b->count;
}

static double time_gk(const building *b, bool launch, bool *right) {
  double launched;
  bench_hand_put(x, 0);
  const double begin = bench_now();
  gk_graph *graph = graph_of(b->tasks, b->count);
  const double built = bench_now();
  *right = runs(b, graph, NULL, &launched) && *right;
  const double end = bench_now();
  gk_graph_destroy(graph);
  return (launch ? launched : built) - begin + bench_now() - end;
}

static double time_by_hand(const building *b, bool launch, bool *right) {
  double launched;
  bench_hand_put(x, 0);
  const double begin = bench_now();
  const CUgraphExec exec = bench_hand_exec(hand_row(&x, b->count, NULL));
  const double built = bench_now();
  *right = runs(b, NULL, exec, &launched) && *right;
  const double end = bench_now();
  bench_hand_exec_end(exec);
  return (launch ? launched : built) - begin + bench_now() - end;
}

static bool build(double (*time)(const building *, bool, bool *), bool launch, const building *b, uint64_t times,
                  bench_took *took) {
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) took->all += time(b, launch, &right) / (double)b->count;
  return right;
}

static bool build_gk(void *with, uint64_t times, bench_took *took) { return build(time_gk, false, with, times, took); }
static bool build_by_hand(void *with, uint64_t times, bench_took *took) {
  return build(time_by_hand, false, with, times, took);
}
static bool build_and_launch_gk(void *with, uint64_t times, bench_took *took) {
  return build(time_gk, true, with, times, took);
}
static bool build_and_launch_by_hand(void *with, uint64_t times, bench_took *took) {
  return build(time_by_hand, true, with, times, took);
}

static bool hold_gk(void *with, uint64_t times, bench_took *took) {
  const building *b = with;
  bool right = true;
  double launched;
  for (uint64_t k = 0; k < times; ++k) {
    const size_t before = bench_held;
    gk_graph *graph = graph_of(b->tasks, b->count);
    took->all += (double)(bench_held - before) / (double)b->count;
    bench_hand_put(x, 0);
    right = runs(b, graph, NULL, &launched) && right;
    gk_graph_destroy(graph);
  }
  return right;
}

enum { SIZES = 4 };
static const size_t all_sizes[] = {10, 1000, 10000, 100000}, quick_sizes[] = {10, 100};
static char size_names[2][SIZES][40];
static building sizes[SIZES];

static void time_built(const char *what, size_t count, size_t thousand) {
  bench_table table = {"C9", what, "how long does it take to build a graph, and to destroy it, per task?", "ns",
                       .tries = 1};
  for (size_t k = 0; k < count; ++k) {
    table.variants[2 * k] = (bench_variant){size_names[0][k], build_gk, &sizes[k]};
    table.variants[2 * k + 1] = (bench_variant){size_names[1][k], build_by_hand, &sizes[k]};
    table.ratios[k] = (bench_ratio){size_names[0][k], size_names[0][k], {size_names[1][k]}, 1.1};
  }
  table.ratios[count] = (bench_ratio){"gk: a task of the most against one of 1,000", size_names[0][count - 1],
                                      {size_names[0][thousand]}, 2};
  table.ratios[count + 1] = (bench_ratio){"by hand: likewise", size_names[1][count - 1], {size_names[1][thousand]}, 0};
  bench_measure(&table);
}

/* Includes the work that gk does in the first launch, since memory is bound after the graph is built. */
static void time_launched(const char *what, size_t count) {
  bench_table table = {"C9", what, "the same and the host's time for the first launch, per task: does it put off work?",
                       "ns", .tries = 1};
  for (size_t k = 0; k < count; ++k) {
    table.variants[2 * k] = (bench_variant){size_names[0][k], build_and_launch_gk, &sizes[k]};
    table.variants[2 * k + 1] = (bench_variant){size_names[1][k], build_and_launch_by_hand, &sizes[k]};
    table.ratios[k] = (bench_ratio){size_names[0][k], size_names[0][k], {size_names[1][k]}, 1.1};
  }
  bench_measure(&table);
}

static void builds(void) {
  const char *what = "build and instantiate", *first = "build, bind and launch once",
             *memory = "memory that a built graph holds";
  const size_t *of = bench_is_quick() ? quick_sizes : all_sizes, thousand = bench_is_quick() ? 0 : 1;
  const size_t count = bench_is_quick() ? GK_COUNT(quick_sizes) : GK_COUNT(all_sizes);
  if (!bench_wants("C9", what) && !bench_wants("C9", first) && !bench_wants("C9", memory)) return;
  gk_task *tasks = row_of((gk_task)GK_RUN(one_more, GK_ONE, X), of[count - 1]);
  for (size_t k = 0; k < count; ++k) {
    sizes[k] = (building){of[k], tasks};
    snprintf(size_names[0][k], sizeof size_names[0][k], "gk, %zu tasks", of[k]);
    snprintf(size_names[1][k], sizeof size_names[1][k], "by hand, %zu nodes", of[k]);
  }
  if (bench_wants("C9", what)) time_built(what, count, thousand);
  if (bench_wants("C9", first)) time_launched(first, count);
  bench_measure(&(bench_table){"C9", memory, "how much of the host's memory does gk hold beside the driver, per task?",
    "bytes",
    .variants = {{size_names[0][thousand], hold_gk, &sizes[thousand], 1, 0},
                 {size_names[0][count - 1], hold_gk, &sizes[count - 1], 1, 0}},
    .tries = 1});
  free(tasks);
}

/* ---- C10: binding anew ------------------------------------------------------------------------------------------- */

enum { REBOUND = 1000, ROOM = REBOUND };

typedef struct rebinding {
  void (*replay)(struct rebinding *, int *to); /* binds and launches */
  bool stays;                                  /* nothing is bound again */
  gk_graph *graph;
  CUgraph whole; /* of exec */
  CUgraphExec exec;
  CUgraphNode nodes[ROOM];
  int tasks, turn; /* in turns to x and y */
} rebinding;

static void bind_anew(rebinding *r, int *to) {
  bench_must(gk_bind(r->graph, X, to));
  bench_must(gk_launch(r->graph, 0));
}

static void launch_again(rebinding *r, int *to) {
  (void)to;
  bench_must(gk_launch(r->graph, 0));
}

static void build_anew(rebinding *r, int *to) {
  r->whole = hand_row(&to, (size_t)r->tasks, NULL);
  HAND(bench_hand_driver->cuGraphInstantiateWithFlags(&r->exec, r->whole, 0));
  bench_hand_launch(r->exec);
}

static void update_nodes(rebinding *r, int *to) {
  const CUDA_KERNEL_NODE_PARAMS_v1 node = {.func = bench_hand_function("more"), .gridDimX = 1, .gridDimY = 1,
                                           .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
                                           .kernelParams = (void *[]){&to}};
  for (int k = 0; k < r->tasks; ++k)
    HAND(bench_hand_driver->cuGraphExecKernelNodeSetParams(r->exec, r->nodes[k], &node));
  bench_hand_launch(r->exec);
}

static void drop(rebinding *r) {
  if (r->exec) bench_hand_exec_end(r->exec);
  if (r->whole) HAND(bench_hand_driver->cuGraphDestroy(r->whole));
  r->exec = NULL;
  r->whole = NULL;
}

/* The time until the launch returns. The device's work and the end of what was built don't count. */
static bool rebind(void *with, uint64_t times, bench_took *took) {
  rebinding *r = with;
  int runs_of[2] = {0};
  bench_hand_put(x, 0);
  bench_hand_put(y, 0);
  for (uint64_t k = 0; k < times; ++k) {
    if (!r->stays) r->turn = !r->turn;
    ++runs_of[r->turn];
    const double begin = bench_now();
    r->replay(r, r->turn ? y : x);
    took->all += bench_now() - begin;
    finish(r->graph);
    if (r->replay == build_anew) drop(r);
  }
  return bench_hand_value(x) == runs_of[0] * r->tasks && bench_hand_value(y) == runs_of[1] * r->tasks;
}

static void rebindings(void) {
  enum { TABLE, NODES, REPLAY, ANEW, UPDATES, VARIANTS };
  static const char *const names[VARIANTS] = {"gk: gk_bind, gk_launch", "gk: the same, tasks with code by hand",
                                          "gk: gk_launch, nothing bound", "by hand: built anew, launched",
                                          "by hand: each node updated, launched"};
  static rebinding r[VARIANTS] = {{.replay = bind_anew}, {.replay = bind_anew}, {.replay = launch_again, .stays = true},
                              {.replay = build_anew}, {.replay = update_nodes}};
  const int tasks = bench_is_quick() ? 20 : REBOUND;
  char what[60];
  bench_table table = {"C10", what, "how long is the host busy with a replay that has other memory?", "ns",
    .ratios = {{"gk against building anew", names[TABLE], {names[ANEW]}, 0.02},
               {"gk against an update of each node", names[TABLE], {names[UPDATES]}, 0.05},
               {"with code by hand, against updates by hand", names[NODES], {names[UPDATES]}, 0},
               {"gk against nothing bound", names[TABLE], {names[REPLAY]}, 0}},
    .floor = {HAND_LAUNCH, 1}};
  snprintf(what, sizeof what, "one slot of %d tasks bound anew", tasks);
  if (!bench_wants("C10", what)) return;
  for (int k = 0; k < VARIANTS; ++k) {
    r[k].tasks = tasks;
    if (k <= REPLAY) {
      r[k].graph = gk_row(k == NODES ? (gk_task)GK_RUN(more, GK_ONE, X) : (gk_task)GK_RUN(one_more, GK_ONE, X),
                          (size_t)tasks);
      bench_must(gk_bind(r[k].graph, X, x));
    }
    table.variants[k] = (bench_variant){names[k], rebind, &r[k]};
  }
  r[UPDATES].whole = hand_row(&x, (size_t)tasks, r[UPDATES].nodes);
  r[UPDATES].exec = bench_hand_instantiate(r[UPDATES].whole);
  bench_measure(&table);
  for (int k = 0; k < VARIANTS; ++k) {
    gk_graph_destroy(r[k].graph);
    drop(&r[k]);
  }
}

int main(int argc, char **argv) {
  const char *why;
  bench_begin(argc, argv, "cuda_launches");
  bench_must(gk_set_allocator(&bench_counting));
  device = bench_hand_open(&why);
  if (!device) return bench_missing(why);
  x = bench_hand_ints(device, 1);
  y = bench_hand_ints(device, 1);
  replays(10);
  replays(bench_is_quick() ? 20 : 1000);
  sections();
  builds();
  rebindings();
  gk_free(device, x);
  gk_free(device, y);
  bench_hand_close(device);
  return bench_end();
}
