/* The driver's own drawing of a list, in which each node has the list's name. */
#include "cuda/device.h"
#include "cuda/names.h"
#include "base/memory.h"
#include "runtime/device.h"
#include "lists.h"

#define THREE GK_FILL(X, N, 1), GK_FILL(X, N, 2), GK_FILL(X, N, 3)
LIST(list,
  /*  0 */ GK_RUN(add, N, X, A), {.op = GK_OP_FILL, .name = "a|{b} \"c\" <d>", .items = {N}, .args = {X}},
  /*  2 */ GK_DO_WHILE(LEFT),
  /*  3 */   GK_IF(FLAG), GK_CALL(fill_twice, X, BYTE), GK_ELSE, GK_RUN(add, N, X, A), GK_END,
  /*  8 */   GK_SWITCH(FLAG), GK_CASE, GK_FILL(X, N, 3), GK_END, GK_CASE, GK_FILL(X, N, 4), GK_END, GK_END,
  /* 16 */ GK_END,
  /* 17 */ GK_PARALLEL, GK_SECTION, GK_RUN(add, N, X, A), GK_END,
  /* 21 */   GK_SECTION, GK_CALL(fill_twice, Y, BYTE), GK_END, GK_END,
  /* 25 */ GK_PARALLEL, GK_SECTION, GK_CALL(fill_twice, X, BYTE), GK_END, /* behind several */
  /* 29 */   GK_SECTION, GK_FILL(Y, N, 1), GK_END, GK_END,
  /* 33 */ GK_CALL(fill_twice, X, BYTE),
  /* 34 */ THREE, THREE, THREE, /* skipped by an IF of gk's where launches resume */
  /* 43 */ GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_END,
  /* 46 */ GK_RUN_ALWAYS(add, N, X, A));

static gk_graph *ran(gk_device *device, uint32_t bits) {
  gk_graph *graph = new_zero_graph(device, &list, bits);
  run_to_end(graph, 0);
  return graph;
}

static void free_drawing(void *text) { gk_free_text(text); }

/* The drawing, which the test's end frees, on a driver that has those quirks. */
static char *drawing(gk_graph *graph, int32_t label, const char *no) {
  sim->answer_no(no);
  char *text = gk_cuda_dump(graph, label);
  sim->answer_no(NULL);
  assert_non_null(text);
  return keep(text, free_drawing);
}

static size_t count_of(const char *text, const char *words) {
  size_t count = 0;
  for (const char *at = text; (at = strstr(at, words)); at += strlen(words)) ++count;
  return count;
}

/* Outside of labels, that is in the graphs, braces are paired. */
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
      {"task 0 (add)", 1}, {"task 1 (a\\|\\{b\\} \\\"c\\\" \\<d\\>)", 1}, {"task 2 (DO_WHILE LEFT)", 1},
      {"task 3 (IF FLAG)", 1}, {"task 4 (fill_twice), recorded", 3}, /* the child graph and what is in it */
      {"task 4 (fill_twice), its end", 1}, {"task 6 (add)", 1}, {"task 8 (SWITCH FLAG)", 1}, {"task 10 (X = 3)", 1},
      {"task 19 (add)", 1}, {"task 22 (fill_twice), recorded", 3}, {"task 27 (fill_twice), recorded", 3},
      {"task 33 (fill_twice), recorded", 3}, {"task 33 (fill_twice), its end", 1}, {"task 46 (add)", 1},
      {"decides: the end of a pass of task 2 (DO_WHILE LEFT)", 1},
      {"decides: the end of task 43 (CHECKPOINT HERE)", 1}, {"gk: a launch ends, the status is posted", 1}};
  for (size_t k = 0; k < GK_COUNT(names); ++k) expect_named(text, names[k].name, names[k].times);
  assert_int_equal(depth_of(text), 0);
}

static void assert_begins(const char *text, const char *words) {
  if (strncmp(text, words, strlen(words)) != 0) fail_msg("%.100s", text);
}

TEST_ON_CUDA(test_named) {
  gk_graph *graph = ran(device, 0);
  const char *text = drawing(graph, 0, NULL);
  assert_int_equal(count_of(text, "digraph"), 1);
  assert_begins(text, "// list: launches from the top; by gk ");
  check_all_named(text);
  expect_named(text, "gk: what a yield or resume may skip, from the node inside on", 0);
  text = drawing(graph, HERE, NULL);
  assert_begins(text, "// list: launches that resume; ");
  check_all_named(text);
  expect_named(text, "gk: a launch begins", 1);
  assert_true(count_of(text, "gk: what a yield or resume may skip") > 0);
}

/* Where the graph that resumes has the same nodes there is only one graph. */
TEST_ON_CUDA(test_all_launches) {
  LIST(yielding, GK_RUN(add, N, X, A), GK_CHECKPOINT(HERE, FLAG), GK_END);
  assert_begins(drawing(new_graph(device, &looping, 0), 0, NULL), "// looping: launches from the top; by gk ");
  assert_begins(drawing(new_graph(device, &yielding, 0), 0, NULL), "// yielding: all launches; by gk ");
}

/* Each body once, whether it is in another one or not. */
TEST_ON_CUDA(test_bodies_left_out) {
  const char *text = drawing(ran(device, 0), 0, "drawn");
  assert_true(count_of(text, "digraph") > 3);
  assert_int_equal(count_of(text, "digraph"), 1 + count_of(text, "\n// the body that holds: "));
  check_all_named(text);
}

/* Where the driver writes no handles, no node gets a name. Then gk draws one body, and not the others. */
TEST_ON_CUDA(test_no_handles) {
  gk_graph *graph = ran(device, 0);
  static const char *const noes[] = {"handles", "handles,drawn"};
  for (size_t k = 0; k < GK_COUNT(noes); ++k) {
    const char *text = drawing(graph, 0, noes[k]);
    assert_int_equal(count_of(text, "digraph"), 2);
    assert_int_equal(count_of(text, "\n// the body that holds: "), 1);
    expect_named(text, "task 0 (add)", 0);
    assert_int_equal(depth_of(text), 0);
  }
}

/* The node's handle stands behind quotes that the driver escapes. */
static CUresult draw_quoted(CUgraph graph, const char *path, UNUSED unsigned int flags) {
  CUgraphNode nodes[64];
  size_t count = GK_COUNT(nodes);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  RIGHT(cu.cuGraphGetNodes(graph, nodes, &count));
  fprintf(file, "digraph {\n\"n\" [label=\"{a \\\"quoted\\\" one | %p}\"];\n", (void *)nodes[0]);
  fprintf(file, "\"m\" [label=\"line | %p\"];\n}\n", (void *)nodes[0]);
  fclose(file);
  return CUDA_SUCCESS;
}

TEST_ON_CUDA(test_quotes) {
  gki_cuda_device *native = device->state;
  const gki_cuda_driver *right = native->driver;
  gki_cuda_driver odd = *right;
  odd.cuGraphDebugDotPrint = draw_quoted;
  native->driver = &odd;
  const char *text = drawing(new_graph(device, &straight, 0), 0, NULL);
  native->driver = right;
  assert_int_equal(count_of(text, "label=\"{task 0 (add)\n| a \\\"quoted\\\" one | 0x"), 1);
  assert_int_equal(count_of(text, "label=\"task 0 (add)\\nline | 0x"), 1);
}

/* The content of the next file. */
static int free_number(void) {
  const int file = dup(0);
  close(file);
  return file;
}

/* The files of drawings are closed again. */
TEST_ON_CUDA(test_no_file_is_left) {
  gk_graph *graph = ran(device, 0);
  const int free_before = free_number();
  for (int k = 0; k < 2; ++k) {
    drawing(graph, 0, k ? "drawn" : NULL);
    assert_int_equal(free_number(), free_before);
  }
}

/* Each kind of node, and each kind of point that a control kernel begins with. */
TEST(test_each_kind_is_said) {
  static const gk_node nodes[] = {{.op = GK_OP_WHILE, .name = "LEFT", .source = 3},
                                  {.op = GK_OP_CALL, .name = "library", .source = 5}};
  static const gk_plan plan = {.nodes = nodes, .node_count = GK_COUNT(nodes)};
  static const char by_end[] = "decides: the end of task 3 (WHILE LEFT)";
  static const char by_way[] = "decides: the way into task 3 (WHILE LEFT)";
  static const struct { gk_gate_kind kind; uint32_t node, point; bool recorded; const char *said; } turns[] = {
      {GK_GATE_CONTROL, 0, GK_POINT_YIELD, false, by_end}, {GK_GATE_CONTROL, 0, GK_POINT_MARK, false, by_end},
      {GK_GATE_CONTROL, 0, GK_POINT_LOOP_END, false, "decides: the end of a pass of task 3 (WHILE LEFT)"},
      {GK_GATE_CONTROL, 0, GK_POINT_HEAD, false, "decides: the beginning of task 3 (WHILE LEFT)"},
      {GK_GATE_CONTROL, 0, GK_POINT_BRANCH, false, by_way}, {GK_GATE_CONTROL, 0, GK_POINT_ENTER, false, by_way},
      {GK_GATE_CONTROL, 0, GK_NONE, false, "gk: closes what is skipped"},
      {GK_GATE_PROLOGUE, 0, 0, false, "gk: a launch begins"},
      {GK_GATE_EPILOGUE, 0, 0, false, "gk: a launch ends, the status is posted"},
      {GK_GATE_SEGMENT, 0, 0, false, "gk: what a yield or resume may skip, from the node inside on"},
      {GK_GATE_TASK, 1, 0, false, "task 5 (library), its end"},
      {GK_GATE_TASK, 1, 0, true, "task 5 (library), recorded"},
      {GK_GATE_WHILE, 0, 0, true, "task 3 (WHILE LEFT)"}};
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    const gk_gate_point point = {.kind = (gk_point_kind)turns[k].point};
    const gk_gate_node gate = {.kind = turns[k].kind, .node = turns[k].node,
                               .point = turns[k].point == GK_NONE ? GK_NONE : 0};
    const gk_gates gates = {.plan = &plan, .nodes = &gate, .node_count = 1, .points = &point, .point_count = 1};
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
  assert_null(gk_cuda_dump(ran(device, GK_HOST_GATED), 0));
  assert_says("as the host gates it");
  assert_null(gk_cuda_dump(NULL, 0));
  assert_says("gk_cuda_dump: there is no graph");
}

TEST_ON_CUDA(test_each_call_fails) {
  gk_graph *graph = ran(device, 0);
  const int free_before = free_number();
  FOR_EACH_CALL(k, failed) {
    fail_call(k, CUDA_ERROR_UNKNOWN);
    char *text = gk_cuda_dump(graph, 0);
    failed = failed_call();
    if (!text != (failed && !is_one_of(failed, "cuCtxPopCurrent cuThreadExchangeStreamCaptureMode")))
      fail_msg("%s: %s", failed, text ? text : gk_error());
    if (!text) assert_true(strlen(gk_error()) > 0);
    assert_int_equal(free_number(), free_before);
    gk_free_text(text);
  }
}

int main(UNUSED int count, char **words) { return run_on_simgpu(words); }
