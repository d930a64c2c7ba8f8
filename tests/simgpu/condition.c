/* Conditional nodes and their handles, as they are built. */
#include "sim.h"
#include <stdlib.h>

CUresult sim_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *handle, CUgraph where, CUcontext context,
                                            unsigned int initial, unsigned int flags) {
  SIM_ENTER(cuGraphConditionalHandleCreate);
  SIM_FIND_CONTEXT(current);
  SIM_FIND_GRAPH(graph, where);
  sim_context *asked = context ? SIM_OF(sim_context, context, SIM_CONTEXT) : current;
  if (!handle || !asked || flags > GKI_CU_GRAPH_COND_ASSIGN_DEFAULT)
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuGraphConditionalHandleCreate: a bad argument");
  if (flags == 0 && initial != 0)
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "a default without CU_GRAPH_COND_ASSIGN_DEFAULT");
  sim_condition *condition = sim_object_make(sizeof *condition, SIM_CONDITION, asked, true);
  sim_graph *root = graph->root;
  condition->root = root;
  condition->of = graph;
  condition->initial = initial;
  condition->assigned = flags != 0;
  root->conditions = sim_grow(root->conditions, root->condition_count, sizeof *root->conditions);
  root->conditions[root->condition_count++] = condition;
  *handle = condition->base.handle;
  return CUDA_SUCCESS;
}

/* The largest size by type, before 12.8 and from then on. */
static CUresult check_size(const CUDA_CONDITIONAL_NODE_PARAMS *asked) {
  static const struct { const char *name; unsigned most[2]; } kinds[] = {
    [CU_GRAPH_COND_TYPE_IF] = {"IF", {1, 2}},
    [CU_GRAPH_COND_TYPE_WHILE] = {"WHILE", {1, 1}},
    [CU_GRAPH_COND_TYPE_SWITCH] = {"SWITCH", {0, UINT32_MAX}}};
  if ((unsigned)asked->type >= sizeof kinds / sizeof *kinds)
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "a conditional node of unknown type %d", (int)asked->type);
  const unsigned most = kinds[asked->type].most[sim_version >= 12080];
  if (asked->size >= 1 && asked->size <= most) return CUDA_SUCCESS;
  return sim_refuse(CUDA_ERROR_INVALID_VALUE, "a %s node of size %u: 1 to %u", kinds[asked->type].name, asked->size,
                    most);
}

static CUresult check_handle(const sim_graph *graph, const CUDA_CONDITIONAL_NODE_PARAMS *asked,
                             sim_condition **condition) {
  *condition = SIM_OF(sim_condition, asked->handle, SIM_CONDITION);
  if (!*condition) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "no such conditional handle");
  const sim_graph *around = graph; /* a graph's handles are also for bodies in it */
  while (around != (*condition)->of && around->owner) around = around->owner->graph;
  if (around != (*condition)->of)
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "the conditional handle was made for another graph");
  if (!(*condition)->node) return CUDA_SUCCESS;
  return sim_breaks(CUDA_ERROR_INVALID_VALUE, "shared", "a conditional handle was given to a second node");
}

static CUresult check_context(const CUDA_CONDITIONAL_NODE_PARAMS *asked, const sim_condition *condition) {
  SIM_FIND_CONTEXT(context);
  if (asked->ctx) context = SIM_OF(sim_context, asked->ctx, SIM_CONTEXT);
  if (context && context == condition->base.context) return CUDA_SUCCESS;
  return sim_breaks(CUDA_ERROR_INVALID_VALUE, "foreign", "a conditional node is of another context than its handle");
}

CUresult sim_condition_add(sim_graph *graph, const CUgraphNode *after, size_t count,
                           CUDA_CONDITIONAL_NODE_PARAMS *asked, sim_node **out) {
  sim_condition *condition;
  sim_node *node;
  if (sim_version < 12030) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "conditional nodes: from 12.3 on");
  if (graph->root->exec && sim_is_alive(graph->root->exec, SIM_EXEC))
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "the graph has conditional nodes and an instantiation");
  SIM_TRY(check_size(asked));
  SIM_TRY(check_handle(graph, asked, &condition));
  SIM_TRY(check_context(asked, condition));
  SIM_TRY(sim_node_add(graph, CU_GRAPH_NODE_TYPE_CONDITIONAL, after, count, &node));
  node->condition = condition;
  condition->node = node;
  node->condition_type = asked->type;
  node->size = asked->size;
  node->bodies = sim_obtain(asked->size * sizeof(sim_graph *));
  node->body_handles = sim_obtain(asked->size * sizeof *node->body_handles);
  for (unsigned k = 0; k < asked->size; ++k) {
    node->bodies[k] = sim_graph_make(node);
    node->bodies[k]->is_body = true;
    node->body_handles[k] = SIM_HANDLE(CUgraph, node->bodies[k]);
  }
  asked->phGraph_out = node->body_handles;
  *out = node;
  return CUDA_SUCCESS;
}
