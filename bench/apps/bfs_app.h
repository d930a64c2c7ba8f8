/* Breadth-first search as Beamer, Asanovic and Patterson do it (Direction-Optimizing Breadth-First Search, SC 2012). A
 * level is pushed by the vertices that were reached last (a top-down step). If these have too many edges, it is pulled
 * by the vertices that weren't reached yet (bottom-up). The results are the distances from a source, which don't depend
 * on the order of the search.
 *
 * The edges of a level are cut into pieces of at most PIECE, so that no item has all edges of a hub. An item claims a
 * vertex by a compare and swap of its distance. A plain read before it, during which other items may claim the vertex,
 * avoids most of these. The item that claims a vertex cuts its edges into pieces for the next level. With few threads,
 * one thread does the levels of few vertices. */
#ifndef BENCH_BFS_APP_H
#define BENCH_BFS_APP_H
#include "gk.h"

enum { BFS_SOURCES = 4 };

/* An undirected graph. Each edge is in the rows of both its vertices. Rows are sorted and have each neighbour once. */
typedef struct bfs_graph {
  int vertices, edges; /* edges: entries of all rows, twice the number of edges */
  int *first, *to;     /* row v: to[first[v]] to to[first[v + 1] - 1] */
  int sources[BFS_SOURCES];
  int *distances[BFS_SOURCES]; /* found by a queue; -1: out of reach */
} bfs_graph; /* all of this is in memory that processes share */

/* R-MAT as in Graph500: 2^scale vertices, numbered at random, 16 edges for each. */
void bench_bfs_make_rmat(bfs_graph *g, int scale);
/* Neighbours along x, y and z; one edge in ten is missing. With z = 1 it is much like a map of roads. */
void bench_bfs_make_mesh(bfs_graph *g, int x, int y, int z);

/* The expected distances. `queue` has room for all vertices. @return The number of vertices in reach */
int bench_bfs_by_queue(const bfs_graph *g, int source, int *distance, int *queue);

/* ---- the task list ----------------------------------------------------------------------------------------------- */

enum { FIRST = 1, TO, DIST, FRONT, PIECES, QUEUE, VERTICES, WORDS, EDGES, ROOM, SOURCE, PARTS, FEW, COUNT, MORE,
       FOUND, SCOUT, AWAKE, SEARCH };
/* For few threads, and for many threads, which share each level. */
extern const gk_list bench_bfs_list, bench_bfs_wide_list;

/* The same for a loop on the host. After each stretch an int is the number of the next one; 0: the search is over. */
enum { BFS_END, BFS_PUSH, BFS_GATHER, BFS_PULL, BFS_ALONE, BFS_STRETCHES };
extern const gk_list bench_bfs_begin;
extern const gk_list bench_bfs_stretches[BFS_STRETCHES];
/* The offsets in SEARCH's memory, in bytes, of that int and of the number of levels. */
extern const size_t bench_bfs_next, bench_bfs_level;

/* Binds the slots of memory, and uploads the graph. */
void bench_bfs_bind(gk_device *device, gk_graph *graph, const bfs_graph *g);
/* All numbers but SOURCE.
 * @param parts  Parts of a level's pieces, one per item. On the host it is the number of threads: then the vertices
 *               that a thread found are together in the next level and go to this thread again. On a GPU it is the
 *               maximum.
 * @param few    The vertices of the smallest level that is shared; 0: all are */
enum { BFS_NUMBERS = 6 };
typedef struct bfs_number {
  gk_slot slot;
  int value;
} bfs_number;
void bench_bfs_numbers(const bfs_graph *g, int parts, int few, bfs_number numbers[BFS_NUMBERS]);
#endif
