/* The team's threads on cores of their own: threads that don't come, or came to their leader's core, are moved to
 * others. How long a leader polls meanwhile. The test plays the system, so it runs on any machine. */
#include "unit/support/await.h"
#include "world.h"
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <omp.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SLOTS = 10, MOST_CALLS = 64, SLEEPER_COUNT = SLOTS - 1 };
typedef struct call { pid_t thread; uint64_t cores; } call;
static bool is_real;
static atomic_int here;           /* the core of the thread that asks */
static uint64_t allowed;          /* cores that all may be on, a bit each */
static int asking_fails, moves_left; /* moves_left: until moving a thread fails */
static call calls[MOST_CALLS];
static int call_count;
static void (*when_moved)(void);
WRAPPED(int, sched_getcpu, void) { return atomic_load(&here); }

WRAPPED(int, sched_getaffinity, pid_t thread, size_t bytes, cpu_set_t *cores) {
  if (is_real) return __real_sched_getaffinity(thread, bytes, cores);
  CPU_ZERO_S(bytes, cores);
  for (size_t k = 0; k < 64; ++k)
    if (allowed >> k & 1) CPU_SET_S(k, bytes, cores);
  return asking_fails ? -1 : 0;
}

static uint64_t bits_of(const cpu_set_t *cores, size_t bytes) {
  uint64_t bits = 0;
  for (size_t k = 0; k < 64; ++k)
    if (CPU_ISSET_S(k, bytes, cores)) bits |= (uint64_t)1 << k;
  return bits;
}

WRAPPED(int, sched_setaffinity, pid_t thread, size_t bytes, const cpu_set_t *cores) {
  if (is_real) return __real_sched_setaffinity(thread, bytes, cores);
  assert_true(call_count < MOST_CALLS);
  calls[call_count++] = (call){thread, bits_of(cores, bytes)};
  if (when_moved) when_moved();
  return moves_left-- > 0 ? 0 : -1;
}

static _Thread_local int *yields; /* of this thread, if they are counted */
static int done_at; /* the yield in which the job is done, or 0 */
static void finish(void);

/* In front of the C library's. */
int sched_yield(void) {
  if (!yields) return (int)syscall(SYS_sched_yield);
  if (++*yields == done_at) finish();
  return 0;
}

static pthread_t sleepers[SLEEPER_COUNT];
static pthread_mutex_t bed = PTHREAD_MUTEX_INITIALIZER;
static void *sleep_on(void *at) {
  atomic_store((atomic_int *)at, (int)syscall(SYS_gettid));
  pthread_mutex_lock(&bed);
  pthread_mutex_unlock(&bed);
  return NULL;
}

static gki_team team; /* its threads never come */
static gki_team_job job;

/* No thread is asleep, and on which core each began its part isn't known. */
static int begin(void **state) {
  (void)state;
  assert_true(gki_team_make(&team, SLOTS, 0));
  team.in_use = SLOTS;
  team.crowded = false;
  pthread_mutex_lock(&bed);
  for (int k = 0; k < SLOTS; ++k) {
    gki_team_slot *slot = &team.slots[k];
    atomic_init(&slot->bell, 0);
    atomic_init(&slot->asleep, 0);
    atomic_init(&slot->tid, 0);
    atomic_init(&slot->cpu, -1);
    if (k == 0) continue;
    assert_int_equal(pthread_create(&sleepers[k - 1], NULL, sleep_on, &slot->tid), 0);
    await(atomic_load(&slot->tid) != 0);
  }
  job = (gki_team_job){0};
  is_real = false;
  atomic_store(&here, 2);
  allowed = 0xf;
  asking_fails = call_count = 0;
  moves_left = MOST_CALLS;
  when_moved = NULL;
  return 0;
}

static void finish(void) { atomic_store(&job.pending, 0); }
static int end(void **state) {
  (void)state;
  pthread_mutex_unlock(&bed);
  for (int k = 0; k < SLEEPER_COUNT; ++k) pthread_join(sleepers[k], NULL);
  gki_team_free(&team);
  return 0;
}

/* They are all done when the leader sleeps, which is behind all that it does. */
static void *come_at_last(void *at) {
  enum { SLEEPS = INT32_MIN };
  (void)at;
  await(atomic_load(&job.pending) & (uint32_t)SLEEPS);
  atomic_store(&job.pending, (uint32_t)SLEEPS);
  syscall(SYS_futex, &job.pending, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  return NULL;
}

static void ask(gki_team *asked, gki_team_job *it) {
  gki_team_post(asked, it, 0, 2, 2);
  gki_team_wait(asked, it);
}

static void wait_for_parts(uint32_t first, uint32_t count, uint32_t parts) {
  pthread_t late;
  gki_team_post(&team, &job, first, count, parts);
  assert_int_equal(pthread_create(&late, NULL, come_at_last, NULL), 0);
  gki_team_wait(&team, &job);
  pthread_join(late, NULL);
}
static void wait_for(uint32_t first, uint32_t count) { wait_for_parts(first, count, count); }
typedef struct sending {
  const char *what;
  uint32_t first, count, parts;      /* of the job; by default for the first two, and a part for each */
  struct { int slot, cpu; } came[3]; /* before */
  int sent[5];                       /* these slots' threads are, for a moment, to these cores */
  uint64_t to, forbidden;
  bool crowded, has_no_core, asking_fails, has_not_begun;
} sending;

static void check_sending(const sending *s) {
  const uint32_t count = s->count ? s->count : 2;
  int sent = 0;
  for (size_t k = 0; k < GK_COUNT(s->came); ++k)
    if (s->came[k].slot) atomic_store(&team.slots[s->came[k].slot].cpu, s->came[k].cpu);
  allowed &= ~s->forbidden;
  team.crowded = s->crowded;
  asking_fails = s->asking_fails;
  if (s->has_no_core) atomic_store(&here, -1);
  if (s->has_not_begun) atomic_store(&team.slots[1].tid, 0);
  wait_for_parts(s->first, count, s->parts ? s->parts : count);
  for (; s->sent[sent]; ++sent)
    for (int k = 2 * sent; k <= 2 * sent + 1 && k < call_count; ++k)
      if (calls[k].thread != atomic_load(&team.slots[s->sent[sent]].tid) ||
          calls[k].cores != (k % 2 ? allowed : s->to))
        fail_msg("%s: call %d, thread %d to %#" PRIx64, s->what, k, (int)calls[k].thread, calls[k].cores);
  if (call_count != 2 * sent) fail_msg("%s: %d calls", s->what, call_count);
}

#define CASE(test) TEST_WITH(test, begin, end)

CASE(test_which_threads_are_sent_where) {
  static const sending cases[] = {
    {"a thread that didn't come", .sent = {1}, .to = 0xb},
    {"one that came to the leader's core", .came = {{1, 2}}, .sent = {1}, .to = 0xb},
    {"one that came elsewhere", .came = {{1, 3}}},
    {"cores of others, but for the first, which isn't of the subteam", .first = 3, .count = 4,
     .came = {{1, 0}, {4, 3}, {6, 2}}, .sent = {5, 6}, .to = 0x3},
    {"only threads that got a part", .first = 1, .count = 6, .parts = 3, .sent = {3, 5}, .to = 0xb},
    {"a few at most", .count = SLOTS, .sent = {1, 2, 3, 4}, .to = 0xb},
    {"the leader's core alone", .forbidden = 0xb}, {"any core but the leader's", .forbidden = 0xc},
    {"no core", .forbidden = 0xf}, {"threads take turns", .crowded = true},
    {"a leader on no core", .has_no_core = true}, {"a system that doesn't say", .asking_fails = true},
    {"a thread that has not begun", .has_not_begun = true}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    check_sending(&cases[k]);
    end(state);
    begin(state);
  }
}

/* It doesn't undo a move that it didn't make. */
CASE(test_a_system_that_moves_none) {
  moves_left = 0;
  wait_for(0, 2);
  assert_int_equal(call_count, 1);
}

static void one_comes(void) {
  if (call_count == 1) atomic_fetch_sub(&job.pending, 1);
}

CASE(test_once_per_wait) {
  when_moved = one_comes; /* so it waits again for the other threads */
  wait_for(0, 3);
  assert_int_equal(call_count, 4);
  wait_for(0, 3);
  assert_int_equal(call_count, 8);
}

/* With the real system: moved anywhere, it may be where it was before. */
CASE(test_affinity_is_restored) {
  cpu_set_t before, after;
  is_real = true;
  assert_int_equal(sched_getaffinity(atomic_load(&team.slots[1].tid), sizeof before, &before), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET((size_t)cpu, &before)) continue;
    atomic_store(&here, cpu);
    wait_for(0, 2);
    assert_int_equal(sched_getaffinity(atomic_load(&team.slots[1].tid), sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
  }
}

/* The place of a sleeper that is woken is unknown until it reports one. */
CASE(test_sleepers_may_wake_anywhere) {
  atomic_store(&team.slots[2].asleep, 1);
  check_sending(&(sending){"a sleeper", .count = 3, .came = {{1, 3}, {2, 3}}, .sent = {2}, .to = 0x3});
  assert_int_equal(atomic_load(&team.slots[1].cpu), 3);
  assert_int_equal(atomic_load(&team.slots[2].cpu), -1);
}

/* @return how often the leader yields before it sleeps, or before all is done in that yield */
static int yields_of_wait(float part_ns, int all_done_at) {
  int count = 0;
  job.part_ns = part_ns;
  done_at = all_done_at;
  yields = &count;
  if (all_done_at || when_moved) ask(&team, &job);
  else wait_for(0, 2);
  yields = NULL;
  return count;
}

/* As long as a waking takes, or as a part does, up to a millisecond; where threads take turns not at all, nearly. */
CASE(test_how_often_it_yields) {
  assert_int_equal(yields_of_wait(0, 0), 40);
  assert_int_equal(yields_of_wait(300 * 39, 0), 40);
  assert_int_equal(yields_of_wait(300 * 100, 0), 100);
  assert_int_equal(yields_of_wait(1e12f, 0), 3000);
  team.crowded = true;
  assert_int_equal(yields_of_wait(300 * 100, 0), 4);
}

/* A thread that comes meanwhile is noticed at once, and no thread sleeps: also in the last yield before that. */
CASE(test_it_notices_a_thread_that_comes) {
  assert_int_equal(yields_of_wait(0, 25), 25);
  assert_int_equal(yields_of_wait(0, 40), 40);
  when_moved = finish; /* before it yields */
  call_count = 0;
  assert_int_equal(yields_of_wait(0, 0), 0);
}

static void nothing(gki_team_job *at, uint32_t index) { (void)at, (void)index; }
static void lead(gki_team *real) {
  const gki_team_slot *slot = &real->slots[1];
  gki_team_job one = {.work = nothing};
  gki_team_start(real);
  for (int cpu = 2; cpu > 0; --cpu) {
    atomic_store(&here, cpu);
    ask(real, &one);
    assert_true(atomic_load(&slot->tid) != 0 && atomic_load(&slot->tid) != (int)syscall(SYS_gettid));
    assert_int_equal(atomic_load(&slot->cpu), cpu);
  }
  await(gki_team_sleeps(real, 1));
  ask(real, &one);
  assert_int_equal(atomic_load(&slot->cpu), 1);
  gki_team_release(real);
}

/* The threads of a later start are those of the first. */
CASE(test_a_thread_that_comes_says_where) {
  needs_threads(2);
  TEAM(real, 2);
  lead(&real);
  const int thread = atomic_load(&real.slots[1].tid);
  lead(&real);
  assert_int_equal(atomic_load(&real.slots[1].tid), thread);
}

static int yields_before; /* of the helper, from the job before to this one */
static void note_yields(gki_team_job *at, uint32_t index) {
  static _Thread_local int count;
  (void)at;
  if (index == 0) return;
  yields_before = count;
  count = 0;
  yields = &count;
}

/* Threads that have done their part don't poll longer than it took, either. */
CASE(test_how_long_helpers_stay_awake) {
  static const struct { float part_ns; int yields; } jobs[] = {{300 * 100, 0}, {0, 100}, {300 * 50, 40}, {0, 50}};
  needs_threads(2);
  TEAM(real, 2);
  real.crowded = false;
  gki_team_start(&real);
  for (size_t k = 0; k < GK_COUNT(jobs); ++k) {
    ask(&real, &(gki_team_job){.work = note_yields, .part_ns = jobs[k].part_ns});
    assert_int_equal(yields_before, jobs[k].yields);
    await(gki_team_sleeps(&real, 1));
  }
}

/* Threads take turns only where there are more of them than cores. */
CASE(test_which_teams_are_crowded) {
  for (uint32_t more = 0; more < 2; ++more) {
    TEAM(real, (uint32_t)omp_get_num_procs() + more);
    assert_int_equal(real.crowded, more);
  }
}

/* The places are of two cores each, or place 1 of so many. */
static omp_proc_bind_t how_bound = omp_proc_bind_false;
static int place_count, in_place_1;
static struct bound { pthread_t thread; uint64_t cores; } bound[SLOTS];
static int bound_count;
WRAPPED(omp_proc_bind_t, omp_get_proc_bind, void) { return how_bound; }
WRAPPED(int, omp_get_num_places, void) { return place_count; }
WRAPPED(int, omp_get_place_num_procs, int place) {
  assert_in_range(place, 0, place_count - 1);
  return place == 1 ? in_place_1 : 2;
}
WRAPPED(void, omp_get_place_proc_ids, int place, int *cores) {
  for (int k = 0; k < (place == 1 ? in_place_1 : 2); ++k) cores[k] = 2 * place + k;
}
WRAPPED(int, pthread_setaffinity_np, pthread_t thread, size_t bytes, const cpu_set_t *cores) {
  assert_true(bound_count < SLOTS);
  bound[bound_count++] = (struct bound){thread, bits_of(cores, bytes)};
  return EINVAL; /* without them it runs as well */
}

/* As the runtimes do it with threads of their own. The leader's place is the first. */
CASE(test_places) {
  static const struct { omp_proc_bind_t how; int places; uint32_t threads; int expected[8]; } cases[] = {
    {omp_proc_bind_false, 4, 4, {-1}},         {omp_proc_bind_true, 0, 4, {-1}}, /* the runtime can't bind here */
    {omp_proc_bind_true, 4, 4, {1, 2, 3, -1}}, {omp_proc_bind_true, 8, 4, {1, 2, 3, -1}},
    {omp_proc_bind_close, 8, 3, {1, 2, -1}},   {omp_proc_bind_close, 3, 6, {0, 1, 1, 2, 2, -1}},
    {omp_proc_bind_spread, 8, 4, {2, 4, 6, -1}}, {omp_proc_bind_spread, 4, 4, {1, 2, 3, -1}},
    {omp_proc_bind_spread, 3, 6, {0, 1, 1, 2, 2, -1}}, {omp_proc_bind_master, 4, 3, {0, 0, -1}}};
  in_place_1 = 2;
  for (size_t c = 0; c < GK_COUNT(cases); ++c) {
    how_bound = cases[c].how;
    place_count = cases[c].places;
    bound_count = 0;
    TEAM(real, cases[c].threads);
    gki_team_start(&real);
    int count = 0;
    for (; cases[c].expected[count] >= 0; ++count) {
      assert_true(count < bound_count);
      assert_true(pthread_equal(bound[count].thread, real.slots[count + 1].thread));
      assert_int_equal(bound[count].cores, (uint64_t)3 << (2 * cases[c].expected[count]));
    }
    assert_int_equal(bound_count, count);
  }
  how_bound = omp_proc_bind_false;
}

/* A leader that is bound to a core by itself: the other threads may be where the team was made. */
CASE(test_leader_with_an_affinity_of_its_own) {
  static const struct { uint64_t made, started; int fails; uint64_t expected; } cases[] = {
    {0xf, 0xf, 0, 0}, {0xf, 0x2, 0, 0xf}, {0x6, 0x9, 0, 0x6}, {0xf, 0x2, 1, 0}};
  for (size_t c = 0; c < GK_COUNT(cases); ++c) {
    bound_count = 0;
    allowed = cases[c].made;
    asking_fails = cases[c].fails;
    TEAM(real, 3);
    asking_fails = 0;
    allowed = cases[c].started;
    gki_team_start(&real);
    assert_int_equal(bound_count, cases[c].expected ? 2 : 0);
    for (int k = 0; k < bound_count; ++k) {
      assert_true(pthread_equal(bound[k].thread, real.slots[k + 1].thread));
      assert_int_equal(bound[k].cores, cases[c].expected);
    }
  }
}

/* A place of no cores that this process may use, or of more than a set can hold, binds nothing. */
CASE(test_places_that_bind_nothing) {
  static const int counts[] = {0, CPU_SETSIZE + 1};
  how_bound = omp_proc_bind_true;
  place_count = 2;
  for (size_t k = 0; k < GK_COUNT(counts); ++k) {
    in_place_1 = counts[k];
    bound_count = 0;
    TEAM(real, 2);
    gki_team_start(&real);
    assert_int_equal(real.limit, 2);
    assert_int_equal(bound_count, 0);
  }
  how_bound = omp_proc_bind_false;
}

int main(void) { return run_all_tests(); }
