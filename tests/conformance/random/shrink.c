/* Makes a story that fails smaller, as long as it fails: deeds left out, lines and blocks left out, blocks unwrapped,
 * unused slots left out. */
#include "story.h"
#include <string.h>
#include <time.h>

enum { SECONDS = 120 };

typedef struct shrinker {
  story *s;
  bool (*fails)(void *user, story *s);
  void *user;
  time_t end;
} shrinker;

/* Lists that are wrong are no candidates: they fail for another reason. */
static bool still_fails(shrinker *k) {
  if (time(NULL) > k->end) return false;
  if (gk_check(&whole_of(k->s)->list, NULL, NULL, NULL) != GK_OK) return false;
  return k->fails(k->user, k->s);
}

static story before; /* the last attempt that failed as it shall */

/* Whether an attempt fails, too; else all is as before. */
static bool is_kept(shrinker *k) {
  const bool kept = still_fails(k);
  if (kept) before = *k->s;
  else *k->s = before;
  return kept;
}

static bool drop_deeds(shrinker *k) {
  story *s = k->s;
  bool any = false;
  for (uint32_t at = s->deed_count; at-- > 0;) {
    deed *d = &s->deeds[at];
    memmove(d, d + 1, (s->deed_count - at - 1) * sizeof *d);
    --s->deed_count;
    const bool dropped = is_kept(k);
    any |= dropped;
    if (dropped || d->kind != DEED_LAUNCH || (!d->queued && d->waits)) continue;
    d->queued = 0;
    d->waits = true;
    any |= is_kept(k);
  }
  return any;
}

/* The END of the block at a line; *otherwise: its ELSE, or the line itself. */
static size_t end_of(const gk_list *list, size_t line, size_t *otherwise) {
  size_t at = line;
  *otherwise = line;
  if (!opens(list->tasks[line].op)) return line;
  for (int depth = 0;; ++at) {
    gk_op op = list->tasks[at].op;
    if (op == GK_OP_ELSE && depth == 1) *otherwise = at;
    if (opens(op)) ++depth;
    if (op == GK_OP_END && --depth == 0) return at;
  }
}

/* Pass numbers of loops that are left out. They are none of the first slots, which an INCLUDE may give. */
static void drop_passes(listing *l) {
  size_t kept = 0;
  for (size_t at = 0; at < l->list.slot_count; ++at) {
    bool stays = !(l->slots[at].bits & GK_IS_PASS);
    for (size_t k = 0; k < l->list.task_count; ++k)
      stays |= l->tasks[k].op >= GK_OP_DO_WHILE && l->tasks[k].op <= GK_OP_REPEAT &&
               l->tasks[k].label == l->slots[at].value.i32;
    if (stays) l->slots[kept++] = l->slots[at];
  }
  l->list.slot_count = kept;
}

/* A line, with its block or without: of a SWITCH and PARALLEL its parts stay, one behind the other. */
static bool leave_out(listing *l, size_t line, bool whole) {
  static bool goes[MAX_TASKS];
  gk_op op = l->tasks[line].op;
  size_t otherwise, unused, end = end_of(&l->list, line, &otherwise), kept = 0;
  if (op == GK_OP_END || op == GK_OP_ELSE) return false;
  if (!whole && (end == line || op == GK_OP_CASE || op == GK_OP_SECTION)) return false;
  memset(goes, 0, sizeof goes);
  goes[line] = goes[end] = goes[otherwise] = true;
  for (size_t k = line; k <= end && whole; ++k) goes[k] = true;
  bool has_parts = op == GK_OP_SWITCH || op == GK_OP_PARALLEL;
  for (size_t part = line + 1; part < end && has_parts; part = end_of(&l->list, part, &unused) + 1)
    goes[part] = goes[end_of(&l->list, part, &unused)] = true;
  for (size_t k = 0; k < l->list.task_count; ++k)
    if (!goes[k]) l->tasks[kept++] = l->tasks[k];
  l->list.task_count = kept;
  drop_passes(l);
  return true;
}

static bool drop_lines(shrinker *k, listing *l) {
  bool any = false;
  for (size_t step = 0; step < 2 * l->list.task_count; ++step) {
    if (!leave_out(l, step / 2, step % 2 == 0) || !is_kept(k)) continue;
    any = true;
    step -= step % 2 + 1; /* the same line again: another is there now */
  }
  return any;
}

static bool simplify(shrinker *k, listing *l) {
  bool any = false;
  for (size_t line = 0; line < l->list.task_count; ++line) {
    gk_task *task = &l->tasks[line];
    if (task->op != GK_OP_KERNEL || !task->items[0] || task->items[1]) continue;
    task->items[0] = 0;
    task->offset = 0;
    any |= is_kept(k);
  }
  return any;
}

static bool is_used(const gk_list *list, gk_slot slot) {
  for (size_t k = 0; k < list->task_count; ++k) {
    const gk_task *task = &list->tasks[k];
    if (task->flag == slot) return true;
    for (int d = 0; d < 3; ++d)
      if (task->items[d] == slot) return true;
    for (int a = 0; a < GK_MAX_ARGS; ++a)
      if (task->args[a] == slot) return true;
  }
  return false;
}

/* Of the outermost list, whose first slots no INCLUDE gives; numbers stay as they are. */
static bool drop_slots(shrinker *k, listing *l) {
  const size_t count = l->list.slot_count;
  size_t kept = 0;
  for (size_t at = 0; at < count; ++at)
    if (is_used(&l->list, l->slots[at].slot)) l->slots[kept++] = l->slots[at];
  l->list.slot_count = kept;
  return kept < count && is_kept(k);
}

/* Without bits of the graph and memory that begins by chance, or without one of them. */
static bool plainer(shrinker *k) {
  story *s = k->s;
  const bool bits = s->bits & ~(uint32_t)GK_CANCELLABLE, memory = !s->plain;
  for (int what = 3; what > 0; --what) {
    if (!(what & 1 && bits) && !(what & 2 && memory)) continue;
    if (what & 1) s->bits &= GK_CANCELLABLE;
    if (what & 2) s->plain = true;
    if (is_kept(k)) return true;
  }
  return false;
}

void story_shrink(story *s, bool (*fails)(void *user, story *s), void *user) {
  shrinker k = {s, fails, user, time(NULL) + SECONDS};
  before = *s;
  for (bool any = true; any && time(NULL) < k.end;) {
    any = drop_deeds(&k);
    any |= plainer(&k);
    for (uint32_t list = s->list_count; list-- > 0;) {
      any |= drop_lines(&k, &s->lists[list]);
      any |= simplify(&k, &s->lists[list]);
    }
    any |= drop_slots(&k, whole_of(s));
  }
}
