/* The OpenMP backend: sections that run side by side for sure, as the test sets the learned costs, and their tasks wait
 * for each other. */
#include "base/within.h"
#include "runtime/worker.h"
#include "unit/support/await.h"
#include "openmp/runner.h"
#include "world.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

enum { X = 1, Y, F, G, D, E, I, J, N, FLAG, A, B, C, ONE, BIG, TWO_ITEMS, TOO_MANY, MOST_PARTIALS = 64, ITEMS = 1000 };
typedef struct big { char bytes[4096]; } big;
static const gk_slot_desc slots[] = {
  GK_BUFFER(X, int), GK_BUFFER(Y, int), GK_BUFFER(F, float), GK_BUFFER(G, float), GK_BUFFER(D, double),
  GK_BUFFER(E, double), GK_BUFFER(I, int), GK_BUFFER(J, int), GK_SCALAR(N, int), GK_BUFFER(FLAG, int),
  GK_BUFFER(A, int), GK_BUFFER(B, int), GK_BUFFER(C, int), GK_SCALAR(ONE, int), GK_STRUCT_VALUE(BIG, big),
  GK_SCALAR(TWO_ITEMS, int), GK_SCALAR(TOO_MANY, int64_t)};

static atomic_uint here; /* bits of the sections that have come to this launch */

/* A launch in which every PARALLEL runs its sections side by side. */
static gk_result launch_split(world *w) {
  here = 0;
  for (uint32_t k = 0; k < w->program.fork_count; ++k)
    w->program.forks[k].trial = (gki_trial){
      .split = true, .series_samples = UINT8_MAX, .split_samples = UINT8_MAX, .series_ns = 1e9f, .split_ns = 1,
      .last_ns = 1, .lately_ns = 1, .wait = 1000, .pause = 1000};
  return world_launch(w, 0);
}

/* Until `all` have come: sections that run one after the other would wait in vain. */
static void meet(unsigned section, unsigned all) {
  atomic_fetch_or(&here, section);
  await((atomic_load(&here) & all) == all);
}

typedef struct partials { unsigned section; atomic_uint count; const void *at[MOST_PARTIALS]; } partials;
static partials of_section[4];

/* Notes where it adds to; the first calls of both sections are under way at once. */
HAND_KERNEL(adding, IN(int), SUM(float), SUM(double), SUM(int)) {
  partials *own = args[0].ptr;
  const uint32_t at = atomic_fetch_add(&own->count, 1);
  if (at < MOST_PARTIALS) own->at[at] = args[1].ptr;
  meet(own->section, 3);
  for (size_t k = range.begin; k < range.end; ++k) {
    *(float *)args[1].ptr += 1;
    *(double *)args[2].ptr += 2;
    *(int *)args[3].ptr += 3;
  }
}

/* Of whole numbers, so that no order matters. */
static void check_sums(world *w) {
  static big whole, now;
  memset(&whole, 0xA5, sizeof whole);
  bind_ptr(w, BIG, &whole);
  for (int k = 0; k < 10; ++k) {
    struct { float f; double d; int i; } sums[2] = {{1, 3, 5}, {2, 4, 6}};
    int flag = 1;
    for (int s = 0; s < 2; ++s) {
      of_section[s] = (partials){.section = 1u << s};
      BIND(w, {X + s, {.ptr = &of_section[s]}}, {F + s, {.ptr = &sums[s].f}}, {D + s, {.ptr = &sums[s].d}},
              {I + s, {.ptr = &sums[s].i}});
    }
    BIND(w, {N, {.i32 = ITEMS}}, {FLAG, {.ptr = &flag}});
    assert_ok(launch_split(w));
    for (int s = 0; s < 2; ++s) {
      assert_true(sums[s].f == (float)(ITEMS + 1 + s) && sums[s].d == 2 * ITEMS + 3 + s);
      assert_int_equal(sums[s].i, 3 * ITEMS + 5 + s);
      assert_int_equal(of_section[s].count, w->threads); /* one partial sum per thread of the device */
    }
    for (uint32_t a = 0; a < of_section[0].count; ++a)
      for (uint32_t b = 0; b < of_section[1].count; ++b) assert_ptr_not_equal(of_section[0].at[a], of_section[1].at[b]);
  }
  memcpy(&now, w->program.structs[BIG], sizeof now); /* which lies behind the partial sums */
  assert_memory_equal(&now, &whole, sizeof whole);
}

/* Sections add up in memory of their own, with any number of partial sums and any threads. */
TEST(test_sums_side_by_side) {
  LIST(straight, PARALLEL(SECTION(GK_RUN(adding, N, X, F, D, I)), SECTION(GK_RUN(adding, N, Y, G, E, J))));
  LIST(walked, PARALLEL(SECTION(GK_RUN(adding, N, X, F, D, I)), SECTION(IF(FLAG, GK_RUN(adding, N, Y, G, E, J)))));
  needs_threads(7);
  FOR_EACH_TEAM(w, &straight, 2, 3, 4, 7) check_sums(&w);
  FOR_EACH_TEAM(w, &walked, 2, 3, 4, 7) check_sums(&w);
}

static pthread_t only_one;
static int in_turn;
HAND_KERNEL(adding_in_turn, IN(int), SUM(float), SUM(double)) {
  assert_true(pthread_equal(pthread_self(), only_one));
  assert_int_equal(in_turn++, *(int *)args[0].ptr);
  *(float *)args[1].ptr += (float)(range.end - range.begin);
  *(double *)args[2].ptr += (double)(range.end - range.begin);
}

/* Sections that add floats or doubles to one slot run in their order, even if another order is faster. */
TEST(test_sums_that_meet_come_in_order) {
#define FIRST(f, d) GK_RUN(adding_in_turn, ONE, X, f, d)
#define SECOND(f, d) SECTION(GK_RUN(adding_in_turn, ONE, Y, f, d))
  LIST(straight_floats, PARALLEL(SECTION(FIRST(F, D)), SECOND(F, E)));
  LIST(walked_floats, PARALLEL(SECTION(IF(FLAG, FIRST(F, D))), SECOND(F, E)));
  LIST(straight_doubles, PARALLEL(SECTION(FIRST(F, D)), SECOND(G, D)));
  LIST(walked_doubles, PARALLEL(SECTION(IF(FLAG, FIRST(F, D))), SECOND(G, D)));
  static const gk_list *const lists[] = {&straight_floats, &walked_floats, &straight_doubles, &walked_doubles};
  only_one = pthread_self();
  for (size_t l = 0; l < GK_COUNT(lists); ++l) {
    int turns[2] = {0, 1}, flag = 1;
    float f[2] = {0};
    double d[2] = {0};
    WORLD(w, lists[l], 2, SHARE_ALL);
    assert_int_equal(w.program.fork_count, 1);
    assert_true(w.program.forks[0].in_order);
    BIND(&w, {X, {.ptr = &turns[0]}}, {Y, {.ptr = &turns[1]}}, {F, {.ptr = &f[0]}}, {G, {.ptr = &f[1]}},
             {D, {.ptr = &d[0]}}, {E, {.ptr = &d[1]}}, {ONE, {.i32 = 1}}, {FLAG, {.ptr = &flag}});
    for (int k = 0; k < 10; ++k) {
      in_turn = 0;
      assert_ok(launch_split(&w));
      assert_int_equal(in_turn, 2);
    }
    assert_true(f[0] + f[1] == 20 && d[0] + d[1] == 20);
  }
}

static world *launched;
CALLED(await_helper) {
  await(gki_team_sleeps(&launched->device.team, (uint32_t)args[0].i32));
  return GK_OK;
}

HAND_KERNEL(little, INOUT(int)) {}

/* The thread that leads the launch learns the cost of wakings and dispatches; sections side by side don't. */
TEST(test_sections_keep_learned_costs) {
  enum { HELPER = N, OTHER = ONE };
#define LITTLE(x) GK_RUN(little, TWO_ITEMS, x), GK_RUN(little, TWO_ITEMS, x)
  LIST(list, PARALLEL(SECTION(GK_CALL(await_helper, HELPER), LITTLE(X)),
                      SECTION(GK_CALL(await_helper, OTHER), LITTLE(Y))));
  TEAM_WORLD(w, &list, 4);
  w.costs = AS_MEASURED; /* what is given is given once */
  launched = &w;
  BIND(&w, {HELPER, {.i32 = 1}}, {OTHER, {.i32 = 3}}, {TWO_ITEMS, {.i32 = 2}});
  for (int k = 0; k < 10; ++k) {
    float dispatch_ns = k % 2 ? 2e-9f : 1e-9f;
    const float floor_ns = k % 2 ? 1e-9f : 1e9f; /* all is short enough to learn from it, or to be forgotten */
    w.device.dispatch_ns = dispatch_ns;
    w.device.dispatch_floor_ns = floor_ns;
    w.device.wake_ns = 1e-9f;
    if (dispatch_ns > floor_ns) dispatch_ns += (floor_ns - dispatch_ns) / 16; /* by the launch, once */
    for (uint32_t op = 0; op < w.program.op_count; ++op) w.program.ops[op].countdown = 1;
    assert_ok(launch_split(&w));
    assert_true(w.device.dispatch_ns == dispatch_ns);
    assert_true(w.device.wake_ns == fmaxf(1.5f * 1e-9f, dispatch_ns)); /* by the start */
  }
}

/* Four at once: sections in sections. */
HAND_KERNEL(beside, IN(int), SUM(int)) {
  partials *own = args[0].ptr;
  own->at[own->count++] = args[1].ptr;
  meet(own->section, 15);
  for (size_t k = range.begin; k < range.end; ++k) ++*(int *)args[1].ptr;
}

/* The sums of each section use memory of that section's team slots alone. */
TEST(test_sums_in_sections_of_sections) {
#define BOTH(x, y) PARALLEL(SECTION(GK_RUN(beside, N, x, I)), SECTION(GK_RUN(beside, N, y, I)))
  LIST(list, PARALLEL(SECTION(BOTH(X, Y)), SECTION(BOTH(A, B))));
  static const gk_slot own[] = {X, Y, A, B};
  TEAM_WORLD(w, &list, 4);
  for (int k = 0; k < 10; ++k) {
    int i = 1;
    for (int s = 0; s < 4; ++s) {
      of_section[s] = (partials){.section = 1u << s};
      bind_ptr(&w, own[s], &of_section[s]);
    }
    BIND(&w, {I, {.ptr = &i}}, {N, {.i32 = ITEMS}});
    assert_ok(launch_split(&w));
    assert_int_equal(i, 4 * ITEMS + 1);
    for (unsigned a = 0; a < 4; ++a)
      for (unsigned b = 0; b < a; ++b) assert_ptr_not_equal(of_section[a].at[0], of_section[b].at[0]);
  }
}

/* The result of each section is known behind the PARALLEL. */
TEST(test_bounds_side_by_side) {
  LIST(list, PARALLEL(SECTION(GK_DO_WHILE(A, .max_iterations = 2), GK_FILL(C, GK_ONE, 0), GK_END),
                      SECTION(GK_DO_WHILE(B, .max_iterations = 3), GK_FILL(J, GK_ONE, 0), GK_END)));
  TEAM_WORLD(w, &list, 2);
  for (uint32_t bound = 0; bound < 2; ++bound) {
    int again[2] = {bound == 0, bound == 1}, filled[2];
    BIND(&w, {A, {.ptr = &again[0]}}, {B, {.ptr = &again[1]}}, {C, {.ptr = &filled[0]}}, {J, {.ptr = &filled[1]}});
    assert_ok(launch_split(&w));
    for (uint32_t s = 0; s < 2; ++s) assert_int_equal(w.record.passes[s], s == bound ? 2 + s : 1);
    assert_int_equal(w.record.limit, w.plan->loops[bound]);
  }
}

/* The memory of a sum faults when it is written, and another section adds to it in that moment. */
static union sum { float f; double d; int i; char bytes[4096]; } *page;
static int faults;
static gk_slot other_sum;
static void add_meanwhile(int signal) {
  (void)signal;
  if (++faults > 1 || mprotect(page, sizeof *page, PROT_READ | PROT_WRITE) != 0) abort();
  if (other_sum == F) page->f += 100;
  else if (other_sum == D) page->d += 100;
  else page->i += 100;
}

TEST(test_a_sum_is_added_to_what_is_there) {
  LIST(list, GK_RUN(adding, N, X, F, D, I));
  struct sigaction before;
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(page, MAP_FAILED);
  assert_int_equal(sigaction(SIGSEGV, &(struct sigaction){.sa_handler = add_meanwhile}, &before), 0);
  static const struct { gk_slot slot; union sum sum; } cases[] = {
    {F, {.f = 100 + ITEMS}}, {D, {.d = 100 + 2 * ITEMS}}, {I, {.i = 100 + 3 * ITEMS}}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    float f = 1;
    double d = 1;
    int i = 1;
    WORLD(w, &list, 1, SHARE_NOTHING);
    of_section[0] = (partials){.section = 3}; /* it meets itself */
    BIND(&w, {X, {.ptr = &of_section[0]}}, {F, {.ptr = &f}}, {D, {.ptr = &d}}, {I, {.ptr = &i}}, {N, {.i32 = ITEMS}});
    bind_ptr(&w, cases[k].slot, page);
    faults = 0;
    other_sum = cases[k].slot;
    memset(page, 0, sizeof *page);
    assert_int_equal(mprotect(page, sizeof *page, PROT_READ), 0);
    assert_ok(launch_split(&w));
    assert_int_equal(faults, 1);
    assert_memory_equal(page, &cases[k].sum, sizeof *page);
  }
  sigaction(SIGSEGV, &before, NULL);
  munmap(page, sizeof *page);
}

enum { CHUNKED = 20000 };
static pthread_t first_leader;
static _Atomic(void *) leaders_own; /* what its section works on */
static atomic_bool leader_begun, other_begun;
CALLED(begin_second) {
  if (!pthread_equal(pthread_self(), first_leader)) return GK_OK;
  atomic_store(&leaders_own, args[0].ptr);
  await(atomic_load(&other_begun));
  return GK_OK;
}

HAND_KERNEL(touching, INOUT(uint8_t)) {
  unsigned char *x = args[0].ptr;
  for (size_t k = range.begin; k < range.end; ++k) __atomic_fetch_add(&x[k], 1, __ATOMIC_RELAXED);
  const bool leads = atomic_load(&leaders_own) == (void *)x;
  atomic_store(leads ? &leader_begun : &other_begun, true);
  if (!leads) await(atomic_load(&leader_begun));
}

/* A task is cut into chunks while the subteam behind is at its own: neither does an item twice, or leaves one out. */
TEST(test_chunks_side_by_side) {
  LIST(list, PARALLEL(SECTION(GK_CALL(begin_second, X), GK_RUN(touching, N, X)),
                      SECTION(GK_CALL(begin_second, Y), GK_RUN(touching, N, Y))));
  static unsigned char touched[2][CHUNKED];
  TEAM_WORLD(w, &list, 4);
  BIND(&w, {X, {.ptr = touched[0]}}, {Y, {.ptr = touched[1]}}, {N, {.i32 = CHUNKED}});
  first_leader = pthread_self();
  for (int k = 0; k < 20; ++k) {
    memset(touched, 0, sizeof touched);
    atomic_store(&leaders_own, NULL);
    atomic_store(&leader_begun, false);
    atomic_store(&other_begun, false);
    for (uint32_t op = 0; op < w.program.op_count; ++op) w.program.ops[op].cost_ns = 1000; /* worth many chunks */
    assert_ok(launch_split(&w));
    for (int s = 0; s < 2; ++s)
      for (int i = 0; i < CHUNKED; ++i) assert_int_equal(touched[s][i], 1);
  }
}

HAND_KERNEL(increase, INOUT(int)) { ++*(int *)args[0].ptr; }

static struct { int x, a, b, c, flag; } ints;
static void bind_ints(world *w) {
  ints.x = ints.a = ints.b = ints.c = 0;
  ints.flag = 1;
  BIND(w, {X, {.ptr = &ints.x}}, {Y, {.ptr = &ints.x}}, {A, {.ptr = &ints.a}}, {B, {.ptr = &ints.b}},
          {C, {.ptr = &ints.c}}, {FLAG, {.ptr = &ints.flag}});
}

static gk_result answer;
CALLED(answer_later) {
  meet(1, 3);
  return answer == GK_OK ? GK_OK : gk_fail(answer, "the solver says no");
}

HAND_KERNEL(arriving, INOUT(int)) {
  meet(2, 3);
  ++*(int *)args[0].ptr;
}

/* No task behind the call in its section, and none behind the PARALLEL; the other section's running task is done. */
static void check_failure(world *w) {
  for (int k = 0; k < 20; ++k) {
    bind_ints(w);
    answer = k % 2 ? GK_OK : GK_ERROR_DEVICE;
    assert_int_equal(launch_split(w), answer);
    if (answer != GK_OK) assert_says("the solver says no");
    assert_int_equal(ints.a, answer == GK_OK);
    assert_int_equal(ints.b, 1);
    assert_int_equal(ints.c, answer == GK_OK);
  }
}

TEST(test_call_fails_beside_others) {
#define CALL GK_CALL(answer_later, X)
#define THEN GK_RUN(increase, GK_ONE, A)
#define OTHER SECTION(GK_RUN(arriving, GK_ONE, B))
#define BEHIND GK_RUN(increase, GK_ONE, C)
  LIST(straight, PARALLEL(SECTION(CALL, THEN), OTHER), BEHIND);
  LIST(first_is_other, PARALLEL(OTHER, SECTION(CALL, THEN)), BEHIND);
  LIST(walked, PARALLEL(SECTION(IF(FLAG, CALL, THEN)), OTHER), BEHIND);
  LIST(inner, PARALLEL(SECTION(PARALLEL(SECTION(CALL), OTHER), THEN)), BEHIND);
  static const gk_list *const lists[] = {&straight, &first_is_other, &walked, &inner};
  needs_threads(4);
  for (size_t k = 0; k < GK_COUNT(lists); ++k)
    FOR_EACH_TEAM(w, lists[k], 2, 3, 4) check_failure(&w);
}

static bool has_failed(void) { return gki_openmp_failed(&launched->program); }
CALLED(fail_first) {
  meet(1, 3);
  return gk_fail(GK_ERROR_DEVICE, "the first one says no");
}
CALLED(fail_second) {
  meet(2, 3);
  await(has_failed());
  return gk_fail(GK_ERROR_INVALID, "the second one says no");
}

TEST(test_the_first_failure_is_told) {
  LIST(list, PARALLEL(SECTION(GK_CALL(fail_second, X)), SECTION(GK_CALL(fail_first, Y))));
  TEAM_WORLD(w, &list, 2);
  launched = &w;
  bind_ints(&w);
  for (int k = 0; k < 20; ++k) {
    assert_int_equal(launch_split(&w), GK_ERROR_DEVICE);
    assert_string_equal(gk_error(), "the first one says no");
  }
}

HAND_KERNEL(outlasting, INOUT(int)) {
  meet(2, 3);
  await(has_failed());
  if (++*(int *)args[0].ptr > 1000) ints.flag = 0; /* a loop that goes on nevertheless */
}

/* Sections that no thread has begun stay undone; running tasks are done. */
TEST(test_nothing_is_begun_after_a_failure) {
#define REST SECTION(GK_CALL(fail_first, X), GK_RUN(increase, GK_ONE, A)), SECTION(GK_RUN(increase, GK_ONE, C))
  LIST(straight, PARALLEL(SECTION(GK_RUN(outlasting, GK_ONE, B)), REST));
  LIST(walked, PARALLEL(SECTION(LOOP(FLAG, GK_RUN(outlasting, GK_ONE, B))), REST));
  static const gk_list *const lists[] = {&straight, &walked};
  needs_threads(2);
  for (size_t l = 0; l < GK_COUNT(lists); ++l) {
    WORLD(w, lists[l], 2, SHARE_ALL);
    launched = &w;
    bind_ints(&w);
    for (int k = 1; k <= 20; ++k) {
        assert_int_equal(launch_split(&w), GK_ERROR_DEVICE);
      assert_int_equal(ints.a, 0);
      assert_int_equal(ints.b, k); /* an endless loop ends behind its pass */
      assert_int_equal(ints.c, 0);
    }
  }
}

CALLED(complain) {
  gk_fail(GK_ERROR_INVALID, "which came right in the end");
  return GK_OK;
}
CALLED(fail_silently) { return GK_ERROR_DEVICE; }

/* A call that fails without a message doesn't get the message of an earlier call. */
TEST(test_each_call_says_its_own) {
  LIST(list, GK_CALL(complain, X), GK_CALL(fail_silently, X));
  WORLD(w, &list, 1, SHARE_NOTHING);
  bind_ints(&w);
  assert_int_equal(world_launch(&w, 0), GK_ERROR_DEVICE);
  assert_string_equal(gk_error(), "task 1 (fail_silently): the call answered GK_ERROR_DEVICE");
}

/* Nor of a bad count behind it. */
TEST(test_a_bad_count_says_its_own) {
  LIST(list, GK_CALL(complain, X), GK_RUN(little, TOO_MANY, X));
  WORLD(w, &list, 1, SHARE_NOTHING);
  BIND(&w, {X, {.ptr = &ints.x}}, {TOO_MANY, {.i64 = (int64_t)INT32_MAX + 1}});
  assert_fails(GK_ERROR_INVALID, "task 1 (little)", world_launch(&w, 0));
}

static gki_worker line; /* the device's */
static atomic_int refused;
CALLED(ask_worker) {
  meet(*(const unsigned *)args[0].ptr, 3);
  const bool says = gki_refuse_within(&line, "gk_wait") == GK_ERROR_INVALID &&
                    strstr(gk_error(), "gk_wait: task") && strstr(gk_error(), "(ask_worker) calls it");
  if (says) atomic_fetch_add(&refused, 1);
  return GK_OK;
}

typedef struct launch_job { gki_job job; world *w; } launch_job;
static void run_world(gki_job *job) { assert_ok(launch_split(((launch_job *)job)->w)); }

/* Threads that work for the device may not wait for it, and only while they work for it. */
TEST(test_calls_run_as_the_devices_own) {
  LIST(list, PARALLEL(SECTION(GK_CALL(ask_worker, X)), SECTION(GK_CALL(ask_worker, Y))));
  unsigned sections[2] = {1, 2};
  TEAM_WORLD(w, &list, 2);
  BIND(&w, {X, {.ptr = &sections[0]}}, {Y, {.ptr = &sections[1]}});
  assert_int_equal(gki_worker_start(&line), GK_OK);
  launch_job job = {.job.run = run_world, .w = &w};
  for (int inside = 0; inside < 3; ++inside) {
    atomic_store(&refused, 0);
    if (inside == 1) gki_worker_run(&line, &job.job);
    else run_world(&job.job);
    assert_int_equal(atomic_load(&refused), inside == 1 ? 2 : 0);
  }
  gki_worker_stop(&line);
}

int main(void) { return run_all_tests(); }
