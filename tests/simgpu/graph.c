/* Graphs as they are built. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
  "kernel", "copy", "fill", "host", "child", "empty", "event", "event", "semaphore", "semaphore", "allocation", "free",
  "memory operation", "conditional"};
const char *sim_node_name(CUgraphNodeType type) {
  return (unsigned)type < sizeof names / sizeof *names ? names[type] : "unknown";
}

CUresult sim_graph_find(CUgraph handle, sim_graph **graph) {
  *graph = SIM_OF(sim_graph, handle, SIM_GRAPH);
  if (!*graph) return sim_invalid("no graph");
  if (!(*graph)->root->poisoned) return CUDA_SUCCESS;
  return sim_breaks(CUDA_ERROR_INVALID_VALUE, "invalid-capture",
                    "a capture into the graph went wrong, and the driver freed it with that: crashes");
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
  free(node->work.call);
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
  for (size_t k = 0; k < graph->count; ++k) {
    const sim_node *node = graph->nodes[k];
    if (node->condition || (node->child && sim_graph_conditional(node->child))) return true;
  }
  return graph->condition_count != 0;
}

static bool is_in_body(const sim_graph *graph) {
  for (; graph; graph = graph->owner ? graph->owner->graph : NULL)
    if (graph->is_body) return true;
  return false;
}

static CUresult check_type(const sim_graph *graph, CUgraphNodeType type) {
  const bool anywhere = type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                        type == CU_GRAPH_NODE_TYPE_MEMSET || type == CU_GRAPH_NODE_TYPE_EMPTY ||
                        type == CU_GRAPH_NODE_TYPE_GRAPH || type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
  if (anywhere) return CUDA_SUCCESS;
  if (is_in_body(graph) && !sim_says_no("types"))
    return sim_invalid("%s nodes can't be in the body of a conditional node", sim_node_name(type));
  if (type == CU_GRAPH_NODE_TYPE_HOST || type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) return CUDA_SUCCESS;
  return sim_unsupported("%s nodes aren't simulated", sim_node_name(type));
}

sim_node *sim_node_in(const sim_graph *graph, CUgraphNode handle) {
  sim_node *node = SIM_OF(sim_node, handle, SIM_NODE);
  return node && node->graph == graph ? node : NULL;
}

bool sim_node_is_behind(const sim_node *node, const sim_node *other) {
  if (node == other) return true;
  for (size_t k = 0; k < node->after_count; ++k)
    if (sim_node_is_behind(node->after[k], other)) return true;
  return false;
}

static CUresult check_after(const sim_graph *graph, const CUgraphNode *after, size_t count) {
  if (count && !after) return sim_invalid("dependencies: NULL");
  for (size_t k = 0; k < count; ++k) {
    if (!sim_node_in(graph, after[k])) return sim_invalid("dependency %zu is a node of another graph, or none", k);
    for (size_t other = 0; other < k; ++other)
      if (after[other] == after[k]) return sim_invalid("dependency %zu is given twice", k);
  }
  return CUDA_SUCCESS;
}

static sim_node *node_make(sim_graph *graph, sim_work work, size_t after_count) {
  sim_node *node = sim_object_make(sizeof *node, SIM_NODE, NULL, true);
  node->graph = graph;
  node->work = work;
  node->after = sim_obtain(after_count * sizeof(sim_node *));
  node->after_count = after_count;
  node->index = graph->count;
  graph->nodes = sim_grow(graph->nodes, graph->count, sizeof *graph->nodes);
  return graph->nodes[graph->count++] = node;
}

CUresult sim_node_add(sim_graph *graph, sim_work work, const CUgraphNode *after, size_t count, sim_node **node) {
  CUresult result = check_type(graph, work.type);
  if (result == CUDA_SUCCESS) result = check_after(graph, after, count);
  if (result != CUDA_SUCCESS) {
    free(work.call);
    return result;
  }
  *node = node_make(graph, work, count);
  for (size_t k = 0; k < count; ++k) (*node)->after[k] = sim_node_in(graph, after[k]);
  return CUDA_SUCCESS;
}

sim_work sim_work_copied(sim_work work) {
  if (work.call) work.call = sim_duplicate(work.call, sizeof *work.call + work.call->bytes);
  return work;
}

static sim_graph *graph_copy(sim_node *owner, const sim_graph *from) {
  sim_graph *to = sim_graph_make(owner);
  for (size_t k = 0; k < from->count; ++k) {
    const sim_node *node = from->nodes[k];
    sim_node *made = node_make(to, sim_work_copied(node->work), node->after_count);
    for (size_t before = 0; before < node->after_count; ++before)
      made->after[before] = to->nodes[node->after[before]->index];
    if (node->child) made->child = graph_copy(made, node->child);
  }
  return to;
}

/* ---- entries ---- */

CUresult sim_cuGraphCreate(CUgraph *graph, unsigned int flags) {
  SIM_ENTER(cuGraphCreate);
  if (!graph || flags != 0) return sim_invalid("flags must be 0");
  *graph = SIM_HANDLE(CUgraph, sim_graph_make(NULL));
  return CUDA_SUCCESS;
}

static CUresult graph_destroy(CUgraph handle) {
  SIM_FIND_GRAPH(graph, handle);
  if (graph->owner)
    return sim_breaks(CUDA_ERROR_INVALID_VALUE, "body", "the graph of a %s node was destroyed: it is the driver's",
                      sim_node_name(graph->owner->work.type));
  if (graph->captures)
    return sim_breaks(CUDA_ERROR_INVALID_VALUE, "capture", "a graph was destroyed while a stream is captured into it");
  sim_graph_drop(graph);
  return CUDA_SUCCESS;
}

SIM_DEFINE_BACK(cuGraphDestroy, (CUgraph graph), graph_destroy(graph))

/* ---- adding nodes: the request, and the changes after the node exists ------------ */

static CUresult ask_kernel(const sim_graph *graph, const CUgraphNodeParams *asked, sim_work *work) {
  (void)graph;
  return sim_call_make(&asked->kernel, SIM_NODE_BYTES, &work->call);
}

static CUresult check_types(const sim_graph *graph, const sim_graph *child) {
  for (size_t k = 0; k < child->count; ++k) {
    SIM_TRY(check_type(graph, child->nodes[k]->work.type));
    if (child->nodes[k]->child) SIM_TRY(check_types(graph, child->nodes[k]->child));
  }
  return CUDA_SUCCESS;
}

static CUresult ask_child(const sim_graph *graph, const CUgraphNodeParams *asked, sim_work *work) {
  (void)work;
  SIM_FIND_GRAPH(child, asked->graph.graph);
  if (sim_graph_conditional(child))
    return sim_unsupported("a graph with conditional nodes can't be the graph of a child node");
  if (child->root == graph->root) return sim_invalid("a graph can't be its own child");
  return check_types(graph, child);
}

static void make_child(sim_node *node, CUgraphNodeParams *asked) {
  node->child = graph_copy(node, SIM_OF(sim_graph, asked->graph.graph, SIM_GRAPH));
}

/* Rows of bytes are enough here. */
CUresult sim_fill_of(const CUDA_MEMSET_NODE_PARAMS_v2 *asked, const sim_context *context, sim_copy *fill) {
  if (!context) return sim_refuse(CUDA_ERROR_INVALID_CONTEXT, "a fill node: no such context");
  if (asked->elementSize != 1 || asked->height != 1 || asked->value > UINT8_MAX)
    return sim_unsupported("fills but of one row of bytes aren't simulated");
  if (!sim_block_of(context, (uintptr_t)asked->dst, asked->width))
    return sim_invalid("a fill of what isn't within one block of its context's memory");
  *fill = (sim_copy){(unsigned char *)(uintptr_t)asked->dst, NULL, asked->width, (unsigned char)asked->value};
  return CUDA_SUCCESS;
}

static CUresult ask_fill(const sim_graph *graph, const CUgraphNodeParams *asked, sim_work *work) {
  CUDA_MEMSET_NODE_PARAMS_v2 fill;
  (void)graph;
  memcpy(&fill, asked->reserved1, sizeof fill);
  SIM_FIND_CONTEXT(context);
  return sim_fill_of(&fill, fill.ctx ? SIM_OF(sim_context, fill.ctx, SIM_CONTEXT) : context, &work->copy);
}

static CUresult ask_host(const sim_graph *graph, const CUgraphNodeParams *asked, sim_work *work) {
  (void)graph;
  memcpy(&work->host, asked->reserved1, sizeof work->host);
  return work->host.fn ? CUDA_SUCCESS : sim_invalid("a host node: no function");
}

static const struct {
  size_t bytes; /* of its parameters */
  CUresult (*ask)(const sim_graph *graph, const CUgraphNodeParams *asked, sim_work *work);
  void (*make)(sim_node *node, CUgraphNodeParams *asked);
} types[] = {
  [CU_GRAPH_NODE_TYPE_KERNEL] = {sizeof(CUDA_KERNEL_NODE_PARAMS_v3), ask_kernel, NULL},
  [CU_GRAPH_NODE_TYPE_MEMSET] = {sizeof(CUDA_MEMSET_NODE_PARAMS_v2), ask_fill, NULL},
  [CU_GRAPH_NODE_TYPE_HOST] = {sizeof(CUDA_HOST_NODE_PARAMS), ask_host, NULL},
  [CU_GRAPH_NODE_TYPE_GRAPH] = {sizeof(CUDA_CHILD_GRAPH_NODE_PARAMS), ask_child, make_child},
  [CU_GRAPH_NODE_TYPE_CONDITIONAL] = {sizeof(CUDA_CONDITIONAL_NODE_PARAMS), sim_condition_ask, sim_condition_make},
};
enum { TYPES = sizeof types / sizeof *types };

bool sim_edge_full(const CUgraphEdgeData *edge) {
  static const CUgraphEdgeData full;
  return memcmp(edge, &full, sizeof full) == 0;
}

/* Programmatic edges stand between two kernels, on sm_90 and newer. */
static CUresult check_edges(const CUgraphNode *after, const CUgraphEdgeData *edges, size_t count,
                            CUgraphNodeType type) {
  for (size_t k = 0; edges && after && k < count; ++k) {
    if (sim_edge_full(&edges[k])) continue;
    const sim_node *from = SIM_OF(sim_node, after[k], SIM_NODE);
    bool programmatic = edges[k].type == 1 && edges[k].from_port <= 2 && edges[k].to_port == 0;
    if (!programmatic) return sim_invalid("edge %zu: unknown data", k);
    if (sim_arch < 90 || !from || from->work.type != CU_GRAPH_NODE_TYPE_KERNEL || type != CU_GRAPH_NODE_TYPE_KERNEL)
      return sim_invalid("edge %zu: programmatic edges stand between two kernels, on sm_90 and newer", k);
  }
  return CUDA_SUCCESS;
}

/* The part of the union that the type doesn't use must be zero. */
CUresult sim_check_reserved(const CUgraphNodeParams *asked) {
  size_t used = (unsigned)asked->type < TYPES ? types[asked->type].bytes : 0;
  unsigned char all[sizeof asked->reserved1];
  memcpy(all, asked->reserved1, sizeof all);
  bool zero = asked->reserved2 == 0;
  for (size_t k = used ? used : sizeof all; k < sizeof all; ++k) zero = zero && all[k] == 0;
  for (int k = 0; k < 3; ++k) zero = zero && asked->reserved0[k] == 0;
  return zero ? CUDA_SUCCESS : sim_invalid("node parameters: what is reserved must be 0");
}

static CUresult add(CUgraphNode *node, CUgraph handle, const CUgraphNode *after, const CUgraphEdgeData *edges,
                    size_t count, CUgraphNodeParams *asked) {
  sim_node *made;
  if (!node || !asked) return sim_invalid("a bad argument");
  SIM_FIND_GRAPH(graph, handle);
  SIM_TRY(sim_check_reserved(asked));
  SIM_TRY(check_edges(after, edges, count, asked->type));
  SIM_TRY(check_type(graph, asked->type));
  sim_work work = {.type = asked->type};
  if (types[work.type].ask) SIM_TRY(types[work.type].ask(graph, asked, &work));
  else if (work.type != CU_GRAPH_NODE_TYPE_EMPTY) return sim_unsupported("copy nodes are simulated in captures only");
  SIM_TRY(sim_node_add(graph, work, after, count, &made));
  if (types[work.type].make) types[work.type].make(made, asked);
  *node = SIM_HANDLE(CUgraphNode, made);
  return CUDA_SUCCESS;
}

/* Older structs equal the beginning of the newer ones. */
static CUresult add_older(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                          CUgraphNodeType type, const void *asked, size_t bytes) {
  CUgraphNodeParams all = {.type = type};
  if (asked) memcpy(all.reserved1, asked, bytes);
  return add(node, graph, after, NULL, count, asked ? &all : NULL);
}

SIM_DEFINE(cuGraphAddNode, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,
                            size_t count, CUgraphNodeParams *asked),
           add(node, graph, after, edges, count, asked))

SIM_DEFINE(cuGraphAddKernelNode, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                  const CUDA_KERNEL_NODE_PARAMS_v1 *asked),
           add_older(node, graph, after, count, CU_GRAPH_NODE_TYPE_KERNEL, asked, sizeof *asked))

CUresult sim_cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                     const CUDA_KERNEL_NODE_PARAMS_v2 *asked) {
  SIM_ENTER(cuGraphAddKernelNode_v2);
  if (asked && asked->kern) return sim_unsupported("kernels of libraries (CUkernel) aren't simulated");
  return add_older(node, graph, after, count, CU_GRAPH_NODE_TYPE_KERNEL, asked, sizeof *asked);
}

CUresult sim_cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                  const CUDA_MEMSET_NODE_PARAMS_v1 *asked, CUcontext context) {
  SIM_ENTER(cuGraphAddMemsetNode);
  CUDA_MEMSET_NODE_PARAMS_v2 all = {.ctx = context};
  if (asked) memcpy(&all, asked, sizeof *asked);
  return add_older(node, graph, after, count, CU_GRAPH_NODE_TYPE_MEMSET, asked ? &all : NULL, sizeof all);
}

SIM_DEFINE(cuGraphAddEmptyNode, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count),
           add_older(node, graph, after, count, CU_GRAPH_NODE_TYPE_EMPTY, "", 0))

SIM_DEFINE(cuGraphAddChildGraphNode, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                      CUgraph child),
           add_older(node, graph, after, count, CU_GRAPH_NODE_TYPE_GRAPH, &child, sizeof child))

SIM_DEFINE(cuGraphAddHostNode, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                const CUDA_HOST_NODE_PARAMS *asked),
           add_older(node, graph, after, count, CU_GRAPH_NODE_TYPE_HOST, asked, sizeof *asked))

CUresult sim_cuGraphAddDependencies(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                                    const CUgraphEdgeData *edges, size_t count) {
  SIM_ENTER(cuGraphAddDependencies);
  SIM_FIND_GRAPH(graph, handle);
  for (size_t k = 0; k < count; ++k) {
    sim_node *before = sim_node_in(graph, from[k]), *node = sim_node_in(graph, to[k]);
    if (!before || !node) return sim_invalid("dependency %zu: its nodes must be in the graph", k);
    if (sim_node_is_behind(before, node)) return sim_invalid("dependency %zu: a cycle", k);
    SIM_TRY(check_edges(&from[k], edges ? &edges[k] : NULL, 1, node->work.type));
    sim_node **after = realloc(node->after, (node->after_count + 1) * sizeof *after);
    if (!after) abort();
    after[node->after_count++] = before;
    node->after = after;
  }
  return CUDA_SUCCESS;
}

/* As many as there are, then NULL; handles NULL: only how many. */
static CUresult list_nodes(sim_node *const *nodes, size_t all, CUgraphNode *handles, size_t *count) {
  for (size_t k = 0; handles && k < *count; ++k) handles[k] = k < all ? SIM_HANDLE(CUgraphNode, nodes[k]) : NULL;
  if (!handles || *count > all) *count = all;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *count) {
  SIM_ENTER(cuGraphGetNodes);
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  SIM_FIND_GRAPH(graph, handle);
  return list_nodes(graph->nodes, graph->count, nodes, count);
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
  if (!node || !count) return sim_invalid("a bad argument");
  if (after && edges) memset(edges, 0, *count * sizeof *edges);
  return list_nodes(node->after, node->after_count, after, count);
}

#define FIND_NODE(node, handle, condition) \
  const sim_node *node = SIM_OF(sim_node, handle, SIM_NODE); \
  if (!node || !(condition)) return sim_invalid("no such node")
SIM_ANSWERS(cuGraphNodeGetType, (CUgraphNode handle, CUgraphNodeType *type), type, FIND_NODE(node, handle, true),
            node->work.type)
SIM_ANSWERS(cuGraphChildGraphNodeGetGraph, (CUgraphNode handle, CUgraph *child), child,
            FIND_NODE(node, handle, node->child), SIM_HANDLE(CUgraph, node->child))

/* What the parameters point to lives as long as the node. */
CUresult sim_cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1 *asked) {
  SIM_ENTER(cuGraphKernelNodeGetParams);
  sim_node *node = SIM_OF(sim_node, handle, SIM_NODE);
  if (!node || !node->work.call || !asked) return sim_invalid("no kernel node");
  sim_call *call = node->work.call;
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
  if (sim_graph_conditional(graph)) return sim_unsupported("a graph with conditional nodes can't be cloned");
  *clone = SIM_HANDLE(CUgraph, graph_copy(NULL, graph));
  return CUDA_SUCCESS;
}
