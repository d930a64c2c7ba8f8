/* Lists of letters, one per task: what tests/lowering/model.py reads, as tasks. */
#ifndef LETTERS_H
#define LETTERS_H
#include "gk.h"

/* False: a letter is unknown. All flags are in slot 1. */
static inline bool task_of(char letter, const gk_kernel *runs, int32_t label, gk_task *task) {
  *task = (gk_task){.flag = 1};
  switch (letter) {
  case 't': *task = (gk_task){.op = GK_OP_KERNEL, .kernel = runs}; return true;
  case 'a': *task = (gk_task){.op = GK_OP_KERNEL, .kernel = runs, .bits = GK_ALWAYS}; return true;
  case 'D': task->op = GK_OP_DO_WHILE; return true;
  case 'W': task->op = GK_OP_WHILE; return true;
  case 'I': task->op = GK_OP_IF; return true;
  case 'S': task->op = GK_OP_SWITCH; return true;
  case 'E': *task = (gk_task)GK_ELSE; return true;
  case 'C': *task = (gk_task)GK_CASE; return true;
  case 'P': *task = (gk_task)GK_PARALLEL; return true;
  case 'X': *task = (gk_task)GK_SECTION; return true;
  case '.': *task = (gk_task)GK_END; return true;
  case 'K': *task = (gk_task){.op = GK_OP_CHECKPOINT, .label = label}; return true;
  case 'Y': *task = (gk_task){.op = GK_OP_CHECKPOINT, .label = label, .flag = 1}; return true;
  default: return false;
  }
}
#endif
