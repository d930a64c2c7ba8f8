#include "bench/apps/bfs_app.h"
#include "bench/apps/bfs_hand.h"
#include "bench/harness/must.h"
#include "gk_kernel.h"
#include <stddef.h>

GK_SOURCE(bench_bfs)
#define PIECE 64  /* edges */
#if defined(__CUDACC__) || defined(__HIPCC__) || defined(GK_GLSL) /* an item has one piece; on the host, many */
#define HELD 64   /* vertices that an item finds before it asks for room; at least a piece */
#else
#define HELD 1024
#endif
#define ALPHA 14  /* pull if the level has more than 1/ALPHA of the edges that weren't pushed yet */
#define BETA 24   /* push again if the level has less than 1/BETA of the vertices */
#define GAMMA 2048 /* don't pull a smaller level: a pull reads all other vertices */
#define NEXT_PUSH 1 /* for the host's loop; 0: the search is over */
#define NEXT_GATHER 2
#define NEXT_PULL 3
#define NEXT_ALONE 4

GK_STRUCT(search) { int level, awake, unpushed, pulling, gathering, small, base, next; };
GK_STRUCT(piece) { int begin, end; };

GK_FN int pieces_of(int edges) { return (edges + PIECE - 1) / PIECE; }
GK_FN int smaller(int a, int b) { return a < b ? a : b; }
GK_FN uint bit_of(int v) { return 1u << (uint)(v & 31); }

GK_KERNEL(start, (out(search, s), out(int, dist), out(piece, pieces), out(int, count), out(int, more), out(int, found),
                  out(int, scout), out(int, awake), in(int, first), value(int, source), value(int, edges),
                  value(int, few))) {
  int end = first[source + 1], at = 0;
  for (int e = first[source]; e < end; e += PIECE) {
    pieces[at].begin = e;
    pieces[at].end = smaller(e + PIECE, end);
    at += 1;
  }
  dist[source] = 0;
  s[0].level = 0;
  s[0].awake = 1;
  s[0].unpushed = edges - (end - first[source]);
  s[0].pulling = 0;
  s[0].gathering = 0;
  s[0].small = (int)(few > 1);
  s[0].base = 0;
  count[0] = at;
  more[0] = 0;
  found[0] = 0;
  scout[0] = 0;
  awake[0] = 0;
}
/* Consecutive levels that aren't worth sharing, one after the other. */
GK_KERNEL(alone, (inout(search, s), inout(piece, pieces), in(int, count), in(int, first), in(int, to),
                  inout(int, dist), inout(int, queue), out(int, more), out(int, found), out(int, scout),
                  value(int, room), value(int, few))) {
  int at = s[0].base, last = s[0].base + count[0], begin = 0, end = 0, level = s[0].level + 1, edges = 0;
  for (; at < last; ++at) {
    for (int e = pieces[at].begin; e < pieces[at].end; ++e) {
      int w = to[e];
      if (dist[w] >= 0) continue;
      dist[w] = level;
      queue[end] = w;
      end += 1;
    }
  }
  while (begin < end && end - begin < few) {
    level += 1;
    for (int here = end; begin < here; ++begin) {
      int row_end = first[queue[begin] + 1];
      edges += row_end - first[queue[begin]];
      for (int e = first[queue[begin]]; e < row_end; ++e) {
        int w = to[e];
        if (dist[w] >= 0) continue;
        dist[w] = level;
        queue[end] = w;
        end += 1;
      }
    }
  }
  s[0].unpushed -= edges;
  s[0].level = level - 1;
  found[0] = end - begin;
  edges = 0;
  at = room - s[0].base;
  for (; begin < end; ++begin) {
    int row_end = first[queue[begin] + 1];
    edges += row_end - first[queue[begin]];
    for (int e = first[queue[begin]]; e < row_end; e += PIECE) {
      pieces[at].begin = e;
      pieces[at].end = smaller(e + PIECE, row_end);
      at += 1;
    }
  }
  more[0] = at - (room - s[0].base);
  scout[0] = edges;
}
/* `pieces` has two halves: this level's, from `base` on, and the next level's. An item writes its held vertices at the
 * end. For this the loop makes one more pass, with an imaginary piece that needs all the room. */
GK_KERNEL(push, (in(search, s), inout(piece, pieces), in(int, count), in(int, first), in(int, to), atomic(int, dist),
                 atomic(int, more), sum(int, found), sum(int, scout), value(int, room), value(int, parts))) {
  int share = (count[0] + parts - 1) / parts;
  if (share > 64) { /* shares begin at multiples of 8: each item checks this, and few items divide */
    if ((i & 7) != 0) return;
    share = (share + 7) & ~7;
  }
  if (i % share != 0) return;
  int held[HELD], kept = 0, many = 0, reached = s[0].level + 1, here = s[0].base, last = smaller(i + share, count[0]);
  for (int p = i; p <= last; ++p) {
    int begin = p < last ? pieces[here + p].begin : 0, end = p < last ? pieces[here + p].end : HELD;
    if (kept != 0 && kept + end - begin > HELD) {
      int at = room - here + gk_atomic_add(&more[0], many);
      for (int k = 0; k < kept; ++k) {
        int row_end = first[held[k] + 1];
        for (int e = first[held[k]]; e < row_end; e += PIECE) {
          pieces[at].begin = e;
          pieces[at].end = smaller(e + PIECE, row_end);
          at += 1;
        }
      }
      kept = 0;
      many = 0;
    }
    if (p == last) return;
    for (int e = begin; e < end; ++e) {
      int w = to[e];
      if (gk_atomic_load(&dist[w]) >= 0) continue;
      if (gk_atomic_cas(&dist[w], -1, reached) != -1) continue;
      int edges = first[w + 1] - first[w];
      held[kept] = w;
      kept += 1;
      many += pieces_of(edges);
      found[0] += 1;
      scout[0] += edges;
    }
  }
}
/* Makes this level's pieces from the distances after the previous level was pulled: 32 vertices per item. */
GK_KERNEL(gather, (in(search, s), in(int, dist), in(int, first), out(piece, pieces), atomic(int, count),
                   value(int, n))) {
  int many = 0, begin = 32 * i, last = smaller(begin + 32, n);
  for (int v = begin; v < last; ++v)
    if (dist[v] == s[0].level) many += pieces_of(first[v + 1] - first[v]);
  if (many == 0) return;
  int at = s[0].base + gk_atomic_add(&count[0], many);
  for (int v = begin; v < last; ++v) {
    if (dist[v] != s[0].level) continue;
    int end = first[v + 1];
    for (int e = first[v]; e < end; e += PIECE) {
      pieces[at].begin = e;
      pieces[at].end = smaller(e + PIECE, end);
      at += 1;
    }
  }
}
GK_KERNEL(flag_front, (in(search, s), in(int, dist), out(uint, front), value(int, n))) {
  uint bits = 0u;
  int begin = 32 * i, last = smaller(begin + 32, n), level = s[0].level;
  for (int v = begin; v < last; ++v)
    if (dist[v] == level) bits |= bit_of(v);
  front[i] = bits;
}
GK_KERNEL(pull, (in(search, s), in(int, first), in(int, to), in(uint, front), inout(int, dist), sum(int, awake))) {
  if (dist[i] >= 0) return;
  int end = first[i + 1];
  for (int e = first[i]; e < end; ++e) {
    if ((front[to[e] >> 5] & bit_of(to[e])) == 0u) continue;
    dist[i] = s[0].level + 1;
    awake[0] += 1;
    return;
  }
}
GK_KERNEL(decide, (inout(search, s), out(int, count), inout(int, more), inout(int, found), inout(int, scout),
                   inout(int, awake), value(int, n), value(int, room), value(int, few))) {
  int reached = found[0] + awake[0]; /* one of them is 0 */
  bool pulled = s[0].pulling != 0, pulls = scout[0] > s[0].unpushed / ALPHA && reached >= n / GAMMA;
  if (pulled) pulls = reached >= s[0].awake || reached > n / BETA;
  if (!pulls) s[0].unpushed -= scout[0];
  s[0].level += 1;
  s[0].awake = reached;
  s[0].pulling = (int)pulls;
  s[0].gathering = (int)(pulled && !pulls);
  s[0].base = room - s[0].base;
  s[0].small = (int)(!pulled && !pulls && reached < few);
  s[0].next = reached == 0 ? 0 : pulls ? NEXT_PULL : pulled ? NEXT_GATHER : s[0].small != 0 ? NEXT_ALONE : NEXT_PUSH;
  count[0] = more[0];
  more[0] = 0;
  found[0] = 0;
  scout[0] = 0;
  awake[0] = 0;
}
GK_SOURCE_END

static const gk_slot_desc slots[] = {
  GK_BUFFER(FIRST, int), GK_BUFFER(TO, int), GK_BUFFER(DIST, int), GK_BUFFER(FRONT, uint), GK_BUFFER(PIECES, piece),
  GK_BUFFER(QUEUE, int), GK_SCALAR(FEW, int),
  GK_SCALAR(VERTICES, int), GK_SCALAR(WORDS, int), GK_SCALAR(EDGES, int), GK_SCALAR(ROOM, int),
  GK_SCALAR(SOURCE, int), GK_SCALAR(PARTS, int), GK_OWN(COUNT, int, 1), GK_OWN(MORE, int, 1), GK_OWN(FOUND, int, 1),
  GK_OWN(SCOUT, int, 1), GK_OWN(AWAKE, int, 1), GK_OWN(SEARCH, search, 1)};

#define BEGIN_TASKS \
  GK_FILL(DIST, VERTICES, -1), \
  GK_RUN(start, GK_ONE, SEARCH, DIST, PIECES, COUNT, MORE, FOUND, SCOUT, AWAKE, FIRST, SOURCE, EDGES, FEW)
#define GATHER_TASK GK_RUN(gather, WORDS, SEARCH, DIST, FIRST, PIECES, COUNT, VERTICES)
#define ALONE_TASK \
  GK_RUN(alone, GK_ONE, SEARCH, PIECES, COUNT, FIRST, TO, DIST, QUEUE, MORE, FOUND, SCOUT, ROOM, FEW)
#define PUSH_TASK GK_RUN(push, COUNT, SEARCH, PIECES, COUNT, FIRST, TO, DIST, MORE, FOUND, SCOUT, ROOM, PARTS)
#define PULL_TASKS \
  GK_RUN(flag_front, WORDS, SEARCH, DIST, FRONT, VERTICES), \
  GK_RUN(pull, VERTICES, SEARCH, FIRST, TO, FRONT, DIST, AWAKE)
#define DECIDE_TASK GK_RUN(decide, GK_ONE, SEARCH, COUNT, MORE, FOUND, SCOUT, AWAKE, VERTICES, ROOM, FEW)

#define LEVEL_TASKS \
  GK_IF(SEARCH, .offset = offsetof(search, pulling)), \
    PULL_TASKS, \
  GK_ELSE, \
    GK_IF(SEARCH, .offset = offsetof(search, gathering)), \
      GATHER_TASK, \
    GK_END, \
    PUSH_TASK, \
  GK_END

static const gk_task tasks[] = {
  BEGIN_TASKS,
  GK_DO_WHILE(SEARCH, .offset = offsetof(search, next)),
    GK_IF(SEARCH, .offset = offsetof(search, small)),
      ALONE_TASK,
    GK_ELSE,
      LEVEL_TASKS,
    GK_END,
    DECIDE_TASK,
  GK_END};
const gk_list bench_bfs_list = GK_LIST(bfs, tasks, slots);

static const gk_task wide_tasks[] = {
  BEGIN_TASKS,
  GK_DO_WHILE(SEARCH, .offset = offsetof(search, next)),
    LEVEL_TASKS,
    DECIDE_TASK,
  GK_END};
const gk_list bench_bfs_wide_list = GK_LIST(bfs_wide, wide_tasks, slots);

static const gk_task begin_tasks[] = {BEGIN_TASKS}, push_tasks[] = {PUSH_TASK, DECIDE_TASK},
                     gather_tasks[] = {GATHER_TASK, PUSH_TASK, DECIDE_TASK}, pull_tasks[] = {PULL_TASKS, DECIDE_TASK},
                     alone_tasks[] = {ALONE_TASK, DECIDE_TASK};
const gk_list bench_bfs_begin = GK_LIST(begin, begin_tasks, slots);
const gk_list bench_bfs_stretches[BFS_STRETCHES] = {
  [BFS_PUSH] = GK_LIST(push, push_tasks, slots), [BFS_GATHER] = GK_LIST(gather, gather_tasks, slots),
  [BFS_PULL] = GK_LIST(pull, pull_tasks, slots), [BFS_ALONE] = GK_LIST(alone, alone_tasks, slots)};
const size_t bench_bfs_next = offsetof(search, next), bench_bfs_level = offsetof(search, level);

_Static_assert(PIECE == BFS_PIECE && ALPHA == BFS_ALPHA && BETA == BFS_BETA && GAMMA == BFS_GAMMA,
               "the version by hand decides alike");
_Static_assert(BFS_END == 0 && NEXT_PUSH == BFS_PUSH && NEXT_GATHER == BFS_GATHER && NEXT_PULL == BFS_PULL &&
               NEXT_ALONE == BFS_ALONE, "the host's loop reads what is next");

static size_t room_of(const bfs_graph *g) { return (size_t)(g->vertices + g->edges / PIECE); }

void bench_bfs_numbers(const bfs_graph *g, int parts, int few, bfs_number numbers[BFS_NUMBERS]) {
  numbers[0] = (bfs_number){VERTICES, g->vertices};
  numbers[1] = (bfs_number){WORDS, (g->vertices + 31) / 32};
  numbers[2] = (bfs_number){EDGES, g->edges};
  numbers[3] = (bfs_number){ROOM, (int)room_of(g)};
  numbers[4] = (bfs_number){PARTS, parts};
  numbers[5] = (bfs_number){FEW, few};
}

void bench_bfs_bind(gk_device *device, gk_graph *graph, const bfs_graph *g) {
  const size_t n = (size_t)g->vertices, m = (size_t)g->edges, words = (n + 31) / 32;
  bench_must(gk_resize(graph, FIRST, n + 1));
  bench_must(gk_resize(graph, TO, m));
  bench_must(gk_resize(graph, DIST, n));
  bench_must(gk_resize(graph, FRONT, words));
  bench_must(gk_resize(graph, PIECES, 2 * room_of(g)));
  bench_must(gk_resize(graph, QUEUE, n));
  bench_must(gk_upload(device, gk_bound(graph, FIRST), g->first, (n + 1) * sizeof *g->first));
  bench_must(gk_upload(device, gk_bound(graph, TO), g->to, m * sizeof *g->to));
}
