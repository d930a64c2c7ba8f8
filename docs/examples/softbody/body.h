/* Shared by the kernels and the host: vectors, springs, hinges, contacts, and the numbers of a step.
 *
 * All arithmetic that decides is in doubles. Only the curvature of a spring is in floats. It steers the solver and
 * never judges its result. */
#ifndef SOFTBODY_BODY_H
#define SOFTBODY_BODY_H
#include "gk_kernel.h"

GK_SHARED(body_math)
#define SCAN_BLOCK 256 /* entries that one item of a prefix sum adds up */

GK_STRUCT(v3) { double x, y, z; };
GK_STRUCT(sym3) { double xx, xy, xz, yy, yz, zz; };

/* 0.5 stiffness (length - rest)^2 */
GK_STRUCT(spring) { double rest, stiffness; };
/* Two triangles abc and abd at an edge ab, as a spring on the vector wa a + wb b + wc c + wd d; wa makes the sum 0. */
GK_STRUCT(hinge) { int a, b, c, d; double wb, wc, wd, rest, stiffness; };
/* A vertex that is nearer than reach, or may soon be. */
GK_STRUCT(contact) { int other; float reach; };
/* A spring's second derivative: `along` in the direction (x, y, z), `across` in the two others. */
GK_STRUCT(bond) { float x, y, z, along, across; };
/* A part of the energy at one vertex: its gradient, and its block of the second derivative. */
GK_STRUCT(term) { v3 gradient; sym3 block; };

/* Constants of a simulation. */
GK_STRUCT(world) {
  double step;      /* seconds */
  double gravity;   /* m/s^2, downwards */
  double gap;       /* metres above the ground at which it begins to push */
  double ground;    /* its stiffness, in units of mass / step^2 */
  double friction;  /* Coulomb's coefficient */
  double slip;      /* metres of sliding in a step at which friction is full */
  double reach;     /* metres: thickness of the body where it touches itself */
  double push;      /* stiffness of that, in units of mass / step^2 */
  double cell;      /* metres: side of a cell of the grid */
  double cg;        /* the inner loop ends when its residual has fallen to this share of the first */
  double enough;    /* joules: it also ends when the residual is worth less */
  double still;     /* metres: the outer loop ends when no vertex moves by more */
  double gain;      /* joules: and when the remaining forces add no more energy than this */
  double mass;      /* kilograms: of the whole body */
};

/* The state of the loops, one struct in device memory. */
GK_STRUCT(control) {
  v3 weight;        /* sum of w, the rows of the system added up */
  v3 shift;         /* subtracted from a direction, so that it doesn't change the momentum */
  double rz, first; /* residual in the preconditioner's norm: now, at the start */
  double beta;      /* share of the last direction in the next */
  double alpha;     /* length of the trial step */
  double before;    /* energy at alpha = 0 */
  double best, least; /* the best alpha so far, 0: none; energy there */
  int trials;       /* of the line search so far */
  int accepted;     /* 1: the last trial is the new state */
};

GK_FN v3 v3_of(double x, double y, double z) { v3 r = {x, y, z}; return r; }
GK_FN v3 v3_add(v3 a, v3 b) { v3 r = {a.x + b.x, a.y + b.y, a.z + b.z}; return r; }
GK_FN v3 v3_sub(v3 a, v3 b) { v3 r = {a.x - b.x, a.y - b.y, a.z - b.z}; return r; }
GK_FN v3 v3_scale(double s, v3 a) { v3 r = {s * a.x, s * a.y, s * a.z}; return r; }
GK_FN v3 v3_mad(v3 a, double s, v3 b) { v3 r = {a.x + s * b.x, a.y + s * b.y, a.z + s * b.z}; return r; }
GK_FN v3 v3_times(v3 a, v3 b) { v3 r = {a.x * b.x, a.y * b.y, a.z * b.z}; return r; }
GK_FN double v3_dot(v3 a, v3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
GK_FN v3 v3_cross(v3 a, v3 b) {
  v3 r = {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
  return r;
}
GK_FN double v3_length(v3 a) { return sqrt(v3_dot(a, a)); }

GK_FN v3 sym3_apply(sym3 m, v3 a) {
  v3 r = {m.xx * a.x + m.xy * a.y + m.xz * a.z, m.xy * a.x + m.yy * a.y + m.yz * a.z,
          m.xz * a.x + m.yz * a.y + m.zz * a.z};
  return r;
}
GK_FN sym3 sym3_add(sym3 a, sym3 b) {
  sym3 r = {a.xx + b.xx, a.xy + b.xy, a.xz + b.xz, a.yy + b.yy, a.yz + b.yz, a.zz + b.zz};
  return r;
}
GK_FN sym3 sym3_diagonal(v3 a) { sym3 r = {a.x, 0.0, 0.0, a.y, 0.0, a.z}; return r; }
GK_FN sym3 sym3_inverse(sym3 m) {
  double xx = m.yy * m.zz - m.yz * m.yz, xy = m.xz * m.yz - m.xy * m.zz, xz = m.xy * m.yz - m.xz * m.yy;
  double s = 1.0 / (m.xx * xx + m.xy * xy + m.xz * xz);
  sym3 r = {s * xx, s * xy, s * xz, s * (m.xx * m.zz - m.xz * m.xz), s * (m.xy * m.xz - m.xx * m.yz),
            s * (m.xx * m.yy - m.xy * m.xy)};
  return r;
}

GK_FN v3 bond_apply(bond b, v3 a) {
  v3 n = {(double)b.x, (double)b.y, (double)b.z};
  double across = (double)b.across;
  return v3_mad(v3_scale(across, a), ((double)b.along - across) * v3_dot(n, a), n);
}
GK_FN sym3 bond_block(bond b, double s) { /* s times its matrix */
  v3 n = {(double)b.x, (double)b.y, (double)b.z};
  double across = s * (double)b.across, rest = s * (double)b.along - across;
  sym3 r = {across + rest * n.x * n.x, rest * n.x * n.y, rest * n.x * n.z, across + rest * n.y * n.y, rest * n.y * n.z,
            across + rest * n.z * n.z};
  return r;
}
GK_FN bond bond_of(v3 n, double along, double across) {
  bond r = {(float)n.x, (float)n.y, (float)n.z, (float)along, (float)across};
  return r;
}
GK_SOURCE_END
#endif
