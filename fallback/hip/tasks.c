#include "hip/graph.h"
#include "plan/walk.inc"
#include <string.h>

enum { BYTES = 16 /* that an item of COPY and FILL moves */ };

static uint64_t address_in(const gki_hip_graph *g, size_t offset) { return (uintptr_t)g->block + offset; }

/* Kernels stride over the items, so any grid works. That of a count that only the device knows fills the device. */
static unsigned blocks_of(const gki_hip_graph *g, uint32_t node, unsigned most) {
  const unsigned char *record = g->slots.image + g->slots.records[node];
  uint32_t count, element;
  memcpy(&count, record, sizeof count); /* the first field of both kinds of records */
  if (count >= GKI_UNCOUNTED) return count == GKI_UNCOUNTED ? 1 : most;
  uint64_t items = count;
  if (g->plan->nodes[node].op != GK_OP_KERNEL) {
    memcpy(&element, record + offsetof(gki_transfer, element), sizeof element);
    items = (items * element + BYTES - 1) / BYTES;
  }
  const uint64_t blocks = (items + GKI_HIP_THREADS - 1) / GKI_HIP_THREADS;
  return blocks < most ? blocks ? (unsigned)blocks : 1 : most;
}

static void shape_composed(const gki_hip_kernel *kernel, gki_task task, unsigned blocks, gki_hip_shape *shape) {
  *shape = (gki_hip_shape){.function = kernel->function, .grid = {blocks, 1, 1}, .block = {GKI_HIP_THREADS, 1, 1}};
  shape->packed.task = task;
  shape->pointers[0] = &shape->packed.task;
  shape->args = (gki_hip_args){shape->pointers, &shape->packed, sizeof task};
}

/* Without items, FILL stands in for handwritten code: it posts the count if that is bad. */
static void shape_handwritten(const gki_hip_graph *g, uint32_t node, gki_hip_shape *shape) {
  const uint32_t number = gki_param_number(&g->params, node);
  const gki_hip_kernel *kernel = g->kernels[node];
  const gk_kernel *of = g->plan->nodes[node].kernel;
  if (!gki_param_has_items(&g->params, number)) {
    shape_composed(&g->device->fill, gki_param_fill(&g->params, number), 1, shape);
    return;
  }
  uint64_t places[GK_MAX_ARGS];
  *shape = (gki_hip_shape){.function = kernel->function, .shared_bytes = kernel->shared_bytes};
  memcpy(shape->grid, g->params.wanted.grids[number], sizeof shape->grid);
  memcpy(shape->block, kernel->block, sizeof shape->block);
  gki_param_point(&g->params, number, shape->pointers);
  const uint64_t bytes = gki_param_places(of, places);
  for (uint32_t k = 0; k < of->param_count; ++k)
    memcpy(g->packed + places[k], shape->pointers[k], gki_param_bytes(&of->params[k]));
  shape->args = (gki_hip_args){shape->pointers, g->packed, (size_t)bytes};
}

void gki_hip_shape_task(const gki_hip_graph *g, uint32_t at, uint32_t run, bool fixed, gki_hip_shape *shape) {
  const gk_node *node = &g->plan->nodes[at];
  if (node->handwritten) {
    shape_handwritten(g, at, shape);
    return;
  }
  const gki_hip_kernel *kernel = g->kernels[at];
  gki_task task = gki_task_of(&g->slots, at);
  if (g->points) task.guard = address_in(g, (g->points->table[g->points->runs[run] + GKW_RECORD] + GKW_TASKS) *
                                                sizeof(uint32_t));
  shape_composed(kernel, task, fixed ? kernel->most_blocks : blocks_of(g, at, kernel->most_blocks), shape);
}

void gki_hip_shape_control(const gki_hip_graph *g, uint32_t run, gki_hip_shape *shape) {
  *shape = (gki_hip_shape){.function = g->device->ahead, .grid = {1, 1, 1}, .block = {1, 1, 1}};
  shape->packed.control.points = address_in(g, g->points_at);
  shape->packed.control.state = address_in(g, 0);
  shape->packed.control.slots = g->slots.at;
  shape->packed.control.cancelled = (uintptr_t)&g->shared->cancelled;
  shape->packed.control.run = run == GK_NONE ? GKW_NONE : g->points->runs[run];
  void *const pointers[] = {&shape->packed.control.points, &shape->packed.control.state, &shape->packed.control.slots,
                            &shape->packed.control.cancelled, &shape->packed.control.run};
  memcpy(shape->pointers, pointers, sizeof pointers);
  shape->args = (gki_hip_args){shape->pointers, &shape->packed,
                               offsetof(__typeof__(shape->packed.control), run) + sizeof(uint32_t)};
}

hipError_t gki_hip_launch_shape(const gki_hip_graph *g, const gki_hip_shape *shape) {
  return gki_hip_launch_kernel(g->device, shape->function, shape->grid, shape->block, shape->shared_bytes, g->stream,
                               &shape->args);
}
