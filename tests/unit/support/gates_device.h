/* A device with conditional nodes that knows nothing but gk_gates: handles get their defaults at the start of a launch
 * and nowhere else, an IF or SWITCH reads its handle when it is reached, a WHILE before and after each pass. Nothing is
 * ever reset: what is per launch carries the launch's number. Branches of a PARALLEL go node by node in any order.
 * Of plain gates it wants what they promise: a kernel that sets a handle from elsewhere fails, or that sets it twice;
 * what was set is lost once the node is reached, and at each pass of a loop around it. */
#ifndef GATES_DEVICE_H
#define GATES_DEVICE_H
#include "gk_gates.h"
#include "chance.h"
#include "unit/support/test.h"

typedef struct loop_record { uint64_t launch, entry, passes, count; } loop_record;

/* The state of one graph. */
typedef struct device_graph {
  const gk_gates *gates;
  uint32_t *values; /* of handles */
  uint32_t *setters; /* by handle: number of the kernel that set it last; plain gates */
  uint64_t *guards;
} device_graph;

typedef struct device {
  const gk_plan *plan;
  void (*execute)(void *user, uint32_t node);
  int64_t (*read)(void *user, uint32_t node);
  bool (*cancelled)(void *user);
  bool (*closed)(void *user, uint32_t guard); /* for users of `control` with guards of their own */
  void (*control)(void *user, const gk_gate_node *n); /* CONTROL, PROLOGUE, EPILOGUE; NULL: what stands here */
  void (*sets)(void *user, uint32_t handle, uint32_t from); /* the kernel at that node does; NULL: not watched */
  void *user;
  uint64_t *interleave; /* source of chance; NULL: branches one after the other */
  long steps;
  /* the control block, shared by all graphs of a plan */
  uint64_t number, fresh; /* this launch; the last one before it that began at the top */
  loop_record *loops;
  uint64_t *ran; /* per checkpoint: the last launch in which it did */
  uint64_t stopped, limited;
  uint32_t stopped_at, limit; /* node of the checkpoint, GK_NONE: cancelled; node of the loop */
  uint32_t limit_block;   /* its body; */
  uint64_t *limit_passes; /* the passes of all loops when it hit its bound */
  /* this launch */
  device_graph *graph;
  uint32_t target; /* number of the checkpoint or GK_NONE */
  bool reopen;     /* the first loop end has still to open what the target closed in loops */
  uint32_t at;     /* the node that was started last */
  uint32_t started; /* kernels so far */
  long tasks, kernels, conditionals;
} device;

enum { MOST_FRAMES = 300 };
typedef struct frame { uint32_t begin, at, end, loop; } frame; /* loop: the WHILE whose body it is, or GK_NONE */
typedef struct strand {
  frame frames[MOST_FRAMES];
  uint32_t depth, branch_count;
  struct strand **branches;
} strand;

static void device_begin(device *d, const gk_plan *plan) {
  *d = (device){.plan = plan, .number = 1};
  d->loops = calloc(plan->loop_count + 1, sizeof *d->loops);
  d->ran = calloc(plan->checkpoint_count + 1, sizeof *d->ran);
  d->limit_passes = calloc(plan->loop_count + 1, sizeof *d->limit_passes);
}
static void device_end(device *d) {
  free(d->loops);
  free(d->ran);
  free(d->limit_passes);
}

static void graph_begin(device_graph *graph, const gk_gates *gates) {
  graph->gates = gates;
  graph->values = calloc(gates->handle_count + 1, sizeof *graph->values);
  graph->setters = calloc(gates->handle_count + 1, sizeof *graph->setters);
  graph->guards = calloc(gates->guard_count + 1, sizeof *graph->guards);
}
static void graph_end(device_graph *graph) {
  gk_gates_free(graph->gates);
  free(graph->values);
  free(graph->setters);
  free(graph->guards);
}

/* ---- control kernels --------------------------------------------------------------------------------------------- */

static bool is_plain(const gk_gates *g) { return (g->bits & GK_WITH_PLAIN) != 0; }

/* Whether the control kernel at node `from` is where a plain one may set the handle of `node`: right in front of it, or
 * of IF nodes of the same branch before it, or at the end of the loop. */
static bool is_near(const gk_gates *g, uint32_t from, uint32_t node) {
  const gk_gate_node *nodes = g->nodes;
  if (nodes[from].kind != GK_GATE_CONTROL) return false;
  if (nodes[node].kind == GK_GATE_WHILE && node < from && nodes[node].end == from + 1) {
    uint32_t child = node + 1;
    while (child < from) child = nodes[child].end;
    return child == from; /* not the last of a body in it */
  }
  uint32_t at = from + 1;
  while (at < node && nodes[at].kind == GK_GATE_IF && nodes[node].kind == GK_GATE_IF) at = nodes[at].end;
  return at == node;
}

enum { LOST = 0x5eed }; /* what was set */

/* The kernel that is at work sets a handle: called by any of its executors. */
static void device_sets(device *d, uint32_t handle, uint32_t value) {
  device_graph *graph = d->graph;
  assert_true(handle < graph->gates->handle_count);
  if (d->sets) d->sets(d->user, handle, d->at);
  if (is_plain(graph->gates)) {
    if (!is_near(graph->gates, d->at, graph->gates->handles[handle].node))
      fail_msg("the kernel at node %u sets the handle of node %u", (unsigned)d->at,
               (unsigned)graph->gates->handles[handle].node);
    if (graph->setters[handle] == d->started) fail_msg("the kernel at node %u sets a handle twice", (unsigned)d->at);
    graph->setters[handle] = d->started;
  }
  graph->values[handle] = value;
}

/* Plain: of the nodes from `begin` to `end`. */
static void lose(device *d, uint32_t begin, uint32_t end) {
  const gk_gates *g = d->graph->gates;
  for (uint32_t k = begin; is_plain(g) && k < end; ++k)
    if (g->nodes[k].handle != GK_NONE) d->graph->values[g->nodes[k].handle] = LOST;
}

/* Of the node that is reached. */
static uint32_t value_of(device *d, uint32_t at) {
  const gk_gate_node *n = &d->graph->gates->nodes[at];
  if (n->handle == GK_NONE) return 0;
  const uint32_t value = d->graph->values[n->handle];
  if (value == LOST) fail_msg("node %u is reached, and no kernel has set its handle since", (unsigned)at);
  lose(d, at, at + 1);
  return value;
}

static void set(device *d, uint32_t handle, uint32_t value) {
  if (handle != GK_NONE) device_sets(d, handle, value);
}
static void close_range(device *d, uint32_t begin, uint32_t end) {
  for (uint32_t k = begin; k < end; ++k) {
    const gk_gate_close *c = &d->graph->gates->closes[k];
    if (c->kind == GK_CLOSE_GUARD) d->graph->guards[c->at] = d->number;
    else set(d, c->at, c->value);
  }
}

static void open_range(device *d, uint32_t begin, uint32_t end) {
  for (uint32_t k = begin; k < end; ++k) {
    const gk_gate_close *c = &d->graph->gates->closes[k];
    if (c->kind == GK_CLOSE_GUARD) d->graph->guards[c->at] = 0;
    if (c->kind == GK_CLOSE_GATE) set(d, c->at, 1);
  }
}

static bool leads_to_target(const device *d, uint32_t loop) {
  if (d->target == GK_NONE) return false;
  const gk_gates *g = d->graph->gates;
  for (uint32_t b = g->targets[d->target].block; b != GK_NONE; b = g->blocks[b].around)
    if (g->blocks[b].loop == loop) return true;
  return false;
}

/* Only a loop that this launch resumes into keeps a waiting count. */
static loop_record *touch(device *d, uint32_t loop) {
  loop_record *r = &d->loops[loop];
  if (r->launch == d->number) return r;
  const bool waits = r->launch >= d->fresh && leads_to_target(d, loop);
  *r = (loop_record){d->number, waits ? r->entry : 0, 0, waits ? r->count : 0};
  return r;
}

static void set_target(device *d) {
  const gk_gates *g = d->graph->gates;
  const gk_gate_target *target = &g->targets[d->target];
  uint32_t place = target->close;
  for (uint32_t b = target->block; b != GK_NONE; place = g->blocks[b].before, b = g->blocks[b].around) {
    const uint32_t loop = g->blocks[b].loop;
    close_range(d, g->blocks[b].begin, place);
    if (!is_plain(g)) set(d, g->blocks[b].handle, g->blocks[b].value);
    if (loop != GK_NONE && d->plan->nodes[d->plan->loops[loop]].is_numbered) touch(d, loop);
  }
}

static void open_again(device *d) {
  const gk_gates *g = d->graph->gates;
  const gk_gate_target *target = &g->targets[d->target];
  uint32_t place = target->close;
  for (uint32_t b = target->block; b != GK_NONE; place = g->blocks[b].before, b = g->blocks[b].around)
    if (g->blocks[b].in_loop) open_range(d, g->blocks[b].begin, place);
}

static uint32_t stop(device *d, const gk_gate_point *p, uint32_t checkpoint) {
  const gk_gates *g = d->graph->gates;
  if (d->stopped != d->number) {
    d->stopped = d->number;
    d->stopped_at = checkpoint;
  }
  if (p->checkpoint != GK_NONE) d->ran[p->checkpoint] = d->number;
  uint32_t place = p->close;
  for (uint32_t b = p->block; b != GK_NONE; place = g->blocks[b].after, b = g->blocks[b].around) {
    close_range(d, place, g->blocks[b].end);
    if (g->blocks[b].loop == GK_NONE) continue;
    touch(d, g->blocks[b].loop); /* an entry begun in this launch replaces an older one that waits */
    if (!is_plain(g)) set(d, g->blocks[b].handle, 0);
  }
  return GK_NONE;
}

static uint32_t walk_branch(device *d, const gk_gate_point *p) {
  const gk_gate_exit *exits = d->graph->gates->exits + p->exits;
  const int64_t value = d->read(d->user, p->node);
  const int64_t index = d->plan->nodes[p->node].op == GK_OP_SWITCH ? value : !value;
  const uint32_t taken = index >= 0 && index < p->exit_count ? (uint32_t)index : p->exit_count - 1;
  if (p->handle != GK_NONE) set(d, p->handle, exits[taken].value);
  else
    for (uint32_t e = 0; e < p->exit_count; ++e) set(d, exits[e].handle, e == taken);
  return exits[taken].next;
}

static uint32_t body_around(const gk_gates *g, uint32_t b) {
  do b = g->blocks[b].around;
  while (b != GK_NONE && g->blocks[b].loop == GK_NONE);
  return b;
}

static uint64_t passes_of(const device *d, uint32_t loop) {
  return d->loops[loop].launch == d->number ? d->loops[loop].passes : 0;
}

/* A PASSES point may come before the loops in front of its own. Whether the loop of this point comes before the first
 * one that hit its bound: in the same pass of the innermost loop around both the list's order decides. */
static bool hits_first(const device *d, const gk_gate_point *p) {
  const gk_gates *g = d->graph->gates;
  if (d->limited != d->number || p->node > d->limit) return d->limited != d->number;
  for (uint32_t x = body_around(g, d->limit_block); x != GK_NONE; x = body_around(g, x)) {
    uint32_t y = p->block;
    while (y != GK_NONE && y != x) y = g->blocks[y].around;
    if (y == x) return d->limit_passes[g->blocks[x].loop] == passes_of(d, g->blocks[x].loop);
  }
  return true;
}

static void hit_bound(device *d, const gk_gate_point *p) {
  if (!hits_first(d, p)) return;
  d->limited = d->number;
  d->limit = p->node;
  d->limit_block = p->block;
  for (uint32_t k = 0; k < d->plan->loop_count; ++k) d->limit_passes[k] = passes_of(d, k);
}

static uint32_t add_passes(device *d, const gk_gate_point *p) {
  const gk_node *node = &d->plan->nodes[p->node];
  touch(d, node->loop)->passes += p->passes;
  assert_int_equal(d->loops[node->loop].entry, 0);
  if (p->passes < node->count) hit_bound(d, p);
  return d->graph->gates->exits[p->exits].next;
}

static uint32_t walk_loop_end(device *d, const gk_gate_point *p) {
  const gk_gates *g = d->graph->gates;
  const gk_node *node = &d->plan->nodes[p->node];
  loop_record *r = touch(d, node->loop);
  const uint64_t most = node->max_iterations && node->max_iterations < r->count ? node->max_iterations : r->count;
  const uint64_t made = p->passes ? p->passes : most - r->entry;
  assert_true(made);
  r->entry += made;
  r->passes += made;
  const bool reads = node->every <= 1 || r->entry % node->every == 0 ||
                     (node->max_iterations && r->entry >= node->max_iterations);
  if (reads && (g->bits & GK_WITH_CANCEL) && d->cancelled(d->user)) {
    if (is_plain(g)) set(d, p->handle, 0);
    return stop(d, p, GK_NONE);
  }
  if (d->reopen) open_again(d);
  d->reopen = false;
  bool again = !reads || (node->op == GK_OP_REPEAT ? r->entry < r->count : d->read(d->user, p->node) != 0);
  if (again && node->max_iterations && r->entry >= node->max_iterations) {
    again = false;
    hit_bound(d, p);
  }
  if (again && node->max_iterations && r->entry + p->passes > node->max_iterations) {
    assert_int_equal(p->exit_count, 3);
    set(d, p->handle, 0);
    set(d, g->exits[p->exits + 2].handle, 1);
    return g->exits[p->exits + 2].next;
  }
  if (!again) r->entry = r->count = 0;
  set(d, p->handle, again);
  for (uint32_t k = 0; k < p->reenable_count; ++k) set(d, g->reenables[p->reenable + k], 1);
  return g->exits[p->exits + !again].next;
}

/* Plain: the block on the way to the target whose handle this point sets; GK_NONE: none, or it was passed. */
static uint32_t block_entered(const device *d, const gk_gate_point *p) {
  const gk_gates *g = d->graph->gates;
  if (!is_plain(g) || !d->reopen) return GK_NONE;
  for (uint32_t b = g->targets[d->target].block; b != GK_NONE; b = g->blocks[b].around) {
    if (g->blocks[b].handle == GK_NONE) continue;
    if (g->blocks[b].handle == p->handle) return b;
    for (uint32_t e = 0; p->kind == GK_POINT_BRANCH && e < p->exit_count; ++e)
      if (g->exits[p->exits + e].handle == g->blocks[b].handle) return b;
  }
  return GK_NONE;
}

/* Sets what the point would: `handle` to `value`, others of a branch to 0. */
static void set_own(device *d, const gk_gate_point *p, uint32_t handle, uint32_t value) {
  if (p->handle != GK_NONE) set(d, p->handle, value);
  for (uint32_t e = 0; p->kind == GK_POINT_BRANCH && e < p->exit_count; ++e) {
    const uint32_t one = d->graph->gates->exits[p->exits + e].handle;
    set(d, one, one == handle ? value : 0);
  }
}

/* Plain: the guard is closed. */
static void turn_off(device *d, uint32_t point) {
  const gk_gates *g = d->graph->gates;
  for (; point != GK_NONE; point = g->exits[g->points[point].exits].next) {
    const gk_gate_point *p = &g->points[point];
    set_own(d, p, GK_NONE, p->handle == GK_NONE ? 0 : g->handles[p->handle].off);
  }
}

static uint64_t count_of(device *d, uint32_t node, uint64_t least) {
  const int64_t count = d->plan->nodes[node].count ? d->plan->nodes[node].count : d->read(d->user, node);
  return count > (int64_t)least ? (uint64_t)count : least;
}

static void aim(device *d, const gk_gate_point *p) {
  const gk_gates *g = d->graph->gates;
  uint32_t found;
  do {
    found = GK_NONE;
    for (uint32_t b = g->targets[d->target].block; b != GK_NONE; b = g->blocks[b].around)
      if (g->blocks[b].head != GK_NONE && !touch(d, g->blocks[b].loop)->count) found = b;
    if (found == GK_NONE) break;
    const uint32_t node = g->points[g->blocks[found].head].node;
    assert_true(node >= p->node && node < d->plan->nodes[p->node].end);
    loop_record *r = touch(d, g->blocks[found].loop);
    r->entry = 0;
    r->count = count_of(d, node, 1);
  } while (true);
}

static uint32_t walk_point(device *d, const gk_gate_point *p) {
  const gk_gates *g = d->graph->gates;
  const gk_node *node = &d->plan->nodes[p->node];
  const uint32_t entered = p->kind == GK_POINT_HEAD || p->kind == GK_POINT_BRANCH ? block_entered(d, p) : GK_NONE;
  bool again;
  if (entered != GK_NONE) {
    set_own(d, p, g->blocks[entered].handle, g->blocks[entered].value);
    return g->exits[p->exits].next;
  }
  switch (p->kind) {
  case GK_POINT_YIELD:
    d->ran[p->checkpoint] = d->number;
    if (d->plan->nodes[p->node].op == GK_OP_YIELD || d->read(d->user, p->node)) return stop(d, p, p->node);
    if (d->cancelled(d->user)) return stop(d, p, GK_NONE);
    return g->exits[p->exits].next;
  case GK_POINT_HEAD:
    if (node->op == GK_OP_REPEAT) touch(d, node->loop)->entry = 0;
    if (node->op == GK_OP_REPEAT) again = (touch(d, node->loop)->count = count_of(d, p->node, 0)) != 0;
    else touch(d, node->loop), again = d->read(d->user, p->node) != 0;
    set(d, p->handle, again);
    return g->exits[p->exits + !again].next;
  case GK_POINT_MARK: d->ran[p->checkpoint] = d->number; return g->exits[p->exits].next;
  case GK_POINT_BRANCH: return walk_branch(d, p);
  case GK_POINT_ENTER: set(d, p->handle, 1); return g->exits[p->exits].next;
  case GK_POINT_BEGIN: touch(d, node->loop); return g->exits[p->exits].next;
  case GK_POINT_AIM:
    if (d->target >= p->block && d->target < p->close) aim(d, p);
    return g->exits[p->exits].next;
  case GK_POINT_PASSES: return add_passes(d, p);
  default: return walk_loop_end(d, p);
  }
}

static void walk_chain(device *d, uint32_t point) {
  while (point != GK_NONE) {
    assert_true(++d->steps < 1000000);
    point = walk_point(d, &d->graph->gates->points[point]);
  }
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static void push(strand *s, uint32_t begin, uint32_t end, uint32_t loop) {
  assert_true(s->depth < MOST_FRAMES);
  s->frames[s->depth++] = (frame){begin, begin, end, loop};
}

static void fork_branches(strand *s, const gk_gate_node *nodes, uint32_t at) {
  uint32_t count = 0;
  for (uint32_t b = at + 1; b < nodes[at].end; b = nodes[b].end) ++count;
  s->branches = calloc(count, sizeof *s->branches);
  for (uint32_t b = at + 1; b < nodes[at].end; b = nodes[b].end) {
    strand *branch = s->branches[s->branch_count++] = malloc(sizeof *branch);
    branch->depth = branch->branch_count = 0;
    push(branch, b + 1, nodes[b].end, GK_NONE);
  }
}

static bool is_closed(const device *d, uint32_t guard) { return d->graph->guards[guard] == d->number; }

static void start_node(device *d, strand *s, uint32_t at) {
  const gk_gates *g = d->graph->gates;
  const gk_gate_node *n = &g->nodes[at];
  const uint32_t value = value_of(d, at);
  d->at = at;
  ++d->started;
  d->conditionals += n->handle != GK_NONE;
  d->kernels += n->kind == GK_GATE_CONTROL;
  if (d->control && (n->kind == GK_GATE_CONTROL || n->kind == GK_GATE_PROLOGUE || n->kind == GK_GATE_EPILOGUE)) {
    d->control(d->user, n);
    return;
  }
  switch (n->kind) {
  case GK_GATE_TASK:
    if (n->guard != GK_NONE && (d->closed ? d->closed(d->user, n->guard) : is_closed(d, n->guard))) break;
    ++d->tasks;
    d->execute(d->user, n->node);
    break;
  case GK_GATE_CONTROL:
    if (n->guard == GK_NONE || !is_closed(d, n->guard)) walk_chain(d, n->point);
    else if (is_plain(g)) turn_off(d, n->point);
    break;
  case GK_GATE_SEGMENT:
  case GK_GATE_IF:
    if (value) push(s, at + 1, n->end, GK_NONE);
    break;
  case GK_GATE_WHILE:
    if (value) push(s, at + 1, n->end, at);
    if (value) lose(d, at + 1, n->end);
    break;
  case GK_GATE_SWITCH: {
    uint32_t body = at + 1;
    for (uint32_t k = 0; k < value && body < n->end; ++k) body = g->nodes[body].end;
    if (body < n->end) push(s, body + 1, g->nodes[body].end, GK_NONE);
    break;
  }
  case GK_GATE_PARALLEL: fork_branches(s, g->nodes, at); break;
  case GK_GATE_PROLOGUE:
    if (d->target == GK_NONE) walk_chain(d, n->point);
    else set_target(d);
    break;
  default: break; /* the epilogue: device_launch goes on there */
  }
}

/* One node; false: the strand has ended. */
static bool step(device *d, strand *s) {
  const gk_gates *g = d->graph->gates;
  assert_true(++d->steps < 1000000);
  if (s->branch_count) {
    const uint32_t k = d->interleave ? pick(d->interleave, s->branch_count) : 0;
    if (step(d, s->branches[k])) return true;
    free(s->branches[k]);
    memmove(&s->branches[k], &s->branches[k + 1], (--s->branch_count - k) * sizeof *s->branches);
    if (!s->branch_count) free(s->branches);
    return true;
  }
  frame *f = &s->frames[s->depth - 1];
  if (f->at < f->end) {
    const uint32_t at = f->at;
    f->at = g->nodes[at].end;
    start_node(d, s, at);
    return true;
  }
  if (f->loop != GK_NONE && value_of(d, f->loop)) {
    lose(d, f->begin, f->end);
    f->at = f->begin;
  } else {
    --s->depth;
  }
  return s->depth > 0;
}

/* Target: number of the checkpoint, or GK_NONE. */
static void device_launch(device *d, device_graph *graph, uint32_t target) {
  const gk_gates *g = graph->gates;
  d->graph = graph;
  d->target = target;
  d->reopen = target != GK_NONE;
  d->steps = 0;
  for (uint32_t h = 0; h < g->handle_count; ++h) graph->values[h] = g->handles[h].initial;
  strand *s = malloc(sizeof *s);
  s->depth = s->branch_count = 0;
  push(s, 0, g->node_count, GK_NONE);
  while (step(d, s)) {}
  free(s);
}

/* The epilogue's work when the status is posted. */
static void device_next(device *d) {
  if (d->target == GK_NONE) d->fresh = d->number;
  ++d->number;
}
#endif
