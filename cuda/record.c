#include "cuda/record.h"
#include "base/error.h"
#include "base/memory.h"

CUresult gki_cuda_nodes_before(const gki_cuda_driver *driver, CUgraphNode node, CUgraphNode **nodes, size_t *count) {
  CUresult result = driver->cuGraphNodeGetDependencies(node, NULL, NULL, count);
  *nodes = NULL;
  if (result != CUDA_SUCCESS || !*count) return result;
  *nodes = gki_array(*count, sizeof **nodes, "nodes before a node");
  CUgraphEdgeData *edges = gki_array(*count, sizeof *edges, "nodes before a node");
  result = *nodes && edges ? driver->cuGraphNodeGetDependencies(node, *nodes, edges, count)
                           : CUDA_ERROR_OUT_OF_MEMORY;
  gk_host_free(edges);
  return result;
}

/* A linear search is quick enough, since calls record few nodes. */
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

/* *nodes is to be freed by gk_host_free. */
static CUresult nodes_in(const gki_cuda_driver *driver, CUgraph graph, CUgraphNode **nodes, size_t *count) {
  CUresult result = driver->cuGraphGetNodes(graph, NULL, count);
  *nodes = NULL;
  if (result != CUDA_SUCCESS || !*count) return result;
  *nodes = gki_array(*count, sizeof **nodes, "a graph's nodes");
  return *nodes ? driver->cuGraphGetNodes(graph, *nodes, count) : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add_inside(const gki_cuda_driver *driver, CUgraphNode node, gki_cuda_stops stops, const void *data,
                           gki_cuda_found *found) {
  CUgraphNodeType type;
  CUgraph child;
  CUgraphNode *nodes = NULL;
  size_t count = 0;
  CUresult result = driver->cuGraphNodeGetType(node, &type);
  if (result != CUDA_SUCCESS || type != CU_GRAPH_NODE_TYPE_GRAPH) return result;
  result = driver->cuGraphChildGraphNodeGetGraph(node, &child);
  if (result == CUDA_SUCCESS) result = nodes_in(driver, child, &nodes, &count);
  if (result == CUDA_SUCCESS) result = add_all(found, nodes, count, stops, data);
  gk_host_free(nodes);
  return result;
}

CUresult gki_cuda_find_recorded(const gki_cuda_driver *driver, const CUgraphNode *ends, size_t count,
                                gki_cuda_stops stops, const void *data, gki_cuda_found *found) {
  size_t next = found->count;
  CUresult result = add_all(found, ends, count, stops, data);
  for (; result == CUDA_SUCCESS && next < found->count; ++next) {
    CUgraphNode *before;
    size_t before_count = 0;
    result = gki_cuda_nodes_before(driver, found->nodes[next], &before, &before_count);
    if (result == CUDA_SUCCESS) result = add_all(found, before, before_count, stops, data);
    if (result == CUDA_SUCCESS) result = add_inside(driver, found->nodes[next], stops, data, found);
    gk_host_free(before);
  }
  return result;
}

/* ---- what bodies and child graphs can't hold --------------------------------------------------------------------- */

/* NULL: they can. */
static const char *unfit(CUgraphNodeType type, bool in_body) {
  switch (type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
  case CU_GRAPH_NODE_TYPE_MEMCPY:
  case CU_GRAPH_NODE_TYPE_MEMSET:
  case CU_GRAPH_NODE_TYPE_GRAPH:
  case CU_GRAPH_NODE_TYPE_EMPTY: return NULL;
  case CU_GRAPH_NODE_TYPE_CONDITIONAL: return "a conditional node";
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return "an allocation (give the library a workspace of its own)";
  case CU_GRAPH_NODE_TYPE_MEM_FREE: return "a release of memory (give the library a workspace of its own)";
  default: break;
  }
  if (!in_body) return NULL;
  switch (type) {
  case CU_GRAPH_NODE_TYPE_HOST: return "a host function";
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "a wait for an event";
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "an event";
  default: return "a node that is none of a kernel, copy, fill or child graph";
  }
}

CUresult gki_cuda_find_unfit(const gki_cuda_driver *driver, CUgraph recorded, bool in_body, const char **what) {
  CUgraphNode *nodes;
  size_t count = 0;
  CUresult result = nodes_in(driver, recorded, &nodes, &count);
  *what = NULL;
  for (size_t k = 0; k < count && result == CUDA_SUCCESS && !*what; ++k) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUgraph child;
    result = driver->cuGraphNodeGetType(nodes[k], &type);
    if (result != CUDA_SUCCESS) break;
    *what = unfit(type, in_body);
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    result = driver->cuGraphChildGraphNodeGetGraph(nodes[k], &child);
    if (result == CUDA_SUCCESS) result = gki_cuda_find_unfit(driver, child, in_body, what);
  }
  gk_host_free(nodes);
  return result;
}
