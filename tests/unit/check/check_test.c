/* Every problem that a list can have: one wrong list for each, many at once, and lists that are fine. */
#include "judged.h"

/* ---- a world to be wrong in -------------------------------------------------------------------------------------- */

typedef struct body { float mass, drag, size[2]; } body;

enum { X = 1, Y, N, R, B, H, F, RAW, WIDE, HALVES, BODIES, LONGS, DOUBLES };
enum { LOOP = 7 };
#define TABLE \
  GK_BUFFER(X, float), GK_BUFFER(Y, float), GK_SCALAR(N, int), GK_SCALAR(R, float), GK_STRUCT_VALUE(B, body), \
      {.slot = H, .type = GK_HOST_PTR, .name = "H"}, GK_BUFFER(F, int32_t), GK_RAW_BUFFER(RAW), \
      GK_SCALAR(WIDE, int64_t), GK_BUFFER(HALVES, short), GK_BUFFER(BODIES, body), \
      GK_BUFFER(LONGS, int64_t), GK_BUFFER(DOUBLES, double)
static const gk_slot_desc table[] = {TABLE};

static void nothing(const gk_value *args, gk_range items) { (void)args, (void)items; }
static gk_result library(const gk_value *args, void *native) { return (void)args, (void)native, GK_OK; }

#define PTR(name, T, access) {name, #T, sizeof(T), _Alignof(T), GK_PTR, GK_ACCESS_##access}
#define KERNEL(id, dims, ...) \
  static const gk_param id##_params[] = {__VA_ARGS__}; \
  static const gk_kernel id = {.name = #id, .params = id##_params, .param_count = GK_COUNT(id##_params), \
                               .dimensions = (dims), .host = nothing}
KERNEL(scale, 0, PTR("y", float, INOUT), {"a", "float", 4, 4, GK_F32, GK_ACCESS_VALUE});
KERNEL(add, 1, PTR("y", float, INOUT), PTR("x", float, IN));
KERNEL(blur, 2, PTR("y", float, OUT));
KERNEL(fall, 1, PTR("y", float, OUT), PTR("of", body, IN));
KERNEL(push, 1, PTR("y", float, OUT), {"of", "body", sizeof(body), 4, GK_BYTES, GK_ACCESS_VALUE});
KERNEL(total, 1, PTR("sum", float, SUM), PTR("x", float, IN));
KERNEL(count, 1, PTR("counter", int, ATOMIC), PTR("more", int, ATOMIC));
KERNEL(totals, 1, PTR("a", int32_t, SUM), PTR("b", uint32_t, SUM));
static const gk_kernel no_args = {.name = "no_args", .host = nothing};

#define SCALE GK_RUN(scale, N, X, R)

static gk_list list_of(const gk_task *tasks, size_t task_count) {
  return (gk_list){GK_ABI, "list", tasks, task_count, table, GK_COUNT(table)};
}

/* ---- what is fine ------------------------------------------------------------------------------------------------ */

static const gk_slot_desc part_table[] = {GK_BUFFER(X, float), GK_RAW_BUFFER(Y), GK_SCALAR(N, int), GK_OWN(F, int, 1),
                                          GK_DEFAULT(R, float, 2)};
LIST_OVER(part_table, part, GK_WHILE(F, .max_iterations = 9, .label = 1), GK_RUN(scale, N, X, R), GK_END);
LIST_OVER(part_table, eager, GK_RUN_ALWAYS(scale, N, X, R));

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

static const gk_kernel nameless = {.host = nothing};
static const gk_kernel reserved = {.name = "reserved", .host = nothing, .reserved = {0, 1}};
static const gk_kernel crowded = {.name = "crowded", .host = nothing, .param_count = 17, .params = add_params};
static const gk_kernel paramless = {.name = "paramless", .host = nothing, .param_count = 1};
static const gk_kernel deep = {.name = "deep", .host = nothing, .dimensions = 4};
static const gk_kernel empty_kernel = {.name = "empty_kernel"};
static const gk_source textless_source = {.file = "a.c"};
static const gk_kernel textless = {.name = "textless", .source = &textless_source};
static const gk_source mixed_source = {.file = "a.c", .text = "GK_SOURCE(a)\n", .line = 1, .from = "1:b.c"};
static const gk_kernel mixed = {.name = "mixed", .source = &mixed_source};
#define WRONG_CODE(id, ...) \
  static const gk_code id##_code = {__VA_ARGS__}; \
  static const gk_kernel id = {.name = #id, .cuda = &id##_code}
WRONG_CODE(formless, .entry = "f");
WRONG_CODE(twofold, .text = "f", .function = (void *)1);
WRONG_CODE(imageless, .image = "f");
WRONG_CODE(wide, .text = "f", .block = {32, 33});
WRONG_CODE(dirty, .text = "f", .reserved = {0, 0, 1});
WRONG_CODE(tall, .text = "f", .block = {1, 1, 65});
WRONG_CODE(optional, .function = (void *)1, .options = "-G");
WRONG_CODE(measured, .text = "f", .image_bytes = 4);
#define WRONG_PARAM(id, ...) KERNEL(id, 1, __VA_ARGS__)
WRONG_PARAM(anonymous, {NULL, "float", 4, 4, GK_PTR, GK_ACCESS_IN});
WRONG_PARAM(unheard, {"x", "float", 4, 4, GK_PTR, (gk_access)6});
WRONG_PARAM(pointing, {"x", "float", 4, 4, GK_PTR, GK_ACCESS_VALUE});
WRONG_PARAM(hosted, {"x", NULL, 8, 8, GK_HOST_PTR, GK_ACCESS_VALUE});
WRONG_PARAM(sizeless, {"x", "body", 0, 4, GK_BYTES, GK_ACCESS_VALUE});
WRONG_PARAM(typed, {"x", "float", 4, 4, GK_F32, GK_ACCESS_OUT});
WRONG_PARAM(nested, {"x", "float *", 8, 8, GK_PTR, GK_ACCESS_IN});
WRONG_PARAM(long_sum, PTR("s", int64_t, SUM));
WRONG_PARAM(raw_sum, {"s", NULL, 4, 4, GK_PTR, GK_ACCESS_SUM});
WRONG_PARAM(short_sum, {"s", "double", 4, 4, GK_PTR, GK_ACCESS_SUM});
KERNEL(bigger, 1, {"of", "body", 99, 4, GK_PTR, GK_ACCESS_IN});
KERNEL(any_body, 1, {"of", NULL, 17, 4, GK_PTR, GK_ACCESS_IN});
KERNEL(float_4, 1, {"y", "float4", 16, 16, GK_PTR, GK_ACCESS_IN});
KERNEL(in_and_sum, 1, PTR("sum", float, SUM), PTR("y", float, OUT));

static const gk_slot_desc few[] = {GK_SCALAR(X, int)};
static const gk_task no_tasks[] = {{.op = GK_OP_END}};
static const gk_list short_list = {GK_ABI, "short_list", no_tasks, 0, few, 1};
static const gk_list other_abi = {.abi = 9, .name = "other_abi"};
static const gk_list torn = {.abi = GK_ABI, .name = "torn", .task_count = 3};
static const gk_slot_desc body_table[] = {GK_STRUCT_VALUE(X, body), GK_BUFFER(Y, float)};
static const gk_list body_list = {GK_ABI, "body_list", no_tasks, 0, body_table, 2};

typedef struct wrong {
  const char *code;
  size_t task;
  const char *words;
  const gk_task *tasks;
  size_t count;
} wrong;

#define WRONG(code, task, words, ...) \
  {code, task, words, (const gk_task[]){__VA_ARGS__}, sizeof((const gk_task[]){__VA_ARGS__}) / sizeof(gk_task)}
#define RUN(k, ...) {.op = GK_OP_KERNEL, .name = #k, .kernel = &(k), .items = {N}, .args = {__VA_ARGS__}}

static const wrong wrongs[] = {
    WRONG("task-forgotten", 1, "task 1 (NONE)", SCALE, {0}),
    WRONG("op-unknown", 0, "there is no op 16", {.op = (gk_op)16}),
    WRONG("op-unknown", 0, "there is no op -1", {.op = (gk_op)-1, .bits = 77, .label = 3}),
    WRONG("bits-unknown", 1, "task 1 (scale): .bits is 0x2", SCALE,
          {.op = GK_OP_KERNEL, .bits = 2, .name = "scale", .kernel = &no_args}),
    WRONG("reserved", 0, "task 0 (IF END)", {.op = GK_OP_IF, .name = "END", .flag = F, .reserved = {0, 0, 0, 1}},
          GK_END),
    /* fields */
    WRONG("field-unused", 0, "(no_args): .flag is set, but KERNEL",
          {.op = GK_OP_KERNEL, .kernel = &no_args, .flag = F}),
    WRONG("field-unused", 0, ".call is set", {.op = GK_OP_KERNEL, .kernel = &no_args, .call = library}),
    WRONG("field-unused", 0, ".kernel is set, but CALL", {.op = GK_OP_CALL, .kernel = &no_args, .call = library}),
    WRONG("field-unused", 0, ".list is set", {.op = GK_OP_CALL, .call = library, .list = &part}),
    WRONG("field-unused", 0, ".items[0] is set", {.op = GK_OP_CALL, .call = library, .items = {N}}),
    WRONG("field-unused", 0, ".items[1] is set", {.op = GK_OP_FILL, .items = {0, N}, .args = {X}}),
    WRONG("field-unused", 0, ".items[2] is set", {.op = GK_OP_COPY, .items = {0, 0, N}, .args = {X, Y}}),
    WRONG("field-unused", 1, "task 1 (END): .args is set", GK_IF(F), {.op = GK_OP_END, .args = {X}}),
    WRONG("field-unused", 0, ".from_offset is set", {.op = GK_OP_FILL, .args = {X}, .from_offset = 4}),
    WRONG("field-unused", 0, ".pattern is set", {.op = GK_OP_COPY, .args = {X, Y}, .pattern = 4}),
    WRONG("field-unused", 0, ".max_iterations is set", {.op = GK_OP_IF, .flag = F, .max_iterations = 1}, GK_END),
    WRONG("field-unused", 0, ".label is set", {.op = GK_OP_SWITCH, .flag = F, .label = 1}, GK_END),
    WRONG("field-unused", 0, ".offset is set, but KERNEL doesn't use it unless",
          {.op = GK_OP_KERNEL, .kernel = &no_args, .items = {N}, .offset = 4}),
    WRONG("field-unused", 0, ".offset is set, but CHECKPOINT doesn't use it without a flag",
          {.op = GK_OP_CHECKPOINT, .label = 1, .offset = 4}, GK_END),
    WRONG("field-unused", 0, "(part): .items[0] is set, but LIST", {.op = GK_OP_LIST, .list = &part, .items = {N}}),
    /* blocks */
    WRONG("end-without-block", 1, "task 1 (END)", SCALE, GK_END),
    WRONG("end-missing", 0, "task 0 (IF F)", GK_IF(F), GK_WHILE(F, .label = 3), GK_END),
    WRONG("else-without-if", 1, "task 1 (ELSE)", GK_WHILE(F), GK_ELSE, GK_END),
    WRONG("else-without-if", 0, "task 0 (other)", {.op = GK_OP_ELSE, .name = "other"}),
    WRONG("else-twice", 2, "another GK_ELSE already, task 1 (first)", GK_IF(F), {.op = GK_OP_ELSE, .name = "first"},
          GK_ELSE, GK_END),
    WRONG("case-outside-switch", 0, "task 0 (CASE)", GK_CASE, GK_END),
    WRONG("case-outside-switch", 2, "task 2 (CASE)", GK_SWITCH(F), GK_CASE, GK_CASE, GK_END, GK_END, GK_END),
    WRONG("task-in-switch", 1, "task 1 (scale): it stands directly in task 0 (SWITCH F)", GK_SWITCH(F), SCALE, GK_END),
    WRONG("task-in-switch", 1, "task 1 (part), there task 0", GK_SWITCH(F), GK_INCLUDE(part, 0, 0), GK_END),
    WRONG("section-outside-parallel", 1, "task 1 (SECTION)", GK_IF(F), GK_SECTION, GK_END, GK_END),
    WRONG("task-in-parallel", 1, "task 1 (scale): it stands directly in task 0 (PARALLEL)", GK_PARALLEL, SCALE, GK_END),
    WRONG("checkpoint-in-checkpoint", 2, "inside of task 0 (CHECKPOINT 1)", GK_CHECKPOINT(1, F), GK_WHILE(F),
          GK_TARGET(2), GK_END, GK_END, GK_END),
    WRONG("checkpoint-in-section", 3, "inside of task 0 (PARALLEL)", GK_PARALLEL, GK_SECTION, GK_IF(F), GK_TARGET(2),
          GK_END, GK_END, GK_END, GK_END),
    WRONG("always-in-block", 1, "task 1 (scale): it runs in every launch (GK_ALWAYS), but is inside of task 0 (IF F)",
          GK_IF(F), GK_RUN_ALWAYS(scale, N, X, R), GK_END),
    WRONG("always-in-block", 1, "task 1 (eager), there task 0 (scale): it runs in every launch (GK_ALWAYS), but is",
          GK_IF(F), GK_INCLUDE(eager, 0, 0), GK_END),
    WRONG("always-on-block", 0, "not for WHILE", {.op = GK_OP_WHILE, .bits = GK_ALWAYS, .flag = F}, GK_END),
    WRONG("always-on-block", 0, "task 0 (part): GK_ALWAYS", {.op = GK_OP_LIST, .bits = GK_ALWAYS, .list = &part}),
    /* labels and flags */
    WRONG("label-missing", 0, "task 0 (CHECKPOINT 0)", GK_TARGET(0), GK_END),
    WRONG("label-zero", 0, "task 0 (part), there task 0 (WHILE 1)", GK_INCLUDE(part, -1, 0)),
    WRONG("label-reused", 3, "label 7 is that of task 0 (CHECKPOINT 7)", GK_TARGET(7), GK_END, SCALE,
          GK_WHILE(F, .label = 7), GK_END),
    WRONG("label-reused", 2, "label 8 is that of task 0 (CHECKPOINT 8)", GK_TARGET(8), GK_END, GK_INCLUDE(part, 7, 0)),
    WRONG("label-range", 0, "2147483648", GK_INCLUDE(part, INT32_MAX, 0)),
    WRONG("flag-missing", 0, "WHILE needs a flag", {.op = GK_OP_WHILE}, GK_END),
    WRONG("flag-missing", 0, "IF needs a flag", {.op = GK_OP_IF}, GK_END),
    WRONG("flag-missing", 0, "SWITCH needs a flag", {.op = GK_OP_SWITCH, .offset = 4}, GK_END),
    WRONG("flag-unknown", 0, "task 0 (IF 77): its flag is slot 77", GK_IF(77), GK_END),
    WRONG("flag-unknown", 0, "its flag is slot -2", GK_CHECKPOINT(1, -2), GK_END),
    WRONG("flag-type", 0, "its flag is slot 3 (N), of type GK_I32", GK_DO_WHILE(N), GK_END),
    WRONG("flag-element", 0, "its flag is slot 1 (X), whose elements are float", GK_WHILE(X), GK_END),
    WRONG("flag-element", 0, "whose elements are short", GK_CHECKPOINT(1, HALVES), GK_END),
    WRONG("offset-unaligned", 0, ".offset is 6", GK_IF(F, .offset = 6), GK_END),
    WRONG("offset-unaligned", 0, ".offset is 1", {.op = GK_OP_KERNEL, .kernel = &no_args, .items = {F}, .offset = 1}),
    WRONG("items-element", 0, "along x is in slot 1 (X), whose elements are float", GK_FILL(Y, X, 0)),
    /* kernels */
    WRONG("kernel-null", 1, "task 1 (none)", SCALE, {.op = GK_OP_KERNEL, .name = "none"}),
    WRONG("kernel-nameless", 0, "task 0 (nameless)", RUN(nameless, 0)),
    WRONG("kernel-reserved", 0, "the kernel reserved has", RUN(reserved, 0)),
    WRONG("kernel-params", 0, "17 parameters, but a task has at most 16", RUN(crowded, 0)),
    WRONG("kernel-params", 0, "1 parameter, but .params is NULL", RUN(paramless, 0)),
    WRONG("kernel-dimensions", 0, "the kernel deep has 4 dimensions", RUN(deep, 0)),
    WRONG("kernel-source", 0, "a source without .text", RUN(textless, 0)),
    WRONG("kernel-text", 0, "the kernel mixed is of a.c, line 1, but the text that the program has of it is from b.c",
          RUN(mixed, 0)),
    WRONG("kernel-code", 0, "the kernel formless has code by hand for cuda that has none", RUN(formless, 0)),
    WRONG("kernel-code", 0, "more than one of", RUN(twofold, 0)),
    WRONG("kernel-code", 0, ".image of 0 bytes", RUN(imageless, 0)),
    WRONG("kernel-code", 0, "more than 1024 threads", RUN(wide, 0)),
    WRONG("kernel-code", 0, ".reserved", RUN(dirty, 0)),
    WRONG("kernel-code", 0, "more than 64 threads along z", RUN(tall, 0)),
    WRONG("kernel-code", 0, ".options without a .text", RUN(optional, 0)),
    WRONG("kernel-code", 0, ".image_bytes without an .image", RUN(measured, 0)),
    WRONG("kernel-no-code", 0, "the kernel empty_kernel has no code for any backend", RUN(empty_kernel, 0)),
    WRONG("kernel-param", 0, "a parameter 0 that has no name", RUN(anonymous, X)),
    WRONG("kernel-param", 0, "access that this library doesn't know", RUN(unheard, X)),
    WRONG("kernel-param", 0, "is a value, but not a number or a struct", RUN(pointing, X)),
    WRONG("kernel-param", 0, "the kernel hosted has a parameter x that is a value, but not a number", RUN(hosted, H)),
    WRONG("kernel-param", 0, "a struct of 0 bytes", RUN(sizeless, B)),
    WRONG("kernel-param", 0, "not of type GK_PTR", RUN(typed, X)),
    WRONG("kernel-param", 0, "the kernel nested has a parameter x that has pointers for elements", RUN(nested, RAW)),
    WRONG("kernel-param", 0, "is a sum, and doesn't have the size", RUN(short_sum, RAW)),
    WRONG("kernel-sum", 0, "sums into elements of type int64_t (parameter s)", RUN(long_sum, RAW)),
    WRONG("kernel-sum", 0, "without a name", RUN(raw_sum, RAW)),
    /* arguments */
    WRONG("argument-gap", 0, ".args[3] is 1, behind a 0", {.op = GK_OP_KERNEL, .kernel = &scale, .args = {X, R, 0, X}}),
    WRONG("argument-gap", 1, "task 1 (END): .args[15] is 2", GK_IF(F), {.op = GK_OP_END, .args[15] = Y}),
    WRONG("argument-count", 0, "the kernel scale takes 2 arguments and got 1", RUN(scale, X)),
    WRONG("argument-count", 0, "the kernel add takes 2 arguments and got 3", RUN(add, X, Y, N)),
    WRONG("argument-count", 0, "COPY takes 2 arguments and got 1", {.op = GK_OP_COPY, .args = {X}}),
    WRONG("argument-count", 0, "FILL takes 1 argument and got 0", {.op = GK_OP_FILL}),
    WRONG("argument-unknown", 0, "task 0 (add): its argument x is slot 99", RUN(add, X, 99)),
    WRONG("argument-unknown", 0, "its argument y is slot -5", RUN(add, -5, X)),
    WRONG("argument-unknown", 0, "its argument 1 is slot 70000", GK_CALL(library, X, 70000)),
    WRONG("argument-unknown", 0, "its argument from is slot 31", GK_COPY(X, 31, N)),
    WRONG("argument-unknown", 0, "task 0 (part): its argument Y is slot 50", GK_INCLUDE(part, 0, X, 50)),
    WRONG("argument-type", 0, "its argument a takes GK_F32, but slot 3 (N) is of type GK_I32", RUN(scale, X, N)),
    WRONG("argument-type", 0, "its argument a takes GK_F32, but slot 2 (Y) is of type GK_PTR", RUN(scale, X, Y)),
    WRONG("argument-type", 0, "its argument y takes GK_PTR, but slot 5 (B) is of type GK_BYTES", RUN(add, B, X)),
    WRONG("argument-type", 0, "takes GK_PTR or GK_BYTES, but slot 4 (R)", RUN(add, X, R)),
    WRONG("argument-type", 0, "its argument to takes GK_PTR", GK_FILL(N, N, 0)),
    WRONG("argument-type", 0, "its argument to takes GK_PTR", GK_COPY(B, X, N)),
    WRONG("argument-type", 0, "its argument from takes GK_PTR or GK_BYTES", GK_COPY(X, N, N)),
    WRONG("argument-type", 0, "its argument N takes GK_I32, but slot 1 (X)", GK_INCLUDE(part, 0, X, Y, X)),
    WRONG("argument-element", 0, "elements of type float, but slot 7 (F) has int32_t", RUN(add, X, F)),
    WRONG("argument-element", 0, "elements of type float4, but slot 1 (X) has float", RUN(float_4, X)),
    WRONG("argument-element", 0, "its argument of has elements of type body, but slot 1 (X) has float",
          RUN(fall, Y, X)),
    WRONG("argument-element", 0, "its argument X has elements of type float, but slot 7 (F)", GK_INCLUDE(part, 0, F)),
    WRONG("argument-element", 0, "its argument from has elements of type float, but slot 7 (F)", GK_COPY(X, F, N)),
    WRONG("argument-size", 0, "elements of 99 bytes, but slot 5 (B) has them of 16", RUN(bigger, B)),
    WRONG("argument-size", 0, "elements of 17 bytes, but slot 5 (B) has them of 16", RUN(any_body, B)),
    WRONG("argument-alias", 0, "slot 1 (X) is its argument x, which may only be read, and also its argument y",
          RUN(add, X, X)),
    WRONG("argument-alias", 0, "slot 1 (X) is its argument x, which may only be read, and also its argument sum",
          RUN(total, X, X)),
    WRONG("argument-alias", 0, "slot 1 (X) is its argument sum, which is summed into", RUN(in_and_sum, X, X)),
    WRONG("host-pointer", 0, "its argument x is slot 6 (H)", RUN(add, X, H)),
    WRONG("items-unknown", 0,
          "along x is slot 1000, which isn't in the list's table; add it there, or name another; a "
          "fixed number is GK_DEFAULT(N, int, 1000) in the table",
          GK_RUN(scale, 1000, X, R)),
    WRONG("run-dimensions", 0, "use a task with .bits = GK_ALWAYS | GK_DIMENSIONS(2)", GK_RUN_ALWAYS(blur, N, X)),
    WRONG("items-unknown", 0, "along y is slot -1", GK_RUN_2D(blur, N, -1, X)),
    WRONG("items-unknown", 0, "along x is slot 55", GK_FILL(X, 55, 0)),
    WRONG("items-type", 0, "slot 4 (R), of type GK_F32", GK_RUN(scale, R, X, R)),
    WRONG("items-type", 0, "slot 5 (B), of type GK_BYTES", GK_COPY(X, Y, B)),
    WRONG("items-dimensions", 0, "along y, but the kernel scale has 1",
          {.op = GK_OP_KERNEL, .kernel = &scale, .items = {N, N}, .args = {X, R}}),
    WRONG("items-dimensions", 0, "along z, but the kernel blur has 2",
          {.op = GK_OP_KERNEL, .kernel = &blur, .items = {N, N, N}, .args = {X}}),
    WRONG("run-dimensions", 0, "given in 2 dimensions, but the kernel scale has 1; use GK_RUN",
          GK_RUN_2D(scale, N, N, X, R)),
    WRONG("run-dimensions", 0, "given in 3 dimensions, but the kernel blur has 2; use GK_RUN_2D",
          GK_RUN_3D(blur, N, N, N, X)),
    WRONG("run-dimensions", 0,
          "task 0 (blur): its items are given in 1 dimension, but the kernel blur has 2; use GK_RUN_2D",
          GK_RUN(blur, N, X)),
    WRONG("copy-units", 0, "elements of 4 bytes from elements of 1 byte", GK_COPY(X, RAW, N)),
    WRONG("copy-struct", 0, "from slot 5 (B), a struct", GK_COPY(BODIES, B, N)),
    WRONG("copy-struct", 0, "from slot 5 (B), a struct", {.op = GK_OP_COPY, .args = {BODIES, B}, .from_offset = 16}),
    WRONG("copy-onto-itself", 0, "slot 1 (X) onto itself, from byte 0 to byte 0", GK_COPY(X, X, N)),
    WRONG("copy-onto-itself", 0, "from byte 4 to byte 1",
          {.op = GK_OP_COPY, .args = {X, X}, .offset = 1, .from_offset = 4}),
    WRONG("fill-unit", 0, "slot 8 (RAW) has elements of 1 byte", GK_FILL(RAW, N, 0)),
    WRONG("fill-unit", 0, "slot 10 (HALVES) has elements of 2 bytes", GK_FILL(HALVES, N, 0)),
    WRONG("fill-offset", 0, "from byte 7 on", {.op = GK_OP_FILL, .args = {X}, .offset = 7}),
    WRONG("fill-number", 0,
          "fills each 4 bytes with one integer, but slot 1 (X) has elements of float; use GK_FILL_F32",
          GK_FILL(X, N, 1)),
    WRONG("fill-number", 0, "slot 12 (LONGS) has elements of int64_t; use a kernel, or 0", GK_FILL(LONGS, N, 1)),
    WRONG("fill-number", 0, "slot 13 (DOUBLES) has elements of double; use a kernel, or 0", GK_FILL(DOUBLES, N, -1)),
    WRONG("fill-number", 0, "fills with floats, but slot 7 (F) has elements of int32_t; use GK_FILL",
          GK_FILL_F32(F, N, 1)),
    WRONG("fill-number", 0, "fills with floats, but slot 13 (DOUBLES)", GK_FILL_F32(DOUBLES, N, 0)),
    WRONG("bits-unknown", 0, ".bits is 0x2, some of which COPY doesn't know; set GK_ALWAYS or 0",
          {.op = GK_OP_COPY, .bits = GK_FLOATS, .items = {N}, .args = {X, Y}}),
    WRONG("bits-unknown", 0, ".bits is 0x10, some of which FILL",
          {.op = GK_OP_FILL, .bits = GK_DIMENSIONS(1), .args = {X}}),
    WRONG("end-missing", 0, "task 0 (DO_WHILE F): its block", GK_DO_WHILE(F, .max_iterations = 3)),
    WRONG("end-missing", 0, "task 0 (WHILE LOOP): its block", GK_WHILE(F, .max_iterations = 3, .label = LOOP)),
    WRONG("end-missing", 0, "task 0 (CHECKPOINT LOOP): its block", GK_CHECKPOINT(LOOP, F)),
    WRONG("call-null", 0, "task 0 (CALL)", {.op = GK_OP_CALL, .args = {X}}),
    /* included lists */
    WRONG("include-null", 0, "task 0 (LIST)", {.op = GK_OP_LIST}),
    WRONG("include-arguments", 0, "2 arguments, but the list short_list has only 1 slot;",
          GK_INCLUDE(short_list, 0, N, N)),
    WRONG("list-abi", 1, "task 1 (other_abi): the list other_abi has .abi 9", SCALE, GK_INCLUDE(other_abi, 0, 0)),
    WRONG("list-arrays", 0, "the list torn says that it has 3 tasks and 0 slots, but .tasks is NULL",
          GK_INCLUDE(torn, 0, 0)),
    WRONG("argument-type", 0, "its argument X takes GK_BYTES", GK_INCLUDE(body_list, 0, X)),
    WRONG("race", 5, "it writes slot 1 (X), which task 2 (scale) writes in another section of task 0 (PARALLEL)",
          GK_PARALLEL, GK_SECTION, SCALE, GK_END, GK_SECTION, SCALE, GK_END, GK_END),
};

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
  judged all = {0};
  const gk_list list = list_of((const gk_task[]){{0}}, 1);
  assert_int_equal(gk_check(&list, "abacus", judged_report, &all), GK_ERROR_INVALID);
  assert_problem(&all, 0, "backend-unknown", SIZE_MAX, "there is no backend named \"abacus\"; take one of ");
  assert_problem(&all, 1, "task-forgotten", 0, "task 0 (NONE)");
  assert_int_equal(all.count, 2);
  assert_string_equal(gk_error(), all.at[0].message);
  all.count = 0;
  assert_int_equal(gk_check(NULL, "vulkan", judged_report, &all), GK_ERROR_INVALID);
  assert_problem(&all, 0, "backend-not-built", SIZE_MAX, "the backend \"vulkan\" is not in this build; take one of ");
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
  judged all = judge_for(&list, &plain_one);
  assert_int_equal(all.count, 3);
  assert_problem(&all, 0, "kernel-no-code", 0, "the kernel hosted_only has no code for plain_one");
  assert_problem(&all, 1, "kernel-no-code", 2, "the kernel for_hip has no code for plain_one");
  assert_problem(&all, 2, "kernel-no-code", 3, "task 3 (hosted_only)");
  all = judge_for(&list, &asked);
  assert_int_equal(all.count, 3);
  assert_problem(&all, 1, "kernel-no-code", 1, "the kernel portable has no code for asked");
}

static const gk_code *code_for_cuda(const gk_kernel *kernel, const char **beyond) {
  if (beyond) *beyond = NULL;
  return kernel->cuda;
}
static bool takes_any(const gk_kernel *kernel) { return kernel->source || kernel->cuda; }

TEST(code_by_hand_is_judged) {
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
  judged all = judge_for(&list, &cuda);
  assert_int_equal(all.count, 3);
  assert_problem(&all, 0, "kernel-code", 1, "the kernel larger has code by hand for cuda that has more than 4096");
  assert_problem(&all, 1, "items-by-hand", 2, "along y is read on the device, from slot 4 (4)");
  assert_problem(&all, 2, "items-by-hand", 3, "along x is read on the device");
  all = judge_for(&list, &hip); /* which runs the portable text */
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
TEST(all_of_many_mistakes_are_told) {
  judged all = judge(&broken);
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
TEST(messages_are_as_they_were) {
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

TEST(every_problem_was_seen) {
  for (int k = 0; k < GKI_PROBLEM_COUNT; ++k)
    if (!code_was_seen[k]) fail_msg("no list of this test has the problem %s", gki_problem_code((gki_problem)k));
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
      assert_memory_equal(text, "its label 12345 is that of task 3 (scale), too; give every checkpoint and loop a "
                                "label of its own", bytes - 1);
    free(text);
  }
}

int main(void) { return run_all_tests(); }
