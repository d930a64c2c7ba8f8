/* Cuts a plan into segments and places a point for each decision. A block is cut behind each item that can stop the
 * launch and, with GK_WITH_RESUME, before each item that contains a target. If a task may come last before a point, the
 * point gets its own control kernel; otherwise the kernels that come last walk on to it. With GK_WITH_PLAIN each point
 * has its own kernel, right in front of the node whose handle it sets. */
#include "plan/segments.h"
#include "base/op.h"
#include "plan/node.h"

static const gki_flow from_task = {GK_NONE, GK_NONE, true, false};
static const gki_flow from_nowhere = {GK_NONE, GK_NONE, false, false};

static gki_flow block(gki_gating *g, uint32_t b, uint32_t begin, uint32_t end, gki_flow flow, uint32_t end_point);

static bool resumes(const gki_gating *g) { return (g->bits & GK_WITH_RESUME) != 0; }

/* ---- records ----------------------------------------------------------------------------------------------------- */

uint32_t gki_gating_handle(gki_gating *g, uint32_t initial, uint32_t off) {
  g->handles[g->handle_count] = (gk_gate_handle){initial, off, GK_NONE};
  return g->handle_count++;
}

uint32_t gki_gating_point(gki_gating *g, gk_point_kind kind, uint32_t node, uint32_t exit_count) {
  const uint32_t p = g->point_count++;
  const bool silent = kind == GK_POINT_HEAD || kind == GK_POINT_BRANCH || kind >= GK_POINT_ENTER;
  g->points[p] = (gk_gate_point){.kind = kind, .node = node, .checkpoint = silent ? GK_NONE : g->checkpoint,
                                 .exits = g->exit_count, .exit_count = exit_count, .handle = GK_NONE,
                                 .block = GK_NONE, .close = GK_NONE};
  for (uint32_t k = 0; k < exit_count; ++k) g->exits[g->exit_count++] = (gk_gate_exit){GK_NONE, GK_NONE, 0};
  return p;
}

static uint32_t new_block(gki_gating *g, uint32_t around) {
  const uint32_t b = g->block_count++;
  g->blocks[b] = (gki_block){.around = around, .sibling = GK_NONE, .first = GK_NONE, .last = GK_NONE, .before = GK_NONE,
                             .after = GK_NONE, .stopped_from = GK_NONE, .passed_to = 0, .loop = GK_NONE,
                             .handle = GK_NONE, .head = GK_NONE, .in_loop = g->loop != GK_NONE};
  if (around != GK_NONE) g->blocks[b].before = g->blocks[around].last;
  return b;
}

static void cut(gki_gating *g, uint32_t b, gki_flow entry) {
  const uint32_t p = g->segment_count++;
  g->segments[p] = (gki_segment){.next = GK_NONE, .first = GK_NONE, .last = GK_NONE, .entry = entry, .marks = GK_NONE,
                               .gate = GK_NONE, .guard = GK_NONE};
  if (g->blocks[b].last == GK_NONE) g->blocks[b].first = p;
  else g->segments[g->blocks[b].last].next = p;
  g->blocks[b].last = p;
}

static void append(gki_gating *g, uint32_t b, uint32_t segment, gki_part part) {
  const uint32_t n = g->part_count++;
  gki_segment *p = &g->segments[segment];
  part.next = GK_NONE;
  g->parts[n] = part;
  if (p->last == GK_NONE) p->first = n;
  else g->parts[p->last].next = n;
  p->last = n;
  if (part.kind == GK_GATE_TASK || part.kind == GK_GATE_PARALLEL) p->has_task = true;
  if (part.kind == GK_GATE_CONTROL) p->has_kernel = true;
  g->blocks[b].full = true;
}

/* ---- flows ------------------------------------------------------------------------------------------------------- */

static gki_flow one(uint32_t exit, bool left) { return (gki_flow){exit, exit, false, left}; }

static gki_flow exit_of(const gki_gating *g, uint32_t point, uint32_t exit, bool left) {
  return gki_is_plain(g) ? from_task : one(g->points[point].exits + exit, left);
}

/* Both flows. `a` must not be used again; `b` may be. */
static gki_flow join(gki_gating *g, gki_flow a, gki_flow b) {
  if (a.task || b.task) return from_task;
  if (a.head == GK_NONE) return b;
  if (b.head == GK_NONE) return a;
  g->links[a.tail] = b.head;
  return (gki_flow){a.head, b.tail, false, a.left || b.left};
}

static void connect_flow(gki_gating *g, gki_flow flow, uint32_t point) {
  for (uint32_t e = flow.head; e != GK_NONE; e = e == flow.tail ? GK_NONE : g->links[e]) g->exits[e].next = point;
}

static gki_flow new_kernel(gki_gating *g, uint32_t b, uint32_t segment) {
  const uint32_t k = g->kernel_count++, exit = g->exit_limit + k;
  g->exits[exit].next = GK_NONE;
  const gki_part part = {.kind = GK_GATE_CONTROL, .node = GK_NONE, .handle = GK_NONE, .kernel = k};
  if (b != GK_NONE) append(g, b, segment, part);
  return one(exit, false);
}

/* The flow from control kernels alone: adds a kernel if a task may come last. */
static gki_flow control(gki_gating *g, gki_flow flow, uint32_t b) {
  return flow.task ? new_kernel(g, b, g->blocks[b].last) : flow;
}

/* Makes the point the next one of the flow. @return `left` of the flow to it. */
static bool place(gki_gating *g, uint32_t point, gki_flow flow, uint32_t b) {
  flow = control(g, flow, b);
  connect_flow(g, flow, point);
  return flow.left;
}

/* ---- items: each function takes the flow before the item and returns the flow behind it -------------------------- */

static bool can_stop(const gki_gating *g, uint32_t i) {
  return g->plan->nodes[i].can_yield || ((g->bits & GK_WITH_CANCEL) && g->holds_loop[i]);
}

/* Starts a new segment at an item that contains a target. The item's point stays in the segment before: a target sets
 * the item's handle, and the point must not overwrite it. */
static void enter(gki_gating *g, uint32_t b, uint32_t i) {
  if (resumes(g) && g->plan->nodes[i].has_target) cut(g, b, from_task);
}

/* An item with a point in front of it; with plain gates both are in one segment. @return `left` of the flow to it. */
static bool decide(gki_gating *g, uint32_t point, gki_flow flow, uint32_t b, uint32_t i) {
  if (gki_is_plain(g)) enter(g, b, i);
  const bool left = place(g, point, flow, b);
  if (!gki_is_plain(g)) enter(g, b, i);
  return left;
}

/* Behind an item with blocks. first: its first block. */
static void leave(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow, uint32_t first) {
  if (!can_stop(g, i)) return;
  cut(g, b, flow);
  for (uint32_t s = first; s != GK_NONE; s = g->blocks[s].sibling) g->blocks[s].after = g->blocks[b].last;
}

static gki_flow task(gki_gating *g, uint32_t b, uint32_t i) {
  const bool always = g->plan->nodes[i].always;
  if (always) cut(g, b, from_task);
  append(g, b, g->blocks[b].last, (gki_part){.kind = GK_GATE_TASK, .node = i, .handle = GK_NONE});
  if (!always) return from_task;
  g->segments[g->blocks[b].last].always = true;
  cut(g, b, from_task);
  return from_task;
}

static gki_flow items(gki_gating *g, uint32_t b, uint32_t begin, uint32_t end, gki_flow flow);

/* A resumed launch begins in the last segment of the block. */
static void set_target(gki_gating *g, uint32_t b, uint32_t checkpoint) {
  const uint32_t here = g->blocks[b].last;
  g->targets[checkpoint] = (gk_gate_target){b, here};
  g->blocks[b].passed_to = here;
  g->blocks[b].has_target = true;
}

/* A stop here closes from the next segment on. is_target: a resumed launch, which has walked no point, begins there. */
static gki_flow yield_point(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow, bool is_target) {
  const uint32_t point = gki_gating_point(g, GK_POINT_YIELD, i, 1);
  flow = exit_of(g, point, 0, place(g, point, flow, b));
  if (is_target) flow = from_task;
  cut(g, b, flow);
  g->points[point].block = b;
  g->points[point].close = g->blocks[b].last;
  if (g->blocks[b].stopped_from == GK_NONE) g->blocks[b].stopped_from = g->blocks[b].last;
  return flow;
}

/* add_marks notes the node in the last segment of the block. */
static void leave_mark(gki_gating *g, uint32_t b, uint32_t i) {
  gki_segment *p = &g->segments[g->blocks[b].last];
  g->mark_links[i] = p->marks;
  p->marks = i;
}

static gki_flow checkpoint(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow) {
  const gk_node *n = &g->plan->nodes[i];
  g->checkpoint = n->checkpoint;
  if (resumes(g)) { /* a resumed launch starts here and has walked no point */
    flow = from_task;
    cut(g, b, flow);
    set_target(g, b, n->checkpoint);
  }
  if (!n->flag && flow.task) { /* add_marks adds its MARK point */
    leave_mark(g, b, i);
  } else if (!n->flag) {
    const uint32_t mark = gki_gating_point(g, GK_POINT_MARK, i, 1);
    flow = exit_of(g, mark, 0, place(g, mark, flow, b));
  }
  flow = items(g, b, i + 1, n->end, flow);
  if (n->flag) flow = yield_point(g, b, i, flow, false);
  g->checkpoint = GK_NONE;
  return flow;
}

/* A launch that resumes here goes on behind it. */
static gki_flow yield(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow) {
  const uint32_t number = g->checkpoint = g->plan->nodes[i].checkpoint;
  flow = yield_point(g, b, i, flow, resumes(g));
  g->checkpoint = GK_NONE;
  if (resumes(g)) set_target(g, b, number);
  return flow;
}

/* The nodes of a branch: one SWITCH, or an IF for each block. A block without nodes gets no node. */
static void append_cases(gki_gating *g, uint32_t b, uint32_t i, uint32_t point, uint32_t first) {
  const gk_plan *plan = g->plan;
  gk_gate_exit *exits = g->exits + g->points[point].exits;
  uint32_t full = 0, k = 0, at = 0, here = g->blocks[b].last;
  for (uint32_t s = first; s != GK_NONE; s = g->blocks[s].sibling) full += g->blocks[s].full;
  const bool by_switch = (g->bits & GK_WITH_SWITCH) && full > 1;
  const uint32_t handle = by_switch ? gki_gating_handle(g, full, full) : GK_NONE;
  if (by_switch) {
    for (uint32_t e = 0; e < g->points[point].exit_count; ++e) exits[e].value = full;
    append(g, b, here, (gki_part){.kind = GK_GATE_SWITCH, .node = i, .handle = handle, .block = first});
    g->points[point].handle = handle;
  }
  uint32_t node = gki_first_case(plan, i);
  for (uint32_t s = first; s != GK_NONE; s = g->blocks[s].sibling, node = gki_next_case(plan, i, node), ++k) {
    if (!g->blocks[s].full) continue;
    g->blocks[s].handle = by_switch ? handle : gki_gating_handle(g, 0, 0);
    g->blocks[s].value = by_switch ? at++ : 1;
    exits[k].value = g->blocks[s].value;
    if (by_switch) continue;
    exits[k].handle = g->blocks[s].handle;
    append(g, b, here, (gki_part){.kind = GK_GATE_IF, .node = node, .handle = exits[k].handle, .block = s});
  }
}

static gki_flow branch(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow) {
  const gk_plan *plan = g->plan;
  uint32_t exit_count = plan->nodes[i].op == GK_OP_IF ? 2 : 1, k = 0, first = GK_NONE, last = GK_NONE;
  if (plan->nodes[i].op == GK_OP_SWITCH)
    for (uint32_t s = gki_first_case(plan, i); s != GK_NONE; s = gki_next_case(plan, i, s)) ++exit_count;
  const uint32_t point = gki_gating_point(g, GK_POINT_BRANCH, i, exit_count);
  const bool left = decide(g, point, flow, b, i);
  flow = from_nowhere;
  for (uint32_t s = gki_first_case(plan, i); s != GK_NONE; s = gki_next_case(plan, i, s), ++k) {
    const uint32_t inner = new_block(g, b);
    if (first == GK_NONE) first = inner;
    else g->blocks[last].sibling = inner;
    last = inner;
    flow = join(g, block(g, inner, s + 1, gki_case_end(plan, s), exit_of(g, point, k, left), GK_NONE), flow);
  }
  append_cases(g, b, i, point, first);
  if (k < exit_count) flow = join(g, exit_of(g, point, k, left), flow);
  leave(g, b, i, flow, first);
  return flow;
}

/* What comes first in a range of items. */
enum { NOTHING, A_TASK, A_DECISION };
static uint8_t beginning(gki_gating *g, uint32_t begin, uint32_t end);

static uint8_t beginning_of_item(gki_gating *g, uint32_t i) {
  const gk_node *n = &g->plan->nodes[i];
  uint8_t body;
  switch (n->op) {
  case GK_OP_IF:
  case GK_OP_SWITCH:
  case GK_OP_YIELD:
  case GK_OP_WHILE: return A_DECISION;
  case GK_OP_REPEAT: return g->copies[n->loop].unrolled ? beginning(g, i + 1, n->end) : A_DECISION;
  case GK_OP_DO_WHILE:
    if (n->is_numbered) return A_DECISION;
    if (!g->begins[n->loop]) {
      body = beginning(g, i + 1, n->end);
      g->begins[n->loop] = body == NOTHING ? A_DECISION : body; /* empty: the loop end decides */
    }
    return g->begins[n->loop];
  case GK_OP_CHECKPOINT:
    if (resumes(g)) return A_TASK;
    body = beginning(g, i + 1, n->end);
    return body == NOTHING && n->flag ? A_DECISION : body;
  default: return A_TASK;
  }
}

static uint8_t beginning(gki_gating *g, uint32_t begin, uint32_t end) {
  uint8_t found = NOTHING;
  for (uint32_t i = begin; i < end && found == NOTHING; i = g->plan->nodes[i].end) found = beginning_of_item(g, i);
  return found;
}

/* How a loop is entered: the flow into its first pass, the flow past it, and the point in front of its node that sets
 * the node's handle, or GK_NONE. */
typedef struct entrance { gki_flow in, past; uint32_t point; } entrance;

static entrance enter_while(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow) {
  const uint32_t head = gki_gating_point(g, GK_POINT_HEAD, i, 2);
  const bool left = decide(g, head, flow, b, i);
  return (entrance){exit_of(g, head, 0, left), exit_of(g, head, 1, left), head};
}

/* If tasks read its pass number, a DO_WHILE has a point in front that a target closes. Other loops have their HEAD. */
static gki_flow begin_entry(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow) {
  if (!g->plan->nodes[i].is_numbered || g->plan->nodes[i].op != GK_OP_DO_WHILE) return flow;
  const uint32_t point = gki_gating_point(g, GK_POINT_BEGIN, i, 1);
  return exit_of(g, point, 0, place(g, point, flow, b));
}

static entrance enter_do_while(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow) {
  /* A kernel in front of the loop makes the body's first decision in the first pass; later the loop end makes it. */
  if (beginning(g, i, g->plan->nodes[i].end) == A_DECISION) flow = control(g, flow, b);
  enter(g, b, i);
  return (entrance){flow, from_nowhere, GK_NONE};
}

/* A DO_WHILE with plain gates. */
static entrance enter_plain(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow) {
  const uint32_t point = gki_gating_point(g, GK_POINT_ENTER, i, 1);
  decide(g, point, flow, b, i);
  return (entrance){flow, from_nowhere, point};
}

/* All passes of a REPEAT, in the block around. An empty block of its own tells where it hits its bound. */
static gki_flow unrolled(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow) {
  const gk_node *n = &g->plan->nodes[i];
  const uint32_t inner = new_block(g, b), point = gki_gating_point(g, GK_POINT_PASSES, i, 1);
  cut(g, inner, from_nowhere);
  g->blocks[inner].loop = n->loop;
  g->points[point].block = inner;
  g->points[point].passes = g->copies[n->loop].passes;
  g->loop_around[n->loop] = g->loop;
  g->end_points[n->loop] = point;
  for (uint32_t k = 0; k < g->copies[n->loop].count; ++k) flow = items(g, b, i + 1, n->end, flow);
  if (!flow.task) return exit_of(g, point, 0, place(g, point, flow, b));
  leave_mark(g, b, i);
  return flow;
}

/* A loop's body, in a node of that kind unless it is empty. Returns the body's block. */
static uint32_t body(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow, uint32_t end, gk_gate_kind kind) {
  const gk_node *n = &g->plan->nodes[i];
  const uint32_t around = g->loop;
  g->loop = n->loop;
  const uint32_t inner = new_block(g, b);
  g->blocks[inner].loop = n->loop;
  g->points[end].block = inner;
  block(g, inner, i + 1, n->end, flow, end);
  g->loop = around;
  if (!g->blocks[inner].full) return inner;
  const uint32_t handle = gki_gating_handle(g, kind == GK_GATE_WHILE && n->op == GK_OP_DO_WHILE, 0);
  g->blocks[inner].handle = g->points[end].handle = handle;
  g->blocks[inner].value = 1;
  append(g, b, g->blocks[b].last, (gki_part){.kind = kind, .node = i, .handle = handle, .block = inner});
  return inner;
}

static gki_flow loop(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow) {
  const gk_node *n = &g->plan->nodes[i];
  const gki_copies *copies = &g->copies[n->loop];
  if (copies->unrolled) return unrolled(g, b, i, flow);
  const bool test_first = n->op != GK_OP_DO_WHILE;
  const uint32_t end = gki_gating_point(g, GK_POINT_LOOP_END, i, copies->rest ? 3 : 2);
  g->points[end].passes = copies->passes;
  flow = begin_entry(g, b, i, flow);
  const entrance entered = test_first    ? enter_while(g, b, i, flow)
                           : gki_is_plain(g) ? enter_plain(g, b, i, flow)
                                         : enter_do_while(g, b, i, flow);
  g->loop_around[n->loop] = g->loop;
  g->end_points[n->loop] = end;
  const uint32_t inner = body(g, b, i, join(g, exit_of(g, end, 0, false), entered.in), end, GK_GATE_WHILE);
  if (n->op == GK_OP_REPEAT) g->blocks[inner].head = entered.point;
  if (entered.point != GK_NONE) g->points[entered.point].handle = g->points[end].handle;
  flow = join(g, exit_of(g, end, 1, !test_first), entered.past);
  if (copies->rest) { /* the last passes before the bound, in an IF node that the loop's end opens by its third exit */
    const uint32_t last = gki_gating_point(g, GK_POINT_LOOP_END, i, 2);
    g->points[last].passes = copies->rest;
    g->blocks[inner].sibling = body(g, b, i, from_task, last, GK_GATE_IF);
    g->exits[g->points[end].exits + 2].handle = g->points[last].handle;
    flow = join(g, exit_of(g, last, 1, false), flow);
  }
  leave(g, b, i, flow, inner);
  return flow;
}

static gki_flow parallel(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow) {
  const gk_node *nodes = g->plan->nodes;
  uint32_t first = GK_NONE, last = GK_NONE;
  bool full = false;
  for (uint32_t s = i + 1; s < nodes[i].end; s = nodes[s].end) {
    const uint32_t inner = new_block(g, b);
    if (first == GK_NONE) first = inner;
    else g->blocks[last].sibling = inner;
    last = inner;
    block(g, inner, s + 1, nodes[s].end, from_task, GK_NONE);
    full = full || g->blocks[inner].full;
  }
  if (full) {
    append(g, b, g->blocks[b].last, (gki_part){.kind = GK_GATE_PARALLEL, .node = i, .handle = GK_NONE, .block = first});
    flow = from_task;
  }
  leave(g, b, i, flow, first);
  return flow;
}

/* Whether an item holds a target in a REPEAT. *first, *last: its targets, by number. */
static bool has_count_to_read(const gki_gating *g, uint32_t i, uint32_t *first, uint32_t *last) {
  bool found = false;
  *first = GK_NONE;
  for (uint32_t k = i; k < g->plan->nodes[i].end; ++k) {
    const gk_node *n = &g->plan->nodes[k];
    found |= n->op == GK_OP_REPEAT && n->has_target;
    if (!gki_op_is_target(n->op)) continue;
    if (*first == GK_NONE) *first = n->checkpoint;
    *last = n->checkpoint + 1;
  }
  return found;
}

/* A kernel in front of a top-level item, behind the always-tasks there, that nothing closes. */
static gki_flow aim(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow) {
  uint32_t first, last = 0;
  if (b || !resumes(g) || !g->plan->nodes[i].has_target || !has_count_to_read(g, i, &first, &last)) return flow;
  cut(g, b, from_task);
  const uint32_t point = gki_gating_point(g, GK_POINT_AIM, i, 1);
  g->points[point].block = first;
  g->points[point].close = last;
  connect_flow(g, new_kernel(g, b, g->blocks[b].last), point);
  g->segments[g->blocks[b].last].always = true;
  cut(g, b, from_task);
  return from_task;
}

static gki_flow item(gki_gating *g, uint32_t b, uint32_t i, gki_flow flow) {
  switch (g->plan->nodes[i].op) {
  case GK_OP_DO_WHILE:
  case GK_OP_WHILE:
  case GK_OP_REPEAT: return loop(g, b, i, flow);
  case GK_OP_IF:
  case GK_OP_SWITCH: return branch(g, b, i, flow);
  case GK_OP_CHECKPOINT: return checkpoint(g, b, i, flow);
  case GK_OP_YIELD: return yield(g, b, i, flow);
  case GK_OP_PARALLEL: return parallel(g, b, i, flow);
  default: return task(g, b, i);
  }
}

static gki_flow items(gki_gating *g, uint32_t b, uint32_t begin, uint32_t end, gki_flow flow) {
  for (uint32_t i = begin; i < end; i = g->plan->nodes[i].end) {
    flow = aim(g, b, i, flow);
    flow = item(g, b, i, flow);
  }
  return flow;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* A checkpoint without a flag has no YIELD point that notes that it ran, and an unrolled loop has no LOOP_END that
 * counts its passes. A MARK or PASSES point is put where control comes exactly when the segment runs: behind the points
 * before the segment, unless a task may come last there; else in a control kernel of the segment, which is added if
 * there is none. */
static void add_marks(gki_gating *g, uint32_t segment, uint32_t b) {
  gki_flow at = g->segments[segment].entry;
  if (at.task) {
    uint32_t n = g->segments[segment].first;
    while (n != GK_NONE && g->parts[n].kind != GK_GATE_CONTROL) n = g->parts[n].next;
    at = n == GK_NONE ? new_kernel(g, b, segment) : one(g->exit_limit + g->parts[n].kernel, false);
  }
  uint32_t next = g->exits[at.head].next; /* the same for all exits of the flow: they lead to one spot */
  for (uint32_t i = g->segments[segment].marks; i != GK_NONE; i = g->mark_links[i]) {
    const gk_node *n = &g->plan->nodes[i];
    const bool loops = gki_op_is_loop(n->op);
    const uint32_t point = loops ? g->end_points[n->loop] : gki_gating_point(g, GK_POINT_MARK, i, 1);
    if (!loops) g->points[point].checkpoint = n->checkpoint;
    g->exits[g->points[point].exits].next = next;
    next = point;
  }
  connect_flow(g, at, next);
}

/* Makes a block. end_point: of a loop's body, its loop end. */
static gki_flow block(gki_gating *g, uint32_t b, uint32_t begin, uint32_t end, gki_flow flow, uint32_t end_point) {
  cut(g, b, flow);
  const uint32_t copies = end_point != GK_NONE && g->points[end_point].passes ? g->points[end_point].passes : 1;
  for (uint32_t k = 0; k < copies; ++k) flow = items(g, b, begin, end, flow);
  if (end_point != GK_NONE) {
    if (gki_is_plain(g)) cut(g, b, from_task); /* not in a gate: it ends the loop also if the gate is closed */
    /* Not in the kernel that ends an inner DO_WHILE: a loop end re-enables that node, which would then never end. */
    place(g, end_point, flow.left ? from_task : flow, b);
  }
  for (uint32_t p = g->blocks[b].first; p != GK_NONE; p = g->segments[p].next)
    if (g->segments[p].marks != GK_NONE) add_marks(g, p, b);
  return flow;
}

void gki_segments_make(gki_gating *g) {
  const gk_plan *plan = g->plan;
  for (uint32_t i = plan->node_count - 1; i > 0; --i) {
    if (gki_op_is_loop(plan->nodes[i].op)) g->holds_loop[i] = 1;
    if (g->holds_loop[i]) g->holds_loop[plan->nodes[i].parent] = 1;
  }
  g->checkpoint = g->loop = GK_NONE;
  const uint32_t root = new_block(g, GK_NONE);
  const gki_flow prologue = new_kernel(g, GK_NONE, GK_NONE);
  block(g, root, 1, plan->nodes[0].end, gki_is_plain(g) ? from_task : prologue, GK_NONE);
}
