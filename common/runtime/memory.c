/* A device's blocks of memory: allocated, found again by address, copied in the order of the device's work. */
#include "runtime/memory.h"
#include "base/error.h"
#include "base/registry.h"
#include "base/thread_cancel.h"
#include "base/trace.h"
#include "runtime/worker.h"
#include <string.h>

enum { ALIGNMENT = 256 }; /* alignment of a backend's memory */

/* The first block that begins behind the address. The previous block may hold the address. Under the device's lock,
 * like the next function. */
static size_t block_behind(const gk_device *device, uintptr_t address) {
  size_t low = 0, high = device->block_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (device->blocks[middle].begin <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* The block that holds the address; NULL: none. A block of no bytes still holds its own address. */
static gki_memory_block *block_of(const gk_device *device, uintptr_t address) {
  size_t behind = block_behind(device, address);
  gki_memory_block *block = behind > 0 ? &device->blocks[behind - 1] : NULL;
  return block && (address - block->begin < block->bytes || address == block->begin) ? block : NULL;
}

size_t gki_device_capacity(gk_device *device, const void *graph, const void *address, uint64_t *number) {
  pthread_mutex_lock(&device->lock);
  gki_memory_block *block = block_of(device, (uintptr_t)address);
  size_t capacity = block ? block->bytes - ((uintptr_t)address - block->begin) : SIZE_MAX;
  *number = block ? block->number : 0;
  if (block) block->bound = true;
  if (block && block->owner && block->owner != graph) block->lent = true;
  pthread_mutex_unlock(&device->lock);
  return capacity;
}

bool gki_device_ends_block(gk_device *device, const void *address) {
  pthread_mutex_lock(&device->lock);
  const size_t behind = block_behind(device, (uintptr_t)address);
  const gki_memory_block *block = behind > 0 ? &device->blocks[behind - 1] : NULL;
  const bool ends = block && block->begin + block->bytes == (uintptr_t)address;
  pthread_mutex_unlock(&device->lock);
  return ends;
}

bool gki_device_is_lent(gk_device *device, const void *memory) {
  pthread_mutex_lock(&device->lock);
  const gki_memory_block *block = block_of(device, (uintptr_t)memory);
  const bool lent = block && block->lent;
  pthread_mutex_unlock(&device->lock);
  return lent;
}

static gk_result note_block(gk_device *device, void *memory, size_t bytes, const void *owner) {
  pthread_mutex_lock(&device->lock);
  const bool grown = gki_grow((void **)&device->blocks, &device->block_capacity, device->block_count + 1,
                             sizeof *device->blocks, "the table of memory blocks");
  if (grown) {
    size_t at = block_behind(device, (uintptr_t)memory);
    memmove(&device->blocks[at + 1], &device->blocks[at], (device->block_count - at) * sizeof *device->blocks);
    device->blocks[at] = (gki_memory_block){
        .begin = (uintptr_t)memory, .bytes = bytes, .owner = owner, .number = ++device->block_number};
    ++device->block_count;
  }
  pthread_mutex_unlock(&device->lock);
  return grown ? GK_OK : GK_ERROR_MEMORY;
}

/* Checks the result of a backend's allocation. */
static gk_result alloc_result(const gk_backend *backend, const char *entry, gk_result result, const void *memory,
                              size_t bytes) {
  result = gki_answer(backend, entry, result);
  if (result == GK_OK && !memory) result = GK_ERROR_MEMORY;
  if (result == GK_OK) return GK_OK;
  if (result == GK_ERROR_MEMORY)
    return gk_fail(result, "out of device memory: %zu bytes; free some and call again", bytes);
  return gk_fail(result, "backend %s failed to give %zu bytes of memory and didn't say why", backend->name, bytes);
}

/* Zeroes new memory. Doesn't wait if the host can write it. */
static gk_result zero(gk_device *device, void *memory, size_t bytes) {
  const gk_backend *backend = device->backend;
  void *here = backend->host_address ? backend->host_address(device->state, memory) : NULL;
  if (!here) return gki_device_copy(device, GK_ZERO, memory, NULL, bytes);
  gki_trace_begin(bytes, "zero");
  memset(here, 0, bytes);
  gki_trace_end();
  return GK_OK;
}

static gk_result address_result(const gk_backend *backend, const char *entry, const void *memory) {
  if ((uintptr_t)memory % ALIGNMENT == 0) return GK_OK;
  return gk_fail(GK_ERROR_DEVICE, "backend %s: its entry %s gave %p, which isn't aligned to %d bytes", backend->name,
                 entry, memory, ALIGNMENT);
}

static gk_result alloc(gk_device *device, size_t bytes, gk_memory kind, const void *owner, void **given) {
  void *memory = NULL;
  gk_result result = device->backend->alloc(device->state, bytes ? bytes : 1, kind, &memory);
  result = alloc_result(device->backend, "alloc", result, memory, bytes);
  if (result != GK_OK) return result;
  result = address_result(device->backend, "alloc", memory);
  if (result == GK_OK && bytes) result = zero(device, memory, bytes);
  if (result == GK_OK) result = note_block(device, memory, bytes, owner);
  if (result == GK_OK) *given = memory;
  else device->backend->free(device->state, memory);
  return result;
}

gk_result gki_device_alloc(gk_device *device, size_t bytes, gk_memory kind, const void *owner, void **given) {
  const int cancel_state = gki_thread_cancel_disable();
  gki_trace_begin(bytes, "allocate");
  const gk_result result = alloc(device, bytes, kind, owner, given);
  gki_trace_end();
  gki_thread_cancel_restore(cancel_state);
  return result;
}

static gk_result own(gk_device *device, void *state, const void *from, size_t kept, size_t bytes, const void *owner,
                     void **given) {
  void *memory = NULL;
  gk_result result = device->backend->own(state, from, kept, bytes ? bytes : 1, &memory);
  result = alloc_result(device->backend, "own", result, memory, bytes);
  if (result != GK_OK) return result;
  result = address_result(device->backend, "own", memory);
  if (result == GK_OK) result = note_block(device, memory, bytes, owner);
  if (result == GK_OK) *given = memory;
  else device->backend->disown(device->state, memory);
  return result;
}

gk_result gki_device_own(gk_device *device, void *state, const void *from, size_t kept, size_t bytes,
                         const void *owner, void **given) {
  const int cancel_state = gki_thread_cancel_disable();
  gki_trace_begin(bytes, "allocate");
  const gk_result result = own(device, state, from, kept, bytes, owner, given);
  gki_trace_end();
  gki_thread_cancel_restore(cancel_state);
  return result;
}

typedef struct memory_job {
  gki_job job;
  gk_device *device;
  gk_direction direction;
  void *to;
  const void *from;
  size_t bytes;
  gk_result result;
  char message[1024];
} memory_job;

static void run_free(gki_job *at) {
  memory_job *job = (memory_job *)at;
  /* A native launch continues after its job. A copy waits for it, so afterwards the memory is unused. */
  job->device->backend->copy(job->device->state, GK_ZERO, job->to, NULL, 1);
  job->device->backend->free(job->device->state, job->to);
}

bool gki_device_free(gk_device *device, void *memory, const void *owner, bool disowns) {
  pthread_mutex_lock(&device->lock);
  size_t behind = block_behind(device, (uintptr_t)memory);
  bool known = behind > 0 && device->blocks[behind - 1].begin == (uintptr_t)memory &&
               device->blocks[behind - 1].owner == owner;
  if (known) {
    disowns = disowns && !device->blocks[behind - 1].lent;
    if (device->blocks[behind - 1].bound) atomic_fetch_add_explicit(&device->bound_freed, 1, memory_order_relaxed);
    memmove(&device->blocks[behind - 1], &device->blocks[behind],
            (device->block_count - behind) * sizeof *device->blocks);
    --device->block_count;
  }
  pthread_mutex_unlock(&device->lock);
  if (!known) return false;
  memory_job job = {.job.run = run_free, .device = device, .to = memory};
  const int cancel_state = gki_thread_cancel_disable();
  gki_trace_begin(0, "free");
  if (disowns) device->backend->disown(device->state, memory);
  else gki_worker_run(&device->worker, &job.job);
  gki_trace_end();
  gki_thread_cancel_restore(cancel_state);
  return true;
}

static void run_copy(gki_job *at) {
  memory_job *job = (memory_job *)at;
  gki_begin();
  job->result = job->device->backend->copy(job->device->state, job->direction, job->to, job->from, job->bytes);
  if (job->result == GK_OK) return;
  job->result = gki_answer(job->device->backend, "copy", job->result);
  gk_fail(job->result, "backend %s failed to copy %zu bytes and didn't say why", job->device->backend->name,
          job->bytes);
  gki_error_save(job->message, sizeof job->message); /* the job may run on another thread than its caller */
}

static const char *name_of(gk_direction direction) {
  switch (direction) {
  case GK_TO_DEVICE: return "upload";
  case GK_TO_HOST: return "download";
  case GK_ON_DEVICE: return "copy";
  default: return "zero";
  }
}

gk_result gki_device_copy(gk_device *device, gk_direction direction, void *to, const void *from, size_t bytes) {
  memory_job job = {
      .job.run = run_copy, .device = device, .direction = direction, .to = to, .from = from, .bytes = bytes};
  gki_trace_begin(bytes, "%s", name_of(direction));
  gki_worker_run(&device->worker, &job.job);
  gki_trace_end();
  return job.result == GK_OK ? GK_OK : gki_fail_with(job.result, job.message);
}

/* Refuses a range that ends beyond its block. gk trusts memory that it doesn't know. */
static gk_result check_range(gk_device *device, const char *call, const void *memory, size_t bytes) {
  if (!memory) return gk_fail(GK_ERROR_INVALID, "%s: the address is NULL; give memory of the device", call);
  uintptr_t address = (uintptr_t)memory;
  size_t left = SIZE_MAX, whole = 0;
  pthread_mutex_lock(&device->lock);
  const gki_memory_block *block = block_of(device, address);
  if (block) {
    left = block->bytes - (address - block->begin);
    whole = block->bytes;
  }
  pthread_mutex_unlock(&device->lock);
  if (bytes <= left) return GK_OK;
  return gk_fail(GK_ERROR_INVALID,
                 "%s: %zu bytes from there leave the block, which has %zu bytes, %zu of them from there on; copy no "
                 "more than those", call, bytes, whole, left);
}

/* ---- public ------------------------------------------------------------------------------------------------------ */

static gk_result refuse_device(const gk_device *device, const char *call) {
  gki_begin();
  return gki_device_refuse(device, call);
}

void *gk_alloc(gk_device *device, size_t bytes, gk_memory kind) {
  if (refuse_device(device, "gk_alloc") != GK_OK) return NULL;
  if (kind != GK_DEVICE_MEMORY && kind != GK_HOST_MEMORY) {
    gk_fail(GK_ERROR_INVALID, "gk_alloc: %d is no kind of memory; give GK_DEVICE_MEMORY or GK_HOST_MEMORY", (int)kind);
    return NULL;
  }
  void *memory = NULL;
  gki_attempt_begin();
  const gk_result result = gki_device_alloc(device, bytes, kind, NULL, &memory);
  gki_attempt_end();
  if (result == GK_OK) return memory;
  char why[GKI_MESSAGE_BYTES];
  gki_error_save(why, sizeof why);
  gki_begin();
  gk_fail(result, "gk_alloc: %s", why);
  return NULL;
}

void gk_free(gk_device *device, void *memory) {
  if (!memory || refuse_device(device, "gk_free") != GK_OK) return;
  if (!gki_device_free(device, memory, NULL, false))
    gk_fail(GK_ERROR_INVALID, "gk_free: %p was not given by gk_alloc of this device, or is freed already", memory);
}

gk_result gk_upload(gk_device *device, void *to, const void *from_host, size_t bytes) {
  gk_result result = refuse_device(device, "gk_upload");
  if (result != GK_OK || bytes == 0) return result;
  if (!from_host) return gk_fail(GK_ERROR_INVALID, "gk_upload: there is nothing to copy from (NULL)");
  result = check_range(device, "gk_upload", to, bytes);
  return result == GK_OK ? gki_device_copy(device, GK_TO_DEVICE, to, from_host, bytes) : result;
}

gk_result gk_download(gk_device *device, void *to_host, const void *from, size_t bytes) {
  gk_result result = refuse_device(device, "gk_download");
  if (result != GK_OK || bytes == 0) return result;
  if (!to_host) return gk_fail(GK_ERROR_INVALID, "gk_download: there is nowhere to copy to (NULL)");
  result = check_range(device, "gk_download", from, bytes);
  return result == GK_OK ? gki_device_copy(device, GK_TO_HOST, to_host, from, bytes) : result;
}

gk_result gk_copy(gk_device *device, void *to, const void *from, size_t bytes) {
  gk_result result = refuse_device(device, "gk_copy");
  if (result != GK_OK || bytes == 0) return result;
  result = check_range(device, "gk_copy (to)", to, bytes);
  if (result == GK_OK) result = check_range(device, "gk_copy (from)", from, bytes);
  return result == GK_OK ? gki_device_copy(device, GK_ON_DEVICE, to, from, bytes) : result;
}

void *gk_host_address(gk_device *device, void *memory) {
  if (refuse_device(device, "gk_host_address") != GK_OK || !memory || !device->backend->host_address) return NULL;
  return device->backend->host_address(device->state, memory);
}
