/* What the OpenMP backend adds to the work itself: one more task, pass, checkpoint or pair of sections, against the
 * same work written by hand. All arms run in turns, so that whatever else the machine does meets each alike; printed is
 * the median of all turns with the quartiles. Results are checked. */
#include "gk.h"
#include "gk_kernel.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

GK_SOURCE(openmp_tasks)
GK_KERNEL(one_more, (inout(int, x))) { x[i] += 1; }
GK_KERNEL(one_less, (inout(int, left))) { left[0] -= 1; }
GK_SOURCE_END

enum { X = 1, Y, N, LEFT, QUIET, CP_FIRST, ITEMS_MAX = 1 << 20, TURNS = 21, CHECKPOINTS = 2000 };

static const gk_slot_desc slots[] = {GK_OWN(X, int, ITEMS_MAX), GK_OWN(Y, int, ITEMS_MAX), GK_SCALAR(N, int),
                                     GK_OWN(LEFT, int, 1), GK_OWN(QUIET, int, 1)};
static gk_device *device;

static void must(gk_result result) {
  if (result == GK_OK) return;
  fprintf(stderr, "%s\n", gk_error());
  exit(1);
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static gk_graph *graph_of(const gk_task *tasks, size_t count) {
  gk_list list = {GK_ABI, "bench", tasks, count, slots, GK_COUNT(slots)};
  gk_graph *graph;
  must(gk_graph_create(device, &list, 0, &graph));
  must(gk_bind_int(graph, N, 1));
  return graph;
}

static void *room_for(size_t tasks) {
  void *room = calloc(tasks, sizeof(gk_task));
  if (room) return room;
  fprintf(stderr, "out of memory\n");
  exit(1);
}

static gk_graph *chain(size_t count) {
  gk_task *tasks = room_for(count);
  for (size_t k = 0; k < count; ++k) tasks[k] = (gk_task)GK_RUN(one_more, N, X);
  gk_graph *graph = graph_of(tasks, count);
  free(tasks);
  return graph;
}

/* The same number of tasks in two sections. */
static gk_graph *sections(size_t count) {
  gk_task *tasks = room_for(count + 6), *at = tasks;
  *at++ = (gk_task)GK_PARALLEL;
  for (int s = 0; s < 2; ++s) {
    *at++ = (gk_task)GK_SECTION;
    for (size_t k = 0; k < count / 2; ++k) *at++ = (gk_task)GK_RUN(one_more, N, s ? Y : X);
    *at++ = (gk_task)GK_END;
  }
  *at++ = (gk_task)GK_END;
  gk_graph *graph = graph_of(tasks, (size_t)(at - tasks));
  free(tasks);
  return graph;
}

static gk_graph *loop(void) {
  const gk_task tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(one_less, GK_ONE, LEFT), GK_END};
  return graph_of(tasks, GK_COUNT(tasks));
}

/* One task and a checkpoint that stays silent, so many times; without checkpoints: targets that never yield are none.
 */
static gk_graph *checkpoints(bool flags) {
  gk_task *tasks = room_for(3 * CHECKPOINTS), *at = tasks;
  for (int k = 0; k < CHECKPOINTS; ++k) {
    if (flags) *at++ = (gk_task){.op = GK_OP_CHECKPOINT, .name = "quiet", .flag = QUIET, .label = CP_FIRST + k};
    *at++ = (gk_task)GK_RUN(one_more, N, X);
    if (flags) *at++ = (gk_task)GK_END;
  }
  gk_graph *graph = graph_of(tasks, (size_t)(at - tasks));
  free(tasks);
  return graph;
}

/* ---- arms: each returns nanoseconds for `times` repetitions of its thing ----------------------------------------- */

static void add_by_hand(int *x, int begin, int end) {
  for (int i = begin; i < end; ++i) x[i] += 1;
}
static void (*volatile by_pointer)(int *, int, int) = add_by_hand;
static int *x;

static double launch(gk_graph *graph, int n) {
  must(gk_bind_int(graph, N, n));
  double begin = now_ns();
  must(gk_launch(graph, 0));
  must(gk_wait(graph, NULL));
  return now_ns() - begin;
}

/* The least of three, so that caches are warm. */
static double launch_warm(gk_graph *graph, int n) {
  double first = launch(graph, n), second = launch(graph, n), third = launch(graph, n);
  double least = first < second ? first : second;
  return third < least ? third : least;
}

/* libgomp lets threads of the team before spin for some milliseconds: not to be in the way of the next arm. */
static void rest(void) { nanosleep(&(struct timespec){.tv_nsec = 12000000}, NULL); }

static double serial(size_t tasks, int n) {
  double begin = now_ns();
  for (size_t k = 0; k < tasks; ++k) by_pointer(x, 0, n);
  return now_ns() - begin;
}

static double team(size_t tasks, int n) {
  double begin = now_ns();
#pragma omp parallel
  {
    int threads = omp_get_num_threads(), me = omp_get_thread_num();
    for (size_t k = 0; k < tasks; ++k) {
      by_pointer(x, (int)((long)n * me / threads), (int)((long)n * (me + 1) / threads));
#pragma omp barrier
    }
  }
  return now_ns() - begin;
}

static double parallel_for(size_t tasks, int n) {
  int *to = x;
  double begin = now_ns();
  for (size_t k = 0; k < tasks; ++k) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; ++i) to[i] += 1;
  }
  return now_ns() - begin;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
  double l = *(const double *)a, r = *(const double *)b;
  return (l > r) - (l < r);
}

static double report(const char *what, double *ns) {
  qsort(ns, TURNS, sizeof *ns, by_value);
  printf("  %-46s %12.2f ns  (%.2f to %.2f)\n", what, ns[TURNS / 2], ns[TURNS / 4], ns[3 * TURNS / 4]);
  return ns[TURNS / 2];
}

static void verdict(const char *what, double value, double goal) {
  printf("  %-46s %12.2f     goal %.2f: %s\n\n", what, value, goal, value <= goal ? "met" : "missed");
}

/* One more task over n items: the slope between two lists; by hand, the mean of up to 1000. */
static void tasks_of(int n, size_t more) {
  double gk[TURNS], hand[TURNS], barrier[TURNS], omp[TURNS];
  gk_graph *few = chain(more), *many = chain(2 * more);
  int *memory = x = gk_bound(many, X);
  size_t some = more < 1000 ? more : 1000;
  for (int warm = 0; warm < 4; ++warm) launch(few, n), launch(many, n), serial(some, n), team(some, n);
  memory[n - 1] = 0;
  for (int k = 0; k < TURNS; ++k) {
    gk[k] = (launch_warm(many, n) - launch_warm(few, n)) / (double)more;
    hand[k] = serial(some, n) / (double)some;
    barrier[k] = team(some, n) / (double)some;
    omp[k] = parallel_for(some, n) / (double)some;
    rest();
  }
  if (memory[n - 1] != (int)(TURNS * (6 * more + 3 * some))) printf("  WRONG RESULT: %d\n", memory[n - 1]);
  printf("one more task over %d items\n", n);
  double mine = report("gk", gk), alone = report("serial C through a function pointer", hand);
  double together = report("one team, a barrier per task", barrier), loops = report("a parallel for per task", omp);
  if (n == 1) verdict("ns", mine, 19);
  else if (n < 100000)
    verdict("against the better of serial and team", mine / (alone < together ? alone : together), 1.5);
  else verdict("against parallel for", mine / loops, 1.02);
  gk_graph_destroy(few);
  gk_graph_destroy(many);
}

static void passes(void) {
  enum { PASSES = 20000 };
  double ns[TURNS];
  gk_graph *graph = loop();
  int *left = gk_bound(graph, LEFT);
  for (int k = 0; k < TURNS; ++k) {
    *left = PASSES;
    double most = launch(graph, 1);
    *left = PASSES / 2;
    ns[k] = (most - launch(graph, 1)) / (PASSES / 2);
    if (*left != 0) printf("  WRONG RESULT: %d\n", *left);
  }
  printf("one more pass of a loop with one task\n");
  verdict("ns", report("gk", ns), 28);
  gk_graph_destroy(graph);
}

static void silence(void) {
  double with[TURNS], without[TURNS], each[TURNS];
  gk_graph *marked = checkpoints(true), *plain = checkpoints(false);
  for (int k = 0; k < TURNS; ++k) {
    with[k] = launch_warm(marked, 1) / CHECKPOINTS;
    without[k] = launch_warm(plain, 1) / CHECKPOINTS;
    each[k] = with[k] - without[k];
  }
  printf("a silent checkpoint\n");
  report("task and checkpoint", with);
  report("task alone", without);
  verdict("ns", report("difference", each), 20);
  gk_graph_destroy(marked);
  gk_graph_destroy(plain);
}

static void pairs(int n, size_t count) {
  double one[TURNS], two[TURNS], ratio[TURNS];
  gk_graph *straight = chain(count), *split = sections(count);
  for (int warm = 0; warm < 20; ++warm) launch(straight, n), launch(split, n);
  for (int k = 0; k < TURNS; ++k) {
    one[k] = launch_warm(straight, n);
    two[k] = launch_warm(split, n);
    ratio[k] = two[k] / one[k];
  }
  printf("%zu tasks over %d items: two sections against one chain\n", count, n);
  report("one chain", one);
  report("two sections", two);
  verdict("ratio, launch and wait included", report("ratio", ratio), 0.6);
  gk_graph_destroy(straight);
  gk_graph_destroy(split);
}

/* Yield, clear, resume: what is beyond two launches that don't. */
static void round_trip(void) {
  const gk_task tasks[] = {GK_CHECKPOINT(CP_FIRST, QUIET), GK_RUN(one_more, N, X), GK_END};
  double ns[TURNS];
  gk_graph *graph = graph_of(tasks, GK_COUNT(tasks));
  int *flag = gk_bound(graph, QUIET);
  for (int k = 0; k < TURNS; ++k) {
    double calm = launch(graph, 1) + launch(graph, 1);
    *flag = 1;
    double begin = now_ns();
    const gk_status *status;
    must(gk_launch(graph, 0));
    must(gk_wait(graph, &status));
    if (status->yielded != CP_FIRST) printf("  WRONG RESULT: it didn't yield\n");
    *flag = 0;
    must(gk_launch(graph, CP_FIRST));
    must(gk_wait(graph, NULL));
    ns[k] = now_ns() - begin - calm;
  }
  printf("yield and resume, beyond two launches\n");
  verdict("ns", report("gk", ns), 1000);
  gk_graph_destroy(graph);
}

int main(void) {
  must(gk_device_open(&(gk_device_desc){.backend = "openmp"}, &device));
  const gk_device_info *info = gk_device_describe(device);
  printf("%s; %s\n\n", info->name, info->driver);
  tasks_of(1, 20000);
  tasks_of(1024, 2000);
  tasks_of(16384, 200);
  tasks_of(1 << 20, 10);
  passes();
  silence();
  pairs(1, 80000);
  pairs(512, 8000);
  round_trip();
  gk_device_close(device);
  return 0;
}
