/* Handwritten GLSL and SPIR-V on Vulkan. Skipped where there is no Vulkan device, or no compiler. */
#include "unit/support/test.h"
#include "gk_kernel.h"
#include "kernel/cache.h"
#include "vulkan/compile.h"
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern const unsigned char handwritten_text[], handwritten_code[]; /* of handwritten.comp; SPIR-V, or the same text */
extern const size_t handwritten_code_bytes;

typedef struct line { float a; int b; } line;
enum { N = 1, X, SCALE, BY, SHIFT, FLAG, FIRST = 1, LENGTH = 100 };
static const gk_param params[] = {{"n", "int", 4, 4, GK_I32, GK_ACCESS_VALUE},
                                  {"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT},
                                  {"scale", "float", 4, 4, GK_F32, GK_ACCESS_VALUE},
                                  {"by", "line", sizeof(line), 4, GK_BYTES, GK_ACCESS_VALUE},
                                  {"shift", "int", 4, 4, GK_I32, GK_ACCESS_VALUE}};
static const gk_slot_desc slots[] = {GK_SCALAR(N, int), GK_BUFFER(X, int),      GK_DEFAULT(SCALE, float, 2.0f),
                                     GK_STRUCT_VALUE(BY, line), GK_DEFAULT(SHIFT, int, 1), GK_OWN(FLAG, int, 1)};

static gk_device *open_vulkan(void) {
  gk_device *device;
  const gk_result result = gk_device_open(&(gk_device_desc){.backend = "vulkan"}, &device);
  if (result == GK_ERROR_NO_DEVICE || handwritten_code[0] == '#') skip();
  assert_ok(result);
  return device;
}

/* Of LENGTH numbers, the first n become 2 * 10 + 5 + 6 + shift, by a list whose checkpoint yields if it has run. */
static void check_list(gk_device *device, const gk_list *list, uint32_t bits) {
  static const struct { int n, shift; } launches[] = {{LENGTH, 1}, {LENGTH, 1}, {33, 7}, {0, 7}, {LENGTH - 1, 7}};
  const line by = {5.0f, 6};
  gk_graph *graph;
  int have[LENGTH];
  void *x = gk_alloc(device, sizeof have, GK_DEVICE_MEMORY), *y = gk_alloc(device, sizeof have, GK_DEVICE_MEMORY);
  assert_ok(gk_graph_create(device, list, bits, &graph));
  assert_ok(gk_bind_bytes(graph, BY, &by, sizeof by));
  for (size_t k = 0; k < GK_COUNT(launches); ++k) {
    for (int i = 0; i < LENGTH; ++i) have[i] = 10;
    void *memory = k % 2 ? y : x;
    const gk_status *status;
    assert_ok(gk_upload(device, memory, have, sizeof have));
    assert_ok(gk_bind(graph, X, memory));
    assert_ok(gk_bind_int(graph, N, launches[k].n));
    assert_ok(gk_bind_int(graph, SHIFT, launches[k].shift));
    assert_ok(gk_launch(graph, 0));
    assert_ok(gk_wait(graph, &status));
    assert_int_equal(status->yielded, FIRST);
    assert_ok(gk_download(device, have, memory, sizeof have));
    for (int i = 0; i < LENGTH; ++i)
      if (have[i] != (i < launches[k].n ? 31 + launches[k].shift : 10))
        fail_msg("launch %zu: number %d is %d", k, i, have[i]);
  }
  gk_graph_destroy(graph);
  gk_free(device, x);
  gk_free(device, y);
}

static void check_both(const gk_kernel *kernel) {
  const gk_task tasks[] = {GK_FILL(FLAG, GK_ONE, 1), GK_CHECKPOINT(FIRST, FLAG),
                           GK_RUN(*kernel, N, N, X, SCALE, BY, SHIFT), GK_END,
                           GK_RUN(*kernel, N, N, X, SCALE, BY, SHIFT)};
  const gk_list list = GK_LIST(list, tasks, slots);
  gk_device *device = open_vulkan();
  check_list(device, &list, 0);
  check_list(device, &list, GK_HOST_GATED);
  gk_device_close(device);
}

TEST(text) {
  const gk_code code = {.text = (const char *)handwritten_text, .block = {32}};
  const gk_kernel kernel = {.name = "by_text", .params = params, .param_count = GK_COUNT(params), .vulkan = &code};
  check_both(&kernel);
}

TEST(image) {
  const gk_code code = {.image = handwritten_code, .image_bytes = handwritten_code_bytes, .entry = "main"};
  const gk_kernel kernel = {.name = "by_image", .params = params, .param_count = GK_COUNT(params), .vulkan = &code};
  check_both(&kernel);
}

static void check_refused(gk_device *device, gk_code code, gk_result result, const char *says) {
  const gk_kernel kernel = {.name = "wrong", .params = params, .param_count = GK_COUNT(params), .vulkan = &code};
  const gk_task tasks[] = {GK_RUN(kernel, N, N, X, SCALE, BY, SHIFT)};
  const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph;
  assert_fails(result, says, gk_graph_create(device, &list, 0, &graph));
}

TEST(code_that_can_not_run) {
  const char *text = (const char *)handwritten_text;
  const size_t bytes = handwritten_code_bytes;
  gk_device *device = open_vulkan();
  check_refused(device, (gk_code){.text = text, .block = {64}}, GK_ERROR_INVALID,
                "kernel wrong: its .block says 64 along x, and its shader's local size is 32");
  check_refused(device, (gk_code){.text = text, .entry = "start"}, GK_ERROR_COMPILE, "has no compute shader start");
  check_refused(device, (gk_code){.text = "#version 460\nvoid main() { x = 1; }\n"}, GK_ERROR_COMPILE,
                "kernel wrong doesn't compile");
  check_refused(device, (gk_code){.image = handwritten_code, .image_bytes = bytes - 4}, GK_ERROR_COMPILE, "is cut off");
  check_refused(device, (gk_code){.image = handwritten_code, .image_bytes = bytes - 1}, GK_ERROR_COMPILE, "is cut off");
  check_refused(device, (gk_code){.image = text, .image_bytes = 64}, GK_ERROR_COMPILE, "is no SPIR-V");
  check_refused(device, (gk_code){.text = text, .options = "-O"}, GK_ERROR_INVALID, "write #define into .text");
  check_refused(device, (gk_code){.text = text, .shared_bytes = 4}, GK_ERROR_INVALID, "declare `shared` memory");
  check_refused(device, (gk_code){.function = device}, GK_ERROR_INVALID, "which Vulkan doesn't have");
  gk_device_close(device);
}

TEST(descriptors_are_refused) {
  static const struct { const char *declared, *used, *where; } all[] = {
    {"layout(set = 1, binding = 2, scalar) buffer data { int x[]; };", "x[0] = 1;", "set 1, binding 2"},
    {"layout(binding = 5, scalar) uniform data { int x; };", "if (x == 0) return;", "set 0, binding 5"},
    {"layout(binding = 1, r32ui) uniform uimage2D to;", "imageStore(to, ivec2(0), uvec4(1));", "set 0, binding 1"},
    {"layout(set = 3, binding = 0) uniform sampler2D from;", "if (texelFetch(from, ivec2(0), 0).x == 0.0) return;",
     "set 3, binding 0"}};
  gk_device *device = open_vulkan();
  for (size_t k = 0; k < GK_COUNT(all); ++k) {
    char text[1000], message[200];
    snprintf(text, sizeof text, "#version 460\n#extension GL_EXT_scalar_block_layout : require\n"
             "layout(local_size_x = 1) in;\n%s\nvoid main() { %s }\n", all[k].declared, all[k].used);
    snprintf(message, sizeof message, "kernel wrong: its code declares a buffer, image or sampler (%s), and gk binds "
             "none; declare parameters in layout(push_constant, scalar)", all[k].where);
    check_refused(device, (gk_code){.text = text}, GK_ERROR_COMPILE, message);
  }
  gk_device_close(device);
}

TEST(text_needs_a_compiler) {
  gk_device *device = open_vulkan();
  char *path = strdup(getenv("PATH"));
  setenv("PATH", "/nowhere", 1);
  check_refused(device, (gk_code){.text = (const char *)handwritten_text}, GK_ERROR_UNSUPPORTED,
                "kernel wrong can't be compiled: neither glslangValidator nor glslc is in PATH");
  setenv("PATH", path, 1);
  free(path);
  gk_device_close(device);
}

static void make_tool(const char *folder, const char *name, const char *text) {
  char path[100];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
  assert_int_equal(chmod(path, 0700), 0);
}

static void remove_tool(const char *folder, const char *name) {
  char path[100];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_int_equal(remove(path), 0);
}

/* The other compiler is a script that says something and writes no SPIR-V. */
TEST(compilers_that_can_not_be_started) {
  const gk_code code = {.text = (const char *)handwritten_text};
  char folder[] = "/tmp/gk_tools_XXXXXX", *path = strdup(getenv("PATH"));
  gk_device *device = open_vulkan();
  assert_non_null(mkdtemp(folder));
  make_tool(folder, "glslangValidator", "#!/nowhere/interpreter\n");
  setenv("PATH", folder, 1);
  check_refused(device, code, GK_ERROR_UNSUPPORTED, "/glslangValidator can't be started (No such file or directory)");
  make_tool(folder, "glslc", "#!/bin/sh\necho the other one\n");
  check_refused(device, code, GK_ERROR_COMPILE, "/glslc):\nthe other one");
  remove_tool(folder, "glslangValidator");
  struct rlimit most, none;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &most), 0);
  none = (struct rlimit){3, most.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  check_refused(device, code, GK_ERROR_MEMORY, "no process for ");
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &most), 0);
  remove_tool(folder, "glslc");
  assert_int_equal(rmdir(folder), 0);
  setenv("PATH", path, 1);
  free(path);
  gk_device_close(device);
}

/* SPIR-V that is kept for the same text and compiler, but not for the compiler's arguments, as another gk may give
 * others. The compiler is a script that says something and writes no SPIR-V. */
TEST(spirv_of_other_arguments) {
  char folder[] = "/tmp/gk_kept_XXXXXX", tool[100], *path = strdup(getenv("PATH")), *cache = getenv("GK_CACHE");
  const char *const text = (const char *)handwritten_text, *const define = GKI_VULKAN_WITHOUT_DOUBLES;
  const uint32_t words[] = {GKI_SPIRV_MAGIC, 0x00010500, 0, 1, 0};
  uint32_t *found = NULL;
  size_t bytes;
  void *kept = NULL;
  struct stat file;
  cache = cache ? strdup(cache) : NULL;
  assert_non_null(mkdtemp(folder));
  make_tool(folder, "glslangValidator", "#!/bin/sh\necho compiled anew\n");
  snprintf(tool, sizeof tool, "%s/glslangValidator", folder);
  assert_int_equal(stat(tool, &file), 0);
  setenv("GK_CACHE", folder, 1);
  const gki_cache_part parts[] = {{text, strlen(text)}, {define, strlen(define)}, {tool, strlen(tool)},
                                  {&file.st_size, sizeof file.st_size}, {&file.st_mtim, sizeof file.st_mtim}};
  const gki_cache_key key = gki_cache_key_of(parts, GK_COUNT(parts));
  gki_cache_keep(&key, words, sizeof words);
  const bool is_kept = gki_cache_find(&key, &kept, &bytes);
  setenv("PATH", folder, 1);
  assert_fails(GK_ERROR_COMPILE, "compiled anew", gki_vulkan_compile("kernel kept", text, define, &found, &bytes));
  setenv("PATH", path, 1);
  if (cache) setenv("GK_CACHE", cache, 1);
  else unsetenv("GK_CACHE");
  gk_host_free(kept);
  free(cache);
  free(path);
  char clean[100];
  snprintf(clean, sizeof clean, "rm -r %s", folder);
  assert_int_equal(system(clean), 0);
  if (!is_kept) skip(); /* without xxHash */
}

/* The shader needs StorageBuffer16BitAccess, which gk enables where the device has it. */
TEST(numbers_of_16_bits) {
  static const gk_code code = {.text = "#version 460\n#extension GL_EXT_buffer_reference : require\n"
                                       "#extension GL_EXT_scalar_block_layout : require\n"
                                       "#extension GL_EXT_shader_16bit_storage : require\n"
                                       "layout(local_size_x = 1) in;\n"
                                       "layout(buffer_reference, scalar) buffer shorts { uint16_t at[]; };\n"
                                       "layout(push_constant, scalar) uniform parameters { shorts x; };\n"
                                       "void main() { x.at[1] = uint16_t(7u); }\n"};
  static const gk_kernel kernel = {.name = "set_short", .params = &params[1], .param_count = 1, .vulkan = &code};
  static const gk_task tasks[] = {GK_RUN(kernel, GK_ONE, X)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_device *device = open_vulkan();
  gk_graph *graph;
  const gk_result result = gk_graph_create(device, &list, 0, &graph);
  if (result == GK_ERROR_UNSUPPORTED) {
    assert_says("kernel set_short: it needs numbers of 16 bits in memory (storageBuffer16BitAccess), and ");
  } else {
    int number = 5, *x = gk_alloc(device, sizeof *x, GK_DEVICE_MEMORY);
    assert_ok(result);
    assert_ok(gk_upload(device, x, &number, sizeof number));
    assert_ok(gk_bind(graph, X, x));
    assert_ok(gk_launch(graph, 0));
    assert_ok(gk_wait(graph, NULL));
    assert_ok(gk_download(device, &number, x, sizeof number));
    assert_int_equal(number, (7 << 16) + 5);
    gk_graph_destroy(graph);
    gk_free(device, x);
  }
  gk_device_close(device);
}

TEST(parameters_are_128_bytes_at_most) {
  static const gk_param large[] = {{"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT},
                                   {"by", "rest", 124, 4, GK_BYTES, GK_ACCESS_VALUE}};
  static const gk_code code = {.image = handwritten_code, .image_bytes = 4};
  static const gk_kernel kernel = {.name = "large", .params = large, .param_count = GK_COUNT(large), .vulkan = &code};
  static const gk_slot_desc these[] = {GK_BUFFER(1, int),
                                       {.slot = 2, .type = GK_BYTES, .name = "by", .element = "rest",
                                        .element_bytes = 124}};
  static const gk_task tasks[] = {GK_RUN(kernel, GK_ONE, 1, 2)};
  static const gk_list list = GK_LIST(list, tasks, these);
  gk_device *device = open_vulkan();
  gk_graph *graph;
  assert_fails(GK_ERROR_INVALID, "has more than 128 bytes of parameters", gk_graph_create(device, &list, 0, &graph));
  gk_device_close(device);
}

TEST(too_many_workgroups) {
  static const gk_code code = {.text = (const char *)handwritten_text, .per_block = {1}};
  static const gk_kernel kernel = {.name = "wide", .params = params, .param_count = GK_COUNT(params), .vulkan = &code};
  static const gk_task tasks[] = {GK_RUN(kernel, N, N, X, SCALE, BY, SHIFT)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_device *device = open_vulkan();
  gk_graph *graph;
  const line by = {0};
  int *x = gk_alloc(device, 65536 * sizeof *x, GK_DEVICE_MEMORY);
  assert_ok(gk_graph_create(device, &list, 0, &graph));
  assert_ok(gk_bind_bytes(graph, BY, &by, sizeof by));
  assert_ok(gk_bind(graph, X, x));
  assert_ok(gk_bind_int(graph, N, 65536));
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_INVALID, "task 0 (kernel): 65536 blocks along x, by slot 1 (N), and a grid has at most 65535",
               gk_wait(graph, NULL));
  assert_ok(gk_bind_int(graph, N, 65535));
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  gk_graph_destroy(graph);
  gk_free(device, x);
  gk_device_close(device);
}

int main(void) { return run_all_tests(); }
