/* The soft spheres with OpenMP pragmas, without gk: the same arithmetic, arrays and loops as particles_app.c. */
#ifndef BENCH_PARTICLES_HAND_H
#define BENCH_PARTICLES_HAND_H
#include "bench/apps/particles_app.h"

/* How threads share the work. */
typedef enum spheres_style {
  SPHERES_LOOPS,  /* a parallel region for each loop that is long enough */
  SPHERES_REGION, /* one region for all steps, with barriers only where a loop needs results of other threads */
} spheres_style;

typedef struct spheres spheres;

spheres *bench_spheres_start(const setting *s, int threads, spheres_style style);
void bench_spheres_restore(spheres *h, const particles_moment *from);
void bench_spheres_run(spheres *h, int steps);
/* x, v and force belong to the spheres. */
particles_moment bench_spheres_look(const spheres *h);
#endif
