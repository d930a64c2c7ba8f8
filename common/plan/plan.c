#include "plan/plan.h"
#include "base/error.h"
#include "base/name.h"
#include "base/op.h"
#include "base/registry.h"
#include "base/sort.h"
#include "list/line_name.h"
#include <stdio.h>
#include <string.h>

/* gk_node.run before number_runs: the node is a task, or a PARALLEL or SECTION of nothing but these; no CALL_HOST is in
 * it. */
enum { STRAIGHT = 0 };

typedef struct maker {
  const gki_blocks *blocks;
  const gk_backend *backend;
  gk_plan *plan;
  gk_node *nodes;
  uint32_t *args, *loops, *checkpoints, *always;
  uint32_t *loop_nodes; /* per line of a loop: its node; NULL: no slot is a pass number */
  uint8_t *filled;  /* per line. SECTION: 1 if it isn't empty; PARALLEL: number of such sections, at most 2 */
  char *text;       /* place of the next name */
  uint32_t arg_count, block;
} maker;

/* ---- names ------------------------------------------------------------------------------------------------------- */

typedef struct node_name {
  const char *prefix; /* the name of the inclusion, such as "contacts"; "" in the user's list */
  const char *text;
  size_t length;
} node_name;

static node_name name_of_text(const char *prefix, const char *text) { return (node_name){prefix, text, strlen(text)}; }

static node_name name_of_node(const gki_blocks *blocks, const gki_line *line) {
  const gk_task *task = line->task;
  const char *text = task->name && *task->name ? task->name : NULL;
  if (!text && task->op == GK_OP_KERNEL && task->kernel->name && *task->kernel->name) text = task->kernel->name;
  if (!text) return name_of_text("", gki_op_name(task->op));
  node_name name = name_of_text(blocks->inclusions[line->inclusion].name, text);
  switch (task->op) {
  case GK_OP_DO_WHILE: case GK_OP_WHILE: case GK_OP_REPEAT: case GK_OP_IF: case GK_OP_SWITCH:
    name.text = gki_block_name(task, &name.length);
    break;
  default: break;
  }
  return name;
}

static node_name or_unnamed(const char *text) { return name_of_text("", text && *text ? text : "(unnamed)"); }

static size_t name_bytes(node_name name) { return name.length + 1 + (*name.prefix ? strlen(name.prefix) + 1 : 0); }

static const char *store(maker *make, node_name name) {
  char *begin = make->text, *at = begin;
  size_t prefix = strlen(name.prefix);
  memcpy(at, name.prefix, prefix);
  at += prefix;
  if (prefix) *at++ = '.';
  memcpy(at, name.text, name.length);
  at[name.length] = 0;
  make->text = at + name.length + 1;
  return begin;
}

/* ---- which lines become nodes ------------------------------------------------------------------------------------ */

/* Backwards, so that the contents of a block come before the block. */
static void count_filled(maker *make) {
  const gki_line *lines = make->blocks->lines;
  for (uint32_t k = make->blocks->line_count; k-- > 0;) {
    gk_op op = lines[k].task->op;
    if (op == GK_OP_END || lines[k].parent == GK_NONE) continue;
    uint8_t *around = &make->filled[lines[k].parent];
    gk_op parent = lines[lines[k].parent].task->op;
    bool is_something = (op != GK_OP_SECTION && op != GK_OP_PARALLEL) || make->filled[k];
    if (parent == GK_OP_SECTION) *around |= is_something;
    else if (parent == GK_OP_PARALLEL && is_something && *around < 2) ++*around;
  }
}

static bool is_kept(const maker *make, uint32_t line) {
  const gki_line *at = &make->blocks->lines[line];
  if (at->task->op == GK_OP_PARALLEL) return make->filled[line] > 1;
  if (at->task->op == GK_OP_SECTION) return make->filled[line] && make->filled[at->parent] > 1;
  return true;
}

/* Exact sizes of all arrays except the runs. */
static void measure(const maker *make, gk_plan *plan, size_t *args, size_t *text) {
  const gki_blocks *blocks = make->blocks;
  plan->node_count = 1;
  plan->slot_count = blocks->slot_count;
  *args = 0;
  *text = name_bytes(or_unnamed(blocks->inclusions[0].list->name)) + 1;
  for (uint32_t k = 0; k < blocks->line_count; ++k) {
    const gk_task *task = blocks->lines[k].task;
    if (task->op == GK_OP_END || !is_kept(make, k)) continue;
    ++plan->node_count;
    plan->loop_count += gki_op_is_loop(task->op);
    plan->checkpoint_count += gki_op_is_target(task->op);
    plan->always_count += (task->bits & GK_ALWAYS) != 0;
    *args += gki_arg_count(task);
    *text += name_bytes(name_of_node(blocks, &blocks->lines[k]));
  }
  for (uint32_t k = 0; k < blocks->slot_count; ++k) {
    const gk_slot_desc *slot = &blocks->slots[k];
    if (slot->type != GK_NO_TYPE) *text += name_bytes(or_unnamed(slot->name));
    if (slot->element) *text += strlen(slot->element) + 1;
  }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void write_slots(maker *make, gk_slot_desc *slots) {
  const char *nothing = store(make, name_of_text("", ""));
  for (uint32_t k = 0; k < make->blocks->slot_count; ++k) {
    slots[k] = make->blocks->slots[k];
    slots[k].name = slots[k].type == GK_NO_TYPE ? nothing : store(make, or_unnamed(slots[k].name));
    if (slots[k].element) slots[k].element = store(make, name_of_text("", slots[k].element));
  }
}

static void tell_block(const maker *make, const gk_node *node) {
  gk_node *around = &make->nodes[node->parent];
  around->can_yield |= node->can_yield;
  around->has_target |= node->has_target;
}

static void open_node(maker *make, gk_node *node, uint32_t at) {
  gk_plan *plan = make->plan;
  switch (node->op) {
  case GK_OP_DO_WHILE:
  case GK_OP_WHILE:
  case GK_OP_REPEAT:
    node->loop = plan->loop_count;
    make->loops[plan->loop_count++] = at;
    break;
  case GK_OP_CHECKPOINT:
  case GK_OP_YIELD:
    node->checkpoint = plan->checkpoint_count;
    node->has_target = true;
    node->can_yield = node->flag != 0 || node->op == GK_OP_YIELD;
    make->checkpoints[plan->checkpoint_count++] = at;
    if (!gki_op_opens(node->op)) tell_block(make, node);
    break;
  case GK_OP_ELSE:
    node->otherwise = make->block;
    make->nodes[make->block].otherwise = at;
    break;
  default: break;
  }
  bool straight = gki_op_is_task(node->op);
  straight |= (node->op == GK_OP_PARALLEL || node->op == GK_OP_SECTION) && !(plan->bits & GK_ISOLATE);
  node->run = straight ? STRAIGHT : GK_NONE;
  if (!straight || node->op == GK_OP_CALL_HOST)
    for (uint32_t up = make->block; make->nodes[up].run == STRAIGHT; up = make->nodes[up].parent)
      make->nodes[up].run = GK_NONE;
  if (gki_op_opens(node->op) || node->op == GK_OP_ELSE) make->block = at;
}

static void add_node(maker *make, uint32_t line) {
  const gki_blocks *blocks = make->blocks;
  const gki_line *from = &blocks->lines[line];
  const gk_task *task = from->task;
  uint32_t at = make->plan->node_count++;
  gk_node *node = &make->nodes[at];
  *node = (gk_node){.op = task->op, .end = at + 1, .parent = make->block, .source = from->source,
                    .args = make->arg_count, .flag = gki_slot_of(blocks, from->inclusion, task->flag),
                    .offset = task->offset, .from_offset = task->from_offset, .pattern = task->pattern,
                    .max_iterations = task->max_iterations, .every = task->every,
                    .label = (int32_t)gki_label_of(blocks, line),
                    .always = (task->bits & GK_ALWAYS) != 0, .kernel = task->kernel, .call = task->call};
  if (node->op == GK_OP_REPEAT && task->flag < 0) node->count = (uint32_t)-task->flag;
  node->handwritten = node->op == GK_OP_KERNEL && node->kernel && gki_backend_code(make->backend, node->kernel);
  node->name = store(make, name_of_node(blocks, from));
  node->arg_count = gki_arg_count(task);
  for (uint32_t k = 0; k < node->arg_count; ++k)
    make->args[make->arg_count++] = gki_slot_of(blocks, from->inclusion, task->args[k]);
  for (uint32_t k = 0; k < 3; ++k) node->items[k] = gki_items_of(blocks, from->inclusion, task->items[k]);
  if (node->always) make->always[make->plan->always_count++] = at;
  open_node(make, node, at);
  if (make->loop_nodes && gki_op_is_loop(node->op)) make->loop_nodes[line] = at;
}

/* Pass numbers name the node of their loop, and loops know whether one is used. Only an unused one may have no loop in
 * this list; it is memory like other unused slots then. */
static void find_passes(const maker *make, gk_slot_desc *slots) {
  const gk_plan *plan = make->plan;
  for (uint32_t k = 1; k < plan->slot_count; ++k) {
    if (!(slots[k].bits & GK_IS_PASS)) continue;
    if (slots[k].value.i32 < 0) slots[k].bits = 0;
    else slots[k].value.i32 = (int32_t)make->loop_nodes[slots[k].value.i32];
  }
  for (uint32_t k = 1; k < plan->node_count; ++k) {
    const gk_node *node = &make->nodes[k];
    uint32_t used[GK_MAX_ARGS + 4] = {node->flag, node->items[0], node->items[1], node->items[2]};
    if (node->arg_count) memcpy(used + 4, make->args + node->args, node->arg_count * sizeof *used);
    for (uint32_t u = 0; u < GK_COUNT(used); ++u)
      if (slots[used[u]].bits & GK_IS_PASS) make->nodes[slots[used[u]].value.i32].is_numbered = true;
  }
}

static void close_block(maker *make) {
  gk_node *node = &make->nodes[make->block];
  node->end = make->plan->node_count;
  tell_block(make, node);
  make->block = node->parent;
  if (node->op == GK_OP_ELSE) close_block(make);
}

static void write_nodes(maker *make) {
  gk_plan *plan = make->plan;
  plan->node_count = 1;
  plan->loop_count = plan->checkpoint_count = plan->always_count = 0;
  make->nodes[0] = (gk_node){.op = GK_OP_SECTION, .run = GK_NONE, .name = plan->name};
  for (uint32_t k = 0; k < make->blocks->line_count; ++k) {
    const gki_line *line = &make->blocks->lines[k];
    if (line->task->op != GK_OP_END) {
      if (is_kept(make, k)) add_node(make, k);
    } else if (is_kept(make, line->mate)) {
      close_block(make);
    }
  }
  make->nodes[0].end = plan->node_count;
  plan->can_yield = make->nodes[0].can_yield;
}

static bool is_apart(const gk_node *node) { return node->always || node->op == GK_OP_CALL_HOST; }

/* Gives each straight node the number of its run. @return The number of runs. */
static uint32_t number_runs(maker *make) {
  gk_node *nodes = make->nodes;
  uint32_t count = 0, last = 0; /* last: the previous straight task or block */
  for (uint32_t at = 1; at < make->plan->node_count;) {
    gk_node *node = &nodes[at];
    if (node->op == GK_OP_SECTION) node->run = GK_NONE; /* a SECTION within a run is skipped with its PARALLEL */
    if (node->run == GK_NONE) {
      ++at;
      continue;
    }
    bool follows = last && nodes[last].end == at && nodes[last].parent == node->parent;
    if (!follows || is_apart(node) || is_apart(&nodes[last]) || (make->plan->bits & GK_ISOLATE)) ++count;
    last = at;
    for (uint32_t end = node->end; at < end; ++at) nodes[at].run = count - 1;
  }
  return count;
}

static void write_runs(const maker *make, gk_plan_run *runs) {
  const gk_node *nodes = make->nodes;
  for (uint32_t at = make->plan->node_count; at-- > 1;) {
    if (nodes[at].run == GK_NONE) continue;
    gk_plan_run *run = &runs[nodes[at].run];
    run->begin = at;
    if (!run->end) run->end = at + 1; /* later nodes come first */
  }
}

static bool label_is_less(const void *nodes, uint32_t a, uint32_t b) {
  return ((const gk_node *)nodes)[a].label < ((const gk_node *)nodes)[b].label;
}

static gk_result write_plan(maker *make, gki_arena *arena) {
  gk_plan *plan = make->plan;
  size_t args, text;
  measure(make, plan, &args, &text);
  gk_slot_desc *slots = gki_arena_alloc(arena, plan->slot_count, sizeof *slots);
  make->nodes = gki_arena_alloc(arena, plan->node_count, sizeof *make->nodes);
  make->args = gki_arena_alloc(arena, args, sizeof *make->args);
  make->loops = gki_arena_alloc(arena, plan->loop_count, sizeof *make->loops);
  make->checkpoints = gki_arena_alloc(arena, plan->checkpoint_count, sizeof *make->checkpoints);
  make->always = gki_arena_alloc(arena, plan->always_count, sizeof *make->always);
  make->text = gki_arena_alloc(arena, text, 1);
  uint32_t *by_label = gki_arena_alloc(arena, plan->checkpoint_count, sizeof *by_label);
  bool all = slots && make->nodes && make->args && make->loops && make->checkpoints;
  if (!all || !make->always || !make->text || !by_label)
    return gki_fail_memory("the plan of a task list", plan->node_count * sizeof *make->nodes + text);
  plan->name = store(make, or_unnamed(make->blocks->inclusions[0].list->name));
  write_slots(make, slots);
  write_nodes(make);
  if (make->loop_nodes) find_passes(make, slots);
  plan->run_count = number_runs(make);
  gk_plan_run *runs = gki_arena_alloc(arena, plan->run_count, sizeof *runs);
  if (!runs) return gki_fail_memory("the runs of a plan", plan->run_count * sizeof *runs);
  write_runs(make, runs);
  if (plan->checkpoint_count) memcpy(by_label, make->checkpoints, plan->checkpoint_count * sizeof *by_label);
  gki_sort(by_label, plan->checkpoint_count, label_is_less, make->nodes);
  plan->nodes = make->nodes;
  plan->runs = runs;
  plan->args = make->args;
  plan->slots = slots;
  plan->loops = make->loops;
  plan->checkpoints = make->checkpoints;
  plan->by_label = by_label;
  plan->always = make->always;
  return GK_OK;
}

gk_result gki_plan_make(gki_planned *planned, const gki_blocks *blocks, const gk_backend *backend, uint32_t bits) {
  *planned = (gki_planned){.plan.bits = bits};
  maker make = {.blocks = blocks, .backend = backend, .plan = &planned->plan};
  make.filled = gki_array(blocks->line_count, sizeof *make.filled, "the plan of a task list");
  if (make.filled && blocks->has_passes)
    make.loop_nodes = gki_array(blocks->line_count, sizeof *make.loop_nodes, "the plan of a task list");
  const bool has_all = make.filled && (make.loop_nodes || !blocks->has_passes);
  if (has_all) count_filled(&make);
  gk_result result = has_all ? write_plan(&make, &planned->arena) : GK_ERROR_MEMORY;
  gk_host_free(make.filled);
  gk_host_free(make.loop_nodes);
  if (result) gki_plan_free(planned);
  return result;
}

void gki_plan_free(gki_planned *planned) {
  gki_arena_free(&planned->arena);
  *planned = (gki_planned){0};
}

gk_result gki_plan_refuse_host(const gk_plan *plan, const char *backend) {
  for (uint32_t k = 0; k < plan->node_count; ++k)
    if (plan->nodes[k].op == GK_OP_CALL_HOST)
      return gk_fail(GK_ERROR_UNSUPPORTED, "task %u (%s): it is work of the host in a list that %s decides on the "
                     "device; there, pause by a GK_YIELD and do it between launches, or create the graph with "
                     "GK_HOST_GATED", (unsigned)plan->nodes[k].source, plan->nodes[k].name, backend);
  return GK_OK;
}

uint32_t gki_plan_label(const gk_plan *plan, int32_t label) {
  uint32_t first = 0, end = plan->checkpoint_count;
  while (first < end) {
    uint32_t middle = first + (end - first) / 2;
    if (plan->nodes[plan->by_label[middle]].label < label) first = middle + 1;
    else end = middle;
  }
  if (first == plan->checkpoint_count || plan->nodes[plan->by_label[first]].label != label) return 0;
  return plan->by_label[first];
}

const char *gki_node_title(const gk_node *node, char *text, size_t bytes) {
  const char *op = gki_op_name(node->op);
  const bool names_op = gki_op_opens(node->op) && strcmp(node->name, op) != 0;
  snprintf(text, bytes, "task %u (%s%s%.100s)", (unsigned)node->source, names_op ? op : "", names_op ? " " : "",
           node->name);
  return text;
}

const char *gki_run_title(const gk_plan *plan, uint32_t run, char text[GKI_RUN_TITLE_BYTES]) {
  const gk_plan_run *at = &plan->runs[run];
  const gk_node *first = &plan->nodes[at->begin], *last = &plan->nodes[at->end - 1];
  const int length = snprintf(text, GKI_RUN_TITLE_BYTES, "%s %u (%.250s)", first == last ? "task" : "tasks",
                              (unsigned)first->source, first->name);
  if (first != last) snprintf(text + length, GKI_RUN_TITLE_BYTES - (size_t)length, " to %u (%.250s)",
                              (unsigned)last->source, last->name);
  return text;
}

const char *gki_wait_title(const gk_plan *plan, uint32_t run, char text[GKI_WAIT_TITLE_BYTES]) {
  const bool is_run = run < plan->run_count, is_open = is_run && !(plan->bits & GK_ISOLATE);
  char last[GKI_RUN_TITLE_BYTES] = "the device";
  if (is_run) gki_run_title(plan, run, last);
  snprintf(text, GKI_WAIT_TITLE_BYTES, "waiting for %s%s of graph %.250s%s", is_open ? "the device, at " : "", last,
           plan->name, is_open ? " or an earlier task (GK_ISOLATE tells which)" : "");
  return text;
}
