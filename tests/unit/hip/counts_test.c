/* What a loop takes on the simulated HIP, counted: round trips, launches of kernels and graphs, copies; and the same
 * loop by hand, which copies its flag and waits in each pass. */
#include "unit/support/elsewhere.h"
#include "gk_kernel.h"
#include "base/error.h"
#include "hip/compile.h"
#include "simgpu/simgpu.h"
#include <dlfcn.h>

enum { LEFT = 1, PASSES = 512, TRIP = 8 /* passes of a round trip, at least */ };

GK_SOURCE(hip_counts)
GK_KERNEL(count_down, (inout(int, left))) { left[0] -= 1; }
GK_SOURCE_END

static const gk_slot_desc slots[] = {GK_BUFFER(LEFT, int)};
static const gk_task tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(count_down, GK_ONE, LEFT), GK_END};
static const gk_list list = GK_LIST(list, tasks, slots);

/* ---- in the process of a case ------------------------------------------------------------------------------------ */

static const simgpu *sim(void) { return dlsym(dlopen("libcuda.so.1", RTLD_NOW), "simgpu_control"); }

/* Per pass, rounded down, since gk enqueues some passes in vain, more or fewer by how fast they go. Each round trip
 * ends with an event. */
static void print_counts(const char *what) {
  const simgpu_counts counts = sim()->counts();
  printf("%s: %llu kernels, %llu graphs, %llu copies, %s; ", what, (unsigned long long)counts.kernels / PASSES,
         (unsigned long long)counts.launches / PASSES, (unsigned long long)counts.copies / PASSES,
         sim()->calls("cuEventRecord") * TRIP <= PASSES ? "few trips" : "many trips");
}

static int count_gk(void) {
  gk_device *device;
  gk_graph *graph;
  int left = PASSES;
  gk_result result = gk_device_open(&(gk_device_desc){.backend = "hip"}, &device);
  int *at = result == GK_OK ? gk_alloc(device, sizeof *at, GK_DEVICE_MEMORY) : NULL;
  if (!at || gk_graph_create(device, &list, 0, &graph) != GK_OK || gk_bind(graph, LEFT, at) != GK_OK) return 1;
  for (int k = 0; k < 3; ++k) {
    if (gk_upload(device, at, &left, sizeof left) != GK_OK) return 1;
    sim()->mark();
    if (gk_launch(graph, 0) != GK_OK || gk_wait(graph, NULL) != GK_OK) return 1;
  }
  print_counts("gk");
  gk_graph_destroy(graph);
  gk_free(device, at);
  gk_device_close(device);
  return 0;
}

static int count_by_hand(void) {
  static const gki_unit unit = {.text = "extern \"C\" __global__ void down(int *left) { left[0] -= 1; }",
                                .file = "down"};
  const gki_hip_driver *hip;
  gki_compiled image;
  hipModule_t module;
  hipFunction_t down;
  hipStream_t stream;
  hipEvent_t event;
  void *at, *left;
  gki_begin();
  if (gki_hip_driver_get(&hip) != GK_OK || gki_hip_compile(hip, "gfx90a", &unit, &image) != GK_OK) return 1;
  hipError_t failed = hip->hipModuleLoadData(&module, image.bytes);
  failed |= hip->hipModuleGetFunction(&down, module, "down");
  failed |= hip->hipStreamCreateWithFlags(&stream, GKI_HIP_STREAM_NON_BLOCKING);
  failed |= hip->hipEventCreateWithFlags(&event, GKI_HIP_EVENT_DISABLE_TIMING);
  failed |= hip->hipMalloc(&at, sizeof(int));
  failed |= hip->hipHostMalloc(&left, sizeof(int), GKI_HIP_HOST_MALLOC_PORTABLE | GKI_HIP_HOST_MALLOC_MAPPED);
  if (failed) return 1;
  *(int *)left = PASSES;
  failed |= hip->hipMemcpyHtoDAsync(at, left, sizeof(int), stream);
  sim()->mark();
  do {
    void *arguments[] = {&at};
    failed |= hip->hipModuleLaunchKernel(down, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
    failed |= hip->hipMemcpyDtoHAsync(left, at, sizeof(int), stream);
    failed |= hip->hipEventRecord(event, stream);
    failed |= hip->hipEventSynchronize(event);
  } while (!failed && *(int *)left);
  print_counts("by hand");
  failed |= hip->hipHostFree(left);
  failed |= hip->hipFree(at);
  failed |= hip->hipEventDestroy(event);
  failed |= hip->hipStreamDestroy(stream);
  failed |= hip->hipModuleUnload(module);
  gki_compiled_free(&image);
  return failed != hipSuccess;
}

static int count_both(void) { return count_by_hand() || count_gk(); }

/* ---- the cases --------------------------------------------------------------------------------------------------- */

#define HIP7 "../../../simgpu/hip7:build/simgpu"
static const elsewhere_case cases[] = {
    {HIP7, {"CUDA_HOME=build/simgpu", "GK_HIP_GRAPHS=0"}, "count",
     {"by hand: 1 kernels, 0 graphs, 1 copies, many trips; gk: 2 kernels, 0 graphs, 0 copies, few trips; ", "$"}},
    {HIP7, {"CUDA_HOME=build/simgpu", "GK_HIP_GRAPHS=1"}, "count",
     {"by hand: ", "gk: 0 kernels, 1 graphs, 0 copies, few trips; ", "$"}},
};

TEST(passes_take_few_round_trips) { ELSEWHERE(cases); }

int main(int count, char **words) {
  static const elsewhere_word known[] = {{"count", count_both}};
  int code;
  if (elsewhere_is_here(count, words, known, GK_COUNT(known), &code)) return code;
  return run_all_tests();
}
