/* What most cases about checkpoints are made of: a slot per letter, each an int of the graph's own, and tasks so small
 * that a list reads like a line of the contract's table. */
#ifndef LETTERS_H
#define LETTERS_H
#include "conformance.h"
#include "kernels.h"

/* A to E count; F, G, H are flags of yields and branches; K chooses cases; L, M, N are flags of loops that count down;
 * S counts always-tasks; T is a clock; U to Z are for what else there is. */
enum letter { A = 1, B, C, D, E, F, G, H, K, L, M, N, S, T, U, V, W, X, Y, Z };
#define INT(s) GK_OWN(s, int, 1)
static const gk_slot_desc letters[] = {INT(A), INT(B), INT(C), INT(D), INT(E), INT(F), INT(G), INT(H), INT(K), INT(L),
                                       INT(M), INT(N), INT(S), INT(T), INT(U), INT(V), INT(W), INT(X), INT(Y), INT(Z)};
enum label { FIRST = 1, SECOND, THIRD, FOURTH, OUTER = 11, MIDDLE, INNER };

#define HIT(x) GK_RUN(count, GK_ONE, x)
#define HIT_ALWAYS(x) GK_RUN_ALWAYS(count, GK_ONE, x)
#define DOWN(n) GK_RUN(decrease, GK_ONE, n)
#define SET(x, v) GK_FILL(x, GK_ONE, v)
/* When it ran last, in ticks of T. */
#define STAMP(x) GK_RUN(stamp, GK_ONE, T, x)
/* Sets the flag once x has come to what is in `wanted`, and never clears it. */
#define RAISE_AT(flag, x, wanted) GK_RUN(raise_at, GK_ONE, flag, x, wanted)

/* A graph of the letters. */
#define GRAPH(t, tasks) graph_of((t), LIST_OF(tasks, letters), 0)
#endif
