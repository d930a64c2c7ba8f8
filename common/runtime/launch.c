/* Launching: one hand-over per launch, filled in place, with nothing allocated and nobody waited for. */
#include "base/cancel.h"
#include "base/lifetime.h"
#include "base/registry.h"
#include "base/trace.h"
#include "runtime/graph.h"
#include <stdio.h>
#include <string.h>

static gki_launch *launch_at(gk_graph *graph, uint64_t number) { return &graph->queue[(number - 1) % graph->depth]; }

/* ---- on the worker's thread -------------------------------------------------------------------------------------- */

static void keep_message(gki_launch *launch) {
  if (launch->result == GK_OK || launch->result == GK_NOT_READY) return;
  const gk_graph *graph = launch->graph;
  gk_fail(launch->result, "backend %s failed to run graph %s and didn't say why", graph->device->backend->name,
          graph->planned.plan.name);
  size_t length = strlen(gk_error());
  if (length >= sizeof launch->message) length = sizeof launch->message - 1;
  memcpy(launch->message, gk_error(), length);
  launch->message[length] = 0;
}

/* A launch that is over is ready, whatever a library call answered: else gk_poll would say for ever that it runs. */
static gk_result ended(gk_result result) { return gki_is_answer(result) ? result : GK_ERROR_INVALID; }

static bool is_node(const gk_plan *plan, uint32_t node, gk_op op, gk_op other) {
  return node < plan->node_count && (plan->nodes[node].op == op || plan->nodes[node].op == other);
}

gk_result gki_judge_arrays(const gk_graph *graph, gk_record *record, const gk_record *given) {
  if (record->passes == given->passes && record->hit_bound == given->hit_bound && record->ran == given->ran)
    return GK_OK;
  *record = *given;
  return gk_fail(GK_ERROR_DEVICE, "backend %s: its record of a launch of graph %s has other arrays than it was given",
                 graph->device->backend->name, graph->planned.plan.name);
}

/* What a backend says of a launch that ended well is what its user sees. */
static gk_result judge_record(gki_launch *launch) {
  const gk_plan *plan = &launch->graph->planned.plan;
  const gk_record *record = &launch->record;
  const gk_result result = gki_judge_arrays(launch->graph, &launch->record, &launch->blank);
  if (result != GK_OK) return result;
  if ((unsigned)record->state <= GK_CANCELLED && (unsigned)record->applied <= GK_BY_RECORDING &&
      (record->state != GK_YIELDED || is_node(plan, record->yielded, GK_OP_CHECKPOINT, GK_OP_CHECKPOINT)) &&
      (record->limit == 0 || is_node(plan, record->limit, GK_OP_WHILE, GK_OP_DO_WHILE)))
    return GK_OK;
  return gk_fail(GK_ERROR_DEVICE, "backend %s: its record of a launch of graph %s can't be: state %d, yielded at "
                 "node %u, limit at node %u, applied %d", launch->graph->device->backend->name, plan->name,
                 (int)record->state, (unsigned)record->yielded, (unsigned)record->limit, (int)record->applied);
}

/* A launch before failed, and what it was to take over may not have reached the device: this one, which may have
 * been queued already, hands over everything. */
static void hand_again(gki_launch *launch) {
  uint32_t count = launch->graph->planned.plan.slot_count - 1;
  for (uint32_t k = 0; k < count; ++k) launch->changed[k] = k + 1;
  launch->hand_over.changed_count = count;
  if (count) launch->record.applied = GK_BY_TABLE;
}

/* As far as gk knows it just now. */
static void mark_end(const gki_launch *launch) {
  const gk_plan *plan = &launch->graph->planned.plan;
  const gk_record *record = &launch->record;
  const uint64_t number = launch->hand_over.launch;
  if (!gki_is_heard()) return;
  if (launch->result != GK_OK) gki_mark(number, "%s failed", plan->name);
  else if (record->state == GK_YIELDED)
    gki_mark(number, "%s yielded at %s", plan->name, plan->nodes[record->yielded].name);
  else if (record->state == GK_CANCELLED) gki_mark(number, "%s was cancelled", plan->name);
}

static void run_launch(gki_job *job) {
  gki_launch *launch = (gki_launch *)job;
  gk_graph *graph = launch->graph;
  const gk_backend *backend = graph->device->backend;
  const bool native = graph->mode == GK_MODE_NATIVE;
  gki_range_begin(launch->hand_over.launch, "%s %s", native ? "start" : "run", graph->planned.plan.name);
  gki_begin();
  if (atomic_exchange(&graph->stale, false)) hand_again(launch);
  switch (graph->mode) {
  case GK_MODE_IN_PROCESS: launch->result = backend->run(graph->state, &launch->hand_over, &launch->record); break;
  case GK_MODE_BATCHED: launch->result = gki_batched_run(graph, &launch->hand_over, &launch->record); break;
  case GK_MODE_NATIVE: launch->result = backend->launch(graph->state, &launch->hand_over); break;
  }
  launch->result = ended(launch->result);
  if (launch->result == GK_OK && !native) launch->result = judge_record(launch);
  if (launch->result != GK_OK) atomic_store(&graph->stale, true);
  keep_message(launch);
  if (!native || launch->result != GK_OK) mark_end(launch);
  gki_range_end();
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

gk_result gki_queue_make(gk_graph *graph) {
  const gk_plan *plan = &graph->planned.plan;
  gki_arena *arena = &graph->arena;
  graph->depth = plan->can_yield ? 1 : GKI_QUEUE;
  graph->queue = gki_arena_take(arena, graph->depth, sizeof *graph->queue);
  graph->entries = gki_arena_take(arena, plan->loop_count, sizeof *graph->entries);
  graph->outcome_message = gk_obtain(sizeof graph->queue->message);
  if (!graph->queue || !graph->entries || !graph->outcome_message)
    return gki_fail_memory("a graph's queue of launches", graph->depth * sizeof *graph->queue);
  graph->outcome_message[0] = 0;
  for (uint32_t k = 0; k < graph->depth; ++k) {
    gki_launch *launch = &graph->queue[k];
    launch->graph = graph;
    launch->job.run = run_launch;
    atomic_init(&launch->job.done, true);
    launch->values = gki_arena_take(arena, plan->slot_count, sizeof *launch->values);
    launch->bytes = gki_arena_take_aligned(arena, graph->bytes_size, GKI_STRUCT_ALIGNMENT);
    launch->changed = gki_arena_take(arena, plan->slot_count, sizeof *launch->changed);
    launch->blank.passes = gki_arena_take(arena, plan->loop_count, sizeof *launch->blank.passes);
    launch->blank.hit_bound = gki_arena_take(arena, plan->loop_count, 1);
    launch->blank.ran = gki_arena_take(arena, plan->checkpoint_count, 1);
    if (graph->measured_count) launch->room = gki_arena_take(arena, plan->slot_count, sizeof *launch->room);
    if (!launch->values || !launch->bytes || !launch->changed || !launch->blank.passes || !launch->blank.hit_bound ||
        !launch->blank.ran || (graph->measured_count && !launch->room))
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
  return gk_fail(GK_ERROR_INVALID, "%s: graph %s has no checkpoint with label %d; %s%s", call, plan->name, (int)label,
                 used ? "it has " : "it has none; give 0, the top", names);
}

/* Takes note of launches that are over, in their order, up to one of them. GK_NOT_READY: it isn't, and mustn't block. A
 * native backend is asked once the worker has handed all launches over: its entries come one at a time. */
static gk_result settle(gk_graph *graph, uint64_t upto, bool block) {
  bool native = graph->mode == GK_MODE_NATIVE;
  uint64_t launched = atomic_load_explicit(&graph->launched, memory_order_relaxed);
  while (graph->settled < upto) {
    gki_launch *launch = launch_at(graph, graph->settled + 1);
    gki_job *job = native ? &launch_at(graph, launched)->job : &launch->job;
    if (block) gki_worker_wait(&graph->device->worker, job);
    else if (!atomic_load_explicit(&job->done, memory_order_acquire)) return GK_NOT_READY;
    const bool asked = native && launch->result == GK_OK;
    if (asked) {
      gki_begin();
      const int cancel = gki_cancel_hold();
      launch->result = graph->device->backend->wait(graph->state, block, &launch->record);
      gki_cancel_let_go(cancel);
      if (launch->result == GK_ERROR_BUSY) { /* it can't be asked now, which says nothing about the launch */
        gk_fail(GK_ERROR_BUSY, "backend %s can't be asked now and didn't say why", graph->device->backend->name);
        launch->result = GK_OK;
        return gki_failure();
      }
      if (block || launch->result != GK_NOT_READY) launch->result = ended(launch->result);
      if (launch->result == GK_OK) launch->result = judge_record(launch);
      keep_message(launch);
      gki_begin(); /* That failure isn't the one of the call at hand. */
      if (launch->result == GK_NOT_READY) {
        launch->result = GK_OK;
        return GK_NOT_READY;
      }
    }
    ++graph->settled;
    if (asked) mark_end(launch);
    if (native && launch->result != GK_OK) atomic_store(&graph->stale, true);
    if (launch->result == GK_OK || graph->outcome != GK_OK) continue;
    graph->outcome = launch->result;
    memcpy(graph->outcome_message, launch->message, sizeof launch->message);
  }
  return GK_OK;
}

static gk_result wait_for(gk_graph *graph, uint64_t launched) {
  gki_range_begin(launched, "wait for %s", graph->planned.plan.name);
  const gk_result result = settle(graph, launched, true);
  gki_range_end();
  return result;
}

/* Of a graph that the caller launches: he has to, and to ask until that is over. */
static gk_result refuse_armed(gk_graph *graph, const char *call, uint64_t launched) {
  const char *name = graph->planned.plan.name;
  if (launched > graph->told && settle(graph, launched, false) != GK_OK) gki_begin();
  if (graph->planned.plan.can_yield && launched > graph->told)
    return gk_fail(GK_ERROR_BUSY, "%s: graph %s was armed, can yield, and gk_poll hasn't told yet how that launch "
                   "ended; launch your exec if you didn't, and call gk_poll once that is done", call, name);
  if (launched >= graph->depth && graph->settled < launched + 1 - graph->depth)
    return gk_fail(GK_ERROR_BUSY, "%s: %u launches of graph %s are armed and not over; launch your exec if you "
                   "didn't, and wait for it", call, (unsigned)graph->depth, name);
  return GK_OK;
}

/* The place in the queue for the next launch, or why there is none. */
static gk_result refuse_busy(gk_graph *graph, const char *call, uint64_t launched) {
  const char *name = graph->planned.plan.name;
  if (graph->outside) return refuse_armed(graph, call, launched);
  if (graph->planned.plan.can_yield && launched > graph->told)
    return gk_fail(GK_ERROR_BUSY, "%s: graph %s was launched and not waited for, and it can yield; call gk_wait first",
                   call, name);
  const bool full = launched >= graph->depth;
  const gk_result settled = full ? settle(graph, launched + 1 - graph->depth, false) : GK_OK;
  if (settled != GK_OK && settled != GK_NOT_READY) return settled;
  if (settled != GK_OK)
    return gk_fail(GK_ERROR_BUSY,
                   "%s: %u launches of graph %s are under way, and no more are queued; call gk_wait first", call,
                   (unsigned)graph->depth, name);
  return GK_OK;
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
    launch->room[graph->measured[k]] = graph->slots[graph->measured[k]].room;
  gk_record *record = &launch->record;
  *record = launch->blank;
  record->applied = graph->changed_count ? GK_BY_TABLE : GK_UNCHANGED;
  memset(record->passes, 0, plan->loop_count * sizeof *record->passes);
  memset(record->hit_bound, 0, plan->loop_count);
  memset(record->ran, 0, plan->checkpoint_count);
  launch->result = GK_OK;
  __atomic_store_n(&launch->cancel, 0, __ATOMIC_RELAXED);
  launch->hand_over = (gk_hand_over){.target = target, .changed_count = graph->changed_count, .values = launch->values,
                                     .changed = launch->changed, .entries = graph->entries,
                                     .cancel = &launch->cancel, .applied = &record->applied, .room = launch->room};
  graph->changed_count = 0;
}

/* What its user puts on the stream next has to come behind the launch, so that mustn't wait in the device's line.
 * Launches of a graph follow each other all the same. */
static gk_result refuse_behind_others(gk_graph *graph, const char *call, uint64_t launched) {
  gki_job *before = launched ? &launch_at(graph, launched)->job : NULL;
  if (!before || atomic_load_explicit(&before->done, memory_order_acquire)) return GK_OK;
  if (graph->mode == GK_MODE_NATIVE)
    return gk_fail(GK_ERROR_BUSY, "%s: the launch of graph %s before this one waits for other work of the device; call "
                   "gk_wait first", call, graph->planned.plan.name);
  gki_worker_wait(&graph->device->worker, before);
  return GK_OK;
}

/* A launch that failed at once was none. */
static gk_result launch_here(gk_graph *graph, gki_launch *launch, uint64_t before) {
  const int cancel = gki_cancel_hold();
  run_launch(&launch->job);
  gki_cancel_let_go(cancel);
  if (launch->result == GK_OK) return GK_OK;
  atomic_store_explicit(&graph->launched, before, memory_order_relaxed);
  return gki_fail_with(launch->result, launch->message);
}

/* By the label's name, where there is one. */
static void begin_range(const gk_graph *graph, const char *what, int32_t label) {
  const gk_plan *plan = &graph->planned.plan;
  const uint64_t number = atomic_load_explicit(&graph->launched, memory_order_relaxed) + 1;
  const uint32_t target = label ? gki_plan_label(plan, label) : 0;
  if (target) gki_range_begin(number, "%s %s at %s", what, plan->name, plan->nodes[target].name);
  else gki_range_begin(number, "%s %s", what, plan->name);
}

static void log_launch(const gki_launch *launch) {
  const gk_plan *plan = &launch->graph->planned.plan;
  const gk_hand_over *told = &launch->hand_over;
  gk_log(GK_LOG_DEBUG, "graph %s: launch %llu from %s, %u slots bound anew", plan->name,
         (unsigned long long)told->launch, told->target ? plan->nodes[told->target].name : "the top",
         (unsigned)told->changed_count);
}

/* What both kinds of launches have in common, up to the hand-over. */
static gk_result prepare(gk_graph *graph, const char *call, int32_t label, bool here, gki_launch **prepared) {
  const uint64_t launched = atomic_load_explicit(&graph->launched, memory_order_relaxed);
  const uint32_t target = label ? gki_plan_label(&graph->planned.plan, label) : 0;
  gk_result result = label && !target ? gki_refuse_label(&graph->planned.plan, call, label)
                                      : refuse_busy(graph, call, launched);
  if (result == GK_OK) result = gki_slots_judge(graph, call);
  if (result == GK_OK && here) result = refuse_behind_others(graph, call, launched);
  if (result != GK_OK) return result;
  *prepared = launch_at(graph, launched + 1);
  fill(graph, *prepared, target);
  (*prepared)->hand_over.launch = launched + 1;
  return GK_OK;
}

/* Until there is a launch, whose outcome may be told. */
static gk_result note_refused(gk_graph *graph, gk_result result) {
  if (result != GK_OK && !atomic_load_explicit(&graph->launched, memory_order_relaxed))
    snprintf(graph->outcome_message, sizeof graph->queue->message, "%s", gk_error());
  return result;
}

/* On the caller's thread, whatever the device is at, and its failure is the answer: he is about to launch. */
static gk_result arm_now(gk_graph *graph, const char *call, int32_t label,
                         gk_result (*arm)(void *state, const gk_hand_over *launch, void *data), void *data) {
  gki_launch *launch = NULL;
  gk_result result = prepare(graph, call, label, false, &launch);
  if (result != GK_OK) return result;
  if (atomic_exchange(&graph->stale, false)) hand_again(launch);
  log_launch(launch);
  const int cancel = gki_cancel_hold();
  result = arm(graph->state, &launch->hand_over, data);
  gki_cancel_let_go(cancel);
  if (result != GK_OK) {
    atomic_store(&graph->stale, true);
    return result;
  }
  if (graph->told == launch->hand_over.launch - 1) graph->outcome = GK_OK;
  atomic_store_explicit(&graph->launched, launch->hand_over.launch, memory_order_relaxed);
  return GK_OK;
}

static gk_result refuse_inside(const gk_graph *graph, const char *call) {
  if (graph->outside) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "%s: graph %s is one of gk_graph_create, which isn't armed; call gk_launch", call,
                 graph->planned.plan.name);
}

gk_result gki_launch_armed(gk_graph *graph, const char *call, int32_t label,
                           gk_result (*arm)(void *state, const gk_hand_over *launch, void *data), void *data) {
  gk_result result = gki_graph_enter(graph, call);
  if (result != GK_OK) return result;
  if (gki_is_heard()) begin_range(graph, "arm", label);
  result = refuse_inside(graph, call);
  if (result == GK_OK) result = note_refused(graph, arm_now(graph, call, label, arm, data));
  gki_range_end();
  gki_graph_leave(graph);
  return result;
}

gk_result gki_launch_disarmed(gk_graph *graph, const char *call,
                              gk_result (*disarm)(void *state, uint64_t over, uint64_t *launched)) {
  gk_result result = gki_graph_enter(graph, call);
  if (result != GK_OK) return result;
  const uint64_t before = atomic_load_explicit(&graph->launched, memory_order_relaxed);
  uint64_t launched = before;
  result = refuse_inside(graph, call);
  const int cancel = gki_cancel_hold();
  if (result == GK_OK) result = disarm(graph->state, graph->settled, &launched);
  gki_cancel_let_go(cancel);
  if (launched != before) {
    atomic_store_explicit(&graph->launched, launched, memory_order_relaxed);
    atomic_store(&graph->stale, true);
  }
  gki_graph_leave(graph);
  return result;
}

static gk_result refuse_outside(const gk_graph *graph, const char *call, const char *instead) {
  return gk_fail(GK_ERROR_INVALID, "%s: graph %s is part of a graph of yours; %s", call, graph->planned.plan.name,
                 instead);
}

static gk_result start(gk_graph *graph, const char *call, int32_t label, bool on_stream, void *stream) {
  gk_result result = gki_graph_enter(graph, call);
  if (result != GK_OK) return result;
  if (gki_is_heard()) begin_range(graph, "launch", label);
  gk_device *device = graph->device;
  const bool here = on_stream || (device->backend->shares && device->backend->shares(device->state));
  const uint64_t launched = atomic_load_explicit(&graph->launched, memory_order_relaxed);
  gki_launch *launch = NULL;
  if (graph->outside) result = refuse_outside(graph, call, "call gk_cuda_arm and launch your exec");
  else if (on_stream && !(device->backend->bits & GK_BACKEND_STREAMS))
    result = gk_fail(GK_ERROR_UNSUPPORTED, "%s: backend %s has no streams; use gk_launch", call, device->backend->name);
  else if (device->backend->alive) result = device->backend->alive(device->state);
  if (result == GK_OK) result = prepare(graph, call, label, here, &launch);
  if (result == GK_OK) {
    launch->hand_over.on_stream = on_stream;
    launch->hand_over.stream = stream;
    atomic_store_explicit(&graph->launched, launch->hand_over.launch, memory_order_relaxed);
    log_launch(launch);
    if (here) result = launch_here(graph, launch, launched);
    else if (graph->mode == GK_MODE_NATIVE) gki_worker_hand(&device->worker, &launch->job);
    else gki_worker_post(&device->worker, &launch->job);
    if (result == GK_OK && graph->told == launched) graph->outcome = GK_OK;
  }
  note_refused(graph, result);
  gki_range_end();
  gki_graph_leave(graph);
  return result;
}

gk_result gk_launch(gk_graph *graph, int32_t label) { return start(graph, "gk_launch", label, false, NULL); }

gk_result gk_launch_on(gk_graph *graph, int32_t label, void *native_stream) {
  return start(graph, "gk_launch_on", label, true, native_stream);
}

static gk_result finish(gk_graph *graph, const char *call, bool block, const gk_status **status) {
  if (status) *status = NULL;
  gk_result result = gki_graph_enter(graph, call);
  if (result != GK_OK) return result;
  uint64_t launched = atomic_load_explicit(&graph->launched, memory_order_relaxed);
  if (graph->outside && block)
    result = refuse_outside(graph, call, "wait for your exec's launch and call gk_poll");
  else if (!launched && graph->outcome_message[0])
    result = gk_fail(GK_ERROR_INVALID, "%s: graph %s was not launched yet; its last launch was refused: %s", call,
                     graph->planned.plan.name, graph->outcome_message);
  else if (!launched)
    result = gk_fail(GK_ERROR_INVALID, "%s: graph %s was not launched yet; call %s first", call,
                     graph->planned.plan.name, graph->outside ? "gk_cuda_arm" : "gk_launch");
  else result = block ? wait_for(graph, launched) : settle(graph, launched, false);
  if (result == GK_OK) {
    graph->told = launched;
    if (graph->outcome != GK_OK) result = gki_fail_with(graph->outcome, graph->outcome_message);
    else {
      if (graph->status.launch != launched) gki_status_fill(graph, launched, &launch_at(graph, launched)->record);
      if (status) *status = &graph->status;
    }
  }
  gki_graph_leave(graph);
  return result;
}

gk_result gk_wait(gk_graph *graph, const gk_status **status) { return finish(graph, "gk_wait", true, status); }
gk_result gk_poll(gk_graph *graph, const gk_status **status) { return finish(graph, "gk_poll", false, status); }

/* ---- stopping ---------------------------------------------------------------------------------------------------- */

/* A launch that is over doesn't look at the word any more, and the next one clears it first: so it may be set blindly.
 */
static gk_result cancel_all(gk_graph *graph) {
  const gk_backend *backend = graph->device->backend;
  for (uint32_t k = 0; k < graph->depth; ++k) __atomic_store_n(&graph->queue[k].cancel, 1, __ATOMIC_RELAXED);
  if (graph->mode != GK_MODE_NATIVE || !backend->cancel) return GK_OK;
  return gki_answer(backend, "cancel", backend->cancel(graph->state));
}

static gk_result cancel_open(gk_graph *graph) {
  const gk_backend *backend = graph->device->backend;
  if (graph->mode == GK_MODE_NATIVE && !backend->cancel)
    return gk_fail(GK_ERROR_UNSUPPORTED, "gk_cancel: backend %s can't stop a launch", backend->name);
  gki_mark(0, "cancel %s", graph->planned.plan.name);
  const int cancel = gki_cancel_hold();
  const gk_result result = cancel_all(graph);
  gki_cancel_let_go(cancel);
  return result == GK_OK ? GK_OK : gk_fail(result, "gk_cancel: backend %s failed to and didn't say why", backend->name);
}

gk_result gk_cancel(gk_graph *graph) {
  gki_begin();
  if (!graph) return gk_fail(GK_ERROR_INVALID, "gk_cancel: there is no graph (NULL)");
  if (gki_refuse_dead(graph, "gk_cancel") != GK_OK) return GK_ERROR_INVALID;
  if (graph->forks != gki_forks) return gki_refuse_forked("gk_cancel", "the device of graph", graph->planned.plan.name);
  if (!(graph->planned.plan.bits & GK_CANCELLABLE))
    return gk_fail(GK_ERROR_UNSUPPORTED,
                   "gk_cancel: graph %s was created without GK_CANCELLABLE; create it with that bit",
                   graph->planned.plan.name);
  atomic_fetch_add(&graph->stoppers, 1); /* from here on the device isn't closed */
  gk_result result = GK_OK;
  if (atomic_load(&graph->stoppable) && atomic_load_explicit(&graph->launched, memory_order_relaxed))
    result = cancel_open(graph);
  atomic_fetch_sub(&graph->stoppers, 1);
  return result;
}

bool gki_launches_over(gk_graph *graph) {
  return settle(graph, atomic_load_explicit(&graph->launched, memory_order_relaxed), false) == GK_OK;
}

void gki_launches_handed(gk_graph *graph) {
  const uint64_t launched = atomic_load_explicit(&graph->launched, memory_order_relaxed);
  if (launched) gki_worker_wait(&graph->device->worker, &launch_at(graph, launched)->job);
}

void gki_launches_end(gk_graph *graph) {
  uint64_t launched = atomic_load_explicit(&graph->launched, memory_order_relaxed);
  if (graph->settled == launched) return;
  cancel_all(graph);
  wait_for(graph, launched);
}
