/* Warnings: a list for each, and for each reason to leave it out. */
#include "check/report.h"
#include "gk_kernel.h"
#include "unit/support/runtime.h"

typedef struct pair { int first, second; } pair;

GK_SOURCE(warn_test)
GK_KERNEL(adds, (inout(int, x), in(int, y))) {
  /* x[i] = 0; */
  int more = y[i] > 1 ? y[i] : 1;
  if (more > 8) { more = 8; }
  x[i] += more;
}
GK_KERNEL(steps, (inout(int, x))) { ++x[i]; }
GK_KERNEL(counts_up, (inout(pair, x))) { x[i + 1 - 1].first++; }
GK_KERNEL(adds_if, (inout(int, x), in(int, y))) {
  if (y[i] > 0) x[i] += y[i];
  if (y[i] > 1) {
    x[i] += y[i];
  }
}
GK_KERNEL(adds_unless, (inout(int, x), in(int, y))) {
  if (y[i] > 0) return;
  x[i] += y[i];
}
GK_KERNEL(begins_anew, (inout(int, x), in(int, y))) {
  x[i] = 0;
  x[i] += y[i];
}
GK_KERNEL(grows_to, (inout(int, x), in(int, y))) { x[i] = x[i] > y[i] ? x[i] : y[i]; }
GK_KERNEL(other_name, (inout(int, x), in(int, y))) {
  int xx = y[i];
  xx += 1;
  x[i] = xx;
}
GK_KERNEL(sums, (sum(int, x), in(int, y))) { x[0] += y[i]; }
GK_KERNEL(sets, (out(int, x))) { x[i] = 1; }
GK_KERNEL(adds_both, (inout(int, x), inout(int, y))) {
  y[i] -= 1;
  x[i] *= y[i];
}
GK_KERNEL(appends, (atomic(int, n), out(int, x))) { x[gk_atomic_add(&n[0], 1)] = i; }
GK_SOURCE_END

enum { X = 1, Y, F, G, N, COUNT, PAIRS };
#define TABLE \
  GK_BUFFER(X, int), GK_BUFFER(Y, int), GK_OWN(F, int, 1), GK_OWN(G, int, 1), GK_SCALAR(N, int), \
      GK_OWN(COUNT, int, 1), GK_BUFFER(PAIRS, pair)
static const gk_slot_desc table[] = {TABLE};

static gk_result library(const gk_value *args, void *native) { return (void)args, (void)native, GK_OK; }

enum { SLOT_X = 1, SLOT_Y };
static const gk_slot_desc part_table[] = {GK_BUFFER(SLOT_X, int), GK_BUFFER(SLOT_Y, int)};
static const gk_task part_tasks[] = {GK_RUN(adds, GK_ONE, SLOT_X, SLOT_Y)};
static const gk_list part = GK_LIST(part, part_tasks, part_table);

#define CP(...) GK_CHECKPOINT(1, F), GK_RUN(sets, GK_ONE, F), __VA_ARGS__, GK_END
#define LOOP(...) GK_DO_WHILE(F), __VA_ARGS__, GK_END

typedef struct warned {
  const char *code; /* NULL: no warning */
  size_t task;
  const char *words;
  const gk_task tasks[12];
} warned;

static const warned lists[] = {
  {"applied-twice", 2, "task 2 (adds): its kernel changes what is in x, slot 1 (X), and a launch that resumes at",
   {CP(GK_RUN(adds, N, X, Y))}},
  {"applied-twice", 2, "slot 1 (X)", {CP(GK_RUN(steps, N, X))}},
  {"applied-twice", 2, "slot 1 (X)", {CP(GK_RUN(steps, GK_ITEMS(8), X))}},
  {"applied-twice", 2, "slot 7 (PAIRS)", {CP(GK_RUN(counts_up, N, PAIRS))}},
  {"applied-twice", 2, "slot 1 (X)", {CP(GK_RUN(sums, N, X, Y))}},
  {"applied-twice", 2, "x, slot 1 (X)", {CP(GK_RUN(adds_both, N, X, Y))}},
  {"applied-twice", 2, "task 2 (part), there task 0 (adds)", {CP(GK_INCLUDE(part, 0, X, Y))}},
  {"applied-twice", 4, "x, slot 1 (X)",
   {CP(GK_PARALLEL, GK_SECTION, GK_RUN(adds, N, X, Y), GK_END, GK_END, GK_RUN(sets, N, G))}},
  {"applied-twice", 3, "x, slot 1 (X)", {CP(GK_RUN(sets, N, G), GK_RUN(adds, N, X, Y)), GK_FILL(X, N, 0)}},
  {NULL, 0, NULL, {GK_RUN(adds, N, X, Y)}},
  {NULL, 0, NULL, {GK_TARGET(1), GK_RUN(adds, N, X, Y), GK_END}},
  {NULL, 0, NULL, {CP(GK_FILL(X, N, 0), GK_RUN(adds, N, X, Y))}},      /* set first */
  {NULL, 0, NULL, {CP(GK_RUN(sets, N, X), GK_RUN(sums, N, X, Y))}},
  {NULL, 0, NULL, {CP(GK_RUN(sets, N, Y), GK_RUN(adds, N, X, Y))}},    /* what it reads may hold it back */
  {NULL, 0, NULL, {CP(GK_RUN(adds, N, X, F))}},
  {NULL, 0, NULL, {CP(GK_RUN(adds, N, F, Y))}},                        /* the flag itself */
  {NULL, 0, NULL, {CP(GK_RUN(adds, COUNT, X, Y))}},                    /* the device may count no items */
  {NULL, 0, NULL, {CP(GK_RUN(adds_if, N, X, Y))}},
  {NULL, 0, NULL, {CP(GK_RUN(adds_unless, N, X, Y))}},
  {NULL, 0, NULL, {CP(GK_RUN(begins_anew, N, X, Y))}},
  {NULL, 0, NULL, {CP(GK_RUN(grows_to, N, X, Y))}},
  {NULL, 0, NULL, {CP(GK_RUN(other_name, N, X, Y))}},
  {NULL, 0, NULL, {CP(GK_IF(G), GK_RUN(adds, N, X, Y), GK_ELSE, GK_RUN(counts_up, N, PAIRS), GK_END)}},
  {NULL, 0, NULL, {CP(GK_DO_WHILE(G), GK_RUN(adds, N, X, Y), GK_RUN(sets, N, G), GK_END)}},
  {NULL, 0, NULL, {CP(GK_RUN(adds, N, X, Y), GK_CALL(library, X))}},   /* it may set X */
  {NULL, 0, NULL, {CP(GK_CALL(library, 0), GK_RUN(adds, N, X, Y))}},

  {"flag-unwritten", 0, "task 0 (DO_WHILE F): no task in it writes its flag, slot 3 (F), so it makes one pass or never",
   {LOOP(GK_RUN(steps, N, X))}},
  {"flag-unwritten", 0, "makes .every passes or never ends", {GK_DO_WHILE(F, .every = 4), GK_END}},
  {"flag-unwritten", 1, "no pass or never ends", {GK_RUN(sets, N, F), GK_WHILE(F), GK_RUN(adds, N, X, F), GK_END}},
  {"flag-unwritten", 0, "slot 3 (F)", {LOOP(GK_INCLUDE(part, 0, X, F)), GK_RUN(sets, N, F)}},
  {"flag-unwritten", 1, "slot 4 (G)", {LOOP(GK_WHILE(G), GK_RUN(sets, N, F), GK_END)}},
  {"flag-unwritten", 2, "slot 3 (F)", {CP(GK_WHILE(F), GK_RUN(sets, N, X), GK_END)}},
  {NULL, 0, NULL, {LOOP(GK_RUN(sets, N, F))}},
  {NULL, 0, NULL, {LOOP(GK_RUN(steps, N, F))}},
  {NULL, 0, NULL, {LOOP(GK_RUN(sums, N, F, Y))}},
  {NULL, 0, NULL, {LOOP(GK_RUN(appends, N, F, X))}},
  {NULL, 0, NULL, {LOOP(GK_FILL(F, GK_ONE, 0))}},
  {NULL, 0, NULL, {LOOP(GK_COPY(F, G, GK_ONE))}},
  {NULL, 0, NULL, {LOOP(GK_IF(G), GK_RUN(sets, N, F), GK_END)}},
  {NULL, 0, NULL, {LOOP(GK_INCLUDE(part, 0, F, X))}},
  {NULL, 0, NULL, {LOOP(GK_CALL(library, X))}},
  {NULL, 0, NULL, {LOOP(GK_YIELD(1))}},                                /* the host may end it */
  {NULL, 0, NULL, {LOOP(GK_CHECKPOINT(1, G), GK_END)}},
  {"flag-unwritten", 0, "slot 3 (F)", {LOOP(GK_TARGET(1), GK_END)}},
  {NULL, 0, NULL, {GK_DO_WHILE(F, .max_iterations = 3), GK_RUN(steps, N, X), GK_END}},
  {NULL, 0, NULL, {GK_IF(F), GK_RUN(steps, N, X), GK_END}},

  {"count-overwritten", 0, "task 0 (steps): its number of items is read from slot 1 (X), which is also its argument x,",
   {GK_RUN(steps, X, X)}},
  {"count-overwritten", 0, "argument n", {GK_RUN(appends, COUNT, COUNT, X)}},
  {"count-overwritten", 0, "argument to", {GK_FILL(COUNT, COUNT, 0)}},
  {"count-overwritten", 0, "argument to", {GK_COPY(COUNT, X, COUNT)}},
  {NULL, 0, NULL, {GK_COPY(X, COUNT, COUNT)}},
  {NULL, 0, NULL, {GK_RUN(adds, COUNT, X, COUNT)}},
  {NULL, 0, NULL, {GK_RUN(sums, COUNT, COUNT, X)}},                    /* written when all items have run */
};

static gk_list list_of(const warned *w) {
  size_t count = 0;
  while (count < GK_COUNT(w->tasks) && w->tasks[count].op) ++count;
  return (gk_list){GK_ABI, "list", w->tasks, count, table, GK_COUNT(table)};
}

typedef struct found { size_t count, task; char code[40], message[400]; } found;

static void note(void *user, const gk_problem *problem) {
  found *f = user;
  assert_true(problem->is_warning);
  ++f->count;
  f->task = problem->task;
  snprintf(f->code, sizeof f->code, "%s", problem->code);
  snprintf(f->message, sizeof f->message, "%s", problem->message);
}

static bool code_was_seen[GKI_PROBLEM_COUNT];

/* Only for a backend on whose device nothing asks the host. */
TEST(host_calls_are_told) {
  const gk_task tasks[] = {GK_FILL(X, N, 0), GK_CALL(library, X), GK_CALL_HOST(library, X)};
  const gk_list list = GK_LIST(list, tasks, table);
  static const char *const others[] = {NULL, "openmp", "fake_batched"};
  found f = {0};
  fake_register();
  assert_ok(gk_check(&list, "fake_native", note, &f));
  assert_int_equal(f.count, 1);
  assert_string_equal(f.code, "call-host-native");
  assert_non_null(strstr(f.message, "task 2 (library): it is work of the host in a list that fake_native decides"));
  for (size_t k = 0; k < GK_COUNT(others); ++k) assert_ok(gk_check(&list, others[k], note, &f));
  assert_int_equal(f.count, 1);
}

TEST(each_warning_is_told) {
  gk_set_log(GK_LOG_NONE, NULL, NULL);
  for (size_t k = 0; k < GK_COUNT(lists); ++k) {
    const gk_list list = list_of(&lists[k]);
    found f = {0};
    assert_ok(gk_check(&list, NULL, note, &f));
    const bool is_right = lists[k].code ? f.count == 1 && strcmp(f.code, lists[k].code) == 0 &&
                                              f.task == lists[k].task && strstr(f.message, lists[k].words)
                                        : !f.count;
    if (!is_right)
      fail_msg("list %zu: %zu warnings, the last %s at %zd: %s", k, f.count, f.code, (ssize_t)f.task, f.message);
    for (int j = 0; j < GKI_PROBLEM_COUNT; ++j)
      code_was_seen[j] |= strcmp(f.code, gki_problem_code((gki_problem)j)) == 0;
  }
  code_was_seen[GKI_CALL_HOST_NATIVE] = true; /* above */
  for (int k = 0; k < GKI_PROBLEM_COUNT; ++k)
    if (gki_problem_is_warning((gki_problem)k) != code_was_seen[k])
      fail_msg("%s: a warning that no list has, or a problem", gki_problem_code((gki_problem)k));
}

/* A wrong list is mended first. */
TEST(problems_come_alone) {
  const gk_task tasks[] = {LOOP(GK_RUN(steps, N, X)), GK_END};
  const gk_list list = GK_LIST(list, tasks, table);
  char *printed = NULL;
  size_t bytes = 0;
  FILE *file = open_memstream(&printed, &bytes);
  assert_int_equal(gk_check(&list, NULL, gk_print, file), GK_ERROR_INVALID);
  fclose(file);
  assert_non_null(strstr(printed, "end-without-block: "));
  assert_null(strstr(printed, "flag-unwritten"));
  free(printed);
}

TEST(a_warning_is_printed_as_one) {
  const gk_task tasks[] = {LOOP(GK_RUN(steps, N, X))};
  const gk_list list = GK_LIST(list, tasks, table);
  char *printed = NULL;
  size_t bytes = 0;
  FILE *file = open_memstream(&printed, &bytes);
  assert_ok(gk_check(&list, NULL, gk_print, file));
  fclose(file);
  assert_string_equal(printed, "warning: flag-unwritten: task 0 (DO_WHILE F): no task in it writes its flag, slot 3 "
                               "(F), so it makes one pass or never ends; let a task in it write the flag, or give it "
                               ".max_iterations\n");
  free(printed);
}

static found check_text(const char *text) {
  static const gk_param params[] = {{"x", "int", sizeof(int), _Alignof(int), GK_PTR, GK_ACCESS_INOUT}};
  char *own = strdup(text); /* so that no byte behind it is read */
  const gk_source source = {.file = "text", .text = own};
  const gk_kernel kernel = {.name = "k", .params = params, .param_count = 1, .source = &source};
  const gk_task tasks[] = {CP({.op = GK_OP_KERNEL, .name = "k", .kernel = &kernel, .items = {N}, .args = {X}})};
  const gk_list list = GK_LIST(list, tasks, table);
  found f = {0};
  assert_ok(gk_check(&list, NULL, note, &f));
  free(own);
  return f;
}

TEST(any_text_is_read) {
  static const char whole[] = "GK_KERNEL(k, (inout(int, x))) { ++x[i].a[0]; }";
  char cut[sizeof whole];
  for (size_t k = 0; k < sizeof whole; ++k) {
    snprintf(cut, k + 1, "%s", whole);
    check_text(cut);
  }
  assert_int_equal(check_text(whole).count, 1);
  assert_int_equal(check_text("GK_KERNEL(j, (inout(int, x))) { ++x[i]; }").count, 0);
  assert_int_equal(check_text("GK_KERNEL(k, (inout(int, x))) WRAPPED({ ++x[i]; })").count, 0);
  assert_int_equal(check_text("GK_KERNEL(k, (inout(int, x))) { if (x[i] > 3) goto end; ++x[i]; end:; }").count, 0);
  assert_int_equal(check_text("").count, 0);
}

static void keep(void *user, gk_log_level level, const char *line) {
  char *kept = user;
  assert_int_equal(level, GK_LOG_WARN);
  snprintf(kept, 200, "%s", line);
}

TEST(graphs_are_made_and_warnings_logged) {
  const gk_task tasks[] = {LOOP(GK_RUN(steps, N, X))};
  const gk_list list = GK_LIST(list, tasks, table);
  char kept[200] = "";
  gk_graph *graph = NULL;
  gk_device *device = open_named("openmp");
  gk_set_log(GK_LOG_WARN, keep, kept);
  assert_ok(gk_graph_create(device, &list, 0, &graph));
  assert_non_null(strstr(kept, "list list: flag-unwritten: task 0 (DO_WHILE F): no task in it"));
  *kept = 0;
  assert_ok(gk_check(&list, NULL, NULL, NULL));
  assert_non_null(strstr(kept, "list list: flag-unwritten: "));
  gk_set_log(GK_LOG_NONE, NULL, NULL);
  gk_graph_destroy(graph);
  gk_device_close(device);
}

int main(void) { return run_all_tests(); }
