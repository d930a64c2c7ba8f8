/* A list as read (blocks.c): its lines and inclusions. Every file of this folder shares these structs. */
#ifndef GKI_LIST_LINES_H
#define GKI_LIST_LINES_H
#include "base/op.h"
#include "base/table.h"
#include "list/problems.h"

enum {
  GKI_MAX_LINES = 1 << 24, /* of a list as composed; it holds for inclusions and composed slots as well */
  GKI_MAX_SLOT = 65535,
};

/* A line of the list as composed. A LIST task has no line of its own; the tasks that it includes have. */
typedef struct gki_line {
  const gk_task *task;
  uint32_t inclusion; /* index of the inclusion that it comes from */
  uint32_t source;    /* index in the user's list: the line's own, or that of the LIST task at top level */
  uint32_t parent;    /* line of the block around; GK_NONE: top level. An ELSE is in its IF, and what follows it is in
                       * the ELSE; an END has the parent of what it closes */
  uint32_t mate;      /* of an opening line: its END. ELSE: the END it shares. END: the line it closes (of an IF with
                       * ELSE: the IF). GK_NONE: of any other line, or if it is missing */
  uint32_t otherwise; /* IF: its ELSE. ELSE: its IF. GK_NONE: none */
} gki_line;

/* A list at one of the places where it is included; [0] is the user's own. */
typedef struct gki_inclusion {
  const gk_list *list;   /* NULL: it can't be read (none given, another ABI, arrays missing), and counts as empty */
  const gk_task *at;     /* its LIST task; NULL for [0] */
  const char *name;      /* before its own slots' names: "contacts", nested "outer.inner"; "" for [0] */
  const uint32_t *ranks; /* of slot s, up to slot_max: its place in the list's table, from 1; 0: it has none */
  uint32_t slot_max;     /* the largest slot number */
  uint32_t slot_base;    /* slot_map[slot_base + place - 1]: the composed slot; 0: the argument for it is unknown */
  uint32_t arg_count;    /* the task gives that many of the table's first slots */
  uint32_t around;       /* the enclosing inclusion; itself for [0] */
  uint32_t source;       /* as in gki_line; GK_NONE for [0] */
  uint32_t index;        /* of `at` in the enclosing list */
  uint32_t begin;        /* the line before which it begins */
  uint32_t first;        /* the first inclusion of the same list; it may be this one */
  int64_t label_offset;  /* added to its labels */
} gki_inclusion;

typedef struct gki_blocks {
  gki_arena arena;           /* holds everything below but the tables */
  gki_line *lines;
  uint32_t line_count;
  gki_inclusion *inclusions; /* in the order in which they begin */
  uint32_t inclusion_count;
  uint32_t *slot_map;        /* see gki_inclusion */
  gk_slot_desc *slots;       /* composed: [0] unused; the user's own keep their numbers; GK_NO_TYPE: a number that the
                              * table leaves out. Names of included ones are written out as "contacts.N" */
  uint32_t slot_count;       /* with the constants */
  gki_table constants;       /* of GK_ITEMS, behind the other slots: index there, by type << 32 | number */
  uint32_t constant_base;    /* the first one's composed slot. Their .slot is the number, negative */
  bool has_passes;           /* some table has a GK_PASS. As composed, its value.i32 is its loop's line; -1: none */
  gki_table loops;           /* then: the lines of loops with labels, by composed label (gki_loop_of) */
  uint32_t max_depth;        /* the nesting of blocks, as composed */
  gki_problem fault;         /* after GK_ERROR_INVALID: the problem */
  size_t fault_task;         /* and its task; SIZE_MAX: no particular one */
  char fault_message[768];
} gki_blocks;

static inline bool gki_has_label(const gk_task *task) {
  return task->label && (gki_op_is_target(task->op) || gki_op_is_loop(task->op));
}

/* The number of a task's args: up to the first 0. */
static inline uint32_t gki_arg_count(const gk_task *task) {
  uint32_t count = 0;
  while (count < GK_MAX_ARGS && task->args[count]) ++count;
  return count;
}

static inline bool gki_list_is_readable(const gk_list *list) {
  return list && list->abi == GK_ABI && (list->tasks || !list->task_count) && (list->slots || !list->slot_count);
}
#endif
