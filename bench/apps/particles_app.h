/* Soft spheres that are driven together, so that their lists of neighbours grow: a loop over time steps, an IF
 * around the search for neighbours, and a checkpoint that yields if a list is longer than its room. */
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
  int by_rank;      /* order of lists: 1: all first neighbours, all second ones ...; 0: list after list */
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
  return c < s.cells ? c : s.cells - 1; /* rounding may reach the last wall */
}
GK_SOURCE_END

/* The spheres at the end of a run, and results of that run. */
typedef struct particles_moment {
  vec *x, *v, *force;
  int room;             /* of a list */
  int searches, yields; /* of that run */
  double energy;
  vec momentum;
} particles_moment;

typedef struct particles {
  gk_device *device;
  gk_graph *graph; /* of a run; all memory is its own */
  setting s;
  int room, yields;
} particles;

/* The tasks between two decisions, for a loop on the host: lists with the graph's slots. */
enum {
  PARTICLES_FIRST,  /* up to the decision on STALE */
  PARTICLES_SEARCH, /* from there to the decision on OVERFLOW */
  PARTICLES_AGAIN,  /* the same again, with room for WANTED neighbours */
  PARTICLES_STEP,   /* the end of a step, and the next step up to STALE */
  PARTICLES_LAST,   /* the end of the last step and of the run */
  PARTICLES_STRETCHES,
};
extern const gk_list bench_particles_stretches[PARTICLES_STRETCHES];

/* `along` spheres along a side, on a randomly disturbed lattice, in waves that run into each other. */
setting bench_particles_setting(int along, bool by_rank);

void bench_particles_end(particles *p);
/* Binds all numbers but ROOM and STEPS. */
void bench_particles_bind(gk_graph *graph, const setting *s);
void bench_particles_restore(particles *p, const particles_moment *from);
/* Launches once, and once more for each yield. */
void bench_particles_run(particles *p, int steps);
/* Memory for a moment, shared with processes that start later. */
void bench_particles_moment(particles_moment *m, const setting *s);
/* Makes the graph and simulates two moments: `before`, after `lead` steps, at which all variants start, and `after`,
 * the expected end, `steps` later. Ends the program if no list was too short, or if the spheres aren't where they are
 * without lists. The caller closes the device. */
void bench_particles_prepare(particles *p, gk_device *device, const setting *s, int lead, int steps,
                             particles_moment *before, particles_moment *after);
/* Makes room after a yield for lists of up to `wanted` neighbours. */
void bench_particles_grow(particles *p, int wanted);
/* The results of a run; x, v and force are on the device. */
particles_moment bench_particles_look(const particles *p);

/* The room that bench_particles_grow makes: an eighth more than `wanted`. */
int bench_particles_room(int wanted);
/* Whether energy and momentum are conserved, as exactly as steps of this length allow. */
bool bench_particles_are_conserved(const setting *s, const particles_moment *before, const particles_moment *after);
#endif
