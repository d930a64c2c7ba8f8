/* Soft spheres that are driven together, so that their lists of neighbours grow: a loop over time
 * steps, an IF around the search for neighbours, and a checkpoint that yields where a list is longer than its room. */
#ifndef BENCH_PARTICLES_APP_H
#define BENCH_PARTICLES_APP_H
#include "gk_kernel.h"

GK_SHARED(particles_math)
#define SCAN_BLOCK 256 /* entries that one item of a prefix sum adds up */

GK_STRUCT(vec) { double x, y, z; };
GK_STRUCT(setting) {
  double side;      /* of the box */
  double step;      /* of time */
  double stiffness;
  double reach;     /* of a list: a diameter and the skin */
  double moves;     /* half of the skin, squared */
  int n;            /* spheres */
  int cells;        /* along a side */
  int by_rank;      /* how lists lie: 1: all first neighbours, all second ones ...; 0: one list behind the other */
  int reserved;
};

/* The way from a to b through the nearer wall. */
GK_FN double bench_along(double a, double b, double side) {
  double d = b - a;
  return d > 0.5 * side ? d - side : d < -0.5 * side ? d + side : d;
}
GK_FN vec bench_vec_apart(vec a, vec b, double side) {
  vec d = {bench_along(a.x, b.x, side), bench_along(a.y, b.y, side), bench_along(a.z, b.z, side)};
  return d;
}
GK_FN double bench_square(vec a) { return a.x * a.x + a.y * a.y + a.z * a.z; }
GK_FN double bench_wrapped(double a, double side) { return a < 0.0 ? a + side : a >= side ? a - side : a; }
GK_FN int bench_cell_along(double a, setting s) {
  int c = (int)(a / s.side * (double)s.cells);
  return c < s.cells ? c : s.cells - 1; /* what rounding may do at the last wall */
}
GK_SOURCE_END

/* Where spheres are, and what came of the run that ended there. */
typedef struct moment {
  vec *x, *v, *force;
  int room;             /* of a list */
  int searches, yields; /* of that run */
  double energy;
  vec momentum;
} moment;

typedef struct particles {
  gk_device *device;
  gk_graph *graph; /* of a run; all memory is its own */
  setting s;
  int room, yields;
} particles;

/* What lies between two decisions, for a host that makes them: lists with the graph's slots. */
enum {
  PARTICLES_FIRST,  /* to where it is asked whether lists are stale (STALE) */
  PARTICLES_SEARCH, /* from there to where it is asked whether one is too long (OVERFLOW) */
  PARTICLES_AGAIN,  /* after it has got room for WANTED neighbours, until there */
  PARTICLES_STEP,   /* the end of a step, and the next one to where STALE is read */
  PARTICLES_LAST,   /* the end of the last step, and of the run */
  PARTICLES_STRETCHES,
};
extern const gk_list bench_particles_stretches[PARTICLES_STRETCHES];

/* So many spheres along a side, on a lattice that was shaken, in waves that run together. */
setting bench_particles_setting(int along, bool by_rank);
void bench_particles_place(const setting *s, vec *x, vec *v);

/* What fails ends the program. The device stays the caller's. */
void bench_particles_start(particles *p, gk_device *device, const setting *s);
void bench_particles_end(particles *p);
/* The numbers that a graph of these slots needs, but for ROOM and STEPS. */
void bench_particles_bind(gk_graph *graph, const setting *s);
void bench_particles_restore(particles *p, const moment *from);
/* One launch, and one more for each yield. */
void bench_particles_run(particles *p, int steps);
/* Room for lists of which the longest wanted so much, after a yield. */
void bench_particles_grow(particles *p, int wanted);
/* What a run came to; x, v and force are where the device has them. */
moment bench_particles_look(const particles *p);

/* How much room that is: an eighth more than was wanted. */
int bench_particles_room(int wanted);
/* The same steps without lists: how far the spheres of `after` are from where these put them, at most. */
double bench_particles_error(const setting *s, const moment *before, const moment *after, int steps);
/* Energy and momentum are those of the moment before but for what steps of this length do to them. */
bool bench_particles_kept(const setting *s, const moment *before, const moment *after);
#endif
