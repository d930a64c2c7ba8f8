/* A wrong task for each problem that a task can have, and the kernels, slots and lists that they are wrong with. */
#ifndef WRONG_TASKS_H
#define WRONG_TASKS_H
#include "problems.h"

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

static const gk_slot_desc part_table[] = {GK_BUFFER(X, float), GK_RAW_BUFFER(Y), GK_SCALAR(N, int), GK_OWN(F, int, 1),
                                          GK_DEFAULT(R, float, 2)};
LIST_OVER(part_table, part, GK_WHILE(F, .max_iterations = 9, .label = 1), GK_RUN(scale, N, X, R), GK_END);
static const gk_slot_desc counted_table[] = {GK_SCALAR(N, int), GK_SCALAR(WIDE, int64_t), GK_SCALAR(R, float)};
LIST_OVER(counted_table, counted, GK_RUN(no_args, N, 0));
LIST_OVER(part_table, eager, GK_RUN_ALWAYS(scale, N, X, R));

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
    WRONG("op-unknown", 0, "there is no op 20", {.op = (gk_op)20}),
    WRONG("op-unknown", 0, "there is no op -1", {.op = (gk_op)-1, .bits = 77, .label = 3}),
    WRONG("bits-unknown", 1, "task 1 (scale): .bits is 0x2", SCALE,
          {.op = GK_OP_KERNEL, .bits = 2, .name = "scale", .kernel = &no_args}),
    WRONG("reserved", 0, "task 0 (IF END)", {.op = GK_OP_IF, .name = "END", .flag = F, .reserved = {0, 0, 1}},
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
    WRONG("field-unused", 0, ".every is set, but IF", {.op = GK_OP_IF, .flag = F, .every = 1}, GK_END),
    WRONG("field-unused", 0, ".every is set, but REPEAT", GK_REPEAT(GK_ITEMS(2), .every = 2), GK_END),
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
    WRONG("yield-in-checkpoint", 2, "inside of task 0 (CHECKPOINT 1)", GK_CHECKPOINT(1, F), GK_WHILE(F), GK_YIELD(2),
          GK_END, GK_END),
    WRONG("yield-in-section", 3, "inside of task 0 (PARALLEL)", GK_PARALLEL, GK_SECTION, GK_IF(F), GK_YIELD(2), GK_END,
          GK_END, GK_END),
    WRONG("label-missing", 0, "it is a yield with label 0", GK_YIELD(0)),
    WRONG("always-on-block", 0, "not for YIELD", {.op = GK_OP_YIELD, .bits = GK_ALWAYS, .label = 1}),
    WRONG("count-missing", 0, "REPEAT needs a count and has none", GK_REPEAT(0), GK_END),
    WRONG("count-unknown", 0, "its count is slot 99, which isn't in the list's table; add it there, or write GK_ITEMS(",
          GK_REPEAT(99), GK_END),
    WRONG("count-type", 0, "of type GK_F32; name a slot that is an int", GK_REPEAT(R), GK_END),
    WRONG("count-element", 0, "whose elements are float; such a count is an int32", GK_REPEAT(X), GK_END),
    WRONG("count-unknown", 0, "its count is slot -2147483648", GK_REPEAT(INT32_MIN), GK_END),
    WRONG("flag-unknown", 0, "its flag is slot -3", {.op = GK_OP_WHILE, .flag = GK_ITEMS(3)}, GK_END),
    WRONG("field-unused", 0, ".offset is set, but REPEAT doesn't use it unless a GK_PTR has its count",
          GK_REPEAT(GK_ITEMS(3), .offset = 4), GK_END),
    WRONG("field-unused", 0, ".flag is set, but YIELD", {.op = GK_OP_YIELD, .flag = F, .label = 1}),
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
    WRONG("argument-items", 0, "its argument y is GK_ITEMS(5)", RUN(add, GK_ITEMS(5), X)),
    WRONG("argument-items", 0, "its argument R is GK_ITEMS(8)", GK_INCLUDE(counted, 0, N, GK_ITEMS(7), GK_ITEMS(8))),
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
    WRONG("argument-element", 0, "elements of type float4, but slot 5 (B) has body", RUN(float_4, B)),
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
          "number that never changes is GK_ITEMS(1000)",
          GK_RUN(scale, 1000, X, R)),
    WRONG("run-dimensions", 0, "use a task with .bits = GK_ALWAYS | GK_DIMENSIONS(2)", GK_RUN_ALWAYS(blur, N, X)),
    WRONG("items-unknown", 0, "along y is slot 70000", GK_RUN_2D(blur, GK_ITEMS(4), 70000, X)),
    WRONG("items-range", 0, "GK_ITEMS(2147483648), which takes 1 to 2147483647", GK_RUN_2D(blur, N, INT32_MIN, X)),
    WRONG("items-range", 0, "task 0 (part): it has GK_ITEMS(2147483648)", GK_INCLUDE(part, 0, X, Y, INT32_MIN)),
    WRONG("items-dimensions", 0, "along y, but the kernel scale has 1",
          {.op = GK_OP_KERNEL, .kernel = &scale, .items = {N, GK_ITEMS(1)}, .args = {X, R}}),
    WRONG("field-unused", 0, ".offset is set, but KERNEL", {.op = GK_OP_KERNEL, .kernel = &scale,
          .items = {GK_ITEMS(1)}, .offset = 4, .args = {X, R}}),
    WRONG("flag-unknown", 0, "slot -8", {.op = GK_OP_IF, .flag = GK_ITEMS(8)}, GK_END),
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
    WRONG("call-null", 0, "task 0 (CALL_HOST)", {.op = GK_OP_CALL_HOST, .args = {X}}),
    WRONG("field-unused", 0, ".flag is set, but CALL_HOST", {.op = GK_OP_CALL_HOST, .call = library, .flag = F}),
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
#endif
