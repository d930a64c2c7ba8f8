/* Launching. Each launch has its place in the graph's queue, so nothing is allocated. A launch waits if all places are
 * taken, and a launch on a stream for the launch before it. */
#include "runtime/launch.h"
#include "base/error.h"
#include "base/lifetime.h"
#include "base/registry.h"
#include "base/thread_cancel.h"
#include "base/trace.h"
#include "runtime/ahead.h"
#include "runtime/bind_check.h"
#include "runtime/host_gated.h"
#include "runtime/wait.h"
#include <stdio.h>
#include <string.h>

/* ---- one launch, on the worker's or the caller's thread --------------------------------------------------------- */

void gki_launch_send_all(gki_launch *launch) {
  uint32_t count = launch->graph->planned.plan.slot_count - 1;
  for (uint32_t k = 0; k < count; ++k) launch->changed[k] = k + 1;
  launch->args.changed_count = count;
  if (count) launch->launch_result.applied = GK_BY_TABLE;
}

static void run_launch(gki_job *job) {
  gki_launch *launch = (gki_launch *)job;
  gk_graph *graph = launch->graph;
  const gk_backend *backend = graph->device->backend;
  const bool native = graph->mode == GK_MODE_NATIVE;
  gki_trace_begin(launch->args.launch, "%s %s", native ? "start" : "run", graph->planned.plan.name);
  gki_begin();
  if (atomic_exchange(&graph->resend_slots, false)) gki_launch_send_all(launch);
  switch (graph->mode) {
  case GK_MODE_IN_PROCESS: launch->result = backend->run(graph->state, &launch->args, &launch->launch_result); break;
  case GK_MODE_AHEAD: launch->result = gki_ahead_run(graph, &launch->args, &launch->launch_result); break;
  case GK_MODE_BATCHED: launch->result = gki_host_gated_run(graph, &launch->args, &launch->launch_result); break;
  case GK_MODE_NATIVE: launch->result = backend->launch(graph->state, &launch->args); break;
  }
  launch->result = gki_launch_final_result(launch->result);
  if (launch->result == GK_OK && !native) launch->result = gki_launch_check_result(launch);
  if (launch->result != GK_OK) atomic_store(&graph->resend_slots, true);
  gki_launch_keep_message(launch);
  if (!native || launch->result != GK_OK) gki_launch_mark_end(launch);
  gki_trace_end();
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

gk_result gki_queue_make(gk_graph *graph) {
  const gk_plan *plan = &graph->planned.plan;
  gki_arena *arena = &graph->arena;
  graph->depth = plan->can_yield ? 1 : GKI_QUEUE;
  graph->queue = gki_arena_alloc(arena, graph->depth, sizeof *graph->queue);
  graph->entries = gki_arena_alloc(arena, plan->loop_count, sizeof *graph->entries);
  graph->counts = gki_arena_alloc(arena, plan->loop_count, sizeof *graph->counts);
  graph->first_error_message = gk_host_alloc(sizeof graph->queue->message);
  if (!graph->queue || !graph->entries || !graph->counts || !graph->first_error_message)
    return gki_fail_memory("a graph's queue of launches", graph->depth * sizeof *graph->queue);
  graph->first_error_message[0] = 0;
  for (uint32_t k = 0; k < graph->depth; ++k) {
    gki_launch *launch = &graph->queue[k];
    launch->graph = graph;
    launch->job.run = run_launch;
    atomic_init(&launch->job.done, true);
    launch->values = gki_arena_alloc(arena, plan->slot_count, sizeof *launch->values);
    launch->bytes = gki_arena_alloc_aligned(arena, graph->bytes_size, GKI_STRUCT_ALIGNMENT);
    launch->changed = gki_arena_alloc(arena, plan->slot_count, sizeof *launch->changed);
    launch->blank.passes = gki_arena_alloc(arena, plan->loop_count, sizeof *launch->blank.passes);
    launch->blank.hit_bound = gki_arena_alloc(arena, plan->loop_count, 1);
    launch->blank.ran = gki_arena_alloc(arena, plan->checkpoint_count, 1);
    if (graph->measured_count) launch->capacity = gki_arena_alloc(arena, plan->slot_count, sizeof *launch->capacity);
    if (!launch->values || !launch->bytes || !launch->changed || !launch->blank.passes || !launch->blank.hit_bound ||
        !launch->blank.ran || (graph->measured_count && !launch->capacity))
      return gki_fail_memory("a graph's queue of launches", plan->slot_count * sizeof *launch->values);
  }
  return GK_OK;
}

/* ---- launching --------------------------------------------------------------------------------------------------- */

gk_result gki_refuse_label(const gk_plan *plan, const char *call, int32_t label) {
  char names[2048] = "";
  size_t used = 0;
  for (uint32_t k = 0; k < plan->checkpoint_count && used < sizeof names; ++k) {
    const gk_node *node = &plan->nodes[plan->checkpoints[k]];
    used +=
        (size_t)snprintf(names + used, sizeof names - used, "%s%s (%d)", k ? ", " : "", node->name, (int)node->label);
  }
  return gk_fail(GK_ERROR_INVALID, "%s: graph %s has no checkpoint or YIELD with label %d; %s%s", call, plan->name,
                 (int)label, used ? "it has " : "it has none; give 0, the top", names);
}

/* For a graph that the caller launches: refuses to arm it while an earlier arming is open. */
static gk_result refuse_armed(gk_graph *graph, const char *call, uint64_t launched) {
  const char *name = graph->planned.plan.name;
  if (launched > graph->reported && gki_launches_retire(graph, launched, false) != GK_OK) gki_begin();
  if (graph->planned.plan.can_yield && launched > graph->reported)
    return gk_fail(GK_ERROR_BUSY, "%s: graph %s was armed, can yield, and gk_poll hasn't told yet how that launch "
                   "ended; launch your exec if you didn't, and call gk_poll once that is done", call, name);
  if (launched >= graph->depth && graph->retired < launched + 1 - graph->depth)
    return gk_fail(GK_ERROR_BUSY, "%s: %u launches of graph %s are armed and not over; launch your exec if you "
                   "didn't, and wait for it", call, (unsigned)graph->depth, name);
  return GK_OK;
}

/* Waits until the oldest launch has ended, whose place the next one takes. */
static gk_result wait_for_place(gk_graph *graph, uint64_t oldest) {
  gki_trace_begin(oldest, "wait for a place for %s", graph->planned.plan.name);
  atomic_store(&graph->waiting, GKI_ONE_WAITS);
  const gk_result result = gki_launches_retire(graph, oldest, true);
  gki_trace_end();
  return result;
}

/* GK_OK: the queue has a place for the next launch. */
static gk_result find_place(gk_graph *graph, const char *call, uint64_t launched) {
  const char *name = graph->planned.plan.name;
  if (graph->external) return refuse_armed(graph, call, launched);
  if (graph->planned.plan.can_yield && launched > graph->reported)
    return gk_fail(GK_ERROR_BUSY, "%s: graph %s was launched and not waited for, and it can yield; call gk_wait first",
                   call, name);
  const bool full = launched >= graph->depth;
  const gk_result retired = full ? gki_launches_retire(graph, launched + 1 - graph->depth, false) : GK_OK;
  if (retired != GK_NOT_READY) return retired;
  if (!(graph->planned.plan.bits & GK_NONBLOCKING)) return wait_for_place(graph, launched + 1 - graph->depth);
  return gk_fail(GK_ERROR_BUSY,
                 "%s: %u launches of graph %s are under way, and no more are queued; call gk_wait first, or create it "
                 "without GK_NONBLOCKING", call, (unsigned)graph->depth, name);
}

static void fill(gk_graph *graph, gki_launch *launch, uint32_t target) {
  const gk_plan *plan = &graph->planned.plan;
  if (graph->bytes_size) memcpy(launch->bytes, graph->bytes, graph->bytes_size);
  for (uint32_t k = 1; k < plan->slot_count; ++k) {
    launch->values[k] = graph->slots[k].value;
    if (plan->slots[k].type == GK_BYTES) launch->values[k].ptr = launch->bytes + graph->slots[k].bytes_at;
  }
  for (uint32_t k = 0; k < graph->changed_count; ++k) {
    launch->changed[k] = graph->changed[k];
    graph->slots[graph->changed[k]].changed = false;
  }
  for (uint32_t k = 0; k < graph->measured_count; ++k)
    launch->capacity[graph->measured[k]] = graph->slots[graph->measured[k]].capacity;
  gk_launch_result *result = &launch->launch_result;
  *result = launch->blank;
  result->applied = graph->changed_count ? GK_BY_TABLE : GK_UNCHANGED;
  memset(result->passes, 0, plan->loop_count * sizeof *result->passes);
  memset(result->hit_bound, 0, plan->loop_count);
  memset(result->ran, 0, plan->checkpoint_count);
  launch->result = GK_OK;
  __atomic_store_n(&launch->cancel, 0, __ATOMIC_RELAXED);
  launch->args = (gk_launch_args){.target = target,
                                  .changed_count = graph->changed_count,
                                  .values = launch->values,
                                  .changed = launch->changed,
                                  .entries = graph->entries,
                                  .counts = graph->counts,
                                  .cancel = &launch->cancel,
                                  .applied = &result->applied,
                                  .capacity = launch->capacity};
  graph->changed_count = 0;
}

/* Work that the caller puts on the stream next must come after the launch, so the launch mustn't wait in the device's
 * queue. Launches of a graph still run in order. */
static gk_result refuse_behind_others(gk_graph *graph, const char *call, uint64_t launched) {
  gki_job *before = launched ? &gki_launch_at(graph, launched)->job : NULL;
  if (!before || atomic_load_explicit(&before->done, memory_order_acquire)) return GK_OK;
  if (graph->mode == GK_MODE_NATIVE)
    return gk_fail(GK_ERROR_BUSY, "%s: the launch of graph %s before this one waits for other work of the device; call "
                   "gk_wait first", call, graph->planned.plan.name);
  gki_worker_wait(&graph->device->worker, before);
  return GK_OK;
}

/* Runs a launch on the caller's thread. If it fails at once, it doesn't count. */
static gk_result launch_here(gk_graph *graph, gki_launch *launch, uint64_t before) {
  const int cancel_state = gki_thread_cancel_disable();
  run_launch(&launch->job);
  gki_thread_cancel_restore(cancel_state);
  if (launch->result == GK_OK) return GK_OK;
  atomic_store_explicit(&graph->launched, before, memory_order_relaxed);
  return gki_fail_with(launch->result, launch->message);
}

/* By the label's name, if it has one. */
void gki_launch_begin_range(const gk_graph *graph, const char *what, int32_t label) {
  const gk_plan *plan = &graph->planned.plan;
  const uint64_t number = atomic_load_explicit(&graph->launched, memory_order_relaxed) + 1;
  const uint32_t target = label ? gki_plan_label(plan, label) : 0;
  if (target) gki_trace_begin(number, "%s %s at %s", what, plan->name, plan->nodes[target].name);
  else gki_trace_begin(number, "%s %s", what, plan->name);
}

void gki_launch_log(const gki_launch *launch) {
  const gk_plan *plan = &launch->graph->planned.plan;
  const gk_launch_args *args = &launch->args;
  gk_log(GK_LOG_DEBUG, "graph %s: launch %llu from %s, %u slots bound anew", plan->name,
         (unsigned long long)args->launch, args->target ? plan->nodes[args->target].name : "the top",
         (unsigned)args->changed_count);
}

/* gk_cancel sees the launch in its place from here on. */
static void end_waiting(gk_graph *graph, gki_launch *launch) {
  if (atomic_load_explicit(&graph->waiting, memory_order_relaxed) == GKI_NONE_WAITS) return;
  if (atomic_exchange(&graph->waiting, GKI_NONE_WAITS) == GKI_ONE_IS_CANCELLED && launch)
    __atomic_store_n(&launch->cancel, 1, __ATOMIC_RELAXED);
}

/* The common part of both kinds of launches, until the launch is sent. */
gk_result gki_launch_prepare(gk_graph *graph, const char *call, int32_t label, bool here, gki_launch **prepared) {
  const uint64_t launched = atomic_load_explicit(&graph->launched, memory_order_relaxed);
  const uint32_t target = label ? gki_plan_label(&graph->planned.plan, label) : 0;
  gk_result result = label && !target ? gki_refuse_label(&graph->planned.plan, call, label)
                                      : find_place(graph, call, launched);
  if (result == GK_OK) result = gki_bindings_check(graph, call);
  if (result == GK_OK && here) result = refuse_behind_others(graph, call, launched);
  if (result == GK_OK) {
    *prepared = gki_launch_at(graph, launched + 1);
    fill(graph, *prepared, target);
    (*prepared)->args.launch = launched + 1;
  }
  end_waiting(graph, *prepared);
  return result;
}

/* Keeps the failure until a launch exists whose result can be reported. */
gk_result gki_launch_note_refused(gk_graph *graph, gk_result result) {
  if (result != GK_OK && !atomic_load_explicit(&graph->launched, memory_order_relaxed))
    gki_error_save(graph->first_error_message, sizeof graph->queue->message);
  return result;
}

static gk_result refuse_launch(const gk_graph *graph, const char *call) {
  char advice[128];
  snprintf(advice, sizeof advice, "call %s and launch your exec", graph->arm_call);
  return gki_refuse_external(graph, call, advice);
}

gk_result gki_graph_refuse_other(const gk_graph *graph, const char *backend, const char *call) {
  if (strcmp(graph->device->backend->name, backend) == 0) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "%s: the graph is one of backend %s; give one of a device of backend %s", call,
                 graph->device->backend->name, backend);
}

/* Whether this graph can be launched this way at all. gki_launch_prepare checks whether it can start now. of: NULL, or
 * the only backend with such launches. */
static gk_result admit(const gk_graph *graph, const char *of, const char *call, bool on_stream) {
  const gk_backend *backend = graph->device->backend;
  const gk_result result = of ? gki_graph_refuse_other(graph, of, call) : GK_OK;
  if (result != GK_OK) return result;
  if (graph->external) return refuse_launch(graph, call);
  if (atomic_load_explicit(&graph->in_on_yield, memory_order_relaxed))
    return gk_fail(GK_ERROR_INVALID, "%s: graph %s is in gk_run, which resumes it when on_yield returns; return GK_OK "
                   "from on_yield instead", call, graph->planned.plan.name);
  if (on_stream && !(backend->bits & GK_BACKEND_STREAMS))
    return gk_fail(GK_ERROR_UNSUPPORTED, "%s: backend %s has no streams; use gk_launch", call, backend->name);
  return backend->alive ? backend->alive(graph->device->state) : GK_OK;
}

/* How a launch is started. */
typedef struct start_way {
  const char *of;   /* NULL, or the only backend with such launches */
  bool on_stream;
  void *stream;
  bool waits;       /* the caller waits for the launch, so its thread may run the tasks */
  const atomic_bool *cancelled; /* NULL, or whether the launch is cancelled before it starts */
} start_way;

/* The launch is counted already. A concurrent gk_cancel is seen here, or sees the count and sets the launch's word
 * afterwards. */
static void take_cancel(gki_launch *launch, const atomic_bool *cancelled) {
  atomic_thread_fence(memory_order_seq_cst);
  __atomic_store_n(&launch->cancel, 0, __ATOMIC_SEQ_CST);
  if (atomic_load(cancelled)) __atomic_store_n(&launch->cancel, 1, __ATOMIC_SEQ_CST);
}

static gk_result enqueue(gk_graph *graph, gki_launch *launch, bool here, const start_way *way) {
  gki_worker *worker = &graph->device->worker;
  const uint64_t before = launch->args.launch - 1;
  gk_result result = GK_OK;
  gki_launch_log(launch);
  atomic_store_explicit(&graph->launched, launch->args.launch, memory_order_relaxed);
  if (way->cancelled) take_cancel(launch, way->cancelled);
  if (here) result = launch_here(graph, launch, before);
  else if (graph->mode == GK_MODE_NATIVE) gki_worker_run_or_post(worker, &launch->job);
  else if (way->waits) gki_worker_run(worker, &launch->job);
  else gki_worker_post(worker, &launch->job);
  if (result == GK_OK && graph->reported == before) graph->first_error = GK_OK;
  return result;
}

/* Within a call of the graph. */
static gk_result start(gk_graph *graph, const char *call, int32_t label, const start_way *way) {
  if (gki_trace_enabled()) gki_launch_begin_range(graph, "launch", label);
  const gk_device *device = graph->device;
  const bool here = way->on_stream || (device->backend->shares && device->backend->shares(device->state));
  gki_launch *launch = NULL;
  gk_result result = admit(graph, way->of, call, way->on_stream);
  if (result == GK_OK) result = gki_launch_prepare(graph, call, label, here, &launch);
  if (result == GK_OK) {
    launch->args.on_stream = way->on_stream;
    launch->args.stream = way->stream;
    result = enqueue(graph, launch, here, way);
  }
  gki_launch_note_refused(graph, result);
  gki_trace_end();
  return result;
}

static gk_result start_alone(gk_graph *graph, const char *call, int32_t label, const start_way *way) {
  gk_result result = gki_graph_enter(graph, call);
  if (result != GK_OK) return result;
  result = start(graph, call, label, way);
  gki_graph_leave(graph);
  return result;
}

gk_result gk_launch(gk_graph *graph, int32_t label) {
  return start_alone(graph, "gk_launch", label, &(start_way){0});
}

gk_result gk_launch_on(gk_graph *graph, int32_t label, void *native_stream) {
  return start_alone(graph, "gk_launch_on", label, &(start_way){.on_stream = true, .stream = native_stream});
}

gk_result gk_graph_launch(gk_graph *graph, const char *backend, const char *call, int32_t label, void *stream) {
  return start_alone(graph, call, label, &(start_way){.of = backend, .stream = stream});
}

gk_result gki_launch_and_wait(gk_graph *graph, const char *call, int32_t label, const atomic_bool *cancelled,
                              const gk_status **status) {
  const gk_result result = start(graph, call, label, &(start_way){.waits = true, .cancelled = cancelled});
  return result == GK_OK ? gki_launches_finish(graph, status) : result;
}

gk_result gk_launch_wait(gk_graph *graph, int32_t label, const gk_status **status) {
  if (status) *status = NULL;
  gk_result result = gki_graph_enter(graph, "gk_launch_wait");
  if (result != GK_OK) return result;
  result = gki_launch_and_wait(graph, "gk_launch_wait", label, NULL, status);
  gki_graph_leave(graph);
  return result;
}
