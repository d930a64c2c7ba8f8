#include "cuda/nodes.h"
#include "base/costs.h"
#include "base/trace.h"
#include "cuda/record.h"

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static gk_result add_handwritten(gki_cuda_frontier *f, CUgraph into, uint32_t at, size_t first) {
  CUDA_KERNEL_NODE_PARAMS_v1 shape;
  void *pointers[GK_MAX_ARGS];
  CUgraphNode made;
  const uint32_t number = gki_cuda_parameters_shape(f->parameters, at, &shape, pointers);
  gk_result result = gki_cuda_add_kernel_node(f, into, at, first, &shape, &made);
  return result == GK_OK ? gki_cuda_updates_made(f->updates, f->parameters, number, made) : result;
}

bool gki_cuda_is_small(const gk_plan *plan, uint32_t at) {
  const gk_node *node = &plan->nodes[at];
  if (node->items[0] || node->items[1] || node->items[2]) return false;
  return node->op == GK_OP_KERNEL || plan->slots[plan->args[node->args]].element_bytes <= GKI_COST_SMALL_BYTES;
}

gk_result gki_cuda_add_task(gki_cuda_frontier *f, CUgraph into, uint32_t at, size_t first, CUdeviceptr guard) {
  const gk_node *node = &f->slots->plan->nodes[at];
  if (node->op == GK_OP_CALL) return gki_cuda_add_call(f, into, at, first);
  if (node->op == GK_OP_KERNEL && f->code[at]->handwritten) return add_handwritten(f, into, at, first);
  const gki_cuda_kernel *kernel = node->op == GK_OP_KERNEL ? f->code[at]
                                  : node->op == GK_OP_COPY ? &f->device->copy_kernel
                                                           : &f->device->fill_kernel;
  gki_task task = gki_task_of(&f->slots->table, at);
  task.guard = guard;
  void *parameters[] = {&task};
  /* The item count isn't known yet. Kernels stride over the items, so any grid works. */
  const bool small = gki_cuda_is_small(f->slots->plan, at);
  return gki_cuda_add_kernel(f, into, at, first, kernel->function, small ? 1 : kernel->blocks,
                             small ? GKI_CUDA_SMALL_THREADS : kernel->threads, parameters, NULL);
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

/* Drivers before 12.0 give no reason. */
static CUresult instantiate(const gki_cuda_driver *driver, CUgraph graph, CUgraphExec *exec,
                            CUgraphInstantiateResult *reason, CUgraphNode *at) {
  if (!driver->cuGraphInstantiateWithParams) return driver->cuGraphInstantiateWithFlags(exec, graph, 0);
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {0};
  const CUresult result = driver->cuGraphInstantiateWithParams(exec, graph, &parameters);
  *reason = parameters.result_out;
  *at = parameters.hErrNode_out;
  return result;
}

CUresult gki_cuda_instantiate(const gki_cuda_device *device, CUgraph graph, CUgraphExec *exec, const char **why,
                              CUgraphNode *at) {
  static const char *const reasons[] = {
      [CUDA_GRAPH_INSTANTIATE_SUCCESS] = "", [CUDA_GRAPH_INSTANTIATE_ERROR] = "",
      [CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE] = ", its structure isn't valid",
      [CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED] = ", it holds what no graph or body may hold",
      [CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED] = ", its nodes are of several contexts",
      [CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED] = ", a handle belongs to no node"};
  CUgraphInstantiateResult reason = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  *at = NULL;
  gki_trace_begin(0, "instantiate");
  CUresult result = instantiate(device->driver, graph, exec, &reason, at);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) { /* the driver may keep memory of destroyed graphs */
    (void)device->driver->cuDeviceGraphMemTrim(device->device);
    result = instantiate(device->driver, graph, exec, &reason, at);
  }
  gki_trace_end();
  *why = (size_t)reason < GK_COUNT(reasons) ? reasons[reason] : "";
  if (result != CUDA_SUCCESS) *exec = NULL;
  return result;
}
