/* The driver's own drawing of a list, in which each node has the list's name. */
#include "cuda/names.h"
#include "base/memory.h"
#include "unit/support/runtime_kernels.h"
#include "user_driver.h"

enum { X = 1, Y, N, A, LEFT, FLAG, BYTE, SLOTS };
enum { HERE = 5 };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_BUFFER(Y, int), GK_DEFAULT(N, int, 1), GK_DEFAULT(A, int, 1),
                                     GK_BUFFER(LEFT, int), GK_BUFFER(FLAG, int), GK_DEFAULT(BYTE, int, 3)};

static gk_result two_fills(const gk_value *args, void *native) {
  fill_on(native, args[0].ptr, args[1].i32);
  fill_on(native, args[0].ptr, args[1].i32 + 1);
  return GK_OK;
}

#define THREE GK_FILL(X, N, 1), GK_FILL(X, N, 2), GK_FILL(X, N, 3)
static const gk_task tasks[] = {
  /*  0 */ GK_RUN(add, N, X, A), {.op = GK_OP_FILL, .name = "a|{b} \"c\" <d>", .items = {N}, .args = {X}},
  /*  2 */ GK_DO_WHILE(LEFT),
  /*  3 */   GK_IF(FLAG), GK_CALL(two_fills, X, BYTE), GK_ELSE, GK_RUN(add, N, X, A), GK_END,
  /*  8 */   GK_SWITCH(FLAG), GK_CASE, GK_FILL(X, N, 3), GK_END, GK_CASE, GK_FILL(X, N, 4), GK_END, GK_END,
  /* 16 */ GK_END,
  /* 17 */ GK_PARALLEL, GK_SECTION, GK_RUN(add, N, X, A), GK_END,
  /* 21 */   GK_SECTION, GK_CALL(two_fills, Y, BYTE), GK_END, GK_END,
  /* 25 */ GK_PARALLEL, GK_SECTION, GK_CALL(two_fills, X, BYTE), GK_END, /* behind several */
  /* 29 */   GK_SECTION, GK_FILL(Y, N, 1), GK_END, GK_END,
  /* 33 */ GK_CALL(two_fills, X, BYTE),
  /* 34 */ THREE, THREE, THREE, /* skipped by an IF of gk's where launches resume */
  /* 43 */ GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_END,
  /* 46 */ GK_RUN_ALWAYS(add, N, X, A)};
static const gk_list list = GK_LIST(list, tasks, slots);

static gk_graph *bound(gk_device *device, uint32_t bits) {
  static const gk_slot pointers[] = {X, Y, LEFT, FLAG};
  gk_graph *graph = graph_on(device, &list, bits);
  for (size_t k = 0; k < GK_COUNT(pointers); ++k) gk_bind(graph, pointers[k], int_on(device, 0));
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  return graph;
}

static size_t count_of(const char *text, const char *words) {
  size_t count = 0;
  for (const char *at = text; (at = strstr(at, words)); at += strlen(words)) ++count;
  return count;
}

/* Outside of labels, that is in the graphs that there are, braces are paired. */
static int depth_of(const char *text) {
  int depth = 0;
  for (bool quoted = false; *text; ++text) {
    if (*text == '\\' && text[1]) ++text;
    else if (*text == '"') quoted = !quoted;
    else if (!quoted) depth += (*text == '{') - (*text == '}');
  }
  return depth;
}

/* A field of its own, before what the driver has to say. */
static void expect_named(const char *text, const char *name, size_t times) {
  char field[128];
  snprintf(field, sizeof field, "label=\"{%s\n| ", name);
  const size_t count = count_of(text, field);
  if (count != times) fail_msg("%s: %zu times, not %zu, in\n%s", name, count, times, text);
}

static void check_all_named(const char *text) {
  static const struct { const char *name; size_t times; } names[] = {
    {"task 0 (add)", 1},
    {"task 1 (a\\|\\{b\\} \\\"c\\\" \\<d\\>)", 1},
    {"task 2 (DO_WHILE LEFT)", 1},
    {"task 3 (IF FLAG)", 1},
    {"task 4 (two_fills), recorded", 3}, /* the child graph and what is in it */
    {"task 4 (two_fills), its end", 1},
    {"task 6 (add)", 1},
    {"task 8 (SWITCH FLAG)", 1},
    {"task 10 (X = 3)", 1},
    {"task 19 (add)", 1},
    {"task 22 (two_fills), recorded", 3},
    {"task 27 (two_fills), recorded", 3},
    {"task 33 (two_fills), recorded", 3},
    {"task 33 (two_fills), its end", 1},
    {"task 46 (add)", 1},
    {"decides: the end of a pass of task 2 (DO_WHILE LEFT)", 1},
    {"decides: the end of task 43 (CHECKPOINT HERE)", 1},
    {"gk: a launch ends, the status is posted", 1}};
  for (size_t k = 0; k < GK_COUNT(names); ++k) expect_named(text, names[k].name, names[k].times);
  assert_int_equal(depth_of(text), 0);
}

TEST_ON_CUDA(test_named) {
  gk_graph *graph = bound(device, 0);
  char *text = gk_cuda_dump(graph, 0);
  assert_non_null(text);
  assert_int_equal(count_of(text, "digraph"), 1);
  assert_int_equal(strncmp(text, "// list: launches from the top; by gk ", 38), 0);
  check_all_named(text);
  expect_named(text, "gk: what a yield or resume may skip, from the node inside on", 0);
  gk_free_text(text);
  text = gk_cuda_dump(graph, HERE);
  assert_int_equal(strncmp(text, "// list: launches that resume; ", 31), 0);
  check_all_named(text);
  expect_named(text, "gk: a launch begins", 1);
  assert_true(count_of(text, "gk: what a yield or resume may skip") > 0);
  gk_free_text(text);
  gk_graph_destroy(graph);
}

/* Where the graph that resumes has the same nodes there is no other one. */
TEST_ON_CUDA(test_all_launches) {
  static const gk_task looping_tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A), GK_END},
                       yielding_tasks[] = {GK_RUN(add, N, X, A), GK_CHECKPOINT(HERE, FLAG), GK_END};
  static const gk_list looping = GK_LIST(looping, looping_tasks, slots),
                       yielding = GK_LIST(yielding, yielding_tasks, slots);
  static const gk_list *const lists[] = {&looping, &yielding};
  for (size_t k = 0; k < GK_COUNT(lists); ++k) {
    gk_graph *graph = graph_on(device, lists[k], 0);
    char *text = gk_cuda_dump(graph, 0), begin[64];
    snprintf(begin, sizeof begin, "// %s: %s; by gk ", lists[k]->name, k ? "all launches" : "launches from the top");
    assert_non_null(text);
    if (strncmp(text, begin, strlen(begin)) != 0) fail_msg("%.100s", text);
    gk_free_text(text);
    gk_graph_destroy(graph);
  }
}

/* Each body once, whether it is in another one or not. */
TEST_ON_CUDA(test_bodies_left_out) {
  gk_graph *graph = bound(device, 0);
  sim->answer_no("drawn");
  char *text = gk_cuda_dump(graph, 0);
  sim->answer_no(NULL);
  assert_non_null(text);
  assert_true(count_of(text, "digraph") > 3);
  assert_int_equal(count_of(text, "digraph"), 1 + count_of(text, "\n// the body that holds: "));
  check_all_named(text);
  gk_free_text(text);
  gk_graph_destroy(graph);
}

/* Where the driver writes no handles, no node gets a name, so one body is tried and the others aren't. */
TEST_ON_CUDA(test_no_handles) {
  gk_graph *graph = bound(device, 0);
  static const char *const noes[] = {"handles", "handles,drawn"};
  for (size_t k = 0; k < GK_COUNT(noes); ++k) {
    sim->answer_no(noes[k]);
    char *text = gk_cuda_dump(graph, 0);
    sim->answer_no(NULL);
    assert_non_null(text);
    assert_int_equal(count_of(text, "digraph"), 2);
    assert_int_equal(count_of(text, "\n// the body that holds: "), 1);
    expect_named(text, "task 0 (add)", 0);
    assert_int_equal(depth_of(text), 0);
    gk_free_text(text);
  }
  gk_graph_destroy(graph);
}

/* What the next file gets. */
static int free_number(void) {
  const int file = dup(0);
  close(file);
  return file;
}

/* What is drawn in is closed again. */
TEST_ON_CUDA(test_no_file_is_left) {
  gk_graph *graph = bound(device, 0);
  const int free_before = free_number();
  for (int k = 0; k < 2; ++k) {
    sim->answer_no(k ? "drawn" : NULL);
    gk_free_text(gk_cuda_dump(graph, 0));
    sim->answer_no(NULL);
    assert_int_equal(free_number(), free_before);
  }
  gk_graph_destroy(graph);
}

/* Whatever a node is, and whatever a control kernel begins with. */
TEST(test_each_kind_is_said) {
  static const gk_node nodes[] = {{.op = GK_OP_WHILE, .name = "LEFT", .source = 3},
                                  {.op = GK_OP_CALL, .name = "library", .source = 5}};
  static const gk_plan plan = {.nodes = nodes, .node_count = GK_COUNT(nodes)};
  static const gk_gate_point points[] = {{.kind = GK_POINT_YIELD}, {.kind = GK_POINT_LOOP_END},
                                         {.kind = GK_POINT_HEAD}, {.kind = GK_POINT_BRANCH},
                                         {.kind = GK_POINT_MARK}, {.kind = GK_POINT_ENTER}};
  static const struct { gk_gate_node gate; bool recorded; const char *said; } turns[] = {
    {{.kind = GK_GATE_CONTROL, .point = 0}, false, "decides: the end of task 3 (WHILE LEFT)"},
    {{.kind = GK_GATE_CONTROL, .point = 1}, false, "decides: the end of a pass of task 3 (WHILE LEFT)"},
    {{.kind = GK_GATE_CONTROL, .point = 2}, false, "decides: the beginning of task 3 (WHILE LEFT)"},
    {{.kind = GK_GATE_CONTROL, .point = 3}, false, "decides: the way into task 3 (WHILE LEFT)"},
    {{.kind = GK_GATE_CONTROL, .point = 4}, false, "decides: the end of task 3 (WHILE LEFT)"},
    {{.kind = GK_GATE_CONTROL, .point = 5}, false, "decides: the way into task 3 (WHILE LEFT)"},
    {{.kind = GK_GATE_CONTROL, .point = GK_NONE}, false, "gk: closes what is skipped"},
    {{.kind = GK_GATE_PROLOGUE}, false, "gk: a launch begins"},
    {{.kind = GK_GATE_EPILOGUE}, false, "gk: a launch ends, the status is posted"},
    {{.kind = GK_GATE_SEGMENT}, false, "gk: what a yield or resume may skip, from the node inside on"},
    {{.kind = GK_GATE_TASK, .node = 1}, false, "task 5 (library), its end"},
    {{.kind = GK_GATE_TASK, .node = 1}, true, "task 5 (library), recorded"},
    {{.kind = GK_GATE_WHILE, .node = 0}, true, "task 3 (WHILE LEFT)"}};
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    const gk_gates gates = {.plan = &plan, .nodes = &turns[k].gate, .node_count = 1, .points = points,
                            .point_count = GK_COUNT(points)};
    const gki_cuda_variant variant = {.gates = &gates};
    const gki_cuda_names all = {.variant = &variant};
    gki_text text = {0};
    gki_cuda_write_name(&all, &(gki_cuda_name){.gate = 0, .recorded = turns[k].recorded}, GKI_PLAIN, &text);
    char *said = gki_text_finish(&text);
    assert_string_equal(said, turns[k].said);
    gk_host_free(said);
  }
}

TEST_ON_CUDA(test_refused) {
  gk_graph *graph = bound(device, GK_HOST_GATED);
  assert_null(gk_cuda_dump(graph, 0));
  assert_non_null(strstr(gk_error(), "as the host gates it"));
  gk_graph_destroy(graph);
  assert_null(gk_cuda_dump(NULL, 0));
  assert_non_null(strstr(gk_error(), "gk_cuda_dump: there is no graph"));
}

TEST_ON_CUDA(test_each_call_fails) {
  gk_graph *graph = bound(device, 0);
  const int free_before = free_number();
  bool over = false;
  for (uint64_t k = 1; !over; ++k) {
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
    char *text = gk_cuda_dump(graph, 0);
    over = sim->failed() == NULL;
    if (over || strcmp(sim->failed(), "cuCtxPopCurrent") == 0 ||
        strcmp(sim->failed(), "cuThreadExchangeStreamCaptureMode") == 0)
      assert_non_null(text);
    else assert_null(text);
    if (!text) assert_true(strlen(gk_error()) > 0);
    assert_int_equal(free_number(), free_before);
    gk_free_text(text);
    sim->mark();
  }
  gk_graph_destroy(graph);
}

int main(int count, char **words) {
  (void)count;
  with_simgpu(words);
  return run_all_tests_with(find_user_driver, NULL);
}
