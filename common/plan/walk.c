/* The contract (docs/contract.md) as a state machine, for backends without conditional nodes. A walk is a position in
 * the tree (`at`, in `block`) and what it waits for there (`phase`). It leaves blocks by parent links, so it needs no
 * stack. */
#include "gk_backend.h"
#include "plan/node.h"
#include <string.h>

enum phase {
  GO,       /* nothing: the next node is `at`, or `at` is the end of `block` */
  HEAD,     /* the flag of the WHILE at `at`, or the count of a REPEAT, before the first pass */
  PASS_END, /* the flag of the loop `block`, or the end of all steps in a REPEAT, after a pass */
  YIELD,    /* the flag of the checkpoint `block`, at its end */
  BRANCH,   /* the flag of the IF or SWITCH at `at` */
  PASSES,   /* passes of the loop `at` that the backend runs in one step */
  NUMBER,   /* the pass number of the loop `at`, before a pass */
  FORK,     /* the sections of the PARALLEL `at` */
  PROLOGUE, /* always-tasks before the target */
  AIM,      /* the count of the REPEAT at `at`, around the target */
  EPILOGUE, /* always-tasks behind a stop */
  OVER
};

/* Uses wide stores. gcc 12 writes the members one by one and loads them in pairs; such a load waits until both stores
 * are in the cache, which takes half the time of a step. */
static gk_step step_of(gk_step_kind kind, uint32_t at, uint32_t node) {
  gk_step step = {.kind = kind, .at = at, .node = node};
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  uint64_t both[2] = {(uint64_t)at << 32 | (uint32_t)kind, (uint64_t)node << 32};
  _Static_assert(offsetof(gk_step, at) == 4 && offsetof(gk_step, passes) == 8 && offsetof(gk_step, node) == 12 &&
                 sizeof step == 16 && sizeof step.kind == 4, "see above");
  memcpy(&step, both, sizeof step);
#endif
  return step;
}
static gk_step wait_for(gk_walk *walk, enum phase phase, gk_step_kind kind, uint32_t at) {
  walk->phase = phase;
  return step_of(kind, at, 0);
}

static void go(gk_walk *walk, uint32_t at, uint32_t block) {
  walk->at = at;
  walk->block = block;
  walk->phase = GO;
}

static void leave(gk_walk *walk, uint32_t block) {
  const gk_node *node = &walk->plan->nodes[block];
  go(walk, node->end, node->parent);
}

static bool cancelled(const gk_walk *walk) { return __atomic_load_n(walk->cancel, __ATOMIC_RELAXED) != 0; }

/* The bit in `sections` of a PARALLEL whose sections run in series. Levels are counted from the outside, so the bit of
 * a PARALLEL doesn't change. */
static uint32_t section_bit(const gk_walk *walk, uint32_t parallel) {
  _Static_assert(GK_MAX_DEPTH / 2 <= 32, "a PARALLEL and its SECTION are two blocks, so 32 bits are enough");
  const gk_node *nodes = walk->plan->nodes;
  uint32_t level = 0;
  for (uint32_t block = nodes[parallel].parent; block != walk->root; block = nodes[block].parent)
    level += nodes[block].op == GK_OP_SECTION;
  return 1u << level;
}

/* Stops the walk. In a section that runs in series, a cancel skips only the rest of the section and what follows the
 * PARALLEL. */
static void stop(gk_walk *walk) {
  const gk_node *nodes = walk->plan->nodes;
  uint32_t section = 0;
  for (uint32_t block = walk->block; block != walk->root; block = nodes[block].parent) {
    if (nodes[block].op == GK_OP_CHECKPOINT) walk->result->ran[nodes[block].checkpoint] = 1;
    if (nodes[block].op == GK_OP_SECTION && !section) section = block;
  }
  if (section && !walk->result->yielded) {
    walk->sections |= section_bit(walk, nodes[section].parent);
    leave(walk, section);
    return;
  }
  walk->stopped = true;
  walk->phase = walk->root ? OVER : EPILOGUE;
}

/* At the end of a PARALLEL whose sections ran in series. */
static void leave_parallel(gk_walk *walk) {
  const uint32_t parallel = walk->block;
  leave(walk, parallel);
  if (!walk->sections) return;
  const uint32_t bit = section_bit(walk, parallel);
  if (!(walk->sections & bit)) return;
  walk->sections &= ~bit;
  stop(walk);
}

static void end_loop(gk_walk *walk, uint32_t loop) {
  walk->entries[walk->plan->nodes[loop].loop] = 0;
  walk->counts[walk->plan->nodes[loop].loop] = 0;
  leave(walk, loop);
}

/* After a pass with a flag that isn't 0. False: the bound ends the loop. */
static bool may_repeat(gk_walk *walk, uint32_t loop) {
  const gk_node *node = &walk->plan->nodes[loop];
  if (!node->max_iterations || walk->entries[node->loop] < node->max_iterations) return true;
  walk->result->hit_bound[node->loop] = 1;
  if (!walk->limit) walk->limit = loop;
  return false;
}

/* Whether the end of this pass reads the loop's flag, as .every says. Only then may a cancel stop the loop there. */
static bool reads_flag(const gk_walk *walk, const gk_node *node) {
  const uint64_t entry = walk->entries[node->loop];
  return node->every <= 1 || entry % node->every == 0 || (node->max_iterations && entry >= node->max_iterations);
}

/* At the head of a loop: offers its passes in one step, if the backend takes such steps. Not in a cancelled launch: the
 * next loop end must see the cancel, and not every device does. */
static bool offer(gk_walk *walk, uint32_t loop, gk_step *step) {
  const gk_node *node = &walk->plan->nodes[loop];
  if (!(walk->takes & 1u << GK_STEP_LOOP) || node->is_numbered || cancelled(walk)) return false;
  const uint64_t made = walk->entries[node->loop];
  uint64_t left = node->max_iterations ? node->max_iterations - made : UINT32_MAX;
  if (!node->max_iterations && node->every > 1) left -= (made + left) % node->every; /* ends with a read */
  if (node->op == GK_OP_REPEAT && left > walk->counts[node->loop] - made) left = walk->counts[node->loop] - made;
  walk->at = loop;
  walk->block = node->parent;
  walk->before = walk->result->passes[node->loop];
  *step = (gk_step){.kind = GK_STEP_LOOP, .at = loop, .passes = (uint32_t)left};
  walk->phase = PASSES;
  return true;
}

/* Begins a pass, from the loop's head. True: *step must be done first. */
static bool begin_pass(gk_walk *walk, uint32_t loop, gk_step *step) {
  const gk_node *node = &walk->plan->nodes[loop];
  go(walk, loop + 1, loop);
  if (!node->is_numbered || !(walk->takes & 1u << GK_STEP_PASS)) return false;
  walk->at = loop;
  *step = wait_for(walk, NUMBER, GK_STEP_PASS, loop);
  step->passes = (uint32_t)walk->entries[node->loop];
  return true;
}

/* After a pass with a flag that isn't 0. True: *step is set. */
static bool repeat(gk_walk *walk, uint32_t loop, gk_step *step) {
  if (may_repeat(walk, loop)) return offer(walk, loop, step) || begin_pass(walk, loop, step);
  end_loop(walk, loop);
  return false;
}

/* At the end of a pass of a REPEAT, which reads nothing. True: *step is set. */
static bool count_down(gk_walk *walk, uint32_t loop, gk_step *step) {
  const uint32_t number = walk->plan->nodes[loop].loop;
  if (walk->entries[number] < walk->counts[number]) return repeat(walk, loop, step);
  end_loop(walk, loop);
  return false;
}

/* How the backend's passes ended. SOME, NONE: the loop goes on, after some passes or none. */
enum progress { ENDED, STOPPED, SOME, NONE };

static enum progress count_passes(gk_walk *walk, int64_t ended) {
  const gk_node *node = &walk->plan->nodes[walk->at];
  gk_launch_result *result = walk->result;
  uint64_t made = result->passes[node->loop] - walk->before;
  walk->entries[node->loop] += made;
  if (!walk->limit) walk->limit = result->limit;
  bool stops = result->yielded || result->state == GK_CANCELLED;
  /* Sections share the result, so the walk keeps the limit and the state itself until it ends. Other threads may walk
   * other sections, so it clears only what is set. */
  if (result->limit) result->limit = 0;
  if (result->state != GK_FINISHED) result->state = GK_FINISHED;
  if (stops) return STOPPED;
  if (ended) return ENDED;
  if (!made) return NONE;
  return cancelled(walk) && reads_flag(walk, node) ? STOPPED : SOME;
}

static bool after_passes(gk_walk *walk, int64_t ended, gk_step *step) {
  const uint32_t loop = walk->at;
  const gk_node *node = &walk->plan->nodes[loop];
  switch (count_passes(walk, ended)) {
  case ENDED: end_loop(walk, loop); return false;
  case STOPPED:
    walk->block = loop;
    stop(walk);
    return false;
  case SOME: return node->op == GK_OP_REPEAT ? count_down(walk, loop, step) : repeat(walk, loop, step);
  case NONE: break;
  }
  if (node->op != GK_OP_WHILE || walk->entries[node->loop]) { /* after a pass, the flag has been read */
    go(walk, loop + 1, loop);
    return false;
  }
  *step = wait_for(walk, HEAD, GK_STEP_FLAG, loop);
  return true;
}

/* A pass on a batched device has ended when its flag arrives, so this checks for a cancel once more. */
static bool after_pass(gk_walk *walk, int64_t flag, gk_step *step) {
  const uint32_t loop = walk->block;
  if (cancelled(walk)) stop(walk);
  else if (walk->plan->nodes[loop].op == GK_OP_REPEAT) return count_down(walk, loop, step);
  else if (!flag) end_loop(walk, loop);
  else return repeat(walk, loop, step);
  return false;
}

/* Enters a REPEAT with a count that is new. True: *step is set. */
static bool take_count(gk_walk *walk, int64_t count, gk_step *step) {
  const uint32_t loop = walk->at;
  if (count <= 0) {
    end_loop(walk, loop);
    return false;
  }
  walk->counts[walk->plan->nodes[loop].loop] = (uint64_t)count;
  return offer(walk, loop, step) || begin_pass(walk, loop, step);
}

static bool take_head(gk_walk *walk, int64_t answer, gk_step *step) {
  if (walk->plan->nodes[walk->at].op == GK_OP_REPEAT) return take_count(walk, answer, step);
  if (answer) return begin_pass(walk, walk->at, step);
  end_loop(walk, walk->at);
  return false;
}

/* Whether a REPEAT's count is known without a device: *count is set. */
static bool knows_count(const gk_walk *walk, const gk_node *node, int64_t *count) {
  *count = node->count;
  if (!node->flag) return true;
  if (gki_reads_memory(walk->plan, node)) return false;
  *count = gki_number(walk->plan, node->flag, walk->values[node->flag]);
  return true;
}

static void after_checkpoint(gk_walk *walk, int64_t flag) {
  const uint32_t block = walk->block;
  walk->result->ran[walk->plan->nodes[block].checkpoint] = 1;
  if (flag) walk->result->yielded = block;
  if (flag || cancelled(walk)) stop(walk);
  else leave(walk, block);
}

static void after_fork(gk_walk *walk) {
  leave(walk, walk->at);
  if (walk->stopped) stop(walk);
}

static void take_branch(gk_walk *walk, int64_t flag) {
  const gk_node *nodes = walk->plan->nodes;
  uint32_t branch = walk->at, end = nodes[branch].end;
  if (nodes[branch].op == GK_OP_IF) {
    uint32_t otherwise = nodes[branch].otherwise;
    if (flag) go(walk, branch + 1, branch);
    else if (otherwise) go(walk, otherwise + 1, otherwise);
    else leave(walk, branch);
    return;
  }
  uint32_t one = branch + 1;
  for (; one < end && flag != 0; --flag) /* a negative flag reaches the end */
    one = nodes[one].end;
  if (one < end) go(walk, one + 1, one);
  else leave(walk, branch);
}

/* At the end of `block`: leaves it. True: *step must be done first. */
static bool finish_block(gk_walk *walk, gk_step *step) {
  uint32_t block = walk->block;
  const gk_node *node = &walk->plan->nodes[block];
  if (block == walk->root) {
    walk->phase = walk->root ? OVER : EPILOGUE;
    return false;
  }
  switch (node->op) {
  case GK_OP_DO_WHILE:
  case GK_OP_WHILE:
  case GK_OP_REPEAT:
    ++walk->result->passes[node->loop];
    ++walk->entries[node->loop];
    if (!reads_flag(walk, node)) return begin_pass(walk, block, step);
    if (cancelled(walk)) {
      stop(walk);
      return false;
    }
    if (node->op == GK_OP_REPEAT && !(walk->takes & 1u << GK_STEP_FLAG)) return count_down(walk, block, step);
    *step = wait_for(walk, PASS_END, GK_STEP_FLAG, block);
    return true;
  case GK_OP_CHECKPOINT:
    if (!node->flag) {
      walk->result->ran[node->checkpoint] = 1;
      break;
    }
    *step = wait_for(walk, YIELD, GK_STEP_FLAG, block);
    return true;
  case GK_OP_PARALLEL: leave_parallel(walk); return false;
  case GK_OP_CASE: leave(walk, node->parent); return false; /* the other cases are for other values */
  default: break;
  }
  leave(walk, block);
  return false;
}

/* The run that fills the block of a checkpoint with a flag, if the backend takes both in one step; else GK_NONE. */
static uint32_t run_of_block(const gk_walk *walk, uint32_t checkpoint) {
  const gk_plan *plan = walk->plan;
  const gk_node *node = &plan->nodes[checkpoint];
  if (!(walk->takes & 1u << GK_STEP_CHECKPOINT) || !node->flag || checkpoint + 1 == node->end) return GK_NONE;
  uint32_t run = plan->nodes[checkpoint + 1].run;
  return run != GK_NONE && plan->runs[run].end == node->end ? run : GK_NONE;
}

/* Enters the block at `at`. True: *step must be done first. */
static bool visit(gk_walk *walk, gk_step *step) {
  uint32_t at = walk->at, run;
  int64_t count;
  const gk_node *node = &walk->plan->nodes[at];
  switch (node->op) {
  case GK_OP_WHILE:
  case GK_OP_DO_WHILE:
    walk->entries[node->loop] = 0;
    if (offer(walk, at, step)) return true;
    if (node->op == GK_OP_DO_WHILE) return begin_pass(walk, at, step);
    *step = wait_for(walk, HEAD, GK_STEP_FLAG, at);
    return true;
  case GK_OP_REPEAT:
    walk->entries[node->loop] = 0;
    if (knows_count(walk, node, &count)) return take_count(walk, count, step);
    *step = wait_for(walk, HEAD, GK_STEP_FLAG, at);
    return true;
  case GK_OP_IF:
  case GK_OP_SWITCH: *step = wait_for(walk, BRANCH, GK_STEP_FLAG, at); return true;
  case GK_OP_CHECKPOINT:
    if ((run = run_of_block(walk, at)) == GK_NONE) break;
    walk->block = at;
    walk->phase = YIELD;
    *step = step_of(GK_STEP_CHECKPOINT, run, at);
    return true;
  case GK_OP_YIELD:
    walk->result->ran[node->checkpoint] = 1;
    walk->result->yielded = at;
    stop(walk);
    return false;
  case GK_OP_ELSE: leave(walk, at); return false; /* reached from the end of its IF, which ran */
  case GK_OP_PARALLEL:
    if (!(walk->takes & 1u << GK_STEP_FORK)) break;
    *step = wait_for(walk, FORK, GK_STEP_FORK, at);
    return true;
  default: break;
  }
  go(walk, at + 1, at);
  return false;
}

/* node: the first of its run */
static gk_step run_of(const gk_node *node) {
  return step_of(node->op == GK_OP_CALL_HOST ? GK_STEP_HOST : GK_STEP_RUN, node->run, 0);
}

static gk_step next_run(gk_walk *walk) {
  const gk_plan *plan = walk->plan;
  const gk_node *node = &plan->nodes[walk->at];
  walk->always += node->always;
  walk->at = plan->runs[node->run].end;
  return run_of(node);
}

/* The next always-task before node `before` that hasn't run. */
static bool next_always(gk_walk *walk, uint32_t before, gk_step *step) {
  const gk_plan *plan = walk->plan;
  if (walk->always >= plan->always_count || plan->always[walk->always] >= before) return false;
  *step = run_of(&plan->nodes[plan->always[walk->always++]]);
  return true;
}

/* The outermost REPEAT around the target whose entry doesn't wait; 0: none. */
static uint32_t next_to_count(const gk_walk *walk) {
  const gk_node *nodes = walk->plan->nodes;
  uint32_t found = 0;
  for (uint32_t up = nodes[walk->target].parent; up; up = nodes[up].parent)
    if (nodes[up].op == GK_OP_REPEAT && !walk->counts[nodes[up].loop]) found = up;
  return found;
}

/* Begins the entry of a REPEAT in the middle of a pass, which is made whatever the count is. */
static void begin_entry(gk_walk *walk, uint32_t loop, int64_t count) {
  const uint32_t number = walk->plan->nodes[loop].loop;
  walk->entries[number] = 0;
  walk->counts[number] = count > 0 ? (uint64_t)count : 1;
}

/* Reads the counts of REPEATs around the target. True: *step must be done first. */
static bool aim(gk_walk *walk, gk_step *step) {
  int64_t count;
  for (uint32_t loop; (loop = next_to_count(walk)) != 0; begin_entry(walk, loop, count)) {
    walk->at = loop;
    if (knows_count(walk, &walk->plan->nodes[loop], &count)) continue;
    *step = wait_for(walk, AIM, GK_STEP_FLAG, loop);
    return true;
  }
  return false;
}

/* Goes behind a YIELD, which has done its work. */
static void go_to_target(gk_walk *walk) {
  const gk_node *node = &walk->plan->nodes[walk->target];
  go(walk, walk->target + (node->op == GK_OP_YIELD), node->parent);
  walk->target = 0;
}

/* The rest of the always-tasks after a stop, then the end. */
static gk_step finish_walk(gk_walk *walk) {
  gk_step step;
  if (walk->phase == EPILOGUE && next_always(walk, walk->plan->node_count, &step)) return step;
  if (!walk->root) {
    gk_launch_result *result = walk->result;
    result->state = result->yielded ? GK_YIELDED : walk->stopped ? GK_CANCELLED : GK_FINISHED;
    result->limit = walk->limit;
  }
  return wait_for(walk, OVER, GK_STEP_END, walk->root);
}

void gk_walk_start(gk_walk *walk, const gk_plan *plan, const gk_launch_args *launch, uint32_t takes,
                   gk_launch_result *result) {
  *walk = (gk_walk){.plan = plan, .result = result, .entries = launch->entries, .cancel = launch->cancel,
                    .takes = takes, .target = launch->target, .counts = launch->counts, .values = launch->values};
  if (walk->target) walk->phase = PROLOGUE;
  for (uint32_t k = 0; k < plan->loop_count && !walk->target; ++k) walk->entries[k] = walk->counts[k] = 0;
  if (!walk->target) go(walk, 1, 0);
}

/* Handles the answer to the last step. True: *step is set. */
static bool answered(gk_walk *walk, int64_t answer, gk_step *step) {
  switch ((enum phase)walk->phase) {
  case HEAD: return take_head(walk, answer, step);
  case PASS_END: return after_pass(walk, answer, step);
  case YIELD: after_checkpoint(walk, answer); return false;
  case BRANCH: take_branch(walk, answer); return false;
  case PASSES: return after_passes(walk, answer, step);
  case FORK: after_fork(walk); return false;
  case NUMBER: go(walk, walk->at + 1, walk->at); return false;
  case AIM:
    begin_entry(walk, walk->at, answer);
    if (aim(walk, step)) return true;
    go_to_target(walk);
    return false;
  case PROLOGUE:
    if (next_always(walk, walk->target, step) || aim(walk, step)) return true;
    go_to_target(walk);
    return false;
  case GO:
  case EPILOGUE:
  case OVER: break; /* gk_walk_next handles these */
  }
  return false;
}

gk_step gk_walk_next(gk_walk *walk, int64_t answer) {
  const gk_plan *plan = walk->plan;
  for (;;) {
    gk_step step;
    bool due;
    if (walk->phase == EPILOGUE || walk->phase == OVER) return finish_walk(walk);
    if (walk->phase != GO) due = answered(walk, answer, &step);
    else if (walk->at == plan->nodes[walk->block].end) due = finish_block(walk, &step);
    else if (plan->nodes[walk->at].run == GK_NONE) due = visit(walk, &step);
    else return next_run(walk);
    if (due) return step;
  }
}

void gk_walk_fork(const gk_walk *walk, uint32_t section, gk_walk *section_walk) {
  *section_walk = *walk;
  section_walk->root = section;
  section_walk->limit = 0;
  section_walk->stopped = false; /* another section, joined before, may have stopped */
  section_walk->sections = 0;
  go(section_walk, section + 1, section);
}

void gk_walk_join(gk_walk *walk, const gk_walk *section_walk) {
  if (!walk->limit) walk->limit = section_walk->limit;
  walk->stopped |= section_walk->stopped;
}
