/* Makes a body from triangles: joins vertices at one place, removes triangles without area, gives edges springs and
 * hinges. The stiffness of springs makes a net of triangles act like a membrane (van Gelder 1998: the area beside a
 * spring over its length squared). */
#include "mesh.h"
#include <float.h>
#include <stdlib.h>

typedef struct edge {
  int a, b;           /* a < b */
  int opposite[2];    /* the third vertices of the first two triangles */
  int triangle_count;
  double area;        /* of all of them */
} edge;
typedef struct half { int b, opposite, triangle; } half; /* an edge, in its lower vertex's bucket */

typedef struct builder {
  mesh *body;
  v3 *at;             /* a copy of the file's vertices, about one metre */
  int *rank;          /* vertices in the order of their places */
  int *same;          /* the vertex that replaces a vertex, later its number in the body */
  int *first, *degree; /* per vertex: where its bucket starts; how full it is */
  half *halves;
  edge *edges;
  bool no_memory;
} builder;

static void *obtain(builder *b, size_t count, size_t bytes) {
  void *memory = calloc(count ? count : 1, bytes);
  if (!memory) b->no_memory = true;
  return memory;
}

/* Moves and scales vertices: the largest extent becomes 1, the lowest vertex is at 0. False: there is no extent. */
static bool normalise(v3 *at, int count) {
  v3 low = at[0], high = at[0];
  for (int k = 1; k < count; ++k) {
    low = v3_of(fmin(low.x, at[k].x), fmin(low.y, at[k].y), fmin(low.z, at[k].z));
    high = v3_of(fmax(high.x, at[k].x), fmax(high.y, at[k].y), fmax(high.z, at[k].z));
  }
  double extent = fmax(high.x - low.x, fmax(high.y - low.y, high.z - low.z));
  if (!(extent > 1e-100)) return false;
  for (int k = 0; k < count; ++k) {
    v3 p = v3_sub(at[k], low);
    at[k] = v3_of((p.x - 0.5 * (high.x - low.x)) / extent, p.y / extent, (p.z - 0.5 * (high.z - low.z)) / extent);
  }
  return true;
}

static int compare_places(const void *left, const void *right, void *user) {
  const v3 *at = user;
  int a = *(const int *)left, b = *(const int *)right;
  if (at[a].x != at[b].x) return at[a].x < at[b].x ? -1 : 1;
  if (at[a].y != at[b].y) return at[a].y < at[b].y ? -1 : 1;
  if (at[a].z != at[b].z) return at[a].z < at[b].z ? -1 : 1;
  return a < b ? -1 : a > b;
}

/* same[k]: the first vertex at the place of vertex k. */
static void join_vertices(builder *b, int count) {
  for (int k = 0; k < count; ++k) b->rank[k] = k;
  qsort_r(b->rank, (size_t)count, sizeof *b->rank, compare_places, b->at);
  for (int k = 0; k < count; ++k) {
    int here = b->rank[k], before = k ? b->rank[k - 1] : here;
    bool joined = k && v3_length(v3_sub(b->at[here], b->at[before])) <= 0.0;
    b->same[here] = joined ? b->same[before] : here;
  }
}

static double area_of(const v3 *at, const int *t) {
  return 0.5 * v3_length(v3_cross(v3_sub(at[t[1]], at[t[0]]), v3_sub(at[t[2]], at[t[0]])));
}

/* Whether a triangle's area is large enough. The normal of a needle is noise. */
static bool is_flat(const v3 *at, const int *t) {
  v3 a = v3_sub(at[t[1]], at[t[0]]), b = v3_sub(at[t[2]], at[t[0]]), c = v3_sub(at[t[2]], at[t[1]]);
  double longest = fmax(v3_dot(a, a), fmax(v3_dot(b, b), v3_dot(c, c)));
  return t[0] == t[1] || t[0] == t[2] || t[1] == t[2] || !(area_of(at, t) > 1e-9 * longest) || !(longest > 1e-20);
}

static int compare_corners(const void *left, const void *right) {
  const int *a = left, *b = right;
  for (int k = 0; k < 4; ++k) /* the fourth is the triangle's place in the file */
    if (a[k] != b[k]) return a[k] < b[k] ? -1 : 1;
  return 0;
}

/* Leaves out triangles that repeat the corners of an earlier one. */
static void drop_repeated(builder *b) {
  mesh *body = b->body;
  int (*keys)[4] = obtain(b, (size_t)body->triangle_count, sizeof *keys), kept = 0;
  if (!keys) return;
  for (int k = 0; k < body->triangle_count; ++k) {
    const int *t = body->triangles[k];
    int low = t[0] < t[1] ? t[0] : t[1], high = t[0] < t[1] ? t[1] : t[0];
    keys[k][0] = t[2] < low ? t[2] : low;
    keys[k][2] = t[2] > high ? t[2] : high;
    keys[k][1] = t[2] < low ? low : t[2] > high ? high : t[2];
    keys[k][3] = k;
  }
  qsort(keys, (size_t)body->triangle_count, sizeof *keys, compare_corners);
  for (int k = 1; k < body->triangle_count; ++k)
    if (memcmp(keys[k], keys[k - 1], 3 * sizeof(int)) == 0) body->triangles[keys[k][3]][0] = -1;
  for (int k = 0; k < body->triangle_count; ++k) {
    if (body->triangles[k][0] < 0) ++body->twice;
    else memmove(body->triangles[kept++], body->triangles[k], sizeof *body->triangles);
  }
  body->triangle_count = kept;
  free(keys);
}

/* Keeps the valid triangles, and only the vertices that they use. */
static bool choose(builder *b, const char *path, const obj *from, complaint *why) {
  mesh *body = b->body;
  int count = from->vertex_count, used = 0;
  memcpy(b->at, from->vertices, (size_t)count * sizeof *b->at);
  if (!normalise(b->at, count)) return complain(why, "%s: all vertices are at one place", path);
  join_vertices(b, count);
  for (int k = 0; k < from->triangle_count; ++k) {
    int *t = body->triangles[body->triangle_count];
    for (int c = 0; c < 3; ++c) t[c] = b->same[from->triangles[k][c]];
    if (is_flat(b->at, t)) ++body->flat;
    else ++body->triangle_count;
  }
  drop_repeated(b);
  if (b->no_memory) return false;
  if (!body->triangle_count) return complain(why, "%s: no triangle has an area", path);

  for (int k = 0; k < count; ++k) {
    body->joined += b->same[k] != k;
    b->degree[k] = 0;
  }
  for (int k = 0; k < body->triangle_count; ++k)
    for (int c = 0; c < 3; ++c) b->degree[body->triangles[k][c]] = 1;
  for (int k = 0; k < count; ++k) {
    if (b->degree[k]) {
      b->at[used] = b->at[k];
      b->same[k] = used++;
    } else if (b->same[k] == k) ++body->isolated;
  }
  for (int k = 0; k < body->triangle_count; ++k)
    for (int c = 0; c < 3; ++c) body->triangles[k][c] = b->same[body->triangles[k][c]];
  body->vertex_count = used;
  return normalise(b->at, used) || complain(why, "%s: what has an area is too small beside the rest", path);
}

static int compare_halves(const void *left, const void *right) {
  const half *a = left, *b = right;
  if (a->b != b->b) return a->b < b->b ? -1 : 1;
  return a->triangle < b->triangle ? -1 : a->triangle > b->triangle;
}

/* Sorts edges by their ends. Each triangle puts three into the buckets of their lower ends. */
static void find_edges(builder *b) {
  mesh *body = b->body;
  memset(b->degree, 0, (size_t)body->vertex_count * sizeof *b->degree);
  for (int pass = 0; pass < 2; ++pass) {
    for (int k = 0; k < body->triangle_count; ++k) {
      for (int c = 0; c < 3; ++c) {
        const int *t = body->triangles[k];
        int p = t[c], q = t[(c + 1) % 3], low = p < q ? p : q, at = b->degree[low]++;
        if (pass) b->halves[b->first[low] + at] = (half){p < q ? q : p, t[(c + 2) % 3], k};
      }
    }
    for (int k = 0, at = 0; k < body->vertex_count && !pass; ++k) {
      b->first[k] = at;
      at += b->degree[k];
      b->degree[k] = 0;
    }
  }
  for (int k = 0; k < body->vertex_count; ++k) {
    half *bucket = b->halves + b->first[k];
    qsort(bucket, (size_t)b->degree[k], sizeof *bucket, compare_halves);
    for (int h = 0; h < b->degree[k]; ++h) {
      edge *e = b->edges + body->edge_count - 1;
      if (h == 0 || bucket[h].b != bucket[h - 1].b) {
        e = b->edges + body->edge_count++;
        *e = (edge){.a = k, .b = bucket[h].b};
      }
      if (e->triangle_count < 2) e->opposite[e->triangle_count] = bucket[h].opposite;
      ++e->triangle_count;
      e->area += area_of(b->at, body->triangles[bucket[h].triangle]);
    }
  }
}

/* first[k] = the sum of the counts before k, for n counts in first[1] to first[n]. */
static void sum_up(int *first, int n) {
  for (int k = 0; k < n; ++k) first[k + 1] += first[k];
}

static void make_springs(builder *b, const material *stuff) {
  mesh *body = b->body;
  for (int k = 0; k < body->edge_count; ++k) {
    ++body->spring_first[b->edges[k].a + 1];
    ++body->spring_first[b->edges[k].b + 1];
  }
  sum_up(body->spring_first, body->vertex_count);
  memset(b->degree, 0, (size_t)body->vertex_count * sizeof *b->degree);
  for (int k = 0; k < body->edge_count; ++k) {
    const edge *e = b->edges + k;
    double length = v3_length(v3_sub(b->at[e->b], b->at[e->a]));
    /* Limits the stiffness beside slivers. Two equilateral triangles have 0.87. */
    spring s = {length, stuff->membrane * fmin(fmax(e->area / (length * length), 0.1), 4.0)};
    int at = body->spring_first[e->a] + b->degree[e->a]++, to = body->spring_first[e->b] + b->degree[e->b]++;
    body->springs[at] = body->springs[to] = s;
    body->spring_other[at] = e->b;
    body->spring_other[to] = e->a;
    body->edge += length / body->edge_count;
  }
}

/* One side of a hinge ab: the vector from vertex c to its foot on ab, divided by its length. *foot: its place on ab. */
static double side_of(v3 a, v3 b, v3 c, double *foot) {
  v3 e = v3_sub(b, a), d = v3_sub(c, a);
  double length = v3_length(e), height = v3_length(v3_cross(e, d)) / length;
  *foot = fmin(fmax(v3_dot(d, e) / (length * length), -1.0), 2.0);
  return 1.0 / fmax(height, 0.1 * length); /* bounded, for slivers */
}

static hinge hinge_of(const builder *b, const edge *e, const material *stuff) {
  v3 pa = b->at[e->a], pb = b->at[e->b], pc = b->at[e->opposite[0]], pd = b->at[e->opposite[1]];
  double foot_c, foot_d, c = side_of(pa, pb, pc, &foot_c), d = side_of(pa, pb, pd, &foot_d);
  hinge g = {.a = e->a, .b = e->b, .c = e->opposite[0], .d = e->opposite[1],
             .wb = c * foot_c + d * foot_d, .wc = -c, .wd = -d};
  v3 ab = v3_sub(pb, pa), s = v3_scale(g.wb, ab);
  s = v3_mad(s, g.wc, v3_sub(pc, pa));
  s = v3_mad(s, g.wd, v3_sub(pd, pa));
  g.rest = v3_length(s);
  if (g.rest < 1e-6) g.rest = 0.0; /* flat */
  double square = v3_dot(ab, ab);
  g.stiffness = 3.0 * stuff->bending * square / fmax(e->area, 0.1 * square);
  return g;
}

static void make_hinges(builder *b, const material *stuff) {
  mesh *body = b->body;
  for (int k = 0; k < body->edge_count; ++k) {
    const edge *e = b->edges + k;
    body->open_edges += e->triangle_count == 1;
    body->crowded_edges += e->triangle_count > 2;
    if (e->triangle_count == 2) body->hinges[body->hinge_count++] = hinge_of(b, e, stuff);
  }
  for (int k = 0; k < body->hinge_count; ++k) {
    const hinge *g = body->hinges + k;
    ++body->share_first[g->a + 1];
    ++body->share_first[g->b + 1];
    ++body->share_first[g->c + 1];
    ++body->share_first[g->d + 1];
  }
  sum_up(body->share_first, body->vertex_count);
  memset(b->degree, 0, (size_t)body->vertex_count * sizeof *b->degree);
  for (int k = 0; k < body->hinge_count; ++k) {
    const hinge *g = body->hinges + k;
    const int vertices[4] = {g->a, g->b, g->c, g->d};
    const double weights[4] = {-(g->wb + g->wc + g->wd), g->wb, g->wc, g->wd};
    for (int c = 0; c < 4; ++c) {
      int at = body->share_first[vertices[c]] + b->degree[vertices[c]]++;
      body->share_hinge[at] = k;
      body->share_weight[at] = weights[c];
    }
  }
  body->share_count = 4 * body->hinge_count;
}

/* Gives each corner a third of its triangle's mass. Each vertex has a least mass, or a contact would throw it. */
static void make_masses(builder *b, const material *stuff) {
  mesh *body = b->body;
  double total = 0.0;
  for (int k = 0; k < body->triangle_count; ++k) {
    double share = stuff->density * area_of(b->at, body->triangles[k]) / 3.0;
    for (int c = 0; c < 3; ++c) body->mass[body->triangles[k][c]] += share;
    total += 3.0 * share;
  }
  double least = 1e-3 * total / body->vertex_count;
  for (int k = 0; k < body->vertex_count; ++k) body->mass[k] = fmax(body->mass[k], least);
}

bool mesh_build(const char *path, const obj *from, const material *stuff, mesh *body, complaint *why) {
  size_t vertices = (size_t)from->vertex_count, triangles = (size_t)from->triangle_count;
  builder b = {.body = body};
  bool good = false;
  memset(body, 0, sizeof *body);
  complain(why, "%s: there isn't enough memory for a mesh of this size", path); /* a later message replaces it */
  body->triangles = obtain(&b, triangles, sizeof *body->triangles);
  b.at = obtain(&b, vertices, sizeof *b.at);
  b.rank = obtain(&b, vertices, sizeof *b.rank);
  b.same = obtain(&b, vertices, sizeof *b.same);
  b.first = obtain(&b, vertices, sizeof *b.first);
  b.degree = obtain(&b, vertices, sizeof *b.degree);
  if (b.no_memory || !choose(&b, path, from, why)) goto done;

  triangles = (size_t)body->triangle_count;
  b.halves = obtain(&b, 3 * triangles, sizeof *b.halves);
  b.edges = obtain(&b, 3 * triangles, sizeof *b.edges);
  if (b.no_memory) goto done;
  find_edges(&b);

  vertices = (size_t)body->vertex_count;
  body->spring_count = 2 * body->edge_count;
  body->mass = obtain(&b, vertices, sizeof *body->mass);
  body->spring_first = obtain(&b, vertices + 1, sizeof *body->spring_first);
  body->spring_other = obtain(&b, (size_t)body->spring_count, sizeof *body->spring_other);
  body->springs = obtain(&b, (size_t)body->spring_count, sizeof *body->springs);
  body->hinges = obtain(&b, (size_t)body->edge_count, sizeof *body->hinges);
  body->share_first = obtain(&b, vertices + 1, sizeof *body->share_first);
  body->share_hinge = obtain(&b, 4 * (size_t)body->edge_count, sizeof *body->share_hinge);
  body->share_weight = obtain(&b, 4 * (size_t)body->edge_count, sizeof *body->share_weight);
  if (b.no_memory) goto done;
  make_springs(&b, stuff);
  make_hinges(&b, stuff);
  make_masses(&b, stuff);
  body->rest = b.at;
  b.at = NULL;
  good = true;

done:
  free(b.at);
  free(b.rank);
  free(b.same);
  free(b.first);
  free(b.degree);
  free(b.halves);
  free(b.edges);
  if (!good) mesh_free(body);
  return good;
}

double mesh_reach(const mesh *body, double wanted) {
  enum { CELLS = 1 << 16, CROWD = 100 /* vertices that one vertex compares itself with, on average */ };
  int *count = malloc(CELLS * sizeof *count);
  if (!count) return 0.0;
  for (double looks = DBL_MAX; looks > CROWD * (double)body->vertex_count; wanted *= 0.5) {
    looks = -(double)body->vertex_count * body->vertex_count / CELLS; /* pairs that share a cell by chance */
    memset(count, 0, CELLS * sizeof *count);
    for (int k = 0; k < body->vertex_count; ++k) {
      v3 c = v3_scale(1.0 / wanted, body->rest[k]);
      uint64_t at[3] = {(uint64_t)(int64_t)floor(c.x), (uint64_t)(int64_t)floor(c.y), (uint64_t)(int64_t)floor(c.z)};
      uint64_t h = (at[0] * 0x9e3779b97f4a7c15u ^ at[1]) * 0xbf58476d1ce4e5b9u ^ at[2];
      h *= 0x94d049bb133111ebu;
      looks += 2.0 * count[h >> 48]++ + 1.0;
    }
  }
  free(count);
  return 2.0 * wanted;
}

void mesh_free(mesh *body) {
  free(body->rest);
  free(body->mass);
  free(body->triangles);
  free(body->spring_first);
  free(body->spring_other);
  free(body->springs);
  free(body->hinges);
  free(body->share_first);
  free(body->share_hinge);
  free(body->share_weight);
  memset(body, 0, sizeof *body);
}
