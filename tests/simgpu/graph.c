/* Graphs as they are built. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

const char *sim_node_name(CUgraphNodeType type) {
  static const char *const names[] = {"kernel", "copy", "fill", "host", "child", "empty", "event", "event",
                                      "semaphore", "semaphore", "allocation", "free", "memory operation",
                                      "conditional"};
  return (unsigned)type < sizeof names / sizeof *names ? names[type] : "unknown";
}

static CUresult use_freed(const char *what) {
  return sim_breaks(CUDA_ERROR_INVALID_VALUE, "invalid-capture",
                    "%s: a capture into the graph went wrong, and the driver freed it with that: crashes", what);
}

CUresult sim_graph_find(CUgraph handle, sim_graph **out) {
  sim_graph *graph = SIM_OF(sim_graph, handle, SIM_GRAPH);
  if (!graph) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "no graph");
  if (graph->root->poisoned) return use_freed("a graph");
  *out = graph;
  return CUDA_SUCCESS;
}

sim_graph *sim_graph_make(sim_node *owner) {
  sim_graph *graph = sim_object_make(sizeof *graph, SIM_GRAPH, NULL, owner != NULL);
  graph->owner = owner;
  graph->root = owner ? owner->graph->root : graph;
  return graph;
}

static void node_drop(sim_node *node) {
  if (node->child) sim_graph_drop(node->child);
  for (unsigned k = 0; node->bodies && k < node->size; ++k)
    if (node->bodies[k]) sim_graph_drop(node->bodies[k]);
  sim_object_end(&node->base);
  free(node->bodies);
  free(node->body_handles);
  free(node->after);
  free(node->call);
  free(node->parameters);
  free(node);
}

void sim_graph_drop(sim_graph *graph) {
  for (size_t k = 0; k < graph->count; ++k) node_drop(graph->nodes[k]);
  for (size_t k = 0; k < graph->condition_count; ++k) {
    sim_object_end(&graph->conditions[k]->base);
    free(graph->conditions[k]);
  }
  sim_object_end(&graph->base);
  free(graph->nodes);
  free(graph->conditions);
  free(graph);
}

bool sim_graph_conditional(const sim_graph *graph) {
  for (size_t k = 0; k < graph->count; ++k)
    if (graph->nodes[k]->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ||
        (graph->nodes[k]->child && sim_graph_conditional(graph->nodes[k]->child))) return true;
  return graph->condition_count != 0;
}

static bool is_in_body(const sim_graph *graph) {
  for (; graph; graph = graph->owner ? graph->owner->graph : NULL)
    if (graph->is_body) return true;
  return false;
}

static CUresult check_type(const sim_graph *graph, CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: case CU_GRAPH_NODE_TYPE_MEMCPY: case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_EMPTY: case CU_GRAPH_NODE_TYPE_GRAPH: case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return CUDA_SUCCESS;
    default: break;
  }
  if (is_in_body(graph) && !sim_says_no("types"))
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "%s nodes can't be in the body of a conditional node",
                      sim_node_name(type));
  if (type == CU_GRAPH_NODE_TYPE_HOST) return CUDA_SUCCESS;
  return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "%s nodes aren't simulated", sim_node_name(type));
}

static CUresult check_after(const sim_graph *graph, const CUgraphNode *after, size_t count, sim_node **found) {
  if (count && !after) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "dependencies: NULL");
  for (size_t k = 0; k < count; ++k) {
    found[k] = SIM_OF(sim_node, after[k], SIM_NODE);
    if (!found[k]) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "dependency %zu is no node", k);
    if (found[k]->graph != graph)
      return sim_refuse(CUDA_ERROR_INVALID_VALUE, "dependency %zu is a node of another graph", k);
    for (size_t other = 0; other < k; ++other)
      if (found[other] == found[k]) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "dependency %zu is given twice", k);
  }
  return CUDA_SUCCESS;
}

CUresult sim_node_add(sim_graph *graph, CUgraphNodeType type, const CUgraphNode *after, size_t count, sim_node **out) {
  SIM_TRY(check_type(graph, type));
  sim_node **found = sim_obtain(count * sizeof(sim_node *));
  const CUresult result = check_after(graph, after, count, found);
  if (result != CUDA_SUCCESS) {
    free(found);
    return result;
  }
  sim_node *node = sim_object_make(sizeof *node, SIM_NODE, NULL, true);
  node->graph = graph;
  node->type = type;
  node->after = found;
  node->after_count = count;
  node->index = graph->count;
  graph->nodes = sim_grow(graph->nodes, graph->count, sizeof *graph->nodes);
  graph->nodes[graph->count++] = node;
  *out = node;
  return CUDA_SUCCESS;
}

static void node_copy(sim_graph *to, const sim_node *from) {
  sim_node *node;
  if (sim_node_add(to, from->type, NULL, 0, &node) != CUDA_SUCCESS) abort(); /* checked by the caller */
  free(node->after);
  node->after = sim_obtain(from->after_count * sizeof(sim_node *));
  for (size_t k = 0; k < from->after_count; ++k) node->after[k] = to->nodes[from->after[k]->index];
  node->after_count = from->after_count;
  node->copy = from->copy;
  node->host = from->host;
  node->call = sim_call_copy(from->call);
  if (from->child) {
    node->child = sim_graph_make(node);
    sim_graph_copy(node->child, from->child);
  }
}

bool sim_graph_copy(sim_graph *to, const sim_graph *from) {
  if (sim_graph_conditional(from)) return false;
  for (size_t k = 0; k < from->count; ++k) node_copy(to, from->nodes[k]);
  return true;
}

/* ---- entries ---- */

CUresult sim_cuGraphCreate(CUgraph *graph, unsigned int flags) {
  SIM_ENTER(cuGraphCreate);
  if (!graph || flags != 0) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuGraphCreate: flags must be 0");
  *graph = SIM_HANDLE(CUgraph, sim_graph_make(NULL));
  return CUDA_SUCCESS;
}

static CUresult graph_destroy(CUgraph handle) {
  sim_graph *graph = SIM_OF(sim_graph, handle, SIM_GRAPH);
  if (!graph) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuGraphDestroy: no graph");
  if (graph->root->poisoned) return use_freed("cuGraphDestroy");
  if (graph->owner)
    return sim_breaks(CUDA_ERROR_INVALID_VALUE, "body", "the graph of a %s node was destroyed: it is the driver's",
                      sim_node_name(graph->owner->type));
  if (graph->captures)
    return sim_breaks(CUDA_ERROR_INVALID_VALUE, "capture", "a graph was destroyed while a stream is captured into it");
  sim_graph_drop(graph);
  return CUDA_SUCCESS;
}

SIM_DEFINE_BACK(cuGraphDestroy, (CUgraph graph), graph_destroy(graph))

static CUresult add_kernel(sim_graph *graph, const CUgraphNode *after, size_t count,
                           const CUDA_KERNEL_NODE_PARAMS_v3 *asked, sim_node **node) {
  sim_call *call;
  SIM_TRY(sim_call_make(asked, SIM_NODE_BYTES, &call));
  CUresult result = sim_node_add(graph, CU_GRAPH_NODE_TYPE_KERNEL, after, count, node);
  if (result == CUDA_SUCCESS) (*node)->call = call;
  else free(call);
  return result;
}

static CUresult check_types(const sim_graph *graph, const sim_graph *child) {
  for (size_t k = 0; k < child->count; ++k) {
    SIM_TRY(check_type(graph, child->nodes[k]->type));
    if (child->nodes[k]->child) SIM_TRY(check_types(graph, child->nodes[k]->child));
  }
  return CUDA_SUCCESS;
}

static CUresult add_child(sim_graph *graph, const CUgraphNode *after, size_t count, CUgraph handle, sim_node **node) {
  SIM_FIND_GRAPH(child, handle);
  if (sim_graph_conditional(child))
    return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "a graph with conditional nodes can't be the graph of a child node");
  if (child->root == graph->root) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "a graph can't be its own child");
  SIM_TRY(check_types(graph, child));
  SIM_TRY(sim_node_add(graph, CU_GRAPH_NODE_TYPE_GRAPH, after, count, node));
  (*node)->child = sim_graph_make(*node);
  sim_graph_copy((*node)->child, child);
  return CUDA_SUCCESS;
}

/* Rows of bytes are enough here. */
CUresult sim_fill_of(const sim_context *context, const CUgraphNodeParams *all, sim_copy *fill) {
  CUDA_MEMSET_NODE_PARAMS_v2 asked;
  memcpy(&asked, all->reserved1, sizeof asked);
  if (asked.ctx) context = SIM_OF(sim_context, asked.ctx, SIM_CONTEXT);
  if (!context) return sim_refuse(CUDA_ERROR_INVALID_CONTEXT, "a fill node: no such context");
  if (asked.elementSize != 1 || asked.height != 1 || asked.value > UINT8_MAX)
    return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "fills but of one row of bytes aren't simulated");
  if (!sim_block_of(context, (uintptr_t)asked.dst, asked.width))
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "a fill of what isn't within one block of its context's memory");
  *fill = (sim_copy){(unsigned char *)(uintptr_t)asked.dst, NULL, asked.width, (unsigned char)asked.value};
  return CUDA_SUCCESS;
}

static CUresult add_fill(sim_graph *graph, const CUgraphNode *after, size_t count, const CUgraphNodeParams *asked,
                         sim_node **node) {
  sim_copy fill;
  SIM_FIND_CONTEXT(context);
  SIM_TRY(sim_fill_of(context, asked, &fill));
  SIM_TRY(sim_node_add(graph, asked->type, after, count, node));
  (*node)->copy = fill;
  return CUDA_SUCCESS;
}

/* Programmatic edges stand between two kernels, on sm_90 and newer. */
static CUresult check_edges(const CUgraphNode *after, const CUgraphEdgeData *edges, size_t count,
                            CUgraphNodeType type) {
  static const CUgraphEdgeData full;
  for (size_t k = 0; edges && after && k < count; ++k) {
    if (memcmp(&edges[k], &full, sizeof full) == 0) continue;
    const sim_node *from = SIM_OF(sim_node, after[k], SIM_NODE);
    bool programmatic = edges[k].type == 1 && edges[k].from_port <= 2 && edges[k].to_port == 0;
    if (!programmatic) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "edge %zu: unknown data", k);
    if (sim_arch < 90 || !from || from->type != CU_GRAPH_NODE_TYPE_KERNEL || type != CU_GRAPH_NODE_TYPE_KERNEL)
      return sim_refuse(CUDA_ERROR_INVALID_VALUE,
                        "edge %zu: programmatic edges stand between two kernels, on sm_90 and newer", k);
  }
  return CUDA_SUCCESS;
}

/* The part of the union that the type doesn't use must be zero. */
CUresult sim_check_reserved(const CUgraphNodeParams *asked) {
  size_t used = asked->type == CU_GRAPH_NODE_TYPE_KERNEL ? sizeof asked->kernel
                : asked->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ? sizeof asked->conditional
                : asked->type == CU_GRAPH_NODE_TYPE_MEMSET ? sizeof(CUDA_MEMSET_NODE_PARAMS_v2)
                : asked->type == CU_GRAPH_NODE_TYPE_HOST ? sizeof(CUDA_HOST_NODE_PARAMS)
                : asked->type == CU_GRAPH_NODE_TYPE_GRAPH ? sizeof asked->graph : sizeof asked->reserved1;
  unsigned char all[sizeof asked->reserved1];
  memcpy(all, asked->reserved1, sizeof all);
  bool zero = asked->reserved2 == 0;
  for (size_t k = used; k < sizeof all; ++k) zero = zero && all[k] == 0;
  for (int k = 0; k < 3; ++k) zero = zero && asked->reserved0[k] == 0;
  return zero ? CUDA_SUCCESS : sim_refuse(CUDA_ERROR_INVALID_VALUE, "node parameters: what is reserved must be 0");
}

static CUresult add_node(CUgraphNode *node, CUgraph handle, const CUgraphNode *after, const CUgraphEdgeData *edges,
                         size_t count, CUgraphNodeParams *asked) {
  sim_node *made = NULL;
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  SIM_FIND_GRAPH(graph, handle);
  SIM_TRY(sim_check_reserved(asked));
  SIM_TRY(check_edges(after, edges, count, asked->type));
  switch (asked->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: SIM_TRY(add_kernel(graph, after, count, &asked->kernel, &made)); break;
    case CU_GRAPH_NODE_TYPE_GRAPH: SIM_TRY(add_child(graph, after, count, asked->graph.graph, &made)); break;
    case CU_GRAPH_NODE_TYPE_EMPTY: SIM_TRY(sim_node_add(graph, asked->type, after, count, &made)); break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      SIM_TRY(sim_condition_add(graph, after, count, &asked->conditional, &made));
      break;
    case CU_GRAPH_NODE_TYPE_MEMSET: SIM_TRY(add_fill(graph, after, count, asked, &made)); break;
    case CU_GRAPH_NODE_TYPE_HOST: {
      CUDA_HOST_NODE_PARAMS host;
      memcpy(&host, asked->reserved1, sizeof host);
      if (!host.fn) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "a host node: no function");
      SIM_TRY(sim_node_add(graph, asked->type, after, count, &made));
      made->host = host;
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "copy nodes are simulated in captures only");
    default: return check_type(graph, asked->type);
  }
  *node = SIM_HANDLE(CUgraphNode, made);
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphAddNode(CUgraphNode *node, CUgraph handle, const CUgraphNode *after, const CUgraphEdgeData *edges,
                            size_t count, CUgraphNodeParams *asked) {
  SIM_ENTER(cuGraphAddNode);
  if (!asked) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuGraphAddNode: a bad argument");
  return add_node(node, handle, after, edges, count, asked);
}

/* The newer versions of these parameters begin like the older ones. */
CUgraphNodeParams sim_kernel_node(const void *asked, size_t bytes) {
  CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  memcpy(&all.kernel, asked, bytes);
  return all;
}

CUresult sim_cuGraphAddKernelNode(CUgraphNode *node, CUgraph handle, const CUgraphNode *after, size_t count,
                                  const CUDA_KERNEL_NODE_PARAMS_v1 *asked) {
  SIM_ENTER(cuGraphAddKernelNode);
  if (!asked) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuGraphAddKernelNode: a bad argument");
  CUgraphNodeParams all = sim_kernel_node(asked, sizeof *asked);
  return add_node(node, handle, after, NULL, count, &all);
}

CUresult sim_cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph handle, const CUgraphNode *after, size_t count,
                                     const CUDA_KERNEL_NODE_PARAMS_v2 *asked) {
  SIM_ENTER(cuGraphAddKernelNode_v2);
  if (!asked) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuGraphAddKernelNode: a bad argument");
  if (asked->kern) return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "kernels of libraries (CUkernel) aren't simulated");
  CUgraphNodeParams all = sim_kernel_node(asked, sizeof *asked);
  return add_node(node, handle, after, NULL, count, &all);
}

CUresult sim_cuGraphAddMemsetNode(CUgraphNode *node, CUgraph handle, const CUgraphNode *after, size_t count,
                                  const CUDA_MEMSET_NODE_PARAMS_v1 *asked, CUcontext context) {
  SIM_ENTER(cuGraphAddMemsetNode);
  if (!asked) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuGraphAddMemsetNode: a bad argument");
  CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
  CUDA_MEMSET_NODE_PARAMS_v2 fill = {.ctx = context};
  memcpy(&fill, asked, sizeof *asked); /* begins like it */
  memcpy(all.reserved1, &fill, sizeof fill);
  return add_node(node, handle, after, NULL, count, &all);
}

SIM_DEFINE(cuGraphAddEmptyNode, (CUgraphNode *node, CUgraph handle, const CUgraphNode *after, size_t count),
           add_node(node, handle, after, NULL, count, &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY}))

CUresult sim_cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph handle, const CUgraphNode *after, size_t count,
                                      CUgraph child) {
  SIM_ENTER(cuGraphAddChildGraphNode);
  CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
  all.graph.graph = child;
  return add_node(node, handle, after, NULL, count, &all);
}

CUresult sim_cuGraphAddHostNode(CUgraphNode *node, CUgraph handle, const CUgraphNode *after, size_t count,
                                const CUDA_HOST_NODE_PARAMS *asked) {
  SIM_ENTER(cuGraphAddHostNode);
  if (!asked) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuGraphAddHostNode: a bad argument");
  CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_HOST};
  memcpy(all.reserved1, asked, sizeof *asked);
  return add_node(node, handle, after, NULL, count, &all);
}

bool sim_node_is_behind(const sim_node *node, const sim_node *other) {
  if (node == other) return true;
  for (size_t k = 0; k < node->after_count; ++k)
    if (sim_node_is_behind(node->after[k], other)) return true;
  return false;
}

CUresult sim_cuGraphAddDependencies(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                                    const CUgraphEdgeData *edges, size_t count) {
  SIM_ENTER(cuGraphAddDependencies);
  SIM_FIND_GRAPH(graph, handle);
  for (size_t k = 0; k < count; ++k) {
    sim_node *ends[2] = {SIM_OF(sim_node, from[k], SIM_NODE), SIM_OF(sim_node, to[k], SIM_NODE)};
    if (!ends[0] || !ends[1] || ends[0]->graph != graph || ends[1]->graph != graph)
      return sim_refuse(CUDA_ERROR_INVALID_VALUE, "dependency %zu: its nodes must be in the graph", k);
    if (sim_node_is_behind(ends[0], ends[1])) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "dependency %zu: a cycle", k);
    SIM_TRY(check_edges(&from[k], edges ? &edges[k] : NULL, 1, ends[1]->type));
    sim_node **after = realloc(ends[1]->after, (ends[1]->after_count + 1) * sizeof *after);
    if (!after) abort();
    after[ends[1]->after_count++] = ends[0];
    ends[1]->after = after;
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *count) {
  SIM_ENTER(cuGraphGetNodes);
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  SIM_FIND_GRAPH(graph, handle);
  for (size_t k = 0; nodes && k < *count; ++k)
    nodes[k] = k < graph->count ? SIM_HANDLE(CUgraphNode, graph->nodes[k]) : NULL;
  if (!nodes || *count > graph->count) *count = graph->count;
  return CUDA_SUCCESS;
}

/* Without their data it refuses edges that aren't full ones; none such is kept here. The manual names no order: by odd
 * seeds the last one comes first. */
CUresult sim_cuGraphGetEdges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges,
                             size_t *count) {
  SIM_ENTER(cuGraphGetEdges);
  if (!count || !from != !to || (edges && !from)) return CUDA_ERROR_INVALID_VALUE;
  SIM_FIND_GRAPH(graph, handle);
  size_t all = 0, next = 0;
  for (size_t k = 0; k < graph->count; ++k) all += graph->nodes[k]->after_count;
  for (size_t k = 0; k < graph->count; ++k)
    for (size_t before = 0; before < graph->nodes[k]->after_count; ++before, ++next) {
      const size_t at = sim_seed % 2 ? all - 1 - next : next;
      if (!from || at >= *count) continue;
      from[at] = SIM_HANDLE(CUgraphNode, graph->nodes[k]->after[before]);
      to[at] = SIM_HANDLE(CUgraphNode, graph->nodes[k]);
      if (edges) edges[at] = (CUgraphEdgeData){0};
    }
  for (size_t k = all; from && k < *count; ++k) from[k] = to[k] = NULL;
  if (!from || *count > all) *count = all;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode *after, CUgraphEdgeData *edges, size_t *count) {
  SIM_ENTER(cuGraphNodeGetDependencies);
  const sim_node *node = SIM_OF(sim_node, handle, SIM_NODE);
  if (!node || !count) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuGraphNodeGetDependencies: a bad argument");
  for (size_t k = 0; after && k < *count; ++k)
    after[k] = k < node->after_count ? SIM_HANDLE(CUgraphNode, node->after[k]) : NULL;
  if (after && edges) memset(edges, 0, *count * sizeof *edges);
  if (!after || *count > node->after_count) *count = node->after_count;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type) {
  SIM_ENTER(cuGraphNodeGetType);
  const sim_node *node = SIM_OF(sim_node, handle, SIM_NODE);
  if (!node || !type) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuGraphNodeGetType: a bad argument");
  *type = node->type;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *child) {
  SIM_ENTER(cuGraphChildGraphNodeGetGraph);
  const sim_node *node = SIM_OF(sim_node, handle, SIM_NODE);
  if (!node || !node->child || !child) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "no child graph node");
  *child = SIM_HANDLE(CUgraph, node->child);
  return CUDA_SUCCESS;
}

/* What the parameters point to lives as long as the node. */
CUresult sim_cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1 *asked) {
  SIM_ENTER(cuGraphKernelNodeGetParams);
  sim_node *node = SIM_OF(sim_node, handle, SIM_NODE);
  if (!node || !node->call || !asked) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "no kernel node");
  sim_call *call = node->call;
  const size_t count = sim_kernel_parameter_count(call->kernel);
  if (!node->parameters) node->parameters = sim_obtain(count * sizeof *node->parameters);
  for (size_t k = 0; k < count; ++k) {
    size_t offset, bytes;
    sim_kernel_parameter(call->kernel, k, &offset, &bytes);
    node->parameters[k] = call->parameters + offset;
  }
  *asked = (CUDA_KERNEL_NODE_PARAMS_v1){
    .func = (CUfunction)(uintptr_t)call->function, .gridDimX = call->grid[0], .gridDimY = call->grid[1],
    .gridDimZ = call->grid[2], .blockDimX = call->block[0], .blockDimY = call->block[1], .blockDimZ = call->block[2],
    .kernelParams = node->parameters};
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphClone(CUgraph *clone, CUgraph handle) {
  SIM_ENTER(cuGraphClone);
  SIM_FIND_GRAPH(graph, handle);
  if (!clone) return CUDA_ERROR_INVALID_VALUE;
  if (sim_graph_conditional(graph))
    return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "a graph with conditional nodes can't be cloned");
  sim_graph *made = sim_graph_make(NULL);
  sim_graph_copy(made, graph);
  *clone = SIM_HANDLE(CUgraph, made);
  return CUDA_SUCCESS;
}
