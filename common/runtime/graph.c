/* Entering and leaving the calls of a graph. */
#include "runtime/graph.h"
#include "base/error.h"
#include "base/lifetime.h"
#include "base/within.h"

gk_result gki_graph_enter(gk_graph *graph, const char *call) {
  gki_begin();
  if (!graph) return gk_fail(GK_ERROR_INVALID, "%s: there is no graph (NULL)", call);
  if (gki_lifetime_check(graph, call) != GK_OK) return GK_ERROR_INVALID;
  if (graph->forks != gki_forks) return gki_refuse_forked(call, "the device of graph", graph->planned.plan.name);
  if (graph->device && gki_refuse_within(&graph->device->worker, call) != GK_OK) return GK_ERROR_INVALID;
  if (atomic_flag_test_and_set_explicit(&graph->in_call, memory_order_acquire))
    return gk_fail(GK_ERROR_BUSY, "%s: another thread is in a call of graph %s; a graph is for one thread at a time",
                   call, graph->planned.plan.name);
  if (graph->device) return GK_OK;
  gk_fail(GK_ERROR_DEVICE, "%s: the device of graph %s was closed; destroy the graph", call, graph->planned.plan.name);
  gki_graph_leave(graph);
  return GK_ERROR_DEVICE;
}

void gki_graph_leave(gk_graph *graph) { atomic_flag_clear_explicit(&graph->in_call, memory_order_release); }
