/* Launches under way: what the host may do meanwhile, the queue, and gk_cancel. A library call in the list holds the
 * launch until the host has done its part, so that every outcome is determined; where such calls are recorded, a kernel
 * stands in its place, and the reference keeps the call. */
#include "harness.h"
#include "letters.h"
#include "reference/reference.h"
#include "stay.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- a launch that waits for the host ---------------------------------------------------------------------------- */

/* Of one case at a time. */
static struct hold {
  atomic_int left;             /* calls until the one that waits; 0 and less: none does */
  atomic_bool reached, go, recorded;
  stay_door *door;             /* of the kernel; NULL: it is the call that waits */
  struct reference *reference; /* while it runs, on the host's own thread */
  int reference_left;          /* calls until the one at which it is cancelled */
  trial *trial;
  pthread_t watcher;           /* in a sweep */
} hold;
static _Thread_local bool in_reference;

static void sleep_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL); }

static gk_result pause_here(const gk_value *args, void *native) {
  (void)args;
  if (in_reference) {
    if (--hold.reference_left == 0) reference_cancel(hold.reference);
    return GK_OK;
  }
  if (is_recorded(native)) atomic_store(&hold.recorded, true);
  if (is_recorded(native) || atomic_fetch_sub(&hold.left, 1) != 1) return GK_OK;
  atomic_store(&hold.reached, true);
  while (!atomic_load(&hold.go)) sleep_a_little();
  return GK_OK;
}
#define PAUSE GK_CALL(pause_here, 0)

static void end_hold(void) {
  atomic_store(&hold.go, true);
  if (hold.door) stay_open(hold.door);
}

/* A call of gk may wait for the launch if a call of its backend has failed. */
static void *end_hold_after_failure(void *user) {
  for (; !atomic_load(&hold.go); sleep_a_little())
    if (give_up_if_failed(hold.trial)) end_hold();
  return user;
}

/* The next launch waits in its nth PAUSE; 0: in none. */
static void hold_at(int nth) {
  if (hold.door) stay_at(hold.door, nth);
  atomic_store(&hold.reached, false);
  atomic_store(&hold.go, nth == 0);
  atomic_store(&hold.left, nth);
  if (nth && is_sweep(hold.trial) && pthread_create(&hold.watcher, NULL, end_hold_after_failure, NULL) != 0) abort();
}

static bool is_held(void) { return hold.door ? stay_reached(hold.door) : atomic_load(&hold.reached); }

static void release_launch(void) {
  end_hold();
  if (is_sweep(hold.trial)) pthread_join(hold.watcher, NULL);
}

/* From here to release_launch nothing may end the case: the launch would wait for ever. */
static void expect_held(subject *s) {
  trial *t = trial_of(s);
  gk_result result = GK_NOT_READY;
  while (!is_held() && (result = gk_poll(graph(s), NULL)) == GK_NOT_READY) sleep_a_little();
  if (is_held() && result == GK_NOT_READY) return;
  release_launch();
  must(t, result);
  fail_at(t, __FILE__, __LINE__, "the launch is over, and didn't come to where it was awaited");
}

/* cancel_at: the nth PAUSE at which it is cancelled; 0: none. */
static void run_reference(subject *s, int32_t label, int cancel_at) {
  hold.reference = reference_of(s);
  hold.reference_left = cancel_at;
  in_reference = true;
  reference_launch(hold.reference, label);
  in_reference = false;
}

/* A launch that is cancelled while it waits in its nth PAUSE; with so many more, from the top, queued behind it. */
static void cancelled_launch(subject *s, int at, int32_t label, int nth, int queued, const char *wanted) {
  trial *t = trial_of(s);
  if (strstr(wanted, "->")) given(s, wanted);
  hold_at(nth);
  must(t, gk_launch(graph(s), label));
  expect_held(s);
  gk_result result = GK_OK;
  for (int k = 0; k < queued && result == GK_OK; ++k) result = gk_launch(graph(s), 0);
  if (result == GK_OK) result = gk_cancel(graph(s));
  release_launch();
  must(t, result);
  run_reference(s, label, nth);
  for (int k = 0; k < queued; ++k) {
    reference_cancel(reference_of(s));
    run_reference(s, 0, 0);
  }
  check_trace(s, __FILE__, at, finish_launches(s), wanted);
}
#define CANCELLED(s, label, nth, wanted) cancelled_launch((s), __LINE__, (label), (nth), 0, (wanted))

enum { DOOR = 1000 };

/* With a kernel for each PAUSE, for the device alone. */
static subject *with_doors(trial *t, const gk_list *list, uint32_t bits) {
  static struct copy { gk_task tasks[32]; gk_slot_desc slots[32]; } copies[2]; /* no case has more graphs at a time */
  static unsigned next;
  struct copy *copy = &copies[next++ % 2];
  gk_list with = {GK_ABI, list->name, copy->tasks, list->task_count, copy->slots, list->slot_count + 1};
  expect(t, with.task_count <= GK_COUNT(copy->tasks) && with.slot_count <= GK_COUNT(copy->slots), "a larger list");
  memcpy(copy->tasks, list->tasks, list->task_count * sizeof *list->tasks);
  memcpy(copy->slots, list->slots, list->slot_count * sizeof *list->slots);
  copy->slots[list->slot_count] = (gk_slot_desc)GK_BUFFER(DOOR, int);
  for (size_t k = 0; k < list->task_count; ++k) {
    if (copy->tasks[k].call == pause_here) copy->tasks[k] = (gk_task)GK_RUN(stay, GK_ONE, DOOR);
    copy->tasks[k].bits = list->tasks[k].bits;
  }
  stay_door *door = page_of(t);
  if (!door) skip(t, "library calls are recorded here, and no memory is the host's and the device's: %s", gk_error());
  subject *s = graph_beside(t, &with, list, bits);
  must(t, gk_bind(graph(s), DOOR, door));
  hold.door = door;
  hold_at(0);
  return s;
}

static subject *held_graph(trial *t, const gk_list *list, uint32_t bits) {
  hold.trial = t;
  hold.door = NULL;
  hold_at(0);
  atomic_store(&hold.recorded, false);
  subject *s = graph_of(t, list, bits);
  if (!atomic_load(&hold.recorded)) return s;
  end_graph(s);
  return with_doors(t, list, bits);
}
/* Declares s, a graph of these tasks over the letters. */
#define HELD(s, bits, ...) \
  static const gk_task s##_tasks[] = {__VA_ARGS__}; \
  subject *s = held_graph(t, LIST_OF(s##_tasks, letters), (bits))
#define CANCELLABLE(s, ...) HELD(s, GK_CANCELLABLE, __VA_ARGS__)

/* A launch that is waited for, and not compared with the reference. */
static const gk_status *launch_alone(subject *s) {
  const gk_status *status = NULL;
  must(trial_of(s), gk_launch(graph(s), 0));
  must(trial_of(s), gk_wait(graph(s), &status));
  return status;
}

/* ---- cancel: rule 11 --------------------------------------------------------------------------------------------- */

CASE(cancel_at_a_loop_end) {
  CANCELLABLE(s, HIT_ALWAYS(S), GK_DO_WHILE(N), HIT(A), PAUSE, DOWN(N), GK_END, HIT(B), HIT_ALWAYS(E));
  CANCELLED(s, 0, 2, "N=5 -> S=1 A=2 B=0 E=1 N=3, cancelled, passes N=2");
  /* no flag is read: it would have ended anyway */
  CANCELLED(s, 0, 1, "N=1 -> S=2 A=3 B=0 E=2 N=0, cancelled, passes N=1");
  trace(s, 0, "N=2 -> S=3 A=5 B=1 E=3 N=0, passes N=2"); /* later launches aren't concerned */
}

CASE(cancel_at_the_end_of_a_while) {
  CANCELLABLE(s, GK_WHILE(N, .max_iterations = 2), HIT(A), PAUSE, DOWN(N), GK_END, HIT(B));
  CANCELLED(s, 0, 2, "N=5 -> A=2 B=0 N=3, cancelled, passes N=2"); /* nor is its bound hit: that takes a flag */
  trace(s, 0, "A=4 B=1 N=1, passes N=2, bound N");
}

CASE(cancel_in_nested_loops) {
  CANCELLABLE(s, GK_DO_WHILE(M), SET(N, 3), GK_DO_WHILE(N), HIT(A), PAUSE, DOWN(N), GK_END, HIT(B), DOWN(M), GK_END,
              HIT(C));
  CANCELLED(s, 0, 4, "M=2 -> A=4 B=1 C=0 M=1 N=2, cancelled, passes M=1 N=4");
}

CASE(cancel_goes_on_to_the_next_end) {
  CANCELLABLE(s, PAUSE, HIT(A), GK_TARGET(FIRST), HIT(B), GK_END, GK_IF(G), HIT(C), GK_END, GK_DO_WHILE(N), HIT(D),
              DOWN(N), GK_END, HIT(E));
  CANCELLABLE(ends, PAUSE, HIT(A), GK_TARGET(FIRST), HIT(B), GK_END, HIT(C));
  CANCELLED(s, 0, 1, "N=3 G=1 -> A=1 B=1 C=1 D=1 E=0 N=2, cancelled, passes N=1, ran FIRST");
  CANCELLED(ends, 0, 1, "A=1 B=1 C=1, ran FIRST"); /* it comes to its end before it could be stopped */
}

CASE(cancel_at_a_yield_point) {
  CANCELLABLE(s, HIT(A), GK_CHECKPOINT(FIRST, F), PAUSE, HIT(B), GK_END, HIT(C), HIT_ALWAYS(S));
  CANCELLED(s, 0, 1, "A=1 B=1 C=0 S=1, cancelled, ran FIRST");
  trace(s, FIRST, "A=1 B=2 C=1 S=2, ran FIRST"); /* at the host's own risk: here it does no harm */
}

CASE(true_flag_wins_over_cancel) {
  CANCELLABLE(s, HIT(A), GK_CHECKPOINT(FIRST, F), PAUSE, HIT(B), GK_END, HIT(C));
  CANCELLED(s, 0, 1, "F=1 -> A=1 B=1 C=0, yielded FIRST, ran FIRST");
  trace(s, FIRST, "F=0 -> A=1 B=2 C=1, ran FIRST");
}

CASE(yield_wins_over_cancel) {
  CANCELLABLE(s, {.op = GK_OP_CALL, .name = "pause", .call = pause_here, .bits = GK_ALWAYS}, HIT(A), GK_YIELD(FIRST),
              HIT(B), GK_DO_WHILE(N), HIT(C), GK_YIELD(SECOND), DOWN(N), GK_END);
  CANCELLED(s, 0, 1, "N=9 -> A=1 B=0 C=0, yielded FIRST, ran FIRST");
  CANCELLED(s, FIRST, 1, "A=1 B=1 C=1, yielded SECOND, passes N=0, ran SECOND");
  trace(s, SECOND, "B=1 C=2 N=8, yielded SECOND, passes N=1, ran SECOND");
}

CASE(cancel_inside_of_a_checkpoint) {
  CANCELLABLE(s, GK_CHECKPOINT(FIRST, F), GK_DO_WHILE(N, .max_iterations = 3), HIT(A), PAUSE, DOWN(N), GK_END, HIT(B),
              GK_END, HIT(C));
  CANCELLED(s, 0, 2, "N=9 F=1 -> A=2 B=0 C=0 N=7, cancelled, passes N=2, ran FIRST"); /* F isn't read */
  trace(s, FIRST, "F=0 -> A=5 B=1 C=1 N=4, passes N=3, bound N, ran FIRST");
}

CASE(bound_counts_across_a_cancel) {
  CANCELLABLE(s, GK_DO_WHILE(N, .max_iterations = 5), GK_TARGET(FIRST), HIT(B), GK_END, HIT(A), PAUSE, GK_END, HIT(C));
  /* the pass whose end it stops at counts */
  CANCELLED(s, 0, 2, "N=1 -> A=2 B=2 C=0, cancelled, passes N=2, ran FIRST");
  trace(s, FIRST, "A=5 B=5 C=1, passes N=3, bound N, ran FIRST");
  CANCELLED(s, 0, 3, "A=8 B=8 C=1, cancelled, passes N=3, ran FIRST");
  trace(s, 0, "A=13 B=13 C=2, passes N=5, bound N, ran FIRST"); /* a fresh launch starts at zero */
}

/* Resumed behind its last pass, it makes one more. */
CASE(repeat_cancelled_at_last_pass) {
  CANCELLABLE(s, GK_REPEAT(N), GK_TARGET(FIRST), HIT(A), GK_END, PAUSE, GK_END, HIT(B));
  CANCELLED(s, 0, 2, "N=2 -> A=2 B=0, cancelled, passes N=2, ran FIRST");
  trace(s, FIRST, "N=9 -> A=3 B=1, passes N=1, ran FIRST");
  CANCELLED(s, 0, 1, "N=4 -> A=4 B=1, cancelled, passes N=1, ran FIRST");
  trace(s, FIRST, "N=1 -> A=7 B=2, passes N=3, ran FIRST");
}

/* The passes between two reads are one piece; an inner loop's end isn't between two reads of its own. */
CASE(every_cancel_only_at_a_look) {
  CANCELLABLE(s, GK_DO_WHILE(N, .max_iterations = 8, .every = 3), GK_TARGET(FIRST), HIT(B), GK_END, HIT(A), PAUSE,
              DOWN(N), GK_END, HIT(C));
  CANCELLABLE(nested, GK_WHILE(M, .every = 2), HIT(B), GK_DO_WHILE(N), HIT(A), PAUSE, DOWN(N), GK_END, GK_END);
  CANCELLED(s, 0, 1, "N=20 -> A=3 C=0, cancelled, passes N=3, ran FIRST");
  CANCELLED(s, FIRST, 2, "A=6 B=6 N=14, cancelled, passes N=3, ran FIRST");
  CANCELLED(s, FIRST, 1, "A=8 C=0, cancelled, passes N=2, ran FIRST"); /* at the bound the flag is read */
  trace(s, FIRST, "A=9 C=1, passes N=1, bound N, ran FIRST");
  CANCELLED(s, 0, 6, "N=7 -> A=15 C=1 N=1, cancelled, passes N=6, ran FIRST");
  CANCELLED(nested, 0, 2, "M=1 N=9 -> A=2 B=1 N=7, cancelled, passes M=0 N=2");
}

/* A body that is one run. */
CASE(every_cancel_in_a_straight_loop) {
  CANCELLABLE(s, GK_DO_WHILE(N, .every = 3), HIT(A), PAUSE, DOWN(N), GK_END, HIT(B));
  CANCELLED(s, 0, 1, "N=9 -> A=3 B=0 N=6, cancelled, passes N=3");
  CANCELLED(s, 0, 3, "N=9 -> A=6 B=0 N=6, cancelled, passes N=3");
}

CASE(sections_stop_each_at_their_own_loop_end) {
  CANCELLABLE(s, PAUSE,
              PARALLEL(SECTION(GK_DO_WHILE(L), HIT(A), DOWN(L), GK_END, HIT(U)),
                       SECTION(GK_DO_WHILE(M), HIT(B), DOWN(M), GK_END, HIT(V)), SECTION(HIT(C), HIT(W))),
              HIT(D), GK_DO_WHILE(N), HIT(E), DOWN(N), GK_END, HIT_ALWAYS(S));
  CANCELLED(s, 0, 1, "L=3 M=2 N=2 -> A=1 B=1 C=1 U=0 V=0 W=1 D=0 E=0 L=2 M=1 N=2 S=1, cancelled, passes L=1 M=1 N=0");
  trace(s, 0, "A=3 B=2 C=2 U=1 V=1 W=2 D=1 E=2 L=0 M=0 N=0 S=2, passes L=2 M=1 N=2");
}

CASE(queued_launches_end_cancelled) {
  CANCELLABLE(s, HIT_ALWAYS(S), PAUSE, GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END, HIT(B), HIT_ALWAYS(E));
  cancelled_launch(s, __LINE__, 0, 1, 3, "N=9 -> S=4 A=4 B=0 E=4 N=5, cancelled, passes N=1");
  trace(s, 0, "S=5 A=9 B=1 E=5 N=0, passes N=5");
}

/* Its flag never falls. The number of passes isn't promised; that they are counted is. */
CASE(cancel_ends_an_endless_loop) {
  static const gk_task tasks[] = {GK_WHILE(F), HIT(A), GK_END, HIT(B), HIT_ALWAYS(S)};
  subject *s = graph_of(t, LIST_OF(tasks, letters), GK_CANCELLABLE);
  const gk_status *status = NULL;
  put(s, F, -1);
  for (int k = 1; k <= 3; ++k) {
    int before = get(s, A);
    must(t, gk_launch(graph(s), 0));
    for (int wait = 0; wait < k; ++wait) sleep_a_little();
    must(t, gk_cancel(graph(s)));
    must(t, gk_wait(graph(s), &status));
    expect_int(t, status->state, GK_CANCELLED);
    expect(t, status->loops[0].passes > 0, "it was cancelled before it came to a loop end");
    expect_int(t, get(s, A) - before, status->loops[0].passes);
    expect_int(t, get(s, B), 0);
    expect_int(t, get(s, S), k);
  }
  put(s, F, 0);
  status = launch_alone(s);
  expect_int(t, status->state, GK_FINISHED);
  expect_int(t, status->loops[0].passes, 0);
}

CASE(cancel_without_a_launch) {
  static const gk_task tasks[] = {GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END};
  subject *s = graph_of(t, LIST_OF(tasks, letters), GK_CANCELLABLE);
  must(t, gk_cancel(graph(s)));
  trace(s, 0, "N=3 -> A=3 N=0, passes N=3");
  must(t, gk_cancel(graph(s)));
  trace(s, 0, "N=2 -> A=5 N=0, passes N=2");
}

CASE(cancel_must_be_asked_for) {
  GRAPH(s, GK_DO_WHILE(N), HIT(A), DOWN(N), GK_END);
  refuses(t, GK_ERROR_UNSUPPORTED, "created without GK_CANCELLABLE", gk_cancel(graph(s)));
  trace(s, 0, "N=1 -> A=1, passes N=1");
  refuses(t, GK_ERROR_UNSUPPORTED, "GK_CANCELLABLE", gk_cancel(graph(s)));
}

/* ---- while a launch runs ----------------------------------------------------------------------------------------- */

CASE(host_goes_on_meanwhile) {
  CANCELLABLE(s, PAUSE, GK_RUN(add, GK_ONE, A, I), GK_CHECKPOINT(FIRST, F), GK_END);
  const gk_status *status = (const gk_status *)s;
  bind_int(s, I, 1);
  hold_at(1);
  must(t, gk_launch(graph(s), 0));
  run_reference(s, 0, 0);
  expect_held(s);
  gk_result polled = gk_poll(graph(s), &status);
  gk_result again = gk_launch(graph(s), 0), resumed = gk_launch(graph(s), FIRST);
  gk_result bound = gk_bind_int(graph(s), I, 10); /* counts from the next launch on */
  release_launch();
  must(t, bound);
  expect_int(t, polled, GK_NOT_READY);
  expect(t, !status, "a launch that runs has a status");
  expect_int(t, again, GK_ERROR_BUSY); /* it can yield: the host must hear how it went */
  expect_int(t, resumed, GK_ERROR_BUSY);
  status = finish_launches(s);
  expect_int(t, status->launch, 1);
  holds(s, "A=1");
  trace(s, 0, "I=10 -> A=11"); /* I=10 is for the reference */
}

/* However deep inside the checkpoint is, and whether or not the launch is over. */
CASE(one_that_can_yield_must_be_waited_for) {
  GRAPH(s, GK_DO_WHILE(L), GK_IF(L), GK_ELSE, GK_CHECKPOINT(FIRST, F), HIT(A), GK_END, GK_END, GK_END);
  for (int k = 1; k <= 2; ++k) {
    begin_launch(s, 0);
    refuses(t, GK_ERROR_BUSY, "can yield|gk_wait", gk_launch(graph(s), 0));
    refuses(t, GK_ERROR_BUSY, "can yield|gk_wait", gk_launch(graph(s), FIRST));
    finish_launches(s);
    expect_int(t, get(s, A), k);
  }
}

/* Launches until so many are under way, each with a number of its own, while the first one is held. */
static gk_result launch_many(subject *s, int most) {
  gk_result result = GK_OK;
  for (int k = 1; k < most && result == GK_OK; ++k) {
    result = gk_bind_int(graph(s), I, k);
    if (result == GK_OK) result = gk_launch(graph(s), 0);
  }
  return result;
}

static void check_many(subject *s, int launches) {
  for (int k = 0; k < launches; ++k) {
    bind_int(s, I, k);
    run_reference(s, 0, 0);
  }
  expect_int(trial_of(s), finish_launches(s)->launch, launches);
  expect_int(trial_of(s), launch(s, 0)->launch, launches + 1); /* and there is room again */
}

CASE(sixteen_launches_queue) {
  HELD(s, GK_NONBLOCKING, PAUSE, NOTE(X, I));
  hold_at(1);
  must(t, gk_launch(graph(s), 0));
  expect_held(s);
  const gk_result result = launch_many(s, 16), busy = result == GK_OK ? gk_launch(graph(s), 0) : result;
  bool told = strstr(gk_error(), "16 launches") != NULL;
  release_launch();
  must(t, result);
  expect_int(t, busy, GK_ERROR_BUSY);
  expect(t, told, "the 17th launch is refused without saying that 16 are under way");
  check_many(s, 16);
}

/* Its thread may come late: then it finds a place at once, and the case is as right. */
static struct next { gk_graph *graph; gk_result result; atomic_bool begun, over; } next;
static void *launch_next(void *user) {
  atomic_store(&next.begun, true);
  next.result = gk_launch(next.graph, 0);
  atomic_store(&next.over, true);
  return user;
}

CASE(next_launch_waits_for_a_place) {
  HELD(s, 0, PAUSE, NOTE(X, I));
  pthread_t thread;
  hold_at(1);
  must(t, gk_launch(graph(s), 0));
  expect_held(s);
  gk_result result = launch_many(s, 16);
  if (result == GK_OK) result = gk_bind_int(graph(s), I, 16);
  next.graph = graph(s);
  atomic_store(&next.begun, false);
  atomic_store(&next.over, false);
  const bool started = result == GK_OK && pthread_create(&thread, NULL, launch_next, NULL) == 0;
  while (started && !atomic_load(&next.begun)) sleep_a_little();
  for (int k = 0; k < 20; ++k) sleep_a_little();
  const bool early = started && atomic_load(&next.over);
  release_launch();
  if (started) pthread_join(thread, NULL);
  must(t, result);
  expect(t, started, "the runner itself can't start a thread");
  must(t, next.result);
  expect(t, !early || is_sweep(t), "the 17th launch returned while 16 were under way");
  check_many(s, 17);
}

static atomic_int failures_left, recordings;
static gk_result fail_a_while(const gk_value *args, void *native) {
  (void)args;
  if (is_recorded(native)) {
    atomic_store(&hold.recorded, true);
    atomic_fetch_add(&recordings, 1);
  }
  return atomic_fetch_sub(&failures_left, 1) > 0 ? GK_ERROR_UNSUPPORTED : GK_OK;
}

#define CALLS_FAIL(s) refuses(t, GK_ERROR_UNSUPPORTED, "fail_a_while", gk_wait(graph(s), NULL))

/* It runs from memory as the other left it; the wait tells the failure all the same. */
CASE(launch_behind_a_failing_one) {
  atomic_store(&failures_left, 0);
  atomic_store(&hold.recorded, false);
  GRAPH(s, HIT_ALWAYS(S), HIT(A), GK_CALL(fail_a_while, I), HIT(B));
  for (int twice = 1; twice <= 2; ++twice) {
    const gk_status *status = NULL;
    atomic_store(&failures_left, 1);
    bind_int(s, I, twice);
    for (int k = 0; k < 3; ++k) must(t, gk_launch(graph(s), 0));
    CALLS_FAIL(s);
    refuses(t, GK_ERROR_UNSUPPORTED, "fail_a_while", gk_poll(graph(s), &status));
    expect(t, !status, "a failed poll answered a status");
    const int behind = 2 * twice, all = atomic_load(&hold.recorded) ? behind : 3 * twice;
    expect_int(t, get(s, B), behind);
    expect_int(t, get(s, A), all); /* recorded, a call fails before anything of its launch runs */
    expect_int(t, get(s, S), all);
  }
  expect_int(t, launch_alone(s)->launch, 7);
}

/* Recorded, it fails as it is recorded again, before anything runs. */
CASE(failed_call_fails_its_launch) {
  atomic_store(&failures_left, 0);
  atomic_store(&hold.recorded, false);
  GRAPH(s, HIT(A), GK_CALL(fail_a_while, I), HIT(B));
  bool recorded = atomic_load(&hold.recorded);
  bind_int(s, I, 1);
  atomic_store(&failures_left, 2); /* the device's and the reference's */
  must(t, gk_launch(graph(s), 0));
  CALLS_FAIL(s);
  if (!recorded) run_reference(s, 0, 0);
  holds(s, recorded ? "A=0 B=0" : "A=1 B=0"); /* memory is as it was at that moment */
  atomic_store(&failures_left, 0);
  trace(s, 0, recorded ? "A=1 B=1" : "A=2 B=1");
}

/* Where calls are recorded: in this launch, or not. */
static void runs(subject *s, bool records) {
  trial *t = trial_of(s);
  const int before = atomic_load(&recordings);
  const gk_applied applied = launch(s, 0)->applied;
  if (!atomic_load(&hold.recorded)) return;
  expect_int(t, atomic_load(&recordings) > before, records);
  expect_int(t, applied == GK_BY_RECORDING, records);
}

/* Refused, failing as they are made, failing behind that: the next launch makes them if that one didn't. */
CASE(calls_are_made_after_failures) {
  atomic_store(&failures_left, 0);
  atomic_store(&hold.recorded, false);
  GRAPH(s, GK_FILL(A, ONE, 7), GK_CALL(fail_a_while, I), HIT(B));
  const bool recorded = atomic_load(&hold.recorded);
  runs(s, false); /* gk_graph_create made them, as the table has all values */
  bind_int(s, I, 1);
  refuses(t, GK_ERROR_INVALID, "slot 2 (B)", gk_bind_int(graph(s), B, 1));
  int before = atomic_load(&recordings);
  launch_refused(s, 0, "a call before it failed");
  expect_int(t, atomic_load(&recordings), before);
  runs(s, true);
  bind_int(s, I, 2);
  atomic_store(&failures_left, 1);
  must(t, gk_launch(graph(s), 0));
  CALLS_FAIL(s);
  runs(s, true);
  runs(s, false);
  given(s, "I=3 ONE=2");
  before = atomic_load(&recordings);
  must(t, gk_launch(graph(s), 0));
  refuses(t, GK_ERROR_INVALID, "2 elements", gk_wait(graph(s), NULL));
  if (recorded) expect(t, atomic_load(&recordings) > before, "nothing was recorded in front of a bad count");
  given(s, "ONE=1 B=0"); /* whether B was hit is left open */
  runs(s, false);
}
