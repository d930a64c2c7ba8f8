/* A plan as a program of ops, with the values of its slots patched into their arguments. */
#include "base/error.h"
#include "base/name.h"
#include "base/op.h"
#include "openmp/program.h"
#include "plan/node.h"
#include <math.h>
#include <string.h>

static uint32_t sum_count(const gk_node *node) {
  uint32_t count = 0;
  for (uint32_t k = 0; node->op == GK_OP_KERNEL && k < node->kernel->param_count; ++k)
    count += node->kernel->params[k].access == GK_ACCESS_SUM;
  return count;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

typedef struct sizes { size_t ops, forks, sections, walks, sums, args, uses; uint32_t most_sums; } sizes;

static sizes measure(const gk_plan *plan) {
  sizes s = {0};
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const gk_node *node = &plan->nodes[k];
    if (node->op == GK_OP_PARALLEL) {
      bool straight = node->run != GK_NONE;
      ++s.forks;
      s.ops += straight ? 2 : 0;
      for (uint32_t child = k + 1; child < node->end; child = plan->nodes[child].end) {
        ++s.sections;
        s.walks += !straight;
      }
    }
    if (!gki_op_is_task(node->op)) continue;
    uint32_t sums = sum_count(node);
    ++s.ops;
    s.sums += sums > 0;
    if (sums > s.most_sums) s.most_sums = sums;
    if (node->args + (size_t)node->arg_count > s.args) s.args = node->args + (size_t)node->arg_count;
    s.uses += node->arg_count;
    for (int axis = 0; axis < 3; ++axis) s.uses += node->items[axis] != 0;
  }
  return s;
}

static gk_result alloc_arrays(gki_program *program, const sizes *s, gk_walk **walks) {
  gki_arena *arena = &program->arena;
  const gk_plan *plan = program->plan;
  size_t threads = program->device->team.asked_for;
  program->partial_bytes = (s->most_sums * 8 + 63) / 64 * 64;
  program->ops = gki_arena_alloc(arena, s->ops, sizeof *program->ops);
  program->runs = gki_arena_alloc(arena, plan->run_count, sizeof *program->runs);
  program->forks = gki_arena_alloc(arena, s->forks, sizeof *program->forks);
  program->sections = gki_arena_alloc(arena, s->sections, sizeof *program->sections);
  *walks = gki_arena_alloc(arena, s->walks, sizeof **walks);
  program->sums = gki_arena_alloc(arena, s->sums, sizeof *program->sums);
  program->args = gki_arena_alloc(arena, s->args, sizeof *program->args);
  program->arg_uses = gki_arena_alloc(arena, plan->slot_count, sizeof *program->arg_uses);
  program->item_uses = gki_arena_alloc(arena, plan->slot_count, sizeof *program->item_uses);
  program->uses = gki_arena_alloc(arena, s->uses, sizeof *program->uses);
  program->values = gki_arena_alloc(arena, plan->slot_count, sizeof *program->values);
  program->structs = gki_arena_alloc(arena, plan->slot_count, sizeof *program->structs);
  program->partial = gki_arena_alloc(arena, threads * (s->forks ? threads : 1), program->partial_bytes);
  bool complete = program->ops && program->runs && program->forks && program->sections && *walks && program->sums &&
                  program->args && program->arg_uses && program->item_uses && program->uses && program->values &&
                  program->structs && program->partial;
  for (uint32_t k = 1; k < plan->slot_count && complete; ++k)
    if (plan->slots[k].type == GK_BYTES) {
      program->structs[k] = gki_arena_alloc_aligned(arena, plan->slots[k].element_bytes, GKI_STRUCT_ALIGNMENT);
      complete = program->structs[k] != NULL;
    }
  return complete ? GK_OK : gki_fail_memory("a graph's ops", s->ops * sizeof *program->ops);
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

typedef struct lowering {
  gki_program *program;
  gk_walk *walks;
  uint32_t section_count, sum_count, run;
  uint32_t open[2 * GK_MAX_DEPTH + 2], depth; /* straight forks that haven't ended */
} lowering;

static void add_sums(lowering *low, const gk_node *node, gki_op *op) {
  gki_sums *sums = &low->program->sums[low->sum_count];
  op->more = ++low->sum_count;
  sums->exact = true;
  for (uint32_t k = 0; k < node->kernel->param_count; ++k) {
    const gk_param *param = &node->kernel->params[k];
    if (param->access != GK_ACCESS_SUM) continue;
    const gk_type number = gki_number_type(param->element);
    sums->param[sums->count] = (uint8_t)k;
    sums->number[sums->count++] = (uint8_t)number;
    sums->exact = sums->exact && (number == GK_I32 || number == GK_U32);
  }
}

static void add_task(lowering *low, uint32_t at) {
  gki_program *program = low->program;
  const gk_node *node = &program->plan->nodes[at];
  gki_op *op = &program->ops[program->op_count++];
  /* Until the first execution is timed, the cost is 1 ns per item or per ten bytes. */
  *op = (gki_op){.args = node->args, .node = at, .countdown = 1, .cost_ns = node->op == GK_OP_KERNEL ? 1.0f : 0.1f};
  switch (node->op) {
  case GK_OP_KERNEL: op->kind = GKI_KERNEL; op->host = node->kernel->host; break;
  case GK_OP_COPY: op->kind = GKI_COPY; break;
  case GK_OP_FILL: op->kind = GKI_FILL; break;
  default: op->kind = GKI_CALL; break;
  }
  for (int axis = 0; axis < 3; ++axis)
    if (node->items[axis] && program->plan->slots[node->items[axis]].type == GK_PTR) op->bits |= GKI_READS;
  if (!op->bits && node->items[0] && !node->items[1] && !node->items[2]) op->bits = GKI_ONE_EXTENT;
  for (uint32_t k = 0; k < node->arg_count; ++k) {
    uint32_t slot = program->plan->args[node->args + k];
    if (program->structs[slot]) program->args[node->args + k].ptr = program->structs[slot];
  }
  if (sum_count(node)) add_sums(low, node, op);
}

static void add_fork(lowering *low, uint32_t at) {
  gki_program *program = low->program;
  const gk_node *nodes = program->plan->nodes;
  uint32_t number = program->fork_count++;
  gki_fork *fork = &program->forks[number];
  *fork = (gki_fork){.node = at, .first = low->section_count, .straight = nodes[at].run != GK_NONE};
  for (uint32_t child = at + 1; child < nodes[at].end; child = nodes[child].end) {
    gki_section *section = &program->sections[low->section_count++];
    section->node = child;
    if (!fork->straight) section->walk = low->walks++;
    ++fork->count;
  }
  if (!fork->straight) return;
  program->ops[program->op_count++] = (gki_op){.kind = GKI_FORK, .more = number, .node = at};
  low->open[low->depth++] = number;
}

static void close_forks(lowering *low, uint32_t at) {
  gki_program *program = low->program;
  while (low->depth > 0) {
    uint32_t number = low->open[low->depth - 1];
    gki_fork *fork = &program->forks[number];
    if (fork->at > 0 && program->plan->nodes[program->sections[fork->first + fork->at - 1].node].end == at)
      program->sections[fork->first + fork->at - 1].end = program->op_count;
    if (program->plan->nodes[fork->node].end != at) return;
    program->ops[program->op_count++] = (gki_op){.kind = GKI_JOIN, .more = number, .node = fork->node};
    fork->at = 0;
    --low->depth;
  }
}

static void begin_section(lowering *low, uint32_t at) {
  if (low->depth == 0) return;
  gki_fork *fork = &low->program->forks[low->open[low->depth - 1]];
  if (low->program->plan->nodes[at].parent != fork->node) return;
  low->program->sections[fork->first + fork->at++].begin = low->program->op_count;
}

static void add_ops(lowering *low) {
  gki_program *program = low->program;
  const gk_plan *plan = program->plan;
  for (uint32_t at = 1; at <= plan->node_count; ++at) {
    close_forks(low, at);
    if (low->run < plan->run_count && plan->runs[low->run].end == at) program->runs[low->run++].end = program->op_count;
    if (at == plan->node_count) break;
    if (low->run < plan->run_count && plan->runs[low->run].begin == at)
      program->runs[low->run].begin = program->op_count;
    gk_op op = plan->nodes[at].op;
    if (op == GK_OP_PARALLEL) add_fork(low, at);
    else if (op == GK_OP_SECTION) begin_section(low, at);
    else if (gki_op_is_task(op)) add_task(low, at);
  }
}

/* ---- sums of several sections in one slot ------------------------------------------------------------------------ */

/* Whether two sections of a fork add floats to the same slot. seen: by slot, the last section of any fork that did so,
 * plus one. */
static bool sums_share_slot(const gki_program *program, const gki_fork *fork, uint32_t *seen) {
  const gk_plan *plan = program->plan;
  for (uint32_t s = fork->first; s < fork->first + fork->count; ++s)
    for (uint32_t at = program->sections[s].node; at < plan->nodes[program->sections[s].node].end; ++at) {
      const gk_node *node = &plan->nodes[at];
      if (node->op != GK_OP_KERNEL) continue;
      for (uint32_t k = 0; k < node->kernel->param_count; ++k) {
        const gk_type number = gki_number_type(node->kernel->params[k].element);
        if (node->kernel->params[k].access != GK_ACCESS_SUM || number == GK_I32 || number == GK_U32) continue;
        uint32_t *last = &seen[plan->args[node->args + k]];
        if (*last > fork->first && *last <= fork->first + fork->count && *last != s + 1) return true;
        *last = s + 1;
      }
    }
  return false;
}

static gk_result find_shared_sums(gki_program *program) {
  if (program->fork_count == 0 || program->partial_bytes == 0) return GK_OK;
  const gk_plan *plan = program->plan;
  uint32_t *seen = gki_array(plan->slot_count, sizeof *seen, "a table of slots");
  if (!seen) return GK_ERROR_MEMORY;
  for (uint32_t k = 0; k < program->fork_count; ++k)
    program->forks[k].in_order = sums_share_slot(program, &program->forks[k], seen);
  gk_host_free(seen);
  return GK_OK;
}

/* ---- uses -------------------------------------------------------------------------------------------------------- */

/* Counts if `uses` is NULL, else writes. The ends of the spans are the counters. */
static void visit_uses(gki_program *program, uint32_t *uses) {
  const gk_plan *plan = program->plan;
  for (uint32_t k = 0; k < program->op_count; ++k) {
    const gk_node *node = &plan->nodes[program->ops[k].node];
    if (!gki_op_is_task(node->op)) continue;
    for (uint32_t a = node->args; a < node->args + node->arg_count; ++a) {
      gki_span *span = &program->arg_uses[plan->args[a]];
      if (uses) uses[span->end] = a;
      ++span->end;
    }
    for (int axis = 0; axis < 3; ++axis)
      if (node->items[axis]) {
        gki_span *span = &program->item_uses[node->items[axis]];
        if (uses) uses[span->end] = k;
        ++span->end;
      }
  }
}

static void find_uses(gki_program *program) {
  visit_uses(program, NULL);
  uint32_t at = 0;
  for (uint32_t slot = 0; slot < program->plan->slot_count; ++slot) {
    gki_span *spans[2] = {&program->arg_uses[slot], &program->item_uses[slot]};
    for (int k = 0; k < 2; ++k) {
      uint32_t count = spans[k]->end;
      *spans[k] = (gki_span){at, at};
      at += count;
    }
  }
  visit_uses(program, program->uses);
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

static int64_t extent_of(const gk_plan *plan, uint32_t slot, uint32_t offset, const gk_value *values) {
  if (slot == 0) return 1;
  switch (plan->slots[slot].type) {
  case GK_I32: case GK_U32: case GK_I64: return gki_number(plan, slot, values[slot]);
  case GK_PTR: {
    int32_t count;
    memcpy(&count, (const char *)values[slot].ptr + offset, sizeof count);
    return count;
  }
  default: return 0;
  }
}

void gki_openmp_extents(const gki_program *program, const gki_op *op, const gk_value *values, int64_t extent[3]) {
  const gk_node *node = &program->plan->nodes[op->node];
  uint32_t offset = node->op == GK_OP_KERNEL ? node->offset : 0; /* a COPY's or FILL's offset is its target's */
  for (int axis = 0; axis < 3; ++axis)
    extent[axis] = extent_of(program->plan, node->items[axis], axis == 0 ? offset : 0, values);
}

/* False: too many. */
static bool count_items(const gki_program *program, const gki_op *op, const gk_value *values, gk_range *range) {
  int64_t extent[3], product = 1;
  bool fits = true;
  *range = (gk_range){0};
  gki_openmp_extents(program, op, values, extent);
  for (int axis = 0; axis < 3; ++axis)
    if (extent[axis] <= 0) return true;
  for (int axis = 0; axis < 3; ++axis) fits = fits && !__builtin_mul_overflow(product, extent[axis], &product);
  if (!fits || product > INT32_MAX) return false;
  range->end = (size_t)product;
  for (int axis = 0; axis < 3; ++axis) range->extent[axis] = (uint32_t)extent[axis];
  return true;
}

static void set_range(gki_op *op, bool fits) {
  op->bits = (op->bits & GKI_ONE_EXTENT) | (fits ? 0 : GKI_TOO_MANY);
  op->alone_ns = op->range.end > 1 ? (float)op->range.end * op->cost_ns : 0;
  if (op->kind <= GKI_KERNEL) op->kind = fits && op->more == 0 ? GKI_SIMPLE : GKI_KERNEL;
}

static void recount(gki_program *program, gki_op *op, const gk_value *values) {
  if (op->bits & GKI_READS) return;
  set_range(op, count_items(program, op, values, &op->range));
}

/* Recounts the ops with the slot as an extent. For an op with one extent, the slot's number is the item count. */
static void recount_all(gki_program *program, gki_span span, const gk_value *values, uint32_t slot) {
  int64_t extent = extent_of(program->plan, slot, 0, values);
  bool fits = extent <= INT32_MAX;
  uint32_t items = fits && extent > 0 ? (uint32_t)extent : 0;
  gk_range range = items ? (gk_range){0, items, {items, 1, 1}} : (gk_range){0};
  for (uint32_t p = span.begin; p < span.end; ++p) {
    gki_op *op = &program->ops[program->uses[p]];
    if (op->bits & GKI_ONE_EXTENT) {
      op->range = range;
      set_range(op, fits);
    } else {
      recount(program, op, values);
    }
  }
}

void gki_openmp_patch(gki_program *program, const gk_launch_args *launch) {
  for (uint32_t k = 0; k < launch->changed_count; ++k) {
    uint32_t slot = launch->changed[k];
    gk_value value = launch->values[slot];
    if (program->structs[slot]) {
      memcpy(program->structs[slot], value.ptr, program->plan->slots[slot].element_bytes);
      continue;
    }
    if (launch->launch > 1 && memcmp(&program->values[slot], &value, sizeof value) == 0) continue;
    program->values[slot] = value;
    gki_span args = program->arg_uses[slot], items = program->item_uses[slot];
    for (uint32_t p = args.begin; p < args.end; ++p) program->args[program->uses[p]] = value;
    if (items.begin < items.end && program->plan->slots[slot].type != GK_PTR)
      recount_all(program, items, launch->values, slot);
  }
}

/* ---- lowering ---------------------------------------------------------------------------------------------------- */

gk_result gki_openmp_lower(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode) {
  (void)code;
  gki_program *program = graph;
  program->device = device;
  program->plan = plan;
  sizes s = measure(plan);
  lowering low = {.program = program};
  gk_result result = alloc_arrays(program, &s, &low.walks);
  if (result == GK_OK) add_ops(&low);
  if (result == GK_OK) result = find_shared_sums(program);
  if (result != GK_OK) return result;
  find_uses(program);
  for (uint32_t k = 0; k < program->op_count; ++k) /* ops without extents are counted only here */
    if (program->ops[k].kind <= GKI_FILL) {
      const gk_node *node = &plan->nodes[program->ops[k].node];
      if (!node->items[0] && !node->items[1] && !node->items[2]) recount(program, &program->ops[k], NULL);
    }
  *mode = GK_MODE_IN_PROCESS;
  return GK_OK;
}

void gki_openmp_drop(void *graph) { gki_arena_free(&((gki_program *)graph)->arena); }
