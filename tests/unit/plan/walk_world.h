/* Drives the walker as a backend would: tasks and flags are callbacks, sections are walked in order or step by step at
 * random, and GK_STEP_LOOP is done by a small "device" that takes several passes by itself. */
#ifndef WALK_WORLD_H
#define WALK_WORLD_H
#include "unit/support/chance.h"
#include "plan/node.h"
#include "plan/plan.h"
#include "plan/walk.inc"
#include "runtime/tape.h"
#include "unit/support/test.h"

enum { TAKES_LOOP = 1 << GK_STEP_LOOP, TAKES_FORK = 1 << GK_STEP_FORK,
       TAKES_CHECKPOINT = 1 << GK_STEP_CHECKPOINT, TAKES_FLAG = 1 << GK_STEP_FLAG, TAKES_PASS = 1 << GK_STEP_PASS,
       TAKES_TAPES = 1 << 16 }; /* not the walker, but walk.inc, with tapes of runs */

typedef struct world {
  gki_blocks blocks;
  gki_planned planned;
  const gk_plan *plan;
  gk_launch_result record; /* of the last launch */
  uint64_t *entries, *counts;
  uint64_t *numbers;                               /* of TAKES_PASS, by loop */
  int32_t cancel;
  uint32_t takes;
  bool interleave;                                 /* sections step by step */
  bool deaf;                                       /* the device doesn't look whether it is cancelled */
  uint64_t random;
  long steps, step_limit;
  long checkpoint_steps;                           /* taken in all */
  const gk_points *points;                         /* of TAKES_TAPES */
  gki_arena arena;
  gki_tape tape;
  uint32_t *state, *before;
  bool whole;                                      /* tapes of any length, and no small budgets */
  uint32_t *held;                                  /* by node: 1 + the value that a step left for the walk; 0: none */
  long tapes, enqueued, executed, steps_taken;     /* in all */
  void (*execute)(struct world *, uint32_t node);
  int64_t (*flag)(struct world *, uint32_t node);
  void *user;
} world;

static void world_begin(world *w, const gk_list *list, uint32_t bits) {
  assert_int_equal(gki_blocks_read(&w->blocks, list), GK_OK);
  assert_int_equal(gki_plan_make(&w->planned, &w->blocks, NULL, bits), GK_OK);
  const gk_plan *plan = w->plan = &w->planned.plan;
  w->record.passes = calloc(plan->loop_count + 1, sizeof *w->record.passes);
  w->record.hit_bound = calloc(plan->loop_count + 1, 1);
  w->record.ran = calloc(plan->checkpoint_count + 1, 1);
  w->entries = calloc(plan->loop_count + 1, sizeof *w->entries);
  w->counts = calloc(plan->loop_count + 1, sizeof *w->counts);
  w->numbers = calloc(plan->loop_count + 1, sizeof *w->numbers);
  w->step_limit = 1000000;
  if (!(w->takes & TAKES_TAPES)) return;
  assert_ok(gk_points_make(plan, &w->points));
  assert_true(gki_tape_make(&w->tape, w->points, &w->arena));
  w->state = calloc(w->points->state_count, sizeof *w->state);
  w->before = calloc(plan->loop_count + 1, sizeof *w->before);
  w->held = calloc(plan->node_count, sizeof *w->held);
}

static void world_end(world *w) {
  gki_plan_free(&w->planned);
  gki_blocks_free(&w->blocks);
  free(w->record.passes);
  free(w->record.hit_bound);
  free(w->record.ran);
  free(w->entries);
  free(w->counts);
  free(w->numbers);
  gk_points_free(w->points);
  gki_arena_free(&w->arena);
  free(w->state);
  free(w->before);
  free(w->held);
}

static bool device_blocks(world *w, uint32_t at, uint32_t end);

static bool device_cancelled(world *w) {
  if (!w->cancel || w->deaf) return false;
  w->record.state = GK_CANCELLED;
  return true;
}

/* Whether the loop makes its first pass. A REPEAT keeps the count that it reads. */
static bool device_begins(world *w, uint32_t at) {
  const gk_node *node = &w->plan->nodes[at];
  if (node->op == GK_OP_DO_WHILE) return true;
  const int64_t value = node->count ? node->count : w->flag(w, at);
  if (node->op == GK_OP_WHILE) return value != 0;
  w->counts[node->loop] = value > 0 ? (uint64_t)value : 0;
  return value > 0;
}

static bool device_goes_on(world *w, uint32_t at, bool outermost) {
  const gk_node *node = &w->plan->nodes[at];
  if (node->op != GK_OP_REPEAT) return w->flag(w, at) != 0;
  return outermost || w->entries[node->loop] < w->counts[node->loop];
}

/* True: it stopped. An inner loop has its count in `entries`; that of the outermost is the walker's. */
static bool device_loop(world *w, uint32_t at, uint64_t most, bool outermost, bool *ended) {
  const gk_node *node = &w->plan->nodes[at];
  uint64_t *entry = &w->entries[node->loop];
  *ended = false;
  if (!outermost) *entry = 0;
  bool again = (outermost && (*entry || node->op == GK_OP_REPEAT)) || device_begins(w, at);
  for (uint64_t made = 0; again && made < most; ++made) {
    w->numbers[node->loop] = *entry;
    if (device_blocks(w, at + 1, node->end)) return true;
    ++w->record.passes[node->loop];
    if (!outermost) ++*entry;
    const uint64_t number = outermost ? *entry + made + 1 : *entry;
    if (node->every > 1 && number % node->every && (!node->max_iterations || number < node->max_iterations)) continue;
    if (device_cancelled(w)) return true;
    again = device_goes_on(w, at, outermost);
    if (outermost || !again || !node->max_iterations || *entry < node->max_iterations) continue;
    w->record.hit_bound[node->loop] = 1;
    if (!w->record.limit) w->record.limit = at;
    again = false;
  }
  *ended = !again;
  if (!outermost) *entry = w->counts[node->loop] = 0;
  return false;
}

static bool device_checkpoint(world *w, uint32_t at) {
  const gk_node *node = &w->plan->nodes[at];
  w->record.ran[node->checkpoint] = 1;
  if (device_blocks(w, at + 1, node->end)) return true;
  if (!node->flag) return false;
  if (w->flag(w, at)) {
    w->record.yielded = at;
    w->record.state = GK_YIELDED;
    return true;
  }
  return device_cancelled(w);
}

static bool device_switch(world *w, uint32_t at) {
  int64_t value = w->flag(w, at), index = 0;
  for (uint32_t one = at + 1; one < w->plan->nodes[at].end; one = w->plan->nodes[one].end)
    if (index++ == value) return device_blocks(w, one + 1, w->plan->nodes[one].end);
  return false;
}

static bool device_block(world *w, uint32_t at) {
  const gk_node *node = &w->plan->nodes[at];
  bool ended, stopped = false;
  switch (node->op) {
  case GK_OP_DO_WHILE: case GK_OP_WHILE: case GK_OP_REPEAT: return device_loop(w, at, UINT64_MAX, false, &ended);
  case GK_OP_CHECKPOINT: return device_checkpoint(w, at);
  case GK_OP_YIELD:
    w->record.ran[node->checkpoint] = 1;
    w->record.yielded = at;
    w->record.state = GK_YIELDED;
    return true;
  case GK_OP_SWITCH: return device_switch(w, at);
  case GK_OP_IF: {
    uint32_t end = node->otherwise ? node->otherwise : node->end;
    if (w->flag(w, at)) return device_blocks(w, at + 1, end);
    return node->otherwise && device_blocks(w, end + 1, node->end);
  }
  case GK_OP_PARALLEL:
    for (uint32_t one = at + 1; one < node->end; one = w->plan->nodes[one].end)
      stopped |= device_blocks(w, one + 1, w->plan->nodes[one].end);
    return stopped;
  default: w->execute(w, at); return false;
  }
}

static bool device_blocks(world *w, uint32_t at, uint32_t end) {
  for (; at < end; at = w->plan->nodes[at].end)
    if (device_block(w, at)) return true;
  return false;
}

static int64_t do_step(world *w, gk_walk *walk, gk_step step);

static void fork_sections(world *w, gk_walk *walk, uint32_t parallel) {
  const gk_node *nodes = w->plan->nodes;
  gk_walk walks[64];
  int64_t answers[64] = {0};
  uint32_t count = 0, live[64], live_count;
  for (uint32_t one = parallel + 1; one < nodes[parallel].end; one = nodes[one].end) {
    assert_true(count < 64);
    live[count] = count;
    gk_walk_fork(walk, one, &walks[count++]);
  }
  for (live_count = count; live_count;) {
    uint32_t at = w->interleave ? pick(&w->random, live_count) : 0, one = live[at];
    gk_step step = gk_walk_next(&walks[one], answers[one]);
    for (; step.kind == GK_STEP_LOOP; step = gk_walk_next(&walks[one], answers[one]))
      answers[one] = do_step(w, &walks[one], step); /* the record is shared: no other thread may come in between */
    if (step.kind != GK_STEP_END) {
      answers[one] = do_step(w, &walks[one], step);
      continue;
    }
    for (--live_count; at < live_count; ++at) live[at] = live[at + 1];
  }
  for (uint32_t k = 0; k < count; ++k) gk_walk_join(walk, &walks[k]);
}

static void do_run(world *w, uint32_t run) {
  const gk_node *nodes = w->plan->nodes;
  assert_true(run < w->plan->run_count);
  for (uint32_t at = w->plan->runs[run].begin; at < w->plan->runs[run].end; ++at)
    if (nodes[at].op >= GK_OP_KERNEL && nodes[at].op <= GK_OP_CALL_HOST) w->execute(w, at);
}

static int64_t do_step(world *w, gk_walk *walk, gk_step step) {
  const gk_node *nodes = w->plan->nodes;
  bool ended;
  assert_true(++w->steps < w->step_limit);
  switch (step.kind) {
  case GK_STEP_RUN:
  case GK_STEP_HOST:
    assert_int_equal(nodes[w->plan->runs[step.at].begin].op == GK_OP_CALL_HOST, step.kind == GK_STEP_HOST);
    do_run(w, step.at);
    return 1; /* any answer will do */
  case GK_STEP_CHECKPOINT:
    assert_true(w->takes & TAKES_CHECKPOINT);
    assert_int_equal(nodes[step.node].op, GK_OP_CHECKPOINT);
    assert_int_equal(w->plan->runs[step.at].begin, step.node + 1);
    assert_int_equal(w->plan->runs[step.at].end, nodes[step.node].end);
    ++w->checkpoint_steps;
    do_run(w, step.at);
    return w->flag(w, step.node);
  case GK_STEP_FLAG: /* behind a pass of a REPEAT, any answer will do */
    return nodes[step.at].op == GK_OP_REPEAT && walk->block == step.at ? -7 : w->flag(w, step.at);
  case GK_STEP_PASS:
    assert_true(w->takes & TAKES_PASS && nodes[step.at].is_numbered);
    w->numbers[nodes[step.at].loop] = step.passes;
    return -3; /* any answer will do */
  case GK_STEP_LOOP: {
    assert_true(step.passes > 0 && !nodes[step.at].is_numbered);
    uint32_t passes = pick(&w->random, 4); /* now and then none: the walker has to go by steps */
    if (passes == 3 || passes > step.passes) passes = step.passes;
    if (!passes) return 0;
    return !device_loop(w, step.at, passes, true, &ended) && ended;
  }
  case GK_STEP_FORK: fork_sections(w, walk, step.at); return 1;
  default: fail_msg("no such step: %d", (int)step.kind); return 0;
  }
}

/* ---- tapes ------------------------------------------------------------------------------------------------------- */

static world *tapes_of; /* the world whose state walk.inc walks */
static uint32_t step_words[GKW_STEP_WORDS];
static uint32_t last_flag;

static uint32_t tape_flag(uint32_t slot, uint32_t offset, uint32_t at) {
  const uint32_t node = tapes_of->points->table[at + GKW_NODE], held = tapes_of->held[node];
  if (tapes_of->plan->nodes[node].op == GK_OP_YIELD) {
    assert_true(slot == tapes_of->plan->slot_count && !offset);
    return last_flag = 1;
  }
  assert_true(tapes_of->plan->nodes[node].flag == slot && tapes_of->plan->nodes[node].offset == offset);
  tapes_of->held[node] = 0;
  return last_flag = held ? held - 1 : (uint32_t)tapes_of->flag(tapes_of, node);
}

#define GKW_FN static
#define gkw_uint uint32_t
#define GKW_POINT(i) tapes_of->points->table[i]
#define GKW_STATE(i) tapes_of->state[i]
#define GKW_FLAG(slot, offset) tape_flag(slot, offset, at)
#define GKW_CANCELLED() (tapes_of->cancel != 0)
#define GKW_STEP(k) step_words[k]
#include "plan/walk.inc"

/* The control kernel, sometimes with a small budget. */
static void walk_points(world *w) {
  assert_true(++w->steps < w->step_limit);
  gkw_walk(w->whole || pick(&w->random, 8) ? 1000 : 1 + pick(&w->random, 3));
}

/* The walk that goes on reads the flag once more. Here it counts once. */
static void take_step(world *w) {
  last_flag = 0;
  gkw_step();
  if (w->state[GKW_DUE] == step_words[GKW_LANE] && last_flag) w->held[step_words[GKW_NODE]] = 1 + last_flag;
  ++w->steps_taken;
}

/* As a device does: the tasks of a level whose words are open, in any order, then their control kernels. That behind a
 * single run may be gated, too, or take one step where that is enough. */
static void play_tape(world *w, const gki_tape *tape) {
  const gk_points *points = w->points;
  const bool gates_control = w->whole || (w->random >> 20 & 1), takes_steps = w->whole || (w->random >> 21 & 1);
  ++w->tapes;
  for (uint32_t k = 0, end; k < tape->count; k = end) {
    for (end = k + 1; end < tape->count && tape->runs[end] != GK_NONE && tape->runs[end] & GK_AHEAD_BESIDE;) ++end;
    const bool is_single = end == k + 1 && tape->runs[k] != GK_NONE;
    const bool is_gated = is_single && gates_control &&
                          w->state[points->table[points->runs[tape->runs[k]] + GKW_RECORD] + GKW_TASKS] != GKW_OPEN;
    for (uint32_t at = k; at < end && tape->runs[k] != GK_NONE; ++at) {
      const uint32_t run = tape->runs[at] & ~GK_AHEAD_BESIDE, point = points->runs[run];
      ++w->enqueued;
      if (gki_is_host_run(w->plan, run)) /* common has called it before the tape */
        assert_true(k == (tape->runs[0] == GK_NONE) &&
                    w->state[points->table[point + GKW_RECORD] + GKW_TASKS] == GKW_OPEN);
      if (w->state[points->table[point + GKW_RECORD] + GKW_TASKS] == GKW_OPEN) do_run(w, run), ++w->executed;
    }
    if (is_gated) continue;
    if (is_single && takes_steps && gk_points_step(points, tape->runs[k], step_words)) {
      take_step(w);
      continue;
    }
    for (uint32_t at = k; at < end && tape->runs[k] != GK_NONE; ++at)
      gkw_ran(points->runs[tape->runs[at] & ~GK_AHEAD_BESIDE]);
    walk_points(w);
  }
}

static gk_state launch_tapes(world *w, const gk_launch_args *launch) {
  tapes_of = w;
  gk_points_start(w->points, launch, w->state);
  memset(w->before, 0, w->plan->loop_count * sizeof *w->before);
  while (!gk_points_over(w->points, w->state)) {
    gki_tape_fill(&w->tape, w->state, w->whole || pick(&w->random, 4) ? GKI_TAPE_RUNS : 1 + pick(&w->random, 8));
    play_tape(w, &w->tape);
    gki_tape_learn(&w->tape, w->state);
    gk_points_add(w->points, w->state, w->before, launch, &w->record);
  }
  gk_points_add(w->points, w->state, w->before, launch, &w->record);
  return w->record.state;
}

static gk_state world_launch(world *w, uint32_t target) {
  const gk_plan *plan = w->plan;
  for (uint32_t k = 0; k < plan->loop_count; ++k) w->record.passes[k] = w->record.hit_bound[k] = 0;
  for (uint32_t k = 0; k < plan->checkpoint_count; ++k) w->record.ran[k] = 0;
  w->record.state = GK_FINISHED;
  w->record.yielded = w->record.limit = 0;
  w->steps = 0;
  gk_launch_args launch = {.target = target, .entries = w->entries, .counts = w->counts, .cancel = &w->cancel};
  if (w->takes & TAKES_TAPES) return launch_tapes(w, &launch);
  gk_walk walk;
  for (uint32_t k = 0; k < plan->loop_count && target; ++k) w->numbers[k] = w->entries[k];
  gk_walk_start(&walk, plan, &launch, w->takes, &w->record);
  gk_step step = gk_walk_next(&walk, 0);
  while (step.kind != GK_STEP_END) step = gk_walk_next(&walk, do_step(w, &walk, step));
  step = gk_walk_next(&walk, 0);
  assert_int_equal(step.kind, GK_STEP_END); /* it stays over */
  return w->record.state;
}
#endif
