#include "pool.h"
#include "device.h"
#include "memory.h"
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, MOST_SPARE_BYTES = 16 << 20, MOST_SPARE_BLOCKS = 256 };

void gki_cuda_pool_make(gki_cuda_pool *pool) {
  pthread_mutex_init(&pool->lock, NULL);
  pool->locks = true;
}

/* ---- the driver's part ------------------------------------------------------------------------------------------- */

static void release(const gki_cuda_device *device, gki_cuda_pooled *block) {
  const gki_cuda_driver *driver = device->driver;
  if (!block->host) (void)driver->cuMemFree(block->at);
  else if (!block->registered) (void)driver->cuMemFreeHost(block->host);
  else {
    (void)driver->cuMemHostUnregister(block->host);
    munmap(block->host, block->bytes);
  }
  gk_release(block);
}

/* Shared pages, so that a fork of the process doesn't give it copies which the device knows nothing of. */
static CUresult map(const gki_cuda_driver *driver, gki_cuda_pooled *block) {
  if (block->bytes > SIZE_MAX - PAGE) return CUDA_ERROR_OUT_OF_MEMORY;
  const size_t bytes = (block->bytes + PAGE - 1) / PAGE * PAGE;
  void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = driver->cuMemHostRegister(
      pages, bytes, GKI_CU_MEMHOSTREGISTER_PORTABLE | GKI_CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result != CUDA_SUCCESS) {
    munmap(pages, bytes);
    return result;
  }
  block->host = pages;
  block->bytes = bytes;
  block->registered = true;
  return CUDA_SUCCESS;
}

/* @param call  The driver's entry that answered. */
static CUresult obtain_pinned(const gki_cuda_driver *driver, gki_cuda_pooled *block, const char **call) {
  *call = "cuMemHostRegister";
  CUresult result = driver->cuMemHostRegister ? map(driver, block) : CUDA_ERROR_NOT_SUPPORTED;
  if (result == CUDA_ERROR_NOT_SUPPORTED) {
    *call = "cuMemHostAlloc";
    result = driver->cuMemHostAlloc(&block->host, block->bytes,
                                    GKI_CU_MEMHOSTALLOC_PORTABLE | GKI_CU_MEMHOSTALLOC_DEVICEMAP);
  }
  if (result != CUDA_SUCCESS) block->host = NULL;
  return result;
}

static CUresult obtain(const gki_cuda_driver *driver, bool pinned, gki_cuda_pooled *block, const char **call) {
  if (pinned) return obtain_pinned(driver, block, call);
  *call = "cuMemAlloc";
  return driver->cuMemAlloc(&block->at, block->bytes);
}

/* ---- what is spare ----------------------------------------------------------------------------------------------- */

/* The smallest that is large enough, and not by much. */
static gki_cuda_pooled *take_spare(gki_cuda_pool *pool, bool pinned, size_t bytes) {
  gki_cuda_pooled **best = NULL;
  pthread_mutex_lock(&pool->lock);
  for (gki_cuda_pooled **at = &pool->spare; *at; at = &(*at)->next) {
    const bool fits = bytes <= (*at)->bytes && ((*at)->bytes <= PAGE || (*at)->bytes / 2 <= bytes);
    if (fits && pinned == ((*at)->host != NULL) && (!best || (*at)->bytes < (*best)->bytes)) best = at;
  }
  gki_cuda_pooled *block = best ? *best : NULL;
  if (block) {
    *best = block->next;
    pool->spare_bytes -= block->bytes;
    --pool->spare_count;
  }
  pthread_mutex_unlock(&pool->lock);
  return block;
}

bool gki_cuda_pool_trim(gki_cuda_device *device) {
  gki_cuda_pool *pool = &device->pool;
  pthread_mutex_lock(&pool->lock);
  gki_cuda_pooled *block = pool->spare;
  pool->spare = NULL;
  pool->spare_bytes = pool->spare_count = 0;
  pthread_mutex_unlock(&pool->lock);
  const bool any = block != NULL;
  for (gki_cuda_pooled *next; block; block = next) {
    next = block->next;
    release(device, block);
  }
  return any;
}

void gki_cuda_pool_drop(gki_cuda_device *device) {
  gki_cuda_pooled **end = &device->pool.spare;
  if (!device->pool.locks) return;
  while (*end) end = &(*end)->next;
  *end = device->pool.used; /* of graphs whose end couldn't be waited for */
  device->pool.used = NULL;
  gki_cuda_pool_trim(device);
  pthread_mutex_destroy(&device->pool.lock);
  device->pool.locks = false;
}

/* ---- taking and giving back -------------------------------------------------------------------------------------- */

static gk_result make_block(gki_cuda_device *device, bool pinned, size_t bytes, const char *what,
                            gki_cuda_pooled **made) {
  const gki_cuda_driver *driver = device->driver;
  gki_cuda_pooled *block = gki_array(1, sizeof *block, "the record of a block");
  if (!block) return GK_ERROR_MEMORY;
  block->bytes = bytes;
  const char *call;
  CUresult answer = obtain(driver, pinned, block, &call);
  if (answer == CUDA_ERROR_OUT_OF_MEMORY && gki_cuda_pool_trim(device)) answer = obtain(driver, pinned, block, &call);
  gk_result result = gki_cuda_judge(driver, answer, "%s of %zu bytes for %s", call, bytes, what);
  if (result == GK_OK && pinned) {
    result = gki_cuda_judge(driver, driver->cuMemHostGetDevicePointer(&block->at, block->host, 0),
                            "cuMemHostGetDevicePointer of %s", what);
    if (result != GK_OK) {
      release(device, block);
      return result;
    }
  }
  if (result == GK_OK) *made = block;
  else gk_release(block);
  return result;
}

static gk_result take(gki_cuda_device *device, bool pinned, size_t bytes, const char *what, gki_cuda_pooled **taken) {
  gki_cuda_pooled *block = take_spare(&device->pool, pinned, bytes);
  gk_result result = block ? GK_OK : make_block(device, pinned, bytes, what, &block);
  if (result != GK_OK) return result;
  pthread_mutex_lock(&device->pool.lock);
  block->next = device->pool.used;
  device->pool.used = block;
  pthread_mutex_unlock(&device->pool.lock);
  *taken = block;
  return GK_OK;
}

gk_result gki_cuda_take(gki_cuda_device *device, size_t bytes, const char *what, CUdeviceptr *memory) {
  gki_cuda_pooled *block;
  gk_result result = take(device, false, bytes, what, &block);
  if (result == GK_OK) *memory = block->at;
  return result;
}

gk_result gki_cuda_take_pinned(gki_cuda_device *device, size_t bytes, const char *what, void **memory,
                               CUdeviceptr *at) {
  gki_cuda_pooled *block;
  gk_result result = take(device, true, bytes, what, &block);
  if (result != GK_OK) return result;
  memset(block->host, 0, bytes);
  *memory = block->host;
  if (at) *at = block->at;
  return GK_OK;
}

static void give(gki_cuda_device *device, const void *host, CUdeviceptr memory) {
  gki_cuda_pool *pool = &device->pool;
  pthread_mutex_lock(&pool->lock);
  gki_cuda_pooled **at = &pool->used;
  while (*at && ((*at)->host != host || (!host && (*at)->at != memory))) at = &(*at)->next;
  gki_cuda_pooled *block = *at;
  if (block) *at = block->next;
  const bool stays = block && pool->spare_count < MOST_SPARE_BLOCKS &&
                     block->bytes <= MOST_SPARE_BYTES - pool->spare_bytes;
  if (stays) {
    block->next = pool->spare;
    pool->spare = block;
    pool->spare_bytes += block->bytes;
    ++pool->spare_count;
  }
  pthread_mutex_unlock(&pool->lock);
  if (block && !stays) release(device, block);
}

void gki_cuda_give(gki_cuda_device *device, CUdeviceptr memory) {
  if (memory) give(device, NULL, memory);
}

void gki_cuda_give_pinned(gki_cuda_device *device, void *memory) {
  if (memory) give(device, memory, 0);
}
