/* Small lists, written line by line, whose gates are counted. */
#ifndef SHEET_H
#define SHEET_H
#include "gates_bench.h"
#include "planned.h"

static const gk_slot_desc slots[] = {GK_BUFFER(FLAG, int)};

typedef struct sheet {
  gk_task tasks[128];
  uint32_t count;
  planned_list planned;
} sheet;

static void add(sheet *l, gk_task task) { l->tasks[l->count++] = task; }
static void add_tasks(sheet *l, uint32_t count) {
  while (count--) add(l, (gk_task){.op = GK_OP_KERNEL, .kernel = &kernel, .args = {FLAG}});
}
static const gk_plan *plan_of(sheet *l) { return plan_tasks(&l->planned, l->tasks, l->count, slots, GK_COUNT(slots)); }

/* What a launch executes, on a device that only counts, and the passes of the list's first loop. */
typedef struct executed { long tasks, kernels, conditionals; uint64_t passes; } executed;

static void no_task(void *user, uint32_t node) { (void)user, (void)node; }
static bool never(void *user) { return (void)user, false; }

/* A launch of the plan's gates from the top, or from a checkpoint. read: as in gates_device.h; user: the plan. */
static executed launch(const gk_plan *plan, uint32_t bits, int64_t (*read)(void *user, uint32_t node),
                       uint32_t target) {
  const gk_gates *gates;
  assert_ok(gk_gates_make(plan, bits, &gates));
  device d;
  device_begin(&d, plan);
  d.execute = no_task;
  d.read = read;
  d.cancelled = never;
  d.user = (void *)(uintptr_t)plan;
  device_graph graph;
  graph_begin(&graph, gates);
  device_launch(&d, &graph, target);
  const executed e = {d.tasks, d.kernels, d.conditionals, plan->loop_count ? d.loops[0].passes : 0};
  graph_end(&graph);
  device_end(&d);
  return e;
}
#endif
