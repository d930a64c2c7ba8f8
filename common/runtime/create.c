/* Creating and destroying graphs: a list is checked and planned, its kernels are made ready, the backend lowers it. */
#include "runtime/create.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/lifetime.h"
#include "base/registry.h"
#include "base/thread_cancel.h"
#include "base/trace.h"
#include "base/within.h"
#include "check/check.h"
#include "gk_ahead.h"
#include "list/line_name.h"
#include "runtime/ahead.h"
#include "runtime/launch.h"
#include "runtime/resize.h"
#include "runtime/slots.h"
#include "runtime/status.h"
#include "runtime/wait.h"
#include <sched.h>

/* Frees the backend's part and the memory, so that the graph holds nothing of the device. */
static void detach(gk_graph *graph) {
  gk_device *device = graph->device;
  if (!device) return;
  if (graph->forks != gki_forks) { /* in a forked child, where only the device frees memory */
    if (graph->lowered && device->backend->bits & GK_BACKEND_FORKED) device->backend->drop(graph->state);
    graph->lowered = false;
    graph->device = NULL;
    return;
  }
  gki_launches_end(graph);
  atomic_store(&graph->stoppable, false);
  while (atomic_load(&graph->cancelling) > 0) sched_yield(); /* threads in gk_cancel, which takes no lock */
  if (graph->lowered) device->backend->drop(graph->state);
  graph->lowered = false;
  gki_slots_free(graph);
  graph->device = NULL;
}

/* Used after a fork: a thread of the parent may hold the copied lock of the device, which is then never released. */
GKI_PROCESS_LOCK(forked_lock)

/* A thread of the parent may have changed the list during the fork. Backward links may then be wrong. Forward links are
 * right, since each changes by one store. */
static gk_graph **link_in_child(gk_graph *graph) {
  gk_graph **link = &graph->device->graphs;
  while (*link && *link != graph) link = &(*link)->next_of_device;
  return *link ? link : NULL;
}

static void unlink_graph(gk_graph *graph) {
  gk_device *device = graph->device;
  if (!device) return;
  const bool forked = graph->forks != gki_forks;
  pthread_mutex_t *lock = forked ? &forked_lock : &device->lock;
  pthread_mutex_lock(lock);
  gk_graph **link = forked ? link_in_child(graph) : graph->link_of_device;
  if (link) {
    *link = graph->next_of_device;
    if (graph->next_of_device) graph->next_of_device->link_of_device = link;
    graph->link_of_device = NULL;
  }
  pthread_mutex_unlock(lock);
}

static void link_graph(gk_graph *graph) {
  gk_device *device = graph->device;
  pthread_mutex_lock(&device->lock);
  graph->next_of_device = device->graphs;
  graph->link_of_device = &device->graphs;
  if (device->graphs) device->graphs->link_of_device = &graph->next_of_device;
  __atomic_store_n(&device->graphs, graph, __ATOMIC_RELEASE); /* a child process then finds a complete list */
  pthread_mutex_unlock(&device->lock);
}

void gki_graphs_detach(gk_device *device) {
  while (device->graphs) {
    gk_graph *graph = device->graphs;
    unlink_graph(graph);
    detach(graph);
  }
}

void gk_graph_destroy(gk_graph *graph) {
  gki_begin();
  if (!graph || gki_lifetime_check(graph, "gk_graph_destroy") != GK_OK) return;
  const bool is_here = graph->device && graph->forks == gki_forks; /* a forked process doesn't run the parent's jobs */
  if (is_here && gki_refuse_within(&graph->device->worker, "gk_graph_destroy") != GK_OK) return;
  if (atomic_load(&graph->in_on_yield)) {
    gk_fail(GK_ERROR_INVALID, "gk_graph_destroy: graph %s is in gk_run, which called on_yield; destroy it when gk_run "
            "has returned", graph->planned.plan.name);
    return;
  }
  const int cancel_state = gki_thread_cancel_disable();
  gki_lifetime_end(graph, "graph", graph->planned.plan.name, "destroyed");
  unlink_graph(graph);
  detach(graph);
  gk_host_free(graph->state);
  gk_host_free(graph->failed_message);
  gk_host_free(graph->first_error_message);
  gki_arena_free(&graph->arena);
  gk_points_free(graph->planned.plan.points);
  gki_plan_free(&graph->planned);
  gk_host_free(graph);
  gki_memory_drop();
  gki_thread_cancel_restore(cancel_state);
}

static gk_result lower_by(gk_graph *graph, const gk_lower_into *into, void *const *code) {
  const gk_device *device = graph->device;
  const gk_plan *plan = &graph->planned.plan;
  gki_trace_begin(0, "lower");
  const gk_result result = into ? into->lower(device->state, graph->state, plan, code, &graph->mode, into->data)
                               : device->backend->lower(device->state, graph->state, plan, code, &graph->mode);
  gki_trace_end();
  if (result == GK_OK && graph->mode == GK_MODE_NATIVE) return gki_plan_refuse_host(plan, device->backend->name);
  return gki_answer(device->backend, "lower", result);
}

static gk_result lower(gk_graph *graph, const gk_lower_into *into) {
  gk_device *device = graph->device;
  const gk_plan *plan = &graph->planned.plan;
  void **code = gki_array(plan->node_count, sizeof *code, "the kernels' code");
  gk_result result = code ? GK_OK : GK_ERROR_MEMORY;
  for (uint32_t k = 0; k < plan->node_count && result == GK_OK; ++k)
    if (plan->nodes[k].op == GK_OP_KERNEL) {
      result = gki_device_code(device, plan->nodes[k].kernel, &code[k]);
      if (result != GK_OK)
        gk_fail(result, "task %u (%s): backend %s could not make the kernel ready and didn't say why",
                (unsigned)plan->nodes[k].source, plan->nodes[k].name, device->backend->name);
    }
  if (result == GK_OK) {
    graph->state = gki_array(1, device->backend->graph_bytes, "a backend's graph");
    graph->lowered = graph->state != NULL;
    result = graph->state ? lower_by(graph, into, code) : GK_ERROR_MEMORY;
    if (result != GK_OK)
      gk_fail(result, "backend %s could not lower graph %s and didn't say why", device->backend->name, plan->name);
  }
  gk_host_free(code);
  return result;
}

/* Refuses a module that lacks an entry of its mode. */
static gk_result refuse_mode(const gk_graph *graph) {
  const gk_backend *b = graph->device->backend;
  bool complete = graph->mode == GK_MODE_IN_PROCESS ? b->run != NULL
                  : graph->mode == GK_MODE_NATIVE   ? b->launch && b->wait
                  : graph->mode == GK_MODE_BATCHED  ? b->launch && b->submit && b->read_flag
                  : graph->mode == GK_MODE_AHEAD    ? b->launch && b->ahead && b->state
                                                    : false;
  if (complete) return GK_OK;
  return gk_fail(GK_ERROR_UNSUPPORTED, "backend %s chose mode %d for graph %s and lacks the entries for it", b->name,
                 (int)graph->mode, graph->planned.plan.name);
}

static gk_result plan_list(gk_graph *graph, const gk_list *list, uint32_t bits) {
  gki_blocks blocks = {0};
  gki_trace_begin(0, "check and plan");
  gk_result result = gki_blocks_read(&blocks, list);
  if (result == GK_OK) result = gki_check(&blocks, graph->device->backend, NULL, NULL);
  if (result == GK_OK) result = gki_plan_make(&graph->planned, &blocks, graph->device->backend, bits);
  gki_blocks_free(&blocks);
  gki_trace_end();
  return result;
}

static gk_result make_slots(gk_graph *graph) {
  gki_trace_begin(0, "slots");
  const gk_result result = gki_slots_make(graph);
  gki_trace_end();
  return result;
}

static gk_result make(gk_graph *graph, const gk_list *list, uint32_t bits, const gk_lower_into *into) {
  gk_result result = plan_list(graph, list, bits);
  if (result == GK_OK) result = lower(graph, into);
  if (result == GK_OK) result = refuse_mode(graph);
  if (result == GK_OK) result = make_slots(graph);
  if (result == GK_OK) result = gki_queue_make(graph);
  if (result == GK_OK) result = gki_passes_make(graph);
  if (result == GK_OK) result = gki_status_make(graph);
  if (result == GK_OK && graph->mode == GK_MODE_AHEAD) result = gki_ahead_make(graph);
  return result;
}

static gk_result create(gk_device *device, const gk_list *list, uint32_t bits, const gk_lower_into *into,
                        gk_graph **created) {
  gk_graph *graph = gki_lifetime_begin(sizeof *graph, "a graph");
  if (!graph) return GK_ERROR_MEMORY;
  gki_memory_hold(); /* the graph may outlive its device */
  atomic_flag_clear(&graph->in_call);
  graph->device = device;
  graph->forks = gki_forks;
  graph->external = into != NULL;
  graph->arm_call = into ? into->arm : NULL;
  const int cancel_state = gki_thread_cancel_disable();
  gki_trace_begin(0, "create %s", list && list->abi == GK_ABI ? gki_list_name(list) : "what is no list");
  gk_result result = make(graph, list, bits, into);
  gki_trace_end();
  gki_thread_cancel_restore(cancel_state);
  if (result != GK_OK) {
    gk_graph_destroy(graph);
    return result;
  }
  atomic_store(&graph->stoppable, true);
  link_graph(graph);
  gk_log(GK_LOG_INFO, "graph %s: %u nodes in %u runs, %u loops, %u checkpoints", graph->planned.plan.name,
         (unsigned)graph->planned.plan.node_count, (unsigned)graph->planned.plan.run_count,
         (unsigned)graph->planned.plan.loop_count, (unsigned)graph->planned.plan.checkpoint_count);
  *created = graph;
  return GK_OK;
}

gk_result gk_graph_create_into(gk_device *device, const gk_list *list, uint32_t bits, const gk_lower_into *into,
                               gk_graph **created) {
  gki_begin();
  return create(device, list, bits, into, created);
}

gk_result gk_graph_create(gk_device *device, const gk_list *list, uint32_t bits, gk_graph **created) {
  enum { known = GK_HOST_GATED | GK_ISOLATE | GK_CANCELLABLE | GK_NONBLOCKING };
  gki_begin();
  if (created) *created = NULL;
  if (!created) return gk_fail(GK_ERROR_INVALID, "gk_graph_create: nowhere to put the graph (NULL)");
  gk_result result = gki_device_refuse(device, "gk_graph_create");
  if (result != GK_OK) return result;
  if (bits & ~(uint32_t)known)
    return gk_fail(GK_ERROR_INVALID,
                   "gk_graph_create: bits 0x%x are unknown; there are GK_HOST_GATED, GK_ISOLATE, GK_CANCELLABLE, "
                   "GK_NONBLOCKING", (unsigned)(bits & ~(uint32_t)known));
  return create(device, list, bits, NULL, created);
}
