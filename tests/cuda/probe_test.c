/* The probe, on a simulated driver of every version that answers each question either way, and on one that fails. */
#include "cuda/probe.h"
#include "simgpu/simgpu.h"
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const simgpu *sim;
static gki_cuGetProcAddress_v2 get_entry;
static gki_cuda_driver driver;
static CUcontext context;
static CUmodule gates;
static gki_cuda_abilities got;

/* The simulated driver takes its code from elsewhere. */
static const char image[] = ".version 8.4\n.target sm_52\n.address_size 64\n"
                            ".visible .entry gki_set_list()\n{\nret;\n}\n.visible .entry gki_set_beside()\n{\nret;\n}\n";

#define RIGHT(call) assert_int_equal(call, CUDA_SUCCESS)

static void load_entry(const char *name, int version, int since, void *into) {
  void *entry = NULL;
  CUdriverProcAddressQueryResult status;
  if (since <= driver.version) {
    RIGHT(get_entry(name, &entry, version, 0, &status));
    assert_non_null(entry);
  }
  memcpy(into, &entry, sizeof entry);
}

static void load_driver(int version) {
  sim->set_version(version);
  driver.version = version;
#define LOAD(name, asked, since, parameters) load_entry(#name, asked, since, &driver.name);
  GKI_CUDA_ENTRIES(LOAD)
#undef LOAD
}

static int begin_all(void **state) {
  (void)state;
  void *library = dlopen("build/simgpu/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  sim = dlsym(library, "simgpu_control");
  *(void **)(void *)&get_entry = dlsym(library, "cuGetProcAddress_v2");
  load_driver(13000);
  RIGHT(driver.cuInit(0));
  return 0;
}

static void open_context(void) {
  RIGHT(driver.cuDevicePrimaryCtxRetain(&context, 0));
  RIGHT(driver.cuCtxPushCurrent(context));
  RIGHT(driver.cuModuleLoadDataEx(&gates, image, 0, NULL, NULL));
}

/* After a failure of the device some of it answers so. */
static void close_context(void) {
  (void)driver.cuModuleUnload(gates);
  (void)driver.cuCtxPopCurrent(&context);
  (void)driver.cuDevicePrimaryCtxRelease(0);
}

static int begin(void **state) {
  (void)state;
  load_driver(13000);
  sim->answer_no(NULL);
  sim->set_seed(1);
  sim->set_passes(1000);
  sim->mark();
  open_context();
  return 0;
}

static int end(void **state) {
  (void)state;
  close_context();
  if (sim->broken()) fail_msg("broken rule: %s", sim->first_broken());
  assert_int_equal(sim->alive(SIMGPU_ALL), 0);
  return 0;
}

static void ask(void) { gki_cuda_probe_anew(&driver, context, gates, NULL, &got); }

/* "P1e P2d": those that aren't yes; a "?" behind one that wasn't asked. */
static const char *not_yes(void) {
  static char text[400];
  size_t length = 0;
  text[0] = 0;
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k)
    if (got.answers[k] != GKI_CUDA_YES)
      length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s", length ? " " : "",
                                 gki_cuda_questions[k].name, got.answers[k] == GKI_CUDA_NO ? "" : "?");
  return text;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static void by_version(void **state) {
  (void)state;
  static const int versions[] = {11040, 12020, 12030, 12040, 12060, 12080, 13000};
  for (size_t k = 0; k < GK_COUNT(versions); ++k) {
    load_driver(versions[k]);
    ask();
    assert_true(got.is_final);
    assert_int_equal(got.driver_version, versions[k]);
    assert_int_equal(got.conditional, versions[k] >= 12040);
    if (!got.conditional) {
      char wanted[100];
      snprintf(wanted, sizeof wanted, "the driver is for CUDA %d.%d, and conditional nodes can be relied on from 12.4 on",
               versions[k] / 1000, versions[k] % 1000 / 10);
      assert_ptr_equal(strstr(got.why, wanted), got.why);
      assert_true(got.ways & GKI_CUDA_HOST_GATED);
      assert_int_equal(got.graphs, 0);
      continue;
    }
    assert_string_equal(not_yes(), versions[k] >= 13000 ? "" : "P9a?");
    assert_int_equal(got.ways, versions[k] >= 13000 ? 0 : GKI_CUDA_NO_SWITCH);
    assert_string_equal(got.why, "");
    assert_int_equal(got.graphs, versions[k] >= 13000 ? 5 : 4);
  }
}

static void in_any_order(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    sim->set_seed(seed);
    ask();
    assert_string_equal(not_yes(), "");
  }
}

static void each_no(void **state) {
  (void)state;
  static const struct { const char *asked, *wanted; uint32_t ways; } cases[] = {
      {"P1a", "", 0},
      {"P1b", "", 0},
      {"P1b2", "", 0},
      {"P1c", "", 0},
      {"P1d", "", 0},
      {"P1e", "", 0},
      {"P1k", "", 0},
      {"P2o0", "", 0},
      {"P2o1", "", 0},
      {"P2o2", "", 0},
      {"P2o3", "", 0},
      {"P2o", "", 0},
      {"P2d", "", 0},
      {"P2b", "", 0},
      {"P4a", "", 0},
      {"P6", "", 0},
      {"P7", "", 0},
      {"P4e", "", 0},
      {"P4f", "", 0},
      {"P4g", "", 0},
      {"P4h", "", 0},
      {"P9a", "", 0},
  };
  bool is_right = true;
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    sim->answer_no(cases[k].asked);
    ask();
    if (strcmp(not_yes(), cases[k].wanted) == 0 && got.ways == cases[k].ways) continue;
    print_error("%s: \"%s\", ways %#x (conditional %d, final %d) %s\n", cases[k].asked, not_yes(), got.ways, got.conditional, got.is_final, got.why);
    is_right = false;
  }
  assert_true(is_right);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(by_version, begin, end),
      cmocka_unit_test_setup_teardown(in_any_order, begin, end),
      cmocka_unit_test_setup_teardown(each_no, begin, end),
  };
  return cmocka_run_group_tests_name("cuda_probe", tests, begin_all, NULL);
}
