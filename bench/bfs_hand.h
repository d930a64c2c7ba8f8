/* The search of bfs_app.c by hand with OpenMP, in two ways. */
#ifndef BENCH_BFS_HAND_H
#define BENCH_BFS_HAND_H
#include "bfs_app.h"

typedef struct bfs_hand bfs_hand;
/* NULL: out of memory. */
bfs_hand *bfs_hand_begin(const bfs_graph *g);
/* The same stages, a parallel region for each, the threads taking chunks as they come. @return The distances. */
const int *bfs_hand_loops(bfs_hand *h, int source);
/* One region, fixed shares, decisions taken by each thread. */
const int *bfs_hand_region(bfs_hand *h, int source);
#endif
