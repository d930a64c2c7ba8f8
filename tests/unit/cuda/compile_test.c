/* NVRTC found, chosen and used: on stand-ins (fake_nvrtc.c), and on a real one where there is one. */
#include "unit/support/elsewhere.h"
#include "cuda/compile.h"
#include "base/error.h"
#include "gk_kernel.h"

GK_SOURCE(cloth)
GK_KERNEL(scale, (inout(float, y), value(float, a))) {
  y[i] *= a;
}
GK_KERNEL(total, (in(float, y), sum(float, s), value(int, n))) {
  if (i < n) s[0] += y[i];
}
GK_SOURCE_END
enum { SCALE_LINE = __LINE__ - 6 };

/* ---- which one is chosen ----------------------------------------------------------------------------------------- */

enum { NEWEST = 99000 }; /* a driver that takes every version */

static const gki_nvrtc nvrtc_11_8 = {.version = 11080, .architectures = {35, 52, 70, 75, 80, 86, 87, 89, 90},
                                     .architecture_count = 9};
static const gki_nvrtc nvrtc_12_4 = {.version = 12040, .architectures = {50, 60, 70, 75, 80, 86, 89, 90},
                                     .architecture_count = 8};
static const gki_nvrtc nvrtc_13_0 = {.version = 13000, .architectures = {75, 80, 86, 89, 90, 100, 103, 120},
                                     .architecture_count = 8};

/* Better compilers rank higher; 0 can't be used. */
static const struct { const gki_nvrtc *nvrtc; int architecture, driver, rank, made_for; bool is_ptx, may_be_refused; }
ranked[] = {
    {&nvrtc_12_4, 89, 12040, 5, 89, false, false},  /* just this device */
    {&nvrtc_12_4, 89, 12020, 5, 89, false, false},  /* cubins of a newer minor version will do */
    {&nvrtc_12_4, 89, 13000, 5, 89, false, false},  /* and those of an older major one */
    {&nvrtc_13_0, 89, 12080, 2, 89, false, true},
    {&nvrtc_12_4, 120, 12080, 4, 90, true, false},  /* PTX for the driver to translate */
    {&nvrtc_12_4, 120, 12040, 4, 90, true, false},
    {&nvrtc_12_4, 87, 12040, 4, 86, true, false},
    {&nvrtc_12_4, 87, 12020, 3, 86, false, false},  /* whose PTX the driver can't read: a cubin of that generation */
    {&nvrtc_13_0, 121, 12080, 1, 120, false, true},
    {&nvrtc_12_4, 100, 12020, 0, 90, false, false}, /* neither */
    {&nvrtc_13_0, 70, 13000, 0, 0, false, false},   /* too old a device */
    {&nvrtc_11_8, 121, 13000, 4, 90, true, false},
    {&nvrtc_11_8, 35, 11040, 5, 35, false, false},
};

TEST(each_is_ranked_for_a_device_and_a_driver) {
  for (size_t k = 0; k < GK_COUNT(ranked); ++k) {
    gki_cuda_compiler compiler;
    int rank = gki_nvrtc_rank(ranked[k].nvrtc, ranked[k].architecture, ranked[k].driver, &compiler);
    if (rank != ranked[k].rank) fail_msg("row %zu: rank %d, not %d", k, rank, ranked[k].rank);
    assert_ptr_equal(compiler.nvrtc, ranked[k].nvrtc);
    assert_int_equal(compiler.architecture, ranked[k].made_for);
    if (rank == 0) continue;
    assert_int_equal(compiler.is_ptx, ranked[k].is_ptx);
    assert_int_equal(compiler.may_be_refused, ranked[k].may_be_refused);
  }
}

/* ---- in the process of a case ------------------------------------------------------------------------------------ */

/* What is chosen for the devices and drivers in $DEVICES: "89 13000 70 12040". */
static int choose(void) {
  const char *text = getenv("DEVICES");
  for (char *end; text && *text; text = end) {
    int architecture = (int)strtol(text, &end, 10), driver = (int)strtol(end, &end, 10);
    gki_cuda_compiler compiler;
    char said[128];
    gki_begin();
    gk_result result = gki_cuda_compiler_get(architecture, driver, &compiler);
    if (result == GK_OK) gki_cuda_compiler_describe(&compiler, said, sizeof said);
    if (result == GK_OK) printf("%s%s", said, compiler.may_be_refused ? "?\n" : "\n");
    else printf("%s: %s", gk_result_name(result), gk_error());
  }
  return 0;
}

static void print_log(UNUSED void *user, gk_log_level level, const char *line) {
  if (level == GK_LOG_WARN) printf("log: %s\n", line);
}

/* More warnings than a message can hold, and an error behind them. */
static void give_long_log(void) {
  static char log[12 * 1024] = "(1): warning: w";
  while (strlen(log) < sizeof log - 64) strcat(log, "\ncloth(2): warning: w");
  strcat(log, "\ncloth(3): error: e\n1 error");
  setenv("FAKE_NVRTC_LOG", log, 1);
}

/* A text by hand, or that is composed of $COMPOSED. */
static int compile(void) {
  const gk_source source = {.file = "cloth.c", .text = getenv("COMPOSED")};
  char *composed = source.text ? gk_compose(&(gk_kernel){.name = "k", .source = &source}, "cuda") : NULL;
  const gki_unit cloth_text = {.text = composed ? composed : "#include <math.h>\n", .file = "cloth",
                                    .kernel = getenv("KERNEL"), .options = getenv("OPTIONS")};
  gki_cuda_compiler compiler;
  gki_compiled image = {0};
  gki_begin();
  if (getenv("MANY")) give_long_log();
  if (gki_cuda_compiler_get(getenv("PTX") ? 91 : 90, 13000, &compiler) != GK_OK) return 1;
  gk_set_log(GK_LOG_WARN, print_log, NULL);
  gk_result result = gki_cuda_compile(&compiler, &cloth_text, &image);
  printf("%s: %s", gk_result_name(result), result == GK_OK ? (char *)image.bytes : gk_error());
  if (result != GK_OK && (image.bytes || image.size)) printf(" and an image");
  if (result == GK_OK && image.size != strlen(image.bytes) + 1) printf(" of a wrong size");
  gki_compiled_free(&image);
  gki_compiled_free(&image);
  gk_free_text(composed);
  return 0;
}

/* Without memory; NVRTC's own goes on. */
static void *alloc_nothing(UNUSED void *user, UNUSED size_t bytes) { return NULL; }
static void *resize_nothing(UNUSED void *user, UNUSED void *memory, UNUSED size_t bytes) { return NULL; }
static void free_nothing(UNUSED void *user, UNUSED void *memory) {}
static int starved(void) {
  const gki_unit cloth_text = {.text = "text", .file = "cloth"};
  gki_cuda_compiler compiler;
  gki_compiled image;
  gki_begin();
  if (gki_cuda_compiler_get(90, 13000, &compiler) != GK_OK) return 1;
  gk_allocator none = {NULL, alloc_nothing, resize_nothing, free_nothing};
  if (gk_set_allocator(&none) != GK_OK) return 1;
  gk_result result = gki_cuda_compile(&compiler, &cloth_text, &image);
  printf("%s: %s", gk_result_name(result), gk_error());
  return 0;
}

/* ---- the cases --------------------------------------------------------------------------------------------------- */

#define FAKES "fake_nvrtc/several"
#define N11 "FAKE_NVRTC_11=11080 35 52 70 75 80 86 90"
#define N12 "FAKE_NVRTC_12=12040 50 60 70 75 80 86 89 90"
#define N13 "FAKE_NVRTC_13=13000 75 80 86 89 90 100 120"
#define EIGHT "90 90 90 90 90 90 90 90 "
#define SIXTY_FOUR EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT
#define CHOOSE(libraries, settings, ...) {libraries, settings, "choose", {__VA_ARGS__}}
#define COMPILE(settings, ...) {FAKES, settings, "compile", {__VA_ARGS__}}
#define SET(...) {__VA_ARGS__}
#define SET_13(...) {N13, __VA_ARGS__}
static const elsewhere_case chosen[] = {
    CHOOSE(FAKES, SET(N13, N12, N11, "DEVICES=89 13000 89 12040 89 11040 120 12080 70 13000 35 13000 121 13000"),
           "NVRTC 13.0, cubin for sm_89\nNVRTC 12.4, cubin for sm_89\nNVRTC 11.8, cubin for sm_86\n"
           "NVRTC 12.4, PTX for compute_90\nNVRTC 12.4, cubin for sm_70\nNVRTC 11.8, cubin for sm_35\n"
           "NVRTC 13.0, PTX for compute_120\n", "$"),
    CHOOSE(FAKES, SET(N12, "DEVICES=89 13000 120 12040 89 12000 89 11080"),
           "NVRTC 12.4, cubin for sm_89\nNVRTC 12.4, PTX for compute_90\nNVRTC 12.4, cubin for sm_89\n"
           "NVRTC 12.4, cubin for sm_89?\n", "$"),
    CHOOSE(FAKES, SET(N13, N12, "DEVICES=89 11040"), "NVRTC 12.4, cubin for sm_89?\n", "$"),
    CHOOSE(FAKES, SET_13("DEVICES=60 12040"),
           "GK_ERROR_UNSUPPORTED: NVRTC 13.0 compiles for sm_75 to sm_120, and this GPU is sm_60 with a driver for "
           "CUDA 12.4; install"),
    CHOOSE(FAKES, SET("FAKE_NVRTC_0=13000 " SIXTY_FOUR, "DEVICES=90 13000"), "NVRTC 13.0, cubin for sm_90\n", "$"),
    /* Newer than gk: found by its plain name, if there is no other. */
    CHOOSE(FAKES, SET("FAKE_NVRTC_0=14010 80 90", "DEVICES=90 14010"), "NVRTC 14.1, cubin for sm_90\n", "$"),
    CHOOSE(FAKES, SET("FAKE_NVRTC_0=14010 80 90 100", N13, "DEVICES=103 14010"), "NVRTC 13.0, PTX for compute_100\n",
           "$")};

#define BROKEN "fake_nvrtc/broken"
#define HOME "CUDA_HOME=/nowhere"
#define DEVICE "DEVICES=90 13000"
#define NO_NVRTC "GK_ERROR_UNSUPPORTED: there is no NVRTC to compile kernels with ("
#define NO_GPUS NO_NVRTC "libnvrtc.so doesn't say for which GPUs it compiles "
static const elsewhere_case none[] = {
    CHOOSE(BROKEN, SET(HOME, DEVICE), NO_NVRTC "neither the loader nor /nowhere/lib64 has", "$CUDA_HOME",
           "$LD_LIBRARY_PATH"),
    CHOOSE(BROKEN, SET("CUDA_HOME=", "CUDA_PATH=/nowhere2", DEVICE), NO_NVRTC, "/nowhere2/"),
    CHOOSE(BROKEN, SET(HOME, "CUDA_PATH=/nowhere2", DEVICE), NO_NVRTC "neither the loader nor /nowhere/lib64 has"),
    CHOOSE(FAKES, SET("FAKE_NVRTC_0=13000 " SIXTY_FOUR "90", DEVICE), NO_GPUS "(no error, 65 of them)"),
    CHOOSE(FAKES, SET(DEVICE), NO_GPUS "(an NVRTC error, 0 of them)"),
    CHOOSE(FAKES, SET("FAKE_NVRTC_0=14000", DEVICE), NO_GPUS "(no error, 0 of them)"),
    CHOOSE(FAKES, SET("FAKE_NVRTC_0=14000 90", "FAKE_NVRTC_FAIL=nvrtcGetSupportedArchs:3", DEVICE), NO_GPUS),
    CHOOSE("fake_nvrtc/lacking", SET(HOME, "FAKE_NVRTC_13=13000 90", DEVICE),
           NO_NVRTC "libnvrtc.so.13 has no nvrtcGetCUBINSize); install")};

#define FAILS "FAKE_NVRTC_FAIL=nvrtc"
#define LOG "FAKE_NVRTC_LOG="
#define UNSUPPORTED "GK_ERROR_UNSUPPORTED: ", "an NVRTC error", "$"
#define DOES_NOT "doesn't compile (NVRTC 13.0, cubin for sm_90):\ncloth(3): error: e"
#define OUT_OF_MEMORY "GK_ERROR_MEMORY: out of host memory compiling cloth"
static const elsewhere_case compiled[] = {
    COMPILE(SET(N13), "GK_OK:  --gpu-architecture=sm_90", "$"),
    COMPILE(SET_13("PTX=1"), "GK_OK:  --gpu-architecture=compute_90", "$"),
    COMPILE(SET_13(LOG "(3): warning: w\n\n"),
            "log: cloth (NVRTC 13.0, cubin for sm_90):\ncloth(3): warning: w\nGK_OK:", "sm_90", "$"),
    COMPILE(SET_13(LOG "(3): error: e\n", FAILS "CompileProgram:6"), "GK_ERROR_COMPILE: cloth " DOES_NOT, "$"),
    COMPILE(SET_13(FAILS "CompileProgram:6"), "GK_ERROR_COMPILE: cloth doesn't compile"),
    COMPILE(SET_13(LOG " l", FAILS "CompileProgram:5"),
            "GK_ERROR_UNSUPPORTED: cloth can't be compiled (NVRTC 13.0, cubin for sm_90): an NVRTC error\ncloth l",
            "$"),
    COMPILE(SET_13(FAILS "CompileProgram:7"), UNSUPPORTED),
    COMPILE(SET_13(FAILS "CreateProgram:1"), OUT_OF_MEMORY),
    COMPILE(SET_13(FAILS "GetCUBINSize:2"), UNSUPPORTED),
    COMPILE(SET_13(FAILS "GetCUBIN:2"), UNSUPPORTED),
    COMPILE(SET_13("PTX=1", FAILS "GetPTX:2"), UNSUPPORTED),
    COMPILE(SET_13(FAILS "GetProgramLogSize:2"), "GK_OK: "),
    COMPILE(SET_13(FAILS "GetProgramLog:2"), "GK_OK: "),
    COMPILE(SET_13("OPTIONS= -DA=1  --use_fast_math\t-I/x "),
            "GK_OK:  --gpu-architecture=sm_90 -DA=1 --use_fast_math -I/x", "$"),
    /* If options name a GPU, the result is for that GPU, not for the device. */
    COMPILE(SET_13("OPTIONS=-DA -arch=compute_90", FAILS "GetCUBIN:2"), "GK_OK:  -DA -arch=compute_90", "$"),
    COMPILE(SET_13("OPTIONS=--gpu-architecture  compute_80 -DA", FAILS "GetCUBIN:2"),
            "GK_OK:  --gpu-architecture compute_80 -DA", "$"),
    COMPILE(SET_13("PTX=1", "OPTIONS=-arch sm_90", FAILS "GetPTX:2"), "GK_OK:  -arch sm_90", "$"),
    COMPILE(SET_13("OPTIONS=-architecture=x", FAILS "GetPTX:2"),
            "GK_OK:  --gpu-architecture=sm_90 -architecture=x", "$"),
    COMPILE(SET_13("KERNEL=scale", LOG "(3): error: e", FAILS "CompileProgram:6"),
            "GK_ERROR_COMPILE: kernel scale of cloth " DOES_NOT, "$"),
    /* As long as no message is. */
    COMPILE(SET_13("MANY=1", FAILS "CompileProgram:6"), "GK_ERROR_COMPILE: cloth " DOES_NOT "\n1 error", "$"),
    /* A composed text may go on with host code, and end with a hint. */
    COMPILE(SET_13("COMPOSED=#include <math.h>\n", LOG "(3): error: e", FAILS "CompileProgram:6"),
            "GK_ERROR_COMPILE: ", "(3): error: e\nits text has an #include: correct ",
            "or put GK_SOURCE_END above the", " host code", "$"),
    COMPILE(SET_13("COMPOSED=#include <math.h>\n", "MANY=1", FAILS "CompileProgram:6"), "GK_ERROR_COMPILE: ",
            "(3): error: e\n1 error\nits text has an #include: correct ", "above the host code", "$"),
    COMPILE(SET_13("COMPOSED=#if X\n#include <math.h>\n#endif\n//#include\nint include;\n", LOG "(3): error: e",
                   FAILS "CompileProgram:6"), "GK_ERROR_COMPILE: ", "(3): error: e", "$"),
    {FAKES, {N13}, "starved", {OUT_OF_MEMORY}}};

/* In a toolkit's folder that the loader doesn't know, with the second library beside it or without. */
#define IN_HOME "CUDA_HOME=build/tests/unit/cuda/fake_nvrtc/home"
#define BUILTINS "FAKE_NVRTC_BUILTINS=libnvrtc-builtins.so."
static const elsewhere_case in_a_folder[] = {
    {BROKEN, {IN_HOME, "FAKE_NVRTC_13=13990 75 80 90", BUILTINS "13.99"}, "compile",
     {"GK_OK:  --gpu-architecture=sm_90", "$"}},
    {BROKEN, {IN_HOME, "FAKE_NVRTC_13=13980 75 80 90", BUILTINS "13.98"}, "compile",
     {"GK_ERROR_UNSUPPORTED: cloth can't be compiled (NVRTC 13.98, cubin for sm_90): an NVRTC error\n"
      "failed to open libnvrtc-builtins.so.13.98", "$"}}};

TEST(the_best_for_a_device_is_chosen) { ELSEWHERE(chosen); }
TEST(missing_compiler_is_reported) { ELSEWHERE(none); }
TEST(nvrtc_failures_are_reported) { ELSEWHERE(compiled); }
TEST(second_library_is_found_beside_it) { ELSEWHERE(in_a_folder); }

/* ---- texts ------------------------------------------------------------------------------------------------------- */

TEST(texts_with_includes_are_found) {
  static const struct { bool wanted; const char *text, *options; } turns[] = {
      {1, "#include <x.h>", NULL}, {1, "\n  #  include \"x.h\"", NULL}, {1, "# /* odd */ include_next <x.h>", NULL},
      {1, "%:include <x.h>", NULL}, {1, "#if __has_include(<x.h>)\n#endif", NULL}, {1, "#\\\ninclude <x.h>", NULL},
      {1, "#import <x.h>", NULL}, {1, "#embed \"x\"", NULL}, {1, "#if __has_embed(\"x\")\n#endif", NULL},
      {1, "#include_next <x.h>", NULL}, {0, "", NULL}, {0, "int include;", NULL}, {0, "// #include <x.h>", NULL},
      {0, "/* #include <x.h> */", NULL}, {0, "#includes", NULL}, {0, "const char *s = \"#include <x.h>\";", NULL},
      {0, "", "-I/x --include-path=/y -DA"}, {0, "", ""}, {0, "", "-I/usr/include"}, {1, "", "-include=x.h"},
      {1, "", "--pre-include x.h"}, {1, "", "-I/include -include\tx.h"}, {1, "", "--pre-include\nx.h"},
      {1, "", "--use-pch=x"}};
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    const gki_unit unit = {.text = turns[k].text, .file = "a.cu", .options = turns[k].options};
    if (gki_unit_includes(&unit) != turns[k].wanted) fail_msg("%s with options %s", unit.text, unit.options);
  }
  assert_false(gki_unit_includes(&(gki_unit){.text = "#include <x.h>", .is_whole = true}));
}

TEST(texts_are_told_apart) {
  static const gki_unit each[] = {
      {.text = "#line 1 \"a/b.c\"\nint x;\n"}, {.text = "#line 1 \"c.c\"\nint x;\n"},
      {.text = "#line 2 \"a/b.c\"\nint x;\n"}, {.text = "#line 1 \"a/b.c\"\nint y;\n"},
      {.text = "#line 1 \"a/b.c\"\nint x;\n", .options = "-DA"}, {.text = "int x;\n-DA"}, {.text = "int x;\n"},
      {.text = "#line 1 \"a/b.c\"\nassert(1);\n"}, {.text = "#line 1 \"z/b.c\"\nassert(1);\n"},
      {.text = "#line 1 \"a/b.c\"\nsource_location x;\n"}, {.text = "#line 1 \"z/b.c\"\nsource_location x;\n"},
      {.text = "#line 1 \"a/b.c\"\n__FILE__;\n"}, {.text = "#line 1 \"z/b.c\"\n__FILE__;\n"},
      {.text = "#line 1 \"z/b.c\"\nint x;\n", .options = "-DA"},
      {.text = "#line 1 \"a/b.c\"\nint x;\n", .options = "-DB"},
      {.text = ""}};
  static const gki_unit moved = {.text = "#line 1 \"/another/place/b.c\"\nint x;\n"};
  uint64_t hash[GK_COUNT(each)][2], same[2];
  for (size_t k = 0; k < GK_COUNT(each); ++k) {
    assert_true(gki_unit_hash(&each[k], hash[k]));
    for (size_t m = 0; m < k; ++m)
      if (memcmp(hash[k], hash[m], sizeof hash[k]) == 0) fail_msg("%zu and %zu", k, m);
  }
  assert_true(gki_unit_hash(&moved, same));
  assert_memory_equal(same, hash[0], sizeof same);
  assert_false(gki_unit_hash(&(gki_unit){.text = "#include <x.h>"}, same));
  char *plain = gki_unit_plain(&(gki_unit){.text = "a\n#line 7 \"/x/y.h\"\n#line 8\nb \"/x/y\""});
  assert_string_equal(plain, "a\n#line 7 y.h\"\n#line 8\nb \"/x/y\"");
  gk_host_free(plain);
}

/* ---- a real one -------------------------------------------------------------------------------------------------- */

static gki_cuda_compiler real_compiler(void) {
  gki_cuda_compiler compiler;
  gki_begin();
  if (gki_cuda_compiler_get(90, NEWEST, &compiler) != GK_OK) {
    print_message("%s\n", gk_error());
    skip();
  }
  return compiler;
}

static bool image_has(const gki_compiled *image, const char *text) {
  return memmem(image->bytes, image->size, text, strlen(text)) != NULL;
}

static gki_compiled compile_scale(const gki_cuda_compiler *compiler) {
  gki_compiled image;
  char *text = gk_compose(&scale, "cuda");
  assert_non_null(text);
  assert_ok(gki_cuda_compile(compiler, &(gki_unit){.text = text, .file = "cloth"}, &image));
  gk_free_text(text);
  return image;
}

/* For every architecture that it knows, by the choice that a device of that architecture leads to. */
TEST(kernels_compile_for_each_architecture) {
  const gki_nvrtc *nvrtc = real_compiler().nvrtc;
  for (int k = 0; k < nvrtc->architecture_count; ++k) {
    gki_cuda_compiler compiler;
    assert_int_equal(gki_cuda_compiler_get(nvrtc->architectures[k], NEWEST, &compiler), GK_OK);
    assert_int_equal(compiler.architecture, nvrtc->architectures[k]);
    assert_false(compiler.is_ptx);
    gki_compiled image = compile_scale(&compiler);
    assert_memory_equal(image.bytes, "\177ELF", 4);
    assert_true(image_has(&image, ".text.scale") && image_has(&image, ".text.total"));
    gki_compiled_free(&image);
  }
}

TEST(ptx_names_its_architecture) {
  gki_cuda_compiler compiler = real_compiler();
  compiler.is_ptx = true;
  char target[32];
  snprintf(target, sizeof target, ".target sm_%d", compiler.architecture);
  gki_compiled image = compile_scale(&compiler);
  assert_true(image_has(&image, target) && image_has(&image, ".entry scale("));
  assert_int_equal(strlen(image.bytes) + 1, image.size);
  gki_compiled_free(&image);
}

/* The beginning and the rest of a real compiler's message about a wrong kernel. NULL: the text as it is composed. */
static const char *check_refusal(const gk_kernel *kernel, const char *text, const char *begin, const char *words) {
  gki_cuda_compiler compiler = real_compiler();
  gki_compiled image;
  char *composed = text ? NULL : gk_compose(kernel, "cuda");
  const gki_unit whole = {.text = text ? text : composed, .file = kernel->source->file, .kernel = kernel->name};
  assert_non_null(whole.text);
  gki_begin();
  assert_int_equal(gki_cuda_compile(&compiler, &whole, &image), GK_ERROR_COMPILE);
  assert_null(image.bytes);
  gk_free_text(composed);
  const char *said = gk_error();
  if (strncmp(said, begin, strlen(begin)) != 0) fail_msg("it doesn't begin with %s: %s", begin, said);
  assert_says(words);
  return said;
}

TEST(an_error_is_where_the_user_wrote_it) {
  char where[PATH_MAX], *text = gk_compose(&scale, "cuda");
  assert_non_null(text);
  memcpy(strstr(text, "y[i] *= a;"), "y[i] *= b;", strlen("y[i] *= b;"));
  snprintf(where, sizeof where, "%s(%d): error", scale.source->file, SCALE_LINE);
  assert_non_null(strstr(check_refusal(&scale, text, "", where), "\"b\""));
  gk_free_text(text);
}

#define IN_COMPOSED "kernel one of a/cloth.c doesn't compile (NVRTC "
TEST(errors_name_each_file) {
  static const char shared_text[] =
      "// host\nGK_SHARED(vec)\nGK_FN int half(int v) {\n  return w / 2;\n}\nGK_SOURCE_END\n";
  static const char right_text[] = "GK_SHARED(vec)\nGK_FN int half(int v) { return v / 2; }";
  static const char own_text[] =
      "// host\n\nGK_SOURCE(cloth, &vec)\nGK_KERNEL(one, (inout(int, x))) {\n  x[i] = half(x[i]);\n}\n"
      "GK_KERNEL(two, (inout(int, x))) {\n  x[i] = \n    odd(x[i]);\n}\n";
  static const gk_source vec = {"b/vec.h", shared_text, 2, NULL, 0, NULL, NULL},
                         right = {"b/right.h", right_text, 1, NULL, 0, NULL, NULL};
  static const gk_source *const uses[] = {&vec, &right};
  static const gk_param params[] = {{.name = "x", .element = "int", .element_bytes = 4, .element_alignment = 4,
                                     .type = GK_PTR, .access = GK_ACCESS_INOUT}};
  for (int turn = 0; turn < 2; ++turn) {
    const gk_source cloth_source = {"a/cloth.c", own_text, 3, &uses[turn], 1, NULL, NULL};
    const gk_kernel kernel = {.name = "one", .params = params, .param_count = 1, .source = &cloth_source};
    const char *said = check_refusal(&kernel, NULL, IN_COMPOSED, "a/cloth.c(9): error: ");
    assert_int_equal(strstr(said, "b/vec.h(4): error: ") != NULL, turn == 0);
    assert_null(strstr(said, "gk_kernel.h"));
  }
}

/* In macros where the macro is used; in handwritten code where its own #line directives say, for CUDA alone. */
TEST(errors_are_where_they_were_written) {
  static const struct { gk_source source; const char *kernel, *text, *begin, *words; } turns[] = {
      {{.file = "a/cloth.c", .text = "\n\nGK_KERNEL(one, (inout(int, x), in(flot, y))) {\n  x[i] = 1;\n}\n"}, "one",
       NULL, "", "a/cloth.c(3): error: "},
      {{.file = "its CUDA text"}, "mine", "extern \"C\" __global__ void mine(int *x) {\n  *x = y;\n}\n",
       "kernel mine of its CUDA text doesn't compile (NVRTC ", "its CUDA text(2): error: "},
      {{.file = "its CUDA text"}, "mine",
       "#line 40 \"mine.c\"\nextern \"C\" __global__ void mine(int *x) {\n  *x = y;\n}\n", "", "mine.c(41): error: "}};
  for (size_t k = 0; k < GK_COUNT(turns); ++k)
    check_refusal(&(gk_kernel){.name = turns[k].kernel, .source = &turns[k].source}, turns[k].text, turns[k].begin,
                  turns[k].words);
}

TEST(errors_outlast_many_warnings) {
  enum { WARNINGS = 500 };
  static char text[WARNINGS * 64];
  static const gk_source source = {.file = "many.cu"};
  size_t used = 0;
  for (int k = 0; k < WARNINGS; ++k)
    used += (size_t)snprintf(text + used, sizeof text - used, "__device__ void f%d() { int unused; }\n", k);
  snprintf(text + used, sizeof text - used, "int x = y;\n");
  check_refusal(&(gk_kernel){.name = "mine", .source = &source}, text, "", "many.cu(501): error: ");
}

int main(int count, char **words) {
  static const elsewhere_word known[] = {{"choose", choose}, {"compile", compile}, {"starved", starved}};
  int code;
  if (elsewhere_is_here(count, words, known, GK_COUNT(known), &code)) return code;
  return run_all_tests();
}
