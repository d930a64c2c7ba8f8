#include "list/blocks.h"
#include "base/error.h"
#include "base/name.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
  MAX_SLOT = 65535,
  MAX_TEXT = 1 << 28, /* bytes of all composed names; names that people write are far shorter */
  NAME_SHOWN = 100,   /* characters of a task's name in a message */
};

bool gki_op_opens(gk_op op) {
  switch (op) {
  case GK_OP_DO_WHILE: case GK_OP_WHILE: case GK_OP_IF: case GK_OP_SWITCH: case GK_OP_CASE:
  case GK_OP_CHECKPOINT: case GK_OP_PARALLEL: case GK_OP_SECTION: return true;
  default: return false;
  }
}

uint32_t gki_arg_count(const gk_task *task) {
  uint32_t count = 0;
  while (count < GK_MAX_ARGS && task->args[count]) ++count;
  return count;
}

static bool is_readable(const gk_list *list) {
  return list && list->abi == GK_ABI && (list->tasks || !list->task_count) && (list->slots || !list->slot_count);
}

static const char *task_name(const gk_task *task, char *spare, size_t bytes) {
  if (task->name && *task->name) return task->name;
  if (task->op == GK_OP_KERNEL && task->kernel && task->kernel->name) return task->kernel->name;
  if (task->op == GK_OP_LIST && is_readable(task->list) && task->list->name) return task->list->name;
  if (gki_op_name(task->op)) return gki_op_name(task->op);
  snprintf(spare, bytes, "op %d", (int)task->op);
  return spare;
}

/* ---- what a message calls a task --------------------------------------------------------------------------------- */

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

static size_t append_task(char *text, size_t bytes, size_t used, size_t index, const gk_task *task) {
  char spare[24];
  if (used >= bytes) return used;
  const char *name = task_name(task, spare, sizeof spare), *op = "";
  size_t shown = NAME_SHOWN;
  if (gki_op_opens(task->op) && name == task->name) {
    op = gki_op_name(task->op);
    name = gki_block_name(task, &shown);
  }
  if (shown > NAME_SHOWN) shown = NAME_SHOWN;
  int length = snprintf(text + used, bytes - used, "%stask %zu (%s%s%.*s)", used ? ", there " : "", index, op,
                        *op ? " " : "", (int)shown, name);
  return length < 0 ? used : used + (size_t)length;
}

static size_t append_inclusion(const gki_blocks *blocks, uint32_t inclusion, char *text, size_t bytes) {
  const gki_inclusion *in = &blocks->inclusions[inclusion];
  if (!in->at) return 0;
  return append_task(text, bytes, append_inclusion(blocks, in->around, text, bytes), in->index, in->at);
}

void gki_line_name(const gki_blocks *blocks, uint32_t line, char *text, size_t bytes) {
  const gki_line *at = &blocks->lines[line];
  if (bytes) *text = 0;
  size_t used = append_inclusion(blocks, at->inclusion, text, bytes);
  append_task(text, bytes, used, (size_t)(at->task - blocks->inclusions[at->inclusion].list->tasks), at->task);
}

void gki_inclusion_name(const gki_blocks *blocks, uint32_t inclusion, char *text, size_t bytes) {
  if (inclusion) append_inclusion(blocks, inclusion, text, bytes);
  else snprintf(text, bytes, "the list %.*s", NAME_SHOWN, gki_list_name(blocks->inclusions[0].list));
}

const char *gki_list_name(const gk_list *list) { return list->name && *list->name ? list->name : "without a name"; }

bool gki_list_is_broken(const gk_list *list, gki_problem *problem, char *text, size_t bytes) {
  char name[NAME_SHOWN + 1], a[24], b[24];
  if (is_readable(list)) return false;
  *problem = !list ? GKI_LIST_NULL : list->abi != GK_ABI ? GKI_LIST_ABI : GKI_LIST_ARRAYS;
  if (list) snprintf(name, sizeof name, "%s", gki_list_name(list));
  switch (*problem) {
  case GKI_LIST_ABI:
    snprintf(a, sizeof a, "%" PRIu32, list->abi);
    snprintf(b, sizeof b, "%d", GK_ABI);
    gki_problem_text(*problem, (const char *const[]){name, a, b, NULL}, text, bytes);
    break;
  case GKI_LIST_ARRAYS:
    snprintf(a, sizeof a, "%zu", list->task_count);
    snprintf(b, sizeof b, "%zu", list->slot_count);
    const char *array = list->tasks || !list->task_count ? ".slots" : ".tasks";
    gki_problem_text(*problem, (const char *const[]){name, a, b, array, NULL}, text, bytes);
    break;
  default: gki_problem_text(*problem, (const char *const[]){NULL}, text, bytes);
  }
  return true;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

/* Each list is measured once, however often it is included. So a list that grows exponentially is refused before
 * anything is written out. */

typedef struct measure {
  const gk_list *list;
  uint64_t lines, inclusions, slots; /* as composed, including itself; sums stop at LIMIT */
  uint64_t places, text;             /* in slot_map; bytes of slots' names */
  uint32_t *ranks;
  uint32_t slot_max, height;
  uint32_t first; /* its first inclusion */
  bool open; /* it is being measured: another mention means that the list includes itself */
} measure;

#define LIMIT ((uint64_t)1 << 40)

typedef struct reader {
  gki_blocks *blocks;
  measure *measures;
  size_t measure_count, measure_capacity;
  uint32_t *index; /* open addressing: place in measures, from 1 */
  size_t index_size;
  size_t source; /* the current task of the user's list */
  uint32_t inclusion_next, map_next, slot_next;
} reader;

static uint64_t sum(uint64_t a, uint64_t b) { return a + b < LIMIT ? a + b : LIMIT; }
static uint64_t product(uint64_t a, uint64_t b) { return a && b > LIMIT / a ? LIMIT : sum(a * b, 0); }

static gk_result tell_fault(gki_blocks *blocks, gki_problem problem, size_t task, const char *where, const char *text) {
  blocks->fault = problem;
  blocks->fault_task = task;
  snprintf(blocks->fault_message, sizeof blocks->fault_message, "%s%s%s", where, *where ? ": " : "", text);
  return gk_fail(GK_ERROR_INVALID, "%s", blocks->fault_message);
}

/* words[0] is the list's name; in LIST_TOO_DEEP the limit comes first. */
static gk_result refuse(reader *read, gki_problem problem, size_t task, const gk_list *list, const char *what) {
  char where[160] = "", text[512], name[NAME_SHOWN + 1], limit[12];
  snprintf(name, sizeof name, "%s", gki_list_name(list));
  snprintf(limit, sizeof limit, "%d", GK_MAX_DEPTH);
  if (task != SIZE_MAX) append_task(where, sizeof where, 0, task, &read->measures[0].list->tasks[task]);
  bool deep = problem == GKI_LIST_TOO_DEEP;
  const char *const words[] = {deep ? limit : name, deep ? name : what, NULL};
  gki_problem_text(problem, words, text, sizeof text);
  return tell_fault(read->blocks, problem, task, where, text);
}

static uint32_t *index_find(const reader *read, const gk_list *list) {
  size_t at = (size_t)(((uint64_t)(uintptr_t)list * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (read->index_size - 1);
  while (read->index[at] && read->measures[read->index[at] - 1].list != list) at = (at + 1) & (read->index_size - 1);
  return &read->index[at];
}

/* Makes room for one more list, known by its address. */
static bool index_grow(reader *read) {
  if (!gki_grow((void **)&read->measures, &read->measure_capacity, read->measure_count + 1, sizeof *read->measures,
                "reading a task list"))
    return false;
  if (2 * (read->measure_count + 1) <= read->index_size) return true;
  size_t size = read->index_size ? 2 * read->index_size : 16;
  uint32_t *index = gki_array(size, sizeof *index, "reading a task list");
  if (!index) return false;
  gk_host_free(read->index);
  read->index = index;
  read->index_size = size;
  for (size_t k = 0; k < read->measure_count; ++k) *index_find(read, read->measures[k].list) = (uint32_t)k + 1;
  return true;
}

/* The table of slots as places by number. If a number occurs twice, its first place counts. */
static gk_result measure_slots(reader *read, measure *m) {
  const gk_list *list = m->list;
  if (list->slot_count > GKI_MAX_LINES) {
    m->slots = m->places = LIMIT;
    return GK_OK;
  }
  for (size_t k = 0; k < list->slot_count; ++k) {
    gk_slot slot = list->slots[k].slot;
    if (slot > (gk_slot)m->slot_max && slot <= MAX_SLOT) m->slot_max = (uint32_t)slot;
    m->text = sum(m->text, (list->slots[k].name ? strlen(list->slots[k].name) : 0) + 32);
  }
  m->ranks = gki_arena_alloc(&read->blocks->arena, m->slot_max + 1, sizeof *m->ranks);
  if (!m->ranks) return gki_fail_memory("a task list's slots", (m->slot_max + 1) * sizeof *m->ranks);
  for (size_t k = 0; k < list->slot_count; ++k) {
    gk_slot slot = list->slots[k].slot;
    if (slot > 0 && slot <= (gk_slot)m->slot_max && !m->ranks[slot]) m->ranks[slot] = (uint32_t)k + 1;
  }
  m->slots = m->places = list->slot_count;
  return GK_OK;
}

static const char *inclusion_name(const gk_task *at) {
  if (at->name && *at->name) return at->name;
  return at->list->name && *at->list->name ? at->list->name : "list";
}

static gk_result refuse_again(reader *read, const measure *m, uint32_t depth) {
  if (m->open) return refuse(read, GKI_LIST_IN_ITSELF, read->source, m->list, NULL);
  if (depth + m->height > GK_MAX_DEPTH) return refuse(read, GKI_LIST_TOO_DEEP, read->source, m->list, NULL);
  return GK_OK;
}

static void add_included(measure *m, const measure *inner, const gk_task *task) {
  m->lines = sum(m->lines, inner->lines);
  m->inclusions = sum(m->inclusions, inner->inclusions);
  uint32_t given = gki_arg_count(task);
  m->slots = sum(m->slots, inner->slots - (given < task->list->slot_count ? given : task->list->slot_count));
  m->places = sum(m->places, inner->places);
  uint64_t named = sum(inner->slots, inner->inclusions);
  m->text = sum(m->text, sum(inner->text, product(named, strlen(inclusion_name(task)) + 1)));
  if (m->height <= inner->height) m->height = inner->height + 1;
}

static gk_result measure_list(reader *read, const gk_list *list, uint32_t depth, size_t *place);

static gk_result measure_tasks(reader *read, measure *m, uint32_t depth) {
  gk_result result = GK_OK;
  for (size_t k = 0; k < m->list->task_count && m->lines < LIMIT && !result; ++k) {
    const gk_task *task = &m->list->tasks[k];
    size_t at;
    if (!depth) read->source = k;
    if (task->op != GK_OP_LIST) ++m->lines;
    else if (!is_readable(task->list)) m->inclusions = sum(m->inclusions, 1);
    else if (!(result = measure_list(read, task->list, depth + 1, &at))) add_included(m, &read->measures[at], task);
  }
  return result;
}

/* `depth` is the number of enclosing lists. Recursive, and no deeper than GK_MAX_DEPTH. */
static gk_result measure_list(reader *read, const gk_list *list, uint32_t depth, size_t *place) {
  if (!index_grow(read)) return GK_ERROR_MEMORY;
  uint32_t *entry = index_find(read, list);
  if (*entry) {
    *place = *entry - 1;
    return refuse_again(read, &read->measures[*place], depth);
  }
  if (depth > GK_MAX_DEPTH) return refuse(read, GKI_LIST_TOO_DEEP, read->source, list, NULL);
  measure m = {.list = list, .open = true};
  if (list->task_count > GKI_MAX_LINES) m.lines = LIMIT;
  gk_result result = measure_slots(read, &m);
  if (result) return result;
  *place = read->measure_count++;
  *entry = (uint32_t)read->measure_count;
  read->measures[*place] = m;
  m.inclusions = 1;
  result = measure_tasks(read, &m, depth);
  if (result) return result;
  m.open = false;
  read->measures[*place] = m;
  return GK_OK;
}

static gk_result measure_all(reader *read, const gk_list *list) {
  size_t place;
  gk_result result = measure_list(read, list, 0, &place);
  if (result) return result;
  const measure *m = &read->measures[place];
  const char *what = m->lines > GKI_MAX_LINES        ? "2^24 tasks"
                     : m->inclusions > GKI_MAX_LINES ? "2^24 included lists"
                     : m->places > GKI_MAX_LINES     ? "2^24 slots"
                     : m->text > MAX_TEXT            ? "2^28 letters in the names of its slots"
                                                     : NULL;
  if (what) return refuse(read, GKI_LIST_TOO_LONG, SIZE_MAX, list, what);
  return GK_OK;
}

/* ---- writing out ------------------------------------------------------------------------------------------------- */

static char *join(gki_arena *arena, const char *prefix, const char *name) {
  size_t before = strlen(prefix), length = name ? strlen(name) : 0;
  char *text = gki_arena_alloc(arena, before + length + 2, 1);
  if (!text) {
    gki_fail_memory("the names of a list's slots", before + length + 2);
    return NULL;
  }
  memcpy(text, prefix, before);
  if (before) text[before++] = '.';
  if (length) memcpy(text + before, name, length);
  return text;
}

/* The task's slots replace the first slots of the table; the other slots are new. */
static gk_result add_slots(reader *read, uint32_t inclusion) {
  gki_blocks *blocks = read->blocks;
  gki_inclusion *in = &blocks->inclusions[inclusion];
  in->slot_base = read->map_next;
  for (size_t k = 0; k < in->list->slot_count; ++k) {
    const gk_slot_desc *desc = &in->list->slots[k];
    uint32_t *composed = &blocks->slot_map[read->map_next++];
    if (!in->at) {
      if (desc->slot < 1 || desc->slot > MAX_SLOT || in->ranks[desc->slot] != k + 1) continue;
      *composed = (uint32_t)desc->slot;
      blocks->slots[*composed] = *desc;
    } else if (k < in->arg_count) {
      *composed = gki_slot_of(blocks, in->around, in->at->args[k]);
    } else {
      char *name = join(&blocks->arena, in->name, desc->name);
      if (!name) return GK_ERROR_MEMORY;
      *composed = read->slot_next++;
      blocks->slots[*composed] = *desc;
      blocks->slots[*composed].slot = (gk_slot)*composed;
      blocks->slots[*composed].name = name;
    }
  }
  return GK_OK;
}

static gk_result add_inclusion(reader *read, const gk_task *at, uint32_t around, uint32_t source,
                               uint32_t *inclusion) {
  gki_blocks *blocks = read->blocks;
  const gki_inclusion *outer = &blocks->inclusions[around];
  *inclusion = read->inclusion_next++;
  gki_inclusion *in = &blocks->inclusions[*inclusion];
  *in = (gki_inclusion){
      .at = at,
      .name = "",
      .around = around,
      .source = source,
      .index = (uint32_t)(at - outer->list->tasks),
      .begin = blocks->line_count,
      .first = *inclusion,
      .arg_count = gki_arg_count(at),
      .label_offset = outer->label_offset + at->label,
  };
  if (!is_readable(at->list)) return GK_OK;
  measure *m = &read->measures[*index_find(read, at->list) - 1];
  if (!m->first) m->first = *inclusion;
  in->first = m->first;
  in->list = at->list;
  in->ranks = m->ranks;
  in->slot_max = m->slot_max;
  in->name = join(&blocks->arena, outer->name, inclusion_name(at));
  return in->name ? add_slots(read, *inclusion) : GK_ERROR_MEMORY;
}

/* The state while lines are written: the open block, its depth, and the depth at which this list began. */
typedef struct nest {
  uint32_t block, depth, floor;
} nest;

static void add_end(gki_blocks *blocks, nest *open, uint32_t at) {
  gki_line *lines = blocks->lines;
  if (open->depth == open->floor) return;
  uint32_t begin = open->block;
  if (lines[begin].task->op == GK_OP_ELSE) {
    lines[begin].mate = at;
    begin = lines[begin].otherwise;
  }
  lines[begin].mate = at;
  lines[at].mate = begin;
  lines[at].parent = open->block = lines[begin].parent;
  --open->depth;
}

static void add_else(gki_blocks *blocks, nest *open, uint32_t at) {
  gki_line *lines = blocks->lines;
  if (open->depth == open->floor || lines[open->block].task->op != GK_OP_IF) return;
  lines[at].otherwise = open->block;
  lines[open->block].otherwise = at;
  open->block = at;
}

static void add_line(gki_blocks *blocks, nest *open, const gk_task *task, uint32_t inclusion, uint32_t source) {
  uint32_t at = blocks->line_count++;
  blocks->lines[at] = (gki_line){task, inclusion, source, open->block, GKI_NONE, GKI_NONE};
  if (task->op == GK_OP_END) {
    add_end(blocks, open, at);
  } else if (task->op == GK_OP_ELSE) {
    add_else(blocks, open, at);
  } else if (gki_op_opens(task->op)) {
    open->block = at;
    if (++open->depth > blocks->max_depth) blocks->max_depth = open->depth;
  }
}

/* Recursive, and no deeper than GK_MAX_DEPTH: measuring has checked this. */
static gk_result add_lines(reader *read, uint32_t inclusion, nest open) {
  gki_blocks *blocks = read->blocks;
  const gk_list *list = blocks->inclusions[inclusion].list;
  for (size_t k = 0; k < list->task_count; ++k) {
    const gk_task *task = &list->tasks[k];
    uint32_t source = inclusion ? blocks->inclusions[inclusion].source : (uint32_t)k, inner;
    if (task->op != GK_OP_LIST) {
      add_line(blocks, &open, task, inclusion, source);
      continue;
    }
    gk_result result = add_inclusion(read, task, inclusion, source, &inner);
    if (!result && blocks->inclusions[inner].list)
      result = add_lines(read, inner, (nest){open.block, open.depth, open.depth});
    if (result) return result;
  }
  return GK_OK;
}

static gk_result write_out(reader *read, const gk_list *list) {
  gki_blocks *blocks = read->blocks;
  const measure *m = &read->measures[0];
  size_t slots = (size_t)m->slots + m->slot_max + 1;
  blocks->lines = gki_arena_alloc(&blocks->arena, (size_t)m->lines, sizeof *blocks->lines);
  blocks->inclusions = gki_arena_alloc(&blocks->arena, (size_t)m->inclusions, sizeof *blocks->inclusions);
  blocks->slot_map = gki_arena_alloc(&blocks->arena, (size_t)m->places, sizeof *blocks->slot_map);
  blocks->slots = gki_arena_alloc(&blocks->arena, slots - list->slot_count, sizeof *blocks->slots);
  if (!blocks->lines || !blocks->inclusions || !blocks->slot_map || !blocks->slots)
    return gki_fail_memory("a task list with its included lists",
                           (size_t)m->lines * sizeof *blocks->lines +
                               (size_t)m->inclusions * sizeof *blocks->inclusions +
                               slots * (sizeof *blocks->slot_map + sizeof *blocks->slots));
  read->slot_next = m->slot_max + 1;
  read->inclusion_next = 1;
  blocks->inclusions[0] =
      (gki_inclusion){.list = list, .name = "", .ranks = m->ranks, .slot_max = m->slot_max, .source = GKI_NONE};
  gk_result result = add_slots(read, 0);
  if (!result) result = add_lines(read, 0, (nest){GKI_NONE, 0, 0});
  blocks->inclusion_count = read->inclusion_next;
  blocks->slot_count = read->slot_next;
  return result;
}

gk_result gki_blocks_read(gki_blocks *blocks, const gk_list *list) {
  *blocks = (gki_blocks){.fault_task = SIZE_MAX};
  gki_problem problem;
  char text[512];
  if (gki_list_is_broken(list, &problem, text, sizeof text)) return tell_fault(blocks, problem, SIZE_MAX, "", text);
  reader read = {.blocks = blocks};
  gk_result result = measure_all(&read, list);
  if (!result) result = write_out(&read, list);
  gk_host_free(read.measures);
  gk_host_free(read.index);
  if (result) {
    gki_arena_free(&blocks->arena);
    blocks->lines = NULL;
    blocks->line_count = blocks->inclusion_count = blocks->slot_count = 0;
  }
  return result;
}

void gki_blocks_free(gki_blocks *blocks) {
  gki_arena_free(&blocks->arena);
  *blocks = (gki_blocks){.fault_task = SIZE_MAX};
}

bool gki_slot_is_known(const gki_blocks *blocks, uint32_t inclusion, gk_slot slot) {
  const gki_inclusion *in = &blocks->inclusions[inclusion];
  return slot > 0 && (uint32_t)slot <= in->slot_max && in->ranks[slot];
}

uint32_t gki_slot_of(const gki_blocks *blocks, uint32_t inclusion, gk_slot slot) {
  const gki_inclusion *in = &blocks->inclusions[inclusion];
  if (!gki_slot_is_known(blocks, inclusion, slot)) return 0;
  return blocks->slot_map[in->slot_base + in->ranks[slot] - 1];
}

int64_t gki_label_of(const gki_blocks *blocks, uint32_t line) {
  const gki_line *at = &blocks->lines[line];
  switch (at->task->op) {
  case GK_OP_CHECKPOINT: case GK_OP_DO_WHILE: case GK_OP_WHILE:
    return at->task->label ? at->task->label + blocks->inclusions[at->inclusion].label_offset : 0;
  default: return 0;
  }
}
