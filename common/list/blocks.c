/* Writes out a list with its included lists, then matches its blocks. measure.c has counted before. */
#include "list/blocks.h"
#include "base/error.h"
#include "list/measure.h"
#include <stdio.h>
#include <string.h>

/* What writing needs besides the result. */
typedef struct reader {
  gki_blocks *blocks;
  gki_measures measures;
  uint32_t inclusion_next, map_next, slot_next;
} reader;

static char *join(gki_arena *arena, const char *prefix, const char *name) {
  size_t before = strlen(prefix), length = name ? strlen(name) : 0;
  char *text = gki_arena_alloc(arena, before + length + 2, 1);
  if (!text) {
    gki_fail_memory("the names of a list's slots", before + length + 2);
    return NULL;
  }
  memcpy(text, prefix, before);
  if (before) text[before++] = '.';
  if (length) memcpy(text + before, name, length);
  return text;
}

/* The composed slot of a constant, by what stands for it in the list; 0: there is none of that type. */
static uint32_t constant_of(const gki_blocks *blocks, gk_type type, gk_slot items) {
  if (!blocks->constants.size) return 0;
  const gki_entry *entry = gki_table_find(&blocks->constants, gki_constant_key(type, items));
  return entry->key ? blocks->constant_base + (uint32_t)entry->value : 0;
}

static gk_result add_constants(gki_blocks *blocks) {
  for (size_t k = 0; k < blocks->constants.size; ++k) {
    const gki_entry *entry = &blocks->constants.entries[k];
    if (!entry->key) continue;
    gk_slot_desc *slot = &blocks->slots[blocks->constant_base + entry->value];
    const int32_t number = (int32_t)(uint32_t)entry->key;
    char text[24], *name;
    snprintf(text, sizeof text, "GK_ITEMS(%d)", number);
    if (!(name = join(&blocks->arena, "", text))) return GK_ERROR_MEMORY;
    *slot = (gk_slot_desc){.slot = -number, .type = (gk_type)(entry->key >> 32), .name = name, .bits = GK_HAS_VALUE};
    if (slot->type == GK_I64) slot->value.i64 = number;
    else slot->value.i32 = number;
  }
  return GK_OK;
}

/* Rooms name their buffer as composed, and have the size of its elements in this table. */
static void find_buffers(gki_blocks *blocks, uint32_t inclusion) {
  const gki_inclusion *in = &blocks->inclusions[inclusion];
  for (size_t k = in->at ? in->arg_count : 0; k < in->list->slot_count; ++k) {
    const gk_slot_desc *desc = &in->list->slots[k];
    const uint32_t composed = blocks->slot_map[in->slot_base + k];
    if (!composed || !(desc->bits & GK_IS_ROOM) || !gki_slot_is_known(blocks, inclusion, desc->value.i32)) continue;
    blocks->slots[composed].element_bytes = in->list->slots[in->ranks[desc->value.i32] - 1].element_bytes;
    blocks->slots[composed].value.i32 = (int32_t)gki_slot_of(blocks, inclusion, desc->value.i32);
  }
}

/* The task's slots replace the first slots of the table; the other slots are new. */
static gk_result add_slots(reader *read, uint32_t inclusion) {
  gki_blocks *blocks = read->blocks;
  gki_inclusion *in = &blocks->inclusions[inclusion];
  in->slot_base = read->map_next;
  for (size_t k = 0; k < in->list->slot_count; ++k) {
    const gk_slot_desc *desc = &in->list->slots[k];
    uint32_t *composed = &blocks->slot_map[read->map_next++];
    if (!in->at) {
      if (desc->slot < 1 || desc->slot > GKI_MAX_SLOT || in->ranks[desc->slot] != k + 1) continue;
      *composed = (uint32_t)desc->slot;
      blocks->slots[*composed] = *desc;
    } else if (k < in->arg_count) {
      const gk_slot given = in->at->args[k];
      *composed = given < 0 ? constant_of(blocks, desc->type, given) : gki_slot_of(blocks, in->around, given);
    } else {
      char *name = join(&blocks->arena, in->name, desc->name);
      if (!name) return GK_ERROR_MEMORY;
      *composed = read->slot_next++;
      blocks->slots[*composed] = *desc;
      blocks->slots[*composed].slot = (gk_slot)*composed;
      blocks->slots[*composed].name = name;
    }
  }
  find_buffers(blocks, inclusion);
  return GK_OK;
}

static gk_result add_inclusion(reader *read, const gk_task *at, uint32_t around, uint32_t source,
                               uint32_t *inclusion) {
  gki_blocks *blocks = read->blocks;
  const gki_inclusion *outer = &blocks->inclusions[around];
  *inclusion = read->inclusion_next++;
  gki_inclusion *in = &blocks->inclusions[*inclusion];
  *in = (gki_inclusion){
      .at = at,
      .name = "",
      .around = around,
      .source = source,
      .index = (uint32_t)(at - outer->list->tasks),
      .begin = blocks->line_count,
      .first = *inclusion,
      .arg_count = gki_arg_count(at),
      .label_offset = outer->label_offset + at->label,
  };
  if (!gki_list_is_readable(at->list)) return GK_OK;
  gki_measure *m = gki_measure_of(&read->measures, at->list);
  if (!m->first) m->first = *inclusion;
  in->first = m->first;
  in->list = at->list;
  in->ranks = m->ranks;
  in->slot_max = m->slot_max;
  in->name = join(&blocks->arena, outer->name, gki_inclusion_prefix(at));
  return in->name ? add_slots(read, *inclusion) : GK_ERROR_MEMORY;
}

/* The state while lines are written: the open block, its depth, and the depth at which this list began. */
typedef struct nest {
  uint32_t block, depth, floor;
} nest;

static void add_end(gki_blocks *blocks, nest *open, uint32_t at) {
  gki_line *lines = blocks->lines;
  if (open->depth == open->floor) return;
  uint32_t begin = open->block;
  if (lines[begin].task->op == GK_OP_ELSE) {
    lines[begin].mate = at;
    begin = lines[begin].otherwise;
  }
  lines[begin].mate = at;
  lines[at].mate = begin;
  lines[at].parent = open->block = lines[begin].parent;
  --open->depth;
}

static void add_else(gki_blocks *blocks, nest *open, uint32_t at) {
  gki_line *lines = blocks->lines;
  if (open->depth == open->floor || lines[open->block].task->op != GK_OP_IF) return;
  lines[at].otherwise = open->block;
  lines[open->block].otherwise = at;
  open->block = at;
}

static void add_line(gki_blocks *blocks, nest *open, const gk_task *task, uint32_t inclusion, uint32_t source) {
  uint32_t at = blocks->line_count++;
  blocks->lines[at] = (gki_line){task, inclusion, source, open->block, GK_NONE, GK_NONE};
  if (task->op == GK_OP_END) {
    add_end(blocks, open, at);
  } else if (task->op == GK_OP_ELSE) {
    add_else(blocks, open, at);
  } else if (gki_op_opens(task->op)) {
    open->block = at;
    if (++open->depth > blocks->max_depth) blocks->max_depth = open->depth;
  }
}

/* Recursive, and no deeper than GK_MAX_DEPTH: measuring has checked this. */
static gk_result add_lines(reader *read, uint32_t inclusion, nest open) {
  gki_blocks *blocks = read->blocks;
  const gk_list *list = blocks->inclusions[inclusion].list;
  for (size_t k = 0; k < list->task_count; ++k) {
    const gk_task *task = &list->tasks[k];
    uint32_t source = inclusion ? blocks->inclusions[inclusion].source : (uint32_t)k, inner;
    if (task->op != GK_OP_LIST) {
      add_line(blocks, &open, task, inclusion, source);
      continue;
    }
    gk_result result = add_inclusion(read, task, inclusion, source, &inner);
    if (!result && blocks->inclusions[inner].list)
      result = add_lines(read, inner, (nest){open.block, open.depth, open.depth});
    if (result) return result;
  }
  return GK_OK;
}

/* Labels may be wrong and have any 64 bits; no key is 0. */
static uint64_t loop_key(int64_t label) { return (uint64_t)label ^ UINT64_C(1) << 63; }

uint32_t gki_loop_of(const gki_blocks *blocks, uint32_t inclusion, int32_t label) {
  if (!label || !blocks->loops.size) return GK_NONE;
  const gki_inclusion *inclusions = blocks->inclusions;
  const gki_entry *entry = gki_table_find(&blocks->loops, loop_key(label + inclusions[inclusion].label_offset));
  if (!entry->key) return GK_NONE;
  uint32_t in = blocks->lines[entry->value].inclusion;
  while (in > inclusion) in = inclusions[in].around; /* inclusions are numbered from the outside to the inside */
  return in == inclusion ? (uint32_t)entry->value : GK_NONE;
}

static gk_result add_loops(gki_blocks *blocks) {
  for (uint32_t line = 0; line < blocks->line_count; ++line) {
    if (!gki_op_is_loop(blocks->lines[line].task->op) || !blocks->lines[line].task->label) continue;
    if (!gki_table_grow(&blocks->loops, 1, "reading a task list")) return GK_ERROR_MEMORY;
    const uint64_t key = loop_key(gki_label_of(blocks, line));
    if (!gki_table_find(&blocks->loops, key)->key) gki_table_add(&blocks->loops, key, line);
  }
  return GK_OK;
}

/* Pass numbers name the line of their loop. */
static gk_result find_loops(gki_blocks *blocks) {
  const gk_result result = blocks->has_passes ? add_loops(blocks) : GK_OK;
  for (uint32_t n = 0; n < blocks->inclusion_count && blocks->has_passes && !result; ++n) {
    const gki_inclusion *in = &blocks->inclusions[n];
    for (size_t k = in->at ? in->arg_count : 0; in->list && k < in->list->slot_count; ++k) {
      const gk_slot_desc *desc = &in->list->slots[k];
      const uint32_t composed = blocks->slot_map[in->slot_base + k];
      if (!composed || !(desc->bits & GK_IS_PASS)) continue;
      const uint32_t line = gki_loop_of(blocks, n, desc->value.i32);
      blocks->slots[composed].value.i32 = line == GK_NONE ? -1 : (int32_t)line;
    }
  }
  return result;
}

static gk_result write_out(reader *read, const gk_list *list) {
  gki_blocks *blocks = read->blocks;
  const gki_measure *m = &read->measures.all[0];
  size_t slots = (size_t)m->slots + m->slot_max + 1 + blocks->constants.count;
  blocks->lines = gki_arena_alloc(&blocks->arena, (size_t)m->lines, sizeof *blocks->lines);
  blocks->inclusions = gki_arena_alloc(&blocks->arena, (size_t)m->inclusions, sizeof *blocks->inclusions);
  blocks->slot_map = gki_arena_alloc(&blocks->arena, (size_t)m->places, sizeof *blocks->slot_map);
  blocks->slots = gki_arena_alloc(&blocks->arena, slots - list->slot_count, sizeof *blocks->slots);
  if (!blocks->lines || !blocks->inclusions || !blocks->slot_map || !blocks->slots)
    return gki_fail_memory("a task list with its included lists",
                           (size_t)m->lines * sizeof *blocks->lines +
                               (size_t)m->inclusions * sizeof *blocks->inclusions +
                               slots * (sizeof *blocks->slot_map + sizeof *blocks->slots));
  read->slot_next = m->slot_max + 1;
  blocks->constant_base = (uint32_t)(slots - list->slot_count - blocks->constants.count);
  read->inclusion_next = 1;
  blocks->inclusions[0] =
      (gki_inclusion){.list = list, .name = "", .ranks = m->ranks, .slot_max = m->slot_max, .source = GK_NONE};
  gk_result result = add_constants(blocks);
  if (!result) result = add_slots(read, 0);
  if (!result) result = add_lines(read, 0, (nest){GK_NONE, 0, 0});
  blocks->inclusion_count = read->inclusion_next;
  blocks->slot_count = read->slot_next + (uint32_t)blocks->constants.count;
  return result ? result : find_loops(blocks);
}

gk_result gki_blocks_read(gki_blocks *blocks, const gk_list *list) {
  *blocks = (gki_blocks){.fault_task = SIZE_MAX};
  reader read = {.blocks = blocks};
  gk_result result = gki_measure_list(&read.measures, blocks, list);
  if (!result) result = write_out(&read, list);
  gki_measures_free(&read.measures);
  if (result) {
    gki_arena_free(&blocks->arena);
    gk_host_free(blocks->constants.entries);
    gk_host_free(blocks->loops.entries);
    blocks->constants = blocks->loops = (gki_table){0};
    blocks->lines = NULL;
    blocks->line_count = blocks->inclusion_count = blocks->slot_count = 0;
  }
  return result;
}

void gki_blocks_free(gki_blocks *blocks) {
  gki_arena_free(&blocks->arena);
  gk_host_free(blocks->constants.entries);
  gk_host_free(blocks->loops.entries);
  *blocks = (gki_blocks){.fault_task = SIZE_MAX};
}

bool gki_slot_is_known(const gki_blocks *blocks, uint32_t inclusion, gk_slot slot) {
  const gki_inclusion *in = &blocks->inclusions[inclusion];
  return slot > 0 && (uint32_t)slot <= in->slot_max && in->ranks[slot];
}

uint32_t gki_slot_of(const gki_blocks *blocks, uint32_t inclusion, gk_slot slot) {
  const gki_inclusion *in = &blocks->inclusions[inclusion];
  if (!gki_slot_is_known(blocks, inclusion, slot)) return 0;
  return blocks->slot_map[in->slot_base + in->ranks[slot] - 1];
}

uint32_t gki_items_of(const gki_blocks *blocks, uint32_t inclusion, gk_slot items) {
  return items < 0 ? constant_of(blocks, GK_I32, items) : gki_slot_of(blocks, inclusion, items);
}

int64_t gki_label_of(const gki_blocks *blocks, uint32_t line) {
  const gki_line *at = &blocks->lines[line];
  return gki_has_label(at->task) ? at->task->label + blocks->inclusions[at->inclusion].label_offset : 0;
}
