/* The table of slots: the records of tasks, and the part that a launch sends. */
#include "lower/slots.h"
#include "gk.h"
#include "unit/support/chance.h"
#include "unit/support/planned.h"

typedef struct line { int32_t a, b; } line;
enum { X = 1, Y, N, COUNT, FLAG, LINE, SPARE };
static const gk_param parameters[] = {{"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT},
                                      {"n", "int", 4, 4, GK_I32, GK_ACCESS_VALUE},
                                      {"l", "line", sizeof(line), 4, GK_BYTES, GK_ACCESS_VALUE}};
static const gk_kernel flat = {.name = "flat", .params = parameters, .param_count = 3, .dimensions = 1};
static const gk_kernel wide = {.name = "wide", .params = parameters, .param_count = 2, .dimensions = 3};
static const gk_slot_desc slot_descs[] = {GK_BUFFER(X, int), GK_BUFFER(Y, int), GK_SCALAR(N, int),
                                          GK_BUFFER(COUNT, int), GK_BUFFER(FLAG, int), GK_STRUCT_VALUE(LINE, line),
                                          GK_BUFFER(SPARE, int)};
static const gk_task tasks[] = {
  GK_RUN(flat, N, X, N, LINE),      GK_RUN_3D(wide, N, COUNT, N, Y, N), GK_COPY(X, Y, N), GK_COPY(Y, X, COUNT),
  GK_FILL(X, GK_ONE, 7), GK_FILL(Y, N, 8), GK_DO_WHILE(FLAG), GK_RUN_2D(wide, N, N, X, N), GK_END,
  {.op = GK_OP_KERNEL, .kernel = &flat, .items = {COUNT}, .args = {X, N, LINE}, .offset = 8}};
enum { FLAT, WIDE, COPY, COPY_READ, FILL_ONE, FILL, LOOP, IN_LOOP, AT_OFFSET = IN_LOOP + 2 };

enum { DEPTH = 2, AT = 1 << 20, CONTROL = 512, SLOTS = SPARE + 1 };

typedef struct world {
  planned_list list;
  gki_arena arena;
  gki_slot_table table;
  gk_value values[SLOTS];
  size_t capacity[SLOTS];
  line bytes;
  unsigned char *device; /* the table on the device */
  uint64_t launches;
} world;

static gk_launch_args args(world *w, const uint32_t *changed, uint32_t count) {
  return (gk_launch_args){.values = w->values, .capacity = w->capacity, .changed = changed, .changed_count = count};
}

static void bind(world *w, uint32_t slot, uint64_t value) {
  if (slot == LINE) w->bytes = (line){(int32_t)value, -(int32_t)value};
  else if (slot == N) w->values[N].i32 = (int32_t)value;
  else w->values[slot].ptr = (void *)(uintptr_t)(value * 16);
  w->capacity[slot] = value % 3 ? (size_t)value : SIZE_MAX;
}

/* Makes a launch. @return the number of bytes that it sends */
static size_t send(world *w, const uint32_t *changed, uint32_t count) {
  size_t begin, end;
  const gk_launch_args launch = args(w, changed, count);
  const unsigned char *from = gki_slot_table_changed(&w->table, &launch, w->launches++, &begin, &end);
  assert_true(begin <= end && end <= w->table.bytes);
  memcpy(w->device + begin, from + begin, end - begin);
  return end - begin;
}

static void begin(world *w) {
  *w = (world){.values[LINE] = {.ptr = &w->bytes}};
  const gk_plan *plan = plan_tasks(&w->list, tasks, GK_COUNT(tasks), slot_descs, GK_COUNT(slot_descs));
  size_t ring_bytes;
  assert_ok(gki_slot_table_make(&w->table, plan, DEPTH, &w->arena, &ring_bytes));
  assert_int_equal(ring_bytes, DEPTH * w->table.bytes);
  w->table.at = AT;
  w->table.control = CONTROL;
  w->table.ring = malloc(ring_bytes);
  w->device = calloc(1, w->table.bytes);
  for (uint32_t slot = X; slot < SLOTS; ++slot) bind(w, slot, 100 * slot);
  w->capacity[X] = w->capacity[Y] = SIZE_MAX;
  assert_int_equal(send(w, NULL, 0), w->table.bytes);
}

static void end(world *w) {
  free(w->table.ring);
  free(w->device);
  gki_arena_free(&w->arena);
  free_planned(&w->list);
}

/* The record of a task, by its index in the list. Tests also what its kernel gets. */
static const void *record_of(const world *w, uint32_t task) {
  const gk_plan *plan = w->table.plan;
  for (uint32_t k = 1; k < plan->node_count; ++k) {
    if (plan->nodes[k].source != task) continue;
    const gki_task given = gki_task_of(&w->table, k);
    const gki_record *record = (const void *)(w->device + (given.record - AT));
    assert_true(given.record % 16 == 0 && given.number == CONTROL && given.guard == 0 && record->node == k);
    return record;
  }
  fail_msg("there is no task %u", (unsigned)task);
  return NULL;
}

static uint64_t word_behind(const gki_record *record, uint32_t k) {
  uint64_t word;
  memcpy(&word, (const unsigned char *)(record + 1) + k * sizeof word, sizeof word);
  return word;
}

TEST(kernels) {
  world w;
  begin(&w);
  const gki_record *r = record_of(&w, FLAT);
  assert_true(r->count == 300 && r->extent[0] == 300 && r->extent[1] == 1);
  assert_true(word_behind(r, 0) == 16 * 100 && word_behind(r, 1) == 300);
  assert_memory_equal(w.device + (word_behind(r, 2) - AT), &w.bytes, sizeof w.bytes);
  r = record_of(&w, WIDE); /* its arguments, then its extents */
  assert_true(r->count == (GKI_UNCOUNTED | 2) && word_behind(r, 0) == 16 * 200 && word_behind(r, 1) == 300);
  assert_true(word_behind(r, 2) == 300 && word_behind(r, 3) == 16 * 400 && word_behind(r, 4) == 300);
  r = record_of(&w, AT_OFFSET); /* three arguments take the room of four */
  assert_true(r->count == (GKI_UNCOUNTED | 1) && word_behind(r, 4) == 16 * 400 + 8 && word_behind(r, 5) == 1);
  r = record_of(&w, IN_LOOP);
  assert_true(r->count == 90000 && r->extent[0] == 300 && r->extent[1] == 300);
  end(&w);
}

TEST(counts) {
  static const struct { int32_t n; uint32_t flat, in_loop; } cases[] = {
    {1, 1, 1}, {0, 0, 0}, {-5, 0, 0}, {46340, 46340, 46340 * 46340}, {46341, 46341, GKI_UNCOUNTED},
    {INT32_MAX, INT32_MAX, GKI_UNCOUNTED}};
  world w;
  begin(&w);
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    w.values[N].i32 = cases[k].n;
    send(&w, (const uint32_t[]){N}, 1);
    assert_int_equal(((const gki_record *)record_of(&w, FLAT))->count, cases[k].flat);
    assert_int_equal(((const gki_record *)record_of(&w, IN_LOOP))->count, cases[k].in_loop);
  }
  end(&w);
}

TEST(transfers) {
  static const struct { size_t to, from; int32_t n; uint32_t count; } cases[] = {
    {40, 40, 10, 10}, {40, 40, 11, GKI_UNCOUNTED}, {40, SIZE_MAX, 10, 10}, {SIZE_MAX, 39, 10, GKI_UNCOUNTED},
    {0, 0, 0, 0}, {0, 0, -1, 0}, {SIZE_MAX, SIZE_MAX, INT32_MAX, INT32_MAX}};
  world w;
  begin(&w);
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    w.capacity[X] = cases[k].to;
    w.capacity[Y] = cases[k].from;
    w.values[N].i32 = cases[k].n;
    send(&w, (const uint32_t[]){X, Y, N}, 3);
    const gki_transfer *t = record_of(&w, COPY);
    assert_true(t->count == cases[k].count && t->element == 4 && t->to == 16 * 100 && t->from == 16 * 200);
    t = record_of(&w, COPY_READ);
    assert_true(t->count == (GKI_UNCOUNTED | 1) && t->count_at == 16 * 400 && t->to == 16 * 200 && t->from == 16 * 100);
    assert_true(t->to_room == cases[k].from && t->from_room == cases[k].to);
    t = record_of(&w, FILL_ONE); /* gk_launch has checked that the memory has this element */
    assert_true(t->count == 1 && t->element == 4 && t->pattern == 7 && t->to == 16 * 100);
  }
  end(&w);
}

/* After any changes the table equals one that is sent as a whole. */
TEST(changes) {
  uint64_t random = 1;
  world w;
  begin(&w);
  for (int trial = 0; trial < 3000; ++trial) {
    uint32_t changed[SLOTS], count = 0;
    for (uint32_t slot = X; slot < SLOTS; ++slot) {
      if (pick(&random, 3)) continue;
      bind(&w, slot, pick(&random, 400));
      changed[count++] = slot;
    }
    if (pick(&random, 10) == 0) w.table.is_sent = false; /* a copy failed */
    send(&w, changed, count);
    const gk_launch_args launch = args(&w, NULL, 0);
    gki_slot_table_write(&w.table, &launch, w.launches++);
    assert_memory_equal(w.device, w.table.ring + (w.launches - 1) % DEPTH * w.table.bytes, w.table.bytes);
  }
  end(&w);
}

/* The range begins with the first record that a slot changes, and ends with the last one. */
TEST(ranges) {
  static const struct { uint32_t slot, first, last; size_t behind; } cases[] = {
    {X, FLAT, AT_OFFSET, sizeof(uint64_t)}, /* of kernels, only the argument */
    {Y, WIDE, FILL, sizeof(gki_transfer) - sizeof(gki_record)},
    {COUNT, WIDE, AT_OFFSET, 80 /* all of the record */}};
  world w;
  begin(&w);
  assert_int_equal(send(&w, NULL, 0), 0);
  assert_int_equal(send(&w, (const uint32_t[]){SPARE}, 1), 0);
  assert_int_equal(send(&w, (const uint32_t[]){FLAG}, 1), sizeof(uint64_t)); /* a decision reads it */
  assert_int_equal(send(&w, (const uint32_t[]){LINE}, 1), sizeof(line));
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    const size_t bytes = send(&w, &cases[k].slot, 1);
    const unsigned char *first = record_of(&w, cases[k].first), *last = record_of(&w, cases[k].last);
    assert_int_equal(bytes, (size_t)(last - first) + cases[k].behind);
  }
  end(&w);
}

int main(void) { return run_all_tests(); }
