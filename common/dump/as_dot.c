/* Graphviz: a block is a cluster with an entry (n) and an exit (x); edges give the order. */
#include "base/name.h"
#include "base/op.h"
#include "dump/formats.h"
#include <inttypes.h>
#include <string.h>

static const char again[] = "label=\"again\", style=dashed, constraint=false";

/* It has one node, not an entry and an exit. */
static bool is_line(const gk_node *node) { return gki_op_is_task(node->op) || node->op == GK_OP_YIELD; }
/* Its head decides, before each pass. */
static bool has_head(const gk_node *node) { return node->op == GK_OP_WHILE || node->op == GK_OP_REPEAT; }
static bool is_choice(const gk_node *node) { return node->op == GK_OP_SWITCH || node->op == GK_OP_PARALLEL; }

static void add_flag(gki_text *text, const gk_plan *plan, const gk_node *node) {
  if (node->count) gki_text_add(text, "%" PRIu32, node->count);
  if (node->flag) gki_dump_slot(text, plan, node->flag, node->offset, GKI_DOT);
  if (node->op == GK_OP_REPEAT) gki_text_add(text, " times");
}

static void add_task(gki_text *text, const gk_plan *plan, uint32_t at) {
  const gk_node *node = &plan->nodes[at];
  gki_text_add(text, "n%" PRIu32 " [shape=box, label=\"", at);
  gki_text_quote(text, node->name, GKI_DOT);
  gki_text_add(text, "\\n");
  gki_dump_work(text, plan, node, GKI_DOT);
  if (node->op == GK_OP_CALL_HOST) gki_text_add(text, "\\non the host");
  if (node->always) gki_text_add(text, "\\nalways");
  gki_text_add(text, "\"];\n");
}

static void add_yield(gki_text *text, const gk_plan *plan, uint32_t at) {
  gki_text_add(text, "n%" PRIu32 " [shape=diamond, label=\"YIELD ", at);
  gki_text_quote(text, plan->nodes[at].name, GKI_DOT);
  gki_text_add(text, ", label %" PRId32 "\"];\ny%" PRIu32 " [shape=plaintext, label=\"yield\"];\nn%" PRIu32 " -> y%"
               PRIu32 ";\n", plan->nodes[at].label, at, at, at);
}

static void open_cluster(gki_text *text, const gk_plan *plan, uint32_t at) {
  const gk_node *node = &plan->nodes[at];
  const char *op = gki_op_name(node->op);
  bool named = strcmp(node->name, op) != 0;
  gki_text_add(text, "subgraph cluster_%" PRIu32 " {\nlabel=\"%s%s", at, op, named ? " " : "");
  if (named) gki_text_quote(text, node->name, GKI_DOT);
  if (node->every > 1) gki_text_add(text, ", flag read every %" PRIu32 " passes", node->every);
  if (node->max_iterations) gki_text_add(text, ", at most %" PRIu32 " passes", node->max_iterations);
  if (node->label) gki_text_add(text, ", label %" PRId32, node->label);
  gki_text_add(text, "\";\nstyle=%s;\n", node->op == GK_OP_CHECKPOINT ? "bold" : "rounded");
  bool decides = has_head(node) || node->op == GK_OP_IF || node->op == GK_OP_SWITCH;
  gki_text_add(text, "n%" PRIu32 " [shape=%s, label=\"", at, decides ? "diamond" : "point");
  if (decides) add_flag(text, plan, node);
  gki_text_add(text, "\"];\n");
  bool asks = node->op == GK_OP_DO_WHILE || (node->op == GK_OP_CHECKPOINT && node->flag);
  gki_text_add(text, "x%" PRIu32 " [shape=%s, label=\"", at, asks ? "diamond" : "point");
  if (asks) add_flag(text, plan, node);
  gki_text_add(text, "\"];\n");
}

/* The actions of a block at its end, once its exit is known. */
static void close_cluster(gki_text *text, const gk_plan *plan, uint32_t at) {
  const gk_node *node = &plan->nodes[at];
  gki_text_add(text, "}\n");
  if (node->op == GK_OP_DO_WHILE)
    gki_text_add(text, "x%" PRIu32 " -> n%" PRIu32 " [%s];\n", at, at, again);
  if (node->op == GK_OP_CHECKPOINT && node->flag)
    gki_text_add(text, "y%" PRIu32 " [shape=plaintext, label=\"yield\"];\nx%" PRIu32 " -> y%" PRIu32 ";\n", at, at, at);
  bool can_skip = has_head(node) || node->op == GK_OP_SWITCH || (node->op == GK_OP_IF && !node->otherwise);
  if (can_skip) gki_text_add(text, "n%" PRIu32 " -> x%" PRIu32 " [label=\"else\", style=dashed];\n", at, at);
}

static void add_edge(gki_text *text, const gk_plan *plan, uint32_t from, uint32_t to) {
  const gk_node *nodes = plan->nodes;
  bool into = nodes[to].parent == from; /* The first node of a block follows its entry, every other node an exit. */
  const char side = into || is_line(&nodes[from]) ? 'n' : 'x';
  gki_text_add(text, "%c%" PRIu32 " -> n%" PRIu32 ";\n", side, from, to);
}

static void add_way_out(gki_text *text, const gk_plan *plan, uint32_t from, uint32_t block) {
  char side = from == block || is_line(&plan->nodes[from]) ? 'n' : 'x';
  if (has_head(&plan->nodes[block]))
    gki_text_add(text, "%c%" PRIu32 " -> n%" PRIu32 " [%s];\n", side, from, block, again);
  else
    gki_text_add(text, "%c%" PRIu32 " -> x%" PRIu32 ";\n", side, from, block);
}

/* The edges of one block: its parts in sequence, or all parts between the entry and the exit. */
static void add_edges(gki_text *text, const gk_plan *plan, uint32_t block) {
  const gk_node *nodes = plan->nodes;
  uint32_t last = block;
  for (uint32_t at = block + 1; at < nodes[block].end; at = nodes[at].end) {
    if (is_choice(&nodes[block]) || nodes[at].op == GK_OP_ELSE) {
      add_edge(text, plan, block, at);
      add_way_out(text, plan, at, block);
      continue;
    }
    add_edge(text, plan, last, at);
    last = at;
  }
  if (last != block || (!is_choice(&nodes[block]))) add_way_out(text, plan, last, block);
}

void gki_dump_dot(gki_text *text, const gk_plan *plan) {
  gki_text_add(text, "digraph \"");
  gki_text_quote(text, plan->name, GKI_DOT);
  gki_text_add(text, "\" {\ncompound=true;\nnode [fontname=\"sans-serif\"];\nn0 [shape=point, label=\"\"];\n");
  uint32_t block = 0;
  for (uint32_t at = 1; at < plan->node_count; ++at) {
    for (; block != plan->nodes[at].parent; block = plan->nodes[block].parent) close_cluster(text, plan, block);
    if (gki_op_is_task(plan->nodes[at].op)) {
      add_task(text, plan, at);
      continue;
    }
    if (plan->nodes[at].op == GK_OP_YIELD) {
      add_yield(text, plan, at);
      continue;
    }
    open_cluster(text, plan, at);
    block = at;
  }
  for (; block; block = plan->nodes[block].parent) close_cluster(text, plan, block);
  gki_text_add(text, "x0 [shape=point, label=\"\"];\n");
  for (uint32_t at = 0; at < plan->node_count; ++at)
    if (!is_line(&plan->nodes[at])) add_edges(text, plan, at);
  gki_text_add(text, "}\n");
}
