#include "runtime/ahead.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/trace.h"
#include "plan/node.h"
#include "plan/walk.inc"
#include "runtime/host_gated.h"
#include "runtime/tape.h"
#include <stdlib.h>
#include <string.h>

/* A tape takes far less than the seconds after which a desktop's watchdog ends work on the GPU. */
enum { FIRST_RUNS = 16, TAPE_MS = 100, MOST_TAPES = 2 /* under way */ };

typedef struct gki_ahead {
  gki_tape tape;
  uint32_t *start;  /* the launch's first state */
  uint32_t *before; /* by loop: passes in the last state */
  uint32_t limit;   /* most entries of a tape */
  uint64_t tape_ns; /* a tape should take at most this long */
  uint64_t run_ns;  /* mean time of a run in the slowest of the last tapes; decays */
} gki_ahead;

static uint64_t tape_ns(void) {
  const char *text = secure_getenv("GK_TAPE_MS");
  char *end = NULL;
  const long ms = text ? strtol(text, &end, 10) : 0;
  return (uint64_t)(ms > 0 && ms <= 100000 && !*end ? ms : TAPE_MS) * 1000000;
}

gk_result gki_ahead_make(gk_graph *graph) {
  const gk_plan *plan = &graph->planned.plan;
  if (gk_plan_points(plan, NULL) != GK_OK) return GK_ERROR_MEMORY;
  gki_ahead *ahead = graph->ahead = gki_arena_alloc(&graph->arena, 1, sizeof *ahead);
  const bool made = ahead && gki_tape_make(&ahead->tape, plan->points, &graph->arena);
  if (made) {
    ahead->start = gki_arena_alloc(&graph->arena, plan->points->state_count, sizeof *ahead->start);
    ahead->before = gki_arena_alloc(&graph->arena, plan->loop_count, sizeof *ahead->before);
  }
  if (!made || !ahead->start || !ahead->before)
    return gki_fail_memory("a graph's tape of runs", GKI_TAPE_RUNS * sizeof *ahead->tape.runs);
  ahead->limit = FIRST_RUNS;
  ahead->tape_ns = tape_ns();
  return GK_OK;
}

/* Limits the next tape to what fits into tape_ns if all of its runs come; at most doubles the limit. Limits are powers
 * of two, so that tapes are the same again and backends can keep what they made of them. */
static void limit_tape(gki_ahead *ahead, uint64_t ns, uint32_t ran) {
  ahead->run_ns -= ahead->run_ns / 8;
  if (ahead->run_ns < ns / ran) ahead->run_ns = ns / ran;
  const uint64_t fit = ahead->run_ns ? ahead->tape_ns / ahead->run_ns : GKI_TAPE_RUNS;
  const uint64_t most = ahead->limit < GKI_TAPE_RUNS / 2 ? 2 * ahead->limit : GKI_TAPE_RUNS;
  ahead->limit = 1;
  while (2 * (uint64_t)ahead->limit <= (fit < most ? fit : most)) ahead->limit *= 2;
}

/* Waits for what was enqueued before the launch, as on a stream of the caller's. */
static gk_result await_earlier_work(gk_graph *graph) {
  const gk_backend *backend = graph->device->backend;
  const uint32_t no_run = GK_NONE, *state;
  const gk_result result = backend->ahead(graph->state, &no_run, 1);
  return result == GK_OK ? backend->state(graph->state, &state) : result;
}

/* Calls the functions of CALL_HOSTs at which lanes wait. They are in a tape only then. All that was enqueued in the
 * launch has ended. */
static gk_result call_hosts(gk_graph *graph, const gk_launch_args *launch, bool is_first) {
  const gki_tape *tape = &graph->ahead->tape;
  gk_result result = GK_OK;
  for (uint32_t k = 0; k < tape->count && result == GK_OK; ++k) {
    const uint32_t run = tape->runs[k] & ~GK_AHEAD_BESIDE;
    if (tape->runs[k] == GK_NONE || !gki_is_host_run(&graph->planned.plan, run)) continue;
    if (is_first) result = await_earlier_work(graph);
    is_first = false;
    gki_trace_begin_run(&graph->planned.plan, run);
    if (result == GK_OK) result = gki_call_host(graph, launch, run);
    gki_trace_end();
  }
  return result;
}

/* Enqueues the tape. If that was cut, also enqueues the next one, unless the backend takes only one. */
static gk_result enqueue(gk_graph *graph, uint32_t *under_way) {
  gki_ahead *ahead = graph->ahead;
  gk_result result = GK_OK;
  *under_way = 0;
  for (; result == GK_OK && ahead->tape.count; gki_tape_go_on(&ahead->tape, ahead->limit)) {
    gki_trace_begin(ahead->tape.count, "enqueue runs");
    result = graph->device->backend->ahead(graph->state, ahead->tape.runs, ahead->tape.count);
    gki_trace_end();
    if (result == GK_OK) ++*under_way;
    if (!ahead->tape.cut || *under_way == MOST_TAPES) break;
  }
  return result == GK_NOT_READY && *under_way ? GK_OK : result;
}

/* Detects a state that a kernel has overwritten. has_moved: the state shows progress since the one before. */
static gk_result check_state(const gk_graph *graph, const uint32_t *state, bool has_moved) {
  const gk_points *points = graph->planned.plan.points;
  bool is_valid = has_moved;
  for (uint32_t k = 0; k < points->lane_count; ++k) {
    const uint32_t lane = GKW_LANES + k * GKW_LANE_WORDS, at = state[lane + GKW_AT];
    is_valid = is_valid && at <= points->end && at % GKW_WORDS == 0 &&
               (at == 0 || points->table[at + GKW_LANE] == lane); /* 0: the lane was never needed */
  }
  if (is_valid && (state[GKW_YIELDED] == 0 || state[GKW_STOPPED])) return GK_OK;
  return gk_fail(GK_ERROR_DEVICE, "backend %s: its state of a launch of graph %s can't be, so something wrote over it: "
                 "look for a kernel that writes beyond its own memory, and close the device",
                 graph->device->backend->name, graph->planned.plan.name);
}

/* Enqueues tapes from a state on, and waits for the state behind them. */
static gk_result advance(gk_graph *graph, const gk_launch_args *launch, const uint32_t **state) {
  gki_ahead *ahead = graph->ahead;
  const uint32_t ran = (*state)[GKW_RAN], due = (*state)[GKW_DUE];
  uint32_t under_way;
  gki_tape_fill(&ahead->tape, *state, ahead->limit);
  gk_result result = call_hosts(graph, launch, *state == ahead->start);
  if (result != GK_OK) return result;
  const uint64_t begin = gki_now_ns();
  result = enqueue(graph, &under_way);
  gki_trace_begin(0, "wait for the device");
  for (; under_way && result == GK_OK; --under_way) result = graph->device->backend->state(graph->state, state);
  gki_trace_end();
  if (result == GK_OK) result = check_state(graph, *state, due || (*state)[GKW_RAN] != ran);
  if (result != GK_OK) return result;
  if ((*state)[GKW_RAN] != ran) limit_tape(ahead, gki_now_ns() - begin, (*state)[GKW_RAN] - ran);
  gki_tape_learn(&ahead->tape, *state);
  return GK_OK;
}

gk_result gki_ahead_run(gk_graph *graph, const gk_launch_args *launch, gk_launch_result *result) {
  gki_ahead *ahead = graph->ahead;
  const gk_points *points = graph->planned.plan.points;
  gk_launch_args args = *launch;
  const uint32_t *state = args.state = ahead->start;
  gk_points_start(points, launch, ahead->start);
  memset(ahead->before, 0, points->plan->loop_count * sizeof *ahead->before);
  gk_result answer = graph->device->backend->launch(graph->state, &args);
  if (answer != GK_OK) return answer;
  while (answer == GK_OK && !gk_points_over(points, state)) {
    answer = advance(graph, launch, &state);
    if (answer == GK_OK) gk_points_add(points, state, ahead->before, launch, result);
  }
  /* Also after a failure, since work under way still uses the values. */
  const gk_result end = graph->device->backend->state(graph->state, NULL);
  return answer == GK_OK ? end : answer;
}
