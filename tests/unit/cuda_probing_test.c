/* What a device is when it is opened on a driver that the probe finds odd. What it found is kept, so each test has a
 * device of its own. */
#include "cuda_world.h"

enum { DEVICES = 4 };
static int next_device;

static int begin(void **state) {
  (void)state;
  sim->forgive();
  sim->allow(NULL);
  sim->answer_no(NULL);
  sim->set_seed(1);
  sim->mark();
  return next_device < DEVICES ? 0 : -1;
}

static int end(void **state) {
  (void)state;
  ++next_device;
  if (sim->broken()) fprintf(stderr, "%s\n", sim->first_broken());
  return sim->broken() || sim->alive(SIMGPU_ALL) ? -1 : 0;
}

static gk_result open_next(gk_device **device) {
  return gk_device_open(&(gk_device_desc){.backend = "cuda", .ordinal = next_device}, device);
}

static const gk_capability *line_of(const gk_device *device, const char *construct) {
  const gk_device_info *info = gk_device_describe(device);
  for (size_t k = 0; k < info->capability_count; ++k)
    if (strcmp(info->capabilities[k].construct, construct) == 0) return &info->capabilities[k];
  return NULL;
}

/* Where they never were at work at once nobody knows whether they may be. */
static void branches_never_met(void **state) {
  (void)state;
  gk_device *device = NULL;
  sim->answer_no("overlap");
  assert_ok(open_next(&device));
  const gk_capability *line = line_of(device, "PARALLEL");
  assert_int_equal(line->how, GK_NATIVE);
  assert_non_null(strstr(line->why, "go one after the other: "));
  assert_non_null(strstr(line->why, "(P4e, not shown: they were never seen at work at once)"));
  gk_device_close(device);
}

/* Until it is turned on again. */
static void turned_off(void **state) {
  (void)state;
  for (int off = 1; off >= 0; --off) {
    gk_device *device = NULL;
    setenv("GK_CUDA_PROBE", off ? "0" : "1", 1);
    sim->mark();
    assert_ok(open_next(&device));
    assert_int_equal(sim->counts().launches == 0, off);
    const gk_capability *line = line_of(device, "DO_WHILE");
    assert_int_equal(line->how, off ? GK_ON_HOST : GK_NATIVE);
    assert_int_equal(strstr(line->why, "GK_CUDA_PROBE=0 says that the driver isn't to be tried.") != NULL, off);
    assert_int_equal(line_of(device, "COPY")->how, GK_NATIVE);
    gk_device_close(device);
  }
  unsetenv("GK_CUDA_PROBE");
}

int main(int count, char **words) {
  (void)count;
  setenv("SIMGPU_DEVICES", "4", 1);
  with_simgpu(words);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(branches_never_met, begin, end),
    cmocka_unit_test_setup_teardown(turned_off, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
