/* Kernels that were compiled when this program was built, on the simulated driver without a working NVRTC. */
#include "graphs.h"
#include "embedded_kernels.h"
#include "kernel/images.h"
#include "simgpu/simnvrtc.h"
#include "unit/support/process.h"

extern const gk_images embedded_images; /* sm_80, sm_86, PTX for compute_75, by NVRTC 12.4 */
extern const gk_images old_images;      /* sm_86, by NVRTC 11.4, COPY and FILL, too */

enum { X = 1, V, Y, BAD = 71 };

static void print_line(UNUSED void *user, gk_log_level level, const char *line) {
  if (level == GK_LOG_ERROR) printf("failure: %s\n", line);
  else if (level == GK_LOG_WARN || strstr(line, "when the program was built")) printf("log: %s\n", line);
}

static bool is_ok(gk_result result) {
  if (result != GK_OK) printf("%s: %s\n", gk_result_name(result), gk_error());
  return result == GK_OK;
}

static unsigned long long compiled(void) {
  static const char *const libraries[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
  unsigned long long sum = 0;
  for (size_t k = 0; k < GK_COUNT(libraries); ++k) {
    const simnvrtc_control *control = dlsym(dlopen(libraries[k], RTLD_NOW | RTLD_LOCAL), "simnvrtc_control");
    const simnvrtc_counts counts = control->counts();
    sum += counts.compiled + counts.kept;
  }
  return sum;
}

static void run_list(gk_device *device, const gk_kernel *first) {
  static const gk_slot_desc slots[] = {GK_OWN(X, int, 1), GK_DEFAULT(V, int, 20), GK_BUFFER(Y, int)};
  const gk_task tasks[] = {GK_RUN(*first, GK_ONE, X, V), GK_RUN(double_it, GK_ONE, X), GK_COPY(Y, X, GK_ONE)};
  const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = NULL;
  int found = 0;
  void *y = gk_alloc(device, sizeof(int), GK_DEVICE_MEMORY);
  if (is_ok(gk_graph_create(device, &list, 0, &graph)) && is_ok(gk_bind(graph, Y, y)) && is_ok(gk_launch(graph, 0)) &&
      is_ok(gk_wait(graph, NULL)) && is_ok(gk_download(device, &found, y, sizeof found)))
    printf("found %d\n", found);
  gk_graph_destroy(graph);
  gk_free(device, y);
}

/* A table of the images that `change` takes (it answers true), as it leaves them. */
static const gk_images *changed_images(const gk_images *images, bool (*change)(gk_image *image)) {
  static gk_image each[16];
  static gk_images all;
  all = *images;
  all.at = each;
  all.count = 0;
  if (images->count > GK_COUNT(each)) exit(BAD);
  for (uint32_t k = 0; k < images->count; ++k) {
    each[all.count] = images->at[k];
    all.count += change(&each[all.count]);
  }
  if (!all.count) exit(BAD);
  return &all;
}

static bool damage(gk_image *image) {
  static const unsigned char nonsense[64] = "nonsense";
  if (image->kind == GK_IMAGE_CODE) {
    image->bytes = nonsense;
    image->size = sizeof nonsense;
  }
  return true;
}

/* The images that were made of other files than this program's. */
static bool is_strange(gk_image *image) { return !strstr(image->file, "embedded_kernels"); }

/* As if the source had been changed since. */
static gk_kernel changed(void) {
  static gk_source source;
  static char text[4096];
  source = *add_up.source;
  snprintf(text, sizeof text, "%s", source.text);
  char *sum = strstr(text, "added(p)");
  if (!sum) exit(BAD);
  memcpy(sum, "added(p", 7);
  memmove(sum + 10, sum + 8, strlen(sum + 8) + 1);
  memcpy(sum + 7, ")+1", 3);
  source.text = source.own = text;
  gk_kernel kernel = add_up;
  kernel.source = &source;
  return kernel;
}

/* A lack of memory doesn't make gk try the next image, or compile. */
static int run_short_of_memory(void) {
  for (uint64_t k = 1; k < 30; ++k) {
    gk_device *device;
    if (!is_ok(gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device))) return BAD;
    fail_call(k, CUDA_ERROR_OUT_OF_MEMORY);
    run_list(device, &add_up);
    const char *failed = failed_call();
    gk_device_close(device);
    if (failed && strcmp(failed, "cuModuleLoadDataEx") == 0) return 0;
  }
  return BAD;
}

static int be_child(const char *what) {
  static const struct { const char *what; const gk_images *images; bool (*change)(gk_image *image); } given[] = {
    {"old alone", &old_images, NULL}, {"old", &old_images, NULL}, {"old", &embedded_images, NULL},
    {"damaged", &embedded_images, damage}, {"strangers", &old_images, is_strange},
    {"images", &embedded_images, NULL}, {"memory", &embedded_images, NULL}, {"changed", &embedded_images, NULL}};
  gk_device *device;
  gk_set_log(GK_LOG_DEBUG, print_line, NULL);
  for (size_t k = 0; k < GK_COUNT(given); ++k)
    if (strcmp(what, given[k].what) == 0 &&
        !is_ok(gk_use_images(given[k].change ? changed_images(given[k].images, given[k].change) : given[k].images)))
      return BAD;
  if (strcmp(what, "memory") == 0) return run_short_of_memory();
  const gk_kernel kernel = strcmp(what, "changed") == 0 ? changed() : add_up;
  if (!is_ok(gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device))) return BAD;
  const gk_capability *kernels = capability_of(device, "KERNEL");
  printf("KERNEL %s: %s\n", kernels->how == GK_REFUSED ? "refused" : "native", kernels->why);
  run_list(device, &kernel);
  gk_device_close(device);
  printf("compiled %llu\n", compiled());
  return sim->broken() || sim->alive(SIMGPU_ALL) ? BAD : 0;
}

typedef struct turn_of {
  const char *what, *settings[3];
  const char *said[3], *unsaid; /* in this order; what isn't said */
} turn_of;

static int begin_turn(const void *data) {
  const turn_of *turn = data;
  for (size_t k = 0; k < GK_COUNT(turn->settings) && turn->settings[k]; ++k) putenv(strdup(turn->settings[k]));
  execl("/proc/self/exe", "cuda_embedded_test", turn->what, (char *)NULL);
  return BAD;
}

#define NONE "SIMGPU_NVRTC=none"
#define RUNS "found 40\ncompiled 0\n"
#define OTHER_TEXT \
  "what was compiled when the program was built is of another text of embedded_kernels.h, as the source or gk has " \
  "changed since; run gk-embed again"
#define OTHER_GPU \
  "what was compiled when the program was built is for other GPUs than sm_75; give gk-embed --arch 75, or --ptx of " \
  "an earlier one"
#define BUILT ", made by NVRTC 12.4 when the program was built"
static const turn_of turns[] = {
    /* just this GPU, one of its generation, and PTX */
    {"images", {NONE, "SIMGPU_ARCH=86"},
     {"KERNEL native: Those that were compiled when the program was built; no others, as they can't be compiled here: ",
      "tests/unit/cuda/embedded_kernels.h: cubin for sm_86" BUILT, RUNS}, "PTX"},
    {"images", {NONE, "SIMGPU_ARCH=86"}, {RUNS}, "failure"},
    {"images", {NONE, "SIMGPU_ARCH=80"}, {"cubin for sm_80" BUILT, RUNS}, "PTX"},
    {"images", {NONE, "SIMGPU_ARCH=89"}, {"cubin for sm_86" BUILT, RUNS}, "PTX"},
    {"images", {NONE, "SIMGPU_ARCH=90"}, {"PTX for compute_75" BUILT, RUNS}, "cubin"},
    {"images", {NONE, "SIMGPU_ARCH=75"}, {"PTX for compute_75" BUILT, RUNS}, "cubin"},
    {"images", {NONE, "SIMGPU_ARCH=90", "SIMGPU_VERSION=12.4"}, {"PTX for compute_75" BUILT, RUNS}, "cubin"},
    {"images", {"GK_CACHE=off", "SIMGPU_ARCH=86"}, {"cubin for sm_86" BUILT, RUNS}, "PTX"}, /* before NVRTC's, too */
    /* which an older driver refuses */
    {"images", {NONE, "SIMGPU_ARCH=86", "SIMGPU_VERSION=11.4"},
     {"the driver refuses the cubin for sm_86" BUILT ": ", "the driver refuses the PTX for compute_75" BUILT ": ",
      "; nor can it be compiled now: there is no NVRTC"}, "found"},
    {"images", {NONE, "SIMGPU_ARCH=80", "SIMGPU_VERSION=11.4"},
     {"the driver refuses the cubin for sm_80" BUILT ": ", "GK_ERROR_UNSUPPORTED: ", "the driver refuses the PTX for "},
     "for other GPUs"},
    /* an image of a compiler that is too new is refused, too */
    {"nothing", {"SIMGPU_NVRTC=13.0", "SIMGPU_ARCH=90", "SIMGPU_VERSION=12.8"},
     {"GK_ERROR_", "made by NVRTC 13.0, cubin for sm_90; it is newer than the driver: update the driver, or install"},
     "found"},
    {"images", {"SIMGPU_ARCH=86", "SIMGPU_VERSION=11.4"}, {"the driver refuses the PTX", "found 40\n"}, "GK_ERROR"},
    {"old", {NONE, "SIMGPU_ARCH=86", "SIMGPU_VERSION=11.4"}, {"gk's COPY and FILL: cubin for sm_86", RUNS}, "refuses"},
    {"damaged", {NONE, "SIMGPU_ARCH=86"},
     {"refuses the cubin for sm_86" BUILT, "refuses the cubin for sm_80" BUILT,
      "PTX for compute_75" BUILT "\nfound 40\n"}, "GK_ERROR"},
    {"memory", {NONE, "SIMGPU_ARCH=86"},
     {"GK_ERROR_MEMORY: cuModuleLoadDataEx of kernel add_up of ", "cubin for sm_86"}, "refuses"},
    /* none */
    {"nothing", {NONE, "SIMGPU_ARCH=86"},
     {"KERNEL refused: Kernels can't be compiled here: ", "GK_ERROR_UNSUPPORTED: there is no NVRTC"}, "found"},
    {"strangers", {NONE, "SIMGPU_ARCH=86"}, {"GK_ERROR_UNSUPPORTED: there is no NVRTC"},
     "when the program was built is"},
    {"changed", {NONE, "SIMGPU_ARCH=86"},
     {"log: kernel add_up of tests/unit/cuda/embedded_kernels.h: " OTHER_TEXT,
      "GK_ERROR_UNSUPPORTED: kernel add_up of ",
      OTHER_TEXT "; nor can it be compiled now: there is no NVRTC"}, "found"},
    {"changed", {"SIMGPU_ARCH=86"}, {OTHER_TEXT "\n", "found 42\ncompiled 1\n"}, "GK_ERROR"},
    {"old alone", {NONE, "SIMGPU_ARCH=75"},
     {OTHER_GPU "\n", "GK_ERROR_UNSUPPORTED: kernel add_up of ", OTHER_GPU "; nor can it be compiled now: there is no"},
     "found"},
    {"old alone", {"SIMGPU_ARCH=75"}, {OTHER_GPU "\n", "found 40\ncompiled 1\n"}, "GK_ERROR"},
};

TEST(images_are_found) {
  static char text[64 * 1024];
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    if (code_of_child(begin_turn, &turns[k], text, sizeof text) != 0) fail_msg("turn %zu: %s", k, text);
    const char *at = text;
    for (size_t m = 0; m < GK_COUNT(turns[k].said) && turns[k].said[m]; ++m) {
      const char *found = strstr(at, turns[k].said[m]);
      if (!found) fail_msg("turn %zu doesn't say %s, but: %s", k, turns[k].said[m], text);
      at = found + strlen(turns[k].said[m]);
    }
    if (strstr(text, turns[k].unsaid)) fail_msg("turn %zu says %s: %s", k, turns[k].unsaid, text);
  }
}

TEST(wrong_images_are_refused) {
  static gk_images many[70];
  static const unsigned char byte[1] = {0};
  const gk_image wrong[] = {{.bytes = byte, .size = 1}, {.file = "a.c", .size = 1}, {.file = "a.c", .bytes = byte}};
  assert_invalid("the images are NULL", gk_use_images(NULL));
  assert_invalid("for .abi 0, this library reads 1; run this gk's gk-embed again",
               gk_use_images(&(gk_images){.abi = 0}));
  assert_invalid("give what gk-embed wrote", gk_use_images(&(gk_images){.abi = GK_ABI, .count = 1}));
  for (size_t k = 0; k < GK_COUNT(wrong); ++k)
    assert_invalid("no file, no bytes or no size",
                 gk_use_images(&(gk_images){.abi = GK_ABI, .count = 1, .at = &wrong[k]}));
  assert_null(gki_images_at(0));
  for (size_t k = 0; k < GK_COUNT(many); ++k) {
    many[k] = (gk_images){.abi = GK_ABI};
    if (k < 64) assert_ok(gk_use_images(&many[k]));
    else assert_fails(GK_ERROR_MEMORY, "64 were given already", gk_use_images(&many[k]));
    assert_ok(gk_use_images(&many[0]));
  }
  assert_ptr_equal(gki_images_at(0), &many[0]);
  assert_ptr_equal(gki_images_at(63), &many[63]);
  assert_null(gki_images_at(64));
}

int main(int count, char **words) {
  with_simgpu(words);
  if (count > 1) return be_child(words[1]);
  return run_all_tests();
}
