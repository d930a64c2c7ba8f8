/* gk-embed for HIP, and what it made when this program was built, on simulated runtimes. There, gk's own
 * kernels are compiled at run time. */
#include "unit/support/elsewhere.h"
#include "unit/cuda/embedded_kernels.h"
#include "gk_info.h"
#include "simgpu/simnvrtc.h"
#include <dlfcn.h>
#include <stdlib.h>

extern const gk_images hip_images; /* of embedded_kernels.h, for gfx90a and gfx1100 */

enum { X = 1, V };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 1), GK_DEFAULT(V, int, 20)};
static const gk_task tasks[] = {GK_RUN(add_up, GK_ONE, X, V), GK_RUN(double_it, GK_ONE, X)};
static const gk_list list = GK_LIST(list, tasks, slots);

/* ---- in the process of a case ------------------------------------------------------------------------------------ */

static void hear(void *user, gk_log_level level, const char *line) {
  (void)user;
  if (level == GK_LOG_WARN || strstr(line, "anew")) printf("log: %s; ", line);
}

static unsigned long long compiled(void) {
  const simnvrtc_control *control = dlsym(dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL), "simnvrtc_control");
  const simnvrtc_counts counts = control->counts();
  return counts.compiled + counts.kept;
}

static int run(const gk_images *images) {
  gk_device *device = NULL;
  gk_graph *graph = NULL;
  int x = 0;
  gk_set_log(GK_LOG_INFO, hear, NULL);
  gk_result result = gk_use_images(images);
  if (result == GK_OK) result = gk_device_open(&(gk_device_desc){.backend = "hip"}, &device);
  if (result == GK_OK) result = gk_graph_create(device, &list, 0, &graph);
  if (result == GK_OK) result = gk_launch(graph, 0);
  if (result == GK_OK) result = gk_wait(graph, NULL);
  if (result == GK_OK) result = gk_download(device, &x, gk_bound(graph, X), sizeof x);
  if (result == GK_OK) printf("found %d, compiled %llu", x, compiled());
  else printf("%s: %s", gk_result_name(result), gk_error());
  gk_graph_destroy(graph);
  gk_device_close(device);
  return 0;
}

static int run_as_made(void) { return run(&hip_images); }

static int run_changed(bool has_other_text) {
  gk_image each[8];
  gk_images images = hip_images;
  if (images.count > GK_COUNT(each)) return 1;
  for (uint32_t k = 0; k < images.count; ++k) {
    each[k] = images.at[k];
    if (has_other_text) each[k].text[0] ^= 1;
    else each[k].bytes = "no code object of AMD's";
  }
  images.at = each;
  return run(&images);
}

static int run_other_text(void) { return run_changed(true); }
static int run_damaged(void) { return run_changed(false); }

/* ---- the cases --------------------------------------------------------------------------------------------------- */

#define HIP6 "../../../simgpu/hip6:build/simgpu"
#define HIP7 "../../../simgpu/hip7:build/simgpu"
#define SETTINGS(gpu) {"CUDA_HOME=build/simgpu", "GK_CACHE=off", "SIMHIP_ARCH=" gpu}
#define BUILT "what was compiled when the program was built"
static const elsewhere_case images[] = {
    {HIP7, SETTINGS("gfx90a"), "made", {"found 40, compiled 1", "$"}},
    {HIP6, SETTINGS("gfx1100"), "made", {"found 40, compiled 1", "$"}},
    {HIP7, SETTINGS("gfx1030"), "made",
     {"log: kernel add_up of ", BUILT " is for other GPUs than gfx1030; name it to gk-embed behind --offload-arch",
      "found 40, compiled 2", "$"}},
    {HIP7, SETTINGS("gfx90a"), "other text",
     {"log: kernel add_up of ", BUILT " is of another text of embedded_kernels.h", "run gk-embed again",
      "found 40, compiled 2", "$"}},
    {HIP7, {"CUDA_HOME=build/simgpu", "GK_CACHE=off", "SIMHIP_ARCH=gfx1030", "SIMGPU_NVRTC_FAIL=9"}, "made",
     {"log: kernel add_up of ", "GK_ERROR_UNSUPPORTED: kernel add_up of ", BUILT " is for other GPUs than gfx1030",
      "; nor can it be compiled now: "}},
    {HIP7, SETTINGS("gfx90a"), "damaged",
     {"log: kernel add_up of ", "the driver refuses the code object for gfx90a, made by hipRTC of HIP 7.2 when ",
      "found 40, compiled 2", "$"}},
};

TEST(images_of_the_program_are_used) { ELSEWHERE(images); }

/* ---- gk-embed ---------------------------------------------------------------------------------------------------- */

#define FILES "tests/unit/cuda/embedded_kernels.h tests/unit/cuda/embedded_shared.h"
static const struct { const char *version, *words, *said; int code; } calls[] = {
    {"hip7", FILES, ", 2370, GK_IMAGE_AMD, 702, ", 0}, /* gfx942 */
    {"hip7", "--offload-arch gfx1201 " FILES, ", 4609, GK_IMAGE_AMD, 702, ", 0},
    {"hip5", FILES, "gk-embed: left out: hipRTC of HIP 5.2 doesn't know gfx942", 0},
    {"hip5", "--offload-arch gfx90a,gfx942 " FILES, "isn't known to compile for gfx942", 1},
    {"hip7", "--offload-arch gfx90a, " FILES, ", 2314, GK_IMAGE_AMD, 702, ", 0},
    {"hip7", "--offload-arch sm_90 " FILES, "--offload-arch is followed by names of GPUs with commas", 2},
    {"hip7", "--offload-arch gfx90a,,gfx942 " FILES, "--offload-arch is followed by names of GPUs with commas", 2},
    {"hip7", "--offload-arch gfx90a:xnack- " FILES, "--offload-arch is followed by names of GPUs with commas", 2},
    {"hip7", FILES " --offload-arch", "no such option, or it lacks what is to follow", 2},
};

TEST(each_call_of_gk_embed_answers) {
  static char said[4 << 20], command[1024];
  for (size_t k = 0; k < GK_COUNT(calls); ++k) {
    snprintf(command, sizeof command, "LD_LIBRARY_PATH=build/simgpu/%s:build/simgpu CUDA_HOME=build/simgpu "
             CHECKED_TREE "/gk-embed --name images --for hip %s 2>&1", calls[k].version, calls[k].words);
    FILE *from = popen(command, "r");
    assert_non_null(from);
    said[fread(said, 1, sizeof said - 1, from)] = 0;
    const int status = pclose(from);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != calls[k].code || !strstr(said, calls[k].said))
      fail_msg("%s: status %d, and it says %.2000s", command, status, said);
  }
}

int main(int count, char **words) {
  static const elsewhere_word known[] = {{"made", run_as_made}, {"other text", run_other_text},
                                         {"damaged", run_damaged}};
  int code;
  if (elsewhere_is_here(count, words, known, GK_COUNT(known), &code)) return code;
  return run_all_tests();
}
