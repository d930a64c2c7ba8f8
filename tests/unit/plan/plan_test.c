/* A list as a tree: its nodes, runs and names; the list isn't needed afterwards; work and memory grow with the list. */
#include "plan/plan.h"
#include "base/error.h"
#include "base/op.h"
#include "base/registry.h"
#include "unit/support/spare_backend.h"
#include "unit/support/own_memory.h"
#include "unit/support/test.h"
#include "unit/support/sample_list.h"
#include "unit/support/work.h"

static gki_planned plan_of(const gk_list *list, uint32_t bits) {
  gki_blocks blocks;
  gki_planned planned;
  assert_ok(gki_blocks_read(&blocks, list));
  assert_ok(gki_plan_make(&planned, &blocks, NULL, bits));
  gki_blocks_free(&blocks); /* nothing of them is used from here on */
  return planned;
}

/* The tree in short: a letter per task, runs in < >, blocks in brackets, checkpoints as c( ). */
static void shape(const gk_plan *plan, uint32_t from, uint32_t end, char *text) {
  static const char *const brackets[][2] = {
      [GK_OP_DO_WHILE] = {"d(", ")"}, [GK_OP_WHILE] = {"w(", ")"}, [GK_OP_IF] = {"i(", ")"},
      [GK_OP_ELSE] = {"e(", ")"}, [GK_OP_SWITCH] = {"s(", ")"}, [GK_OP_CASE] = {"k(", ")"},
      [GK_OP_CHECKPOINT] = {"c(", ")"}, [GK_OP_PARALLEL] = {"{", "}"}, [GK_OP_SECTION] = {"[", "]"}};
  for (uint32_t at = from; at < end; at = plan->nodes[at].end) {
    const gk_node *node = &plan->nodes[at];
    bool first = node->run != GK_NONE && plan->runs[node->run].begin == at;
    if (first) strcat(text, "<");
    if (gki_op_is_task(node->op)) {
      strncat(text, node->name, 1);
    } else {
      strcat(text, brackets[node->op][0]);
      shape(plan, at + 1, node->end, text);
      strcat(text, brackets[node->op][1]);
    }
    if (node->run != GK_NONE && plan->runs[node->run].end == node->end && plan->nodes[node->parent].run != node->run)
      strcat(text, ">");
  }
}

static void check_tree(const gk_plan *plan) {
  assert_int_equal(plan->nodes[0].end, plan->node_count);
  assert_int_equal(plan->nodes[0].op, GK_OP_SECTION);
  uint32_t loops = 0, checkpoints = 0, always = 0, last_run = 0;
  for (uint32_t at = 1; at < plan->node_count; ++at) {
    const gk_node *node = &plan->nodes[at], *around = &plan->nodes[node->parent];
    assert_true(node->parent < at && node->end > at && node->end <= around->end);
    assert_non_null(node->name);
    if (node->op == GK_OP_ELSE) assert_true(around->otherwise == at && node->otherwise == node->parent);
    if (node->can_yield) assert_true(around->can_yield && node->has_target);
    if (node->has_target) assert_true(around->has_target);
    if (node->op == GK_OP_DO_WHILE || node->op == GK_OP_WHILE) assert_int_equal(plan->loops[node->loop], at), ++loops;
    if (node->op == GK_OP_CHECKPOINT) assert_int_equal(plan->checkpoints[node->checkpoint], at), ++checkpoints;
    if (node->always) assert_int_equal(plan->always[always++], at);
    if (gki_op_is_task(node->op)) assert_int_not_equal(node->run, GK_NONE);
    if (node->run == GK_NONE) continue;
    assert_true(node->run == last_run || node->run == last_run + 1);
    last_run = node->run;
    assert_true(plan->runs[node->run].begin <= at && plan->runs[node->run].end >= node->end);
  }
  assert_true(loops == plan->loop_count && checkpoints == plan->checkpoint_count && always == plan->always_count);
  for (uint32_t k = 1; k < plan->run_count; ++k) assert_true(plan->runs[k].begin >= plan->runs[k - 1].end);
}

/* ---- structure: tasks are named by letters ----------------------------------------------------------------------- */

enum { F = 1, G };
static const gk_slot_desc flags[] = {GK_BUFFER(F, int), GK_BUFFER(G, int)};
static const gk_kernel kernel = {.name = "kernel"};
#define T(letter) {.op = GK_OP_KERNEL, .name = #letter, .kernel = &kernel, .args = {F}}
#define HOST(letter) {.op = GK_OP_CALL_HOST, .name = #letter, .args = {F}}
#define ALWAYS(letter) {.op = GK_OP_KERNEL, .bits = GK_ALWAYS, .name = #letter, .kernel = &kernel, .args = {F}}

static void expect_shape(const gk_task *tasks, size_t count, uint32_t bits, const char *wanted, int line) {
  gk_list list = {GK_ABI, "list", tasks, count, flags, GK_COUNT(flags)};
  gki_planned planned = plan_of(&list, bits);
  char text[1000] = "";
  check_tree(&planned.plan);
  shape(&planned.plan, 1, planned.plan.node_count, text);
  if (strcmp(text, wanted) != 0) fail_msg("line %d: %s, not %s", line, text, wanted);
  gki_plan_free(&planned);
}
#define EXPECT_SHAPE(bits, wanted, ...) \
  do { \
    static const gk_task tasks[] = {__VA_ARGS__}; \
    expect_shape(tasks, GK_COUNT(tasks), bits, wanted, __LINE__); \
  } while (0)

TEST(test_runs) {
  EXPECT_SHAPE(0, "<abc>", T(a), T(b), T(c));
  EXPECT_SHAPE(GK_ISOLATE, "<a><b><c>", T(a), T(b), T(c));
  EXPECT_SHAPE(0, "<ab>d(<cd>)<e>", T(a), T(b), GK_DO_WHILE(F), T(c), T(d), GK_END, T(e));
  EXPECT_SHAPE(0, "<a>c(<b>)<c>", T(a), GK_CHECKPOINT(G, F), T(b), GK_END, T(c)); /* a launch may begin or end there */
  EXPECT_SHAPE(0, "<a>c()<b>", T(a), GK_CHECKPOINT(G, F), GK_END, T(b));
  EXPECT_SHAPE(0, "<x><ab><y><z><c>", ALWAYS(x), T(a), T(b), ALWAYS(y), ALWAYS(z), T(c));
  EXPECT_SHAPE(0, "i(<a>e(<b>))<c>", GK_IF(F), T(a), GK_ELSE, T(b), GK_END, T(c));
  EXPECT_SHAPE(0, "i(e())s(k(<a>)k()k(<bc>))", GK_IF(F), GK_ELSE, GK_END, GK_SWITCH(F), GK_CASE, T(a), GK_END, GK_CASE,
               GK_END, GK_CASE, T(b), T(c), GK_END, GK_END);
  EXPECT_SHAPE(0, "d(w(d()))<a>", GK_DO_WHILE(F), GK_WHILE(F), GK_DO_WHILE(F), GK_END, GK_END, GK_END, T(a));
}

/* One is a run of its own, wherever it stands. */
TEST(test_host_runs) {
  EXPECT_SHAPE(0, "<a><h><i><b>", T(a), HOST(h), HOST(i), T(b));
  EXPECT_SHAPE(0, "<a>{[<b><h><c>][<d>]}<e>", T(a), GK_PARALLEL, GK_SECTION, T(b), HOST(h), T(c), GK_END, GK_SECTION,
               T(d), GK_END, GK_END, T(e));
  EXPECT_SHAPE(0, "{[<a>{[<b>][<h>]}][<{[c][d]}>]}", GK_PARALLEL, GK_SECTION, T(a), GK_PARALLEL, GK_SECTION, T(b),
               GK_END, GK_SECTION, HOST(h), GK_END, GK_END, GK_END, GK_SECTION, GK_PARALLEL, GK_SECTION, T(c), GK_END,
               GK_SECTION, T(d), GK_END, GK_END, GK_END, GK_END);
  EXPECT_SHAPE(0, "<a><h><b>", T(a), GK_PARALLEL, GK_SECTION, HOST(h), GK_END, GK_END, T(b));
}

TEST(test_sections) {
  EXPECT_SHAPE(0, "<a{[b][cd]}e>", T(a), GK_PARALLEL, GK_SECTION, T(b), GK_END, GK_SECTION, T(c), T(d), GK_END, GK_END,
               T(e));
  EXPECT_SHAPE(0, "<{[a][b]}{[c][d]}>", GK_PARALLEL, GK_SECTION, T(a), GK_END, GK_SECTION, T(b), GK_END, GK_END,
               GK_PARALLEL, GK_SECTION, T(c), GK_END, GK_SECTION, T(d), GK_END, GK_END);
  EXPECT_SHAPE(GK_ISOLATE, "<a>{[<b>][<c><d>]}<e>", T(a), GK_PARALLEL, GK_SECTION, T(b), GK_END, GK_SECTION, T(c), T(d),
               GK_END, GK_END, T(e));
  EXPECT_SHAPE(0, "<a>{[<b>][<c>w(<d>)][<e>]}<f>", T(a), GK_PARALLEL, GK_SECTION, T(b), GK_END, GK_SECTION, T(c),
               GK_WHILE(F), T(d), GK_END, GK_END, GK_SECTION, T(e), GK_END, GK_END, T(f));
  EXPECT_SHAPE(0, "{[<{[a][b]}>][i(<c>)]}", GK_PARALLEL, GK_SECTION, GK_PARALLEL, GK_SECTION, T(a), GK_END, GK_SECTION,
               T(b), GK_END, GK_END, GK_END, GK_SECTION, GK_IF(F), T(c), GK_END, GK_END, GK_END);
  EXPECT_SHAPE(0, "<abc>", T(a), GK_PARALLEL, GK_SECTION, T(b), GK_END, GK_END, T(c)); /* one is a plain chain */
  EXPECT_SHAPE(0, "<ab>", T(a), GK_PARALLEL, GK_END, T(b)); /* none is nothing */
  EXPECT_SHAPE(0, "<abc>", T(a), GK_PARALLEL, GK_SECTION, GK_END, GK_SECTION, T(b), GK_END, GK_SECTION, GK_END, GK_END,
               T(c));
  EXPECT_SHAPE(0, "<{[a][b]}>", GK_PARALLEL, GK_SECTION, T(a), GK_END, GK_SECTION, GK_END, GK_SECTION, T(b), GK_END,
               GK_END);
  EXPECT_SHAPE(0, "<ab>", GK_PARALLEL, GK_SECTION, GK_PARALLEL, GK_SECTION, T(a), GK_END, GK_SECTION, GK_PARALLEL,
               GK_SECTION, GK_END, GK_END, GK_END, GK_END, T(b), GK_END, GK_SECTION, GK_PARALLEL, GK_END, GK_END,
               GK_END);
  EXPECT_SHAPE(0, "d(<a>w())", GK_DO_WHILE(F), GK_PARALLEL, GK_SECTION, T(a), GK_WHILE(F), GK_END, GK_END, GK_END,
               GK_END);
}

/* ---- names, slots, labels ---------------------------------------------------------------------------------------- */

static const gk_node *named(const gk_plan *plan, const char *name) {
  for (uint32_t k = 1; k < plan->node_count; ++k)
    if (strcmp(plan->nodes[k].name, name) == 0) return &plan->nodes[k];
  fail_msg("no node is named %s", name);
  return NULL;
}

static void expect_name(gk_task task, const char *wanted) {
  gk_task tasks[] = {task, GK_END};
  gk_list list = {GK_ABI, "list", tasks, task.op == GK_OP_KERNEL ? 1 : 2, flags, GK_COUNT(flags)};
  gki_planned planned = plan_of(&list, 0);
  assert_string_equal(planned.plan.nodes[1].name, wanted);
  gki_plan_free(&planned);
}

TEST(test_names) {
  enum { AGAIN = 3 };
  expect_name((gk_task)GK_DO_WHILE(F), "F");
  expect_name((gk_task)GK_DO_WHILE(F, .max_iterations = 200, .label = AGAIN), "AGAIN");
  expect_name((gk_task)GK_WHILE(F, .offset = sizeof(int) * 2, .label = AGAIN), "AGAIN");
  expect_name((gk_task){.op = GK_OP_WHILE, .flag = F, .label = 2, .name = "f(1, 2), .label = g((1, 2), 3), x"},
              "g((1, 2), 3)");
  expect_name((gk_task)GK_WHILE(F, .label=(AGAIN + 0)), "(AGAIN + 0)");
  expect_name((gk_task)GK_IF(F, .offset = 8), "F");
  expect_name((gk_task)GK_SWITCH(F), "F");
  expect_name((gk_task){.op = GK_OP_WHILE, .flag = F, .label = 2, .name = "solve, .label"}, "solve");
  expect_name((gk_task){.op = GK_OP_WHILE, .flag = F, .label = 2, .name = "by hand"}, "by hand");
  expect_name((gk_task){.op = GK_OP_WHILE, .flag = F, .name = "F, .label = unused"}, "F"); /* it has no label */
  expect_name((gk_task){.op = GK_OP_WHILE, .flag = F}, "WHILE");
  expect_name((gk_task){.op = GK_OP_CHECKPOINT, .flag = F, .label = 2, .name = "a, b"}, "a, b");
  expect_name((gk_task)T(x), "x");
  expect_name((gk_task){.op = GK_OP_KERNEL, .kernel = &kernel, .args = {F}}, "kernel");
  expect_name((gk_task){.op = GK_OP_KERNEL, .kernel = &(gk_kernel){0}, .args = {F}}, "KERNEL");
}

TEST(test_included) {
  gki_planned planned = plan_of(&sample, 0);
  const gk_plan *plan = &planned.plan;
  check_tree(plan);
  uint32_t scratch = 0;
  for (uint32_t k = 1; k < plan->slot_count; ++k)
    if (strcmp(plan->slots[k].name, "inner.INNER_SCRATCH") == 0) scratch = k;
  assert_true(scratch > 20);
  assert_int_equal(plan->slots[scratch].count, 16);
  const gk_node *task = named(plan, "inner.search");
  assert_int_equal(task->arg_count, 2);
  assert_int_equal(plan->args[task->args], PICTURE);
  assert_int_equal(plan->args[task->args + 1], scratch);
  assert_int_equal(task->items[0], SIZE);
  assert_ptr_equal(sample_tasks[task->source].list, &inner);
  const gk_node *checkpoint = named(plan, "inner.INNER_LABEL");
  assert_int_equal(checkpoint->label, 101);
  assert_int_equal(checkpoint->flag, STATE);
  assert_int_equal(named(plan, "inner.INNER_LOOP")->label, 102);
  assert_int_equal(gki_plan_label(plan, 101), checkpoint - plan->nodes);
  assert_int_equal(gki_plan_label(plan, CONTACTS), named(plan, "CONTACTS") - plan->nodes);
  assert_int_equal(gki_plan_label(plan, NEWTON), 0); /* a loop's: nothing to resume at */
  assert_int_equal(gki_plan_label(plan, 0), 0);
  assert_string_equal(plan->slots[20].name, "host");
  assert_int_equal(plan->slots[15].type, GK_NO_TYPE);
  assert_string_equal(plan->slots[15].name, "");
  gki_plan_free(&planned);
}

TEST(test_fields) {
  gki_planned planned = plan_of(&sample, GK_CANCELLABLE);
  const gk_plan *plan = &planned.plan;
  assert_string_equal(plan->name, "sample");
  assert_int_equal(plan->bits, GK_CANCELLABLE);
  assert_true(plan->can_yield);
  const gk_node *loop = named(plan, "NEWTON"), *copy = named(plan, "COPY"), *fill = named(plan, "FORCE = 0x7f");
  assert_true(loop->max_iterations == 200 && loop->offset == 8 && loop->flag == STATE && loop->can_yield);
  assert_true(copy->offset == 4 && copy->from_offset == 12 && plan->args[copy->args + 1] == POSITION);
  assert_true(fill->pattern == 0x7f && fill->items[0] == SIZE && fill->arg_count == 1);
  assert_true(named(plan, "library")->call == library);
  assert_ptr_equal(named(plan, "paint")->kernel, &paint);
  assert_true(!named(plan, "SOLVE")->can_yield && named(plan, "SOLVE")->has_target);
  assert_int_equal(named(plan, "CONTACTS")->source, 3);
  gki_plan_free(&planned);
  gk_list empty = {GK_ABI, NULL, NULL, 0, NULL, 0};
  planned = plan_of(&empty, 0);
  check_tree(&planned.plan);
  assert_string_equal(planned.plan.name, "(unnamed)");
  assert_true(planned.plan.node_count == 1 && !planned.plan.can_yield && planned.plan.run_count == 0);
  gki_plan_free(&planned);
}

TEST(test_list_may_go) {
  gk_task *tasks = calloc(3, sizeof *tasks);
  gk_slot_desc *slots = calloc(1, sizeof *slots);
  char *words[] = {strdup("loop, .label = L"), strdup("task"), strdup("slot"), strdup("type"), strdup("list")};
  tasks[0] = (gk_task){.op = GK_OP_DO_WHILE, .name = words[0], .flag = 1, .label = 5};
  tasks[1] = (gk_task){.op = GK_OP_KERNEL, .name = words[1], .kernel = &kernel, .args = {1}};
  tasks[2] = (gk_task)GK_END;
  slots[0] = (gk_slot_desc){.slot = 1, .type = GK_PTR, .name = words[2], .element = words[3]};
  gk_list *list = malloc(sizeof *list);
  *list = (gk_list){GK_ABI, words[4], tasks, 3, slots, 1};
  gki_planned planned = plan_of(list, 0);
  for (size_t k = 0; k < GK_COUNT(words); ++k) free(words[k]);
  free(tasks);
  free(slots);
  free(list);
  assert_string_equal(planned.plan.name, "list");
  assert_string_equal(planned.plan.nodes[1].name, "L");
  assert_string_equal(planned.plan.nodes[2].name, "task");
  assert_string_equal(planned.plan.slots[1].name, "slot");
  assert_string_equal(planned.plan.slots[1].element, "type");
  gki_plan_free(&planned);
}

/* ---- memory and time --------------------------------------------------------------------------------------------- */

COUNTED(test_out_of_memory) {
  enum { MANY = 3000 }; /* enough for chunks of their own */
  static gk_task tasks[MANY];
  for (int k = 0; k < MANY; ++k) tasks[k] = (gk_task)T(a);
  gk_list many = {GK_ABI, "many", tasks, MANY, flags, GK_COUNT(flags)};
  const gk_list *lists[] = {&sample, &many};
  for (size_t k = 0; k < GK_COUNT(lists); ++k) {
    gki_blocks blocks;
    assert_ok(gki_blocks_read(&blocks, lists[k]));
    gk_result result = GK_ERROR_MEMORY;
    for (int n = 1; result; ++n) {
      gki_planned planned;
      fail_own_memory(n);
      gki_begin();
      result = gki_plan_make(&planned, &blocks, NULL, 0);
      if (result) {
        assert_fails(GK_ERROR_MEMORY, "out of host memory", result);
        assert_true(planned.plan.nodes == NULL && planned.arena.total_bytes == 0);
      } else {
        assert_true(n > 2);
        check_tree(&planned.plan);
      }
      gki_plan_free(&planned);
    }
    fail_own_memory(0);
    gki_blocks_free(&blocks);
  }
}

/* Kernels with three arguments; now and then a loop, a checkpoint or sections. */
static size_t write_long_list(gk_task *tasks, size_t count, char (*names)[32]) {
  static const gk_task block[] = {GK_DO_WHILE(F, .max_iterations = 9), GK_END, GK_CHECKPOINT(G, F), GK_END,
                                  GK_PARALLEL, GK_SECTION, GK_END, GK_SECTION, GK_END, GK_END};
  for (size_t k = 0; k < count; ++k) {
    snprintf(names[k], sizeof names[k], "task_%zu", k);
    tasks[k] = (gk_task){.op = GK_OP_KERNEL, .name = names[k], .kernel = &kernel, .args = {F, G, F}};
  }
  static const size_t places[] = {0, 3, 5, 8, 10, 12, 14, 15, 17, 18};
  for (size_t k = 0; k + 30 < count; k += 50)
    for (size_t n = 0; n < GK_COUNT(block); ++n) {
      tasks[k + places[n]] = block[n];
      if (block[n].op == GK_OP_CHECKPOINT) tasks[k + places[n]].label = (int32_t)(k * 31 % 1000003) + 1;
    }
  return count;
}

static size_t bytes_taken;
static void *sum_alloc(void *user, size_t bytes) {
  bytes_taken += bytes;
  return counting_alloc(user, bytes);
}

/* What planning takes, per task. */
static double plan_work(const gk_task *tasks, size_t count, size_t *bytes) {
  gk_list list = {GK_ABI, "long", tasks, count, flags, GK_COUNT(flags)};
  gki_blocks blocks;
  gki_planned planned;
  assert_ok(gki_blocks_read(&blocks, &list));
  bytes_taken = blocks.arena.total_bytes;
  const uint64_t before = work_done;
  assert_ok(gki_plan_make(&planned, &blocks, NULL, 0));
  const uint64_t work = work_done - before;
  check_tree(&planned.plan);
  *bytes = bytes_taken;
  gki_plan_free(&planned);
  gki_blocks_free(&blocks);
  assert_true(work >= count);
  return (double)work / (double)count;
}

static const gk_code *code_for_hip(const gk_kernel *of, const char **beyond) {
  assert_null(beyond);
  return of->hip;
}

static int asked_in_vain;
static const gk_code *count_questions(const gk_kernel *of, UNUSED const char **beyond) {
  asked_in_vain += !of->cuda && !of->hip;
  return NULL;
}

/* Of each backend its own code counts; for none, that of any in the library. No backend is asked about kernels without
 * handwritten code, since finding the backends takes locks. */
TEST(test_handwritten) {
  static const gk_backend asking = SPARE(spare_open, .name = "counting", .run = spare_run, .code = count_questions);
  static const gk_code code = {.text = "f"};
  static const gk_kernel none = {.name = "none"}, cuda = {.name = "cuda", .cuda = &code},
                         hip = {.name = "hip", .hip = &code};
  LIST_OVER(flags, list, {.op = GK_OP_KERNEL, .kernel = &none}, {.op = GK_OP_KERNEL, .kernel = &cuda},
            {.op = GK_OP_KERNEL, .kernel = &hip});
  static const gk_backend plain = {.name = "plain"}, with_code = {.name = "with code", .code = code_for_hip};
  const struct { const gk_backend *backend; bool cuda, hip; } cases[] = {
    {&plain, false, false}, {&with_code, false, true},
    {NULL, true, gki_backend_named("hip") != NULL}};
  assert_ok(gk_backend_register(&asking));
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    gki_blocks blocks;
    gki_planned planned;
    assert_ok(gki_blocks_read(&blocks, &list));
    assert_ok(gki_plan_make(&planned, &blocks, cases[k].backend, 0));
    assert_false(planned.plan.nodes[1].handwritten);
    assert_int_equal(planned.plan.nodes[2].handwritten, cases[k].cuda);
    assert_int_equal(planned.plan.nodes[3].handwritten, cases[k].hip);
    gki_plan_free(&planned);
    gki_blocks_free(&blocks);
  }
  assert_int_equal(asked_in_vain, 0);
}

TEST(test_linear) {
  enum { SMALL = 10000, LARGE = 100000 };
  gk_task *tasks = calloc(LARGE, sizeof *tasks);
  char(*names)[32] = calloc(LARGE, sizeof *names);
  size_t small_bytes, large_bytes;
  write_long_list(tasks, LARGE, names);
  assert_ok(gk_set_allocator(&(gk_allocator){&own_memory, sum_alloc, counting_resize, counting_free}));
  const double small = plan_work(tasks, SMALL, &small_bytes), large = plan_work(tasks, LARGE, &large_bytes);
  assert_ok(gk_set_allocator(NULL));
  print_message("plan of %d tasks: %.1f basic blocks per task, %.3f times that at %d; %.0f bytes each with blocks\n",
                LARGE, large, large / small, SMALL, (double)large_bytes / LARGE);
  assert_true(large < 1.1 * small);
  assert_true(large_bytes < (size_t)256 * LARGE);
  free(tasks);
  free(names);
}

int main(void) { return run_all_tests(); }
