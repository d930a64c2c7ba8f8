/* The probe's results and messages, on simulated drivers of every version that answer each question with yes or no. */
#include "probe_bench.h"

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
    expect("", 0);
    assert_true(got.overlaps > 0);
  }
}

/* A right result proves nothing if the branches never met. */
TEST_WITH(branches_never_meet, begin, end) {
  sim->answer_no("overlap");
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    sim->set_seed(seed);
    expect("P4e~ P4f~ P4g~ P8?", GKI_CUDA_CHAIN_BRANCHES);
    assert_true(got.conditional && got.is_final);
    assert_int_equal(got.overlaps, 0);
  }
  assert_non_null(strstr(described(GKI_CUDA_CHAIN_BRANCHES),
                         "one handle to the same value (P4g, not shown: they were never seen at work at once)"));
  sim->answer_no("overlap,P4e"); /* a no still counts */
  expect("P4e P4f P4g~ P8?", GKI_CUDA_CHAIN_BRANCHES);
}

TEST_WITH(each_no, begin, end) {
#define Q(name) GKI_CUDA_##name
  static const struct { const char *asked, *wanted; uint32_t quirks; } cases[] = {
      {"P1a", "P1a P2o0", ALL_WAYS},
      {"P1b", "P1b P2d", Q(SET_AT_ENTRY)},
      {"P1b2", "P1b2 P2d", Q(REENABLE_IN_FRONT) | Q(SET_AT_ENTRY)},
      {"P1c", "P1c P2b", Q(SET_AT_ENTRY) | Q(MERGE_IN_BODY)},
      {"P1d", "P1d P17a P17b", Q(TARGET_BY_COPY) | Q(CODE_ON_HOST)},
      {"P1e", "P1c P1e P1k P2o2 P2o3 P2d P7 P9a",
       Q(SET_AT_ENTRY) | Q(SET_PER_PASS) | Q(PASS_ON_PER_LEVEL) | Q(LOOP_END_LAST) | Q(NO_SWITCH)},
      {"P1k", "P1c P1k P2d P6 P9a", Q(SET_AT_ENTRY) | Q(SET_PER_PASS) | Q(CLOSE_FROM_OUTSIDE) | Q(NO_SWITCH)},
      {"P2o0", "P2o0", ALL_WAYS},
      {"P2o1", "P2o1 P2o2 P2o3 P6 P7 P9a",
       Q(PASS_ON_PER_LEVEL) | Q(CLOSE_FROM_OUTSIDE) | Q(LOOP_END_LAST) | Q(NO_SWITCH)},
      {"P2o2", "P2o2 P2o3 P7", Q(PASS_ON_PER_LEVEL) | Q(LOOP_END_LAST)},
      {"P2o3", "P2o3 P7", Q(PASS_ON_PER_LEVEL) | Q(LOOP_END_LAST)},
      {"P2d", "P1c P2d", Q(SET_AT_ENTRY)},
      {"P2b", "P2b", Q(MERGE_IN_BODY)},
      {"P4a", "P4a P4e P4f P8?", Q(WRITE_ONCE) | Q(CHAIN_BRANCHES)},
      {"P6", "P6 P9a", Q(CLOSE_FROM_OUTSIDE) | Q(NO_SWITCH)},
      {"P7", "P7", Q(LOOP_END_LAST)},
      {"P17a", "P17a P17b", Q(CODE_ON_HOST)},
      {"P17b", "P17b", Q(CODE_ON_HOST)},
      {"P4e", "P4e P4f P8?", Q(CHAIN_BRANCHES)},
      {"P4f", "P4f P8?", Q(CHAIN_BRANCHES)},
      {"P4g", "P4g P8?", Q(CHAIN_BRANCHES)},
      {"P8", "P8", Q(CHAIN_BRANCHES)},
      {"P9a", "P9a", Q(NO_SWITCH)},
  };
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    sim->answer_no(cases[k].asked);
    expect(cases[k].wanted, cases[k].quirks);
    assert_true(got.is_final && !got.hangs && !got.broke);
    assert_int_equal(got.conditional, got.quirks != ALL_WAYS);
    assert_int_equal(!got.conditional, got.why[0] != 0);
  }
}

/* A question that GK_CUDA_PROBE answers isn't tried, nor are questions that depend on it. */
TEST_WITH(declined, begin, end) {
  assert_ok(probe_with("-P4e,-P9a", 7));
  assert_true(got.conditional);
  assert_string_equal(not_yes(), "P4e- P4f? P4g? P8? P9a-");
  assert_int_equal(got.quirks, GKI_CUDA_CHAIN_BRANCHES | GKI_CUDA_NO_SWITCH);
  assert_int_equal(got.graph_count, 3);
  assert_non_null(strstr(described(GKI_CUDA_NO_SWITCH), "(P9a, as GK_CUDA_PROBE says)"));
  assert_ok(probe_with("-P2d", 7)); /* the kept answers aren't used */
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
    assert_invalid("isn't understood; give 0, to try nothing, or questions of docs/cuda.md",
                 probe_with(odd[k], 7));
    setenv("GK_CUDA_PROBE", odd[k], 1);
    ask();
    assert_false(got.conditional || got.is_final);
    assert_non_null(strstr(got.why, "isn't understood"));
  }
  assert_int_equal(sim->counts().launches, 0);
  unsetenv("GK_CUDA_PROBE");
}

/* Also the longest text: nothing is cut. */
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
    hit = got.conditional && /* for lists that don't need it */
          strstr(text, "this driver (CUDA 13.0) couldn't be tried for this: of what one kernel sets one after the ") &&
          strstr(text, "(P4a, couldn't be tried); some of what conditional nodes do couldn't be tried: cuGraph") &&
          strstr(text, ", for the graph of handles across bodies: out of memory");
  }
  assert_true(hit);
}

/* The second launch doesn't wait for the first, so an update in between must not change the first. */
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
  expect("", 0);
  assert_int_equal(updates, 5);
}

/* A driver that ignores the first launch. */
static CUresult launch_every_other(CUgraphExec exec, CUstream stream) {
  static int count;
  return count++ % 2 ? right.cuGraphLaunch(exec, stream) : CUDA_SUCCESS;
}

TEST_WITH(first_launch_counts, begin, end) {
  driver.cuGraphLaunch = launch_every_other;
  expect("P1a P2o0", ALL_WAYS);
  assert_false(got.conditional);
}

/* A driver that loses what is set in a third run, so that the first loop isn't ended when it should be. */
static CUresult copy_without_third_run(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  gki_cuda_setting *settings = (gki_cuda_setting *)from;
  for (size_t k = 0; k < bytes / sizeof *settings; ++k)
    if (settings[k].run == 2) settings[k].run = UINT32_MAX - 1;
  return right.cuMemcpyHtoDAsync(to, from, bytes, stream);
}

TEST_WITH(first_loop_is_ended, begin, end) {
  driver.cuMemcpyHtoDAsync = copy_without_third_run;
  ask();
  assert_string_equal(not_yes(), "P1a P2o0 P2o1");
  assert_true(got.is_final && !got.conditional && !got.hangs && !got.broke);
  assert_int_equal(got.graph_count, 2);
}

TEST_WITH(no_kernels, begin, end) {
  gki_cuda_probe_again(&driver, context, NULL, "no image fits", &got);
  assert_false(got.conditional || got.is_final);
  assert_string_equal(got.why, "no image fits");
}

/* The log of each question that is asked; nothing is logged of one that is known. */
static char logged[1000];
static void keep_line(UNUSED void *user, gk_log_level level, const char *line) {
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
  gki_cuda_probe(&driver, 1, context, NULL, "not this time", &got); /* the known answers aren't used */
  assert_false(got.conditional);
  assert_string_equal(got.why, "not this time");
  assert_ok(probe(1));
  assert_memory_equal(&got, &before, sizeof got);
  assert_int_equal(sim->counts().calls, 0);
  assert_ok(probe(2));
  assert_true(sim->counts().calls > 0);
  static const CUdevice devices[] = {63, 64, 1000, -1}; /* more devices than are kept, apart from the first */
  for (size_t k = 0; k < GK_COUNT(devices); ++k) {
    assert_ok(probe(devices[k]));
    sim->mark();
    assert_ok(probe(devices[k]));
    assert_true(got.conditional);
    assert_int_equal(sim->counts().calls > 0, k > 0);
  }
}

int main(void) { return run_all_tests_with(begin_all, NULL); }
