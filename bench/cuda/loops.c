/* The cost of a pass of a loop on CUDA (tables C2, C2a, C3, C7), by gk, by hand, and without loops in graphs. A pass
 * has some kernels of one thread: the last one decrements a counter, the others increment a number. */
#include "bench/cuda/hand.h"
#include "bench/cuda/relaunch.h"
#include "bench/harness/harness.h"
#include "gk_kernel.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

GK_SOURCE(bench_cuda_loops)
GK_KERNEL(one_more, (inout(int, x))) { x[i] += 1; }
GK_KERNEL(one_less, (inout(int, left))) { left[0] -= 1; }
GK_SOURCE_END

enum { X = 1, LEFT, SLOTS, KERNELS = 32, TOGETHER = 8 };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_BUFFER(LEFT, int)};
static gk_device *device;
static int *x, *left, *barrier, *posted_at;
static volatile int *posted;
static int passes; /* of the longer of two loops; the other has half of them */
static int between; /* passes between two reads of the flag */

/* ---- loops of each kind ------------------------------------------------------------------------------------------ */

typedef struct loop {
  int kernels, passes;
  gk_graph *graph;
  CUgraphExec exec;
  CUfunction stay;
} loop;

static gk_graph *gk_loop(int kernels, int count, int every) {
  gk_task tasks[KERNELS + 3], *at = tasks;
  gk_task first = GK_FILL(LEFT, GK_ONE, 0);
  first.pattern = (uint32_t)count;
  *at++ = first;
  *at++ = (gk_task){.op = GK_OP_DO_WHILE, .name = "LEFT", .flag = LEFT, .every = (uint32_t)every};
  for (int k = 1; k < kernels; ++k) *at++ = (gk_task)GK_RUN(one_more, GK_ONE, X);
  *at++ = (gk_task)GK_RUN(one_less, GK_ONE, LEFT);
  *at++ = (gk_task)GK_END;
  const gk_list list = {GK_ABI, "loop", tasks, (size_t)(at - tasks), slots, GK_COUNT(slots)};
  gk_graph *graph;
  bench_must(gk_graph_create(device, &list, 0, &graph));
  bench_must(gk_bind(graph, X, x));
  bench_must(gk_bind(graph, LEFT, left));
  return graph;
}

static CUgraphNode add_set(CUgraph into, int count) {
  void *parameters[] = {&left, &count};
  return bench_hand_kernel(into, NULL, "set", 1, 1, parameters);
}

static CUgraphNode add_kernels(CUgraph into, CUgraphNode after, int kernels) {
  for (int k = 1; k < kernels; ++k) after = bench_hand_kernel(into, after, "more", 1, 1, (void *[]){&x});
  return after;
}

/* A WHILE node. A separate kernel at the end of the body sets its condition, or the body's last kernel does. */
static CUgraphExec hand_while(int kernels, int count, bool by_itself) {
  const CUgraph whole = bench_hand_graph();
  CUgraph body;
  CUgraphConditionalHandle handle = bench_hand_handle(whole, 1);
  bench_hand_conditional(whole, add_set(whole, count), CU_GRAPH_COND_TYPE_WHILE, handle, &body);
  CUgraphNode last = add_kernels(body, NULL, kernels);
  void *parameters[] = {&left, &handle};
  if (by_itself) {
    bench_hand_kernel(body, last, "less_and_decide", 1, 1, parameters);
  } else {
    last = bench_hand_kernel(body, last, "less", 1, 1, parameters);
    bench_hand_kernel(body, last, "decide", 1, 1, parameters);
  }
  return bench_hand_exec(whole);
}

/* A loop whose last kernel sets the condition, made with gk_cuda_begin. */
static CUgraphExec gk_while(int kernels, int count) {
  const CUgraph whole = bench_hand_graph();
  const CUgraphNode first = add_set(whole, count);
  gk_cuda_block block;
  bench_must(gk_cuda_begin(device, GK_OP_DO_WHILE, NULL, 0, whole, &first, 1, &block));
  CUgraphNode last = add_kernels(block.body[0], NULL, kernels);
  bench_hand_kernel(block.body[0], last, "less_and_decide", 1, 1, (void *[]){&left, &block.handle[0]});
  bench_must(gk_cuda_end(device, &block));
  return bench_hand_exec(whole);
}

/* The graph that a loop on the host launches again and again. */
static CUgraphExec passes_of_host(int kernels, int count, bool posts) {
  const CUgraph whole = bench_hand_graph();
  CUgraphNode last = NULL;
  for (int pass = 0; pass < count; ++pass)
    last = bench_hand_kernel(whole, add_kernels(whole, last, kernels), "less", 1, 1, (void *[]){&left});
  if (posts) bench_hand_kernel(whole, last, "post", 1, 1, (void *[]){&left, &posted_at});
  return bench_hand_exec(whole);
}

/* Passes that do nothing after the counter has become 0. */
static CUgraphExec several_passes(int kernels, int count, bool posts) {
  const CUgraph whole = bench_hand_graph();
  CUgraphNode last = NULL;
  for (int pass = 0; pass < count; ++pass) {
    for (int k = 1; k < kernels; ++k) last = bench_hand_kernel(whole, last, "more_unless", 1, 1, (void *[]){&x, &left});
    last = bench_hand_kernel(whole, last, "less_unless", 1, 1, (void *[]){&left});
  }
  if (posts) bench_hand_kernel(whole, last, "post", 1, 1, (void *[]){&left, &posted_at});
  return bench_hand_exec(whole);
}

/* ---- ways to run one --------------------------------------------------------------------------------------------- */

static void by_gk(const loop *l) {
  bench_must(gk_launch(l->graph, 0));
  bench_must(gk_wait(l->graph, NULL));
}

static void by_graph(const loop *l) {
  bench_hand_launch(l->exec);
  bench_hand_wait();
}

static void by_copy(const loop *l) {
  int *here = (int *)(uintptr_t)posted;
  bench_hand_put(left, l->passes);
  do {
    bench_hand_launch(l->exec);
    HAND(bench_hand_driver->cuMemcpyDtoHAsync(here, (CUdeviceptr)(uintptr_t)left, sizeof *left, bench_hand_stream));
    bench_hand_wait();
  } while (*posted);
}

static void by_polling(const loop *l) {
  bench_hand_put(left, l->passes);
  do {
    *posted = -1;
    bench_hand_launch(l->exec);
    while (*posted == -1) {}
  } while (*posted);
  bench_hand_wait();
}

static void flat(const loop *l) {
  bench_hand_put(left, l->passes);
  bench_hand_launch(l->exec);
  bench_hand_wait();
}

static void by_staying(const loop *l) {
  int kernels = l->kernels;
  bench_hand_put(barrier, 0);
  bench_hand_put(left, l->passes);
  bench_hand_run_cooperative(l->stay, 32, (void *[]){&left, &x, &kernels, &barrier});
  bench_hand_wait();
}

/* ---- variants ---------------------------------------------------------------------------------------------------- */

typedef struct way {
  void (*run)(const loop *);
  loop longer, shorter;
} way;

static double timed(const way *w, const loop *l) {
  const double begin = bench_now();
  w->run(l);
  return bench_now() - begin;
}

static bool slope(void *with, uint64_t times, bench_took *took) {
  const way *w = with;
  const double more = w->longer.passes - w->shorter.passes;
  bench_hand_put(x, 0);
  for (uint64_t k = 0; k < times; ++k) {
    took->all += timed(w, &w->longer) / more;
    took->less += timed(w, &w->shorter) / more;
  }
  const int each = w->longer.kernels - 1;
  return bench_hand_value(left) == 0 &&
         bench_hand_value(x) == (int)times * each * (w->longer.passes + w->shorter.passes);
}

typedef enum kind { GK, GK_EVERY, GK_SELF, BY_HAND, BY_HAND_SELF, COPY, COPY_EVERY, POLL, POLL_EVERY, POLL_SEVERAL,
              FLAT, RELAUNCH, STAYING, KINDS } kind;

static loop loop_of(kind which, int kernels, int count) {
  loop l = {.kernels = kernels, .passes = count};
  switch (which) {
  case GK: l.graph = gk_loop(kernels, count, 0); break;
  case GK_EVERY: l.graph = gk_loop(kernels, count, between); break;
  case GK_SELF: l.exec = gk_while(kernels, count); break;
  case BY_HAND: l.exec = hand_while(kernels, count, false); break;
  case BY_HAND_SELF: l.exec = hand_while(kernels, count, true); break;
  case COPY: l.exec = passes_of_host(kernels, 1, false); break;
  case COPY_EVERY: l.exec = passes_of_host(kernels, between, false); break;
  case POLL: l.exec = passes_of_host(kernels, 1, true); break;
  case POLL_EVERY: l.exec = passes_of_host(kernels, between, true); break;
  case POLL_SEVERAL: l.exec = several_passes(kernels, TOGETHER, true); break;
  case RELAUNCH: l.exec = bench_relaunch_exec(kernels, x, left); break;
  case FLAT: l.exec = several_passes(kernels, count, false); break;
  case STAYING: l.stay = bench_hand_function("stay"); break;
  default: break;
  }
  return l;
}

static way way_of(kind which, int kernels) {
  static void (*const runs[KINDS])(const loop *) = {
    [GK] = by_gk, [GK_EVERY] = by_gk, [GK_SELF] = by_graph, [BY_HAND] = by_graph, [BY_HAND_SELF] = by_graph,
    [COPY] = by_copy, [COPY_EVERY] = by_copy, [POLL] = by_polling, [POLL_EVERY] = by_polling,
    [POLL_SEVERAL] = by_polling, [FLAT] = flat, [RELAUNCH] = flat, [STAYING] = by_staying};
  return (way){runs[which], loop_of(which, kernels, passes), loop_of(which, kernels, passes / 2)};
}

static void end_loop(const loop *l) {
  if (l->graph) gk_graph_destroy(l->graph);
  if (l->exec) bench_hand_exec_end(l->exec);
}

static void end_way(const way *w) {
  end_loop(&w->longer);
  end_loop(&w->shorter);
}

static const char *const names[KINDS] = {
  [GK] = "gk: a list",
  [GK_EVERY] = "gk: a list with .every",
  [GK_SELF] = "gk: the body's own kernel decides",
  [BY_HAND] = "by hand: a kernel decides",
  [BY_HAND_SELF] = "by hand: the body's own kernel decides",
  [COPY] = "host loop: launch, copy 4 bytes, wait",
  [COPY_EVERY] = "host loop: launch as many passes, copy 4 bytes, wait",
  [POLL] = "host loop: launch, poll pinned memory",
  [POLL_EVERY] = "host loop: launch as many passes, poll pinned memory",
  [POLL_SEVERAL] = "host loop: 8 passes, poll pinned memory",
  [FLAT] = "a flat graph of all passes",
  [RELAUNCH] = "a graph that launches itself from the device",
  [STAYING] = "one kernel that stays, and counts blocks"};

static const char *no_relaunch; /* why graphs can't launch themselves here */

static void one_more_pass(const char *id, int kernels, const kind *kinds, size_t count, const bench_ratio *ratios,
                          const char *suffix) {
  char what[64];
  way ways[KINDS];
  bench_table table = {.id = id, .what = what, .question = "what does one more pass take?", .unit = "ns",
                       .floor = {HAND_EDGE, kernels}};
  const char *of = id[1] == '7' ? "a pass, with and without loops in graphs" : "one more pass";
  snprintf(what, sizeof what, "%s, %d kernel%s%s", of, kernels, kernels > 1 ? "s" : "", suffix);
  if (!bench_wants(id, what)) return;
  for (size_t k = 0; k < count; ++k) {
    const char *missing = kinds[k] == RELAUNCH ? no_relaunch : NULL;
    ways[k] = missing ? (way){0} : way_of(kinds[k], kernels);
    table.variants[k] = (bench_variant){names[kinds[k]], slope, &ways[k], .missing = missing};
  }
  for (size_t k = 0; k < BENCH_RATIOS; ++k) table.ratios[k] = ratios[k];
  bench_measure(&table);
  for (size_t k = 0; k < count; ++k) end_way(&ways[k]);
}

/* ---- a read of the flag behind every k-th pass ------------------------------------------------------------------- */

/* Nodes of tasks and control kernels in a pass, by the dump. */
static bool nodes_of_pass(void *with, uint64_t times, bench_took *took) {
  const loop *l = with;
  char *text = gk_dump(NULL, l->graph, "json");
  const char *row = text ? strstr(text, "\"passes\": [") : NULL;
  row = row ? strstr(row + 1, "{\"node\"") : NULL; /* outside of loops */
  row = row ? strstr(row + 1, "{\"node\"") : NULL;
  const char *several = row ? strstr(row, "\"passes\": ") : NULL, *tasks = row ? strstr(row, "\"tasks\": ") : NULL;
  const char *fresh = row ? strstr(row, "\"fresh\": [") : NULL;
  uint32_t made = 1, task_nodes = 0, controls = 0;
  const bool read = (!several || sscanf(several, "\"passes\": %" SCNu32, &made) == 1) && tasks && fresh && made &&
                    sscanf(tasks, "\"tasks\": %" SCNu32, &task_nodes) == 1 &&
                    sscanf(fresh, "\"fresh\": [%" SCNu32, &controls) == 1;
  gk_free_text(text);
  took->all += (double)times * (task_nodes + controls) / made;
  return read;
}

static void flag_reads(int kernels) {
  static const char *const columns[] = {"a read each pass", "every 8", "every 16", "every 32"};
  static const kind kinds[] = {GK_EVERY, GK, COPY_EVERY, POLL_EVERY};
  const bench_ratio c2a[BENCH_RATIOS] = {{"gk against the host's loop", names[GK_EVERY], {names[COPY_EVERY]}, 1.0},
                                         {"gk against polling", names[GK_EVERY], {names[POLL_EVERY]}, 0},
                                         {"gk against a read each pass", names[GK_EVERY], {names[GK]}, 0}};
  char what[64];
  loop made[GK_COUNT(columns)];
  snprintf(what, sizeof what, "nodes of a pass, %d kernel%s", kernels, kernels > 1 ? "s" : "");
  if (bench_wants("C2a", what)) {
    bench_table table = {.id = "C2a", .what = what, .question = "how many nodes does a pass take?", .unit = "nodes"};
    for (uint32_t k = 0; k < GK_COUNT(columns); ++k) {
      made[k] = (loop){.graph = gk_loop(kernels, 64, k ? 4 << k : 0)};
      table.variants[k] = (bench_variant){columns[k], nodes_of_pass, &made[k], .most = 1};
    }
    bench_measure(&table);
    for (uint32_t k = 0; k < GK_COUNT(columns); ++k) end_loop(&made[k]);
  }
  const int usual = passes;
  passes = bench_is_quick() ? 64 : 2048; /* half of them end with a read */
  for (between = 8; between <= 32; between *= 2) {
    char suffix[40];
    snprintf(suffix, sizeof suffix, ", a read every %d passes", between);
    one_more_pass("C2a", kernels, kinds, GK_COUNT(kinds), c2a, suffix);
  }
  passes = usual;
}

static void loops(void) {
  static const kind both[] = {GK, BY_HAND}, selves[] = {GK_SELF, BY_HAND, BY_HAND_SELF};
  static const kind all[] = {GK, COPY, POLL, POLL_SEVERAL, FLAT, RELAUNCH, STAYING};
  const bench_ratio c2[BENCH_RATIOS] = {{"gk against by hand", names[GK], {names[BY_HAND]}, 1.0}};
  const bench_ratio c3[BENCH_RATIOS] = {{"gk against a kernel that decides", names[GK_SELF], {names[BY_HAND]}, 0.75},
                                        {"gk against the same by hand", names[GK_SELF], {names[BY_HAND_SELF]}, 0}};
  const bench_ratio c7[BENCH_RATIOS] = {{"gk against the host's loop", names[GK], {names[COPY]}, 0.2},
                                        {"gk against polling", names[GK], {names[POLL]}, 0},
                                        {"gk against polling every 8", names[GK], {names[POLL_SEVERAL]}, 0},
                                        {"gk against a flat graph", names[GK], {names[FLAT]}, 0},
                                        {"gk against a graph that launches itself", names[GK], {names[RELAUNCH]}, 0},
                                        {"gk against a kernel that stays", names[GK], {names[STAYING]}, 0}};
  static const int kernels[] = {1, 2, 4, 8, KERNELS};
  for (size_t k = 0; k < GK_COUNT(kernels); ++k) {
    one_more_pass("C2", kernels[k], both, GK_COUNT(both), c2, "");
    one_more_pass("C3", kernels[k], selves, GK_COUNT(selves), c3, "");
  }
  flag_reads(1);
  flag_reads(8);
  no_relaunch = bench_relaunch_begin(device);
  one_more_pass("C7", 1, all, GK_COUNT(all), c7, "");
  one_more_pass("C7", 8, all, GK_COUNT(all), c7, "");
  bench_relaunch_end();
}

int main(int argc, char **argv) {
  const char *why;
  bench_begin(argc, argv, "cuda_loops");
  device = bench_hand_open(&why);
  if (!device) return bench_missing(why);
  passes = bench_is_quick() ? 4 : 2000;
  x = bench_hand_ints(device, 1);
  left = bench_hand_ints(device, 1);
  barrier = bench_hand_ints(device, 3);
  posted = bench_hand_pinned(device, &posted_at);
  loops();
  gk_free(device, x);
  gk_free(device, left);
  gk_free(device, barrier);
  gk_free(device, (void *)(uintptr_t)posted);
  bench_hand_close(device);
  return bench_end();
}
