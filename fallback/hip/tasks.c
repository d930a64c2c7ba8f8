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

/* Chooses the form of the arguments, to which shape->pointers point already. */
static void set_arguments(const gki_hip_device *d, void *packed, size_t bytes, gki_hip_shape *shape) {
  void *const extra[] = {(void *)(uintptr_t)GKI_HIP_LAUNCH_PARAM_BUFFER_POINTER, packed,
                         (void *)(uintptr_t)GKI_HIP_LAUNCH_PARAM_BUFFER_SIZE, &shape->bytes,
                         (void *)(uintptr_t)GKI_HIP_LAUNCH_PARAM_END};
  memcpy(shape->extra, extra, sizeof extra);
  shape->bytes = bytes;
  if (d->packs && bytes) shape->params.extra = shape->extra;
  else shape->params.kernelParams = shape->pointers;
}

static void shape_composed(const gki_hip_device *d, const gki_hip_kernel *kernel, gki_task task, unsigned blocks,
                           gki_hip_shape *shape) {
  *shape = (gki_hip_shape){.params = {.func = kernel->function, .gridDim = {blocks, 1, 1},
                                      .blockDim = {GKI_HIP_THREADS, 1, 1}}};
  shape->packed.task = task;
  shape->pointers[0] = &shape->packed.task;
  set_arguments(d, &shape->packed, sizeof task, shape);
}

/* Without items, FILL stands in for handwritten code: it posts the count if that is bad. */
static void shape_handwritten(const gki_hip_graph *g, uint32_t node, gki_hip_shape *shape) {
  const uint32_t number = gki_param_number(&g->params, node);
  const gki_param_task *task = &g->params.tasks[number];
  const gki_hip_kernel *kernel = g->kernels[node];
  const unsigned *grid = g->params.wanted.grids[number], *block = kernel->block;
  if (!gki_param_has_items(&g->params, number)) {
    shape_composed(g->device, &g->device->fill, gki_param_fill(&g->params, number), 1, shape);
    return;
  }
  *shape = (gki_hip_shape){.params = {.func = kernel->function, .gridDim = {grid[0], grid[1], grid[2]},
                                      .blockDim = {block[0], block[1], block[2]},
                                      .sharedMemBytes = kernel->shared_bytes}};
  gki_param_point(&g->params, number, shape->pointers);
  set_arguments(g->device, g->params.wanted.bytes + task->at, task->bytes, shape);
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
  shape_composed(g->device, g->kernels[at], task, blocks_of(g, at, fixed), shape);
}

void gki_hip_shape_control(const gki_hip_graph *g, uint32_t run, gki_hip_shape *shape) {
  *shape = (gki_hip_shape){.params = {.func = g->device->ahead.function, .gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}}};
  shape->packed.control.points = address_in(g, g->points_at);
  shape->packed.control.state = address_in(g, 0);
  shape->packed.control.slots = g->slots.at;
  shape->packed.control.cancelled = (uintptr_t)&g->shared->cancelled;
  shape->packed.control.run = run == GK_NONE ? GKW_NONE : g->points->runs[run];
  void *const pointers[] = {&shape->packed.control.points, &shape->packed.control.state, &shape->packed.control.slots,
                            &shape->packed.control.cancelled, &shape->packed.control.run};
  memcpy(shape->pointers, pointers, sizeof pointers);
  set_arguments(g->device, &shape->packed, offsetof(__typeof__(shape->packed.control), run) + sizeof(uint32_t), shape);
}

void gki_hip_shape_echo(const gki_hip_device *d, uint64_t *seen, uint32_t number, gki_hip_shape *shape) {
  *shape = (gki_hip_shape){.params = {.func = d->echo.function, .gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}}};
  shape->packed.echo.to = (uintptr_t)(seen + (size_t)number * GKI_HIP_ECHO);
  shape->packed.echo.narrow = number + 1;
  shape->packed.echo.wide = (uint64_t)number << 32 | 2;
  shape->packed.echo.last = number + 3;
  void *const pointers[] = {&shape->packed.echo.to, &shape->packed.echo.narrow, &shape->packed.echo.wide,
                            &shape->packed.echo.last};
  memcpy(shape->pointers, pointers, sizeof pointers);
  set_arguments(d, &shape->packed, offsetof(__typeof__(shape->packed.echo), last) + sizeof(uint32_t), shape);
}

bool gki_hip_has_echoes(const uint64_t *seen, uint32_t count) {
  for (uint64_t k = 0; k < count; ++k, seen += GKI_HIP_ECHO)
    if (seen[0] != k + 1 || seen[1] != (k << 32 | 2) || seen[2] != k + 3) return false;
  return true;
}

hipError_t gki_hip_launch_shape(const gki_hip_device *d, const gki_hip_shape *shape, hipStream_t stream) {
  const hipKernelNodeParams *p = &shape->params;
  return d->driver->hipModuleLaunchKernel(p->func, p->gridDim.x, p->gridDim.y, p->gridDim.z, p->blockDim.x,
                                          p->blockDim.y, p->blockDim.z, p->sharedMemBytes, stream, p->kernelParams,
                                          p->extra);
}
