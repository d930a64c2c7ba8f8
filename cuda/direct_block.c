/* Single loops and branches in callers' graphs: conditional nodes, and the kernels that decide for them. They work on
 * every device with conditional nodes, whatever its quirks: a kernel sets the handle of the node right behind it, or is
 * the last in a loop's body and sets the loop's handle. */
#include "base/error.h"
#include "base/lifetime.h"
#include "base/op.h"
#include "base/thread_cancel.h"
#include "cuda/backend.h"
#include "cuda/direct.h"
#include "cuda/memory.h"
#include "gk_cuda.h"
#include <stdio.h>
#include <stdlib.h>

_Static_assert(sizeof(uintptr_t) == 8, "a block's operation and its bound in one word");

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static gk_result add_kernel(const gki_cuda_device *device, const char *call, CUfunction function, void **parameters,
                            CUgraph into, const CUgraphNode *after, size_t count, CUgraphNode *added) {
  const CUDA_KERNEL_NODE_PARAMS_v1 node = {.func = function, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                           .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1,
                                           .kernelParams = parameters};
  return gki_cuda_into_result(device, device->driver->cuGraphAddKernelNode(added, into, after, count, &node), call,
                             "cuGraphAddKernelNode of the kernel that decides");
}

static gk_result make_handles(const gki_cuda_device *device, gk_op op, CUgraph into, gk_cuda_block *block) {
  CUresult result = CUDA_SUCCESS;
  for (int k = 0; k <= (op == GK_OP_ELSE) && result == CUDA_SUCCESS; ++k)
    result = device->driver->cuGraphConditionalHandleCreate(&block->handle[k], into, device->context,
                                                            op == GK_OP_DO_WHILE, GKI_CU_GRAPH_COND_ASSIGN_DEFAULT);
  return gki_cuda_into_result(device, result, "gk_cuda_begin", "cuGraphConditionalHandleCreate");
}

/* Loops need it, too: in the next pass of a loop around it, the loop's handle is still 0. */
static gk_result add_decision(const gki_cuda_device *device, gk_op op, const int32_t *flag, CUdeviceptr count_at,
                              CUgraph into, const CUgraphNode *after, size_t count, gk_cuda_block *block) {
  uint32_t has_other = op == GK_OP_ELSE;
  if (op == GK_OP_DO_WHILE) flag = NULL;
  void *parameters[] = {&flag, &count_at, &block->handle[0], &block->handle[1], &has_other};
  return add_kernel(device, "gk_cuda_begin", device->builtin.enter, parameters, into, after, count, &block->first);
}

static gk_result add_conditional(const gki_cuda_device *device, gk_op op, int which, CUgraph into,
                                 const CUgraphNode *after, size_t count, gk_cuda_block *block) {
  CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  node.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){
      .handle = block->handle[which], .size = 1, .ctx = device->context,
      .type = gki_op_is_loop(op) ? CU_GRAPH_COND_TYPE_WHILE : CU_GRAPH_COND_TYPE_IF};
  const gk_result result = gki_cuda_into_result(
      device, device->driver->cuGraphAddNode(&block->node, into, after, NULL, count, &node),
      "gk_cuda_begin", "cuGraphAddNode of a conditional node");
  if (result != GK_OK) return result;
  if (!block->first) block->first = block->node;
  block->body[which] = node.conditional.phGraph_out[0];
  return GK_OK;
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

static gk_result refuse_block(gk_op op, const int32_t *flag, uint32_t max_iterations) {
  if (op == GK_OP_REPEAT || (!gki_op_is_loop(op) && op != GK_OP_IF && op != GK_OP_ELSE))
    return gk_fail(GK_ERROR_INVALID, "gk_cuda_begin: operation %d is no single loop or branch; there are "
                   "GK_OP_DO_WHILE, GK_OP_WHILE, GK_OP_IF and, for an IF with both bodies, GK_OP_ELSE", (int)op);
  if ((uintptr_t)flag % sizeof *flag)
    return gk_fail(GK_ERROR_INVALID, "gk_cuda_begin: the flag's address isn't a multiple of 4; give one that is");
  if (max_iterations && !gki_op_is_loop(op))
    return gk_fail(GK_ERROR_INVALID, "gk_cuda_begin: a branch has no bound; give 0 for max_iterations");
  if (max_iterations && !flag)
    return gk_fail(GK_ERROR_INVALID, "gk_cuda_begin: a loop without a flag has no bound, as kernels of yours end it; "
                   "give a flag, or 0 for max_iterations");
  return GK_OK;
}

/* An IF with both bodies is two IF nodes on every driver, so that handles mean the same everywhere, and since drivers
 * before 13.0 run child graphs in nodes with two bodies wrongly. One kernel, in front of the first, decides both. */
static gk_result begin(gki_cuda_device *device, gk_op op, const int32_t *flag, uint32_t bound, CUgraph into,
                       const CUgraphNode *after, size_t count, gk_cuda_block *block) {
  CUdeviceptr count_at = 0;
  gk_result result = bound ? gki_cuda_alloc_pass_count(device, &count_at) : GK_OK;
  if (result == GK_OK) result = make_handles(device, op, into, block);
  if (result == GK_OK && (flag || op == GK_OP_DO_WHILE)) {
    result = add_decision(device, op, flag, count_at, into, after, count, block);
    after = &block->first;
    count = 1;
  }
  if (result == GK_OK) result = add_conditional(device, op, 0, into, after, count, block);
  if (result == GK_OK && op == GK_OP_ELSE) {
    const CUgraphNode before = block->node;
    result = add_conditional(device, op, 1, into, &before, 1, block);
  }
  block->reserved[0] = (uintptr_t)op | (uintptr_t)bound << 32;
  block->reserved[1] = (uintptr_t)flag;
  block->reserved[2] = (uintptr_t)count_at;
  return result;
}

gk_result gk_cuda_begin(gk_device *device, gk_op op, const int32_t *flag, uint32_t max_iterations, CUgraph into,
                        const CUgraphNode *after, size_t count, gk_cuda_block *block) {
  gki_begin();
  if (!block) return gk_fail(GK_ERROR_INVALID, "gk_cuda_begin: nowhere to put the block (NULL)");
  *block = (gk_cuda_block){0};
  gki_cuda_device *native = gki_cuda_device_of(device, "gk_cuda_begin");
  if (!native) return GK_ERROR_INVALID;
  gk_result result = refuse_block(op, flag, max_iterations);
  if (result == GK_OK) result = gki_cuda_refuse_into("gk_cuda_begin", into, after, count);
  if (result == GK_OK) result = gki_cuda_refuse_conditional(native, "gk_cuda_begin");
  if (result != GK_OK) return result;
  const int cancel_state = gki_thread_cancel_disable();
  result = gki_cuda_enter(native);
  if (result == GK_OK) {
    result = begin(native, op, flag, max_iterations, into, after, count, block);
    gki_cuda_leave(native);
  }
  result = gki_cuda_detect_loss(native, result);
  gki_thread_cancel_restore(cancel_state);
  if (result == GK_OK) block->reserved[3] = (uintptr_t)native;
  else *block = (gk_cuda_block){0};
  return result;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static int compare_nodes(const void *a, const void *b) {
  const uintptr_t left = (uintptr_t)*(const CUgraphNode *)a, right = (uintptr_t)*(const CUgraphNode *)b;
  return (left > right) - (left < right);
}

/* A body's nodes and edges, `from` sorted. */
typedef struct contents { CUgraphNode *nodes, *from, *to; CUgraphEdgeData *data; size_t count, edges; } contents;

static gk_result count_contents(const gki_cuda_device *device, CUgraph body, contents *c) {
  CUresult result = device->driver->cuGraphGetNodes(body, NULL, &c->count);
  if (result != CUDA_SUCCESS) return gki_cuda_into_result(device, result, "gk_cuda_end", "cuGraphGetNodes of a body");
  result = device->driver->cuGraphGetEdges(body, NULL, NULL, NULL, &c->edges);
  return gki_cuda_into_result(device, result, "gk_cuda_end", "cuGraphGetEdges of a body");
}

/* Reads the edges' data, too: without it the driver refuses to list edges that aren't plain dependencies. */
static gk_result read_contents(const gki_cuda_device *device, CUgraph body, contents *c) {
  c->nodes = gki_array(c->count + 1, sizeof *c->nodes, "a body's nodes");
  c->from = c->nodes ? gki_array(c->edges + 1, sizeof *c->from, "a body's edges") : NULL;
  c->to = c->from ? gki_array(c->edges + 1, sizeof *c->to, "a body's edges") : NULL;
  c->data = c->to ? gki_array(c->edges + 1, sizeof *c->data, "a body's edges") : NULL;
  if (!c->data) return GK_ERROR_MEMORY;
  CUresult result = device->driver->cuGraphGetNodes(body, c->nodes, &c->count);
  if (result != CUDA_SUCCESS) return gki_cuda_into_result(device, result, "gk_cuda_end", "cuGraphGetNodes of a body");
  if (c->edges) result = device->driver->cuGraphGetEdges(body, c->from, c->to, c->data, &c->edges);
  if (result == CUDA_SUCCESS) qsort(c->from, c->edges, sizeof *c->from, compare_nodes);
  return gki_cuda_into_result(device, result, "gk_cuda_end", "cuGraphGetEdges of a body");
}

static void keep_leaves(contents *c) {
  size_t leaves = 0;
  for (size_t k = 0; k < c->count; ++k)
    if (!bsearch(&c->nodes[k], c->from, c->edges, sizeof *c->from, compare_nodes)) c->nodes[leaves++] = c->nodes[k];
  c->count = leaves;
}

static gk_result add_repeat(const gki_cuda_device *device, gk_cuda_block *block, const contents *c) {
  uint32_t bound = (uint32_t)(block->reserved[0] >> 32);
  void *parameters[] = {&block->reserved[1], &block->reserved[2], &block->handle[0], &bound};
  CUgraphNode added;
  return add_kernel(device, "gk_cuda_end", device->builtin.repeat, parameters, block->body[0], c->nodes, c->count,
                    &added);
}

static gk_result end_loop(const gki_cuda_device *device, gk_cuda_block *block) {
  contents c = {0};
  gk_result result = count_contents(device, block->body[0], &c);
  if (result == GK_OK && !block->reserved[1])
    return c.count ? GK_OK : gk_fail(GK_ERROR_INVALID, "gk_cuda_end: the loop has no flag, and its body no node that "
                                     "could end it; add a kernel that sets handle[0] to 0");
  if (result == GK_OK) result = read_contents(device, block->body[0], &c);
  if (result == GK_OK) {
    keep_leaves(&c);
    result = add_repeat(device, block, &c);
  }
  gk_host_free(c.nodes);
  gk_host_free(c.from);
  gk_host_free(c.to);
  gk_host_free(c.data);
  return result;
}

static gk_result fill_empty(const gki_cuda_device *device, CUgraph body) {
  size_t count = 0;
  CUgraphNode added;
  CUresult result = device->driver->cuGraphGetNodes(body, NULL, &count);
  if (result != CUDA_SUCCESS) return gki_cuda_into_result(device, result, "gk_cuda_end", "cuGraphGetNodes of a body");
  if (!count) result = device->driver->cuGraphAddEmptyNode(&added, body, NULL, 0);
  return gki_cuda_into_result(device, result, "gk_cuda_end", "cuGraphAddEmptyNode for a body");
}

static gk_result end(const gki_cuda_device *device, gk_cuda_block *block) {
  const gk_op op = (gk_op)(block->reserved[0] & UINT32_MAX);
  if (gki_op_is_loop(op)) return end_loop(device, block);
  gk_result result = fill_empty(device, block->body[0]);
  return result == GK_OK && op == GK_OP_ELSE ? fill_empty(device, block->body[1]) : result;
}

gk_result gk_cuda_end(gk_device *device, gk_cuda_block *block) {
  gki_begin();
  gki_cuda_device *native = gki_cuda_device_of(device, "gk_cuda_end");
  if (!native) return GK_ERROR_INVALID;
  if (!block) return gk_fail(GK_ERROR_INVALID, "gk_cuda_end: there is no block (NULL)");
  if (!block->reserved[3])
    return gk_fail(GK_ERROR_INVALID, "gk_cuda_end: the block wasn't begun, or was completed before");
  if (block->reserved[3] != (uintptr_t)native)
    return gk_fail(GK_ERROR_INVALID, "gk_cuda_end: the block was begun with another device; give that one");
  const int cancel_state = gki_thread_cancel_disable();
  gk_result result = gki_cuda_enter(native);
  if (result == GK_OK) {
    result = end(native, block);
    gki_cuda_leave(native);
  }
  result = gki_cuda_detect_loss(native, result);
  gki_thread_cancel_restore(cancel_state);
  if (result == GK_OK) block->reserved[3] = 0;
  return result;
}
