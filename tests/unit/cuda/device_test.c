/* Devices on CUDA: opening, contexts, memory of both kinds, copies. */
#include "cuda/memory.h"
#include "runtime/device.h"
#include "cuda/device.h"
#include "graphs.h"
#include "unit/support/runtime_kernels.h"

TEST_ON_CUDA(test_report) {
  const gk_device_info *info = gk_device_describe(device);
  assert_string_equal(info->backend, "cuda");
  assert_non_null(strstr(info->driver, "CUDA 13.0"));
  for (size_t k = 0; k < info->capability_count; ++k) {
    assert_true(strlen(info->capabilities[k].why) > 10);
    const bool asks_host = strcmp(info->capabilities[k].construct, "CALL_HOST") == 0;
    assert_int_equal(info->capabilities[k].how, asks_host ? GK_ON_HOST : GK_NATIVE);
  }
}

TEST_ON_CUDA(test_no_such_device) {
  gk_device *none = NULL;
  const gk_extension extension = {.id = 5, .bytes = sizeof extension};
  const struct { gk_device_desc desc; gk_result result; const char *words; } turns[] = {
      {{.ordinal = 7}, GK_ERROR_NO_DEVICE, "there is 1 device, counted from 0; 7 was asked for"},
      {{.ordinal = 1}, GK_ERROR_NO_DEVICE, "there is 1 device, counted from 0; 1 was asked for"},
      {{.next = &extension}, GK_ERROR_INVALID, "no extension"}};
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    gk_device_desc desc = turns[k].desc;
    desc.backend = "cuda";
    assert_fails(turns[k].result, turns[k].words, gk_device_open(&desc, &none));
    assert_null(none);
  }
}

/* No call changes the caller's current context. */
TEST_ON_CUDA(test_context_is_left_alone) {
  int *memory = int_on(device, 3);
  assert_int_equal(int_at(device, memory), 3);
  gk_free(device, memory);
  gk_free(device, gk_alloc(device, 10, GK_HOST_MEMORY));
  assert_null(gk_alloc(device, SIZE_MAX / 2, GK_DEVICE_MEMORY));
  assert_says("cuMemAlloc");
  CUcontext now = (CUcontext)(uintptr_t)1;
  RIGHT(cu.cuCtxGetCurrent(&now));
  assert_null(now);
}

TEST_ON_CUDA(test_host_memory) {
  int *page = gk_alloc(device, 4 * sizeof *page, GK_HOST_MEMORY), *far = int_on(device, 7);
  char *bytes = (char *)page;
  assert_non_null(page);
  const struct { void *at, *host; } addresses[] = {
      {page + 1, page + 1}, {far, NULL}, {bytes + 15, bytes + 15}, {bytes + 16, NULL}, /* right behind it */
      {bytes - 1, NULL}};
  for (size_t k = 0; k < GK_COUNT(addresses); ++k)
    assert_ptr_equal(gk_host_address(device, addresses[k].at), addresses[k].host);
  assert_int_equal(page[3], 0);
  page[1] = 11;
  assert_ok(gk_copy(device, far, page + 1, sizeof *far)); /* to the device, back, within */
  assert_int_equal(int_at(device, far), 11);
  set_int(device, far, 12);
  assert_ok(gk_copy(device, page, far, sizeof *far));
  assert_int_equal(page[0], 12);
  assert_ok(gk_copy(device, page + 1, page, 3 * sizeof *page));
  assert_int_equal(page[2], 11);
  set_int(device, page + 3, 5);
  assert_int_equal(page[3], 5);
  assert_int_equal(int_at(device, page + 3), 5);
  gk_free(device, page);
  gk_free(device, far);
}

/* In either order of freeing. */
TEST_ON_CUDA(test_blocks_of_host_memory) {
  const size_t alive = sim->alive(SIMGPU_ALL);
  for (int first = 0; first < 3; ++first) {
    int *pages[3];
    for (int k = 0; k < 3; ++k) assert_non_null(pages[k] = gk_alloc(device, sizeof *pages[k], GK_HOST_MEMORY));
    gk_free(device, pages[first]);
    for (int k = 0; k < 3; ++k)
      if (k != first) assert_ptr_equal(gk_host_address(device, pages[k]), pages[k]);
    for (int k = 0; k < 3; ++k)
      if (k != first) gk_free(device, pages[k]);
    assert_int_equal(sim->alive(SIMGPU_ALL), alive);
  }
}

TEST_ON_CUDA(test_overlapping_copies) {
  int *memory = ints_on(device, (const int[]){0, 1, 2, 3, 4, 5, 6, 7}, 8);
  assert_ok(gk_copy(device, memory + 1, memory, 6 * sizeof *memory));
  ASSERT_INTS(memory, 0, 0, 1, 2, 3, 4, 5, 7);
  assert_ok(gk_copy(device, memory, memory + 2, 6 * sizeof *memory));
  assert_ok(gk_copy(device, memory, memory, 6 * sizeof *memory));
  ASSERT_INTS(memory, 1, 2, 3, 4, 5, 7, 5, 7);
}

/* The memory in between is given back, whichever call fails. */
TEST_ON_CUDA(test_overlapping_copies_fail) {
  int *memory = ints_on(device, (const int[]){1, 2, 3, 4}, 4);
  const size_t alive = sim->alive(SIMGPU_ALL);
  FOR_EACH_CALL(k, failed) {
    (void)FAILING(k, CUDA_ERROR_UNKNOWN, failed, gk_copy(device, memory + 1, memory, 3 * sizeof *memory));
    assert_int_equal(sim->alive(SIMGPU_ALL), alive);
  }
}

/* Without page-locked memory: the device sees it at another address, or the driver can't be asked. */
TEST_ON_CUDA(test_host_memory_elsewhere) {
  const size_t alive = sim->alive(SIMGPU_ALL);
  sim->answer_no("P13");
  assert_null(gk_alloc(device, 8, GK_HOST_MEMORY));
  assert_says("page-locked memory has another address on device 0 (simulated GPU 0); use GK_DEVICE_MEMORY");
  sim->answer_no(NULL);
  assert_int_equal(sim->alive(SIMGPU_ALL), alive);
  fail_call(4, CUDA_ERROR_UNKNOWN); /* behind the context's push, the mode's exchange, the memory */
  assert_null(gk_alloc(device, 8, GK_HOST_MEMORY));
  assert_string_equal(sim->failed(), "cuMemHostGetDevicePointer");
  assert_int_equal(sim->alive(SIMGPU_ALL), alive);
}

/* ---- memory of the host that isn't page-locked ------------------------------------------------------------------- */

enum { X = 1, BY, FLAG, TO, UNREAD };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(BY, int, 7), GK_BUFFER(FLAG, int),
                                     GK_BUFFER(TO, int), GK_BUFFER(UNREAD, int)};
LIST(list, GK_IF(FLAG), GK_RUN(add, GK_ONE, X, BY), GK_COPY(TO, X, GK_ONE), GK_END);
static int of_host[4] = {1, 1, 1, 1};

TEST_ON_CUDA(test_memory_of_the_host_is_refused) {
  gk_graph *graph = new_graph(device, &list, 0);
  int *on_device = ints_on(device, of_host, 4), *page = gk_alloc(device, sizeof *page, GK_HOST_MEMORY);
  int on_stack = 0, *obtained = malloc(sizeof *obtained);
  assert_fails(GK_ERROR_INVALID, "gk_bind: slot 1 (X): ", gk_bind(graph, X, of_host));
  assert_says("is host memory that CUDA device 0 (simulated GPU 0) can't touch; bind memory of gk_alloc");
  assert_fails(GK_ERROR_INVALID, "slot 3 (FLAG)", gk_bind(graph, FLAG, &on_stack));
  assert_fails(GK_ERROR_INVALID, "slot 4 (TO)", gk_bind(graph, TO, obtained));
  assert_null(gk_bound(graph, X));
  assert_ok(gk_bind(graph, UNREAD, obtained));
  assert_fails(GK_ERROR_INVALID, "a call before it failed: gk_bind: slot 1 (X)", gk_launch(graph, 0));
  BIND(graph, {X, on_device + 1}, {FLAG, on_device}); /* all memory that the device can touch, from any allocator */
  for (int k = 0; k < 2; ++k) { /* the end of a block has no bytes, whether the driver knows that address or not */
    BIND(graph, {TO, k ? page + 1 : on_device + 4});
    assert_fails(GK_ERROR_INVALID, "slot 4 (TO) has 0 bytes, and task 2 (TO = X) touches byte 3", gk_launch(graph, 0));
    assert_fails(GK_ERROR_INVALID, "slot 4 (TO)", gk_bind(graph, TO, k ? page + 2 : on_device + 5));
  }
  BIND(graph, {TO, page});
  run_to_end(graph, 0);
  assert_int_equal(*page, 8);
  free(obtained);
}

/* A device that reaches such memory (HMM, ATS) gets it. If it says so and doesn't, the context fails. */
CLEAN(test_memory_of_the_host_where_it_is_reached) {
  static const int tried[] = {X, FLAG, TO};
  for (size_t n = 0; n < GK_COUNT(tried); ++n) {
    sim->allow("pageable");
    gk_device *device = new_device("cuda", 0);
    gk_graph *graph = new_graph(device, &list, 0);
    int *on_device = ints_on(device, (const int[]){1, 1, 1}, 3);
    for (int k = X; k <= TO; ++k)
      if (k != BY) BIND(graph, {k, k == tried[n] ? of_host + k - 1 : on_device + k / 2});
    run_to_end(graph, 0);
    sim->allow(NULL);
    assert_int_equal(waited_for(graph, 0), GK_ERROR_DEVICE);
    assert_non_null(strstr(sim->first_broken(), "which is no memory of this device"));
    sim->forgive();
    discard_all();
  }
  assert_int_equal(of_host[X - 1], 8);
  assert_int_equal(of_host[TO - 1], 8);
}

/* ---- what opening a device asks for ------------------------------------------------------------------------------ */

static gki_cuda_driver right;
static int streams, unexpected; /* a failed assertion can't end the test within an entry */
static CUresult create_nothing(CUstream *stream, UNUSED unsigned int flags) {
  *stream = (CUstream)&streams; /* nothing to give back, as that failed */
  return CUDA_ERROR_UNKNOWN;
}
static CUresult alloc_nothing(void **memory, UNUSED size_t bytes, UNUSED unsigned int flags) {
  *memory = &streams; /* the same */
  return CUDA_ERROR_UNKNOWN;
}
static CUresult answered;
static CUresult say_attribute(UNUSED void *value, UNUSED CUpointer_attribute attribute, UNUSED CUdeviceptr memory) {
  return answered;
}
static CUdevice_attribute odd_attribute; /* has this value */
static int odd_value;
static CUresult say_odd(int *value, CUdevice_attribute attribute, CUdevice device) {
  const CUresult result = right.cuDeviceGetAttribute(value, attribute, device);
  if (attribute == odd_attribute) *value = odd_value;
  return result;
}
static CUresult create_stream(CUstream *stream, unsigned int flags) {
  ++streams;
  unexpected += flags != CU_STREAM_NON_BLOCKING; /* no wait for the default stream, or by it */
  return right.cuStreamCreate(stream, flags);
}

/* Contexts come and go while other code captures streams, which may forbid that to threads that aren't relaxed. */
static int changes;
static void expect_relaxed(void) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  unexpected += right.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS;
  unexpected += mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  ++changes;
}
static CUresult retain(CUcontext *context, CUdevice device) {
  expect_relaxed();
  return right.cuDevicePrimaryCtxRetain(context, device);
}
static CUresult release(CUdevice device) {
  expect_relaxed();
  return right.cuDevicePrimaryCtxRelease(device);
}

TEST_ON_CUDA(test_opened) {
  const gki_cuda_driver *found;
  const gk_device_desc desc = {.backend = "cuda"};
  gk_device *opened = NULL;
  assert_ok(gki_cuda_driver_get(&found));
  gki_cuda_driver *own = (gki_cuda_driver *)(uintptr_t)found; /* the library's, which isn't const */
  right = *own;
  own->cuDeviceGetAttribute = say_odd;
  odd_attribute = CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING;
  assert_fails(GK_ERROR_NO_DEVICE, "device 0 (simulated GPU 0) has no address space in common with the host, which gk",
               gk_device_open(&desc, &opened));
  *own = right;
  own->cuStreamCreate = create_nothing;
  assert_fails(GK_ERROR_DEVICE, "cuStreamCreate", gk_device_open(&desc, &opened));
  *own = right;
  own->version = 12040;
  own->cuDeviceGetAttribute = say_odd;
  odd_attribute = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
  odd_value = 9;
  assert_ok(gk_device_open(&desc, &opened));
  assert_int_equal(((gki_cuda_device *)opened->state)->arch % 10, 9);
  assert_string_equal(gk_device_describe(opened)->driver, "CUDA 12.4");
  own->cuMemHostAlloc = alloc_nothing;
  assert_null(gk_alloc(opened, 4, GK_HOST_MEMORY));
  own->cuPointerGetAttribute = say_attribute; /* one answer alone says that memory is the host's own */
  answered = CUDA_ERROR_UNKNOWN;
  assert_ok(gki_cuda_reaches(opened->state, &streams));
  answered = CUDA_ERROR_INVALID_VALUE;
  assert_int_equal(gki_cuda_reaches(opened->state, &streams), GK_ERROR_INVALID);
  *own = right;
  gk_device_close(opened);
  own->cuStreamCreate = create_stream;
  own->cuDevicePrimaryCtxRetain = retain;
  own->cuDevicePrimaryCtxRelease = release;
  assert_ok(gk_device_open(&desc, &opened));
  gk_device_close(opened);
  *own = right;
  assert_true(streams >= 2);
  assert_int_equal(changes, 2);
  assert_int_equal(unexpected, 0);
}

TEST_ON_CUDA(test_listed) {
  gk_device *first = new_device(NULL, 0), *again = new_device("cuda", 0);
  assert_string_equal(gk_device_describe(first)->backend, "cuda"); /* CUDA comes before OpenMP */
  discard(first);
  assert_int_equal(int_at(again, int_on(again, 4)), 4);
}

int main(UNUSED int count, char **words) { return run_on_simgpu(words); }
