/* Drivers that lack entries of their version: without one that everything needs gk refuses the backend and names the
 * entry, else it goes on. Also: a context that is gone, as after cudaDeviceReset. */
#include "graphs.h"
#include "unit/support/process.h"

enum { NONE, X, N, LEFT };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 8), GK_DEFAULT(N, int, 8), GK_BUFFER(LEFT, int)};

CALLED(put_nothing) { return GK_OK; }

LIST(looping, GK_DO_WHILE(LEFT), GK_FILL(X, N, 5), GK_FILL(LEFT, GK_ONE, 0), GK_END);
LIST(calling, GK_FILL(X, N, 6), GK_CALL(put_nothing, X));

static const char *const entries[] = {
#define NAME(name, version, since, parameters) #name,
  GKI_CUDA_ENTRIES(NAME)
#undef NAME
};

/* Entries without which a construct is refused or decided elsewhere. The report says so. */
static const char for_loops[] =
  "cuGraphAddNode cuGraphConditionalHandleCreate cuGraphInstantiateWithParams cuGraphExecNodeSetParams "
  "cuStreamBeginCaptureToGraph cuStreamGetCaptureInfo cuGraphGetEdges cuGraphNodeGetDependencies";
static const char for_calls[] = "cuStreamBeginCapture cuStreamEndCapture cuGraphAddChildGraphNode "
                                "cuGraphChildGraphNodeGetGraph cuGraphNodeGetType";

/* Entries that only tell more, or save time. */
static const char comforts[] =
  "cuGraphDebugDotPrint cuGetErrorName cuGetErrorString cuDevicePrimaryCtxGetState cuGraphUpload cuStreamGetId "
  "cuThreadExchangeStreamCaptureMode cuMemHostRegister cuMemHostUnregister cuDeviceGraphMemTrim cuFuncGetParamInfo "
  "cuPointerGetAttribute";

static bool is_needed(const char *entry) {
  return !is_one_of(entry, for_loops) && !is_one_of(entry, for_calls) && !is_one_of(entry, comforts);
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

/* In a process of its own, as gk looks for a driver only once. 0: gk goes on; 1: the backend is refused. */
static int live_without(const void *data) {
  const char *entry = data;
  gk_device *device = NULL;
  sim->lack(entry);
  const gk_result opened = gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device);
  if (opened == GK_ERROR_NO_DEVICE) return strstr(gk_error(), entry) ? 1 : 20;
  if (opened != GK_OK) return 21;
  const bool no_calls = is_one_of(entry, for_calls), no_loops = is_one_of(entry, for_loops);
  const gk_capability *loop = capability_of(device, "DO_WHILE"), *call = capability_of(device, "CALL");
  if ((no_loops && !strstr(loop->why, entry)) || (no_calls && !strstr(call->why, entry))) return 22;
  if (loop->how != (no_loops ? GK_BATCHED : GK_NATIVE)) return 23;
  if (call->how != (no_calls ? GK_REFUSED : GK_NATIVE)) return 24;
  if (!runs(device, &looping, 5)) return 25;
  if (runs(device, &calling, 6) == no_calls) return 26;
  if (no_calls && !strstr(gk_error(), entry)) return 27;
  gk_device_close(device);
  return sim->broken() || sim->alive(SIMGPU_ALL) ? 28 : 0;
}

TEST(each_entry_is_lacking) {
  unsigned needed = 0;
  for (size_t k = 0; k < GK_COUNT(entries); ++k) {
    const int code = code_of_child(live_without, entries[k], NULL, 0);
    if (code != is_needed(entries[k])) fail_msg("without %s: %d", entries[k], code);
    needed += code == 1;
  }
  print_message("%u of %zu entries are needed\n", needed, GK_COUNT(entries));
  assert_true(needed > 30 && needed < GK_COUNT(entries) - 15);
}

static int live_without_two(UNUSED const void *data) {
  gk_device *device = NULL;
  sim->lack("cuStreamEndCapture,cuStreamBeginCapture");
  if (gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device) != GK_OK) return 1;
  const bool right = strstr(capability_of(device, "CALL")->why, "The driver has no cuStreamBeginCapture,");
  gk_device_close(device);
  return right ? 0 : 2;
}

TEST(first_of_two_is_named) {
  assert_int_equal(code_of_child(live_without_two, NULL, NULL, 0), 0);
}

static void is_clean(void) {
  if (sim->broken()) fail_msg("%s", sim->first_broken());
  assert_int_equal(sim->alive(SIMGPU_ALL), 0);
}

/* No call touches anything in it any more, whichever call comes first. */
TEST(reset_is_said) {
  for (int k = 0; k < 4; ++k) {
    gk_device *device = open_named("cuda");
    gk_graph *graph = graph_on(device, &looping, k % 2 ? GK_HOST_GATED : 0);
    int *left = int_on(device, 1), value;
    void *page = gk_alloc(device, 10, GK_HOST_MEMORY);
    BIND(graph, {LEFT, left});
    run_to_end(graph, 0);
    RIGHT(cu.cuDevicePrimaryCtxReset(0));
    if (k / 2) {
      assert_fails(GK_ERROR_DEVICE, "the context that gk works in was destroyed, as cudaDeviceReset and cuCtxDestroy "
                   "do", run_on_stream(graph, 0, NULL));
      assert_fails(GK_ERROR_DEVICE, "was destroyed, as cudaDeviceReset", gk_download(device, &value, left, 4));
    }
    gk_free(device, page);
    gk_graph_destroy(graph);
    gk_free(device, left);
    gk_device_close(device);
    is_clean();
  }
  gk_device *device = open_named("cuda"); /* CUDA begins anew */
  assert_true(runs(device, &looping, 5));
  gk_device_close(device);
  is_clean();
}

TEST(destroyed_context_is_said) {
  CUcontext context;
  gk_device *device = NULL;
  RIGHT(cu.cuCtxCreate(&context, 0, 0));
  const gk_cuda_sharing sharing = GK_CUDA_SHARE(context, NULL);
  assert_ok(gk_device_open(&(gk_device_desc){.backend = "cuda", .next = &sharing.base}, &device));
  gk_graph *graph = graph_on(device, &looping, 0);
  sim->allow("leak,destroyed"); /* this is what the message is about */
  RIGHT(cu.cuCtxDestroy(context));
  BIND(graph, {LEFT, &device});
  assert_fails(GK_ERROR_DEVICE, "the context that gk works in was destroyed", run_on_stream(graph, 0, NULL));
  gk_graph_destroy(graph);
  gk_device_close(device);
  sim->allow(NULL);
}

int main(UNUSED int count, char **words) { return run_on_simgpu(words); }
