/* Every problem that a list can have: one wrong list for each, many at once, and lists that are fine. */
#include "wrong_tasks.h"

/* ---- what is fine ------------------------------------------------------------------------------------------------ */

static const gk_task fine_tasks[] = {
    GK_RUN_ALWAYS(scale, F, X, R), {.op = GK_OP_KERNEL, .kernel = &add, .items = {F}, .offset = 8, .args = {X, Y}},
    GK_RUN_2D(blur, N, WIDE, X), GK_RUN_2D(blur, F, GK_ONE, RAW), GK_RUN(fall, N, X, B), GK_RUN(push, N, X, B),
    GK_RUN(total, N, X, Y), GK_RUN(count, N, F, F), GK_RUN(totals, N, F, RAW), {.op = GK_OP_KERNEL, .kernel = &no_args},
    GK_COPY(X, Y, N), {.op = GK_OP_COPY, .items = {N}, .args = {X, X}, .offset = 400},
    {.op = GK_OP_COPY, .args = {X, X}, .from_offset = 4}, GK_COPY(BODIES, B, GK_ONE), GK_FILL_F32(X, F, -1.5f),
    GK_FILL(X, F, 0), GK_FILL(F, N, 0x7fffffff), GK_FILL(BODIES, N, 1), GK_FILL(LONGS, N, -1),
    {.op = GK_OP_KERNEL, .kernel = &blur, .items = {N}, .args = {X}},
    {.op = GK_OP_CALL, .name = "all", .call = library, .args = {X, N, R, B, H, F, RAW, WIDE}},
    {.op = GK_OP_CALL, .bits = GK_ALWAYS, .call = library}, GK_DO_WHILE(F, .max_iterations = 3),
    GK_CHECKPOINT_AT(1, F, 4), GK_IF(F, .offset = 12), GK_SWITCH(F), GK_CASE, SCALE, GK_END, GK_CASE, GK_END, GK_END,
    GK_ELSE, SCALE, GK_END, GK_PARALLEL, GK_SECTION, SCALE, GK_WHILE(F), SCALE, GK_END, GK_END, GK_SECTION,
    GK_RUN(scale, N, Y, R), GK_END, GK_END, GK_END, GK_END, GK_TARGET(-1), GK_END, GK_INCLUDE(part, 10, X, X, N),
    GK_INCLUDE(part, 20, 0), GK_PARALLEL, GK_END, GK_SWITCH(F), GK_END};

TEST(a_fine_list_is_fine) {
  gk_list list = list_of(fine_tasks, GK_COUNT(fine_tasks));
  assert_fine(&list);
  list.task_count = 0;
  assert_fine(&list);
  const gk_list empty = {.abi = GK_ABI};
  assert_fine(&empty);
}

/* ---- one wrong task each ----------------------------------------------------------------------------------------- */

TEST(each_wrong_task_is_told) {
  for (size_t k = 0; k < GK_COUNT(wrongs); ++k) {
    gk_list list = list_of(wrongs[k].tasks, wrongs[k].count);
    assert_only(&list, wrongs[k].code, wrongs[k].task, wrongs[k].words);
  }
}

/* ---- one wrong slot each ----------------------------------------------------------------------------------------- */

typedef struct wrong_slot {
  const char *code, *words;
  gk_slot_desc slot; /* comes behind slots 1 (first) and 2 (second) */
} wrong_slot;

static const wrong_slot wrong_slots[] = {
    {"slot-number", "slot 0 (s)", {.slot = 0, .type = GK_PTR, .name = "s"}},
    {"slot-number", "slot -1 (s)", {.slot = -1, .type = GK_PTR, .name = "s"}},
    {"slot-number", "slot 65536 (s)", {.slot = 65536, .type = GK_PTR, .name = "s"}},
    {"slot-reused", "slot 2 (s) has the number of slot 2 (second)", {.slot = 2, .type = GK_PTR, .name = "s"}},
    {"slot-nameless", "slot 3 (without a name)", {.slot = 3, .type = GK_PTR}},
    {"slot-nameless", "slot 3 (without a name)", {.slot = 3, .type = GK_PTR, .name = ""}},
    {"slot-name-reused", "slot 3 (first) has the name of slot 1 (first)", {.slot = 3, .type = GK_PTR, .name = "first"}},
    {"slot-type", "slot 3 (s) has the type GK_NO_TYPE", {.slot = 3, .name = "s"}},
    {"slot-type", "slot 3 (s) has the type 9", {.slot = 3, .name = "s", .type = (gk_type)9, .count = 1}},
    {"slot-bits", ".bits 0x6", {.slot = 3, .name = "s", .type = GK_PTR, .bits = 6}},
    {"slot-bits", ".bits 0x3", {.slot = 3, .name = "s", .type = GK_I32, .bits = GK_HAS_VALUE | GK_IS_ROOM}},
    {"room-type", "slot 3 (s) is the room of a buffer, and of type GK_F32",
     {.slot = 3, .name = "s", .type = GK_F32, .bits = GK_IS_ROOM, .value = {.i32 = 1}}},
    {"room-unknown", "slot 3 (s) is the room of slot 99", {.slot = 3, .name = "s", .type = GK_I32, .bits = GK_IS_ROOM,
                                                           .value = {.i32 = 99}}},
    {"room-unknown", "slot 3 (s) is the room of slot 0", {.slot = 3, .name = "s", .type = GK_I64, .bits = GK_IS_ROOM}},
    {"room-buffer", "slot 3 (s) is the room of slot 3 (s), of type GK_U32",
     {.slot = 3, .name = "s", .type = GK_U32, .bits = GK_IS_ROOM, .value = {.i32 = 3}}},
    {"slot-bits", ".bits 0x5, which aren't one of GK_HAS_VALUE, GK_IS_ROOM and GK_IS_PASS; set one of them, or 0",
      {.slot = 3, .name = "s", .type = GK_I32, .bits = GK_HAS_VALUE | GK_IS_PASS}},
    {"slot-reserved", "slot 3 (s)", {.slot = 3, .name = "s", .type = GK_PTR, .reserved = {0, 1}}},
    {"slot-value", "type GK_PTR and has a value to begin with; drop GK_HAS_VALUE and call gk_bind",
     {.slot = 3, .name = "s", .type = GK_PTR, .bits = GK_HAS_VALUE}},
    {"slot-value", "type GK_BYTES",
     {.slot = 3, .name = "s", .type = GK_BYTES, .element_bytes = 4, .bits = GK_HAS_VALUE}},
    {"slot-bytes", "slot 3 (s) is a struct of 0 bytes", {.slot = 3, .name = "s", .type = GK_BYTES}},
    {"slot-count", "slot 3 (s) is of type GK_F64", {.slot = 3, .name = "s", .type = GK_F64, .count = 1}},
    {"slot-too-large", "18446744073709551615 elements of 1 byte",
     {.slot = 3, .name = "s", .type = GK_PTR, .count = SIZE_MAX}},
    {"slot-too-large", "of 4294967295 bytes",
     {.slot = 3, .name = "s", .type = GK_PTR, .count = SIZE_MAX / 2, .element_bytes = UINT32_MAX}},
};

TEST(each_wrong_slot_is_told) {
  for (size_t k = 0; k < GK_COUNT(wrong_slots); ++k) {
    const gk_slot_desc slots[] = {{.slot = 1, .type = GK_PTR, .name = "first"},
                                  {.slot = 2, .type = GK_PTR, .name = "second"}, wrong_slots[k].slot};
    const gk_list list = {GK_ABI, "list", NULL, 0, slots, 3};
    assert_only(&list, wrong_slots[k].code, SIZE_MAX, wrong_slots[k].words);
    /* The same in an included list: of the task that includes it, and once, however often it is included. */
    const gk_task tasks[] = {SCALE, {.op = GK_OP_LIST, .name = "twice", .list = &list},
                             {.op = GK_OP_LIST, .name = "twice", .list = &list}};
    const gk_list outer = list_of(tasks, 3);
    assert_only(&outer, wrong_slots[k].code, 1, wrong_slots[k].words);
  }
}

TEST(slots_at_the_limits_are_fine) {
  const gk_slot_desc slots[] = {{.slot = 65535, .type = GK_HOST_PTR, .name = "a", .bits = GK_HAS_VALUE},
                                {.slot = 1, .type = GK_F64, .name = "b", .bits = GK_HAS_VALUE},
                                {.slot = 9, .type = GK_PTR, .name = "c", .count = 1000000, .element_bytes = 4}};
  const gk_list list = {GK_ABI, "list", NULL, 0, slots, 3};
  assert_fine(&list);
}

/* ---- pass numbers ------------------------------------------------------------------------------------------------ */

enum { PASS = 50, OTHER = 8 };
#define PASSES TABLE, GK_PASS(PASS, LOOP)
static const gk_slot_desc passes[] = {PASSES};
KERNEL(read_ints, 1, PTR("from", int, IN), PTR("also", int, IN));
#define LOOP_OF(...) GK_REPEAT(N, .label = LOOP), __VA_ARGS__, GK_END
#define BEHIND GK_REPEAT(N, .label = LOOP), GK_END

static const wrong wrong_passes[] = {
    WRONG("pass-outside", 0, "task 0 (REPEAT LOOP): its count is slot 50 (PASS), the pass number of task 0 (REPEAT "
          "LOOP), which only lines inside of that loop may read; move this line in, or count in memory of your own",
          GK_REPEAT(PASS, .label = LOOP), GK_END),
    WRONG("pass-outside", 0, "its flag is slot 50 (PASS)", GK_WHILE(PASS, .label = LOOP), GK_END),
    WRONG("pass-outside", 0, "its flag is slot 50 (PASS)", GK_IF(PASS), GK_DO_WHILE(F, .label = LOOP), GK_END, GK_END),
    WRONG("pass-outside", 2, "its argument also is slot 50 (PASS)", BEHIND, RUN(read_ints, F, PASS)),
    WRONG("pass-outside", 2, "its argument from is slot 50 (PASS)", BEHIND, GK_COPY(F, PASS, GK_ONE)),
    WRONG("pass-outside", 2, "its number of items is slot 50 (PASS)", BEHIND, GK_FILL(X, PASS, 0)),
    WRONG("pass-outside", 0, "its number of items is slot", GK_RUN_2D(blur, N, PASS, X), BEHIND),
    WRONG("pass-written", 1, "its argument more is slot 50 (PASS), a pass number, which only gk writes; read it by an",
          LOOP_OF(RUN(count, F, PASS))),
    WRONG("pass-written", 1, "its argument a is", LOOP_OF(RUN(totals, PASS, RAW))),
    WRONG("pass-written", 1, "its argument to is", LOOP_OF(GK_COPY(PASS, F, GK_ONE))),
    WRONG("pass-written", 1, "its argument to is", LOOP_OF(GK_FILL(PASS, GK_ONE, 0))),
    WRONG("pass-checkpoint", 1, "its flag is slot 50 (PASS), a pass number, which the host can't clear; yield by a",
          LOOP_OF(GK_CHECKPOINT(OTHER, PASS), GK_END)),
    WRONG("pass-checkpoint", 0, "its flag is slot 50 (PASS)", GK_CHECKPOINT(OTHER, PASS), BEHIND, GK_END),
    WRONG("pass-call", 1, "its argument 1 is slot 50 (PASS), a pass number, which calls don't get; copy it to other",
          LOOP_OF({.op = GK_OP_CALL, .call = library, .args = {X, PASS}})),
    WRONG("pass-call", 1, "its argument 0 is", LOOP_OF({.op = GK_OP_CALL_HOST, .call = library, .args = {PASS}})),
    WRONG("pass-label", 1, "slot 50 (PASS) is the pass number of the loop 7, and there is no such loop in its list",
          GK_TARGET(LOOP), GK_IF(PASS), GK_END, GK_END),
};

TEST(each_wrong_pass_number_is_told) {
  for (size_t k = 0; k < GK_COUNT(wrong_passes); ++k) {
    const gk_list list = {GK_ABI, "list", wrong_passes[k].tasks, wrong_passes[k].count, passes, GK_COUNT(passes)};
    assert_only(&list, wrong_passes[k].code, wrong_passes[k].task, wrong_passes[k].words);
  }
}

/* A label is one of the table's own list and what that includes, at whatever place. */
TEST(pass_numbers_of_included_lists) {
  static const gk_slot_desc inner_slots[] = {GK_BUFFER(F, int), GK_SCALAR(N, int), GK_PASS(PASS, 1)};
  static const gk_task inner_tasks[] = {GK_REPEAT(N, .label = 1), GK_IF(PASS), GK_END, GK_IF(F), GK_END, GK_END};
  static const gk_list inner = GK_LIST(inner, inner_tasks, inner_slots);
  static const gk_slot_desc outer_slots[] = {GK_BUFFER(F, int), GK_SCALAR(N, int), GK_PASS(PASS, 101), GK_PASS(51, 1),
                                             GK_BUFFER(X, float)};
  static const gk_task outer_tasks[] = {GK_INCLUDE_AS(a, inner, 100, PASS), GK_INCLUDE_AS(b, inner, 200, F),
                                        GK_REPEAT(N, .label = 1), GK_INCLUDE_AS(c, inner, 300, 51), GK_END};
  static const gk_list outer = GK_LIST(outer, outer_tasks, outer_slots);
  static const gk_task tasks[] = {GK_INCLUDE_AS(d, outer, 1000, F), GK_INCLUDE_AS(e, outer, 2000, F)};
  static const gk_list both = {GK_ABI, "both", tasks, 2, table, GK_COUNT(table)};
  assert_fine(&inner);
  assert_fine(&outer);
  assert_fine(&both);
  /* given to a list outside of its loop */
  static const gk_task outside[] = {GK_INCLUDE(inner, 100, 51), GK_INCLUDE_AS(b, inner, 200, PASS),
                                    GK_REPEAT(N, .label = 1), GK_END};
  static const gk_list far = {GK_ABI, "far", outside, 4, outer_slots, GK_COUNT(outer_slots)};
  problems all = {0};
  assert_int_equal(gk_check(&far, NULL, note_problem, &all), GK_ERROR_INVALID);
  assert_problem(&all, 0, "pass-outside", 0, "its flag is slot 7 (F), the pass number of task 2 (REPEAT 1)");
  assert_problem(&all, 1, "pass-outside", 1, "its flag is slot 7 (F), the pass number of task 0 (inner), there task 0");
  assert_int_equal(all.count, 2);
  /* the label of a loop around, or beside, isn't one of the list's own */
  static const gk_slot_desc other_slots[] = {GK_PASS(PASS, 1)};
  static const gk_task if_pass[] = {GK_IF(PASS), GK_END};
  static const gk_list other = {GK_ABI, "other", if_pass, 2, other_slots, 1};
  static const gk_task around[] = {GK_REPEAT(N, .label = 1), {.op = GK_OP_LIST, .name = "in", .list = &other}, GK_END};
  const gk_list wrong_list = list_of(around, 3);
  assert_only(&wrong_list, "pass-label", 1, "slot 50 (PASS) is the pass number of the loop 1");
  static const gk_slot_desc misnamed[] = {GK_SCALAR(N, int), GK_PASS(F, 9)};
  static const gk_task gives[] = {GK_REPEAT(N, .label = 1), GK_INCLUDE(inner, 100, F), GK_END};
  static const gk_list given = {GK_ABI, "given", gives, 3, misnamed, 2};
  problems of_given = {0};
  assert_int_equal(gk_check(&given, NULL, note_problem, &of_given), GK_ERROR_INVALID);
  assert_problem(&of_given, 0, "pass-label", 1, "slot 7 (F) is the pass number of the loop 9");
  static const gk_slot_desc numbers[] = {TABLE, {.slot = PASS, .type = GK_I64, .name = "PASS", .bits = GK_IS_PASS,
                                               .value = {.i32 = LOOP}}};
  const gk_list of_type = {GK_ABI, "list", wrong_passes[2].tasks + 1, 2, numbers, GK_COUNT(numbers)};
  assert_only(&of_type, "pass-type", SIZE_MAX, "slot 50 (PASS) is a pass number, but it isn't a GK_PTR to an int");
}

/* ---- lists and backends ------------------------------------------------------------------------------------------ */

TEST(each_unreadable_list_is_told) {
  gk_task tasks[] = {SCALE, {.op = GK_OP_LIST, .name = "again"}};
  gk_list round = list_of(tasks, 2);
  gk_list long_one = {.abi = GK_ABI, .name = "long_one", .tasks = tasks, .task_count = SIZE_MAX};
  tasks[1].list = &round;
  assert_only(NULL, "list-null", SIZE_MAX, "the list is NULL");
  assert_only(&other_abi, "list-abi", SIZE_MAX, "the list other_abi has .abi 9, this library reads 1");
  assert_only(&torn, "list-arrays", SIZE_MAX, "the list torn");
  assert_only(&long_one, "list-too-long", SIZE_MAX, "the list long_one");
  assert_only(&round, "list-in-itself", 1, "task 1 (again): the list list includes itself");
  gk_list chain[GK_MAX_DEPTH + 2];
  gk_task links[GK_MAX_DEPTH + 2];
  for (size_t k = 0; k < GK_COUNT(chain); ++k) {
    links[k] = (gk_task){.op = GK_OP_LIST, .list = k ? &chain[k - 1] : &part};
    chain[k] = (gk_list){.abi = GK_ABI, .name = "chain", .tasks = &links[k], .task_count = 1};
  }
  assert_only(&chain[GK_MAX_DEPTH], "list-too-deep", 0, "more than 64 deep");
}

TEST(an_unknown_backend_is_told_with_the_list) {
  problems all = {0};
  const gk_list list = list_of((const gk_task[]){{0}}, 1);
  assert_int_equal(gk_check(&list, "abacus", note_problem, &all), GK_ERROR_INVALID);
  assert_problem(&all, 0, "backend-unknown", SIZE_MAX, "there is no backend named \"abacus\"; take one of ");
  assert_problem(&all, 1, "task-forgotten", 0, "task 0 (NONE)");
  assert_int_equal(all.count, 2);
  assert_string_equal(gk_error(), all.at[0].message);
  all.count = 0;
  assert_int_equal(gk_check(NULL, "abacus", note_problem, &all), GK_ERROR_INVALID);
  assert_problem(&all, 1, "list-null", SIZE_MAX, "the list is NULL");
}

static bool takes_hip(const gk_kernel *kernel) { return kernel->hip != NULL; }

TEST(kernels_need_code_for_the_backend) {
  static const gk_source source = {.file = "a.c", .text = "", .line = 1};
  static const gk_code code = {.text = "f"};
  static const gk_kernel hosted_only = {.name = "hosted_only", .host = nothing};
  static const gk_kernel portable = {.name = "portable", .source = &source};
  static const gk_kernel for_hip = {.name = "for_hip", .hip = &code};
  static const gk_backend plain_one = {.name = "plain_one"}, asked = {.name = "asked", .takes = takes_hip};
  const gk_task tasks[] = {RUN(hosted_only, 0), RUN(portable, 0), RUN(for_hip, 0), RUN(hosted_only, 0)};
  const gk_list list = list_of(tasks, 4);
  assert_fine(&list);
  problems all = check_list_for(&list, &plain_one);
  assert_int_equal(all.count, 3);
  assert_problem(&all, 0, "kernel-no-code", 0, "the kernel hosted_only has no code for plain_one");
  assert_problem(&all, 1, "kernel-no-code", 2, "the kernel for_hip has no code for plain_one");
  assert_problem(&all, 2, "kernel-no-code", 3, "task 3 (hosted_only)");
  all = check_list_for(&list, &asked);
  assert_int_equal(all.count, 3);
  assert_problem(&all, 1, "kernel-no-code", 1, "the kernel portable has no code for asked");
}

static const gk_code *code_for_cuda(const gk_kernel *kernel, const char **beyond) {
  if (beyond) *beyond = NULL;
  return kernel->cuda;
}
static bool takes_any(const gk_kernel *kernel) { return kernel->source || kernel->cuda; }

TEST(handwritten_code_is_checked) {
  static const gk_source source = {.file = "a.c", .text = "", .line = 1};
  static const gk_code code = {.text = "f"};
  static const gk_param params[] = {{"a", NULL, 4093, 8, GK_BYTES, GK_ACCESS_VALUE},
                                    {"b", NULL, 0, 0, GK_I32, GK_ACCESS_VALUE}};
  static const gk_kernel both = {.name = "both", .dimensions = 2, .cuda = &code, .source = &source},
                         fits = {.name = "fits", .cuda = &code, .params = params, .param_count = 1},
                         larger = {.name = "larger", .cuda = &code, .params = params, .param_count = 2};
  static const gk_slot_desc own[] = {{.slot = 1, .type = GK_BYTES, .name = "S", .element_bytes = 4093},
                                     GK_SCALAR(2, int), GK_SCALAR(3, int), GK_BUFFER(4, int)};
  static const gk_backend cuda = {.name = "cuda", .code = code_for_cuda}, hip = {.name = "hip", .takes = takes_any};
  const gk_task tasks[] = {RUN(fits, 1), RUN(larger, 1, 2), GK_RUN_2D(both, 2, 4, 0), GK_RUN_2D(both, 4, 2, 0)};
  const gk_list list = {GK_ABI, "list", tasks, GK_COUNT(tasks), own, GK_COUNT(own)};
  problems all = check_list_for(&list, &cuda);
  assert_int_equal(all.count, 3);
  assert_problem(&all, 0, "kernel-code", 1, "the kernel larger has code by hand for cuda that has more than 4096");
  assert_problem(&all, 1, "items-by-hand", 2, "along y is read on the device, from slot 4 (4)");
  assert_problem(&all, 2, "items-by-hand", 3, "along x is read on the device");
  all = check_list_for(&list, &hip); /* which runs the portable text */
  assert_int_equal(all.count, 1);
}

/* The IF that goes before is none of them, with its ELSE or without. */
TEST(blocks_nest_64_deep) {
  gk_task tasks[2 * GK_MAX_DEPTH + 7] = {GK_IF(F), GK_ELSE, GK_END};
  for (uint32_t before = 0; before <= 3; before += 3)
    for (uint32_t depth = GK_MAX_DEPTH; depth <= GK_MAX_DEPTH + 2; ++depth) {
      for (uint32_t k = 0; k < depth; ++k) tasks[3 + k] = (gk_task)GK_IF(F);
      for (uint32_t k = 0; k < depth; ++k) tasks[3 + depth + k] = (gk_task)GK_END;
      gk_list list = list_of(tasks + 3 - before, before + 2 * depth);
      if (depth == GK_MAX_DEPTH) assert_fine(&list);
      else assert_only(&list, "blocks-too-deep", before + GK_MAX_DEPTH, "more than 64 blocks deep");
    }
}

/* ---- many at once ------------------------------------------------------------------------------------------------ */

static const gk_slot_desc broken_slots[] = {TABLE, GK_BUFFER(X, int), {.slot = 70000, .name = "far"}};
LIST_OVER(broken_slots, broken, {0}, GK_RUN(scale, 99, Y, N), GK_RUN_2D(add, N, N, X, X),
                                GK_WHILE(N, .offset = 3, .label = 5), GK_CHECKPOINT(5, 44),
                                GK_RUN_ALWAYS(scale, R, F, R), GK_TARGET(0), GK_END, GK_END, GK_ELSE, GK_END, GK_END,
                                GK_SWITCH(F), GK_FILL(RAW, N, 1), GK_END, GK_PARALLEL, GK_SECTION, SCALE, GK_TARGET(6),
                                GK_END, GK_END, GK_COPY(X, X, N), GK_SECTION, GK_RUN(total, N, Y, X), GK_END, GK_END,
                                GK_INCLUDE(short_list, 0, X, N),
                                {.op = GK_OP_CALL, .name = "solve", .bits = 4, .args = {X, 0, Y}, .label = 3},
                                {.op = (gk_op)99, .name = "future"}, GK_IF(F));

static const struct { const char *code; size_t task; } broken_problems[] = {
    {"slot-reused", SIZE_MAX}, {"slot-name-reused", SIZE_MAX}, {"slot-number", SIZE_MAX}, {"slot-type", SIZE_MAX},
    {"task-forgotten", 0}, {"argument-type", 1}, {"items-unknown", 1}, {"argument-alias", 2}, {"run-dimensions", 2},
    {"flag-type", 3}, {"offset-unaligned", 3}, {"flag-unknown", 4}, {"label-reused", 4}, {"always-in-block", 5},
    {"argument-element", 5}, {"items-type", 5}, {"checkpoint-in-checkpoint", 6}, {"label-missing", 6},
    {"else-without-if", 9}, {"end-without-block", 11}, {"task-in-switch", 13}, {"fill-unit", 13},
    {"checkpoint-in-section", 18}, {"task-in-parallel", 21}, {"copy-onto-itself", 21}, {"race", 23},
    {"include-arguments", 26}, {"argument-type", 26}, {"bits-unknown", 27}, {"field-unused", 27}, {"argument-gap", 27},
    {"call-null", 27}, {"op-unknown", 28}, {"end-missing", 29}};

/* Twenty mistakes of different kinds in one list, and more: all are told, in the order of the tasks. */
TEST(all_problems_are_reported) {
  problems all = check_list(&broken);
  size_t kinds = 0;
  for (size_t k = 0; k < GK_COUNT(broken_problems); ++k) {
    assert_problem(&all, k, broken_problems[k].code, broken_problems[k].task, "");
    size_t j = 0;
    while (strcmp(broken_problems[j].code, broken_problems[k].code) != 0) ++j;
    kinds += j == k;
  }
  assert_int_equal(all.count, GK_COUNT(broken_problems));
  assert_true(kinds > 20);
}

/* What a person reads: gk_print's lines are in tests/golden/check.txt. GK_UPDATE_GOLDEN=1 writes them anew. */
TEST(messages_are_golden) {
  const char *here = strrchr(__FILE__, '/');
  char path[1000];
  snprintf(path, sizeof path, "%.*s/../../golden/check.txt", (int)(here - __FILE__), __FILE__);
  char *printed = NULL, wanted[16384];
  size_t bytes = 0;
  FILE *file = open_memstream(&printed, &bytes);
  assert_int_equal(gk_check(&broken, NULL, gk_print, file), GK_ERROR_INVALID);
  fclose(file);
  file = fopen(path, getenv("GK_UPDATE_GOLDEN") ? "w+" : "r");
  if (!file) fail_msg("%s can't be opened", path);
  if (getenv("GK_UPDATE_GOLDEN")) fputs(printed, file);
  rewind(file);
  wanted[fread(wanted, 1, sizeof wanted - 1, file)] = 0;
  fclose(file);
  assert_string_equal(printed, wanted);
  free(printed);
}

/* tests/repo/configured.py has a build without some backends. */
TEST(every_problem_was_seen) {
  for (int k = 0; k < GKI_PROBLEM_COUNT; ++k)
    if (!code_was_seen[k] && k != GKI_BACKEND_NOT_BUILT && !gki_problem_is_warning((gki_problem)k))
      fail_msg("no list of this test has the problem %s", gki_problem_code((gki_problem)k));
}

TEST(codes_are_told_apart) {
  for (int k = 0; k < GKI_PROBLEM_COUNT; ++k)
    for (int j = 0; j < k; ++j)
      assert_string_not_equal(gki_problem_code((gki_problem)k), gki_problem_code((gki_problem)j));
}

TEST(sentences_are_cut_to_what_fits) {
  for (size_t bytes = 0; bytes < 100; ++bytes) {
    char *text = malloc(bytes + 1);
    gki_problem_text(GKI_LABEL_REUSED, (const char *const[]){"12345", "task 3 (scale)", NULL}, text, bytes);
    if (bytes)
      assert_memory_equal(text, "its label 12345 is that of task 3 (scale), too; give every checkpoint, yield and "
                                "loop a label of its own", bytes - 1);
    free(text);
  }
}

int main(void) { return run_all_tests(); }
