/* The HIP backend on simulated runtimes (tests/simgpu/hip.c), each case in a process of its own: why it doesn't start,
 * architectures, the program's stream, library calls, forks. */
#include "unit/hip/world.h"
#include "gk_hip.h"
#include "base/error.h"
#include "hip/compile.h"
#include <sys/stat.h>

/* ---- in the process of a case ------------------------------------------------------------------------------------ */

/* A runtime that the program has loaded is gk's, too, and the program sees none of the errors that gk expects. */
static int shares_runtime(void) {
  hipError_t (*last)(void);
  *(void **)&last = dlsym(dlopen("build/simgpu/hip6/libamdhip64.so.6", RTLD_NOW), "hipGetLastError");
  if (opens()) return 0;
  printf("%s, last error %d;", gk_device_describe(device)->driver, (int)last());
  if (run(2)) gk_device_close(device);
  printf(", last error %d", (int)last());
  return 0;
}

/* What comes from hipDeviceProp_t and from attributes. */
static int describes(void) {
  if (opens()) return 0;
  const gk_device_info *info = gk_device_describe(device);
  printf("%s | %s | ", info->name, info->driver);
  gk_device_facts(device, print_fact, (void *)(uintptr_t)"architecture");
  gk_device_facts(device, print_fact, (void *)(uintptr_t)"wave");
  gk_device_close(device);
  return 0;
}

static void print_hip(void *user, const gk_fact *fact) {
  static const char *const names[] = {"libamdhip64", "hipRTC", "ROCM_PATH", "GK_HIP_GRAPHS"};
  (void)user;
  for (size_t k = 0; k < GK_COUNT(names); ++k)
    if (strcmp(fact->name, names[k]) == 0)
      printf("%s: %s, %s; ", fact->name, fact->value ? fact->value : "none", fact->why);
}

extern const gk_backend gki_hip;
static int lists_facts(void) {
  return gk_backend_facts(&gki_hip, print_hip, NULL) != GK_OK || gk_facts(print_hip, NULL) != GK_OK;
}

/* A library with the runtime's name, and without its entries. */
static int lacks_entries(void) {
  char folder[] = "build/tests/unit/hip/rocm.XXXXXX", real[PATH_MAX], below[PATH_MAX], runtime[PATH_MAX + 32];
  if (!mkdtemp(folder) || !realpath("build/simgpu/libcuda.so.1", real)) return 1;
  snprintf(below, sizeof below, "%s/lib", folder);
  snprintf(runtime, sizeof runtime, "%s/libamdhip64.so.7", below);
  if (mkdir(below, 0700) != 0 || symlink(real, runtime) != 0 || setenv("ROCM_PATH", folder, 1) != 0) return 1;
  if (!opens()) gk_device_close(device);
  return unlink(runtime) != 0 || rmdir(below) != 0 || rmdir(folder) != 0;
}

/* A runtime in a folder of its own, without a hipRTC or with one; both then have names without versions. */
static int opens_beside(const char *compiler) {
  char folder[] = "build/tests/unit/hip/alone.XXXXXX", real[PATH_MAX], alone[PATH_MAX + 64], beside[PATH_MAX + 64];
  if (!mkdtemp(folder) || !realpath("build/simgpu/hip7/libamdhip64.so.7", real)) return 1;
  snprintf(alone, sizeof alone, "%s/%s", folder, compiler ? "libamdhip64.so" : "libamdhip64.so.7");
  snprintf(beside, sizeof beside, "%s/%s", folder, compiler ? compiler : "none");
  bool is_right = symlink(real, alone) == 0 && realpath("build/simgpu/hip7/libhiprtc.so.7", real) &&
                  symlink(real, beside) == 0 && dlopen(alone, RTLD_NOW);
  if (is_right && !opens()) {
    (void)run(2);
    gk_device_close(device);
  }
  is_right = unlink(alone) == 0 && unlink(beside) == 0 && rmdir(folder) == 0 && is_right;
  return !is_right;
}
static int lacks_compiler(void) { return opens_beside(NULL); }
static int lacks_compilers_version(void) { return opens_beside("libhiprtc.so"); } /* as PyTorch's packages have it */

/* One item per block of 256: more threads than a grid takes. */
static int has_many(void) {
  static const gk_code code = {.text = "extern \"C\" __global__ void mixed(int *to, int a, long long b, float c) {}",
                               .per_block = {1}};
  const gk_kernel many = {.name = "mixed", .params = mixed_params, .param_count = 4, .hip = &code};
  const gk_task one[] = {GK_RUN(many, N, X, A, B, C)};
  const gk_list of_one = GK_LIST(of_one, one, slots);
  gk_graph *graph = NULL;
  if (opens() || fails(gk_graph_create(device, &of_one, 0, &graph))) return 0;
  gk_bind_int(graph, A, 7);
  gk_bind_int(graph, B, 8);
  gk_bind_float(graph, C, 9);
  gk_bind_int(graph, N, 1 << 24);
  if (!fails(gk_launch(graph, 0))) (void)fails(gk_wait(graph, NULL));
  for (int n = 1; n >= 0; --n) {
    gk_bind_int(graph, N, n);
    if (!fails(gk_launch(graph, 0)) && !fails(gk_wait(graph, NULL))) printf(" | runs with %d", n);
  }
  gk_graph_destroy(graph);
  gk_device_close(device);
  return 0;
}

/* A bundle whose one code object is said to lie behind its end. */
static int has_bad_bundle(void) {
  static struct { char magic[24]; uint64_t count, at, bytes, name_bytes; char name[8]; } bundle = {
      {0}, 1, 4096, 4096, 8, "hip"};
  memcpy(bundle.magic, "__CLANG_OFFLOAD_BUNDLE__", sizeof bundle.magic);
  static const gk_code code = {.image = &bundle, .image_bytes = sizeof bundle, .block = {64}};
  const gk_kernel bad = {.name = "mixed", .params = mixed_params, .param_count = 4, .hip = &code};
  const gk_task one[] = {GK_RUN(bad, N, X, A, B, C)};
  const gk_list of_one = GK_LIST(of_one, one, slots);
  gk_graph *graph = NULL;
  if (!opens()) (void)fails(gk_graph_create(device, &of_one, 0, &graph));
  printf(" | ");
  const gk_image image = {.file = "x", .kind = GK_IMAGE_AMD, .bytes = &bundle, .size = sizeof bundle};
  (void)fails(gk_use_images(&(gk_images){.abi = GK_ABI, .count = 1, .at = &image}));
  gk_device_close(device);
  return 0;
}

/* The k-th call of a launch makes the device fail. Returns whether that was the launch of a kernel, and then says what
 * the wait and the next launch answer. */
static bool loses_at(uint64_t k) {
  static const gk_task two[] = {GK_FILL(X, GK_ONE, 5), GK_FILL(X, GK_ONE, 6)};
  static const gk_list of_two = GK_LIST(of_two, two, slots);
  gk_graph *graph = NULL;
  if (opens() || fails(gk_graph_create(device, &of_two, GK_ISOLATE, &graph))) return true;
  (sim()->fail)(k, CUDA_ERROR_ILLEGAL_ADDRESS, SIMGPU_LATE);
  gk_result result = gk_launch(graph, 0);
  if (result == GK_OK) result = gk_wait(graph, NULL);
  const bool found = sim()->failed() && strcmp(sim()->failed(), "cuLaunchKernel") == 0;
  if (found && fails(result)) printf(" | ");
  if (found) (void)fails(gk_launch(graph, 0));
  gk_graph_destroy(graph);
  gk_device_close(device);
  return found;
}

static int loses(void) {
  for (uint64_t k = 1; k < 10 && !loses_at(k);) ++k;
  return 0;
}

static int forked(void) {
  if (opens()) return 0;
  fflush(stdout);
  if (fork() == 0) {
    gk_device *other;
    (void)fails(gk_device_open(&(gk_device_desc){.backend = "hip"}, &other));
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);
  if (run(2)) gk_device_close(device);
  return 0;
}

/* ---- the compiler ------------------------------------------------------------------------------------------------ */

/* Without a device. */
static int compiles(void) {
  const gki_hip_driver *driver;
  gki_compiled image;
  gki_begin();
  if (fails(gki_hip_driver_load(&driver))) return 0;
  char *text = gk_compose(&step, "hip");
  const gki_unit unit = {.text = text, .file = "hip_test", .kernel = "step"};
  const gki_unit bad = {.text = "void f( {", .file = "bad"};
  if (!fails(gki_hip_compile(driver, "gfx90a:sramecc+:xnack-", &unit, &image))) printf("%d", image.size > 0);
  gki_compiled_free(&image);
  printf(" | ");
  gki_begin();
  (void)fails(gki_hip_compile(driver, "gfx90a", &bad, &image));
  printf(" | ");
  gki_begin();
  (void)fails(gki_hip_compile(driver, "gfx9999", &unit, &image));
  gk_free_text(text);
  return 0;
}

/* ---- the cases --------------------------------------------------------------------------------------------------- */

static const elsewhere_case versions[] = {
    {HIP5, {HOME}, "run", {"arguments kernelParams 20 7 8 9 by "}},
    {HIP6, {HOME, "SIMHIP_ARCH=gfx1201"}, "run", {"arguments kernelParams 20 7 8 9 by "}},
    {HIP7, {HOME}, "run", {"arguments kernelParams 20 7 8 9 by "}},
};
/* hipGetDeviceProperties of HIP 5 gives another layout than hipGetDevicePropertiesR0600, which later versions have. */
#define GFX90A "gfx90a:sramecc+:xnack-"
static const elsewhere_case properties[] = {
    {HIP5, {HOME}, "describe",
     {"simulated GPU 0 | HIP 5.2, " GFX90A " | architecture " GFX90A "wave 64", "$"}},
    {HIP6, {HOME}, "describe",
     {"simulated GPU 0 | HIP 6.4, " GFX90A " | architecture " GFX90A "wave 64", "$"}},
    {HIP7, {HOME}, "describe",
     {"simulated GPU 0 | HIP 7.2, " GFX90A " | architecture " GFX90A "wave 64", "$"}},
    {HIP5, {HOME, "SIMHIP_ARCH=gfx1030"}, "describe",
     {"simulated GPU 0 | HIP 5.2, gfx1030 | architecture gfx1030wave 32", "$"}},
    {HIP7, {HOME, "SIMHIP_ARCH=gfx1201"}, "describe",
     {"simulated GPU 0 | HIP 7.2, gfx1201 | architecture gfx1201wave 32", "$"}},
};
static const elsewhere_case architectures[] = {
    {HIP5, {HOME, "SIMHIP_ARCH=gfx1100", NO_CACHE}, "say",
     {"GK_ERROR_NO_DEVICE: backend hip: hipRTC of HIP 5.2 isn't known to compile for gfx1100",
      "install HIP 5.5 or newer"}},
    {HIP7, {HOME, "SIMHIP_ARCH=gfx9999", NO_CACHE}, "say",
     {"GK_ERROR_NO_DEVICE: backend hip: hipRTC of HIP 7.2 isn't known to compile for gfx9999",
      "this version of gk knows of no hipRTC that does"}},
};
static const elsewhere_case forks[] = {
    {HIP7, {HOME}, "fork", {"GK_ERROR_NO_DEVICE: backend hip: this process was forked", " 2 7 8 9 by "}}};
static const elsewhere_case compilers[] = {
    {HIP6, {HOME}, "compile", {"1 | GK_ERROR_COMPILE: bad doesn't compile (hipRTC of HIP 6.4 for gfx90a):\n",
                               " | GK_ERROR_UNSUPPORTED: backend hip: hipRTC of HIP 6.4 isn't known to compile for "
                               "gfx9999"}}};

static const elsewhere_case runtimes[] = {
    {HIP7, {HOME}, "beside", {"HIP 6.4, gfx90a", ", last error 0; 2 7 8 9 by ", ", last error 0", "$"}}};
static const elsewhere_case bundles[] = {
    {HIP7, {HOME, "GK_HIP_GRAPHS=0"}, "bundle",
     {"GK_ERROR_COMPILE: kernel mixed: its image, of 64 bytes, ends before its headers say", " | GK_ERROR_INVALID: "
      "gk_use_images: an image has no file, no bytes or no size, or is cut off"}}};
static const elsewhere_case alone[] = {
    {HIP7, {HOME, NO_CACHE, "GK_HIP_GRAPHS=0"}, "without version", {" 2 7 8 9 by kernels", "$"}},
    {HIP7, {HOME, NO_CACHE}, "alone", {"GK_ERROR_NO_DEVICE: ", "libhiprtc.so.7 can't be used, and the runtime has no "
                                       "hiprtc", "; install hipRTC of the runtime's version, in the runtime's "
                                       "folder"}}};
static const elsewhere_case large[] = {
    {HIP7, {HOME}, "many", {"GK_ERROR_INVALID: ", "task 0 (many): 16777216 blocks along x, by slot 7 (N), and a grid "
                            "has at most 16777215", " | runs with 1 | runs with 0", "$"}}};

static const elsewhere_case facts[] = {
    {HIP7, {HOME, "GK_HIP_GRAPHS=0"}, "facts",
     {"libamdhip64: HIP 7.2, ", "libamdhip64.so.7; hipRTC: HIP 7.2, compiles kernels at run time; ",
      "ROCM_PATH: none, ", "GK_HIP_GRAPHS: 0, "}},
    {"broken", {"ROCM_PATH=/nowhere"}, "facts",
     {"libamdhip64: none, backend hip: there is no libamdhip64.so.7, .6 or .5; ", "ROCM_PATH: /nowhere, "}}};
static const elsewhere_case other_libraries[] = {
    {"broken", {"ROCM_PATH=/nowhere"}, "say",
     {"GK_ERROR_NO_DEVICE: backend hip: there is no libamdhip64.so.7, .6 or .5; install AMD's HIP runtime"}},
    {"broken", {HOME}, "lacks entries", {"GK_ERROR_NO_DEVICE: backend hip: ", "/lib/libamdhip64.so.7 has no hipGet",
                                         "; install HIP 5.2 or newer"}}};
static const elsewhere_case losses[] = {
    {HIP7, {HOME, "GK_HIP_GRAPHS=0"}, "lose",
     {"GK_ERROR_DEVICE: backend hip: waiting for task 0 (X = 5) of graph of_two: ",
      " | GK_ERROR_DEVICE: HIP device 0 (simulated GPU 0) is lost; close it, and if it can't be opened again, "}}};

TEST(a_failure_is_of_its_task) { ELSEWHERE(losses); }
TEST(a_loaded_runtime_is_used) { ELSEWHERE(runtimes); }
TEST(bundles_that_are_cut_off_are_refused) { ELSEWHERE(bundles); }
TEST(only_the_runtimes_own_compiler_is_used) { ELSEWHERE(alone); }
TEST(facts_name_the_runtime) { ELSEWHERE(facts); }
TEST(other_libraries_are_no_runtime) { ELSEWHERE(other_libraries); }
TEST(grids_beyond_2_32_threads_are_refused) { ELSEWHERE(large); }
TEST(every_version_runs_a_list) { ELSEWHERE(versions); }
TEST(properties_are_read_in_the_versions_layout) { ELSEWHERE(properties); }
TEST(unknown_architectures_are_not_handed_to_the_compiler) { ELSEWHERE(architectures); }
TEST(a_fork_is_refused) { ELSEWHERE(forks); }
TEST(kernels_are_compiled_without_a_device) { ELSEWHERE(compilers); }

/* Debian's, or AMD's. */
TEST(a_runtime_without_a_device_says_so) {
  static const elsewhere_case real[] = {
      {NULL, {"ROCM_PATH=/nowhere"}, "say",
       {"GK_ERROR_NO_DEVICE: backend hip: ", " can't be used: ", "(hipErrorNoDevice, ",
        "; see whether rocminfo lists a GPU"}},
      {NULL, {"ROCM_PATH=/nowhere"}, "compile", {"1 | GK_ERROR_COMPILE: bad doesn't compile (hipRTC of HIP "}}};
  if (!dlopen("libamdhip64.so.5", RTLD_NOW) || access("/dev/kfd", F_OK) == 0) {
    print_message("this machine has no HIP runtime, or a device\n");
    skip();
  }
  ELSEWHERE(real);
}

int main(int count, char **words) {
  static const elsewhere_word known[] = {{"say", say}, {"run", runs}, {"describe", describes}, {"fork", forked},
                                         {"compile", compiles},
                                         {"beside", shares_runtime}, {"alone", lacks_compiler},
                                         {"without version", lacks_compilers_version},
                                         {"lacks entries", lacks_entries}, {"facts", lists_facts},
                                         {"bundle", has_bad_bundle}, {"many", has_many}, {"lose", loses}};
  int code;
  if (elsewhere_is_here(count, words, known, GK_COUNT(known), &code)) return code;
  return run_all_tests();
}
