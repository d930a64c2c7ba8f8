/* The loader of libcuda.so.1, on stand-ins for it: fake_cuda.c, built in several ways. */
#include "unit/support/elsewhere.h"
#include <dlfcn.h>
#include <pthread.h>
#include "cuda/driver.h"
#include "base/error.h"

/* ---- in the process of a case ------------------------------------------------------------------------------------ */

static int get(const gki_cuda_driver **driver) {
  gki_begin();
  gk_result result = gki_cuda_driver_get(driver);
  if (result == GK_OK) return 0;
  printf("%s: %s%s", gk_result_name(result), gk_error(), *driver ? " (and a driver)" : "");
  return 1;
}

static int starts(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const int *count = library ? dlsym(library, "fake_cuda_starts") : NULL;
  return count ? *count : -1;
}

/* The version, then the entries that aren't there. */
static int say(void) {
  const gki_cuda_driver *driver;
  if (get(&driver)) return 0;
  printf("%d", driver->version);
#define ENTRY(name, version, since, parameters) \
  if (!driver->name) printf(" " #name);
  GKI_CUDA_ENTRIES(ENTRY)
#undef ENTRY
  return 0;
}

static void print_line(void *user, gk_log_level level, const char *line) {
  (void)user;
  (void)level;
  printf("%s | ", line);
}
static int logged(void) {
  const gki_cuda_driver *driver;
  gk_set_log(GK_LOG_INFO, print_line, NULL);
  return get(&driver);
}

/* What failed is tried again; what went well isn't. */
static int again(void) {
  const gki_cuda_driver *driver, *second;
  get(&driver);
  unsetenv("FAKE_CUDA_INIT");
  if (get(&driver)) return 0;
  setenv("FAKE_CUDA_INIT", "100", 1);
  if (get(&second)) return 0;
  printf(" | %d, %s, %d starts", driver->version, driver == second ? "the same" : "another", starts());
  return 0;
}

static int forked(void) {
  const gki_cuda_driver *driver;
  if (get(&driver)) return 0;
  fflush(stdout);
  if (fork() == 0) {
    get(&driver);
    exit(0);
  }
  wait(NULL);
  if (!get(&driver)) printf(" | %d", driver->version);
  return 0;
}

static void *get_in_thread(void *at) {
  const gki_cuda_driver *driver;
  get(&driver);
  *(const gki_cuda_driver **)at = driver;
  return NULL;
}
static int threads(void) {
  enum { THREADS = 8 };
  pthread_t thread[THREADS];
  const gki_cuda_driver *driver[THREADS];
  int equal = 1;
  for (int k = 0; k < THREADS; ++k)
    if (pthread_create(&thread[k], NULL, get_in_thread, &driver[k]) != 0) return 1;
  for (int k = 0; k < THREADS; ++k) pthread_join(thread[k], NULL);
  for (int k = 0; k < THREADS; ++k) equal &= driver[k] && driver[k] == driver[0];
  printf("%s, %d starts", equal ? "one driver" : "several", starts());
  return 0;
}

/* What would use or give back anything of a context that is gone doesn't reach the driver, which answers 801 here. */
static int gone(void) {
  const gki_cuda_driver *driver;
  if (get(&driver)) return 0;
  const gki_cuda_driver *g = gki_cuda_driver_of_gone();
  const CUresult answers[] = {
      g->cuCtxSynchronize(), g->cuStreamDestroy(NULL), g->cuStreamSynchronize(NULL), g->cuStreamQuery(NULL),
      g->cuStreamWaitEvent(NULL, NULL, 0), g->cuEventDestroy(NULL), g->cuEventSynchronize(NULL), g->cuEventQuery(NULL),
      g->cuEventRecord(NULL, NULL), g->cuMemFree(0), g->cuMemFreeHost(NULL), g->cuMemHostUnregister(NULL),
      g->cuModuleUnload(NULL), g->cuGraphExecDestroy(NULL)};
  for (size_t k = 0; k < GK_COUNT(answers); ++k)
    if (answers[k] != CUDA_ERROR_CONTEXT_IS_DESTROYED) printf("%zu: %d ", k, (int)answers[k]);
  if (g->cuCtxPopCurrent != driver->cuCtxPopCurrent || g->version != driver->version) printf("another driver ");
  static const int codes[] = {CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED,
                              CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_ILLEGAL_ADDRESS,
                              CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_UNKNOWN};
  for (size_t k = 0; k < GK_COUNT(codes); ++k) printf("%d", gki_cuda_is_gone((CUresult)codes[k]));
  return 0;
}

static int judge(void) {
  const gki_cuda_driver *driver;
  if (get(&driver)) return 0;
  static const CUresult results[] = {CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_LAUNCH_FAILED,
                                     CUDA_ERROR_UNKNOWN, CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_INVALID_CONTEXT,
                                     CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_DEINITIALIZED};
  for (size_t k = 0; k < GK_COUNT(results); ++k) {
    gki_begin();
    gki_fail_with(GK_OK, "nothing");
    gki_begin();
    gk_result result = gki_cuda_result(driver, results[k], "task %d (%s)", 7, "scale");
    printf("%s%s: %s", k > 0 ? " | " : "", gk_result_name(result), gk_error());
  }
  return 0;
}

/* ---- the cases --------------------------------------------------------------------------------------------------- */

#define BOTH "fake_cuda/both"
#define FIRST "fake_cuda/first"
#define OLD "fake_cuda/old"
#define REFUSED "GK_ERROR_NO_DEVICE: "
static const elsewhere_case no_driver[] = {
    {"fake_cuda/other", {0}, "say",
     {REFUSED, "other/libcuda.so.1 is no CUDA driver, it has no cuDriverGetVersion; install"}},
    {"fake_cuda/broken", {0}, "say",
     {REFUSED "there is no CUDA driver (", "broken/libcuda.so.1", "or use another backend", "$"}},
    {OLD, {"FAKE_CUDA_VERSION=10020"}, "say",
     {REFUSED, "old/libcuda.so.1 is for CUDA 10.2 and gk needs one for 11.4 or newer; update"}},
    {OLD, {"FAKE_CUDA_VERSION=12020"}, "say", {REFUSED, "has no cuGetProcAddress; install"}},
    {FIRST, {"FAKE_CUDA_VERSION=11030"}, "say", {REFUSED, "is for CUDA 11.3 and gk needs one for 11.4"}},
    {BOTH, {"FAKE_CUDA_VERSION_ANSWER=34"}, "say",
     {REFUSED, "can't be started, cuDriverGetVersion: error 34; ", "it is the toolkit's stub"}},
    {BOTH, {"FAKE_CUDA_LACKS=cuGraphLaunch"}, "say",
     {REFUSED, "both/libcuda.so.1 is for CUDA 13.0 but has no cuGraphLaunch of 10.0; install"}},
    {BOTH, {"FAKE_CUDA_LACKS=cuStreamGetCtx"}, "say", {REFUSED, "has no cuStreamGetCtx of 9.2; install"}},
    {FIRST, {"FAKE_CUDA_VERSION=11080", "FAKE_CUDA_LACKS=cuInit"}, "say", {REFUSED, "11.8 but has no cuInit of 2.0"}},
};

static const elsewhere_case not_started[] = {
    {BOTH, {"FAKE_CUDA_INIT=100"}, "say",
     {REFUSED, "both/libcuda.so.1 can't be started, cuInit: a text (NAME, 100); ", "$CUDA_VISIBLE_DEVICES"}},
    {BOTH, {"FAKE_CUDA_INIT=34"}, "say", {REFUSED, "34); it is the toolkit's stub"}},
    {BOTH, {"FAKE_CUDA_INIT=803"}, "say", {REFUSED, "803); it and the kernel's module are of different releases"}},
    {BOTH, {"FAKE_CUDA_INIT=804"}, "say", {REFUSED, "804); it is from a compatibility package"}},
    {BOTH, {"FAKE_CUDA_INIT=802"}, "say", {REFUSED, "802); a service"}},
    {BOTH, {"FAKE_CUDA_INIT=800"}, "say", {REFUSED, "800); this user or container may not use the GPU"}},
    {BOTH, {"FAKE_CUDA_INIT=304"}, "say", {REFUSED, "304); see who may open"}},
    {BOTH, {"FAKE_CUDA_INIT=101"}, "say", {REFUSED, "101); see which GPUs"}},
    {BOTH, {"FAKE_CUDA_INIT=3"}, "say", {REFUSED, "3); this process may have been forked"}},
    {BOTH, {"FAKE_CUDA_INIT=2"}, "say", {REFUSED, "2); free memory"}},
    {BOTH, {"FAKE_CUDA_INIT=999"}, "say", {REFUSED, "error 999; see what nvidia"}},
    {BOTH, {"FAKE_CUDA_INIT=205", "FAKE_CUDA_LACKS=cuGetErrorName"}, "say", {REFUSED, "cuInit: error 205; see what"}},
    {BOTH, {"FAKE_CUDA_INIT=205", "FAKE_CUDA_LACKS=cuGetErrorString"}, "say", {REFUSED, "cuInit: error 205; see what"}},
    {BOTH, {"FAKE_CUDA_INIT=205"}, "say", {REFUSED, "(NAME, 205); see what nvidia-smi says", "$"}},
    {BOTH, {"FAKE_CUDA_DEVICES=0"}, "say", {REFUSED, "cuDeviceGetCount: a text (NAME, 100); see whether"}},
    {BOTH, {"FAKE_CUDA_COUNT_ANSWER=3"}, "say", {REFUSED, "cuDeviceGetCount: a text (NAME, 3)"}},
};

/* What a driver is too old for is NULL, and it isn't asked for it. */
#define OF_12_3 \
  " cuStreamBeginCaptureToGraph cuStreamGetCaptureInfo cuGraphAddNode cuGraphConditionalHandleCreate cuGraphGetEdges" \
  " cuGraphNodeGetDependencies"
static const elsewhere_case found[] = {
    {BOTH, {0}, "say", {"13000", "$"}},
    {BOTH, {"FAKE_CUDA_VERSION=12040"}, "say", {"12040", "$"}},
    /* Without one that conditional nodes need there is none of those. */
    {BOTH, {"FAKE_CUDA_LACKS=cuGraphGetEdges"}, "say",
     {"13000 cuStreamBeginCaptureToGraph cuStreamGetCaptureInfo cuGraphAddNode cuGraphConditionalHandleCreate "
      "cuGraphGetEdges cuGraphNodeGetDependencies cuGraphInstantiateWithParams cuGraphExecNodeSetParams", "$"}},
    {BOTH, {"FAKE_CUDA_LACKS=cuGraphUpload"}, "say", {"13000", "$"}}, /* something stands in for these */
    {BOTH, {"FAKE_CUDA_LACKS=cuDeviceGraphMemTrim"}, "say", {"13000", "$"}},
    {BOTH, {"FAKE_CUDA_LACKS=cuFuncGetParamInfo"}, "say", {"13000 cuFuncGetParamInfo", "$"}},
    {BOTH, {"FAKE_CUDA_LACKS=cuStreamEndCapture"}, "say", {"13000 cuStreamEndCapture", "$"}},
    {BOTH, {"FAKE_CUDA_VERSION=12030"}, "say", {"12030 cuFuncGetParamInfo", "$"}},
    {BOTH, {"FAKE_CUDA_VERSION=12020"}, "say", {"12020" OF_12_3 " cuFuncGetParamInfo", "$"}},
    {BOTH, {"FAKE_CUDA_VERSION=12000"}, "say", {"12000" OF_12_3 " cuGraphExecNodeSetParams cuFuncGetParamInfo", "$"}},
    {FIRST, {"FAKE_CUDA_VERSION=11040"}, "say",
     {"11040 cuStreamGetId" OF_12_3 " cuGraphInstantiateWithParams cuGraphExecNodeSetParams cuFuncGetParamInfo", "$"}},
};

#define WITHOUT(entry, what) \
  {BOTH, {"FAKE_CUDA_VERSION=12040", "FAKE_CUDA_LACKS=" entry}, "logged", \
   {"the CUDA driver ", "both/libcuda.so.1 is for CUDA 12.4 but has no " entry "; gk does without: " what " | ", \
    "both/libcuda.so.1 for CUDA 12.4 | ", "$"}}
static const elsewhere_case left_out[] = {
    WITHOUT("cuGraphGetEdges", "the host decides"),
    WITHOUT("cuStreamEndCapture", "lists with library calls are refused"),
    WITHOUT("cuGraphDebugDotPrint", "graphs can't be drawn"),
    WITHOUT("cuStreamGetId", "messages, checks or speed suffer"),
};

static const elsewhere_case kept[] = {
    {BOTH, {"FAKE_CUDA_INIT=100"}, "again", {REFUSED, " | 13000, the same, 2 starts", "$"}},
    {BOTH, {0}, "forked", {REFUSED "this process was forked from one that had started CUDA", " | 13000", "$"}},
    {BOTH, {0}, "threads", {"one driver, 1 starts", "$"}},
};

static const elsewhere_case judged[] = {
    {BOTH, {0}, "judge",
     {"GK_OK: nothing | GK_ERROR_MEMORY: task 7 (scale): out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2); free some and "
      "call again | "
      "GK_ERROR_DEVICE: task 7 (scale): a text (NAME, 719) | "
      "GK_ERROR_DEVICE: task 7 (scale): error 999 | "
      "GK_ERROR_DEVICE: task 7 (scale): a text (NAME, 700); some task touched memory that isn't its own: ",
      "(NAME, 201); the context that gk works in was destroyed, as cudaDeviceReset and cuCtxDestroy do: ",
      "(NAME, 709); the context that gk works in was destroyed, as cudaDeviceReset and cuCtxDestroy do: ",
      "(NAME, 4); the process ends, and the driver with it: close gk's device before", "$"}},
    {BOTH, {0}, "gone", {"11100000", "$"}},
};

TEST(what_is_no_driver_is_refused) { ELSEWHERE(no_driver); }
TEST(a_driver_that_does_not_start_says_why) { ELSEWHERE(not_started); }
TEST(entries_are_found_by_version) { ELSEWHERE(found); }
TEST(what_it_lacks_is_said) { ELSEWHERE(left_out); }
TEST(it_is_started_once_per_process) { ELSEWHERE(kept); }
TEST(failed_calls_are_judged) { ELSEWHERE(judged); }

TEST(a_machine_without_driver_says_so) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library) {
    print_message("this machine has a CUDA driver\n");
    skip();
  }
  static const elsewhere_case c = {NULL, {0}, "say",
                              {REFUSED "there is no CUDA driver (libcuda.so.1: ",
                               "); install NVIDIA's, or use another backend", "$"}};
  elsewhere_check(&c, 1);
}

int main(int count, char **words) {
  static const elsewhere_word known[] = {
      {"say", say}, {"again", again}, {"forked", forked}, {"threads", threads}, {"judge", judge},
      {"logged", logged}, {"gone", gone}};
  int code;
  if (elsewhere_is_here(count, words, known, GK_COUNT(known), &code)) return code;
  return run_all_tests();
}
