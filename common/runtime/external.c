/* Graphs that the caller launches, as part of a graph of its own: here they are armed, and polled for their end. */
#include "base/error.h"
#include "base/thread_cancel.h"
#include "base/trace.h"
#include "runtime/graph.h"
#include "runtime/launch.h"
#include "runtime/wait.h"
#include <string.h>

/* Runs on the caller's thread at once and returns its failure, since the caller's launch follows. */
static gk_result arm_now(gk_graph *graph, const char *call, int32_t label,
                         gk_result (*arm)(void *state, const gk_launch_args *launch, void *data), void *data) {
  gki_launch *launch = NULL;
  gk_result result = gki_launch_prepare(graph, call, label, false, &launch);
  if (result != GK_OK) return result;
  if (atomic_exchange(&graph->resend_slots, false)) gki_launch_send_all(launch);
  gki_launch_log(launch);
  const int cancel_state = gki_thread_cancel_disable();
  result = arm(graph->state, &launch->args, data);
  gki_thread_cancel_restore(cancel_state);
  if (result != GK_OK) {
    atomic_store(&graph->resend_slots, true);
    return result;
  }
  if (graph->reported == launch->args.launch - 1) graph->first_error = GK_OK;
  atomic_store_explicit(&graph->launched, launch->args.launch, memory_order_relaxed);
  return GK_OK;
}

static gk_result refuse_internal(const gk_graph *graph, const char *backend, const char *call) {
  const gk_result result = gki_graph_refuse_other(graph, backend, call);
  if (result != GK_OK || graph->external) return result;
  return gk_fail(GK_ERROR_INVALID, "%s: graph %s is one of gk_graph_create, which isn't armed; call gk_launch", call,
                 graph->planned.plan.name);
}

gk_result gk_graph_arm(gk_graph *graph, const char *backend, const char *call, int32_t label,
                       gk_result (*arm)(void *state, const gk_launch_args *launch, void *data), void *data) {
  gk_result result = gki_graph_enter(graph, call);
  if (result != GK_OK) return result;
  if (gki_trace_enabled()) gki_launch_begin_range(graph, "arm", label);
  result = refuse_internal(graph, backend, call);
  if (result == GK_OK) result = gki_launch_note_refused(graph, arm_now(graph, call, label, arm, data));
  gki_trace_end();
  gki_graph_leave(graph);
  return result;
}

gk_result gk_graph_disarm(gk_graph *graph, const char *backend, const char *call,
                          gk_result (*disarm)(void *state, uint64_t over, uint64_t *launched)) {
  gk_result result = gki_graph_enter(graph, call);
  if (result != GK_OK) return result;
  const uint64_t before = atomic_load_explicit(&graph->launched, memory_order_relaxed);
  uint64_t launched = before;
  result = refuse_internal(graph, backend, call);
  const int cancel_state = gki_thread_cancel_disable();
  if (result == GK_OK) result = disarm(graph->state, graph->retired, &launched);
  gki_thread_cancel_restore(cancel_state);
  if (launched != before) {
    atomic_store_explicit(&graph->launched, launched, memory_order_relaxed);
    atomic_store(&graph->resend_slots, true);
  }
  gki_graph_leave(graph);
  return result;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

typedef struct visit_job {
  gki_job job;
  void *state;
  gk_result (*visit)(void *state, void *data);
  void *data;
  gk_result result;
  char message[1024];
} visit_job;

static void run_visit(gki_job *job) {
  visit_job *v = (visit_job *)job;
  gki_begin();
  v->result = v->visit(v->state, v->data);
  if (v->result != GK_OK) gki_error_save(v->message, sizeof v->message);
}

gk_result gk_graph_state(gk_graph *graph, const char *backend, const char *call, int32_t label,
                         gk_result (*visit)(void *state, void *data), void *data) {
  gk_result result = gki_graph_enter(graph, call);
  if (result != GK_OK) return result;
  const gk_plan *plan = &graph->planned.plan;
  result = gki_graph_refuse_other(graph, backend, call);
  if (result == GK_OK && label && !gki_plan_label(plan, label)) result = gki_refuse_label(plan, call, label);
  if (result == GK_OK) {
    visit_job v = {.job.run = run_visit, .state = graph->state, .visit = visit, .data = data};
    gki_worker_run(&graph->device->worker, &v.job);
    result = v.result == GK_OK ? GK_OK : gki_fail_with(v.result, v.message);
  }
  gki_graph_leave(graph);
  return result;
}
