/* Memory, and copies by streams. */
#include "sim_world.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void k_store(const unsigned char *p, unsigned long long threads) { /* address, value */
  (void)threads;
  touch(take_number(p, 0), 8);
  *(volatile uint64_t *)(uintptr_t)take_number(p, 0) = take_number(p, 1);
}

static void k_post(const unsigned char *p, unsigned long long threads) { /* there, the host's address of it, seen */
  (void)threads;
  volatile uint64_t *there = (uint64_t *)(uintptr_t)take_number(p, 0), *host = (uint64_t *)(uintptr_t)take_number(p, 1);
  *there = 5;
  *(volatile uint64_t *)(uintptr_t)take_number(p, 2) = *host;
}

/* Says that it runs, waits until the host says where, and stores there. */
static void k_store_later(const unsigned char *p, unsigned long long threads) { /* running and where, value */
  (void)threads;
  uint64_t *said = (uint64_t *)(uintptr_t)take_number(p, 0), at;
  __atomic_store_n(&said[0], 1, __ATOMIC_RELEASE);
  while ((at = __atomic_load_n(&said[1], __ATOMIC_ACQUIRE)) == 0) sched_yield();
  *(volatile uint64_t *)(uintptr_t)at = take_number(p, 1);
}

static const sim_stub_kernel kernels[] = {
  {"store", k_store, {8, 8}}, {"post", k_post, {8, 8, 8}}, {"store_later", k_store_later, {8, 8}}, {0}};

static CUdeviceptr memory;
static uint64_t *pinned;

static int begin(void **state) {
  (void)state;
  open_context(kernels);
  RIGHT(cu.cuMemAlloc(&memory, 64));
  RIGHT(cu.cuMemHostAlloc((void **)&pinned, 64, GKI_CU_MEMHOSTALLOC_PORTABLE));
  sim->mark();
  return 0;
}

static int end(void **state) {
  cu.cuMemFree(memory);
  cu.cuMemFreeHost(pinned);
  return close_context(state);
}

static void store(CUdeviceptr at, uint64_t value) {
  void *parameters[] = {&at, &value};
  RIGHT(cu.cuLaunchKernel(kernel("store"), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

#define CASE(test) TEST_WITH(test, begin, end)

CASE(copies_follow_each_other) {
  pinned[0] = 5;
  RIGHT(cu.cuMemcpyHtoDAsync(memory, pinned, 8, stream));
  RIGHT(cu.cuMemcpyDtoDAsync(memory + 8, memory, 8, stream));
  RIGHT(cu.cuMemsetD8Async(memory, 1, 8, stream));
  RIGHT(cu.cuMemcpyDtoHAsync(pinned, memory, 16, stream));
  RIGHT(cu.cuMemcpyHtoDAsync(memory, pinned, 0, stream));
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_int_equal(pinned[0], UINT64_C(0x0101010101010101));
  assert_int_equal(pinned[1], 5);
  assert_int_equal(sim->counts().copies, 4);
  assert_int_equal(sim->counts().pageable, 0);
}

CASE(pinned_source_is_read_when_its_turn_comes) {
  sim->hold(1);
  pinned[0] = 1;
  RIGHT(cu.cuMemcpyHtoDAsync(memory, pinned, 8, stream));
  RIGHT(cu.cuMemcpyDtoHAsync(pinned + 1, memory, 8, stream));
  pinned[0] = 2;
  sim->hold(0);
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_int_equal(pinned[1], 2);
}

CASE(pageable_copies_are_counted) {
  uint64_t here = 7;
  sim->hold(1);
  RIGHT(cu.cuMemcpyHtoDAsync(memory, &here, 8, stream));
  here = 8; /* was read already */
  assert_int_equal(sim->counts().pageable, 1);
  assert_int_equal(sim->counts().waits, 0);
  sim->hold(0);
  RIGHT(cu.cuMemcpyDtoHAsync(&here, memory, 8, stream));
  assert_int_equal(here, 7); /* is there already */
  assert_int_equal(sim->counts().pageable, 2);
  assert_int_equal(sim->counts().waits, 1);
}

CASE(new_memory_holds_rubbish) {
  CUdeviceptr large;
  RIGHT(cu.cuMemAlloc(&large, 5 << 20));
  RIGHT(cu.cuMemcpyDtoHAsync(pinned, large + (5 << 20) - 8, 8, stream));
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_int_equal(pinned[0], UINT64_C(0xa7a7a7a7a7a7a7a7));
  RIGHT(cu.cuMemFree(large));
}

CASE(copies_stay_in_their_block) {
  RIGHT(cu.cuMemcpyDtoHAsync(pinned, memory, 64, stream));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyDtoHAsync(pinned, memory, 65, stream));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemsetD8Async(memory + 64, 0, 1, stream));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyHtoDAsync(memory - 1, pinned, 8, stream));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyDtoDAsync(memory, 4096, 8, stream));
}

CASE(memory_of_the_driver_is_known) {
  unsigned type = 0;
  uint64_t here;
  const CUpointer_attribute what = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  CUdeviceptr managed;
  RIGHT(cu.cuPointerGetAttribute(&type, what, memory + 63));
  assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
  RIGHT(cu.cuPointerGetAttribute(&type, what, (CUdeviceptr)(uintptr_t)(pinned + 1)));
  assert_int_equal(type, CU_MEMORYTYPE_HOST);
  RIGHT(cu.cuMemAllocManaged(&managed, 8, CU_MEM_ATTACH_GLOBAL));
  RIGHT(cu.cuPointerGetAttribute(&type, what, managed));
  RIGHT(cu.cuMemFree(managed));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuPointerGetAttribute(&type, what, managed));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuPointerGetAttribute(&type, what, (CUdeviceptr)(uintptr_t)&here));
  int value = -1;
  RIGHT(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0));
  assert_int_equal(value, 0);
  sim->allow("pageable");
  RIGHT(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0));
  sim->allow(NULL);
  assert_int_equal(value, 1);
}

CASE(kernel_reaches_pinned_and_managed_memory) {
  CUdeviceptr at, managed;
  RIGHT(cu.cuMemHostGetDevicePointer(&at, pinned + 1, 0));
  store(at, 11);
  RIGHT(cu.cuMemAllocManaged(&managed, 8, CU_MEM_ATTACH_GLOBAL));
  store(managed, 12);
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_int_equal(pinned[1], 11);
  assert_int_equal(*(uint64_t *)(uintptr_t)managed, 12);
  RIGHT(cu.cuMemFree(managed));
  sim->answer_no("managed");
  WRONG(CUDA_ERROR_NOT_SUPPORTED, cu.cuMemAllocManaged(&managed, 8, CU_MEM_ATTACH_GLOBAL));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemHostGetDevicePointer(&at, &at, 0));
}

CASE(what_is_posted_may_be_seen_late) {
  for (int no = 0; no < 2; ++no) {
    sim->answer_no(no ? "P13" : NULL);
    uint64_t *post, seen = 0;
    RIGHT(cu.cuMemHostAlloc((void **)&post, 20, GKI_CU_MEMHOSTALLOC_DEVICEMAP));
    CUdeviceptr at, to = (CUdeviceptr)(uintptr_t)pinned;
    uint64_t host = (uint64_t)(uintptr_t)(post + 1);
    RIGHT(cu.cuMemHostGetDevicePointer(&at, post + 1, 0));
    assert_int_equal(at != host, no);
    void *parameters[] = {&at, &host, &to};
    post[0] = post[1] = 3;
    RIGHT(cu.cuLaunchKernel(kernel("post"), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    RIGHT(cu.cuStreamSynchronize(stream));
    seen = pinned[0];
    assert_int_equal(seen, no ? 3 : 5); /* while the kernel ran */
    assert_int_equal(post[1], 5);
    assert_int_equal(post[0], 3);
    RIGHT(cu.cuMemFreeHost(post));
  }
}

/* The context has failed for good; all that it holds can still be given back. */
static void expect_failed(const char *why) {
  CUdeviceptr more;
  WRONG(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
  expect_broken("memory");
  expect_refused(why);
  WRONG(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemAlloc(&more, 8));
  WRONG(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamQuery(stream));
}

CASE(kernel_touches_freed_memory) {
  CUdeviceptr gone;
  RIGHT(cu.cuMemAlloc(&gone, 128));
  RIGHT(cu.cuMemFree(gone));
  store(gone + 16, 1);
  expect_failed("16 bytes into 128 bytes that were freed");
}

CASE(kernel_touches_what_is_behind) {
  store(memory + 256, 1);
  expect_failed("192 bytes behind 64 bytes of device memory");
}

CASE(kernel_touches_nothing) {
  store(8, 1);
  expect_failed("no memory of this device");
}

/* Memory of the host that isn't page-locked, the last bytes of a store in it, too. */
CASE(kernel_touches_pageable_memory) {
  uint64_t *obtained = malloc(2 * sizeof *obtained);
  obtained[0] = 3;
  sim->allow("pageable");
  store((CUdeviceptr)(uintptr_t)obtained, 4);
  RIGHT(cu.cuStreamSynchronize(stream));
  sim->allow(NULL);
  assert_int_equal(obtained[0], 4);
  store((CUdeviceptr)(uintptr_t)(pinned + 7), 5); /* up to the end */
  RIGHT(cu.cuStreamSynchronize(stream));
  store((CUdeviceptr)(uintptr_t)obtained, 6);
  expect_failed("no memory of this device");
  assert_int_equal(obtained[0], 4);
  free(obtained);
}

CASE(kernel_touches_what_is_behind_pinned_memory) {
  store((CUdeviceptr)(uintptr_t)pinned + 60, 1);
  expect_failed("no memory of this device");
}

CASE(work_behind_a_failure_is_dropped) {
  pinned[0] = 0;
  sim->hold(1);
  store(8, 1);
  store((CUdeviceptr)(uintptr_t)pinned, 1);
  sim->hold(0);
  expect_failed("kernel store");
  assert_int_equal(pinned[0], 0);
}

/* It closes when there is no work left, which needn't be after each item. */
CASE(host_touches_device_memory) {
  sim->hold(1);
  store(memory, 1);
  store(memory, 1);
  sim->hold(0);
  RIGHT(cu.cuStreamSynchronize(stream));
  int child = fork(), status = 0;
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    close(STDERR_FILENO); /* a sanitizer reports the signal there */
    _exit(*(volatile char *)(uintptr_t)memory == 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* ---- two contexts on one device: the kernels of either reach its own memory, whatever ran before them ---- */

static struct {
  CUcontext context;
  CUstream stream;
  CUmodule module;
  CUdeviceptr memory;
  uint64_t *pinned;
} other;

/* It is current from then on. */
static int begin_two(void **state) {
  begin(state);
  RIGHT(cu.cuCtxCreate(&other.context, 0, 0));
  RIGHT(cu.cuStreamCreate(&other.stream, CU_STREAM_NON_BLOCKING));
  const sim_stub_image image = {"simstub", kernels};
  RIGHT(cu.cuModuleLoadDataEx(&other.module, &image, 0, NULL, NULL));
  RIGHT(cu.cuMemAlloc(&other.memory, 64));
  RIGHT(cu.cuMemHostAlloc((void **)&other.pinned, 64, GKI_CU_MEMHOSTALLOC_PORTABLE));
  memset(other.pinned, 0, 64);
  return 0;
}

/* The other one may have failed. */
static int end_two(void **state) {
  cu.cuMemFree(other.memory);
  cu.cuMemFreeHost(other.pinned);
  cu.cuModuleUnload(other.module);
  cu.cuStreamDestroy(other.stream);
  RIGHT(cu.cuCtxDestroy(other.context));
  return end(state);
}

static void other_launches(const char *name, uint64_t first, uint64_t second) {
  CUfunction function = NULL;
  void *parameters[] = {&first, &second};
  RIGHT(cu.cuModuleGetFunction(&function, other.module, name));
  RIGHT(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, other.stream, parameters, NULL));
}

/* A kernel of the other context that runs by then. */
static void other_begins(uint64_t value) {
  other.pinned[0] = other.pinned[1] = 0;
  other_launches("store_later", (uint64_t)(uintptr_t)other.pinned, value);
  while (!__atomic_load_n(&other.pinned[0], __ATOMIC_ACQUIRE)) sched_yield();
}

static void other_goes_on(CUdeviceptr at) { __atomic_store_n(&other.pinned[1], at, __ATOMIC_RELEASE); }

static uint64_t other_stored(CUdeviceptr at) {
  RIGHT(cu.cuMemcpyDtoHAsync(other.pinned + 2, at, 8, other.stream));
  RIGHT(cu.cuStreamSynchronize(other.stream));
  return other.pinned[2];
}

static uint64_t stored(CUdeviceptr at) {
  RIGHT(cu.cuMemcpyDtoHAsync(pinned, at, 8, stream));
  RIGHT(cu.cuStreamSynchronize(stream));
  return pinned[0];
}

static void expect_other_failed(void) {
  WRONG(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(other.stream));
  expect_broken("memory");
  expect_refused("of another context");
}

/* The first one's item is queued while the other's runs, so that the device has work all the time. */
TEST_WITH(two_contexts_take_turns, begin_two, end_two) {
  for (uint64_t turn = 1; turn <= 10; ++turn) {
    other_begins(turn);
    RIGHT(cu.cuCtxPushCurrent(context));
    store(memory, turn);
    other_goes_on(other.memory);
    assert_int_equal(stored(memory), turn);
    RIGHT(cu.cuCtxPopCurrent(NULL));
    assert_int_equal(other_stored(other.memory), turn);
  }
}

/* Likewise, but of one that mustn't: what was open a moment ago is closed to it. */
TEST_WITH(kernel_touches_what_another_context_had_open, begin_two, end_two) {
  uint64_t said = (uint64_t)(uintptr_t)pinned, value = 1;
  void *parameters[] = {&said, &value};
  memset(pinned, 0, 16);
  RIGHT(cu.cuCtxPushCurrent(context));
  RIGHT(cu.cuLaunchKernel(kernel("store_later"), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
  RIGHT(cu.cuCtxPopCurrent(NULL));
  while (!__atomic_load_n(&pinned[0], __ATOMIC_ACQUIRE)) sched_yield();
  other_launches("store", memory, 2);
  __atomic_store_n(&pinned[1], memory, __ATOMIC_RELEASE);
  expect_other_failed();
  RIGHT(cu.cuCtxPushCurrent(context)); /* which goes on */
  assert_int_equal(stored(memory), 1);
  RIGHT(cu.cuCtxPopCurrent(NULL));
}

/* What is taken while an item runs is open to it if it is its context's, and else closed. */
TEST_WITH(memory_is_taken_while_a_kernel_runs, begin_two, end_two) {
  CUdeviceptr own, foreign;
  other_begins(5);
  RIGHT(cu.cuMemAlloc(&own, 8));
  other_goes_on(own);
  assert_int_equal(other_stored(own), 5);
  RIGHT(cu.cuMemFree(own));
  other_begins(6);
  RIGHT(cu.cuCtxPushCurrent(context));
  RIGHT(cu.cuMemAlloc(&foreign, 8));
  other_goes_on(foreign);
  store(foreign, 7); /* behind it */
  assert_int_equal(stored(foreign), 7);
  RIGHT(cu.cuMemFree(foreign));
  RIGHT(cu.cuCtxPopCurrent(NULL));
  expect_other_failed();
}

CASE(memory_runs_out) {
  CUdeviceptr more;
  size_t bytes;
  RIGHT(cu.cuDeviceTotalMem(&bytes, 0));
  WRONG(CUDA_ERROR_OUT_OF_MEMORY, cu.cuMemAlloc(&more, bytes));
  RIGHT(cu.cuMemAlloc(&more, bytes - 64));
  RIGHT(cu.cuMemFree(more));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemAlloc(&more, 0));
}

CASE(memory_that_is_left) {
  CUdeviceptr more;
  size_t bytes, before, left, all;
  RIGHT(cu.cuDeviceTotalMem(&bytes, 0));
  RIGHT(cu.cuMemGetInfo(&before, &all));
  assert_int_equal(all, bytes);
  RIGHT(cu.cuMemAlloc(&more, 1000));
  RIGHT(cu.cuMemGetInfo(&left, &all));
  assert_int_equal(left, before - 1000);
  RIGHT(cu.cuMemFree(more));
  RIGHT(cu.cuMemGetInfo(&left, &all));
  assert_int_equal(left, before);
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemGetInfo(NULL, &all));
}

CASE(memory_is_given_back_once) {
  CUdeviceptr more;
  RIGHT(cu.cuMemFree(0));
  RIGHT(cu.cuMemFreeHost(NULL));
  RIGHT(cu.cuMemAlloc(&more, 8));
  RIGHT(cu.cuMemFree(more));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree(more));
  expect_broken("free");
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree(memory + 8));
  expect_broken("free");
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree((CUdeviceptr)(uintptr_t)pinned));
  expect_broken("free");
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemFreeHost((void *)(uintptr_t)memory));
  expect_broken("free");
}

CASE(free_waits_for_what_is_under_way) {
  CUdeviceptr more;
  RIGHT(cu.cuMemAlloc(&more, 8));
  for (int k = 0; k < 100; ++k) store(more, 1);
  RIGHT(cu.cuMemFree(more));
  RIGHT(cu.cuStreamQuery(stream));
  assert_true(sim->counts().waits > 0);
}

CASE(what_is_alive_is_counted) {
  assert_int_equal(sim->alive(SIMGPU_MEMORY), 1);
  assert_int_equal(sim->alive(SIMGPU_PINNED), 1);
  assert_int_equal(sim->alive(SIMGPU_STREAMS), 1);
  assert_int_equal(sim->alive(SIMGPU_MODULES), 1);
  assert_int_equal(sim->alive(SIMGPU_RETAINS), 1);
  assert_int_equal(sim->alive(SIMGPU_ALL), 5);
}

static void begin_again(void) {
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  load_module(kernels);
  RIGHT(cu.cuMemAlloc(&memory, 64));
  RIGHT(cu.cuMemHostAlloc((void **)&pinned, 64, GKI_CU_MEMHOSTALLOC_PORTABLE));
}

/* The caller's own pages, which stay that when the context is reset. */
CASE(registered_memory) {
  enum { PAGE = 4096 };
  CUdeviceptr at = 0;
  CUresult (*reset)(CUdevice device);
  int active = 1;
  unsigned flags;
  unsigned char *pages = aligned_alloc(PAGE, 2 * PAGE);
  RIGHT(cu.cuMemHostRegister(pages, 2 * PAGE, 3));
  WRONG(712, cu.cuMemHostRegister(pages + PAGE, PAGE, 3));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemHostRegister(pages + 8, PAGE, 3));
  RIGHT(cu.cuMemHostGetDevicePointer(&at, pages + 8, 0));
  assert_int_equal(at, (uintptr_t)pages + 8);
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemFreeHost(pages));
  expect_broken("free");
  RIGHT(cu.cuMemHostUnregister(pages));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemHostUnregister(pages));
  expect_broken("free");
  unsigned char *mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(mapped, MAP_FAILED);
  RIGHT(cu.cuMemHostRegister(mapped, PAGE, 3));
  assert_int_equal(munmap(mapped, PAGE), 0);
  RIGHT(cu.cuMemHostUnregister(mapped));
  expect_broken("free");
  RIGHT(cu.cuMemHostRegister(pages, PAGE, 3));
  load("cuDevicePrimaryCtxReset", 11000, &reset);
  RIGHT(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
  assert_int_equal(active, 1);
  RIGHT(reset(0));
  RIGHT(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
  assert_int_equal(active, 0);
  memset(pages, 1, PAGE);
  WRONG(CUDA_ERROR_CONTEXT_IS_DESTROYED, cu.cuStreamQuery(stream)); /* before its handle is looked at */
  WRONG(CUDA_ERROR_INVALID_HANDLE, cu.cuStreamDestroy(stream));
  expect_broken("destroyed");
  assert_int_equal(sim->alive(SIMGPU_STREAMS), 0);
  RIGHT(cu.cuDevicePrimaryCtxRetain(&context, 0)); /* begins anew */
  RIGHT(cu.cuDevicePrimaryCtxRelease(0));
  begin_again();
  free(pages);
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
