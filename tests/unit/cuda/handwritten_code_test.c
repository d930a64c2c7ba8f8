/* Kernels with handwritten code on CUDA: the forms that their code may have, modules, options, and what gk refuses. */
#include "runtime/device.h"
#include "cuda/device.h"
#include "handwritten.h"

static bool is_old(void) { return atoi(VERSION) == 11; }

CODE(defined, int_params, .block = {1});
CODE(narrow, int_params, .block = {16, 2, 2});
CODE_AT(other, "look", int_params, "-DSAID=8", 0, .block = {32});
CODE_AT(said, "defined", int_params, "-DSAID=8", 0, .block = {1});
static const gk_code count_code = {.text = text, .options = SAID, .entry = "count_up", .block = {32}};
static const gk_kernel counting_kernel = {.name = "counting_kernel", .cuda = &count_code};

/* Kernels that name the same text are in one module; with other options, in another. */
TEST_ON_CUDA(test_modules_are_shared) {
  LIST(list, GK_RUN(counting_kernel, GK_ONE, 0), GK_RUN(look, GK_ONE, X), GK_RUN(other, GK_ONE, Y),
       GK_RUN(defined, GK_ONE, FLAG), GK_RUN(said, GK_ONE, LEFT));
  int *x = int_on(device, 99), *y = int_on(device, 99), *flag = int_on(device, 99), *left = int_on(device, 99);
  gk_graph *graph = NEW_GRAPH(device, &list, BITS, {X, x}, {Y, y}, {FLAG, flag}, {LEFT, left});
  run_to_end(graph, 0);
  run_to_end(graph, 0);
  ASSERT_VALUES({x, 2}, {y, 0}, {flag, 7}, {left, 8});
}

typedef struct compiled {
  void *image; /* PTX ends with a zero byte that isn't counted, as it isn't needed */
  size_t bytes;
} compiled;

/* By an NVRTC that is loaded already. */
static compiled compile_to(bool ptx) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
  const char *const options[] = {is_old() ? "-arch=sm_80" : "-arch=sm_90", "-DSAID=3"};
  compiled made = {0};
  made.image = compile_source(names[13 - atoi(VERSION)], text, options, 2, ptx, &made.bytes);
  if (ptx) --made.bytes;
  return made;
}

static gk_code image_code(const compiled *made) {
  return (gk_code){.image = made->image, .image_bytes = made->bytes, .entry = "add_to", .block = {32}};
}

/* A function of a module that the program loads itself. */
typedef struct loaded { CUcontext context; CUmodule module; CUfunction function; } loaded;

static loaded load(const void *image) {
  loaded l;
  RIGHT(cu.cuDevicePrimaryCtxRetain(&l.context, 0));
  RIGHT(cu.cuCtxPushCurrent(l.context));
  RIGHT(cu.cuModuleLoadDataEx(&l.module, image, 0, NULL, NULL));
  RIGHT(cu.cuModuleGetFunction(&l.function, l.module, "add_to"));
  return l;
}

static void unload(loaded *l) {
  RIGHT(cu.cuModuleUnload(l->module));
  RIGHT(cu.cuCtxPopCurrent(&l->context));
  RIGHT(cu.cuDevicePrimaryCtxRelease(0));
}

static void run_add(gk_device *device, const gk_code *code) {
  const gk_kernel kernel = {.name = "adds", .params = add_params, .param_count = 3, .cuda = code};
  const gk_task tasks[] = {GK_RUN(kernel, N, X, A, N)};
  const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, BITS);
  int *x = zeros(device, 40);
  gk_bind(graph, X, x);
  gk_bind_int(graph, N, 39);
  for (int a = 1; a < 3; ++a) {
    gk_bind_int(graph, A, a);
    run_to_end(graph, 0);
  }
  ASSERT_VALUES({x + 38, 3}, {x + 39, 0});
  gk_graph_destroy(graph);
}

static void close_now(gk_device *device, void **state) {
  gk_device_close(device);
  *state = NULL;
}

TEST_ON_CUDA(test_images) {
  const compiled made[2] = {compile_to(true), compile_to(false)};
  const gk_code codes[2] = {image_code(&made[0]), image_code(&made[1])};
  for (int k = 0; k < 2; ++k) run_add(device, &codes[k]);
  close_now(device, state); /* kernels live as long as the module */
  for (int k = 0; k < 2; ++k) free(made[k].image);
}

TEST_ON_CUDA(test_function) {
  const compiled made = compile_to(true);
  loaded l = load(made.image);
  run_add(device, &(gk_code){.function = l.function, .block = {32}});
  close_now(device, state);
  RIGHT(cu.cuModuleGetFunction(&l.function, l.module, "back")); /* it is still the caller's */
  unload(&l);
  free(made.image);
}

/* The GPU that the options name is used, not the device's. */
TEST_ON_CUDA(test_options) {
  const gk_code codes[] = {
    {.text = text, .options = "-DSAID=1 -arch=compute_80", .entry = "defined"},
    {.text = text, .options = is_old() ? "--gpu-architecture sm_80 -D SAID=2" : "--gpu-architecture sm_90a -D SAID=2",
     .entry = "defined"}};
  const gk_kernel kernels[] = {{.name = "one", .params = int_params, .param_count = 1, .cuda = &codes[0]},
                               {.name = "two", .params = int_params, .param_count = 1, .cuda = &codes[1]}};
  const gk_task tasks[] = {GK_RUN(kernels[0], GK_ONE, X), GK_RUN(kernels[1], GK_ONE, Y)};
  const gk_list list = GK_LIST(list, tasks, slots);
  int *x = int_on(device, 0), *y = int_on(device, 0);
  run_to_end(NEW_GRAPH(device, &list, BITS, {X, x}, {Y, y}), 0);
  ASSERT_VALUES({x, 1}, {y, 2});
  close_now(device, state); /* before its graph is destroyed */
}

static void refuse(gk_device *device, gk_code code, const gk_param *params, uint32_t count, gk_result result,
                   const char *words) {
  gk_graph *graph = NULL;
  const gk_kernel kernel = {.name = "refused", .params = params, .param_count = count, .cuda = &code};
  const gk_task tasks[] = {{.op = GK_OP_KERNEL, .name = "refused", .kernel = &kernel,
                            .args = {count > 0 ? X : 0, count > 1 ? A : 0, count > 2 ? N : 0, count > 3 ? B : 0}}};
  const gk_list list = GK_LIST(list, tasks, slots);
  const size_t alive = alive_but_memory();
  assert_fails(result, words, gk_graph_create(device, &list, BITS, &graph));
  assert_null(graph);
  assert_int_equal(alive_but_memory(), alive);
}

/* Of a module that was unloaded meanwhile. */
TEST_ON_CUDA(test_stray_function) {
  const compiled made = compile_to(true);
  loaded l = load(made.image);
  unload(&l);
  sim->allow("destroyed");
  refuse(device, (gk_code){.function = l.function}, add_params, 3, GK_ERROR_INVALID,
         "kernel refused: its .function is none of the device's context: ");
  sim->allow("");
  sim->forgive();
  free(made.image);
}

/* The result of creating a graph with this code, if the first call of the entry fails with that code. Each on a new
 * device, as loaded code stays on its device. */
static gk_result create_failing(gk_code code, const char *entry, CUresult failure) {
  const gk_kernel kernel = {.name = "failing", .params = add_params, .param_count = 3, .cuda = &code};
  const gk_task tasks[] = {GK_RUN(kernel, N, X, A, N)};
  const gk_list list = GK_LIST(list, tasks, slots);
  for (uint64_t k = 1;; ++k) {
    gk_device *device = open_named("cuda");
    gk_graph *graph = NULL;
    fail_call(k, failure);
    const gk_result result = gk_graph_create(device, &list, BITS, &graph);
    const char *failed = failed_call();
    gk_graph_destroy(graph);
    gk_device_close(device);
    if (!failed) fail_msg("nothing calls %s", entry);
    if (strcmp(failed, entry) == 0) return result;
  }
}

/* Which answers of the driver mean that the code is wrong, and which that the driver failed. */
TEST_ON_CUDA(test_answers) {
  static const CUresult of_image[] = {CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_INVALID_PTX,
                                      CUDA_ERROR_UNSUPPORTED_PTX_VERSION};
  static const CUresult of_function[] = {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE,
                                         CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_NOT_FOUND};
  close_now(device, state);
  setenv("GK_CUDA_PROBE", "0", 1); /* there are many devices to open */
  const compiled made = compile_to(false);
  loaded l = load(made.image);
  const gk_code image = image_code(&made), by_function = {.function = l.function, .block = {32}};
  for (size_t k = 0; k < GK_COUNT(of_image); ++k)
    assert_fails(GK_ERROR_COMPILE, "kernel failing: the driver, for CUDA " VERSION ", doesn't take its image for this",
                 create_failing(image, "cuModuleLoadDataEx", of_image[k]));
  assert_fails(GK_ERROR_DEVICE, "cuModuleLoadDataEx of the image of kernel failing: ",
               create_failing(image, "cuModuleLoadDataEx", CUDA_ERROR_UNKNOWN));
  for (size_t k = 0; k < GK_COUNT(of_function); ++k) {
    assert_invalid("kernel failing: its .function is none of the device's context: ",
                 create_failing(by_function, "cuFuncGetAttribute", of_function[k]));
    assert_fails(GK_ERROR_DEVICE, "cuFuncGetAttribute of kernel failing: ",
                 create_failing(image, "cuFuncGetAttribute", of_function[k]));
  }
  assert_fails(GK_ERROR_DEVICE, "cuFuncGetAttribute of kernel failing: ",
               create_failing(by_function, "cuFuncGetAttribute", CUDA_ERROR_UNKNOWN));
  if (cu.cuFuncGetParamInfo)
    assert_fails(GK_ERROR_DEVICE, "cuFuncGetParamInfo of kernel failing: ",
                 create_failing(image, "cuFuncGetParamInfo", CUDA_ERROR_UNKNOWN));
  unload(&l);
  unsetenv("GK_CUDA_PROBE");
  free(made.image);
}

/* The simulated driver doesn't count the static shared memory of kernels. */
enum { FIXED = 1024 };
static CUresult add_fixed(int *value, CUfunction_attribute attribute, CUfunction function) {
  const CUresult result = cu.cuFuncGetAttribute(value, attribute, function);
  if (attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) *value = FIXED;
  return result;
}

/* As many threads as launch bounds allow, and as much shared memory as the GPU has, but no more. */
TEST_ON_CUDA(test_largest_blocks) {
  static const char shared_text[] = "extern \"C\" __global__ void both(int *to) { if (threadIdx.x == 0) to[0] = 2; }";
  static gki_cuda_driver odd;
  gki_cuda_device *native = device->state;
  const gki_cuda_driver *right = native->driver;
  odd = *right;
  odd.cuFuncGetAttribute = add_fixed;
  native->driver = &odd;
  const unsigned most = is_old() ? 163 << 10 : 227 << 10; /* of sm_80, of sm_90 */
  const gk_code both_code = {.text = shared_text, .entry = "both", .block = {32}, .shared_bytes = most - FIXED};
  const gk_kernel both = {.name = "both", .params = int_params, .param_count = 1, .cuda = &both_code};
  const gk_task tasks[] = {GK_RUN(narrow, GK_ONE, X), GK_RUN(both, GK_ONE, Y)};
  const gk_list list = GK_LIST(list, tasks, slots);
  int *x = int_on(device, 0), *y = int_on(device, 0);
  run_to_end(NEW_GRAPH(device, &list, BITS, {X, x}, {Y, y}), 0);
  ASSERT_VALUES({x, 1}, {y, 2});
  discard_all();
  gk_code more = both_code;
  more.shared_bytes += 1;
  char words[200];
  snprintf(words, sizeof words, "its blocks take %u bytes of shared memory, %u of them dynamic, and this GPU gives a "
           "block %u", most + 1, most + 1 - FIXED, most);
  refuse(device, more, int_params, 1, GK_ERROR_INVALID, words);
  native->driver = right;
}

TEST_ON_CUDA(test_refused) {
#define INT_VALUE(name) {name, NULL, 4, 4, GK_I32, GK_ACCESS_VALUE}
#define TEXT(name) .text = text, .options = SAID, .entry = name
  static const gk_param few[] = {{"x", NULL, 4, 4, GK_PTR, GK_ACCESS_INOUT}, INT_VALUE("a"), INT_VALUE("n"),
                                 INT_VALUE("b")};
  static const struct { gk_code code; uint32_t params; gk_result result; const char *words; } cases[] = {
    {{TEXT("add_to")}, 2, GK_ERROR_INVALID,
     "kernel refused: it says that it has 2 parameters, and its code takes more"},
    {{TEXT("add_to")}, 4, GK_ERROR_INVALID, "its code takes 3 parameters, so there is none for b"},
    {{TEXT("all_kinds")}, 4, GK_ERROR_INVALID, "its parameter b has 4 bytes, and its code takes 8 there"},
    {{TEXT("absent")}, 3, GK_ERROR_COMPILE, "kernel refused: its code has no entry absent; declare it extern"},
    {{TEXT(NULL)}, 3, GK_ERROR_COMPILE, "no entry refused"},
    {{TEXT("narrow"), .block = {65}}, 1, GK_ERROR_INVALID, "its blocks have 65 threads, and its code can have 64"},
    {{TEXT("back"), .block = {32}, .shared_bytes = 400000}, 1, GK_ERROR_INVALID,
     "its blocks take 400000 bytes of shared memory"},
    {{.text = "int a = 1;\n#line 41 \"cloth.cu\"\nextern int b = ;"}, 0, GK_ERROR_COMPILE, "cloth.cu(41): error"},
    {{.text = "int a = ;"}, 0, GK_ERROR_COMPILE, "gk_code.text(1): error"},
    {{.text = "int a;", .options = "-frobnicate"}, 0, GK_ERROR_UNSUPPORTED, "unrecognized option -frobnicate"}};
  for (size_t k = cu.cuFuncGetParamInfo ? 0 : 3; k < GK_COUNT(cases); ++k) /* which older drivers don't know */
    refuse(device, cases[k].code, few, cases[k].params, cases[k].result, cases[k].words);
}

static void refuse_image(gk_device *device, const void *image, size_t bytes, const char *words) {
  refuse(device, (gk_code){.image = image, .image_bytes = bytes}, NULL, 0, GK_ERROR_COMPILE, words);
}

TEST_ON_CUDA(test_refused_images) {
  static const char ptx[] = ".version 99.0\n.target sm_50\n", short_elf[] = "\177ELF\2\1\1";
  refuse_image(device, ptx, sizeof ptx - 1, "kernel refused: the driver, for CUDA " VERSION ", doesn't take its image");
  assert_says("CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
  assert_says("and says: the PTX is of version 99.0");
  refuse_image(device, (const unsigned char[]){1, 2, 3}, 3, "CUDA_ERROR_INVALID_IMAGE");
  refuse_image(device, short_elf, sizeof short_elf, "its image, of 8 bytes, ends before its headers say");
  static const char ends[] = "ends before its headers say", not_taken[] = "doesn't take its image";
  static const struct { unsigned char at, value; const char *words; } changes[] = { /* each on top of those before */
    {6, 1, "is no code for this kind of GPU"},
    {18, 190, NULL},  /* e_machine */
    {0x28, 0x60, NULL}, /* e_shoff */
    {0x3c, 1, ends},    /* e_shnum */
    {0x28, 0x40, NULL},
    {0x40 + 4, 1, NULL},     /* sh_type */
    {0x40 + 0x20, 200, ends}, /* sh_size */
    {0x40 + 4, 8, not_taken}, /* SHT_NOBITS, which has no bytes there */
    {0x20, 0x49, NULL}, /* e_phoff */
    {0x36, 0x38, NULL}, /* e_phentsize */
    {0x38, 1, ends},    /* e_phnum */
    {0x20, 0x48, not_taken}};
  unsigned char elf[128] = {0x7f, 'E', 'L', 'F', 2, 1};
  for (size_t k = 0; k < GK_COUNT(changes); ++k) {
    elf[changes[k].at] = changes[k].value;
    if (changes[k].words) refuse_image(device, elf, sizeof elf, changes[k].words);
  }
  static const unsigned char fatbin[17] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 1};
  refuse_image(device, fatbin, 15, "of 15 bytes, ends before");
  refuse_image(device, fatbin, 16, "of 16 bytes, ends before");
  refuse_image(device, fatbin, 17, not_taken);
}

/* Where gk has no kernels of its own, as there is no image and no compiler, images and functions work, except for that
 * empty one. */
TEST_ON_CUDA(test_without_compiler) {
  if (!is_old()) return;
  close_now(device, state);
  const compiled made = compile_to(true);
  set_nvrtc("none");
  device = open_named("cuda");
  const gk_code code = image_code(&made);
  run_add(device, &code);
  const gk_kernel kernel = {.name = "image", .params = add_params, .param_count = 3, .cuda = &code};
  const gk_task tasks[] = {GK_RUN(kernel, N, X, A, N)};
  const gk_list list = GK_LIST(list, tasks, slots);
  int *x = int_on(device, 0);
  gk_graph *graph = NEW_GRAPH(device, &list, BITS, {X, x});
  BIND_INTS(graph, {N, 0}, {A, 1});
  assert_fails(GK_ERROR_UNSUPPORTED, "task 0 (kernel): it has no items", waited_for(graph, 0));
  gk_bind_int(graph, N, 1);
  run_to_end(graph, 0);
  ASSERT_VALUES({x, 1});
  discard_all();
  gk_device_close(device);
  set_nvrtc("13.0,12.4,11.4");
  free(made.image);
}

/* A lack of memory isn't taken for a lack of COPY and FILL, which the compiler makes for such drivers. */
TEST_ON_CUDA(test_no_memory_for_copies) {
  if (!is_old()) return;
  close_now(device, state);
  const char *failed = "";
  for (uint64_t k = 1; strcmp(failed, "cuModuleLoadDataEx") != 0; ++k) {
    gk_device *opened = NULL;
    fail_call(k, CUDA_ERROR_OUT_OF_MEMORY);
    const gk_result result = gk_device_open(&(gk_device_desc){.backend = "cuda"}, &opened);
    failed = failed_call();
    gk_device_close(opened);
    if (!failed) fail_msg("nothing loads a module");
    if (strcmp(failed, "cuModuleLoadDataEx") == 0) assert_int_equal(result, GK_ERROR_MEMORY);
  }
}

/* Their grids are made on the host. */
TEST_ON_CUDA(test_refused_items) {
  LIST(list, GK_RUN(down, FLAG, X));
  gk_graph *graph = NULL;
  assert_invalid("task 0 (down): its number of items along x is read on the device, from slot 7 (FLAG)",
               gk_graph_create(device, &list, BITS, &graph));
  assert_int_equal(gk_check(&list, "cuda", NULL, NULL), GK_ERROR_INVALID);
  assert_int_equal(gk_check(&list, "openmp", NULL, NULL), GK_ERROR_INVALID);
  assert_says("the kernel down has no code for openmp");
}

int main(UNUSED int count, char **words) { return run_handwritten(words); }
