/* The search of bfs_app.c by hand with OpenMP, in two ways. */
#ifndef BENCH_BFS_HAND_H
#define BENCH_BFS_HAND_H
#include "bench/apps/bfs_app.h"

/* The limits of the decisions, the same here and in bfs_app.c. */
enum { BFS_PIECE = 64, BFS_ALPHA = 14, BFS_BETA = 24, BFS_GAMMA = 2048, BFS_FEW = 100 /* vertices of a level */ };

/* Copies the graph into memory like gk's. */
void bench_bfs_copy(const bfs_graph *g, bfs_graph *to);

typedef struct bfs_hand bfs_hand;
/* Makes a copy of the graph. */
bfs_hand *bench_bfs_hand_begin(const bfs_graph *g);
/* The stages of bfs_app.c, with a parallel region for each and dynamic chunks. Here and below one thread does the
 * levels of fewer than BFS_FEW vertices, with a queue.
 * @return The distances */
const int *bench_bfs_hand_loops(bfs_hand *h, int source);
/* One region, fixed shares, and each thread makes all decisions. */
const int *bench_bfs_hand_region(bfs_hand *h, int source);
#endif
