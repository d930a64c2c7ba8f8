/* Launches whose runs are enqueued ahead: on the test device, whose tapes are counted. The test sets the clock. */
#include "unit/support/runtime.h"
#include "unit/support/runtime_kernels.h"
#include "unit/support/set_clock.h"
#include "base/registry.h"
#include "plan/walk.inc"

enum { MS = 1000000 };

static gk_backend real; /* the test device; `counted` is the same one with other entries for tapes */
static struct {
  unsigned tapes, longest, under_way, most_under_way;
  const uint32_t *lie; /* a word of the state, and its value; NULL: the truth */
} seen;

static gk_result open_real(void *device, const gk_device_desc *desc) {
  gk_device_desc as_real = *desc;
  as_real.backend = real.name;
  return real.open(device, &as_real);
}

static gk_result count_tape(void *graph, const uint32_t *runs, uint32_t count) {
  const gk_result result = real.ahead(graph, runs, count);
  if (result != GK_OK) return result;
  ++seen.tapes;
  if (++seen.under_way > seen.most_under_way) seen.most_under_way = seen.under_way;
  if (count > seen.longest) seen.longest = count;
  return GK_OK;
}

static gk_result count_state(void *graph, const uint32_t **words) {
  const gk_result result = real.state(graph, words);
  if (words && result == GK_OK && seen.lie) ((uint32_t *)(uintptr_t)*words)[seen.lie[0]] = seen.lie[1];
  seen.under_way -= words != NULL;
  return result;
}

static int open_counted(void **state) {
  static gk_backend counted;
  begin_backends();
  test_device_seed(0); /* a launch's work is done on the thread that waits for it, which the clock is for */
  if (!counted.name) {
    counted = real = *gki_backend_named("test_device");
    counted.name = "counted";
    counted.open = open_real;
    counted.ahead = count_tape;
    counted.state = count_state;
    assert_ok(gk_backend_register(&counted));
  }
  memset(&seen, 0, sizeof seen);
  set_clock();
  return gk_device_open(&(gk_device_desc){.backend = "counted"}, (gk_device **)state) == GK_OK ? 0 : -1;
}
#define COUNTED_TEST(test) DEVICE_TEST(test, open_counted, teardown_device)

static uint64_t task_ns;
static void take_time(const gk_value *args, gk_range range) { (void)args, (void)range, let_pass(task_ns); }
static const gk_param slow_params[] = {{"n", "int", 4, 4, GK_PTR, GK_ACCESS_IN}};
static const gk_kernel slow = {.name = "slow", .params = slow_params, .param_count = 1, .dimensions = 1,
                               .host = take_time};

enum { N = 1, A, B, F };
static const gk_slot_desc slots[] = {GK_OWN(N, int, 1), GK_OWN(A, int, 1), GK_DEFAULT(B, int, 1), GK_OWN(F, int, 1)};
LIST(passes, GK_DO_WHILE(N), GK_RUN(slow, GK_ONE, N), GK_RUN(decrease, GK_ONE, N), GK_END, GK_RUN(add, GK_ONE, A, B));

static unsigned tapes_of(gk_graph *graph) {
  seen.tapes = 0;
  run_to_end(graph, 0);
  return seen.tapes;
}

/* Beyond 8 passes per round trip, as soon as their number is known. */
COUNTED_TEST(few_round_trips) {
  gk_graph *graph = graph_on(device, &passes, 0);
  for (int launch = 0; launch < 2; ++launch) {
    set_int(device, gk_bound(graph, N), 400);
    assert_in_range(tapes_of(graph), 1, launch ? 400 / 64 : 400 / 8);
    assert_int_equal(int_at(device, gk_bound(graph, A)), launch + 1);
  }
}

COUNTED_TEST(silent_checkpoints_in_one_round_trip) {
#define SILENT(label) GK_CHECKPOINT(label, F), GK_RUN(add, GK_ONE, A, B), GK_END
  LIST(list, SILENT(1), SILENT(2), SILENT(3), SILENT(4), SILENT(5), SILENT(6), SILENT(7), SILENT(8),
       GK_RUN(add, GK_ONE, A, B));
  gk_graph *graph = graph_on(device, &list, 0);
  assert_int_equal(tapes_of(graph), 1);
  assert_int_equal(int_at(device, gk_bound(graph, A)), 9);
}

/* Tapes take no longer than 100 ms or $GK_TAPE_MS, once it is known how long runs take; the last run takes no time, so
 * that is known within an eighth. */
COUNTED_TEST(tapes_end_in_time) {
  static const struct { const char *ms; unsigned longest; } limits[] = {{NULL, 22}, {"50", 11}, {"1", 1}, {"5x", 22}};
  for (size_t k = 0; k < GK_COUNT(limits); ++k) {
    if (limits[k].ms) setenv("GK_TAPE_MS", limits[k].ms, 1);
    else unsetenv("GK_TAPE_MS");
    gk_graph *graph = graph_on(device, &passes, 0);
    task_ns = 5 * MS;
    set_int(device, gk_bound(graph, N), 100);
    run_to_end(graph, 0);
    seen.longest = 0;
    set_int(device, gk_bound(graph, N), 100);
    run_to_end(graph, 0);
    assert_in_range(seen.longest, 1, limits[k].longest);
    gk_graph_destroy(graph);
  }
  unsetenv("GK_TAPE_MS");
}

/* Also where two tapes are always under way, and tasks take longer than in earlier launches. */
COUNTED_TEST(tapes_get_shorter_again) {
  gk_graph *graph = graph_on(device, &passes, 0);
  for (int launch = 0; launch < 5; ++launch) {
    task_ns = launch < 3 ? MS / 1000 : 10 * MS;
    seen.longest = 0;
    set_int(device, gk_bound(graph, N), 3000);
    run_to_end(graph, 0);
  }
  assert_in_range(seen.longest, 1, 11);
}

/* A tape that was cut for its length is followed by the next one before its end is known. */
COUNTED_TEST(two_tapes_under_way) {
  gk_graph *graph = graph_on(device, &passes, 0);
  task_ns = 10 * MS;
  for (int launch = 0; launch < 3; ++launch) {
    set_int(device, gk_bound(graph, N), 100);
    run_to_end(graph, 0);
  }
  assert_int_equal(seen.most_under_way, 2);
  assert_int_equal(seen.under_way, 0);
  assert_int_equal(int_at(device, gk_bound(graph, A)), 3);
}

COUNTED_TEST(states_are_checked) {
  static const uint32_t wrong[][2] = {{GKW_LANES + GKW_AT, GKW_WORDS - 1}, {GKW_LANES + GKW_AT, 1000 * GKW_WORDS},
                                      {GKW_LANES + GKW_AT, 0}, {GKW_YIELDED, 3}};
  gk_graph *graph = graph_on(device, &passes, 0);
  for (size_t k = 0; k < GK_COUNT(wrong); ++k) {
    set_int(device, gk_bound(graph, N), 3);
    seen.lie = wrong[k];
    assert_fails(GK_ERROR_DEVICE, "backend counted: its state of a launch of graph passes can't be",
                 waited_for(graph, 0));
    seen.lie = NULL;
    set_int(device, gk_bound(graph, N), 3);
    run_to_end(graph, 0);
  }
}

/* The place of a section's lane is any point of the list: the launch ends or fails, and never hangs. */
COUNTED_TEST(places_of_sections_are_checked) {
  LIST(list, GK_PARALLEL, GK_SECTION, GK_DO_WHILE(N), GK_RUN(decrease, GK_ONE, N), GK_END, GK_END, GK_SECTION,
       GK_DO_WHILE(F), GK_RUN(decrease, GK_ONE, F), GK_END, GK_END, GK_END, GK_RUN(add, GK_ONE, A, B));
  gk_graph *graph = graph_on(device, &list, 0);
  for (uint32_t at = 0; at <= 10 * GKW_WORDS; at += GKW_WORDS) {
    const uint32_t lie[] = {GKW_LANES + GKW_LANE_WORDS + GKW_AT, at};
    SET_VALUES({gk_bound(graph, N), 3}, {gk_bound(graph, F), 3});
    seen.lie = lie;
    const gk_result result = waited_for(graph, 0);
    assert_true(result == GK_OK || result == GK_ERROR_DEVICE);
    seen.lie = NULL;
    SET_VALUES({gk_bound(graph, N), 1}, {gk_bound(graph, F), 1});
    run_to_end(graph, 0);
  }
}

int main(void) { return run_all_tests(); }
