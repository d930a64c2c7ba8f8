/* Facts: of the library, of a backend, of a device, and of those that have none. */
#include "cuda_world.h"
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

static void test_library(void **state) {
  (void)state;
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

static void test_cache_folder(void **state) {
  (void)state;
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
static void test_modules(void **state) {
  (void)state;
  setenv("GK_MODULES", "/nowhere/gk_backend.so", 1);
  const int code = system("exec /proc/$PPID/exe modules");
  unsetenv("GK_MODULES");
  assert_int_equal(code, 0);
}

static int tell_modules(void) {
  wanted w = {.name = "modules"};
  return gk_facts(want, &w) == GK_OK && strcmp(w.value, "null") == 0 && strstr(w.why, "/nowhere/gk_backend.so") ? 0 : 1;
}

static void test_backends(void **state) {
  heard h = {0}, device = {0};
  for (size_t k = 0; gk_backend_at(k); ++k) assert_ok(gk_backend_facts(gk_backend_at(k), hear, &h));
  assert_heard(&h, "driver.cuda=13.0;driver.devices=1;nvrtc.libnvrtc.so.13=13.0;");
  assert_heard(&h, "nvrtc.libnvrtc.so=null;");
  assert_ok(gk_device_facts(*state, hear, &device));
  assert_heard(&device, "gpu.architecture=sm_90;");
  assert_heard(&device, "probe.conditional=yes;");
  assert_heard(&device, "probe.P9a=yes;");
}

static void test_backend_without_facts(void **state) {
  (void)state;
  gk_device *openmp = NULL;
  heard h = {0};
  assert_ok(gk_device_open(&(gk_device_desc){.backend = "openmp"}, &openmp));
  assert_ok(gk_device_facts(openmp, hear, &h)); /* it has none */
  assert_int_equal(h.count, 0);
  gk_device_close(openmp);
}

static void test_misuse(void **state) {
  assert_fails(GK_ERROR_INVALID, "gk_facts: `visit` is NULL", gk_facts(NULL, NULL));
  assert_fails(GK_ERROR_INVALID, "gk_backend_facts: `visit` is NULL", gk_backend_facts(gk_backend_at(0), NULL, NULL));
  assert_fails(GK_ERROR_INVALID, "gk_device_facts: `visit` is NULL", gk_device_facts(*state, NULL, NULL));
  heard h = {0};
  assert_fails(GK_ERROR_INVALID, "there is no backend", gk_backend_facts(NULL, hear, &h));
  assert_fails(GK_ERROR_INVALID, "there is no device", gk_device_facts(NULL, hear, &h));
  assert_int_equal(h.count, 0);
}

int main(int argc, char **argv) {
  if (argc == 2) return tell_modules();
  with_simgpu(argv);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_library),
    cmocka_unit_test(test_cache_folder),
    cmocka_unit_test(test_modules),
    ON_CUDA(test_backends),
    cmocka_unit_test(test_backend_without_facts),
    ON_CUDA(test_misuse),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
