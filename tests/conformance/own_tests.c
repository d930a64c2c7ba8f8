/* The runner as gk's own tests have it: with the backends that watch common, and fail on request. */
#include "own.h"
#include "device/test_device.h"
#include "simgpu/simgpu.h"
#include "unit/support/fake_backend.h"
#include "vulkan/standin.h"
#include <dlfcn.h>
#include <stddef.h>

static void test_device_fails(unsigned long call, gk_result code, int way) {
  static const test_device_how ways[] = {TEST_DEVICE_AT_ONCE, TEST_DEVICE_LATE, TEST_DEVICE_LOST};
  test_device_fail_how(ways[way]);
  test_device_fail_at(call, code);
}

/* ---- CUDA, and HIP over it, on the simulated driver; on a real one nothing can be asked or made to fail ---------- */

static const simgpu *sim;

static void find_simgpu(void) {
  void *library = sim ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library) sim = dlsym(library, "simgpu_control");
}

static void simgpu_seed(uint64_t seed) {
  if (sim) sim->set_seed(seed);
}

static const char *simgpu_broken(void) { return sim ? sim->first_broken() : ""; }
static unsigned simgpu_leaks(void) { return sim ? (unsigned)sim->alive(SIMGPU_ALL) : 0; }
/* HIP's runtime keeps the contexts of devices. */
static unsigned simhip_leaks(void) {
  return sim ? (unsigned)(sim->alive(SIMGPU_ALL) - sim->alive(SIMGPU_RETAINS)) : 0;
}
static unsigned long simgpu_calls(void) { return sim ? (unsigned long)sim->counts().calls : 0; }

static void simgpu_fails(unsigned long call, gk_result code, int way) {
  static const simgpu_how ways[] = {SIMGPU_NOW, SIMGPU_LATE, SIMGPU_LOST};
  find_simgpu();
  if (!sim) return;
  sim->mark();
  sim->fail(call, code == GK_ERROR_MEMORY ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_LAUNCH_FAILED, ways[way]);
}

/* ---- Vulkan behind a stand-in for libvulkan ---------------------------------------------------------------------- */

enum { OUT_OF_DEVICE_MEMORY = -2, DEVICE_LOST = -4 }; /* of VkResult */
static const vulkan_standin *standin;

static void find_standin(void) {
  if (!standin) standin = vulkan_standin_find();
}

static void standin_seed(uint64_t seed) {
  if (standin) standin->set_seed(seed);
}

static const char *standin_broken(void) { return standin ? standin->broken() : ""; }
static unsigned standin_leaks(void) { return standin ? standin->alive() : 0; }
static unsigned long standin_calls(void) { return standin ? standin->calls() : 0; }

static void standin_fails(unsigned long call, gk_result code, int way) {
  static const vulkan_standin_how ways[] = {VULKAN_STANDIN_NOW, VULKAN_STANDIN_LATE, VULKAN_STANDIN_LOST};
  find_standin();
  if (standin) standin->fail(call, code == GK_ERROR_MEMORY ? OUT_OF_DEVICE_MEMORY : DEVICE_LOST, ways[way]);
}

#define FAKE(called) {.name = (called), .enter = fake_register, .broken = fake_broken, .leaks = fake_leaks}

const own_backend own_backends[] = {
  {.name = "test_device", .enter = test_device_register, .seed = test_device_seed, .broken = test_device_broken,
   .leaks = test_device_leaks, .ways = {"at once", "late", "with the device lost"}, .fail_at = test_device_fails,
   .calls = test_device_calls},
  {.name = "cuda", .enter = find_simgpu, .seed = simgpu_seed, .broken = simgpu_broken, .leaks = simgpu_leaks,
   .ways = {"at once", "late", "with the device lost"}, .fail_at = simgpu_fails, .calls = simgpu_calls},
  {.name = "hip", .enter = find_simgpu, .seed = simgpu_seed, .broken = simgpu_broken, .leaks = simhip_leaks,
   .ways = {"at once", "late", "with the device lost"}, .fail_at = simgpu_fails, .calls = simgpu_calls},
  {.name = "vulkan", .enter = find_standin, .seed = standin_seed, .broken = standin_broken, .leaks = standin_leaks,
   .ways = {"at once", "late", "with the device lost"}, .fail_at = standin_fails, .calls = standin_calls},
  FAKE("fake_in_process"), FAKE("fake_native"), FAKE("fake_batched"), {0},
};
