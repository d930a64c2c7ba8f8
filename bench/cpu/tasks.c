/* The cost of one more task, pass, checkpoint or pair of sections on the OpenMP backend, compared with the same work by
 * hand (tables F1, F2, F7, F8). A task is x[i] += 1 on n int32. */
#include "bench/harness/apart.h"
#include "bench/harness/cpu_floor.h"
#include "bench/harness/must.h"
#include "gk_info.h"
#include "gk_kernel.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

GK_SOURCE(bench_tasks)
GK_KERNEL(one_more, (inout(int, x))) { x[i] += 1; }
GK_KERNEL(one_less, (inout(int, left))) { left[0] -= 1; }
GK_SOURCE_END

enum { X = 1, Y, N, LEFT, QUIET, CP_FIRST, ITEMS_MAX = 1 << 22, ENTRIES_MAX = 80000, PASSES = 10000,
       CHECKPOINTS = 2000 };

static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_BUFFER(Y, int), GK_SCALAR(N, int), GK_OWN(LEFT, int, 1),
                                     GK_OWN(QUIET, int, 1)};
static gk_device *device;
static int *x, *y; /* what all variants add to: each process has its own, and gk's are memory of its device */
/* Variants by hand, each with its own team. */
static bench_apart apart_two, apart_team, apart_for, apart_again, apart_sections;

/* For another process than gk's, allocated after its start: a large page that two processes share is split when one of
 * them writes to it. */
static int *own_ints(void) { return bench_large_zeros(ITEMS_MAX, sizeof(int)); }

static void begin_apart(void) {
  if (x) return;
  x = own_ints();
  y = own_ints();
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static gk_graph *graph_of(const gk_task *tasks, size_t count, int n) {
  gk_list list = {GK_ABI, "bench", tasks, count, slots, GK_COUNT(slots)};
  gk_graph *graph;
  bench_must(gk_graph_create(device, &list, 0, &graph));
  bench_must(gk_bind(graph, X, x));
  bench_must(gk_bind(graph, Y, y));
  bench_must(gk_bind_int(graph, N, n));
  return graph;
}

static gk_graph *chain(size_t count, int n) {
  gk_task *tasks = bench_alloc(count, sizeof *tasks);
  for (size_t k = 0; k < count; ++k) tasks[k] = (gk_task)GK_RUN(one_more, N, X);
  gk_graph *graph = graph_of(tasks, count, n);
  free(tasks);
  return graph;
}

/* `count` tasks in two sections. */
static gk_graph *sections(size_t count, int n) {
  gk_task *tasks = bench_alloc(count + 6, sizeof *tasks), *at = tasks;
  *at++ = (gk_task)GK_PARALLEL;
  for (int s = 0; s < 2; ++s) {
    *at++ = (gk_task)GK_SECTION;
    for (size_t k = 0; k < count / 2; ++k) *at++ = (gk_task)GK_RUN(one_more, N, s ? Y : X);
    *at++ = (gk_task)GK_END;
  }
  *at++ = (gk_task)GK_END;
  gk_graph *graph = graph_of(tasks, (size_t)(at - tasks), n);
  free(tasks);
  return graph;
}

static gk_graph *loop(void) {
  const gk_task tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(one_less, GK_ONE, LEFT), GK_END};
  return graph_of(tasks, GK_COUNT(tasks), 1);
}

/* `times` * CHECKPOINTS tasks, each in a checkpoint that doesn't yield, or without checkpoints. */
static gk_graph *checkpoints(bool flags, int times) {
  const int count = times * CHECKPOINTS;
  gk_task *tasks = bench_alloc(3 * (size_t)count, sizeof *tasks), *at = tasks;
  for (int k = 0; k < count; ++k) {
    if (flags) *at++ = (gk_task){.op = GK_OP_CHECKPOINT, .name = "quiet", .flag = QUIET, .label = CP_FIRST + k};
    *at++ = (gk_task)GK_RUN(one_more, N, X);
    if (flags) *at++ = (gk_task)GK_END;
  }
  gk_graph *graph = graph_of(tasks, (size_t)(at - tasks), 1);
  free(tasks);
  return graph;
}

static double launch(gk_graph *graph) {
  double begin = bench_now();
  bench_must(gk_launch(graph, 0));
  bench_must(gk_wait(graph, NULL));
  return bench_now() - begin;
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

static void add_by_hand(int *to, int begin, int end) {
  for (int i = begin; i < end; ++i) to[i] += 1;
}
static void (*volatile by_pointer)(int *, int, int) = add_by_hand;

static void less_by_hand(int *left) { *left -= 1; }
static void (*volatile less_by_pointer)(int *) = less_by_hand;

/* Whether the first and the last item grew by `by`. */
static bool added(const int *at, int n, int first, int last, uint64_t by) {
  return at[0] == (int)((uint32_t)first + (uint32_t)by) && at[n - 1] == (int)((uint32_t)last + (uint32_t)by);
}

/* ---- the floor --------------------------------------------------------------------------------------------------- */

/* At best, several threads divide the time by their number. */
static bench_bound floor_of(int n) {
  const double mebibytes = n * 4.0 / (1 << 20);
  if (n == 1) return (bench_bound){CPU_CALL, 1};
  const char *array = n <= 16384 ? CPU_SMALL : n <= 1 << 20 ? CPU_LARGE : CPU_LARGEST;
  return (bench_bound){array, mebibytes / bench_cpu_threads()};
}

/* ---- M: the machine ---------------------------------------------------------------------------------------------- */

/* Arithmetic without memory, the same amount on each thread. A core of a virtual machine may be half a core at times.
 * with: the number of threads. */
static bool arithmetic(void *with, uint64_t times, bench_took *took) {
  const int threads = *(const int *)with;
  uint32_t sums[2 * 64] = {0}; /* on separate cache lines */
  double begin = bench_now();
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    uint32_t a = 1, b = 2;
    for (uint64_t k = 0; k < 1000 * times; ++k) a = a * 1664525u + 1013904223u, b = (b ^ a) * 22695477u;
    sums[64 * (omp_get_thread_num() % 2)] = a ^ b;
  }
  took->all += bench_now() - begin;
  return sums[0] != 0 && (threads == 1 || sums[64] == sums[0] || bench_cpu_threads() == 1);
}

static void machine(void) {
  bench_measure(&(bench_table){"M", "two cores at once", "do two cores do as much each as one does alone?", "ns",
    .variants = {{"one thread", arithmetic, &(int){1}},
                 {"two threads, each as much", bench_run_apart, &apart_two, 0, BENCH_IDLE_MS}},
    .ratios = {{"two threads against one", "two threads, each as much", {"one thread"}, 0}}});
}

/* ---- F1, F2: one more task --------------------------------------------------------------------------------------- */

typedef struct more {
  gk_graph *few, *many; /* of `count` and 2 * `count` tasks; or only `many`, of `count` */
  size_t count;
  uint64_t each;        /* by hand: least number of tasks that are timed together */
  int n;
} more;
static more *by_hand; /* the same in shared memory */

static bool more_tasks(void *with, uint64_t times, bench_took *took) {
  const more *m = with;
  int first = x[0], last = x[m->n - 1];
  for (uint64_t k = 0; k < times; ++k) {
    took->all += launch(m->many) / (double)m->count;
    if (m->few) took->less += launch(m->few) / (double)m->count;
  }
  return added(x, m->n, first, last, (m->few ? 3 : 1) * m->count * times);
}

static bool serial(void *with, uint64_t times, bench_took *took) {
  const more *m = with;
  int n = m->n, first = x[0], last = x[n - 1];
  double begin = bench_now();
  for (uint64_t k = 0; k < times * m->each; ++k) by_pointer(x, 0, n);
  took->all += (bench_now() - begin) / (double)m->each;
  return added(x, n, first, last, times * m->each);
}

static bool team(void *with, uint64_t times, bench_took *took) {
  const more *m = with;
  begin_apart();
  int n = m->n, first = x[0], last = x[n - 1];
  uint64_t tasks = times * m->each;
  double begin = bench_now();
#pragma omp parallel
  {
    int threads = omp_get_num_threads(), me = omp_get_thread_num();
    for (uint64_t k = 0; k < tasks; ++k) {
      by_pointer(x, (int)((long)n * me / threads), (int)((long)n * (me + 1) / threads));
#pragma omp barrier
    }
  }
  took->all += (bench_now() - begin) / (double)m->each;
  return added(x, n, first, last, tasks);
}

static bool parallel_for(void *with, uint64_t times, bench_took *took) {
  const more *m = with;
  begin_apart();
  int n = m->n, first = x[0], last = x[n - 1], *to = x;
  double begin = bench_now();
  for (uint64_t k = 0; k < times * m->each; ++k) {
#pragma omp parallel for simd schedule(static) firstprivate(to)
    for (int i = 0; i < n; ++i) to[i] += 1;
  }
  took->all += (bench_now() - begin) / (double)m->each;
  return added(x, n, first, last, times * m->each);
}

/* The time of a small task is the slope between two lists. A list of large tasks is so long that the launch, which
 * takes less than one task, doesn't matter. */
static void tasks_of(const char *id, int n, size_t count) {
  char what[40], question[120];
  snprintf(what, sizeof what, "one more task n=%d", n);
  snprintf(question, sizeof question, "what does one more task over %d item%s cost?", n, n > 1 ? "s" : "");
  if (!bench_wants(id, what)) return;
  bool large = n > 16384;
  more m = {.many = chain(large ? count : 2 * count, n), .count = count, .each = large ? count : 1, .n = n};
  if (!large) m.few = chain(count, n);
  *by_hand = m;
  bench_table table = {id, what, question, "ns",
    .variants = {{"gk", more_tasks, &m},
                 {"serial C through a function pointer", serial, &m},
                 {"one team, a barrier per task", bench_run_apart, &apart_team, 0, BENCH_IDLE_MS},
                 {"a parallel for per task", bench_run_apart, &apart_for, 0, BENCH_IDLE_MS}},
    .ratios = {{"gk against the better of serial C and a team", "gk",
                {"serial C through a function pointer", "one team, a barrier per task"}, n > 1 && !large ? 1.5 : 0},
               {"gk against a parallel for per task", "gk", {"a parallel for per task"}, large ? 1.02 : 0}},
    .floor = floor_of(n)};
  if (large) { /* shows the precision */
    const char *again = "a parallel for, once more";
    table.variants[4] = (bench_variant){again, bench_run_apart, &apart_again, 0, BENCH_IDLE_MS};
    table.ratios[2] = (bench_ratio){"by hand once more against itself", again, {"a parallel for per task"}, 0};
  }
  bench_measure(&table);
  gk_graph_destroy(m.few);
  gk_graph_destroy(m.many);
}

/* ---- F7: sections ------------------------------------------------------------------------------------------------ */

/* A list by hand, for a machine with two cores. */
typedef struct entry { _Alignas(64) void (*call)(int *, int, int); int *to, begin, end; } entry;

typedef struct two {
  gk_graph *straight, *split;
  size_t count; /* of tasks, half of them on x and half on y */
  int n;
} two;
static two *list; /* in shared memory */
static entry *entries;

/* With this process's x and y. */
static void write_entries(const two *t) {
  static two written;
  if (written.count == t->count && written.n == t->n) return;
  free(entries);
  written = *t;
  entries = aligned_alloc(_Alignof(entry), t->count * sizeof *entries);
  if (!entries) bench_fail("out of memory");
  for (size_t k = 0; k < t->count; ++k) entries[k] = (entry){by_pointer, k < t->count / 2 ? x : y, 0, t->n};
}

static bool one_chain(void *with, uint64_t times, bench_took *took) {
  const two *t = with;
  int first = x[0], last = x[t->n - 1];
  for (uint64_t k = 0; k < times; ++k) took->all += launch(t->straight);
  return added(x, t->n, first, last, t->count * times);
}

static bool two_sections(void *with, uint64_t times, bench_took *took) {
  const two *t = with;
  int n = t->n, first = x[0], last = x[n - 1], other = y[0], end = y[n - 1];
  for (uint64_t k = 0; k < times; ++k) took->all += launch(t->split);
  return added(x, n, first, last, t->count / 2 * times) && added(y, n, other, end, t->count / 2 * times);
}

static void run_entries(const entry *at, const entry *end) {
  for (; at < end; ++at) at->call(at->to, at->begin, at->end);
}

static bool list_by_hand(const two *t, uint64_t times, bench_took *took, int threads) {
  write_entries(t);
  int n = t->n, first = x[0], last = x[n - 1], other = y[0], end = y[n - 1];
  double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) {
    const entry *middle = entries + t->count / 2;
#pragma omp parallel sections num_threads(threads) if (threads > 1)
    {
#pragma omp section
      run_entries(entries, middle);
#pragma omp section
      run_entries(middle, entries + t->count);
    }
  }
  took->all += bench_now() - begin;
  return added(x, n, first, last, t->count / 2 * times) && added(y, n, other, end, t->count / 2 * times);
}
static bool one_thread(void *with, uint64_t times, bench_took *took) { return list_by_hand(with, times, took, 1); }
static bool two_threads(void *with, uint64_t times, bench_took *took) {
  begin_apart();
  return list_by_hand(with, times, took, 2);
}

static void pairs(int n, size_t count) {
  char what[40], question[160];
  snprintf(what, sizeof what, "two sections n=%d", n);
  snprintf(question, sizeof question,
           "%zu tasks over %d item%s, too small to share: do two sections use two cores? (launch and wait included)",
           count, n, n > 1 ? "s" : "");
  if (!bench_wants("F7", what)) return;
  *list = (two){chain(count, n), sections(count, n), count, n};
  bench_table table = {"F7", what, question, "ns",
    .variants = {{"gk, one chain", one_chain, list},
                 {"gk, two sections", two_sections, list},
                 {"a list by hand, one thread", one_thread, list},
                 {"a list by hand, two threads", bench_run_apart, &apart_sections, 0, BENCH_IDLE_MS}},
    .ratios = {{"gk, two sections against one chain", "gk, two sections", {"gk, one chain"}, 0.6},
               {"by hand, two threads against one (what the machine gives)", "a list by hand, two threads",
                {"a list by hand, one thread"}, 0}}};
  bench_measure(&table);
  gk_graph_destroy(list->straight);
  gk_graph_destroy(list->split);
}

/* ---- F8: passes, checkpoints, yields ----------------------------------------------------------------------------- */

static bool more_passes(void *with, uint64_t times, bench_took *took) {
  gk_graph *graph = with;
  int *left = gk_bound(graph, LEFT);
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    *left = 2 * PASSES;
    took->all += launch(graph) / PASSES;
    right = right && *left == 0;
    *left = PASSES;
    took->less += launch(graph) / PASSES;
    right = right && *left == 0;
  }
  return right;
}

static bool passes_by_hand(void *with, uint64_t times, bench_took *took) {
  (void)with;
  int left = (int)times;
  double begin = bench_now();
  do less_by_pointer(&left);
  while (left);
  took->all += bench_now() - begin;
  return left == 0;
}

static void passes(void) {
  gk_graph *graph = loop();
  bench_measure(&(bench_table){"F8", "one more pass", "what does one more pass of one task over one item cost?", "ns",
    .variants = {{"gk", more_passes, graph},
                 {"a do-while in C, through a function pointer", passes_by_hand, NULL, 1 << 30, 0}},
    .ratios = {{"gk against C", "gk", {"a do-while in C, through a function pointer"}, 0}}, .floor = {CPU_CALL, 1}});
  gk_graph_destroy(graph);
}

/* Two lists of each kind, the second twice as long. */
typedef struct silent { gk_graph *marked[2], *plain[2]; } silent;

/* with: the two lists of one kind. */
static bool more_of(void *with, uint64_t times, bench_took *took) {
  gk_graph *const *lists = with;
  int first = x[0];
  for (uint64_t k = 0; k < times; ++k) {
    took->all += launch(lists[1]) / CHECKPOINTS;
    took->less += launch(lists[0]) / CHECKPOINTS;
  }
  return added(x, 1, first, first, 3 * CHECKPOINTS * times);
}

static bool checkpoint_alone(void *with, uint64_t times, bench_took *took) {
  silent *s = with;
  bench_took marked = {0}, plain = {0};
  bool right = more_of(s->marked, times, &marked) && more_of(s->plain, times, &plain);
  took->all += marked.all + plain.less;
  took->less += plain.all + marked.less;
  return right;
}

static void silence(void) {
  silent s;
  for (int k = 0; k < 2; ++k) s.marked[k] = checkpoints(true, k + 1), s.plain[k] = checkpoints(false, k + 1);
  bench_measure(&(bench_table){"F8", "silent checkpoint", "what does a checkpoint whose flag is 0 cost?", "ns",
    .variants = {{"gk, the checkpoint alone", checkpoint_alone, &s},
                 {"gk, one more task with a checkpoint", more_of, s.marked},
                 {"gk, one more task", more_of, s.plain}},
    .ratios = {{"the checkpoint alone, in ns", "gk, the checkpoint alone", {NULL}, 20},
               {"a task with a checkpoint against one without", "gk, one more task with a checkpoint",
                {"gk, one more task"}, 0}}});
  for (int k = 0; k < 2; ++k) gk_graph_destroy(s.marked[k]), gk_graph_destroy(s.plain[k]);
}

static bool two_launches(void *with, uint64_t times, bench_took *took) {
  int first = x[0];
  double begin = bench_now();
  for (uint64_t k = 0; k < 2 * times; ++k) {
    bench_must(gk_launch(with, 0));
    bench_must(gk_wait(with, NULL));
  }
  took->all += bench_now() - begin;
  return added(x, 1, first, first, 2 * times);
}

static bool yield_and_resume(void *with, uint64_t times, bench_took *took) {
  int first = x[0], *flag = gk_bound(with, QUIET);
  bool right = true;
  double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) {
    const gk_status *status;
    *flag = 1;
    bench_must(gk_launch(with, 0));
    bench_must(gk_wait(with, &status));
    right = right && status->yielded == CP_FIRST;
    *flag = 0;
    bench_must(gk_launch(with, CP_FIRST));
    bench_must(gk_wait(with, &status));
    right = right && status->state == GK_FINISHED;
  }
  took->all += bench_now() - begin;
  return right && added(x, 1, first, first, 2 * times);
}

/* The two take turns, since a launch takes many times as long as the difference. They take turns in blocks, since a
 * launch after a yield takes longer than one after a launch. */
static bool yield_alone(void *with, uint64_t times, bench_took *took) {
  enum { BLOCK = 16 };
  bench_took calm = {0}, yields = {0};
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    if (k % 2 == 0) right = two_launches(with, BLOCK, &calm) && right;
    right = yield_and_resume(with, BLOCK, &yields) && right;
    if (k % 2 == 1) right = two_launches(with, BLOCK, &calm) && right;
  }
  took->all += yields.all / BLOCK;
  took->less += calm.all / BLOCK;
  return right;
}

static void round_trip(void) {
  const gk_task tasks[] = {GK_CHECKPOINT(CP_FIRST, QUIET), GK_RUN(one_more, N, X), GK_END};
  gk_graph *graph = graph_of(tasks, GK_COUNT(tasks), 1);
  bench_measure(&(bench_table){"F8", "yield and resume", "what does a yield with its resume add to two launches?", "ns",
    .variants = {{"gk, beyond two launches", yield_alone, graph},
                 {"gk, yield and resume", yield_and_resume, graph},
                 {"gk, two launches", two_launches, graph}},
    .ratios = {{"yield and resume against two launches", "gk, yield and resume", {"gk, two launches"}, 0}}});
  gk_graph_destroy(graph);
}

int main(int argc, char **argv) {
  bench_begin(argc, argv, "tasks");
  bench_cpu_floor();
  by_hand = bench_shared(sizeof *by_hand);
  list = bench_shared(sizeof *list);
  apart_two = bench_start_apart(arithmetic, &(int){2});
  apart_team = bench_start_apart(team, by_hand);
  apart_for = bench_start_apart(parallel_for, by_hand);
  apart_again = bench_start_apart(parallel_for, by_hand);
  apart_sections = bench_start_apart(two_threads, list);
  bench_must(gk_device_open(&(gk_device_desc){.backend = "openmp"}, &device));
  const gk_device_info *info = gk_device_describe(device);
  printf("%s; %s\n\n", info->name, info->driver);
  x = gk_alloc(device, ITEMS_MAX * sizeof *x, GK_DEVICE_MEMORY);
  y = gk_alloc(device, ITEMS_MAX * sizeof *y, GK_DEVICE_MEMORY);
  if (!x || !y) bench_fail(gk_error());
  int shorter = bench_is_quick() ? 10 : 1;
  machine();
  tasks_of("F1", 1, 20000 / (size_t)shorter);
  tasks_of("F1", 1024, 2000 / (size_t)shorter);
  tasks_of("F1", 16384, 200 / (size_t)shorter);
  tasks_of("F2", 1 << 20, 400 / (size_t)shorter);
  tasks_of("F2", ITEMS_MAX, 80 / (size_t)shorter);
  pairs(1, ENTRIES_MAX / (size_t)shorter);
  pairs(512, 8000 / (size_t)shorter);
  passes();
  silence();
  round_trip();
  bench_apart *const apart[] = {&apart_two, &apart_team, &apart_for, &apart_again, &apart_sections};
  for (size_t k = 0; k < GK_COUNT(apart); ++k) bench_end_apart(apart[k]);
  gk_free(device, x);
  gk_free(device, y);
  gk_device_close(device);
  return bench_end();
}
