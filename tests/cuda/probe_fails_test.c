/* The probe where calls of the driver fail, launches wait, or other work or the probe itself keeps the device busy. */
#include "probe_bench.h"

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
    assert_false(got.conditional); /* though other questions' graphs work */
  assert_false(got.hangs);
  if (how == SIMGPU_NOW || strstr(hit, "cuGraphLaunch")) assert_int_equal(got.broke, how != SIMGPU_NOW);
  sim->mark();
  if (how != SIMGPU_NOW) return;
  assert_int_equal(sim->alive(SIMGPU_ALL), 2); /* the context's retain and the module */
}

/* The tests' clock keeps the number of polls fixed, so calls can be counted. */
TEST_WITH(each_call_fails, begin, end) {
  sim->mark();
  ask();
  const uint64_t calls = sim->counts().calls;
  for (uint64_t k = 1; k <= calls; ++k)
    is_clean_if(k, k % 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
  expect("", 0);
  for (uint64_t k = 1; k <= calls; k += 5) {
    is_clean_if(k, CUDA_ERROR_LAUNCH_FAILED, k % 2 ? SIMGPU_LATE : SIMGPU_LOST);
    close_context();
    open_context();
  }
  expect("", 0);
}

/* Other work in front of the first kernel, for longer than a graph may take. */
TEST_WITH(waits_for_others, begin, end) {
  sim->busy(2 * PATIENCE_MS / STEP_MS);
  expect("", 0);
  assert_string_equal(got.why, "");
  assert_true(got.is_final && got.conditional && !got.busy && !got.hangs);
}

/* Counts launches on the stream of the graphs, which begins with one kernel. Other streams run beside it. */
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

/* The same in front of a graph whose time is already counted. */
TEST_WITH(others_come_later, begin, end) {
  count_launches(4, 2 * PATIENCE_MS / STEP_MS);
  expect("", 0);
  assert_true(launches > 4);
  assert_string_equal(got.why, "");
}

/* The probe couldn't give up a launch that waits for its end. */
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

/* Only that kernel was launched, and nothing waits for it. */
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
  assert_int_equal(probe(9), GK_OK); /* the probe runs again */
  assert_string_equal(not_yes(), "");
}

/* The kernels beside the graph don't end, either. */
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
  gki_begin(); /* a failure in an earlier test isn't a failure of this call */
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
  assert_int_equal(probe(5), GK_ERROR_DEVICE); /* the result is kept */
  assert_false(got.conditional);
  assert_int_equal(gki_cuda_probe_refuses(5), GK_ERROR_DEVICE);
  assert_true(sim->alive(SIMGPU_ALL) > 2); /* it may still run */
  sim->allow("leak");
}

int main(void) { return run_all_tests_with(begin_all, NULL); }
