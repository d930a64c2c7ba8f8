/* Backends with impossible answers: gk checks each answer before a user sees it, and the error names the backend. Each
 * is one of the fakes with another answer in one place. */
#include "unit/support/runtime.h"
#include "unit/support/runtime_kernels.h"
#include "base/registry.h"

enum { IN_PROCESS, NATIVE, KINDS };
static gk_backend fakes[KINDS], liars[KINDS];
static const char *const liar_names[KINDS] = {"liar in process", "native liar"};

/* The entry that lies, and its answer; or its change to the struct that it fills in. */
static struct {
  const char *entry;
  int answer;
  void (*info)(gk_device_info *info);
  void (*record)(gk_launch_result *record);
  bool shifts; /* the memory that it gives */
} lie;

static bool lies(const char *entry) { return lie.entry && strcmp(lie.entry, entry) == 0; }
static gk_result or_lie(const char *entry, gk_result truth) { return lies(entry) ? (gk_result)lie.answer : truth; }

static gk_result open_it(void *device, const gk_device_desc *desc) {
  gk_device_desc as_fake = *desc;
  int kind = 0;
  while (strcmp(desc->backend, liar_names[kind]) != 0) ++kind;
  as_fake.backend = fakes[kind].name;
  return or_lie("open", fakes[kind].open(device, &as_fake));
}
static void describe_it(void *device, gk_device_info *info) {
  fakes[0].describe(device, info);
  if (lie.info) lie.info(info);
}
static gk_result alloc_it(void *device, size_t bytes, gk_memory kind, void **memory) {
  if (lies("alloc")) return (gk_result)lie.answer;
  const gk_result result = fakes[0].alloc(device, bytes, kind, memory);
  if (lie.shifts && result == GK_OK) *memory = (char *)*memory + 4;
  return result;
}
static void free_it(void *device, void *memory) { fakes[0].free(device, lie.shifts ? (char *)memory - 4 : memory); }
static gk_result copy_it(void *device, gk_direction direction, void *to, const void *from, size_t bytes) {
  return or_lie("copy", fakes[0].copy(device, direction, to, from, bytes));
}
static gk_result load_it(void *device, const gk_kernel *kernel, void **code) {
  if (lies("load")) return (gk_result)lie.answer;
  return fakes[0].load(device, kernel, code);
}
static gk_result lower_it(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode) {
  return or_lie("lower", fakes[0].lower(device, graph, plan, code, mode));
}
static gk_result run_it(void *graph, const gk_launch_args *launch, gk_launch_result *record) {
  const gk_result result = fakes[IN_PROCESS].run(graph, launch, record);
  if (lie.record) lie.record(record);
  return or_lie("run", result);
}
static gk_result wait_for_it(void *graph, bool block, gk_launch_result *record) {
  const gk_result result = fakes[NATIVE].wait(graph, true, record);
  (void)block;
  if (lie.record) lie.record(record);
  return or_lie("wait", result);
}
static gk_result cancel_it(void *graph) { return or_lie("cancel", fakes[NATIVE].cancel(graph)); }

/* Of what it tells, one is a fact; another lacks only its reason. */
static void tell_facts(gk_fact_visit visit, void *user) {
  static const gk_fact facts[] = {{"group", "name", NULL, "why"}, {"group", "bare", "value", NULL},
                                  {NULL, "name", "value", "why"}, {"group", NULL, "value", "why"}};
  for (size_t k = 0; k < GK_COUNT(facts); ++k) visit(user, &facts[k]);
  visit(user, NULL);
}
static void tell_facts_of(void *device, gk_fact_visit visit, void *user) {
  (void)device;
  tell_facts(visit, user);
}
static const void *query_it(const char *name) {
  static const gk_fact_source source = {sizeof source, tell_facts, tell_facts_of, tell_facts};
  return strcmp(name, GK_FACTS) == 0 ? &source : NULL;
}

static int make_liars(void **state) {
  (void)state;
  fake_register();
  fake_reset();
  static const fake_mode modes[KINDS] = {FAKE_IN_PROCESS, FAKE_NATIVE};
  for (int kind = 0; kind < KINDS; ++kind) {
    fakes[kind] = *gki_backend_named(fake_names[modes[kind]]);
    gk_backend *liar = &liars[kind];
    *liar = fakes[kind];
    liar->name = liar_names[kind];
    liar->open = open_it;
    liar->describe = describe_it;
    liar->alloc = alloc_it;
    liar->free = free_it;
    liar->copy = copy_it;
    liar->load = load_it;
    liar->lower = lower_it;
    liar->query = query_it;
    if (liar->run) liar->run = run_it;
    if (liar->wait) liar->wait = wait_for_it;
    if (liar->cancel) liar->cancel = cancel_it;
    if (gk_backend_register(liar) != GK_OK) return -1;
  }
  return 0;
}

static void tell_the_truth(void) { memset(&lie, 0, sizeof lie); }
static void lie_at(const char *entry, int answer) { lie.entry = entry, lie.answer = answer; }

/* ---- results ----------------------------------------------------------------------------------------------------- */

static const int answers[] = {GK_NOT_READY, 77, -3, 1000};

enum { X = 1, A, N, FLAG };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 1), GK_DEFAULT(A, int, 1), GK_OWN(N, int, 1), GK_OWN(FLAG, int, 1)};
LIST(list, GK_DO_WHILE(N), GK_RUN(add, GK_ONE, X, A), GK_END, GK_CHECKPOINT(5, FLAG), GK_RUN(add, GK_ONE, X, A),
           GK_END);

#define assert_lies(code, words, call) \
  do { \
    assert_fails(code, words, call); \
    tell_the_truth(); \
  } while (0)

/* Whether the launch is told to have failed so, and the next one not. */
static void assert_launch_fails(gk_graph *graph, gk_result code, const char *words) {
  const gk_status *status = NULL;
  assert_ok(gk_launch(graph, 0));
  gk_result result = gk_wait(graph, &status);
  tell_the_truth();
  if (result != code || !strstr(gk_error(), words)) fail_msg("%s: %s", gk_result_name(result), gk_error());
  assert_null(status);
  assert_int_equal(run_to_end(graph, 0)->state, GK_FINISHED);
}

TEST(impossible_results_are_caught) {
  gk_device *device;
  gk_graph *graph;
  for (int kind = 0; kind < KINDS; ++kind)
    for (size_t k = 0; k < GK_COUNT(answers); ++k) {
      const gk_device_desc desc = {.backend = liar_names[kind]};
      int byte = 0;
      lie_at("open", answers[k]);
      assert_fails(GK_ERROR_DEVICE, liar_names[kind], gk_device_open(&desc, &device));
      assert_says(": its entry open answered ");
      assert_null(device);
      tell_the_truth();
      assert_ok(gk_device_open(&desc, &device));
      void *memory = gk_alloc(device, 4, GK_DEVICE_MEMORY);
      lie_at("alloc", answers[k]);
      assert_gives_null(": its entry alloc answered ", gk_alloc(device, 4, GK_DEVICE_MEMORY));
      lie.entry = "copy";
      assert_fails(GK_ERROR_DEVICE, ": its entry copy answered ", gk_upload(device, memory, &byte, 1));
      lie.entry = "lower";
      assert_fails(GK_ERROR_DEVICE, ": its entry lower answered ", gk_graph_create(device, &list, 0, &graph));
      tell_the_truth();
      graph = graph_on(device, &list, GK_CANCELLABLE);
      lie_at(kind == NATIVE ? "wait" : "run", answers[k]);
      assert_launch_fails(graph, GK_ERROR_INVALID, liar_names[kind]);
      lie_at("cancel", answers[k]);
      if (kind == NATIVE) assert_fails(GK_ERROR_DEVICE, ": its entry cancel answered ", gk_cancel(graph));
      tell_the_truth();
      end_fake(device);
    }
}

TEST(load_answers_a_result) {
  gk_graph *graph;
  gk_device *device = open_named(liar_names[NATIVE]);
  lie_at("load", 1000);
  assert_lies(GK_ERROR_DEVICE, ": its entry load answered 1000", gk_graph_create(device, &list, 0, &graph));
  close_fake(device);
}

/* A library call is the user's: no number of its own gets through either. */
static int call_answer;
CALLED(answer_it) { return (gk_result)call_answer; }

TEST_ON(ALL_BACKENDS, call_answers_a_result) {
  LIST(call_list, GK_CALL(answer_it, X));
  gk_graph *graph = graph_on(device, &call_list, 0);
  for (size_t k = 0; k < GK_COUNT(answers); ++k) {
    call_answer = answers[k];
    assert_invalid("task 0 (answer_it): the call answered ", waited_for(graph, 0));
  }
}

/* ---- descriptions ------------------------------------------------------------------------------------------------ */

static const gk_capability nameless[] = {{NULL, GK_NATIVE, "why"}}, unexplained[] = {{"WHILE", GK_NATIVE, NULL}};
static void blank_name(gk_device_info *info) { info->name = NULL; }
static void blank_driver(gk_device_info *info) { info->driver = NULL; }
static void blank_backend(gk_device_info *info) { info->backend = NULL; }
static void minus_7th(gk_device_info *info) { info->ordinal = -7; }
static void minus_5_threads(gk_device_info *info) { info->threads = -5; }
static void no_threads(gk_device_info *info) { info->threads = 0; }
static void blank_report(gk_device_info *info) { info->capabilities = NULL; }
static void report(gk_device_info *info, const gk_capability *capability) {
  info->capabilities = capability;
  info->capability_count = 1;
}
static void report_nameless(gk_device_info *info) { report(info, nameless); }
static void report_unexplained(gk_device_info *info) { report(info, unexplained); }

TEST(description_is_whole) {
  static const struct { void (*lie)(gk_device_info *); const char *missing; } cases[] = {
      {blank_name, "name"}, {blank_driver, "driver"}, {minus_7th, "ordinal from 0 on"},
      {minus_5_threads, "number of threads from 1 on"}, {no_threads, "number of threads from 1 on"},
      {blank_report, "capabilities"}, {report_nameless, "capability that is whole"},
      {report_unexplained, "capability that is whole"}};
  gk_device *device;
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    char words[100];
    snprintf(words, sizeof words, "backend native liar: its entry describe gives no %s", cases[k].missing);
    lie.info = cases[k].lie;
    assert_lies(GK_ERROR_DEVICE, words, gk_device_open(&(gk_device_desc){.backend = liar_names[NATIVE]}, &device));
    assert_null(device);
    assert_int_equal(fake_leaks(), 0);
  }
  lie.info = blank_backend; /* gk knows better */
  device = open_named(liar_names[NATIVE]);
  tell_the_truth();
  assert_true(is_of(device, liar_names[NATIVE]));
  close_fake(device);
}

static void note_fact(void *user, const gk_fact *fact) {
  char *said = user;
  const size_t used = strlen(said);
  snprintf(said + used, 200 - used, "%s.%s=%s;%s;", fact->group, fact->name, fact->value ? fact->value : "", fact->why);
}

/* Of the group of tell_facts. */
static void note_fact_of_group(void *user, const gk_fact *fact) {
  if (strcmp(fact->group, "group") == 0) note_fact(user, fact);
}

TEST(facts_are_whole) {
  char backend[200] = "", of_device[200] = "";
  gk_device *device = open_named(liar_names[NATIVE]);
  assert_ok(gk_backend_facts(&liars[NATIVE], note_fact, backend));
  assert_ok(gk_device_facts(device, note_fact, of_device));
  assert_string_equal(backend, "group.name=;why;group.bare=value;;");
  assert_string_equal(of_device, backend);
  char of_all[2000] = "";
  assert_ok(gk_facts(note_fact_of_group, of_all));
  assert_ptr_equal(strstr(of_all, backend), of_all);
  close_fake(device);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static void state_55(gk_launch_result *record) { record->state = (gk_state)55; }
static void yielded_at_none(gk_launch_result *record) { record->state = GK_YIELDED, record->yielded = 0; }
static void yielded_far_off(gk_launch_result *record) { record->state = GK_YIELDED, record->yielded = UINT32_MAX; }
static void yielded_in_a_loop(gk_launch_result *record) { record->state = GK_YIELDED, record->yielded = 1; }
static void limit_far_off(gk_launch_result *record) { record->limit = 1u << 30; }
static void limit_at_a_task(gk_launch_result *record) { record->limit = 2; }
static void applied_99(gk_launch_result *record) { record->applied = (gk_applied)99; }

typedef void (*record_lie)(gk_launch_result *record);

static void check_records(const record_lie *records, size_t count, const char *wrong) {
  for (int kind = 0; kind < KINDS; ++kind) {
    gk_device *device = open_named(liar_names[kind]);
    gk_graph *graph = graph_on(device, &list, 0);
    char words[100];
    snprintf(words, sizeof words, "backend %s: its result of a launch of graph list %s", liar_names[kind], wrong);
    for (size_t k = 0; k < count; ++k) {
      lie.record = records[k];
      assert_launch_fails(graph, GK_ERROR_DEVICE, words);
    }
    end_fake(device);
  }
}

TEST(record_can_be) {
  static const record_lie records[] = {state_55, yielded_at_none, yielded_far_off, yielded_in_a_loop, limit_far_off,
                                       limit_at_a_task, applied_99};
  check_records(records, GK_COUNT(records), "can't be: state ");
}

/* A resume at a YIELD doesn't end at the same YIELD without a pass in between. */
static gk_result go_on(void *user, gk_graph *graph, const gk_status *status) {
  (void)graph, (void)status;
  ++*(int *)user;
  return GK_OK;
}
LIST(yielding, GK_YIELD(9));

TEST(resume_leaves_its_yield) {
  for (int kind = 0; kind < KINDS; ++kind) {
    gk_device *device = open_named(liar_names[kind]);
    gk_graph *graph = graph_on(device, &yielding, 0);
    char words[100];
    int calls = 0;
    snprintf(words, sizeof words, "backend %s: graph yielding was resumed at 9 (9) and yielded there at once",
             liar_names[kind]);
    lie.record = yielded_in_a_loop; /* here it is the YIELD */
    assert_fails(GK_ERROR_DEVICE, words, gk_run(graph, go_on, &calls, NULL));
    assert_int_equal(calls, 2);
    end_fake(device);
  }
}

/* A launch keeps the arrays that gk gave for it. */
static void no_passes(gk_launch_result *record) { record->passes = NULL; }
static void no_bounds(gk_launch_result *record) { record->hit_bound = NULL; }
static void ran_elsewhere(gk_launch_result *record) { record->ran = (uint8_t *)record->passes; }

TEST(arrays_stay) {
  static const record_lie moved[] = {no_passes, no_bounds, ran_elsewhere};
  check_records(moved, GK_COUNT(moved), "has other arrays");
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

TEST(memory_is_aligned) {
  gk_device *device = open_named(liar_names[NATIVE]);
  gk_graph *graph;
  lie.shifts = true;
  assert_gives_null("backend native liar: its entry alloc gave 0x", gk_alloc(device, 4, GK_DEVICE_MEMORY));
  assert_says("4, which isn't aligned to 256 bytes");
  assert_fails(GK_ERROR_DEVICE, "which isn't aligned to 256 bytes", gk_graph_create(device, &list, 0, &graph));
  tell_the_truth();
  close_fake(device); /* nothing is left */
}

int main(void) { return run_all_tests_with(make_liars, NULL); }
