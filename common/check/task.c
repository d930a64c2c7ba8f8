/* The fields that a line of each kind needs: its arguments, items, flag and others. */
#include "check/task.h"
#include "base/error.h"
#include "base/name.h"
#include "base/registry.h"
#include "check/kernel.h"
#include "list/line_name.h"
#include "list/measure.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which fields an op uses; any other field that is set is reported ------------------------------------------ */

enum {
  KERNEL = 1 << 0, CALL = 1 << 1, LIST = 1 << 2, ITEMS = 1 << 3, ITEMS_1 = 1 << 4, ITEMS_2 = 1 << 5, ARGS = 1 << 6,
  FLAG = 1 << 7, OFFSET = 1 << 8, FROM_OFFSET = 1 << 9, PATTERN = 1 << 10, MAX_ITERATIONS = 1 << 11, LABEL = 1 << 12,
  EVERY = 1 << 13,
};

static const char *const field_names[] = {
    ".kernel", ".call",   ".list",        ".items[0]", ".items[1]",       ".items[2]", ".args",
    ".flag",   ".offset", ".from_offset", ".pattern",  ".max_iterations", ".label",
    ".every",
};

static const uint32_t used_fields[] = {
    [GK_OP_KERNEL] = KERNEL | ITEMS | ITEMS_1 | ITEMS_2 | ARGS | OFFSET,
    [GK_OP_COPY] = ITEMS | ARGS | OFFSET | FROM_OFFSET,
    [GK_OP_FILL] = ITEMS | ARGS | OFFSET | PATTERN,
    [GK_OP_CALL] = CALL | ARGS,
    [GK_OP_CALL_HOST] = CALL | ARGS,
    [GK_OP_LIST] = LIST | ARGS | LABEL,
    [GK_OP_DO_WHILE] = FLAG | OFFSET | MAX_ITERATIONS | EVERY | LABEL,
    [GK_OP_WHILE] = FLAG | OFFSET | MAX_ITERATIONS | EVERY | LABEL,
    [GK_OP_REPEAT] = FLAG | OFFSET | MAX_ITERATIONS | LABEL,
    [GK_OP_IF] = FLAG | OFFSET,
    [GK_OP_SWITCH] = FLAG | OFFSET,
    [GK_OP_CHECKPOINT] = FLAG | OFFSET | LABEL,
    [GK_OP_YIELD] = LABEL,
    [GK_OP_END] = 0,
};

static uint32_t set_fields(const gk_task *task) {
  return (task->kernel ? KERNEL : 0u) | (task->call ? CALL : 0u) | (task->list ? LIST : 0u) |
         (task->items[0] ? ITEMS : 0u) | (task->items[1] ? ITEMS_1 : 0u) | (task->items[2] ? ITEMS_2 : 0u) |
         (task->args[0] ? ARGS : 0u) | (task->flag ? FLAG : 0u) | (task->offset ? OFFSET : 0u) |
         (task->from_offset ? FROM_OFFSET : 0u) | (task->pattern ? PATTERN : 0u) |
         (task->max_iterations ? MAX_ITERATIONS : 0u) | (task->label ? LABEL : 0u) |
         (task->every ? EVERY : 0u);
}

static void check_fields(gki_checker *c, const gk_task *task) {
  uint32_t unused = set_fields(task) & ~used_fields[task->op];
  for (uint32_t k = 0; unused; ++k, unused >>= 1)
    if (unused & 1) gki_report(c, GKI_FIELD_UNUSED, field_names[k], gki_op_name(task->op), "", NULL);
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

/* Element types of numbers other than int32. A struct may contain an int32. */
static bool is_other_number(const char *element) {
  static const char *const others[] = {"bool",    "char",    "short",    "int8_t",
                                       "uint8_t", "int16_t", "uint16_t", "uint64_t"};
  const gk_type type = gki_number_type(element);
  if (type != GK_NO_TYPE) return type != GK_I32 && type != GK_U32;
  for (size_t k = 0; element && k < GK_COUNT(others); ++k)
    if (strcmp(element, others[k]) == 0) return true;
  return false;
}

typedef struct wanted {
  const char *name; /* the argument's name in a message */
  const char *element;
  uint32_t element_bytes;
  uint32_t types; /* a bit for each gk_type that is allowed */
} wanted;

enum { ANY = (1 << (GK_HOST_PTR + 1)) - (1 << GK_PTR), MEMORY = 1 << GK_PTR, READABLE = 1 << GK_PTR | 1 << GK_BYTES,
       COUNTS = 1 << GK_I32 | 1 << GK_U32 | 1 << GK_I64 };

static const char *types_word(gki_checker *c, uint32_t types) {
  if (types == READABLE) return "GK_PTR or GK_BYTES";
  gk_type type = GK_PTR;
  while (!(types >> type & 1)) ++type;
  return gki_format_type(c, type);
}

static bool same_element(const char *a, const char *b) {
  return a == b || strcmp(a, b) == 0 || (gki_number_type(a) && gki_number_type(a) == gki_number_type(b));
}

static void check_element(gki_checker *c, const wanted *want, const gk_slot_desc *desc) {
  bool named = want->element && desc->element;
  if (named && !same_element(want->element, desc->element)) {
    const char *found = gki_format_name(c, desc->element);
    gki_report(c, GKI_ARGUMENT_ELEMENT, gki_format_name(c, want->name), gki_format_name(c, want->element),
               gki_format_desc(c, desc), found, NULL);
    return;
  }
  /* With type names, the sizes must be equal; without, a struct must be large enough. */
  bool differs = named ? want->element_bytes != desc->element_bytes && want->element_bytes && desc->element_bytes
                       : desc->type == GK_BYTES && desc->element_bytes < want->element_bytes;
  if (differs)
    gki_report(c, GKI_ARGUMENT_SIZE, gki_format_name(c, want->name),
               gki_format_count(c, want->element_bytes, "byte"), gki_format_desc(c, desc),
               gki_format_int(c, desc->element_bytes), NULL);
}

/* The slot's entry, if its type is allowed. */
static const gk_slot_desc *check_argument(gki_checker *c, const wanted *want, gk_slot slot) {
  const gk_slot_desc *desc = gki_desc_of(c, slot);
  if (slot < 0) {
    gki_report(c, GKI_ARGUMENT_ITEMS, gki_format_name(c, want->name), gki_format_int(c, -(int64_t)slot), NULL);
    return NULL;
  }
  if (!desc) {
    gki_report(c, GKI_ARGUMENT_UNKNOWN, gki_format_name(c, want->name), gki_format_int(c, slot), NULL);
    return NULL;
  }
  if (desc->type <= GK_NO_TYPE || desc->type > GK_HOST_PTR) return NULL; /* reported with the table */
  if (!(want->types >> desc->type & 1)) {
    const char *name = gki_format_name(c, want->name), *at = gki_format_desc(c, desc);
    if (desc->type == GK_HOST_PTR) gki_report(c, GKI_HOST_POINTER, name, at, NULL);
    else
      gki_report(c, GKI_ARGUMENT_TYPE, name, types_word(c, want->types), at, gki_format_type(c, desc->type),
                 NULL);
    return NULL;
  }
  if ((desc->type == GK_PTR || desc->type == GK_BYTES) && want->types != ANY) check_element(c, want, desc);
  return desc;
}

static bool check_count(gki_checker *c, const gk_task *task, const char *what, uint32_t count) {
  uint32_t found = gki_arg_count(task);
  if (found == count) return true;
  gki_report(c, GKI_ARGUMENT_COUNT, what, gki_format_count(c, count, "argument"), gki_format_int(c, found),
             NULL);
  return false;
}

static void check_gap(gki_checker *c, const gk_task *task, uint32_t count) {
  for (uint32_t k = count; k < GK_MAX_ARGS; ++k) {
    if (!task->args[k]) continue;
    gki_report(c, GKI_ARGUMENT_GAP, gki_format_int(c, k), gki_format_int(c, task->args[k]), NULL);
    return;
  }
}

static void check_aligned(gki_checker *c, const gk_task *task) {
  if (task->offset % 4) gki_report(c, GKI_OFFSET_UNALIGNED, gki_format_int(c, task->offset), NULL);
}

/* A constant of GK_ITEMS, which the compiler has checked unless it was written as a number. */
static void check_constant(gki_checker *c, gk_slot items) {
  if (items == INT32_MIN) gki_report(c, GKI_ITEMS_RANGE, gki_format_int(c, -(int64_t)items), NULL);
}

/* Whether the number of items is read on the device. */
static bool check_items(gki_checker *c, const gk_task *task, uint32_t axis) {
  static const char *const names[] = {"x", "y", "z"};
  gk_slot slot = task->items[axis];
  if (slot < 0) check_constant(c, slot);
  if (slot <= 0) return false;
  const gk_slot_desc *desc = gki_desc_of(c, slot);
  if (!desc) {
    const char *number = gki_format_int(c, slot);
    gki_report(c, GKI_ITEMS_UNKNOWN, names[axis], number, number, NULL);
    return true;
  }
  switch (desc->type) {
  case GK_PTR:
    if (is_other_number(desc->element))
      gki_report(c, GKI_ITEMS_ELEMENT, names[axis], gki_format_desc(c, desc), gki_format_name(c, desc->element),
                 NULL);
    return true;
  case GK_I32: case GK_U32: case GK_I64: return false;
  case GK_F32: case GK_F64: case GK_BYTES: case GK_HOST_PTR:
    gki_report(c, GKI_ITEMS_TYPE, names[axis], gki_format_desc(c, desc), gki_format_type(c, desc->type), NULL);
    return true;
  default: return true; /* reported with the table */
  }
}

static void check_flag(gki_checker *c, const gk_task *task) {
  if (!task->flag) {
    if (task->op != GK_OP_CHECKPOINT) gki_report(c, GKI_FLAG_MISSING, gki_op_name(task->op), NULL);
    else if (task->offset)
      gki_report(c, GKI_FIELD_UNUSED, ".offset", gki_op_name(task->op), " without a flag", NULL);
    return;
  }
  const gk_slot_desc *desc = gki_desc_of(c, task->flag);
  if (!desc) gki_report(c, GKI_FLAG_UNKNOWN, gki_format_int(c, task->flag), NULL);
  else if (desc->type > GK_PTR && desc->type <= GK_HOST_PTR)
    gki_report(c, GKI_FLAG_TYPE, gki_format_desc(c, desc), gki_format_type(c, desc->type), NULL);
  else if (is_other_number(desc->element))
    gki_report(c, GKI_FLAG_ELEMENT, gki_format_desc(c, desc), gki_format_name(c, desc->element), NULL);
  check_aligned(c, task);
}

/* A constant is a negative number. */
static void check_repeat(gki_checker *c, const gk_task *task) {
  const gk_slot_desc *desc = gki_desc_of(c, task->flag);
  const bool is_constant = task->flag < 0 && task->flag >= -INT32_MAX;
  if (!task->flag) gki_report(c, GKI_COUNT_MISSING, NULL);
  else if (!desc && !is_constant) {
    const char *number = gki_format_int(c, task->flag);
    gki_report(c, GKI_COUNT_UNKNOWN, number, number, NULL);
  } else if (desc && desc->type > GK_I64 && desc->type <= GK_HOST_PTR) {
    gki_report(c, GKI_COUNT_TYPE, gki_format_desc(c, desc), gki_format_type(c, desc->type), NULL);
  } else if (desc && desc->type == GK_PTR && is_other_number(desc->element)) {
    gki_report(c, GKI_COUNT_ELEMENT, gki_format_desc(c, desc), gki_format_name(c, desc->element), NULL);
  }
  if (desc && desc->type == GK_PTR) check_aligned(c, task);
  else if (task->offset && (desc || !task->flag || is_constant))
    gki_report(c, GKI_FIELD_UNUSED, ".offset", "REPEAT", " unless a GK_PTR has its count", NULL);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static bool writes(gk_access access) { return access > GK_ACCESS_IN; }

/* The memory of `in` is restrict, and the memory of `sum` is written only at the task's end. */
static void check_alias(gki_checker *c, const gk_task *task, const uint32_t *memory, uint32_t count) {
  const gk_param *params = task->kernel->params;
  for (uint32_t k = 0; k < count; ++k) {
    if (!memory[k] || (params[k].access != GK_ACCESS_IN && params[k].access != GK_ACCESS_SUM)) continue;
    for (uint32_t j = 0; j < count; ++j) {
      if (j == k || memory[j] != memory[k] || !writes(params[j].access)) continue;
      if (params[j].access == GK_ACCESS_SUM && params[k].access == GK_ACCESS_SUM && j < k) continue;
      gki_report(c, GKI_ARGUMENT_ALIAS, gki_format_slot(c, task->args[k]), gki_format_name(c, params[k].name),
                 params[k].access == GK_ACCESS_IN ? "which may only be read" : "which is summed into",
                 gki_format_name(c, params[j].name), NULL);
    }
  }
}

/* The allowed types; 0: the kernel is wrong. */
static uint32_t types_of(const gk_param *param) {
  if (param->access == GK_ACCESS_IN) return READABLE;
  if (param->access != GK_ACCESS_VALUE) return MEMORY;
  return (unsigned)param->type <= GK_BYTES ? (1u << param->type) & ANY : 0;
}

static void check_params(gki_checker *c, const gk_task *task) {
  const gk_kernel *kernel = task->kernel;
  uint32_t memory[GK_MAX_ARGS] = {0}, count = gki_arg_count(task);
  if (kernel->param_count > GK_MAX_ARGS || (kernel->param_count && !kernel->params)) return;
  if (count != kernel->param_count) {
    static const char title[] = "the kernel ";
    char what[GKI_TEXT_BYTES];
    snprintf(what, sizeof what, "%s%.*s", title, (int)(sizeof what - sizeof title), gki_format_name(c, kernel->name));
    check_count(c, task, what, kernel->param_count);
    if (count > kernel->param_count) count = kernel->param_count;
  }
  for (uint32_t k = 0; k < count; ++k) {
    const gk_param *param = &kernel->params[k];
    const uint32_t types = types_of(param);
    wanted want = {param->name ? param->name : "without a name", param->element, param->element_bytes, types};
    if (!types) continue; /* reported with the kernel */
    const gk_slot_desc *desc = check_argument(c, &want, task->args[k]);
    if (desc && desc->type == GK_PTR) memory[k] = gki_slot_of(c->blocks, c->inclusion, task->args[k]);
  }
  check_alias(c, task, memory, count);
}

/* The grid of handwritten code is set before the launch. */
static void check_grid(gki_checker *c, const gk_task *task, uint32_t axis) {
  static const char *const names[] = {"x", "y", "z"};
  const gk_slot_desc *desc = task->items[axis] ? gki_desc_of(c, task->items[axis]) : NULL;
  if (desc && desc->type == GK_PTR)
    gki_report(c, GKI_ITEMS_BY_HAND, names[axis], gki_format_desc(c, desc), gki_format_name(c, task->kernel->name),
               c->backend->name, NULL);
}

/* Whether the task's macro has as many dimensions as the kernel. */
static bool check_dimensions(gki_checker *c, const gk_task *task, uint32_t dimensions) {
  static const char *const macros[] = {"GK_RUN", "GK_RUN_2D", "GK_RUN_3D"},
                    *const always[] = {"GK_RUN_ALWAYS", "a task with .bits = GK_ALWAYS | GK_DIMENSIONS(2)",
                                       "a task with .bits = GK_ALWAYS | GK_DIMENSIONS(3)"};
  const gk_kernel *kernel = task->kernel;
  const uint32_t given = task->bits / GK_DIMENSIONS(1) % 4;
  if (!kernel || kernel->dimensions > 3 || !given || given == dimensions) return true;
  gki_report(c, GKI_RUN_DIMENSIONS, gki_format_count(c, given, "dimension"), gki_format_name(c, kernel->name),
             gki_format_int(c, dimensions), (task->bits & GK_ALWAYS ? always : macros)[dimensions - 1], NULL);
  return false;
}

/* Whether the number of items along x is read on the device. */
static bool check_axes(gki_checker *c, const gk_task *task, uint32_t dimensions) {
  const bool is_handwritten = task->kernel && c->backend && gki_backend_code(c->backend, task->kernel);
  bool on_device = false;
  for (uint32_t k = 0; k < dimensions; ++k) {
    on_device |= check_items(c, task, k) && k == 0;
    if (is_handwritten) check_grid(c, task, k);
  }
  return on_device;
}

static void check_kernel_task(gki_checker *c, const gk_task *task) {
  const gk_kernel *kernel = task->kernel;
  if (kernel) {
    gki_check_kernel(c, kernel);
    check_params(c, task);
  } else {
    gki_report(c, GKI_KERNEL_NULL, NULL);
  }
  const uint32_t dimensions = !kernel || kernel->dimensions > 3 ? 3 : kernel->dimensions ? kernel->dimensions : 1;
  const bool fits = check_dimensions(c, task, dimensions);
  const bool on_device = check_axes(c, task, dimensions);
  for (uint32_t k = dimensions; k < 3 && fits; ++k)
    if (task->items[k])
      gki_report(c, GKI_ITEMS_DIMENSIONS, k == 1 ? "y" : "z", gki_format_name(c, kernel->name),
                 gki_format_count(c, dimensions, "dimension"), NULL);
  if (on_device) check_aligned(c, task);
  else if (task->offset)
    gki_report(c, GKI_FIELD_UNUSED, ".offset", "KERNEL", " unless a GK_PTR counts its items along x", NULL);
}

/* ---- copies and fills -------------------------------------------------------------------------------------------- */

static uint32_t unit_of(const gk_slot_desc *desc) { return desc->element_bytes ? desc->element_bytes : 1; }

static void check_copy(gki_checker *c, const gk_task *task) {
  check_items(c, task, 0);
  if (!check_count(c, task, "COPY", 2)) return;
  wanted want = {"to", NULL, 0, MEMORY};
  const gk_slot_desc *to = check_argument(c, &want, task->args[0]);
  want = (wanted){"from", to ? to->element : NULL, 0, READABLE};
  const gk_slot_desc *from = check_argument(c, &want, task->args[1]);
  if (!to || !from) return;
  uint32_t unit = unit_of(to);
  if (unit != unit_of(from))
    gki_report(c, GKI_COPY_UNITS, gki_format_count(c, unit, "byte"),
               gki_format_count(c, unit_of(from), "byte"), NULL);
  if (from->type == GK_BYTES && (task->items[0] || task->from_offset))
    gki_report(c, GKI_COPY_STRUCT, gki_format_desc(c, from), NULL);
  uint32_t slot = gki_slot_of(c->blocks, c->inclusion, task->args[0]);
  if (!slot || slot != gki_slot_of(c->blocks, c->inclusion, task->args[1])) return;
  int64_t apart = llabs((int64_t)task->offset - task->from_offset);
  if (apart == 0 || (!task->items[0] && apart < unit))
    gki_report(c, GKI_COPY_ONTO_ITSELF, gki_format_desc(c, to), gki_format_int(c, task->from_offset),
               gki_format_int(c, task->offset), NULL);
}

/* A pattern repeats every 4 bytes, for any type of elements. */
static void check_pattern(gki_checker *c, const gk_task *task, const gk_slot_desc *to) {
  const gk_type type = gki_number_type(to->element);
  const bool floats = task->bits & GK_FLOATS, is_float = type == GK_F32;
  const bool is_int64 = type == GK_I64 || (to->element && strcmp(to->element, "uint64_t") == 0);
  const char *with = NULL, *fix = NULL;
  if (floats && !is_float && (type || is_other_number(to->element))) {
    with = "with floats";
    fix = "use GK_FILL, or a kernel";
  } else if (!floats && task->pattern && (is_float || type == GK_F64 ||
                                          (is_int64 && task->pattern != UINT32_MAX))) {
    with = "each 4 bytes with one integer";
    fix = is_float ? "use GK_FILL_F32, or 0" : "use a kernel, or 0";
  }
  if (fix) gki_report(c, GKI_FILL_NUMBER, with, gki_format_desc(c, to), gki_format_name(c, to->element), fix, NULL);
}

static void check_fill(gki_checker *c, const gk_task *task) {
  check_items(c, task, 0);
  if (task->offset % 4) gki_report(c, GKI_FILL_OFFSET, gki_format_int(c, task->offset), NULL);
  if (!check_count(c, task, "FILL", 1)) return;
  const gk_slot_desc *to = check_argument(c, &(wanted){"to", NULL, 0, MEMORY}, task->args[0]);
  if (to && unit_of(to) % 4)
    gki_report(c, GKI_FILL_UNIT, gki_format_desc(c, to), gki_format_count(c, unit_of(to), "byte"), NULL);
  else if (to) check_pattern(c, task, to);
}

/* ---- calls and included lists ------------------------------------------------------------------------------------ */

static void check_call(gki_checker *c, const gk_task *task) {
  static const char *const places[GK_MAX_ARGS] = {"0", "1", "2",  "3",  "4",  "5",  "6",  "7",
                                                  "8", "9", "10", "11", "12", "13", "14", "15"};
  if (!task->call) gki_report(c, GKI_CALL_NULL, NULL);
  for (uint32_t k = 0, count = gki_arg_count(task); k < count; ++k)
    check_argument(c, &(wanted){places[k], NULL, 0, ANY}, task->args[k]);
}

static void check_include(gki_checker *c, const gk_task *task) {
  const gk_list *list = task->list;
  gki_problem problem;
  char text[512];
  uint32_t count = gki_arg_count(task);
  if (!list) {
    gki_report(c, GKI_INCLUDE_NULL, NULL);
    return;
  }
  if (gki_list_is_broken(list, &problem, text, sizeof text)) {
    gki_report_text(c, problem, text);
    return;
  }
  if (count > list->slot_count)
    gki_report(c, GKI_INCLUDE_ARGUMENTS, gki_format_count(c, count, "argument"),
               gki_format_name(c, gki_list_name(list)), gki_format_count(c, (int64_t)list->slot_count, "slot"), NULL);
  for (uint32_t k = 0; k < count && k < list->slot_count; ++k) {
    const gk_slot_desc *inner = &list->slots[k];
    if (inner->type <= GK_NO_TYPE || inner->type > GK_HOST_PTR) continue;
    const char *name = inner->name ? inner->name : "without a name";
    wanted want = {name, inner->element, inner->element_bytes, 1u << inner->type};
    if (task->args[k] < 0 && 1u << inner->type & COUNTS) check_constant(c, task->args[k]);
    else check_argument(c, &want, task->args[k]);
  }
}

void gki_check_task(gki_checker *c, const gk_task *task) {
  static const uint32_t none[GK_COUNT(task->reserved)] = {0};
  if (task->op == GK_OP_NONE) {
    gki_report(c, GKI_TASK_FORGOTTEN, NULL);
    return;
  }
  if (!gki_op_name(task->op)) {
    gki_report(c, GKI_OP_UNKNOWN, gki_format_int(c, (int)task->op), NULL);
    return;
  }
  if (memcmp(task->reserved, none, sizeof none) != 0) gki_report(c, GKI_RESERVED, NULL);
  const uint32_t bits = GK_ALWAYS | (task->op == GK_OP_KERNEL ? GK_DIMENSIONS(3) : 0) |
                        (task->op == GK_OP_FILL ? (uint32_t)GK_FLOATS : 0);
  if (task->bits & ~bits)
    gki_report(c, GKI_BITS_UNKNOWN, gki_format_bits(c, task->bits), gki_op_name(task->op),
               task->op == GK_OP_KERNEL ? "GK_ALWAYS, GK_DIMENSIONS(n) or 0"
            : task->op == GK_OP_FILL ? "GK_ALWAYS, GK_FLOATS or 0"
            : gki_op_is_task(task->op) ? "GK_ALWAYS or 0"
                                     : "0", NULL);
  check_fields(c, task);
  check_gap(c, task, gki_arg_count(task));
  switch (task->op) {
  case GK_OP_KERNEL: check_kernel_task(c, task); break;
  case GK_OP_COPY: check_copy(c, task); break;
  case GK_OP_FILL: check_fill(c, task); break;
  case GK_OP_CALL: case GK_OP_CALL_HOST: check_call(c, task); break;
  case GK_OP_LIST: check_include(c, task); break;
  case GK_OP_DO_WHILE: case GK_OP_WHILE: case GK_OP_IF: case GK_OP_SWITCH: case GK_OP_CHECKPOINT:
    check_flag(c, task);
    break;
  case GK_OP_REPEAT: check_repeat(c, task); break;
  default: break;
  }
}
