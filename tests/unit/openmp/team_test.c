/* The OpenMP backend: sums, which are the same for any number of threads; the number of threads; out of memory. */
#include "base/error.h"
#include "items.h"
#include "gk_kernel.h"
#include "base/thread.h"
#include "unit/support/process.h"
#include <dirent.h>

GK_SOURCE(openmp_team_test)
GK_KERNEL(add_all, (in(float, x), sum(float, f), sum(double, d), sum(int, n), sum(uint, u))) {
  f[0] += x[i];
  d[0] += 1.0 / (1.0 + (double)x[i]);
  n[0] += 1 - 2 * (i % 3);
  u[0] += 0x10000001u;
}
GK_SOURCE_END

typedef struct totals { float f; double d; int n; uint32_t u; } totals;
enum { XS = 1, SF, SD, SI, SU, SN, RUNS = 50 };
static const gk_slot_desc slots[] = {GK_BUFFER(XS, float), GK_BUFFER(SF, float), GK_BUFFER(SD, double),
                                     GK_BUFFER(SI, int),   GK_BUFFER(SU, uint),  GK_SCALAR(SN, int)};
#define ADD_ALL GK_RUN(add_all, SN, XS, SF, SD, SI, SU)
LIST(sum_list, ADD_ALL);
static float *numbers(void) {
  static float x[ITEMS_MAX];
  for (int k = 0; k < ITEMS_MAX; ++k) x[k] = 0.1f + (float)(k * 7919 % 1000) * 0.37f;
  return x;
}

static const totals there = {.f = 0.5f, .d = 0.25, .n = -7, .u = 3};
static totals sum_up(world *w, int count) {
  totals t = there;
  RUN_WITH(w, {XS, {.ptr = numbers()}}, {SF, {.ptr = &t.f}}, {SD, {.ptr = &t.d}}, {SI, {.ptr = &t.n}},
              {SU, {.ptr = &t.u}}, {SN, {.i32 = count}});
  return t;
}

static void assert_same_bits(const totals *these, const totals *those) {
  assert_memory_equal(&these->f, &those->f, sizeof these->f);
  assert_memory_equal(&these->d, &those->d, sizeof these->d);
  assert_int_equal(these->n, those->n);
  assert_int_equal(these->u, those->u);
}

/* As documented: cut by the number of items and threads, and added to the old value in the order of the cuts. */
static totals sum_by_the_book(int count, int threads) {
  totals t = there;
  const size_t items = (size_t)count, most = items / 32 ? items / 32 : 1;
  const size_t partials = most < (size_t)threads ? most : (size_t)threads;
  for (size_t k = 0; k < partials; ++k) {
    totals own = {0};
    const gk_value args[] = {{.ptr = numbers()}, {.ptr = &own.f}, {.ptr = &own.d}, {.ptr = &own.n}, {.ptr = &own.u}};
    add_all.host(args, (gk_range){items * k / partials, items * (k + 1) / partials, {(uint32_t)count, 1, 1}});
    t.f += own.f;
    t.d += own.d;
    t.n += own.n;
    t.u += own.u;
  }
  return t;
}

TEST(test_sums_are_the_same_bits) {
  static const int counts[] = {1, 31, 32, 33, 64, 100, 1000, ITEMS_MAX};
  const float *x = numbers();
  for (size_t k = 0; k < GK_COUNT(counts); ++k)
    FOR_EACH_WORLD(w, &sum_list, 1, 2, 3, 8) {
      const totals first = sum_by_the_book(counts[k], w.threads);
      for (int run = 0; run < RUNS; ++run) {
        const totals now = sum_up(&w, counts[k]);
        assert_same_bits(&now, &first);
      }
      double f = 0.5, d = 0.25;
      int n = -7;
      for (int i = 0; i < counts[k]; ++i) f += x[i], d += 1.0 / (1.0 + (double)x[i]), n += 1 - 2 * (i % 3);
      assert_true(fabs(first.f / f - 1) < 1e-4);
      assert_true(fabs(first.d / d - 1) < 1e-12);
      assert_int_equal(first.n, n);
      assert_int_equal(first.u, 3 + 0x10000001u * (uint32_t)counts[k]);
    }
}

enum { MANY_SUMS = 12 };
HOST_KERNEL(add_to_all) {
  for (uint32_t k = 0; k < MANY_SUMS; ++k) *(float *)args[k].ptr += (float)((range.end - range.begin) * (k + 1));
}
HOST_KERNEL(add_to_one) { *(float *)args[0].ptr += (float)(range.end - range.begin); }

/* There is room for the partial sums of the task with the most of them, anywhere in the list. */
TEST(test_tasks_of_many_and_few_sums) {
  enum { ITEMS = 3001 /* cut unevenly */, COUNT_SLOT = MANY_SUMS + 1 };
#define FOUR_SUMS SUM(float), SUM(float), SUM(float), SUM(float)
  KERNEL_OF(many, add_to_all, FOUR_SUMS, FOUR_SUMS, FOUR_SUMS);
  KERNEL_OF(one, add_to_one, SUM(float));
  KERNEL_OF(none, add_to_one, INOUT(float));
  gk_slot_desc many_slots[COUNT_SLOT] = {[MANY_SUMS] = GK_SCALAR(COUNT_SLOT, int)};
  for (int k = 0; k < MANY_SUMS; ++k) many_slots[k] = (gk_slot_desc)GK_BUFFER(k + 1, float);
  const gk_task tasks[] = {GK_RUN(one, COUNT_SLOT, 1), GK_RUN(many, COUNT_SLOT, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
                           GK_RUN(one, COUNT_SLOT, 1), GK_RUN(none, GK_ONE, 2)};
  const gk_list list = GK_LIST(many, tasks, many_slots);
  FOR_EACH_WORLD(w, &list, 1, 2, 3, 8) {
    float sums[MANY_SUMS] = {0};
    for (int k = 0; k < MANY_SUMS; ++k) bind_ptr(&w, k + 1, &sums[k]);
    RUN_WITH(&w, {COUNT_SLOT, {.i32 = ITEMS}});
    assert_runs(&w);
    for (int k = 0; k < MANY_SUMS; ++k)
      assert_true(sums[k] == (float)(2 * (ITEMS * (k + 1) + (k == 0 ? 2 * ITEMS : k == 1 ? 1 : 0))));
  }
}

TEST(test_sum_of_no_items) {
  WORLD(w, &sum_list, 2, SHARE_ALL);
  const totals t = sum_up(&w, 0);
  assert_same_bits(&t, &there);
}

static int threads_of_process(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

/* In a process of its own: here, other tests have left the runtime's threads behind. */
static void child_small_tasks(void) {
  enum { TASKS = 500 };
  static gk_task tasks[TASKS];
  for (int k = 0; k < TASKS; ++k) tasks[k] = (gk_task)GK_RUN(touching, N, X);
  const gk_list list = GK_LIST(list, tasks, item_slots);
  int before = threads_of_process(); /* a sanitizer may begin one of its own */
  WORLD(w, &list, 8, AS_MEASURED);
  BIND(&w, {X, {.ptr = touched_bytes}}, {N, {.i32 = 3}});
  worker = pthread_self();
  /* Nothing is timed: with sanitizers, on a core that others want, three items may in truth take long enough. */
  for (uint32_t k = 0; k < w.program.op_count; ++k) w.program.ops[k].countdown = UINT16_MAX;
  for (int k = 0; k < 20; ++k) assert_runs(&w);
  assert_true(threads_of_process() - before <= 1);
  assert_int_equal(atomic_load(&other_threads), 0);
}

/* With OMP_THREAD_LIMIT the team is smaller than asked for: the bits must be those of the full team, in the launch that
 * finds that out, too. */
static void child_thread_limit(void) {
  totals first = {0};
  int before = threads_of_process();
  for (int k = 0; k < 2; ++k) {
    WORLD(w, &sum_list, 8, k ? SHARE_ALL : SHARE_NOTHING);
    for (int run = 0; run < 5; ++run) {
      const totals these = sum_up(&w, ITEMS_MAX);
      if (k == 0 && run == 0) first = these;
      assert_same_bits(&these, &first);
    }
    assert_true(threads_of_process() - before <= atoi(getenv("OMP_THREAD_LIMIT")));
  }
}

/* What to do there, and OMP_THREAD_LIMIT. */
static int begin_again(const void *data) {
  const char *const *words = data;
  if (words[1]) setenv("OMP_THREAD_LIMIT", words[1], 1);
  execl("/proc/self/exe", "openmp_team_test", words[0], (char *)NULL);
  return 127;
}
static void run_child(const char *what, const char *limit) {
  assert_int_equal(code_of_child(begin_again, (const char *[]){what, limit}, NULL, 0), 0);
}

TEST(test_small_tasks_wake_no_thread) { run_child("small", NULL); }

TEST(test_thread_limit) {
  run_child("limit", "1");
  run_child("limit", "2");
  run_child("limit", "100");
}

static void *look_at_mask(void *mask) {
  pthread_sigmask(SIG_BLOCK, NULL, mask);
  return NULL;
}

/* All but what a thread raises by what it does; and the caller's mask is as it was. */
TEST(test_signals_of_threads) {
  sigset_t none, before, of_thread, after;
  pthread_t thread;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, &before);
  assert_int_equal(gki_thread_start(&thread, NULL, look_at_mask, &of_thread), 0);
  look_at_mask(&after);
  pthread_join(thread, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  for (int k = 1; k <= SIGSYS; ++k) assert_false(sigismember(&after, k));
  static const int others[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGALRM, SIGUSR1, SIGPIPE},
                   own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
  for (size_t k = 0; k < GK_COUNT(others); ++k) assert_true(sigismember(&of_thread, others[k]));
  for (size_t k = 0; k < GK_COUNT(own); ++k) assert_false(sigismember(&of_thread, own[k]));
}

/* The program blocks a signal to wait for it, after the team was started: a thread that takes it ends the process. */
static void child_signals(void) {
  sigset_t term;
  int came = 0;
  WORLD(w, &sum_list, 3, SHARE_ALL);
  (void)sum_up(&w, ITEMS_MAX);
  assert_int_equal(w.device.team.limit, 3);
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  assert_int_equal(pthread_sigmask(SIG_BLOCK, &term, NULL), 0);
  assert_int_equal(kill(getpid(), SIGTERM), 0);
  assert_int_equal(sigwait(&term, &came), 0);
  assert_int_equal(came, SIGTERM);
}

TEST(test_signals_of_program) {
  needs_threads(3);
  run_child("signals", NULL);
}

enum { PLENTY = 1 << 30 };
static int calls_left;
static void *scarce_alloc(void *user, size_t size) { return (void)user, calls_left-- > 0 ? malloc(size) : NULL; }
static void *scarce_resize(void *user, void *at, size_t size) {
  return (void)user, calls_left-- > 0 ? realloc(at, size) : NULL;
}
static void scarce_free(void *user, void *at) { (void)user, free(at); }
static int begin_scarce(void **state) {
  static const gk_allocator scarce = {NULL, scarce_alloc, scarce_resize, scarce_free};
  (void)state;
  calls_left = PLENTY;
  return gk_set_allocator(&scarce) != GK_OK;
}
static int end_scarce(void **state) { return (void)state, gk_set_allocator(NULL) != GK_OK; }

/* Another device and program, with so many calls left until one finds no room. */
static gk_result make_another(const gk_plan *plan, int *left, int count) {
  gki_openmp_device device = {0};
  gki_program program = {0};
  gk_mode mode;
  *left = count;
  gki_begin();
  gk_result result = gki_openmp.open(&device, &(gk_device_desc){.threads = 4});
  if (result == GK_OK) result = gki_openmp.lower(&device, &program, plan, NULL, &mode);
  assert_int_equal(result, *left < 0 ? GK_ERROR_MEMORY : GK_OK);
  *left = PLENTY;
  gki_openmp.drop(&program);
  gki_openmp.close(&device);
  return result;
}

/* Every allocation fails once. */
TEST_WITH(test_out_of_memory, begin_scarce, end_scarce) {
  LIST(list, PARALLEL(SECTION(ADD_ALL), SECTION(ADD_ALL)));
  WORLD(w, &list, 3, AS_MEASURED);
  int failed = 0;
  for (; make_another(w.plan, &calls_left, failed) != GK_OK; ++failed) assert_says("memory");
  assert_in_range(failed, 3, 99);
}

/* A dump's memory is the hook's, but for what is handed over. */
TEST_WITH(test_no_room_for_a_dump, begin_scarce, end_scarce) {
  WORLD(w, &sum_list, 3, SHARE_NOTHING);
  calls_left = 0;
  assert_null(gki_openmp.dump(&w.program, "text"));
  calls_left = PLENTY;
  assert_dumps(&w, "");
}

static int takes_left = PLENTY; /* until one finds no room */
WRAPPED(void *, gki_arena_alloc, gki_arena *arena, size_t count, size_t element_bytes) {
  return takes_left-- != 0 ? __real_gki_arena_alloc(arena, count, element_bytes) : NULL;
}
WRAPPED(void *, gki_arena_alloc_aligned, gki_arena *arena, size_t bytes, size_t alignment) {
  return takes_left-- != 0 ? __real_gki_arena_alloc_aligned(arena, bytes, alignment) : NULL;
}

/* Each array of a graph, though small ones share a block of memory, and so either are all there or none. */
TEST(test_no_room_for_an_array) {
  typedef struct pair { int a[2]; } pair;
  enum { PAIR = SN + 1 };
  static gk_slot_desc pair_slots[GK_COUNT(slots) + 1] = {[PAIR - 1] = GK_STRUCT_VALUE(PAIR, pair)};
  memcpy(pair_slots, slots, sizeof slots);
  LIST_OVER(pair_slots, list, PARALLEL(SECTION(ADD_ALL)));
  WORLD(w, &list, 3, AS_MEASURED);
  int failed = 0;
  while (make_another(w.plan, &takes_left, failed) != GK_OK) ++failed;
  assert_in_range(failed, 9, 29);
}

int main(int argc, char **argv) {
  if (argc == 1) return run_all_tests();
  if (strcmp(argv[1], "small") == 0) child_small_tasks();
  else if (strcmp(argv[1], "limit") == 0) child_thread_limit();
  else child_signals();
  return 0;
}
