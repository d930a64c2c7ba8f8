#include "cuda/parameters.h"
#include "base/error.h"
#include "base/memory.h"
#include "cuda/handwritten.h"
#include <string.h>

enum { MOST_ALONG = 65535, /* blocks of a grid along y and z; along x there can be as many as items */
       ALIGNMENT = 16 /* of each parameter here; the driver copies it */ };

/* ---- finding them ------------------------------------------------------------------------------------------------ */

static const gk_node *node_of(const gki_cuda_parameters *p, uint32_t number) {
  return &p->slots->plan->nodes[p->tasks[number].node];
}

static size_t place_behind(size_t at, const gk_param *param) {
  return (at + gki_cuda_handwritten_bytes(param) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t bytes_of(const gk_kernel *kernel) {
  size_t at = 0;
  for (uint32_t k = 0; k < kernel->param_count; ++k) at = place_behind(at, &kernel->params[k]);
  return at;
}

static void find_tasks(gki_cuda_parameters *p, gki_cuda_kernel *const *code) {
  const gk_plan *plan = p->slots->plan;
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    if (!code[k] || !code[k]->handwritten) continue;
    const size_t bytes = bytes_of(plan->nodes[k].kernel);
    p->tasks[p->count++] = (gki_cuda_is_handwritten){k, p->bytes, bytes, code[k]};
    p->bytes += bytes;
  }
  for (uint32_t k = 0; k <= p->count; ++k) /* a ring, in any order: nothing was given yet */
    p->changes[k] = (gki_cuda_change){0, k ? k - 1 : p->count, k < p->count ? k + 1 : 0};
}

/* Each slot of a task, as often as it has it. */
static uint32_t slot_of(const gki_cuda_parameters *p, uint32_t number, uint32_t k) {
  const gk_node *node = node_of(p, number);
  return k < node->arg_count ? p->slots->plan->args[node->args + k] : node->items[k - node->arg_count];
}

static uint32_t count_slots(const gki_cuda_parameters *p, uint32_t number) { return node_of(p, number)->arg_count + 3; }

static bool find_users(gki_cuda_parameters *p, gki_arena *arena) {
  const uint32_t slot_count = p->slots->plan->slot_count;
  uint32_t all = 0;
  p->users_at = gki_arena_alloc(arena, (size_t)slot_count + 1, sizeof *p->users_at);
  if (!p->users_at) return false;
  for (uint32_t n = 0; n < p->count; ++n)
    for (uint32_t k = 0; k < count_slots(p, n); ++k, ++all) ++p->users_at[slot_of(p, n, k) + 1];
  p->users = gki_arena_alloc(arena, all, sizeof *p->users);
  if (!p->users) return false;
  for (uint32_t slot = 0; slot < slot_count; ++slot) p->users_at[slot + 1] += p->users_at[slot];
  for (uint32_t n = p->count; n-- > 0;) /* each slot's from its end on, which so becomes its beginning */
    for (uint32_t k = 0; k < count_slots(p, n); ++k) p->users[--p->users_at[slot_of(p, n, k) + 1]] = n;
  memmove(p->users_at, p->users_at + 1, slot_count * sizeof *p->users_at);
  p->users_at[slot_count] = all;
  return true;
}

gk_result gki_cuda_parameters_find(gki_cuda_parameters *p, const gki_cuda_slots *slots, gki_cuda_kernel *const *code,
                                   gki_arena *arena) {
  const gk_plan *plan = slots->plan;
  uint32_t count = 0;
  *p = (gki_cuda_parameters){.slots = slots};
  for (uint32_t k = 0; k < plan->node_count; ++k) count += code[k] && code[k]->handwritten;
  if (!count) return GK_OK;
  p->tasks = gki_arena_alloc(arena, count, sizeof *p->tasks);
  p->changes = gki_arena_alloc(arena, (size_t)count + 1, sizeof *p->changes);
  p->wanted.grids = gki_arena_alloc(arena, count, sizeof *p->wanted.grids);
  bool found = p->tasks && p->changes;
  if (found) find_tasks(p, code);
  found = found && find_users(p, arena);
  p->wanted.bytes = gki_arena_alloc_aligned(arena, p->bytes + 1, ALIGNMENT);
  if (found && p->wanted.grids && p->wanted.bytes) return GK_OK;
  p->count = 0;
  return gki_fail_memory("a graph's kernels with code by hand", count * sizeof *p->tasks + p->bytes);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void write_parameter(const gki_cuda_parameters *p, const gk_param *param, uint32_t slot, const gk_value *value,
                            unsigned char *to) {
  const bool is_struct = p->slots->plan->slots[slot].type == GK_BYTES;
  const CUdeviceptr copy = is_struct ? p->slots->table.at + p->slots->table.structs[slot] : 0;
  const void *from = param->access == GK_ACCESS_VALUE ? is_struct ? value->ptr : (const void *)value
                     : is_struct                      ? (const void *)&copy
                                                      : (const void *)&value->ptr;
  memcpy(to, from, gki_cuda_handwritten_bytes(param));
}

static void write_parameters(gki_cuda_parameters *p, uint32_t number, const gk_value *values) {
  const gk_node *node = node_of(p, number);
  const uint32_t *args = p->slots->plan->args + node->args;
  unsigned char *to = p->wanted.bytes + p->tasks[number].at;
  for (uint32_t k = 0; k < node->arg_count; ++k) {
    const gk_param *param = &node->kernel->params[k];
    write_parameter(p, param, args[k], &values[args[k]], to);
    to += place_behind(0, param);
  }
}

static gk_result refuse_grid(const gki_cuda_parameters *p, uint32_t number, int axis, int64_t blocks) {
  const gk_node *node = node_of(p, number);
  return gk_fail(GK_ERROR_INVALID, "task %u (%s): %lld blocks along %c, by slot %u (%s), and a grid has at most %d; "
                 "let a block cover more items (.per_block of the kernel's code), or change the number",
                 (unsigned)node->source, node->name, (long long)blocks, "xyz"[axis], (unsigned)node->items[axis],
                 p->slots->plan->slots[node->items[axis]].name, (int)MOST_ALONG);
}

/* grid: all 0 if there are no items. Answers the axis of which there are too many blocks, 3 if there are too many
 * items, or -1. */
static int count_blocks(const gki_cuda_parameters *p, uint32_t number, const gk_value *values, int64_t grid[3]) {
  const gki_cuda_kernel *kernel = p->tasks[number].kernel;
  const gk_node *node = node_of(p, number);
  int64_t items[3], all = 1;
  int bad = -1;
  for (int axis = 0; axis < 3; ++axis) {
    items[axis] = node->items[axis] ? gki_slot_table_number(&p->slots->table, node->items[axis], values) : 1;
    grid[axis] = 0;
    if (items[axis] <= 0) all = 0;
  }
  for (int axis = 0; axis < 3 && all; ++axis) {
    grid[axis] = items[axis] / kernel->per_block[axis] + (items[axis] % kernel->per_block[axis] != 0);
    if (axis && grid[axis] > MOST_ALONG && bad < 0) bad = axis;
    if (__builtin_mul_overflow(all, items[axis], &all) || all > INT32_MAX) return 3;
  }
  return bad;
}

/* Of a bad count the grid is {0, 1, 0}. */
static void write_grid(gki_cuda_parameters *p, uint32_t number, const gk_value *values) {
  int64_t grid[3];
  const bool bad = count_blocks(p, number, values, grid) >= 0;
  for (int axis = 0; axis < 3; ++axis) p->wanted.grids[number][axis] = bad ? axis == 1 : (unsigned)grid[axis];
}

static void put_first(gki_cuda_parameters *p, uint32_t number) {
  gki_cuda_change *ring = p->changes, *at = &ring[number], *head = &ring[p->count];
  ring[at->later].earlier = at->earlier;
  ring[at->earlier].later = at->later;
  *at = (gki_cuda_change){p->wanted.version, p->count, head->earlier};
  ring[head->earlier].later = number;
  head->earlier = number;
}

static void take_task(gki_cuda_parameters *p, uint32_t number, const gk_value *values) {
  if (p->changes[number].version == p->wanted.version) return; /* done already, for another slot of this task */
  put_first(p, number);
  write_parameters(p, number, values);
  write_grid(p, number, values);
}

void gki_cuda_parameters_take(gki_cuda_parameters *p, const gk_launch_args *launch) {
  const bool first = !p->wanted.version;
  if (!p->count || (!first && !launch->changed_count)) return;
  ++p->wanted.version;
  for (uint32_t n = 0; first && n < p->count; ++n) take_task(p, n, launch->values);
  for (uint32_t k = 0; k < launch->changed_count; ++k)
    for (uint32_t u = p->users_at[launch->changed[k]]; u < p->users_at[launch->changed[k] + 1]; ++u)
      take_task(p, p->users[u], launch->values);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

gk_result gki_cuda_updates_make(gki_cuda_updates *u, const gki_cuda_parameters *p) {
  *u = (gki_cuda_updates){0};
  if (!p->count) return GK_OK;
  u->nodes = gki_array(p->count, sizeof *u->nodes, "the nodes of kernels with code by hand");
  u->execs = gki_array(p->count, sizeof *u->execs, "the nodes of kernels with code by hand");
  u->known = gki_array(p->count, sizeof *u->known, "the nodes of kernels with code by hand");
  u->given.grids = gki_array(p->count, sizeof *u->given.grids, "the nodes of kernels with code by hand");
  u->given.bytes = gki_array(p->bytes + 1, 1, "the parameters of kernels with code by hand");
  if (u->nodes && u->execs && u->known && u->given.grids && u->given.bytes) return GK_OK;
  gki_cuda_updates_drop(u);
  return GK_ERROR_MEMORY;
}

void gki_cuda_updates_drop(gki_cuda_updates *u) {
  gk_host_free(u->nodes);
  gk_host_free(u->execs);
  gk_host_free(u->known);
  gk_host_free(u->given.grids);
  gk_host_free(u->given.bytes);
  *u = (gki_cuda_updates){0};
}

/* The first of those at this node or behind it. */
static uint32_t number_of(const gki_cuda_parameters *p, uint32_t node) {
  uint32_t first = 0, end = p->count;
  while (first < end) {
    const uint32_t middle = first + (end - first) / 2;
    if (p->tasks[middle].node < node) first = middle + 1;
    else end = middle;
  }
  return first;
}

static void shape_task(const gki_cuda_parameters *p, uint32_t number, CUDA_KERNEL_NODE_PARAMS_v1 *shape,
                       void **pointers) {
  const gki_cuda_kernel *kernel = p->tasks[number].kernel;
  const unsigned *grid = p->wanted.grids[number], *block = kernel->block;
  const gk_kernel *from = kernel->handwritten;
  unsigned char *at = p->wanted.bytes + p->tasks[number].at;
  for (uint32_t k = 0; k < from->param_count; ++k) {
    pointers[k] = at;
    at += place_behind(0, &from->params[k]);
  }
  *shape = (CUDA_KERNEL_NODE_PARAMS_v1){
      .func = kernel->function, .gridDimX = grid[0], .gridDimY = grid[1], .gridDimZ = grid[2], .blockDimX = block[0],
      .blockDimY = block[1], .blockDimZ = block[2], .sharedMemBytes = kernel->shared_bytes, .kernelParams = pointers};
}

static bool has_items(const gki_cuda_parameters *p, uint32_t number) { return p->wanted.grids[number][0] != 0; }

static void note_given(gki_cuda_updates *u, const gki_cuda_parameters *p, uint32_t number) {
  const gki_cuda_is_handwritten *task = &p->tasks[number];
  memcpy(u->given.bytes + task->at, p->wanted.bytes + task->at, task->bytes);
  memcpy(u->given.grids[number], p->wanted.grids[number], sizeof u->given.grids[number]);
  u->known[number] = true;
}

/* A node keeps the function that it is made with, or has none of gk's for a while: it must be made with the kernel. */
uint32_t gki_cuda_parameters_shape(const gki_cuda_parameters *p, uint32_t node, CUDA_KERNEL_NODE_PARAMS_v1 *shape,
                                   void **pointers) {
  const uint32_t number = number_of(p, node);
  shape_task(p, number, shape, pointers);
  if (!has_items(p, number)) shape->gridDimX = shape->gridDimY = shape->gridDimZ = 1;
  return number;
}

void gki_cuda_updates_made(gki_cuda_updates *u, const gki_cuda_parameters *p, uint32_t number, CUgraphNode node) {
  u->nodes[number] = node;
  u->known[number] = false;
  u->given.version = 0;
  if (p->wanted.version && has_items(p, number)) note_given(u, p, number);
}

void gki_cuda_updates_belong(gki_cuda_updates *u, const gki_cuda_parameters *p, uint32_t begin, uint32_t end,
                             CUgraphExec exec) {
  for (uint32_t k = number_of(p, begin); k < p->count && p->tasks[k].node < end; ++k) u->execs[k] = exec;
}

/* ---- updates ----------------------------------------------------------------------------------------------------- */

static bool is_up_to_date(const gki_cuda_updates *u, const gki_cuda_parameters *p, uint32_t number) {
  const gki_cuda_is_handwritten *task = &p->tasks[number];
  if (!u->known[number]) return false;
  if (memcmp(u->given.grids[number], p->wanted.grids[number], sizeof u->given.grids[number]) != 0) return false;
  return !has_items(p, number) ||
         memcmp(u->given.bytes + task->at, p->wanted.bytes + task->at, task->bytes) == 0;
}

gk_result gki_cuda_parameters_check(const gki_cuda_parameters *p, uint32_t node, const gk_value *values) {
  const uint32_t number = number_of(p, node);
  int64_t grid[3];
  if (number == p->count || p->tasks[number].node != node) return GK_OK;
  const int axis = count_blocks(p, number, values, grid);
  return axis > 0 && axis < 3 ? refuse_grid(p, number, axis, grid[axis]) : GK_OK;
}

/* As FILL sees a bad count: that of one element or more, where there is room for none (slot 0 holds 0). */
static gki_task bad_task(const gki_cuda_parameters *p, uint32_t number) {
  const gk_node *node = node_of(p, number);
  int axis = 0;
  while (!node->items[axis]) ++axis;
  return (gki_task){.slots = p->slots->table.at, .number = p->slots->table.control, .items = {node->items[axis]},
                         .element = 1, .node = p->tasks[number].node};
}

/* FILL, with nothing to fill: one warp that returns at once, or first posts that the count is bad. */
static gk_result shape_nothing(const gki_cuda_parameters *p, uint32_t number, CUDA_KERNEL_NODE_PARAMS_v1 *shape,
                               gki_task *task, void **pointers) {
  const gki_cuda_device *device = p->slots->device;
  const gk_node *node = node_of(p, number);
  if (!device->fill_kernel.function)
    return gk_fail(GK_ERROR_UNSUPPORTED, "task %u (%s): it has no items, and code by hand is then left out by a kernel "
                   "of gk's own, but %s", (unsigned)node->source, node->name, device->no_transfers);
  *task = p->wanted.grids[number][1] ? bad_task(p, number) : (gki_task){0};
  pointers[0] = task;
  *shape = (CUDA_KERNEL_NODE_PARAMS_v1){.func = device->fill_kernel.function, .gridDimX = 1, .gridDimY = 1,
                                        .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1,
                                        .kernelParams = pointers};
  return GK_OK;
}

/* The older call serves drivers before 12.2, and goes away some day. */
static CUresult set(const gki_cuda_device *device, CUgraphExec exec, CUgraphNode node,
                    const CUDA_KERNEL_NODE_PARAMS_v1 *shape) {
  const gki_cuda_driver *driver = device->driver;
  if (!driver->cuGraphExecNodeSetParams) return driver->cuGraphExecKernelNodeSetParams(exec, node, shape);
  CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  all.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){
      .func = shape->func, .gridDimX = shape->gridDimX, .gridDimY = shape->gridDimY, .gridDimZ = shape->gridDimZ,
      .blockDimX = shape->blockDimX, .blockDimY = shape->blockDimY, .blockDimZ = shape->blockDimZ,
      .sharedMemBytes = shape->sharedMemBytes, .kernelParams = shape->kernelParams, .ctx = device->context};
  return driver->cuGraphExecNodeSetParams(exec, node, &all);
}

static gk_result update(gki_cuda_updates *u, const gki_cuda_parameters *p, uint32_t number) {
  const gki_cuda_device *device = p->slots->device;
  const gk_node *node = node_of(p, number);
  CUDA_KERNEL_NODE_PARAMS_v1 shape;
  void *pointers[GK_MAX_ARGS];
  gki_task task;
  gk_result result = GK_OK;
  if (has_items(p, number)) shape_task(p, number, &shape, pointers);
  else result = shape_nothing(p, number, &shape, &task, pointers);
  if (result != GK_OK) return result;
  CUresult answer = set(device, u->execs[number], u->nodes[number], &shape);
  u->known[number] = false;
  if (answer == CUDA_SUCCESS) note_given(u, p, number);
  if (answer == CUDA_ERROR_NOT_SUPPORTED)
    return gk_fail(GK_ERROR_UNSUPPORTED, "task %u (%s): this driver doesn't update the node of a kernel with code by "
                   "hand in a graph with conditional nodes; create graph %s with GK_HOST_GATED",
                   (unsigned)node->source, node->name, p->slots->plan->name);
  return gki_cuda_result(device->driver, answer, "%s for task %u (%s) of graph %s",
                        device->driver->cuGraphExecNodeSetParams ? "cuGraphExecNodeSetParams"
                                                                 : "cuGraphExecKernelNodeSetParams",
                        (unsigned)node->source, node->name, p->slots->plan->name);
}

gk_result gki_cuda_updates_send(gki_cuda_updates *u, const gki_cuda_parameters *p, gk_applied *applied) {
  if (!p->count || u->given.version == p->wanted.version) return GK_OK;
  const gki_cuda_change *ring = p->changes;
  for (uint32_t k = ring[p->count].earlier; k != p->count && ring[k].version > u->given.version; k = ring[k].earlier) {
    if (is_up_to_date(u, p, k)) continue;
    gk_result result = update(u, p, k);
    if (result != GK_OK) return result;
    *applied = GK_BY_NODES;
  }
  u->given.version = p->wanted.version;
  return GK_OK;
}
