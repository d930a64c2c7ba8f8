#include "cuda/outline.h"
#include "base/name.h"
#include "base/text.h"
#include "cuda/names.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- one graph --------------------------------------------------------------------------------------------------- */

typedef enum line_kind { TASK, CONTROL, CONDITIONAL, BODY, PARALLEL, SECTION } line_kind;

/* One node or container, in pre-order: its children follow, up to `end`. */
typedef struct line {
  line_kind kind;
  uint32_t end;     /* one past the last in it */
  uint32_t node;    /* the plan's; GK_NONE: none */
  const char *word; /* its kind, for the reader */
  const char *kernel;
  unsigned blocks, threads; /* 0 blocks: as many as the items need */
} line;

/* A run of the plan, or a variant's gates. */
typedef struct graph {
  const gk_plan *plan;
  const gki_cuda_device *device;
  gki_cuda_kernel *const *code;
  const gki_cuda_variant *variant; /* NULL: a run */
  uint32_t begin, end;             /* of the plan's nodes, or of the gates' */
} graph;

static line line_of_task(const graph *g, uint32_t at) {
  const gk_node *node = &g->plan->nodes[at];
  line l = {.kind = TASK, .end = node->end, .node = at, .word = gki_op_name(node->op)};
  if (node->op == GK_OP_PARALLEL || node->op == GK_OP_SECTION) {
    l.kind = node->op == GK_OP_PARALLEL ? PARALLEL : SECTION;
    return l;
  }
  if (node->op == GK_OP_CALL) return l;
  const gki_cuda_kernel *kernel = node->op == GK_OP_KERNEL ? g->code[at]
                                  : node->op == GK_OP_COPY ? &g->device->copy_kernel
                                                           : &g->device->fill_kernel;
  l.kernel = node->op == GK_OP_KERNEL ? node->kernel->name : node->op == GK_OP_COPY ? "gki_copy" : "gki_fill";
  l.blocks = kernel->blocks;
  l.threads = kernel->handwritten ? kernel->block[0] * kernel->block[1] * kernel->block[2] : kernel->threads;
  if (!kernel->handwritten && gki_cuda_is_small(g->plan, at)) {
    l.blocks = 1;
    l.threads = GKI_CUDA_SMALL_THREADS;
  }
  return l;
}

static line line_of_control(const gk_gates *gates, const gk_gate_node *gate) {
  const bool ends = gate->kind == GK_GATE_EPILOGUE;
  return (line){.kind = CONTROL, .word = "control kernel", .node = GK_NONE, .blocks = 1, .threads = ends ? 128 : 32,
                .kernel = ends                              ? "gki_epilogue"
                          : gate->kind == GK_GATE_PROLOGUE  ? "gki_prologue"
                          : gates->bits & GK_WITH_PLAIN     ? "gki_control_plain"
                                                            : "gki_control"};
}

/* Whether the branch is a body of a SWITCH; else it is a section. */
static bool is_case(const gk_gates *gates, uint32_t branch) {
  uint32_t around = branch;
  while (gates->nodes[--around].end <= branch) {}
  return gates->nodes[around].kind == GK_GATE_SWITCH;
}

static line line_of_gate(const graph *g, uint32_t at) {
  const gk_gates *gates = g->variant->gates;
  const gk_gate_node *gate = &gates->nodes[at];
  line l = {.kind = CONDITIONAL, .node = gate->node};
  switch (gate->kind) {
  case GK_GATE_TASK: l = line_of_task(g, gate->node); break;
  case GK_GATE_CONTROL:
  case GK_GATE_PROLOGUE:
  case GK_GATE_EPILOGUE: l = line_of_control(gates, gate); break;
  case GK_GATE_SEGMENT:
  case GK_GATE_IF: l.word = "IF node"; break;
  case GK_GATE_WHILE: l.word = "WHILE node"; break;
  case GK_GATE_SWITCH: l.word = "SWITCH node"; break;
  case GK_GATE_PARALLEL:
    l.kind = PARALLEL;
    l.word = "PARALLEL";
    break;
  case GK_GATE_BRANCH:
    l.kind = is_case(gates, at) ? BODY : SECTION;
    l.word = l.kind == BODY ? "body" : "SECTION";
    break;
  }
  l.end = gate->end;
  return l;
}

static line line_at(const graph *g, uint32_t at) { return g->variant ? line_of_gate(g, at) : line_of_task(g, at); }

static void write_name(const graph *g, uint32_t at, gki_quoting how, gki_text *text) {
  if (!g->variant) {
    gki_cuda_write_task(g->plan, at, how, text);
    return;
  }
  const gk_gate_node *gate = &g->variant->gates->nodes[at];
  const gki_cuda_names names = {.variant = g->variant};
  const gki_cuda_name name = {.gate = at};
  if (gate->kind == GK_GATE_TASK) gki_cuda_write_task(g->plan, gate->node, how, text);
  else if (gate->kind != GK_GATE_BRANCH || gate->node != GK_NONE) gki_cuda_write_name(&names, &name, how, text);
}

static void write_kernel(const line *l, gki_text *text) {
  if (!l->kernel) return;
  gki_text_add(text, ": ");
  gki_text_quote(text, l->kernel, GKI_PLAIN);
  if (l->blocks) gki_text_add(text, ", %u block%s of %u threads", l->blocks, l->blocks == 1 ? "" : "s", l->threads);
  else gki_text_add(text, ", blocks of %u threads, as many as its items need", l->threads);
}

typedef struct counts { uint32_t tasks, controls, conditionals, bodies; } counts;

static counts count(const graph *g) {
  counts c = {0};
  for (uint32_t k = g->begin; k < g->end; ++k) {
    const line l = line_at(g, k);
    c.tasks += l.kind == TASK;
    c.controls += l.kind == CONTROL;
    c.conditionals += l.kind == CONDITIONAL;
    c.bodies += l.kind == BODY || (l.kind == CONDITIONAL && g->variant->gates->nodes[k].kind != GK_GATE_SWITCH);
  }
  return c;
}

/* ---- as text ----------------------------------------------------------------------------------------------------- */

static void write_lines(const graph *g, uint32_t begin, uint32_t end, int depth, gki_text *text) {
  for (uint32_t k = begin; k < end;) {
    const line l = line_at(g, k);
    gki_text_add(text, "%*s%s", 2 * depth, "", l.word);
    if (!g->variant || (l.kind != BODY && l.kind != SECTION)) gki_text_add(text, " ");
    write_name(g, k, GKI_PLAIN, text);
    write_kernel(&l, text);
    gki_text_add(text, "\n");
    write_lines(g, k + 1, l.end, depth + 1, text);
    k = l.end;
  }
}

static void write_graph(const graph *g, gki_text *text) {
  const counts c = count(g);
  gki_text_add(text, "%" PRIu32 " node%s of tasks", c.tasks, c.tasks == 1 ? "" : "s");
  if (g->variant)
    gki_text_add(text, ", %" PRIu32 " control kernel%s, %" PRIu32 " conditional node%s with %" PRIu32 " bod%s",
                 c.controls, c.controls == 1 ? "" : "s", c.conditionals, c.conditionals == 1 ? "" : "s", c.bodies,
                 c.bodies == 1 ? "y" : "ies");
  gki_text_add(text, "\n");
  write_lines(g, g->begin, g->end, 1, text);
}

/* ---- as a drawing ------------------------------------------------------------------------------------------------ */

typedef struct drawing { const graph *g; const char *prefix; gki_text *text; } drawing;

static void draw_node(const drawing *d, uint32_t at, const line *l) {
  const bool is_node = l->kind == TASK || l->kind == CONTROL || l->kind == CONDITIONAL;
  gki_text_add(d->text, "%sn%" PRIu32 " [shape=%s, label=\"", d->prefix, at,
               !is_node                 ? "point"
               : l->kind == CONDITIONAL ? "diamond"
               : l->kind == CONTROL     ? "ellipse"
                                        : "box");
  if (is_node) {
    gki_text_add(d->text, "%s\\n", l->word);
    write_name(d->g, at, GKI_DOT, d->text);
  }
  if (l->kernel) {
    gki_text_add(d->text, "\\n");
    gki_text_quote(d->text, l->kernel, GKI_DOT);
    if (l->blocks) gki_text_add(d->text, " <%u, %u>", l->blocks, l->threads);
  }
  gki_text_add(d->text, "\"];\n");
}

static void draw_lines(const drawing *d, uint32_t begin, uint32_t end, uint32_t around);

/* Sections, and bodies of a SWITCH, have no order among themselves. */
static void draw_inside(const drawing *d, uint32_t at, const line *l) {
  if (l->end == at + 1) return;
  gki_text_add(d->text, "subgraph cluster_%sn%" PRIu32 " {\n", d->prefix, at);
  for (uint32_t child = at + 1, end; child < l->end; child = end) {
    const line first = line_at(d->g, child);
    end = first.kind == SECTION || first.kind == BODY ? first.end : l->end;
    draw_lines(d, child, end, at);
  }
  gki_text_add(d->text, "}\n");
}

/* Edges go from line to line, and a dashed one from `around` to the first. */
static void draw_lines(const drawing *d, uint32_t begin, uint32_t end, uint32_t around) {
  uint32_t before = around;
  for (uint32_t k = begin; k < end;) {
    const line l = line_at(d->g, k);
    draw_node(d, k, &l);
    if (before != GK_NONE)
      gki_text_add(d->text, "%sn%" PRIu32 " -> %sn%" PRIu32 "%s;\n", d->prefix, before, d->prefix, k,
                   k == begin ? " [style=dashed]" : "");
    draw_inside(d, k, &l);
    before = k;
    k = l.end;
  }
}

static void draw_graph(const graph *g, const char *prefix, gki_text *text) {
  const drawing d = {g, prefix, text};
  draw_lines(&d, g->begin, g->end, GK_NONE);
}

/* ---- as JSON ----------------------------------------------------------------------------------------------------- */

static void list_lines(const graph *g, uint32_t begin, uint32_t end, uint32_t around, const char **between,
                       gki_text *text) {
  for (uint32_t k = begin; k < end;) {
    const line l = line_at(g, k);
    gki_text_add(text, "%s{\"kind\": \"%s\", \"id\": %" PRIu32 ", \"in\": ", *between, l.word, k - g->begin);
    *between = ",\n   ";
    if (around == GK_NONE) gki_text_add(text, "null");
    else gki_text_add(text, "%" PRIu32, around - g->begin);
    gki_text_add(text, ", \"name\": \"");
    write_name(g, k, GKI_JSON, text);
    gki_text_add(text, "\"");
    if (l.kernel) {
      gki_text_add(text, ", \"kernel\": \"");
      gki_text_quote(text, l.kernel, GKI_JSON);
      gki_text_add(text, "\", \"blocks\": %u, \"threads\": %u", l.blocks, l.threads);
    }
    gki_text_add(text, "}");
    list_lines(g, k + 1, l.end, k, between, text);
    k = l.end;
  }
}

static void list_graph(const graph *g, gki_text *text) {
  const counts c = count(g);
  const char *between = "";
  gki_text_add(text, "\"tasks\": %" PRIu32 ", \"controls\": %" PRIu32 ", \"conditionals\": %" PRIu32
               ", \"bodies\": %" PRIu32 ", \"nodes\": [", c.tasks, c.controls, c.conditionals, c.bodies);
  list_lines(g, g->begin, g->end, GK_NONE, &between, text);
  gki_text_add(text, "]");
}

/* ---- a whole list ----------------------------------------------------------------------------------------------- */

/* What all graphs of a list have in common. */
typedef struct list {
  const gk_plan *plan;
  const char *why; /* why the host decides; NULL: the device decides */
  bool ahead;      /* by a kernel behind each run */
  size_t slot_bytes;
  uint32_t handwritten;
  bool calls;
  const char *target; /* how a target is sent; NULL: there are none */
} list;

static void write_head(const list *l, gki_text *text) {
  if (l->why) gki_text_add(text, "gated by the host: %s\n", l->why);
  else gki_text_add(text, "decided by the device\n");
  if (l->ahead) gki_text_add(text, "behind each run: gki_ahead, 1 block of 1 thread, decides which comes next\n");
  gki_text_add(text, "slots: a table of %zu bytes on the device; what is bound anew goes over by one copy in front of "
               "a launch\n", l->slot_bytes);
  if (l->handwritten)
    gki_text_add(text, "code by hand: %" PRIu32 " node%s, updated when what they use is bound anew\n", l->handwritten,
                 l->handwritten == 1 ? "" : "s");
  if (l->calls) gki_text_add(text, "library calls: recorded again when what they use is bound to something else\n");
  if (l->target) gki_text_add(text, "where to resume: by %s\n", l->target);
}

static void list_head(const list *l, gki_text *text) {
  gki_text_add(text, "{\"decides\": \"%s\", \"slot_bytes\": %zu, \"by_hand\": %" PRIu32 ", \"calls\": %s, "
               "\"target\": ", l->why ? "host" : "device",
               l->slot_bytes, l->handwritten, l->calls ? "true" : "false");
  if (l->target) gki_text_add(text, "\"%s\"", l->target);
  else gki_text_add(text, "null");
  if (l->why) {
    gki_text_add(text, ", \"why\": \"");
    gki_text_quote(text, l->why, GKI_JSON);
    gki_text_add(text, "\"%s", l->ahead ? ", \"ahead\": true" : "");
  }
  gki_text_add(text, ", \"graphs\": [");
}

typedef enum form { AS_TEXT, AS_DOT, AS_JSON } form;
static form form_of(const char *format) {
  return strcmp(format, "dot") == 0 ? AS_DOT : strcmp(format, "json") == 0 ? AS_JSON : AS_TEXT;
}

static void begin_all(const list *l, form as, gki_text *text) {
  if (as == AS_TEXT) write_head(l, text);
  if (as == AS_JSON) list_head(l, text);
  if (as != AS_DOT) return;
  gki_text_add(text, "digraph \"");
  gki_text_quote(text, l->plan->name, GKI_DOT);
  gki_text_add(text, "\" {\nnode [fontname=\"sans-serif\"];\n");
}

/* @param g  NULL: not made yet. */
static void add_graph(const graph *g, form as, uint32_t number, const char *what, gki_text *text) {
  char prefix[16];
  snprintf(prefix, sizeof prefix, "g%" PRIu32, number);
  switch (as) {
  case AS_TEXT:
    gki_text_add(text, "%s: ", what);
    if (g) write_graph(g, text);
    else gki_text_add(text, "made when first asked for\n");
    return;
  case AS_DOT:
    gki_text_add(text, "subgraph cluster_%s {\nlabel=\"%s\";\n", prefix, what);
    if (g) draw_graph(g, prefix, text);
    gki_text_add(text, "}\n");
    return;
  case AS_JSON:
    gki_text_add(text, "%s{\"of\": \"%s\", \"made\": %s", number ? ",\n  " : "", what, g ? "true, " : "false");
    if (g) list_graph(g, text);
    gki_text_add(text, "}");
  }
}

static char *end_all(form as, gki_text *text) {
  gki_text_add(text, as == AS_JSON ? "]}\n" : as == AS_DOT ? "}\n" : "");
  return gki_text_to_malloc(text);
}

static uint32_t count_handwritten(const gk_plan *plan, gki_cuda_kernel *const *code) {
  uint32_t found = 0;
  for (uint32_t k = 0; k < plan->node_count; ++k) found += code[k] && code[k]->handwritten;
  return found;
}

char *gki_cuda_outline_native(const gki_cuda_graph *native, const char *format) {
  gki_text text = {0};
  const form as = form_of(format);
  const gk_plan *plan = native->plan;
  const list l = {.plan = plan, .slot_bytes = native->slots.table.bytes,
                  .handwritten = count_handwritten(plan, native->code), .calls = native->calls.any,
                  .target = !plan->checkpoint_count ? NULL
                            : native->external       ? "the arming kernel"
                            : native->sends_target_by_copy  ? "a copy"
                                                    : "an update of the first kernel"};
  const gki_cuda_variant *const variants[] = {&native->fresh, &native->resume};
  const bool both = native->serves_both || !plan->checkpoint_count;
  begin_all(&l, as, &text);
  for (uint32_t k = 0; k < (both ? 1 : 2); ++k) {
    const gki_cuda_variant *v = variants[k];
    const graph g = {.plan = plan, .device = native->device, .code = native->code, .variant = v,
                     .end = v->gates ? v->gates->node_count : 0};
    add_graph(v->gates && v->places ? &g : NULL, as, k,
              both ? "all launches" : k ? "launches that resume" : "launches from the top", &text);
  }
  return end_all(as, &text);
}

char *gki_cuda_outline_gated(const gki_cuda_gated *gated, const char *why, const char *format) {
  gki_text text = {0};
  const form as = form_of(format);
  const gk_plan *plan = gated->plan;
  const list l = {.plan = plan, .why = why, .ahead = gated->ahead.points, .slot_bytes = gated->slots.table.bytes,
                  .handwritten = count_handwritten(plan, gated->code), .calls = gated->calls.any};
  begin_all(&l, as, &text);
  for (uint32_t k = 0; k < plan->run_count; ++k) {
    const graph g = {.plan = plan, .device = gated->device, .code = gated->code, .begin = plan->runs[k].begin,
                     .end = plan->runs[k].end};
    char what[24];
    snprintf(what, sizeof what, "run %" PRIu32, k);
    add_graph(gated->runs[k].exec ? &g : NULL, as, k, what, &text);
  }
  return end_all(as, &text);
}
