#include "cuda/parameters.h"
#include "base/error.h"
#include "base/memory.h"

static const unsigned most_blocks[3] = {INT32_MAX, 65535, 65535}; /* of every GPU */

gk_result gki_cuda_parameters_find(gki_cuda_parameters *p, const gki_cuda_slots *slots, gki_cuda_kernel *const *code,
                                   gki_arena *arena) {
  *p = (gki_cuda_parameters){.slots = slots, .code = code};
  gk_result result = gki_param_make(&p->values, &slots->table, most_blocks, arena);
  for (uint32_t n = 0; n < p->values.count; ++n)
    p->values.tasks[n].per_block = code[p->values.tasks[n].node]->per_block;
  return result;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

gk_result gki_cuda_updates_make(gki_cuda_updates *u, const gki_cuda_parameters *p) {
  *u = (gki_cuda_updates){0};
  if (!p->values.count) return GK_OK;
  u->nodes = gki_array(p->values.count, sizeof *u->nodes, "the nodes of kernels with code by hand");
  u->execs = gki_array(p->values.count, sizeof *u->execs, "the nodes of kernels with code by hand");
  u->others = gki_array(p->values.count, sizeof *u->others, "the nodes of kernels with code by hand");
  if (u->nodes && u->execs && u->others && gki_param_given_make(&u->given, &p->values) == GK_OK) return GK_OK;
  gki_cuda_updates_drop(u);
  return GK_ERROR_MEMORY;
}

void gki_cuda_updates_drop(gki_cuda_updates *u) {
  gk_host_free(u->nodes);
  gk_host_free(u->execs);
  gk_host_free(u->others);
  gk_host_free(u->copies);
  gki_param_given_drop(&u->given);
  *u = (gki_cuda_updates){0};
}

static void shape_task(const gki_cuda_parameters *p, uint32_t number, CUDA_KERNEL_NODE_PARAMS_v1 *shape,
                       void **pointers) {
  const gki_cuda_kernel *kernel = p->code[p->values.tasks[number].node];
  const unsigned *grid = p->values.wanted.grids[number], *block = kernel->block;
  gki_param_point(&p->values, number, pointers);
  *shape = (CUDA_KERNEL_NODE_PARAMS_v1){
      .func = kernel->function, .gridDimX = grid[0], .gridDimY = grid[1], .gridDimZ = grid[2], .blockDimX = block[0],
      .blockDimY = block[1], .blockDimZ = block[2], .sharedMemBytes = kernel->shared_bytes, .kernelParams = pointers};
}

/* The node is made with the handwritten kernel also without items: updates replace it by FILL, and undo that. */
uint32_t gki_cuda_parameters_shape(const gki_cuda_parameters *p, uint32_t node, CUDA_KERNEL_NODE_PARAMS_v1 *shape,
                                   void **pointers) {
  const uint32_t number = gki_param_number(&p->values, node);
  shape_task(p, number, shape, pointers);
  if (!gki_param_has_items(&p->values, number)) shape->gridDimX = shape->gridDimY = shape->gridDimZ = 1;
  return number;
}

gk_result gki_cuda_updates_made(gki_cuda_updates *u, const gki_cuda_parameters *p, uint32_t number,
                                CUgraphNode node) {
  if (u->nodes[number]) {
    if (!gki_grow((void **)&u->copies, &u->capacity, u->copy_count + 1, sizeof *u->copies, "a task's nodes"))
      return GK_ERROR_MEMORY;
    u->copies[u->copy_count++] = (gki_cuda_again){node, u->others[number]};
    u->others[number] = (uint32_t)u->copy_count;
  } else {
    u->nodes[number] = node;
  }
  u->given.known[number] = false;
  u->given.values.version = 0;
  if (p->values.wanted.version && gki_param_has_items(&p->values, number))
    gki_param_note_given(&u->given, &p->values, number);
  return GK_OK;
}

void gki_cuda_updates_belong(gki_cuda_updates *u, const gki_cuda_parameters *p, uint32_t begin, uint32_t end,
                             CUgraphExec exec) {
  const gki_params *v = &p->values;
  for (uint32_t k = gki_param_number(v, begin); k < v->count && v->tasks[k].node < end; ++k) {
    u->execs[k] = exec;
    if (!exec) u->nodes[k] = NULL;
  }
}

/* ---- updates ----------------------------------------------------------------------------------------------------- */

static const gk_node *node_of(const gki_cuda_parameters *p, uint32_t number) {
  return &p->slots->plan->nodes[p->values.tasks[number].node];
}

/* FILL with one warp, which returns at once or posts a bad count. */
static gk_result shape_nothing(const gki_cuda_parameters *p, uint32_t number, CUDA_KERNEL_NODE_PARAMS_v1 *shape,
                               gki_task *task, void **pointers) {
  const gki_cuda_device *device = p->slots->device;
  const gk_node *node = node_of(p, number);
  if (!device->fill_kernel.function)
    return gk_fail(GK_ERROR_UNSUPPORTED, "task %u (%s): it has no items, and code by hand is then left out by a kernel "
                   "of gk's own, but %s", (unsigned)node->source, node->name, device->no_transfers);
  *task = gki_param_fill(&p->values, number);
  pointers[0] = task;
  *shape = (CUDA_KERNEL_NODE_PARAMS_v1){.func = device->fill_kernel.function, .gridDimX = 1, .gridDimY = 1,
                                        .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1,
                                        .kernelParams = pointers};
  return GK_OK;
}

/* cuGraphExecKernelNodeSetParams is for drivers before 12.2; NVIDIA deprecates it. */
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
  if (gki_param_has_items(&p->values, number)) shape_task(p, number, &shape, pointers);
  else result = shape_nothing(p, number, &shape, &task, pointers);
  if (result != GK_OK) return result;
  CUresult answer = set(device, u->execs[number], u->nodes[number], &shape);
  for (uint32_t k = u->others[number]; k && answer == CUDA_SUCCESS; k = u->copies[k - 1].next)
    answer = set(device, u->execs[number], u->copies[k - 1].node, &shape);
  u->given.known[number] = false;
  if (answer == CUDA_SUCCESS) gki_param_note_given(&u->given, &p->values, number);
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
  const gki_params *v = &p->values;
  const gki_param_change *ring = v->changes;
  uint64_t *version = &u->given.values.version;
  if (!v->count || *version == v->wanted.version) return GK_OK;
  for (uint32_t k = ring[v->count].earlier; k != v->count && ring[k].version > *version; k = ring[k].earlier) {
    if (gki_param_is_given(&u->given, v, k)) continue;
    gk_result result = update(u, p, k);
    if (result != GK_OK) return result;
    *applied = GK_BY_NODES;
  }
  *version = v->wanted.version;
  return GK_OK;
}
