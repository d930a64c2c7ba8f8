/* Drivers that lack entries which one of their version should have: what nothing goes without refuses the backend and
 * is named; all else goes on. And a context that is gone, as after cudaDeviceReset. */
#include "world.h"
#include "gk_cuda.h"
#include <sys/wait.h>

enum { NONE, X, N, LEFT };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 8), GK_DEFAULT(N, int, 8), GK_BUFFER(LEFT, int)};

static gk_result put_nothing(const gk_value *args, void *stream) {
  (void)args;
  (void)stream;
  return GK_OK;
}

static const gk_task looping_tasks[] = {GK_DO_WHILE(LEFT), GK_FILL(X, N, 5), GK_FILL(LEFT, GK_ONE, 0), GK_END};
static const gk_list looping = GK_LIST(looping, looping_tasks, slots);
static const gk_task calling_tasks[] = {GK_FILL(X, N, 6), GK_CALL(put_nothing, X)};
static const gk_list calling = GK_LIST(calling, calling_tasks, slots);

static const gk_capability *line_of(const gk_device *device, const char *construct) {
  const gk_device_info *info = gk_device_describe(device);
  for (size_t k = 0; k < info->capability_count; ++k)
    if (strcmp(info->capabilities[k].construct, construct) == 0) return &info->capabilities[k];
  return NULL;
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static const char *const entries[] = {
#define NAME(name, version, since, parameters) #name,
  GKI_CUDA_ENTRIES(NAME)
#undef NAME
};

/* Those without which something is refused or decided elsewhere, and the construct that says so. */
static const struct { const char *entry, *construct; } said[] = {
  {"cuGraphAddNode", "DO_WHILE"}, {"cuGraphConditionalHandleCreate", "DO_WHILE"},
  {"cuGraphInstantiateWithParams", "DO_WHILE"}, {"cuGraphExecNodeSetParams", "DO_WHILE"},
  {"cuStreamBeginCaptureToGraph", "DO_WHILE"}, {"cuStreamGetCaptureInfo", "DO_WHILE"},
  {"cuGraphGetEdges", "DO_WHILE"}, {"cuGraphNodeGetDependencies", "DO_WHILE"},
  {"cuStreamBeginCapture", "CALL"}, {"cuStreamEndCapture", "CALL"}, {"cuGraphAddChildGraphNode", "CALL"},
  {"cuGraphChildGraphNodeGetGraph", "CALL"}, {"cuGraphNodeGetType", "CALL"},
};

/* Those that only tell more, or save time. */
static const char *const comforts[] = {
  "cuGraphDebugDotPrint", "cuGetErrorName", "cuGetErrorString", "cuDevicePrimaryCtxGetState", "cuGraphUpload",
  "cuStreamGetId", "cuThreadExchangeStreamCaptureMode", "cuMemHostRegister", "cuMemHostUnregister",
  "cuDeviceGraphMemTrim", "cuFuncGetParamInfo", "cuPointerGetAttribute"};

static bool is_needed(const char *entry) {
  for (size_t k = 0; k < GK_COUNT(said); ++k)
    if (strcmp(said[k].entry, entry) == 0) return false;
  for (size_t k = 0; k < GK_COUNT(comforts); ++k)
    if (strcmp(comforts[k], entry) == 0) return false;
  return true;
}

static bool runs(gk_device *device, const gk_list *list, int wanted) {
  gk_graph *graph = NULL;
  if (gk_graph_create(device, list, 0, &graph) != GK_OK) return false;
  int *left = int_on(device, 1);
  bool right = gk_bind(graph, LEFT, left) == GK_OK && gk_launch(graph, 0) == GK_OK &&
               gk_wait(graph, NULL) == GK_OK && int_at(device, (int *)gk_bound(graph, X) + 7) == wanted;
  gk_graph_destroy(graph);
  gk_free(device, left);
  return right;
}

/* In a process of its own, as a driver is looked at once. 0: it goes on; 1: the backend is refused. */
static int live_without(const char *entry) {
  gk_device *device = NULL;
  sim->lack(entry);
  const gk_result opened = gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device);
  if (opened == GK_ERROR_NO_DEVICE) return strstr(gk_error(), entry) ? 1 : 20;
  if (opened != GK_OK) return 21;
  const char *construct = "";
  for (size_t k = 0; k < GK_COUNT(said); ++k)
    if (strcmp(said[k].entry, entry) == 0) construct = said[k].construct;
  const bool no_calls = strcmp(construct, "CALL") == 0, no_loops = strcmp(construct, "DO_WHILE") == 0;
  if (*construct && !strstr(line_of(device, construct)->why, entry)) return 22;
  if (line_of(device, "DO_WHILE")->how != (no_loops ? GK_ON_HOST : GK_NATIVE)) return 23;
  if (line_of(device, "CALL")->how != (no_calls ? GK_REFUSED : GK_NATIVE)) return 24;
  if (!runs(device, &looping, 5)) return 25;
  if (runs(device, &calling, 6) == no_calls) return 26;
  if (no_calls && !strstr(gk_error(), entry)) return 27;
  gk_device_close(device);
  return sim->broken() || sim->alive(SIMGPU_ALL) ? 28 : 0;
}

static int wait_for(pid_t child) {
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST(each_entry_is_lacking) {
  unsigned needed = 0;
  for (size_t k = 0; k < GK_COUNT(entries); ++k) {
    const pid_t child = fork();
    if (child == 0) _exit(live_without(entries[k]));
    const int code = wait_for(child);
    if (code != is_needed(entries[k])) fail_msg("without %s: %d", entries[k], code);
    needed += code == 1;
  }
  print_message("%u of %zu entries are needed\n", needed, GK_COUNT(entries));
  assert_true(needed > 30 && needed < GK_COUNT(entries) - 15);
}

static int live_without_two(void) {
  gk_device *device = NULL;
  sim->lack("cuStreamEndCapture,cuStreamBeginCapture");
  if (gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device) != GK_OK) return 1;
  const bool right = strstr(line_of(device, "CALL")->why, "The driver has no cuStreamBeginCapture,");
  gk_device_close(device);
  return right ? 0 : 2;
}

TEST(first_of_two_is_named) {
  const pid_t child = fork();
  if (child == 0) _exit(live_without_two());
  assert_int_equal(wait_for(child), 0);
}

/* ---- a context that is gone -------------------------------------------------------------------------------------- */

static void *entry_at(const char *name, int version) {
  CUresult (*find)(const char *name, void **entry, int version, cuuint64_t flags);
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *entry = NULL;
  *(void **)&find = dlsym(library, "cuGetProcAddress");
  assert_int_equal(find(name, &entry, version, 0), CUDA_SUCCESS);
  return entry;
}

static void reset_device(void) {
  CUresult (*reset)(CUdevice device);
  *(void **)&reset = entry_at("cuDevicePrimaryCtxReset", 11000);
  assert_int_equal(reset(0), CUDA_SUCCESS);
}

static void is_clean(void) {
  if (sim->broken()) fail_msg("%s", sim->first_broken());
  assert_int_equal(sim->alive(SIMGPU_ALL), 0);
}

/* Nothing in it is touched any more, by whatever comes first. */
TEST(reset_is_said) {
  for (int launches_first = 0; launches_first < 2; ++launches_first)
    for (uint32_t bits = 0; bits <= GK_HOST_GATED; bits += GK_HOST_GATED) {
      gk_device *device = open_named("cuda");
      gk_graph *graph = graph_on(device, &looping, bits);
      int *left = int_on(device, 1);
      void *page = gk_alloc(device, 10, GK_HOST_MEMORY);
      assert_ok(gk_bind(graph, LEFT, left));
      assert_ok(gk_launch(graph, 0));
      assert_ok(gk_wait(graph, NULL));
      reset_device();
      gk_result result = GK_OK;
      if (launches_first) {
        result = gk_launch(graph, 0);
        if (result == GK_OK) result = gk_wait(graph, NULL);
        assert_int_equal(result, GK_ERROR_DEVICE);
        assert_says("the context that gk works in was destroyed, as cudaDeviceReset and cuCtxDestroy do");
        assert_fails(GK_ERROR_DEVICE, "was destroyed, as cudaDeviceReset", gk_download(device, &result, left, 4));
      }
      gk_free(device, page);
      gk_graph_destroy(graph);
      gk_free(device, left);
      gk_device_close(device);
      is_clean();
    }
  gk_device *device = open_named("cuda"); /* begins anew */
  assert_true(runs(device, &looping, 5));
  gk_device_close(device);
  is_clean();
}

TEST(destroyed_context_is_said) {
  CUresult (*create)(CUcontext *context, unsigned int flags, CUdevice device), (*destroy)(CUcontext context);
  *(void **)&create = entry_at("cuCtxCreate", 3020);
  *(void **)&destroy = entry_at("cuCtxDestroy", 4000);
  CUcontext context;
  gk_device *device = NULL;
  assert_int_equal(create(&context, 0, 0), CUDA_SUCCESS);
  const gk_cuda_sharing sharing = GK_CUDA_SHARE(context, NULL);
  assert_ok(gk_device_open(&(gk_device_desc){.backend = "cuda", .next = &sharing.base}, &device));
  gk_graph *graph = graph_on(device, &looping, 0);
  sim->allow("leak,destroyed"); /* that is what is wrong with it */
  assert_int_equal(destroy(context), CUDA_SUCCESS);
  assert_ok(gk_bind(graph, LEFT, &device));
  gk_result result = gk_launch(graph, 0);
  if (result == GK_OK) result = gk_wait(graph, NULL);
  assert_int_equal(result, GK_ERROR_DEVICE);
  assert_says("the context that gk works in was destroyed");
  gk_graph_destroy(graph);
  gk_device_close(device);
  sim->allow(NULL);
}

int main(int count, char **words) {
  (void)count;
  with_simgpu(words);
  return run_all_tests();
}
