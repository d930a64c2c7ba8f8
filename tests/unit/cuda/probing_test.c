/* What a device is when it is opened on a driver that the probe finds odd. What it found is kept, so each test has a
 * device of its own. */
#include "cuda/probe.h"
#include "world.h"
#include "unit/support/set_clock.h"
#include <sys/wait.h>

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
TEST_WITH(branches_never_met, begin, end) {
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
TEST_WITH(turned_off, begin, end) {
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
  gk_device *device = NULL;
  setenv("GK_CUDA_PROBE", "-P4e,-P9a", 1);
  assert_ok(open_next(&device));
  assert_non_null(strstr(line_of(device, "SWITCH")->why, "GK_CUDA_PROBE wants it so"));
  assert_non_null(strstr(line_of(device, "PARALLEL")->why, "(P4e, as GK_CUDA_PROBE says)"));
  gk_device_close(device);
  setenv("GK_CUDA_PROBE", "-P4x", 1);
  *state = NULL;
  assert_fails(GK_ERROR_INVALID, "\"-P4x\" isn't understood", open_next(&device));
  assert_null(device);
  unsetenv("GK_CUDA_PROBE");
}

/* Which call launches the probe's first graph. With none after it that is right, nothing is found out for good. */
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
  CUresult (*retain)(CUcontext *context, CUdevice device), (*release)(CUdevice device);
  CUresult (*find)(const char *name, void **entry, int version, cuuint64_t flags);
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *entry = NULL;
  *(void **)&find = dlsym(library, "cuGetProcAddress");
  assert_int_equal(find("cuDevicePrimaryCtxRetain", &entry, 7000, 0), CUDA_SUCCESS);
  *(void **)&retain = entry;
  assert_int_equal(find("cuDevicePrimaryCtxRelease", &entry, 11000, 0), CUDA_SUCCESS);
  *(void **)&release = entry;
  const uint64_t k = first_launch();
  CUcontext others;
  gk_device *device = NULL;
  sim->mark();
  assert_int_equal(retain(&others, next_device), CUDA_SUCCESS);
  (sim->fail)(k, CUDA_ERROR_ILLEGAL_ADDRESS, SIMGPU_LATE);
  assert_fails(GK_ERROR_DEVICE, "failed as it was tried: conditional nodes couldn't be tried: cuStreamQuery, for the "
               "graph of one kernel: an illegal memory access", open_next(&device));
  assert_says("GK_CUDA_PROBE=0");
  assert_null(device);
  assert_string_equal(sim->failed(), "cuGraphLaunch");
  assert_int_equal(sim->alive(SIMGPU_RETAINS), 1);
  sim->mark();
  assert_int_equal(open_next(&device), GK_ERROR_DEVICE); /* it still is as it was */
  assert_null(device);
  assert_int_equal(release(next_device), CUDA_SUCCESS);
  sim->forgive(); /* what gk couldn't give back */
  assert_ok(open_next(&device));
  assert_int_equal(line_of(device, "DO_WHILE")->how, GK_NATIVE);
  gk_device_close(device);
}

/* ---- a graph that never ends ------------------------------------------------------------------------------------- */

/* The whole life of a process: the next backend is taken, and nothing waits, as that would never end. */
static int live_with_a_hang(void) {
  gk_device *device = NULL;
  reading_ns = 10000000; /* on this thread the clock goes by the questions that are asked */
  sim->settle(1);
  if (gk_device_open(NULL, &device) != GK_OK || strcmp(gk_device_describe(device)->backend, "openmp") != 0) return 3;
  if (sim->alive(SIMGPU_STREAMS) < 3 || sim->alive(SIMGPU_MODULES) == 0) return 7; /* nothing was given back */
  gk_device_close(device);
  sim->mark();
  if (gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device) != GK_ERROR_DEVICE) return 4;
  if (!strstr(gk_error(), "the graph of IF didn't end within 3 s")) return 5;
  return sim->counts().launches ? 6 : 0; /* it is known by now */
}

/* The launch of a graph that never ends wouldn't, either. */
static int live_with_launches_that_wait(void) {
  gk_device *device = NULL;
  if (gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device) != GK_OK) return 3;
  const gk_capability *line = line_of(device, "DO_WHILE");
  const bool is_said = line->how == GK_ON_HOST && strstr(line->why, "CUDA_LAUNCH_BLOCKING");
  gk_device_close(device);
  return is_said ? 0 : 4;
}

static void live(const char *how) {
  pid_t child = fork();
  if (child == 0) {
    setenv("SIMGPU_NO", "ends", 1);
    if (strcmp(how, "blocking") == 0) setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    execl("/proc/self/exe", "cuda_probing_test", how, (char *)NULL);
    _exit(9);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

TEST_WITH(never_ends, begin, end) {
  live("hang");
}

TEST(launches_wait) {
  live("blocking");
}

int main(int count, char **words) {
  setenv("SIMGPU_DEVICES", "4", 1);
  atomic_store(&clock_runs, true);
  with_simgpu(words);
  if (count > 1) return strcmp(words[1], "hang") == 0 ? live_with_a_hang() : live_with_launches_that_wait();
  return run_all_tests();
}
