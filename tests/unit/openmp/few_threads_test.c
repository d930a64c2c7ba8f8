/* Where a process may have few threads, as in a container, the OpenMP backend goes on with those that there can be. */
#include "base/error.h"
#include "world.h"
#include "gk_kernel.h"
#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <sys/resource.h>
#include "unit/support/process.h"

/* A sanitizer's own memory counts, and its part of a stack; it ends the process where it gets none. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if !defined(__has_feature)
#define LIMITS_MEMORY
#elif !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define LIMITS_MEMORY
#endif
#endif

static int most, started, asked; /* threads of gk's; how often one was asked for */
static size_t stack_bytes;       /* of the last one */
static size_t least_stack;       /* what is thread-local has to have room in it, too */
static int limit = INT32_MAX;    /* OMP_THREAD_LIMIT */
WRAPPED(int, pthread_create, pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *user) {
  ++asked;
  if (started == most) return EAGAIN;
  pthread_attr_getstacksize(how, &stack_bytes);
  if (stack_bytes < least_stack) return EINVAL;
#ifndef LIMITS_MEMORY
  enum { SANITIZERS_NEED = 1 << 20 };
  if (stack_bytes < SANITIZERS_NEED) how = NULL;
#endif
  const int code = __real_pthread_create(thread, how, run, user);
  started += code == 0;
  return code;
}

WRAPPED(int, pthread_join, pthread_t thread, void **answer) {
  --started;
  return __real_pthread_join(thread, answer);
}

WRAPPED(int, omp_get_thread_limit, void) { return limit; }

static char line[256];
static int lines;
static void keep_line(void *user, gk_log_level level, const char *text) {
  (void)user;
  if (level != GK_LOG_WARN) return;
  snprintf(line, sizeof line, "%s", text);
  ++lines;
}

static int begin(void **state) {
  (void)state;
  most = 1 << 30;
  started = asked = lines = 0;
  limit = INT32_MAX;
  least_stack = 0;
  line[0] = 0;
  gk_set_log(GK_LOG_WARN, keep_line, NULL);
  return 0;
}

static int end(void **state) {
  (void)state;
  unsetenv("OMP_STACKSIZE");
  gk_set_log(GK_LOG_NONE, NULL, NULL);
  return 0;
}

enum { X = 1, TOTAL, N, ITEMS = 100003 };

GK_SOURCE(few_threads_test)
GK_KERNEL(add_halves, (in(float, x), sum(float, total))) { total[0] += x[i] * 0.5f; }
GK_SOURCE_END

static const gk_slot_desc slots[] = {GK_BUFFER(X, float), GK_BUFFER(TOTAL, float), GK_SCALAR(N, int)};
LIST(sum_list, GK_RUN(add_halves, N, X, TOTAL));
static float total;
static void begin_world(world *w, costs how) {
  static float x[ITEMS];
  for (int k = 0; k < ITEMS; ++k) x[k] = 0.1f + (float)(k * 7919 % 1000) * 0.37f;
  world_begin(w, &sum_list, 4, how);
  total = 0;
  BIND(w, {X, {.ptr = x}}, {TOTAL, {.ptr = &total}}, {N, {.i32 = ITEMS}});
}

/* Three launches. @return how many threads the team of four had */
static uint32_t add_up(costs how) {
  WORLD_BY(begin_world, w, how);
  for (int run = 0; run < 3; ++run) assert_runs(&w);
  if (how == SHARE_ALL) assert_int_equal(started, w.device.team.limit - 1);
  return w.device.team.limit;
}

/* The bits are those of the full team, and its threads end with it. */
static void assert_team_of(uint32_t count) {
  asked = lines = 0;
  add_up(SHARE_NOTHING);
  const float alone = total;
  assert_int_equal(asked, 0);
  assert_int_equal(add_up(SHARE_ALL), count);
  assert_memory_equal(&alone, &total, sizeof alone);
  assert_int_equal(started, 0);
}

static void assert_warns_of(uint32_t count) {
  char words[80];
  snprintf(words, sizeof words, "backend openmp: %u of 4 threads can be used, as no more can be started (", count);
  assert_int_equal(lines, 1);
  assert_non_null(strstr(line, words));
  assert_non_null(strstr(line, "or lower OMP_STACKSIZE"));
}

#define CASE(test) TEST_WITH(test, begin, end)

CASE(test_a_limit_of_threads) {
  for (most = 0; most < 3; ++most) {
    assert_team_of((uint32_t)most + 1);
    assert_int_equal(asked, most + 1);
    assert_warns_of((uint32_t)most + 1);
    assert_non_null(strstr(line, "(Resource temporarily unavailable)"));
  }
  assert_team_of(4);
  assert_int_equal(asked, 3);
  assert_int_equal(lines, 0);
}

CASE(test_a_limit_of_openmp) {
  for (limit = 1; limit < 5; ++limit) {
    assert_team_of((uint32_t)limit);
    assert_int_equal(asked, limit - 1);
    assert_int_equal(lines, 0);
  }
}

/* What the device says of itself. */
CASE(test_a_limit_is_told) {
  for (limit = 1; limit < 6; ++limit) {
    const int count = limit < 4 ? limit : 4;
    char name[32], said[32];
    snprintf(name, sizeof name, ", %d thread%s", count, count > 1 ? "s" : "");
    snprintf(said, sizeof said, "%d threads, 1 ops", count);
    WORLD_BY(begin_world, w, SHARE_NOTHING);
    gk_device_info info = {0};
    gki_openmp.describe(&w.device, &info);
    assert_int_equal(info.threads, count);
    assert_string_equal(strrchr(info.name, ','), name);
    char *text = gki_openmp.dump(&w.program, "text");
    assert_int_equal(strncmp(text, said, strlen(said)), 0);
    free(text);
    const int cores = omp_get_num_procs();
    TEAM(team, (uint32_t)cores + 1);
    assert_int_equal(team.crowded, limit > cores);
  }
}

/* The system is asked once, and a later limit doesn't change the answer. */
CASE(test_a_limit_that_changes) {
  for (int k = 0; k < 2; ++k) {
    WORLD_BY(begin_world, w, SHARE_ALL);
    asked = 0;
    most = k ? 3 : 0;
    for (int run = 0; run < 5; ++run) {
      assert_runs(&w);
      most = 3 - most;
    }
    assert_int_equal(asked, k ? 3 : 1);
    assert_int_equal(w.device.team.limit, k ? 4 : 1);
  }
}

/* More than there are addresses. */
CASE(test_no_room_for_stacks) {
  setenv("OMP_STACKSIZE", "300000G", 1);
  assert_team_of(1);
  assert_warns_of(1);
}

/* It is made as large as it has to be. */
CASE(test_a_small_stack) {
  static const char *const small[] = {"1B", "16K", "20000B"};
  for (size_t k = 0; k < GK_COUNT(small); ++k) {
    setenv("OMP_STACKSIZE", small[k], 1);
    assert_team_of(4);
    assert_true(stack_bytes >= 64 << 10);
  }
  setenv("OMP_STACKSIZE", "100K", 1);
  least_stack = 1 << 20;
  assert_team_of(4);
  assert_int_equal(stack_bytes, 1600 << 10);
  assert_int_equal(asked, 4 + 3); /* 100, 200, 400 and 800 KiB are too little */
  assert_int_equal(lines, 0);
  least_stack = SIZE_MAX;
  assert_team_of(1);
  assert_warns_of(1);
}

CASE(test_size_of_stacks) {
  static const struct { const char *text; size_t bytes; } sizes[] = {
    {"3000", 3000 << 10}, {"3000k", 3000 << 10}, {" 3 M ", 3 << 20}, {"3000000B", 3000000}, {"1g", 1 << 30}};
  for (size_t k = 0; k < GK_COUNT(sizes); ++k) {
    setenv("OMP_STACKSIZE", sizes[k].text, 1);
    assert_team_of(4);
    assert_int_equal(stack_bytes, sizes[k].bytes);
  }
  static const char *const useless[] = {"much", "0", "-1", "3X", "3MM", "M", "3 M 4", "99999999999999999999",
                                        "99999999999G"};
  for (size_t k = 0; k < GK_COUNT(useless); ++k) {
    setenv("OMP_STACKSIZE", useless[k], 1);
    gki_openmp_device device = {0};
    gki_begin();
    assert_fails(GK_ERROR_INVALID, "OMP_STACKSIZE", gki_openmp.open(&device, &(gk_device_desc){.threads = 2}));
    assert_says(useless[k]);
  }
}

#ifdef LIMITS_MEMORY
static rlim_t bytes_mapped(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%lu", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

typedef struct little { world *w; rlim_t bytes; } little;
static int launch_with_little(const void *data) {
  const little *l = data;
  const struct rlimit all = {bytes_mapped() + l->bytes, RLIM_INFINITY};
  return setrlimit(RLIMIT_AS, &all) != 0 || world_launch(l->w, 0) != GK_OK ? 99 : (int)l->w->device.team.limit;
}

/* @return how many threads the team of four has where this process may map so many bytes more */
static int team_with(world *w, rlim_t bytes) {
  return code_of_child(launch_with_little, &(little){w, bytes}, NULL, 0);
}

/* Any amount of missing memory: for a stack, or for what else threads take. The test before ends with stacks of 1 GiB,
 * as the C library then keeps none for later threads. */
CASE(test_little_memory) {
  enum { STEP = 64 << 10, STEPS = 256 };
  setenv("OMP_STACKSIZE", "1M", 1);
  WORLD_BY(begin_world, w, SHARE_ALL);
  assert_int_equal(team_with(&w, 0), 1);
  for (int k = 1; k < STEPS; ++k) assert_in_range(team_with(&w, (rlim_t)k * STEP), 1, 4);
  assert_int_equal(team_with(&w, (rlim_t)STEPS * STEP), 4);
}
#endif

int main(void) { return run_all_tests(); }
