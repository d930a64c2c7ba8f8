/* A plan as a table of points, which walk.inc walks. The points stand in list order, so the arms of a branch and the
 * bodies of loops are adjacent. */
#include "gk_ahead.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/op.h"
#include "plan/node.h"
#include "plan/walk.inc"
#include <string.h>

typedef struct gki_points { gk_points points; gki_arena arena; } gki_points;

/* The words GKW_LANE, GKW_STOP and GKW_AROUND of points. A block hands them down to its contents. */
typedef struct point_scope { uint32_t lane, stop, around; } point_scope;

typedef struct builder {
  const gk_plan *plan;
  uint32_t *table;
  uint32_t *begin, *behind; /* by node: its first point; for blocks outside runs, the first point behind it */
  uint32_t *runs, *targets, *loops; /* as in gk_points */
  uint32_t exit;            /* index in the table: the next exit */
  uint32_t lane, fork;      /* indices in the state: the words of the next lane and of the next PARALLEL */
  uint32_t runs_at, loops_at, checkpoints_at; /* indices in the state */
} builder;

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static bool is_outside_runs(const gk_node *node) { return node->run == GK_NONE; } /* a block that isn't part of a run */

/* The number of points in front of a block's contents, and behind them: 1 or 0. */
static uint32_t points_before(const gk_node *node) {
  return node->op != GK_OP_CHECKPOINT && node->op != GK_OP_CASE && node->op != GK_OP_ELSE &&
         node->op != GK_OP_SECTION;
}
static uint32_t points_after(const gk_node *node) {
  return gki_op_is_loop(node->op) || node->op == GK_OP_CHECKPOINT || node->op == GK_OP_SECTION ||
         node->op == GK_OP_PARALLEL;
}

/* In front of a target, a point for each REPEAT around it reads the count. */
static uint32_t count_aims(const gk_plan *plan, uint32_t at) {
  uint32_t count = 0;
  if (!gki_op_is_target(plan->nodes[at].op)) return 0;
  for (uint32_t up = plan->nodes[at].parent; up; up = plan->nodes[up].parent)
    count += plan->nodes[up].op == GK_OP_REPEAT;
  return count;
}

typedef struct sizes { uint32_t points, exits, lanes; } sizes;

/* Numbers the points in list order. */
static void number_points(builder *b, uint32_t at, uint32_t end, sizes *size) {
  const gk_plan *plan = b->plan;
  while (at < end) {
    const gk_node *node = &plan->nodes[at];
    if (node->op == GK_OP_CHECKPOINT) size->points += count_aims(plan, at);
    b->begin[at] = size->points * GKW_WORDS;
    if (!is_outside_runs(node)) {
      ++size->points;
      at = plan->runs[node->run].end;
      continue;
    }
    size->points += points_before(node);
    size->exits += node->op == GK_OP_CASE || node->op == GK_OP_SECTION;
    size->lanes += node->op == GK_OP_SECTION;
    number_points(b, at + 1, node->end, size);
    size->points += points_after(node) + (node->op == GK_OP_YIELD ? count_aims(plan, at) : 0);
    b->behind[at] = size->points * GKW_WORDS;
    at = node->end;
  }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static uint32_t *put_point(builder *b, uint32_t at, uint32_t kind, const point_scope *scope, uint32_t index) {
  const gk_node *node = &b->plan->nodes[index];
  uint32_t *point = &b->table[at];
  point[GKW_KIND] = kind;
  point[GKW_LANE] = scope->lane;
  point[GKW_SLOT] = gki_flag_slot(b->plan, node);
  point[GKW_OFFSET] = gki_flag_offset(b->plan, node);
  point[GKW_STOP] = scope->stop;
  point[GKW_AROUND] = scope->around;
  point[GKW_NODE] = index;
  return point;
}

static void put_block(builder *b, uint32_t at, uint32_t end, point_scope scope, uint32_t next);

/* The first point of a block's contents. If the block is empty, `next`, the point behind it. */
static uint32_t first_of(const builder *b, uint32_t at, uint32_t end, uint32_t next) {
  return at < end ? b->begin[at] : next;
}

static uint32_t *put_count(builder *b, uint32_t at, const point_scope *scope, uint32_t loop, uint32_t how) {
  const gk_node *node = &b->plan->nodes[loop];
  uint32_t *point = put_point(b, at, GKW_COUNT, scope, loop);
  point[GKW_RECORD] = b->loops_at + node->loop * GKW_LOOP_WORDS;
  point[GKW_BOUND] = node->count;
  point[GKW_HOW] = how | (gki_counts_by_number(b->plan, node) ? GKW_WIDE : 0);
  return point;
}

/* The points that read the counts of REPEATs around a target, the outermost first. @return the point at which a launch
 * from there begins */
static uint32_t put_aims(builder *b, uint32_t at, const point_scope *scope, uint32_t first, uint32_t target) {
  const gk_node *nodes = b->plan->nodes;
  const uint32_t count = count_aims(b->plan, at);
  uint32_t place = first + count * GKW_WORDS, next = target;
  for (uint32_t up = nodes[at].parent; up; up = nodes[up].parent) {
    if (nodes[up].op != GK_OP_REPEAT) continue;
    place -= GKW_WORDS;
    uint32_t *point = put_count(b, place, scope, up, GKW_AIMS);
    point[GKW_NEXT] = point[GKW_PAST] = next;
    next = place;
  }
  return next;
}

static void put_loop(builder *b, uint32_t at, const point_scope *scope, uint32_t next) {
  const gk_node *node = &b->plan->nodes[at];
  const uint32_t pass_end = b->behind[at] - GKW_WORDS, body = first_of(b, at + 1, node->end, pass_end);
  const bool repeats = node->op == GK_OP_REPEAT;
  uint32_t *head = repeats ? put_count(b, b->begin[at], scope, at, 0)
                           : put_point(b, b->begin[at], node->op == GK_OP_WHILE ? GKW_HEAD : GKW_ENTER, scope, at);
  uint32_t *end = put_point(b, pass_end, GKW_PASS_END, scope, at);
  head[GKW_RECORD] = end[GKW_RECORD] = b->loops_at + node->loop * GKW_LOOP_WORDS;
  head[GKW_NEXT] = end[GKW_NEXT] = body;
  head[GKW_PAST] = end[GKW_PAST] = next;
  end[GKW_BOUND] = node->max_iterations;
  end[GKW_HOW] = node->every;
  if (repeats) end[GKW_SLOT] = GKW_NONE;
  b->loops[node->loop] = pass_end;
  put_block(b, at + 1, node->end, *scope, pass_end);
}

static void put_if(builder *b, uint32_t at, const point_scope *scope, uint32_t next) {
  const gk_node *node = &b->plan->nodes[at];
  const uint32_t other = node->otherwise, end = other ? other : node->end;
  uint32_t *point = put_point(b, b->begin[at], GKW_IF, scope, at);
  point[GKW_NEXT] = first_of(b, at + 1, end, next);
  point[GKW_PAST] = other ? first_of(b, other + 1, node->end, next) : next;
  put_block(b, at + 1, end, *scope, next);
  if (other) put_block(b, other + 1, node->end, *scope, next);
}

static uint32_t count_children(const gk_plan *plan, uint32_t at) {
  uint32_t count = 0;
  for (uint32_t child = at + 1; child < plan->nodes[at].end; child = plan->nodes[child].end) ++count;
  return count;
}

static void put_switch(builder *b, uint32_t at, const point_scope *scope, uint32_t next) {
  const gk_node *nodes = b->plan->nodes;
  uint32_t *point = put_point(b, b->begin[at], GKW_BRANCH, scope, at);
  uint32_t exit = b->exit;
  point[GKW_NEXT] = exit;
  point[GKW_PAST] = next;
  point[GKW_BOUND] = count_children(b->plan, at);
  b->exit += point[GKW_BOUND];
  for (uint32_t branch = at + 1; branch < nodes[at].end; branch = nodes[branch].end) {
    b->table[exit++] = first_of(b, branch + 1, nodes[branch].end, next);
    put_block(b, branch + 1, nodes[branch].end, *scope, next);
  }
}

static void put_checkpoint(builder *b, uint32_t at, point_scope scope, uint32_t next) {
  const gk_node *node = &b->plan->nodes[at];
  const uint32_t end = b->behind[at] - GKW_WORDS;
  uint32_t *point = put_point(b, end, node->flag ? GKW_YIELD : GKW_MARK, &scope, at);
  point[GKW_RECORD] = b->checkpoints_at + node->checkpoint;
  point[GKW_NEXT] = next;
  const uint32_t aims = b->begin[at] - count_aims(b->plan, at) * GKW_WORDS;
  b->targets[node->checkpoint] = put_aims(b, at, &scope, aims, first_of(b, at + 1, node->end, end));
  scope.around = end;
  put_block(b, at + 1, node->end, scope, end);
}

/* A launch that resumes here begins behind the point. */
static void put_yield(builder *b, uint32_t at, const point_scope *scope, uint32_t next) {
  const gk_node *node = &b->plan->nodes[at];
  uint32_t *point = put_point(b, b->begin[at], GKW_YIELD, scope, at);
  point[GKW_RECORD] = b->checkpoints_at + node->checkpoint;
  point[GKW_NEXT] = next;
  b->targets[node->checkpoint] = put_aims(b, at, scope, b->begin[at] + GKW_WORDS, next);
}

static void put_parallel(builder *b, uint32_t at, const point_scope *scope, uint32_t next) {
  const gk_node *nodes = b->plan->nodes;
  const uint32_t join = b->behind[at] - GKW_WORDS;
  uint32_t *fork = put_point(b, b->begin[at], GKW_FORK, scope, at), *end = put_point(b, join, GKW_JOIN, scope, at);
  uint32_t exit = b->exit;
  fork[GKW_RECORD] = end[GKW_RECORD] = b->fork;
  fork[GKW_NEXT] = exit;
  fork[GKW_PAST] = join;
  fork[GKW_BOUND] = count_children(b->plan, at);
  end[GKW_NEXT] = next;
  end[GKW_PAST] = b->begin[at];
  b->exit += fork[GKW_BOUND];
  b->fork += GKW_FORK_WORDS;
  for (uint32_t section = at + 1; section < nodes[at].end; section = nodes[section].end) {
    const uint32_t last = b->behind[section] - GKW_WORDS;
    const point_scope inside = {.lane = b->lane, .stop = last, .around = scope->around};
    b->lane += GKW_LANE_WORDS;
    uint32_t *section_end = put_point(b, last, GKW_SECTION_END, &inside, section);
    section_end[GKW_RECORD] = fork[GKW_RECORD];
    section_end[GKW_NEXT] = join;
    b->table[exit++] = first_of(b, section + 1, nodes[section].end, last);
    put_block(b, section + 1, nodes[section].end, inside, last);
  }
}

static void put_run(builder *b, uint32_t run, const point_scope *scope, uint32_t next) {
  const uint32_t begin = b->plan->runs[run].begin;
  uint32_t *point = put_point(b, b->begin[begin], GKW_RUN, scope, begin);
  point[GKW_RECORD] = b->runs_at + run * GKW_RUN_WORDS;
  point[GKW_NEXT] = next;
  point[GKW_NODE] = run;
  b->runs[run] = b->begin[begin];
}

static uint32_t next_item(const gk_plan *plan, uint32_t at) {
  const gk_node *node = &plan->nodes[at];
  return is_outside_runs(node) ? node->end : plan->runs[node->run].end;
}

static void put_item(builder *b, uint32_t at, const point_scope *scope, uint32_t next) {
  const gk_node *node = &b->plan->nodes[at];
  if (!is_outside_runs(node)) {
    put_run(b, node->run, scope, next);
    return;
  }
  switch (node->op) {
  case GK_OP_DO_WHILE: case GK_OP_WHILE: case GK_OP_REPEAT: put_loop(b, at, scope, next); break;
  case GK_OP_IF: put_if(b, at, scope, next); break;
  case GK_OP_SWITCH: put_switch(b, at, scope, next); break;
  case GK_OP_CHECKPOINT: put_checkpoint(b, at, *scope, next); break;
  case GK_OP_YIELD: put_yield(b, at, scope, next); break;
  default: put_parallel(b, at, scope, next); break;
  }
}

static void put_block(builder *b, uint32_t at, uint32_t end, point_scope scope, uint32_t next) {
  for (uint32_t behind; at < end; at = behind) {
    behind = next_item(b->plan, at);
    put_item(b, at, &scope, first_of(b, behind, end, next));
  }
}

/* At the top, a stop leads to the next always-task behind it, or to the list's end. */
static void put_list(builder *b, uint32_t end) {
  const gk_plan *plan = b->plan;
  point_scope scope = {.lane = GKW_LANES, .stop = end, .around = GKW_NONE};
  put_point(b, end, GKW_END, &scope, 0);
  for (uint32_t at = 1, behind, always = 0; at < plan->nodes[0].end; at = behind) {
    behind = next_item(plan, at);
    while (always < plan->always_count && plan->always[always] <= at) ++always;
    scope.stop = always < plan->always_count ? b->begin[plan->always[always]] : end;
    put_item(b, at, &scope, first_of(b, behind, plan->nodes[0].end, end));
  }
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

/* Also numbers the points, which tells the length of the table. */
static bool alloc_arrays(builder *b, gki_arena *arena, gki_arena *scratch, gk_points *points, sizes *size) {
  const gk_plan *plan = b->plan;
  b->begin = gki_arena_alloc(scratch, plan->node_count, sizeof *b->begin);
  b->behind = gki_arena_alloc(scratch, plan->node_count, sizeof *b->behind);
  if (!b->begin || !b->behind) return false;
  number_points(b, 1, plan->nodes[0].end, size);
  b->exit = (size->points + 1) * GKW_WORDS;
  points->word_count = b->exit + size->exits;
  b->table = gki_arena_alloc(arena, points->word_count, sizeof *b->table);
  b->runs = gki_arena_alloc(arena, plan->run_count, sizeof *b->runs);
  b->targets = gki_arena_alloc(arena, plan->checkpoint_count, sizeof *b->targets);
  b->loops = gki_arena_alloc(arena, plan->loop_count, sizeof *b->loops);
  return b->table && b->runs && b->targets && b->loops;
}

/* put_list advances `lane` and `fork` to the ends of their parts. */
static void lay_out_state(builder *b, uint32_t lane_count) {
  b->lane = GKW_LANES + GKW_LANE_WORDS;
  b->runs_at = GKW_LANES + lane_count * GKW_LANE_WORDS;
  b->loops_at = b->runs_at + b->plan->run_count * GKW_RUN_WORDS;
  b->checkpoints_at = b->loops_at + b->plan->loop_count * GKW_LOOP_WORDS;
  b->fork = b->checkpoints_at + b->plan->checkpoint_count;
}

gk_result gk_points_make(const gk_plan *plan, const gk_points **points) {
  *points = NULL;
  gki_points *made = gk_host_alloc(sizeof *made);
  gki_arena scratch = {.last = NULL};
  builder b = {.plan = plan};
  sizes size = {.lanes = 1};
  const bool done = made && alloc_arrays(&b, &made->arena, &scratch, &made->points, &size);
  if (done) {
    lay_out_state(&b, size.lanes);
    const uint32_t end = size.points * GKW_WORDS;
    put_list(&b, end);
    made->points = (gk_points){.plan = plan, .table = b.table, .word_count = made->points.word_count,
                               .state_count = b.fork, .lane_count = size.lanes, .runs = b.runs,
                               .targets = b.targets, .loops = b.loops,
                               .first = first_of(&b, 1, plan->nodes[0].end, end), .end = end,
                               .loops_at = b.loops_at, .checkpoints_at = b.checkpoints_at};
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
  gk_plan *owned = (gk_plan *)(uintptr_t)plan; /* of a graph that is being created, so nothing else reads it */
  const gk_result result = plan->points ? GK_OK : gk_points_make(plan, &owned->points);
  if (points) *points = plan->points;
  return result;
}

/* Whether a lane waits at a point: a RUN, whose words are `words` then, or an END, where that is 0. */
static bool is_waited_at(const uint32_t *point, uint32_t *words) {
  *words = point[GKW_KIND] == GKW_RUN ? point[GKW_RECORD] : 0;
  return point[GKW_KIND] <= GKW_END;
}

bool gk_points_step(const gk_points *points, uint32_t run, uint32_t *words) {
  const uint32_t *before = &points->table[points->runs[run]], *point = &points->table[before[GKW_NEXT]];
  const uint32_t kind = point[GKW_KIND];
  memcpy(words, point, GKW_WORDS * sizeof *words);
  words[GKW_STEP_AT] = before[GKW_NEXT];
  words[GKW_STEP_RUN] = before[GKW_RECORD];
  words[GKW_STEP_STOP] = before[GKW_STOP];
  words[GKW_STEP_PAST] = 0;
  if (kind == GKW_YIELD) words[GKW_PAST] = point[GKW_STOP];
  const bool has_past = kind == GKW_HEAD || kind == GKW_PASS_END || kind == GKW_IF || kind == GKW_YIELD;
  if (!has_past && kind != GKW_ENTER && kind != GKW_MARK) return false;
  return is_waited_at(&points->table[point[GKW_NEXT]], &words[GKW_STEP_NEXT]) &&
         (!has_past || is_waited_at(&points->table[words[GKW_PAST]], &words[GKW_STEP_PAST]));
}

const char *gk_walk_text(void) {
  extern const char gki_text_walk[];
  return gki_text_walk;
}

/* ---- the state --------------------------------------------------------------------------------------------------- */

static void set_run(const gk_points *points, uint32_t at, uint32_t *state, uint32_t value) {
  state[points->table[at + GKW_RECORD] + GKW_TASKS] = value;
}

/* The point at which a launch begins. If an always-task comes before the target, the target waits in the state. */
static uint32_t find_first(const gk_points *points, const gk_launch_args *launch, uint32_t *state) {
  const gk_plan *plan = points->plan;
  state[GKW_TARGET] = GKW_NONE;
  if (!launch->target) return points->first;
  const uint32_t target = points->targets[plan->nodes[launch->target].checkpoint];
  if (!plan->always_count || plan->always[0] > launch->target) return target;
  state[GKW_TARGET] = target;
  return points->runs[plan->nodes[plan->always[0]].run];
}

void gk_points_start(const gk_points *points, const gk_launch_args *launch, uint32_t *state) {
  const gk_plan *plan = points->plan;
  memset(state, 0, points->state_count * sizeof *state);
  for (uint32_t k = 0; k < plan->run_count; ++k) set_run(points, points->runs[k], state, GKW_CLOSED);
  const uint32_t first = state[GKW_LANES + GKW_AT] = find_first(points, launch, state);
  if (points->table[first + GKW_KIND] == GKW_RUN) set_run(points, first, state, GKW_OPEN);
  else state[GKW_DUE] = GKW_LANES;
  for (uint32_t k = 0; k < plan->loop_count && launch->target; ++k) {
    uint32_t *loop = &state[points->loops_at + k * GKW_LOOP_WORDS];
    const uint64_t entry = launch->entries[k], left = launch->counts[k] > entry ? launch->counts[k] - entry : 0;
    const uint32_t every = plan->nodes[plan->loops[k]].every;
    loop[GKW_ENTRY] = entry < UINT32_MAX ? (uint32_t)entry : UINT32_MAX;
    loop[GKW_LEFT] = every ? every - (uint32_t)(entry % every) : (uint32_t)left;
    loop[GKW_LEFT_HIGH] = (uint32_t)(left >> 32);
  }
}

uint32_t gk_points_pass(const gk_points *points, uint32_t node) {
  return points->loops_at + points->plan->nodes[node].loop * GKW_LOOP_WORDS + GKW_ENTRY;
}

bool gk_points_over(const gk_points *points, const uint32_t *state) {
  return state[GKW_LANES + GKW_AT] == points->end && !state[GKW_DUE];
}

void gk_points_add(const gk_points *points, const uint32_t *state, uint32_t *before, const gk_launch_args *launch,
                   gk_launch_result *result) {
  const gk_plan *plan = points->plan;
  for (uint32_t k = 0; k < plan->loop_count; ++k) {
    const uint32_t *loop = &state[points->loops_at + k * GKW_LOOP_WORDS];
    result->passes[k] += loop[GKW_PASSES] - before[k]; /* right also if the device's 32 bits have overflowed */
    before[k] = loop[GKW_PASSES];
    result->hit_bound[k] = loop[GKW_HIT] != 0;
    const gk_node *node = &plan->nodes[plan->loops[k]];
    const bool repeats = node->op == GK_OP_REPEAT;
    launch->entries[k] = loop[GKW_ENTRY];
    if (loop[GKW_ENTRY] == UINT32_MAX && node->every) /* the passes since the last multiple stay known */
      launch->entries[k] += 2 * (uint64_t)node->every - loop[GKW_LEFT] - UINT32_MAX % node->every;
    launch->counts[k] = repeats ? ((uint64_t)loop[GKW_LEFT_HIGH] << 32) + loop[GKW_LEFT] + loop[GKW_ENTRY] : 0;
  }
  for (uint32_t k = 0; k < plan->checkpoint_count; ++k) result->ran[k] = state[points->checkpoints_at + k] != 0;
  result->yielded = state[GKW_YIELDED];
  result->limit = state[GKW_LANES + GKW_LIMIT];
  result->state = result->yielded ? GK_YIELDED : state[GKW_STOPPED] ? GK_CANCELLED : GK_FINISHED;
}
