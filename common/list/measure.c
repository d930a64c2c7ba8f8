#include "list/measure.h"
#include "base/error.h"
#include "list/line_name.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TEXT = 1 << 28 }; /* bytes of all composed names; names that people write are far shorter */
#define LIMIT (UINT64_C(1) << 40)

typedef struct pass {
  gki_measures *measures;
  gki_blocks *blocks; /* gets the fault, and its arena the ranks */
  size_t source;      /* the current task of the user's list */
} pass;

/* ---- faults ------------------------------------------------------------------------------------------------------ */

bool gki_list_is_broken(const gk_list *list, gki_problem *problem, char *text, size_t bytes) {
  char name[GKI_NAME_SHOWN + 1], a[24], b[24];
  if (gki_list_is_readable(list)) return false;
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

static gk_result fail_with(gki_blocks *blocks, gki_problem problem, size_t task, const char *where, const char *text) {
  blocks->fault = problem;
  blocks->fault_task = task;
  snprintf(blocks->fault_message, sizeof blocks->fault_message, "%s%s%s", where, *where ? ": " : "", text);
  return gk_fail(GK_ERROR_INVALID, "%s", blocks->fault_message);
}

/* The text of GKI_LIST_TOO_DEEP contains the limit, then the list's name. Other texts contain the name, then `what`. */
static gk_result refuse(pass *p, gki_problem problem, size_t task, const gk_list *list, const char *what) {
  char where[160] = "", text[512], name[GKI_NAME_SHOWN + 1], limit[12];
  snprintf(name, sizeof name, "%s", gki_list_name(list));
  snprintf(limit, sizeof limit, "%d", GK_MAX_DEPTH);
  if (task != SIZE_MAX) gki_task_name_append(where, sizeof where, 0, task, &p->measures->all[0].list->tasks[task]);
  bool deep = problem == GKI_LIST_TOO_DEEP;
  const char *const words[] = {deep ? limit : name, deep ? name : what, NULL};
  gki_problem_text(problem, words, text, sizeof text);
  return fail_with(p->blocks, problem, task, where, text);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static uint64_t sum(uint64_t a, uint64_t b) { return a + b < LIMIT ? a + b : LIMIT; }
static uint64_t product(uint64_t a, uint64_t b) { return a && b > LIMIT / a ? LIMIT : sum(a * b, 0); }

/* The table of slots as places by number. If a number occurs twice, its first place counts. */
static gk_result measure_slots(pass *p, gki_measure *m) {
  const gk_list *list = m->list;
  if (list->slot_count > GKI_MAX_LINES) {
    m->slots = m->places = LIMIT;
    return GK_OK;
  }
  for (size_t k = 0; k < list->slot_count; ++k) {
    gk_slot slot = list->slots[k].slot;
    if (slot > (gk_slot)m->slot_max && slot <= GKI_MAX_SLOT) m->slot_max = (uint32_t)slot;
    m->text = sum(m->text, (list->slots[k].name ? strlen(list->slots[k].name) : 0) + 32);
    p->blocks->has_passes |= (list->slots[k].bits & GK_IS_PASS) != 0;
  }
  m->ranks = gki_arena_alloc(&p->blocks->arena, m->slot_max + 1, sizeof *m->ranks);
  if (!m->ranks) return gki_fail_memory("a task list's slots", (m->slot_max + 1) * sizeof *m->ranks);
  for (size_t k = 0; k < list->slot_count; ++k) {
    gk_slot slot = list->slots[k].slot;
    if (slot > 0 && slot <= (gk_slot)m->slot_max && !m->ranks[slot]) m->ranks[slot] = (uint32_t)k + 1;
  }
  m->slots = m->places = list->slot_count;
  return GK_OK;
}

const char *gki_inclusion_prefix(const gk_task *at) {
  if (at->name && *at->name) return at->name;
  return at->list->name && *at->list->name ? at->list->name : "list";
}

static gk_result refuse_again(pass *p, const gki_measure *m, uint32_t depth) {
  if (m->open) return refuse(p, GKI_LIST_IN_ITSELF, p->source, m->list, NULL);
  if (depth + m->height > GK_MAX_DEPTH) return refuse(p, GKI_LIST_TOO_DEEP, p->source, m->list, NULL);
  return GK_OK;
}

static void add_included(gki_measure *m, const gki_measure *inner, const gk_task *task) {
  m->lines = sum(m->lines, inner->lines);
  m->inclusions = sum(m->inclusions, inner->inclusions);
  uint32_t given = gki_arg_count(task);
  m->slots = sum(m->slots, inner->slots - (given < task->list->slot_count ? given : task->list->slot_count));
  m->places = sum(m->places, inner->places);
  uint64_t named = sum(inner->slots, inner->inclusions);
  m->text = sum(m->text, sum(inner->text, product(named, strlen(gki_inclusion_prefix(task)) + 1)));
  if (m->height <= inner->height) m->height = inner->height + 1;
}

static gk_result add_constant(pass *p, gk_type type, gk_slot items) {
  gki_table *constants = &p->blocks->constants;
  const uint64_t key = gki_constant_key(type, items);
  if (!key) return GK_OK;
  if (!gki_table_grow(constants, 1, "reading a task list")) return GK_ERROR_MEMORY;
  if (!gki_table_find(constants, key)->key) gki_table_add(constants, key, constants->count);
  return GK_OK;
}

/* Notes the task's constants. Those given to an included list have the types of its slots. */
static gk_result measure_constants(pass *p, const gk_task *task) {
  gk_result result = GK_OK;
  if (task->op != GK_OP_LIST)
    for (uint32_t k = 0; k < 3 && !result; ++k) result = add_constant(p, GK_I32, task->items[k]);
  else if (gki_list_is_readable(task->list))
    for (uint32_t k = 0, count = gki_arg_count(task); k < count && k < task->list->slot_count && !result; ++k)
      result = add_constant(p, task->list->slots[k].type, task->args[k]);
  return result;
}

static gk_result measure_list(pass *p, const gk_list *list, uint32_t depth, size_t *place);

static gk_result measure_tasks(pass *p, gki_measure *m, uint32_t depth) {
  gk_result result = GK_OK;
  for (size_t k = 0; k < m->list->task_count && m->lines < LIMIT && !result; ++k) {
    const gk_task *task = &m->list->tasks[k];
    size_t at;
    if (!depth) p->source = k;
    if ((result = measure_constants(p, task))) break;
    if (task->op != GK_OP_LIST) ++m->lines;
    else if (!gki_list_is_readable(task->list)) m->inclusions = sum(m->inclusions, 1);
    else if (!(result = measure_list(p, task->list, depth + 1, &at))) add_included(m, &p->measures->all[at], task);
  }
  return result;
}

/* `depth` is the number of enclosing lists. Recursive, and no deeper than GK_MAX_DEPTH. */
static gk_result measure_list(pass *p, const gk_list *list, uint32_t depth, size_t *place) {
  gki_measures *measures = p->measures;
  static const char what[] = "reading a task list";
  if (!gki_grow((void **)&measures->all, &measures->capacity, measures->count + 1, sizeof *measures->all, what) ||
      !gki_table_grow(&measures->places, 1, what))
    return GK_ERROR_MEMORY;
  const gki_entry *entry = gki_table_find(&measures->places, (uintptr_t)list);
  if (entry->key) {
    *place = entry->value;
    return refuse_again(p, &measures->all[*place], depth);
  }
  if (depth > GK_MAX_DEPTH) return refuse(p, GKI_LIST_TOO_DEEP, p->source, list, NULL);
  gki_measure m = {.list = list, .open = true};
  if (list->task_count > GKI_MAX_LINES) m.lines = LIMIT;
  gk_result result = measure_slots(p, &m);
  if (result) return result;
  *place = measures->count++;
  gki_table_add(&measures->places, (uintptr_t)list, *place);
  measures->all[*place] = m;
  m.inclusions = 1;
  result = measure_tasks(p, &m, depth);
  if (result) return result;
  m.open = false;
  measures->all[*place] = m;
  return GK_OK;
}

gk_result gki_measure_list(gki_measures *measures, gki_blocks *blocks, const gk_list *list) {
  gki_problem problem;
  char text[512];
  if (gki_list_is_broken(list, &problem, text, sizeof text)) return fail_with(blocks, problem, SIZE_MAX, "", text);
  pass p = {.measures = measures, .blocks = blocks};
  size_t place;
  gk_result result = measure_list(&p, list, 0, &place);
  if (result) return result;
  const gki_measure *m = &measures->all[place];
  const char *what = m->lines > GKI_MAX_LINES        ? "2^24 tasks"
                     : m->inclusions > GKI_MAX_LINES ? "2^24 included lists"
                     : m->places > GKI_MAX_LINES     ? "2^24 slots"
                     : m->text > MAX_TEXT            ? "2^28 letters in the names of its slots"
                                                     : NULL;
  return what ? refuse(&p, GKI_LIST_TOO_LONG, SIZE_MAX, list, what) : GK_OK;
}

gki_measure *gki_measure_of(const gki_measures *measures, const gk_list *list) {
  return &measures->all[gki_table_find(&measures->places, (uintptr_t)list)->value];
}

void gki_measures_free(gki_measures *measures) {
  gk_host_free(measures->all);
  gk_host_free(measures->places.entries);
}
