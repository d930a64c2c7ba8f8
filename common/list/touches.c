/* The memory that a task touches, and how: for the search for races, and for slots that share memory at launch. */
#include "list/touches.h"

/* ---- what a task touches ----------------------------------------------------------------------------------------- */

static gki_touch_kind kind_of(gk_access access) {
  switch (access) {
  case GK_ACCESS_IN: return GKI_READS;
  case GK_ACCESS_SUM: return GKI_SUMS;
  case GK_ACCESS_ATOMIC: return GKI_ATOMIC;
  default: return GKI_WRITES;
  }
}

typedef struct collector {
  const gk_slot_desc *slots;
  gki_touch *touches;
  uint32_t count;
} collector;

static void collect(collector *into, uint32_t slot, gki_touch_kind kind) {
  if (slot && into->slots[slot].type == GK_PTR) into->touches[into->count++] = (gki_touch){slot, kind};
}

/* A call may write all of its memory. */
static gki_touch_kind kind_of_arg(gk_op op, const gk_kernel *kernel, uint32_t arg) {
  if (op == GK_OP_KERNEL) return kind_of(kernel->params[arg].access);
  return op == GK_OP_COPY && arg == 1 ? GKI_READS : GKI_WRITES;
}

/* The number of arguments whose use is known: in a wrong list, a kernel may have more arguments than parameters. */
static uint32_t known_args(const gk_task *task) {
  uint32_t count = gki_arg_count(task);
  const gk_kernel *kernel = task->kernel;
  switch (task->op) {
  case GK_OP_KERNEL:
    if (!kernel || !kernel->params || kernel->param_count > GK_MAX_ARGS) return 0;
    return count < kernel->param_count ? count : kernel->param_count;
  case GK_OP_COPY: return count < 2 ? count : 2;
  case GK_OP_FILL: return count < 1 ? count : 1;
  case GK_OP_CALL: case GK_OP_CALL_HOST: return count;
  default: return 0;
  }
}

uint32_t gki_touches_of_line(const gki_blocks *blocks, uint32_t line, gki_touch *touches) {
  const gki_line *at = &blocks->lines[line];
  const gk_task *task = at->task;
  collector into = {blocks->slots, touches, 0};
  for (uint32_t k = 0, count = known_args(task); k < count; ++k)
    collect(&into, gki_slot_of(blocks, at->inclusion, task->args[k]), kind_of_arg(task->op, task->kernel, k));
  for (uint32_t k = 0; k < 3; ++k) collect(&into, gki_slot_of(blocks, at->inclusion, task->items[k]), GKI_READS);
  collect(&into, gki_slot_of(blocks, at->inclusion, task->flag), GKI_READS);
  return into.count;
}

uint32_t gki_touches_of_node(const gk_plan *plan, uint32_t node, uint32_t *args, gki_touch *touches) {
  const gk_node *at = &plan->nodes[node];
  collector into = {plan->slots, touches, 0};
  for (uint32_t k = 0; k < at->arg_count; ++k)
    collect(&into, plan->args[at->args + k], kind_of_arg(at->op, at->kernel, k));
  *args = into.count;
  for (uint32_t k = 0; k < 3; ++k) collect(&into, at->items[k], GKI_READS);
  collect(&into, at->flag, GKI_READS);
  return into.count;
}

const char *gki_touch_name(gki_touch_kind kind) {
  static const char *const words[] = {"reads", "writes", "sums into", "changes atomically"};
  return words[kind];
}
