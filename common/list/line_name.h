/* What a message calls a task or a list. */
#ifndef GKI_LIST_LINE_NAME_H
#define GKI_LIST_LINE_NAME_H
#include "list/lines.h"

enum { GKI_NAME_SHOWN = 100 }; /* characters of a task's or list's name in a message */

const char *gki_list_name(const gk_list *list);

/* The name of a task that opens a block: its label, or its flag. */
const char *gki_block_name(const gk_task *task, size_t *length);

/* Appends "task 7 (scale)" behind `used` characters, after ", there " unless it comes first. @return The new length,
 * which may exceed `bytes`, like that of snprintf. */
size_t gki_task_name_append(char *text, size_t bytes, size_t used, size_t index, const gk_task *task);

/* "task 7 (scale)", "task 3 (DO_WHILE MORE)", or "task 7 (contacts), there task 3 (find_pairs)" for one of an included
 * list. */
void gki_line_name(const gki_blocks *blocks, uint32_t line, char *text, size_t bytes);

/* The same for an inclusion's LIST task, which isn't a line; "the list (cloth)" for [0]. */
void gki_inclusion_name(const gki_blocks *blocks, uint32_t inclusion, char *text, size_t bytes);
#endif
