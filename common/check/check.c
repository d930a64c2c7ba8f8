#include "check/check.h"
#include "base/error.h"
#include "base/name.h"
#include "base/registry.h"
#include "base/table.h"
#include "check/kernel.h"
#include "check/races.h"
#include "check/slots.h"
#include "check/task.h"
#include "check/warn.h"
#include "list/line_name.h"
#include <stdio.h>
#include <string.h>

/* ---- structure --------------------------------------------------------------------------------------------------- */

/* A walk through the lines, with the open blocks at the current one. */
typedef struct walk {
  gki_checker checker;
  gki_races races;
  uint32_t block;        /* line of the innermost open block; behind an ELSE, the ELSE */
  uint32_t depth;
  uint32_t checkpoint;   /* the outermost open CHECKPOINT, GK_NONE: none */
  uint32_t parallel;     /* the outermost open PARALLEL, likewise */
  uint32_t section;      /* the outermost open SECTION, likewise; a wrong list may have one without a PARALLEL */
  uint32_t next_inclusion;
  gki_table labels;      /* the first line with a label */
} walk;

static const gk_task *task_at(const walk *w, uint32_t line) { return w->checker.blocks->lines[line].task; }

static gk_op op_at(const walk *w, uint32_t line) { return line == GK_NONE ? GK_OP_NONE : task_at(w, line)->op; }

static void leave_block(walk *w) {
  uint32_t line = w->block;
  gk_op op = op_at(w, line);
  w->block = w->checker.blocks->lines[line].parent;
  if (op != GK_OP_ELSE) --w->depth;
  if (op == GK_OP_PARALLEL) gki_races_leave(&w->races);
  if (w->checkpoint == line) w->checkpoint = GK_NONE;
  if (w->parallel == line) w->parallel = GK_NONE;
  if (w->section == line) w->section = GK_NONE;
}

static void enter_block(walk *w, uint32_t line) {
  gk_op op = op_at(w, line);
  w->block = line;
  if (op != GK_OP_ELSE && ++w->depth == GK_MAX_DEPTH + 1)
    gki_report(&w->checker, GKI_BLOCKS_TOO_DEEP, gki_format_int(&w->checker, GK_MAX_DEPTH), NULL);
  if (op == GK_OP_PARALLEL) gki_races_enter(&w->races, line);
  if (op == GK_OP_SECTION && op_at(w, w->checker.blocks->lines[line].parent) == GK_OP_PARALLEL)
    gki_races_section(&w->races, line);
  if (op == GK_OP_CHECKPOINT && w->checkpoint == GK_NONE) w->checkpoint = line;
  if (op == GK_OP_PARALLEL && w->parallel == GK_NONE) w->parallel = line;
  if (op == GK_OP_SECTION && w->section == GK_NONE) w->section = line;
}

/* The only block that an op may be in, and the only op that a block may hold, with the problem otherwise. */
typedef struct nesting_rule { gk_op op; gki_problem problem; } nesting_rule;
static const nesting_rule parents[GK_OP_END + 1] = {
    [GK_OP_CASE] = {GK_OP_SWITCH, GKI_CASE_OUTSIDE_SWITCH},
    [GK_OP_SECTION] = {GK_OP_PARALLEL, GKI_SECTION_OUTSIDE_PARALLEL},
};
static const nesting_rule children[GK_OP_END + 1] = {
    [GK_OP_SWITCH] = {GK_OP_CASE, GKI_TASK_IN_SWITCH},
    [GK_OP_PARALLEL] = {GK_OP_SECTION, GKI_TASK_IN_PARALLEL},
};

static void check_else(gki_checker *c, const gki_line *at, gk_op around) {
  if (at->otherwise != GK_NONE) return;
  if (around == GK_OP_ELSE) gki_report(c, GKI_ELSE_TWICE, gki_format_line(c, at->parent), NULL);
  else gki_report(c, GKI_ELSE_WITHOUT_IF, NULL);
}

static void check_checkpoint(walk *w) {
  gki_checker *c = &w->checker;
  if (w->checkpoint != GK_NONE)
    gki_report(c, GKI_CHECKPOINT_IN_CHECKPOINT, gki_format_line(c, w->checkpoint), NULL);
  const uint32_t section = w->parallel != GK_NONE ? w->parallel : w->section;
  if (section != GK_NONE) gki_report(c, GKI_CHECKPOINT_IN_SECTION, gki_format_line(c, section), NULL);
}

static void check_yield(walk *w) {
  gki_checker *c = &w->checker;
  if (w->checkpoint != GK_NONE) gki_report(c, GKI_YIELD_IN_CHECKPOINT, gki_format_line(c, w->checkpoint), NULL);
  const uint32_t section = w->parallel != GK_NONE ? w->parallel : w->section;
  if (section != GK_NONE) gki_report(c, GKI_YIELD_IN_SECTION, gki_format_line(c, section), NULL);
}

static void check_place(walk *w, uint32_t line) {
  gki_checker *c = &w->checker;
  const gki_line *at = &c->blocks->lines[line];
  const gk_op op = at->task->op, around = op_at(w, at->parent);
  if (op == GK_OP_END && at->mate == GK_NONE) gki_report(c, GKI_END_WITHOUT_BLOCK, NULL);
  if (op == GK_OP_ELSE) check_else(c, at, around);
  if (op == GK_OP_END || op == GK_OP_ELSE) return;
  if (op == GK_OP_NONE || !gki_op_name(op)) return; /* gki_check_task reports it */
  const nesting_rule parent = parents[op], child = children[around];
  if (parent.op && around != parent.op) gki_report(c, parent.problem, NULL);
  if (child.op && op != child.op) gki_report(c, child.problem, gki_format_line(c, at->parent), NULL);
  if (gki_op_opens(op) && at->mate == GK_NONE) gki_report(c, GKI_END_MISSING, NULL);
  if (op == GK_OP_CHECKPOINT) check_checkpoint(w);
  if (op == GK_OP_YIELD) check_yield(w);
}

static void check_always(walk *w, uint32_t line) {
  gki_checker *c = &w->checker;
  const gki_line *at = &c->blocks->lines[line];
  gk_op op = at->task->op;
  if (!(at->task->bits & GK_ALWAYS) || op == GK_OP_NONE || !gki_op_name(op)) return;
  if (!gki_op_is_task(op)) gki_report(c, GKI_ALWAYS_ON_BLOCK, gki_op_name(op), NULL);
  else if (at->parent != GK_NONE) gki_report(c, GKI_ALWAYS_IN_BLOCK, gki_format_line(c, at->parent), NULL);
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

static gk_result make_room_for_labels(walk *w) {
  size_t count = 0;
  for (uint32_t k = 0; k < w->checker.blocks->line_count; ++k) count += gki_has_label(task_at(w, k));
  return gki_table_grow(&w->labels, count, "checking labels") ? GK_OK : GK_ERROR_MEMORY;
}

static void check_label(walk *w, uint32_t line) {
  gki_checker *c = &w->checker;
  const gk_task *task = task_at(w, line);
  if (gki_op_is_target(task->op) && !task->label)
    gki_report(c, GKI_LABEL_MISSING, task->op == GK_OP_YIELD ? "yield" : "checkpoint", NULL);
  if (!gki_has_label(task)) return;
  int64_t label = gki_label_of(c->blocks, line);
  if (!label) gki_report(c, GKI_LABEL_ZERO, gki_format_int(c, task->label), NULL);
  if (label < INT32_MIN || label > INT32_MAX) gki_report(c, GKI_LABEL_RANGE, gki_format_int(c, label), NULL);
  if (!label) return;
  const gki_entry *first = gki_table_find(&w->labels, (uint64_t)label);
  if (!first->key) gki_table_add(&w->labels, (uint64_t)label, line);
  else gki_report(c, GKI_LABEL_REUSED, gki_format_int(c, label), gki_format_line(c, (uint32_t)first->value), NULL);
}

/* ---- races ------------------------------------------------------------------------------------------------------- */

static gk_result check_races(walk *w, uint32_t line) {
  gki_checker *c = &w->checker;
  gki_touch touches[GKI_MAX_TOUCHES];
  gki_clash clashes[GK_MAX_DEPTH];
  uint32_t clash_count, count = gki_touches_of_line(c->blocks, line, touches);
  for (uint32_t k = 0; k < count; ++k) {
    if (!gki_races_touch(&w->races, touches[k], line, clashes, &clash_count)) return GK_ERROR_MEMORY;
    for (uint32_t j = 0; j < clash_count; ++j) {
      char parallel[GKI_TEXT_BYTES];
      gki_line_name(c->blocks, clashes[j].parallel, parallel, sizeof parallel);
      const gk_slot_desc *slot = &c->blocks->slots[touches[k].slot];
      gki_report(c, GKI_RACE, gki_touch_name(touches[k].kind), gki_format_desc(c, slot),
                 gki_format_line(c, clashes[j].task), gki_touch_name(clashes[j].kind), parallel, NULL);
    }
  }
  return GK_OK;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* Checks the LIST tasks before a line, and their lists' tables, each table once. */
static gk_result check_inclusions(walk *w, uint32_t line) {
  gki_checker *c = &w->checker;
  const gki_blocks *blocks = c->blocks;
  gk_result result = GK_OK;
  for (; w->next_inclusion < blocks->inclusion_count && !result; ++w->next_inclusion) {
    uint32_t inclusion = w->next_inclusion;
    if (blocks->inclusions[inclusion].begin > line) break;
    const gki_inclusion *in = &blocks->inclusions[inclusion];
    c->line = GK_NONE;
    c->named = inclusion;
    c->inclusion = in->around;
    gki_check_task(c, in->at);
    if (in->at->bits & GK_ALWAYS) gki_report(c, GKI_ALWAYS_ON_BLOCK, gki_op_name(GK_OP_LIST), NULL);
    if (in->list && in->first == inclusion) result = gki_check_slots(c, inclusion);
  }
  return result;
}

static gk_result check_line(walk *w, uint32_t line) {
  gki_checker *c = &w->checker;
  const gki_line *at = &c->blocks->lines[line];
  gk_result result = check_inclusions(w, line);
  if (result) return result;
  while (w->block != at->parent) leave_block(w);
  c->line = line;
  c->inclusion = at->inclusion;
  check_place(w, line);
  check_always(w, line);
  gki_check_task(c, at->task);
  gki_check_passes(c, at->task);
  check_label(w, line);
  if (w->races.depth) result = check_races(w, line);
  if (gki_op_opens(at->task->op) || at->otherwise != GK_NONE) enter_block(w, line);
  return result;
}

/* Replaces the message of a problem, since the check itself has failed. */
static gk_result stopped_for_memory(void) {
  gki_begin();
  return gk_fail(GK_ERROR_MEMORY, "out of host memory amid the problems of a list; free some and call again");
}

gk_result gki_check(const gki_blocks *blocks, const gk_backend *backend, gk_report report, void *user) {
  walk w = {
      .checker = {.blocks = blocks, .backend = backend, .report = report, .user = user, .line = GK_NONE},
      .block = GK_NONE,
      .checkpoint = GK_NONE,
      .parallel = GK_NONE,
      .section = GK_NONE,
      .next_inclusion = 1,
  };
  gk_result result = gki_check_slots(&w.checker, 0);
  if (!result) result = make_room_for_labels(&w);
  if (!result) {
    w.races.tops = gki_array(blocks->slot_count, sizeof *w.races.tops, "finding races between sections");
    if (!w.races.tops) result = GK_ERROR_MEMORY;
  }
  for (uint32_t line = 0; line < blocks->line_count && !result && !gki_check_is_done(&w.checker); ++line)
    result = check_line(&w, line);
  if (!result) result = check_inclusions(&w, blocks->line_count);
  gki_races_free(&w.races);
  gk_host_free(w.labels.entries);
  if (!result && !w.checker.problem_count) result = gki_check_warn(&w.checker);
  if (result == GK_ERROR_MEMORY && w.checker.problem_count) return stopped_for_memory();
  return result ? result : w.checker.problem_count ? GK_ERROR_INVALID : GK_OK;
}

/* ---- the public calls -------------------------------------------------------------------------------------------- */

void gk_print(void *file, const gk_problem *problem) {
  fprintf(file ? file : stderr, "%s%s: %s\n", problem->is_warning ? "warning: " : "", problem->code, problem->message);
}

/* A problem of the list as a whole. `message` is already this thread's. */
static void report_fault(gk_report report, void *user, gki_problem problem, size_t task, const char *message) {
  if (report) report(user, &(gk_problem){.code = gki_problem_code(problem), .message = message, .task = task});
}

static gk_result find_backend(const char *name, const gk_backend **backend, gk_report report, void *user) {
  char known[512] = "none", text[1024];
  size_t used = 0;
  for (size_t k = 0; (*backend = gk_backend_at(k)); ++k) {
    if (strcmp((*backend)->name, name) == 0) return GK_OK;
    if (used >= sizeof known) continue;
    int length = snprintf(known + used, sizeof known - used, "%s\"%s\"", used ? ", " : "", (*backend)->name);
    used += length > 0 ? (size_t)length : 0;
  }
  char shown[128];
  snprintf(shown, sizeof shown, "%.100s", name);
  gki_problem problem = gki_backend_is_planned(name) ? GKI_BACKEND_NOT_BUILT : GKI_BACKEND_UNKNOWN;
  gki_problem_text(problem, (const char *const[]){shown, known, NULL}, text, sizeof text);
  gk_fail(GK_ERROR_INVALID, "%s", text);
  report_fault(report, user, problem, SIZE_MAX, text);
  return GK_ERROR_INVALID;
}

gk_result gk_check(const gk_list *list, const char *backend, gk_report report, void *user) {
  gki_begin();
  gki_blocks blocks = {0};
  const gk_backend *found = NULL;
  gk_result first = backend ? find_backend(backend, &found, report, user) : GK_OK;
  gk_result result = gki_blocks_read(&blocks, list);
  if (result == GK_ERROR_INVALID) report_fault(report, user, blocks.fault, blocks.fault_task, blocks.fault_message);
  if (!result) result = gki_check(&blocks, found, report, user);
  gki_blocks_free(&blocks);
  if (result == GK_ERROR_MEMORY && first) return stopped_for_memory();
  return result ? result : first;
}
