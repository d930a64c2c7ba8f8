/* The soft body's time step as one writes it with OpenMP pragmas and without gk: the same arithmetic,
 * arrays and loops as docs/examples/softbody/step.c. */
#ifndef BENCH_SOFTBODY_HAND_H
#define BENCH_SOFTBODY_HAND_H
#include "body.h"
#include "mesh.h"
#include <stdint.h>

/* How threads share the work. */
typedef enum hand_style {
  HAND_LOOPS,  /* a parallel region for each loop that is long enough to be worth one */
  HAND_REGION, /* one region for the whole step, with a barrier where a loop needs what others made, and nowhere else */
} hand_style;

typedef struct hand hand;

/* What gk's simulation has under the same names. */
typedef struct hand_state {
  const v3 *x, *v;
  uint64_t newton, cg, searches;
  int contacts, growths, touching;
  double energy, kinetic, taken;
} hand_state;

/* NULL: no memory. */
hand *bench_softbody_start(const mesh *body, const world *constants, int threads, hand_style style);
void bench_softbody_end(hand *h);

/* Goes on from here, with room for so many contacts. False: no memory. */
bool bench_softbody_restore(hand *h, const v3 *x, const v3 *v, const double *load, const hand_state *state, int room,
                            double highest);
/* False: no memory. */
bool bench_softbody_step(hand *h);
hand_state bench_softbody_look(const hand *h);
#endif
