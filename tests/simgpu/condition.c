/* Conditional nodes and their handles, as they are built. */
#include "sim.h"
#include <stdlib.h>

CUresult sim_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *handle, CUgraph where, CUcontext context,
                                            unsigned int initial, unsigned int flags) {
  SIM_ENTER(cuGraphConditionalHandleCreate);
  SIM_FIND_CONTEXT(asked);
  SIM_FIND_GRAPH(graph, where);
  if (context) asked = SIM_OF(sim_context, context, SIM_CONTEXT);
  if (!handle || !asked || flags > GKI_CU_GRAPH_COND_ASSIGN_DEFAULT) return sim_invalid("a bad argument");
  if (flags == 0 && initial != 0) return sim_invalid("a default without CU_GRAPH_COND_ASSIGN_DEFAULT");
  sim_graph *root = graph->root;
  sim_condition *condition = sim_object_make(sizeof *condition, SIM_CONDITION, asked, true);
  condition->of = graph;
  condition->initial = initial;
  condition->assigned = flags != 0;
  root->conditions = sim_grow(root->conditions, root->condition_count, sizeof *root->conditions);
  root->conditions[root->condition_count++] = condition;
  *handle = condition->base.handle;
  return CUDA_SUCCESS;
}

static CUresult check_size(CUgraphConditionalNodeType type, unsigned size) {
  bool newer = sim_version >= 12080;
  switch (type) {
    case CU_GRAPH_COND_TYPE_IF:
      if (size == 1 || (size == 2 && newer)) return CUDA_SUCCESS;
      return sim_invalid("an IF node of size %u: 1, from 12.8 on also 2", size);
    case CU_GRAPH_COND_TYPE_WHILE:
      if (size == 1) return CUDA_SUCCESS;
      return sim_invalid("a WHILE node of size %u: only 1 is there", size);
    case CU_GRAPH_COND_TYPE_SWITCH:
      if (newer && size > 0) return CUDA_SUCCESS;
      return sim_invalid("a SWITCH node of size %u: from 12.8 on, with one case at least", size);
  }
  return sim_invalid("a conditional node of unknown type %d", (int)type);
}

static CUresult check_handle(const sim_graph *graph, const sim_condition *condition) {
  if (!condition) return sim_invalid("no such conditional handle");
  while (graph != condition->of && graph->owner) graph = graph->owner->graph; /* it is also for bodies in `of` */
  if (graph != condition->of) return sim_invalid("the conditional handle was made for another graph");
  if (!condition->node) return CUDA_SUCCESS;
  return sim_breaks(CUDA_ERROR_INVALID_VALUE, "shared", "a conditional handle was given to a second node");
}

static CUresult check_context(CUcontext asked, const sim_condition *condition) {
  SIM_FIND_CONTEXT(context);
  if (asked) context = SIM_OF(sim_context, asked, SIM_CONTEXT);
  if (context && context == condition->base.context) return CUDA_SUCCESS;
  return sim_breaks(CUDA_ERROR_INVALID_VALUE, "foreign", "a conditional node is of another context than its handle");
}

CUresult sim_condition_ask(const sim_graph *graph, const CUgraphNodeParams *all, sim_work *work) {
  const CUDA_CONDITIONAL_NODE_PARAMS *asked = &all->conditional;
  (void)work;
  if (sim_version < 12030) return sim_invalid("conditional nodes: from 12.3 on");
  if (graph->root->exec && sim_is_alive(graph->root->exec, SIM_EXEC))
    return sim_invalid("the graph has conditional nodes and an instantiation");
  SIM_TRY(check_size(asked->type, asked->size));
  const sim_condition *condition = SIM_OF(sim_condition, asked->handle, SIM_CONDITION);
  SIM_TRY(check_handle(graph, condition));
  return check_context(asked->ctx, condition);
}

void sim_condition_make(sim_node *node, CUgraphNodeParams *all) {
  CUDA_CONDITIONAL_NODE_PARAMS *asked = &all->conditional;
  node->condition = SIM_OF(sim_condition, asked->handle, SIM_CONDITION);
  node->condition->node = node;
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
}
