/* Where a process may have few threads, as in a container, the OpenMP backend goes on with those that there can be.
 * Each case is a process of its own, since OpenMP's runtimes keep their threads, and end it where they get none. */
#include "elsewhere.h"
#include "openmp_world.h"
#include "gk_kernel.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

/* ---- a limit of threads ------------------------------------------------------------------------------------------ */

typedef struct body { void *(*run)(void *); void *user; } body;
typedef int creator(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static atomic_int threads, most = 1 << 30;

/* The sanitizers' own, where there is one: they have to know of threads. */
extern creator __interceptor_pthread_create __attribute__((weak));

static void *run_body(void *at) {
  body mine = *(body *)at;
  free(at);
  void *answer = mine.run(mine.user);
  atomic_fetch_sub(&threads, 1);
  return answer;
}

/* In front of the C library's, for gk's threads and the OpenMP runtime's. */
__attribute__((visibility("default")))
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *user) {
  creator *create = __interceptor_pthread_create;
  if (!create) *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
  body *one = malloc(sizeof *one);
  *one = (body){run, user};
  const bool fits = atomic_fetch_add(&threads, 1) < atomic_load(&most);
  const int code = fits ? create(thread, how, run_body, one) : EAGAIN;
  if (code == 0) return 0;
  atomic_fetch_sub(&threads, 1);
  free(one);
  return code;
}

/* ---- in the process of a case ------------------------------------------------------------------------------------ */

enum { X = 1, TOTAL, N, ITEMS = 100003 };

GK_SOURCE(few_threads_test)
GK_KERNEL(add_halves, (in(float, x), sum(float, total))) {
  total[0] += x[i] * 0.5f;
}
GK_SOURCE_END

static const gk_slot_desc sum_slots[] = {GK_BUFFER(X, float), GK_BUFFER(TOTAL, float), GK_SCALAR(N, int)};
static const gk_task sum_tasks[] = {GK_RUN(add_halves, N, X, TOTAL)};
static const gk_list sum_list = GK_LIST(sum_list, sum_tasks, sum_slots);

static void print_line(void *user, gk_log_level level, const char *line) {
  (void)user;
  if (level == GK_LOG_WARN) printf("%s\n", line);
}

/* @return how many threads the team of four had */
static uint32_t add_up(costs how, float *total) {
  static float x[ITEMS];
  world w;
  for (int k = 0; k < ITEMS; ++k) x[k] = 0.1f + (float)(k * 7919 % 1000) * 0.37f;
  world_begin(&w, &sum_list, 4, how);
  bind_ptr(&w, X, x);
  bind_ptr(&w, TOTAL, total);
  bind_i32(&w, N, ITEMS);
  for (int run = 0; run < 3; ++run) assert_runs(&w);
  const uint32_t had = w.device.team.most;
  world_end(&w);
  return had;
}

/* With $MOST threads beside this one. */
static int meet(void) {
  float alone = 0, shared = 0;
  atomic_store(&most, atomic_load(&threads) + atoi(getenv("MOST")));
  gk_set_log(GK_LOG_WARN, print_line, NULL);
  add_up(SHARE_NOTHING, &alone);
  const uint32_t had = add_up(SHARE_ALL, &shared);
  printf("%u threads, %s\n", (unsigned)had, memcmp(&alone, &shared, sizeof alone) == 0 ? "same bits" : "other bits");
  return 0;
}

/* ---- the cases --------------------------------------------------------------------------------------------------- */

#define WARNING(n) "backend openmp: " n " of 4 threads can be used, as no more can be started (Resource temporarily "
static const elsewhere_case met[] = {
    {NULL, {"MOST=0"}, "meet", {WARNING("1"), "\n1 threads, same bits\n", "$"}},
    {NULL, {"MOST=1"}, "meet", {WARNING("1"), "\n1 threads, same bits\n", "$"}},
    {NULL, {"MOST=2"}, "meet", {WARNING("2"), "\n2 threads, same bits\n", "$"}},
    {NULL, {"MOST=3"}, "meet", {WARNING("3"), "\n3 threads, same bits\n", "$"}},
    {NULL, {"MOST=4"}, "meet", {"4 threads, same bits\n", "$"}},
    {NULL, {"MOST=4", "OMP_THREAD_LIMIT=2"}, "meet", {"2 threads, same bits\n", "$"}},
    {NULL, {"MOST=0", "OMP_THREAD_LIMIT=1"}, "meet", {"1 threads, same bits\n", "$"}},
};

static void team_is_as_large_as_it_can_be(void **state) {
  (void)state;
  ELSEWHERE(met);
}

int main(int argc, char **argv) {
  static const elsewhere_word words[] = {{"meet", meet}};
  int code;
  if (elsewhere_is_here(argc, argv, words, GK_COUNT(words), &code)) return code;
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(team_is_as_large_as_it_can_be),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
