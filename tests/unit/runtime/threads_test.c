/* Several threads at once: on one graph, where one of them is told to wait; cancelling while others launch and wait;
 * kernels that take long; a device per thread. Meant for ThreadSanitizer, too. */
#include "unit/support/runtime.h"
#include "unit/support/runtime_kernels.h"
#include "unit/support/chance.h"
#include "base/registry.h"
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- a kernel that takes as long as the test decides ------------------------------------------------------------- */

static atomic_int begun, ended;
static atomic_bool shut;  /* kernels wait before they end */
static atomic_int sleeps; /* microseconds in each */

static void nap(int microseconds) {
  struct timespec time = {microseconds / 1000000, 1000L * (microseconds % 1000000)};
  nanosleep(&time, NULL);
}

HOST_KERNEL(run_slow) {
  atomic_fetch_add(&begun, 1);
  if (atomic_load(&sleeps)) nap(atomic_load(&sleeps));
  while (atomic_load(&shut)) nap(50);
  ++*(int *)args[0].ptr;
  atomic_fetch_add(&ended, 1);
}

static const gk_param slow_params[] = {{.name = "x", .element = "int", .element_bytes = sizeof(int),
                                        .element_alignment = sizeof(int), .type = GK_PTR, .access = GK_ACCESS_INOUT}};
static const gk_kernel slow = {.name = "slow", .params = slow_params, .param_count = 1, .host = run_slow};

enum { X = 1, A, N, ON, COUNT };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 1), GK_DEFAULT(A, int, 1), GK_OWN(N, int, 1), GK_OWN(ON, int, 1),
                                     GK_OWN(COUNT, int, 1)};
LIST(once, GK_RUN(slow, GK_ONE, X));
LIST(turning, GK_RUN_ALWAYS(add, GK_ONE, COUNT, A), GK_WHILE(ON), GK_RUN(slow, GK_ONE, X), GK_END);
LIST(counted, GK_FILL(N, GK_ONE, 5), GK_DO_WHILE(N, .label = 7), GK_RUN(add, GK_ONE, X, A), GK_RUN(decrease, GK_ONE, N),
              GK_END, GK_RUN(add, GK_ONE, COUNT, A));

/* A graph for whose launches `begun` and `ended` count. */
static gk_graph *counted_graph_on(gk_device *device, const gk_list *list, uint32_t bits) {
  atomic_store(&begun, 0);
  atomic_store(&ended, 0);
  return graph_on(device, list, bits);
}

/* ---- one graph --------------------------------------------------------------------------------------------------- */

static void *wait_for_it(void *at) {
  gk_result result;
  while ((result = gk_wait(at, NULL)) == GK_ERROR_BUSY) sched_yield();
  return (void *)(uintptr_t)result;
}

/* One thread is in gk_wait while the kernel runs: every call except gk_cancel is refused for that reason. */
TEST_ON(ALL_BACKENDS, every_call_but_cancel_is_busy) {
  gk_graph *graph = counted_graph_on(device, &once, GK_CANCELLABLE);
  gk_result result;
  atomic_store(&shut, true);
  assert_ok(gk_launch(graph, 0));
  const gk_status *status = (const gk_status *)state;
  for (int k = 0; k < 100; ++k) {
    assert_int_equal(gk_poll(graph, &status), GK_NOT_READY);
    assert_null(status);
  }
  const pthread_t thread = start_thread(wait_for_it, graph);
  while ((result = gk_poll(graph, NULL)) == GK_NOT_READY) sched_yield(); /* until the other is inside */
  assert_fails(GK_ERROR_BUSY, "gk_poll: another thread is in a call of graph once", result);
  assert_graph_calls_fail(graph, GK_ERROR_BUSY, "another thread");
  assert_ok(gk_cancel(graph));
  atomic_store(&shut, false);
  assert_int_equal((uintptr_t)join_thread(thread), GK_OK);
  run_to_end(graph, 0);
  assert_int_equal(int_at(device, gk_bound(graph, X)), 2);
}

enum { THREADS = 4 };
typedef struct player {
  gk_graph *graph;
  int *x, *other;
  uint64_t random;
  int rounds, launched, busy;
  char wrong[300];
} player;

static bool is_one_of(gk_result result, gk_result a, gk_result b) { return result == a || result == b; }

/* Anything but gk_graph_destroy, in any order. */
static void *play(void *at) {
  player *p = at;
  for (int k = 0; k < p->rounds && !p->wrong[0]; ++k) {
    gk_result result = GK_OK;
    bool right = true;
    char *text;
    switch (pick(&p->random, 12)) {
    case 0: result = gk_bind(p->graph, X, pick(&p->random, 2) ? p->x : p->other); break;
    case 1: result = gk_bind_int(p->graph, A, 1); break;
    case 2: result = gk_resize(p->graph, N, 1 + pick(&p->random, 50)); break;
    case 3: result = gk_wait(p->graph, NULL); right = result == GK_ERROR_INVALID; break;
    case 4: result = gk_poll(p->graph, NULL); right = is_one_of(result, GK_NOT_READY, GK_ERROR_INVALID); break;
    case 5: gk_bound(p->graph, N); break;
    case 6:
      if ((text = gk_dump(NULL, p->graph, "json"))) gk_free_text(text);
      else result = GK_ERROR_BUSY;
      break;
    default:
      result = gk_launch(p->graph, 0);
      p->launched += result == GK_OK;
    }
    if (result == GK_ERROR_BUSY) nap((int)pick(&p->random, 30)), ++p->busy; /* that the others come in between */
    if (result != GK_OK && result != GK_NOT_READY && !gk_error()[0]) right = false;
    if (result != GK_OK && result != GK_ERROR_BUSY && !right)
      snprintf(p->wrong, sizeof p->wrong, "%s: %.200s", gk_result_name(result), gk_error());
  }
  return NULL;
}

TEST_ON(ALL_BACKENDS, threads_on_one_graph_do_no_harm) {
  gk_graph *graph = counted_graph_on(device, &counted, 0);
  int *x = int_on(device, 0), *other = int_on(device, 0), launched = 1, busy = 0;
  player players[THREADS];
  const gk_status *status;
  for (uint64_t k = 0; k < THREADS; ++k)
    players[k] = (player){.graph = graph, .x = x, .other = other, .random = mix(k + 1), .rounds = 250};
  assert_ok(gk_launch(graph, 0)); /* one for sure */
  RUN_THREADS(play, players);
  for (int k = 0; k < THREADS; ++k) {
    assert_string_equal(players[k].wrong, "");
    launched += players[k].launched;
    busy += players[k].busy;
  }
  print_message("%d launches, busy %d times\n", launched, busy);
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->launch, launched);
  assert_int_equal(status->state, GK_FINISHED);
  assert_int_equal(gk_passes(status, 7), 5);
  assert_int_equal(int_at(device, gk_bound(graph, COUNT)), launched); /* none was lost, none came twice */
}

/* ---- cancelling -------------------------------------------------------------------------------------------------- */

typedef struct canceller { gk_graph *graph; pthread_t thread; atomic_bool over; int calls, failed; } canceller;

static void *cancel_on_and_on(void *at) {
  canceller *c = at;
  for (; !atomic_load(&c->over); ++c->calls) {
    c->failed += gk_cancel(c->graph) != GK_OK;
    if (c->calls % 8 == 0) sched_yield();
    if (c->calls % 64 == 0) nap(20);
  }
  return NULL;
}

enum { CANCELLERS = 2 };

static void start_cancellers(canceller all[CANCELLERS], gk_graph *graph) {
  for (int k = 0; k < CANCELLERS; ++k) {
    all[k] = (canceller){.graph = graph};
    all[k].thread = start_thread(cancel_on_and_on, &all[k]);
  }
}

static void end_cancellers(canceller all[CANCELLERS]) {
  for (int k = 0; k < CANCELLERS; ++k) {
    atomic_store(&all[k].over, true);
    join_thread(all[k].thread);
    assert_int_equal(all[k].failed, 0);
  }
}

TEST_ON(ALL_BACKENDS, cancel_races_with_everything) {
  gk_graph *graph = counted_graph_on(device, &turning, GK_CANCELLABLE);
  canceller cancellers[CANCELLERS];
  const gk_status *status;
  int launched = 0;
  atomic_store(&sleeps, 0);
  set_int(device, gk_bound(graph, ON), 1); /* endless: only a cancel ends it */
  start_cancellers(cancellers, graph);
  for (int k = 0; k < 200; ++k) {
    for (int several = 0; several <= k % 3; ++several, ++launched) assert_ok(gk_launch(graph, 0));
    if (k % 4 == 0) assert_true(gk_poll(graph, NULL) <= GK_NOT_READY);
    if (k % 5 == 0) assert_ok(gk_resize(graph, N, 1 + (size_t)k)); /* waits for earlier launches */
    assert_ok(gk_wait(graph, &status));
    assert_int_equal(status->state, GK_CANCELLED);
  }
  end_cancellers(cancellers);
  assert_int_equal(int_at(device, gk_bound(graph, COUNT)), launched); /* always-tasks ran */
  set_int(device, gk_bound(graph, ON), 0);
  status = run_to_end(graph, 0); /* not affected any more */
  assert_int_equal(status->state, GK_FINISHED);
}

/* It stops at the next loop end: the kernel at work ends in peace, and few begin after it. */
TEST_ON(ALL_BACKENDS, cancel_waits_for_one_kernel) {
  const bool far = is_of(device, "test_device"); /* may take some passes without looking */
  gk_graph *graph = counted_graph_on(device, &turning, GK_CANCELLABLE);
  const gk_status *status;
  atomic_store(&sleeps, 3000);
  set_int(device, gk_bound(graph, ON), 1);
  for (int k = 0; k < 10; ++k) {
    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    assert_ok(gk_launch(graph, 0));
    while (atomic_load(&begun) < 1 + k % 3) nap(100);
    assert_ok(gk_cancel(graph));
    int before = atomic_load(&begun);
    assert_ok(gk_wait(graph, &status));
    assert_int_equal(status->state, GK_CANCELLED);
    assert_in_range(atomic_load(&begun), 1, before + (far ? 3 : 1));
    assert_int_equal(atomic_load(&ended), atomic_load(&begun));
    assert_int_equal(gk_passes(status, 0), atomic_load(&ended));
  }
  atomic_store(&sleeps, 0);
}

/* gk_graph_destroy in the middle of an endless loop: cancels, waits, and nothing runs behind it. */
TEST_ON(ALL_BACKENDS, destroy_stops_what_runs) {
  for (int k = 0; k < 20; ++k) {
    gk_graph *graph = counted_graph_on(device, &turning, k % 2 ? GK_CANCELLABLE : 0);
    set_int(device, gk_bound(graph, ON), 1);
    assert_ok(gk_launch(graph, 0));
    assert_ok(gk_launch(graph, 0));
    if (k % 3) nap(100 * k);
    gk_graph_destroy(graph);
    int after = atomic_load(&begun);
    assert_int_equal(atomic_load(&ended), after);
    if (k % 4 == 0) nap(500);
    assert_int_equal(atomic_load(&begun), after);
  }
}

static void *cancel_once(void *at) { return (void *)(uintptr_t)gk_cancel(at); }

/* Another thread cancels each launch while it is logged, which is before it starts. */
static void cancel_when_logged(void *graph, gk_log_level level, const char *text) {
  if (level != GK_LOG_DEBUG || !strstr(text, ": launch ")) return;
  assert_int_equal((uintptr_t)join_thread(start_thread(cancel_once, graph)), GK_OK);
}

LIST(bounded, GK_WHILE(ON, .max_iterations = 100), GK_RUN(slow, GK_ONE, X), GK_END);

/* Also before a graph's first launch. */
TEST_ON(ALL_BACKENDS, run_is_cancelled_as_it_starts) {
  gk_graph *graph = graph_on(device, &bounded, GK_CANCELLABLE);
  const gk_status *totals;
  set_int(device, gk_bound(graph, ON), 1);
  for (int k = 0; k < 2; ++k) {
    gk_set_log(GK_LOG_DEBUG, cancel_when_logged, graph);
    const gk_result result = gk_run(graph, NULL, NULL, &totals);
    gk_set_log(GK_LOG_NONE, NULL, NULL);
    assert_ok(result);
    assert_int_equal(totals->state, GK_CANCELLED);
    assert_int_equal(gk_passes(totals, 0), 1);
  }
}

/* ---- gk_cancel while the device is closed ------------------------------------------------------------------------ */

enum { IDLE, CANCELS, WAITED_FOR, TOO_LATE };
static struct { pthread_mutex_t lock; pthread_cond_t changed; int state; } closing =
    {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, IDLE};
static _Thread_local bool is_closing; /* this thread closes a device */

/* From one state to the next, where that is the one before. */
static void closing_goes_on(int from, int to) {
  pthread_mutex_lock(&closing.lock);
  if (closing.state == from) closing.state = to;
  pthread_cond_broadcast(&closing.changed);
  pthread_mutex_unlock(&closing.lock);
}

static void await_closing(int state) {
  pthread_mutex_lock(&closing.lock);
  while (closing.state < state) pthread_cond_wait(&closing.changed, &closing.lock);
  pthread_mutex_unlock(&closing.lock);
}

/* In front of the C library's: how a thread that closes a device waits for threads in gk_cancel. */
int sched_yield(void) {
  if (is_closing) closing_goes_on(CANCELS, WAITED_FOR);
  return (int)syscall(SYS_sched_yield);
}

/* The native fake, with a cancel that is inside until the device's close waits for it, or doesn't. */
static gk_backend fake;

static gk_result open_hesitant(void *device, const gk_device_desc *desc) {
  gk_device_desc as_fake = *desc;
  as_fake.backend = fake.name;
  return fake.open(device, &as_fake);
}

static gk_result cancel_hesitantly(void *graph) {
  closing_goes_on(IDLE, CANCELS);
  await_closing(WAITED_FOR);
  return fake.cancel(graph);
}

static void drop_watched(void *graph) {
  closing_goes_on(CANCELS, TOO_LATE);
  fake.drop(graph);
}

TEST(close_waits_for_cancel) {
  begin_backends();
  fake = *gki_backend_named(fake_names[FAKE_NATIVE]);
  gk_backend hesitant = fake;
  hesitant.name = "hesitant";
  hesitant.open = open_hesitant;
  hesitant.cancel = cancel_hesitantly;
  hesitant.drop = drop_watched;
  assert_ok(gk_backend_register(&hesitant));
  gk_device *device = open_named(hesitant.name);
  gk_graph *graph = counted_graph_on(device, &once, GK_CANCELLABLE);
  run_to_end(graph, 0);
  const pthread_t thread = start_thread(cancel_once, graph);
  await_closing(CANCELS);
  is_closing = true;
  close_fake(device);
  is_closing = false;
  assert_int_equal((uintptr_t)join_thread(thread), GK_OK);
  assert_int_equal(closing.state, WAITED_FOR);
  assert_ok(gk_cancel(graph)); /* there is nothing to stop any more */
  gk_graph_destroy(graph);
}

TEST_ON_EACH(ALL_BACKENDS, cancel_races_with_close, NULL, NULL) {
  begin_backends();
  for (int k = 0; k < 50; ++k) {
    gk_device *device = open_named(*state);
    gk_graph *graph = counted_graph_on(device, &turning, GK_CANCELLABLE);
    canceller cancellers[CANCELLERS];
    set_int(device, gk_bound(graph, ON), 1);
    start_cancellers(cancellers, graph);
    for (int several = 0; several < k % 3; ++several) assert_ok(gk_launch(graph, 0));
    close_fake(device);
    end_cancellers(cancellers);
    assert_fails(GK_ERROR_DEVICE, "gk_launch: the device of graph turning was closed", gk_launch(graph, 0));
    gk_graph_destroy(graph);
  }
}

/* ---- a device per thread ----------------------------------------------------------------------------------------- */

typedef struct owner { const char *backend; int ordinal; char wrong[400]; } owner;

#define must(call) \
  do { \
    if ((call) != GK_OK) { \
      snprintf(o->wrong, sizeof o->wrong, "%s: %.200s", #call, gk_error()); \
      return NULL; \
    } \
  } while (0)

static void *use_a_device(void *at) {
  owner *o = at;
  for (int turn = 0; turn < 5; ++turn) {
    gk_device *device;
    gk_graph *graph;
    const gk_status *status;
    int x = 0;
    must(gk_device_open(&(gk_device_desc){.backend = o->backend, .ordinal = o->ordinal, .threads = 2}, &device));
    must(gk_graph_create(device, &counted, 0, &graph));
    for (int k = 1; k <= 40; ++k) {
      must(gk_bind_int(graph, A, k));
      must(gk_launch(graph, 0));
      if (k % 3 == 0) must(gk_resize(graph, X, (size_t)k));
      if (k % 4 == 0) must(gk_wait(graph, &status));
    }
    must(gk_wait(graph, &status));
    must(gk_download(device, &x, gk_bound(graph, X), sizeof x));
    if (x != 5 * 40 * 41 / 2) snprintf(o->wrong, sizeof o->wrong, "the sum is %d", x);
    if (turn % 2) gk_graph_destroy(graph);
    gk_device_close(device);
    if (!(turn % 2)) gk_graph_destroy(graph);
  }
  return NULL;
}

TEST(a_device_per_thread) {
  owner owners[] = {{.backend = "test_device"}, {.backend = "openmp"}, {.backend = "test_device", .ordinal = 1},
                    {.backend = "openmp"}};
  begin_backends();
  RUN_THREADS(use_a_device, owners);
  for (size_t k = 0; k < GK_COUNT(owners); ++k) assert_string_equal(owners[k].wrong, "");
  assert_nothing_left();
}

int main(void) { return run_all_tests(); }
