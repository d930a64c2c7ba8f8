#include "bench/apps/bfs_hand.h"
#include "bench/harness/apart.h"
#include <omp.h>
#include <string.h>

enum { PIECE = BFS_PIECE, HELD = 1024, CHUNK = 256 /* pieces or words at a time */ };

typedef struct piece { int begin, end; } piece;
/* Sums of all threads over a level. */
typedef struct sums { int found, gathered, pieces, scout, awake; } sums;

struct bfs_hand {
  bfs_graph copy;
  const bfs_graph *g; /* the copy */
  int words, *dist, *queue;
  uint32_t *front;
  piece *pieces, *more; /* more: the next level's pieces, while this level's are pushed */
  sums levels[3]; /* of this level, the previous one and the next one, whose sums are 0 */
};

void bench_bfs_copy(const bfs_graph *g, bfs_graph *to) {
  const size_t rows = ((size_t)g->vertices + 1) * sizeof *g->first, edges = (size_t)g->edges * sizeof *g->to;
  *to = *g;
  to->first = bench_large(rows);
  to->to = bench_large(edges);
  memcpy(to->first, g->first, rows);
  memcpy(to->to, g->to, edges);
}

bfs_hand *bench_bfs_hand_begin(const bfs_graph *g) {
  const size_t n = (size_t)g->vertices, words = (n + 31) / 32;
  bfs_hand *h = bench_alloc(1, sizeof *h);
  bench_bfs_copy(g, &h->copy);
  h->g = &h->copy;
  h->words = (int)words;
  h->dist = bench_large(n * sizeof *h->dist);
  h->queue = bench_large(n * sizeof *h->queue);
  h->front = bench_large(words * sizeof *h->front);
  h->pieces = bench_large((n + (size_t)g->edges / PIECE) * sizeof *h->pieces);
  h->more = bench_large((n + (size_t)g->edges / PIECE) * sizeof *h->more);
  return h;
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

static int smaller(int a, int b) { return a < b ? a : b; }

typedef struct share { int begin, end; } share;

static share share_of(int count, int step) {
  const int64_t me = omp_get_thread_num(), threads = omp_get_num_threads(), steps = (count + step - 1) / step;
  return (share){(int)(steps * me / threads) * step, smaller((int)(steps * (me + 1) / threads) * step, count)};
}

/* ---- stages, over a part of their items -------------------------------------------------------------------------- */

static uint32_t bit_of(int v) { return 1u << (v & 31); }
static int add(int *to, int v) { return __atomic_fetch_add(to, v, __ATOMIC_RELAXED); }

static int row_pieces(const bfs_hand *h, int v) { return (h->g->first[v + 1] - h->g->first[v] + PIECE - 1) / PIECE; }

static int cut_row(const bfs_hand *h, int v, piece *pieces, int at) {
  const int end = h->g->first[v + 1];
  for (int e = h->g->first[v]; e < end; e += PIECE) pieces[at++] = (piece){e, smaller(e + PIECE, end)};
  return at;
}

static bool claim(bfs_hand *h, int v, int level) {
  int unreached = -1;
  return __atomic_compare_exchange_n(&h->dist[v], &unreached, level + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Adds these vertices to the sums, and cuts their rows into pieces. */
static void cut_rows(const bfs_hand *h, const int *vertices, int count, piece *pieces, sums *to) {
  int many = 0, edges = 0;
  for (int k = 0; k < count; ++k) {
    many += row_pieces(h, vertices[k]);
    edges += h->g->first[vertices[k] + 1] - h->g->first[vertices[k]];
  }
  int at = add(&to->pieces, many);
  add(&to->scout, edges);
  for (int k = 0; k < count; ++k) at = cut_row(h, vertices[k], pieces, at);
}

static void push(bfs_hand *h, const piece *pieces, share some, int level, piece *more, sums *to) {
  int held[HELD], kept = 0, found = 0;
  for (int p = some.begin; p < some.end; ++p)
    for (int e = pieces[p].begin; e < pieces[p].end; ++e) {
      const int w = h->g->to[e];
      if (__atomic_load_n(&h->dist[w], __ATOMIC_RELAXED) >= 0 || !claim(h, w, level)) continue;
      if (kept == HELD) {
        cut_rows(h, held, kept, more, to);
        kept = 0;
      }
      held[kept++] = w;
      ++found;
    }
  if (!found) return;
  cut_rows(h, held, kept, more, to);
  add(&to->found, found);
}

static void gather(bfs_hand *h, int begin, int end, int level, piece *pieces, sums *to) {
  const int last = smaller(32 * end, h->g->vertices);
  int many = 0;
  for (int v = 32 * begin; v < last; ++v)
    if (h->dist[v] == level) many += row_pieces(h, v);
  int at = many ? add(&to->gathered, many) : 0;
  for (int v = 32 * begin; v < last && many; ++v)
    if (h->dist[v] == level) at = cut_row(h, v, pieces, at);
}

static void flag(bfs_hand *h, int begin, int end, int level) {
  for (int word = begin; word < end; ++word) {
    const int last = smaller(32 * word + 32, h->g->vertices);
    uint32_t bits = 0;
    for (int v = 32 * word; v < last; ++v)
      if (h->dist[v] == level) bits |= bit_of(v);
    h->front[word] = bits;
  }
}

static int pull(bfs_hand *h, int begin, int end, int level) {
  int awake = 0;
  for (int v = begin; v < end; ++v) {
    if (h->dist[v] >= 0) continue;
    for (int e = h->g->first[v]; e < h->g->first[v + 1]; ++e) {
      const int w = h->g->to[e];
      if (!(h->front[w >> 5] & bit_of(w))) continue;
      h->dist[v] = level + 1;
      ++awake;
      break;
    }
  }
  return awake;
}

/* ---- what comes next --------------------------------------------------------------------------------------------- */

typedef struct course {
  int level, awake, unpushed, pieces;
  bool pulls, gathers, goes_on;
} course;

static course start(bfs_hand *h, int source) {
  const int edges = h->g->first[source + 1] - h->g->first[source];
  h->dist[source] = 0;
  h->levels[0] = (sums){0};
  return (course){.awake = 1, .unpushed = h->g->edges - edges, .pieces = cut_row(h, source, h->pieces, 0),
                  .goes_on = true};
}

static void decide(const bfs_hand *h, course *c, const sums *level) {
  const int reached = level->found + level->awake;
  const bool pulled = c->pulls;
  c->pulls = pulled ? reached >= c->awake || reached > h->g->vertices / BFS_BETA
                    : level->scout > c->unpushed / BFS_ALPHA && reached >= h->g->vertices / BFS_GAMMA;
  if (!c->pulls) c->unpushed -= level->scout;
  c->level += 1;
  c->awake = reached;
  c->gathers = pulled && !c->pulls;
  c->pieces = level->pieces;
  c->goes_on = reached != 0;
}

/* ---- levels that aren't worth sharing ---------------------------------------------------------------------------- */

static bool is_small(const course *c) { return c->goes_on && !c->pulls && !c->gathers && c->awake < BFS_FEW; }

/* Called by one thread while the others wait. Appends the vertices that these edges reach first to the queue. */
static inline int reach(const bfs_graph *g, int *dist, int begin, int end, int level, int *queue, int count) {
  for (int e = begin; e < end; ++e) {
    const int w = g->to[e];
    if (dist[w] >= 0) continue;
    dist[w] = level + 1;
    queue[count++] = w;
  }
  return count;
}

/* Does consecutive small levels with a queue of vertices. Such levels are never pulled. @return The next pass */
static int go_alone(bfs_hand *h, course *c, int pass) {
  if (!is_small(c)) return pass;
  const bfs_graph g = *h->g;
  const piece *pieces = pass % 2 ? h->more : h->pieces;
  int *queue = h->queue, begin = 0, count = 0;
  for (int p = 0; p < c->pieces; ++p)
    count = reach(&g, h->dist, pieces[p].begin, pieces[p].end, c->level, queue, count);
  for (++pass, ++c->level; begin < count && count - begin < BFS_FEW; ++pass, ++c->level) {
    const int end = count;
    for (; begin < end; ++begin) {
      const int from = g.first[queue[begin]], to = g.first[queue[begin] + 1];
      c->unpushed -= to - from;
      count = reach(&g, h->dist, from, to, c->level, queue, count);
    }
  }
  sums level = {.found = count - begin};
  cut_rows(h, queue + begin, count - begin, pass % 2 ? h->more : h->pieces, &level);
  --c->level;
  decide(h, c, &level);
  return pass;
}

/* ---- two ways ---------------------------------------------------------------------------------------------------- */

#define CHUNKS_OF(count) _Pragma("omp parallel for schedule(dynamic)") for (int k = 0; k < (count); k += CHUNK)

const int *bench_bfs_hand_loops(bfs_hand *h, int source) {
  const int n = h->g->vertices;
#pragma omp parallel for schedule(static)
  for (int v = 0; v < n; ++v) h->dist[v] = -1;
  course c = start(h, source);
  for (int pass = go_alone(h, &c, 0); c.goes_on; pass = go_alone(h, &c, pass + 1)) {
    sums level = {0};
    piece *pieces = pass % 2 ? h->more : h->pieces, *more = pass % 2 ? h->pieces : h->more;
    if (c.pulls) {
      CHUNKS_OF(h->words) flag(h, k, smaller(k + CHUNK, h->words), c.level);
      int awake = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : awake)
      for (int v = 0; v < n; v += 16 * CHUNK) awake += pull(h, v, smaller(v + 16 * CHUNK, n), c.level);
      level.awake = awake;
    } else {
      if (c.gathers) {
        CHUNKS_OF(h->words) gather(h, k, smaller(k + CHUNK, h->words), c.level, pieces, &level);
        c.pieces = level.gathered;
      }
      CHUNKS_OF(c.pieces) push(h, pieces, (share){k, smaller(k + CHUNK, c.pieces)}, c.level, more, &level);
    }
    decide(h, &c, &level);
  }
  return h->dist;
}

const int *bench_bfs_hand_region(bfs_hand *h, int source) {
  const int n = h->g->vertices;
  int next;
  course shared;
#pragma omp parallel
  {
    const share mine = share_of(n, 32), words = share_of(h->words, 1);
    memset(h->dist + mine.begin, 0xff, (size_t)(mine.end - mine.begin) * sizeof *h->dist);
#pragma omp barrier
#pragma omp master
    {
      shared = start(h, source);
      next = go_alone(h, &shared, 0);
      h->levels[next % 3] = (sums){0};
    }
#pragma omp barrier
    course c = shared;
    for (int pass = next; c.goes_on; ++pass) {
      sums *level = &h->levels[pass % 3];
      piece *pieces = pass % 2 ? h->more : h->pieces, *more = pass % 2 ? h->pieces : h->more;
      if (omp_get_thread_num() == 0) h->levels[(pass + 1) % 3] = (sums){0};
      if (c.pulls) {
        flag(h, words.begin, words.end, c.level);
#pragma omp barrier
        add(&level->awake, pull(h, mine.begin, mine.end, c.level));
      } else {
        if (c.gathers) {
          gather(h, words.begin, words.end, c.level, pieces, level);
#pragma omp barrier
          c.pieces = level->gathered;
        }
        push(h, pieces, share_of(c.pieces, 1), c.level, more, level);
      }
#pragma omp barrier
      decide(h, &c, level);
      if (!is_small(&c)) continue;
#pragma omp barrier
#pragma omp master
      {
        shared = c;
        next = go_alone(h, &shared, pass + 1);
        h->levels[next % 3] = (sums){0};
      }
#pragma omp barrier
      c = shared;
      pass = next - 1;
    }
  }
  return h->dist;
}
