/* The contract as a state machine, for every backend without conditional nodes: docs/contract.md, rule by rule. A walk
 * is a position in the tree (`at`, in `block`) and what it waits for there (`phase`); blocks are left by parent links,
 * so that no step needs a stack. */
#include "gk_backend.h"
#include <string.h>

enum phase {
  GO,       /* nothing: `at` is to be visited, or is the end of `block` */
  HEAD,     /* the flag of the WHILE at `at`, before its first pass */
  TURN,     /* the flag of the loop `block`, after a pass */
  YIELD,    /* the flag of the checkpoint `block`, at its true end */
  BRANCH,   /* the flag of the IF or SWITCH at `at` */
  SEVERAL,  /* passes of the loop `at` that the backend takes at once */
  FORK,     /* the sections of the PARALLEL `at` */
  PROLOGUE, /* always-tasks before the target */
  EPILOGUE, /* always-tasks behind a stop */
  OVER
};

/* By wide stores: gcc 12 would write the members apart and load them by twos, and such a load waits for both stores to
 * reach the cache, which is half of what a step takes. */
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

/* To what follows a block. */
static void leave(gk_walk *walk, uint32_t block) {
  const gk_node *node = &walk->plan->nodes[block];
  go(walk, node->end, node->parent);
}

static bool cancelled(const gk_walk *walk) { return __atomic_load_n(walk->cancel, __ATOMIC_RELAXED) != 0; }

/* The bit in `sections` of a PARALLEL whose sections come one by one. Levels are counted from the outside, so that a
 * bit stays with its PARALLEL. */
static uint32_t section_bit(const gk_walk *walk, uint32_t parallel) {
  _Static_assert(GK_MAX_DEPTH / 2 <= 32, "a PARALLEL and its SECTION are two blocks, so 32 bits do");
  const gk_node *nodes = walk->plan->nodes;
  uint32_t level = 0;
  for (uint32_t block = nodes[parallel].parent; block != walk->root; block = nodes[block].parent)
    level += nodes[block].op == GK_OP_SECTION;
  return 1u << level;
}

/* Nothing more runs. A section walked in series is an exception: a cancel closes only the rest of it, and what is
 * behind its PARALLEL. */
static void stop(gk_walk *walk) {
  const gk_node *nodes = walk->plan->nodes;
  uint32_t section = 0;
  for (uint32_t block = walk->block; block != walk->root; block = nodes[block].parent) {
    if (nodes[block].op == GK_OP_CHECKPOINT) walk->record->ran[nodes[block].checkpoint] = 1;
    if (nodes[block].op == GK_OP_SECTION && !section) section = block;
  }
  if (section && !walk->record->yielded) {
    walk->sections |= section_bit(walk, nodes[section].parent);
    leave(walk, section);
    return;
  }
  walk->stopped = true;
  walk->phase = walk->root ? OVER : EPILOGUE;
}

/* Behind a PARALLEL whose sections came one by one. */
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
  leave(walk, loop);
}

/* A loop's flag is still true after a pass. False: its bound ends it. */
static bool may_repeat(gk_walk *walk, uint32_t loop) {
  const gk_node *node = &walk->plan->nodes[loop];
  if (!node->max_iterations || walk->entries[node->loop] < node->max_iterations) return true;
  walk->record->hit_bound[node->loop] = 1;
  if (!walk->limit) walk->limit = loop;
  return false;
}

/* At the head of a loop, with a whole pass ahead: many at once, if the backend can. Not once the launch is cancelled:
 * the next loop end has to see it, and not every device does. */
static bool offer(gk_walk *walk, uint32_t loop, gk_step *step) {
  if (!(walk->takes & 1u << GK_STEP_LOOP) || cancelled(walk)) return false;
  const gk_node *node = &walk->plan->nodes[loop];
  uint64_t left = node->max_iterations ? node->max_iterations - walk->entries[node->loop] : UINT32_MAX;
  walk->at = loop;
  walk->block = node->parent;
  walk->before = walk->record->passes[node->loop];
  *step = (gk_step){.kind = GK_STEP_LOOP, .at = loop, .passes = (uint32_t)left};
  walk->phase = SEVERAL;
  return true;
}

/* Behind a pass whose flag is still true. True: *step is clear already. */
static bool repeat(gk_walk *walk, uint32_t loop, gk_step *step) {
  if (!may_repeat(walk, loop)) end_loop(walk, loop);
  else if (offer(walk, loop, step)) return true;
  else go(walk, loop + 1, loop);
  return false;
}

/* What became of the passes that the backend took at once; SOME and NONE: the loop goes on. */
enum several { ENDED, STOPPED, SOME, NONE };

static enum several several(gk_walk *walk, int64_t ended) {
  const gk_node *node = &walk->plan->nodes[walk->at];
  gk_launch_result *record = walk->record;
  uint64_t made = record->passes[node->loop] - walk->before;
  walk->entries[node->loop] += made;
  if (!walk->limit) walk->limit = record->limit;
  bool stops = record->yielded || record->state == GK_CANCELLED;
  /* The walk keeps these two until it ends, since sections share the record; and writes only what was set, since they
   * may be walked by several threads. */
  if (record->limit) record->limit = 0;
  if (record->state != GK_FINISHED) record->state = GK_FINISHED;
  if (stops) return STOPPED;
  if (ended) return ENDED;
  if (!made) return NONE;
  return cancelled(walk) ? STOPPED : SOME;
}

static bool after_several(gk_walk *walk, int64_t ended, gk_step *step) {
  const uint32_t loop = walk->at;
  const gk_node *node = &walk->plan->nodes[loop];
  switch (several(walk, ended)) {
  case ENDED: end_loop(walk, loop); return false;
  case STOPPED:
    walk->block = loop;
    stop(walk);
    return false;
  case SOME: return repeat(walk, loop, step);
  case NONE: break;
  }
  if (node->op == GK_OP_DO_WHILE || walk->entries[node->loop]) { /* After a pass, the flag has been read. */
    go(walk, loop + 1, loop);
    return false;
  }
  *step = wait_for(walk, HEAD, GK_STEP_FLAG, loop);
  return true;
}

/* On a device far away the pass has ended only now that its flag is here. */
static bool after_pass(gk_walk *walk, int64_t flag, gk_step *step) {
  const uint32_t loop = walk->block;
  if (cancelled(walk)) stop(walk);
  else if (!flag) end_loop(walk, loop);
  else return repeat(walk, loop, step);
  return false;
}

static void take_head(gk_walk *walk, int64_t flag) {
  if (flag) go(walk, walk->at + 1, walk->at);
  else end_loop(walk, walk->at);
}

static void after_checkpoint(gk_walk *walk, int64_t flag) {
  const uint32_t block = walk->block;
  walk->record->ran[walk->plan->nodes[block].checkpoint] = 1;
  if (flag) walk->record->yielded = block;
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
  for (; one < end && flag != 0; --flag) /* A negative one gets to the end. */
    one = nodes[one].end;
  if (one < end) go(walk, one + 1, one);
  else leave(walk, branch);
}

/* Leaves `block`, whose end was reached. True: *step has to be done for that. */
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
    ++walk->record->passes[node->loop];
    ++walk->entries[node->loop];
    if (cancelled(walk)) {
      stop(walk);
      return false;
    }
    *step = wait_for(walk, TURN, GK_STEP_FLAG, block);
    return true;
  case GK_OP_CHECKPOINT:
    if (!node->flag) {
      walk->record->ran[node->checkpoint] = 1;
      break;
    }
    *step = wait_for(walk, YIELD, GK_STEP_FLAG, block);
    return true;
  case GK_OP_PARALLEL: leave_parallel(walk); return false;
  case GK_OP_CASE: leave(walk, node->parent); return false; /* No other case is for this value. */
  default: break;
  }
  leave(walk, block);
  return false;
}

/* The run that is all of a checkpoint's block and can be asked for together with its flag; else UINT32_MAX. */
static uint32_t run_of_block(const gk_walk *walk, uint32_t checkpoint) {
  const gk_plan *plan = walk->plan;
  const gk_node *node = &plan->nodes[checkpoint];
  if (!(walk->takes & 1u << GK_STEP_CHECKPOINT) || !node->flag || checkpoint + 1 == node->end) return UINT32_MAX;
  uint32_t run = plan->nodes[checkpoint + 1].run;
  return run != UINT32_MAX && plan->runs[run].end == node->end ? run : UINT32_MAX;
}

/* Comes to the block at `at`. True: *step has to be done before it is entered. */
static bool visit(gk_walk *walk, gk_step *step) {
  uint32_t at = walk->at, run;
  const gk_node *node = &walk->plan->nodes[at];
  switch (node->op) {
  case GK_OP_WHILE:
  case GK_OP_DO_WHILE:
    walk->entries[node->loop] = 0;
    if (offer(walk, at, step)) return true;
    if (node->op == GK_OP_DO_WHILE) break;
    *step = wait_for(walk, HEAD, GK_STEP_FLAG, at);
    return true;
  case GK_OP_IF:
  case GK_OP_SWITCH: *step = wait_for(walk, BRANCH, GK_STEP_FLAG, at); return true;
  case GK_OP_CHECKPOINT:
    if ((run = run_of_block(walk, at)) == UINT32_MAX) break;
    walk->block = at;
    walk->phase = YIELD;
    *step = step_of(GK_STEP_CHECKPOINT, run, at);
    return true;
  case GK_OP_ELSE: leave(walk, at); return false; /* Reached from the block before it, which was taken. */
  case GK_OP_PARALLEL:
    if (!(walk->takes & 1u << GK_STEP_FORK)) break;
    *step = wait_for(walk, FORK, GK_STEP_FORK, at);
    return true;
  default: break;
  }
  go(walk, at + 1, at);
  return false;
}

/* The run at `at`. */
static gk_step go_on(gk_walk *walk) {
  const gk_plan *plan = walk->plan;
  const gk_node *node = &plan->nodes[walk->at];
  walk->always += node->always;
  walk->at = plan->runs[node->run].end;
  return step_of(GK_STEP_RUN, node->run, 0);
}

/* Always-tasks that are still due, up to node `before`. */
static bool next_always(gk_walk *walk, uint32_t before, gk_step *step) {
  const gk_plan *plan = walk->plan;
  if (walk->always >= plan->always_count || plan->always[walk->always] >= before) return false;
  *step = step_of(GK_STEP_RUN, plan->nodes[plan->always[walk->always++]].run, 0);
  return true;
}

/* Always-tasks before the target are done. */
static void go_to_target(gk_walk *walk) {
  go(walk, walk->target, walk->plan->nodes[walk->target].parent);
  walk->target = 0;
}

/* Always-tasks that are still due behind a stop, then the end. */
static gk_step finish_walk(gk_walk *walk) {
  gk_step step;
  if (walk->phase == EPILOGUE && next_always(walk, UINT32_MAX, &step)) return step;
  if (!walk->root) {
    gk_launch_result *record = walk->record;
    record->state = record->yielded ? GK_YIELDED : walk->stopped ? GK_CANCELLED : GK_FINISHED;
    record->limit = walk->limit;
  }
  return wait_for(walk, OVER, GK_STEP_END, walk->root);
}

void gk_walk_start(gk_walk *walk, const gk_plan *plan, const gk_launch_args *launch, uint32_t takes,
                   gk_launch_result *record) {
  *walk = (gk_walk){.plan = plan, .record = record, .entries = launch->entries, .cancel = launch->cancel,
                    .takes = takes, .target = launch->target};
  if (walk->target) walk->phase = PROLOGUE;
  else if (plan->loop_count) memset(walk->entries, 0, plan->loop_count * sizeof *walk->entries);
  if (!walk->target) go(walk, 1, 0);
}

/* What it waited for is here: the answer to the step before. True: *step is clear already. */
static bool answered(gk_walk *walk, int64_t answer, gk_step *step) {
  switch ((enum phase)walk->phase) {
  case HEAD: take_head(walk, answer); return false;
  case TURN: return after_pass(walk, answer, step);
  case YIELD: after_checkpoint(walk, answer); return false;
  case BRANCH: take_branch(walk, answer); return false;
  case SEVERAL: return after_several(walk, answer, step);
  case FORK: after_fork(walk); return false;
  case PROLOGUE:
    if (next_always(walk, walk->target, step)) return true;
    go_to_target(walk);
    return false;
  case GO:
  case EPILOGUE:
  case OVER: break; /* gk_walk_next sees to these */
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
    else if (plan->nodes[walk->at].run == UINT32_MAX) due = visit(walk, &step);
    else return go_on(walk);
    if (due) return step;
  }
}

void gk_walk_fork(const gk_walk *walk, uint32_t section, gk_walk *section_walk) {
  *section_walk = *walk;
  section_walk->root = section;
  section_walk->limit = 0;
  section_walk->stopped = false; /* what a section beside it did, joined already, is no affair of its own */
  section_walk->sections = 0;
  go(section_walk, section + 1, section);
}

void gk_walk_join(gk_walk *walk, const gk_walk *section_walk) {
  if (!walk->limit) walk->limit = section_walk->limit;
  walk->stopped |= section_walk->stopped;
}
