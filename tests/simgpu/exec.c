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

static CUresult check_kernel(check *c, const sim_node *node) {
  if (!sim_is_alive(node->call->function, SIM_FUNCTION)) {
    sim_broken("destroyed", "a graph was instantiated whose kernel's module is unloaded");
    return fail_at(c, node, CUDA_GRAPH_INSTANTIATE_ERROR);
  }
  if (node->call->cooperative && c->in_body && sim_version < 12060) {
    sim_refuse(CUDA_ERROR_INVALID_VALUE, "a cooperative kernel in a body: from 12.6 on");
    return fail_at(c, node, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
  }
  if (node->call->context == c->context) return CUDA_SUCCESS;
  sim_broken("foreign", "a graph holds a kernel of another context than the current one");
  sim_refuse(CUDA_ERROR_INVALID_VALUE, "a kernel of another context");
  return fail_at(c, node, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
}

/* In bodies: device memory and pinned memory, of the context that it is instantiated in. */
static CUresult check_copy(check *c, const sim_node *node) {
  const unsigned char *const sides[] = {node->copy.to, node->copy.from};
  for (int k = 0; c->in_body && k < 2; ++k) {
    if (!sides[k]) continue; /* a fill */
    const sim_block *block = sim_block_of(c->context, (uintptr_t)sides[k], node->copy.bytes);
    if (block && (block->kind == SIMGPU_MEMORY || block->kind == SIMGPU_PINNED)) continue;
    sim_refuse(CUDA_ERROR_INVALID_VALUE, "a %s node in a body of %s memory", sim_node_name(node->type),
               block ? "managed" : "unknown");
    return fail_at(c, node, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
  }
  return CUDA_SUCCESS;
}

static CUresult check_child(check *c, const sim_node *node) {
  if (node->child->count == 0) {
    sim_broken("empty-child", "an empty child graph, which crashes instantiation");
    return fail_at(c, node, CUDA_GRAPH_INSTANTIATE_ERROR);
  }
  return check_graph(c, node->child);
}

static bool holds_child(const sim_graph *graph) {
  for (size_t k = 0; k < graph->count; ++k)
    if (graph->nodes[k]->type == CU_GRAPH_NODE_TYPE_GRAPH) return true;
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

static CUresult check_graph(check *c, const sim_graph *graph) {
  CUresult result = CUDA_SUCCESS;
  for (size_t k = 0; k < graph->count && result == CUDA_SUCCESS; ++k) {
    const sim_node *node = graph->nodes[k];
    if (node->call) result = check_kernel(c, node);
    else if (node->child) result = check_child(c, node);
    else if (node->condition) result = check_condition(c, node);
    else if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY || node->type == CU_GRAPH_NODE_TYPE_MEMSET)
      result = check_copy(c, node);
    else if (node->type == CU_GRAPH_NODE_TYPE_EMPTY && c->in_body && sim_version < 12040)
      sim_broken("empty-node", "an empty node in a body, which is faulty in 12.3");
    else if (node->type == CU_GRAPH_NODE_TYPE_HOST && c->in_body) {
      sim_refuse(CUDA_ERROR_INVALID_VALUE, "a host node in the body of a conditional node");
      result = fail_at(c, node, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
    }
  }
  return result;
}

static CUresult check_handles(check *c, const sim_graph *graph) {
  for (size_t k = 0; k < graph->condition_count; ++k) {
    if (graph->conditions[k]->node) continue;
    c->result = sim_version >= 12080 ? CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED : CUDA_GRAPH_INSTANTIATE_ERROR;
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "%s", sim_version >= 12080 ? "a conditional handle has no node"
                                                                          : "invalid argument");
  }
  return CUDA_SUCCESS;
}

static CUresult check_whole(check *c, const sim_graph *graph) {
  c->conditional = sim_graph_conditional(graph);
  c->result = CUDA_GRAPH_INSTANTIATE_ERROR;
  if (graph->owner) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "a node's graph can't be instantiated by itself");
  if (graph->capturing) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "the graph is being captured into");
  if (c->conditional && graph->exec && sim_is_alive(graph->exec, SIM_EXEC))
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "a graph with conditional nodes has one instantiation at a time");
  if (c->conditional && sim_says_no("conditional"))
    return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "the device can't do conditional nodes");
  CUresult result = check_handles(c, graph);
  return result == CUDA_SUCCESS ? check_graph(c, graph) : result;
}

static CUresult instantiate(CUgraphExec *out, CUgraph handle, unsigned long long flags, check *c) {
  sim_graph *graph;
  CUresult result = sim_current(&c->context);
  if (result == CUDA_SUCCESS) result = sim_capture_unsafe("cuGraphInstantiate");
  if (result == CUDA_SUCCESS) result = sim_graph_find(handle, &graph);
  if (result != CUDA_SUCCESS) return result;
  if (!out || (flags & ~2ull) != 0) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "instantiation: flags");
  result = check_whole(c, graph);
  if (result != CUDA_SUCCESS) return result;
  sim_exec *exec = sim_obtain(sizeof *exec);
  sim_object_begin(&exec->base, SIM_EXEC, c->context);
  exec->program = sim_program_make(graph, c->context);
  exec->graph = graph->base.handle;
  exec->conditional = c->conditional;
  exec->checked = sim_unloads;
  if (c->conditional) graph->exec = exec->base.handle;
  *out = SIM_HANDLE(CUgraphExec, exec);
  c->result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  SIM_ENTER(cuGraphInstantiateWithFlags);
  check c = {0};
  return instantiate(exec, graph, flags, &c);
}

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

static CUresult exec_find(CUgraphExec handle, sim_exec **exec) {
  sim_context *context;
  CUresult result = sim_current(&context);
  if (result != CUDA_SUCCESS) return result;
  *exec = SIM_OF(sim_exec, handle, SIM_EXEC);
  if (!*exec) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "no graph exec");
  return sim_check_context(&(*exec)->base, "graph exec");
}

CUresult sim_exec_end(CUgraphExec handle) {
  sim_exec *exec = SIM_OF(sim_exec, handle, SIM_EXEC);
  if (!exec) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuGraphExecDestroy: no graph exec");
  CUresult state = sim_capture_unsafe("cuGraphExecDestroy");
  if (state != CUDA_SUCCESS) return state;
  state = sim_check_context(&exec->base, "graph exec");
  sim_object_end(&exec->base);
  exec->gone = true;
  if (exec->queued == 0) exec_free(exec);
  return state;
}

CUresult sim_cuGraphExecDestroy(CUgraphExec exec) {
  SIM_ENTER_BACK(cuGraphExecDestroy);
  SIM_LEAVE(sim_exec_end(exec));
}

CUresult sim_cuGraphUpload(CUgraphExec handle, CUstream where) {
  SIM_ENTER(cuGraphUpload);
  sim_exec *exec;
  sim_stream *stream;
  CUresult result = exec_find(handle, &exec);
  if (result == CUDA_SUCCESS) result = sim_stream_find(where, "cuGraphUpload", &stream);
  if (result == CUDA_SUCCESS && stream->capture) result = sim_capture_refuses(stream, "cuGraphUpload");
  if (result == CUDA_SUCCESS) result = sim_capture_unsafe("cuGraphUpload");
  return result;
}

CUresult sim_cuGraphLaunch(CUgraphExec handle, CUstream where) {
  SIM_ENTER(cuGraphLaunch);
  sim_exec *exec;
  sim_stream *stream;
  CUresult result = exec_find(handle, &exec);
  if (result == CUDA_SUCCESS) result = sim_stream_find(where, "cuGraphLaunch", &stream);
  if (result != CUDA_SUCCESS) return result;
  if (stream->capture) return sim_capture_refuses(stream, "cuGraphLaunch");
  if (exec->checked != sim_unloads && !sim_program_usable(exec->program)) {
    sim_broken("destroyed", "a graph was launched whose kernel's module is unloaded");
    return sim_refuse(CUDA_ERROR_INVALID_HANDLE, "cuGraphLaunch: a kernel's module is unloaded");
  }
  exec->checked = sim_unloads;
  ++sim_count.launches;
  sim_item *item = sim_obtain(sizeof *item);
  item->kind = SIM_ITEM_GRAPH;
  item->program = exec->program;
  ++item->program->references;
  item->exec = exec;
  ++exec->queued;
  sim_post(stream, item);
  if (sim_launch_blocking) sim_wait_stream(stream);
  return CUDA_SUCCESS;
}

/* ---- updates: later launches see them, those handed over don't ---- */

static bool in_body(const sim_flow *flow) {
  for (; flow; flow = flow->around)
    if (flow->is_body) return true;
  return false;
}

static CUresult check_update(sim_exec *exec, CUgraphNode node, const CUgraphNodeParams *asked) {
  if (!asked) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "node parameters: NULL");
  if (!SIM_OF(sim_node, node, SIM_NODE)) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "no such node");
  const sim_flow *flow;
  const sim_step *step = sim_program_step(exec->program, (uint64_t)(uintptr_t)node, &flow);
  if (!step) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "the exec wasn't made with that node");
  if (step->type != asked->type)
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "parameters for a node of kind %s, but it is of kind %s",
                      sim_node_name(asked->type), sim_node_name(step->type));
  if (step->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    sim_broken("update", "parameters of a conditional node can't be changed");
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "parameters of a conditional node can't be changed");
  }
  const bool fill = step->type == CU_GRAPH_NODE_TYPE_MEMSET;
  if (step->type != CU_GRAPH_NODE_TYPE_KERNEL && !fill)
    return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "updates of %s nodes aren't simulated", sim_node_name(step->type));
  if (fill && in_body(flow)) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "fill nodes in bodies can't be updated");
  if (exec->conditional && sim_says_no("P1d"))
    return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "nodes of graphs with conditional nodes can't be updated");
  if (in_body(flow) && sim_says_no("P17a"))
    return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "nodes in bodies can't be updated");
  return sim_check_reserved(asked);
}

/* What launches under way have stays as it is. */
static sim_step *step_to_change(sim_exec *exec, CUgraphNode node) {
  if (exec->program->references > 1) {
    sim_program *copy = sim_program_copy(exec->program);
    sim_program_release(exec->program);
    exec->program = copy;
  }
  const sim_flow *flow;
  return sim_program_step(exec->program, (uint64_t)(uintptr_t)node, &flow);
}

static CUresult change_kernel(sim_exec *exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v3 *asked) {
  sim_call *call;
  CUresult result = sim_call_make(asked, SIM_NODE_BYTES, &call);
  if (result != CUDA_SUCCESS) return result;
  if (call->context != exec->base.context) {
    free(call);
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "the kernel is of another context");
  }
  const sim_flow *flow;
  const uint64_t before = sim_program_step(exec->program, (uint64_t)(uintptr_t)node, &flow)->call->function;
  if (exec->conditional && before != call->function && sim_says_no("P17b")) {
    free(call);
    return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "a node of a graph with conditional nodes keeps its kernel");
  }
  sim_step *step = step_to_change(exec, node);
  call->cooperative = step->call->cooperative;
  free(step->call);
  step->call = call;
  return CUDA_SUCCESS;
}

/* Rows of bytes are enough here. */
static CUresult change_fill(sim_exec *exec, CUgraphNode node, const CUgraphNodeParams *all) {
  CUDA_MEMSET_NODE_PARAMS_v2 asked;
  memcpy(&asked, all->reserved1, sizeof asked);
  if (asked.elementSize != 1 || asked.height != 1 || asked.value > UINT8_MAX)
    return sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "fills but of one row of bytes aren't simulated");
  if (!sim_block_of(exec->base.context, (uintptr_t)asked.dst, asked.width))
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "a fill of what isn't within one block of this context's memory");
  step_to_change(exec, node)->copy =
    (sim_copy){(unsigned char *)(uintptr_t)asked.dst, NULL, asked.width, (unsigned char)asked.value};
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphExecNodeSetParams(CUgraphExec handle, CUgraphNode node, CUgraphNodeParams *asked) {
  SIM_ENTER(cuGraphExecNodeSetParams);
  sim_exec *exec;
  CUresult result = exec_find(handle, &exec);
  if (result == CUDA_SUCCESS) result = check_update(exec, node, asked);
  if (result != CUDA_SUCCESS) return result;
  return asked->type == CU_GRAPH_NODE_TYPE_MEMSET ? change_fill(exec, node, asked)
                                                  : change_kernel(exec, node, &asked->kernel);
}

CUresult sim_cuGraphExecKernelNodeSetParams(CUgraphExec handle, CUgraphNode node,
                                            const CUDA_KERNEL_NODE_PARAMS_v1 *asked) {
  SIM_ENTER(cuGraphExecKernelNodeSetParams);
  if (!asked) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuGraphExecKernelNodeSetParams: a bad argument");
  sim_exec *exec;
  CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  all.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){
    .func = asked->func, .gridDimX = asked->gridDimX, .gridDimY = asked->gridDimY, .gridDimZ = asked->gridDimZ,
    .blockDimX = asked->blockDimX, .blockDimY = asked->blockDimY, .blockDimZ = asked->blockDimZ,
    .sharedMemBytes = asked->sharedMemBytes, .kernelParams = asked->kernelParams, .extra = asked->extra};
  CUresult result = exec_find(handle, &exec);
  if (result == CUDA_SUCCESS) result = check_update(exec, node, &all);
  return result == CUDA_SUCCESS ? change_kernel(exec, node, &all.kernel) : result;
}

CUresult sim_cuGraphExecUpdate(CUgraphExec handle, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
  SIM_ENTER(cuGraphExecUpdate);
  sim_exec *exec;
  (void)graph;
  (void)info;
  CUresult result = exec_find(handle, &exec);
  if (result == CUDA_SUCCESS && exec->conditional)
    sim_broken("update", "an exec with conditional nodes was updated as a whole");
  return result == CUDA_SUCCESS ? sim_refuse(CUDA_ERROR_NOT_SUPPORTED, "updates as a whole aren't simulated") : result;
}
