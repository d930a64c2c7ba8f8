/* Writes a story from a seed. Lists are right by construction: a section writes only to its own groups of memory, every
 * loop throws dice for its flag at the end of its body or has a bound, and counts stay within the memory there is,
 * except in stories of `counts`. */
#include "kernels.h"
#include "write.h"
#include <stdio.h>
#include <string.h>

story_calls story_calls_are;

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static bool is_full(const writer *w) {
  return w->l->list.task_count + w->l->yields + 40 > MAX_TASKS || w->l->lines + 40 > MAX_LINES;
}

/* Blocks have the names that their macros give them, by the text of their arguments. */
static const char *block_name(const writer *w, const gk_task *task) {
  char *name = w->l->task_names[w->l->list.task_count], bound[40] = "", label[40] = "", offset[40] = "",
       every[40] = "";
  if (task->op == GK_OP_CHECKPOINT || task->op == GK_OP_YIELD) {
    snprintf(name, 4 * NAME_BYTES, "%d", (int)task->label);
    return name;
  }
  if (task->offset) snprintf(offset, sizeof offset, ", .offset = %u", (unsigned)task->offset);
  if (task->max_iterations) snprintf(bound, sizeof bound, ", .max_iterations = %u", (unsigned)task->max_iterations);
  if (task->every) snprintf(every, sizeof every, ", .every = %u", (unsigned)task->every);
  if (task->label) snprintf(label, sizeof label, ", .label = %d", (int)task->label);
  if (task->flag < 0) snprintf(name, 4 * NAME_BYTES, "GK_ITEMS(%d)%s%s", -task->flag, bound, label);
  else snprintf(name, 4 * NAME_BYTES, "%s%s%s%s%s", w->l->slots[task->flag - 1].name, offset, bound, every, label);
  return name;
}

static gk_task *add(writer *w, gk_task task) {
  if (task.op == GK_OP_KERNEL) task.name = task.kernel->name;
  else if (task.flag || task.op == GK_OP_CHECKPOINT || task.op == GK_OP_YIELD) task.name = block_name(w, &task);
  gk_task *at = &w->l->tasks[w->l->list.task_count++];
  *at = task;
  ++w->l->lines;
  return at;
}

static gk_task *add_kernel(writer *w, const gk_kernel *kernel) {
  return add(w, (gk_task){.op = GK_OP_KERNEL, .kernel = kernel});
}
static void add_gate(writer *w, gk_op op, const group *g, uint32_t flag) {
  add(w, (gk_task){.op = op, .flag = g->f, .offset = 4 * flag});
}
static void add_yield(writer *w, const group *g, uint32_t flag) { /* g: NULL: a target */
  add(w, (gk_task){.op = GK_OP_CHECKPOINT, .label = (int32_t)++w->l->labels, .flag = g ? g->f : 0,
                   .offset = g ? 4 * flag : 0});
}
/* In a story without it, a GK_TARGET with its END stands there (without_yields in run.c). */
static void add_pause(writer *w) {
  add(w, (gk_task){.op = GK_OP_YIELD, .label = (int32_t)++w->l->labels});
  w->l->has |= HAS_CHECKPOINT;
  ++w->l->yields;
  ++w->l->lines;
}
static void add_end(writer *w) { add(w, (gk_task)GK_END); }

static const group *own_group(writer *w, const spot *at) {
  return &w->groups[at->first + below(w, at->end - at->first)];
}

/* Another than that to read from, or NULL. */
static const group *other_group(writer *w, const spot *at, const group *than) {
  uint32_t count = at->end - at->first + (at->shared < MAX_GROUPS), k = below(w, count);
  const group *g = at->first + k < at->end ? &w->groups[at->first + k] : &w->groups[at->shared];
  return g == than ? NULL : g;
}

static void choose_items(writer *w, const spot *at, gk_task *task, bool fixed_offset) {
  uint32_t what = below(w, 6);
  if (at->has_few && chance(w, 3)) {
    task->items[0] = at->pass;
    return;
  }
  if (what < 2) return; /* GK_ONE */
  task->items[0] = what < 5 ? count_slot(w) : other_group(w, at, NULL)->f;
  if (what == 5 && !fixed_offset) task->offset = 4 * (FIRST_COUNT + below(w, 4));
}

#define ARGS(task, ...) memcpy((task)->args, (gk_slot[]){__VA_ARGS__}, sizeof((gk_slot[]){__VA_ARGS__}))

static gk_task *add_over_items(writer *w, const spot *at, const gk_kernel *kernel) {
  gk_task *task = add_kernel(w, kernel);
  choose_items(w, at, task, false);
  return task;
}

/* dice: see `roll` */
static void add_roll(writer *w, const group *g, uint32_t flag, uint32_t dice) {
  gk_slot what = constant(w, flag + 16 * dice);
  ARGS(add_kernel(w, &roll), g->f, g->s, what);
}

static void add_rolls(writer *w, const spot *at) {
  const group *g = own_group(w, at);
  uint32_t flag = below(w, FLAGS - 4);
  add_roll(w, g, flag, flag < FIRST_SWITCH ? below(w, 3) : flag < FIRST_COUNT ? 3 : 4);
}

static void add_planes(writer *w, const spot *at, const group *g) {
  bool is_box = chance(w, 2);
  gk_slot id = identity(w), y = is_box ? fixed(w, below(w, 3)) : chance(w, 2) ? fixed(w, below(w, 5))
                                 : some_number(w, 'M', GK_I32, below(w, 5), false);
  gk_slot z = is_box ? fixed(w, 1 + below(w, 2)) : 0;
  gk_task *task = add_over_items(w, at, is_box ? &box : &plane);
  task->items[1] = y, task->items[2] = z;
  ARGS(task, g->x, id);
}

static gk_slot any_count_slot(writer *w, const spot *at) {
  static const gk_type types[] = {GK_I32, GK_U32, GK_I64};
  const gk_type type = types[below(w, 3)];
  const int64_t count = any_count(below(w, 1u << 20), type);
  if (count > 0 && count <= INT32_MAX && chance(w, 4)) return -(gk_slot)count;
  return chance(w, 2) ? some_number(w, 'O', type, count, false) : other_group(w, at, NULL)->e;
}

static void add_move(writer *w, const spot *at, const group *g, bool copies) {
  const group *from = copies ? other_group(w, at, g) : NULL;
  gk_slot count = w->s->counts && chance(w, 2) ? any_count_slot(w, at) : 0;
  gk_task *task = add(w, (gk_task){.op = from ? GK_OP_COPY : GK_OP_FILL, .name = from ? "copy" : "fill",
                                   .args = {g->x, from ? from->x : 0}});
  if (count) task->items[0] = count;
  else choose_items(w, at, task, true);
  task->offset = 4 * below(w, 12);
  if (from) task->from_offset = 4 * below(w, 12);
  else task->pattern = below(w, 1000);
}

static void add_struct(writer *w, const spot *at, const group *g) {
  if (!has_room(w)) return;
  gk_slot p = add_slot(w, 'P', (gk_slot_desc){.type = GK_BYTES, .element = "pair", .element_bytes = sizeof(pair)});
  gk_slot b = chance(w, 2) || at->in_section ? p : add_memory(w, 'B', "pair", sizeof(pair), 1);
  if (b != p) add(w, (gk_task){.op = GK_OP_COPY, .name = "copy", .args = {b, p}});
  ARGS(add_over_items(w, at, &couple), g->x, p, b);
}

static void add_typed(writer *w, const spot *at, const group *g) {
  gk_slot u = some_number(w, 'G', GK_U32, below(w, 99), false);
  gk_slot j = some_number(w, 'J', GK_I64, (int)below(w, 99) - 50, false);
  gk_slot r = some_number(w, 'R', GK_F32, (int)below(w, 99) - 50, false);
  gk_slot q = some_number(w, 'Q', GK_F64, (int)below(w, 99) - 50, false);
  ARGS(add_over_items(w, at, &typed), g->x, u, j, r, q);
}

/* One of those that this story has. */
static char draw_kind(writer *w, const char *kinds, uint32_t count, char otherwise) {
  for (int tries = 0; tries < 8; ++tries) {
    const char kind = kinds[below(w, count)];
    if (!(w->s->without >> (kind - 'A') & 1)) return kind;
  }
  return otherwise;
}

/* A CALL (or what does its work), and an IF without tasks: wherever flags are read, nothing behind it has begun when it
 * is done. */
static void add_halt(writer *w, const group *g) {
  const bool stays = story_calls_are == CALLS_RECORDED;
  if (stays && !w->door) w->door = add_memory(w, 'D', "int", 4, 0);
  if (stays) ARGS(add_kernel(w, &stay), w->door);
  else add(w, (gk_task){.op = GK_OP_CALL, .name = "halt", .call = halt, .args = {g->h, g->x}});
  add_gate(w, GK_OP_IF, g, below(w, 4));
  add_end(w);
  w->l->has |= HAS_HALT;
}

static void add_tell(writer *w, const group *g, gk_slot id) {
  gk_slot *m = &w->reached[g - w->groups];
  if (!*m) *m = add_memory(w, 'h', "uint", 4, 0);
  if (chance(w, 2)) ARGS(add_kernel(w, &blend), *m, g->x, id);
  add(w, (gk_task){.op = GK_OP_CALL_HOST, .name = "tell", .call = tell, .args = {g->h, *m}});
  if (chance(w, 2)) ARGS(add_kernel(w, &blend), g->x, *m, id);
}

/* The pass number as an argument, or as what is copied to a flag. */
static gk_task *add_number_of_pass(writer *w, const spot *at, const group *g) {
  gk_task *task = add(w, chance(w, 4) ? (gk_task){.op = GK_OP_COPY, .name = "copy", .args = {g->f, at->pass},
                                                  .offset = 4 * below(w, FIRST_SWITCH)}
                                      : (gk_task){.op = GK_OP_KERNEL, .kernel = &follow, .args = {g->x, at->pass}});
  return task->op == GK_OP_KERNEL ? task : NULL;
}

static void add_drawn_task(writer *w, const spot *at, const group *g) {
  static const char kinds[] = "ssssssbbbrrrrppttwwaaymmmmfffcccSdd";
  size_t before = w->l->list.task_count;
  gk_slot id = identity(w);
  gk_task *task = NULL;
  const bool counts = w->s->counts && chance(w, 3);
  char kind = counts ? draw_kind(w, "mmffd", 5, 'd') : draw_kind(w, kinds, sizeof kinds - 1, 's');
  if (w->s->hosts && !counts && chance(w, 4)) kind = 'h';
  if (at->pass && chance(w, 4)) kind = 'n';
  const group *other = kind == 'b' ? other_group(w, at, g) : NULL;
  const bool calls = kind == 'c' || kind == 'h';
  if ((kind == 'b' && !other) || (calls && story_calls_are == CALLS_NONE) || (kind == 'd' && !w->s->counts)) kind = 's';
  switch (kind) {
  case 'b': ARGS(task = add_kernel(w, &blend), g->x, other->x, id); break;
  case 'r': add_rolls(w, at); break;
  case 'p': add_planes(w, at, g); break;
  case 't': ARGS(task = add_kernel(w, &total), w->t, w->u, g->x); break;
  case 'w': ARGS(task = add_kernel(w, &weigh), w->v, w->w, g->x); break;
  case 'a': ARGS(task = add_kernel(w, &vote), w->a, g->x, id); break;
  case 'y': add_typed(w, at, g); break;
  case 'm': add_move(w, at, g, true); break;
  case 'f':
    if (chance(w, 2))
      add(w, (gk_task){.op = GK_OP_FILL, .name = "fill", .args = {g->f}, .offset = 4 * below(w, FLAGS - 4),
                       .pattern = below(w, 4)});
    else add_move(w, at, g, false);
    break;
  case 'c': add(w, (gk_task){.op = GK_OP_CALL, .name = "note", .call = note, .args = {g->h, g->x}}); break;
  case 'S': add_struct(w, at, g); break;
  case 'h': add_tell(w, g, id); break;
  case 'd': ARGS(add_kernel(w, &draw), g->e, g->s, id); break;
  case 'n': task = add_number_of_pass(w, at, g); break;
  default: ARGS(task = add_kernel(w, w->s->heavy ? &toil : &stir), g->x, id);
  }
  if (task) choose_items(w, at, task, false);
  if (w->l->list.task_count != before + 1 || at->depth > 0 || w->s->safe || !chance(w, 7)) return;
  w->l->tasks[before].bits = GK_ALWAYS;
  w->l->has |= HAS_ALWAYS;
}

static void add_task(writer *w, const spot *at) {
  const group *g = own_group(w, at);
  bool halts = w->s->bits & GK_CANCELLABLE && !at->in_section && !w->s->safe && story_cancels();
  if (!has_room(w)) add_rolls(w, at);
  else if (halts && chance(w, 4)) add_halt(w, g);
  else add_drawn_task(w, at, g);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void add_block(writer *w, spot at);
static void add_checkpoint(writer *w, spot at);

static void add_part(writer *w, gk_op op, spot at) {
  add(w, (gk_task){.op = op});
  add_block(w, at);
  add_end(w);
}

static void choose_count(writer *w, const spot *at, const group *g, gk_task *task) {
  const uint32_t what = at->has_few && chance(w, 2) ? 3 : below(w, 3);
  task->op = GK_OP_REPEAT;
  task->offset = what ? 0 : 4 * (FIRST_COUNT + below(w, 4));
  task->flag = what == 3   ? at->pass
               : !what     ? g->f
               : what == 1 ? count_slot(w) : -1 - (gk_slot)below(w, chance(w, 2) ? 4 : 40);
}

/* Some loops with labels have their pass number read. */
static void add_pass(writer *w, const gk_task *loop, spot *at) {
  if (!loop->label || !has_room(w) || chance(w, 3)) return;
  at->pass = add_slot(w, 'p', (gk_slot_desc){.type = GK_PTR, .element = "int", .element_bytes = 4, .bits = GK_IS_PASS,
                                             .value.i32 = loop->label});
  at->has_few = loop->max_iterations != 0;
}

/* The flag of an IF, a SWITCH or an inner loop is the pass number of a loop around. */
static bool follows_passes(writer *w, const spot *at) { return at->pass && chance(w, 3); }

static void add_loop(writer *w, spot at) {
  const group *g = own_group(w, &at);
  uint32_t flag = below(w, FIRST_SWITCH);
  uint32_t dice = at.tower || at.depth > 3 ? 1 : at.depth > 1 ? below(w, 2) : below(w, 3);
  bool is_while = chance(w, 3), bounded = w->s->bounds || chance(w, 3), repeats = chance(w, 4);
  if (is_while && chance(w, 2)) add_roll(w, g, flag, 2);
  gk_task task = {.op = is_while ? GK_OP_WHILE : GK_OP_DO_WHILE, .flag = g->f, .offset = 4 * flag};
  if (repeats && !w->s->counts) choose_count(w, &at, g, &task);
  else {
    if (bounded && follows_passes(w, &at)) task.flag = at.pass, task.offset = 0;
    if (chance(w, 3)) task.every = 1 + below(w, 13);
  }
  if (bounded) task.max_iterations = 1 + w->s->bounds + below(w, chance(w, 2) ? 4 : 24);
  if (chance(w, 2)) task.label = (int32_t)++w->l->labels;
  add_pass(w, &task, &at);
  add(w, task);
  bool rolls = task.op == GK_OP_REPEAT ? chance(w, 3) : !bounded || at.tower || chance(w, 2);
  if (w->s->bounds && !at.in_section && !at.in_checkpoint && !is_full(w))
    add_checkpoint(w, (spot){at.first, at.end, at.shared, at.depth + 1, 0, at.in_section, at.in_checkpoint, at.pass,
                             at.has_few});
  if (task.op != GK_OP_REPEAT || !chance(w, 3)) add_block(w, at);
  if (rolls) add_roll(w, g, flag, dice);
  add_end(w);
}

static void add_if(writer *w, spot at) {
  const group *g = own_group(w, &at);
  uint32_t flag = below(w, FIRST_SWITCH);
  if (chance(w, 2)) add_roll(w, g, flag, below(w, 2));
  if (follows_passes(w, &at)) add(w, (gk_task){.op = GK_OP_IF, .flag = at.pass});
  else add_gate(w, GK_OP_IF, g, flag);
  add_block(w, at);
  if (chance(w, 2)) {
    add(w, (gk_task)GK_ELSE);
    add_block(w, at);
  }
  add_end(w);
}

static void add_switch(writer *w, spot at) {
  const group *g = own_group(w, &at);
  uint32_t flag = FIRST_SWITCH + below(w, 2);
  if (chance(w, 2)) add_roll(w, g, flag, 3);
  if (follows_passes(w, &at)) add(w, (gk_task){.op = GK_OP_SWITCH, .flag = at.pass});
  else add_gate(w, GK_OP_SWITCH, g, flag);
  for (uint32_t count = at.tower ? 1 : below(w, 5); count; --count) add_part(w, GK_OP_CASE, at);
  add_end(w);
}

/* Its sections get a part of the groups each, perhaps one that all may read. */
static void add_parallel(writer *w, spot at) {
  uint32_t have = at.end - at.first;
  add(w, (gk_task)GK_PARALLEL);
  if (have > 2 && !at.tower && chance(w, 2)) {
    at.shared = at.first++;
    --have;
  }
  uint32_t count = at.tower ? 1 : below(w, have + 1), from = at.first, end = at.end;
  at.in_section = true;
  for (uint32_t k = 0; k < count; ++k) {
    at.first = from + have * k / count;
    at.end = k + 1 == count ? end : from + have * (k + 1) / count;
    add_part(w, GK_OP_SECTION, at);
  }
  add_end(w);
}

static void add_safe_checkpoint(writer *w, spot at) {
  const group *g = own_group(w, &at);
  if (!w->room) {
    w->leave = add_memory(w, 'C', "int", 4, 1);
    w->kept = add_memory(w, 'Y', "uint", 4, 1);
    w->room = chance(w, 2) ? add_room(w, w->kept) : add_number(w, 'Z', GK_I32, 1);
  }
  add_yield(w, g, REFUSED);
  ARGS(add_kernel(w, &ask), g->f, g->s, w->leave, w->room);
  add_gate(w, GK_OP_IF, g, GRANTED);
  gk_task *last = add_kernel(w, &keep);
  last->items[0] = g->f;
  last->offset = 4 * WANTED;
  ARGS(last, w->kept, g->x);
  add_block(w, at);
  add_end(w);
  add_end(w);
}

static void add_checkpoint(writer *w, spot at) {
  const group *g = own_group(w, &at);
  uint32_t flag = below(w, FIRST_SWITCH);
  at.in_checkpoint = true;
  w->l->has |= HAS_CHECKPOINT;
  if (w->s->safe && has_room(w)) {
    add_safe_checkpoint(w, at);
    return;
  }
  bool target = w->s->safe || chance(w, 4);
  add_yield(w, target ? NULL : g, flag);
  add_block(w, at);
  if (!target && chance(w, 2)) add_roll(w, g, flag, 1);
  add_end(w);
}

/* The list of another listing, with arguments for some of its first slots. */
static bool add_include(writer *w, const spot *at) {
  if (!w->index) return false;
  const listing *inner = &w->s->lists[below(w, w->index)];
  bool bound = at->in_section || at->in_checkpoint;
  uint32_t barred = (bound ? HAS_CHECKPOINT : 0) | (at->in_section ? HAS_HALT : 0) | (at->depth ? HAS_ALWAYS : 0);
  if (inner->has & barred || w->l->lines + inner->lines + 40 > MAX_LINES) return false;
  char *name = w->l->task_names[w->l->list.task_count];
  snprintf(name, NAME_BYTES, "inc%zu", w->l->list.task_count + 1);
  gk_task *task = add(w, (gk_task){.op = GK_OP_LIST, .name = name, .list = &inner->list,
                                   .label = (int32_t)w->l->labels});
  w->l->lines += inner->lines - 1;
  w->l->labels += inner->labels;
  const group *a = own_group(w, at), *b = own_group(w, at);
  gk_slot given[] = {a->x, a->f, a->s, a->h, a->e, b->x, b->f, b->s, b->h, b->e, w->a, w->t, w->u, w->v, w->w,
                     -1 - (gk_slot)below(w, 8) /* GK_ITEMS */};
  const uint32_t most = a == b ? 5 : inner->arguments, count = chance(w, 3) ? most : below(w, most + 1);
  memcpy(task->args, given, count * sizeof *given);
  w->l->has |= inner->has;
  return true;
}

static void add_item(writer *w, spot at) {
  static const char kinds[] = "ttttttttttttDDDDDIIISSPPPPCCCCLLL";
  char kind = at.tower ? draw_kind(w, "DDIPSC", 6, 'D')
                       : draw_kind(w, kinds, at.depth < 6 ? sizeof kinds - 1 : 12, 't');
  if (is_full(w)) return;
  if (w->budget) --w->budget;
  if (at.tower) --at.tower;
  if (kind == 'C' && (at.in_section || at.in_checkpoint)) kind = at.tower ? 'I' : 't';
  if (kind == 't' && at.depth && !at.in_section && !at.in_checkpoint && chance(w, 5)) kind = 'C';
  if (kind == 't' && !at.in_section && !at.in_checkpoint && chance(w, w->s->pauses ? 3 : 40)) kind = 'Y';
  spot inside = at;
  ++inside.depth;
  switch (kind) {
  case 'D': add_loop(w, inside); break;
  case 'I': add_if(w, inside); break;
  case 'S': add_switch(w, inside); break;
  case 'P': add_parallel(w, inside); break;
  case 'C': add_checkpoint(w, inside); break;
  case 'Y': add_pause(w); break;
  case 'L':
    if (add_include(w, &at)) break; /* else a task */ // fall through
  default: add_task(w, &at); break;
  }
}

static void add_block(writer *w, spot at) {
  for (uint32_t items = at.tower ? 1 : below(w, 4); items && (at.tower || w->budget); --items) add_item(w, at);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static void write_list(story *s, uint32_t index, uint64_t seed) {
  listing *l = &s->lists[index];
  bool whole = index + 1 == s->list_count;
  writer w = {.s = s, .l = l, .index = index, .random = seed};
  l->list = (gk_list){GK_ABI, l->name, l->tasks, 0, l->slots, 0};
  l->lines = l->labels = l->has = l->yields = 0;
  snprintf(l->name, sizeof l->name, "L%u", (unsigned)index % MAX_LISTS);
  add_group(&w);
  add_group(&w);
  w.a = add_memory(&w, 'A', "int", 4, 1);
  w.t = add_memory(&w, 'T', "int", 4, 1);
  w.u = add_memory(&w, 'U', "uint", 4, 1);
  w.v = add_memory(&w, 'V', "float", 4, 1);
  w.w = add_memory(&w, 'W', "double", 8, 1);
  add_number(&w, 'N', (gk_type[]){GK_I32, GK_U32, GK_I64}[below(&w, 3)], below(&w, 9));
  l->arguments = (uint32_t)l->list.slot_count;
  for (uint32_t more = below(&w, whole ? 4 : 2); more; --more) add_group(&w);
  spot at = {.end = w.group_count, .shared = MAX_GROUPS};
  w.budget = whole ? 4 + below(&w, 24) : 2 + below(&w, 8);
  if (whole && chance(&w, 25)) {
    at.tower = 9 + below(&w, 5);
    add_item(&w, at);
    at.tower = 0;
  }
  for (uint32_t items = 1 + below(&w, whole ? 6 : 3); items; --items) add_item(&w, at);
}

void story_write(story *s, uint64_t seed) {
  uint64_t random = mix(seed * UINT64_C(0x9e3779b97f4a7c15) + 1);
  s->seed = seed;
  s->safe = pick(&random, 5) == 0;
  s->plain = false;
  s->heavy = pick(&random, 25) == 0;
  s->bounds = pick(&random, 6) == 0;
  s->pauses = pick(&random, 4) == 0;
  s->hosts = mix(seed) % 3 == 0;
  s->bits = pick(&random, 3) || s->safe ? 0 : GK_CANCELLABLE;
  s->bits |= (pick(&random, 4) ? 0 : GK_HOST_GATED) | (pick(&random, 5) ? 0 : GK_ISOLATE);
  s->counts = !s->safe && pick(&random, 3) == 0;
  if (s->counts) s->bits &= ~(uint32_t)GK_CANCELLABLE; /* it is unknown which halts a failed launch came to */
  s->without = pick(&random, 2) ? mix(random) & mix(random + 1) : 0;
  s->list_count = pick(&random, 2) ? 1 : 2 + pick(&random, MAX_LISTS - 1);
  for (uint32_t k = 0; k < s->list_count; ++k) write_list(s, k, mix(random + k));
  story_write_deeds(s, mix(random + MAX_LISTS));
  if (s->safe) s->deed_count = 0;
}
