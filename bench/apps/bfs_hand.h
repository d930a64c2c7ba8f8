/* The search of bfs_app.c by hand with OpenMP, in two ways. */
#ifndef BENCH_BFS_HAND_H
#define BENCH_BFS_HAND_H
#include "bench/apps/bfs_app.h"

/* What decides how a search goes, here and there. */
enum { BFS_PIECE = 64, BFS_ALPHA = 14, BFS_BETA = 24, BFS_GAMMA = 2048, BFS_FEW = 100 /* vertices of a level */ };

/* The same graph in memory as gk has its own in. False: out of memory. */
bool bench_bfs_copy(const bfs_graph *g, bfs_graph *to);

typedef struct bfs_hand bfs_hand;
/* With a copy of the graph. NULL: out of memory. */
bfs_hand *bench_bfs_hand_begin(const bfs_graph *g);
/* The same stages, a parallel region for each, the threads taking chunks as they come. Here as below one thread goes
 * through levels of fewer than BFS_FEW vertices, with a queue. @return The distances. */
const int *bench_bfs_hand_loops(bfs_hand *h, int source);
/* One region, fixed shares, decisions taken by each thread. */
const int *bench_bfs_hand_region(bfs_hand *h, int source);
#endif
