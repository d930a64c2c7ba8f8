/* Bodies, and moments at which variants start, for benchmarks of the soft body on any device. */
#ifndef BENCH_SOFTBODY_SCENE_H
#define BENCH_SOFTBODY_SCENE_H
#include "bench/apps/softbody_hand.h"
#include "step.h"

/* All inputs of a time step, and the results of the last one. */
typedef struct body_moment {
  v3 *x, *v;
  double *load;
  hand_state state;
  int room;
  double highest;
} body_moment; /* all of this is in memory that processes share */

/* The demo's body, with each edge cut into `parts`. */
void bench_scene_mesh(mesh *body, int parts);
/* Two balls of 26 vertices, one above the other, for simulated devices. */
void bench_scene_balls(mesh *body);

void bench_scene_moment(body_moment *m, size_t vertices);
void bench_scene_save(const simulation *s, body_moment *to);
void bench_scene_restore(simulation *s, const body_moment *from);

/* The simulation's numbers as those of the version by hand. */
hand_state bench_scene_state(const simulation *s);
/* The memory that a slot is bound to. */
void *bench_scene_memory(const simulation *s, const char *slot);
#endif
