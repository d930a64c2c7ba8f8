/* Kernels with code by hand on CUDA: the forms that their code may have, modules, options, and what is refused. */
#include "runtime/device.h"
#include "cuda/device.h"
#include "handwritten.h"
#include "simgpu/simnvrtc.h"

CODE(defined, int_params, .block = {1});
static const gk_code count_code = {.text = text, .options = "-DSAID=7", .entry = "count_up", .block = {32}};
static const gk_kernel counting_kernel = {.name = "counting_kernel", .cuda = &count_code};

static CUresult (*module_load)(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                               void **values);
static CUresult (*module_unload)(CUmodule module);
static CUresult (*module_function)(CUfunction *function, CUmodule module, const char *name);
static CUresult (*context_retain)(CUcontext *context, CUdevice device);
static CUresult (*context_release)(CUdevice device);
static CUresult (*context_push)(CUcontext context);
static CUresult (*context_pop)(CUcontext *context);
static bool tells_parameters;

static void find_entries(void) {
  CUresult (*find)(const char *name, void **entry, int version, cuuint64_t flags);
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *unused;
  *(void **)&find = dlsym(library, "cuGetProcAddress");
  CUresult result = find("cuModuleLoadDataEx", (void **)&module_load, 2010, 0);
  if (result == CUDA_SUCCESS) result = find("cuModuleUnload", (void **)&module_unload, 2000, 0);
  if (result == CUDA_SUCCESS) result = find("cuModuleGetFunction", (void **)&module_function, 2000, 0);
  if (result == CUDA_SUCCESS) result = find("cuDevicePrimaryCtxRetain", (void **)&context_retain, 7000, 0);
  if (result == CUDA_SUCCESS) result = find("cuDevicePrimaryCtxRelease", (void **)&context_release, 11000, 0);
  if (result == CUDA_SUCCESS) result = find("cuCtxPushCurrent", (void **)&context_push, 4000, 0);
  if (result == CUDA_SUCCESS) result = find("cuCtxPopCurrent", (void **)&context_pop, 4000, 0);
  if (result != CUDA_SUCCESS) abort();
  tells_parameters = find("cuFuncGetParamInfo", &unused, 12040, 0) == CUDA_SUCCESS && unused;
}

/* ---- modules and forms of code ----------------------------------------------------------------------------------- */

/* Kernels that name the same text are of one module; with other options, of another. */
TEST_ON_CUDA(test_modules_are_shared) {
  static const gk_code other_code = {.text = text, .options = "-DSAID=8", .entry = "look", .block = {32}},
                       said_code = {.text = text, .options = "-DSAID=8", .entry = "defined", .block = {1}};
  static const gk_kernel other = {.name = "other", .params = int_params, .param_count = 1, .cuda = &other_code},
                         said = {.name = "said", .params = int_params, .param_count = 1, .cuda = &said_code};
  static const gk_task tasks[] = {GK_RUN(counting_kernel, GK_ONE, 0), GK_RUN(look, GK_ONE, X), GK_RUN(other, GK_ONE, Y),
                                  GK_RUN(defined, GK_ONE, FLAG), GK_RUN(said, GK_ONE, LEFT)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list);
  for (gk_slot slot = X; slot <= LEFT; ++slot)
    if (slot < N || slot > LINE) gk_bind(graph, slot, int_on(device, 99));
  run_from(graph, 0);
  run_from(graph, 0);
  assert_int_equal(int_at(device, gk_bound(graph, X)), 2);
  assert_int_equal(int_at(device, gk_bound(graph, Y)), 0);
  assert_int_equal(int_at(device, gk_bound(graph, FLAG)), 7);
  assert_int_equal(int_at(device, gk_bound(graph, LEFT)), 8);
  gk_graph_destroy(graph);
}

typedef struct compiled { void *image; size_t bytes; } compiled;

/* By an NVRTC that is loaded already. */
static compiled compile_to(bool ptx) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
  const int major = atoi(VERSION);
  void *library = dlopen(names[13 - major], RTLD_NOW | RTLD_LOCAL);
#define RTC(type, name, parameters) type(*name) parameters; *(void **)&name = dlsym(library, #name);
  GKI_NVRTC_ENTRIES(RTC)
#undef RTC
  (void)nvrtcGetErrorString; (void)nvrtcVersion; (void)nvrtcGetNumSupportedArchs; (void)nvrtcGetSupportedArchs;
  (void)nvrtcGetProgramLogSize; (void)nvrtcGetProgramLog;
  nvrtcProgram program;
  const char *const options[] = {major == 11 ? "-arch=sm_80" : "-arch=sm_90", "-DSAID=3"};
  compiled made = {0};
  assert_int_equal(nvrtcCreateProgram(&program, text, "text", 0, NULL, NULL), NVRTC_SUCCESS);
  assert_int_equal(nvrtcCompileProgram(program, 2, options), NVRTC_SUCCESS);
  assert_int_equal((ptx ? nvrtcGetPTXSize : nvrtcGetCUBINSize)(program, &made.bytes), NVRTC_SUCCESS);
  made.image = malloc(made.bytes);
  assert_int_equal((ptx ? nvrtcGetPTX : nvrtcGetCUBIN)(program, made.image), NVRTC_SUCCESS);
  assert_int_equal(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
  if (ptx) --made.bytes; /* its end isn't needed */
  return made;
}

static void run_add(gk_device *device, const gk_kernel *kernel) {
  const gk_task tasks[] = {GK_RUN(*kernel, N, X, A, N)};
  const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list);
  int *x = zeros(device, 40);
  gk_bind(graph, X, x);
  gk_bind_int(graph, N, 39);
  for (int a = 1; a < 3; ++a) {
    gk_bind_int(graph, A, a);
    run_from(graph, 0);
  }
  assert_int_equal(int_at(device, x + 38), 3);
  assert_int_equal(int_at(device, x + 39), 0);
  gk_graph_destroy(graph);
}

TEST_ON_CUDA(test_images) {
  compiled made[2] = {compile_to(true), compile_to(false)};
  gk_code codes[2];
  gk_kernel kernels[2];
  for (int k = 0; k < 2; ++k) {
    codes[k] = (gk_code){.image = made[k].image, .image_bytes = made[k].bytes, .entry = "add_to", .block = {32}};
    kernels[k] = (gk_kernel){.name = "image", .params = add_params, .param_count = 3, .cuda = &codes[k]};
    run_add(device, &kernels[k]);
  }
  gk_device_close(device); /* kernels live as long as it does */
  *state = NULL;
  free(made[0].image);
  free(made[1].image);
}

TEST_ON_CUDA(test_function) {
  compiled made = compile_to(true);
  CUcontext context;
  CUmodule module;
  CUfunction function;
  assert_int_equal(context_retain(&context, 0), CUDA_SUCCESS);
  assert_int_equal(context_push(context), CUDA_SUCCESS);
  char *whole = calloc(made.bytes + 1, 1);
  memcpy(whole, made.image, made.bytes);
  assert_int_equal(module_load(&module, whole, 0, NULL, NULL), CUDA_SUCCESS);
  assert_int_equal(module_function(&function, module, "add_to"), CUDA_SUCCESS);
  const gk_code code = {.function = function, .block = {32}};
  const gk_kernel kernel = {.name = "function", .params = add_params, .param_count = 3, .cuda = &code};
  run_add(device, &kernel);
  gk_device_close(device);
  *state = NULL;
  assert_int_equal(module_function(&function, module, "back"), CUDA_SUCCESS); /* it is still the caller's */
  assert_int_equal(module_unload(module), CUDA_SUCCESS);
  assert_int_equal(context_pop(&context), CUDA_SUCCESS);
  assert_int_equal(context_release(0), CUDA_SUCCESS);
  free(whole);
  free(made.image);
}

/* The GPU that the options say goes before the device's. */
TEST_ON_CUDA(test_options) {
  const bool is_old = atoi(VERSION) == 11;
  const gk_code codes[] = {
    {.text = text, .options = is_old ? "-DSAID=1 -arch=compute_80" : "-DSAID=1 -arch=compute_80", .entry = "defined"},
    {.text = text, .options = is_old ? "--gpu-architecture sm_80 -D SAID=2" : "--gpu-architecture sm_90a -D SAID=2",
     .entry = "defined"}};
  const gk_kernel kernels[] = {{.name = "one", .params = int_params, .param_count = 1, .cuda = &codes[0]},
                               {.name = "two", .params = int_params, .param_count = 1, .cuda = &codes[1]}};
  const gk_task tasks[] = {GK_RUN(kernels[0], GK_ONE, X), GK_RUN(kernels[1], GK_ONE, Y)};
  const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list);
  gk_bind(graph, X, int_on(device, 0));
  gk_bind(graph, Y, int_on(device, 0));
  run_from(graph, 0);
  assert_int_equal(int_at(device, gk_bound(graph, X)), 1);
  assert_int_equal(int_at(device, gk_bound(graph, Y)), 2);
  gk_device_close(device);
  gk_graph_destroy(graph);
  *state = NULL;
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

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

/* A module's that was unloaded meanwhile. */
TEST_ON_CUDA(test_stray_function) {
  compiled made = compile_to(true);
  CUcontext context;
  CUmodule module;
  CUfunction function;
  assert_int_equal(context_retain(&context, 0), CUDA_SUCCESS);
  assert_int_equal(context_push(context), CUDA_SUCCESS);
  char *whole = calloc(made.bytes + 1, 1);
  memcpy(whole, made.image, made.bytes);
  assert_int_equal(module_load(&module, whole, 0, NULL, NULL), CUDA_SUCCESS);
  assert_int_equal(module_function(&function, module, "add_to"), CUDA_SUCCESS);
  assert_int_equal(module_unload(module), CUDA_SUCCESS);
  assert_int_equal(context_pop(&context), CUDA_SUCCESS);
  assert_int_equal(context_release(0), CUDA_SUCCESS);
  sim->allow("destroyed");
  refuse(device, (gk_code){.function = function}, add_params, 3, GK_ERROR_INVALID,
         "kernel refused: its .function is none of the device's context: ");
  sim->allow("");
  sim->forgive();
  free(whole);
  free(made.image);
}

/* What the creation of a graph with this code comes to whose first call of the entry fails so. On a new device each
 * time, as code stays where it was made ready. */
static gk_result create_failing(gk_code code, const char *entry, CUresult failure) {
  const gk_kernel kernel = {.name = "failing", .params = add_params, .param_count = 3, .cuda = &code};
  const gk_task tasks[] = {GK_RUN(kernel, N, X, A, N)};
  const gk_list list = GK_LIST(list, tasks, slots);
  for (uint64_t k = 1;; ++k) {
    gk_device *device = open_named("cuda");
    gk_graph *graph = NULL;
    sim->mark();
    (sim->fail)(k, failure, SIMGPU_NOW);
    const gk_result result = gk_graph_create(device, &list, BITS, &graph);
    const char *failed = sim->failed();
    sim->mark();
    gk_graph_destroy(graph);
    gk_device_close(device);
    if (!failed) fail_msg("nothing calls %s", entry);
    if (strcmp(failed, entry) == 0) return result;
  }
}

/* Which answers of the driver's say that the code is wrong, and which are failures of the driver's. */
TEST_ON_CUDA(test_answers) {
  static const CUresult of_image[] = {CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_INVALID_PTX,
                                      CUDA_ERROR_UNSUPPORTED_PTX_VERSION};
  static const CUresult of_function[] = {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE,
                                         CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_NOT_FOUND};
  gk_device_close(device);
  *state = NULL;
  setenv("GK_CUDA_PROBE", "0", 1); /* there are many devices to open */
  compiled made = compile_to(false);
  CUcontext context;
  CUmodule module;
  CUfunction function;
  assert_int_equal(context_retain(&context, 0), CUDA_SUCCESS);
  assert_int_equal(context_push(context), CUDA_SUCCESS);
  assert_int_equal(module_load(&module, made.image, 0, NULL, NULL), CUDA_SUCCESS);
  assert_int_equal(module_function(&function, module, "add_to"), CUDA_SUCCESS);
  const gk_code image = {.image = made.image, .image_bytes = made.bytes, .entry = "add_to", .block = {32}},
                by_function = {.function = function, .block = {32}};
  for (size_t k = 0; k < GK_COUNT(of_image); ++k)
    assert_fails(GK_ERROR_COMPILE, "kernel failing: the driver, for CUDA " VERSION ", doesn't take its image for this",
                 create_failing(image, "cuModuleLoadDataEx", of_image[k]));
  assert_fails(GK_ERROR_DEVICE, "cuModuleLoadDataEx of the image of kernel failing: ",
               create_failing(image, "cuModuleLoadDataEx", CUDA_ERROR_UNKNOWN));
  for (size_t k = 0; k < GK_COUNT(of_function); ++k) {
    assert_fails(GK_ERROR_INVALID, "kernel failing: its .function is none of the device's context: ",
                 create_failing(by_function, "cuFuncGetAttribute", of_function[k]));
    assert_fails(GK_ERROR_DEVICE, "cuFuncGetAttribute of kernel failing: ",
                 create_failing(image, "cuFuncGetAttribute", of_function[k]));
  }
  assert_fails(GK_ERROR_DEVICE, "cuFuncGetAttribute of kernel failing: ",
               create_failing(by_function, "cuFuncGetAttribute", CUDA_ERROR_UNKNOWN));
  if (tells_parameters)
    assert_fails(GK_ERROR_DEVICE, "cuFuncGetParamInfo of kernel failing: ",
                 create_failing(image, "cuFuncGetParamInfo", CUDA_ERROR_UNKNOWN));
  assert_int_equal(module_unload(module), CUDA_SUCCESS);
  assert_int_equal(context_pop(&context), CUDA_SUCCESS);
  assert_int_equal(context_release(0), CUDA_SUCCESS);
  unsetenv("GK_CUDA_PROBE");
  free(made.image);
}

/* The simulated driver doesn't count shared memory that kernels have by themselves. */
enum { FIXED = 1024 };
static CUresult (*get_attribute)(int *value, CUfunction_attribute attribute, CUfunction function);
static CUresult add_fixed(int *value, CUfunction_attribute attribute, CUfunction function) {
  const CUresult result = get_attribute(value, attribute, function);
  if (attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) *value = FIXED;
  return result;
}

/* As many threads as launch bounds allow, and as much shared memory as the GPU has: no more. */
TEST_ON_CUDA(test_largest_blocks) {
  static const char shared_text[] = "extern \"C\" __global__ void both(int *to) { if (threadIdx.x == 0) to[0] = 2; }";
  gki_cuda_device *native = device->state;
  static gki_cuda_driver odd;
  const gki_cuda_driver *right = native->driver;
  odd = *right;
  get_attribute = right->cuFuncGetAttribute;
  odd.cuFuncGetAttribute = add_fixed;
  native->driver = &odd;
  const unsigned most = atoi(VERSION) == 11 ? 163 << 10 : 227 << 10; /* of sm_80, of sm_90 */
  gk_code code = {.text = text, .options = "-DSAID=7", .entry = "narrow", .block = {16, 2, 2}};
  const gk_kernel narrow = {.name = "narrow", .params = int_params, .param_count = 1, .cuda = &code};
  const gk_code both_code = {.text = shared_text, .entry = "both", .block = {32}, .shared_bytes = most - FIXED};
  const gk_kernel both = {.name = "both", .params = int_params, .param_count = 1, .cuda = &both_code};
  const gk_task tasks[] = {GK_RUN(narrow, GK_ONE, X), GK_RUN(both, GK_ONE, Y)};
  const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list);
  gk_bind(graph, X, int_on(device, 0));
  gk_bind(graph, Y, int_on(device, 0));
  run_from(graph, 0);
  assert_int_equal(int_at(device, gk_bound(graph, X)), 1);
  assert_int_equal(int_at(device, gk_bound(graph, Y)), 2);
  gk_graph_destroy(graph);
  gk_code more = both_code;
  more.shared_bytes += 1;
  refuse(device, more, int_params, 1, GK_ERROR_INVALID, "bytes of shared memory, ");
  char words[200];
  snprintf(words, sizeof words, "its blocks take %u bytes of shared memory, %u of them dynamic, and this GPU gives a "
           "block %u", most + 1, most + 1 - FIXED, most);
  assert_says(words);
  native->driver = right;
}

TEST_ON_CUDA(test_refused) {
  static const char options[] = "-DSAID=7";
  const gk_code right = {.text = text, .options = options, .entry = "add_to"};
  static const gk_param wide[] = {{"x", NULL, 4, 4, GK_PTR, GK_ACCESS_INOUT},
                                  {"a", NULL, 4, 4, GK_I32, GK_ACCESS_VALUE},
                                  {"n", NULL, 4, 4, GK_I32, GK_ACCESS_VALUE},
                                  {"b", NULL, 4, 4, GK_I32, GK_ACCESS_VALUE}};
  static const gk_param wrong[] = {{"x", NULL, 4, 4, GK_PTR, GK_ACCESS_INOUT},
                                   {"a", NULL, 4, 4, GK_I32, GK_ACCESS_VALUE},
                                   {"n", NULL, 4, 4, GK_I32, GK_ACCESS_VALUE}};
  if (tells_parameters) {
    refuse(device, right, wrong, 2, GK_ERROR_INVALID, "kernel refused: it says that it has 2 parameters, and its code "
                                                      "takes more");
    refuse(device, right, wide, 4, GK_ERROR_INVALID, "its code takes 3 parameters, so there is none for b");
    refuse(device, (gk_code){.text = text, .options = options, .entry = "all_kinds"}, wide, 4, GK_ERROR_INVALID,
           "its parameter b has 4 bytes, and its code takes 8 there");
  }
  gk_code code = right;
  code.entry = "absent";
  refuse(device, code, wrong, 3, GK_ERROR_COMPILE, "kernel refused: its code has no entry absent; declare it extern");
  code.entry = NULL;
  refuse(device, code, wrong, 3, GK_ERROR_COMPILE, "no entry refused");
  refuse(device, (gk_code){.text = text, .options = options, .entry = "narrow", .block = {65}}, wrong, 1,
         GK_ERROR_INVALID, "its blocks have 65 threads, and its code can have 64");
  refuse(device, (gk_code){.text = text, .options = options, .entry = "back", .block = {32}, .shared_bytes = 400000},
         wrong, 1, GK_ERROR_INVALID, "its blocks take 400000 bytes of shared memory");
  refuse(device, (gk_code){.text = "int a = 1;\n#line 41 \"cloth.cu\"\nextern int b = ;"}, wrong, 0, GK_ERROR_COMPILE,
         "cloth.cu(41): error");
  refuse(device, (gk_code){.text = "int a = ;"}, wrong, 0, GK_ERROR_COMPILE, "gk_code.text(1): error");
  refuse(device, (gk_code){.text = "int a;", .options = "-frobnicate"}, wrong, 0, GK_ERROR_UNSUPPORTED,
         "unrecognized option -frobnicate");
}

TEST_ON_CUDA(test_refused_images) {
  static const char ptx[] = ".version 99.0\n.target sm_50\n";
  refuse(device, (gk_code){.image = ptx, .image_bytes = sizeof ptx - 1}, NULL, 0, GK_ERROR_COMPILE,
         "kernel refused: the driver, for CUDA " VERSION ", doesn't take its image");
  assert_says("CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
  assert_says("and says: the PTX is of version 99.0");
  static const unsigned char noise[] = {1, 2, 3};
  refuse(device, (gk_code){.image = noise, .image_bytes = 3}, NULL, 0, GK_ERROR_COMPILE, "CUDA_ERROR_INVALID_IMAGE");
  static const char short_elf[] = "\177ELF\2\1\1";
  refuse(device, (gk_code){.image = short_elf, .image_bytes = sizeof short_elf}, NULL, 0, GK_ERROR_COMPILE,
         "its image, of 8 bytes, ends before its headers say");
  unsigned char elf[128] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
  refuse(device, (gk_code){.image = elf, .image_bytes = sizeof elf}, NULL, 0, GK_ERROR_COMPILE, "but not CUDA's");
  elf[18] = 190;    /* e_machine */
  elf[0x28] = 0x60; /* e_shoff */
  elf[0x3c] = 1;    /* e_shnum */
  refuse(device, (gk_code){.image = elf, .image_bytes = sizeof elf}, NULL, 0, GK_ERROR_COMPILE,
         "ends before its headers say");
  elf[0x28] = 0x40;
  elf[0x40 + 4] = 1;     /* sh_type */
  elf[0x40 + 0x20] = 200; /* sh_size */
  refuse(device, (gk_code){.image = elf, .image_bytes = sizeof elf}, NULL, 0, GK_ERROR_COMPILE,
         "ends before its headers say");
  elf[0x40 + 4] = 8; /* SHT_NOBITS, which has no bytes there */
  refuse(device, (gk_code){.image = elf, .image_bytes = sizeof elf}, NULL, 0, GK_ERROR_COMPILE,
         "doesn't take its image");
  elf[0x20] = 0x49; /* e_phoff */
  elf[0x36] = 0x38; /* e_phentsize */
  elf[0x38] = 1;    /* e_phnum */
  refuse(device, (gk_code){.image = elf, .image_bytes = sizeof elf}, NULL, 0, GK_ERROR_COMPILE,
         "ends before its headers say");
  elf[0x20] = 0x48;
  refuse(device, (gk_code){.image = elf, .image_bytes = sizeof elf}, NULL, 0, GK_ERROR_COMPILE,
         "doesn't take its image");
  unsigned char fatbin[17] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 1};
  refuse(device, (gk_code){.image = fatbin, .image_bytes = 15}, NULL, 0, GK_ERROR_COMPILE, "of 15 bytes, ends before");
  refuse(device, (gk_code){.image = fatbin, .image_bytes = 16}, NULL, 0, GK_ERROR_COMPILE, "of 16 bytes, ends before");
  refuse(device, (gk_code){.image = fatbin, .image_bytes = 17}, NULL, 0, GK_ERROR_COMPILE, "doesn't take its image");
}

/* Where gk has no kernels of its own, for lack of an image and of a compiler, images and functions work, but for that
 * empty one. */
TEST_ON_CUDA(test_without_compiler) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
  if (atoi(VERSION) > 11) return;
  gk_device_close(device);
  *state = NULL;
  compiled made = compile_to(true);
  const simnvrtc_control *controls[GK_COUNT(names)];
  for (size_t k = 0; k < GK_COUNT(names); ++k) {
    controls[k] = dlsym(dlopen(names[k], RTLD_NOW | RTLD_LOCAL), "simnvrtc_control");
    controls[k]->set_versions("none");
  }
  device = open_named("cuda");
  const gk_code code = {.image = made.image, .image_bytes = made.bytes, .entry = "add_to", .block = {32}};
  const gk_kernel kernel = {.name = "image", .params = add_params, .param_count = 3, .cuda = &code};
  run_add(device, &kernel);
  const gk_task tasks[] = {GK_RUN(kernel, N, X, A, N)};
  const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list);
  gk_bind(graph, X, int_on(device, 0));
  gk_bind_int(graph, N, 0);
  gk_bind_int(graph, A, 1);
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_UNSUPPORTED, "task 0 (kernel): it has no items", gk_wait(graph, NULL));
  gk_bind_int(graph, N, 1);
  run_from(graph, 0);
  assert_int_equal(int_at(device, gk_bound(graph, X)), 1);
  gk_graph_destroy(graph);
  gk_device_close(device);
  for (size_t k = 0; k < GK_COUNT(names); ++k) controls[k]->set_versions("13.0,12.4,11.4");
  free(made.image);
}

/* A lack of memory isn't taken for a lack of COPY and FILL, which such drivers get by the compiler. */
TEST_ON_CUDA(test_no_memory_for_copies) {
  if (atoi(VERSION) > 11) return;
  gk_device_close(device);
  *state = NULL;
  for (uint64_t k = 1;; ++k) {
    gk_device *opened = NULL;
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
    const gk_result result = gk_device_open(&(gk_device_desc){.backend = "cuda"}, &opened);
    const char *failed = sim->failed();
    sim->mark();
    gk_device_close(opened);
    if (!failed) fail_msg("nothing loads a module");
    if (strcmp(failed, "cuModuleLoadDataEx") != 0) continue;
    assert_int_equal(result, GK_ERROR_MEMORY);
    return;
  }
}

/* Their grids are made on the host. */
TEST_ON_CUDA(test_refused_items) {
  static const gk_task tasks[] = {GK_RUN(down, FLAG, X)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = NULL;
  assert_fails(GK_ERROR_INVALID, "task 0 (down): its number of items along x is read on the device, from slot 7 (FLAG)",
               gk_graph_create(device, &list, BITS, &graph));
  assert_int_equal(gk_check(&list, "cuda", NULL, NULL), GK_ERROR_INVALID);
  assert_int_equal(gk_check(&list, "openmp", NULL, NULL), GK_ERROR_INVALID);
  assert_says("the kernel down has no code for openmp");
}

int main(int count, char **words) {
  (void)count;
  begin_foreign(words);
  find_entries();
  return run_all_tests();
}
