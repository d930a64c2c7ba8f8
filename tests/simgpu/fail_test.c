/* Calls that are made to fail, the counts, and the messages at the end of the process. */
#include "graph_world.h"
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static CUresult make_event(CUevent *event) { return cu.cuEventCreate(event, 0); }

/* cmocka has a macro named fail. */
static void fail_at(uint64_t k, CUresult code, simgpu_how how) { (sim->fail)(k, code, how); }

CASE(call_k_fails_once) {
  CUevent event[4] = {NULL};
  fail_at(3, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
  for (int k = 0; k < 4; ++k) {
    WRONG(k == 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS, make_event(&event[k]));
    assert_int_equal(sim->failed() != NULL, k >= 2);
  }
  assert_string_equal(sim->failed(), "cuEventCreate");
  assert_null(event[2]);
  for (int k = 0; k < 4; ++k)
    if (event[k]) RIGHT(cu.cuEventDestroy(event[k]));
}

CASE(names_of_errors_are_not_counted) {
  const char *text;
  CUevent event;
  fail_at(1, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
  RIGHT(cu.cuGetErrorName(CUDA_ERROR_UNKNOWN, &text));
  RIGHT(cu.cuGetErrorString(CUDA_ERROR_UNKNOWN, &text));
  WRONG(CUDA_ERROR_UNKNOWN, make_event(&event));
}

CASE(giving_back_works_even_if_it_fails) {
  CUevent event;
  CUdeviceptr memory;
  CUgraph other = make_graph();
  RIGHT(make_event(&event));
  RIGHT(cu.cuMemAlloc(&memory, 8));
  fail_at(1, CUDA_ERROR_LAUNCH_FAILED, SIMGPU_LOST);
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuEventDestroy(event));
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuMemFree(memory));
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuGraphDestroy(other));
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuStreamSynchronize(stream)); /* and so on */
  fail_at(0, CUDA_SUCCESS, SIMGPU_NOW);
  assert_int_equal(sim->alive(SIMGPU_EVENTS), 0);
  assert_int_equal(sim->alive(SIMGPU_MEMORY), 0);
  assert_int_equal(sim->alive(SIMGPU_GRAPHS), 1);
  wait_for(stream);
}

CASE(capture_that_fails_to_end_leaves_nothing) {
  begin_capture(stream, RELAXED);
  fail_at(1, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
  end_capture(stream, CUDA_ERROR_UNKNOWN);
  assert_int_equal(sim->alive(SIMGPU_GRAPHS), 1);
  wait_for(stream); /* isn't captured */
}

CASE(late_failure_comes_with_the_next_wait) {
  add_log(graph, NULL, 'a');
  CUgraphExec exec = exec_of();
  CUevent event;
  fail_at(1, CUDA_ERROR_LAUNCH_FAILED, SIMGPU_LATE);
  RIGHT(cu.cuGraphLaunch(exec, stream));
  assert_string_equal(sim->failed(), "cuGraphLaunch");
  RIGHT(make_event(&event)); /* it isn't known yet */
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuStreamSynchronize(stream));
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuGraphLaunch(exec, stream)); /* from then on for ever */
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuEventDestroy(event));
  WRONG(CUDA_ERROR_LAUNCH_FAILED, destroy_exec());
}

CASE(context_made_anew_works) {
  fail_at(1, CUDA_ERROR_LAUNCH_FAILED, SIMGPU_LATE);
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuStreamQuery(stream));
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuMemFreeHost(counters));
  RIGHT(cu.cuGraphDestroy(graph));
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuModuleUnload(module));
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuStreamDestroy(stream));
  RIGHT(cu.cuCtxPopCurrent(NULL));
  RIGHT(cu.cuDevicePrimaryCtxRelease(0));
  assert_int_equal(sim->alive(SIMGPU_ALL), 0);
  begin(state);
  add_log(graph, NULL, 'a');
  expect_trace("a");
}

CASE(mark_starts_anew) {
  for (int marked = 0; marked < 2; ++marked) {
    CUevent event;
    RIGHT(make_event(&event));
    RIGHT(cu.cuEventDestroy(event));
    assert_int_equal(sim->calls("cuEventCreate"), 1);
    assert_true(sim->counts().calls >= 2);
    fail_at(1, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
    sim->mark();
    assert_int_equal(sim->calls("cuEventCreate"), 0);
    assert_int_equal(sim->counts().calls, 0);
  }
}

CASE(rules_can_be_allowed) {
  sim->allow("destroyed,eager");
  RIGHT(cu.cuGraphDestroy(graph));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphDestroy(graph));
  assert_int_equal(sim->broken(), 0);
  sim->allow(NULL);
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGraphDestroy(graph));
  assert_int_equal(sim->broken(), 1);
  expect_broken("destroyed");
  graph = make_graph();
}

/* ---- the end of the process: this program itself, with an argument ---- */

static int child(const char *what) {
  if (find_driver() != 0) return 1;
  CUresult started = cu.cuInit(0);
  if (strcmp(what, "nothing") == 0) return 0;
  CUresult retained = cu.cuDevicePrimaryCtxRetain(&context, 0);
  printf("started %d, retained %d\n", (int)started, (int)retained);
  if (strcmp(what, "leak") == 0) return 0;
  cu.cuDevicePrimaryCtxRelease(0);
  cu.cuDevicePrimaryCtxRelease(0);
  return 0;
}

static char program[4096];
enum { ANY = -1, NOT_0 = -2 };

CASE(end_of_a_process) {
  static const struct { const char *what, *environment; int exit_code; const char *words; } cases[] = {
    {"nothing", "", 0, ""},
    {"leak", "", 70, "1 broken rule, the first: leak: at the end of the process there are still 1 context"},
    {"leak", "SIMGPU_STRICT=0", 0, "leak"},
    {"twice", "", 70, "destroyed: a primary context was released that nobody retains"},
    {"twice", "SIMGPU_STRICT=abort", NOT_0, ""},
    {"twice", "SIMGPU_ALLOW=destroyed", 0, ""},
    {"leak", "SIMGPU_FAIL=2:2", ANY, "started 0, retained 2"}, /* cuInit is the first call */
    {"leak", "SIMGPU_DEVICES=0", ANY, "started 100, retained 3"}}; /* no device, not initialised */
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
    char command[8192], text[4096];
    snprintf(command, sizeof command, "%s '%s' %s 2>&1", cases[k].environment, program, cases[k].what);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
    const int status = pclose(pipe), code = WIFEXITED(status) ? WEXITSTATUS(status) : ANY;
    bool right = cases[k].exit_code == ANY || (cases[k].exit_code == NOT_0 ? code != 0 : code == cases[k].exit_code);
    if (!right || !strstr(text, cases[k].words))
      fail_msg("%s %s: status %d, \"%s\"", cases[k].environment, cases[k].what, status, text);
  }
}

static atomic_bool asking;
static void *ask_on(void *data) {
  int devices;
  while (atomic_load(&asking)) (void)cu.cuDeviceGetCount(&devices);
  return data;
}

static void fork_once(void) {
  int status;
  fflush(NULL);
  const pid_t forked = fork();
  if (forked == 0) {
    int devices;
    alarm(600); /* ends a process that hangs */
    const CUresult result = cu.cuDeviceGetCount(&devices);
    const bool told = strncmp(sim->first_broken(), "forked: cuDeviceGetCount", 24) == 0;
    _exit(result == CUDA_ERROR_NOT_INITIALIZED && told ? 0 : 1);
  }
  assert_int_equal(waitpid(forked, &status, 0), forked);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Also if another thread is in the driver at the fork. */
CASE(forked_process_is_told) {
  fork_once();
  atomic_store(&asking, true);
  pthread_t other = begin_thread(ask_on, NULL);
  for (int k = 0; k < 50; ++k) fork_once();
  atomic_store(&asking, false);
  pthread_join(other, NULL);
}

int main(int count, char **words) {
  if (count > 1) return child(words[1]);
  if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) return 1;
  return run_all_tests_with(load_driver, NULL);
}
