/* Facts: of the library, of a backend, of a device, and of objects that have none. */
#include "cuda/device.h"
#include "cuda/facts.h"
#include "unit/cuda/world.h"
#include <sys/stat.h>
#include <unistd.h>

typedef struct heard {
  int count;
  char all[16384]; /* "group.name=value;" of each; null: no value */
} heard;

static void hear(void *user, const gk_fact *fact) {
  heard *h = user;
  const size_t used = strlen(h->all);
  ++h->count;
  assert_non_null(fact->why);
  snprintf(h->all + used, sizeof h->all - used, "%s.%s=%s;", fact->group, fact->name,
           fact->value ? fact->value : "null");
}

#define assert_heard(h, words) \
  do { \
    if (!strstr((h)->all, (words))) fail_msg("%s isn't in %s", (words), (h)->all); \
  } while (0)

TEST(test_library) {
  heard h = {0};
  setenv("GK_LOG", "", 1);
  setenv("GK_CACHE", "off", 1);
  assert_ok(gk_facts(hear, &h));
  assert_heard(&h, "gk.version=" GK_VERSION ";");
  assert_heard(&h, "gk.abi=1;gk.backend_abi=1;gk.modules=null;gk.cache=null;");
  assert_heard(&h, "environment.GK_LOG=;");
#ifdef GK_NVTX
  assert_heard(&h, "gk.nvtx=built in;");
#else
  assert_heard(&h, "gk.nvtx=null;");
#endif
  unsetenv("GK_LOG");
  h = (heard){0};
  assert_ok(gk_facts(hear, &h));
  assert_heard(&h, "environment.GK_LOG=null;");
  unsetenv("GK_CACHE");
}

/* One fact of the library's, and why it is so. */
typedef struct wanted { const char *name; char value[512], why[512]; } wanted;

static void want(void *user, const gk_fact *fact) {
  wanted *w = user;
  if (strcmp(fact->name, w->name) != 0) return;
  snprintf(w->value, sizeof w->value, "%s", fact->value ? fact->value : "null");
  snprintf(w->why, sizeof w->why, "%s", fact->why);
}

static void assert_cache(const char *value, const char *why) {
  wanted w = {.name = "cache"};
  assert_ok(gk_facts(want, &w));
  assert_string_equal(w.value, value);
  if (!strstr(w.why, why)) fail_msg("%s isn't in %s", why, w.why);
}

TEST(test_cache_folder) {
  char folder[] = "/tmp/gk_facts_XXXXXX", inside[sizeof folder + 8];
  assert_non_null(mkdtemp(folder));
  snprintf(inside, sizeof inside, "%s/gk", folder);
  setenv("GK_CACHE", folder, 1);
  assert_cache(folder, "what was compiled is kept there");
  setenv("GK_CACHE", inside, 1);
  assert_cache(inside, "isn't there yet");
  setenv("GK_CACHE", folder, 1);
  assert_int_equal(chmod(folder, 0777), 0);
  assert_cache("null", "others");
  assert_int_equal(rmdir(folder), 0);
  unsetenv("GK_CACHE");
}

/* In a process of its own, since modules are looked for once. */
TEST(test_modules) {
  setenv("GK_MODULES", "/nowhere/gk_backend.so", 1);
  const int code = system("exec /proc/$PPID/exe modules");
  unsetenv("GK_MODULES");
  assert_int_equal(code, 0);
}

static int tell_modules(void) {
  wanted w = {.name = "modules"};
  return gk_facts(want, &w) == GK_OK && strcmp(w.value, "null") == 0 && strstr(w.why, "/nowhere/gk_backend.so") ? 0 : 1;
}

TEST_ON_CUDA(test_backends) {
  heard h = {0}, listed = {0};
  for (size_t k = 0; gk_backend_at(k); ++k) assert_ok(gk_backend_facts(gk_backend_at(k), hear, &h));
  assert_heard(&h, "driver.library=/");
  assert_heard(&h, "driver.cuda=13.0;driver.devices=1;nvrtc.libnvrtc.so.13=13.0;nvrtc.libnvrtc.so.12=12.8;");
  assert_heard(&h, "nvrtc.libnvrtc.so=null;");
  assert_ok(gk_device_facts(device, hear, &listed));
  assert_heard(&listed, "gpu.architecture=sm_90;");
  assert_heard(&listed, "probe.conditional=yes;");
  assert_heard(&listed, "probe.P9a=yes;");
}

static void of_backends(wanted *w) {
  for (size_t k = 0; gk_backend_at(k); ++k) assert_ok(gk_backend_facts(gk_backend_at(k), want, w));
}

/* What a library is for, and what can't be asked. */
TEST_ON_CUDA(test_libraries) {
  wanted w = {.name = "libnvrtc.so.12"};
  of_backends(&w);
  if (!strstr(w.why, "/libnvrtc.so.12, for sm_50 to sm_120")) fail_msg("%s", w.why);
  w = (wanted){.name = "devices"};
  (sim->fail)(1, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
  of_backends(&w);
  assert_string_equal(sim->failed(), "cuDeviceGetCount");
  sim->mark();
  assert_string_equal(w.value, "");
}

static gki_cuda_device made;
static gki_cuda_driver driver_of_made = {.version = 13000};

static void assert_made(const char *name, const char *value, const char *why) {
  wanted w = {.name = name};
  gki_cuda_facts.of_device(&made, want, &w);
  assert_string_equal(w.value, value);
  if (!strstr(w.why, why) || !why[0] != !w.why[0]) fail_msg("%s: \"%s\" isn't \"%s\"", name, w.why, why);
}

TEST(test_device) {
  made = (gki_cuda_device){.driver = &driver_of_made, .arch = 121, .multiprocessors = 132};
  assert_made("architecture", "sm_121", "");
  assert_made("multiprocessors", "132", "");
  assert_made("compiler", "NVRTC 13.0, cubin for sm_121", "");
  driver_of_made.version = 12080;
  assert_made("compiler", "NVRTC 12.8, PTX for compute_120", "");
  made.arch = 130;
  driver_of_made.version = 11040;
  assert_made("compiler", "NVRTC 11.4, PTX for compute_87", "");
  made.arch = 120;
  driver_of_made.version = 11030;
  assert_made("compiler", "NVRTC 12.8, cubin for sm_120", "newer than the driver, which may refuse it");
  made.arch = 10;
  assert_made("compiler", "null", "and this GPU is sm_10");
}

TEST(test_own_kernels) {
  made = (gki_cuda_device){.driver = &driver_of_made, .builtin.module = (CUmodule)(uintptr_t)1};
  driver_of_made.version = 12040;
  assert_made("own", "machine code", "");
  made.builtin.translated = true;
  snprintf(made.builtin.refused, sizeof made.builtin.refused, "machine code was refused");
  assert_made("own", "PTX", "machine code was refused");
  made.builtin.module = NULL;
  assert_made("own", "null", "machine code was refused");
  snprintf(made.no_transfers, sizeof made.no_transfers, "nor is there a compiler");
  assert_made("own", "null", "nor is there a compiler");
  made.transfers = (CUmodule)(uintptr_t)1;
  assert_made("own", "COPY and FILL, by the compiler", "machine code was refused");
  driver_of_made.version = 12030;
  assert_made("own", "COPY and FILL, by the compiler", "no driver before 12.4 takes gk's images");
}

TEST(test_probed) {
  static const struct { gki_cuda_question question; const char *name, *way; } ways[] = {
      {GKI_CUDA_P1A, "P1a", "; so: host-gated"},       {GKI_CUDA_P9A, "P9a", "; so: no SWITCH"},
      {GKI_CUDA_P8, "P8", "; so: chain branches"},     {GKI_CUDA_P1D, "P1d", "; so: target by copy"},
      {GKI_CUDA_P17B, "P17b", "; so: code by hand host-gated"}, {GKI_CUDA_P2B, "P2b", "; so: plain gates"},
      {GKI_CUDA_P1B, "P1b", "; so: nothing, gk doesn't rely on it"}};
  static const char *const answers[] = {[GKI_CUDA_NOT_ASKED] = "null", [GKI_CUDA_DECLINED] = "null",
                                        [GKI_CUDA_YES] = "yes", [GKI_CUDA_NO] = "no",
                                        [GKI_CUDA_NOT_SHOWN] = "not shown"};
  made = (gki_cuda_device){.driver = &driver_of_made,
                           .caps = {.conditional = true, .graph_count = 6, .microseconds = 900, .overlaps = 4}};
  assert_made("conditional", "yes", "graphs that decide by themselves");
  assert_made("graphs", "6", "that ran");
  assert_made("microseconds", "900", "that it took");
  assert_made("overlaps", "4", "that parallel branches were seen at work at once");
  for (size_t k = 0; k < GK_COUNT(ways); ++k)
    for (uint8_t answer = GKI_CUDA_NOT_ASKED; answer <= GKI_CUDA_YES; ++answer) {
      char why[300];
      const bool is_no = answer == GKI_CUDA_NO || answer == GKI_CUDA_NOT_SHOWN;
      made.caps.answers[ways[k].question] = answer;
      snprintf(why, sizeof why, "%s%s", gki_cuda_questions[ways[k].question].text, is_no ? ways[k].way : "");
      assert_made(ways[k].name, answers[answer], why);
      if (!is_no) {
        wanted w = {.name = ways[k].name};
        gki_cuda_facts.of_device(&made, want, &w);
        assert_string_equal(w.why, why);
      }
    }
  made.caps.conditional = false;
  snprintf(made.caps.why, sizeof made.caps.why, "the driver is old");
  assert_made("conditional", "no", "the driver is old");
}

TEST(test_backend_without_facts) {
  gk_device *openmp = NULL;
  heard h = {0};
  assert_ok(gk_device_open(&(gk_device_desc){.backend = "openmp"}, &openmp));
  assert_ok(gk_device_facts(openmp, hear, &h)); /* it has none */
  assert_int_equal(h.count, 0);
  gk_device_close(openmp);
}

TEST_ON_CUDA(test_misuse) {
  assert_invalid("gk_facts: `visit` is NULL", gk_facts(NULL, NULL));
  assert_invalid("gk_backend_facts: `visit` is NULL", gk_backend_facts(gk_backend_at(0), NULL, NULL));
  assert_invalid("gk_device_facts: `visit` is NULL", gk_device_facts(device, NULL, NULL));
  heard h = {0};
  assert_invalid("there is no backend", gk_backend_facts(NULL, hear, &h));
  assert_invalid("there is no device", gk_device_facts(NULL, hear, &h));
  assert_int_equal(h.count, 0);
}

int main(int argc, char **argv) {
  if (argc == 2) return tell_modules();
  with_simgpu(argv);
  return run_all_tests();
}
