/* Makes a body from the triangles of a file: scaled to one metre, with masses, springs and hinges. */
#ifndef SOFTBODY_MESH_H
#define SOFTBODY_MESH_H
#include "body.h"
#include "obj.h"

/* The material of the body. */
typedef struct material {
  double density;  /* kg/m^2 */
  double membrane; /* N/m, against stretching */
  double bending;  /* N m, against bending */
} material;

/* The vertices that remain, and the lists that the kernels read. */
typedef struct mesh {
  int vertex_count, triangle_count, spring_count, hinge_count, share_count;
  v3 *rest;                /* one metre in its largest extent, lowest at y = 0 */
  double *mass;
  int (*triangles)[3];
  int *spring_first;       /* vertex_count + 1; each edge is a spring of both its ends */
  int *spring_other;
  spring *springs;
  hinge *hinges;
  int *share_first;        /* vertex_count + 1; the hinges of a vertex */
  int *share_hinge;
  double *share_weight;
  int edge_count, open_edges, crowded_edges; /* all; with one triangle; with more than two */
  int joined, isolated, flat, twice;         /* vertices at one place, unused; triangles without area, repeated */
  double edge;             /* mean length of an edge */
} mesh;

/* @return False: *why has the reason, and *body is empty. */
bool mesh_build(const char *path, const obj *from, const material *stuff, mesh *body, complaint *why);

/* The distance at which the body's vertices push each other: `wanted`, or less if so many vertices are nearer to each
 * other that comparing them would take too long. 0: out of memory. */
double mesh_reach(const mesh *body, double wanted);

void mesh_free(mesh *body);
#endif
