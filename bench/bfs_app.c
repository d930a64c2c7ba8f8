#include "bfs_app.h"
#include "apart.h"
#include "gk_kernel.h"
#include <stddef.h>
#include <stdlib.h>

GK_SOURCE(bench_bfs)
#define PIECE 64  /* edges */
#define HELD 32   /* vertices that an item has found before it asks for room for them */
#define ALPHA 14  /* pull once the level has more than 1/ALPHA of the edges that weren't pushed yet */
#define BETA 24   /* push again once it has less than 1/BETA of the vertices */

GK_STRUCT(search) { int level, awake, unpushed, pulling, gathering, next; };
GK_STRUCT(piece) { int begin, end; };

GK_FN int pieces_of(int edges) { return (edges + PIECE - 1) / PIECE; }
GK_FN int smaller(int a, int b) { return a < b ? a : b; }
GK_FN uint bit_of(int v) { return 1u << (uint)(v & 31); }

GK_KERNEL(start, (out(search, s), out(int, dist), out(uint, seen), out(piece, pieces), out(int, count), out(int, more),
                  out(int, found), out(int, scout), out(int, awake), in(int, first), value(int, source),
                  value(int, edges))) {
  int end = first[source + 1], at = 0;
  for (int e = first[source]; e < end; e += PIECE) {
    pieces[at].begin = e;
    pieces[at].end = smaller(e + PIECE, end);
    at += 1;
  }
  dist[source] = 0;
  seen[source >> 5] = bit_of(source);
  s[0].level = 0;
  s[0].awake = 1;
  s[0].unpushed = edges - (end - first[source]);
  s[0].pulling = 0;
  s[0].gathering = 0;
  count[0] = at;
  more[0] = 0;
  found[0] = 0;
  scout[0] = 0;
  awake[0] = 0;
}
GK_KERNEL(push, (in(search, s), in(piece, pieces), in(int, count), in(int, to), in(uint, seen), atomic(int, dist),
                 out(int, list), atomic(int, found), value(int, batch))) {
  if ((i & (batch - 1)) != 0) return;
  int held[HELD], kept = 0, reached = s[0].level + 1, last = smaller(i + batch, count[0]);
  for (int p = i; p < last; ++p) {
    for (int e = pieces[p].begin; e < pieces[p].end; ++e) {
      int w = to[e];
      if ((seen[w >> 5] & bit_of(w)) != 0u) continue;
      if (gk_atomic_cas(&dist[w], -1, reached) != -1) continue;
      if (kept == HELD) {
        int at = gk_atomic_add(&found[0], HELD);
        for (int k = 0; k < HELD; ++k) list[at + k] = held[k];
        kept = 0;
      }
      held[kept] = w;
      kept += 1;
    }
  }
  if (kept == 0) return;
  int place = gk_atomic_add(&found[0], kept);
  for (int k = 0; k < kept; ++k) list[place + k] = held[k];
}
/* Those that were found are seen, and the next level's pieces. */
GK_KERNEL(mark, (in(int, list), in(int, found), in(int, first), atomic(uint, seen), out(piece, pieces),
                 atomic(int, more), sum(int, scout), value(int, batch))) {
  if ((i & (batch - 1)) != 0) return;
  int many = 0, last = smaller(i + batch, found[0]);
  for (int k = i; k < last; ++k) {
    int v = list[k], edges = first[v + 1] - first[v];
    gk_atomic_or(&seen[v >> 5], bit_of(v));
    many += pieces_of(edges);
    scout[0] += edges;
  }
  int at = gk_atomic_add(&more[0], many);
  for (int k = i; k < last; ++k) {
    int end = first[list[k] + 1];
    for (int e = first[list[k]]; e < end; e += PIECE) {
      pieces[at].begin = e;
      pieces[at].end = smaller(e + PIECE, end);
      at += 1;
    }
  }
}
/* The same where the level before was pulled, from the distances alone: 32 vertices an item. */
GK_KERNEL(gather, (in(search, s), in(int, dist), in(int, first), out(uint, seen), out(piece, pieces),
                   atomic(int, count), value(int, n))) {
  uint bits = 0u;
  int many = 0, begin = 32 * i, last = smaller(begin + 32, n);
  for (int v = begin; v < last; ++v) {
    if (dist[v] >= 0) bits |= bit_of(v);
    if (dist[v] == s[0].level) many += pieces_of(first[v + 1] - first[v]);
  }
  seen[i] = bits;
  if (many == 0) return;
  int at = gk_atomic_add(&count[0], many);
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
                   inout(int, awake), value(int, n))) {
  int reached = found[0] + awake[0]; /* one of them is 0 */
  bool pulled = s[0].pulling != 0, pulls = scout[0] > s[0].unpushed / ALPHA;
  if (pulled) pulls = reached >= s[0].awake || reached > n / BETA;
  if (!pulls) s[0].unpushed -= scout[0];
  s[0].level += 1;
  s[0].awake = reached;
  s[0].pulling = (int)pulls;
  s[0].gathering = (int)(pulled && !pulls);
  s[0].next = reached == 0 ? 0 : pulls ? 3 : pulled ? 2 : 1;
  count[0] = more[0];
  more[0] = 0;
  found[0] = 0;
  scout[0] = 0;
  awake[0] = 0;
}
GK_SOURCE_END

static const gk_slot_desc slots[] = {
  GK_BUFFER(FIRST, int), GK_BUFFER(TO, int), GK_BUFFER(DIST, int), GK_BUFFER(SEEN, uint), GK_BUFFER(FRONT, uint),
  GK_BUFFER(LIST, int), GK_BUFFER(PIECES, piece), GK_SCALAR(VERTICES, int), GK_SCALAR(WORDS, int),
  GK_SCALAR(EDGES, int), GK_SCALAR(SOURCE, int), GK_SCALAR(BATCH, int), GK_OWN(COUNT, int, 1), GK_OWN(MORE, int, 1),
  GK_OWN(FOUND, int, 1), GK_OWN(SCOUT, int, 1), GK_OWN(AWAKE, int, 1), GK_OWN(SEARCH, search, 1)};

#define BEGIN_TASKS \
  GK_FILL(DIST, VERTICES, -1), \
  GK_FILL(SEEN, WORDS, 0), \
  GK_RUN(start, GK_ONE, SEARCH, DIST, SEEN, PIECES, COUNT, MORE, FOUND, SCOUT, AWAKE, FIRST, SOURCE, EDGES)
#define GATHER_TASK GK_RUN(gather, WORDS, SEARCH, DIST, FIRST, SEEN, PIECES, COUNT, VERTICES)
#define PUSH_TASKS \
  GK_RUN(push, COUNT, SEARCH, PIECES, COUNT, TO, SEEN, DIST, LIST, FOUND, BATCH), \
  GK_RUN(mark, FOUND, LIST, FOUND, FIRST, SEEN, PIECES, MORE, SCOUT, BATCH)
#define PULL_TASKS \
  GK_RUN(flag_front, WORDS, SEARCH, DIST, FRONT, VERTICES), \
  GK_RUN(pull, VERTICES, SEARCH, FIRST, TO, FRONT, DIST, AWAKE)
#define DECIDE_TASK GK_RUN(decide, GK_ONE, SEARCH, COUNT, MORE, FOUND, SCOUT, AWAKE, VERTICES)

static const gk_task tasks[] = {
  BEGIN_TASKS,
  GK_DO_WHILE(SEARCH, .offset = offsetof(search, next)),
    GK_IF(SEARCH, .offset = offsetof(search, pulling)),
      PULL_TASKS,
    GK_ELSE,
      GK_IF(SEARCH, .offset = offsetof(search, gathering)),
        GATHER_TASK,
      GK_END,
      PUSH_TASKS,
    GK_END,
    DECIDE_TASK,
  GK_END};
const gk_list bfs_list = GK_LIST(bfs, tasks, slots);

static const gk_task begin_tasks[] = {BEGIN_TASKS}, push_tasks[] = {PUSH_TASKS, DECIDE_TASK},
                     gather_tasks[] = {GATHER_TASK, PUSH_TASKS, DECIDE_TASK}, pull_tasks[] = {PULL_TASKS, DECIDE_TASK};
const gk_list bfs_begin = GK_LIST(begin, begin_tasks, slots);
const gk_list bfs_stretches[BFS_STRETCHES] = {
  [BFS_PUSH] = GK_LIST(push, push_tasks, slots), [BFS_GATHER] = GK_LIST(gather, gather_tasks, slots),
  [BFS_PULL] = GK_LIST(pull, pull_tasks, slots)};
const size_t bfs_next = offsetof(search, next);

static void must(gk_result result) {
  if (result != GK_OK) bench_fail(gk_error());
}

void bfs_numbers(const bfs_graph *g, int batch, bfs_number numbers[BFS_NUMBERS]) {
  numbers[0] = (bfs_number){VERTICES, g->vertices};
  numbers[1] = (bfs_number){WORDS, (g->vertices + 31) / 32};
  numbers[2] = (bfs_number){EDGES, g->edges};
  numbers[3] = (bfs_number){BATCH, batch};
}

void bfs_bind(gk_device *device, gk_graph *graph, const bfs_graph *g) {
  const size_t n = (size_t)g->vertices, m = (size_t)g->edges, words = (n + 31) / 32;
  must(gk_resize(graph, FIRST, n + 1));
  must(gk_resize(graph, TO, m));
  must(gk_resize(graph, DIST, n));
  must(gk_resize(graph, SEEN, words));
  must(gk_resize(graph, FRONT, words));
  must(gk_resize(graph, LIST, n));
  must(gk_resize(graph, PIECES, n + m / PIECE));
  must(gk_upload(device, gk_bound(graph, FIRST), g->first, (n + 1) * sizeof *g->first));
  must(gk_upload(device, gk_bound(graph, TO), g->to, m * sizeof *g->to));
}
