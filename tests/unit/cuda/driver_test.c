/* The loader of libcuda.so.1, on stand-ins for it: fake_cuda.c, built in several ways. */
#include "unit/support/elsewhere.h"
#include <dlfcn.h>
#include <pthread.h>
#include "cuda/driver.h"
#include "base/error.h"

/* ---- in the process of a case ------------------------------------------------------------------------------------ */

static const gki_cuda_driver *driver; /* as this process finds it */

static bool finds(const gki_cuda_driver **found) {
  gki_begin();
  gk_result result = gki_cuda_driver_get(found);
  if (result != GK_OK) printf("%s: %s%s", gk_result_name(result), gk_error(), *found ? " (and a driver)" : "");
  return result == GK_OK;
}

static int starts(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const int *count = library ? dlsym(library, "fake_cuda_starts") : NULL;
  return count ? *count : -1;
}

/* The version, then the missing entries. */
static int say(void) {
  if (!finds(&driver)) return 0;
  printf("%d", driver->version);
#define ENTRY(name, version, since, parameters) \
  if (!driver->name) printf(" " #name);
  GKI_CUDA_ENTRIES(ENTRY)
#undef ENTRY
  return 0;
}

static void print_line(UNUSED void *user, UNUSED gk_log_level level, const char *line) { printf("%s | ", line); }
static int logged(void) {
  gk_set_log(GK_LOG_INFO, print_line, NULL);
  return !finds(&driver);
}

/* A failed start is tried again, a good one isn't repeated. */
static int again(void) {
  const gki_cuda_driver *second;
  (void)finds(&driver);
  unsetenv("FAKE_CUDA_INIT");
  if (!finds(&driver)) return 0;
  setenv("FAKE_CUDA_INIT", "100", 1);
  if (!finds(&second)) return 0;
  printf(" | %d, %s, %d starts", driver->version, driver == second ? "the same" : "another", starts());
  return 0;
}

static int forked(void) {
  if (!finds(&driver)) return 0;
  fflush(stdout);
  if (fork() == 0) {
    (void)finds(&driver);
    exit(0);
  }
  wait(NULL);
  if (finds(&driver)) printf(" | %d", driver->version);
  return 0;
}

static void *find_in_thread(void *found) {
  (void)finds(found);
  return NULL;
}
static int threads(void) {
  enum { THREADS = 8 };
  pthread_t thread[THREADS];
  const gki_cuda_driver *found[THREADS];
  bool equal = true;
  for (int k = 0; k < THREADS; ++k)
    if (pthread_create(&thread[k], NULL, find_in_thread, &found[k]) != 0) return 1;
  for (int k = 0; k < THREADS; ++k) pthread_join(thread[k], NULL);
  for (int k = 0; k < THREADS; ++k) equal = equal && found[k] && found[k] == found[0];
  printf("%s, %d starts", equal ? "one driver" : "several", starts());
  return 0;
}

/* Calls that use or give back something of a context that is gone don't reach the driver, which answers 801 here. */
static int gone(void) {
  if (!finds(&driver)) return 0;
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
  if (!finds(&driver)) return 0;
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
#define SAYS(library, setting, ...) {library, {setting}, "say", {__VA_ARGS__}}
#define REFUSES(library, setting, ...) SAYS(library, setting, REFUSED, __VA_ARGS__)
#define VERSION "FAKE_CUDA_VERSION="
#define LACKS "FAKE_CUDA_LACKS="
#define INIT "FAKE_CUDA_INIT="
static const elsewhere_case no_driver[] = {
    REFUSES("fake_cuda/other", 0, "other/libcuda.so.1 is no CUDA driver, it has no cuDriverGetVersion; install"),
    SAYS("fake_cuda/broken", 0, REFUSED "there is no CUDA driver (", "broken/libcuda.so.1", "or use another backend",
         "$"),
    REFUSES(OLD, VERSION "10020", "old/libcuda.so.1 is for CUDA 10.2 and gk needs one for 11.4 or newer; update"),
    REFUSES(OLD, VERSION "12020", "has no cuGetProcAddress; install"),
    REFUSES(FIRST, VERSION "11030", "is for CUDA 11.3 and gk needs one for 11.4"),
    REFUSES(BOTH, "FAKE_CUDA_VERSION_ANSWER=34", "can't be started, cuDriverGetVersion: error 34; ",
            "it is the toolkit's stub"),
    REFUSES(BOTH, LACKS "cuGraphLaunch",
            "both/libcuda.so.1 is for CUDA 13.0 but has no cuGraphLaunch of 10.0; install"),
    REFUSES(BOTH, LACKS "cuStreamGetCtx", "has no cuStreamGetCtx of 9.2; install"),
    {FIRST, {VERSION "11080", LACKS "cuInit"}, "say", {REFUSED, "11.8 but has no cuInit of 2.0"}}};

static const elsewhere_case not_started[] = {
    REFUSES(BOTH, INIT "100", "both/libcuda.so.1 can't be started, cuInit: a text (NAME, 100); ",
            "$CUDA_VISIBLE_DEVICES"),
    REFUSES(BOTH, INIT "34", "34); it is the toolkit's stub"),
    REFUSES(BOTH, INIT "803", "803); it and the kernel's module are of different releases"),
    REFUSES(BOTH, INIT "804", "804); it is from a compatibility package"),
    REFUSES(BOTH, INIT "802", "802); a service"),
    REFUSES(BOTH, INIT "800", "800); this user or container may not use the GPU"),
    REFUSES(BOTH, INIT "304", "304); see who may open"),
    REFUSES(BOTH, INIT "101", "101); see which GPUs"),
    REFUSES(BOTH, INIT "3", "3); this process may have been forked"),
    REFUSES(BOTH, INIT "2", "2); free memory"),
    REFUSES(BOTH, INIT "999", "error 999; see what nvidia"),
    {BOTH, {INIT "205", LACKS "cuGetErrorName"}, "say", {REFUSED, "cuInit: error 205; see what"}},
    {BOTH, {INIT "205", LACKS "cuGetErrorString"}, "say", {REFUSED, "cuInit: error 205; see what"}},
    REFUSES(BOTH, INIT "205", "(NAME, 205); see what nvidia-smi says", "$"),
    REFUSES(BOTH, "FAKE_CUDA_DEVICES=0", "cuDeviceGetCount: a text (NAME, 100); see whether"),
    REFUSES(BOTH, "FAKE_CUDA_COUNT_ANSWER=3", "cuDeviceGetCount: a text (NAME, 3)")};

/* Entries that the driver is too old for are NULL, and gk doesn't ask for them. */
#define OF_12_3 \
  " cuStreamBeginCaptureToGraph cuStreamGetCaptureInfo cuGraphAddNode cuGraphConditionalHandleCreate cuGraphGetEdges" \
  " cuGraphNodeGetDependencies"
static const elsewhere_case found[] = {
    SAYS(BOTH, 0, "13000", "$"),
    SAYS(BOTH, VERSION "12040", "12040", "$"),
    /* If one entry for conditional nodes is missing, none of them is used. */
    SAYS(BOTH, LACKS "cuGraphGetEdges",
         "13000" OF_12_3 " cuGraphInstantiateWithParams cuGraphExecNodeSetParams", "$"),
    SAYS(BOTH, LACKS "cuGraphUpload", "13000", "$"), /* something stands in for these */
    SAYS(BOTH, LACKS "cuDeviceGraphMemTrim", "13000", "$"),
    SAYS(BOTH, LACKS "cuFuncGetParamInfo", "13000 cuFuncGetParamInfo", "$"),
    SAYS(BOTH, LACKS "cuStreamEndCapture", "13000 cuStreamEndCapture", "$"),
    SAYS(BOTH, VERSION "12030", "12030 cuFuncGetParamInfo", "$"),
    SAYS(BOTH, VERSION "12020", "12020" OF_12_3 " cuFuncGetParamInfo", "$"),
    SAYS(BOTH, VERSION "12000", "12000" OF_12_3 " cuGraphExecNodeSetParams cuFuncGetParamInfo", "$"),
    SAYS(FIRST, VERSION "11040", "11040 cuStreamGetId" OF_12_3 " cuGraphInstantiateWithParams cuGraphExecNodeSetParams "
         "cuFuncGetParamInfo", "$")};

#define WITHOUT(entry, what) \
  {BOTH, {VERSION "12040", LACKS entry}, "logged", \
   {"the CUDA driver ", "both/libcuda.so.1 is for CUDA 12.4 but has no " entry "; gk does without: " what " | ", \
    "both/libcuda.so.1 for CUDA 12.4 | ", "$"}}
static const elsewhere_case left_out[] = {
    WITHOUT("cuGraphGetEdges", "the host decides"),
    WITHOUT("cuStreamEndCapture", "lists with library calls are refused"),
    WITHOUT("cuGraphDebugDotPrint", "graphs can't be drawn"),
    WITHOUT("cuStreamGetId", "messages, checks or speed suffer"),
};

static const elsewhere_case kept[] = {
    {BOTH, {INIT "100"}, "again", {REFUSED, " | 13000, the same, 2 starts", "$"}},
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

TEST(other_libraries_are_refused) { ELSEWHERE(no_driver); }
TEST(a_driver_that_does_not_start_says_why) { ELSEWHERE(not_started); }
TEST(entries_are_found_by_version) { ELSEWHERE(found); }
TEST(missing_entries_are_reported) { ELSEWHERE(left_out); }
TEST(it_is_started_once_per_process) { ELSEWHERE(kept); }
TEST(failed_calls_are_judged) { ELSEWHERE(judged); }

TEST(a_machine_without_driver_says_so) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library) {
    print_message("this machine has a CUDA driver\n");
    skip();
  }
  static const elsewhere_case without[] = {
      SAYS(NULL, 0, REFUSED "there is no CUDA driver (libcuda.so.1: ", "); install NVIDIA's, or use another backend",
           "$")};
  ELSEWHERE(without);
}

int main(int count, char **words) {
  static const elsewhere_word known[] = {{"say", say}, {"again", again}, {"forked", forked}, {"threads", threads},
                                         {"judge", judge}, {"logged", logged}, {"gone", gone}};
  int code;
  if (elsewhere_is_here(count, words, known, GK_COUNT(known), &code)) return code;
  return run_all_tests();
}
