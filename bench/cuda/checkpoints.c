/* The cost of checkpoints on CUDA: one that doesn't yield (table C4), tasks after one (C5), and the time from a flag
 * that asks for a yield to the first kernel of the launch that resumes (C6). By hand, as is usual, each checkpoint
 * has a kernel that sets the gate, an IF node with the tasks, and a kernel that reads the flag. */
#include "bench/cuda/hand.h"
#include "bench/harness/harness.h"
#include "gk_kernel.h"
#include <string.h>

GK_SOURCE(bench_cuda_checkpoints)
GK_KERNEL(one_more, (inout(int, x))) { x[i] += 1; }
GK_KERNEL(asks, (inout(int, count), out(int, flag), out(int, posted))) {
  count[0] += 1;
  flag[0] = count[0] & 1;
  posted[0] = count[0];
}
GK_SOURCE_END

static const gk_code more_code = {.text = bench_hand_text, .block = {1}};
static const gk_param more_params[] = {{"x", "int", sizeof(int), _Alignof(int), GK_PTR, GK_ACCESS_INOUT}};
static const gk_kernel more = {.name = "more", .params = more_params, .param_count = 1, .cuda = &more_code};

enum { X = 1, FLAG, COUNT, POSTED };
enum { CHECKPOINTS = 100, TASKS = 1000, SEVERAL = 10 /* checkpoints with tasks after them */, ROOM = 4 * TASKS };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_BUFFER(FLAG, int), GK_BUFFER(COUNT, int),
                                     GK_BUFFER(POSTED, int)};
static gk_device *device;
static int *x, *flag, *count, *yielded, *posted_at, *copied_at;
static volatile int *posted, *copied;
static int checkpoints, plain_tasks; /* CHECKPOINTS, TASKS, or fewer */
static gk_task tasks[ROOM];

/* A graph of gk's or one by hand, and the number of times that it adds one to x. */
typedef struct graph {
  gk_graph *gk;
  CUgraphExec exec;
  int adds;
} graph;

static void end_graph(const graph *g) {
  if (g->gk) gk_graph_destroy(g->gk);
  if (g->exec) bench_hand_exec_end(g->exec);
}

static gk_graph *graph_of(const gk_task *end) {
  const gk_list list = {GK_ABI, "checkpoints", tasks, (size_t)(end - tasks), slots, GK_COUNT(slots)};
  gk_graph *made;
  bench_must(gk_graph_create(device, &list, 0, &made));
  bench_must(gk_bind(made, X, x));
  bench_must(gk_bind(made, FLAG, flag));
  bench_must(gk_bind(made, COUNT, count));
  bench_must(gk_bind(made, POSTED, (const void *)(uintptr_t)posted));
  return made;
}

static gk_task *add_checkpoint(gk_task *at, int label, gk_task task) {
  *at++ = (gk_task){.op = GK_OP_CHECKPOINT, .name = "silent", .flag = FLAG, .label = label};
  *at++ = task;
  *at++ = (gk_task)GK_END;
  return at;
}

/* Launches and waits. @return Whether the graph ran to its end */
static double timed(const graph *g, bool *right) {
  const gk_status *status = NULL;
  const double begin = bench_now();
  if (g->gk) {
    bench_must(gk_launch(g->gk, 0));
    bench_must(gk_wait(g->gk, &status));
  } else {
    bench_hand_launch(g->exec);
    bench_hand_wait();
  }
  const double took = bench_now() - begin;
  if (status && status->state != GK_FINISHED) *right = false;
  return took;
}

/* The difference of two graphs, per checkpoint or task: the shorter one lacks `more` of them. */
typedef struct pair {
  graph longer, shorter;
  int more;
} pair;

static bool slope(void *with, uint64_t times, bench_took *took) {
  const pair *p = with;
  bool right = true;
  bench_hand_put(x, 0);
  for (uint64_t k = 0; k < times; ++k) {
    took->all += timed(&p->longer, &right) / p->more;
    took->less += timed(&p->shorter, &right) / p->more;
  }
  return right && bench_hand_value(x) == (int)times * (p->longer.adds + p->shorter.adds);
}

static void end_pair(const pair *p) {
  end_graph(&p->longer);
  end_graph(&p->shorter);
}

/* ---- C4: checkpoints that stay silent ---------------------------------------------------------------------------- */

/* The number of tasks doesn't depend on the number of checkpoints. These are around the last tasks, so that no other
 * task is after a checkpoint. */
static graph gk_silent(int around, gk_task task) {
  gk_task *at = tasks;
  for (int k = checkpoints; k >= around; --k) *at++ = task;
  for (int k = 0; k < around; ++k) at = add_checkpoint(at, k + 1, task);
  return (graph){.gk = graph_of(at), .adds = checkpoints + 1};
}

static CUgraphNode add_more(CUgraph into, CUgraphNode after) {
  return bench_hand_kernel(into, after, "more", 1, 1, (void *[]){&x});
}

static CUgraphNode add_gated(CUgraph whole, CUgraphNode after, int label) {
  CUgraph body;
  CUgraphConditionalHandle handle = bench_hand_handle(whole, 0);
  after = bench_hand_kernel(whole, after, "gate", 1, 1, (void *[]){&yielded, &handle});
  after = bench_hand_conditional(whole, after, CU_GRAPH_COND_TYPE_IF, handle, &body);
  add_more(body, NULL);
  return bench_hand_kernel(whole, after, "note", 1, 1, (void *[]){&flag, &yielded, &label});
}

static graph hand_silent(int around) {
  const CUgraph whole = bench_hand_graph();
  int none = 0;
  CUgraphNode last = bench_hand_kernel(whole, NULL, "set", 1, 1, (void *[]){&yielded, &none});
  for (int k = checkpoints; k >= around; --k) last = add_more(whole, last);
  for (int k = 0; k < around; ++k) last = add_gated(whole, last, k + 1);
  return (graph){.exec = bench_hand_exec(whole), .adds = checkpoints + 1};
}

static void silence(void) {
  const char *what = "a silent checkpoint", *own = "gk", *code = "gk, tasks with code by hand",
             *hand = "by hand: gate, IF node, look at the flag";
  if (!bench_wants("C4", what)) return;
  const gk_task composed = GK_RUN(one_more, GK_ONE, X), by_hand = GK_RUN(more, GK_ONE, X);
  pair pairs[] = {{gk_silent(checkpoints + 1, composed), gk_silent(1, composed), checkpoints},
                  {gk_silent(checkpoints + 1, by_hand), gk_silent(1, by_hand), checkpoints},
                  {hand_silent(checkpoints + 1), hand_silent(1), checkpoints}};
  bench_hand_put(flag, 0);
  bench_measure(&(bench_table){"C4", what, "what does a checkpoint cost that could yield and doesn't, beside its task?",
    "ns",
    .variants = {{own, slope, &pairs[0]}, {code, slope, &pairs[1]}, {hand, slope, &pairs[2]}},
    .ratios = {{"gk against by hand", own, {hand}, 0.6}, {"with code by hand, against by hand", code, {hand}, 0}}});
  for (size_t k = 0; k < GK_COUNT(pairs); ++k) end_pair(&pairs[k]);
}

/* ---- C5: tasks after checkpoints --------------------------------------------------------------------------------- */

/* Tasks in equal parts after the checkpoints. */
static graph gk_behind(int around, int behind) {
  const gk_task task = GK_RUN(one_more, GK_ONE, X);
  const int parts = around ? around : 1;
  gk_task *at = tasks;
  for (int part = 0; part < parts; ++part) {
    if (around) at = add_checkpoint(at, part + 1, task);
    else *at++ = task;
    for (int k = 0; k < behind / parts; ++k) *at++ = task;
  }
  return (graph){.gk = graph_of(at), .adds = parts + behind};
}

static pair behind(int around) {
  return (pair){gk_behind(around, plain_tasks), gk_behind(around, plain_tasks / 2), plain_tasks / 2};
}

static void tasks_behind(void) {
  const char *what = "a plain task", *none = "in a list without checkpoints", *one = "behind a checkpoint",
             *several = "behind one of ten checkpoints";
  if (!bench_wants("C5", what)) return;
  pair pairs[] = {behind(0), behind(1), behind(SEVERAL)};
  bench_hand_put(flag, 0);
  bench_measure(&(bench_table){"C5", what, "what does one more task after a checkpoint cost?", "ns",
    .variants = {{none, slope, &pairs[0]}, {one, slope, &pairs[1]}, {several, slope, &pairs[2]}},
    .ratios = {{"behind one against a list without", one, {none}, 1.05},
               {"behind one of ten against a list without", several, {none}, 1.05}},
    .floor = {HAND_EDGE, 1}});
  for (size_t k = 0; k < GK_COUNT(pairs); ++k) end_pair(&pairs[k]);
}

/* ---- C6: a yield, and back --------------------------------------------------------------------------------------- */

enum { GO = 1 };

typedef struct trip {
  bool (*run)(const struct trip *, double *known, double *begun); /* false: a wrong result */
  gk_graph *gk;
  CUgraphExec first, second;
  bool ends_when_known;
} trip;

static double when_posted(int number) {
  while (*posted != number) {}
  return bench_now();
}

/* Times begin when the host sees that the kernel which asks for a yield ran. The same write to page-locked memory shows
 * later that the launch which resumes has begun. */
static bool trip_by_gk(const trip *t, double *known, double *begun) {
  const gk_status *status;
  bench_must(gk_launch(t->gk, 0));
  const double begin = when_posted(1);
  bench_must(gk_wait(t->gk, &status));
  const bool right = status->state == GK_YIELDED && status->yielded == GO;
  *known = bench_now() - begin;
  bench_must(gk_launch(t->gk, GO));
  *begun = when_posted(2) - begin;
  bench_must(gk_wait(t->gk, &status));
  return right && status->state == GK_FINISHED;
}

static void fetch_flag(void) {
  HAND(bench_hand_driver->cuMemcpyDtoHAsync((void *)(uintptr_t)copied, (CUdeviceptr)(uintptr_t)flag, sizeof *flag,
                                            bench_hand_stream));
}

static bool resume_by_hand(const trip *t, double begin, double *known, double *begun) {
  const bool right = *copied == 1;
  *known = bench_now() - begin;
  bench_hand_launch(t->second);
  *begun = when_posted(2) - begin;
  bench_hand_wait();
  return right;
}

static bool trip_by_hand(const trip *t, double *known, double *begun) {
  bench_hand_launch(t->first);
  const double begin = when_posted(1);
  bench_hand_wait();
  fetch_flag();
  bench_hand_wait();
  return resume_by_hand(t, begin, known, begun);
}

static bool trip_with_copy(const trip *t, double *known, double *begun) {
  bench_hand_launch(t->first);
  fetch_flag();
  const double begin = when_posted(1);
  bench_hand_wait();
  return resume_by_hand(t, begin, known, begun);
}

static bool round_trip(void *with, uint64_t times, bench_took *took) {
  const trip *t = with;
  bool right = true;
  bench_hand_put(x, 0);
  for (uint64_t k = 0; k < times; ++k) {
    double known = 0, begun = 0;
    *posted = 0;
    *copied = 0;
    bench_hand_put(count, 0);
    right = t->run(t, &known, &begun) && right;
    took->all += t->ends_when_known ? known : begun;
  }
  return right && bench_hand_value(x) == (int)times && bench_hand_value(count) == 2;
}

static gk_graph *gk_yields(void) {
  const gk_task list[] = {GK_CHECKPOINT(GO, FLAG), GK_RUN(asks, GK_ONE, COUNT, FLAG, POSTED), GK_END,
                          GK_RUN(one_more, GK_ONE, X)};
  memcpy(tasks, list, sizeof list);
  return graph_of(tasks + GK_COUNT(list));
}

static CUgraphExec hand_yields(void) {
  const CUgraph whole = bench_hand_graph();
  CUgraph body;
  CUgraphConditionalHandle handle = bench_hand_handle(whole, 0);
  CUgraphNode last = bench_hand_kernel(whole, NULL, "ask", 1, 1, (void *[]){&count, &flag, &posted_at});
  last = bench_hand_kernel(whole, last, "gate", 1, 1, (void *[]){&flag, &handle});
  bench_hand_conditional(whole, last, CU_GRAPH_COND_TYPE_IF, handle, &body);
  add_more(body, NULL);
  return bench_hand_exec(whole);
}

static void yields(void) {
  enum { GK, HAND_WAITS, HAND_COPIES, WAYS };
  static const char *const names[2][WAYS] = {
    {"gk", "by hand: wait, copy 4 bytes, launch", "by hand: the copy queued before"},
    {"gk, until the host knows", "by hand, until the host knows", "by hand, the copy queued before, until it knows"}};
  const char *what = "a yield, and the launch that resumes";
  if (!bench_wants("C6", what)) return;
  const trip ways[WAYS] = {{.run = trip_by_gk, .gk = gk_yields()},
                           {.run = trip_by_hand, .first = hand_yields(), .second = hand_yields()},
                           {.run = trip_with_copy, .first = hand_yields(), .second = hand_yields()}};
  trip trips[2][WAYS];
  bench_table table = {"C6", what, "how long from the kernel that asks for a yield to the first that resumes?", "ns",
    .ratios = {{"gk against by hand", names[0][GK], {names[0][HAND_WAITS]}, 0.7},
               {"gk against the copy queued before", names[0][GK], {names[0][HAND_COPIES]}, 0},
               {"until the host knows: gk against by hand", names[1][GK], {names[1][HAND_WAITS]}, 0}},
    .floor = {HAND_ROUND_TRIP, 1}};
  for (int k = 0; k < 2 * WAYS; ++k) {
    trip *t = &trips[k / WAYS][k % WAYS];
    *t = ways[k % WAYS];
    t->ends_when_known = k >= WAYS;
    table.variants[k] = (bench_variant){names[k / WAYS][k % WAYS], round_trip, t};
  }
  bench_measure(&table);
  gk_graph_destroy(ways[GK].gk);
  for (int k = HAND_WAITS; k < WAYS; ++k) {
    bench_hand_exec_end(ways[k].first);
    bench_hand_exec_end(ways[k].second);
  }
}

int main(int argc, char **argv) {
  const char *why;
  bench_begin(argc, argv, "cuda_checkpoints");
  device = bench_hand_open(&why);
  if (!device) return bench_missing(why);
  checkpoints = bench_is_quick() ? 4 : CHECKPOINTS;
  plain_tasks = bench_is_quick() ? 2 * SEVERAL : TASKS;
  int *const numbers[] = {x = bench_hand_ints(device, 1), flag = bench_hand_ints(device, 1),
                          count = bench_hand_ints(device, 1), yielded = bench_hand_ints(device, 1)};
  posted = bench_hand_pinned(device, &posted_at);
  copied = bench_hand_pinned(device, &copied_at);
  silence();
  tasks_behind();
  yields();
  for (size_t k = 0; k < GK_COUNT(numbers); ++k) gk_free(device, numbers[k]);
  gk_free(device, (void *)(uintptr_t)posted);
  gk_free(device, (void *)(uintptr_t)copied);
  bench_hand_close(device);
  return bench_end();
}
