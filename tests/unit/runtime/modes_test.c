/* Backends that lack the entries of their mode, or leave out optional ones. */
#include "unit/support/runtime.h"
#include "unit/support/runtime_kernels.h"
#include "unit/support/spare_backend.h"

enum { X = 1, FLAG };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 1), GK_OWN(FLAG, int, 1)};
LIST(list, GK_DO_WHILE(FLAG), GK_RUN(decrease, GK_ONE, X), GK_END);

static gk_result wait_it(void *graph, bool block, gk_launch_result *record) {
  return (void)graph, (void)block, (void)record, GK_OK;
}
static gk_result cancel_silently(void *graph) { return (void)graph, GK_ERROR_DEVICE; }
static gk_result read_flag_it(void *graph, uint32_t node, int32_t *flag) {
  (void)graph, (void)node;
  *flag = 0;
  return GK_OK;
}
static char *dump_it(void *graph, const char *format) {
  (void)graph;
  return strcmp(format, "dot") == 0 ? strdup("digraph lowered {}\n") : NULL;
}

static const gk_backend only_runs = SPARE(spare_open, .name = "only_runs", .run = spare_run, .dump = dump_it);
static const gk_backend only_native = SPARE(spare_open, .name = "only_native", .launch = spare_launch, .wait = wait_it);
static const gk_backend only_batched = SPARE(spare_open, .name = "only_batched", .launch = spare_launch,
                                             .submit = spare_submit, .read_flag = read_flag_it);
static const gk_backend no_words = SPARE(spare_open, .name = "no_words", .launch = spare_launch, .wait = wait_it,
                                         .cancel = cancel_silently);

static int register_all(void **state) {
  (void)state;
  const gk_backend *const all[] = {&only_runs, &only_native, &only_batched, &no_words};
  for (size_t k = 0; k < GK_COUNT(all); ++k)
    if (gk_backend_register(all[k]) != GK_OK) return -1;
  return 0;
}

/* Each backend in each mode, and in one that isn't any; the graph is there only where all entries are. */
TEST(mode_needs_its_entries) {
  static const struct { const char *backend; gk_mode mode; } complete[] = {
    {"only_runs", GK_MODE_IN_PROCESS}, {"only_native", GK_MODE_NATIVE}, {"only_batched", GK_MODE_BATCHED},
  };
  for (size_t b = 0; b < GK_COUNT(complete); ++b) {
    gk_device *device = open_named(complete[b].backend);
    for (int mode = 0; mode < 4; ++mode) {
      gk_graph *graph = (gk_graph *)state;
      spare_mode = (gk_mode)mode;
      if (spare_mode == complete[b].mode) {
        graph = graph_on(device, &list, 0);
        run_to_end(graph, 0);
        gk_graph_destroy(graph);
        continue;
      }
      char words[80];
      snprintf(words, sizeof words, "%s chose mode %d for graph list and lacks the entries", complete[b].backend, mode);
      assert_fails(GK_ERROR_UNSUPPORTED, words, gk_graph_create(device, &list, 0, &graph));
      assert_null(graph);
    }
    gk_device_close(device);
  }
}

/* Where the device decides, the backend has to say where pass numbers are; elsewhere common keeps them. */
TEST(pass_numbers_need_an_entry) {
  enum { PASS = 3, LOOP = 1 };
  static const gk_slot_desc numbered_slots[] = {GK_OWN(X, int, 1), GK_OWN(FLAG, int, 1), GK_PASS(PASS, LOOP)};
  LIST_OVER(numbered_slots, numbered, GK_DO_WHILE(FLAG, .label = LOOP), GK_COPY(X, PASS, GK_ONE), GK_END);
  static const struct { const char *backend; gk_mode mode; } others[] = {{"only_runs", GK_MODE_IN_PROCESS},
                                                                         {"only_batched", GK_MODE_BATCHED}};
  for (size_t b = 0; b < GK_COUNT(others); ++b) {
    spare_mode = others[b].mode;
    gk_device *device = open_named(others[b].backend);
    gk_graph *graph = graph_on(device, &numbered, 0);
    run_to_end(graph, 0);
    end_fake(device);
  }
  spare_mode = GK_MODE_NATIVE;
  gk_device *device = open_named("only_native");
  gk_graph *graph = NULL;
  assert_fails(GK_ERROR_UNSUPPORTED, "slot 3 (PASS) is the pass number of LOOP, and backend only_native, which decides "
               "on the device, has none; create the graph with GK_HOST_GATED, or count in memory of your own",
               gk_graph_create(device, &numbered, 0, &graph));
  gk_device_close(device);
}

static gk_graph *launched(const char *backend, gk_mode mode, gk_device **device) {
  spare_mode = mode;
  *device = open_named(backend);
  gk_graph *graph = graph_on(*device, &list, GK_CANCELLABLE);
  assert_ok(gk_cancel(graph)); /* nothing is under way yet */
  assert_ok(gk_launch(graph, 0));
  return graph;
}

TEST(native_backend_lacks_cancel_or_fails_silently) {
  static const struct { const char *backend; gk_result code; const char *words; } cases[] = {
    {"only_native", GK_ERROR_UNSUPPORTED, "backend only_native can't stop a launch"},
    {"no_words", GK_ERROR_DEVICE, "backend no_words couldn't cancel and didn't say why"}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    gk_device *device;
    gk_graph *graph = launched(cases[k].backend, GK_MODE_NATIVE, &device);
    assert_fails(cases[k].code, cases[k].words, gk_cancel(graph));
    assert_ok(gk_wait(graph, NULL));
    end_fake(device);
  }
}

/* In DOT there is the plan or what was made of it, since two graphs don't fit into one file. */
TEST(lowered_dot_stands_alone) {
  gk_device *device;
  gk_graph *graph = launched("only_runs", GK_MODE_IN_PROCESS, &device);
  assert_ok(gk_wait(graph, NULL));
  char *dot = gk_dump(NULL, graph, "dot"), *text = gk_dump(NULL, graph, "text");
  assert_string_equal(dot, "digraph lowered {}\n");
  assert_int_equal(strncmp(text, "plan of list", 12), 0);
  assert_null(strstr(text, "on only_runs"));
  gk_free_text(dot);
  gk_free_text(text);
  end_fake(device);
}

int main(void) { return run_all_tests_with(register_all, NULL); }
