/* The list as composed lies in one array of lines; blocks know the line of their END. A launch goes through it by plain
 * recursion. Numbers in comments are the rules of docs/contract.md. */
#include "gk_code.h"
#include "composed.h"
#include "names.h"
#include <stdlib.h>
#include <string.h>

typedef struct line {
  const gk_task *task;
  char *name;            /* loops, checkpoints and YIELDs */
  int32_t label;         /* as composed */
  size_t end, otherwise; /* of a block: its END; of an IF: its ELSE or NONE */
  size_t number;         /* of a loop among loops, of a checkpoint or YIELD among both */
  size_t flag, items[3], args[GK_MAX_ARGS], arg_count; /* places in the array of slots; NONE; NONE - n: GK_ITEMS(n) */
  uint64_t entry;        /* of a loop: passes since it was entered */
  int32_t pass;          /* its pass number: the lower bits of `entry` at the pass's begin */
  bool waits;            /* of a REPEAT: its entry has read this count */
  int64_t count;
  uint64_t runs;
} line;

/* ---- the list as composed ---------------------------------------------------------------------------------------- */

/* A list that is being written out: the places of its table's slots, and what the lists around it add. */
typedef struct scope {
  const gk_list *list;
  const char *name;
  int32_t labels;
  size_t *places;
} scope;

static void *keep(reference *r, void *memory) {
  if (!memory) r->no_memory = true;
  return memory;
}

static void make_room(reference *r, void **array, size_t count, size_t *room, size_t bytes) {
  if (count < *room) return;
  size_t wanted = *room ? 2 * *room : 32;
  void *larger = keep(r, realloc(*array, wanted * bytes));
  if (!larger) return;
  *array = larger;
  *room = wanted;
}

static size_t find_place(const scope *in, gk_slot slot) {
  if (slot < 0) return NONE - (size_t)-(int64_t)slot;
  for (size_t k = 0; slot && k < in->list->slot_count; ++k)
    if (in->list->slots[k].slot == slot) return in->places[k];
  return NONE;
}

static size_t new_place(reference *r, const gk_slot_desc *desc, const char *around) {
  const char *name = desc->name ? desc->name : "";
  make_room(r, (void **)&r->places, r->place_count, &r->place_room, sizeof *r->places);
  char *full = keep(r, full_name(around, name, strlen(name)));
  if (r->no_memory) {
    free(full);
    return NONE;
  }
  place *p = &r->places[r->place_count++];
  *p = (place){.shown = {.desc = desc, .name = full}, .name = full, .loop = NONE};
  if (desc->bits & GK_HAS_VALUE) p->shown.value = desc->value;
  if (desc->type == GK_BYTES) p->shown.value.ptr = p->memory = keep(r, calloc(desc->element_bytes, 1));
  if (desc->type == GK_PTR && desc->count && !reference_resize(r, r->place_count - 1, desc->count)) r->no_memory = true;
  return r->place_count - 1;
}

/* The rooms among a table's slots from `first` on: their buffers may stand behind them. */
static void find_buffers(reference *r, const scope *in, size_t first) {
  for (size_t k = first; k < in->list->slot_count && !r->no_memory; ++k) {
    const gk_slot_desc *room = &in->list->slots[k];
    if (!(room->bits & GK_IS_ROOM)) continue;
    place *p = &r->places[in->places[k]];
    p->buffer = find_place(in, room->value.i32);
    for (size_t j = 0; j < in->list->slot_count; ++j)
      if (in->list->slots[j].slot == room->value.i32) p->unit = in->list->slots[j].element_bytes;
    if (!p->unit) p->unit = 1;
  }
}

static bool is_loop(gk_op op) { return op >= GK_OP_DO_WHILE && op <= GK_OP_REPEAT; }

/* The pass numbers among a table's slots from `first` on. Their loops are lines of the list, `begin` and behind. */
static void find_loops(reference *r, const scope *in, size_t first, size_t begin) {
  for (size_t k = first; k < in->list->slot_count && !r->no_memory; ++k) {
    const gk_slot_desc *pass = &in->list->slots[k];
    place *p = &r->places[in->places[k]];
    if (!(pass->bits & GK_IS_PASS)) continue;
    p->shown.bytes = sizeof(int32_t);
    for (size_t j = begin; j < r->line_count; ++j)
      if (is_loop(r->lines[j].task->op) && r->lines[j].label == pass->value.i32 + in->labels) p->loop = j;
  }
}

static bool is_resumed_at(gk_op op) { return op == GK_OP_CHECKPOINT || op == GK_OP_YIELD; }

static void add_line(reference *r, const scope *in, const gk_task *task) {
  make_room(r, (void **)&r->lines, r->line_count, &r->line_room, sizeof *r->lines);
  if (r->no_memory) return;
  line *l = &r->lines[r->line_count++];
  *l = (line){.task = task, .end = NONE, .otherwise = NONE, .flag = find_place(in, task->flag)};
  const bool loop = is_loop(task->op), checkpoint = is_resumed_at(task->op);
  if (loop || checkpoint) {
    l->name = keep(r, block_name(in->name, task));
    l->label = task->label ? task->label + in->labels : 0;
  }
  if (loop) l->number = r->status.loop_count++;
  if (checkpoint) l->number = r->status.checkpoint_count++;
  for (int d = 0; d < 3; ++d) l->items[d] = find_place(in, task->items[d]);
  for (; l->arg_count < GK_MAX_ARGS && task->args[l->arg_count]; ++l->arg_count)
    l->args[l->arg_count] = find_place(in, task->args[l->arg_count]);
}

static void add_list(reference *r, const scope *in);

/* The INCLUDE's arguments are the first slots of the included list's table, the others are its own. */
static void include(reference *r, const scope *around, const gk_task *task) {
  const char *name = task->name && *task->name ? task->name
                     : task->list->name && *task->list->name ? task->list->name : "list";
  scope in = {.list = task->list, .labels = around->labels + task->label};
  char *full = keep(r, full_name(around->name, name, strlen(name)));
  in.name = full;
  in.places = keep(r, calloc(in.list->slot_count + 1, sizeof *in.places));
  size_t given = 0;
  while (given < GK_MAX_ARGS && task->args[given]) ++given;
  for (size_t k = 0; !r->no_memory && k < in.list->slot_count; ++k)
    in.places[k] = k < given ? find_place(around, task->args[k]) : new_place(r, &in.list->slots[k], in.name);
  find_buffers(r, &in, given);
  const size_t begin = r->line_count;
  if (!r->no_memory) add_list(r, &in);
  find_loops(r, &in, given, begin);
  free(in.places);
  free(full);
}

static void add_list(reference *r, const scope *in) {
  for (size_t k = 0; k < in->list->task_count && !r->no_memory; ++k)
    if (in->list->tasks[k].op == GK_OP_LIST) include(r, in, &in->list->tasks[k]);
    else add_line(r, in, &in->list->tasks[k]);
}

static bool is_block(gk_op op) { return op >= GK_OP_DO_WHILE && op <= GK_OP_SECTION && op != GK_OP_ELSE; }

static void match_blocks(reference *r) {
  size_t open[GK_MAX_DEPTH + 1], depth = 0;
  for (size_t k = 0; k < r->line_count; ++k) {
    gk_op op = r->lines[k].task->op;
    if (is_block(op)) open[depth++] = k;
    else if (op == GK_OP_ELSE) r->lines[open[depth - 1]].otherwise = k;
    else if (op == GK_OP_END) r->lines[open[--depth]].end = k;
  }
}

static void make_status(reference *r) {
  r->loops = keep(r, calloc(r->status.loop_count + 1, sizeof *r->loops));
  r->checkpoints = keep(r, calloc(r->status.checkpoint_count + 1, sizeof *r->checkpoints));
  r->status.loops = r->loops;
  r->status.checkpoints = r->checkpoints;
  r->status.yielded_name = "";
  for (size_t k = 0; !r->no_memory && k < r->line_count; ++k) {
    const line *l = &r->lines[k];
    if (!l->name) continue;
    if (is_resumed_at(l->task->op)) r->checkpoints[l->number] = (reference_checkpoint){l->label, l->name, false};
    else r->loops[l->number] = (reference_loop){.label = l->label, .name = l->name};
  }
}

reference *reference_open(const gk_list *list) {
  reference *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  scope whole = {.list = list, .name = ""};
  whole.places = keep(r, calloc(list->slot_count + 1, sizeof *whole.places));
  for (size_t k = 0; !r->no_memory && k < list->slot_count; ++k) whole.places[k] = new_place(r, &list->slots[k], "");
  find_buffers(r, &whole, 0);
  r->own_count = r->place_count;
  if (!r->no_memory) add_list(r, &whole);
  find_loops(r, &whole, 0, 0);
  free(whole.places);
  if (!r->no_memory) match_blocks(r);
  make_status(r);
  if (!r->no_memory) return r;
  reference_close(r);
  return NULL;
}

void reference_close(reference *r) {
  if (!r) return;
  for (size_t k = 0; k < r->line_count; ++k) free(r->lines[k].name);
  for (size_t k = 0; k < r->place_count; ++k) free(r->places[k].name);
  for (size_t k = 0; k < r->place_count; ++k) free(r->places[k].memory);
  free(r->lines);
  free(r->places);
  free(r->loops);
  free(r->checkpoints);
  free(r);
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static int64_t constant_of(size_t index) { return NONE - index <= INT32_MAX ? (int64_t)(NONE - index) : 0; }

static gk_value value_of(const reference *r, size_t index) {
  if (constant_of(index)) return (gk_value){.i64 = constant_of(index)};
  const place *p = &r->places[index];
  if (p->unit) return (gk_value){.i64 = (int64_t)(r->places[p->buffer].shown.bytes / p->unit)};
  if (p->loop != NONE) return (gk_value){.ptr = &r->lines[p->loop].pass};
  return p->shown.value;
}

static int32_t int_at(const reference *r, size_t index, size_t offset) {
  int32_t value;
  memcpy(&value, (const char *)value_of(r, index).ptr + offset, sizeof value);
  return value;
}

static int64_t count_of(const reference *r, size_t index, size_t offset) {
  if (index == NONE) return 1;
  if (constant_of(index)) return constant_of(index);
  switch (r->places[index].shown.desc->type) {
  case GK_PTR: return int_at(r, index, offset);
  case GK_I32: return value_of(r, index).i32;
  case GK_U32: return value_of(r, index).u32;
  default: return value_of(r, index).i64;
  }
}

/* The first of a launch counts. memory: the place that has too little, or NONE: there are too many in any case. */
static void refuse_count(reference *r, const line *l, size_t memory, int64_t count) {
  if (r->failed) return;
  r->failed = true;
  r->bad = (reference_bad){(size_t)(l - r->lines), memory, count, r->sections != 0};
}

static void add_up(const char *element, void *to, const void *sum) {
  if (strcmp(element, "float") == 0) *(float *)to += *(const float *)sum;
  else if (strcmp(element, "double") == 0) *(double *)to += *(const double *)sum;
  else *(uint32_t *)to += *(const uint32_t *)sum;
}

static void run_kernel(reference *r, const line *l) { /* 12 */
  const gk_kernel *kernel = l->task->kernel;
  gk_range range = {.extent = {1, 1, 1}};
  int64_t count = 1, extent[3];
  for (int d = 0; d < 3; ++d) extent[d] = count_of(r, l->items[d], d == 0 ? l->task->offset : 0);
  if (extent[0] <= 0 || extent[1] <= 0 || extent[2] <= 0) return;
  for (int d = 0; d < 3 && !r->failed; ++d) {
    if (extent[d] > INT32_MAX / count) refuse_count(r, l, NONE, extent[0]);
    else count *= extent[d];
    range.extent[d] = (uint32_t)extent[d];
  }
  if (!kernel->host) r->failed = true;
  if (r->failed) return;
  range.end = (size_t)count;
  gk_value args[GK_MAX_ARGS];
  double sums[GK_MAX_ARGS] = {0}; /* zeroed room for any of the types that can be summed */
  for (size_t k = 0; k < l->arg_count; ++k) {
    args[k] = value_of(r, l->args[k]);
    if (kernel->params[k].access == GK_ACCESS_SUM) args[k].ptr = &sums[k];
  }
  kernel->host(args, range);
  for (size_t k = 0; k < l->arg_count; ++k)
    if (kernel->params[k].access == GK_ACCESS_SUM)
      add_up(kernel->params[k].element, value_of(r, l->args[k]).ptr, &sums[k]);
}

/* How many bytes a copy or fill has to move; 0, and the launch fails: more than its memory holds. */
static size_t bytes_of(reference *r, const line *l) { /* 12 */
  const int64_t count = count_of(r, l->items[0], 0);
  const uint32_t own = r->places[l->args[0]].shown.desc->element_bytes, unit = own ? own : 1;
  if (count <= 0) return 0;
  if (count > INT32_MAX) refuse_count(r, l, NONE, count);
  for (size_t k = 0; k < l->arg_count && !r->failed; ++k) {
    const size_t room = r->places[l->args[k]].shown.bytes, offset = k ? l->task->from_offset : l->task->offset;
    const bool known = r->places[l->args[k]].shown.owned || room || !value_of(r, l->args[k]).ptr;
    if (known && (offset > room || (uint64_t)count * unit > room - offset)) refuse_count(r, l, l->args[k], count);
  }
  return r->failed ? 0 : (size_t)count * unit;
}

static void run_copy_or_fill(reference *r, const line *l) {
  const size_t bytes = bytes_of(r, l);
  if (!bytes) return;
  char *to = (char *)value_of(r, l->args[0]).ptr + l->task->offset;
  if (l->task->op == GK_OP_COPY) memmove(to, (const char *)value_of(r, l->args[1]).ptr + l->task->from_offset, bytes);
  for (size_t k = 0; k < bytes && l->task->op == GK_OP_FILL; k += 4)
    memcpy(to + k, &l->task->pattern, bytes - k < 4 ? bytes - k : 4);
}

static void run_call(reference *r, const line *l) {
  gk_value args[GK_MAX_ARGS];
  for (size_t k = 0; k < l->arg_count; ++k) args[k] = value_of(r, l->args[k]);
  if (l->task->call(args, NULL) != GK_OK) r->failed = true;
}

static void run_task(reference *r, size_t at) {
  if (r->before) r->before(r->user, r, at);
  line *l = &r->lines[at];
  ++l->runs;
  switch (l->task->op) {
  case GK_OP_KERNEL: run_kernel(r, l); break;
  case GK_OP_COPY: case GK_OP_FILL: run_copy_or_fill(r, l); break;
  case GK_OP_CALL: case GK_OP_CALL_HOST: run_call(r, l); break; /* 14 */
  default: break;
  }
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void run_lines(reference *r, size_t from, size_t to);

static int32_t flag_of(const reference *r, size_t at) {
  return int_at(r, r->lines[at].flag, r->lines[at].task->offset);
}

/* A launch is on its way to a checkpoint within these lines. */
static bool awaits(const reference *r, size_t from, size_t to) {
  return r->target != NONE && r->target >= from && r->target < to;
}

static void run_loop(reference *r, size_t at) { /* 4, 5, 10, 11, 15 to 20 */
  line *l = &r->lines[at];
  reference_loop *loop = &r->loops[l->number];
  const bool resumed = awaits(r, at, l->end), repeats = l->task->op == GK_OP_REPEAT;
  if (!resumed) {
    l->entry = l->waits = 0;
    if (l->task->op == GK_OP_WHILE && !flag_of(r, at)) return;
  }
  if (repeats && !l->waits) {
    l->count = l->task->flag < 0 ? -(int64_t)l->task->flag : count_of(r, l->flag, l->task->offset);
    l->waits = resumed || l->count > 0;
    if (!l->waits) return;
  }
  for (;;) {
    if (r->before) r->before(r->user, r, at);
    l->pass = (int32_t)(uint32_t)l->entry;
    run_lines(r, at + 1, l->end);
    if (r->stopped || r->failed) return;
    ++loop->passes;
    ++l->entry;
    const uint32_t every = l->task->every, bound = l->task->max_iterations;
    if (every && l->entry % every && (!bound || l->entry < bound)) continue;
    r->stopped = r->cancelled;
    if (r->stopped) return;
    if (repeats ? (int64_t)l->entry >= l->count : !flag_of(r, at)) break;
    loop->hit_bound |= bound && l->entry >= bound;
    if (!bound || l->entry < bound) continue;
    if (!r->status.limit) r->status.limit = loop;
    break;
  }
  l->entry = l->waits = 0;
}

static void run_checkpoint(reference *r, size_t at) { /* 3, 11 */
  const line *l = &r->lines[at];
  if (r->target == at) r->target = NONE;
  run_lines(r, at + 1, l->end);
  if (r->failed) return;
  r->checkpoints[l->number].ran = true;
  if (r->stopped || l->flag == NONE) return;
  const bool yields = flag_of(r, at) != 0;
  r->stopped = yields || r->cancelled;
  if (!yields) return;
  r->status.yielded = l->label;
  r->status.yielded_name = l->name;
}

static void run_yield(reference *r, size_t at) { /* 13 */
  const line *l = &r->lines[at];
  if (r->target == at) r->target = NONE;
  else if (!r->stopped && r->target == NONE) {
    r->checkpoints[l->number].ran = r->stopped = true;
    r->status.yielded = l->label;
    r->status.yielded_name = l->name;
  }
}

static void run_if(reference *r, size_t at) { /* 5, 6 */
  const line *l = &r->lines[at];
  size_t first_end = l->otherwise == NONE ? l->end : l->otherwise;
  bool first = r->target == NONE ? flag_of(r, at) != 0 : awaits(r, at, first_end);
  if (first) run_lines(r, at + 1, first_end);
  else if (l->otherwise != NONE) run_lines(r, l->otherwise + 1, l->end);
}

static void run_switch(reference *r, size_t at) { /* 6 */
  int32_t value = r->target == NONE ? flag_of(r, at) : 0, index = 0;
  for (size_t k = at + 1; k < r->lines[at].end; k = r->lines[k].end + 1, ++index) {
    if (r->target == NONE ? index != value : !awaits(r, k, r->lines[k].end)) continue;
    run_lines(r, k + 1, r->lines[k].end);
    return;
  }
}

static void run_parallel(reference *r, size_t at) { /* 7, 11 */
  bool stopped = false;
  for (size_t k = at + 1; k < r->lines[at].end; k = r->lines[k].end + 1) {
    r->stopped = false;
    ++r->sections;
    run_lines(r, k + 1, r->lines[k].end);
    --r->sections;
    stopped = stopped || r->stopped;
  }
  r->stopped = stopped;
}

static void run_lines(reference *r, size_t from, size_t to) { /* 1, 2, 8, 13 */
  for (size_t k = from; k < to && !r->failed; ++k) {
    const gk_task *task = r->lines[k].task;
    bool live = !r->stopped && r->target == NONE;
    if (task->op == GK_OP_YIELD) {
      run_yield(r, k);
      continue;
    }
    if (!is_block(task->op)) {
      if (live || task->bits & GK_ALWAYS) run_task(r, k);
      continue;
    }
    size_t end = r->lines[k].end;
    if (live || (!r->stopped && awaits(r, k, end))) {
      switch (task->op) {
      case GK_OP_DO_WHILE: case GK_OP_WHILE: case GK_OP_REPEAT: run_loop(r, k); break;
      case GK_OP_CHECKPOINT: run_checkpoint(r, k); break;
      case GK_OP_IF: run_if(r, k); break;
      case GK_OP_SWITCH: run_switch(r, k); break;
      case GK_OP_PARALLEL: run_parallel(r, k); break;
      default: break;
      }
    }
    k = end;
  }
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static size_t find_checkpoint(const reference *r, int32_t label) {
  for (size_t k = 0; k < r->line_count; ++k)
    if (is_resumed_at(r->lines[k].task->op) && r->lines[k].label == label) return k;
  return NONE;
}

bool reference_launch(reference *r, int32_t label) {
  size_t target = label ? find_checkpoint(r, label) : NONE;
  if (label && target == NONE) return false;
  r->target = target;
  r->stopped = r->failed = false;
  r->bad = (reference_bad){NONE, NONE, 0, false};
  r->status.yielded = 0;
  r->status.yielded_name = "";
  r->status.limit = NULL;
  for (size_t k = 0; k < r->status.loop_count; ++k) r->loops[k].passes = r->loops[k].hit_bound = 0;
  for (size_t k = 0; k < r->status.checkpoint_count; ++k) r->checkpoints[k].ran = false;
  for (size_t k = 0; k < r->line_count && !label; ++k) r->lines[k].entry = r->lines[k].waits = 0;
  run_lines(r, 0, r->line_count);
  r->status.state = r->status.yielded ? GK_YIELDED : r->stopped ? GK_CANCELLED : GK_FINISHED;
  r->cancelled = false;
  return !r->failed;
}

const reference_bad *reference_bad_count(const reference *r) { return r->bad.line == NONE ? NULL : &r->bad; }
const reference_status *reference_last(const reference *r) { return &r->status; }
size_t reference_lines(const reference *r) { return r->line_count; }
const gk_task *reference_task(const reference *r, size_t at) { return r->lines[at].task; }
uint64_t reference_runs(const reference *r, size_t at) { return r->lines[at].runs; }

void reference_watch(reference *r, void (*before)(void *user, reference *r, size_t line), void *user) {
  r->before = before;
  r->user = user;
}

void reference_cancel(reference *r) { r->cancelled = true; }
