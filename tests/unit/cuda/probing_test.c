/* How a device opens on a driver that the probe finds odd. The findings are kept, so each test has its own device. */
#include "cuda/probe.h"
#include "graphs.h"
#include "unit/support/process.h"
#include "unit/support/set_clock.h"

enum { DEVICES = 4 };
static int next_device;

static int begin(void **state) {
  sim->allow(NULL);
  sim->answer_no(NULL);
  return next_device < DEVICES ? begin_clean(state) : -1;
}

static int end(void **state) {
  ++next_device;
  return end_clean(state);
}

static gk_result open_next(gk_device **device) {
  return gk_device_open(&(gk_device_desc){.backend = "cuda", .ordinal = next_device}, device);
}

/* If the branches were never at work at once, the probe can't tell whether they may be. */
TEST_WITH(branches_never_met, begin, end) {
  gk_device *device = NULL;
  sim->answer_no("overlap");
  assert_ok(open_next(&device));
  const gk_capability *line = capability_of(device, "PARALLEL");
  assert_int_equal(line->how, GK_NATIVE);
  assert_non_null(strstr(line->why, "go one after the other: "));
  assert_non_null(strstr(line->why, "(P4e, not shown: they were never seen at work at once)"));
  gk_device_close(device);
}

/* Until the probe is turned on again. */
TEST_WITH(turned_off, begin, end) {
  for (int off = 1; off >= 0; --off) {
    gk_device *device = NULL;
    setenv("GK_CUDA_PROBE", off ? "0" : "1", 1);
    sim->mark();
    assert_ok(open_next(&device));
    assert_int_equal(sim->counts().launches == 0, off);
    const gk_capability *line = capability_of(device, "DO_WHILE");
    assert_int_equal(line->how, off ? GK_BATCHED : GK_NATIVE);
    assert_int_equal(strstr(line->why, "GK_CUDA_PROBE=0 says that the driver isn't to be tried.") != NULL, off);
    assert_int_equal(capability_of(device, "COPY")->how, GK_NATIVE);
    gk_device_close(device);
  }
  gk_device *device = NULL;
  setenv("GK_CUDA_PROBE", "-P4e,-P9a", 1);
  assert_ok(open_next(&device));
  assert_non_null(strstr(capability_of(device, "SWITCH")->why, "GK_CUDA_PROBE wants it so"));
  assert_non_null(strstr(capability_of(device, "PARALLEL")->why, "(P4e, as GK_CUDA_PROBE says)"));
  gk_device_close(device);
  setenv("GK_CUDA_PROBE", "-P4x", 1);
  *state = NULL;
  assert_invalid("\"-P4x\" isn't understood", open_next(&device));
  assert_null(device);
  unsetenv("GK_CUDA_PROBE");
}

/* The call that launches the probe's first graph. If no later graph succeeds, no answer is kept. */
static uint64_t first_launch(void) {
  for (uint64_t k = 1;; ++k) {
    gk_device *device = NULL;
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_UNKNOWN, SIMGPU_LOST);
    if (open_next(&device) == GK_OK) gk_device_close(device);
    if (!sim->failed()) fail_msg("there is no call %d", (int)k);
    if (strcmp(sim->failed(), "cuGraphLaunch") == 0) return k;
  }
}

TEST_WITH(context_fails, begin, end) {
  const uint64_t k = first_launch();
  CUcontext others;
  gk_device *device = NULL;
  sim->mark();
  RIGHT(cu.cuDevicePrimaryCtxRetain(&others, next_device));
  (sim->fail)(k, CUDA_ERROR_ILLEGAL_ADDRESS, SIMGPU_LATE);
  assert_fails(GK_ERROR_DEVICE, "failed as it was tried: conditional nodes couldn't be tried: cuStreamQuery, for the "
               "graph of one kernel: an illegal memory access", open_next(&device));
  assert_says("GK_CUDA_PROBE=0");
  assert_null(device);
  assert_string_equal(sim->failed(), "cuGraphLaunch");
  assert_int_equal(sim->alive(SIMGPU_RETAINS), 1);
  sim->mark();
  assert_int_equal(open_next(&device), GK_ERROR_DEVICE); /* the context is still lost */
  assert_null(device);
  RIGHT(cu.cuDevicePrimaryCtxRelease(next_device));
  sim->forgive(); /* what gk couldn't give back */
  assert_ok(open_next(&device));
  assert_int_equal(capability_of(device, "DO_WHILE")->how, GK_NATIVE);
  gk_device_close(device);
}

/* A process of its own: the next backend is chosen, and nothing waits, as that would never end. */
static int live_with_a_hang(void) {
  gk_device *device = NULL;
  reading_ns = 10000000; /* on this thread each reading of the clock adds to it */
  sim->settle(1);
  if (gk_device_open(NULL, &device) != GK_OK || strcmp(gk_device_describe(device)->backend, "openmp") != 0) return 3;
  if (sim->alive(SIMGPU_STREAMS) < 3 || sim->alive(SIMGPU_MODULES) == 0) return 7; /* nothing was given back */
  gk_device_close(device);
  sim->mark();
  if (gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device) != GK_ERROR_DEVICE) return 4;
  if (!strstr(gk_error(), "the graph of IF didn't end within 3 s")) return 5;
  return sim->counts().launches ? 6 : 0; /* the answer is kept */
}

/* Neither does launching a graph that never ends return. */
static int live_with_launches_that_wait(void) {
  gk_device *device = NULL;
  if (gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device) != GK_OK) return 3;
  const gk_capability *line = capability_of(device, "DO_WHILE");
  const bool is_said = line->how == GK_BATCHED && strstr(line->why, "CUDA_LAUNCH_BLOCKING");
  gk_device_close(device);
  return is_said ? 0 : 4;
}

static int begin_life(const void *how) {
  setenv("SIMGPU_NO", "ends", 1);
  if (strcmp(how, "blocking") == 0) setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  execl("/proc/self/exe", "cuda_probing_test", how, (char *)NULL);
  return 9;
}

TEST_WITH(never_ends, begin, end) { assert_int_equal(code_of_child(begin_life, "hang", NULL, 0), 0); }

TEST(launches_wait) { assert_int_equal(code_of_child(begin_life, "blocking", NULL, 0), 0); }

int main(int count, char **words) {
  setenv("SIMGPU_DEVICES", "4", 1);
  atomic_store(&clock_runs, true);
  with_simgpu(words);
  if (count > 1) return strcmp(words[1], "hang") == 0 ? live_with_a_hang() : live_with_launches_that_wait();
  return run_all_tests();
}
