/* The soft spheres as one writes them with OpenMP pragmas and without gk: the same arithmetic,
 * arrays and loops as particles_app.c. */
#ifndef BENCH_PARTICLES_HAND_H
#define BENCH_PARTICLES_HAND_H
#include "bench/apps/particles_app.h"

/* How threads share the work. */
typedef enum spheres_style {
  SPHERES_LOOPS,  /* a parallel region for each loop that is long enough to be worth one */
  SPHERES_REGION, /* one region for all steps, with a barrier where a loop needs what others made, and nowhere else */
} spheres_style;

typedef struct spheres spheres;

/* NULL: no memory. */
spheres *bench_spheres_start(const setting *s, int threads, spheres_style style);
void bench_spheres_end(spheres *h);

/* False: no memory, as below. */
bool bench_spheres_restore(spheres *h, const moment *from);
bool bench_spheres_run(spheres *h, int steps);
/* x, v and force are the spheres' own. */
moment bench_spheres_look(const spheres *h);
#endif
