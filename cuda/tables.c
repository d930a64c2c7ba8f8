/* Copies gk_gates field by field into the structs of gates.h, with the fields of nodes that a control kernel reads. */
#include "cuda/tables.h"
#include "base/error.h"
#include "plan/node.h"
#include <assert.h>
#include <string.h>

#define SAME(ours, theirs) static_assert((int)(ours) == (int)(theirs), "gates.h says otherwise than gk_gates.h")
SAME(GKI_CUDA_NONE, GK_NONE);
SAME(GKI_CUDA_YIELD, GK_POINT_YIELD);
SAME(GKI_CUDA_LOOP_END, GK_POINT_LOOP_END);
SAME(GKI_CUDA_HEAD, GK_POINT_HEAD);
SAME(GKI_CUDA_BRANCH, GK_POINT_BRANCH);
SAME(GKI_CUDA_MARK, GK_POINT_MARK);
SAME(GKI_CUDA_ENTER, GK_POINT_ENTER);
SAME(GKI_CUDA_AIM, GK_POINT_AIM);
SAME(GKI_CUDA_BEGIN, GK_POINT_BEGIN);
SAME(GKI_CUDA_PASSES, GK_POINT_PASSES);
SAME(GKI_CUDA_CLOSES_GATE, GK_CLOSE_GATE);
SAME(GKI_CUDA_CLOSES_NODE, GK_CLOSE_NODE);
SAME(GKI_CUDA_CLOSES_GUARD, GK_CLOSE_GUARD);
SAME(GKI_CUDA_WITH_CANCEL, GK_WITH_CANCEL);
SAME(GKI_CUDA_WITH_PLAIN, GK_WITH_PLAIN);
SAME(GKI_CUDA_FINISHED, GK_FINISHED);
SAME(GKI_CUDA_YIELDED, GK_YIELDED);
SAME(GKI_CUDA_CANCELLED, GK_CANCELLED);
SAME(GKI_CUDA_DEPTH, GK_MAX_DEPTH);
SAME(sizeof(gk_value), 8);
SAME(sizeof(CUgraphConditionalHandle), sizeof(uint64_t));
/* The same layout for host and device. A point is read as four times 16 bytes. */
SAME(sizeof(gki_cuda_point), 64);
SAME(sizeof(gki_cuda_exit), 12);
SAME(sizeof(gki_cuda_gate_close), 12);
SAME(sizeof(gki_cuda_block), 40);
SAME(sizeof(gki_cuda_target), 8);
SAME(sizeof(gki_cuda_loop), 40);
SAME(sizeof(gki_cuda_control), 104 + 8 * GK_MAX_DEPTH);
SAME(sizeof(gki_bad_count), 40);
SAME(offsetof(gki_cuda_control, number), offsetof(gki_task_control, number));
SAME(offsetof(gki_cuda_control, failed), offsetof(gki_task_control, failed));
SAME(offsetof(gki_cuda_control, failures), offsetof(gki_task_control, failures));
SAME(offsetof(gki_cuda_control, posts_as), offsetof(gki_task_control, posts_as));
SAME(offsetof(gki_cuda_control, arms), offsetof(gki_task_control, arms));
SAME(sizeof(gki_cuda_arming), 40);
SAME(sizeof(gki_cuda_status), 24);
SAME(sizeof(gki_cuda_tables), 128);
SAME(GKI_CUDA_POINTS_AT, 128);
SAME(sizeof(gki_task), 24);
SAME(sizeof(gki_record), 16);
SAME(sizeof(gki_transfer), 64);
SAME(sizeof(gki_cuda_setting), 16);

enum { LINE = 128 }; /* of the device's caches: written and constant data share none */

/* ---- offsets ----------------------------------------------------------------------------------------------------- */

/* Returns the next offset at a multiple of `alignment`, a power of two. Counts are below 2^32, so 64 bits don't
 * overflow. */
static size_t reserve(size_t *at, size_t alignment, size_t count, size_t element_bytes) {
  static_assert(sizeof(size_t) == 8, "counts of 32 bits times the size of an element");
  const size_t begin = (*at + alignment - 1) & ~(alignment - 1);
  *at = begin + count * element_bytes;
  return begin;
}

gki_cuda_layout gki_cuda_tables_lay_out(const gk_gates *gates) {
  size_t at = GKI_CUDA_POINTS_AT;
  gki_cuda_layout l;
  l.points = reserve(&at, 64, gates->point_count, sizeof(gki_cuda_point));
  l.exits = reserve(&at, 16, (size_t)gates->exit_count + 1, sizeof(gki_cuda_exit)); /* one more is loaded */
  l.reenables = reserve(&at, 16, gates->reenable_count, sizeof(uint32_t));
  l.closes = reserve(&at, 16, gates->close_count, sizeof(gki_cuda_gate_close));
  l.blocks = reserve(&at, 16, gates->block_count, sizeof(gki_cuda_block));
  l.targets = reserve(&at, 16, gates->target_count, sizeof(gki_cuda_target));
  l.handles = reserve(&at, 16, gates->handle_count, sizeof(uint64_t));
  l.guards = reserve(&at, LINE, gates->guard_count, sizeof(uint64_t));
  l.bytes = reserve(&at, LINE, 0, 1);
  return l;
}

gk_result gki_cuda_shared_lay_out(const gk_plan *plan, gki_cuda_shared *shared) {
  size_t at = sizeof(gki_cuda_control), status = sizeof(gki_cuda_status);
  shared->loops = reserve(&at, 64, plan->loop_count, sizeof(gki_cuda_loop));
  shared->ran = reserve(&at, 16, plan->checkpoint_count, sizeof(uint64_t));
  shared->slots = reserve(&at, LINE, plan->slot_count, sizeof(gk_value));
  shared->bytes = reserve(&at, LINE, 0, 1);
  reserve(&status, 8, plan->loop_count, sizeof(uint64_t) + 1);
  reserve(&status, 1, plan->checkpoint_count, 1);
  reserve(&status, 64, 0, 1); /* the device writes whole words */
  if (status > UINT32_MAX) return gki_fail_memory("the status of a launch", status);
  shared->status_bytes = (uint32_t)status;
  return GK_OK;
}

/* ---- contents ---------------------------------------------------------------------------------------------------- */

static gki_cuda_point point_of(const gk_plan *plan, const gk_gate_point *p) {
  const gk_node *node = &plan->nodes[p->node];
  const bool ends = p->kind == GK_POINT_LOOP_END || p->kind == GK_POINT_PASSES;
  const bool loops = ends || p->kind == GK_POINT_HEAD || p->kind == GK_POINT_BEGIN;
  const bool repeats = node->op == GK_OP_REPEAT;
  const bool reads = p->kind < GK_POINT_ENTER && !(repeats && p->kind == GK_POINT_LOOP_END);
  return (gki_cuda_point){
    .kind = p->kind, .flag = reads ? gki_flag_slot(plan, node) : 0, .offset = gki_flag_offset(plan, node),
    .node = p->node, .count = p->kind == GK_POINT_LOOP_END && !repeats ? node->every : node->count,
    .by_value = node->op == GK_OP_SWITCH ? 1 : !repeats ? 0 : gki_counts_by_number(plan, node) ? 2 : 1,
    .bound = p->kind == GK_POINT_PASSES ? p->passes < node->count : loops ? node->max_iterations : 0,
    .loop = loops ? node->loop : GKI_CUDA_NONE,
    .checkpoint = p->checkpoint, .exits = p->exits, .exit_count = ends ? p->passes : p->exit_count, .handle = p->handle,
    .reenable = p->reenable, .reenable_count = p->reenable_count,
    .block = p->block, .close = p->close};
}

static void write_decisions(const gk_gates *gates, const gki_cuda_layout *layout, char *memory) {
  gki_cuda_point *points = (gki_cuda_point *)(memory + layout->points);
  gki_cuda_exit *exits = (gki_cuda_exit *)(memory + layout->exits);
  for (uint32_t k = 0; k < gates->point_count; ++k) points[k] = point_of(gates->plan, &gates->points[k]);
  for (uint32_t k = 0; k < gates->exit_count; ++k)
    exits[k] = (gki_cuda_exit){gates->exits[k].next, gates->exits[k].handle, gates->exits[k].value};
  if (gates->reenable_count)
    memcpy(memory + layout->reenables, gates->reenables, gates->reenable_count * sizeof *gates->reenables);
}

static void write_blocks(const gk_gates *gates, const gki_cuda_layout *layout, char *memory) {
  gki_cuda_gate_close *closes = (gki_cuda_gate_close *)(memory + layout->closes);
  gki_cuda_block *blocks = (gki_cuda_block *)(memory + layout->blocks);
  gki_cuda_target *targets = (gki_cuda_target *)(memory + layout->targets);
  for (uint32_t k = 0; k < gates->close_count; ++k) {
    const gk_gate_close *c = &gates->closes[k];
    closes[k] = (gki_cuda_gate_close){c->kind, c->at, c->value};
  }
  for (uint32_t k = 0; k < gates->block_count; ++k) {
    const gk_gate_block *b = &gates->blocks[k];
    const bool is_numbered = b->loop != GK_NONE && gates->plan->nodes[gates->plan->loops[b->loop]].is_numbered;
    blocks[k] = (gki_cuda_block){.begin = b->begin, .end = b->end, .around = b->around, .before = b->before,
                                 .after = b->after, .loop = b->loop, .handle = b->handle, .value = b->value,
                                 .in_loop = is_numbered ? 2 : b->in_loop, .head = b->head};
  }
  for (uint32_t k = 0; k < gates->target_count; ++k)
    targets[k] = (gki_cuda_target){gates->targets[k].block, gates->targets[k].close};
}

void gki_cuda_tables_write(const gk_gates *gates, const gki_cuda_layout *layout, const gki_cuda_shared *shared,
                           const gki_cuda_places *places, const CUgraphConditionalHandle *handles, void *memory) {
  const gk_plan *plan = gates->plan;
  memset(memory, 0, layout->bytes);
  *(gki_cuda_tables *)memory = (gki_cuda_tables){
    .points = places->tables + layout->points, .exits = places->tables + layout->exits,
    .reenables = places->tables + layout->reenables, .closes = places->tables + layout->closes,
    .blocks = places->tables + layout->blocks, .targets = places->tables + layout->targets,
    .handles = places->tables + layout->handles, .guards = places->tables + layout->guards,
    .control = places->control, .loops = places->control + shared->loops, .ran = places->control + shared->ran,
    .slots = places->control + shared->slots, .cancel = places->cancel, .status = places->status,
    .status_bytes = shared->status_bytes, .loop_count = plan->loop_count, .checkpoint_count = plan->checkpoint_count,
    .bits = gates->bits};
  write_decisions(gates, layout, memory);
  write_blocks(gates, layout, memory);
  if (gates->handle_count) memcpy((char *)memory + layout->handles, handles, gates->handle_count * sizeof *handles);
}

void gki_cuda_shared_write(const gki_cuda_shared *shared, uint64_t failures, bool arms, void *memory) {
  memset(memory, 0, shared->bytes);
  *(gki_cuda_control *)memory = (gki_cuda_control){.number = 1, .failures = failures, .arms = arms,
                                                   .target = GKI_CUDA_NONE, .target_sent = GKI_CUDA_NONE};
}
