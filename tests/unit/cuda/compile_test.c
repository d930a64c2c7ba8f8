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

enum { NEWEST = 99000 }; /* a driver that takes whatever there is */

static const gki_nvrtc nvrtc_11_8 = {.version = 11080, .architectures = {35, 52, 70, 75, 80, 86, 87, 89, 90},
                                     .architecture_count = 9};
static const gki_nvrtc nvrtc_12_4 = {.version = 12040, .architectures = {50, 60, 70, 75, 80, 86, 89, 90},
                                     .architecture_count = 8};
static const gki_nvrtc nvrtc_13_0 = {.version = 13000, .architectures = {75, 80, 86, 89, 90, 100, 103, 120},
                                     .architecture_count = 8};

/* The better ones rank higher; 0 can't be used. */
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
    printf("%s%s%s", result == GK_OK ? said : gk_result_name(result), result == GK_OK ? "" : ": ",
           result == GK_OK ? compiler.may_be_refused ? "?\n" : "\n" : gk_error());
  }
  return 0;
}

static void print_log(void *user, gk_log_level level, const char *line) {
  (void)user;
  if (level == GK_LOG_WARN) printf("log: %s\n", line);
}

/* More warnings than a message has room for, and an error behind them. */
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
static void *alloc_nothing(void *user, size_t bytes) {
  (void)user, (void)bytes;
  return NULL;
}
static void *resize_nothing(void *user, void *memory, size_t bytes) {
  (void)user, (void)memory, (void)bytes;
  return NULL;
}
static void free_nothing(void *user, void *memory) { (void)user, (void)memory; }
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
static const elsewhere_case chosen[] = {
    {FAKES, {N13, N12, N11, "DEVICES=89 13000 89 12040 89 11040 120 12080 70 13000 35 13000 121 13000"}, "choose",
     {"NVRTC 13.0, cubin for sm_89\nNVRTC 12.4, cubin for sm_89\nNVRTC 11.8, cubin for sm_86\n"
      "NVRTC 12.4, PTX for compute_90\nNVRTC 12.4, cubin for sm_70\nNVRTC 11.8, cubin for sm_35\n"
      "NVRTC 13.0, PTX for compute_120\n", "$"}},
    {FAKES, {N12, "DEVICES=89 13000 120 12040 89 12000 89 11080"}, "choose",
     {"NVRTC 12.4, cubin for sm_89\nNVRTC 12.4, PTX for compute_90\nNVRTC 12.4, cubin for sm_89\n"
      "NVRTC 12.4, cubin for sm_89?\n", "$"}},
    {FAKES, {N13, N12, "DEVICES=89 11040"}, "choose", {"NVRTC 12.4, cubin for sm_89?\n", "$"}},
    {FAKES, {N13, "DEVICES=60 12040"}, "choose",
     {"GK_ERROR_UNSUPPORTED: NVRTC 13.0 compiles for sm_75 to sm_120, and this GPU is sm_60 with a driver for CUDA "
      "12.4; install"}},
    {FAKES, {"FAKE_NVRTC_0=13000 " SIXTY_FOUR, "DEVICES=90 13000"}, "choose", {"NVRTC 13.0, cubin for sm_90\n", "$"}},
    /* Newer than gk: found by its plain name, if there is no other. */
    {FAKES, {"FAKE_NVRTC_0=14010 80 90", "DEVICES=90 14010"}, "choose", {"NVRTC 14.1, cubin for sm_90\n", "$"}},
    {FAKES, {"FAKE_NVRTC_0=14010 80 90 100", N13, "DEVICES=103 14010"}, "choose",
     {"NVRTC 13.0, PTX for compute_100\n", "$"}},
};

#define NO_NVRTC "GK_ERROR_UNSUPPORTED: there is no NVRTC to compile kernels with ("
static const elsewhere_case none[] = {
    {"fake_nvrtc/broken", {"CUDA_HOME=/nowhere", "DEVICES=90 13000"}, "choose",
     {NO_NVRTC "neither the loader nor /nowhere/lib64 has", "$CUDA_HOME", "$LD_LIBRARY_PATH"}},
    {"fake_nvrtc/broken", {"CUDA_HOME=", "CUDA_PATH=/nowhere2", "DEVICES=90 13000"}, "choose",
     {NO_NVRTC, "/nowhere2/"}},
    {"fake_nvrtc/broken", {"CUDA_HOME=/nowhere", "CUDA_PATH=/nowhere2", "DEVICES=90 13000"}, "choose",
     {NO_NVRTC "neither the loader nor /nowhere/lib64 has"}},
    {FAKES, {"FAKE_NVRTC_0=13000 " SIXTY_FOUR "90", "DEVICES=90 13000"}, "choose",
     {NO_NVRTC "libnvrtc.so doesn't say for which GPUs it compiles (no error, 65 of them)"}},
    {FAKES, {"DEVICES=90 13000"}, "choose",
     {NO_NVRTC "libnvrtc.so doesn't say for which GPUs it compiles (an NVRTC error, 0 of them)"}},
    {FAKES, {"FAKE_NVRTC_0=14000", "DEVICES=90 13000"}, "choose",
     {NO_NVRTC "libnvrtc.so doesn't say for which GPUs it compiles (no error, 0 of them)"}},
    {FAKES, {"FAKE_NVRTC_0=14000 90", "FAKE_NVRTC_FAIL=nvrtcGetSupportedArchs:3", "DEVICES=90 13000"}, "choose",
     {NO_NVRTC "libnvrtc.so doesn't say for which GPUs"}},
    {"fake_nvrtc/lacking", {"CUDA_HOME=/nowhere", "FAKE_NVRTC_13=13000 90", "DEVICES=90 13000"}, "choose",
     {NO_NVRTC "libnvrtc.so.13 has no nvrtcGetCUBINSize); install"}},
};

static const elsewhere_case compiled[] = {
    {FAKES, {N13}, "compile", {"GK_OK:  --gpu-architecture=sm_90", "$"}},
    {FAKES, {N13, "PTX=1"}, "compile", {"GK_OK:  --gpu-architecture=compute_90", "$"}},
    {FAKES, {N13, "FAKE_NVRTC_LOG=(3): warning: w\n\n"}, "compile",
     {"log: cloth (NVRTC 13.0, cubin for sm_90):\ncloth(3): warning: w\nGK_OK:", "sm_90", "$"}},
    {FAKES, {N13, "FAKE_NVRTC_LOG=(3): error: e\n", "FAKE_NVRTC_FAIL=nvrtcCompileProgram:6"}, "compile",
     {"GK_ERROR_COMPILE: cloth doesn't compile (NVRTC 13.0, cubin for sm_90):\ncloth(3): error: e", "$"}},
    {FAKES, {N13, "FAKE_NVRTC_FAIL=nvrtcCompileProgram:6"}, "compile", {"GK_ERROR_COMPILE: cloth doesn't compile"}},
    {FAKES, {N13, "FAKE_NVRTC_LOG= l", "FAKE_NVRTC_FAIL=nvrtcCompileProgram:5"}, "compile",
     {"GK_ERROR_UNSUPPORTED: cloth can't be compiled (NVRTC 13.0, cubin for sm_90): an NVRTC error\ncloth l", "$"}},
    {FAKES, {N13, "FAKE_NVRTC_FAIL=nvrtcCompileProgram:7"}, "compile",
     {"GK_ERROR_UNSUPPORTED: ", "an NVRTC error", "$"}},
    {FAKES, {N13, "FAKE_NVRTC_FAIL=nvrtcCreateProgram:1"}, "compile",
     {"GK_ERROR_MEMORY: out of host memory compiling cloth"}},
    {FAKES, {N13, "FAKE_NVRTC_FAIL=nvrtcGetCUBINSize:2"}, "compile", {"GK_ERROR_UNSUPPORTED: ", "an NVRTC error", "$"}},
    {FAKES, {N13, "FAKE_NVRTC_FAIL=nvrtcGetCUBIN:2"}, "compile", {"GK_ERROR_UNSUPPORTED: ", "an NVRTC error", "$"}},
    {FAKES, {N13, "PTX=1", "FAKE_NVRTC_FAIL=nvrtcGetPTX:2"}, "compile", {"GK_ERROR_UNSUPPORTED: ", "error", "$"}},
    {FAKES, {N13, "FAKE_NVRTC_FAIL=nvrtcGetProgramLogSize:2"}, "compile", {"GK_OK: "}},
    {FAKES, {N13, "FAKE_NVRTC_FAIL=nvrtcGetProgramLog:2"}, "compile", {"GK_OK: "}},
    {FAKES, {N13, "OPTIONS= -DA=1  --use_fast_math\t-I/x "}, "compile",
     {"GK_OK:  --gpu-architecture=sm_90 -DA=1 --use_fast_math -I/x", "$"}},
    /* Options that name a GPU say what is made, whatever the compiler was chosen for. */
    {FAKES, {N13, "OPTIONS=-DA -arch=compute_90", "FAKE_NVRTC_FAIL=nvrtcGetCUBIN:2"}, "compile",
     {"GK_OK:  -DA -arch=compute_90", "$"}},
    {FAKES, {N13, "OPTIONS=--gpu-architecture  compute_80 -DA", "FAKE_NVRTC_FAIL=nvrtcGetCUBIN:2"}, "compile",
     {"GK_OK:  --gpu-architecture compute_80 -DA", "$"}},
    {FAKES, {N13, "PTX=1", "OPTIONS=-arch sm_90", "FAKE_NVRTC_FAIL=nvrtcGetPTX:2"}, "compile",
     {"GK_OK:  -arch sm_90", "$"}},
    {FAKES, {N13, "OPTIONS=-architecture=x", "FAKE_NVRTC_FAIL=nvrtcGetPTX:2"}, "compile",
     {"GK_OK:  --gpu-architecture=sm_90 -architecture=x", "$"}},
    {FAKES, {N13, "KERNEL=scale", "FAKE_NVRTC_LOG=(3): error: e", "FAKE_NVRTC_FAIL=nvrtcCompileProgram:6"}, "compile",
     {"GK_ERROR_COMPILE: kernel scale of cloth doesn't compile (NVRTC 13.0, cubin for sm_90):\ncloth(3): error: e",
      "$"}},
    /* As long as no message is. */
    {FAKES, {N13, "MANY=1", "FAKE_NVRTC_FAIL=nvrtcCompileProgram:6"}, "compile",
     {"GK_ERROR_COMPILE: cloth doesn't compile (NVRTC 13.0, cubin for sm_90):\ncloth(3): error: e\n1 error", "$"}},
    /* A composed text may go on with host code, and end with a hint. */
    {FAKES, {N13, "COMPOSED=#include <math.h>\n", "FAKE_NVRTC_LOG=(3): error: e",
             "FAKE_NVRTC_FAIL=nvrtcCompileProgram:6"}, "compile",
     {"GK_ERROR_COMPILE: ", "(3): error: e\nits text has an #include: mend ", "or put GK_SOURCE_END above the",
      " host code", "$"}},
    {FAKES, {N13, "COMPOSED=#include <math.h>\n", "MANY=1", "FAKE_NVRTC_FAIL=nvrtcCompileProgram:6"}, "compile",
     {"GK_ERROR_COMPILE: ", "(3): error: e\n1 error\nits text has an #include: mend ", "above the host code", "$"}},
    {FAKES, {N13, "COMPOSED=#if X\n#include <math.h>\n#endif\n//#include\nint include;\n",
             "FAKE_NVRTC_LOG=(3): error: e", "FAKE_NVRTC_FAIL=nvrtcCompileProgram:6"}, "compile",
     {"GK_ERROR_COMPILE: ", "(3): error: e", "$"}},
    {FAKES, {N13}, "starved", {"GK_ERROR_MEMORY: out of host memory compiling cloth"}},
};

/* In a toolkit's folder that the loader doesn't know, with the second library beside it or without. */
#define IN_HOME "CUDA_HOME=build/tests/unit/cuda/fake_nvrtc/home"
#define BUILTINS(version) "FAKE_NVRTC_BUILTINS=libnvrtc-builtins.so." version
static const elsewhere_case in_a_folder[] = {
    {"fake_nvrtc/broken", {IN_HOME, "FAKE_NVRTC_13=13990 75 80 90", BUILTINS("13.99")}, "compile",
     {"GK_OK:  --gpu-architecture=sm_90", "$"}},
    {"fake_nvrtc/broken", {IN_HOME, "FAKE_NVRTC_13=13980 75 80 90", BUILTINS("13.98")}, "compile",
     {"GK_ERROR_UNSUPPORTED: cloth can't be compiled (NVRTC 13.98, cubin for sm_90): an NVRTC error\n"
      "failed to open libnvrtc-builtins.so.13.98", "$"}},
};

TEST(the_best_for_a_device_is_chosen) { ELSEWHERE(chosen); }
TEST(that_there_is_none_is_said) { ELSEWHERE(none); }
TEST(what_nvrtc_answers_is_told) { ELSEWHERE(compiled); }
TEST(it_gets_the_library_beside_it) { ELSEWHERE(in_a_folder); }

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static bool includes(const char *text, const char *options) {
  return gki_unit_includes(&(gki_unit){.text = text, .file = "a.cu", .options = options});
}

TEST(what_includes_files_is_known) {
  static const char *const yes[] = {"#include <x.h>", "\n  #  include \"x.h\"", "# /* odd */ include_next <x.h>",
                                    "%:include <x.h>", "#if __has_include(<x.h>)\n#endif", "#\\\ninclude <x.h>",
                                    "#import <x.h>",
                                    "#embed \"x\"", "#if __has_embed(\"x\")\n#endif", "#include_next <x.h>"};
  static const char *const no[] = {"", "int include;", "// #include <x.h>", "/* #include <x.h> */", "#includes",
                                   "const char *s = \"#include <x.h>\";"};
  for (size_t k = 0; k < GK_COUNT(yes); ++k)
    if (!includes(yes[k], NULL)) fail_msg("%s", yes[k]);
  for (size_t k = 0; k < GK_COUNT(no); ++k)
    if (includes(no[k], NULL)) fail_msg("%s", no[k]);
  assert_false(includes("", "-I/x --include-path=/y -DA"));
  assert_false(includes("", ""));
  assert_true(includes("", "-include=x.h"));
  assert_true(includes("", "--pre-include x.h"));
  assert_true(includes("", "-I/include -include\tx.h"));
  assert_true(includes("", "--pre-include\nx.h"));
  assert_false(includes("", "-I/usr/include"));
  assert_true(includes("", "--use-pch=x"));
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

/* For every architecture that it knows, through the choice that a device of it would lead to. */
TEST(kernels_compile_for_each_architecture) {
  const gki_nvrtc *nvrtc = real_compiler().nvrtc;
  char *text = gk_compose(&scale, "cuda");
  assert_non_null(text);
  const gki_unit composed = {.text = text, .file = "cloth"};
  for (int k = 0; k < nvrtc->architecture_count; ++k) {
    gki_cuda_compiler compiler;
    gki_compiled image;
    assert_int_equal(gki_cuda_compiler_get(nvrtc->architectures[k], NEWEST, &compiler), GK_OK);
    assert_int_equal(compiler.architecture, nvrtc->architectures[k]);
    assert_false(compiler.is_ptx);
    if (gki_cuda_compile(&compiler, &composed, &image) != GK_OK) fail_msg("%s", gk_error());
    assert_memory_equal(image.bytes, "\177ELF", 4);
    assert_true(image_has(&image, ".text.scale"));
    assert_true(image_has(&image, ".text.total"));
    gki_compiled_free(&image);
  }
  gk_free_text(text);
}

TEST(ptx_names_its_architecture) {
  gki_cuda_compiler compiler = real_compiler();
  compiler.is_ptx = true;
  gki_compiled image;
  char target[32];
  snprintf(target, sizeof target, ".target sm_%d", compiler.architecture);
  char *text = gk_compose(&scale, "cuda");
  assert_non_null(text);
  const gki_unit composed = {.text = text, .file = "cloth"};
  if (gki_cuda_compile(&compiler, &composed, &image) != GK_OK) fail_msg("%s", gk_error());
  assert_true(image_has(&image, target));
  assert_true(image_has(&image, ".entry scale("));
  assert_int_equal(strlen(image.bytes) + 1, image.size);
  gki_compiled_free(&image);
  gk_free_text(text);
}

TEST(an_error_is_where_the_user_wrote_it) {
  gki_cuda_compiler compiler = real_compiler();
  gki_compiled image;
  char where[PATH_MAX], *text = gk_compose(&scale, "cuda");
  assert_non_null(text);
  const gki_unit composed = {.text = text, .file = "cloth"};
  memcpy(strstr(text, "y[i] *= a;"), "y[i] *= b;", strlen("y[i] *= b;"));
  gki_begin();
  assert_int_equal(gki_cuda_compile(&compiler, &composed, &image), GK_ERROR_COMPILE);
  snprintf(where, sizeof where, "%s(%d): error", scale.source->file, SCALE_LINE);
  if (!strstr(gk_error(), where) || !strstr(gk_error(), "\"b\"")) fail_msg("no %s in: %s", where, gk_error());
  assert_null(image.bytes);
  gk_free_text(text);
}

/* What a real one says of a kernel whose text isn't right. It is the thread's message. */
static const char *refusal_of(const gk_kernel *kernel, const char *text) {
  gki_cuda_compiler compiler = real_compiler();
  gki_compiled image;
  const gki_unit whole = {.text = text, .file = kernel->source->file, .kernel = kernel->name};
  gki_begin();
  assert_int_equal(gki_cuda_compile(&compiler, &whole, &image), GK_ERROR_COMPILE);
  assert_null(image.bytes);
  return gk_error();
}

static void assert_begins(const char *text, const char *words) {
  if (strncmp(text, words, strlen(words)) != 0) fail_msg("it doesn't begin with %s: %s", words, text);
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
  static const gk_source *const uses[] = {&vec}, *const right_uses[] = {&right};
  static const gk_param params[] = {{.name = "x", .element = "int", .element_bytes = 4, .element_alignment = 4,
                                     .type = GK_PTR, .access = GK_ACCESS_INOUT}};
  gk_source cloth_source = {"a/cloth.c", own_text, 3, uses, 1, NULL, NULL};
  const gk_kernel kernel = {.name = "one", .params = params, .param_count = 1, .source = &cloth_source};
  for (int turn = 0; turn < 2; ++turn) {
    if (turn == 1) cloth_source.uses = right_uses;
    char *text = gk_compose(&kernel, "cuda");
    assert_non_null(text);
    const char *said = refusal_of(&kernel, text);
    assert_begins(said, IN_COMPOSED);
    assert_int_equal(strstr(said, "b/vec.h(4): error: ") != NULL, turn == 0);
    if (!strstr(said, "a/cloth.c(9): error: ") || strstr(said, "gk_kernel.h")) fail_msg("%s", said);
    gk_free_text(text);
  }
}

TEST(errors_in_macros_are_where_they_were_used) {
  static const char text[] = "\n\nGK_KERNEL(one, (inout(int, x), in(flot, y))) {\n  x[i] = 1;\n}\n";
  static const gk_source source = {"a/cloth.c", text, 0, NULL, 0, NULL, NULL};
  static const gk_kernel kernel = {.name = "one", .source = &source};
  char *composed = gk_compose(&kernel, "cuda");
  assert_non_null(composed);
  const char *said = refusal_of(&kernel, composed);
  if (!strstr(said, "a/cloth.c(3): error: ")) fail_msg("%s", said);
  gk_free_text(composed);
}

/* By hand, for CUDA alone: its own #line directives count. */
TEST(errors_of_texts_by_hand) {
  static const gk_source source = {.file = "its CUDA text"};
  static const gk_kernel kernel = {.name = "mine", .source = &source};
  static const char text[] = "extern \"C\" __global__ void mine(int *x) {\n  *x = y;\n}\n";
  static const char lines[] = "#line 40 \"mine.c\"\nextern \"C\" __global__ void mine(int *x) {\n  *x = y;\n}\n";
  const char *said = refusal_of(&kernel, text);
  assert_begins(said, "kernel mine of its CUDA text doesn't compile (NVRTC ");
  if (!strstr(said, "its CUDA text(2): error: ")) fail_msg("%s", said);
  said = refusal_of(&kernel, lines);
  if (!strstr(said, "mine.c(41): error: ")) fail_msg("%s", said);
}

TEST(errors_outlast_many_warnings) {
  enum { WARNINGS = 500 };
  static char text[WARNINGS * 64];
  static const gk_source source = {.file = "many.cu"};
  static const gk_kernel kernel = {.name = "mine", .source = &source};
  size_t used = 0;
  for (int k = 0; k < WARNINGS; ++k)
    used += (size_t)snprintf(text + used, sizeof text - used, "__device__ void f%d() { int unused; }\n", k);
  snprintf(text + used, sizeof text - used, "int x = y;\n");
  const char *said = refusal_of(&kernel, text);
  if (!strstr(said, "many.cu(501): error: ")) fail_msg("%s", said);
}

int main(int count, char **words) {
  static const elsewhere_word known[] = {
      {"choose", choose}, {"compile", compile}, {"starved", starved}};
  int code;
  if (elsewhere_is_here(count, words, known, GK_COUNT(known), &code)) return code;
  return run_all_tests();
}
