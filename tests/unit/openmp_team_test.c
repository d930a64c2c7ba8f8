/* The OpenMP backend: sums, which are the same for any number of threads; tasks that wake others, and those that don't;
 * out of memory. */
#include "openmp_items.h"
#include "openmp/drive.h"
#include "gk_kernel.h"
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const int thread_counts[] = {1, 2, 3, 8};
static const costs all_costs[] = {AS_MEASURED, SHARE_ALL, SHARE_NOTHING};

/* ---- sums -------------------------------------------------------------------------------------------------------- */

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
static const gk_slot_desc sum_slots[] = {GK_BUFFER(XS, float), GK_BUFFER(SF, float), GK_BUFFER(SD, double),
                                         GK_BUFFER(SI, int),   GK_BUFFER(SU, uint),  GK_SCALAR(SN, int)};
static const gk_task sum_tasks[] = {GK_RUN(add_all, SN, XS, SF, SD, SI, SU)};
static const gk_list sum_list = GK_LIST(sum_list, sum_tasks, sum_slots);

static float *numbers(void) {
  static float x[ITEMS_MAX];
  for (int k = 0; k < ITEMS_MAX; ++k) x[k] = 0.1f + (float)(k * 7919 % 1000) * 0.37f;
  return x;
}

static totals sum_up(world *w, int count) {
  totals t = {.f = 0.5f, .d = 0.25, .n = -7, .u = 3};
  bind_ptr(w, XS, numbers());
  bind_ptr(w, SF, &t.f);
  bind_ptr(w, SD, &t.d);
  bind_ptr(w, SI, &t.n);
  bind_ptr(w, SU, &t.u);
  bind_i32(w, SN, count);
  assert_runs(w);
  return t;
}

static void test_sums_are_the_same_bits(void **state) {
  (void)state;
  static const int counts[] = {1, 31, 32, 33, 64, 100, 1000, ITEMS_MAX};
  const float *x = numbers();
  for (size_t t = 0; t < GK_COUNT(thread_counts); ++t)
    for (size_t k = 0; k < GK_COUNT(counts); ++k) {
      totals first = {0};
      for (size_t c = 0; c < GK_COUNT(all_costs); ++c) {
        world w;
        world_begin(&w, &sum_list, thread_counts[t], all_costs[c]);
        for (int run = 0; run < RUNS; ++run) {
          totals now = sum_up(&w, counts[k]);
          if (run == 0 && c == 0) first = now;
          assert_memory_equal(&now.f, &first.f, sizeof now.f);
          assert_memory_equal(&now.d, &first.d, sizeof now.d);
          assert_int_equal(now.n, first.n);
          assert_int_equal(now.u, first.u);
        }
        world_end(&w);
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

static void test_sum_of_no_items(void **state) {
  (void)state;
  world w;
  world_begin(&w, &sum_list, 2, SHARE_ALL);
  totals t = sum_up(&w, 0);
  assert_true(t.f == 0.5f && t.d == 0.25 && t.n == -7 && t.u == 3);
  world_end(&w);
}

static void test_sum_of_a_strange_type(void **state) {
  (void)state;
  static const gk_param params[] = {{"total", "short", 2, 2, GK_PTR, GK_ACCESS_SUM}};
  static const gk_kernel strange = {.name = "strange", .params = params, .param_count = 1, .host = touch};
  static const gk_task tasks[] = {GK_RUN(strange, N, X)};
  static const gk_list list = GK_LIST(list, tasks, item_slots);
  world w;
  world_open(&w, 2);
  gki_begin();
  assert_int_equal(world_lower(&w, &list, 0), GK_ERROR_UNSUPPORTED);
  assert_says("task 0 (strange)");
  assert_says("short");
  world_end(&w);
}

/* ---- how many threads -------------------------------------------------------------------------------------------- */

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
  world w;
  world_begin(&w, &list, 8, AS_MEASURED);
  bind_ptr(&w, X, touched_bytes);
  bind_i32(&w, N, 3);
  worker = pthread_self();
  /* Nothing is timed: with sanitizers, on a core that others want, three items may in truth take long enough. */
  for (uint32_t k = 0; k < w.program.op_count; ++k) w.program.ops[k].countdown = UINT16_MAX;
  for (int k = 0; k < 20; ++k) assert_runs(&w);
  assert_true(threads_of_process() - before <= 1);
  assert_int_equal(atomic_load(&other_threads), 0);
  world_end(&w);
}

/* With OMP_THREAD_LIMIT the team is smaller than asked for: the bits must be those of the full team. */
static void child_thread_limit(void) {
  totals few[2];
  int before = threads_of_process();
  for (int k = 0; k < 2; ++k) {
    world w;
    world_begin(&w, &sum_list, 8, k ? SHARE_ALL : SHARE_NOTHING);
    for (int run = 0; run < 5; ++run) few[k] = sum_up(&w, ITEMS_MAX);
    assert_true(threads_of_process() - before <= atoi(getenv("OMP_THREAD_LIMIT")));
    world_end(&w);
  }
  assert_memory_equal(&few[0].f, &few[1].f, sizeof few[0].f);
  assert_memory_equal(&few[0].d, &few[1].d, sizeof few[0].d);
}

static void run_child(const char *what, const char *variable, const char *value) {
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (variable) setenv(variable, value, 1);
    execl("/proc/self/exe", "openmp_team_test", what, (char *)NULL);
    _exit(127);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_small_tasks_wake_nobody(void **state) {
  (void)state;
  run_child("small", NULL, NULL);
}

static void test_thread_limit(void **state) {
  (void)state;
  run_child("limit", "OMP_THREAD_LIMIT", "1");
  run_child("limit", "OMP_THREAD_LIMIT", "2");
  run_child("limit", "OMP_THREAD_LIMIT", "100");
}

static void spin_for(uint64_t ns) {
  for (uint64_t begin = gki_now(); gki_now() - begin < ns;) {}
}

/* One item is a millisecond of work: whatever waking takes here, it is worth it after a few times. */
static void toil(const gk_value *args, gk_range range) {
  touch(args, range);
  for (size_t k = range.begin; k < range.end; ++k) spin_for(1000000);
}
static const gk_kernel toiling = {.name = "toiling", .params = touch_params, .param_count = 1, .host = toil};

static const gk_task toil_tasks[] = {GK_RUN(toiling, N, X)};
static const gk_list toil_list = GK_LIST(toil_list, toil_tasks, item_slots);

static void begin_toil(world *w) {
  world_begin(w, &toil_list, 2, AS_MEASURED);
  worker = pthread_self();
  bind_ptr(w, X, touched_bytes);
  bind_i32(w, N, 8);
  atomic_store(&other_threads, 0);
}

static void assert_shared_within(world *w, int launches) {
  for (int k = 0; k < launches && !atomic_load(&other_threads); ++k) assert_runs(w);
  assert_true(atomic_load(&other_threads) > 0);
}

static void test_large_tasks_are_shared(void **state) {
  (void)state;
  world w;
  begin_toil(&w);
  assert_shared_within(&w, 100);
  char *text = gki_openmp.dump(&w.program, "text");
  assert_non_null(strstr(text, "task 0 (toiling): kernel, 8 items, "));
  free(text);
  assert_null(gki_openmp.dump(&w.program, "json"));
  world_end(&w);
}

static const uint64_t A_WHILE_NS = 20000000000;

/* As it is when the team has met where each hand-over took so long. It isn't doubted until doubted_at is set. */
static void begin_slow_moment(gki_openmp_device *device, float handoff_ns) {
  device->handoff_ns = device->handoff_floor_ns = handoff_ns;
  for (size_t k = 0; k < GK_COUNT(device->at_meeting_ns); ++k) device->at_meeting_ns[k] = handoff_ns;
  if (device->meetings == 0) device->meetings = 1;
  device->pause_ns = 1e6f;
  device->doubted_at = UINT64_MAX;
}

/* A hand-over that took very long when it was measured isn't held against the team for ever, nor for many launches. */
static void test_a_slow_moment_is_forgotten(void **state) {
  (void)state;
  world w;
  begin_toil(&w);
  assert_shared_within(&w, 100); /* now it is known what the task takes */
  begin_slow_moment(&w.device, 1e12f);
  const uint32_t meetings = w.device.meetings;
  for (int k = 0; k < 20; ++k) assert_runs(&w);
  assert_int_equal(w.device.meetings, meetings);
  atomic_store(&other_threads, 0);
  w.device.doubted_at = 0;
  assert_shared_within(&w, 50);
  assert_true(w.device.handoff_floor_ns < 1e12f);
  world_end(&w);
}

/* Found out at a meeting that nobody had doubted, it is over at once. */
static void test_a_good_moment_ends_a_slow_one(void **state) {
  (void)state;
  world w;
  world_open(&w, 2);
  begin_slow_moment(&w.device, 1e9f);
  gki_openmp_calibrate(&w.device, gki_now()); /* a team of one: nobody to wait for */
  assert_true(w.device.handoff_floor_ns < 1e6f);
  assert_true(w.device.handoff_ns == w.device.handoff_floor_ns);
  gki_openmp.close(&w.device);
}

/* Else tests that give costs would test something else. */
static void test_given_costs_are_not_doubted(void **state) {
  (void)state;
  world w;
  world_open(&w, 2);
  w.device.fixed = true;
  w.device.handoff_ns = w.device.handoff_floor_ns = 1e30f;
  assert_false(gki_openmp_forget(&w.device));
  assert_true(w.device.handoff_ns == 1e30f && w.device.handoff_floor_ns == 1e30f);
  w.device.fixed = false;
  assert_true(gki_openmp_forget(&w.device));
  assert_true(w.device.handoff_floor_ns == GKI_HANDOFF_NS);
  gki_openmp.close(&w.device);
}

/* Nor is a waking. */
static void test_a_slow_waking_is_forgotten(void **state) {
  (void)state;
  world w;
  begin_toil(&w);
  w.device.wake_ns = 1e9f;
  assert_shared_within(&w, 200);
  world_end(&w);
}

static world *looping;
static uint64_t looping_since;
static uint32_t passes, meetings_before;

/* Ends the loop when others have come, which they can't before the hundredth pass, or after a while. */
static gk_result doubt_in_time(const gk_value *args, void *stream) {
  (void)stream;
  int *again = args[0].ptr;
  if (++passes == 100) looping->device.doubted_at = 0;
  *again = !atomic_load(&other_threads) && gki_now() - looping_since < A_WHILE_NS;
  return GK_OK;
}

static void toil_a_little(const gk_value *args, gk_range range) {
  touch(args, range);
  for (size_t k = range.begin; k < range.end; ++k) spin_for(20000);
}

static const gk_kernel toiling_little = {
  .name = "toiling_little", .params = touch_params, .param_count = 1, .host = toil_a_little};
static const gk_task passes_tasks[] = {GK_DO_WHILE(COUNT, .max_iterations = 40), GK_RUN(toiling_little, N, X), GK_END};
static const gk_list passes_list = GK_LIST(list, passes_tasks, item_slots);

static void begin_loop(world *w, const gk_list *list, int *count) {
  world_begin(w, list, 2, AS_MEASURED);
  worker = pthread_self();
  bind_ptr(w, X, touched_bytes);
  bind_i32(w, N, 2);
  bind_ptr(w, COUNT, count);
  atomic_store(&other_threads, 0);
  looping = w;
  looping_since = gki_now();
  passes = meetings_before = 0;
}

/* Nor is it for as long as one launch may take. */
static void test_a_slow_moment_is_forgotten_in_a_loop(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_DO_WHILE(COUNT), GK_RUN(toiling_little, N, X), GK_CALL(doubt_in_time, COUNT),
                                  GK_END};
  static const gk_list list = GK_LIST(list, tasks, item_slots);
  int again = 1;
  world w;
  begin_loop(&w, &list, &again);
  begin_slow_moment(&w.device, 1e12f);
  assert_runs(&w);
  assert_true(atomic_load(&other_threads) > 0);
  assert_true(passes >= 100);
  assert_true(w.device.handoff_floor_ns < 1e12f);
  world_end(&w);
}

/* Ends the loop when it was measured once more after a moment that was slow while the team was there. */
static gk_result slow_down(const gk_value *args, void *stream) {
  (void)stream;
  int *again = args[0].ptr;
  gki_openmp_device *device = &looping->device;
  if (meetings_before == 0 && device->meetings > 0) {
    meetings_before = device->meetings;
    begin_slow_moment(device, 1e12f);
    device->doubted_at = 0;
  }
  const bool again_measured = meetings_before > 0 && device->meetings > meetings_before;
  *again = !again_measured && gki_now() - looping_since < A_WHILE_NS;
  return GK_OK;
}

/* Likewise where the team is there: it is measured again, rather than shared for as long as the launch may take with
 * what has become of the machine. */
static void test_a_team_is_measured_again(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_DO_WHILE(COUNT), GK_RUN(toiling_little, N, X), GK_CALL(slow_down, COUNT), GK_END};
  static const gk_list list = GK_LIST(list, tasks, item_slots);
  int again = 1;
  world w;
  begin_loop(&w, &list, &again);
  assert_runs(&w);
  assert_true(meetings_before > 0);
  assert_true(w.device.meetings > meetings_before);
  world_end(&w);
}

static cpu_set_t usual_cpus;

/* All threads of this process. @return Whether the system lets it. */
static bool run_only_on(const cpu_set_t *cpus) {
  bool done = true;
  DIR *folder = opendir("/proc/self/task");
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder));)
    if (entry->d_name[0] != '.') done &= sched_setaffinity(atoi(entry->d_name), sizeof *cpus, cpus) == 0;
  closedir(folder);
  return done;
}

static int run_where_usual(void **state) {
  (void)state;
  (void)run_only_on(&usual_cpus);
  return 0;
}

/* On one core a team that spins takes as long to hand over as it spins: it is asked ever less often whether it still
 * does, and works again once it has its cores. */
static void test_two_threads_on_one_core(void **state) {
  (void)state;
  cpu_set_t one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof usual_cpus, &usual_cpus) != 0 || CPU_COUNT(&usual_cpus) < 2) {
    print_message("there is one core, or it isn't known which there are\n");
    skip();
  }
  for (size_t cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &usual_cpus)) CPU_SET(cpu, &one);
  int always = 1;
  world w;
  begin_loop(&w, &passes_list, &always);
  assert_false(w.device.team.crowded);
  if (!run_only_on(&one)) {
    world_end(&w);
    print_message("the system doesn't let threads be kept on one core\n");
    skip();
  }
  const uint64_t begun = gki_now();
  while (w.device.pause_ns == 0 && gki_now() - begun < A_WHILE_NS) assert_runs(&w);
  const float floor_ns = w.device.handoff_floor_ns, pause_ns = w.device.pause_ns;
  const uint32_t meetings = w.device.meetings;
  const uint64_t since = gki_now();
  while (gki_now() - since < 150000000) assert_runs(&w);
  const uint32_t more = w.device.meetings - meetings;
  const float twice_ns = fminf(2 * pause_ns, 1e8f); /* the limit, which a busy machine reaches at once */
  while (w.device.meetings == meetings && gki_now() - since < A_WHILE_NS) assert_runs(&w);
  const float later_ns = w.device.pause_ns;
  (void)run_only_on(&usual_cpus);
  assert_true(floor_ns > GKI_HANDOFF_NS);
  assert_true(more < 15);
  assert_true(later_ns >= twice_ns);
  atomic_store(&other_threads, 0);
  const uint64_t apart = gki_now();
  while (!atomic_load(&other_threads) && gki_now() - apart < A_WHILE_NS) assert_runs(&w);
  assert_true(atomic_load(&other_threads) > 0);
  world_end(&w);
}

/* What is forgotten ends at what is usual: else every task would come to look large, and call the team for nothing. */
static void test_small_tasks_stay_small(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_RUN(touching, N, X)};
  static const gk_list list = GK_LIST(list, tasks, item_slots);
  world w;
  world_begin(&w, &list, 2, AS_MEASURED);
  bind_ptr(&w, X, touched_bytes);
  bind_i32(&w, N, 3);
  float begun_with = w.device.handoff_ns;
  for (int k = 0; k < 2000; ++k) {
    w.program.ops[0].countdown = UINT16_MAX; /* nothing is timed, as in child_small_tasks */
    assert_runs(&w);
  }
  assert_true(w.device.handoff_ns >= begun_with);
  assert_int_equal(w.device.meetings, 0);
  world_end(&w);
}

/* On whoever helps, an item takes longer; how much later than the leader it began is noted. */
static _Atomic uint64_t leader_began, latest_ns;
static void toil_unevenly(const gk_value *args, gk_range range) {
  (void)args;
  const bool leads = pthread_equal(pthread_self(), worker);
  const uint64_t now = gki_now(), later = now - atomic_load(&leader_began);
  if (leads) atomic_store(&leader_began, now);
  else if (later > atomic_load(&latest_ns)) atomic_store(&latest_ns, later);
  for (size_t k = range.begin; k < range.end; ++k) spin_for(leads ? 4000000 : 10000000);
}

static gk_result sleep_awhile(const gk_value *args, void *stream) {
  (void)args;
  (void)stream;
  usleep(10000);
  return GK_OK;
}

/* Waking is timed by those who wake: if they work longer then, it wasn't waking that took so long. */
static void test_uneven_work_is_no_waking(void **state) {
  (void)state;
  static const gk_kernel uneven = {
    .name = "uneven", .params = touch_params, .param_count = 1, .host = toil_unevenly};
  static const gk_task tasks[] = {GK_RUN(toiling, N, X),
                                  GK_CALL(sleep_awhile, X), GK_RUN(uneven, N, X),
                                  GK_CALL(sleep_awhile, X), GK_RUN(uneven, N, X),
                                  GK_CALL(sleep_awhile, X), GK_RUN(uneven, N, X),
                                  GK_CALL(sleep_awhile, X), GK_RUN(uneven, N, X)};
  static const gk_list list = GK_LIST(list, tasks, item_slots);
  world w;
  world_begin(&w, &list, 2, AS_MEASURED);
  worker = pthread_self();
  bind_ptr(&w, X, touched_bytes);
  bind_i32(&w, N, 8);
  for (int k = 0; k < 7; ++k) assert_runs(&w); /* until it is known how long they take */
  w.device.wake_ns = 1e6f;
  atomic_store(&latest_ns, 0);
  for (int k = 0; k < 3; ++k) assert_runs(&w);
  assert_true(w.device.wake_ns <= 1.5f * (1e6f + (float)atomic_load(&latest_ns)));
  world_end(&w);
}

/* On whoever helps, an item takes a third longer, as on a core that does something else, too. */
static void toil_less_evenly(const gk_value *args, gk_range range) {
  touch(args, range);
  const bool leads = pthread_equal(pthread_self(), worker);
  for (size_t k = range.begin; k < range.end; ++k) spin_for(leads ? 21000 : 28000);
}

/* What a hand-over takes isn't learned from that: once it was long, smaller tasks were never shared again. */
static void test_uneven_work_is_no_hand_over(void **state) {
  (void)state;
  static const gk_kernel less_even = {
    .name = "less_even", .params = touch_params, .param_count = 1, .host = toil_less_evenly};
  static const gk_task tasks[] = {GK_DO_WHILE(COUNT, .max_iterations = 20), GK_RUN(less_even, N, X), GK_END};
  static const gk_list list = GK_LIST(list, tasks, item_slots);
  int always = 1;
  world w;
  world_begin(&w, &list, 2, AS_MEASURED);
  w.device.fixed = true; /* or a busy machine's floor would be as long as the task */
  worker = pthread_self();
  bind_ptr(&w, X, touched_bytes);
  bind_i32(&w, N, 2);
  bind_ptr(&w, COUNT, &always);
  w.device.handoff_floor_ns = 200;
  w.device.handoff_ns = 7000;
  for (int k = 0; k < 100; ++k) assert_runs(&w);
  assert_true(w.device.handoff_ns < 1000);
  world_end(&w);
}

/* ---- no memory --------------------------------------------------------------------------------------------------- */

static int calls_left;
static void *scarce_alloc(void *user, size_t size) { return (void)user, calls_left-- > 0 ? malloc(size) : NULL; }
static void *scarce_resize(void *user, void *at, size_t size) {
  return (void)user, calls_left-- > 0 ? realloc(at, size) : NULL;
}
static void scarce_free(void *user, void *at) {
  (void)user;
  free(at);
}

/* Every allocation fails once. */
static void test_out_of_memory(void **state) {
  (void)state;
  static const gk_task tasks[] = {GK_PARALLEL, GK_SECTION, GK_RUN(add_all, SN, XS, SF, SD, SI, SU), GK_END,
                                  GK_SECTION, GK_RUN(add_all, SN, XS, SF, SD, SI, SU), GK_END, GK_END};
  static const gk_list list = GK_LIST(list, tasks, sum_slots);
  gk_allocator scarce = {NULL, scarce_alloc, scarce_resize, scarce_free};
  int failed = 0;
  for (int k = 0; k < 100; ++k) {
    gki_openmp_device device = {0};
    gki_program program = {0};
    world w;
    calls_left = 1 << 30;
    assert_int_equal(gk_set_allocator(&scarce), GK_OK);
    world_open(&w, 3);
    assert_int_equal(world_lower(&w, &list, 0), GK_OK);
    calls_left = k;
    gki_begin();
    gk_mode mode;
    gk_result result = gki_openmp.open(&device, &(gk_device_desc){.threads = 4});
    if (result == GK_OK) result = gki_openmp.lower(&device, &program, w.plan, NULL, &mode);
    calls_left = 1 << 30;
    gki_openmp.drop(&program);
    gki_openmp.close(&device);
    world_end(&w);
    assert_int_equal(gk_set_allocator(NULL), GK_OK);
    if (result == GK_OK) break;
    assert_int_equal(result, GK_ERROR_MEMORY);
    assert_says("memory");
    ++failed;
  }
  assert_true(failed > 2 && failed < 100);
}

int main(int argc, char **argv) {
  if (argc > 1) {
    strcmp(argv[1], "small") == 0 ? child_small_tasks() : child_thread_limit();
    return 0;
  }
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sums_are_the_same_bits),
    cmocka_unit_test(test_sum_of_no_items),
    cmocka_unit_test(test_sum_of_a_strange_type),
    cmocka_unit_test(test_small_tasks_wake_nobody),
    cmocka_unit_test(test_thread_limit),
    cmocka_unit_test(test_large_tasks_are_shared),
    cmocka_unit_test(test_a_slow_moment_is_forgotten),
    cmocka_unit_test(test_a_good_moment_ends_a_slow_one),
    cmocka_unit_test(test_given_costs_are_not_doubted),
    cmocka_unit_test(test_a_slow_waking_is_forgotten),
    cmocka_unit_test(test_a_slow_moment_is_forgotten_in_a_loop),
    cmocka_unit_test(test_a_team_is_measured_again),
    cmocka_unit_test_teardown(test_two_threads_on_one_core, run_where_usual),
    cmocka_unit_test(test_small_tasks_stay_small),
    cmocka_unit_test(test_uneven_work_is_no_waking),
    cmocka_unit_test(test_uneven_work_is_no_hand_over),
    cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
