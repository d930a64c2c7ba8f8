#include "tasks.h"
#include "plan/node.h"
#include "unit/support/chance.h"
#include <string.h>

static gk_result nowhere(const device_tasks *t, const gk_node *node, uint32_t slot) {
  return gk_fail(GK_ERROR_DEVICE, "task %u (%s): slot %u (%s) points to what is no memory of this device any more",
                 (unsigned)node->source, node->name, (unsigned)slot, t->plan->slots[slot].name);
}

static gk_result read_int(const device_tasks *t, const gk_node *node, uint32_t slot, uint32_t offset, int32_t *value) {
  const unsigned char *at = (const unsigned char *)t->values[slot].ptr + offset;
  at = t->here(t->user, at, sizeof *value);
  if (!at) return nowhere(t, node, slot);
  memcpy(value, at, sizeof *value);
  return GK_OK;
}

gk_result device_read_int(const device_tasks *t, uint32_t node, uint32_t slot, uint32_t offset, int32_t *value) {
  return read_int(t, &t->plan->nodes[node], slot, offset, value);
}

gk_result device_read_flag(const device_tasks *t, uint32_t node, int32_t *flag) {
  const gk_node *n = &t->plan->nodes[node];
  *flag = 0;
  return gki_reads_memory(t->plan, n) ? read_int(t, n, n->flag, n->offset, flag) : GK_OK;
}

static gk_result read_extent(const device_tasks *t, const gk_node *node, uint32_t axis, int64_t *items) {
  uint32_t slot = node->items[axis];
  int32_t number = 1;
  gk_result result = GK_OK;
  *items = 1;
  if (!slot) return GK_OK;
  switch (t->plan->slots[slot].type) {
  case GK_I32: *items = t->values[slot].i32; break;
  case GK_U32: *items = t->values[slot].u32; break;
  case GK_I64: *items = t->values[slot].i64; break;
  default:
    result = read_int(t, node, slot, node->op == GK_OP_KERNEL && axis == 0 ? node->offset : 0, &number);
    *items = number;
  }
  return result;
}

static gk_result read_extents(const device_tasks *t, uint32_t at, uint32_t extent[3], size_t *count) {
  int64_t items[3];
  uint64_t all = 0;
  gk_result result = GK_OK;
  for (uint32_t k = 0; k < 3 && result == GK_OK; ++k) {
    result = read_extent(t, &t->plan->nodes[at], k, &items[k]);
    extent[k] = (uint32_t)items[k];
  }
  if (result == GK_OK) result = gk_check_count(t->plan, at, &(gk_launch_args){.capacity = t->capacity}, items, &all);
  *count = (size_t)all;
  return result;
}

static gk_result translate(const device_tasks *t, const gk_node *node, gk_value *args) {
  for (uint32_t k = 0; k < node->arg_count; ++k) {
    uint32_t slot = t->plan->args[node->args + k];
    args[k] = t->values[slot];
    if (t->plan->slots[slot].type != GK_PTR) continue;
    args[k].ptr = t->here(t->user, args[k].ptr, 1);
    if (!args[k].ptr) return nowhere(t, node, slot);
  }
  return GK_OK;
}

/* An int is added as unsigned, so that it may overflow. */
static void add_sum(const gk_param *param, void *to, const void *from) {
  if (strcmp(param->element, "float") == 0) *(float *)to += *(const float *)from;
  else if (strcmp(param->element, "double") == 0) *(double *)to += *(const double *)from;
  else *(unsigned *)to += *(const unsigned *)from;
}

typedef union sum_value { double f64; float f32; unsigned u32; } sum_value;

/* Calls the host function for one part of the items after the other, to find kernels that ignore their range. A kernel
 * with sums always has two parts, in order, so that its sums are the same each time. */
static gk_result run_kernel(const device_tasks *t, const gk_node *node, const uint32_t extent[3], size_t count) {
  enum { PARTS = 4 };
  const gk_kernel *kernel = node->kernel;
  gk_value args[GK_MAX_ARGS], own[GK_MAX_ARGS];
  gk_result result = translate(t, node, args);
  if (result != GK_OK) return result;
  bool sums = false;
  for (uint32_t k = 0; k < node->arg_count; ++k) sums = sums || kernel->params[k].access == GK_ACCESS_SUM;
  bool chosen = t->random && !sums;
  uint32_t parts = chosen ? 1 + pick(t->random, PARTS) : 2, first = chosen ? pick(t->random, parts) : 0;
  for (uint32_t n = 0; n < parts; ++n) {
    uint32_t part = (first + n) % parts;
    sum_value partial[GK_MAX_ARGS] = {{0}};
    for (uint32_t k = 0; k < node->arg_count; ++k) {
      own[k] = args[k];
      if (kernel->params[k].access == GK_ACCESS_SUM) own[k].ptr = &partial[k];
    }
    gk_range range = {count * part / parts, count * (part + 1) / parts, {extent[0], extent[1], extent[2]}};
    if (range.begin < range.end) kernel->host(own, range);
    for (uint32_t k = 0; k < node->arg_count; ++k)
      if (kernel->params[k].access == GK_ACCESS_SUM) add_sum(&kernel->params[k], args[k].ptr, &partial[k]);
  }
  return GK_OK;
}

static gk_result run_call(const device_tasks *t, const gk_node *node) {
  gk_value args[GK_MAX_ARGS];
  gk_result result = translate(t, node, args);
  if (result != GK_OK) return result;
  result = node->call(args, NULL);
  if (result == GK_OK) return GK_OK;
  return gk_fail(result, "task %u (%s): the call answered %s", (unsigned)node->source, node->name,
                 gk_result_name(result));
}

static gk_result move(const device_tasks *t, const gk_node *node, size_t count) {
  uint32_t to = t->plan->args[node->args], from = node->op == GK_OP_COPY ? t->plan->args[node->args + 1] : 0;
  size_t bytes = count * (t->plan->slots[to].element_bytes ? t->plan->slots[to].element_bytes : 1);
  unsigned char *target = t->here(t->user, (unsigned char *)t->values[to].ptr + node->offset, bytes);
  if (!target) return nowhere(t, node, to);
  if (!from) {
    for (size_t k = 0; k < bytes; ++k) target[k] = (unsigned char)(node->pattern >> 8 * (k % 4));
    return GK_OK;
  }
  bool is_struct = t->plan->slots[from].type == GK_BYTES; /* its copy is on this side */
  const void *source = is_struct ? t->values[from].ptr
                                 : t->here(t->user, (unsigned char *)t->values[from].ptr + node->from_offset, bytes);
  if (!source) return nowhere(t, node, from);
  memmove(target, source, bytes);
  return GK_OK;
}

gk_result device_run_node(const device_tasks *t, uint32_t at) {
  const gk_node *node = &t->plan->nodes[at];
  if (node->op == GK_OP_CALL || (node->op == GK_OP_CALL_HOST && t->in_process)) return run_call(t, node);
  if (node->op != GK_OP_KERNEL && node->op != GK_OP_COPY && node->op != GK_OP_FILL) return GK_OK;
  uint32_t extent[3];
  size_t count;
  gk_result result = read_extents(t, at, extent, &count);
  if (result != GK_OK || !count) return result;
  return node->op == GK_OP_KERNEL ? run_kernel(t, node, extent, count) : move(t, node, count);
}

const char *device_bad_args(const gk_plan *plan, const gk_launch_args *launch, uint64_t launched) {
  if (launch->launch != launched) return "launch: its number isn't the next one";
  if (launch->launch == 1 && launch->changed_count + 1 != plan->slot_count)
    return "first launch: not all slots are changed";
  for (uint32_t k = 0; k < launch->changed_count; ++k) {
    if (launch->changed[k] == 0 || launch->changed[k] >= plan->slot_count) return "changed: no such slot";
    for (uint32_t j = 0; j < k; ++j)
      if (launch->changed[k] == launch->changed[j]) return "changed: a slot comes twice";
  }
  for (uint32_t k = 1; k < plan->slot_count; ++k)
    if (plan->slots[k].type == GK_BYTES && !launch->values[k].ptr) return "values: a struct has no address";
  if (launch->target && plan->nodes[launch->target].op != GK_OP_CHECKPOINT &&
      plan->nodes[launch->target].op != GK_OP_YIELD)
    return "target: no checkpoint";
  if (!launch->cancel) return "cancel: nowhere to read";
  if (plan->loop_count && (!launch->entries || !launch->counts)) return "entries: nowhere to count";
  for (uint32_t k = 0; k < plan->node_count && !launch->capacity; ++k) {
    const gk_node *node = &plan->nodes[k];
    if ((node->op == GK_OP_COPY || node->op == GK_OP_FILL) && node->items[0]) return "capacity: a count has none";
  }
  return NULL;
}
