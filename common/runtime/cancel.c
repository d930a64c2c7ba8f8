#include "runtime/cancel.h"
#include "base/error.h"
#include "base/lifetime.h"
#include "base/registry.h"
#include "base/thread_cancel.h"
#include "base/trace.h"

gk_result gki_launches_cancel(gk_graph *graph) {
  const gk_backend *backend = graph->device->backend;
  int waiting = GKI_ONE_WAITS;
  atomic_compare_exchange_strong(&graph->waiting, &waiting, GKI_ONE_IS_CANCELLED);
  for (uint32_t k = 0; k < graph->depth; ++k) __atomic_store_n(&graph->queue[k].cancel, 1, __ATOMIC_SEQ_CST);
  if ((graph->mode != GK_MODE_NATIVE && graph->mode != GK_MODE_AHEAD) || !backend->cancel) return GK_OK;
  return gki_answer(backend, "cancel", backend->cancel(graph->state));
}

static gk_result cancel_on_device(gk_graph *graph) {
  const gk_backend *backend = graph->device->backend;
  if (graph->mode == GK_MODE_NATIVE && !backend->cancel)
    return gk_fail(GK_ERROR_UNSUPPORTED, "gk_cancel: backend %s can't stop a launch", backend->name);
  gki_trace_mark(0, "cancel %s", graph->planned.plan.name);
  const int cancel_state = gki_thread_cancel_disable();
  const gk_result result = gki_launches_cancel(graph);
  gki_thread_cancel_restore(cancel_state);
  if (result == GK_OK) return GK_OK;
  return gk_fail(result, "gk_cancel: backend %s couldn't cancel and didn't say why", backend->name);
}

gk_result gk_cancel(gk_graph *graph) {
  gki_begin();
  if (!graph) return gk_fail(GK_ERROR_INVALID, "gk_cancel: there is no graph (NULL)");
  if (gki_lifetime_check(graph, "gk_cancel") != GK_OK) return GK_ERROR_INVALID;
  if (graph->forks != gki_forks) return gki_refuse_forked("gk_cancel", "the device of graph", graph->planned.plan.name);
  if (!(graph->planned.plan.bits & GK_CANCELLABLE))
    return gk_fail(GK_ERROR_UNSUPPORTED,
                   "gk_cancel: graph %s was created without GK_CANCELLABLE; create it with that bit",
                   graph->planned.plan.name);
  atomic_store(&graph->run_cancelled, true);
  atomic_fetch_add(&graph->cancelling, 1); /* the device isn't closed from here on */
  gk_result result = GK_OK;
  if (atomic_load(&graph->stoppable) && atomic_load(&graph->launched)) result = cancel_on_device(graph);
  atomic_fetch_sub(&graph->cancelling, 1);
  return result;
}
