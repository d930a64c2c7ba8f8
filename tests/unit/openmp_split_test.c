/* The OpenMP backend: sections that run side by side for sure, as what was learned about them is set, and their tasks
 * wait for each other. */
#include "openmp_world.h"
#include "gk_kernel.h"
#include <pthread.h>
#include <time.h>

enum { X = 1, Y, F, G, D, E, I, J, N, FLAG, A, B, C, ONE, MOST_CHUNKS = 64, ITEMS = 1000, LONGEST_S = 120 };
static const gk_slot_desc slots[] = {
  GK_BUFFER(X, int), GK_BUFFER(Y, int), GK_BUFFER(F, float), GK_BUFFER(G, float), GK_BUFFER(D, double),
  GK_BUFFER(E, double), GK_BUFFER(I, int), GK_BUFFER(J, int), GK_SCALAR(N, int), GK_BUFFER(FLAG, int),
  GK_BUFFER(A, int), GK_BUFFER(B, int), GK_BUFFER(C, int), GK_SCALAR(ONE, int),
};

/* From the next launch on every PARALLEL runs its sections side by side. */
static void split_all(world *w) {
  for (uint32_t k = 0; k < w->program.fork_count; ++k)
    w->program.forks[k].trial = (gki_trial){
      .split = true, .series_samples = UINT8_MAX, .split_samples = UINT8_MAX, .series_ns = 1e9f, .split_ns = 1,
      .last_ns = 1, .lately_ns = 1, .wait = 1000, .pause = 1000};
}

/* ---- meeting ----------------------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned here; /* bits of the sections that have come */
static bool apart;    /* one waited in vain */

/* Until `all` have come, or LONGEST_S is over: then they run one after the other. */
static void meet(unsigned section, unsigned all) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += LONGEST_S;
  pthread_mutex_lock(&lock);
  here |= section;
  pthread_cond_broadcast(&changed);
  while ((here & all) != all && !apart)
    if (pthread_cond_timedwait(&changed, &lock, &end) != 0) apart = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static void start_apart(void) {
  here = 0;
  apart = false;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

typedef struct chunks { unsigned section; uint32_t count; const void *at[MOST_CHUNKS]; } chunks;
static chunks of_section[2];

/* Notes where it adds to; the first calls of both sections are under way at once. */
static void add_up(const gk_value *args, gk_range range) {
  chunks *own = args[0].ptr;
  pthread_mutex_lock(&lock);
  if (own->count < MOST_CHUNKS) own->at[own->count++] = args[1].ptr;
  pthread_mutex_unlock(&lock);
  meet(own->section, 3);
  for (size_t k = range.begin; k < range.end; ++k) {
    *(float *)args[1].ptr += 1;
    *(double *)args[2].ptr += 2;
    *(int *)args[3].ptr += 3;
  }
}
static const gk_param adding_params[] = {
  {"own", "int", 4, 4, GK_PTR, GK_ACCESS_IN}, {"f", "float", 4, 4, GK_PTR, GK_ACCESS_SUM},
  {"d", "double", 8, 8, GK_PTR, GK_ACCESS_SUM}, {"i", "int", 4, 4, GK_PTR, GK_ACCESS_SUM}};
static const gk_kernel adding = {.name = "adding", .params = adding_params, .param_count = 4, .host = add_up};

/* Whole numbers, so that no order matters. */
static void check_sums(const gk_list *list, int threads) {
  world w;
  world_begin(&w, list, threads, SHARE_ALL);
  for (int k = 0; k < 10; ++k) {
    float f[2] = {1, 2};
    double d[2] = {3, 4};
    int i[2] = {5, 6}, flag = 1;
    for (unsigned s = 0; s < 2; ++s) {
      of_section[s] = (chunks){.section = 1u << s};
      bind_ptr(&w, X + (int)s, &of_section[s]);
      bind_ptr(&w, F + (int)s, &f[s]);
      bind_ptr(&w, D + (int)s, &d[s]);
      bind_ptr(&w, I + (int)s, &i[s]);
    }
    bind_i32(&w, N, ITEMS);
    bind_ptr(&w, FLAG, &flag);
    start_apart();
    split_all(&w);
    assert_runs(&w);
    assert_false(apart);
    for (int s = 0; s < 2; ++s) {
      assert_true(f[s] == (float)(ITEMS + 1 + s));
      assert_true(d[s] == 2 * ITEMS + 3 + s);
      assert_int_equal(i[s], 3 * ITEMS + 5 + s);
      assert_int_equal(of_section[s].count, threads); /* as many chunks as there are threads, whoever adds them up */
    }
    for (uint32_t a = 0; a < of_section[0].count; ++a)
      for (uint32_t b = 0; b < of_section[1].count; ++b) assert_ptr_not_equal(of_section[0].at[a], of_section[1].at[b]);
  }
  world_end(&w);
}

/* Sections add up in memory of their own, however many chunks there are and whichever threads they have. */
static void test_sums_side_by_side(void **state) {
  (void)state;
  static const gk_task straight_tasks[] = {
    GK_PARALLEL,
      GK_SECTION, GK_RUN(adding, N, X, F, D, I), GK_END,
      GK_SECTION, GK_RUN(adding, N, Y, G, E, J), GK_END,
    GK_END,
  };
  static const gk_task walked_tasks[] = {
    GK_PARALLEL,
      GK_SECTION, GK_RUN(adding, N, X, F, D, I), GK_END,
      GK_SECTION, GK_IF(FLAG), GK_RUN(adding, N, Y, G, E, J), GK_END, GK_END,
    GK_END,
  };
  static const gk_list lists[] = {GK_LIST(lists[0], straight_tasks, slots), GK_LIST(lists[1], walked_tasks, slots)};
  static const int thread_counts[] = {2, 3, 4, 7};
  needs_threads(7);
  for (size_t k = 0; k < GK_COUNT(lists); ++k)
    for (size_t t = 0; t < GK_COUNT(thread_counts); ++t) check_sums(&lists[k], thread_counts[t]);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

GK_SOURCE(openmp_split_test)
GK_KERNEL(raise, (inout(int, x))) { x[i] += 1; }
GK_SOURCE_END

static gk_result answer;
static gk_result answer_later(const gk_value *args, void *stream) {
  (void)args;
  (void)stream;
  meet(1, 3);
  return answer == GK_OK ? GK_OK : gk_fail(answer, "the solver says no");
}

static void arrive(const gk_value *args, gk_range range) {
  (void)range;
  meet(2, 3);
  *(int *)args[0].ptr += 1;
}
static const gk_param arriving_params[] = {{"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT}};
static const gk_kernel arriving = {.name = "arriving", .params = arriving_params, .param_count = 1, .host = arrive};

/* Nothing behind the call in its section, and nothing behind the PARALLEL; the other section's task that was under way
 * is through. */
static void check_failure(const gk_list *list, int threads) {
  world w;
  world_begin(&w, list, threads, SHARE_ALL);
  for (int k = 0; k < 20; ++k) {
    int x = 0, a = 0, b = 0, c = 0, flag = 1;
    bind_ptr(&w, X, &x);
    bind_ptr(&w, A, &a);
    bind_ptr(&w, B, &b);
    bind_ptr(&w, C, &c);
    bind_ptr(&w, FLAG, &flag);
    answer = k % 2 ? GK_OK : GK_ERROR_DEVICE;
    start_apart();
    split_all(&w);
    const gk_result result = world_launch(&w, 0);
    assert_int_equal(result, answer);
    assert_false(apart);
    if (answer != GK_OK) assert_says("the solver says no");
    assert_int_equal(a, answer == GK_OK);
    assert_int_equal(b, 1);
    assert_int_equal(c, answer == GK_OK);
  }
  world_end(&w);
}

static void test_call_fails_beside_others(void **state) {
  (void)state;
  static const gk_task straight_tasks[] = {
    GK_PARALLEL,
      GK_SECTION, GK_CALL(answer_later, X), GK_RUN(raise, GK_ONE, A), GK_END,
      GK_SECTION, GK_RUN(arriving, GK_ONE, B), GK_END,
    GK_END,
    GK_RUN(raise, GK_ONE, C),
  };
  static const gk_task first_is_other[] = {
    GK_PARALLEL,
      GK_SECTION, GK_RUN(arriving, GK_ONE, B), GK_END,
      GK_SECTION, GK_CALL(answer_later, X), GK_RUN(raise, GK_ONE, A), GK_END,
    GK_END,
    GK_RUN(raise, GK_ONE, C),
  };
  static const gk_task walked_tasks[] = {
    GK_PARALLEL,
      GK_SECTION, GK_IF(FLAG), GK_CALL(answer_later, X), GK_RUN(raise, GK_ONE, A), GK_END, GK_END,
      GK_SECTION, GK_RUN(arriving, GK_ONE, B), GK_END,
    GK_END,
    GK_RUN(raise, GK_ONE, C),
  };
  static const gk_task inner_tasks[] = {
    GK_PARALLEL,
      GK_SECTION,
        GK_PARALLEL,
          GK_SECTION, GK_CALL(answer_later, X), GK_END,
          GK_SECTION, GK_RUN(arriving, GK_ONE, B), GK_END,
        GK_END,
        GK_RUN(raise, GK_ONE, A),
      GK_END,
    GK_END,
    GK_RUN(raise, GK_ONE, C),
  };
  static const gk_list lists[] = {GK_LIST(lists[0], straight_tasks, slots), GK_LIST(lists[1], first_is_other, slots),
                                  GK_LIST(lists[2], walked_tasks, slots), GK_LIST(lists[3], inner_tasks, slots)};
  needs_threads(4);
  for (size_t k = 0; k < GK_COUNT(lists); ++k)
    for (int threads = 2; threads <= 4; ++threads) check_failure(&lists[k], threads);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sums_side_by_side),
    cmocka_unit_test(test_call_fails_beside_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
