/* Facts: of the library, of a backend, of a device, and of those that have none. */
#include "cuda_world.h"

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
  assert_fails(GK_ERROR_INVALID, "gk_facts: there is nobody to tell", gk_facts(NULL, NULL));
  assert_fails(GK_ERROR_INVALID, "gk_backend_facts: there is nobody", gk_backend_facts(gk_backend_at(0), NULL, NULL));
  assert_fails(GK_ERROR_INVALID, "gk_device_facts: there is nobody", gk_device_facts(*state, NULL, NULL));
  heard h = {0};
  assert_fails(GK_ERROR_INVALID, "there is no backend", gk_backend_facts(NULL, hear, &h));
  assert_fails(GK_ERROR_INVALID, "there is no device", gk_device_facts(NULL, hear, &h));
  assert_int_equal(h.count, 0);
}

int main(int argc, char **argv) {
  (void)argc;
  with_simgpu(argv);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_library),
    ON_CUDA(test_backends),
    cmocka_unit_test(test_backend_without_facts),
    ON_CUDA(test_misuse),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
