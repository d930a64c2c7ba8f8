/* Composing: what a kernel's text becomes, what is refused and where. compilers.py shows that compilers agree. */
#include "unit/support/own_memory.h"
#include "unit/support/test.h"
#include "gk_backend.h"
#include "kernel/source.h"
#include "kernels/language.h"
#include "twin.h"

/* A kernel `k` over float y (inout), float x (in), float s (sum), int n (value), written behind a first line. */
static const gk_param params[] = {
    {"y", "float", 4, 4, GK_PTR, GK_ACCESS_INOUT}, {"x", "float", 4, 4, GK_PTR, GK_ACCESS_IN},
    {"s", "float", 4, 4, GK_PTR, GK_ACCESS_SUM},   {"n", "int", 4, 4, GK_I32, GK_ACCESS_VALUE}};
#define HEAD "GK_KERNEL(k, (inout(float, y), in(float, x), sum(float, s), value(int, n))) "

static char *try_to_compose(const char *target, const char *text) {
  gk_source source = {.file = "dir/cloth.c", .text = text, .line = 1};
  gk_kernel kernel = {.name = "k", .params = params, .param_count = 4, .dimensions = 1, .source = &source};
  return gk_compose(&kernel, target);
}

static char *compose_text(const char *target, const char *text) {
  char *composed = try_to_compose(target, text);
  if (!composed) fail_msg("%s: %s", text, gk_error());
  return composed;
}

/* The composed text from the user's first line on. */
static const char *own_part(const char *composed) {
  const char *at = strstr(composed, "#line 2 \"dir/cloth.c\"\n");
  assert_non_null(at);
  return strchr(at, '\n') + 1;
}

/* ---- what is rewritten ------------------------------------------------------------------------------------------- */

static const struct { const char *body, *glsl; } rewritten[] = {
    {"y[i] = (float)n;", "gki_at_y.data[i] = float(n);"},
    {"y[i] = (float) -n * 2.0f;", "gki_at_y.data[i] = float(-n) * 2.0f;"},
    {"y[i] = (float)(int)x[i].z(1)[2] + 1;", "gki_at_y.data[i] = float(int(gki_at_x.data[i].z(1)[2])) + 1;"},
    {"n = (int)(n + (uint)f(n)) % 3;", "n = int((n + uint(f(n)))) % 3;"}, {"if (n) (int)n;", "if (n) int(n);"},
    {"a = (int) n + b.y;", "a = int(n) + b.y;"}, {"d = 0.5 + 1. + 1e3 + .5e-3;", "d = 0.5lf + 1.lf + 1e3lf + .5e-3lf;"},
    {"f = 0.5f + 1.F + 1e+3f + 0xffu + 07;", "f = 0.5f + 1.F + 1e+3f + 0xffu + 07;"},
    {"l = 5LL + 6ll + 7L;", "l = 5L + 6l + 7L;"},
    {"gk_atomic_add(&y[i], 1.0f);", "gk_atomic_add(gki_at_y.data[i], 1.0f);"},
    {"x[i] = gk_atomic_load(&y[i].n);", "gki_at_x.data[i] = gk_atomic_load(gki_at_y.data[i].n);"},
    {"gk_atomic_add ( /* at */ & y[gk_atomic_or(&x[0], 1)], 1);",
     "gk_atomic_add ( /* at */  gki_at_y.data[gk_atomic_or(gki_at_x.data[0], 1)], 1);"},
    {"a = n++ * n-- & n;", "a = n++ * n-- & n;"}, {"s[0] += a & b && c;", "s[0] += a & b && c;"},
    {"p.x = p . y + x[0];", "p.x = p . y + gki_at_x.data[0];"},
    {"int sample = filter(vec3);", "int sample_ = filter_(vec3_);"}, {"int samples = out_of;", "int samples = out_of;"},
    {"/* (float)x \"it's\" */ // (int)y 0.5", "/* (float)x \"it's\" */ // (int)y 0.5"},
};

TEST(test_rewriting) {
  for (size_t k = 0; k < GK_COUNT(rewritten); ++k) {
    char text[512];
    snprintf(text, sizeof text, "GK_SOURCE(t)\n" HEAD "{\n%s\n}\n", rewritten[k].body);
    char *composed = compose_text("glsl", text);
    const char *body = strstr(own_part(composed), "{\n") + 2; /* the head is one line */
    size_t size = strlen(rewritten[k].glsl);
    if (strncmp(body, rewritten[k].glsl, size) != 0 || body[size] != '\n')
      fail_msg("%s: became %.*s", rewritten[k].body, (int)strcspn(body, "\n"), body);
    gk_free_text(composed);
  }
}

/* Marks are words `mark_<line>`; each must come out on its line, by the compiler's way of counting. */
static void check_lines(const char *composed, int wanted) {
  const char *at = own_part(composed);
  int line = 2, found = 0;
  for (; *at; ++at) {
    if (*at == '\n') ++line;
    if (strncmp(at, "mark_", 5) != 0) continue;
    assert_int_equal(atoi(at + 5), line);
    ++found;
  }
  assert_int_equal(found, wanted);
}

TEST(test_lines_stay) {
  static const char text[] = "GK_SOURCE(t)\n"
                             "#define TWO(a) \\\n"
                             "  mark_3 (float)(a)\n"
                             "/* a\n comment */ GK_KERNEL(other, (in(float, x),\n"
                             "  out(float, y))) {\n"
                             "#define KEPT mark_7\n"
                             "  (int)x;\n"
                             "}\n"
                             "GK_KERNEL(k, (inout(float, y), // comment\n"
                             "  in(float, x), sum(float, s),\n"
                             "  value(int, n)))\n"
                             "{\n"
                             "  mark_14 = (float)\n"
                             "    (int)\n"
                             "      (n + mark_16); mark_16;\n"
                             "  gk_atomic_add(\n"
                             "    &y[0], mark_18);\n"
                             "}\n"
                             "GK_FN float mark_20;\n";
  char *composed = compose_text("glsl", text);
  check_lines(composed, 7);
  assert_null(strstr(own_part(composed), "other"));
  gk_free_text(composed);
  composed = compose_text("cuda", text);
  check_lines(composed, 7);
  assert_string_equal(strstr(own_part(composed), "#define TWO"), own_part(composed));
  gk_free_text(composed);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

/* Text behind line 1, the line of the offence, a part of the message. */
static const struct { const char *text; int line; const char *message; } refused[] = {
    {"enum { A, B };\n" HEAD "{ }", 2, "`enum`: GLSL has no enum"},
    {"\ntypedef int number;\n" HEAD "{ }", 3, "`typedef`"}, {"union u { int a; };\n" HEAD "{ }", 2, "`union`"},
    {HEAD "{\n struct v3 a;\n}", 3, "`struct`"}, {HEAD "{\n goto end; end: return;\n}", 3, "`goto`"},
    {HEAD "{\n y[i] = (float)sizeof(int);\n}", 3, "`sizeof`"}, {HEAD "{\n static int a;\n}", 3, "`static`"},
    {HEAD "{\n\n unsigned a = 1;\n}", 4, "`unsigned`: the types of kernels"}, {HEAD "{ size_t a = 1; }", 2, "`size_t`"},
    {HEAD "{ printf(\"hello\"); }", 2, "`printf`"}, {HEAD "{ int a = 'a'; }", 2, "`'a'`: GLSL has no strings"},
    {HEAD "{ y[i] = exp(x[i]); }", 2, "`exp`: GLSL has this for floats only"},
    {HEAD "{ y[i] = (float) pow (x[i], 2.0); }", 2, "`pow`"},
    {"GK_FN float f(float *p) { return p[0]; }\n" HEAD "{ }", 2, "`float`: GLSL has no pointers"},
    {"GK_STRUCT(v3) { float x; };\nGK_FN float f(v3 *p) { return p[0].x; }\n" HEAD "{ }", 3, "`v3`: GLSL has no p"},
    {HEAD "{ const float *p = y; }", 2, "no pointers"}, {HEAD "{ float a = *y; }", 2, "`*`: GLSL has no pointers"},
    {HEAD "{ f(&y[0]); }", 2, "`&`"}, {HEAD "{ a = (int)&b; }", 2, "`&`"}, {HEAD "{ a = b->c; }", 2, "`->`"},
    {HEAD "{\n f(y, 1);\n}", 3, "`y`: this parameter is memory"},
    {HEAD "{\n float x = 1.0f;\n}", 3, "`x`: this parameter is memory"},
    {HEAD "{\n s += 1.0f;\n}", 3, "`s`: this parameter is memory"},
    {HEAD "{\n y[i] = gk_atomic_load(y);\n}", 3, "`gk_atomic_load`: its first argument must begin with &"},
    {HEAD "{\n gk_atomic_add(y, 1.0f);\n}", 3, "`gk_atomic_add`: its first argument must begin with &"},
    {"GK_STRUCT(v3) { float x; };\n" HEAD "{ v3 a = {.x = 1.0f}; }", 3, "`.`: GLSL has no designators"},
    {HEAD "{ float a[2] = {[1] = 1.0f}; }", 2, "`[`: GLSL has no designators"},
    {"GK_STRUCT(v3) { float x; };\n" HEAD "{ f((v3){1.0f}); }", 3, "`v3`: GLSL has no compound literals"},
    {HEAD "{ gl_Position = 1; }", 2, "`gl_Position`"},
    {"\n#include \"other.h\"GK_SOURCE(t)\n" HEAD "{ }", 3, "`include`: a kernel's text is one file"},
    {HEAD "{ y[i] = 1; ", 2, "`GK_KERNEL`: the brackets of this kernel don't match"}, {HEAD ";", 2, "don't match"},
    {"GK_KERNEL(kk, ()) { }", 0, "kernel k isn't in the text of dir/cloth.c behind line 1"},
    {"GK_SOURCE_END\n" HEAD "{ }", 0, "isn't in the text"}, {"/* " HEAD "{ } */", 0, "isn't in the text"},
};

TEST(test_refusals) {
  for (size_t k = 0; k < GK_COUNT(refused); ++k) {
    char text[512], place[32] = "";
    snprintf(text, sizeof text, "GK_SOURCE(t)\n%s\n", refused[k].text);
    if (refused[k].line) snprintf(place, sizeof place, "dir/cloth.c:%d: kernel k", refused[k].line);
    if (try_to_compose("glsl", text)) fail_msg("taken: %s", refused[k].text);
    if (strncmp(gk_error(), place, strlen(place)) != 0 || !strstr(gk_error(), refused[k].message))
      fail_msg("%s: %s", refused[k].text, gk_error());
  }
}

/* Nothing of the sort is refused where the compiler may never see it, nor for CUDA, which can say it all. */
TEST(test_not_refused) {
  static const char text[] = "GK_SOURCE(t)\n"
                             "#ifndef GK_GLSL\n"
                             "enum { A }; typedef int number;\n"
                             "GK_FN float f(const float *p) { return *p; }\n"
                             "#endif\n"
                             "#if A\nGK_FN int g(int a) { if (a > 1) {\n#else\nGK_FN int g(int a) { if (a > 2) {\n"
                             "#endif\n return 1; } return 2; }\n" /* what is left out isn't looked at: */
                             "GK_KERNEL(other, (in(float, x))) { sizeof(x); goto end; }\n" HEAD "{ }\n"
                             "#define DON'T sizeof\n"
                             "#error it's no string\n"
                             "GK_SOURCE_END enum sizeof";
  char *composed = compose_text("glsl", text);
  assert_null(strstr(own_part(composed), "GK_SOURCE_END"));
  gk_free_text(composed);
  static const char plain[] = "GK_SOURCE(t)\n" HEAD "{ enum { A }; goto end; end: y[i] = *x; }\n"
                              "/* GK_SOURCE_END */ int tail;";
  for (int hip = 0; hip < 2; ++hip) {
    composed = compose_text(hip ? "hip" : "cuda", plain);
    assert_string_equal(own_part(composed), "" HEAD "{ enum { A }; goto end; end: y[i] = *x; }\n"
                        "/* GK_SOURCE_END */ int tail;\n");
    gk_free_text(composed);
  }
}

/* Host code behind a GK_SOURCE without its end is named, for each device, instead of a compiler's error. */
static char logged[2000];
static void keep_lines(void *user, gk_log_level level, const char *line) {
  (void)user, (void)level;
  const size_t used = strlen(logged);
  snprintf(logged + used, sizeof logged - used, "%s\n", line);
}

HOST_KERNEL(run_nothing) {}

static const char *warnings_of(const char *text, gk_log_level level) {
  const gk_source shared = {.file = "shared.h", .text = text, .line = 1}, *const uses[] = {&shared};
  const gk_source source = {.file = "cloth.c", .text = "GK_SOURCE(t)\n" HEAD "{ }\n", .line = 1, .uses = uses,
                            .use_count = 1};
  static const gk_slot_desc slots[] = {GK_BUFFER(1, float), GK_BUFFER(2, float), GK_BUFFER(3, float),
                                       GK_SCALAR(4, int)};
  const gk_kernel kernel = {.name = "k", .params = params, .param_count = 4, .dimensions = 1, .source = &source,
                            .host = run_nothing};
  const gk_task tasks[] = {GK_RUN(kernel, GK_ONE, 1, 2, 3, 4)};
  const gk_list list = GK_LIST(list, tasks, slots);
  logged[0] = 0;
  gk_set_log(level, keep_lines, NULL);
  const gk_result result = gk_check(&list, "openmp", NULL, NULL);
  gk_set_log(GK_LOG_NONE, NULL, NULL);
  if (result != GK_OK) fail_msg("%s", gk_error());
  return logged;
}

/* Where nothing is composed, as on the host, it is no error. */
TEST(test_host_code_is_warned_of) {
  static const char open[] = "GK_SHARED(t)\nGK_FN int one(int x) { return x; }\nstatic gk_graph *graph, *other;\n";
  static const char ended[] = "GK_SHARED(t)\nGK_FN int one(int x) { return x; }\nGK_SOURCE_END\ngk_graph *graph;\n";
  static const char includes[] = "GK_SHARED(t)\nGK_FN int one(int x) { return x; }\n#include <gk_math.h>\nint x;\n";
  assert_string_equal(warnings_of(open, GK_LOG_WARN), "shared.h:3: kernel k: gk_graph is for the host alone; put "
                                                      "GK_SOURCE_END above the host code\n");
  assert_string_equal(warnings_of(ended, GK_LOG_WARN), "");
  assert_string_equal(warnings_of(includes, GK_LOG_WARN), ""); /* which may be meant */
  assert_string_equal(warnings_of(open, GK_LOG_ERROR), "");
}

TEST(test_host_code) {
  static const char *const targets[] = {"cuda", "hip", "glsl"};
  static const char text[] = "GK_SOURCE(t)\n" HEAD "{ y[i] = gk_atomic_load(&y[i]); } /* gk_task */\n"
                             "#ifndef __CUDACC__\n#define LIST gk_list\nstatic gk_task hidden;\n#endif\n"
                             "#define ONE gk_task\n"
                             "enum { X = 1 };\nstatic const gk_slot_desc slots[] = {GK_OWN(X, int, 1)};\n";
  static const char ended[] = "GK_SOURCE(t)\n" HEAD "{ }\nGK_SOURCE_END\nstatic const gk_slot_desc slots[1];\n";
  for (size_t k = 0; k < GK_COUNT(targets); ++k) {
    assert_null(try_to_compose(targets[k], text));
    assert_string_equal(gk_error(),
                        "dir/cloth.c:9: kernel k: gk_slot_desc is for the host alone; put GK_SOURCE_END above "
                        "the host code");
    gk_free_text(compose_text(targets[k], ended));
  }
}

static void check_composes(const gk_kernel *kernel, const char *target) {
  char *composed = gk_compose(kernel, target);
  if (!composed) fail_msg("%s", gk_error());
  gk_free_text(composed);
}

static void check_fails(const gk_kernel *kernel, const char *target, const char *message) {
  assert_null(gk_compose(kernel, target));
  if (!strstr(gk_error(), message)) fail_msg("wanted %s, got %s", message, gk_error());
}

TEST(test_bad_calls) {
  const gk_source source = {.file = "cloth.c", .text = "GK_SOURCE(t)\n" HEAD "{ }", .line = 1}, *const uses[] = {NULL};
  const gk_kernel good = {.name = "k", .params = params, .param_count = 4, .source = &source};
  check_composes(&good, "glsl"); /* dimensions 0: one */
  check_fails(&good, "metal", "the target is metal; it is cuda, hip or glsl");
  check_fails(&good, NULL, "the target is NULL");
  check_fails(NULL, "cuda", "the kernel or its name is NULL");
  gk_kernel bad = good;
  bad.source = NULL;
  check_fails(&bad, "cuda", "kernel k has no portable text");
  bad = good;
  bad.dimensions = 4;
  check_fails(&bad, "glsl", "more than 3 dimensions");
  bad = good;
  bad.params = NULL;
  check_fails(&bad, "glsl", "NULL");
  bad.params = &(gk_param){NULL, "float", 4, 4, GK_PTR, GK_ACCESS_IN};
  bad.param_count = 1;
  check_fails(&bad, "glsl", "parameter 0 has no name or element type");
  bad.params = &(gk_param){"x", "float *", 8, 8, GK_PTR, GK_ACCESS_IN};
  check_fails(&bad, "glsl", "parameter x has the type `float *`");
  gk_source broken = source;
  broken.uses = uses;
  broken.use_count = 1;
  bad = good;
  bad.source = &broken;
  check_fails(&bad, "cuda", "a source that it needs is NULL");
  broken = source;
  static const struct { const char *text; uint32_t line; const char *target, *message; } cases[] = {
      {NULL, 1, "cuda", "has no file or text"},
      {"/* another file */\n" HEAD "{ }", 1, "cuda", "line 1 of the text of cloth.c is no GK_SOURCE(...)"},
      {"", UINT32_MAX, "glsl", "line 4294967295 of the text"}, {"", 0, "glsl", "isn't in the text"},
      {"GK_SOURCE(t)\nGK_SOURCE_END\n" HEAD "{ }", 1, "cuda", "isn't in the text of"}, /* nor in another language */
      {"GK_SOURCE(t)\nGK_SOURCE_END\n" HEAD "{ }", 1, "glsl", "isn't in the text of"}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    broken.text = cases[k].text;
    broken.line = cases[k].line;
    check_fails(&bad, cases[k].target, cases[k].message);
  }
  broken.line = 1;
  broken.text = "GK_SOURCE(t)\n" HEAD "{ }\nGK_SOURCE_END\n" HEAD "{ }"; /* once more behind it, say for a test */
  check_composes(&bad, "cuda");
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

typedef struct found { unsigned count; char first[500]; } found;
static void find(void *user, const gk_problem *problem) {
  found *f = user;
  if (f->count++ == 0) snprintf(f->first, sizeof f->first, "%s: %s", problem->code, problem->message);
}

enum { NONE, TWIN_Y, TWIN_N };
static found problems_of(const gk_kernel *kernel) {
  static const gk_slot_desc slots[] = {GK_OWN(TWIN_Y, int, 4), GK_DEFAULT(TWIN_N, int, 4)};
  const gk_task tasks[] = {{.op = GK_OP_KERNEL, .kernel = kernel, .items = {TWIN_N}, .args = {TWIN_Y}}};
  const gk_list list = GK_LIST(twins, tasks, slots);
  found f = {0};
  gk_check(&list, NULL, find, &f);
  gk_device *device = NULL;
  gk_graph *graph = NULL;
  assert_ok(gk_device_open(&(gk_device_desc){.backend = "openmp"}, &device));
  assert_int_equal(gk_graph_create(device, &list, 0, &graph), f.count ? GK_ERROR_INVALID : GK_OK);
  gk_graph_destroy(graph);
  gk_device_close(device);
  return f;
}

/* The linker keeps one of the two texts: the kernel of the other file is refused, whichever that is. */
TEST(test_two_files_of_one_name) {
  assert_ptr_equal(twin_one()->source->text, twin_other()->source->text);
  const bool first = gki_source_of_other(twin_one()->source) != NULL;
  assert_int_equal(gki_source_of_other(twin_other()->source) == NULL, first);
  const gk_kernel *right = first ? twin_other() : twin_one(), *wrong = first ? twin_one() : twin_other();
  assert_int_equal(problems_of(right).count, 0);
  const found f = problems_of(wrong);
  assert_int_equal(f.count, 1);
  static const char *const words[] = {"kernel-text: ", "the kernel twin_set is of ", "twin_one.c", "twin_other.c"};
  for (size_t k = 0; k < GK_COUNT(words); ++k)
    if (!strstr(f.first, words[k])) fail_msg("%s", f.first);
  check_fails(wrong, "cuda", "both are called the same in GK_SOURCE or GK_SHARED; give each file a name of its own");
  check_composes(right, "cuda");
}

TEST(test_one_header_by_two_paths) {
  const gk_kernel *const kernels[] = {twin_one_of_header(), twin_other_of_header()};
  assert_string_not_equal(kernels[0]->source->file, kernels[1]->source->file);
  assert_ptr_equal(kernels[0]->source->text, kernels[1]->source->text);
  for (int k = 0; k < 2; ++k) {
    const found f = problems_of(kernels[k]);
    if (f.count) fail_msg("%s", f.first);
  }
}

TEST(test_paths) {
  static const struct { const char *file, *from; bool is_mixed; } cases[] = {
      {"a.c", NULL, false}, {"a.c", "7:a.c", false}, {"a.c", "8:a.c", true}, {"a.c", "7:b.c", true},
      {"src/a.c", "7:a.c", false}, {"a.c", "7:/home/me/src/a.c", false}, {"src/a.c", "7:../src/a.c", false},
      {"./src/a.c", "7:../../src/a.c", false}, {"x/a.c", "7:y/a.c", true}, {"xa.c", "7:a.c", true},
      {"a.c", "7:xa.c", true}, {"x/a.h", "7:y/a.h", false}, {"x/a.h", "7:y/b.h", true},
      {"x/a.hpp", "7:y/a.hpp", false}, {"x/a", "7:y/a", true}, {"a.c", "nonsense", true}, {"a.c", "7", true},
      {"", "7:", false}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    const gk_source source = {.file = cases[k].file, .text = "", .line = 7, .from = cases[k].from};
    if ((gki_source_of_other(&source) != NULL) != cases[k].is_mixed) fail_msg("%s, %s", cases[k].file, cases[k].from);
  }
}

/* Headers of two folders may have one name, and so may files that were compiled in two: their texts tell. */
TEST(test_one_path_of_two_files) {
  static const struct { const char *own; bool is_mixed; } cases[] = {{NULL, false}, {"the text", false},
                                                                     {"The text", true}, {"the text\n", true}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    gk_source source = {.file = "la/a.h", .text = "the text", .line = 7, .from = "7:lb/a.h", .own = cases[k].own};
    assert_int_equal(gki_source_of_other(&source) != NULL, cases[k].is_mixed);
    source.file = "a.c";
    source.from = "7:a.c";
    assert_int_equal(gki_source_of_other(&source) != NULL, cases[k].is_mixed);
  }
  gk_source source = *twin_one_of_header()->source;
  assert_string_equal(source.own, source.text);
  assert_string_not_equal(twin_one()->source->own, twin_other()->source->own);
  source.own = "#define GK_THIS_SOURCE twin_header\n";
  gk_kernel kernel = *twin_one_of_header();
  kernel.source = &source;
  const found f = problems_of(&kernel);
  assert_int_equal(f.count, 1);
  if (!strstr(f.first, "kernel-text: ")) fail_msg("%s", f.first);
  check_fails(&kernel, "cuda", "both are called the same in GK_SOURCE or GK_SHARED; give each file a name of its own");
}

/* ---- several sources, layouts ------------------------------------------------------------------------------------ */

TEST(test_shared_sources) {
  const gk_source vec = {.file = "vec.h", .text = "#pragma once\n\nGK_SHARED(vec)\nGK_STRUCT(v3) { float x; };\n"
                         "GK_SOURCE_END\nint host;", .line = 3};
  const gk_source *const uses[] = {&vec};
  const gk_source cloth = {.file = "C:\\a \"b\"\\cloth.c", .text = "GK_SOURCE(cloth, &vec)\nGK_KERNEL(k, (in(v3, a))) {"
                           "f((v3){1}); }", .line = 1, .uses = uses, .use_count = 1};
  gk_param a = {"a", "v3", 4, 4, GK_PTR, GK_ACCESS_IN};
  gk_kernel kernel = {.name = "k", .params = &a, .param_count = 1, .source = &cloth};
  char *composed = gk_compose(&kernel, "cuda");
  const char *first = strstr(composed, "\n#line 4 \"vec.h\"\nGK_STRUCT(v3) { float x; };\n");
  assert_non_null(first);
  assert_non_null(strstr(first, "\n#line 2 \"C:/a _b_/cloth.c\"\nGK_KERNEL"));
  assert_null(strstr(first, "host"));
  gk_free_text(composed);
  check_fails(&kernel, "glsl", "`v3`: GLSL has no compound literals"); /* it knows the other source's types */
}

static void check_layout(const char *struct_text, uint32_t c_bytes, bool fits) {
  char text[512];
  snprintf(text, sizeof text, "GK_SOURCE(t)\n%s\nGK_KERNEL(k, (inout(outer, y))) { }", struct_text);
  gk_source source = {.file = "cloth.c", .text = text, .line = 1};
  gk_param y = {"y", "outer", c_bytes, 8, GK_PTR, GK_ACCESS_INOUT};
  gk_kernel kernel = {.name = "k", .params = &y, .param_count = 1, .source = &source};
  char *composed = gk_compose(&kernel, "glsl");
  if (fits && !composed) fail_msg("%s: %s", struct_text, gk_error());
  if (!fits && (composed || !strstr(gk_error(), "the struct outer of parameter y has padding")))
    fail_msg("%s: %s", struct_text, composed ? "taken" : gk_error());
  gk_free_text(composed);
}

TEST(test_layouts) {
#define INNER "GK_STRUCT(inner) { double d; float f; }; "
  check_layout(INNER "GK_STRUCT(outer) { inner a; float t; };", 24, false); /* t at 16 or at 12 */
  check_layout(INNER "GK_STRUCT(outer) { float t; inner a; };", 24, true);
  check_layout(INNER "GK_STRUCT(outer) { inner a; double t; };", 24, true);
  check_layout(INNER "GK_STRUCT(outer) { inner a[2]; float t; };", 40, false); /* 32 or 28: tried with glslc */
  check_layout(INNER "GK_STRUCT(outer) { inner a[2]; double t; };", 40, true);
  check_layout(INNER "GK_STRUCT(middle) { inner a; int t, u; }; GK_STRUCT(outer) { int n; middle m[2]; };", 56, false);
  check_layout(INNER "#define N 2\nGK_STRUCT(outer) { float f[N]; inner a; float t; };", 40, true); /* not known here */
  check_layout("GK_STRUCT(outer) { int a, b[3][2]; double c; int64_t d; uint e; };", 56, true);
  check_layout("GK_STRUCT(outer) { int a, b[3][2]; double c; };", 40, true);
  check_layout("GK_STRUCT(outer) { int a; double c; };", 12, false); /* compiled with -fpack-struct */
  check_layout("GK_STRUCT(outer) { float big[4294967295][4294967295][65536]; };", 8, true);
  check_layout("GK_STRUCT(outer) { unknown a; float t; };", 8, true);
  check_layout("GK_STRUCT(outer) { };", 0, true);
}

/* ---- broken text, no memory -------------------------------------------------------------------------------------- */

static uint64_t seed = 20251121;
static uint32_t random_below(uint32_t n) {
  seed = seed * UINT64_C(6364136223846793005) + 1;
  return (uint32_t)(seed >> 33) % n;
}

/* Changes some places of the text: a byte, a word doubled, a piece cut out, the end cut off. */
static void mutate(char *text, size_t *size) {
  static const char pieces[] = "(){}[]#&*\"'/\\\n.,;0xE+ *//* (int) GK_KERNEL(k, GK_STRUCT( gk_atomic_add( #if "
                               "#define y";
  for (uint32_t left = 1 + random_below(4); left > 0; --left) {
    size_t at = random_below((uint32_t)*size), length = 1 + random_below(9);
    if (length > *size - at) length = *size - at;
    switch (random_below(4)) {
    case 0: text[at] = (char)(1 + random_below(255)); break;
    case 1: memcpy(text + at, pieces + random_below(sizeof pieces - 10), length); break;
    case 2: memmove(text + at, text + at + length, *size - at - length); *size -= length; break;
    default: if (random_below(4) == 0) *size = at;
    }
    if (*size < 2) return;
  }
}

TEST(test_broken_texts) {
  const char *whole = structs.source->text;
  size_t whole_size = strlen(whole);
  int composed_count = 0;
  for (int round = 0; round < 2000; ++round) {
    size_t size = whole_size;
    char *text = malloc(size + 1); /* exactly as long as it is, so that reading on is found */
    memcpy(text, whole, size);
    mutate(text, &size);
    text[size] = 0;
    text = realloc(text, size + 1);
    gk_source source = {.file = "language.h", .text = text, .line = round % 50 == 0 ? random_below(400) : 5};
    gk_kernel kernel = round % 2 ? structs : atomics;
    kernel.source = &source;
    char *composed = gk_compose(&kernel, round % 10 == 0 ? "cuda" : "glsl");
    composed_count += composed != NULL;
    if (!composed) assert_true(gk_error()[0] != 0);
    gk_free_text(composed);
    free(text);
  }
  assert_in_range(composed_count, 300, 1990); /* most changes are in parts that don't matter, some are refused */
}

TEST(test_deep_nesting) {
  enum { deep = 20000 };
  static char text[4 * deep + 400];
  const char *const pieces[] = {"(int)", "((", "{", "[", "#if 1\n", "(int)(", "gk_atomic_add(&"};
  for (size_t k = 0; k < GK_COUNT(pieces); ++k) {
    char *at = text + sprintf(text, "GK_SOURCE(t)\n" HEAD "{ y[i] = ");
    size_t size = strlen(pieces[k]);
    for (size_t n = 0; n + size < (size_t)2 * deep; n += size) at += sprintf(at, "%s", pieces[k]);
    sprintf(at, " 1; }");
    gk_free_text(try_to_compose("glsl", text));
  }
}

COUNTED(test_out_of_memory) {
  for (int target = 0; target < 2; ++target) {
    int k = 1;
    for (char *composed = NULL; !composed; ++k) {
      fail_own_memory(k);
      composed = gk_compose(&structs, target ? "glsl" : "cuda");
      if (!composed && !strstr(gk_error(), "out of host memory")) fail_msg("request %d: %s", k, gk_error());
      gk_free_text(composed);
      assert_in_range(k, 1, 101);
    }
    assert_in_range(k, 4, 102);
  }
}

int main(void) { return run_all_tests(); }
