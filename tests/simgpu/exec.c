/* Instantiation with its rules, updates of nodes, launches. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

/* ---- what may be instantiated ---- */

typedef struct check {
  sim_context *context;
  bool conditional;
  bool in_body;
  const sim_node *at; /* the node at fault */
  CUgraphInstantiateResult result;
} check;

static CUresult check_graph(check *c, const sim_graph *graph);

static CUresult fail_at(check *c, const sim_node *node, CUgraphInstantiateResult result) {
  c->at = node;
  c->result = result;
  return CUDA_ERROR_INVALID_VALUE;
}

/* Nodes that a body can't hold. */
static CUresult fail_in_body(check *c, const sim_node *node, const char *what) {
  sim_invalid("a %s node in the body of a conditional node: %s", sim_node_name(node->work.type), what);
  return fail_at(c, node, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
}

static CUresult check_kernel(check *c, const sim_node *node) {
  const sim_call *call = node->work.call;
  if (!sim_is_alive(call->function, SIM_FUNCTION)) {
    sim_broken("destroyed", "a graph was instantiated whose kernel's module is unloaded");
    return fail_at(c, node, CUDA_GRAPH_INSTANTIATE_ERROR);
  }
  if (call->cooperative && c->in_body && sim_version < 12060)
    return fail_in_body(c, node, "a cooperative kernel, from 12.6 on");
  if (call->context == c->context) return CUDA_SUCCESS;
  sim_breaks(CUDA_ERROR_INVALID_VALUE, "foreign", "a graph holds a kernel of another context than the current one");
  return fail_at(c, node, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
}

/* In bodies: device memory and pinned memory, of the context that it is instantiated in. */
static CUresult check_copy(check *c, const sim_node *node) {
  const sim_copy *copy = &node->work.copy;
  const unsigned char *const sides[] = {copy->to, copy->from};
  for (int k = 0; c->in_body && k < 2; ++k) {
    if (!sides[k]) continue; /* a fill */
    const sim_block *block = sim_block_of(c->context, (uintptr_t)sides[k], copy->bytes);
    if (block && (block->kind == SIMGPU_MEMORY || block->kind == SIMGPU_PINNED)) continue;
    return fail_in_body(c, node, block ? "of managed memory" : "of unknown memory");
  }
  return CUDA_SUCCESS;
}

static CUresult check_child(check *c, const sim_node *node) {
  if (node->child->count != 0) return check_graph(c, node->child);
  sim_broken("empty-child", "an empty child graph, which crashes instantiation");
  return fail_at(c, node, CUDA_GRAPH_INSTANTIATE_ERROR);
}

static bool holds_child(const sim_graph *graph) {
  for (size_t k = 0; k < graph->count; ++k)
    if (graph->nodes[k]->child) return true;
  return false;
}

static CUresult check_condition(check *c, const sim_node *node) {
  bool around = c->in_body;
  CUresult result = CUDA_SUCCESS;
  for (unsigned k = 0; k < node->size && result == CUDA_SUCCESS; ++k) {
    const sim_graph *body = node->bodies[k];
    if (body->count == 0 && sim_version < 12080) {
      sim_broken("empty-body", "a body without nodes, which hangs before 12.8");
      return fail_at(c, node, CUDA_GRAPH_INSTANTIATE_ERROR);
    }
    if (node->size > 1 && sim_version < 13000 && holds_child(body))
      sim_broken("case-child", "a child graph in one of several bodies, which gives wrong results before 13.0");
    c->in_body = true;
    result = check_graph(c, body);
    c->in_body = around;
  }
  return result;
}

static CUresult check_node(check *c, const sim_node *node) {
  switch (node->work.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return check_kernel(c, node);
    case CU_GRAPH_NODE_TYPE_GRAPH: return check_child(c, node);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return check_condition(c, node);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET: return check_copy(c, node);
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return c->in_body ? fail_in_body(c, node, "not at all") : CUDA_SUCCESS;
    default: break;
  }
  if (c->in_body && sim_version < 12040) sim_broken("empty-node", "an empty node in a body, which is faulty in 12.3");
  return CUDA_SUCCESS;
}

static CUresult check_graph(check *c, const sim_graph *graph) {
  for (size_t k = 0; k < graph->count; ++k) SIM_TRY(check_node(c, graph->nodes[k]));
  return CUDA_SUCCESS;
}

static CUresult check_handles(check *c, const sim_graph *graph) {
  for (size_t k = 0; k < graph->condition_count; ++k) {
    if (graph->conditions[k]->node) continue;
    c->result = sim_version >= 12080 ? CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED : CUDA_GRAPH_INSTANTIATE_ERROR;
    return sim_invalid("%s", sim_version >= 12080 ? "a conditional handle has no node" : "invalid argument");
  }
  return CUDA_SUCCESS;
}

static CUresult check_whole(check *c, const sim_graph *graph) {
  c->conditional = sim_graph_conditional(graph);
  c->result = CUDA_GRAPH_INSTANTIATE_ERROR;
  if (graph->owner) return sim_invalid("a node's graph can't be instantiated by itself");
  if (graph->capturing) return sim_invalid("the graph is being captured into");
  if (c->conditional && graph->exec && sim_is_alive(graph->exec, SIM_EXEC))
    return sim_invalid("a graph with conditional nodes has one instantiation at a time");
  if (c->conditional && sim_says_no("conditional")) return sim_unsupported("the device can't do conditional nodes");
  SIM_TRY(check_handles(c, graph));
  return check_graph(c, graph);
}

static CUresult instantiate(CUgraphExec *out, CUgraph handle, unsigned long long flags, check *c) {
  SIM_TRY(sim_current(&c->context));
  SIM_TRY(sim_capture_unsafe());
  SIM_FIND_GRAPH(graph, handle);
  if (!out || (flags & ~2ull) != 0) return sim_invalid("flags");
  SIM_TRY(check_whole(c, graph));
  sim_exec *exec = sim_object_make(sizeof *exec, SIM_EXEC, c->context, false);
  exec->program = sim_program_make(graph);
  exec->conditional = c->conditional;
  exec->checked = sim_unloads;
  if (c->conditional) graph->exec = exec->base.handle;
  *out = SIM_HANDLE(CUgraphExec, exec);
  c->result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return CUDA_SUCCESS;
}

SIM_DEFINE(cuGraphInstantiateWithFlags, (CUgraphExec *exec, CUgraph graph, unsigned long long flags),
           instantiate(exec, graph, flags, &(check){0}))

CUresult sim_cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *asked) {
  SIM_ENTER(cuGraphInstantiateWithParams);
  if (!asked) return CUDA_ERROR_INVALID_VALUE;
  check c = {.result = CUDA_GRAPH_INSTANTIATE_ERROR};
  CUresult result = instantiate(exec, graph, asked->flags, &c);
  asked->hErrNode_out = c.at ? SIM_HANDLE(CUgraphNode, c.at) : NULL;
  asked->result_out = c.result;
  return result;
}

/* ---- the life of an exec ---- */

static void exec_free(sim_exec *exec) {
  sim_program_release(exec->program);
  free(exec->kept);
  free(exec);
}

void sim_exec_over(sim_exec *exec) {
  if (--exec->queued == 0 && exec->gone) exec_free(exec);
}

#define FIND_EXEC(name, handle) SIM_FIND_HERE(sim_exec, name, handle, SIM_EXEC, CUDA_ERROR_INVALID_VALUE)

CUresult sim_exec_end(CUgraphExec handle) {
  sim_exec *exec = SIM_OF(sim_exec, handle, SIM_EXEC);
  if (!exec) return sim_invalid("no graph exec");
  SIM_TRY(sim_capture_unsafe());
  CUresult state = sim_check_context(&exec->base);
  sim_object_end(&exec->base);
  exec->gone = true;
  if (exec->queued == 0) exec_free(exec);
  return state;
}

SIM_DEFINE_BACK(cuGraphExecDestroy, (CUgraphExec exec), sim_exec_end(exec))

CUresult sim_cuGraphUpload(CUgraphExec handle, CUstream where) {
  SIM_ENTER(cuGraphUpload);
  FIND_EXEC(exec, handle);
  SIM_FIND_STREAM(stream, where);
  (void)exec;
  SIM_TRY(sim_capture_refuses(stream));
  return sim_capture_unsafe();
}

CUresult sim_cuGraphLaunch(CUgraphExec handle, CUstream where) {
  SIM_ENTER(cuGraphLaunch);
  FIND_EXEC(exec, handle);
  SIM_FIND_STREAM(stream, where);
  SIM_TRY(sim_capture_refuses(stream));
  if (exec->checked != sim_unloads && !sim_program_usable(exec->program))
    return sim_breaks(CUDA_ERROR_INVALID_HANDLE, "destroyed",
                      "a graph was launched whose kernel's module is unloaded");
  exec->checked = sim_unloads;
  ++sim_count.launches;
  ++exec->program->references;
  ++exec->queued;
  sim_post(stream, (sim_item){.kind = SIM_ITEM_GRAPH, .program = exec->program, .exec = exec});
  if (sim_launch_blocking) sim_wait_stream(stream);
  return CUDA_SUCCESS;
}

/* ---- updates: later launches see them, launches that were handed over don't  */

static bool in_body(const sim_flow *flow) {
  while (flow && !flow->is_body) flow = flow->around;
  return flow != NULL;
}

static CUresult check_update(sim_exec *exec, CUgraphNode node, const CUgraphNodeParams *asked) {
  if (!asked) return sim_invalid("node parameters: NULL");
  if (!SIM_OF(sim_node, node, SIM_NODE)) return sim_invalid("no such node");
  const sim_flow *flow;
  const sim_step *step = sim_program_step(exec->program, node, &flow);
  if (!step) return sim_invalid("the exec wasn't made with that node");
  const CUgraphNodeType type = step->work.type;
  const bool fill = type == CU_GRAPH_NODE_TYPE_MEMSET;
  if (type != asked->type)
    return sim_invalid("parameters for a node of kind %s, but it is of kind %s", sim_node_name(asked->type),
                       sim_node_name(type));
  if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
    return sim_breaks(CUDA_ERROR_INVALID_VALUE, "update", "parameters of a conditional node can't be changed");
  if (type != CU_GRAPH_NODE_TYPE_KERNEL && !fill)
    return sim_unsupported("updates of %s nodes aren't simulated", sim_node_name(type));
  if (fill && in_body(flow)) return sim_invalid("fill nodes in bodies can't be updated");
  if (exec->conditional && sim_says_no("P1d"))
    return sim_unsupported("nodes of graphs with conditional nodes can't be updated");
  if (in_body(flow) && sim_says_no("P17a")) return sim_unsupported("nodes in bodies can't be updated");
  return sim_check_reserved(asked);
}

/* Later launches get the change; launches under way keep what they have. */
static sim_work *work_to_change(sim_exec *exec, CUgraphNode node) {
  if (exec->program->references > 1) {
    sim_program *copy = sim_program_copy(exec->program);
    sim_program_release(exec->program);
    exec->program = copy;
  }
  const sim_flow *flow;
  return &sim_program_step(exec->program, node, &flow)->work;
}

static CUresult check_call(const sim_exec *exec, CUgraphNode node, const sim_call *call) {
  const sim_flow *flow;
  if (call->context != exec->base.context) return sim_invalid("the kernel is of another context");
  const uint64_t before = sim_program_step(exec->program, node, &flow)->work.call->function;
  if (exec->conditional && before != call->function && sim_says_no("P17b"))
    return sim_unsupported("a node of a graph with conditional nodes keeps its kernel");
  return CUDA_SUCCESS;
}

static CUresult change_kernel(sim_exec *exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v3 *asked) {
  sim_call *call;
  SIM_TRY(sim_call_make(asked, SIM_NODE_BYTES, &call));
  CUresult result = check_call(exec, node, call);
  if (result == CUDA_SUCCESS) {
    sim_work *work = work_to_change(exec, node);
    sim_call *before = work->call;
    call->cooperative = before->cooperative;
    work->call = call;
    call = before;
  }
  free(call);
  return result;
}

static CUresult change(CUgraphExec handle, CUgraphNode node, const CUgraphNodeParams *asked) {
  FIND_EXEC(exec, handle);
  SIM_TRY(check_update(exec, node, asked));
  if (asked->type == CU_GRAPH_NODE_TYPE_KERNEL) return change_kernel(exec, node, &asked->kernel);
  CUDA_MEMSET_NODE_PARAMS_v2 params;
  sim_copy fill;
  memcpy(&params, asked->reserved1, sizeof params);
  SIM_TRY(sim_fill_of(&params, exec->base.context, &fill));
  work_to_change(exec, node)->copy = fill;
  return CUDA_SUCCESS;
}

SIM_DEFINE(cuGraphExecNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *asked),
           change(exec, node, asked))

/* The requested bytes are the beginning of the newer struct. */
CUresult sim_cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_KERNEL_NODE_PARAMS_v1 *asked) {
  SIM_ENTER(cuGraphExecKernelNodeSetParams);
  if (!asked) return sim_invalid("a bad argument");
  CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  memcpy(&all.kernel, asked, sizeof *asked);
  return change(exec, node, &all);
}

CUresult sim_cuGraphExecUpdate(CUgraphExec handle, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
  SIM_ENTER(cuGraphExecUpdate);
  (void)graph;
  (void)info;
  FIND_EXEC(exec, handle);
  if (exec->conditional) sim_broken("update", "an exec with conditional nodes was updated as a whole");
  return sim_unsupported("updates as a whole aren't simulated");
}
