#include "lower/params.h"
#include "base/error.h"
#include "plan/node.h"
#include <string.h>

enum { ALIGNMENT = 16 /* of the first parameter of a task; the driver copies them */ };

/* ---- finding them ------------------------------------------------------------------------------------------------ */

static const gk_node *node_of(const gki_params *p, uint32_t number) {
  return &p->slots->plan->nodes[p->tasks[number].node];
}

size_t gki_param_bytes(const gk_param *param) {
  if (param->access != GK_ACCESS_VALUE) return sizeof(uint64_t);
  switch (param->type) {
  case GK_I32: case GK_U32: case GK_F32: return 4;
  case GK_BYTES: return param->element_bytes;
  default: return 8;
  }
}

uint64_t gki_param_places(const gk_kernel *kernel, uint64_t *places) {
  uint64_t at = 0;
  for (uint32_t k = 0; kernel->params && k < kernel->param_count && k < GK_MAX_ARGS; ++k) {
    const gk_param *param = &kernel->params[k];
    const bool is_struct = param->type == GK_BYTES && param->access == GK_ACCESS_VALUE;
    const uint64_t bytes = gki_param_bytes(param), own = is_struct ? param->element_alignment : bytes;
    const uint64_t alignment = own ? own : 1;
    at = (at + alignment - 1) / alignment * alignment;
    if (places) places[k] = at;
    at += bytes;
  }
  return at;
}

static void find_tasks(gki_params *p, const unsigned *most_blocks) {
  const gk_plan *plan = p->slots->plan;
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    if (!plan->nodes[k].handwritten) continue;
    const size_t bytes = (size_t)gki_param_places(plan->nodes[k].kernel, NULL);
    p->tasks[p->count++] = (gki_param_task){.node = k, .at = p->bytes, .bytes = bytes, .most_blocks = most_blocks};
    p->bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  for (uint32_t k = 0; k <= p->count; ++k) /* in any order, since there is no change yet */
    p->changes[k] = (gki_param_change){0, k ? k - 1 : p->count, k < p->count ? k + 1 : 0};
}

gk_result gki_param_make(gki_params *p, const gki_slot_table *slots, const unsigned most_blocks[3],
                          gki_arena *arena) {
  const gk_plan *plan = slots->plan;
  uint32_t count = 0;
  *p = (gki_params){.slots = slots};
  for (uint32_t k = 0; k < plan->node_count; ++k) count += plan->nodes[k].handwritten;
  if (!count) return GK_OK;
  p->tasks = gki_arena_alloc(arena, count, sizeof *p->tasks);
  p->changes = gki_arena_alloc(arena, (size_t)count + 1, sizeof *p->changes);
  p->wanted.grids = gki_arena_alloc(arena, count, sizeof *p->wanted.grids);
  const bool found = p->tasks && p->changes;
  if (found) find_tasks(p, most_blocks);
  p->wanted.bytes = gki_arena_alloc_aligned(arena, p->bytes + 1, ALIGNMENT);
  if (found && p->wanted.grids && p->wanted.bytes) return GK_OK;
  p->count = 0;
  return gki_fail_memory("a graph's kernels with code by hand", count * sizeof *p->tasks + p->bytes);
}

uint32_t gki_param_number(const gki_params *p, uint32_t node) {
  uint32_t first = 0, end = p->count;
  while (first < end) {
    const uint32_t middle = first + (end - first) / 2;
    if (p->tasks[middle].node < node) first = middle + 1;
    else end = middle;
  }
  return first;
}

/* ---- values and grids -------------------------------------------------------------------------------------------- */

static void write_parameter(const gki_params *p, const gk_param *param, uint32_t slot, const gk_value *value,
                            void *to) {
  const bool is_struct = p->slots->plan->slots[slot].type == GK_BYTES;
  const uint64_t copy = is_struct ? p->slots->at + p->slots->structs[slot] : 0;
  const void *from = param->access == GK_ACCESS_VALUE ? is_struct ? value->ptr : (const void *)value
                     : is_struct                      ? (const void *)&copy
                                                      : (const void *)&value->ptr;
  memcpy(to, from, gki_param_bytes(param));
}

static void write_parameters(gki_params *p, uint32_t number, const gk_value *values) {
  const gk_node *node = node_of(p, number);
  const uint32_t *args = p->slots->plan->args + node->args;
  void *to[GK_MAX_ARGS];
  gki_param_point(p, number, to);
  for (uint32_t k = 0; k < node->arg_count; ++k)
    write_parameter(p, &node->kernel->params[k], args[k], &values[args[k]], to[k]);
}

void gki_param_point(const gki_params *p, uint32_t number, void **pointers) {
  const gk_kernel *kernel = node_of(p, number)->kernel;
  uint64_t places[GK_MAX_ARGS];
  (void)gki_param_places(kernel, places);
  for (uint32_t k = 0; k < kernel->param_count; ++k)
    pointers[k] = p->wanted.bytes + p->tasks[number].at + places[k];
}

/* grid: all 0 if there are no items. Returns the first axis with too many blocks, 3 if there are too many items, -1 if
 * the count is good. */
static int count_blocks(const gki_params *p, uint32_t number, const gk_value *values, int64_t grid[3]) {
  const unsigned *per_block = p->tasks[number].per_block;
  const gk_node *node = node_of(p, number);
  int64_t items[3], all = 1;
  int bad = -1;
  for (int axis = 0; axis < 3; ++axis) {
    items[axis] = node->items[axis] ? gki_slot_table_number(p->slots, node->items[axis], values) : 1;
    grid[axis] = 0;
    if (items[axis] <= 0) all = 0;
  }
  for (int axis = 0; axis < 3 && all; ++axis) {
    grid[axis] = items[axis] / per_block[axis] + (items[axis] % per_block[axis] != 0);
    if (grid[axis] > p->tasks[number].most_blocks[axis] && bad < 0) bad = axis;
    if (__builtin_mul_overflow(all, items[axis], &all) || all > INT32_MAX) return 3;
  }
  return bad;
}

static void write_grid(gki_params *p, uint32_t number, const gk_value *values) {
  int64_t grid[3];
  const bool bad = count_blocks(p, number, values, grid) >= 0;
  for (int axis = 0; axis < 3; ++axis) p->wanted.grids[number][axis] = bad ? axis == 1 : (unsigned)grid[axis];
}

static void put_first(gki_params *p, uint32_t number, uint64_t version) {
  gki_param_change *ring = p->changes, *at = &ring[number], *head = &ring[p->count];
  ring[at->later].earlier = at->earlier;
  ring[at->earlier].later = at->later;
  *at = (gki_param_change){version, p->count, head->earlier};
  ring[head->earlier].later = number;
  head->earlier = number;
}

static void update_task(gki_params *p, uint32_t number, uint64_t version, const gk_value *values) {
  if (p->changes[number].version == version) return; /* done for another slot of this task */
  put_first(p, number, version);
  write_parameters(p, number, values);
  write_grid(p, number, values);
}

bool gki_param_update(gki_params *p, const gk_launch_args *launch) {
  const uint64_t next = p->wanted.version + 1;
  if (!p->count) return false;
  for (uint32_t n = 0; next == 1 && n < p->count; ++n) update_task(p, n, next, launch->values);
  for (uint32_t k = 0; k < launch->changed_count; ++k) {
    const uint32_t *users = p->slots->users, *at = p->slots->users_at + launch->changed[k];
    for (uint32_t u = at[0]; u < at[1]; ++u)
      if (p->slots->plan->nodes[users[u]].handwritten)
        update_task(p, gki_param_number(p, users[u]), next, launch->values);
  }
  p->wanted.version = p->changes[p->changes[p->count].earlier].version; /* of the latest change */
  return p->wanted.version == next;
}

/* ---- bad counts -------------------------------------------------------------------------------------------------- */

/* GK_ERROR_INVALID if a task has too many blocks. */
static gk_result check_blocks(const gki_params *p, uint32_t node, const gk_value *values) {
  const uint32_t number = gki_param_number(p, node);
  int64_t grid[3];
  if (number == p->count || p->tasks[number].node != node) return GK_OK;
  const int axis = count_blocks(p, number, values, grid);
  if (axis < 0 || axis == 3) return GK_OK;
  const gk_node *task = node_of(p, number);
  char by[GKI_SLOT_TITLE_BYTES];
  return gk_fail(GK_ERROR_INVALID, "task %u (%s): %lld blocks along %c, by %s, and a grid has at most %u; "
                 "let a block cover more items (.per_block of the kernel's code), or change the number",
                 (unsigned)task->source, task->name, (long long)grid[axis], "xyz"[axis],
                 gki_slot_title(p->slots->plan, task->items[axis], by), p->tasks[number].most_blocks[axis]);
}

/* The extents as the task has read them, and as the host knows them. */
static void read_extents(const gki_slot_table *slots, const gki_bad_count *post, const gk_value *values,
                         int64_t extent[3]) {
  const gk_node *node = &slots->plan->nodes[post->node];
  for (int axis = 0; axis < 3; ++axis) {
    const uint32_t slot = node->items[axis];
    if (!slot) extent[axis] = 1;
    else if (slots->plan->slots[slot].type == GK_PTR) extent[axis] = post->extent[axis];
    else extent[axis] = gki_slot_table_number(slots, slot, values);
  }
}

gk_result gki_param_check(const gki_params *p, const gki_bad_count *post, const gk_launch_args *launch) {
  const gk_plan *plan = p->slots->plan;
  if (post->node >= plan->node_count)
    return gk_fail(GK_ERROR_DEVICE, "graph %s: a launch posted a bad count of a task that can't be (%u), so something "
                   "wrote over gk's memory on the device: look for a kernel that writes beyond its own, and close the "
                   "device", plan->name, (unsigned)post->node);
  int64_t extent[3];
  uint64_t items;
  read_extents(p->slots, post, launch->values, extent);
  const gk_result result = gk_check_count(plan, post->node, launch, extent, &items);
  return result == GK_OK ? check_blocks(p, post->node, launch->values) : result;
}

gk_result gki_param_check_posts(const gki_params *p, const gki_bad_count *posts, const gk_launch_args *launch) {
  const gki_bad_count *post = &posts[(launch->launch - 1) % GKI_LAUNCH_RING];
  if (__atomic_load_n(&post->number, __ATOMIC_ACQUIRE) != launch->launch) return GK_OK;
  return gki_param_check(p, post, launch);
}

/* Slot 0 holds 0: as a record, a FILL without elements. */
gki_task gki_param_fill(const gki_params *p, uint32_t number) {
  gki_task task = gki_task_of(p->slots, p->tasks[number].node);
  if (!p->wanted.grids[number][1]) task.record = p->slots->at;
  return task;
}

/* ---- what nodes were given --------------------------------------------------------------------------------------- */

gk_result gki_param_given_make(gki_param_given *given, const gki_params *p) {
  *given = (gki_param_given){0};
  if (!p->count) return GK_OK;
  given->known = gki_array(p->count, sizeof *given->known, "the nodes of kernels with code by hand");
  given->values.grids = gki_array(p->count, sizeof *given->values.grids, "the nodes of kernels with code by hand");
  given->values.bytes = gki_array(p->bytes + 1, 1, "the parameters of kernels with code by hand");
  if (given->known && given->values.grids && given->values.bytes) return GK_OK;
  gki_param_given_drop(given);
  return GK_ERROR_MEMORY;
}

void gki_param_given_drop(gki_param_given *given) {
  gk_host_free(given->known);
  gk_host_free(given->values.grids);
  gk_host_free(given->values.bytes);
  *given = (gki_param_given){0};
}

void gki_param_note_given(gki_param_given *given, const gki_params *p, uint32_t number) {
  const gki_param_task *task = &p->tasks[number];
  memcpy(given->values.bytes + task->at, p->wanted.bytes + task->at, task->bytes);
  memcpy(given->values.grids[number], p->wanted.grids[number], sizeof given->values.grids[number]);
  given->known[number] = true;
}

bool gki_param_is_given(const gki_param_given *given, const gki_params *p, uint32_t number) {
  const gki_param_task *task = &p->tasks[number];
  if (!given->known[number]) return false;
  if (memcmp(given->values.grids[number], p->wanted.grids[number], sizeof *p->wanted.grids) != 0) return false;
  return !gki_param_has_items(p, number) ||
         memcmp(given->values.bytes + task->at, p->wanted.bytes + task->at, task->bytes) == 0;
}

/* ---- code -------------------------------------------------------------------------------------------------------- */

enum { THREADS = 256, /* of a block, unless the code says otherwise */
       MAX_Z = 64,
       MAX_PARAMETERS = 4096 /* bytes; some drivers take more, but crash on nodes that have more */ };

const gk_code *gki_param_code(const gk_kernel *kernel, const gk_code *code, const char **beyond) {
  if (!beyond || !code) return code;
  *beyond = NULL;
  if (code->block[2] > MAX_Z) *beyond = "has more than 64 threads along z in a block";
  else if (gki_param_places(kernel, NULL) > MAX_PARAMETERS)
    *beyond = "has more than 4096 bytes of parameters, the most that a node takes (a large struct may go by `in`)";
  return code;
}

void gki_param_block(const gk_code *code, unsigned block[3], unsigned per_block[3]) {
  for (int k = 0; k < 3; ++k) {
    block[k] = code->block[k] ? code->block[k] : k == 0 ? THREADS : 1;
    per_block[k] = code->per_block[k] ? code->per_block[k] : block[k];
  }
}
