/* The cost of one more task, pass, silent checkpoint or yield on Vulkan, by each way of gating, compared with plain
 * Vulkan by hand; and passes per round trip (tables F4, F5, F9). A task is x[i] += 1 on n int32. */
#include "bench/vulkan/ways.h"
#ifdef BENCH_vulkan
#include "bench/vulkan/by_hand.h"
#include "gk_kernel.h"
#include <stdio.h>
#include <stdlib.h>

GK_SOURCE(bench_vulkan)
GK_KERNEL(one_more, (inout(int, x))) { x[i] += 1; }
GK_KERNEL(one_less, (inout(int, left))) { left[0] -= 1; }
GK_SOURCE_END

enum { X = 1, N, LEFT, ON, QUIET, CP_FIRST, ITEMS_MAX = 1 << 20, PASSES = 2048, FEW_PASSES = 512, CHECKPOINTS = 200 };

static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_SCALAR(N, int), GK_OWN(LEFT, int, 1), GK_OWN(ON, int, 1),
                                     GK_OWN(QUIET, int, 1)};

/* Of one way. Two lists of a kind, the second twice as long. */
typedef struct lists {
  const vulkan_way *way;
  gk_graph *of[2];
  int *x;    /* ITEMS_MAX, shared by all lists of the way */
  int count; /* of tasks, passes or checkpoints in the shorter one */
  int n;
  bool is_skipped; /* no task comes */
} lists;
static int *memory[TIMED];
static gk_device *by_hand; /* the device of the variants by hand */

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void set(gk_device *device, void *to, int value) { bench_must(gk_upload(device, to, &value, sizeof value)); }

static int get(gk_device *device, const void *from) {
  int value;
  bench_must(gk_download(device, &value, from, sizeof value));
  return value;
}

/* The first and the last item. */
typedef struct ends { int first, last; } ends;

static ends ends_of(gk_device *device, const int *at, int n) {
  return (ends){get(device, at), get(device, at + n - 1)};
}

static bool added(gk_device *device, const int *at, int n, ends before, uint64_t by) {
  const ends now = ends_of(device, at, n);
  return now.first == (int)((uint32_t)before.first + (uint32_t)by) &&
         now.last == (int)((uint32_t)before.last + (uint32_t)by);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static gk_graph *graph_of(const vulkan_way *way, const gk_task *tasks, size_t count, int n) {
  gk_list list = {GK_ABI, "bench", tasks, count, slots, GK_COUNT(slots)};
  gk_graph *graph;
  bench_must(gk_graph_create(way->device, &list, way->bits, &graph));
  if (way - bench_ways < TIMED) bench_must(gk_bind(graph, X, memory[way - bench_ways]));
  bench_must(gk_bind_int(graph, N, n));
  set(way->device, gk_bound(graph, ON), 1);
  return graph;
}

/* `count` tasks in an IF: they have a gate. */
static gk_graph *gated_chain(const vulkan_way *way, int count, int n) {
  gk_task *tasks = bench_alloc((size_t)count + 2, sizeof *tasks), *at = tasks;
  *at++ = (gk_task)GK_IF(ON);
  for (int k = 0; k < count; ++k) *at++ = (gk_task)GK_RUN(one_more, N, X);
  *at++ = (gk_task)GK_END;
  gk_graph *graph = graph_of(way, tasks, (size_t)(at - tasks), n);
  free(tasks);
  return graph;
}

static gk_graph *skipped_chain(const vulkan_way *way, int count, int n) {
  gk_graph *graph = gated_chain(way, count, n);
  set(way->device, gk_bound(graph, ON), 0);
  return graph;
}

/* Tasks that are each in a checkpoint that doesn't yield, or a plain chain. */
static gk_graph *checkpoints(const vulkan_way *way, int count, bool flags) {
  gk_task *tasks = bench_alloc(3 * (size_t)count, sizeof *tasks), *at = tasks;
  for (int k = 0; k < count; ++k) {
    if (flags) *at++ = (gk_task){.op = GK_OP_CHECKPOINT, .name = "quiet", .flag = QUIET, .label = CP_FIRST + k};
    *at++ = (gk_task)GK_RUN(one_more, N, X);
    if (flags) *at++ = (gk_task)GK_END;
  }
  gk_graph *graph = graph_of(way, tasks, (size_t)(at - tasks), 1);
  free(tasks);
  return graph;
}
static gk_graph *marked(const vulkan_way *way, int count, int n) { return (void)n, checkpoints(way, count, true); }
static gk_graph *plain(const vulkan_way *way, int count, int n) { return (void)n, checkpoints(way, count, false); }

static gk_graph *loop(const vulkan_way *way) {
  const gk_task tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(one_less, GK_ONE, LEFT), GK_END};
  return graph_of(way, tasks, GK_COUNT(tasks), 1);
}

static lists lists_of(int way, gk_graph *(*make)(const vulkan_way *, int, int), int count, int n) {
  lists l = {&bench_ways[way], .x = memory[way], .count = count, .n = n, .is_skipped = make == skipped_chain};
  for (int k = 0; k < 2; ++k) l.of[k] = make(l.way, (k + 1) * count, n);
  return l;
}

static void drop(const lists *l, int count) {
  for (; count-- > 0; ++l)
    for (int k = 0; k < 2; ++k) gk_graph_destroy(l->of[k]);
}

/* The time of one more task. */
static bool more_of(void *with, uint64_t times, bench_took *took) {
  const lists *l = with;
  const ends before = ends_of(l->way->device, l->x, l->n);
  for (uint64_t k = 0; k < times; ++k) {
    took->all += bench_launch(l->of[1], 0, NULL) / l->count;
    took->less += bench_launch(l->of[0], 0, NULL) / l->count;
  }
  return added(l->way->device, l->x, l->n, before, l->is_skipped ? 0 : 3 * (uint64_t)l->count * times);
}

/* ---- F4: one gated task ------------------------------------------------------------------------------------------ */

typedef struct hand { hand_task task; int count; bool records_each; } hand;

static bool hand_added(const hand *h, ends before, uint64_t by) {
  return added(by_hand, memory[WAY_GK], (int)h->task.items, before, by);
}
static ends hand_ends(const hand *h) { return ends_of(by_hand, memory[WAY_GK], (int)h->task.items); }

static bool submitted_each(void *with, uint64_t times, bench_took *took) {
  const hand *h = with;
  const ends before = hand_ends(h);
  bench_hand_record(0, h->task, 1);
  const double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) {
    if (h->records_each) bench_hand_record(0, h->task, 1);
    bench_hand_submit_and_wait(0);
  }
  took->all += bench_now() - begin;
  return hand_added(h, before, times);
}

static double submitted(int which) {
  const double begin = bench_now();
  bench_hand_submit_and_wait(which);
  return bench_now() - begin;
}

static bool recorded_together(void *with, uint64_t times, bench_took *took) {
  const hand *h = with;
  const ends before = hand_ends(h);
  for (int k = 0; k < 2; ++k) bench_hand_record(k, h->task, (k + 1) * h->count);
  for (uint64_t k = 0; k < times; ++k) {
    took->all += submitted(1) / h->count;
    took->less += submitted(0) / h->count;
  }
  return hand_added(h, before, 3 * (uint64_t)h->count * times);
}

static void tasks_of(int n, int count) {
  char what[40], question[120];
  snprintf(what, sizeof what, "one more task n=%d", n);
  snprintf(question, sizeof question, "what does one more gated task over %d item%s cost?", n, n > 1 ? "s" : "");
  if (!bench_wants("F4", what)) return;
  lists of[TIMED];
  hand h = {{(uintptr_t)memory[WAY_GK], (uint32_t)n, 1}, count, true}, once = h;
  once.records_each = false;
  const char *each = "by hand: record, submit, wait for each task",
             *together = "by hand: all recorded once in one piece, not gated";
  bench_table table = {"F4", what, question, "ns",
    .variants = {[TIMED] = {each, submitted_each, &h},
                 {"by hand: submit, wait for each task, recorded once", submitted_each, &once},
                 {together, recorded_together, &h}},
    .ratios = {{"gk against recording, submitting and waiting", "gk", {each}, n > 1 ? 0 : 0.2},
               {"gk against one piece, not gated", "gk", {together}, 0}}};
  if (n == 1) table.floor = (bench_bound){VULKAN_TASK, 1};
  if (n == ITEMS_MAX) table.tries = 1, table.turns = 7;
  for (int way = 0; way < TIMED; ++way) {
    of[way] = lists_of(way, gated_chain, count, n);
    table.variants[way] = (bench_variant){bench_ways[way].name, more_of, &of[way]};
  }
  bench_measure(&table);
  drop(of, TIMED);
}

/* The host enqueues nothing of what it skips itself. */
static void skipped_tasks(int n, int count) {
  char what[40];
  snprintf(what, sizeof what, "one more skipped task n=%d", n);
  if (!bench_wants("F4", what)) return;
  lists of[WAY_HOST];
  bench_table table = {"F4", what, "what does a task cost whose gate is closed?", "ns",
    .ratios = {{"gk against empty grids", "gk", {bench_ways[WAY_GRID].name}, 0},
               {"gk against guards", "gk", {bench_ways[WAY_GUARD].name}, 0}},
    .tries = 2};
  for (int way = 0; way < WAY_HOST; ++way) {
    of[way] = lists_of(way, skipped_chain, count, n);
    table.variants[way] = (bench_variant){bench_ways[way].name, more_of, &of[way]};
  }
  bench_measure(&table);
  drop(of, WAY_HOST);
}

/* ---- F5: round trips --------------------------------------------------------------------------------------------- */

/* Waits per 8 passes, of a graph that has run before, or of a new one. */
static bool waits_of(gk_graph *graph, bench_took *took) {
  gk_device *device = bench_ways[WAY_COUNTED].device;
  const gk_status *status;
  set(device, gk_bound(graph, LEFT), FEW_PASSES);
  took->all += bench_waits(graph, &status) * 8.0 / FEW_PASSES;
  return get(device, gk_bound(graph, LEFT)) == 0 && status->loops[0].passes == FEW_PASSES;
}

static bool waits_again(void *with, uint64_t times, bench_took *took) {
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) right = waits_of(with, took) && right;
  return right;
}

/* with: the way */
static bool waits_of_new(void *with, uint64_t times, bench_took *took) {
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    gk_graph *graph = loop(with);
    right = waits_of(graph, took) && right;
    gk_graph_destroy(graph);
  }
  return right;
}

static void round_trips(void) {
  vulkan_way *way = &bench_ways[WAY_COUNTED], gated = {"", way->device, GK_HOST_GATED};
  if (!bench_wants("F5", "a loop of 512 passes")) return;
  gk_graph *learned = loop(way);
  bench_took ignored = {0};
  waits_again(learned, 2, &ignored);
  bench_measure(&(bench_table){"F5", "a loop of 512 passes", "how often does the host wait for 8 passes?", "waits",
    .variants = {{"gk", waits_again, learned, 1}, {"gk, the first launch", waits_of_new, way, 1},
                 {"gk, host-gated", waits_of_new, &gated, 1}},
    .ratios = {{"waits per 8 passes", "gk", {NULL}, 1},
               {"waits per 8 passes, the first launch", "gk, the first launch", {NULL}, 1}}});
  gk_graph_destroy(learned);
}

/* ---- F9: passes, checkpoints, yields ----------------------------------------------------------------------------- */

static bool loop_of(const lists *l, int passes, double *took) {
  void *left = gk_bound(l->of[0], LEFT);
  set(l->way->device, left, passes);
  *took += bench_launch(l->of[0], 0, NULL) / PASSES;
  return get(l->way->device, left) == 0;
}

static bool more_passes(void *with, uint64_t times, bench_took *took) {
  bool right = true;
  for (uint64_t k = 0; k < times; ++k)
    right = loop_of(with, 2 * PASSES, &took->all) && loop_of(with, PASSES, &took->less) && right;
  return right;
}

/* A submit of a recorded pass and a look at the flag, as a host's loop does it. */
static bool passes_by_hand(void *with, uint64_t times, bench_took *took) {
  const hand_task task = {(uintptr_t)memory[WAY_GK], 1, -1};
  (void)with;
  set(by_hand, memory[WAY_GK], (int)times);
  bench_hand_record(0, task, 1);
  const double begin = bench_now();
  do bench_hand_submit_and_wait(0);
  while (get(by_hand, memory[WAY_GK]) > 0);
  took->all += bench_now() - begin;
  return get(by_hand, memory[WAY_GK]) == 0;
}

static void passes(void) {
  lists of[TIMED];
  bench_table table = {"F9", "one more pass", "what does one more pass of one task over one item cost?", "ns",
    .variants = {[TIMED] = {"by hand: submit, wait, read the flag", passes_by_hand}},
    .ratios = {{"gk against the loop by hand", "gk", {"by hand: submit, wait, read the flag"}, 0},
               {"gk against host-gated", "gk", {bench_ways[WAY_HOST].name}, 0}},
    .tries = 2, .floor = {VULKAN_TASK, 1}};
  if (!bench_wants(table.id, table.what)) return;
  for (int way = 0; way < TIMED; ++way) {
    of[way] = (lists){&bench_ways[way], {loop(&bench_ways[way]), NULL}, NULL, PASSES, 1};
    table.variants[way] = (bench_variant){bench_ways[way].name, more_passes, &of[way]};
  }
  bench_measure(&table);
  drop(of, TIMED);
}

/* Lists with checkpoints, and without. */
typedef struct silent { lists marked, plain; } silent;

static bool checkpoint_alone(void *with, uint64_t times, bench_took *took) {
  silent *s = with;
  bench_took marked = {0}, plain = {0};
  const bool right = more_of(&s->marked, times, &marked) && more_of(&s->plain, times, &plain);
  took->all += marked.all + plain.less;
  took->less += plain.all + marked.less;
  return right;
}

static void silence(void) {
  silent of[TIMED];
  bench_table table = {"F9", "silent checkpoint", "what does a checkpoint whose flag is 0 cost?", "ns",
    .variants = {[TIMED] = {"gk, one more task without a checkpoint", more_of, &of[WAY_GK].plain}},
    .ratios = {{"gk against host-gated", "gk", {bench_ways[WAY_HOST].name}, 0}}};
  if (!bench_wants(table.id, table.what)) return;
  for (int way = 0; way < TIMED; ++way) {
    of[way] = (silent){lists_of(way, marked, CHECKPOINTS, 1), lists_of(way, plain, CHECKPOINTS, 1)};
    table.variants[way] = (bench_variant){bench_ways[way].name, checkpoint_alone, &of[way]};
  }
  bench_measure(&table);
  drop(&of[0].marked, 2 * TIMED);
}

/* The flag is set beforehand. Its clearing counts, since a program has to do that before it resumes. */
static bool yield_and_resume(const lists *l, double *took) {
  void *flag = gk_bound(l->of[0], QUIET);
  const gk_status *status;
  set(l->way->device, flag, 1);
  const double begin = bench_now();
  bench_launch(l->of[0], 0, &status);
  bool right = status->yielded == CP_FIRST;
  set(l->way->device, flag, 0);
  bench_launch(l->of[0], CP_FIRST, &status);
  *took += bench_now() - begin;
  return right && status->state == GK_FINISHED;
}

/* The two take turns in blocks, as in F8. */
static bool yield_alone(void *with, uint64_t times, bench_took *took) {
  enum { BLOCK = 16 };
  const lists *l = with;
  const ends before = ends_of(l->way->device, l->x, 1);
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    for (int j = 0; j < 2 * BLOCK; ++j) took->less += bench_launch(l->of[0], 0, NULL) / BLOCK;
    for (int j = 0; j < BLOCK; ++j) {
      double all = 0;
      right = yield_and_resume(l, &all) && right;
      took->all += all / BLOCK;
    }
  }
  return right && added(l->way->device, l->x, 1, before, 4 * BLOCK * times);
}

static bool two_launches(void *with, uint64_t times, bench_took *took) {
  const lists *l = with;
  const ends before = ends_of(l->way->device, l->x, 1);
  for (uint64_t k = 0; k < 2 * times; ++k) took->all += bench_launch(l->of[0], 0, NULL);
  return added(l->way->device, l->x, 1, before, 2 * times);
}

static void round_trip(void) {
  const gk_task tasks[] = {GK_CHECKPOINT(CP_FIRST, QUIET), GK_RUN(one_more, N, X), GK_END};
  lists of[TIMED];
  bench_table table = {"F9", "yield and resume", "what does a yield with its resume add to two launches?", "ns",
    .variants = {[TIMED] = {"gk, two launches", two_launches, &of[WAY_GK]}},
    .ratios = {{"gk against host-gated", "gk", {bench_ways[WAY_HOST].name}, 0},
               {"gk, beyond two launches, against them", "gk", {"gk, two launches"}, 0}}};
  if (!bench_wants(table.id, table.what)) return;
  for (int way = 0; way < TIMED; ++way) {
    gk_graph *graph = graph_of(&bench_ways[way], tasks, GK_COUNT(tasks), 1);
    of[way] = (lists){&bench_ways[way], {graph, NULL}, memory[way], 1, 1};
    table.variants[way] = (bench_variant){bench_ways[way].name, yield_alone, &of[way]};
  }
  bench_measure(&table);
  drop(of, TIMED);
}

int main(int argc, char **argv) {
  const char *why;
  bench_begin(argc, argv, "vulkan_tasks");
  if (!bench_ways_open(&why)) return bench_missing(why);
  by_hand = bench_ways[WAY_GK].device;
  bench_hand_begin(by_hand);
  for (int way = 0; way < TIMED; ++way) {
    memory[way] = gk_alloc(bench_ways[way].device, ITEMS_MAX * sizeof(int), GK_DEVICE_MEMORY);
    if (!memory[way]) bench_fail(gk_error());
  }
  const int shorter = bench_is_quick() ? 20 : 1;
  tasks_of(1, 400 / shorter);
  tasks_of(1024, 40 / shorter);
  tasks_of(ITEMS_MAX, bench_is_quick() ? 1 : 2);
  skipped_tasks(1, 400 / shorter);
  skipped_tasks(1 << 16, bench_is_quick() ? 1 : 8);
  round_trips();
  passes();
  silence();
  round_trip();
  for (int way = 0; way < TIMED; ++way) gk_free(bench_ways[way].device, memory[way]);
  bench_hand_end();
  bench_ways_close();
  return bench_end();
}
#else
int main(int argc, char **argv) {
  bench_begin(argc, argv, "vulkan_tasks");
  return bench_missing("gk was built without its Vulkan backend");
}
#endif
