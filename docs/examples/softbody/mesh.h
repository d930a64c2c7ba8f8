/* mesh.h - from the triangles of a file to a body that can fall: one metre, masses, springs, hinges. */
#ifndef SOFTBODY_MESH_H
#define SOFTBODY_MESH_H
#include "body.h"
#include "obj.h"

/* What the body is made of. */
typedef struct material {
  double density;  /* kg/m^2 */
  double membrane; /* N/m, against stretching */
  double bending;  /* N m, against bending */
} material;

/* Vertices that are joined, left out or not, and the lists that the kernels walk. */
typedef struct mesh {
  int vertex_count, triangle_count, spring_count, hinge_count, share_count;
  v3 *rest;                /* one metre in its largest extent, lowest at y = 0 */
  double *mass;
  int (*triangles)[3];
  int *spring_first;       /* vertex_count + 1; each edge is a spring of both its ends */
  int *spring_other;
  spring *springs;
  hinge *hinges;
  int *share_first;        /* vertex_count + 1; the hinges a vertex has a share in */
  int *share_hinge;
  double *share_weight;
  int edge_count, open_edges, crowded_edges; /* all; with one triangle; with more than two */
  int joined, isolated, flat, twice;         /* vertices at one place, unused; triangles without area, repeated */
  double edge;             /* mean length of an edge */
} mesh;

/* False: *why says what is wrong; *body is empty. */
bool mesh_build(const char *path, const obj *from, const material *stuff, mesh *body, complaint *why);

/* The distance at which the body shall feel itself: `wanted`, or less where so many vertices are nearer to each other
 * than that, that looking at each other would take forever. 0: out of memory. */
double mesh_reach(const mesh *body, double wanted);

void mesh_free(mesh *body);
#endif
