#include "cuda/pool.h"
#include "base/table.h"
#include "cuda/device.h"
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, MOST_SPARE_BYTES = 16 << 20, MOST_SPARE_BLOCKS = 256 };

void gki_cuda_pool_make(gki_cuda_pool *pool) {
  pthread_mutex_init(&pool->lock, NULL);
  pool->has_lock = true;
}

/* ---- the driver's part ------------------------------------------------------------------------------------------- */

static void driver_free(const gki_cuda_device *device, gki_cuda_pooled *block) {
  const gki_cuda_driver *driver = device->driver;
  if (!block->host) (void)driver->cuMemFree(block->at);
  else if (!block->registered) (void)driver->cuMemFreeHost(block->host);
  else {
    (void)driver->cuMemHostUnregister(block->host);
    munmap(block->host, block->bytes);
  }
  gk_host_free(block);
}

/* The pages are shared: after a fork, private pages could be replaced by copies that the device doesn't know. */
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

/* @param call  Gets the name of the driver's entry. */
static CUresult driver_alloc_pinned(const gki_cuda_driver *driver, gki_cuda_pooled *block, const char **call) {
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

static CUresult driver_alloc(const gki_cuda_driver *driver, bool pinned, gki_cuda_pooled *block, const char **call) {
  if (pinned) return driver_alloc_pinned(driver, block, call);
  *call = "cuMemAlloc";
  return driver->cuMemAlloc(&block->at, block->bytes);
}

/* ---- blocks in use ----------------------------------------------------------------------------------------------- */

static uintptr_t key_of(const gki_cuda_pooled *block) {
  return block->host ? (uintptr_t)block->host : (uintptr_t)block->at;
}

/* The list for an address. Under the lock, like the next three functions. */
static gki_cuda_pooled **list_of(const gki_cuda_pool *pool, uintptr_t key) {
  return &pool->used[gki_hash(key >> 8) & (pool->lists - 1)];
}

static void add_used(gki_cuda_pool *pool, gki_cuda_pooled *block) {
  gki_cuda_pooled **list = list_of(pool, key_of(block));
  block->next = *list;
  *list = block;
}

/* Keeps as many lists as blocks. Without memory for more, lists get longer. False: there is no list at all. */
static bool make_lists(gki_cuda_pool *pool) {
  enum { FEWEST = 64 };
  if (pool->used_count < pool->lists) return true;
  gki_cuda_pooled **const old = pool->used;
  const size_t old_lists = pool->lists, lists = old_lists ? 2 * old_lists : FEWEST;
  gki_cuda_pooled **made = gki_array(lists, sizeof *made, "the table of a device's blocks");
  if (!made) return old_lists > 0;
  pool->used = made;
  pool->lists = lists;
  for (size_t k = 0; k < old_lists; ++k)
    for (gki_cuda_pooled *block = old[k], *next; block; block = next) {
      next = block->next;
      add_used(pool, block);
    }
  gk_host_free(old);
  return true;
}

static gki_cuda_pooled *remove_used(gki_cuda_pool *pool, uintptr_t key) {
  gki_cuda_pooled **at = pool->lists ? list_of(pool, key) : NULL;
  while (at && *at && key_of(*at) != key) at = &(*at)->next;
  gki_cuda_pooled *block = at ? *at : NULL;
  if (!block) return NULL;
  *at = block->next;
  --pool->used_count;
  return block;
}

/* ---- spare blocks ------------------------------------------------------------------------------------------------ */

/* The smallest that is large enough, but at most twice as large, or a page. */
static gki_cuda_pooled *pop_spare(gki_cuda_pool *pool, bool pinned, size_t bytes) {
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
    driver_free(device, block);
  }
  return any;
}

void gki_cuda_pool_drop(gki_cuda_device *device) {
  gki_cuda_pool *pool = &device->pool;
  if (!pool->has_lock) return;
  gki_cuda_pool_trim(device);
  for (size_t k = 0; k < pool->lists; ++k) /* of graphs whose wait failed */
    for (gki_cuda_pooled *block = pool->used[k], *next; block; block = next) {
      next = block->next;
      driver_free(device, block);
    }
  gk_host_free(pool->used);
  pool->used = NULL;
  pool->lists = 0;
  pthread_mutex_destroy(&pool->lock);
  pool->has_lock = false;
}

/* ---- allocating and freeing -------------------------------------------------------------------------------------- */

static gk_result make_block(gki_cuda_device *device, bool pinned, size_t bytes, const char *what,
                            gki_cuda_pooled **made) {
  const gki_cuda_driver *driver = device->driver;
  gki_cuda_pooled *block = gki_array(1, sizeof *block, "the record of a block");
  if (!block) return GK_ERROR_MEMORY;
  block->bytes = bytes;
  const char *call;
  CUresult answer = driver_alloc(driver, pinned, block, &call);
  if (answer == CUDA_ERROR_OUT_OF_MEMORY && gki_cuda_pool_trim(device))
    answer = driver_alloc(driver, pinned, block, &call);
  gk_result result = gki_cuda_result(driver, answer, "%s of %zu bytes for %s", call, bytes, what);
  if (result == GK_OK && pinned) {
    result = gki_cuda_result(driver, driver->cuMemHostGetDevicePointer(&block->at, block->host, 0),
                            "cuMemHostGetDevicePointer of %s", what);
    if (result != GK_OK) {
      driver_free(device, block);
      return result;
    }
  }
  if (result == GK_OK) *made = block;
  else gk_host_free(block);
  return result;
}

static gk_result alloc(gki_cuda_device *device, bool pinned, size_t bytes, const char *what, gki_cuda_pooled **taken) {
  gki_cuda_pool *pool = &device->pool;
  gki_cuda_pooled *block = pop_spare(pool, pinned, bytes);
  gk_result result = block ? GK_OK : make_block(device, pinned, bytes, what, &block);
  if (result != GK_OK) return result;
  pthread_mutex_lock(&pool->lock);
  const bool has_lists = make_lists(pool);
  if (has_lists) {
    add_used(pool, block);
    ++pool->used_count;
  }
  pthread_mutex_unlock(&pool->lock);
  if (has_lists) *taken = block;
  else driver_free(device, block);
  return has_lists ? GK_OK : GK_ERROR_MEMORY;
}

gk_result gki_cuda_alloc_device(gki_cuda_device *device, size_t bytes, const char *what, CUdeviceptr *memory) {
  gki_cuda_pooled *block;
  gk_result result = alloc(device, false, bytes, what, &block);
  if (result == GK_OK) *memory = block->at;
  return result;
}

gk_result gki_cuda_alloc_pinned(gki_cuda_device *device, size_t bytes, const char *what, void **memory,
                               CUdeviceptr *at) {
  gki_cuda_pooled *block;
  gk_result result = alloc(device, true, bytes, what, &block);
  if (result != GK_OK) return result;
  memset(block->host, 0, bytes);
  *memory = block->host;
  if (at) *at = block->at;
  return GK_OK;
}

/* @param keeps  The block becomes spare, unless there are too many. */
static bool free_block(gki_cuda_device *device, uintptr_t key, bool keeps) {
  gki_cuda_pool *pool = &device->pool;
  pthread_mutex_lock(&pool->lock);
  gki_cuda_pooled *block = remove_used(pool, key);
  const bool stays = block && keeps && pool->spare_count < MOST_SPARE_BLOCKS &&
                     block->bytes <= MOST_SPARE_BYTES - pool->spare_bytes;
  if (stays) {
    block->next = pool->spare;
    pool->spare = block;
    pool->spare_bytes += block->bytes;
    ++pool->spare_count;
  }
  pthread_mutex_unlock(&pool->lock);
  if (block && !stays) driver_free(device, block);
  return block != NULL;
}

void gki_cuda_free_device(gki_cuda_device *device, CUdeviceptr memory) {
  if (memory) free_block(device, (uintptr_t)memory, true);
}

void gki_cuda_free_pinned(gki_cuda_device *device, void *memory) {
  if (memory) free_block(device, (uintptr_t)memory, true);
}

/* ---- memory of slots --------------------------------------------------------------------------------------------- */

static gk_result fill_own(const gki_cuda_device *device, CUdeviceptr from, size_t kept, size_t bytes,
                          CUdeviceptr memory) {
  const gki_cuda_driver *driver = device->driver;
  const char *call = "cuMemcpyDtoDAsync";
  CUresult result = kept ? driver->cuMemcpyDtoDAsync(memory, from, kept, device->uploads) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS && bytes > kept) {
    call = "cuMemsetD8Async";
    result = driver->cuMemsetD8Async(memory + kept, 0, bytes - kept, device->uploads);
  }
  if (result == CUDA_SUCCESS) call = "cuStreamSynchronize";
  const CUresult ended = driver->cuStreamSynchronize(device->uploads);
  return gki_cuda_result(driver, result == CUDA_SUCCESS ? ended : result, "%s of %zu bytes that a graph owns", call,
                        bytes);
}

gk_result gki_cuda_alloc_own(gki_cuda_device *device, CUdeviceptr from, size_t kept, size_t bytes,
                             CUdeviceptr *memory) {
  gk_result result = gki_cuda_alloc_device(device, bytes, "memory that a graph owns", memory);
  if (result != GK_OK) return result;
  result = fill_own(device, from, kept, bytes, *memory);
  if (result != GK_OK) gki_cuda_free_device(device, *memory);
  return result;
}

bool gki_cuda_free_own(gki_cuda_device *device, CUdeviceptr memory, bool waits) {
  return free_block(device, (uintptr_t)memory, !waits);
}
