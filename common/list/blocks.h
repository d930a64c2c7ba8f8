/* Stage 1: a list with its included lists expanded and its blocks matched. Check, plan and dump start from it, so none
 * of them reads the structure a second time. It accepts any list and leaves errors to the check (parent, mate or
 * otherwise is GKI_NONE; an included list that can't be read has no lines). */
#ifndef GKI_LIST_BLOCKS_H
#define GKI_LIST_BLOCKS_H
#include "list/problems.h"

#define GKI_NONE UINT32_MAX
enum { GKI_MAX_LINES = 1 << 24 }; /* of a list as composed; it holds for inclusions and composed slots as well */

/* A line of the list as composed. A LIST task has no line of its own; the tasks that it includes have. */
typedef struct gki_line {
  const gk_task *task;
  uint32_t inclusion; /* index of the inclusion that it comes from */
  uint32_t source;    /* index in the user's list: the line's own, or that of the LIST task at top level */
  uint32_t parent;    /* line of the block around; GKI_NONE: top level. An ELSE is in its IF, and what follows it is in
                       * the ELSE; an END has the parent of what it closes */
  uint32_t mate;      /* of an opening line: its END. ELSE: the END it shares. END: the line it closes (of an IF with
                       * ELSE: the IF). GKI_NONE: of any other line, or if it is missing */
  uint32_t otherwise; /* IF: its ELSE. ELSE: its IF. GKI_NONE: none */
} gki_line;

/* A list at one of the places where it is included; [0] is the user's own. */
typedef struct gki_inclusion {
  const gk_list *list;   /* NULL: it can't be read (none given, another ABI, arrays missing), and counts as empty */
  const gk_task *at;     /* its LIST task; NULL for [0] */
  const char *name;      /* before its own slots' names: "contacts", nested "outer.inner"; "" for [0] */
  const uint32_t *ranks; /* of slot number s, up to slot_max: its place in the list's table, from 1; 0: not in there */
  uint32_t slot_max;     /* the largest slot number */
  uint32_t slot_base;    /* slot_map[slot_base + place - 1]: the composed slot; 0: the argument for it is unknown */
  uint32_t arg_count;    /* the task gives that many of the table's first slots */
  uint32_t around;       /* the enclosing inclusion; itself for [0] */
  uint32_t source;       /* as in gki_line; GKI_NONE for [0] */
  uint32_t index;        /* of `at` in the enclosing list */
  uint32_t begin;        /* the line before which it begins */
  uint32_t first;        /* the first inclusion of the same list; it may be this one */
  int64_t label_offset;  /* added to its labels */
} gki_inclusion;

typedef struct gki_blocks {
  gki_arena arena;           /* holds everything below */
  gki_line *lines;
  uint32_t line_count;
  gki_inclusion *inclusions; /* in the order in which they begin */
  uint32_t inclusion_count;
  uint32_t *slot_map;        /* see gki_inclusion */
  gk_slot_desc *slots;       /* composed: [0] unused; the user's own keep their numbers; GK_NO_TYPE: a number that the
                              * table leaves out. Names of included ones are written out as "contacts.N" */
  uint32_t slot_count;
  uint32_t max_depth;        /* the nesting of blocks, as composed */
  gki_problem fault;         /* after GK_ERROR_INVALID: the problem */
  size_t fault_task;         /* and its task; SIZE_MAX: no particular one */
  char fault_message[768];
} gki_blocks;

/* Reads a list. Linear in its composed length. Fails with GK_ERROR_MEMORY, and with GK_ERROR_INVALID for a list that
 * can't be read at all (NULL arrays, another ABI, longer than 2^24, lists nested too deeply or in themselves). Then
 * gk_fail has been called, and only the fields that begin with `fault` are set. Wrong structure is no failure. */
gk_result gki_blocks_read(gki_blocks *blocks, const gk_list *list);
void gki_blocks_free(gki_blocks *blocks);

/* The composed slot of a task's slot number; 0: none (0 itself, negative, or not in its table). */
uint32_t gki_slot_of(const gki_blocks *blocks, uint32_t inclusion, gk_slot slot);

/* Whether a list's table has that number. gki_slot_of may still be 0, if an INCLUDE gives an unknown slot. */
bool gki_slot_is_known(const gki_blocks *blocks, uint32_t inclusion, gk_slot slot);

/* Whether a list can't be read; then the problem, and its sentence. */
bool gki_list_is_broken(const gk_list *list, gki_problem *problem, char *text, size_t bytes);

/* The name of a list in a message. */
const char *gki_list_name(const gk_list *list);

/* The number of a task's args: up to the first 0. */
uint32_t gki_arg_count(const gk_task *task);

/* The name of a task that opens a block: its label, or its flag. */
const char *gki_block_name(const gk_task *task, size_t *length);

/* "task 7 (scale)", "task 3 (DO_WHILE MORE)", or "task 7 (contacts), there task 3 (find_pairs)" for one of an included
 * list. */
void gki_line_name(const gki_blocks *blocks, uint32_t line, char *text, size_t bytes);

/* The same for an inclusion's LIST task, which isn't a line; "the list (cloth)" for [0]. */
void gki_inclusion_name(const gki_blocks *blocks, uint32_t inclusion, char *text, size_t bytes);

/* The composed label of a line, in 64 bits so that nothing can overflow. 0: it has none. */
int64_t gki_label_of(const gki_blocks *blocks, uint32_t line);

/* Whether a line of that op opens a block that an END closes. */
bool gki_op_opens(gk_op op);
#endif
