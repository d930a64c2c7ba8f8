/* A plan as a table of points, which walk.inc walks. The points stand in list order, so the arms of a branch and the
 * bodies of loops are adjacent. */
#include "gk_ahead.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/op.h"
#include "plan/walk.inc"
#include <string.h>

typedef struct gki_points { gk_points points; gki_arena arena; } gki_points;

/* What a block hands down to the points in it. */
typedef struct context { uint32_t lane, stop, around; } context;

typedef struct maker {
  const gk_plan *plan;
  uint32_t *table;
  uint32_t *begin, *behind; /* by node: its first point, and the first one behind it */
  uint32_t *runs, *targets, *loops;
  uint32_t exit, lane, fork; /* the next one's index */
  uint32_t runs_at, loops_at, checkpoints_at;
} maker;

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static bool is_outside_runs(const gk_node *node) { return node->run == GK_NONE; } /* a block that isn't part of a run */

/* Points in front of a node's contents, and behind: 1 or 0. */
static uint32_t points_before(const gk_node *node) {
  return node->op != GK_OP_CHECKPOINT && node->op != GK_OP_CASE && node->op != GK_OP_ELSE &&
         node->op != GK_OP_SECTION;
}
static uint32_t points_after(const gk_node *node) {
  return gki_op_is_loop(node->op) || node->op == GK_OP_CHECKPOINT || node->op == GK_OP_SECTION ||
         node->op == GK_OP_PARALLEL;
}

typedef struct sizes { uint32_t points, exits, lanes; } sizes;

/* Numbers the points in list order. */
static void number(maker *make, uint32_t at, uint32_t end, sizes *size) {
  const gk_plan *plan = make->plan;
  while (at < end) {
    const gk_node *node = &plan->nodes[at];
    make->begin[at] = size->points * GKW_WORDS;
    if (!is_outside_runs(node)) {
      ++size->points;
      at = plan->runs[node->run].end;
      continue;
    }
    size->points += points_before(node);
    size->exits += node->op == GK_OP_CASE || node->op == GK_OP_SECTION;
    size->lanes += node->op == GK_OP_SECTION;
    number(make, at + 1, node->end, size);
    size->points += points_after(node);
    make->behind[at] = size->points * GKW_WORDS;
    at = node->end;
  }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static uint32_t *put(maker *make, uint32_t at, uint32_t kind, const context *in, uint32_t node) {
  const gk_node *of = &make->plan->nodes[node];
  uint32_t *point = &make->table[at];
  point[GKW_KIND] = kind;
  point[GKW_LANE] = in->lane;
  point[GKW_SLOT] = of->flag;
  point[GKW_OFFSET] = of->offset;
  point[GKW_STOP] = in->stop;
  point[GKW_AROUND] = in->around;
  point[GKW_NODE] = node;
  return point;
}

static void put_block(maker *make, uint32_t at, uint32_t end, context in, uint32_t next);

/* The first point of a block's contents; next: where they lead, if there are none. */
static uint32_t first_of(const maker *make, uint32_t at, uint32_t end, uint32_t next) {
  return at < end ? make->begin[at] : next;
}

static void put_loop(maker *make, uint32_t at, const context *in, uint32_t next) {
  const gk_node *node = &make->plan->nodes[at];
  const uint32_t pass_end = make->behind[at] - GKW_WORDS, body = first_of(make, at + 1, node->end, pass_end);
  uint32_t *head = put(make, make->begin[at], node->op == GK_OP_WHILE ? GKW_HEAD : GKW_ENTER, in, at);
  uint32_t *end = put(make, pass_end, GKW_PASS_END, in, at);
  head[GKW_RECORD] = end[GKW_RECORD] = make->loops_at + node->loop * GKW_LOOP_WORDS;
  head[GKW_NEXT] = end[GKW_NEXT] = body;
  head[GKW_PAST] = end[GKW_PAST] = next;
  end[GKW_BOUND] = node->max_iterations;
  make->loops[node->loop] = pass_end;
  put_block(make, at + 1, node->end, *in, pass_end);
}

static void put_if(maker *make, uint32_t at, const context *in, uint32_t next) {
  const gk_node *node = &make->plan->nodes[at];
  const uint32_t other = node->otherwise, end = other ? other : node->end;
  uint32_t *point = put(make, make->begin[at], GKW_IF, in, at);
  point[GKW_NEXT] = first_of(make, at + 1, end, next);
  point[GKW_PAST] = other ? first_of(make, other + 1, node->end, next) : next;
  put_block(make, at + 1, end, *in, next);
  if (other) put_block(make, other + 1, node->end, *in, next);
}

static uint32_t count_children(const gk_plan *plan, uint32_t at) {
  uint32_t count = 0;
  for (uint32_t child = at + 1; child < plan->nodes[at].end; child = plan->nodes[child].end) ++count;
  return count;
}

static void put_switch(maker *make, uint32_t at, const context *in, uint32_t next) {
  const gk_node *nodes = make->plan->nodes;
  uint32_t *point = put(make, make->begin[at], GKW_BRANCH, in, at);
  uint32_t exit = make->exit;
  point[GKW_NEXT] = exit;
  point[GKW_PAST] = next;
  point[GKW_BOUND] = count_children(make->plan, at);
  make->exit += point[GKW_BOUND];
  for (uint32_t one = at + 1; one < nodes[at].end; one = nodes[one].end) {
    make->table[exit++] = first_of(make, one + 1, nodes[one].end, next);
    put_block(make, one + 1, nodes[one].end, *in, next);
  }
}

static void put_checkpoint(maker *make, uint32_t at, context in, uint32_t next) {
  const gk_node *node = &make->plan->nodes[at];
  const uint32_t end = make->behind[at] - GKW_WORDS;
  uint32_t *point = put(make, end, node->flag ? GKW_YIELD : GKW_MARK, &in, at);
  point[GKW_RECORD] = make->checkpoints_at + node->checkpoint;
  point[GKW_NEXT] = next;
  make->targets[node->checkpoint] = first_of(make, at + 1, node->end, end);
  in.around = end;
  put_block(make, at + 1, node->end, in, end);
}

static void put_parallel(maker *make, uint32_t at, const context *in, uint32_t next) {
  const gk_node *nodes = make->plan->nodes;
  const uint32_t join = make->behind[at] - GKW_WORDS;
  uint32_t *fork = put(make, make->begin[at], GKW_FORK, in, at), *end = put(make, join, GKW_JOIN, in, at);
  uint32_t exit = make->exit;
  fork[GKW_RECORD] = end[GKW_RECORD] = make->fork;
  fork[GKW_NEXT] = exit;
  fork[GKW_PAST] = join;
  fork[GKW_BOUND] = count_children(make->plan, at);
  end[GKW_NEXT] = next;
  end[GKW_PAST] = make->begin[at];
  make->exit += fork[GKW_BOUND];
  make->fork += GKW_FORK_WORDS;
  for (uint32_t one = at + 1; one < nodes[at].end; one = nodes[one].end) {
    const uint32_t last = make->behind[one] - GKW_WORDS;
    const context inside = {.lane = make->lane, .stop = last, .around = in->around};
    make->lane += GKW_LANE_WORDS;
    uint32_t *section = put(make, last, GKW_SECTION_END, &inside, one);
    section[GKW_RECORD] = fork[GKW_RECORD];
    section[GKW_NEXT] = join;
    make->table[exit++] = first_of(make, one + 1, nodes[one].end, last);
    put_block(make, one + 1, nodes[one].end, inside, last);
  }
}

static void put_run(maker *make, uint32_t run, const context *in, uint32_t next) {
  const uint32_t begin = make->plan->runs[run].begin;
  uint32_t *point = put(make, make->begin[begin], GKW_RUN, in, begin);
  point[GKW_RECORD] = make->runs_at + run * GKW_RUN_WORDS;
  point[GKW_NEXT] = next;
  point[GKW_NODE] = run;
  make->runs[run] = make->begin[begin];
}

static uint32_t next_item(const gk_plan *plan, uint32_t at) {
  const gk_node *node = &plan->nodes[at];
  return is_outside_runs(node) ? node->end : plan->runs[node->run].end;
}

static void put_item(maker *make, uint32_t at, const context *in, uint32_t next) {
  const gk_node *node = &make->plan->nodes[at];
  if (!is_outside_runs(node)) {
    put_run(make, node->run, in, next);
    return;
  }
  switch (node->op) {
  case GK_OP_DO_WHILE: case GK_OP_WHILE: put_loop(make, at, in, next); break;
  case GK_OP_IF: put_if(make, at, in, next); break;
  case GK_OP_SWITCH: put_switch(make, at, in, next); break;
  case GK_OP_CHECKPOINT: put_checkpoint(make, at, *in, next); break;
  default: put_parallel(make, at, in, next); break;
  }
}

static void put_block(maker *make, uint32_t at, uint32_t end, context in, uint32_t next) {
  for (uint32_t then; at < end; at = then) {
    then = next_item(make->plan, at);
    put_item(make, at, &in, first_of(make, then, end, next));
  }
}

/* At the top, a stop leads to the next always-task behind it, or to the list's end. */
static void put_list(maker *make, uint32_t end) {
  const gk_plan *plan = make->plan;
  context in = {.lane = GKW_LANES, .stop = end, .around = GKW_NONE};
  put(make, end, GKW_END, &in, 0);
  for (uint32_t at = 1, then, always = 0; at < plan->nodes[0].end; at = then) {
    then = next_item(plan, at);
    while (always < plan->always_count && plan->always[always] <= at) ++always;
    in.stop = always < plan->always_count ? make->begin[plan->always[always]] : end;
    put_item(make, at, &in, first_of(make, then, plan->nodes[0].end, end));
  }
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

static bool alloc_arrays(maker *make, gki_arena *arena, gki_arena *scratch, gk_points *points, sizes *size) {
  const gk_plan *plan = make->plan;
  make->begin = gki_arena_alloc(scratch, plan->node_count, sizeof *make->begin);
  make->behind = gki_arena_alloc(scratch, plan->node_count, sizeof *make->behind);
  if (!make->begin || !make->behind) return false;
  number(make, 1, plan->nodes[0].end, size);
  make->exit = (size->points + 1) * GKW_WORDS;
  points->word_count = make->exit + size->exits;
  make->table = gki_arena_alloc(arena, points->word_count, sizeof *make->table);
  make->runs = gki_arena_alloc(arena, plan->run_count, sizeof *make->runs);
  make->targets = gki_arena_alloc(arena, plan->checkpoint_count, sizeof *make->targets);
  make->loops = gki_arena_alloc(arena, plan->loop_count, sizeof *make->loops);
  return make->table && make->runs && make->targets && make->loops;
}

gk_result gk_points_make(const gk_plan *plan, const gk_points **points) {
  *points = NULL;
  gki_points *made = gk_host_alloc(sizeof *made);
  gki_arena scratch = {.last = NULL};
  maker make = {.plan = plan, .lane = GKW_LANES + GKW_LANE_WORDS};
  sizes size = {.lanes = 1};
  const bool done = made && alloc_arrays(&make, &made->arena, &scratch, &made->points, &size);
  if (done) {
    make.runs_at = GKW_LANES + size.lanes * GKW_LANE_WORDS;
    make.loops_at = make.runs_at + plan->run_count * GKW_RUN_WORDS;
    make.checkpoints_at = make.loops_at + plan->loop_count * GKW_LOOP_WORDS;
    make.fork = make.checkpoints_at + plan->checkpoint_count;
    const uint32_t end = size.points * GKW_WORDS;
    put_list(&make, end);
    made->points = (gk_points){.plan = plan, .table = make.table, .word_count = made->points.word_count,
                               .state_count = make.fork, .lane_count = size.lanes, .runs = make.runs,
                               .targets = make.targets, .loops = make.loops,
                               .first = first_of(&make, 1, plan->nodes[0].end, end), .end = end,
                               .loops_at = make.loops_at, .checkpoints_at = make.checkpoints_at};
    *points = &made->points;
  } else if (made) {
    gk_points_free(&made->points);
  }
  gki_arena_free(&scratch);
  return done ? GK_OK : gki_fail_memory("the points of a plan", plan->node_count * GKW_WORDS * sizeof(uint32_t));
}

void gk_points_free(const gk_points *points) {
  if (!points) return;
  gki_points *whole = (gki_points *)(uintptr_t)points;
  gki_arena_free(&whole->arena);
  gk_host_free(whole);
}

gk_result gk_plan_points(const gk_plan *plan, const gk_points **points) {
  gk_plan *owned = (gk_plan *)(uintptr_t)plan; /* of a graph, which is being created */
  const gk_result result = plan->points ? GK_OK : gk_points_make(plan, &owned->points);
  if (points) *points = plan->points;
  return result;
}

const char *gk_walk_text(void) {
  extern const char gki_text_walk[];
  return gki_text_walk;
}

/* ---- the state --------------------------------------------------------------------------------------------------- */

void gk_points_start(const gk_points *points, const gk_launch_args *launch, uint32_t *state) {
  const gk_plan *plan = points->plan;
  memset(state, 0, points->state_count * sizeof *state);
  for (uint32_t k = 0; k < plan->run_count; ++k) {
    uint32_t *run = &state[points->table[points->runs[k] + GKW_RECORD]];
    run[GKW_TASKS] = run[GKW_CONTROL] = GKW_CLOSED;
  }
  state[GKW_TARGET] = GKW_NONE;
  uint32_t first = points->first;
  if (launch->target) {
    first = points->targets[plan->nodes[launch->target].checkpoint];
    if (plan->always_count && plan->always[0] < launch->target) {
      state[GKW_TARGET] = first;
      first = points->runs[plan->nodes[plan->always[0]].run];
    }
  }
  state[GKW_LANES + GKW_AT] = first;
  if (points->table[first + GKW_KIND] != GKW_RUN) state[GKW_DUE] = GKW_LANES;
  else state[points->table[first + GKW_RECORD] + GKW_TASKS] = state[points->table[first + GKW_RECORD] + GKW_CONTROL] =
      GKW_OPEN;
  for (uint32_t k = 0; k < plan->loop_count && launch->target; ++k)
    state[points->loops_at + k * GKW_LOOP_WORDS + GKW_ENTRY] =
        launch->entries[k] < UINT32_MAX ? (uint32_t)launch->entries[k] : UINT32_MAX;
}

bool gk_points_over(const gk_points *points, const uint32_t *state) {
  return state[GKW_LANES + GKW_AT] == points->end && !state[GKW_DUE];
}

void gk_points_add(const gk_points *points, const uint32_t *state, uint32_t *before, const gk_launch_args *launch,
                   gk_launch_result *result) {
  const gk_plan *plan = points->plan;
  for (uint32_t k = 0; k < plan->loop_count; ++k) {
    const uint32_t *loop = &state[points->loops_at + k * GKW_LOOP_WORDS];
    result->passes[k] += loop[GKW_PASSES] - before[k]; /* differences of 32 bits: a launch may make more passes */
    before[k] = loop[GKW_PASSES];
    result->hit_bound[k] = loop[GKW_HIT] != 0;
    launch->entries[k] = loop[GKW_ENTRY];
  }
  for (uint32_t k = 0; k < plan->checkpoint_count; ++k) result->ran[k] = state[points->checkpoints_at + k] != 0;
  result->yielded = state[GKW_YIELDED];
  result->limit = state[GKW_LANES + GKW_LIMIT];
  result->state = result->yielded ? GK_YIELDED : state[GKW_STOPPED] ? GK_CANCELLED : GK_FINISHED;
}
