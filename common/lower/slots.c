#include "lower/slots.h"
#include "base/error.h"
#include "base/op.h"
#include "plan/node.h"
#include <string.h>

enum { RECORD_ALIGNMENT = 16, /* kernels load 16 bytes at once */
       MORE_ENTRIES = 3 };    /* behind the slots (gki_flag_slot): the addresses of a 1 and of the table, and the 1 */

/* ---- layout ------------------------------------------------------------------------------------------------------ */

static size_t align(size_t at, size_t to) { return (at + to - 1) / to * to; }

/* Behind the head and the arguments of a kernel's record. */
static size_t extents_at(const gk_node *node) {
  return align(sizeof(gki_record) + node->arg_count * sizeof(uint64_t), RECORD_ALIGNMENT);
}

static bool reads_extent(const gk_plan *plan, const gk_node *node, int axis) {
  return node->items[axis] && plan->slots[node->items[axis]].type == GK_PTR;
}

static size_t record_bytes(const gk_plan *plan, const gk_node *node) {
  if (node->op == GK_OP_COPY || node->op == GK_OP_FILL || node->handwritten) return sizeof(gki_transfer);
  if (node->op != GK_OP_KERNEL) return 0;
  const bool reads = reads_extent(plan, node, 0) || reads_extent(plan, node, 1) || reads_extent(plan, node, 2);
  return extents_at(node) + (reads ? align(3 * sizeof(int64_t), RECORD_ALIGNMENT) : 0);
}

/* A plan has at most 2^16 slots of less than 2^32 bytes each, so even the size of `depth` tables doesn't overflow. */
static void lay_out(gki_slot_table *slots) {
  const gk_plan *plan = slots->plan;
  size_t bytes = (plan->slot_count + MORE_ENTRIES) * sizeof(uint64_t);
  for (uint32_t k = 1; k < plan->slot_count; ++k) {
    if (plan->slots[k].type != GK_BYTES) continue;
    slots->structs[k] = align(bytes, GKI_STRUCT_ALIGNMENT);
    bytes = slots->structs[k] + plan->slots[k].element_bytes;
  }
  bytes = align(bytes, RECORD_ALIGNMENT);
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const size_t record = record_bytes(plan, &plan->nodes[k]);
    if (record) slots->records[k] = bytes;
    bytes += record;
  }
  slots->bytes = align(bytes, GKI_STRUCT_ALIGNMENT);
}

/* The slots on which a record, the parameters of handwritten code, or a decision depend. */
static uint32_t count_slots(const gk_node *node) {
  return gki_op_is_task(node->op) && !gki_op_is_call(node->op) ? node->arg_count + 3 : node->flag != 0;
}

static uint32_t slot_of(const gk_plan *plan, const gk_node *node, uint32_t k) {
  if (!gki_op_is_task(node->op)) return node->flag;
  return k < node->arg_count ? plan->args[node->args + k] : node->items[k - node->arg_count];
}

static bool find_users(gki_slot_table *slots, gki_arena *arena) {
  const gk_plan *plan = slots->plan;
  uint32_t all = 0;
  for (uint32_t n = 0; n < plan->node_count; ++n)
    for (uint32_t k = 0; k < count_slots(&plan->nodes[n]); ++k, ++all)
      ++slots->users_at[slot_of(plan, &plan->nodes[n], k) + 1];
  slots->users = gki_arena_alloc(arena, all, sizeof *slots->users);
  if (!slots->users) return false;
  for (uint32_t slot = 0; slot < plan->slot_count; ++slot) slots->users_at[slot + 1] += slots->users_at[slot];
  /* users_at[slot + 1] is now one past the slot's last user. Filling backwards turns it into the first user's index. */
  for (uint32_t n = plan->node_count; n-- > 0;)
    for (uint32_t k = 0; k < count_slots(&plan->nodes[n]); ++k)
      slots->users[--slots->users_at[slot_of(plan, &plan->nodes[n], k) + 1]] = n;
  memmove(slots->users_at, slots->users_at + 1, plan->slot_count * sizeof *slots->users_at);
  slots->users_at[plan->slot_count] = all;
  return true;
}

gk_result gki_slot_table_make(gki_slot_table *slots, const gk_plan *plan, uint32_t depth, gki_arena *arena,
                              size_t *ring_bytes) {
  *slots = (gki_slot_table){.plan = plan, .depth = depth,
                            .structs = gki_arena_alloc(arena, plan->slot_count, sizeof *slots->structs),
                            .records = gki_arena_alloc(arena, plan->node_count, sizeof *slots->records),
                            .users_at = gki_arena_alloc(arena, plan->slot_count + 1, sizeof *slots->users_at)};
  *ring_bytes = 0;
  if (!slots->structs || !slots->records || !slots->users_at || !find_users(slots, arena))
    return gki_fail_memory("a graph's table of slots", plan->node_count * sizeof *slots->records);
  lay_out(slots);
  *ring_bytes = slots->bytes * depth;
  slots->image = gki_arena_alloc_aligned(arena, slots->bytes, GKI_STRUCT_ALIGNMENT);
  return slots->image ? GK_OK : gki_fail_memory("a graph's table of slots", slots->bytes);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

int64_t gki_slot_table_number(const gki_slot_table *slots, uint32_t slot, const gk_value *values) {
  return gki_number(slots->plan, slot, values[slot]);
}

/* The 8 bytes by which a record holds an argument. Those of slot 0 are 0. */
static uint64_t entry_of(const gki_slot_table *slots, uint32_t slot, const gk_value *values) {
  const gk_type type = slots->plan->slots[slot].type;
  uint64_t entry = 0;
  if (type == GK_BYTES) entry = slots->at + slots->structs[slot];
  else if (type == GK_I32 || type == GK_U32) entry = (uint64_t)gki_slot_table_number(slots, slot, values);
  else if (slot) memcpy(&entry, &values[slot], sizeof entry);
  return entry;
}

/* The record's count. An extent that the kernel reads from memory is returned as its address. */
static uint32_t count_of(const gki_slot_table *slots, uint32_t at, const gk_launch_args *launch, int64_t extents[3]) {
  const gk_node *node = &slots->plan->nodes[at];
  uint32_t reads = 0;
  uint64_t items;
  for (int axis = 0; axis < 3; ++axis) {
    extents[axis] = node->items[axis] ? gki_slot_table_number(slots, node->items[axis], launch->values) : 1;
    if (!reads_extent(slots->plan, node, axis)) continue;
    reads |= 1u << axis;
    if (axis == 0 && node->op == GK_OP_KERNEL) extents[axis] += node->offset;
  }
  if (reads) return GKI_UNCOUNTED | reads;
  return gki_count_items(slots->plan, at, launch, extents, &items) ? (uint32_t)items : GKI_UNCOUNTED;
}

static void write_kernel(const gki_slot_table *slots, uint32_t at, const gk_launch_args *launch) {
  const gk_node *node = &slots->plan->nodes[at];
  unsigned char *to = slots->image + slots->records[at];
  int64_t extents[3];
  const uint32_t count = count_of(slots, at, launch, extents);
  const gki_record record = {count, {(uint32_t)extents[0], (uint32_t)extents[1]}, at};
  memcpy(to, &record, sizeof record);
  if (count > GKI_UNCOUNTED) memcpy(to + extents_at(node), extents, sizeof extents);
  for (uint32_t k = 0; k < node->arg_count; ++k) {
    const uint64_t entry = entry_of(slots, slots->plan->args[node->args + k], launch->values);
    memcpy(to + sizeof record + k * sizeof entry, &entry, sizeof entry);
  }
}

static uint64_t room_behind(const gk_launch_args *launch, uint32_t slot, uint32_t offset) {
  const size_t capacity = launch->capacity[slot];
  if (capacity == SIZE_MAX) return UINT64_MAX;
  return capacity < offset ? 0 : capacity - offset;
}

static void write_transfer(const gki_slot_table *slots, uint32_t at, const gk_launch_args *launch) {
  const gk_plan *plan = slots->plan;
  const gk_node *node = &plan->nodes[at];
  const uint32_t to = plan->args[node->args], from = plan->args[node->args + node->arg_count - 1];
  int64_t extents[3];
  gki_transfer record = {.count = count_of(slots, at, launch, extents), .element = plan->slots[to].element_bytes,
                         .pattern = node->pattern, .node = at,
                         .to = entry_of(slots, to, launch->values) + node->offset,
                         .from = entry_of(slots, from, launch->values) + node->from_offset};
  if (!record.element) record.element = 1;
  if (record.count > GKI_UNCOUNTED) {
    record.count_at = (uint64_t)extents[0];
    record.to_room = room_behind(launch, to, node->offset);
    record.from_room = room_behind(launch, from, node->from_offset);
  }
  memcpy(slots->image + slots->records[at], &record, sizeof record);
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

typedef struct range { size_t begin, end; } range;

static void widen(range *r, size_t begin, size_t bytes) {
  if (begin < r->begin) r->begin = begin;
  if (begin + bytes > r->end) r->end = begin + bytes;
}

static void write_struct(const gki_slot_table *slots, uint32_t slot, const gk_value *values, range *r) {
  const uint32_t bytes = slots->plan->slots[slot].element_bytes;
  memcpy(slots->image + slots->structs[slot], values[slot].ptr, bytes);
  widen(r, slots->structs[slot], bytes);
}

/* Handwritten code reads no record. If its count is bad, the backend puts a FILL in its place, which reads this record
 * and posts the count. */
static void write_user(const gki_slot_table *slots, uint32_t at, const gk_launch_args *launch, range *r) {
  const gk_node *node = &slots->plan->nodes[at];
  if (!gki_op_is_task(node->op)) {
    const uint64_t flag = entry_of(slots, node->flag, launch->values);
    memcpy(slots->image + node->flag * sizeof flag, &flag, sizeof flag);
    widen(r, node->flag * sizeof flag, sizeof flag);
    return;
  }
  if (node->op == GK_OP_COPY || node->op == GK_OP_FILL) write_transfer(slots, at, launch);
  else if (!node->handwritten) write_kernel(slots, at, launch);
  else memcpy(slots->image + slots->records[at], &(gki_transfer){.count = GKI_UNCOUNTED, .node = at},
              sizeof(gki_transfer));
  widen(r, slots->records[at], record_bytes(slots->plan, node));
}

static range write_all(const gki_slot_table *slots, const gk_launch_args *launch) {
  range r = {0, slots->bytes};
  for (uint32_t k = 1; k < slots->plan->slot_count; ++k)
    if (slots->structs[k]) write_struct(slots, k, launch->values, &r);
  for (uint32_t k = 0; k < slots->plan->node_count; ++k)
    if (count_slots(&slots->plan->nodes[k])) write_user(slots, k, launch, &r);
  const size_t behind = slots->plan->slot_count * sizeof(uint64_t);
  memcpy(slots->image + behind, &(uint64_t[MORE_ENTRIES]){slots->at + behind + 2 * sizeof(uint64_t), slots->at, 1},
         MORE_ENTRIES * sizeof(uint64_t));
  return r;
}

static bool is_argument(const gk_node *node, uint32_t slot) {
  return node->op == GK_OP_KERNEL && node->items[0] != slot && node->items[1] != slot && node->items[2] != slot;
}

/* Writes one argument, not all of its record, since a list may have the slot in each of its tasks. */
static void write_argument(const gki_slot_table *slots, uint32_t at, uint32_t slot, uint64_t entry, range *r) {
  const gk_node *node = &slots->plan->nodes[at];
  size_t to = slots->records[at] + sizeof(gki_record);
  for (uint32_t k = 0; k < node->arg_count; ++k, to += sizeof entry) {
    if (slots->plan->args[node->args + k] != slot) continue;
    memcpy(slots->image + to, &entry, sizeof entry);
    widen(r, to, sizeof entry);
  }
}

/* Records with a struct hold its address, which stays. Parameters of handwritten code are in their nodes. */
static void write_changed(const gki_slot_table *slots, uint32_t slot, const gk_launch_args *launch, range *r) {
  if (slots->structs[slot]) {
    write_struct(slots, slot, launch->values, r);
    return;
  }
  const uint64_t entry = entry_of(slots, slot, launch->values);
  for (uint32_t k = slots->users_at[slot]; k < slots->users_at[slot + 1]; ++k) {
    const gk_node *node = &slots->plan->nodes[slots->users[k]];
    if (node->handwritten) continue;
    if (is_argument(node, slot)) write_argument(slots, slots->users[k], slot, entry, r);
    else write_user(slots, slots->users[k], launch, r);
  }
}

const unsigned char *gki_slot_table_changed(gki_slot_table *slots, const gk_launch_args *launch, uint64_t place,
                                            size_t *begin, size_t *end) {
  range r = slots->is_sent ? (range){slots->bytes, 0} : write_all(slots, launch);
  for (uint32_t k = 0; slots->is_sent && k < launch->changed_count; ++k)
    write_changed(slots, launch->changed[k], launch, &r);
  slots->is_sent = true;
  unsigned char *table = slots->ring + place % slots->depth * slots->bytes;
  *begin = r.end ? r.begin : 0;
  *end = r.end;
  memcpy(table + *begin, slots->image + *begin, *end - *begin);
  return table;
}

void gki_slot_table_write(gki_slot_table *slots, const gk_launch_args *launch, uint64_t place) {
  (void)write_all(slots, launch);
  memcpy(slots->ring + place % slots->depth * slots->bytes, slots->image, slots->bytes);
}

gki_task gki_task_of(const gki_slot_table *slots, uint32_t at) {
  return (gki_task){.record = slots->at + slots->records[at], .number = slots->control};
}

uint64_t gki_slot_table_items(const gki_slot_table *slots, uint32_t node) {
  const unsigned char *record = slots->image + slots->records[node];
  uint32_t count, element;
  memcpy(&count, record, sizeof count); /* the first field of both kinds of records */
  if (count >= GKI_UNCOUNTED) return count == GKI_UNCOUNTED ? 1 : GKI_UNKNOWN_ITEMS;
  if (slots->plan->nodes[node].op == GK_OP_KERNEL) return count;
  memcpy(&element, record + offsetof(gki_transfer, element), sizeof element);
  return ((uint64_t)count * element + GKI_TRANSFER_BYTES - 1) / GKI_TRANSFER_BYTES;
}
