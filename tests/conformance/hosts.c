/* GK_CALL_HOST: what its function sees and who sees what it wrote, when it is called, on which thread, how it fails. */
#include "harness.h"
#include "kernels.h"
#include "reference/reference.h"
#include <pthread.h>
#include <string.h>

/* A, B and S count; F and G are flags; N and M are flags of loops that count down; P and Q are memory that the host
 * reaches; W and X are for the functions. */
enum { W = 1, X, A, B, F, G, N, M, S, P, Q };
enum { FIRST = 1, SECOND, THIRD };
static const gk_slot_desc slots[] = {{.slot = W, .type = GK_HOST_PTR, .name = "W"},
                                     {.slot = X, .type = GK_HOST_PTR, .name = "X"}, INT(A), INT(B), INT(F), INT(G),
                                     INT(N), INT(M), INT(S), GK_BUFFER(P, int), GK_BUFFER(Q, int)};

/* What a function was told, and what it does. */
typedef struct told {
  int calls, natives, last;
  pthread_t thread;
  gk_result answer;
  int fails_at, cancels_at; /* the call that does; 0: none */
  subject *cancels;
  bool is_reference;
} told;

/* On the device's side and on the reference's: of W and X. */
static struct { told is, wanted; } sides[2];

static gk_result triple(const gk_value *args, void *native) {
  told *w = args[0].ptr;
  int *p = args[1].ptr;
  ++w->calls;
  w->natives += native != NULL;
  w->thread = pthread_self();
  w->last = p[0] = 3 * p[0] + 1;
  gk_result result = w->calls == w->fails_at ? w->answer : GK_OK;
  if (w->calls != w->cancels_at) return result;
  if (w->is_reference) reference_cancel(reference_of(w->cancels));
  else result = gk_cancel(graph(w->cancels));
  return result;
}
#define TRIPLE(w, p) GK_CALL_HOST(triple, w, p)

/* Where the device decides alone, the host has to. */
static subject *hosted(trial *t, const gk_list *list, uint32_t bits) {
  gk_graph *first = NULL;
  gk_result result = gk_graph_create(device_of(t), list, bits, &first);
  if (result == GK_ERROR_UNSUPPORTED) result = gk_graph_create(device_of(t), list, bits |= GK_HOST_GATED, &first);
  gk_graph_destroy(first);
  if (result == GK_ERROR_UNSUPPORTED) skip(t, "no host walks lists here: %s", gk_error());
  must(t, result);
  memset(sides, 0, sizeof sides);
  subject *s = graph_of(t, list, bits);
  for (int k = 0; k < 2; ++k) {
    sides[k].wanted.is_reference = true;
    bind_host(s, W + k, &sides[k].is, &sides[k].wanted);
    bind_buffer(s, P + k, buffer_for_host(t, 1));
    expect_int(t, sides[k].is.calls, 0);
  }
  return s;
}
#define HOSTED(s, bits, ...) \
  static const gk_task s##_tasks[] = {__VA_ARGS__}; \
  subject *s = hosted(t, LIST_OF(s##_tasks, slots), bits)

/* So many calls with W since the beginning, as the reference has them. */
static void called(trial *t, int wanted) {
  for (int k = 0; k < 2; ++k) {
    expect_int(t, sides[k].is.calls, sides[k].wanted.calls);
    expect_int(t, sides[k].is.last, sides[k].wanted.last);
    expect_int(t, sides[k].is.natives, 0);
  }
  expect_int(t, sides[0].is.calls, wanted);
}

CASE(host_sees_and_is_seen) {
  HOSTED(s, 0, HIT(P), TRIPLE(W, P), HIT(P), TRIPLE(W, P), TRIPLE(W, P), GK_COPY(A, P, GK_ONE));
  trace(s, 0, "P=0 -> P=49 A=49");
  called(t, 3);
  trace(s, 0, "P=2 -> P=103 A=103");
  bind_buffer(s, P, buffer_for_host(t, 1));
  trace(s, 0, "P=0 -> P=49");
  called(t, 9);
}

/* First, last and alone in blocks; a function's memory is the flag of a branch and of a loop. */
CASE(host_in_loop_and_branch) {
  HOSTED(s, 0, TRIPLE(W, P), GK_IF(P), HIT(A), GK_END, GK_IF(F), TRIPLE(W, P), GK_ELSE, HIT(B), TRIPLE(X, Q), GK_END,
         GK_DO_WHILE(N), TRIPLE(W, P), GK_WHILE(M), DOWN(M), TRIPLE(X, Q), HIT(A), GK_END, DOWN(N), GK_END,
         GK_WHILE(Q), TRIPLE(X, Q), GK_FILL(Q, GK_ONE, 0), GK_END, GK_DO_WHILE(G), TRIPLE(W, P), GK_END);
  trace(s, 0, "F=0 N=3 M=2 -> A=3 B=1 P=121 Q=0, passes N=3 M=2 Q=1 G=1");
  called(t, 5);
  trace(s, 0, "F=1 N=1 P=0 -> A=4 B=1 P=40 Q=0, passes N=1 M=0 Q=0 G=1");
  called(t, 9);
}

/* Not called: first in a launch behind a decision, in front of a target, behind a yield. */
CASE(host_skipped) {
  HOSTED(s, 0, GK_IF(F), TRIPLE(W, P), GK_END, GK_WHILE(N), TRIPLE(W, P), DOWN(N), GK_END, GK_SWITCH(M), GK_CASE,
         GK_END, GK_CASE, TRIPLE(W, P), GK_END, GK_END, GK_YIELD(FIRST), TRIPLE(X, Q), GK_CHECKPOINT(SECOND, G), GK_END,
         TRIPLE(W, P));
  trace(s, 0, "P=0 Q=0, yielded FIRST, passes N=0");
  called(t, 0);
  trace(s, FIRST, "G=1 -> P=0 Q=1, yielded SECOND");
  called(t, 0);
  trace(s, SECOND, "G=0 -> P=1 Q=1");
  called(t, 1);
  trace(s, 0, "F=1 N=1 M=1 -> P=40 Q=1, yielded FIRST, passes N=1");
  called(t, 4);
}

CASE(host_again_with_its_block) {
  HOSTED(s, 0, TRIPLE(X, Q), GK_CHECKPOINT(FIRST, F), HIT(P), TRIPLE(W, P), GK_END, HIT(A), GK_YIELD(SECOND),
         TRIPLE(X, Q), GK_DO_WHILE(N), GK_CHECKPOINT(THIRD, G), TRIPLE(W, P), DOWN(N), GK_END, GK_END);
  trace(s, 0, "F=1 N=2 -> P=4 Q=1 A=0, yielded FIRST");
  trace(s, FIRST, "F=0 -> P=16 Q=1 A=1, yielded SECOND");
  trace(s, SECOND, "G=1 -> P=49 Q=4 A=1 N=1, yielded THIRD, passes N=0");
  trace(s, THIRD, "G=0 -> P=148 N=0, passes N=1");
  called(t, 4);
}

CASE(host_always) {
  static const gk_task tasks[] = {
      {.op = GK_OP_CALL_HOST, .bits = GK_ALWAYS, .name = "triple", .call = triple, .args = {W, P}}, HIT(A),
      GK_YIELD(FIRST), HIT(B), HIT_ALWAYS(Q),
      {.op = GK_OP_CALL_HOST, .bits = GK_ALWAYS, .name = "triple", .call = triple, .args = {X, Q}}};
  subject *s = hosted(t, LIST_OF(tasks, slots), 0);
  trace(s, 0, "P=1 A=1 B=0 Q=4, yielded FIRST");
  trace(s, FIRST, "P=4 A=1 B=1 Q=16");
  called(t, 2);
}

/* That of gk_launch_wait, else one of gk's own, for all calls of a launch. */
CASE(host_thread) {
  HOSTED(s, 0, TRIPLE(W, P), GK_IF(F), TRIPLE(X, Q), GK_END, HIT(A));
  put(s, F, 1);
  must(t, gk_launch_wait(graph(s), 0, NULL));
  expect(t, pthread_equal(sides[0].is.thread, pthread_self()), "called on another thread than gk_launch_wait's");
  expect(t, pthread_equal(sides[1].is.thread, pthread_self()), "called on another thread than gk_launch_wait's");
  must(t, gk_launch(graph(s), 0));
  must(t, gk_wait(graph(s), NULL));
  expect(t, !pthread_equal(sides[0].is.thread, pthread_self()), "called on the thread of gk_launch");
  expect(t, pthread_equal(sides[0].is.thread, sides[1].is.thread), "called on two threads in one launch");
}

CASE(host_error) {
  HOSTED(s, 0, HIT(A), GK_IF(F), TRIPLE(W, P), HIT(B), GK_END, HIT(B), TRIPLE(X, Q), HIT_ALWAYS(S));
  put(s, F, 1);
  static const gk_result answers[] = {GK_ERROR_UNSUPPORTED, GK_ERROR_MEMORY, GK_NOT_READY, (gk_result)77};
  for (int k = 0; k < (int)GK_COUNT(answers); ++k) {
    sides[0].is.fails_at = k + 1;
    sides[0].is.answer = answers[k];
    must(t, gk_launch(graph(s), 0));
    refuses(t, k < 2 ? answers[k] : GK_ERROR_INVALID, "task 2 (triple)", gk_wait(graph(s), NULL));
    expect_int(t, get(s, A), k + 1);
    expect_int(t, get(s, B), 0);
    expect_int(t, get(s, S), 0);
  }
  expect_int(t, sides[0].is.calls, 4);
  expect_int(t, sides[1].is.calls, 0);
  must(t, gk_launch(graph(s), 0));
  must(t, gk_wait(graph(s), NULL));
  expect_int(t, get(s, B), 2);
  expect_int(t, get(s, S), 1);
}

/* It takes effect at the next end of a loop. */
CASE(host_cancels) {
  HOSTED(s, GK_CANCELLABLE, GK_DO_WHILE(F), HIT(A), TRIPLE(W, P), HIT(B), GK_END, HIT(A), HIT_ALWAYS(S));
  sides[0].is.cancels = sides[0].wanted.cancels = s;
  sides[0].is.cancels_at = sides[0].wanted.cancels_at = 3;
  trace(s, 0, "F=1 -> A=3 B=3 P=13 S=1, cancelled, passes F=3");
  called(t, 3);
}

CASE(host_in_sections) {
  HOSTED(s, 0, GK_DO_WHILE(N), GK_PARALLEL, GK_SECTION, HIT(P), TRIPLE(W, P), HIT(P), TRIPLE(W, P), GK_END, GK_SECTION,
         GK_IF(F), HIT(Q), TRIPLE(X, Q), GK_END, HIT(Q), GK_END, GK_SECTION, HIT(A), GK_END, GK_END, DOWN(N), GK_END,
         GK_PARALLEL, GK_SECTION, TRIPLE(W, P), GK_END, GK_SECTION, TRIPLE(X, Q), GK_END, GK_END,
         GK_COPY(B, P, GK_ONE));
  trace(s, 0, "F=1 N=2 -> P=481 Q=61 A=2 B=481, passes N=2");
  called(t, 5);
}

CASE(host_in_included_lists) {
  static const gk_task inner_tasks[] = {HIT(A), TRIPLE(W, P), GK_YIELD(FIRST), TRIPLE(W, P)};
  static const gk_list inner = GK_LIST(inner, inner_tasks, slots);
  HOSTED(s, 0, GK_INCLUDE_AS(one, inner, 10, W, X, A, B, F, G, N, M, S, P, Q), HIT(Q),
         GK_INCLUDE_AS(two, inner, 20, X, W, A, B, F, G, N, M, S, Q, P));
  expect_int(t, launch(s, 0)->yielded, 11);
  expect_int(t, launch(s, 11)->yielded, 21);
  trace(s, 21, "A=2 P=4 Q=13");
  called(t, 2);
}

/* It is of the work that is queued, too: launches of one graph don't overlap. */
CASE(host_queued) {
  HOSTED(s, 0, HIT(P), TRIPLE(W, P), HIT(A));
  for (int k = 0; k < 5; ++k) begin_launch(s, 0);
  finish_launches(s);
  holds(s, "P=484 A=5");
  called(t, 5);
}

/* No function is called by gk_graph_create. */
CASE(host_refused_native) {
  static const gk_task tasks[] = {HIT(A), GK_IF(F), TRIPLE(W, P), GK_END}, straight[] = {HIT(A), TRIPLE(W, P)};
  const gk_list *lists[] = {LIST_OF(tasks, slots), LIST_OF(straight, slots)};
  for (size_t k = 0; k < GK_COUNT(lists); ++k) {
    gk_graph *made = NULL;
    gk_result result = gk_graph_create(device_of(t), lists[k], 0, &made);
    gk_graph_destroy(made);
    if (result != GK_OK) refuses(t, GK_ERROR_UNSUPPORTED, "(triple)|GK_YIELD|GK_HOST_GATED", result);
    result = gk_graph_create(device_of(t), lists[k], GK_HOST_GATED, &made);
    gk_graph_destroy(made);
    if (result == GK_ERROR_UNSUPPORTED) skip(t, "no host walks lists here: %s", gk_error());
    must(t, result);
  }
}

static gk_result call_gk(const gk_value *args, void *native) {
  (void)native;
  return gk_launch(graph(((told *)args[0].ptr)->cancels), 0);
}

CASE(host_refused) {
  static const gk_task without[] = {{.op = GK_OP_CALL_HOST, .name = "lost"}};
  static const gk_task flag[] = {{.op = GK_OP_CALL_HOST, .name = "f", .call = triple, .flag = F}};
  static const gk_task racing[] = {GK_PARALLEL, GK_SECTION, TRIPLE(W, P), GK_END, GK_SECTION, TRIPLE(X, P), GK_END,
                                   GK_END};
  refuses_list(t, LIST_OF(without, slots), "call-null", 0, "task 0 (lost)|give it a function");
  refuses_list(t, LIST_OF(flag, slots), "field-unused", 0, ".flag is set, but CALL_HOST");
  refuses_list(t, LIST_OF(racing, slots), "race", SIZE_MAX, "slot 10 (P)");
  HOSTED(s, 0, HIT(A), GK_CALL_HOST(call_gk, W));
  sides[0].is.cancels = s;
  must(t, gk_launch(graph(s), 0));
  refuses(t, GK_ERROR_INVALID, "its own device", gk_wait(graph(s), NULL));
}
