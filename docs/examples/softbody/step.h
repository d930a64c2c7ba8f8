/* The simulation: one graph, launched once per time step. */
#ifndef SOFTBODY_STEP_H
#define SOFTBODY_STEP_H
#include "body.h"
#include "gk.h"
#include "mesh.h"

typedef struct simulation {
  gk_device *device;
  gk_graph *graph;
  const mesh *body;
  world world;
  int room;                            /* contacts that fit into their buffer */
  int cells;                           /* of the grid */
  int steps;
  uint64_t newton, cg, searches;       /* passes so far */
  int yields, resumes, growths;
  int unfinished;                      /* steps whose outer loop hit its bound */
  int contacts;                        /* in the list now; each pair counts twice */
  int most;                            /* the greatest number so far */
  int touching;                        /* vertices that the ground carries */
  double energy, kinetic;              /* now */
  double taken;                        /* joules that steps gained and the program removed */
  v3 momentum;                         /* now */
  const char *trouble;                 /* a failure outside of gk; NULL: see gk_error */
} simulation;

/* The task list of a step. */
const gk_list *simulation_list(void);

/* The constants for a body. If memory runs out, reach is 0. */
world simulation_constants(const mesh *body);

/* Opens the device, makes the graph, fills its slots.
 * @param drop  Metres between ground and lowest vertex.
 * @param spin  Radians per second, as an axis. The spin changes the body's shape while it falls.
 * @param room  Contacts that fit at first.
 * @param bits  Of gk_graph_create. */
gk_result simulation_start(simulation *s, const gk_device_desc *device, const mesh *body, const world *constants,
                           double drop, v3 spin, int room, uint32_t bits);

/* One time step, with as many launches as it needs. */
gk_result simulation_step(simulation *s);

/* Positions, and unless NULL velocities, of all vertices. */
gk_result simulation_read(const simulation *s, v3 *x, v3 *v);

void simulation_end(simulation *s);
#endif
