#include "bench/apps/growth_lists.h"
#include "bench/harness/held.h"
#include "bench/harness/must.h"
#include "gk_info.h"
#include "gk_kernel.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

GK_SOURCE(bench_growth)
GK_KERNEL(one_more, (inout(int, x))) { x[0] += 1; }
GK_SOURCE_END

enum { QUIET = 1, X, SLOTS = X + GROWTH_NUMBERS };
static gk_slot_desc slots[SLOTS - 1] = {GK_OWN(QUIET, int, 1)};
static char slot_names[GROWTH_NUMBERS][16];

static gk_device *device;
static int *numbers; /* on the device */
static growth_axis axes[GROWTH_AXES];

/* ---- memory ------------------------------------------------------------------------------------------------------ */

size_t bench_growth_held(void) { return bench_held; }

/* ---- lists ------------------------------------------------------------------------------------------------------- */

typedef struct writer {
  gk_task *tasks;
  size_t count, room;
} writer;

static void put(writer *to, gk_task task) {
  if (to->count == to->room) {
    to->room = to->room ? 2 * to->room : 1024;
    to->tasks = realloc(to->tasks, to->room * sizeof *to->tasks);
    if (!to->tasks) bench_fail("out of memory");
  }
  to->tasks[to->count++] = task;
}

static void put_task(writer *to, growth_list *list, int number) {
  put(to, (gk_task)GK_RUN(one_more, GK_ONE, X + number));
  ++list->numbers[number];
}

/* Loops or sections per list: one of them takes little compared with a launch. */
static int repeats(void) { return bench_is_quick() ? 5 : 100; }

static void put_tasks(writer *to, growth_list *list) {
  for (int k = 0; k < list->x; ++k) put_task(to, list, 0);
}

/* A task per slot, in the reverse order of the slots' memory. */
static void put_slots(writer *to, growth_list *list) {
  for (int k = 0; k < list->x; ++k) put_task(to, list, k);
}

/* Each loop makes one pass. */
static void put_loops(writer *to, growth_list *list) {
  for (int nest = 0; nest < repeats(); ++nest) {
    for (int k = 0; k < list->x; ++k) put(to, (gk_task)GK_DO_WHILE(QUIET));
    put_task(to, list, 0);
    for (int k = 0; k < list->x; ++k) put(to, (gk_task)GK_END);
    list->passes += (uint64_t)list->x;
  }
}

/* The number of tasks doesn't depend on x; some of the tasks are in checkpoints. */
static void put_checkpoints(writer *to, growth_list *list) {
  const int tasks = bench_is_quick() ? 100 : 1000, apart = list->x ? tasks / list->x : 0;
  for (int k = 0; k < tasks; ++k) {
    const bool marked = apart && k % apart == 0;
    if (marked) put(to, (gk_task){.op = GK_OP_CHECKPOINT, .name = "quiet", .flag = QUIET, .label = k + 1});
    if (marked && k == 0) list->label = 1;
    put_task(to, list, 0);
    if (marked) put(to, (gk_task)GK_END);
  }
}

static void put_sections(writer *to, growth_list *list) {
  for (int k = 0; k < repeats(); ++k) {
    put(to, (gk_task)GK_PARALLEL);
    for (int s = 0; s < list->x; ++s) {
      put(to, (gk_task)GK_SECTION);
      put_task(to, list, s);
      put(to, (gk_task)GK_END);
    }
    put(to, (gk_task)GK_END);
  }
}

/* "1,000 tasks", "1 section", "10 deep" */
static void name_list(growth_list *list, const char *unit) {
  char digits[20];
  const int length = snprintf(digits, sizeof digits, "%d", list->x);
  char *at = list->name;
  for (int k = 0; k < length; ++k) {
    if (k > 0 && (length - k) % 3 == 0) *at++ = ',';
    *at++ = digits[k];
  }
  const int letters = (int)strlen(unit) - (list->x == 1 && unit[strlen(unit) - 1] == 's');
  snprintf(at, sizeof list->name - (size_t)(at - list->name), " %.*s", letters, unit);
}

/* Adds lists up to the first x that is too large. */
static void make_axis(growth_axis *axis, const char *along, const char *unit, const int *xs, int count, int most,
                      void (*put_all)(writer *, growth_list *)) {
  axis->along = along;
  for (int k = 0; k < count && xs[k] <= most; ++k) {
    growth_list *list = &axis->lists[axis->count++];
    writer to = {0};
    *list = (growth_list){.x = xs[k]};
    put_all(&to, list);
    name_list(list, unit);
    size_t used = 0;
    while (used < GROWTH_NUMBERS && list->numbers[used]) ++used;
    list->list = (gk_list){GK_ABI, "growth", to.tasks, to.count, slots, X - 1 + used};
  }
  if (axis->middle > axis->count - 2) axis->middle = axis->count - 2;
}

void bench_growth_begin(void) {
  bench_must(gk_set_allocator(&bench_counting));
}

void bench_growth_open(gk_device *opened) {
  static const int tasks[] = {10, 100, 1000, 10000, 100000}, deep[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  static const int checkpoints[] = {0, 1, 10, 100, 1000}, sections[] = {1, 2, 4, 8, 16};
  static const int many[] = {10, 100, 1000, 10000};
  const bool quick = bench_is_quick();
  device = opened;
  for (int k = 0; k < GROWTH_NUMBERS; ++k) {
    snprintf(slot_names[k], sizeof slot_names[k], "X%d", k);
    slots[X + k - 1] = (gk_slot_desc){.slot = X + k, .type = GK_PTR, .name = slot_names[k], .element = "int",
                                      .element_bytes = sizeof(int)};
  }
  axes[0] = (growth_axis){.first = 0, .middle = 2};
  make_axis(&axes[0], "tasks", "tasks", tasks, GK_COUNT(tasks), quick ? 1000 : INT32_MAX, put_tasks);
  axes[1] = (growth_axis){.first = 0, .middle = 4};
  make_axis(&axes[1], "depth", "deep", deep, GK_COUNT(deep), quick ? 4 : INT32_MAX, put_loops);
  axes[2] = (growth_axis){.first = 1, .middle = 3}; /* the first one has a cost of its own */
  make_axis(&axes[2], "checkpoints", "checkpoints", checkpoints, GK_COUNT(checkpoints), quick ? 100 : INT32_MAX,
            put_checkpoints);
  axes[3] = (growth_axis){.first = 1, .middle = 2}; /* one section isn't parallel */
  make_axis(&axes[3], "sections", "sections", sections, GK_COUNT(sections), INT32_MAX, put_sections);
  axes[4] = (growth_axis){.first = 0, .middle = 2};
  make_axis(&axes[4], "slots", "slots", many, GK_COUNT(many), quick ? 1000 : INT32_MAX, put_slots);
  numbers = gk_alloc(device, GROWTH_NUMBERS * sizeof *numbers, GK_DEVICE_MEMORY);
  if (!numbers) bench_fail(gk_error());
}

void bench_growth_close(void) {
  for (int k = 0; k < GROWTH_AXES; ++k)
    for (int n = 0; n < axes[k].count; ++n) free((void *)(uintptr_t)axes[k].lists[n].list.tasks);
  gk_free(device, numbers);
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

gk_graph *bench_growth_make(const growth_list *list) {
  gk_graph *graph;
  bench_must(gk_graph_create(device, &list->list, 0, &graph));
  return graph;
}

void bench_growth_bind(const growth_list *list, gk_graph *graph) {
  for (int k = 0; k < GROWTH_NUMBERS && list->numbers[k]; ++k)
    bench_must(gk_bind(graph, X + k, numbers + GROWTH_NUMBERS - 1 - k));
}

void bench_growth_launch(gk_graph *graph) {
  bench_must(gk_launch(graph, 0));
  bench_must(gk_wait(graph, NULL));
}

void bench_growth_clear(void) {
  static const int none[GROWTH_NUMBERS];
  bench_must(gk_upload(device, numbers, none, sizeof none));
}

bool bench_growth_is_right(const growth_list *list, gk_graph *graph, uint64_t launches) {
  int seen[GROWTH_NUMBERS];
  const gk_status *status;
  bench_must(gk_download(device, seen, numbers, sizeof seen));
  bench_must(gk_wait(graph, &status));
  bool right = status->state == GK_FINISHED && gk_passes(status, 0) == list->passes;
  for (int k = 0; k < GROWTH_NUMBERS; ++k)
    right = right && seen[GROWTH_NUMBERS - 1 - k] == list->numbers[k] * (int)launches;
  return right;
}

/* ---- what is measured -------------------------------------------------------------------------------------------- */

/* The microseconds since `begin`, which is in nanoseconds. */
static double since(double begin) { return (bench_now() - begin) / 1000; }

/* Creates, launches and destroys a graph, and times each part. */
typedef struct life { double made, launched, destroyed, bytes; } life;

static bool live(const growth_list *list, life *took) {
  const size_t before = bench_growth_held();
  bench_growth_clear();
  double begin = bench_now();
  gk_graph *graph = bench_growth_make(list);
  took->made += since(begin);
  bench_growth_bind(list, graph);
  begin = bench_now();
  bench_growth_launch(graph);
  took->launched += since(begin);
  took->bytes += (double)(bench_growth_held() - before);
  const bool right = bench_growth_is_right(list, graph, 1);
  begin = bench_now();
  gk_graph_destroy(graph);
  took->destroyed += since(begin);
  return right;
}

static bool lives(const growth_list *list, uint64_t times, life *took) {
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) right = live(list, took) && right;
  return right;
}

static bool building(void *list, uint64_t times, bench_took *took) {
  life all = {0};
  const bool right = lives(list, times, &all);
  took->all += all.made + all.destroyed;
  return right;
}

static bool first_launch(void *list, uint64_t times, bench_took *took) {
  life all = {0};
  const bool right = lives(list, times, &all);
  took->all += all.launched;
  return right;
}

static bool host_memory(void *list, uint64_t times, bench_took *took) {
  life all = {0};
  const bool right = lives(list, times, &all);
  took->all += all.bytes;
  return right;
}

/* Resumes at the first checkpoint, so that all tasks run again. */
static bool first_resume(void *with, uint64_t times, bench_took *took) {
  const growth_list *list = with;
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    gk_graph *graph = bench_growth_make(list);
    bench_growth_bind(list, graph);
    bench_growth_launch(graph);
    bench_growth_clear();
    const double begin = bench_now();
    bench_must(gk_launch(graph, list->label));
    bench_must(gk_wait(graph, NULL));
    took->all += since(begin);
    right = bench_growth_is_right(list, graph, 1) && right;
    gk_graph_destroy(graph);
  }
  return right;
}

static const char *without_checkpoint(const growth_list *list) {
  return list->label ? NULL : "there is no checkpoint to resume at";
}

static bool replay(void *with, uint64_t times, bench_took *took) {
  const growth_list *list = with;
  bench_growth_clear();
  const double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) bench_growth_launch(list->kept);
  took->all += since(begin);
  return bench_growth_is_right(list, list->kept, times);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void keep(growth_axis *axis, bool of_kept) {
  for (int k = 0; k < axis->count; ++k) {
    growth_list *list = &axis->lists[k];
    if (of_kept) {
      list->kept = bench_growth_make(list);
      bench_growth_bind(list, list->kept);
      bench_growth_launch(list->kept);
    } else {
      gk_graph_destroy(list->kept);
      list->kept = NULL;
    }
  }
}

static void ask(const char *id, int tries, growth_axis *axis, const growth_question *asked) {
  char what[80], ratio[120];
  const growth_list *first = &axis->lists[axis->first], *middle = &axis->lists[axis->middle];
  const growth_list *last = &axis->lists[axis->count - 1];
  snprintf(what, sizeof what, "%s, by %s", asked->what, axis->along);
  if (!bench_wants(id, what) || (asked->resumes && !last->label)) return;
  snprintf(ratio, sizeof ratio, "one beyond %s against one before", middle->name);
  const bool is_time = strcmp(asked->unit, "bytes") != 0; /* bytes are always the same */
  bench_table table = {id, what, asked->question, asked->unit, .along = axis->along, .tries = is_time ? tries : 1,
                       .ratios = {{ratio, last->name, {middle->name, first->name}, 2}}};
  for (int k = 0; k < axis->count; ++k) {
    growth_list *list = &axis->lists[k];
    table.variants[k] = (bench_variant){list->name, asked->run, list, .x = list->x,
                                        .missing = asked->missing ? asked->missing(list) : NULL};
  }
  if (asked->of_kept) keep(axis, true);
  bench_measure(&table);
  if (asked->of_kept) keep(axis, false);
}

void bench_growth_measure(const char *id, int tries, const growth_question *more, size_t count) {
  static const growth_question of_all[] = {
    {"building", "how long does it take to build a graph, and to destroy it?", "us", building, false},
    {"the first launch", "how long does the first launch take, until it is over?", "us", first_launch, false},
    {"the first resume", "how long does the first launch take that resumes, until it is over?", "us", first_resume,
     false, without_checkpoint, true},
    {"a replay", "how long does a later launch take, until it is over?", "us", replay, true},
    {"host memory", "how much of the host's memory does gk hold for a graph that was launched?", "bytes", host_memory,
     false},
  };
  life ignored = {0};
  if (!live(&axes[0].lists[0], &ignored)) bench_fail("the first graph's results are wrong");
  for (int k = 0; k < GROWTH_AXES; ++k) {
    for (size_t q = 0; q < GK_COUNT(of_all); ++q) ask(id, tries, &axes[k], &of_all[q]);
    for (size_t q = 0; q < count; ++q) ask(id, tries, &axes[k], &more[q]);
  }
}
