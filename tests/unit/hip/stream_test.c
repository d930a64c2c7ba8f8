/* The HIP backend beside a program's own HIP, on simulated runtimes (tests/simgpu/hip.c): its streams and captures, its
 * memory, its library calls. Each case is in a process of its own. */
#include "unit/hip/world.h"
#include "gk_hip.h"
#include "hip/driver.h"

/* ---- in the process of a case ------------------------------------------------------------------------------------ */

static void *hip(const char *name) {
  for (char digit = '7'; digit >= '5'; --digit) {
    char library[] = "libamdhip64.so.0";
    library[sizeof library - 2] = digit;
    void *found = dlopen(library, RTLD_NOW);
    if (found) return dlsym(found, name);
  }
  return NULL;
}

static void *called_with;
static gk_result note(const gk_value *args, void *native) {
  (void)args;
  called_with = native;
  return GK_OK;
}

static gk_graph *waited_for;
static gk_result wait_inside(const gk_value *args, void *native) {
  (void)args, (void)native;
  return gk_wait(waited_for, NULL);
}

/* A library call that waits for its own device, with which it would never end. */
static int calls_its_device(void) {
  enum { Y = 1 };
  static const gk_slot_desc own[] = {GK_OWN(Y, int, 1)};
  static const gk_task calls[] = {GK_FILL(Y, GK_ONE, 5), GK_CALL(wait_inside, Y)};
  static const gk_list calling = GK_LIST(calling, calls, own);
  if (opens() || fails(gk_graph_create(device, &calling, 0, &waited_for))) return 0;
  if (!fails(gk_launch(waited_for, 0))) (void)fails(gk_wait(waited_for, NULL));
  gk_graph_destroy(waited_for);
  gk_device_close(device);
  return 0;
}

/* Memory of hipMalloc, which gk doesn't know. */
static int binds_own_memory(void) {
  enum { Y = 1 };
  static const gk_slot_desc own[] = {GK_BUFFER(Y, int)};
  static const gk_task fills[] = {GK_FILL(Y, GK_ONE, 5)};
  static const gk_list filling = GK_LIST(filling, fills, own);
  hipError_t (*make)(void **memory, size_t bytes), (*give_back)(void *memory);
  gk_graph *graph = NULL;
  void *memory = NULL;
  int value = 0;
  if (opens() || fails(gk_graph_create(device, &filling, 0, &graph))) return 0;
  *(void **)&make = hip("hipMalloc");
  *(void **)&give_back = hip("hipFree");
  if (make(&memory, sizeof value) != hipSuccess || fails(gk_bind(graph, Y, memory))) return 0;
  if (fails(gk_launch(graph, 0)) || fails(gk_wait(graph, NULL))) return 0;
  if (!fails(gk_download(device, &value, memory, sizeof value))) printf("%d", value);
  gk_graph_destroy(graph);
  gk_device_close(device);
  return give_back(memory) != hipSuccess;
}

/* The host reads the flag where it is: no copy is made. */
static int reads_host_flag(void) {
  static const gk_task loop[] = {GK_FILL(X, GK_ONE, 0), GK_DO_WHILE(LEFT), GK_RUN(step, GK_ONE, X, LEFT), GK_END};
  static const gk_list looping = GK_LIST(looping, loop, slots);
  gk_graph *graph = NULL;
  int x = 0;
  if (opens() || fails(gk_graph_create(device, &looping, GK_HOST_GATED, &graph))) return 0;
  int *left = gk_alloc(device, sizeof *left, GK_HOST_MEMORY);
  if (!left || fails(gk_bind(graph, LEFT, left))) return 0;
  *left = 7;
  sim()->mark();
  if (fails(gk_launch(graph, 0)) || fails(gk_wait(graph, NULL))) return 0;
  const unsigned long long copies = sim()->calls("cuMemcpyDtoHAsync");
  if (!fails(gk_read(graph, X, &x, 1))) printf("%d %d %llu", x, *left, copies);
  gk_graph_destroy(graph);
  gk_free(device, left);
  gk_device_close(device);
  return 0;
}

/* The driver's, as simulated HIP has no capture of its own. */
static void *cuda(const char *name, int version) {
  void *entry = NULL;
  CUdriverProcAddressQueryResult status;
  gki_cuGetProcAddress_v2 get;
  *(void **)&get = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
  (void)get(name, &entry, version, 0, &status);
  return entry;
}

/* Of a graph on a stream that is captured, and once it isn't any more. */
static bool launch_captured(gk_graph *graph, hipStream_t stream) {
  CUresult (*begin)(CUstream stream, CUstreamCaptureMode mode), (*end)(CUstream stream, CUgraph *graph);
  CUresult (*destroy)(CUgraph graph);
  CUgraph captured = NULL;
  *(void **)&begin = cuda("cuStreamBeginCapture", 10010);
  *(void **)&end = cuda("cuStreamEndCapture", 10000);
  *(void **)&destroy = cuda("cuGraphDestroy", 10000);
  if (begin((CUstream)stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS) return false;
  (void)fails(gk_launch_on(graph, 0, stream));
  printf(" | ");
  if (end((CUstream)stream, &captured) != CUDA_SUCCESS || destroy(captured) != CUDA_SUCCESS) return false;
  return !fails(gk_launch_on(graph, 0, stream)) && !fails(gk_wait(graph, NULL));
}

/* While a stream of the program is captured, in the mode that forbids most. */
static int works_beside_capture(void) {
  enum { Y = 1 };
  static const gk_slot_desc own[] = {GK_OWN(Y, int, 1)};
  static const gk_task fills[] = {GK_FILL(Y, GK_ONE, 5)};
  static const gk_list filling = GK_LIST(filling, fills, own);
  CUresult (*begin)(CUstream stream, CUstreamCaptureMode mode), (*end)(CUstream stream, CUgraph *graph);
  CUresult (*drop)(CUgraph graph);
  hipError_t (*make)(hipStream_t *stream, unsigned flags), (*destroy)(hipStream_t stream);
  hipError_t (*exchange)(hipStreamCaptureMode *mode);
  hipStream_t stream = NULL;
  CUgraph captured = NULL;
  *(void **)&exchange = hip("hipThreadExchangeStreamCaptureMode");
  *(void **)&make = hip("hipStreamCreateWithFlags");
  if (make(&stream, GKI_HIP_STREAM_NON_BLOCKING) != hipSuccess) return 1;
  *(void **)&begin = cuda("cuStreamBeginCapture", 10010);
  *(void **)&end = cuda("cuStreamEndCapture", 10000);
  if (begin((CUstream)stream, CU_STREAM_CAPTURE_MODE_GLOBAL) != CUDA_SUCCESS || opens()) return 1;
  for (int k = 0; k < 2; ++k) { /* a launch of gk's own thread, and one of this one */
    gk_graph *graph = NULL;
    int value = 0;
    if (fails(gk_graph_create(device, &filling, 0, &graph))) return 0;
    if (fails(k ? gk_launch_on(graph, 0, NULL) : gk_launch(graph, 0)) || fails(gk_wait(graph, NULL))) return 0;
    if (fails(gk_download(device, &value, gk_bound(graph, Y), sizeof value))) return 0;
    printf("%d ", value);
    gk_graph_destroy(graph);
  }
  gk_device_close(device);
  hipStreamCaptureMode mode = hipStreamCaptureModeGlobal; /* this thread's, as it was before */
  const bool is_kept = exchange(&mode) == hipSuccess && mode == hipStreamCaptureModeGlobal;
  const CUresult ended = end((CUstream)stream, &captured);
  printf("capture %d, %s, mode %s", (int)ended, captured ? "a graph" : "none", is_kept ? "kept" : "changed");
  *(void **)&destroy = hip("hipStreamDestroy");
  *(void **)&drop = cuda("cuGraphDestroy", 10000);
  return (captured && drop(captured) != CUDA_SUCCESS) || destroy(stream) != hipSuccess;
}

/* Without a stream, the device works on the default one, which waits for blocking streams. One of these is captured. */
static int shares_default(void) {
  CUresult (*begin)(CUstream stream, CUstreamCaptureMode mode), (*end)(CUstream stream, CUgraph *graph);
  CUresult (*drop)(CUgraph graph);
  hipError_t (*make)(hipStream_t *stream, unsigned flags), (*destroy)(hipStream_t stream);
  hipStream_t stream = NULL;
  CUgraph captured = NULL;
  int value = 5;
  *(void **)&make = hip("hipStreamCreateWithFlags");
  *(void **)&destroy = hip("hipStreamDestroy");
  *(void **)&begin = cuda("cuStreamBeginCapture", 10010);
  *(void **)&end = cuda("cuStreamEndCapture", 10000);
  *(void **)&drop = cuda("cuGraphDestroy", 10000);
  const gk_hip_sharing sharing = GK_HIP_SHARE(NULL);
  if (fails(gk_device_open(&(gk_device_desc){.backend = "hip", .next = &sharing.base}, &device))) return 0;
  int *memory = gk_alloc(device, sizeof value, GK_DEVICE_MEMORY);
  if (make(&stream, 0) != hipSuccess) return 1;
  if (begin((CUstream)stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS) return 1;
  (void)fails(gk_upload(device, memory, &value, sizeof value));
  if (end((CUstream)stream, &captured) != CUDA_SUCCESS) return 1;
  printf(" | %s", gk_result_name(gk_upload(device, memory, &value, sizeof value)));
  gk_free(device, memory);
  gk_device_close(device);
  return drop(captured) != CUDA_SUCCESS || destroy(stream) != hipSuccess;
}

static int shares(void) {
  enum { Y = 1 };
  static const gk_slot_desc own[] = {GK_OWN(Y, int, 1)};
  static const gk_task calls[] = {GK_FILL(Y, GK_ONE, 5), GK_CALL(note, Y)};
  static const gk_list calling = GK_LIST(calling, calls, own);
  hipError_t (*make)(hipStream_t *stream, unsigned flags), (*destroy)(hipStream_t stream);
  hipStream_t stream = NULL, found = NULL;
  *(void **)&make = hip("hipStreamCreateWithFlags");
  *(void **)&destroy = hip("hipStreamDestroy");
  if (make(&stream, GKI_HIP_STREAM_NON_BLOCKING) != hipSuccess) return 1;
  gk_hip_sharing sharing = GK_HIP_SHARE(stream);
  if (fails(gk_device_open(&(gk_device_desc){.backend = "hip", .next = &sharing.base}, &device))) return 0;
  gk_graph *graph = NULL;
  if (fails(gk_hip_stream(device, &found)) || fails(gk_graph_create(device, &calling, 0, &graph))) return 0;
  if (fails(gk_launch(graph, 0)) || fails(gk_wait(graph, NULL))) return 0;
  printf("%d %d", found == stream, called_with == (void *)stream);
  if (fails(gk_launch_on(graph, 0, NULL)) || fails(gk_wait(graph, NULL))) return 0;
  printf(" %d |", called_with == NULL);
  if (!launch_captured(graph, stream)) return 1;
  gk_graph_destroy(graph);
  gk_device_close(device);
  sharing.stream = (hipStream_t)GKI_HIP_STREAM_PER_THREAD;
  (void)fails(gk_device_open(&(gk_device_desc){.backend = "hip", .next = &sharing.base}, &device));
  sharing.base.bytes = 4;
  (void)fails(gk_device_open(&(gk_device_desc){.backend = "hip", .next = &sharing.base}, &device));
  printf(" | ");
  (void)fails(gk_hip_stream(NULL, &found));
  return destroy(stream) != hipSuccess;
}

/* The device is lost in each call of a launch on the program's stream. Nothing waits for the stream when it is gone. */
static int loses_on_stream(void) {
  enum { Y = 1 };
  static const gk_slot_desc own[] = {GK_OWN(Y, int, 1)};
  static const gk_task fills[] = {GK_FILL(Y, GK_ONE, 5)};
  static const gk_list filling = GK_LIST(filling, fills, own);
  hipError_t (*make)(hipStream_t *stream, unsigned flags), (*destroy)(hipStream_t stream);
  unsigned long long waits = 0;
  *(void **)&make = hip("hipStreamCreateWithFlags");
  *(void **)&destroy = hip("hipStreamDestroy");
  unsigned call = 0;
  for (bool is_lost = true; is_lost;) {
    hipStream_t stream = NULL;
    gk_graph *graph = NULL;
    if (opens() || fails(gk_graph_create(device, &filling, 0, &graph))) return 0;
    if (make(&stream, GKI_HIP_STREAM_NON_BLOCKING) != hipSuccess) return 1;
    (sim()->fail)(++call, CUDA_ERROR_LAUNCH_FAILED, SIMGPU_LOST);
    is_lost = gk_launch_on(graph, 0, stream) != GK_OK || gk_wait(graph, NULL) != GK_OK;
    (sim()->fail)(0, CUDA_SUCCESS, SIMGPU_NOW);
    (void)destroy(stream);
    sim()->mark();
    gk_graph_destroy(graph);
    if (is_lost) waits += sim()->calls("cuStreamSynchronize");
    gk_device_close(device);
  }
  printf("%s, %llu waits %s", call > 5 ? "lost" : "never lost", waits, sim()->first_broken());
  return 0;
}

/* ---- the cases --------------------------------------------------------------------------------------------------- */

static const elsewhere_case streams[] = {
    {HIP7, {HOME, "GK_HIP_GRAPHS=0"}, "lose on stream", {"lost, 0 waits ", "$"}},
    {HIP7, {HOME, "GK_HIP_GRAPHS=1"}, "lose on stream", {"lost, 0 waits ", "$"}},
    {HIP7, {HOME}, "share default", {"GK_ERROR_INVALID: backend hip: the stream that the device shares is being "
                                     "captured", " | GK_OK", "$"}},
    {HIP7, {HOME}, "share", {"1 1 1 |", "GK_ERROR_INVALID: backend hip: the stream that the device shares is being "
                             "captured", "backend hip: gk_hip_sharing: hipStreamPerThread differs in each thread",
                             "GK_ERROR_INVALID: backend hip: gk_hip_sharing has ",
                             " | GK_ERROR_INVALID: gk_hip_stream"}}};
static const elsewhere_case captures[] = {
    {HIP7, {HOME, "GK_HIP_GRAPHS=0"}, "beside capture", {"5 5 capture 0, a graph, mode kept", "$"}},
    {HIP5, {HOME, "GK_HIP_GRAPHS=0"}, "beside capture", {"5 5 capture 0, a graph, mode kept", "$"}},
    {HIP7, {HOME, "GK_HIP_GRAPHS=1"}, "beside capture", {"5 5 capture 0, a graph, mode kept", "$"}}};
static const elsewhere_case calls_inside[] = {
    {HIP7, {HOME}, "call", {"GK_ERROR_INVALID: gk_wait: task 1 (wait_inside) calls it on its own device"}}};
static const elsewhere_case own_memory[] = {
    {HIP5, {HOME}, "bind", {"5", "$"}}, {HIP6, {HOME}, "bind", {"5", "$"}}, {HIP7, {HOME}, "bind", {"5", "$"}}};
static const elsewhere_case host_flags[] = {{HIP7, {HOME}, "host flag", {"7 0 0", "$"}}};

TEST(the_programs_stream_gets_all_work) { ELSEWHERE(streams); }
TEST(captures_of_the_program_are_not_spoiled) { ELSEWHERE(captures); }
TEST(a_call_that_waits_for_its_device_is_named) { ELSEWHERE(calls_inside); }
TEST(memory_of_the_program_is_bound_as_it_is) { ELSEWHERE(own_memory); }
TEST(flags_in_host_memory_are_read_there) { ELSEWHERE(host_flags); }

int main(int count, char **words) {
  static const elsewhere_word known[] = {
    {"share", shares}, {"share default", shares_default}, {"lose on stream", loses_on_stream},
    {"call", calls_its_device}, {"beside capture", works_beside_capture},
    {"bind", binds_own_memory}, {"host flag", reads_host_flag}};
  int code;
  if (elsewhere_is_here(count, words, known, GK_COUNT(known), &code)) return code;
  return run_all_tests();
}
