#include "list/line_name.h"
#include "base/name.h"
#include <stdio.h>
#include <string.h>

static const char *task_name(const gk_task *task, char *spare, size_t bytes) {
  if (task->name && *task->name) return task->name;
  if (task->op == GK_OP_KERNEL && task->kernel && task->kernel->name) return task->kernel->name;
  if (task->op == GK_OP_LIST && gki_list_is_readable(task->list) && task->list->name) return task->list->name;
  if (gki_op_name(task->op)) return gki_op_name(task->op);
  snprintf(spare, bytes, "op %d", (int)task->op);
  return spare;
}

static const char *skip_blanks(const char *text) { return text + strspn(text, " \t\n"); }

/* Up to the next comma outside of brackets, without blanks at both ends. */
static size_t argument_length(const char *text) {
  size_t length = 0;
  for (int depth = 0; text[length] && (depth > 0 || text[length] != ','); ++length)
    depth += (text[length] == '(') - (text[length] == ')');
  while (length && strchr(" \t\n", text[length - 1])) --length;
  return length;
}

/* The macros of blocks store the whole text of their arguments: "SOLVING, .max_iterations = 200, .label = SOLVE". */
const char *gki_block_name(const gk_task *task, size_t *length) {
  static const char key[] = ".label";
  const char *text = task->name ? task->name : "";
  const char *label = task->label ? strstr(text, key) : NULL;
  if (label) {
    label = skip_blanks(label + sizeof key - 1);
    if (*label == '=') text = label + 1;
  }
  text = skip_blanks(text);
  *length = argument_length(text);
  return text;
}

size_t gki_task_name_append(char *text, size_t bytes, size_t used, size_t index, const gk_task *task) {
  char spare[24];
  if (used >= bytes) return used;
  const char *name = task_name(task, spare, sizeof spare), *op = "";
  size_t shown = GKI_NAME_SHOWN;
  if (gki_op_opens(task->op) && name == task->name) {
    op = gki_op_name(task->op);
    name = gki_block_name(task, &shown);
  }
  if (shown > GKI_NAME_SHOWN) shown = GKI_NAME_SHOWN;
  int length = snprintf(text + used, bytes - used, "%stask %zu (%s%s%.*s)", used ? ", there " : "", index, op,
                        *op ? " " : "", (int)shown, name);
  return length < 0 ? used : used + (size_t)length;
}

static size_t append_inclusion(const gki_blocks *blocks, uint32_t inclusion, char *text, size_t bytes) {
  const gki_inclusion *in = &blocks->inclusions[inclusion];
  if (!in->at) return 0;
  const size_t used = append_inclusion(blocks, in->around, text, bytes);
  return gki_task_name_append(text, bytes, used, in->index, in->at);
}

void gki_line_name(const gki_blocks *blocks, uint32_t line, char *text, size_t bytes) {
  const gki_line *at = &blocks->lines[line];
  if (bytes) *text = 0;
  size_t used = append_inclusion(blocks, at->inclusion, text, bytes);
  const size_t index = (size_t)(at->task - blocks->inclusions[at->inclusion].list->tasks);
  gki_task_name_append(text, bytes, used, index, at->task);
}

void gki_inclusion_name(const gki_blocks *blocks, uint32_t inclusion, char *text, size_t bytes) {
  if (inclusion) append_inclusion(blocks, inclusion, text, bytes);
  else snprintf(text, bytes, "the list %.*s", GKI_NAME_SHOWN, gki_list_name(blocks->inclusions[0].list));
}

const char *gki_list_name(const gk_list *list) { return list->name && *list->name ? list->name : "without a name"; }
