/* Lists of arbitrary bytes (their pointers NULL or good): check answers, says the same each time, and never touches
 * missing memory. Later stages take lists it finds right without another look. And every allocation fails in turn. */
#include "problems.h"
#include "plan/plan.h"
#include "unit/support/chance.h"

enum { TASKS = 24, SLOTS = 10, LISTS = 4 };

static void nothing(const gk_value *args, gk_range items) { (void)args, (void)items; }
static gk_result library(const gk_value *args, void *native) { return (void)args, (void)native, GK_OK; }
static const char *const words[] = {NULL,  "",       "a",        "float",
                                    "int", "double", "uint32_t", "a rather long name, with a %s in it"};

typedef struct world {
  uint64_t random;
  uint32_t wild; /* one field in so many is arbitrary */
  gk_param params[8];
  gk_source source;
  gk_code code;
  gk_kernel kernels[3];
  gk_slot_desc slots[LISTS][SLOTS];
  gk_task tasks[LISTS][TASKS];
  gk_list lists[LISTS];
} world;

static uint32_t any(world *w) {
  static const uint32_t edges[] = {0, 1, 2, 3, 4, 5, 16, 17, 64, 65, 65535, 65536, 0x7fffffff, 0x80000000, 0xffffffff};
  return pick(&w->random, 2) ? edges[pick(&w->random, GK_COUNT(edges))] : (uint32_t)mix(w->random += 7);
}

/* Mostly below a limit, sometimes anything. */
static uint32_t near(world *w, uint32_t limit) { return pick(&w->random, w->wild) ? pick(&w->random, limit) : any(w); }
static uint32_t rare(world *w) { return pick(&w->random, w->wild) ? 0 : any(w); }
static const char *word(world *w) { return words[pick(&w->random, GK_COUNT(words))]; }
static bool coin(world *w) { return pick(&w->random, 2); }

static void make_kernels(world *w) {
  for (size_t k = 0; k < GK_COUNT(w->params); ++k)
    w->params[k] = (gk_param){word(w), word(w), near(w, 9), near(w, 9), (gk_type)near(w, 9), (gk_access)near(w, 7)};
  w->source = (gk_source){word(w), word(w), near(w, 9), NULL, rare(w), rare(w) ? word(w) : NULL,
                          rare(w) ? word(w) : NULL};
  w->code = (gk_code){.text = word(w), .options = word(w), .image = word(w), .image_bytes = near(w, 3),
                      .block = {rare(w), rare(w), rare(w)}, .reserved = {rare(w), rare(w), rare(w)}};
  for (size_t k = 0; k < GK_COUNT(w->kernels); ++k) {
    gk_kernel *kernel = &w->kernels[k];
    *kernel = (gk_kernel){.name = word(w), .params = coin(w) ? w->params : NULL, .param_count = near(w, 4),
                          .dimensions = near(w, 4), .source = coin(w) ? &w->source : NULL,
                          .host = coin(w) ? nothing : NULL, .cuda = coin(w) ? &w->code : NULL, .reserved = {rare(w)}};
    if (kernel->params && kernel->param_count > GK_COUNT(w->params) && kernel->param_count <= GK_MAX_ARGS)
      kernel->param_count = GK_COUNT(w->params);
  }
}

static void make_slots(world *w, gk_slot_desc *slots) {
  for (uint32_t k = 0; k < SLOTS; ++k)
    slots[k] = (gk_slot_desc){.slot = pick(&w->random, w->wild) ? (gk_slot)k + 1 : (gk_slot)any(w),
                              .type = (gk_type)(pick(&w->random, 3) ? GK_PTR : near(w, 9)), .name = word(w),
                              .element = word(w), .element_bytes = near(w, 9), .bits = rare(w), .count = rare(w),
                              .reserved = {rare(w)}};
}

static gk_task make_task(world *w, size_t level) {
  gk_task task = {.op = (gk_op)near(w, 16), .bits = rare(w), .name = word(w), .offset = rare(w), .from_offset = rare(w),
                  .pattern = rare(w), .max_iterations = rare(w), .every = rare(w), .label = (int32_t)rare(w),
                  .reserved = {rare(w)}};
  if (task.op == GK_OP_KERNEL || !rare(w)) task.kernel = coin(w) ? &w->kernels[near(w, 3) % 3] : NULL;
  if (coin(w)) task.call = library;
  if (level && coin(w)) task.list = &w->lists[pick(&w->random, LISTS)]; /* itself and circles included */
  for (size_t k = 0; k < 3; ++k) task.items[k] = coin(w) ? (gk_slot)near(w, SLOTS) : 0;
  for (size_t k = 0, count = pick(&w->random, 5); k < count; ++k) task.args[k] = (gk_slot)near(w, SLOTS);
  task.args[pick(&w->random, GK_MAX_ARGS)] = (gk_slot)rare(w);
  if (coin(w)) task.flag = (gk_slot)near(w, SLOTS);
  return task;
}

static void make_world(world *w, uint64_t seed) {
  *w = (world){.random = mix(seed)};
  w->wild = 2 + pick(&w->random, 60);
  make_kernels(w);
  for (size_t k = 0; k < LISTS; ++k) {
    make_slots(w, w->slots[k]);
    for (size_t j = 0; j < TASKS; ++j) w->tasks[k][j] = make_task(w, k);
    w->lists[k] = (gk_list){GK_ABI, word(w), w->tasks[k], near(w, TASKS), w->slots[k], pick(&w->random, SLOTS + 1)};
    if (w->lists[k].task_count > TASKS) w->lists[k].task_count = TASKS;
    if (!rare(w)) continue;
    w->lists[k].tasks = NULL;
  }
}

TEST(garbage_is_checked) {
  static world w;
  static problems first, again;
  size_t refused = 0;
  for (uint64_t seed = first_seed(), end = seed + scaled(20000); seed < end; ++seed) {
    make_world(&w, seed);
    first = again = (problems){0};
    gk_result result = gk_check(&w.lists[LISTS - 1], NULL, note_problem, &first);
    assert_int_equal(result, first.count ? GK_ERROR_INVALID : GK_OK);
    assert_int_equal(gk_check(&w.lists[LISTS - 1], NULL, NULL, NULL), result);
    if (seed % 16 == 0) {
      gk_check(&w.lists[LISTS - 1], NULL, note_problem, &again);
      assert_memory_equal(&first, &again, sizeof first);
    }
    for (size_t k = 0; k < first.count && k < MAX_PROBLEMS; ++k) {
      assert_true(first.at[k].task == SIZE_MAX || first.at[k].task < w.lists[LISTS - 1].task_count);
      assert_true(*first.at[k].message);
      if (k && first.at[k - 1].task != SIZE_MAX) assert_true(first.at[k].task >= first.at[k - 1].task);
    }
    refused += result != GK_OK;
  }
  assert_true(refused > scaled(10000));
}

static bool is_kept(gk_op op) { return op != GK_OP_END && op != GK_OP_PARALLEL && op != GK_OP_SECTION; }

/* Lists that are right but for a few fields: many of them are found right, and planned. */
TEST(right_lists_can_be_planned) {
  enum { P = 1, Q, N };
  static const gk_slot_desc slots[] = {GK_BUFFER(P, int), GK_BUFFER(Q, int), GK_SCALAR(N, int)};
  static const gk_op ops[] = {GK_OP_FILL,   GK_OP_COPY, GK_OP_DO_WHILE,   GK_OP_WHILE,    GK_OP_IF,
                              GK_OP_ELSE,   GK_OP_CASE, GK_OP_CHECKPOINT, GK_OP_PARALLEL, GK_OP_SECTION,
                              GK_OP_SWITCH, GK_OP_END,  GK_OP_END,        GK_OP_END,      GK_OP_END};
  size_t right = 0, ops_seen[GK_OP_END + 1] = {0};
  for (uint64_t seed = first_seed(), end = seed + scaled(40000); seed < end; ++seed) {
    uint64_t random = mix(seed);
    gk_task tasks[12];
    size_t count = pick(&random, 8);
    for (size_t k = 0; k < count; ++k) {
      gk_op op = ops[pick(&random, GK_COUNT(ops))];
      bool flagged = op >= GK_OP_DO_WHILE && op <= GK_OP_CHECKPOINT && op != GK_OP_ELSE && op != GK_OP_CASE;
      tasks[k] = (gk_task){.op = op, .flag = flagged ? P : 0, .label = op == GK_OP_CHECKPOINT ? (int)k + 1 : 0};
      if (op == GK_OP_FILL) tasks[k].args[0] = (gk_slot)(P + pick(&random, 2));
      if (op == GK_OP_COPY) memcpy(tasks[k].args, (gk_slot[]){Q, P}, 2 * sizeof(gk_slot));
    }
    const gk_list list = {GK_ABI, "list", tasks, count, slots, GK_COUNT(slots)};
    if (gk_check(&list, NULL, NULL, NULL) != GK_OK) continue;
    gki_blocks blocks;
    gki_planned planned = {0};
    assert_ok(gki_blocks_read(&blocks, &list));
    assert_ok(gki_plan_make(&planned, &blocks, NULL, 0));
    size_t lines = 0, nodes = 0; /* PARALLELs that are plain chains or nothing need no node */
    for (size_t k = 0; k < count; ++k) lines += is_kept(tasks[k].op);
    for (uint32_t k = 1; k < planned.plan.node_count; ++k) nodes += is_kept(planned.plan.nodes[k].op);
    assert_int_equal(nodes, lines);
    for (size_t k = 0; k < count; ++k) ++ops_seen[tasks[k].op];
    gki_plan_free(&planned);
    gki_blocks_free(&blocks);
    ++right;
  }
  assert_true(right > scaled(1000));
  for (size_t k = 0; k < GK_COUNT(ops); ++k) assert_true(ops_seen[ops[k]] > 0);
}

COUNTED(memory_may_run_out_anywhere) {
  static world w;
  size_t tried = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    make_world(&w, seed);
    gk_task *tasks = w.tasks[LISTS - 1];
    /* Something of everything that allocates: labels, sections, slots of lists. */
    static const gk_op ops[] = {GK_OP_CHECKPOINT, GK_OP_END, GK_OP_PARALLEL, GK_OP_SECTION,
                                GK_OP_FILL,       GK_OP_END, GK_OP_END};
    for (size_t k = 0; k < GK_COUNT(ops); ++k) tasks[k] = (gk_task){.op = ops[k], .args = {ops[k] == GK_OP_FILL}};
    tasks[0].label = 7;
    w.lists[LISTS - 1].tasks = tasks;
    w.lists[LISTS - 1].task_count = TASKS;
    gk_result wanted = gk_check(&w.lists[LISTS - 1], NULL, NULL, NULL), result = GK_ERROR_MEMORY;
    for (int at = 1; result == GK_ERROR_MEMORY; ++at, ++tried) {
      problems all = {0};
      fail_own_memory(at);
      result = gk_check(&w.lists[LISTS - 1], NULL, note_problem, &all);
      fail_own_memory(0);
      assert_int_equal(atomic_load(&own_memory.live), 0);
      if (result == GK_ERROR_MEMORY && !all.count) assert_says("out of host memory");
    }
    assert_int_equal(result, wanted);
  }
  assert_true(tried > 300);
}

int main(void) { return run_all_tests(); }
