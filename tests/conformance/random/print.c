/* A story as a C program. Lists are printed from the story; what the host does, and what must come of it, is written
 * down while the story runs, so that what was printed was done. */
#include "kernels.h"
#include "story.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct recorder {
  FILE *to;
  const char *backend;
};

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* Valid until the fourth call after it. */
static const char *slot_text(const gk_list *list, gk_slot slot) {
  static char constants[4][24];
  static unsigned next;
  if (slot < 0) {
    char *text = constants[next++ % 4];
    snprintf(text, sizeof constants[0], "GK_ITEMS(%d)", -slot);
    return text;
  }
  for (size_t k = 0; slot && k < list->slot_count; ++k)
    if (list->slots[k].slot == slot) return list->slots[k].name;
  return "GK_ONE";
}

static void print_slot(FILE *to, const gk_list *list, const gk_slot_desc *desc) {
  static const char *const types[] = {[GK_I32] = "I32", [GK_U32] = "U32", [GK_I64] = "I64", [GK_F32] = "F32",
                                      [GK_F64] = "F64"};
  switch (desc->type) {
  case GK_PTR:
    if (desc->bits & GK_IS_PASS) fprintf(to, "  GK_PASS(%s, %d),\n", desc->name, (int)desc->value.i32);
    else fprintf(to, "  GK_OWN(%s, %s, %zu),\n", desc->name, desc->element, desc->count);
    break;
  case GK_BYTES: fprintf(to, "  GK_STRUCT_VALUE(%s, %s),\n", desc->name, desc->element); break;
  case GK_HOST_PTR:
    fprintf(to, "  {.slot = %s, .type = GK_HOST_PTR, .name = \"%s\"},\n", desc->name, desc->name);
    break;
  case GK_I32:
    if (desc->bits & GK_IS_ROOM) {
      fprintf(to, "  GK_ROOM(%s, %s),\n", desc->name, slot_text(list, desc->value.i32));
      break;
    } // fall through
  default:
    fprintf(to, "  {.slot = %s, .type = GK_%s, .name = \"%s\", .bits = GK_HAS_VALUE, .value.i64 = (int64_t)%lluu},\n",
            desc->name, types[desc->type], desc->name, (unsigned long long)desc->value.i64);
  }
}

static void print_args(FILE *to, const gk_list *list, const gk_task *task, const char *before) {
  for (size_t k = 0; k < GK_MAX_ARGS && task->args[k]; ++k)
    fprintf(to, "%s%s", k ? ", " : before, slot_text(list, task->args[k]));
}

/* What no macro says. */
static void print_in_full(FILE *to, const gk_list *list, const gk_task *task) {
  static const char *const ops[] = {[GK_OP_KERNEL] = "KERNEL", [GK_OP_COPY] = "COPY", [GK_OP_FILL] = "FILL"};
  fprintf(to, "{.op = GK_OP_%s, .name = \"%s\"", ops[task->op], task->name);
  if (task->bits) fprintf(to, ", .bits = GK_ALWAYS");
  if (task->kernel) fprintf(to, ", .kernel = &%s", task->kernel->name);
  fprintf(to, ", .items = {%s", slot_text(list, task->items[0]));
  for (int d = 1; d < 3 && task->items[d]; ++d) fprintf(to, ", %s", slot_text(list, task->items[d]));
  fprintf(to, "}, .args = {");
  print_args(to, list, task, "");
  fprintf(to, "}");
  if (task->offset) fprintf(to, ", .offset = %u", (unsigned)task->offset);
  if (task->from_offset) fprintf(to, ", .from_offset = %u", (unsigned)task->from_offset);
  if (task->pattern) fprintf(to, ", .pattern = %u", (unsigned)task->pattern);
  fprintf(to, "}");
}

static void print_kernel(FILE *to, const gk_list *list, const gk_task *task) {
  int dimensions = (int)task->kernel->dimensions;
  if (task->offset || (task->bits && dimensions > 1)) {
    print_in_full(to, list, task);
    return;
  }
  fprintf(to, "GK_RUN%s(%s", task->bits ? "_ALWAYS" : dimensions == 2 ? "_2D" : dimensions == 3 ? "_3D" : "",
          task->kernel->name);
  for (int d = 0; d < dimensions; ++d) fprintf(to, ", %s", slot_text(list, task->items[d]));
  print_args(to, list, task, ", ");
  fprintf(to, ")");
}

static void print_task(FILE *to, const gk_list *list, const gk_task *task) {
  static const char *const blocks[] = {
    [GK_OP_DO_WHILE] = "GK_DO_WHILE", [GK_OP_WHILE] = "GK_WHILE",
    [GK_OP_REPEAT] = "GK_REPEAT", [GK_OP_IF] = "GK_IF", [GK_OP_SWITCH] = "GK_SWITCH",
    [GK_OP_ELSE] = "GK_ELSE", [GK_OP_CASE] = "GK_CASE", [GK_OP_PARALLEL] = "GK_PARALLEL",
    [GK_OP_SECTION] = "GK_SECTION", [GK_OP_END] = "GK_END"};
  static const char *const calls[] = {[GK_OP_CALL] = "CALL", [GK_OP_CALL_HOST] = "CALL_HOST"};
  bool plain = !task->bits && !task->offset && !task->from_offset;
  switch (task->op) {
  case GK_OP_KERNEL: print_kernel(to, list, task); break;
  case GK_OP_COPY:
    if (!plain) print_in_full(to, list, task);
    else fprintf(to, "GK_COPY(%s, %s, %s)", slot_text(list, task->args[0]), slot_text(list, task->args[1]),
                 slot_text(list, task->items[0]));
    break;
  case GK_OP_FILL:
    if (!plain) print_in_full(to, list, task);
    else fprintf(to, "GK_FILL(%s, %s, %u)", slot_text(list, task->args[0]), slot_text(list, task->items[0]),
                 (unsigned)task->pattern);
    break;
  case GK_OP_CALL: case GK_OP_CALL_HOST:
    if (task->bits) fprintf(to, "{.op = GK_OP_%s, .bits = GK_ALWAYS, .name = \"%s\", .call = %s, .args = {",
                            calls[task->op], task->name, task->name);
    else fprintf(to, "GK_%s(%s, ", calls[task->op], task->name);
    print_args(to, list, task, "");
    fprintf(to, task->bits ? "}}" : ")");
    break;
  case GK_OP_LIST:
    fprintf(to, "GK_INCLUDE_AS(%s, %s, %d%s", task->name, task->list->name, (int)task->label,
            task->args[0] ? "" : ", 0");
    print_args(to, list, task, ", ");
    fprintf(to, ")");
    break;
  case GK_OP_YIELD: fprintf(to, "GK_YIELD(%d)", (int)task->label); break;
  case GK_OP_CHECKPOINT:
    if (!task->flag) fprintf(to, "GK_TARGET(%d)", (int)task->label);
    else fprintf(to, "GK_CHECKPOINT_AT(%d, %s, %u)", (int)task->label, slot_text(list, task->flag),
                 (unsigned)task->offset);
    break;
  default:
    fprintf(to, "%s", blocks[task->op]);
    if (task->flag) fprintf(to, "(%s)", task->name);
  }
}

static void print_list(FILE *to, const gk_list *list) {
  fprintf(to, "\nenum {");
  for (size_t k = 0; k < list->slot_count; ++k)
    fprintf(to, "%s%s = %d", k ? ", " : " ", list->slots[k].name, (int)list->slots[k].slot);
  fprintf(to, " };\nstatic const gk_slot_desc %s_slots[] = {\n", list->name);
  for (size_t k = 0; k < list->slot_count; ++k) print_slot(to, list, &list->slots[k]);
  fprintf(to, "};\n");
  if (!list->task_count) {
    fprintf(to, "static const gk_list %s = {GK_ABI, \"%s\", NULL, 0, %s_slots, GK_COUNT(%s_slots)};\n", list->name,
            list->name, list->name, list->name);
    return;
  }
  fprintf(to, "static const gk_task %s_tasks[] = {\n", list->name);
  int depth = 1;
  for (size_t k = 0; k < list->task_count; ++k) {
    gk_op op = list->tasks[k].op;
    if (op == GK_OP_END) --depth;
    fprintf(to, "%*s", 2 * depth - 2 * (op == GK_OP_ELSE), "");
    print_task(to, list, &list->tasks[k]);
    fprintf(to, ",\n");
    if (opens(op)) ++depth;
  }
  fprintf(to, "};\nstatic const gk_list %s = GK_LIST(%s, %s_tasks, %s_slots);\n", list->name, list->name, list->name,
          list->name);
}

static bool includes(const story *s, uint32_t from, uint32_t index) {
  const listing *l = &s->lists[from];
  if (from == index) return true;
  for (size_t k = 0; k < l->list.task_count; ++k)
    for (uint32_t inner = 0; inner < from; ++inner)
      if (l->tasks[k].list == &s->lists[inner].list && includes(s, inner, index)) return true;
  return false;
}

/* ---- what the host does ------------------------------------------------------------------------------------------ */

recorder *recorder_open(FILE *to, const story *s, const char *backend) {
  recorder *r = malloc(sizeof *r);
  if (!r) return NULL;
  *r = (recorder){to, backend};
  bool on_test_device = strcmp(backend, "test_device") == 0;
  fprintf(to, "/* Random list of seed %llu: cc -D_GNU_SOURCE -Iinclude -Itests %sTHIS.c %sbuild/libgk.a "
              "-fopenmp -lm -ldl */\n#define SEED %lluu\n#include \"conformance/random/program.h\"\n",
          (unsigned long long)s->seed, on_test_device ? "-Icommon " : "",
          on_test_device ? "tests/device/test_device.c tests/device/tasks.c tests/device/queue.c " : "",
          (unsigned long long)s->seed);
  for (uint32_t k = 0; k < s->list_count; ++k)
    if (includes(s, s->list_count - 1, k)) print_list(to, &s->lists[k].list);
  fprintf(to, "\nint main(int argc, char **argv) {\n");
  fflush(to);
  return r;
}

void recorder_finish(FILE *to) {
  fprintf(to, "  return finish();\n}\n");
  fflush(to);
}

void recorder_close(recorder *r) {
  if (!r) return;
  recorder_finish(r->to);
  free(r);
}

void record_begin(recorder *r, const char *list, uint32_t bits) {
  if (!r) return;
  fprintf(r->to, "  begin(argc > 1 ? argv[1] : \"%s\", &%s, %u);\n", r->backend, list, (unsigned)bits);
}

void record(recorder *r, const char *format, ...) {
  if (!r) return;
  va_list args;
  va_start(args, format);
  fprintf(r->to, "  ");
  vfprintf(r->to, format, args);
  if (format[strlen(format) - 1] == ';') fprintf(r->to, "\n"); /* else more arguments follow */
  fflush(r->to);
  va_end(args);
}

/* The last arguments of the call that was recorded. */
void record_ints(recorder *r, const void *at, size_t bytes) {
  if (!r) return;
  const int32_t *ints = at;
  fprintf(r->to, " INTS(");
  for (size_t k = 0; k < bytes / sizeof *ints; ++k)
    fprintf(r->to, ints[k] == INT32_MIN ? "%s-%d - 1" : "%s%d", k ? ", " : "",
            ints[k] == INT32_MIN ? INT32_MAX : (int)ints[k]);
  fprintf(r->to, "));\n");
  fflush(r->to);
}
