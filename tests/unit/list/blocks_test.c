/* Lists written out and their blocks matched: what every later stage takes for granted. */
#include "unit/support/runtime.h"
#include "list/blocks.h"
#include "list/line_name.h"

enum { X = 1, Y, N, F };
static const gk_slot_desc table[] = {
    GK_BUFFER(X, float), GK_BUFFER(Y, float), GK_SCALAR(N, int), GK_BUFFER(F, int)};

static gki_blocks blocks;

static gk_list list_of(const gk_task *tasks, size_t count) {
  return (gk_list){GK_ABI, "list", tasks, count, table, GK_COUNT(table)};
}

static int teardown(void **state) {
  (void)state;
  gki_blocks_free(&blocks);
  return 0;
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

/* A list as a word: each letter a line, `)` an END. */
static size_t spell(const char *word, gk_task *tasks) {
  static const char letters[] = ".KCFLLYLDWRIESAHPB)";
  size_t count = strlen(word);
  for (size_t k = 0; k < count; ++k) tasks[k] = (gk_task){.op = (gk_op)(strchr(letters, word[k]) - letters)};
  return count;
}

typedef struct shape {
  const char *word;
  int parents[12], mates[12], otherwise[12]; /* -1: none */
  uint32_t depth;
} shape;

#define NONE12 {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}
static const shape shapes[] = {
    {"", {0}, {0}, {0}, 0},
    {"KK", {-1, -1}, {-1, -1}, {-1, -1}, 0},
    {"WK)K", {-1, 0, -1, -1}, {2, -1, 0, -1}, NONE12, 1},
    {"D)H)", {-1, -1, -1, -1}, {1, 0, 3, 2}, NONE12, 1},
    {"WDK))", {-1, 0, 1, 0, -1}, {4, 3, -1, 1, 0}, NONE12, 2},
    {"IKEK)K", {-1, 0, 0, 2, -1, -1}, {4, -1, 4, -1, 0, -1}, {2, -1, 0, -1, -1, -1}, 1},
    {"IIE)EK)", {-1, 0, 1, 0, 0, 4, -1}, {6, 3, 3, 1, 6, -1, 0}, {4, 2, 1, -1, 0, -1, -1}, 2},
    {"SAK)A))", {-1, 0, 1, 0, 0, 0, -1}, {6, 3, -1, 1, 5, 4, 0}, NONE12, 2},
    {"PBK)BK))", {-1, 0, 1, 0, 0, 4, 0, -1}, {7, 3, -1, 1, 6, -1, 4, 0}, NONE12, 2},
    /* wrong ones */
    {")K)", {-1, -1, -1}, {-1, -1, -1}, NONE12, 0},
    {"WK", {-1, 0}, {-1, -1}, NONE12, 1},
    {"E)", {-1, -1}, {-1, -1}, NONE12, 0},
    {"IEEK)", {-1, 0, 1, 1, -1}, {4, 4, -1, -1, 0}, {1, 0, -1, -1, -1}, 1},
    {"IWE))", {-1, 0, 1, 0, -1}, {4, 3, -1, 1, 0}, NONE12, 2},
    {"WIEK)", {-1, 0, 1, 2, 0}, {-1, 4, 4, -1, 1}, {-1, 2, 1, -1, -1}, 2},
    {".WB", {-1, -1, 1}, {-1, -1, -1}, NONE12, 2},
};

static void assert_link(const char *word, size_t line, const char *what, uint32_t found, int wanted) {
  if (found != (uint32_t)wanted) fail_msg("\"%s\", line %zu: %s %d, not %d", word, line, what, (int)found, wanted);
}

#define WITH_TEARDOWN(test) TEST_WITH(test, NULL, teardown)

WITH_TEARDOWN(blocks_are_matched) {
  for (size_t s = 0; s < GK_COUNT(shapes); ++s) {
    gk_task tasks[12];
    gk_list list = list_of(tasks, spell(shapes[s].word, tasks));
    assert_ok(gki_blocks_read(&blocks, &list));
    assert_int_equal(blocks.line_count, strlen(shapes[s].word));
    assert_int_equal(blocks.max_depth, shapes[s].depth);
    for (uint32_t k = 0; k < blocks.line_count; ++k) {
      const gki_line *line = &blocks.lines[k];
      assert_ptr_equal(line->task, &tasks[k]);
      assert_int_equal(line->source, k);
      assert_link(shapes[s].word, k, "parent", line->parent, shapes[s].parents[k]);
      assert_link(shapes[s].word, k, "mate", line->mate, shapes[s].mates[k]);
      assert_link(shapes[s].word, k, "otherwise", line->otherwise, shapes[s].otherwise[k]);
    }
    gki_blocks_free(&blocks);
  }
}

/* ---- included lists ---------------------------------------------------------------------------------------------- */

/* Numbers that are neither in order nor without gaps: arguments stand for the first of the table, not the lowest. */
enum { IN = 900, OUT = 7, OWN = 12, COUNT = 3 };
static const gk_slot_desc inner_table[] = {
    GK_BUFFER(IN, float), GK_BUFFER(OUT, float), GK_BUFFER(OWN, int), GK_SCALAR(COUNT, int)};
LIST_OVER(inner_table, inner, GK_WHILE(OWN, .label = 2), GK_COPY(OUT, IN, COUNT), GK_END);

enum { P = 1, Q };
static const gk_slot_desc middle_table[] = {GK_BUFFER(P, float), GK_BUFFER(Q, float)};
LIST_OVER(middle_table, middle, GK_INCLUDE(inner, 10, Q, P), GK_CHECKPOINT(1, Q), GK_END);

static const gk_task outer_tasks[] = {GK_FILL(X, N, 0), GK_INCLUDE(inner, 100, X, Y), GK_IF(F),
                                      GK_INCLUDE(middle, 1000, Y), GK_END, GK_INCLUDE(inner, -2, X, Y)};

static const gk_list outer = GK_LIST(outer, outer_tasks, table);

WITH_TEARDOWN(lists_are_written_out) {
  assert_ok(gki_blocks_read(&blocks, &outer));
  static const gk_op ops[] = {GK_OP_FILL, GK_OP_WHILE,      GK_OP_COPY, GK_OP_END, GK_OP_IF,    GK_OP_WHILE, GK_OP_COPY,
                              GK_OP_END,  GK_OP_CHECKPOINT, GK_OP_END,  GK_OP_END, GK_OP_WHILE, GK_OP_COPY,  GK_OP_END};
  static const uint32_t sources[] = {0, 1, 1, 1, 2, 3, 3, 3, 3, 3, 4, 5, 5, 5};
  static const int64_t labels[] = {0, 102, 0, 0, 0, 1012, 0, 0, 1001, 0, 0, 0, 0, 0};
  assert_int_equal(blocks.line_count, GK_COUNT(ops));
  for (uint32_t k = 0; k < blocks.line_count; ++k) {
    assert_int_equal(blocks.lines[k].task->op, ops[k]);
    assert_int_equal(blocks.lines[k].source, sources[k]);
    assert_int_equal(gki_label_of(&blocks, k), labels[k]);
  }
  assert_int_equal(blocks.lines[5].parent, 4);
  assert_int_equal(blocks.inclusion_count, 5);
  assert_ptr_equal(blocks.inclusions[0].list, &outer);
  assert_int_equal(blocks.inclusions[3].around, 2);
  assert_int_equal(blocks.inclusions[3].source, 3);
  assert_int_equal(blocks.inclusions[4].first, 1);
  assert_int_equal(blocks.inclusions[3].begin, 5);
}

WITH_TEARDOWN(slots_are_composed) {
  assert_ok(gki_blocks_read(&blocks, &outer));
  static const char *const names[] = {NULL, "X", "Y", "N", "F", "inner.OWN", "inner.COUNT", "middle.Q",
                                      "middle.inner.OWN", "middle.inner.COUNT", "inner.OWN", "inner.COUNT"};
  assert_int_equal(blocks.slot_count, GK_COUNT(names));
  for (uint32_t k = 1; k < blocks.slot_count; ++k) {
    assert_string_equal(blocks.slots[k].name, names[k]);
    assert_int_equal(blocks.slots[k].slot, k);
  }
  assert_int_equal(blocks.slots[0].type, GK_NO_TYPE);
  assert_int_equal(blocks.slots[6].type, GK_I32);
  assert_string_equal(blocks.slots[8].element, "int");
  assert_int_equal(gki_slot_of(&blocks, 1, IN), X);
  assert_int_equal(gki_slot_of(&blocks, 1, OUT), Y);
  assert_int_equal(gki_slot_of(&blocks, 1, OWN), 5);
  assert_int_equal(gki_slot_of(&blocks, 4, OWN), 10); /* another one in each place */
  assert_int_equal(gki_slot_of(&blocks, 2, P), Y);
  assert_int_equal(gki_slot_of(&blocks, 3, IN), 7); /* by way of middle's Q */
  assert_int_equal(gki_slot_of(&blocks, 3, OUT), Y);
}

/* One slot for each number and type, behind all others. */
WITH_TEARDOWN(constants_are_slots) {
  enum { A = 1, B, C };
  static const gk_slot_desc numbers[] = {GK_SCALAR(A, int64_t), GK_SCALAR(B, int), GK_BUFFER(C, int)};
  LIST_OVER(numbers, counted, GK_FILL(C, A, 0), GK_FILL(C, GK_ITEMS(8), 0));
  LIST_OVER(table, list, GK_FILL(X, GK_ITEMS(8), 0), GK_INCLUDE(counted, 0, GK_ITEMS(9), GK_ITEMS(8), GK_ITEMS(7)),
            GK_INCLUDE(counted, 0, GK_ITEMS(8)));
  assert_ok(gki_blocks_read(&blocks, &list));
  assert_int_equal(blocks.slot_count, 5 + 2 + 3); /* of table, of the second `counted`; 8, 9 and 8 as int64_t */
  const uint32_t eight = gki_items_of(&blocks, 0, GK_ITEMS(8)), nine = gki_slot_of(&blocks, 1, A);
  assert_true(eight >= 7 && nine >= 7 && eight != nine);
  assert_int_equal(gki_items_of(&blocks, 2, GK_ITEMS(8)), eight);
  assert_int_equal(gki_slot_of(&blocks, 1, B), eight);
  assert_int_equal(gki_slot_of(&blocks, 1, C), 0);
  const gk_slot_desc *as_int = &blocks.slots[eight], *wide = &blocks.slots[gki_slot_of(&blocks, 2, A)];
  assert_true(as_int->type == GK_I32 && as_int->bits == GK_HAS_VALUE && as_int->value.i32 == 8 && as_int->slot == -8);
  assert_true(wide->type == GK_I64 && wide->value.i64 == 8 && wide->slot == -8);
  assert_string_equal(wide->name, "GK_ITEMS(8)");
  static const gk_slot unknown[] = {-1, -9, INT32_MIN};
  for (size_t k = 0; k < GK_COUNT(unknown); ++k) assert_int_equal(gki_items_of(&blocks, 0, unknown[k]), 0);
  assert_int_equal(gki_items_of(&blocks, 0, N), N);
  assert_int_equal(gki_slot_of(&blocks, 0, GK_ITEMS(8)), 0); /* as anything but a number of items */
}

WITH_TEARDOWN(unknown_slots_are_zero) {
  static const gk_slot_desc sparse[] = {GK_BUFFER(X, float), {.slot = 40, .type = GK_PTR, .name = "forty"},
                                        {.slot = 40, .type = GK_I32, .name = "twice"}, {.slot = -3}, {.slot = 70000}};
  LIST_OVER(sparse, list, GK_INCLUDE(inner, 0, Y, 40));
  assert_ok(gki_blocks_read(&blocks, &list));
  static const gk_slot unknown[] = {0, -1, -3, 2, 39, 41, 65535, 70000, INT32_MAX, INT32_MIN};
  for (size_t k = 0; k < GK_COUNT(unknown); ++k) {
    assert_int_equal(gki_slot_of(&blocks, 0, unknown[k]), 0);
    assert_false(gki_slot_is_known(&blocks, 0, unknown[k]));
  }
  assert_int_equal(gki_slot_of(&blocks, 0, 40), 40);
  assert_string_equal(blocks.slots[40].name, "forty");
  assert_int_equal(blocks.slots[39].type, GK_NO_TYPE);
  assert_int_equal(gki_slot_of(&blocks, 1, IN), 0); /* its argument is unknown, it isn't */
  assert_true(gki_slot_is_known(&blocks, 1, IN));
  assert_int_equal(gki_slot_of(&blocks, 1, OUT), 40);
}

WITH_TEARDOWN(an_included_list_is_closed_in_itself) {
  gk_task inside[4], around[5];
  gk_list part = list_of(inside, spell("E)W)", inside)), list = list_of(around, spell("IKEK)", around));
  around[1] = around[3] = (gk_task){.op = GK_OP_LIST, .list = &part};
  assert_ok(gki_blocks_read(&blocks, &list));
  /* I  E ) W )  E  E ) W )  ) */
  static const uint32_t mates[] = {10, GK_NONE, GK_NONE, 4, 3, 10, GK_NONE, GK_NONE, 9, 8, 0};
  assert_int_equal(blocks.line_count, GK_COUNT(mates));
  for (uint32_t k = 0; k < GK_COUNT(mates); ++k) assert_int_equal(blocks.lines[k].mate, mates[k]);
  assert_int_equal(blocks.lines[0].otherwise, 5);
  assert_int_equal(blocks.lines[8].parent, 5);
}

/* A block that an included list leaves open ends with it. */
WITH_TEARDOWN(an_open_end_does_not_leak) {
  gk_task inside[2], around[3];
  gk_list part = list_of(inside, spell("WP", inside)), list = list_of(around, spell("KK)", around));
  around[0] = (gk_task){.op = GK_OP_LIST, .list = &part};
  assert_ok(gki_blocks_read(&blocks, &list));
  assert_int_equal(blocks.lines[2].parent, GK_NONE);
  assert_int_equal(blocks.lines[3].mate, GK_NONE);
  assert_int_equal(blocks.max_depth, 2);
}

WITH_TEARDOWN(unreadable_lists_count_as_empty) {
  gk_list other = inner, torn = inner, bare = inner;
  other.abi = GK_ABI + 1;
  torn.tasks = NULL;
  bare.slots = NULL;
  const gk_task tasks[] = {{.op = GK_OP_LIST}, {.op = GK_OP_LIST, .list = &other}, {.op = GK_OP_LIST, .list = &torn},
                           {.op = GK_OP_LIST, .list = &bare}, GK_FILL(X, N, 0)};
  gk_list list = list_of(tasks, GK_COUNT(tasks));
  assert_ok(gki_blocks_read(&blocks, &list));
  assert_int_equal(blocks.line_count, 1);
  assert_int_equal(blocks.inclusion_count, 5);
  for (uint32_t k = 1; k < 5; ++k) assert_null(blocks.inclusions[k].list);
  assert_int_equal(gki_slot_of(&blocks, 3, IN), 0);
}

/* ---- names in messages ------------------------------------------------------------------------------------------- */

WITH_TEARDOWN(lines_have_names) {
  char text[200];
  assert_ok(gki_blocks_read(&blocks, &outer));
  gki_line_name(&blocks, 0, text, sizeof text);
  assert_string_equal(text, "task 0 (X = 0)");
  gki_line_name(&blocks, 2, text, sizeof text);
  assert_string_equal(text, "task 1 (inner), there task 1 (OUT = IN)");
  gki_line_name(&blocks, 7, text, sizeof text);
  assert_string_equal(text, "task 3 (middle), there task 0 (inner), there task 2 (END)");
  gki_inclusion_name(&blocks, 3, text, sizeof text);
  assert_string_equal(text, "task 3 (middle), there task 0 (inner)");
  gki_inclusion_name(&blocks, 0, text, sizeof text);
  assert_string_equal(text, "the list outer");
}

WITH_TEARDOWN(names_are_cut_to_what_fits) {
  char whole[200], *text;
  assert_ok(gki_blocks_read(&blocks, &outer));
  gki_line_name(&blocks, 7, whole, sizeof whole);
  for (size_t bytes = 0; bytes <= strlen(whole); ++bytes) {
    text = malloc(bytes + 1); /* just so large that a byte too many is noticed */
    gki_line_name(&blocks, 7, text, bytes);
    if (bytes) assert_int_equal(strlen(text), bytes - 1);
    if (bytes) assert_memory_equal(text, whole, bytes - 1);
    free(text);
  }
}

WITH_TEARDOWN(nameless_tasks_are_named_by_their_kind) {
  char text[100];
  static const gk_kernel scale = {.name = "scale"};
  const gk_task tasks[] = {
      {.op = GK_OP_KERNEL, .kernel = &scale}, {.op = GK_OP_KERNEL}, {.op = (gk_op)77}, {.name = ""}};
  static const char *const names[] = {"task 0 (scale)", "task 1 (KERNEL)", "task 2 (op 77)", "task 3 (NONE)"};
  gk_list list = list_of(tasks, GK_COUNT(tasks));
  assert_ok(gki_blocks_read(&blocks, &list));
  for (uint32_t k = 0; k < 4; ++k) {
    gki_line_name(&blocks, k, text, sizeof text);
    assert_string_equal(text, names[k]);
  }
}

/* ---- what can't be read ------------------------------------------------------------------------------------------ */

static void assert_refused(const gk_list *list, gki_problem problem, size_t task, const char *words) {
  assert_invalid(words, gki_blocks_read(&blocks, list));
  assert_int_equal(blocks.fault, problem);
  assert_int_equal(blocks.fault_task, task);
  assert_string_equal(blocks.fault_message, gk_error());
  assert_null(blocks.arena.last);
  gk_set_allocator(NULL); /* begins the next call: its message counts */
}

WITH_TEARDOWN(broken_lists_are_refused) {
  gk_list other = inner, torn = inner, bare = inner;
  other.abi = 7;
  torn.tasks = NULL;
  bare.slots = NULL;
  assert_refused(NULL, GKI_LIST_NULL, SIZE_MAX, "the list is NULL");
  assert_refused(&other, GKI_LIST_ABI, SIZE_MAX, "the list inner has .abi 7, this library reads 1");
  assert_refused(&torn, GKI_LIST_ARRAYS, SIZE_MAX, "3 tasks and 4 slots, but .tasks is NULL");
  assert_refused(&bare, GKI_LIST_ARRAYS, SIZE_MAX, "but .slots is NULL");
  const gk_list empty = {.abi = GK_ABI};
  assert_ok(gki_blocks_read(&blocks, &empty));
  assert_int_equal(blocks.line_count, 0);
  assert_int_equal(blocks.slot_count, 1);
}

/* Lists that include the one before so many times each. */
static void tower(gk_list *lists, gk_task *tasks, size_t levels, size_t times) {
  for (size_t k = 1; k < levels; ++k) {
    for (size_t j = 0; j < times; ++j) tasks[k * times + j] = (gk_task){.op = GK_OP_LIST, .list = &lists[k - 1]};
    lists[k] = (gk_list){.abi = GK_ABI, .name = "level", .tasks = &tasks[k * times], .task_count = times};
  }
}

WITH_TEARDOWN(bombs_are_refused) {
  gk_list lists[60];
  gk_task tasks[2 * 60];
  static const gk_task one[] = {GK_FILL(X, N, 0)};
  tower(lists, tasks, 60, 2);
  lists[0] = (gk_list){GK_ABI, "seed", one, 1, table, 4};
  assert_refused(&lists[59], GKI_LIST_TOO_LONG, SIZE_MAX, "more than 2^24 tasks");
  assert_refused(&lists[25], GKI_LIST_TOO_LONG, SIZE_MAX, "more than 2^24 tasks");
  lists[0] = (gk_list){.abi = GK_ABI, .name = "nothing"};
  assert_refused(&lists[59], GKI_LIST_TOO_LONG, SIZE_MAX, "more than 2^24 included lists");
  lists[0].slots = table;
  lists[0].slot_count = 4;
  assert_refused(&lists[23], GKI_LIST_TOO_LONG, SIZE_MAX, "more than 2^24 slots");
  lists[0].task_count = SIZE_MAX; /* refused before anything is read */
  lists[0].tasks = one;
  assert_refused(&lists[0], GKI_LIST_TOO_LONG, SIZE_MAX, "more than 2^24 tasks");
  lists[0] = (gk_list){.abi = GK_ABI, .slots = table, .slot_count = SIZE_MAX};
  assert_refused(&lists[1], GKI_LIST_TOO_LONG, SIZE_MAX, "more than 2^24 slots");
}

WITH_TEARDOWN(a_list_just_too_long_is_refused) {
  static gk_task many[4097], includes[4097];
  const gk_list part = list_of(many, 4096);
  for (size_t k = 0; k < 4097; ++k) {
    many[k] = (gk_task)GK_FILL(X, N, 0);
    includes[k] = (gk_task){.op = GK_OP_LIST, .list = &part, .args = {X, Y, N, F}};
  }
  includes[4096] = many[0];
  gk_list list = list_of(includes, 4097);
  assert_refused(&list, GKI_LIST_TOO_LONG, SIZE_MAX, "more than 2^24 tasks");
  list.task_count = 100;
  assert_ok(gki_blocks_read(&blocks, &list));
  assert_int_equal(blocks.line_count, 409600);
  assert_int_equal(blocks.slot_count, 5); /* all of them given */
}

WITH_TEARDOWN(long_names_are_no_bomb) {
  gk_list lists[20];
  gk_task tasks[20 * 2];
  char *name = malloc(100000);
  memset(name, 'n', 99999);
  name[99999] = 0;
  const gk_slot_desc slot = {.slot = 1, .type = GK_PTR, .name = name};
  tower(lists, tasks, 20, 2);
  lists[0] = (gk_list){.abi = GK_ABI, .slots = &slot, .slot_count = 1};
  assert_refused(&lists[19], GKI_LIST_TOO_LONG, SIZE_MAX, "more than 2^28 letters");
  assert_ok(gki_blocks_read(&blocks, &lists[3]));
  assert_int_equal(strlen(blocks.slots[1].name), strlen("level.level.list.") + 99999);
  gki_blocks_free(&blocks);
  free(name);
}

WITH_TEARDOWN(lists_nest_64_deep) {
  enum { HEIGHT = 100000 };
  gk_list *lists = calloc(HEIGHT, sizeof *lists);
  gk_task *tasks = calloc(HEIGHT, sizeof *tasks);
  tower(lists, tasks, HEIGHT, 1);
  lists[0] = list_of(outer_tasks, 1);
  assert_ok(gki_blocks_read(&blocks, &lists[GK_MAX_DEPTH]));
  assert_int_equal(blocks.line_count, 1);
  char text[4000];
  gki_line_name(&blocks, 0, text, sizeof text);
  assert_memory_equal(text, "task 0 (level), there task 0 (level), there", 43);
  gki_blocks_free(&blocks);
  assert_refused(&lists[GK_MAX_DEPTH + 1], GKI_LIST_TOO_DEEP, 0, "task 0 (level): lists include each other");
  assert_refused(&lists[HEIGHT - 1], GKI_LIST_TOO_DEEP, 0, "more than 64 deep");
  /* Also where the deep part was measured in a shallow place before. */
  const gk_task both[] = {{.op = GK_OP_LIST, .list = &lists[40]}, {.op = GK_OP_LIST, .list = &lists[GK_MAX_DEPTH]}};
  const gk_list list = list_of(both, 2);
  assert_refused(&list, GKI_LIST_TOO_DEEP, 1, "task 1 (level)");
  free(lists);
  free(tasks);
}

WITH_TEARDOWN(a_list_in_itself_is_refused) {
  gk_list a, b;
  const gk_task in_a[] = {GK_FILL(X, N, 0), {.op = GK_OP_LIST, .name = "round", .list = &b}};
  const gk_task in_b[] = {{.op = GK_OP_LIST, .list = &a}};
  a = (gk_list){GK_ABI, "snake", in_a, 2, table, 4};
  b = (gk_list){GK_ABI, "tail", in_b, 1, table, 4};
  assert_refused(&a, GKI_LIST_IN_ITSELF, 1, "task 1 (round): the list snake includes itself");
  assert_refused(&b, GKI_LIST_IN_ITSELF, 0, "the list tail includes itself");
  const gk_task in_self[] = {{.op = GK_OP_LIST, .name = "self", .list = &b}};
  b.tasks = in_self;
  assert_refused(&b, GKI_LIST_IN_ITSELF, 0, "task 0 (self)");
}

/* ---- out of memory ----------------------------------------------------------------------------------------------- */

WITH_TEARDOWN(memory_may_run_out_anywhere) {
  assert_int_equal(begin_counted(NULL), 0);
  gk_list lists[40];
  gk_task tasks[2 * 40];
  tower(lists, tasks, 40, 1);
  lists[0] = list_of(outer_tasks, GK_COUNT(outer_tasks));
  gk_result result = GK_ERROR_MEMORY;
  int at = 1;
  for (;; ++at) {
    fail_own_memory(at);
    result = gki_blocks_read(&blocks, &lists[39]);
    if (result != GK_ERROR_MEMORY) break;
    assert_says("out of host memory");
    assert_int_equal(atomic_load(&own_memory.live), 0);
    assert_int_equal(blocks.line_count, 0);
  }
  assert_ok(result);
  assert_true(at >= 6);
  gki_blocks_free(&blocks);
  assert_int_equal(end_counted(NULL), 0);
}

int main(void) { return run_all_tests(); }
