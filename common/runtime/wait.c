#include "runtime/wait.h"
#include "base/error.h"
#include "base/lifetime.h"
#include "base/op.h"
#include "base/registry.h"
#include "base/thread_cancel.h"
#include "base/trace.h"
#include "runtime/cancel.h"
#include "runtime/status.h"
#include <string.h>

void gki_launch_keep_message(gki_launch *launch) {
  if (launch->result == GK_OK || launch->result == GK_NOT_READY) return;
  const gk_graph *graph = launch->graph;
  gk_fail(launch->result, "backend %s failed to run graph %s and didn't say why", graph->device->backend->name,
          graph->planned.plan.name);
  gki_error_save(launch->message, sizeof launch->message);
}

static bool is_node(const gk_plan *plan, uint32_t node, gk_op op, gk_op other) {
  return node < plan->node_count && (plan->nodes[node].op == op || plan->nodes[node].op == other);
}

gk_result gki_check_arrays(const gk_graph *graph, gk_launch_result *result, const gk_launch_result *given) {
  if (result->passes == given->passes && result->hit_bound == given->hit_bound && result->ran == given->ran)
    return GK_OK;
  *result = *given;
  return gk_fail(GK_ERROR_DEVICE, "backend %s: its result of a launch of graph %s has other arrays than it was given",
                 graph->device->backend->name, graph->planned.plan.name);
}

gk_result gki_launch_check_result(gki_launch *launch) {
  const gk_plan *plan = &launch->graph->planned.plan;
  gk_launch_result *result = &launch->launch_result;
  const gk_result failure = gki_check_arrays(launch->graph, result, &launch->blank);
  if (failure != GK_OK) return failure;
  if ((unsigned)result->state <= GK_CANCELLED && (unsigned)result->applied <= GK_BY_RECORDING &&
      (result->state != GK_YIELDED || is_node(plan, result->yielded, GK_OP_CHECKPOINT, GK_OP_YIELD)) &&
      (result->limit == 0 || (result->limit < plan->node_count && gki_op_is_loop(plan->nodes[result->limit].op))))
    return GK_OK;
  return gk_fail(GK_ERROR_DEVICE, "backend %s: its result of a launch of graph %s can't be: state %d, yielded at "
                 "node %u, limit at node %u, applied %d", launch->graph->device->backend->name, plan->name,
                 (int)result->state, (unsigned)result->yielded, (unsigned)result->limit, (int)result->applied);
}

/* Marks the end for a profiler, at the time when gk learns of it. */
void gki_launch_mark_end(const gki_launch *launch) {
  const gk_plan *plan = &launch->graph->planned.plan;
  const gk_launch_result *result = &launch->launch_result;
  const uint64_t number = launch->args.launch;
  if (!gki_trace_enabled()) return;
  if (launch->result != GK_OK) gki_trace_mark(number, "%s failed", plan->name);
  else if (result->state == GK_YIELDED)
    gki_trace_mark(number, "%s yielded at %s", plan->name, plan->nodes[result->yielded].name);
  else if (result->state == GK_CANCELLED) gki_trace_mark(number, "%s was cancelled", plan->name);
}

typedef enum retire_result { RETIRED, PENDING, CANT_ASK } retire_result;

/* For a started native launch: asks its backend whether it has ended, or waits until it has. */
static retire_result query_launch(gk_graph *graph, gki_launch *launch, bool block) {
  gki_begin();
  const int cancel_state = gki_thread_cancel_disable();
  launch->result = graph->device->backend->wait(graph->state, block, &launch->launch_result);
  gki_thread_cancel_restore(cancel_state);
  if (launch->result == GK_ERROR_BUSY) { /* gk can't ask now; the launch's state is unknown */
    gk_fail(GK_ERROR_BUSY, "backend %s can't be asked now and didn't say why", graph->device->backend->name);
    launch->result = GK_OK;
    return CANT_ASK;
  }
  if (block || launch->result != GK_NOT_READY) launch->result = gki_launch_final_result(launch->result);
  if (launch->result == GK_OK) launch->result = gki_launch_check_result(launch);
  gki_launch_keep_message(launch);
  gki_begin(); /* that failure isn't the current call's */
  if (launch->result != GK_NOT_READY) return RETIRED;
  launch->result = GK_OK;
  return PENDING;
}

/* Retires the next launch if it has ended. All started native launches must have been sent before. */
static retire_result retire_one(gk_graph *graph, uint64_t launched, bool block) {
  const bool native = graph->mode == GK_MODE_NATIVE;
  gki_launch *launch = gki_launch_at(graph, graph->retired + 1);
  gki_job *job = native ? &gki_launch_at(graph, launched)->job : &launch->job;
  if (block) gki_worker_wait(&graph->device->worker, job);
  else if (!atomic_load_explicit(&job->done, memory_order_acquire)) return PENDING;
  const bool asked = native && launch->result == GK_OK;
  const retire_result answer = asked ? query_launch(graph, launch, block) : RETIRED;
  if (answer != RETIRED) return answer;
  ++graph->retired;
  if (asked) gki_launch_mark_end(launch);
  if (native && launch->result != GK_OK) atomic_store(&graph->resend_slots, true);
  if (launch->result == GK_OK || graph->first_error != GK_OK) return RETIRED;
  graph->first_error = launch->result;
  memcpy(graph->first_error_message, launch->message, sizeof launch->message);
  return RETIRED;
}

gk_result gki_launches_retire(gk_graph *graph, uint64_t upto, bool block) {
  const uint64_t launched = atomic_load_explicit(&graph->launched, memory_order_relaxed);
  retire_result last = RETIRED;
  while (graph->retired < upto && last == RETIRED) last = retire_one(graph, launched, block);
  return last == RETIRED ? GK_OK : last == PENDING ? GK_NOT_READY : gki_failure();
}

static gk_result wait_for(gk_graph *graph, uint64_t launched) {
  gki_trace_begin(launched, "wait for %s", graph->planned.plan.name);
  const gk_result result = gki_launches_retire(graph, launched, true);
  gki_trace_end();
  return result;
}

gk_result gki_refuse_external(const gk_graph *graph, const char *call, const char *advice) {
  return gk_fail(GK_ERROR_INVALID, "%s: graph %s is part of a graph of yours; %s", call, graph->planned.plan.name,
                 advice);
}

static gk_result refuse_finish(const gk_graph *graph, const char *call, bool block, uint64_t launched) {
  const char *name = graph->planned.plan.name;
  if (graph->external && block) return gki_refuse_external(graph, call, "wait for your exec's launch and call gk_poll");
  if (launched) return GK_OK;
  if (graph->first_error_message[0])
    return gk_fail(GK_ERROR_INVALID, "%s: graph %s was not launched yet; its last launch was refused: %s", call, name,
                   graph->first_error_message);
  return gk_fail(GK_ERROR_INVALID, "%s: graph %s was not launched yet; call %s first", call, name,
                 graph->external ? graph->arm_call : "gk_launch");
}

/* Reports launches, which must all have ended. */
static gk_result report_launches(gk_graph *graph, uint64_t launched, const gk_status **status) {
  graph->reported = launched;
  if (graph->first_error != GK_OK) return gki_fail_with(graph->first_error, graph->first_error_message);
  const gki_launch *last = gki_launch_at(graph, launched);
  if (graph->last.status.launch != launched) gki_status_fill(graph, launched, &last->launch_result);
  if (status) *status = &graph->last.status;
  return GK_OK;
}

gk_result gki_launches_finish(gk_graph *graph, const gk_status **status) {
  const uint64_t launched = atomic_load_explicit(&graph->launched, memory_order_relaxed);
  const gk_result result = wait_for(graph, launched);
  return result == GK_OK ? report_launches(graph, launched, status) : result;
}

static gk_result finish(gk_graph *graph, const char *call, bool block, const gk_status **status) {
  if (status) *status = NULL;
  gk_result result = gki_graph_enter(graph, call);
  if (result != GK_OK) return result;
  const uint64_t launched = atomic_load_explicit(&graph->launched, memory_order_relaxed);
  result = refuse_finish(graph, call, block, launched);
  if (result == GK_OK && !block) result = gki_launches_retire(graph, launched, false);
  if (result == GK_OK) result = block ? gki_launches_finish(graph, status) : report_launches(graph, launched, status);
  gki_graph_leave(graph);
  return result;
}

gk_result gk_wait(gk_graph *graph, const gk_status **status) { return finish(graph, "gk_wait", true, status); }
gk_result gk_poll(gk_graph *graph, const gk_status **status) { return finish(graph, "gk_poll", false, status); }

bool gki_launches_over(gk_graph *graph) {
  return gki_launches_retire(graph, atomic_load_explicit(&graph->launched, memory_order_relaxed), false) == GK_OK;
}

void gki_launches_wait_sent(gk_graph *graph) {
  const uint64_t launched = atomic_load_explicit(&graph->launched, memory_order_relaxed);
  if (launched) gki_worker_wait(&graph->device->worker, &gki_launch_at(graph, launched)->job);
}

void gki_launches_end(gk_graph *graph) {
  uint64_t launched = atomic_load_explicit(&graph->launched, memory_order_relaxed);
  if (graph->retired == launched) return;
  gki_launches_cancel(graph);
  wait_for(graph, launched);
}
