/* Most cases about checkpoints are made of these: a slot per letter, each an int of the graph's own, and tasks so small
 * that a list reads like a line of the contract's table. */
#ifndef LETTERS_H
#define LETTERS_H
#include "conformance.h"
#include "kernels.h"

/* A to E count; F, G, H are flags of yields and branches; K chooses cases; L, M, N are flags of loops that count down;
 * S counts always-tasks; T is a clock; U to Z are for what else there is. P and Q are memory of the host's; I is a
 * number, as are ONE, TWO and THREE. */
enum letter { A = 1, B, C, D, E, F, G, H, K, L, M, N, S, T, U, V, W, X, Y, Z, P, Q, I, ONE, TWO, THREE };
static const gk_slot_desc letters[] = {
  INT(A), INT(B), INT(C), INT(D), INT(E), INT(F), INT(G), INT(H), INT(K), INT(L), INT(M), INT(N), INT(S), INT(T),
  INT(U), INT(V), INT(W), INT(X), INT(Y), INT(Z), GK_BUFFER(P, int), GK_BUFFER(Q, int), GK_DEFAULT(I, int, 0),
  GK_DEFAULT(ONE, int, 1), GK_DEFAULT(TWO, int, 2), GK_DEFAULT(THREE, int, 3)};
enum label { FIRST = 1, SECOND, THIRD, FOURTH, OUTER = 11, MIDDLE, INNER };

/* When it ran last, in ticks of T. */
#define STAMP(x) GK_RUN(stamp, GK_ONE, T, x)
/* Sets the flag when x reaches the value in `wanted`, and never clears it. */
#define RAISE_AT(flag, x, wanted) GK_RUN(raise_at, GK_ONE, flag, x, wanted)

/* Declares s, a graph of these tasks over the letters. */
#define GRAPH(s, ...) GRAPH_OF(s, letters, __VA_ARGS__)

/* A case that is a list of the letters and what launches at these labels must come to:
 *   TRACED(name, TASKS(HIT(A), HIT(B)), {0, "A=1 B=1"}, {FIRST, "F=1 -> A=1 B=2, yielded FIRST"}) */
#define TRACED(name, tasks, ...) \
  CASE(name) { \
    static const gk_task tasks_[] = tasks; \
    static const launch_trace launches_[] = {__VA_ARGS__}; \
    subject *s = graph_of(t, LIST_OF(tasks_, letters), 0); \
    for (size_t k = 0; k < GK_COUNT(launches_); ++k) trace(s, launches_[k].label, launches_[k].wanted); \
  }
#define TASKS(...) {__VA_ARGS__}
typedef struct launch_trace { int32_t label; const char *wanted; } launch_trace;
#endif
