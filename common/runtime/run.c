/* gk_run: a launch, and a resume after each yield, until the graph has finished. */
#include "base/error.h"
#include "base/op.h"
#include "base/thread_cancel.h"
#include "runtime/bind_check.h"
#include "runtime/launch.h"
#include "runtime/memory.h"
#include "runtime/status.h"
#include "runtime/wait.h"

static gk_result refuse_yield(const gk_graph *graph, const gk_status *status) {
  const gk_plan *plan = &graph->planned.plan;
  const bool has_flag = plan->nodes[gki_plan_label(plan, status->yielded)].flag != 0;
  return gk_fail(GK_ERROR_INVALID, "gk_run: graph %s yielded at %s (%d), and on_yield is NULL; give a function that %s",
                 plan->name, status->yielded_name, (int)status->yielded,
                 has_flag ? "fixes the cause and clears the flag" : "does there what the host is to do");
}

/* A failure of on_yield: with the message of the call in it that failed, if one did. */
static gk_result fail_on_yield(const gk_graph *graph, const char *name, int32_t label, gk_result answer) {
  const char *graph_name = graph->planned.plan.name;
  const gk_result result = gki_launch_final_result(answer);
  if (gki_failure() != GK_OK)
    return gki_fail_with_prefix(result, "gk_run: on_yield for %s (%d) of graph %s", name, (int)label, graph_name);
  if (result != answer)
    return gk_fail(result, "gk_run: on_yield for %s (%d) of graph %s answered %d, which is no failure of gk's; return "
                   "GK_OK or a GK_ERROR_", name, (int)label, graph_name, (int)answer);
  return gk_fail(result, "gk_run: on_yield for %s (%d) of graph %s answered %s", name, (int)label, graph_name,
                 gk_result_name(result));
}

/* Calls on_yield outside of the graph's call, so that it may bind, resize, read and write. *inside: whether this thread
 * is in the graph's call again. */
static gk_result call_on_yield(gk_graph *graph, gk_on_yield on_yield, void *user, const gk_status *status,
                               bool *inside) {
  const char *name = status->yielded_name;
  const int32_t label = status->yielded;
  if (!on_yield) return refuse_yield(graph, status);
  atomic_store(&graph->in_on_yield, true);
  gki_graph_leave(graph);
  *inside = false;
  gki_begin();
  const int cancel_state = gki_thread_cancel_disable(); /* else a cancelled thread would leave the graph in gk_run */
  const gk_result answer = on_yield(user, graph, status);
  gki_thread_cancel_restore(cancel_state);
  atomic_store(&graph->in_on_yield, false);
  if (answer != GK_OK) return fail_on_yield(graph, name, label, answer);
  const gk_result entered = gki_graph_enter(graph, "gk_run");
  *inside = entered == GK_OK;
  return entered;
}

static bool holds(const gki_bound *slot, const char *address) {
  const char *begin = slot->value.ptr;
  return begin && address >= begin && (size_t)(address - begin) < slot->capacity;
}

/* Whether a task may write the checkpoint's flag without regard to its old value. */
static bool writes_anew(const gk_graph *graph, const gk_node *node, uint32_t flag_slot, const char *flag) {
  const gk_plan *plan = &graph->planned.plan;
  for (uint32_t a = 0; a < node->arg_count; ++a) {
    const uint32_t slot = plan->args[node->args + a];
    const bool writes = node->op == GK_OP_KERNEL ? node->kernel->params[a].access == GK_ACCESS_OUT
                                                 : gki_op_is_call(node->op) || a == 0; /* of COPY, FILL: where to */
    if (writes && plan->slots[slot].type == GK_PTR && (slot == flag_slot || holds(&graph->slots[slot], flag)))
      return true;
  }
  return false;
}

/* Whether a task of the block, or an always-task in front of it, may write the flag anew in each launch. */
static bool is_written_anew(const gk_graph *graph, uint32_t checkpoint, const char *flag) {
  const gk_plan *plan = &graph->planned.plan;
  const uint32_t slot = plan->nodes[checkpoint].flag;
  for (uint32_t n = checkpoint + 1; n < plan->nodes[checkpoint].end; ++n)
    if (writes_anew(graph, &plan->nodes[n], slot, flag)) return true;
  for (uint32_t k = 0; k < plan->always_count && plan->always[k] < checkpoint; ++k)
    if (writes_anew(graph, &plan->nodes[plan->always[k]], slot, flag)) return true;
  return false;
}

/* After two yields in a row at the label, without a pass in between: refuses to resume if the same would happen again,
 * since the flag is set and nothing clears it. */
static gk_result refuse_stuck(gk_graph *graph, int32_t label) {
  const gk_plan *plan = &graph->planned.plan;
  const uint32_t at = gki_plan_label(plan, label);
  const gk_node *node = &plan->nodes[at];
  if (!node->flag)
    return gk_fail(GK_ERROR_DEVICE, "backend %s: graph %s was resumed at %s (%d) and yielded there at once, without a "
                   "flag", graph->device->backend->name, plan->name, node->name, (int)label);
  gk_result result = gki_bindings_check(graph, "gk_run");
  if (result != GK_OK) return result;
  const char *flag = (const char *)graph->slots[node->flag].value.ptr + node->offset;
  int32_t value = 0;
  if (is_written_anew(graph, at, flag)) return GK_OK;
  result = gki_device_copy(graph->device, GK_TO_HOST, &value, flag, sizeof value);
  if (result != GK_OK || value == 0) return result;
  return gk_fail(GK_ERROR_INVALID, "gk_run: graph %s yielded at %s (%d) twice without a pass in between, and its flag "
                 "in slot %u (%s) is still %d; clear it in on_yield, or by a task of the checkpoint's block (FILL, or "
                 "a kernel with `out`)", plan->name, node->name, (int)label, (unsigned)node->flag,
                 plan->slots[node->flag].name, (int)value);
}

/* The thread is in the graph's call before and, if *inside, after. */
static gk_result run(gk_graph *graph, gk_on_yield on_yield, void *user, bool *inside) {
  for (int32_t label = 0;;) {
    const gk_status *status = NULL;
    gk_result result = gki_launch_and_wait(graph, "gk_run", label, &graph->run_cancelled, &status);
    if (result != GK_OK) return result;
    gki_status_add(graph, label == 0);
    if (status->state != GK_YIELDED) return GK_OK;
    const bool again = label == status->yielded && gk_passes(status, 0) == 0;
    label = status->yielded;
    result = call_on_yield(graph, on_yield, user, status, inside);
    if (result == GK_OK && again) result = refuse_stuck(graph, label);
    if (result != GK_OK) return result;
  }
}

gk_result gk_run(gk_graph *graph, gk_on_yield on_yield, void *user, const gk_status **totals) {
  if (totals) *totals = NULL;
  gk_result result = gki_graph_enter(graph, "gk_run");
  if (result != GK_OK) return result;
  bool inside = true;
  if (!atomic_load(&graph->in_on_yield)) atomic_store(&graph->run_cancelled, false); /* else this call is refused */
  result = run(graph, on_yield, user, &inside);
  if (result == GK_OK && totals) *totals = &graph->totals.status;
  if (inside) gki_graph_leave(graph);
  return result;
}
