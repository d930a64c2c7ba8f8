/* Memory. A device's memory has addresses of its own, which are closed. The memory of the context whose work the device
 * runs is open until the device runs another context's work or has no work. Freed memory stays closed for ever. */
#include "sim.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t RANGE = (size_t)1 << 38; /* addresses per device */
static const size_t FILLED = (size_t)1 << 20; /* bytes at both ends of new memory that are filled with rubbish */
enum { PAGE = 4096, ALIGNMENT = 256, RUBBISH = 0xA7 };

/* ---- touching memory that is closed  */

static _Thread_local sigjmp_buf *leave SIM_FAST_PER_THREAD; /* of the work that this thread guards */
/* Whose memory it may touch; NULL: it has pageable memory, too. */
static _Thread_local const sim_context *guarded SIM_FAST_PER_THREAD;
static _Thread_local volatile uintptr_t touched SIM_FAST_PER_THREAD;
static struct sigaction before_segv, before_bus;

/* Of each load and store of a kernel, so without the sanitizers' own checks. */
__attribute__((no_sanitize("address", "undefined")))
static bool is_device_memory(uintptr_t at) {
  for (int k = 0; k < sim_device_count; ++k)
    if (sim_devices[k].range && at - (uintptr_t)sim_devices[k].range < RANGE) return true;
  return false;
}

static void on_fault(int number, siginfo_t *info, void *state) {
  (void)state;
  uintptr_t at = (uintptr_t)info->si_addr;
  if (leave) {
    touched = at;
    siglongjmp(*leave, 1);
  }
  if (is_device_memory(at)) {
    static const char text[] = "simgpu: broken rule: host: the host touched device memory\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
  }
  /* The handler before this one is called when the instruction is tried again. */
  sigaction(number, number == SIGSEGV ? &before_segv : &before_bus, NULL);
}

static void watch(int number, struct sigaction *before) {
  struct sigaction mine = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK}, now;
  sigaction(number, NULL, &now);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) return;
  *before = now;
  sigaction(number, &mine, NULL);
}

bool sim_guarded(sim_device *device, void (*work)(void *data), void *data, uintptr_t *at) {
  sigjmp_buf here;
  guarded = sim_allows("pageable") ? NULL : device->open;
  if (sigsetjmp(here, 0) != 0) {
    leave = NULL;
    sim_kernel_left();
    *at = touched;
    return false;
  }
  leave = &here;
  work(data);
  leave = NULL;
  return true;
}

static void protect(const sim_block *block, int how) {
  if (mprotect(block->pages, block->page_bytes, how) != 0) abort();
}

/* Of other advice than the pages around it, a block that is closed stays a mapping of its own in the kernel, which
 * otherwise joins and splits mappings at each item of work. */
static void set_apart(const sim_block *block, int advice) { (void)madvise(block->pages, block->page_bytes, advice); }

/* P13 answered with no: the host sees the device's writes at the end of an item of work, no sooner. */
static void take_shadows(const sim_device *device, bool all) {
  for (const sim_block *block = device->running->base.context->blocks; block; block = block->next)
    for (size_t k = 0; block->shadow && k < block->bytes; k += 8) {
      uint64_t word = __atomic_load_n((uint64_t *)(void *)(block->at + k), __ATOMIC_RELAXED);
      if (!all && memcmp(block->before + k, &word, sizeof word) == 0) continue;
      memcpy(block->shadow + k, &word, sizeof word);
      memcpy(block->before + k, &word, sizeof word);
    }
}

void sim_memory_refresh(sim_device *device) { take_shadows(device, false); }

/* From the end on, as the word that announces the rest is at the beginning. */
void sim_memory_show(sim_device *device) {
  for (const sim_block *block = device->running->base.context->blocks; block; block = block->next)
    for (size_t k = block->shadow ? (block->bytes + 7) / 8 * 8 : 0; k > 0; k -= 8) {
      uint64_t word;
      memcpy(&word, block->shadow + k - 8, sizeof word);
      if (memcmp(block->before + k - 8, &word, sizeof word) != 0)
        __atomic_store_n((uint64_t *)(void *)(block->at + k - 8), word, __ATOMIC_RELEASE);
    }
}

static void protect_all(const sim_context *context, int how) {
  for (const sim_block *each = context->blocks; each; each = each->next)
    if (each->kind == SIMGPU_MEMORY) protect(each, how);
}

void sim_memory_open(sim_device *device) {
  const sim_context *context = device->running->base.context; /* which sees no other one's memory */
  take_shadows(device, true);
  watch(SIGSEGV, &before_segv); /* other code sometimes takes over the signals' handlers */
  watch(SIGBUS, &before_bus);
  if (device->open == context) return;
  sim_memory_close(device);
  device->open = context;
  protect_all(context, PROT_READ | PROT_WRITE);
}

void sim_memory_close(sim_device *device) {
  if (device->open) protect_all(device->open, PROT_NONE);
  device->open = NULL;
}

/* ---- finding ---- */

static bool is_within(uintptr_t at, size_t bytes, const unsigned char *from, size_t size) {
  size_t offset = at - (uintptr_t)from;
  return from && at >= (uintptr_t)from && offset <= size && bytes <= size - offset;
}

const sim_block *sim_block_of(const sim_context *context, uintptr_t at, size_t bytes) {
  const sim_block *block = context->blocks;
  while (block && !is_within(at, bytes, block->at, block->bytes) && !is_within(at, bytes, block->shadow, block->bytes))
    block = block->next;
  return block;
}

void sim_memory_describe(const sim_device *device, uintptr_t at, char *text, size_t bytes) {
  const unsigned long long place = at;
  for (size_t k = 0; k < device->freed_count; ++k) {
    const size_t into = at - device->freed[k].at, all = device->freed[k].bytes;
    if (into < all) {
      snprintf(text, bytes, "%#llx, %zu bytes into %zu bytes that were freed", place, into, all);
      return;
    }
  }
  snprintf(text, bytes, "%#llx, which is no memory of this device", place);
  for (const sim_context *context = device->contexts; context; context = context->next)
    for (const sim_block *each = context->blocks; each; each = each->next) {
      const size_t into = at - (uintptr_t)each->at, all = each->bytes;
      if (each->kind != SIMGPU_MEMORY) continue;
      if (into < all) snprintf(text, bytes, "%#llx, %zu bytes into %zu bytes of another context", place, into, all);
      else if (into - all < PAGE)
        snprintf(text, bytes, "%#llx, %zu bytes behind %zu bytes of device memory", place, into - all, all);
    }
}

void sim_torn_note(sim_device *device, const unsigned char *to, size_t bytes) {
  if (device->torn_count == SIM_TORN_MOST) sim_torn_forget(device, device->torn[0].at, device->torn[0].bytes);
  device->torn[device->torn_count++] = (sim_torn){to, bytes};
}

/* A block that reaches beyond both ends stays whole. */
void sim_torn_forget(sim_device *device, const unsigned char *to, size_t bytes) {
  for (unsigned k = device->torn_count; k-- > 0;) {
    const unsigned char *begin = device->torn[k].at, *end = begin + device->torn[k].bytes;
    if (to <= begin && to + bytes > begin) begin = to + bytes < end ? to + bytes : end;
    else if (to < end && to + bytes >= end) end = to;
    device->torn[k] = (sim_torn){begin, (size_t)(end - begin)};
    if (begin == end) device->torn[k] = device->torn[--device->torn_count];
  }
}

static void check_torn(sim_device *device, uintptr_t at, size_t bytes) {
  for (unsigned k = 0; k < device->torn_count; ++k) {
    const sim_torn torn = device->torn[k];
    if (at >= (uintptr_t)torn.at + torn.bytes || at + bytes <= (uintptr_t)torn.at) continue;
    sim_broken("source", "a kernel reads %#llx, which was copied there from page-locked memory that was changed "
               "before", (unsigned long long)at);
    sim_torn_forget(device, torn.at, torn.bytes);
    return;
  }
}

/* Device memory is closed to other work. Of the host's memory a kernel may touch page-locked and managed memory, and
 * all of it on a device whose attribute says so. */
bool sim_touch(unsigned long long at, unsigned long long bytes) {
  if (!leave || !guarded) return true;
  if (guarded->device->torn_count) check_torn(guarded->device, at, bytes);
  if (is_device_memory(at)) return true;
  SIM_HOLD(sim_lock);
  const bool known = sim_block_of(guarded, at, bytes) != NULL;
  if (!known) touched = at;
  return known;
}

void sim_give_up(void) { siglongjmp(*leave, 1); }

/* ---- taking and giving back ---- */

static sim_block *block_make(sim_context *context, simgpu_kind kind, size_t bytes) {
  sim_block *block = sim_obtain(sizeof *block);
  block->kind = kind;
  block->context = context;
  block->bytes = bytes;
  block->next = context->blocks;
  return context->blocks = block;
}

static void fill_with_rubbish(const sim_block *block) {
  size_t each = block->bytes < FILLED ? block->bytes : FILLED;
  memset(block->at, RUBBISH, each);
  memset(block->at + block->bytes - each, RUBBISH, each);
}

/* The block ends where its pages do, up to its alignment: the page behind stays closed. */
static CUresult take_device(sim_context *context, size_t bytes, sim_block **out) {
  sim_device *device = context->device;
  watch(SIGSEGV, &before_segv);
  if (!device->range) {
    void *range = mmap(NULL, RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) abort();
    device->range = range;
  }
  if (bytes > sim_memory_bytes - device->taken)
    return sim_refuse(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes of device memory: %zu of %llu are taken", bytes,
                      device->taken, (unsigned long long)sim_memory_bytes);
  size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, pages = (rounded + PAGE - 1) / PAGE * PAGE;
  if (pages + PAGE > RANGE - device->used)
    return sim_refuse(CUDA_ERROR_OUT_OF_MEMORY, "all addresses of the simulated device were given out");
  sim_block *block = block_make(context, SIMGPU_MEMORY, bytes);
  block->pages = device->range + device->used;
  block->page_bytes = pages;
  block->at = block->pages + (pages - rounded);
  device->used += pages + PAGE;
  device->taken += bytes;
  set_apart(block, MADV_DONTDUMP);
  protect(block, PROT_READ | PROT_WRITE);
  fill_with_rubbish(block);
  if (device->open != context) protect(block, PROT_NONE);
  *out = block;
  return CUDA_SUCCESS;
}

static sim_block *add_host(sim_context *context, simgpu_kind kind, size_t bytes, void *at) {
  sim_block *block = block_make(context, kind, bytes);
  block->at = at;
  if (kind == SIMGPU_PINNED && sim_says_no("P13")) {
    block->shadow = sim_obtain(bytes + 8);
    block->before = sim_obtain(bytes + 8);
    if (context->device->open) memcpy(block->shadow, at, bytes);
    if (context->device->open) memcpy(block->before, at, bytes);
  }
  return block;
}

static CUresult take_host(sim_context *context, simgpu_kind kind, size_t bytes, sim_block **out) {
  void *memory = NULL;
  if (bytes > sim_memory_bytes || posix_memalign(&memory, ALIGNMENT, (bytes + 7) / 8 * 8) != 0)
    return sim_refuse(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes of host memory", bytes);
  *out = add_host(context, kind, bytes, memset(memory, RUBBISH, (bytes + 7) / 8 * 8));
  return CUDA_SUCCESS;
}

static void block_end(sim_block *block) {
  sim_device *device = block->context->device;
  sim_block **link = &block->context->blocks;
  while (*link != block) link = &(*link)->next;
  *link = block->next;
  if (block->kind == SIMGPU_MEMORY) {
    device->taken -= block->bytes;
    madvise(block->pages, block->page_bytes, MADV_DONTNEED);
    protect(block, PROT_NONE);
    set_apart(block, MADV_DODUMP);
    device->freed = sim_grow(device->freed, device->freed_count, sizeof *device->freed);
    device->freed[device->freed_count++] = (sim_freed){(uintptr_t)block->at, block->bytes};
  } else {
    if (!block->registered) free(block->at);
    free(block->shadow);
    free(block->before);
  }
  free(block);
}

/* Frees wait for all work under way, as drivers do. */
static CUresult give_back(const void *at, simgpu_kind kind, simgpu_kind other, bool registered) {
  sim_context *context;
  ++sim_count.memory;
  if (!at) return CUDA_SUCCESS;
  CUresult state = sim_current(&context);
  if (!context) return state;
  SIM_TRY(sim_capture_unsafe());
  sim_block *block = context->blocks;
  while (block && (block->at != at || block->registered != registered || (block->kind != kind && block->kind != other)))
    block = block->next;
  if (!block)
    return sim_breaks(CUDA_ERROR_INVALID_VALUE, "free", "%p is no such memory of the current context (any more)", at);
  sim_wait_idle(context);
  block_end(block);
  return state;
}

void sim_memory_end(sim_context *context) {
  while (context->blocks) block_end(context->blocks);
}

static CUresult take(simgpu_kind kind, size_t bytes, unsigned char **at) {
  sim_block *block = NULL;
  ++sim_count.memory;
  SIM_FIND_CONTEXT(context);
  SIM_TRY(sim_capture_unsafe());
  if (bytes == 0) return sim_invalid("0 bytes");
  if (kind == SIMGPU_MANAGED && sim_says_no("managed")) return sim_unsupported("the device has no managed memory");
  SIM_TRY(kind == SIMGPU_MEMORY ? take_device(context, bytes, &block) : take_host(context, kind, bytes, &block));
  *at = block->at;
  return CUDA_SUCCESS;
}

static CUresult take_address(simgpu_kind kind, size_t bytes, CUdeviceptr *memory) {
  unsigned char *at;
  SIM_TRY(take(kind, bytes, &at));
  *memory = (CUdeviceptr)(uintptr_t)at;
  return CUDA_SUCCESS;
}

CUresult sim_cuMemAlloc(CUdeviceptr *memory, size_t bytes) {
  SIM_ENTER(cuMemAlloc);
  return memory ? take_address(SIMGPU_MEMORY, bytes, memory) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemAllocManaged(CUdeviceptr *memory, size_t bytes, unsigned int flags) {
  SIM_ENTER(cuMemAllocManaged);
  if (!memory || flags != CU_MEM_ATTACH_GLOBAL) return sim_invalid("flags");
  return take_address(SIMGPU_MANAGED, bytes, memory);
}

CUresult sim_cuMemHostAlloc(void **memory, size_t bytes, unsigned int flags) {
  SIM_ENTER(cuMemHostAlloc);
  unsigned char *at;
  if (!memory || flags > 7) return sim_invalid("flags");
  SIM_TRY(take(SIMGPU_PINNED, bytes, &at));
  *memory = at;
  return CUDA_SUCCESS;
}

/* Of the whole device, for all contexts. */
CUresult sim_cuMemGetInfo(size_t *left, size_t *all) {
  SIM_ENTER(cuMemGetInfo);
  SIM_FIND_CONTEXT(context);
  if (!left || !all) return sim_invalid("NULL");
  *left = sim_memory_bytes - context->device->taken;
  *all = sim_memory_bytes;
  return CUDA_SUCCESS;
}

CUresult sim_cuMemHostGetDevicePointer(CUdeviceptr *at, void *memory, unsigned int flags) {
  SIM_ENTER(cuMemHostGetDevicePointer);
  SIM_FIND_CONTEXT(context);
  const sim_block *block = sim_block_of(context, (uintptr_t)memory, 1);
  if (!at || flags != 0 || !block || block->kind != SIMGPU_PINNED) return sim_invalid("this isn't pinned memory");
  size_t offset = (size_t)((unsigned char *)memory - block->at);
  *at = (CUdeviceptr)(uintptr_t)((block->shadow ? block->shadow : block->at) + offset);
  return CUDA_SUCCESS;
}

CUresult sim_cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr at) {
  SIM_ENTER(cuPointerGetAttribute);
  if (!value || attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    return sim_invalid("attribute %d isn't simulated", (int)attribute);
  SIM_FIND_CONTEXT(context);
  const sim_block *block = sim_block_of(context, (uintptr_t)at, 1);
  if (!block) return sim_invalid("no memory of the driver's");
  *(unsigned *)value = block->kind == SIMGPU_PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  return CUDA_SUCCESS;
}

SIM_DEFINE_BACK(cuMemFree, (CUdeviceptr at), give_back((void *)(uintptr_t)at, SIMGPU_MEMORY, SIMGPU_MANAGED, false))
SIM_DEFINE_BACK(cuMemFreeHost, (void *at), give_back(at, SIMGPU_PINNED, SIMGPU_PINNED, false))

/* Memory that stays the caller's; whole pages, and none twice. */
CUresult sim_cuMemHostRegister(void *memory, size_t bytes, unsigned int flags) {
  SIM_ENTER(cuMemHostRegister);
  ++sim_count.memory;
  SIM_FIND_CONTEXT(context);
  SIM_TRY(sim_capture_unsafe());
  if (!memory || bytes == 0 || flags > 3 || (uintptr_t)memory % PAGE || bytes % PAGE)
    return sim_invalid("whole pages, and known flags");
  for (const sim_block *each = context->blocks; each; each = each->next)
    if ((uintptr_t)each->at < (uintptr_t)memory + bytes && (uintptr_t)memory < (uintptr_t)each->at + each->bytes)
      return sim_refuse(SIM_ERROR_REGISTERED, "it is registered, or page-locked anyhow");
  if (bytes > sim_memory_bytes) return sim_refuse(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes of host memory", bytes);
  add_host(context, SIMGPU_PINNED, bytes, memory)->registered = true;
  return CUDA_SUCCESS;
}

/* The pages have to be mapped until then. */
static CUresult unregister(void *memory) {
  if (msync(memory, PAGE, MS_ASYNC) != 0)
    sim_broken("free", "cuMemHostUnregister of pages at %p that were unmapped before", memory);
  return give_back(memory, SIMGPU_PINNED, SIMGPU_PINNED, true);
}

SIM_DEFINE_BACK(cuMemHostUnregister, (void *memory), unregister(memory))
