/* The levels of a plan's tasks. A task gets its level from what it touches, and from what earlier tasks touched. */
#include "plan/levels.h"
#include "base/error.h"
#include "base/op.h"
#include "list/touches.h"
#include "plan/node.h"

enum { KINDS = 4 }; /* of touches */
typedef struct last_levels { uint32_t of[KINDS]; } last_levels; /* the highest level that touched a slot, by kind */

/* A change of last_levels: its level before. While a section's changes are undone: the level behind it. */
typedef struct change { uint32_t slot, kind, level; } change;

typedef struct builder {
  const gk_plan *plan;
  last_levels *last;  /* by slot */
  change *changes;    /* of this run, in order */
  uint32_t *level_of; /* by node; 0: none */
  bool *written;      /* as in gki_levels */
  uint32_t change_count;
  uint32_t before;    /* the highest level of the runs before */
  uint32_t highest;
} builder;

/* Bit k: a touch of this kind comes behind touches of kind k. Reads and sums don't disturb their own kind. */
static uint32_t follows(gki_touch_kind kind) {
  const uint32_t all = 1u << GKI_READS | 1u << GKI_WRITES | 1u << GKI_SUMS | 1u << GKI_ATOMIC;
  return kind == GKI_READS || kind == GKI_SUMS ? all & ~(1u << kind) : all;
}

/* Of two tasks whose counts are bad, the first one is to post it: those that read their counts come in list order.
 * Readers of a slot may have any levels: the highest is kept. */
static void put_task(builder *b, uint32_t node) {
  gki_touch touches[GKI_MAX_TOUCHES + 1];
  uint32_t args, level = b->before;
  uint32_t count = gki_touches_of_node(b->plan, node, &args, touches);
  if (gki_reads_count(b->plan, &b->plan->nodes[node])) touches[count++] = (gki_touch){0, GKI_ATOMIC}; /* of no slot */
  for (uint32_t k = 0; k < count; ++k)
    for (uint32_t kind = 0; kind < KINDS; ++kind)
      if ((follows(touches[k].kind) >> kind & 1) && b->last[touches[k].slot].of[kind] > level)
        level = b->last[touches[k].slot].of[kind];
  b->level_of[node] = ++level;
  if (level > b->highest) b->highest = level;
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t *last = &b->last[touches[k].slot].of[touches[k].kind];
    b->changes[b->change_count++] = (change){touches[k].slot, touches[k].kind, *last};
    if (level > *last) *last = level;
    b->written[touches[k].slot] |= touches[k].kind != GKI_READS;
  }
}

static void swap_levels(builder *b, change *one, bool keeps_higher) {
  uint32_t *last = &b->last[one->slot].of[one->kind];
  const uint32_t level = *last;
  if (!keeps_higher || one->level > level) *last = one->level;
  one->level = level;
}

static void put_tasks(builder *b, uint32_t begin, uint32_t end);

/* Sections don't wait for one another, though two of them may change the same memory by atomics. So each begins with
 * the levels before the PARALLEL. */
static void put_parallel(builder *b, uint32_t parallel) {
  const gk_node *nodes = b->plan->nodes;
  const uint32_t first = b->change_count;
  for (uint32_t at = parallel + 1; at < nodes[parallel].end; at = nodes[at].end) {
    const uint32_t begin = b->change_count;
    put_tasks(b, at + 1, nodes[at].end);
    for (uint32_t k = b->change_count; k-- > begin;) swap_levels(b, &b->changes[k], false);
  }
  for (uint32_t k = first; k < b->change_count; ++k) swap_levels(b, &b->changes[k], true);
}

static void put_tasks(builder *b, uint32_t begin, uint32_t end) {
  const gk_node *nodes = b->plan->nodes;
  for (uint32_t at = begin; at < end; at = nodes[at].end)
    if (nodes[at].op == GK_OP_PARALLEL) put_parallel(b, at);
    else if (!gki_op_is_call(nodes[at].op)) put_task(b, at);
}

/* Levels rise from run to run, so a counting sort by level also keeps the runs apart. */
static void sort_tasks(const builder *b, gki_levels *levels) {
  for (uint32_t k = 0; k < b->plan->node_count; ++k)
    if (b->level_of[k]) ++levels->at[b->level_of[k]];
  for (uint32_t level = 1; level <= b->highest; ++level) levels->at[level] += levels->at[level - 1];
  const uint32_t count = levels->at[b->highest];
  for (uint32_t k = b->plan->node_count; k-- > 0;)
    if (b->level_of[k]) levels->tasks[--levels->at[b->level_of[k]]] = k;
  for (uint32_t level = 0; level < b->highest; ++level) levels->at[level] = levels->at[level + 1];
  levels->at[b->highest] = count;
}

static uint32_t most_touches(const gk_plan *plan) {
  uint32_t all = 0;
  for (uint32_t k = 0; k < plan->node_count; ++k)
    if (gki_op_is_task(plan->nodes[k].op)) all += plan->nodes[k].arg_count + GKI_MAX_TOUCHES - GK_MAX_ARGS + 1;
  return all;
}

gk_result gki_levels_make(gki_levels *levels, const gk_plan *plan, gki_arena *arena) {
  const char *const what = "the levels of a plan's tasks";
  builder b = {.plan = plan};
  gk_result result = GK_ERROR_MEMORY;
  levels->tasks = gki_arena_alloc(arena, plan->node_count, sizeof *levels->tasks);
  levels->at = gki_arena_alloc(arena, (size_t)plan->node_count + 1, sizeof *levels->at);
  levels->of_run = gki_arena_alloc(arena, (size_t)plan->run_count + 1, sizeof *levels->of_run);
  b.written = levels->written = gki_arena_alloc(arena, plan->slot_count, sizeof *levels->written);
  if (!levels->tasks || !levels->at || !levels->of_run || !levels->written)
    return gki_fail_memory(what, plan->node_count * sizeof *levels->tasks);
  b.last = gki_array(plan->slot_count, sizeof *b.last, what);
  b.changes = b.last ? gki_array(most_touches(plan) + 1, sizeof *b.changes, what) : NULL;
  b.level_of = b.changes ? gki_array(plan->node_count, sizeof *b.level_of, what) : NULL;
  if (!b.level_of) goto done;
  for (uint32_t run = 0; run < plan->run_count; ++run) {
    b.before = levels->of_run[run] = b.highest;
    b.change_count = 0;
    put_tasks(&b, plan->runs[run].begin, plan->runs[run].end);
  }
  levels->of_run[plan->run_count] = b.highest;
  sort_tasks(&b, levels);
  result = GK_OK;
done:
  gk_host_free(b.level_of);
  gk_host_free(b.changes);
  gk_host_free(b.last);
  return result;
}
