#include "cuda/frontier.h"
#include <stdio.h>
#include <string.h>

/* ---- the stack --------------------------------------------------------------------------------------------------- */

bool gki_cuda_frontier_grow(gki_cuda_frontier *f, size_t more) {
  return gki_grow((void **)&f->nodes, &f->capacity, f->count + more, sizeof(CUgraphNode), "a graph's nodes");
}

gk_result gki_cuda_frontier_advance(gki_cuda_frontier *f, size_t first, CUgraphNode node) {
  f->count = first;
  if (!gki_cuda_frontier_grow(f, 1)) return GK_ERROR_MEMORY;
  f->nodes[f->count++] = node;
  return GK_OK;
}

const CUgraphNode *gki_cuda_frontier_from(const gki_cuda_frontier *f, size_t first) {
  return f->count > first ? f->nodes + first : NULL;
}

gk_result gki_cuda_frontier_fork(gki_cuda_frontier *f, size_t first, size_t copy, size_t *begin) {
  const size_t before = copy - first;
  *begin = f->count;
  if (!gki_cuda_frontier_grow(f, before)) return GK_ERROR_MEMORY;
  memcpy(f->nodes + f->count, f->nodes + first, before * sizeof(CUgraphNode));
  f->count += before;
  return GK_OK;
}

void gki_cuda_frontier_join(gki_cuda_frontier *f, size_t first, size_t copy) {
  memmove(f->nodes + first, f->nodes + copy, (f->count - copy) * sizeof(CUgraphNode));
  f->count -= copy - first;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

gk_result gki_cuda_frontier_result(const gki_cuda_frontier *f, CUresult result, const char *call, uint32_t task) {
  const gk_node *node = &f->slots->plan->nodes[task];
  char what[600];
  if (result == CUDA_SUCCESS) return GK_OK;
  snprintf(what, sizeof what, "%s for task %u (%s) of graph %s", call, (unsigned)node->source, node->name,
           f->slots->plan->name);
  return f->is_external ? gki_cuda_into_result(f->device, result, "gk_cuda_add", what)
                        : gki_cuda_result(f->device->driver, result, "%s", what);
}

gk_result gki_cuda_add_kernel_node(gki_cuda_frontier *f, CUgraph into, uint32_t task, size_t first,
                                   const CUDA_KERNEL_NODE_PARAMS_v1 *shape, CUgraphNode *added) {
  CUgraphNode made;
  CUresult result = f->device->driver->cuGraphAddKernelNode(&made, into, gki_cuda_frontier_from(f, first),
                                                            f->count - first, shape);
  if (result != CUDA_SUCCESS) return gki_cuda_frontier_result(f, result, "cuGraphAddKernelNode", task);
  if (added) *added = made;
  return gki_cuda_frontier_advance(f, first, made);
}

gk_result gki_cuda_add_kernel(gki_cuda_frontier *f, CUgraph into, uint32_t task, size_t first, CUfunction function,
                              unsigned blocks, unsigned threads, void **parameters, CUgraphNode *added) {
  const CUDA_KERNEL_NODE_PARAMS_v1 shape = {
      .func = function, .gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1, .blockDimX = threads, .blockDimY = 1,
      .blockDimZ = 1, .kernelParams = parameters};
  return gki_cuda_add_kernel_node(f, into, task, first, &shape, added);
}

gk_result gki_cuda_add_empty(gki_cuda_frontier *f, CUgraph into, uint32_t task, size_t first) {
  CUgraphNode made;
  CUresult result = f->device->driver->cuGraphAddEmptyNode(&made, into, gki_cuda_frontier_from(f, first),
                                                           f->count - first);
  if (result != CUDA_SUCCESS) return gki_cuda_frontier_result(f, result, "cuGraphAddEmptyNode", task);
  return gki_cuda_frontier_advance(f, first, made);
}

gk_result gki_cuda_frontier_narrow(gki_cuda_frontier *f, CUgraph into, uint32_t task, size_t first) {
  return f->count - first > 1 ? gki_cuda_add_empty(f, into, task, first) : GK_OK;
}
