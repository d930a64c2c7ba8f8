/* Prints what gk_gates_make makes of lists, as numbers, for tests/lowering/compare.py. Reads lines, each the bits and
 * then a letter per task (model.py has them), and answers each with a line of JSON: the arrays of gk_gates, but nodes,
 * loops and checkpoints of the plan by their task, and -1 for GK_NONE. */
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

static void put(uint32_t number) {
  if (number == GK_NONE) printf("-1");
  else printf("%u", (unsigned)number);
}
static uint32_t task_at(const gk_plan *plan, uint32_t node) {
  return node == GK_NONE ? GK_NONE : plan->nodes[node].source;
}
static uint32_t listed(const gk_plan *plan, const uint32_t *nodes, uint32_t number) {
  return number == GK_NONE ? GK_NONE : plan->nodes[nodes[number]].source;
}

/* One element of an array, itself an array of these numbers. */
static void row(uint32_t index, const uint32_t *numbers, size_t count) {
  printf(index ? ", [" : "[");
  for (size_t k = 0; k < count; ++k) {
    if (k > 0) printf(", ");
    put(numbers[k]);
  }
  printf("]");
}
#define ROW(...) row(k, (const uint32_t[]){__VA_ARGS__}, sizeof(const uint32_t[]){__VA_ARGS__} / sizeof(uint32_t))

/* Each element of an array, whose index is k. */
#define ARRAY(name, count, ...) \
  do { \
    printf(", \"%s\": [", name); \
    for (uint32_t k = 0; k < (count); ++k) __VA_ARGS__; \
    printf("]"); \
  } while (0)

static void print_gates(const gk_gates *g) {
  const gk_plan *plan = g->plan;
  printf("{\"counts\": [%u, %u]", (unsigned)g->control_count, (unsigned)g->conditional_count);
  ARRAY("nodes", g->node_count, {
    const gk_gate_node *n = &g->nodes[k];
    ROW(n->kind, n->end, task_at(plan, n->node), n->handle, n->point, n->guard);
  });
  ARRAY("handles", g->handle_count, ROW(g->handles[k].initial, g->handles[k].off, g->handles[k].node));
  ARRAY("points", g->point_count, {
    const gk_gate_point *p = &g->points[k];
    ROW(p->kind, task_at(plan, p->node), listed(plan, plan->checkpoints, p->checkpoint), p->exits, p->exit_count,
        p->handle, p->reenable, p->reenable_count, p->block, p->close);
  });
  ARRAY("exits", g->exit_count, ROW(g->exits[k].next, g->exits[k].handle, g->exits[k].value));
  ARRAY("reenables", g->reenable_count, (printf(k ? ", " : ""), put(g->reenables[k])));
  ARRAY("closes", g->close_count, ROW(g->closes[k].kind, g->closes[k].at, g->closes[k].value));
  ARRAY("blocks", g->block_count, {
    const gk_gate_block *b = &g->blocks[k];
    ROW(b->begin, b->end, b->around, b->before, b->after, listed(plan, plan->loops, b->loop), b->handle, b->value,
        b->in_loop);
  });
  ARRAY("targets", g->target_count,
        ROW(listed(plan, plan->checkpoints, k), g->targets[k].block, g->targets[k].close));
  printf("}\n");
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
  if (result == GK_OK) print_gates(gates);
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
