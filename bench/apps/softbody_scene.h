/* Bodies and moments from which arms start, for benchmarks of the soft body on any device. */
#ifndef BENCH_SOFTBODY_SCENE_H
#define BENCH_SOFTBODY_SCENE_H
#include "bench/apps/softbody_hand.h"
#include "step.h"

/* What a time step depends on, and what came of the last one. */
typedef struct moment {
  v3 *x, *v;
  double *load;
  hand_state state;
  int room;
  double highest;
} moment; /* in memory that all processes share */

/* The demo's body, each edge cut into so many parts. */
void bench_scene_mesh(mesh *body, int parts);
/* Two balls of 26 vertices, one above the other: for where any device is slow. */
void bench_scene_balls(mesh *body);

void bench_scene_moment(moment *m, size_t vertices);
void bench_scene_save(const simulation *s, moment *to);
void bench_scene_restore(simulation *s, const moment *from);

/* The simulation's numbers, as the version by hand has them. */
hand_state bench_scene_state(const simulation *s);
/* What a slot is bound to. */
void *bench_scene_memory(const simulation *s, const char *slot);
#endif
