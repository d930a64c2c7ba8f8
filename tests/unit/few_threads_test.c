/* Where a process may have few threads, as in a container, the OpenMP backend goes on with those that there can be.
 * Each case is a process of its own, since OpenMP's runtimes keep their threads, and end it where they get none. */
#include "await.h"
#include "elsewhere.h"
#include "openmp_world.h"
#include "gk_kernel.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

/* ---- a limit of threads ------------------------------------------------------------------------------------------ */

typedef struct body { void *(*run)(void *); void *user; int trial; } body; /* trial: which of its threads, or -1 */
typedef int creator(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static atomic_int threads, most = 1 << 30;

/* The sanitizers' own, where there is one: they have to know of threads. */
extern creator __interceptor_pthread_create __attribute__((weak));

/* Threads of gk's trials count until the system was asked a few times whether they are still there. */
enum { TRIAL_THREADS = 64, TIMES_ASKED = 3 };
static atomic_int trial_threads[TRIAL_THREADS], times_asked[TRIAL_THREADS], trial_thread_count;
static atomic_bool has_ended[TRIAL_THREADS];
static void (*when_asked)(void); /* for the first of them */
static atomic_bool is_tried_beside;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
  long words[6];
  va_list list;
  va_start(list, number);
  for (int k = 0; k < 6; ++k) words[k] = va_arg(list, long);
  va_end(list);
  for (int k = 0; number == SYS_tgkill && k < TRIAL_THREADS; ++k) {
    if (atomic_load(&trial_threads[k]) != (int)words[1]) continue;
    if (when_asked) {
      void (*begin)(void) = when_asked;
      when_asked = NULL;
      begin();
    }
    const int times = atomic_fetch_add(&times_asked[k], 1);
    if (times == TIMES_ASKED) atomic_fetch_sub(&threads, 1);
    return times < TIMES_ASKED ? 0 : -1;
  }
  return __real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

static void *run_body(void *at) {
  body mine = *(body *)at;
  free(at);
  if (mine.trial >= 0) atomic_store(&trial_threads[mine.trial], (int)__real_syscall(SYS_gettid));
  void *answer = mine.run(mine.user);
  if (mine.trial >= 0) atomic_store(&has_ended[mine.trial], true);
  else atomic_fetch_sub(&threads, 1);
  return answer;
}

/* Whether a function of this program, of which gk is a part, called; else it is one of OpenMP's runtime. */
static bool is_ours(const void *caller) {
  Dl_info here, there;
  return dladdr(trial_threads, &here) && dladdr(caller, &there) && here.dli_fbase == there.dli_fbase;
}

static _Thread_local bool is_beside;

static bool sleeps(int thread) {
  char path[64], how = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  FILE *file = thread ? fopen(path, "r") : NULL;
  const bool known = file && fscanf(file, "%*d (%*[^)]) %c", &how) == 1;
  if (file) fclose(file);
  return known && how == 'S';
}

/* Threads of a trial are there at once, until all are that can be. */
static void await_standing(int trial) {
  await(atomic_load(&has_ended[trial]) || sleeps(atomic_load(&trial_threads[trial])));
  if (atomic_load(&has_ended[trial])) printf("a thread of the trial has ended before the trial\n");
}

static int create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *user) {
  creator *real = __interceptor_pthread_create;
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, how, run, user);
}

/* In front of the C library's, for gk's threads and the OpenMP runtime's. */
__attribute__((visibility("default")))
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *user) {
  body *one = malloc(sizeof *one);
  const int trial = is_ours(__builtin_return_address(0)) ? atomic_fetch_add(&trial_thread_count, 1) : -1;
  if (trial >= TRIAL_THREADS) abort();
  if (is_beside) atomic_store(&is_tried_beside, true);
  *one = (body){run, user, trial};
  const bool fits = atomic_fetch_add(&threads, 1) < atomic_load(&most);
  const int code = fits ? create(thread, how, run_body, one) : EAGAIN;
  if (code == 0 && trial >= 0) await_standing(trial);
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

/* Once it has met nothing more is asked of the system, whatever the limit is by then. */
static int lower(void) {
  static float x[ITEMS];
  float total = 0;
  world w;
  gk_set_log(GK_LOG_WARN, print_line, NULL);
  world_begin(&w, &sum_list, 4, SHARE_ALL);
  bind_ptr(&w, X, x);
  bind_ptr(&w, TOTAL, &total);
  bind_i32(&w, N, ITEMS);
  for (int run = 0; run < 5; ++run) {
    assert_runs(&w);
    atomic_store(&most, 0);
  }
  printf("%u threads, run again\n", (unsigned)w.device.team.most);
  world_end(&w);
  return 0;
}

static void do_nothing(void *context) { (void)context; }

static uint32_t meet_four(void) {
  gki_team team;
  assert_true(gki_team_make(&team, 4));
  gki_team_meet(&team, do_nothing, NULL);
  const uint32_t had = team.most;
  gki_team_free(&team);
  return had;
}

static pthread_t beside;
static atomic_int beside_name;
static atomic_uint had_beside;

static void *meet_beside(void *unused) {
  is_beside = true;
  atomic_store(&beside_name, (int)__real_syscall(SYS_gettid));
  atomic_store(&had_beside, meet_four());
  while (pause() != 0) continue; /* until the process ends */
  return unused;
}

/* While the first trial's threads end: what another one found out then would be wrong. */
static void begin_beside(void) {
  assert_int_equal(create(&beside, NULL, meet_beside, NULL), 0);
  await(atomic_load(&is_tried_beside) || sleeps(atomic_load(&beside_name)));
  if (atomic_load(&is_tried_beside)) printf("one trial beside another\n");
}

/* Two devices' first launches at once, where there is room for both. */
static int meet_both(void) {
  atomic_store(&most, atomic_load(&threads) + 8);
  gk_set_log(GK_LOG_WARN, print_line, NULL);
  when_asked = begin_beside;
  const uint32_t had = meet_four();
  assert_null(when_asked);
  await(atomic_load(&had_beside) > 0);
  printf("%u and %u threads\n", (unsigned)had, (unsigned)atomic_load(&had_beside));
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
    {NULL, {NULL}, "both", {"4 and 4 threads\n", "$"}},
    {NULL, {NULL}, "lower", {"4 threads, run again\n", "$"}},
};

static void team_is_as_large_as_it_can_be(void **state) {
  (void)state;
  ELSEWHERE(met);
}

int main(int argc, char **argv) {
  static const elsewhere_word words[] = {{"meet", meet}, {"lower", lower}, {"both", meet_both}};
  int code;
  if (elsewhere_is_here(argc, argv, words, GK_COUNT(words), &code)) return code;
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(team_is_as_large_as_it_can_be),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
