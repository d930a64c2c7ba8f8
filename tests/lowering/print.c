/* What gk_gates_make makes of lists, as numbers: the other side of tests/lowering/compare.py. Reads lines, each the
 * bits and then a letter per task (model.py has them), and answers each with a line of JSON: the arrays of gk_gates as
 * they are, but nodes, loops and checkpoints of the plan by their task, and -1 for GK_NONE. */
#include "gk_gates.h"
#include "check/check.h"
#include "letters.h"
#include "plan/plan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLAG = 1, MOST_TASKS = 4000 };

static const gk_slot_desc slots[] = {GK_BUFFER(FLAG, int)};

static void run(const gk_value *args, gk_range range) { (void)args, (void)range; }
static const gk_kernel kernel = {.name = "task", .host = run};

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static void put(uint32_t number, const char *behind) {
  if (number == GK_NONE) printf("-1%s", behind);
  else printf("%u%s", (unsigned)number, behind);
}
static uint32_t task_at(const gk_plan *plan, uint32_t node) {
  return node == GK_NONE ? GK_NONE : plan->nodes[node].source;
}
static uint32_t listed(const gk_plan *plan, const uint32_t *nodes, uint32_t number) {
  return number == GK_NONE ? GK_NONE : plan->nodes[nodes[number]].source;
}
static void begin(const char *name) { printf(", \"%s\": [", name); }
static void row(uint32_t index) { printf(index ? ", [" : "["); }

static void print_graph(const gk_gates *g) {
  printf("{\"counts\": [%u, %u]", (unsigned)g->control_count, (unsigned)g->conditional_count);
  begin("nodes");
  for (uint32_t k = 0; k < g->node_count; ++k) {
    const gk_gate_node *n = &g->nodes[k];
    row(k);
    put(n->kind, ", ");
    put(n->end, ", ");
    put(task_at(g->plan, n->node), ", ");
    put(n->handle, ", ");
    put(n->point, ", ");
    put(n->guard, "]");
  }
  printf("]");
  begin("handles");
  for (uint32_t k = 0; k < g->handle_count; ++k) {
    row(k);
    put(g->handles[k].initial, ", ");
    put(g->handles[k].off, ", ");
    put(g->handles[k].node, "]");
  }
  printf("]");
}

static void print_points(const gk_gates *g) {
  begin("points");
  for (uint32_t k = 0; k < g->point_count; ++k) {
    const gk_gate_point *p = &g->points[k];
    row(k);
    put(p->kind, ", ");
    put(task_at(g->plan, p->node), ", ");
    put(listed(g->plan, g->plan->checkpoints, p->checkpoint), ", ");
    put(p->exits, ", ");
    put(p->exit_count, ", ");
    put(p->handle, ", ");
    put(p->reenable, ", ");
    put(p->reenable_count, ", ");
    put(p->block, ", ");
    put(p->close, "]");
  }
  printf("]");
  begin("exits");
  for (uint32_t k = 0; k < g->exit_count; ++k) {
    row(k);
    put(g->exits[k].next, ", ");
    put(g->exits[k].handle, ", ");
    put(g->exits[k].value, "]");
  }
  printf("]");
  begin("reenables");
  for (uint32_t k = 0; k < g->reenable_count; ++k) put(g->reenables[k], k + 1 < g->reenable_count ? ", " : "");
  printf("]");
}

static void print_blocks(const gk_gates *g) {
  begin("closes");
  for (uint32_t k = 0; k < g->close_count; ++k) {
    row(k);
    put(g->closes[k].kind, ", ");
    put(g->closes[k].at, ", ");
    put(g->closes[k].value, "]");
  }
  printf("]");
  begin("blocks");
  for (uint32_t k = 0; k < g->block_count; ++k) {
    const gk_gate_block *b = &g->blocks[k];
    row(k);
    put(b->begin, ", ");
    put(b->end, ", ");
    put(b->around, ", ");
    put(b->before, ", ");
    put(b->after, ", ");
    put(listed(g->plan, g->plan->loops, b->loop), ", ");
    put(b->handle, ", ");
    put(b->value, ", ");
    put(b->in_loop, "]");
  }
  printf("]");
  begin("targets");
  for (uint32_t k = 0; k < g->target_count; ++k) {
    row(k);
    put(listed(g->plan, g->plan->checkpoints, k), ", ");
    put(g->targets[k].block, ", ");
    put(g->targets[k].close, "]");
  }
  printf("]}\n");
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static gk_result answer(const gk_list *list, uint32_t bits) {
  gki_blocks blocks = {0};
  gki_planned planned = {0};
  const gk_gates *gates = NULL;
  gk_result result = gki_blocks_read(&blocks, list);
  if (result == GK_OK) result = gki_check(&blocks, NULL, NULL, NULL);
  if (result == GK_OK) result = gki_plan_make(&planned, &blocks, NULL, 0);
  if (result == GK_OK) result = gk_gates_make(&planned.plan, bits, &gates);
  if (result == GK_OK) {
    print_graph(gates);
    print_points(gates);
    print_blocks(gates);
  }
  gk_gates_free(gates);
  gki_plan_free(&planned);
  gki_blocks_free(&blocks);
  return result;
}

int main(void) {
  static gk_task tasks[MOST_TASKS];
  static char line[MOST_TASKS + 16];
  while (fgets(line, sizeof line, stdin)) {
    char *at = line;
    const uint32_t bits = (uint32_t)strtoul(line, &at, 10);
    size_t count = 0;
    for (at += *at == ' '; *at && *at != '\n' && count < MOST_TASKS; ++at, ++count)
      if (!task_of(*at, &kernel, (int32_t)count + 1, &tasks[count])) {
        fprintf(stderr, "print: no task has the letter '%c'\n", *at);
        return 2;
      }
    const gk_list list = {GK_ABI, "list", tasks, count, slots, GK_COUNT(slots)};
    if (answer(&list, bits) != GK_OK) {
      fprintf(stderr, "print: %s: %s\n", line, gk_error());
      return 1;
    }
  }
  return 0;
}
