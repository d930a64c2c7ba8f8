/* Task lists from arbitrary bytes. Input comes in records of four bytes, so that a fuzzer can cut and join lists line
 * by line; a record is a task, a slot, a field of one of them, a new list, or something the host does (host.h). By
 * default the lists are put in order as they are read (blocks closed, arguments of the types that kernels take), so
 * that many are right; the first byte can turn that off, and single fields be anything. */
#ifndef WORLD_H
#define WORLD_H
#include "fuzz.h"

enum { LISTS = 6, TASKS = 32, SLOTS = 16, ACTIONS = 16, KERNELS = 8, OPEN = 70, MADE = 4 * TASKS };

/* Bits of the first byte. */
enum { AS_IT_COMES = 1, RESUMABLE = 2, TWO_THREADS = 4, RUN_OUT = 8, DEEP = 16 };

typedef struct record { uint8_t kind, a, b, c; } record;

typedef struct world {
  uint8_t bits, graph_bits, fail_at;
  uint32_t list_count;
  gk_list lists[LISTS];
  gk_task tasks[LISTS][MADE];
  gk_slot_desc slots[LISTS][SLOTS];
  gk_op open[OPEN];   /* blocks of the list at hand */
  uint32_t depth;
  gk_param params[KERNELS][GK_MAX_ARGS];
  gk_kernel kernels[KERNELS]; /* changed by records; in the list beside the constant ones */
  gk_code code;
  gk_source source;
  record actions[ACTIONS];
  uint32_t action_count;
} world;

static const char *const fuzz_names[] = {
    NULL, "", "a", "b", "int", "uint", "float", "double", "int32_t", "thing", "a \"quoted\\ \n name\x7f",
    "\xc3\xa4\xe2\x82\xac \xff\xc0\x80\xed\xa0\x80", "%s%n%d {task} </b> -> [label=x];",
    "a name that is so long that no message, no table and no picture has got room for it: and then it goes on, and on, "
    "and on, until everyone has stopped reading; and on, for nobody has said how long a name may be, and on and on and "
    "on and on and on and on and on and on and on and on and on and on and on and on and on and on",
};

static inline const char *name_of(uint8_t b) { return fuzz_names[b % GK_COUNT(fuzz_names)]; }

/* A number: small ones as they are, above them what lies at edges. */
static inline uint32_t number_of(uint8_t b) {
  static const uint32_t edges[] = {64,         65,         127,        128,        255,       256,
                                   4096,       65535,      65536,      1u << 24,   0x1000001, 0x3fffffff,
                                   0x40000000, 0x7ffffffc, 0x7ffffffe, 0x7fffffff, 1u << 31,  0x80000001,
                                   0xfffffff0, 0xfffffffc, 0xfffffffe, 0xffffffff};
  return b < 200 ? b % 64 : edges[(uint32_t)(b - 200) % GK_COUNT(edges)];
}

/* ---- kernels that can be run: see host.h for what they may touch ------------------------------------------------- */

void fuzz_first(const gk_value *args, gk_range items);
void fuzz_second(const gk_value *args, gk_range items);
void fuzz_fourth(const gk_value *args, gk_range items);
void fuzz_sum(const gk_value *args, gk_range items);
void fuzz_atomic(const gk_value *args, gk_range items);
void fuzz_idle(const gk_value *args, gk_range items);
gk_result fuzz_call(const gk_value *args, void *native);

#define FUZZ_INT(n, a) \
  {.name = n, .element = "int", .element_bytes = 4, .element_alignment = 4, .type = GK_PTR, .access = a}
static const gk_param one_out[] = {FUZZ_INT("x", GK_ACCESS_OUT)};
static const gk_param in_out[] = {FUZZ_INT("x", GK_ACCESS_IN), FUZZ_INT("y", GK_ACCESS_INOUT)};
static const gk_param summing[] = {FUZZ_INT("x", GK_ACCESS_IN), FUZZ_INT("r", GK_ACCESS_SUM)};
static const gk_param atomics[] = {FUZZ_INT("r", GK_ACCESS_ATOMIC)};
static const gk_param valued[] = {
    {.name = "n", .element = "int", .element_bytes = 4, .element_alignment = 4, .type = GK_I32},
    {.name = "f", .element = "float", .element_bytes = 4, .element_alignment = 4, .type = GK_F32},
    {.name = "s", .element = "thing", .element_bytes = 24, .element_alignment = 8, .type = GK_BYTES},
    FUZZ_INT("y", GK_ACCESS_INOUT)};
static const gk_kernel sound_kernels[] = {
    {.name = "set", .params = one_out, .param_count = 1, .host = fuzz_first},
    {.name = "mix", .params = in_out, .param_count = 2, .host = fuzz_second},
    {.name = "total", .params = summing, .param_count = 2, .host = fuzz_sum},
    {.name = "count", .params = atomics, .param_count = 1, .host = fuzz_atomic},
    {.name = "apply", .params = valued, .param_count = 4, .host = fuzz_fourth},
    {.name = "plane", .params = one_out, .param_count = 1, .dimensions = 2, .host = fuzz_first},
    {.name = "space", .params = one_out, .param_count = 1, .dimensions = 3, .host = fuzz_first},
    {.name = "nothing", .host = fuzz_idle},
};

/* ---- slots ------------------------------------------------------------------------------------------------------- */

static const gk_slot_desc usual_slots[] = {
    {.type = GK_PTR, .name = "flag", .element = "int", .element_bytes = 4, .count = 1},
    {.type = GK_PTR, .name = "flags", .element = "int", .element_bytes = 4, .count = 16},
    {.type = GK_PTR, .name = "x", .element = "int", .element_bytes = 4, .count = 40},
    {.type = GK_PTR, .name = "y", .element = "int", .element_bytes = 4},
    {.type = GK_I32, .name = "n", .element = "int", .element_bytes = 4, .bits = GK_HAS_VALUE, .value = {.i32 = 5}},
    {.type = GK_PTR, .name = "counts", .element = "int", .element_bytes = 4, .count = 4},
    {.type = GK_F32, .name = "f", .element = "float", .element_bytes = 4, .bits = GK_HAS_VALUE, .value = {.f32 = 1.5f}},
    {.type = GK_BYTES, .name = "s", .element = "thing", .element_bytes = 24},
    {.type = GK_I64, .name = "m", .bits = GK_HAS_VALUE, .value = {.i64 = 3}},
    {.type = GK_PTR, .name = "raw", .count = 33},
    {.type = GK_U32, .name = "u", .bits = GK_HAS_VALUE, .value = {.u32 = 1}},
    {.type = GK_PTR, .name = "d", .element = "double", .element_bytes = 8, .count = 7},
    {.type = GK_HOST_PTR, .name = "h"},
    {.type = GK_F64, .name = "g"},
    {.type = GK_PTR, .name = "things", .element = "thing", .element_bytes = 24, .count = 2},
    {.type = GK_PTR, .name = "z", .element = "int", .element_bytes = 4, .count = 40},
};
_Static_assert(SLOTS == GK_COUNT(usual_slots), "a table of every usual slot fits");

static inline gk_slot_desc usual_slot(uint32_t which, gk_slot number) {
  gk_slot_desc slot = usual_slots[which % SLOTS];
  slot.slot = number;
  return slot;
}

static inline void set_slot_field(gk_slot_desc *slot, record r) {
  uint32_t value = number_of(r.b) ^ (uint32_t)r.c << 8;
  switch (r.a % 10) {
  case 0: slot->slot = (gk_slot)value; break;
  case 1: slot->type = (gk_type)value; break;
  case 2: slot->name = name_of(r.b); break;
  case 3: slot->element = name_of(r.b); break;
  case 4: slot->element_bytes = value; break;
  case 5: slot->bits = value; break;
  case 6: slot->value.i64 = (int64_t)((uint64_t)value << (r.c & 32)); break;
  case 7: slot->count = (size_t)value << (r.c & 48); break;
  case 8: slot->reserved[r.c & 1] = value; break;
  default: slot->bits ^= GK_HAS_VALUE;
  }
}

/* The n-th slot of the list's table that is of the type, or what comes instead. */
static inline gk_slot slot_like(const world *w, uint32_t list, gk_type type, const char *element, uint32_t n) {
  const gk_list *l = &w->lists[list];
  gk_slot fitting[SLOTS];
  uint32_t count = 0;
  for (size_t k = 0; k < l->slot_count && k < SLOTS && l->slots; ++k) {
    const gk_slot_desc *slot = &l->slots[k];
    if (slot->type == type && (!element || !slot->element || strcmp(slot->element, element) == 0))
      fitting[count++] = slot->slot;
  }
  return count ? fitting[n % count] : (gk_slot)n;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static inline gk_op innermost(const world *w) { return w->depth ? w->open[w->depth - 1] : GK_OP_NONE; }

static inline bool is_inside(const world *w, gk_op op) {
  for (uint32_t k = 0; k < w->depth; ++k)
    if (w->open[k] == op) return true;
  return false;
}

static inline void append(world *w, uint32_t list, gk_task task) {
  gk_list *l = &w->lists[list];
  if (l->task_count == MADE) return;
  w->tasks[list][l->task_count++] = task;
  if (task.op == GK_OP_END && w->depth) --w->depth;
  else if (task.op >= GK_OP_DO_WHILE && task.op < GK_OP_END && task.op != GK_OP_ELSE && w->depth < OPEN)
    w->open[w->depth++] = task.op;
  else if (task.op == GK_OP_ELSE && w->depth) w->open[w->depth - 1] = GK_OP_ELSE;
}

/* Whether the task may stand here; adds the CASE or SECTION that it needs around it. */
static inline bool make_place(world *w, uint32_t list, gk_op op) {
  if (op == GK_OP_NONE || op > GK_OP_END || (op == GK_OP_END && !w->depth)) return false;
  if (op == GK_OP_ELSE) return innermost(w) == GK_OP_IF;
  if (op == GK_OP_CASE) return innermost(w) == GK_OP_SWITCH;
  if (op == GK_OP_SECTION) return innermost(w) == GK_OP_PARALLEL;
  const bool pauses = op == GK_OP_CHECKPOINT || op == GK_OP_YIELD;
  if (pauses && (is_inside(w, GK_OP_CHECKPOINT) || is_inside(w, GK_OP_PARALLEL))) return false;
  if (op != GK_OP_END && innermost(w) == GK_OP_SWITCH) append(w, list, (gk_task){.op = GK_OP_CASE});
  if (op != GK_OP_END && innermost(w) == GK_OP_PARALLEL) append(w, list, (gk_task){.op = GK_OP_SECTION});
  return op == GK_OP_END || w->depth < ((w->bits & DEEP) ? OPEN - 2 : 12);
}

static inline void close_blocks(world *w, uint32_t list) {
  while (!(w->bits & AS_IT_COMES) && w->depth && w->lists[list].task_count < MADE)
    append(w, list, (gk_task){.op = GK_OP_END});
  w->depth = 0;
}

static inline void fill_args(world *w, uint32_t list, gk_task *task, record r) {
  const gk_kernel *kernel = task->kernel;
  for (uint32_t k = 0; k < kernel->param_count && k < GK_MAX_ARGS && kernel->params; ++k) {
    const gk_param *param = &kernel->params[k];
    task->args[k] = slot_like(w, list, param->type, param->element, (k & 1 ? r.c : r.b) + k);
  }
}

/* As records have it. */
static inline gk_op op_of(record r) {
  static const gk_op ops[16] = {GK_OP_NONE, GK_OP_KERNEL, GK_OP_COPY, GK_OP_FILL, GK_OP_CALL, GK_OP_LIST,
                                GK_OP_DO_WHILE, GK_OP_WHILE, GK_OP_IF, GK_OP_ELSE, GK_OP_SWITCH, GK_OP_CASE,
                                GK_OP_CHECKPOINT, GK_OP_PARALLEL, GK_OP_SECTION, GK_OP_END};
  const gk_op op = ops[r.kind & 15];
  if (op == GK_OP_WHILE && r.kind >> 4 > 5) return GK_OP_REPEAT;
  if (r.kind >> 4 != 6) return op;
  return op == GK_OP_CHECKPOINT ? GK_OP_YIELD : op == GK_OP_CALL ? GK_OP_CALL_HOST : op;
}

static inline gk_task task_of(world *w, uint32_t list, record r) {
  const gk_op op = op_of(r);
  const uint32_t variant = r.kind >> 4;
  gk_task task = {.op = op, .name = r.c & 128 ? name_of(r.c) : NULL};
  const bool has_flag = op >= GK_OP_DO_WHILE && op <= GK_OP_CHECKPOINT && op != GK_OP_ELSE && op != GK_OP_CASE;
  const gk_slot ints = slot_like(w, list, GK_PTR, "int", r.b), number = slot_like(w, list, GK_I32, NULL, r.c);
  switch (op) {
  case GK_OP_KERNEL:
    task.kernel = r.a & 128 ? &w->kernels[r.a % KERNELS] : &sound_kernels[r.a % GK_COUNT(sound_kernels)];
    fill_args(w, list, &task, r);
    if (variant == 1) task.items[0] = number;
    if (variant == 2) task.items[0] = ints;
    if (variant == 3) task.items[0] = task.items[1] = number;
    break;
  case GK_OP_COPY: case GK_OP_FILL:
    task.args[0] = slot_like(w, list, GK_PTR, "int", r.a);
    if (op == GK_OP_COPY) task.args[1] = slot_like(w, list, GK_PTR, "int", r.c);
    task.items[0] = variant == 1 ? number : variant == 2 ? ints : 0;
    task.pattern = op == GK_OP_FILL ? (uint32_t)(r.b & 3) : 0;
    break;
  case GK_OP_CALL: case GK_OP_CALL_HOST:
    task.call = fuzz_call;
    for (uint32_t k = 0; k < (r.a & 3u); ++k) task.args[k] = (gk_slot)(1 + (r.b + k) % SLOTS);
    break;
  case GK_OP_LIST:
    task.list = &w->lists[w->bits & AS_IT_COMES ? r.a % LISTS : list + 1 + r.a % (LISTS - list)];
    if (task.list == &w->lists[LISTS]) task.list = &w->lists[LISTS - 1];
    for (uint32_t k = 0; k < (r.b & 3u); ++k) task.args[k] = (gk_slot)(1 + k);
    task.label = r.c & 64 ? (int32_t)number_of(r.b) : 100 * (int32_t)(1 + w->lists[list].task_count);
    break;
  default: break;
  }
  if (op == GK_OP_YIELD) task.label = 1 + (int32_t)w->lists[list].task_count;
  if (has_flag) {
    task.flag = op == GK_OP_CHECKPOINT && variant == 3 ? 0 : slot_like(w, list, GK_PTR, "int", r.a);
    task.offset = variant == 2 ? 4u * (r.b & 7u) : 0;
    if (op == GK_OP_CHECKPOINT || variant == 4) task.label = 1 + (int32_t)w->lists[list].task_count;
    if (op == GK_OP_REPEAT && r.c & 1) task.flag = -1 - (r.a & 7), task.offset = 0;
    if (op >= GK_OP_DO_WHILE && op <= GK_OP_REPEAT) task.max_iterations = r.b & 128 ? 0 : 1 + (r.b & 7u);
    if (op == GK_OP_DO_WHILE || op == GK_OP_WHILE) task.every = r.b >> 4 & 3u;
  }
  if (variant == 5 && op <= GK_OP_CALL_HOST && (!w->depth || w->bits & AS_IT_COMES)) task.bits = GK_ALWAYS;
  return task;
}

static inline void add_task(world *w, uint32_t list, record r) {
  if (w->lists[list].task_count >= TASKS) return;
  if (!(w->bits & AS_IT_COMES) && !make_place(w, list, op_of(r))) return;
  if (!(w->bits & AS_IT_COMES) && op_of(r) == GK_OP_LIST && list + 1 == LISTS) return;
  append(w, list, task_of(w, list, r));
}

static inline void set_task_field(world *w, gk_task *task, record r) {
  uint32_t value = number_of(r.b) ^ (uint32_t)r.c << 8;
  switch (r.a % 32) {
  case 0: task->op = (gk_op)value; break;
  case 1: task->bits = value; break;
  case 2: task->name = name_of(r.b); break;
  case 3: task->kernel = r.b & 64 ? NULL : &w->kernels[r.b % KERNELS]; break;
  case 4: task->call = r.b & 1 ? fuzz_call : NULL; break;
  case 5: task->list = r.b & 64 ? NULL : &w->lists[r.b % LISTS]; break;
  case 6: case 7: case 8: task->items[r.a % 32 - 6] = (gk_slot)value; break;
  case 9: task->flag = (gk_slot)value; break;
  case 10: task->offset = value; break;
  case 11: task->from_offset = value; break;
  case 12: task->pattern = value; break;
  case 13: task->max_iterations = value; break;
  case 14: task->label = (int32_t)value; break;
  case 15: task->reserved[r.c % 3] = value; break;
  case 16: task->every = value; break;
  default: task->args[r.a % 16] = (gk_slot)value;
  }
}

/* ---- kernels, and a list's own fields ---------------------------------------------------------------------------- */

static inline void set_kernel_field(world *w, record r) {
  gk_kernel *kernel = &w->kernels[r.a & 7];
  gk_param *param = &w->params[r.a & 7][r.b & 15];
  const uint32_t value = number_of(r.c);
  switch (r.a >> 3 & 31) {
  case 0: kernel->name = name_of(r.c); break;
  case 1: kernel->params = r.c & 1 ? w->params[r.a & 7] : NULL; break;
  case 2: kernel->param_count = value; break;
  case 3: kernel->dimensions = value; break;
  case 4: kernel->source = r.c & 1 ? &w->source : NULL; break;
  case 5: kernel->host = r.c & 1 ? fuzz_idle : NULL; break;
  case 6: kernel->cuda = r.c & 1 ? &w->code : NULL; break;
  case 7: kernel->vulkan = r.c & 1 ? &w->code : NULL; break;
  case 8: kernel->reserved[r.b & 1] = value; break;
  case 9: param->name = name_of(r.c); break;
  case 10: param->element = name_of(r.c); break;
  case 11: param->element_bytes = value; break;
  case 12: param->element_alignment = 1u << (value & 15); break; /* of a type: a power of two */
  case 13: param->type = (gk_type)value; break;
  case 14: param->access = (gk_access)value; break;
  case 15: w->source.text = name_of(r.c); break;
  case 16: w->source.file = name_of(r.c); break;
  case 17: w->source.use_count = value; break;
  case 18: w->code.text = name_of(r.c); break;
  case 19: w->code.image = name_of(r.c); break;
  case 20: w->code.image_bytes = value; break;
  case 21: w->code.block[r.b % 3] = value; break;
  case 22: w->code.reserved[r.b % 3] = value; break;
  case 23: kernel->hip = r.c & 1 ? &w->code : NULL; break;
  default: w->code.function = r.c & 1 ? w : NULL;
  }
  /* The one promise: an array is as long as its count says, unless that is refused by itself. */
  if (kernel->params == sound_kernels[r.a & 7].params && kernel->param_count > sound_kernels[r.a & 7].param_count)
    kernel->params = w->params[r.a & 7];
}

static inline void set_list_field(world *w, gk_list *list, record r) {
  static const size_t hostile[] = {GK_COUNT(w->tasks[0]) + ((size_t)1 << 24), SIZE_MAX, SIZE_MAX / sizeof(gk_task) + 1,
                                   (size_t)1 << 32};
  switch (r.a % 8) {
  case 0: list->abi = number_of(r.b); break;
  case 1: list->name = name_of(r.b); break;
  case 2: list->tasks = NULL; break;
  case 3: list->slots = NULL; break;
  case 4: list->task_count = hostile[r.b & 3]; break; /* more than 2^24: refused before anything is read */
  case 5: list->slot_count = hostile[r.b & 3]; break;
  case 6: list->slot_count = r.b % (SLOTS + 1u) < list->slot_count ? r.b % (SLOTS + 1u) : list->slot_count; break;
  default: { /* the table of a list before this one */
    const gk_list *other = &w->lists[r.b % w->list_count];
    list->slots = other->slots;
    list->slot_count = other->slot_count;
  }
  }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static inline void begin_list(world *w, record r) {
  static const char *const names[LISTS] = {"outer", "second", "third", "fourth", "fifth", "sixth"};
  const uint32_t at = w->list_count++;
  for (uint32_t k = 0; k < SLOTS; ++k) w->slots[at][k] = usual_slot(k + (r.b & 15u), (gk_slot)k + 1);
  w->lists[at] = (gk_list){GK_ABI, names[at], w->tasks[at], 0, w->slots[at], r.a & 1 ? r.a >> 1 & 15u : SLOTS};
}

static inline void world_read(world *w, bytes *in) {
  memset(w, 0, sizeof *w);
  w->bits = take(in);
  w->graph_bits = take(in);
  w->fail_at = take(in);
  for (uint32_t k = 0; k < KERNELS; ++k) {
    w->kernels[k] = sound_kernels[k];
    w->kernels[k].host = fuzz_idle; /* any other would believe its parameters */
    for (uint32_t j = 0; j < GK_MAX_ARGS; ++j) w->params[k][j] = in_out[1];
    memcpy(w->params[k], sound_kernels[k].params ? sound_kernels[k].params : in_out,
           (sound_kernels[k].param_count ? sound_kernels[k].param_count : 2) * sizeof(gk_param));
  }
  w->source = (gk_source){.file = "file.c", .text = "GK_SOURCE(text)\n", .line = 1};
  w->code = (gk_code){.text = "text"};
  begin_list(w, (record){0});
  while (in->at < in->end) {
    const record r = {take(in), take(in), take(in), take(in)};
    const uint32_t list = w->list_count - 1;
    gk_list *l = &w->lists[list];
    gk_task *last = l->task_count && l->task_count <= MADE ? &w->tasks[list][l->task_count - 1] : NULL;
    if (r.kind < 0x60 && l->task_count <= MADE && l->tasks) add_task(w, list, r);
    else if (r.kind < 0x80 && last) set_task_field(w, last, r);
    else if (r.kind < 0x90 && r.kind >= 0x80) w->slots[list][r.kind & 15] = usual_slot(r.a, (gk_slot)(r.kind & 15) + 1);
    else if (r.kind < 0xa0 && r.kind >= 0x90) set_slot_field(&w->slots[list][r.kind & 15], r);
    else if (r.kind < 0xb0 && r.kind >= 0xa0) set_kernel_field(w, r);
    else if (r.kind < 0xb8 && r.kind >= 0xb0) set_list_field(w, l, r);
    else if (r.kind < 0xc0 && r.kind >= 0xb8 && w->list_count < LISTS) {
      close_blocks(w, list);
      begin_list(w, r);
    } else if (r.kind >= 0xc0 && w->action_count < ACTIONS) w->actions[w->action_count++] = r;
  }
  if (w->lists[w->list_count - 1].task_count <= MADE) close_blocks(w, w->list_count - 1);
  while (w->list_count < LISTS) begin_list(w, (record){0});
}

static inline bool has_loops(const world *w) {
  for (uint32_t k = 0; k < LISTS; ++k)
    for (size_t j = 0; j < MADE; ++j)
      if (w->tasks[k][j].op >= GK_OP_DO_WHILE && w->tasks[k][j].op <= GK_OP_REPEAT) return true;
  return false;
}

/* How many lines the list has as composed, up to a limit; lists in themselves count as endless. */
static inline uint64_t composed_lines(const gk_list *list, uint32_t depth) {
  enum { MANY = 1 << 26 };
  uint64_t lines = 0;
  if (depth > LISTS || !list->tasks || list->task_count > MADE) return depth > LISTS ? MANY : 0;
  for (size_t k = 0; k < list->task_count && lines < MANY; ++k)
    lines += list->tasks[k].op == GK_OP_LIST && list->tasks[k].list ? composed_lines(list->tasks[k].list, depth + 1)
                                                                    : 1;
  return lines;
}
#endif
