/* The gates of a plan. Segments that stops and targets close get gates or guards, the close items of each block are
 * numbered, and all is written to constant arrays. segments.c cuts the plan into segments. */
#include "base/costs.h"
#include "base/error.h"
#include "base/op.h"
#include "plan/segments.h"
#include <string.h>

/* `gates` comes first: gk_gates_free gets its address. */
typedef struct gki_gates {
  gk_gates gates;
  gki_arena arena;
} gki_gates;

/* The arrays of the result, which are still being filled. */
typedef struct writer {
  gki_gating *g;
  gk_gates *out;
  gk_gate_node *nodes;
  gk_gate_close *closes;
  gk_gate_block *blocks;
  uint32_t *reenables;
} writer;

/* ---- copies ------------------------------------------------------------------------------------------------------ */

enum { MOST_COPIED = 64, MOST_ADDED = 1024 }; /* most tasks in all copies of a loop; most that copies add in all */

/* The tasks of a loop's body if it is one straight run, so that no launch can stop or begin in it; else GK_NONE. */
static uint32_t count_straight(const gk_plan *plan, uint32_t i) {
  const gk_node *nodes = plan->nodes;
  uint32_t tasks = 0;
  for (uint32_t k = i + 1; k < nodes[i].end; ++k) {
    if (nodes[k].run == GK_NONE || nodes[k].always) return GK_NONE;
    tasks += gki_op_is_task(nodes[k].op);
  }
  return tasks;
}

/* The number of copies is the greatest divisor of `passes` with few enough tasks. If it doesn't divide the bound, the
 * rest stands behind the node, and its tasks count, too. Plain gates have no rest: their number divides both.
 * *left: tasks that may still be added to the graph. */
static gki_copies copies_of(const gki_gating *g, uint32_t passes, uint32_t bound, uint32_t tasks, uint32_t *left) {
  uint32_t count = MOST_COPIED / tasks, rest = 0;
  for (count = count < passes ? count : passes; count > 1; --count) {
    rest = bound % count;
    const uint32_t all = (count + rest) * tasks;
    if (passes % count || all > MOST_COPIED || all - tasks > *left) continue;
    *left -= all - tasks;
    break;
  }
  if (count <= 1) return (gki_copies){1, 1, 0, false};
  uint32_t even = count;
  while (count % even || bound % even) --even;
  return gki_is_plain(g) ? (gki_copies){even, even, 0, false} : (gki_copies){count, count, rest, false};
}

/* Only passes that nothing can stop are copied: with a straight body, those between two reads of a flag, and all of a
 * REPEAT with a constant count, unless it can be cancelled. */
static void choose_copies(gki_gating *g) {
  uint32_t left = MOST_ADDED;
  for (uint32_t k = 0; k < g->plan->loop_count; ++k) {
    const gk_node *n = &g->plan->nodes[g->plan->loops[k]];
    const bool repeats = n->op == GK_OP_REPEAT;
    const uint32_t tasks = count_straight(g->plan, g->plan->loops[k]), bound = n->max_iterations;
    const uint32_t most = repeats ? n->count : n->every, passes = bound && bound < most ? bound : most;
    gki_copies *copies = &g->copies[k];
    *copies = (gki_copies){1, 1, 0, false};
    if (tasks == GK_NONE || n->is_numbered || (repeats && g->bits & GK_WITH_CANCEL)) continue;
    if (repeats && !tasks) *copies = (gki_copies){1, passes, 0, passes != 0};
    if (!tasks || !passes) continue;
    *copies = copies_of(g, passes, repeats ? 0 : bound, tasks, &left);
    copies->unrolled = repeats && copies->count == passes;
  }
}

/* ---- scratch memory --------------------------------------------------------------------------------------------- */

/* Upper bounds for the records of each kind. They are allocated at once, so making a record can't fail. */
typedef struct bounds { size_t parts, segments, blocks, points, exits, kernels, handles; } bounds;

/* For one node. An always-task needs two more segments. */
static const bounds bounds_of_op[] = {
    /*                   parts, segments, blocks, points, exits, kernels, handles */
    [GK_OP_KERNEL]     = {1,    0,        0,      0,      0,     0,       0},
    [GK_OP_COPY]       = {1,    0,        0,      0,      0,     0,       0},
    [GK_OP_FILL]       = {1,    0,        0,      0,      0,     0,       0},
    [GK_OP_CALL]       = {1,    0,        0,      0,      0,     0,       0},
    [GK_OP_CALL_HOST]  = {1,    0,        0,      0,      0,     0,       0},
    [GK_OP_YIELD]      = {0,    1,        0,      1,      1,     1,       0},
    [GK_OP_DO_WHILE]   = {2,    4,        2,      4,      8,     4,       2},
    [GK_OP_WHILE]      = {2,    4,        2,      3,      7,     3,       2},
    [GK_OP_REPEAT]     = {1,    5,        1,      3,      5,     3,       1},
    [GK_OP_IF]         = {1,    3,        1,      1,      2,     1,       1},
    [GK_OP_ELSE]       = {1,    1,        1,      0,      0,     0,       1},
    [GK_OP_SWITCH]     = {1,    3,        0,      1,      1,     1,       1},
    [GK_OP_CASE]       = {1,    1,        1,      0,      1,     0,       1},
    [GK_OP_CHECKPOINT] = {0,    2,        0,      1,      1,     1,       0},
    [GK_OP_PARALLEL]   = {1,    1,        0,      0,      0,     0,       0},
    [GK_OP_SECTION]    = {0,    1,        1,      0,      0,     0,       0},
};

/* Copied bodies hold no loop, so no node is in two of them. */
static bounds bounds_of(const gk_plan *plan, const gki_copies *copies, bool plain) {
  uint32_t end = 0, times = 1; /* of the loop whose body the node is in */
  bounds n = {.segments = 1 + 2 * (size_t)plan->always_count, .blocks = 1, .kernels = 1};
  for (uint32_t i = 1; i < plan->node_count; ++i) {
    const bounds *own = &bounds_of_op[plan->nodes[i].op];
    if (i >= end) times = 1;
    n.parts += (size_t)times * own->parts;
    n.segments += (size_t)times * own->segments;
    n.blocks += (size_t)times * own->blocks;
    if (gki_op_is_loop(plan->nodes[i].op)) {
      end = plan->nodes[i].end;
      times = copies[plan->nodes[i].loop].count + copies[plan->nodes[i].loop].rest;
    }
    n.points += own->points;
    n.exits += own->exits;
    n.kernels += own->kernels;
    n.handles += own->handles;
  }
  if (plain) n.segments += plan->loop_count; /* one more for each loop end */
  n.parts += n.kernels;
  n.handles += n.segments;
  if (plain) { /* each gate has a point */
    n.points += n.segments;
    n.exits += n.segments;
  }
  return n;
}

static bool alloc_scratch(gki_gating *g) {
  const gk_plan *plan = g->plan;
  gki_arena *a = &g->scratch;
  g->copies = gki_arena_alloc(a, plan->loop_count, sizeof *g->copies);
  if (!g->copies) return false;
  choose_copies(g);
  const bounds n = bounds_of(plan, g->copies, gki_is_plain(g));
  g->exit_limit = (uint32_t)n.exits;
  return (g->parts = gki_arena_alloc(a, n.parts, sizeof *g->parts)) &&
         (g->segments = gki_arena_alloc(a, n.segments, sizeof *g->segments)) &&
         (g->blocks = gki_arena_alloc(a, n.blocks, sizeof *g->blocks)) &&
         (g->points = gki_arena_alloc(a, n.points, sizeof *g->points)) &&
         (g->exits = gki_arena_alloc(a, n.exits + n.kernels, sizeof *g->exits)) &&
         (g->links = gki_arena_alloc(a, n.exits + n.kernels, sizeof *g->links)) &&
         (g->handles = gki_arena_alloc(a, n.handles, sizeof *g->handles)) &&
         (g->targets = gki_arena_alloc(a, plan->checkpoint_count, sizeof *g->targets)) &&
         (g->mark_links = gki_arena_alloc(a, plan->node_count, sizeof *g->mark_links)) &&
         (g->holds_loop = gki_arena_alloc(a, plan->node_count, sizeof *g->holds_loop)) &&
         (g->begins = gki_arena_alloc(a, plan->loop_count, sizeof *g->begins)) &&
         (g->loop_around = gki_arena_alloc(a, plan->loop_count, sizeof *g->loop_around)) &&
         (g->end_points = gki_arena_alloc(a, plan->loop_count, sizeof *g->end_points));
}

/* ---- which segments are closed, and by what ---------------------------------------------------------------------- */

/* A stop closes the end of its block and of each block around, a target the beginnings. So two numbers say all about a
 * block: the first segment that a stop closes, and the end of those that a target closes. */
static void find_closable(gki_gating *g) {
  if (g->bits & GK_WITH_CANCEL)
    for (uint32_t b = 0; b < g->block_count; ++b)
      if (g->blocks[b].loop != GK_NONE && g->blocks[b].stopped_from == GK_NONE)
        g->blocks[b].stopped_from = GK_NONE - 1; /* a cancelled launch stops at its end, behind the last segment */
  for (uint32_t b = g->block_count; b-- > 0;) { /* inner blocks have higher numbers */
    gki_block *own = &g->blocks[b], *around = own->around == GK_NONE ? NULL : &g->blocks[own->around];
    if (around && own->stopped_from != GK_NONE && own->after < around->stopped_from) around->stopped_from = own->after;
    if (around && own->has_target && own->before > around->passed_to) around->passed_to = own->before;
    if (around && own->has_target) around->has_target = true;
    for (uint32_t p = own->first; p != GK_NONE; p = g->segments[p].next)
      g->segments[p].closable = !g->segments[p].always && (p >= own->stopped_from || p < own->passed_to);
  }
}

/* Handwritten code gets only its own parameters, so it can't read a guard. */
static bool has_no_guard(const gk_node *node) { return gki_op_is_call(node->op) || node->handwritten; }

/* Whether the tasks of a segment read a guard. Few tasks do; more are put behind an IF node. */
static bool is_guarded(const gki_gating *g, const gki_segment *p) {
  if (!(g->bits & GK_WITH_GUARDS)) return false;
  uint32_t tasks = 0;
  for (uint32_t n = p->first; n != GK_NONE; n = g->parts[n].next) {
    if (g->parts[n].kind == GK_GATE_PARALLEL) return false;
    if (g->parts[n].kind != GK_GATE_TASK) continue;
    if (has_no_guard(&g->plan->nodes[g->parts[n].node]) || ++tasks > GKI_COST_MOST_GUARDED) return false;
  }
  return true;
}

/* A closable segment gets a gate, or a guard if it has only control kernels, conditional nodes and tasks that read
 * guards. In the second case the handles of its nodes are close items, too. With GK_WITH_PLAIN a guard always closes
 * the segment: the kernels in front of its nodes or its gate read it. */
static uint32_t count_closes(const gki_gating *g, const gki_segment *p) {
  if (gki_is_plain(g)) return p->guard != GK_NONE;
  if (p->gate != GK_NONE) return 1;
  uint32_t count = p->guard != GK_NONE;
  if (p->closable)
    for (uint32_t n = p->first; n != GK_NONE; n = g->parts[n].next) count += g->parts[n].handle != GK_NONE;
  return count;
}

/* The ENTER point of a plain gate. It names the segment's first part that is a node of the plan. */
static uint32_t point_of_gate(gki_gating *g, const gki_segment *p) {
  uint32_t n = p->first;
  while (g->parts[n].node == GK_NONE) n = g->parts[n].next;
  const uint32_t point = gki_gating_point(g, GK_POINT_ENTER, g->parts[n].node, 1);
  g->points[point].handle = p->gate;
  return point;
}

static void choose_closing(gki_gating *g, gki_segment *p) {
  const bool gated = p->closable && p->has_task && !is_guarded(g, p);
  if (gated) p->gate = gki_gating_handle(g, 1, 0);
  if (gated && gki_is_plain(g)) p->point = point_of_gate(g, p);
  if (p->closable && (p->has_kernel || p->has_task) && (!gated || gki_is_plain(g))) p->guard = g->guard_count++;
}

static uint32_t number_closes(gki_gating *g) {
  uint32_t count = 0;
  for (uint32_t b = 0; b < g->block_count; ++b)
    for (uint32_t p = g->blocks[b].first; p != GK_NONE; p = g->segments[p].next) {
      gki_segment *segment = &g->segments[p];
      choose_closing(g, segment);
      segment->close = count;
      count += count_closes(g, segment);
    }
  return count;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool alloc_arrays(writer *w, gki_arena *arena) {
  gki_gating *g = w->g;
  gk_gates *out = w->out;
  gk_gate_handle *handles;
  gk_gate_point *points;
  gk_gate_exit *exits;
  gk_gate_target *targets;
  /* Prologue and epilogue; a gate per close item, and with plain gates a kernel in front. */
  const size_t most = 2u + g->part_count + g->block_count + (size_t)out->close_count * (gki_is_plain(g) ? 2 : 1);
  if (!(w->nodes = gki_arena_alloc(arena, most, sizeof *w->nodes)) ||
      !(handles = gki_arena_alloc(arena, g->handle_count, sizeof *handles)) ||
      !(points = gki_arena_alloc(arena, g->point_count, sizeof *points)) ||
      !(exits = gki_arena_alloc(arena, g->exit_count, sizeof *exits)) ||
      !(w->reenables = gki_arena_alloc(arena, g->plan->loop_count, sizeof *w->reenables)) ||
      !(w->closes = gki_arena_alloc(arena, out->close_count, sizeof *w->closes)) ||
      !(w->blocks = gki_arena_alloc(arena, g->block_count, sizeof *w->blocks)) ||
      !(targets = gki_arena_alloc(arena, out->target_count, sizeof *targets)))
    return false;
  if (g->handle_count) memcpy(handles, g->handles, g->handle_count * sizeof *handles);
  if (g->point_count) memcpy(points, g->points, g->point_count * sizeof *points);
  if (g->exit_count) memcpy(exits, g->exits, g->exit_count * sizeof *exits);
  if (out->target_count) memcpy(targets, g->targets, out->target_count * sizeof *targets);
  *out = (gk_gates){.plan = out->plan, .bits = out->bits, .handle_count = g->handle_count,
                    .point_count = g->point_count, .exit_count = g->exit_count, .close_count = out->close_count,
                    .block_count = g->block_count, .target_count = out->target_count, .guard_count = g->guard_count,
                    .nodes = w->nodes, .handles = handles, .points = points, .exits = exits, .reenables = w->reenables,
                    .closes = w->closes, .blocks = w->blocks, .targets = targets};
  /* write_points and open_node change the arrays of the result. */
  g->handles = handles;
  g->points = points;
  for (uint32_t k = 0; k < out->target_count; ++k) targets[k].close = g->segments[targets[k].close].close;
  return true;
}

static void write_closes(writer *w) {
  const gki_gating *g = w->g;
  for (uint32_t p = 0; p < g->segment_count; ++p) {
    const gki_segment *segment = &g->segments[p];
    gk_gate_close *at = w->closes + segment->close;
    if (segment->gate != GK_NONE && !gki_is_plain(g)) {
      *at = (gk_gate_close){GK_CLOSE_GATE, segment->gate, 0};
      continue;
    }
    if (segment->guard != GK_NONE) *at++ = (gk_gate_close){GK_CLOSE_GUARD, segment->guard, 0};
    if (gki_is_plain(g) || !segment->closable) continue;
    for (uint32_t n = segment->first; n != GK_NONE; n = g->parts[n].next) {
      const uint32_t handle = g->parts[n].handle;
      if (handle != GK_NONE) *at++ = (gk_gate_close){GK_CLOSE_NODE, handle, g->handles[handle].off};
    }
  }
}

/* Numbers of segments become numbers of close items. */
static void write_blocks(writer *w) {
  const gki_gating *g = w->g;
  for (uint32_t b = 0; b < g->block_count; ++b) {
    const gki_block *from = &g->blocks[b];
    const gki_segment *last = &g->segments[from->last];
    gk_gate_block *to = &w->blocks[b];
    *to = (gk_gate_block){.begin = g->segments[from->first].close, .end = last->close + count_closes(g, last),
                          .around = from->around, .loop = from->loop, .handle = from->handle, .value = from->value,
                          .in_loop = from->in_loop, .head = from->head};
    if (from->around == GK_NONE) continue;
    to->before = g->segments[from->before].close;
    to->after = from->after == GK_NONE ? w->blocks[from->around].end : g->segments[from->after].close;
  }
}

/* The point that sets a loop's handle to 1 again: the end of the loop around it. NULL: none is needed. */
static gk_gate_point *reenabling_point(const gki_gating *g, uint32_t loop) {
  const uint32_t around = g->loop_around[loop];
  if (around == GK_NONE || g->points[g->end_points[loop]].handle == GK_NONE) return NULL;
  if (g->plan->nodes[g->plan->loops[loop]].op != GK_OP_DO_WHILE) return NULL; /* its head sets it */
  return &g->points[g->end_points[around]];
}

static void count_reenables(const gki_gating *g) {
  for (uint32_t k = 0; k < g->plan->loop_count; ++k) {
    gk_gate_point *end = reenabling_point(g, k);
    if (end) ++end->reenable_count;
  }
}

/* Gives each loop end its range of the array. write_reenables counts up again. */
static void place_reenables(writer *w) {
  const gki_gating *g = w->g;
  for (uint32_t k = 0; k < g->plan->loop_count; ++k) {
    gk_gate_point *end = &g->points[g->end_points[k]];
    end->reenable = w->out->reenable_count;
    w->out->reenable_count += end->reenable_count;
    end->reenable_count = 0;
  }
}

static void write_reenables(writer *w) {
  const gki_gating *g = w->g;
  for (uint32_t k = 0; k < g->plan->loop_count; ++k) {
    gk_gate_point *end = reenabling_point(g, k);
    if (end) w->reenables[end->reenable + end->reenable_count++] = g->points[g->end_points[k]].handle;
  }
}

static void write_points(writer *w) {
  gki_gating *g = w->g;
  for (uint32_t p = 0; p < g->point_count; ++p) {
    gk_gate_point *point = &g->points[p];
    if (point->kind == GK_POINT_YIELD) point->close = g->segments[point->close].close;
    if (point->kind == GK_POINT_LOOP_END) point->close = w->blocks[point->block].end;
  }
  if (gki_is_plain(g)) return;
  count_reenables(g);
  place_reenables(w);
  write_reenables(w);
}

static uint32_t open_node(writer *w, gk_gate_kind kind, uint32_t node, uint32_t handle) {
  const uint32_t at = w->out->node_count++;
  w->nodes[at] = (gk_gate_node){.kind = kind, .node = node, .handle = handle, .point = GK_NONE, .guard = GK_NONE};
  if (handle != GK_NONE) w->g->handles[handle].node = at;
  w->out->conditional_count += handle != GK_NONE;
  return at;
}
static void close_node(writer *w, uint32_t at) { w->nodes[at].end = w->out->node_count; }

static void write_control(writer *w, uint32_t point, uint32_t guard) {
  const uint32_t at = open_node(w, GK_GATE_CONTROL, GK_NONE, GK_NONE);
  w->nodes[at].point = point;
  w->nodes[at].guard = guard;
  ++w->out->control_count;
  close_node(w, at);
}

static void write_block(writer *w, uint32_t b);

static void write_part(writer *w, const gki_part *part, uint32_t guard) {
  const gki_gating *g = w->g;
  if (part->kind == GK_GATE_CONTROL) {
    write_control(w, g->exits[g->exit_limit + part->kernel].next, guard);
    return;
  }
  const uint32_t at = open_node(w, part->kind, part->node, part->handle);
  if (part->kind == GK_GATE_TASK) {
    w->nodes[at].guard = guard;
  } else if (part->kind == GK_GATE_SWITCH || part->kind == GK_GATE_PARALLEL) {
    for (uint32_t b = part->block; b != GK_NONE; b = g->blocks[b].sibling) {
      if (!g->blocks[b].full) continue;
      const uint32_t before = w->out->control_count;
      const uint32_t body = open_node(w, GK_GATE_BRANCH, GK_NONE, GK_NONE);
      write_block(w, b);
      close_node(w, body);
      w->nodes[body].decides = part->kind == GK_GATE_PARALLEL && w->out->control_count > before;
    }
  } else {
    write_block(w, part->block);
  }
  close_node(w, at);
}

/* A DO_WHILE outside of loops and segments that may be closed needs no ENTER: its handle has its initial value. */
static bool is_needless(const gki_gating *g, const gki_block *block, const gki_part *part, uint32_t guard) {
  if (!gki_is_plain(g) || part->kind != GK_GATE_CONTROL || guard != GK_NONE || block->in_loop) return false;
  return g->points[g->exits[g->exit_limit + part->kernel].next].kind == GK_POINT_ENTER;
}

static void write_block(writer *w, uint32_t b) {
  const gki_gating *g = w->g;
  for (uint32_t p = g->blocks[b].first; p != GK_NONE; p = g->segments[p].next) {
    const gki_segment *segment = &g->segments[p];
    const bool gated = segment->gate != GK_NONE;
    const uint32_t guard = gated ? GK_NONE : segment->guard; /* nodes in a gate need no guard */
    if (gated && gki_is_plain(g)) write_control(w, segment->point, segment->guard);
    const uint32_t gate = gated ? open_node(w, GK_GATE_SEGMENT, GK_NONE, segment->gate) : GK_NONE;
    for (uint32_t n = segment->first; n != GK_NONE; n = g->parts[n].next)
      if (!is_needless(g, &g->blocks[b], &g->parts[n], guard)) write_part(w, &g->parts[n], guard);
    if (gate != GK_NONE) close_node(w, gate);
  }
}

static void write_nodes(writer *w) {
  const gk_plan *plan = w->g->plan;
  const uint32_t first = w->g->exits[w->g->exit_limit].next;
  if (first != GK_NONE || w->out->target_count) {
    const uint32_t at = open_node(w, GK_GATE_PROLOGUE, GK_NONE, GK_NONE);
    w->nodes[at].point = first;
    close_node(w, at);
  }
  write_block(w, 0);
  if (plan->loop_count || plan->checkpoint_count) close_node(w, open_node(w, GK_GATE_EPILOGUE, GK_NONE, GK_NONE));
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

gk_result gk_gates_make(const gk_plan *plan, uint32_t bits, const gk_gates **gates) {
  *gates = NULL;
  const uint32_t known = GK_WITH_RESUME | GK_WITH_CANCEL | GK_WITH_SWITCH | GK_WITH_GUARDS | GK_WITH_PLAIN;
  if (bits & ~known)
    return gk_fail(GK_ERROR_INVALID, "gk_gates_make: bits 0x%x are unknown; use GK_WITH_RESUME, GK_WITH_CANCEL, "
                   "GK_WITH_SWITCH, GK_WITH_GUARDS and GK_WITH_PLAIN", (unsigned)bits);
  gki_gating g = {.plan = plan, .bits = bits};
  gki_gates *made = gk_host_alloc(sizeof *made);
  bool done = made && alloc_scratch(&g);
  if (done) {
    gki_segments_make(&g);
    find_closable(&g);
    made->gates = (gk_gates){.plan = plan, .bits = bits, .close_count = number_closes(&g),
                             .target_count = bits & GK_WITH_RESUME ? plan->checkpoint_count : 0};
    writer w = {.g = &g, .out = &made->gates};
    done = alloc_arrays(&w, &made->arena);
    if (done) {
      write_closes(&w);
      write_blocks(&w);
      write_points(&w);
      write_nodes(&w);
    }
  }
  const size_t bytes = g.scratch.total_bytes;
  gki_arena_free(&g.scratch);
  if (!done) {
    if (made) gk_gates_free(&made->gates);
    return gki_fail_memory("the gates of a plan", bytes);
  }
  *gates = &made->gates;
  return GK_OK;
}

void gk_gates_free(const gk_gates *gates) {
  if (!gates) return;
  union { const gk_gates *given; gki_gates *whole; } as = {gates};
  gki_arena_free(&as.whole->arena);
  gk_host_free(as.whole);
}
