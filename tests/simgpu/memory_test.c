/* Memory, and copies by streams. */
#include "sim_world.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void store_at(uint64_t at, uint64_t value) { *(volatile uint64_t *)POINTER(uint64_t, at) = value; }

static void k_store(const unsigned char *p, UNUSED unsigned long long threads) { /* address, value */
  touch(take_number(p, 0), 8);
  store_at(take_number(p, 0), take_number(p, 1));
}

/* An address of the device, the host's address of the same memory, where the kernel writes what it sees there. */
static void k_post(const unsigned char *p, UNUSED unsigned long long threads) {
  store_at(take_number(p, 0), 5);
  store_at(take_number(p, 2), *(volatile uint64_t *)POINTER(uint64_t, take_number(p, 1)));
}

/* Two words and a value: says in the first word that it runs, waits for an address in the second, and stores there. */
static void k_store_later(const unsigned char *p, UNUSED unsigned long long threads) {
  uint64_t *said = POINTER(uint64_t, take_number(p, 0)), at;
  __atomic_store_n(&said[0], 1, __ATOMIC_RELEASE);
  while ((at = __atomic_load_n(&said[1], __ATOMIC_ACQUIRE)) == 0) sched_yield();
  store_at(at, take_number(p, 1));
}

static const sim_stub_kernel table[] = {
  {"store", k_store, {8, 8}}, {"post", k_post, {8, 8, 8}}, {"store_later", k_store_later, {8, 8}}, {0}};
static const sim_stub_image kernels = {"simstub", table};

static CUdeviceptr memory;
static uint64_t *pinned;

static CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr at = 0;
  RIGHT(cu.cuMemAlloc(&at, bytes));
  return at;
}

static CUdeviceptr allocate_managed(void) {
  CUdeviceptr at = 0;
  RIGHT(cu.cuMemAllocManaged(&at, 8, CU_MEM_ATTACH_GLOBAL));
  return at;
}

static uint64_t *pin(void) {
  void *at = NULL;
  RIGHT(cu.cuMemHostAlloc(&at, 64, GKI_CU_MEMHOSTALLOC_PORTABLE));
  return memset(at, 0, 64);
}

static int begin(UNUSED void **state) {
  open_context(&kernels);
  memory = allocate(64);
  pinned = pin();
  sim->mark();
  return 0;
}

static int end(void **state) {
  cu.cuMemFree(memory);
  cu.cuMemFreeHost(pinned);
  return close_context(state);
}

static void wait_here(void) { RIGHT(cu.cuStreamSynchronize(stream)); }
static void store(CUdeviceptr at, uint64_t value) { RIGHT(LAUNCH(stream, "store", at, value)); }

#define CASE(test) TEST_WITH(test, begin, end)

CASE(copies_follow_each_other) {
  pinned[0] = 5;
  RIGHT(cu.cuMemcpyHtoDAsync(memory, pinned, 8, stream));
  RIGHT(cu.cuMemcpyDtoDAsync(memory + 8, memory, 8, stream));
  RIGHT(cu.cuMemsetD8Async(memory, 1, 8, stream));
  RIGHT(cu.cuMemcpyDtoHAsync(pinned, memory, 16, stream));
  RIGHT(cu.cuMemcpyHtoDAsync(memory, pinned, 0, stream));
  wait_here();
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
  wait_here();
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
  CUdeviceptr large = allocate(5 << 20);
  RIGHT(cu.cuMemcpyDtoHAsync(pinned, large + (5 << 20) - 8, 8, stream));
  wait_here();
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

static int pageable_access(void) {
  int value = -1;
  RIGHT(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0));
  return value;
}

CASE(memory_of_the_driver_is_known) {
  unsigned type = 0;
  const CUpointer_attribute what = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  RIGHT(cu.cuPointerGetAttribute(&type, what, memory + 63));
  assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
  RIGHT(cu.cuPointerGetAttribute(&type, what, AT(pinned + 1)));
  assert_int_equal(type, CU_MEMORYTYPE_HOST);
  CUdeviceptr managed = allocate_managed();
  RIGHT(cu.cuPointerGetAttribute(&type, what, managed));
  RIGHT(cu.cuMemFree(managed));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuPointerGetAttribute(&type, what, managed));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuPointerGetAttribute(&type, what, AT(&type)));
  assert_int_equal(pageable_access(), 0);
  sim->allow("pageable");
  assert_int_equal(pageable_access(), 1);
}

CASE(kernel_reaches_pinned_and_managed_memory) {
  CUdeviceptr at, managed = allocate_managed();
  RIGHT(cu.cuMemHostGetDevicePointer(&at, pinned + 1, 0));
  store(at, 11);
  store(managed, 12);
  wait_here();
  assert_int_equal(pinned[1], 11);
  assert_int_equal(*POINTER(uint64_t, managed), 12);
  RIGHT(cu.cuMemFree(managed));
  sim->answer_no("managed");
  WRONG(CUDA_ERROR_NOT_SUPPORTED, cu.cuMemAllocManaged(&managed, 8, CU_MEM_ATTACH_GLOBAL));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemHostGetDevicePointer(&at, &at, 0));
}

CASE(posted_values_may_be_seen_late) {
  for (int no = 0; no < 2; ++no) {
    sim->answer_no(no ? "P13" : NULL);
    uint64_t *post;
    CUdeviceptr at;
    RIGHT(cu.cuMemHostAlloc((void **)&post, 20, GKI_CU_MEMHOSTALLOC_DEVICEMAP));
    RIGHT(cu.cuMemHostGetDevicePointer(&at, post + 1, 0));
    assert_int_equal(at != AT(post + 1), no);
    post[0] = post[1] = 3;
    RIGHT(LAUNCH(stream, "post", at, AT(post + 1), AT(pinned)));
    wait_here();
    assert_int_equal(pinned[0], no ? 3 : 5); /* while the kernel ran */
    assert_int_equal(post[1], 5);
    assert_int_equal(post[0], 3);
    RIGHT(cu.cuMemFreeHost(post));
  }
}

/* The context has failed for good; its objects can still be given back. */
static void expect_failed(const char *why) {
  CUdeviceptr more;
  BREAKS(CUDA_ERROR_ILLEGAL_ADDRESS, "memory", cu.cuStreamSynchronize(stream));
  expect_refused(why);
  WRONG(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemAlloc(&more, 8));
  WRONG(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamQuery(stream));
}

CASE(kernel_touches_freed_memory) {
  CUdeviceptr gone = allocate(128);
  RIGHT(cu.cuMemFree(gone));
  store(gone + 16, 1);
  expect_failed("16 bytes into 128 bytes that were freed");
}

/* Behind a block of the device, at no memory, and behind the page-locked memory of the host. */
CASE(kernel_touches_no_memory) {
  for (int k = 0; k < 3; ++k) {
    store((CUdeviceptr[]){memory + 256, 8, AT(pinned) + 60}[k], 1);
    expect_failed(k == 0 ? "192 bytes behind 64 bytes of device memory" : "no memory of this device");
    end(state);
    begin(state);
  }
}

/* Memory of the host that isn't page-locked, the last bytes of a store in it, too. */
CASE(kernel_touches_pageable_memory) {
  uint64_t *obtained = malloc(2 * sizeof *obtained);
  obtained[0] = 3;
  sim->allow("pageable");
  store(AT(obtained), 4);
  wait_here();
  sim->allow(NULL);
  assert_int_equal(obtained[0], 4);
  store(AT(pinned + 7), 5); /* up to the end */
  wait_here();
  store(AT(obtained), 6);
  expect_failed("no memory of this device");
  assert_int_equal(obtained[0], 4);
  free(obtained);
}

CASE(work_behind_a_failure_is_dropped) {
  sim->hold(1);
  store(8, 1);
  store(AT(pinned), 1);
  sim->hold(0);
  expect_failed("kernel store");
  assert_int_equal(pinned[0], 0);
}

/* Device memory closes when there is no work left, which isn't after each item. */
CASE(host_touches_device_memory) {
  sim->hold(1);
  store(memory, 1);
  store(memory, 1);
  sim->hold(0);
  wait_here();
  int child = fork(), status = 0;
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    close(STDERR_FILENO); /* a sanitizer reports the signal there */
    _exit(*POINTER(volatile char, memory) == 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* ---- two contexts on one device: the kernels of either reach their own memory, in any order of contexts -- */

typedef struct side { CUcontext context; CUstream stream; CUmodule module; CUdeviceptr memory; uint64_t *pinned; } side;
static side other;

static void swap_sides(void) {
  const side now = {context, stream, module, memory, pinned};
  context = other.context;
  stream = other.stream;
  module = other.module;
  memory = other.memory;
  pinned = other.pinned;
  other = now;
}

static void to_first(void) {
  RIGHT(cu.cuCtxPushCurrent(other.context));
  swap_sides();
}

static void to_second(void) {
  RIGHT(cu.cuCtxPopCurrent(NULL));
  swap_sides();
}

static void fill_context(void) {
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  load_module(&kernels);
  memory = allocate(64);
  pinned = pin();
}

/* The second one is current from then on. */
static int begin_two(void **state) {
  begin(state);
  swap_sides();
  RIGHT(cu.cuCtxCreate(&context, 0, 0));
  fill_context();
  return 0;
}

/* The second one may have failed. */
static int end_two(void **state) {
  cu.cuMemFree(memory);
  cu.cuMemFreeHost(pinned);
  cu.cuModuleUnload(module);
  cu.cuStreamDestroy(stream);
  RIGHT(cu.cuCtxDestroy(context));
  swap_sides();
  return end(state);
}

/* A kernel that runs until go_on tells it where it stores the value. */
static void begin_later(uint64_t value) {
  pinned[0] = pinned[1] = 0;
  RIGHT(LAUNCH(stream, "store_later", AT(pinned), value));
  while (!__atomic_load_n(&pinned[0], __ATOMIC_ACQUIRE)) sched_yield();
}

static void go_on(uint64_t *said, CUdeviceptr at) { __atomic_store_n(&said[1], at, __ATOMIC_RELEASE); }

static uint64_t stored(CUdeviceptr at) {
  RIGHT(cu.cuMemcpyDtoHAsync(pinned + 2, at, 8, stream));
  wait_here();
  return pinned[2];
}

static void expect_second_failed(void) {
  BREAKS(CUDA_ERROR_ILLEGAL_ADDRESS, "memory", cu.cuStreamSynchronize(stream));
  expect_refused("of another context");
}

#define TWO_CONTEXTS(test) TEST_WITH(test, begin_two, end_two)

/* The first one's item is queued while the second's runs, so that the device has work all the time. */
TWO_CONTEXTS(two_contexts_take_turns) {
  for (uint64_t turn = 1; turn <= 10; ++turn) {
    begin_later(turn);
    to_first();
    store(memory, turn);
    go_on(other.pinned, other.memory);
    assert_int_equal(stored(memory), turn);
    to_second();
    assert_int_equal(stored(memory), turn);
  }
}

/* Likewise, but the second one must not: the memory that was open a moment ago is closed to it. */
TWO_CONTEXTS(kernel_touches_what_another_context_had_open) {
  to_first();
  begin_later(1);
  to_second();
  store(other.memory, 2);
  go_on(other.pinned, other.memory);
  expect_second_failed();
  to_first(); /* which goes on */
  assert_int_equal(stored(memory), 1);
  to_second();
}

/* Memory that is allocated while an item runs is open to the item if its context is the same, and else closed. */
TWO_CONTEXTS(memory_is_allocated_while_a_kernel_runs) {
  begin_later(5);
  CUdeviceptr own = allocate(8);
  go_on(pinned, own);
  assert_int_equal(stored(own), 5);
  RIGHT(cu.cuMemFree(own));
  begin_later(6);
  to_first();
  CUdeviceptr foreign = allocate(8);
  go_on(other.pinned, foreign);
  store(foreign, 7); /* behind it */
  assert_int_equal(stored(foreign), 7);
  RIGHT(cu.cuMemFree(foreign));
  to_second();
  expect_second_failed();
}

/* ---- blocks ---- */

CASE(memory_runs_out) {
  CUdeviceptr more;
  size_t bytes;
  RIGHT(cu.cuDeviceTotalMem(&bytes, 0));
  WRONG(CUDA_ERROR_OUT_OF_MEMORY, cu.cuMemAlloc(&more, bytes));
  RIGHT(cu.cuMemFree(allocate(bytes - 64)));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemAlloc(&more, 0));
}

static size_t memory_left(void) {
  size_t bytes, left, all;
  RIGHT(cu.cuDeviceTotalMem(&bytes, 0));
  RIGHT(cu.cuMemGetInfo(&left, &all));
  assert_int_equal(all, bytes);
  return left;
}

CASE(memory_that_is_left) {
  size_t before = memory_left(), all;
  CUdeviceptr more = allocate(1000);
  assert_int_equal(memory_left(), before - 1000);
  RIGHT(cu.cuMemFree(more));
  assert_int_equal(memory_left(), before);
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemGetInfo(NULL, &all));
}

CASE(memory_is_given_back_once) {
  RIGHT(cu.cuMemFree(0));
  RIGHT(cu.cuMemFreeHost(NULL));
  CUdeviceptr more = allocate(8);
  RIGHT(cu.cuMemFree(more));
  BREAKS(CUDA_ERROR_INVALID_VALUE, "free", cu.cuMemFree(more));
  BREAKS(CUDA_ERROR_INVALID_VALUE, "free", cu.cuMemFree(memory + 8));
  BREAKS(CUDA_ERROR_INVALID_VALUE, "free", cu.cuMemFree(AT(pinned)));
  BREAKS(CUDA_ERROR_INVALID_VALUE, "free", cu.cuMemFreeHost(POINTER(void, memory)));
}

CASE(free_waits_for_all_work) {
  CUdeviceptr more = allocate(8);
  for (int k = 0; k < 100; ++k) store(more, 1);
  RIGHT(cu.cuMemFree(more));
  RIGHT(cu.cuStreamQuery(stream));
  assert_true(sim->counts().waits > 0);
}

CASE(objects_alive_are_counted) {
  static const simgpu_kind kinds[] = {SIMGPU_MEMORY, SIMGPU_PINNED, SIMGPU_STREAMS, SIMGPU_MODULES, SIMGPU_RETAINS};
  for (int k = 0; k < 5; ++k) assert_int_equal(sim->alive(kinds[k]), 1);
  assert_int_equal(sim->alive(SIMGPU_ALL), 5);
}

static void expect_active(int wanted) {
  int active = -1;
  unsigned flags;
  RIGHT(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
  assert_int_equal(active, wanted);
}

/* The caller's own pages, which stay the caller's when the context is reset. */
CASE(registered_memory) {
  enum { PAGE = 4096 };
  CUdeviceptr at = 0;
  CUresult (*reset)(CUdevice device);
  unsigned char *pages = aligned_alloc(PAGE, 2 * PAGE);
  RIGHT(cu.cuMemHostRegister(pages, 2 * PAGE, 3));
  WRONG(712, cu.cuMemHostRegister(pages + PAGE, PAGE, 3));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuMemHostRegister(pages + 8, PAGE, 3));
  RIGHT(cu.cuMemHostGetDevicePointer(&at, pages + 8, 0));
  assert_int_equal(at, (uintptr_t)pages + 8);
  BREAKS(CUDA_ERROR_INVALID_VALUE, "free", cu.cuMemFreeHost(pages));
  RIGHT(cu.cuMemHostUnregister(pages));
  BREAKS(CUDA_ERROR_INVALID_VALUE, "free", cu.cuMemHostUnregister(pages));
  /* Far below where the system puts what threads map, so that nothing comes there after the munmap. */
  void *const low = (void *)0x40000000;
  unsigned char *mapped = mmap(low, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(mapped, MAP_FAILED);
  RIGHT(cu.cuMemHostRegister(mapped, PAGE, 3));
  assert_int_equal(munmap(mapped, PAGE), 0);
  BREAKS(CUDA_SUCCESS, "free", cu.cuMemHostUnregister(mapped));
  RIGHT(cu.cuMemHostRegister(pages, PAGE, 3));
  load("cuDevicePrimaryCtxReset", 11000, &reset);
  expect_active(1);
  RIGHT(reset(0));
  expect_active(0);
  memset(pages, 1, PAGE);
  WRONG(CUDA_ERROR_CONTEXT_IS_DESTROYED, cu.cuStreamQuery(stream)); /* before its handle is looked at */
  BREAKS(CUDA_ERROR_INVALID_HANDLE, "destroyed", cu.cuStreamDestroy(stream));
  assert_int_equal(sim->alive(SIMGPU_STREAMS), 0);
  RIGHT(cu.cuDevicePrimaryCtxRetain(&context, 0)); /* begins again */
  RIGHT(cu.cuDevicePrimaryCtxRelease(0));
  fill_context();
  free(pages);
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
