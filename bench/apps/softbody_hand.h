/* The soft body's time step with OpenMP pragmas, without gk: the same arithmetic, arrays and loops as
 * docs/examples/softbody/step.c. */
#ifndef BENCH_SOFTBODY_HAND_H
#define BENCH_SOFTBODY_HAND_H
#include "body.h"
#include "mesh.h"
#include <stdint.h>

/* How threads share the work. */
typedef enum hand_style {
  HAND_LOOPS,  /* a parallel region for each loop that is long enough */
  HAND_REGION, /* one region for the step, with barriers only where a loop needs results of other threads */
} hand_style;

typedef struct hand hand;

/* The same members as in gk's simulation. */
typedef struct hand_state {
  const v3 *x, *v;
  uint64_t newton, cg, searches;
  int contacts, growths, touching;
  double energy, kinetic, taken;
} hand_state;

hand *bench_softbody_start(const mesh *body, const world *constants, int threads, hand_style style);

/* Continues from this state, with room for `room` contacts. */
void bench_softbody_restore(hand *h, const v3 *x, const v3 *v, const double *load, const hand_state *state, int room,
                            double highest);
void bench_softbody_step(hand *h);
hand_state bench_softbody_look(const hand *h);
#endif
