/* Graphs that the host gates, on CUDA: what a launch costs, that tasks of a run keep their order and sections have
 * none, and that whatever call of the driver fails, nothing is left behind. OLD: on a driver for that version, which
 * has no conditional nodes and takes none of the images; else with GK_HOST_GATED. */
#include "unit/support/await.h"
#include "world.h"
#include "unit/support/runtime_kernels.h"
#include "simgpu/simnvrtc.h"

#ifdef OLD
enum { IS_OLD = 1, BITS = 0 };
#define VERSION OLD
#else
enum { IS_OLD = 0, BITS = GK_HOST_GATED };
#define VERSION "13.0"
#endif

enum { X = 1, Y, N, A, FLAG, LEFT, BYTE, LINE, SLOTS };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int),    GK_BUFFER(Y, int),    GK_SCALAR(N, int),
                                     GK_SCALAR(A, int),    GK_BUFFER(FLAG, int), GK_BUFFER(LEFT, int),
                                     GK_SCALAR(BYTE, int), GK_STRUCT_VALUE(LINE, line)};
enum { HERE = 7 };

static CUresult (*memset_async)(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream);
static int called;

static void find_entries(void) {
  CUresult (*find)(const char *name, void **entry, int version, cuuint64_t flags);
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *entry = NULL;
  *(void **)&find = dlsym(library, "cuGetProcAddress");
  if (find("cuMemsetD8Async", &entry, 3020, 0) != CUDA_SUCCESS) abort();
  *(void **)&memset_async = entry;
}

/* As a library does that fills memory. */
static gk_result fill_bytes(const gk_value *args, void *native) {
  ++called;
  CUresult result = memset_async((CUdeviceptr)(uintptr_t)args[0].ptr, (unsigned char)args[1].i32, sizeof(int), native);
  return result == CUDA_SUCCESS ? GK_OK : GK_ERROR_DEVICE;
}

static gk_result do_nothing(const gk_value *args, void *native) {
  (void)args;
  return native ? GK_OK : GK_ERROR_INVALID;
}

static const gk_status *run_from(gk_graph *graph, int32_t label) {
  const gk_status *status = NULL;
  assert_ok(gk_launch(graph, label));
  assert_ok(gk_wait(graph, &status));
  return status;
}

/* A launch from its beginning to its end; how often it asks whether it is done is left open. */
static simgpu_counts counts_of_launch(gk_graph *graph) {
  sim->mark();
  run_from(graph, 0);
  simgpu_counts counts = sim->counts();
  counts.calls -= sim->calls("cuEventQuery") + sim->calls("cuEventSynchronize");
  return counts;
}

static void assert_light(const simgpu_counts *counts) {
  assert_int_equal(counts->memory, 0);
  assert_int_equal(counts->pageable, 0);
  assert_int_equal(sim->calls("cuStreamSynchronize"), 0);
  assert_int_equal(sim->calls("cuGraphInstantiateWithFlags") + sim->calls("cuGraphInstantiateWithParams"), 0);
  assert_int_equal(sim->calls("cuGraphAddKernelNode"), 0);
  assert_int_equal(sim->calls("cuStreamCreate") + sim->calls("cuEventCreate"), 0);
}

static gk_graph *gated(gk_device *device, const gk_list *list, uint32_t bits) {
  return graph_on(device, list, BITS | bits);
}

static void bind_numbers(gk_graph *graph, int n, int a) {
  gk_bind_int(graph, N, n);
  gk_bind_int(graph, A, a);
}

/* ---- what a launch costs ----------------------------------------------------------------------------------------- */

static gk_graph *straight_graph(gk_device *device, uint32_t count) {
  gk_task *tasks = calloc(count, sizeof *tasks);
  for (uint32_t k = 0; k < count; ++k) tasks[k] = (gk_task)GK_RUN(add, N, X, A);
  const gk_list list = {GK_ABI, "straight", tasks, count, slots, GK_COUNT(slots)};
  gk_graph *graph = gated(device, &list, 0);
  free(tasks);
  return graph;
}

static const gk_capability *line_of(const gk_device *device, const char *construct) {
  const gk_device_info *info = gk_device_describe(device);
  for (size_t k = 0; k < info->capability_count; ++k)
    if (strcmp(info->capabilities[k].construct, construct) == 0) return &info->capabilities[k];
  return NULL;
}

#ifdef OLD
/* Neither an image nor a compiler: all but COPY and FILL works. First: a compiler that was found is remembered. */
TEST(test_no_transfers) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
  const simnvrtc_control *controls[GK_COUNT(names)];
  for (size_t k = 0; k < GK_COUNT(names); ++k) {
    controls[k] = dlsym(dlopen(names[k], RTLD_NOW | RTLD_LOCAL), "simnvrtc_control");
    assert_non_null(controls[k]);
    controls[k]->set_versions("none");
  }
  static const gk_task copies[] = {GK_COPY(X, Y, GK_ONE)}, calls[] = {GK_CALL(do_nothing, 0)};
  static const gk_list copy_list = GK_LIST(copy_list, copies, slots), call_list = GK_LIST(call_list, calls, slots);
  gk_device *device = NULL;
  assert_ok(gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device));
  assert_int_equal(line_of(device, "KERNEL")->how, GK_REFUSED);
  assert_non_null(strstr(line_of(device, "KERNEL")->why, "NVRTC"));
  assert_int_equal(line_of(device, "COPY")->how, GK_REFUSED);
  assert_int_equal(line_of(device, "FILL")->how, GK_REFUSED);
  gk_graph *graph = NULL;
  assert_fails(GK_ERROR_UNSUPPORTED, "task 0 (X = Y): COPY and FILL",
               gk_graph_create(device, &copy_list, 0, &graph));
  assert_null(graph);
  graph = graph_on(device, &call_list, 0);
  run_from(graph, 0);
  gk_graph_destroy(graph);
  gk_device_close(device);
  for (size_t k = 0; k < GK_COUNT(names); ++k) controls[k]->set_versions("13.0,12.8,11.4");
}
#endif

TEST_ON_CUDA(test_straight_is_one_launch) {
  for (int k = 0; k < 2; ++k) {
    const uint32_t count = k ? 500 : 2;
    int *x = int_on(device, 0), *y = int_on(device, 0);
    gk_graph *graph = straight_graph(device, count);
    gk_bind(graph, X, x);
    bind_numbers(graph, 1, 1);
    run_from(graph, 0);
    simgpu_counts counts = counts_of_launch(graph);
    assert_light(&counts);
    assert_int_equal(sim->calls("cuGraphLaunch"), 1);
    assert_int_equal(sim->calls("cuEventRecord"), 1);
    assert_int_equal(counts.copies, 0);
    assert_int_equal(counts.calls, 10); /* the context comes and goes three times, and for the wait the mode */
    gk_bind(graph, X, y);
    gk_bind_int(graph, A, 3);
    counts = counts_of_launch(graph);
    assert_light(&counts);
    assert_int_equal(sim->calls("cuMemcpyHtoDAsync"), 1);
    assert_int_equal(counts.copies, 1);
    assert_int_equal(counts.calls, 11);
    assert_int_equal(int_at(device, x), 2 * (int)count);
    assert_int_equal(int_at(device, y), 3 * (int)count);
    gk_graph_destroy(graph);
  }
}

/* Flags in the device's memory cost a copy each; those in page-locked memory the host reads itself. */
TEST_ON_CUDA(test_flags) {
  static const gk_task tasks[] = {GK_DO_WHILE(LEFT), GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A),
                                  GK_RUN(add, N, X, A), GK_END, GK_RUN(decrease, GK_ONE, LEFT), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = gated(device, &list, 0);
  int *x = int_on(device, 0), *left = int_on(device, 3), *flag = int_on(device, 0);
  int *pages = gk_alloc(device, 2 * sizeof *pages, GK_HOST_MEMORY);
  gk_bind(graph, X, x);
  gk_bind(graph, LEFT, left);
  gk_bind(graph, FLAG, flag);
  bind_numbers(graph, 1, 1);
  run_from(graph, 0);
  set_int(device, left, 4);
  simgpu_counts counts = counts_of_launch(graph);
  assert_light(&counts);
  assert_int_equal(sim->calls("cuGraphLaunch"), 8);
  assert_int_equal(sim->calls("cuMemcpyDtoHAsync"), 8);
  assert_int_equal(sim->calls("cuEventRecord"), 8); /* none for the end: nothing comes behind the last flag */
  assert_int_equal(counts.copies, 8);
  gk_bind(graph, LEFT, &pages[0]);
  gk_bind(graph, FLAG, &pages[1]);
  pages[0] = 3;
  run_from(graph, 0);
  assert_int_equal(pages[0], 0);
  pages[0] = 3;
  counts = counts_of_launch(graph);
  assert_light(&counts);
  assert_int_equal(counts.copies, 0);
  assert_int_equal(sim->calls("cuGraphLaunch"), 6);
  pages[0] = 5;
  pages[1] = 1;
  assert_int_equal(run_from(graph, 0)->yielded, HERE);
  pages[1] = 0;
  assert_int_equal(run_from(graph, HERE)->state, GK_FINISHED);
  assert_int_equal(int_at(device, x), 2 * (3 + 4 + 3 + 3 + 1 + 5));
  gk_graph_destroy(graph);
}

TEST_ON_CUDA(test_queue) {
  static const gk_task tasks[] = {GK_RUN(apply, N, X, LINE)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = gated(device, &list, 0);
  int *memory[16];
  for (int k = 0; k < 16; ++k) memory[k] = int_on(device, 1);
  gk_bind_int(graph, N, 1);
  sim->hold(true);
  for (int k = 0; k < 16; ++k) {
    gk_bind_bytes(graph, LINE, &(line){k, 1000}, sizeof(line));
    gk_bind(graph, X, memory[k]);
    assert_ok(gk_launch(graph, 0));
  }
  assert_int_equal(gk_poll(graph, NULL), GK_NOT_READY);
  sim->hold(false);
  assert_ok(gk_wait(graph, NULL));
  for (int k = 0; k < 16; ++k) assert_int_equal(int_at(device, memory[k]), 1000 + k);
  gk_graph_destroy(graph);
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

/* Whatever order they come in, what follows waits for all of them. */
TEST_ON_CUDA(test_sections_are_branches) {
  static const gk_task tasks[] = {
    GK_FILL(X, GK_ONE, 0), GK_FILL(Y, GK_ONE, 1),
    GK_PARALLEL,
      GK_SECTION, GK_CALL(fill_bytes, X, BYTE), GK_CALL(do_nothing, 0), GK_END,
      GK_SECTION, GK_COPY(Y, FLAG, GK_ONE), GK_PARALLEL, GK_SECTION, GK_RUN(add, N, Y, A), GK_END,
                                            GK_SECTION, GK_RUN(decrease, GK_ONE, LEFT), GK_END, GK_END, GK_END,
    GK_END,
    GK_RUN(total, GK_ONE, X, Y), GK_RUN(total, GK_ONE, LEFT, Y)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = gated(device, &list, 0);
  int *x = int_on(device, 9), *y = int_on(device, 9), *flag = int_on(device, 4), *left = int_on(device, 1000);
  gk_bind(graph, X, x);
  gk_bind(graph, Y, y);
  gk_bind(graph, FLAG, flag);
  gk_bind(graph, LEFT, left);
  bind_numbers(graph, 1, 20);
  for (int k = 0; k < 30; ++k) {
    sim->set_seed((uint64_t)k);
    gk_bind_int(graph, BYTE, k % 3);
    set_int(device, left, 1000);
    run_from(graph, 0);
    assert_int_equal(sim->broken(), 0);
    assert_int_equal(int_at(device, y), 4 + 20 + 999 + 0x01010101 * (k % 3));
  }
  gk_graph_destroy(graph);
}

/* What gk doesn't see: the call's own memory. */
static int *hidden;
static gk_result clear_hidden(const gk_value *args, void *native) {
  (void)args;
  return memset_async((CUdeviceptr)(uintptr_t)hidden, 0, sizeof(int), native) == CUDA_SUCCESS ? GK_OK : GK_ERROR_DEVICE;
}

/* Sections come in any order: the graph says no more than the list. */
TEST_ON_CUDA(test_order_is_left_open) {
  static const gk_task tasks[] = {GK_PARALLEL, GK_SECTION, GK_COPY(X, Y, GK_ONE), GK_END,
                                  GK_SECTION, GK_CALL(clear_hidden, 0), GK_END, GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  int *x = int_on(device, 0), before = 0, after = 0;
  hidden = int_on(device, 0);
  gk_graph *graph = gated(device, &list, 0);
  gk_bind(graph, X, x);
  gk_bind(graph, Y, hidden);
  for (int k = 0; k < 40; ++k) {
    sim->set_seed((uint64_t)k);
    set_int(device, hidden, 5);
    run_from(graph, 0);
    if (int_at(device, x) == 5) ++before;
    else ++after;
  }
  assert_true(before > 0 && after > 0);
  gk_graph_destroy(graph);
}

/* ---- library calls ----------------------------------------------------------------------------------------------- */

TEST_ON_CUDA(test_calls_are_recorded) {
  static const gk_task tasks[] = {
    GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A), GK_CALL(fill_bytes, X, BYTE), GK_CALL(do_nothing, 0), GK_RUN(add, N, X, A),
    GK_RUN(decrease, GK_ONE, LEFT), GK_END, GK_CALL(do_nothing, 0)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  called = 0;
  gk_graph *graph = gated(device, &list, 0);
  int *x = int_on(device, 0), *left = int_on(device, 5);
  gk_bind(graph, X, x);
  gk_bind(graph, LEFT, left);
  gk_bind_int(graph, BYTE, 1);
  bind_numbers(graph, 1, 2);
  assert_int_equal(called, 0); /* what it gets isn't known yet */
  run_from(graph, 0);
  assert_int_equal(called, 1);
  assert_int_equal(int_at(device, x), 0x01010103);
  set_int(device, left, 2);
  gk_bind_int(graph, A, 3);
  const simgpu_counts counts = counts_of_launch(graph);
  assert_light(&counts);
  assert_int_equal(called, 1);
  assert_int_equal(int_at(device, x), 0x01010104);
  set_int(device, left, 1);
  gk_bind_int(graph, BYTE, 2);
  run_from(graph, 0);
  assert_int_equal(called, 2);
  assert_int_equal(int_at(device, x), 0x02020205);
  gk_graph_destroy(graph);
}

/* ---- with others ------------------------------------------------------------------------------------------------- */

/* In turn on one stream, with one whose end nothing marks. */
TEST_ON_CUDA(test_beside_another_graph) {
  static const gk_task tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, LEFT), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graphs[2] = {gated(device, &list, 0), graph_on(device, &list, 0)};
  int *x[2], *left[2];
  for (int k = 0; k < 2; ++k) {
    gk_bind(graphs[k], X, x[k] = int_on(device, 0));
    gk_bind(graphs[k], LEFT, left[k] = int_on(device, 0));
    bind_numbers(graphs[k], 1, 1);
  }
  for (int k = 0; k < 40; ++k) {
    set_int(device, left[0], 2);
    set_int(device, left[1], 3);
    assert_ok(gk_launch(graphs[k & 1], 0));
    assert_ok(gk_launch(graphs[~k & 1], 0));
    assert_ok(gk_wait(graphs[k / 2 & 1], NULL));
    assert_ok(gk_wait(graphs[~(k / 2) & 1], NULL));
  }
  assert_int_equal(int_at(device, x[0]), 80);
  assert_int_equal(int_at(device, x[1]), 120);
  gk_graph_destroy(graphs[0]);
  gk_graph_destroy(graphs[1]);
}

/* Page-locked memory is the host's at any time, but what it is to hold comes from a launch before. */
TEST_ON_CUDA(test_flag_from_another_graph) {
  static const gk_task writes[] = {GK_FILL(FLAG, GK_ONE, 1)}, reads[] = {GK_IF(FLAG), GK_RUN(add, N, X, A), GK_END};
  static const gk_list writing = GK_LIST(writing, writes, slots), reading = GK_LIST(reading, reads, slots);
  gk_graph *writer = graph_on(device, &writing, 0), *reader = gated(device, &reading, 0);
  int *x = int_on(device, 0), *flag = gk_alloc(device, sizeof *flag, GK_HOST_MEMORY);
  gk_bind(writer, FLAG, flag);
  gk_bind(reader, FLAG, flag);
  gk_bind(reader, X, x);
  bind_numbers(reader, 1, 1);
  *flag = 0;
  run_from(reader, 0); /* the next has nothing to bring to the device */
  for (int k = 0; k < 3; ++k) {
    *flag = 0;
    sim->hold(true);
    sim->mark();
    assert_ok(gk_launch(writer, 0));
    assert_ok(gk_launch(reader, 0));
    gk_result early;
    while ((early = gk_poll(reader, NULL)) == GK_NOT_READY && !sim->calls("cuEventQuery")) usleep(100);
    sim->hold(false);
    assert_int_equal(early, GK_NOT_READY); /* also if it has nothing to run: it ends behind what came before */
    assert_ok(gk_wait(reader, NULL));
    assert_int_equal(*flag, 1);
    assert_ok(gk_wait(writer, NULL));
    assert_int_equal(int_at(device, x), k + 1);
  }
  gk_graph_destroy(reader);
  gk_graph_destroy(writer);
  gk_free(device, flag);
}

TEST_ON_CUDA(test_cancel) {
  static const gk_task tasks[] = {GK_DO_WHILE(FLAG), GK_RUN(add, N, X, A), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = gated(device, &list, GK_CANCELLABLE);
  gk_bind(graph, X, int_on(device, 0));
  gk_bind(graph, FLAG, int_on(device, 1));
  bind_numbers(graph, 1, 1);
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_launch(graph, 0));
  assert_int_equal(gk_poll(graph, NULL), GK_NOT_READY);
  assert_ok(gk_cancel(graph));
  const gk_status *status;
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->state, GK_CANCELLED);
  gk_graph_destroy(graph);
}

/* ---- what is said ------------------------------------------------------------------------------------------------ */

static char logged[4096];

static void keep_line(void *user, gk_log_level level, const char *text) {
  (void)user;
  (void)level;
  if (strstr(text, "gated by the host")) snprintf(logged, sizeof logged, "%s", text);
}

TEST_ON_CUDA(test_reason_is_told) {
  gk_set_log(GK_LOG_INFO, keep_line, NULL);
  gk_graph *graph = straight_graph(device, 3);
  assert_non_null(strstr(logged, IS_OLD ? "the driver is for CUDA " VERSION : "GK_HOST_GATED asks for it"));
  gk_graph_destroy(graph);
  static const gk_task tasks[] = {GK_RUN(add, N, X, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph_destroy(graph_on(device, &list, GK_ISOLATE));
  assert_non_null(strstr(logged, "GK_ISOLATE"));
  gk_set_log(GK_LOG_WARN, NULL, NULL);
  const gk_capability *loop = line_of(device, "DO_WHILE"), *copy = line_of(device, "COPY");
  assert_int_equal(loop->how, IS_OLD ? GK_ON_HOST : GK_NATIVE);
  assert_int_equal(copy->how, GK_NATIVE);
  if (!IS_OLD) return;
  assert_non_null(strstr(loop->why, "the driver is for CUDA " VERSION));
  assert_non_null(strstr(copy->why, "compiled by NVRTC"));
  assert_int_equal(line_of(device, "PARALLEL")->how, GK_IN_SERIES);
}

/* A device of which gk believes that it reaches all memory of the host. */
static gk_device *open_credulous(void) {
  sim->allow("pageable");
  gk_device *device = open_named("cuda");
  sim->allow(NULL);
  return device;
}

/* With GK_ISOLATE the one that faults is named, else those up to which it was. */
TEST_ON_CUDA(test_fault_names_the_task) {
  static const gk_task tasks[] = {GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, Y), GK_RUN(add, N, X, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  for (int isolate = 0; isolate < 2; ++isolate) {
    gk_device *opened = open_credulous();
    gk_graph *graph = gated(opened, &list, isolate ? GK_ISOLATE : 0);
    gk_bind(graph, X, int_on(opened, 0));
    gk_bind(graph, Y, (void *)(uintptr_t)0x1000);
    bind_numbers(graph, 1, 1);
    assert_ok(gk_launch(graph, 0));
    assert_int_equal(gk_wait(graph, NULL), GK_ERROR_DEVICE);
    assert_says(isolate ? "waiting for task 1 (decrease) of graph list" : "tasks 0 (add) to 2 (add) of graph list");
    assert_says("CUDA_ERROR_ILLEGAL_ADDRESS");
    if (!isolate) assert_says("GK_ISOLATE");
    gk_graph_destroy(graph);
    gk_device_close(opened);
    if (*state) gk_device_close(*state); /* a context that has failed is gone when nobody has it */
    opened = NULL;
    sim->forgive();
  }
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* The driver says only in the end that the call left another stream forked off, or ended the capture itself. */
TEST_ON_CUDA(test_capture_ends_badly) {
  static const CUresult codes[] = {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, CUDA_ERROR_ILLEGAL_STATE};
  static const gk_task tasks[] = {GK_CALL(do_nothing, 0)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  for (size_t c = 0; c < GK_COUNT(codes); ++c) {
    const char *failed = "";
    for (uint64_t k = 1; failed && strcmp(failed, "cuStreamEndCapture") != 0; ++k) {
      gk_graph *graph = NULL;
      sim->mark();
      (sim->fail)(k, codes[c], SIMGPU_NOW);
      const gk_result result = gk_graph_create(device, &list, BITS, &graph);
      failed = sim->failed();
      sim->mark();
      if (failed && strcmp(failed, "cuStreamEndCapture") == 0) {
        assert_int_equal(result, GK_ERROR_INVALID);
        assert_says("task 0 (do_nothing): what the call did can't be recorded");
      }
      gk_graph_destroy(graph);
    }
    assert_non_null(failed);
  }
}

static const gk_task many[] = {
  GK_FILL(X, GK_ONE, 1), GK_COPY(Y, X, GK_ONE),
  GK_PARALLEL, GK_SECTION, GK_CALL(fill_bytes, X, BYTE), GK_END, GK_SECTION, GK_RUN(add, N, Y, A), GK_END, GK_END,
  GK_DO_WHILE(LEFT), GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, Y, A), GK_END, GK_RUN(decrease, GK_ONE, LEFT), GK_END};
static const gk_list many_list = GK_LIST(many_list, many, slots);

/* The first that isn't GK_OK. */
static gk_result try_many(gk_device *device, int *memory, gk_graph **graph) {
  gk_result result = gk_graph_create(device, &many_list, BITS, graph);
  if (result != GK_OK) return result;
  gk_bind(*graph, X, memory);
  gk_bind(*graph, Y, memory + 1);
  gk_bind(*graph, LEFT, memory + 2);
  gk_bind(*graph, FLAG, memory + 3);
  gk_bind_int(*graph, BYTE, 0);
  gk_bind_bytes(*graph, LINE, &(line){1, 1}, sizeof(line));
  bind_numbers(*graph, 1, 10);
  result = gk_launch(*graph, 0);
  return result == GK_OK ? gk_wait(*graph, NULL) : result;
}

static void fill_memory(gk_device *device, int *memory) {
  assert_ok(gk_upload(device, memory, (const int[]){7, 7, 2, 0}, 4 * sizeof *memory));
}

static void assert_done(gk_device *device, const int *memory) {
  int all[4];
  assert_ok(gk_download(device, all, memory, sizeof all));
  assert_memory_equal(all, ((const int[]){0, 1 + 3 * 10, 0, 0}), sizeof all);
}

TEST_ON_CUDA(test_every_call_fails) {
  int *memory = ints_on(device, (const int[]){0, 0, 0, 0}, 4);
  gk_graph *graph = NULL;
  fill_memory(device, memory);
  assert_ok(try_many(device, memory, &graph)); /* its kernels stay as long as one of their graphs does */
  assert_done(device, memory);
  const size_t alive = alive_but_memory();
  for (uint64_t k = 1;; ++k) {
    gk_graph *other = NULL;
    fill_memory(device, memory);
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
    const gk_result result = try_many(device, memory, &other);
    const char *failed = sim->failed();
    sim->mark();
    if (result != GK_OK) {
      assert_non_null(failed);
      assert_int_equal(result, GK_ERROR_DEVICE);
      if (!strstr(gk_error(), "the call answered GK_ERROR_DEVICE")) assert_says("CUDA_ERROR_UNKNOWN");
    } else {
      assert_done(device, memory);
    }
    if (other) { /* it works once the driver does */
      fill_memory(device, memory);
      assert_ok(gk_launch(other, 0));
      assert_ok(gk_wait(other, NULL));
      assert_done(device, memory);
    }
    gk_graph_destroy(other);
    assert_int_equal(alive_but_memory(), alive);
    assert_int_equal(sim->broken(), 0);
    if (!failed) {
      assert_true(k > 30);
      break;
    }
  }
  gk_graph_destroy(graph);
}

/* While the device is opened, with what is compiled then. */
TEST_ON_CUDA(test_opening_fails) {
  gk_device_close(device);
  device = NULL;
  for (uint64_t k = 1;; ++k) {
    gk_device *opened = NULL;
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
    const gk_result result = gk_device_open(&(gk_device_desc){.backend = "cuda"}, &opened);
    const char *failed = sim->failed();
    sim->mark();
    assert_true(result == GK_OK || opened == NULL);
    gk_device_close(opened);
    assert_int_equal(sim->alive(SIMGPU_ALL), 0);
    assert_int_equal(sim->broken(), 0);
    if (!failed) break;
  }
}

#ifndef OLD
/* Of one that was launched before, wherever, and wasn't waited for: no task of the isolated one is to blame. */
TEST_ON_CUDA(test_fault_of_another_graph) {
  static const gk_task bad_tasks[] = {GK_RUN(decrease, GK_ONE, Y)}, good_tasks[] = {GK_RUN(add, N, X, A)};
  static const gk_list bad = GK_LIST(bad, bad_tasks, slots), good = GK_LIST(good, good_tasks, slots);
  for (int abroad = 0; abroad < 2; ++abroad) {
    gk_device *opened = open_credulous();
    gk_graph *first = graph_on(opened, &bad, 0), *isolated = graph_on(opened, &good, GK_ISOLATE);
    gk_bind(first, Y, (void *)(uintptr_t)0x1000);
    gk_bind(isolated, X, int_on(opened, 0));
    bind_numbers(isolated, 1, 1);
    sim->hold(1);
    assert_ok(abroad ? gk_launch_on(first, 0, NULL) : gk_launch(first, 0));
    const uint64_t follows = sim->calls("cuStreamWaitEvent");
    assert_ok(gk_launch(isolated, 0));
    if (abroad) await(sim->calls("cuStreamWaitEvent") > follows); /* what is on the caller's stream */
    sim->hold(0);
    assert_fails(GK_ERROR_DEVICE, "CUDA_ERROR_ILLEGAL_ADDRESS", gk_wait(isolated, NULL));
    if (strstr(gk_error(), "(add)")) fail_msg("%s", gk_error());
    gk_graph_destroy(isolated);
    gk_graph_destroy(first);
    gk_device_close(opened);
    if (*state) gk_device_close(*state);
    opened = NULL;
    sim->forgive();
  }
}
#endif

int main(int count, char **words) {
  (void)count;
  setenv("SIMGPU_VERSION", VERSION, 1);
  with_simgpu(words);
  find_entries();
  return run_all_tests();
}
