#include "hip/graph.h"
#include "plan/walk.inc"
#include <string.h>

static uint64_t address_in(const gki_hip_graph *g, size_t offset) { return (uintptr_t)g->block + offset; }

/* Kernels stride over the items, so any grid works. That of a count that only the device knows fills the device. */
static unsigned blocks_of(const gki_hip_graph *g, uint32_t node, bool fixed) {
  const gk_node *task = &g->plan->nodes[node];
  const unsigned most = g->kernels[node]->most_blocks;
  if (fixed) return task->op == GK_OP_KERNEL && !task->items[0] && !task->items[1] && !task->items[2] ? 1 : most;
  const uint64_t items = gki_slot_table_items(&g->slots, node);
  if (items == GKI_UNKNOWN_ITEMS) return most;
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
  gki_task task = gki_task_of(&g->slots, at);
  if (g->points) task.guard = address_in(g, (g->points->table[g->points->runs[run] + GKW_RECORD] + GKW_TASKS) *
                                                sizeof(uint32_t));
  shape_composed(g->kernels[at], task, blocks_of(g, at, fixed), shape);
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

void gki_hip_shape_echo(const gki_hip_device *d, uint64_t *to, uint32_t number, gki_hip_shape *shape) {
  *shape = (gki_hip_shape){.function = d->echo, .grid = {1, 1, 1}, .block = {1, 1, 1}};
  shape->packed.echo.to = (uintptr_t)to;
  shape->packed.echo.narrow = number + 1;
  shape->packed.echo.wide = (uint64_t)number << 32 | 2;
  shape->packed.echo.last = number + 3;
  void *const pointers[] = {&shape->packed.echo.to, &shape->packed.echo.narrow, &shape->packed.echo.wide,
                            &shape->packed.echo.last};
  memcpy(shape->pointers, pointers, sizeof pointers);
  shape->args = (gki_hip_args){shape->pointers, &shape->packed,
                               offsetof(__typeof__(shape->packed.echo), last) + sizeof(uint32_t)};
}

bool gki_hip_has_echo(const uint64_t *to, uint32_t number) {
  return to[0] == (uint64_t)number + 1 && to[1] == ((uint64_t)number << 32 | 2) && to[2] == (uint64_t)number + 3;
}

hipError_t gki_hip_launch_shape(const gki_hip_device *d, const gki_hip_shape *shape, hipStream_t stream) {
  size_t bytes = shape->args.bytes;
  void *extra[] = {(void *)(uintptr_t)GKI_HIP_LAUNCH_PARAM_BUFFER_POINTER, shape->args.packed,
                   (void *)(uintptr_t)GKI_HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   (void *)(uintptr_t)GKI_HIP_LAUNCH_PARAM_END};
  const bool packs = d->packs && bytes;
  const unsigned *grid = shape->grid, *block = shape->block;
  return d->driver->hipModuleLaunchKernel(shape->function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                          shape->shared_bytes, stream, packs ? NULL : shape->args.pointers,
                                          packs ? extra : NULL);
}
