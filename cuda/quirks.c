#include "cuda/quirks.h"

enum {
  BY_CHAINS = GKI_CUDA_PASS_ON_PER_LEVEL | GKI_CUDA_SET_AT_ENTRY | GKI_CUDA_MERGE_IN_BODY | GKI_CUDA_WRITE_ONCE |
              GKI_CUDA_CLOSE_FROM_OUTSIDE,
};

/* A body is named by its node: SEGMENT, IF, WHILE, or a BRANCH of a SWITCH. */
typedef struct spot {
  uint32_t around; /* the body that the node is in; GK_NONE: the root */
  uint32_t depth;  /* number of bodies around it */
  uint32_t owner;  /* BRANCH of a SWITCH: the SWITCH */
  bool is_body;
} spot;

typedef struct search {
  const gk_gates *gates;
  spot *spots;      /* by node */
  uint32_t *stack;  /* of points */
  uint32_t *seen;   /* by point: the last control kernel that reaches it */
  uint32_t *close; /* by handle: its close item; GK_NONE: none */
  uint32_t found;
} search;

static void find_bodies(const gk_gates *g, spot *spots) {
  uint32_t body = GK_NONE;
  for (uint32_t k = 0; k < g->node_count; ++k) spots[k].is_body = false;
  for (uint32_t k = 0; k < g->node_count; ++k) {
    const gk_gate_node *n = &g->nodes[k];
    while (body != GK_NONE && k >= g->nodes[body].end) body = spots[body].around;
    spots[k].around = body;
    spots[k].depth = body == GK_NONE ? 0 : spots[body].depth + 1;
    if (n->kind == GK_GATE_SWITCH)
      for (uint32_t b = k + 1; b < n->end; b = g->nodes[b].end) {
        spots[b].is_body = true;
        spots[b].owner = k;
      }
    if (n->kind == GK_GATE_SEGMENT || n->kind == GK_GATE_IF || n->kind == GK_GATE_WHILE) spots[k].is_body = true;
    if (spots[k].is_body) body = k;
  }
}

static bool is_plain(const gk_gates *g) { return (g->bits & GK_WITH_PLAIN) != 0; }

/* ---- by the nodes alone ------------------------------------------------------------------------------------------ */

static uint32_t needed_by_branches(const gk_gates *g, uint32_t parallel) {
  uint32_t deciding = 0;
  for (uint32_t b = parallel + 1; b < g->nodes[parallel].end; b = g->nodes[b].end) deciding += g->nodes[b].decides;
  return deciding > 1 ? GKI_CUDA_CHAIN_BRANCHES : 0;
}

static uint32_t needed_by_loop(const gk_gates *g, uint32_t loop) {
  uint32_t last = loop + 1, found = 0;
  for (uint32_t k = last; k < g->nodes[loop].end; k = g->nodes[k].end) last = k;
  if (g->nodes[last].kind != GK_GATE_CONTROL) found |= GKI_CUDA_LOOP_END_LAST;
  for (uint32_t k = loop + 1; k < g->nodes[loop].end && !is_plain(g); ++k)
    if (g->nodes[k].kind == GK_GATE_SEGMENT) return found | GKI_CUDA_SET_PER_PASS;
  return found;
}

/* Nodes of handwritten kernels are updated, also to another kernel while they have no items. */
static uint32_t needed_by_code(const gk_gates *g) {
  const gk_plan *plan = g->plan;
  for (uint32_t k = 0; g->handle_count && k < plan->node_count; ++k)
    if (plan->nodes[k].handwritten) return GKI_CUDA_CODE_ON_HOST;
  return 0;
}

static uint32_t needed_by_nodes(const gk_gates *g) {
  uint32_t found = GKI_CUDA_HOST_GATED | needed_by_code(g);
  if (g->bits & GK_WITH_RESUME) found |= GKI_CUDA_TARGET_BY_COPY;
  if (g->reenable_count) found |= GKI_CUDA_REENABLE_IN_FRONT;
  for (uint32_t k = 0; k < g->node_count; ++k) {
    if (g->nodes[k].kind == GK_GATE_SWITCH) found |= GKI_CUDA_NO_SWITCH;
    if (g->nodes[k].kind == GK_GATE_PARALLEL) found |= needed_by_branches(g, k);
    if (g->nodes[k].kind == GK_GATE_WHILE) found |= needed_by_loop(g, k);
  }
  return found;
}

/* ---- by what chains set ------------------------------------------------------------------------------------------ */

/* The handle of the body's node. */
static uint32_t handle_of(const search *s, uint32_t body) {
  return s->gates->nodes[s->gates->nodes[body].kind == GK_GATE_BRANCH ? s->spots[body].owner : body].handle;
}

/* The kernel at node `from` sets the handle. */
static void note(search *s, uint32_t from, uint32_t handle) {
  if (handle == GK_NONE) return;
  const uint32_t node = s->gates->handles[handle].node;
  const spot *a = &s->spots[from], *b = &s->spots[node];
  uint32_t outwards = 0, deeper = 0;
  while (a->around != b->around) {
    const bool climbs = a->depth >= b->depth, descends = b->depth >= a->depth;
    outwards += climbs;
    deeper += descends;
    if (climbs) a = &s->spots[a->around];
    if (descends) b = &s->spots[b->around];
  }
  const bool is_own_loop = s->spots[from].around == node && s->gates->nodes[node].kind == GK_GATE_WHILE;
  if (outwards && !is_own_loop) s->found |= GKI_CUDA_PASS_ON_PER_LEVEL;
  if (deeper) s->found |= GKI_CUDA_SET_AT_ENTRY;
  if (deeper && outwards) s->found |= GKI_CUDA_MERGE_IN_BODY;
  const gk_gate_node *n = &s->gates->nodes[node];
  if (node < from && from < n->end && n->kind != GK_GATE_WHILE) s->found |= GKI_CUDA_CLOSE_FROM_OUTSIDE;
}

/* All close items of a block have their nodes in its body, so the first stands for all. The exceptions are nodes that
 * the kernel is in. */
static void note_closes(search *s, uint32_t from, uint32_t begin, uint32_t end) {
  const gk_gates *g = s->gates;
  uint32_t k = begin;
  while (k < end && g->closes[k].kind == GK_CLOSE_GUARD) ++k;
  if (k >= end) return;
  note(s, from, g->closes[k].at);
  for (uint32_t body = s->spots[from].around; body != GK_NONE; body = s->spots[body].around) {
    const uint32_t handle = handle_of(s, body);
    if (s->close[handle] >= begin && s->close[handle] < end) note(s, from, handle);
  }
}

static void note_stop(search *s, uint32_t from, const gk_gate_point *p) {
  uint32_t place = p->close;
  for (uint32_t b = is_plain(s->gates) ? GK_NONE : p->block; b != GK_NONE;) {
    const gk_gate_block *block = &s->gates->blocks[b];
    note_closes(s, from, place, block->end);
    if (block->loop != GK_NONE) note(s, from, block->handle);
    place = block->after;
    b = block->around;
  }
}

static void note_targets(search *s, uint32_t from) {
  for (uint32_t k = 0; k < s->gates->target_count && !is_plain(s->gates); ++k) {
    uint32_t place = s->gates->targets[k].close;
    for (uint32_t b = s->gates->targets[k].block; b != GK_NONE;) {
      const gk_gate_block *block = &s->gates->blocks[b];
      note_closes(s, from, block->begin, place);
      note(s, from, block->handle);
      place = block->before;
      b = block->around;
    }
  }
}

static void note_point(search *s, uint32_t from, const gk_gate_point *p) {
  const gk_gates *g = s->gates;
  note(s, from, p->handle);
  for (uint32_t k = 0; k < p->reenable_count; ++k) note(s, from, g->reenables[p->reenable + k]);
  if (p->kind == GK_POINT_BRANCH && p->handle == GK_NONE)
    for (uint32_t k = 0; k < p->exit_count; ++k) note(s, from, g->exits[p->exits + k].handle);
  if (p->kind == GK_POINT_YIELD || (p->kind == GK_POINT_LOOP_END && g->bits & GK_WITH_CANCEL)) note_stop(s, from, p);
}

static void note_chain(search *s, uint32_t from) {
  const gk_gates *g = s->gates;
  uint32_t height = 0, length = 0;
  const uint32_t first = g->nodes[from].point;
  if (first == GK_NONE) return;
  s->seen[first] = from;
  s->stack[height++] = first;
  while (height) {
    const gk_gate_point *p = &g->points[s->stack[--height]];
    length += p->kind != GK_POINT_MARK && p->kind != GK_POINT_PASSES;
    if (length > 1) s->found |= GKI_CUDA_WRITE_ONCE;
    note_point(s, from, p);
    for (uint32_t k = 0; k < p->exit_count; ++k) {
      const uint32_t next = g->exits[p->exits + k].next;
      if (next == GK_NONE || s->seen[next] == from) continue;
      s->seen[next] = from;
      s->stack[height++] = next;
    }
  }
}

static void search_chains(search *s, uint32_t quirks) {
  const gk_gates *g = s->gates;
  for (uint32_t k = 0; k < g->point_count; ++k) s->seen[k] = GK_NONE;
  for (uint32_t k = 0; k < g->handle_count; ++k) s->close[k] = GK_NONE;
  for (uint32_t k = 0; k < g->close_count; ++k)
    if (g->closes[k].kind != GK_CLOSE_GUARD) s->close[g->closes[k].at] = k;
  find_bodies(g, s->spots);
  if (g->bits & GK_WITH_RESUME && !is_plain(g)) s->found |= GKI_CUDA_WRITE_ONCE;
  for (uint32_t k = 0; k < g->node_count && (s->found & quirks) != quirks; ++k) {
    if (g->nodes[k].kind != GK_GATE_CONTROL && g->nodes[k].kind != GK_GATE_PROLOGUE) continue;
    if (g->nodes[k].kind == GK_GATE_PROLOGUE) note_targets(s, k);
    note_chain(s, k);
  }
  /* The first loop end of a launch, in any loop, opens what a target closed in all loops. */
  for (uint32_t k = 0; k < g->block_count && g->target_count && !is_plain(g); ++k)
    if (g->blocks[k].in_loop) s->found |= BY_CHAINS & ~(uint32_t)GKI_CUDA_CLOSE_FROM_OUTSIDE;
}

uint32_t gki_cuda_quirks_that_matter(const gk_gates *gates, uint32_t quirks) {
  if (!quirks) return 0;
  const uint32_t by_nodes = needed_by_nodes(gates) & quirks, by_chains = quirks & BY_CHAINS;
  if (!by_chains) return by_nodes;
  search s = {.gates = gates, .spots = gk_host_alloc((gates->node_count + 1) * sizeof *s.spots),
              .stack = gk_host_alloc((gates->point_count + 1) * sizeof *s.stack),
              .seen = gk_host_alloc((gates->point_count + 1) * sizeof *s.seen),
              .close = gk_host_alloc((gates->handle_count + 1) * sizeof *s.close)};
  if (s.spots && s.stack && s.seen && s.close) search_chains(&s, by_chains);
  else s.found = by_chains; /* out of memory: all of them may matter */
  gk_host_free(s.spots);
  gk_host_free(s.stack);
  gk_host_free(s.seen);
  gk_host_free(s.close);
  return by_nodes | (s.found & quirks);
}
