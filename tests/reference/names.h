/* What loops, checkpoints and slots are called. Each name is to be freed; NULL: no memory. */
#ifndef REFERENCE_NAMES_H
#define REFERENCE_NAMES_H
#include "gk.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "name" within the list "contacts" is "contacts.name". */
static inline char *full_name(const char *around, const char *name, size_t length) {
  const size_t bytes = strlen(around) + length + 2;
  char *text = malloc(bytes);
  if (text) snprintf(text, bytes, "%s%s%.*s", around, *around ? "." : "", (int)length, name);
  return text;
}

/* The macros of blocks keep the text of their arguments, "SOLVING, .max_iterations = 200, .label = SOLVE": a loop is
 * called by its label, else by its flag. */
static inline char *block_name(const char *around, const gk_task *task) {
  const bool yield = task->op == GK_OP_YIELD, checkpoint = yield || task->op == GK_OP_CHECKPOINT;
  const bool named = task->name && *task->name;
  const char *text = named ? task->name : yield ? "YIELD" : checkpoint ? "CHECKPOINT"
                     : task->op == GK_OP_WHILE ? "WHILE" : task->op == GK_OP_REPEAT ? "REPEAT" : "DO_WHILE";
  if (checkpoint || !named) return full_name(named ? around : "", text, strlen(text));
  const char *label = task->label ? strstr(text, ".label") : NULL;
  if (label && strchr(label, '=')) text = strchr(label, '=') + 1;
  while (*text == ' ') ++text;
  size_t length = 0;
  for (int brackets = 0; text[length] && (brackets || text[length] != ','); ++length)
    brackets += text[length] == '(' ? 1 : text[length] == ')' ? -1 : 0;
  while (length && text[length - 1] == ' ') --length;
  return full_name(around, text, length);
}
#endif
