/* Graphs made from a seed, and the distances that a search must find. */
#include "bench/apps/bfs_app.h"
#include "bench/harness/apart.h"
#include <stdlib.h>
#include <string.h>

typedef struct edge { int from, to; } edge;

static uint64_t state;

static uint64_t draw(void) { /* splitmix64 */
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void add_up(int *first, int n) {
  for (int v = 0; v < n; ++v) first[v + 1] += first[v];
}

/* Makes rows in which each end of an edge has the other end. */
static int *rows_of(const edge *edges, size_t count, int n, int *first) {
  for (size_t k = 0; k < count; ++k) {
    ++first[edges[k].from + 1];
    ++first[edges[k].to + 1];
  }
  add_up(first, n);
  int *to = bench_alloc((size_t)first[n], sizeof *to), *at = bench_alloc((size_t)n, sizeof *at);
  memcpy(at, first, (size_t)n * sizeof *at);
  for (size_t k = 0; k < count; ++k) {
    to[at[edges[k].from]++] = edges[k].to;
    to[at[edges[k].to]++] = edges[k].from;
  }
  free(at);
  return to;
}

/* Rows are symmetric, so appending v, in order, to the rows of its neighbours sorts all rows. */
static int *sorted(const int *first, const int *to, int n) {
  int *by_name = bench_alloc((size_t)first[n], sizeof *to), *at = bench_alloc((size_t)n, sizeof *at);
  memcpy(at, first, (size_t)n * sizeof *at);
  for (int v = 0; v < n; ++v)
    for (int e = first[v]; e < first[v + 1]; ++e) by_name[at[to[e]]++] = v;
  free(at);
  return by_name;
}

static void build(bfs_graph *g, const edge *edges, size_t count, int n) {
  int *first = bench_alloc((size_t)n + 1, sizeof *first);
  int *raw = rows_of(edges, count, n, first), *to = sorted(first, raw, n), kept = 0;
  free(raw);
  g->vertices = n;
  g->first = bench_shared(((size_t)n + 1) * sizeof *g->first);
  g->to = bench_shared((size_t)first[n] * sizeof *g->to);
  for (int v = 0; v < n; ++v) {
    g->first[v] = kept;
    for (int e = first[v]; e < first[v + 1]; ++e) {
      const bool again = e > first[v] && to[e] == to[e - 1];
      if (!again && to[e] != v) g->to[kept++] = to[e];
    }
  }
  g->first[n] = g->edges = kept;
  free(to);
  free(first);
}

/* ---- what is to be found ----------------------------------------------------------------------------------------- */

int bench_bfs_by_queue(const bfs_graph *g, int source, int *distance, int *queue) {
  int begin = 0, end = 1;
  memset(distance, 0xff, (size_t)g->vertices * sizeof *distance);
  distance[source] = 0;
  for (queue[0] = source; begin < end; ++begin) {
    const int v = queue[begin];
    for (int e = g->first[v]; e < g->first[v + 1]; ++e) {
      const int w = g->to[e];
      if (distance[w] >= 0) continue;
      distance[w] = distance[v] + 1;
      queue[end++] = w;
    }
  }
  return end;
}

static bool is_new(const bfs_graph *g, int k) {
  for (int other = 0; other < k; ++other)
    if (g->sources[other] == g->sources[k]) return false;
  return true;
}

/* Sources that reach a good part of the graph. */
static void choose_sources(bfs_graph *g) {
  const size_t n = (size_t)g->vertices;
  int *queue = bench_alloc(n, sizeof *queue);
  for (int k = 0; k < BFS_SOURCES; ++k) {
    g->distances[k] = bench_shared(n * sizeof *g->distances[k]);
    int reached = 0;
    for (int tries = 0; reached < g->vertices / 4 || !is_new(g, k); ++tries) {
      if (tries == 1000) bench_fail("a graph without a large component");
      g->sources[k] = (int)(draw() % n);
      reached = bench_bfs_by_queue(g, g->sources[k], g->distances[k], queue);
    }
  }
  free(queue);
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

/* The probabilities of the corners, times 2^16: 0.57, 0.19, 0.19, 0.05. */
static edge throw_edge(int scale) {
  edge e = {0, 0};
  uint64_t random = 0;
  for (int bit = 0; bit < scale; ++bit) {
    random = bit % 4 == 0 ? draw() : random >> 16;
    const uint64_t at = random & 0xffff;
    e.from = 2 * e.from + (at >= 49807);
    e.to = 2 * e.to + ((at >= 37356 && at < 49807) || at >= 62259);
  }
  return e;
}

void bench_bfs_make_rmat(bfs_graph *g, int scale) {
  const int n = 1 << scale;
  const size_t count = 16 * (size_t)n;
  edge *edges = bench_alloc(count, sizeof *edges);
  int *names = bench_alloc((size_t)n, sizeof *names);
  state = 1;
  for (int v = 0; v < n; ++v) {
    const int at = (int)(draw() % (uint64_t)(v + 1));
    names[v] = names[at];
    names[at] = v;
  }
  for (size_t k = 0; k < count; ++k) {
    const edge e = throw_edge(scale);
    edges[k] = (edge){names[e.from], names[e.to]};
  }
  build(g, edges, count, n);
  free(names);
  free(edges);
  choose_sources(g);
}

void bench_bfs_make_mesh(bfs_graph *g, int x, int y, int z) {
  const int n = x * y * z, steps[] = {1, x, x * y};
  edge *edges = bench_alloc(3 * (size_t)n, sizeof *edges);
  size_t count = 0;
  state = 1;
  for (int v = 0; v < n; ++v) {
    const bool has[] = {v % x < x - 1, v / x % y < y - 1, v / x / y < z - 1};
    for (int way = 0; way < 3; ++way)
      if (has[way] && draw() % 10 != 0) edges[count++] = (edge){v, v + steps[way]};
  }
  build(g, edges, count, n);
  free(edges);
  choose_sources(g);
}
