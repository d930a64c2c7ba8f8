/* Breadth-first search as Beamer, Asanovic and Patterson do it (Direction-Optimizing Breadth-First Search, SC 2012): a
 * level is pushed from those that were reached last (a top-down step), or, where these have too many edges, pulled by
 * those that weren't reached yet (bottom-up). What comes of it are the distances from a source, which are the same in
 * whatever order one looks.
 *
 * The edges of a level are cut into pieces of at most PIECE, so that no item has those of a hub. A vertex is claimed by
 * a compare and swap of its distance; most of these are spared by looking at it before, while others may claim it. Who
 * claims it cuts its edges for the next level. Where there are few threads, levels of few vertices are one thread's. */
#ifndef BENCH_BFS_APP_H
#define BENCH_BFS_APP_H
#include "gk.h"

enum { BFS_SOURCES = 4 };

/* Undirected, each edge in both of its vertices' rows, which are sorted and name each neighbour once. */
typedef struct bfs_graph {
  int vertices, edges; /* edges: twice as many as there are, as they stand in the rows */
  int *first, *to;     /* row v: to[first[v]] to to[first[v + 1] - 1] */
  int sources[BFS_SOURCES];
  int *distances[BFS_SOURCES]; /* as a queue finds them; -1: out of reach */
} bfs_graph; /* all of it in memory that processes share */

/* R-MAT as in Graph500: 2^scale vertices, numbered at random, 16 edges for each. */
void bench_bfs_make_rmat(bfs_graph *g, int scale);
/* Neighbours along x, y and z; one edge in ten is missing. With z = 1 it is much like a map of roads. */
void bench_bfs_make_mesh(bfs_graph *g, int x, int y, int z);

/* What they are held against. `queue` has room for all vertices. @return How many are in reach. */
int bench_bfs_by_queue(const bfs_graph *g, int source, int *distance, int *queue);

/* ---- the task list ----------------------------------------------------------------------------------------------- */

enum { FIRST = 1, TO, DIST, FRONT, PIECES, QUEUE, VERTICES, WORDS, EDGES, ROOM, SOURCE, PARTS, FEW, COUNT, MORE,
       FOUND, SCOUT, AWAKE, SEARCH };
/* For a few threads, and for many: there, no level is small enough to be one thread's. */
extern const gk_list bench_bfs_list, bench_bfs_wide_list;

/* The same for a loop of the host's, which looks at an int behind each of them: which is next, or 0, the end. */
enum { BFS_END, BFS_PUSH, BFS_GATHER, BFS_PULL, BFS_ALONE, BFS_STRETCHES };
extern const gk_list bench_bfs_begin;
extern const gk_list bench_bfs_stretches[BFS_STRETCHES];
/* Places in SEARCH's memory, in bytes: that int's, and that of how many levels there were. */
extern const size_t bench_bfs_next, bench_bfs_level;

/* Gives the slots that are memory theirs, and uploads the graph. */
void bench_bfs_bind(gk_device *device, gk_graph *graph, const bfs_graph *g);
/* All numbers but SOURCE. parts: of a level's pieces, each for one item. On the host as many as there are threads, so
 * that what a thread has found lies together in the next level and is its own once more; on a GPU as many as can be.
 * few: vertices of a level that is worth sharing; 0: each is. */
enum { BFS_NUMBERS = 6 };
typedef struct bfs_number {
  gk_slot slot;
  int value;
} bfs_number;
void bench_bfs_numbers(const bfs_graph *g, int parts, int few, bfs_number numbers[BFS_NUMBERS]);
#endif
