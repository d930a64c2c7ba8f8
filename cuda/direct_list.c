/* Lists in graphs that callers make and launch. The first node there, gki_arm, has a launch's arguments as parameters:
 * the number, the target, and the address of the slots in page-locked memory. So gk puts nothing on a stream, and each
 * launch uses the last arming before it.
 *
 * Armings are numbered, and a status has its arming's number. The caller may launch an arming twice: the device then
 * recognizes the number and posts nothing. The caller may arm twice and launch once: the first arming is over once a
 * later one posts. */
#include "gk_cuda.h"
#include "base/error.h"
#include "cuda/backend.h"
#include "cuda/build.h"
#include "cuda/direct.h"
#include "cuda/graph.h"
#include "cuda/launch.h"
#include "cuda/lower.h"
#include "plan/plan.h"
#include "cuda/probe.h"

/* ---- adding ------------------------------------------------------------------------------------------------------ */

static gk_result refuse_device(const gki_cuda_device *device) {
  gk_result result = gki_cuda_refuse_conditional(device, "gk_cuda_add");
  if (result != GK_OK || !(device->caps.quirks & GKI_CUDA_TARGET_BY_COPY)) return result;
  char why[1024];
  gki_cuda_describe_quirks(&device->caps, GKI_CUDA_TARGET_BY_COPY, why, sizeof why);
  return gk_fail(GK_ERROR_UNSUPPORTED, "gk_cuda_add: arming updates a node, and %s; use gk_graph_create and gk_launch",
                 why);
}

static gk_result refuse_calls(const gk_plan *plan) {
  for (uint32_t k = 0; k < plan->node_count; ++k)
    if (plan->nodes[k].op == GK_OP_CALL)
      return gk_fail(GK_ERROR_UNSUPPORTED, "gk_cuda_add: task %u (%s) is a library call, which would have to be "
                     "recorded again when its slots are bound, and nodes of your graph can't be replaced; record it "
                     "into your graph yourself, or use gk_graph_create", (unsigned)plan->nodes[k].source,
                     plan->nodes[k].name);
  return GK_OK;
}

static gk_result lower_into(void *at, void *state, const gk_plan *plan, void *const *code, gk_mode *mode, void *data) {
  gki_cuda_device *device = at;
  gk_result result = refuse_calls(plan);
  if (result == GK_OK) result = gki_plan_refuse_host(plan, "gk_cuda_add");
  if (result != GK_OK) return result;
  *mode = GK_MODE_NATIVE;
  result = gki_cuda_enter(device);
  if (result == GK_OK) {
    result = gki_cuda_graph_make_into(gki_cuda_native_of(state), device, plan, code, data);
    gki_cuda_leave(device);
  }
  return gki_cuda_detect_loss(device, result);
}

static gk_result refuse_add(const gk_list *list, uint32_t bits, const gki_cuda_into *into) {
  enum { known = GK_CANCELLABLE | GK_CUDA_RESUMABLE };
  if (!list) return gk_fail(GK_ERROR_INVALID, "gk_cuda_add: there is no list (NULL)");
  if (bits & ~(uint32_t)known)
    return gk_fail(GK_ERROR_INVALID, "gk_cuda_add: bits 0x%x can't be asked for here; there are GK_CANCELLABLE and "
                   "GK_CUDA_RESUMABLE", (unsigned)(bits & ~(uint32_t)known));
  return gki_cuda_refuse_into("gk_cuda_add", into->graph, into->after, into->count);
}

gk_result gk_cuda_add(gk_device *device, const gk_list *list, uint32_t bits, CUgraph into, const CUgraphNode *after,
                      size_t count, gk_graph **graph, CUgraphNode *last) {
  gki_begin();
  if (graph) *graph = NULL;
  if (last) *last = NULL;
  if (!graph || !last) return gk_fail(GK_ERROR_INVALID, "gk_cuda_add: nowhere to put the graph or the node (NULL)");
  gki_cuda_into at = {.graph = into, .after = after, .count = count, .resumes = (bits & GK_CUDA_RESUMABLE) != 0};
  const gki_cuda_device *native = gki_cuda_device_of(device, "gk_cuda_add");
  if (!native) return GK_ERROR_INVALID;
  gk_result result = refuse_add(list, bits, &at);
  if (result == GK_OK) result = refuse_device(native);
  if (result != GK_OK) return result;
  const gk_lower_into lowering = {.lower = lower_into, .data = &at, .arm = "gk_cuda_arm"};
  result = gk_graph_create_into(device, list, bits & GK_CANCELLABLE, &lowering, graph);
  if (result == GK_OK) *last = at.last;
  return result;
}

/* ---- arming ------------------------------------------------------------------------------------------------------ */

/* Whether the device has the slots that were bound last. */
static bool has_slots(const gki_cuda_graph *graph) {
  return graph->bound_at && (graph->reported >= graph->bound_at || gki_cuda_is_posted(graph, graph->bound_at));
}

static gk_result set_arming(const gki_cuda_graph *graph, CUgraphExec exec, gki_cuda_arming arming) {
  const gki_cuda_device *device = graph->device;
  void *parameters[] = {&arming};
  CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  node.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = device->builtin.arm, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                             .blockDimX = GKI_CUDA_ARMING_THREADS, .blockDimY = 1, .blockDimZ = 1,
                                             .kernelParams = parameters, .ctx = device->context};
  const CUresult result = device->driver->cuGraphExecNodeSetParams(exec, graph->arming, &node);
  if (result != CUDA_ERROR_INVALID_VALUE)
    return gki_cuda_result(device->driver, result, "gk_cuda_arm: cuGraphExecNodeSetParams for graph %s",
                          graph->plan->name);
  char text[300];
  gki_cuda_describe_result(device->driver, result, text, sizeof text);
  return gk_fail(GK_ERROR_INVALID, "gk_cuda_arm: cuGraphExecNodeSetParams for graph %s: %s; is the exec alive, and of "
                 "the graph that the list was added to, as it was then or later?", graph->plan->name, text);
}

/* Sends the values of handwritten kernels, which are in their nodes. Sends all values, since this exec may be a new one
 * at the address of an old one. First sets the last arming again, which fails if the exec isn't the graph's. */
static gk_result update_nodes(gki_cuda_graph *graph, const gk_launch_args *launch, CUgraphExec exec) {
  const gki_cuda_parameters *parameters = &graph->parameters;
  gki_cuda_updates *updates = &graph->fresh.updates;
  gk_applied applied = GK_UNCHANGED;
  if (!parameters->values.count) return GK_OK;
  (void)gki_param_update(&graph->parameters.values, launch);
  gk_result result = set_arming(graph, exec, graph->armed);
  if (result != GK_OK) return result;
  for (uint32_t k = 0; k < parameters->values.count; ++k) updates->given.known[k] = false;
  updates->given.values.version = 0;
  gki_cuda_updates_belong(updates, parameters, 0, graph->plan->node_count, exec);
  return gki_cuda_updates_send(updates, parameters, launch->changed_count ? launch->applied : &applied);
}

static gk_result arm(gki_cuda_graph *graph, const gk_launch_args *launch, CUgraphExec exec) {
  const uint64_t number = atomic_load_explicit(&graph->order.launched, memory_order_relaxed) + 1;
  const bool sends_slots = launch->changed_count || !has_slots(graph);
  gk_result result = update_nodes(graph, launch, exec);
  if (result != GK_OK) return result;
  if (sends_slots) gki_slot_table_write(&graph->slots.table, launch, number - 1);
  gki_cuda_counts_expect(&graph->counts, launch, number);
  gki_cuda_arming arming = {
      .control = graph->state, .number = number, .to = graph->slots.table.at, .target = GKI_CUDA_NONE,
      .from = graph->ring_at + (number - 1) % graph->slots.table.depth * graph->slots.table.bytes,
      .bytes = sends_slots ? (uint32_t)graph->slots.table.bytes : 0};
  if (launch->target) arming.target = graph->plan->nodes[launch->target].checkpoint;
  gki_cuda_publish_number(graph, launch, number);
  result = set_arming(graph, exec, arming);
  if (result != GK_OK) {
    atomic_store(&graph->order.launched, number - 1);
    return result;
  }
  graph->armed = arming;
  if (sends_slots) graph->bound_at = number;
  return GK_OK;
}

static gk_result arm_entered(void *state, const gk_launch_args *launch, void *data) {
  gki_cuda_graph *graph = gki_cuda_native_of(state);
  if (launch->target && !graph->fresh.gates->target_count)
    return gk_fail(GK_ERROR_INVALID, "gk_cuda_arm: graph %s was added without GK_CUDA_RESUMABLE; arm it with 0, or add "
                   "it with that bit", graph->plan->name);
  gk_result result = gki_cuda_enter_unrelaxed(graph->device);
  if (result == GK_OK) {
    result = arm(graph, launch, data);
    gki_cuda_leave_unrelaxed(graph->device);
  }
  return gki_cuda_detect_loss(graph->device, result);
}

gk_result gk_cuda_arm(gk_graph *graph, CUgraphExec exec, int32_t label) {
  gki_begin();
  if (graph && !exec) return gk_fail(GK_ERROR_INVALID, "gk_cuda_arm: there is no exec (NULL)");
  return gk_graph_arm(graph, gki_cuda.name, "gk_cuda_arm", label, arm_entered, exec);
}

/* ---- disarming --------------------------------------------------------------------------------------------------- */

/* Once no work is under way, an arming without a status was never launched. */
static gk_result disarm_entered(void *state, uint64_t over, uint64_t *launched) {
  gki_cuda_graph *graph = gki_cuda_native_of(state);
  gk_result result = gki_cuda_enter(graph->device);
  if (result != GK_OK) return gki_cuda_detect_loss(graph->device, result);
  result = gki_cuda_await_all(graph->device, graph->plan, "gk_cuda_disarm");
  gki_cuda_leave(graph->device);
  if (result != GK_OK) return gki_cuda_detect_loss(graph->device, result);
  while (*launched > over && !gki_cuda_is_posted(graph, *launched)) --*launched;
  atomic_store(&graph->order.launched, *launched);
  return GK_OK;
}

gk_result gk_cuda_disarm(gk_graph *graph) {
  gki_begin();
  return gk_graph_disarm(graph, gki_cuda.name, "gk_cuda_disarm", disarm_entered);
}
