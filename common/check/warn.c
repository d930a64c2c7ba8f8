/* Warnings are about what is surely not meant: each rule leaves out the lists in which the task may be right. */
#include "check/warn.h"
#include "base/error.h"
#include "base/op.h"
#include "kernel/source.h"
#include "list/touches.h"
#include <string.h>

/* ---- kernels' text ----------------------------------------------------------------------------------------------- */

/* The body of a kernel between its braces; false: its text isn't known, or macros hide it. */
static bool find_body(const gk_kernel *kernel, const char **s, const char **end) {
  const gk_source *source = kernel->source;
  if (!source || !source->text || gki_source_of_other(source)) return false;
  *s = gki_source_region(source, end);
  for (;;) {
    gki_token token = gki_next_token(*s, *end);
    if (token.kind == GKI_END) return false;
    *s = token.end;
    if (!gki_is_kernel_word(token)) continue;
    const char *open = gki_next_token(*s, *end).at, *behind = gki_group_end(open, *end);
    token = gki_next_token(open + (open < *end), *end);
    *s = behind;
    if (!gki_token_is(token, kernel->name)) continue;
    token = gki_next_token(behind, *end);
    if (!gki_token_is(token, "{")) return false;
    *end = gki_group_end(token.at, *end) - 1;
    *s = token.end;
    return *s <= *end; /* the text may end behind the brace */
  }
}

/* Behind the indices and members that follow a name. */
static gki_token behind_element(const char *s, const char *end) {
  gki_token token = gki_next_token(s, end);
  for (;;) {
    if (gki_token_is(token, "[")) token = gki_next_token(gki_group_end(token.at, end), end);
    else if (gki_token_is(token, ".")) token = gki_next_token(gki_next_token(token.end, end).end, end);
    else return token;
  }
}

static bool is_one_of(gki_token token, const char *const *signs, size_t count) {
  size_t k = 0;
  while (k < count && !gki_token_is(token, signs[k])) ++k;
  return k < count;
}

/* Whether the kernel adds to an element of this parameter, or multiplies it, in every call: by a statement that no
 * condition stands before, and without having set an element. */
static bool changes_by_itself(const gk_kernel *kernel, const char *param) {
  static const char *const changes[] = {"+=", "-=", "*=", "/=", "^=", "++", "--"}, *const begins[] = {"{", ";", "}"},
                    *const steps[] = {"++", "--"}, *const opening[] = {"(", "{"}, *const closing[] = {")", "}"};
  const char *s, *end;
  int depth = 0;
  bool begun = true, stepped = false; /* the token is a statement's first, or behind its first ++ or -- */
  if (!param || !find_body(kernel, &s, &end)) return false;
  for (gki_token token; (token = gki_next_token(s, end)).kind != GKI_END;) {
    s = token.end;
    if (gki_token_in(token, " return goto ") || gki_token_is(token, "#")) return false;
    depth += is_one_of(token, opening, GK_COUNT(opening)) - is_one_of(token, closing, GK_COUNT(closing));
    if (gki_token_is(token, param) && gki_token_is(gki_next_token(s, end), "[")) {
      const gki_token then = behind_element(s, end);
      if (gki_token_is(then, "=")) return false;
      if (!depth && (stepped || (begun && is_one_of(then, changes, GK_COUNT(changes))))) return true;
    }
    stepped = begun && is_one_of(token, steps, GK_COUNT(steps));
    begun = is_one_of(token, begins, GK_COUNT(begins));
  }
  return false;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* A slot's last write, and its writes in the checkpoint's block that is looked at. */
typedef struct slot_state {
  uint32_t written;    /* the last line that writes it, from 1; 0: none */
  uint32_t checkpoint; /* the CHECKPOINT's line, from 1, to which `writer` belongs */
  uint32_t writer;     /* the line in its block that writes the slot; GK_NONE: several */
} slot_state;

typedef struct walk {
  gki_checker *checker;
  slot_state *slots;
  uint32_t call, yield; /* the last CALL, and the last line that may yield, from 1 */
} walk;

static const gk_task *set_line(walk *w, uint32_t line) {
  const gki_line *at = &w->checker->blocks->lines[line];
  w->checker->line = line;
  w->checker->inclusion = at->inclusion;
  return at->task;
}

/* The host may change the flag at a yield, and a CALL may reach it by an address of its own. */
static void warn_of_flag(walk *w, uint32_t line) {
  gki_checker *c = w->checker;
  const gk_task *task = set_line(w, line);
  const slot_state *flag = &w->slots[gki_slot_of(c->blocks, c->inclusion, task->flag)];
  if (task->max_iterations || flag->written > line + 1 || w->call > line + 1 || w->yield > line + 1) return;
  const char *passes = task->op == GK_OP_WHILE ? "no pass or never ends"
                       : task->every > 1       ? ".every passes or never ends" : "one pass or never ends";
  gki_report(c, GKI_FLAG_UNWRITTEN, gki_format_slot(c, task->flag), passes, NULL);
}

/* The check doesn't know whether the graph will be host-gated. gk_graph_create does, and asks for no report. */
static void warn_of_call_host(gki_checker *c) {
  const bool decides_on_device = c->backend && c->backend->wait;
  if (c->report && decides_on_device) gki_report(c, GKI_CALL_HOST_NATIVE, c->backend->name, NULL);
}

/* A device reads the count in each of its groups of items. A sum is written when the last one has ended. */
static void warn_of_count(gki_checker *c, const gk_task *task) {
  for (uint32_t k = 0; k < 3; ++k) {
    if (task->items[k] <= 0) continue;
    const uint32_t slot = gki_slot_of(c->blocks, c->inclusion, task->items[k]);
    for (uint32_t j = 0; j < gki_arg_count(task); ++j) {
      const gk_param *param = task->op == GK_OP_KERNEL ? &task->kernel->params[j] : NULL;
      if (gki_slot_of(c->blocks, c->inclusion, task->args[j]) != slot) continue;
      if (param ? param->access <= GK_ACCESS_IN || param->access == GK_ACCESS_SUM : j > 0) continue;
      gki_report(c, GKI_COUNT_OVERWRITTEN, gki_format_slot(c, task->items[k]),
                 gki_format_name(c, param ? param->name : "to"), NULL);
      return;
    }
  }
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static void note_writers(walk *w, uint32_t begin, uint32_t end) {
  gki_touch touches[GKI_MAX_TOUCHES];
  for (uint32_t line = begin + 1; line < end; ++line)
    for (uint32_t k = gki_touches_of_line(w->checker->blocks, line, touches); k--;) {
      slot_state *slot = &w->slots[touches[k].slot];
      if (touches[k].kind == GKI_READS) continue;
      slot->writer = slot->checkpoint != begin + 1 || slot->writer == line ? line : GK_NONE;
      slot->checkpoint = begin + 1;
    }
}

/* Whether a second run may do less: it reads its count on the device, the flag, or what the block wrote. */
static bool may_hold_back(walk *w, uint32_t begin, uint32_t line, uint32_t flag) {
  gki_touch touches[GKI_MAX_TOUCHES];
  const gki_blocks *blocks = w->checker->blocks;
  const gk_task *task = blocks->lines[line].task;
  for (uint32_t k = gki_touches_of_line(blocks, line, touches); k--;) {
    const slot_state *slot = &w->slots[touches[k].slot];
    if (touches[k].slot == flag || (slot->checkpoint == begin + 1 && slot->writer != line)) return true;
  }
  for (uint32_t k = 0; k < 3; ++k)
    if (task->items[k] > 0 && gki_desc_of(w->checker, task->items[k])->type == GK_PTR) return true;
  return false;
}

static void warn_of_task(walk *w, uint32_t begin, uint32_t line, uint32_t flag) {
  gki_checker *c = w->checker;
  const gk_task *task = set_line(w, line);
  if (task->op != GK_OP_KERNEL || may_hold_back(w, begin, line, flag)) return;
  for (uint32_t k = 0; k < task->kernel->param_count; ++k) {
    const gk_param *param = &task->kernel->params[k];
    if (param->access != GK_ACCESS_SUM &&
        (param->access != GK_ACCESS_INOUT || !changes_by_itself(task->kernel, param->name)))
      continue;
    gki_report(c, GKI_APPLIED_TWICE, gki_format_name(c, param->name), gki_format_slot(c, task->args[k]),
               gki_format_line(c, begin), NULL);
    return;
  }
}

/* Tasks in branches and loops are left out, as they may not run again, or go on where they were. */
static void warn_of_checkpoint(walk *w, uint32_t begin, uint32_t end) {
  const gki_blocks *blocks = w->checker->blocks;
  const gki_line *lines = blocks->lines;
  const uint32_t flag = gki_slot_of(blocks, lines[begin].inclusion, lines[begin].task->flag);
  if (!flag || w->call > begin + 1) return;
  note_writers(w, begin, end);
  for (uint32_t line = begin + 1; line < end; ++line) {
    const gk_op op = lines[line].task->op;
    if (op == GK_OP_IF || op == GK_OP_SWITCH || gki_op_is_loop(op)) line = lines[line].mate;
    else warn_of_task(w, begin, line, flag);
  }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void visit(walk *w, uint32_t line) {
  gki_touch touches[GKI_MAX_TOUCHES];
  const gki_blocks *blocks = w->checker->blocks;
  const gk_task *task = set_line(w, line);
  for (uint32_t k = gki_touches_of_line(blocks, line, touches); k--;)
    if (touches[k].kind != GKI_READS) w->slots[touches[k].slot].written = line + 1;
  if (gki_op_is_call(task->op)) w->call = line + 1;
  if (task->op == GK_OP_CALL_HOST) warn_of_call_host(w->checker);
  if (task->op == GK_OP_YIELD || (task->op == GK_OP_CHECKPOINT && task->flag)) w->yield = line + 1;
  if (task->op == GK_OP_KERNEL || task->op == GK_OP_COPY || task->op == GK_OP_FILL) warn_of_count(w->checker, task);
  if (task->op != GK_OP_END) return;
  const uint32_t begin = blocks->lines[line].mate;
  const gk_op op = blocks->lines[begin].task->op;
  if (op == GK_OP_DO_WHILE || op == GK_OP_WHILE) warn_of_flag(w, begin);
  if (op == GK_OP_CHECKPOINT) warn_of_checkpoint(w, begin, line);
}

gk_result gki_check_warn(gki_checker *c) {
  if (!c->report && !gki_log_enabled(GK_LOG_WARN)) return GK_OK;
  walk w = {.checker = c, .slots = gki_array(c->blocks->slot_count, sizeof *w.slots, "warnings about a list")};
  if (!w.slots) return GK_ERROR_MEMORY;
  for (uint32_t line = 0; line < c->blocks->line_count; ++line) visit(&w, line);
  gk_host_free(w.slots);
  return GK_OK;
}
