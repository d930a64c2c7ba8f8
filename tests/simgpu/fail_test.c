/* Calls that are made to fail, what is counted, and what the end of the process says. */
#include "graph_world.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static CUresult make_event(CUevent *event) { return cu.cuEventCreate(event, 0); }

CASE(call_k_fails_once) {
  CUevent event[4] = {NULL};
  (sim->fail)(3, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
  for (int k = 0; k < 4; ++k) {
    assert_int_equal(make_event(&event[k]), k == 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
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
  (sim->fail)(1, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
  RIGHT(cu.cuGetErrorName(CUDA_ERROR_UNKNOWN, &text));
  RIGHT(cu.cuGetErrorString(CUDA_ERROR_UNKNOWN, &text));
  WRONG(CUDA_ERROR_UNKNOWN, make_event(&event));
}

CASE(giving_back_works_even_if_it_fails) {
  CUevent event;
  CUdeviceptr memory;
  CUgraph other;
  RIGHT(make_event(&event));
  RIGHT(cu.cuMemAlloc(&memory, 8));
  RIGHT(cu.cuGraphCreate(&other, 0));
  (sim->fail)(1, CUDA_ERROR_LAUNCH_FAILED, SIMGPU_LOST);
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuEventDestroy(event));
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuMemFree(memory));
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuGraphDestroy(other));
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuStreamSynchronize(stream)); /* and so on */
  (sim->fail)(0, CUDA_SUCCESS, SIMGPU_NOW);
  assert_int_equal(sim->alive(SIMGPU_EVENTS), 0);
  assert_int_equal(sim->alive(SIMGPU_MEMORY), 0);
  assert_int_equal(sim->alive(SIMGPU_GRAPHS), 1);
  RIGHT(cu.cuStreamSynchronize(stream));
}

CASE(capture_that_fails_to_end_leaves_nothing) {
  CUgraph ended = graph;
  RIGHT(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  (sim->fail)(1, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
  WRONG(CUDA_ERROR_UNKNOWN, cu.cuStreamEndCapture(stream, &ended));
  assert_null(ended);
  assert_int_equal(sim->alive(SIMGPU_GRAPHS), 1);
  RIGHT(cu.cuStreamSynchronize(stream)); /* isn't captured */
}

CASE(late_failure_comes_with_the_next_wait) {
  add_log(graph, NULL, 'a');
  CUgraphExec exec = exec_of();
  CUevent event;
  (sim->fail)(1, CUDA_ERROR_LAUNCH_FAILED, SIMGPU_LATE);
  RIGHT(cu.cuGraphLaunch(exec, stream));
  assert_string_equal(sim->failed(), "cuGraphLaunch");
  RIGHT(make_event(&event)); /* it isn't known yet */
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuStreamSynchronize(stream));
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuGraphLaunch(exec, stream)); /* from then on for ever */
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuEventDestroy(event));
  WRONG(CUDA_ERROR_LAUNCH_FAILED, cu.cuGraphExecDestroy(exec));
}

CASE(context_made_anew_works) {
  (sim->fail)(1, CUDA_ERROR_LAUNCH_FAILED, SIMGPU_LATE);
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
  CUevent event;
  RIGHT(make_event(&event));
  RIGHT(cu.cuEventDestroy(event));
  assert_int_equal(sim->calls("cuEventCreate"), 1);
  assert_true(sim->counts().calls >= 2);
  (sim->fail)(1, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
  sim->mark();
  assert_int_equal(sim->calls("cuEventCreate"), 0);
  assert_int_equal(sim->counts().calls, 0);
  RIGHT(make_event(&event));
  RIGHT(cu.cuEventDestroy(event));
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
  RIGHT(cu.cuGraphCreate(&graph, 0));
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

/* The exit code, and what was printed. */
static int run_child(const char *what, const char *environment, char *text, size_t bytes) {
  char command[8192];
  snprintf(command, sizeof command, "%s '%s' %s 2>&1", environment, program, what);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  size_t length = fread(text, 1, bytes - 1, pipe);
  text[length] = '\0';
  return pclose(pipe);
}

CASE(end_tells_of_leaks_and_broken_rules) {
  char text[4096];
  int status = run_child("nothing", "", text, sizeof text);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  status = run_child("leak", "", text, sizeof text);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 70);
  assert_non_null(strstr(text, "1 broken rule, the first: leak: at the end of the process there are still 1 context"));
  status = run_child("leak", "SIMGPU_STRICT=0", text, sizeof text);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_non_null(strstr(text, "leak"));
  status = run_child("twice", "", text, sizeof text);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 70);
  assert_non_null(strstr(text, "destroyed: a primary context was released that nobody retains"));
  status = run_child("twice", "SIMGPU_STRICT=abort", text, sizeof text);
  assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  status = run_child("twice", "SIMGPU_ALLOW=destroyed", text, sizeof text);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

CASE(environment_is_read) {
  char text[4096];
  run_child("leak", "SIMGPU_FAIL=2:2", text, sizeof text); /* cuInit is the first */
  assert_non_null(strstr(text, "started 0, retained 2"));
  run_child("leak", "SIMGPU_DEVICES=0", text, sizeof text);
  assert_non_null(strstr(text, "started 100, retained 3")); /* no device, not initialised */
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
    alarm(600); /* what hangs is ended */
    const CUresult result = cu.cuDeviceGetCount(&devices);
    const bool told = strncmp(sim->first_broken(), "forked: cuDeviceGetCount", 24) == 0;
    _exit(result == CUDA_ERROR_NOT_INITIALIZED && told ? 0 : 1);
  }
  assert_int_equal(waitpid(forked, &status, 0), forked);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Whatever another thread is at in the driver at that moment. */
CASE(forked_process_is_told) {
  pthread_t other;
  fork_once();
  atomic_store(&asking, true);
  assert_int_equal(pthread_create(&other, NULL, ask_on, NULL), 0);
  for (int k = 0; k < 50; ++k) fork_once();
  atomic_store(&asking, false);
  pthread_join(other, NULL);
}

int main(int count, char **words) {
  if (count > 1) return child(words[1]);
  if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) return 1;
  return run_all_tests_with(load_driver, NULL);
}
