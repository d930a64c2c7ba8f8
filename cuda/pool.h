/* Memory of graphs: their tables, states, slots and statuses, and the memory that their slots own. CUDA frees memory
 * only when the whole device is idle, so the memory of a destroyed graph is kept for the next one. */
#ifndef GKI_CUDA_POOL_H
#define GKI_CUDA_POOL_H
#include "cuda/device.h"

void gki_cuda_pool_make(gki_cuda_pool *pool);
/* Both in the device's context. Trim frees spare memory, which waits for the device; false: there was none. Drop frees
 * everything. */
bool gki_cuda_pool_trim(gki_cuda_device *device);
void gki_cuda_pool_drop(gki_cuda_device *device);

/* Allocate device memory, or zeroed page-locked memory; `at` may be NULL, or gets its address on the device. In the
 * device's context. `what` is for the message. */
gk_result gki_cuda_alloc_device(gki_cuda_device *device, size_t bytes, const char *what, CUdeviceptr *memory);
gk_result gki_cuda_alloc_pinned(gki_cuda_device *device, size_t bytes, const char *what, void **memory,
                                CUdeviceptr *at);
/* The memory must not be in use on the host or the device. 0 and NULL are allowed. */
void gki_cuda_free_device(gki_cuda_device *device, CUdeviceptr memory);
void gki_cuda_free_pinned(gki_cuda_device *device, void *memory);

/* Allocates memory that a graph owns. Its first `kept` bytes are copied from `from`, which must not change any more.
 * The rest is zero. Waits for the copy, which runs on the stream for uploads. */
gk_result gki_cuda_alloc_own(gki_cuda_device *device, CUdeviceptr from, size_t kept, size_t bytes, CUdeviceptr *memory);
/* Returns it to the pool or, if `waits`, to the driver, which waits until the device is idle. False: not the pool's. */
bool gki_cuda_free_own(gki_cuda_device *device, CUdeviceptr memory, bool waits);
#endif
