#include "runtime/tape.h"
#include "base/op.h"
#include "plan/walk.inc"
#include <string.h>

enum { STEPS = 16 * GKI_TAPE_RUNS }; /* most points that a guess passes; a loop whose body has no run adds no entry */

static uint32_t word(const gki_tape *tape, uint32_t at, uint32_t field) { return tape->points->table[at + field]; }
static uint32_t lane_of(const gki_tape *tape, uint32_t at) {
  return (word(tape, at, GKW_LANE) - GKW_LANES) / GKW_LANE_WORDS;
}
static uint32_t loop_of(const gki_tape *tape, uint32_t at) {
  return (word(tape, at, GKW_RECORD) - tape->points->loops_at) / GKW_LOOP_WORDS;
}
static uint32_t place_of(const uint32_t *state, uint32_t lane) {
  return state[GKW_LANES + lane * GKW_LANE_WORDS + GKW_AT];
}
static uint32_t loop_word(const gki_tape *tape, const uint32_t *state, uint32_t loop, uint32_t field) {
  return state[tape->points->loops_at + loop * GKW_LOOP_WORDS + field];
}

/* Calls and handwritten code can't look at a gate, so their runs are enqueued only when they surely come. */
static bool is_gated(const gk_plan *plan, uint32_t run) {
  for (uint32_t at = plan->runs[run].begin; at < plan->runs[run].end; ++at)
    if (gki_op_is_call(plan->nodes[at].op) || plan->nodes[at].handwritten) return false;
  return true;
}

/* Passes to enqueue of a REPEAT with this count, at least 1. */
static uint32_t passes_of(const gk_plan *plan, uint32_t loop, uint64_t count) {
  const uint32_t bound = plan->nodes[plan->loops[loop]].max_iterations;
  if (bound && count > bound) count = bound;
  return count == 0 ? 1 : count < GKI_TAPE_RUNS ? (uint32_t)count : GKI_TAPE_RUNS;
}

/* The passes of a loop, at least `passes`, up to one whose end reads the flag. */
static uint32_t up_to_read(const gk_plan *plan, uint32_t loop, uint32_t passes) {
  const gk_node *node = &plan->nodes[plan->loops[loop]];
  if (node->every > 1 && passes % node->every) passes += node->every - passes % node->every;
  return node->max_iterations && passes > node->max_iterations ? node->max_iterations : passes;
}

/* What is left of the entry of a REPEAT; 0: there is none. */
static uint64_t count_left(const gki_tape *tape, const uint32_t *state, uint32_t loop) {
  if (tape->points->plan->nodes[tape->points->plan->loops[loop]].op != GK_OP_REPEAT) return 0;
  return (uint64_t)loop_word(tape, state, loop, GKW_LEFT_HIGH) << 32 | loop_word(tape, state, loop, GKW_LEFT);
}

bool gki_tape_make(gki_tape *tape, const gk_points *points, gki_arena *arena) {
  const gk_plan *plan = points->plan;
  *tape = (gki_tape){.points = points};
  tape->passes = gki_arena_alloc(arena, plan->loop_count, sizeof *tape->passes);
  tape->guessed = gki_arena_alloc(arena, plan->loop_count, sizeof *tape->guessed);
  tape->before = gki_arena_alloc(arena, plan->loop_count, sizeof *tape->before);
  tape->left = gki_arena_alloc(arena, plan->loop_count, sizeof *tape->left);
  tape->cursors = gki_arena_alloc(arena, points->lane_count, sizeof *tape->cursors);
  tape->pending = gki_arena_alloc(arena, points->lane_count, sizeof *tape->pending);
  tape->gated = gki_arena_alloc(arena, plan->run_count, sizeof *tape->gated);
  tape->runs = gki_arena_alloc(arena, GKI_TAPE_RUNS, sizeof *tape->runs);
  if (!tape->passes || !tape->left || !tape->guessed || !tape->before || !tape->cursors || !tape->pending ||
      !tape->gated || !tape->runs)
    return false;
  for (uint32_t k = 0; k < plan->loop_count; ++k) tape->passes[k] = up_to_read(plan, k, 1);
  for (uint32_t k = 0; k < plan->run_count; ++k) tape->gated[k] = is_gated(plan, k);
  return true;
}

/* ---- guessing ---------------------------------------------------------------------------------------------------- */

static void enter_loop(gki_tape *tape, uint32_t at) { tape->left[loop_of(tape, at)] = tape->passes[loop_of(tape, at)]; }

static void fork_lanes(gki_tape *tape, uint32_t at) {
  const uint32_t lane = lane_of(tape, at), exits = word(tape, at, GKW_NEXT);
  tape->pending[lane] = word(tape, at, GKW_BOUND);
  tape->cursors[lane] = GK_NONE;
  for (uint32_t k = 0; k < tape->pending[lane]; ++k) {
    const uint32_t first = tape->points->table[exits + k];
    tape->cursors[lane_of(tape, first)] = first;
  }
}

static void end_section(gki_tape *tape, uint32_t at) {
  const uint32_t join = word(tape, at, GKW_NEXT), around = lane_of(tape, join);
  tape->cursors[lane_of(tape, at)] = GK_NONE;
  if (--tape->pending[around] == 0) tape->cursors[around] = join + GKW_WORDS;
}

/* Whether nothing behind this point of a list comes in a launch that reaches it: a YIELD outside of branches. */
static bool surely_yields(const gk_plan *plan, uint32_t node) {
  bool is_sure = plan->nodes[node].op == GK_OP_YIELD;
  for (uint32_t up = plan->nodes[node].parent; up && is_sure; up = plan->nodes[up].parent)
    is_sure = gki_op_is_loop(plan->nodes[up].op);
  return is_sure;
}

/* The point of the lane's next run. The guess goes through the list in its order, repeats loops and takes all cases of
 * branches. GK_NONE: the lane waits for its sections, or has ended, or the guess has no steps left. */
static uint32_t next_run(gki_tape *tape, uint32_t lane, uint32_t *steps) {
  while (tape->cursors[lane] != GK_NONE && ++*steps < STEPS) {
    const uint32_t at = tape->cursors[lane];
    tape->cursors[lane] = at + GKW_WORDS;
    switch (word(tape, at, GKW_KIND)) {
    case GKW_RUN: return at;
    case GKW_END: tape->cursors[lane] = GK_NONE; break;
    case GKW_ENTER: case GKW_HEAD: enter_loop(tape, at); break;
    case GKW_COUNT:
      if (!(word(tape, at, GKW_HOW) & GKW_AIMS)) enter_loop(tape, at);
      break;
    case GKW_PASS_END:
      ++tape->guessed[loop_of(tape, at)];
      if (--tape->left[loop_of(tape, at)] > 0) tape->cursors[lane] = word(tape, at, GKW_NEXT);
      break;
    case GKW_FORK: fork_lanes(tape, at); break;
    case GKW_YIELD:
      if (surely_yields(tape->points->plan, word(tape, at, GKW_NODE))) tape->cursors[lane] = GK_NONE;
      break;
    case GKW_SECTION_END: end_section(tape, at); break;
    default: break;
    }
  }
  return GK_NONE;
}

/* Passes to enqueue. A loop that is under way has made some of the passes that its bound allows. */
static uint32_t passes_left(const gki_tape *tape, const uint32_t *state, uint32_t loop) {
  const gk_plan *plan = tape->points->plan;
  const uint32_t bound = plan->nodes[plan->loops[loop]].max_iterations;
  const uint32_t made = loop_word(tape, state, loop, GKW_ENTRY);
  const uint64_t left = count_left(tape, state, loop);
  if (left) return passes_of(plan, loop, left);
  const uint32_t every = plan->nodes[plan->loops[loop]].every, behind = every ? made % every : 0;
  const uint32_t passes = tape->passes[loop] > behind ? tape->passes[loop] - behind : 1;
  return bound > made && bound - made < passes ? bound - made : passes;
}

static bool is_open(const gki_tape *tape, const uint32_t *state, uint32_t run) {
  return state[word(tape, run, GKW_RECORD) + GKW_TASKS] == GKW_OPEN;
}

/* Sets the cursors of a lane, and of sections that it waits for, to their places in a state. */
static void find_cursor(gki_tape *tape, const uint32_t *state, uint32_t lane) {
  const uint32_t at = place_of(state, lane);
  tape->cursors[lane] = at;
  if (word(tape, at, GKW_KIND) != GKW_JOIN || !state[word(tape, at, GKW_RECORD) + GKW_PENDING]) return;
  tape->cursors[lane] = GK_NONE;
  tape->pending[lane] = 0;
  const uint32_t fork = word(tape, at, GKW_PAST);
  for (uint32_t k = 0; k < word(tape, fork, GKW_BOUND); ++k) {
    const uint32_t section = lane_of(tape, tape->points->table[word(tape, fork, GKW_NEXT) + k]);
    find_cursor(tape, state, section);
    const uint32_t cursor = tape->cursors[section];
    /* The section has ended, or ends when its lane is walked next. */
    if (cursor != GK_NONE && word(tape, cursor, GKW_KIND) == GKW_SECTION_END) tape->cursors[section] = GK_NONE;
    else ++tape->pending[lane];
  }
  if (!tape->pending[lane]) tape->cursors[lane] = at + GKW_WORDS;
}

/* Adds the next run of each lane. All of them may be on the device at once. False: the tape ends here. */
static bool put_level(gki_tape *tape, const uint32_t *state, uint32_t limit, uint32_t *steps) {
  const uint32_t begin = tape->count;
  bool moved = false;
  for (uint32_t lane = 0; lane < tape->points->lane_count; ++lane) {
    if (tape->cursors[lane] == GK_NONE) continue;
    moved = true;
    const uint32_t at = next_run(tape, lane, steps);
    if (at == GK_NONE) continue;
    const uint32_t run = word(tape, at, GKW_NODE);
    const bool is_sure = state && begin <= tape->first && is_open(tape, state, at); /* in the first level */
    if (tape->count == limit || (!tape->gated[run] && !is_sure)) {
      tape->cursors[lane] = at;
      tape->cut = tape->count == limit;
      return false;
    }
    tape->runs[tape->count] = tape->count > begin ? run | GK_AHEAD_BESIDE : run;
    ++tape->count;
  }
  return moved && *steps < STEPS;
}

/* state: NULL if the tape goes on where the one before it was cut. */
static void put_levels(gki_tape *tape, const uint32_t *state, uint32_t limit) {
  uint32_t steps = 0;
  if (limit > GKI_TAPE_RUNS) limit = GKI_TAPE_RUNS;
  tape->cut = false;
  while (put_level(tape, state, limit, &steps)) continue;
}

void gki_tape_go_on(gki_tape *tape, uint32_t limit) {
  tape->count = tape->first = 0;
  put_levels(tape, NULL, limit);
}

void gki_tape_fill(gki_tape *tape, const uint32_t *state, uint32_t limit) {
  tape->count = 0;
  for (uint32_t k = 0; k < tape->points->plan->loop_count; ++k) {
    tape->left[k] = passes_left(tape, state, k);
    tape->guessed[k] = 0;
    tape->before[k] = loop_word(tape, state, k, GKW_PASSES);
  }
  for (uint32_t k = 0; k < tape->points->lane_count; ++k) tape->cursors[k] = GK_NONE;
  if (state[GKW_DUE]) tape->runs[tape->count++] = GK_NONE;
  tape->first = tape->count;
  find_cursor(tape, state, 0);
  put_levels(tape, state, limit);
}

/* ---- learning ---------------------------------------------------------------------------------------------------- */

/* A loop that goes on after so many passes gets twice as many, up to its bound. Sections in its body are lanes of their
 * own, and a loop that was entered long ago may get twice as many for each of them. */
static void learn_lane(gki_tape *tape, const uint32_t *state, uint32_t lane) {
  const gk_plan *plan = tape->points->plan;
  const uint32_t at = place_of(state, lane), number = word(tape, at, GKW_NODE);
  uint32_t node = word(tape, at, GKW_KIND) == GKW_RUN ? plan->nodes[plan->runs[number].begin].parent : number;
  for (; node; node = plan->nodes[node].parent) {
    const gk_node *loop = &plan->nodes[node];
    if (!gki_op_is_loop(loop->op)) continue;
    uint32_t *passes = &tape->passes[loop->loop];
    if (loop_word(tape, state, loop->loop, GKW_ENTRY) < *passes) continue;
    *passes = up_to_read(plan, loop->loop, *passes < GKI_TAPE_RUNS ? *passes * 2 : *passes);
  }
}

/* If a loop made less than a quarter of its enqueued passes, it gets half as many. */
void gki_tape_learn(gki_tape *tape, const uint32_t *state) {
  for (uint32_t k = 0; k < tape->points->plan->loop_count; ++k)
    if (4 * (uint64_t)(loop_word(tape, state, k, GKW_PASSES) - tape->before[k]) < tape->guessed[k] &&
        tape->passes[k] > 1)
      tape->passes[k] = up_to_read(tape->points->plan, k, tape->passes[k] / 2);
  for (uint32_t lane = 0; lane < tape->points->lane_count; ++lane)
    if (tape->cursors[lane] == GK_NONE || !lane) learn_lane(tape, state, lane);
  for (uint32_t k = 0; k < tape->points->plan->loop_count; ++k) {
    const uint64_t left = count_left(tape, state, k);
    if (left) tape->passes[k] = passes_of(tape->points->plan, k, left + loop_word(tape, state, k, GKW_ENTRY));
  }
}
