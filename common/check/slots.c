/* Checks tables of slots: that of the list and those of included lists. */
#include "check/slots.h"
#include "base/error.h"
#include <stdio.h>
#include <string.h>

static bool is_zero(const uintptr_t *words, size_t count) {
  uintptr_t all = 0;
  for (size_t k = 0; k < count; ++k) all |= words[k];
  return !all;
}

static void check_type(gki_checker *c, const gk_slot_desc *desc) {
  size_t limit = PTRDIFF_MAX, unit = desc->element_bytes ? desc->element_bytes : 1;
  const char *type = gki_format_type(c, desc->type);
  if (desc->type <= GK_NO_TYPE || desc->type > GK_HOST_PTR) {
    gki_report(c, GKI_SLOT_TYPE, gki_format_desc(c, desc), type, NULL);
    return;
  }
  if (desc->bits & GK_HAS_VALUE && (desc->type == GK_PTR || desc->type == GK_BYTES))
    gki_report(c, GKI_SLOT_VALUE, gki_format_desc(c, desc), type,
               desc->type == GK_PTR ? "gk_bind" : "gk_bind_bytes", NULL);
  if (desc->type == GK_BYTES && !desc->element_bytes)
    gki_report(c, GKI_SLOT_BYTES, gki_format_desc(c, desc), NULL);
  if (desc->type != GK_PTR && desc->count) gki_report(c, GKI_SLOT_COUNT, gki_format_desc(c, desc), type, NULL);
  if (desc->type == GK_PTR && desc->count > limit / unit) {
    char count[24];
    snprintf(count, sizeof count, "%zu", desc->count);
    gki_report(c, GKI_SLOT_TOO_LARGE, gki_format_desc(c, desc), count,
               gki_format_count(c, (int64_t)unit, "byte"), NULL);
  }
}

static void check_room(gki_checker *c, const gk_slot_desc *desc) {
  const gk_slot_desc *buffer = gki_desc_of(c, desc->value.i32);
  if (desc->type != GK_I32 && desc->type != GK_U32 && desc->type != GK_I64)
    gki_report(c, GKI_ROOM_TYPE, gki_format_desc(c, desc), gki_format_type(c, desc->type), NULL);
  if (!buffer) gki_report(c, GKI_ROOM_UNKNOWN, gki_format_desc(c, desc), gki_format_int(c, desc->value.i32), NULL);
  else if (buffer->type != GK_PTR)
    gki_report(c, GKI_ROOM_BUFFER, gki_format_desc(c, desc), gki_format_desc(c, buffer),
               gki_format_type(c, buffer->type), NULL);
}

static void check_pass(gki_checker *c, const gk_slot_desc *desc) {
  if (desc->type != GK_PTR || desc->element_bytes != sizeof(int32_t) || desc->count)
    gki_report(c, GKI_PASS_TYPE, gki_format_desc(c, desc), NULL);
}

static void check_slot(gki_checker *c, const gki_inclusion *in, size_t place) {
  const gk_slot_desc *desc = &in->list->slots[place];
  if (desc->slot < 1 || desc->slot > (gk_slot)UINT16_MAX) {
    gki_report(c, GKI_SLOT_NUMBER, gki_format_desc(c, desc), NULL);
  } else if (in->ranks[desc->slot] != place + 1) {
    const char *first = gki_format_desc(c, &in->list->slots[in->ranks[desc->slot] - 1]);
    gki_report(c, GKI_SLOT_REUSED, gki_format_desc(c, desc), first, NULL);
  }
  if (!desc->name || !*desc->name) gki_report(c, GKI_SLOT_NAMELESS, gki_format_desc(c, desc), NULL);
  check_type(c, desc);
  if (desc->bits == GK_IS_ROOM) check_room(c, desc);
  else if (desc->bits == GK_IS_PASS) check_pass(c, desc);
  else if (desc->bits & ~(uint32_t)GK_HAS_VALUE)
    gki_report(c, GKI_SLOT_BITS, gki_format_desc(c, desc), gki_format_bits(c, desc->bits), NULL);
  if (!is_zero(desc->reserved, GK_COUNT(desc->reserved)))
    gki_report(c, GKI_SLOT_RESERVED, gki_format_desc(c, desc), NULL);
}

static uint64_t hash_name(const char *name) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (; *name; ++name) hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
  return hash ^ hash >> 32;
}

/* The place in the table, from 1, of the first slot of that name. */
static uint32_t enter_name(const gk_slot_desc *slots, uint32_t *seen, size_t size, uint32_t place) {
  size_t at = (size_t)hash_name(slots[place].name) & (size - 1);
  for (; seen[at]; at = (at + 1) & (size - 1))
    if (strcmp(slots[seen[at] - 1].name, slots[place].name) == 0) return seen[at];
  return seen[at] = place + 1;
}

gk_result gki_check_slots(gki_checker *c, uint32_t inclusion) {
  const gki_inclusion *in = &c->blocks->inclusions[inclusion];
  size_t count = in->list->slot_count, size = 16;
  while (size < 2 * count) size *= 2;
  uint32_t *seen = gki_array(size, sizeof *seen, "checking the names of slots");
  if (!seen) return GK_ERROR_MEMORY;
  c->line = GK_NONE;
  c->named = c->inclusion = inclusion;
  for (size_t k = 0; k < count && !gki_check_is_done(c); ++k) {
    const gk_slot_desc *desc = &in->list->slots[k];
    check_slot(c, in, k);
    if (!desc->name || !*desc->name) continue;
    uint32_t first = enter_name(in->list->slots, seen, size, (uint32_t)k);
    if (first == k + 1) continue;
    const char *other = gki_format_desc(c, &in->list->slots[first - 1]);
    gki_report(c, GKI_SLOT_NAME_REUSED, gki_format_desc(c, desc), other, NULL);
  }
  gk_host_free(seen);
  return GK_OK;
}

/* ---- pass numbers ------------------------------------------------------------------------------------------------ */

/* The label that the table of a used slot names, which may be that of a list around. */
static int32_t label_of_pass(const gki_checker *c, gk_slot slot) {
  const gki_inclusion *in = &c->blocks->inclusions[c->inclusion];
  for (; in->at && in->ranks[slot] <= in->arg_count; in = &c->blocks->inclusions[in->around])
    slot = in->at->args[in->ranks[slot] - 1];
  return in->list->slots[in->ranks[slot] - 1].value.i32;
}

/* Whether a slot of the line's list is a pass number, whose loop has that line then. Slots given to an included list
 * are what they are outside. */
static bool is_pass(gki_checker *c, gk_slot slot, uint32_t *loop) {
  const gk_slot_desc *desc = &c->blocks->slots[gki_slot_of(c->blocks, c->inclusion, slot)];
  if (desc->bits != GK_IS_PASS) return false;
  *loop = (uint32_t)desc->value.i32;
  if (desc->value.i32 >= 0) return true;
  gki_report(c, GKI_PASS_LABEL, gki_format_slot(c, slot), gki_format_int(c, label_of_pass(c, slot)), NULL);
  return false;
}

/* use, name: "argument", "x". name: may be NULL */
static void check_inside(gki_checker *c, gk_slot slot, uint32_t loop, const char *use, const char *name) {
  const uint32_t end = c->blocks->lines[loop].mate;
  char text[GKI_TEXT_BYTES];
  if (end == GK_NONE || (c->line > loop && c->line < end)) return;
  snprintf(text, sizeof text, "%s%s%.100s", use, name ? " " : "", name ? name : "");
  gki_report(c, GKI_PASS_OUTSIDE, text, gki_format_slot(c, slot), gki_format_line(c, loop), NULL);
}

static void check_argument(gki_checker *c, const gk_task *task, uint32_t arg, uint32_t loop) {
  const gk_param *params = task->op == GK_OP_KERNEL && task->kernel ? task->kernel->params : NULL;
  const bool copies = task->op == GK_OP_COPY;
  if (task->op == GK_OP_KERNEL && (!params || arg >= task->kernel->param_count)) return; /* reported by the kernel */
  const char *name = params ? gki_format_name(c, params[arg].name) : copies && arg ? "from" : "to";
  if (gki_op_is_call(task->op))
    gki_report(c, GKI_PASS_CALL, gki_format_int(c, arg), gki_format_slot(c, task->args[arg]), NULL);
  else if (params ? params[arg].access == GK_ACCESS_IN : copies && arg)
    check_inside(c, task->args[arg], loop, "argument", name);
  else gki_report(c, GKI_PASS_WRITTEN, name, gki_format_slot(c, task->args[arg]), NULL);
}

void gki_check_passes(gki_checker *c, const gk_task *task) {
  uint32_t loop;
  if (!c->blocks->has_passes) return;
  for (uint32_t k = 0; gki_op_is_task(task->op) && k < gki_arg_count(task); ++k)
    if (is_pass(c, task->args[k], &loop)) check_argument(c, task, k, loop);
  for (uint32_t k = 0; k < 3; ++k)
    if (is_pass(c, task->items[k], &loop)) check_inside(c, task->items[k], loop, "number of items", NULL);
  if (!is_pass(c, task->flag, &loop)) return;
  if (task->op == GK_OP_CHECKPOINT) gki_report(c, GKI_PASS_CHECKPOINT, gki_format_slot(c, task->flag), NULL);
  else check_inside(c, task->flag, loop, task->op == GK_OP_REPEAT ? "count" : "flag", NULL);
}
