#include "recorded.h"
#include "error.h"
#include "memory.h"

CUresult gki_cuda_nodes_before(const gki_cuda_driver *driver, CUgraphNode node, CUgraphNode **nodes, size_t *count) {
  CUresult result = driver->cuGraphNodeGetDependencies(node, NULL, NULL, count);
  *nodes = NULL;
  if (result != CUDA_SUCCESS || !*count) return result;
  *nodes = gki_array(*count, sizeof **nodes, "nodes before a node");
  CUgraphEdgeData *edges = gki_array(*count, sizeof *edges, "nodes before a node");
  result = *nodes && edges ? driver->cuGraphNodeGetDependencies(node, *nodes, edges, count)
                           : CUDA_ERROR_OUT_OF_MEMORY;
  gk_release(edges);
  return result;
}

/* Calls record few nodes, so that looking through them is quick. */
static CUresult add_found(gki_cuda_found *found, CUgraphNode node) {
  for (size_t k = 0; k < found->count; ++k)
    if (found->nodes[k] == node) return CUDA_SUCCESS;
  if (!gki_grow((void **)&found->nodes, &found->capacity, found->count + 1, sizeof node, "what a call recorded"))
    return CUDA_ERROR_OUT_OF_MEMORY;
  found->nodes[found->count++] = node;
  return CUDA_SUCCESS;
}

static CUresult add_all(gki_cuda_found *found, const CUgraphNode *nodes, size_t count, gki_cuda_stops stops,
                        const void *data) {
  CUresult result = CUDA_SUCCESS;
  for (size_t k = 0; k < count && result == CUDA_SUCCESS; ++k)
    if (!stops(data, nodes[k])) result = add_found(found, nodes[k]);
  return result;
}

CUresult gki_cuda_find_recorded(const gki_cuda_driver *driver, const CUgraphNode *ends, size_t count,
                                gki_cuda_stops stops, const void *data, gki_cuda_found *found) {
  size_t next = found->count;
  CUresult result = add_all(found, ends, count, stops, data);
  while (result == CUDA_SUCCESS && next < found->count) {
    CUgraphNode *before;
    size_t before_count = 0;
    result = gki_cuda_nodes_before(driver, found->nodes[next++], &before, &before_count);
    if (result == CUDA_SUCCESS) result = add_all(found, before, before_count, stops, data);
    gk_release(before);
  }
  return result;
}

/* ---- what bodies can't hold -------------------------------------------------------------------------------------- */

/* NULL: they can. */
static const char *unfit(CUgraphNodeType type) {
  switch (type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
  case CU_GRAPH_NODE_TYPE_MEMCPY:
  case CU_GRAPH_NODE_TYPE_MEMSET:
  case CU_GRAPH_NODE_TYPE_GRAPH:
  case CU_GRAPH_NODE_TYPE_EMPTY:
  case CU_GRAPH_NODE_TYPE_CONDITIONAL: return NULL;
  case CU_GRAPH_NODE_TYPE_HOST: return "a host function";
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "a wait for an event";
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "an event";
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return "an allocation (give the library a workspace of its own)";
  case CU_GRAPH_NODE_TYPE_MEM_FREE: return "a release of memory (give the library a workspace of its own)";
  default: return "a node that is none of a kernel, copy, fill or child graph";
  }
}

static CUresult find_in_child(const gki_cuda_driver *driver, CUgraphNode node, const char **what) {
  CUgraph child;
  size_t count = 0;
  CUresult result = driver->cuGraphChildGraphNodeGetGraph(node, &child);
  if (result == CUDA_SUCCESS) result = driver->cuGraphGetNodes(child, NULL, &count);
  if (result != CUDA_SUCCESS || !count) return result;
  CUgraphNode *nodes = gki_array(count, sizeof *nodes, "a child graph's nodes");
  result = nodes ? driver->cuGraphGetNodes(child, nodes, &count) : CUDA_ERROR_OUT_OF_MEMORY;
  if (result == CUDA_SUCCESS) result = gki_cuda_find_unfit(driver, nodes, count, what);
  gk_release(nodes);
  return result;
}

CUresult gki_cuda_find_unfit(const gki_cuda_driver *driver, const CUgraphNode *nodes, size_t count,
                             const char **what) {
  CUresult result = CUDA_SUCCESS;
  *what = NULL;
  for (size_t k = 0; k < count && result == CUDA_SUCCESS && !*what; ++k) {
    CUgraphNodeType type;
    result = driver->cuGraphNodeGetType(nodes[k], &type);
    if (result != CUDA_SUCCESS) return result;
    *what = unfit(type);
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) result = find_in_child(driver, nodes[k], what);
  }
  return result;
}
