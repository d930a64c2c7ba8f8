/* What is refused, with a message that names the task and says what to do. Lists are refused without a device; what a
 * launch refuses leaves graph and memory as they were. tests/unit/check/check_test.c has every problem there is. */
#include "letters.h"

static void nothing(const gk_value *args, gk_range items) { (void)args, (void)items; }

static const gk_slot_desc mixed[] = {INT(A), INT(B), INT(F), GK_DEFAULT(N, int, 1), GK_DEFAULT(X, float, 1),
                                     GK_OWN(Y, float, 1), {.slot = Z, .type = GK_HOST_PTR, .name = "Z"}};

#define REFUSED(slots, code, task, words, ...) \
  do { \
    static const gk_task tasks_[] = {__VA_ARGS__}; \
    refuses_list(t, LIST_OF(tasks_, slots), code, task, words); \
  } while (0)

/* ---- lists ------------------------------------------------------------------------------------------------------- */

CASE(unbalanced_end) {
  REFUSED(letters, "end-without-block", 1, "task 1 (END)|take it out", HIT(A), GK_END);
  REFUSED(letters, "end-missing", 1, "task 1 (IF F)|put a GK_END", HIT(A), GK_IF(F), HIT(B));
}

CASE(else_without_if) {
  REFUSED(letters, "else-without-if", 1, "task 1 (ELSE)|GK_IF", GK_WHILE(F), GK_ELSE, GK_END);
  REFUSED(letters, "else-twice", 2, "task 2 (ELSE)|task 1", GK_IF(F), GK_ELSE, GK_ELSE, GK_END);
  REFUSED(letters, "case-outside-switch", 0, "task 0 (CASE)", GK_CASE, GK_END);
  REFUSED(letters, "task-in-switch", 1, "task 1 (count)|GK_CASE", GK_SWITCH(K), HIT(A), GK_END);
}

CASE(section_outside_parallel) {
  REFUSED(letters, "section-outside-parallel", 0, "task 0 (SECTION)|GK_PARALLEL", GK_SECTION, HIT(A), GK_END);
}

CASE(task_directly_in_parallel) {
  REFUSED(letters, "task-in-parallel", 1, "task 1 (count)|task 0 (PARALLEL)|GK_SECTION", GK_PARALLEL, HIT(A), GK_END);
}

CASE(checkpoint_in_checkpoint) {
  REFUSED(letters, "checkpoint-in-checkpoint", 2, "task 2 (CHECKPOINT SECOND)|task 0 (CHECKPOINT FIRST)|close that one",
          GK_TARGET(FIRST), GK_DO_WHILE(N), GK_CHECKPOINT(SECOND, F), GK_END, GK_END, GK_END);
}

CASE(checkpoint_in_section) {
  REFUSED(letters, "checkpoint-in-section", 3, "task 3 (CHECKPOINT FIRST)|task 0 (PARALLEL)|around the GK_PARALLEL",
          GK_PARALLEL, GK_SECTION, GK_IF(G), GK_CHECKPOINT(FIRST, F), GK_END, GK_END, GK_END, GK_END);
}

CASE(always_inside_a_block) {
  REFUSED(letters, "always-in-block", 1, "task 1 (count)|task 0 (CHECKPOINT FIRST)|top level", GK_TARGET(FIRST),
          HIT_ALWAYS(A), GK_END);
  REFUSED(letters, "always-on-block", 0, "task 0 (DO_WHILE N)|drop the bit",
          {.op = GK_OP_DO_WHILE, .bits = GK_ALWAYS, .name = "N", .flag = N}, GK_END);
}

CASE(unknown_slot) {
  REFUSED(letters, "argument-unknown", 1, "task 1 (count)|slot 99|add it there", HIT(A), HIT(99));
  REFUSED(letters, "flag-unknown", 0, "slot 77|add it there", GK_IF(77), GK_END);
  REFUSED(letters, "items-unknown", 0, "task 0 (count)|along x is slot 55", GK_RUN(count, 55, A));
}

CASE(slot_of_the_wrong_type) {
  REFUSED(mixed, "argument-type", 0, "task 0 (count)|argument x takes GK_PTR|slot 12 (N) is of type GK_I32", HIT(N));
  REFUSED(mixed, "flag-type", 0, "slot 12 (N), of type GK_I32|GK_PTR", GK_DO_WHILE(N), GK_END);
  REFUSED(mixed, "flag-element", 0, "slot 19 (Y)|float|slot of int", GK_DO_WHILE(Y), GK_END);
  REFUSED(mixed, "items-type", 0, "slot 18 (X), of type GK_F32|int", GK_RUN(count, X, A));
  REFUSED(mixed, "argument-element", 0, "elements of type int|slot 19 (Y) has float", HIT(Y));
  REFUSED(mixed, "host-pointer", 0, "slot 20 (Z)|GK_CALL", HIT(Z));
}

CASE(loop_without_flag) {
  REFUSED(letters, "flag-missing", 0, "DO_WHILE needs a flag|name the slot", {.op = GK_OP_DO_WHILE}, GK_END);
  REFUSED(letters, "flag-missing", 0, "WHILE needs a flag", {.op = GK_OP_WHILE}, GK_END);
  REFUSED(letters, "flag-missing", 1, "IF needs a flag", HIT(A), {.op = GK_OP_IF}, GK_END);
  REFUSED(letters, "flag-missing", 0, "SWITCH needs a flag", {.op = GK_OP_SWITCH}, GK_END);
  REFUSED(letters, "offset-unaligned", 0, ".offset is 2", GK_WHILE(N, .offset = 2), GK_END);
}

CASE(label_reuse) {
  static const gk_task inner_tasks[] = {GK_TARGET(FIRST), HIT(A), GK_END};
  static const gk_slot_desc inner_slots[] = {GK_BUFFER(A, int)};
  static const gk_list inner = GK_LIST(inner, inner_tasks, inner_slots);
  REFUSED(letters, "label-reused", 2, "task 2|label 1 is that of task 0", GK_DO_WHILE(N, .label = FIRST), GK_END,
          GK_TARGET(FIRST), GK_END);
  REFUSED(letters, "label-reused", 1, "task 1 (again)|label 101|task 0 (inner)", GK_INCLUDE(inner, 100, A),
          GK_INCLUDE_AS(again, inner, 100, B)); /* as composed */
  REFUSED(letters, "label-missing", 0, "label 0|give it a label", GK_TARGET(0), GK_END);
  REFUSED(letters, "label-zero", 0, "becomes 0", GK_INCLUDE(inner, -1, A));
  REFUSED(letters, "label-range", 0, "2147483648", GK_INCLUDE(inner, INT32_MAX, A));
}

CASE(null_kernel) {
  REFUSED(letters, "kernel-null", 1, "task 1 (lost)|GK_KERNEL", HIT(A), {.op = GK_OP_KERNEL, .name = "lost"});
  REFUSED(letters, "call-null", 0, "task 0 (lost)|give it a function", {.op = GK_OP_CALL, .name = "lost"});
  REFUSED(letters, "include-null", 0, "task 0 (lost)|take the task out", {.op = GK_OP_LIST, .name = "lost"});
}

CASE(kernel_without_code) {
  static const gk_kernel empty = {.name = "empty"};
  REFUSED(letters, "kernel-no-code", 1, "task 1 (empty)|the kernel empty has no code|GK_KERNEL", HIT(A),
          GK_RUN(empty, GK_ONE, 0));
}

CASE(argument_that_does_not_match) {
  static const gk_param two_wide[] = {{"x", "pair", 8, 4, GK_PTR, GK_ACCESS_OUT}};
  static const gk_kernel pairs = {.name = "pairs", .params = two_wide, .param_count = 1, .host = nothing};
  static const gk_slot_desc sized[] = {{.slot = A, .type = GK_PTR, .name = "A", .element = "pair", .element_bytes = 4}};
  REFUSED(letters, "argument-count", 0, "task 0 (count)|takes 1 argument and got 2", GK_RUN(count, GK_ONE, A, B));
  REFUSED(letters, "argument-count", 0, "task 0 (stamp)|takes 2 arguments and got 1", GK_RUN(stamp, GK_ONE, A));
  REFUSED(letters, "argument-count", 0, "COPY takes 2", {.op = GK_OP_COPY, .args = {A}});
  REFUSED(letters, "argument-gap", 0, ".args[2] is 3", {.op = GK_OP_KERNEL, .kernel = &count, .args = {A, 0, C}});
  REFUSED(letters, "argument-alias", 0, "slot 1 (A) is its argument x", GK_RUN(raise_at, GK_ONE, A, A, B));
  REFUSED(sized, "argument-size", 0, "elements of 8 bytes, but slot 1 (A) has them of 4", GK_RUN(pairs, GK_ONE, A));
  REFUSED(letters, "race", 5, "slot 1 (A)|another section|atomic or sum", GK_PARALLEL, GK_SECTION, HIT(A), GK_END,
          GK_SECTION, HIT(A), GK_END, GK_END);
}

CASE(list_longer_than_the_limit) {
  enum { LONG = 4096, DEEP = GK_MAX_DEPTH + 1 };
  static gk_task part_tasks[LONG], lines[LONG + 1], deep[2 * DEEP];
  for (size_t k = 0; k < LONG; ++k) part_tasks[k] = (gk_task)HIT(A);
  const gk_slot_desc slots[] = {GK_BUFFER(A, int)};
  const gk_list part = {GK_ABI, "part", part_tasks, LONG, slots, 1};
  for (size_t k = 0; k <= LONG; ++k) lines[k] = (gk_task)GK_INCLUDE(part, 0, A); /* 2^24 and 4096 tasks as composed */
  refuses_list(t, LIST_OF(lines, letters), "list-too-long", SIZE_MAX, "included lists written out|several graphs");
  for (size_t k = 0; k < DEEP; ++k) {
    deep[k] = (gk_task)GK_IF(F);
    deep[DEEP + k] = (gk_task)GK_END;
  }
  refuses_list(t, LIST_OF(deep, letters), "blocks-too-deep", SIZE_MAX, "64 blocks deep|nest fewer");
  gk_list circle = {GK_ABI, "circle", NULL, 1, letters, GK_COUNT(letters)};
  const gk_task itself[] = {GK_INCLUDE(circle, 0, 0)};
  circle.tasks = itself;
  refuses_list(t, &circle, "list-in-itself", SIZE_MAX, "the list circle includes itself|break the circle");
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

CASE(zero_or_oversize_launch_shape) {
  enum { TO = 1, SMALL, WIDE, BEHIND };
  static const gk_slot_desc slots[] = {GK_OWN(TO, int, 4), INT(SMALL), GK_DEFAULT(WIDE, int64_t, 0), INT(BEHIND)};
  static const int64_t oversize[] = {(int64_t)INT32_MAX + 1, (int64_t)1 << 40, INT64_MAX};
  GRAPH_OF(s, slots, GK_RUN(count, WIDE, TO), GK_RUN(count, SMALL, TO), HIT(BEHIND));
  trace(s, 0, "TO=0 BEHIND=1"); /* over nothing it does nothing, and what follows runs */
  trace(s, 0, "WIDE=-1 SMALL=-3 -> TO=0 BEHIND=2");
  for (size_t k = 0; k < GK_COUNT(oversize); ++k) {
    must(t, gk_bind_int(graph(s), WIDE, oversize[k]));
    must(t, gk_launch(graph(s), 0));
    refuses(t, GK_ERROR_INVALID, "task 0 (count)|items", gk_wait(graph(s), NULL));
    holds(s, "TO=0");
    put(s, BEHIND, 2); /* it may have run, or not */
  }
  trace(s, 0, "WIDE=4 SMALL=2 -> TO=2 TO[1]=2 TO[2]=1 TO[3]=1 BEHIND=3"); /* and later launches are possible */
}

CASE(race_between_sections) {
  static const gk_task wrong[][8] = {
    {PARALLEL(SECTION(HIT(A)), SECTION(GK_COPY(B, A, GK_ONE)))},
    {PARALLEL(SECTION(GK_RUN(assign, GK_ONE, C, A)), SECTION(SET(A, 1)))},
    {PARALLEL(SECTION(SET(A, 2)), SECTION(SET(A, 1)))},
    {PARALLEL(SECTION(GK_RUN(total, GK_ONE, B, A)), SECTION(GK_RUN(assign, GK_ONE, C, A)))}};
  for (size_t k = 0; k < GK_COUNT(wrong); ++k)
    refuses_list(t, LIST_OF(wrong[k], letters), "race", 5, "slot 1 (A)|task 2|in another section");
  static const gk_task flags[] = {PARALLEL(SECTION(GK_WHILE(A), SET(B, 1), GK_END), SECTION(SET(A, 0)))};
  refuses_list(t, LIST_OF(flags, letters), "race", 7, "slot 1 (A)|in another section");
  GRAPH(s, PARALLEL(SECTION(GK_RUN(assign, GK_ONE, B, A), GK_RUN(total, GK_ONE, A, U)),
                    SECTION(GK_RUN(assign, GK_ONE, C, A), GK_RUN(total, GK_ONE, A, U))),
        HIT(A)); /* only read, or only summed into, in both */
  trace(s, 0, "A=3 -> A=4 B=3 C=3 U=6");
}

CASE(unbound_slot_at_launch) {
  enum { TO = 1, NUMBER, UNUSED };
  static const gk_slot_desc slots[] = {GK_BUFFER(TO, int), GK_SCALAR(NUMBER, int), GK_BUFFER(UNUSED, int)};
  GRAPH_OF(s, slots, GK_IF(TO), GK_RUN(count, NUMBER, TO), GK_END);
  buffer *to = buffer_of(t, 2);
  launch_refused(s, 0, "slot 1 (TO) is not bound|task 0 (IF TO)|gk_bind");
  bind_buffer(s, TO, to);
  launch_refused(s, 0, "slot 2 (NUMBER) is not bound|task 1 (count)|gk_bind_int");
  bind_int(s, NUMBER, 2);
  buffer_put(to, 0, 1);
  launch(s, 0); /* what no task uses needs nothing */
  expect_int(t, buffer_get(to, 0), 2);
  expect_int(t, buffer_get(to, 1), 1);
}

CASE(no_memory_for_no_items) {
  enum { TO = 1, FROM, NUMBER, COUNT, IN, SUMS };
  static const gk_slot_desc slots[] = {GK_BUFFER(TO, int), GK_BUFFER(FROM, int), GK_SCALAR(NUMBER, int),
                                       INT(COUNT), INT(IN), GK_BUFFER(SUMS, int)};
  GRAPH_OF(s, slots, GK_RUN(add_to, NUMBER, TO, FROM), GK_RUN_2D(number, GK_ONE, NUMBER, TO, NUMBER),
           GK_RUN(total, NUMBER, FROM, SUMS), GK_FILL(FROM, NUMBER, 3), GK_COPY(TO, FROM, COUNT), HIT(IN));
  buffer *to = buffer_of(t, 3), *from = buffer_of(t, 2), *sums = buffer_of(t, 1);
  launch_refused(s, 0, "slot 1 (TO) is not bound|gk_bind"); /* of what size, unknown */
  trace(s, 0, "NUMBER=0 -> IN=1"); /* nothing was ever bound */
  bind_buffer(s, TO, to);
  bind_buffer(s, FROM, NULL);
  trace(s, 0, "NUMBER=-3 -> IN=2");
  launch_refused(s, 0, "NUMBER=2 -> slot 2 (FROM) is not bound|add_to");
  bind_buffer(s, FROM, from);
  launch_refused(s, 0, "slot 6 (SUMS) is not bound|total");
  bind_buffer(s, SUMS, sums);
  trace(s, 0, "COUNT=1 -> IN=3 TO=3 TO[2]=100 FROM[1]=3 SUMS=0");
  put(s, COUNT, 0);
  bind_buffer(s, TO, NULL);
  bind_buffer(s, SUMS, NULL);
  launch_refused(s, 0, "slot 1 (TO) is not bound");
  bind_int(s, NUMBER, 0);
  resize(s, FROM, 0);
  trace(s, 0, "IN=4");
  put(s, COUNT, 1); /* what a count on the device needs is known when it is read */
  must(t, gk_launch(graph(s), 0));
  refuses(t, GK_ERROR_INVALID, "task 4 (TO = FROM)|slot 1 (TO)|0 bytes", gk_wait(graph(s), NULL));
}

CASE(flag_pointer_null) {
  GRAPH(s, GK_CHECKPOINT(FIRST, P), HIT(A), GK_END);
  buffer *flag = buffer_of(t, 2);
  bind_buffer(s, P, flag);
  trace(s, 0, "A=1");
  must(t, gk_bind(graph(s), P, NULL));
  launch_refused(s, 0, "slot 21 (P) is not bound|task 0 (CHECKPOINT FIRST)");
  launch_refused(s, FIRST, "slot 21 (P) is not bound");
  must(t, gk_bind(graph(s), P, (char *)buffer_at(flag) + 2)); /* no address that an int32 can have */
  launch_refused(s, 0, "slot 21 (P)|no multiple of 4|task 0 (CHECKPOINT FIRST)");
  bind_buffer(s, P, flag);
  trace(s, FIRST, "A=2");
}

CASE(flag_beyond_the_memory) {
  enum { STATE = 1, IN };
  static const gk_slot_desc slots[] = {GK_OWN(STATE, int, 4), INT(IN)};
  GRAPH_OF(s, slots, GK_CHECKPOINT_AT(FIRST, STATE, 16), HIT(IN), GK_END);
  launch_refused(s, 0, "slot 1 (STATE) has 16 bytes|task 0 (CHECKPOINT FIRST)|gk_resize");
  resize(s, STATE, 5);
  trace(s, 0, "STATE[4]=1 -> IN=1, yielded FIRST");
}

CASE(flag_or_count_beyond_a_block) {
  enum { STATE = 1, COUNT, IN };
  static const gk_slot_desc slots[] = {GK_BUFFER(STATE, int), GK_SCALAR(COUNT, int), INT(IN)};
  GRAPH_OF(s, slots, GK_IF(STATE, .offset = 12), GK_FILL(STATE, COUNT, 7), GK_END, HIT(IN));
  buffer *small = buffer_of(t, 3), *large = buffer_of(t, 4);
  bind_buffer(s, STATE, small);
  launch_refused(s, 0, "COUNT=3 -> slot 1 (STATE) has 12 bytes|task 0 (IF STATE)|byte 15|bind larger memory");
  must(t, gk_bind(graph(s), STATE, (char *)buffer_at(large) + 4)); /* what counts is the size from there on */
  launch_refused(s, 0, "slot 1 (STATE) has 12 bytes|task 0 (IF STATE)");
  bind_buffer(s, STATE, large);
  launch_fails(s, 0, "COUNT=5 STATE[3]=1 -> task 1|5 elements|slot 2 (COUNT)|slot 1 (STATE)|16 bytes");
  trace(s, 0, "COUNT=4 IN=0 -> IN=1 STATE=7 STATE[3]=7");
}

CASE(memory_that_was_freed) {
  GRAPH(s, HIT(P));
  buffer *first = buffer_of(t, 2);
  bind_buffer(s, P, first);
  trace(s, 0, "P=1");
  buffer_free(first);
  launch_refused(s, 0, "slot 21 (P)|was freed|task 0 (count)|bind other memory");
  buffer *second = buffer_of(t, 2); /* perhaps at the same address */
  launch_refused(s, 0, "slot 21 (P)|was freed");
  bind_buffer(s, P, second);
  trace(s, 0, "P=1");
}

CASE(wait_without_launch) {
  GRAPH(s, HIT(A), GK_TARGET(FIRST), GK_END);
  const gk_status *status = (const gk_status *)s;
  refuses(t, GK_ERROR_INVALID, "not launched yet|gk_launch", gk_wait(graph(s), &status));
  expect(t, !status, "a failed wait answered a status");
  refuses(t, GK_ERROR_INVALID, "not launched yet", gk_poll(graph(s), NULL));
  launch_refused(s, 9, "label 9"); /* a launch that is refused is none */
  refuses(t, GK_ERROR_INVALID, "not launched yet", gk_wait(graph(s), NULL));
  trace(s, 0, "A=1");
}

CASE(bind_on_an_unknown_slot) {
  GRAPH(s, HIT(A));
  refuses(t, GK_ERROR_INVALID, "gk_bind: |no slot 99", gk_bind(graph(s), 99, NULL));
  launch_refused(s, 0, "a call before it failed|no slot 99");
  refuses(t, GK_ERROR_INVALID, "gk_bind_int: |no slot 0", gk_bind_int(graph(s), 0, 1));
  refuses(t, GK_ERROR_INVALID, "no slot -1", gk_resize(graph(s), -1, 1));
  refuses(t, GK_ERROR_INVALID, "slot 1 (A) is of type GK_PTR|gk_bind", gk_bind_int(graph(s), A, 1));
  expect(t, !gk_bound(graph(s), 99), "memory is bound to a slot that isn't there");
  expect_int(t, gk_find_slot(graph(s), "nobody"), 0);
  launch_refused(s, 0, "a call before it failed|no slot 0");
  trace(s, 0, "A=1"); /* each was told once */
}
