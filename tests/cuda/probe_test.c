/* The probe, on a simulated driver of every version that answers each question either way, and on one that fails. */
#include "cuda/gates.h"
#include "cuda/probe.h"
#include "base/error.h"
#include "simgpu/simgpu.h"
#include "unit/support/set_clock.h"
#include <dlfcn.h>
#include "unit/support/test.h"

static const simgpu *sim;
static gki_cuGetProcAddress_v2 get_entry;
static gki_cuda_driver driver, right; /* a test may change entries of the first one */
static CUcontext context;
static CUmodule gates;
static gki_cuda_caps got;

/* The simulated driver takes its code from elsewhere. */
static const char image[] = ".version 8.4\n.target sm_52\n.address_size 64\n"
                            ".visible .entry gki_set_list()\n{\nret;\n}\n"
                            ".visible .entry gki_set_beside()\n{\nret;\n}\n";

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
  right = driver;
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

/* A clock that goes by the questions that are asked: each is answered when the device has done what it can. */
enum { STEP_MS = 10, PATIENCE_MS = 3000, NS_PER_MS = 1000000 };

static int begin(void **state) {
  (void)state;
  load_driver(13000);
  sim->answer_no(NULL);
  sim->allow(NULL);
  sim->set_seed(1);
  sim->set_passes(1000);
  sim->busy(0);
  sim->settle(1);
  sim->mark();
  reading_ns = (uint64_t)STEP_MS * NS_PER_MS;
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

static void ask(void) { gki_cuda_probe_again(&driver, context, gates, NULL, &got); }
static gk_result probe(CUdevice device) { return gki_cuda_probe(&driver, device, context, gates, NULL, &got); }

static gk_result probe_with(const char *wish, CUdevice device) {
  setenv("GK_CUDA_PROBE", wish, 1);
  const gk_result result = probe(device);
  unsetenv("GK_CUDA_PROBE");
  return result;
}

static const char *described(uint32_t quirks) {
  static char text[GKI_CUDA_QUIRKS_BYTES + 1];
  gki_cuda_describe_quirks(&got, quirks, text, sizeof text);
  return text;
}

enum { ALL_WAYS = 0x1fff };

/* "P1e P4e~ P8?": those that are no, not shown, and, if there are conditional nodes, that weren't asked. */
static const char *not_yes(void) {
  static const char *const marks[] = {"?", "", "-", "~"};
  static char text[400];
  size_t length = 0;
  text[0] = 0;
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k)
    if (got.answers[k] != GKI_CUDA_YES && (got.conditional || got.answers[k] != GKI_CUDA_NOT_ASKED))
      length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s", length ? " " : "",
                                 gki_cuda_questions[k].name, marks[got.answers[k]]);
  return text;
}

static void expect_all_yes(void) {
  ask();
  assert_string_equal(not_yes(), "");
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

TEST_WITH(by_version, begin, end) {
  static const int versions[] = {11040, 12020, 12030, 12040, 12060, 12080, 13000};
  for (size_t k = 0; k < GK_COUNT(versions); ++k) {
    load_driver(versions[k]);
    ask();
    assert_true(got.is_final);
    assert_int_equal(got.driver_version, versions[k]);
    assert_int_equal(got.conditional, versions[k] >= 12040);
    if (!got.conditional) {
      char wanted[100];
      snprintf(wanted, sizeof wanted,
               "the driver is for CUDA %d.%d, and conditional nodes can be relied on from 12.4 on", versions[k] / 1000,
               versions[k] % 1000 / 10);
      assert_ptr_equal(strstr(got.why, wanted), got.why);
      assert_true(got.quirks & GKI_CUDA_HOST_GATED);
      assert_int_equal(got.graph_count, 0);
      continue;
    }
    assert_string_equal(not_yes(), versions[k] >= 13000 ? "" : "P9a?");
    assert_int_equal(got.quirks, versions[k] >= 13000 ? 0 : GKI_CUDA_NO_SWITCH);
    assert_string_equal(got.why, "");
    assert_int_equal(got.graph_count, versions[k] >= 13000 ? 6 : 5);
  }
}

TEST_WITH(in_any_order, begin, end) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    sim->set_seed(seed);
    expect_all_yes();
    assert_true(got.overlaps > 0);
  }
}

/* What goes right where the branches never meet proves nothing. */
TEST_WITH(branches_never_meet, begin, end) {
  sim->answer_no("overlap");
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    sim->set_seed(seed);
    ask();
    assert_true(got.conditional && got.is_final);
    assert_int_equal(got.overlaps, 0);
    assert_string_equal(not_yes(), "P4e~ P4f~ P4g~ P8?");
    assert_int_equal(got.quirks, GKI_CUDA_CHAIN_BRANCHES);
  }
  assert_non_null(strstr(described(GKI_CUDA_CHAIN_BRANCHES),
                         "one handle to the same value (P4g, not shown: they were never seen at work at once)"));
  sim->answer_no("overlap,P4e"); /* a no is one all the same */
  ask();
  assert_string_equal(not_yes(), "P4e P4f P4g~ P8?");
}

TEST_WITH(each_no, begin, end) {
  static const struct { const char *asked, *wanted; uint32_t quirks; } cases[] = {
      {"P1a", "P1a P2o0", ALL_WAYS},
      {"P1b", "P1b P2d", GKI_CUDA_SET_AT_ENTRY},
      {"P1b2", "P1b2 P2d", GKI_CUDA_REENABLE_IN_FRONT | GKI_CUDA_SET_AT_ENTRY},
      {"P1c", "P1c P2b", GKI_CUDA_SET_AT_ENTRY | GKI_CUDA_MERGE_IN_BODY},
      {"P1d", "P1d P17a P17b", GKI_CUDA_TARGET_BY_COPY | GKI_CUDA_CODE_ON_HOST},
      {"P1e", "P1c P1e P1k P2o2 P2o3 P2d P7 P9a",
       GKI_CUDA_SET_AT_ENTRY | GKI_CUDA_SET_PER_PASS | GKI_CUDA_PASS_ON_PER_LEVEL | GKI_CUDA_LOOP_END_LAST |
           GKI_CUDA_NO_SWITCH},
      {"P1k", "P1c P1k P2d P6 P9a",
       GKI_CUDA_SET_AT_ENTRY | GKI_CUDA_SET_PER_PASS | GKI_CUDA_CLOSE_FROM_OUTSIDE | GKI_CUDA_NO_SWITCH},
      {"P2o0", "P2o0", ALL_WAYS},
      {"P2o1", "P2o1 P2o2 P2o3 P6 P7 P9a",
       GKI_CUDA_PASS_ON_PER_LEVEL | GKI_CUDA_CLOSE_FROM_OUTSIDE | GKI_CUDA_LOOP_END_LAST | GKI_CUDA_NO_SWITCH},
      {"P2o2", "P2o2 P2o3 P7", GKI_CUDA_PASS_ON_PER_LEVEL | GKI_CUDA_LOOP_END_LAST},
      {"P2o3", "P2o3 P7", GKI_CUDA_PASS_ON_PER_LEVEL | GKI_CUDA_LOOP_END_LAST},
      {"P2d", "P1c P2d", GKI_CUDA_SET_AT_ENTRY},
      {"P2b", "P2b", GKI_CUDA_MERGE_IN_BODY},
      {"P4a", "P4a P4e P4f P8?", GKI_CUDA_WRITE_ONCE | GKI_CUDA_CHAIN_BRANCHES},
      {"P6", "P6 P9a", GKI_CUDA_CLOSE_FROM_OUTSIDE | GKI_CUDA_NO_SWITCH},
      {"P7", "P7", GKI_CUDA_LOOP_END_LAST},
      {"P17a", "P17a P17b", GKI_CUDA_CODE_ON_HOST},
      {"P17b", "P17b", GKI_CUDA_CODE_ON_HOST},
      {"P4e", "P4e P4f P8?", GKI_CUDA_CHAIN_BRANCHES},
      {"P4f", "P4f P8?", GKI_CUDA_CHAIN_BRANCHES},
      {"P4g", "P4g P8?", GKI_CUDA_CHAIN_BRANCHES},
      {"P8", "P8", GKI_CUDA_CHAIN_BRANCHES},
      {"P9a", "P9a", GKI_CUDA_NO_SWITCH},
  };
  bool is_right = true;
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    sim->answer_no(cases[k].asked);
    ask();
    assert_false(got.hangs || got.broke);
    assert_true(got.is_final);
    if (strcmp(not_yes(), cases[k].wanted) == 0 && got.quirks == cases[k].quirks &&
        got.conditional == (got.quirks != ALL_WAYS) && !got.conditional == (got.why[0] != 0))
      continue;
    print_error("%s: \"%s\", ways %#x, %d: %s\n", cases[k].asked, not_yes(), got.quirks, got.conditional, got.why);
    is_right = false;
  }
  assert_true(is_right);
}

/* What is answered so in the environment isn't tried, nor what is like it. */
TEST_WITH(declined, begin, end) {
  assert_ok(probe_with("-P4e,-P9a", 7));
  assert_true(got.conditional);
  assert_string_equal(not_yes(), "P4e- P4f? P4g? P8? P9a-");
  assert_int_equal(got.quirks, GKI_CUDA_CHAIN_BRANCHES | GKI_CUDA_NO_SWITCH);
  assert_int_equal(got.graph_count, 3);
  assert_non_null(strstr(described(GKI_CUDA_NO_SWITCH), "(P9a, as GK_CUDA_PROBE says)"));
  assert_ok(probe_with("-P2d", 7)); /* it isn't what is known by now */
  assert_string_equal(not_yes(), "P2d-");
  assert_int_equal(got.quirks, GKI_CUDA_SET_AT_ENTRY);
  assert_ok(probe_with("-P2o0", 7));
  assert_false(got.conditional);
  assert_int_equal(got.graph_count, 0);
  assert_non_null(strstr(got.why, "(P2o0, as GK_CUDA_PROBE says)"));
  assert_ok(probe(7));
  assert_string_equal(not_yes(), "");
}

TEST_WITH(odd_wishes, begin, end) {
  static const char *const odd[] = {"2", "P4e", "-", "-P4", "-P4ee", "-P4e,", ",", "-P4e,P9a", "-P4e,-P99", "-p4e"};
  sim->mark();
  for (size_t k = 0; k < GK_COUNT(odd); ++k) {
    assert_fails(GK_ERROR_INVALID, "isn't understood; give 0, to try nothing, or questions of docs/cuda.md",
                 probe_with(odd[k], 7));
    setenv("GK_CUDA_PROBE", odd[k], 1);
    ask();
    assert_false(got.conditional || got.is_final);
    assert_non_null(strstr(got.why, "isn't understood"));
  }
  assert_int_equal(sim->counts().launches, 0);
  unsetenv("GK_CUDA_PROBE");
}

/* Also the longest of it: nothing is cut. */
TEST_WITH(says_all, begin, end) {
  sim->answer_no("P1b2,P1c,P1d,P1e,P1k,P2o1,P2o2,P2o3,P2d,P2b,P4a,P6,P7");
  ask();
  const char *text = described(GKI_CUDA_QUIRKS_PLAIN);
  const char *at = strstr(text, "this driver (CUDA 13.0) doesn't do this: a kernel in a loop's body sets a node");
  assert_ptr_equal(at, text);
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k) {
    char name[20];
    if (!(gki_cuda_questions[k].quirk & GKI_CUDA_QUIRKS_PLAIN) || got.answers[k] == GKI_CUDA_YES) continue;
    snprintf(name, sizeof name, "(%s)", gki_cuda_questions[k].name);
    at = strstr(at, name);
    if (!at) fail_msg("%s isn't there: %s", name, text);
  }
  assert_string_equal(at, "(P7)");
  memset(got.answers, GKI_CUDA_NOT_SHOWN, sizeof got.answers);
  memset(got.why, 'x', sizeof got.why - 1);
  got.answers[GKI_CUDA_QUESTION_COUNT - 1] = GKI_CUDA_NOT_ASKED;
  text = described(ALL_WAYS);
  assert_true(strlen(text) < GKI_CUDA_QUIRKS_BYTES - 1);
  at = strstr(text, "(P9a, couldn't be tried); ");
  assert_non_null(at);
  assert_string_equal(strstr(at, "xxx"), got.why);
}

TEST_WITH(says_what_is_needed, begin, end) {
  sim->answer_no("P1d,P2b");
  ask();
  assert_string_equal(described(GKI_CUDA_TARGET_BY_COPY), "this driver (CUDA 13.0) doesn't do this: an updated node "
                      "works as updated from the next launch on; defaults stay (P1d)");
  assert_non_null(strstr(described(got.quirks), "defaults stay (P1d); a kernel sets nodes in a body beside its own"));
  char few[30];
  gki_cuda_describe_quirks(&got, got.quirks, few, sizeof few);
  assert_string_equal(few, "this driver (CUDA 13.0) doesn");
  sim->answer_no(NULL);
  load_driver(12060);
  ask();
  assert_string_equal(described(GKI_CUDA_NO_SWITCH), "this driver (CUDA 12.6) isn't asked for this: a SWITCH runs its "
                      "case, and nothing for a value beyond; from 13.0 (P9a, not asked)");
  load_driver(13000);
  bool hit = false;
  for (uint64_t k = 30; k < 300 && !hit; ++k) {
    (sim->fail)(k, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
    ask();
    const char *text = described(GKI_CUDA_WRITE_ONCE);
    hit = got.conditional && /* for lists that do without */
          strstr(text, "this driver (CUDA 13.0) couldn't be tried for this: of what one kernel sets one after the ") &&
          strstr(text, "(P4a, couldn't be tried); some of what conditional nodes do couldn't be tried: cuGraph") &&
          strstr(text, ", for the graph of handles across bodies: out of memory");
  }
  assert_true(hit);
}

/* The second launch isn't held back for an answer to the first, so that an update in between has to spare that. */
static CUstream launched_on;
static int updates;
static CUresult note_launch(CUgraphExec exec, CUstream stream) {
  launched_on = stream;
  return right.cuGraphLaunch(exec, stream);
}
static CUresult note_question(CUstream stream) {
  launched_on = NULL;
  return right.cuStreamQuery(stream);
}
static CUresult update_behind_launch(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *parameters) {
  assert_non_null(launched_on);
  ++updates;
  return right.cuGraphExecNodeSetParams(exec, node, parameters);
}

TEST_WITH(updates_come_between_launches, begin, end) {
  driver.cuGraphLaunch = note_launch;
  driver.cuStreamQuery = note_question;
  driver.cuGraphExecNodeSetParams = update_behind_launch;
  expect_all_yes();
  assert_int_equal(updates, 5);
}

/* A driver that does nothing at first. */
static CUresult launch_every_other(CUgraphExec exec, CUstream stream) {
  static int count;
  return count++ % 2 ? right.cuGraphLaunch(exec, stream) : CUDA_SUCCESS;
}

TEST_WITH(first_launch_counts, begin, end) {
  driver.cuGraphLaunch = launch_every_other;
  ask();
  assert_false(got.conditional);
  assert_string_equal(not_yes(), "P1a P2o0");
}

/* A driver that loses what is set in a third run, so that the first loop isn't ended where it should be. */
static CUresult copy_without_third_run(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  gki_cuda_setting *settings = (gki_cuda_setting *)from;
  for (size_t k = 0; k < bytes / sizeof *settings; ++k)
    if (settings[k].run == 2) settings[k].run = UINT32_MAX - 1;
  return right.cuMemcpyHtoDAsync(to, from, bytes, stream);
}

TEST_WITH(first_loop_is_ended, begin, end) {
  driver.cuMemcpyHtoDAsync = copy_without_third_run;
  ask();
  assert_false(got.conditional || got.hangs || got.broke);
  assert_true(got.is_final);
  assert_int_equal(got.graph_count, 2);
  assert_string_equal(not_yes(), "P1a P2o0 P2o1");
}

/* The table in docs/cuda.md has them all, in their order, and what is done by its name here. */
TEST(stands_in_the_docs) {
  static const struct { uint32_t quirk; const char *name; } ways[] = {
      {0, "nothing, gk doesn't rely on it"}, {GKI_CUDA_HOST_GATED, "host-gated"}, {GKI_CUDA_NO_SWITCH, "no SWITCH"},
      {GKI_CUDA_CHAIN_BRANCHES, "chain branches"}, {GKI_CUDA_TARGET_BY_COPY, "target by copy"},
      {GKI_CUDA_CODE_ON_HOST, "code by hand host-gated"},
      {GKI_CUDA_QUIRKS_PLAIN, "plain gates"}};
  static char docs[100000];
  FILE *file = fopen("docs/cuda.md", "r");
  assert_non_null(file);
  docs[fread(docs, 1, sizeof docs - 1, file)] = 0;
  fclose(file);
  const char *at = docs;
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k) {
    const gki_cuda_question_text *q = &gki_cuda_questions[k];
    char row[300];
    size_t w = 0;
    while (ways[w].quirk != q->quirk && !(ways[w].quirk & q->quirk)) ++w;
    snprintf(row, sizeof row, "\n| %s | %s | %s |\n", q->name, q->text, ways[w].name);
    const char *found = strstr(at, row);
    if (!found) fail_msg("docs/cuda.md lacks%s", row);
    at = found + 1;
  }
}

TEST_WITH(no_kernels, begin, end) {
  gki_cuda_probe_again(&driver, context, NULL, "no image fits", &got);
  assert_false(got.conditional || got.is_final);
  assert_string_equal(got.why, "no image fits");
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void is_clean_if(uint64_t k, CUresult code, simgpu_how how) {
  sim->mark();
  (sim->fail)(k, code, how);
  ask();
  const char *hit = sim->failed();
  const bool gives_back = hit && (strstr(hit, "Free") || strstr(hit, "Destroy"));
  if (!hit) fail_msg("call %d didn't come", (int)k);
  if (how == SIMGPU_NOW && strcmp(not_yes(), "") != 0 && !strstr(got.why, hit))
    fail_msg("call %d, %s: %s", (int)k, hit, got.why);
  if (!gives_back && strcmp(hit, "cuGraphExecNodeSetParams") != 0 && (got.is_final || !got.why[0]))
    fail_msg("call %d, %s: \"%s\", final %d", (int)k, hit, got.why, got.is_final);
  assert_int_equal(got.conditional, (got.quirks & GKI_CUDA_HOST_GATED) == 0);
  if (strstr(got.why, ", for the graph of IF:") || strstr(got.why, ", for the graph of WHILE:"))
    assert_false(got.conditional); /* though the other one answers the same questions */
  assert_false(got.hangs);
  if (how == SIMGPU_NOW || strstr(hit, "cuGraphLaunch")) assert_int_equal(got.broke, how != SIMGPU_NOW);
  sim->mark();
  if (how != SIMGPU_NOW) return;
  assert_int_equal(sim->alive(SIMGPU_ALL), 2); /* the context's retain and the module */
}

/* What is logged of each that was asked, and nothing of one that is known. */
static char logged[1000];
static void keep_line(void *user, gk_log_level level, const char *line) {
  (void)user;
  if (level == GK_LOG_INFO) snprintf(logged, sizeof logged, "%s", line);
}

TEST_WITH(is_logged, begin, end) {
  static const struct { const char *no, *said; } turns[] = {
      {NULL, " us; not seen to work: nothing"}, {"P9a,P2b", " us; not seen to work: P2b P9a"},
      {"P2o0", "CUDA device 1001: no conditional nodes: this driver (CUDA 13.0) doesn't do this: "}};
  gk_set_log(GK_LOG_INFO, keep_line, NULL);
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    sim->answer_no(turns[k].no);
    logged[0] = 0;
    assert_ok(probe(1001));
    if (!strstr(logged, turns[k].said)) fail_msg("%s", logged);
  }
  sim->answer_no(NULL);
  assert_ok(probe(12));
  logged[0] = 0;
  assert_ok(probe(12));
  assert_string_equal(logged, "");
  gk_set_log(GK_LOG_NONE, NULL, NULL);
}

TEST_WITH(once_per_device, begin, end) {
  gki_cuda_probe(&driver, 1, context, NULL, "not yet", &got);
  assert_false(got.conditional);
  assert_ok(probe(1));
  assert_true(got.conditional);
  const gki_cuda_caps before = got;
  sim->mark();
  assert_ok(probe(1));
  assert_memory_equal(&got, &before, sizeof got);
  gki_cuda_probe(&driver, 1, context, NULL, "not this time", &got); /* whatever is known */
  assert_false(got.conditional);
  assert_string_equal(got.why, "not this time");
  assert_ok(probe(1));
  assert_memory_equal(&got, &before, sizeof got);
  assert_int_equal(sim->counts().calls, 0);
  assert_ok(probe(2));
  assert_true(sim->counts().calls > 0);
  static const CUdevice devices[] = {63, 64, 1000, -1}; /* more than are remembered, but for the first */
  for (size_t k = 0; k < GK_COUNT(devices); ++k) {
    assert_ok(probe(devices[k]));
    sim->mark();
    assert_ok(probe(devices[k]));
    assert_true(got.conditional);
    assert_int_equal(sim->counts().calls > 0, k > 0);
  }
}

/* How often one has to ask is open, so calls couldn't be counted. */
TEST_WITH(each_call_fails, begin, end) {
  sim->mark();
  ask();
  const uint64_t calls = sim->counts().calls;
  for (uint64_t k = 1; k <= calls; ++k)
    is_clean_if(k, k % 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
  expect_all_yes();
  for (uint64_t k = 1; k <= calls; k += 5) {
    is_clean_if(k, CUDA_ERROR_LAUNCH_FAILED, k % 2 ? SIMGPU_LATE : SIMGPU_LOST);
    close_context();
    open_context();
  }
  expect_all_yes();
}

/* ---- what takes long --------------------------------------------------------------------------------------------- */

/* Others' work in front of the first kernel, for longer than a graph may take. */
TEST_WITH(waits_for_others, begin, end) {
  sim->busy(2 * PATIENCE_MS / STEP_MS);
  expect_all_yes();
  assert_string_equal(got.why, "");
  assert_true(got.is_final && got.conditional && !got.busy && !got.hangs);
}

/* Launches on the stream of the graphs, which begins with one kernel; beside it are others. */
static CUstream main_stream;
static uint64_t launches, busy_from, busy_for;
static CUresult launch_and_count(CUgraphExec exec, CUstream stream) {
  if (!main_stream) main_stream = stream;
  if (stream == main_stream && ++launches == busy_from) sim->busy(busy_for);
  return right.cuGraphLaunch(exec, stream);
}

static void count_launches(uint64_t from, uint64_t steps) {
  driver.cuGraphLaunch = launch_and_count;
  main_stream = NULL;
  launches = 0;
  busy_from = from;
  busy_for = steps;
}

/* The same in front of a graph whose time counts by then. */
TEST_WITH(others_come_later, begin, end) {
  count_launches(4, 2 * PATIENCE_MS / STEP_MS);
  expect_all_yes();
  assert_true(launches > 4);
  assert_string_equal(got.why, "");
}

/* A launch that waits for its end couldn't be left. */
TEST_WITH(launches_wait, begin, end) {
  sim->mark();
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  ask();
  assert_false(got.conditional || got.is_final);
  assert_non_null(strstr(got.why, "with CUDA_LAUNCH_BLOCKING a launch waits for its end"));
  assert_int_equal(sim->counts().launches, 0);
  setenv("GK_CUDA_PROBE", "1", 1);
  ask();
  assert_true(got.conditional);
  unsetenv("GK_CUDA_PROBE");
  for (const char *off = "0"; off; off = *off ? "" : NULL) {
    setenv("CUDA_LAUNCH_BLOCKING", off, 1);
    ask();
    assert_true(got.conditional);
  }
  unsetenv("CUDA_LAUNCH_BLOCKING");
}

static CUresult end_three_graphs(CUstream stream) {
  return launches > 7 && stream == main_stream ? CUDA_ERROR_NOT_READY : right.cuStreamQuery(stream);
}

static void end_no_more(uint64_t steps) {
  driver.cuStreamQuery = end_three_graphs;
  count_launches(8, steps);
}

/* Nothing but that kernel was put there, and nothing waits for it. */
TEST_WITH(others_never_end, begin, NULL) {
  sim->busy(UINT64_MAX);
  sim->mark();
  gki_begin();
  assert_int_equal(probe(9), GK_ERROR_DEVICE);
  assert_string_equal(gk_error(), "backend cuda: device 9 is busy: conditional nodes couldn't be tried: a plain kernel "
                                  "didn't run within 60 s, as the device has other work; open it again when that is "
                                  "over, or with GK_CUDA_PROBE=0, then nothing is tried and lists run host-gated");
  assert_true(got.busy && !got.hangs && !got.broke && !got.is_final && !got.conditional);
  assert_int_equal(sim->counts().launches, 1);
  assert_int_equal(sim->counts().waits, 0);
  assert_int_equal(gki_cuda_probe_refuses(9), GK_OK);
  sim->busy(0);
  gki_begin();
  assert_int_equal(probe(9), GK_OK); /* asks anew */
  assert_string_equal(not_yes(), "");
}

/* Not even kernels beside it. */
TEST_WITH(nothing_ends, begin, NULL) {
  end_no_more(UINT64_MAX);
  ask();
  assert_string_equal(got.why, "conditional nodes couldn't be tried: the graph of parallel branches didn't end within "
                               "60 s");
  assert_true(got.hangs && got.is_final);
  sim->busy(0);
  sim->allow("leak");
}

TEST_WITH(never_ends, begin, NULL) {
  end_no_more(0);
  const uint64_t begun = own_time.passed_ns;
  gki_begin(); /* what failed in a test before isn't the failure of this call */
  sim->mark();
  assert_int_equal(gki_cuda_probe_refuses(5), GK_OK);
  assert_fails(GK_ERROR_DEVICE, "device 5 hangs: conditional nodes couldn't be tried: the graph of parallel branches "
               "didn't end within 3 s, and kernels beside it did; this process can't use it any more; start it anew "
               "with GK_CUDA_PROBE=0", probe(5));
  assert_true(own_time.passed_ns - begun >= (uint64_t)PATIENCE_MS * NS_PER_MS);
  assert_int_equal(sim->counts().waits, 0);
  assert_int_equal(sim->calls("cuGraphExecDestroy"), 3); /* of those that ended: */
  assert_int_equal(sim->calls("cuGraphDestroy"), 3);
  assert_true(!got.conditional && got.hangs && got.is_final && got.quirks & GKI_CUDA_HOST_GATED);
  assert_string_equal(got.why, "conditional nodes couldn't be tried: the graph of parallel branches didn't end within "
                      "3 s, and kernels beside it did");
  assert_int_equal(probe(5), GK_ERROR_DEVICE); /* nobody tries again */
  assert_false(got.conditional);
  assert_int_equal(gki_cuda_probe_refuses(5), GK_ERROR_DEVICE);
  assert_true(sim->alive(SIMGPU_ALL) > 2); /* it may still run */
  sim->allow("leak");
}

int main(void) { return run_all_tests_with(begin_all, NULL); }
